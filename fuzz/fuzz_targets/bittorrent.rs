//! BitTorrent's trackers: one conversation, and its parser of bencode.
#![no_main]

use gannet_protocols::bittorrent::bencode;

gannet_fuzz_support::started_protocols!(BittorrentTracker, bencode::parse);
