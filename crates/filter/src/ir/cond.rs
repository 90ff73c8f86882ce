//! Conditions: what lowering says of the packet, before it is put into blocks.

use std::sync::Arc;

use super::{Set, Set6, Test, ValueId};
use crate::bpf::Insn;

/// A condition. Chains are flat, so that depth is bounded by that of the expression. They are
/// worked out from the left and only as far as needed, for what is missing in a packet rejects it
/// where it is asked for.
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
    /// Holds always, and sets a variable.
    Set(u8, ValueId),
    /// Instructions with jumps of their own, behind which A is compared with a number.
    Code(Vec<Insn>, u32),
    Not(Box<Cond>),
    All(Vec<Cond>),
    Any(Vec<Cond>),
}

/// Both. As in libpcap, if one of them cannot hold for any packet the other is not asked.
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

/// Either. As in libpcap, if one of them holds for all packets the other is not asked.
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

/// The other way round.
pub(crate) fn not(a: Cond) -> Cond {
    match a {
        Cond::True => Cond::False,
        Cond::False => Cond::True,
        Cond::Not(inner) => *inner,
        other => Cond::Not(Box::new(other)),
    }
}
