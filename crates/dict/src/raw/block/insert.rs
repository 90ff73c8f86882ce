//! Insertion of an entry into the window of its home, moving other entries if necessary, and into a
//! free cell; resizing of the array of cells.

use super::{
    Block, BlockState, CLOSED, FREE, LaneIndex, Layout, NO_CELL, NonNull, WINDOW, alloc, allocate,
    nth, tag_of,
};

/// Lanes that an entry of a block with twice the homes may occupy, from half its lane on.
const HALVED: usize = WINDOW - WINDOW / 2;

impl<T, const HOMES: usize> Block<T, HOMES> {
    /// Adds an entry; returns it if no cell is free, or if no lane of its window can be freed.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        let mut state = self.state();
        if state.len >= state.capacity {
            return Err(entry);
        }
        let (home, free) = (self.home(hash), self.free_lanes(hash));
        let at = if free != 0 {
            nth(home, free)
        } else {
            let Some(at) = self.free_lane_in_window(home, hasher) else { return Err(entry) };
            at
        };
        let number = self.take_cell(&mut state);
        // SAFETY: `take_cell` returns the number of a cell that is not initialised, so nothing is
        // overwritten. The lane, which was free, gets that number.
        unsafe { self.cell(number).write(entry) };
        self.set_number(at, number);
        self.set_tag(at, tag_of(hash));
        state.len += 1;
        self.set_state(state);
        Ok(())
    }

    /// Takes a free cell, which is not initialised. The caller has checked that there are fewer
    /// entries than cells, so one exists.
    #[inline]
    fn take_cell(&self, state: &mut BlockState) -> u8 {
        if size_of::<T>() == 0 {
            return 0;
        }
        if state.free == NO_CELL {
            assert!(state.used < state.capacity, "more entries than cells");
            state.used += 1;
            return state.used - 1;
        }
        let number = state.free;
        // SAFETY: a cell of the chain, whose first byte `free_cell` wrote; the rest of it is not
        // initialised.
        state.free = unsafe { self.cell(number).cast::<u8>().read() };
        number
    }

    /// Adds a cell, whose entry has been removed, to the front of the chain of free cells.
    #[inline]
    pub(super) fn free_cell(&mut self, number: u8, state: &mut BlockState) {
        if size_of::<T>() != 0 {
            // SAFETY: the cell has at least one byte, and callers pass one that is not initialised.
            unsafe { self.cell(number).cast::<u8>().write(state.free) };
            state.free = number;
        }
    }

    /// Frees a lane in the window of a home, which has no free lane.
    #[cold]
    #[inline(never)]
    fn free_lane_in_window(&mut self, home: usize, hasher: impl Fn(&T) -> u64) -> Option<usize> {
        let home_of =
            |block: &Self, at: usize| Some(block.home(hasher(block.get(LaneIndex(at as u32))?)));
        let tags = self.tags();
        // From the end: each move brings the free lane nearer, since the moved entry was before it.
        if let Some(far) = tags.iter().skip(home).position(|tag| *tag == FREE) {
            let mut free = home + far;
            while free - home >= WINDOW {
                let mut movable = free + 1 - WINDOW..free;
                let Some(from) =
                    movable.find(|at| home_of(self, *at).is_some_and(|h| h + WINDOW > free))
                else {
                    break;
                };
                self.shift(from, free);
                free = from;
            }
            if free - home < WINDOW {
                return Some(free);
            }
        }
        // From the start: the moved entry was after the free lane, and not after the window.
        let mut free = self.tags()[..home].iter().rposition(|tag| *tag == FREE)?;
        while free < home {
            let behind = free + 1..(free + WINDOW).min(Self::LANES);
            let from = behind.rev().find(|at| home_of(self, *at).is_some_and(|h| h <= free))?;
            self.shift(from, free);
            free = from;
        }
        Some(free)
    }

    /// Moves an entry from its lane to a free one.
    fn shift(&mut self, from: usize, to: usize) {
        let tag = self.tags()[from];
        if tag == FREE || tag == CLOSED || self.tags()[to] != FREE {
            return;
        }
        self.set_number(to, self.number(from));
        self.set_tag(to, tag);
        self.set_tag(from, FREE);
    }

    /// Moves entries of `other` here whose lanes are free here: the same lane is in the window of
    /// their home in every block, so no hash is computed.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        let (mut state, mut others) = (self.state(), other.state());
        let movable = other.filled_lanes().and(&self.filled_lanes(), |others, own| others & !own);
        for at in movable.take(usize::from(state.capacity - state.len)) {
            let (number, to) = (other.number(at), self.take_cell(&mut state));
            // SAFETY: the other block's lane has a tag, so its cell is initialised; `take_cell`
            // returns one here that is not. From now on this block's lane, which was free, has the
            // number of the entry's cell, and the other block's lane has none.
            unsafe { other.cell(number).copy_to_nonoverlapping(self.cell(to), 1) };
            self.set_number(at, to);
            self.set_tag(at, other.tags()[at]);
            other.set_tag(at, FREE);
            other.free_cell(number, &mut others);
            state.len += 1;
            others.len -= 1;
        }
        self.set_state(state);
        other.set_state(others);
    }

    /// Moves the entries of a block with twice the homes here, without computing hashes. An entry
    /// there is up to 15 lanes after its home; so half its lane is up to 8 after half its home, and
    /// the [`HALVED`] lanes from there on are in the window of its home here. Entries for which
    /// these lanes are taken, or for which no cell is free, stay where they are.
    pub(crate) fn absorb_wider<const WIDER: usize>(&mut self, wider: &mut Block<T, WIDER>) {
        const { assert!(WIDER == 2 * HOMES) };
        let (mut state, mut others) = (self.state(), wider.state());
        for at in wider.filled_lanes() {
            if state.len >= state.capacity {
                break;
            }
            let tags = self.tags();
            let mut lanes = at / 2..(at / 2 + HALVED).min(tags.len());
            let Some(lane) = lanes.find(|lane| tags[*lane] == FREE) else { continue };
            let (number, to) = (wider.number(at), self.take_cell(&mut state));
            // SAFETY: the wider block's lane has a tag, so its cell is initialised; `take_cell`
            // returns one here that is not. From now on this block's lane, which was free, has the
            // number of the entry's cell, and the other block's lane has none.
            unsafe { wider.cell(number).copy_to_nonoverlapping(self.cell(to), 1) };
            self.set_number(lane, to);
            self.set_tag(lane, wider.tags()[at]);
            wider.set_tag(at, FREE);
            wider.free_cell(number, &mut others);
            state.len += 1;
            others.len -= 1;
        }
        self.set_state(state);
        wider.set_state(others);
    }

    /// Changes the number of cells; there must be at least as many as entries.
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        assert!(capacity >= self.len().max(1) && capacity <= Self::ENTRIES_MAX);
        let BlockState { len, used, .. } = self.state();
        let (old, new) = (Self::layout(self.capacity()), Self::layout(capacity));
        if size_of::<T>() == 0 || used == len {
            // SAFETY: allocated with the old layout, whose size is not 0 as that of the new one is not; the new one has the same
            // alignment.
            let base = unsafe { alloc::realloc(self.base.as_ptr(), old, new.size()) };
            match NonNull::new(base) {
                Some(base) => self.base = base,
                None => alloc::handle_alloc_error(new),
            }
        } else {
            let base = self.pack_into(new);
            // SAFETY: allocated with this layout. No block points to it any more, and its entries
            // are in the new memory.
            unsafe { alloc::dealloc(core::mem::replace(&mut self.base, base).as_ptr(), old) };
        }
        self.set_state(BlockState::of(len, capacity as u8));
    }

    /// Copies the block into memory of this layout, which has a cell for each entry, so that
    /// exactly the first cells are filled. Works lane by lane, so that the chain of free cells need
    /// not be followed.
    fn pack_into(&self, new: Layout) -> NonNull<u8> {
        let base = allocate(new);
        // SAFETY: both allocations begin with an index.
        unsafe { self.base.copy_to_nonoverlapping(base, Self::INDEX) };
        for (to, at) in self.filled_lanes().enumerate() {
            // SAFETY: the lane's number is in the index and its cell is initialised; the new memory
            // has a cell for each entry, and the number of entries fits a byte.
            unsafe {
                let cell = base.add(Self::CELLS).cast::<T>().add(to);
                self.cell(self.number(at)).copy_to_nonoverlapping(cell, 1);
                base.add(Self::NUMBERS + at).write(to as u8);
            }
        }
        base
    }
}
