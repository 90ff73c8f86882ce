//! What built-in functions know of the traffic at hand: connections, files, the packet, and what they ask of the
//! analysis.

use std::collections::HashMap;
use std::rc::Rc;

use gannet_base::{ConnId, Proto, Uid};
use gannet_event::Command;

use crate::value::{Record, Value};

/// The traffic at hand. Empty where no packets are read.
#[derive(Default)]
pub struct Traffic {
    /// Whether packets are read.
    pub(crate) reads: bool,
    pub(crate) conns: HashMap<ConnId, Known>,
    /// Files by their ids.
    pub(crate) files: HashMap<Vec<u8>, (Uid, Rc<Record>)>,
    /// What is asked of the analysis, in order.
    pub(crate) commands: Vec<Command>,
    pub(crate) packet: Option<Packet>,
    /// Headers of the packet at hand, as `raw_pkt_hdr`.
    pub(crate) header: Value,
    /// Number of the packet at hand.
    pub(crate) number: u64,
}

/// A connection.
pub(crate) struct Known {
    pub(crate) record: Rc<Record>,
    pub(crate) uid: Uid,
    pub(crate) proto: Proto,
    pub(crate) ip_proto: u8,
    /// Seconds of silence after which it ends, where a script set them.
    pub(crate) timeout: Option<f64>,
    /// Thresholds of bytes and packets of both sides: originator's bytes and packets, then the responder's.
    pub(crate) thresholds: [u64; 4],
    pub(crate) duration: f64,
    /// Tags and numbers of analyzers that are known.
    pub(crate) analyzers: Vec<(Value, u64)>,
}

/// The packet at hand.
pub(crate) struct Packet {
    pub(crate) nanos: i64,
    pub(crate) data: Vec<u8>,
    pub(crate) len: u64,
    pub(crate) link_type: u64,
}

/// A certificate in DER form, as an opaque value holds it.
#[derive(Clone)]
pub struct Certificate(pub Vec<u8>);
