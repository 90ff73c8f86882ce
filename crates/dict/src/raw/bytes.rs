//! Byte strings in sixteen bytes: short ones inline, longer ones with their first bytes next to a
//! pointer to the rest.

use core::alloc::Layout;
use core::hash::{Hash, Hasher};
use core::num::NonZeroU8;
use core::ptr::NonNull;
use core::slice;
use std::alloc;

use super::pieces::{PIECE, Pieces, starts};

/// Bytes of the longest string without a pointer.
pub(crate) const INLINE: usize = 15;

/// First bytes that are stored next to a pointer.
const FRONT: usize = 7;

/// The longest string whose first bytes are stored separately.
pub(crate) const SPLIT: usize = FRONT + 55;

/// An owned byte string.
///
/// `kind` determines the meaning of `tail`:
///
/// * one more than a length up to [`INLINE`]: the bytes after the front, and zeros;
/// * one more than a length up to [`SPLIT`]: a pointer to an allocation of the bytes after the
///   front, or of the last [`PIECE`] bytes if those are more (allocators round up to that size
///   anyway), so the allocation is at least one piece long;
/// * [`LONG`]: a pointer obtained from a `Box<Box<[u8]>>` of all bytes; the front is zeros.
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
// SAFETY: as for `Send`; through `&Bytes` bytes can only be read.
unsafe impl Sync for Bytes {}

/// Kind and front of a string that is not long as one number, the kind in the lowest byte.
#[inline(always)]
fn head(len: usize, first: u64) -> u64 {
    first << 8 | (len as u64 + 1)
}

/// The first bytes as a little-endian number.
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
        // Those of the last eight bytes that follow the front.
        return (head(len, word(first)), word(last) >> (8 * (INLINE - len)));
    }
    // Overlapping pieces, each shifted to its position.
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

/// A string that is searched for, in the representation that [`Bytes`] of its length have. Work
/// common to hashing and comparing is done once.
pub(crate) enum Query<'b> {
    Inline(Inline),
    Split(Split<'b>),
    Long(Long<'b>),
}

/// A string that [`Bytes`] stores without a pointer.
#[derive(Clone, Copy)]
pub(crate) struct Inline {
    head: u64,
    tail: u64,
}

/// A string that [`Bytes`] stores as a front and a pointer to the other bytes.
#[derive(Clone, Copy)]
pub(crate) struct Split<'b> {
    head: u64,
    rest: SplitTail<'b>,
}

/// A long string, which is contiguous.
#[derive(Clone, Copy)]
pub(crate) struct Long<'b>(&'b [u8]);

impl<'b> Query<'b> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        let len = bytes.len();
        match bytes.first_chunk() {
            _ if len <= INLINE => {
                let (head, tail) = inline_words(bytes);
                Query::Inline(Inline { head, tail })
            }
            Some(first) if len <= SPLIT => Query::Split(Split {
                head: head(len, word(first)),
                rest: SplitTail::from_bytes(bytes),
            }),
            _ => Query::Long(Long(bytes)),
        }
    }
}

/// Hashes as [`Bytes`] of the same string do.
impl Hash for Inline {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.head);
        state.write_u64(self.tail);
    }
}

impl Inline {
    /// Whether `key` has these bytes.
    #[inline(always)]
    pub(crate) fn is(self, key: &Bytes) -> bool {
        // SAFETY: equal heads mean that `key` is an inline string.
        key.head() == self.head && unsafe { key.tail() } == self.tail
    }
}

/// Hashes as [`Bytes`] of the same string do.
impl Hash for Split<'_> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.head);
        state.write(self.rest.0);
    }
}

impl Split<'_> {
    /// Whether `key` has these bytes. Length and front are compared first, as they need no pointer.
    #[inline(always)]
    pub(crate) fn is(self, key: &Bytes) -> bool {
        // SAFETY: equal heads mean that `key` is a split string of the same length as `self`.
        key.head() == self.head && unsafe { key.rest(self.rest.0.len()) }.is(self.rest)
    }
}

/// Hashes as [`Bytes`] of the same string do.
impl Hash for Long<'_> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(LONG.get().into());
        state.write(self.0);
    }
}

impl Long<'_> {
    /// Whether `key` has these bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn is(self, key: &Bytes) -> bool {
        // SAFETY: the kind is that of long strings.
        key.kind == LONG && unsafe { key.long_bytes() } == self.0
    }
}

/// The tail of a split string, which has [`INLINE`] + 1 to [`SPLIT`] bytes in total. The tail has
/// from [`PIECE`] to 4 times as many bytes.
#[derive(Clone, Copy)]
struct SplitTail<'b>(&'b [u8]);

impl<'b> SplitTail<'b> {
    /// The tail of a string of such a length.
    #[inline(always)]
    fn from_bytes(bytes: &'b [u8]) -> Self {
        let (len, start) = (bytes.len(), FRONT.min(bytes.len().wrapping_sub(PIECE)));
        assert!(len > INLINE && len <= SPLIT);
        // SAFETY: `len` is PIECE or more, so `start` is at most `len` less a piece.
        SplitTail(unsafe { slice::from_raw_parts(bytes.as_ptr().add(start), len - start) })
    }

    /// Length of the tail of a string with `len` bytes.
    #[inline(always)]
    fn len_for(len: usize) -> usize {
        (len - FRONT).max(PIECE)
    }

    #[inline(always)]
    fn pieces(self) -> Pieces<'b> {
        match Pieces::from_bytes(self.0) {
            Some(pieces) => pieces,
            None => unreachable!("as many bytes as pieces cover"),
        }
    }

    /// Whether both have the same bytes; they must be equally long.
    #[inline(always)]
    fn is(self, other: SplitTail<'_>) -> bool {
        debug_assert!(self.0.len() == other.0.len());
        self.pieces().equals(other.pieces())
    }

    /// Copies the bytes as overlapping pieces, which is faster than a call that branches on the
    /// length.
    #[inline(always)]
    fn copy(self) -> Box<[u8]> {
        let mut copy = Box::<[u8]>::new_uninit_slice(self.0.len());
        let to = copy.as_mut_ptr().cast::<u8>();
        let Pieces(pieces) = self.pieces();
        for (start, piece) in starts(self.0.len()).into_iter().zip(pieces) {
            // SAFETY: each piece of `self` is written as far from the beginning as it was read, so within the new
            // allocation, which is as long.
            unsafe { to.add(start).cast::<[u8; PIECE]>().write_unaligned(*piece) };
        }
        // SAFETY: the pieces cover it all.
        unsafe { copy.assume_init() }
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

    /// Builds a string from a head whose lowest byte is not 0, and a tail of the kind that this
    /// byte states.
    #[inline(always)]
    fn with_head(head: u64, tail: Tail) -> Self {
        let [kind, front @ ..] = head.to_le_bytes();
        Bytes { kind: NonZeroU8::new(kind).unwrap_or(NonZeroU8::MIN), front, tail }
    }

    #[inline]
    fn new_outside(bytes: &[u8]) -> Self {
        match bytes.split_first_chunk::<8>() {
            Some((first, _)) if bytes.len() > INLINE && bytes.len() <= SPLIT => {
                let pointer = NonNull::from(Box::leak(SplitTail::from_bytes(bytes).copy())).cast();
                Self::with_head(head(bytes.len(), word(first)), Tail { pointer })
            }
            _ => Self::new_long(bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_long(bytes: &[u8]) -> Self {
        let long_bytes: Box<Box<[u8]>> = Box::new(bytes.into());
        let pointer = NonNull::from(Box::leak(long_bytes)).cast();
        Bytes { kind: LONG, front: [0; FRONT], tail: Tail { pointer } }
    }

    /// Kind and front as one number, the kind in the lowest byte.
    #[inline(always)]
    fn head(&self) -> u64 {
        // SAFETY: the first eight bytes are `kind` and `front`, which are initialised whatever the kind; at any alignment.
        u64::from_le_bytes(unsafe { core::ptr::from_ref(self).cast::<[u8; 8]>().read() })
    }

    /// The tail of an inline string as a number.
    ///
    /// # Safety
    /// The string must be inline.
    #[inline(always)]
    unsafe fn tail(&self) -> u64 {
        // SAFETY: the tail of an inline string is bytes, all initialised.
        u64::from_le_bytes(unsafe { self.tail.bytes })
    }

    /// The string as a [`Query`].
    #[inline(always)]
    pub(crate) fn as_query(&self) -> Query<'_> {
        // SAFETY: the kind says which of the three it is.
        unsafe {
            if self.short_len() <= INLINE {
                Query::Inline(Inline { head: self.head(), tail: self.tail() })
            } else if self.kind != LONG {
                let rest = self.rest(SplitTail::len_for(self.short_len()));
                Query::Split(Split { head: self.head(), rest })
            } else {
                Query::Long(Long(self.long_bytes()))
            }
        }
    }

    /// The length of a string that is not long; never called for long ones.
    #[inline(always)]
    fn short_len(&self) -> usize {
        usize::from(self.kind.get() - 1)
    }

    /// The bytes of an inline string.
    ///
    /// # Safety
    /// The string must be inline.
    #[inline(always)]
    unsafe fn inline(&self) -> &[u8] {
        let start = core::ptr::from_ref(self).cast::<u8>();
        // SAFETY: front and tail are adjacent from the second byte on and initialised, INLINE bytes
        // together, and an inline string is at most as long.
        unsafe { slice::from_raw_parts(start.add(1), self.short_len()) }
    }

    /// The tail of a split string.
    ///
    /// # Safety
    ///
    /// The string must be split, with this many bytes in its tail.
    #[inline(always)]
    unsafe fn rest(&self, len: usize) -> SplitTail<'_> {
        // SAFETY: a split string's tail points to an allocation of this many initialised bytes,
        // which lives as long as `self` and never changes.
        SplitTail(unsafe { slice::from_raw_parts(self.tail.pointer.as_ptr(), len) })
    }

    /// The bytes of a long string.
    ///
    /// # Safety
    /// The string must be long.
    unsafe fn long_bytes(&self) -> &[u8] {
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
                let len = self.short_len();
                let SplitTail(rest) = self.rest(SplitTail::len_for(len));
                // If a whole piece is longer than the tail, it starts within the front.
                (&self.front, &rest[rest.len() - (len - FRONT)..])
            } else {
                (self.long_bytes(), &[])
            }
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self.parts() {
            (front, []) if self.kind == LONG => front.len() + size_of::<Box<[u8]>>(),
            (_, []) => 0,
            _ => SplitTail::len_for(self.short_len()),
        }
    }
}

impl PartialEq for Bytes {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match self.as_query() {
            Query::Inline(query) => query.is(other),
            Query::Split(query) => query.is(other),
            Query::Long(query) => query.is(other),
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
        // SAFETY: the kind determines which of the two it is, so the tail is a pointer: that of a
        // box of this many bytes, which are freed only here, or that of a box of this type, dropped
        // only here.
        unsafe {
            let pointer = self.tail.pointer;
            if self.kind == LONG {
                drop(Box::from_raw(pointer.cast::<Box<[u8]>>().as_ptr()));
            } else if let Ok(layout) = Layout::array::<u8>(SplitTail::len_for(self.short_len())) {
                alloc::dealloc(pointer.as_ptr(), layout);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_copies_are_independent() {
        let text: Vec<u8> = (0..=255).collect();
        for len in (0..70).chain([200, 256]) {
            let bytes = Bytes::new(&text[..len]);
            let copy = bytes.clone();
            assert!(copy == bytes);
            drop(bytes);
            let (front, rest) = copy.parts();
            assert_eq!([front, rest].concat(), &text[..len]);
            assert!(
                copy == Bytes::new(&text[..len]) && copy != Bytes::new(&text[..len.max(1) - 1])
                    || len == 0
            );
            assert_eq!(copy.heap_bytes() == 0, len <= INLINE);
            assert_eq!(rest.is_empty(), len <= INLINE || len > SPLIT);
        }
    }
}
