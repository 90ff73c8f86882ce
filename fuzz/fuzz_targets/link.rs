//! Frames of any link type (the first two bytes), down to the transport.
#![no_main]

use gannet_wire::Network;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((link_type, data)) = data.split_first_chunk() else { return };
    let len = data.len() as u32;
    if let Ok(frame) = gannet_wire::link(u16::from_be_bytes(*link_type), data, len) {
        frame.subframes().for_each(drop);
        if let Network::Ip(packet) = frame.network {
            gannet_fuzz_support::ip(packet);
        }
    }
});
