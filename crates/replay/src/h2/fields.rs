//! Header blocks (HPACK, RFC 7541), written and read without a dynamic table.

/// `:status` in the code of RFC 7541 Appendix B.
const CODED_STATUS: &[u8] = &[0xb8, 0x84, 0x8d, 0x36, 0xa3];
/// The static table's last index; higher ones are in the dynamic table (Appendix A).
const LAST: usize = 61;

/// The fields of each request except its length: POST, https, path, authority, and both media types
/// (RFC 8484 §4.1).
pub(super) fn request(authority: &str, path: &str) -> Vec<u8> {
    let mut out = vec![0x80 | 3, 0x80 | 7];
    literal(4, path.as_bytes(), &mut out);
    literal(1, authority.as_bytes(), &mut out);
    literal(19, b"application/dns-message", &mut out);
    literal(31, b"application/dns-message", &mut out);
    out
}

/// The fields of a response: status 200, media type, length.
pub(super) fn response(len: usize) -> Vec<u8> {
    let mut out = vec![0x80 | 8];
    literal(31, b"application/dns-message", &mut out);
    length(len, &mut out);
    out
}

/// The fields of a response with status 400.
pub(super) const BAD_REQUEST: &[u8] = &[0x80 | 12];

/// Appends `content-length`.
pub(super) fn length(len: usize, out: &mut Vec<u8>) {
    literal(28, len.to_string().as_bytes(), out);
}

/// Appends a literal field without indexing, whose name is in the static table (RFC 7541 §6.2.2).
fn literal(name: usize, value: &[u8], out: &mut Vec<u8>) {
    write_number(name, 4, 0, out);
    write_number(value.len(), 7, 0, out);
    out.extend_from_slice(value);
}

/// Appends an integer whose prefix follows the bits of `first` (RFC 7541 §5.1).
fn write_number(number: usize, bits: u32, first: u8, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        return out.push(first | number as u8);
    }
    out.push(first | most as u8);
    let mut rest = number - most;
    while rest >= 128 {
        out.push(0x80 | (rest % 128) as u8);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// The status of a response, 0 if the block has none (trailers); `None` if the block is malformed
/// or refers to the dynamic table.
pub(super) fn status(block: &[u8]) -> Option<u16> {
    let mut rest = block;
    let mut status = 0;
    while let Some(&first) = rest.first() {
        if first & 0x80 != 0 {
            let index = read_number(&mut rest, 7)?;
            if index == 0 || index > LAST {
                return None;
            }
            status = [200, 204, 206, 304, 400, 404, 500]
                .get(index.wrapping_sub(8))
                .copied()
                .unwrap_or(status);
            continue;
        }
        if first & 0xe0 == 0x20 {
            // A size update of the dynamic table, which stays empty.
            read_number(&mut rest, 5)?;
            continue;
        }
        let name = read_number(&mut rest, if first & 0x40 != 0 { 6 } else { 4 })?;
        let is_status = match name {
            0 => {
                let (name, coded) = read_string(&mut rest)?;
                name == if coded { CODED_STATUS } else { b":status" }
            }
            8..=14 => true,
            1..=LAST => false,
            _ => return None,
        };
        let (value, coded) = read_string(&mut rest)?;
        if is_status {
            status = if coded { coded_digits(value)? } else { digits(value)? };
        }
    }
    Some(status)
}

fn read_number(rest: &mut &[u8], bits: u32) -> Option<usize> {
    let most = (1_usize << bits) - 1;
    let (&first, tail) = rest.split_first()?;
    *rest = tail;
    let mut number = usize::from(first) & most;
    if number < most {
        return Some(number);
    }
    // No block has more than 2^21 bytes.
    for shift in [0, 7, 14] {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        number += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A string literal, and whether it is Huffman-coded.
fn read_string<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], bool)> {
    let coded = rest.first()? & 0x80 != 0;
    let len = read_number(rest, 7)?;
    let (string, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some((string, coded))
}

/// The number of three digits.
fn digits(text: &[u8]) -> Option<u16> {
    let [a, b, c] = text else { return None };
    let digit = |d: &u8| d.is_ascii_digit().then(|| u16::from(d - b'0'));
    Some(digit(a)? * 100 + digit(b)? * 10 + digit(c)?)
}

/// The number of three Huffman-coded digits: 0, 1 and 2 have five bits, 3 to 9 have six (Appendix
/// B).
fn coded_digits(bytes: &[u8]) -> Option<u16> {
    if bytes.len() > 3 {
        return None;
    }
    let mut bits = [0; 4];
    bits.get_mut(1..=bytes.len())?.copy_from_slice(bytes);
    let mut left = u32::from_be_bytes(bits) << 8;
    let mut number = 0;
    let mut used = 0;
    for _ in 0..3 {
        let (digit, len) = match (left >> 27, left >> 26) {
            (five @ 0..=2, _) => (five, 5),
            (_, six @ 0x19..=0x1f) => (six - 0x16, 6),
            _ => return None,
        };
        number = number * 10 + digit as u16;
        left <<= len;
        used += len;
    }
    (used <= 8 * bytes.len()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_encoded() {
        let block = request("a.test", "/q");
        assert_eq!(block[..12], *b"\x83\x87\x04\x02/q\x01\x06a.te");
        assert!(block[14..].starts_with(b"\x0f\x04\x17application/dns-message\x0f\x10\x17"));
        let mut out = Vec::new();
        length(300, &mut out);
        assert_eq!(out, b"\x0f\x0d\x03300");
    }

    #[test]
    fn the_status_is_found() {
        // Indexed; after a table size of zero; as digits; Huffman-coded; with its name as a
        // literal, plain and Huffman-coded.
        assert_eq!(status(&[0x88]), Some(200));
        assert_eq!(status(&[0x20, 0x8e]), Some(500));
        assert_eq!(status(b"\x08\x03403\x0f\x0d\x0242"), Some(403));
        // RFC 7541 C.6.1: "302".
        assert_eq!(status(&[0x48, 0x82, 0x64, 0x02]), Some(302));
        assert_eq!(status(b"\0\x07:status\x03502"), Some(502));
        let coded = [&[0, 0x85], CODED_STATUS, &[3], b"204"].concat();
        assert_eq!(status(&coded), Some(204));
        assert_eq!(status(b"\x40\x01x\x01y"), Some(0));
    }

    #[test]
    fn damaged_blocks_are_refused() {
        let damaged: [&[u8]; 7] = [
            &[0xbe],
            &[0x80],
            &[0x48, 0x83, 0x64],
            b"\x08\x02no",
            &[0x7f, 0x80, 0x80, 0x80, 0x80],
            b"\x08\x03x00",
            &[0x48, 0x81, 0xff],
        ];
        for block in damaged {
            assert_eq!(status(block), None, "{block:?}");
        }
    }

    #[test]
    fn long_numbers_round_trip() {
        for number in [0, 14, 15, 142, 1337, 60_000] {
            let mut out = Vec::new();
            write_number(number, 4, 0, &mut out);
            assert_eq!(read_number(&mut &out[..], 4), Some(number));
        }
    }
}
