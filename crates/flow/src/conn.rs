use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::LinkState;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;

use crate::History;

/// The traffic that one side of a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of IP packets, headers included.
    pub ip_bytes: u64,
    /// Payload bytes: UDP and ICMP by their length fields, TCP by sequence numbers.
    pub payload: u64,
    /// Packets that passed the header and checksum checks.
    pub packets: u32,
}

/// The lower halves of [`Counts`] in twelve bytes, because every live connection stores two of
/// them. The upper halves, which few connections need, are in [`RareFacts`].
#[derive(Clone, Copy, Debug, Default)]
struct LowHalves {
    ip_bytes: u32,
    payload: u32,
    packets: u32,
}

/// The upper halves of the counters in [`LowHalves`].
#[derive(Clone, Copy, Debug, Default)]
struct HighHalves {
    ip_bytes: u32,
    payload: u32,
}

/// Splits a number into its halves.
fn halves(n: u64) -> (u32, u32) {
    ((n >> 32) as u32, n as u32)
}

/// Joins the halves of a number.
fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A short ordered list of at most six protocol numbers.
#[derive(Clone, Debug, Default)]
pub struct Services {
    len: u8,
    inline: [u8; 6],
}

impl Services {
    /// The protocols in order.
    pub fn as_slice(&self) -> &[u8] {
        &self.inline[..usize::from(self.len)]
    }

    /// Appends a protocol unless the list contains it or is full.
    pub fn insert(&mut self, service: u8) {
        if !self.contains(service) && usize::from(self.len) < self.inline.len() {
            self.inline[usize::from(self.len)] = service;
            self.len += 1;
        }
    }

    /// Removes a protocol.
    pub fn remove(&mut self, service: u8) {
        if let Some(at) = self.as_slice().iter().position(|s| *s == service) {
            self.inline.copy_within(at + 1..usize::from(self.len), at);
            self.len -= 1;
        }
    }

    /// Whether the list contains a protocol.
    pub fn contains(&self, service: u8) -> bool {
        self.as_slice().contains(&service)
    }
}

/// The facts of a connection that every stage may read: endpoints, times, counts.
///
/// Transport state (sequence numbers, reassembly) is in [`Tcp`](crate::tcp::Tcp), protocol state in
/// the analyzers.
#[derive(Clone, Debug)]
pub struct Conn {
    /// The connection's uid in the logs.
    pub uid: Uid,
    /// Originator and responder as currently known; a flip exchanges them.
    pub id: ConnId,
    /// Transport.
    pub proto: Proto,
    /// IP protocol number.
    pub ip_proto: u8,
    /// Bits for history letters that count once, and for weirds that are reported once.
    pub seen: u32,
    /// Time of the first packet.
    pub start: Time,
    /// Time of the last packet that was counted.
    pub last: Time,
    timeout: u16,
    /// Seconds between periodic checks for inactivity: the first packet this long after the
    /// previous check triggers one. 0 means a single check after the idle timeout.
    pub check_every: u16,
    low: [LowHalves; 2],
    /// The history of the connection.
    pub history: History,
    /// Confirmed protocols, in order of confirmation.
    pub services: Services,
    facts: Option<Box<Facts>>,
    /// Flags, one bit each: see [`mark`].
    marks: u8,
    /// Number of files that the connection carried.
    pub files: u32,
    /// [`size_class`] of the largest table that analyzers of the connection had.
    tables: u8,
}

/// Size classes: 0, 1, 2 to 3, up to 7, up to 15 and so on; the last one is unbounded.
pub const SIZE_CLASSES: usize = 16;

/// The class of a size.
pub fn size_class(size: usize) -> usize {
    let bits = usize::BITS - size.leading_zeros();
    if size < 4 { size } else { (bits as usize + 1).min(SIZE_CLASSES - 1) }
}

/// Bits of [`Conn::marks`].
mod mark {
    pub(super) const ONE_WAY: u8 = 1;
    pub(super) const PARTIAL: u8 = 1 << 1;
    pub(super) const GLOBAL: u8 = 1 << 2;
    pub(super) const GAP: u8 = 1 << 3;
    pub(super) const SERVED: u8 = 1 << 4;
    /// For the originator; the next bit is for the responder.
    pub(super) const MATCHED: u8 = 1 << 5;
    pub(super) const UNMATCHED: u8 = 1 << 7;
}

/// Facts that only connections with a listener, or few connections, have.
#[derive(Clone, Debug, Default)]
struct Facts {
    watched: Watched,
    rare: Option<Box<RareFacts>>,
}

/// Facts that few connections have.
#[derive(Clone, Debug, Default)]
struct RareFacts {
    tunnel_parents: Vec<Uid>,
    vlans: u32,
    failed: Services,
    high: [HighHalves; 2],
    /// IPv6 flow label of each side's last packet, by [`Dir::index`].
    flow_labels: [Option<u32>; 2],
}

/// Facts that are recorded only for listeners; nearly all connections have them then.
#[derive(Clone, Debug, Default)]
struct Watched {
    link: LinkState,
    analyzers: Numbers,
}

/// Instance numbers of a connection's analyzers, if they are numbered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers {
    /// The first number; 0 if analyzers are not numbered.
    pub first: u64,
    /// Whether the protocol detector (PIA) of the transport was started.
    pub detects: bool,
}

impl Conn {
    /// A connection started by its first packet.
    #[inline]
    pub fn new(uid: Uid, id: ConnId, proto: Proto, ip_proto: u8, start: Time) -> Self {
        Self {
            uid,
            id,
            proto,
            ip_proto,
            seen: 0,
            start,
            last: start,
            timeout: TIMEOUT,
            check_every: 0,
            low: [LowHalves::default(); 2],
            history: History::default(),
            services: Services::default(),
            facts: None,
            marks: 0,
            files: 0,
            tables: 0,
        }
    }

    /// Records that signatures matched against a packet of a side.
    pub fn set_matched(&mut self, side: Dir) {
        self.marks |= mark::MATCHED << side.index();
    }

    /// Whether signatures matched against a packet of a side.
    pub fn is_matched(&self, side: Dir) -> bool {
        self.marks & mark::MATCHED << side.index() != 0
    }

    /// Records that signatures do not match against further data of the connection.
    pub fn set_unmatched(&mut self) {
        self.marks |= mark::UNMATCHED;
    }

    /// Whether signatures do not match against further data of the connection.
    pub fn is_unmatched(&self) -> bool {
        self.marks & mark::UNMATCHED != 0
    }

    /// Records that signature conditions on headers are never tested for a side, because its SYN
    /// was not captured.
    ///
    /// Zeek tests these conditions once, with the first packet of a side, before it matches the
    /// side's data. A side whose SYN was missed counts as tested: no signature with a condition on
    /// headers matches its data, and signatures that detect protocols have one.
    pub fn set_side_unmatched(&mut self, side: Dir) {
        self.seen |= 1 << (UNMATCHED_BIT + 16 * side.index() as u32);
    }

    /// Whether the data of a side is [never matched](Self::set_side_unmatched).
    #[inline]
    pub fn is_side_unmatched(&self, side: Dir) -> bool {
        self.seen & 1 << (UNMATCHED_BIT + 16 * side.index() as u32) != 0
    }

    /// Records that an analyzer has a table of `len` entries, such as pending requests.
    #[inline]
    pub fn note_table(&mut self, len: usize) {
        self.tables = self.tables.max(size_class(len) as u8);
    }

    /// The [class](size_class) of the largest table that analyzers of the connection had.
    pub fn largest_table(&self) -> usize {
        usize::from(self.tables)
    }

    #[inline]
    fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    #[inline]
    fn set(&mut self, mark: u8, on: bool) {
        self.marks = if on { self.marks | mark } else { self.marks & !mark };
    }

    /// Whether the connection is one-way traffic, which is part of its key.
    #[inline]
    pub fn is_one_way(&self) -> bool {
        self.has(mark::ONE_WAY)
    }

    pub(crate) fn set_one_way(&mut self, is: bool) {
        self.set(mark::ONE_WAY, is);
    }

    /// Whether the handshake of a TCP connection was not seen: some protocols are not detected
    /// then.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.has(mark::PARTIAL)
    }

    /// Sets whether the handshake was not seen.
    pub fn set_partial(&mut self, is: bool) {
        self.set(mark::PARTIAL, is);
    }

    /// Whether the global shard owns the connection: it announces connections between other hosts,
    /// or was announced.
    #[inline]
    pub fn is_global(&self) -> bool {
        self.has(mark::GLOBAL)
    }

    /// Sets whether the global shard owns the connection.
    pub fn set_global(&mut self, is: bool) {
        self.set(mark::GLOBAL, is);
    }

    /// Whether a part of a TCP stream is missing: later protocol violations may result from the
    /// gap.
    #[inline]
    pub fn has_gap(&self) -> bool {
        self.has(mark::GAP)
    }

    pub(crate) fn set_gap(&mut self) {
        self.set(mark::GAP, true);
    }

    /// Whether the responder's service was logged.
    #[inline]
    pub fn was_served(&self) -> bool {
        self.has(mark::SERVED)
    }

    /// Records that the responder's service was logged.
    pub fn set_served(&mut self) {
        self.set(mark::SERVED, true);
    }

    /// Idle time after which the connection is removed.
    #[inline]
    pub fn timeout(&self) -> Interval {
        Interval::from_secs(i64::from(self.timeout))
    }

    /// Sets the [`timeout`](Self::timeout), in seconds.
    #[inline]
    pub fn set_timeout(&mut self, seconds: u16) {
        self.timeout = seconds;
    }

    /// Replaces periodic checks by a single one after the idle timeout.
    pub fn check_when_idle(&mut self) {
        self.check_every = 0;
        self.timeout = TIMEOUT;
    }

    /// Time of the next check for inactivity, given the time of the last packet and the current
    /// time.
    #[inline]
    pub fn next_check(&self, last: Time, now: Time) -> Time {
        match self.check_every {
            0 => last + self.timeout(),
            every => now + Interval::from_secs(i64::from(every)),
        }
    }

    fn rare(&self) -> Option<&RareFacts> {
        self.facts.as_ref()?.rare.as_deref()
    }

    fn rare_mut(&mut self) -> &mut RareFacts {
        self.facts.get_or_insert_default().rare.get_or_insert_default()
    }

    /// Uids of the tunnels that carried the connection, in the order of their first packets.
    pub fn tunnel_parents(&self) -> &[Uid] {
        self.rare().map_or(&[], |r| &r.tunnel_parents)
    }

    /// Records a tunnel that carried the connection.
    pub fn add_tunnel_parent(&mut self, uid: Uid) {
        let parents = &mut self.rare_mut().tunnel_parents;
        if !parents.contains(&uid) {
            parents.push(uid);
        }
    }

    /// The VLAN tags that distinguish the connection from others, packed into a number; 0 without
    /// tags.
    #[inline]
    pub fn vlans(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.vlans)
    }

    /// Sets the VLAN tags that distinguish the connection.
    pub fn set_vlans(&mut self, vlans: u32) {
        if vlans != 0 {
            self.rare_mut().vlans = vlans;
        }
    }

    /// Sets the link layer data; its addresses are those of originator and responder.
    pub fn set_link(&mut self, link: LinkState) {
        if link != LinkState::default() {
            self.facts.get_or_insert_default().watched.link = link;
        }
    }

    /// The link layer data, or the default value if it was not set.
    pub fn link(&self) -> LinkState {
        self.facts.as_ref().map_or_else(LinkState::default, |facts| facts.watched.link)
    }

    /// Sets the instance numbers of the analyzers.
    pub fn set_numbers(&mut self, numbers: Numbers) {
        self.facts.get_or_insert_default().watched.analyzers = numbers;
    }

    /// The instance numbers of the analyzers.
    pub fn numbers(&self) -> Numbers {
        self.facts.as_ref().map_or_else(Numbers::default, |facts| facts.watched.analyzers)
    }

    /// Records the IPv6 flow label of a packet; returns the label of that side's last packet if it differs.
    pub fn change_flow_label(&mut self, from: Dir, label: u32) -> Option<u32> {
        let known = &mut self.rare_mut().flow_labels[from.index()];
        known.replace(label).filter(|&old| old != label)
    }

    /// Like [`Self::change_flow_label`], without a result: a label of 0 allocates nothing.
    pub fn set_flow_label(&mut self, from: Dir, label: u32) {
        if label != 0 || self.rare().is_some() {
            self.rare_mut().flow_labels[from.index()] = Some(label);
        }
    }

    /// The IPv6 flow label of a side's last packet; 0 if none was recorded.
    pub fn flow_label(&self, from: Dir) -> u32 {
        self.rare().and_then(|rare| rare.flow_labels[from.index()]).unwrap_or_default()
    }

    /// Records that a confirmed protocol failed; returns whether this is the first failure.
    pub fn note_failed(&mut self, service: u8) -> bool {
        let failed = &mut self.rare_mut().failed;
        let first = !failed.contains(service);
        failed.insert(service);
        first
    }

    /// Appends a letter to the history, in upper case for the originator.
    #[inline]
    pub fn note(&mut self, from: Dir, letter: u8) {
        self.history.push(match from {
            Dir::Orig => letter,
            Dir::Resp => letter.to_ascii_lowercase(),
        });
    }

    /// Whether a letter was [noted once](Self::note_once).
    #[inline]
    pub fn has_noted(&self, from: Dir, bit: u32) -> bool {
        self.seen >> (bit + 16 * from.index() as u32) & 1 != 0
    }

    /// Appends a letter to the history unless it was noted before; returns whether it was. `bit`
    /// (below 16) is the originator's bit in [`seen`](Self::seen).
    #[inline]
    pub fn note_once(&mut self, from: Dir, bit: u32, letter: u8) -> bool {
        let before = self.has_noted(from, bit);
        if !before {
            self.seen |= 1 << (bit + 16 * from.index() as u32);
            self.note(from, letter);
        }
        before
    }

    /// The traffic that a side sent.
    #[inline]
    pub fn sent(&self, side: Dir) -> Counts {
        let low = self.low[side.index()];
        let high = self.rare().map_or(HighHalves::default(), |r| r.high[side.index()]);
        Counts {
            ip_bytes: join(high.ip_bytes, low.ip_bytes),
            payload: join(high.payload, low.payload),
            packets: low.packets,
        }
    }

    /// Counts a packet with the total length of its IP packet.
    #[inline]
    pub fn count_packet(&mut self, from: Dir, ip_bytes: u32) {
        let low = &mut self.low[from.index()];
        low.packets += 1;
        let carry;
        (low.ip_bytes, carry) = low.ip_bytes.overflowing_add(ip_bytes);
        if carry {
            self.carry_ip_bytes(from);
        }
    }

    #[cold]
    fn carry_ip_bytes(&mut self, from: Dir) {
        self.rare_mut().high[from.index()].ip_bytes += 1;
    }

    /// Sets the payload bytes that a side sent.
    #[inline]
    pub fn set_payload(&mut self, side: Dir, payload: u64) {
        let (high, low) = halves(payload);
        self.low[side.index()].payload = low;
        if high > 0 || self.rare().is_some() {
            self.rare_mut().high[side.index()].payload = high;
        }
    }

    /// Adds `len` payload bytes of a side.
    #[inline]
    pub fn count_payload(&mut self, from: Dir, len: u32) {
        self.add_payload(from, i64::from(len));
    }

    #[inline]
    fn add_payload(&mut self, from: Dir, len: i64) {
        let low = &mut self.low[from.index()].payload;
        // Nearly all sums fit into the lower half.
        match u32::try_from(i64::from(*low) + len) {
            Ok(sum) => *low = sum,
            Err(_) => {
                let sum = self.sent(from).payload.saturating_add_signed(len);
                self.set_payload(from, sum);
            }
        }
    }

    /// Counts a UDP payload of the length in the header. The length is negative if the UDP length
    /// field is too small: such a datagram does not make its side active, and reduces the count of
    /// earlier payloads.
    #[inline]
    pub fn count_udp(&mut self, from: Dir, len: i32) {
        if len < 0 {
            return self.count_short_udp(from, len);
        }
        self.add_payload(from, i64::from(len));
        self.seen |= 1 << (ACTIVE_BIT + 16 * from.index() as u32);
    }

    #[cold]
    fn count_short_udp(&mut self, from: Dir, len: i32) {
        let all = self.sent(from).payload.checked_add_signed(i64::from(len));
        self.set_payload(from, all.unwrap_or(0));
        if all.is_none() {
            // The sum is negative: the side counts as inactive.
            self.seen &= !(1 << (ACTIVE_BIT + 16 * from.index() as u32));
        }
    }

    /// Whether a side of a UDP connection sent payload.
    pub fn is_active(&self, side: Dir) -> bool {
        self.seen & 1 << (ACTIVE_BIT + 16 * side.index() as u32) != 0
    }

    /// Sets a flag of [`seen`](Self::seen) without a letter; returns whether it was set before.
    #[inline]
    pub fn note_flag(&mut self, bit: u32) -> bool {
        let before = self.seen & 1 << bit != 0;
        self.seen |= 1 << bit;
        before
    }

    /// Whether a weird of this connection was reported.
    pub fn did_weird(&self) -> bool {
        self.seen & 1 << WEIRD_BIT != 0
    }

    /// Records that a weird of this connection was reported.
    pub fn set_weird(&mut self) {
        self.seen |= 1 << WEIRD_BIT;
    }

    /// Appends an upper-case `X` to the history, once: a limit was reached.
    pub fn note_limit(&mut self) {
        self.note_once(Dir::Orig, LIMIT_BIT, b'X');
    }

    /// Exchanges originator and responder. Letters that were noted once stay with their side.
    pub fn flip(&mut self) {
        self.id = self.id.flipped();
        // Payload bytes are not exchanged: those of datagrams were counted with the roles at that
        // time, and those of TCP are computed at the end.
        let [a, b] = &mut self.low;
        std::mem::swap(&mut a.ip_bytes, &mut b.ip_bytes);
        std::mem::swap(&mut a.packets, &mut b.packets);
        if let Some(facts) = &mut self.facts {
            facts.watched.link.l2.swap(0, 1);
            if let Some(rare) = &mut facts.rare {
                let [a, b] = &mut rare.high;
                std::mem::swap(&mut a.ip_bytes, &mut b.ip_bytes);
                rare.flow_labels.swap(0, 1);
            }
        }
        self.history.push(b'^');
    }

    /// Payload bytes of both sides.
    pub fn payload(&self) -> u64 {
        let [orig, resp] = [Dir::Orig, Dir::Resp].map(|side| self.sent(side).payload);
        orig.saturating_add(resp)
    }
}

/// Default idle timeout of a connection, in seconds.
const TIMEOUT: u16 = 60;

/// Bit of [`Conn::note_limit`].
const LIMIT_BIT: u32 = 10;

/// Bit of [`Conn::is_active`].
const ACTIVE_BIT: u32 = 11;

/// Bit of [`Conn::did_weird`].
const WEIRD_BIT: u32 = 31;

/// Bit of [`Conn::set_side_unmatched`].
const UNMATCHED_BIT: u32 = 14;

/// Whether `n` is 1, 10, 100, …: the occurrences that append a letter to the history.
#[inline]
pub fn is_power_of_ten(n: u32) -> bool {
    matches!(
        n,
        1 | 10
            | 100
            | 1_000
            | 10_000
            | 100_000
            | 1_000_000
            | 10_000_000
            | 100_000_000
            | 1_000_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Addr;
    use gannet_base::UidSource;

    fn conn() -> Conn {
        let (a, b) = (Addr::v4([192, 0, 2, 1]), Addr::v4([192, 0, 2, 2]));
        let id = ConnId { orig_h: a, orig_p: 1, resp_h: b, resp_p: 2 };
        Conn::new(UidSource::new(0).connection(1, 0), id, Proto::Udp, 17, Time::ZERO)
    }

    #[test]
    fn flow_labels_change_for_each_side() {
        let mut c = conn();
        assert_eq!(c.change_flow_label(Dir::Orig, 256), None);
        assert_eq!(c.change_flow_label(Dir::Resp, 9), None);
        assert_eq!(c.change_flow_label(Dir::Orig, 256), None);
        assert_eq!(c.change_flow_label(Dir::Orig, 0), Some(256));
        c.flip();
        assert_eq!(c.change_flow_label(Dir::Resp, 1), Some(0));
        assert_eq!(c.change_flow_label(Dir::Orig, 8), Some(9));
        c.set_flow_label(Dir::Orig, 0);
        assert_eq!((c.flow_label(Dir::Orig), c.flow_label(Dir::Resp)), (0, 1));
        let mut without = conn();
        without.set_flow_label(Dir::Orig, 0);
        assert!(without.facts.is_none() && without.flow_label(Dir::Orig) == 0);
        without.set_flow_label(Dir::Orig, 5);
        assert_eq!(without.flow_label(Dir::Orig), 5);
    }

    #[test]
    fn counts_exceed_their_lower_halves() {
        let mut c = conn();
        for _ in 0..3 {
            c.count_packet(Dir::Orig, u32::MAX);
            c.count_payload(Dir::Orig, u32::MAX - 1);
        }
        c.count_packet(Dir::Resp, 28);
        let max = u64::from(u32::MAX);
        let orig = Counts { ip_bytes: 3 * max, payload: 3 * (max - 1), packets: 3 };
        assert_eq!(c.sent(Dir::Orig), orig);
        assert_eq!(c.sent(Dir::Resp), Counts { ip_bytes: 28, payload: 0, packets: 1 });
        // Payload keeps its index.
        c.flip();
        assert_eq!(c.sent(Dir::Resp), Counts { payload: 0, ..orig });
        let payload = 3 * (max - 1);
        assert_eq!(c.sent(Dir::Orig), Counts { ip_bytes: 28, payload, packets: 1 });
        c.set_payload(Dir::Resp, 1 << 60);
        assert_eq!(c.payload(), payload + (1 << 60));
        c.set_payload(Dir::Resp, 7);
        assert_eq!(c.sent(Dir::Resp).payload, 7);
    }

    #[test]
    fn decreasing_payload_stops_at_zero() {
        let mut c = conn();
        c.count_udp(Dir::Orig, 10);
        c.count_udp(Dir::Orig, -8);
        assert_eq!((c.sent(Dir::Orig).payload, c.is_active(Dir::Orig)), (2, true));
        c.count_udp(Dir::Resp, -8);
        assert_eq!((c.sent(Dir::Resp).payload, c.is_active(Dir::Resp)), (0, false));
        // A negative sum counts as inactive until more payload is sent.
        c.count_udp(Dir::Orig, -3);
        assert_eq!((c.sent(Dir::Orig).payload, c.is_active(Dir::Orig)), (0, false));
        c.count_udp(Dir::Orig, 4);
        assert_eq!((c.sent(Dir::Orig).payload, c.is_active(Dir::Orig)), (4, true));
        c.set_payload(Dir::Orig, 1 << 32);
        c.count_udp(Dir::Orig, -1);
        assert_eq!(c.sent(Dir::Orig).payload, u64::from(u32::MAX));
    }
}
