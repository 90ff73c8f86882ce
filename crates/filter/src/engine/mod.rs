//! Engines that run programs, with one trait and equal verdicts.
//!
//! A [`Program`] defines the meaning of a filter; [`Interp`] executes it exactly like libpcap's
//! interpreter and is the reference for the others. An [`Engine`] runs on one packet
//! ([`Engine::run`]) or on many ([`Engine::select`]), passed as [`View`]s.
//!
//! ```text
//! Program ──▶ interp                                   instruction by instruction
//!    │ ──▶ graph (values instead of registers) ──▶ sets (trees of tests become tables)
//!    │                     ──▶ bounds (the length checks that are needed)
//!    │                     ──▶ jit, batch              machine code: one packet, a batch
//!    └ ──▶ ebpf                                        the kernel's instructions
//! ```
//!
//! The machine code of an expression skips the program: the compiler's graph becomes the engine's, and each long list
//! a table ([`Compiled::machine_code`](crate::Compiled::machine_code)). A graph is recovered from instructions only for
//! programs that were not compiled here.
//!
//! The feature `jit` enables machine code. [`best`] chooses the fastest engine of a build. Other
//! engines for comparison (the kernel's, libpcap's, LLVM's) are in the crate `gannet-comparators`.

#[cfg(feature = "jit")]
mod bounds;
pub mod ebpf;
pub mod foreign;
// Without machine code, only a part of this module is used.
#[cfg_attr(not(feature = "jit"), allow(dead_code))]
mod graph;
mod interp;
#[cfg(feature = "jit")]
pub mod jit;
#[cfg_attr(not(feature = "jit"), allow(dead_code))]
mod sets;
mod trace;
mod view;
mod walk;

use crate::Program;

pub use interp::Interp;
pub use trace::{Step, Trace, trace};
pub use view::View;
pub use walk::Walk;

/// Runs one program.
pub trait Engine: Send + Sync {
    /// The number of bytes of a packet to keep; 0 if it does not match.
    fn run(&self, packet: View<'_>) -> u32;

    /// Replaces `hits` by the indices of the matching packets, in order.
    fn select(&self, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        let matching = (0..).zip(packets).filter(|(_, p)| self.run(**p) != 0);
        hits.extend(matching.map(|(at, _)| at));
    }

    /// Whether the engine supports this packet: the kernel accepts only completely captured
    /// packets.
    fn covers(&self, _packet: View<'_>) -> bool {
        true
    }

    /// Bytes of machine code, if the engine reports them.
    fn code_bytes(&self) -> Option<usize> {
        None
    }
}

/// The reason why an engine cannot run a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub(crate) String);

impl Unavailable {
    /// The reason in words.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The fastest available engine for a program.
pub fn best(program: &Program) -> Box<dyn Engine> {
    #[cfg(feature = "jit")]
    if let Ok(batch) = jit::Batch::new(program) {
        return Box::new(batch);
    }
    Box::new(Interp::new(program.clone()))
}
