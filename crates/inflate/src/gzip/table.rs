//! Decoding tables of prefix codes: one lookup for nearly all symbols, two for the rest.
//!
//! An entry holds all that decoding needs: the number of bits to consume, including the extra bits
//! after the code, and the meaning. Its bits:
//!
//! ```text
//! 31       a literal
//! 16..=30  the literal, the base of a length or distance, or where a second table begins
//! 15       not a plain symbol: a second table, the end of the block, or no code at all
//! 14       the end of the block, where bit 15 is set
//! 13       a second table, where bit 15 is set
//! 8..=11   bits of the code alone; for a second table, the number of bits that index it
//! 0..=5    bits to consume, extra bits included
//! ```

use super::Damage;

/// Bits of the longest code.
pub(super) const MAX_CODE_BITS: usize = 15;

/// Bits that index the first-level table of literals and lengths.
pub(super) const LITERAL_BITS: u32 = 11;

/// Bits that index the first-level table of distances.
pub(super) const DISTANCE_BITS: u32 = 9;

/// Bits that index the table of code lengths, none of which has a longer code.
pub(super) const PRECODE_BITS: u32 = 7;

/// Entries for literals and lengths, second-level tables included. 288 codes of at most 15 bits
/// with a first level of 11 bits need 2,342 (the maximum by enumeration); a power of two lets an
/// index be masked instead of checked.
pub(super) const LITERALS: usize = 4096;

/// Entries for distances, second-level tables included: at most 594 for 32 codes with a first level
/// of 9 bits.
pub(super) const DISTANCES: usize = 1024;

/// Maximum number of symbols of any alphabet.
const MAX_SYMBOLS: usize = 288;

/// Histograms that are counted in parallel.
const QUARTERS: usize = 4;

pub(super) const LITERAL: u32 = 1 << 31;
pub(super) const SPECIAL: u32 = 1 << 15;
pub(super) const END: u32 = 1 << 14;
pub(super) const SECOND: u32 = 1 << 13;

/// The entry of unused codes of an incomplete set; one bit long, as such a set has at most one code
/// of one bit.
const UNUSED_CODE: u32 = SPECIAL | 1 << 8 | 1;

/// Bits that an entry consumes.
#[inline(always)]
pub(super) fn consumed_bits(entry: u32) -> u32 {
    entry & 63
}

/// The meaning of an entry: a literal, a base, or the start of its second-level table.
#[inline(always)]
pub(super) fn value(entry: u32) -> u32 {
    (entry >> 16) & 0x7fff
}

/// Base plus extra bits: `bits` are those that the entry was looked up with.
#[inline(always)]
pub(super) fn number(entry: u32, bits: u64) -> u32 {
    let all = bits & !(u64::MAX << consumed_bits(entry));
    // The entry is neither a literal nor special: the bits next to the value and the code's length
    // are zero and need no mask.
    (entry >> 16) + (all >> ((entry >> 8) & 63)) as u32
}

/// The index into the second-level table of `entry`; `first` is the number of first-level bits.
#[inline(always)]
pub(super) fn second(entry: u32, bits: u64, first: u32) -> usize {
    value(entry) as usize + ((bits >> first) & !(u64::MAX << ((entry >> 8) & 15))) as usize
}

/// An entry without its count of bits.
const fn plain(value: u32, extra: u32) -> u32 {
    value << 16 | extra
}

/// 256 literals, the end of the block, then lengths and their extra bits (RFC 1951 section 3.2.5).
/// The last two codes of fixed blocks are invalid.
pub(super) const LITERAL_MEANINGS: [u32; 288] = {
    let mut all = [SPECIAL; 288];
    let mut symbol = 0;
    while symbol < 256 {
        all[symbol] = LITERAL | plain(symbol as u32, 0);
        symbol += 1;
    }
    all[256] = SPECIAL | END;
    let (mut base, mut code) = (3, 0);
    while code < 28 {
        let extra = if code < 8 { 0 } else { (code - 4) / 4 };
        all[257 + code as usize] = plain(base, extra);
        base += 1 << extra;
        code += 1;
    }
    // The longest length has a code of its own, so the code before it ends one earlier.
    all[285] = plain(258, 0);
    all
};

/// Distances and their extra bits; the last two codes of fixed blocks are invalid.
pub(super) const DISTANCE_MEANINGS: [u32; 32] = {
    let mut all = [SPECIAL; 32];
    let (mut base, mut code) = (1, 0);
    while code < 30 {
        let extra = if code < 4 { 0 } else { (code - 2) / 2 };
        all[code as usize] = plain(base, extra);
        base += 1 << extra;
        code += 1;
    }
    all
};

/// Code lengths, and the three symbols that repeat one; see [`super::inflate`].
pub(super) const PRECODE_MEANINGS: [u32; 19] = {
    let mut all = [0; 19];
    let mut symbol = 0;
    while symbol < 19 {
        all[symbol] = plain(symbol as u32, 0);
        symbol += 1;
    }
    all
};

/// Fills `table` for codes of the given `lengths`; `meanings[n]` is the meaning of symbol `n`.
///
/// Sets of codes must be complete. As in zlib, `lone` allows a single code of one bit, or no code
/// at all.
pub(super) fn build(
    table: &mut [u32],
    first: u32,
    lengths: &[u8],
    meanings: &[u32],
    lone: bool,
) -> Result<(), Damage> {
    // Counting into one histogram stalls when neighbours are equal; four histograms of a quarter of
    // the symbols each are faster.
    let mut padded = [0_u8; MAX_SYMBOLS];
    padded.get_mut(..lengths.len()).ok_or(Damage::Codes)?.copy_from_slice(lengths);
    let each = lengths.len().div_ceil(QUARTERS);
    let mut quarters = [[0_u16; MAX_CODE_BITS + 1]; QUARTERS];
    for symbol in 0..each {
        for (quarter, counts) in quarters.iter_mut().enumerate() {
            counts[usize::from(padded[quarter * each + symbol] & 15)] += 1;
        }
    }
    // Each length doubles the number of available codes.
    let mut left = 1_i32;
    let mut counts = [0_u16; MAX_CODE_BITS + 1];
    let mut codes = 0;
    for length in (1..=MAX_CODE_BITS).chain([0]) {
        // From here on this holds the position of the next symbol of each length; symbols without a
        // code go last.
        let begun = codes;
        for quarter in &mut quarters {
            codes += std::mem::replace(&mut quarter[length], codes);
        }
        if length == 0 {
            codes = begun;
            break;
        }
        counts[length] = codes - begun;
        left = 2 * left - i32::from(counts[length]);
        if left < 0 {
            return Err(Damage::Codes);
        }
    }
    let codes = usize::from(codes);
    let mut size = 1_usize << first;
    if left > 0 {
        if codes > 1 || codes == 1 && !(lone && counts[1] == 1) || codes == 0 && !lone {
            return Err(Damage::Codes);
        }
        // The only codes of such a set are filled in below.
        table[..size].fill(UNUSED_CODE);
    }
    // Symbols by length, in each by number: the order of their codes.
    let mut sorted = [0_u16; MAX_SYMBOLS];
    for symbol in 0..each {
        for (quarter, next) in quarters.iter_mut().enumerate() {
            let symbol = quarter * each + symbol;
            let at = &mut next[usize::from(padded[symbol] & 15)];
            sorted[usize::from(*at)] = symbol as u16;
            *at += 1;
        }
    }
    let mut sorted = sorted[..codes].iter().map(|&symbol| meanings[usize::from(symbol)]);
    // Codes are sent from their highest bit down, so they count with their bits reversed.
    let mut next = 0_u32;
    let mut filled = 1_usize;
    for length in 1..=first {
        next <<= 1;
        // All shorter codes are in place: the table is doubled by copying itself.
        if left == 0 && length > 1 {
            table.copy_within(..filled, filled);
        }
        filled = 1 << length;
        for _ in 0..counts[length as usize] {
            let Some(meaning) = sorted.next() else { break };
            let entry = coded(meaning, length);
            let code = reversed(next, length);
            if left == 0 {
                table[code as usize] = entry;
            } else {
                table[..size].iter_mut().step_by(filled).for_each(|e| *e = entry);
            }
            next += 1;
        }
    }
    // Longer codes with the same first bits form a group with a second-level table.
    let (mut group, mut within, mut begin) = (u32::MAX, 0, 0);
    for length in first + 1..=MAX_CODE_BITS as u32 {
        next <<= 1;
        let mut count = counts[length as usize];
        while count > 0 {
            let Some(meaning) = sorted.next() else { break };
            let code = reversed(next, length);
            let of = code & ((1 << first) - 1);
            if of != group {
                group = of;
                // The table is as large as the longest code of the group needs.
                within = length - first;
                let mut room = 1_i32 << within;
                let mut used = i32::from(count);
                while used < room && ((first + within) as usize) < MAX_CODE_BITS {
                    room = (room - used) << 1;
                    within += 1;
                    used = i32::from(counts[(first + within) as usize]);
                }
                begin = size;
                size += 1 << within;
                if size > table.len() {
                    return Err(Damage::Codes);
                }
                table[of as usize] = SPECIAL | SECOND | (begin as u32) << 16 | within << 8 | first;
            }
            let entry = coded(meaning, length);
            let from = begin + (code >> first) as usize;
            let step = 1 << (length - first);
            table[from..begin + (1 << within)].iter_mut().step_by(step).for_each(|e| *e = entry);
            next += 1;
            count -= 1;
        }
    }
    Ok(())
}

/// The entry of a code of `length` bits.
fn coded(meaning: u32, length: u32) -> u32 {
    // The low bits of a meaning are extra bits; the field of the code's own length is empty.
    meaning + length * 0x101
}

/// A code of `length` bits, the first of them lowest.
fn reversed(code: u32, length: u32) -> u32 {
    let [low, high, ..] = code.to_le_bytes();
    let [low, high] = [low, high].map(|byte| u32::from(REVERSED[usize::from(byte)]));
    (low << 8 | high) >> (16 - length)
}

/// Bytes with their bits reversed.
const REVERSED: [u8; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        all[byte] = (byte as u8).reverse_bits();
        byte += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_are_those_of_the_standard() {
        let length = |code: usize| (value(LITERAL_MEANINGS[code]), LITERAL_MEANINGS[code] & 63);
        assert_eq!(length(257), (3, 0));
        assert_eq!(length(264), (10, 0));
        assert_eq!(length(265), (11, 1));
        assert_eq!(length(272), (31, 2));
        assert_eq!(length(284), (227, 5));
        assert_eq!(length(285), (258, 0));
        let distance = |code: usize| (value(DISTANCE_MEANINGS[code]), DISTANCE_MEANINGS[code] & 63);
        assert_eq!(distance(3), (4, 0));
        assert_eq!(distance(4), (5, 1));
        assert_eq!(distance(29), (24_577, 13));
    }

    /// Looks up like the decoder.
    fn lookup(table: &[u32], first: u32, bits: u64) -> u32 {
        let entry = table[(bits & ((1 << first) - 1)) as usize];
        if entry & SECOND != 0 && entry & SPECIAL != 0 {
            return table[second(entry, bits, first)];
        }
        entry
    }

    #[test]
    fn the_example_of_the_standard() {
        // RFC 1951 section 3.2.2: lengths 3, 3, 3, 3, 3, 2, 4, 4 give 010, 011, 100, 101, 110, 00,
        // 1110, 1111.
        let lengths = [3, 3, 3, 3, 3, 2, 4, 4];
        for first in [2, 3, 4, 7] {
            let mut table = [0; 1024];
            build(&mut table, first, &lengths, &DISTANCE_MEANINGS, false).unwrap();
            for (symbol, (code, length)) in [
                (0b010_u64, 3),
                (0b011, 3),
                (0b100, 3),
                (0b101, 3),
                (0b110, 3),
                (0b00, 2),
                (0b1110, 4),
                (0b1111, 4),
            ]
            .into_iter()
            .enumerate()
            {
                // The bits after the code must not matter.
                for behind in [0, 0x5a, u64::MAX] {
                    let reversed = code.reverse_bits() >> (64 - length);
                    let entry = lookup(&table, first, reversed | behind << length);
                    assert_eq!(value(entry), value(DISTANCE_MEANINGS[symbol]), "{first} {symbol}");
                    assert_eq!((entry >> 8) & 15, length);
                    let extra = DISTANCE_MEANINGS[symbol] & 63;
                    assert_eq!(consumed_bits(entry), length + extra);
                }
            }
        }
    }

    #[test]
    fn sets_that_are_no_codes() {
        let mut table = [0; 1024];
        let mut of = |lengths: &[u8], lone| {
            build(&mut table, DISTANCE_BITS, lengths, &DISTANCE_MEANINGS, lone)
        };
        assert_eq!(of(&[1, 1, 1], true), Err(Damage::Codes));
        assert_eq!(of(&[2, 2, 2], true), Err(Damage::Codes));
        assert_eq!(of(&[0, 2, 0], true), Err(Damage::Codes));
        assert_eq!(of(&[0, 1, 0], false), Err(Damage::Codes));
        assert_eq!(of(&[0, 0], false), Err(Damage::Codes));
        of(&[0, 0], true).unwrap();
        of(&[0, 1, 0], true).unwrap();
        assert_eq!(value(table[0]), 2);
        assert_eq!(table[1], UNUSED_CODE);
        assert_eq!(value(table[510]), 2);
    }

    #[test]
    fn the_largest_tables_fit() {
        // As many second-level tables as possible: one code of each length, the rest of the
        // longest.
        for (symbols, first, room) in
            [(288, LITERAL_BITS, LITERALS), (32, DISTANCE_BITS, DISTANCES)]
        {
            for longest in first as u8 + 1..=15 {
                let mut lengths: Vec<u8> = (1..longest).collect();
                let mut left = 2_usize;
                // Splits the longest code repeatedly while symbols remain.
                lengths.extend([longest, longest]);
                while lengths.len() < symbols {
                    let Some(at) = lengths.iter().position(|&l| l < longest) else { break };
                    lengths[at] += 1;
                    let same = lengths[at];
                    lengths.push(same);
                    left += 1;
                }
                let mut table = vec![0; room];
                build(&mut table, first, &lengths, &LITERAL_MEANINGS, false).unwrap();
                assert!(left >= 2);
            }
        }
    }
}
