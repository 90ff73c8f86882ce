//! Certificates and what they are made of.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gannet_files::x509::parse(data);
});
