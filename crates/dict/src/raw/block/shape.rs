//! Blocks of another size: copied with more cells, or emptied into others.

use core::ptr;

use super::{Block, FREE, Group, LANES, NUMBERS, Spot, first, head_bytes, stride, tag_of};

impl<T> Block<T> {
    /// The entries in a block with more cells, which is this one's copy; this one is empty then.
    ///
    /// # Panics
    /// If there are fewer: errors of this crate.
    pub(crate) fn with_more_cells(&mut self, cells: usize) -> Self {
        let before = self.cells();
        assert!(cells >= before);
        let mut block = Self::new(self.depth, self.groups(), cells);
        block.has_apart = self.has_apart;
        let front = before * stride::<T>() + head_bytes::<T>();
        // SAFETY: in both blocks these bytes in front of the groups, the last cells and the head, and the groups behind are
        // within the allocations, which are two. Cells that are initialised are copied with the lanes that name
        // them, and `forget_all` makes the originals free: each entry has one owner.
        unsafe {
            ptr::copy_nonoverlapping(
                self.groups.cast::<u8>().sub(front).as_ptr(),
                block.groups.cast::<u8>().sub(front).as_ptr(),
                front + size_of::<Group>() * self.groups(),
            );
        }
        block.head_mut().cells = cells as u16;
        self.forget_all();
        block
    }

    /// Makes all cells free without dropping entries: they were copied to another block.
    fn forget_all(&mut self) {
        for at in 0..self.groups() {
            *self.group_mut(at) = Group::EMPTY;
        }
        let head = self.head_mut();
        (head.len, head.fresh, head.free) = (0, NUMBERS as u16, super::NO_CELL);
    }

    /// Takes all entries out, each with the next of `hashes`, in the order of [`iter`](Self::iter).
    ///
    /// # Panics
    /// If there are not as many hashes as entries: errors of this crate.
    pub(crate) fn drain(&mut self, hashes: &[u64], mut each: impl FnMut(u64, T)) {
        assert!(hashes.len() == self.len());
        let mut hashes = hashes.iter();
        for at in 0..self.groups() {
            let group = *self.group(at);
            // If `each` unwinds, entries are lost and none is dropped twice.
            *self.group_mut(at) = Group::EMPTY;
            let mut filled = group.filled_lanes();
            while filled != 0 {
                let lane = first(filled);
                filled &= filled - 1;
                let Some(hash) = hashes.next() else { unreachable!("a hash for each entry") };
                // SAFETY: the lane had a tag, so the cell is initialised, and no lane has it now.
                each(*hash, unsafe { self.cell(group.cells[lane]).read() });
            }
        }
        self.forget_all();
    }
}

/// Groups of the largest block.
const GROUPS_MAX: usize = 16;

/// An empty block that is being filled.
pub(crate) struct Filling<T> {
    block: Block<T>,
    /// Lanes in use of each group: tags are written one by one, and a comparison of all of a group, soon after, would wait
    /// for that.
    used: [u8; GROUPS_MAX],
}

impl<T> Filling<T> {
    pub(crate) fn new(block: Block<T>) -> Self {
        Filling { block, used: [0; GROUPS_MAX] }
    }

    pub(crate) fn cells(&self) -> usize {
        self.block.cells()
    }

    /// [`Block::insert`].
    #[inline]
    pub(crate) fn push(&mut self, hash: u64, entry: T) -> Result<(), T> {
        let home = self.block.home(hash);
        let lane = usize::from(self.used[home % GROUPS_MAX]);
        if lane >= LANES || self.block.group(home).tags[lane] != FREE {
            return self.block.insert(hash, entry);
        }
        let Some(number) = self.block.vacant() else { return Err(entry) };
        // SAFETY: a free cell of this block, which is now in use.
        unsafe { self.block.cell(number).write(entry) };
        let group = self.block.group_mut(home);
        group.cells[lane] = number;
        group.tags[lane] = tag_of(hash);
        self.used[home % GROUPS_MAX] = lane as u8 + 1;
        Ok(())
    }

    /// Takes all entries of a block that has as many groups or more. None is hashed: bits of a hash that select a group of
    /// few are some of those that select one of many, and an entry that passed groups there passes them here.
    ///
    /// # Panics
    /// Without enough cells, or with more groups: errors of this crate.
    pub(crate) fn absorb(&mut self, from: &mut Block<T>) {
        assert!(self.block.groups() <= from.groups());
        assert!(self.block.cells() - self.block.len() >= from.len());
        for at in 0..from.groups() {
            let home = at % self.block.groups();
            let group = *from.group(at);
            let to = self.block.group_mut(home);
            to.set_passed(to.passed().saturating_add(group.passed()));
            *from.group_mut(at) = Group::EMPTY;
            let mut filled = group.filled_lanes();
            while filled != 0 {
                let lane = first(filled);
                filled &= filled - 1;
                self.adopt(home, group.tags[lane], from.cell(group.cells[lane]));
            }
        }
        from.forget_all();
    }

    /// Copies an entry from a cell of another block, no lane of which has it any more.
    fn adopt(&mut self, home: usize, tag: u8, from: *const T) {
        let block = &mut self.block;
        let used = usize::from(self.used[home % GROUPS_MAX]);
        let spot = if used < LANES && block.group(home).tags[used] == FREE {
            self.used[home % GROUPS_MAX] += 1;
            Spot::new(home, used)
        } else {
            block.pass(home)
        };
        let Some(number) = block.vacant() else { unreachable!("cells were counted") };
        // SAFETY: callers give an initialised cell of another block that no lane has; the other one is free. So each entry
        // has one owner.
        unsafe { block.cell(number).copy_from_nonoverlapping(from, 1) };
        let group = block.group_mut(spot.group());
        group.cells[spot.lane()] = number;
        group.tags[spot.lane()] = tag;
    }

    /// The block, with a mark if entries of it stand apart.
    pub(crate) fn done(mut self, has_apart: bool) -> Block<T> {
        self.block.has_apart |= has_apart;
        self.block
    }
}
