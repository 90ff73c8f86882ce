//! A connection from its first packet to its rows.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_event::TransportState;
use gannet_flow::Conn;
use gannet_flow::Hash;
use gannet_flow::Slot;
use gannet_flow::Spare;
use gannet_flow::tcp;
use gannet_flow::tcp::Delays;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_log::Logs;
use gannet_protocols::Env;
use gannet_protocols::Scratch;
use gannet_protocols::Session;
use gannet_protocols::conn_state;
use gannet_protocols::conn_state::events::ConnectionFlipped;
use gannet_protocols::conn_state::events::ConnectionStateRemove;
use gannet_protocols::conn_state::events::NewConnection;
use gannet_protocols::global;
use gannet_protocols::packet::events::NewConnectionContents;
use gannet_protocols::packet::events::WatchedConnection;
use gannet_protocols::policy::known::ObservedService;
use gannet_protocols::tunnel::raise_changed;
use gannet_wire::Ip;

use crate::community_id::community_id;
use crate::conn_log;
use crate::shard::Shard;
use crate::shard::ext::Ext;
use crate::tunnels::Encapsulation;

/// Maximum number of encapsulation changes that are followed for one connection.
const MAX_TUNNEL_CHANGES: u8 = 5;
/// The script option that sets this maximum.
const MAX_CHANGES_OPTION: &str = "Tunnel::max_changes_per_connection";

/// Number of bits of a connection's number that hold its ordinal within its packet.
const ORDINAL_BITS: u32 = 8;
/// All ordinals from this one on share a number.
const ORDINAL_MAX: u32 = (1 << ORDINAL_BITS) - 1;
/// Number of new connections between two samples of memory usage.
const SAMPLE_EVERY: u64 = 4_096;

impl Shard {
    /// Creates a connection from the sender of a packet, or to it if `flip`. `ordinal` counts the
    /// lookups of the current packet. Returns the index, and the side that sent the packet.
    pub(crate) fn create(
        &mut self,
        (hash, ordinal): (Hash, u32),
        id: &ConnId,
        proto: Proto,
        ip: &Ip<'_>,
        (one_way, global, flip): (bool, bool, bool),
        encapsulation: &Encapsulation,
    ) -> (u32, Dir) {
        let uid = self.env.uids.connection(self.packet_number, ordinal);
        // Increases in the order of creation, independent of other shards.
        let number = (self.packet_number << ORDINAL_BITS) | u64::from(ordinal.min(ORDINAL_MAX));
        self.created += 1;
        let vlans = self.vlans();
        // The timer is set after the packet is processed, when the timeout is known. The slot is
        // initialized in place because it is large.
        let conn = Conn::new(uid, *id, proto, ip.protocol, self.time);
        let tcp = (proto == Proto::Tcp).then(|| self.spare.begin(self.time, &self.streams.delays));
        let slot = Slot::new(conn, tcp, Ext::default(), number, one_way);
        let index = self.table.insert(hash, slot);
        let Some(slot) = self.table.get_mut(index) else { return (index, Dir::Orig) };
        let conn = &mut slot.conn;
        conn.set_global(global);
        conn.set_vlans(vlans);
        if global && !global::is_by_port(proto, id.orig_p, id.resp_p) {
            self.env.global_ports.add(proto, id.resp_h, id.resp_p);
        }
        let is_flipped = flip && !id.resp_h.is_broadcast();
        if is_flipped {
            conn.flip();
        }
        let is_orig = (conn.id.orig_h, conn.id.orig_p) == (id.orig_h, id.orig_p);
        let from = if is_orig { Dir::Orig } else { Dir::Resp };
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.begin(index, uid, conn.id, proto);
        }
        if let Some(observer) = &self.options.connection_observer {
            observer.connection_began(self.packet_number, uid);
        }
        if self.env.logs.events.any() {
            let option = match proto {
                // The timeout of TCP applies once the connection is established.
                Proto::Tcp | Proto::Udp => "udp_inactivity_timeout",
                Proto::Icmp => "icmp_inactivity_timeout",
                _ => "unknown_ip_inactivity_timeout",
            };
            let seconds = self.env.setting(option, 0);
            if seconds > 0 {
                conn.set_timeout(u16::try_from(seconds).unwrap_or(u16::MAX));
            }
        }
        if self.env.logs.events.any() {
            let mut link = self.link;
            if !is_orig {
                link.l2.swap(0, 1);
            }
            conn.set_link(link);
            if self.keyed_by_vlan {
                self.vlans.insert(uid, link.tags());
            }
        }
        slot.ext.stack.prepare(&mut self.env, conn, self.now);
        if self.env.logs.events.any() {
            conn.set_flow_label(from, ip.flow_label());
            if !self.packet_thresholds.is_empty() {
                let thresholds = slot.ext.rare().thresholds.get_or_insert_default();
                thresholds.next_of_both(&self.packet_thresholds);
            }
            self.env.logs.events.set_transport(TransportState::default());
        }
        if encapsulation.depth() > 0 && self.env.logs.events.any() {
            self.env.logs.events.set_tunnels(uid, encapsulation.states());
        }
        if is_flipped && self.env.logs.events.wants::<ConnectionFlipped>() {
            self.env.logs.events.set_transport(TransportState::default());
            conn_state::raise(&mut self.env.logs, conn, |c| ConnectionFlipped { c });
        }
        slot.ext.stack.raise_announced(&mut self.env, conn);
        if proto == Proto::Tcp && self.env.logs.events.wants::<NewConnectionContents>() {
            self.env.logs.events.set_transport(TransportState::default());
            conn_state::raise(&mut self.env.logs, conn, |c| NewConnectionContents { c });
        }
        if self.env.logs.events.wants::<NewConnection>() {
            self.env.logs.events.set_transport(TransportState::default());
            conn_state::raise(&mut self.env.logs, conn, |c| NewConnection { c });
        }
        if encapsulation.depth() > 0 {
            if let Some(uid) = encapsulation.last().and_then(|t| t.uid) {
                conn.add_tunnel_parent(uid);
            }
            slot.ext.rare().encapsulation = (*encapsulation, 0);
            self.register(encapsulation);
        }
        self.evictor.began(self.table.len(), self.time, number, index);
        if self.created.is_multiple_of(SAMPLE_EVERY) {
            self.sample_usage();
        }
        (index, from)
    }

    /// The ordinal of the next connection or tunnel lookup of the current packet.
    pub(crate) fn next_ordinal(&mut self) -> u32 {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        ordinal
    }

    /// Records the tunnels of a new connection: new tunnels are logged.
    fn register(&mut self, encapsulation: &Encapsulation) {
        for tunnel in encapsulation.iter() {
            let is_new = self.env.tunnels.register(&mut self.env.logs, self.now, *tunnel);
            // Zeek's scripts look up the tunnel's connection.
            if is_new
                && self.env.logs.events.wants::<WatchedConnection>()
                && let Some(uid) = tunnel.uid
            {
                self.watch(&tunnel.id, tunnel.ip_proto, uid);
            }
        }
    }

    /// Checks whether a connection's encapsulation has changed, and logs the new tunnels.
    #[cold]
    pub(crate) fn check_encapsulation(&mut self, index: u32, encapsulation: &Encapsulation) {
        let Some(slot) = self.table.get_mut(index) else { return };
        let had = slot.ext.rare.as_ref().map(|r| &r.encapsulation);
        let same = match had {
            Some((old, _)) => old == encapsulation,
            None => encapsulation.depth() == 0,
        };
        if same {
            return;
        }
        let changes = had.map_or(0, |(_, n)| *n);
        if self.env.logs.events.any() {
            self.with_session(index, |_, tcp, session| session.mention(tcp.as_deref()));
        }
        let Some(slot) = self.table.get_mut(index) else { return };
        let max_changes = self.env.setting(MAX_CHANGES_OPTION, MAX_TUNNEL_CHANGES.into());
        // 0 means no limit.
        let allowed = max_changes == 0 || u64::from(changes) < max_changes.min(u8::MAX.into());
        let counted = changes.saturating_add(u8::from(allowed));
        slot.ext.rare().encapsulation = (*encapsulation, counted);
        if !allowed {
            slot.conn.set_weird();
            let name = "tunnel_max_changes_per_connection_exceeded";
            let addl = max_changes.to_string();
            let env = &mut self.env;
            env.weirds.conn(&mut env.logs, self.now, &mut slot.conn, name, &addl, None);
            slot.conn.note_limit();
            return;
        }
        raise_changed(&mut self.env.logs, &slot.conn, encapsulation.iter());
        if let Some(uid) = encapsulation.last().and_then(|t| t.uid) {
            slot.conn.add_tunnel_parent(uid);
        }
        self.register(encapsulation);
    }

    /// Calls a function with the session of a connection: its slot and its analyzers.
    pub(crate) fn with_session<R>(
        &mut self,
        index: u32,
        work: impl FnOnce(&mut Conn, &mut Option<Box<Tcp>>, &mut Session<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.get_mut(index)?;
        open(slot, &mut self.spare, self.now, &self.streams.delays);
        let (conn, tcp, mut session) = session_of(slot, self.now, &mut self.env, &mut self.scratch);
        Some(work(conn, tcp, &mut session))
    }

    /// Calls a function with the session of a connection for the current packet, then applies the
    /// requests of the analyzers.
    #[inline]
    pub(crate) fn with_packet<const EVENTS: bool, R>(
        &mut self,
        index: u32,
        work: impl FnOnce(&mut Conn, &mut Option<Box<Tcp>>, &mut Session<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.get_mut(index)?;
        open(slot, &mut self.spare, self.now, &self.streams.delays);
        let patience = slot.conn.timeout();
        let (conn, tcp, mut session) = session_of(slot, self.now, &mut self.env, &mut self.scratch);
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.packet(self.packet_number, index);
        }
        let done = work(conn, tcp, &mut session);
        let asked = session.has_requests();
        if asked {
            apply_requests(conn, tcp.as_deref_mut(), &mut session);
        }
        session.release_idle(conn);
        if EVENTS && self.env.logs.events.awaits_end() {
            conn_state::mention_end(&mut self.env.logs, &slot.conn);
        }
        if asked && !slot.conn.services.as_slice().is_empty() {
            log_service(&mut self.env, self.now, &mut slot.conn, slot.tcp.as_deref());
        }
        // A due time before the timer entry needs another entry; a later due time keeps the entry,
        // which is checked when it fires. A packet from the past does not make its connection idle,
        // unless it starts the connection or changes its timeout.
        let fresh = slot.due == Time::MAX;
        let is_new = fresh || slot.tcp.is_some() && slot.conn.timeout() != patience;
        let last = if is_new { slot.conn.last } else { slot.conn.last.max(self.now) };
        let from = if fresh { self.time } else { self.now };
        let idle = slot.conn.next_check(last, from);
        let due = slot.tcp.as_deref().map_or(idle, |tcp| idle.min(tcp.due()));
        // Usually the existing entry is earlier.
        if due < slot.due {
            let is_quiet = |tcp: &Tcp| {
                !fresh && slot.conn.last >= self.now && tcp.is_quiet(&slot.conn, self.now)
            };
            let due = if slot.tcp.as_deref().is_some_and(is_quiet) { idle } else { due };
            if due < slot.due {
                slot.due = due;
                let number = slot.number;
                self.timers.add(due, number, index);
            }
        }
        slot.pack(&mut self.spare);
        Some(done)
    }

    /// Completes the processing of the current packet for a connection.
    pub(crate) fn apply_requests(&mut self, index: u32) {
        self.with_packet::<true, _>(index, |_, _, _| ());
    }

    /// Ends a connection at the current packet, and writes its rows.
    pub(crate) fn remove(&mut self, index: u32) {
        self.remove_at(index, self.now);
    }

    /// Ends a connection and writes its rows; `packet` is the time of the packet that made its end
    /// due.
    pub(crate) fn remove_at(&mut self, index: u32, packet: Time) {
        // In place, because slots are large.
        let Some(slot) = self.table.get_mut(index) else { return };
        slot.open(&mut self.spare);
        count_payload(slot.tcp.as_deref(), &mut slot.conn);
        let held = slot.tcp.as_deref().map_or(0, Tcp::buffered_bytes);
        self.evictor.set_buffered(held, 0, slot.number, index, || crate::state::pair(&slot.conn));
        // As in Zeek, rows written when a connection ends have the time of the packet that advances
        // the clock.
        let now = packet.max(self.now);
        let (conn, tcp, mut session) = session_of(slot, now, &mut self.env, &mut self.scratch);
        session.mention(tcp.as_deref());
        session.finish(conn);
        session.match_end(conn);
        session.raise(conn, |c| ConnectionStateRemove { c });
        let env = &mut self.env;
        if !self.vlans.is_empty() {
            self.vlans.remove(&slot.conn.uid);
        }
        if !slot.conn.was_served() {
            log_service(env, self.now, &mut slot.conn, slot.tcp.as_deref());
        }
        if slot.ext.rare.as_ref().is_some_and(|r| r.carries) {
            env.tunnels.close(&mut env.logs, packet, &slot.conn.id, slot.conn.uid);
        }
        let id = slot.conn.id;
        let is_local = |a| self.env.has_local_nets().then(|| self.env.is_local(a));
        let local = (is_local(id.orig_h), is_local(id.resp_h));
        let (conn, tcp, seed) = (&slot.conn, slot.tcp.as_deref(), self.community);
        let logs = &mut self.env.logs;
        if seed.is_some() || logs.write_in_place(&conn_log::row(conn, tcp, local, None)).is_none() {
            log_slow(logs, conn, tcp, local, seed);
        }
        self.evictor.report.tables[slot.conn.largest_table()] += 1;
        self.table.remove(index, &mut self.spare);
    }
}

/// Writes a connection's row through the general path.
#[cold]
#[inline(never)]
fn log_slow(
    logs: &mut Logs,
    conn: &Conn,
    tcp: Option<&Tcp>,
    local: (Option<bool>, Option<bool>),
    seed: Option<u16>,
) {
    let community = seed.map(|seed| community_id(conn, seed));
    logs.write(&conn_log::row(conn, tcp, local, community.as_deref()));
}

/// Logs the responder's service, if requested: when a protocol is confirmed, otherwise at the end.
pub(crate) fn log_service(env: &mut Env, now: Time, conn: &mut Conn, tcp: Option<&Tcp>) {
    let Some(mut policy) = env.policy() else { return };
    let shook = |tcp: &Tcp| {
        let state = tcp.endpoint(Dir::Resp).state;
        matches!(state, State::Established | State::Closed | State::Partial)
            || conn.history.as_bytes().contains(&b'h')
    };
    let answered = match conn.proto {
        Proto::Tcp => tcp.is_some_and(shook),
        Proto::Udp => conn.is_active(Dir::Resp),
        _ => false,
    };
    if policy.service(
        now,
        &ObservedService {
            host: conn.id.resp_h,
            port: conn.id.resp_p,
            proto: conn.proto,
            protocols: conn.services.as_slice(),
            sent: conn.sent(Dir::Resp).payload,
            answered,
        },
    ) {
        conn.set_served();
    }
}

/// The session of a slot at time `now`.
#[inline]
fn session_of<'a>(
    slot: &'a mut Slot<Ext>,
    now: Time,
    env: &'a mut Env,
    scratch: &'a mut Scratch,
) -> (&'a mut Conn, &'a mut Option<Box<Tcp>>, Session<'a>) {
    let Slot { conn, tcp, ext, .. } = slot;
    (conn, tcp, Session { now, env, stack: &mut ext.stack, scratch })
}

/// Applies the requests of a connection's analyzers.
fn apply_requests(conn: &mut Conn, mut tcp: Option<&mut Tcp>, session: &mut Session<'_>) {
    count_payload(tcp.as_deref(), conn);
    if session.apply_requests(conn) {
        match &mut tcp {
            Some(tcp) => tcp.flip_roles(conn, session),
            None => tcp::Consumer::flipped(session, conn),
        }
        session.apply_requests(conn);
    }
}

/// Computes payload bytes from TCP sequence numbers; this is done on demand.
fn count_payload(tcp: Option<&Tcp>, conn: &mut Conn) {
    if let Some(tcp) = tcp {
        for side in [Dir::Orig, Dir::Resp] {
            conn.set_payload(side, tcp.size(side));
        }
    }
}

/// Unpacks the state in a slot at time `now`.
#[inline]
pub(crate) fn open(slot: &mut Slot<Ext>, spare: &mut Spare, now: Time, delays: &Delays) {
    slot.open(spare);
    if let Some(tcp) = &mut slot.tcp {
        tcp.pass_checks(&slot.conn, now, delays);
    }
}
