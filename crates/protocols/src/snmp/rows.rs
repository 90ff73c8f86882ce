use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use super::events::*;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each SNMP connection.
    pub struct SnmpRow<'a> = "snmp" {
        /// Time of the first message.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Time from the first to the last message.
        duration: Interval = "duration",
        /// The first message's version.
        version: &'static str = "version",
        /// The first community, or user of version 3.
        community: Option<&'a [u8]> = "community",
        /// Number of variables requested individually.
        get_requests: u64 = "get_requests",
        /// Number of variables requested in bulk.
        get_bulk_requests: u64 = "get_bulk_requests",
        /// Number of variables returned.
        get_responses: u64 = "get_responses",
        /// Number of variables set.
        set_requests: u64 = "set_requests",
        /// System description of the responder.
        display_string: Option<&'a [u8]> = "display_string",
        /// Start time of the responder.
        up_since: Option<Time> = "up_since",
    }
}

/// The row of a connection, once it has a message.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Session>);

impl Rows {
    /// Writes the row at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(session) = self.0.take() {
            session.write(cx);
        }
    }

    /// Updates the row with a message of any kind.
    fn message(&mut self, now: Time, header: &Header<'_>) -> &mut Session {
        let session = self.0.get_or_insert_with(|| Session::new(now, header.version));
        session.last = now;
        if session.community.is_none() {
            session.community = header.community().map(<[u8]>::to_vec);
        }
        session
    }
}

/// Handles messages of which only header and time are used.
macro_rules! header_only {
    ($($event:ident)*) => { $(
        impl OnEvent<$event<'_>> for Rows {
            fn on_event(&mut self, cx: &mut Context<'_>, event: &$event<'_>) {
                self.message(cx.now, &event.header);
            }
        }
    )* };
}

header_only! {
    SnmpTrap SnmpTrapV2 SnmpInformRequest SnmpReport SnmpUnknownPdu SnmpUnknownScopedPdu SnmpEncryptedPdu
}

impl OnEvent<SnmpGetRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SnmpGetRequest<'_>) {
        self.message(cx.now, &event.header).get += event.pdu.bindings.count;
    }
}

impl OnEvent<SnmpGetNextRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SnmpGetNextRequest<'_>) {
        self.message(cx.now, &event.header).get += event.pdu.bindings.count;
    }
}

impl OnEvent<SnmpGetBulkRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SnmpGetBulkRequest<'_>) {
        self.message(cx.now, &event.header).get_bulk += event.pdu.bindings.count;
    }
}

impl OnEvent<SnmpSetRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SnmpSetRequest<'_>) {
        self.message(cx.now, &event.header).set += event.pdu.bindings.count;
    }
}

impl OnEvent<SnmpResponse<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SnmpResponse<'_>) {
        let (session, bindings) = (self.message(cx.now, &event.header), &event.pdu.bindings);
        session.responses += bindings.count;
        if let Some(description) = bindings.description {
            session.description = Some(description.to_vec());
        }
        if let Some(hundredths) = bindings.up_time {
            let ns = i64::try_from(hundredths).unwrap_or(i64::MAX);
            let up = Interval::from_nanos(ns.saturating_mul(10_000_000));
            session.up_since = Some(cx.now - up);
        }
    }
}

/// The fields of a row.
#[derive(Debug)]
struct Session {
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
    fn new(now: Time, version: u64) -> Self {
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

    fn write(&self, cx: &mut Context<'_>) {
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
