//! What a shard defers, in order.

use gannet_base::Time;
use gannet_event::Sinks;
use gannet_log::Key;

/// An observation of a shard, to be processed in the order of all shards.
#[derive(Clone, Debug)]
pub struct DeferredItem<T> {
    /// Its place in that order.
    pub key: Key,
    /// Order among items with equal keys.
    pub ticket: u64,
    /// Packet time, should this make the first row of a log.
    pub opened: Time,
    /// The observation.
    pub what: T,
}

/// Items that there is room for after others were taken, at the most.
const ROOM: usize = 64;

/// Deferred items of one shard; stays empty if there is only one.
#[derive(Debug)]
pub(crate) struct Queue<T>(Vec<DeferredItem<T>>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Queue<T> {
    /// Keeps something for later, at the place of the rows of `logs`.
    pub(crate) fn push(&mut self, logs: &Sinks, what: T) {
        let Some(key) = logs.key() else { return };
        self.0.push(DeferredItem { key, ticket: logs.ticket(), opened: logs.time(), what });
    }

    /// The last item, if its key is that of the rows of `logs`.
    pub(crate) fn last(&mut self, logs: &Sinks) -> Option<&mut T> {
        let last = self.0.last_mut().filter(|last| Some(last.key) == logs.key())?;
        Some(&mut last.what)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All that was kept; there is room for about as much once more.
    pub(crate) fn take(&mut self) -> Vec<DeferredItem<T>> {
        let room = Vec::with_capacity(self.0.len().min(ROOM));
        std::mem::replace(&mut self.0, room)
    }
}
