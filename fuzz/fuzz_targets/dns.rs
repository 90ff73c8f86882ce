//! Dns: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::dns::message::Header;

gannet_fuzz_support::protocol!(Dns, Header::parse);
