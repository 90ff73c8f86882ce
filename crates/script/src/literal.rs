//! Constants as the AST holds them.

use std::rc::Rc;

/// A constant of an atomic type. Which enum a [`Literal::Enum`] belongs to says the type of its expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Literal {
    /// `T` or `F`.
    Bool(bool),
    /// An integer with sign.
    Int(i64),
    /// An integer without sign.
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

/// A network: its address with host bits cleared, and the width in bits of 128 (96 more than written for version 4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Subnet {
    /// The address, in network order; version 4 as `::ffff:a.b.c.d`.
    pub prefix: [u8; 16],
    /// 0 to 128.
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

/// Protocols of ports, in the order in which Zeek numbers them.
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

/// The source of a pattern: what is between the slashes, and flags. It is valid: the parser compiled it once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PatternSource {
    /// The text between the slashes.
    pub text: Rc<[u8]>,
    /// Flag `i`.
    pub case_insensitive: bool,
    /// Flag `s`.
    pub single_line: bool,
}
