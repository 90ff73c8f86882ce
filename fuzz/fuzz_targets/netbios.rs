//! NetBIOS: one conversation, and its parsers of datagrams and names.
#![no_main]

use gannet_protocols::netbios::message::Datagram;
use gannet_protocols::netbios::message::decode_name;

gannet_fuzz_support::started_protocols!(
    Netbios,
    |data| Datagram::parse(data).map(|datagram| datagram.is_truncated()),
    decode_name,
);
