//! Parsing of values from text, with the warnings of Zeek's reader.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::MessageSink;
use crate::support::field::{Field, Kind, Protocol};
use crate::support::text::convert::scan;

/// The text format of values.
#[derive(Clone, Debug)]
pub struct ValueFormat {
    /// Separator between elements of sets and vectors; only its first byte counts.
    pub set_separator: Vec<u8>,
    /// Text of an empty field.
    pub empty_field: Vec<u8>,
    /// Text of an unset field.
    pub unset_field: Vec<u8>,
}

impl Default for ValueFormat {
    fn default() -> Self {
        ValueFormat {
            set_separator: b",".to_vec(),
            empty_field: b"(empty)".to_vec(),
            unset_field: b"-".to_vec(),
        }
    }
}

/// Maximum nesting of types.
const MAX_DEPTH: u32 = 8;

fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

impl ValueFormat {
    /// The value of a column, or `None` after a warning.
    pub(super) fn parse(
        &self,
        text: &[u8],
        name: &str,
        kind: &Kind,
        out: &mut MessageSink,
    ) -> Option<Field<'static>> {
        self.parse_at(text, name, kind, out, 0)
    }

    fn parse_at(
        &self,
        text: &[u8],
        name: &str,
        kind: &Kind,
        out: &mut MessageSink,
        depth: u32,
    ) -> Option<Field<'static>> {
        if !self.unset_field.is_empty() && text == self.unset_field {
            return Some(Field::Unset);
        }
        match kind {
            Kind::String => Some(Field::String(unescaped(text).into())),
            Kind::Enum => Some(Field::Enum(unescaped(text).into())),
            Kind::Bool => match text.trim_ascii() {
                b"T" | b"1" => Some(Field::Bool(true)),
                b"F" | b"0" => Some(Field::Bool(false)),
                _ => {
                    out.warning(format!(
                        "Field: {name} Invalid value for boolean: {}",
                        shown(text)
                    ));
                    None
                }
            },
            Kind::Int => {
                let (negative, magnitude) = integer(text, false, out)?;
                let value = if negative {
                    0_i64.checked_sub_unsigned(magnitude)
                } else {
                    i64::try_from(magnitude).ok()
                };
                if value.is_none() {
                    out_of_range(text, out);
                }
                value.map(Field::Int)
            }
            Kind::Count => integer(text, true, out).map(|(_, value)| Field::Count(value)),
            Kind::Double => double(text, out).map(Field::Double),
            Kind::Time => double(text, out).map(Field::Time),
            Kind::Interval => double(text, out).map(Field::Interval),
            Kind::Port => port(text, out),
            Kind::Subnet => subnet(text, out),
            Kind::Addr => Some(Field::Addr(addr(unescaped(text).trim_ascii(), out))),
            Kind::Pattern => pattern(text, out),
            Kind::Set(element_kind) | Kind::Vector(element_kind) if depth < MAX_DEPTH => {
                let elements = self.elements(text, name, element_kind, out, depth + 1)?;
                Some(if matches!(kind, Kind::Set(_)) {
                    Field::Set(elements)
                } else {
                    Field::Vector(elements)
                })
            }
            Kind::Set(_) | Kind::Vector(_) | Kind::File | Kind::Func => {
                out.warning(format!("unsupported field format {kind} for {name}"));
                None
            }
        }
    }

    fn elements(
        &self,
        text: &[u8],
        name: &str,
        element_kind: &Kind,
        out: &mut MessageSink,
        depth: u32,
    ) -> Option<Vec<Field<'static>>> {
        if text == self.empty_field {
            return Some(Vec::new());
        }
        let separator = self.set_separator.first().copied();
        let mut elements = Vec::new();
        let parts: Vec<&[u8]> = text.split(|byte| Some(*byte) == separator).collect();
        let last = parts.len() - 1;
        for (index, part) in parts.into_iter().enumerate() {
            match self.parse_at(part, name, element_kind, out, depth) {
                Some(element) => elements.push(element),
                None if index == last && part.is_empty() => {
                    out.warning("Error while trying to add empty set element".to_owned());
                    return None;
                }
                None => {
                    out.warning("Error while reading set or vector".to_owned());
                    return None;
                }
            }
        }
        Some(elements)
    }
}

/// Replaces `\xNN` by the byte.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return bytes,
            [b'\\', b'x', high, low, after @ ..]
                if digit(*high).is_some() && digit(*low).is_some() =>
            {
                bytes.extend(digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low));
                after
            }
            [byte, after @ ..] => {
                bytes.push(*byte);
                after
            }
        };
    }
}

fn out_of_range(text: &[u8], out: &mut MessageSink) {
    out.warning(format!("Number '{}' out of supported range.", shown(text)));
}

/// Warns if no number was parsed (`rest` is `None`) or text follows it; returns whether a number was parsed.
fn check(text: &[u8], rest: Option<&[u8]>, out: &mut MessageSink) -> bool {
    match rest {
        None if text.is_empty() => {
            out.warning("Got empty string for number field".to_owned());
            false
        }
        None => {
            out.warning(format!("String '{}' contained no parseable number", shown(text)));
            false
        }
        Some([]) => true,
        Some(rest) => {
            out.warning(format!(
                "Number '{}' contained non-numeric trailing characters. Ignored trailing characters '{}'",
                shown(text),
                shown(rest)
            ));
            true
        }
    }
}

fn integer(text: &[u8], nonnegative: bool, out: &mut MessageSink) -> Option<(bool, u64)> {
    let scanned = scan(text, 10);
    if !check(text, scanned.map(|(_, _, rest)| rest), out) {
        return None;
    }
    let (negative, value, _) = scanned?;
    if nonnegative && negative {
        out.warning(format!("Number '{}' cannot be negative", shown(text)));
        return None;
    }
    if value.is_none() {
        out_of_range(text, out);
    }
    value.map(|value| (negative, value))
}

fn double(text: &[u8], out: &mut MessageSink) -> Option<f64> {
    let scanned = scan_double(text);
    if !check(text, scanned.map(|(_, rest)| rest), out) {
        return None;
    }
    let (value, rest) = scanned?;
    let number = &text[..text.len() - rest.len()];
    let named = number.iter().any(|byte| matches!(byte, b'n' | b'N'));
    if value.is_infinite() && !named {
        out_of_range(text, out);
        return None;
    }
    Some(value)
}

/// A floating-point number and the remaining text.
fn scan_double(text: &[u8]) -> Option<(f64, &[u8])> {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | 0x09..=0x0d)).count();
    let start = &text[blanks..];
    let sign = usize::from(matches!(start.first(), Some(b'+' | b'-')));
    let unsigned = &start[sign..];
    let len = ["infinity", "inf", "nan"]
        .iter()
        .find(|name| {
            unsigned
                .get(..name.len())
                .is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
        })
        .map_or_else(|| decimal_len(unsigned), |name| name.len());
    let number = std::str::from_utf8(&start[..sign + len]).ok()?;
    Some((number.parse().ok()?, &start[sign + len..]))
}

fn decimal_len(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digits(len + 1);
        if whole + fraction == 0 {
            return 0;
        }
        len += 1 + fraction;
    }
    if len > 0 && matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'+' | b'-')));
        if let Some(rest) = text.get(len + 1 + sign..)
            && rest.first().is_some_and(u8::is_ascii_digit)
        {
            len += 1 + sign + digits(len + 1 + sign);
        }
    }
    len
}

fn port(text: &[u8], out: &mut MessageSink) -> Option<Field<'static>> {
    let stripped = text.trim_ascii();
    let slash = stripped.iter().position(|byte| *byte == b'/');
    let mut protocol = Protocol::Unknown;
    if let Some(name) = slash.map(|slash| &stripped[slash + 1..]).filter(|name| !name.is_empty()) {
        match Protocol::parse(&name.to_ascii_lowercase()) {
            Some(parsed) => protocol = parsed,
            None => out.warning(format!(
                "Port '{}' contained unknown protocol '{}'",
                shown(text),
                shown(name)
            )),
        }
    }
    let number = match slash {
        Some(slash @ 1..) => &stripped[..slash],
        _ => text,
    };
    let (_, value) = integer(number, true, out)?;
    Some(Field::Port(u32::try_from(value).unwrap_or(u32::MAX), protocol))
}

fn subnet(text: &[u8], out: &mut MessageSink) -> Option<Field<'static>> {
    let unescaped = unescaped(text);
    let unescaped = unescaped.trim_ascii();
    let Some(slash) = unescaped.iter().position(|byte| *byte == b'/') else {
        out.warning(format!("Invalid value for subnet: {}", shown(text)));
        return None;
    };
    let (negative, width, rest) =
        scan(&unescaped[slash + 1..], 10).unwrap_or((false, Some(0), b""));
    check(text, Some(rest), out);
    let width = width.unwrap_or(u64::MAX);
    let width = (if negative { width.wrapping_neg() } else { width }) as u8;
    Some(Field::Subnet(addr(&unescaped[..slash], out), width))
}

/// An address; all zeros, after a warning, if invalid.
pub(super) fn addr(text: &[u8], out: &mut MessageSink) -> [u8; 16] {
    if text.contains(&b':') {
        let inner =
            text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]")).unwrap_or(text);
        let parsed = std::str::from_utf8(inner).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
        return parsed.map_or_else(
            || {
                out.warning(format!("Bad address: {}", shown(inner)));
                [0; 16]
            },
            |addr| addr.octets(),
        );
    }
    let v4 = inet_aton(text).unwrap_or_else(|| {
        out.warning(format!("Bad address: {}", shown(text)));
        0
    });
    let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
    address[12..].copy_from_slice(&v4.to_be_bytes());
    address
}

/// An IPv4 address of one to four numbers, of which the last fills the remaining bytes, as in `inet_aton(3)`.
fn inet_aton(text: &[u8]) -> Option<u32> {
    if text.first().is_none_or(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    let mut rest = text;
    let mut parts = Vec::new();
    loop {
        let (negative, value, after) = scan(rest, 0)?;
        parts.push(u32::try_from(value?).ok().filter(|_| !negative)?);
        match after {
            [b'.', after @ ..] if parts.len() < 4 => rest = after,
            [] | [b' ' | 0x09..=0x0d, ..] => break,
            _ => return None,
        }
    }
    let (last, leading) = parts.split_last()?;
    let bits = 32 - 8 * leading.len() as u32;
    if leading.iter().any(|part| *part > 255) || u64::from(*last) >= 1 << bits {
        return None;
    }
    let leading = leading.iter().fold(0_u64, |address, part| address << 8 | u64::from(*part));
    Some((leading << bits) as u32 | last)
}

fn pattern(text: &[u8], out: &mut MessageSink) -> Option<Field<'static>> {
    let candidate = unescaped(text);
    if let Some(rest) = candidate.strip_prefix(b"/")
        && let Some(closing) = rest.iter().rposition(|byte| *byte == b'/')
    {
        let flags = &rest[closing + 1..];
        if matches!(flags, b"" | b"i" | b"s" | b"is" | b"si") {
            let body = rest[..closing].to_vec();
            return Some(Field::Pattern(body.into(), flags.contains(&b'i'), flags.contains(&b's')));
        }
    }
    out.warning(format!("String '{}' contained no parseable pattern.", shown(&candidate)));
    None
}
