//! Script caches with a valid digest and arbitrary contents are read or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gannet_script::cache::decode_untrusted(data));
