//! Byte strings as keys.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::Lookup;

/// Bytes of the longest string kept in the key itself.
pub const INLINE: usize = 14;

/// First bytes of longer strings that are kept in the key.
const FRONT: usize = 6;

/// The longest string whose front is kept apart.
const SPLIT: usize = FRONT + 56;

/// An owned byte string of 16 bytes.
///
/// ```text
/// up to 14 bytes   │ kind │ length │ the bytes                        │
/// up to 62         │ kind │ length │ first 6 bytes │ box of the others │   a box of 16, 24, 32, 40, 48 or 56
/// longer           │ kind │                        │ box of a box      │
/// ```
///
/// Short keys are compared without following a pointer, and most others that differ do so before it, too. What
/// stands in the key is not kept in the box again; so the bytes of a key are not all in one place, and are had
/// as [`parts`](Self::parts), or together for a moment ([`with_bytes`](Self::with_bytes)). Hashes as its bytes
/// do, so tables keyed by it are searched with a plain `&[u8]`.
///
/// ```
/// use gannet_dict::{ByteKey, Dict};
/// let mut names: Dict<ByteKey, u32> = Dict::new();
/// names.insert(ByteKey::new(b"example.org"), 1);
/// assert_eq!(names.get(b"example.org".as_slice()), Some(&1));
/// ```
#[derive(Clone)]
pub struct ByteKey(Repr);

#[derive(Clone)]
enum Repr {
    Inline(u8, [u8; INLINE]),
    // The sizes let the length stand beside the pointer, and the key keep its 16 bytes.
    Box16(u8, [u8; FRONT], Box<[u8; 16]>),
    Box24(u8, [u8; FRONT], Box<[u8; 24]>),
    Box32(u8, [u8; FRONT], Box<[u8; 32]>),
    Box40(u8, [u8; FRONT], Box<[u8; 40]>),
    Box48(u8, [u8; FRONT], Box<[u8; 48]>),
    Box56(u8, [u8; FRONT], Box<[u8; 56]>),
    // A second box keeps the pointer thin; keys this long are rare.
    Long(Box<Box<[u8]>>),
}

const _: () = assert!(size_of::<ByteKey>() == 16 && size_of::<Option<ByteKey>>() == 16);

/// The bytes, followed by zeros.
#[inline]
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let len = bytes.len().min(N);
    if let (Some(last), true) = (bytes.last_chunk::<8>(), len == bytes.len() && len >= 8) {
        // Words at once; the last one may overlap the one before.
        for (to, from) in out.chunks_exact_mut(8).zip(bytes.chunks_exact(8)) {
            to.copy_from_slice(from);
        }
        if let Some(to) = out.get_mut(len - 8..len) {
            to.copy_from_slice(last);
        }
    } else {
        for (to, from) in out.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
    out
}

/// Whether two strings are equal; short ones as one or two words each, without a call.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    if let (Some(first_a), Some(first_b)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        // The two words overlap where there are less than 16 bytes.
        return first_a == first_b
            && a.last_chunk::<8>() == b.last_chunk::<8>()
            && (a.len() <= 16 || between(a, b));
    }
    if let (Some(first_a), Some(first_b)) = (a.first_chunk::<4>(), b.first_chunk::<4>()) {
        return first_a == first_b && a.last_chunk::<4>() == b.last_chunk::<4>();
    }
    match (a, b) {
        ([x0, .., x1], [y0, .., y1]) => x0 == y0 && x1 == y1 && a.get(1) == b.get(1),
        _ => a.first() == b.first(),
    }
}

/// Whether all words but the first and the last are equal.
#[inline]
fn between(a: &[u8], b: &[u8]) -> bool {
    let words = a.chunks_exact(8).zip(b.chunks_exact(8)).skip(1);
    words.into_iter().all(|(a, b)| a.first_chunk::<8>() == b.first_chunk::<8>())
}

impl ByteKey {
    /// A copy of `bytes`; allocates only beyond [`INLINE`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let Some((front, rest)) = bytes.split_at_checked(FRONT).filter(|_| bytes.len() > INLINE)
        else {
            return ByteKey(Repr::Inline(bytes.len() as u8, padded(bytes)));
        };
        let (len, front) = (bytes.len() as u8, padded(front));
        ByteKey(match rest.len() {
            0..=16 => Repr::Box16(len, front, Box::new(padded(rest))),
            17..=24 => Repr::Box24(len, front, Box::new(padded(rest))),
            25..=32 => Repr::Box32(len, front, Box::new(padded(rest))),
            33..=40 => Repr::Box40(len, front, Box::new(padded(rest))),
            41..=48 => Repr::Box48(len, front, Box::new(padded(rest))),
            49..=56 => Repr::Box56(len, front, Box::new(padded(rest))),
            _ => Repr::Long(Box::new(bytes.into())),
        })
    }

    /// The bytes, in two parts.
    #[inline]
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[u8]) {
        let (len, front, room): (u8, &[u8; FRONT], &[u8]) = match &self.0 {
            Repr::Inline(len, room) => {
                return (room.get(..usize::from(*len)).unwrap_or(room), &[]);
            }
            Repr::Box16(len, front, room) => (*len, front, &**room),
            Repr::Box24(len, front, room) => (*len, front, &**room),
            Repr::Box32(len, front, room) => (*len, front, &**room),
            Repr::Box40(len, front, room) => (*len, front, &**room),
            Repr::Box48(len, front, room) => (*len, front, &**room),
            Repr::Box56(len, front, room) => (*len, front, &**room),
            Repr::Long(bytes) => return (bytes, &[]),
        };
        (front, room.get(..usize::from(len).wrapping_sub(FRONT)).unwrap_or(room))
    }

    /// Calls `with` with all the bytes in one piece, copying some if need be.
    #[inline]
    pub fn with_bytes<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        match self.parts() {
            (all, []) => with(all),
            (front, rest) => {
                let mut bytes = [0; SPLIT];
                let len = front.len() + rest.len();
                bytes[..front.len()].copy_from_slice(front);
                bytes[front.len()..len].copy_from_slice(rest);
                with(&bytes[..len])
            }
        }
    }

    /// The bytes, copied.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.with_bytes(<[u8]>::to_vec)
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        let (front, rest) = self.parts();
        front.len() + rest.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Inline(..) => 0,
            Repr::Box16(..) => 16,
            Repr::Box24(..) => 24,
            Repr::Box32(..) => 32,
            Repr::Box40(..) => 40,
            Repr::Box48(..) => 48,
            Repr::Box56(..) => 56,
            Repr::Long(bytes) => bytes.len() + size_of::<Box<[u8]>>(),
        }
    }

    #[inline]
    fn is_bytes(&self, bytes: &[u8]) -> bool {
        let (len, front, room): (u8, &[u8; FRONT], &[u8]) = match &self.0 {
            Repr::Inline(len, room) => {
                return bytes.len() == usize::from(*len)
                    && same(room.get(..bytes.len()).unwrap_or(room), bytes);
            }
            Repr::Box16(len, front, room) => (*len, front, &**room),
            Repr::Box24(len, front, room) => (*len, front, &**room),
            Repr::Box32(len, front, room) => (*len, front, &**room),
            Repr::Box40(len, front, room) => (*len, front, &**room),
            Repr::Box48(len, front, room) => (*len, front, &**room),
            Repr::Box56(len, front, room) => (*len, front, &**room),
            Repr::Long(all) => return same(all, bytes),
        };
        // Length and front first: they stand in the key.
        bytes.len() == usize::from(len)
            && bytes.split_first_chunk::<FRONT>().is_some_and(|(first, rest)| {
                first == front && room.get(..rest.len()).is_some_and(|room| same(room, rest))
            })
    }
}

impl From<&[u8]> for ByteKey {
    fn from(bytes: &[u8]) -> Self {
        ByteKey::new(bytes)
    }
}

impl Lookup<ByteKey> for [u8] {
    #[inline]
    fn is(&self, key: &ByteKey) -> bool {
        key.is_bytes(self)
    }
}

impl<const N: usize> Lookup<ByteKey> for [u8; N] {
    #[inline]
    fn is(&self, key: &ByteKey) -> bool {
        key.is_bytes(self)
    }
}

impl PartialEq for ByteKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Padded with zeros: two words each.
            (Repr::Inline(a_len, a), Repr::Inline(b_len, b)) => a_len == b_len && a == b,
            // The kind follows from the length, so equal strings have equal parts.
            _ => self.parts() == other.parts(),
        }
    }
}

impl Eq for ByteKey {}

impl Hash for ByteKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.with_bytes(|bytes| bytes.hash(state));
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
        let text: Vec<u8> = (0..200).collect();
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
        // The padding does not make keys equal.
        assert_ne!(ByteKey::new(b"a"), ByteKey::new(b"a\0"));
        assert!(b"abc".is(&ByteKey::new(b"abc")));
    }
}
