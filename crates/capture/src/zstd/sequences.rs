//! Sequences: three states that say by turns what comes next (RFC 8878 section 3.1.1.4).
//!
//! What a sequence says is known only when the states are, and these depend on each other's bits: a processor
//! waits for most of the time. So those of two blocks are read at once, where there are two.
#![allow(unsafe_code)]

use super::Damage;
use super::bits::below_mark;
use super::job::FRONT;
use super::job::Made;
use super::job::Packed;
use super::job::REPEATS;
use super::job::Sequence;
use super::tables::Entry;
use super::tables::LITERALS;
use super::tables::MATCHES;
use super::tables::OFFSETS;
use super::tables::Tables;

/// Bits that a sequence takes at the most: 16, 16 and 31 of values, 9, 9 and 8 of states.
const MOST_BITS: usize = 89;

const _: () = assert!(FRONT >= MOST_BITS.div_ceil(8) + 8, "what is read before the beginning");

/// A block whose sequences are read: the tables are its own.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    /// The first byte of the stream, which has [`FRONT`] bytes before it.
    base: *const u8,
    /// Bits that are left; negative once more were taken than there were.
    left: i64,
    tables: &'a Tables,
    /// Entries of the three states.
    literals: Entry,
    offsets: Entry,
    matches: Entry,
    out: *mut Sequence,
    /// Sequences that are to come.
    count: usize,
    /// Sums of literals, and of these and what is matched.
    sums: (u64, u64),
    made: &'a mut Made,
    /// Sequences of the whole block.
    all: usize,
    most: usize,
}

impl<'a> Lane<'a> {
    /// Begins to read the sequences of a block whose content is in `input` behind [`FRONT`] bytes; it may unpack to
    /// `most` bytes. The literals are there already.
    pub(super) fn new(
        packed: &Packed,
        input: &'a [u8],
        tables: &'a mut Tables,
        made: &'a mut Made,
        most: usize,
    ) -> Result<Self, Damage> {
        made.sequences.clear();
        let count = packed.sequences;
        if count > 0 {
            tables.set(&packed.tables);
        }
        let mut lane = Self {
            base: input.as_ptr(),
            left: 0,
            tables,
            literals: 0,
            offsets: 0,
            matches: 0,
            out: std::ptr::null_mut(),
            count,
            sums: (0, 0),
            made,
            all: count,
            most,
        };
        if count == 0 {
            return Ok(lane);
        }
        let stream = input.get(packed.stream.clone()).ok_or(Damage::Cut)?;
        if packed.stream.start < FRONT {
            return Err(Damage::Cut);
        }
        // What lies before the stream is read as well.
        lane.base = input.as_ptr().wrapping_add(packed.stream.start);
        lane.left = below_mark(stream)?;
        lane.made.sequences.reserve(count);
        lane.out = lane.made.sequences.as_mut_ptr();
        Ok(lane)
    }
}

/// Reads all sequences of one block or of two; what is wrong with each.
pub(super) fn read<const N: usize>(mut lanes: [Lane<'_>; N]) -> [Result<(), Damage>; N] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor has what the function is compiled for.
        unsafe { modern(&mut lanes) };
        return lanes.map(Lane::end);
    }
    run(&mut lanes);
    lanes.map(Lane::end)
}

/// The same code for processors that shift by any register.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt")]
fn modern<const N: usize>(lanes: &mut [Lane<'_>; N]) {
    run(lanes);
}

#[inline(always)]
fn run<const N: usize>(lanes: &mut [Lane<'_>; N]) {
    for lane in &mut *lanes {
        lane.begin();
    }
    if let [a, b] = &mut lanes[..] {
        together(a, b);
    }
    for lane in lanes {
        alone(lane);
    }
}

/// Reads sequences of both but for the last of either, as long as there are bits.
#[inline(always)]
fn together(a: &mut Lane<'_>, b: &mut Lane<'_>) {
    if a.left | b.left < 0 {
        return;
    }
    let both = a.count.min(b.count).saturating_sub(1);
    let (mut x, mut y) = (Regs::of(a), Regs::of(b));
    for _ in 0..both {
        // SAFETY: fewer than `count` sequences are read, which there is room for.
        unsafe {
            x.step(a.tables);
            y.step(b.tables);
        }
        if x.left | y.left < 0 {
            break;
        }
    }
    x.back(a);
    y.back(b);
}

/// Reads all sequences that are left, as long as there are bits.
#[inline(always)]
fn alone(lane: &mut Lane<'_>) {
    if lane.count == 0 || lane.left < 0 {
        return;
    }
    let mut x = Regs::of(lane);
    for _ in 1..lane.count {
        // SAFETY: fewer than `count` sequences are read, which there is room for.
        unsafe { x.step(lane.tables) };
        if x.left < 0 {
            break;
        }
    }
    if x.left >= 0 {
        // SAFETY: one fewer than `count` were read.
        unsafe { x.last() };
    }
    x.back(lane);
}

/// What of a lane is kept in registers.
#[derive(Clone, Copy)]
struct Regs {
    base: *const u8,
    left: i64,
    literals: Entry,
    offsets: Entry,
    matches: Entry,
    out: *mut Sequence,
    sums: (u64, u64),
}

/// The lowest `n` bits, fewer than 64.
#[inline(always)]
fn low(bits: u64, n: u64) -> u64 {
    bits & !(u64::MAX << (n & 63))
}

impl Regs {
    #[inline(always)]
    fn of(lane: &Lane<'_>) -> Self {
        let Lane { base, left, literals, offsets, matches, out, sums, .. } = *lane;
        Self { base, left, literals, offsets, matches, out, sums }
    }

    #[inline(always)]
    fn back(self, lane: &mut Lane<'_>) {
        lane.count -= (self.out as usize - lane.out as usize) / size_of::<Sequence>();
        let Self { base: _, left, literals, offsets, matches, out, sums } = self;
        (lane.left, lane.literals, lane.offsets, lane.matches) = (left, literals, offsets, matches);
        (lane.out, lane.sums) = (out, sums);
    }

    /// The bits that come next: how many these are, and they in the lower part of a word.
    ///
    /// # Safety
    /// No more than [`MOST_BITS`] have been taken beyond what there was.
    #[inline(always)]
    unsafe fn bits(&self) -> (u64, u64) {
        // SAFETY: the byte that has the next bit is in the stream, or before it by what was taken too
        // much; so are the seven before that, for which `FRONT` is enough.
        let word =
            unsafe { self.base.offset((self.left >> 3) as isize - 7).cast::<[u8; 8]>().read() };
        (56 + (self.left as u64 & 7), u64::from_le_bytes(word))
    }

    /// Reads a sequence and the states of the next one.
    ///
    /// # Safety
    /// `left` is not negative, the entries are of the tables, and there is room for a sequence.
    #[inline(always)]
    unsafe fn step(&mut self, tables: &Tables) {
        let Self { literals, offsets, matches, .. } = *self;
        // The two lowest bytes of it are sums: bits of states, and of values.
        let sums = literals.wrapping_add(offsets).wrapping_add(matches);
        let (states, values) = (sums & 0xff, sums >> 8 & 0xff);
        // SAFETY: `left` is not negative.
        let (mut have, mut bits) = unsafe { self.bits() };
        if states + values > 56 {
            // A copy, so that this one can stay in registers.
            let mut copy = *self;
            // SAFETY: as for this function.
            unsafe { copy.values() };
            *self = copy;
            // SAFETY: less than a sequence was taken.
            (have, bits) = unsafe { self.bits() };
            self.left -= states as i64;
        } else {
            let at = have - (offsets >> 8 & 0xff);
            let offset = (offsets >> 32) + low(bits >> (at & 63), offsets >> 8 & 0xff);
            let at = at - (matches >> 8 & 0xff);
            let length = (matches >> 32) + low(bits >> (at & 63), matches >> 8 & 0xff);
            have -= values;
            let count = (literals >> 32) + low(bits >> (have & 63), literals >> 8 & 0xff);
            self.left -= (states + values) as i64;
            // SAFETY: there is room.
            unsafe { self.put(count, offset, length) };
        }
        let after = have - (literals & 0xff);
        let literal = (literals >> 16 & 0xffff) + low(bits >> (after & 63), literals & 0xff);
        let end = have - states;
        let offset = (offsets >> 16 & 0xffff) + low(bits >> (end & 63), offsets & 0xff);
        let at = end + (offsets & 0xff);
        let length = (matches >> 16 & 0xffff) + low(bits >> (at & 63), matches & 0xff);
        // SAFETY: with whatever bits, the next state of an entry is in its table.
        unsafe {
            self.literals = *tables.all[LITERALS].get_unchecked(literal as usize);
            self.offsets = *tables.all[OFFSETS].get_unchecked(offset as usize);
            self.matches = *tables.all[MATCHES].get_unchecked(length as usize);
        }
    }

    /// Reads the last sequence, after which there are no states.
    ///
    /// # Safety
    /// As [`Regs::step`].
    #[inline(always)]
    unsafe fn last(&mut self) {
        // SAFETY: by the caller's word.
        unsafe { self.values() }
    }

    /// Reads the values of a sequence, with input between them: they may take more bits than are had at
    /// once.
    ///
    /// # Safety
    /// As [`Regs::step`].
    #[cold]
    #[inline(never)]
    unsafe fn values(&mut self) {
        let values = [self.offsets, self.matches, self.literals].map(|entry| {
            let n = entry >> 8 & 0xff;
            // SAFETY: all three take 63 bits at the most.
            let (have, bits) = unsafe { self.bits() };
            self.left -= n as i64;
            (entry >> 32) + low(bits >> (have - n & 63), n)
        });
        // SAFETY: there is room.
        unsafe { self.put(values[2], values[0], values[1]) };
    }

    /// Notes a sequence: literals, offset as it was coded, length.
    ///
    /// # Safety
    /// There is room for it.
    #[inline(always)]
    unsafe fn put(&mut self, literals: u64, offset: u64, length: u64) {
        // Repeated offsets count otherwise behind literals.
        let less = u64::from(offset <= u64::from(REPEATS)) & u64::from(literals != 0);
        let sequence = Sequence {
            literals: literals as u32,
            length: length as u32,
            offset: (offset - less) as u32,
        };
        // SAFETY: by the caller's word.
        unsafe {
            self.out.write(sequence);
            self.out = self.out.add(1);
        }
        self.sums.0 += literals;
        self.sums.1 += length;
    }
}

impl Lane<'_> {
    /// Reads the first states.
    #[inline(always)]
    fn begin(&mut self) {
        if self.count == 0 {
            return;
        }
        let logs = self.tables.logs.map(u64::from);
        // SAFETY: nothing was taken yet.
        let (have, bits) = unsafe { Regs::of(self).bits() };
        let at = have - logs[LITERALS];
        let literals = low(bits >> (at & 63), logs[LITERALS]) as usize;
        let at = at - logs[OFFSETS];
        let offsets = low(bits >> (at & 63), logs[OFFSETS]) as usize;
        let at = at - logs[MATCHES];
        let matches = low(bits >> (at & 63), logs[MATCHES]) as usize;
        self.left -= (have - at) as i64;
        let all = &self.tables.all;
        self.literals = all[LITERALS].get(literals).copied().unwrap_or(0);
        self.offsets = all[OFFSETS].get(offsets).copied().unwrap_or(0);
        self.matches = all[MATCHES].get(matches).copied().unwrap_or(0);
    }

    /// Holds what was read against what must be.
    fn end(self) -> Result<(), Damage> {
        let Self { left, count, sums: (literals, lengths), made, all, most, .. } = self;
        if count > 0 || left != 0 {
            return Err(Damage::Bits);
        }
        // SAFETY: there is room for all sequences, and each of them was written.
        unsafe { made.sequences.set_len(all) };
        let rest = made.literal_count as u64;
        if literals > rest {
            return Err(Damage::Literals);
        }
        let size = rest + lengths;
        if size > most as u64 {
            return Err(Damage::Long);
        }
        made.size = size as usize;
        Ok(())
    }
}
