//! What keys can be searched with.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

/// A form of the key `K` that entries can be searched with: it hashes as the key does ([`hash_as_key`](Self::hash_as_key)) and knows its
/// equal.
///
/// Every form that a key can be borrowed as is one already, `str` for `String` and a key itself for itself. Implement
/// it where a key cannot be borrowed in the form that callers have, as [`ByteKey`](crate::ByteKey) cannot.
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

    /// Searches with this, or with a form of it that hashes as the same key and knows the same equal, more quickly.
    #[doc(hidden)]
    #[inline(always)]
    fn search<S: Search<K>>(&self, search: S) -> S::Found
    where
        Self: Hash,
    {
        search.with(self)
    }
}

/// A search for a key of the type `K`, whatever form is searched with.
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
