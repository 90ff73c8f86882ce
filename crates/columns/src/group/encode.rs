//! Encodings of the values of Parquet pages.

use std::iter;

use super::series::Part;

/// Appends levels or numbers of dictionary entries, all below 2^`width`: runs of equal values, and the others packed.
pub(super) fn hybrid<T>(values: Part<'_, T>, width: u32, out: &mut Vec<u8>)
where
    T: Copy + PartialEq + Into<u64>,
{
    /// Values are packed in groups of eight.
    const GROUP: usize = 8;
    let values = match values.united() {
        Part::Same(value, times) => return run_of(value, times, width, out),
        Part::All(values) => values,
    };
    // A run costs about three bytes, with the beginning of what is packed after it.
    let worth = GROUP + 24 / width.max(1) as usize;
    // Where the values begin that are to be packed.
    let mut from = 0;
    let mut at = 0;
    while let Some(group) = values.get(at..at + GROUP) {
        let [first, ..] = *group else { break };
        if common(group).is_some() {
            let rest = &values[at..];
            let whole = rest.chunks_exact(GROUP).take_while(|group| common(group) == Some(first));
            let run = whole.count() * GROUP;
            let run = run + rest[run..].iter().take_while(|v| **v == first).count();
            if run >= worth {
                packed_run(&values[from..at], width, out);
                run_of(first, run, width, out);
                at += run;
                from = at;
                continue;
            }
        }
        at += GROUP;
    }
    packed_run(&values[from..], width, out);
}

/// A run of equal values.
fn run_of<T: Into<u64>>(value: T, values: usize, width: u32, out: &mut Vec<u8>) {
    varint((values as u64) << 1, out);
    let bytes = value.into().to_le_bytes();
    out.extend_from_slice(&bytes[..width.div_ceil(8) as usize]);
}

/// The value that all of some are equal to.
#[inline]
pub(super) fn common<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    /// Compared without a branch.
    const AT_A_TIME: usize = 32;
    let first = *values.first()?;
    let same = |some: &[T]| some.iter().fold(true, |same, v| same & (*v == first));
    values.chunks(AT_A_TIME).all(same).then_some(first)
}

/// The last group may be a part of one.
fn packed_run<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let full = groups * 8;
    let end = out.len() + full * width as usize / 8;
    pack(values, width, out);
    out.resize(end, 0);
}

/// Appends bits, the first ones lowest.
pub(super) fn bits(values: Part<'_, u8>, out: &mut Vec<u8>) {
    match values {
        Part::All(values) => pack(values, 1, out),
        Part::Same(value, times) => {
            let end = out.len() + times.div_ceil(8);
            out.resize(end, if value == 0 { 0 } else { 0xff });
            // Those behind the last one are 0.
            if let (Some(last), rest @ 1..) = (out.last_mut(), times % 8) {
                *last &= (1 << rest) - 1;
            }
        }
    }
}

/// Appends the low bits of values, the first ones lowest, up to the last byte that has some.
pub(super) fn pack<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if width > 32 {
        return pack_wide(values, width, out);
    }
    let start = out.len();
    let len = (values.len() * width as usize).div_ceil(8);
    // A whole word is stored at a time, so the last one needs room.
    out.resize(start + len + 8, 0);
    let mut words = out[start..].chunks_exact_mut(4);
    let (mut word, mut bits) = (0_u64, 0);
    for v in values {
        word |= (*v).into() << bits;
        bits += width;
        if bits >= 32 {
            if let Some(place) = words.next() {
                place.copy_from_slice(&(word as u32).to_le_bytes());
            }
            word >>= 32;
            bits -= 32;
        }
    }
    if let Some(place) = words.next() {
        place.copy_from_slice(&(word as u32).to_le_bytes());
    }
    out.truncate(start + len);
}

fn pack_wide<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
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

/// Appends integers as the packed differences of neighbours (`DELTA_BINARY_PACKED`).
pub(super) fn delta(values: Part<'_, i64>, out: &mut Vec<u8>) {
    const BLOCK: usize = 128;
    const MINIBLOCK: usize = 32;
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(values.len() as u64, out);
    let values = match values.united() {
        Part::Same(value, times) => {
            varint(zigzag(value), out);
            // Each block has the least difference and the widths of what is above it.
            let blocks = (times - 1).div_ceil(BLOCK);
            out.resize(out.len() + blocks * (1 + BLOCK / MINIBLOCK), 0);
            return;
        }
        Part::All(values) => values,
    };
    let Some((first, rest)) = values.split_first() else { return varint(0, out) };
    varint(zigzag(*first), out);
    let mut before = *first;
    for block in rest.chunks(BLOCK) {
        let mut deltas = [0_i64; BLOCK];
        let previous = iter::once(&before).chain(block);
        for ((to, v), previous) in deltas.iter_mut().zip(block).zip(previous) {
            *to = v.wrapping_sub(*previous);
        }
        before = block.last().copied().unwrap_or(before);
        if let Some(same) = common(&deltas[..block.len()]) {
            varint(zigzag(same), out);
            out.extend_from_slice(&[0; BLOCK / MINIBLOCK]);
            continue;
        }
        let least = deltas[..block.len()].iter().fold(i64::MAX, |least, d| least.min(*d));
        varint(zigzag(least), out);
        let mut above = [0_u64; BLOCK];
        for (to, d) in above.iter_mut().zip(&deltas[..block.len()]) {
            *to = d.wrapping_sub(least) as u64;
        }
        let (parts, _) = above.as_chunks::<MINIBLOCK>();
        let width = |part: &[u64; MINIBLOCK]| {
            u64::BITS - part.iter().fold(0, |all, v| all | v).leading_zeros()
        };
        out.extend(parts.iter().map(|part| width(part) as u8));
        for part in parts {
            pack(part, width(part), out);
        }
    }
}

/// Appends a number, seven bits a byte.
pub(super) fn varint(mut v: u64, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Small numbers for small ones of either sign.
fn zigzag(v: i64) -> u64 {
    (v << 1 ^ v >> 63) as u64
}

/// Bits that a number needs.
pub(super) fn width_of(v: u64) -> u32 {
    u64::BITS - v.leading_zeros()
}
