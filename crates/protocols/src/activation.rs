//! Which analyzers may start, and on which ports: what scripts change during the analysis.

mod commands;
mod detection;

pub use detection::DEFAULT_BYTES;
pub use detection::DEFAULT_CHUNKS;
pub(crate) use detection::DetectionLimits;
pub(crate) use detection::MAX_BYTES;
pub(crate) use detection::MAX_CHUNKS;

use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_dict::KeyedHash;
use gannet_wire::tunnel::port;

use crate::Tag;
use crate::ports::by_port;

/// The analyzers that scripts allow. Without scripts, all of them, on their own ports.
#[derive(Debug, Default)]
pub(crate) struct Activation {
    /// Ports that scripts registered; `None`: the registry's ports apply.
    ports: Option<HashMap<(u8, u16), Vec<Tag>, KeyedHash>>,
    disabled: HashSet<Tag, KeyedHash>,
    /// Whether no analyzer starts for a port.
    ignores_ports: bool,
    /// How much of the beginning of a connection is examined to detect protocols.
    pub(crate) detection: DetectionLimits,
    /// Likely server ports, if scripts set them.
    likely: Option<HashSet<(u8, u16), KeyedHash>>,
    /// UDP ports of tunnels with the usual port of each tunnel protocol, if scripts set them.
    tunnel_ports: Option<HashMap<u16, u16, KeyedHash>>,
    /// Analyzers of the protocols of HTTP upgrades, if scripts set them.
    upgrades: Option<HashMap<Vec<u8>, Tag, KeyedHash>>,
    /// Names of files that only pipe trees have, if scripts set them.
    pipe_names: Option<HashSet<Vec<u8>, KeyedHash>>,
    /// Analyzers that detection may start; `None`: all.
    detected: Option<HashSet<Tag, KeyedHash>>,
    /// Connections that scripts expect, with the analyzers of each and the time at which the
    /// expectation ends.
    scheduled: HashMap<Scheduled, Vec<(Tag, Time)>, KeyedHash>,
    /// Analyzers to start on a connection after its first one.
    further: UidMap<Vec<Tag>>,
    /// Values of script options.
    settings: HashMap<&'static str, u64, KeyedHash>,
}

/// Maximum number of expected connections. Beyond it expired ones are dropped, then all.
const MAX_SCHEDULED: usize = 10_000;

/// A connection that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Scheduled {
    orig: Option<Addr>,
    resp: Addr,
    port: u16,
    proto: u8,
}

fn number(proto: Proto) -> u8 {
    match proto {
        Proto::Tcp => 6,
        Proto::Udp => 17,
        Proto::Icmp => 1,
        _ => 0,
    }
}

/// The usual ports of tunnel protocols over UDP.
const TUNNEL_PORTS: [u16; 7] =
    [port::GTPV1_C, port::GTPV1_U, port::TEREDO, port::GRE, port::VXLAN, port::AYIYA, port::GENEVE];

/// The usual port of the tunnel protocol of a packet analyzer, by its name in Zeek's scripts.
fn usual_port(analyzer: &str) -> Option<u16> {
    Some(match analyzer.strip_prefix("PacketAnalyzer::ANALYZER_")? {
        "AYIYA" => port::AYIYA,
        "GENEVE" => port::GENEVE,
        "GRE" => port::GRE,
        "GTPV1" => port::GTPV1_U,
        "TEREDO" => port::TEREDO,
        "VXLAN" => port::VXLAN,
        _ => return None,
    })
}

impl Activation {
    /// Whether scripts registered one of these ports for tunnels.
    #[inline]
    pub(crate) fn may_be_own_tunnel(&self, one: u16, other: u16) -> bool {
        let ports = self.tunnel_ports.as_ref();
        ports.is_some_and(|ports| ports.contains_key(&one) || ports.contains_key(&other))
    }

    /// The usual port of the tunnel protocol that scripts registered for a port. A port without a
    /// tunnel may return any other number.
    #[inline]
    pub(crate) fn tunnel_port(&self, port: u16) -> u16 {
        let Some(ports) = &self.tunnel_ports else { return port };
        match ports.get(&port) {
            Some(usual) => *usual,
            None if TUNNEL_PORTS.contains(&port) => 0,
            None => port,
        }
    }

    /// Only analyzers that scripts register or detect may start.
    pub(crate) fn scripted() -> Self {
        Self {
            ports: Some(HashMap::default()),
            detected: Some(HashSet::default()),
            ..Self::default()
        }
    }

    /// Whether scripts changed nothing.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ports.is_none() && self.disabled.is_empty() && !self.ignores_ports
    }

    /// Analyzers that are started immediately on a port.
    pub(crate) fn by_port(&self, proto: Proto, port: u16) -> Vec<Tag> {
        let all = match &self.ports {
            _ if self.ignores_ports => Vec::new(),
            None => by_port(proto, port).to_vec(),
            Some(ports) => ports.get(&(number(proto), port)).cloned().unwrap_or_default(),
        };
        all.into_iter().filter(|tag| self.may_start(*tag)).collect()
    }

    /// Whether an analyzer is not disabled.
    #[inline]
    pub(crate) fn may_start(&self, tag: Tag) -> bool {
        self.disabled.is_empty() || !self.disabled.contains(&tag)
    }

    /// Whether detection may start an analyzer.
    #[inline]
    pub(crate) fn may_detect(&self, tag: Tag) -> bool {
        self.detected.as_ref().is_none_or(|tags| tags.contains(&tag)) && self.may_start(tag)
    }

    /// Whether detection may start no analyzer.
    #[inline]
    pub(crate) fn detects_none(&self) -> bool {
        self.detected.as_ref().is_some_and(HashSet::is_empty)
    }

    /// The first analyzer of a connection that scripts expect. Those after it are added to
    /// [`further`](Self::further).
    pub(crate) fn scheduled(
        &mut self,
        (uid, orig): (Uid, Addr),
        (resp, port): (Addr, u16),
        proto: Proto,
        now: Time,
    ) -> Option<Tag> {
        if self.scheduled.is_empty() {
            return None;
        }
        let proto = number(proto);
        let mut tags = Vec::new();
        for orig in [Some(orig), None] {
            let key = Scheduled { orig, resp, port, proto };
            for (tag, until) in self.scheduled.get(&key).into_iter().flatten() {
                if *until >= now && !tags.contains(tag) {
                    tags.push(*tag);
                }
            }
        }
        let further = tags.split_off(tags.len().min(1));
        if !further.is_empty() {
            self.further.insert(uid, further);
        }
        tags.first().copied()
    }

    /// The analyzers to start on a connection after its first one.
    pub(crate) fn further(&self, uid: Uid) -> &[Tag] {
        self.further.get(&uid).map_or(&[], Vec::as_slice)
    }

    /// Takes the analyzers to start on a connection after its first one.
    pub(crate) fn take_further(&mut self, uid: Uid) -> Vec<Tag> {
        if self.further.is_empty() {
            return Vec::new();
        }
        self.further.remove(&uid).unwrap_or_default()
    }

    /// The analyzer of the protocol with this name in an HTTP upgrade.
    pub(crate) fn upgrade(&self, protocol: &[u8]) -> Option<Tag> {
        match &self.upgrades {
            None => protocol.eq_ignore_ascii_case(b"websocket").then_some(Tag::WebSocket),
            Some(all) => {
                all.get(protocol).or_else(|| all.get(&protocol.to_ascii_lowercase())).copied()
            }
        }
    }

    /// Whether a file with this name is found only in pipe trees; `None`: scripts set no names.
    pub(crate) fn names_pipe(&self, name: &[u8]) -> Option<bool> {
        self.pipe_names.as_ref().map(|all| all.contains(name))
    }

    /// The value of a script option, or the default.
    #[inline]
    pub(crate) fn setting(&self, name: &'static str, default: u64) -> u64 {
        let settings = &self.settings;
        if settings.is_empty() { default } else { settings.get(name).copied().unwrap_or(default) }
    }

    /// Whether scripts determine which analyzers are used.
    pub(crate) fn is_scripted(&self) -> bool {
        self.detected.is_some()
    }

    /// Expects the next connection from `orig` to a port of `resp` to be of a protocol.
    pub(crate) fn schedule(
        &mut self,
        orig: Addr,
        (resp, port): (Addr, u16),
        (tag, proto): (Tag, Proto),
        until: Time,
    ) {
        let key = Scheduled { orig: Some(orig), resp, port, proto: number(proto) };
        self.scheduled.insert(key, vec![(tag, until)]);
    }

    /// Adds one more protocol that a script expects of a connection.
    fn schedule_one_more(&mut self, key: Scheduled, tag: Tag, until: Time) {
        let all = self.scheduled.entry(key).or_default();
        all.retain(|(other, _)| *other != tag);
        all.push((tag, until));
    }

    /// Cancels the expectation of a connection.
    pub(crate) fn unschedule(&mut self, orig: Addr, (resp, port): (Addr, u16), proto: Proto) {
        if !self.scheduled.is_empty() {
            let key = Scheduled { orig: Some(orig), resp, port, proto: number(proto) };
            self.scheduled.remove(&key);
        }
    }

    fn register(&mut self, tag: Tag, proto: Proto, port: u16, on: bool) {
        let Some(ports) = &mut self.ports else { return };
        let tags = ports.entry((number(proto), port)).or_default();
        tags.retain(|other| *other != tag);
        if on {
            tags.push(tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;

    #[test]
    fn scripts_decide_what_starts_on_a_port() {
        let mut all = Activation::default();
        assert_eq!(all.by_port(Proto::Tcp, 80), [Tag::Http]);
        all.disabled.insert(Tag::Http);
        assert!(all.by_port(Proto::Tcp, 80).is_empty());
        let mut none = Activation::scripted();
        assert!(none.by_port(Proto::Tcp, 80).is_empty() && !none.may_detect(Tag::Http));
        assert!(none.detects_none() && !Activation::default().detects_none());
        none.register(Tag::Http, Proto::Tcp, 8123, true);
        assert_eq!(none.by_port(Proto::Tcp, 8123), [Tag::Http]);
        none.register(Tag::Http, Proto::Tcp, 8123, false);
        assert!(none.by_port(Proto::Tcp, 8123).is_empty());
    }

    #[test]
    fn several_analyzers_are_scheduled_for_one_connection() {
        let mut activation = Activation::scripted();
        let [orig, resp] = [Addr::v4([10, 0, 0, 2]), Addr::v4([10, 0, 0, 3])];
        let (uids, [now, late]) = (UidSource::new(0), [1, 3].map(Time::from_secs));
        let of = |orig, port| Scheduled { orig, resp, port, proto: 6 };
        activation.schedule_one_more(of(Some(orig), 6), Tag::Ssh, late);
        activation.schedule_one_more(of(Some(orig), 6), Tag::Http, now);
        activation.schedule_one_more(of(Some(orig), 6), Tag::Dns, late);
        activation.schedule_one_more(of(Some(orig), 6), Tag::Ssh, late);
        activation.schedule_one_more(of(None, 6), Tag::Ftp, late);
        let mut begin = |n, now| {
            let uid = uids.connection(1, n);
            let first = activation.scheduled((uid, orig), (resp, 6), Proto::Tcp, now);
            let known = activation.further(uid).to_vec();
            let further = activation.take_further(uid);
            assert_eq!(known, further);
            assert!(activation.further(uid).is_empty());
            (first, further)
        };
        assert_eq!(begin(0, now), (Some(Tag::Http), vec![Tag::Dns, Tag::Ssh, Tag::Ftp]));
        // An expectation that has ended does not match.
        let after = Time::from_secs(2);
        assert_eq!(begin(1, after), (Some(Tag::Dns), vec![Tag::Ssh, Tag::Ftp]));
        assert_eq!(begin(2, Time::from_secs(4)), (None, Vec::new()));
    }
}
