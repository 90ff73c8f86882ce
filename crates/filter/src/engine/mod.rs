//! What runs programs: engines behind one trait, the same verdict from all.
//!
//! A [`Program`] says what a filter means and [`Interp`] takes it word for word: it is libpcap's
//! interpreter, and the measure of the others. An [`Engine`] is asked about one packet ([`Engine::run`])
//! or about many at once ([`Engine::select`]), which are handed over as [`View`]s.
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
//! Filters with long lists skip the program: the compiler's graph becomes the engine's, and each list
//! a table.
//!
//! Which of them are there is decided by the features of this crate (`jit`: machine code; `foreign`:
//! the kernel's engine and libpcap's; `llvm`: the one of LLVM) and by what the system permits: [`Kind::build`] gives the
//! reason where one is not. [`best`] is for those who only want verdicts.

#[cfg(feature = "jit")]
mod bounds;
pub mod ebpf;
pub mod foreign;
// Without machine code, little of it is asked for.
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
    /// How many bytes of a packet to keep; 0 if it does not match.
    fn run(&self, packet: View<'_>) -> u32;

    /// Replaces `hits` by the places of the packets that match, in their order.
    fn select(&self, packets: &[View<'_>], hits: &mut Vec<u32>) {
        hits.clear();
        let matching = (0..).zip(packets).filter(|(_, p)| self.run(**p) != 0);
        hits.extend(matching.map(|(at, _)| at));
    }

    /// Whether the engine can tell of such a packet at all: the kernel knows no packets that were
    /// captured in part.
    fn covers(&self, _packet: View<'_>) -> bool {
        true
    }

    /// Bytes of machine code, where the engine makes any and can tell.
    fn code_bytes(&self) -> Option<usize> {
        None
    }
}

/// The engines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Instruction by instruction, libpcap's meaning to the letter.
    Interp,
    /// Machine code for a packet.
    Jit,
    /// Machine code for a batch of packets.
    Batch,
    /// The kernel's, behind a socket.
    Linux,
    /// libpcap's `bpf_filter`.
    Libpcap,
    /// Machine code that LLVM makes.
    Llvm,
}

/// Why an engine cannot run a program here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub(crate) String);

impl Kind {
    /// All of them, the measure of the others first.
    pub const ALL: [Self; 6] =
        [Self::Interp, Self::Jit, Self::Batch, Self::Linux, Self::Libpcap, Self::Llvm];

    /// Its name, as commands take and print it.
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

    /// The cargo feature that would bring it, where this build is without that.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Self::Interp => None,
            Self::Jit | Self::Batch => (!cfg!(feature = "jit")).then_some("jit"),
            Self::Linux | Self::Libpcap => (!cfg!(feature = "foreign")).then_some("foreign"),
            Self::Llvm => (!cfg!(feature = "llvm")).then_some("llvm"),
        }
    }

    /// Makes a program ready to run.
    ///
    /// # Errors
    /// Why this engine is not there, or cannot run this program.
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

/// The fastest engine that can run a program here.
pub fn best(program: &Program) -> Box<dyn Engine> {
    Kind::Batch.build(program).unwrap_or_else(|_| Box::new(Interp::new(program.clone())))
}

#[cfg(test)]
#[cfg(feature = "jit")]
mod tests {
    use super::*;
    use crate::proof::{Expressions, Prober};
    use crate::{NoNames, Options, compile};

    /// Random filters of all link types, optimised and not, on packets that lead into their
    /// depths, cut anywhere.
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
            let graph = compiled.graph().cloned().map(crate::optimize::expand_words);
            if let Some(straight) = graph.and_then(|g| jit::Batch::of_ir(&g, 262_144).ok()) {
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
        assert!(without_program > 75, "{without_program} graphs");
    }
}
