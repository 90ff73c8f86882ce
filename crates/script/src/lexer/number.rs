//! Tokens that begin with a digit, and addresses in brackets.

use super::{LexError, Token, offset_digits};
use crate::literal::{Literal, Port, Protocol, Subnet};

/// Length, token and error, if any.
type Scanned = (usize, Token, Option<LexError>);

/// Zeek's units of intervals, in seconds. A final `s` may follow.
const UNITS: [(&[u8], f64); 6] = [
    (b"day", 86400.0),
    (b"hr", 3600.0),
    (b"min", 60.0),
    (b"sec", 1.0),
    (b"msec", 1e-3),
    (b"usec", 1e-6),
];

/// The longest token at the beginning of `text`, which begins with a digit, or with a point and a digit.
pub(super) fn scan(text: &[u8]) -> Scanned {
    let digits = offset_digits(text);
    let float = float_length(text);
    let host = host(text).unwrap_or(0);
    let quad = quad_length(text);
    if let Some((length, octets)) = quad
        && length >= float
        && length >= host
    {
        return address(text, length, octets);
    }
    if text.starts_with(b"0x") && text.get(2).is_some_and(u8::is_ascii_hexdigit) {
        let length = 2 + text[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if length >= host {
            let value = text[2..length].iter().fold(0_u64, |value, byte| {
                value.checked_mul(16).map_or(u64::MAX, |value| {
                    value.saturating_add(u64::from(super::hex(*byte).unwrap_or(0)))
                })
            });
            return (length, Token::Literal(Literal::Count(value)), None);
        }
    }
    if let Some((length, seconds)) = interval(text, float)
        && length >= host
    {
        return (length, Token::Literal(Literal::Interval(seconds)), None);
    }
    if let Some((length, literal, error)) = port(text, digits)
        && length >= host
    {
        return (length, Token::Literal(literal), error);
    }
    if host > float {
        let name = String::from_utf8_lossy(&text[..host]).into_owned();
        return (host, Token::Bad, Some(host_literal(&name)));
    }
    if float > digits {
        return (float, Token::Literal(Literal::Double(parse_double(&text[..float]))), None);
    }
    (digits, Token::Literal(Literal::Count(parse_count(&text[..digits]))), None)
}

/// The address or subnet in brackets at the beginning of `text`.
pub(super) fn bracketed(text: &[u8]) -> Option<Scanned> {
    let end = text.iter().take(64).position(|byte| *byte == b']')?;
    let inner = std::str::from_utf8(&text[1..end]).ok()?;
    let inner = inner.strip_prefix("0x").unwrap_or(inner);
    if !inner.contains(':')
        || !inner.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
    {
        return None;
    }
    if !inner.contains("::") && inner.matches(':').count() < 6 {
        return None;
    }
    let length = end + 1;
    let Ok(address) = inner.parse::<std::net::Ipv6Addr>() else {
        let error = LexError::Error(format!("failed converting string to IP address: {inner}"));
        return Some((length, Token::Literal(Literal::Addr([0; 16])), Some(error)));
    };
    let octets = address.octets();
    Some(match width(&text[length..]) {
        Some((more, digits)) => subnet(octets, digits, 128, length + more),
        None => (length, Token::Literal(Literal::Addr(octets)), None),
    })
}

/// The error for a host name. Zeek once accepted host names as address literals.
pub(super) fn host_literal(name: &str) -> LexError {
    LexError::Error(format!(
        "DNS lookup of host literal '{name}' is not supported. Replace with blocking_lookup_hostname()."
    ))
}

/// The length of the host name at the beginning of `text`: labels separated by dots, the last one begins with a
/// letter.
pub(super) fn host(text: &[u8]) -> Option<usize> {
    let mut length = label(text)?;
    let mut found = None;
    while text.get(length) == Some(&b'.') {
        let Some(more) = label(&text[length + 1..]) else { break };
        let letter = text[length + 1].is_ascii_alphabetic();
        length += 1 + more;
        if letter {
            found = Some(length);
        }
    }
    found
}

fn label(text: &[u8]) -> Option<usize> {
    let length =
        text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    (length > 0 && text[0] != b'-').then_some(length)
}

/// The length of the number at the beginning of `text`, with an optional fraction and exponent.
fn float_length(text: &[u8]) -> usize {
    let mut length = offset_digits(text);
    if text.get(length) == Some(&b'.') {
        length += 1 + offset_digits(&text[length + 1..]);
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        let exponent = text.get(length + 1 + sign..).map_or(0, offset_digits);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}

/// Length and octets of four numbers separated by dots.
fn quad_length(text: &[u8]) -> Option<(usize, [Option<u8>; 4])> {
    let mut octets = [None; 4];
    let mut position = 0;
    for (index, octet) in octets.iter_mut().enumerate() {
        if index > 0 {
            if text.get(position) != Some(&b'.') {
                return None;
            }
            position += 1;
        }
        let digits = offset_digits(text.get(position..)?);
        if digits == 0 {
            return None;
        }
        *octet = u8::try_from(parse_count(&text[position..position + digits])).ok();
        position += digits;
    }
    Some((position, octets))
}

fn address(text: &[u8], length: usize, octets: [Option<u8>; 4]) -> Scanned {
    let mut address = [0; 16];
    let mut bad = false;
    address[10..12].fill(0xff);
    for (place, octet) in address[12..].iter_mut().zip(octets) {
        bad |= octet.is_none();
        *place = octet.unwrap_or(0);
    }
    if bad {
        let written = String::from_utf8_lossy(&text[..length]).into_owned();
        let error = LexError::Error(format!("Bad IP address: {written}"));
        return (length, Token::Literal(Literal::Addr([0; 16])), Some(error));
    }
    match width(&text[length..]) {
        Some((more, digits)) => subnet(address, digits, 32, length + more),
        None => (length, Token::Literal(Literal::Addr(address)), None),
    }
}

/// Length and value of a `/ N` after an address.
fn width(text: &[u8]) -> Option<(usize, u64)> {
    let blanks = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let before = blanks(text);
    if text.get(before) != Some(&b'/') {
        return None;
    }
    let number = before + 1 + blanks(&text[before + 1..]);
    let digits = offset_digits(&text[number..]);
    (digits > 0).then(|| (number + digits, parse_count(&text[number..number + digits])))
}

fn subnet(address: [u8; 16], width: u64, bits: u8, length: usize) -> Scanned {
    // Zeek stores the prefix length in eight bits.
    let width = width & 0xff;
    let Some(written) = u8::try_from(width).ok().filter(|width| *width <= bits) else {
        let version = if bits == 32 { 4 } else { 6 };
        let error = LexError::Error(format!("Bad IPAddr(v{version}) IPPrefix length : {width}"));
        let stand_in = Subnet { prefix: [0; 16], width: 0 };
        return (length, Token::Literal(Literal::Subnet(stand_in)), Some(error));
    };
    let width = written + (128 - bits);
    let mask = if width == 0 { 0 } else { u128::MAX << (128 - width) };
    let prefix = (u128::from_be_bytes(address) & mask).to_be_bytes();
    (length, Token::Literal(Literal::Subnet(Subnet { prefix, width })), None)
}

fn interval(text: &[u8], number: usize) -> Option<(usize, f64)> {
    let blanks = text[number..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let unit = &text[number + blanks..];
    let (name, seconds) = UNITS.iter().find(|(name, _)| unit.starts_with(name))?;
    let plural = usize::from(unit.get(name.len()) == Some(&b's'));
    Some((number + blanks + name.len() + plural, parse_double(&text[..number]) * seconds))
}

fn port(text: &[u8], digits: usize) -> Option<(usize, Literal, Option<LexError>)> {
    let rest = text[digits..].strip_prefix(b"/")?;
    let (name, protocol) = [
        (&b"tcp"[..], Protocol::Tcp),
        (b"udp", Protocol::Udp),
        (b"icmp", Protocol::Icmp),
        (b"unknown", Protocol::Unknown),
    ]
    .into_iter()
    .find(|(name, _)| rest.starts_with(name))?;
    let length = digits + 1 + name.len();
    let most = if matches!(protocol, Protocol::Icmp | Protocol::Unknown) { 255 } else { 65535 };
    let number = u16::try_from(parse_count(&text[..digits])).ok().filter(|number| *number <= most);
    let error = number.is_none().then(|| {
        let written = String::from_utf8_lossy(&text[..length]).into_owned();
        LexError::Error(format!("bad port number - {written}"))
    });
    Some((length, Literal::Port(Port { number: number.unwrap_or(0), protocol }), error))
}

fn parse_count(digits: &[u8]) -> u64 {
    digits.iter().fold(0_u64, |value, byte| {
        value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(byte - b'0')))
            .unwrap_or(u64::MAX)
    })
}

fn parse_double(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}
