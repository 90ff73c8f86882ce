//! Values of log writers and input readers.

use std::borrow::Cow;
use std::fmt;

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `count`
    Count,
    /// `port`
    Port,
    /// `subnet`
    Subnet,
    /// `addr`
    Addr,
    /// `double`
    Double,
    /// `interval`
    Interval,
    /// `time`
    Time,
    /// `string`
    String,
    /// Any enum.
    Enum,
    /// `file`
    File,
    /// `func`
    Func,
    /// `pattern`
    Pattern,
    /// A set with one index.
    Set(Box<Kind>),
    /// A vector.
    Vector(Box<Kind>),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Count => "count",
            Kind::Port => "port",
            Kind::Subnet => "subnet",
            Kind::Addr => "addr",
            Kind::Double => "double",
            Kind::Interval => "interval",
            Kind::Time => "time",
            Kind::String => "string",
            Kind::Enum => "enum",
            Kind::File => "file",
            Kind::Func => "func",
            Kind::Pattern => "pattern",
            Kind::Set(of) => return write!(f, "set[{of}]"),
            Kind::Vector(of) => return write!(f, "vector[{of}]"),
        };
        f.write_str(name)
    }
}

/// A column of a log or an input file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; names of records and their fields are joined by dots.
    pub name: String,
    /// The column with the protocols of ports (`&type_column`); only for input.
    pub secondary: Option<String>,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
}

impl Column {
    /// A mandatory column.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Column { name: name.into(), secondary: None, kind, optional: false }
    }
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `unknown`
    #[default]
    Unknown,
    /// `tcp`
    Tcp,
    /// `udp`
    Udp,
    /// `icmp`
    Icmp,
}

impl Protocol {
    /// Its name in Zeek.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Unknown => "unknown",
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        }
    }

    /// The protocol with this name.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let all = [Protocol::Unknown, Protocol::Tcp, Protocol::Udp, Protocol::Icmp];
        all.into_iter().find(|protocol| protocol.name().as_bytes() == name)
    }
}

/// A value of a column. Strings may borrow from their source.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// No value.
    Unset,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A count.
    Count(u64),
    /// A port number, which is unchecked in input and may exceed 65535, and its protocol.
    Port(u32, Protocol),
    /// A subnet: an address of sixteen bytes, IPv4 mapped, and the prefix length as written (at most 32 for
    /// IPv4).
    Subnet([u8; 16], u8),
    /// An address of sixteen bytes, IPv4 mapped.
    Addr([u8; 16]),
    /// A double.
    Double(f64),
    /// An interval, in seconds.
    Interval(f64),
    /// A time, in seconds since 1970.
    Time(f64),
    /// A string.
    String(Cow<'a, [u8]>),
    /// The name of an enum's value.
    Enum(Cow<'a, [u8]>),
    /// The name of a file.
    File(Cow<'a, [u8]>),
    /// The description of a function.
    Func(Cow<'a, [u8]>),
    /// A pattern: the text between slashes, and the flags `i` and `s`.
    Pattern(Cow<'a, [u8]>, bool, bool),
    /// The elements of a set in iteration order.
    Set(Vec<Field<'a>>),
    /// The elements of a vector; holes are unset.
    Vector(Vec<Field<'a>>),
}

impl<'a> Field<'a> {
    /// Converts it to a value that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Field<'static> {
        let owned = |text: Cow<'a, [u8]>| Cow::Owned(text.into_owned());
        let all = |items: Vec<Self>| items.into_iter().map(Self::into_owned).collect();
        match self {
            Self::Unset => Field::Unset,
            Self::Bool(value) => Field::Bool(value),
            Self::Int(value) => Field::Int(value),
            Self::Count(value) => Field::Count(value),
            Self::Port(number, protocol) => Field::Port(number, protocol),
            Self::Subnet(address, width) => Field::Subnet(address, width),
            Self::Addr(address) => Field::Addr(address),
            Self::Double(value) => Field::Double(value),
            Self::Interval(value) => Field::Interval(value),
            Self::Time(value) => Field::Time(value),
            Self::String(text) => Field::String(owned(text)),
            Self::Enum(text) => Field::Enum(owned(text)),
            Self::File(text) => Field::File(owned(text)),
            Self::Func(text) => Field::Func(owned(text)),
            Self::Pattern(text, ignores_case, single_line) => {
                Field::Pattern(owned(text), ignores_case, single_line)
            }
            Self::Set(items) => Field::Set(all(items)),
            Self::Vector(items) => Field::Vector(all(items)),
        }
    }

    /// The bytes of a string or a name; empty for other values.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Field::String(text)
            | Field::Enum(text)
            | Field::File(text)
            | Field::Func(text)
            | Field::Pattern(text, ..) => text,
            _ => b"",
        }
    }

    /// A string.
    #[must_use]
    pub fn string(bytes: &'a [u8]) -> Self {
        Field::String(Cow::Borrowed(bytes))
    }
}
