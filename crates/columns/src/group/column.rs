//! The values of a column, collected for a row group.

use std::mem;

use gannet_base::Addr;
use gannet_log::Cell;
use gannet_log::Kind;
use gannet_log::RowBlock;
use gannet_log::Type;

use super::BLOCK;
use super::dictionary::Dictionary;
use super::dictionary::TextDictionary;
use super::dictionary::Texts;
use super::spare::Spare;
use crate::batch::plain;
use crate::batch::time;
use crate::schema::TimeUnit;

/// Values of a column and where they are missing.
pub(super) struct Column {
    kind: Kind,
    /// For each row, or for each element and each list without one: how many levels of it exist, up to `most`.
    pub(super) definitions: Vec<u8>,
    /// What a value has.
    pub(super) most: u8,
    /// For a list: 0 where a row begins, 1 for its other elements.
    pub(super) repetitions: Option<Vec<u8>>,
    pub(super) values: Values,
}

/// The values that exist.
pub(super) enum Values {
    Bools(Vec<u8>),
    Ints(Vec<i64>),
    Ports(Vec<i64>),
    Doubles(Numbered<Dictionary<u64>, Vec<u64>>),
    Times(Vec<i64>, TimeUnit),
    Addrs(Numbered<Dictionary<u128>, Texts>),
    Texts(Numbered<TextDictionary, Texts>),
}

/// Values as numbers in a dictionary, or in full where hardly any comes twice.
pub(super) enum Numbered<D, V> {
    Numbers(D, Vec<u32>),
    Full(V),
}

/// Bytes of most texts.
const TEXT: usize = 20;
/// Entries of a dictionary that show what is to come.
const ENOUGH: usize = 400;

impl Column {
    /// For about this many rows; `is_id` if nearly every one has a different value.
    pub(super) fn new(
        ty: Type,
        unit: TimeUnit,
        rows: usize,
        is_id: bool,
        spare: &mut Spare,
    ) -> Self {
        let kind = Kind::of(ty);
        let is_list = matches!(ty, Type::Set(_) | Type::Vector(_));
        let values = match kind {
            Kind::Bool => Values::Bools(spare.bytes(rows)),
            Kind::Count | Kind::Int => Values::Ints(spare.longs(rows)),
            Kind::Port => Values::Ports(spare.longs(rows)),
            Kind::Time => Values::Times(spare.longs(rows), unit),
            Kind::Double | Kind::Interval => Values::Doubles(Numbered::new(spare.numbers(rows))),
            Kind::Addr => Values::Addrs(Numbered::new(spare.numbers(rows))),
            Kind::Text if is_id => Values::Texts(Numbered::Full(spare.texts(rows, rows * TEXT))),
            Kind::Text => Values::Texts(Numbered::new(spare.numbers(rows))),
        };
        Self {
            kind,
            definitions: spare.bytes(rows),
            most: if is_list { 3 } else { 1 },
            repetitions: is_list.then(|| spare.bytes(rows)),
            values,
        }
    }

    /// Numbers that are always there.
    pub(super) fn of_numbers(numbers: Vec<i64>) -> Self {
        Self {
            kind: Kind::Int,
            definitions: Vec::new(),
            most: 0,
            repetitions: None,
            values: Values::Ints(numbers),
        }
    }

    /// Gives the memory back.
    pub(super) fn keep(self, spare: &mut Spare) {
        spare.keep_bytes(self.definitions);
        self.repetitions.into_iter().for_each(|levels| spare.keep_bytes(levels));
        match self.values {
            Values::Bools(all) => spare.keep_bytes(all),
            Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => spare.keep_longs(all),
            Values::Doubles(Numbered::Full(_)) => {}
            Values::Addrs(Numbered::Full(all)) | Values::Texts(Numbered::Full(all)) => {
                spare.keep_texts(all);
            }
            Values::Doubles(Numbered::Numbers(_, all))
            | Values::Addrs(Numbered::Numbers(_, all))
            | Values::Texts(Numbered::Numbers(_, all)) => spare.keep_numbers(all),
        }
    }

    /// Takes the next value of each of up to [`BLOCK`] rows.
    pub(super) fn take(&mut self, rows: &mut RowBlock<'_>, spare: &mut Spare) {
        // Values of a block are collected in arrays of this size: more would be lost.
        assert!(rows.len() <= BLOCK, "{} rows in a block of {BLOCK}", rows.len());
        let Self { kind, definitions, repetitions, values, .. } = self;
        let there = definitions;
        if let Some(repetitions) = repetitions {
            take_lists(*kind, rows, (there, repetitions), values);
            return self.review(ENOUGH, spare);
        }
        match values {
            Values::Bools(to) => scalars(Kind::Bool, rows, there, to, |cell| {
                u8::from(matches!(cell, Cell::Bool(true)))
            }),
            Values::Ints(to) if *kind == Kind::Int => scalars(Kind::Int, rows, there, to, int),
            Values::Ints(to) => scalars(Kind::Count, rows, there, to, int),
            Values::Ports(to) => scalars(Kind::Port, rows, there, to, port),
            Values::Times(to, unit) => {
                scalars(Kind::Time, rows, there, to, |cell| time(cell, *unit));
            }
            Values::Doubles(Numbered::Full(to)) if *kind == Kind::Double => {
                scalars(Kind::Double, rows, there, to, double);
            }
            Values::Doubles(Numbered::Full(to)) => {
                scalars(Kind::Interval, rows, there, to, double);
            }
            Values::Doubles(Numbered::Numbers(known, to)) => {
                let number = |cell: Cell<'_>| match cell {
                    Cell::Unset => 0,
                    cell => known.number(double(cell)),
                };
                match kind {
                    Kind::Double => scalars(Kind::Double, rows, there, to, number),
                    _ => scalars(Kind::Interval, rows, there, to, number),
                }
            }
            Values::Addrs(Numbered::Numbers(known, to)) => {
                scalars(Kind::Addr, rows, there, to, |cell| match cell {
                    Cell::Addr(addr) => known.number(u128::from_be_bytes(addr.octets())),
                    _ => 0,
                });
            }
            Values::Addrs(Numbered::Full(to)) => push_texts(Kind::Addr, rows, there, to),
            Values::Texts(Numbered::Full(to)) => push_texts(Kind::Text, rows, there, to),
            Values::Texts(Numbered::Numbers(known, to)) => {
                let mut room = Vec::new();
                let mut last: (Option<&[u8]>, bool, u32) = (None, false, 0);
                scalars(Kind::Text, rows, there, to, |cell| {
                    let (v, is_plain) = match cell {
                        Cell::Plain(v) => (v, true),
                        Cell::String(v) => (v, false),
                        _ => return 0,
                    };
                    // Rows have the value of the row before very often.
                    if last.1 != is_plain || !last.0.is_some_and(|last| same(last, v)) {
                        room.clear();
                        text(cell, &mut room);
                        last = (Some(v), is_plain, known.number(&room));
                    }
                    last.2
                });
            }
        }
        self.review(ENOUGH, spare);
    }

    /// No more rows follow.
    pub(super) fn finish(&mut self, spare: &mut Spare) {
        self.review(0, spare);
    }

    /// Gives dictionaries up that save nothing, once they have more than a number of entries.
    fn review(&mut self, enough: usize, spare: &mut Spare) {
        match &mut self.values {
            Values::Doubles(to) => to.review(enough),
            Values::Addrs(to) => to.review(enough, spare),
            Values::Texts(to) => to.review(enough, spare),
            _ => {}
        }
    }
}

/// The values of single ones, and in `there` whether there is one.
#[inline(always)]
fn scalars<'a, T: Copy + Default>(
    kind: Kind,
    rows: &mut RowBlock<'a>,
    there: &mut Vec<u8>,
    to: &mut Vec<T>,
    mut value: impl FnMut(Cell<'a>) -> T,
) {
    // One of a missing value is overwritten by the next.
    let (mut values, mut is_there) = ([T::default(); BLOCK], [0; BLOCK]);
    let (mut at, mut end) = (0, 0);
    rows.scalars(kind, |cell| {
        let is = !matches!(cell, Cell::Unset);
        is_there[at % BLOCK] = u8::from(is);
        values[end % BLOCK] = value(cell);
        at += 1;
        end += usize::from(is);
    });
    there.extend_from_slice(&is_there[..at.min(BLOCK)]);
    to.extend_from_slice(&values[..end.min(BLOCK)]);
}

/// The same of texts in full.
#[inline(always)]
fn push_texts(kind: Kind, rows: &mut RowBlock<'_>, there: &mut Vec<u8>, to: &mut Texts) {
    rows.scalars(kind, |cell| {
        let is = !matches!(cell, Cell::Unset);
        there.push(u8::from(is));
        if is {
            to.push_with(|bytes| text(cell, bytes));
        }
    });
}

fn take_lists(
    kind: Kind,
    rows: &mut RowBlock<'_>,
    (definitions, repetitions): (&mut Vec<u8>, &mut Vec<u8>),
    values: &mut Values,
) {
    let mut room = Vec::new();
    rows.lists(kind, |list| {
        let empty = u8::from(list.is_some());
        let mut first = 0;
        for cell in list.into_iter().flatten() {
            repetitions.push(first);
            first = 1;
            definitions.push(match cell {
                Cell::Unset => 2,
                cell => {
                    values.push(cell, &mut room);
                    3
                }
            });
        }
        if first == 0 {
            repetitions.push(0);
            definitions.push(empty);
        }
    });
}

impl Values {
    fn push(&mut self, cell: Cell<'_>, room: &mut Vec<u8>) {
        match self {
            Self::Bools(to) => to.push(u8::from(matches!(cell, Cell::Bool(true)))),
            Self::Ints(to) => to.push(int(cell)),
            Self::Ports(to) => to.push(port(cell)),
            Self::Doubles(to) => to.push(double(cell)),
            Self::Times(to, unit) => to.push(time(cell, *unit)),
            Self::Addrs(to) => to.push(cell),
            Self::Texts(to) => to.push(cell, room),
        }
    }
}

#[inline(always)]
fn int(cell: Cell<'_>) -> i64 {
    match cell {
        Cell::Count(v) => i64::try_from(v).unwrap_or(i64::MAX),
        Cell::Int(v) => v,
        _ => 0,
    }
}

#[inline(always)]
fn port(cell: Cell<'_>) -> i64 {
    match cell {
        Cell::Count(v) => i64::from(v as u16),
        _ => 0,
    }
}

#[inline(always)]
fn double(cell: Cell<'_>) -> u64 {
    match cell {
        Cell::Double(v) | Cell::Seconds(v) => v.to_bits(),
        Cell::Interval(v) => v.as_secs_f64().to_bits(),
        _ => 0,
    }
}

/// Whether two texts are equal, without a call if they are short.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), a.last_chunk::<8>(), b.first_chunk(), b.last_chunk()) {
        (Some(a1), Some(a2), Some(b1), Some(b2)) if a.len() <= 16 => a1 == b1 && a2 == b2,
        (Some(_), ..) => a == b,
        _ => a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0,
    }
}

#[inline(always)]
fn text(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::String(v) => gannet_log::column_text(v, out),
        Cell::Plain(v) => plain(v, out),
        Cell::Addr(v) => gannet_log::write_addr(out, v),
        _ => {}
    }
}

/// Whether hardly more than half of the values existed before.
fn is_poor(distinct: usize, values: usize, enough: usize) -> bool {
    distinct > enough && distinct * 2 > values
}

impl<D: Default, V> Numbered<D, V> {
    fn new(numbers: Vec<u32>) -> Self {
        Self::Numbers(D::default(), numbers)
    }
}

impl Numbered<Dictionary<u64>, Vec<u64>> {
    #[inline(always)]
    fn push(&mut self, bits: u64) {
        match self {
            Self::Numbers(known, numbers) => numbers.push(known.number(bits)),
            Self::Full(to) => to.push(bits),
        }
    }

    fn review(&mut self, enough: usize) {
        if let Self::Numbers(known, numbers) = self
            && is_poor(known.keys.len(), numbers.len(), enough)
        {
            *self = Self::Full(numbers.iter().map(|at| known.keys[*at as usize]).collect());
        }
    }
}

impl Numbered<Dictionary<u128>, Texts> {
    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>) {
        let Cell::Addr(addr) = cell else { return };
        match self {
            Self::Numbers(known, numbers) => {
                numbers.push(known.number(u128::from_be_bytes(addr.octets())));
            }
            Self::Full(to) => to.push_with(|bytes| gannet_log::write_addr(bytes, addr)),
        }
    }

    fn review(&mut self, enough: usize, spare: &mut Spare) {
        if let Self::Numbers(known, numbers) = self
            && is_poor(known.keys.len(), numbers.len(), enough)
        {
            let mut texts = spare.texts(numbers.len(), numbers.len() * TEXT);
            for at in numbers.iter() {
                texts.push_with(|bytes| write_addr(known.keys[*at as usize], bytes));
            }
            spare.keep_numbers(mem::take(numbers));
            *self = Self::Full(texts);
        }
    }
}

/// The text of an address from its octets.
pub(super) fn write_addr(octets: u128, out: &mut Vec<u8>) {
    gannet_log::write_addr(out, Addr::v6(octets.to_be_bytes()));
}

impl Numbered<TextDictionary, Texts> {
    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>, room: &mut Vec<u8>) {
        match self {
            Self::Numbers(known, numbers) => {
                room.clear();
                text(cell, room);
                numbers.push(known.number(room));
            }
            Self::Full(to) => to.push_with(|bytes| text(cell, bytes)),
        }
    }

    fn review(&mut self, enough: usize, spare: &mut Spare) {
        if let Self::Numbers(known, numbers) = self
            && is_poor(known.texts.len(), numbers.len(), enough)
        {
            let mut texts = spare.texts(numbers.len(), numbers.len() * TEXT);
            for at in numbers.iter() {
                let text = known.texts.get(*at as usize);
                texts.push_with(|bytes| bytes.extend_from_slice(text));
            }
            spare.keep_numbers(mem::take(numbers));
            *self = Self::Full(texts);
        }
    }
}
