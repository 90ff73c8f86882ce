//! Ntp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::ntp::message::Message;

gannet_fuzz::protocol!(Ntp, Message::parse);
