use std::io;

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::UidSource;
use gannet_capture::Packet;
use gannet_files::FileOptions;
use gannet_files::Files;
use gannet_flow::Conn;
use gannet_flow::Fragments;
use gannet_flow::Hash;
use gannet_flow::Key;
use gannet_flow::Services;
use gannet_flow::Slot;
use gannet_flow::Spare;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_log::Key as RowKey;
use gannet_log::Logs;
use gannet_log::StreamCount;
use gannet_protocols::Env;
use gannet_protocols::Scratch;
use gannet_protocols::Session;
use gannet_protocols::Stack;
use gannet_protocols::Tag;
use gannet_protocols::hub;
use gannet_protocols::policy::UnknownRow;
use gannet_protocols::policy::known::Served;

use crate::Options;
use crate::community_id::community_id;
use crate::conn_log;
use crate::plan::CLOSING;
use crate::state::Keeper;
use crate::steer::Datagram;
use crate::steer::Role;
use crate::tunnels::Encapsulation;
use crate::tunnels::IpTunnels;

/// Changes of the tunnels around one connection that are followed.
const MAX_TUNNEL_CHANGES: u8 = 5;

/// Network time is never before this: a trace from before the first second of the epoch has no
/// clock to speak of. The times of packets and connections are their own nevertheless.
const BEGINNING: Time = Time::from_secs(1);

/// Timers whose connections are read ahead of time: so far that they have come when needed, and
/// not so far that they have gone again.
const SLOTS_AHEAD: usize = 12;

/// A connection is not looked at again sooner, unless something is due.
const LOOK_AGAIN: Interval = Interval::from_secs(5);

/// Bits of a connection's number for its place among those of its packet.
const ORDINAL_BITS: u32 = 8;
/// From here on the places of a packet's connections are not told apart.
const ORDINAL_MAX: u32 = (1 << ORDINAL_BITS) - 1;
/// Connections after which it is looked at what is kept.
const SURVEY_EVERY: u64 = 4_096;

/// What the engine keeps beside a connection.
#[derive(Default)]
pub(crate) struct Ext {
    pub(crate) stack: Stack,
    rare: Option<Box<Rare>>,
}

/// What few connections have.
#[derive(Default)]
pub(crate) struct Rare {
    /// The tunnels around its last packet and how often they changed.
    around: (Encapsulation, u8),
    /// Tunnel protocols that failed on it.
    pub(crate) tunnels_failed: Services,
    /// Bad checksums of each side, UDP.
    pub(crate) bad_checksums: [u32; 2],
    /// Packets of others came out of it.
    pub(crate) carries: bool,
    /// Bits of the sides from which valid Teredo was seen.
    pub(crate) teredo_sides: u8,
}

// There may be millions, of which nearly all are a slot and nothing else.
const _: () = assert!(Table::<Ext>::SLOT_BYTES <= 192);

impl Ext {
    /// Whether there is nothing that few connections have.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.rare.is_none()
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Whether a tunnel protocol failed on it.
    pub(crate) fn tunnel_failed(&self, tag: Tag) -> bool {
        self.rare.as_ref().is_some_and(|r| r.tunnels_failed.contains(tag as u8))
    }
}

/// One part of the connection table with everything that belongs to it.
pub(crate) struct Shard {
    pub(crate) options: Options,
    pub(crate) env: Env,
    pub(crate) table: Table<Ext>,
    pub(crate) fragments: Fragments,
    pub(crate) ip_tunnels: IpTunnels,
    pub(crate) timers: Timers,
    pub(crate) keeper: Keeper,
    /// Limits of TCP reassembly.
    pub(crate) streams: tcp::Limits,
    scratch: Scratch,
    spare: Spare,
    /// Network time: never goes back.
    pub(crate) now: Time,
    /// Time of the packet at hand.
    pub(crate) time: Time,
    /// Number of the packet at hand.
    pub(crate) packet_number: u64,
    /// Connections and tunnels looked for so far for the packet at hand: the place of the next
    /// one, by which it is named should it be new.
    pub(crate) ordinal: u32,
    created: u64,
    /// Bytes of the packet at hand that were not captured.
    pub(crate) missing: u32,
    /// Layers of the packet at hand down to where the walk is, tunnels included.
    pub(crate) layers: u8,
    /// Which part of the analysis it is.
    pub(crate) role: Role,
    /// Steps of the packet at hand: each part that sees some of it does so in a step of its own.
    pub(crate) step: u32,
    /// Before this time nothing is due: for packets of others.
    wake: Time,
    /// Their names, where packets of unknown protocols are logged.
    pub(crate) trail: Option<Vec<&'static str>>,
    /// Seed of Community IDs, where there is a column for them.
    community: Option<u16>,
}

impl Shard {
    pub(crate) fn new(options: Options, role: Role) -> Self {
        let uids = UidSource::new(options.seed);
        let mut protocol_options = gannet_protocols::Options {
            inner_protocols: options.inner_protocols,
            pending: options.limits.pending(),
            ..gannet_protocols::Options::default()
        };
        if let Some(nets) = &options.local_nets {
            protocol_options.local_nets = nets.clone();
        }
        protocol_options.assets = options.assets;
        let community = options.logs.has_column("community_id").then_some(options.community_seed);
        let logs = match role {
            Role::Whole => Logs::new(options.logs.clone()),
            Role::Hub(_) | Role::Part => Logs::collecting(options.logs.clone()),
        };
        let wants_trail = logs.selection().wants::<UnknownRow<'_>>();
        let options_of_files =
            FileOptions { hash: options.hash_files, most: options.limits.files() };
        let files = Files::with_options(uids, options_of_files);
        let mut env = Env::new(protocol_options, logs, files, uids);
        if matches!(role, Role::Part) {
            env.leave_hub();
        }
        Self {
            env,
            keeper: Keeper::new(&options.limits, options.memory),
            streams: options.limits.streams(),
            fragments: Fragments::with_limits(options.limits.fragments()),
            options,
            table: Table::default(),
            ip_tunnels: IpTunnels::default(),
            timers: Timers::default(),
            scratch: Scratch::default(),
            spare: Spare::default(),
            now: Time::ZERO,
            time: Time::ZERO,
            packet_number: 0,
            ordinal: 0,
            created: 0,
            missing: 0,
            layers: 0,
            role,
            step: 0,
            wake: Time::ZERO,
            trail: wants_trail.then(Vec::new),
            community,
        }
    }

    pub(crate) fn connections(&self) -> u64 {
        self.created
    }

    pub(crate) fn check(&mut self) -> io::Result<()> {
        self.env.logs.check()
    }

    /// A packet with this key comes soon.
    #[inline]
    pub(crate) fn expect_soon(&self, key: &Key) {
        self.table.prefetch(self.table.hash(key));
    }

    /// One packet.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        self.begin(packet.number, packet.time);
        self.missing = packet.wire_len.saturating_sub(packet.data.len() as u32);
        if packet.data.is_empty() || packet.wire_len == 0 {
            // There is no packet, and its time is none.
            self.set_step(0);
            self.env.logs.set_time(self.now);
            self.env.weirds.net(&mut self.env.logs, self.now, "empty_pcap_header", "");
            return;
        }
        self.advance_if_due(packet.time);
        self.walk_link(packet.link_type.0, packet.data, packet.wire_len);
        self.rest();
    }

    /// Turns to another packet.
    pub(crate) fn begin(&mut self, number: u64, time: Time) {
        self.packet_number = number;
        self.ordinal = 0;
        self.time = time;
    }

    /// Rows to come are of this step of the packet.
    #[inline]
    pub(crate) fn set_step(&mut self, step: u32) {
        self.step = step;
        let key = RowKey { packet: self.packet_number, due: Time::MAX, tie: u64::from(step) };
        self.env.logs.set_key(key);
    }

    /// A packet that this part is given by another one: IP behind so many layers.
    pub(crate) fn given(&mut self, number: u64, time: Time, layers: u8, ip: Datagram<'_>) {
        self.begin(number, time);
        self.missing = 0;
        self.layers = layers;
        self.advance_if_due(time);
        self.walk_ip(ip.bytes, ip.wire_len, &Encapsulation::default());
        self.rest();
    }

    /// A packet that somebody else has: only time goes on.
    #[inline]
    pub(crate) fn pass(&mut self, number: u64, time: Time) {
        let to = time.max(self.now);
        if to >= self.wake {
            self.packet_number = number;
            self.advance(to);
            self.rest();
        } else {
            self.now = to;
        }
    }

    /// Packets that others have pass all at once, if nothing is due up to the `latest` of their
    /// times, and of those of all packets before; returns whether they did.
    #[inline]
    pub(crate) fn pass_all(&mut self, latest: Time) -> bool {
        let to = latest.max(self.now);
        let quick = to < self.wake;
        if quick {
            self.now = to;
        }
        quick
    }

    /// Until something is due again, packets of others can pass quickly.
    #[inline]
    pub(crate) fn rest(&mut self) {
        self.wake = self.timers.next_due().min(self.env.next_due());
    }

    /// Network time goes on: what is due before is done first.
    ///
    /// A packet from the past does not turn it back; timers that such packets set lie in the past
    /// as well, and are due at once.
    pub(crate) fn advance(&mut self, to: Time) {
        let to = to.max(BEGINNING).max(self.now);
        let packet = self.packet_number;
        self.env.logs.set_time(to);
        self.env.logs.set_key(RowKey { packet, ..RowKey::EARLIEST });
        while let Some((due, number, index)) = self.timers.pop(to) {
            // Connections whose timers fire were idle for long: they are in no cache any more.
            if let Some(next) = self.timers.ahead(SLOTS_AHEAD) {
                self.table.prefetch_slot(next);
            }
            if let Some(next) = self.timers.ahead(SLOTS_AHEAD / 2) {
                self.table.prefetch_removal(next);
            }
            self.now = self.now.max(due);
            // A file that is given up for silence ends before the connection that carried it.
            self.env.expire(self.now, to);
            // Files that are due at the same time come first: their ties are smaller.
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
        self.relieve();
    }

    /// The same, knowing from the last [rest](Self::rest) before when nothing is due.
    #[inline]
    fn advance_if_due(&mut self, to: Time) {
        let to = to.max(BEGINNING).max(self.now);
        if to >= self.wake {
            return self.advance(to);
        }
        self.now = to;
        self.env.logs.set_time(to);
        self.set_step(0);
        self.relieve();
    }

    fn fire(&mut self, due: Time, packet: Time, number: u32, index: u32) {
        let Some(slot) = self.table.get_mut(index) else { return };
        if slot.number as u32 != number || slot.due != due {
            return;
        }
        open(slot, &mut self.spare, self.now);
        let now = if slot.conn.look_every > 0 { packet } else { self.now };
        let over = slot.tcp.as_mut().is_some_and(|t| t.is_over(&slot.conn, now));
        if over || slot.conn.last + slot.conn.timeout() <= now {
            self.remove_at(index, packet);
            return;
        }
        slot.due = next_due(slot, now);
        self.timers.add(slot.due, slot.number, index);
    }

    /// A new connection from a packet's sender, or to it if `flip`: the `ordinal`th that the
    /// packet at hand looked for.
    pub(crate) fn create(
        &mut self,
        (hash, ordinal): (Hash, u32),
        id: &ConnId,
        proto: Proto,
        ip_proto: u8,
        (one_way, hub, flip): (bool, bool, bool),
        around: &Encapsulation,
    ) -> u32 {
        let uid = self.env.uids.connection(self.packet_number, ordinal);
        // In the order of creation, whoever else creates connections meanwhile.
        let number = (self.packet_number << ORDINAL_BITS) | u64::from(ordinal.min(ORDINAL_MAX));
        self.created += 1;
        // Its timer is set when the packet is done with it, when more is known. What there is to say
        // of it is said where it lies: it is too large to be carried there.
        let conn = Conn::new(uid, *id, proto, ip_proto, self.time);
        let tcp = (proto == Proto::Tcp).then(|| self.spare.begin(self.time));
        let slot = Slot::new(conn, tcp, Ext::default(), number, one_way);
        let index = self.table.insert(hash, slot);
        let Some(slot) = self.table.get_mut(index) else { return index };
        let conn = &mut slot.conn;
        conn.set_hub(hub);
        if hub && !hub::is_by_port(proto, id.orig_p, id.resp_p) {
            self.env.hub_ports.add(proto, id.resp_p);
        }
        if flip && !id.resp_h.is_broadcast() {
            conn.flip();
        }
        slot.ext.stack.prepare(&mut self.env, conn, self.now);
        if around.depth() > 0 {
            if let Some(uid) = around.last().and_then(|t| t.uid) {
                conn.add_tunnel_parent(uid);
            }
            slot.ext.rare().around = (*around, 0);
            self.register(around);
        }
        self.keeper.began(self.table.len(), self.time, number, index);
        if self.created.is_multiple_of(SURVEY_EVERY) {
            self.survey();
        }
        index
    }

    /// The place of the next connection or tunnel that the packet at hand looks for.
    pub(crate) fn next_ordinal(&mut self) -> u32 {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        ordinal
    }

    /// A connection was seen inside of tunnels: those not known yet are logged.
    fn register(&mut self, around: &Encapsulation) {
        for tunnel in around.iter() {
            self.env.tunnels.register(&mut self.env.logs, self.now, *tunnel);
        }
    }

    /// Follows the tunnels around a known connection.
    #[cold]
    pub(crate) fn check_around(&mut self, index: u32, around: &Encapsulation) {
        let Some(slot) = self.table.get_mut(index) else { return };
        let had = slot.ext.rare.as_ref().map(|r| &r.around);
        let same = match had {
            Some((old, _)) => old == around,
            None => around.depth() == 0,
        };
        if same {
            return;
        }
        let changes = had.map_or(0, |(_, n)| *n);
        let allowed = changes < MAX_TUNNEL_CHANGES;
        slot.ext.rare().around = (*around, changes + u8::from(allowed));
        if !allowed {
            slot.conn.set_weird();
            let name = "tunnel_max_changes_per_connection_exceeded";
            let addl = MAX_TUNNEL_CHANGES.to_string();
            let env = &mut self.env;
            env.weirds.conn(&mut env.logs, self.now, &mut slot.conn, name, &addl, None);
            slot.conn.note_limit();
            return;
        }
        if let Some(uid) = around.last().and_then(|t| t.uid) {
            slot.conn.add_tunnel_parent(uid);
        }
        self.register(around);
    }

    /// A connection's slot and its analyzers at work.
    pub(crate) fn with_session<R>(
        &mut self,
        index: u32,
        work: impl FnOnce(&mut Conn, &mut Option<Box<Tcp>>, &mut Session<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.get_mut(index)?;
        open(slot, &mut self.spare, self.now);
        let mut session = Session {
            now: self.now,
            env: &mut self.env,
            stack: &mut slot.ext.stack,
            scratch: &mut self.scratch,
        };
        Some(work(&mut slot.conn, &mut slot.tcp, &mut session))
    }

    /// The packet at hand is a connection's: when that is done, what its analyzers asked for is.
    #[inline]
    pub(crate) fn with_packet<R>(
        &mut self,
        index: u32,
        work: impl FnOnce(&mut Conn, &mut Option<Box<Tcp>>, &mut Session<'_>) -> R,
    ) -> Option<R> {
        let slot = self.table.get_mut(index)?;
        open(slot, &mut self.spare, self.now);
        let mut session = Session {
            now: self.now,
            env: &mut self.env,
            stack: &mut slot.ext.stack,
            scratch: &mut self.scratch,
        };
        let done = work(&mut slot.conn, &mut slot.tcp, &mut session);
        let asked = session.has_requests();
        if asked {
            settle(&mut slot.conn, slot.tcp.as_deref_mut(), &mut session);
        }
        session.rest(&slot.conn);
        if asked && !slot.conn.services.as_slice().is_empty() {
            serve(&mut self.env, self.now, &mut slot.conn, slot.tcp.as_deref());
        }
        // A timer that moved ahead of its entry needs another; one that moved back waits for it.
        // A packet from the past does not make its connection idle, unless it starts it.
        let fresh = slot.due == Time::MAX;
        let last = if fresh { slot.conn.last } else { slot.conn.last.max(self.now) };
        let from = if fresh { self.time } else { self.now };
        let idle = slot.conn.next_look(last, from);
        let is_quiet =
            |tcp: &Tcp| !fresh && slot.conn.last >= self.now && tcp.is_quiet(&slot.conn, self.now);
        let due = match slot.tcp.as_deref() {
            Some(tcp) if !is_quiet(tcp) => idle.min(tcp.due()),
            _ => idle,
        };
        if due < slot.due {
            slot.due = due;
            let number = slot.number;
            self.timers.add(due, number, index);
        }
        slot.pack(&mut self.spare);
        Some(done)
    }

    /// The packet at hand is done with a connection.
    pub(crate) fn settle(&mut self, index: u32) {
        self.with_packet(index, |_, _, _| ());
    }

    /// A connection ends with the packet at hand: its rows are written.
    pub(crate) fn remove(&mut self, index: u32) {
        self.remove_at(index, self.now);
    }

    /// A connection ends, which whoever waits for packets finds out at the time of a `packet`.
    fn remove_at(&mut self, index: u32, packet: Time) {
        // In place: a slot is too large to be carried around for its last moments.
        let Some(slot) = self.table.get_mut(index) else { return };
        slot.open(&mut self.spare);
        count_payload(slot.tcp.as_deref(), &mut slot.conn);
        let held = slot.tcp.as_deref().map_or(0, Tcp::held);
        self.keeper.hold(held, 0, slot.number, index);
        let mut session = Session {
            now: self.now,
            env: &mut self.env,
            stack: &mut slot.ext.stack,
            scratch: &mut self.scratch,
        };
        session.finish(&mut slot.conn);
        let env = &mut self.env;
        if !slot.conn.was_served() {
            serve(env, self.now, &mut slot.conn, slot.tcp.as_deref());
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
            log_whole(logs, conn, tcp, local, seed);
        }
        self.keeper.report.tables[slot.conn.largest_table()] += 1;
        self.table.remove(index, &mut self.spare);
    }

    /// The end of input: what is open is to be [closed](Self::close_next), one by one.
    pub(crate) fn begin_close(&mut self) -> Closing {
        self.env.logs.set_time(self.now);
        self.survey();
        // Nothing more is due: what comes now has their memory.
        self.timers = Timers::default();
        self.keeper.rest();
        self.table.finish_finding();
        Closing { live: self.table.in_order(), next: 0 }
    }

    /// Closes the next connection, if there is one.
    pub(crate) fn close_next(&mut self, closing: &mut Closing) -> bool {
        let Some(index) = closing.live.get(closing.next).copied() else { return false };
        if let Some(next) = closing.live.get(closing.next + SLOTS_AHEAD) {
            self.table.prefetch_slot(*next);
        }
        closing.next += 1;
        let tie = self.table.get(index).map_or(0, |s| s.number);
        self.env.logs.set_key(RowKey { due: Time::ZERO, tie, ..CLOSING });
        self.remove(index);
        true
    }

    /// All connections are closed: what is not theirs ends.
    pub(crate) fn end_close(&mut self) {
        self.env.logs.set_key(RowKey { packet: u64::MAX, ..RowKey::EARLIEST });
        self.env.finish(self.now);
    }

    /// The end of input.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<StreamCount>> {
        let mut closing = self.begin_close();
        while self.close_next(&mut closing) {}
        self.end_close();
        let counts = self.env.logs.counts();
        self.env.logs.close()?;
        Ok(counts)
    }
}

/// Connections that are open when the input ends, in the order of their beginnings.
pub(crate) struct Closing {
    live: Vec<u32>,
    next: usize,
}

/// Writes a connection's row as the rows of other logs are.
#[cold]
#[inline(never)]
fn log_whole(
    logs: &mut Logs,
    conn: &Conn,
    tcp: Option<&Tcp>,
    local: (Option<bool>, Option<bool>),
    seed: Option<u16>,
) {
    let community = seed.map(|seed| community_id(conn, seed));
    logs.write(&conn_log::row(conn, tcp, local, community.as_deref()));
}

/// What a connection shows of its responder's service, where that is logged: told when a protocol is
/// recognised, and else at the end.
pub(crate) fn serve(env: &mut Env, now: Time, conn: &mut Conn, tcp: Option<&Tcp>) {
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
        &Served {
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

/// What analyzers asked for is done.
fn settle(conn: &mut Conn, mut tcp: Option<&mut Tcp>, session: &mut Session<'_>) {
    count_payload(tcp.as_deref(), conn);
    if session.settle(conn) {
        match &mut tcp {
            Some(tcp) => tcp.flip_roles(conn, session),
            None => tcp::Consumer::flipped(session, conn),
        }
        session.settle(conn);
    }
}

/// TCP counts payload in sequence space, which is only worked out where it is asked for.
fn count_payload(tcp: Option<&Tcp>, conn: &mut Conn) {
    if let Some(tcp) = tcp {
        for side in [Dir::Orig, Dir::Resp] {
            conn.set_payload(side, tcp.size(side));
        }
    }
}

/// Opens a slot at time `now`.
#[inline]
fn open(slot: &mut Slot<Ext>, spare: &mut Spare, now: Time) {
    slot.open(spare);
    if let Some(tcp) = &mut slot.tcp {
        tcp.pass_checks(&slot.conn, now);
    }
}

/// When a connection is looked at next.
fn next_due(slot: &Slot<Ext>, now: Time) -> Time {
    let idle = slot.conn.next_look(slot.conn.last, now);
    let Some(tcp) = &slot.tcp else { return idle };
    if tcp.is_quiet(&slot.conn, now) {
        // It may be a while until it is idle. Should it end before, its timer stays behind, for no
        // longer than it has lived: there are never many of these.
        return idle.min(now + (now - slot.conn.start).max(LOOK_AGAIN));
    }
    idle.min(tcp.due())
}
