//! Events of BitTorrent's trackers.

use gannet_event::Connection;
use gannet_event::SetOf;
use gannet_event::TableOf;

use super::bencode::Entry;
use super::bencode::Peer;

/// Fields of HTTP by their names. As in Zeek, none are kept.
pub type Headers<'a> = TableOf<&'a [u8], &'a [u8]>;

gannet_event::events! {
    crate::events::module_of(crate::Tag::BittorrentTracker);

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
