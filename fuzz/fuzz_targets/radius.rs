//! Radius: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::radius::Message;

gannet_fuzz_support::protocol!(Radius, Message::parse);
