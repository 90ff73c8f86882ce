//! Enums whose values are not declared in scripts: tags of analyzers, readers, writers and backends.

mod spicy;

use crate::ast::Function;
use crate::ids::{GlobalId, Name, TypeId};
use crate::program::Program;
use crate::source::Span;
use crate::symbols::{Global, GlobalKind};
use crate::types::{EnumType, EnumValue, Flavor, FuncType, RecordType, Type};

/// Analyzers of streams and datagrams.
const ANALYZERS: &[&str] = &[
    "AYIYA",
    "BITTORRENT",
    "BITTORRENTTRACKER",
    "CONNSIZE",
    "CONTENTLINE",
    "CONTENTS",
    "CONTENTS_DNS",
    "CONTENTS_NCP",
    "CONTENTS_NETBIOSSSN",
    "CONTENTS_RLOGIN",
    "CONTENTS_RPC",
    "CONTENTS_RSH",
    "CONTENTS_SMB",
    "CONTENTS_SMTP",
    "DCE_RPC",
    "DHCP",
    "DNP3_TCP",
    "DNP3_UDP",
    "DNS",
    "DTLS",
    "FILE",
    "FINGER",
    "FTP",
    "FTP_ADAT",
    "FTP_DATA",
    "GNUTELLA",
    "GSSAPI",
    "HTTP",
    "ICMP",
    "IDENT",
    "IMAP",
    "IRC",
    "IRC_DATA",
    "KRB",
    "KRB_TCP",
    "LDAP_TCP",
    "LDAP_UDP",
    "LOGIN",
    "MIME",
    "MODBUS",
    "MOUNT",
    "MQTT",
    "MYSQL",
    "NCP",
    "NETBIOSSSN",
    "NFS",
    "NTLM",
    "NTP",
    "NVT",
    "PIA_TCP",
    "PIA_UDP",
    "POP3",
    "PORTMAPPER",
    "POSTGRESQL",
    "QUIC",
    "RADIUS",
    "RDP",
    "RDPEUDP",
    "REDIS",
    "RFB",
    "RLOGIN",
    "RSH",
    "SIP",
    "SMB",
    "SMTP",
    "SMTP_BDAT",
    "SNMP",
    "SOCKS",
    "SPICY_SSH",
    "SSH",
    "SSL",
    "STREAM_EVENT",
    "SYSLOG",
    "SYSLOG_TCP",
    "TCP",
    "TCPSTATS",
    "TELNET",
    "TFTP",
    "UDP",
    "UNKNOWN_IP_TRANSPORT",
    "WEBSOCKET",
    "XMPP",
    "ZIP",
];

/// Analyzers of packets.
const PACKET_ANALYZERS: &[&str] = &[
    "ARP",
    "AYIYA",
    "ETHERNET",
    "FDDI",
    "GENEVE",
    "GRE",
    "GTPV1",
    "ICMP",
    "IEEE802_11",
    "IEEE802_11_RADIO",
    "IGMP",
    "IP",
    "IPTUNNEL",
    "LINUXSLL",
    "LINUXSLL2",
    "LLC",
    "MPLS",
    "NFLOG",
    "NOVELL_802_3",
    "NULL",
    "PBB",
    "PPP",
    "PPPOE",
    "PPPSERIAL",
    "ROOT",
    "SKIP",
    "SNAP",
    "TCP",
    "TEREDO",
    "UDP",
    "UNKNOWN_IP_TRANSPORT",
    "VLAN",
    "VNTAG",
    "VXLAN",
];

/// Analyzers of files.
const FILE_ANALYZERS: &[&str] = &[
    "DATA_EVENT",
    "ENTROPY",
    "EXTRACT",
    "MD5",
    "OCSP_REPLY",
    "OCSP_REQUEST",
    "PE",
    "SHA1",
    "SHA224",
    "SHA256",
    "SHA384",
    "SHA512",
    "X509",
    "ZIP",
];

/// Events that analyzers raise and that no script declares.
pub(crate) const RAISED_EVENTS: &[&str] = &["ZIP::end_of_directory", "ZIP::file"];

/// Enum types, the prefix of their values' names, and the remainder of each name.
const OTHERS: &[(&str, &str, &[&str])] = &[
    (
        "Input::Reader",
        "Input::READER_",
        &["ASCII", "BENCHMARK", "BINARY", "CONFIG", "RAW", "SQLITE"],
    ),
    ("Log::Writer", "Log::WRITER_", &["ASCII", "NONE", "SQLITE"]),
    ("ConnKey::Tag", "ConnKey::CONNKEY_", &["FIVETUPLE", "VLAN_FIVETUPLE"]),
    ("Cluster::BackendTag", "Cluster::CLUSTER_BACKEND_", &["BROKER", "NONE", "ZEROMQ"]),
    (
        "Cluster::EventSerializerTag",
        "Cluster::EVENT_SERIALIZER_",
        &["BROKER_BIN_V1", "BROKER_JSON_V1"],
    ),
    ("Cluster::LogSerializerTag", "Cluster::LOG_SERIALIZER_", &["ZEEK_BIN_V1"]),
    ("Storage::Backend", "Storage::STORAGE_BACKEND_", &["REDIS", "SQLITE", "STORAGEDUMMY"]),
    ("Storage::Serializer", "Storage::STORAGE_SERIALIZER_", &["JSON"]),
    ("WebSocket::Tag", "WebSocket::", &[]),
];

/// Functions without parameters that yield a bool and that no script declares.
const BOOL_FUNCTIONS: &[&str] = &["__init_primary_bifs"];

/// Declares the enums and their values.
pub fn declare(program: &mut Program) {
    declare_functions(program);
    // `AllAnalyzers::Tag` has the values of three other enums: their numbers must not collide.
    let mut all = EnumType::default();
    for (module, names, first) in [
        ("Analyzer", ANALYZERS, 1),
        ("PacketAnalyzer", PACKET_ANALYZERS, 1001),
        ("Files", FILE_ANALYZERS, 2001),
    ] {
        let values = numbered(program, &format!("{module}::ANALYZER_"), names, first);
        all.values.extend(values.iter().cloned());
        add_enum(program, &format!("{module}::Tag"), values, true);
    }
    add_enum(program, "AllAnalyzers::Tag", all.values, false);
    // Scripts for ZIP files use this type before its declaration. A value prints as its first name, which is
    // the name that Spicy gives it.
    let methods = [
        ("ZIP::CompressionMethod_Uncompressed", 0),
        ("ZIP::CompressionMethod_Deflate", 8),
        ("ZIP::CompressionMethod_Undef", -1),
        ("ZIP::Uncompressed", 0),
        ("ZIP::Deflate", 8),
    ]
    .map(|(name, value)| EnumValue { name: program.names.intern(name), value });
    add_enum(program, "ZIP::CompressionMethod", methods.to_vec(), true);
    for (name, prefix, names) in OTHERS {
        let values = numbered(program, prefix, names, 1);
        add_enum(program, name, values, true);
    }
    if program.has_spicy {
        spicy::declare(program);
    }
}

fn numbered(program: &mut Program, prefix: &str, names: &[&str], first: i64) -> Vec<EnumValue> {
    (first..)
        .zip(names)
        .map(|(value, name)| EnumValue {
            name: program.names.intern(&format!("{prefix}{name}")),
            value,
        })
        .collect()
}

fn add_enum(program: &mut Program, name: &str, values: Vec<EnumValue>, globals: bool) {
    let name = program.names.intern(name);
    let next = values.iter().map(|value| value.value + 1).max().unwrap_or(0);
    let ty = program
        .types
        .add(Type::Enum(EnumType { values: values.clone(), next, explicit: false }), Span::NOWHERE);
    program.types.data_mut(ty).name = Some(name);
    add_global(program, name, ty, GlobalKind::Type);
    if globals {
        for value in values {
            add_global(program, value.name, ty, GlobalKind::EnumValue(value.value));
        }
    }
}

fn add_global(program: &mut Program, name: Name, ty: TypeId, kind: GlobalKind) -> GlobalId {
    let module = program.names.intern("GLOBAL");
    program.globals.add(Global {
        name,
        kind,
        ty,
        attrs: Vec::new(),
        span: Span::NOWHERE,
        exported: true,
        initialized: false,
        module,
        uses: 0,
    })
}

/// Declares functions that no script declares.
fn declare_functions(program: &mut Program) {
    for name in BOOL_FUNCTIONS {
        let name = program.names.intern(name);
        let params = program.types.add(Type::Record(RecordType::default()), Span::NOWHERE);
        let ty = FuncType {
            flavor: Flavor::Function,
            params,
            result: TypeId::BOOL,
            prototypes: Vec::new(),
            captures: Box::new([]),
        };
        let ty = program.types.add(Type::Func(ty), Span::NOWHERE);
        let func =
            Function { name, global: None, ty, flavor: Flavor::Function, bodies: Vec::new() };
        let func = program.functions.push(func);
        let id = add_global(program, name, ty, GlobalKind::Function(func));
        program.functions[func].global = Some(id);
    }
}
