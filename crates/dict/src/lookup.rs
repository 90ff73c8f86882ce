//! The forms of a key that entries can be searched with.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// A form of the key `K` that entries can be searched with: it hashes as the key does
/// ([`hash_as_key`](Self::hash_as_key)) and compares equal to it ([`is`](Self::is)).
///
/// Every type that a key can be borrowed as implements it, such as `str` for `String`, and each key
/// type for itself. Implement it for keys that cannot be borrowed in the form that callers have,
/// such as [`ByteKey`](crate::ByteKey).
pub trait Lookup<K: ?Sized> {
    /// Whether `key` is equal to this.
    fn is(&self, key: &K) -> bool;

    /// Hashes like the equal key: by default like this value itself.
    #[inline(always)]
    fn hash_as_key<H: Hasher>(&self, state: &mut H)
    where
        Self: Hash,
    {
        self.hash(state);
    }

    /// Searches with this value, or with an equivalent form that is faster to hash and compare.
    #[doc(hidden)]
    #[inline(always)]
    fn search<S: Search<K>>(&self, search: S) -> S::Found
    where
        Self: Hash,
    {
        search.with(self)
    }
}

/// A search for a key of the type `K`, generic over the form of the query.
pub trait Search<K: ?Sized> {
    /// The result.
    type Found;

    /// Searches with this form.
    fn with<Q: Hash + Lookup<K> + ?Sized>(self, query: &Q) -> Self::Found;
}

/// A search key, which hashes as the stored key does.
pub(crate) struct AsKey<'q, K: ?Sized, Q: ?Sized>(&'q Q, PhantomData<fn(&K)>);

impl<'q, K: ?Sized, Q: ?Sized> AsKey<'q, K, Q> {
    #[inline(always)]
    pub(crate) fn new(query: &'q Q) -> Self {
        AsKey(query, PhantomData)
    }
}

impl<K: ?Sized, Q: Hash + Lookup<K> + ?Sized> Hash for AsKey<'_, K, Q> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_as_key(state);
    }
}

impl<K: Borrow<Q> + ?Sized, Q: Eq + ?Sized> Lookup<K> for Q {
    #[inline]
    fn is(&self, key: &K) -> bool {
        self == key.borrow()
    }
}
