//! X.509 certificates and their parts.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gannet_files::x509::parse(data);
});
