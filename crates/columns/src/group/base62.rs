//! zstd frames of texts that consist of digits and letters, all of them about as frequent: names of connections and
//! files.
//!
//! A compressor counts bytes, makes a code for them and looks each byte up. Here every digit and letter has six bits:
//! eight of them are six bytes, by arithmetic. As zstd has it, a code of 64 bytes of six bits each is a Huffman code
//! like any other, and a block may consist of such bytes alone.

/// Bytes of a block at the most.
const BLOCK: usize = 128 << 10;
/// Fewest bytes that are worth a code.
const FEWEST: usize = 1 << 10;
/// Bytes that have a code: those of texts, and two more, which do not occur, for 64.
const CODED: [u8; 64] = *b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz{|";
/// Kinds of blocks.
const RAW: u32 = 0;
const COMPRESSED: u32 = 2;

/// Where the digits and letters at the end begin, if they are nearly all bytes.
pub(super) fn begin(page: &[u8]) -> Option<usize> {
    /// Bytes that are looked at without a branch.
    const AT_A_TIME: usize = 64;
    let is = |all: bool, b: &u8| all & b.is_ascii_alphanumeric();
    let other = page.rchunks(AT_A_TIME).position(|some| !some.iter().fold(true, is));
    let begin = other.map_or(0, |chunks| {
        let some = &page[..page.len() - chunks * AT_A_TIME];
        some.iter().rposition(|b| !b.is_ascii_alphanumeric()).map_or(0, |at| at + 1)
    });
    let len = page.len() - begin;
    (len >= FEWEST && len > begin * 3).then_some(begin)
}

/// How long a frame is, about.
pub(super) fn len(page: &[u8], begin: usize) -> usize {
    begin + (page.len() - begin) * 6 / 8
}

/// Appends the frame of a page whose bytes are digits and letters from `begin` on.
pub(super) fn frame(page: &[u8], begin: usize, out: &mut Vec<u8>) {
    // One segment, whose length has four bytes.
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000]);
    out.extend_from_slice(&(page.len() as u32).to_le_bytes());
    let (first, texts) = page.split_at(begin);
    for part in first.chunks(BLOCK) {
        header(part.len(), RAW, false, out);
        out.extend_from_slice(part);
    }
    let mut blocks = texts.chunks(BLOCK).peekable();
    while let Some(texts) = blocks.next() {
        let is_last = blocks.peek().is_none();
        if texts.len() < FEWEST {
            header(texts.len(), RAW, is_last, out);
            out.extend_from_slice(texts);
            continue;
        }
        let start = out.len();
        header(0, COMPRESSED, is_last, out);
        block(texts, out);
        let mut place = Vec::new();
        header(out.len() - start - 3, COMPRESSED, is_last, &mut place);
        out[start..start + 3].copy_from_slice(&place);
    }
}

/// What is before a block.
fn header(len: usize, kind: u32, is_last: bool, out: &mut Vec<u8>) {
    let head = u32::from(is_last) | kind << 1 | (len as u32) << 3;
    out.extend_from_slice(&head.to_le_bytes()[..3]);
}

/// A block of literals in four streams, without sequences.
fn block(texts: &[u8], out: &mut Vec<u8>) {
    const LITERALS: u64 = 2 | 3 << 2;
    let start = out.len();
    out.extend_from_slice(&[0; 5]);
    code(out);
    let table = out.len();
    out.extend_from_slice(&[0; 6]);
    let mut before = out.len();
    for (at, part) in texts.chunks(texts.len().div_ceil(4)).enumerate() {
        stream(part, out);
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

/// The weights of all bytes up to the one before the last that has a code, two a byte.
fn code(out: &mut Vec<u8>) {
    let [.., last] = CODED;
    let weight = |byte: u8| u8::from(byte < last && CODED.contains(&byte));
    out.push(127 + last);
    out.extend((0..last).step_by(2).map(|byte| weight(byte) << 4 | weight(byte + 1)));
}

/// The codes of texts, those of the last bytes first, and a bit behind them.
fn stream(texts: &[u8], out: &mut Vec<u8>) {
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

/// The codes of eight digits and letters, one after another.
#[inline(always)]
fn six_bits(bytes: u64) -> u64 {
    /// One in every byte.
    const ONES: u64 = 0x0101_0101_0101_0101;
    let from = |first: u8| (bytes + ONES * u64::from(0x80 - first)) >> 7 & ONES;
    // Their places among those that have a code.
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
        let begin = begin(page)?;
        let mut out = b"before".to_vec();
        frame(page, begin, &mut out);
        let frame = &out[6..];
        assert_eq!(zstd::bulk::decompress(frame, page.len()).unwrap(), page);
        assert!(frame.len().abs_diff(len(page, begin)) < 200 + page.len() / 500);
        Some(begin)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The library reads the frames.
        #[test]
        fn frames_are_read(
            before in proptest::collection::vec(0_u8.., 0..700),
            texts in proptest::collection::vec(0_usize..62, 0..3_000),
            times in 1_usize..200,
        ) {
            let mut page = before;
            page.push(0);
            let begin = page.len();
            (0..times).for_each(|_| page.extend(texts.iter().map(|at| CODED[*at])));
            let is_enough = page.len() - begin >= FEWEST && page.len() - begin > begin * 3;
            prop_assert_eq!(check(&page), is_enough.then_some(begin));
        }
    }

    #[test]
    fn blocks_may_be_of_any_length() {
        let texts: Vec<u8> = (0..2 * BLOCK + FEWEST + 9).map(|n| CODED[n * 7 % 62]).collect();
        for len in (FEWEST..FEWEST + 40).chain(BLOCK - 9..BLOCK + 9).chain(2 * BLOCK..texts.len()) {
            // Not every length of the last ones.
            if len < 2 * BLOCK || len % 97 < 8 {
                assert_eq!(check(&texts[..len]), Some(0), "{len}");
            }
        }
        let mut page = vec![0; BLOCK + 9];
        (0..2).for_each(|_| page.extend_from_slice(&texts));
        assert_eq!(check(&page), Some(BLOCK + 9));
        assert_eq!(check(&texts[..FEWEST - 1]), None);
        assert_eq!(check(&[b'-'; 3 * FEWEST]), None);
    }
}
