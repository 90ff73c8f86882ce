//! A reader of the columns of many rows.

use gannet_base::Addr;

use super::Cell;
use super::GROUP;
use super::Kind;
use super::List;
use super::OTHER;
use super::UNSET;
use super::VALUE;
use super::WORD;
use super::marks_at;
use super::reader::addr;
use super::reader::cell;
use super::reader::list;
use super::reader::text;
use super::short_of;
use super::slot_at;
use super::v4_number;

/// Rows that are read a column at a time: the first values of all of them, then the second ones.
///
/// The rows must be whole: of one that lacks columns, those are read from what is behind it.
#[derive(Clone, Debug)]
pub struct RowBlock<'a> {
    bytes: &'a [u8],
    /// Number of columns.
    columns: usize,
    /// Where each row begins, behind its length.
    places: Vec<u32>,
    /// The next column.
    column: usize,
    /// The marks of its group and the slots of that, of the first row.
    first: [u64; 1 + GROUP],
    /// The bits in which other rows differ.
    differences: [u64; 1 + GROUP],
    /// The marks of each row, if some differ.
    marks: Vec<u64>,
    /// The bits that all marks have, and those that some have.
    all: u64,
    any: u64,
}

/// One column of the rows of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockColumn<'b, 'a> {
    bytes: &'a [u8],
    places: &'b [u32],
    /// The marks of each row, or, if all have the same, none.
    marks: &'b [u64],
    /// Where the mark is among those of its group.
    bit: u32,
    /// Where the slot is in its row.
    at: usize,
    /// The bits of the mark that all rows have, and those that some have.
    all: u8,
    any: u8,
    /// The slot of the first row, and the bits in which those of others differ.
    first: u64,
    differences: u64,
}

impl<'a> RowBlock<'a> {
    /// No rows yet, of a buffer of rows with that many columns.
    pub fn new(bytes: &'a [u8], columns: usize) -> Self {
        Self {
            bytes,
            columns,
            places: Vec::new(),
            column: 0,
            first: [0; 1 + GROUP],
            differences: [0; 1 + GROUP],
            marks: Vec::new(),
            all: 0,
            any: 0,
        }
    }

    /// Begins with the rows that begin at these places, each behind its length.
    pub fn begin(&mut self, places: impl Iterator<Item = u32>) {
        self.column = 0;
        self.places.clear();
        self.places.extend(places);
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The next column.
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
            places: &self.places,
            marks: &self.marks,
            bit,
            at: slot_at(column),
            all,
            any,
            first: self.first[1 + in_group],
            differences: self.differences[1 + in_group],
        }
    }

    /// Compares the marks and slots of the group that begins with a column, a row at a time.
    fn compare(&mut self, column: usize) {
        let words = 1 + self.columns.saturating_sub(column).min(GROUP);
        let at = marks_at(column);
        let bytes = self.bytes;
        let group = |place: &u32| {
            let start = *place as usize + at;
            bytes.get(start..start + words * WORD).unwrap_or_default().as_chunks::<WORD>().0
        };
        (self.first, self.differences) = ([0; 1 + GROUP], [0; 1 + GROUP]);
        let Some(place) = self.places.first() else { return };
        for (to, word) in self.first.iter_mut().zip(group(place)) {
            *to = u64::from_le_bytes(*word);
        }
        for place in &self.places {
            let known = self.differences.iter_mut().zip(&self.first);
            for ((differences, first), word) in known.zip(group(place)) {
                *differences |= u64::from_le_bytes(*word) ^ first;
            }
        }
        self.marks.clear();
        (self.all, self.any) = (self.first[0], self.first[0]);
        if self.differences[0] != 0 {
            self.marks.extend(self.places.iter().map(|place| word(bytes, *place, at)));
            (self.all, self.any) = self
                .marks
                .iter()
                .fold((u64::MAX, 0), |(all, any), marks| (all & marks, any | marks));
        }
    }
}

#[inline(always)]
fn word(bytes: &[u8], place: u32, at: usize) -> u64 {
    let rest = bytes.get(place as usize + at..);
    rest.and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

impl<'a> BlockColumn<'_, 'a> {
    /// Whether no row has a value.
    #[inline]
    pub fn is_unset(&self) -> bool {
        self.all_have(UNSET)
    }

    /// Whether every row has a value in its first form: of strings one that may need escaping.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.all_have(VALUE)
    }

    /// Whether every row has a string that needs no escaping.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.all_have(OTHER)
    }

    #[inline]
    fn all_have(&self, mark: u8) -> bool {
        (self.all, self.any) == (mark, mark)
    }

    /// The mark of the row at an index.
    #[inline(always)]
    fn mark(&self, row: usize) -> u8 {
        self.marks.get(row).map_or(self.all, |marks| (marks >> self.bit) as u8 & 3)
    }

    /// Whether rows that have a value have it in its first form: of strings one that may need escaping.
    #[inline]
    pub fn is_set_or_unset(&self) -> bool {
        self.any & OTHER == 0
    }

    /// Whether each row has a value.
    #[inline(always)]
    pub fn are_set(&self) -> impl ExactSizeIterator<Item = bool> {
        (0..self.places.len()).map(|row| self.mark(row) != UNSET)
    }

    /// The word of all rows, if it is the same.
    #[inline]
    pub fn common(&self) -> Option<u64> {
        (self.differences == 0).then_some(self.first)
    }

    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The words of the rows: of numbers, times and intervals the values.
    #[inline]
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> {
        self.places.iter().map(|place| word(self.bytes, *place, self.at))
    }

    /// The length of the string in a word, which is that many first bytes of it; `None` if it is elsewhere.
    #[inline]
    pub fn short(word: u64) -> Option<usize> {
        short_of(word)
    }

    /// The string of each row, if [all](Self::is_plain) have [one](Self::is_set).
    #[inline(always)]
    pub fn texts(&self, mut each: impl FnMut(&'a [u8])) {
        for place in self.places {
            let row = self.bytes.get(*place as usize..).unwrap_or_default();
            each(text(row, word(self.bytes, *place, self.at), self.at).unwrap_or_default());
        }
    }

    /// The address of each row, if [all](Self::is_set) have one.
    #[inline(always)]
    pub fn addrs(&self, mut each: impl FnMut(Addr)) {
        for place in self.places {
            let row = self.bytes.get(*place as usize..).unwrap_or_default();
            each(addr(row, word(self.bytes, *place, self.at)).unwrap_or_default());
        }
    }

    /// The same as numbers whose highest byte is the first one of the address.
    #[inline(always)]
    pub fn addr_numbers(&self, mut each: impl FnMut(u128)) {
        for place in self.places {
            let slot = word(self.bytes, *place, self.at);
            each(v4_number(slot).unwrap_or_else(|| {
                let row = self.bytes.get(*place as usize..).unwrap_or_default();
                u128::from_be_bytes(addr(row, slot).unwrap_or_default().octets())
            }));
        }
    }

    /// The value of each row, a single one.
    #[inline(always)]
    pub fn cells(&self, kind: Kind, mut each: impl FnMut(Cell<'a>)) {
        for (at, place) in self.places.iter().enumerate() {
            let slot = word(self.bytes, *place, self.at);
            let row = self.bytes.get(*place as usize..).unwrap_or_default();
            let mark = self.mark(at);
            each(cell(row, (mark, slot, self.at), kind).unwrap_or(Cell::Unset));
        }
    }

    /// The value of each row, a list.
    #[inline(always)]
    pub fn lists(&self, kind: Kind, mut each: impl FnMut(Option<List<'a>>)) {
        for (at, place) in self.places.iter().enumerate() {
            let slot = word(self.bytes, *place, self.at);
            let row = self.bytes.get(*place as usize..).unwrap_or_default();
            each(list(row, (self.mark(at), slot), kind));
        }
    }
}
