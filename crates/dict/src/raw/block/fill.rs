//! A new block while it is filled with entries about in the order of their homes.

use super::{Block, BlockState, FREE, WINDOW, tag_of};

/// A new block while it is filled. Its state is kept here meanwhile, and tags are read one by one,
/// as a load of sixteen would stall on the tags just written.
pub(crate) struct Filling<T, const HOMES: usize> {
    block: Block<T, HOMES>,
    capacity: u8,
    /// The lane after the last entry.
    next: usize,
    len: u8,
}

impl<T, const HOMES: usize> Filling<T, HOMES> {
    /// [`Block::new`].
    pub(crate) fn new(depth: u8, capacity: usize) -> Self {
        Filling { block: Block::new(depth, capacity), capacity: capacity as u8, next: 0, len: 0 }
    }

    /// Adds an entry; returns it if no cell is free, or no lane without moving other entries.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, entry: T) -> Result<(), T> {
        let home = self.block.home(hash);
        let tags = self.block.tags();
        let mut at = home.max(self.next);
        if at - home >= WINDOW || tags.get(at) != Some(&FREE) {
            let window = home..(home + WINDOW).min(tags.len());
            let Some(free) = window.clone().find(|at| tags[*at] == FREE) else { return Err(entry) };
            at = free;
        }
        if self.len >= self.capacity {
            return Err(entry);
        }
        self.next = at + 1;
        // SAFETY: `len` is below `capacity`. No lane has the number of this cell yet, so it is not
        // initialised; the lane that gets it was free.
        unsafe { self.block.cell(self.len).write(entry) };
        self.block.set_number(at, self.len);
        self.block.set_tag(at, tag_of(hash));
        self.len += 1;
        Ok(())
    }

    /// The filled block.
    pub(crate) fn finish(mut self) -> Block<T, HOMES> {
        self.block.set_state(BlockState::of(self.len, self.capacity));
        self.block
    }
}
