//! Whole captures, from the file header to the last row.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gannet_fuzz_support::capture(data);
});
