//! What outlives its batch: bytes of captures, and where packets lie in them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use memmap2::Mmap;

use crate::packet::PacketRef;

/// A mapped file or a buffer, shared by those who still read packets in it.
///
/// A [`Batch`](crate::Batch) borrows its packets from one of these. Whoever wants them for longer
/// than the batch lives, in another thread for instance, clones [`Batch::bytes`](crate::Batch::bytes):
/// nothing is copied, and the reader goes on in another buffer.
#[derive(Clone, Debug)]
pub struct Bytes(Arc<Held>);

#[derive(Debug)]
enum Held {
    Map(Mmap),
    Buffer(Vec<u8>),
    Owned(Box<dyn Owner>),
}

/// Memory that another crate owns, like a block of a capture ring: dropped when its last reader is done.
pub trait Owner: AsRef<[u8]> + fmt::Debug + Send + Sync {}

impl<T: AsRef<[u8]> + fmt::Debug + Send + Sync> Owner for T {}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Held::Map(map) => map,
            Held::Buffer(buffer) => buffer,
            Held::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl From<Box<dyn Owner>> for Bytes {
    fn from(owner: Box<dyn Owner>) -> Self {
        Self(Arc::new(Held::Owned(owner)))
    }
}

impl From<Mmap> for Bytes {
    fn from(map: Mmap) -> Self {
        Self(Arc::new(Held::Map(map)))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(buffer: Vec<u8>) -> Self {
        Self(Arc::new(Held::Buffer(buffer)))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl Bytes {
    /// The map, if it is one.
    pub(crate) fn map(&self) -> Option<&Mmap> {
        match &*self.0 {
            Held::Map(map) => Some(map),
            Held::Buffer(_) | Held::Owned(_) => None,
        }
    }

    /// Whether somebody reads it besides so many who hold it.
    pub(crate) fn is_shared_beyond(&self, holders: usize) -> bool {
        Arc::strong_count(&self.0) > holders
    }

    /// The buffer, if nobody else reads it.
    pub(crate) fn buffer(&mut self) -> Option<&mut Vec<u8>> {
        match Arc::get_mut(&mut self.0)? {
            Held::Buffer(buffer) => Some(buffer),
            Held::Map(_) | Held::Owned(_) => None,
        }
    }
}

/// Where the packets of a batch lie, shared by those who still read them.
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
    /// All of them, if nobody else reads them.
    pub(crate) fn own(&mut self) -> Option<&mut Vec<PacketRef>> {
        Arc::get_mut(&mut self.0)
    }
}

/// What others may read besides its owner.
pub(crate) trait Lent: Clone + Default {
    /// Whether nobody does.
    fn is_free(&mut self) -> bool;
}

impl Lent for Bytes {
    fn is_free(&mut self) -> bool {
        self.buffer().is_some()
    }
}

impl Lent for Refs {
    fn is_free(&mut self) -> bool {
        self.own().is_some()
    }
}

/// What went out to others and may have come back.
#[derive(Debug, Default)]
pub(crate) struct Spares<T>(Vec<T>);

/// Spares that are remembered; more are left to those who read them.
const SPARES: usize = 32;

impl<T: Lent> Spares<T> {
    /// Sees to it that nobody else reads `current`, exchanging it for another one with any
    /// contents if need be. Returns the one that was given away.
    pub(crate) fn exchange(&mut self, current: &mut T) -> Option<T> {
        if current.is_free() {
            return None;
        }
        let free = self.0.iter_mut().position(T::is_free);
        let other = free.map_or_else(T::default, |i| self.0.swap_remove(i));
        let old = std::mem::replace(current, other);
        if self.0.len() < SPARES {
            self.0.push(old.clone());
        }
        Some(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_when_nobody_reads_them() {
        let mut spares = Spares::default();
        let mut current = Bytes::from(b"one".to_vec());
        assert!(spares.exchange(&mut current).is_none());
        assert!(!current.is_shared_beyond(1));
        let reader = current.clone();
        assert!(current.is_shared_beyond(1));
        let old = spares.exchange(&mut current).unwrap();
        assert_eq!((&*reader, &*old, &*current), (&b"one"[..], &b"one"[..], &b""[..]));
        let other = current.clone();
        drop((reader, old));
        spares.exchange(&mut current);
        assert_eq!((&*other, &*current), (&b""[..], &b"one"[..]), "the first one again");
    }
}
