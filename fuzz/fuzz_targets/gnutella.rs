//! Gnutella: one conversation, and its parser of headers.
#![no_main]

use gannet_protocols::gnutella::message::Header;

gannet_fuzz_support::started_protocols!(Gnutella, Header::parse);
