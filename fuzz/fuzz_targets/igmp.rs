//! IGMP messages.
#![no_main]

use gannet_wire::igmp::Message;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(message) = Message::parse(data) {
        for record in message.records {
            assert_eq!(record.sources.len() % 4, 0);
        }
    }
});
