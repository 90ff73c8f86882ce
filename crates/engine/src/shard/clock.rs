//! Advancing time: due timers fire before the next packet, and at the end of input all connections
//! are closed.

use std::io;

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_flow::Conn;
use gannet_flow::Slot;
use gannet_flow::Timers;
use gannet_flow::tcp::State;
use gannet_log::Key as RowKey;
use gannet_log::StreamCount;
use gannet_protocols::lifecycle::events::NetDone;
use gannet_protocols::lifecycle::events::ZeekDone;
use gannet_protocols::packet::events::ConnectionTimingOut;

use super::BEGINNING;
use super::connection::open;
use crate::packet_events;
use crate::shard::Shard;
use crate::shard::ext::Ext;

/// Number of times that Zeek runs handlers after the last packet.
const HANDLER_RUNS_AT_END: usize = 10;

/// Number of timers whose connections are prefetched: enough for the data to arrive in time, few
/// enough that they are not evicted from the cache again.
const SLOTS_AHEAD: usize = 12;

/// Minimum interval between checks of a connection, unless a timer is due.
const MIN_CHECK_INTERVAL: Interval = Interval::from_secs(5);

/// The first key after the rows of all packets: rows of connections that are open at the end of
/// input have this key or a later one.
pub(crate) const CLOSING: RowKey = RowKey { packet: u64::MAX - 1, ..RowKey::EARLIEST };

impl Shard {
    /// Advances time by a packet of another shard.
    #[inline]
    pub(crate) fn pass(&mut self, number: u64, time: Time) {
        let to = time.max(self.now);
        if to >= self.wake {
            self.packet_number = number;
            self.advance(to);
            self.update_wake();
        } else {
            self.now = to;
        }
    }

    /// Advances time by several packets of other shards, if no timer is due up to `latest`, the
    /// maximum of their times and those of all earlier packets. Returns whether it did.
    #[inline]
    pub(crate) fn pass_all(&mut self, latest: Time) -> bool {
        let to = latest.max(self.now);
        let quick = self.is_idle_until(to);
        if quick {
            self.now = to;
        }
        quick
    }

    /// Whether no timer is due up to `time`.
    #[inline]
    pub(crate) fn is_idle_until(&self, time: Time) -> bool {
        time < self.wake
    }

    /// Computes the next due time, so that packets of other shards are passed over quickly.
    #[inline]
    pub(crate) fn update_wake(&mut self) {
        self.wake = self.timers.next_due().min(self.env.next_due());
    }

    /// Advances network time; timers due before `to` fire first.
    /// || A packet with an earlier time does not set network time back; timers that it sets are in
    /// the past as well, and due at once.
    pub(crate) fn advance(&mut self, to: Time) {
        let to = to.max(BEGINNING).max(self.now);
        let packet = self.packet_number;
        self.env.logs.set_time(to);
        self.env.logs.set_key(RowKey { packet, ..RowKey::EARLIEST });
        while let Some((due, number, index)) = self.timers.pop(to) {
            // Connections whose timers fire were idle for long and are not in the cache.
            if let Some(next) = self.timers.ahead(SLOTS_AHEAD) {
                self.table.prefetch_slot(next);
            }
            if let Some(next) = self.timers.ahead(SLOTS_AHEAD / 2) {
                self.table.prefetch_removal(next);
            }
            self.now = self.now.max(due);
            // A file that expires is closed before the connection that carried it.
            self.env.expire(self.now, to);
            // Files that are due at the same time come first: their tie-breakers are smaller.
            self.env.logs.set_key(RowKey { packet, due, tie: (1 << 63) | u64::from(number) });
            self.fire(due, to, number, index);
        }
        self.set_step(0);
        self.env.arrive(to);
        if to != self.now {
            self.now = to;
            self.env.expire(to, to);
            self.set_step(0);
        }
        self.evict();
    }

    /// Like [`Self::advance`], with the due time that the last [`Self::update_wake`] computed.
    #[inline]
    pub(crate) fn advance_if_due(&mut self, to: Time) {
        let to = to.max(BEGINNING).max(self.now);
        if to >= self.wake {
            return self.advance(to);
        }
        self.now = to;
        self.env.logs.set_time(to);
        self.set_step(0);
        self.evict();
    }

    fn fire(&mut self, due: Time, packet: Time, number: u32, index: u32) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if slot.number as u32 != number || slot.due != due {
            return;
        }
        let delays = &self.streams.delays;
        open(slot, &mut self.spare, self.now, delays);
        let now = if slot.conn.check_every > 0 { packet } else { self.now };
        let over = slot.tcp.as_mut().is_some_and(|t| t.is_over(&slot.conn, now, packet, delays));
        if over || slot.conn.last + slot.conn.timeout() <= now {
            if !over && self.keeps(index, packet) {
                return;
            }
            if self.env.logs.events.any() {
                self.env.logs.events.drain_if_full();
                self.with_session(index, |conn, tcp, session| {
                    packet_events::timed_out(session, conn, tcp.as_deref(), !over);
                });
            }
            self.remove_at(index, packet);
            return;
        }
        slot.due = next_due(slot, now);
        self.timers.add(slot.due, slot.number, index);
    }

    /// Whether a script keeps an idle connection: it is checked again after the same timeout.
    #[inline]
    fn keeps(&mut self, index: u32, packet: Time) -> bool {
        self.env.logs.events.wants::<ConnectionTimingOut>() && self.is_kept_by_script(index, packet)
    }

    #[cold]
    fn is_kept_by_script(&mut self, index: u32, packet: Time) -> bool {
        let kept = self.with_session(index, |conn, tcp, session| {
            session.mention(tcp.as_deref());
            session.decide(conn, |c| ConnectionTimingOut { c })
        });
        let kept = kept == Some(true);
        if kept && let Some(slot) = self.table.get_mut(index) {
            slot.due = packet + slot.conn.timeout();
            self.timers.add(slot.due, slot.number, index);
        }
        kept
    }

    /// Begins the end of input: open connections are then [closed](Self::close_next) one by one.
    pub(crate) fn begin_close(&mut self) -> Closing {
        self.env.logs.set_time(self.now);
        self.env.logs.set_key(CLOSING);
        if self.env.logs.events.wants::<NetDone>() && !self.is_part() {
            // The precision of Zeek's time.
            let nanos = self.now.max(BEGINNING).as_nanos();
            let t = Time::from_nanos(nanos - nanos.rem_euclid(1_000));
            self.env.logs.events.raise(&NetDone { t });
            self.env.logs.events.drain();
        }
        self.env.expire_at_end(self.now);
        self.sample_usage();
        // The timers are not used again: frees their memory.
        self.timers = Timers::default();
        self.evictor.stop();
        self.table.finish_finding();
        let mut live = self.table.in_order();
        if self.options.in_key_order {
            // First the connections whose own timers are due by then, by due time; then the others,
            // by endpoints.
            live.sort_by_cached_key(|index| {
                let slot = self.table.get(*index);
                let timer = slot.and_then(last_timer);
                (timer.is_none(), timer, slot.map(|slot| key(&slot.conn)))
            });
        }
        Closing { live, next: 0 }
    }

    /// Closes the next connection; returns whether one was left.
    pub(crate) fn close_next(&mut self, closing: &mut Closing) -> bool {
        let Some(index) = closing.live.get(closing.next).copied() else { return false };
        if let Some(next) = closing.live.get(closing.next + SLOTS_AHEAD) {
            self.table.prefetch_slot(*next);
        }
        closing.next += 1;
        let tie = self.table.get(index).map_or(0, |s| s.number);
        self.env.logs.set_key(RowKey { due: Time::ZERO, tie, ..CLOSING });
        if self.env.logs.events.any() {
            self.env.logs.events.drain_if_full();
            let is_due = self.table.get(index).is_some_and(|slot| slot.due <= self.now);
            self.with_session(index, |conn, tcp, session| {
                packet_events::pending(session, conn, tcp.as_deref(), is_due);
            });
        }
        self.remove(index);
        // As in Zeek, handlers run after all connections were removed.
        self.carry_out();
        true
    }

    /// Ends everything that belongs to no connection, after all connections were closed.
    pub(crate) fn end_close(&mut self) {
        self.env.logs.set_key(RowKey { packet: u64::MAX, ..RowKey::EARLIEST });
        self.drain_events();
        self.env.finish(self.now);
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.finish();
        }
        if self.is_part() {
            return;
        }
        self.env.logs.set_key(RowKey { packet: u64::MAX, due: Time::MAX, tie: u64::MAX });
        let events = &mut self.env.logs.events;
        events.drain_if_full();
        if events.wants::<ZeekDone>() {
            events.raise(&ZeekDone {});
        }
        for _ in 0..HANDLER_RUNS_AT_END {
            self.env.logs.events.mark();
        }
        self.drain_events();
    }

    /// Ends the input.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<StreamCount>> {
        let mut closing = self.begin_close();
        while self.close_next(&mut closing) {}
        self.end_close();
        let counts = self.env.logs.counts();
        self.env.logs.close()?;
        Ok(counts)
    }
}

/// Connections that are open at the end of input, in the order in which they are closed.
pub(crate) struct Closing {
    live: Vec<u32>,
    next: usize,
}

/// Due time of the timer that ends a connection and that Zeek fires at the end of input: timers of
/// connection attempts, and of analyzers that check their connections periodically, such as DNS.
fn last_timer(slot: &Slot<Ext>) -> Option<Time> {
    let conn = &slot.conn;
    match &slot.tcp {
        // The transport state is packed as long as the connection consists of a single SYN.
        None if conn.proto == Proto::Tcp => Some(conn.start + Interval::from_secs(5)),
        Some(tcp) => {
            let states = [tcp.endpoint(Dir::Orig).state, tcp.endpoint(Dir::Resp).state];
            let is_attempt =
                matches!(states, [State::SynSent | State::SynAckSent, State::Inactive]);
            is_attempt.then(|| conn.start + Interval::from_secs(5))
        }
        None => {
            let every = conn.check_every;
            (every > 0).then(|| conn.start + Interval::from_secs(i64::from(every)))
        }
    }
}

/// The key by which Zeek orders connections.
type Order = ([u8; 16], [u8; 16], u16, u16, u8, [[u8; 4]; 2]);

/// The endpoints of a connection in Zeek's order, lower address first, and its VLAN tags.
fn key(conn: &Conn) -> Order {
    let id = &conn.id;
    let orig = (id.orig_h.octets(), id.orig_p.swap_bytes());
    let resp = (id.resp_h.octets(), id.resp_p.swap_bytes());
    let (low, high) = if conn.is_one_way() || orig < resp { (orig, resp) } else { (resp, orig) };
    let tag = |tag: u32| match tag & 0x8000 {
        0 => [0, 0, 0, 0xff],
        _ => (tag & 0x7fff).to_le_bytes(),
    };
    let tags = [tag(conn.vlans() >> 16), tag(conn.vlans())];
    (low.0, high.0, low.1.swap_bytes(), high.1.swap_bytes(), conn.ip_proto, tags)
}

/// The time of the next check of a connection.
fn next_due(slot: &Slot<Ext>, now: Time) -> Time {
    let idle = slot.conn.next_check(slot.conn.last, now);
    let Some(tcp) = &slot.tcp else { return idle };
    if tcp.is_quiet(&slot.conn, now) {
        // A connection that cannot be idle soon is checked less often. If it ends before, its timer
        // entry becomes stale, but for no longer than the connection lived, so the number of stale
        // entries stays small.
        return idle.min(now + (now - slot.conn.start).max(MIN_CHECK_INTERVAL));
    }
    idle.min(tcp.due())
}
