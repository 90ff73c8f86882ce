//! A new block while it is filled with entries about in the order of their homes.

use super::{Block, BlockState, FREE, WINDOW, tag_of};

/// A new block while it is filled. What it notes is kept here meanwhile, and single tags are read, as a load of sixteen
/// would stall on those just written.
pub(crate) struct Filling<T, const HOMES: usize> {
    block: Block<T, HOMES>,
    room: u8,
    /// The lane behind the last entry.
    next: usize,
    len: u8,
}

impl<T, const HOMES: usize> Filling<T, HOMES> {
    /// [`Block::new`].
    pub(crate) fn new(depth: u8, room: usize) -> Self {
        Filling { block: Block::new(depth, room), room: room as u8, next: 0, len: 0 }
    }

    /// Adds an entry; returns it if there is no cell for it, or no lane without moving others.
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
        if self.len >= self.room {
            return Err(entry);
        }
        self.next = at + 1;
        // SAFETY: `len` is below `room`. No lane names this cell yet, so it is not initialised; the one that does from now
        // on was free.
        unsafe { self.block.cell(self.len).write(entry) };
        self.block.set_number(at, self.len);
        self.block.set_tag(at, tag_of(hash));
        self.len += 1;
        Ok(())
    }

    /// The block.
    pub(crate) fn finish(mut self) -> Block<T, HOMES> {
        self.block.set_notes(BlockState::of(self.len, self.room));
        self.block
    }
}
