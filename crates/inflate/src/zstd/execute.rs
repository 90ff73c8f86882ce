//! Execution of sequences into a circular window of decompressed bytes.
#![allow(unsafe_code)]

use std::ops::Range;

use super::BLOCK;
use super::Damage;
use super::job::Content;
use super::job::DecodedEntropy;
use super::job::Frame;
use super::job::Job;
use super::job::REPEATS;
use super::job::TOGETHER;
use super::literals::SLACK;

/// Bytes copied at a time: most literal runs, and most matches, are no longer.
const LITERAL: usize = 16;
const MATCH: usize = 32;

/// Bytes behind a block that may be overwritten.
const BEYOND: usize = 64;

const _: () = assert!(BEYOND >= MATCH && BEYOND >= LITERAL && SLACK >= LITERAL);

/// More than twice the address space of a program.
const FAR: usize = 1 << (usize::BITS - 1);

/// Initial size of the window, if it is not smaller.
const FIRST: usize = 256 << 10;

/// The last decompressed bytes, as far as matches reach back.
///
/// A block is contiguous. If there is no room for another one behind the last, the next goes to the
/// front, over the oldest bytes; the bytes at the back remain in reach.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Longest distance of a match.
    size: usize,
    /// Most bytes that a block decompresses to.
    most: usize,
    /// Position of the next block.
    at: usize,
    /// End of the previous round, once there was one.
    end: Option<usize>,
    /// Bytes of the frame so far.
    pub(super) made: u64,
    /// The last three offsets, the newest first.
    last: [u32; 3],
}

/// Most bytes of a block in a frame with this window.
pub(super) fn most(window: usize) -> usize {
    window.min(BLOCK)
}

impl Window {
    /// Begins a frame.
    pub(super) fn begin(&mut self, frame: Frame) {
        self.size = frame.window;
        self.most = most(frame.window);
        (self.at, self.end, self.made) = (0, None, 0);
        self.last = [1, 4, 8];
    }

    /// The most room that the window may need: two blocks fit without losing any of it.
    fn all(&self) -> usize {
        self.size + 2 * (self.most + BEYOND)
    }

    /// The bytes of a block.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Executes a block behind the last one; returns its range.
    pub(super) fn execute(&mut self, job: &Job) -> Result<Range<usize>, Damage> {
        let size = match &job.content {
            Content::Nothing => return Ok(self.at..self.at),
            Content::Raw => job.content_bytes().len(),
            Content::Repeated(_, times) => *times,
            Content::Packed(_) => job.made.size,
        };
        if size > self.most {
            return Err(Damage::Long);
        }
        self.make_room();
        let range = self.at..self.at + size;
        match &job.content {
            Content::Nothing => {}
            Content::Raw => self.bytes[range.clone()].copy_from_slice(job.content_bytes()),
            Content::Repeated(byte, _) => self.bytes[range.clone()].fill(*byte),
            Content::Packed(_) => self.sequences(&job.made)?,
        }
        self.at = range.end;
        self.made += size as u64;
        Ok(range)
    }

    /// Makes room for the largest block at `at`.
    fn make_room(&mut self) {
        let need = self.most + BEYOND;
        if self.at + need <= self.bytes.len() {
            return;
        }
        let all = self.all();
        if self.bytes.len() < all && self.end.is_none() {
            // It grows with the data, whatever the frame header says.
            let more = (2 * self.bytes.len()).max(FIRST).max(self.at + need);
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
    /// End of the previous round; beyond everything if there was none.
    end: usize,
}

impl Window {
    /// Writes sequences and literals at `at`, where there is room for the largest block.
    fn sequences(&mut self, made: &DecodedEntropy) -> Result<(), Damage> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { self.modern(made) };
        }
        self.run(made)
    }

    /// The same code compiled for processors with 32-byte copies.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn modern(&mut self, made: &DecodedEntropy) -> Result<(), Damage> {
        self.run(made)
    }

    #[inline(always)]
    fn run(&mut self, made: &DecodedEntropy) -> Result<(), Damage> {
        let begin = self.at;
        if made.literals.len() < made.literal_count + SLACK
            || self.bytes.len() < begin + made.size + BEYOND
        {
            return Err(Damage::Long);
        }
        // In the first round there is no previous one: an earlier position wraps to a value beyond
        // everything, so far that no length leads back.
        let (wrap, end) = match self.end {
            Some(end) => (end, end),
            None => (FAR, FAR / 2),
        };
        let run = Run { bytes: self.bytes.as_mut_ptr(), end };
        let size = self.size;
        // Offsets from `MATCH` on that are in reach.
        let usual = (size + 1).saturating_sub(MATCH);
        let mut literals = made.literals.as_ptr();
        let mut at = begin;
        let [mut r0, mut r1, mut r2] = self.last;
        let mut sequences = made.sequence_count;
        for group in &made.sequences[..sequences.div_ceil(TOGETHER)] {
            let n = sequences.min(TOGETHER);
            sequences -= n;
            for i in 0..n {
                let offset = group.offsets[i];
                let (count, length) = (group.literals[i] as usize, group.lengths[i] as usize);

                // The choice of the repeated offset is unpredictable, so it takes no branch.
                let old = select(offset == 0, r0, select(offset == 1, r1, r2));
                let old = select(offset == REPEATS, r0.wrapping_sub(1), old);
                let new = select(offset > REPEATS, offset.wrapping_sub(REPEATS), old);
                r2 = select(offset < 2, r2, r1);
                r1 = select(offset < 1, r1, r0);
                r0 = new;
                // SAFETY: all literals and lengths of a block add up to no more than available and
                // at most to `size` (`Lane::end`), for which there is room; some bytes behind both
                // may be read and written.
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
                    // lies before the end of the previous round, with `BEYOND` bytes behind both.
                    // In the first round, a source before the beginning would give a `from` of
                    // `FAR` minus at most an offset, which is beyond `end` with any length. The
                    // destination is as with literals.
                    unsafe { run.matched(from, at, length) };
                } else {
                    // In the first round, all bytes in reach lie before it.
                    let reach = if self.end.is_some() { size } else { at.min(size) };
                    if offset.wrapping_sub(1) >= reach {
                        return Err(Damage::Offset);
                    }
                    // SAFETY: as above.
                    unsafe { run.odd(offset, at, length) };
                }
                at += length;
            }
        }
        self.last = [r0, r1, r2];
        let rest = made.literal_count - (literals as usize - made.literals.as_ptr() as usize);
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

/// Copies the bytes after the first `N` of `n`, and up to `N` bytes more.
///
/// # Safety
/// As many bytes can be read and written.
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
    /// Copies `count` literals to `at`, and some bytes more.
    ///
    /// # Safety
    /// `count` bytes can be read, with [`SLACK`] behind them, and written, with [`BEYOND`].
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

    /// Copies `length` bytes from `from` to `at`, and some bytes more.
    ///
    /// # Safety
    /// Both are positions in the buffer with `length` and [`BEYOND`] bytes behind them; `from` is
    /// at least [`MATCH`] bytes before `at`, or behind all that is written.
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
    /// `offset` is not 0 and in reach; `length` bytes can be written at `at`, and [`BEYOND`] behind them.
    #[inline(never)]
    unsafe fn odd(&self, offset: usize, mut at: usize, length: usize) {
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
            // SAFETY: `at` is before `end`; of the bytes written behind it only the first `period`
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
