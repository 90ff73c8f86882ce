//! Stored state of a connection, and its record, which live as long as the connection.

use std::rc::Rc;

use gannet_base::{ConnId, Proto, Uid};
use gannet_event::ConnState;
use hashbrown::HashMap;

use crate::value::{Record, Value};

/// Stored connections by endpoints and the VLAN tags that distinguish them, 0 if these do not.
pub(crate) type Conns = HashMap<Key, Box<Known>>;

/// Endpoints and VLAN tags.
pub(crate) type Key = (ConnId, u32);

/// A stored connection.
pub(crate) struct Known {
    /// Its record, once a script may read it.
    pub(super) record: Option<Rc<Record>>,
    /// Its state at the latest event that mentioned it, while it has no record; or at the end of its last packet, if scripts
    /// may look it up again: its record is not yet refreshed.
    pub(crate) latest: Option<Box<ConnState>>,
    /// Ids of its transport analyzer and of the analyzer of its sizes, if scripts may refer to them.
    pub(crate) transport_analyzers: Option<[u64; 2]>,
    /// Analyzers whose ids are known.
    pub(crate) analyzers: Vec<KnownAnalyzer>,
    facts: Option<Box<Facts>>,
    pub(crate) uid: Uid,
    pub(crate) proto: Proto,
    pub(crate) ip_proto: u8,
    /// Whether the analysis reports its state after each packet, because scripts may look it up again.
    pub(crate) is_watched: bool,
    /// Set when the capture, and so the connection, has ended: it is stored until the run ends, without analyzers.
    pub(crate) is_over: bool,
}

/// What scripts requested for a connection; few connections have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Inactivity timeout in seconds, if a script set it.
    pub(crate) timeout: Option<f64>,
    /// Thresholds of bytes and packets: originator's bytes and packets, then the responder's.
    pub(crate) thresholds: [u64; 4],
    pub(crate) duration: f64,
    /// The next TCP sequence number of each side, if scripts query them.
    pub(crate) seqs: [u32; 2],
    /// The state of its login, by Zeek's number, if scripts query it.
    pub(crate) login: Option<u8>,
}

/// An analyzer of a connection and its id.
#[derive(Clone)]
pub(crate) struct KnownAnalyzer {
    pub(crate) tag: Value,
    pub(crate) number: u64,
    /// Prefix of the names of its events.
    pub(crate) prefix: Rc<str>,
    /// Whether a script disabled it: lookups do not find it.
    pub(crate) is_disabled: bool,
}

impl Known {
    /// A connection with the state that an event shows.
    pub(super) fn new(
        state: &ConnState,
        record: Option<Rc<Record>>,
        latest: Option<Box<ConnState>>,
    ) -> Self {
        Self {
            record,
            latest,
            transport_analyzers: None,
            analyzers: Vec::new(),
            facts: None,
            uid: state.uid,
            proto: state.proto,
            ip_proto: state.ip_proto,
            is_watched: false,
            is_over: false,
        }
    }

    /// What scripts requested, if anything.
    pub(super) fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }

    /// Like [`facts`](Self::facts), for changes.
    pub(super) fn facts_mut(&mut self) -> &mut Facts {
        self.facts.get_or_insert_default()
    }
}
