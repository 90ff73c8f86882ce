//! DNS messages (RFC 1035).

use std::net::IpAddr;

/// Type of IPv4 addresses.
pub const A: u16 = 1;
/// Type of canonical names.
pub const CNAME: u16 = 5;
/// Type of IPv6 addresses (RFC 3596).
pub const AAAA: u16 = 28;

/// Response code: no error.
pub const NOERROR: u8 = 0;
/// Response code: the name does not exist.
pub const NXDOMAIN: u8 = 3;

/// The data of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// An address: A or AAAA.
    Address(IpAddr),
    /// The canonical name of the question's name.
    Alias(&'a str),
}

/// Encodes a name without compression; labels are truncated to 63 bytes.
pub fn name(text: &str) -> Vec<u8> {
    let mut b = Vec::with_capacity(text.len() + 2);
    for label in text.split('.').filter(|l| !l.is_empty()) {
        let label = label.as_bytes();
        let label = label.get(..63).unwrap_or(label);
        b.push(label.len() as u8);
        b.extend_from_slice(label);
    }
    b.push(0);
    b
}

/// A recursive query of class IN.
pub fn query(id: u16, question: &str, kind: u16) -> Vec<u8> {
    message(id, 0x0100, question, kind, 0)
}

/// The answer of a recursive server: `answers` are data and times to live in seconds. Answers after
/// an alias have the canonical name as their owner.
pub fn response(
    id: u16,
    question: &str,
    kind: u16,
    code: u8,
    answers: &[(Data<'_>, u32)],
) -> Vec<u8> {
    let mut b = message(id, 0x8180 | u16::from(code & 15), question, kind, answers.len() as u16);
    // The question's name is at byte 12: owner names point to it until there is an alias.
    let mut owner: u16 = 0xc000 | 12;
    for (data, ttl) in answers {
        let (kind, bytes) = match data {
            Data::Address(IpAddr::V4(a)) => (A, a.octets().to_vec()),
            Data::Address(IpAddr::V6(a)) => (AAAA, a.octets().to_vec()),
            Data::Alias(text) => (CNAME, name(text)),
        };
        b.extend_from_slice(&owner.to_be_bytes());
        b.extend_from_slice(&kind.to_be_bytes());
        b.extend_from_slice(&1_u16.to_be_bytes());
        b.extend_from_slice(&ttl.to_be_bytes());
        b.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        if kind == CNAME {
            owner = 0xc000 | b.len() as u16;
        }
        b.extend_from_slice(&bytes);
    }
    b
}

fn message(id: u16, flags: u16, question: &str, kind: u16, answers: u16) -> Vec<u8> {
    let mut b = Vec::new();
    for word in [id, flags, 1, answers, 0, 0] {
        b.extend_from_slice(&word.to_be_bytes());
    }
    b.extend_from_slice(&name(question));
    b.extend_from_slice(&kind.to_be_bytes());
    b.extend_from_slice(&1_u16.to_be_bytes());
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_byte_by_byte() {
        let expected =
            b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x02bc\x00\x00\x1c\x00\x01";
        assert_eq!(query(7, "a.bc", AAAA), expected);
    }

    #[test]
    fn answers_point_to_their_names() {
        let address = "192.0.2.1".parse().unwrap();
        let b =
            response(7, "a.b", A, NOERROR, &[(Data::Alias("c"), 60), (Data::Address(address), 61)]);
        let tail = b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x03\x01c\x00\
                     \xc0\x21\x00\x01\x00\x01\x00\x00\x00\x3d\x00\x04\xc0\x00\x02\x01";
        assert_eq!(b[2..4], [0x81, 0x80]);
        assert_eq!(b[21..], tail[..]);
        assert_eq!(b[0x21..0x24], *b"\x01c\x00");
    }
}
