//! Headers of the HTTP handshake.

use gannet_log::Vector;

/// `Sec-WebSocket-*` headers of a request and its response.
#[derive(Debug, Default)]
pub struct Handshake {
    pub(super) key: Option<Vec<u8>>,
    pub(super) accept: Option<Vec<u8>>,
    pub(super) subprotocol: Option<Vec<u8>>,
    pub(super) client_protocols: Option<Vector<Vec<u8>>>,
    pub(super) client_extensions: Option<Vector<Vec<u8>>>,
    pub(super) server_extensions: Option<Vector<Vec<u8>>>,
}
