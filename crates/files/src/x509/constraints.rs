//! Constraints on the certificates below a CA certificate, as text: name and policy constraints.

use super::general_names::{Printer, general_name, indented};
use crate::der::{Class, Integer, Reader, Result};

/// Name constraints (RFC 5280 section 4.2.1.10).
pub(super) fn names(reader: &mut Reader<'_>) -> Result<String> {
    let mut members = reader.sequence()?;
    let mut lists = Vec::new();
    for (tag, title) in [(0, "Permitted"), (1, "Excluded")] {
        let Some(list) = members.optional(Class::Context, tag)? else { continue };
        let mut trees = list.items();
        let mut names = Vec::new();
        while !trees.is_empty() {
            let base = trees.sequence()?.element()?;
            names.push(match base.tag {
                7 => address_range(&base.octets()?),
                _ => general_name(&base, Printer::Lines)?,
            });
        }
        lists.push(if names.is_empty() {
            String::new()
        } else {
            format!("{title}:\n{}", indented(&names))
        });
    }
    Ok(lists.join("\n"))
}

/// An address and its mask as text.
fn address_range(octets: &[u8]) -> String {
    let (base, mask) = octets.split_at(match octets.len() {
        16.. => 16,
        4.. => 4,
        few => few,
    });
    format!("IP:{}/{}", address(base), address(mask))
}

/// An address as text.
pub(super) fn address(octets: &[u8]) -> String {
    match octets {
        [a, b, c, d] => format!("{a}.{b}.{c}.{d}"),
        long if long.len() == 16 => {
            let words = long.as_chunks::<2>().0.iter().map(|w| u16::from_be_bytes(*w));
            words.map(|word| format!("{word:X}")).collect::<Vec<_>>().join(":")
        }
        _ => format!("<invalid length={}>", octets.len()),
    }
}

/// Policy constraints: the number of certificates after which policies must be explicit, or must
/// not be mapped (RFC 5280 section 4.2.1.11).
pub(super) fn policies(reader: &mut Reader<'_>) -> Option<String> {
    let mut members = reader.sequence().ok()?;
    let mut all = Vec::new();
    for (tag, title) in [(0, "Require Explicit Policy"), (1, "Inhibit Policy Mapping")] {
        if let Some(count) = members.optional(Class::Context, tag).ok()? {
            all.push(format!("{title}:{}", Integer::new(count.primitive().ok()?).ok()?.to_i64()?));
        }
    }
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ranges_of_addresses() {
        let mail = [0x30, 9, 0xa0, 7, 0x30, 5, 0x81, 3, b'a', b'@', b'b'];
        assert_eq!(names(&mut Reader::new(&mail)).unwrap(), "Permitted:\n  email:a@b");
        let mut both = vec![0x30, 31, 0xa0, 5, 0x30, 3, 0x82, 1, b'a'];
        both.extend([0xa1, 22, 0x30, 10, 0x87, 8, 10, 0, 0, 0, 255, 0, 0, 0]);
        both.extend([0x30, 8, 0x87, 3, 1, 2, 3, 0x80, 1, 0]);
        assert_eq!(
            names(&mut Reader::new(&both)).unwrap(),
            "Permitted:\n  DNS:a\nExcluded:\n  IP:10.0.0.0/255.0.0.0\n  IP:<invalid length=3>/<invalid length=0>"
        );
    }

    #[test]
    fn constraints_of_policies_are_counts() {
        let constraints = [0x30, 8, 0x80, 1, 0, 0x81, 3, 1, 0, 0];
        assert_eq!(
            policies(&mut Reader::new(&constraints)).unwrap(),
            "Require Explicit Policy:0, Inhibit Policy Mapping:65536"
        );
    }
}
