use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use gannet_base::Time;

/// When connections are to be looked at next, on packet time.
///
/// One entry a connection: being touched costs nothing, since an entry that comes up early is put
/// back. Entries fire in order of time, and of creation where times are equal, so that the order
/// never depends on what else is going on.
///
/// Far entries wait in buckets of a seventh of a second, unsorted. The bucket at hand is sorted, so
/// that what comes up next can be known [ahead](Self::ahead); what is added to it later is in a heap.
#[derive(Debug, Default)]
pub struct Timers {
    /// The bucket at hand, in order, from `at` on.
    near: Vec<Entry>,
    at: usize,
    /// What came after the bucket at hand was sorted.
    late: BinaryHeap<Reverse<Entry>>,
    far: BTreeMap<i64, Vec<Entry>>,
    /// Memory of buckets that are done with.
    spare: Vec<Vec<Entry>>,
    /// The last bucket that came near.
    bucket: i64,
    /// The far bucket that was last added to, of which there is one after the other.
    open: (i64, Vec<Entry>),
    len: usize,
    /// Nothing is due before this, if that is known.
    quiet: Option<Time>,
}

/// Due time, and the low halves of number and index: sixteen bytes, as there is one for every
/// connection. Numbers that differ by four thousand million do not meet at one moment.
type Entry = (Time, u32, u32);

/// Nanoseconds of a bucket, as a power of two.
const BUCKET_BITS: u32 = 27;

/// Entries from which on a bucket grows by a quarter of itself only: floods fill large ones.
const LARGE: usize = 1 << 14;

/// Buckets kept for their memory.
const MAX_SPARE: usize = 8;

fn bucket(t: Time) -> i64 {
    t.as_nanos() >> BUCKET_BITS
}

impl Timers {
    /// Asks for the connection with this number and index at `due`.
    #[inline]
    pub fn add(&mut self, due: Time, number: u64, index: u32) {
        let entry = (due, number as u32, index);
        let to = bucket(due);
        self.len += 1;
        if self.quiet.is_some_and(|until| due < until) {
            self.quiet = Some(due);
        }
        if to <= self.bucket {
            self.late.push(Reverse(entry));
        } else {
            if to != self.open.0 {
                self.open(to);
            }
            let bucket = &mut self.open.1;
            if bucket.len() == bucket.capacity() && bucket.len() >= LARGE {
                bucket.reserve_exact(bucket.len() / 4);
            }
            bucket.push(entry);
        }
    }

    /// Another far bucket is to be added to.
    fn open(&mut self, to: i64) {
        let next = self.far.remove(&to).or_else(|| self.spare.pop()).unwrap_or_default();
        let (from, entries) = std::mem::replace(&mut self.open, (to, next));
        if !entries.is_empty() {
            self.far.insert(from, entries);
        }
    }

    /// The next entry due at or before `now`: its time, the low half of its
    /// number, and its index. It may be out of date:
    /// the connection gone, or its timer moved.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, u32, u32)> {
        if self.quiet.is_some_and(|until| now < until) {
            return None;
        }
        let entry = self.pop_due(now);
        self.quiet = if entry.is_none() { Some(self.next_due()) } else { None };
        entry
    }

    fn pop_due(&mut self, now: Time) -> Option<(Time, u32, u32)> {
        while self.at == self.near.len() && self.late.is_empty() {
            if !self.turn(now) {
                return None;
            }
        }
        let late = self.late.peek().map(|e| e.0);
        let near = self.near.get(self.at).copied();
        let entry = match (near, late) {
            (Some(near), Some(late)) => near.min(late),
            (near, late) => near.or(late)?,
        };
        if entry.0 > now {
            return None;
        }
        if near == Some(entry) {
            self.at += 1;
        } else {
            self.late.pop();
        }
        self.len -= 1;
        Some(entry)
    }

    /// Takes the next bucket, if it has begun.
    fn turn(&mut self, now: Time) -> bool {
        let open = (!self.open.1.is_empty()).then_some(self.open.0);
        let far = self.far.first_key_value().map(|(b, _)| *b);
        let Some(first) = far.into_iter().chain(open).min() else { return false };
        if first > bucket(now) {
            return false;
        }
        self.bucket = first;
        let entries = match self.open.0 == first {
            true => std::mem::take(&mut self.open.1),
            false => self.far.remove(&first).unwrap_or_default(),
        };
        let mut done = std::mem::replace(&mut self.near, entries);
        self.near.sort_unstable();
        self.at = 0;
        done.clear();
        if self.spare.len() < MAX_SPARE {
            self.spare.push(done);
        }
        true
    }

    /// A time before which [`pop`](Self::pop) has nothing.
    pub fn next_due(&self) -> Time {
        let late = self.late.peek().map(|e| e.0.0);
        let near = self.near.get(self.at).map(|e| e.0);
        if let Some(due) = near.into_iter().chain(late).min() {
            return due;
        }
        let open = (!self.open.1.is_empty()).then_some(self.open.0);
        let far = self.far.first_key_value().map(|(b, _)| *b);
        let first = far.into_iter().chain(open).min();
        first.map_or(Time::MAX, |b| Time::from_nanos(b << BUCKET_BITS))
    }

    /// Entries, those that are out of date included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops entries that are out of date, by number and index: so many connections may be taken
    /// out before their time that the rest is the smaller part.
    pub fn retain(&mut self, mut lives: impl FnMut(u32, u32) -> bool) {
        self.near.drain(..self.at);
        self.at = 0;
        let mut lives = |e: &Entry| lives(e.1, e.2);
        self.late.retain(|e| lives(&e.0));
        let far = self.far.values_mut().chain([&mut self.near, &mut self.open.1]);
        self.len = self.late.len();
        for bucket in far {
            bucket.retain(&mut lives);
            bucket.shrink_to_fit();
            self.len += bucket.len();
        }
        self.far.retain(|_, bucket| !bucket.is_empty());
        self.spare.clear();
    }

    /// Bytes of the entries' memory.
    pub fn heap_bytes(&self) -> usize {
        let buckets = self.far.values().chain(&self.spare).chain([&self.near, &self.open.1]);
        let entries = buckets.map(Vec::capacity).sum::<usize>() + self.late.capacity();
        entries * size_of::<Entry>()
    }

    /// The index of the `n`th entry to come up after the next, as far as it is known: for reading
    /// memory ahead.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<u32> {
        self.near.get(self.at + n).map(|e| e.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Interval;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn in_order_of_time_then_creation() {
        let mut t = Timers::default();
        for (s, n) in [(3, 1), (1, 5), (1, 4), (2, 9)] {
            t.add(Time::from_secs(s), n, 0);
        }
        let fired: Vec<_> =
            std::iter::from_fn(|| t.pop(Time::from_secs(2))).map(|(_, n, _)| n).collect();
        assert_eq!(fired, [4, 5, 9]);
    }

    proptest! {
        /// Buckets are nothing but a faster way: what fires is what a sorted set would give,
        /// entries of the past included.
        #[test]
        fn as_a_sorted_set(
            steps in proptest::collection::vec((-400_i64..4_000, 0_i64..600, 1_usize..4), 1..60),
        ) {
            let (mut timers, mut set) = (Timers::default(), BTreeSet::new());
            let (mut now, mut number) = (Time::from_secs(100), 0);
            for (ahead, pass, copies) in steps {
                for _ in 0..copies {
                    let due = now + Interval::from_millis(ahead);
                    timers.add(due, number, 7);
                    set.insert((due, number as u32, 7));
                    number += 1;
                }
                now += Interval::from_millis(pass);
                prop_assert!(set.first().is_none_or(|e| timers.next_due() <= e.0));
                while let Some(fired) = timers.pop(now) {
                    prop_assert_eq!(Some(fired), set.pop_first());
                    prop_assert_eq!(timers.len(), set.len());
                    prop_assert!(fired.0 <= now);
                }
                prop_assert!(set.first().is_none_or(|e| e.0 > now));
                if number % 5 == 0 {
                    timers.retain(|number, _| number % 3 != 0);
                    set.retain(|e| e.1 % 3 != 0);
                    prop_assert_eq!(timers.len(), set.len());
                    prop_assert!(timers.heap_bytes() >= 16 * set.len());
                }
            }
        }
    }
}
