//! Decisions over the whole analysis, deferred by its shards.

use gannet_base::Time;
use gannet_event::Sinks;
use gannet_log::Key;

use crate::ssl;
use crate::tunnel;
use crate::weird;

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

/// All deferred items of a shard, each in the order of its keys.
#[derive(Debug, Default)]
pub struct Deferred {
    /// Weirds.
    pub weirds: Vec<DeferredItem<weird::Item>>,
    /// Tunnels.
    pub tunnels: Vec<DeferredItem<tunnel::Item>>,
    /// Certificates.
    pub certificates: Vec<DeferredItem<ssl::CertificateItem>>,
}

impl Deferred {
    /// Appends later items of the same shard.
    pub fn append(&mut self, mut more: Self) {
        self.weirds.append(&mut more.weirds);
        self.tunnels.append(&mut more.tunnels);
        self.certificates.append(&mut more.certificates);
    }
}

/// Items that memory is kept for.
const ORDER_KEPT: usize = 1_024;

/// Decides the deferred items of all shards.
#[derive(Default)]
pub struct Whole {
    weirds: weird::Weirds,
    tunnels: tunnel::Tunnels,
    certificates: ssl::Certificates,
    /// Items that are decided about, to be put in order; empty in between.
    order: Vec<Place>,
}

/// Where an item is, with its place in the order of all.
struct Place {
    key: Key,
    ticket: u64,
    part: u16,
    kind: Kind,
    /// Its index among those of its kind.
    at: u32,
}

/// Kinds of items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Weird,
    Tunnel,
    Certificate,
}

impl Place {
    /// Of one part and one step of a packet, things come in the order in which they were left.
    fn order(&self) -> impl Ord + use<> {
        (self.key, self.ticket, self.part, self.kind, self.at)
    }
}

impl Whole {
    /// Decides about everything that comes before `until`, which must be complete: of all `parts`
    /// together in the order in which it was seen.
    pub fn decide(&mut self, logs: &mut Sinks, parts: &mut [Deferred], until: Option<Key>) {
        let mut order = std::mem::take(&mut self.order);
        for (part, left) in (0..).zip(parts.iter()) {
            places(&left.weirds, until, (part, Kind::Weird), &mut order);
            places(&left.tunnels, until, (part, Kind::Tunnel), &mut order);
            places(&left.certificates, until, (part, Kind::Certificate), &mut order);
        }
        // Those of one part and kind are in order already, which a stable sort takes as they are.
        order.sort_by_key(Place::order);
        for Place { part, kind, at, .. } in &order {
            let Some(left) = parts.get(usize::from(*part)) else { continue };
            self.one(logs, left, *kind, *at as usize);
        }
        order.clear();
        order.shrink_to(ORDER_KEPT);
        self.order = order;
        for left in parts {
            drain(&mut left.weirds, until);
            drain(&mut left.tunnels, until);
            drain(&mut left.certificates, until);
        }
    }

    fn one(&mut self, logs: &mut Sinks, left: &Deferred, kind: Kind, at: usize) {
        match kind {
            Kind::Weird => {
                let Some(DeferredItem { opened, what, .. }) = left.weirds.get(at) else { return };
                logs.set_time(*opened);
                self.weirds.decide(logs, what);
            }
            Kind::Tunnel => {
                let Some(DeferredItem { opened, what, .. }) = left.tunnels.get(at) else { return };
                logs.set_time(*opened);
                if let Some(packet) = self.tunnels.decide(logs, what) {
                    self.weirds.look(packet);
                }
            }
            Kind::Certificate => {
                let Some(DeferredItem { opened, what, .. }) = left.certificates.get(at) else {
                    return;
                };
                logs.set_time(*opened);
                self.certificates.decide(logs, &mut self.weirds, what);
            }
        }
    }
}

/// How many items come before `until`.
fn due<T>(items: &[DeferredItem<T>], until: Option<Key>) -> usize {
    items.partition_point(|item| until.is_none_or(|u| item.key < u))
}

fn places<T>(
    items: &[DeferredItem<T>],
    until: Option<Key>,
    (part, kind): (u16, Kind),
    to: &mut Vec<Place>,
) {
    let due = items.iter().take(due(items, until));
    let place = |(at, item): (u32, &DeferredItem<T>)| Place {
        key: item.key,
        ticket: item.ticket,
        part,
        kind,
        at,
    };
    to.extend((0..).zip(due).map(place));
}

fn drain<T>(items: &mut Vec<DeferredItem<T>>, until: Option<Key>) {
    items.drain(..due(items, until));
}
