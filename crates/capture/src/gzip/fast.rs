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

/// Input that a round may look at: it takes up to 7 bytes twice, and looks at 8 each time.
const INPUT: usize = 32;

/// Output that a round may write: three literals and the longest match, and what lies beyond its end.
const OUTPUT: usize = 3 + 258 + BEYOND;

/// Bytes that are copied at a time: most matches are no longer, and twice as many gained no time.
const WIDE: usize = 16;

/// Bytes that copies may write beyond the end of a match.
const BEYOND: usize = WIDE;

/// Decodes symbols while input and output are far from their ends. `None` if they are not from the start,
/// else whether the block has ended.
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
    /// Below the next one stand [`SPARE`] bits that mean nothing. Above `count` stand bits of bytes that will
    /// be taken again.
    bits: u64,
    /// How many are there, with those that are spare; only its low six bits count.
    count: u32,
}

/// Bits that stand below the next one, so that it and those behind it are a place in bytes of a table of words.
const SPARE: u32 = 2;

impl Bits {
    /// Sees to it that at least 56 bits are there, 54 of which mean something; `from` are the 8 bytes that come next. Returns how many
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

    /// The bits behind the two that are spare.
    #[inline(always)]
    fn next(&self) -> u64 {
        self.bits >> SPARE
    }
}

/// The first entries of a table, to be looked up with so many bits.
///
/// Most of the time goes by while one look waits for the other. A load takes a processor the least time from an
/// address that is a sum of two registers; hence a pointer that nothing is known of, and bits that are an
/// offset as they stand there.
#[derive(Clone, Copy)]
struct First<const BITS: u32>(*const u8);

impl<const BITS: u32> First<BITS> {
    #[inline(always)]
    fn new<const N: usize>(table: &[u32; N]) -> Self {
        const { assert!(1 << BITS <= N) };
        Self(std::hint::black_box(table.as_ptr().cast()))
    }

    /// The entry that the next bits say.
    ///
    /// # Safety
    /// The table is still there.
    #[inline(always)]
    unsafe fn look(self, bits: &Bits) -> u32 {
        const { assert!(size_of::<u32>() == 1 << SPARE) };
        let at = bits.bits & ((1 << BITS) - 1) << SPARE;
        // SAFETY: it is a multiple of an entry's size, and there are as many entries as such bits can say.
        unsafe { self.0.add(at as usize).cast::<u32>().read() }
    }
}

/// Rounds of up to three literals and a match, as long as there is room for another one.
#[inline(always)]
fn rounds(inflate: &mut Inflate, run: &mut Run<'_>) -> Result<bool, Damage> {
    let (literals, distances) = (&inflate.literals, &inflate.distances);
    let (first, first_distances) =
        (First::<LITERAL_BITS>::new(literals), First::<DISTANCE_BITS>::new(distances));
    let mut bits = Bits { bits: inflate.bits << SPARE, count: inflate.count + SPARE };
    let (input, output) = (run.input.as_ptr(), run.output.as_mut_ptr());
    // SAFETY: `used`, `begin` and `at` are places within their slices, which are longer than what a round
    // needs, by the only caller.
    let (mut from, begin, mut to, last_in, last_out) = unsafe {
        (
            input.add(run.used),
            output.add(run.begin).cast_const(),
            output.add(run.at),
            input.add(run.input.len() - INPUT),
            output.add(run.output.len() - OUTPUT),
        )
    };
    // Why all reads of the input are of it: the first refill is 32 bytes before the end or more, by the only
    // caller; a round begins with `from` no further than `last_in`, as far from it, and refills twice. Each
    // refill reads 8 bytes and goes on by 7 at the most.
    macro_rules! refill {
        () => {
            // SAFETY: as above.
            unsafe {
                let next = from.cast::<[u8; 8]>().read();
                from = from.add(bits.refill(next));
            }
        };
    }
    // Why all writes of literals are into the output: a round begins with `to` no further than `last_out`
    // and writes three of them at the most.
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
    macro_rules! look {
        ($table:expr) => {
            // SAFETY: the tables are borrowed.
            unsafe { $table.look(&bits) }
        };
    }
    // What a code means is looked up before the input is refilled behind it: the bits that say it are
    // there already, and so nothing waits for the input.
    refill!();
    let mut entry = look!(first);
    let ended = loop {
        if from > last_in || to.cast_const() > last_out.cast_const() {
            break Ok(false);
        }
        refill!();
        if entry & table::LITERAL != 0 {
            literal!(entry);
            entry = look!(first);
            if entry & table::LITERAL != 0 {
                literal!(entry);
                entry = look!(first);
                if entry & table::LITERAL != 0 {
                    literal!(entry);
                    // At least 21 bits are left.
                    entry = look!(first);
                    continue;
                }
            }
        }
        // At least 32 bits are left of the refill.
        if entry & table::SPECIAL != 0 {
            if entry & table::SECOND != 0 {
                entry = literals[table::second(entry, bits.next(), LITERAL_BITS) % LITERALS];
            }
            if entry & table::LITERAL != 0 {
                literal!(entry);
                // At least 17 bits are left.
                entry = look!(first);
                continue;
            }
            if entry & table::SPECIAL != 0 {
                bits.take(entry);
                break if entry & table::END != 0 { Ok(true) } else { Err(Damage::Code) };
            }
        }
        let length = table::number(entry, bits.next()) as usize;
        bits.take(entry);
        // A length takes 20 at the most, so that 12 are left, and these suffice for a first look.
        let mut far = look!(first_distances);
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
        // At least 26 bits are left.
        entry = look!(first);
        if distance > to as usize - begin as usize {
            break Err(Damage::Distance);
        }
        // SAFETY: `distance` bytes are there before `to`, as was just seen, and it is not 0, as no base is.
        // A round begins with `to` no further than `last_out`, so that behind three literals there is
        // room for the longest match, 258 bytes, and for what copies write beyond it.
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

/// Copies `length` bytes to `to` that stand, or will stand when they are come to, `distance` before it.
///
/// # Safety
/// `distance` bytes before `to` can be read, `length` and [`BEYOND`] more from it on can be read and written, all
/// of one buffer; `distance` is not 0.
#[inline(always)]
unsafe fn copy(mut to: *mut u8, distance: usize, length: usize) {
    // SAFETY: by the caller's word all of these are the buffer's.
    let (mut from, end) = unsafe { (to.sub(distance).cast_const(), to.add(length)) };
    if distance < WIDE {
        // What repeats with a period repeats with twice the period, too: every copy of as many bytes as
        // there are makes the distance twice as far, until it is as wide as a copy.
        let mut period = distance;
        while period < WIDE && to < end {
            // SAFETY: `to` is before `end`; of what is written behind it the first `period` bytes count.
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
        // SAFETY: `to` is before `end`, so the copy ends before `BEYOND` behind that; what it reads lies before
        // what it writes.
        unsafe {
            wide(from, to);
            (from, to) = (from.add(WIDE), to.add(WIDE));
        }
        if to >= end {
            return;
        }
    }
}

/// Copies `WIDE` bytes, read at once.
///
/// # Safety
/// So many can be read from `from` and written to `to`.
#[inline(always)]
unsafe fn wide(from: *const u8, to: *mut u8) {
    // SAFETY: by the caller's word.
    unsafe { to.cast::<[u8; WIDE]>().write(from.cast::<[u8; WIDE]>().read()) }
}
