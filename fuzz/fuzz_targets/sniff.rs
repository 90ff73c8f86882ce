//! Detection of file types by their first bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gannet_files::sniff::mime_type(data);
});
