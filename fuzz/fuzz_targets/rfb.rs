//! Rfb: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::rfb::message;

gannet_fuzz_support::protocol!(Rfb, message::version, message::server_init);
