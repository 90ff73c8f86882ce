//! DNS messages in a form that can be compared: names in lower case and without compression,
//! records as sets.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use crate::message::HEADER;

/// The maximum length of a name in bytes (RFC 1035 §3.1).
const MAX_NAME: usize = 255;
const OPT: u16 = 41;
const TSIG: u16 = 250;

/// The parsed fields of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    /// The second word of the header, without the response code.
    pub(super) flags: u16,
    /// Response code, with its upper bits from the OPT record (RFC 6891 §6.1.3).
    pub(super) rcode: u16,
    /// Names, types and classes of the question section.
    pub(super) questions: BTreeSet<Record>,
    /// Answer, authority and additional records, without OPT and TSIG.
    pub(super) sections: [BTreeSet<Record>; 3],
    /// Version and flags of EDNS; `None` without an OPT record.
    pub(super) edns: Option<(u8, u16)>,
    /// Whether the message is complete and has no bytes after its records.
    pub(super) is_complete: bool,
}

/// A record, or a question without data and time to live.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    name: Box<[u8]>,
    kind: u16,
    class: u16,
    data: Box<[u8]>,
    /// Time to live in seconds, if it is compared.
    ttl: Option<u32>,
}

impl Parsed {
    /// Parses a message up to the first error; times to live only if `with_ttl` is set.
    pub(super) fn of(message: &[u8], with_ttl: bool) -> Self {
        let mut parsed = Self::default();
        parsed.is_complete = parsed.read(message, with_ttl) == Some(message.len());
        parsed
    }

    /// The offset after the last record; `None` if the message is malformed.
    fn read(&mut self, message: &[u8], with_ttl: bool) -> Option<usize> {
        let flags = word(message, 2)?;
        self.flags = flags & 0xfff0;
        self.rcode = flags & 15;
        let mut at = HEADER;
        message.get(..HEADER)?;
        for _ in 0..word(message, 4)? {
            let mut name = Vec::new();
            at = read_name(message, at, &mut name)?;
            let (kind, class) = (word(message, at)?, word(message, at + 2)?);
            at += 4;
            let (name, data) = (name.into(), Box::default());
            self.questions.insert(Record { name, kind, class, data, ttl: None });
        }
        for (section, count) in [6, 8, 10].into_iter().enumerate() {
            for _ in 0..word(message, count)? {
                let mut name = Vec::new();
                at = read_name(message, at, &mut name)?;
                let (kind, class) = (word(message, at)?, word(message, at + 2)?);
                let (high, low) = (word(message, at + 4)?, word(message, at + 6)?);
                let start = at + 10;
                let end = start + usize::from(word(message, at + 8)?);
                message.get(start..end)?;
                at = end;
                if kind == OPT {
                    self.rcode |= high >> 8 << 4;
                    self.edns = Some(((high & 0xff) as u8, low));
                    continue;
                }
                if kind == TSIG {
                    // The time and the MAC of a TSIG record differ in each answer.
                    continue;
                }
                let data = canonical(kind, message, start, end).into();
                let ttl = with_ttl.then_some(u32::from(high) << 16 | u32::from(low));
                let record = Record { name: name.into(), kind, class, data, ttl };
                self.sections[section].insert(record);
            }
        }
        Some(at)
    }
}

impl Record {
    /// The record as a line of a zone file (RFC 1035 §5.1; RFC 3597 §5 for data of any type).
    pub(super) fn text(&self) -> String {
        let mut out = name_text(&self.name);
        // Writing to a string cannot fail.
        self.write(&mut out).unwrap_or_default();
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(ttl) = self.ttl {
            write!(out, " {ttl}")?;
        }
        if self.class != 1 {
            write!(out, " CLASS{}", self.class)?;
        }
        match crate::text::kind_name(self.kind) {
            Some(name) => write!(out, " {name}")?,
            None => write!(out, " TYPE{}", self.kind)?,
        }
        if self.data.is_empty() {
            return Ok(());
        }
        if let (1, Ok(a)) = (self.kind, <[u8; 4]>::try_from(&*self.data)) {
            return write!(out, " {}", Ipv4Addr::from(a));
        }
        if let (28, Ok(a)) = (self.kind, <[u8; 16]>::try_from(&*self.data)) {
            return write!(out, " {}", Ipv6Addr::from(a));
        }
        if let Some((0, 1, 0)) = names_in(self.kind) {
            return write!(out, " {}", name_text(&self.data));
        }
        write!(out, " \\# {} ", self.data.len())?;
        self.data.iter().try_for_each(|b| write!(out, "{b:02x}"))
    }
}

fn word(message: &[u8], at: usize) -> Option<u16> {
    message.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

/// Reads a name, follows its pointers (RFC 1035 §4.1.4) and appends it in lower case to `out`;
/// returns the offset after it.
fn read_name(message: &[u8], start: usize, out: &mut Vec<u8>) -> Option<usize> {
    let before = out.len();
    let (mut at, mut after) = (start, None);
    // Only pointers to lower offsets are followed, so the loop ends.
    let mut lowest = start;
    loop {
        let len = usize::from(*message.get(at)?);
        match len {
            0 => {
                out.push(0);
                return Some(after.unwrap_or(at + 1));
            }
            1..=63 => {
                let label = message.get(at..=at + len)?;
                out.push(label[0]);
                out.extend(label[1..].iter().map(u8::to_ascii_lowercase));
                at += 1 + len;
            }
            0xc0.. => {
                after = after.or(Some(at + 2));
                at = usize::from(word(message, at)? & 0x3fff);
                if at >= lowest {
                    return None;
                }
                lowest = at;
            }
            _ => return None,
        }
        if out.len() - before >= MAX_NAME {
            return None;
        }
    }
}

/// The layout of the data of a type whose names may be compressed (RFC 3597 §4): number of bytes
/// before the names, number of names, minimum number of bytes after them.
fn names_in(kind: u16) -> Option<(usize, usize, usize)> {
    match kind {
        // NS, MD, MF, CNAME, MB, MG, MR, PTR, DNAME.
        2 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 39 => Some((0, 1, 0)),
        // SOA; MINFO and RP; MX, AFSDB, RT and KX; SRV.
        6 => Some((0, 2, 20)),
        14 | 17 => Some((0, 2, 0)),
        15 | 18 | 21 | 36 => Some((2, 1, 0)),
        33 => Some((6, 1, 0)),
        _ => None,
    }
}

/// The data of a record, with names expanded; unchanged if it does not match its type.
fn canonical(kind: u16, message: &[u8], start: usize, end: usize) -> Vec<u8> {
    let written = || {
        let (before, names, after) = names_in(kind)?;
        let mut out = message.get(start..start + before)?.to_vec();
        let mut at = start + before;
        for _ in 0..names {
            at = read_name(message, at, &mut out)?;
        }
        let rest = message.get(at..end).filter(|rest| rest.len() == after)?;
        out.extend_from_slice(rest);
        Some(out)
    };
    written().unwrap_or_else(|| message.get(start..end).unwrap_or_default().to_vec())
}

/// A name in presentation format, with the final dot.
fn name_text(name: &[u8]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(&len) = name.get(at).filter(|len| **len > 0) {
        let end = at + 1 + usize::from(len);
        for &byte in name.get(at + 1..end).unwrap_or_default() {
            match byte {
                b'.' | b'\\' | b'"' => out.extend(['\\', char::from(byte)]),
                b'!'..=b'~' => out.push(char::from(byte)),
                _ => write!(out, "\\{byte:03}").unwrap_or_default(),
            }
        }
        out.push('.');
        at = end;
    }
    if out.is_empty() { ".".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A response to `www.test A` with an alias to itself, compressed or not, and an address.
    fn response(compressed: bool) -> Vec<u8> {
        let mut m = b"\0\x01\x84\0\0\x01\0\x02\0\0\0\x01\x03wWw\x04test\0\0\x01\0\x01".to_vec();
        let name: &[u8] = if compressed { b"\xc0\x0c" } else { b"\x03www\x04TEST\0" };
        m.extend_from_slice(name);
        m.extend_from_slice(b"\0\x05\0\x01\0\0\0\x3c\0");
        m.push(name.len() as u8);
        m.extend_from_slice(name);
        m.extend_from_slice(name);
        m.extend_from_slice(b"\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01");
        m.extend_from_slice(b"\0\0\x29\x04\xd0\x01\0\x80\0\0\0");
        m
    }

    #[test]
    fn compression_and_case_make_no_difference() {
        let (a, b) = (Parsed::of(&response(true), true), Parsed::of(&response(false), true));
        assert!(a.is_complete);
        assert_eq!(a, b);
        let texts: Vec<_> = a.sections[0].iter().map(Record::text).collect();
        assert_eq!(texts, ["www.test. 60 A 192.0.2.1", "www.test. 60 CNAME www.test."]);
        assert_eq!((a.rcode, a.edns), (16, Some((0, 0x8000))), "BADVERS, with DO");
    }

    #[test]
    fn signatures_are_not_compared() {
        let mut signed = response(true);
        signed[11] += 1;
        signed.extend_from_slice(b"\x01k\0\0\xfa\0\xff\0\0\0\0\0\x02xy");
        assert_eq!(Parsed::of(&signed, true), Parsed::of(&response(true), true));
    }

    #[test]
    fn pointer_loops_end_the_message() {
        let mut m = response(true);
        m[12..14].copy_from_slice(b"\xc0\x0c");
        assert!(!Parsed::of(&m, false).is_complete);
    }

    #[test]
    fn bytes_after_the_records_are_detected() {
        let mut m = response(true);
        m.push(0);
        assert!(!Parsed::of(&m, false).is_complete);
        assert!(!Parsed::of(&m[..20], false).is_complete);
    }

    #[test]
    fn data_of_any_type_have_a_text() {
        let record = Record {
            name: b"\x03a.b\0".as_slice().into(),
            kind: 65_280,
            class: 3,
            data: [1, 255].into(),
            ttl: None,
        };
        assert_eq!(record.text(), r"a\.b. CLASS3 TYPE65280 \# 2 01ff");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let parsed = Parsed::of(&bytes, true);
            prop_assert!(!parsed.is_complete || bytes.len() >= HEADER);
        }
    }
}
