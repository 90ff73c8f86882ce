//! Snmp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::snmp::Message;

gannet_fuzz::protocol!(Snmp, Message::parse);
