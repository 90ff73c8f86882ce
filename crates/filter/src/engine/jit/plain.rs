//! Code instruction by instruction, for programs with loops: header chains, and programs of other
//! compilers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block as ClifBlock, InstBuilder, Value as Clif, types};
use cranelift_frontend::Variable;

use super::emit::Emit;
use crate::bpf::*;

/// Emits a program.
pub(super) fn emit(program: &[Insn], emit: &mut Emit<'_, '_>) {
    let target = |at: usize, insn: &Insn, jump: u8| {
        let by =
            if insn.code & 0xf0 == JA { insn.k.cast_signed() as isize } else { isize::from(jump) };
        (at + 1).wrapping_add_signed(by)
    };
    let mut blocks: Vec<Option<ClifBlock>> = vec![None; program.len()];
    for (at, insn) in program.iter().enumerate() {
        let jumps = insn.code & 7 == JMP;
        let to = [target(at, insn, insn.jt), target(at, insn, insn.jf), at + 1];
        for to in to.into_iter().take(if jumps { 3 } else { 0 }) {
            if let Some(block) = blocks.get_mut(to) {
                block.get_or_insert_with(|| emit.b.create_block());
            }
        }
    }
    let mut plain = Plain {
        a: emit.b.declare_var(types::I32),
        x: emit.b.declare_var(types::I32),
        memory: (0..MEMORY).map(|_| emit.b.declare_var(types::I32)).collect(),
        steps: emit.b.declare_var(types::I32),
        loops: program
            .iter()
            .any(|i| i.code & 7 == JMP && i.code & 0xf0 == JA && i.k.cast_signed() < 0),
        pending: 0,
        reject: emit.b.create_block(),
    };
    let zero = emit.word(0);
    for var in [plain.a, plain.x].into_iter().chain(plain.memory.iter().copied()) {
        emit.b.def_var(var, zero);
    }
    let steps = emit.word(MAX_STEPS as u32);
    emit.b.def_var(plain.steps, steps);
    let mut open = true;
    for (at, insn) in program.iter().enumerate() {
        if let Some(block) = blocks[at] {
            if open {
                plain.count(emit);
                emit.b.ins().jump(block, &[]);
            }
            emit.b.switch_to_block(block);
        } else if !open {
            // Unreachable code after a return.
            continue;
        }
        plain.pending += 1;
        let reject = plain.reject;
        let block = |to: usize| blocks.get(to).copied().flatten().unwrap_or(reject);
        if insn.code & 7 == JMP {
            plain.count(emit);
            if plain.loops && insn.code & 0xf0 == JA && insn.k.cast_signed() < 0 {
                plain.in_time(emit);
            }
            let (yes, no) = (block(target(at, insn, insn.jt)), block(target(at, insn, insn.jf)));
            if insn.code & 0xf0 == JA || yes == no {
                emit.b.ins().jump(yes, &[]);
            } else {
                let a = emit.b.use_var(plain.a);
                let operand = plain.operand(emit, insn);
                let holds = emit.compare(insn.code & 0xf0, a, operand);
                emit.b.ins().brif(holds, yes, &[], no, &[]);
            }
            open = false;
        } else {
            open = plain.step(emit, insn);
        }
    }
    if open {
        emit.b.ins().jump(plain.reject, &[]);
    }
    emit.b.switch_to_block(plain.reject);
    emit.reject();
}

struct Plain {
    a: Variable,
    x: Variable,
    memory: Vec<Variable>,
    /// Remaining instructions before the interpreter's limit.
    steps: Variable,
    /// Whether the program has backward jumps.
    loops: bool,
    /// Instructions emitted since the last count.
    pending: u32,
    reject: ClifBlock,
}

impl Plain {
    /// Continues only if the condition holds.
    fn check(&mut self, emit: &mut Emit<'_, '_>, holds: Clif) {
        let next = emit.b.create_block();
        emit.b.ins().brif(holds, next, &[], self.reject, &[]);
        emit.b.switch_to_block(next);
    }

    /// Counts the instructions emitted since the last time.
    fn count(&mut self, emit: &mut Emit<'_, '_>) {
        let pending = std::mem::take(&mut self.pending);
        if self.loops && pending > 0 {
            let left = emit.b.use_var(self.steps);
            let less = emit.b.ins().iadd_imm_s(left, -i64::from(pending));
            emit.b.def_var(self.steps, less);
        }
    }

    /// Continues only below the interpreter's limit.
    fn in_time(&mut self, emit: &mut Emit<'_, '_>) {
        let left = emit.b.use_var(self.steps);
        let holds = emit.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left, 0);
        self.check(emit, holds);
    }

    fn operand(&mut self, emit: &mut Emit<'_, '_>, insn: &Insn) -> Clif {
        if insn.code & X == 0 { emit.word(insn.k) } else { emit.b.use_var(self.x) }
    }

    fn load(&mut self, emit: &mut Emit<'_, '_>, size: u8, base: Option<Clif>, k: u32) -> Clif {
        let end = u64::from(k) + u64::from(size);
        let (from, end) = match base {
            None => (emit.data, emit.long(end)),
            Some(base) => {
                let base = emit.b.ins().uextend(types::I64, base);
                let from = emit.b.ins().iadd(emit.data, base);
                (from, emit.b.ins().iadd_imm_u(base, end.cast_signed()))
            }
        };
        let there = emit.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, emit.len);
        self.check(emit, there);
        let raw = match i32::try_from(k) {
            Ok(offset) => emit.raw(size, from, offset),
            Err(_) => {
                let from = emit.b.ins().iadd_imm_u(from, i64::from(k));
                emit.raw(size, from, 0)
            }
        };
        emit.ordered(size, raw)
    }

    /// Emits an instruction that is not a jump; returns false if the program ends here.
    fn step(&mut self, emit: &mut Emit<'_, '_>, insn: &Insn) -> bool {
        let Insn { code, k, .. } = *insn;
        let size = match code & 0x18 {
            W => 4,
            H => 2,
            _ => 1,
        };
        let word = self.memory.get(k as usize).copied();
        let loaded = match (code & 7, code & 0xe0) {
            (LD, ABS) => Some(self.load(emit, size, None, k)),
            (LD, IND) => {
                let x = emit.b.use_var(self.x);
                Some(self.load(emit, size, Some(x), k))
            }
            (LDX, MSH) => {
                let byte = self.load(emit, 1, None, k);
                let low = emit.b.ins().band_imm_u(byte, 15);
                Some(emit.b.ins().ishl_imm_u(low, 2))
            }
            (LD | LDX, IMM) => Some(emit.word(k)),
            (LD | LDX, LEN) => Some(emit.wire),
            (LD | LDX, MEM) => word.map(|w| emit.b.use_var(w)),
            _ => None,
        };
        match code & 7 {
            LD | LDX => {
                let Some(value) = loaded else {
                    emit.b.ins().jump(self.reject, &[]);
                    return false;
                };
                emit.b.def_var(if code & 7 == LD { self.a } else { self.x }, value);
            }
            ST | STX => {
                let value = emit.b.use_var(if code & 7 == ST { self.a } else { self.x });
                if let Some(word) = word {
                    emit.b.def_var(word, value);
                }
            }
            ALU => {
                let op = code & 0xf0;
                let a = emit.b.use_var(self.a);
                let operand = self.operand(emit, insn);
                let constant = (code & X == 0).then_some(k);
                if matches!(op, DIV | MOD) && constant.is_none_or(|k| k == 0) {
                    self.check(emit, operand);
                }
                let result = emit.binary(op, a, operand, constant);
                emit.b.def_var(self.a, result);
            }
            RET => {
                self.count(emit);
                if self.loops {
                    self.in_time(emit);
                }
                if code & 0x18 == 0x10 {
                    let kept = emit.b.use_var(self.a);
                    emit.finish(kept);
                } else {
                    emit.conclude(k);
                }
                return false;
            }
            _ => {
                let (from, to) =
                    if code & 0xf8 == TAX { (self.a, self.x) } else { (self.x, self.a) };
                let value = emit.b.use_var(from);
                emit.b.def_var(to, value);
            }
        }
        true
    }
}
