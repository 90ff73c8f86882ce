//! What is decided over the whole of an analysis and not by one of its parts.

use gannet_base::Time;
use gannet_log::Key;
use gannet_log::Logs;

use crate::ssl;
use crate::tunnel;
use crate::weird;

/// Something that a part of an analysis saw, to be decided about in the order of all parts.
#[derive(Clone, Debug)]
pub struct Later<T> {
    /// Its place in that order.
    pub key: Key,
    /// Packet time, should this make the first row of a log.
    pub opened: Time,
    /// What was seen.
    pub what: T,
}

/// What one part saw so far; stays empty where there is only one.
#[derive(Debug)]
pub(crate) struct Queue<T>(Vec<Later<T>>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Queue<T> {
    /// Keeps something for later, at the place of the rows of `logs`.
    pub(crate) fn push(&mut self, logs: &Logs, what: T) {
        let Some(key) = logs.key() else { return };
        self.0.push(Later { key, opened: logs.time(), what });
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn take(&mut self) -> Vec<Later<T>> {
        std::mem::take(&mut self.0)
    }
}

/// Everything that a part of an analysis left to be decided, each in the order of its keys.
#[derive(Debug, Default)]
pub struct Deferred {
    /// Oddities.
    pub weirds: Vec<Later<weird::Item>>,
    /// Tunnels.
    pub tunnels: Vec<Later<tunnel::Item>>,
    /// Certificates.
    pub certificates: Vec<Later<ssl::CertificateItem>>,
}
