//! The current transactions of all connections.

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

/// Maximum number of connections in one row, which is written when it reaches this number.
pub const MAX_UIDS: usize = 10;

/// Maximum number of messages in one row, which is written when it reaches this number.
pub const MAX_MESSAGES: usize = 50;

/// Default maximum number of current transactions; beyond it, the row of the oldest is written.
pub const MAX_TRANSACTIONS: usize = 100_000;

/// Interval between checks for expired transactions, and minimum age of a transaction that expires.
const CHECK_INTERVAL: Interval = Interval::from_secs(10);

/// A transaction expires when no message of it has arrived for longer than this …
const MAX_IDLE: Interval = Interval::from_secs(5);

/// … or when it has lasted longer than this.
const MAX_DURATION: Interval = Interval::from_secs(30);

/// The current transactions, by transaction ID.
#[derive(Debug, Default)]
pub struct Shared {
    transactions: HashMap<u32, Transaction, KeyedHash>,
    /// Ordinals and IDs of transactions in order of their start. Entries of ended transactions are removed lazily.
    order: VecDeque<(u64, u32)>,
    /// Ordinal of the next transaction.
    next: u64,
    /// Time of the first packet, if any.
    first: Option<Time>,
    /// Time of the next check for expired transactions.
    next_check: Time,
    /// Software detected in finished transactions.
    software: Vec<ClientOrServerSoftware>,
}

/// Software of a DHCP client or server, from its vendor class option.
#[derive(Debug)]
pub(crate) struct ClientOrServerSoftware {
    host: Addr,
    port: u16,
    kind: &'static str,
    text: Box<[u8]>,
}

impl ClientOrServerSoftware {
    pub(crate) fn detected(&self) -> DetectedSoftware<'_> {
        let Self { host, port, kind, ref text } = *self;
        DetectedSoftware { host, port: Some(port), kind, text }
    }
}

#[derive(Debug)]
struct Transaction {
    /// Number of transactions that began before, plus one.
    ordinal: u64,
    /// Time of its start, rounded down to whole seconds since the first packet; used to compute its age.
    started: Time,
    /// Time of its last message.
    last: Time,
    /// Hardware address in the header of the client's messages, used unless a client identifier or the server has it.
    hardware: Option<Vec<u8>>,
    row: Dhcp,
    /// Ports of client and server in the last message.
    ports: [u16; 2],
    /// Vendor class of client and server, if software is logged.
    software: [Option<Box<[u8]>>; 2],
}

impl Transaction {
    fn write(mut self, logs: &mut Logs, software: &mut Vec<ClientOrServerSoftware>) {
        self.row.mac = self.row.mac.take().or(self.hardware.take());
        logs.write(&self.row);
        self.report_software(software);
    }

    fn report_software(&mut self, software: &mut Vec<ClientOrServerSoftware>) {
        let (Some(client), Some(server)) = (self.row.assigned_addr, self.row.server_addr) else {
            return;
        };
        let hosts = [(client, "DHCP::CLIENT"), (server, "DHCP::SERVER")];
        for (i, (host, kind)) in hosts.into_iter().enumerate() {
            if let Some(text) = self.software[i].take()
                && host != BROADCAST
            {
                software.push(ClientOrServerSoftware { host, port: self.ports[i], kind, text });
            }
        }
    }
}

impl Shared {
    /// Advances time to `now` and writes the rows of expired transactions. Must be called for every
    /// packet, before it is processed; costs one comparison if no check is due.
    #[inline]
    pub fn expire(&mut self, logs: &mut Logs, now: Time) {
        if now >= self.next_check {
            self.check(logs, now);
        }
    }

    /// The time at which [`expire`](Self::expire) checks next.
    pub(crate) fn next_due(&self) -> Time {
        self.next_check
    }

    /// Disables expiry: another shard has all DHCP state.
    pub(crate) fn never_expire(&mut self) {
        self.next_check = Time::MAX;
    }

    #[cold]
    /// Ends the transactions that have expired.
    fn check(&mut self, logs: &mut Logs, now: Time) {
        self.first.get_or_insert(now);
        self.next_check = now + CHECK_INTERVAL;
        let is_expired = |t: &Transaction| {
            t.started + CHECK_INTERVAL < now
                && (now - t.last > MAX_IDLE || now - t.row.ts > MAX_DURATION)
        };
        let ids =
            self.transactions.iter().filter(|(_, t)| is_expired(t)).map(|(id, _)| *id).collect();
        self.end(logs, ids);
    }

    /// Writes the rows of all transactions at the end of the input.
    pub fn finish(&mut self, logs: &mut Logs) {
        let ids = self.transactions.keys().copied().collect();
        self.end(logs, ids);
    }

    /// Ends transactions in the order of their start.
    fn end(&mut self, logs: &mut Logs, ids: Vec<u32>) {
        let mut ended: Vec<_> =
            ids.into_iter().filter_map(|id| self.transactions.remove(&id)).collect();
        ended.sort_unstable_by_key(|t| t.ordinal);
        for transaction in ended {
            transaction.write(logs, &mut self.software);
        }
    }

    /// Takes the software that was detected in finished transactions since the last call.
    pub(crate) fn take_software(&mut self) -> Vec<ClientOrServerSoftware> {
        std::mem::take(&mut self.software)
    }

    /// Starts a transaction.
    fn start(&mut self, xid: u32, now: Time, uid: Uid) -> &mut Transaction {
        let first = *self.first.get_or_insert(now);
        let age = (now - first).as_nanos();
        let started = first + Interval::from_secs(age / 1_000_000_000);
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
        let transaction = Transaction {
            ordinal: self.next,
            started,
            last: now,
            hardware: None,
            row,
            ports: [68, 67],
            software: [None, None],
        };
        self.transactions.entry(xid).or_insert(transaction)
    }

    /// Adds a message to its transaction, which is created if necessary. If there are `max` transactions already, the oldest
    /// is evicted.
    pub(super) fn add(
        &mut self,
        logs: &mut Sinks,
        weirds: &mut Weirds,
        max: usize,
        seen: Seen,
        message: Parts<'_>,
    ) {
        let xid = message.0.xid;
        let known = self.transactions.contains_key(&xid);
        if !known && self.transactions.len() >= max {
            let count = self.evict(logs).to_string();
            let name = "DHCP_max_tracked_transactions_exceeded";
            let weird = PacketWeird { name, addl: &count, source: Some("DHCP"), in_tunnel: false };
            weirds.packet(logs, seen.now, &weird);
        }
        let transaction = match known {
            true => self.transactions.get_mut(&xid),
            false => Some(self.start(xid, seen.now, seen.uid)),
        };
        if let Some(transaction) = transaction {
            transaction.add(seen.now, seen.uid, seen.id, seen.from, message);
        }
    }

    /// Records the software of the sender that a message names.
    pub(super) fn record_software(&mut self, seen: Seen, (msg, options): Parts<'_>) {
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

    /// Ends the transaction of a message if its row is full.
    pub(super) fn end_if_full(&mut self, logs: &mut Logs, xid: u32) {
        let Some(transaction) = self.transactions.get_mut(&xid) else { return };
        let row = &transaction.row;
        if row.uids.0.len() >= MAX_UIDS || row.msg_types.0.len() >= MAX_MESSAGES {
            logs.write(row);
            transaction.report_software(&mut self.software);
            self.transactions.remove(&xid);
        }
    }

    /// Ends the oldest transaction. Returns the number of transactions before.
    fn evict(&mut self, logs: &mut Logs) -> usize {
        let count = self.transactions.len();
        while let Some((ordinal, id)) = self.order.pop_front() {
            if self.transactions.get(&id).is_some_and(|t| t.ordinal == ordinal) {
                if let Some(t) = self.transactions.remove(&id) {
                    t.write(logs, &mut self.software);
                }
                break;
            }
        }
        count
    }
}

/// The fixed part and the options of a message.
pub(super) type Parts<'a> = (&'a Msg<'a>, &'a Options<'a>);

/// Time, connection and direction of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) uid: Uid,
    /// Endpoints of the connection.
    pub(super) id: ConnId,
    pub(super) from: Dir,
}

/// Whether a client sent a message. The direction alone does not tell: a server that broadcasts is an originator, too.
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
    fn active_transactions_do_not_expire() {
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
    fn the_oldest_is_evicted() {
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
