//! What a filter tests, without registers: pure values of the packet, each held once, and
//! conditions over them.

use std::collections::HashMap;

use crate::bpf::{self, Insn};

/// A value, by its place in [`Values`]: equal values have equal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Const(u32),
    /// The length on the wire.
    Len,
    /// Of so many bytes, from a base plus an offset. The packet does not match if they are missing.
    Load(u8, Option<ValueId>, u32),
    /// The length of an IPv4 header, from the byte at the offset.
    HeaderLen(u32),
    /// A variable that an assignment sets.
    Var(u8),
    /// An operation as BPF codes it.
    Binary(u16, ValueId, ValueId),
    Neg(ValueId),
}

/// All values of a filter.
#[derive(Debug, Default)]
pub(crate) struct Values {
    nodes: Vec<Node>,
    places: HashMap<Node, ValueId>,
}

impl Values {
    pub(crate) fn add(&mut self, node: Node) -> ValueId {
        let node = self.folded(node);
        if let Some(id) = self.places.get(&node) {
            return *id;
        }
        let id = ValueId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.places.insert(node, id);
        id
    }

    pub(crate) fn node(&self, id: ValueId) -> Node {
        self.nodes[id.0 as usize]
    }

    pub(crate) fn constant(&mut self, k: u32) -> ValueId {
        self.add(Node::Const(k))
    }

    pub(crate) fn binary(&mut self, op: u16, a: ValueId, b: ValueId) -> ValueId {
        self.add(Node::Binary(op, a, b))
    }

    pub(crate) fn as_const(&self, id: ValueId) -> Option<u32> {
        match self.node(id) {
            Node::Const(k) => Some(k),
            _ => None,
        }
    }

    /// Operations on constants, but for those that fault.
    fn folded(&self, node: Node) -> Node {
        match node {
            Node::Binary(op, a, b) => match (self.as_const(a), self.as_const(b)) {
                (Some(a), Some(b)) => bpf_alu(op, a, b).map_or(node, Node::Const),
                (None, Some(0)) if matches!(op, bpf::ADD | bpf::SUB | bpf::OR | bpf::XOR) => {
                    self.node(a)
                }
                _ => node,
            },
            Node::Neg(a) => self.as_const(a).map_or(node, |a| Node::Const(a.wrapping_neg())),
            Node::Load(size, Some(base), k) => {
                match self.as_const(base).map(|c| c.checked_add(k)) {
                    Some(Some(offset)) => Node::Load(size, None, offset),
                    _ => node,
                }
            }
            other => other,
        }
    }

    /// The highest it can be.
    pub(crate) fn most(&self, id: ValueId) -> u32 {
        match self.node(id) {
            Node::Const(k) => k,
            Node::Load(1, ..) => 0xff,
            Node::Load(2, ..) => 0xffff,
            Node::HeaderLen(_) => 60,
            Node::Binary(bpf::AND, a, b) => self.most(a).min(self.most(b)),
            Node::Binary(bpf::RSH, a, b) => {
                self.as_const(b).map_or(self.most(a), |n| self.most(a).checked_shr(n).unwrap_or(0))
            }
            _ => u32::MAX,
        }
    }

    /// Whether working it out can reject a packet.
    pub(crate) fn may_fault(&self, id: ValueId) -> bool {
        match self.node(id) {
            Node::Load(..) | Node::HeaderLen(_) => true,
            Node::Binary(op, a, b) => {
                self.may_fault(a)
                    || self.may_fault(b)
                    || (matches!(op, bpf::DIV | bpf::MOD)
                        && self.as_const(b).is_none_or(|k| k == 0))
            }
            Node::Neg(a) => self.may_fault(a),
            _ => false,
        }
    }
}

pub(crate) fn bpf_alu(op: u16, a: u32, b: u32) -> Option<u32> {
    bpf::alu(op, a, b)
}

/// A comparison as BPF codes it: equal, greater, greater or equal, or common bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Test {
    pub(crate) op: u16,
    pub(crate) left: ValueId,
    pub(crate) right: ValueId,
}

/// A condition. Chains are flat, so that depth is bounded by that of the expression.
#[derive(Clone, Debug)]
pub(crate) enum Cond {
    True,
    False,
    Test(Test),
    /// Holds always, and sets a variable.
    Set(u8, ValueId),
    /// Instructions with jumps of their own, behind which A is compared with a number.
    Code(Vec<Insn>, u32),
    Not(Box<Cond>),
    All(Vec<Cond>),
    Any(Vec<Cond>),
}

/// Both.
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

/// Either.
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
