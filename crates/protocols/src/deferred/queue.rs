//! Queue of items that a shard defers.

use gannet_base::Time;
use gannet_event::Sinks;
use gannet_log::Key;

/// An item that a shard deferred, to be processed in the order of all shards.
#[derive(Clone, Debug)]
pub struct DeferredItem<T> {
    /// Position in the order of all shards.
    pub key: Key,
    /// Order among items with equal keys.
    pub ticket: u64,
    /// Packet time, for the case that the item makes the first row of a log.
    pub opened: Time,
    /// The item.
    pub item: T,
}

/// Maximum capacity that the queue keeps after its items were taken.
const MAX_KEPT_CAPACITY: usize = 64;

/// Deferred items of one shard; stays empty if there is only one.
#[derive(Debug)]
pub(crate) struct Queue<T>(Vec<DeferredItem<T>>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Queue<T> {
    /// Appends an item at the current position of `logs`.
    pub(crate) fn push(&mut self, logs: &Sinks, item: T) {
        let Some(key) = logs.key() else { return };
        self.0.push(DeferredItem { key, ticket: logs.ticket(), opened: logs.time(), item });
    }

    /// The last item, if its key is the current position of `logs`.
    pub(crate) fn last(&mut self, logs: &Sinks) -> Option<&mut T> {
        let last = self.0.last_mut().filter(|last| Some(last.key) == logs.key())?;
        Some(&mut last.item)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes all items, and keeps capacity for about as many.
    pub(crate) fn take(&mut self) -> Vec<DeferredItem<T>> {
        let reserved = Vec::with_capacity(self.0.len().min(MAX_KEPT_CAPACITY));
        std::mem::replace(&mut self.0, reserved)
    }
}
