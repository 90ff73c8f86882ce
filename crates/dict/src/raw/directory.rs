//! The directory: a map from hashes to blocks.
//!
//! The directory has a slot for each value of some low bits of a hash (extendible hashing). A block
//! of depth *d* holds the hashes that agree in *d* of these bits, and all slots whose numbers end
//! in them refer to it. So a slot is found with a mask. A slot is a pointer: all state of a block
//! is in the block.
//!
//! Read from the lowest bit on ([`order`]) these bits are a prefix, and the hashes of a block are
//! contiguous.
//!
//! Doubling or halving the directory copies nothing at once: a new array is filled from its front,
//! [`STRIDE`] slots with each later split or join. Until it is complete, searches use the old one,
//! and changes are written to both. So a search never has to choose between the two.
//!
//! The invariants that unsafe code depends on:
//!
//! * every slot that a hash leads to refers to a live block whose prefix is that of the hash
//!   (**cover**);
//! * the slots that refer to the same block are exactly those of its prefix (**once**);
//! * there is a slot for every value under the mask (**whole**).

use core::mem::ManuallyDrop;

use super::block::{self, LaneIndex};

/// Homes of the blocks of a directory, selected by one byte of a hash.
pub(crate) const HOMES: usize = 256;

/// A block of a directory.
pub(crate) type Block<T> = block::Block<T, HOMES>;

/// Slots copied at each step of growing or shrinking the directory.
const STRIDE: usize = 512;

/// Bits of the largest directory. The upper half of the hash chooses tags and homes.
const BITS_MAX: u8 = 28;

const _: () = assert!(BITS_MAX as u32 + SLOT_BITS <= u32::BITS, "masks of all directories");

/// Bytes of a slot: a masked hash is the byte offset of its slot. So the directory uses hash bits
/// from the fourth on.
const SLOT_BYTES: usize = 1 << SLOT_BITS;

const SLOT_BITS: u32 = 3;

/// The position of a hash in the order of blocks: its bits reversed, from the first bit of the
/// directory on.
#[inline]
pub(crate) fn order(hash: u64) -> u64 {
    hash.rotate_right(SLOT_BITS).reverse_bits()
}

/// The hash at this position.
#[inline]
pub(crate) fn at_order(order: u64) -> u64 {
    order.reverse_bits().rotate_left(SLOT_BITS)
}

/// A copy of a block in a slot. Several slots may hold copies of one block, so none drops it by
/// itself.
type SharedBlock<T> = ManuallyDrop<Block<T>>;

/// The directory, with the caller's `counts` in the part that searches do not access.
pub(crate) struct Directory<T, C> {
    /// Always a power of two.
    slots: Box<[SharedBlock<T>]>,
    /// Mask of the byte offset of a hash's slot.
    mask: u32,
    /// Whether the table's overflow list has entries. Only the table uses it; it is stored here, in
    /// the cache line that searches read.
    pub(crate) has_overflow: bool,
    growth: Box<Growth<T, C>>,
}

struct Growth<T, C> {
    /// The next array, while it is being filled.
    next: Option<Next<T>>,
    counts: C,
}

struct Next<T> {
    /// The slots filled so far, all valid.
    slots: Vec<SharedBlock<T>>,
    bits: u8,
}

/// The entries of a block that several slots share: they may change, the block itself may not.
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
    pub(crate) fn take(&mut self, lane: LaneIndex) -> Option<(T, usize, bool)> {
        let (entry, left) = self.0.take(lane)?;
        Some((entry, left, Block::<T>::is_sparse(left, self.0.capacity())))
    }

    /// [`Block::take_first`]; also whether the block is sparse now.
    #[inline(always)]
    pub(crate) fn take_first(
        &mut self,
        hash: u64,
        eq: &mut impl FnMut(&T) -> bool,
    ) -> Result<(T, usize, bool), bool> {
        let (entry, left) = self.0.take_first(hash, eq)?;
        Ok((entry, left, Block::<T>::is_sparse(left, self.0.capacity())))
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
    pub(crate) fn get_mut(self, lane: LaneIndex) -> Option<&'a mut T> {
        self.0.get_mut(lane)
    }
}

/// The last hash, in their order, of the block of this depth that holds `hash`.
fn last(hash: u64, depth: u8) -> u64 {
    at_order(order(hash) | u64::MAX.checked_shr(u32::from(depth)).unwrap_or(0))
}

/// The first hash, in their order, after that block.
pub(crate) fn first_after(hash: u64, depth: u8) -> Option<u64> {
    order(last(hash, depth)).checked_add(1).map(at_order)
}

/// The bit by which a block of this depth splits.
#[inline]
pub(crate) fn split_bit(depth: u8) -> u64 {
    1 << (SLOT_BITS + u32::from(depth))
}

/// A bitwise copy of `slot`, for another slot of the same block.
fn copy<T>(slot: &Block<T>) -> SharedBlock<T> {
    // SAFETY: a block may be copied bitwise as long as only one copy is dropped or changed; the
    // result type drops nothing, and the rule "once" says which copy is dropped.
    ManuallyDrop::new(unsafe { core::ptr::read(slot) })
}

/// All blocks that these slots refer to, in the order of their hashes, each once.
fn blocks<T>(slots: &[SharedBlock<T>]) -> impl Iterator<Item = &Block<T>> {
    let mut next = Some(0_u64);
    core::iter::from_fn(move || {
        let hash = next?;
        let block: &Block<T> = slots.get((hash >> SLOT_BITS) as usize & (slots.len() - 1))?;
        next = first_after(hash, block.depth());
        Some(block)
    })
}

impl<T, C> Directory<T, C> {
    /// A directory of one block, of depth 0.
    pub(crate) fn new(block: Block<T>, counts: C) -> Self {
        assert!(block.depth() == 0);
        const { assert!(size_of::<SharedBlock<T>>() == SLOT_BYTES) };
        Directory {
            slots: Box::new([ManuallyDrop::new(block)]),
            mask: 0,
            has_overflow: false,
            growth: Box::new(Growth { next: None, counts }),
        }
    }

    /// The caller's data.
    #[inline]
    pub(crate) fn counts(&self) -> &C {
        &self.growth.counts
    }

    /// The caller's data, mutable.
    #[inline]
    pub(crate) fn counts_mut(&mut self) -> &mut C {
        &mut self.growth.counts
    }

    /// The block that holds this hash.
    #[inline(always)]
    pub(crate) fn block(&self, hash: u64) -> &Block<T> {
        let offset = (hash as u32 & self.mask) as usize;
        debug_assert!(offset / SLOT_BYTES < self.slots.len());
        // SAFETY: the array is whole: it has a slot for all values under the mask, which is a
        // multiple of a slot's size.
        unsafe { &*self.slots.as_ptr().byte_add(offset) }
    }

    /// The number of the slot of this hash.
    fn at(&self, hash: u64) -> usize {
        (hash >> SLOT_BITS) as usize & (self.slots.len() - 1)
    }

    /// The mutable entries of the block that holds this hash.
    #[inline]
    pub(crate) fn entries_mut(&mut self, hash: u64) -> Entries<'_, T> {
        let offset = (hash as u32 & self.mask) as usize;
        debug_assert!(offset / SLOT_BYTES < self.slots.len());
        // SAFETY: as in `block`; `&mut self` makes the access exclusive.
        Entries(unsafe { &mut *self.slots.as_mut_ptr().byte_add(offset) })
    }

    /// Number of hash bits that select a slot.
    pub(crate) fn bits(&self) -> u8 {
        self.slots.len().ilog2() as u8
    }

    /// Whether a resize is in progress.
    pub(crate) fn is_resizing(&self) -> bool {
        self.growth.next.is_some()
    }

    /// Number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes on the heap, without the blocks.
    pub(crate) fn heap_bytes(&self) -> usize {
        let next = self.growth.next.as_ref();
        let slots = self.slots.len() + next.map_or(0, |next| next.slots.capacity());
        slots * size_of::<SharedBlock<T>>() + size_of::<Growth<T, C>>()
    }

    /// Whether the block of this hash may become two.
    pub(crate) fn may_split(&self, hash: u64) -> bool {
        self.block(hash).depth() < self.bits()
    }

    /// Writes a block to all of its slots: those of the hashes that agree with `hash` in `depth`
    /// bits.
    fn write(&mut self, hash: u64, block: &Block<T>) {
        let depth = block.depth();
        let stride = 1_usize << depth;
        let first = (hash >> SLOT_BITS) as usize & (stride - 1);
        let fill = |slots: &mut [SharedBlock<T>]| {
            for slot in slots.iter_mut().skip(first).step_by(stride) {
                // The previous copy is forgotten, not dropped: the caller owns that block.
                *slot = copy(block);
            }
        };
        fill(&mut self.slots);
        if let Some(next) = &mut self.growth.next {
            if depth > next.bits {
                // The block needs more bits than the smaller directory has: shrinking is abandoned.
                self.growth.next = None;
            } else {
                fill(&mut next.slots);
            }
        }
    }

    /// [`Block::set_overflow`] of the block that holds `hash`.
    pub(crate) fn set_overflow(&mut self, hash: u64, has_overflow: bool) {
        let at = self.at(hash);
        self.slots[at].set_overflow(has_overflow);
    }

    /// [`Block::set_capacity`] of the block that holds `hash`.
    pub(crate) fn set_capacity(&mut self, hash: u64, capacity: usize) {
        self.update(hash, |block| block.set_capacity(capacity));
    }

    /// Changes the block that holds `hash`, in all its slots. `change` must not run user code: the
    /// copies differ until it returns.
    fn update(&mut self, hash: u64, change: impl FnOnce(&mut Block<T>)) {
        let mut block = copy(self.block(hash));
        change(&mut block);
        self.write(hash, &block);
    }

    /// Replaces the block that holds `hash` by two, split by the next bit: the low half, and the high one.
    ///
    /// # Panics
    /// If the depth of either half is not one more, or if [`may_split`](Self::may_split) is false.
    pub(crate) fn split(&mut self, hash: u64, [low, high]: [Block<T>; 2]) -> Block<T> {
        let was = copy(self.block(hash));
        let depth = was.depth();
        let bit = split_bit(depth);
        assert!(low.depth() == depth + 1 && high.depth() == depth + 1 && self.may_split(hash));
        self.write(hash & !bit, &ManuallyDrop::new(low));
        self.write(hash | bit, &ManuallyDrop::new(high));
        ManuallyDrop::into_inner(was)
    }

    /// Makes the block that holds `hash`, with a new capacity, cover its other half as well;
    /// returns the other half's block.
    ///
    /// # Panics
    /// If the two blocks differ in depth, if the depth is 0, or if the block has more entries than
    /// the new capacity.
    pub(crate) fn join(&mut self, hash: u64, capacity: usize) -> Block<T> {
        let mut block = copy(self.block(hash));
        let depth = block.depth();
        assert!(depth > 0);
        let other = copy(self.block(hash ^ split_bit(depth - 1)));
        assert!(other.depth() == depth);
        block.set_capacity(capacity);
        block.set_depth(depth - 1);
        // Every slot of either half refers to this block now, so `other` is the only copy of the
        // other block.
        self.write(hash, &block);
        ManuallyDrop::into_inner(other)
    }

    /// Begins to double the directory.
    pub(crate) fn double(&mut self) {
        if !self.is_resizing() && self.bits() < BITS_MAX {
            self.resize(self.bits() + 1);
        }
    }

    /// Begins to halve the directory. Abandoned later if a block needs all bits.
    pub(crate) fn halve(&mut self) {
        if !self.is_resizing() && self.bits() > 0 {
            self.resize(self.bits() - 1);
        }
    }

    fn resize(&mut self, bits: u8) {
        self.growth.next = Some(Next { slots: Vec::with_capacity(1 << bits), bits });
        self.step();
    }

    /// Copies up to [`STRIDE`] slots, if a resize is in progress.
    pub(crate) fn step(&mut self) {
        let Some(next) = &mut self.growth.next else { return };
        let (whole, is_halving) = (1 << next.bits, 1 << next.bits < self.slots.len());
        let to = (next.slots.len() + STRIDE).min(whole);
        for at in next.slots.len()..to {
            let slot = &self.slots[at & (self.slots.len() - 1)];
            // No block is deeper than the current directory, so depths need not be read, which
            // might miss the cache.
            if is_halving && slot.depth() > next.bits {
                self.growth.next = None;
                return;
            }
            next.slots.push(copy(slot));
        }
        if to == whole {
            self.slots = core::mem::take(&mut next.slots).into_boxed_slice();
            self.mask = ((whole - 1) * SLOT_BYTES) as u32;
            self.growth.next = None;
        }
    }

    /// All blocks in the order of their hashes, each once.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block<T>> {
        blocks(&self.slots)
    }

    /// All mutable entries, and the caller's data.
    pub(crate) fn iter_mut(&mut self) -> (impl Iterator<Item = &mut T>, &mut C) {
        let cells = blocks(&self.slots).flat_map(Block::pointers);
        // SAFETY: the iterator holds a borrow of `slots` from the same `&mut self`, so there is no
        // other access to entries. `blocks` returns each block once, `pointers` each of its filled
        // cells once, so no two references are to one entry; neither reads an entry.
        (cells.map(|mut cell| unsafe { cell.as_mut() }), &mut self.growth.counts)
    }

    /// Returns all blocks, each once.
    pub(crate) fn into_blocks(mut self) -> Vec<Block<T>> {
        let blocks = self.blocks().map(copy).collect::<Vec<_>>();
        // No slot remains to drop them: each block has one owner, in the vector.
        (self.slots, self.growth.next) = (Box::default(), None);
        blocks.into_iter().map(ManuallyDrop::into_inner).collect()
    }
}

impl<T, C> Drop for Directory<T, C> {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        let mut next = Some(0_u64);
        while let Some(hash) = next {
            let block = copy(self.block(hash));
            next = first_after(hash, block.depth());
            // Dropped at its first slot; the walk continues after its last.
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
        assert_eq!(order(0b110 << SLOT_BITS), 0b011 << 61);
        assert_eq!(at_order(order(0x0123_4567_89ab_cdef)), 0x0123_4567_89ab_cdef);
        assert_eq!(first_after(0b10 << SLOT_BITS, 2), Some(0b01 << SLOT_BITS));
        assert_eq!((first_after(0b11 << SLOT_BITS, 2), first_after(5, 0)), (None, None));
    }

    fn block(depth: u8, value: u32) -> Block<Box<u32>> {
        let mut block = Filling::<_, HOMES>::new(depth, 1);
        assert!(block.add(1, Box::new(value)).is_ok());
        block.finish()
    }

    fn held(directory: &Directory<Box<u32>, ()>) -> Vec<(u8, u32)> {
        directory.blocks().flat_map(|b| b.iter().map(|v| (b.depth(), **v))).collect()
    }

    const HIGH: u64 = 1 << SLOT_BITS;

    #[test]
    fn blocks_split_and_join_while_the_directory_changes_its_size() {
        let mut d = Directory::new(block(0, 1), ());
        d.double();
        drop(d.split(5, [block(1, 2), block(1, 3)]));
        assert_eq!(held(&d), [(1, 2), (1, 3)]);
        assert!(!d.may_split(0));
        for bits in 2..=9 {
            d.double();
            while d.is_resizing() {
                // A block of the greatest depth can be split once all its slots are copied.
                d.step();
            }
            assert_eq!((d.bits(), d.len()), (bits, 1 << bits));
        }
        drop(d.split(HIGH, [block(2, 4), block(2, 5)]));
        assert_eq!(held(&d), [(1, 2), (2, 4), (2, 5)]);
        d.double();
        assert!(d.is_resizing() && d.bits() == 9);
        let mut new = block(2, 6);
        d.update(HIGH, |block| core::mem::swap(block, &mut new));
        drop(new);
        drop(d.split(0, [block(2, 7), block(2, 8)]));
        assert_eq!(held(&d), [(2, 7), (2, 8), (2, 6), (2, 5)]);
        while d.is_resizing() {
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
        assert_eq!((other.len(), d.block(HIGH).len(), d.block(HIGH).capacity()), (1, 1, 2));
        // Halving stops where a block needs the bits.
        while d.bits() > 2 {
            d.halve();
            while d.is_resizing() {
                d.step();
            }
        }
        d.halve();
        while d.is_resizing() {
            d.step();
        }
        assert_eq!((d.bits(), d.len()), (2, 4));
        assert_eq!(held(&d), [(2, 17), (2, 18), (1, 16)]);
        assert_eq!(d.into_blocks().len(), 3);
    }

    #[test]
    fn a_deep_block_splits_only_where_both_arrays_have_enough_bits() {
        let mut d = Directory::new(block(0, 0), ());
        for bits in 1..=9 {
            let (hash, depth) = (u64::MAX, bits);
            while d.bits() < bits {
                d.double();
                while d.is_resizing() {
                    d.step();
                }
            }
            drop(d.split(hash, [block(depth, u32::from(bits)), block(depth, 99)]));
        }
        d.double();
        assert!(d.is_resizing() && !d.may_split(u64::MAX) && d.may_split(0));
        while d.is_resizing() {
            d.step();
        }
        assert!(d.may_split(u64::MAX));
        drop(d.split(u64::MAX, [block(10, 9), block(10, 99)]));
        d.halve();
        while d.is_resizing() {
            d.step();
        }
        assert_eq!((d.bits(), d.blocks().count()), (10, 11));
    }
}
