//! Values of a packet as Cranelift values, and the tables of sets.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block as ClifBlock, InstBuilder, MemFlagsData, SourceLoc, Value as Clif, types,
};
use cranelift_frontend::FunctionBuilder;

use super::leaf;
use crate::bpf::*;
use crate::engine::graph::{Graph, Node, Value};
use crate::engine::sets::{Set, Table};

/// For loads that checks have proved to be within the packet.
pub(super) const PACKET: MemFlagsData = MemFlagsData::new().with_notrap().with_readonly();
/// For memory of the engine or the caller.
pub(super) const OWN: MemFlagsData = MemFlagsData::new().with_notrap().with_aligned();

/// For views, which do not change while code runs: unused fields are not loaded.
pub(super) const VIEWS: MemFlagsData =
    MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move();

/// Data other than packets that the code reads. Boxed, because it must not move while the code
/// exists. Code for one packet, code for batches and all tests of a set share it.
#[derive(Debug, Default)]
pub(super) struct Tables {
    bytes: Vec<Box<[u8]>>,
    words: Vec<Box<[u32]>>,
    longs: Vec<Box<[u64]>>,
    /// Tables by set and maximum value to look up.
    known: HashMap<(usize, u32), TableLayout>,
}

/// The address and layout of a table.
#[derive(Clone, Copy, Debug)]
enum TableLayout {
    Bits(i64),
    Hash { at: i64, drop: u32, factors: [u32; 2], shift: u32 },
    Borders { at: i64, len: usize },
}

impl Tables {
    fn of(&mut self, set: (usize, &Set), max_value: u32) -> TableLayout {
        let Self { bytes, words, longs, known } = self;
        *known.entry((set.0, max_value)).or_insert_with(|| match set.1.table(max_value) {
            Table::Bits(table) => TableLayout::Bits(add_table(bytes, table)),
            Table::Hash { drop, slots, factors, shift } => {
                TableLayout::Hash { at: add_table(words, slots), drop, factors, shift }
            }
            Table::Borders(borders) => {
                let len = borders.len();
                TableLayout::Borders { at: add_table(longs, borders), len }
            }
        })
    }
}

fn add_table<T>(tables: &mut Vec<Box<[T]>>, table: Vec<T>) -> i64 {
    let table = table.into_boxed_slice();
    let at = table.as_ptr() as i64;
    tables.push(table);
    at
}

/// Bytes that branch-free code reads instead of bytes beyond the packet; the result is unused.
static ZEROS: [u8; MAX_SPAN] = [0; MAX_SPAN];

/// Maximum offset from an address in branch-free code.
pub(super) const MAX_SPAN: usize = 4096;

/// Emits code for one packet.
pub(super) struct Emit<'a, 'f> {
    pub(super) b: &'a mut FunctionBuilder<'f>,
    tables: &'a mut Tables,
    pub(super) data: Clif,
    /// 64 bits.
    pub(super) len: Clif,
    /// 32 bits.
    pub(super) wire: Clif,
    exits: Exits,
}

/// The destination of verdicts.
#[derive(Clone, Copy)]
pub(super) enum Exits {
    /// The function returns them.
    Return,
    /// A loop continues with the next packet.
    Loop {
        /// Block whose argument is 1 if the packet matches, else 0, of 64 bits.
        done: ClifBlock,
        /// Block for a match.
        hit: ClifBlock,
        /// Block for no match, with its argument.
        next: (ClifBlock, Clif),
    },
}

impl<'a, 'f> Emit<'a, 'f> {
    /// An emitter; the parameters of the function are the packet's bytes, their number (64 bits),
    /// and the wire length.
    pub(super) fn new(
        b: &'a mut FunctionBuilder<'f>,
        tables: &'a mut Tables,
        [data, len, wire]: [Clif; 3],
        exits: Exits,
    ) -> Self {
        Self { b, tables, data, len, wire, exits }
    }

    pub(super) fn word(&mut self, k: u32) -> Clif {
        self.b.ins().iconst(types::I32, i64::from(k))
    }

    pub(super) fn long(&mut self, k: u64) -> Clif {
        self.b.ins().iconst(types::I64, k.cast_signed())
    }

    pub(super) fn zeros(&mut self) -> Clif {
        self.long(ZEROS.as_ptr() as u64)
    }

    /// Ends the block with a verdict.
    pub(super) fn finish(&mut self, verdict: Clif) {
        match self.exits {
            Exits::Return => {
                self.b.set_srcloc(leaf::end());
                self.b.ins().return_(&[verdict]);
                self.b.set_srcloc(SourceLoc::default());
            }
            Exits::Loop { done, .. } => {
                let matches = self.b.ins().icmp_imm_u(IntCC::NotEqual, verdict, 0);
                let matches = self.b.ins().uextend(types::I64, matches);
                self.b.ins().jump(done, &[matches.into()]);
            }
        }
    }

    /// Ends the block with one of two verdicts, without a branch.
    pub(super) fn decide(&mut self, holds: Clif, yes: u32, no: u32) {
        match self.exits {
            Exits::Loop { done, .. } if yes != 0 && no == 0 => {
                let matches = self.b.ins().uextend(types::I64, holds);
                self.b.ins().jump(done, &[matches.into()]);
            }
            _ => {
                let (yes, no) = (self.word(yes), self.word(no));
                let verdict = self.b.ins().select(holds, yes, no);
                self.finish(verdict);
            }
        }
    }

    /// Ends the block with the first verdict if any of some tests holds, else with the second.
    pub(super) fn decide_any(&mut self, tests: &[Clif], yes: u32, no: u32) {
        if let Exits::Loop { .. } = self.exits {
            let any = tests.iter().copied().reduce(|before, one| self.b.ins().bor(before, one));
            return match any {
                Some(any) => self.decide(any, yes, no),
                None => self.conclude(no),
            };
        }
        // One selection for each test, so that flags need not be converted to numbers.
        let (yes, no) = (self.word(yes), self.word(no));
        let verdict = tests.iter().rev().fold(no, |rest, one| self.b.ins().select(*one, yes, rest));
        self.finish(verdict);
    }

    /// Ends the block with a constant verdict.
    pub(super) fn conclude(&mut self, verdict: u32) {
        match self.exits {
            Exits::Loop { hit, .. } if verdict != 0 => {
                self.b.ins().jump(hit, &[]);
            }
            Exits::Loop { next: (next, free), .. } => {
                self.b.ins().jump(next, &[free.into()]);
            }
            Exits::Return => {
                let verdict = self.word(verdict);
                self.finish(verdict);
            }
        }
    }

    /// Ends the block with no match.
    pub(super) fn reject(&mut self) {
        self.conclude(0);
    }

    /// Bytes at an address in memory order, extended to 32 bits.
    pub(super) fn raw(&mut self, size: u8, address: Clif, offset: i32) -> Clif {
        let ins = self.b.ins();
        match size {
            1 => ins.uload8(types::I32, PACKET, address, offset),
            2 => ins.uload16(types::I32, PACKET, address, offset),
            _ => ins.load(types::I32, PACKET, address, offset),
        }
    }

    /// Converts bytes in memory order to a number in network order.
    pub(super) fn ordered(&mut self, size: u8, raw: Clif) -> Clif {
        match size {
            1 => raw,
            2 => {
                let wide = self.b.ins().bswap(raw);
                self.b.ins().ushr_imm_u(wide, 16)
            }
            _ => self.b.ins().bswap(raw),
        }
    }

    /// An operation that cannot fault.
    pub(super) fn binary(&mut self, op: u16, a: Clif, b: Clif, shift: Option<u32>) -> Clif {
        let ins = self.b.ins();
        match op {
            ADD => ins.iadd(a, b),
            SUB => ins.isub(a, b),
            MUL => ins.imul(a, b),
            DIV => ins.udiv(a, b),
            MOD => ins.urem(a, b),
            OR => ins.bor(a, b),
            AND => ins.band(a, b),
            XOR => ins.bxor(a, b),
            LSH | RSH => {
                if shift.is_some_and(|n| n >= 32) {
                    return self.word(0);
                }
                let moved = if op == LSH { ins.ishl(a, b) } else { ins.ushr(a, b) };
                if shift.is_some() {
                    return moved;
                }
                // Processors count shifts modulo 32.
                let fits = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, b, 32);
                let zero = self.word(0);
                self.b.ins().select(fits, moved, zero)
            }
            _ => ins.ineg(a),
        }
    }

    /// A comparison as BPF encodes it.
    pub(super) fn compare(&mut self, op: u16, a: Clif, b: Clif) -> Clif {
        let ins = self.b.ins();
        match op {
            JEQ => ins.icmp(IntCC::Equal, a, b),
            JGT => ins.icmp(IntCC::UnsignedGreaterThan, a, b),
            JGE => ins.icmp(IntCC::UnsignedGreaterThanOrEqual, a, b),
            _ => {
                let common = ins.band(a, b);
                self.b.ins().icmp_imm_u(IntCC::NotEqual, common, 0)
            }
        }
    }

    /// Whether a number is in a set; `max_value` is its maximum.
    pub(super) fn is_in(
        &mut self,
        graph: &Graph,
        set: usize,
        number: Clif,
        max_value: u32,
    ) -> Clif {
        let ranges = &graph.sets[set].ranges;
        if ranges.len() <= MAX_COMPARISONS {
            return self.in_ranges(ranges, number);
        }
        match self.tables.of((set, &graph.sets[set]), max_value) {
            TableLayout::Bits(table) => {
                let table = self.b.ins().iconst(types::I64, table);
                let at = self.b.ins().ushr_imm_u(number, 3);
                let at = self.b.ins().uextend(types::I64, at);
                let at = self.b.ins().iadd(table, at);
                let byte = self.b.ins().uload8(types::I32, OWN, at, 0);
                let bit = self.b.ins().band_imm_u(number, 7);
                let byte = self.b.ins().ushr(byte, bit);
                let bit = self.b.ins().band_imm_u(byte, 1);
                self.b.ins().icmp_imm_u(IntCC::NotEqual, bit, 0)
            }
            TableLayout::Hash { at, drop, factors, shift } => {
                let table = self.b.ins().iconst(types::I64, at);
                let key = if drop > 0 {
                    self.b.ins().ushr_imm_u(number, i64::from(drop))
                } else {
                    number
                };
                let found = factors.map(|factor| {
                    let add_table = self.b.ins().imul_imm_u(key, i64::from(factor));
                    let add_table = self.b.ins().ushr_imm_u(add_table, i64::from(shift));
                    let add_table = self.b.ins().uextend(types::I64, add_table);
                    let add_table = self.b.ins().ishl_imm_u(add_table, 2);
                    let at = self.b.ins().iadd(table, add_table);
                    let there = self.b.ins().load(types::I32, OWN, at, 0);
                    self.b.ins().icmp(IntCC::Equal, there, key)
                });
                self.b.ins().bor(found[0], found[1])
            }
            TableLayout::Borders { at, len } => {
                let mut step = len.div_ceil(2);
                let table = self.b.ins().iconst(types::I64, at);
                let wide = self.b.ins().uextend(types::I64, number);
                let mut at = self.long(0);
                while step > 0 {
                    let next = self.b.ins().iadd_imm_u(at, step as i64);
                    let add_table = self.b.ins().ishl_imm_u(next, 3);
                    let add_table = self.b.ins().iadd(table, add_table);
                    let border = self.b.ins().load(types::I64, OWN, add_table, -8);
                    let above = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, border, wide);
                    at = self.b.ins().select(above, next, at);
                    step /= 2;
                }
                let odd = self.b.ins().band_imm_u(at, 1);
                self.b.ins().icmp_imm_u(IntCC::NotEqual, odd, 0)
            }
        }
    }

    fn in_ranges(&mut self, ranges: &[(u32, u32)], number: Clif) -> Clif {
        let mut all = None;
        for &(low, high) in ranges {
            let here = if low == high {
                self.b.ins().icmp_imm_u(IntCC::Equal, number, i64::from(low))
            } else if low == 0 {
                self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, number, i64::from(high))
            } else if high == u32::MAX {
                self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, number, i64::from(low))
            } else {
                let low_word = self.word(low);
                let above = self.b.ins().isub(number, low_word);
                let span = i64::from(high - low);
                self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, above, span)
            };
            all = Some(match all {
                None => here,
                Some(before) => self.b.ins().bor(before, here),
            });
        }
        all.unwrap_or_else(|| self.b.ins().iconst(types::I8, 0))
    }
}

/// Maximum number of ranges of a set that are compared one by one.
const MAX_COMPARISONS: usize = 3;

/// The values that are available at a point in the code; each is emitted once where it is visible.
pub(super) trait AvailableValues {
    /// Address and offset of a load that is safe here.
    fn address(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, load: Value) -> (Clif, i32);

    /// A divisor that is not zero here.
    fn divisor(&mut self, emit: &mut Emit<'_, '_>, divisor: Clif) -> Clif;

    fn known(&self, key: (Value, bool)) -> Option<Clif>;

    fn learn(&mut self, key: (Value, bool), value: Clif);

    /// Bytes of a load in memory order.
    fn raw(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, load: Value, size: u8) -> Clif {
        if let Some(raw) = self.known((load, true)) {
            return raw;
        }
        let (address, offset) = self.address(emit, graph, load);
        let raw = emit.raw(size, address, offset);
        self.learn((load, true), raw);
        raw
    }

    /// A value.
    fn value(&mut self, emit: &mut Emit<'_, '_>, graph: &Graph, requested: Value) -> Clif {
        // Operands first, without recursion: programs of other compilers may have long chains.
        let mut stack = vec![requested];
        while let Some(&value) = stack.last() {
            if self.known((value, false)).is_some() {
                stack.pop();
                continue;
            }
            let node = graph.node(value);
            let operands = match node {
                Node::Binary(_, a, b) => [Some(a), Some(b)],
                Node::Neg(a) => [Some(a), None],
                _ => [None, None],
            };
            let missing = |v: &Value| self.known((*v, false)).is_none();
            let missing: Vec<Value> = operands.into_iter().flatten().filter(missing).collect();
            if !missing.is_empty() {
                stack.extend(missing);
                continue;
            }
            let of = |v| self.known((v, false)).unwrap_or(emit.wire);
            let new = match node {
                Node::Const(k) => emit.word(k),
                Node::Wire => emit.wire,
                Node::Load { size, .. } => {
                    let raw = self.raw(emit, graph, value, size);
                    emit.ordered(size, raw)
                }
                Node::Binary(op, a, b) => {
                    let (left, mut right) = (of(a), of(b));
                    let shift = graph.constant(b);
                    if matches!(op, DIV | MOD) && shift.is_none_or(|k| k == 0) {
                        right = self.divisor(emit, right);
                    }
                    emit.binary(op, left, right, shift)
                }
                Node::Neg(a) => {
                    let a = of(a);
                    emit.b.ins().ineg(a)
                }
                // Available from the start of its block.
                Node::Differs(..) => emit.word(0),
            };
            self.learn((value, false), new);
            stack.pop();
        }
        self.known((requested, false)).unwrap_or(emit.wire)
    }

    /// Whether a test holds. Constants are converted to memory order where possible.
    fn test(
        &mut self,
        emit: &mut Emit<'_, '_>,
        graph: &Graph,
        op: u16,
        left: Value,
        right: Value,
    ) -> Clif {
        if let Some(k) = graph.constant(right)
            && matches!(op, JEQ | JSET)
        {
            let swapped = |size: u8, k: u32| match size {
                1 => k,
                2 => u32::from((k as u16).swap_bytes()),
                _ => k.swap_bytes(),
            };
            let fits = |size: u8, k: u32| size == 4 || k >> (8 * size) == 0;
            match graph.node(left) {
                Node::Load { size, .. } if fits(size, k) || op == JSET => {
                    let raw = self.raw(emit, graph, left, size);
                    let max_value = graph.max_value(left);
                    let k = emit.word(swapped(size, k & max_value));
                    return emit.compare(op, raw, k);
                }
                Node::Binary(AND, load, mask) => {
                    if let (Node::Load { size, .. }, Some(mask)) =
                        (graph.node(load), graph.constant(mask))
                        && (fits(size, k) || op == JSET)
                    {
                        let raw = self.raw(emit, graph, load, size);
                        let max_value = graph.max_value(load);
                        let mask = emit.word(swapped(size, mask & max_value));
                        let masked = emit.b.ins().band(raw, mask);
                        let k = emit.word(swapped(size, k & max_value));
                        return emit.compare(op, masked, k);
                    }
                }
                _ => (),
            }
        }
        let (a, b) = (self.value(emit, graph, left), self.value(emit, graph, right));
        emit.compare(op, a, b)
    }
}

/// Values that were emitted and are visible in all later code.
#[derive(Default)]
pub(super) struct Seen(HashMap<(Value, bool), Clif>);

impl Seen {
    pub(super) fn find(&self, key: (Value, bool)) -> Option<Clif> {
        self.0.get(&key).copied()
    }

    pub(super) fn keep(&mut self, key: (Value, bool), value: Clif) {
        self.0.insert(key, value);
    }
}
