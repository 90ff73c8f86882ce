//! The formatter preserves the tokens of any text that it formats, and is idempotent.
#![no_main]

use gannet_script::tools::format;
use gannet_script::tools::tokens;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = format::format(data) else { return };
    let texts = |source: &[u8]| {
        let pieces = tokens::pieces(source).unwrap_or_default();
        pieces.iter().map(|piece| piece.text(source).to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(texts(data), texts(&text));
    assert_eq!(format::format(&text).as_ref(), Ok(&text));
});
