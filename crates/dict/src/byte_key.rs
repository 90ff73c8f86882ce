//! Byte strings as keys.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::Lookup;
use crate::lookup::Search;
use crate::raw::bytes::{self, Bytes, Inline, Long, Query, SPLIT, Split};

/// Bytes of the longest string kept in the key itself.
pub const INLINE: usize = bytes::INLINE;

/// An owned byte string of any length; the value itself takes 16 bytes.
///
/// ```text
/// up to 15 bytes   │ length │ the bytes                                │
/// up to 62         │ length │ first 7 bytes │ pointer to the others,   │
///                  │        │               │ or to the last 16        │
/// longer           │        │               │ pointer to a box of all  │
/// ```
///
/// Short keys are compared without following a pointer, as are most others that differ. The first
/// bytes of a key are stored only next to the pointer, not in the allocation, so the bytes of a key
/// are not contiguous: they are accessed as [`parts`](Self::parts) or copied into one buffer
/// ([`with_bytes`](Self::with_bytes)). Hashes like its bytes, so tables keyed by it are searched
/// with a plain `&[u8]`, whose length is checked once per search.
///
/// ```
/// use gannet_dict::{ByteKey, Dict};
/// let mut names: Dict<ByteKey, u32> = Dict::new();
/// names.insert(ByteKey::new(b"example.org"), 1);
/// assert_eq!(names.get(b"example.org".as_slice()), Some(&1));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ByteKey(Bytes);

const _: () = assert!(size_of::<ByteKey>() == 16 && size_of::<Option<ByteKey>>() == 16);

impl ByteKey {
    /// A copy of `bytes`; allocates only beyond [`INLINE`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        ByteKey(Bytes::new(bytes))
    }

    /// The bytes, in two parts.
    #[inline]
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[u8]) {
        self.0.parts()
    }

    /// Calls `with` with all bytes in one slice, copying them if they are not contiguous.
    #[inline]
    pub fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match self.parts() {
            (all, []) => with(all),
            (front, rest) => {
                let mut bytes = [0; SPLIT];
                let (to_front, to_rest) = bytes.split_at_mut(front.len());
                to_front.copy_from_slice(front);
                copy_short(to_rest, rest);
                with(&bytes[..front.len() + rest.len()])
            }
        }
    }

    /// The bytes, copied.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let (front, rest) = self.parts();
        front.len() + rest.len()
    }

    /// Whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// Copies 8 bytes or more to the beginning of `to`. Up to 64 bytes are copied as overlapping words,
/// which is faster than a call that branches on the length.
#[inline]
fn copy_short(to: &mut [u8], from: &[u8]) {
    let to = &mut to[..from.len()];
    match from.len() {
        16..=64 => {
            let last = from.len() - 16;
            for at in [0, last.min(16), last.min(32), last] {
                to[at..at + 16].copy_from_slice(&from[at..at + 16]);
            }
        }
        8..16 => {
            let last = from.len() - 8;
            to[..8].copy_from_slice(&from[..8]);
            to[last..].copy_from_slice(&from[last..]);
        }
        _ => to.copy_from_slice(from),
    }
}

impl From<&[u8]> for ByteKey {
    fn from(bytes: &[u8]) -> Self {
        ByteKey::new(bytes)
    }
}

/// Evaluates the same expression with a query of each kind.
macro_rules! of_each_kind {
    ($query:expr, $of:ident => $do:expr) => {
        match $query {
            Query::Inline($of) => $do,
            Query::Split($of) => $do,
            Query::Long($of) => $do,
        }
    };
}

macro_rules! lookup {
    ($($query:ty),*) => {$(
        impl Lookup<ByteKey> for $query {
            #[inline(always)]
            fn is(&self, key: &ByteKey) -> bool {
                (*self).is(&key.0)
            }
        }
    )*};
}

lookup!(Inline, Split<'_>, Long<'_>);

impl Lookup<ByteKey> for [u8] {
    #[inline(always)]
    fn is(&self, key: &ByteKey) -> bool {
        of_each_kind!(Query::new(self), query => query.is(&key.0))
    }

    #[inline(always)]
    fn hash_as_key<H: Hasher>(&self, state: &mut H) {
        of_each_kind!(Query::new(self), query => query.hash(state));
    }

    #[inline(always)]
    fn search<S: Search<ByteKey>>(&self, search: S) -> S::Found {
        of_each_kind!(Query::new(self), query => search.with(&query))
    }
}

impl<const N: usize> Lookup<ByteKey> for [u8; N] {
    #[inline(always)]
    fn is(&self, key: &ByteKey) -> bool {
        self.as_slice().is(key)
    }

    #[inline(always)]
    fn hash_as_key<H: Hasher>(&self, state: &mut H) {
        Lookup::<ByteKey>::hash_as_key(self.as_slice(), state);
    }

    #[inline(always)]
    fn search<S: Search<ByteKey>>(&self, search: S) -> S::Found {
        Lookup::<ByteKey>::search(self.as_slice(), search)
    }
}

impl Hash for ByteKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        of_each_kind!(self.0.as_query(), query => query.hash(state));
    }
}

impl PartialOrd for ByteKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByteKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.with_bytes(|a| other.with_bytes(|b| a.cmp(b)))
    }
}

impl fmt::Debug for ByteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_bytes(|bytes| write!(f, "\"{}\"", bytes.escape_ascii()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_length() {
        // Miri is some thousand times slower.
        let text: Vec<u8> = (0..if cfg!(miri) { 66 } else { 200 }).collect();
        for len in 0..text.len() {
            let key = ByteKey::new(&text[..len]);
            assert_eq!(key.to_vec(), &text[..len]);
            assert_eq!((key.len(), key.is_empty()), (len, len == 0));
            assert_eq!(key, key.clone());
            assert_eq!(key.heap_bytes() == 0, len <= INLINE);
            assert!(key < ByteKey::new(&text[..=len]) && !text[..=len].is(&key));
            assert!(text[..len].is(&key));
            for at in 0..len {
                let mut other = text[..len].to_vec();
                other[at] ^= 0x80;
                assert!(!other.as_slice().is(&key) && ByteKey::new(&other) != key, "{len} {at}");
            }
        }
        // Each key is found by its bytes, and not by other bytes of the same length.
        let dict: crate::Dict<ByteKey, usize> =
            (0..text.len()).map(|len| (ByteKey::new(&text[..len]), len)).collect();
        for len in 0..text.len() {
            assert_eq!(dict.get(&text[..len]), Some(&len));
            assert_eq!(dict.handle(&text[..len]), dict.handle(&ByteKey::new(&text[..len])));
            let mut other = text[..len].to_vec();
            other.iter_mut().for_each(|byte| *byte = !*byte);
            assert_eq!(dict.get(other.as_slice()).is_some(), len == 0);
        }
        // The padding does not make keys equal.
        assert_ne!(ByteKey::new(b"a"), ByteKey::new(b"a\0"));
        assert!(b"abc".is(&ByteKey::new(b"abc")));
    }
}
