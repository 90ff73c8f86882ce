//! Instruction selection: a graph to BPF.
//!
//! `emit` writes each block's own instructions in order; a register that already holds a value is
//! not loaded again. `share` merges blocks that compare the accumulator with the same number.
//! `layout` places the blocks and adds jumps.

mod emit;
mod layout;
mod share;

use crate::bpf::{self, Insn, MEMORY, Program};
use crate::ir::{BlockId, Graph, Step};
use emit::{Emit, Registers};
use share::share;

/// The program for a graph without sets, which keeps `snaplen` bytes of a matching packet.
///
/// # Errors
/// If the program is too large for BPF.
pub(crate) fn select(
    graph: &Graph,
    snaplen: u32,
    vars: u8,
    optimize: bool,
) -> Result<Program, String> {
    let plain = write(graph, &vec![false; graph.blocks.len()], snaplen, vars, optimize)?;
    let mut insns = plain;
    if optimize && let Some((graph, as_is)) = share(graph) {
        let shared = write(&graph, &as_is, snaplen, vars, true)?;
        if shared.len() < insns.len() {
            insns = shared;
        }
    }
    Program::new(insns).map_err(|e| e.to_string())
}

/// Generates instructions for a graph; blocks marked in `as_is` do not load the accumulator.
fn write(
    graph: &Graph,
    as_is: &[bool],
    snaplen: u32,
    vars: u8,
    optimize: bool,
) -> Result<Vec<Insn>, String> {
    let order = graph.order();
    let mut codes = codes(graph, as_is, &order, snaplen, vars, optimize)?;
    if optimize {
        codes = without_unread_stores(codes);
    }
    Ok(layout::layout(graph, &order, &codes, snaplen))
}

/// The instructions of all blocks; the last of a block jumps if the block has two targets.
#[derive(Debug, Default)]
struct Codes {
    insns: Vec<Insn>,
    /// The end of each block's instructions.
    ends: Vec<usize>,
}

impl Codes {
    fn iter(&self) -> impl DoubleEndedIterator<Item = &[Insn]> + ExactSizeIterator {
        let begin = |i: usize| i.checked_sub(1).map_or(0, |before| self.ends[before]);
        (0..self.ends.len()).map(move |i| &self.insns[begin(i)..self.ends[i]])
    }
}

fn codes(
    graph: &Graph,
    as_is: &[bool],
    order: &[BlockId],
    snaplen: u32,
    vars: u8,
    optimize: bool,
) -> Result<Codes, String> {
    let mut entry: Vec<Option<Registers>> = vec![None; graph.blocks.len()];
    let mut codes = Codes::default();
    for id in order {
        let block = &graph.blocks[*id];
        let held = if optimize { entry[*id].unwrap_or_default() } else { Registers::default() };
        let mut out = Emit::new(&graph.values, std::mem::take(&mut codes.insns), held, vars);
        match &block.step {
            Step::Return(verdict) => out.push(bpf::RET, if *verdict { snaplen } else { 0 }),
            Step::Set(var, value) => out.set(*var, *value)?,
            Step::Code(insns, k) => out.code(insns, *k),
            Step::Test(test) if as_is[*id] => out.compare(*test),
            Step::Test(test) => out.test(*test)?,
            Step::In(..) | Step::In6(..) => return Err("a set is left".into()),
        }
        let held;
        (codes.insns, held) = out.finish();
        codes.ends.push(codes.insns.len());
        if !matches!(block.step, Step::Return(_)) {
            for next in [block.yes, block.no] {
                let there = &mut entry[next];
                *there = Some(there.map_or(held, |h| h.meet(held)));
            }
        }
    }
    Ok(codes)
}

/// Removes stores to scratch words that are never read.
fn without_unread_stores(codes: Codes) -> Codes {
    let mut read = [false; MEMORY];
    let mut stores = false;
    for insn in &codes.insns {
        stores |= matches!(insn.code & 7, bpf::ST | bpf::STX);
        if matches!(insn.code & 7, bpf::LD | bpf::LDX) && insn.code & 0xe0 == bpf::MEM {
            read[insn.k as usize % MEMORY] = true;
        }
    }
    if !stores {
        return codes;
    }
    let mut out = Codes::default();
    for code in codes.iter() {
        // Instructions with internal jumps stay unchanged.
        let whole = code.iter().rev().skip(1).any(|i| i.code & 7 == bpf::JMP);
        let asked = |i: &&Insn| {
            whole || !matches!(i.code & 7, bpf::ST | bpf::STX) || read[i.k as usize % MEMORY]
        };
        out.insns.extend(code.iter().filter(asked));
        out.ends.push(out.insns.len());
    }
    out
}
