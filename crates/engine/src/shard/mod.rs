//! A shard: a partition of the connection table, and how packets change it.
//!
//! [`Shard`] receives its own packets, and the times of the packets of other shards. It parses each
//! [packet](crate::dissect) through its layers to a [connection], updates the connection's state and
//! runs its analyzers; and it advances [time](clock), which ends connections.

pub(crate) mod clock;
mod commands;
pub(crate) mod connection;
pub(crate) mod ext;

use std::io;

use gannet_base::Addr;
use gannet_base::LinkState;
use gannet_base::Subnet;
use gannet_base::Time;
use gannet_base::UidMap;
use gannet_base::UidSource;
use gannet_capture::Format;
use gannet_capture::Packet;
use gannet_event::Command;
use gannet_event::Event;
use gannet_event::Events;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_files::FileOptions;
use gannet_files::Files;
use gannet_files::events::PeDosCode;
use gannet_filter::Filter;
use gannet_flow::Fragments;
use gannet_flow::Key;
use gannet_flow::Spare;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp;
use gannet_flow::tcp::Delays;
use gannet_log::Key as RowKey;
use gannet_log::Logs;
use gannet_protocols::Env;
use gannet_protocols::Scratch;
use gannet_protocols::lifecycle::events::EventQueueFlushPoint;
use gannet_protocols::lifecycle::events::NetworkTimeInit;
use gannet_protocols::lifecycle::events::ZeekInit;
use gannet_protocols::packet::events::ConnectionPartialClose;
use gannet_protocols::packet::events::ConnectionReset;
use gannet_protocols::packet::events::UnknownProtocol;
use gannet_protocols::policy::UnknownRow;
use gannet_protocols::policy::unknown::Sampler;
use gannet_wire::TcpFlags;

use crate::Options;
use crate::index_reporter::IndexReporter;
use crate::lookahead;
use crate::reassembled::Reassembled;
use crate::role::Role;
use crate::state::Evictor;
use crate::tunnels::IpTunnels;
use ext::Ext;

/// Minimum network time, at which Zeek's timer clock starts. Packets and connections may have
/// earlier times.
const BEGINNING: Time = Time::from_secs(1);

/// Which segments other than a SYN begin a TCP connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpBeginnings {
    /// Any segment, except SYN-ACKs if the next field excludes them.
    pub(crate) any: bool,
    pub(crate) syn_acks: bool,
}

impl Default for TcpBeginnings {
    fn default() -> Self {
        Self { any: true, syn_acks: true }
    }
}

impl TcpBeginnings {
    /// Whether a segment with these flags begins a connection.
    pub(crate) fn with(self, flags: TcpFlags) -> bool {
        match (flags.syn(), flags.ack()) {
            (true, false) => true,
            (true, true) => self.any && self.syn_acks,
            (false, _) => self.any,
        }
    }
}

/// A partition of the connection table, with the state that its analysis needs.
pub(crate) struct Shard {
    pub(crate) options: Options,
    pub(crate) env: Env,
    pub(crate) table: Table<Ext>,
    pub(crate) fragments: Fragments,
    pub(crate) ip_tunnels: IpTunnels,
    pub(crate) timers: Timers,
    pub(crate) evictor: Evictor,
    /// Limits of TCP connections and of their reassembly.
    pub(crate) streams: tcp::Limits,
    /// Which segments other than a SYN begin a connection.
    pub(crate) beginnings: TcpBeginnings,
    scratch: Scratch,
    spare: Spare,
    /// Network time, which never decreases.
    pub(crate) now: Time,
    /// Time of the current packet.
    pub(crate) time: Time,
    /// Number of the current packet.
    pub(crate) packet_number: u64,
    /// Number of lookups of connections and tunnels for the current packet: the ordinal of the next
    /// one, which is part of the uid of a new connection.
    pub(crate) ordinal: u32,
    created: u64,
    /// Bytes of the current packet that were not captured.
    pub(crate) missing: u32,
    /// Number of layers of the current packet so far, including those outside of tunnels.
    pub(crate) layers: u8,
    /// Reports the packets of each connection, if requested.
    pub(crate) index_reporter: Option<Box<IndexReporter>>,
    /// The role of the shard in the analysis.
    pub(crate) role: Role,
    /// Step of the current packet: each shard that processes a part of the packet does so in its
    /// own step.
    pub(crate) step: u32,
    /// No timer is due before this time; used for packets of other shards.
    wake: Time,
    /// Names of the current packet's layers, if packets of unknown protocols are logged.
    pub(crate) trail: Option<Vec<&'static str>>,
    /// Decides which packets of unknown protocols raise an event.
    pub(crate) unknown_sampler: Sampler,
    /// Seed of Community IDs, if their column is written.
    community: Option<u16>,
    /// Whether the analysis of packets was stopped by a command.
    pub(crate) stopped: bool,
    /// The filter that the listener requested.
    filter: Option<Filter>,
    /// Networks whose checksums are not verified, besides those of the options.
    pub(crate) unchecked: Vec<Subnet>,
    /// Link types whose packets consist of a number of bytes to skip and an IP packet, set by a
    /// listener.
    pub(crate) skipped: Vec<(u32, usize)>,
    /// Packet counts at which a connection is reported.
    pub(super) packet_thresholds: Vec<u64>,
    /// Whether all connections are watched, for scripts that look up connections: each packet is
    /// reported.
    pub(super) watches_all: bool,
    /// Link layer data of the current packet, if events are raised.
    pub(crate) link: LinkState,
    /// VLAN tags of connections, if tags distinguish connections and scripts may refer to
    /// connections.
    vlans: UidMap<u32>,
    /// Whether a connection or ARP processed the current packet, if events are raised.
    pub(crate) is_taken: bool,
    /// The datagram that the current packet completed, for its events.
    pub(crate) reassembled: Reassembled,
    /// Whether VLAN tags distinguish connections.
    pub(crate) keyed_by_vlan: bool,
    /// IGMP messages of the current packet, each with its sender, if their events have a listener.
    pub(crate) groups: Vec<(Addr, Vec<u8>)>,
    /// Whether a script disabled the analyzer of unknown transports: their packets belong to no
    /// connection.
    pub(crate) ignores_unknown: bool,
    /// Whether checksums of datagrams to VXLAN ports are ignored.
    pub(crate) ignores_vxlan_checksums: bool,
    /// Whether a packet was reported to a listener.
    has_begun: bool,
}

impl Shard {
    pub(crate) fn new(options: Options, role: Role) -> Self {
        let uids = UidSource::new(options.seed);
        let mut protocol_options = gannet_protocols::Options {
            inner_protocols: options.inner_protocols,
            pending: options.limits.pending(),
            scripted: options.scripted,
            ..gannet_protocols::Options::default()
        };
        if let Some(nets) = &options.local_nets {
            protocol_options.local_nets = nets.clone();
        }
        protocol_options.assets = options.assets;
        let community = options.logs.has_column("community_id").then_some(options.community_seed);
        let logs = match role {
            Role::Whole => Logs::new(options.logs.clone()),
            Role::Global(_) | Role::HostPairs => Logs::collecting(options.logs.clone()),
        };
        let wants_trail = logs.selection().wants::<UnknownRow<'_>>();
        let options_of_files = FileOptions {
            hash: options.hash_files,
            max_per_pair: options.limits.files(),
            extract: options.extract.clone(),
            ..FileOptions::default()
        };
        let files = Files::with_options(uids, options_of_files);
        let mut env = Env::new(protocol_options, logs.into(), files, uids);
        if matches!(role, Role::HostPairs) {
            env.set_sharded();
        }
        Self {
            env,
            evictor: Evictor::new(&options.limits, options.memory),
            streams: options.limits.streams(),
            beginnings: TcpBeginnings::default(),
            fragments: Fragments::with_limits(options.limits.fragments()),
            index_reporter: options
                .index
                .as_deref()
                .map(|index| Box::new(IndexReporter::new(index))),
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
            unknown_sampler: Sampler::default(),
            community,
            stopped: false,
            filter: None,
            unchecked: Vec::new(),
            skipped: Vec::new(),
            packet_thresholds: Vec::new(),
            watches_all: false,
            link: LinkState::default(),
            vlans: UidMap::default(),
            is_taken: false,
            reassembled: Reassembled::default(),
            ignores_unknown: false,
            ignores_vxlan_checksums: false,
            groups: Vec::new(),
            keyed_by_vlan: false,
            has_begun: false,
        }
    }

    /// Passes events of `interest` to `listener`.
    pub(crate) fn listen(&mut self, interest: Interest, listener: Box<dyn Listener>) {
        self.env.logs.events = Events::new(interest, listener);
        self.begin_events();
        self.env.logs.events.collect_commands();
        self.carry_out();
        self.raise_init();
    }

    /// Records events of `interest` for the merge. Carries out the commands that the listener gave
    /// before the first packet.
    pub(crate) fn record(&mut self, interest: Interest, wants_packets: bool, commands: &[Command]) {
        let wants_packets = wants_packets && !self.is_part();
        self.env.logs.events = Events::recording(interest, wants_packets);
        self.has_begun = self.is_part();
        self.begin_events();
        self.env.logs.events.push_commands(commands);
        self.carry_out();
        if !self.is_part() {
            self.raise_init();
        }
    }

    /// Whether another shard raises the events that belong to no host pair.
    #[inline]
    pub(crate) fn is_part(&self) -> bool {
        matches!(self.role, Role::HostPairs)
    }

    fn begin_events(&mut self) {
        let any = self.env.logs.events.any();
        self.env.files.report_matches(any);
        self.env.files.keep_programs(self.env.logs.events.wants::<PeDosCode<'_>>());
        if self.env.logs.events.wants::<UnknownProtocol<'_>>() {
            self.trail.get_or_insert_default();
        }
        let events = &self.env.logs.events;
        let delays = &mut self.streams.delays;
        delays.reset = events.wants::<ConnectionReset>().then_some(Delays::RESET);
        delays.partial_close =
            events.wants::<ConnectionPartialClose>().then_some(Delays::PARTIAL_CLOSE);
        self.env.logs.events.set_mark(EventQueueFlushPoint::DECL);
    }

    fn raise_init(&mut self) {
        let events = &mut self.env.logs.events;
        if events.wants::<ZeekInit>() {
            events.raise(&ZeekInit {});
            events.drain();
        }
    }

    pub(crate) fn connections(&self) -> u64 {
        self.created
    }

    /// See [`Engine::earliest_open`](crate::Engine::earliest_open).
    pub(crate) fn earliest_open(&self) -> Time {
        self.table.iter().map(|(_, slot)| slot.conn.start).min().unwrap_or(Time::MAX)
    }

    pub(crate) fn check(&mut self) -> io::Result<()> {
        self.env.logs.check()
    }

    /// Whether the connection table exceeds the near caches, so that lookups read slow memory.
    pub(crate) fn is_table_far(&self) -> bool {
        self.table.index_bytes() > lookahead::NEAR
    }

    /// Prefetches the connection with this key, whose packet comes soon.
    #[inline]
    pub(crate) fn prefetch(&self, key: &Key) {
        self.table.prefetch(self.table.hash(key));
    }

    /// Whether a packet passes the filter that the listener requested.
    #[inline]
    pub(crate) fn passes(&self, packet: &Packet<'_>) -> bool {
        let matches =
            |filter: &Filter| filter.matches(packet.link_type.0, packet.data, packet.wire_len);
        self.filter.as_ref().is_none_or(matches)
    }

    /// Whether checksums of packets from this address are verified.
    #[inline]
    pub(crate) fn verifies(&self, from: Addr) -> bool {
        !self.options.ignore_checksums && !self.unchecked.iter().any(|net| net.contains(from))
    }

    /// Whether no event has a listener, and packets are processed as without listeners; this cannot
    /// change later.
    #[inline]
    pub(crate) fn is_unobserved(&self) -> bool {
        let is_plain = self.trail.is_none() && self.unchecked.is_empty() && self.filter.is_none();
        is_plain && !self.env.logs.events.any() && !self.stopped && !self.keyed_by_vlan
    }

    /// Processes one packet. `EVENTS`: an event may have a listener; otherwise the shard is
    /// [unobserved](Self::is_unobserved).
    #[inline]
    pub(crate) fn packet<const EVENTS: bool>(&mut self, packet: &Packet<'_>) {
        if packet.data.is_empty() || packet.wire_len == 0 {
            return self.empty_packet(packet);
        }
        if EVENTS {
            self.begin(packet.number, packet.time);
            if self.stopped {
                return;
            }
        } else {
            self.set_packet(packet.number, packet.time);
        }
        self.missing = packet.wire_len.saturating_sub(packet.data.len() as u32);
        self.advance_if_due(packet.time);
        if EVENTS && self.env.logs.events.any() {
            self.env.logs.events.drain_if_full();
            self.raise_beginning(packet.time);
            self.raise_packet_bytes(packet);
        }
        self.dissect_link::<EVENTS>(packet);
        if EVENTS && self.env.logs.events.any() {
            self.raise_packet_done(packet);
            self.raise_raw_packet(packet);
        }
        self.update_wake();
        if EVENTS && self.env.logs.events.any() {
            // Marks the end of the packet in the recorded events.
            self.env.logs.events.mark();
            self.env.logs.events.mark();
            self.drain_events();
        }
    }

    /// Reports a packet without bytes.
    #[cold]
    fn empty_packet(&mut self, packet: &Packet<'_>) {
        // Its time does not advance the clock.
        self.begin_at(packet.number, packet.time, self.now);
        if self.stopped {
            return;
        }
        self.missing = packet.wire_len.saturating_sub(packet.data.len() as u32);
        self.set_step(0);
        self.env.logs.set_time(self.now);
        let name = match packet.format {
            Format::PcapNg => "empty_pcapng_header",
            _ => "empty_pcap_header",
        };
        self.env.weirds.net(&mut self.env.logs, self.now, name, "");
        self.drain_events();
    }

    /// Records that a packet of another shard begins, for a listener that receives each packet.
    #[cold]
    pub(crate) fn record_packet(&mut self, number: u64, time: Time) {
        let now = time.max(BEGINNING).max(self.now);
        self.env.logs.events.set_time(now, number);
        let after_timers = Time::from_nanos(Time::MAX.as_nanos() - 1);
        self.env.logs.set_time(now);
        self.env.logs.set_key(RowKey { packet: number, due: after_timers, tie: u64::MAX });
        self.raise_beginning(time);
    }

    /// Records the number of the last packet: events at the end of input have its time.
    pub(crate) fn record_last(&mut self, number: u64) {
        if number > 0 {
            self.env.logs.set_time(self.now);
            self.env.logs.set_key(RowKey { packet: number, due: Time::MAX, tie: u64::MAX });
            self.env.logs.events.record_nothing();
        }
    }

    /// Whether this shard reports each packet to the listener, or the first packet is not yet
    /// reported.
    pub(crate) fn records_packets(&self) -> bool {
        let events = &self.env.logs.events;
        events.records_packets() || !self.has_begun && events.wants::<NetworkTimeInit>()
    }

    /// Whether the listener requested a filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Advances time without a packet, and reports that to the listener.
    pub(crate) fn idle(&mut self, number: u64, time: Time) {
        if self.env.logs.events.any() {
            self.begin(number, time);
        }
        self.pass(number, time);
        self.drain_events();
    }

    /// Reports the first packet; while network time is zero, every packet counts as the first.
    #[inline]
    fn raise_beginning(&mut self, time: Time) {
        if !self.has_begun {
            self.raise_first(time);
        }
    }

    #[cold]
    fn raise_first(&mut self, time: Time) {
        self.has_begun = time != Time::ZERO;
        let events = &mut self.env.logs.events;
        if events.wants::<NetworkTimeInit>() {
            events.raise(&NetworkTimeInit {});
        }
    }

    /// Delivers the events of the current packet and of the timers before it. If events are
    /// recorded, the merge delivers them at the end of the packet.
    #[inline]
    pub(crate) fn drain_events(&mut self) {
        if self.env.logs.events.any() && !self.env.logs.events.is_recording() {
            self.env.logs.events.drain();
            self.carry_out();
        }
    }

    /// Carries out the listener's commands, and those that it gives in reply to the resulting
    /// events.
    #[inline]
    pub(crate) fn carry_out(&mut self) {
        while self.env.logs.events.has_commands() {
            self.carry_out_all();
            self.env.logs.events.drain();
        }
    }

    /// Begins a packet.
    #[inline]
    pub(crate) fn begin(&mut self, number: u64, time: Time) {
        self.begin_at(number, time, time.max(BEGINNING).max(self.now));
    }

    /// Begins a packet; events raised from here on have the time `now`.
    #[inline]
    fn begin_at(&mut self, number: u64, time: Time, now: Time) {
        self.set_packet(number, time);
        if self.env.logs.events.any() {
            self.env.logs.events.set_time(now, number);
            self.carry_out();
        }
    }

    #[inline]
    fn set_packet(&mut self, number: u64, time: Time) {
        self.packet_number = number;
        self.ordinal = 0;
        self.time = time;
    }

    /// Sets the step of the current packet for the following rows.
    #[inline]
    pub(crate) fn set_step(&mut self, step: u32) {
        self.step = step;
        let key = RowKey { packet: self.packet_number, due: Time::MAX, tie: u64::from(step) };
        self.env.logs.set_key(key);
    }
}
