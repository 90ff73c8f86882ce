//! Where sequences become bytes: a window of what was unpacked last, used round and round.
#![allow(unsafe_code)]

use std::ops::Range;

use super::BLOCK;
use super::Damage;
use super::job::Content;
use super::job::Frame;
use super::job::Job;
use super::job::Made;
use super::job::REPEATS;
use super::job::TOGETHER;
use super::literals::SLACK;

/// Bytes that are copied at a time: most literals, and most matches, are no more.
const LITERAL: usize = 16;
const MATCH: usize = 32;

/// Bytes behind a block that may be overwritten.
const BEYOND: usize = 64;

const _: () = assert!(BEYOND >= MATCH && BEYOND >= LITERAL && SLACK >= LITERAL);

/// More than twice what a program can address.
const FAR: usize = 1 << (usize::BITS - 1);

/// What the window starts with, if it is not smaller.
const FIRST: usize = 256 << 10;

/// The bytes that were unpacked last, as far as matches reach back.
///
/// A block is written in one piece. Where there is no room for another one behind the last, the next goes
/// to the front, where the oldest bytes are; those that were last before that stay where they are, at the
/// back, and are still in reach.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// How far matches may reach back.
    size: usize,
    /// The most that a block unpacks to.
    most: usize,
    /// Where the next block goes.
    at: usize,
    /// Where the last round ended, once there was one.
    end: Option<usize>,
    /// Bytes of the frame so far.
    pub(super) made: u64,
    /// The last three offsets, the newest first.
    last: [u32; 3],
}

/// What is at most in a block of a frame with such a window.
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

    /// All the room that the window may need: two blocks may be written without losing any of it.
    fn all(&self) -> usize {
        self.size + 2 * (self.most + BEYOND)
    }

    /// The bytes of a block.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Unpacks a block behind the last one; where it is.
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

    /// Sees to it that the largest block can be written at `at`.
    fn make_room(&mut self) {
        let need = self.most + BEYOND;
        if self.at + need <= self.bytes.len() {
            return;
        }
        let all = self.all();
        if self.bytes.len() < all && self.end.is_none() {
            // It grows with what came, whatever the frame says of its window.
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

/// Where a match of a block is copied from and to.
struct Run {
    bytes: *mut u8,
    /// Where the last round ended; beyond everything if there was none.
    end: usize,
}

impl Window {
    /// Writes what sequences and literals say to `at`, where there is room for the largest block.
    fn sequences(&mut self, made: &Made) -> Result<(), Damage> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { self.modern(made) };
        }
        self.run(made)
    }

    /// The same code for processors that copy 32 bytes at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn modern(&mut self, made: &Made) -> Result<(), Damage> {
        self.run(made)
    }

    #[inline(always)]
    fn run(&mut self, made: &Made) -> Result<(), Damage> {
        let begin = self.at;
        if made.literals.len() < made.literal_count + SLACK
            || self.bytes.len() < begin + made.size + BEYOND
        {
            return Err(Damage::Long);
        }
        // In the first round there is no other one: what lies before it is beyond everything, and so far that
        // no length leads back.
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

                // Which offset it is takes no branch: none of them could be foretold.
                let old = select(offset == 0, r0, select(offset == 1, r1, r2));
                let old = select(offset == REPEATS, r0.wrapping_sub(1), old);
                let new = select(offset > REPEATS, offset.wrapping_sub(REPEATS), old);
                r2 = select(offset < 2, r2, r1);
                r1 = select(offset < 1, r1, r0);
                r0 = new;
                // SAFETY: all literals and lengths of a block add up to no more than there are and to `size`
                // at the most (`Lane::end`), for which there is room; behind both some bytes more may be
                // read and written.
                unsafe {
                    run.literals(literals, at, count);
                    literals = literals.add(count);
                }
                at += count;
                let offset = new as usize;
                // What began in the last round lies before its end.
                let (from, before) = at.overflowing_sub(offset);
                let from = from.wrapping_add(if before { wrap } else { 0 });
                if offset.wrapping_sub(MATCH) < usual && from.wrapping_add(length) <= end {
                    // SAFETY: what is read was written before: either it begins before `at`, or it lies
                    // before the end of the last round, with `BEYOND` bytes behind both. In the first round,
                    // if it began before that, `from` would be `FAR` less no more than an offset, which is
                    // beyond `end` with any length. What is written is as with literals.
                    unsafe { run.matched(from, at, length) };
                } else {
                    // In the first round, all that is in reach lies before it.
                    let reach = if self.end.is_some() { size } else { at.min(size) };
                    if offset.wrapping_sub(1) >= reach {
                        return Err(Damage::Offset);
                    }
                    // SAFETY: likewise.
                    unsafe { run.odd(offset, at, length) };
                }
                at += length;
            }
        }
        self.last = [r0, r1, r2];
        let rest = made.literal_count - (literals as usize - made.literals.as_ptr() as usize);
        // SAFETY: they are the last literals, with which the block is as long as was said.
        unsafe { literals.copy_to_nonoverlapping(run.bytes.add(at), rest) };
        Ok(())
    }
}

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    std::hint::select_unpredictable(condition, yes, no)
}

/// Copies `N` bytes, read at once.
///
/// # Safety
/// So many can be read from `from` and written to `to`.
#[inline(always)]
unsafe fn wide<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: by the caller's word.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}

/// Copies what comes after the first `N` of `n` bytes, and up to `N` bytes more.
///
/// # Safety
/// So many can be read and written.
#[inline(never)]
unsafe fn more<const N: usize>(from: *const u8, to: *mut u8, n: usize) {
    let mut done = N;
    while done < n {
        // SAFETY: by the caller's word; each copy begins before the last byte that counts.
        unsafe { wide::<N>(from.add(done), to.add(done)) };
        done += N;
    }
}

impl Run {
    /// Copies `count` literals to `at`, and some bytes more.
    ///
    /// # Safety
    /// So many can be read, with [`SLACK`] behind them, and written, with [`BEYOND`].
    #[inline(always)]
    unsafe fn literals(&self, from: *const u8, at: usize, count: usize) {
        // SAFETY: by the caller's word; each copy begins before the last byte that counts.
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
    /// Both are places of the buffer with so many bytes and [`BEYOND`] behind them; `from` lies [`MATCH`] bytes
    /// or more before `at`, or behind all that is written.
    #[inline(always)]
    unsafe fn matched(&self, from: usize, at: usize, length: usize) {
        // SAFETY: by the caller's word; each copy begins before the last byte that counts, and reads
        // what was written before it.
        unsafe {
            let (from, to) = (self.bytes.add(from).cast_const(), self.bytes.add(at));
            wide::<MATCH>(from, to);
            if length > MATCH {
                more::<MATCH>(from, to, length);
            }
        }
    }

    /// Copies a match that overlaps itself, or goes over the end of the last round.
    ///
    /// # Safety
    /// `offset` is not 0 and in reach; `length` bytes can be written at `at`, and [`BEYOND`] behind them.
    #[inline(never)]
    unsafe fn odd(&self, offset: usize, mut at: usize, length: usize) {
        let end = at + length;
        if offset > at {
            let mut from = at.wrapping_sub(offset).wrapping_add(self.end);
            while at < end {
                // SAFETY: all of the last round up to its end, then this one from its beginning on.
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
        // What repeats with a period repeats with twice the period, too: every copy of as many bytes as
        // there are makes the distance twice as far, until it is as wide as a copy.
        let mut period = offset;
        while period < MATCH {
            if at >= end {
                return;
            }
            // SAFETY: `at` is before `end`; of what is written behind it the first `period` bytes count.
            unsafe { wide::<MATCH>(self.bytes.add(from), self.bytes.add(at)) };
            at += period;
            period *= 2;
        }
        if at < end {
            // SAFETY: `from` is `MATCH` or more before `at` now.
            unsafe { self.matched(from, at, end - at) };
        }
    }
}
