//! An interpreter for fuzzed scripts: diagnostics and output are discarded, and nothing outside the
//! process is accessed.

use std::time::Duration;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::program::Program;
use gannet_script::vm::Machine;
use gannet_script::vm::budget::Budget;

/// A program and its interpreter.
pub struct Fuzzed {
    /// The program.
    pub program: Program,
    /// Its interpreter, in a sandbox.
    pub machine: Machine,
}

impl Default for Fuzzed {
    fn default() -> Self {
        let diagnostics = Diagnostics::new(Box::new(|_, _| ()));
        let program = Program { diagnostics, ..Program::default() };
        let mut machine = Machine::new();
        machine.set_sandbox(true);
        machine.set_output(Box::new(std::io::sink()));
        // An endless handler is an error of the script, not a hang of the interpreter.
        let time = Some(Duration::from_millis(500));
        machine.set_budget(Some(Budget { time, memory: Some(1 << 29) }));
        Self { program, machine }
    }
}
