//! A single-producer, single-consumer ring buffer of words, which counts dropped words.
//!
//! A word is a number or a pointer, interpreted by both sides. Each side stores its own position and a cached position
//! of the other side on its own cache lines, so that lines are shared only when the ring seems full or empty.
//! [`Ring::put`] waits while the ring is full; [`Ring::offer`] drops the word and counts it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

/// Number of spin-loop hints between two polls of the other side, some microseconds: meanwhile several words are
/// transferred, so that the cache line with its position is not shared for each of them.
const PAUSES_PER_POLL: u32 = 64;
/// Number of polls before the thread yields.
const SPIN_POLLS: u32 = 16;
/// Number of polls before the thread sleeps.
const YIELD_POLLS: u32 = 4096;
/// Duration of each sleep.
const SLEEP: Duration = Duration::from_micros(50);

/// A ring for one producer and one consumer. Several threads on a side are memory-safe, but may overwrite words of each
/// other.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[AtomicU64]>,
    writer: Side,
    reader: Side,
    closed: AtomicBool,
    dropped: AtomicU64,
}

/// The fields that a side accesses for each word.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// Number of words that this side has put or taken.
    position: AtomicUsize,
    /// The other side's position when it was last read.
    cached_other: AtomicUsize,
}

/// The ring was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ring is closed")]
pub struct Closed;

impl Ring {
    /// A ring for `capacity` words, rounded up to a power of two.
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

    /// Maximum number of words.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Number of words in the ring.
    pub fn len(&self) -> usize {
        let taken = self.reader.position.load(Acquire);
        self.writer.position.load(Acquire).wrapping_sub(taken)
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the ring is full.
    pub fn is_full(&self) -> bool {
        self.len() >= self.capacity()
    }

    /// Closes the ring for `put`; the remaining words can still be taken.
    pub fn close(&self) {
        self.closed.store(true, Release);
    }

    /// Whether the ring is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Acquire)
    }

    /// Number of words that [`offer`](Self::offer) dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Adds a word unless the ring is full; returns whether it was added.
    #[inline]
    pub fn try_put(&self, word: u64) -> bool {
        let position = self.writer.position.load(Relaxed);
        if position.wrapping_sub(self.writer.cached_other.load(Relaxed)) >= self.slots.len() {
            let taken = self.reader.position.load(Acquire);
            self.writer.cached_other.store(taken, Relaxed);
            if position.wrapping_sub(taken) >= self.slots.len() {
                return false;
            }
        }
        self.slots[position & (self.slots.len() - 1)].store(word, Relaxed);
        self.writer.position.store(position.wrapping_add(1), Release);
        true
    }

    /// Adds a word, or counts it as dropped if the ring is full or closed; returns whether it was added.
    #[inline]
    pub fn offer(&self, word: u64) -> bool {
        let is_added = !self.is_closed() && self.try_put(word);
        if !is_added {
            self.dropped.fetch_add(1, Relaxed);
        }
        is_added
    }

    /// Adds a word; waits while the ring is full.
    ///
    /// # Errors
    /// If the ring is closed; the word is not added.
    #[inline]
    pub fn put(&self, word: u64) -> Result<(), Closed> {
        self.put_unless(word, || false)
    }

    /// Like [`put`](Self::put), but stops waiting when `should_stop` returns `true`.
    ///
    /// # Errors
    /// If the ring is closed, or waiting stopped.
    #[inline]
    pub fn put_unless(&self, word: u64, should_stop: impl Fn() -> bool) -> Result<(), Closed> {
        let mut wait = Wait::default();
        loop {
            if self.is_closed() {
                return Err(Closed);
            }
            if self.try_put(word) {
                return Ok(());
            }
            if should_stop() {
                return Err(Closed);
            }
            wait.once();
        }
    }

    /// Takes the oldest word; `None` if the ring is empty.
    #[inline]
    pub fn try_take(&self) -> Option<u64> {
        let position = self.reader.position.load(Relaxed);
        if position == self.reader.cached_other.load(Relaxed) {
            let put = self.writer.position.load(Acquire);
            self.reader.cached_other.store(put, Relaxed);
            if position == put {
                return None;
            }
        }
        let word = self.slots[position & (self.slots.len() - 1)].load(Relaxed);
        self.reader.position.store(position.wrapping_add(1), Release);
        Some(word)
    }

    /// Takes the oldest word; waits while the ring is empty. `None` if it is closed and empty.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        self.take_unless(|| false)
    }

    /// Like [`take`](Self::take), but stops waiting when `should_stop` returns `true`.
    #[inline]
    pub fn take_unless(&self, should_stop: impl Fn() -> bool) -> Option<u64> {
        let mut wait = Wait::default();
        loop {
            if let Some(word) = self.try_take() {
                return Some(word);
            }
            if self.is_closed() || should_stop() {
                // Words that were added before the ring was closed are visible now.
                return self.try_take();
            }
            wait.once();
        }
    }
}

/// Backoff while waiting for the other side: spins, then yields, then sleeps.
#[derive(Debug, Default)]
struct Wait(u32);

impl Wait {
    fn once(&mut self) {
        self.0 = self.0.saturating_add(1);
        if self.0 < SPIN_POLLS {
            (0..PAUSES_PER_POLL).for_each(|_| std::hint::spin_loop());
        } else if self.0 < YIELD_POLLS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_in_order() {
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
    fn waiting_can_be_stopped() {
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
    fn dropped_words_are_counted() {
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
