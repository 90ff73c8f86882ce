//! A table of one segment with half as many homes, and nothing else: no directory, no counts.
//!
//! It keeps all its entries in its block. Where one finds no room, the caller makes a [`Table`] of it.

use crate::raw::block::{Block, Spot};
use crate::raw::secret::{self, Drawn};
use crate::table::{FirstSearch, Table};

/// Homes: enough for a hundred entries, in an index of about half the size.
const HOMES: usize = 128;

type Segment<T> = Block<T, HOMES>;

/// Entries at which a table becomes such a segment again: a third of those that it has room for, so that few move.
pub(crate) const SINGLE_AGAIN: usize = Segment::<()>::FULL / 3;

/// The segment; `T` is an entry with its key.
pub(crate) struct Single<T> {
    segment: Segment<T>,
    /// That there is a key to hash with.
    pub(crate) drawn: Drawn,
}

impl<T> Single<T> {
    /// A segment of these entries; returns them if one finds no lane, as hashes that do not spread may cause.
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
    pub(crate) fn of_table(table: Table<T>, hash_of: impl Fn(&T) -> u64) -> Result<Self, Vec<T>> {
        let mut segment = Segment::new(0, Segment::<T>::fresh_room(table.len()));
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
    pub(crate) fn find_again(
        &self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Option<(&T, Spot)> {
        self.segment.find(hash, eq)
    }

    /// The position of an entry.
    #[inline]
    pub(crate) fn spot(&self, hash: u64, eq: impl FnMut(&T) -> bool + Copy) -> Option<Spot> {
        let (mut first, mut again) = (eq, eq);
        match self.segment.find_first(hash, &mut first) {
            Ok((_, spot)) => Some(spot),
            Err(true) => Some(self.find_again(hash, &mut again)?.1),
            Err(false) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        self.segment.get_mut(spot)
    }

    /// Adds an entry that is not there yet; returns it if there is no room.
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
        let (len, room) = (self.segment.len(), self.segment.room());
        if len < room || room >= Segment::<T>::FULL {
            return Err(entry);
        }
        self.segment.set_room(Segment::<T>::room_beyond(room, Segment::<T>::FULL));
        self.segment.insert(hash, entry, hasher)
    }

    /// Takes an entry out; a sparse segment shrinks.
    #[inline]
    pub(crate) fn remove(&mut self, spot: Spot) -> Option<T> {
        let (entry, left) = self.segment.take(spot)?;
        if Segment::<T>::is_sparse(left, self.segment.room()) {
            self.shrink(left);
        }
        Some(entry)
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, len: usize) {
        let room = Segment::<T>::room_for(len);
        if room < self.segment.room() {
            self.segment.set_room(room);
        }
    }

    /// All entries, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segment.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.segment.iter_mut()
    }

    /// All entries, in no order.
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
