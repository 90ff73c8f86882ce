//! Search filters as text (RFC 4511 section 4.5.1.7, RFC 4515).
//!
//! As in Zeek and Wireshark, more than two conditions under one *and* or *or* are written as nested pairs:
//! `(&(&(a)(b))(c))`. Binary values of some attributes of Active Directory are written in
//! their usual notation.

use super::ber::Malformed;
use super::ber::ascii;
use super::ber::value;
use crate::support::Bytes;

const TRUNCATED: Malformed = "truncated filter";

/// Maximum nesting depth of filters.
const MAX_DEPTH: u8 = 20;

/// Parses a filter and appends its text.
///
/// # Errors
/// If it is truncated, unknown, or nested too deeply.
pub fn write(b: &mut Bytes<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    nested(b, out, 0)
}

fn nested(b: &mut Bytes<'_>, out: &mut Vec<u8>, depth: u8) -> Result<(), Malformed> {
    if depth > MAX_DEPTH {
        return Err("filter nested too deeply");
    }
    let filter = value(b)?;
    if filter.class == 0 {
        return Err("expected a filter");
    }
    let mut inner = Bytes(filter.content);
    match filter.number {
        0 => list(inner, out, b'&', depth)?,
        1 => list(inner, out, b'|', depth)?,
        2 => {
            out.extend_from_slice(b"(!");
            nested(&mut inner, out, depth + 1)?;
            out.push(b')');
        }
        3 => assertion(inner, out, b"=")?,
        4 => substrings(inner, out)?,
        5 => assertion(inner, out, b">=")?,
        6 => assertion(inner, out, b"<=")?,
        7 => {
            out.push(b'(');
            out.extend_from_slice(&ascii(filter.content));
            out.extend_from_slice(b"=*)");
        }
        8 => assertion(inner, out, b"~=")?,
        9 => extensible(inner, out)?,
        _ => return Err("unknown filter"),
    }
    Ok(())
}

fn list(mut b: Bytes<'_>, out: &mut Vec<u8>, sign: u8, depth: u8) -> Result<(), Malformed> {
    // The number of conditions is known only at the end: each one after the first adds an opening
    // parenthesis before all of them.
    let mut text = Vec::new();
    let mut count = 0_usize;
    while !b.is_empty() {
        nested(&mut b, &mut text, depth + 1)?;
        if count > 0 {
            text.push(b')');
        }
        count += 1;
    }
    if count == 1 {
        text.push(b')');
    }
    for _ in 0..count.saturating_sub(1).max(usize::from(count == 1)) {
        out.extend_from_slice(&[b'(', sign]);
    }
    out.append(&mut text);
    Ok(())
}

/// Reads a field of a condition: any tag, one byte of length, and the content. As in Zeek, longer forms of length are not
/// supported: their first byte is used as the length.
fn field<'a>(b: &mut Bytes<'a>) -> Result<&'a [u8], Malformed> {
    let [_, length] = b.array().ok_or(TRUNCATED)?;
    b.take(length.into()).ok_or(TRUNCATED)
}

/// Writes `(attribute=value)`.
fn assertion(mut b: Bytes<'_>, out: &mut Vec<u8>, sign: &[u8]) -> Result<(), Malformed> {
    let attribute = field(&mut b)?;
    let value = field(&mut b)?;
    out.push(b'(');
    out.extend_from_slice(attribute);
    out.extend_from_slice(sign);
    write_value(attribute, value, out);
    out.push(b')');
    Ok(())
}

/// Writes a value in the notation of its attribute.
fn write_value(attribute: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match attribute {
        b"DomainGuid" => write_guid(value, out),
        b"objectSid" | b"AAC" => write_octets(value, out),
        b"DomainSid" => write_sid(value, out),
        b"NtVer" => match value.try_into() {
            Ok(n) => out.extend(format!("0x{:08x}", u32::from_le_bytes(n)).bytes()),
            Err(_) => out.extend_from_slice(b"HEX_FORMAT_FAILED"),
        },
        _ => write_escaped(value, out),
    }
}

/// Writes `(attribute=first*any*last)`.
fn substrings(mut b: Bytes<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let attribute = field(&mut b)?;
    let mut parts = Bytes(value(&mut b)?.content);
    let (mut first, mut any, mut last) = (Vec::new(), Vec::new(), Vec::new());
    while !parts.is_empty() {
        let part = value(&mut parts)?;
        match part.number {
            _ if part.class == 0 => return Err("expected a substring"),
            0 => first = part.content.to_vec(),
            1 => {
                write_escaped(part.content, &mut any);
                any.push(b'*');
            }
            2 => last = part.content.to_vec(),
            _ => return Err("unknown part of a string"),
        }
    }
    out.push(b'(');
    out.extend_from_slice(attribute);
    out.push(b'=');
    write_escaped(&first, out);
    out.push(b'*');
    out.append(&mut any);
    write_escaped(&last, out);
    out.push(b')');
    Ok(())
}

/// Writes `(attribute:rule:=value)`. As in Zeek, the three fields are identified by position, as if none were
/// missing.
fn extensible(mut b: Bytes<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let rule = field(&mut b)?;
    let attribute = field(&mut b)?;
    let value = field(&mut b)?;
    out.push(b'(');
    write_value(rule, attribute, out);
    out.push(b':');
    out.extend_from_slice(rule);
    out.extend_from_slice(b":=");
    for &b in value {
        match b {
            b' '..=b'~' => out.push(b),
            _ => out.extend(format!("\\x{b:02x}").bytes()),
        }
    }
    out.push(b')');
    Ok(())
}

/// Writes a value; special characters of filters become two hexadecimal digits after a backslash.
fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        if matches!(b, 0 | 27 | b'(' | b')' | b'*') {
            out.extend(format!("\\{b:02x}").bytes());
        } else {
            out.push(b);
        }
    }
}

/// Writes octets in hexadecimal notation with colons.
fn write_octets(bytes: &[u8], out: &mut Vec<u8>) {
    let digits: Vec<_> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    out.extend(digits.join(":").bytes());
}

/// Writes a GUID (MS-DTYP section 2.3.4), whose first three fields are little-endian.
fn write_guid(bytes: &[u8], out: &mut Vec<u8>) {
    let Ok(b) = <[u8; 16]>::try_from(bytes) else {
        out.extend_from_slice(b"GUID_FORMAT_FAILED");
        return;
    };
    for (i, at) in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend(format!("{:02x}", b[at]).bytes());
    }
}

/// Writes a SID with four subauthorities (MS-DTYP section 2.4.2), the form of domain SIDs.
fn write_sid(bytes: &[u8], out: &mut Vec<u8>) {
    let Ok(b) = <[u8; 24]>::try_from(bytes) else {
        out.extend_from_slice(b"SID_FORMAT_FAILED");
        return;
    };
    let authority = b[2..8].iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
    let mut text = format!("S-{}-{authority}", b[0]);
    for part in b[8..].chunks_exact(4) {
        let n = part.iter().rev().fold(0_u32, |n, b| n << 8 | u32::from(*b));
        text += &format!("-{n}");
    }
    out.extend(text.bytes());
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::tlv;
    use super::*;

    fn text(filter: &[u8]) -> Result<String, Malformed> {
        let mut out = Vec::new();
        write(&mut Bytes(filter), &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    /// A value with a length of one byte.
    fn short(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, content.len() as u8], content].concat()
    }

    fn is(tag: u8, attribute: &[u8], value: &[u8]) -> Vec<u8> {
        tlv(tag, &[short(4, attribute), short(4, value)].concat())
    }

    #[test]
    fn conditions() {
        let t = |f: &[u8]| text(f).unwrap();
        assert_eq!(t(&is(0xa3, b"cn", b"Babs (B*)")), "(cn=Babs \\28B\\2a\\29)");
        assert_eq!(t(&is(0xa5, b"n", b"5")), "(n>=5)");
        assert_eq!(t(&is(0xa6, b"n", b"5")), "(n<=5)");
        assert_eq!(t(&is(0xa8, b"cn", "ü".as_bytes())), "(cn~=ü)");
        assert_eq!(t(&tlv(0x87, b"objectClass")), "(objectClass=*)");
        let parts = [tlv(0x80, b"a"), tlv(0x81, b"b"), tlv(0x81, b"c"), tlv(0x82, b"d")];
        let substrings =
            |p: &[Vec<u8>]| tlv(0xa4, &[short(4, b"cn"), tlv(0x30, &p.concat())].concat());
        assert_eq!(t(&substrings(&parts)), "(cn=a*b*c*d)");
        assert_eq!(t(&substrings(&parts[3..])), "(cn=*d)");
        assert!(text(&substrings(&[tlv(0x83, b"x")])).is_err());
    }

    #[test]
    fn extensible_conditions_are_parsed_by_position() {
        let t = |fields: &[Vec<u8>]| text(&tlv(0xa9, &fields.concat()));
        let named = |text: &str| Ok(text.to_owned());
        let rule =
            [short(0x81, b"1.2.840.113556.1.4.803"), short(0x82, b"flags"), short(0x83, b"2")];
        assert_eq!(t(&rule), named("(flags:1.2.840.113556.1.4.803:=2)"));
        let all = [&rule[..], &[short(0x84, b"\xff")]].concat();
        assert_eq!(t(&all), named("(flags:1.2.840.113556.1.4.803:=2)"));
        assert_eq!(t(&all[1..]), named("(2:flags:=\\xff)"));
        assert_eq!(t(&rule[1..]), Err(TRUNCATED));
    }

    #[test]
    fn lengths_of_fields_have_one_byte() {
        let long = [&b"\x04\x81\x80"[..], &[b'x'; 128]].concat();
        let all = tlv(0xa3, &[short(4, b"cn"), long].concat());
        assert_eq!(text(&all), Ok(format!("(cn=\u{fffd}{})", "x".repeat(128))));
        let longer = [&b"\x04\x84\0\0\0\x02"[..], b"xy"].concat();
        assert_eq!(text(&tlv(0xa3, &[short(4, b"cn"), longer].concat())), Err(TRUNCATED));
    }

    #[test]
    fn lists_in_pairs() {
        let t = |tag: u8, n: usize| {
            let all: Vec<_> = (0..n).map(|i| tlv(0x87, &[b'a' + i as u8])).collect();
            text(&tlv(tag, &all.concat())).unwrap()
        };
        assert_eq!(t(0xa0, 0), "");
        assert_eq!(t(0xa0, 1), "(&(a=*))");
        assert_eq!(t(0xa1, 2), "(|(a=*)(b=*))");
        assert_eq!(t(0xa0, 4), "(&(&(&(a=*)(b=*))(c=*))(d=*))");
        let not = tlv(0xa2, &tlv(0x87, b"a"));
        assert_eq!(text(&not).unwrap(), "(!(a=*))");
    }

    #[test]
    fn binary_values_of_active_directory() {
        let t = |a: &[u8], v: &[u8]| text(&is(0xa3, a, v)).unwrap();
        assert_eq!(t(b"NtVer", b"\x06\0\0\x20"), "(NtVer=0x20000006)");
        assert_eq!(t(b"NtVer", b"\x06"), "(NtVer=HEX_FORMAT_FAILED)");
        assert_eq!(t(b"AAC", b"\x80\x01"), "(AAC=80:01)");
        let write_guid: Vec<u8> = (0..16).collect();
        assert_eq!(
            t(b"DomainGuid", &write_guid),
            "(DomainGuid=03020100-0504-0706-0809-0a0b0c0d0e0f)"
        );
        let write_sid = b"\x01\x04\0\0\0\0\0\x05\x15\0\0\0\x0a\0\0\0\x0b\0\0\0\x0c\0\0\0";
        assert_eq!(t(b"DomainSid", write_sid), "(DomainSid=S-1-5-21-10-11-12)");
        assert_eq!(t(b"DomainSid", b""), "(DomainSid=SID_FORMAT_FAILED)");
    }

    #[test]
    fn depth_is_limited() {
        let deep = |n: usize| (0..n).fold(tlv(0x87, b"a"), |inner, _| tlv(0xa2, &inner));
        assert!(text(&deep(20)).is_ok());
        assert!(text(&deep(21)).is_err());
        assert!(text(&tlv(4, b"a")).is_err());
        assert!(text(&tlv(0xaa, b"")).is_err());
        assert!(text(&tlv(0xa3, b"\x04\x01a")).is_err());
    }
}
