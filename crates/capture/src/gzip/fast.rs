//! The loop that nearly all symbols go through: neither input nor output can end within one of its rounds, so
//! that nothing is checked but distances.
#![allow(unsafe_code)]

use super::Damage;
use super::inflate::Inflate;
use super::inflate::Run;
use super::table;
use super::table::DISTANCE_BITS;
use super::table::DISTANCES;
use super::table::LITERAL_BITS;
use super::table::LITERALS;

/// Input that a round may look at: it takes up to 7 bytes three times, and looks at 8 each time.
const INPUT: usize = 32;

/// Output that a round may write: three literals and the longest match, of which the last copy may write
/// [`WIDE`] bytes beyond its end.
const OUTPUT: usize = 3 + 258 + 2 * WIDE;

/// Bytes that are copied at a time.
const WIDE: usize = 16;

/// Decodes symbols while input and output are far from their ends. `None` if they are not from the start,
/// else whether the block has ended.
#[inline]
pub(super) fn symbols(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<Option<bool>, Damage> {
    if run.input.len() - run.used < INPUT || run.output.len() - run.at < OUTPUT {
        return Ok(None);
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { modern(inflate, run) }.map(Some);
    }
    rounds(inflate, run).map(Some)
}

/// The same code for processors that shift by any register and copy 32 bytes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn modern(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<bool, Damage> {
    rounds(inflate, run)
}

/// Where the bits come from.
struct Bits {
    /// The next one lowest. Above `count` stand bits of bytes that will be taken again.
    bits: u64,
    /// How many are there; only its low six bits count.
    count: u32,
}

impl Bits {
    /// Sees to it that at least 56 bits are there; `from` are the 8 bytes that come next. Returns how many
    /// were taken.
    ///
    /// Nothing is decided: eight bytes are laid over what is there, of which the upper ones may be taken
    /// again next time, to the same bits.
    #[inline(always)]
    fn refill(&mut self, from: [u8; 8]) -> usize {
        let count = self.count & 63;
        self.bits |= u64::from_le_bytes(from) << count;
        self.count = count | 56;
        ((63 - count) >> 3) as usize
    }

    #[inline(always)]
    fn take(&mut self, entry: u32) {
        self.bits >>= entry & 63;
        self.count = self.count.wrapping_sub(entry);
    }

    #[inline(always)]
    fn low(&self, n: u32) -> usize {
        (self.bits & ((1 << n) - 1)) as usize
    }
}

/// Rounds of up to three literals and a match, as long as there is room for another one.
#[inline(always)]
fn rounds(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<bool, Damage> {
    let (literals, distances) = (&inflate.literals, &inflate.distances);
    let mut bits = Bits { bits: inflate.bits, count: inflate.count };
    // Rounds begin up to these places, which leave room for a whole one. Both slices are longer than what
    // a round needs, by the only caller.
    let (last_in, last_out) = (run.input.len() - INPUT, run.output.len() - OUTPUT);
    let input = run.input.as_ptr();
    let output = run.output.as_mut_ptr();
    let (mut from, mut at, begin) = (run.used, run.at, run.begin);
    // SAFETY (of the two below): a round begins with `from <= last_in` and refills three times, each of
    // which moves `from` by 7 at the most: `from + 8 <= last_in + 14 + 8 < input.len()`.
    macro_rules! refill {
        () => {
            // SAFETY: as above.
            from += bits.refill(unsafe { input.add(from).cast::<[u8; 8]>().read() })
        };
    }
    // SAFETY (of all writes of literals): a round begins with `at <= last_out` and writes three of them at
    // the most before a match: `at < last_out + 3 < output.len()`.
    macro_rules! literal {
        ($entry:expr) => {
            // SAFETY: as above.
            unsafe { output.add(at).write(($entry >> 16) as u8) };
            at += 1;
        };
    }
    let ended = loop {
        if from > last_in || at > last_out {
            break Ok(false);
        }
        refill!();
        let mut entry = literals[bits.low(LITERAL_BITS)];
        if entry & table::LITERAL != 0 {
            bits.take(entry);
            literal!(entry);
            entry = literals[bits.low(LITERAL_BITS)];
            if entry & table::LITERAL != 0 {
                bits.take(entry);
                literal!(entry);
                entry = literals[bits.low(LITERAL_BITS)];
                if entry & table::LITERAL != 0 {
                    bits.take(entry);
                    literal!(entry);
                    continue;
                }
            }
        }
        // At least 34 bits are left of the refill.
        if entry & table::SPECIAL != 0 {
            if entry & table::SECOND != 0 {
                entry = literals[table::second(entry, bits.bits, LITERAL_BITS) % LITERALS];
            }
            if entry & table::LITERAL != 0 {
                bits.take(entry);
                literal!(entry);
                continue;
            }
            if entry & table::SPECIAL != 0 {
                bits.take(entry);
                break if entry & table::END != 0 { Ok(true) } else { Err(Damage::Code) };
            }
        }
        let length = table::number(entry, bits.bits) as usize;
        bits.take(entry);
        refill!();
        let mut entry = distances[bits.low(DISTANCE_BITS)];
        if entry & table::SPECIAL != 0 {
            if entry & table::SECOND != 0 {
                entry = distances[table::second(entry, bits.bits, DISTANCE_BITS) % DISTANCES];
            }
            if entry & table::SPECIAL != 0 {
                break Err(Damage::Code);
            }
        }
        let distance = table::number(entry, bits.bits) as usize;
        bits.take(entry);
        if distance > at - begin {
            break Err(Damage::Distance);
        }
        // SAFETY: `distance` bytes are there before `at`, as was just seen, and it is not 0, as no base is.
        // A round begins with `at <= last_out`, so that behind three literals there is room for the
        // longest match, 258 bytes, and for two wide copies more.
        unsafe { copy(output.add(at), distance, length) };
        at += length;
    };
    let count = bits.count & 63;
    inflate.count = count;
    inflate.bits = bits.bits & !(u64::MAX << count);
    (run.used, run.at) = (from, at);
    ended
}

/// Copies `length` bytes to `to` that stand, or will stand when they are come to, `distance` before it.
///
/// # Safety
/// `distance` bytes before `to` can be read, `length + 2 * WIDE` bytes from it on can be read and written,
/// all of one buffer; `distance` is not 0.
#[inline(always)]
unsafe fn copy(mut to: *mut u8, distance: usize, length: usize) {
    // SAFETY: by the caller's word `from` is the buffer's.
    let mut from = unsafe { to.sub(distance) }.cast_const();
    // SAFETY: `end` is at the most where the match ends.
    let end = unsafe { to.add(length) };
    if distance < WIDE {
        // What repeats with a period repeats with twice the period, too: every copy of as many bytes as
        // there are makes the distance twice as far, until it is as wide as a copy.
        let mut period = distance;
        while period < WIDE {
            if to >= end {
                return;
            }
            // SAFETY: `from` to `to` are `period` bytes that are there, and beyond `to`, which is before
            // `end`, there are two wide copies of room; what is read beyond them is written over next.
            unsafe {
                let bytes = from.cast::<[u8; WIDE]>().read();
                to.cast::<[u8; WIDE]>().write(bytes);
                to = to.add(period);
            }
            period *= 2;
        }
    }
    loop {
        // SAFETY: `to` is before `end` or was `to` of a match that is not empty, so a wide copy has room
        // behind it; `from` is `WIDE` or more before it.
        unsafe {
            let bytes = from.cast::<[u8; WIDE]>().read();
            to.cast::<[u8; WIDE]>().write(bytes);
            to = to.add(WIDE);
            from = from.add(WIDE);
        }
        if to >= end {
            return;
        }
    }
}
