//! Broker data are read from arbitrary bytes, and are unchanged after being written and read again.
#![no_main]

use gannet_script::bif::read_and_write;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = read_and_write(data) {
        assert_eq!(read_and_write(&bytes).as_ref(), Some(&bytes));
    }
});
