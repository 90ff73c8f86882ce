//! What the rest of gannet knows of a protocol.
//!
//! Each folder of a protocol has a [`Descriptor`] in its `mod.rs`, named `DESCRIPTOR`, and one line in the list of
//! protocols (`protocol_list.rs`). Names, ports, events, logs, limits and their pages of the manual are derived from
//! both.

use std::sync::LazyLock;

use gannet_event::Decl;
use gannet_event::Sinks;
use gannet_log::Row;
use gannet_log::Schema;
use gannet_log::Selection;

use crate::Tag;
use crate::detect::TcpRule;
use crate::detect::UdpRule;
use crate::tag::TAGS;

/// A protocol, as its folder describes it.
#[derive(Debug)]
pub struct Descriptor {
    /// Its analyzers, and names for which there is none, in the order of the list.
    pub entries: &'static [Entry],
    /// Its events, by the module that declares them.
    pub events: &'static [&'static [&'static Decl]],
    /// Its logs.
    pub logs: &'static [Log],
}

impl Descriptor {
    /// A protocol without events and logs.
    pub(crate) const NONE: Self = Self { entries: &[], events: &[], logs: &[] };
}

/// An analyzer, or a name for which there is none.
#[derive(Debug)]
pub struct Entry {
    /// Its tag.
    pub tag: Tag,
    /// Name as analyzer.log spells it, and tags of Zeek's scripts.
    pub name: &'static str,
    /// Name as conn.log's `service` spells it.
    pub service: &'static str,
    /// Ports on which it is tried at once.
    pub ports: Ports,
    /// Ports that tell the server of a connection from the client, as Zeek's `likely_server_ports`. `None`: the
    /// [`ports`](Self::ports), if Zeek has the analyzer.
    pub servers: Option<Ports>,
    /// Beginnings of TCP connections that start it on any port.
    pub(crate) tcp_rules: &'static [TcpRule],
    /// Beginnings of datagrams that start it on any port.
    pub(crate) udp_rules: &'static [UdpRule],
    /// Where Zeek has the analyzer from.
    pub origin: Origin,
    /// What it is to Zeek.
    pub kind: Kind,
    /// Seconds that a connection may be idle, where that is not the default of its transport.
    pub idle: Option<u16>,
    /// Whether its files have names of their own, so that no event asks for them.
    pub names_files: bool,
    /// Whether `udp_session_done` is raised when it leaves a connection.
    pub is_session: bool,
    /// How much may wait at one connection.
    pub pending: Option<Limit>,
}

impl Entry {
    /// An analyzer of Zeek without ports.
    pub(crate) const fn new(tag: Tag, name: &'static str, service: &'static str) -> Self {
        Self {
            tag,
            name,
            service,
            ports: Ports::NONE,
            servers: None,
            tcp_rules: &[],
            udp_rules: &[],
            origin: Origin::Zeek,
            kind: Kind::Analyzer,
            idle: None,
            names_files: false,
            is_session: false,
            pending: None,
        }
    }

    /// The ports that tell a server from a client.
    pub(crate) const fn likely(&self) -> &Ports {
        match (&self.servers, self.origin) {
            (Some(servers), _) => servers,
            (None, Origin::Zeek) => &self.ports,
            (None, _) => &Ports::NONE,
        }
    }
}

/// Ports by transport.
#[derive(Debug)]
pub struct Ports {
    /// Of TCP.
    pub tcp: &'static [u16],
    /// Of UDP.
    pub udp: &'static [u16],
}

impl Ports {
    pub(crate) const NONE: Self = Self { tcp: &[], udp: &[] };

    pub(crate) const fn tcp(tcp: &'static [u16]) -> Self {
        Self { tcp, udp: &[] }
    }

    pub(crate) const fn udp(udp: &'static [u16]) -> Self {
        Self { tcp: &[], udp }
    }
}

/// Where Zeek has an analyzer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is always there.
    Zeek,
    /// Only where Zeek is built with Spicy. What fails is reported, and protocols within are analyzed, with
    /// [`inner_protocols`](crate::Options::inner_protocols).
    Spicy,
    /// Zeek does not have it. The analyzer runs only where one of its logs or events is asked for, so that it does not
    /// become a service of connections otherwise.
    Extra,
}

/// What a name of the list is to Zeek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An analyzer of a connection.
    Analyzer,
    /// An analyzer of packets that carry others: of a tunnel.
    Tunnel,
    /// A service that its scripts add to connections that were announced.
    Service,
}

/// A log.
#[derive(Debug)]
pub struct Log {
    /// Name of the log and of its file.
    pub path: &'static str,
    /// Name of its stream in Zeek's scripts; `None`: the log's name in upper case, `::LOG`.
    pub stream: Option<&'static str>,
    /// Its columns.
    pub schema: fn() -> Schema,
    /// Whether it is written.
    pub is_wanted: fn(&Selection) -> bool,
}

impl Log {
    /// The log of a type of rows.
    pub(crate) const fn of<R: Row>() -> Self {
        let (schema, is_wanted) = (Schema::of::<R>, Selection::wants::<R>);
        Self { path: R::PATH, stream: None, schema, is_wanted }
    }

    /// The same with a stream of this name.
    pub(crate) const fn stream(self, name: &'static str) -> Self {
        Self { stream: Some(name), ..self }
    }
}

/// How much may wait at one connection: requests without a reply, and the like.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Its name, as in `--limit NAME=VALUE`.
    pub name: &'static str,
    /// The default: that of Zeek's scripts, where these have one.
    pub default: usize,
    /// What is limited, and what happens beyond the limit.
    pub what: &'static str,
    /// The weird or the line of the statistics that reports it.
    pub reported_by: &'static str,
}

/// The descriptors of all protocols, which the [registry](crate::registry) has: it imports the protocols, and these what is
/// below it. So it implements this trait, and nothing below imports it.
pub(crate) trait Registered {
    /// All descriptors, in the order of the list.
    const DESCRIPTORS: &[&Descriptor];
}

/// The entries of all descriptors, by tag.
static ENTRIES: [&Entry; TAGS] = entries();

/// See [`ENTRIES`].
pub(crate) const fn entries() -> [&'static Entry; TAGS] {
    let mut all = [&Tag::DESCRIPTORS[0].entries[0]; TAGS];
    let (mut at, mut i) = (0, 0);
    while i < Tag::DESCRIPTORS.len() {
        let mut j = 0;
        while j < Tag::DESCRIPTORS[i].entries.len() {
            let entry = &Tag::DESCRIPTORS[i].entries[j];
            assert!(entry.tag as usize == at, "a descriptor and its line list different tags");
            all[at] = entry;
            (at, j) = (at + 1, j + 1);
        }
        i += 1;
    }
    assert!(at == TAGS, "a descriptor lacks a tag of its line");
    all
}

/// The descriptor of each tag.
static OF_TAGS: [&Descriptor; TAGS] = {
    let mut all = [&Descriptor::NONE; TAGS];
    let (mut at, mut i) = (0, 0);
    while i < Tag::DESCRIPTORS.len() {
        let end = at + Tag::DESCRIPTORS[i].entries.len();
        while at < end {
            all[at] = Tag::DESCRIPTORS[i];
            at += 1;
        }
        i += 1;
    }
    all
};

impl Tag {
    /// Its entry in the protocol's descriptor.
    #[inline]
    pub fn entry(self) -> &'static Entry {
        ENTRIES[self as usize]
    }

    /// Name as analyzer.log spells it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Name as conn.log's `service` spells it.
    pub fn service(self) -> &'static str {
        self.entry().service
    }

    /// Name as the connections of events spell it.
    pub fn script_service(self) -> &'static str {
        if self.entry().kind == Kind::Service { self.service() } else { self.name() }
    }

    /// Name of its tag in Zeek's scripts.
    pub fn zeek_name(self) -> &'static str {
        &ZEEK_NAMES[self as usize]
    }

    /// The protocol whose tag has this name in Zeek's scripts.
    pub fn of_zeek_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|tag| tag.zeek_name() == name).copied()
    }

    /// TCP ports on which it is tried at once.
    pub fn tcp_ports(self) -> &'static [u16] {
        self.entry().ports.tcp
    }

    /// UDP ports on which it is tried at once.
    pub fn udp_ports(self) -> &'static [u16] {
        self.entry().ports.udp
    }

    /// Whether it reads tunnels, whose packets carry others.
    pub(crate) fn reads_packets(self) -> bool {
        self.entry().kind == Kind::Tunnel
    }

    /// Whether Zeek reads the protocol only where it was built with Spicy.
    pub fn needs_spicy(self) -> bool {
        self.entry().origin == Origin::Spicy
    }

    /// Whether connections are analyzed: what Zeek does not have only where a log or an event of it is asked for.
    pub(crate) fn is_wanted(self, logs: &Sinks) -> bool {
        if self.entry().origin != Origin::Extra {
            return true;
        }
        let descriptor = OF_TAGS[self as usize];
        let (events, selection) = (&logs.events, logs.selection());
        let mut declared = descriptor.events.iter().copied().flatten();
        descriptor.logs.iter().any(|log| (log.is_wanted)(selection))
            || events.any() && declared.any(|decl| events.wants_id(decl.id))
    }
}

static ZEEK_NAMES: LazyLock<[String; TAGS]> = LazyLock::new(|| {
    ENTRIES.map(|entry| match entry.kind {
        Kind::Tunnel => format!("PacketAnalyzer::ANALYZER_{}", entry.name),
        // Its violations are those of datagrams.
        _ if entry.tag == Tag::Detector => "Analyzer::ANALYZER_PIA_UDP".to_owned(),
        _ => format!("Analyzer::ANALYZER_{}", entry.name),
    })
});

/// The logs that protocols declare.
pub(crate) fn logs() -> impl Iterator<Item = &'static Log> {
    Tag::DESCRIPTORS.iter().flat_map(|descriptor| descriptor.logs)
}
