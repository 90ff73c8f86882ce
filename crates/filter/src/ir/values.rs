//! Values of the packet, each stored once.

use std::collections::HashMap;

use crate::bpf;

/// A value, by its index in [`Values`]: equal values have equal indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// Its index, below [`Values::len`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The definition of a value. All numbers are unsigned, of 32 bits, and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant.
    Const(u32),
    /// The length on the wire.
    Len,
    /// A number of bytes (1, 2 or 4) in network order, at a base plus an offset that together do
    /// not wrap. A packet that lacks them does not match.
    Load(u8, Option<ValueId>, u32),
    /// Four times the lower half of the byte at the offset: the length of an IPv4 header.
    HeaderLen(u32),
    /// A variable that an assignment sets: a scratch word of BPF.
    Var(u8),
    /// An operation as BPF encodes it. Division by zero rejects the packet.
    Binary(u16, ValueId, ValueId),
    /// The two's complement.
    Neg(ValueId),
}

#[derive(Clone, Copy, Debug)]
struct Known {
    max: u32,
    may_fault: bool,
    /// Bit set of the variables that it depends on.
    vars: u16,
}

/// All values of a filter. Operands have lower indices than the value.
#[derive(Clone, Debug, Default)]
pub struct Values {
    nodes: Vec<Node>,
    /// Cached facts of each value.
    known: Vec<Known>,
    index: HashMap<Node, ValueId, foldhash::fast::FixedState>,
}

impl Values {
    /// The definition of a value.
    pub fn node(&self, id: ValueId) -> Node {
        self.nodes[id.index()]
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number, if the value is a constant.
    pub fn as_const(&self, id: ValueId) -> Option<u32> {
        match self.node(id) {
            Node::Const(k) => Some(k),
            _ => None,
        }
    }

    pub(crate) fn add(&mut self, node: Node) -> ValueId {
        let node = self.folded(node);
        if let Some(id) = self.index.get(&node) {
            return *id;
        }
        let id = ValueId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.known.push(self.known_of(node));
        self.index.insert(node, id);
        id
    }

    pub(crate) fn constant(&mut self, k: u32) -> ValueId {
        self.add(Node::Const(k))
    }

    /// A constant as a separate value, even if one of the same number exists.
    pub(crate) fn another_constant(&mut self, k: u32) -> ValueId {
        let id = ValueId(self.nodes.len() as u32);
        self.nodes.push(Node::Const(k));
        self.known.push(self.known_of(Node::Const(k)));
        id
    }

    pub(crate) fn binary(&mut self, op: u16, a: ValueId, b: ValueId) -> ValueId {
        self.add(Node::Binary(op, a, b))
    }

    /// Folds operations on constants, except those that fault.
    fn folded(&self, node: Node) -> Node {
        match node {
            Node::Binary(op, a, b) => match (self.as_const(a), self.as_const(b)) {
                (Some(a), Some(b)) => bpf::alu(op, a, b).map_or(node, Node::Const),
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

    /// The maximum of a value.
    pub(crate) fn max_value(&self, id: ValueId) -> u32 {
        self.known[id.index()].max
    }

    /// A value without the constant mask over it, and the mask.
    pub(crate) fn unmasked(&self, id: ValueId) -> (ValueId, u32) {
        let (mut id, mut mask) = (id, u32::MAX);
        while let Node::Binary(bpf::AND, inner, by) = self.node(id)
            && let Some(by) = self.as_const(by)
        {
            mask &= by;
            id = inner;
        }
        (id, mask)
    }

    /// Whether evaluating it can reject a packet.
    pub(crate) fn may_fault(&self, id: ValueId) -> bool {
        self.known[id.index()].may_fault
    }

    /// Whether it depends on a variable.
    pub(crate) fn mentions(&self, id: ValueId, var: u8) -> bool {
        self.known[id.index()].vars & 1 << (var & 15) != 0
    }

    /// Bit set of the variables that it depends on.
    pub(crate) fn vars(&self, id: ValueId) -> u16 {
        self.known[id.index()].vars
    }

    fn known_of(&self, node: Node) -> Known {
        let any = Known { max: u32::MAX, may_fault: false, vars: 0 };
        let of = |id: ValueId| self.known[id.index()];
        match node {
            Node::Const(k) => Known { max: k, ..any },
            Node::Len => any,
            Node::Load(size, base, _) => Known {
                max: match size {
                    1 => 0xff,
                    2 => 0xffff,
                    _ => u32::MAX,
                },
                may_fault: true,
                vars: base.map_or(0, |b| of(b).vars),
            },
            Node::HeaderLen(_) => Known { max: 60, may_fault: true, vars: 0 },
            Node::Var(v) => Known { vars: 1 << (v & 15), ..any },
            Node::Neg(a) => Known { max: u32::MAX, ..of(a) },
            Node::Binary(op, a, b) => {
                let (x, y) = (of(a), of(b));
                let k = self.as_const(b);
                let divides = matches!(op, bpf::DIV | bpf::MOD) && k.is_none_or(|k| k == 0);
                Known {
                    max: match (op, k) {
                        (bpf::AND, _) => x.max.min(y.max),
                        (bpf::RSH, Some(n)) => x.max.checked_shr(n).unwrap_or(0),
                        (bpf::LSH, Some(n)) if x.max.leading_zeros() >= n => x.max << n,
                        (bpf::ADD, _) => x.max.saturating_add(y.max),
                        (bpf::DIV, Some(n @ 1..)) => x.max / n,
                        (bpf::MOD, Some(n @ 1..)) => x.max.min(n - 1),
                        _ => u32::MAX,
                    },
                    may_fault: x.may_fault || y.may_fault || divides,
                    vars: x.vars | y.vars,
                }
            }
        }
    }
}
