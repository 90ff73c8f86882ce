//! Constants in the AST.

use std::rc::Rc;

/// A constant of an atomic type. The enum type of a [`Literal::Enum`] is that of its expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// `T` or `F`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Count(u64),
    /// A double.
    Double(f64),
    /// Seconds since 1970.
    Time(f64),
    /// Seconds.
    Interval(f64),
    /// Bytes; escapes are resolved.
    String(Rc<[u8]>),
    /// An address in network order; version 4 as `::ffff:a.b.c.d`.
    Addr([u8; 16]),
    /// A network.
    Subnet(Subnet),
    /// A port.
    Port(Port),
    /// A value of an enum.
    Enum(i64),
    /// A pattern.
    Pattern(Rc<PatternSource>),
}

/// A network: its address with host bits cleared, and its prefix length relative to 128 bits (that of IPv4 plus
/// 96).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Subnet {
    /// The address, in network order; version 4 as `::ffff:a.b.c.d`.
    pub prefix: [u8; 16],
    /// Prefix length, 0 to 128.
    pub width: u8,
}

/// A port with its protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// The number.
    pub number: u16,
    /// The protocol.
    pub protocol: Protocol,
}

/// Transport protocols of ports, numbered as in Zeek.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// `/unknown`.
    Unknown = 0,
    /// `/tcp`.
    Tcp = 1,
    /// `/udp`.
    Udp = 2,
    /// `/icmp`.
    Icmp = 3,
}

/// The source of a pattern: the text between the slashes, and flags. The parser has checked that it compiles.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PatternSource {
    /// The text between the slashes.
    pub text: Rc<[u8]>,
    /// Flag `i`.
    pub case_insensitive: bool,
    /// Flag `s`.
    pub single_line: bool,
}
