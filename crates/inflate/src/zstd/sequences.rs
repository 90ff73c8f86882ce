//! Sequences: three interleaved states (RFC 8878 section 3.1.1.4).
//!
//! Each state depends on the bits of the others, so a processor mostly waits for latencies.
//! Therefore the sequences of two blocks are decoded together where available.
#![allow(unsafe_code)]

use super::Damage;
use super::bits::below_mark;
use super::job::DecodedEntropy;
use super::job::FRONT;
use super::job::GROUP;
use super::job::Packed;
use super::job::REPEATS;
use super::job::Sequences;
use super::tables::Entry;
use super::tables::LITERALS;
use super::tables::MATCHES;
use super::tables::OFFSETS;
use super::tables::Tables;

/// Maximum number of bits of a sequence: 16, 16 and 31 of values, 9, 9 and 8 of states.
const MAX_BITS: usize = 89;

const _: () = assert!(FRONT >= MAX_BITS.div_ceil(8) + 8, "bytes read before the beginning");

/// Tables for two blocks, and buffers for sequences of both, contiguous so that one register
/// addresses all.
#[derive(Debug)]
#[repr(C)]
pub(super) struct SequenceScratch {
    tables: [Tables; 2],
    read: [Sequences; 2],
}

impl Default for SequenceScratch {
    fn default() -> Self {
        Self { tables: Default::default(), read: [Sequences::NONE; 2] }
    }
}

/// A block whose sequences are decoded.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    packed: &'a Packed,
    input: &'a [u8],
    decoded: &'a mut DecodedEntropy,
    /// Maximum decompressed size of the block, in bytes.
    max_size: usize,
    at: BitPosition,
    /// Sequences decoded.
    done: usize,
    /// Sums of the literal lengths and match lengths of these sequences.
    literals: u64,
    lengths: u64,
}

/// The position of a lane.
#[derive(Clone, Copy, Debug)]
struct BitPosition {
    /// Base of the positions.
    #[cfg(not(target_arch = "x86_64"))]
    base: *const u8,
    /// The position of the bit after the next one: eight times the byte address, plus the bit
    /// number.
    bit: isize,
    /// States, all within their tables.
    literals: usize,
    offsets: usize,
    matches: usize,
}

impl<'a> Lane<'a> {
    /// For a block whose content in `input` begins after [`FRONT`] bytes, and whose literals are in
    /// `decoded`.
    pub(super) fn new(
        packed: &'a Packed,
        input: &'a [u8],
        decoded: &'a mut DecodedEntropy,
        max_size: usize,
    ) -> Self {
        decoded.sequence_count = 0;
        let at = BitPosition {
            #[cfg(not(target_arch = "x86_64"))]
            base: input.as_ptr(),
            bit: 0,
            literals: 0,
            offsets: 0,
            matches: 0,
        };
        Self { packed, input, decoded, max_size, at, done: 0, literals: 0, lengths: 0 }
    }

    /// The position of the first bit of the stream.
    fn first(&self) -> isize {
        // Addresses have fewer than 60 bits, and this needs one register less than a pointer and a
        // count.
        #[cfg(target_arch = "x86_64")]
        let base = self.input.as_ptr().expose_provenance() as isize;
        #[cfg(not(target_arch = "x86_64"))]
        let base = 0;
        (base + self.packed.stream.start as isize) * 8
    }

    /// Remaining bits; negative once more were consumed than available.
    fn left(&self) -> isize {
        self.at.bit - self.first()
    }

    /// The number of sequences, up to `max`, that can be decoded without checking for the end of the
    /// input; `None` if no bit remains.
    fn unchecked_count(&self, max: usize) -> Option<usize> {
        let left = usize::try_from(self.left()).ok()?;
        Some((left / MAX_BITS).clamp(1, max))
    }

    /// Reads the first states with the tables that the block describes.
    fn begin(&mut self, tables: &mut Tables) -> Result<(), Damage> {
        let count = self.packed.sequences;
        if count == 0 {
            return Ok(());
        }
        let stream = self.input.get(self.packed.stream.clone()).ok_or(Damage::Truncated)?;
        if self.packed.stream.start < FRONT {
            return Err(Damage::Truncated);
        }
        self.at.bit = self.first() + below_mark(stream)? as isize;
        tables.set(&self.packed.tables);
        let groups = count.div_ceil(GROUP);
        if self.decoded.sequences.len() < groups {
            self.decoded.sequences.resize(groups, Sequences::NONE);
        }
        let [literals, offsets, matches] = tables.logs;
        // SAFETY: no bits have been consumed yet.
        let (have, bits) = unsafe { self.at.bits() };
        let after = have - u64::from(literals);
        let then = after - u64::from(offsets);
        let end = then - u64::from(matches);
        // SAFETY: tables have two to the power of up to 9 states.
        unsafe {
            self.at.literals = low(bits, after, literals) as usize;
            self.at.offsets = low(bits, then, offsets) as usize;
            self.at.matches = low(bits, end, matches) as usize;
        }
        self.at.bit -= (have - end) as isize;
        Ok(())
    }

    /// Appends `n` decoded sequences, at most as many as fit into the current group.
    #[inline(always)]
    fn take(&mut self, read: &Sequences, n: usize) {
        let at = self.done % GROUP;
        let Some(group) = self.decoded.sequences.get_mut(self.done / GROUP) else { return };
        let sums = resolve_offsets(read, n, group, at);
        self.literals += u64::from(sums.0);
        self.lengths += u64::from(sums.1);
        self.done += n;
    }

    /// Compares the totals with the block's headers.
    fn end(self) -> Result<(), Damage> {
        let count = self.packed.sequences;
        if self.done < count || count > 0 && self.left() != 0 {
            return Err(Damage::Bits);
        }
        let decoded = self.decoded;
        if self.literals > decoded.literal_count as u64 {
            return Err(Damage::Literals);
        }
        let size = decoded.literal_count as u64 + self.lengths;
        if size > self.max_size as u64 {
            return Err(Damage::Long);
        }
        decoded.size = size as usize;
        decoded.sequence_count = count;
        Ok(())
    }
}

/// Copies the first `n` of `read` to `group` from `at` on, resolving repeated offsets as in
/// [`Sequences::offsets`]; returns sums of literals and lengths.
#[inline(always)]
fn resolve_offsets(read: &Sequences, n: usize, group: &mut Sequences, at: usize) -> (u32, u32) {
    let to = at..at + n;
    let (Some(literals), Some(lengths), Some(offsets)) = (
        group.literals.get_mut(to.clone()),
        group.lengths.get_mut(to.clone()),
        group.offsets.get_mut(to),
    ) else {
        return (0, 0);
    };
    literals.copy_from_slice(&read.literals[..n]);
    lengths.copy_from_slice(&read.lengths[..n]);
    for ((to, &offset), &literals) in offsets.iter_mut().zip(&read.offsets).zip(&read.literals) {
        // With literals, repeated offset 1 is the last offset; without, it is the second last.
        *to = offset - (u32::from(offset <= REPEATS) & u32::from(literals != 0));
    }
    // The sum of so small a group fits 32 bits.
    let sum = |all: &[u32]| all.iter().fold(0_u32, |sum, &one| sum.wrapping_add(one));
    (sum(literals), sum(lengths))
}

/// Decodes all sequences of one or two blocks; returns the error of each.
pub(super) fn read<const N: usize>(
    scratch: &mut SequenceScratch,
    lanes: [Lane<'_>; N],
) -> [Result<(), Damage>; N] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { modern(scratch, lanes) };
    }
    run(scratch, lanes)
}

/// [`run`] compiled for processors with BMI2 shifts.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn modern<const N: usize>(
    scratch: &mut SequenceScratch,
    lanes: [Lane<'_>; N],
) -> [Result<(), Damage>; N] {
    run(scratch, lanes)
}

#[inline(always)]
fn run<const N: usize>(
    scratch: &mut SequenceScratch,
    mut lanes: [Lane<'_>; N],
) -> [Result<(), Damage>; N] {
    let mut begun = [Ok(()); N];
    for (i, lane) in lanes.iter_mut().enumerate() {
        begun[i] = lane.begin(&mut scratch.tables[i % 2]);
    }
    if let [a, b] = &mut lanes[..]
        && begun.iter().all(Result::is_ok)
    {
        decode_two(scratch, a, b);
    }
    if let [a, ..] = &mut lanes[..]
        && begun[0].is_ok()
    {
        decode_one::<0>(scratch, a);
    }
    if let [_, b] = &mut lanes[..]
        && begun[N - 1].is_ok()
    {
        decode_one::<1>(scratch, b);
    }
    let mut begun = begun.into_iter();
    lanes.map(|lane| begun.next().unwrap_or(Ok(())).and_then(|()| lane.end()))
}

/// Decodes sequences of both lanes except the last of either, while bits remain.
#[inline(always)]
fn decode_two(scratch: &mut SequenceScratch, a: &mut Lane<'_>, b: &mut Lane<'_>) {
    let both = a.packed.sequences.min(b.packed.sequences).saturating_sub(1);
    while a.done < both {
        let n = (both - a.done).min(GROUP);
        let mut read = 0;
        while read < n {
            let (Some(x), Some(y)) = (a.unchecked_count(n - read), b.unchecked_count(n - read))
            else {
                // Only one of the lanes has no bits left: the other one continues after this group.
                a.take(&scratch.read[0], read);
                b.take(&scratch.read[1], read);
                return;
            };
            let until = read + x.min(y);
            let (mut x, mut y) = (a.at, b.at);
            let mut long = None;
            while read < until {
                // SAFETY: there are bits for all of these sequences, or for the current one; states
                // are within the tables, and `read` is less than `GROUP`.
                unsafe {
                    if !x.step::<0>(scratch, read) {
                        long = Some(true);
                        break;
                    }
                    if !y.step::<1>(scratch, read) {
                        long = Some(false);
                        break;
                    }
                }
                read += 1;
            }
            if let Some(both) = long {
                // SAFETY: as above.
                unsafe {
                    if both {
                        x = x.long_step::<0>(scratch, read);
                    }
                    if !both || !y.step::<1>(scratch, read) {
                        y = y.long_step::<1>(scratch, read);
                    }
                }
                read += 1;
            }
            (a.at, b.at) = (x, y);
        }
        a.take(&scratch.read[0], n);
        b.take(&scratch.read[1], n);
    }
}

/// Decodes the remaining sequences of a lane, while bits remain.
#[inline(always)]
fn decode_one<const L: usize>(scratch: &mut SequenceScratch, lane: &mut Lane<'_>) {
    let last = lane.packed.sequences.saturating_sub(1);
    while lane.done < last {
        let n = (last - lane.done).min(GROUP - lane.done % GROUP);
        let mut read = 0;
        while read < n {
            let Some(unchecked_count) = lane.unchecked_count(n - read) else { return };
            let mut x = lane.at;
            let until = read + unchecked_count;
            // SAFETY: as above.
            unsafe {
                while read < until && x.step::<L>(scratch, read) {
                    read += 1;
                }
                if read < until {
                    x = x.long_step::<L>(scratch, read);
                    read += 1;
                }
            }
            lane.at = x;
        }
        lane.take(&scratch.read[L], n);
    }
    if lane.done < lane.packed.sequences && lane.left() >= 0 {
        // SAFETY: as above. After the last sequence there are no states.
        lane.at = unsafe { lane.at.values::<L>(scratch, 0) };
        lane.take(&scratch.read[L], 1);
    }
}

/// `n` bits of `bits` from bit `at` on.
///
/// # Safety
/// `n` is less than 64.
#[inline(always)]
unsafe fn low(bits: u64, at: u64, n: u8) -> u32 {
    let n = u64::from(n);
    // SAFETY: as the caller guarantees.
    unsafe { std::hint::assert_unchecked(n < 64) };
    (bits >> (at & 63) & !(u64::MAX << n)) as u32
}

impl BitPosition {
    /// The next bits: their number, and the bits in the lower part of a word.
    ///
    /// # Safety
    /// At most [`MAX_BITS`] were consumed beyond the available ones.
    #[inline(always)]
    unsafe fn bits(&self) -> (u64, u64) {
        #[cfg(target_arch = "x86_64")]
        let last = std::ptr::with_exposed_provenance::<u8>(self.bit as usize >> 3);
        #[cfg(not(target_arch = "x86_64"))]
        let last = self.base.wrapping_offset(self.bit >> 3);
        // SAFETY: the byte of the next bit is in the stream, or before it by the excess consumed;
        // so are the seven bytes before it, for which `FRONT` suffices.
        let word = unsafe { last.wrapping_sub(7).cast::<[u8; 8]>().read() };
        (self.bit as u64 & 7 | 56, u64::from_le_bytes(word))
    }

    /// The table entries of the states.
    ///
    /// # Safety
    /// The states are within their tables.
    #[inline(always)]
    unsafe fn entries<const L: usize>(self, scratch: &SequenceScratch) -> [&Entry; 3] {
        let all = &scratch.tables[L].all;
        // SAFETY: as the caller guarantees.
        unsafe {
            [
                all[LITERALS].get_unchecked(self.literals),
                all[OFFSETS].get_unchecked(self.offsets),
                all[MATCHES].get_unchecked(self.matches),
            ]
        }
    }

    /// Decodes a sequence and the states of the next one. Returns false, without effect, if these
    /// may take more bits than one read returns.
    ///
    /// # Safety
    /// A bit remains, the states are within their tables, and `i` is less than [`GROUP`].
    #[inline(always)]
    unsafe fn step<const L: usize>(&mut self, scratch: &mut SequenceScratch, i: usize) -> bool {
        // SAFETY: as the caller guarantees.
        let [literals, offsets, matches] = unsafe { self.entries::<L>(scratch) };
        let of = |bits: u8| u64::from(bits);
        let states = of(literals.state_bits) + of(offsets.state_bits) + of(matches.state_bits);
        let values = of(literals.value_bits) + of(offsets.value_bits) + of(matches.value_bits);
        if states + values > 56 {
            return false;
        }
        // SAFETY: a bit remains.
        let (have, bits) = unsafe { self.bits() };
        self.bit -= (states + values) as isize;
        // The first field is highest.
        let have = have - of(offsets.value_bits);
        // SAFETY: no entry takes 64 bits or more.
        let offset = offsets.value.wrapping_add(unsafe { low(bits, have, offsets.value_bits) });
        let have = have - of(matches.value_bits);
        // SAFETY: as above.
        let length = matches.value.wrapping_add(unsafe { low(bits, have, matches.value_bits) });
        let have = have - of(literals.value_bits);
        // SAFETY: as above.
        let count = literals.value.wrapping_add(unsafe { low(bits, have, literals.value_bits) });
        let have = have - of(literals.state_bits);
        // SAFETY: as above.
        let next = unsafe { low(bits, have, literals.state_bits) };
        self.literals = (u32::from(literals.next) + next) as usize;
        let have = have - of(matches.state_bits);
        // SAFETY: as above.
        let next = unsafe { low(bits, have, matches.state_bits) };
        self.matches = (u32::from(matches.next) + next) as usize;
        let have = have - of(offsets.state_bits);
        // SAFETY: as above.
        let next = unsafe { low(bits, have, offsets.state_bits) };
        self.offsets = (u32::from(offsets.next) + next) as usize;
        let read = &mut scratch.read[L];
        // SAFETY: `i` is less than `GROUP`.
        unsafe {
            *read.literals.get_unchecked_mut(i) = count;
            *read.lengths.get_unchecked_mut(i) = length;
            *read.offsets.get_unchecked_mut(i) = offset;
        }
        true
    }

    /// Like [`BitPosition::step`], but reads the input again between values and states.
    ///
    /// # Safety
    /// Like [`BitPosition::step`].
    #[cold]
    #[inline(never)]
    unsafe fn long_step<const L: usize>(self, scratch: &mut SequenceScratch, i: usize) -> Self {
        // SAFETY: as the caller guarantees; less than a sequence is consumed before the states.
        unsafe {
            let mut after = self.values::<L>(scratch, i);
            let [literals, offsets, matches] = self.entries::<L>(scratch);
            let (mut have, bits) = after.bits();
            let mut next = |entry: &Entry| {
                have -= u64::from(entry.state_bits);
                after.bit -= isize::from(entry.state_bits);
                (u32::from(entry.next) + low(bits, have, entry.state_bits)) as usize
            };
            let (literals, matches, offsets) = (next(literals), next(matches), next(offsets));
            Self { literals, offsets, matches, ..after }
        }
    }

    /// Decodes a sequence without states, reading the input between its values: they may take more
    /// bits than one read returns.
    ///
    /// # Safety
    /// Like [`BitPosition::step`].
    #[cold]
    #[inline(never)]
    unsafe fn values<const L: usize>(mut self, scratch: &mut SequenceScratch, i: usize) -> Self {
        // SAFETY: as the caller guarantees.
        let entries = unsafe { self.entries::<L>(scratch) };
        let [count, offset, length] = [0, 1, 2].map(|k| *entries[k]);
        let [offset, length, count] = [offset, length, count].map(|entry| {
            let n = u64::from(entry.value_bits);
            // SAFETY: all three take at most 63 bits.
            unsafe {
                let (have, bits) = self.bits();
                self.bit -= n as isize;
                entry.value.wrapping_add(low(bits, have - n, entry.value_bits))
            }
        });
        let read = &mut scratch.read[L];
        read.literals[i] = count;
        read.lengths[i] = length;
        read.offsets[i] = offset;
        self
    }
}
