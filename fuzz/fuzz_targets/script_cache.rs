//! Any bytes behind the digest of a cache of scripts are read or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gannet_script::cache::decode_untrusted(data));
