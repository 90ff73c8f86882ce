//! Packed arguments: [`Events`](crate::Events) queues them, and listeners read them.
//!
//! Numbers are little-endian and of fixed size, strings and lists are prefixed with a 32-bit length, optional fields
//! with a byte that is 0 or 1. The format is not self-describing: a reader needs the declared [`Type`].

use std::borrow::Cow;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Subnet;
use gannet_base::Time;
use gannet_base::Uid;

use crate::decl::Type;

/// A value that an event can carry.
pub trait Arg {
    /// Type of the value.
    const TYPE: Type;
    /// Whether the value may be unset, which is true only for `Option`.
    const OPTIONAL: bool = false;
    /// Appends the packed value.
    fn pack(&self, to: &mut Packer<'_>);
}

/// Appends packed values.
#[derive(Debug)]
pub struct Packer<'a>(&'a mut Vec<u8>, Option<&'a mut Vec<Handle>>);

/// Position of an index in packed bytes that is valid only in one queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    /// Position in the bytes.
    pub(crate) at: u32,
    pub(crate) kind: HandleKind,
}

/// The kind of object that an index refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandleKind {
    Connection,
    File,
    Analyzer,
}

impl<'a> Packer<'a> {
    /// Appends to `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes, None)
    }

    /// Like [`Packer::new`], and records the positions of [handles](Handle).
    pub(crate) fn with_handles(bytes: &'a mut Vec<u8>, handles: &'a mut Vec<Handle>) -> Self {
        Self(bytes, Some(handles))
    }

    fn handle(&mut self, kind: HandleKind) {
        if let Some(handles) = &mut self.1 {
            handles.push(Handle { at: self.0.len() as u32, kind });
        }
    }

    fn bytes(&mut self, v: &[u8]) {
        self.0.extend_from_slice(&(v.len() as u32).to_le_bytes());
        self.0.extend_from_slice(v);
    }

    /// Begins a list of `len` values, which the caller [packs](Arg::pack) next.
    pub fn list(&mut self, len: usize) {
        self.0.extend_from_slice(&(len as u32).to_le_bytes());
    }
}

/// A string of arbitrary bytes.
pub type Bytes<'a> = &'a [u8];

macro_rules! numbers {
    ($($ty:ty, $variant:ident, $wide:ty;)*) => { $(
        impl Arg for $ty {
            const TYPE: Type = Type::$variant;
            #[inline]
            fn pack(&self, to: &mut Packer<'_>) {
                to.0.extend_from_slice(&<$wide>::from(*self).to_le_bytes());
            }
        }
    )* };
}

numbers! {
    u64, Count, u64; u32, Count, u64; u16, Count, u64;
    i64, Int, i64; i32, Int, i64;
    f64, Double, f64;
}

impl Arg for bool {
    const TYPE: Type = Type::Bool;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.push(u8::from(*self));
    }
}

impl Arg for Time {
    const TYPE: Type = Type::Time;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.extend_from_slice(&self.as_nanos().to_le_bytes());
    }
}

impl Arg for Interval {
    const TYPE: Type = Type::Interval;
    fn pack(&self, to: &mut Packer<'_>) {
        Seconds(self.as_secs_f64()).pack(to);
    }
}

/// An `interval` of any double, such as the binary fractions of some wire formats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seconds(pub f64);

impl Arg for Seconds {
    const TYPE: Type = Type::Interval;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.extend_from_slice(&self.0.to_le_bytes());
    }
}

impl Arg for &[u8] {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self);
    }
}

/// A text of fixed length.
impl<const N: usize> Arg for [u8; N] {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self);
    }
}

impl Arg for &str {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self.as_bytes());
    }
}

impl Arg for String {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self.as_bytes());
    }
}

impl Arg for Cow<'_, [u8]> {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self);
    }
}

impl Arg for Cow<'_, str> {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        to.bytes(self.as_bytes());
    }
}

/// The uid of a connection or file, as a string.
impl Arg for Uid {
    const TYPE: Type = Type::String;
    fn pack(&self, to: &mut Packer<'_>) {
        let (text, len) = self.text();
        to.bytes(&text[..len]);
    }
}

impl Arg for Addr {
    const TYPE: Type = Type::Addr;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.extend_from_slice(&self.octets());
    }
}

/// The prefix length is out of 128 bits, also for IPv4.
impl Arg for Subnet {
    const TYPE: Type = Type::Subnet;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.extend_from_slice(&self.base().octets());
        to.0.push(self.bits());
    }
}

/// A port with its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u16, pub Proto);

pub(crate) fn proto_byte(proto: Proto) -> u8 {
    match proto {
        Proto::Tcp => 1,
        Proto::Udp => 2,
        Proto::Icmp => 3,
        _ => 0,
    }
}

impl Arg for Port {
    const TYPE: Type = Type::Port;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.extend_from_slice(&self.0.to_le_bytes());
        to.0.push(proto_byte(self.1));
    }
}

/// The endpoints of a connection, its transport, and its IP protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id4(pub ConnId, pub Proto, pub u8);

impl Arg for Id4 {
    const TYPE: Type = Type::ConnId;
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.orig_h.pack(to);
        Port(self.0.orig_p, self.1).pack(to);
        self.0.resp_h.pack(to);
        Port(self.0.resp_p, self.1).pack(to);
        to.0.push(self.2);
    }
}

/// Index of a connection in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection(pub(crate) u32);

impl Connection {
    /// The current connection, in an event that only log listeners receive: they have the connection already.
    pub const CURRENT: Self = Self(u32::MAX);
}

impl Arg for Connection {
    const TYPE: Type = Type::Connection;
    fn pack(&self, to: &mut Packer<'_>) {
        to.handle(HandleKind::Connection);
        to.0.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// Connections by their endpoints: the type of `fa_file$conns` and others.
pub type Conns = TableOf<Id4, Connection>;

/// Index of a file in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRef(pub(crate) u32);

impl Arg for FileRef {
    const TYPE: Type = Type::File;
    fn pack(&self, to: &mut Packer<'_>) {
        to.handle(HandleKind::File);
        to.0.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// The number of an analyzer, [allocated](crate::Events::number_analyzers) by the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalyzerId(pub u64);

impl Arg for AnalyzerId {
    const TYPE: Type = Type::Count;
    fn pack(&self, to: &mut Packer<'_>) {
        to.handle(HandleKind::Analyzer);
        to.0.extend_from_slice(&self.0.to_le_bytes());
    }
}

/// A value of an enumeration. Implement it by [`enumeration!`](crate::enumeration!).
pub trait EnumName {
    /// The enumeration's name in Zeek's scripts.
    const ENUM: &'static str;
    /// The enumerator's name in Zeek's scripts.
    fn name(&self) -> &str;
}

impl<T: Arg> Arg for Option<T> {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = true;
    fn pack(&self, to: &mut Packer<'_>) {
        to.0.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.pack(to);
        }
    }
}

impl<T: Arg> Arg for Vec<T> {
    const TYPE: Type = Type::Vector(&T::TYPE);
    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.len());
        self.iter().for_each(|v| v.pack(to));
    }
}

/// The elements from index 1 on of a list whose first element is unset in Zeek's scripts. Without elements, the list is
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FromOne<T>(pub Vec<T>);

impl<T: Arg> Arg for FromOne<T> {
    const TYPE: Type = Type::VectorFromOne(&T::TYPE);
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.pack(to);
    }
}

/// A set, packed in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetOf<T>(pub Vec<T>);

impl<T: Arg> Arg for SetOf<T> {
    const TYPE: Type = Type::Set(&T::TYPE);
    fn pack(&self, to: &mut Packer<'_>) {
        self.0.pack(to);
    }
}

/// A table, packed in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOf<K, V>(pub Vec<(K, V)>);

impl<K: Arg, V: Arg> Arg for TableOf<K, V> {
    const TYPE: Type = Type::Table(&K::TYPE, &V::TYPE);
    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        for (key, value) in &self.0 {
            key.pack(to);
            value.pack(to);
        }
    }
}

impl<T: Arg> Arg for &T {
    const TYPE: Type = T::TYPE;
    const OPTIONAL: bool = T::OPTIONAL;
    fn pack(&self, to: &mut Packer<'_>) {
        (**self).pack(to);
    }
}

impl Packer<'_> {
    /// Appends the name of an enumerator.
    pub fn name(&mut self, name: &str) {
        self.bytes(name.as_bytes());
    }
}
