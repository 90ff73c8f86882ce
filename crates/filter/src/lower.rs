//! Lowers the syntax tree to conditions on the packet, from left to right. As in libpcap, offsets
//! shifted by `vlan`, `mpls` and other encapsulating headers apply to everything after them in the
//! text, or in the other dialect to what `and` joins to them (`scope`).

mod arith;
mod host;
mod link;
mod list;
mod misc;
mod port;
mod scope;
mod state;
mod tunnel;
mod wlan;

use crate::Options;
use crate::ast::{Expr, Join, Primitive};
use crate::error::Problem;
use crate::ir::{Cond, Graph, Test, ValueId, Values, and, not, or};
use crate::names::Resolver;
use state::State;

/// Messages; their span is that of the primitive.
type Result<T> = std::result::Result<T, String>;

/// The result: the prologue, conditions and their values, the lowest scratch word that holds a
/// variable, and whether the program must not be optimized.
#[derive(Clone, Debug)]
pub(crate) struct Lowered {
    pub(crate) values: Values,
    pub(crate) prologue: Vec<Cond>,
    pub(crate) cond: Cond,
    pub(crate) vars: u8,
    /// Whether libpcap's optimizer runs on it, and so can find that it matches nothing.
    pub(crate) is_optimized: bool,
}

impl Lowered {
    /// The unoptimized graph, with every test of the expression.
    pub(crate) fn graph(&self) -> Graph {
        Graph::new(self.values.clone(), &self.prologue, &self.cond)
    }
}

/// Lowers an expression for a link type.
pub(crate) fn lower(
    expr: &Expr,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> std::result::Result<Lowered, Problem> {
    lower_as(false, expr, link_type, options, names)
}

/// Lowers an expression with exactly the checks that libpcap makes: those of the second operand of
/// a sum are missing.
pub(crate) fn lower_as_libpcap(
    expr: &Expr,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> std::result::Result<Lowered, Problem> {
    lower_as(true, expr, link_type, options, names)
}

fn lower_as(
    as_libpcap: bool,
    expr: &Expr,
    link_type: u16,
    options: &Options,
    names: &dyn Resolver,
) -> std::result::Result<Lowered, Problem> {
    let state = State::new(link_type).map_err(|m| Problem::new(m, Default::default()))?;
    let mut lower = Lower {
        values: Values::default(),
        state,
        options,
        names,
        vars: 16,
        outer: None,
        tagged: false,
        tag_words: None,
        is_optimized: true,
        as_libpcap,
    };
    let cond = lower.expr(expr)?;
    let prologue = lower.prologue().map_err(|m| Problem::new(m, Default::default()))?;
    let cond = match link_type {
        crate::dlt::PPI => {
            let is_wlan = lower.test(bpf_eq(), At::Packet, 4, 4, u32::from_be(0x69));
            and(is_wlan.map_err(|m| Problem::new(m, Default::default()))?, cond)
        }
        _ => cond,
    };
    let is_optimized = lower.is_optimized;
    Ok(Lowered { values: lower.values, prologue, cond, vars: lower.vars, is_optimized })
}

fn bpf_eq() -> u16 {
    crate::bpf::JEQ
}

/// Bases of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Packet,
    LinkHeader,
    PreviousLinkHeader,
    /// The link layer's payload, including LLC.
    Llc,
    PreviousMpls,
    /// The network layer.
    Payload,
    /// The network layer, if no SNAP header precedes it.
    PayloadNoSnap,
    LinkType,
    /// After an IPv4 header.
    Transport4,
    /// After an IPv6 header without extensions.
    Transport6,
}

struct Lower<'a> {
    values: Values,
    state: State,
    options: &'a Options,
    names: &'a dyn Resolver,
    /// The lowest scratch word in use for a variable.
    vars: u8,
    /// The outermost header and payload, once encapsulated ones are in use.
    outer: Option<(state::Offset, state::Offset)>,
    /// Whether the expression tests a VLAN tag that the kernel may have stripped.
    tagged: bool,
    /// The variables that depend on such a tag.
    tag_words: Option<(u8, u8)>,
    /// See [`Lowered`].
    is_optimized: bool,
    /// Whether to omit the checks that libpcap omits.
    as_libpcap: bool,
}

impl Lower<'_> {
    fn expr(&mut self, expr: &Expr) -> std::result::Result<Cond, Problem> {
        match expr {
            Expr::Not(inner) => {
                let begin = self.scope();
                let inner = self.expr(inner)?;
                self.leave(begin);
                Ok(not(inner))
            }
            Expr::Chain(first, rest) => {
                let begin = self.scope();
                let (mut so_far, mut at) = match self.run(first, rest) {
                    Some((cond, n)) => (cond, n - 1),
                    None => (self.expr(first)?, 0),
                };
                while let Some((join, next)) = rest.get(at) {
                    let before = match join {
                        Join::And => None,
                        Join::Or => self.begin_again(&begin),
                    };
                    let (next, n) = match (join, self.run(next, &rest[at + 1..])) {
                        (Join::Or, Some(run)) => run,
                        _ => (self.expr(next)?, 1),
                    };
                    if let Some(before) = before {
                        self.agree(before, &begin);
                    }
                    at += n;
                    so_far = match join {
                        Join::And => and(so_far, next),
                        Join::Or => or(so_far, next),
                    };
                }
                Ok(so_far)
            }
            Expr::Leaf(primitive, span) => {
                self.primitive(primitive).map_err(|message| Problem::new(message, *span))
            }
        }
    }

    fn primitive(&mut self, primitive: &Primitive) -> Result<Cond> {
        match primitive {
            Primitive::Id(qualifiers, id) => self.id(*qualifiers, id),
            Primitive::Among(qualifiers, items) => self.among(*qualifiers, items),
            Primitive::Proto(proto) => self.abbreviation(proto),
            Primitive::Relation(relation, a, b) => self.relation(*relation, a, b),
            Primitive::Broadcast(proto) => self.broadcast(*proto),
            Primitive::Multicast(proto) => self.multicast(*proto),
            Primitive::Less(n) => Ok(not(self.length(crate::bpf::JGT, *n))),
            Primitive::Greater(n) => Ok(self.length(crate::bpf::JGE, *n)),
            Primitive::Byte(index, op, value) => self.byte(*index, op, *value),
            Primitive::Key(key) => self.key(key),
            Primitive::Tagged(key, number) => self.tagged(key, *number),
            Primitive::Pflog(key, value) => self.pflog(key, value),
            Primitive::Wlan(of, sub) => self.wlan_type(of.as_ref(), sub.as_ref()),
            Primitive::WlanDir(value) => self.wlan_dir(value),
            Primitive::Llc(kind) => self.llc_kind(kind.as_deref()),
            Primitive::Field(field, relation, values) => self.field(field, *relation, values),
        }
    }

    /// A scratch word for a variable.
    fn variable(&mut self) -> Result<u8> {
        if self.vars == 0 {
            return Err("too many registers needed to evaluate expression".into());
        }
        self.vars -= 1;
        Ok(self.vars)
    }

    fn compare(&mut self, op: u16, left: ValueId, k: u32) -> Cond {
        let right = self.values.constant(k);
        self.compare_values(op, left, right)
    }

    fn compare_values(&mut self, op: u16, left: ValueId, right: ValueId) -> Cond {
        use crate::bpf;
        use crate::ir::Node;
        // Testing whether bits are all clear takes one instruction, not two.
        if let (bpf::JEQ, Some(0), Node::Binary(bpf::AND, value, mask)) =
            (op, self.values.as_const(right), self.values.node(left))
            && self.values.as_const(mask).is_some()
        {
            return not(Cond::Test(Test { op: bpf::JSET, left: value, right: mask }));
        }
        Cond::Test(Test { op, left, right })
    }

    fn test(&mut self, op: u16, at: At, offset: u32, size: u8, k: u32) -> Result<Cond> {
        let left = self.load(at, offset, size)?;
        Ok(self.compare(op, left, k))
    }

    fn eq(&mut self, at: At, offset: u32, size: u8, k: u32) -> Result<Cond> {
        self.test(crate::bpf::JEQ, at, offset, size, k)
    }

    /// Less or equal.
    fn le(&mut self, at: At, offset: u32, size: u8, k: u32) -> Result<Cond> {
        self.test(crate::bpf::JGT, at, offset, size, k).map(not)
    }

    /// Equal under a mask.
    fn masked(&mut self, at: At, offset: u32, size: u8, k: u32, mask: u32) -> Result<Cond> {
        self.masked_op(crate::bpf::JEQ, at, offset, size, k, mask)
    }

    fn masked_op(
        &mut self,
        op: u16,
        at: At,
        offset: u32,
        size: u8,
        k: u32,
        mask: u32,
    ) -> Result<Cond> {
        if mask == 0 && op == crate::bpf::JEQ {
            return Ok(if k == 0 { Cond::True } else { Cond::False });
        }
        let mut value = self.load(at, offset, size)?;
        if mask != u32::MAX {
            let mask = self.values.constant(mask);
            value = self.values.binary(crate::bpf::AND, value, mask);
        }
        Ok(self.compare(op, value, k))
    }

    /// Any of some bits set.
    fn set(&mut self, at: At, offset: u32, size: u8, bits: u32) -> Result<Cond> {
        self.test(crate::bpf::JSET, at, offset, size, bits)
    }

    /// Equality of bytes, comparing the last word first.
    fn bytes(&mut self, at: At, offset: u32, bytes: &[u8]) -> Result<Cond> {
        let mut cond = Cond::True;
        let mut end = bytes.len();
        while end > 0 {
            let size = match end {
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
            end -= size;
            let k = bytes[end..end + size].iter().fold(0, |k, b| k << 8 | u32::from(*b));
            cond = and(cond, self.eq(at, offset + end as u32, size as u8, k)?);
        }
        Ok(cond)
    }
}

/// An error for a number that is too high.
fn at_most(name: &str, value: u32, max: u32) -> Result<()> {
    if value > max { Err(format!("{name} {value} greater than maximum {max}")) } else { Ok(()) }
}

fn invalid(qualifier: &str, of: &str) -> String {
    format!("'{qualifier}' is not a valid qualifier for '{of}'")
}
