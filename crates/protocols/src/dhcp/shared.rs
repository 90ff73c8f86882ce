//! Transactions under way, over all connections.

use std::collections::HashMap;
use std::collections::VecDeque;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_event::Sinks;
use gannet_log::Logs;
use gannet_log::Set;
use gannet_log::Vector;

use super::fields::mac;
use super::message::Msg;
use super::message::Options;
use super::row::Dhcp;
use super::row::MessageType;
use crate::policy::software::DetectedSoftware;
use crate::weird::PacketWeird;
use crate::weird::Weirds;

/// Connections in one row, beyond which it is written at once.
pub const MAX_UIDS: usize = 10;

/// Messages in one row, beyond which it is written at once.
pub const MAX_MESSAGES: usize = 50;

/// Most open transactions; beyond, the oldest is dropped.
pub const MAX_TRANSACTIONS: usize = 100_000;

/// How often transactions are looked at, and how old one is when it is looked at first.
const LOOK_EVERY: Interval = Interval::from_secs(10);

/// A transaction is over when no message of it has arrived for longer than this …
const QUIET: Interval = Interval::from_secs(5);

/// … or when it has lasted longer than this.
const LONGEST: Interval = Interval::from_secs(30);

/// The transactions under way.
#[derive(Debug, Default)]
pub struct Shared {
    transactions: HashMap<u32, Transaction, KeyedHash>,
    /// Ordinals and ids as they began; those that have ended since are left until they come up.
    order: VecDeque<(u64, u32)>,
    /// Ordinal of the next transaction.
    next: u64,
    /// Time of the first packet, once there was one.
    first: Option<Time>,
    /// When to look next.
    next_due: Time,
    /// Software found in finished transactions.
    reported: Vec<Reported>,
}

/// Software of a DHCP client or server, by its own description.
#[derive(Debug)]
pub(crate) struct Reported {
    host: Addr,
    port: u16,
    kind: &'static str,
    text: Box<[u8]>,
}

impl Reported {
    pub(crate) fn found(&self) -> DetectedSoftware<'_> {
        let Self { host, port, kind, ref text } = *self;
        DetectedSoftware { host, port: Some(port), kind, text }
    }
}

#[derive(Debug)]
struct Transaction {
    /// Order of beginning.
    ordinal: u64,
    /// When it was begun, in whole seconds since the first packet: as precise as its age is taken.
    begun: Time,
    last: Time,
    /// The hardware address of the client's own messages, should no other source have it.
    hardware: Option<Vec<u8>>,
    row: Dhcp,
    /// Ports of client and server, as the last message had them.
    ports: [u16; 2],
    /// What client and server say they are, where that is logged.
    software: [Option<Box<[u8]>>; 2],
}

impl Transaction {
    fn write(mut self, logs: &mut Logs, reported: &mut Vec<Reported>) {
        self.row.mac = self.row.mac.take().or(self.hardware.take());
        logs.write(&self.row);
        self.report_software(reported);
    }

    fn report_software(&mut self, reported: &mut Vec<Reported>) {
        let (Some(client), Some(server)) = (self.row.assigned_addr, self.row.server_addr) else {
            return;
        };
        let hosts = [(client, "DHCP::CLIENT"), (server, "DHCP::SERVER")];
        for (i, (host, kind)) in hosts.into_iter().enumerate() {
            if let Some(text) = self.software[i].take()
                && host != BROADCAST
            {
                reported.push(Reported { host, port: self.ports[i], kind, text });
            }
        }
    }
}

impl Shared {
    /// Advances time to `now`: transactions that are over get their rows. To be called for every
    /// packet, before it is processed; costs a comparison if nothing is due.
    #[inline]
    pub fn expire(&mut self, logs: &mut Logs, now: Time) {
        if now >= self.next_due {
            self.look(logs, now);
        }
    }

    /// When [`expire`](Self::expire) has something to do next.
    pub(crate) fn next_due(&self) -> Time {
        self.next_due
    }

    /// Another shard has all DHCP state.
    pub(crate) fn never_expire(&mut self) {
        self.next_due = Time::MAX;
    }

    #[cold]
    fn look(&mut self, logs: &mut Logs, now: Time) {
        self.first.get_or_insert(now);
        self.next_due = now + LOOK_EVERY;
        let over = |t: &Transaction| {
            t.begun + LOOK_EVERY < now && (now - t.last > QUIET || now - t.row.ts > LONGEST)
        };
        let ids = self.transactions.iter().filter(|(_, t)| over(t)).map(|(id, _)| *id).collect();
        self.write(logs, ids);
    }

    /// The end of the input: every transaction gets its row.
    pub fn finish(&mut self, logs: &mut Logs) {
        let ids = self.transactions.keys().copied().collect();
        self.write(logs, ids);
    }

    /// Ends transactions, in the order in which they began.
    fn write(&mut self, logs: &mut Logs, ids: Vec<u32>) {
        let mut ended: Vec<_> =
            ids.into_iter().filter_map(|id| self.transactions.remove(&id)).collect();
        ended.sort_unstable_by_key(|t| t.ordinal);
        for transaction in ended {
            transaction.write(logs, &mut self.reported);
        }
    }

    /// Software found in finished transactions since the last call.
    pub(crate) fn take_reported(&mut self) -> Vec<Reported> {
        std::mem::take(&mut self.reported)
    }

    /// A transaction begins; the oldest makes room if there are too many.
    fn begin(&mut self, xid: u32, now: Time, uid: Uid) -> &mut Transaction {
        let first = *self.first.get_or_insert(now);
        let age = (now - first).as_nanos();
        let begun = first + Interval::from_secs(age / 1_000_000_000);
        self.next += 1;
        if self.order.len() > 2 * self.transactions.len() + 64 {
            self.order.retain(|(ordinal, id)| {
                self.transactions.get(id).is_some_and(|t| t.ordinal == *ordinal)
            });
        }
        self.order.push_back((self.next, xid));
        let row = Dhcp {
            ts: now,
            uids: Set(vec![uid]),
            client_addr: None,
            server_addr: None,
            mac: None,
            host_name: None,
            client_fqdn: None,
            domain: None,
            requested_addr: None,
            assigned_addr: None,
            lease_time: None,
            client_message: None,
            server_message: None,
            msg_types: Vector(Vec::new()),
            duration: Interval::ZERO,
        };
        let fresh = Transaction {
            ordinal: self.next,
            begun,
            last: now,
            hardware: None,
            row,
            ports: [68, 67],
            software: [None, None],
        };
        self.transactions.entry(xid).or_insert(fresh)
    }

    /// Adds a message to its transaction, which begins if there is none. Of more than `most` transactions the oldest ends.
    pub(super) fn add(
        &mut self,
        logs: &mut Sinks,
        weirds: &mut Weirds,
        most: usize,
        seen: Seen,
        message: Parts<'_>,
    ) {
        let xid = message.0.xid;
        let known = self.transactions.contains_key(&xid);
        if !known && self.transactions.len() >= most {
            let count = self.evict(logs).to_string();
            let name = "DHCP_max_tracked_transactions_exceeded";
            let odd = PacketWeird { name, addl: &count, source: Some("DHCP"), in_tunnel: false };
            weirds.packet(logs, seen.now, &odd);
        }
        let transaction = match known {
            true => self.transactions.get_mut(&xid),
            false => Some(self.begin(xid, seen.now, seen.uid)),
        };
        if let Some(transaction) = transaction {
            transaction.add(seen.now, seen.uid, seen.id, seen.from, message);
        }
    }

    /// Keeps the software that a message states for its sender.
    pub(super) fn keep_software(&mut self, seen: Seen, (msg, options): Parts<'_>) {
        let Seen { id, from, .. } = seen;
        if let Some(transaction) = self.transactions.get_mut(&msg.xid) {
            if is_client(id, from) {
                transaction.ports = [id.orig_p, id.resp_p];
            } else if from.is_orig() {
                transaction.ports = [id.resp_p, id.orig_p];
            }
            if let Some(text) = options.vendor_class {
                transaction.software[from.index()] = Some(text.into());
            }
        }
    }

    /// Ends the transaction of a message if its row has no room for more.
    pub(super) fn end_if_full(&mut self, logs: &mut Logs, xid: u32) {
        let Some(transaction) = self.transactions.get_mut(&xid) else { return };
        let row = &transaction.row;
        if row.uids.0.len() >= MAX_UIDS || row.msg_types.0.len() >= MAX_MESSAGES {
            logs.write(row);
            transaction.report_software(&mut self.reported);
            self.transactions.remove(&xid);
        }
    }

    /// Puts the oldest transaction into the log; returns how many there were.
    fn evict(&mut self, logs: &mut Logs) -> usize {
        let count = self.transactions.len();
        while let Some((ordinal, id)) = self.order.pop_front() {
            if self.transactions.get(&id).is_some_and(|t| t.ordinal == ordinal) {
                if let Some(t) = self.transactions.remove(&id) {
                    t.write(logs, &mut self.reported);
                }
                break;
            }
        }
        count
    }
}

/// Both parts of a message.
pub(super) type Parts<'a> = (&'a Msg<'a>, &'a Options<'a>);

/// When and where a message was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) uid: Uid,
    /// Its endpoints.
    pub(super) id: ConnId,
    pub(super) from: Dir,
}

/// Whether a message is a client's: a server that broadcasts is the originator of its connection, too.
fn is_client(id: ConnId, from: Dir) -> bool {
    from.is_orig() && (id.orig_h == ANY || id.orig_p == 68 || id.resp_p == 67)
}

const ANY: Addr = Addr::v4([0; 4]);
const BROADCAST: Addr = Addr::v4([255; 4]);

impl Transaction {
    fn add(&mut self, now: Time, uid: Uid, id: ConnId, from: Dir, (msg, options): Parts<'_>) {
        let row = &mut self.row;
        row.duration = now - row.ts;
        self.last = now;
        if !row.uids.0.contains(&uid) {
            row.uids.0.push(uid);
        }
        row.msg_types.0.push(MessageType(msg.m_type as u8));
        let client = is_client(id, from);
        let set = |field: &mut Option<Vec<u8>>, value: Option<&[u8]>| {
            if let Some(value) = value {
                *field = Some(value.to_vec());
            }
        };
        if client {
            set(&mut row.client_message, options.message);
            if id.orig_h != ANY && id.orig_h != BROADCAST {
                row.client_addr = Some(id.orig_h);
            }
            set(&mut row.host_name, options.host_name);
            set(&mut row.client_fqdn, options.client_fqdn.map(|fqdn| fqdn.domain_name));
            match options.client_id {
                Some(id) if id.hwtype == 1 => row.mac = Some(mac(id.hwaddr.bytes)),
                _ => self.hardware = Some(mac(msg.chaddr.bytes)),
            }
            row.requested_addr = options.addr_request.or(row.requested_addr);
        } else {
            set(&mut row.server_message, options.message);
            if msg.yiaddr != ANY {
                row.server_addr = Some(if from.is_orig() { id.orig_h } else { id.resp_h });
                row.assigned_addr = Some(msg.yiaddr);
            }
            row.mac.get_or_insert_with(|| mac(msg.chaddr.bytes));
            row.client_addr = row.client_addr.or(row.assigned_addr);
            set(&mut row.domain, options.domain_name);
            row.lease_time = options.lease.or(row.lease_time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::message;
    use super::*;
    use crate::Analyze;
    use crate::Env;
    use crate::Tag;
    use crate::dhcp::Analyzer;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn at(h: &mut Harness, seconds: f64) {
        h.now = Time::from_secs_f64(seconds);
        let now = h.now;
        let Env { dhcp, logs, .. } = &mut h.env;
        dhcp.expire(logs, now);
    }

    fn harness() -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Udp, 67);
        h.conn.id.orig_p = 68;
        let a = Analyzer::new(&mut h.cx());
        (h, a)
    }

    const REQUEST: &[u8] = b"\x35\x01\x03\x0c\x02me\x32\x04\x0a\x00\x00\x09";
    const ACK: &[u8] = b"\x35\x01\x05\x33\x04\x00\x00\x0e\x10\x0f\x03lan";

    #[test]
    fn a_lease() {
        let (mut h, mut a) = harness();
        at(&mut h, 100.0);
        a.datagram(&mut h.cx(), Dir::Orig, &message(7, [0; 4], REQUEST), 300);
        at(&mut h, 100.5);
        a.datagram(&mut h.cx(), Dir::Resp, &message(7, [10, 0, 0, 9], ACK), 300);
        assert!(h.confirmed(Tag::Dhcp));
        at(&mut h, 109.9);
        assert!(h.rows("dhcp").is_empty());
        at(&mut h, 110.1);
        let rows = h.rows("dhcp");
        assert_eq!(rows.len(), 1);
        let columns = [
            ("ts", "100.000000"),
            ("client_addr", "10.0.0.1"),
            ("server_addr", "192.0.2.1"),
            ("mac", "02:00:5e:10:00:01"),
            ("host_name", "me"),
            ("domain", "lan"),
            ("requested_addr", "10.0.0.9"),
            ("assigned_addr", "10.0.0.9"),
            ("lease_time", "3600.000000"),
            ("msg_types", "REQUEST,ACK"),
            ("duration", "0.500000"),
        ];
        for (column, value) in columns {
            assert_eq!(rows[0][column], value, "{column}");
        }
    }

    #[test]
    fn what_goes_on_waits() {
        let (mut h, mut a) = harness();
        let request = message(7, [0; 4], REQUEST);
        for second in [0, 4, 8, 12, 16, 20, 24, 28, 32] {
            at(&mut h, f64::from(1000 + second));
            a.datagram(&mut h.cx(), Dir::Orig, &request, 300);
        }
        assert!(h.rows("dhcp").is_empty());
        // Last message four seconds ago, but it lasts too long.
        at(&mut h, 1036.0);
        assert_eq!(h.rows("dhcp")[0]["duration"], "32.000000");
    }

    #[test]
    fn the_oldest_makes_room() {
        let (mut h, mut a) = harness();
        let mut request = message(0, [0; 4], REQUEST);
        for xid in 0..=MAX_TRANSACTIONS as u32 {
            request[4..8].copy_from_slice(&xid.to_be_bytes());
            h.now += Interval::from_micros(1);
            a.datagram(&mut h.cx(), Dir::Orig, &request, 300);
        }
        assert_eq!(h.rows("dhcp")[0]["ts"], "1.000001");
        assert_eq!(h.env.dhcp.transactions.len(), MAX_TRANSACTIONS);
    }

    #[test]
    fn limits_and_the_end() {
        let (mut h, mut a) = harness();
        at(&mut h, 1.0);
        let request = message(7, [0; 4], REQUEST);
        for _ in 0..=MAX_MESSAGES {
            a.datagram(&mut h.cx(), Dir::Orig, &request, 300);
        }
        let rows = h.rows("dhcp");
        assert_eq!((rows.len(), rows[0]["mac"].as_str()), (1, "-"));
        let Env { dhcp, logs, .. } = &mut h.env;
        dhcp.finish(logs);
        let rows = h.rows("dhcp");
        assert_eq!((rows.len(), rows[1]["mac"].as_str()), (2, "02:00:5e:10:00:01"));
        assert_eq!(rows[1]["msg_types"], "REQUEST");
    }
}
