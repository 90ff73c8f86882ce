//! Which block holds which hashes.
//!
//! The directory has a slot for each value of some low bits of a hash (extendible hashing). A block
//! of depth *d* holds the hashes that agree in *d* of these bits, and all slots whose numbers end
//! in them refer to it. So a slot is found with a mask. It is a pointer: what is known of a block is in the block.
//!
//! Read from the lowest bit on ([`order`]) these bits are a prefix, and the hashes of a block are neighbours.
//!
//! Doubling or halving the directory copies nothing at once: a new array is filled from its front,
//! [`STRIDE`] slots with each later split or join. Until it is complete, searches use the old one,
//! and changes are written to both. So a search never has to choose.
//!
//! The rules unsafe code leans on:
//!
//! * every slot that a hash leads to refers to a live block whose prefix is that of the hash
//!   (**cover**);
//! * places that name the same block are exactly those of its prefix (**once**);
//! * there is a slot for every value under the mask (**whole**).

use core::mem::ManuallyDrop;

use super::block::{self, Spot};

/// Homes of the blocks of a directory: as many as one byte of a hash names.
pub(crate) const HOMES: usize = 256;

/// A block of a directory.
pub(crate) type Block<T> = block::Block<T, HOMES>;

/// Places copied at each step of growing or shrinking the directory.
const STRIDE: usize = 512;

/// Bits of the largest directory. The upper half of the hash chooses tags and homes.
const BITS_MAX: u8 = 28;

const _: () = assert!(BITS_MAX as u32 + PLACE_BITS <= u32::BITS, "masks of all directories");

/// Bytes of a slot: a masked hash is the byte offset of its slot. So the directory uses hash bits
/// from the fourth on.
const PLACE: usize = 1 << PLACE_BITS;

const PLACE_BITS: u32 = 3;

/// The position of a hash in the order of blocks: its bits reversed, from the first bit of the
/// directory on.
#[inline]
pub(crate) fn order(hash: u64) -> u64 {
    hash.rotate_right(PLACE_BITS).reverse_bits()
}

/// The hash at this position.
#[inline]
pub(crate) fn at_order(order: u64) -> u64 {
    order.reverse_bits().rotate_left(PLACE_BITS)
}

/// Several places may hold copies of one block: none drops it by itself.
type SharedBlock<T> = ManuallyDrop<Block<T>>;

/// The directory, with the caller's `counts` in the part that searches do not touch.
pub(crate) struct Directory<T, C> {
    /// Always a power of two.
    places: Box<[SharedBlock<T>]>,
    /// Mask of the byte offset of a hash's slot.
    mask: u32,
    /// Whether any entry stands apart from its block, for the caller. Here, so that searches find it with the rest.
    pub(crate) has_apart: bool,
    more: Box<Growth<T, C>>,
}

struct Growth<T, C> {
    /// The array to come, while it is being filled.
    next: Option<Next<T>>,
    counts: C,
}

struct Next<T> {
    /// As many as are filled, and true.
    places: Vec<SharedBlock<T>>,
    bits: u8,
}

/// The entries of a block that places share: they may change, the block itself may not.
pub(crate) struct Entries<'a, T>(&'a mut Block<T>);

impl<'a, T> Entries<'a, T> {
    /// [`Block::insert`].
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        self.0.insert(hash, entry, hasher)
    }

    /// [`Block::take`]; also whether the block is sparse now.
    #[inline]
    pub(crate) fn take(&mut self, spot: Spot) -> Option<(T, usize, bool)> {
        let (entry, left) = self.0.take(spot)?;
        Some((entry, left, Block::<T>::is_sparse(left, self.0.room())))
    }

    /// [`Block::take_first`]; also whether the block is sparse now.
    #[inline(always)]
    pub(crate) fn take_first(
        &mut self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(T, usize, bool), bool> {
        let (entry, left) = self.0.take_first(hash, eq)?;
        Ok((entry, left, Block::<T>::is_sparse(left, self.0.room())))
    }

    /// [`Block::absorb`].
    pub(crate) fn absorb(&mut self, other: &mut Block<T>) {
        self.0.absorb(other);
    }

    /// [`Block::drain`].
    #[inline]
    pub(crate) fn drain(&mut self, each: impl FnMut(T)) {
        self.0.drain(each);
    }

    /// [`Block::get_mut`].
    #[inline]
    pub(crate) fn get_mut(self, spot: Spot) -> Option<&'a mut T> {
        self.0.get_mut(spot)
    }
}

/// The last hash, in their order, of the block of this depth that holds `hash`.
fn last(hash: u64, depth: u8) -> u64 {
    at_order(order(hash) | u64::MAX.checked_shr(u32::from(depth)).unwrap_or(0))
}

/// The first hash, in their order, behind that block.
pub(crate) fn behind(hash: u64, depth: u8) -> Option<u64> {
    order(last(hash, depth)).checked_add(1).map(at_order)
}

/// The bit by which a block of this depth parts.
#[inline]
pub(crate) fn parting_bit(depth: u8) -> u64 {
    1 << (PLACE_BITS + u32::from(depth))
}

/// A bitwise copy of `place`, for one of the slots of the same block.
fn copy<T>(place: &Block<T>) -> SharedBlock<T> {
    // SAFETY: a block may be copied bitwise as long as only one copy is dropped or changed; the
    // result type drops nothing, and the rule "once" says which copy is dropped.
    ManuallyDrop::new(unsafe { core::ptr::read(place) })
}

/// All blocks that these places name, in the order of their hashes, each once.
fn blocks<T>(places: &[SharedBlock<T>]) -> impl Iterator<Item = &Block<T>> {
    let mut next = Some(0_u64);
    core::iter::from_fn(move || {
        let hash = next?;
        let block: &Block<T> = places.get((hash >> PLACE_BITS) as usize & (places.len() - 1))?;
        next = behind(hash, block.depth());
        Some(block)
    })
}

impl<T, C> Directory<T, C> {
    /// A directory of one block, of depth 0.
    pub(crate) fn new(block: Block<T>, counts: C) -> Self {
        assert!(block.depth() == 0);
        const { assert!(size_of::<SharedBlock<T>>() == PLACE) };
        Directory {
            places: Box::new([ManuallyDrop::new(block)]),
            mask: 0,
            has_apart: false,
            more: Box::new(Growth { next: None, counts }),
        }
    }

    /// The caller's data.
    #[inline]
    pub(crate) fn counts(&self) -> &C {
        &self.more.counts
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn counts_mut(&mut self) -> &mut C {
        &mut self.more.counts
    }

    /// The block that holds this hash.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64) -> &Block<T> {
        let offset = (hash as u32 & self.mask) as usize;
        debug_assert!(offset / PLACE < self.places.len());
        // SAFETY: the array is whole: it has a slot for all values under the mask, which is a
        // multiple of a slot's size.
        unsafe { &*self.places.as_ptr().byte_add(offset) }
    }

    /// The number of the slot of this hash.
    fn at(&self, hash: u64) -> usize {
        (hash >> PLACE_BITS) as usize & (self.places.len() - 1)
    }

    /// The entries of the block that holds this hash, to change.
    #[inline]
    pub(crate) fn entries_mut(&mut self, hash: u64) -> Entries<'_, T> {
        let offset = (hash as u32 & self.mask) as usize;
        debug_assert!(offset / PLACE < self.places.len());
        // SAFETY: as in `block`; `&mut self` makes the access exclusive.
        Entries(unsafe { &mut *self.places.as_mut_ptr().byte_add(offset) })
    }

    /// Number of hash bits that select a slot.
    pub(crate) fn bits(&self) -> u8 {
        self.places.len().ilog2() as u8
    }

    /// Whether it is between two sizes.
    pub(crate) fn in_motion(&self) -> bool {
        self.more.next.is_some()
    }

    /// Places in use.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes on the heap, without the blocks.
    pub(crate) fn heap_bytes(&self) -> usize {
        let next = self.more.next.as_ref();
        let places = self.places.len() + next.map_or(0, |next| next.places.capacity());
        places * size_of::<SharedBlock<T>>() + size_of::<Growth<T, C>>()
    }

    /// Whether the block of this hash may become two.
    pub(crate) fn may_split(&self, hash: u64) -> bool {
        self.block(hash).depth() < self.bits()
    }

    /// Writes a block to all places that hashes which agree with `hash` in as many bits as it is deep lead to.
    fn write(&mut self, hash: u64, block: &Block<T>) {
        let depth = block.depth();
        let apart = 1_usize << depth;
        let first = (hash >> PLACE_BITS) as usize & (apart - 1);
        let fill = |places: &mut [SharedBlock<T>]| {
            for place in places.iter_mut().skip(first).step_by(apart) {
                // The copy that stood there is forgotten, not dropped: its owner has it.
                *place = copy(block);
            }
        };
        fill(&mut self.places);
        if let Some(next) = &mut self.more.next {
            if depth > next.bits {
                // The directory cannot become so small: shrinking is abandoned.
                self.more.next = None;
            } else {
                fill(&mut next.places);
            }
        }
    }

    /// Says of the block that holds `hash` whether entries of it stand apart.
    pub(crate) fn set_apart(&mut self, hash: u64, has_apart: bool) {
        let at = self.at(hash);
        self.places[at].set_apart(has_apart);
    }

    /// [`Block::set_room`] of the block that holds `hash`.
    pub(crate) fn set_room(&mut self, hash: u64, room: usize) {
        self.update(hash, |block| block.set_room(room));
    }

    /// Changes the block that holds `hash`, in all its places. `change` runs nothing of the user's: the copies differ
    /// until it is done.
    fn update(&mut self, hash: u64, change: impl FnOnce(&mut Block<T>)) {
        let mut block = copy(self.block(hash));
        change(&mut block);
        self.write(hash, &block);
    }

    /// Replaces the block that holds `hash` by two, split by the next bit: the low half, and the high one.
    ///
    /// # Panics
    /// If the depths are not one more, or where [`may_split`](Self::may_split) is false.
    pub(crate) fn split(&mut self, hash: u64, [low, high]: [Block<T>; 2]) -> Block<T> {
        let was = copy(self.block(hash));
        let depth = was.depth();
        let bit = parting_bit(depth);
        assert!(low.depth() == depth + 1 && high.depth() == depth + 1 && self.may_split(hash));
        self.write(hash & !bit, &ManuallyDrop::new(low));
        self.write(hash | bit, &ManuallyDrop::new(high));
        ManuallyDrop::into_inner(was)
    }

    /// Lets the block that holds `hash`, with this many cells now, stand for its other half as well; returns that one.
    ///
    /// # Panics
    /// If those two are not of one depth, or of none, or if the block has more entries.
    pub(crate) fn join(&mut self, hash: u64, room: usize) -> Block<T> {
        let mut block = copy(self.block(hash));
        let depth = block.depth();
        assert!(depth > 0);
        let other = copy(self.block(hash ^ parting_bit(depth - 1)));
        assert!(other.depth() == depth);
        block.set_room(room);
        block.set_depth(depth - 1);
        // Every place that named either half names this block: so the copy of the other one is the only one.
        self.write(hash, &block);
        ManuallyDrop::into_inner(other)
    }

    /// Begins to double the directory.
    pub(crate) fn double(&mut self) {
        if !self.in_motion() && self.bits() < BITS_MAX {
            self.resize(self.bits() + 1);
        }
    }

    /// Begins to halve the directory. Abandoned later if a block needs all bits.
    pub(crate) fn halve(&mut self) {
        if !self.in_motion() && self.bits() > 0 {
            self.resize(self.bits() - 1);
        }
    }

    fn resize(&mut self, bits: u8) {
        self.more.next = Some(Next { places: Vec::with_capacity(1 << bits), bits });
        self.step();
    }

    /// Copies some places, if there are any to copy.
    pub(crate) fn step(&mut self) {
        let Some(next) = &mut self.more.next else { return };
        let (whole, is_halving) = (1 << next.bits, 1 << next.bits < self.places.len());
        let to = (next.places.len() + STRIDE).min(whole);
        for at in next.places.len()..to {
            let place = &self.places[at & (self.places.len() - 1)];
            // No block is deeper than the directory as it is: so none needs a look, which might miss the cache.
            if is_halving && place.depth() > next.bits {
                self.more.next = None;
                return;
            }
            next.places.push(copy(place));
        }
        if to == whole {
            self.places = core::mem::take(&mut next.places).into_boxed_slice();
            self.mask = ((whole - 1) * PLACE) as u32;
            self.more.next = None;
        }
    }

    /// All blocks in the order of their hashes, each once.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        blocks(&self.places)
    }

    /// All entries, mutable, and the caller's data.
    pub(crate) fn iter_mut(&mut self) -> (impl Iterator<Item = &mut T>, &mut C) {
        let cells = blocks(&self.places).flat_map(Block::pointers);
        // SAFETY: the iterator holds a borrow of `places` from the same `&mut self`, so there is no
        // other access to entries. `blocks` returns each block once, `pointers` each of its filled
        // cells once, so no two references are to one entry; neither reads an entry on its way.
        (cells.map(|mut cell| unsafe { cell.as_mut() }), &mut self.more.counts)
    }

    /// Takes all blocks out.
    pub(crate) fn into_blocks(mut self) -> Vec<Block<T>> {
        let blocks = self.blocks().map(copy).collect::<Vec<_>>();
        // No slot remains to drop them: each block has one owner, in the vector.
        (self.places, self.more.next) = (Box::default(), None);
        blocks.into_iter().map(ManuallyDrop::into_inner).collect()
    }
}

impl<T, C> Drop for Directory<T, C> {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        let mut next = Some(0_u64);
        while let Some(hash) = next {
            let block = copy(self.block(hash));
            next = behind(hash, block.depth());
            // Dropped at its first slot; the walk continues behind its last.
            drop(ManuallyDrop::into_inner(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::block::Filling;

    #[test]
    fn the_order_of_hashes_is_that_of_bits_from_the_lowest_on() {
        assert_eq!(order(0b110 << PLACE_BITS), 0b011 << 61);
        assert_eq!(at_order(order(0x0123_4567_89ab_cdef)), 0x0123_4567_89ab_cdef);
        assert_eq!(behind(0b10 << PLACE_BITS, 2), Some(0b01 << PLACE_BITS));
        assert_eq!((behind(0b11 << PLACE_BITS, 2), behind(5, 0)), (None, None));
    }

    fn block(depth: u8, value: u32) -> Block<Box<u32>> {
        let mut block = Filling::<_, HOMES>::new(depth, 1);
        assert!(block.add(1, Box::new(value)).is_ok());
        block.finish()
    }

    fn held(directory: &Directory<Box<u32>, ()>) -> Vec<(u8, u32)> {
        directory.blocks().flat_map(|b| b.iter().map(|v| (b.depth(), **v))).collect()
    }

    const HIGH: u64 = 1 << PLACE_BITS;

    #[test]
    fn blocks_part_and_join_while_the_directory_changes_its_size() {
        let mut d = Directory::new(block(0, 1), ());
        d.double();
        drop(d.split(5, [block(1, 2), block(1, 3)]));
        assert_eq!(held(&d), [(1, 2), (1, 3)]);
        assert!(!d.may_split(0));
        for bits in 2..=9 {
            d.double();
            while d.in_motion() {
                // A block of the greatest depth parts once all its places are copied.
                d.step();
            }
            assert_eq!((d.bits(), d.len()), (bits, 1 << bits));
        }
        drop(d.split(HIGH, [block(2, 4), block(2, 5)]));
        assert_eq!(held(&d), [(1, 2), (2, 4), (2, 5)]);
        d.double();
        assert!(d.in_motion() && d.bits() == 9);
        let mut new = block(2, 6);
        d.update(HIGH, |block| core::mem::swap(block, &mut new));
        drop(new);
        drop(d.split(0, [block(2, 7), block(2, 8)]));
        assert_eq!(held(&d), [(2, 7), (2, 8), (2, 6), (2, 5)]);
        while d.in_motion() {
            d.step();
        }
        assert_eq!(held(&d), [(2, 7), (2, 8), (2, 6), (2, 5)]);
        d.iter_mut().0.for_each(|v| **v += 10);
        assert_eq!(held(&d), [(2, 17), (2, 18), (2, 16), (2, 15)]);
        let mut other = d.join(HIGH, 2);
        assert_eq!(other.iter().map(|v| **v).sum::<u32>(), 15);
        assert_eq!(held(&d), [(2, 17), (2, 18), (1, 16)]);
        // The lane of this entry is taken.
        d.entries_mut(HIGH).absorb(&mut other);
        assert_eq!((other.len(), d.block(HIGH).len(), d.block(HIGH).room()), (1, 1, 2));
        // Halving stops where a block needs the bits.
        while d.bits() > 2 {
            d.halve();
            while d.in_motion() {
                d.step();
            }
        }
        d.halve();
        while d.in_motion() {
            d.step();
        }
        assert_eq!((d.bits(), d.len()), (2, 4));
        assert_eq!(held(&d), [(2, 17), (2, 18), (1, 16)]);
        assert_eq!(d.into_blocks().len(), 3);
    }

    #[test]
    fn a_deep_block_parts_only_where_both_arrays_can_tell() {
        let mut d = Directory::new(block(0, 0), ());
        for bits in 1..=9 {
            let (hash, depth) = (u64::MAX, bits);
            while d.bits() < bits {
                d.double();
                while d.in_motion() {
                    d.step();
                }
            }
            drop(d.split(hash, [block(depth, u32::from(bits)), block(depth, 99)]));
        }
        d.double();
        assert!(d.in_motion() && !d.may_split(u64::MAX) && d.may_split(0));
        while d.in_motion() {
            d.step();
        }
        assert!(d.may_split(u64::MAX));
        drop(d.split(u64::MAX, [block(10, 9), block(10, 99)]));
        d.halve();
        while d.in_motion() {
            d.step();
        }
        assert_eq!((d.bits(), d.blocks().count()), (10, 11));
    }
}
