//! What is known of a connection, and its record, which lives as long as the connection.

use std::rc::Rc;

use gannet_base::{ConnId, Proto, Uid};
use gannet_event::ConnState;
use hashbrown::HashMap;

use crate::value::{Record, Value};

/// Connections by their ends and by the VLAN tags that distinguish them, 0 where these do not.
pub(crate) type Conns = HashMap<Key, Box<Known>>;

/// What a connection is stored by.
pub(crate) type Key = (ConnId, u32);

/// A connection.
pub(crate) struct Known {
    /// Its record, once a script may see it.
    pub(super) record: Option<Rc<Record>>,
    /// How it was when an event mentioned it last, while it has no record; or how it was at the end of its last packet,
    /// where scripts look at it again: its record is not yet up to date.
    pub(crate) latest: Option<Box<ConnState>>,
    /// Numbers of the analyzers of its transport and of its sizes, where scripts may name them.
    pub(crate) of_no_protocol: Option<[u64; 2]>,
    /// Analyzers whose numbers are known.
    pub(crate) analyzers: Vec<Numbered>,
    facts: Option<Box<Facts>>,
    pub(crate) uid: Uid,
    pub(crate) proto: Proto,
    pub(crate) ip_proto: u8,
    /// Whether its packets are reported, because scripts look at it again.
    pub(crate) is_watched: bool,
    /// The capture ended, and the connection with it: it is known until the run ends, and has no analyzers any more.
    pub(crate) is_over: bool,
}

/// What scripts asked or set of a connection: of few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Seconds of silence after which it ends, where a script set them.
    pub(crate) timeout: Option<f64>,
    /// Thresholds of bytes and packets of both sides: originator's bytes and packets, then the responder's.
    pub(crate) thresholds: [u64; 4],
    pub(crate) duration: f64,
    /// The sequence numbers behind what each side sent over TCP, where scripts ask for them.
    pub(crate) seqs: [u32; 2],
    /// The state of its login, by Zeek's number, where scripts ask for it.
    pub(crate) login: Option<u8>,
}

/// An analyzer of a connection and its number.
#[derive(Clone)]
pub(crate) struct Numbered {
    pub(crate) tag: Value,
    pub(crate) number: u64,
    /// What names of its events begin with.
    pub(crate) prefix: Rc<str>,
    /// Whether a script disabled it: it is looked up no more.
    pub(crate) is_disabled: bool,
}

impl Known {
    /// A connection as an event shows it.
    pub(super) fn new(
        state: &ConnState,
        record: Option<Rc<Record>>,
        latest: Option<Box<ConnState>>,
    ) -> Self {
        Self {
            record,
            latest,
            of_no_protocol: None,
            analyzers: Vec::new(),
            facts: None,
            uid: state.uid,
            proto: state.proto,
            ip_proto: state.ip_proto,
            is_watched: false,
            is_over: false,
        }
    }

    /// What scripts asked or set of it, if they did.
    pub(super) fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }

    /// The same, to change it.
    pub(super) fn facts_mut(&mut self) -> &mut Facts {
        self.facts.get_or_insert_default()
    }
}
