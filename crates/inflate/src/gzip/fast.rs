//! The loop for nearly all symbols: input and output cannot end within a round, so that only
//! distances need checks.
#![allow(unsafe_code)]

use super::Damage;
use super::inflate::Inflate;
use super::inflate::Run;
use super::table;
use super::table::DISTANCE_BITS;
use super::table::DISTANCES;
use super::table::LITERAL_BITS;
use super::table::LITERALS;

/// Input that a round may read: it consumes up to 7 bytes twice, and reads 8 each time.
const INPUT: usize = 32;

/// Output that a round may write: three literals, the longest match, and the bytes beyond its end.
const OUTPUT: usize = 3 + 258 + OVERRUN;

/// Bytes copied at a time. Most matches are no longer, and copying twice as many was no faster.
const WIDE: usize = 16;

/// Bytes that a copy may write beyond the end of a match.
const OVERRUN: usize = WIDE;

/// Decodes symbols while input and output are far from their ends. Returns `None` if they never
/// were, otherwise whether the block has ended.
#[inline]
pub(super) fn symbols(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<Option<bool>, Damage> {
    if run.input.len() - run.used < INPUT
        || run.output.len() - run.at < OUTPUT
        || inflate.count + SPARE > 63
    {
        return Ok(None);
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { modern(inflate, run) }.map(Some);
    }
    rounds(inflate, run).map(Some)
}

/// [`rounds`] compiled for processors with BMI2 shifts and 32-byte copies.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn modern(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<bool, Damage> {
    rounds(inflate, run)
}

/// The bit buffer.
struct Bits {
    /// The lowest [`SPARE`] bits are unused. Bits above `count` belong to bytes that will be read
    /// again.
    bits: u64,
    /// Number of valid bits, including the unused ones; only its low six bits count.
    count: u32,
}

/// Unused low bits, so that the next bits form a byte offset into a table of words.
const SPARE: u32 = 2;

impl Bits {
    /// Refills to at least 56 bits, of which 54 are usable; `from` are the next 8 input bytes.
    /// Returns the number of bytes consumed.
    ///
    /// Without a branch: eight bytes are ORed onto the buffer; the upper ones may be read again
    /// next time, giving the same bits.
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

    /// The bits above the unused ones.
    #[inline(always)]
    fn next(&self) -> u64 {
        self.bits >> SPARE
    }
}

/// The first-level entries of a table, indexed by `BITS` bits.
///
/// Most of the time is the latency of dependent lookups. A load is fastest from an address that is
/// a sum of two registers, so this is an opaque pointer and the bits are already a byte offset.
#[derive(Clone, Copy)]
struct First<const BITS: u32>(*const u8);

impl<const BITS: u32> First<BITS> {
    #[inline(always)]
    fn new<const N: usize>(table: &[u32; N]) -> Self {
        const { assert!(1 << BITS <= N) };
        Self(std::hint::black_box(table.as_ptr().cast()))
    }

    /// The entry for the next bits.
    ///
    /// # Safety
    /// The table is still alive.
    #[inline(always)]
    unsafe fn lookup(self, bits: &Bits) -> u32 {
        const { assert!(size_of::<u32>() == 1 << SPARE) };
        let at = bits.bits & ((1 << BITS) - 1) << SPARE;
        // SAFETY: the offset is a multiple of an entry's size, and the table has an entry for each
        // value of these bits.
        unsafe { self.0.add(at as usize).cast::<u32>().read() }
    }
}

/// Decodes rounds of up to three literals and a match, while input and output have space for
/// another.
#[inline(always)]
fn rounds(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<bool, Damage> {
    let (literals, distances) = (&inflate.literals, &inflate.distances);
    let (first, first_distances) =
        (First::<LITERAL_BITS>::new(literals), First::<DISTANCE_BITS>::new(distances));
    let mut bits = Bits { bits: inflate.bits << SPARE, count: inflate.count + SPARE };
    let (input, output) = (run.input.as_ptr(), run.output.as_mut_ptr());
    // SAFETY: `used`, `begin` and `at` are offsets within their slices, which are longer than a
    // round needs; the only caller checked both.
    let (mut from, begin, mut to, last_in, last_out) = unsafe {
        (
            input.add(run.used),
            output.add(run.begin).cast_const(),
            output.add(run.at),
            input.add(run.input.len() - INPUT),
            output.add(run.output.len() - OUTPUT),
        )
    };
    // Why all reads are within the input: the first refill is at least 32 bytes before the end
    // (checked by the only caller); a round begins with `from` at most `last_in`, at the same
    // distance, and refills twice. Each refill reads 8 bytes and advances by at most 7.
    macro_rules! refill {
        () => {
            // SAFETY: as above.
            unsafe {
                let next = from.cast::<[u8; 8]>().read();
                from = from.add(bits.refill(next));
            }
        };
    }
    // Why all writes of literals are within the output: a round begins with `to` at most `last_out`
    // and writes at most three of them.
    macro_rules! literal {
        ($entry:expr) => {
            bits.take($entry);
            // SAFETY: as above.
            unsafe {
                to.write(($entry >> 16) as u8);
                to = to.add(1);
            }
        };
    }
    macro_rules! lookup {
        ($table:expr) => {
            // SAFETY: the tables are borrowed.
            unsafe { $table.lookup(&bits) }
        };
    }
    // Each code is looked up before the refill that follows it: its bits are in the buffer already,
    // so the lookup does not wait for the input.
    refill!();
    let mut entry = lookup!(first);
    let ended = loop {
        if from > last_in || to.cast_const() > last_out.cast_const() {
            break Ok(false);
        }
        refill!();
        if entry & table::LITERAL != 0 {
            literal!(entry);
            entry = lookup!(first);
            if entry & table::LITERAL != 0 {
                literal!(entry);
                entry = lookup!(first);
                if entry & table::LITERAL != 0 {
                    literal!(entry);
                    // At least 21 bits remain.
                    entry = lookup!(first);
                    continue;
                }
            }
        }
        // At least 32 bits of the refill remain.
        if entry & table::SPECIAL != 0 {
            if entry & table::SECOND != 0 {
                entry = literals[table::second(entry, bits.next(), LITERAL_BITS) % LITERALS];
            }
            if entry & table::LITERAL != 0 {
                literal!(entry);
                // At least 17 bits remain.
                entry = lookup!(first);
                continue;
            }
            if entry & table::SPECIAL != 0 {
                bits.take(entry);
                break if entry & table::END != 0 { Ok(true) } else { Err(Damage::Code) };
            }
        }
        let length = table::number(entry, bits.next()) as usize;
        bits.take(entry);
        // A length takes at most 20 bits, so 12 remain, enough for a first lookup.
        let mut far = lookup!(first_distances);
        refill!();
        if far & table::SPECIAL != 0 {
            if far & table::SECOND != 0 {
                far = distances[table::second(far, bits.next(), DISTANCE_BITS) % DISTANCES];
            }
            if far & table::SPECIAL != 0 {
                break Err(Damage::Code);
            }
        }
        let distance = table::number(far, bits.next()) as usize;
        bits.take(far);
        // At least 26 bits remain.
        entry = lookup!(first);
        if distance > to as usize - begin as usize {
            break Err(Damage::Distance);
        }
        // SAFETY: the check above proved that `distance` bytes precede `to`, and no base is 0. A
        // round begins with `to` at most `last_out`, so after three literals there is space for the
        // longest match, 258 bytes, and for the bytes that copies write beyond it.
        unsafe {
            copy(to, distance, length);
            to = to.add(length);
        }
    };
    let count = (bits.count & 63) - SPARE;
    inflate.count = count;
    inflate.bits = bits.next() & !(u64::MAX << count);
    run.used = from as usize - input as usize;
    run.at = to as usize - output as usize;
    ended
}

/// Copies `length` bytes to `to` from `distance` bytes before it; source and destination may
/// overlap.
///
/// # Safety
/// `distance` bytes before `to` can be read, `length` and [`OVERRUN`] more from it on can be read
/// and written, all within one buffer; `distance` is not 0.
#[inline(always)]
unsafe fn copy(mut to: *mut u8, distance: usize, length: usize) {
    // SAFETY: all of these are in the buffer, as the caller guarantees.
    let (mut from, end) = unsafe { (to.sub(distance).cast_const(), to.add(length)) };
    if distance < WIDE {
        // A sequence with a period also has twice that period: each copy of `period` bytes doubles
        // the distance, until it is as wide as a copy.
        let mut period = distance;
        while period < WIDE && to < end {
            // SAFETY: `to` is before `end`; only the first `period` of the bytes written after it
            // count.
            unsafe {
                wide(from, to);
                to = to.add(period);
            }
            period *= 2;
        }
        if to >= end {
            return;
        }
    }
    loop {
        // SAFETY: `to` is before `end`, so the copy ends less than `OVERRUN` after `end`; it reads
        // only bytes before those it writes.
        unsafe {
            wide(from, to);
            (from, to) = (from.add(WIDE), to.add(WIDE));
        }
        if to >= end {
            return;
        }
    }
}

/// Copies `WIDE` bytes with one load and one store.
///
/// # Safety
/// `WIDE` bytes can be read from `from` and written to `to`.
#[inline(always)]
unsafe fn wide(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller guarantees.
    unsafe { to.cast::<[u8; WIDE]>().write(from.cast::<[u8; WIDE]>().read()) }
}
