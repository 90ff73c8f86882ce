//! What a listener asks of the analysis: carried out once its events were delivered.

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Uid;

/// One request. Analyzers are named by Zeek's tags (`Analyzer::ANALYZER_HTTP`).
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// An analyzer is tried at once on a port, or no longer.
    Port {
        /// The analyzer.
        analyzer: String,
        /// Transport.
        proto: Proto,
        /// Port of the responder.
        port: u16,
        /// Whether it is tried.
        on: bool,
    },
    /// The ports that servers are likely to have, by transport, in the place of all others.
    LikelyPorts(Vec<(Proto, u16)>),
    /// The UDP ports of responders that mark tunnels, with the analyzer of each by its name in Zeek's scripts, in the place
    /// of all others.
    TunnelPorts(Vec<(u16, String)>),
    /// The analyzers of what HTTP connections are upgraded to, by names of protocols, in the place of all others.
    Upgrades(Vec<(Vec<u8>, String)>),
    /// Names of files of SMB that only trees of pipes have, in the place of all others.
    PipeNames(Vec<Vec<u8>>),
    /// An analyzer may be started, or may not.
    Enable {
        /// The analyzer; all of them where it is `None`.
        analyzer: Option<String>,
        /// Whether it may.
        on: bool,
    },
    /// An analyzer may be started for what a connection begins with, or may not.
    Detect {
        /// The analyzer.
        analyzer: String,
        /// Whether it may.
        on: bool,
    },
    /// A connection that is expected is analyzed as this protocol.
    Schedule {
        /// Originator; any where it is `None`.
        orig: Option<gannet_base::Addr>,
        /// Responder.
        resp: gannet_base::Addr,
        /// Port of the responder.
        port: u16,
        /// Transport.
        proto: Proto,
        /// The analyzer.
        analyzer: String,
        /// How long it is expected.
        timeout: Interval,
    },
    /// Something of one connection.
    Connection {
        /// The connection.
        uid: Uid,
        /// Its ends.
        id: ConnId,
        /// IP protocol number.
        ip_proto: u8,
        /// What is asked of the connection.
        what: ConnCommand,
    },
    /// Something of one file.
    File {
        /// The file.
        fuid: Uid,
        /// What is asked of the file.
        what: FileCommand,
    },
    /// More of a file that no connection carries: scripts read it.
    Contents {
        /// Its name.
        source: String,
        /// The next bytes.
        data: Vec<u8>,
        /// Whether these are the last.
        ends: bool,
    },
    /// Only packets that match this filter are analyzed; `None`: all.
    Filter(Option<String>),
    /// Packets of a link are IP packets behind a number of bytes.
    SkipBytes {
        /// The type of the link by its number in captures.
        link_type: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// Numbers of packets of which each connection is reported that has as many, in rising order.
    PacketThresholds(Vec<u64>),
    /// Whether to discard a packet is asked for each one from now on.
    AskToDiscard,
    /// All connections are watched ([`ConnCommand::Watch`]).
    WatchAll,
    /// Checksums of packets from these networks are not verified.
    Unchecked(Vec<gannet_base::Subnet>),
    /// A limit or switch of the analysis, by the name of the script's option; switches are 0 or 1.
    Setting {
        /// The option.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// Which weirds sampling never leaves out, and which it counts over all subjects, by their names.
    WeirdNames {
        /// Those that are never left out.
        exempt: Vec<String>,
        /// Those that are counted over all subjects.
        global: Vec<String>,
    },
    /// No more packets are read.
    Stop,
}

/// What is asked of a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnCommand {
    /// An analyzer is removed.
    Disable {
        /// Its number, as events name it (`aid`).
        aid: u64,
        /// Whether it is never started again on this connection.
        prevent: bool,
    },
    /// An analyzer is started and given these parts of the stream, each with whether the originator sent it.
    Start {
        /// The analyzer.
        analyzer: String,
        /// The parts.
        replay: Vec<(bool, Vec<u8>)>,
    },
    /// A script writes streams to files.
    Contents {
        /// Whether the originator's, and the responder's.
        sides: [bool; 2],
    },
    /// An analyzer of WebSocket begins, and passes payload on.
    Configure {
        /// The analyzer that receives it; `None`: none does.
        payload: Option<String>,
        /// Whether the payload's protocol is detected instead.
        detects: bool,
    },
    /// The application data of its TLS session is decrypted.
    Decrypt {
        /// The master secret, or the key block that follows from it.
        secret: Vec<u8>,
        /// Whether it is the key block.
        is_key_block: bool,
    },
    /// Both sides of its TLS session have changed to encryption.
    Establish,
    /// The rest of the current HTTP entity of a side is not delivered.
    SkipEntity {
        /// Whether it is the originator's.
        is_orig: bool,
    },
    /// The rest of the current mail is not reported line by line.
    SkipMail,
    /// The state of its login, by Zeek's number.
    Login {
        /// The state.
        state: u64,
    },
    /// Its bytes and packets are not counted any more: no threshold of them is reported.
    Uncounted,
    /// Its further data is no matter of signatures.
    Unmatched,
    /// Scripts look at it again: each of its packets is reported.
    Watch,
    /// Its further packets are ignored.
    Skip,
    /// It begins again as a tunnel of GTP or Teredo with its next packet.
    ForgetTunnel,
    /// A limit was reached: its history shows that.
    Limit,
    /// Silence after which it ends.
    Timeout(Interval),
    /// Raises an event once a side has sent more bytes of IP packets.
    Bytes {
        /// The number of bytes.
        threshold: u64,
        /// Whether the originator's count.
        is_orig: bool,
    },
    /// Raises an event once a side has sent more packets.
    Packets {
        /// The number of packets.
        threshold: u64,
        /// Whether the originator's count.
        is_orig: bool,
    },
    /// Raises an event once it has lasted for longer.
    Duration(Interval),
}

/// What is asked of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileCommand {
    /// An analyzer looks at what comes.
    Add {
        /// The analyzer (`Files::ANALYZER_MD5`).
        analyzer: String,
        /// Where an extractor writes.
        path: Option<String>,
        /// Bytes that an extractor writes at the most; 0: all.
        limit: u64,
        /// Whether missing bytes count towards the limit.
        counts_gaps: bool,
    },
    /// An analyzer is removed.
    Remove(String),
    /// Nothing more of it is analyzed.
    Stop,
    /// Silence after which it is given up.
    Timeout(Interval),
    /// Another limit of its extractor.
    Limit(u64),
    /// Whether parts that come too early wait for those before them.
    Reassemble(bool),
    /// How many bytes of them wait at the most; 0: as many as come.
    Buffer(u64),
}
