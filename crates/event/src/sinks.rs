//! The outputs of an analysis.

use std::ops::Deref;
use std::ops::DerefMut;

use gannet_log::Key;
use gannet_log::Logs;

use crate::events::Events;

/// The logs and the events of an analysis, or of one of its shards. It dereferences to its logs.
pub struct Sinks {
    logs: Logs,
    /// Typed events.
    pub events: Events,
}

impl Sinks {
    /// Combines logs and events.
    pub fn new(logs: Logs, events: Events) -> Self {
        Self { logs, events }
    }

    /// Sets the key of the following rows and events if they are collected.
    #[inline]
    pub fn set_key(&mut self, key: Key) {
        if self.logs.set_key(key) {
            self.events.set_key(key, self.logs.time());
        }
    }

    /// Returns a number greater than all earlier tickets and those of all recorded events.
    pub fn ticket(&self) -> u64 {
        self.events.ticket().unwrap_or_else(|| self.logs.ticket())
    }
}

impl From<Logs> for Sinks {
    fn from(logs: Logs) -> Self {
        Self::new(logs, Events::default())
    }
}

impl Deref for Sinks {
    type Target = Logs;

    #[inline]
    fn deref(&self) -> &Logs {
        &self.logs
    }
}

impl DerefMut for Sinks {
    #[inline]
    fn deref_mut(&mut self) -> &mut Logs {
        &mut self.logs
    }
}
