//! Decisions over the whole analysis, deferred by its shards.

mod queue;

pub use queue::DeferredItem;
pub(crate) use queue::Queue;

use std::collections::VecDeque;

use gannet_event::Command;
use gannet_event::Recording;
use gannet_event::Sinks;
use gannet_log::Key;

use crate::ssl::CertificateItem;
use crate::ssl::Certificates;
use crate::tunnel::Item as TunnelItem;
use crate::tunnel::Tunnels;
use crate::weird::Item as WeirdItem;
use crate::weird::Weirds;

/// All deferred items of a shard, each in the order of its keys.
#[derive(Debug, Default)]
pub struct Deferred {
    /// Weirds.
    pub weirds: Vec<DeferredItem<WeirdItem>>,
    /// Tunnels.
    pub tunnels: Vec<DeferredItem<TunnelItem>>,
    /// Certificates.
    pub certificates: Vec<DeferredItem<CertificateItem>>,
    /// Events, where these have a listener.
    pub events: VecDeque<Recording>,
}

impl Deferred {
    /// Appends later items of the same shard.
    pub fn append(&mut self, mut more: Self) {
        self.weirds.append(&mut more.weirds);
        self.tunnels.append(&mut more.tunnels);
        self.certificates.append(&mut more.certificates);
        self.events.append(&mut more.events);
    }

    /// Bytes of events.
    pub fn event_bytes(&self) -> usize {
        self.events.iter().map(Recording::bytes).sum()
    }
}

/// Items that memory is kept for.
const ORDER_KEPT: usize = 1_024;

/// Decides the deferred items of all shards.
#[derive(Default)]
pub struct Decider {
    weirds: Weirds,
    tunnels: Tunnels,
    certificates: Certificates,
    /// Items that are decided about, to be put in order; empty in between.
    order: Vec<ItemPosition>,
    /// Events have a listener.
    is_listening: bool,
}

/// Where an item is, with its place in the order of all.
struct ItemPosition {
    key: Key,
    ticket: u64,
    part: u16,
    kind: Kind,
    /// Its index among those of its kind.
    at: u32,
    /// Of events, the index of the recording.
    recording: u32,
}

/// Kinds of items.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Weird,
    Tunnel,
    Certificate,
    Events,
}

impl ItemPosition {
    /// Of one part and one step of a packet, things come in the order in which they were left.
    fn order(&self) -> impl Ord + use<> {
        (self.key, self.ticket, self.part, self.kind, self.at)
    }

    /// The same where events have a listener: one step of a packet is of one part, and what the global shard, which is
    /// the last of `parts`, does at the beginning of a packet comes before what the others do.
    fn order_of_events(&self, parts: usize) -> impl Ord + use<> {
        let rank = (usize::from(self.part) + 1) % parts.max(1);
        (self.key, rank, self.ticket, self.kind)
    }
}

impl Decider {
    /// Events have a listener.
    pub fn listen(&mut self) {
        self.is_listening = true;
    }

    /// Samples weirds as the shards do after these commands.
    pub fn sample(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Setting { name, value } => {
                    self.weirds.sampling.set(name, *value);
                }
                Command::WeirdNames { exempt, global } => {
                    self.weirds.sampling.set_names(exempt, global);
                }
                _ => {}
            }
        }
    }

    /// Decides about everything that comes before `until`, which must be complete: of all `parts`
    /// together in the order in which it was seen.
    pub fn decide(&mut self, logs: &mut Sinks, parts: &mut [Deferred], until: Option<Key>) {
        let mut order = std::mem::take(&mut self.order);
        for (part, left) in (0..).zip(parts.iter()) {
            places(&left.weirds, until, (part, Kind::Weird), &mut order);
            places(&left.tunnels, until, (part, Kind::Tunnel), &mut order);
            places(&left.certificates, until, (part, Kind::Certificate), &mut order);
            if self.is_listening {
                places_of_events(&left.events, until, part, &mut order);
            }
        }
        // Entries of one part and kind are in order already; a stable sort keeps that order.
        if self.is_listening {
            order.sort_by_key(|place| place.order_of_events(parts.len()));
        } else {
            order.sort_by_key(ItemPosition::order);
        }
        for ItemPosition { key, part, kind, at, recording, .. } in &order {
            let Some(left) = parts.get_mut(usize::from(*part)) else { continue };
            if *kind == Kind::Events {
                if let Some(recording) = left.events.get_mut(*recording as usize) {
                    logs.events.replay(usize::from(*part), recording, *at as usize);
                }
                continue;
            }
            self.one(logs, left, (*key, *kind), *at as usize);
        }
        if self.is_listening {
            logs.events.end_before(until);
        }
        order.clear();
        order.shrink_to(ORDER_KEPT);
        self.order = order;
        for left in parts {
            drain(&mut left.weirds, until);
            drain(&mut left.tunnels, until);
            drain(&mut left.certificates, until);
            while left.events.front().is_some_and(Recording::is_over) {
                left.events.pop_front();
            }
        }
    }

    fn one(&mut self, logs: &mut Sinks, left: &Deferred, (key, kind): (Key, Kind), at: usize) {
        match kind {
            Kind::Weird => {
                let Some(DeferredItem { opened, what, .. }) = left.weirds.get(at) else { return };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                self.weirds.decide(logs, what);
            }
            Kind::Tunnel => {
                let Some(DeferredItem { opened, what, .. }) = left.tunnels.get(at) else { return };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                if let Some(packet) = self.tunnels.decide(logs, what) {
                    self.weirds.look(packet);
                }
            }
            Kind::Certificate => {
                let Some(DeferredItem { opened, what, .. }) = left.certificates.get(at) else {
                    return;
                };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                self.certificates.rows.decide(logs, &mut self.weirds, what);
            }
            Kind::Events => {}
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
    to: &mut Vec<ItemPosition>,
) {
    let due = items.iter().take(due(items, until));
    let place = |(at, item): (u32, &DeferredItem<T>)| ItemPosition {
        key: item.key,
        ticket: item.ticket,
        part,
        kind,
        at,
        recording: 0,
    };
    to.extend((0..).zip(due).map(place));
}

fn places_of_events(
    recordings: &VecDeque<Recording>,
    until: Option<Key>,
    part: u16,
    to: &mut Vec<ItemPosition>,
) {
    for (recording, runs) in (0..).zip(recordings) {
        let is_due = |(_, key, _): &(usize, Key, u64)| until.is_none_or(|until| *key < until);
        let place = |(at, key, ticket)| {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            ItemPosition { key, ticket, part, kind: Kind::Events, at, recording }
        };
        let before = to.len();
        to.extend(runs.runs().take_while(is_due).map(place));
        if to.len() == before && !runs.is_over() {
            break;
        }
    }
}

fn drain<T>(items: &mut Vec<DeferredItem<T>>, until: Option<Key>) {
    items.drain(..due(items, until));
}
