//! Writers of packed rows.

use std::fmt::Display;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Time;

use super::Cell;
use super::Kind;
use super::OTHER;
use super::PREFIX;
use super::SECONDS;
use super::UNSET;
use super::VALUE;
use crate::row::Cut;
use crate::row::Limits;
use crate::text::Room;
use crate::text::Sink;
use crate::text::append;
use crate::value::Encoder;
use crate::value::Value;

/// Writes a row as packed values.
///
/// A value may be written in several pieces, and an address or number as its text: in the row it is
/// one value of its column's type.
pub struct PackedEncoder<'a> {
    out: Room<'a>,
    limits: Limits,
    cut: Cut,
    /// Kind of the current column, or of its elements.
    kind: Kind,
    /// Offset of its text, once it has begun.
    text: u32,
}

impl<'a> PackedEncoder<'a> {
    /// Writes a row to `room`; call [`finish`](Self::finish) after the last column.
    #[inline(always)]
    pub fn new(room: &'a mut [u8], limits: Limits) -> Self {
        let mut out = Room::new(room);
        out.put([0; PREFIX], PREFIX);
        Self { out, limits, cut: Cut::default(), kind: Kind::Text, text: 0 }
    }

    /// Ends the row; returns its length and what was cut to its limit. `None` if `room` was too
    /// small: write the row again with more room.
    #[inline(always)]
    pub fn finish(mut self) -> Option<(usize, Cut)> {
        let len = self.out.written()?;
        self.out.replace_first(((len - PREFIX) as u32).to_le_bytes());
        Some((len, self.cut))
    }

    /// A mark and eight bytes.
    #[inline(always)]
    fn word(&mut self, mark: u8, v: u64) {
        self.out.put(marked(mark, v.to_le_bytes()), 9);
    }

    /// A piece of text.
    #[inline(always)]
    fn piece(&mut self, mark: u8, v: &[u8]) {
        let start = self.text;
        if start == 0 {
            self.text = self.out.position();
            self.out.with(|room, at| text(room, at, mark, v));
        } else {
            self.out.with(|room, at| more_text(room, at, (start, mark), v));
        }
    }

    /// A value of another type than the column.
    #[cold]
    #[inline(never)]
    fn other(&mut self, v: &dyn Display) {
        let shown = v.to_string();
        let number = || shown.parse::<f64>().unwrap_or_default();
        match self.kind {
            Kind::Text => self.piece(OTHER, shown.as_bytes()),
            Kind::Double => self.word(VALUE, number().to_bits()),
            Kind::Time | Kind::Interval => self.word(SECONDS, number().to_bits()),
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, number() as u64),
            Kind::Bool | Kind::Addr => self.out.put([UNSET], 1),
        }
    }
}

/// A mark and a value of eight bytes, for one store of a fixed size.
#[inline(always)]
fn marked(mark: u8, v: [u8; 8]) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = v;
    [mark, a, b, c, d, e, f, g, h]
}

#[inline(never)]
fn text(room: &mut [u8], at: u32, mark: u8, v: &[u8]) -> u32 {
    let mut out = Room::at(room, at);
    out.put(marked(mark, (v.len() as u64).to_le_bytes()), 5);
    append(&mut out, v);
    out.place()
}

/// More of the text that begins at `start`: updates its length, and marks all of it as needing
/// escapes if a piece does.
#[inline(never)]
fn more_text(room: &mut [u8], at: u32, (start, mark): (u32, u8), v: &[u8]) -> u32 {
    let mut out = Room::at(room, at);
    append(&mut out, v);
    let end = out.place();
    let head = room.get_mut(start as usize..).and_then(<[u8]>::first_chunk_mut::<5>);
    if let Some([first, len @ ..]) = head {
        *first = if mark == VALUE { VALUE } else { *first };
        *len = end.saturating_sub(start + 5).to_le_bytes();
    }
    end
}

/// The four columns at once.
#[inline(never)]
fn conn_id(room: &mut [u8], at: u32, v: &ConnId) -> u32 {
    let mut out = Room::at(room, at);
    for (host, port) in [(v.orig_h, v.orig_p), (v.resp_h, v.resp_p)] {
        out.put([VALUE], 1);
        out.put(host.octets(), 16);
        out.put(marked(VALUE, u64::from(port).to_le_bytes()), 9);
    }
    out.place()
}

impl Encoder for PackedEncoder<'_> {
    #[inline(always)]
    fn field<V: Value>(&mut self, _name: &'static str, value: &V) {
        if value.is_unset() {
            return self.out.put([UNSET], 1);
        }
        self.kind = const { Kind::of(V::TYPE) };
        self.text = 0;
        value.put(self);
    }

    #[inline(always)]
    fn bool(&mut self, v: bool) {
        match self.kind {
            Kind::Bool => self.out.put([VALUE, u8::from(v)], 2),
            _ => self.other(&v),
        }
    }

    #[inline(always)]
    fn count(&mut self, v: u64) {
        match self.kind {
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, v),
            _ => self.other(&v),
        }
    }

    #[inline(always)]
    fn int(&mut self, v: i64) {
        match self.kind {
            Kind::Count | Kind::Port | Kind::Int => self.word(VALUE, v as u64),
            _ => self.other(&v),
        }
    }

    #[inline(always)]
    fn double(&mut self, v: f64) {
        match self.kind {
            Kind::Double => self.word(VALUE, v.to_bits()),
            _ => self.other(&v),
        }
    }

    #[inline(always)]
    fn time(&mut self, v: Time) {
        match self.kind {
            Kind::Time => self.word(VALUE, v.as_nanos() as u64),
            _ => self.other(&v.as_secs_f64()),
        }
    }

    #[cold]
    fn far_time(&mut self, seconds: f64) {
        match self.kind {
            Kind::Time => self.word(OTHER, seconds.to_bits()),
            _ => self.other(&seconds),
        }
    }

    #[inline(always)]
    fn interval(&mut self, v: Interval) {
        match self.kind {
            Kind::Interval => self.word(VALUE, v.as_nanos() as u64),
            _ => self.other(&v.as_secs_f64()),
        }
    }

    #[inline(always)]
    fn addr(&mut self, v: Addr) {
        match self.kind {
            Kind::Addr => {
                self.out.put([VALUE], 1);
                self.out.put(v.octets(), 16);
            }
            _ => self.other(&v),
        }
    }

    #[inline(always)]
    fn conn_id(&mut self, v: &ConnId) {
        self.out.with(|room, at| conn_id(room, at, v));
    }

    #[inline(always)]
    fn string(&mut self, v: &[u8]) {
        let n = v.len().min(self.limits.string);
        self.cut.strings |= n < v.len();
        match self.kind {
            Kind::Text => self.piece(VALUE, &v[..n]),
            _ => self.other(&v.escape_ascii()),
        }
    }

    #[inline(always)]
    fn plain(&mut self, v: &[u8]) {
        match self.kind {
            Kind::Text => self.piece(OTHER, v),
            _ => self.other(&v.escape_ascii()),
        }
    }

    #[inline(always)]
    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>) {
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        self.kind = const { Kind::of(V::TYPE) };
        self.out.put([VALUE], 1);
        self.out.put((n as u32).to_le_bytes(), 4);
        for element in v.take(n) {
            self.text = 0;
            if element.is_unset() { self.out.put([UNSET], 1) } else { element.put(self) }
        }
    }
}

/// Packs rows of values whose types are known only at run time.
///
/// Push the values in the order of the columns and end each row with [`end`](Self::end);
/// [`rows`](Self::rows) returns all of them.
#[derive(Clone, Debug, Default)]
pub struct RowPacker {
    bytes: Vec<u8>,
    start: usize,
}

impl RowPacker {
    /// Begins a row.
    pub fn begin(&mut self) {
        self.start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; PREFIX]);
    }

    /// One value.
    pub fn push(&mut self, cell: &Cell<'_>) {
        let out = &mut self.bytes;
        match *cell {
            Cell::Unset => out.push(UNSET),
            Cell::Bool(v) => out.extend_from_slice(&[VALUE, u8::from(v)]),
            Cell::Count(v) => word(out, VALUE, v),
            Cell::Int(v) => word(out, VALUE, v as u64),
            Cell::Double(v) => word(out, VALUE, v.to_bits()),
            Cell::Time(v) => word(out, VALUE, v.as_nanos() as u64),
            Cell::FarTime(v) => word(out, OTHER, v.to_bits()),
            Cell::Seconds(v) => word(out, SECONDS, v.to_bits()),
            Cell::Interval(v) => word(out, VALUE, v.as_nanos() as u64),
            Cell::Addr(v) => {
                out.push(VALUE);
                out.extend_from_slice(&v.octets());
            }
            Cell::String(v) => pack_text(out, VALUE, v),
            Cell::Plain(v) => pack_text(out, OTHER, v),
            Cell::List(list) => {
                self.push_list(list.len());
                list.for_each(|element| self.push(&element));
            }
        }
    }

    /// A set or vector; its elements follow as values.
    pub fn push_list(&mut self, elements: usize) {
        self.bytes.push(VALUE);
        self.bytes.extend_from_slice(&(elements as u32).to_le_bytes());
    }

    /// Ends the row.
    pub fn end(&mut self) {
        let len = self.bytes.len().saturating_sub(self.start + PREFIX) as u32;
        if let Some(place) = self.bytes.get_mut(self.start..self.start + PREFIX) {
            place.copy_from_slice(&len.to_le_bytes());
        }
    }

    /// All rows since the last [`clear`](Self::clear).
    pub fn rows(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

fn word(out: &mut Vec<u8>, mark: u8, v: u64) {
    out.push(mark);
    out.extend_from_slice(&v.to_le_bytes());
}

fn pack_text(out: &mut Vec<u8>, mark: u8, v: &[u8]) {
    out.push(mark);
    out.extend_from_slice(&(v.len() as u32).to_le_bytes());
    out.extend_from_slice(v);
}
