//! Byte strings in sixteen bytes: short ones whole, longer ones with their first bytes beside the pointer to the others.

use core::alloc::Layout;
use core::hash::Hasher;
use core::mem::MaybeUninit;
use core::num::NonZeroU8;
use core::ptr::NonNull;
use core::slice;
use std::alloc;

use super::simd;

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
}

/// The kind of strings longer than [`SPLIT`].
const LONG: NonZeroU8 = NonZeroU8::MAX;

const _: () = assert!(size_of::<Bytes>() == 16 && size_of::<Option<Bytes>>() == 16);
const _: () = assert!(core::mem::offset_of!(Bytes, front) == 1 && INLINE == FRONT + 8);

// SAFETY: it owns its bytes as a `Box<[u8]>` does; it shares nothing.
unsafe impl Send for Bytes {}
// SAFETY: as above; through `&Bytes` bytes can only be read.
unsafe impl Sync for Bytes {}

/// Length and front of a string of these bytes as one number, the length's kind lowest: for all but long ones.
#[inline(always)]
fn head(len: usize, first: u64) -> u64 {
    first << 8 | (len as u64 + 1)
}

/// The first bytes as a number, the first lowest.
#[inline(always)]
fn word(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Head and tail of a string without a pointer.
#[inline(always)]
fn inline_words(bytes: &[u8]) -> (u64, u64) {
    let len = bytes.len();
    debug_assert!(len <= INLINE);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Of the last eight bytes those behind the front.
        return (head(len, word(first)), word(last) >> (8 * (INLINE - len)));
    }
    // Pieces that may overlap, each where it belongs.
    let small = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
        half(first) | half(last) << (8 * (len - 4))
    } else if let [first, .., last] = bytes {
        let middle = u64::from(bytes[1]) << 8;
        u64::from(*first) | middle | u64::from(*last) << (8 * (len - 1))
    } else {
        bytes.first().map_or(0, |only| u64::from(*only))
    };
    (head(len, small), 0)
}

/// What a string that is searched for hashes as, the same as [`Bytes`] of it do.
#[inline(always)]
pub(crate) fn hash<H: Hasher>(bytes: &[u8], state: &mut H) {
    match bytes.split_first_chunk::<8>() {
        Some((first, _)) if bytes.len() > INLINE && bytes.len() <= SPLIT => {
            state.write_u64(head(bytes.len(), word(first)));
            state.write(&bytes[FRONT..]);
        }
        _ if bytes.len() <= INLINE => {
            let (head, tail) = inline_words(bytes);
            state.write_u64(head);
            state.write_u64(tail);
        }
        _ => hash_long(bytes, state),
    }
}

#[cold]
fn hash_long<H: Hasher>(bytes: &[u8], state: &mut H) {
    state.write_u64(LONG.get().into());
    state.write(bytes);
}

/// Copies 8 to 64 bytes, in words that overlap: a call that first looks how many there are takes longer.
#[inline(always)]
fn copy_short(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    let (to_len, len) = (to.len(), from.len());
    assert!(to_len == len && (8..=64).contains(&len));
    let (to, from) = (to.as_mut_ptr().cast::<u8>(), from.as_ptr());
    // SAFETY: each piece is within the first `len` bytes of both, which do not overlap as one is borrowed to be changed.
    unsafe {
        if len >= 16 {
            let last = len - 16;
            for at in [0, last.min(16), last.min(32), last] {
                let piece = from.add(at).cast::<[u8; 16]>().read();
                to.add(at).cast::<[u8; 16]>().write(piece);
            }
        } else {
            for at in [0, len - 8] {
                let piece = from.add(at).cast::<[u8; 8]>().read();
                to.add(at).cast::<[u8; 8]>().write(piece);
            }
        }
    }
}

/// Whether two parts behind fronts, of 9 to 55 bytes, are the same.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), a.last_chunk(), b.first_chunk(), b.last_chunk()) {
        _ if a.len() >= 16 && a.len() <= 64 => simd::same_short(a, b),
        (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) if a.len() < 16 => {
            (word(a_first) ^ word(b_first)) | (word(a_last) ^ word(b_last)) == 0
        }
        _ => a == b,
    }
}

impl Bytes {
    /// A copy of these bytes; allocates only beyond [`INLINE`].
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE {
            return Self::new_outside(bytes);
        }
        let (head, tail) = inline_words(bytes);
        Self::with_head(head, Tail { bytes: tail.to_le_bytes() })
    }

    /// Of a head that is not 0 in its lowest byte, and a tail of the kind that this says.
    #[inline(always)]
    fn with_head(head: u64, tail: Tail) -> Self {
        let [kind, front @ ..] = head.to_le_bytes();
        Bytes { kind: NonZeroU8::new(kind).unwrap_or(NonZeroU8::MIN), front, tail }
    }

    #[inline]
    fn new_outside(bytes: &[u8]) -> Self {
        match bytes.split_first_chunk::<8>() {
            Some((first, _)) if bytes.len() > INLINE && bytes.len() <= SPLIT => {
                let rest = &bytes[FRONT..];
                let mut place = Box::<[u8]>::new_uninit_slice(rest.len());
                copy_short(&mut place, rest);
                let pointer = NonNull::from(Box::leak(place)).cast();
                Self::with_head(head(bytes.len(), word(first)), Tail { pointer })
            }
            _ => Self::new_long(bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_long(bytes: &[u8]) -> Self {
        let whole: Box<Box<[u8]>> = Box::new(bytes.into());
        let pointer = NonNull::from(Box::leak(whole)).cast();
        Bytes { kind: LONG, front: [0; FRONT], tail: Tail { pointer } }
    }

    /// Kind and front as one number, the kind lowest.
    #[inline(always)]
    fn head(&self) -> u64 {
        // SAFETY: the first eight bytes are `kind` and `front`, which are initialised whatever the kind; at any alignment.
        u64::from_le_bytes(unsafe { core::ptr::from_ref(self).cast::<[u8; 8]>().read() })
    }

    /// The tail of an inline string as a number.
    ///
    /// # Safety
    /// It is one.
    #[inline(always)]
    unsafe fn tail(&self) -> u64 {
        // SAFETY: then the tail is bytes, all initialised.
        u64::from_le_bytes(unsafe { self.tail.bytes })
    }

    /// What [`hash`](fn@hash) does for its bytes.
    #[inline]
    pub(crate) fn hash<H: Hasher>(&self, state: &mut H) {
        if self.kind == LONG {
            // SAFETY: the kind says so.
            return hash_long(unsafe { self.whole() }, state);
        }
        state.write_u64(self.head());
        if self.short_len() <= INLINE {
            // SAFETY: the kind says so.
            state.write_u64(unsafe { self.tail() });
        } else {
            // SAFETY: the kind says so.
            state.write(unsafe { self.rest() });
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
        if len <= INLINE {
            let (head, tail) = inline_words(bytes);
            // SAFETY: the head says that it is an inline string.
            return self.head() == head && unsafe { self.tail() } == tail;
        }
        let Some(first) = bytes.first_chunk() else { return false };
        if len > SPLIT {
            return self.is_long(bytes);
        }
        // SAFETY: the head says that it is a split string.
        self.head() == head(len, word(first)) && same(unsafe { self.rest() }, &bytes[FRONT..])
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
        if self.head() != other.head() {
            return false;
        }
        // SAFETY: the kind says which of the three both are.
        unsafe {
            if self.short_len() <= INLINE {
                self.tail() == other.tail()
            } else if self.kind != LONG {
                same(self.rest(), other.rest())
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
