//! Engines that run programs, behind one trait, with equal verdicts.
//!
//! A [`Program`] defines the meaning of a filter; [`Interp`] executes it exactly like libpcap's
//! interpreter and is the reference for the others. An [`Engine`] runs on one packet
//! ([`Engine::run`]) or on many ([`Engine::select`]), passed as [`View`]s.
//!
//! ```text
//! Program ──▶ interp                                   instruction by instruction
//!    │ ──▶ graph (values instead of registers) ──▶ sets (trees of tests become tables)
//!    │                     ──▶ bounds (which lengths must be checked at all)
//!    │                     ──▶ jit, batch              machine code: a packet, a batch
//!    │ ──▶ ebpf ──▶ linux                              the kernel's
//!    │ ──▶ llvm                                      code of the system's LLVM
//!    └ ──▶ libpcap                                     bpf_filter of the system's library
//! ```
//!
//! The machine code of an expression skips the program: the compiler's graph becomes the engine's, and each long list
//! a table ([`Compiled::machine_code`](crate::Compiled::machine_code)). A graph is recovered from instructions only for
//! programs that were not compiled here.
//!
//! The features of this crate (`jit`: machine code; `foreign`: the kernel's engine and libpcap's;
//! `llvm`: LLVM's) and the system determine which engines are available: [`Kind::build`] returns
//! the reason for a missing one. [`best`] chooses the fastest.

#[cfg(feature = "jit")]
mod bounds;
pub mod ebpf;
pub mod foreign;
// Without machine code, only a part of it is used.
#[cfg_attr(not(feature = "jit"), allow(dead_code))]
mod graph;
mod interp;
#[cfg(feature = "jit")]
pub mod jit;
#[cfg(all(feature = "foreign", unix))]
pub mod libpcap;
#[cfg(all(feature = "foreign", target_os = "linux"))]
pub mod linux;
#[cfg(all(feature = "llvm", unix))]
pub mod llvm;
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

    /// Whether the engine supports this packet: the kernel accepts only packets that were captured
    /// whole.
    fn covers(&self, _packet: View<'_>) -> bool {
        true
    }

    /// Bytes of machine code, if the engine reports them.
    fn code_bytes(&self) -> Option<usize> {
        None
    }
}

/// The kinds of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Instruction by instruction, exactly libpcap's meaning.
    Interp,
    /// Machine code for a packet.
    Jit,
    /// Machine code for a batch of packets.
    Batch,
    /// The kernel's, attached to a socket.
    Linux,
    /// libpcap's `bpf_filter`.
    Libpcap,
    /// Machine code that LLVM makes.
    Llvm,
}

/// Why an engine cannot run a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub(crate) String);

impl Kind {
    /// All of them, the reference first.
    pub const ALL: [Self; 6] =
        [Self::Interp, Self::Jit, Self::Batch, Self::Linux, Self::Libpcap, Self::Llvm];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interp => "interp",
            Self::Jit => "jit",
            Self::Batch => "batch",
            Self::Linux => "linux",
            Self::Libpcap => "libpcap",
            Self::Llvm => "llvm",
        }
    }

    /// The cargo feature that it needs, if this build lacks it.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Self::Interp => None,
            Self::Jit | Self::Batch => (!cfg!(feature = "jit")).then_some("jit"),
            Self::Linux | Self::Libpcap => (!cfg!(feature = "foreign")).then_some("foreign"),
            Self::Llvm => (!cfg!(feature = "llvm")).then_some("llvm"),
        }
    }

    /// Prepares a program to run.
    ///
    /// # Errors
    /// If this engine is not available, or cannot run this program.
    pub fn build(self, program: &Program) -> Result<Box<dyn Engine>, Unavailable> {
        match self {
            Self::Interp => Ok(Box::new(Interp::new(program.clone()))),
            #[cfg(feature = "jit")]
            Self::Jit => Ok(Box::new(jit::Jit::new(program)?)),
            #[cfg(feature = "jit")]
            Self::Batch => Ok(Box::new(jit::Batch::new(program)?)),
            #[cfg(all(feature = "foreign", target_os = "linux"))]
            Self::Linux => Ok(Box::new(linux::Socket::new(program)?)),
            #[cfg(all(feature = "foreign", unix))]
            Self::Libpcap => Ok(Box::new(libpcap::Libpcap::new(program)?)),
            #[cfg(all(feature = "llvm", unix))]
            Self::Llvm => Ok(Box::new(llvm::Llvm::new(program)?)),
            #[allow(unreachable_patterns)]
            _ => Err(Unavailable(match self.feature() {
                Some(feature) => format!("this build is without the feature {feature}"),
                None => "this system does not have it".into(),
            })),
        }
    }
}

/// The fastest available engine for a program.
pub fn best(program: &Program) -> Box<dyn Engine> {
    Kind::Batch.build(program).unwrap_or_else(|_| Box::new(Interp::new(program.clone())))
}

#[cfg(test)]
#[cfg(feature = "jit")]
mod tests {
    use super::*;
    use crate::proof::{Expressions, Prober};
    use crate::{NoNames, Options, compile};

    /// Random filters of all link types, optimised and not, on packets that reach deep into the
    /// programs, truncated anywhere.
    #[test]
    fn all_engines_agree() {
        let mut expressions = Expressions::new(7);
        let (mut filters, mut tries, mut without_program) = (0, 0, 0);
        while filters < 150 {
            tries += 1;
            assert!(tries < 5_000, "hardly any random filter compiles");
            let (link, text) = expressions.filter();
            let optimize = tries % 2 == 0;
            let options = Options { optimize, ..Options::default() };
            let Ok(compiled) = compile(&text, link, &options, &NoNames) else { continue };
            filters += 1;
            let program = compiled.program();
            let mut prober = Prober::new(tries);
            let packets: Vec<_> = (0..60).map(|_| prober.packet(program, None)).collect();
            let mut views = Vec::new();
            for (packet, wire, _) in &packets {
                views.push(View::new(packet, *wire));
                views.extend((0..packet.len()).step_by(3).map(|n| View::new(&packet[..n], *wire)));
            }
            let interp = Interp::new(program.clone());
            let mut expected = Vec::new();
            interp.select(&views, &mut expected);
            if let Some(straight) = compiled.machine_code() {
                let mut hits = Vec::new();
                straight.select(&views, &mut hits);
                assert!(hits == expected, "from the graph: {text}\n{program}");
                for view in &views {
                    assert_eq!(straight.run(*view), interp.run(*view), "{text}\n{program}");
                }
                without_program += 1;
            }
            for kind in Kind::ALL {
                let Ok(engine) = kind.build(program) else { continue };
                let mut hits = Vec::new();
                engine.select(&views, &mut hits);
                for view in views.iter().filter(|v| engine.covers(**v)) {
                    let (is, right) = (engine.run(*view), interp.run(*view));
                    if kind == Kind::Linux {
                        assert_eq!(is == 0, right == 0, "{}: {text}\n{program}", kind.name());
                    } else {
                        assert_eq!(is, right, "{}: {text}\n{program}", kind.name());
                    }
                }
                if kind != Kind::Linux {
                    assert!(hits == expected, "{}: {text}\n{program}", kind.name());
                }
            }
        }
        assert!(without_program > 135, "{without_program} graphs");
    }
}
