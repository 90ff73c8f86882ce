use gannet_base::Addr;
use gannet_base::ConnId;

use crate::value::Encoder;
use crate::value::Port;
use crate::value::Type;
use crate::value::Value;

/// A column of a log, for the header, the manual and column writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Full name; the fields of nested records are joined by dots (`id.orig_h`).
    pub name: &'static str,
    /// Type, as in the header of a log.
    pub ty: Type,
    /// One sentence for the manual.
    pub doc: &'static str,
    /// Whether the column exists only on request.
    pub optional: bool,
}

/// Size limits of a row, so that a hostile value cannot make a log unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a string before escaping, in bytes.
    pub string: usize,
    /// Maximum number of elements of a set or vector.
    pub elements: usize,
}

impl Limits {
    /// Zeek's defaults: 4,096 bytes, 100 elements.
    pub const DEFAULT: Self = Self { string: 4096, elements: 100 };
    /// No limits: for rows that were truncated before.
    pub const NONE: Self = Self { string: usize::MAX, elements: usize::MAX };
}

/// Which parts of a row were truncated to its [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Some string was truncated.
    pub strings: bool,
    /// Some set or vector was truncated.
    pub lists: bool,
}

/// A row of a log stream. Declare it with [`row!`](crate::row!).
pub trait Row {
    /// Name of the stream and of its file (`conn` makes `conn.log`).
    const PATH: &'static str;
    /// One sentence for the manual.
    const DOC: &'static str;
    /// Whether the stream is written only on request.
    const OPT_IN: bool = false;
    /// Size limits of this stream.
    const LIMITS: Limits = Limits::DEFAULT;
    /// Number of columns, including optional ones.
    const COLUMNS: usize;
    /// The columns in order.
    fn fields() -> Vec<Field>;
    /// Writes all columns in order.
    fn encode<E: Encoder>(&self, e: &mut E);
}

/// A value that fills one or more columns.
pub trait Column {
    /// Number of columns.
    const COLUMNS: usize = 1;
    /// Appends the columns' descriptions.
    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<Field>);
    /// Writes the columns' values.
    fn encode<E: Encoder>(&self, name: &'static str, e: &mut E);
}

impl<T: Value> Column for T {
    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<Field>) {
        out.push(Field { name, ty: T::TYPE, doc, optional: false });
    }

    #[inline(always)]
    fn encode<E: Encoder>(&self, name: &'static str, e: &mut E) {
        e.field(name, self);
    }
}

impl Column for ConnId {
    const COLUMNS: usize = 4;

    fn describe(_name: &'static str, _doc: &'static str, out: &mut Vec<Field>) {
        let field = |name, ty, doc| Field { name, ty, doc, optional: false };
        out.extend([
            field("id.orig_h", Addr::TYPE, "The originator's address."),
            field("id.orig_p", Port::TYPE, "The originator's port."),
            field("id.resp_h", Addr::TYPE, "The responder's address."),
            field("id.resp_p", Port::TYPE, "The responder's port."),
        ]);
    }

    #[inline(always)]
    fn encode<E: Encoder>(&self, _name: &'static str, e: &mut E) {
        e.conn_id(self);
    }
}

/// A column that is written only if [`Options::columns`](crate::Options) names it: then the row has its value,
/// otherwise `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra<T>(pub Option<T>);

impl<T: Value> Column for Extra<T> {
    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<Field>) {
        out.push(Field { name, ty: T::TYPE, doc, optional: true });
    }

    #[inline(always)]
    fn encode<E: Encoder>(&self, name: &'static str, e: &mut E) {
        if let Some(value) = &self.0 {
            e.field(name, value);
        }
    }
}

/// Rows [written in place](crate::Logs::write_in_place) borrow values that are not in registers; without the borrow the
/// compiler stores the whole row in memory.
impl Column for &ConnId {
    const COLUMNS: usize = 4;

    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<Field>) {
        ConnId::describe(name, doc, out);
    }

    #[inline(always)]
    fn encode<E: Encoder>(&self, _name: &'static str, e: &mut E) {
        e.conn_id(self);
    }
}

impl Column for Option<ConnId> {
    const COLUMNS: usize = 4;

    fn describe(name: &'static str, doc: &'static str, out: &mut Vec<Field>) {
        ConnId::describe(name, doc, out);
    }

    fn encode<E: Encoder>(&self, name: &'static str, e: &mut E) {
        match self {
            Some(id) => id.encode(name, e),
            None => {
                e.field("id.orig_h", &None::<Addr>);
                e.field("id.orig_p", &None::<Port>);
                e.field("id.resp_h", &None::<Addr>);
                e.field("id.resp_p", &None::<Port>);
            }
        }
    }
}

/// The slot in the table of open logs at which the lookup of a stream starts: a hash of its name. It is computed at
/// compile time, so that writing a row hashes no name.
pub const fn slot(path: &str) -> usize {
    let b = path.as_bytes();
    let mut h: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < b.len() {
        h = (h ^ b[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    (h ^ (h >> 15)) as usize & 0xff
}

/// Declares a log stream: `struct NAME = "path" { field: Type = "column", … }`.
///
/// Doc comments on the struct and its fields become the manual. A field's type is anything that
/// implements [`Value`](crate::Value) (or [`ConnId`](gannet_base::ConnId), which makes four
/// columns; its column name is ignored, write `"id"`). `limits(EXPR)` after the path changes the
/// stream's [`Limits`](crate::Limits); `, opt_in` after that makes it a stream that is written only
/// on request.
#[macro_export]
macro_rules! row {
    (@opt_in) => { true };
    (
        $(#[doc = $sdoc:literal])* $(#[derive($($derive:ident),* $(,)?)])?
        $vis:vis struct $name:ident $(<$lt:lifetime>)? = $path:literal $(limits($limits:expr))? $(, $opt_in:ident)? {
            $( $(#[doc = $doc:literal])* $field:ident : $ty:ty = $col:literal ),* $(,)?
        }
    ) => {
        $(#[doc = $sdoc])* $(#[derive($($derive),*)])?
        $vis struct $name $(<$lt>)? {
            $( $(#[doc = $doc])* pub $field: $ty, )*
        }

        impl $(<$lt>)? $crate::Row for $name $(<$lt>)? {
            const PATH: &'static str = $path;
            const DOC: &'static str = concat!($($sdoc, "\n"),*);
            $( const LIMITS: $crate::Limits = $limits; )?
            $( const OPT_IN: bool = $crate::row!(@$opt_in); )?
            const COLUMNS: usize = 0 $(+ <$ty as $crate::Column>::COLUMNS)*;

            fn fields() -> Vec<$crate::Field> {
                let mut out = Vec::new();
                $( <$ty as $crate::Column>::describe($col, concat!($($doc, "\n"),*), &mut out); )*
                out
            }

            #[inline(always)]
            fn encode<E: $crate::Encoder>(&self, e: &mut E) {
                $( $crate::Column::encode(&self.$field, $col, e); )*
            }
        }
    };
}
