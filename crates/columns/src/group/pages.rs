//! Encoding of a column into the pages of a column chunk.

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
use super::column::MaybeDictionary;
use super::column::Values;
use super::column::write_addr;
use super::compress::CompressionChoice;
use super::compress::Compressors;
use super::compress::PageCompression;
use super::dictionary::Texts;
use super::encode::bit_width;
use super::encode::bools;
use super::encode::delta_binary_packed;
use super::encode::rle_bit_packed;
use super::series::Series;
use super::series::SeriesSlice;

/// Maximum number of rows in a page.
const MAX_ROWS: usize = 16 << 10;
/// Maximum number of rows in a page of a time column. It is smaller, because readers use the column index of time to
/// skip pages of all columns.
const MAX_TIME_ROWS: usize = 4 << 10;
/// Approximate maximum size of a page, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Encodes columns into pages, in reused buffers.
pub(super) struct PageEncoder {
    compressors: Compressors,
    /// The current page, not compressed.
    body: Vec<u8>,
    /// The current page, compressed.
    compressed: Vec<u8>,
    /// All pages of the current column.
    chunk: TrackedWrite<Vec<u8>>,
}

/// Options of a column chunk.
pub(super) struct ColumnOptions {
    pub(super) descr: ColumnDescPtr,
    pub(super) rows: usize,
    /// Whether the rows are sorted by this column.
    pub(super) is_sorted: bool,
    /// Whether it gets a Bloom filter.
    pub(super) bloom: bool,
    /// Whether the row group is the last one of its file.
    pub(super) is_last: bool,
}

/// Metadata of the pages written for a column.
#[derive(Default)]
struct WrittenPages {
    compression: PageCompression,
    encodings: Vec<PageEncodingStats>,
    compressed: u64,
    uncompressed: u64,
    offsets: OffsetIndexBuilder,
}

impl PageEncoder {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            compressors: Compressors::new()?,
            body: Vec::new(),
            compressed: Vec::new(),
            chunk: TrackedWrite::new(Vec::new()),
        })
    }

    /// Writes a column to a row group.
    pub(super) fn write<W: Write + Send>(
        &mut self,
        column: &Column,
        options: &ColumnOptions,
        choice: &mut CompressionChoice,
        to: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let ColumnOptions { descr, rows, is_sorted, bloom, .. } = options;
        let (rows, is_sorted, bloom) = (*rows, *is_sorted, *bloom);
        self.chunk.inner_mut().clear();
        let base = self.chunk.bytes_written() as i64;
        let (compression, mut sample) = choice.next(column.values.encoding(), options.is_last);
        let mut written = WrittenPages { compression, ..WrittenPages::default() };
        let dictionary = match self.encode_dictionary(&column.values) {
            0 => None,
            entries => {
                let encoding = Encoding::PLAIN;
                let page = |buf| Page::DictionaryPage {
                    buf,
                    num_values: entries as u32,
                    encoding,
                    is_sorted: false,
                };
                self.write_page(page, &mut written)?;
                Some(0)
            }
        };
        let first = self.chunk.bytes_written() as i64 - base;
        let is_time = matches!(column.values, Values::Times(..));
        let mut index = is_time.then(|| ColumnIndexBuilder::new(Type::INT64));
        let estimated_size = column.values.estimated_size();
        let max_page_rows = if is_time { MAX_TIME_ROWS } else { MAX_ROWS };
        let max_page_rows = max_page_rows.min((rows * MAX_BYTES / estimated_size.max(1)).max(1));
        let (mut levels, mut values) = (0, 0);
        for start in (0..rows).step_by(max_page_rows) {
            let page_rows = max_page_rows.min(rows - start);
            let page_levels = levels..column.levels_end(levels, page_rows);
            let non_null = column.non_null_count(page_levels.clone());
            let page_values = values..values + non_null;
            let encoding = self.encode_data(column, page_levels.clone(), page_values.clone());
            if mem::take(&mut sample) {
                let Self { compressors, body, compressed, .. } = self;
                compressors.sample(body, column.values.encoding(), compressed, choice)?;
            }
            let page = |buf| Page::DataPage {
                buf,
                num_values: page_levels.len() as u32,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let (offset, len) = self.write_page(page, &mut written)?;
            written.offsets.append_row_count(page_rows as i64);
            written.offsets.append_offset_and_size(offset as i64 - base, len as i32);
            if let (Some(index), Values::Times(times, _)) = (&mut index, &column.values) {
                let (min, max) = bounds(times.slice(page_values.clone()), is_sorted);
                let bytes = |v: Option<i64>| v.map_or(Vec::new(), |v| v.to_le_bytes().to_vec());
                let nulls = page_levels.len() - non_null;
                index.append(non_null == 0, bytes(min), bytes(max), nulls as i64);
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
            .set_compression_codec(compression.codec())
            .set_encodings(written.encodings())
            .set_page_encoding_stats(written.encodings)
            .set_total_compressed_size(written.compressed as i64)
            .set_total_uncompressed_size(written.uncompressed as i64)
            .set_num_values(levels as i64)
            .set_data_page_offset(first)
            .set_dictionary_page_offset(dictionary)
            .set_statistics(statistics(column, options, levels - values))
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
        // `append_column` requires a reader that owns its bytes; the buffer is reclaimed afterwards.
        let chunk = Bytes::from(mem::take(self.chunk.inner_mut()));
        to.append_column(&chunk, close)?;
        *self.chunk.inner_mut() = reclaim(chunk);
        Ok(())
    }

    /// Compresses `body`, writes it as a page and clears it. Returns the offset of the page in the chunk and its length
    /// in bytes, header included.
    fn write_page(
        &mut self,
        page: impl FnOnce(Bytes) -> Page,
        written: &mut WrittenPages,
    ) -> Result<(u64, usize), ParquetError> {
        let Self { compressors, body, compressed, chunk } = self;
        compressors.compress(written.compression, body, compressed)?;
        let shared = Bytes::from(mem::take(compressed));
        let page = CompressedPage::new(page(shared.clone()), body.len());
        let encoding = page.encoding();
        let spec = SerializedPageWriter::new(chunk).write_page(page)?;
        *compressed = reclaim(shared);
        written.compressed += spec.bytes_written;
        written.uncompressed += spec.uncompressed_size as u64;
        let stats = written.encodings.iter_mut();
        let mut stats = stats.filter(|s| s.page_type == spec.page_type && s.encoding == encoding);
        match stats.next() {
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

    /// Encodes the entries of a dictionary into `body`; returns their number, 0 if the values have no dictionary.
    fn encode_dictionary(&mut self, values: &Values) -> usize {
        let body = &mut self.body;
        body.clear();
        match values {
            Values::Doubles(MaybeDictionary::Dictionary(dictionary, _)) => {
                body.extend(dictionary.keys.iter().flat_map(|bits| bits.to_le_bytes()));
                dictionary.keys.len()
            }
            Values::Addrs(MaybeDictionary::Dictionary(dictionary, _)) => {
                for octets in &dictionary.keys {
                    let start = body.len() + 4;
                    body.extend_from_slice(&[0; 4]);
                    write_addr(*octets, body);
                    let len = (body.len() - start) as u32;
                    body[start - 4..start].copy_from_slice(&len.to_le_bytes());
                }
                dictionary.keys.len()
            }
            Values::Texts(MaybeDictionary::Dictionary(dictionary, _)) => {
                for text in dictionary.texts.iter() {
                    body.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    body.extend_from_slice(text);
                }
                dictionary.texts.len()
            }
            _ => 0,
        }
    }

    /// Encodes levels and values of a data page into `body`.
    fn encode_data(
        &mut self,
        column: &Column,
        levels: Range<usize>,
        values: Range<usize>,
    ) -> Encoding {
        let body = &mut self.body;
        let Column { repetition_levels, definition_levels, max_definition, .. } = column;
        if let Some(repetition_levels) = repetition_levels {
            let levels = SeriesSlice::Slice(&repetition_levels[levels.clone()]);
            with_length_prefix(body, |body| rle_bit_packed(levels, 1, body));
        }
        if *max_definition > 0 {
            let width = bit_width(u64::from(*max_definition));
            with_length_prefix(body, |body| {
                rle_bit_packed(definition_levels.slice(levels), width, body);
            });
        }
        if values.is_empty() {
            return Encoding::PLAIN;
        }
        let mut encode_indices = |entries: usize, indices: &Series<u32>| {
            let width = bit_width(entries as u64 - 1);
            body.push(width as u8);
            rle_bit_packed(indices.slice(values.clone()), width, body);
        };
        match &column.values {
            Values::Bools(all) => bools(all.slice(values), body),
            Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
                delta_binary_packed(all.slice(values), body);
            }
            Values::Doubles(MaybeDictionary::Plain(all)) => {
                body.extend(all[values].iter().flat_map(|bits| bits.to_le_bytes()));
            }
            Values::Addrs(MaybeDictionary::Plain(all))
            | Values::Texts(MaybeDictionary::Plain(all)) => {
                delta_length_byte_array(all, values, body);
            }
            Values::Doubles(MaybeDictionary::Dictionary(dictionary, all)) => {
                encode_indices(dictionary.keys.len(), all);
            }
            Values::Addrs(MaybeDictionary::Dictionary(dictionary, all)) => {
                encode_indices(dictionary.keys.len(), all);
            }
            Values::Texts(MaybeDictionary::Dictionary(dictionary, all)) => {
                encode_indices(dictionary.texts.len(), all);
            }
        }
        column.values.encoding()
    }
}

impl WrittenPages {
    /// Distinct encodings of the pages and of the levels.
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

/// Recovers the buffer of `shared`, which has no other owner left, without a copy.
fn reclaim(mut shared: Bytes) -> Vec<u8> {
    shared.clear();
    shared.into()
}

/// Appends texts: all lengths, then all bytes (`DELTA_LENGTH_BYTE_ARRAY`).
fn delta_length_byte_array(all: &Texts, values: Range<usize>, body: &mut Vec<u8>) {
    let ends = &all.ends[values.clone()];
    let start = if values.start == 0 { 0 } else { all.ends[values.start - 1] };
    let mut before = start;
    let lengths: Vec<_> =
        ends.iter().map(|end| i64::from(end - mem::replace(&mut before, *end))).collect();
    delta_binary_packed(SeriesSlice::Slice(&lengths), body);
    body.extend_from_slice(&all.bytes[start as usize..before as usize]);
}

/// Appends what `write` appends, prefixed with its length.
fn with_length_prefix(body: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = body.len() + 4;
    body.extend_from_slice(&[0; 4]);
    write(body);
    let len = (body.len() - start) as u32;
    body[start - 4..start].copy_from_slice(&len.to_le_bytes());
}

impl Column {
    /// End index of the levels of `rows` rows whose levels begin at index `start`.
    fn levels_end(&self, start: usize, rows: usize) -> usize {
        let Some(repetition_levels) = &self.repetition_levels else { return start + rows };
        let row_starts =
            repetition_levels[start..].iter().enumerate().filter(|(_, level)| **level == 0);
        row_starts.map(|(at, _)| start + at).nth(rows).unwrap_or(repetition_levels.len())
    }

    /// Number of values that are not null in a range of levels.
    fn non_null_count(&self, levels: Range<usize>) -> usize {
        if self.max_definition == 0 {
            return levels.len();
        }
        let is_non_null = |level: &u8| usize::from(*level == self.max_definition);
        match self.definition_levels.slice(levels) {
            SeriesSlice::Constant(level, times) => is_non_null(&level) * times,
            SeriesSlice::Slice(levels) => levels.iter().map(is_non_null).sum(),
        }
    }

    /// Builds the Bloom filter of a text or address column.
    fn bloom_filter(&self) -> Option<Sbbf> {
        let mut filter;
        match &self.values {
            Values::Addrs(MaybeDictionary::Plain(all))
            | Values::Texts(MaybeDictionary::Plain(all)) => {
                filter = Filter::new(all.len());
                all.iter().for_each(|text| filter.insert(text));
            }
            Values::Texts(MaybeDictionary::Dictionary(dictionary, _)) => {
                filter = Filter::new(dictionary.texts.len());
                dictionary.texts.iter().for_each(|text| filter.insert(text));
            }
            Values::Addrs(MaybeDictionary::Dictionary(dictionary, _)) => {
                filter = Filter::new(dictionary.keys.len());
                let mut text = Vec::new();
                for octets in &dictionary.keys {
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
    /// Encoding of the data pages.
    fn encoding(&self) -> Encoding {
        match self {
            Self::Bools(_) | Self::Doubles(MaybeDictionary::Plain(_)) => Encoding::PLAIN,
            Self::Ints(_) | Self::Ports(_) | Self::Times(..) => Encoding::DELTA_BINARY_PACKED,
            Self::Addrs(MaybeDictionary::Plain(_)) | Self::Texts(MaybeDictionary::Plain(_)) => {
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
            Self::Doubles(MaybeDictionary::Dictionary(..))
            | Self::Addrs(MaybeDictionary::Dictionary(..))
            | Self::Texts(MaybeDictionary::Dictionary(..)) => Encoding::RLE_DICTIONARY,
        }
    }

    /// Approximate size of the encoded values, in bytes.
    fn estimated_size(&self) -> usize {
        match self {
            Self::Bools(all) => all.len() / 8,
            Self::Ints(all) | Self::Ports(all) | Self::Times(all, _) => all.len() * 8,
            Self::Doubles(MaybeDictionary::Plain(all)) => all.len() * 8,
            Self::Addrs(MaybeDictionary::Plain(all)) | Self::Texts(MaybeDictionary::Plain(all)) => {
                all.bytes.len()
            }
            Self::Doubles(MaybeDictionary::Dictionary(_, all))
            | Self::Addrs(MaybeDictionary::Dictionary(_, all))
            | Self::Texts(MaybeDictionary::Dictionary(_, all)) => all.len() * 4,
        }
    }
}

/// Statistics of a column chunk: the number of nulls, and the bounds of booleans and numbers.
fn statistics(column: &Column, options: &ColumnOptions, null_count: usize) -> Statistics {
    let bounds_of = |all: &Series<i64>| bounds(all.all(), options.is_sorted);
    let null_count = Some(null_count as u64);
    match &column.values {
        Values::Bools(all) => {
            let (min, max) = bounds(all.all(), false);
            let is = |v: Option<u8>| v.map(|v| v != 0);
            Statistics::boolean(is(min), is(max), None, null_count, false)
        }
        Values::Ports(all) if options.descr.physical_type() == Type::INT32 => {
            let (min, max) = bounds_of(all);
            let narrow = |v: Option<i64>| v.map(|v| v as i32);
            Statistics::int32(narrow(min), narrow(max), None, null_count, false)
        }
        Values::Ints(all) | Values::Ports(all) | Values::Times(all, _) => {
            let (min, max) = bounds_of(all);
            Statistics::int64(min, max, None, null_count, false)
        }
        Values::Doubles(all) => {
            let bits = match all {
                MaybeDictionary::Dictionary(dictionary, _) => &dictionary.keys,
                MaybeDictionary::Plain(all) => all,
            };
            let doubles = bits.iter().map(|bits| f64::from_bits(*bits)).filter(|v| !v.is_nan());
            let (min, max) =
                doubles.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (v.min(a), v.max(b)));
            let is_known = min <= max;
            // The order of -0.0 and 0.0 is undefined, so a bound of zero includes both.
            let min = if min == 0.0 { -0.0 } else { min };
            let max = if max == 0.0 { 0.0 } else { max };
            let bound = |v: f64| is_known.then_some(v);
            Statistics::double(bound(min), bound(max), None, null_count, false)
        }
        Values::Addrs(_) | Values::Texts(_) => {
            Statistics::byte_array(None, None, None, null_count, false)
        }
    }
}

/// Minimum and maximum; `None` if there are no values.
fn bounds<T: Copy + Ord>(all: SeriesSlice<'_, T>, is_sorted: bool) -> (Option<T>, Option<T>) {
    let all = all.representatives();
    if is_sorted {
        return (all.first().copied(), all.last().copied());
    }
    let Some(first) = all.first() else { return (None, None) };
    let (min, max) = all.iter().fold((*first, *first), |(a, b), v| (a.min(*v), b.max(*v)));
    (Some(min), Some(max))
}
