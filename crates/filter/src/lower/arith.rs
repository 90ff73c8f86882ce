//! Arithmetic on unsigned 32-bit numbers.

use super::link::{IP, IP6};
use super::port::number;
use super::{At, Lower, Result};
use crate::ast::{Arith, Relation};
use crate::bpf;
use crate::dlt::{IEEE802_11_RADIO, IEEE802_11_RADIO_AVS, PRISM_HEADER};
use crate::ir::{Cond, Node, ValueId, and, not};

impl Lower<'_> {
    pub(super) fn relation(&mut self, relation: Relation, a: &Arith, b: &Arith) -> Result<Cond> {
        let (mut first, mut second) = (Cond::True, Cond::True);
        let left = self.arith(a, &mut first)?;
        let right = self.arith(b, &mut second)?;
        let (op, negated) = operation(relation);
        let test = self.compare_values(op, left, right);
        let test = if negated { not(test) } else { test };
        Ok(and(second, and(first, test)))
    }

    /// A value, and the conditions under which it is defined.
    fn arith(&mut self, arith: &Arith, checks: &mut Cond) -> Result<ValueId> {
        match arith {
            Arith::Number(n) => Ok(self.values.constant(*n)),
            Arith::Len => Ok(self.values.add(Node::Len)),
            Arith::Neg(inner) => {
                let inner = self.arith(inner, checks)?;
                Ok(self.values.add(Node::Neg(inner)))
            }
            Arith::Binary(sign, a, b) => {
                let a = self.arith(a, checks)?;
                match (*sign, &**b) {
                    ("/", Arith::Number(0)) => return Err("division by zero".into()),
                    ("%", Arith::Number(0)) => return Err("modulus by zero".into()),
                    ("<<" | ">>", Arith::Number(32..)) => {
                        return Err("shift by more than 31 bits".into());
                    }
                    _ => (),
                }
                let mut dropped = Cond::True;
                let b = self.arith(b, if self.as_libpcap { &mut dropped } else { checks })?;
                let zero = self.options.optimize && self.values.as_const(b) == Some(0);
                let op = match *sign {
                    "+" => bpf::ADD,
                    "-" => bpf::SUB,
                    "*" => bpf::MUL,
                    "/" if zero => return Err("division by zero".into()),
                    "%" if zero => return Err("modulus by zero".into()),
                    "/" => bpf::DIV,
                    "%" => bpf::MOD,
                    "&" => bpf::AND,
                    "|" => bpf::OR,
                    "^" => bpf::XOR,
                    "<<" => bpf::LSH,
                    _ => bpf::RSH,
                };
                Ok(self.values.binary(op, a, b))
            }
            Arith::Load(proto, offset, size) => {
                let index = self.arith(offset, checks)?;
                if !matches!(size, 1 | 2 | 4) {
                    return Err("data size must be 1, 2, or 4".into());
                }
                self.index(proto, index, *size as u8, checks)
            }
        }
    }

    fn index(
        &mut self,
        proto: &str,
        index: ValueId,
        size: u8,
        checks: &mut Cond,
    ) -> Result<ValueId> {
        let check;
        let at = match proto {
            "radio" => {
                let link = self.state.link;
                if !matches!(link, IEEE802_11_RADIO_AVS | IEEE802_11_RADIO | PRISM_HEADER) {
                    return Err("radio information not present in capture".into());
                }
                check = Cond::True;
                At::Packet
            }
            "link" => {
                check = Cond::True;
                At::LinkHeader
            }
            "ip" | "arp" | "rarp" | "atalk" | "decnet" | "sca" | "lat" | "moprc" | "mopdl"
            | "ip6" => {
                check = self.abbreviation(proto)?;
                At::Payload
            }
            "sctp" | "tcp" | "udp" | "icmp" | "igmp" | "igrp" | "pim" | "vrrp" | "carp" => {
                let ip = self.carries(IP)?;
                let is = self.eq(At::Payload, 9, 1, number(proto))?;
                let whole = not(self.set(At::Payload, 6, 2, 0x1fff)?);
                check = and(and(ip, is), whole);
                At::Transport4
            }
            "icmp6" => {
                let ip6 = self.carries(IP6)?;
                check = and(ip6, self.eq(At::Payload, 6, 1, number(proto))?);
                At::Transport6
            }
            _ => return Err(format!("'{proto}' does not support the index operation")),
        };
        let before = std::mem::replace(checks, Cond::True);
        *checks = and(before, check);
        let (base, constant) = self.base(at)?;
        let base = match (base, self.values.as_const(index)) {
            // Kept separate where the sum would wrap: offsets do not wrap.
            (Some(base), Some(k)) if k.checked_add(constant).is_some() => {
                return Ok(self.values.add(Node::Load(size, Some(base), constant + k)));
            }
            (Some(base), _) => self.values.binary(bpf::ADD, base, index),
            (None, _) => index,
        };
        Ok(self.values.add(Node::Load(size, Some(base), constant)))
    }

    /// `byte INDEX OP VALUE`
    pub(super) fn byte(&mut self, index: u32, op: &str, value: u32) -> Result<Cond> {
        super::at_most("byte argument", value, 0xff)?;
        let loaded = self.load(At::LinkHeader, index, 1)?;
        let constant = self.values.constant(value);
        Ok(match op {
            "=" => self.compare(bpf::JEQ, loaded, value),
            "<" => not(self.compare(bpf::JGE, loaded, value)),
            ">" => self.compare(bpf::JGT, loaded, value),
            _ => {
                let op = if op == "|" { bpf::OR } else { bpf::AND };
                let result = self.values.binary(op, loaded, constant);
                not(self.compare(bpf::JEQ, result, 0))
            }
        })
    }
}

/// The comparison of BPF, and whether its operands are swapped.
pub(super) fn operation(relation: Relation) -> (u16, bool) {
    match relation {
        Relation::Gt => (bpf::JGT, false),
        Relation::Ge => (bpf::JGE, false),
        Relation::Eq => (bpf::JEQ, false),
        Relation::Le => (bpf::JGT, true),
        Relation::Lt => (bpf::JGE, true),
        Relation::Ne => (bpf::JEQ, true),
    }
}
