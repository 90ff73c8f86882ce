//! What keys can be searched with.

use core::borrow::Borrow;

/// A form of the key `K` that entries can be searched with: it hashes as the key does and knows its equal.
///
/// Every form that a key can be borrowed as is one already, `str` for `String` and a key itself for itself. Implement
/// it where a key cannot be borrowed in the form that callers have, as [`ByteKey`](crate::ByteKey) cannot.
pub trait Lookup<K: ?Sized> {
    /// Whether `key` is the key that this stands for.
    fn is(&self, key: &K) -> bool;
}

impl<K: Borrow<Q> + ?Sized, Q: Eq + ?Sized> Lookup<K> for Q {
    #[inline]
    fn is(&self, key: &K) -> bool {
        self == key.borrow()
    }
}
