//! Decisions that need all shards: the shards defer them, and the [`Decider`] makes them in packet
//! order.

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

/// All deferred items of a shard, each list in the order of its keys.
#[derive(Debug, Default)]
pub struct Deferred {
    /// Weirds.
    pub weirds: Vec<DeferredItem<WeirdItem>>,
    /// Tunnels.
    pub tunnels: Vec<DeferredItem<TunnelItem>>,
    /// Certificates.
    pub certificates: Vec<DeferredItem<CertificateItem>>,
    /// Recorded events, if events have a listener.
    pub events: VecDeque<Recording>,
}

impl Deferred {
    /// Appends the later items `more` of the same shard.
    pub fn append(&mut self, mut more: Self) {
        self.weirds.append(&mut more.weirds);
        self.tunnels.append(&mut more.tunnels);
        self.certificates.append(&mut more.certificates);
        self.events.append(&mut more.events);
    }

    /// Size of the recorded events, in bytes.
    pub fn event_bytes(&self) -> usize {
        self.events.iter().map(Recording::bytes).sum()
    }
}

/// Maximum capacity, in items, that the order buffer keeps between calls.
const ORDER_KEPT: usize = 1_024;

/// Decides the deferred items of all shards.
#[derive(Default)]
pub struct Decider {
    weirds: Weirds,
    tunnels: Tunnels,
    certificates: Certificates,
    /// Items being decided, to be sorted; empty between calls.
    order: Vec<ItemPosition>,
    /// Whether events have a listener.
    is_listening: bool,
}

/// Position of an item in its shard's list, with its rank in the order of all items.
struct ItemPosition {
    key: Key,
    ticket: u64,
    part: u16,
    kind: Kind,
    /// Index in the list of its kind.
    at: u32,
    /// For events, the index of the recording; otherwise 0.
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
    /// Sort key: within one shard and one step of a packet, items keep the order in which they
    /// were deferred.
    fn order(&self) -> impl Ord + use<> {
        (self.key, self.ticket, self.part, self.kind, self.at)
    }

    /// Like [`order`](Self::order), if events have a listener: one step of a packet belongs to one
    /// shard, and what the global shard, the last of `parts`, does at the beginning of a packet
    /// precedes what the other shards do.
    fn event_order(&self, parts: usize) -> impl Ord + use<> {
        let rank = (usize::from(self.part) + 1) % parts.max(1);
        (self.key, rank, self.ticket, self.kind)
    }
}

impl Decider {
    /// Notes that events have a listener.
    pub fn listen(&mut self) {
        self.is_listening = true;
    }

    /// Applies commands that change the sampling of weirds, as the shards do.
    pub fn configure_sampling(&mut self, commands: &[Command]) {
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

    /// Applies all items before `until`, which must be complete, of all shards (`parts`) in packet
    /// order.
    pub fn decide(&mut self, logs: &mut Sinks, parts: &mut [Deferred], until: Option<Key>) {
        let mut order = std::mem::take(&mut self.order);
        for (part, shard) in (0..).zip(parts.iter()) {
            push_positions(&shard.weirds, until, (part, Kind::Weird), &mut order);
            push_positions(&shard.tunnels, until, (part, Kind::Tunnel), &mut order);
            push_positions(&shard.certificates, until, (part, Kind::Certificate), &mut order);
            if self.is_listening {
                push_event_positions(&shard.events, until, part, &mut order);
            }
        }
        // Entries of one shard and kind are sorted already; a stable sort keeps that order.
        if self.is_listening {
            order.sort_by_key(|position| position.event_order(parts.len()));
        } else {
            order.sort_by_key(ItemPosition::order);
        }
        for ItemPosition { key, part, kind, at, recording, .. } in &order {
            let Some(shard) = parts.get_mut(usize::from(*part)) else { continue };
            if *kind == Kind::Events {
                if let Some(recording) = shard.events.get_mut(*recording as usize) {
                    logs.events.replay(usize::from(*part), recording, *at as usize);
                }
                continue;
            }
            self.apply_item(logs, shard, (*key, *kind), *at as usize);
        }
        if self.is_listening {
            logs.events.end_before(until);
        }
        order.clear();
        order.shrink_to(ORDER_KEPT);
        self.order = order;
        for shard in parts {
            drain(&mut shard.weirds, until);
            drain(&mut shard.tunnels, until);
            drain(&mut shard.certificates, until);
            while shard.events.front().is_some_and(Recording::is_over) {
                shard.events.pop_front();
            }
        }
    }

    fn apply_item(
        &mut self,
        logs: &mut Sinks,
        shard: &Deferred,
        (key, kind): (Key, Kind),
        at: usize,
    ) {
        match kind {
            Kind::Weird => {
                let Some(DeferredItem { opened, item, .. }) = shard.weirds.get(at) else { return };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                self.weirds.decide(logs, item);
            }
            Kind::Tunnel => {
                let Some(DeferredItem { opened, item, .. }) = shard.tunnels.get(at) else { return };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                if let Some(packet) = self.tunnels.decide(logs, item) {
                    self.weirds.check_suppressed(packet);
                }
            }
            Kind::Certificate => {
                let Some(DeferredItem { opened, item, .. }) = shard.certificates.get(at) else {
                    return;
                };
                logs.set_time(*opened);
                if self.is_listening {
                    logs.events.begin_key(key, *opened);
                }
                self.certificates.rows.decide(logs, &mut self.weirds, item);
            }
            Kind::Events => {}
        }
    }
}

/// Number of items before `until`.
fn count_before<T>(items: &[DeferredItem<T>], until: Option<Key>) -> usize {
    items.partition_point(|item| until.is_none_or(|u| item.key < u))
}

fn push_positions<T>(
    items: &[DeferredItem<T>],
    until: Option<Key>,
    (part, kind): (u16, Kind),
    to: &mut Vec<ItemPosition>,
) {
    let due = items.iter().take(count_before(items, until));
    let position = |(at, item): (u32, &DeferredItem<T>)| ItemPosition {
        key: item.key,
        ticket: item.ticket,
        part,
        kind,
        at,
        recording: 0,
    };
    to.extend((0..).zip(due).map(position));
}

fn push_event_positions(
    recordings: &VecDeque<Recording>,
    until: Option<Key>,
    part: u16,
    to: &mut Vec<ItemPosition>,
) {
    for (recording, runs) in (0..).zip(recordings) {
        let is_due = |(_, key, _): &(usize, Key, u64)| until.is_none_or(|until| *key < until);
        let position = |(at, key, ticket)| {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            ItemPosition { key, ticket, part, kind: Kind::Events, at, recording }
        };
        let before = to.len();
        to.extend(runs.runs().take_while(is_due).map(position));
        if to.len() == before && !runs.is_over() {
            break;
        }
    }
}

fn drain<T>(items: &mut Vec<DeferredItem<T>>, until: Option<Key>) {
    items.drain(..count_before(items, until));
}
