//! All engines of filters by name, and those of others that ours are compared with: the kernel's, libpcap's, LLVM's.
//!
//! [`Kind`] lists the engines. Which of them a build has depends on its features (`jit`: our machine code; `foreign`:
//! the kernel's engine and libpcap's; `llvm`: LLVM's) and on the system, whose libraries are looked for when an engine
//! is asked for: [`Kind::build`] returns the reason for a missing one. Analysis uses none of this:
//! [`gannet_filter::engine::best`] chooses.
//!
//! ```
//! use gannet_comparators::Kind;
//! use gannet_filter::engine::{Engine, View};
//! use gannet_filter::{NoNames, Options, compile};
//!
//! let compiled = compile("ip", 1, &Options::default(), &NoNames)?;
//! let mut frame = [0; 60];
//! frame[12] = 8;
//! for kind in Kind::ALL {
//!     match kind.build(compiled.program()) {
//!         Ok(engine) => assert_ne!(engine.run(View::new(&frame, 60)), 0),
//!         Err(reason) => println!("{}: {reason}", kind.name()),
//!     }
//! }
//! # Ok::<_, gannet_filter::Error>(())
//! ```

#[cfg(all(feature = "foreign", unix))]
pub mod libpcap;
#[cfg(all(feature = "foreign", target_os = "linux"))]
pub mod linux;
#[cfg(all(feature = "llvm", unix))]
pub mod llvm;

use gannet_filter::Program;
use gannet_filter::engine::Engine;
use gannet_filter::engine::Interp;
use gannet_filter::engine::Unavailable;
#[cfg(feature = "jit")]
use gannet_filter::engine::jit;

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
            _ => Err(Unavailable::new(match self.feature() {
                Some(feature) => format!("this build is without the feature {feature}"),
                None => "this system does not have it".into(),
            })),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "jit")]
mod tests {
    use super::*;
    use gannet_filter::Insn;
    use gannet_filter::engine::View;
    use gannet_filter::opcode;
    use gannet_filter::proof::{Expressions, Prober};
    use gannet_filter::{NoNames, Options, compile};

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

    /// libpcap's interpreter has no limit, and the kernel takes no such program.
    #[test]
    fn a_program_without_end_rejects() {
        let insn = |code, k| Insn { code, jt: 0, jf: 0, k };
        let back = insn(opcode::JMP | opcode::JA, u32::MAX);
        let program = Program::new(vec![back, insn(opcode::RET, 1)]).unwrap();
        let view = View::new(&[0; 60], 60);
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Libpcap) {
            let Ok(engine) = kind.build(&program) else { continue };
            let mut hits = vec![7];
            engine.select(&[view], &mut hits);
            assert_eq!((engine.run(view), &hits[..]), (0, &[][..]), "{}", kind.name());
        }
    }
}
