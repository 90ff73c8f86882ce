//! Ssh: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::ssh::message::KexInit;
use gannet_protocols::ssh::message::Packet;
use gannet_protocols::ssh::message::Packet1;

gannet_fuzz_support::protocol!(Ssh, Packet::parse, Packet1::parse, KexInit::parse);
