//! TFTP: one conversation, and its parser of messages.
#![no_main]

use gannet_protocols::tftp::Message;

gannet_fuzz_support::protocol!(Tftp, Message::parse);
