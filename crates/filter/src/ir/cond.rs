//! Conditions: the result of lowering, before they are turned into blocks.

use std::sync::Arc;

use super::{Set, Set6, Test, ValueId};
use crate::bpf::Insn;

/// A condition. Chains are flat, so the depth is bounded by that of the expression. Operands are
/// evaluated from the left and only as far as needed, since a packet is rejected when bytes that it
/// lacks are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cond {
    True,
    False,
    Test(Test),
    /// A value is in a set.
    In(ValueId, Arc<Set>),
    /// An address of four words is in a set.
    #[allow(dead_code, reason = "lists of hosts are lowered address by address")]
    In6([ValueId; 4], Arc<Set6>),
    /// Always holds, and sets a variable.
    Set(u8, ValueId),
    /// Instructions with internal jumps, after which A is compared with a number.
    Code(Vec<Insn>, u32),
    Not(Box<Cond>),
    All(Vec<Cond>),
    Any(Vec<Cond>),
}

/// Conjunction. As in libpcap, if one operand can never hold, the other is dropped.
pub(crate) fn and(a: Cond, b: Cond) -> Cond {
    match (a, b) {
        (Cond::False, _) | (_, Cond::False) => Cond::False,
        (Cond::True, c) | (c, Cond::True) => c,
        (Cond::All(mut all), b) => {
            all.push(b);
            Cond::All(all)
        }
        (a, b) => Cond::All(vec![a, b]),
    }
}

/// Disjunction. As in libpcap, if one operand always holds, the other is dropped.
pub(crate) fn or(a: Cond, b: Cond) -> Cond {
    match (a, b) {
        (Cond::True, _) | (_, Cond::True) => Cond::True,
        (Cond::False, c) | (c, Cond::False) => c,
        (Cond::Any(mut any), b) => {
            any.push(b);
            Cond::Any(any)
        }
        (a, b) => Cond::Any(vec![a, b]),
    }
}

/// Negation.
pub(crate) fn not(a: Cond) -> Cond {
    match a {
        Cond::True => Cond::False,
        Cond::False => Cond::True,
        Cond::Not(inner) => *inner,
        other => Cond::Not(Box::new(other)),
    }
}
