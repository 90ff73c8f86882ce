//! Ntp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::ntp::message::Message;

gannet_fuzz_support::protocol!(Ntp, Message::parse);
