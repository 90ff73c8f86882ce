//! Dnp3Tcp: one conversation, and its parsers of messages.
#![no_main]

use gannet_base::Dir;
use gannet_protocols::dnp3::frame;
use gannet_protocols::dnp3::objects;

gannet_fuzz_support::protocol!(Dnp3Tcp, |data| {
    let request = objects::check(Dir::Orig, data).is_ok();
    (frame::blocks(data).count(), request, objects::check(Dir::Resp, data).is_ok())
});
