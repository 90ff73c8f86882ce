//! Requests of a listener to the analysis, which are carried out after its events are delivered.

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Uid;

/// A request of a listener. Analyzers are named by Zeek's tags (`Analyzer::ANALYZER_HTTP`).
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Registers an analyzer for a port, or unregisters it.
    Port {
        /// The analyzer.
        analyzer: String,
        /// Transport.
        proto: Proto,
        /// Port of the responder.
        port: u16,
        /// Whether it is registered.
        on: bool,
    },
    /// Replaces the likely ports of servers (Zeek's `likely_server_ports`).
    LikelyPorts(Vec<(Proto, u16)>),
    /// Replaces the UDP ports of tunnels, each with its analyzer.
    TunnelPorts(Vec<(u16, String)>),
    /// Replaces the analyzers of protocols to which HTTP connections are upgraded, by the protocols' names.
    Upgrades(Vec<(Vec<u8>, String)>),
    /// Replaces the names of SMB files that identify named pipes (Zeek's `SMB::pipe_filenames`).
    PipeNames(Vec<Vec<u8>>),
    /// Enables or disables an analyzer.
    Enable {
        /// The analyzer; `None` stands for all analyzers.
        analyzer: Option<String>,
        /// Whether it is enabled.
        on: bool,
    },
    /// Enables or disables the detection of an analyzer's protocol from the first bytes of a connection.
    Detect {
        /// The analyzer.
        analyzer: String,
        /// Whether it is enabled.
        on: bool,
    },
    /// Schedules an analyzer for an expected connection.
    Schedule {
        /// Originator; `None` stands for any.
        orig: Option<gannet_base::Addr>,
        /// Responder.
        resp: gannet_base::Addr,
        /// Port of the responder.
        port: u16,
        /// Transport.
        proto: Proto,
        /// The analyzer.
        analyzer: String,
        /// Time for which the connection is expected.
        timeout: Interval,
    },
    /// A request for a connection.
    Connection {
        /// The connection.
        uid: Uid,
        /// Its endpoints.
        id: ConnId,
        /// IP protocol number.
        ip_proto: u8,
        /// The request.
        what: ConnCommand,
    },
    /// A request for a file.
    File {
        /// The file.
        fuid: Uid,
        /// The request.
        what: FileCommand,
    },
    /// Data of a file that scripts read, which no connection carries.
    Contents {
        /// Name of the file.
        source: String,
        /// The next bytes.
        data: Vec<u8>,
        /// Whether these are the last bytes.
        ends: bool,
    },
    /// Analyzes only packets that match this filter; `None` removes the filter.
    Filter(Option<String>),
    /// Treats packets of a link type as IP packets after a number of bytes.
    SkipBytes {
        /// The link type's number in captures.
        link_type: u32,
        /// Number of bytes before the IP header.
        bytes: u64,
    },
    /// Numbers of packets, ascending: an event is raised for each connection that reaches one of them.
    PacketThresholds(Vec<u64>),
    /// Asks the listener for each following packet whether it is discarded.
    AskToDiscard,
    /// Watches all connections ([`ConnCommand::Watch`]).
    WatchAll,
    /// Disables checksum verification for packets from these networks.
    Unchecked(Vec<gannet_base::Subnet>),
    /// Sets a numeric or boolean (0 or 1) script option that the analysis uses.
    Setting {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// Names of weirds with special sampling.
    WeirdNames {
        /// Weirds that are always reported (Zeek's `Weird::sampling_whitelist`).
        exempt: Vec<String>,
        /// Weirds that are counted globally (Zeek's `Weird::sampling_global_list`).
        global: Vec<String>,
    },
    /// Stops reading packets.
    Stop,
}

/// A request for a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnCommand {
    /// Removes an analyzer.
    Disable {
        /// Its number: the `aid` of events.
        aid: u64,
        /// Whether the analyzer is not started again on this connection.
        prevent: bool,
    },
    /// Starts an analyzer and delivers parts of the stream to it.
    Start {
        /// The analyzer.
        analyzer: String,
        /// Whether the originator sent the part, and the part.
        replay: Vec<(bool, Vec<u8>)>,
    },
    /// Delivers the contents of the stream to a script that writes them to files.
    Contents {
        /// Whether the originator's and the responder's contents are delivered.
        sides: [bool; 2],
    },
    /// Configures a WebSocket analyzer that begins.
    Configure {
        /// The analyzer that receives the payload; `None` if there is none.
        payload: Option<String>,
        /// Whether the protocol of the payload is detected instead.
        detects: bool,
    },
    /// Decrypts the application data of the TLS session.
    Decrypt {
        /// The master secret, or the key block derived from it.
        secret: Vec<u8>,
        /// Whether `secret` is the key block.
        is_key_block: bool,
    },
    /// Marks the TLS session as established: both sides encrypt.
    Establish,
    /// Skips the rest of the current HTTP entity of a side.
    SkipEntity {
        /// Whether it is the originator's entity.
        is_orig: bool,
    },
    /// Skips the remaining lines of the current mail.
    SkipMail,
    /// Sets the state of the login, by Zeek's number.
    Login {
        /// The state.
        state: u64,
    },
    /// Stops counting bytes and packets, so that no further threshold is reported.
    Uncounted,
    /// Stops matching signatures on further data.
    Unmatched,
    /// Reports each packet, because scripts read the connection's state again.
    Watch,
    /// Ignores further packets.
    Skip,
    /// Restarts the detection of a GTP or Teredo tunnel at the next packet.
    ForgetTunnel,
    /// Records in the history that a limit was reached.
    Limit,
    /// Sets the inactivity timeout.
    Timeout(Interval),
    /// Raises an event when a side has sent more IP bytes than a threshold.
    Bytes {
        /// The threshold in bytes.
        threshold: u64,
        /// Whether the originator's bytes count.
        is_orig: bool,
    },
    /// Raises an event when a side has sent more packets than a threshold.
    Packets {
        /// The threshold in packets.
        threshold: u64,
        /// Whether the originator's packets count.
        is_orig: bool,
    },
    /// Raises an event when the connection has lasted longer than this.
    Duration(Interval),
}

/// A request for a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileCommand {
    /// Attaches an analyzer.
    Add {
        /// The analyzer (`Files::ANALYZER_MD5`).
        analyzer: String,
        /// File to which an extractor writes.
        path: Option<String>,
        /// Maximum number of bytes that an extractor writes; 0 is unlimited.
        limit: u64,
        /// Whether missing bytes count towards the limit.
        counts_gaps: bool,
    },
    /// Removes an analyzer.
    Remove(String),
    /// Stops the analysis of the file.
    Stop,
    /// Sets the inactivity timeout.
    Timeout(Interval),
    /// Sets the limit of the extractor, in bytes.
    Limit(u64),
    /// Enables or disables reassembly of data out of order.
    Reassemble(bool),
    /// Sets the maximum size of the reassembly buffer, in bytes; 0 is unlimited.
    Buffer(u64),
}
