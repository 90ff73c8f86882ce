//! Declarations of a protocol: analyzers, ports, events and logs.
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
    /// Its analyzers, and names without an analyzer, in the order of the list.
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

/// An analyzer, or a name without one.
#[derive(Debug)]
pub struct Entry {
    /// Its tag.
    pub tag: Tag,
    /// Name in analyzer.log, from which the tag of Zeek's scripts is derived.
    pub name: &'static str,
    /// Name in conn.log's `service`.
    pub service: &'static str,
    /// Responder ports on which it is started immediately.
    pub ports: Ports,
    /// Ports that identify the server of a connection, as in Zeek's `likely_server_ports`. `None`:
    /// the [`ports`](Self::ports), if Zeek has the analyzer.
    pub servers: Option<Ports>,
    /// Patterns at the start of TCP streams that start it on any port.
    pub(crate) tcp_rules: &'static [TcpRule],
    /// Patterns at the start of datagrams that start it on any port.
    pub(crate) udp_rules: &'static [UdpRule],
    /// How Zeek provides the analyzer.
    pub origin: Origin,
    /// What kind of analyzer it is in Zeek.
    pub kind: Kind,
    /// Idle timeout in seconds; `None`: the default of its transport.
    pub idle: Option<u16>,
    /// Whether it names its files itself, so that `get_file_handle` is not raised for them.
    pub names_files: bool,
    /// Whether `udp_session_done` is raised when it leaves a connection.
    pub is_session: bool,
    /// Limit of pending items per connection.
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

    /// The ports that identify a server.
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
    /// TCP ports.
    pub tcp: &'static [u16],
    /// UDP ports.
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

/// How Zeek provides an analyzer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Part of every build of Zeek.
    Zeek,
    /// Only in builds of Zeek with Spicy. Failures are reported, and protocols within are
    /// analyzed, if [`inner_protocols`](crate::Options::inner_protocols) is set.
    Spicy,
    /// Not in Zeek. The analyzer runs only if one of its logs or events is requested, so that it
    /// does not otherwise add a service to connections.
    Extra,
}

/// What a name of the list is in Zeek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A protocol analyzer of a connection.
    Analyzer,
    /// A packet analyzer of a tunnel.
    Tunnel,
    /// A service that scripts add to announced connections.
    Service,
}

/// A log.
#[derive(Debug)]
pub struct Log {
    /// Name of the log, which is also the base name of its file.
    pub path: &'static str,
    /// Name of its stream in Zeek's scripts; `None`: the log's name in upper case with `::LOG`.
    pub stream: Option<&'static str>,
    /// Its columns.
    pub schema: fn() -> Schema,
    /// Whether the log is selected.
    pub is_wanted: fn(&Selection) -> bool,
}

impl Log {
    /// The log of a row type.
    pub(crate) const fn of<R: Row>() -> Self {
        let (schema, is_wanted) = (Schema::of::<R>, Selection::wants::<R>);
        Self { path: R::PATH, stream: None, schema, is_wanted }
    }

    /// Sets the name of the log's stream.
    pub(crate) const fn stream(self, name: &'static str) -> Self {
        Self { stream: Some(name), ..self }
    }
}

/// A limit of pending items of one connection, such as requests without a reply.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Name of the limit, as in `--limit NAME=VALUE`.
    pub name: &'static str,
    /// The default: that of Zeek's scripts, if they have one.
    pub default: usize,
    /// What is limited, and what happens beyond the limit.
    pub what: &'static str,
    /// The weird or the line of the statistics that reports items beyond the limit.
    pub reported_by: &'static str,
}

/// The descriptors of all protocols. The [registry](crate::registry) imports the protocols and
/// implements this trait, so that modules that the protocols import need not import the registry.
pub(crate) trait Registered {
    /// All descriptors, in the order of the list.
    const DESCRIPTORS: &[&Descriptor];
}

/// The entries of all descriptors, indexed by tag.
static ENTRIES: [&Entry; TAGS] = entries();

/// Builds [`ENTRIES`].
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

/// The descriptor of each tag, indexed by tag.
static BY_TAG: [&Descriptor; TAGS] = {
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
    /// The tag's entry in the protocol's descriptor.
    #[inline]
    pub fn entry(self) -> &'static Entry {
        ENTRIES[self as usize]
    }

    /// Name in analyzer.log.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Name in conn.log's `service`.
    pub fn service(self) -> &'static str {
        self.entry().service
    }

    /// Name in the `service` field of the connections of events.
    pub fn script_service(self) -> &'static str {
        if self.entry().kind == Kind::Service { self.service() } else { self.name() }
    }

    /// Name of the tag in Zeek's scripts.
    pub fn zeek_name(self) -> &'static str {
        &ZEEK_NAMES[self as usize]
    }

    /// The protocol whose tag has this name in Zeek's scripts.
    pub fn from_zeek_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|tag| tag.zeek_name() == name).copied()
    }

    /// TCP ports on which it is started immediately.
    pub fn tcp_ports(self) -> &'static [u16] {
        self.entry().ports.tcp
    }

    /// UDP ports on which it is started immediately.
    pub fn udp_ports(self) -> &'static [u16] {
        self.entry().ports.udp
    }

    /// Whether it is a packet analyzer of a tunnel.
    pub(crate) fn reads_packets(self) -> bool {
        self.entry().kind == Kind::Tunnel
    }

    /// Whether only builds of Zeek with Spicy have the analyzer.
    pub fn needs_spicy(self) -> bool {
        self.entry().origin == Origin::Spicy
    }

    /// Whether connections are analyzed with it: an analyzer that Zeek lacks only if one of its
    /// logs or events is requested.
    pub(crate) fn is_wanted(self, logs: &Sinks) -> bool {
        if self.entry().origin != Origin::Extra {
            return true;
        }
        let descriptor = BY_TAG[self as usize];
        let (events, selection) = (&logs.events, logs.selection());
        let mut declared = descriptor.events.iter().copied().flatten();
        descriptor.logs.iter().any(|log| (log.is_wanted)(selection))
            || events.any() && declared.any(|decl| events.wants_id(decl.id))
    }
}

static ZEEK_NAMES: LazyLock<[String; TAGS]> = LazyLock::new(|| {
    ENTRIES.map(|entry| match entry.kind {
        Kind::Tunnel => format!("PacketAnalyzer::ANALYZER_{}", entry.name),
        // Zeek attributes its violations to the detector of datagrams.
        _ if entry.tag == Tag::Detector => "Analyzer::ANALYZER_PIA_UDP".to_owned(),
        _ => format!("Analyzer::ANALYZER_{}", entry.name),
    })
});

/// The logs that protocols declare.
pub(crate) fn logs() -> impl Iterator<Item = &'static Log> {
    Tag::DESCRIPTORS.iter().flat_map(|descriptor| descriptor.logs)
}
