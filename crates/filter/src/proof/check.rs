//! Comparing every pass with its input.

use super::{Prober, Random};
use crate::bpf::Program;
use crate::compile::REJECTS_ALL;
use crate::ir::Graph;
use crate::names::Resolver;
use crate::{Dialect, Options, compile};

/// Two stages that disagree on a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{before} returns {before_matches}, {after} the opposite, of {} bytes ({wire} on the wire) {packet:02x?}", packet.len())]
pub struct Disagreement {
    /// The stage before.
    pub before: &'static str,
    /// The stage after it.
    pub after: &'static str,
    /// Whether the packet matches in the stage before.
    pub before_matches: bool,
    /// The captured bytes of the packet.
    pub packet: Vec<u8>,
    /// Its length on the wire.
    pub wire: u32,
}

/// An executable stage.
enum Stage {
    Graph(Graph),
    Program(Program),
}

impl Stage {
    fn run(&self, data: &[u8], wire: u32) -> bool {
        match self {
            Self::Graph(graph) => graph.run(data, wire),
            Self::Program(program) => program.run(data, wire) != 0,
        }
    }
}

/// Compiles an expression and compares its stages on `rounds` generated packets, each truncated to
/// every length that makes a difference. `samples` are packets to start from. Returns the number of
/// runs compared; `None` if the expression does not compile.
///
/// # Errors
/// The first disagreement.
pub fn check(
    text: &str,
    link_type: u16,
    names: &dyn Resolver,
    rounds: usize,
    seed: u64,
    samples: &[Vec<u8>],
) -> Result<Option<usize>, Disagreement> {
    check_as(Dialect::Libpcap, text, link_type, names, rounds, seed, samples)
}

/// Like [`check()`], for an expression in a dialect.
///
/// # Errors
/// The first disagreement.
pub fn check_as(
    dialect: Dialect,
    text: &str,
    link_type: u16,
    names: &dyn Resolver,
    rounds: usize,
    seed: u64,
    samples: &[Vec<u8>],
) -> Result<Option<usize>, Disagreement> {
    let netmask = Some(0xffff_ff00);
    let options = Options { optimize: false, netmask, dialect, ..Options::default() };
    let optimizing = Options { optimize: true, ..options.clone() };
    let Ok(compiled) = compile(text, link_type, &options, names) else { return Ok(None) };
    let plain = compiled.program().clone();
    let mut stages = vec![("the program as written", Stage::Program(plain.clone()))];
    let mut nothing_matches = false;
    match compile(text, link_type, &optimizing, names) {
        Ok(optimized) => {
            stages.extend(optimized.stages_to_check());
            stages.push(("the program", Stage::Program(optimized.program().clone())));
        }
        Err(error) => {
            nothing_matches = error.message() == REJECTS_ALL;
            let lowered = compiled.lowered().map(Stage::Graph);
            stages.extend(lowered.map(|l| ("the graph as written", l)));
        }
    }
    let mut prober = Prober::new(seed);
    let mut random = Random::new(seed);
    let mut runs = 0;
    for _ in 0..rounds {
        let sample = samples.get(random.below(samples.len())).map(Vec::as_slice);
        let (data, wire, reach) = prober.packet(&plain, sample);
        for length in (0..=reach).chain([data.len()]) {
            let data = &data[..length];
            let before_matches = plain.run(data, wire) != 0;
            runs += stages.len();
            for pair in stages.windows(2) {
                let [(before, _), (after, stage)] = pair else { continue };
                if stage.run(data, wire) != before_matches || nothing_matches && before_matches {
                    let packet = data.to_vec();
                    return Err(Disagreement { before, after, before_matches, packet, wire });
                }
            }
        }
    }
    Ok(Some(runs))
}

impl crate::Compiled {
    fn stages_to_check(&self) -> Vec<(&'static str, Stage)> {
        let passes = self.passes().into_iter();
        let mut out: Vec<_> = passes.map(|(name, graph)| (name, Stage::Graph(graph))).collect();
        let unshared = self.unshared().ok();
        out.extend(unshared.map(|p| ("the program without shared loads", Stage::Program(p))));
        out
    }
}
