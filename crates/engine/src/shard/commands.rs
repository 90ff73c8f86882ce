//! Commands of listeners to the analysis.

use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Uid;
use gannet_event::Command;
use gannet_event::ConnCommand;
use gannet_filter::Filter;
use gannet_flow::Key;
use gannet_protocols::ScriptRequest;
use gannet_protocols::Tag;
use gannet_protocols::TlsSecret;
use gannet_protocols::conn_state;
use gannet_protocols::packet::events::DiscardPacket;
use gannet_protocols::packet::events::WatchedConnection;
use gannet_protocols::websocket;

use crate::dissect_transport::UNKNOWN_TRANSPORT;
use crate::shard::Shard;

/// Converts nanoseconds, as in settings of scripts, to an interval.
fn interval(nanos: u64) -> Interval {
    Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

impl Shard {
    /// Carries out all pending commands.
    #[cold]
    #[inline(never)]
    pub(crate) fn carry_out_all(&mut self) {
        for command in self.env.logs.events.take_commands() {
            match command {
                Command::Stop => self.stopped = true,
                // The listener checked the syntax of the filter.
                Command::Filter(text) => {
                    self.filter = text.and_then(|text| Filter::parse(&text).ok());
                }
                Command::AskToDiscard => self.env.logs.events.add_interest::<DiscardPacket<'_>>(),
                Command::WatchAll => self.watches_all = true,
                Command::SkipBytes { link_type, bytes } => {
                    self.skipped.push((link_type, usize::try_from(bytes).unwrap_or(usize::MAX)));
                }
                Command::PacketThresholds(all) => self.packet_thresholds = all,
                Command::Unchecked(nets) => self.unchecked = nets,
                Command::Setting { name, value } if self.set_tcp(name, value) => {}
                Command::Setting { name: "ConnKey::factory", value } => {
                    self.keyed_by_vlan = value != 0;
                }
                Command::Enable { analyzer: Some(name), on }
                    if name.strip_prefix("PacketAnalyzer::ANALYZER_")
                        == Some(UNKNOWN_TRANSPORT) =>
                {
                    self.ignores_unknown = !on;
                }
                Command::Setting { name: "Tunnel::validate_vxlan_checksums", value } => {
                    self.ignores_vxlan_checksums = value == 0;
                }
                Command::Setting { name: "Tunnel::max_depth", value } => {
                    // The outermost tunnel is always parsed.
                    self.options.limits.tunnel_depth = value.max(1);
                }
                Command::Setting { name: "Tunnel::ip_tunnel_timeout", value } => {
                    self.ip_tunnels.set_timeout(interval(value));
                }
                Command::Setting { name: "frag_timeout", value } => {
                    // Zero means no timeout.
                    let value = if value == 0 { u64::MAX } else { value };
                    self.fragments.set_timeout(interval(value));
                }
                Command::Setting { name: "UnknownProtocol::first_bytes_count", value } => {
                    self.unknown_sampler.first_bytes = usize::try_from(value).unwrap_or(usize::MAX);
                }
                Command::Setting { name: "UnknownProtocol::sampling_threshold", value } => {
                    self.unknown_sampler.threshold = value;
                }
                Command::Setting { name: "UnknownProtocol::sampling_rate", value } => {
                    self.unknown_sampler.rate = value;
                }
                Command::Setting { name: "UnknownProtocol::sampling_duration", value } => {
                    self.unknown_sampler.duration = interval(value);
                }
                Command::Connection { id, ip_proto, uid, what } => {
                    let vlans = self.vlans_of(uid);
                    let found = self.find_connection(&id, ip_proto, vlans);
                    let is_it = |index: &u32| {
                        self.table.get(*index).is_some_and(|slot| slot.conn.uid == uid)
                    };
                    if let Some(index) = found.filter(is_it) {
                        self.apply_connection_command(index, what);
                    }
                }
                Command::File { fuid, what } => {
                    self.env.files.apply_command(fuid, what);
                }
                other => self.env.apply_command(self.time.max(self.now), other),
            }
        }
    }

    /// Sets an option of the TCP analysis, by its name in Zeek. Returns whether the option is
    /// known.
    fn set_tcp(&mut self, name: &str, value: u64) -> bool {
        let Self { streams, beginnings, .. } = self;
        // Zero means no limit.
        let limit = if value == 0 { u64::MAX } else { value };
        match name {
            "partial_connection_ok" => beginnings.any = value != 0,
            "report_gaps_for_partial" => streams.partial_gaps = value != 0,
            "tcp_SYN_ack_ok" => beginnings.syn_acks = value != 0,
            "tcp_SYN_timeout" => streams.delays.first_check = interval(value),
            "tcp_attempt_delay" => streams.delays.attempt = interval(value),
            // Without its event, nothing waits for this delay.
            "tcp_partial_close_delay" => {
                let delay = &mut streams.delays.partial_close;
                *delay = delay.map(|_| interval(value));
            }
            "tcp_reset_delay" => {
                let delay = &mut streams.delays.reset;
                *delay = delay.map(|_| interval(value));
            }
            "tcp_close_delay" => streams.delays.close = interval(value),
            "tcp_connection_linger" => streams.delays.linger = interval(value),
            "tcp_excessive_data_without_further_acks" => streams.without_further_acks = limit,
            "tcp_max_above_hole_without_any_acks" => streams.above_hole_without_acks = limit,
            "tcp_max_initial_window" => streams.initial_window = limit,
            // Each check must be later than the one before.
            "tcp_session_timer" => streams.delays.check = interval(value.max(1)),
            "tcp_storm_interarrival_thresh" => {
                streams.storm_within = i32::try_from(value / 1_000_000).unwrap_or(i32::MAX);
            }
            "tcp_storm_thresh" => streams.storm = u32::try_from(value).unwrap_or(u32::MAX),
            _ => return false,
        }
        true
    }

    /// The VLAN tags that distinguish the connection of the current packet, packed into a number; 0
    /// if tags are ignored.
    #[inline]
    pub(crate) fn vlans(&self) -> u32 {
        if self.keyed_by_vlan { self.link.tags() } else { 0 }
    }

    /// Like [`Self::vlans`], for the connection with this uid.
    fn vlans_of(&self, uid: Uid) -> u32 {
        self.vlans.get(&uid).copied().unwrap_or_default()
    }

    /// The index of an open connection.
    fn find_connection(&self, id: &ConnId, ip_proto: u8, vlans: u32) -> Option<u32> {
        [false, true].into_iter().find_map(|one_way| {
            let key = Key::new(id, ip_proto, one_way).of_vlans(vlans);
            let plain = self.table.look_up(&key).1.map(|found| found.index);
            plain.or_else(|| self.table.look_up(&key.of_global(true)).1.map(|found| found.index))
        })
    }

    fn apply_connection_command(&mut self, index: u32, what: ConnCommand) {
        // The command may follow a packet of another shard.
        if let Some(index_reporter) = &mut self.index_reporter {
            index_reporter.index.mark(self.packet_number);
        }
        match what {
            ConnCommand::Disable { aid, prevent } => {
                self.with_packet::<true, _>(index, |conn, _, session| {
                    session.disable(conn, aid, prevent);
                });
            }
            ConnCommand::Start { analyzer, replay } => {
                if let Some(tag) = Tag::from_zeek_name(&analyzer) {
                    self.with_packet::<true, _>(index, |conn, _, session| {
                        session.attach(conn, tag, replay);
                    });
                }
            }
            ConnCommand::Configure { payload, detects } => {
                let payload = websocket::payload_of(payload.as_deref(), detects);
                self.with_packet::<true, _>(index, |conn, _, session| {
                    session.configure(conn, payload);
                });
            }
            ConnCommand::Decrypt { secret, is_key_block } => {
                let secret = match is_key_block {
                    true => TlsSecret::KeyBlock(&secret),
                    false => TlsSecret::Master(&secret),
                };
                self.apply_analyzer_request(index, ScriptRequest::Decrypt(secret));
            }
            ConnCommand::Establish => self.apply_analyzer_request(index, ScriptRequest::Establish),
            ConnCommand::SkipEntity { is_orig } => {
                let from = if is_orig { Dir::Orig } else { Dir::Resp };
                self.apply_analyzer_request(index, ScriptRequest::SkipEntity { from });
            }
            ConnCommand::SkipMail => self.apply_analyzer_request(index, ScriptRequest::SkipMail),
            ConnCommand::Login { state } => {
                self.apply_analyzer_request(index, ScriptRequest::Login { state });
            }
            ConnCommand::Contents { sides } => {
                self.with_packet::<true, _>(index, |conn, _, session| session.record(conn, sides));
            }
            ConnCommand::Uncounted => {
                if let Some(slot) = self.table.get_mut(index) {
                    let rare = slot.ext.rare();
                    rare.thresholds = None;
                    rare.uncounted = true;
                }
            }
            ConnCommand::Unmatched => {
                if let Some(slot) = self.table.get_mut(index) {
                    slot.conn.set_unmatched();
                }
            }
            ConnCommand::Watch => {
                if let Some(slot) = self.table.get_mut(index) {
                    slot.ext.rare().watched = true;
                }
            }
            ConnCommand::Skip => {
                if let Some(slot) = self.table.get_mut(index) {
                    slot.ext.rare().skip = true;
                }
            }
            ConnCommand::ForgetTunnel => {
                let rare = self.table.get_mut(index).and_then(|slot| slot.ext.rare.as_mut());
                if let Some(rare) = rare {
                    (rare.has_gtp_state, rare.tunnel_sides) = (false, 0);
                }
            }
            ConnCommand::Limit => {
                if let Some(slot) = self.table.get_mut(index) {
                    slot.conn.note_limit();
                }
            }
            ConnCommand::Timeout(time) => {
                if let Some(slot) = self.table.get_mut(index) {
                    let seconds = time.as_nanos() / 1_000_000_000;
                    slot.conn.set_timeout(u16::try_from(seconds).unwrap_or(u16::MAX));
                }
                self.apply_requests(index);
            }
            ConnCommand::Bytes { .. } | ConnCommand::Packets { .. } | ConnCommand::Duration(_) => {
                if let Some(side) = self.store_threshold(index, &what) {
                    self.check_rare(index, side);
                }
            }
        }
    }

    /// Carries out a request to an analyzer of a connection.
    fn apply_analyzer_request(&mut self, index: u32, request: ScriptRequest<'_>) {
        self.with_packet::<true, _>(index, |conn, _, session| {
            session.handle_request(conn, request);
        });
    }

    /// Makes a connection watched: a script has looked it up.
    pub(crate) fn watch(&mut self, id: &ConnId, ip_proto: u8, uid: Uid) {
        let found = self.find_connection(id, ip_proto, self.vlans_of(uid));
        let slot = found.and_then(|index| self.table.get_mut(index));
        if let Some(slot) = slot.filter(|slot| slot.conn.uid == uid) {
            slot.ext.rare().watched = true;
        }
    }

    /// Reports the current state of a watched connection.
    fn report_watched(&mut self, index: u32) {
        let rare = self.table.get(index).and_then(|slot| slot.ext.rare.as_ref());
        if self.watches_all || rare.is_some_and(|rare| rare.watched) {
            self.with_session(index, |conn, tcp, session| {
                session.mention(tcp.as_deref());
                let sinks = &mut session.env.logs;
                if sinks.events.wants::<WatchedConnection>() {
                    conn_state::raise_at_end(sinks, conn, |c| WatchedConnection { c });
                }
            });
        }
    }

    /// Whether the packets of a connection are ignored at the request of a script.
    pub(crate) fn skips(&self, index: u32) -> bool {
        self.table.get(index).and_then(|slot| slot.ext.rare.as_ref()).is_some_and(|rare| rare.skip)
    }

    /// Reports thresholds of a connection that a packet of `len` bytes crossed, and the packet if the connection is watched.
    #[inline]
    pub(crate) fn check_thresholds(&mut self, index: u32, from: Dir, len: u64) {
        if self.env.logs.events.has_commands() {
            self.set_early_thresholds(index, from, len);
        }
        if self.watches_all || self.table.get(index).is_some_and(|slot| slot.ext.rare.is_some()) {
            self.check_rare(index, from);
        }
    }

    /// Handlers that ran before the end of the packet may have set thresholds: they hold for this packet.
    #[cold]
    fn set_early_thresholds(&mut self, index: u32, from: Dir, len: u64) {
        let Some(slot) = self.table.get(index) else { return };
        let uid = slot.conn.uid;
        let is_threshold = |what: &ConnCommand| {
            use ConnCommand::{Bytes, Duration, Packets};
            matches!(what, Bytes { .. } | Packets { .. } | Duration(_))
        };
        let mine = |command: &Command| matches!(command, Command::Connection { uid: of, what, .. } if *of == uid && is_threshold(what));
        for command in self.env.logs.events.take_commands_if(mine) {
            let Command::Connection { what, .. } = command else { continue };
            if self.was_crossed(index, &what, (from, len)) {
                self.apply_connection_command(index, what);
            } else {
                self.store_threshold(index, &what);
            }
        }
    }

    /// Whether a connection was beyond a threshold before a packet of this side and size, which is counted already.
    fn was_crossed(&self, index: u32, what: &ConnCommand, (from, len): (Dir, u64)) -> bool {
        let Some(slot) = self.table.get(index) else { return false };
        let side = |is_orig| if is_orig { Dir::Orig } else { Dir::Resp };
        match *what {
            ConnCommand::Bytes { threshold, is_orig } => {
                let side = side(is_orig);
                let last = if side == from { len } else { 0 };
                threshold > 0 && slot.conn.sent(side).ip_bytes.saturating_sub(last) >= threshold
            }
            ConnCommand::Packets { threshold, is_orig } => {
                let side = side(is_orig);
                let packets = u64::from(slot.conn.sent(side).packets);
                threshold > 0 && packets.saturating_sub(u64::from(side == from)) >= threshold
            }
            ConnCommand::Duration(threshold) => {
                threshold > Interval::ZERO && self.now - slot.conn.start > threshold
            }
            _ => false,
        }
    }

    /// Sets a threshold; returns the side whose sizes it is about.
    fn store_threshold(&mut self, index: u32, what: &ConnCommand) -> Option<Dir> {
        let slot = self
            .table
            .get_mut(index)
            .filter(|slot| slot.ext.rare.as_ref().is_none_or(|rare| !rare.uncounted))?;
        let thresholds = slot.ext.rare().thresholds.get_or_insert_default();
        let side = |is_orig| if is_orig { Dir::Orig } else { Dir::Resp };
        match *what {
            ConnCommand::Bytes { threshold, is_orig } => {
                thresholds.bytes[side(is_orig).index()] = threshold;
                Some(side(is_orig))
            }
            ConnCommand::Packets { threshold, is_orig } => {
                thresholds.packets[side(is_orig).index()] = threshold;
                Some(side(is_orig))
            }
            ConnCommand::Duration(threshold) => {
                thresholds.duration = threshold;
                Some(Dir::Orig)
            }
            _ => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn check_rare(&mut self, index: u32, from: Dir) {
        self.report_watched(index);
        let Some(slot) = self.table.get_mut(index) else { return };
        let Some(rare) = slot.ext.rare.as_mut() else { return };
        let Some(mut thresholds) = rare.thresholds.take() else { return };
        let now = self.now;
        let all = std::mem::take(&mut self.packet_thresholds);
        self.with_session(index, |conn, tcp, session| {
            session.mention(tcp.as_deref());
            thresholds.check(session, conn, from, now - conn.start, &all);
        });
        self.packet_thresholds = all;
        if let Some(slot) = self.table.get_mut(index) {
            slot.ext.rare().thresholds = Some(thresholds);
        }
    }
}
