//! One part of the connection table, and what its packets do to it.
//!
//! [`Shard`] is given packets, or passes the time of others'. It [walks](crate::walk) each through its
//! layers to a [connection], whose state and analyzers it drives; and it keeps
//! [time](clock), by which connections end.

pub(crate) mod clock;
pub(crate) mod connection;

use std::io;

use gannet_base::Time;
use gannet_base::UidSource;
use gannet_capture::Format;
use gannet_capture::Packet;
use gannet_event::Events;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_files::FileOptions;
use gannet_files::Files;
use gannet_files::events::FileSniff;
use gannet_flow::Fragments;
use gannet_flow::Key;
use gannet_flow::Services;
use gannet_flow::Spare;
use gannet_flow::Table;
use gannet_flow::Timers;
use gannet_flow::tcp;
use gannet_log::Key as RowKey;
use gannet_log::Logs;
use gannet_protocols::Env;
use gannet_protocols::Scratch;
use gannet_protocols::Stack;
use gannet_protocols::Tag;
use gannet_protocols::lifecycle::events::ZeekInit;
use gannet_protocols::policy::UnknownRow;

use crate::Options;
use crate::glance;
use crate::notes::Noting;
use crate::state::Keeper;
use crate::steer::Role;
use crate::tunnels::Encapsulation;
use crate::tunnels::IpTunnels;

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
    /// Which packets belong to which connections, where that is asked for.
    pub(crate) noting: Option<Box<Noting>>,
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
        let options_of_files = FileOptions {
            hash: options.hash_files,
            most: options.limits.files(),
            extract: options.extract.clone(),
        };
        let files = Files::with_options(uids, options_of_files);
        let mut env = Env::new(protocol_options, logs.into(), files, uids);
        if matches!(role, Role::Part) {
            env.leave_hub();
        }
        Self {
            env,
            keeper: Keeper::new(&options.limits, options.memory),
            streams: options.limits.streams(),
            fragments: Fragments::with_limits(options.limits.fragments()),
            noting: options.index.clone().map(|index| Box::new(Noting::new(index))),
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

    /// Events of `interest` go to `listener`.
    pub(crate) fn listen(&mut self, interest: Interest, listener: Box<dyn Listener>) {
        self.env.logs.events = Events::new(interest, listener);
        let wants_matches = self.env.logs.events.wants::<FileSniff>();
        self.env.files.report_matches(wants_matches);
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

    /// Whether finding a connection reads memory that is in no near cache.
    pub(crate) fn is_table_far(&self) -> bool {
        self.table.index_bytes() > glance::NEAR
    }

    /// A packet with this key comes soon.
    #[inline]
    pub(crate) fn expect_soon(&self, key: &Key) {
        self.table.prefetch(self.table.hash(key));
    }

    /// One packet.
    #[inline]
    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        self.begin(packet.number, packet.time);
        self.missing = packet.wire_len.saturating_sub(packet.data.len() as u32);
        if packet.data.is_empty() || packet.wire_len == 0 {
            // There is no packet, and its time is none.
            self.set_step(0);
            self.env.logs.set_time(self.now);
            let name = match packet.format {
                Format::PcapNg => "empty_pcapng_header",
                _ => "empty_pcap_header",
            };
            self.env.weirds.net(&mut self.env.logs, self.now, name, "");
            return;
        }
        self.advance_if_due(packet.time);
        self.walk_link(packet);
        self.rest();
        self.drain_events();
    }

    /// The packet is done: events that it raised are delivered, and those of timers before it.
    #[inline]
    pub(crate) fn drain_events(&mut self) {
        if self.env.logs.events.any() {
            self.env.logs.events.drain();
        }
    }

    /// Turns to another packet.
    #[inline]
    pub(crate) fn begin(&mut self, number: u64, time: Time) {
        self.packet_number = number;
        self.ordinal = 0;
        self.time = time;
        if self.env.logs.events.any() {
            let now = time.max(clock::BEGINNING).max(self.now);
            self.env.logs.events.set_time(now, number);
        }
    }

    /// Rows to come are of this step of the packet.
    #[inline]
    pub(crate) fn set_step(&mut self, step: u32) {
        self.step = step;
        let key = RowKey { packet: self.packet_number, due: Time::MAX, tie: u64::from(step) };
        self.env.logs.set_key(key);
    }
}
