//! The current traffic for built-in functions: connections, files, the packet, and their requests to the
//! analysis.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use gannet_base::{ConnId, Uid};
use gannet_event::{Command, FilePart, FileState};
// Packets determine the keys of these tables: they are hashed with a random key of the process.
use hashbrown::HashMap;

use super::conn_plan::ConnPlan;
use super::known::Conns;
use super::plan::IdPlan;
use crate::ids::TypeId;
use crate::support::order::{SaltedHashes, uid_text};
use crate::value::{Record, Value};

/// How packets of a capture are delayed (`--pseudo-realtime`).
pub(crate) struct Pace {
    /// When the first packet was read.
    pub(super) began: std::time::Instant,
    /// Timestamp of the first packet, in seconds.
    pub(super) first: f64,
    /// Factor by which packets are read faster than they were captured.
    pub(super) speed: f64,
}

/// The current traffic; empty without packets.
#[derive(Default)]
pub struct Traffic {
    /// Whether packets of a capture are read.
    pub(crate) reads_capture: bool,
    /// Whether packets of an interface are read.
    pub(crate) is_live: bool,
    /// Stored connections.
    pub(crate) conns: Conns,
    /// How `connection` records are created; `None` before the first connection.
    pub(super) conn_plan: Option<Rc<ConnPlan>>,
    /// Prefix of the names of events, by the tag of the analyzer that raises them.
    pub(super) prefixes: HashMap<(TypeId, i64), Rc<str>>,
    /// Files by their id.
    pub(crate) files: HashMap<Vec<u8>, (Uid, Rc<Record>)>,
    /// Data that scripts passed to `match_signatures`, in order.
    pub(crate) matches: Vec<super::requests::MatchRequest>,
    /// Requests to the analysis, in order.
    pub(crate) commands: Vec<Command>,
    pub(crate) packet: Option<Packet>,
    /// Headers of the current packet, as `raw_pkt_hdr`.
    pub(crate) header: Value,
    /// Number of the current packet.
    pub(crate) number: u64,
    /// The capture or the interface as the command line names it.
    pub(crate) capture: String,
    /// The type of its link, once it is known.
    pub(crate) link_type: Option<u64>,
    /// The capture to which all packets are written (`-w`).
    pub(crate) write: Option<String>,
    /// Captures that scripts write.
    pub(crate) dumps: super::packets::Dumps,
    /// Capture filters.
    pub(crate) filters: super::packets::Filters,
    /// Names of the events that the analysis raises.
    pub(super) raised: std::collections::HashSet<&'static str>,
    /// What scripts can reach, computed on first use; `None` if it cannot be determined.
    pub(super) reached: OnceCell<Option<super::steering::Reached>>,
    /// Whether scripts define functions that discard packets, computed on first use.
    pub(super) has_discarders: OnceCell<bool>,
    /// How a `conn_id` is read, cached.
    pub(super) id_plan: RefCell<Option<Rc<IdPlan>>>,
    /// Records that events share.
    pub(super) repeated: RefCell<super::repeated::Repeated>,
    /// Address filters of scripts.
    pub(crate) address_filters: super::decide::AddressFilters,
    /// Text lists for logins.
    pub(crate) login_texts: super::decide::LoginTexts,
    /// Requests of scripts for the contents of files.
    pub(crate) file_contents: super::file_contents::FileContents,
    /// Analyzers that scripts attached to files.
    pub(crate) file_analyzers: super::file_analyzers::FileAnalyzers,
    /// Files that scripts stopped: no further events are reported for them.
    pub(crate) stopped: std::collections::HashSet<Uid>,
    /// Files to which scripts write streams.
    pub(crate) recordings: super::recordings::Recordings,
    /// Certificates that scripts have cached.
    pub(crate) certificate_cache: super::certificate_cache::CertificateCache,
    /// Counters for statistics functions.
    pub(crate) counts: super::counts::Counts,
    /// Set if packets are read at the speed of their capture.
    pub(crate) pace: Option<Pace>,
    /// Set when scripts disabled the analyzer that counts packets and bytes: connections have no counts then.
    pub(crate) without_sizes: bool,
    /// Whether scripts configured bytes to skip at the start of packets.
    pub(crate) skips_bytes: bool,
    /// Whether scripts registered other tunnel ports than the defaults.
    pub(crate) has_other_tunnels: bool,
    /// Set when a script changed the reassembly of a file.
    pub(crate) changed_reassembly: bool,
    /// File analyzers that scripts disabled.
    pub(crate) disabled_file_analyzers: std::collections::HashSet<String>,
    /// Options of the current TCP segment, if scripts read them.
    pub(crate) tcp_options: Vec<u8>,
    /// Options of the Geneve headers of the current packet, the outermost first, if scripts read them.
    pub(crate) geneve_options: Vec<Vec<u8>>,
    /// The PPPoE session of the current packet, if scripts read it.
    pub(crate) pppoe_session: Option<u64>,
    /// Number of bytes of all packets so far.
    pub(crate) bytes: u64,
    /// Zeek's names of connections and files under seeds.
    pub(crate) names: Option<Names>,
}

impl Traffic {
    /// A string argument of an event; names of connections are replaced by Zeek's under seeds.
    pub(crate) fn string_arg(&self, text: &[u8]) -> Value {
        if let Some(names) = &self.names
            && text.first() == Some(&b'C')
            && (12..=24).contains(&text.len())
        {
            let is_it = |uid: &Uid| {
                let (name, len) = uid.text();
                name.get(..len) == Some(text)
            };
            if let Some((_, name)) = names.conns.iter().find(|(uid, _)| is_it(uid)) {
                return name.clone();
            }
        }
        Value::string(text)
    }
}

/// Zeek's names of connections and files under seeds.
pub(crate) struct Names {
    salted: SaltedHashes,
    /// The handle of the next file.
    pub(crate) handle: Option<Vec<u8>>,
    /// Names of connections, by the uid of the analysis.
    pub(crate) conns: HashMap<Uid, Value>,
    files: HashMap<Uid, Value>,
}

impl Names {
    pub(crate) fn new(salt: &[u8]) -> Self {
        Self {
            salted: SaltedHashes::new(salt),
            handle: None,
            conns: HashMap::new(),
            files: HashMap::new(),
        }
    }

    /// The name of a file that was named before.
    pub(crate) fn known_file(&self, fuid: Uid) -> Option<Value> {
        self.files.get(&fuid).cloned()
    }

    /// The name of a file, computed from its handle; `None` if it has none.
    pub(crate) fn file(&mut self, state: &FileState, start: Option<f64>) -> Option<Value> {
        if let Some(known) = self.files.get(&state.fuid) {
            return Some(known.clone());
        }
        let handle = match &*state.source {
            _ if state.part != FilePart::Unnamed => part_handle(state, start?)?,
            // An entry of an archive: the next handle belongs to another file.
            _ if state.parent.is_some() => return None,
            // A file that scripts read.
            source if state.conns.is_empty() => source.as_bytes().to_vec(),
            _ => self.handle.take()?,
        };
        let name = Value::string(uid_text(b"F", self.salted.hash128(&handle), 96));
        self.files.insert(state.fuid, name.clone());
        Some(name)
    }
}

/// The handle of a file that its analyzer numbers, such as certificates.
fn part_handle(state: &FileState, start: f64) -> Option<Vec<u8>> {
    let (id, _) = state.conns.first()?;
    let analyzer = if state.source == "DTLS" { "SSL" } else { &*state.source };
    let side = if state.is_orig.unwrap_or_default() { "T" } else { "F" };
    let (side, number) = match state.part {
        FilePart::Certificate(_) if analyzer == "RDP" => ("", String::new()),
        FilePart::Certificate(number) => (side, number.to_string()),
        FilePart::OcspResponse => ("F", "ocsp".to_owned()),
        FilePart::Unnamed => return None,
    };
    let start = time_text(start);
    let ConnId { orig_h, orig_p, resp_h, resp_p } = id;
    let handle = format!(
        "Analyzer::ANALYZER_{analyzer}{start}{side}{orig_h}:{orig_p} > {resp_h}:{resp_p}{number}"
    );
    Some(handle.into_bytes())
}

/// A time in seconds with one to six decimals, without trailing zeros.
fn time_text(time: f64) -> String {
    let text = format!("{time:.6}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// The current packet.
pub(crate) struct Packet {
    pub(crate) nanos: i64,
    pub(crate) data: Vec<u8>,
    pub(crate) len: u64,
    pub(crate) link_type: u64,
}

/// A certificate in DER form, stored in an opaque value.
#[derive(Clone)]
pub(crate) struct Certificate(pub Vec<u8>);

#[cfg(test)]
mod tests {
    use gannet_base::{Addr, Interval, Proto, Time, UidSource};

    use super::*;

    #[test]
    fn handles_of_certificates() {
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            orig_p: 1,
            resp_h: Addr::v4([10, 0, 0, 2]),
            resp_p: 443,
        };
        let file = |source: &'static str, is_orig, part| FileState {
            fuid: UidSource::new(1).file(UidSource::new(1).connection(1, 0), 1),
            parent: None,
            source: source.into(),
            is_orig: Some(is_orig),
            conns: vec![(id, Proto::Tcp)],
            last_active: Time::from_secs(1),
            seen_bytes: 0,
            total_bytes: None,
            missing_bytes: 0,
            overflow_bytes: 0,
            timeout: Interval::from_secs(120),
            bof: None,
            part,
        };
        let handle = |file| String::from_utf8(part_handle(&file, 1.5).unwrap()).unwrap();
        let ends = "10.0.0.1:1 > 10.0.0.2:443";
        let of = |source, part| handle(file(source, true, part));
        let (second, ocsp) = (FilePart::Certificate(1), FilePart::OcspResponse);
        assert_eq!(of("SSL", second), format!("Analyzer::ANALYZER_SSL1.5T{ends}1"));
        assert_eq!(of("DTLS", second), format!("Analyzer::ANALYZER_SSL1.5T{ends}1"));
        assert_eq!(of("SSL", ocsp), format!("Analyzer::ANALYZER_SSL1.5F{ends}ocsp"));
        assert_eq!(of("RDP", second), format!("Analyzer::ANALYZER_RDP1.5{ends}"));
        assert_eq!(of("KRB", second), format!("Analyzer::ANALYZER_KRB1.5T{ends}1"));
    }
}
