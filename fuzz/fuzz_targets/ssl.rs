//! Ssl: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::ssl::message::ClientHello;
use gannet_protocols::ssl::message::ServerHello;
use gannet_protocols::ssl::message::certificates;

gannet_fuzz_support::protocol!(
    Ssl,
    |data| ClientHello::parse(data, |_| false).is_ok(),
    ServerHello::parse,
    certificates
);
