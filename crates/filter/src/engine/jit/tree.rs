//! Code with the branches of the graph, for filters of many blocks.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block as ClifBlock, BlockArg, InstBuilder, Value as Clif, types};

use super::emit::{AvailableValues, Emit};
use super::join::{self, Join, verdict};
use super::pieces::{self, Piece, Word};
use crate::bpf::JSET;
use crate::engine::bounds::{Bounds, Reach};
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
        let block = &graph.blocks[at];
        let (now, later) = checks(graph, bounds, at, joins[at].as_ref());
        for reach in &now {
            tree.check(emit, graph, *reach, reject);
        }
        for fault in &block.faults {
            let Fault::Zero(divisor) = fault else { continue };
            let divisor = tree.value(emit, graph, *divisor);
            let next = emit.b.create_block();
            emit.b.ins().brif(divisor, next, &[], reject, &[]);
            emit.b.switch_to_block(next);
        }
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
                let args = tree.arguments_for(emit, graph, at, to);
                emit.b.ins().jump(blocks[to], &args);
            }
            End::Test { op, left, right, yes, no } => {
                let a = tree.arguments_for(emit, graph, at, yes);
                let b = tree.arguments_for(emit, graph, at, no);
                let Some(join) = &joins[at] else {
                    let holds = tree.test(emit, graph, op, left, right);
                    match (verdict(graph, yes), verdict(graph, no)) {
                        (Some(yes), Some(no)) => emit.decide(holds, yes, no),
                        _ => {
                            emit.b.ins().brif(holds, blocks[yes], &a, blocks[no], &b);
                        }
                    }
                    continue;
                };
                if join.checks.is_empty() {
                    tree.joined(emit, graph, at, join, &blocks);
                    continue;
                }
                // Values emitted after these checks are visible only there.
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
                let mark = tree.log.len();
                // Very few packets end in between.
                emit.b.set_cold_block(short);
                emit.b.switch_to_block(short);
                for reach in &later {
                    let next = tree.check(emit, graph, *reach, reject);
                    emit.b.set_cold_block(next);
                }
                let holds = tree.test(emit, graph, op, left, right);
                emit.b.ins().brif(holds, blocks[yes], &a, blocks[no], &b);
                tree.drop_since(mark);
                emit.b.switch_to_block(long);
                tree.joined(emit, graph, at, join, &blocks);
                tree.drop_since(mark);
            }
            End::In { set, value, yes, no } => {
                let a = tree.arguments_for(emit, graph, at, yes);
                let b = tree.arguments_for(emit, graph, at, no);
                let number = tree.value(emit, graph, value);
                let inside = emit.is_in(graph, set, number, graph.max_value(value));
                match (verdict(graph, yes), verdict(graph, no)) {
                    (Some(yes), Some(no)) => emit.decide(inside, yes, no),
                    _ => {
                        emit.b.ins().brif(inside, blocks[yes], &a, blocks[no], &b);
                    }
                }
            }
        }
    }
    // Unreachable blocks must be terminated, too.
    for at in (0..graph.blocks.len()).filter(|at| !reachable[*at]) {
        emit.b.switch_to_block(blocks[at]);
        emit.reject();
    }
    emit.b.switch_to_block(reject);
    emit.reject();
}

/// The checks at the start of a block, and the stricter checks of its joined tests, which are
/// needed only if the packet is long enough.
fn checks(
    graph: &Graph,
    bounds: &Bounds,
    at: BlockId,
    join: Option<&Join>,
) -> (Vec<Reach>, Vec<Reach>) {
    let own = &bounds.checks[at];
    let Some(join) = join else { return (own.clone(), Vec::new()) };
    let covered = |r: &Reach| join.checks.iter().any(|k| k.0 == r.0 && k.1 >= r.1);
    let (later, now): (Vec<Reach>, Vec<Reach>) = own.iter().partition(|r| covered(r));
    // Nothing may be loaded before its check: neither a base, nor arguments of later blocks, nor a
    // divisor.
    let from_start = |r: &Reach| r.0.is_none();
    let bases = match later.iter().any(from_start) {
        true => own.iter().chain(&join.checks).all(from_start),
        false => later.len() <= 1,
    };
    let block = &graph.blocks[at];
    let plain = block.faults.iter().all(|f| matches!(f, Fault::Load(_)))
        && block.end.targets().all(|to| graph.params[to].is_empty());
    if bases && plain { (now, later) } else { (own.clone(), Vec::new()) }
}

/// The interval of each block in a traversal of the dominator tree: nested intervals mean
/// dominance.
fn dominators(graph: &Graph, joins: &[Option<Join>]) -> Vec<(usize, usize)> {
    let count = graph.blocks.len();
    let reachable = graph.reachable();
    // The immediate dominator: known for all earlier blocks, as graphs have no cycles.
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
    /// The blocks in which values were emitted.
    seen: HashMap<(Value, bool), Vec<(BlockId, Clif)>>,
    /// Emitted values, in order.
    log: Vec<(Value, bool)>,
}

impl Tree {
    /// Whether the packet has the bytes of a reach.
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

    /// Continues only if the packet has the bytes; returns the block that continues.
    fn check(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        (base, end): Reach,
        reject: ClifBlock,
    ) -> ClifBlock {
        let enough = self.reaches(emit, graph, base, end);
        let next = emit.b.create_block();
        emit.b.ins().brif(enough, next, &[], reject, &[]);
        emit.b.switch_to_block(next);
        next
    }

    /// Ends a block with its test and the joined ones.
    fn joined(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        at: BlockId,
        join: &Join,
        blocks: &[ClifBlock],
    ) {
        let tests = std::iter::once(at).chain(join.tests.iter().copied()).zip(&join.exits);
        let tests = tests.filter_map(|(block, exit)| match graph.blocks[block].end {
            End::Test { op, left, right, yes, .. } => Some((op, left, right, yes == *exit)),
            _ => None,
        });
        let tests: Vec<(u16, Value, Value, bool)> = tests.collect();
        let last = join.tests.last().copied().unwrap_or(at);
        let Some(exit) = join.exit() else {
            return self.either(emit, graph, last, &tests, join, blocks);
        };
        let any = tests.iter().all(|t| t.3);
        let mut ones: Vec<Clif> = Vec::new();
        let mut pieces = Vec::new();
        for (op, left, right, leaves) in tests {
            // If all must be equal, or have no bits in common, their differences are combined.
            if !any
                && leaves == (op == JSET)
                && let Some(piece) = Piece::of(graph, op, left, right)
            {
                pieces.push(piece);
                continue;
            }
            let mut one = self.test(emit, graph, op, left, right);
            // Tests with the same sense, otherwise inverted to "stay".
            if leaves && !any {
                one = emit.b.ins().bxor_imm_u(one, 1);
            }
            ones.push(one);
        }
        ones.extend(self.none_differs(emit, graph, pieces));
        let arguments_for = self.arguments_for(emit, graph, last, join.next);
        let verdicts = verdict(graph, exit).zip(verdict(graph, join.next));
        if let Some((exit, next)) = verdicts.filter(|_| any) {
            return emit.decide_any(&ones, exit, next);
        }
        let gathered = ones.into_iter().reduce(|before, one| match any {
            true => emit.b.ins().bor(before, one),
            false => emit.b.ins().band(before, one),
        });
        let Some(all) = gathered else { return emit.reject() };
        if let Some((exit, next)) = verdicts {
            return emit.decide(all, next, exit);
        }
        let (exit, next) = (blocks[exit], blocks[join.next]);
        if any {
            emit.b.ins().brif(all, exit, &[], next, &arguments_for);
        } else {
            emit.b.ins().brif(all, next, &arguments_for, exit, &[]);
        }
    }

    /// Ends a block with tests that leave with different verdicts.
    fn either(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        last: BlockId,
        tests: &[(u16, Value, Value, bool)],
        join: &Join,
        blocks: &[ClifBlock],
    ) {
        let mut leaving: Vec<(Clif, u32)> = Vec::new();
        for (&(op, left, right, leaves), exit) in tests.iter().zip(&join.exits) {
            let mut one = self.test(emit, graph, op, left, right);
            if !leaves {
                one = emit.b.ins().bxor_imm_u(one, 1);
            }
            leaving.push((one, verdict(graph, *exit).unwrap_or(0)));
        }
        let arguments_for = self.arguments_for(emit, graph, last, join.next);
        let next = verdict(graph, join.next);
        let ones = leaving.iter().map(|l| l.0);
        let Some(any) = ones.reduce(|before, one| emit.b.ins().bor(before, one)) else {
            return emit.reject();
        };
        // The verdict of the first that leaves; the default is the next block's.
        let rest = leaving.last().map_or(0, |l| l.1);
        let mut kept = emit.word(next.unwrap_or(rest));
        for (one, says) in leaving.into_iter().rev() {
            let says = emit.word(says);
            kept = emit.b.ins().select(one, says, kept);
        }
        if next.is_some() {
            return emit.finish(kept);
        }
        let leave = emit.b.create_block();
        emit.b.ins().brif(any, leave, &[], blocks[join.next], &arguments_for);
        emit.b.switch_to_block(leave);
        emit.finish(kept);
    }

    /// The arguments that a block passes to another.
    fn arguments_for(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        at: BlockId,
        to: BlockId,
    ) -> Vec<BlockArg> {
        let values = graph.params[to].iter().map(|param| {
            let value = graph.argument(at, *param);
            BlockArg::Value(self.value(emit, graph, value))
        });
        values.collect()
    }

    /// Whether no piece differs from its required value; `None` without pieces.
    fn none_differs(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        pieces: Vec<Piece>,
    ) -> Option<Clif> {
        let (there, new) = pieces.into_iter().partition(|p| self.known((p.load, true)).is_some());
        let there: Vec<Piece> = there;
        let words = there.iter().map(Word::of).chain(pieces::gather(new)).map(|word| {
            let raw = if word.is_one() {
                self.raw(emit, graph, word.load, word.size)
            } else {
                let (address, offset) = self.address(emit, graph, word.load);
                emit.raw(word.size, address, offset - i32::from(word.before))
            };
            if word.mask == word.full() {
                (raw, word.right)
            } else {
                (emit.b.ins().band_imm_u(raw, i64::from(word.mask)), word.right)
            }
        });
        let words: Vec<(Clif, u32)> = words.collect();
        if let [(word, right)] = words[..] {
            return Some(emit.b.ins().icmp_imm_u(IntCC::Equal, word, i64::from(right)));
        }
        let differing = words.into_iter().map(|(word, right)| match right {
            0 => word,
            _ => emit.b.ins().bxor_imm_u(word, i64::from(right)),
        });
        let differing: Vec<Clif> = differing.collect();
        let all = differing.into_iter().reduce(|before, word| emit.b.ins().bor(before, word))?;
        Some(emit.b.ins().icmp_imm_u(IntCC::Equal, all, 0))
    }

    /// Drops values emitted since a mark.
    fn drop_since(&mut self, mark: usize) {
        for key in self.log.drain(mark..) {
            if let Some(places) = self.seen.get_mut(&key) {
                places.pop();
            }
        }
    }
}

impl AvailableValues for Tree {
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
