//! State of the exchanges of a connection until their rows are written.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Set;
use gannet_log::Vector;

use crate::websocket::Handshake;

/// An optional text.
pub(super) type Text = Option<Box<[u8]>>;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Number of its request, from 1.
    pub(super) number: u64,
    /// Number of the exchange within the connection (`trans_depth`), which identifies it.
    pub(super) depth: u64,
    pub(super) host: Text,
    pub(super) uri: Text,
    pub(super) user_agent: Text,
    /// The status code of the last response.
    pub(super) code: Option<u16>,
    /// Number of entities that each side has started.
    pub(super) entities: [u64; 2],
    /// The current entity, with its file name if known.
    pub(super) entity: Option<Text>,
    pub(super) range_request: bool,
    pub(super) rows: Rows,
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pub(super) pending: Vec<Exchange>,
    /// Numbers of the current request and response, from 1.
    pub(super) request: u64,
    pub(super) response: u64,
    pub(super) depth: u64,
    /// `depth` of the exchange of the last event, which may be complete already.
    pub(super) current: u64,
    /// Headers of a WebSocket handshake.
    pub(super) handshake: Option<Box<Handshake>>,
}

/// The files of one side.
#[derive(Debug)]
pub(super) struct FileLists {
    pub(super) fuids: Vector<Uid>,
    pub(super) names: Vector<Vec<u8>>,
    pub(super) types: Vector<&'static str>,
}

/// The fields of the row of one exchange.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) ts: Time,
    pub(super) method: Text,
    pub(super) referrer: Text,
    pub(super) origin: Text,
    pub(super) username: Text,
    pub(super) version: Option<[u8; 3]>,
    pub(super) body_len: [u64; 2],
    pub(super) status: Option<(u16, Box<[u8]>)>,
    pub(super) info: Option<(u16, Box<[u8]>)>,
    pub(super) proxied: Set<Vec<u8>>,
    pub(super) files: [Option<Box<FileLists>>; 2],
}
