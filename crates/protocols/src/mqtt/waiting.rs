use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;
use std::collections::HashMap;

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_log::Enum;
use gannet_log::Key;
use gannet_log::Vector;

use super::rows::PublishRow;
use super::rows::Quality;
use super::rows::SubscribeRow;
use crate::Env;
use crate::context;

/// How long a delivery or subscription may wait for its answer.
const PATIENCE: Interval = Interval::from_secs(5);
/// How often those are looked for that waited too long.
const ROUND: Interval = Interval::from_secs(10);

/// What waits for an answer, on all connections.
///
/// What waited too long is looked for by the first packet, of whatever connection, that comes ten seconds
/// after the look before: as in Zeek it is that packet's time that counts.
#[derive(Default)]
pub struct Shared {
    waiting: HashMap<Uid, Waiting, KeyedHash>,
    /// When each is looked through next, and in which order; some may be gone.
    rounds: BinaryHeap<Reverse<(Time, u64, Uid)>>,
    /// Time of the first packet, once there was one.
    first: Option<Time>,
}

/// What waits on one connection.
pub(super) struct Waiting {
    pub(super) uid: Uid,
    pub(super) id: ConnId,
    pub(super) publish: BTreeMap<u16, Delivery>,
    pub(super) subscribe: BTreeMap<u16, Subscription>,
}

/// A message on its way.
pub(super) struct Delivery {
    pub(super) ts: Time,
    pub(super) from: Dir,
    pub(super) retain: bool,
    pub(super) quality: u8,
    pub(super) topic: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) len: usize,
    pub(super) rec: bool,
    pub(super) rel: bool,
}

/// Topics that are asked for, or no longer.
pub(super) struct Subscription {
    pub(super) ts: Time,
    pub(super) topics: Vec<Vec<u8>>,
    /// Unset for the end of subscriptions.
    pub(super) qualities: Option<Vec<u8>>,
}

impl Shared {
    /// What waits on a connection; it is looked through from `now` on.
    pub(super) fn of(&mut self, uid: Uid, id: ConnId, now: Time) -> &mut Waiting {
        let rounds = &mut self.rounds;
        self.waiting.entry(uid).or_insert_with(|| {
            rounds.push(Reverse((now + ROUND, tie(uid), uid)));
            Waiting { uid, id, publish: BTreeMap::new(), subscribe: BTreeMap::new() }
        })
    }

    /// A connection is over: what still waits is lost with it.
    pub(crate) fn forget(&mut self, uid: Uid) {
        if !self.waiting.is_empty() {
            self.waiting.remove(&uid);
        }
    }

    /// When there is something to do next.
    pub(crate) fn next_due(&self) -> Time {
        if self.first.is_none() {
            return Time::ZERO;
        }
        self.rounds.peek().map_or(Time::MAX, |Reverse((due, ..))| *due)
    }

    /// Looks through a connection that is due by `now`, by the time of the next `packet`.
    fn round(&mut self, now: Time, packet: Time) -> Option<(Time, Waiting)> {
        let first = *self.first.get_or_insert(packet);
        // As precise as Zeek has it: whole seconds since the first packet.
        let late = |ts: Time| {
            let age = Interval::from_secs((ts - first).as_nanos() / 1_000_000_000);
            first + age + PATIENCE < packet
        };
        while let Some(Reverse((due, tie, uid))) = self.rounds.peek().copied()
            && due <= now
        {
            self.rounds.pop();
            let Some(waiting) = self.waiting.get_mut(&uid) else { continue };
            self.rounds.push(Reverse((packet + ROUND, tie, uid)));
            let publish = waiting.publish.extract_if(.., |_, d| late(d.ts)).collect();
            let subscribe = waiting.subscribe.extract_if(.., |_, s| late(s.ts)).collect();
            return Some((due, Waiting { uid, id: waiting.id, publish, subscribe }));
        }
        None
    }
}

/// Order of connections that are due at the same time: among files that are, which come before
/// connections that end.
fn tie(uid: Uid) -> u64 {
    uid.bits() >> 1
}

/// Logs what waited too long, where it is time to look for that.
pub(crate) fn expire(env: &mut Env, now: Time, packet: Time) {
    while let Some((due, late)) = env.mqtt.round(now, packet) {
        if let Some(key) = env.logs.key() {
            env.logs.set_key(Key { due, tie: tie(late.uid), ..key });
        }
        for delivery in late.publish.values() {
            delivery.write(env, packet, (late.uid, late.id), "incomplete_qos");
        }
        for subscription in late.subscribe.values() {
            subscription.write(env, packet, (late.uid, late.id), None, false);
        }
    }
}

impl Delivery {
    pub(super) fn write(
        &self,
        env: &mut Env,
        now: Time,
        (uid, id): (Uid, ConnId),
        status: &'static str,
    ) {
        let row = PublishRow {
            ts: self.ts,
            uid,
            id,
            from_client: self.from.is_orig(),
            retain: self.retain,
            qos: Quality(self.quality),
            status,
            topic: &self.topic,
            payload: &self.payload,
            payload_len: self.len as u64,
        };
        context::log(env, now, &row);
    }
}

impl Subscription {
    pub(super) fn write(
        &self,
        env: &mut Env,
        now: Time,
        (uid, id): (Uid, ConnId),
        granted: Option<u8>,
        ack: bool,
    ) {
        let action = if self.qualities.is_some() { "MQTT::SUBSCRIBE" } else { "MQTT::UNSUBSCRIBE" };
        let row = SubscribeRow {
            ts: self.ts,
            uid,
            id,
            action: Enum(action),
            topics: Vector(self.topics.iter().map(|t| &t[..]).collect()),
            qos_levels: self.qualities.clone().map(Vector),
            granted_qos_level: granted,
            ack,
        };
        context::log(env, now, &row);
    }
}
