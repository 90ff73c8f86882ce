use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;

use gannet_base::Interval;
use gannet_base::Time;

/// The times at which connections are due for a check, in packet time.
///
/// Each connection has one entry. Activity does not touch the entry: an entry that fires early is
/// scheduled again. Entries fire in the order of time, then of creation, so the order does not
/// depend on other connections.
///
/// Later entries are stored unsorted in buckets of about 0.13 seconds. The current bucket is
/// sorted, so that the next entries are known [ahead](Self::ahead); entries that are added to it
/// later are in a heap. Floods fill large buckets, which consist of pieces that never move and are
/// never much larger than their contents.
#[derive(Debug, Default)]
pub struct Timers {
    /// The current bucket, sorted; entries before index `at` have fired.
    current: Vec<BucketEntry>,
    at: usize,
    /// Entries added after the current bucket was sorted.
    late: BinaryHeap<Reverse<Entry>>,
    far: BTreeMap<i64, Bucket>,
    /// Allocations of finished buckets, for reuse.
    spare: Vec<Vec<BucketEntry>>,
    /// Number of the last bucket that became current.
    bucket: i64,
    /// The last bucket to which an entry was added, and its number; most additions go to the same
    /// one.
    open: (i64, Bucket),
    len: usize,
    /// No entry is due before this time, if known.
    none_due_before: Option<Time>,
}

/// Due time, and the low halves of number and index. Entries whose numbers differ by 2³² are never
/// due at the same time.
type Entry = (Time, u32, u32);

/// An entry in its bucket: nanoseconds from the start of the bucket, and the two halves. Twelve
/// bytes, because each connection has one.
type BucketEntry = (u32, u32, u32);

/// Entries of a bucket, in pieces; all pieces except the last one are full.
#[derive(Debug, Default)]
struct Bucket {
    full: Vec<Vec<BucketEntry>>,
    last: Vec<BucketEntry>,
}

/// Binary logarithm of the length of a bucket in nanoseconds.
const BUCKET_BITS: u32 = 27;

/// Number of entries of a full piece: 12 KiB, a size that allocators serve without waste.
const PIECE: usize = 1 << 10;

/// Maximum number of pieces kept for reuse.
const MAX_SPARE: usize = 8;

fn bucket(t: Time) -> i64 {
    t.as_nanos() >> BUCKET_BITS
}

fn to_bucket_entry((due, number, index): Entry) -> BucketEntry {
    ((due.as_nanos() & ((1 << BUCKET_BITS) - 1)) as u32, number, index)
}

fn entry(bucket: i64, (offset, number, index): BucketEntry) -> Entry {
    let begin = Time::from_nanos(bucket << BUCKET_BITS);
    (begin + Interval::from_nanos(i64::from(offset)), number, index)
}

impl Bucket {
    fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    fn capacity(&self) -> usize {
        self.full.iter().map(Vec::capacity).sum::<usize>() + self.last.capacity()
    }

    /// Appends the entries of a piece that is not full.
    fn append(&mut self, piece: Vec<BucketEntry>) {
        for entry in piece {
            if self.last.len() == PIECE {
                let full = std::mem::replace(&mut self.last, Vec::with_capacity(PIECE));
                self.full.push(full);
            }
            self.last.push(entry);
        }
    }

    /// All entries, sorted; allocations of pieces are moved to `spare`.
    fn sorted(mut self, spare: &mut Vec<Vec<BucketEntry>>) -> Vec<BucketEntry> {
        let mut all = std::mem::take(&mut self.last);
        if !self.full.is_empty() {
            // In order of addition, which is nearly sorted.
            let last =
                std::mem::replace(&mut all, Vec::with_capacity((self.full.len() + 1) * PIECE));
            for mut piece in self.full.into_iter().chain([last]) {
                all.append(&mut piece);
                recycle(spare, piece);
            }
        }
        // Entries of one idle timeout are in order, so this merges a few sorted runs.
        all.sort();
        all
    }
}

/// Keeps the allocation of a full-size piece for reuse.
fn recycle(spare: &mut Vec<Vec<BucketEntry>>, mut piece: Vec<BucketEntry>) {
    if spare.len() < MAX_SPARE && (1..=PIECE).contains(&piece.capacity()) {
        piece.clear();
        spare.push(piece);
    }
}

impl Timers {
    /// Schedules the connection with this number and index at `due`.
    #[inline]
    pub fn add(&mut self, due: Time, number: u64, index: u32) {
        let entry = (due, number as u32, index);
        let to = bucket(due);
        self.len += 1;
        if self.none_due_before.is_some_and(|until| due < until) {
            self.none_due_before = Some(due);
        }
        if to <= self.bucket {
            self.late.push(Reverse(entry));
        } else {
            if to != self.open.0 {
                self.open(to);
            }
            if self.open.1.last.len() == PIECE {
                self.next_piece();
            }
            self.open.1.last.push(to_bucket_entry(entry));
        }
    }

    /// Makes another bucket the open one.
    fn open(&mut self, to: i64) {
        let next = self.far.remove(&to).unwrap_or_else(|| {
            let last = self.spare.pop().unwrap_or_default();
            Bucket { full: Vec::new(), last }
        });
        let (from, entries) = std::mem::replace(&mut self.open, (to, next));
        if entries.is_empty() {
            recycle(&mut self.spare, entries.last);
        } else {
            self.far.insert(from, entries);
        }
    }

    /// Starts another piece when the current one is full.
    #[cold]
    fn next_piece(&mut self) {
        let next = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
        let full = std::mem::replace(&mut self.open.1.last, next);
        self.open.1.full.push(full);
    }

    /// Returns the next entry due at or before `now`: its time, the low half of its number, and its
    /// index. The entry may be stale: its connection was removed, or its timer moved.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, u32, u32)> {
        if self.none_due_before.is_some_and(|until| now < until) {
            return None;
        }
        let entry = self.pop_due(now);
        self.none_due_before = if entry.is_none() { Some(self.find_due()) } else { None };
        entry
    }

    fn pop_due(&mut self, now: Time) -> Option<(Time, u32, u32)> {
        while self.at == self.current.len() && self.late.is_empty() {
            if !self.advance_bucket(now) {
                return None;
            }
        }
        let late = self.late.peek().map(|e| e.0);
        let current = self.current.get(self.at).map(|e| entry(self.bucket, *e));
        let entry = match (current, late) {
            (Some(current), Some(late)) => current.min(late),
            (current, late) => current.or(late)?,
        };
        if entry.0 > now {
            return None;
        }
        if current == Some(entry) {
            self.at += 1;
        } else {
            self.late.pop();
        }
        self.len -= 1;
        Some(entry)
    }

    /// Makes the next bucket current, if it starts at or before `now`.
    fn advance_bucket(&mut self, now: Time) -> bool {
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
        recycle(&mut self.spare, std::mem::take(&mut self.current));
        self.current = entries.sorted(&mut self.spare);
        self.at = 0;
        true
    }

    /// A time before which no entry is due.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.none_due_before.unwrap_or_else(|| self.find_due())
    }

    fn find_due(&self) -> Time {
        let late = self.late.peek().map(|e| e.0.0);
        let current = self.current.get(self.at).map(|e| entry(self.bucket, *e).0);
        if let Some(due) = current.into_iter().chain(late).min() {
            return due;
        }
        let open = (!self.open.1.is_empty()).then_some(self.open.0);
        let far = self.far.first_key_value().map(|(b, _)| *b);
        let first = far.into_iter().chain(open).min();
        first.map_or(Time::MAX, |b| Time::from_nanos(b << BUCKET_BITS))
    }

    /// Number of entries, including stale ones.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes stale entries, identified by number and index: after many early removals they may be
    /// the majority.
    pub fn retain(&mut self, mut lives: impl FnMut(u32, u32) -> bool) {
        self.current.drain(..self.at);
        self.at = 0;
        self.late.retain(|e| lives(e.0.1, e.0.2));
        self.current.retain(|e| lives(e.1, e.2));
        self.len = self.late.len() + self.current.len();
        for bucket in self.far.values_mut().chain([&mut self.open.1]) {
            let before = std::mem::take(bucket);
            for mut piece in before.full.into_iter().chain([before.last]) {
                piece.retain(|e| lives(e.1, e.2));
                self.len += piece.len();
                bucket.append(piece);
            }
        }
        self.far.retain(|_, bucket| !bucket.is_empty());
        self.spare.clear();
    }

    /// Bytes of memory that the entries use.
    pub fn heap_bytes(&self) -> usize {
        let buckets = self.far.values().chain([&self.open.1]).map(Bucket::capacity);
        let others = self.spare.iter().chain([&self.current]).map(Vec::capacity);
        let entries = buckets.chain(others).sum::<usize>();
        entries * size_of::<BucketEntry>() + self.late.capacity() * size_of::<Entry>()
    }

    /// The index of the `n`-th entry after the next one, if known; for prefetching.
    #[inline]
    pub fn ahead(&self, n: usize) -> Option<u32> {
        self.current.get(self.at + n).map(|e| e.2)
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

    #[test]
    fn floods_fill_large_buckets() {
        let mut t = Timers::default();
        for n in 0..5_000_u64 {
            // Decreasing times in the first part, increasing ones in the next bucket.
            t.add(Time::from_nanos((1 << 40) - n as i64), n, n as u32);
            t.add(Time::from_nanos((1 << 40) + n as i64), 9_000 + n, n as u32);
        }
        assert!(t.heap_bytes() <= 12 * (10_000 + 4 * PIECE), "{}", t.heap_bytes());
        t.retain(|number, _| number % 10 != 1);
        assert_eq!(t.len(), 9_000);
        assert!(t.heap_bytes() <= 12 * (9_000 + 4 * PIECE), "{}", t.heap_bytes());
        let mut last = Time::ZERO;
        while let Some((due, number, _)) = t.pop(Time::MAX) {
            assert!(due >= last && number % 10 != 1);
            last = due;
        }
        assert!(t.is_empty());
    }

    proptest! {
        /// Entries fire in the order of a sorted set, including entries in the past.
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
                    prop_assert!(timers.heap_bytes() >= 12 * set.len());
                }
            }
        }
    }
}
