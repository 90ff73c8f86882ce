//! Packs rows whose types are known only at run time.

use super::Cell;
use super::GROUP;
use super::OTHER;
use super::PREFIX;
use super::SECONDS;
use super::UNSET;
use super::VALUE;
use super::WORD;
use super::inline_slot;
use super::offset_slot;
use super::v4_slot;

/// Packs rows of values whose types are known only at run time.
///
/// Push the values in the order of the columns and end each row with [`end`](Self::end);
/// [`rows`](Self::rows) returns all of them.
#[derive(Clone, Debug, Default)]
pub struct RowPacker {
    bytes: Vec<u8>,
    /// Offset of the current row.
    start: usize,
    /// Number of columns of the current row so far.
    columns: usize,
    /// Offset of the marks of the current group.
    marks_at: usize,
    marks: u64,
    /// The rest of the current row, which follows its slots.
    rest: Vec<u8>,
    /// Number of elements of the current list that are still to be pushed.
    remaining_elements: usize,
}

impl RowPacker {
    /// Begins a row.
    pub fn begin(&mut self) {
        self.start = self.bytes.len();
        self.rest.clear();
        (self.columns, self.remaining_elements) = (0, 0);
        self.bytes.extend_from_slice(&[0; 2 * PREFIX]);
        self.begin_group();
    }

    fn begin_group(&mut self) {
        self.marks = 0;
        self.marks_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; WORD]);
    }

    fn end_group(&mut self) {
        if let Some(slice) = self.bytes.get_mut(self.marks_at..self.marks_at + WORD) {
            slice.copy_from_slice(&self.marks.to_le_bytes());
        }
    }

    /// Appends a value.
    pub fn push(&mut self, cell: &Cell<'_>) {
        if let Some(left) = self.remaining_elements.checked_sub(1) {
            self.remaining_elements = left;
            return element(&mut self.rest, cell);
        }
        let (mark, slot) = match *cell {
            Cell::Unset => (UNSET, 0),
            Cell::Bool(v) => (VALUE, u64::from(v)),
            Cell::Count(v) => (VALUE, v),
            Cell::Int(v) => (VALUE, v as u64),
            Cell::Double(v) => (VALUE, v.to_bits()),
            Cell::Time(v) => (VALUE, v.as_nanos() as u64),
            Cell::FarTime(v) => (OTHER, v.to_bits()),
            Cell::Seconds(v) => (SECONDS, v.to_bits()),
            Cell::Interval(v) => (VALUE, v.as_nanos() as u64),
            Cell::Addr(v) => {
                let octets = v.octets();
                (VALUE, v.as_v4().map_or_else(|| self.append_rest(&octets) as u64, v4_slot))
            }
            Cell::String(v) => (VALUE, self.text(v)),
            Cell::Plain(v) => (OTHER, self.text(v)),
            Cell::List(list) => {
                self.push_list(list.len());
                return list.for_each(|element| self.push(&element));
            }
        };
        self.column(mark, slot);
    }

    /// Begins a set or vector; its elements are pushed next.
    pub fn push_list(&mut self, remaining_elements: usize) {
        self.column(VALUE, offset_slot(remaining_elements, self.rest.len()));
        self.remaining_elements = remaining_elements;
    }

    fn column(&mut self, mark: u8, slot: u64) {
        let at = self.columns % GROUP;
        if at == 0 && self.columns > 0 {
            self.end_group();
            self.begin_group();
        }
        self.marks |= u64::from(mark) << (2 * at);
        self.bytes.extend_from_slice(&slot.to_le_bytes());
        self.columns += 1;
    }

    fn text(&mut self, v: &[u8]) -> u64 {
        inline_slot(v).unwrap_or_else(|| offset_slot(v.len(), self.append_rest(v)))
    }

    /// Appends bytes to the rest; returns their offset in it.
    fn append_rest(&mut self, v: &[u8]) -> usize {
        let offset = self.rest.len();
        self.rest.extend_from_slice(v);
        offset
    }

    /// Ends the row.
    pub fn end(&mut self) {
        self.end_group();
        let rest = self.bytes.len().saturating_sub(self.start + PREFIX) as u64;
        self.bytes.extend_from_slice(&self.rest);
        let len = self.bytes.len().saturating_sub(self.start + PREFIX) as u64;
        if let Some(slice) = self.bytes.get_mut(self.start..self.start + 2 * PREFIX) {
            slice.copy_from_slice(&(len | rest << 32).to_le_bytes());
        }
    }

    /// All rows since the last [`clear`](Self::clear).
    pub fn rows(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all rows; keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }
}

/// Encodes an element of a list.
fn element(out: &mut Vec<u8>, cell: &Cell<'_>) {
    let mut word = |mark, v: u64| {
        out.push(mark);
        out.extend_from_slice(&v.to_le_bytes());
    };
    match *cell {
        // Lists are not nested.
        Cell::Unset | Cell::List(_) => out.push(UNSET),
        Cell::Bool(v) => out.extend_from_slice(&[VALUE, u8::from(v)]),
        Cell::Count(v) => word(VALUE, v),
        Cell::Int(v) => word(VALUE, v as u64),
        Cell::Double(v) => word(VALUE, v.to_bits()),
        Cell::Time(v) => word(VALUE, v.as_nanos() as u64),
        Cell::FarTime(v) => word(OTHER, v.to_bits()),
        Cell::Seconds(v) => word(SECONDS, v.to_bits()),
        Cell::Interval(v) => word(VALUE, v.as_nanos() as u64),
        Cell::Addr(v) => {
            out.push(VALUE);
            out.extend_from_slice(&v.octets());
        }
        Cell::String(v) => text(out, VALUE, v),
        Cell::Plain(v) => text(out, OTHER, v),
    }
}

fn text(out: &mut Vec<u8>, mark: u8, v: &[u8]) {
    out.push(mark);
    out.extend_from_slice(&(v.len() as u32).to_le_bytes());
    out.extend_from_slice(v);
}
