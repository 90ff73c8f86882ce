use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use super::message::Kind;
use super::message::Message;
use crate::Context;

gannet_log::row! {
    /// One row for each SNMP connection.
    pub struct SnmpRow<'a> = "snmp" {
        /// When the first message was seen.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Time from the first to the last message.
        duration: Interval = "duration",
        /// The first message's version.
        version: &'static str = "version",
        /// The first community, or user of version 3.
        community: Option<&'a [u8]> = "community",
        /// Variables asked for one by one.
        get_requests: u64 = "get_requests",
        /// Variables asked for in bulk.
        get_bulk_requests: u64 = "get_bulk_requests",
        /// Variables returned.
        get_responses: u64 = "get_responses",
        /// Variables set.
        set_requests: u64 = "set_requests",
        /// System description of the responder.
        display_string: Option<&'a [u8]> = "display_string",
        /// Start time of the responder.
        up_since: Option<Time> = "up_since",
    }
}

/// The data of a connection's row.
#[derive(Debug)]
pub(super) struct Session {
    ts: Time,
    last: Time,
    version: &'static str,
    community: Option<Vec<u8>>,
    get: u64,
    get_bulk: u64,
    responses: u64,
    set: u64,
    description: Option<Vec<u8>>,
    up_since: Option<Time>,
}

impl Session {
    pub(super) fn new(now: Time, version: u64) -> Self {
        let version = match version {
            0 => "1",
            1 => "2c",
            3 => "3",
            _ => "unknown",
        };
        Self {
            ts: now,
            last: now,
            version,
            community: None,
            get: 0,
            get_bulk: 0,
            responses: 0,
            set: 0,
            description: None,
            up_since: None,
        }
    }

    pub(super) fn message(&mut self, now: Time, m: &Message<'_>) {
        self.last = now;
        if self.community.is_none() {
            self.community = m.community.map(<[u8]>::to_vec);
        }
        match m.kind {
            Some(Kind::Get) => self.get += m.bindings,
            Some(Kind::GetBulk) => self.get_bulk += m.bindings,
            Some(Kind::Set) => self.set += m.bindings,
            Some(Kind::Response) => {
                self.responses += m.bindings;
                if let Some(d) = m.description {
                    self.description = Some(d.to_vec());
                }
                if let Some(hundredths) = m.up_time {
                    let ns = i64::try_from(hundredths).unwrap_or(i64::MAX);
                    let up = Interval::from_nanos(ns.saturating_mul(10_000_000));
                    self.up_since = Some(now - up);
                }
            }
            Some(Kind::Other) | None => {}
        }
    }

    pub(super) fn write(&self, cx: &mut Context<'_>) {
        cx.log(&SnmpRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            duration: self.last - self.ts,
            version: self.version,
            community: self.community.as_deref(),
            get_requests: self.get,
            get_bulk_requests: self.get_bulk,
            get_responses: self.responses,
            set_requests: self.set,
            display_string: self.description.as_deref(),
            up_since: self.up_since,
        });
    }
}
