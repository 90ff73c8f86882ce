//! The script lexer reads arbitrary bytes to their end.
#![no_main]

use gannet_script::lexer::Lexer;
use gannet_script::lexer::Token;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut lexer = Lexer::new(data.into());
    let mut end = 0;
    loop {
        let lexed = lexer.next_token();
        if lexed.token == Token::End {
            break;
        }
        // Each token except the end has at least one byte, so there are no more tokens than bytes.
        assert!(lexed.end > end && lexed.start >= end && lexed.end as usize <= data.len());
        end = lexed.end;
    }
});
