//! The reader of packet indexes, with arbitrary contents.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gannet_index::exercise(bytes);
});
