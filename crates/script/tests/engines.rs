//! The engines agree: random programs that type-check have the same output and messages in the interpreter and as machine code.
#![cfg(feature = "jit")]

mod printed;
mod programs;

use std::io::Write;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::jit::Engine;
use gannet_script::parse::{Input, Parser};
use gannet_script::program::Program;
use gannet_script::vm::Machine;

use printed::Printed;

/// Output and messages together, in order, and the exit status; `None` if the program is invalid.
fn run(code: &str, engine: Engine, heat: u32) -> Option<(String, i32)> {
    let printed = Printed::default();
    let mut reports = printed.clone();
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        let mut line = diagnostic.line();
        line.push(b'\n');
        assert!(reports.write_all(&line).is_ok());
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    let mut machine = Machine::new();
    machine.set_output(Box::new(printed.clone()));
    let input = Input::Text { name: "random.zeek".to_owned(), code: code.as_bytes().to_vec() };
    let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
    if parsed.is_err() || program.diagnostics.errors > 0 {
        return None;
    }
    machine.set_heat(heat);
    assert_eq!(machine.set_engine(engine), Ok(()));
    let status = machine.with(&mut program).run();
    machine.flush();
    let text = String::from_utf8_lossy(&printed.0.borrow()).into_owned();
    Some((text, status))
}

/// Compares the engines on the programs of these seeds.
fn compare(seeds: std::ops::Range<u64>) {
    // Nested calls need a stack of the command's size.
    let thread = std::thread::Builder::new().stack_size(1 << 28).spawn(move || {
        let mut right = 0;
        for seed in seeds.clone() {
            let code = programs::program(seed);
            let Some(expected) = run(&code, Engine::Interp, 1) else { continue };
            right += 1;
            for (engine, heat) in [(Engine::Jit, 1), (Engine::Jit, 3), (Engine::Verify, 1)] {
                let found = run(&code, engine, heat);
                assert_eq!(Some(&expected), found.as_ref(), "seed {seed}, {engine:?}:\n{code}");
            }
        }
        let all = seeds.end - seeds.start;
        assert!(right * 4 >= all * 3, "{right} of {all} programs type-check");
    });
    let Ok(thread) = thread else { return };
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn random_programs_run_alike() {
    compare(0..150);
}

#[test]
#[ignore = "takes long: as many as a release is tested with"]
fn many_random_programs_run_alike() {
    let from = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000_000);
    let n: u64 = std::env::var("PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    compare(from..from + n);
}
