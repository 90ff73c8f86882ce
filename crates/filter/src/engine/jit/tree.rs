//! Code with the branches of the graph, for filters of many blocks.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value as Clif, types};

use super::emit::{Emit, Sees};
use crate::engine::bounds::Bounds;
use crate::engine::graph::{BlockId, End, Fault, Graph, Node, Value};

pub(super) fn emit(graph: &Graph, bounds: &Bounds, emit: &mut Emit<'_, '_>) {
    let reachable = graph.reachable();
    let blocks: Vec<_> = graph.blocks.iter().map(|_| emit.b.create_block()).collect();
    let mut tree = Tree { above: dominators(graph), at: 0, seen: HashMap::new() };
    for (at, params) in graph.params.iter().enumerate() {
        tree.at = at;
        for param in params {
            let value = emit.b.append_block_param(blocks[at], types::I32);
            tree.learn((*param, false), value);
        }
    }
    let reject = emit.b.create_block();
    emit.b.ins().jump(blocks[0], &[]);
    for at in (0..graph.blocks.len()).filter(|at| reachable[*at]) {
        emit.b.switch_to_block(blocks[at]);
        tree.at = at;
        if bounds.need[at] == u64::MAX {
            emit.reject();
            continue;
        }
        for (base, end) in &bounds.checks[at] {
            let end = match base {
                None => emit.long(*end),
                Some(base) => {
                    let base = tree.value(emit, graph, *base);
                    let base = emit.b.ins().uextend(types::I64, base);
                    emit.b.ins().iadd_imm_u(base, end.cast_signed())
                }
            };
            let enough = emit.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, emit.len);
            let next = emit.b.create_block();
            emit.b.ins().brif(enough, next, &[], reject, &[]);
            emit.b.switch_to_block(next);
        }
        let block = &graph.blocks[at];
        for fault in &block.faults {
            let Fault::Zero(divisor) = fault else { continue };
            let divisor = tree.value(emit, graph, *divisor);
            let next = emit.b.create_block();
            emit.b.ins().brif(divisor, next, &[], reject, &[]);
            emit.b.switch_to_block(next);
        }
        let along = |to: BlockId, tree: &mut Tree, emit: &mut Emit<'_, '_>| {
            let mut values = Vec::new();
            for param in &graph.params[to] {
                let value = graph.argument(at, *param);
                values.push(BlockArg::Value(tree.value(emit, graph, value)));
            }
            values
        };
        match block.end {
            End::Return(value) => {
                if let Some(verdict) = graph.constant(value) {
                    emit.conclude(verdict);
                    continue;
                }
                let value = tree.value(emit, graph, value);
                emit.finish(value);
            }
            End::Jump(to) => {
                let args = along(to, &mut tree, emit);
                emit.b.ins().jump(blocks[to], &args);
            }
            End::Test { op, left, right, yes, no } => {
                let (a, b) = (along(yes, &mut tree, emit), along(no, &mut tree, emit));
                let holds = tree.test(emit, graph, op, left, right);
                emit.b.ins().brif(holds, blocks[yes], &a, blocks[no], &b);
            }
            End::In { set, value, yes, no } => {
                let (a, b) = (along(yes, &mut tree, emit), along(no, &mut tree, emit));
                let number = tree.value(emit, graph, value);
                let inside = emit.is_in(&graph.sets[set], number, graph.most(value));
                emit.b.ins().brif(inside, blocks[yes], &a, blocks[no], &b);
            }
        }
    }
    // Blocks that nothing leads to must end, too.
    for at in (0..graph.blocks.len()).filter(|at| !reachable[*at]) {
        emit.b.switch_to_block(blocks[at]);
        emit.reject();
    }
    emit.b.switch_to_block(reject);
    emit.reject();
}

/// For each block the intervals of a walk over the tree of dominators: one that lies within
/// another is of a block that the other dominates.
fn dominators(graph: &Graph) -> Vec<(usize, usize)> {
    let count = graph.blocks.len();
    let reachable = graph.reachable();
    // The nearest dominator: known for all before a block, as graphs have no cycles.
    let mut above: Vec<Option<BlockId>> = vec![None; count];
    let mut depth = vec![0_usize; count];
    for at in (0..count).filter(|at| reachable[*at]) {
        if let Some(up) = above[at] {
            depth[at] = depth[up] + 1;
        }
        for to in graph.blocks[at].end.targets() {
            let mut a = at;
            let Some(mut b) = above[to] else {
                above[to] = Some(at);
                continue;
            };
            while a != b {
                if depth[a] < depth[b] {
                    (a, b) = (b, a);
                }
                let Some(up) = above[a] else { break };
                a = up;
            }
            above[to] = Some(a);
        }
    }
    let mut below: Vec<Vec<BlockId>> = vec![Vec::new(); count];
    for at in (0..count).filter(|at| reachable[*at]) {
        if let Some(up) = above[at] {
            below[up].push(at);
        }
    }
    let mut spans = vec![(0, 0); count];
    let mut clock = 0;
    let mut stack = vec![(0, false)];
    while let Some((at, left)) = stack.pop() {
        clock += 1;
        if left {
            spans[at].1 = clock;
            continue;
        }
        spans[at].0 = clock;
        stack.push((at, true));
        stack.extend(below[at].iter().map(|b| (*b, false)));
    }
    spans
}

struct Tree {
    above: Vec<(usize, usize)>,
    at: BlockId,
    /// Where values were emitted.
    seen: HashMap<(Value, bool), Vec<(BlockId, Clif)>>,
}

impl Sees for Tree {
    fn address(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, load: Value) -> (Clif, i32) {
        let Node::Load { base, offset, .. } = graph.node(load) else {
            return (emit.zeros(), 0);
        };
        // Checked in this block or before: `bounds`.
        let from = match base {
            None => emit.data,
            Some(base) => {
                let base = self.value(emit, graph, base);
                let base = emit.b.ins().uextend(types::I64, base);
                emit.b.ins().iadd(emit.data, base)
            }
        };
        match i32::try_from(offset) {
            Ok(offset) => (from, offset),
            Err(_) => (emit.b.ins().iadd_imm_u(from, i64::from(offset)), 0),
        }
    }

    fn divisor(&mut self, _: &mut Emit<'_, '_>, divisor: Clif) -> Clif {
        divisor
    }

    fn known(&self, key: (Value, bool)) -> Option<Clif> {
        let (from, to) = self.above[self.at];
        let dominates = |(at, _): &&(BlockId, Clif)| {
            let (begin, end) = self.above[*at];
            begin <= from && to <= end
        };
        self.seen.get(&key)?.iter().rev().find(dominates).map(|(_, value)| *value)
    }

    fn learn(&mut self, key: (Value, bool), value: Clif) {
        self.seen.entry(key).or_default().push((self.at, value));
    }
}
