//! Irc: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::irc::Dcc;
use gannet_protocols::irc::Message;

gannet_fuzz_support::protocol!(Irc, Message::parse, Dcc::parse);
