//! Distinguished names as text (RFC 2253), the last component first.

use super::der::{Der, tag};

/// Short names of attributes by OID.
const ATTRIBUTES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 13], "description"),
    (&[0x55, 4, 17], "postalCode"),
    (&[0x55, 4, 42], "GN"),
    (&[0x55, 4, 43], "initials"),
    (&[0x55, 4, 46], "dnQualifier"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

/// Converts a DER name to text; `None` if it is invalid.
#[must_use]
pub fn text(der: &[u8]) -> Option<String> {
    let mut parts = Der(der).expect_tag(tag::SEQUENCE)?.inside();
    let mut all = Vec::new();
    while let Some(set) = parts.expect_tag(tag::SET) {
        let mut pairs = set.inside();
        let mut one = Vec::new();
        while let Some(pair) = pairs.expect_tag(tag::SEQUENCE) {
            let mut pair = pair.inside();
            let (oid, value) = (pair.expect_tag(tag::OID)?.content, pair.element()?);
            let known = ATTRIBUTES.iter().find(|(known, _)| *known == oid);
            one.push(match known {
                Some((_, name)) => format!("{name}={}", escaped(value.tag, value.content)),
                None => format!("{}={}", dotted(oid), hex(value.whole)),
            });
        }
        all.push(one.join("+"));
    }
    if !parts.0.is_empty() {
        return None;
    }
    all.reverse();
    Some(all.join(","))
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("#{digits}")
}

/// An OID in dotted notation.
pub(super) fn dotted(oid: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in oid {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number - first * 40]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(".")
}

/// A value with special characters escaped.
fn escaped(kind: u8, value: &[u8]) -> String {
    /// Tags of strings: BMPString with 16 bits per character, and UTF8String.
    const BMP: u8 = 0x1e;
    const UTF8: u8 = 0x0c;
    let text = match kind {
        BMP => {
            let units = value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        UTF8 => String::from_utf8_lossy(value).into_owned(),
        _ => value.iter().map(|b| char::from(*b)).collect(),
    };
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (at, c) in text.chars().enumerate() {
        match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => out.extend(['\\', c]),
            ' ' if at == 0 || at == last => out.push_str("\\ "),
            '#' if at == 0 => out.push_str("\\#"),
            c if c.is_ascii_control() || !c.is_ascii() => {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    out.push_str(&format!("\\{byte:02X}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::wrap;
    use super::*;

    #[test]
    fn the_last_component_comes_first() {
        let pair = |oid: &[u8], value: &[u8]| {
            let pair = [wrap(tag::OID, oid), wrap(0x13, value)].concat();
            wrap(tag::SET, &wrap(tag::SEQUENCE, &pair))
        };
        let parts =
            [pair(&[0x55, 4, 6], b"US"), pair(&[0x55, 4, 10], b"A, Inc"), pair(&[0x2a, 3], b"x")];
        let name = wrap(tag::SEQUENCE, &parts.concat());
        assert_eq!(text(&name).as_deref(), Some("1.2.3=#130178,O=A\\, Inc,C=US"));
        assert_eq!(text(&name[..name.len() - 1]), None);
        assert_eq!(escaped(0x0c, " \u{e9}#".as_bytes()), "\\ \\C3\\A9#");
    }
}
