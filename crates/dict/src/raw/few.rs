//! One small array, searched by a tag of 8 bits for each entry.

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::alloc;

use super::simd;

/// Maximum number of entries: one less than a vector instruction compares, so that 16-byte entries
/// and the tags fill 256 bytes.
pub(crate) const FEW_MAX: usize = 15;

/// Added to the upper byte of a digest to form a tag, as the tag 0 means no entry.
const TAG_OFFSET: u8 = 1;

/// Capacities of the array: chosen to waste little of the allocator's size classes for entries of
/// 16 or 24 bytes.
const CAPACITIES: [u8; 4] = [4, 6, 10, FEW_MAX as u8];

#[repr(C)]
struct Head<T> {
    /// Not aligned: allocators waste memory on small allocations with a larger alignment.
    tags: [u8; 16],
    /// The array of entries, `capacity` long, begins here.
    entries: [T; 0],
}

/// Up to [`FEW_MAX`] entries without order. Exactly the first `len` cells are initialised, and
/// exactly their tags are not 0.
pub(crate) struct Few<T> {
    head: NonNull<Head<T>>,
    len: u8,
    capacity: u8,
    owned: PhantomData<T>,
}

// SAFETY: it owns its entries as a `Vec` does; it shares nothing.
unsafe impl<T: Send> Send for Few<T> {}
// SAFETY: as for `Send`; `&Few` gives access only to `&T`.
unsafe impl<T: Sync> Sync for Few<T> {}

impl<T> Few<T> {
    /// An empty array with capacity for four entries.
    pub(crate) fn new() -> Self {
        let layout = Self::layout(CAPACITIES[0]);
        // SAFETY: the layout is not of size 0, as it has tags.
        let Some(head) = NonNull::new(unsafe { alloc::alloc(layout) }.cast::<Head<T>>()) else {
            alloc::handle_alloc_error(layout)
        };
        // SAFETY: within the new allocation, without a reference to uninitialised memory.
        unsafe { (&raw mut (*head.as_ptr()).tags).write([0; 16]) };
        Few { head, len: 0, capacity: CAPACITIES[0], owned: PhantomData }
    }

    fn layout(capacity: u8) -> Layout {
        let capacity = Layout::array::<T>(usize::from(capacity));
        let whole = capacity.and_then(|capacity| Layout::new::<Head<T>>().extend(capacity));
        match whole {
            Ok((layout, _)) => layout.pad_to_align(),
            Err(_) => panic!("entries larger than the address space"),
        }
    }

    #[inline(always)]
    fn entry(&self, at: usize) -> NonNull<T> {
        debug_assert!(at < usize::from(self.capacity));
        // SAFETY: `at` is less than `capacity` (callers check it against `len`), so it is within the
        // allocation; the entries begin after the head, whose zero-length array gives them their
        // alignment. No reference is created.
        unsafe {
            let entries = (&raw mut (*self.head.as_ptr()).entries).cast::<T>();
            NonNull::new_unchecked(entries.add(at))
        }
    }

    #[inline(always)]
    fn tags(&self) -> &[u8; 16] {
        // SAFETY: written whole in `new`; changed through `&mut self` only.
        unsafe { &(*self.head.as_ptr()).tags }
    }

    #[inline(always)]
    fn set_tag(&mut self, at: usize, tag: u8) {
        // SAFETY: as in `tags`, and `&mut self` is exclusive.
        simd::set_byte(unsafe { &mut (*self.head.as_ptr()).tags }, at, tag);
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Entries that fit without another allocation.
    pub(crate) fn capacity(&self) -> usize {
        usize::from(self.capacity)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        Self::layout(self.capacity).size()
    }

    /// The position of the entry with the tag of this digest that `eq` accepts.
    #[inline(always)]
    pub(crate) fn find(&self, digest: u64, mut eq: impl FnMut(&T) -> bool) -> Option<(usize, &T)> {
        // Tags beyond `len` are 0, which no entry has.
        let mut found = simd::bytes_of_digest::<TAG_OFFSET>(self.tags(), digest);
        while found != 0 {
            let at = found.trailing_zeros() as usize;
            // SAFETY: a tag other than 0 is at a position below `len`, and those are initialised.
            let entry = unsafe { self.entry(at).as_ref() };
            if eq(entry) {
                return Some((at, entry));
            }
            found &= found - 1;
        }
        None
    }

    /// The mutable entry at a position.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        // SAFETY: positions below `len` are initialised; `&mut self` is exclusive.
        (at < self.len()).then(|| unsafe { self.entry(at).as_mut() })
    }

    /// Adds an entry; returns it if there are [`FEW_MAX`] already.
    #[inline]
    pub(crate) fn push(&mut self, digest: u64, entry: T) -> Result<(), T> {
        if self.len == self.capacity && !self.grow() {
            return Err(entry);
        }
        let at = self.len();
        // SAFETY: `at` is less than `capacity`; the cell is not initialised, so no value is
        // overwritten.
        unsafe { self.entry(at).write(entry) };
        self.set_tag(at, simd::byte_of_digest(digest).saturating_add(TAG_OFFSET));
        self.len += 1;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> bool {
        let Some(capacity) = CAPACITIES.into_iter().find(|capacity| *capacity > self.capacity)
        else {
            return false;
        };
        let (layout, larger) = (Self::layout(self.capacity), Self::layout(capacity));
        // SAFETY: allocated with `layout`, whose size is not 0; `larger` has the same alignment. Tags and entries
        // move with the bytes.
        let head = unsafe { alloc::realloc(self.head.as_ptr().cast(), layout, larger.size()) };
        let Some(head) = NonNull::new(head.cast::<Head<T>>()) else {
            alloc::handle_alloc_error(larger)
        };
        (self.head, self.capacity) = (head, capacity);
        true
    }

    /// Removes an entry; the last one moves to its position.
    #[inline]
    pub(crate) fn swap_remove(&mut self, at: usize) -> Option<T> {
        if at >= self.len() {
            return None;
        }
        let last = self.len() - 1;
        self.set_tag(at, self.tags()[last]);
        self.set_tag(last, 0);
        self.len -= 1;
        // SAFETY: both positions were below `len`, so initialised. The entry is read once; if
        // another was last, it moves to the freed position, and its own is beyond `len` now.
        unsafe {
            let entry = self.entry(at).read();
            if at != last {
                self.entry(last).copy_to_nonoverlapping(self.entry(at), 1);
            }
            Some(entry)
        }
    }

    /// The entries.
    pub(crate) fn iter(&self) -> core::slice::Iter<'_, T> {
        // SAFETY: the first `len` are initialised.
        unsafe { core::slice::from_raw_parts(self.entry(0).as_ptr(), self.len()) }.iter()
    }

    /// The mutable entries.
    pub(crate) fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        // SAFETY: the first `len` are initialised; `&mut self` is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.entry(0).as_ptr(), self.len()) }.iter_mut()
    }
}

impl<T> Drop for Few<T> {
    fn drop(&mut self) {
        while self.len > 0 {
            drop(self.swap_remove(self.len() - 1));
        }
        // SAFETY: allocated with this layout, and freed here alone.
        unsafe { alloc::dealloc(self.head.as_ptr().cast(), Self::layout(self.capacity)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(i: u32) -> u64 {
        u64::from(i) << 56
    }

    #[test]
    fn tags_stay_with_their_entries() {
        let mut few: Few<Box<u32>> = Few::new();
        for i in 0..FEW_MAX as u32 {
            assert!(few.push(tag(i % 4), Box::new(i)).is_ok());
        }
        assert_eq!(few.push(tag(0), Box::new(99)).map_err(|v| *v), Err(99));
        assert_eq!(few.find(tag(1), |v| **v == 9).map(|(at, _)| at), Some(9));
        assert_eq!(few.find(tag(2), |v| **v == 9), None);
        assert_eq!(few.swap_remove(1).map(|v| *v), Some(1));
        assert_eq!(few.find(tag(2), |v| **v == 14).map(|(at, _)| at), Some(1));
        if let Some(value) = few.get_mut(1) {
            **value += 1;
        }
        few.iter_mut().for_each(|v| **v += 1);
        assert_eq!(few.iter().map(|v| **v).sum::<u32>(), (0..15).sum::<u32>() - 1 + 1 + 14);
        assert_eq!(few.swap_remove(14), None);
        assert!(few.get_mut(14).is_none() && few.len() == 14 && few.capacity() == 15);
    }

    #[test]
    fn entries_of_no_size_or_much_alignment_fit() {
        #[derive(PartialEq, Debug)]
        #[repr(align(64))]
        struct Wide(u8);
        let (mut none, mut wide) = (Few::<()>::new(), Few::<Wide>::new());
        for i in 0..12 {
            assert!(none.push(tag(1), ()).is_ok() && wide.push(tag(1), Wide(i)).is_ok());
        }
        assert_eq!((none.len(), wide.get_mut(11)), (12, Some(&mut Wide(11))));
    }
}
