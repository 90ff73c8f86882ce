//! The values of scripts.
//!
//! A [`Value`] is a cell of 16 bytes. Numbers, times, ports, enums, short strings and IPv4 addresses are in the cell itself; all
//! others are allocated behind one `Rc`. Each value knows its type, so `any` needs no wrapper.
//!
//! | module | duty |
//! |---|---|
//! | [`table`] | tables and sets |
//! | [`object`] | records, vectors, functions, files, opaque values |
//! | `cycles` | frees values that only refer to each other |
//! | [`equal`] | equality, order, hashes |
//! | [`binary`] | the binary form over which digests are computed |
//! | [`describe`] | the text that `print` and `cat` show |

pub mod binary;
mod cell;
pub(crate) mod cycles;
pub mod describe;
pub mod equal;
pub mod object;
pub mod order;
pub mod table;
pub mod text;

use std::fmt;
use std::rc::Rc;

use crate::ids::TypeId;
use crate::literal::{Literal, Port, Protocol, Subnet};
use crate::support::pattern::Pattern;

pub(crate) use object::{Defaults, LazyDefault};
pub use object::{FileValue, FuncValue, List, OpaqueValue, Record, Vector};
pub use table::Table;
pub use text::LongStr;

/// Maximum length in bytes of a string that is stored in the cell.
pub const SHORT: usize = 14;

/// A string of up to [`SHORT`] bytes. The upper four bits of `len` number the copies of a string, modulo 16; only
/// `same_object` compares them.
#[derive(Clone, Copy)]
pub struct ShortStr {
    len: u8,
    bytes: [u8; SHORT],
}

impl ShortStr {
    #[inline]
    fn new(text: &[u8]) -> Option<Self> {
        let len = text.len();
        if len > SHORT {
            return None;
        }
        // Two loads that may overlap avoid a copy of variable length.
        let packed = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let [first, last] = [first, last].map(|half| u128::from(u64::from_le_bytes(*half)));
            first | last << (8 * (len - 8))
        } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let [first, last] = [first, last].map(|half| u128::from(u32::from_le_bytes(*half)));
            first | last << (8 * (len - 4))
        } else {
            text.iter().rev().fold(0, |packed, byte| packed << 8 | u128::from(*byte))
        };
        let bytes = *packed.to_le_bytes().first_chunk()?;
        Some(Self { len: len as u8, bytes })
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len & 0x0f)).unwrap_or(&[])
    }

    /// The same string with this copy number, as another object.
    #[must_use]
    pub fn marked(self, mark: u32) -> Self {
        Self { len: self.len & 0x0f | (mark as u8) << 4, ..self }
    }

    /// A copy, as another object.
    #[must_use]
    pub fn copied(self) -> Self {
        self.marked(u32::from(self.len >> 4) + 1)
    }
}

/// A value, or no value ([`Value::Unset`]).
#[derive(Default)]
#[repr(u8)]
pub enum Value {
    /// No value: a field that is not set, a hole of a vector, a local before its first assignment, the result of a function without one.
    #[default]
    Unset,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `count`.
    Count(u64),
    /// `double`.
    Double(f64),
    /// `time`.
    Time(f64),
    /// `interval`.
    Interval(f64),
    /// A value of the enum type.
    Enum(TypeId, i64),
    /// `port`.
    Port(Port),
    /// A version 4 address.
    Addr4([u8; 4]),
    /// A version 4 network and its width (0 to 32).
    Net4([u8; 4], u8),
    /// A type.
    Type(TypeId),
    /// A string that fits into the cell. Variants up to this one own no memory.
    Short(ShortStr),
    /// A version 6 address.
    Addr6(Rc<[u8; 16]>),
    /// A version 6 network.
    Net6(Rc<Subnet>),
    /// A longer string.
    Long(Rc<LongStr>),
    /// `pattern`.
    Pattern(Rc<Pattern>),
    /// A record.
    Record(Rc<Record>),
    /// A table or set.
    Table(Rc<Table>),
    /// A vector.
    Vector(Rc<Vector>),
    /// A list of values, such as a key of several parts.
    List(Rc<List>),
    /// A function, event or hook.
    Func(Rc<FuncValue>),
    /// A file.
    File(Rc<FileValue>),
    /// A value of an opaque type.
    Opaque(Rc<OpaqueValue>),
    /// The state of a loop; scripts never see it.
    Iter(Rc<object::Iter>),
}

const _: () = assert!(size_of::<Value>() == 16);

impl Clone for Value {
    #[inline]
    fn clone(&self) -> Self {
        if self.owns_memory() { self.shared() } else { self.copied() }
    }
}

/// The prefix of IPv4-mapped IPv6 addresses, `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
pub const V4_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Value {
    /// A string.
    #[must_use]
    pub fn string(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        ShortStr::new(text).map_or_else(|| Self::Long(Rc::new(LongStr::new(text))), Self::Short)
    }

    /// A string that reuses the buffer if it is long.
    #[must_use]
    pub fn string_owned(text: Vec<u8>) -> Self {
        if text.len() <= SHORT {
            Self::string(&text)
        } else {
            Self::Long(Rc::new(LongStr::owned(text)))
        }
    }

    /// A string with each byte of `text` mapped by `change`.
    #[must_use]
    pub fn string_mapped(text: &[u8], change: impl Fn(u8) -> u8) -> Self {
        let mut buffer = [0; text::INLINE];
        match buffer.get_mut(..text.len()) {
            Some(buffer) => {
                buffer.iter_mut().zip(text).for_each(|(slot, byte)| *slot = change(*byte));
                Self::string(buffer)
            }
            None => Self::string_owned(text.iter().map(|byte| change(*byte)).collect()),
        }
    }

    /// An address from bytes in network order; IPv4 as `::ffff:a.b.c.d`.
    #[must_use]
    pub fn addr(bytes: [u8; 16]) -> Self {
        match bytes {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Self::Addr4([a, b, c, d]),
            _ => Self::Addr6(Rc::new(bytes)),
        }
    }

    /// A network; host bits are cleared.
    #[must_use]
    pub fn subnet(prefix: [u8; 16], width: u8) -> Self {
        let width = width.min(128);
        let prefix = mask(prefix, width);
        if width >= 96 && prefix.starts_with(&V4_PREFIX) {
            let [.., a, b, c, d] = prefix;
            Self::Net4([a, b, c, d], width - 96)
        } else {
            Self::Net6(Rc::new(Subnet { prefix, width }))
        }
    }

    /// The value of a literal; `ty` is the type of its expression.
    #[must_use]
    pub fn literal(literal: &Literal, ty: TypeId) -> Self {
        match literal {
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Count(value) => Self::Count(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::Time(value) => Self::Time(*value),
            Literal::Interval(value) => Self::Interval(*value),
            Literal::String(text) => Self::string(text),
            Literal::Addr(bytes) => Self::addr(*bytes),
            Literal::Subnet(net) => Self::subnet(net.prefix, net.width),
            Literal::Port(port) => Self::Port(*port),
            Literal::Enum(value) => Self::Enum(ty, *value),
            Literal::Pattern(source) => Self::Pattern(Rc::new(object::pattern_of(source))),
        }
    }

    /// The literal of an atomic value; `None` for other values.
    #[must_use]
    pub fn to_literal(&self) -> Option<Literal> {
        Some(match self {
            Self::Bool(value) => Literal::Bool(*value),
            Self::Int(value) => Literal::Int(*value),
            Self::Count(value) => Literal::Count(*value),
            Self::Double(value) => Literal::Double(*value),
            Self::Time(value) => Literal::Time(*value),
            Self::Interval(value) => Literal::Interval(*value),
            Self::Enum(_, value) => Literal::Enum(*value),
            Self::Port(port) => Literal::Port(*port),
            Self::Addr4(_) | Self::Addr6(_) => Literal::Addr(self.addr_bytes()?),
            Self::Net4(..) | Self::Net6(_) => Literal::Subnet(self.as_subnet()?),
            Self::Short(_) | Self::Long(_) => Literal::String(self.bytes()?.into()),
            _ => return None,
        })
    }

    /// Stores a value in a cell.
    #[inline]
    pub(crate) fn put(cell: &mut Self, value: Self) {
        // Only the tag is read first: if nothing is dropped, the old value is not read at all.
        if cell.owns_memory() {
            drop(std::mem::replace(cell, value));
        } else {
            std::mem::forget(std::mem::replace(cell, value));
        }
    }

    /// Stores the value of a result in a cell, or returns the error. The value is copied as 16 bytes: a move through another
    /// result would copy it in parts, and each following copy would stall on those stores.
    #[inline]
    pub(crate) fn put_result<E: Copy>(
        cell: &mut Self,
        mut result: Result<Self, E>,
    ) -> Result<(), E> {
        match &mut result {
            // A value just written in parts is read in the same parts.
            Ok(Self::Bool(value)) => Self::put(cell, Self::Bool(*value)),
            Ok(Self::Count(value)) => Self::put(cell, Self::Count(*value)),
            Ok(Self::Int(value)) => Self::put(cell, Self::Int(*value)),
            Ok(Self::Addr4(value)) => Self::put(cell, Self::Addr4(*value)),
            Ok(value) => std::mem::swap(cell, value),
            Err(error) => return Err(*error),
        }
        if result.as_ref().is_ok_and(|old| !old.owns_memory()) {
            std::mem::forget(result);
        }
        Ok(())
    }

    /// Whether the value owns memory, so that it must be dropped.
    #[inline]
    #[must_use]
    pub fn owns_memory(&self) -> bool {
        !matches!(
            self,
            Self::Unset
                | Self::Bool(_)
                | Self::Int(_)
                | Self::Count(_)
                | Self::Double(_)
                | Self::Time(_)
                | Self::Interval(_)
                | Self::Enum(..)
                | Self::Port(_)
                | Self::Addr4(_)
                | Self::Net4(..)
                | Self::Type(_)
                | Self::Short(_)
        )
    }

    /// Whether this is not [`Value::Unset`].
    #[must_use]
    pub fn is_set(&self) -> bool {
        !matches!(self, Self::Unset)
    }

    /// The bytes of a string.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Short(text) => Some(text.bytes()),
            Self::Long(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a string; empty for other values.
    #[must_use]
    pub fn str_bytes(&self) -> &[u8] {
        self.bytes().unwrap_or(&[])
    }

    /// The text of a string, invalid UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.str_bytes()).into_owned()
    }

    /// A bool; false for other values.
    #[must_use]
    pub fn truth(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// A number as an unsigned integer.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Count(value) => *value,
            Self::Int(value) | Self::Enum(_, value) => *value as u64,
            Self::Bool(value) => u64::from(*value),
            Self::Double(value) | Self::Time(value) | Self::Interval(value) => *value as u64,
            Self::Port(port) => u64::from(port.number),
            _ => 0,
        }
    }

    /// A number as a signed integer.
    #[must_use]
    pub fn int(&self) -> i64 {
        match self {
            Self::Double(value) | Self::Time(value) | Self::Interval(value) => *value as i64,
            Self::Int(value) | Self::Enum(_, value) => *value,
            other => other.count() as i64,
        }
    }

    /// A number, time or interval as a double.
    #[must_use]
    pub fn double(&self) -> f64 {
        match self {
            Self::Double(value) | Self::Time(value) | Self::Interval(value) => *value,
            Self::Int(value) | Self::Enum(_, value) => *value as f64,
            other => other.count() as f64,
        }
    }

    /// An address in network order.
    #[must_use]
    pub fn addr_bytes(&self) -> Option<[u8; 16]> {
        match self {
            Self::Addr4(bytes) => Some(v4(*bytes)),
            Self::Addr6(bytes) => Some(**bytes),
            _ => None,
        }
    }

    /// A network in IPv6 form, with a width of up to 128.
    #[must_use]
    pub fn as_subnet(&self) -> Option<Subnet> {
        match self {
            Self::Net4(prefix, width) => Some(Subnet { prefix: v4(*prefix), width: width + 96 }),
            Self::Net6(net) => Some(**net),
            _ => None,
        }
    }

    /// A port; `0/unknown` for other values.
    #[must_use]
    pub fn as_port(&self) -> Port {
        match self {
            Self::Port(port) => *port,
            _ => Port { number: 0, protocol: Protocol::Unknown },
        }
    }

    /// The record; `None` for other values.
    #[must_use]
    pub fn record(&self) -> Option<&Rc<Record>> {
        match self {
            Self::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The table or set; `None` for other values.
    #[must_use]
    pub fn table(&self) -> Option<&Rc<Table>> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The vector; `None` for other values.
    #[must_use]
    pub fn vector(&self) -> Option<&Rc<Vector>> {
        match self {
            Self::Vector(vector) => Some(vector),
            _ => None,
        }
    }

    /// The function; `None` for other values.
    #[must_use]
    pub fn func(&self) -> Option<&Rc<FuncValue>> {
        match self {
            Self::Func(func) => Some(func),
            _ => None,
        }
    }

    /// The opaque value; `None` for other values.
    #[must_use]
    pub fn opaque(&self) -> Option<&Rc<OpaqueValue>> {
        match self {
            Self::Opaque(opaque) => Some(opaque),
            _ => None,
        }
    }

    /// The pattern; `None` for other values.
    #[must_use]
    pub fn pattern(&self) -> Option<&Rc<Pattern>> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// The dynamic type of the value.
    #[must_use]
    pub fn ty(&self) -> TypeId {
        match self {
            Self::Unset | Self::Iter(_) => TypeId::VOID,
            Self::Bool(_) => TypeId::BOOL,
            Self::Int(_) => TypeId::INT,
            Self::Count(_) => TypeId::COUNT,
            Self::Double(_) => TypeId::DOUBLE,
            Self::Time(_) => TypeId::TIME,
            Self::Interval(_) => TypeId::INTERVAL,
            Self::Enum(ty, _) | Self::Type(ty) => *ty,
            Self::Port(_) => TypeId::PORT,
            Self::Addr4(_) | Self::Addr6(_) => TypeId::ADDR,
            Self::Net4(..) | Self::Net6(_) => TypeId::SUBNET,
            Self::Short(_) | Self::Long(_) => TypeId::STRING,
            Self::Pattern(_) => TypeId::PATTERN,
            Self::Record(record) => record.ty(),
            Self::Table(table) => table.ty(),
            Self::Vector(vector) => vector.ty(),
            Self::List(list) => list.ty,
            Self::Func(func) => func.ty,
            Self::File(_) => TypeId::FILE,
            Self::Opaque(opaque) => opaque.ty,
        }
    }

    /// Whether both are the same object.
    #[must_use]
    pub fn same_object(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Record(a), Self::Record(b)) => Rc::ptr_eq(a, b),
            (Self::Table(a), Self::Table(b)) => Rc::ptr_eq(a, b),
            (Self::Vector(a), Self::Vector(b)) => Rc::ptr_eq(a, b),
            (Self::List(a), Self::List(b)) => Rc::ptr_eq(a, b),
            (Self::Func(a), Self::Func(b)) => Rc::ptr_eq(a, b),
            (Self::File(a), Self::File(b)) => Rc::ptr_eq(a, b),
            (Self::Opaque(a), Self::Opaque(b)) => Rc::ptr_eq(a, b),
            (Self::Pattern(a), Self::Pattern(b)) => Rc::ptr_eq(a, b),
            (Self::Long(a), Self::Long(b)) => Rc::ptr_eq(a, b),
            (Self::Short(a), Self::Short(b)) => a.len == b.len && a.bytes() == b.bytes(),
            _ => false,
        }
    }

    /// The address of the value's object, which identifies it while it exists; `None` for values without identity.
    #[must_use]
    pub fn address(&self) -> Option<usize> {
        match self {
            Self::Record(rc) => Some(Rc::as_ptr(rc) as usize),
            Self::Table(rc) => Some(Rc::as_ptr(rc) as usize),
            Self::Vector(rc) => Some(Rc::as_ptr(rc) as usize),
            Self::List(rc) => Some(Rc::as_ptr(rc) as usize),
            Self::Func(rc) => Some(Rc::as_ptr(rc) as usize),
            Self::Opaque(rc) => Some(Rc::as_ptr(rc) as usize),
            _ => None,
        }
    }
}

/// An IPv4 address as an IPv4-mapped IPv6 address.
#[must_use]
pub fn v4(bytes: [u8; 4]) -> [u8; 16] {
    let mut addr = [0; 16];
    addr[..12].copy_from_slice(&V4_PREFIX);
    addr[12..].copy_from_slice(&bytes);
    addr
}

/// Clears all but the first `width` bits.
#[must_use]
pub fn mask(bytes: [u8; 16], width: u8) -> [u8; 16] {
    let bits = u128::from_be_bytes(bytes);
    let mask = if width == 0 { 0 } else { u128::MAX << (128 - u32::from(width.min(128))) };
    (bits & mask).to_be_bytes()
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("-"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}i"),
            Self::Count(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Time(value) => write!(f, "time {value:?}"),
            Self::Interval(value) => write!(f, "interval {value:?}"),
            Self::Enum(_, value) => write!(f, "enum {value}"),
            Self::Port(port) => write!(f, "{}/{:?}", port.number, port.protocol),
            Self::Short(_) | Self::Long(_) => {
                write!(f, "{:?}", String::from_utf8_lossy(self.str_bytes()))
            }
            Self::Type(ty) => write!(f, "type {}", ty.0),
            other => write!(f, "object of type {}", other.ty().0),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Count(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Count(value as u64)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}
