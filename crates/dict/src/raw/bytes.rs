//! Byte strings in sixteen bytes: short ones whole, longer ones with their first bytes beside the pointer to the others.

use core::alloc::Layout;
use core::num::NonZeroU8;
use core::ptr::NonNull;
use core::slice;
use std::alloc;

/// Bytes of the longest string without a pointer.
pub(crate) const INLINE: usize = 15;

/// First bytes that are kept beside a pointer.
const FRONT: usize = 7;

/// The longest string whose front is kept apart.
pub(crate) const SPLIT: usize = FRONT + 55;

/// An owned byte string.
///
/// What `tail` is follows from `kind`:
///
/// * one more than a length up to [`INLINE`]: the bytes after the front, and zeros;
/// * one more than a length up to [`SPLIT`]: a pointer to an allocation of the bytes after the front;
/// * [`LONG`]: a pointer that came from a `Box<Box<[u8]>>` of all bytes; the front is zeros.
#[repr(C)]
pub(crate) struct Bytes {
    kind: NonZeroU8,
    front: [u8; FRONT],
    tail: Tail,
}

#[derive(Clone, Copy)]
#[repr(C)]
union Tail {
    bytes: [u8; 8],
    pointer: NonNull<u8>,
    /// The same where it may be bytes: not to be followed then.
    maybe_pointer: *const u8,
}

/// The kind of strings longer than [`SPLIT`].
const LONG: NonZeroU8 = NonZeroU8::MAX;

const _: () = assert!(size_of::<Bytes>() == 16 && size_of::<Option<Bytes>>() == 16);
const _: () = assert!(core::mem::offset_of!(Bytes, front) == 1 && INLINE == FRONT + 8);

// SAFETY: it owns its bytes as a `Box<[u8]>` does; it shares nothing.
unsafe impl Send for Bytes {}
// SAFETY: as above; through `&Bytes` bytes can only be read.
unsafe impl Sync for Bytes {}

/// The bytes, followed by zeros; the first `N` of them.
#[inline]
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    if let (Some(last), true) = (bytes.last_chunk::<8>(), bytes.len() <= N) {
        // Words at once; the last one may overlap the one before.
        for (to, from) in out.chunks_exact_mut(8).zip(bytes.chunks_exact(8)) {
            to.copy_from_slice(from);
        }
        out[bytes.len() - 8..bytes.len()].copy_from_slice(last);
    } else {
        for (to, from) in out.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
    out
}

impl Bytes {
    /// A copy of these bytes; allocates only beyond [`INLINE`].
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE {
            return Self::new_outside(bytes);
        }
        let [f0, f1, f2, f3, f4, f5, f6, tail @ ..] = padded::<INLINE>(bytes);
        let kind = NonZeroU8::MIN.saturating_add(bytes.len() as u8);
        Bytes { kind, front: [f0, f1, f2, f3, f4, f5, f6], tail: Tail { bytes: tail } }
    }

    fn new_outside(bytes: &[u8]) -> Self {
        match bytes.split_first_chunk::<FRONT>() {
            Some((front, rest)) if bytes.len() > INLINE && bytes.len() <= SPLIT => {
                let kind = NonZeroU8::MIN.saturating_add(bytes.len() as u8);
                let pointer = NonNull::from(Box::leak(Box::<[u8]>::from(rest))).cast();
                Bytes { kind, front: *front, tail: Tail { pointer } }
            }
            _ => {
                let whole: Box<Box<[u8]>> = Box::new(bytes.into());
                let pointer = NonNull::from(Box::leak(whole)).cast();
                Bytes { kind: LONG, front: [0; FRONT], tail: Tail { pointer } }
            }
        }
    }

    /// How many bytes, unless it is a long one, of which nobody asks this.
    #[inline(always)]
    fn short_len(&self) -> usize {
        usize::from(self.kind.get() - 1)
    }

    /// The bytes of an inline string.
    ///
    /// # Safety
    /// It is one.
    #[inline(always)]
    unsafe fn inline(&self) -> &[u8] {
        let start = core::ptr::from_ref(self).cast::<u8>();
        // SAFETY: front and tail lie side by side from the second byte on and are initialised, INLINE bytes together, of
        // which an inline string has no more.
        unsafe { slice::from_raw_parts(start.add(1), self.short_len()) }
    }

    /// The bytes after the front of a split string.
    ///
    /// # Safety
    /// It is one.
    #[inline(always)]
    unsafe fn rest(&self) -> &[u8] {
        // SAFETY: a split string's tail points to an allocation of so many initialised bytes, which lives as long as
        // `self` and changes never.
        unsafe { slice::from_raw_parts(self.tail.pointer.as_ptr(), self.short_len() - FRONT) }
    }

    /// The bytes of a long string.
    ///
    /// # Safety
    /// It is one.
    unsafe fn whole(&self) -> &[u8] {
        // SAFETY: a long string's tail came from a box of this type, which lives as long as `self`.
        unsafe { self.tail.pointer.cast::<Box<[u8]>>().as_ref() }
    }

    /// The bytes, in two parts.
    #[inline]
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        // SAFETY: the kind says which of the three it is.
        unsafe {
            if self.short_len() <= INLINE {
                (self.inline(), &[])
            } else if self.kind != LONG {
                (&self.front, self.rest())
            } else {
                (self.whole(), &[])
            }
        }
    }

    /// Whether it is these bytes. Length and front come first: they need no pointer.
    #[inline(always)]
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        let len = bytes.len();
        let Some((first, _)) = bytes.split_first_chunk::<8>() else {
            // SAFETY: the kind says that it is an inline string.
            return self.short_len() == len && unsafe { self.inline() } == bytes;
        };
        if len > SPLIT {
            return self.is_long(bytes);
        }
        // Kind and front as one number, the kind lowest.
        let [f0, f1, f2, f3, f4, f5, f6] = self.front;
        let head = u64::from_le_bytes([self.kind.get(), f0, f1, f2, f3, f4, f5, f6]);
        if head != u64::from_le_bytes(*first) << 8 | (len as u64 + 1) {
            return false;
        }
        let here = (&raw const self.tail).cast::<u8>();
        // SAFETY: the kind is that of a string so long, of which a pointer is read only where the tail is one. Behind the
        // front there are `len - FRONT` initialised bytes, here or there.
        let rest = unsafe {
            let there = self.tail.maybe_pointer;
            // Chosen, not branched to: lengths about the limit are hard to foresee.
            let rest = core::hint::select_unpredictable(len <= INLINE, here, there);
            slice::from_raw_parts(rest, len - FRONT)
        };
        *rest == bytes[FRONT..]
    }

    #[cold]
    #[inline(never)]
    fn is_long(&self, bytes: &[u8]) -> bool {
        // SAFETY: the kind says that it is a long string.
        self.kind == LONG && unsafe { self.whole() } == bytes
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self.parts() {
            (front, []) if self.kind == LONG => front.len() + size_of::<Box<[u8]>>(),
            (_, rest) => rest.len(),
        }
    }
}

impl PartialEq for Bytes {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if self.kind != other.kind {
            return false;
        }
        // SAFETY: the kind says which of the three both are. The bytes of an inline one are all initialised.
        unsafe {
            if self.short_len() <= INLINE {
                self.front == other.front && self.tail.bytes == other.tail.bytes
            } else if self.kind != LONG {
                self.front == other.front && self.rest() == other.rest()
            } else {
                self.whole() == other.whole()
            }
        }
    }
}

impl Eq for Bytes {}

impl Clone for Bytes {
    fn clone(&self) -> Self {
        if self.short_len() <= INLINE {
            return Bytes { kind: self.kind, front: self.front, tail: self.tail };
        }
        let (front, rest) = self.parts();
        Bytes::new_outside(&[front, rest].concat())
    }
}

impl Drop for Bytes {
    #[inline]
    fn drop(&mut self) {
        if self.short_len() <= INLINE {
            return;
        }
        // SAFETY: the kind says which of the two it is, so the tail is a pointer: that of a box of so many bytes, which
        // are freed here alone, or that of a box of this type, dropped here alone.
        unsafe {
            let pointer = self.tail.pointer;
            if self.kind == LONG {
                drop(Box::from_raw(pointer.cast::<Box<[u8]>>().as_ptr()));
            } else if let Ok(layout) = Layout::array::<u8>(self.short_len() - FRONT) {
                alloc::dealloc(pointer.as_ptr(), layout);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_copies_are_apart() {
        let text: Vec<u8> = (0..=255).collect();
        for len in (0..70).chain([200, 256]) {
            let bytes = Bytes::new(&text[..len]);
            let copy = bytes.clone();
            assert!(copy == bytes);
            drop(bytes);
            let (front, rest) = copy.parts();
            assert_eq!([front, rest].concat(), &text[..len]);
            assert!(
                copy.is(&text[..len]) && copy != Bytes::new(&text[..len.max(1) - 1]) || len == 0
            );
            assert_eq!(copy.heap_bytes() == 0, len <= INLINE);
            assert_eq!(rest.is_empty(), len <= INLINE || len > SPLIT);
        }
    }
}
