//! Delays the construction of empty records in locals to their first use, where this has no visible effect:
//! most functions with such a local use it on only one path.

use super::checks::PartialCode;
use super::operands::{Next, OperandTables, next, operands, target};
use super::{Op, Reg};
use crate::ast::{Body, ExprKind};
use crate::ids::{ExprId, Id as _, TypeId};
use crate::program::Program;
use crate::symbols::GlobalKind;
use crate::types::{AttrKind, Type, attr_expr, find_attr};

/// An empty record that is constructed at the beginning of a body.
struct EmptyLocal {
    local: Reg,
    /// The first and the last instruction that refer to the local.
    named: Option<(usize, usize)>,
}

/// Moves the construction of empty records from the beginning of a body to the first instruction that refers to
/// the local.
pub(super) fn delay_records(program: &Program, body: &Body, parts: &mut PartialCode<'_>) {
    let is_made = |op: &&Op| matches!(op, Op::InitLocal { .. });
    let first = parts.ops.iter().take_while(is_made).count();
    let mut made = empty_locals(program, body, parts, first);
    let jumps: Vec<(usize, usize)> =
        (0..).zip(parts.ops.iter()).filter_map(|(at, op)| Some((at, jump(op)?))).collect();
    made.retain(|made| made.named.is_none_or(|(from, to)| is_entered_first(&jumps, from, to)));
    if made.is_empty() {
        return;
    }
    let is_moved = |op: &Op| match op {
        Op::InitLocal { d, .. } => made.iter().any(|made| made.local == *d),
        _ => false,
    };
    let mut ops = Vec::with_capacity(parts.ops.len());
    let mut sites = Vec::with_capacity(parts.ops.len());
    let mut places = Vec::with_capacity(parts.ops.len() + 1);
    for (at, (op, site)) in parts.ops.iter().zip(parts.sites.iter()).enumerate() {
        places.push(u32::try_from(ops.len()).unwrap_or(u32::MAX));
        if at < first && is_moved(op) {
            continue;
        }
        let here = |op: &&Op| match op {
            Op::InitLocal { d, .. } => made
                .iter()
                .any(|made| made.local == *d && made.named.is_some_and(|(from, _)| from == at)),
            _ => false,
        };
        for made in parts.ops.iter().take(first).filter(here) {
            ops.push(*made);
            sites.push(*site);
        }
        ops.push(*op);
        sites.push(*site);
    }
    places.push(u32::try_from(ops.len()).unwrap_or(u32::MAX));
    for op in &mut ops {
        if let Some(to) = target(op)
            && let Some(place) = places.get(*to as usize)
        {
            *to = *place;
        }
    }
    (*parts.ops, *parts.sites) = (ops, sites);
}

/// Locals whose empty records the first instructions construct, with the range of the instructions that refer
/// to them.
fn empty_locals(
    program: &Program,
    body: &Body,
    parts: &PartialCode<'_>,
    first: usize,
) -> Vec<EmptyLocal> {
    let plain = |op: &Op| match *op {
        Op::InitLocal { d, local } => {
            let data = body.locals.find(local)?;
            let is_plain = data.attrs.is_empty()
                && usize::from(d) == local.index()
                && is_plain_record(program, data.ty, MAX_NESTED_RECORDS);
            is_plain.then_some(EmptyLocal { local: d, named: None })
        }
        _ => None,
    };
    let mut all: Vec<EmptyLocal> = parts.ops.iter().take(first).filter_map(plain).collect();
    if all.is_empty() {
        return all;
    }
    let counts = OperandTables { records: parts.records, whens: parts.whens };
    for (at, op) in parts.ops.iter().enumerate().skip(first) {
        let operands = operands(program, counts, op);
        for (reg, n) in operands.uses.into_iter().chain(operands.defs) {
            let end = reg.saturating_add(n);
            for made in all.iter_mut().filter(|made| (reg..end).contains(&made.local)) {
                let from = made.named.map_or(at, |(from, _)| from);
                made.named = Some((from, at));
            }
        }
    }
    all
}

/// The target that an instruction may jump to.
fn jump(op: &Op) -> Option<usize> {
    match next(op) {
        Next::Jumps(to) | Next::Branches(to) => Some(to as usize),
        Next::Falls | Next::Ends => None,
    }
}

/// Whether every path to the instructions after `from`, up to `to`, leads through `from`, and at most once.
fn is_entered_first(jumps: &[(usize, usize)], from: usize, to: usize) -> bool {
    jumps.iter().all(|(source, target)| {
        let is_into = *target > from && *target <= to;
        let is_from_within = (from..=to).contains(source);
        let is_back = *target <= from && *source >= from;
        (!is_into || is_from_within) && !is_back
    })
}

/// Maximum nesting of records in records to examine.
const MAX_NESTED_RECORDS: usize = 4;

/// Whether an empty record of a type is the same whenever it is constructed.
fn is_plain_record(program: &Program, ty: TypeId, nested: usize) -> bool {
    let Some(record) = program.types.record(ty) else { return false };
    record.fields.iter().all(|field| {
        if let Some(expr) = attr_expr(&field.attrs, AttrKind::Default) {
            return is_plain_default(program, expr);
        }
        if find_attr(&field.attrs, AttrKind::Optional).is_some() {
            return true;
        }
        match program.types.get(field.ty) {
            // Expiration begins when a table is constructed.
            Type::Table(_) => !field.attrs.iter().any(|attr| EXPIRING.contains(&attr.kind)),
            Type::Record(_) => nested > 0 && is_plain_record(program, field.ty, nested - 1),
            _ => true,
        }
    })
}

/// Attributes of tables whose entries expire.
const EXPIRING: [AttrKind; 3] =
    [AttrKind::CreateExpire, AttrKind::ReadExpire, AttrKind::WriteExpire];

/// Whether a `&default` has the same value whenever it is evaluated, and has no side effects.
fn is_plain_default(program: &Program, expr: ExprId) -> bool {
    match &program.exprs[expr].kind {
        ExprKind::Literal(_) => true,
        ExprKind::Coerce(_, inner) => is_plain_default(program, *inner),
        ExprKind::Global(global) => {
            matches!(program.globals[*global].kind, GlobalKind::EnumValue(_) | GlobalKind::Constant)
        }
        ExprKind::Set(made) => made.entries.is_empty() && made.attrs.is_empty(),
        ExprKind::Table(made) => made.entries.is_empty() && made.attrs.is_empty(),
        ExprKind::Vector(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::tests::code;
    use super::*;

    /// The indices of the instructions that construct the empty value of a local, and the number of all instructions of `f`.
    fn made(text: &str) -> (Vec<usize>, usize) {
        let ops = code(text);
        let is_made = |(at, op): (usize, &Op)| matches!(op, Op::InitLocal { .. }).then_some(at);
        (ops.iter().enumerate().filter_map(is_made).collect(), ops.len())
    }

    #[test]
    fn a_record_is_made_where_it_is_needed() {
        let (at, _) = made("function f(b: bool, r: R) { if ( b ) { local s: R; r$r = s; } }");
        assert!(matches!(at[..], [at] if at > 0), "{at:?}");
        let (at, _) = made("function f(b: bool) { local s: R; if ( b ) return; print s; }");
        assert!(matches!(at[..], [at] if at > 0), "{at:?}");
    }

    #[test]
    fn a_record_that_is_needed_again_in_a_loop_is_made_before() {
        let text = "function f(b: bool, r: R) { while ( b ) { local s: R; s$n = 3; print s; } }";
        assert_eq!(made(text).0, [0]);
    }

    #[test]
    fn a_record_needed_on_two_paths_is_made_before_both() {
        let text = "function f(b: bool) { local s: R; if ( b ) print s; else print s$n; }";
        assert_eq!(made(text).0, [0]);
    }

    #[test]
    fn side_effects_of_defaults_happen_at_the_beginning() {
        let text = "global g: function(): count;
            type S: record { n: count &default=g(); };
            function f(b: bool) { if ( b ) { local s: S; print s; } }";
        assert_eq!(made(text).0, [0]);
    }

    #[test]
    fn an_unused_record_is_not_made() {
        let (at, len) = made("function f() { local s: R; }");
        assert!(at.is_empty(), "{at:?} of {len}");
    }
}
