//! Data flow of code: operands of instructions, live registers, and the kind of each register's value.

use crate::code::operands::{Next, next, operands};
use crate::code::{Code, Op, Reg};
use crate::ids::{BodyId, LocalId, TypeId};
use crate::program::Program;
use crate::types::{Flavor, Tag, Type};
use crate::value::Value;

/// Representation of a register's value at a point of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// In its cell.
    Cell,
    /// In a variable, as a number of this kind; the cell is stale.
    Bool,
    Int,
    Count,
    Double,
    Time,
    Interval,
}

impl Kind {
    /// The kind of the values of a type.
    pub(super) fn from_tag(tag: Tag) -> Self {
        match tag {
            Tag::Bool => Self::Bool,
            Tag::Int => Self::Int,
            Tag::Count => Self::Count,
            Tag::Double => Self::Double,
            Tag::Time => Self::Time,
            Tag::Interval => Self::Interval,
            _ => Self::Cell,
        }
    }

    fn from_value(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Bool,
            Value::Int(_) => Self::Int,
            Value::Count(_) => Self::Count,
            Value::Double(_) => Self::Double,
            Value::Time(_) => Self::Time,
            Value::Interval(_) => Self::Interval,
            _ => Self::Cell,
        }
    }

    /// Whether it is a floating-point number.
    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::Double | Self::Time | Self::Interval)
    }
}

/// A set of registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RegSet(Vec<u64>);

impl RegSet {
    fn new(registers: usize) -> Self {
        Self(vec![0; registers.div_ceil(64)])
    }

    pub(super) fn has(&self, reg: Reg) -> bool {
        self.0.get(usize::from(reg) / 64).is_some_and(|word| word >> (reg % 64) & 1 == 1)
    }

    pub(super) fn insert(&mut self, reg: Reg) {
        if let Some(word) = self.0.get_mut(usize::from(reg) / 64) {
            *word |= 1 << (reg % 64);
        }
    }

    fn remove(&mut self, reg: Reg) {
        if let Some(word) = self.0.get_mut(usize::from(reg) / 64) {
            *word &= !(1 << (reg % 64));
        }
    }

    fn join(&mut self, other: &Self) -> bool {
        let mut grew = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            grew |= *other & !*word != 0;
            *word |= other;
        }
        grew
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Reg> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| (index * 64 + bit) as Reg)
        })
    }
}

/// A basic block: a range of instructions that is entered only at the first.
#[derive(Debug)]
pub(super) struct Block {
    pub from: usize,
    /// Index after the last instruction.
    pub to: usize,
    /// Whether a loop jumps back to it: frames of the interpreter may enter here.
    pub is_loop: bool,
}

/// Results of the analysis of a body's code.
pub(super) struct Flow {
    pub blocks: Vec<Block>,
    /// For each instruction, the block that begins with it.
    pub block_at: Vec<Option<usize>>,
    /// For each instruction, the registers that are live before it.
    pub live: Vec<RegSet>,
    /// For each reachable block, the kinds of registers at its beginning.
    pub kinds: Vec<Option<Vec<Kind>>>,
    /// Kinds of the parameters.
    pub params: Vec<Kind>,
    /// Registers whose cells may own memory that this code stored.
    pub owners: RegSet,
    /// Registers that must be unset on entry.
    pub unset: Vec<Reg>,
    /// Whether reaching the end of the body without a value is an error or a warning.
    pub wants_result: bool,
}

/// Maximum number of instructions and registers of code to compile.
const MAX_OPS: usize = 20_000;
const MAX_REGISTERS: usize = 1024;

impl Flow {
    /// Analyzes code; `None` if it is too large.
    pub(super) fn new(program: &Program, code: &Code) -> Option<Self> {
        let len = code.ops.len();
        if len > MAX_OPS || code.registers > MAX_REGISTERS || len * code.registers > 1 << 23 {
            return None;
        }
        let (blocks, block_at) = blocks(code)?;
        let params = params(program, code.body);
        let mut flow = Self {
            blocks,
            block_at,
            live: vec![RegSet::new(code.registers); len + 1],
            kinds: Vec::new(),
            params,
            owners: RegSet::new(code.registers),
            unset: Vec::new(),
            wants_result: wants_result(program, code.body),
        };
        flow.liveness(program, code);
        flow.propagate_kinds(program, code);
        let params = flow.params.len();
        if let Some(first) = flow.live.first() {
            flow.unset = first.iter().filter(|reg| usize::from(*reg) >= params).collect();
        }
        flow.find_owners(program, code);
        Some(flow)
    }

    fn liveness(&mut self, program: &Program, code: &Code) {
        let mut again = true;
        while again {
            again = false;
            for block in self.blocks.iter().rev() {
                for pc in (block.from..block.to).rev() {
                    let Some(op) = code.ops.get(pc) else { continue };
                    let operands = operands(program, code.into(), op);
                    let mut live = match next(op) {
                        Next::Ends | Next::Jumps(_) => RegSet::new(code.registers),
                        Next::Falls | Next::Branches(_) => self.live_at(pc + 1),
                    };
                    // A taken branch changes no register.
                    for (reg, n) in operands.defs {
                        (reg..reg.saturating_add(n)).for_each(|reg| live.remove(reg));
                    }
                    if let Next::Jumps(to) | Next::Branches(to) = next(op) {
                        live.join(&self.live_at(to as usize));
                    }
                    for (reg, n) in operands.uses {
                        (reg..reg.saturating_add(n)).for_each(|reg| live.insert(reg));
                    }
                    if let Some(known) = self.live.get_mut(pc) {
                        again |= known.join(&live);
                    }
                }
            }
        }
    }

    /// The registers that are live before an instruction.
    pub(super) fn live_at(&self, pc: usize) -> RegSet {
        self.live.get(pc).cloned().unwrap_or_else(|| RegSet(Vec::new()))
    }

    fn propagate_kinds(&mut self, program: &Program, code: &Code) {
        let mut first = vec![Kind::Cell; code.registers];
        for (slot, kind) in first.iter_mut().zip(&self.params) {
            *slot = *kind;
        }
        self.kinds = vec![None; self.blocks.len()];
        let mut work = Vec::new();
        self.merge(0, &first, &mut work);
        while let Some(index) = work.pop() {
            let Some(block) = self.blocks.get(index) else { continue };
            let (from, to) = (block.from, block.to);
            let Some(mut kinds) = self.kinds.get(index).cloned().flatten() else { continue };
            for pc in from..to {
                let Some(op) = code.ops.get(pc) else { continue };
                if let Next::Jumps(target) | Next::Branches(target) = next(op) {
                    self.merge(target as usize, &kinds, &mut work);
                }
                transfer(program, code, pc, &mut kinds);
                if pc + 1 == to && matches!(next(op), Next::Falls | Next::Branches(_)) {
                    self.merge(to, &kinds, &mut work);
                }
            }
        }
    }

    /// Merges the kinds of a path that reaches the block at `pc`.
    fn merge(&mut self, pc: usize, kinds: &[Kind], work: &mut Vec<usize>) {
        let Some(index) = self.block_at.get(pc).copied().flatten() else { return };
        let Some(live) = self.live.get(pc) else { return };
        let Some(known) = self.kinds.get_mut(index) else { return };
        match known {
            None => {
                let at = |(reg, kind): (usize, &Kind)| {
                    if live.has(reg as Reg) { *kind } else { Kind::Cell }
                };
                *known = Some(kinds.iter().enumerate().map(at).collect());
                work.push(index);
            }
            Some(known) => {
                let mut changed = false;
                for (known, kind) in known.iter_mut().zip(kinds) {
                    if *known != Kind::Cell && known != kind {
                        *known = Kind::Cell;
                        changed = true;
                    }
                }
                if changed {
                    work.push(index);
                }
            }
        }
    }

    fn find_owners(&mut self, program: &Program, code: &Code) {
        for (reg, kind) in self.params.iter().enumerate() {
            if *kind == Kind::Cell {
                self.owners.insert(reg as Reg);
            }
        }
        for (block, kinds) in self.blocks.iter().zip(&self.kinds) {
            let Some(mut kinds) = kinds.clone() else { continue };
            for pc in block.from..block.to {
                let Some(op) = code.ops.get(pc) else { continue };
                transfer(program, code, pc, &mut kinds);
                for (reg, n) in operands(program, code.into(), op).defs {
                    for reg in reg..reg.saturating_add(n) {
                        if kinds.get(usize::from(reg)) == Some(&Kind::Cell) {
                            self.owners.insert(reg);
                        }
                    }
                }
            }
        }
    }
}

/// The kinds of registers after an instruction.
pub(super) fn transfer(program: &Program, code: &Code, pc: usize, kinds: &mut [Kind]) {
    let Some(op) = code.ops.get(pc) else { return };
    for (reg, n) in operands(program, code.into(), op).defs {
        for offset in 0..n {
            let kind = match *op {
                Op::Move { s, .. } | Op::Pass { s, .. } => {
                    kinds.get(usize::from(s)).copied().unwrap_or(Kind::Cell)
                }
                _ => result_kind(program, code, pc, op, reg + offset, offset),
            };
            if let Some(slot) = kinds.get_mut(usize::from(reg + offset)) {
                *slot = kind;
            }
        }
    }
}

/// The kind of the value that an instruction writes to `reg`. Machine code checks values from other sources.
fn result_kind(program: &Program, code: &Code, pc: usize, op: &Op, reg: Reg, offset: u16) -> Kind {
    let of = |ty: TypeId| Kind::from_tag(program.types.tag(ty));
    let site = code.sites.get(pc).and_then(|site| program.exprs.find(*site));
    match *op {
        Op::AddC { .. }
        | Op::SubC { .. }
        | Op::MulC { .. }
        | Op::DivC { .. }
        | Op::ModC { .. }
        | Op::AddCK { .. }
        | Op::SubCK { .. }
        | Op::MulCK { .. }
        | Op::DivCK { .. }
        | Op::ModCK { .. } => Kind::Count,
        Op::AddI { .. } | Op::SubI { .. } | Op::MulI { .. } | Op::AddIK { .. } => Kind::Int,
        Op::AddD { .. } | Op::SubD { .. } | Op::MulD { .. } | Op::DivD { .. } => Kind::Double,
        Op::CmpC { .. }
        | Op::CmpI { .. }
        | Op::CmpD { .. }
        | Op::Not { .. }
        | Op::HasField { .. }
        | Op::InTable { .. }
        | Op::In { .. }
        | Op::Is { .. }
        | Op::Holds { .. }
        | Op::CanCast { .. } => Kind::Bool,
        Op::Const { k, .. } => code.consts.get(k as usize).map_or(Kind::Cell, Kind::from_value),
        Op::Global { g, .. } => {
            program.globals.arena.find(g).map_or(Kind::Cell, |global| of(global.ty))
        }
        Op::Binary { .. }
        | Op::Unary { .. }
        | Op::Field { .. }
        | Op::Path { .. }
        | Op::IndexTable { .. }
        | Op::IndexVector { .. }
        | Op::Index { .. }
        | Op::Call { .. }
        | Op::CallValue { .. }
        | Op::Coerce { .. }
        | Op::Cast { .. } => site.map_or(Kind::Cell, |site| of(site.ty)),
        Op::NextEntry { k, n, v, .. } => {
            let table = site.and_then(|site| program.types.table(site.ty));
            let Some(table) = table else { return Kind::Cell };
            if reg == v && !(n > 0 && (k..k.saturating_add(u16::from(n))).contains(&reg)) {
                return table.value.map_or(Kind::Cell, of);
            }
            match *table.index {
                [one] if n == 1 => of(one),
                [_] => Kind::Cell,
                _ if n == 1 => Kind::Cell,
                _ => table.index.get(usize::from(offset)).map_or(Kind::Cell, |ty| of(*ty)),
            }
        }
        Op::NextItem { k, v, .. } => match site.map(|site| program.types.get(site.ty)) {
            Some(Type::Vector(_)) if reg == k && reg != v => Kind::Count,
            Some(Type::Vector(element)) if reg == v && reg != k => of(*element),
            _ => Kind::Cell,
        },
        _ => Kind::Cell,
    }
}

fn blocks(code: &Code) -> Option<(Vec<Block>, Vec<Option<usize>>)> {
    let len = code.ops.len();
    let mut begins = vec![false; len + 1];
    let mut loops = vec![false; len + 1];
    *begins.first_mut()? = true;
    for (pc, op) in code.ops.iter().enumerate() {
        match next(op) {
            Next::Falls => (),
            Next::Jumps(to) | Next::Branches(to) => {
                *begins.get_mut(to as usize)? = true;
                *begins.get_mut(pc + 1)? = true;
                if (to as usize) <= pc && matches!(op, Op::Jump { .. }) {
                    *loops.get_mut(to as usize)? = true;
                }
            }
            Next::Ends => *begins.get_mut(pc + 1)? = true,
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut block_at = vec![None; len + 1];
    for pc in 0..len {
        if begins.get(pc) == Some(&true) {
            *block_at.get_mut(pc)? = Some(blocks.len());
            blocks.push(Block { from: pc, to: pc, is_loop: loops.get(pc) == Some(&true) });
        }
        blocks.last_mut()?.to = pc + 1;
    }
    Some((blocks, block_at))
}

fn params(program: &Program, body: Option<BodyId>) -> Vec<Kind> {
    let Some(body) = body.and_then(|body| program.bodies.find(body)) else { return Vec::new() };
    (0..body.params.len())
        .map(|slot| {
            let local = body.locals.find(LocalId(slot as u32));
            local.map_or(Kind::Cell, |local| Kind::from_tag(program.types.tag(local.ty)))
        })
        .collect()
}

/// Whether the function of a body has a result, so that its end without a value is reported.
fn wants_result(program: &Program, body: Option<BodyId>) -> bool {
    let function = body
        .and_then(|body| program.bodies.find(body))
        .and_then(|body| body.func)
        .and_then(|func| program.functions.find(func));
    let Some(function) = function else { return false };
    let result = program.types.func(function.ty).map_or(TypeId::VOID, |ty| ty.result);
    function.flavor == Flavor::Function && result != TypeId::VOID && result != TypeId::ANY
}
