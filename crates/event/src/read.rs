//! Reads packed arguments.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Subnet;
use gannet_base::Time;

use crate::decl::Param;
use crate::decl::Type;

/// A value, or the start of a list or record, whose elements are read next from the same [`Reader`].
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
    /// The name of an opaque type and its bytes.
    Opaque(&'static str, &'a [u8]),
    /// The number of values of a vector, which follow.
    Vector(usize),
    /// The number of values of a set, which follow.
    Set(usize),
    /// The number of pairs of key and value of a table, which follow.
    Table(usize),
    /// The start of a record, whose fields follow.
    Record,
    /// Index of a connection.
    Connection(usize),
    /// `conn_id` with the IP protocol number.
    ConnId(ConnId, Proto, u8),
    /// Index of a file.
    File(usize),
}

/// Reads packed values in order.
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

/// Reader of the arguments of an event.
pub type Args<'a> = Reader<'a>;

impl<'a> Reader<'a> {
    /// Reads bytes that a [`Packer`](crate::Packer) wrote.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The remaining bytes.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    #[inline]
    fn len(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take_array()?) as usize)
    }

    /// Whether a parameter or field is set and its value follows. `None` if no bytes are left.
    #[inline]
    pub fn is_set(&mut self, param: &Param) -> Option<bool> {
        Some(!param.optional || self.take_array::<1>()? != [0])
    }

    /// A `bool`.
    #[inline]
    pub fn bool(&mut self) -> Option<bool> {
        Some(self.take_array::<1>()? != [0])
    }

    /// An `int`.
    #[inline]
    pub fn int(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take_array()?))
    }

    /// A `count`.
    #[inline]
    pub fn count(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take_array()?))
    }

    /// A `double`.
    #[inline]
    pub fn double(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.take_array()?))
    }

    /// The nanoseconds of a `time`.
    #[inline]
    pub fn nanos(&mut self) -> Option<i64> {
        self.int()
    }

    /// An `addr` of sixteen bytes.
    #[inline]
    pub fn addr(&mut self) -> Option<[u8; 16]> {
        self.take_array()
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
        let number = u16::from_le_bytes(self.take_array()?);
        let [proto] = self.take_array()?;
        let proto = match proto {
            1 => Proto::Tcp,
            2 => Proto::Udp,
            3 => Proto::Icmp,
            _ => Proto::Unknown,
        };
        Some((number, proto))
    }

    /// The value of a parameter or field; `None` if it is unset or no bytes are left.
    pub fn param(&mut self, param: &Param) -> Option<Value<'a>> {
        if self.is_set(param)? { self.value(&param.ty) } else { None }
    }

    /// The next value, or the start of a list or record. `None` if no bytes are left, which never happens for bytes of
    /// a packer.
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
                let base = Addr::v6(self.take_array()?);
                let [len] = self.take_array()?;
                Value::Subnet(Subnet::new(base, if base.is_v4() { len - 96 } else { len })?)
            }
            Type::Enum(_) => Value::Enum(std::str::from_utf8(self.bytes()?).unwrap_or_default()),
            Type::Opaque(name) => Value::Opaque(name, self.bytes()?),
            Type::Vector(_) | Type::VectorFromOne(_) => Value::Vector(self.len()?),
            Type::Set(_) => Value::Set(self.len()?),
            Type::Table(..) => Value::Table(self.len()?),
            Type::Record(_) => Value::Record,
            Type::Connection => Value::Connection(self.len()?),
            Type::ConnId => {
                let orig_h = Addr::v6(self.take_array()?);
                let (orig_p, proto) = self.port()?;
                let resp_h = Addr::v6(self.take_array()?);
                let (resp_p, _) = self.port()?;
                let [number] = self.take_array()?;
                Value::ConnId(ConnId { orig_h, orig_p, resp_h, resp_p }, proto, number)
            }
            Type::File => Value::File(self.len()?),
        })
    }

    /// Skips `len` bytes: values whose [packed length](Type::packed_len) is known.
    #[inline]
    pub fn advance(&mut self, len: usize) -> Option<()> {
        self.0 = self.0.get(len..)?;
        Some(())
    }

    /// Skips a value.
    pub fn skip(&mut self, ty: &Type) -> Option<()> {
        match (self.value(ty)?, ty) {
            (Value::Vector(n), Type::Vector(element) | Type::VectorFromOne(element))
            | (Value::Set(n), Type::Set(element)) => (0..n).try_for_each(|_| self.skip(element)),
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

    /// Skips a parameter or field.
    pub fn skip_param(&mut self, param: &Param) -> Option<()> {
        if self.is_set(param)? { self.skip(&param.ty) } else { Some(()) }
    }
}

impl Type {
    /// The size of a packed value in bytes, if it is the same for all values of this type.
    #[must_use]
    pub fn packed_len(&self) -> Option<usize> {
        Some(match self {
            Self::Bool => 1,
            Self::Int | Self::Count | Self::Double | Self::Time | Self::Interval => 8,
            Self::Port => 3,
            Self::Addr => 16,
            Self::Subnet => 17,
            Self::Connection | Self::File => 4,
            Self::ConnId => 39,
            Self::Record(record) => {
                let len = |field: &Param| if field.optional { None } else { field.ty.packed_len() };
                record.fields.iter().map(len).sum::<Option<usize>>()?
            }
            Self::String
            | Self::Enum(_)
            | Self::Opaque(_)
            | Self::Vector(_)
            | Self::VectorFromOne(_)
            | Self::Set(_)
            | Self::Table(..) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Interval;
    use proptest::prelude::*;

    use super::*;
    use crate::decl::Record;
    use crate::pack::Arg;
    use crate::pack::Id4;
    use crate::pack::Packer;
    use crate::pack::Port;

    /// Checks the packed length of a value, and that skipping it ends after it.
    fn check<T: Arg>(value: T) {
        let mut bytes = Vec::new();
        value.pack(&mut Packer::new(&mut bytes));
        if let Some(len) = T::TYPE.packed_len() {
            assert_eq!(bytes.len(), len, "{:?}", T::TYPE);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.advance(len), Some(()));
            assert_eq!(reader.advance(1), None);
        }
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.skip(&T::TYPE), Some(()));
        assert_eq!(reader.bool(), None, "{:?}", T::TYPE);
    }

    proptest! {
        #[test]
        fn values_have_the_packed_length_of_their_types(
            number: u64, int: i64, double: f64, addr: [u8; 16], port: u16, text: Vec<u8>,
        ) {
            let addr = Addr::v6(addr);
            let id = ConnId { orig_h: addr, orig_p: port, resp_h: addr, resp_p: port };
            check(number);
            check(int);
            check(double);
            check(port % 2 == 0);
            check(Time::from_nanos(int));
            check(Interval::from_nanos(int));
            check(&*text);
            check(vec![number; text.len()]);
            check(crate::FromOne(vec![number; text.len()]));
            check(addr);
            check(Port(port, Proto::Tcp));
            check(Id4(id, Proto::Udp, 17));
            check(Subnet::new(addr, if addr.is_v4() { 32 } else { 128 }).unwrap());
        }
    }

    #[test]
    fn records_of_fields_with_fixed_length_have_fixed_length() {
        static FIELDS: &[Param] = &[
            Param { name: "a", ty: Type::Addr, optional: false, doc: "" },
            Param { name: "b", ty: Type::Bool, optional: false, doc: "" },
            Param { name: "c", ty: Type::String, optional: false, doc: "" },
        ];
        static OPTIONAL: &[Param] = &[Param { name: "a", ty: Type::Addr, optional: true, doc: "" }];
        let record = |fields| Record { name: "r", fields };
        static EMPTY: Record = Record { name: "r", fields: &[] };
        assert_eq!(Type::Record(&EMPTY).packed_len(), Some(0));
        for (fields, len) in [(&FIELDS[..2], Some(17)), (FIELDS, None), (OPTIONAL, None)] {
            let record: &'static Record = Box::leak(Box::new(record(fields)));
            assert_eq!(Type::Record(record).packed_len(), len);
        }
    }
}
