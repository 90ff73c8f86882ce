//! What built-in functions know of the current traffic: connections, files, the packet, and what they ask of the
//! analysis.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use gannet_base::{ConnId, Uid};
use gannet_event::{Command, FilePart, FileState};
// Packets fill these tables: they are hashed with a random key of the process.
use hashbrown::HashMap;

use super::conn_plan::ConnPlan;
use super::known::Conns;
use super::plan::IdPlan;
use crate::ids::TypeId;
use crate::support::order::{SaltedHashes, uid_text};
use crate::value::{Record, Value};

/// How packets of a capture are delayed.
pub(crate) struct Pace {
    /// When the first packet came.
    pub(super) began: std::time::Instant,
    /// Its time.
    pub(super) first: f64,
    /// How many times faster than they were captured packets come.
    pub(super) speed: f64,
}

/// The current traffic. Empty without packets.
#[derive(Default)]
pub struct Traffic {
    /// Whether packets of a capture are read.
    pub(crate) reads: bool,
    /// Whether packets of an interface are read.
    pub(crate) is_live: bool,
    /// Connections.
    pub(crate) conns: Conns,
    /// How records of connections are made, once there was a connection.
    pub(super) conn_plan: Option<Rc<ConnPlan>>,
    /// What names of events begin with that come from an analyzer of this tag.
    pub(super) prefixes: HashMap<(TypeId, i64), Rc<str>>,
    /// Files by their ids.
    pub(crate) files: HashMap<Vec<u8>, (Uid, Rc<Record>)>,
    /// What scripts match against signatures themselves, in order.
    pub(crate) matches: Vec<super::requests::Match>,
    /// What is asked of the analysis, in order.
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
    /// Where all packets are written to (`-w`).
    pub(crate) write: Option<String>,
    /// Captures that are written.
    pub(crate) dumps: super::packets::Dumps,
    /// Capture filters.
    pub(crate) filters: super::packets::Filters,
    /// Names of the events that the analysis raises.
    pub(super) raised: std::collections::HashSet<&'static str>,
    /// What scripts may do, once that was asked for; `None` where it cannot be said.
    pub(super) reached: OnceCell<Option<super::steering::Reached>>,
    /// Whether scripts have functions that discard packets, once that was asked for.
    pub(super) has_discarders: OnceCell<bool>,
    /// How a `conn_id` is read, once one was.
    pub(super) id_plan: RefCell<Option<Rc<IdPlan>>>,
    /// Records that events share.
    pub(super) repeated: RefCell<super::repeated::Repeated>,
    /// Filters of addresses.
    pub(crate) address_filters: super::decide::AddressFilters,
    /// Texts of logins.
    pub(crate) login_texts: super::decide::LoginTexts,
    /// What scripts want of the contents of files.
    pub(crate) listening: super::listening::Listening,
    /// Analyzers that scripts added to files.
    pub(crate) file_analyzers: super::file_analyzers::FileAnalyzers,
    /// Files whose analysis scripts ended: nothing more is reported of them.
    pub(crate) stopped: std::collections::HashSet<Uid>,
    /// Files to which scripts write streams.
    pub(crate) recordings: super::recordings::Recordings,
    /// Certificates that scripts know already.
    pub(crate) certificate_cache: super::certificate_cache::CertificateCache,
    /// What statistics count.
    pub(crate) counts: super::counts::Counts,
    /// When the first packet came, and its time, where packets are read as fast as they were captured.
    pub(crate) pace: Option<Pace>,
    /// Scripts disabled the analyzer that counts packets and bytes: connections do not show them.
    pub(crate) without_sizes: bool,
    /// Whether scripts skip the first bytes of packets.
    pub(crate) skips_bytes: bool,
    /// Whether scripts registered other ports of tunnels than the usual ones.
    pub(crate) has_own_tunnels: bool,
    /// A script changed how the parts of a file are put in order.
    pub(crate) reassembles_otherwise: bool,
    /// Analyzers of files that scripts disabled.
    pub(crate) disabled_files: std::collections::HashSet<String>,
    /// Options of the current TCP segment, where scripts look at them.
    pub(crate) tcp_options: Vec<u8>,
    /// Options of the Geneve headers of the current packet, the outermost first, where scripts look at them.
    pub(crate) geneve_options: Vec<Vec<u8>>,
    /// The PPPoE session of the current packet, where scripts look at it.
    pub(crate) pppoe_session: Option<u64>,
    /// Bytes of packets so far.
    pub(crate) bytes: u64,
    /// Names that Zeek gives connections and files under seeds.
    pub(crate) names: Option<Names>,
}

impl Traffic {
    /// A string of an event; the name of a connection is Zeek's where that is known.
    pub(crate) fn named(&self, text: &[u8]) -> Value {
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

/// Zeek's names of connections and files.
pub(crate) struct Names {
    salted: SaltedHashes,
    /// The handle of the file that begins next.
    pub(crate) handle: Option<Vec<u8>>,
    /// Names of connections, by those that the analysis gives them.
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

    /// The name of a file that an event mentioned before.
    pub(crate) fn known_file(&self, fuid: Uid) -> Option<Value> {
        self.files.get(&fuid).cloned()
    }

    /// The name of a file, from its handle; `None` where it has none.
    pub(crate) fn file(&mut self, state: &FileState, start: Option<f64>) -> Option<Value> {
        if let Some(known) = self.files.get(&state.fuid) {
            return Some(known.clone());
        }
        let handle = match &*state.source {
            _ if state.part != FilePart::Unnamed => part_handle(state, start?)?,
            // Of the entry of an archive: the handle of the next file is not its own.
            _ if state.parent.is_some() => return None,
            // Of a file that scripts read.
            source if state.conns.is_empty() => source.as_bytes().to_vec(),
            _ => self.handle.take()?,
        };
        let name = Value::string(uid_text(b"F", self.salted.hash128(&handle), 96));
        self.files.insert(state.fuid, name.clone());
        Some(name)
    }
}

/// The handle of a file that its analyzer numbers: Zeek's for certificates and what comes with them.
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

/// A time with as many digits as it has, six at the most.
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

/// A certificate in DER form, as an opaque value holds it.
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
