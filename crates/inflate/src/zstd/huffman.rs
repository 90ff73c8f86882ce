//! Huffman codes of literals (RFC 8878 section 4.2.1): weights and decoding table.

use super::Damage;
use super::bits::Backward;
use super::fse::Counts;

/// Length of the longest code, in bits.
pub(super) const LOG: u32 = 11;

/// Entries of a table, which is indexed by as many bits as the longest code has.
pub(super) const ENTRIES: usize = 1 << LOG;

/// Histograms that are counted in parallel.
const QUARTERS: usize = 4;
const QUARTER: usize = 256 / QUARTERS;

/// Maximum size of a description, in bytes: one for its length, and up to 127.
pub(super) const MAX_BYTES: usize = 128;

/// Log of the largest FSE table for weights.
const WEIGHT_LOG: u32 = 6;

/// Weights are less than this.
const WEIGHTS: usize = LOG as usize + 1;

/// Length of the description of codes at the beginning of `bytes`.
pub(super) fn described(bytes: &[u8]) -> Result<usize, Damage> {
    let length = match bytes.first() {
        None => return Err(Damage::Truncated),
        Some(&coded @ ..128) => 1 + usize::from(coded),
        Some(&plain) => 1 + (usize::from(plain) - 127).div_ceil(2),
    };
    if length > bytes.len() { Err(Damage::Truncated) } else { Ok(length) }
}

/// The meaning of the next bits: the lower byte is the code's length, the upper byte its literal.
pub(super) type Table = [u16; ENTRIES];

/// Builds the table of a description.
pub(super) fn build(table: &mut Table, description: &[u8]) -> Result<(), Damage> {
    let mut weights = [0_u8; 256];
    let known = weights_of(description, &mut weights)?;
    let total = weights[..known].iter().try_fold(0_u32, |total, &weight| {
        (usize::from(weight) < WEIGHTS).then_some(total + (1 << weight >> 1))
    });
    let total = total.filter(|&total| total > 0).ok_or(Damage::Codes)?;
    // The last weight completes the sum to a power of two.
    let log = 32 - total.leading_zeros();
    let rest = (1 << log) - total;
    if log > LOG || !rest.is_power_of_two() {
        return Err(Damage::Codes);
    }
    weights[known] = rest.trailing_zeros() as u8 + 1;
    // Longer codes come first, those of one length in the order of literals. Counting into one
    // histogram stalls when neighbours are equal; four histograms are faster.
    let mut quarters = [[0_u16; WEIGHTS.next_power_of_two()]; QUARTERS];
    for at in 0..QUARTER {
        for (quarter, counts) in quarters.iter_mut().enumerate() {
            let weight = usize::from(weights[quarter * QUARTER + at]);
            counts[weight % counts.len()] += 1;
        }
    }
    let mut ranks = [0_u16; WEIGHTS];
    let mut begun = 0;
    // Literals without a code are sorted last.
    for weight in (1..WEIGHTS).chain([0]) {
        for quarter in &mut quarters {
            let count = std::mem::replace(&mut quarter[weight], begun);
            begun += count;
            ranks[weight] += count;
        }
    }
    // Codes of the greatest length come in pairs.
    if ranks[1] < 2 || ranks[1] % 2 != 0 {
        return Err(Damage::Codes);
    }
    let mut sorted = [0_u8; 256];
    for at in 0..QUARTER {
        for (quarter, next) in quarters.iter_mut().enumerate() {
            let literal = quarter * QUARTER + at;
            let place = &mut next[usize::from(weights[literal]) % WEIGHTS.next_power_of_two()];
            sorted[usize::from(*place) % 256] = literal as u8;
            *place += 1;
        }
    }
    let (mut rest, mut sorted) = (&mut table[..], sorted.iter());
    // No weight exceeds the length of the longest code, since the sum would exceed the total.
    for (weight, &count) in ranks.iter().enumerate().take(log as usize + 1).skip(1) {
        let n = 1 << (weight - 1) << (LOG - log);
        let bits = log as u16 + 1 - weight as u16;
        for &literal in sorted.by_ref().take(usize::from(count)) {
            let (these, behind) = rest.split_at_mut_checked(n).ok_or(Damage::Codes)?;
            let entry = u16::from(literal) << 8 | bits;
            // The lengths are powers of two; most are shorter than the usual fill width.
            match these.as_chunks_mut::<4>() {
                (four, []) => four.iter_mut().for_each(|four| *four = [entry; 4]),
                (_, few) => few.fill(entry),
            }
            rest = behind;
        }
    }
    Ok(())
}

/// Reads all weights but the last, up to 255; returns their number.
fn weights_of(description: &[u8], weights: &mut [u8; 256]) -> Result<usize, Damage> {
    let (&head, coded) = description.split_first().ok_or(Damage::Truncated)?;
    if head >= 128 {
        let known = usize::from(head) - 127;
        for (at, weight) in weights[..known].iter_mut().enumerate() {
            let two = coded.get(at / 2).ok_or(Damage::Truncated)?;
            *weight = if at % 2 == 0 { two >> 4 } else { two & 15 };
        }
        return Ok(known);
    }
    let (counts, used) = Counts::read(coded, WEIGHT_LOG, WEIGHTS)?;
    let mut states = [(0_u8, 0_u32, 0_u32); 1 << WEIGHT_LOG];
    counts.build(|at, weight, bits, next| states[at % states.len()] = (weight, bits, next));
    let mut bits = Backward::new(coded.get(used..).unwrap_or_default())?;
    // Two states alternate until the bits do not suffice for the next one.
    let mut at = [bits.take(counts.log), bits.take(counts.log)];
    if bits.left < 0 {
        return Err(Damage::Truncated);
    }
    let mut known = 0;
    loop {
        let turn = known % 2;
        let (weight, n, next) = states[at[turn] as usize % states.len()];
        weights[known] = weight;
        known += 1;
        at[turn] = next + bits.take(n);
        if known >= 255 {
            return Err(Damage::Codes);
        }
        if bits.left < 0 {
            weights[known] = states[at[1 - turn] as usize % states.len()].0;
            return Ok(known + 1);
        }
    }
}
