//! The syntax tree, each node with its span in the text.

use crate::error::Span;

/// The operators that join operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

/// An expression. Its depth is bounded by that of the parentheses and negations, whatever its
/// length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Not(Box<Expr>),
    /// Operands of operators of equal precedence, from the left.
    Chain(Box<Expr>, Vec<(Join, Expr)>),
    Leaf(Primitive, Span),
}

/// The qualifiers of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Qualifiers {
    pub(crate) proto: Option<&'static str>,
    /// `src`, `dst`, `src or dst`, `src and dst`, `addr1` …
    pub(crate) dir: Option<&'static str>,
    /// `host`, `net` …; `None` means the default for the identifier.
    pub(crate) of: Option<&'static str>,
}

/// An identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Number(u32),
    Name(String),
    V4(String),
    V4Prefix(String, u32),
    V4Mask(String, String),
    V6(String),
    V6Prefix(String, u32),
    Mac(String),
    Mac8(String),
    /// `@NAME`, a list of the resolver.
    File(String),
}

/// A number, or a name for a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u32),
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Primitive {
    /// The qualifiers are `None` for an identifier that follows a primitive without qualifiers.
    Id(Option<Qualifiers>, Id),
    /// `in {…}`
    Among(Qualifiers, Vec<Id>),
    Proto(&'static str),
    Relation(Relation, Box<Arith>, Box<Arith>),
    Broadcast(Option<&'static str>),
    Multicast(Option<&'static str>),
    Less(u32),
    Greater(u32),
    Byte(u32, &'static str, u32),
    /// A keyword alone.
    Key(&'static str),
    /// `vlan`, `mpls`, `pppoes`, `geneve`, `vxlan`, `ifindex` and those of pflog, with a number.
    Tagged(&'static str, Option<u32>),
    Pflog(&'static str, Value),
    /// Type, subtype.
    Wlan(Option<Value>, Option<Value>),
    WlanDir(Value),
    Llc(Option<String>),
    /// `vpi`, `vci` or a field of MTP3, compared with alternative values.
    Field(&'static str, Relation, Vec<u32>),
}

/// A comparison, of unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Gt,
    Ge,
    Eq,
    Le,
    Lt,
    Ne,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Number(u32),
    Len,
    /// `proto[offset:size]`
    Load(&'static str, Box<Arith>, u32),
    Binary(&'static str, Box<Arith>, Box<Arith>),
    Neg(Box<Arith>),
}
