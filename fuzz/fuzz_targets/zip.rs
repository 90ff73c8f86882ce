//! ZIP archives, in pieces whose size the first byte selects.
#![no_main]

use gannet_files::zip::Parser;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((size, data)) = data.split_first() else { return };
    let mut parser = Parser::new();
    for part in data.chunks(usize::from(*size).max(1)) {
        parser.push(part);
        loop {
            match parser.next_item() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
