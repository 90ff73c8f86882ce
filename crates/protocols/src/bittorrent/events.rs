//! Events of BitTorrent: of peers, and of trackers.

use gannet_event::Connection;
use gannet_event::Port;
use gannet_event::SetOf;
use gannet_event::TableOf;

use super::bencode::Entry;
use super::bencode::Peer;

/// Header fields by name. As in Zeek, the table is always empty.
pub type Headers<'a> = TableOf<&'a [u8], &'a [u8]>;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Bittorrent);

    /// A peer sends a handshake.
    pub struct BittorrentPeerHandshake<'a> = "bittorrent_peer_handshake", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The reserved bytes, whose bits announce extensions.
        reserved: &'a [u8] = "reserved",
        /// SHA-1 hash of the info dictionary, which identifies the torrent.
        info_hash: &'a [u8] = "info_hash",
        /// Identifier of the peer.
        peer_id: &'a [u8] = "peer_id",
    }

    /// A peer sends a keep-alive message.
    pub struct BittorrentPeerKeepAlive = "bittorrent_peer_keep_alive", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer chokes the other: it does not answer requests for blocks.
    pub struct BittorrentPeerChoke = "bittorrent_peer_choke", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer unchokes the other: it answers requests for blocks.
    pub struct BittorrentPeerUnchoke = "bittorrent_peer_unchoke", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer is interested in blocks of the other.
    pub struct BittorrentPeerInterested = "bittorrent_peer_interested", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer is not interested in blocks of the other.
    pub struct BittorrentPeerNotInterested = "bittorrent_peer_not_interested", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer has a piece.
    pub struct BittorrentPeerHave = "bittorrent_peer_have", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        piece_index: u32 = "piece_index",
    }

    /// A peer lists its pieces.
    pub struct BittorrentPeerBitfield<'a> = "bittorrent_peer_bitfield", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// A bit for each piece.
        bitfield: &'a [u8] = "bitfield",
    }

    /// A peer requests a block.
    pub struct BittorrentPeerRequest = "bittorrent_peer_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        index: u32 = "index",
        /// Offset of the block within the piece, in bytes.
        begin: u32 = "begin",
        /// Length of the block, in bytes.
        length: u32 = "length",
    }

    /// A peer sends a block.
    pub struct BittorrentPeerPiece = "bittorrent_peer_piece", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        index: u32 = "index",
        /// Offset of the block within the piece, in bytes.
        begin: u32 = "begin",
        /// Length of the block, in bytes.
        piece_length: u32 = "piece_length",
    }

    /// A peer cancels a request for a block.
    pub struct BittorrentPeerCancel = "bittorrent_peer_cancel", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        index: u32 = "index",
        /// Offset of the block within the piece, in bytes.
        begin: u32 = "begin",
        /// Length of the block, in bytes.
        length: u32 = "length",
    }

    /// A peer has a node of the distributed hash table (BEP 5).
    pub struct BittorrentPeerPort = "bittorrent_peer_port", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Port of the node.
        listen_port: Port = "listen_port",
    }

    /// A peer sends a message of an unknown type.
    pub struct BittorrentPeerUnknown<'a> = "bittorrent_peer_unknown", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Type of the message.
        message_id: u64 = "message_id",
        /// Payload after the type.
        data: &'a [u8] = "data",
    }

    /// A message is malformed; no more messages of this side are analyzed.
    pub struct BittorrentPeerWeird<'a> = "bittorrent_peer_weird", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Description of the error.
        msg: &'a [u8] = "msg",
    }

    /// A client sends a request to a tracker.
    pub struct BtTrackerRequest<'a> = "bt_tracker_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Requested URI.
        uri: &'a [u8] = "uri",
        /// Header fields; always empty.
        headers: Headers<'a> = "headers",
    }

    /// A tracker sends a response with status 200.
    pub struct BtTrackerResponse<'a> = "bt_tracker_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Status of the response: 200.
        status: u64 = "status",
        /// Header fields; always empty.
        headers: Headers<'a> = "headers",
        /// The peers.
        peers: SetOf<Peer> = "peers",
        /// All other entries of the dictionary.
        benc: TableOf<&'a [u8], Entry<'a>> = "benc",
    }

    /// A tracker sends a response with a status other than 200.
    pub struct BtTrackerResponseNotOk<'a> = "bt_tracker_response_not_ok", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Status of the response.
        status: u64 = "status",
        /// Header fields; always empty.
        headers: Headers<'a> = "headers",
    }

    /// A client sends unexpected data after a request.
    pub struct BtTrackerWeird<'a> = "bt_tracker_weird", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Description, with the data.
        msg: &'a [u8] = "msg",
    }
}
