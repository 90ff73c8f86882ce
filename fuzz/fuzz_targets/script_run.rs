//! Scripts that the checker accepts run without a panic.
#![no_main]

use gannet_script::parse::Input;
use gannet_script::parse::Parser;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut fuzzed = gannet_fuzz_support::script::Fuzzed::default();
    let input = Input::Text { name: "fuzzed".to_owned(), code: data.to_vec() };
    let parsed = Parser::new(&mut fuzzed.program, &mut fuzzed.machine, Vec::new()).run([input]);
    if parsed.is_ok() && fuzzed.program.diagnostics.errors == 0 {
        fuzzed.machine.with(&mut fuzzed.program).run();
    }
});
