//! Registers that instructions read and write, and where they continue.

use std::rc::Rc;

use super::{Code, NO_REG, Op, RecordPlan, Reg, Target, WhenPlan};
use crate::ast::ExprKind;
use crate::ids::ExprId;
use crate::program::Program;

/// A range of registers.
pub(crate) type Range = (Reg, u16);

/// Registers that an instruction reads and writes.
#[derive(Default)]
pub(crate) struct Operands {
    pub uses: Vec<Range>,
    pub defs: Vec<Range>,
}

/// Where an instruction continues.
pub(crate) enum Next {
    /// The next instruction.
    Falls,
    /// At a target.
    Jumps(Target),
    /// The next instruction or a target.
    Branches(Target),
    /// None: it ends the frame, or the interpreter continues.
    Ends,
}

/// The target of a jump.
pub(crate) fn target(op: &mut Op) -> Option<&mut Target> {
    match op {
        Op::Jump { to }
        | Op::JumpIf { to, .. }
        | Op::JumpIfNot { to, .. }
        | Op::SkipUnset { to, .. }
        | Op::JumpC { to, .. }
        | Op::JumpCK { to, .. }
        | Op::JumpI { to, .. }
        | Op::JumpIK { to, .. }
        | Op::JumpHas { to, .. }
        | Op::JumpSame { to, .. }
        | Op::JumpIn { to, .. }
        | Op::NextEntry { to, .. }
        | Op::NextItem { to, .. }
        | Op::AssertSkip { to, .. } => Some(to),
        _ => None,
    }
}

pub(crate) fn next(op: &Op) -> Next {
    let mut op = *op;
    match op {
        Op::Jump { to } => Next::Jumps(to),
        Op::Return { .. } | Op::End | Op::Break | Op::Fail { .. } => Next::Ends,
        _ => target(&mut op).map_or(Next::Falls, |to| Next::Branches(*to)),
    }
}

/// Tables that determine the number of registers that some instructions read.
#[derive(Clone, Copy)]
pub(crate) struct OperandTables<'a> {
    pub records: &'a [RecordPlan],
    pub whens: &'a [Rc<WhenPlan>],
}

impl<'a> From<&'a Code> for OperandTables<'a> {
    fn from(code: &'a Code) -> Self {
        Self { records: &code.records, whens: &code.whens }
    }
}

/// The operands of an instruction.
pub(crate) fn operands(program: &Program, tables: OperandTables<'_>, op: &Op) -> Operands {
    let mut uses: Vec<Range> = Vec::new();
    let mut defs: Vec<Range> = Vec::new();
    let captures = |expr: ExprId| match program.exprs.find(expr).map(|expr| &expr.kind) {
        Some(ExprKind::Lambda(lambda)) => lambda.captures.len() as u16,
        _ => 0,
    };
    match *op {
        Op::Move { d, s }
        | Op::Pass { d, s }
        | Op::Coerce { d, s }
        | Op::Cast { d, s }
        | Op::Is { d, s, .. }
        | Op::Holds { d, s, .. }
        | Op::CanCast { d, s, .. }
        | Op::Walk { d, s } => {
            uses.push((s, 1));
            defs.push((d, 1));
        }
        Op::Const { d, .. }
        | Op::Global { d, .. }
        | Op::Capture { d, .. }
        | Op::InitLocal { d, .. }
        | Op::NewTable { d, .. } => defs.push((d, 1)),
        Op::SetGlobal { s, .. }
        | Op::SetCapture { s, .. }
        | Op::Check { s }
        | Op::Attrs { s, .. }
        | Op::DeleteAll { s }
        | Op::Return { s }
        | Op::JumpIf { s, .. }
        | Op::JumpIfNot { s, .. }
        | Op::SkipUnset { s, .. } => uses.push((s, 1)),
        Op::Default { t, s } => uses.extend([(t, 1), (s, 1)]),
        Op::Jump { .. } | Op::Begin { .. } | Op::End | Op::Break | Op::Fail { .. } => (),
        Op::JumpC { a, b, .. } | Op::JumpI { a, b, .. } | Op::JumpSame { a, b, .. } => {
            uses.extend([(a, 1), (b, 1)]);
        }
        Op::JumpCK { a, .. } | Op::JumpIK { a, .. } => uses.push((a, 1)),
        Op::JumpHas { r, .. } => uses.push((r, 1)),
        Op::JumpIn { t, k, n, .. } => uses.extend([(t, 1), (k, u16::from(n))]),
        Op::AddC { d, a, b }
        | Op::SubC { d, a, b }
        | Op::MulC { d, a, b }
        | Op::DivC { d, a, b }
        | Op::ModC { d, a, b }
        | Op::AddI { d, a, b }
        | Op::SubI { d, a, b }
        | Op::MulI { d, a, b }
        | Op::AddD { d, a, b }
        | Op::SubD { d, a, b }
        | Op::MulD { d, a, b }
        | Op::DivD { d, a, b }
        | Op::CmpC { d, a, b, .. }
        | Op::CmpI { d, a, b, .. }
        | Op::CmpD { d, a, b, .. }
        | Op::Binary { d, a, b, .. }
        | Op::In { d, a, b }
        | Op::AddTo { d, a, b }
        | Op::RemoveFrom { d, a, b } => {
            uses.extend([(a, 1), (b, 1)]);
            defs.push((d, 1));
        }
        Op::AddCK { d, a, .. }
        | Op::SubCK { d, a, .. }
        | Op::MulCK { d, a, .. }
        | Op::DivCK { d, a, .. }
        | Op::ModCK { d, a, .. }
        | Op::AddIK { d, a, .. }
        | Op::Unary { d, a, .. }
        | Op::Not { d, a } => {
            uses.push((a, 1));
            defs.push((d, 1));
        }
        Op::Select { d, b } => {
            uses.push((b, 3));
            defs.push((d, 1));
        }
        Op::Append { d, s } => {
            uses.extend([(d, 1), (s, 1)]);
            defs.push((d, 1));
        }
        Op::Field { d, r, .. } | Op::Path { d, r, .. } | Op::HasField { d, r, .. } => {
            uses.push((r, 1));
            defs.push((d, 1));
        }
        Op::SetField { r, s, .. } => uses.extend([(r, 1), (s, 1)]),
        Op::DeleteField { r, .. } => uses.push((r, 1)),
        Op::IndexTable { d, t, k, n } | Op::InTable { d, t, k, n } => {
            uses.extend([(t, 1), (k, u16::from(n))]);
            defs.push((d, 1));
        }
        Op::SetTable { t, k, n, s } => uses.extend([(t, 1), (k, u16::from(n)), (s, 1)]),
        Op::IndexVector { d, v, i } => {
            uses.extend([(v, 1), (i, 1)]);
            defs.push((d, 1));
        }
        Op::SetVector { v, i, s } => uses.extend([(v, 1), (i, 1), (s, 1)]),
        Op::Index { d, b, i } => {
            uses.extend([(b, 1), (i, 1)]);
            defs.push((d, 1));
        }
        Op::Slice { d, b, from } => {
            uses.extend([(b, 1), (from, 2)]);
            defs.push((d, 1));
        }
        Op::SetSlice { v, from, s } => uses.extend([(v, 1), (from, 2), (s, 1)]),
        Op::AddKey { t, k, n } | Op::DeleteKey { t, k, n } => {
            uses.extend([(t, 1), (k, u16::from(n))]);
        }
        Op::NewRecord { d, b, plan } => {
            let n = tables.records.get(plan as usize).map_or(0, |plan| plan.offsets.len());
            uses.push((b, n as u16));
            defs.push((d, 1));
        }
        Op::Entry { t, k, n, s } => {
            uses.extend([(t, 1), (k, u16::from(n))]);
            if s != NO_REG {
                uses.push((s, 1));
            }
        }
        Op::NewVector { d, b, n, .. } | Op::NewList { d, b, n, .. } => {
            uses.push((b, n));
            defs.push((d, 1));
        }
        Op::Spread { s, d, n } => {
            uses.push((s, 1));
            defs.push((d, n));
        }
        Op::Call { d, b, n, .. } => {
            uses.push((b, u16::from(n)));
            defs.push((d, 1));
        }
        Op::CallValue { d, b, n, f } => {
            uses.extend([(f, 1), (b, u16::from(n))]);
            defs.push((d, 1));
        }
        Op::Lambda { d, b, e } => {
            uses.push((b, captures(e)));
            defs.push((d, 1));
        }
        Op::Event { b, n, .. } => uses.push((b, u16::from(n))),
        Op::Schedule { when, b, n, .. } => uses.extend([(when, 1), (b, u16::from(n))]),
        Op::Print { b, n } => uses.push((b, n)),
        Op::NextEntry { w, k, n, v, .. } => {
            uses.push((w, 1));
            if n > 0 && k != NO_REG {
                defs.push((k, u16::from(n)));
            }
            if v != NO_REG {
                defs.push((v, 1));
            }
        }
        Op::NextItem { w, k, v, .. } => {
            uses.push((w, 1));
            defs.extend([k, v].into_iter().filter(|reg| *reg != NO_REG).map(|reg| (reg, 1)));
        }
        Op::When { plan, b, timeout } => {
            let n = tables.whens.get(plan as usize).map_or(0, |plan| plan.when.captures.len());
            uses.push((b, n as u16));
            if timeout != NO_REG {
                uses.push((timeout, 1));
            }
        }
        Op::AssertSkip { c, .. } => uses.push((c, 1)),
        Op::Assert { c, m, .. } => {
            uses.push((c, 1));
            if m != NO_REG {
                uses.push((m, 1));
            }
        }
    }
    Operands { uses, defs }
}
