//! From register code to Cranelift's intermediate form.
//!
//! Numbers are in Cranelift variables, which it allocates to processor registers; all other values are in the
//! cells of the frame, as in the interpreter. If an operand does not have the type that the compiler expects,
//! or an instruction warns or fails, machine code exits to the interpreter: it stores the variables in their
//! cells, and the interpreter continues at the same instruction. So each message and each rare case has one
//! implementation. Instructions on cells call the code of the interpreter.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    AbiParam, Block as ClifBlock, InstBuilder, MemFlagsData, SigRef, Signature, Type as ClifType,
    Value as Clif, types,
};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};

use super::flow::{Flow, Kind, transfer};
use super::layout::{
    Addresses, BOOL, CELL_SIZE, LAST_PLAIN, NUMBER, UNSET, bits_of, context, light, tag_of,
};
use crate::ast::{BinaryOp, Coercion, ExprKind};
use crate::code::operands::{Next, Operands, next, operands};
use crate::code::{Code, Cond, Op, Reg};
use crate::program::Program;
use crate::types::Tag;
use crate::value::Value;
use crate::vm::Callee;

/// Return status of compiled functions: the frame has ended, and its result is in the context.
pub(super) const DONE: i64 = 0;
/// An error, already reported.
pub(super) const ERROR: i64 = 1;
/// The interpreter continues at the instruction in the context.
pub(super) const EXIT: i64 = 2;
/// Return status of an interpreter step if the instruction jumps.
pub(super) const JUMP: i64 = 2;

/// Flags of accesses to the machine's memory: cells, context.
const OWN: MemFlagsData = MemFlagsData::new().with_notrap().with_aligned();
/// Flags of accesses to a whole cell, which is aligned to 8 bytes.
const CELL: MemFlagsData = MemFlagsData::new().with_notrap();

/// Input of the compiler.
pub(super) struct Source<'a> {
    pub program: &'a Program,
    pub code: &'a Code,
    pub flow: &'a Flow,
    pub addresses: Addresses,
    /// The number of globals that exist.
    pub globals: usize,
    /// The functions that calls may enter directly as machine code.
    pub targets: &'a [Callee],
}

/// Signatures of the functions that machine code calls.
#[derive(Clone, Copy)]
struct Calls {
    /// Runs an instruction: machine, code, base of the frame, next instruction; returns a status.
    step: SigRef,
    /// Copies a cell: two addresses of cells.
    copy: SigRef,
    /// Stores a number: address of a cell, tag and bits.
    put: SigRef,
}

/// An edge between blocks that first stores variables in cells.
struct Edge {
    block: ClifBlock,
    spills: Vec<(Reg, Kind)>,
    to: ClifBlock,
}

/// An exit to the interpreter.
struct Exit {
    block: ClifBlock,
    spills: Vec<(Reg, Kind)>,
    pc: usize,
}

pub(super) struct Emit<'a, 'f> {
    b: &'a mut FunctionBuilder<'f>,
    source: &'a Source<'a>,
    blocks: Vec<ClifBlock>,
    ints: HashMap<Reg, Variable>,
    floats: HashMap<Reg, Variable>,
    /// The address of the frame's first cell.
    cells: Variable,
    machine: Clif,
    context: Clif,
    base: Clif,
    edges: Vec<Edge>,
    exits: Vec<Exit>,
    failed: Option<ClifBlock>,
    calls: Calls,
}

/// The signature of compiled functions: machine, context, base of the frame, entry; returns a status.
pub(super) fn signature(mut signature: Signature) -> Signature {
    signature.params = [types::I64; 4].map(AbiParam::new).to_vec();
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// Emits a function. Returns the loop headers that can be entered from outside: their entry numbers count from
/// one.
pub(super) fn emit(
    b: &mut FunctionBuilder<'_>,
    plain: &Signature,
    source: &Source<'_>,
) -> Vec<u32> {
    let mut call = |n: usize, returns: bool| {
        let mut signature = plain.clone();
        signature.params = vec![AbiParam::new(types::I64); n];
        signature.returns = if returns { vec![AbiParam::new(types::I64)] } else { Vec::new() };
        b.import_signature(signature)
    };
    let calls = Calls { step: call(4, true), copy: call(2, false), put: call(3, false) };
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    let param = |index: usize| params.get(index).copied().unwrap_or(Clif::from_u32(0));
    let cells = b.declare_var(types::I64);
    let blocks = source.flow.blocks.iter().map(|_| b.create_block()).collect();
    let mut emit = Emit {
        b,
        source,
        blocks,
        ints: HashMap::new(),
        floats: HashMap::new(),
        cells,
        machine: param(0),
        context: param(1),
        base: param(2),
        edges: Vec::new(),
        exits: Vec::new(),
        failed: None,
        calls,
    };
    emit.load_cell_address();
    let loops = emit.entries(param(3));
    for index in 0..source.flow.blocks.len() {
        emit.block(index);
    }
    emit.finish();
    loops
}

impl Emit<'_, '_> {
    /// Computes the address of the cells, which calls may have moved.
    fn load_cell_address(&mut self) {
        let stack = self.b.ins().load(types::I64, OWN, self.context, context::STACK);
        let shift = self.long(i64::from(CELL_SIZE.trailing_zeros()));
        let offset = self.b.ins().ishl(self.base, shift);
        let cells = self.b.ins().iadd(stack, offset);
        self.b.def_var(self.cells, cells);
    }

    fn long(&mut self, value: i64) -> Clif {
        self.b.ins().iconst(types::I64, value)
    }

    fn byte(&mut self, value: u8) -> Clif {
        self.b.ins().iconst(types::I8, i64::from(value))
    }

    fn flow(&self) -> &Flow {
        self.source.flow
    }

    /// Emits blocks that load the variables for the beginning and for each loop, and the dispatch on the entry
    /// number.
    fn entries(&mut self, entry: Clif) -> Vec<u32> {
        let mut loops = Vec::new();
        let mut switch = Switch::new();
        let start = self.b.create_block();
        let mut ways = vec![(start, 0)];
        for block in &self.source.flow.blocks {
            if block.is_loop {
                let way = self.b.create_block();
                ways.push((way, block.from));
                loops.push(block.from as u32);
                switch.set_entry(loops.len() as u128, way);
            }
        }
        switch.emit(self.b, entry, start);
        for (way, pc) in ways {
            self.b.switch_to_block(way);
            let index = self.flow().block_at.get(pc).copied().flatten();
            let (Some(index), live) = (index, self.flow().live_at(pc)) else { continue };
            if pc == 0 && way == start {
                for reg in self.flow().unset.clone() {
                    self.unset(reg);
                }
            }
            let Some(kinds) = self.flow().kinds.get(index).cloned().flatten() else {
                let exit = self.exit_with(pc, Vec::new());
                self.b.ins().jump(exit, &[]);
                continue;
            };
            let out = self.exit_with(pc, Vec::new());
            for reg in live.iter() {
                if let Some(kind) = kinds.get(usize::from(reg)).filter(|kind| **kind != Kind::Cell)
                {
                    let value = self.load(reg, *kind, out);
                    let variable = self.variable(reg, *kind);
                    self.b.def_var(variable, value);
                }
            }
            if let Some(to) = self.blocks.get(index).copied() {
                self.b.ins().jump(to, &[]);
            }
        }
        loops
    }

    /// Emits edges, exits and the return after errors.
    fn finish(&mut self) {
        for edge in std::mem::take(&mut self.edges) {
            self.b.switch_to_block(edge.block);
            for (reg, kind) in edge.spills {
                self.spill(reg, kind);
            }
            self.b.ins().jump(edge.to, &[]);
        }
        for exit in std::mem::take(&mut self.exits) {
            self.b.switch_to_block(exit.block);
            for (reg, kind) in exit.spills {
                let cell = self.cell(reg);
                let value = self.value(reg, kind);
                self.put_number(cell, kind, value);
            }
            let pc = self.long(exit.pc as i64);
            self.b.ins().store(OWN, pc, self.context, context::PC);
            let status = self.long(EXIT);
            self.b.ins().return_(&[status]);
        }
        if let Some(failed) = self.failed {
            self.b.switch_to_block(failed);
            let status = self.long(ERROR);
            self.b.ins().return_(&[status]);
        }
    }

    fn block(&mut self, index: usize) {
        let Some((from, to)) = self.flow().blocks.get(index).map(|block| (block.from, block.to))
        else {
            return;
        };
        let Some(block) = self.blocks.get(index).copied() else { return };
        self.b.switch_to_block(block);
        let Some(mut kinds) = self.flow().kinds.get(index).cloned().flatten() else {
            // Unreachable.
            let exit = self.exit_with(from, Vec::new());
            self.b.ins().jump(exit, &[]);
            return;
        };
        for pc in from..to {
            let Some(op) = self.source.code.ops.get(pc).copied() else { return };
            let mut after = kinds.clone();
            transfer(self.source.program, self.source.code, pc, &mut after);
            if self.op(pc, op, &kinds, &after) {
                return;
            }
            kinds = after;
        }
        let next = self.edge(to, &kinds);
        self.b.ins().jump(next, &[]);
    }

    /// Emits an instruction; returns whether it ends the block.
    fn op(&mut self, pc: usize, op: Op, kinds: &[Kind], after: &[Kind]) -> bool {
        match op {
            Op::Move { d, s } => match kind(kinds, s) {
                Kind::Cell => self.copy_cell(d, s),
                known => {
                    let value = self.value(s, known);
                    self.define(d, known, value);
                }
            },
            Op::Pass { d, s } => match kind(kinds, s) {
                Kind::Cell => {
                    self.check(pc, s, kinds);
                    self.copy_cell(d, s);
                }
                known => {
                    let value = self.value(s, known);
                    self.define(d, known, value);
                }
            },
            Op::Const { d, k } => self.constant(d, k, kind(after, d)),
            Op::Global { d, g } => {
                let known = kind(after, d);
                let index = g.0 as usize;
                if index >= self.source.globals || index > 1 << 20 {
                    return self.call(pc, op, kinds, after);
                }
                let out = self.exit(pc, kinds);
                let globals = self.b.ins().load(types::I64, OWN, self.context, context::GLOBALS);
                let offset = (index * CELL_SIZE) as i32;
                if known == Kind::Cell {
                    let tag = self.b.ins().load(types::I8, OWN, globals, offset);
                    let unset = self.byte(UNSET);
                    let is_unset = self.b.ins().icmp(IntCC::Equal, tag, unset);
                    self.exit_if(is_unset, out);
                    let cells = self.b.use_var(self.cells);
                    self.copy((cells, cell_offset(d)), (globals, offset));
                } else {
                    let value = self.load_from(globals, offset, known, out);
                    self.define(d, known, value);
                }
            }
            Op::Check { s } => {
                if kind(kinds, s) == Kind::Cell {
                    self.check(pc, s, kinds);
                }
            }
            Op::Jump { to } => {
                let to = self.edge(to as usize, kinds);
                self.b.ins().jump(to, &[]);
                return true;
            }
            Op::JumpIf { s, to } | Op::JumpIfNot { s, to } => {
                let holds = self.truth(s, kinds);
                self.branch(pc, holds, matches!(op, Op::JumpIf { .. }), to, kinds);
                return true;
            }
            Op::SkipUnset { s, to } => {
                if kind(kinds, s) == Kind::Cell {
                    let cells = self.b.use_var(self.cells);
                    let tag = self.b.ins().load(types::I8, OWN, cells, cell_offset(s));
                    let unset = self.byte(UNSET);
                    let is_unset = self.b.ins().icmp(IntCC::Equal, tag, unset);
                    self.branch(pc, is_unset, true, to, kinds);
                } else {
                    let on = self.edge(pc + 1, kinds);
                    self.b.ins().jump(on, &[]);
                }
                return true;
            }
            Op::JumpC { c, a, b, to } => {
                let (x, y) = self.two(pc, a, b, Kind::Count, kinds);
                let holds = self.b.ins().icmp(unsigned(c), x, y);
                self.branch(pc, holds, true, to, kinds);
                return true;
            }
            Op::JumpCK { c, a, k, to } => {
                let x = self.operand(pc, a, Kind::Count, kinds);
                let y = self.long(i64::from(k));
                let holds = self.b.ins().icmp(unsigned(c), x, y);
                self.branch(pc, holds, true, to, kinds);
                return true;
            }
            Op::JumpI { c, a, b, to } => {
                let (x, y) = self.two(pc, a, b, Kind::Int, kinds);
                let holds = self.b.ins().icmp(signed(c), x, y);
                self.branch(pc, holds, true, to, kinds);
                return true;
            }
            Op::JumpIK { c, a, k, to } => {
                let x = self.operand(pc, a, Kind::Int, kinds);
                let y = self.long(i64::from(k));
                let holds = self.b.ins().icmp(signed(c), x, y);
                self.branch(pc, holds, true, to, kinds);
                return true;
            }
            Op::AddC { d, a, b } | Op::SubC { d, a, b } | Op::MulC { d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Count, kinds);
                self.count_arithmetic(pc, op, d, x, y, kinds);
            }
            Op::DivC { d, a, b } | Op::ModC { d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Count, kinds);
                let zero = self.long(0);
                let by_zero = self.b.ins().icmp(IntCC::Equal, y, zero);
                let out = self.exit(pc, kinds);
                self.exit_if(by_zero, out);
                self.count_arithmetic(pc, op, d, x, y, kinds);
            }
            Op::AddCK { d, a, k }
            | Op::SubCK { d, a, k }
            | Op::MulCK { d, a, k }
            | Op::DivCK { d, a, k }
            | Op::ModCK { d, a, k } => {
                let x = self.operand(pc, a, Kind::Count, kinds);
                let y = self.long(i64::from(k));
                self.count_arithmetic(pc, op, d, x, y, kinds);
            }
            Op::AddI { d, a, b } | Op::SubI { d, a, b } | Op::MulI { d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Int, kinds);
                let value = match op {
                    Op::AddI { .. } => self.b.ins().iadd(x, y),
                    Op::SubI { .. } => self.b.ins().isub(x, y),
                    _ => self.b.ins().imul(x, y),
                };
                self.define(d, Kind::Int, value);
            }
            Op::AddIK { d, a, k } => {
                let x = self.operand(pc, a, Kind::Int, kinds);
                let y = self.long(i64::from(k));
                let value = self.b.ins().iadd(x, y);
                self.define(d, Kind::Int, value);
            }
            Op::AddD { d, a, b }
            | Op::SubD { d, a, b }
            | Op::MulD { d, a, b }
            | Op::DivD { d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Double, kinds);
                let value = match op {
                    Op::AddD { .. } => self.b.ins().fadd(x, y),
                    Op::SubD { .. } => self.b.ins().fsub(x, y),
                    Op::MulD { .. } => self.b.ins().fmul(x, y),
                    _ => {
                        let zero = self.b.ins().f64const(0.0);
                        let by_zero = self.b.ins().fcmp(FloatCC::Equal, y, zero);
                        let out = self.exit(pc, kinds);
                        self.exit_if(by_zero, out);
                        self.b.ins().fdiv(x, y)
                    }
                };
                self.define(d, Kind::Double, value);
            }
            Op::CmpC { c, d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Count, kinds);
                let holds = self.b.ins().icmp(unsigned(c), x, y);
                self.define_bool(d, holds);
            }
            Op::CmpI { c, d, a, b } => {
                let (x, y) = self.two(pc, a, b, Kind::Int, kinds);
                let holds = self.b.ins().icmp(signed(c), x, y);
                self.define_bool(d, holds);
            }
            Op::CmpD { c, d, a, b } => {
                let x = self.float(pc, a, kinds);
                let y = self.float(pc, b, kinds);
                let holds = self.b.ins().fcmp(floating(c), x, y);
                self.define_bool(d, holds);
            }
            Op::Not { d, a } => {
                let x = self.operand(pc, a, Kind::Bool, kinds);
                let one = self.long(1);
                let value = self.b.ins().bxor(x, one);
                self.define(d, Kind::Bool, value);
            }
            Op::Binary { op: BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor, d, a, b }
                if [a, b].iter().all(|reg| kind(kinds, *reg) == Kind::Count)
                    && kind(after, d) == Kind::Count =>
            {
                let (x, y) = self.two(pc, a, b, Kind::Count, kinds);
                let value = match op {
                    Op::Binary { op: BinaryOp::BitAnd, .. } => self.b.ins().band(x, y),
                    Op::Binary { op: BinaryOp::BitOr, .. } => self.b.ins().bor(x, y),
                    _ => self.b.ins().bxor(x, y),
                };
                self.define(d, Kind::Count, value);
            }
            Op::Coerce { d, s } => match self.convert(pc, s, kind(after, d), kinds) {
                Some(value) => self.define(d, kind(after, d), value),
                None => return self.call(pc, op, kinds, after),
            },
            Op::Return { s } => {
                match kind(kinds, s) {
                    Kind::Cell => {
                        let cells = self.b.use_var(self.cells);
                        self.copy_bytes((self.context, context::RESULT), (cells, cell_offset(s)));
                        let unset = self.byte(UNSET);
                        self.b.ins().store(OWN, unset, cells, cell_offset(s));
                    }
                    known => {
                        let value = self.value(s, known);
                        self.store(self.context, context::RESULT, known, value);
                    }
                }
                self.end_frame();
                return true;
            }
            Op::End if !self.flow().wants_result => {
                let unset = self.byte(UNSET);
                self.b.ins().store(OWN, unset, self.context, context::RESULT);
                self.end_frame();
                return true;
            }
            Op::Break => {
                let no = self.long(0);
                self.store(self.context, context::RESULT, Kind::Bool, no);
                self.end_frame();
                return true;
            }
            Op::End | Op::Fail { .. } | Op::When { .. } => {
                let out = self.exit(pc, kinds);
                self.b.ins().jump(out, &[]);
                return true;
            }
            Op::Call { .. } => return self.call_directly(pc, op, kinds, after),
            other => return self.call(pc, other, kinds, after),
        }
        false
    }

    /// Ends the frame: drops the values that it owns.
    fn end_frame(&mut self) {
        let owners: Vec<Reg> = self.flow().owners.iter().collect();
        if owners.len() <= 4 {
            for reg in owners {
                self.unset(reg);
            }
        } else if let (Some(first), Some(last)) = (owners.first(), owners.last()) {
            let cell = self.cell(*first);
            let n = self.long(i64::from(last - first) + 1);
            let callee = self.long(self.source.addresses.clear as i64);
            self.b.ins().call_indirect(self.calls.copy, callee, &[cell, n]);
        }
        let status = self.long(DONE);
        self.b.ins().return_(&[status]);
    }

    /// Exits to the interpreter, which reports the error, if a cell is unset.
    fn check(&mut self, pc: usize, s: Reg, kinds: &[Kind]) {
        let out = self.exit(pc, kinds);
        let cells = self.b.use_var(self.cells);
        let tag = self.b.ins().load(types::I8, OWN, cells, cell_offset(s));
        let unset = self.byte(UNSET);
        let is_unset = self.b.ins().icmp(IntCC::Equal, tag, unset);
        self.exit_if(is_unset, out);
    }

    /// Runs an instruction by calling the interpreter's code. Returns whether it ends the block.
    fn call(&mut self, pc: usize, op: Op, kinds: &[Kind], after: &[Kind]) -> bool {
        let Operands { uses, defs } = operands(self.source.program, self.source.code.into(), &op);
        for (reg, n) in uses {
            for reg in reg..reg.saturating_add(n) {
                if kind(kinds, reg) != Kind::Cell {
                    self.spill(reg, kind(kinds, reg));
                }
            }
        }
        let callee = self.source.addresses.get(&op);
        let callee = self.long(callee as i64);
        let code = self.long(std::ptr::from_ref(self.source.code) as i64);
        let behind = self.long(pc as i64 + 1);
        let args = [self.machine, code, self.base, behind];
        let call = self.b.ins().call_indirect(self.calls.step, callee, &args);
        let status = self.b.inst_results(call).first().copied().unwrap_or(Clif::from_u32(0));
        self.load_cell_address();
        let failed = self.failed();
        if let Next::Branches(to) = next(&op) {
            let [other, on] = [self.b.create_block(), self.b.create_block()];
            self.b.ins().brif(status, other, &[], on, &[]);
            self.b.switch_to_block(other);
            let jump = self.long(JUMP);
            let jumps = self.b.ins().icmp(IntCC::Equal, status, jump);
            let to = self.edge(to as usize, kinds);
            self.b.ins().brif(jumps, to, &[], failed, &[]);
            self.b.switch_to_block(on);
        } else {
            let on = self.b.create_block();
            self.b.ins().brif(status, failed, &[], on, &[]);
            self.b.switch_to_block(on);
        }
        // Results that are expected to be numbers are loaded; the interpreter continues if they are not.
        let mut out = None;
        for (reg, n) in defs {
            for reg in reg..reg.saturating_add(n) {
                let known = kind(after, reg);
                if known == Kind::Cell {
                    continue;
                }
                let exit = match out {
                    Some(exit) => exit,
                    None => {
                        let mut stored = kinds.to_vec();
                        for (reg, n) in
                            operands(self.source.program, self.source.code.into(), &op).defs
                        {
                            for reg in reg..reg.saturating_add(n) {
                                if let Some(kind) = stored.get_mut(usize::from(reg)) {
                                    *kind = Kind::Cell;
                                }
                            }
                        }
                        let exit = self.exit(pc + 1, &stored);
                        out = Some(exit);
                        exit
                    }
                };
                let value = self.load(reg, known, exit);
                self.define(reg, known, value);
            }
        }
        false
    }

    /// Calls the machine code of a script function directly, with a light frame. A called function that may
    /// inspect frames first converts light frames into frames of the interpreter.
    fn call_directly(&mut self, pc: usize, op: Op, kinds: &[Kind], after: &[Kind]) -> bool {
        let Op::Call { d, b, n, f } = op else { return self.call(pc, op, kinds, after) };
        let fits = |callee: &Code| {
            callee
                .body
                .and_then(|body| self.source.program.bodies.find(body))
                .is_some_and(|body| body.params.len() == usize::from(n))
        };
        let callee = match self.source.targets.get(f.0 as usize) {
            Some(Callee::Script(callee)) if fits(callee) => callee,
            _ => return self.call(pc, op, kinds, after),
        };
        for reg in b..b + u16::from(n) {
            if kind(kinds, reg) != Kind::Cell {
                self.spill(reg, kind(kinds, reg));
            }
        }
        let known = kind(after, d);
        let [slow, on] = [self.b.create_block(), self.b.create_block()];
        let param = (known != Kind::Cell).then(|| self.b.append_block_param(on, clif_type(known)));
        let mut stored = kinds.to_vec();
        if let Some(slot) = stored.get_mut(usize::from(d)) {
            *slot = Kind::Cell;
        }

        // Check that code exists, and that call depth and stack capacity suffice.
        let at = self.long(callee.tier.entry_address() as i64);
        let entry = self.b.ins().load(types::I64, OWN, at, 0);
        let left = self.b.ins().load(types::I64, OWN, self.context, context::CALLS_LEFT);
        let capacity = self.b.ins().load(types::I64, OWN, self.context, context::CAPACITY);
        let zero = self.long(0);
        let shift = self.long(i64::from(b));
        let base = self.b.ins().iadd(self.base, shift);
        let size = self.long(callee.registers as i64);
        let end = self.b.ins().iadd(base, size);
        let no_code = self.b.ins().icmp(IntCC::Equal, entry, zero);
        self.exit_if(no_code, slow);
        let too_deep = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, left, zero);
        self.exit_if(too_deep, slow);
        let exceeds_capacity = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, capacity);
        self.exit_if(exceeds_capacity, slow);

        let top = self.b.ins().load(types::I64, OWN, self.context, context::LIGHT);
        let code = self.long(std::rc::Rc::as_ptr(callee) as i64);
        let behind = self.long(pc as i64 + 1);
        let func = self.long(i64::from(f.0));
        self.b.ins().store(OWN, code, top, light::CODE);
        self.b.ins().store(OWN, base, top, light::BASE);
        self.b.ins().store(OWN, behind, top, light::CALLER);
        self.b.ins().store(OWN, func, top, light::FUNC);
        let size = self.long(light::SIZE);
        let above = self.b.ins().iadd(top, size);
        self.b.ins().store(OWN, above, self.context, context::LIGHT);
        let one = self.long(1);
        let fewer = self.b.ins().isub(left, one);
        self.b.ins().store(OWN, fewer, self.context, context::CALLS_LEFT);
        let args = [self.machine, self.context, base, zero];
        let call = self.b.ins().call_indirect(self.calls.step, entry, &args);
        let status = self.b.inst_results(call).first().copied().unwrap_or(Clif::from_u32(0));
        let [unusual, usual, pop, result] = [(); 4].map(|()| self.b.create_block());
        self.b.set_cold_block(unusual);
        self.b.set_cold_block(pop);
        self.b.ins().brif(status, unusual, &[], usual, &[]);

        self.b.switch_to_block(usual);
        self.b.ins().store(OWN, top, self.context, context::LIGHT);
        self.b.ins().store(OWN, left, self.context, context::CALLS_LEFT);
        let real = self.b.ins().load(types::I64, OWN, self.context, context::REAL);
        let is_real = self.b.ins().icmp(IntCC::UnsignedGreaterThan, real, top);
        self.b.ins().brif(is_real, pop, &[], result, &[]);

        self.b.switch_to_block(pop);
        let callee = self.long(self.source.addresses.pop as i64);
        self.b.ins().call_indirect(self.calls.copy, callee, &[self.machine, self.context]);
        self.b.ins().jump(result, &[]);

        self.b.switch_to_block(unusual);
        let failed = self.failed();
        let exit = self.long(EXIT);
        let left_code = self.b.ins().icmp(IntCC::Equal, status, exit);
        let resumes = self.b.create_block();
        self.b.ins().brif(left_code, resumes, &[], failed, &[]);
        self.b.switch_to_block(resumes);
        let callee = self.long(self.source.addresses.resume as i64);
        let args = [self.machine, zero, zero, zero];
        let call = self.b.ins().call_indirect(self.calls.step, callee, &args);
        let status = self.b.inst_results(call).first().copied().unwrap_or(Clif::from_u32(0));
        self.b.ins().brif(status, failed, &[], result, &[]);

        self.b.switch_to_block(result);
        self.load_cell_address();
        let taken = |emit: &mut Self| {
            let cell = emit.cell(d);
            let callee = emit.long(emit.source.addresses.take_result as i64);
            emit.b.ins().call_indirect(emit.calls.copy, callee, &[emit.context, cell]);
        };
        if known == Kind::Cell {
            taken(self);
            self.b.ins().jump(on, &[]);
        } else {
            let other = self.b.create_block();
            self.b.set_cold_block(other);
            let value = self.load_from(self.context, context::RESULT, known, other);
            self.b.ins().jump(on, &[value.into()]);
            self.b.switch_to_block(other);
            taken(self);
            let out = self.exit(pc + 1, &stored);
            self.b.ins().jump(out, &[]);
        }

        self.b.switch_to_block(slow);
        self.call(pc, op, kinds, after);
        if known == Kind::Cell {
            self.b.ins().jump(on, &[]);
        } else {
            let value = self.value(d, known);
            self.b.ins().jump(on, &[value.into()]);
        }
        self.b.switch_to_block(on);
        if let Some(value) = param {
            self.define(d, known, value);
        }
        false
    }

    fn failed(&mut self) -> ClifBlock {
        match self.failed {
            Some(block) => block,
            None => {
                let block = self.b.create_block();
                self.b.set_cold_block(block);
                self.failed = Some(block);
                block
            }
        }
    }

    /// Arithmetic of counts; divisors are not zero.
    fn count_arithmetic(&mut self, pc: usize, op: Op, d: Reg, x: Clif, y: Clif, kinds: &[Kind]) {
        let value = match op {
            Op::AddC { .. } | Op::AddCK { .. } => self.b.ins().iadd(x, y),
            Op::MulC { .. } | Op::MulCK { .. } => self.b.ins().imul(x, y),
            Op::SubC { .. } | Op::SubCK { .. } => {
                let below = self.b.ins().icmp(IntCC::UnsignedLessThan, x, y);
                let out = self.exit(pc, kinds);
                self.exit_if(below, out);
                self.b.ins().isub(x, y)
            }
            Op::DivC { .. } | Op::DivCK { .. } => self.b.ins().udiv(x, y),
            _ => self.b.ins().urem(x, y),
        };
        self.define(d, Kind::Count, value);
    }

    /// Converts a number.
    fn convert(&mut self, pc: usize, s: Reg, to: Kind, kinds: &[Kind]) -> Option<Clif> {
        let site = self.source.code.sites.get(pc)?;
        let expr = self.source.program.exprs.find(*site)?;
        let ExprKind::Coerce(Coercion::Arithmetic, _) = expr.kind else { return None };
        if self.source.program.types.tag(expr.ty) == Tag::Enum {
            return None;
        }
        let from = kind(kinds, s);
        let value = match (from, to) {
            (Kind::Count, Kind::Count) | (Kind::Int, Kind::Int) => self.value(s, from),
            (Kind::Count, Kind::Int) | (Kind::Int, Kind::Count) => {
                let value = self.value(s, from);
                let zero = self.long(0);
                let beyond = self.b.ins().icmp(IntCC::SignedLessThan, value, zero);
                let out = self.exit(pc, kinds);
                self.exit_if(beyond, out);
                value
            }
            (Kind::Count, to) if to.is_float() => {
                let value = self.value(s, from);
                self.b.ins().fcvt_from_uint(types::F64, value)
            }
            (Kind::Int, to) if to.is_float() => {
                let value = self.value(s, from);
                self.b.ins().fcvt_from_sint(types::F64, value)
            }
            (from, to) if from.is_float() && to.is_float() => self.value(s, from),
            _ => return None,
        };
        Some(value)
    }

    fn constant(&mut self, d: Reg, k: u32, known: Kind) {
        let code = self.source.code;
        let Some(value) = code.consts.get(k as usize) else { return };
        match (known, bits_of(value)) {
            (Kind::Cell, _) | (_, None) => {
                let at = self.long(std::ptr::from_ref::<Value>(value) as i64);
                let cells = self.b.use_var(self.cells);
                self.copy((cells, cell_offset(d)), (at, 0));
            }
            (known, Some(bits)) => {
                let value = if known.is_float() {
                    self.b.ins().f64const(f64::from_bits(bits))
                } else {
                    self.long(bits.cast_signed())
                };
                self.define(d, known, value);
            }
        }
    }

    /// Whether a register holds `T`, as an integer.
    fn truth(&mut self, s: Reg, kinds: &[Kind]) -> Clif {
        match kind(kinds, s) {
            Kind::Bool => self.value(s, Kind::Bool),
            Kind::Cell => {
                let cells = self.b.use_var(self.cells);
                let word = self.b.ins().load(types::I16, OWN, cells, cell_offset(s));
                let yes = self.b.ins().iconst(types::I16, i64::from(BOOL) | 1 << 8);
                self.b.ins().icmp(IntCC::Equal, word, yes)
            }
            _ => self.long(0),
        }
    }

    fn branch(&mut self, pc: usize, holds: Clif, jumps: bool, to: u32, kinds: &[Kind]) {
        let to = self.edge(to as usize, kinds);
        let on = self.edge(pc + 1, kinds);
        if jumps {
            self.b.ins().brif(holds, to, &[], on, &[]);
        } else {
            self.b.ins().brif(holds, on, &[], to, &[]);
        }
    }

    /// The block to jump to for the instruction `pc`: an intermediate one if variables must be stored first.
    fn edge(&mut self, pc: usize, kinds: &[Kind]) -> ClifBlock {
        let index = self.flow().block_at.get(pc).copied().flatten();
        let target = index.and_then(|index| self.flow().kinds.get(index)?.clone());
        let to = index.and_then(|index| self.blocks.get(index).copied());
        let (Some(target), Some(to)) = (target, to) else { return self.exit(pc, kinds) };
        let live = self.flow().live_at(pc);
        let spills: Vec<(Reg, Kind)> = live
            .iter()
            .filter(|reg| kind(kinds, *reg) != Kind::Cell && kind(&target, *reg) == Kind::Cell)
            .map(|reg| (reg, kind(kinds, reg)))
            .collect();
        if spills.is_empty() {
            return to;
        }
        let block = self.b.create_block();
        self.edges.push(Edge { block, spills, to });
        block
    }

    /// The exit to the interpreter at `pc`.
    fn exit(&mut self, pc: usize, kinds: &[Kind]) -> ClifBlock {
        let live = self.flow().live_at(pc);
        let spills = live
            .iter()
            .filter(|reg| kind(kinds, *reg) != Kind::Cell)
            .map(|reg| (reg, kind(kinds, reg)))
            .collect();
        self.exit_with(pc, spills)
    }

    fn exit_with(&mut self, pc: usize, spills: Vec<(Reg, Kind)>) -> ClifBlock {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        self.exits.push(Exit { block, spills, pc });
        block
    }

    fn exit_if(&mut self, condition: Clif, out: ClifBlock) {
        let on = self.b.create_block();
        self.b.ins().brif(condition, out, &[], on, &[]);
        self.b.switch_to_block(on);
    }

    /// Two operands of kind `want`.
    fn two(&mut self, pc: usize, a: Reg, b: Reg, want: Kind, kinds: &[Kind]) -> (Clif, Clif) {
        let x = self.operand(pc, a, want, kinds);
        let y = self.operand(pc, b, want, kinds);
        (x, y)
    }

    /// An operand of kind `want`; the interpreter continues if it has another kind.
    fn operand(&mut self, pc: usize, reg: Reg, want: Kind, kinds: &[Kind]) -> Clif {
        let known = kind(kinds, reg);
        if known == want {
            return self.value(reg, want);
        }
        let out = self.exit(pc, kinds);
        if known == Kind::Cell {
            return self.load(reg, want, out);
        }
        let always = self.long(1);
        self.exit_if(always, out);
        if want.is_float() { self.b.ins().f64const(0.0) } else { self.long(0) }
    }

    /// An operand that is a double, time or interval.
    fn float(&mut self, pc: usize, reg: Reg, kinds: &[Kind]) -> Clif {
        match kind(kinds, reg) {
            known if known.is_float() => self.value(reg, known),
            Kind::Cell => {
                let out = self.exit(pc, kinds);
                let cells = self.b.use_var(self.cells);
                let tag = self.b.ins().load(types::I8, OWN, cells, cell_offset(reg));
                let first = self.byte(tag_of(Kind::Double));
                let offset = self.b.ins().isub(tag, first);
                let last = self.byte(tag_of(Kind::Interval) - tag_of(Kind::Double));
                let other = self.b.ins().icmp(IntCC::UnsignedGreaterThan, offset, last);
                self.exit_if(other, out);
                let cells = self.b.use_var(self.cells);
                self.b.ins().load(types::F64, OWN, cells, cell_offset(reg) + NUMBER)
            }
            _ => self.operand(pc, reg, Kind::Double, kinds),
        }
    }

    /// Loads a number from a cell; continues at `out` if the cell has another kind.
    fn load(&mut self, reg: Reg, want: Kind, out: ClifBlock) -> Clif {
        let cells = self.b.use_var(self.cells);
        self.load_from(cells, cell_offset(reg), want, out)
    }

    fn load_from(&mut self, at: Clif, offset: i32, want: Kind, out: ClifBlock) -> Clif {
        let tag = self.b.ins().load(types::I8, OWN, at, offset);
        let wanted = self.byte(tag_of(want));
        let other = self.b.ins().icmp(IntCC::NotEqual, tag, wanted);
        self.exit_if(other, out);
        match want {
            Kind::Bool => {
                let value = self.b.ins().load(types::I8, OWN, at, offset + 1);
                self.b.ins().uextend(types::I64, value)
            }
            known => self.b.ins().load(clif_type(known), OWN, at, offset + NUMBER),
        }
    }

    /// Stores a number in a cell that owns no memory.
    fn store(&mut self, at: Clif, offset: i32, known: Kind, value: Clif) {
        // All bytes are written at once, because a wide load after several narrow stores prevents store
        // forwarding.
        let tag = self.long(i64::from(tag_of(known)));
        let first = if known == Kind::Bool {
            let eight = self.long(8);
            let value = self.b.ins().ishl(value, eight);
            self.b.ins().bor(value, tag)
        } else {
            tag
        };
        let cell = self.b.ins().scalar_to_vector(types::I64X2, first);
        let cell = match known {
            Kind::Bool => cell,
            known => {
                let number = if known.is_float() {
                    self.b.ins().bitcast(types::I64, MemFlagsData::new(), value)
                } else {
                    value
                };
                self.b.ins().insertlane(cell, number, 1)
            }
        };
        self.b.ins().store(CELL, cell, at, offset);
    }

    /// Stores a variable in its cell and drops the previous value.
    fn spill(&mut self, reg: Reg, known: Kind) {
        let cells = self.b.use_var(self.cells);
        let value = self.value(reg, known);
        let tag = self.b.ins().load(types::I8, OWN, cells, cell_offset(reg));
        let last = self.byte(LAST_PLAIN);
        let owns = self.b.ins().icmp(IntCC::UnsignedGreaterThan, tag, last);
        let [slow, fast, on] = [(); 3].map(|()| self.b.create_block());
        self.b.set_cold_block(slow);
        self.b.ins().brif(owns, slow, &[], fast, &[]);
        self.b.switch_to_block(slow);
        let cell = self.cell(reg);
        self.put_number(cell, known, value);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(fast);
        self.store(cells, cell_offset(reg), known, value);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Unsets a cell and drops its value.
    fn unset(&mut self, reg: Reg) {
        let cells = self.b.use_var(self.cells);
        let tag = self.b.ins().load(types::I8, OWN, cells, cell_offset(reg));
        let last = self.byte(LAST_PLAIN);
        let owns = self.b.ins().icmp(IntCC::UnsignedGreaterThan, tag, last);
        let [slow, fast, on] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(owns, slow, &[], fast, &[]);
        self.b.switch_to_block(slow);
        let cell = self.cell(reg);
        let zero = self.long(0);
        self.put_bits(cell, zero, zero);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(fast);
        let unset = self.byte(UNSET);
        self.b.ins().store(OWN, unset, cells, cell_offset(reg));
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    fn put_bits(&mut self, cell: Clif, tag: Clif, bits: Clif) {
        let callee = self.long(self.source.addresses.put_number as i64);
        self.b.ins().call_indirect(self.calls.put, callee, &[cell, tag, bits]);
    }

    /// Stores a number in a cell by a call, which drops the previous value.
    fn put_number(&mut self, cell: Clif, known: Kind, value: Clif) {
        let tag = self.long(i64::from(tag_of(known)));
        let bits = if known.is_float() {
            self.b.ins().bitcast(types::I64, MemFlagsData::new(), value)
        } else {
            value
        };
        self.put_bits(cell, tag, bits);
    }

    fn copy_cell(&mut self, d: Reg, s: Reg) {
        let cells = self.b.use_var(self.cells);
        self.copy((cells, cell_offset(d)), (cells, cell_offset(s)));
    }

    /// Copies a cell: as two words if neither cell owns memory, otherwise by a call.
    fn copy(&mut self, d: (Clif, i32), s: (Clif, i32)) {
        let from = self.b.ins().load(types::I8, OWN, s.0, s.1);
        let old = self.b.ins().load(types::I8, OWN, d.0, d.1);
        let more = self.b.ins().umax(from, old);
        let last = self.byte(LAST_PLAIN);
        let owns = self.b.ins().icmp(IntCC::UnsignedGreaterThan, more, last);
        let [slow, fast, on] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(owns, slow, &[], fast, &[]);
        self.b.switch_to_block(slow);
        // Loops load the same object repeatedly.
        let words = [d, s].map(|(at, offset)| {
            let tag = self.b.ins().load(types::I8, OWN, at, offset);
            (tag, self.b.ins().load(types::I64, OWN, at, offset + NUMBER))
        });
        let tags = self.b.ins().icmp(IntCC::Equal, words[0].0, words[1].0);
        let objects = self.b.ins().icmp(IntCC::Equal, words[0].1, words[1].1);
        let same = self.b.ins().band(tags, objects);
        self.exit_if(same, on);
        let callee = self.long(self.source.addresses.copy as i64);
        let [to, at] = [d, s].map(|(at, offset)| {
            let offset = self.long(i64::from(offset));
            self.b.ins().iadd(at, offset)
        });
        self.b.ins().call_indirect(self.calls.copy, callee, &[to, at]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(fast);
        self.copy_bytes(d, s);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Copies the 16 bytes of a cell with one store, so that a later 16-byte load of the copy is forwarded.
    fn copy_bytes(&mut self, d: (Clif, i32), s: (Clif, i32)) {
        let cell = self.b.ins().load(types::I64X2, CELL, s.0, s.1);
        self.b.ins().store(CELL, cell, d.0, d.1);
    }

    /// The address of a cell.
    fn cell(&mut self, reg: Reg) -> Clif {
        let cells = self.b.use_var(self.cells);
        let offset = self.long(i64::from(cell_offset(reg)));
        self.b.ins().iadd(cells, offset)
    }

    fn variable(&mut self, reg: Reg, known: Kind) -> Variable {
        let variables = if known.is_float() { &mut self.floats } else { &mut self.ints };
        match variables.get(&reg) {
            Some(variable) => *variable,
            None => {
                let variable = self.b.declare_var(clif_type(known));
                variables.insert(reg, variable);
                variable
            }
        }
    }

    fn value(&mut self, reg: Reg, known: Kind) -> Clif {
        let variable = self.variable(reg, known);
        self.b.use_var(variable)
    }

    fn define(&mut self, reg: Reg, known: Kind, value: Clif) {
        let variable = self.variable(reg, known);
        self.b.def_var(variable, value);
        // Backtraces read parameters.
        if self.flow().params.len() > usize::from(reg) && known != Kind::Cell {
            self.spill(reg, known);
        }
    }

    fn define_bool(&mut self, reg: Reg, holds: Clif) {
        let value = self.b.ins().uextend(types::I64, holds);
        self.define(reg, Kind::Bool, value);
    }
}

fn kind(kinds: &[Kind], reg: Reg) -> Kind {
    kinds.get(usize::from(reg)).copied().unwrap_or(Kind::Cell)
}

/// The offset of a cell in the frame.
fn cell_offset(reg: Reg) -> i32 {
    i32::from(reg) * CELL_SIZE as i32
}

fn clif_type(known: Kind) -> ClifType {
    if known.is_float() { types::F64 } else { types::I64 }
}

fn unsigned(c: Cond) -> IntCC {
    match c {
        Cond::Lt => IntCC::UnsignedLessThan,
        Cond::Le => IntCC::UnsignedLessThanOrEqual,
        Cond::Eq => IntCC::Equal,
        Cond::Ne => IntCC::NotEqual,
        Cond::Ge => IntCC::UnsignedGreaterThanOrEqual,
        Cond::Gt => IntCC::UnsignedGreaterThan,
    }
}

fn signed(c: Cond) -> IntCC {
    match c {
        Cond::Lt => IntCC::SignedLessThan,
        Cond::Le => IntCC::SignedLessThanOrEqual,
        Cond::Eq => IntCC::Equal,
        Cond::Ne => IntCC::NotEqual,
        Cond::Ge => IntCC::SignedGreaterThanOrEqual,
        Cond::Gt => IntCC::SignedGreaterThan,
    }
}

fn floating(c: Cond) -> FloatCC {
    match c {
        Cond::Lt => FloatCC::LessThan,
        Cond::Le => FloatCC::LessThanOrEqual,
        Cond::Eq => FloatCC::Equal,
        Cond::Ne => FloatCC::NotEqual,
        Cond::Ge => FloatCC::GreaterThanOrEqual,
        Cond::Gt => FloatCC::GreaterThan,
    }
}
