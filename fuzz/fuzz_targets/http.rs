//! Http: one conversation, and its parsers of messages.
#![no_main]

use gannet_protocols::http::message;

gannet_fuzz_support::protocol!(
    Http,
    |data| message::unescape(data, None),
    |data| message::number(data, 16),
    message::content_range,
    message::disposition_filename,
    message::content_type_name
);
