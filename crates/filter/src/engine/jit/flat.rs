//! Branch-free code: every test is evaluated, and the verdict is selected.
//!
//! The bytes required by the root are checked by the only branch. Loads that may be beyond the
//! packet read zeros instead, and their blocks select a rejection.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as Clif, types};

use super::emit::{AvailableValues, Emit, MAX_SPAN, Seen};
use crate::engine::bounds::{Bounds, Reach, reaches};
use crate::engine::graph::{End, Fault, Graph, Node, Value};

/// Whether a graph can be compiled to branch-free code.
pub(super) fn can(graph: &Graph, bounds: &Bounds) -> bool {
    let reachable = graph.reachable();
    let live = graph.blocks.iter().zip(&reachable).filter(|(_, r)| **r);
    let short = |r: &Reach| r.1 <= MAX_SPAN as u64;
    let within = bounds.checks.iter().zip(&reachable).skip(1).filter(|(_, r)| **r);
    graph.params.iter().all(Vec::is_empty) && live.clone().all(|(b, _)| match b.end {
        End::Return(v) => graph.constant(v).is_some(),
        _ => true,
    }) && live.clone().all(|(b, _)| reaches(graph, b).iter().all(short))
        && within.flat_map(|(c, _)| c).all(short)
        // A load with a loaded offset that may be missing: rare, and left to branches.
        && live.flat_map(|(b, _)| &b.faults).all(|f| !matches!(f, Fault::Zero(_)))
}

pub(super) fn emit(graph: &Graph, bounds: &Bounds, emit: &mut Emit<'_, '_>) {
    let need = bounds.need[0];
    if need == u64::MAX {
        return emit.reject();
    }
    if need > 0 {
        let (long, short) = (emit.b.create_block(), emit.b.create_block());
        let enough = emit.b.ins().icmp_imm_u(
            IntCC::UnsignedGreaterThanOrEqual,
            emit.len,
            need.cast_signed(),
        );
        emit.b.ins().brif(enough, long, &[], short, &[]);
        emit.b.switch_to_block(short);
        emit.reject();
        emit.b.switch_to_block(long);
    }
    let mut flat = Flat {
        need,
        guards: guards(graph, bounds),
        addresses: HashMap::new(),
        oks: HashMap::new(),
        seen: Seen::default(),
    };
    let reachable = graph.reachable();
    let mut verdicts: Vec<Option<Clif>> = vec![None; graph.blocks.len()];
    let zero = emit.word(0);
    for at in (0..graph.blocks.len()).rev().filter(|at| reachable[*at]) {
        let block = &graph.blocks[at];
        let of = |to: usize| verdicts[to].unwrap_or(zero);
        let mut verdict = match block.end {
            End::Return(value) => flat.value(emit, graph, value),
            End::Jump(to) => of(to),
            End::Test { op, left, right, yes, no } => {
                let holds = flat.test(emit, graph, op, left, right);
                emit.b.ins().select(holds, of(yes), of(no))
            }
            End::In { set, value, yes, no } => {
                let number = flat.value(emit, graph, value);
                let inside = emit.is_in(graph, set, number, graph.max_value(value));
                emit.b.ins().select(inside, of(yes), of(no))
            }
        };
        for reach in &bounds.checks[at] {
            if reach.0.is_none() && reach.1 <= need {
                continue;
            }
            let ok = flat.ok(emit, graph, *reach);
            verdict = emit.b.ins().select(ok, verdict, zero);
        }
        verdicts[at] = Some(verdict);
    }
    let verdict = verdicts[0].unwrap_or(zero);
    emit.finish(verdict);
}

/// For each load, a reach that is known wherever the load is used.
fn guards(graph: &Graph, bounds: &Bounds) -> HashMap<Value, Reach> {
    let mut guards: HashMap<Value, Reach> = HashMap::new();
    let reachable = graph.reachable();
    for (at, block) in graph.blocks.iter().enumerate().filter(|(at, _)| reachable[*at]) {
        let reaches = reaches(graph, block);
        for fault in &block.faults {
            let Fault::Load(load) = *fault else { continue };
            let Node::Load { size, base, offset } = graph.node(load) else { continue };
            let end = u64::from(offset) + u64::from(size);
            let widest = reaches.iter().chain(&bounds.known[at]).filter(|r| r.0 == base);
            let here = (base, widest.map(|r| r.1).max().unwrap_or(end).min(MAX_SPAN as u64));
            let guard = guards.entry(load).or_insert(here);
            guard.1 = guard.1.min(here.1).max(end);
        }
    }
    guards
}

struct Flat {
    /// Bytes known to be present.
    need: u64,
    guards: HashMap<Value, Reach>,
    /// Addresses to load from, by required reach.
    addresses: HashMap<Reach, Clif>,
    oks: HashMap<Reach, Clif>,
    seen: Seen,
}

impl Flat {
    /// Whether the packet has the bytes of a reach.
    fn ok(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, reach: Reach) -> Clif {
        if let Some(ok) = self.oks.get(&reach) {
            return *ok;
        }
        let end = match reach.0 {
            None => emit.long(reach.1),
            Some(base) => {
                let base = self.value(emit, graph, base);
                let base = emit.b.ins().uextend(types::I64, base);
                emit.b.ins().iadd_imm_u(base, reach.1.cast_signed())
            }
        };
        let ok = emit.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, emit.len);
        self.oks.insert(reach, ok);
        ok
    }
}

impl AvailableValues for Flat {
    fn address(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, load: Value) -> (Clif, i32) {
        let Node::Load { size, base, offset } = graph.node(load) else {
            return (emit.zeros(), 0);
        };
        let end = u64::from(offset) + u64::from(size);
        if base.map_or(0, |b| u64::from(graph.max_value(b))) + end <= self.need {
            let from = match base {
                None => emit.data,
                Some(base) => {
                    let base = self.value(emit, graph, base);
                    let base = emit.b.ins().uextend(types::I64, base);
                    emit.b.ins().iadd(emit.data, base)
                }
            };
            return (from, offset.cast_signed());
        }
        // A load that no block needs is unused: its own end guards it.
        let reach = self.guards.get(&load).copied().unwrap_or((base, end));
        let address = match self.addresses.get(&reach) {
            Some(address) => *address,
            None => {
                let ok = self.ok(emit, graph, reach);
                let from = match base {
                    None => emit.data,
                    Some(base) => {
                        let base = self.value(emit, graph, base);
                        let base = emit.b.ins().uextend(types::I64, base);
                        emit.b.ins().iadd(emit.data, base)
                    }
                };
                let zeros = emit.zeros();
                let address = emit.b.ins().select(ok, from, zeros);
                self.addresses.insert(reach, address);
                address
            }
        };
        // `can` checked that this is within `MAX_SPAN`: so it is in the packet or in the zeros.
        (address, offset.cast_signed())
    }

    fn divisor(&mut self, emit: &mut Emit<'_, '_>, divisor: Clif) -> Clif {
        // Programs that may divide by zero are not compiled to branch-free code.
        let one = emit.word(1);
        let is_zero = emit.b.ins().icmp_imm_u(IntCC::Equal, divisor, 0);
        emit.b.ins().select(is_zero, one, divisor)
    }

    fn known(&self, key: (Value, bool)) -> Option<Clif> {
        self.seen.find(key)
    }

    fn learn(&mut self, key: (Value, bool), value: Clif) {
        self.seen.keep(key, value);
    }
}
