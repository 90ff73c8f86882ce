//! A filter expression in the first line, run on the bytes after it.
#![no_main]

use gannet_filter::Filter;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let text = parts.next().and_then(|t| std::str::from_utf8(t).ok()).unwrap_or_default();
    if let Ok(filter) = Filter::parse(text) {
        let frame = parts.next().unwrap_or_default();
        filter.matches(1, frame, frame.len() as u32);
    }
});
