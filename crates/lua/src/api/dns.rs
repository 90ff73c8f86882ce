//! The presentation of DNS messages for scripts: names and records as text.

use std::fmt;
use std::io::Write;

use gannet_base::Addr;

/// The longest name on the wire (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;
/// Maximum number of records of a message that are read.
const MAX_RECORDS: usize = 4096;

/// The question and the header of a message, for a [`Record`](super::record::Record).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) qtype: u16,
    pub(crate) qclass: u16,
}

/// Reads the first question: its name is written to `name` (lower case, without the last dot).
/// Returns `None` and leaves `name` unchanged if the message has no question or is malformed.
pub(crate) fn question(message: &[u8], name: &mut Vec<u8>) -> Option<Question> {
    if u16_at(message, 4)? == 0 {
        return None;
    }
    let start = name.len();
    let read = || {
        let end = write_name(message, 12, name)?;
        Some(Question { qtype: u16_at(message, end)?, qclass: u16_at(message, end + 2)? })
    };
    let question = { read }();
    if question.is_none() {
        name.truncate(start);
    }
    question
}

/// The fields of an OPT record (RFC 6891 §6.1), as C sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Edns {
    /// UDP payload size that the sender accepts, in bytes.
    size: u16,
    flags: u16,
    /// The extended response code.
    rcode: u16,
    version: u8,
    /// Offset of the options in the message.
    options_at: u32,
    options_len: u32,
}

/// The first OPT record in the additional section; `None` if there is none, or the message is
/// malformed before it.
pub(crate) fn edns(message: &[u8]) -> Option<Edns> {
    const OPT: u16 = 41;
    let mut scratch = Vec::new();
    let mut at = 12;
    for _ in 0..u16_at(message, 4)? {
        scratch.clear();
        at = write_name(message, at, &mut scratch)? + 4;
    }
    let before = usize::from(u16_at(message, 6)?) + usize::from(u16_at(message, 8)?);
    let all = before + usize::from(u16_at(message, 10)?);
    for number in 0..all.min(MAX_RECORDS) {
        scratch.clear();
        at = write_name(message, at, &mut scratch)?;
        let len = usize::from(u16_at(message, at + 8)?);
        let start = at + 10;
        message.get(start..start + len)?;
        if number >= before && u16_at(message, at)? == OPT {
            let upper = u16_at(message, at + 4)?;
            return Some(Edns {
                size: u16_at(message, at + 2)?,
                flags: u16_at(message, at + 6)?,
                rcode: u16_at(message, 2)? & 15 | upper >> 8 << 4,
                version: upper as u8,
                options_at: start as u32,
                options_len: len as u32,
            });
        }
        at = start + len;
    }
    None
}

pub(crate) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// Writes the name at `at` as text: labels in lower case with dots between them, `\.`, `\\` and
/// `\200` for unprintable bytes, and `.` for the root. Pointers must refer to lower offsets (RFC
/// 1035 §4.1.4), so there are no loops. Returns the offset after the name.
pub(crate) fn write_name(message: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let (mut at, mut end, mut len) = (at, None, 1);
    // Lowest offset read so far: a pointer must refer to a lower one.
    let mut bound = at;
    let start = out.len();
    loop {
        let head = *message.get(at)?;
        match head {
            0 => {
                if out.len() == start {
                    out.push(b'.');
                }
                return Some(end.unwrap_or(at + 1));
            }
            1..=63 => {
                let label = message.get(at + 1..at + 1 + usize::from(head))?;
                len += label.len() + 1;
                if len > MAX_NAME {
                    return None;
                }
                if out.len() > start {
                    out.push(b'.');
                }
                for &byte in label {
                    match byte {
                        b'.' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                        b'!'..=b'~' => out.push(byte.to_ascii_lowercase()),
                        _ => out.extend_from_slice(&[
                            b'\\',
                            b'0' + byte / 100,
                            b'0' + byte / 10 % 10,
                            b'0' + byte % 10,
                        ]),
                    }
                }
                at += 1 + label.len();
            }
            0xc0.. => {
                let to = usize::from(u16_at(message, at)? & 0x3fff);
                end = end.or(Some(at + 2));
                if to >= bound {
                    return None;
                }
                (bound, at) = (to, to);
            }
            _ => return None,
        }
    }
}

/// Writes the records of all sections, one per line: section (1 answers, 2 authorities, 3
/// additionals), name, type, class, time to live and data, separated by tabs. Of a malformed
/// message, writes the records before the error.
pub(crate) fn write_records(message: &[u8], out: &mut Vec<u8>) {
    write_sections(message, out).unwrap_or_default();
}

fn write_sections(message: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut scratch = Vec::new();
    let mut at = 12;
    for _ in 0..u16_at(message, 4)? {
        scratch.clear();
        at = write_name(message, at, &mut scratch)? + 4;
    }
    let mut left = MAX_RECORDS;
    for section in 1..=3 {
        for _ in 0..u16_at(message, 4 + 2 * section)? {
            left = left.checked_sub(1)?;
            let line = out.len();
            match write_record(message, at, section, out) {
                Some(next) => at = next,
                None => {
                    out.truncate(line);
                    return None;
                }
            }
        }
    }
    Some(())
}

fn write_record(message: &[u8], at: usize, section: usize, out: &mut Vec<u8>) -> Option<usize> {
    write!(out, "{section}\t").ok()?;
    let at = write_name(message, at, out)?;
    let (kind, class, ttl) =
        (u16_at(message, at)?, u16_at(message, at + 2)?, u32_at(message, at + 4)?);
    let len = usize::from(u16_at(message, at + 8)?);
    let start = at + 10;
    let data = message.get(start..start + len)?;
    write!(out, "\t{kind}\t{class}\t{ttl}\t").ok()?;
    let text = out.len();
    if write_data(message, kind, start, data, out).is_none() {
        out.truncate(text);
        write!(out, "\\# {len} {}", Hex(data)).ok()?;
    }
    out.push(b'\n');
    Some(start + len)
}

/// Writes the data of a record: in the format of its type if known, and otherwise as in RFC 3597
/// §5.
fn write_data(
    message: &[u8],
    kind: u16,
    start: usize,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let name = |at: usize, out: &mut Vec<u8>| write_name(message, start + at, out);
    match (kind, data.len()) {
        (1, 4) | (28, 16) => write!(out, "{}", Addr::from_slice(data)?).ok(),
        // NS, CNAME, PTR, DNAME
        (2 | 5 | 12 | 39, _) => name(0, out).map(|_| ()),
        (6, _) => {
            let next = name(0, out)?;
            out.push(b' ');
            let numbers = write_name(message, next, out)?;
            for field in 0..5 {
                write!(out, " {}", u32_at(message, numbers + 4 * field)?).ok()?;
            }
            Some(())
        }
        (15, 3..) => {
            write!(out, "{} ", u16_at(data, 0)?).ok()?;
            name(2, out).map(|_| ())
        }
        (33, 7..) => {
            let (priority, weight) = (u16_at(data, 0)?, u16_at(data, 2)?);
            write!(out, "{priority} {weight} {} ", u16_at(data, 4)?).ok()?;
            name(6, out).map(|_| ())
        }
        // TXT, SPF
        (16 | 99, _) => {
            let mut rest = data;
            let mut space = "";
            while let Some((&len, tail)) = rest.split_first() {
                let (string, tail) = tail.split_at_checked(usize::from(len))?;
                write!(out, "{space}\"{}\"", Quoted(string)).ok()?;
                (rest, space) = (tail, " ");
            }
            Some(())
        }
        _ => None,
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|&b| match b {
            b'"' | b'\\' => write!(f, "\\{}", char::from(b)),
            b' '..=b'~' => write!(f, "{}", char::from(b)),
            _ => write!(f, "\\{b:03}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(rest: &[u8], counts: [u8; 4]) -> Vec<u8> {
        let mut m = vec![0, 1, 0x81, 0x80];
        counts.iter().for_each(|c| m.extend_from_slice(&[0, *c]));
        m.extend_from_slice(rest);
        m
    }

    fn name(rest: &[u8]) -> Option<String> {
        let mut out = b"kept".to_vec();
        let asked = question(&message(rest, [1, 0, 0, 0]), &mut out);
        let text = String::from_utf8(out.split_off(4)).unwrap();
        assert_eq!(out, b"kept");
        asked.map(|_| text)
    }

    #[test]
    fn names_are_text_in_lower_case() {
        assert_eq!(name(b"\x03wWw\x04test\0\0\x01\0\x01").unwrap(), "www.test");
        assert_eq!(name(b"\0\0\x01\0\x01").unwrap(), ".");
        assert_eq!(name(b"\x04a.\\\xc8\0\0\x01\0\x01").unwrap(), "a\\.\\\\\\200");
    }

    #[test]
    fn edns_is_found_among_the_additional_records() {
        let rest = b"\x01a\0\0\x01\0\x01\xc0\x0c\0\x29\0\x01\0\0\0\0\0\x01x\
                     \0\0\x29\x04\xd0\x01\0\x80\0\0\x06\0\x0a\0\x02ab";
        let whole = message(rest, [1, 1, 0, 1]);
        let edns = edns(&whole).unwrap();
        let expected = Edns {
            size: 1232,
            flags: 0x8000,
            rcode: 16,
            version: 0,
            options_at: whole.len() as u32 - 6,
            options_len: 6,
        };
        assert_eq!(edns, expected);
        for end in 0..whole.len() {
            assert_eq!(super::edns(&whole[..end]), None, "{end}");
        }
        assert_eq!(super::edns(&message(rest, [1, 2, 0, 0])), None, "no additional record");
    }

    #[test]
    fn damaged_names_are_none() {
        assert_eq!(name(b"\x03ww"), None);
        assert_eq!(name(b"\x03www\0\0\x01\0"), None);
        assert_eq!(name(b"\xc0\x0c\0\x01\0\x01"), None, "a pointer to itself");
        assert_eq!(name(b"\x01a\xc0\x0c\0\x01\0\x01"), None, "a pointer to what leads to it");
        assert_eq!(name(b"\x40\0\x01\0\x01"), None);
        let long: Vec<_> = [b"\x3f".as_slice(), &[b'a'; 63]].concat().repeat(4);
        assert_eq!(name(&[long.as_slice(), b"\0\0\x01\0\x01"].concat()), None);
    }

    #[test]
    fn records_are_lines() {
        let mut rest = b"\x01a\x04test\0\0\x01\0\x01".to_vec();
        rest.extend_from_slice(b"\xc0\x0c\0\x05\0\x01\0\0\0\x05\0\x04\x01b\xc0\x0e");
        rest.extend_from_slice(b"\x01b\xc0\x0e\0\x01\0\x01\0\0\0\x06\0\x04\xc0\0\x02\x01");
        rest.extend_from_slice(b"\xc0\x0c\0\x10\0\x01\0\0\0\x07\0\x05\x01x\x02\"\xff");
        rest.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\0\x08\0\x02\x0a\x0b");
        let mut out = Vec::new();
        write_records(&message(&rest, [1, 3, 1, 1]), &mut out);
        let expected = "1\ta.test\t5\t1\t5\tb.test\n1\tb.test\t1\t1\t6\t192.0.2.1\n\
                        1\ta.test\t16\t1\t7\t\"x\" \"\\\"\\255\"\n2\ta.test\t1\t1\t8\t\\# 2 0a0b\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
