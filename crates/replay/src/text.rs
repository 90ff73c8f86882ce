//! Queries from a list: a name and a type per line.
//!
//! The format is that of dnsperf's input: `www.example.com A`, with `#` or `;` before comments.
//! Names are written as in zone files (RFC 1035 §5.1): `\.` for a dot inside a label, `\200` for a
//! byte. A type is a mnemonic, `TYPE65` (RFC 3597) or a number; without one it is A.

/// The flag RD: queries request recursion, as those of stub resolvers do.
const RECURSE: u8 = 1;
/// Class IN.
const IN: [u8; 2] = [0, 1];

/// Types by name (IANA, DNS parameters).
const TYPES: [(&str, u16); 46] = [
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("MB", 7),
    ("MG", 8),
    ("MR", 9),
    ("NULL", 10),
    ("WKS", 11),
    ("PTR", 12),
    ("HINFO", 13),
    ("MINFO", 14),
    ("MX", 15),
    ("TXT", 16),
    ("RP", 17),
    ("AFSDB", 18),
    ("SIG", 24),
    ("KEY", 25),
    ("AAAA", 28),
    ("LOC", 29),
    ("SRV", 33),
    ("NAPTR", 35),
    ("KX", 36),
    ("CERT", 37),
    ("DNAME", 39),
    ("DS", 43),
    ("SSHFP", 44),
    ("IPSECKEY", 45),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("DHCID", 49),
    ("NSEC3", 50),
    ("NSEC3PARAM", 51),
    ("TLSA", 52),
    ("SMIMEA", 53),
    ("HIP", 55),
    ("CDS", 59),
    ("CDNSKEY", 60),
    ("OPENPGPKEY", 61),
    ("CSYNC", 62),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("SPF", 99),
    ("ANY", 255),
    ("CAA", 257),
];

/// The error for a line that is not a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The type is unknown.
    #[error("'{0}' is not a record type; TYPE65, for example, is a type by its number")]
    Type(String),
    /// The name is longer than 255 bytes, has a label of more than 63 bytes or an empty one, or an
    /// invalid escape.
    #[error("'{0}' is not a domain name")]
    Name(String),
}

/// Writes the query of a line to `out`, with id 0; returns false for an empty line or a comment.
///
/// # Errors
/// If it is neither a query nor empty nor a comment.
pub fn query(line: &str, out: &mut Vec<u8>) -> Result<bool, LineError> {
    out.clear();
    let mut words = line.split_ascii_whitespace();
    let Some(name) = words.next().filter(|w| !w.starts_with(['#', ';'])) else { return Ok(false) };
    let kind = match words.next() {
        Some(word) if !word.starts_with(['#', ';']) => {
            kind(word).ok_or_else(|| LineError::Type(word.to_owned()))?
        }
        _ => 1,
    };
    out.extend_from_slice(&[0, 0, RECURSE, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    push_name(name, out).ok_or_else(|| LineError::Name(name.to_owned()))?;
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&IN);
    Ok(true)
}

fn kind(word: &str) -> Option<u16> {
    let known = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    if let Some((_, number)) = known {
        return Some(*number);
    }
    let digits = match word.get(..4) {
        Some(start) if start.eq_ignore_ascii_case("TYPE") => &word[4..],
        _ => word,
    };
    digits.parse().ok()
}

/// The mnemonic of a type.
pub(crate) fn kind_name(kind: u16) -> Option<&'static str> {
    TYPES.iter().find(|(_, number)| *number == kind).map(|(name, _)| *name)
}

/// Appends a name of a zone file in wire format; `None` if it is not valid.
pub(crate) fn push_name(text: &str, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    let text = text.as_bytes();
    if text != b"." {
        let mut label = out.len();
        out.push(0);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'.' => {
                    end_label(out, label)?;
                    if at == text.len() {
                        out.push(0);
                        return (out.len() - start <= 255).then_some(());
                    }
                    label = out.len();
                    out.push(0);
                }
                b'\\' => match text.get(at..at + 3) {
                    Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
                        let value = digits.iter().fold(0, |v, d| v * 10 + u16::from(d - b'0'));
                        out.push(u8::try_from(value).ok()?);
                        at += 3;
                    }
                    _ => {
                        out.push(*text.get(at).filter(|b| !b.is_ascii_digit())?);
                        at += 1;
                    }
                },
                _ => out.push(byte),
            }
        }
        end_label(out, label)?;
    }
    out.push(0);
    (out.len() - start <= 255).then_some(())
}

/// Writes the length of the label whose length byte is at `at`.
fn end_label(out: &mut [u8], at: usize) -> Option<()> {
    let len = out.len() - at - 1;
    *out.get_mut(at)? = u8::try_from(len).ok().filter(|n| (1..=63).contains(n))?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(line: &str) -> Option<Vec<u8>> {
        let mut out = vec![9];
        query(line, &mut out).unwrap().then_some(out)
    }

    #[test]
    fn a_line_is_a_query() {
        let expected = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x04test\0\0\x1c\0\x01";
        assert_eq!(bytes("www.test AAAA").unwrap(), expected);
        assert_eq!(bytes("  www.test.\tTYPE28 # twice").unwrap(), expected);
        assert_eq!(bytes("www.test. 28").unwrap(), expected);
        assert_eq!(bytes(". ns").unwrap()[12..], *b"\0\0\x02\0\x01");
        assert_eq!(bytes(r"a\.b\200\\ A").unwrap()[12..18], *b"\x05a.b\xc8\\");
    }

    #[test]
    fn comments_and_empty_lines_are_no_queries() {
        for line in ["", "  ", "# x", "; x", "#x A"] {
            assert_eq!(bytes(line), None, "{line}");
        }
    }

    #[test]
    fn bad_lines_are_reported() {
        let mut out = Vec::new();
        assert_eq!(query("a FOO", &mut out), Err(LineError::Type("FOO".into())));
        let long = "a".repeat(64);
        for name in ["a..b", ".a", r"a\", r"a\2", r"a\299", &long, &"a.".repeat(128)] {
            assert_eq!(query(name, &mut out), Err(LineError::Name(name.into())), "{name}");
        }
        assert!(query(&"a.".repeat(127), &mut out).unwrap());
    }
}
