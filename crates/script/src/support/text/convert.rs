//! Parsing of values from text: numbers, addresses, subnets, ports.
//!
//! ```
//! use gannet_script::support::text::convert;
//!
//! assert_eq!(convert::int(b" -42 ", 10), Some(-42));
//! assert_eq!(convert::count(b"0xff", 16), Some(255));
//! assert_eq!(convert::double(b"1e3"), Some(1000.0));
//! assert_eq!(convert::subnet(b"10.0.0.0/8").map(|(_, width)| width), Some(8));
//! assert_eq!(convert::port(b"80/tcp"), Some((80, convert::Transport::Tcp)));
//! ```

use std::net::Ipv6Addr;

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `tcp`
    Tcp,
    /// `udp`
    Udp,
    /// `icmp`
    Icmp,
}

impl From<Transport> for crate::literal::Protocol {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Tcp => Self::Tcp,
            Transport::Udp => Self::Udp,
            Transport::Icmp => Self::Icmp,
        }
    }
}

/// The nearest integer, ties to even; `i64::MIN` if out of range, like the conversion instruction of x86.
///
/// ```
/// use gannet_script::support::text::convert::rounded;
///
/// assert_eq!((rounded(2.5), rounded(-3.7)), (2, -4));
/// assert_eq!((rounded(1e30), rounded(f64::NAN)), (i64::MIN, i64::MIN));
/// ```
#[must_use]
pub fn rounded(number: f64) -> i64 {
    let whole = number.round_ties_even();
    // Both bounds are powers of two and so exact.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole);
    if fits { whole as i64 } else { i64::MIN }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    &text[blanks..]
}

/// Sign, magnitude (`None` beyond 64 bits) and remaining text of a number, parsed like C's `strtoll`; `None`
/// without digits.
pub(crate) fn scan(text: &[u8], base: u64) -> Option<(bool, Option<u64>, &[u8])> {
    let mut rest = skip_blanks(text);
    let negative = rest.first() == Some(&b'-');
    if let [b'-' | b'+', after @ ..] = rest {
        rest = after;
    }
    let base = u32::try_from(base).ok().filter(|base| *base == 0 || (2..=36).contains(base))?;
    let is_hex = matches!(rest, [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
    let base = match base {
        0 | 16 if is_hex => {
            rest = &rest[2..];
            16
        }
        0 if rest.first() == Some(&b'0') => 8,
        0 => 10,
        base => base,
    };
    let mut value = Some(0_u64);
    let mut digits = 0;
    while let Some(digit) = rest.get(digits).and_then(|byte| char::from(*byte).to_digit(base)) {
        value = value.and_then(|v| v.checked_mul(u64::from(base))?.checked_add(u64::from(digit)));
        digits += 1;
    }
    (digits > 0).then(|| (negative, value, &rest[digits..]))
}

/// `to_int`: a number with optional surrounding blanks, saturated to 64 bits. Blanks alone are 0; empty text is
/// an error ("bad conversion to integer").
#[must_use]
pub fn int(text: &[u8], base: u64) -> Option<i64> {
    let text = until_nul(text);
    let (negative, value, rest) = scan(text, base).unwrap_or((false, Some(0), text));
    let value = match (negative, value) {
        (false, value) => value.and_then(|v| i64::try_from(v).ok()).unwrap_or(i64::MAX),
        (true, Some(v)) if v <= 1 << 63 => (v as i64).wrapping_neg(),
        (true, _) => i64::MIN,
    };
    (!text.is_empty() && rest.iter().all(|byte| is_blank(*byte))).then_some(value)
}

/// `to_count`: like [`int`], unsigned; a negative number wraps ("bad conversion to count").
#[must_use]
pub fn count(text: &[u8], base: u64) -> Option<u64> {
    let text = until_nul(text);
    let (negative, value, rest) = scan(text, base).unwrap_or((false, Some(0), text));
    let value = match (negative, value) {
        (_, None) => u64::MAX,
        (true, Some(v)) => v.wrapping_neg(),
        (false, Some(v)) => v,
    };
    (!text.is_empty() && rest.iter().all(|byte| is_blank(*byte))).then_some(value)
}

/// `to_double`: a number without following text, also hexadecimal, infinite or NaN ("bad conversion to
/// double").
#[must_use]
pub fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(skip_blanks(until_nul(text))).ok()?;
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => (-1.0, plain),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if plain.starts_with(['+', '-']) {
        return None;
    }
    match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hex) => hex_double(hex).map(|value| sign * value),
        None => plain.parse::<f64>().ok().map(|value| sign * value),
    }
}

fn hex_double(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.find(['p', 'P']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * 2_f64.powi(exponent.saturating_sub(4 * fraction.len() as i32)))
}

/// An address as sixteen bytes, IPv4 mapped; leading zeros are allowed in IPv4 ("failed converting string to IP
/// address").
#[must_use]
pub fn addr(text: &[u8]) -> Option<[u8; 16]> {
    if text.contains(&b':') {
        return std::str::from_utf8(text).ok()?.parse::<Ipv6Addr>().ok().map(|addr| addr.octets());
    }
    let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
    let mut rest = text;
    for at in 0..4 {
        if at > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (negative, value, after) = scan(rest, 10)?;
        let value = u8::try_from(value?).ok()?;
        if negative && value > 0 {
            return None;
        }
        address[12 + at] = value;
        rest = after;
    }
    rest.is_empty().then_some(address)
}

/// A subnet: the address without its host bits, and the prefix length as printed, at most 32 for IPv4 ("failed
/// converting string to IP prefix").
#[must_use]
pub fn subnet(text: &[u8]) -> Option<([u8; 16], u8)> {
    let (prefix, bits) = prefix(text)?;
    let is_v4 = prefix.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
    Some((prefix, if is_v4 && bits >= 96 { bits - 96 } else { bits }))
}

/// Like [`subnet`], with the prefix length relative to 128 bits for all addresses.
#[must_use]
pub fn prefix(text: &[u8]) -> Option<([u8; 16], u8)> {
    let slash = text.iter().position(|byte| *byte == b'/')?;
    let (address, width) = (addr(&text[..slash])?, &text[slash + 1..]);
    let width = match scan(width, 10) {
        None => 0,
        Some((true, Some(1..), _)) => return None,
        Some((_, value, _)) => u8::try_from(value?).ok()?,
    };
    // The prefix length after an address in IPv6 notation is relative to 128 bits.
    let v4 = !text.contains(&b':');
    if width > if v4 { 32 } else { 128 } {
        return None;
    }
    let bits = if v4 { u32::from(width) + 96 } else { u32::from(width) };
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    Some(((u128::from_be_bytes(address) & mask).to_be_bytes(), bits as u8))
}

/// `to_port`: the number, which may exceed the range of ports, and the protocol.
#[must_use]
pub fn port(text: &[u8]) -> Option<(i64, Transport)> {
    if text.is_empty() || text.len() >= 10 {
        return None;
    }
    let text = until_nul(text);
    let (negative, value, rest) = scan(text, 10).unwrap_or((false, Some(0), text));
    let value = i64::try_from(value?).ok()?;
    let transport = match rest.get(1..)? {
        b"tcp" => Transport::Tcp,
        b"udp" => Transport::Udp,
        b"icmp" => Transport::Icmp,
        _ => return None,
    };
    Some((if negative { -value } else { value }, transport))
}

/// `bytestring_to_count`: up to eight bytes ("unsupported byte length for bytestring_to_count"). Lengths that
/// are not a power of two are accepted, too.
#[must_use]
pub fn bytes_to_count(bytes: &[u8], little_endian: bool) -> Option<u64> {
    if bytes.len() > 8 {
        return None;
    }
    let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    Some(if little_endian { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
}

/// `ptr_name_to_addr`: the address for a name under `in-addr.arpa` or `ip6.arpa` ("bad PTR name").
#[must_use]
pub fn ptr_name(name: &[u8]) -> Option<[u8; 16]> {
    let name = until_nul(name);
    let mut labels = name.split(|byte| *byte == b'.');
    if name.len() == 72 {
        let mut value = 0_u128;
        for at in 0..32 {
            let [digit] = labels.next()? else { return None };
            value |= u128::from(char::from(*digit).to_digit(16)?) << (4 * at);
        }
        return (labels.next() == Some(b"ip6") && labels.next() == Some(b"arpa"))
            .then(|| value.to_be_bytes());
    }
    let mut address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];
    for at in (12..16).rev() {
        address[at] = int(labels.next()?, 10)? as u8;
    }
    (labels.next() == Some(b"in-addr") && labels.next()?.starts_with(b"arpa")).then_some(address)
}

/// `addr_to_ptr_name`.
#[must_use]
pub fn to_ptr_name(address: [u8; 16]) -> String {
    if address.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) {
        let [.., a, b, c, d] = address;
        return format!("{d}.{c}.{b}.{a}.in-addr.arpa");
    }
    let mut name = String::with_capacity(72);
    for byte in address.iter().rev() {
        name.push_str(&format!("{:x}.{:x}.", byte & 15, byte >> 4));
    }
    name + "ip6.arpa"
}

/// The host and port of an FTP `PORT` argument: `10,0,0,1,4,31`.
#[must_use]
pub fn ftp_port(text: &[u8]) -> Option<([u8; 4], u16)> {
    if text.len() < 11 {
        return None;
    }
    let mut rest = until_nul(text);
    let mut numbers = [0_u8; 6];
    for (index, number) in numbers.iter_mut().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b",")?;
        }
        let (negative, value, after) = scan(rest, 10)?;
        *number = u8::try_from(value?).ok().filter(|value| !negative || *value == 0)?;
        rest = after;
    }
    let [a, b, c, d, high, low] = numbers;
    Some(([a, b, c, d], u16::from_be_bytes([high, low])))
}

/// The host and port in the reply to `PASV`: after a parenthesis, after `PORT`, or the first comma-separated
/// numbers.
#[must_use]
pub fn ftp_pasv(reply: &[u8]) -> Option<([u8; 4], u16)> {
    let reply = until_nul(reply);
    if let Some(open) = reply.iter().position(|byte| *byte == b'(') {
        return ftp_port(&reply[open + 1..]);
    }
    if let Some(at) = super::find(reply, b"PORT") {
        return ftp_port(reply.get(at + 5..)?);
    }
    let comma = reply.iter().position(|byte| *byte == b',')?;
    let digits = reply[..comma].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    ftp_port(&reply[comma - digits..])
}

/// The host and port of `EPRT`: `|1|10.0.0.1|1055|`. Returns the parsed values, and whether all
/// were valid.
#[must_use]
pub fn ftp_eprt(text: &[u8]) -> ([u8; 16], u16, bool) {
    let text = skip_blanks(until_nul(text));
    let Some((delimiter, rest)) = text.split_first() else { return ([0; 16], 0, false) };
    let (_, _, after) = scan(rest, 10).unwrap_or((false, None, rest));
    let mut good = after.first() == Some(delimiter);
    let mut rest = after.get(1..).unwrap_or_default();
    let mut address = [0; 16];
    if !rest.is_empty() && rest.first() != Some(delimiter) {
        let len = rest.iter().position(|byte| byte == delimiter).unwrap_or(rest.len());
        let parsed = addr(&rest[..len]);
        good = parsed.is_some();
        address = parsed.unwrap_or_default();
    }
    let mut port = 0;
    if let Some(at) = rest.iter().position(|byte| byte == delimiter) {
        rest = &rest[at + 1..];
        let (negative, value, after) = scan(rest, 10).unwrap_or((false, Some(0), rest));
        good &= after.first() == Some(delimiter);
        match value.and_then(|value| u16::try_from(value).ok()) {
            Some(value) if !negative || value == 0 => port = value,
            _ => good = false,
        }
    }
    (address, port, good)
}
