//! Huffman codes of literals (RFC 8878 section 4.2.1): weights, and the table they make.

use super::Damage;
use super::bits::Backward;
use super::fse::Counts;

/// The longest code.
pub(super) const LOG: u32 = 11;

/// Entries of a table, which is looked up with as many bits as the longest code has.
pub(super) const ENTRIES: usize = 1 << LOG;

/// Bytes of a description: one that says how long it is, and up to so many.
pub(super) const MOST_BYTES: usize = 128;

/// The largest table of states that weights may be coded with.
const WEIGHT_LOG: u32 = 6;

/// Weights are less.
const WEIGHTS: usize = LOG as usize + 1;

/// How long the description of codes is at the beginning of `bytes`.
pub(super) fn described(bytes: &[u8]) -> Result<usize, Damage> {
    let length = match bytes.first() {
        None => return Err(Damage::Cut),
        Some(&coded @ ..128) => 1 + usize::from(coded),
        Some(&plain) => 1 + (usize::from(plain) - 127).div_ceil(2),
    };
    if length > bytes.len() { Err(Damage::Cut) } else { Ok(length) }
}

/// What the next bits mean: in the lower byte how many of them are a code, in the upper byte its literal.
pub(super) type Table = [u16; ENTRIES];

/// Makes the table that a description means.
pub(super) fn build(table: &mut Table, description: &[u8]) -> Result<(), Damage> {
    let mut weights = [0_u8; 256];
    let known = weights_of(description, &mut weights)?;
    let mut total = 0_u32;
    let mut ranks = [0_u32; WEIGHTS];
    for &weight in &weights[..known] {
        let rank = ranks.get_mut(usize::from(weight)).ok_or(Damage::Codes)?;
        *rank += 1;
        total += 1 << weight >> 1;
    }
    if total == 0 {
        return Err(Damage::Codes);
    }
    // The last weight is what makes the whole a power of two.
    let log = 32 - total.leading_zeros();
    let rest = (1 << log) - total;
    if log > LOG || !rest.is_power_of_two() {
        return Err(Damage::Codes);
    }
    let last = rest.trailing_zeros() + 1;
    weights[known] = last as u8;
    ranks[last as usize % WEIGHTS] += 1;
    // Codes of the greatest length come in pairs.
    if ranks[1] < 2 || ranks[1] % 2 != 0 {
        return Err(Damage::Codes);
    }
    // Longer codes come first, those of one length in the order of literals.
    let mut starts = [0_usize; WEIGHTS];
    let mut at = 0;
    for weight in 1..WEIGHTS {
        starts[weight] = at;
        at += (ranks[weight] as usize) << (weight - 1) << (LOG - log);
    }
    for (literal, &weight) in weights[..=known].iter().enumerate() {
        if weight == 0 {
            continue;
        }
        let weight = usize::from(weight);
        let start = &mut starts[weight];
        let n = 1 << (weight - 1) << (LOG - log);
        let entry = (literal as u16) << 8 | (log as u16 + 1 - weight as u16);
        table.get_mut(*start..*start + n).ok_or(Damage::Codes)?.fill(entry);
        *start += n;
    }
    Ok(())
}

/// Reads all weights but the last, up to 255; how many.
fn weights_of(description: &[u8], weights: &mut [u8; 256]) -> Result<usize, Damage> {
    let (&head, coded) = description.split_first().ok_or(Damage::Cut)?;
    if head >= 128 {
        let known = usize::from(head) - 127;
        for (at, weight) in weights[..known].iter_mut().enumerate() {
            let two = coded.get(at / 2).ok_or(Damage::Cut)?;
            *weight = if at % 2 == 0 { two >> 4 } else { two & 15 };
        }
        return Ok(known);
    }
    let (counts, used) = Counts::read(coded, WEIGHT_LOG, WEIGHTS)?;
    let mut states = [(0_u8, 0_u32, 0_u32); 1 << WEIGHT_LOG];
    counts.build(|at, weight, bits, next| states[at % states.len()] = (weight, bits, next));
    let mut bits = Backward::new(coded.get(used..).unwrap_or_default())?;
    // Two states take turns, until the bits do not suffice for the next one.
    let mut at = [bits.take(counts.log), bits.take(counts.log)];
    if bits.left < 0 {
        return Err(Damage::Cut);
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
