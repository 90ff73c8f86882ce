//! Syslog: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::syslog::Message;

gannet_fuzz_support::protocol!(Syslog, Message::parse);
