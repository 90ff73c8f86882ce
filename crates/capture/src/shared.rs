//! Shared buffers: capture bytes and packet positions that outlive their batch.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;

use crate::packet::PacketRef;

/// A mapped file or a buffer, shared by the owners of batches in it.
///
/// A [`Batch`](crate::Batch) borrows its packets from such a buffer. To keep them longer, for
/// instance in another thread, clone [`Batch::bytes`](crate::Batch::bytes): no bytes are copied,
/// and the reader continues in another buffer.
#[derive(Clone, Debug)]
pub struct Bytes(Arc<Storage>);

#[derive(Debug)]
enum Storage {
    Map(Mmap),
    Buffer(Vec<u8>),
    Owned(Box<dyn Owner>),
}

/// Memory that another crate owns, such as a block of a capture ring; dropped with its last owner
/// here.
pub trait Owner: AsRef<[u8]> + fmt::Debug + Send + Sync {}

impl<T: AsRef<[u8]> + fmt::Debug + Send + Sync> Owner for T {}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Storage::Map(map) => map,
            Storage::Buffer(buffer) => buffer,
            Storage::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl From<Box<dyn Owner>> for Bytes {
    fn from(owner: Box<dyn Owner>) -> Self {
        Self(Arc::new(Storage::Owned(owner)))
    }
}

impl From<Mmap> for Bytes {
    fn from(map: Mmap) -> Self {
        Self(Arc::new(Storage::Map(map)))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(buffer: Vec<u8>) -> Self {
        Self(Arc::new(Storage::Buffer(buffer)))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl Bytes {
    /// The memory map, if the bytes are mapped.
    pub(crate) fn map(&self) -> Option<&Mmap> {
        match &*self.0 {
            Storage::Map(map) => Some(map),
            Storage::Buffer(_) | Storage::Owned(_) => None,
        }
    }

    /// Whether the bytes have more owners than `holders`.
    pub(crate) fn is_shared_beyond(&self, holders: usize) -> bool {
        Arc::strong_count(&self.0) > holders
    }

    /// The buffer, if it has no other owner.
    pub(crate) fn buffer(&mut self) -> Option<&mut Vec<u8>> {
        match Arc::get_mut(&mut self.0)? {
            Storage::Buffer(buffer) => Some(buffer),
            Storage::Map(_) | Storage::Owned(_) => None,
        }
    }
}

/// Positions of the packets of a batch, shared by its owners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refs(Arc<Vec<PacketRef>>);

impl Deref for Refs {
    type Target = [PacketRef];

    fn deref(&self) -> &[PacketRef] {
        &self.0
    }
}

impl From<Vec<PacketRef>> for Refs {
    fn from(refs: Vec<PacketRef>) -> Self {
        Self(Arc::new(refs))
    }
}

impl Refs {
    /// The list of positions, if it has no other owner.
    pub(crate) fn own(&mut self) -> Option<&mut Vec<PacketRef>> {
        Arc::get_mut(&mut self.0)
    }
}

/// A value that may have several owners.
pub(crate) trait Pooled: Clone + Default {
    /// Whether there is no other owner.
    fn is_free(&mut self) -> bool;
}

impl Pooled for Bytes {
    fn is_free(&mut self) -> bool {
        self.buffer().is_some()
    }
}

impl Pooled for Refs {
    fn is_free(&mut self) -> bool {
        self.own().is_some()
    }
}

/// A pool of shared values; each can be reused after its other owners dropped it.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Vec<T>);

/// Maximum number of values in the pool.
const MAX_POOLED: usize = 32;

impl<T: Pooled> Pool<T> {
    /// Makes `current` exclusively owned: if necessary, replaces it by another value, whose
    /// contents are unspecified. Returns the replaced value.
    pub(crate) fn exchange(&mut self, current: &mut T) -> Option<T> {
        if current.is_free() {
            return None;
        }
        let free = self.0.iter_mut().position(T::is_free);
        let other = free.map_or_else(T::default, |i| self.0.swap_remove(i));
        let old = std::mem::replace(current, other);
        if self.0.len() < MAX_POOLED {
            self.0.push(old.clone());
        }
        Some(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_after_their_last_owner() {
        let mut pool = Pool::default();
        let mut current = Bytes::from(b"one".to_vec());
        assert!(pool.exchange(&mut current).is_none());
        assert!(!current.is_shared_beyond(1));
        let reader = current.clone();
        assert!(current.is_shared_beyond(1));
        let old = pool.exchange(&mut current).unwrap();
        assert_eq!((&*reader, &*old, &*current), (&b"one"[..], &b"one"[..], &b""[..]));
        let other = current.clone();
        drop((reader, old));
        pool.exchange(&mut current);
        assert_eq!((&*other, &*current), (&b""[..], &b"one"[..]), "the first one again");
    }
}
