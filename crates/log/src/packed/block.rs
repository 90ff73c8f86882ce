//! Reads packed rows column by column.

use gannet_base::Addr;

use super::Cell;
use super::GROUP;
use super::Kind;
use super::List;
use super::OTHER;
use super::UNSET;
use super::VALUE;
use super::WORD;
use super::inline_len;
use super::inline_v4_number;
use super::marks_at;
use super::reader::addr;
use super::reader::cell;
use super::reader::list;
use super::reader::text;
use super::slot_at;

/// Rows that are read column by column: first the values of the first column of all rows, then those of the second one.
///
/// Each row must have all columns: missing ones are read from the bytes after the row.
#[derive(Clone, Debug)]
pub struct RowBlock<'a> {
    bytes: &'a [u8],
    /// Number of columns.
    columns: usize,
    /// Offset of each row, after its length prefix.
    offsets: Vec<u32>,
    /// Index of the next column.
    column: usize,
    /// Marks and slots of the current group in the first row.
    first: [u64; 1 + GROUP],
    /// Bits in which any other row differs from `first`.
    differences: [u64; 1 + GROUP],
    /// Marks of each row, if they differ.
    marks: Vec<u64>,
    /// Bits that are set in the marks of all rows.
    all: u64,
    /// Bits that are set in the marks of any row.
    any: u64,
}

/// One column of the rows of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockColumn<'b, 'a> {
    bytes: &'a [u8],
    offsets: &'b [u32],
    /// Marks of each row; empty if they are equal.
    marks: &'b [u64],
    /// Shift of the column's mark in the marks of its group.
    bit: u32,
    /// Offset of the slot in a row.
    at: usize,
    /// Bits that are set in the mark of all rows.
    all: u8,
    /// Bits that are set in the mark of any row.
    any: u8,
    /// Slot of the first row.
    first: u64,
    /// Bits in which the slot of any other row differs from `first`.
    differences: u64,
}

impl<'a> RowBlock<'a> {
    /// An empty block of a buffer of rows with `columns` columns.
    pub fn new(bytes: &'a [u8], columns: usize) -> Self {
        Self {
            bytes,
            columns,
            offsets: Vec::new(),
            column: 0,
            first: [0; 1 + GROUP],
            differences: [0; 1 + GROUP],
            marks: Vec::new(),
            all: 0,
            any: 0,
        }
    }

    /// Sets the rows of the block by their offsets in the buffer, after their length prefixes.
    pub fn begin(&mut self, offsets: impl Iterator<Item = u32>) {
        self.column = 0;
        self.offsets.clear();
        self.offsets.extend(offsets);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the next column.
    pub fn next_column(&mut self) -> BlockColumn<'_, 'a> {
        let column = self.column;
        self.column += 1;
        if column.is_multiple_of(GROUP) {
            self.compare(column);
        }
        let in_group = column % GROUP;
        let bit = 2 * in_group as u32;
        let [all, any] = [self.all, self.any].map(|marks| (marks >> bit) as u8 & 3);
        BlockColumn {
            bytes: self.bytes,
            offsets: &self.offsets,
            marks: &self.marks,
            bit,
            at: slot_at(column),
            all,
            any,
            first: self.first[1 + in_group],
            differences: self.differences[1 + in_group],
        }
    }

    /// Compares the marks and slots of the group that begins at a column, row by row.
    fn compare(&mut self, column: usize) {
        let words = 1 + self.columns.saturating_sub(column).min(GROUP);
        let at = marks_at(column);
        let bytes = self.bytes;
        let group = |offset: &u32| {
            let start = *offset as usize + at;
            bytes.get(start..start + words * WORD).unwrap_or_default().as_chunks::<WORD>().0
        };
        (self.first, self.differences) = ([0; 1 + GROUP], [0; 1 + GROUP]);
        let Some(offset) = self.offsets.first() else { return };
        for (to, word) in self.first.iter_mut().zip(group(offset)) {
            *to = u64::from_le_bytes(*word);
        }
        for offset in &self.offsets {
            let known = self.differences.iter_mut().zip(&self.first);
            for ((differences, first), word) in known.zip(group(offset)) {
                *differences |= u64::from_le_bytes(*word) ^ first;
            }
        }
        self.marks.clear();
        (self.all, self.any) = (self.first[0], self.first[0]);
        if self.differences[0] != 0 {
            self.marks.extend(self.offsets.iter().map(|offset| word(bytes, *offset, at)));
            (self.all, self.any) = self
                .marks
                .iter()
                .fold((u64::MAX, 0), |(all, any), marks| (all & marks, any | marks));
        }
    }
}

#[inline(always)]
fn word(bytes: &[u8], offset: u32, at: usize) -> u64 {
    let rest = bytes.get(offset as usize + at..);
    rest.and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

impl<'a> BlockColumn<'_, 'a> {
    /// Whether the column is unset in all rows.
    #[inline]
    pub fn is_unset(&self) -> bool {
        self.all_have(UNSET)
    }

    /// Whether the column is set in all rows, and strings may need escaping ([`Cell::String`]).
    #[inline]
    pub fn is_set(&self) -> bool {
        self.all_have(VALUE)
    }

    /// Whether all rows have a string that needs no escaping ([`Cell::Plain`]).
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.all_have(OTHER)
    }

    #[inline]
    fn all_have(&self, mark: u8) -> bool {
        (self.all, self.any) == (mark, mark)
    }

    /// Mark of the row at an index.
    #[inline(always)]
    fn mark(&self, row: usize) -> u8 {
        self.marks.get(row).map_or(self.all, |marks| (marks >> self.bit) as u8 & 3)
    }

    /// Like [`is_set`](Self::is_set), but some rows may be unset.
    #[inline]
    pub fn is_set_or_unset(&self) -> bool {
        self.any & OTHER == 0
    }

    /// For each row whether the column is set.
    #[inline(always)]
    pub fn are_set(&self) -> impl ExactSizeIterator<Item = bool> {
        (0..self.offsets.len()).map(|row| self.mark(row) != UNSET)
    }

    /// The slot of all rows, if it is the same.
    #[inline]
    pub fn common(&self) -> Option<u64> {
        (self.differences == 0).then_some(self.first)
    }

    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The slots of the rows; for numbers, times and intervals these are the values.
    #[inline]
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.offsets.iter().map(|offset| word(self.bytes, *offset, self.at))
    }

    /// The length of a string that is stored in the first bytes of its slot; `None` if it is not stored there.
    #[inline]
    pub fn short(word: u64) -> Option<usize> {
        inline_len(word)
    }

    /// Calls `each` with the string of each row. The column must be [set](Self::is_set) or [plain](Self::is_plain).
    #[inline(always)]
    pub fn texts(&self, mut each: impl FnMut(&'a [u8])) {
        for offset in self.offsets {
            let row = self.bytes.get(*offset as usize..).unwrap_or_default();
            each(text(row, word(self.bytes, *offset, self.at), self.at).unwrap_or_default());
        }
    }

    /// Calls `each` with the address of each row. The column must be [set](Self::is_set).
    #[inline(always)]
    pub fn addrs(&self, mut each: impl FnMut(Addr)) {
        for offset in self.offsets {
            let row = self.bytes.get(*offset as usize..).unwrap_or_default();
            each(addr(row, word(self.bytes, *offset, self.at)).unwrap_or_default());
        }
    }

    /// Like [`addrs`](Self::addrs), with addresses as big-endian numbers.
    #[inline(always)]
    pub fn addr_numbers(&self, mut each: impl FnMut(u128)) {
        for offset in self.offsets {
            let slot = word(self.bytes, *offset, self.at);
            each(inline_v4_number(slot).unwrap_or_else(|| {
                let row = self.bytes.get(*offset as usize..).unwrap_or_default();
                u128::from_be_bytes(addr(row, slot).unwrap_or_default().octets())
            }));
        }
    }

    /// Calls `each` with the value of each row in a scalar column.
    #[inline(always)]
    pub fn cells(&self, kind: Kind, mut each: impl FnMut(Cell<'a>)) {
        for (at, offset) in self.offsets.iter().enumerate() {
            let slot = word(self.bytes, *offset, self.at);
            let row = self.bytes.get(*offset as usize..).unwrap_or_default();
            let mark = self.mark(at);
            each(cell(row, (mark, slot, self.at), kind).unwrap_or(Cell::Unset));
        }
    }

    /// Calls `each` with the list of each row in a list column.
    #[inline(always)]
    pub fn lists(&self, kind: Kind, mut each: impl FnMut(Option<List<'a>>)) {
        for (at, offset) in self.offsets.iter().enumerate() {
            let slot = word(self.bytes, *offset, self.at);
            let row = self.bytes.get(*offset as usize..).unwrap_or_default();
            each(list(row, (self.mark(at), slot), kind));
        }
    }
}
