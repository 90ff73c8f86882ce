//! Insertion: an entry goes into the window of its home, where others make room for it, and into a cell that is free. The
//! array of cells gets another size.

use super::{
    Block, BlockState, CLOSED, FREE, Layout, NO_CELL, NonNull, Spot, WINDOW, alloc, allocate, nth,
    tag_of,
};

/// Lanes in which an entry of a block with twice the homes may stand, from half its lane on.
const HALVED: usize = WINDOW - WINDOW / 2;

impl<T, const HOMES: usize> Block<T, HOMES> {
    /// Adds an entry; returns it if no cell is free, or if no room can be made in its window.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), T> {
        let mut notes = self.notes();
        if notes.len >= notes.room {
            return Err(entry);
        }
        let (home, free) = (self.home(hash), self.free_lanes(hash));
        let at = if free != 0 {
            nth(home, free)
        } else {
            let Some(at) = self.make_room(home, hasher) else { return Err(entry) };
            at
        };
        let number = self.take_cell(&mut notes);
        // SAFETY: `take_cell` gives the number of a cell that is not initialised, so nothing is overwritten. The lane, which was
        // free, names it from now on.
        unsafe { self.cell(number).write(entry) };
        self.set_number(at, number);
        self.set_tag(at, tag_of(hash));
        notes.len += 1;
        self.set_notes(notes);
        Ok(())
    }

    /// A cell that is not initialised, out of those that are free. The caller has seen that there are fewer entries than
    /// cells, so there is one.
    #[inline]
    fn take_cell(&self, notes: &mut BlockState) -> u8 {
        if size_of::<T>() == 0 {
            return 0;
        }
        if notes.free == NO_CELL {
            assert!(notes.used < notes.room, "more entries than cells");
            notes.used += 1;
            return notes.used - 1;
        }
        let number = notes.free;
        // SAFETY: a cell of the chain, whose first byte `take` wrote. It is not initialised otherwise.
        notes.free = unsafe { self.cell(number).cast::<u8>().read() };
        number
    }

    /// Puts a cell, which holds no entry any more, before the free ones.
    #[inline]
    pub(super) fn free_cell(&mut self, number: u8, notes: &mut BlockState) {
        if size_of::<T>() != 0 {
            // SAFETY: the cell has at least one byte, and callers give one that is not initialised.
            unsafe { self.cell(number).cast::<u8>().write(notes.free) };
            notes.free = number;
        }
    }

    /// Frees a lane in the window of a home, which has none.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, home: usize, hasher: impl Fn(&T) -> u64) -> Option<usize> {
        let home_of =
            |block: &Self, at: usize| Some(block.home(hasher(block.get(Spot(at as u32))?)));
        let tags = self.tags();
        // From behind: each move brings the free lane nearer, since the moved entry was in front of
        // it.
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
        // From the front: the moved entry was behind the free lane, and not behind the window.
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

    /// Moves entries of `other` here whose lanes are free here: the same lane is in the window of their home in every block, so
    /// no hash is asked for.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        let (mut notes, mut others) = (self.notes(), other.notes());
        let movable = other.filled_lanes().and(&self.filled_lanes(), |others, own| others & !own);
        for at in movable.take(usize::from(notes.room - notes.len)) {
            let (number, to) = (other.number(at), self.take_cell(&mut notes));
            // SAFETY: the other block's lane has a tag, so its cell is initialised; `take_cell` gives one here that is not.
            // From now on this block's lane, which was free, names the entry, and the other one's does not.
            unsafe { other.cell(number).copy_to_nonoverlapping(self.cell(to), 1) };
            self.set_number(at, to);
            self.set_tag(at, other.tags()[at]);
            other.set_tag(at, FREE);
            other.free_cell(number, &mut others);
            notes.len += 1;
            others.len -= 1;
        }
        self.set_notes(notes);
        other.set_notes(others);
    }

    /// Moves entries here of a block with twice the homes, without asking for hashes. An entry is up to 15 lanes behind its
    /// home there; so half its lane is up to 8 behind half its home, and the [`HALVED`] lanes from there on are in the window of
    /// its home here. Leaves those to the caller for which these are taken, or for which there is no cell.
    pub(crate) fn absorb_wider<const WIDER: usize>(&mut self, wider: &mut Block<T, WIDER>) {
        const { assert!(WIDER == 2 * HOMES) };
        let (mut notes, mut others) = (self.notes(), wider.notes());
        for at in wider.filled_lanes() {
            if notes.len >= notes.room {
                break;
            }
            let tags = self.tags();
            let mut lanes = at / 2..(at / 2 + HALVED).min(tags.len());
            let Some(lane) = lanes.find(|lane| tags[*lane] == FREE) else { continue };
            let (number, to) = (wider.number(at), self.take_cell(&mut notes));
            // SAFETY: the wider block's lane has a tag, so its cell is initialised; `take_cell` gives one here that is not.
            // From now on this block's lane, which was free, names the entry, and the other one's does not.
            unsafe { wider.cell(number).copy_to_nonoverlapping(self.cell(to), 1) };
            self.set_number(lane, to);
            self.set_tag(lane, wider.tags()[at]);
            wider.set_tag(at, FREE);
            wider.free_cell(number, &mut others);
            notes.len += 1;
            others.len -= 1;
        }
        self.set_notes(notes);
        wider.set_notes(others);
    }

    /// Gives the block another number of cells, at least as many as there are entries.
    pub(crate) fn set_room(&mut self, room: usize) {
        assert!(room >= self.len().max(1) && room <= Self::ENTRIES_MAX);
        let BlockState { len, used, .. } = self.notes();
        let (old, new) = (Self::layout(self.room()), Self::layout(room));
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
            // SAFETY: allocated with this layout. No block has it any more, and its entries are in the new memory.
            unsafe { alloc::dealloc(core::mem::replace(&mut self.base, base).as_ptr(), old) };
        }
        self.set_notes(BlockState::of(len, room as u8));
    }

    /// Memory of this layout, which has a cell for each entry, with a copy of the block whose first cells are filled, and no
    /// others. Lane by lane: the free cells, each of which names the next one, need not be read one after the other.
    fn pack_into(&self, new: Layout) -> NonNull<u8> {
        let base = allocate(new);
        // SAFETY: both allocations begin with an index.
        unsafe { self.base.copy_to_nonoverlapping(base, Self::INDEX) };
        for (to, at) in self.filled_lanes().enumerate() {
            // SAFETY: a lane has a number in the index. Its cell is initialised; the new memory has one for each entry, of which
            // there are no more than fit a byte.
            unsafe {
                let cell = base.add(Self::CELLS).cast::<T>().add(to);
                self.cell(self.number(at)).copy_to_nonoverlapping(cell, 1);
                base.add(Self::NUMBERS + at).write(to as u8);
            }
        }
        base
    }
}
