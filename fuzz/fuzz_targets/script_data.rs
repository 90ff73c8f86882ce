//! Data of stores is read from any bytes, and is the same after it was written and read again.
#![no_main]

use gannet_script::bif::read_and_write;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = read_and_write(data) {
        assert_eq!(read_and_write(&bytes).as_ref(), Some(&bytes));
    }
});
