//! A shard: one part of the connection table, and how packets change it.
//!
//! [`Shard`] receives its own packets, and the times of others'. It [walks](crate::walk) each
//! packet through its layers to a [connection], whose state and analyzers it drives; and it
//! advances [time](clock), by which connections end.

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
use crate::lookahead;
use crate::notes::IndexNotes;
use crate::reassembled::Reassembled;
use crate::role::Role;
use crate::state::Evictor;
use crate::tunnels::IpTunnels;
use ext::Ext;

/// The least network time: there Zeek's clock of timers begins. Times of packets and connections may be earlier.
const BEGINNING: Time = Time::from_secs(1);

/// Which segments other than a SYN begin a TCP connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpBeginnings {
    /// Any, if none is excluded below.
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

/// A shard of the connection table with its environment.
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
    /// Whether segments other than a SYN begin a connection, and, of these, SYN-ACKs.
    pub(crate) beginnings: TcpBeginnings,
    scratch: Scratch,
    spare: Spare,
    /// Network time, which never goes back.
    pub(crate) now: Time,
    /// Time of the current packet.
    pub(crate) time: Time,
    /// Number of the current packet.
    pub(crate) packet_number: u64,
    /// Number of connections and tunnels looked up for the current packet: the ordinal of the next
    /// one, which is part of its uid if it is new.
    pub(crate) ordinal: u32,
    created: u64,
    /// Bytes of the current packet that were not captured.
    pub(crate) missing: u32,
    /// Layers of the current packet down to the current one, tunnels included.
    pub(crate) layers: u8,
    /// The packets of each connection, if requested.
    pub(crate) noting: Option<Box<IndexNotes>>,
    /// The role of the shard in the analysis.
    pub(crate) role: Role,
    /// Step of the current packet: each shard that processes a part of it does so in a step of its
    /// own.
    pub(crate) step: u32,
    /// No timer is due before this time: for packets of other shards.
    wake: Time,
    /// Names of the layers, where packets of unknown protocols are logged.
    pub(crate) trail: Option<Vec<&'static str>>,
    /// Which packets of unknown protocols have an event.
    pub(crate) unread: Sampler,
    /// Seed of Community IDs, if their column is written.
    community: Option<u16>,
    /// No more packets are analyzed.
    pub(crate) stopped: bool,
    /// The filter that the listener asked for.
    filter: Option<Filter>,
    /// Networks of which no checksums are verified, besides those of the options.
    pub(crate) unchecked: Vec<Subnet>,
    /// Types of links whose packets are IP packets behind a number of bytes, for a listener of events.
    pub(crate) skipped: Vec<(u32, usize)>,
    /// Numbers of packets of which each connection is reported that has as many.
    pub(super) packet_thresholds: Vec<u64>,
    /// Scripts look at connections again: each packet is reported.
    pub(super) watches_all: bool,
    /// The link layer of the current packet, where events are raised.
    pub(crate) link: LinkState,
    /// VLAN tags of connections, where these distinguish them and scripts may name connections.
    vlans: UidMap<u32>,
    /// Whether a connection or ARP took the current packet, where events are raised.
    pub(crate) is_taken: bool,
    /// The datagram that the packet completed, for its events.
    pub(crate) reassembled: Reassembled,
    /// VLAN tags distinguish connections.
    pub(crate) keyed_by_vlan: bool,
    /// IGMP messages of the current packet with their senders, where events are raised of them.
    pub(crate) groups: Vec<(Addr, Vec<u8>)>,
    /// Scripts disabled the analyzer of unknown transports: their packets belong to no connection.
    pub(crate) ignores_unknown: bool,
    /// Whether the checksums of datagrams to ports of VXLAN do not matter.
    pub(crate) ignores_vxlan_checksums: bool,
    /// A packet was reported to a listener.
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
            most: options.limits.files(),
            extract: options.extract.clone(),
            ..FileOptions::default()
        };
        let files = Files::with_options(uids, options_of_files);
        let mut env = Env::new(protocol_options, logs.into(), files, uids);
        if matches!(role, Role::HostPairs) {
            env.leave_global();
        }
        Self {
            env,
            evictor: Evictor::new(&options.limits, options.memory),
            streams: options.limits.streams(),
            beginnings: TcpBeginnings::default(),
            fragments: Fragments::with_limits(options.limits.fragments()),
            noting: options.index.as_deref().map(|index| Box::new(IndexNotes::new(index))),
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
            unread: Sampler::default(),
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

    /// Events of `interest` go to `listener`.
    pub(crate) fn listen(&mut self, interest: Interest, listener: Box<dyn Listener>) {
        self.env.logs.events = Events::new(interest, listener);
        self.begin_events();
        self.env.logs.events.ask();
        self.carry_out();
        self.raise_init();
    }

    /// Events of `interest` are recorded for the merge. Carries out what the listener asks for before the first packet.
    pub(crate) fn record(&mut self, interest: Interest, wants_packets: bool, commands: &[Command]) {
        let wants_packets = wants_packets && !self.is_part();
        self.env.logs.events = Events::recording(interest, wants_packets);
        self.has_begun = self.is_part();
        self.begin_events();
        self.env.logs.events.ask_for(commands);
        self.carry_out();
        if !self.is_part() {
            self.raise_init();
        }
    }

    /// Whether another shard raises what is not of one host pair.
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

    /// Whether looking up a connection reads memory that is not in a near cache.
    pub(crate) fn is_table_far(&self) -> bool {
        self.table.index_bytes() > lookahead::NEAR
    }

    /// Prefetches the connection of this key, whose packet comes soon.
    #[inline]
    pub(crate) fn prefetch(&self, key: &Key) {
        self.table.prefetch(self.table.hash(key));
    }

    /// Whether a packet passes the filter that the listener asked for.
    #[inline]
    pub(crate) fn passes(&self, packet: &Packet<'_>) -> bool {
        let matches =
            |filter: &Filter| filter.matches(packet.link_type.0, packet.data, packet.wire_len);
        self.filter.as_ref().is_none_or(matches)
    }

    /// Whether checksums of packets from an address are verified.
    #[inline]
    pub(crate) fn verifies(&self, from: Addr) -> bool {
        !self.options.ignore_checksums && !self.unchecked.iter().any(|net| net.contains(from))
    }

    /// Whether no event has a listener, and packets are processed as without any: then that stays so.
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
            self.env.logs.events.relieve();
            self.raise_beginning(packet.time);
            self.raise_packet_bytes(packet);
        }
        self.walk_link::<EVENTS>(packet);
        if EVENTS && self.env.logs.events.any() {
            self.raise_packet_done(packet);
            self.raise_raw_packet(packet);
        }
        self.rest();
        if EVENTS && self.env.logs.events.any() {
            // After the packet, and after its turn of the loop.
            self.env.logs.events.mark();
            self.env.logs.events.mark();
            self.drain_events();
        }
    }

    /// Reports a packet without a byte.
    #[cold]
    fn empty_packet(&mut self, packet: &Packet<'_>) {
        // Its time does not count.
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

    /// Records that a packet of another shard begins, for a listener that wants to know of each.
    #[cold]
    pub(crate) fn note_packet(&mut self, number: u64, time: Time) {
        let now = time.max(BEGINNING).max(self.now);
        self.env.logs.events.set_time(now, number);
        let after_timers = Time::from_nanos(Time::MAX.as_nanos() - 1);
        self.env.logs.set_time(now);
        self.env.logs.set_key(RowKey { packet: number, due: after_timers, tie: u64::MAX });
        self.raise_beginning(time);
    }

    /// Records that this is the last packet: what arises at the end of input has its time.
    pub(crate) fn note_last(&mut self, number: u64) {
        if number > 0 {
            self.env.logs.set_time(self.now);
            self.env.logs.set_key(RowKey { packet: number, due: Time::MAX, tie: u64::MAX });
            self.env.logs.events.record_nothing();
        }
    }

    /// Whether the listener learns of each packet through this shard, or of the first one still.
    pub(crate) fn notes_packets(&self) -> bool {
        let events = &self.env.logs.events;
        events.records_packets() || !self.has_begun && events.wants::<NetworkTimeInit>()
    }

    /// Whether the listener asked for a filter.
    pub(crate) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Advances time without a packet, which the listener learns of as well.
    pub(crate) fn idle(&mut self, number: u64, time: Time) {
        if self.env.logs.events.any() {
            self.begin(number, time);
        }
        self.pass(number, time);
        self.drain_events();
    }

    /// Reports the first packet: any one as long as all have time zero.
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

    /// Delivers the events of the current packet and of the timers before it. Where events are recorded, the merge
    /// knows when a packet is over.
    #[inline]
    pub(crate) fn drain_events(&mut self) {
        if self.env.logs.events.any() && !self.env.logs.events.is_recording() {
            self.env.logs.events.drain();
            self.carry_out();
        }
    }

    /// Carries out what the listener asked for, and what its answers to the events of that ask for.
    #[inline]
    pub(crate) fn carry_out(&mut self) {
        while self.env.logs.events.has_commands() {
            self.carry_out_all();
            self.env.logs.events.drain();
        }
    }

    /// Starts another packet.
    #[inline]
    pub(crate) fn begin(&mut self, number: u64, time: Time) {
        self.begin_at(number, time, time.max(BEGINNING).max(self.now));
    }

    /// Starts another packet; events that are raised from now on are of the time `now`.
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

    /// Sets the step of the current packet for further rows.
    #[inline]
    pub(crate) fn set_step(&mut self, step: u32) {
        self.step = step;
        let key = RowKey { packet: self.packet_number, due: Time::MAX, tie: u64::from(step) };
        self.env.logs.set_key(key);
    }
}
