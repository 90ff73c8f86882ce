//! IP packets, their transports and tunnels.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gannet_fuzz_support::ip(data));
