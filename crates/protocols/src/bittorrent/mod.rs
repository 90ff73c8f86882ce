//! BitTorrent (BEP 3): peers, and the HTTP side of trackers.
//!
//! Peers exchange pieces of files. Each direction begins with a [`Handshake`](message::Handshake), which
//! [`Message`](message::Message)s with a length follow. [`Peer`] raises an event for each, and confirms the protocol at a
//! handshake.
//!
//! A tracker knows which peers have a file. A client asks with a request of HTTP; the response is a dictionary in bencode
//! ([`bencode`]), in which the peers are one string (BEP 23). [`Tracker`] reads requests and responses that are short, as they
//! are, and reports each.
//!
//! Zeek puts these analyzers on no port, and its scripts detect them nowhere: scripts and signatures start them. There is no log.

pub mod bencode;
pub mod events;
mod line;
pub mod message;
mod peer;
mod tracker;

pub use peer::Peer;
pub use tracker::Tracker;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Bittorrent, "BITTORRENT", "bittorrent"),
        Entry::new(Tag::BittorrentTracker, "BITTORRENTTRACKER", "bittorrenttracker"),
    ],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
