//! How a listener reads packed arguments.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Subnet;
use gannet_base::Time;

use crate::decl::Param;
use crate::decl::Type;

/// A value, or the head of one: elements of a list or record are then read from the same
/// [`Reader`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `count`
    Count(u64),
    /// `double`
    Double(f64),
    /// `time`
    Time(Time),
    /// `interval`, in seconds
    Interval(f64),
    /// `string`
    String(&'a [u8]),
    /// `port`
    Port(u16, Proto),
    /// `addr`
    Addr(Addr),
    /// `subnet`
    Subnet(Subnet),
    /// The name of an enumerator.
    Enum(&'a str),
    /// The name of an opaque type.
    Opaque(&'static str, &'a [u8]),
    /// A vector of this many values, which follow.
    Vector(usize),
    /// A set of this many values, which follow.
    Set(usize),
    /// A table of this many pairs of key and value, which follow.
    Table(usize),
    /// A record, whose fields follow.
    Record,
    /// Index of a connection.
    Connection(usize),
    /// `conn_id` with the IP protocol's number.
    ConnId(ConnId, Proto, u8),
    /// Index of a file.
    File(usize),
}

/// Reads packed values one after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

/// The arguments of an event, by their declarations.
pub type Args<'a> = Reader<'a>;

impl<'a> Reader<'a> {
    /// Reads from these bytes, which a [`Packer`](crate::Packer) wrote.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    #[inline]
    fn len(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take()?) as usize)
    }

    /// Whether a parameter or field is set: its value follows then. `None` if the bytes end.
    #[inline]
    pub fn is_set(&mut self, param: &Param) -> Option<bool> {
        Some(!param.optional || self.take::<1>()? != [0])
    }

    /// A `bool`.
    #[inline]
    pub fn bool(&mut self) -> Option<bool> {
        Some(self.take::<1>()? != [0])
    }

    /// An `int`.
    #[inline]
    pub fn int(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take()?))
    }

    /// A `count`.
    #[inline]
    pub fn count(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take()?))
    }

    /// A `double`.
    #[inline]
    pub fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.take()?))
    }

    /// The nanoseconds of a `time`.
    #[inline]
    pub fn nanos(&mut self) -> Option<i64> {
        self.int()
    }

    /// An `addr` of sixteen bytes.
    #[inline]
    pub fn addr(&mut self) -> Option<[u8; 16]> {
        self.take()
    }

    /// The bytes of a `string`.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    /// The index of a connection or file.
    #[inline]
    pub fn index(&mut self) -> Option<usize> {
        self.len()
    }

    /// A `port`.
    #[inline]
    pub fn port(&mut self) -> Option<(u16, Proto)> {
        let number = u16::from_le_bytes(self.take()?);
        let [proto] = self.take()?;
        let proto = match proto {
            1 => Proto::Tcp,
            2 => Proto::Udp,
            3 => Proto::Icmp,
            _ => Proto::Unknown,
        };
        Some((number, proto))
    }

    /// The value of a parameter or field, `None` if it is unset (or the bytes end).
    pub fn param(&mut self, param: &Param) -> Option<Value<'a>> {
        if self.is_set(param)? { self.value(&param.ty) } else { None }
    }

    /// The next value, or its head. `None` if the bytes end, which never happens for bytes of a
    /// packer.
    pub fn value(&mut self, ty: &Type) -> Option<Value<'a>> {
        Some(match ty {
            Type::Bool => Value::Bool(self.bool()?),
            Type::Int => Value::Int(self.int()?),
            Type::Count => Value::Count(self.count()?),
            Type::Double => Value::Double(self.double()?),
            Type::Time => Value::Time(Time::from_nanos(self.nanos()?)),
            Type::Interval => Value::Interval(self.double()?),
            Type::String => Value::String(self.bytes()?),
            Type::Port => {
                let (number, proto) = self.port()?;
                Value::Port(number, proto)
            }
            Type::Addr => Value::Addr(Addr::v6(self.addr()?)),
            Type::Subnet => {
                let base = Addr::v6(self.take()?);
                let [len] = self.take()?;
                Value::Subnet(Subnet::new(base, if base.is_v4() { len - 96 } else { len })?)
            }
            Type::Enum(_) => Value::Enum(std::str::from_utf8(self.bytes()?).unwrap_or_default()),
            Type::Opaque(name) => Value::Opaque(name, self.bytes()?),
            Type::Vector(_) => Value::Vector(self.len()?),
            Type::Set(_) => Value::Set(self.len()?),
            Type::Table(..) => Value::Table(self.len()?),
            Type::Record(_) => Value::Record,
            Type::Connection => Value::Connection(self.len()?),
            Type::ConnId => {
                let orig_h = Addr::v6(self.take()?);
                let (orig_p, proto) = self.port()?;
                let resp_h = Addr::v6(self.take()?);
                let (resp_p, _) = self.port()?;
                let [number] = self.take()?;
                Value::ConnId(ConnId { orig_h, orig_p, resp_h, resp_p }, proto, number)
            }
            Type::File => Value::File(self.len()?),
        })
    }

    /// Passes over a value.
    pub fn skip(&mut self, ty: &Type) -> Option<()> {
        match (self.value(ty)?, ty) {
            (Value::Vector(n), Type::Vector(of)) | (Value::Set(n), Type::Set(of)) => {
                (0..n).try_for_each(|_| self.skip(of))
            }
            (Value::Table(n), Type::Table(key, value)) => (0..n).try_for_each(|_| {
                self.skip(key)?;
                self.skip(value)
            }),
            (Value::Record, Type::Record(record)) => {
                record.fields.iter().try_for_each(|f| self.skip_param(f))
            }
            _ => Some(()),
        }
    }

    /// Passes over a parameter or field.
    pub fn skip_param(&mut self, param: &Param) -> Option<()> {
        if self.is_set(param)? { self.skip(&param.ty) } else { Some(()) }
    }
}
