//! The values of a column, collected for a row group.

use std::mem;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::BlockColumn;
use gannet_log::Cell;
use gannet_log::Kind;
use gannet_log::Type;

use super::BLOCK_ROWS;
use super::buffer_pool::BufferPool;
use super::dictionary::Dictionary;
use super::dictionary::TextDictionary;
use super::dictionary::Texts;
use super::encode::common_value;
use super::series::Series;
use crate::batch::plain;
use crate::batch::time;
use crate::schema::TimeUnit;

/// Values of a column with Parquet's definition and repetition levels.
pub(super) struct Column {
    kind: Kind,
    /// One level per row; in a list column one per element, and one for each null or empty list.
    pub(super) definition_levels: Series<u8>,
    /// Definition level of a value that is not null.
    pub(super) max_definition: u8,
    /// In a list column: 0 at the first element of a row, 1 at its other elements.
    pub(super) repetition_levels: Option<Vec<u8>>,
    pub(super) values: Values,
}

/// The values that are not null.
pub(super) enum Values {
    Bools(Series<u8>),
    Ints(Series<i64>),
    Ports(Series<i64>),
    Doubles(MaybeDictionary<Dictionary<u64>, Vec<u64>>),
    Times(Series<i64>, TimeUnit),
    Addrs(MaybeDictionary<Dictionary<u128>, Texts>),
    Texts(MaybeDictionary<TextDictionary, Texts>),
}

/// Values as indices into a dictionary, or plain if they hardly repeat.
pub(super) enum MaybeDictionary<D, V> {
    Dictionary(D, Series<u32>),
    Plain(V),
}

/// Expected length of a text, in bytes.
const TEXT_BYTES: usize = 20;
/// Minimum number of dictionary entries at which a dictionary is dropped before the row group ends.
const MIN_ENTRIES: usize = 400;

impl Column {
    /// An empty column with capacity for `rows` rows; `is_id` if nearly every row has a different value.
    pub(super) fn new(
        ty: Type,
        unit: TimeUnit,
        rows: usize,
        is_id: bool,
        pool: &mut BufferPool,
    ) -> Self {
        let kind = Kind::of(ty);
        let is_list = matches!(ty, Type::Set(_) | Type::Vector(_));
        let mut longs = || Series::new(pool.i64s(rows));
        let values = match kind {
            Kind::Bool => Values::Bools(Series::new(pool.bytes(rows))),
            Kind::Count | Kind::Int => Values::Ints(longs()),
            Kind::Port => Values::Ports(longs()),
            Kind::Time => Values::Times(longs(), unit),
            Kind::Double | Kind::Interval => Values::Doubles(MaybeDictionary::new(pool.u32s(rows))),
            Kind::Addr => Values::Addrs(MaybeDictionary::new(pool.u32s(rows))),
            Kind::Text if is_id => {
                Values::Texts(MaybeDictionary::Plain(pool.texts(rows, rows * TEXT_BYTES)))
            }
            Kind::Text => Values::Texts(MaybeDictionary::new(pool.u32s(rows))),
        };
        Self {
            kind,
            definition_levels: Series::new(pool.bytes(rows)),
            max_definition: if is_list { 3 } else { 1 },
            repetition_levels: is_list.then(|| pool.bytes(rows)),
            values,
        }
    }

    /// The required column of row numbers.
    pub(super) fn from_row_numbers(numbers: Vec<i64>) -> Self {
        Self {
            kind: Kind::Int,
            definition_levels: Series::new(Vec::new()),
            max_definition: 0,
            repetition_levels: None,
            values: Values::Ints(Series::new(numbers)),
        }
    }

    /// Returns the buffers to the pool.
    pub(super) fn recycle(self, pool: &mut BufferPool) {
        pool.put_bytes(self.definition_levels.into_buffer());
        self.repetition_levels.into_iter().for_each(|levels| pool.put_bytes(levels));
        match self.values {
            Values::Bools(all) => pool.put_bytes(all.into_buffer()),
            Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
                pool.put_i64s(all.into_buffer());
            }
            Values::Doubles(MaybeDictionary::Plain(_)) => {}
            Values::Addrs(MaybeDictionary::Plain(all))
            | Values::Texts(MaybeDictionary::Plain(all)) => {
                pool.put_texts(all);
            }
            Values::Doubles(MaybeDictionary::Dictionary(_, all))
            | Values::Addrs(MaybeDictionary::Dictionary(_, all))
            | Values::Texts(MaybeDictionary::Dictionary(_, all)) => {
                pool.put_u32s(all.into_buffer());
            }
        }
    }

    /// Appends the values of up to [`BLOCK_ROWS`] rows.
    pub(super) fn append(&mut self, rows: BlockColumn<'_, '_>) {
        // Values of a block are collected in arrays of this size.
        assert!(rows.len() <= BLOCK_ROWS, "{} rows in a block of {BLOCK_ROWS}", rows.len());
        let Self { kind, definition_levels, repetition_levels, values, .. } = self;
        if let Some(repetition_levels) = repetition_levels {
            if rows.is_unset() {
                definition_levels.push_same(0, rows.len());
                repetition_levels.resize(repetition_levels.len() + rows.len(), 0);
            } else {
                append_all_lists(*kind, rows, (definition_levels, repetition_levels), values);
            }
        } else if rows.is_unset() {
            definition_levels.push_same(0, rows.len());
        } else if rows.is_set() || rows.is_plain() && *kind == Kind::Text {
            definition_levels.push_same(1, rows.len());
            append_all(*kind, rows, values);
        } else {
            definition_levels.push_all(rows.are_set().map(u8::from));
            append_nullable(*kind, rows, values);
        }
    }

    /// Replaces a dictionary of more than [`MIN_ENTRIES`] entries by plain values if it saves nothing. The written
    /// bytes depend on the rows after which this is called.
    pub(super) fn drop_poor_dictionary(&mut self, pool: &mut BufferPool) {
        self.drop_dictionary_above(MIN_ENTRIES, pool);
    }

    /// Completes the column after its last row.
    pub(super) fn finish(&mut self, pool: &mut BufferPool) {
        self.drop_dictionary_above(0, pool);
    }

    /// Replaces a dictionary of more than `min_entries` entries by plain values if it saves nothing.
    fn drop_dictionary_above(&mut self, min_entries: usize, pool: &mut BufferPool) {
        match &mut self.values {
            Values::Doubles(to) => to.drop_poor_dictionary(min_entries),
            Values::Addrs(to) => to.drop_poor_dictionary(min_entries, pool),
            Values::Texts(to) => to.drop_poor_dictionary(min_entries, pool),
            _ => {}
        }
    }
}

/// Appends the values of rows without nulls.
fn append_all(kind: Kind, rows: BlockColumn<'_, '_>, values: &mut Values) {
    match values {
        Values::Bools(to) => append_words(rows, to, |word| word as u8),
        Values::Ints(to) if kind == Kind::Int => append_words(rows, to, |word| word as i64),
        Values::Ints(to) => append_words(rows, to, |word| int(Cell::Count(word))),
        Values::Ports(to) => append_words(rows, to, |word| port(Cell::Count(word))),
        Values::Times(to, unit) => {
            append_words(rows, to, |word| time(Cell::Time(Time::from_nanos(word as i64)), *unit));
        }
        Values::Doubles(MaybeDictionary::Plain(to)) => {
            to.extend(rows.words().map(|word| bits(kind, word)));
        }
        Values::Doubles(MaybeDictionary::Dictionary(dictionary, to)) => {
            append_words(rows, to, |word| dictionary.index(bits(kind, word)));
        }
        Values::Addrs(MaybeDictionary::Dictionary(dictionary, to)) => {
            append_addrs(rows, to, |addr| dictionary.index(addr));
        }
        Values::Addrs(MaybeDictionary::Plain(to)) => {
            rows.addrs(|addr| to.push_with(|bytes| gannet_log::write_addr(bytes, addr)));
        }
        Values::Texts(MaybeDictionary::Plain(to)) if rows.is_plain() => {
            rows.texts(|v| to.push_with(|bytes| plain(v, bytes)));
        }
        Values::Texts(MaybeDictionary::Plain(to)) => {
            rows.texts(|v| to.push_with(|bytes| gannet_log::column_text(v, bytes)));
        }
        Values::Texts(MaybeDictionary::Dictionary(dictionary, to)) => {
            append_texts(rows, dictionary, to);
        }
    }
}

/// Appends the values of rows of which some are null.
fn append_nullable(kind: Kind, rows: BlockColumn<'_, '_>, values: &mut Values) {
    let mut scratch = Vec::new();
    match values {
        Values::Bools(to) => append_nullable_words(rows, to, |word| word as u8),
        Values::Ints(to) if kind == Kind::Int => {
            append_nullable_words(rows, to, |word| word as i64);
        }
        Values::Ints(to) => append_nullable_words(rows, to, |word| int(Cell::Count(word))),
        Values::Ports(to) => append_nullable_words(rows, to, |word| port(Cell::Count(word))),
        Values::Doubles(MaybeDictionary::Dictionary(dictionary, to)) if rows.is_set_or_unset() => {
            append_nullable_words(rows, to, |word| dictionary.index(bits(kind, word)));
        }
        values => rows.cells(kind, |cell| match cell {
            Cell::Unset => {}
            cell => values.push(cell, &mut scratch),
        }),
    }
}

#[inline(always)]
fn append_nullable_words<T: Copy + PartialEq + Default>(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<T>,
    mut value: impl FnMut(u64) -> T,
) {
    let (mut values, mut at) = ([T::default(); BLOCK_ROWS], 0);
    for (word, is_set) in rows.words().zip(rows.are_set()) {
        if is_set {
            values[at % BLOCK_ROWS] = value(word);
            at += 1;
        }
    }
    to.push_all(values[..at.min(BLOCK_ROWS)].iter().copied());
}

#[inline(always)]
fn append_words<T: Copy + PartialEq>(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<T>,
    mut value: impl FnMut(u64) -> T,
) {
    match rows.common() {
        Some(word) => to.push_same(value(word), rows.len()),
        None => to.push_all(rows.words().map(value)),
    }
}

/// Appends the dictionary indices of addresses.
#[inline(always)]
fn append_addrs(
    rows: BlockColumn<'_, '_>,
    to: &mut Series<u32>,
    mut index: impl FnMut(u128) -> u32,
) {
    let (mut indices, mut at) = ([0; BLOCK_ROWS], 0);
    rows.addr_numbers(|addr| {
        indices[at % BLOCK_ROWS] = index(addr);
        at += 1;
    });
    push_indices(&indices[..at.min(BLOCK_ROWS)], to);
}

/// Appends the dictionary indices of texts. A row very often has the value of the previous row.
fn append_texts(rows: BlockColumn<'_, '_>, dictionary: &mut TextDictionary, to: &mut Series<u32>) {
    let is_plain = rows.is_plain();
    let mut scratch = Vec::new();
    let mut index = |v: &[u8]| {
        scratch.clear();
        text(if is_plain { Cell::Plain(v) } else { Cell::String(v) }, &mut scratch);
        dictionary.index(&scratch)
    };
    if let Some(word) = rows.common()
        && let Some(len) = BlockColumn::short(word)
    {
        let v = word.to_le_bytes();
        return to.push_same(index(v.get(..len).unwrap_or_default()), rows.len());
    }
    let mut last: (Option<&[u8]>, u32) = (None, 0);
    let (mut indices, mut at) = ([0; BLOCK_ROWS], 0);
    rows.texts(|v| {
        if !last.0.is_some_and(|last| texts_equal(last, v)) {
            last = (Some(v), index(v));
        }
        indices[at % BLOCK_ROWS] = last.1;
        at += 1;
    });
    push_indices(&indices[..at.min(BLOCK_ROWS)], to);
}

fn push_indices(indices: &[u32], to: &mut Series<u32>) {
    match common_value(indices) {
        Some(index) => to.push_same(index, indices.len()),
        None => to.push_all(indices.iter().copied()),
    }
}

fn append_all_lists(
    kind: Kind,
    rows: BlockColumn<'_, '_>,
    levels: (&mut Series<u8>, &mut Vec<u8>),
    values: &mut Values,
) {
    let mut scratch = Vec::new();
    match (kind, values) {
        (Kind::Text, Values::Texts(MaybeDictionary::Plain(to))) => {
            append_lists(Kind::Text, rows, levels, |cell| to.push_with(|bytes| text(cell, bytes)));
        }
        (Kind::Interval, Values::Doubles(MaybeDictionary::Dictionary(dictionary, to))) => {
            append_lists(Kind::Interval, rows, levels, |cell| {
                to.push(dictionary.index(double(cell)));
            });
        }
        (_, values) => append_lists(kind, rows, levels, |cell| values.push(cell, &mut scratch)),
    }
}

#[inline(always)]
fn append_lists<'a>(
    kind: Kind,
    rows: BlockColumn<'_, 'a>,
    (definition_levels, repetition_levels): (&mut Series<u8>, &mut Vec<u8>),
    mut push: impl FnMut(Cell<'a>),
) {
    rows.lists(kind, |list| {
        let Some(list) = list else {
            repetition_levels.push(0);
            return definition_levels.push(0);
        };
        let mut first = 0;
        for cell in list {
            repetition_levels.push(first);
            first = 1;
            definition_levels.push(match cell {
                Cell::Unset => 2,
                cell => {
                    push(cell);
                    3
                }
            });
        }
        if first == 0 {
            repetition_levels.push(0);
            definition_levels.push(1);
        }
    });
}

impl Values {
    #[inline]
    fn push(&mut self, cell: Cell<'_>, scratch: &mut Vec<u8>) {
        match self {
            Self::Bools(to) => to.push(u8::from(matches!(cell, Cell::Bool(true)))),
            Self::Ints(to) => to.push(int(cell)),
            Self::Ports(to) => to.push(port(cell)),
            Self::Doubles(to) => to.push(double(cell)),
            Self::Times(to, unit) => to.push(time(cell, *unit)),
            Self::Addrs(to) => to.push(cell),
            Self::Texts(to) => to.push(cell, scratch),
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

/// The bits of a double, from the word of a packed double or interval.
#[inline(always)]
fn bits(kind: Kind, word: u64) -> u64 {
    match kind {
        Kind::Interval => double(Cell::Interval(Interval::from_nanos(word as i64))),
        _ => word,
    }
}

/// Whether two texts are equal; does not call `memcmp` for short texts.
#[inline(always)]
fn texts_equal(a: &[u8], b: &[u8]) -> bool {
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

/// Whether more than half of the values are distinct, and more than `min_entries`.
fn is_poor(distinct: usize, values: usize, min_entries: usize) -> bool {
    distinct > min_entries && distinct * 2 > values
}

impl<D: Default, V> MaybeDictionary<D, V> {
    fn new(indices: Vec<u32>) -> Self {
        Self::Dictionary(D::default(), Series::new(indices))
    }
}

impl MaybeDictionary<Dictionary<u64>, Vec<u64>> {
    #[inline(always)]
    fn push(&mut self, bits: u64) {
        match self {
            Self::Dictionary(dictionary, indices) => indices.push(dictionary.index(bits)),
            Self::Plain(to) => to.push(bits),
        }
    }

    fn drop_poor_dictionary(&mut self, min_entries: usize) {
        if let Self::Dictionary(dictionary, indices) = self
            && is_poor(dictionary.keys.len(), indices.len(), min_entries)
        {
            let indices = indices.all();
            let bits = indices.representatives().iter().map(|at| dictionary.keys[*at as usize]);
            *self = Self::Plain(bits.collect());
        }
    }
}

impl MaybeDictionary<Dictionary<u128>, Texts> {
    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>) {
        let Cell::Addr(addr) = cell else { return };
        match self {
            Self::Dictionary(dictionary, indices) => {
                indices.push(dictionary.index(u128::from_be_bytes(addr.octets())));
            }
            Self::Plain(to) => to.push_with(|bytes| gannet_log::write_addr(bytes, addr)),
        }
    }

    fn drop_poor_dictionary(&mut self, min_entries: usize, pool: &mut BufferPool) {
        if let Self::Dictionary(dictionary, indices) = self
            && is_poor(dictionary.keys.len(), indices.len(), min_entries)
        {
            let mut texts = pool.texts(indices.len(), indices.len() * TEXT_BYTES);
            for at in indices.all().representatives() {
                texts.push_with(|bytes| write_addr(dictionary.keys[*at as usize], bytes));
            }
            let indices = mem::replace(indices, Series::new(Vec::new()));
            pool.put_u32s(indices.into_buffer());
            *self = Self::Plain(texts);
        }
    }
}

/// The text of an address from its octets.
pub(super) fn write_addr(octets: u128, out: &mut Vec<u8>) {
    gannet_log::write_addr(out, Addr::v6(octets.to_be_bytes()));
}

impl MaybeDictionary<TextDictionary, Texts> {
    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>, scratch: &mut Vec<u8>) {
        match self {
            Self::Dictionary(dictionary, indices) => {
                scratch.clear();
                text(cell, scratch);
                indices.push(dictionary.index(scratch));
            }
            Self::Plain(to) => to.push_with(|bytes| text(cell, bytes)),
        }
    }

    fn drop_poor_dictionary(&mut self, min_entries: usize, pool: &mut BufferPool) {
        if let Self::Dictionary(dictionary, indices) = self
            && is_poor(dictionary.texts.len(), indices.len(), min_entries)
        {
            let mut texts = pool.texts(indices.len(), indices.len() * TEXT_BYTES);
            for at in indices.all().representatives() {
                let text = dictionary.texts.get(*at as usize);
                texts.push_with(|bytes| bytes.extend_from_slice(text));
            }
            let indices = mem::replace(indices, Series::new(Vec::new()));
            pool.put_u32s(indices.into_buffer());
            *self = Self::Plain(texts);
        }
    }
}
