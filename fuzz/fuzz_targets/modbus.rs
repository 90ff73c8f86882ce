//! Modbus: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::modbus::message::Header;

gannet_fuzz::protocol!(Modbus, Header::parse);
