//! Byte strings as keys.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{Hash, Hasher};

/// Bytes kept in the key itself.
pub const INLINE: usize = 14;

/// An owned byte string of 16 bytes: up to [`INLINE`] bytes in place, longer ones in one box.
///
/// Short keys are compared without following a pointer. Boxes come in the sizes that allocators hand out
/// anyway, so the length can stay beside the pointer and the key at 16 bytes. Hashes and compares as its
/// bytes do, so tables keyed by it are searched with a plain `&[u8]`.
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
    Box24(u8, Box<[u8; 24]>),
    Box40(u8, Box<[u8; 40]>),
    Box56(u8, Box<[u8; 56]>),
    // A second box keeps the pointer thin; keys this long are rare.
    Long(Box<Box<[u8]>>),
}

const _: () = assert!(size_of::<ByteKey>() == 16 && size_of::<Option<ByteKey>>() == 16);

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    out
}

impl ByteKey {
    /// A copy of `bytes`; allocates only beyond [`INLINE`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len() as u8;
        ByteKey(match bytes.len() {
            0..=INLINE => Repr::Inline(len, padded(bytes)),
            15..=24 => Repr::Box24(len, Box::new(padded(bytes))),
            25..=40 => Repr::Box40(len, Box::new(padded(bytes))),
            41..=56 => Repr::Box56(len, Box::new(padded(bytes))),
            _ => Repr::Long(Box::new(bytes.into())),
        })
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let (len, room): (u8, &[u8]) = match &self.0 {
            Repr::Inline(len, room) => (*len, room),
            Repr::Box24(len, room) => (*len, &**room),
            Repr::Box40(len, room) => (*len, &**room),
            Repr::Box56(len, room) => (*len, &**room),
            Repr::Long(bytes) => return bytes,
        };
        room.get(..usize::from(len)).unwrap_or(room)
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Inline(..) => 0,
            Repr::Box24(..) => 24,
            Repr::Box40(..) => 40,
            Repr::Box56(..) => 56,
            Repr::Long(bytes) => bytes.len() + size_of::<Box<[u8]>>(),
        }
    }
}

impl From<&[u8]> for ByteKey {
    fn from(bytes: &[u8]) -> Self {
        ByteKey::new(bytes)
    }
}

impl Borrow<[u8]> for ByteKey {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for ByteKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Padded with zeros: two words each.
            (Repr::Inline(a_len, a), Repr::Inline(b_len, b)) => a_len == b_len && a == b,
            _ => self.as_bytes() == other.as_bytes(),
        }
    }
}

impl Eq for ByteKey {}

impl Hash for ByteKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl PartialOrd for ByteKey {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByteKey {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for ByteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
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
            assert_eq!(key.as_bytes(), &text[..len]);
            assert_eq!(key, key.clone());
            assert_eq!(key.heap_bytes() == 0, len <= INLINE);
            assert!(key < ByteKey::new(&text[..=len]));
        }
        // The padding does not make keys equal.
        assert_ne!(ByteKey::new(b"a"), ByteKey::new(b"a\0"));
    }
}
