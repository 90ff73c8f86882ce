//! Headers of session messages and datagrams, and names.

/// Length of the header of a session message, in bytes: kind, flags, length.
pub(super) const HEADER: usize = 4;

/// Length of the header of a datagram, in bytes.
const DATAGRAM_HEADER: usize = 14;

/// Maximum number of characters of a name.
const MAX_NAME: usize = 30;

/// The length of a session message, including its header; the header's length while that is
/// incomplete.
///
/// As in Zeek, the extension bit, which adds 64 KiB, is ignored.
pub(super) fn message_len(begin: &[u8]) -> usize {
    match begin {
        [_, _, high, low, ..] => HEADER + usize::from(u16::from_be_bytes([*high, *low])),
        _ => HEADER,
    }
}

/// A datagram (RFC 1002 section 4.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its kind.
    pub kind: u8,
    /// Length according to the header, in bytes.
    pub length: u16,
    /// What follows the header.
    pub data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Parses a datagram; `None` if it is shorter than a header.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (header, data) = data.split_first_chunk::<DATAGRAM_HEADER>()?;
        // Kind, flags, number, address and port of the sender, length, offset.
        let [kind, _, _, _, _, _, _, _, _, _, high, low, _, _] = *header;
        Some(Self { kind, length: u16::from_be_bytes([high, low]), data })
    }

    /// Whether the header's length exceeds the data. As in Zeek, a length that is shorter than the
    /// header counts as excessive.
    pub fn is_truncated(&self) -> bool {
        let counted = usize::from(self.length).checked_sub(DATAGRAM_HEADER);
        counted.is_none_or(|counted| counted > self.data.len())
    }
}

/// Decodes a name (RFC 1001 section 14.1), which begins with its length; `None` if it is invalid.
pub fn decode_name(encoded: &[u8]) -> Option<Vec<u8>> {
    let (len, pairs) = encoded.split_first()?;
    let len = usize::from(len / 2);
    if !(1..=MAX_NAME).contains(&len) {
        return None;
    }
    let nibble = |letter: u8| letter.checked_sub(b'A').filter(|nibble| *nibble < 16);
    let (pairs, _) = pairs.get(..2 * len)?.as_chunks::<2>();
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_pairs_of_letters() {
        assert_eq!(decode_name(b"\x06EBECED\0"), Some(b"ABC".to_vec()));
        assert_eq!(decode_name(b"\x07EBECEDxx"), Some(b"ABC".to_vec()));
        assert_eq!(decode_name(b"\x06EBECQD"), None);
        assert_eq!(decode_name(b"\x06EBEC"), None);
        assert_eq!(decode_name(b"\x01E"), None);
        assert_eq!(decode_name(&[62; 63]), None);
        assert_eq!(decode_name(b""), None);
    }

    #[test]
    fn datagrams_have_a_header() {
        let mut data = b"\x10\x0a\x12\x34\x0a\0\0\x01\0\x8a\0\x03\0\0".to_vec();
        let header_only = Datagram::parse(&data).unwrap();
        assert_eq!((header_only.kind, header_only.length, header_only.data), (16, 3, &b""[..]));
        assert!(header_only.is_truncated());
        assert_eq!(Datagram::parse(&data[..13]), None);
        data[11] = 17;
        data.extend_from_slice(b"abc");
        assert!(!Datagram::parse(&data).unwrap().is_truncated());
        data.pop();
        assert!(Datagram::parse(&data).unwrap().is_truncated());
    }

    #[test]
    fn lengths_of_messages() {
        assert_eq!(message_len(b"\0\0\x01"), 4);
        assert_eq!(message_len(b"\0\x01\x01\x02"), 4 + 258);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data: Vec<u8>) {
            let _ = Datagram::parse(&data).map(|datagram| datagram.is_truncated());
            let _ = decode_name(&data);
        }
    }
}
