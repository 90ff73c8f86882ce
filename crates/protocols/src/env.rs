use std::any::Any;
use std::any::TypeId;
use std::collections::HashMap;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Subnet;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_base::UidSource;
use gannet_dict::KeyedHash;
use gannet_event::Sinks;
use gannet_files::ContentFault;
use gannet_files::FaultKind;
use gannet_files::FileId;
use gannet_files::Files;
use gannet_flow::Conn;

use crate::Pending;
use crate::Tag;
use crate::activation::Activation;
use crate::deferred::Deferred;
use crate::failure;
use crate::global::GlobalPorts;
use crate::global::PortSet;
use crate::local_nets::LocalNets;
use crate::policy::Assets;
use crate::policy::Policy;
use crate::policy::View;
use crate::policy::weirds;
use crate::stack::streams::ReportedStreams;
use crate::weird::FileWeirdSeen;
use crate::weird::Weirds;

/// Options of the protocol stage.
#[derive(Clone, Debug)]
pub struct Options {
    /// Networks that count as local. Default: private and link-local addresses.
    pub local_nets: Vec<Subnet>,
    /// Hosts that the asset logs include.
    pub assets: Assets,
    /// Analyze what LDAP and PostgreSQL carry (Kerberos and NTLM logins, TLS), and report in
    /// analyzer.log failures of [protocols that need Spicy](crate::Tag::needs_spicy). Off by
    /// default, as in Zeek without Spicy.
    pub inner_protocols: bool,
    /// Limits of pending items per connection.
    pub pending: Pending,
    /// Start only the analyzers that scripts register.
    pub scripted: bool,
}

impl Default for Options {
    fn default() -> Self {
        // Address space that is not routed on the Internet (the IANA special-purpose registries),
        // IPv4 also as 6to4 addresses.
        let v4 = [
            ([0, 0, 0, 0], 8),
            ([10, 0, 0, 0], 8),
            ([100, 64, 0, 0], 10),
            ([127, 0, 0, 0], 8),
            ([169, 254, 0, 0], 16),
            ([172, 16, 0, 0], 12),
            ([192, 0, 0, 0], 24),
            ([192, 0, 2, 0], 24),
            ([192, 168, 0, 0], 16),
            ([198, 18, 0, 0], 15),
            ([198, 51, 100, 0], 24),
            ([203, 0, 113, 0], 24),
            ([224, 0, 0, 0], 24),
            ([239, 0, 0, 0], 8),
            ([240, 0, 0, 0], 4),
            ([255, 255, 255, 255], 32),
        ];
        let v6 = [
            "::/128",
            "::1/128",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "2001:2::/48",
            "2001:db8::/32",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
        ];
        let sixtofour = |b: [u8; 4]| {
            let mut a = [0; 16];
            a[..2].copy_from_slice(&[0x20, 0x02]);
            a[2..6].copy_from_slice(&b);
            Addr::v6(a)
        };
        let plain = v4.iter().filter_map(|(b, n)| Subnet::new(Addr::v4(*b), *n));
        let mapped = v4.iter().filter_map(|(b, n)| Subnet::new(sixtofour(*b), 16 + n));
        let local_nets = plain.chain(mapped).chain(v6.iter().filter_map(|n| n.parse().ok()));
        let local_nets = local_nets.collect();
        Self {
            local_nets,
            assets: Assets::default(),
            inner_protocols: false,
            pending: Pending::default(),
            scripted: false,
        }
    }
}

/// Totals of acknowledged data of established TCP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Number of acknowledgements of new data.
    pub times: u64,
    /// Number of bytes that they acknowledged.
    pub bytes: u64,
    /// Number of acknowledgements of bytes that were not captured.
    pub gaps: u64,
    /// Number of acknowledged bytes that were not captured.
    pub missing: u64,
}

impl Acked {
    pub(crate) fn add(&mut self, bytes: u64, missing: u64) {
        self.times += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.gaps += u64::from(missing > 0);
        self.missing = self.missing.saturating_add(missing);
    }
}

/// The protocol of a connection that another connection announced (FTP data, IRC DCC).
#[derive(Clone, Debug)]
pub struct Expected {
    /// Analyzer to start on it.
    pub tag: Tag,
    /// The connection that announced it.
    pub parent: Uid,
    /// The announcement is dropped after this time.
    pub expires: Time,
}

/// The connections that an announcement covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Announced {
    /// Originator; `None`: any.
    pub orig: Option<Addr>,
    /// Responder.
    pub resp: Addr,
    /// Responder's port.
    pub port: u16,
    /// Transport.
    pub proto: Proto,
    /// Whether a connection of the global shard announced them: then they belong to the global
    /// shard, too.
    pub global: bool,
}

/// Interval in packet time at which expired announcements are removed.
const SWEEP_AFTER: Interval = Interval::from_secs(60);

/// Which TLS fingerprints are computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fingerprints {
    pub(crate) ja3: bool,
    pub(crate) ja3s: bool,
    pub(crate) ja4: bool,
}

/// What all connections of a shard share.
pub struct Env {
    /// Networks that count as local.
    pub(crate) local: LocalNets,
    /// Hosts that asset logs include.
    pub(crate) assets: Assets,
    /// See [`Options::inner_protocols`].
    pub(crate) inner_protocols: bool,
    /// The SYN of the current packet, if an event reports it.
    pub syn: Option<crate::packet::events::SynPacket>,
    /// The first packet of a side of a TCP connection, if signatures are to match it.
    pub(crate) first_packet: Option<Box<crate::first_packet::FirstPacket>>,
    /// The analyzer that was removed last from each connection, if events have a listener: the
    /// events of its end are raised with the next data.
    pub(crate) unfinished: UidMap<Tag>,
    /// Whether event handlers have run since a violation of the current packet.
    pub(crate) handlers_ran: bool,
    /// Streams whose bytes are reported to listeners.
    pub(crate) streams: ReportedStreams,
    /// Files that scripts read through the input framework, by name.
    pub(crate) inputs: HashMap<String, FileId>,
    /// Whether an analyzer is being removed; the events of its end are raised with the next data.
    pub(crate) is_removing: bool,
    /// Whether earlier datagrams are being replayed to a detected analyzer.
    pub(crate) is_replaying: bool,
    /// Stream offset of the gap that analyzers are being notified of.
    pub(crate) gap_at: u64,
    /// TLS fingerprints for which columns are selected.
    pub(crate) fingerprints: Fingerprints,
    /// Limits of pending items per connection.
    pub(crate) pending: Pending,
    /// The log streams.
    pub logs: Sinks,
    /// Files carried by connections.
    pub files: Files,
    /// Weirds, with their suppression.
    pub weirds: Weirds,
    /// The known tunnels.
    pub tunnels: crate::tunnel::Tunnels,
    /// Generator of the unique ids of connections and files.
    pub uids: UidSource,
    /// Which analyzers may start, and on which ports.
    pub(crate) activation: Activation,
    /// Announced connections, all of TCP.
    pub(crate) expected: HashMap<Announced, Expected, KeyedHash>,
    /// Ports of announced connections, and possibly others; most connections use none of them.
    expected_ports: PortSet,
    /// Ports that may place a connection in the global shard.
    pub global_ports: GlobalPorts,
    /// Time at which expired announcements were last removed.
    expected_swept: Time,
    /// State shared between FTP control connections and their data connections.
    pub ftp: crate::ftp::Shared,
    /// State shared between IRC sessions and their transfers.
    pub irc: crate::irc::Shared,
    /// Buffers for DNS messages being parsed.
    pub dns: crate::dns::Shared,
    /// Generator of Zeek's analyzer numbers.
    pub(crate) analyzer_ids: crate::stack::ids::AnalyzerIds,
    /// Nesting depth of streams in the current call.
    pub nesting: u8,
    /// HTTP files that are transferred in ranges.
    pub http: crate::http::Shared,
    /// Files transferred by SMB, in parts and over several connections.
    pub smb: crate::smb::Shared,
    /// DHCP transactions, which span connections.
    pub dhcp: crate::dhcp::Shared,
    /// Certificates seen.
    pub certificates: crate::ssl::Certificates,
    /// State shared between the connections of a protocol, by its type.
    shared: HashMap<TypeId, Box<dyn Any + Send>>,
    /// Totals of acknowledged data, if a listener observes them.
    pub acked: Acked,
    /// State of the logs that are written only on request; `None`: none is.
    pub(crate) policy: Option<Box<Policy>>,
}

impl Env {
    /// A fresh environment.
    pub fn new(options: Options, logs: Sinks, files: Files, uids: UidSource) -> Self {
        let fingerprints = Fingerprints {
            ja3: logs.has_column("ja3"),
            ja3s: logs.has_column("ja3s"),
            ja4: logs.has_column("ja4"),
        };
        let selection = logs.selection();
        let policy = Policy::new(selection);
        let stats = selection.wants::<weirds::StatsRow<'_>>().then(Box::default);
        Self {
            fingerprints,
            local: LocalNets::new(options.local_nets),
            assets: options.assets,
            inner_protocols: options.inner_protocols,
            syn: None,
            first_packet: None,
            unfinished: UidMap::default(),
            handlers_ran: false,
            streams: ReportedStreams::default(),
            inputs: HashMap::new(),
            is_removing: false,
            is_replaying: false,
            gap_at: 0,
            pending: options.pending,
            logs,
            files,
            weirds: Weirds::new(stats, options.scripted),
            tunnels: crate::tunnel::Tunnels::default(),
            uids,
            activation: if options.scripted {
                Activation::scripted()
            } else {
                Activation::default()
            },
            expected: HashMap::default(),
            expected_ports: PortSet::default(),
            global_ports: GlobalPorts::default(),
            expected_swept: Time::ZERO,
            ftp: crate::ftp::Shared::default(),
            irc: crate::irc::Shared::default(),
            dns: crate::dns::Shared::default(),
            analyzer_ids: crate::stack::ids::AnalyzerIds::default(),
            nesting: 0,
            http: crate::http::Shared::default(),
            smb: crate::smb::Shared::default(),
            dhcp: crate::dhcp::Shared::default(),
            certificates: crate::ssl::Certificates::default(),
            shared: HashMap::new(),
            acked: Acked::default(),
            policy,
        }
    }

    /// State shared between all connections of a protocol, created on first use.
    pub(crate) fn shared<T: Default + Send + 'static>(&mut self) -> Option<&mut T> {
        let state = self.shared.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        state.downcast_mut()
    }

    /// Advances packet time to `now`, before the next `packet`, and runs everything that is due.
    #[inline]
    pub fn expire(&mut self, now: Time, packet: Time) {
        let (weirds, smb) = (&mut self.weirds, &mut self.smb);
        self.files.expire(&mut self.logs, now, packet, |logs, w| {
            report_fault(weirds, smb, logs, packet, w);
        });
        // Zeek checks all expiring script tables at the same times.
        if self.tunnels.expire(&mut self.logs, now, packet) {
            self.weirds.check_suppressed(packet);
        }
    }

    /// Runs everything that depends on the time of the next packet rather than on due times.
    #[inline]
    pub fn arrive(&mut self, packet: Time) {
        self.dhcp.expire(&mut self.logs, packet);
        if self.policy.is_some() {
            self.policy_arrive(packet);
        }
        if let Some(stats) = &mut self.weirds.stats {
            stats.arrive(&mut self.logs, packet);
        }
    }

    /// Reports weirds of files in the current packet.
    #[inline]
    pub(crate) fn report_files(&mut self, now: Time) {
        if self.files.has_faults() {
            self.report_file_faults(now);
        }
    }

    #[cold]
    fn report_file_faults(&mut self, now: Time) {
        for w in self.files.take_faults() {
            report_fault(&mut self.weirds, &mut self.smb, &mut self.logs, now, &w);
        }
    }

    /// Time at which [`expire`](Self::expire) or [`arrive`](Self::arrive) next has work, for
    /// packets that belong to other shards.
    pub fn next_due(&self) -> Time {
        self.files.next_due().min(self.tunnels.next_due()).min(self.dhcp.next_due())
    }

    /// Notes that this environment is one of several shards, and that the global shard is another
    /// one.
    pub fn set_sharded(&mut self) {
        self.tunnels.never_expire();
        self.dhcp.never_expire();
    }

    /// Takes the decisions that are deferred because they need all shards. Empty if there is one
    /// shard only.
    pub fn take_deferred(&mut self) -> Deferred {
        Deferred {
            weirds: self.weirds.deferred().take(),
            tunnels: self.tunnels.deferred().take(),
            certificates: self.certificates.rows.deferred().take(),
            events: self.logs.events.take_recording().into_iter().collect(),
        }
    }

    /// Number of items that [`take_deferred`](Self::take_deferred) would return.
    pub fn deferred(&mut self) -> usize {
        self.weirds.deferred().len()
            + self.tunnels.deferred().len()
            + self.certificates.rows.deferred().len()
    }

    /// Whether any connection has a [removed analyzer](Self::take_unfinished) whose end is to be raised.
    #[inline]
    pub(crate) fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Takes the entry of a connection out of `unfinished`.
    #[inline]
    pub(crate) fn take_unfinished(&mut self, uid: Uid) -> Option<Tag> {
        if self.unfinished.is_empty() { None } else { self.unfinished.remove(&uid) }
    }

    /// Ends the files that are idle when the input ends, before connections are closed.
    pub fn expire_at_end(&mut self, now: Time) {
        let (weirds, smb) = (&mut self.weirds, &mut self.smb);
        self.files
            .expire_at_end(&mut self.logs, now, |logs, w| report_fault(weirds, smb, logs, now, w));
    }

    /// Ends the input: logs everything that is pending.
    pub fn finish(&mut self, now: Time) {
        let (weirds, smb) = (&mut self.weirds, &mut self.smb);
        self.files.finish(&mut self.logs, now, |logs, w| report_fault(weirds, smb, logs, now, w));
        self.dhcp.finish(&mut self.logs);
        self.dhcp_software(now);
        if let Some(mut policy) = self.policy() {
            policy.finish(now);
        }
        if let Some(stats) = &mut self.weirds.stats {
            stats.log_counts(&mut self.logs, now);
        }
    }

    #[cold]
    fn policy_arrive(&mut self, packet: Time) {
        self.dhcp_software(packet);
        if let Some(mut policy) = self.policy() {
            policy.arrive(packet);
        }
    }

    /// Logs the software that DHCP detected since the last call, across connections.
    fn dhcp_software(&mut self, now: Time) {
        for software in self.dhcp.take_software() {
            if let Some(mut policy) = self.policy() {
                policy.software(now, &software.detected());
            }
        }
    }

    /// The state of the logs on request, if any is written.
    #[inline]
    pub fn policy(&mut self) -> Option<View<'_>> {
        let policy = self.policy.as_deref_mut()?;
        Some(View::new(policy, &mut self.logs, &self.local, self.assets))
    }

    /// Writes a row of analyzer.log for a connection. Protocols that only some builds of Zeek have
    /// get none, unless `inner_protocols` is set.
    pub fn log_failure(
        &mut self,
        now: Time,
        conn: &Conn,
        kind: &str,
        tag: Tag,
        reason: &[u8],
        data: &[u8],
    ) {
        if !tag.needs_spicy() || self.inner_protocols {
            failure::log(&mut self.logs, now, conn, kind, tag, reason, data);
        }
    }

    /// The analyzer of the protocol with this name in an HTTP upgrade.
    pub fn upgrade(&self, protocol: &[u8]) -> Option<Tag> {
        self.activation.upgrade(protocol)
    }

    /// Whether a file with this name in SMB is found only in pipe trees; `None`: scripts set no
    /// names.
    pub fn names_pipe(&self, name: &[u8]) -> Option<bool> {
        self.activation.names_pipe(name)
    }

    /// The value of a script option, or the default.
    #[inline]
    pub fn setting(&self, name: &'static str, default: u64) -> u64 {
        self.activation.setting(name, default)
    }

    /// A limit that scripts may change; they set 0 for no limit.
    pub(crate) fn limit_setting(&self, name: &'static str, default: usize) -> usize {
        match self.setting(name, default as u64) {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Whether scripts registered one of the UDP ports of a connection for tunnels.
    #[inline]
    pub fn may_be_own_tunnel(&self, one: u16, other: u16) -> bool {
        self.activation.may_be_own_tunnel(one, other)
    }

    /// The usual port of the tunnel protocol that scripts registered for a UDP port: 4789 for a
    /// port of VXLAN.
    #[inline]
    pub fn tunnel_port(&self, port: u16) -> u16 {
        self.activation.tunnel_port(port)
    }

    /// Whether scripts disabled an analyzer.
    #[inline]
    pub fn is_disabled(&self, tag: Tag) -> bool {
        !self.activation.may_start(tag)
    }

    /// Whether scripts determine which analyzers are used.
    pub(crate) fn is_scripted(&self) -> bool {
        self.activation.is_scripted()
    }

    /// Expects the next connection from `orig` to a port of `resp` to be of a protocol. The
    /// connection that announces it must [cancel the expectation](Self::unschedule) when it ends,
    /// so that there are never more expectations than connections.
    pub(crate) fn schedule(
        &mut self,
        orig: Addr,
        to: (Addr, u16),
        protocol: (Tag, Proto),
        until: Time,
    ) {
        self.activation.schedule(orig, to, protocol, until);
    }

    /// Cancels the expectation of a connection.
    pub(crate) fn unschedule(&mut self, orig: Addr, to: (Addr, u16), proto: Proto) {
        self.activation.unschedule(orig, to, proto);
    }

    /// Whether an address counts as local.
    #[inline]
    pub fn is_local(&self, a: Addr) -> bool {
        self.local.contain(a)
    }

    /// Whether any network counts as local.
    pub fn has_local_nets(&self) -> bool {
        !self.local.all.is_empty()
    }

    /// Adds the announcement by connection `by` of another connection to a host and port; `orig`
    /// is the expected originator, if known.
    ///
    /// A connection outside of the global shard can announce only connections between its own two
    /// hosts.
    pub fn expect(
        &mut self,
        by: &Conn,
        orig: Option<Addr>,
        (resp, port): (Addr, u16),
        expected: Expected,
        now: Time,
    ) {
        let global = by.is_global();
        let orig = if global {
            self.global_ports.add(Proto::Tcp, resp, port);
            orig
        } else {
            let ends = (by.id.orig_h, by.id.resp_h);
            let other = if resp == ends.0 { ends.1 } else { ends.0 };
            if (resp != ends.0 && resp != ends.1) || orig.is_some_and(|o| o != other) {
                return;
            }
            Some(other)
        };
        if now - self.expected_swept >= SWEEP_AFTER {
            self.expected.retain(|_, e| e.expires >= now);
            self.expected_swept = now;
            self.expected_ports.clear();
            self.expected.keys().for_each(|a| self.expected_ports.add(a.port));
        }
        self.expected_ports.add(port);
        self.expected.insert(Announced { orig, resp, port, proto: Proto::Tcp, global }, expected);
    }

    /// The announcement that covers a new connection, if any. It applies to further connections,
    /// too, until it expires.
    pub fn expected_for(
        &self,
        id: &ConnId,
        proto: Proto,
        global: bool,
        now: Time,
    ) -> Option<Expected> {
        if proto != Proto::Tcp || !self.expected_ports.has(id.resp_p) {
            return None;
        }
        let (resp, port) = (id.resp_h, id.resp_p);
        let find = |orig| self.expected.get(&Announced { orig, resp, port, proto, global });
        let found = find(Some(id.orig_h)).or_else(|| find(None))?;
        (found.expires >= now).then(|| found.clone())
    }

    /// Whether the protocol that announced a connection still expects it.
    pub fn is_awaited(&mut self, tag: Tag, conn: &Conn, now: Time) -> bool {
        let to = (conn.id.resp_h, conn.id.resp_p, conn.is_global());
        match tag {
            Tag::FtpData => self.ftp.control(to, now).is_some(),
            Tag::IrcData => self.irc.announced(to, now).is_some(),
            _ => true,
        }
    }
}
/// Reports a weird of a file.
#[cold]
fn report_fault(
    weirds: &mut Weirds,
    smb: &mut crate::smb::Shared,
    logs: &mut Sinks,
    now: Time,
    fault: &ContentFault,
) {
    match &fault.kind {
        FaultKind::Weird { name, addl, source, is_sampled_out } => {
            let (fuid, source, is_sampled_out) = (fault.fuid, *source, *is_sampled_out);
            weirds.file(logs, now, &FileWeirdSeen { fuid, name, addl, source, is_sampled_out });
        }
        FaultKind::Violation { analyzer, reason } => {
            failure::log_file(logs, now, fault, analyzer, reason);
        }
        FaultKind::GivenUp { uid } => smb.rows.on_file_timeout(logs, now, *uid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;

    #[test]
    fn announcements_are_found_until_they_expire() {
        let mut h = Harness::new(Proto::Tcp, 21);
        let id = h.conn.id;
        let expect = |h: &mut Harness, port, now, expires| {
            let expected = Expected { tag: Tag::FtpData, parent: h.conn.uid, expires };
            h.env.expect(&h.conn, Some(id.orig_h), (id.resp_h, port), expected, now);
        };
        let found = |h: &Harness, proto, resp_p, now| {
            h.env.expected_for(&ConnId { resp_p, ..id }, proto, false, now).is_some()
        };
        let at = Time::from_secs;
        expect(&mut h, 2000, at(1000), at(1300));
        expect(&mut h, 2001, at(1000), at(1010));
        assert!([2000, 2001].iter().all(|p| found(&h, Proto::Tcp, *p, at(1010))));
        assert!(!found(&h, Proto::Tcp, 2001, at(1011)) && !found(&h, Proto::Tcp, 2002, at(1010)));
        assert!(!found(&h, Proto::Udp, 2000, at(1010)));
        // An expired announcement is removed together with its port.
        expect(&mut h, 2002, at(1100), at(1400));
        assert_eq!([2000, 2001, 2002].map(|p| h.env.expected_ports.has(p)), [true, false, true]);
        assert!([2000, 2002].iter().all(|p| found(&h, Proto::Tcp, *p, at(1300))));
    }
}
