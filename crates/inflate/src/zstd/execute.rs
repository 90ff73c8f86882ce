//! Execution of sequences into a circular window of decompressed bytes.
#![allow(unsafe_code)]

use std::ops::Range;

use super::BLOCK;
use super::Damage;
use super::job::Content;
use super::job::DecodedEntropy;
use super::job::Frame;
use super::job::GROUP;
use super::job::Job;
use super::job::REPEATS;
use super::literals::SLACK;

/// Bytes of literals and of matches copied at a time: most are no longer.
const LITERAL: usize = 16;
const MATCH: usize = 32;

/// Bytes after a block that may be overwritten.
const OVERRUN: usize = 64;

const _: () = assert!(OVERRUN >= MATCH && OVERRUN >= LITERAL && SLACK >= LITERAL);

/// A position beyond all others: more than twice the address space of a program.
const FAR: usize = 1 << (usize::BITS - 1);

/// Initial size of the window buffer in bytes, unless the whole buffer is smaller.
const INITIAL: usize = 256 << 10;

/// The last decompressed bytes, as far as matches reach back.
///
/// A block is contiguous. If no other block fits after the last one, the next is written at the
/// start of the buffer, over the oldest bytes; the bytes at the end remain available to matches.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Longest distance of a match.
    size: usize,
    /// Maximum decompressed size of a block, in bytes.
    max_block: usize,
    /// Position of the next block.
    at: usize,
    /// End of the previous round through the buffer; `None` in the first round.
    end: Option<usize>,
    /// Bytes decompressed of the frame so far.
    pub(super) produced: u64,
    /// The last three offsets, the newest first.
    last: [u32; 3],
}

/// Maximum decompressed size of a block, in bytes, in a frame with this window.
pub(super) fn max_block(window: usize) -> usize {
    window.min(BLOCK)
}

impl Window {
    /// Begins a frame.
    pub(super) fn begin(&mut self, frame: Frame) {
        self.size = frame.window;
        self.max_block = max_block(frame.window);
        (self.at, self.end, self.produced) = (0, None, 0);
        self.last = [1, 4, 8];
    }

    /// Maximum size of the buffer: the window and two blocks.
    fn all(&self) -> usize {
        self.size + 2 * (self.max_block + OVERRUN)
    }

    /// The bytes of a block.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Executes a block after the last one; returns its range.
    pub(super) fn execute(&mut self, job: &Job) -> Result<Range<usize>, Damage> {
        let size = match &job.content {
            Content::Nothing => return Ok(self.at..self.at),
            Content::Raw => job.content_bytes().len(),
            Content::Repeated(_, times) => *times,
            Content::Packed(_) => job.decoded.size,
        };
        if size > self.max_block {
            return Err(Damage::Long);
        }
        self.reserve_block();
        let range = self.at..self.at + size;
        match &job.content {
            Content::Nothing => {}
            Content::Raw => self.bytes[range.clone()].copy_from_slice(job.content_bytes()),
            Content::Repeated(byte, _) => self.bytes[range.clone()].fill(*byte),
            Content::Packed(_) => self.sequences(&job.decoded)?,
        }
        self.at = range.end;
        self.produced += size as u64;
        Ok(range)
    }

    /// Grows the buffer or starts a new round, so that the largest block fits at `at`.
    fn reserve_block(&mut self) {
        let need = self.max_block + OVERRUN;
        if self.at + need <= self.bytes.len() {
            return;
        }
        let all = self.all();
        if self.bytes.len() < all && self.end.is_none() {
            // It grows with the data, independent of the window size in the frame header.
            let more = (2 * self.bytes.len()).max(INITIAL).max(self.at + need);
            self.bytes.resize(more.min(all), 0);
            if self.at + need <= self.bytes.len() {
                return;
            }
        }
        self.end = Some(self.at);
        self.at = 0;
    }
}

/// Source and destination of a match.
struct Run {
    bytes: *mut u8,
    /// End of the previous round; beyond all positions if there was none.
    end: usize,
}

impl Window {
    /// Writes sequences and literals at `at`, where the largest block fits.
    fn sequences(&mut self, decoded: &DecodedEntropy) -> Result<(), Damage> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { self.modern(decoded) };
        }
        self.run(decoded)
    }

    /// [`run`](Self::run) compiled for processors with 32-byte copies.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn modern(&mut self, decoded: &DecodedEntropy) -> Result<(), Damage> {
        self.run(decoded)
    }

    #[inline(always)]
    fn run(&mut self, decoded: &DecodedEntropy) -> Result<(), Damage> {
        let begin = self.at;
        if decoded.literals.len() < decoded.literal_count + SLACK
            || self.bytes.len() < begin + decoded.size + OVERRUN
        {
            return Err(Damage::Long);
        }
        // In the first round there is no previous one: an earlier position wraps to a value beyond
        // all positions, so far that no length leads back.
        let (wrap, end) = match self.end {
            Some(end) => (end, end),
            None => (FAR, FAR / 2),
        };
        let run = Run { bytes: self.bytes.as_mut_ptr(), end };
        let size = self.size;
        // Offsets from `MATCH` on that are in reach.
        let usual = (size + 1).saturating_sub(MATCH);
        let mut literals = decoded.literals.as_ptr();
        let mut at = begin;
        let [mut rep0, mut rep1, mut rep2] = self.last;
        let mut sequences = decoded.sequence_count;
        for group in &decoded.sequences[..sequences.div_ceil(GROUP)] {
            let n = sequences.min(GROUP);
            sequences -= n;
            for i in 0..n {
                let offset = group.offsets[i];
                let (count, length) = (group.literals[i] as usize, group.lengths[i] as usize);

                // The choice of the repeated offset is unpredictable, so it takes no branch.
                let old = select(offset == 0, rep0, select(offset == 1, rep1, rep2));
                let old = select(offset == REPEATS, rep0.wrapping_sub(1), old);
                let new = select(offset > REPEATS, offset.wrapping_sub(REPEATS), old);
                rep2 = select(offset < 2, rep2, rep1);
                rep1 = select(offset < 1, rep1, rep0);
                rep0 = new;
                // SAFETY: all literals and lengths of a block add up to no more than available and
                // at most to `size` (`Lane::end`), which fits into the buffer; some bytes after
                // both may be read and written.
                unsafe {
                    run.literals(literals, at, count);
                    literals = literals.add(count);
                }
                at += count;
                let offset = new as usize;
                // A position in the previous round is before its end.
                let (from, before) = at.overflowing_sub(offset);
                let from = from.wrapping_add(if before { wrap } else { 0 });
                if offset.wrapping_sub(MATCH) < usual && from.wrapping_add(length) <= end {
                    // SAFETY: the source was written before: either it begins before `at`, or it
                    // lies before the end of the previous round, with `OVERRUN` bytes after both. In
                    // the first round, a source before the beginning would give a `from` of `FAR`
                    // minus at most an offset, which is beyond `end` with any length. The
                    // destination is valid for the same reason as that of literals.
                    unsafe { run.matched(from, at, length) };
                } else {
                    // In the first round, matches can refer only to bytes before `at`.
                    let reach = if self.end.is_some() { size } else { at.min(size) };
                    if offset.wrapping_sub(1) >= reach {
                        return Err(Damage::Offset);
                    }
                    // SAFETY: `offset` was checked; the destination is valid as above.
                    unsafe { run.overlapping(offset, at, length) };
                }
                at += length;
            }
        }
        self.last = [rep0, rep1, rep2];
        let rest = decoded.literal_count - (literals as usize - decoded.literals.as_ptr() as usize);
        // SAFETY: these are the last literals, with which the block has its stated size.
        unsafe { literals.copy_to_nonoverlapping(run.bytes.add(at), rest) };
        Ok(())
    }
}

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    std::hint::select_unpredictable(condition, yes, no)
}

/// Copies `N` bytes with one load and one store.
///
/// # Safety
/// `N` bytes can be read from `from` and written to `to`.
#[inline(always)]
unsafe fn wide<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller guarantees.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}

/// Copies the `n` bytes except the first `N`, and up to `N` more bytes.
///
/// # Safety
/// `n` + `N` bytes can be read from `from` and written to `to`.
#[inline(never)]
unsafe fn more<const N: usize>(from: *const u8, to: *mut u8, n: usize) {
    let mut done = N;
    while done < n {
        // SAFETY: as the caller guarantees; each copy begins before the last byte that counts.
        unsafe { wide::<N>(from.add(done), to.add(done)) };
        done += N;
    }
}

impl Run {
    /// Copies `count` literals to `at`, and some more bytes.
    ///
    /// # Safety
    /// `count` + [`SLACK`] bytes can be read, and `count` + [`OVERRUN`] written.
    #[inline(always)]
    unsafe fn literals(&self, from: *const u8, at: usize, count: usize) {
        // SAFETY: as the caller guarantees; each copy begins before the last byte that counts.
        unsafe {
            let to = self.bytes.add(at);
            wide::<LITERAL>(from, to);
            if count > LITERAL {
                more::<LITERAL>(from, to, count);
            }
        }
    }

    /// Copies `length` bytes from `from` to `at`, and some more bytes.
    ///
    /// # Safety
    /// Both are positions in the buffer followed by `length` + [`OVERRUN`] bytes; `from` is at least
    /// [`MATCH`] bytes before `at`, or after all bytes that are written.
    #[inline(always)]
    unsafe fn matched(&self, from: usize, at: usize, length: usize) {
        // SAFETY: as the caller guarantees; each copy begins before the last byte that counts, and
        // reads bytes written before it.
        unsafe {
            let (from, to) = (self.bytes.add(from).cast_const(), self.bytes.add(at));
            wide::<MATCH>(from, to);
            if length > MATCH {
                more::<MATCH>(from, to, length);
            }
        }
    }

    /// Copies a match that overlaps itself, or crosses the end of the previous round.
    ///
    /// # Safety
    /// `offset` is not 0 and refers to a byte of the window; `length` + [`OVERRUN`] bytes can be
    /// written at `at`.
    #[inline(never)]
    unsafe fn overlapping(&self, offset: usize, mut at: usize, length: usize) {
        let end = at + length;
        if offset > at {
            let mut from = at.wrapping_sub(offset).wrapping_add(self.end);
            while at < end {
                // SAFETY: the previous round up to its end, then this one from its beginning.
                unsafe { self.bytes.add(at).write(self.bytes.add(from).read()) };
                at += 1;
                from += 1;
                if from == self.end {
                    from = 0;
                }
            }
            return;
        }
        let from = at - offset;
        // A sequence with a period also has twice that period: each copy of `period` bytes doubles
        // the distance, until it is as wide as a copy.
        let mut period = offset;
        while period < MATCH {
            if at >= end {
                return;
            }
            // SAFETY: `at` is before `end`; only the first `period` of the bytes written after it
            // count.
            unsafe { wide::<MATCH>(self.bytes.add(from), self.bytes.add(at)) };
            at += period;
            period *= 2;
        }
        if at < end {
            // SAFETY: `from` is at least `MATCH` before `at` now.
            unsafe { self.matched(from, at, end - at) };
        }
    }
}
