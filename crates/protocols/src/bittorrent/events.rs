//! Events of BitTorrent: of peers, and of trackers.

use gannet_event::Connection;
use gannet_event::Port;
use gannet_event::SetOf;
use gannet_event::TableOf;

use super::bencode::Entry;
use super::bencode::Peer;

/// Fields of HTTP by their names. As in Zeek, none are kept.
pub type Headers<'a> = TableOf<&'a [u8], &'a [u8]>;

gannet_event::events! {
    crate::events::module_of(crate::Tag::Bittorrent);

    /// A peer begins.
    pub struct BittorrentPeerHandshake<'a> = "bittorrent_peer_handshake", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Bits of extensions.
        reserved: &'a [u8] = "reserved",
        /// Hash of the description of the torrent.
        info_hash: &'a [u8] = "info_hash",
        /// The peer.
        peer_id: &'a [u8] = "peer_id",
    }

    /// A peer keeps the connection open.
    pub struct BittorrentPeerKeepAlive = "bittorrent_peer_keep_alive", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer stops sending blocks.
    pub struct BittorrentPeerChoke = "bittorrent_peer_choke", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer sends blocks on request.
    pub struct BittorrentPeerUnchoke = "bittorrent_peer_unchoke", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer wants blocks.
    pub struct BittorrentPeerInterested = "bittorrent_peer_interested", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A peer wants no blocks.
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

    /// A peer asks for a block.
    pub struct BittorrentPeerRequest = "bittorrent_peer_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        index: u32 = "index",
        /// First byte within the piece.
        begin: u32 = "begin",
        /// Number of bytes.
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
        /// First byte within the piece.
        begin: u32 = "begin",
        /// Number of bytes.
        piece_length: u32 = "piece_length",
    }

    /// A peer does not ask for a block any more.
    pub struct BittorrentPeerCancel = "bittorrent_peer_cancel", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Index of the piece.
        index: u32 = "index",
        /// First byte within the piece.
        begin: u32 = "begin",
        /// Number of bytes.
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

    /// A message of another kind.
    pub struct BittorrentPeerUnknown<'a> = "bittorrent_peer_unknown", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Its kind.
        message_id: u64 = "message_id",
        /// What follows that.
        data: &'a [u8] = "data",
    }

    /// Messages of a side end, since one of them is malformed.
    pub struct BittorrentPeerWeird<'a> = "bittorrent_peer_weird", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The fault.
        msg: &'a [u8] = "msg",
    }

    /// A client asks a tracker.
    pub struct BtTrackerRequest<'a> = "bt_tracker_request", opt_in {
        /// The connection.
        c: Connection = "c",
        /// What for.
        uri: &'a [u8] = "uri",
        /// Fields of the request; none are kept.
        headers: Headers<'a> = "headers",
    }

    /// A tracker answers.
    pub struct BtTrackerResponse<'a> = "bt_tracker_response", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Status of the response: 200.
        status: u64 = "status",
        /// Fields of the response; none are kept.
        headers: Headers<'a> = "headers",
        /// The peers.
        peers: SetOf<Peer> = "peers",
        /// Everything else that the dictionary has.
        benc: TableOf<&'a [u8], Entry<'a>> = "benc",
    }

    /// A tracker answers with another status than 200.
    pub struct BtTrackerResponseNotOk<'a> = "bt_tracker_response_not_ok", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Status of the response.
        status: u64 = "status",
        /// Fields of the response; none are kept.
        headers: Headers<'a> = "headers",
    }

    /// Something unexpected.
    pub struct BtTrackerWeird<'a> = "bt_tracker_weird", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// What.
        msg: &'a [u8] = "msg",
    }
}
