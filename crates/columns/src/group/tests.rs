//! Files written by gannet are read by the `parquet` crate and compared with Arrow arrays.

use std::fs;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use arrow_array::Array;
use arrow_array::Int64Array;
use arrow_array::RecordBatch;
use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::Cell;
use gannet_log::Cells;
use gannet_log::Kind;
use gannet_log::PackedRows;
use gannet_log::RowPacker;
use gannet_log::Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::metadata::ParquetMetaDataReader;
use proptest::prelude::*;

use super::*;
use crate::batch::Batch;
use crate::parquet_file::FileDescription;
use crate::parquet_file::ParquetFile;

const UNIT: TimeUnit = TimeUnit::Microseconds;

fn field(name: &'static str, ty: Type) -> Field {
    Field { name, ty, doc: "", optional: true }
}

fn fields() -> Vec<Field> {
    vec![
        field("ts", Type::Scalar("time")),
        field("uid", Type::Scalar("string")),
        field("id.orig_h", Type::Scalar("addr")),
        field("id.orig_p", Type::Scalar("port")),
        field("name", Type::Scalar("string")),
        field("span", Type::Scalar("interval")),
        field("is", Type::Scalar("bool")),
        field("n", Type::Scalar("count")),
        field("i", Type::Scalar("int")),
        field("d", Type::Scalar("double")),
        field("names", Type::Set("string")),
        field("hosts", Type::Vector("addr")),
        field("spans", Type::Vector("interval")),
        field("bools", Type::Vector("bool")),
    ]
}

/// A temporary file, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gannet-group-{}-{next}.parquet", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn metadata(&self) -> ParquetMetaData {
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
        reader.parse_and_finish(&File::open(&self.0).unwrap()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The offset and the length-prefixed bytes of each row in a buffer.
fn rows_of(bytes: &[u8]) -> Vec<(i64, &[u8])> {
    let base = bytes.as_ptr() as usize;
    let with_prefix = |row: &[u8]| {
        let at = row.as_ptr() as usize - base;
        (at as i64, &bytes[at - size_of::<u32>()..at + row.len()])
    };
    PackedRows::new(bytes).map(with_prefix).collect()
}

/// The number of a row.
fn number(group: usize, offset: i64) -> i64 {
    group as i64 + offset
}

/// Writes row groups of `rows_of_group` rows each, sorted by time or not.
fn write(fields: &[Field], bytes: &[u8], rows_of_group: usize, by_time: bool) -> Scratch {
    let scratch = Scratch::new();
    let description = FileDescription { name: "test", fields, unit: UNIT, opened: 0 };
    let mut file = ParquetFile::create(&scratch.0, description).unwrap();
    let mut context = GroupContext::new().unwrap();
    for (at, some) in rows_of(bytes).chunks(rows_of_group).enumerate() {
        let mut group = Group::new(fields, UNIT, some.len() / 2, &mut context);
        // Append the rows in pieces of several lengths.
        for piece in some.chunks(1 + rows_of_group % 700) {
            let bytes: Vec<u8> = piece.iter().flat_map(|(_, row)| row.iter().copied()).collect();
            group.append(&bytes, piece.iter().map(|(offset, _)| number(at, *offset)), &mut context);
        }
        let is_last = (at + 1) * rows_of_group >= rows_of(bytes).len();
        file.write(group, GroupOptions { by_time, is_last }, &mut context).unwrap();
    }
    file.finish(0).unwrap();
    scratch
}

fn read(scratch: &Scratch) -> RecordBatch {
    let file = File::open(&scratch.0).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let mut batches = reader.with_batch_size(1 << 20).build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    batch
}

/// The rows as an Arrow record batch.
fn arrays(fields: &[Field], bytes: &[u8]) -> RecordBatch {
    let mut batch = Batch::new(fields, UNIT, 0);
    PackedRows::new(bytes).for_each(|row| batch.push(row));
    batch.finish().unwrap()
}

/// The time of a row in microseconds; `i64::MIN` if it is unset.
fn row_time(row: &[u8]) -> i64 {
    match Cells::new(&row[size_of::<u32>()..]).scalar(Kind::Time) {
        Cell::Time(t) => t.as_nanos() / 1_000,
        _ => i64::MIN,
    }
}

fn check(fields: &[Field], bytes: &[u8], rows_of_group: usize) {
    for by_time in [false, true] {
        let scratch = write(fields, bytes, rows_of_group, by_time);
        let (mut sorted, mut numbers) = (Vec::new(), Vec::new());
        for (at, some) in rows_of(bytes).chunks(rows_of_group).enumerate() {
            let mut some = some.to_vec();
            if by_time {
                some.sort_by_key(|(_, row)| row_time(row));
            }
            sorted.extend(some.iter().flat_map(|(_, row)| row.iter().copied()));
            numbers.extend(some.iter().map(|(offset, _)| number(at, *offset)));
        }
        let (found, expected) = (read(&scratch), arrays(fields, &sorted));
        assert_eq!(found.num_columns(), expected.num_columns() + 1);
        for (at, field) in fields.iter().enumerate() {
            assert_eq!(found.column(at).to_data(), expected.column(at).to_data(), "{}", field.name);
        }
        let found = found.column(fields.len()).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(*found.values(), numbers);
    }
}

/// A number from a small range, from the full range, or a limit of it.
fn any_number() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0_i64..5, any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
}

#[derive(Clone, Debug)]
struct Row(Vec<Option<(i64, Vec<u8>)>>);

fn row() -> impl Strategy<Value = Row> {
    let text = prop_oneof![Just(b"same".to_vec()), proptest::collection::vec(0_u8.., 0..30)];
    proptest::collection::vec(proptest::option::weighted(0.8, (any_number(), text)), 14)
        .prop_map(Row)
}

fn pack(row: &Row, packer: &mut RowPacker) {
    packer.begin();
    let host = |v: i64| Cell::Addr(Addr::v4((v as u32).to_be_bytes()));
    for (at, value) in row.0.iter().enumerate() {
        let Some((v, text)) = value else {
            packer.push(&Cell::Unset);
            continue;
        };
        let (v, few) = (*v, (*v as u64 % 4) as usize);
        match at {
            0 => packer.push(&Cell::Time(Time::from_nanos(v))),
            1 => packer.push(&Cell::String(text)),
            2 => packer.push(&host(v)),
            3 => packer.push(&Cell::Count(v as u64 & 0xffff)),
            4 if few > 1 => packer.push(&Cell::Plain(b"plain")),
            4 => packer.push(&Cell::String(text)),
            5 => packer.push(&Cell::Interval(Interval::from_nanos(v))),
            6 => packer.push(&Cell::Bool(v > 2)),
            7 => packer.push(&Cell::Count(v as u64)),
            8 => packer.push(&Cell::Int(v)),
            9 => packer.push(&Cell::Double(f64::from_bits(v as u64))),
            list => {
                packer.push_list(few);
                for n in 0..few {
                    packer.push(&match (list, n) {
                        (_, 1) => Cell::Unset,
                        (10, _) => Cell::String(text),
                        (11, _) => host(v),
                        (12, _) => Cell::Interval(Interval::from_nanos(v)),
                        _ => Cell::Bool(n == 0),
                    });
                }
            }
        }
    }
    packer.end();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random rows, each repeated, so that runs and several blocks occur.
    #[test]
    fn rows_round_trip(
        rows in proptest::collection::vec((row(), 1_usize..400), 1..24),
        rows_of_group in 1_usize..3_000,
    ) {
        let mut packer = RowPacker::default();
        for (row, times) in &rows {
            (0..*times).for_each(|_| pack(row, &mut packer));
        }
        check(&fields(), packer.rows(), rows_of_group);
    }
}

/// Rows for several pages, with dictionaries that are dropped late, and with values that never repeat.
fn many_rows(rows: i64) -> RowPacker {
    let mut packer = RowPacker::default();
    for n in 0..rows {
        let text = if n > rows / 4 { n.to_string().into_bytes() } else { b"same".to_vec() };
        let value = |v: i64| Some((v, text.clone()));
        let mut row = vec![value(n); 14];
        row[3] = value(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
        row[7] = value(7);
        row[13] = None;
        pack(&Row(row), &mut packer);
    }
    packer
}

#[test]
fn many_rows_round_trip() {
    let packer = many_rows(50_000);
    check(&fields(), packer.rows(), 1 << 20);
    check(&fields(), packer.rows(), 20_000);
}

#[test]
fn no_column_has_a_value() {
    let mut packer = RowPacker::default();
    (0..700).for_each(|_| pack(&Row(vec![None; 14]), &mut packer));
    check(&fields(), packer.rows(), 600);
}

#[test]
fn only_ids_and_addresses_have_bloom_filters() {
    let fields = fields();
    let scratch = write(&fields, many_rows(3_000).rows(), 1_000, true);
    let metadata = scratch.metadata();
    let file = File::open(&scratch.0).unwrap();
    for group in metadata.row_groups() {
        let having: Vec<_> = group
            .columns()
            .iter()
            .filter(|column| column.bloom_filter_offset().is_some())
            .map(|column| column.column_path().string())
            .collect();
        assert_eq!(having, ["uid", "id.orig_h"]);
    }
    let filter = |group: usize, column: usize| {
        let column = metadata.row_group(group).column(column);
        Sbbf::read_from_column_chunk(column, &file).unwrap().unwrap()
    };
    // The filter has the size for a thousand values.
    assert!((32..=64).contains(&filter(1, 1).num_blocks()));
    assert!(filter(1, 1).check("1500") && filter(1, 2).check("0.0.5.220"));
    let others = (2_000..3_000).filter(|n: &i32| filter(1, 1).check(n.to_string().as_str()));
    assert!(others.count() < 50);
}

#[test]
fn columns_are_compressed_and_have_statistics() {
    let fields = fields();
    let packer = many_rows(30_000);
    let scratch = write(&fields, packer.rows(), 1 << 20, true);
    let metadata = scratch.metadata();
    let group = metadata.row_group(0);
    assert_eq!(group.sorting_columns().unwrap()[0].column_idx, 0);
    let zstd = |column: &parquet::file::metadata::ColumnChunkMetaData| {
        matches!(column.compression(), Compression::ZSTD(_))
    };
    assert!(group.columns().iter().all(zstd));
    let statistics = |at: usize| group.column(at).statistics().unwrap();
    let shown = |at: usize| statistics(at).to_string();
    assert!(shown(7).contains("min: 7") && shown(7).contains("max: 7"), "{}", shown(7));
    assert!(statistics(1).min_bytes_opt().is_none());
    assert_eq!(statistics(13).null_count_opt(), Some(30_000));
    // Readers use the bounds in the column index of time to find the rows of a time range.
    let index = &metadata.column_index().unwrap()[0][0];
    assert!(index.is_sorted(), "{index:?}");
    let pages = metadata.offset_index().unwrap()[0][0].page_locations();
    assert_eq!(pages.len(), 30_000_usize.div_ceil(4 << 10));
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    // A row group does not depend on the buffers reused from the previous one.
    let (fields, packer) = (fields(), many_rows(4_000));
    let once = fs::read(&write(&fields, packer.rows(), 1 << 20, true).0).unwrap();
    let again = fs::read(&write(&fields, packer.rows(), 1 << 20, true).0).unwrap();
    assert!(once == again);
    let mut twice = packer.rows().to_vec();
    twice.extend_from_slice(packer.rows());
    check(&fields, &twice, 4_000);
}
