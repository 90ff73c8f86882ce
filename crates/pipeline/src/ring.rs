//! A ring of words between two threads: one puts, one takes, and every loss is counted.
//!
//! A word is a number or a pointer whose meaning both sides know. Each side keeps its own position
//! and the last seen position of the other on cache lines of its own, so that lines are shared only
//! when the ring looks full or empty. [`Ring::put`] waits for room, [`Ring::offer`] does not and
//! counts the words without room.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

/// Processor pauses between two polls of the other side, some microseconds in all: enough words are
/// transferred meanwhile that the cache line with its position is not shared for each of them.
const PAUSES: u32 = 64;
/// Looks at the other side before the processor is given to another thread.
const SPINS: u32 = 16;
/// Looks before the thread sleeps in between.
const YIELDS: u32 = 4096;
/// How long it then sleeps each time.
const NAP: Duration = Duration::from_micros(50);

/// A ring for one thread that puts and one that takes. More than one on a side do no harm to memory,
/// but may overwrite each other's words.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[AtomicU64]>,
    writer: Side,
    reader: Side,
    closed: AtomicBool,
    dropped: AtomicU64,
}

/// The fields that one side accesses for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// Number of words that it put or took.
    at: AtomicUsize,
    /// The other side's count when it was last looked at.
    seen: AtomicUsize,
}

/// The ring was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring is closed")]
pub struct Closed;

impl Ring {
    /// With room for `capacity` words, rounded up to a power of two.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(2).next_power_of_two();
        Self {
            slots: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            writer: Side::default(),
            reader: Side::default(),
            closed: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }

    /// Words it has room for.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Words in it.
    pub fn len(&self) -> usize {
        let taken = self.reader.at.load(Acquire);
        self.writer.at.load(Acquire).wrapping_sub(taken)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// Closes the ring for `put`; its contents can still be taken.
    pub fn close(&self) {
        self.closed.store(true, Release);
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    /// Words that [`offer`](Self::offer) found no room for.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Puts a word in, unless there is no room; whether it is in.
    #[inline]
    pub fn try_put(&self, word: u64) -> bool {
        let at = self.writer.at.load(Relaxed);
        if at.wrapping_sub(self.writer.seen.load(Relaxed)) >= self.slots.len() {
            let taken = self.reader.at.load(Acquire);
            self.writer.seen.store(taken, Relaxed);
            if at.wrapping_sub(taken) >= self.slots.len() {
                return false;
            }
        }
        self.slots[at & (self.slots.len() - 1)].store(word, Relaxed);
        self.writer.at.store(at.wrapping_add(1), Release);
        true
    }

    /// Puts a word in or counts it as dropped; whether it is in.
    #[inline]
    pub fn offer(&self, word: u64) -> bool {
        let is_in = !self.is_closed() && self.try_put(word);
        if !is_in {
            self.dropped.fetch_add(1, Relaxed);
        }
        is_in
    }

    /// Puts a word in, and waits until there is room.
    ///
    /// # Errors
    /// Where the ring is closed; the word is not in then.
    #[inline]
    pub fn put(&self, word: u64) -> Result<(), Closed> {
        self.put_unless(word, || false)
    }

    /// The same, but gives up when `over` returns true.
    ///
    /// # Errors
    /// Where the ring is closed, or it gave up.
    #[inline]
    pub fn put_unless(&self, word: u64, over: impl Fn() -> bool) -> Result<(), Closed> {
        let mut wait = Wait::default();
        loop {
            if self.is_closed() {
                return Err(Closed);
            }
            if self.try_put(word) {
                return Ok(());
            }
            if over() {
                return Err(Closed);
            }
            wait.once();
        }
    }

    /// Takes the oldest word.
    #[inline]
    pub fn try_take(&self) -> Option<u64> {
        let at = self.reader.at.load(Relaxed);
        if at == self.reader.seen.load(Relaxed) {
            let put = self.writer.at.load(Acquire);
            self.reader.seen.store(put, Relaxed);
            if at == put {
                return None;
            }
        }
        let word = self.slots[at & (self.slots.len() - 1)].load(Relaxed);
        self.reader.at.store(at.wrapping_add(1), Release);
        Some(word)
    }

    /// Takes the oldest word, and waits for one; `None` when the ring is closed and empty.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        self.take_unless(|| false)
    }

    /// The same, but gives up when `over` returns true.
    #[inline]
    pub fn take_unless(&self, over: impl Fn() -> bool) -> Option<u64> {
        let mut wait = Wait::default();
        loop {
            if let Some(word) = self.try_take() {
                return Some(word);
            }
            if self.is_closed() || over() {
                // Words that were put before it was closed are visible now.
                return self.try_take();
            }
            wait.once();
        }
    }
}

/// Waits for the other side: awake at first, then less and less.
#[derive(Debug, Default)]
struct Wait(u32);

impl Wait {
    fn once(&mut self) {
        self.0 = self.0.saturating_add(1);
        if self.0 < SPINS {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        } else if self.0 < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_out_as_they_went_in() {
        let ring = Ring::new(3);
        assert_eq!(ring.capacity(), 4);
        for word in 1..=4 {
            assert!(ring.try_put(word));
        }
        assert!(!ring.try_put(5) && ring.is_full());
        assert!(!ring.offer(5));
        assert_eq!((ring.dropped(), ring.len()), (1, 4));
        assert_eq!(ring.try_take(), Some(1));
        assert!(ring.offer(5));
        ring.close();
        assert_eq!(ring.put(6), Err(Closed));
        let rest: Vec<u64> = std::iter::from_fn(|| ring.take()).collect();
        assert_eq!(rest, [2, 3, 4, 5]);
        assert!(ring.is_empty());
    }

    #[test]
    fn no_side_waits_for_one_that_is_gone() {
        let ring = Ring::new(2);
        assert_eq!(ring.take_unless(|| true), None);
        ring.put(1).unwrap();
        ring.put(2).unwrap();
        assert_eq!(ring.put_unless(3, || true), Err(Closed));
        assert_eq!(ring.len(), 2);
    }

    #[test]
    fn between_threads_every_word_arrives_once_and_in_order() {
        const WORDS: u64 = 30_000;
        let ring = Ring::new(64);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for word in 0..WORDS {
                    ring.put(word).unwrap();
                }
                ring.close();
            });
            let mut next = 0;
            while let Some(word) = ring.take() {
                assert_eq!(word, next);
                next += 1;
            }
            assert_eq!(next, WORDS);
        });
    }

    #[test]
    fn what_is_not_taken_in_time_is_counted() {
        const WORDS: u64 = 20_000;
        let ring = Ring::new(16);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for word in 0..WORDS {
                    ring.offer(word);
                }
                ring.close();
            });
            let taken = std::iter::from_fn(|| ring.take()).count() as u64;
            assert_eq!(taken + ring.dropped(), WORDS);
        });
    }
}
