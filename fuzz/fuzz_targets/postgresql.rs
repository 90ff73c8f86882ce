//! Postgresql: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::postgresql::message::Backend;
use gannet_protocols::postgresql::message::FirstMessage;
use gannet_protocols::postgresql::message::Frontend;

gannet_fuzz_support::protocol!(
    Postgresql,
    |data| FirstMessage::parse(data).is_ok(),
    |data| Frontend::parse(data, false).is_ok(),
    |data| Backend::parse(data, false).is_ok(),
    |data| Backend::parse(data, true).is_ok(),
);
