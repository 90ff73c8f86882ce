//! What is known of the exchanges of a connection, until their rows are written.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Set;
use gannet_log::Vector;

use crate::websocket::Handshake;

/// A text, if it is known.
pub(super) type Text = Option<Box<[u8]>>;

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Place in the order of requests.
    pub(super) number: u64,
    /// Which one of the connection: also its name here, for no other has the same.
    pub(super) depth: u64,
    pub(super) host: Text,
    pub(super) uri: Text,
    pub(super) user_agent: Text,
    /// The status code of the last response.
    pub(super) code: Option<u16>,
    /// Entities begun by each side.
    pub(super) entities: [u64; 2],
    /// An entity is open, with its file name if stated.
    pub(super) entity: Option<Text>,
    pub(super) range_request: bool,
    pub(super) rows: Rows,
}

/// The exchanges of one connection.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pub(super) pending: Vec<Exchange>,
    /// Number of the current request and response; 1 is the first.
    pub(super) request: u64,
    pub(super) response: u64,
    pub(super) depth: u64,
    /// The exchange that the last event was about; it may be over already.
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

/// What the row of one exchange shows.
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
