//! Snmp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::snmp::Message;

gannet_fuzz_support::protocol!(Snmp, Message::parse);
