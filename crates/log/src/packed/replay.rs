//! Writes packed rows with another encoder.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

use super::Cell;
use super::Cells;
use super::Kind;
use super::List;
use crate::row::Field;
use crate::value::Encoder;
use crate::value::Type;
use crate::value::Value;

/// Writes a packed row with an encoder, with the same result as the original row. `fields` are exactly the columns of
/// the row.
pub fn replay<E: Encoder>(fields: &[Field], row: &[u8], e: &mut E) {
    let mut cells = Cells::new(row);
    for field in fields {
        let kind = Kind::of(field.ty);
        match field.ty {
            Type::Scalar(_) => scalar(field.name, kind, cells.scalar(kind), e),
            Type::Set(_) | Type::Vector(_) => match cells.list(kind) {
                Some(elements) => list(field.name, kind, elements, e),
                None => e.field(field.name, &None::<u64>),
            },
        }
    }
}

/// A value of a column's declared type, or unset.
struct CellValue<'a, const KIND: u8>(Cell<'a>);

/// A list of values of a declared type.
struct ListValue<'a, const KIND: u8>(List<'a>);

const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const BOOL: u8 = 2;
const TIME: u8 = 3;
const INTERVAL: u8 = 4;
const ADDR: u8 = 5;
const DOUBLE: u8 = 6;

const fn type_of(kind: u8) -> Type {
    match kind {
        TEXT => Type::Scalar("string"),
        BOOL => <bool as Value>::TYPE,
        TIME => <Time as Value>::TYPE,
        INTERVAL => <Interval as Value>::TYPE,
        ADDR => <Addr as Value>::TYPE,
        DOUBLE => <f64 as Value>::TYPE,
        _ => <u64 as Value>::TYPE,
    }
}

impl<const KIND: u8> Value for CellValue<'_, KIND> {
    const TYPE: Type = type_of(KIND);

    fn is_unset(&self) -> bool {
        self.0 == Cell::Unset
    }

    #[inline]
    fn put<E: Encoder>(&self, e: &mut E) {
        match self.0 {
            Cell::Unset | Cell::List(_) => {}
            Cell::Bool(v) => e.bool(v),
            Cell::Count(v) => e.count(v),
            Cell::Int(v) => e.int(v),
            Cell::Double(v) => e.double(v),
            Cell::Time(v) => e.time(v),
            Cell::FarTime(v) => e.far_time(v),
            Cell::Interval(v) => e.interval(v),
            Cell::Seconds(v) => e.plain(format!("{v:.6}").as_bytes()),
            Cell::Addr(v) => e.addr(v),
            Cell::String(v) => e.string(v),
            Cell::Plain(v) => e.plain(v),
        }
    }
}

impl<const KIND: u8> Value for ListValue<'_, KIND> {
    const TYPE: Type = Type::Vector("any");

    fn put<E: Encoder>(&self, e: &mut E) {
        e.list(self.0.map(CellValue::<KIND>));
    }
}

fn scalar<E: Encoder>(name: &'static str, kind: Kind, cell: Cell<'_>, e: &mut E) {
    match kind {
        Kind::Bool => e.field(name, &CellValue::<BOOL>(cell)),
        Kind::Count | Kind::Port | Kind::Int => e.field(name, &CellValue::<NUMBER>(cell)),
        Kind::Double => e.field(name, &CellValue::<DOUBLE>(cell)),
        Kind::Time => e.field(name, &CellValue::<TIME>(cell)),
        Kind::Interval => e.field(name, &CellValue::<INTERVAL>(cell)),
        Kind::Addr => e.field(name, &CellValue::<ADDR>(cell)),
        Kind::Text => e.field(name, &CellValue::<TEXT>(cell)),
    }
}

fn list<E: Encoder>(name: &'static str, kind: Kind, list: List<'_>, e: &mut E) {
    match kind {
        Kind::Bool => e.field(name, &ListValue::<BOOL>(list)),
        Kind::Count | Kind::Port | Kind::Int => e.field(name, &ListValue::<NUMBER>(list)),
        Kind::Double => e.field(name, &ListValue::<DOUBLE>(list)),
        Kind::Time => e.field(name, &ListValue::<TIME>(list)),
        Kind::Interval => e.field(name, &ListValue::<INTERVAL>(list)),
        Kind::Addr => e.field(name, &ListValue::<ADDR>(list)),
        Kind::Text => e.field(name, &ListValue::<TEXT>(list)),
    }
}
