//! Login sessions: lines and options of Telnet.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gannet_protocols::login::items(data);
});
