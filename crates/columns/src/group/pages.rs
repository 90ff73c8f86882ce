//! The pages of a column.

use std::io::Write;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::BoundaryOrder;
use parquet::basic::Encoding;
use parquet::basic::Type;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::CompressedPage;
use parquet::column::page::Page;
use parquet::column::page::PageWriter;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::metadata::ColumnIndexBuilder;
use parquet::file::metadata::OffsetIndexBuilder;
use parquet::file::metadata::PageEncodingStats;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedPageWriter;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::file::writer::TrackedWrite;
use parquet::schema::types::ColumnDescPtr;

use super::bloom::Filter;
use super::column::Column;
use super::column::Numbered;
use super::column::Values;
use super::column::write_addr;
use super::compress::Choice;
use super::compress::Compressors;
use super::compress::PageCompression;
use super::dictionary::Texts;
use super::encode::bits;
use super::encode::delta;
use super::encode::hybrid;
use super::encode::width_of;
use super::series::Part;
use super::series::Series;

/// Rows of a page at the most.
const ROWS: usize = 16 << 10;
/// The same of points in time, by whose pages readers skip those of other columns.
const TIME_ROWS: usize = 4 << 10;
/// About as many bytes has a page at the most.
const BYTES: usize = 1 << 20;
/// Makes pages of columns, in memory that it keeps.
pub(super) struct Pages {
    compressors: Compressors,
    /// A page before it is compressed, and after that.
    body: Vec<u8>,
    compressed: Vec<u8>,
    /// The pages of a column.
    chunk: TrackedWrite<Vec<u8>>,
}

/// What is written of a column.
pub(super) struct ColumnPlan {
    pub(super) descr: ColumnDescPtr,
    pub(super) rows: usize,
    /// Whether rows are sorted by it.
    pub(super) is_sorted: bool,
    pub(super) bloom: bool,
    /// Whether no row group follows.
    pub(super) is_last: bool,
}

/// The pages written of a column.
#[derive(Default)]
struct Written {
    way: PageCompression,
    encodings: Vec<PageEncodingStats>,
    compressed: u64,
    uncompressed: u64,
    offsets: OffsetIndexBuilder,
}

impl Pages {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            compressors: Compressors::new()?,
            body: Vec::new(),
            compressed: Vec::new(),
            chunk: TrackedWrite::new(Vec::new()),
        })
    }

    /// Writes all of a column to a row group.
    pub(super) fn write<W: Write + Send>(
        &mut self,
        column: &Column,
        wanted: &ColumnPlan,
        choice: &mut Choice,
        to: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let ColumnPlan { descr, rows, is_sorted, bloom, .. } = wanted;
        let (rows, is_sorted, bloom) = (*rows, *is_sorted, *bloom);
        self.chunk.inner_mut().clear();
        let base = self.chunk.bytes_written() as i64;
        let (way, mut looks) = choice.next(column.values.encoding(), wanted.is_last);
        let mut written = Written { way, ..Written::default() };
        let dictionary = match self.dictionary(&column.values) {
            0 => None,
            entries => {
                let encoding = Encoding::PLAIN;
                let page = |buf| Page::DictionaryPage {
                    buf,
                    num_values: entries as u32,
                    encoding,
                    is_sorted: false,
                };
                self.page(page, &mut written)?;
                Some(0)
            }
        };
        let first = self.chunk.bytes_written() as i64 - base;
        let is_time = matches!(column.values, Values::Times(..));
        let mut index = is_time.then(|| ColumnIndexBuilder::new(Type::INT64));
        let size = column.values.size();
        let most = if is_time { TIME_ROWS } else { ROWS };
        let most = most.min((rows * BYTES / size.max(1)).max(1));
        let (mut levels, mut values) = (0, 0);
        for start in (0..rows).step_by(most) {
            let page_rows = most.min(rows - start);
            let page_levels = levels..column.end(levels, page_rows);
            let there = column.there(page_levels.clone());
            let page_values = values..values + there;
            let encoding = self.data(column, page_levels.clone(), page_values.clone());
            if mem::take(&mut looks) {
                let Self { compressors, body, compressed, .. } = self;
                compressors.look(body, column.values.encoding(), compressed, choice)?;
            }
            let page = |buf| Page::DataPage {
                buf,
                num_values: page_levels.len() as u32,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let (offset, len) = self.page(page, &mut written)?;
            written.offsets.append_row_count(page_rows as i64);
            written.offsets.append_offset_and_size(offset as i64 - base, len as i32);
            if let (Some(index), Values::Times(times, _)) = (&mut index, &column.values) {
                let (least, greatest) = bounds(times.part(page_values.clone()), is_sorted);
                let bytes = |v: Option<i64>| v.map_or(Vec::new(), |v| v.to_le_bytes().to_vec());
                let nulls = page_levels.len() - there;
                index.append(there == 0, bytes(least), bytes(greatest), nulls as i64);
            }
            (levels, values) = (page_levels.end, page_values.end);
        }
        if let Some(index) = &mut index {
            index.set_boundary_order(match is_sorted {
                true => BoundaryOrder::ASCENDING,
                false => BoundaryOrder::UNORDERED,
            });
        }
        let metadata = ColumnChunkMetaData::builder(Arc::clone(descr))
            .set_compression_codec(way.codec())
            .set_encodings(written.encodings())
            .set_page_encoding_stats(written.encodings)
            .set_total_compressed_size(written.compressed as i64)
            .set_total_uncompressed_size(written.uncompressed as i64)
            .set_num_values(levels as i64)
            .set_data_page_offset(first)
            .set_dictionary_page_offset(dictionary)
            .set_statistics(statistics(column, wanted, levels - values))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: written.compressed,
            rows_written: rows as u64,
            metadata,
            bloom_filter: if bloom { column.bloom_filter() } else { None },
            column_index: index.map(ColumnIndexBuilder::build).transpose()?,
            offset_index: Some(written.offsets.build()),
        };
        self.chunk.flush()?;
        // The reader of a chunk owns it, so it is lent.
        let chunk = Bytes::from(mem::take(self.chunk.inner_mut()));
        to.append_column(&chunk, close)?;
        *self.chunk.inner_mut() = memory_of(chunk);
        Ok(())
    }

    /// Compresses what is in `body` and writes it. Returns where it begins and its length with its header.
    fn page(
        &mut self,
        page: impl FnOnce(Bytes) -> Page,
        written: &mut Written,
    ) -> Result<(u64, usize), ParquetError> {
        let Self { compressors, body, compressed, chunk } = self;
        compressors.compress(written.way, body, compressed)?;
        let lent = Bytes::from(mem::take(compressed));
        let page = CompressedPage::new(page(lent.clone()), body.len());
        let encoding = page.encoding();
        let spec = SerializedPageWriter::new(chunk).write_page(page)?;
        *compressed = memory_of(lent);
        written.compressed += spec.bytes_written;
        written.uncompressed += spec.uncompressed_size as u64;
        let known = written.encodings.iter_mut();
        let mut known = known.filter(|s| s.page_type == spec.page_type && s.encoding == encoding);
        match known.next() {
            Some(stats) => stats.count += 1,
            None => written.encodings.push(PageEncodingStats {
                page_type: spec.page_type,
                encoding,
                count: 1,
            }),
        }
        body.clear();
        Ok((spec.offset, spec.bytes_written as usize))
    }

    /// Puts the entries of a dictionary into `body`; returns their number.
    fn dictionary(&mut self, values: &Values) -> usize {
        let body = &mut self.body;
        body.clear();
        match values {
            Values::Doubles(Numbered::Numbers(known, _)) => {
                body.extend(known.keys.iter().flat_map(|bits| bits.to_le_bytes()));
                known.keys.len()
            }
            Values::Addrs(Numbered::Numbers(known, _)) => {
                for octets in &known.keys {
                    let start = body.len() + 4;
                    body.extend_from_slice(&[0; 4]);
                    write_addr(*octets, body);
                    let len = (body.len() - start) as u32;
                    body[start - 4..start].copy_from_slice(&len.to_le_bytes());
                }
                known.keys.len()
            }
            Values::Texts(Numbered::Numbers(known, _)) => {
                for text in known.texts.iter() {
                    body.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    body.extend_from_slice(text);
                }
                known.texts.len()
            }
            _ => 0,
        }
    }

    /// Puts levels and values into `body`.
    fn data(&mut self, column: &Column, levels: Range<usize>, values: Range<usize>) -> Encoding {
        let body = &mut self.body;
        let Column { repetitions, definitions, most, .. } = column;
        if let Some(repetitions) = repetitions {
            let some = Part::All(&repetitions[levels.clone()]);
            with_length(body, |body| hybrid(some, 1, body));
        }
        if *most > 0 {
            let width = width_of(u64::from(*most));
            with_length(body, |body| hybrid(definitions.part(levels), width, body));
        }
        if values.is_empty() {
            return Encoding::PLAIN;
        }
        let mut numbers = |entries: usize, numbers: &Series<u32>| {
            let width = width_of(entries as u64 - 1);
            body.push(width as u8);
            hybrid(numbers.part(values.clone()), width, body);
        };
        match &column.values {
            Values::Bools(all) => bits(all.part(values), body),
            Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
                delta(all.part(values), body);
            }
            Values::Doubles(Numbered::Full(all)) => {
                body.extend(all[values].iter().flat_map(|bits| bits.to_le_bytes()));
            }
            Values::Addrs(Numbered::Full(all)) | Values::Texts(Numbered::Full(all)) => {
                texts(all, values, body);
            }
            Values::Doubles(Numbered::Numbers(known, all)) => numbers(known.keys.len(), all),
            Values::Addrs(Numbered::Numbers(known, all)) => numbers(known.keys.len(), all),
            Values::Texts(Numbered::Numbers(known, all)) => numbers(known.texts.len(), all),
        }
        column.values.encoding()
    }
}

impl Written {
    /// Those of pages and that of levels.
    fn encodings(&self) -> Vec<Encoding> {
        let mut all = vec![Encoding::RLE];
        for stats in &self.encodings {
            if !all.contains(&stats.encoding) {
                all.push(stats.encoding);
            }
        }
        all
    }
}

/// The memory of bytes that were lent; they are not copied back.
fn memory_of(mut lent: Bytes) -> Vec<u8> {
    lent.clear();
    lent.into()
}

/// Lengths, packed, and the bytes.
fn texts(all: &Texts, values: Range<usize>, body: &mut Vec<u8>) {
    let ends = &all.ends[values.clone()];
    let start = if values.start == 0 { 0 } else { all.ends[values.start - 1] };
    let mut before = start;
    let lengths: Vec<_> =
        ends.iter().map(|end| i64::from(end - mem::replace(&mut before, *end))).collect();
    delta(Part::All(&lengths), body);
    body.extend_from_slice(&all.bytes[start as usize..before as usize]);
}

/// Writes something with its length before it.
fn with_length(body: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = body.len() + 4;
    body.extend_from_slice(&[0; 4]);
    write(body);
    let len = (body.len() - start) as u32;
    body[start - 4..start].copy_from_slice(&len.to_le_bytes());
}

impl Column {
    /// The end of the levels of some rows that begin at `start`.
    fn end(&self, start: usize, rows: usize) -> usize {
        let Some(repetitions) = &self.repetitions else { return start + rows };
        let begins = repetitions[start..].iter().enumerate().filter(|(_, level)| **level == 0);
        begins.map(|(at, _)| start + at).nth(rows).unwrap_or(repetitions.len())
    }

    /// How many values some levels have.
    fn there(&self, levels: Range<usize>) -> usize {
        if self.most == 0 {
            return levels.len();
        }
        let is_there = |level: &u8| usize::from(*level == self.most);
        match self.definitions.part(levels) {
            Part::Same(level, times) => is_there(&level) * times,
            Part::All(levels) => levels.iter().map(is_there).sum(),
        }
    }

    /// Rules out most values that do not exist.
    fn bloom_filter(&self) -> Option<Sbbf> {
        let mut filter;
        match &self.values {
            Values::Addrs(Numbered::Full(all)) | Values::Texts(Numbered::Full(all)) => {
                filter = Filter::new(all.len());
                all.iter().for_each(|text| filter.insert(text));
            }
            Values::Texts(Numbered::Numbers(known, _)) => {
                filter = Filter::new(known.texts.len());
                known.texts.iter().for_each(|text| filter.insert(text));
            }
            Values::Addrs(Numbered::Numbers(known, _)) => {
                filter = Filter::new(known.keys.len());
                let mut text = Vec::new();
                for octets in &known.keys {
                    text.clear();
                    write_addr(*octets, &mut text);
                    filter.insert(&text);
                }
            }
            _ => return None,
        }
        Some(filter.finish())
    }
}

impl Values {
    /// How they are encoded.
    fn encoding(&self) -> Encoding {
        match self {
            Self::Bools(_) | Self::Doubles(Numbered::Full(_)) => Encoding::PLAIN,
            Self::Ints(_) | Self::Ports(_) | Self::Times(..) => Encoding::DELTA_BINARY_PACKED,
            Self::Addrs(Numbered::Full(_)) | Self::Texts(Numbered::Full(_)) => {
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
            Self::Doubles(Numbered::Numbers(..))
            | Self::Addrs(Numbered::Numbers(..))
            | Self::Texts(Numbered::Numbers(..)) => Encoding::RLE_DICTIONARY,
        }
    }

    /// About as many bytes do they take.
    fn size(&self) -> usize {
        match self {
            Self::Bools(all) => all.len() / 8,
            Self::Ints(all) | Self::Ports(all) | Self::Times(all, _) => all.len() * 8,
            Self::Doubles(Numbered::Full(all)) => all.len() * 8,
            Self::Addrs(Numbered::Full(all)) | Self::Texts(Numbered::Full(all)) => all.bytes.len(),
            Self::Doubles(Numbered::Numbers(_, all))
            | Self::Addrs(Numbered::Numbers(_, all))
            | Self::Texts(Numbered::Numbers(_, all)) => all.len() * 4,
        }
    }
}

/// How many are missing, and the bounds of numbers.
fn statistics(column: &Column, wanted: &ColumnPlan, missing: usize) -> Statistics {
    let bounds_of = |all: &Series<i64>| bounds(all.all(), wanted.is_sorted);
    let missing = Some(missing as u64);
    match &column.values {
        Values::Bools(all) => {
            let (least, greatest) = bounds(all.all(), false);
            let is = |v: Option<u8>| v.map(|v| v != 0);
            Statistics::boolean(is(least), is(greatest), None, missing, false)
        }
        Values::Ports(all) if wanted.descr.physical_type() == Type::INT32 => {
            let (least, greatest) = bounds_of(all);
            let narrow = |v: Option<i64>| v.map(|v| v as i32);
            Statistics::int32(narrow(least), narrow(greatest), None, missing, false)
        }
        Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
            let (least, greatest) = bounds_of(all);
            Statistics::int64(least, greatest, None, missing, false)
        }
        Values::Doubles(all) => {
            let bits = match all {
                Numbered::Numbers(known, _) => &known.keys,
                Numbered::Full(all) => all,
            };
            let doubles = bits.iter().map(|bits| f64::from_bits(*bits)).filter(|v| !v.is_nan());
            let (least, greatest) =
                doubles.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (v.min(a), v.max(b)));
            let is_known = least <= greatest;
            // The order of -0.0 and 0.0 is undefined, so a bound of zero includes both.
            let least = if least == 0.0 { -0.0 } else { least };
            let greatest = if greatest == 0.0 { 0.0 } else { greatest };
            let known = |v: f64| is_known.then_some(v);
            Statistics::double(known(least), known(greatest), None, missing, false)
        }
        Values::Addrs(_) | Values::Texts(_) => {
            Statistics::byte_array(None, None, None, missing, false)
        }
    }
}

/// The least and the greatest.
fn bounds<T: Copy + Ord>(all: Part<'_, T>, is_sorted: bool) -> (Option<T>, Option<T>) {
    let all = all.some();
    if is_sorted {
        return (all.first().copied(), all.last().copied());
    }
    let Some(first) = all.first() else { return (None, None) };
    let (least, greatest) = all.iter().fold((*first, *first), |(a, b), v| (a.min(*v), b.max(*v)));
    (Some(least), Some(greatest))
}
