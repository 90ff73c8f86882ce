//! The clustered table: segments in the order of hashes, and a directory that finds them.
//!
//! Growth goes a segment at a time, so the work of one operation is bounded by the entries of one segment:
//! [`SEGMENT_MAX`], or up to a sixth more where it was rebuilt just before.

use crate::segment::{Segment, tag_of};

/// Entries of a segment at which it is split in two.
pub(crate) const SEGMENT_MAX: usize = 512;

/// Neighbours that hold together no more than this become one.
const MERGE_MAX: usize = SEGMENT_MAX / 2;

/// Directory places a segment at most, where hashes will not part.
const DIRECTORY_RATIO: usize = 8;

/// How often the table changed its shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reshaped {
    /// Segments rebuilt with more buckets.
    pub grown: u64,
    /// Segments rebuilt with fewer buckets.
    pub shrunk: u64,
    /// Segments split in two.
    pub split: u64,
    /// Segments joined with their neighbour.
    pub merged: u64,
}

pub(crate) struct Table<T> {
    /// Segment of each value of the leading `bits` bits.
    directory: Vec<u32>,
    bits: u8,
    segments: Vec<Segment<T>>,
    len: usize,
    pub(crate) reshaped: Reshaped,
}

/// Where an entry stands, until the next change.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    segment: usize,
    at: usize,
}

impl<T> Table<T> {
    /// A table of these entries.
    pub(crate) fn new(entries: Vec<T>, hash: impl Fn(&T) -> u64) -> Self {
        let len = entries.len();
        let mut tagged: Vec<_> = entries.into_iter().map(|e| (tag_of(hash(&e), 0), e)).collect();
        tagged.sort_by_key(|(tag, _)| *tag);
        let segments = vec![Segment::build(0, 0, tagged)];
        Table { directory: vec![0], bits: 0, segments, len, reshaped: Reshaped::default() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        // Two shifts, for a directory of one place shifts by 64.
        ((hash >> 1) >> (63 - self.bits)) as usize
    }

    #[inline]
    fn segment_of(&self, hash: u64) -> usize {
        self.directory[self.slot(hash)] as usize
    }

    /// The first step of a search: the segment and the cell where entries of this hash begin.
    #[inline]
    pub(crate) fn seek(&self, hash: u64) -> Place {
        let segment = self.segment_of(hash);
        let found = &self.segments[segment];
        Place { segment, at: found.seek(tag_of(hash, found.depth)) }
    }

    /// The second step.
    #[inline]
    pub(crate) fn find_from(
        &self,
        place: Place,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
    ) -> Option<Place> {
        let segment = &self.segments[place.segment];
        let at = segment.find_at(place.at, tag_of(hash, segment.depth), eq)?;
        Some(Place { at, ..place })
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<Place> {
        self.find_from(self.seek(hash), hash, eq)
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> Option<&T> {
        self.segments.get(place.segment)?.get(place.at)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.segments.get_mut(place.segment)?.get_mut(place.at)
    }

    /// Adds an entry that is not there yet, where [`seek`](Self::seek) found its place.
    #[inline]
    pub(crate) fn insert_at(
        &mut self,
        place: Place,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) {
        let segment = &mut self.segments[place.segment];
        let rest = if segment.is_full() {
            entry
        } else {
            match segment.insert(place.at, tag_of(hash, segment.depth), entry) {
                Ok(()) => {
                    self.len += 1;
                    return;
                }
                Err(back) => back,
            }
        };
        self.insert(hash, rest, hasher);
    }

    /// Adds an entry that is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, mut entry: T, hasher: impl Fn(&T) -> u64) {
        self.len += 1;
        if self.segments[self.segment_of(hash)].is_full() {
            self.grow(hash, &hasher);
        }
        loop {
            let index = self.segment_of(hash);
            let segment = &mut self.segments[index];
            let tag = tag_of(hash, segment.depth);
            match segment.insert(segment.seek(tag), tag, entry) {
                Ok(()) => return,
                Err(back) => entry = back,
            }
            // A segment just built has empty cells behind its last entry: the next turn succeeds.
            self.grow(hash, &hasher);
        }
    }

    /// Takes an entry out; segments left sparse shrink or join.
    pub(crate) fn remove(&mut self, place: Place) -> Option<T> {
        let entry = self.segments.get_mut(place.segment)?.remove(place.at)?;
        self.len -= 1;
        let segment = &self.segments[place.segment];
        if segment.len() * 2 < segment.buckets()
            && segment.buckets() > 16
            && !self.merge(place.segment)
        {
            self.rebuild(place.segment);
            self.reshaped.shrunk += 1;
        }
        Some(entry)
    }

    fn take_segment(&mut self, index: usize) -> Segment<T> {
        let hole = Segment::build(0, 0, Vec::new());
        core::mem::replace(&mut self.segments[index], hole)
    }

    fn rebuild(&mut self, index: usize) {
        let old = self.take_segment(index);
        let (depth, prefix) = (old.depth, old.prefix);
        self.segments[index] = Segment::build(depth, prefix, old.into_entries());
    }

    /// More room where `hash` belongs: a larger segment, or two.
    fn grow(&mut self, hash: u64, hasher: impl Fn(&T) -> u64) {
        let index = self.segment_of(hash);
        let segment = &self.segments[index];
        let may_deepen = segment.depth < self.bits
            || (self.bits < 31 && self.directory.len() < DIRECTORY_RATIO * self.segments.len());
        if segment.len() < SEGMENT_MAX || !may_deepen {
            self.rebuild(index);
            self.reshaped.grown += 1;
            return;
        }
        if segment.depth == self.bits {
            self.directory = self.directory.iter().flat_map(|i| [*i, *i]).collect();
            self.bits += 1;
        }
        let old = self.take_segment(index);
        let (depth, prefix) = (old.depth + 1, old.prefix << 1);
        let mut halves = [Vec::with_capacity(old.len() / 2), Vec::with_capacity(old.len() / 2)];
        for (_, entry) in old.into_entries() {
            let hash = hasher(&entry);
            halves[((hash >> (64 - depth)) & 1) as usize].push((tag_of(hash, depth), entry));
        }
        for half in &mut halves {
            // Nearly in order already: only entries of one old tag may stand the wrong way round.
            half.sort_by_key(|(tag, _)| *tag);
        }
        let [low, high] = halves;
        self.segments[index] = Segment::build(depth, prefix, low);
        self.segments.push(Segment::build(depth, prefix | 1, high));
        self.point_at(self.segments.len() - 1);
        self.reshaped.split += 1;
    }

    /// Enters a segment in the directory.
    fn point_at(&mut self, index: usize) {
        let segment = &self.segments[index];
        let share = self.bits - segment.depth;
        let from = (segment.prefix as usize) << share;
        self.directory[from..from + (1 << share)].fill(index as u32);
    }

    /// Joins a segment with the other half of its parent, if both are small.
    fn merge(&mut self, index: usize) -> bool {
        let segment = &self.segments[index];
        if segment.depth == 0 {
            return false;
        }
        let (depth, prefix) = (segment.depth, segment.prefix);
        let other = self.directory[((prefix ^ 1) as usize) << (self.bits - depth)] as usize;
        if self.segments[other].depth != depth
            || segment.len() + self.segments[other].len() > MERGE_MAX
        {
            return false;
        }
        let (low, high) = if prefix & 1 == 0 { (index, other) } else { (other, index) };
        let high_entries = self.take_segment(high).into_entries();
        let mut entries = self.take_segment(low).into_entries();
        entries.iter_mut().for_each(|(tag, _)| *tag >>= 1);
        entries.extend(
            high_entries.into_iter().map(|(tag, e)| (((tag >> 1) | 0x4000).min(i16::MAX - 1), e)),
        );
        self.segments[low] = Segment::build(depth - 1, prefix >> 1, entries);
        self.point_at(low);
        self.segments.swap_remove(high);
        if high < self.segments.len() {
            self.point_at(high);
        }
        self.reshaped.merged += 1;
        // Half the segments of the greatest depth gone is the least that lets the directory halve.
        if self.directory.len() > 2 * self.segments.len()
            && self.segments.iter().all(|s| s.depth < self.bits)
        {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.bits -= 1;
        }
        true
    }

    /// The first entry in the order of hashes at or behind `from`, leaving out the first `skip` of exactly
    /// that hash; with its hash.
    pub(crate) fn next_from(
        &self,
        mut from: u64,
        mut skip: u32,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<(u64, Place)> {
        loop {
            let index = self.segment_of(from);
            let segment = &self.segments[index];
            let mut at = segment.seek(tag_of(from, segment.depth));
            while let Some(start) = segment.next_filled(at) {
                let tag = segment.tag(start);
                let mut best: Option<(u64, usize)> = None;
                let mut passed = 0;
                at = start;
                while segment.tag(at) == tag {
                    let hash = segment.get(at).map_or(0, &hasher);
                    let fresh = hash > from || (hash == from && passed >= skip);
                    passed += u32::from(hash == from);
                    if fresh && best.is_none_or(|(least, _)| hash < least) {
                        best = Some((hash, at));
                    }
                    at += 1;
                }
                if let Some((hash, at)) = best {
                    return Some((hash, Place { segment: index, at }));
                }
            }
            if segment.depth == 0 {
                return None;
            }
            let next = (u64::from(segment.prefix) + 1) << (64 - segment.depth);
            if segment.prefix.count_ones() == u32::from(segment.depth) {
                return None;
            }
            (from, skip) = (next, 0);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.segments.iter().flat_map(Segment::iter)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.segments.iter_mut().flat_map(Segment::iter_mut)
    }

    /// All entries, in no order.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = T> {
        self.segments.into_iter().flat_map(|s| s.into_entries().into_iter().map(|(_, entry)| entry))
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.directory.capacity() * size_of::<u32>()
            + self.segments.capacity() * size_of::<Segment<T>>()
            + self.segments.iter().map(Segment::heap_bytes).sum::<usize>()
    }

    pub(crate) fn segments(&self) -> &[Segment<T>] {
        &self.segments
    }

    pub(crate) fn directory_len(&self) -> usize {
        self.directory.len()
    }
}
