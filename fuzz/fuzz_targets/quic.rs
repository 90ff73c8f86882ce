//! Quic: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::quic::message;
use gannet_protocols::support::Bytes;

gannet_fuzz_support::protocol!(Quic, |data| message::packet(data, 8).is_ok(), |data| {
    let mut frames = Bytes(data);
    while let Ok(Some(_)) = message::frame(&mut frames) {}
});
