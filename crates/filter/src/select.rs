//! A graph to instructions of BPF.
//!
//! `emit` writes each block's own instructions, in the order in which blocks can be reached: a
//! register that still holds what is wanted is not loaded again. `share` lets blocks that compare
//! whatever is in the accumulator with the same number be one. `layout` puts the blocks behind each
//! other and joins them by jumps.

mod emit;
mod layout;
mod share;

use crate::bpf::{self, Insn, MEMORY, Program};
use crate::ir::{BlockId, Graph, Step};
use emit::{Emit, Held};
use share::share;

/// The program for a graph without sets, which keeps so many bytes of a packet that matches.
///
/// # Errors
/// What is too large for BPF.
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

/// Writes a graph, some blocks of which take the accumulator as it is.
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
        drop_stores(&mut codes);
    }
    Ok(layout::layout(graph, &order, &codes, snaplen))
}

/// Each block's own instructions, the last of which jumps if the block leads to two others.
fn codes(
    graph: &Graph,
    as_is: &[bool],
    order: &[BlockId],
    snaplen: u32,
    vars: u8,
    optimize: bool,
) -> Result<Vec<Vec<Insn>>, String> {
    let mut entry: Vec<Option<Held>> = vec![None; graph.blocks.len()];
    let mut codes = Vec::with_capacity(order.len());
    for id in order {
        let block = &graph.blocks[*id];
        let held = if optimize { entry[*id].unwrap_or_default() } else { Held::default() };
        let mut out = Emit::new(&graph.values, held, vars);
        match &block.step {
            Step::Return(verdict) => out.push(bpf::RET, if *verdict { snaplen } else { 0 }),
            Step::Set(var, value) => out.set(*var, *value)?,
            Step::Code(insns, k) => out.code(insns, *k),
            Step::Test(test) if as_is[*id] => out.compare(*test),
            Step::Test(test) => out.test(*test)?,
            Step::In(..) | Step::In6(..) => return Err("a set is left".into()),
        }
        let (code, held) = out.finish();
        if !matches!(block.step, Step::Return(_)) {
            for next in [block.yes, block.no] {
                let there = &mut entry[next];
                *there = Some(there.map_or(held, |h| h.meet(held)));
            }
        }
        codes.push(code);
    }
    Ok(codes)
}

/// Leaves out stores to scratch words that nothing reads.
fn drop_stores(codes: &mut [Vec<Insn>]) {
    let mut read = [false; MEMORY];
    for insn in codes.iter().flatten() {
        if matches!(insn.code & 7, bpf::LD | bpf::LDX) && insn.code & 0xe0 == bpf::MEM {
            read[insn.k as usize % MEMORY] = true;
        }
    }
    for code in codes {
        // Instructions with jumps of their own stay as they are.
        if code.iter().rev().skip(1).any(|i| i.code & 7 == bpf::JMP) {
            continue;
        }
        code.retain(|i| !matches!(i.code & 7, bpf::ST | bpf::STX) || read[i.k as usize % MEMORY]);
    }
}
