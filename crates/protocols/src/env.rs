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
use crate::steering::Steering;
use crate::weird::FileWeirdSeen;
use crate::weird::Weirds;

/// Options of the protocol stage.
#[derive(Clone, Debug)]
pub struct Options {
    /// Networks that count as local. Private and link-local addresses, unless overridden.
    pub local_nets: Vec<Subnet>,
    /// Hosts that asset logs include.
    pub assets: Assets,
    /// Follow what LDAP and PostgreSQL carry: logins by Kerberos and NTLM, and TLS; and tell in
    /// analyzer.log where [protocols that need Spicy](crate::Tag::needs_spicy) fail. Off by default, as
    /// in Zeek without it.
    pub inner_protocols: bool,
    /// How much may wait at one connection.
    pub pending: Pending,
    /// No analyzer starts but those that scripts register.
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

/// Acknowledgements of new data of established TCP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// The number of acknowledgements.
    pub times: u64,
    /// The bytes that they acknowledged.
    pub bytes: u64,
    /// How many acknowledged bytes that were not captured.
    pub gaps: u64,
    /// Those bytes.
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

/// The protocol of a connection that another one announced (FTP data, IRC DCC).
#[derive(Clone, Debug)]
pub struct Expected {
    /// Analyzer to start on it.
    pub tag: Tag,
    /// The connection that announced it.
    pub parent: Uid,
    /// Forget it after this time.
    pub expires: Time,
}

/// Which connections an announcement covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Announced {
    /// Originator, if known.
    pub orig: Option<Addr>,
    /// Responder.
    pub resp: Addr,
    /// Responder's port.
    pub port: u16,
    /// Transport.
    pub proto: Proto,
    /// Whether a connection of the global shard announced them: then they are of the global shard, too.
    pub global: bool,
}

/// Interval in packet time at which expired announcements are removed.
const SWEEP_AFTER: Interval = Interval::from_secs(60);

/// Fingerprints of TLS, by whether they are wanted.
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
    /// The SYN of the current packet, where it is reported.
    pub syn: Option<crate::packet::events::SynPacket>,
    /// The first packet of a side of a TCP connection, where signatures are to look at it.
    pub(crate) first_packet: Option<Box<crate::stack::FirstPacket>>,
    /// Of connections, the analyzer that was removed last, where events have a listener: what it raises at its end is
    /// still to come.
    pub(crate) owed: UidMap<Tag>,
    /// Handlers have run since a violation of the current packet.
    pub(crate) has_handled: bool,
    /// Streams whose bytes listeners want.
    pub(crate) streams: ReportedStreams,
    /// Files that scripts read, by their names.
    pub(crate) inputs: HashMap<String, FileId>,
    /// An analyzer is removed; what it raises at its end comes with the next data.
    pub(crate) is_leaving: bool,
    /// An analyzer that was detected is given the datagrams that came before.
    pub(crate) is_replaying: bool,
    /// Position of the gap that analyzers are notified of.
    pub(crate) gap_at: u64,
    /// Fingerprints of TLS that there are columns for.
    pub(crate) fingerprints: Fingerprints,
    /// How much may wait at one connection.
    pub(crate) pending: Pending,
    /// The log streams.
    pub logs: Sinks,
    /// Files carried by connections.
    pub files: Files,
    /// Weirds, with their suppression.
    pub weirds: Weirds,
    /// Tunnels that are known.
    pub tunnels: crate::tunnel::Tunnels,
    /// Names of connections and files.
    pub uids: UidSource,
    /// Analyzers that scripts allow.
    pub(crate) steering: Steering,
    /// Announced connections: all are of TCP.
    pub(crate) expected: HashMap<Announced, Expected, KeyedHash>,
    /// Ports that they have, and perhaps others: most connections have none of these.
    expected_ports: PortSet,
    /// Ports by which connections may be of the global shard.
    pub global_ports: GlobalPorts,
    /// When expired announcements were last dropped.
    expected_swept: Time,
    /// FTP control connections' view of their data connections.
    pub ftp: crate::ftp::Shared,
    /// IRC sessions' view of their transfers.
    pub irc: crate::irc::Shared,
    /// DNS messages being read.
    pub dns: crate::dns::Shared,
    /// Numbers of analyzers.
    pub(crate) analyzer_ids: crate::stack::ids::AnalyzerIds,
    /// Nesting depth of streams of the current call.
    pub nesting: u8,
    /// HTTP files that come in ranges.
    pub http: crate::http::Shared,
    /// Files that SMB carries, in parts and over several connections.
    pub smb: crate::smb::Shared,
    /// DHCP transactions, which span connections.
    pub dhcp: crate::dhcp::Shared,
    /// Certificates seen.
    pub certificates: crate::ssl::Certificates,
    /// State of protocols that spans connections, by its type.
    shared: HashMap<TypeId, Box<dyn Any + Send>>,
    /// What was acknowledged on connections that a listener observes.
    pub acked: Acked,
    /// State of the logs that are written only on request.
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
            owed: UidMap::default(),
            has_handled: false,
            streams: ReportedStreams::default(),
            inputs: HashMap::new(),
            is_leaving: false,
            is_replaying: false,
            gap_at: 0,
            pending: options.pending,
            logs,
            files,
            weirds: Weirds::counted(stats, options.scripted),
            tunnels: crate::tunnel::Tunnels::default(),
            uids,
            steering: if options.scripted { Steering::scripted() } else { Steering::default() },
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

    /// State of a protocol that all its connections have in common: made when it is first asked for.
    pub(crate) fn shared<T: Default + Send + 'static>(&mut self) -> Option<&mut T> {
        let state = self.shared.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        state.downcast_mut()
    }

    /// Advances packet time to `now`, before the next `packet`: runs everything that is due.
    #[inline]
    pub fn expire(&mut self, now: Time, packet: Time) {
        let (weirds, smb) = (&mut self.weirds, &mut self.smb);
        self.files
            .expire(&mut self.logs, now, packet, |logs, w| tell(weirds, smb, logs, packet, w));
        // Zeek looks through all that expires of its scripts' tables at the same times.
        if self.tunnels.expire(&mut self.logs, now, packet) {
            self.weirds.look(packet);
        }
    }

    /// The next packet has this time: runs everything that depends on packets, not on due times.
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

    /// Reports weirds of the files in the current packet.
    #[inline]
    pub(crate) fn report_files(&mut self, now: Time) {
        if self.files.has_faults() {
            self.report_file_faults(now);
        }
    }

    #[cold]
    fn report_file_faults(&mut self, now: Time) {
        for w in self.files.take_faults() {
            tell(&mut self.weirds, &mut self.smb, &mut self.logs, now, &w);
        }
    }

    /// When [`expire`](Self::expire) or [`arrive`](Self::arrive) have something to do next: for
    /// packets that are not this part's own.
    pub fn next_due(&self) -> Time {
        self.files.next_due().min(self.tunnels.next_due()).min(self.dhcp.next_due())
    }

    /// This is one of several parts of an analysis, and the global shard is another one.
    pub fn leave_global(&mut self) {
        self.tunnels.never_expire();
        self.dhcp.never_expire();
    }

    /// Decisions that are deferred because they need all shards. Empty if this is the only one.
    pub fn take_deferred(&mut self) -> Deferred {
        Deferred {
            weirds: self.weirds.deferred().take(),
            tunnels: self.tunnels.deferred().take(),
            certificates: self.certificates.rows.deferred().take(),
            events: self.logs.events.take_recording().into_iter().collect(),
        }
    }

    /// How many items [`take_deferred`](Self::take_deferred) would take.
    pub fn deferred(&mut self) -> usize {
        self.weirds.deferred().len()
            + self.tunnels.deferred().len()
            + self.certificates.rows.deferred().len()
    }

    /// Whether any connection is [owed](Self::take_owed) something.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// See `owed`.
    #[inline]
    pub(crate) fn take_owed(&mut self, uid: Uid) -> Option<Tag> {
        if self.owed.is_empty() { None } else { self.owed.remove(&uid) }
    }

    /// The end of input: logs everything that is pending.
    pub fn finish(&mut self, now: Time) {
        let (weirds, smb) = (&mut self.weirds, &mut self.smb);
        self.files.finish(&mut self.logs, now, |logs, w| tell(weirds, smb, logs, now, w));
        self.dhcp.finish(&mut self.logs);
        self.dhcp_software(now);
        if let Some(mut policy) = self.policy() {
            policy.finish(now);
        }
        if let Some(stats) = &mut self.weirds.stats {
            stats.tell(&mut self.logs, now);
        }
    }

    #[cold]
    fn policy_arrive(&mut self, packet: Time) {
        self.dhcp_software(packet);
        if let Some(mut policy) = self.policy() {
            policy.arrive(packet);
        }
    }

    /// Logs software that DHCP found since the last call, across connections.
    fn dhcp_software(&mut self, now: Time) {
        for told in self.dhcp.take_reported() {
            if let Some(mut policy) = self.policy() {
                policy.software(now, &told.found());
            }
        }
    }

    /// The policy, where there is one.
    #[inline]
    pub fn policy(&mut self) -> Option<View<'_>> {
        let policy = self.policy.as_deref_mut()?;
        Some(View::new(policy, &mut self.logs, &self.local, self.assets))
    }

    /// Writes a row of analyzer.log for a connection. Protocols that only some builds of Zeek know have none, unless they
    /// are to be followed as those do.
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

    /// The analyzer of what an HTTP connection is upgraded to, by the name of the protocol.
    pub fn upgrade(&self, protocol: &[u8]) -> Option<Tag> {
        self.steering.upgrade(protocol)
    }

    /// Whether only trees of pipes have a file of SMB of this name, where scripts say so.
    pub fn names_pipe(&self, name: &[u8]) -> Option<bool> {
        self.steering.names_pipe(name)
    }

    /// The value of an option, as scripts have it, or the default.
    #[inline]
    pub fn setting(&self, name: &'static str, default: u64) -> u64 {
        self.steering.setting(name, default)
    }

    /// The most of something, which scripts may change: for them, 0 is no limit.
    pub(crate) fn most(&self, name: &'static str, default: usize) -> usize {
        match self.setting(name, default as u64) {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Whether one of the UDP ports of a connection marks tunnels since scripts say so.
    #[inline]
    pub fn may_be_own_tunnel(&self, one: u16, other: u16) -> bool {
        self.steering.may_be_own_tunnel(one, other)
    }

    /// The usual port of the tunnels that a UDP port marks, which scripts may change: 4789 for a port of VXLAN.
    #[inline]
    pub fn tunnel_port(&self, port: u16) -> u16 {
        self.steering.tunnel_port(port)
    }

    /// Whether scripts disabled an analyzer.
    #[inline]
    pub fn is_disabled(&self, tag: Tag) -> bool {
        !self.steering.may_start(tag)
    }

    /// Whether scripts say which analyzers are used.
    pub(crate) fn is_scripted(&self) -> bool {
        self.steering.is_scripted()
    }

    /// The next connection between these hosts to a port of `resp` is of a protocol; `orig` is its originator. The
    /// connection that says so must [take it back](Self::unschedule) when it ends, so that there are never more
    /// expectations than connections.
    pub(crate) fn schedule(
        &mut self,
        orig: Addr,
        to: (Addr, u16),
        what: (Tag, Proto),
        until: Time,
    ) {
        self.steering.schedule(orig, to, what, until);
    }

    /// No such connection is expected any more.
    pub(crate) fn unschedule(&mut self, orig: Addr, to: (Addr, u16), proto: Proto) {
        self.steering.unschedule(orig, to, proto);
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

    /// A connection announces another one to a host and port, `by`; `orig` is the expected
    /// originator, if known.
    ///
    /// A connection outside of the global shard can announce only others between its own two hosts.
    pub fn expect(
        &mut self,
        by: &Conn,
        orig: Option<Addr>,
        (resp, port): (Addr, u16),
        what: Expected,
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
        self.expected.insert(Announced { orig, resp, port, proto: Proto::Tcp, global }, what);
    }

    /// The announcement that covers a new connection, if any. It holds for others, too, until it
    /// expires.
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

    /// Whether the protocol that announced a connection still awaits it.
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
fn tell(
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
        FaultKind::GivenUp { uid } => smb.rows.given_up(logs, now, *uid),
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
            let what = Expected { tag: Tag::FtpData, parent: h.conn.uid, expires };
            h.env.expect(&h.conn, Some(id.orig_h), (id.resp_h, port), what, now);
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
        // What expired is forgotten, its port with it.
        expect(&mut h, 2002, at(1100), at(1400));
        assert_eq!([2000, 2001, 2002].map(|p| h.env.expected_ports.has(p)), [true, false, true]);
        assert!([2000, 2002].iter().all(|p| found(&h, Proto::Tcp, *p, at(1300))));
    }
}
