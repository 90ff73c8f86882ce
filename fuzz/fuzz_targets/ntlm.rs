//! NTLM messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gannet_protocols::ntlm::message::parse(data);
});
