//! Mqtt: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::mqtt::message::Packet;

gannet_fuzz_support::protocol!(Mqtt, Packet::parse);
