//! The HTTP side of BitTorrent's trackers (BEP 3): which peers have a file.
//!
//! A client asks with a request of HTTP; the response is a dictionary in bencode ([`bencode`]), in which the peers are one string
//! (BEP 23). [`Tracker`] reads requests and responses that are short, as they are, and reports each.
//!
//! Zeek puts this analyzer on no port, and its scripts detect it nowhere: scripts and signatures start it. There is no log.

pub mod bencode;
pub mod events;
mod line;
mod tracker;

pub use tracker::Tracker;

use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// What the rest of gannet knows of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::BittorrentTracker, "BITTORRENTTRACKER", "bittorrenttracker")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};
