//! Dhcp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::dhcp::message::Message;

gannet_fuzz_support::protocol!(Dhcp, |data| Message::parse(data, &mut 0).is_ok());
