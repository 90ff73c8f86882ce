//! Encodings of levels and values in Parquet pages.

use std::iter;

use super::series::SeriesSlice;

/// Appends levels or dictionary indices, all below 2^`width`, in the RLE/bit-packing hybrid encoding (`RLE`).
pub(super) fn rle_bit_packed<T>(values: SeriesSlice<'_, T>, width: u32, out: &mut Vec<u8>)
where
    T: Copy + PartialEq + Into<u64>,
{
    /// Values are packed in groups of eight.
    const GROUP: usize = 8;
    let values = match values.collapsed() {
        SeriesSlice::Constant(value, times) => return rle_run(value, times, width, out),
        SeriesSlice::Slice(values) => values,
    };
    // An RLE run and the header of the bit-packed run after it cost about three bytes.
    let min_run = GROUP + 24 / width.max(1) as usize;
    // Index of the first value of the next bit-packed run.
    let mut pending = 0;
    let mut at = 0;
    while let Some(group) = values.get(at..at + GROUP) {
        let [first, ..] = *group else { break };
        if common_value(group).is_some() {
            let rest = &values[at..];
            let whole =
                rest.chunks_exact(GROUP).take_while(|group| common_value(group) == Some(first));
            let run = whole.count() * GROUP;
            let run = run + rest[run..].iter().take_while(|v| **v == first).count();
            if run >= min_run {
                bit_packed_run(&values[pending..at], width, out);
                rle_run(first, run, width, out);
                at += run;
                pending = at;
                continue;
            }
        }
        at += GROUP;
    }
    bit_packed_run(&values[pending..], width, out);
}

/// Appends an RLE run.
fn rle_run<T: Into<u64>>(value: T, values: usize, width: u32, out: &mut Vec<u8>) {
    varint((values as u64) << 1, out);
    let bytes = value.into().to_le_bytes();
    out.extend_from_slice(&bytes[..width.div_ceil(8) as usize]);
}

/// The value that all values are equal to; `None` if they differ.
#[inline]
pub(super) fn common_value<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    /// Number of values that are compared without a branch.
    const CHUNK: usize = 32;
    let first = *values.first()?;
    let same = |chunk: &[T]| chunk.iter().fold(true, |same, v| same & (*v == first));
    values.chunks(CHUNK).all(same).then_some(first)
}

/// Appends a bit-packed run. The last group of eight values is padded with zeros.
fn bit_packed_run<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let full = groups * 8;
    let end = out.len() + full * width as usize / 8;
    bit_pack(values, width, out);
    out.resize(end, 0);
}

/// Appends booleans as bits, least significant bit first (`PLAIN`).
pub(super) fn bools(values: SeriesSlice<'_, u8>, out: &mut Vec<u8>) {
    match values {
        SeriesSlice::Slice(values) => bit_pack(values, 1, out),
        SeriesSlice::Constant(value, times) => {
            let end = out.len() + times.div_ceil(8);
            out.resize(end, if value == 0 { 0 } else { 0xff });
            // Bits after the last value are 0.
            if let (Some(last), rest @ 1..) = (out.last_mut(), times % 8) {
                *last &= (1 << rest) - 1;
            }
        }
    }
}

/// Appends the low `width` bits of each value, least significant bit first; the last byte is padded with zeros.
pub(super) fn bit_pack<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if width > 32 {
        return bit_pack_wide(values, width, out);
    }
    let start = out.len();
    let len = (values.len() * width as usize).div_ceil(8);
    // Whole words are stored, so the buffer needs padding for the last one.
    out.resize(start + len + 8, 0);
    let mut words = out[start..].chunks_exact_mut(4);
    let (mut word, mut bits) = (0_u64, 0);
    for v in values {
        word |= (*v).into() << bits;
        bits += width;
        if bits >= 32 {
            if let Some(slot) = words.next() {
                slot.copy_from_slice(&(word as u32).to_le_bytes());
            }
            word >>= 32;
            bits -= 32;
        }
    }
    if let Some(slot) = words.next() {
        slot.copy_from_slice(&(word as u32).to_le_bytes());
    }
    out.truncate(start + len);
}

fn bit_pack_wide<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let (mut word, mut bits) = (0_u128, 0);
    for v in values {
        word |= u128::from((*v).into()) << bits;
        bits += width;
        while bits >= 8 {
            out.push(word as u8);
            word >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(word as u8);
    }
}

/// Appends integers as bit-packed differences of neighbours (`DELTA_BINARY_PACKED`).
pub(super) fn delta_binary_packed(values: SeriesSlice<'_, i64>, out: &mut Vec<u8>) {
    const BLOCK: usize = 128;
    const MINIBLOCK: usize = 32;
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(values.len() as u64, out);
    let values = match values.collapsed() {
        SeriesSlice::Constant(value, times) => {
            varint(zigzag(value), out);
            // Each block consists of its minimum delta, 0, and the bit widths of its miniblocks, 0 too.
            let blocks = (times - 1).div_ceil(BLOCK);
            out.resize(out.len() + blocks * (1 + BLOCK / MINIBLOCK), 0);
            return;
        }
        SeriesSlice::Slice(values) => values,
    };
    let Some((first, rest)) = values.split_first() else { return varint(0, out) };
    varint(zigzag(*first), out);
    let mut previous_value = *first;
    for block in rest.chunks(BLOCK) {
        let mut deltas = [0_i64; BLOCK];
        let previous = iter::once(&previous_value).chain(block);
        for ((to, v), previous) in deltas.iter_mut().zip(block).zip(previous) {
            *to = v.wrapping_sub(*previous);
        }
        previous_value = block.last().copied().unwrap_or(previous_value);
        if let Some(same) = common_value(&deltas[..block.len()]) {
            varint(zigzag(same), out);
            out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
            continue;
        }
        let min = deltas[..block.len()].iter().fold(i64::MAX, |min, d| min.min(*d));
        varint(zigzag(min), out);
        let mut offsets = [0_u64; BLOCK];
        for (to, d) in offsets.iter_mut().zip(&deltas[..block.len()]) {
            *to = d.wrapping_sub(min) as u64;
        }
        let (parts, _) = offsets.as_chunks::<MINIBLOCK>();
        let width = |part: &[u64; MINIBLOCK]| {
            u64::BITS - part.iter().fold(0, |all, v| all | v).leading_zeros()
        };
        out.extend(parts.iter().map(|part| width(part) as u8));
        for part in parts {
            bit_pack(part, width(part), out);
        }
    }
}

/// Appends an unsigned LEB128 integer.
pub(super) fn varint(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Zigzag encoding: maps signed integers of small magnitude to small unsigned ones.
fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

/// Number of bits that a value needs.
pub(super) fn bit_width(v: u64) -> u32 {
    u64::BITS - v.leading_zeros()
}
