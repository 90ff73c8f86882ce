//! A table of one segment with half as many homes, without directory and counts.
//!
//! It keeps all its entries in its block. If an entry finds no lane or cell, the caller converts it
//! into a [`Table`].

use crate::raw::block::{Block, LaneIndex};
use crate::raw::secret::{self, Drawn};
use crate::table::{FirstSearch, Table};

/// Homes: enough for a hundred entries, in an index of about half the size.
const HOMES: usize = 128;

type Segment<T> = Block<T, HOMES>;

/// Number of entries at which a table becomes such a segment again: a third of its capacity, so
/// that few entries move.
pub(crate) const SINGLE_SHRINK_AT: usize = Segment::<()>::FULL / 3;

/// The segment; `T` is an entry with its key.
pub(crate) struct Single<T> {
    segment: Segment<T>,
    /// Proof that the key of the hash has been drawn.
    pub(crate) drawn: Drawn,
}

impl<T> Single<T> {
    /// A segment of these entries; returns them if one finds no lane, as badly distributed hashes
    /// may cause.
    pub(crate) fn new(
        entries: impl ExactSizeIterator<Item = T>,
        hash_of: impl Fn(&T) -> u64,
    ) -> Result<Self, Vec<T>> {
        let mut filling = Segment::filling(0, entries.len());
        let mut left = Vec::new();
        for entry in entries {
            left.extend(filling.add(hash_of(&entry), entry).err());
        }
        let mut segment = filling.finish();
        if left.is_empty() {
            return Ok(Single { segment, drawn: secret::draw() });
        }
        segment.drain(|entry| left.push(entry));
        Err(left)
    }

    /// A segment of a table's entries; returns them if one finds no lane.
    pub(crate) fn from_table(table: Table<T>, hash_of: impl Fn(&T) -> u64) -> Result<Self, Vec<T>> {
        let mut segment = Segment::new(0, Segment::<T>::spare_capacity(table.len()));
        let (mut blocks, mut left) = table.into_parts();
        for block in &mut blocks {
            segment.absorb_wider(block);
            block.drain(|entry| left.push(entry));
        }
        while let Some(entry) = left.pop() {
            if let Err(entry) = segment.insert(hash_of(&entry), entry, &hash_of) {
                left.push(entry);
                segment.drain(|entry| left.push(entry));
                return Err(left);
            }
        }
        Ok(Single { segment, drawn: secret::draw() })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.segment.len()
    }

    /// The entry of this hash that `eq` accepts, if it is the first one with the tag, as it nearly always is.
    #[inline(always)]
    pub(crate) fn find_first(
        &self,
        hash: u64,
        mut eq: impl FnMut(&T) -> bool,
    ) -> FirstSearch<'_, T> {
        match self.segment.find_first(hash, &mut eq) {
            Ok((entry, _)) => FirstSearch::Is(entry),
            Err(true) => FirstSearch::IsNot(hash),
            Err(false) => FirstSearch::None,
        }
    }

    /// Searches all entries with the tag.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_any(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Option<(&T, LaneIndex)> {
        self.segment.find(hash, eq)
    }

    /// The position of an entry.
    #[inline]
    pub(crate) fn lane(&self, hash: u64, eq: impl FnMut(&T) -> bool + Copy) -> Option<LaneIndex> {
        let (mut first, mut again) = (eq, eq);
        match self.segment.find_first(hash, &mut first) {
            Ok((_, lane)) => Some(lane),
            Err(true) => Some(self.find_any(hash, &mut again)?.1),
            Err(false) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, lane: LaneIndex) -> Option<&mut T> {
        self.segment.get_mut(lane)
    }

    /// Adds an entry whose key is not present; returns it if no lane or cell is free.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        match self.segment.insert(hash, entry, &hasher) {
            Err(entry) => self.insert_grown(hash, entry, hasher),
            Ok(()) => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_grown(&mut self, hash: u64, entry: T, hasher: impl Fn(&T) -> u64) -> Result<(), T> {
        let (len, capacity) = (self.segment.len(), self.segment.capacity());
        if len < capacity || capacity >= Segment::<T>::FULL {
            return Err(entry);
        }
        self.segment.set_capacity(Segment::<T>::next_capacity(capacity, Segment::<T>::FULL));
        self.segment.insert(hash, entry, hasher)
    }

    /// Removes an entry; a sparse segment shrinks.
    #[inline]
    pub(crate) fn remove(&mut self, lane: LaneIndex) -> Option<T> {
        let (entry, left) = self.segment.take(lane)?;
        if Segment::<T>::is_sparse(left, self.segment.capacity()) {
            self.shrink(left);
        }
        Some(entry)
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, len: usize) {
        let capacity = Segment::<T>::capacity_for(len);
        if capacity < self.segment.capacity() {
            self.segment.set_capacity(capacity);
        }
    }

    /// All entries, in unspecified order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segment.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.segment.iter_mut()
    }

    /// All entries, in unspecified order.
    pub(crate) fn into_entries(mut self) -> Vec<T> {
        let mut entries = Vec::with_capacity(self.len());
        self.segment.drain(|entry| entries.push(entry));
        entries
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.segment.heap_bytes()
    }

    pub(crate) fn segment(&self) -> &Segment<T> {
        &self.segment
    }
}
