//! One clustered array: groups of seven cells, each with a tag; entries in the order of their tags.
//!
//! ```text
//! group   ┌ tags: 7 × u16, 2 spare ┬ cell ┬ cell ┬ … 7 ┐   128 bytes for an entry of 16: two cache lines
//! block   │ group │ group │ … │ group │ tail │
//! ```
//!
//! A tag is 16 bits of the hash. It names the entry's home (`tag × homes / 2^16`), the group where searching
//! begins, and tells entries of one group apart. Through the block the tags ascend, and an entry stands in its home or,
//! if that is full, as near behind it as the order allows, with no free cell between. So a search ends at the
//! first group whose last tag is greater or free, and usually looks at one.
//!
//! For memory one rule counts: **a cell is initialised exactly when its tag is not [`EMPTY`]**. The order is
//! what makes searches right; no unsafe code leans on it.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

/// Cells of a group.
pub(crate) const LANES: usize = 7;

/// The tag of a free cell; greater than that of any entry.
pub(crate) const EMPTY: u16 = u16::MAX;

/// The last cell of a group.
const LAST: usize = LANES - 1;

/// The lane of the tags that belongs to no cell. The first two groups keep the number of entries there.
const SPARE: usize = LANES;

#[repr(C)]
struct Group<T> {
    tags: [u16; LANES + 1],
    cells: [MaybeUninit<T>; LANES],
}

/// Bytes of a group with entries of type `T`.
pub(crate) const fn group_bytes<T>() -> usize {
    size_of::<Group<T>>()
}

/// The tag of an entry: never [`EMPTY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(u16);

impl Tag {
    /// The tag of a hash in a block that holds the hashes of one prefix of `depth` bits: the 16 bits behind them.
    #[inline]
    pub(crate) fn of(hash: u64, depth: u8) -> Self {
        Tag::new(((hash << (depth & 63)) >> 48) as u16)
    }

    /// A tag of these bits. The last two values are folded together, which keeps the order.
    #[inline]
    pub(crate) fn new(bits: u16) -> Self {
        Tag(bits.min(EMPTY - 1))
    }

    /// Its bits.
    #[inline]
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The home of the tag among so many; less than `homes`.
    #[inline]
    fn home(self, homes: u32) -> usize {
        ((u64::from(self.0) * u64::from(homes)) >> 16) as usize
    }
}

/// A clustered array and the place of its share in the space of hashes.
pub(crate) struct Block<T> {
    groups: NonNull<Group<T>>,
    /// Groups that are the home of some tags.
    homes: u32,
    /// Groups behind those, for entries pushed past the end.
    tail: [u8; 3],
    /// Leading hash bits that all entries share.
    pub(crate) depth: u8,
    owned: PhantomData<T>,
}

// SAFETY: a block owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; through `&Block` only `&T` can be had.
unsafe impl<T: Sync> Sync for Block<T> {}

/// Where an entry stands in its block, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) group: u32,
    pub(crate) lane: u8,
}

impl<T> Block<T> {
    /// `homes` + `tail` free groups.
    ///
    /// # Panics
    /// With fewer than two groups or no home: errors of this crate. With a tail of 2^24 groups, which takes a hundred
    /// million equal hashes, or beyond the address space.
    pub(crate) fn new(depth: u8, homes: u32, tail: usize) -> Self {
        let count = homes as usize + tail;
        assert!(homes > 0 && count > 1 && depth < 64 && tail < 1 << 24);
        let [a, b, c, ..] = (tail as u32).to_le_bytes();
        let tail = [a, b, c];
        let Some(layout) = Self::layout(count) else { panic!("block of {count} groups") };
        // SAFETY: the layout is not of size 0, as there are groups and they have tags.
        let Some(groups) = NonNull::new(unsafe { alloc::alloc(layout) }.cast::<Group<T>>()) else {
            alloc::handle_alloc_error(layout)
        };
        for at in 0..count {
            // SAFETY: `at` is within the `count` groups just allocated. Writing through the raw pointer makes no
            // reference to memory that is not initialised yet.
            unsafe {
                let mut tags = [EMPTY; LANES + 1];
                tags[SPARE] = 0;
                (&raw mut (*groups.as_ptr().add(at)).tags).write(tags);
            }
        }
        Block { groups, homes, tail, depth, owned: PhantomData }
    }

    fn layout(count: usize) -> Option<Layout> {
        let bytes = count.checked_mul(size_of::<Group<T>>())?;
        // Lines of the cache, where groups fill them anyway.
        let line = if size_of::<Group<T>>().is_multiple_of(64) { 64 } else { 1 };
        Layout::from_size_align(bytes, align_of::<Group<T>>().max(line)).ok()
    }

    /// Groups, the tail included.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.homes as usize + self.tail()
    }

    /// Groups that are no tag's home.
    #[inline]
    pub(crate) fn tail(&self) -> usize {
        let [a, b, c] = self.tail;
        u32::from_le_bytes([a, b, c, 0]) as usize
    }

    /// Cells, filled or not.
    pub(crate) fn cells(&self) -> usize {
        self.count() * LANES
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.count() * size_of::<Group<T>>()
    }

    /// The group where searching for a tag begins; less than `homes`.
    #[inline]
    fn home(&self, tag: Tag) -> usize {
        tag.home(self.homes)
    }

    /// # Safety
    /// `at` is less than [`count`](Self::count).
    #[inline]
    unsafe fn group_unchecked(&self, at: usize) -> &Group<T> {
        debug_assert!(at < self.count());
        // SAFETY: within the allocation (the caller's promise); tags were written by `new`, cells may be
        // uninitialised by their type; writers need `&mut self`.
        unsafe { &*self.groups.as_ptr().add(at) }
    }

    #[inline]
    fn group(&self, at: usize) -> Option<&Group<T>> {
        // SAFETY: the condition is what `group_unchecked` asks for.
        (at < self.count()).then(|| unsafe { self.group_unchecked(at) })
    }

    #[inline]
    fn group_mut(&mut self, at: usize) -> Option<&mut Group<T>> {
        // SAFETY: within the allocation by the condition; `&mut self` makes the access exclusive.
        (at < self.count()).then(|| unsafe { &mut *self.groups.as_ptr().add(at) })
    }

    /// Asks for the lines that a search for this tag will touch first.
    #[inline]
    pub(crate) fn prefetch(&self, tag: Tag) {
        let group = self.groups.as_ptr().wrapping_add(self.home(tag)).cast::<u8>();
        simd::prefetch(group);
        // The entry is nearer to the end the larger the entries; two lines cover groups of 128 bytes.
        simd::prefetch(group.wrapping_add(64));
    }

    /// The filled cell with this tag that `eq` accepts.
    #[inline]
    fn search(&self, tag: Tag, mut eq: impl FnMut(&T) -> bool) -> Option<(&Group<T>, Spot)> {
        let mut at = self.home(tag);
        loop {
            // SAFETY: `home` is less than `homes`; below `at` grows only while it stays under `count`.
            let group = unsafe { self.group_unchecked(at) };
            let mut lanes = simd::lanes_of(&group.tags, tag.0);
            while lanes != 0 {
                let lane = (lanes.trailing_zeros() / 2) as usize;
                // SAFETY: `lane` is one of the seven whose tag is `tag`, which is not EMPTY (its
                // type), so the cell is initialised.
                let entry = unsafe { group.cells.get_unchecked(lane).assume_init_ref() };
                if eq(entry) {
                    return Some((group, Spot { group: at as u32, lane: lane as u8 }));
                }
                lanes &= lanes - 1;
            }
            // Free cells hold the greatest tag.
            if group.tags[LAST] > tag.0 {
                return None;
            }
            at += 1;
            if at >= self.count() {
                return None;
            }
        }
    }

    /// The entry with this tag that `eq` accepts.
    #[inline]
    pub(crate) fn find(&self, tag: Tag, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        let (group, spot) = self.search(tag, eq)?;
        // SAFETY: `search` returns filled cells.
        Some(unsafe { group.cells.get_unchecked(usize::from(spot.lane)).assume_init_ref() })
    }

    /// Where that entry stands.
    #[inline]
    pub(crate) fn spot(&self, tag: Tag, eq: impl FnMut(&T) -> bool) -> Option<Spot> {
        Some(self.search(tag, eq)?.1)
    }

    /// The entry of a cell.
    #[inline]
    pub(crate) fn get(&self, spot: Spot) -> Option<&T> {
        let (group, lane) = (self.group(spot.group as usize)?, usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == EMPTY {
            return None;
        }
        // SAFETY: the tag is not EMPTY, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_ref() })
    }

    /// The entry of a cell, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, spot: Spot) -> Option<&mut T> {
        let (group, lane) = (self.group_mut(spot.group as usize)?, usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == EMPTY {
            return None;
        }
        // SAFETY: the tag is not EMPTY, so the cell is initialised.
        Some(unsafe { group.cells[lane].assume_init_mut() })
    }

    /// The tag of a filled cell.
    #[inline]
    pub(crate) fn tag(&self, spot: Spot) -> Option<Tag> {
        let tags = &self.group(spot.group as usize)?.tags[..LANES];
        tags.get(usize::from(spot.lane)).filter(|tag| **tag != EMPTY).map(|tag| Tag(*tag))
    }

    /// Entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: there are at least two groups.
        let (low, high) = unsafe { (self.group_unchecked(0), self.group_unchecked(1)) };
        usize::from(low.tags[SPARE]) | usize::from(high.tags[SPARE]) << 16
    }

    fn set_len(&mut self, len: usize) {
        for (at, half) in [len as u16, (len >> 16) as u16].into_iter().enumerate() {
            if let Some(group) = self.group_mut(at) {
                group.tags[SPARE] = half;
            }
        }
    }

    /// Adds an entry behind those of its tag; gives it back where no cell is free from its home on.
    pub(crate) fn insert(&mut self, tag: Tag, entry: T) -> Result<(), T> {
        let home = self.home(tag);
        let full = |at: usize| self.group(at).is_some_and(|g| g.tags[LAST] != EMPTY);
        let Some(free) = (home..self.count()).find(|at| !full(*at)) else { return Err(entry) };
        let passed = |at: &usize| self.group(*at).is_some_and(|g| g.tags[LAST] <= tag.0);
        let mut at = home + (home..free).take_while(passed).count();
        let len = self.len();
        let lane = self.group(at).map_or(0, |g| g.tags[..LANES].partition_point(|t| *t <= tag.0));
        let mut carried = self.group_mut(at).and_then(|g| g.push(lane, tag, entry));
        // What falls off the end of a full group begins the next.
        while let Some((tag, entry)) = carried {
            at += 1;
            carried = self.group_mut(at).and_then(|g| g.push(0, tag, entry));
        }
        self.set_len(len + 1);
        Ok(())
    }

    /// Takes an entry out and closes the gap: entries behind their home come nearer, no tombstone is left.
    pub(crate) fn remove(&mut self, spot: Spot) -> Option<T> {
        let mut at = spot.group as usize;
        let len = self.len();
        let group = self.group_mut(at)?;
        let mut was_full = group.tags[LAST] != EMPTY;
        let (_, entry) = group.pull(usize::from(spot.lane))?;
        self.set_len(len - 1);
        while was_full {
            let first = Spot { group: at as u32 + 1, lane: 0 };
            if self.tag(first).is_none_or(|tag| self.home(tag) > at) {
                break;
            }
            let Some(next) = self.group_mut(at + 1) else { break };
            was_full = next.tags[LAST] != EMPTY;
            if let (Some((tag, entry)), Some(group)) = (next.pull(0), self.group_mut(at)) {
                group.push(LAST, tag, entry);
            }
            at += 1;
        }
        Some(entry)
    }

    /// Takes an entry and its tag out and leaves the gap: the block can but be emptied further.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<T> {
        let (group, lane) = (self.group_mut(spot.group as usize)?, usize::from(spot.lane));
        if lane >= LANES || group.tags[lane] == EMPTY {
            return None;
        }
        group.tags[lane] = EMPTY;
        // SAFETY: the tag was not EMPTY, so the cell was initialised; now it is EMPTY, and nobody reads it again.
        Some(unsafe { group.cells[lane].assume_init_read() })
    }

    /// Adds an entry whose tag is not less than any before, at its home or behind `from`, where the one
    /// before stands; where it stands.
    ///
    /// # Panics
    /// Where there is no group left: errors of this crate ([`end_of`] tells before).
    #[inline]
    pub(crate) fn append(&mut self, from: Spot, tag: Tag, entry: T) -> Spot {
        let to = next_spot(from, self.home(tag));
        let group = self.group_mut(to.group as usize);
        let Some(group) = group else { panic!("a block too small for its entries") };
        let lane = usize::from(to.lane);
        assert!(group.tags[lane] == EMPTY);
        group.cells[lane].write(entry);
        group.tags[lane] = tag.0;
        to
    }

    /// States how many entries were appended or taken.
    pub(crate) fn recount(&mut self) {
        self.set_len(self.spots().count());
    }

    /// The filled cells in order, with their tags.
    pub(crate) fn spots(&self) -> impl Iterator<Item = (Tag, Spot)> {
        (0..self.count()).flat_map(move |at| {
            let tags = self.group(at).map_or([EMPTY; LANES + 1], |g| g.tags);
            let lanes = (0..LANES).map(move |lane| (tags[lane], lane as u8));
            lanes
                .filter(|(tag, _)| *tag != EMPTY)
                .map(move |(tag, lane)| (Tag(tag), Spot { group: at as u32, lane }))
        })
    }

    /// The filled cells at or behind `from`, or behind the home of `tag`: the first.
    pub(crate) fn first_from(&self, tag: Tag) -> Option<Spot> {
        let mut at = self.home(tag);
        while let Some(group) = self.group(at) {
            if let Some(lane) = group.tags[..LANES].iter().position(|t| *t >= tag.0 && *t != EMPTY)
            {
                return Some(Spot { group: at as u32, lane: lane as u8 });
            }
            at += 1;
        }
        None
    }

    /// The filled cell behind another one.
    pub(crate) fn after(&self, spot: Spot) -> Option<Spot> {
        let next = Spot { lane: spot.lane + 1, ..spot };
        if self.tag(next).is_some() {
            return Some(next);
        }
        (spot.group + 1..self.count() as u32)
            .map(|group| Spot { group, lane: 0 })
            .find(|spot| self.tag(*spot).is_some())
    }

    /// Groups between each entry and its home.
    pub(crate) fn distances(&self) -> impl Iterator<Item = usize> {
        self.spots().map(|(tag, spot)| spot.group as usize - self.home(tag))
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.spots().filter_map(|(_, spot)| self.get(spot))
    }

    /// The cells of the entries in order. Who owns the block alone may make them `&mut T`, each once.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = NonNull<T>> {
        let groups = self.groups;
        self.spots().map(move |(_, spot)| {
            // SAFETY: a spot of this block is within its groups and lanes; no reference is made on the way, so
            // none is disturbed.
            unsafe {
                let group = groups.as_ptr().add(spot.group as usize);
                let cell = (&raw mut (*group).cells).cast::<T>().add(usize::from(spot.lane));
                NonNull::new_unchecked(cell)
            }
        })
    }
}

impl<T> Group<T> {
    /// Moves the cells from `lane` on up by one and fills it; what falls off the end.
    #[inline]
    fn push(&mut self, lane: usize, tag: Tag, entry: T) -> Option<(Tag, T)> {
        assert!(lane < LANES);
        let carried = (self.tags[LAST] != EMPTY).then(|| {
            // SAFETY: its tag is not EMPTY, so the cell is initialised; it is overwritten below, unread and
            // undropped, with its tag.
            (Tag(self.tags[LAST]), unsafe { self.cells[LAST].assume_init_read() })
        });
        self.tags.copy_within(lane..LAST, lane + 1);
        // SAFETY: both ranges are within the cells, as lane ≤ LAST; cells move with their tags.
        unsafe {
            let cells = self.cells.as_mut_ptr();
            cells.add(lane).copy_to(cells.add(lane + 1), LAST - lane);
        }
        self.cells[lane].write(entry);
        self.tags[lane] = tag.0;
        carried
    }

    /// Takes the entry of a lane and moves those behind it down by one.
    #[inline]
    fn pull(&mut self, lane: usize) -> Option<(Tag, T)> {
        if lane >= LANES || self.tags[lane] == EMPTY {
            return None;
        }
        // SAFETY: its tag is not EMPTY, so the cell is initialised; cell and tag are overwritten next, by their
        // successors or, the last tag, by EMPTY.
        let taken = (Tag(self.tags[lane]), unsafe { self.cells[lane].assume_init_read() });
        self.tags.copy_within(lane + 1..LANES, lane);
        self.tags[LAST] = EMPTY;
        // SAFETY: both ranges are within the cells, as lane ≤ LAST; cells move with their tags.
        unsafe {
            let cells = self.cells.as_mut_ptr();
            cells.add(lane + 1).copy_to(cells.add(lane), LAST - lane);
        }
        Some(taken)
    }
}

/// The cell behind `from`, or the first one of `home` if that is further.
#[inline]
fn next_spot(from: Spot, home: usize) -> Spot {
    let next = if usize::from(from.lane) < LAST {
        Spot { lane: from.lane + 1, ..from }
    } else {
        Spot { group: from.group.wrapping_add(1), lane: 0 }
    };
    next.max(Spot { group: home as u32, lane: 0 })
}

/// Stands before the first cell.
pub(crate) const BEFORE: Spot = Spot { group: u32::MAX, lane: LAST as u8 };

/// Groups that entries of these tags, ascending, need in a block of so many homes.
pub(crate) fn end_of(tags: impl Iterator<Item = Tag>, homes: u32) -> usize {
    let mut at = BEFORE;
    for tag in tags {
        at = next_spot(at, tag.home(homes));
    }
    at.group.wrapping_add(1) as usize
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for at in 0..self.count() {
                for lane in 0..LANES {
                    drop(self.take(Spot { group: at as u32, lane: lane as u8 }));
                }
            }
        }
        if let Some(layout) = Self::layout(self.count()) {
            // SAFETY: allocated in `new` with the layout of the same count, and freed once: whoever copies a block
            // bit by bit (`directory`) drops one of the copies.
            unsafe { alloc::dealloc(self.groups.as_ptr().cast(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(tags: &[u16], homes: u32, tail: usize) -> Block<Box<u32>> {
        let mut block = Block::new(0, homes, tail);
        for tag in tags {
            assert!(block.insert(Tag(*tag), Box::new(u32::from(*tag))).is_ok());
        }
        block
    }

    fn layout_of(block: &Block<Box<u32>>) -> Vec<(u16, u32, u8)> {
        block.spots().map(|(tag, spot)| (tag.0, spot.group, spot.lane)).collect()
    }

    #[test]
    fn entries_spill_into_the_next_group_and_come_back() {
        // Two homes: tags below 0x8000 belong to the first.
        let mut b = block(&[7, 1, 2, 3, 4, 5, 6, 0x9000, 0], 2, 1);
        assert_eq!(b.len(), 9);
        assert_eq!(layout_of(&b)[6..], [(6, 0, 6), (7, 1, 0), (0x9000, 1, 1)]);
        assert_eq!(b.find(Tag(7), |v| **v == 7).map(|v| **v), Some(7));
        assert!(b.find(Tag(8), |_| true).is_none());
        let spot = b.spot(Tag(3), |_| true);
        assert_eq!(b.remove(spot.expect("there")).map(|v| *v), Some(3));
        assert_eq!(layout_of(&b)[5..], [(6, 0, 5), (7, 0, 6), (0x9000, 1, 0)]);
        // The entry of the second home stays there.
        let spot = b.spot(Tag(1), |_| true);
        b.remove(spot.expect("there"));
        assert_eq!(layout_of(&b)[5..], [(7, 0, 5), (0x9000, 1, 0)]);
    }

    #[test]
    fn a_full_tail_gives_the_entry_back() {
        let mut b = block(&[0xfffe; 14], 1, 1);
        assert_eq!(b.insert(Tag(0), Box::new(1)).map_err(|v| *v), Err(1));
        assert_eq!(b.len(), 14);
        assert!(b.find(Tag(0xfffe), |_| false).is_none());
        assert_eq!(b.get(Spot { group: 2, lane: 0 }), None);
        assert_eq!(b.remove(Spot { group: 0, lane: 7 }), None);
    }

    #[test]
    fn appending_ends_where_it_was_foretold() {
        let tags: Vec<u16> = (0..40).map(|i| i * 1000).chain([0xfffe; 9]).collect();
        let mut b: Block<Box<u32>> = Block::new(0, 6, 2);
        let mut at = BEFORE;
        for tag in &tags {
            at = b.append(at, Tag(*tag), Box::new(u32::from(*tag)));
        }
        b.recount();
        assert_eq!(b.len(), tags.len());
        assert_eq!(end_of(tags.iter().map(|t| Tag(*t)), 6), at.group as usize + 1);
        assert!(b.iter().map(|v| **v as u16).eq(tags.iter().copied()));
        assert!(tags.iter().all(|t| b.find(Tag(*t), |v| **v == u32::from(*t)).is_some()));
        assert_eq!(b.take(at).map(|v| *v), Some(0xfffe));
        assert_eq!(b.take(at), None);
    }
}
