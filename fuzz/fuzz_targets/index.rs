//! The reader of packet indexes: whatever is in one.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gannet_index::exercise(bytes);
});
