//! Removal of redundant checks of locals: those of locals that are set on every path, and those that the next
//! instruction repeats.

use std::rc::Rc;

use super::operands::{Next, OperandTables, next, operands, target};
use super::{Op, RecordPlan, Reg, WhenPlan};
use crate::ast::ExprKind;
use crate::ids::ExprId;
use crate::program::Program;
use crate::value::Value;

/// Maximum product of instructions and words per set: larger code keeps its checks.
const MAX_SET_WORDS: usize = 1 << 20;

/// The code of a body under construction.
pub(super) struct PartialCode<'a> {
    pub ops: &'a mut Vec<Op>,
    pub sites: &'a mut Vec<ExprId>,
    pub consts: &'a [Value],
    pub records: &'a [RecordPlan],
    pub whens: &'a [Rc<WhenPlan>],
    /// Number of registers that hold locals.
    pub locals: usize,
}

/// Removes checks that cannot fail, and those right before a `Field` or `Path` of the same local, which reports
/// the same error.
pub(super) fn remove(program: &Program, parts: &mut PartialCode<'_>) {
    let words = parts.locals.div_ceil(64);
    if parts.locals == 0 || parts.ops.len() * words > MAX_SET_WORDS {
        return;
    }
    let known = SetLocals::new(program, parts, words);
    for at in 0..parts.ops.len() {
        if let Some(op) = parts.ops.get_mut(at)
            && let Op::Pass { d, s } = *op
            && known.has(at, s)
        {
            *op = Op::Move { d, s };
        }
    }
    let is_needless =
        |at: usize, s: Reg| known.has(at, s) || is_repeated_by_next(program, parts, at, s);
    let kept: Vec<bool> = (0..parts.ops.len())
        .map(|at| !matches!(parts.ops.get(at), Some(Op::Check { s }) if is_needless(at, *s)))
        .collect();
    let mut count = 0;
    let mut places: Vec<u32> = Vec::with_capacity(kept.len() + 1);
    for kept in &kept {
        places.push(count);
        count += u32::from(*kept);
    }
    places.push(count);
    let mut kept_ops = kept.iter();
    parts.ops.retain(|_| kept_ops.next() == Some(&true));
    let mut kept_sites = kept.iter();
    parts.sites.retain(|_| kept_sites.next() == Some(&true));
    for op in parts.ops.iter_mut() {
        if let Some(to) = target(op)
            && let Some(place) = places.get(*to as usize)
        {
            *to = *place;
        }
    }
}

/// Whether the next instruction reads a field of the checked local and so makes the same check.
fn is_repeated_by_next(program: &Program, parts: &PartialCode<'_>, at: usize, local: Reg) -> bool {
    let (r, is_path) = match parts.ops.get(at + 1) {
        Some(Op::Field { r, .. }) => (r, false),
        Some(Op::Path { r, .. }) => (r, true),
        _ => return false,
    };
    let (Some(check), Some(field)) = (parts.sites.get(at), parts.sites.get(at + 1)) else {
        return false;
    };
    let of = |expr: ExprId| match program.exprs[expr].kind {
        ExprKind::Field(of, _) => Some(of),
        _ => None,
    };
    let read = if is_path { of(*field).and_then(of) } else { of(*field) };
    *r == local && matches!(program.exprs[*check].kind, ExprKind::Local(..)) && read == Some(*check)
}

/// For each instruction, the locals that are set whenever it is reached.
struct SetLocals {
    words: usize,
    sets: Vec<u64>,
    reached: Vec<bool>,
}

impl SetLocals {
    fn new(program: &Program, parts: &PartialCode<'_>, words: usize) -> Self {
        let len = parts.ops.len();
        let mut known = Self { words, sets: vec![0; len * words], reached: vec![false; len] };
        let mut work = vec![0];
        if let Some(first) = known.reached.first_mut() {
            *first = true;
        }
        while let Some(mut at) = work.pop() {
            while let Some(op) = parts.ops.get(at) {
                let mut set = known.sets.get(at * words..(at + 1) * words).unwrap_or(&[]).to_vec();
                transfer(program, parts, op, &mut set);
                let (falls, jumps) = match next(op) {
                    Next::Falls => (true, None),
                    Next::Jumps(to) => (false, Some(to as usize)),
                    Next::Branches(to) => (true, Some(to as usize)),
                    Next::Ends => (false, None),
                };
                if let Some(to) = jumps
                    && known.merge(to, &set)
                {
                    work.push(to);
                }
                at += 1;
                if !falls || !known.merge(at, &set) {
                    break;
                }
            }
        }
        known
    }

    /// Merges the set of a path that reaches instruction `at`. Returns whether that changes the result.
    fn merge(&mut self, at: usize, set: &[u64]) -> bool {
        let (Some(reached), Some(known)) =
            (self.reached.get_mut(at), self.sets.get_mut(at * self.words..(at + 1) * self.words))
        else {
            return false;
        };
        if !std::mem::replace(reached, true) {
            known.copy_from_slice(set);
            return true;
        }
        let mut changed = false;
        for (known, set) in known.iter_mut().zip(set) {
            changed |= *known & !set != 0;
            *known &= set;
        }
        changed
    }

    fn has(&self, at: usize, local: Reg) -> bool {
        let set = self.sets.get(at * self.words..(at + 1) * self.words).unwrap_or(&[]);
        self.reached.get(at) == Some(&true) && has(set, local)
    }
}

fn has(set: &[u64], local: Reg) -> bool {
    set.get(usize::from(local) / 64).is_some_and(|word| word >> (local % 64) & 1 == 1)
}

/// The effect of an instruction on the set of locals that have a value.
fn transfer(program: &Program, parts: &PartialCode<'_>, op: &Op, set: &mut [u64]) {
    // After these instructions the local has a value.
    if let Op::Check { s } | Op::Pass { s, .. } | Op::Field { r: s, .. } | Op::Path { r: s, .. } =
        *op
    {
        set_bit(set, parts.locals, s, true);
    }
    let is_set = match *op {
        Op::Const { k, .. } => parts.consts.get(k as usize).is_some_and(Value::is_set),
        Op::Move { s, .. } => has(set, s),
        Op::Pass { .. } => true,
        _ => false,
    };
    let counts = OperandTables { records: parts.records, whens: parts.whens };
    for (first, n) in operands(program, counts, op).defs {
        for local in first..first.saturating_add(n) {
            set_bit(set, parts.locals, local, is_set);
        }
    }
}

fn set_bit(set: &mut [u64], locals: usize, local: Reg, is_set: bool) {
    if let Some(word) = set.get_mut(usize::from(local) / 64)
        && usize::from(local) < locals
    {
        let bit = 1 << (local % 64);
        *word = if is_set { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::compile::compile_body;
    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::parse::{Input, Parser};
    use crate::vm::Machine;

    /// The instructions of the body of `f`.
    pub(in crate::code) fn code(text: &str) -> Vec<Op> {
        let mut program = Program { diagnostics: Diagnostics::default(), ..Program::default() };
        let mut machine = Machine::new();
        let types = "type R: record { n: count; }; redef record R += { r: R &optional; };";
        let code = format!("{types}\n{text}").into_bytes();
        let input = Input::Text { name: "test".to_owned(), code };
        let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
        assert!(parsed.is_ok() && program.diagnostics.errors == 0, "{text}");
        let function = machine.with(&mut program).function_named("f").unwrap();
        compile_body(&program, program.functions[function].bodies[0]).ops
    }

    fn checks(text: &str) -> Vec<Reg> {
        let check = |op: &Op| match op {
            Op::Check { s } => Some(*s),
            _ => None,
        };
        code(text).iter().filter_map(check).collect()
    }

    #[test]
    fn a_local_is_checked_once() {
        assert_eq!(checks("function f(a: count): count { return a + a; }"), [0]);
        let two = "function f(a: count, b: count): count { return a + b + a; }";
        assert_eq!(checks(two), [0, 1]);
    }

    #[test]
    fn reading_a_field_checks_its_record() {
        assert!(checks("function f(r: R) { print r$n; if ( r?$r ) print r$r$n; }").is_empty());
        // A check whether a field is set does not prove that its record is set.
        assert_eq!(checks("function f(r: R) { if ( r?$r ) print r$r$n; }"), [0]);
    }

    #[test]
    fn a_check_on_one_path_does_not_cover_another() {
        let one = "function f(a: count, b: bool): count
            { local s = 0; if ( b ) s = a + 1; return a + s; }";
        assert_eq!(checks(one), [1, 0, 0]);
        let both = "function f(a: count, b: bool): count
            { local s = a + 1; if ( b ) s = a + 2; else s = a + 3; return s; }";
        assert_eq!(checks(both), [0, 1]);
        let in_loop = "function f(a: count, b: bool): count
            { local s = 0; while ( b ) s = s + a; return s + a; }";
        assert_eq!(checks(in_loop).iter().filter(|local| **local == 0).count(), 2);
    }

    #[test]
    fn another_value_is_checked_again() {
        let text = "global g: function(): count;
            function f(a: count): count
                { local s = a + 1; a = g(); s = a + s; a = 3; return a + s; }";
        assert_eq!(checks(text), [0, 0]);
    }

    #[test]
    fn jump_targets_are_adjusted() {
        let ops = code(
            "function f(a: count, b: bool) { while ( b ) { if ( a > 3 ) break; print a; } print a; }",
        );
        for op in &ops {
            let mut op = *op;
            if let Some(to) = target(&mut op) {
                assert!((*to as usize) < ops.len(), "{ops:?}");
            }
        }
    }
}
