//! The values of a column, collected for a row group.

use std::mem;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::BlockColumn;
use gannet_log::Cell;
use gannet_log::Kind;
use gannet_log::Type;

use super::BLOCK;
use super::dictionary::Dictionary;
use super::dictionary::TextDictionary;
use super::dictionary::Texts;
use super::encode::common;
use super::series::Series;
use super::spare::Spare;
use crate::batch::plain;
use crate::batch::time;
use crate::schema::TimeUnit;

/// Values of a column and where they are missing.
pub(super) struct Column {
    kind: Kind,
    /// For each row, or for each element and each list without one: how many levels of it exist, up to `most`.
    pub(super) definitions: Series<u8>,
    /// What a value has.
    pub(super) most: u8,
    /// For a list: 0 where a row begins, 1 for its other elements.
    pub(super) repetitions: Option<Vec<u8>>,
    pub(super) values: Values,
}

/// The values that exist.
pub(super) enum Values {
    Bools(Series<u8>),
    Ints(Series<i64>),
    Ports(Series<i64>),
    Doubles(Numbered<Dictionary<u64>, Vec<u64>>),
    Times(Series<i64>, TimeUnit),
    Addrs(Numbered<Dictionary<u128>, Texts>),
    Texts(Numbered<TextDictionary, Texts>),
}

/// Values as numbers in a dictionary, or in full where hardly any comes twice.
pub(super) enum Numbered<D, V> {
    Numbers(D, Series<u32>),
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
        let mut longs = || Series::new(spare.longs(rows));
        let values = match kind {
            Kind::Bool => Values::Bools(Series::new(spare.bytes(rows))),
            Kind::Count | Kind::Int => Values::Ints(longs()),
            Kind::Port => Values::Ports(longs()),
            Kind::Time => Values::Times(longs(), unit),
            Kind::Double | Kind::Interval => Values::Doubles(Numbered::new(spare.numbers(rows))),
            Kind::Addr => Values::Addrs(Numbered::new(spare.numbers(rows))),
            Kind::Text if is_id => Values::Texts(Numbered::Full(spare.texts(rows, rows * TEXT))),
            Kind::Text => Values::Texts(Numbered::new(spare.numbers(rows))),
        };
        Self {
            kind,
            definitions: Series::new(spare.bytes(rows)),
            most: if is_list { 3 } else { 1 },
            repetitions: is_list.then(|| spare.bytes(rows)),
            values,
        }
    }

    /// Numbers that are always there.
    pub(super) fn of_numbers(numbers: Vec<i64>) -> Self {
        Self {
            kind: Kind::Int,
            definitions: Series::new(Vec::new()),
            most: 0,
            repetitions: None,
            values: Values::Ints(Series::new(numbers)),
        }
    }

    /// Gives the memory back.
    pub(super) fn keep(self, spare: &mut Spare) {
        spare.keep_bytes(self.definitions.into_memory());
        self.repetitions.into_iter().for_each(|levels| spare.keep_bytes(levels));
        match self.values {
            Values::Bools(all) => spare.keep_bytes(all.into_memory()),
            Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
                spare.keep_longs(all.into_memory());
            }
            Values::Doubles(Numbered::Full(_)) => {}
            Values::Addrs(Numbered::Full(all)) | Values::Texts(Numbered::Full(all)) => {
                spare.keep_texts(all);
            }
            Values::Doubles(Numbered::Numbers(_, all))
            | Values::Addrs(Numbered::Numbers(_, all))
            | Values::Texts(Numbered::Numbers(_, all)) => spare.keep_numbers(all.into_memory()),
        }
    }

    /// Takes the values of up to [`BLOCK`] rows.
    pub(super) fn take(&mut self, rows: BlockColumn<'_, '_>) {
        // Values of a block are collected in arrays of this size: more would be lost.
        assert!(rows.len() <= BLOCK, "{} rows in a block of {BLOCK}", rows.len());
        let Self { kind, definitions, repetitions, values, .. } = self;
        if let Some(repetitions) = repetitions {
            if rows.is_unset() {
                definitions.push_same(0, rows.len());
                repetitions.resize(repetitions.len() + rows.len(), 0);
            } else {
                take_all_lists(*kind, rows, (definitions, repetitions), values);
            }
        } else if rows.is_unset() {
            definitions.push_same(0, rows.len());
        } else if rows.is_set() || rows.is_plain() && *kind == Kind::Text {
            definitions.push_same(1, rows.len());
            take_all(*kind, rows, values);
        } else {
            definitions.push_all(rows.are_set().map(u8::from));
            take_some(*kind, rows, values);
        }
    }

    /// Gives a dictionary up that saves nothing, once it shows that. Where this happens decides what is written.
    pub(super) fn review(&mut self, spare: &mut Spare) {
        self.give_up(ENOUGH, spare);
    }

    /// No more rows follow.
    pub(super) fn finish(&mut self, spare: &mut Spare) {
        self.give_up(0, spare);
    }

    /// Gives a dictionary up that saves nothing, if it has more than a number of entries.
    fn give_up(&mut self, enough: usize, spare: &mut Spare) {
        match &mut self.values {
            Values::Doubles(to) => to.review(enough),
            Values::Addrs(to) => to.review(enough, spare),
            Values::Texts(to) => to.review(enough, spare),
            _ => {}
        }
    }
}

/// The values of rows that all have one.
fn take_all(kind: Kind, rows: BlockColumn<'_, '_>, values: &mut Values) {
    match values {
        Values::Bools(to) => take_words(rows, to, |word| word as u8),
        Values::Ints(to) if kind == Kind::Int => take_words(rows, to, |word| word as i64),
        Values::Ints(to) => take_words(rows, to, |word| int(Cell::Count(word))),
        Values::Ports(to) => take_words(rows, to, |word| port(Cell::Count(word))),
        Values::Times(to, unit) => {
            take_words(rows, to, |word| time(Cell::Time(Time::from_nanos(word as i64)), *unit));
        }
        Values::Doubles(Numbered::Full(to)) => {
            to.extend(rows.words().map(|word| bits(kind, word)));
        }
        Values::Doubles(Numbered::Numbers(known, to)) => {
            take_words(rows, to, |word| known.number(bits(kind, word)));
        }
        Values::Addrs(Numbered::Numbers(known, to)) => {
            take_addrs(rows, to, |addr| known.number(addr));
        }
        Values::Addrs(Numbered::Full(to)) => {
            rows.addrs(|addr| to.push_with(|bytes| gannet_log::write_addr(bytes, addr)));
        }
        Values::Texts(Numbered::Full(to)) if rows.is_plain() => {
            rows.texts(|v| to.push_with(|bytes| plain(v, bytes)));
        }
        Values::Texts(Numbered::Full(to)) => {
            rows.texts(|v| to.push_with(|bytes| gannet_log::column_text(v, bytes)));
        }
        Values::Texts(Numbered::Numbers(known, to)) => take_texts(rows, known, to),
    }
}

/// The values of rows some of which have one.
fn take_some(kind: Kind, rows: BlockColumn<'_, '_>, values: &mut Values) {
    let mut room = Vec::new();
    match values {
        Values::Bools(to) => take_some_words(rows, to, |word| word as u8),
        Values::Ints(to) if kind == Kind::Int => take_some_words(rows, to, |word| word as i64),
        Values::Ints(to) => take_some_words(rows, to, |word| int(Cell::Count(word))),
        Values::Ports(to) => take_some_words(rows, to, |word| port(Cell::Count(word))),
        Values::Doubles(Numbered::Numbers(known, to)) if rows.is_set_or_unset() => {
            take_some_words(rows, to, |word| known.number(bits(kind, word)));
        }
        values => rows.cells(kind, |cell| match cell {
            Cell::Unset => {}
            cell => values.push(cell, &mut room),
        }),
    }
}

#[inline(always)]
fn take_some_words<T: Copy + PartialEq + Default>(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<T>,
    mut value: impl FnMut(u64) -> T,
) {
    let (mut values, mut at) = ([T::default(); BLOCK], 0);
    for (word, is_set) in rows.words().zip(rows.are_set()) {
        if is_set {
            values[at % BLOCK] = value(word);
            at += 1;
        }
    }
    to.push_all(values[..at.min(BLOCK)].iter().copied());
}

#[inline(always)]
fn take_words<T: Copy + PartialEq>(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<T>,
    mut value: impl FnMut(u64) -> T,
) {
    match rows.common() {
        Some(word) => to.push_same(value(word), rows.len()),
        None => to.push_all(rows.words().map(value)),
    }
}

/// The numbers of addresses.
#[inline(always)]
fn take_addrs(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<u32>,
    mut number: impl FnMut(u128) -> u32,
) {
    let (mut numbers, mut at) = ([0; BLOCK], 0);
    rows.addr_numbers(|addr| {
        numbers[at % BLOCK] = number(addr);
        at += 1;
    });
    push_numbers(&numbers[..at.min(BLOCK)], to);
}

/// The numbers of texts. Rows have the value of the row before very often.
fn take_texts(rows: BlockColumn<'_, '_>, known: &mut TextDictionary, to: &mut Series<u32>) {
    let is_plain = rows.is_plain();
    let mut room = Vec::new();
    let mut number = |v: &[u8]| {
        room.clear();
        text(if is_plain { Cell::Plain(v) } else { Cell::String(v) }, &mut room);
        known.number(&room)
    };
    if let Some(word) = rows.common()
        && let Some(len) = BlockColumn::short(word)
    {
        let v = word.to_le_bytes();
        return to.push_same(number(v.get(..len).unwrap_or_default()), rows.len());
    }
    let mut last: (Option<&[u8]>, u32) = (None, 0);
    let (mut numbers, mut at) = ([0; BLOCK], 0);
    rows.texts(|v| {
        if !last.0.is_some_and(|last| same(last, v)) {
            last = (Some(v), number(v));
        }
        numbers[at % BLOCK] = last.1;
        at += 1;
    });
    push_numbers(&numbers[..at.min(BLOCK)], to);
}

fn push_numbers(numbers: &[u32], to: &mut Series<u32>) {
    match common(numbers) {
        Some(number) => to.push_same(number, numbers.len()),
        None => to.push_all(numbers.iter().copied()),
    }
}

fn take_all_lists(
    kind: Kind,
    rows: BlockColumn<'_, '_>,
    levels: (&mut Series<u8>, &mut Vec<u8>),
    values: &mut Values,
) {
    let mut room = Vec::new();
    match (kind, values) {
        (Kind::Text, Values::Texts(Numbered::Full(to))) => {
            take_lists(Kind::Text, rows, levels, |cell| to.push_with(|bytes| text(cell, bytes)));
        }
        (Kind::Interval, Values::Doubles(Numbered::Numbers(known, to))) => {
            take_lists(Kind::Interval, rows, levels, |cell| to.push(known.number(double(cell))));
        }
        (_, values) => take_lists(kind, rows, levels, |cell| values.push(cell, &mut room)),
    }
}

#[inline(always)]
fn take_lists<'a>(
    kind: Kind,
    rows: BlockColumn<'_, 'a>,
    (definitions, repetitions): (&mut Series<u8>, &mut Vec<u8>),
    mut push: impl FnMut(Cell<'a>),
) {
    rows.lists(kind, |list| {
        let Some(list) = list else {
            repetitions.push(0);
            return definitions.push(0);
        };
        let mut first = 0;
        for cell in list {
            repetitions.push(first);
            first = 1;
            definitions.push(match cell {
                Cell::Unset => 2,
                cell => {
                    push(cell);
                    3
                }
            });
        }
        if first == 0 {
            repetitions.push(0);
            definitions.push(1);
        }
    });
}

impl Values {
    #[inline]
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

/// A double or an interval as it is packed.
#[inline(always)]
fn bits(kind: Kind, word: u64) -> u64 {
    match kind {
        Kind::Interval => double(Cell::Interval(Interval::from_nanos(word as i64))),
        _ => word,
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
        Self::Numbers(D::default(), Series::new(numbers))
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
            let numbers = numbers.all();
            let bits = numbers.some().iter().map(|at| known.keys[*at as usize]);
            *self = Self::Full(bits.collect());
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
            for at in numbers.all().some() {
                texts.push_with(|bytes| write_addr(known.keys[*at as usize], bytes));
            }
            let numbers = mem::replace(numbers, Series::new(Vec::new()));
            spare.keep_numbers(numbers.into_memory());
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
            for at in numbers.all().some() {
                let text = known.texts.get(*at as usize);
                texts.push_with(|bytes| bytes.extend_from_slice(text));
            }
            let numbers = mem::replace(numbers, Series::new(Vec::new()));
            spare.keep_numbers(numbers.into_memory());
            *self = Self::Full(texts);
        }
    }
}
