//! One clustered array: entries in the order of their hashes, near the bucket their hash names.
//!
//! A tag is 15 bits of the hash; it names the bucket (`tag × buckets / 2^15`), it filters candidates,
//! and the tags of the array ascend. An entry stands at its bucket or, pushed by those before it, further
//! up with no empty cell between.

use crate::slots::{EMPTY, Slots, WINDOW};

/// Cells behind the last bucket, for entries pushed past the end.
const TAIL: usize = 8;

/// A clustered array and the place of its share in the space of hashes.
pub(crate) struct Segment<T> {
    slots: Slots<T>,
    buckets: u32,
    len: u32,
    /// Leading hash bits that all entries share.
    pub(crate) depth: u8,
    /// Those bits.
    pub(crate) prefix: u32,
}

/// The tag of a hash in a segment of this depth: the 15 bits behind the shared ones.
#[inline]
pub(crate) fn tag_of(hash: u64, depth: u8) -> i16 {
    // The greatest value is kept free for EMPTY; folding the last two together keeps the order.
    (((hash << depth) >> 49) as i16).min(EMPTY - 1)
}

#[inline]
fn bucket_of(tag: i16, buckets: u32) -> usize {
    ((u64::from(tag as u16) * u64::from(buckets)) >> 15) as usize
}

impl<T> Segment<T> {
    /// A segment from entries in ascending order of tags, with room for some more.
    pub(crate) fn build(depth: u8, prefix: u32, entries: Vec<(i16, T)>) -> Self {
        let len = entries.len();
        // Load 7/9 now, grown again at 9/10: between 20 and 24 bytes for an entry of 16.
        let buckets = (len * 9 / 7).max(12) as u32;
        let mut end = 0;
        for (tag, _) in &entries {
            end = bucket_of(*tag, buckets).max(end) + 1;
        }
        let mut slots = Slots::new((buckets as usize + TAIL).max(end + TAIL / 2));
        let mut at = 0;
        for (tag, entry) in entries {
            at = bucket_of(tag, buckets).max(at);
            slots.put(at, tag, entry);
            at += 1;
        }
        Segment { slots, buckets, len: len as u32, depth, prefix }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.buckets as usize
    }

    /// Cells on the heap.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.count()
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes()
    }

    /// The first cell at or behind the bucket of `tag` that is empty or has a tag not less.
    ///
    /// Behind an empty cell no tag less than `tag` can stand (its entry would have taken that cell), so
    /// counting the lesser tags of a window needs no branch a tag.
    #[inline]
    pub(crate) fn seek(&self, tag: i16) -> usize {
        let mut at = bucket_of(tag, self.buckets);
        while let Some(window) =
            self.slots.tags().get(at..).and_then(<[i16]>::first_chunk::<WINDOW>)
        {
            let less: i16 = window.iter().map(|t| i16::from(*t < tag)).sum();
            at += less as usize;
            if (less as usize) < WINDOW {
                break;
            }
        }
        at
    }

    /// The cell of the entry with this tag that `eq` accepts, at or behind `at`.
    #[inline]
    pub(crate) fn find_at(
        &self,
        mut at: usize,
        tag: i16,
        mut eq: impl FnMut(&T) -> bool,
    ) -> Option<usize> {
        while self.slots.tags()[at] == tag {
            if eq(self.slots.get(at)?) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.slots.get(at)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.slots.get_mut(at)
    }

    /// The tag of a cell; [`EMPTY`] behind the last one.
    #[inline]
    pub(crate) fn tag(&self, at: usize) -> i16 {
        self.slots.tags().get(at).copied().unwrap_or(EMPTY)
    }

    /// Whether one more entry asks for growth first.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len * 10 >= self.buckets * 9
    }

    /// Adds an entry at the cell that [`seek`](Self::seek) found; gives it back where no empty cell is left behind its place.
    #[inline]
    pub(crate) fn insert(&mut self, mut at: usize, tag: i16, entry: T) -> Result<(), T> {
        // Behind its equals: walks that stand among them are not disturbed.
        while self.slots.tags()[at] == tag {
            at += 1;
        }
        let Some(steps) =
            self.slots.tags()[at..self.slots.count()].iter().position(|t| *t == EMPTY)
        else {
            return Err(entry);
        };
        if steps > 0 {
            self.slots.shift_up(at, at + steps);
        }
        self.slots.put(at, tag, entry);
        self.len += 1;
        Ok(())
    }

    /// Takes an entry out and closes the gap: no tombstone is left.
    #[inline]
    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let (_, entry) = self.slots.take(at)?;
        self.len -= 1;
        let mut end = at + 1;
        // Entries that stand behind their bucket come one cell nearer.
        while self.tag(end) != EMPTY && bucket_of(self.tag(end), self.buckets) < end {
            end += 1;
        }
        if end > at + 1 {
            self.slots.shift_down(at, end);
        }
        Some(entry)
    }

    /// All entries with their tags, ascending.
    pub(crate) fn into_entries(mut self) -> Vec<(i16, T)> {
        let mut entries = Vec::with_capacity(self.len());
        entries.extend((0..self.slots.count()).filter_map(|at| self.slots.take(at)));
        entries
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut()
    }

    /// How far each entry stands from its bucket, in cells.
    pub(crate) fn distances(&self) -> impl Iterator<Item = usize> {
        let tags = self.slots.tags().iter().enumerate();
        tags.filter(|(_, t)| **t != EMPTY).map(|(at, t)| at - bucket_of(*t, self.buckets))
    }

    /// The next filled cell at or behind `at`.
    pub(crate) fn next_filled(&self, at: usize) -> Option<usize> {
        let tags = self.slots.tags().get(at..)?;
        tags.iter().position(|t| *t != EMPTY).map(|steps| at + steps)
    }
}
