//! An expression in words.

use crate::Compiled;
use crate::ast::{Arith, Expr, Id, Join, Primitive, Qualifiers, Relation, Value};

impl Compiled {
    /// The filter in words, and the size of its program.
    pub fn explain(&self) -> String {
        let n = self.program().insns().len();
        let what = match self.tree() {
            None => "every packet".to_owned(),
            Some(tree) => format!("packets where {}", expression(&tree)),
        };
        let link = crate::dlt::described(self.link_type());
        format!("On {link}, lets through {what}.\n{n} instructions of BPF.\n")
    }
}

fn expression(expr: &Expr) -> String {
    match expr {
        Expr::Not(inner) => format!("it is not so that {}", inside(inner)),
        Expr::Chain(first, rest) => {
            // Both operators have equal precedence, from the left: everything before one is its
            // left side.
            let mut out = inside(first);
            let mut last = rest.first().map(|(join, _)| *join);
            for (join, next) in rest {
                if last != Some(*join) {
                    out = format!("({out})");
                    last = Some(*join);
                }
                let word = if *join == Join::And { "and" } else { "or" };
                out = format!("{out}, {word} {}", inside(next));
            }
            out
        }
        Expr::Leaf(primitive, _) => leaf(primitive),
    }
}

fn inside(expr: &Expr) -> String {
    match expr {
        Expr::Chain(..) => format!("({})", expression(expr)),
        _ => expression(expr),
    }
}

fn leaf(primitive: &Primitive) -> String {
    match primitive {
        Primitive::Id(Some(q), id) => format!("{} is {}", subject(*q), named(id)),
        Primitive::Id(None, id) => named(id),
        Primitive::Among(q, items) => {
            let all: Vec<String> = items.iter().map(named).collect();
            format!("{} is one of {}", subject(*q), all.join(", "))
        }
        Primitive::Proto(proto) => format!("the protocol is {proto}"),
        Primitive::Relation(relation, a, b) => {
            format!("{} {} {}", number(a), relation_word(*relation), number(b))
        }
        Primitive::Broadcast(proto) => {
            format!("the destination is the broadcast address of {}", proto.unwrap_or("the link"))
        }
        Primitive::Multicast(proto) => {
            format!("the destination is a multicast address of {}", proto.unwrap_or("the link"))
        }
        Primitive::Less(n) => format!("the length is at most {n}"),
        Primitive::Greater(n) => format!("the length is at least {n}"),
        Primitive::Byte(at, op, n) => format!("byte {at} of the link header {op} {n}"),
        Primitive::Key("inbound") => "the packet came in".to_owned(),
        Primitive::Key("outbound") => "the packet went out".to_owned(),
        Primitive::Key(key) => format!("it is of kind {key}"),
        Primitive::Tagged(key, number) => {
            let number = number.map_or(String::new(), |n| format!(" {n}"));
            match *key {
                "vlan" | "mpls" | "pppoes" | "geneve" | "vxlan" => format!(
                    "there is a {key} header{number} (what follows in the text is inside of it)"
                ),
                _ => format!("{key} is{number}"),
            }
        }
        Primitive::Pflog(key, v) => format!("{key} is {}", value(v)),
        Primitive::Wlan(of, sub) => {
            let part = |what: &str, v: &Option<Value>| {
                v.as_ref().map(|v| format!("the 802.11 {what} is {}", value(v)))
            };
            let all: Vec<String> =
                [part("type", of), part("subtype", sub)].into_iter().flatten().collect();
            all.join(" and ")
        }
        Primitive::WlanDir(v) => format!("the 802.11 direction is {}", value(v)),
        Primitive::Llc(None) => "it is an LLC frame".to_owned(),
        Primitive::Llc(Some(kind)) => format!("it is an LLC frame of kind {kind}"),
        Primitive::Field(field, relation, values) => {
            let all: Vec<String> = values.iter().map(u32::to_string).collect();
            format!("{field} {} {}", relation_word(*relation), all.join(" or "))
        }
    }
}

/// The subject of an identifier.
fn subject(q: Qualifiers) -> String {
    let side = match q.dir {
        None | Some("src or dst" | "dst or src") => "the source or the destination",
        Some("src") => "the source",
        Some("dst") => "the destination",
        Some("src and dst" | "dst and src") => "the source as well as the destination",
        Some(other) => other,
    };
    let over = q.proto.map_or(String::new(), |p| format!(" over {p}"));
    match q.of {
        Some(of @ ("proto" | "protochain")) => {
            let chain = if of == "proto" { "" } else { ", anywhere in the chain of headers," };
            format!("the protocol{over}{chain}")
        }
        Some("gateway") => "the gateway".to_owned(),
        Some("net") => format!("the network of {side}{over}"),
        Some("port") => format!("the port of {side}{over}"),
        Some("portrange") => format!("the port of {side}{over}, within the range,"),
        _ => format!("the address of {side}{over}"),
    }
}

pub(super) fn named(id: &Id) -> String {
    match id {
        Id::Number(n) => n.to_string(),
        Id::Name(text) | Id::V4(text) | Id::V6(text) | Id::Mac(text) | Id::Mac8(text) => {
            text.clone()
        }
        Id::V4Prefix(text, n) | Id::V6Prefix(text, n) => format!("{text}/{n}"),
        Id::V4Mask(text, mask) => format!("{text} under the mask {mask}"),
        Id::File(name) => format!("those in the list {name}"),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Number(n) => n.to_string(),
        Value::Name(name) => name.clone(),
    }
}

fn relation_word(relation: Relation) -> &'static str {
    match relation {
        Relation::Gt => "is above",
        Relation::Ge => "is at least",
        Relation::Eq => "is",
        Relation::Le => "is at most",
        Relation::Lt => "is below",
        Relation::Ne => "is not",
    }
}

fn number(arith: &Arith) -> String {
    match arith {
        Arith::Number(n) => n.to_string(),
        Arith::Len => "the length".to_owned(),
        Arith::Load(proto, at, size) => {
            let size = if *size == 1 { "byte".to_owned() } else { format!("{size} bytes") };
            format!("the {size} of {proto} at {}", number(at))
        }
        Arith::Binary(sign, a, b) => format!("({} {sign} {})", number(a), number(b)),
        Arith::Neg(a) => format!("-{}", number(a)),
    }
}
