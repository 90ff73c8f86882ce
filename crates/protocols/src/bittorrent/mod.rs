//! BitTorrent (BEP 3): peers, and the HTTP side of trackers.
//!
//! Peers exchange pieces of files. Each direction begins with a [`Handshake`](message::Handshake), followed by
//! length-prefixed [`Message`](message::Message)s. [`Peer`] raises an event for each, and confirms the protocol at a
//! handshake.
//!
//! A tracker knows which peers have a file. A client sends an HTTP request; the response is a bencoded dictionary
//! ([`bencode`]), in which the peers are one string (BEP 23). [`Tracker`] raises an event for each request and response of
//! limited length.
//!
//! As in Zeek, these analyzers have no ports and no detection rules: only scripts and signatures start them. There is no log.

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

/// Analyzers and events of the protocols.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[
        Entry::new(Tag::Bittorrent, "BITTORRENT", "bittorrent"),
        Entry::new(Tag::BittorrentTracker, "BITTORRENTTRACKER", "bittorrenttracker"),
    ],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
