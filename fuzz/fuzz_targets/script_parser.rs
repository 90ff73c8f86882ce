//! The script parser and checker process arbitrary text, including the evaluation of constants and
//! conditions.
#![no_main]

use gannet_script::parse::Input;
use gannet_script::parse::Parser;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut fuzzed = gannet_fuzz_support::script::Fuzzed::default();
    let input = Input::Text { name: "fuzzed".to_owned(), code: data.to_vec() };
    let _ = Parser::new(&mut fuzzed.program, &mut fuzzed.machine, Vec::new()).run([input]);
});
