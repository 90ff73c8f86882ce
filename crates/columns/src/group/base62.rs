//! zstd frames of digits and letters of about equal frequency, as in the ids of connections and files.
//!
//! A general compressor counts bytes, builds a Huffman code and looks each byte up in it. Here the code is fixed: every
//! digit and letter has six bits, so that arithmetic converts eight of them to six bytes. For zstd this is a Huffman
//! code of 64 symbols like any other (RFC 8878), and a block may consist of literals alone.

/// Maximum size of a zstd block, in bytes.
const MAX_BLOCK: usize = 128 << 10;
/// Minimum number of digits and letters for which the Huffman table pays off.
const MIN_CODED: usize = 1 << 10;
/// Bytes that have a code: digits, letters, and two that do not occur, which make 64.
const CODED: [u8; 64] = *b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz{|";
/// Block types (RFC 8878, section 3.1.1.2.2).
const RAW: u32 = 0;
const COMPRESSED: u32 = 2;

/// Offset of the digits and letters that end a page; `None` if they are less than three quarters of it.
pub(super) fn alphanumeric_start(page: &[u8]) -> Option<usize> {
    /// Number of bytes that are checked without a branch.
    const CHUNK: usize = 64;
    let is = |all: bool, b: &u8| all & b.is_ascii_alphanumeric();
    let other = page.rchunks(CHUNK).position(|some| !some.iter().fold(true, is));
    let start = other.map_or(0, |chunks| {
        let some = &page[..page.len() - chunks * CHUNK];
        some.iter().rposition(|b| !b.is_ascii_alphanumeric()).map_or(0, |at| at + 1)
    });
    let len = page.len() - start;
    (len >= MIN_CODED && len > start * 3).then_some(start)
}

/// Estimated length of the frame, in bytes.
pub(super) fn estimated_len(page: &[u8], start: usize) -> usize {
    start + (page.len() - start) * 6 / 8
}

/// Appends the frame of a page whose bytes are digits and letters from `alphanumeric_start` on.
pub(super) fn write_frame(page: &[u8], start: usize, out: &mut Vec<u8>) {
    // Magic number, and a frame header descriptor: single segment, content size of four bytes.
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000]);
    out.extend_from_slice(&(page.len() as u32).to_le_bytes());
    let (first, texts) = page.split_at(start);
    for part in first.chunks(MAX_BLOCK) {
        write_block_header(part.len(), RAW, false, out);
        out.extend_from_slice(part);
    }
    let mut blocks = texts.chunks(MAX_BLOCK).peekable();
    while let Some(texts) = blocks.next() {
        let is_last = blocks.peek().is_none();
        if texts.len() < MIN_CODED {
            write_block_header(texts.len(), RAW, is_last, out);
            out.extend_from_slice(texts);
            continue;
        }
        let header_start = out.len();
        write_block_header(0, COMPRESSED, is_last, out);
        write_literals_block(texts, out);
        let mut header = Vec::new();
        write_block_header(out.len() - header_start - 3, COMPRESSED, is_last, &mut header);
        out[header_start..header_start + 3].copy_from_slice(&header);
    }
}

/// Appends a block header.
fn write_block_header(len: usize, kind: u32, is_last: bool, out: &mut Vec<u8>) {
    let head = u32::from(is_last) | kind << 1 | (len as u32) << 3;
    out.extend_from_slice(&head.to_le_bytes()[..3]);
}

/// Appends the content of a compressed block: literals in four streams, no sequences.
fn write_literals_block(texts: &[u8], out: &mut Vec<u8>) {
    const LITERALS: u64 = 2 | 3 << 2;
    let start = out.len();
    out.extend_from_slice(&[0; 5]);
    write_huffman_weights(out);
    let table = out.len();
    out.extend_from_slice(&[0; 6]);
    let mut before = out.len();
    for (at, part) in texts.chunks(texts.len().div_ceil(4)).enumerate() {
        write_stream(part, out);
        if at < 3 {
            let len = (out.len() - before) as u16;
            out[table + 2 * at..][..2].copy_from_slice(&len.to_le_bytes());
        }
        before = out.len();
    }
    let len = out.len() - start - 5;
    let head = LITERALS | (texts.len() as u64) << 4 | (len as u64) << 22;
    out[start..start + 5].copy_from_slice(&head.to_le_bytes()[..5]);
    out.push(0);
}

/// Appends the Huffman tree description: the weights of all bytes below the last coded one, two per byte.
fn write_huffman_weights(out: &mut Vec<u8>) {
    let [.., last] = CODED;
    let weight = |byte: u8| u8::from(byte < last && CODED.contains(&byte));
    out.push(127 + last);
    out.extend((0..last).step_by(2).map(|byte| weight(byte) << 4 | weight(byte + 1)));
}

/// Appends a Huffman-coded stream: the codes in reverse order, then a final 1 bit.
fn write_stream(texts: &[u8], out: &mut Vec<u8>) {
    let (rest, eights) = texts.as_rchunks::<8>();
    out.reserve(texts.len());
    for eight in eights.iter().rev() {
        let [a, b, c, d, e, f, ..] = six_bits(u64::from_be_bytes(*eight)).to_le_bytes();
        out.extend_from_slice(&[a, b, c, d, e, f]);
    }
    let mut bytes = [b'0'; 8];
    bytes[8 - rest.len()..].copy_from_slice(rest);
    let bits = 6 * rest.len();
    let end = six_bits(u64::from_be_bytes(bytes)) | 1 << bits;
    out.extend_from_slice(&end.to_le_bytes()[..bits / 8 + 1]);
}

/// Packs the six-bit codes of eight digits and letters into 48 bits.
#[inline(always)]
fn six_bits(bytes: u64) -> u64 {
    /// 1 in every byte.
    const ONES: u64 = 0x0101_0101_0101_0101;
    let from = |first: u8| (bytes + ONES * u64::from(0x80 - first)) >> 7 & ONES;
    // Replace each byte by its index in `CODED`.
    let v = bytes - ONES * u64::from(b'0') - from(b'A') * 7 - from(b'a') * 6;
    let v = v & 0x003f_003f_003f_003f | v >> 2 & 0x0fc0_0fc0_0fc0_0fc0;
    let v = v & 0x0000_0fff_0000_0fff | v >> 4 & 0x00ff_f000_00ff_f000;
    v & 0x00ff_ffff | v >> 8 & 0xffff_ff00_0000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(page: &[u8]) -> Option<usize> {
        let start = alphanumeric_start(page)?;
        let mut out = b"before".to_vec();
        write_frame(page, start, &mut out);
        let frame = &out[6..];
        assert_eq!(zstd::bulk::decompress(frame, page.len()).unwrap(), page);
        assert!(frame.len().abs_diff(estimated_len(page, start)) < 200 + page.len() / 500);
        Some(start)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The `zstd` crate decompresses the frames.
        #[test]
        fn frames_are_decompressed(
            before in proptest::collection::vec(0_u8.., 0..700),
            texts in proptest::collection::vec(0_usize..62, 0..3_000),
            times in 1_usize..200,
        ) {
            let mut page = before;
            page.push(0);
            let start = page.len();
            (0..times).for_each(|_| page.extend(texts.iter().map(|at| CODED[*at])));
            let is_enough = page.len() - start >= MIN_CODED && page.len() - start > start * 3;
            prop_assert_eq!(check(&page), is_enough.then_some(start));
        }
    }

    #[test]
    fn blocks_may_be_of_any_length() {
        let texts: Vec<u8> =
            (0..2 * MAX_BLOCK + MIN_CODED + 9).map(|n| CODED[n * 7 % 62]).collect();
        for len in (MIN_CODED..MIN_CODED + 40)
            .chain(MAX_BLOCK - 9..MAX_BLOCK + 9)
            .chain(2 * MAX_BLOCK..texts.len())
        {
            // Of the longest texts, only some lengths.
            if len < 2 * MAX_BLOCK || len % 97 < 8 {
                assert_eq!(check(&texts[..len]), Some(0), "{len}");
            }
        }
        let mut page = vec![0; MAX_BLOCK + 9];
        (0..2).for_each(|_| page.extend_from_slice(&texts));
        assert_eq!(check(&page), Some(MAX_BLOCK + 9));
        assert_eq!(check(&texts[..MIN_CODED - 1]), None);
        assert_eq!(check(&[b'-'; 3 * MIN_CODED]), None);
    }
}
