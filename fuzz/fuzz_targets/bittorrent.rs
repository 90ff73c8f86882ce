//! BitTorrent: one conversation of peers or with a tracker, and the parsers of handshakes, messages and bencode.
#![no_main]

use gannet_protocols::bittorrent::bencode;
use gannet_protocols::bittorrent::message::Handshake;
use gannet_protocols::bittorrent::message::Message;

gannet_fuzz_support::started_protocols!(
    BittorrentTracker Bittorrent,
    bencode::parse,
    Handshake::parse,
    |data: &[u8]| Message::parse(data, data.len() as u32).is_ok(),
);
