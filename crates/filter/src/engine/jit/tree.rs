//! Code with the branches of the graph, for filters of many blocks.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block as ClifBlock, BlockArg, InstBuilder, Value as Clif, types};

use super::emit::{Emit, Sees};
use super::join::{self, Join};
use crate::engine::bounds::Bounds;
use crate::engine::graph::{BlockId, End, Fault, Graph, Node, Value};

pub(super) fn emit(graph: &Graph, bounds: &Bounds, emit: &mut Emit<'_, '_>) {
    let reachable = graph.reachable();
    let blocks: Vec<_> = graph.blocks.iter().map(|_| emit.b.create_block()).collect();
    let joins: Vec<Option<Join>> = (0..graph.blocks.len())
        .map(|at| if reachable[at] { join::find(graph, bounds, at) } else { None })
        .collect();
    let above = dominators(graph, &joins);
    let mut tree = Tree { above, at: 0, seen: HashMap::new(), log: Vec::new() };
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
            let enough = tree.reaches(emit, graph, *base, *end);
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
                let Some(join) = &joins[at] else {
                    emit.b.ins().brif(holds, blocks[yes], &a, blocks[no], &b);
                    continue;
                };
                // What is emitted behind these checks is seen only there.
                let mark = tree.log.len();
                if !join.checks.is_empty() {
                    let (long, short) = (emit.b.create_block(), emit.b.create_block());
                    let mut enough = None;
                    for (base, end) in &join.checks {
                        let here = tree.reaches(emit, graph, *base, *end);
                        enough = Some(match enough {
                            Some(before) => emit.b.ins().band(before, here),
                            None => here,
                        });
                    }
                    if let Some(enough) = enough {
                        emit.b.ins().brif(enough, long, &[], short, &[]);
                    }
                    emit.b.switch_to_block(short);
                    emit.b.ins().brif(holds, blocks[yes], &a, blocks[no], &b);
                    emit.b.switch_to_block(long);
                }
                tree.joined(emit, graph, at, holds, join, &blocks);
                if !join.checks.is_empty() {
                    tree.forget(mark);
                }
            }
            End::In { set, value, yes, no } => {
                let (a, b) = (along(yes, &mut tree, emit), along(no, &mut tree, emit));
                let number = tree.value(emit, graph, value);
                let inside = emit.is_in(graph, set, number, graph.most(value));
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
fn dominators(graph: &Graph, joins: &[Option<Join>]) -> Vec<(usize, usize)> {
    let count = graph.blocks.len();
    let reachable = graph.reachable();
    // The nearest dominator: known for all before a block, as graphs have no cycles.
    let mut above: Vec<Option<BlockId>> = vec![None; count];
    let mut depth = vec![0_usize; count];
    for at in (0..count).filter(|at| reachable[*at]) {
        if let Some(up) = above[at] {
            depth[at] = depth[up] + 1;
        }
        let past = joins[at].as_ref().map(|j| j.next);
        for to in graph.blocks[at].end.targets().chain(past) {
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
    /// What was emitted, in order.
    log: Vec<(Value, bool)>,
}

impl Tree {
    /// Whether the packet reaches as far.
    fn reaches(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        base: Option<Value>,
        end: u64,
    ) -> Clif {
        let end = match base {
            None => emit.long(end),
            Some(base) => {
                let base = self.value(emit, graph, base);
                let base = emit.b.ins().uextend(types::I64, base);
                emit.b.ins().iadd_imm_u(base, end.cast_signed())
            }
        };
        emit.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, emit.len)
    }

    /// Ends a block, whose test is given, with the tests that are joined to it.
    fn joined(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        at: BlockId,
        holds: Clif,
        join: &Join,
        blocks: &[ClifBlock],
    ) {
        let leaves_if = |block: BlockId| match graph.blocks[block].end {
            End::Test { yes, .. } => yes == join.exit,
            _ => false,
        };
        let mut tests = vec![(holds, leaves_if(at))];
        for block in &join.tests {
            if let End::Test { op, left, right, .. } = graph.blocks[*block].end {
                tests.push((self.test(emit, graph, op, left, right), leaves_if(*block)));
            }
        }
        let last = join.tests.last().copied().unwrap_or(at);
        let mut along = Vec::new();
        for param in &graph.params[join.next] {
            let value = graph.argument(last, *param);
            along.push(BlockArg::Value(self.value(emit, graph, value)));
        }
        // All the same way round, or else as whether to stay.
        let any = tests.iter().all(|t| t.1);
        let decided = tests.into_iter().map(|(holds, leaves)| {
            if leaves && !any { emit.b.ins().bxor_imm_u(holds, 1) } else { holds }
        });
        let decided: Vec<Clif> = decided.collect();
        let mut all = holds;
        for (n, one) in decided.into_iter().enumerate() {
            all = match (n, any) {
                (0, _) => one,
                (_, true) => emit.b.ins().bor(all, one),
                (_, false) => emit.b.ins().band(all, one),
            };
        }
        let (exit, next) = (blocks[join.exit], blocks[join.next]);
        if any {
            emit.b.ins().brif(all, exit, &[], next, &along);
        } else {
            emit.b.ins().brif(all, next, &along, exit, &[]);
        }
    }

    /// Forgets what was emitted since.
    fn forget(&mut self, mark: usize) {
        for key in self.log.drain(mark..) {
            if let Some(places) = self.seen.get_mut(&key) {
                places.pop();
            }
        }
    }
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
        self.log.push(key);
    }
}
