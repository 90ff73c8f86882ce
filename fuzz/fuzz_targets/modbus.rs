//! Modbus: one conversation, and its parsers of messages.
#![no_main]

use gannet_base::Dir;
use gannet_protocols::modbus::message;
use gannet_protocols::modbus::message::Header;

gannet_fuzz_support::protocol!(Modbus, |data: &[u8]| {
    let (function, body) = data.split_first()?;
    let bodies = [Dir::Orig, Dir::Resp].map(|from| message::check(from, *function, body).is_ok());
    Some((Header::parse(data), bodies))
});
