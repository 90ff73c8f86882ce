//! The interpreter as an engine.

use super::{Engine, View};
use crate::Program;

/// Runs a program instruction by instruction; see [`Program::run`].
#[derive(Clone, Debug)]
pub struct Interp {
    program: Program,
}

impl Interp {
    /// An engine for a program.
    pub fn new(program: Program) -> Self {
        Self { program }
    }
}

impl Engine for Interp {
    fn run(&self, packet: View<'_>) -> u32 {
        self.program.run(packet.data(), packet.wire_len())
    }
}
