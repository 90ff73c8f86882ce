//! Reads packed rows.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

use super::GROUP;
use super::OTHER;
use super::PREFIX;
use super::SECONDS;
use super::UNSET;
use super::VALUE;
use super::inline_len;
use super::inline_v4;
use super::len_and_offset;
use super::marks_at;
use super::slot_at;
use crate::value::Type;

/// The type of the values of a column, or of the elements of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `bool`.
    Bool,
    /// `count`.
    Count,
    /// `int`.
    Int,
    /// `double`.
    Double,
    /// `time`.
    Time,
    /// `interval`.
    Interval,
    /// `addr`.
    Addr,
    /// `port`.
    Port,
    /// `string`, `enum` and everything that is logged as text.
    Text,
}

impl Kind {
    /// The kind of a column's values, or of the elements of its lists.
    pub const fn of(ty: Type) -> Self {
        let (Type::Scalar(name) | Type::Set(name) | Type::Vector(name)) = ty;
        match name.as_bytes() {
            b"bool" => Self::Bool,
            b"count" => Self::Count,
            b"int" => Self::Int,
            b"double" => Self::Double,
            b"time" => Self::Time,
            b"interval" => Self::Interval,
            b"addr" => Self::Addr,
            b"port" => Self::Port,
            _ => Self::Text,
        }
    }
}

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// An unset column or element.
    Unset,
    /// `bool`.
    Bool(bool),
    /// `count` and `port`.
    Count(u64),
    /// `int`.
    Int(i64),
    /// `double`.
    Double(f64),
    /// `time`.
    Time(Time),
    /// A time outside the range of [`Time`], in seconds since 1970.
    FarTime(f64),
    /// `interval`.
    Interval(Interval),
    /// `time` or `interval` in seconds, of any size, written with six decimals.
    Seconds(f64),
    /// `addr`.
    Addr(Addr),
    /// Bytes from the wire.
    String(&'a [u8]),
    /// Text that needs no escaping.
    Plain(&'a [u8]),
    /// `set` or `vector`.
    List(List<'a>),
}

/// Iterator over the elements of a set or vector; bytes are validated as they are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct List<'a> {
    kind: Kind,
    remaining: usize,
    bytes: &'a [u8],
}

impl<'a> Iterator for List<'a> {
    type Item = Cell<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        Some(element(&mut self.bytes, self.kind).unwrap_or(Cell::Unset))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for List<'_> {}

/// Iterator over the rows of a buffer, without their length prefixes.
#[derive(Clone, Copy, Debug)]
pub struct PackedRows<'a>(&'a [u8]);

impl<'a> PackedRows<'a> {
    /// All rows of a buffer.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes of the remaining rows.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for PackedRows<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first_chunk::<PREFIX>()?;
        let (row, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        self.0 = rest;
        Some(row)
    }
}

/// Reads the values of a row, given the kind of each column.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    row: &'a [u8],
    column: usize,
}

impl<'a> Cells<'a> {
    /// The values of a row from [`PackedRows`].
    #[inline]
    pub fn new(row: &'a [u8]) -> Self {
        Self { row, column: 0 }
    }

    /// Returns the next value of a scalar column; `Unset` if the row is too short.
    #[inline(always)]
    pub fn scalar(&mut self, kind: Kind) -> Cell<'a> {
        let found = self.next().and_then(|(mark, slot, at)| cell(self.row, (mark, slot, at), kind));
        found.unwrap_or(Cell::Unset)
    }

    /// Returns the next value of a list column; `None` if it is unset or the row is too short.
    #[inline]
    pub fn list(&mut self, kind: Kind) -> Option<List<'a>> {
        let (mark, slot, _) = self.next()?;
        list(self.row, (mark, slot), kind)
    }

    /// Returns the next value of a column of this type.
    pub fn of(&mut self, ty: Type) -> Cell<'a> {
        let kind = Kind::of(ty);
        match ty {
            Type::Scalar(_) => self.scalar(kind),
            Type::Set(_) | Type::Vector(_) => self.list(kind).map_or(Cell::Unset, Cell::List),
        }
    }

    /// Mark, slot and offset of the slot of the next column.
    #[inline(always)]
    fn next(&mut self) -> Option<(u8, u64, usize)> {
        let column = self.column;
        self.column += 1;
        let at = slot_at(column);
        let slots = self.row.get(..rest_start(self.row)?)?;
        let marks = u64::from_le_bytes(*slots.get(marks_at(column)..)?.first_chunk()?);
        let slot = u64::from_le_bytes(*slots.get(at..)?.first_chunk()?);
        Some(((marks >> (2 * (column % GROUP))) as u8 & 3, slot, at))
    }
}

/// Offset of the rest of a row.
#[inline(always)]
fn rest_start(row: &[u8]) -> Option<usize> {
    row.first_chunk().map(|rest| u32::from_le_bytes(*rest) as usize)
}

/// `len` bytes at an offset in the rest of a row.
#[inline(always)]
fn rest(row: &[u8], len: usize, offset: usize) -> Option<&[u8]> {
    let start = rest_start(row)? + offset;
    row.get(start..start + len)
}

/// The value of a slot at offset `at` of its row.
#[inline(always)]
pub(super) fn cell<'a>(
    row: &'a [u8],
    (mark, slot, at): (u8, u64, usize),
    kind: Kind,
) -> Option<Cell<'a>> {
    if mark == UNSET {
        return Some(Cell::Unset);
    }
    Some(match kind {
        Kind::Bool => Cell::Bool(slot != 0),
        Kind::Addr => Cell::Addr(addr(row, slot)?),
        Kind::Text => {
            let text = text(row, slot, at)?;
            if mark == OTHER { Cell::Plain(text) } else { Cell::String(text) }
        }
        _ => scalar_word(mark, slot, kind),
    })
}

/// The address of a slot.
#[inline(always)]
pub(super) fn addr(row: &[u8], slot: u64) -> Option<Addr> {
    match inline_v4(slot) {
        Some(addr) => Some(addr),
        None => Addr::from_slice(rest(row, 16, slot as usize)?),
    }
}

/// The text of a slot at offset `at` of its row.
#[inline(always)]
pub(super) fn text(row: &[u8], slot: u64, at: usize) -> Option<&[u8]> {
    match inline_len(slot) {
        Some(len) => row.get(at..at + len),
        None => {
            let (len, offset) = len_and_offset(slot);
            rest(row, len, offset)
        }
    }
}

/// The list of a slot.
#[inline(always)]
pub(super) fn list<'a>(row: &'a [u8], (mark, slot): (u8, u64), kind: Kind) -> Option<List<'a>> {
    if mark != VALUE {
        return None;
    }
    let (elements, offset) = len_and_offset(slot);
    let bytes = row.get(rest_start(row)? + offset..)?;
    Some(List { kind, remaining: elements.min(bytes.len()), bytes })
}

/// A value of eight bytes, from its mark and word.
#[inline(always)]
fn scalar_word<'a>(mark: u8, scalar_word: u64, kind: Kind) -> Cell<'a> {
    match kind {
        Kind::Int => Cell::Int(scalar_word as i64),
        Kind::Double => Cell::Double(f64::from_bits(scalar_word)),
        Kind::Time | Kind::Interval if mark == SECONDS => {
            Cell::Seconds(f64::from_bits(scalar_word))
        }
        Kind::Time if mark == OTHER => Cell::FarTime(f64::from_bits(scalar_word)),
        Kind::Time => Cell::Time(Time::from_nanos(scalar_word as i64)),
        Kind::Interval => Cell::Interval(Interval::from_nanos(scalar_word as i64)),
        _ => Cell::Count(scalar_word),
    }
}

#[inline(always)]
fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*first)
}

/// Decodes the next element of a list.
#[inline(always)]
fn element<'a>(from: &mut &'a [u8], kind: Kind) -> Option<Cell<'a>> {
    let [mark] = take_array(from)?;
    if mark == UNSET {
        return Some(Cell::Unset);
    }
    Some(match kind {
        Kind::Bool => Cell::Bool(take_array::<1>(from)? != [0]),
        Kind::Addr => Cell::Addr(Addr::from_slice(&take_array::<16>(from)?)?),
        Kind::Text => {
            let len = u32::from_le_bytes(take_array(from)?) as usize;
            let (text, rest) = from.split_at_checked(len)?;
            *from = rest;
            if mark == OTHER { Cell::Plain(text) } else { Cell::String(text) }
        }
        _ => scalar_word(mark, u64::from_le_bytes(take_array(from)?), kind),
    })
}
