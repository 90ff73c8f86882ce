//! The reader of packet indexes: whatever stands in one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gannet_index::exercise(bytes);
});
