//! Which analyzers may start, and on which ports: what scripts change while packets are read.

mod commands;
mod detection;

pub use detection::BUFFER;
pub use detection::CHUNKS;
pub(crate) use detection::DetectionLimits;
pub(crate) use detection::MOST_BYTES;
pub(crate) use detection::MOST_CHUNKS;

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
pub(crate) struct Steering {
    /// Ports that scripts registered; `None` while the registry's own hold.
    ports: Option<HashMap<(u8, u16), Vec<Tag>, KeyedHash>>,
    disabled: HashSet<Tag, KeyedHash>,
    /// No analyzer starts for a port.
    ignores_ports: bool,
    /// How much of the beginning of a connection is looked at for analyzers.
    pub(crate) detection: DetectionLimits,
    /// Ports that servers are likely to have, where scripts say so.
    likely: Option<HashSet<(u8, u16), KeyedHash>>,
    /// Ports of tunnels over UDP, where scripts say so, with the usual port of each tunnel.
    tunnel_ports: Option<HashMap<u16, u16, KeyedHash>>,
    /// Analyzers of what HTTP connections are upgraded to, where scripts say so.
    upgrades: Option<HashMap<Vec<u8>, Tag, KeyedHash>>,
    /// Names of files that only trees of pipes have, where scripts say so.
    pipe_names: Option<HashSet<Vec<u8>, KeyedHash>>,
    /// Analyzers that may be started for what a connection begins with; `None`: all.
    detected: Option<HashSet<Tag, KeyedHash>>,
    /// Connections that scripts expect, with the analyzers of each and when that ends.
    scheduled: HashMap<Scheduled, Vec<(Tag, Time)>, KeyedHash>,
    /// Analyzers that connections begin with after the first one, until these start.
    further: UidMap<Vec<Tag>>,
    /// Values of options that scripts have.
    settings: HashMap<&'static str, u64, KeyedHash>,
}

/// Connections that are expected at the most. At more, those that did not come are dropped, then all.
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

/// The usual ports of tunnels over UDP.
const TUNNEL_PORTS: [u16; 7] =
    [port::GTPV1_C, port::GTPV1_U, port::TEREDO, port::GRE, port::VXLAN, port::AYIYA, port::GENEVE];

/// The usual port of the tunnels that a packet analyzer reads, by its name in Zeek's scripts.
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

impl Steering {
    /// Whether one of these ports marks tunnels since scripts say so.
    #[inline]
    pub(crate) fn may_be_own_tunnel(&self, one: u16, other: u16) -> bool {
        let ports = self.tunnel_ports.as_ref();
        ports.is_some_and(|ports| ports.contains_key(&one) || ports.contains_key(&other))
    }

    /// The usual port of the tunnels that a port marks. A port that marks none may be any other number.
    #[inline]
    pub(crate) fn tunnel_port(&self, port: u16) -> u16 {
        let Some(ports) = &self.tunnel_ports else { return port };
        match ports.get(&port) {
            Some(usual) => *usual,
            None if TUNNEL_PORTS.contains(&port) => 0,
            None => port,
        }
    }

    /// No analyzer but those that scripts register and detect.
    pub(crate) fn scripted() -> Self {
        Self {
            ports: Some(HashMap::default()),
            detected: Some(HashSet::default()),
            ..Self::default()
        }
    }

    /// Whether no script changed anything.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ports.is_none() && self.disabled.is_empty() && !self.ignores_ports
    }

    /// Analyzers that are tried at once on a port.
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

    /// Whether an analyzer may be started for what a connection begins with.
    #[inline]
    pub(crate) fn may_detect(&self, tag: Tag) -> bool {
        self.detected.as_ref().is_none_or(|tags| tags.contains(&tag)) && self.may_start(tag)
    }

    /// Whether no analyzer starts for what a connection begins with.
    #[inline]
    pub(crate) fn detects_none(&self) -> bool {
        self.detected.as_ref().is_some_and(HashSet::is_empty)
    }

    /// What scripts expect a connection to be: the first analyzer. Those after it wait in [`further`](Self::further).
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

    /// The analyzers that a connection begins with after the first one.
    pub(crate) fn further(&self, uid: Uid) -> &[Tag] {
        self.further.get(&uid).map_or(&[], Vec::as_slice)
    }

    /// The same, when they start.
    pub(crate) fn take_further(&mut self, uid: Uid) -> Vec<Tag> {
        if self.further.is_empty() {
            return Vec::new();
        }
        self.further.remove(&uid).unwrap_or_default()
    }

    /// The analyzer of what an HTTP connection is upgraded to, by the name of the protocol.
    pub(crate) fn upgrade(&self, protocol: &[u8]) -> Option<Tag> {
        match &self.upgrades {
            None => protocol.eq_ignore_ascii_case(b"websocket").then_some(Tag::WebSocket),
            Some(all) => {
                all.get(protocol).or_else(|| all.get(&protocol.to_ascii_lowercase())).copied()
            }
        }
    }

    /// Whether only trees of pipes have a file of this name, where scripts say so.
    pub(crate) fn names_pipe(&self, name: &[u8]) -> Option<bool> {
        self.pipe_names.as_ref().map(|all| all.contains(name))
    }

    /// The value of an option, as scripts have it, or the default.
    #[inline]
    pub(crate) fn setting(&self, name: &'static str, default: u64) -> u64 {
        let settings = &self.settings;
        if settings.is_empty() { default } else { settings.get(name).copied().unwrap_or(default) }
    }

    /// Whether scripts say which analyzers are used.
    pub(crate) fn is_scripted(&self) -> bool {
        self.detected.is_some()
    }

    /// The next connection between these hosts to a port of `resp` is of a protocol; `orig` is its originator.
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

    /// A script expects a connection to be of one more protocol.
    fn schedule_one_more(&mut self, key: Scheduled, tag: Tag, until: Time) {
        let all = self.scheduled.entry(key).or_default();
        all.retain(|(other, _)| *other != tag);
        all.push((tag, until));
    }

    /// No such connection is expected any more.
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
        let mut all = Steering::default();
        assert_eq!(all.by_port(Proto::Tcp, 80), [Tag::Http]);
        all.disabled.insert(Tag::Http);
        assert!(all.by_port(Proto::Tcp, 80).is_empty());
        let mut none = Steering::scripted();
        assert!(none.by_port(Proto::Tcp, 80).is_empty() && !none.may_detect(Tag::Http));
        assert!(none.detects_none() && !Steering::default().detects_none());
        none.register(Tag::Http, Proto::Tcp, 8123, true);
        assert_eq!(none.by_port(Proto::Tcp, 8123), [Tag::Http]);
        none.register(Tag::Http, Proto::Tcp, 8123, false);
        assert!(none.by_port(Proto::Tcp, 8123).is_empty());
    }

    #[test]
    fn several_analyzers_are_scheduled_for_one_connection() {
        let mut steering = Steering::scripted();
        let [orig, resp] = [Addr::v4([10, 0, 0, 2]), Addr::v4([10, 0, 0, 3])];
        let (uids, [now, late]) = (UidSource::new(0), [1, 3].map(Time::from_secs));
        let of = |orig, port| Scheduled { orig, resp, port, proto: 6 };
        steering.schedule_one_more(of(Some(orig), 6), Tag::Ssh, late);
        steering.schedule_one_more(of(Some(orig), 6), Tag::Http, now);
        steering.schedule_one_more(of(Some(orig), 6), Tag::Dns, late);
        steering.schedule_one_more(of(Some(orig), 6), Tag::Ssh, late);
        steering.schedule_one_more(of(None, 6), Tag::Ftp, late);
        let mut begin = |n, now| {
            let uid = uids.connection(1, n);
            let first = steering.scheduled((uid, orig), (resp, 6), Proto::Tcp, now);
            let known = steering.further(uid).to_vec();
            let further = steering.take_further(uid);
            assert_eq!(known, further);
            assert!(steering.further(uid).is_empty());
            (first, further)
        };
        assert_eq!(begin(0, now), (Some(Tag::Http), vec![Tag::Dns, Tag::Ssh, Tag::Ftp]));
        // What ended is not expected any more.
        let after = Time::from_secs(2);
        assert_eq!(begin(1, after), (Some(Tag::Dns), vec![Tag::Ssh, Tag::Ftp]));
        assert_eq!(begin(2, Time::from_secs(4)), (None, Vec::new()));
    }
}
