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
    /// Tells what came first of what has one place.
    pub ticket: u64,
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
        self.0.push(Later { key, ticket: logs.ticket(), opened: logs.time(), what });
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

impl Deferred {
    /// Adds what the same part left later.
    pub fn append(&mut self, mut more: Self) {
        self.weirds.append(&mut more.weirds);
        self.tunnels.append(&mut more.tunnels);
        self.certificates.append(&mut more.certificates);
    }
}

/// Decides what the parts of an analysis left.
#[derive(Default)]
pub struct Whole {
    weirds: weird::Weirds,
    tunnels: tunnel::Tunnels,
    certificates: ssl::Certificates,
}

/// One of all kinds of items.
enum Any {
    Weird(weird::Item),
    Tunnel(tunnel::Item),
    Certificate(ssl::CertificateItem),
}

impl Whole {
    /// Decides about everything that comes before `until`, which must be complete: of all `parts`
    /// together in the order in which it was seen.
    pub fn decide<'a>(
        &mut self,
        logs: &mut Logs,
        parts: impl Iterator<Item = &'a mut Deferred>,
        until: Option<Key>,
    ) {
        let mut items = Vec::new();
        for part in parts {
            take(&mut part.weirds, until, Any::Weird, &mut items);
            take(&mut part.tunnels, until, Any::Tunnel, &mut items);
            take(&mut part.certificates, until, Any::Certificate, &mut items);
        }
        // Of one part and one step of a packet, in the order in which they were left.
        items.sort_by_key(|item| (item.key, item.ticket));
        for Later { opened, what, .. } in &items {
            logs.set_time(*opened);
            match what {
                Any::Weird(item) => self.weirds.decide(logs, item),
                Any::Tunnel(item) => self.tunnels.decide(logs, item),
                Any::Certificate(item) => self.certificates.decide(logs, &mut self.weirds, item),
            }
        }
    }
}

fn take<T>(
    from: &mut Vec<Later<T>>,
    until: Option<Key>,
    kind: impl Fn(T) -> Any,
    to: &mut Vec<Later<Any>>,
) {
    let due = from.partition_point(|item| until.is_none_or(|u| item.key < u));
    to.extend(from.drain(..due).map(|Later { key, ticket, opened, what }| Later {
        key,
        ticket,
        opened,
        what: kind(what),
    }));
}
