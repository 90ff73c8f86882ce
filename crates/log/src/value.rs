use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A single value: `count`, `string`, `addr`, …
    Scalar(&'static str),
    /// `set[…]`.
    Set(&'static str),
    /// `vector[…]`.
    Vector(&'static str),
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scalar(t) => f.write_str(t),
            Self::Set(t) => write!(f, "set[{t}]"),
            Self::Vector(t) => write!(f, "vector[{t}]"),
        }
    }
}

/// Receives the values of one row, column by column.
pub trait Encoder {
    /// Encodes one column.
    fn field<V: Value>(&mut self, name: &'static str, value: &V);
    /// `T` or `F`.
    fn bool(&mut self, v: bool);
    /// An unsigned number.
    fn count(&mut self, v: u64);
    /// A signed number.
    fn int(&mut self, v: i64);
    /// A floating point number.
    fn double(&mut self, v: f64);
    /// A point in time.
    fn time(&mut self, v: Time);
    /// A point in time outside the range of [`Time`], in seconds since 1970.
    fn far_time(&mut self, seconds: f64);
    /// A span of time.
    fn interval(&mut self, v: Interval);
    /// An address.
    fn addr(&mut self, v: Addr);
    /// Bytes from the wire, escaped as needed.
    fn string(&mut self, v: &[u8]);
    /// Text that is known to need no escaping: enum names, uids.
    fn plain(&mut self, v: &[u8]);
    /// The uid of a connection, a file or a tunnel.
    #[inline]
    fn uid(&mut self, v: &Uid) {
        let (text, len) = v.text();
        self.plain(&text[..len]);
    }
    /// Four columns: two addresses, each with its port.
    #[inline]
    fn conn_id(&mut self, v: &ConnId) {
        self.field("id.orig_h", &v.orig_h);
        self.field("id.orig_p", &Port(v.orig_p));
        self.field("id.resp_h", &v.resp_h);
        self.field("id.resp_p", &Port(v.resp_p));
    }
    /// A set or vector. An unset element of a vector is allowed.
    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>);
    /// Ends a column after its value.
    #[inline(always)]
    fn end_column(&mut self) {}
    /// A column that consists of a [`count`](Self::count). A format may write the value and the end of the column
    /// together.
    #[inline(always)]
    fn count_column(&mut self, v: u64) {
        self.count(v);
        self.end_column();
    }
    /// A column that consists of a [`time`](Self::time).
    #[inline(always)]
    fn time_column(&mut self, v: Time) {
        self.time(v);
        self.end_column();
    }
    /// A column that consists of an [`interval`](Self::interval).
    #[inline(always)]
    fn interval_column(&mut self, v: Interval) {
        self.interval(v);
        self.end_column();
    }
    /// A column that consists of a [`uid`](Self::uid).
    #[inline(always)]
    fn uid_column(&mut self, v: &Uid) {
        self.uid(v);
        self.end_column();
    }
}

/// A value that fits one column.
pub trait Value {
    /// Type of the column in the header.
    const TYPE: Type;
    /// Whether the column is unset.
    #[inline(always)]
    fn is_unset(&self) -> bool {
        false
    }
    /// Writes the value; not called when the value is unset.
    fn put<E: Encoder>(&self, e: &mut E);
    /// Writes the value and the end of its column.
    #[inline(always)]
    fn put_column<E: Encoder>(&self, e: &mut E) {
        self.put(e);
        e.end_column();
    }
}

/// A port, logged as its number without the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(pub u16);

/// A point in time in whole seconds since 1970, of any year: dates in certificates and tickets may
/// be outside the range of [`Time`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date(pub i64);

/// A point in time in seconds since 1970 with a fraction, of any year: times of files.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

/// A name from a fixed list, as Zeek spells it (`Tunnel::DISCOVER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Enum(pub &'static str);

/// Text that needs no escaping, such as letters from a fixed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<'a>(pub &'a [u8]);

/// A column of type `set[…]`. Elements are written in the order of the vector, which should be deterministic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set<T>(pub Vec<T>);

/// A column of type `vector[…]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector<T>(pub Vec<T>);

macro_rules! scalar {
    ($($ty:ty, $name:literal, |$v:ident, $e:ident| $put:expr $(, $column:expr)?;)*) => {
        $(impl Value for $ty {
            const TYPE: Type = Type::Scalar($name);
            #[inline(always)]
            fn put<E: Encoder>(&self, $e: &mut E) {
                let $v = self;
                $put
            }
            $(
                #[inline(always)]
                fn put_column<E: Encoder>(&self, $e: &mut E) {
                    let $v = self;
                    $column
                }
            )?
        })*
    };
}

scalar! {
    bool, "bool", |v, e| e.bool(*v);
    u8, "count", |v, e| e.count(u64::from(*v)), e.count_column(u64::from(*v));
    u16, "count", |v, e| e.count(u64::from(*v)), e.count_column(u64::from(*v));
    u32, "count", |v, e| e.count(u64::from(*v)), e.count_column(u64::from(*v));
    u64, "count", |v, e| e.count(*v), e.count_column(*v);
    i64, "int", |v, e| e.int(*v);
    f64, "double", |v, e| e.double(*v);
    Time, "time", |v, e| e.time(*v), e.time_column(*v);
    Interval, "interval", |v, e| e.interval(*v), e.interval_column(*v);
    Addr, "addr", |v, e| e.addr(*v);
    Port, "port", |v, e| e.count(u64::from(v.0));
    Enum, "enum", |v, e| e.plain(v.0.as_bytes());
    Plain<'_>, "string", |v, e| e.plain(v.0);
    Proto, "enum", |v, e| e.plain(v.name().as_bytes());
    &[u8], "string", |v, e| e.string(v);
    Vec<u8>, "string", |v, e| e.string(v);
    Box<[u8]>, "string", |v, e| e.string(v);
    &str, "string", |v, e| e.string(v.as_bytes());
    String, "string", |v, e| e.string(v.as_bytes());
}

impl Value for Date {
    const TYPE: Type = Time::TYPE;
    #[inline]
    fn put<E: Encoder>(&self, e: &mut E) {
        match self.0.checked_mul(1_000_000_000) {
            Some(ns) => e.time(Time::from_nanos(ns)),
            None => e.far_time(self.0 as f64),
        }
    }
}

impl Value for Seconds {
    const TYPE: Type = Time::TYPE;
    #[inline]
    fn put<E: Encoder>(&self, e: &mut E) {
        // The range of nanoseconds in 64 bits.
        if self.0.abs() < 9_223_372_036.0 {
            // Rounded to the microsecond in every format, as in Zeek.
            let whole = self.0.floor();
            let micros = ((self.0 - whole) * 1e6).round_ties_even();
            e.time(Time::from_secs(whole as i64) + Interval::from_micros(micros as i64));
        } else {
            e.far_time(self.0);
        }
    }
}

impl Value for Uid {
    const TYPE: Type = Type::Scalar("string");
    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        e.uid(self);
    }
    #[inline(always)]
    fn put_column<E: Encoder>(&self, e: &mut E) {
        e.uid_column(self);
    }
}

impl<T: Value> Value for Option<T> {
    const TYPE: Type = T::TYPE;
    #[inline(always)]
    fn is_unset(&self) -> bool {
        self.as_ref().is_none_or(Value::is_unset)
    }
    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        if let Some(v) = self {
            v.put(e);
        }
    }
    #[inline(always)]
    fn put_column<E: Encoder>(&self, e: &mut E) {
        match self {
            Some(v) => v.put_column(e),
            None => e.end_column(),
        }
    }
}

impl<T: Value> Value for &T {
    const TYPE: Type = T::TYPE;
    #[inline(always)]
    fn is_unset(&self) -> bool {
        (**self).is_unset()
    }
    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        (**self).put(e);
    }
    #[inline(always)]
    fn put_column<E: Encoder>(&self, e: &mut E) {
        (**self).put_column(e);
    }
}

const fn element(t: Type) -> &'static str {
    match t {
        Type::Scalar(t) | Type::Set(t) | Type::Vector(t) => t,
    }
}

impl<T: Value> Value for Set<T> {
    const TYPE: Type = Type::Set(element(T::TYPE));
    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        e.list(self.0.iter());
    }
}

impl<T: Value> Value for Vector<T> {
    const TYPE: Type = Type::Vector(element(T::TYPE));
    #[inline(always)]
    fn put<E: Encoder>(&self, e: &mut E) {
        e.list(self.0.iter());
    }
}
