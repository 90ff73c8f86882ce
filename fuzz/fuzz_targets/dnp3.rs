//! Dnp3Tcp: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::dnp3::frame;

gannet_fuzz::protocol!(Dnp3Tcp, |data| frame::blocks(data).count());
