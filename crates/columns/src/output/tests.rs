//! Rows are the same after they were spilled to a file.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use gannet_log::RowPacker;
use gannet_log::Type;

use super::*;
use crate::ParquetRows;
use crate::row_buffer::PIECE;

/// Number of logs that are written in turns.
const LOGS: usize = 20;

fn fields() -> &'static [Field] {
    let field = |name, ty| Field { name, ty: Type::Scalar(ty), doc: "", optional: false };
    Vec::leak(vec![field("ts", "time"), field("n", "count"), field("text", "string")])
}

/// The rows of a log, in pieces of various lengths. The time of every third is earlier than the one before.
fn pieces(log: usize, rows: usize, rows_per_piece: usize) -> Vec<RowPacker> {
    let mut all = Vec::new();
    let mut next = 0;
    while next < rows {
        let mut packer = RowPacker::default();
        let end = rows.min(next + 1 + rows_per_piece * (log + 1));
        for n in next..end {
            packer.begin();
            let ns = n as i64 * 1_000_000_000 - if n % 3 == 0 { 2_500_000_000 } else { 0 };
            packer.push(&Cell::Time(Time::from_nanos(ns)));
            packer.push(&Cell::Count(n as u64));
            packer.push(&Cell::Plain(&vec![b'a' + (n % 26) as u8; n * 31 % 200]));
            packer.end();
        }
        next = end;
        all.push(packer);
    }
    all
}

/// Writes rows of all logs with a memory limit, in pieces of about `rows_per_piece` rows; returns the files, and the
/// number of slots in the temporary file.
fn written(
    columns: Columns,
    rows: usize,
    memory: usize,
    rows_per_piece: usize,
) -> (BTreeMap<String, Vec<u8>>, u64) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("gannet-waiting-{}-{next}", std::process::id()));
    let options = Options { dir: Some(dir.clone()), ..Default::default() };
    let mut writer = columns.writer(&options, memory);
    let paths: Vec<&'static str> = (0..LOGS).map(|log| &*format!("log{log}").leak()).collect();
    let logs: Vec<_> =
        (0..LOGS).map(|log| pieces(log, rows.div_ceil(LOGS), rows_per_piece)).collect();
    let fields = fields();
    for round in 0..logs.iter().map(Vec::len).max().unwrap() {
        for (log, path) in logs.iter().zip(&paths) {
            let stream = PackedStream::new(path, fields, Time::from_nanos(0));
            let Some(piece) = log.get(round) else { continue };
            writer.write(&stream, PackedRows::new(piece.rows())).unwrap();
            // The last piece of each open file is not full and cannot be spilled.
            let open: usize = writer.logs.iter().map(|log| log.open.len()).sum();
            assert!(writer.shared.row_buffer.used() <= memory.saturating_add(open * PIECE));
        }
    }
    let slots = writer.shared.row_buffer.slots();
    writer.close(Time::from_nanos(0)).unwrap();
    assert_eq!(writer.shared.row_buffer.used(), 0);
    let mut files = BTreeMap::new();
    let mut folders = vec![dir.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&dir).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    if columns.format == ColumnFormat::Parquet && matches!(columns.partition, Partition::None) {
        for path in &paths {
            let mut found = RowPacker::default();
            let mut rows_of_log = ParquetRows::open(&dir.join(format!("{path}.parquet"))).unwrap();
            let mut next = 0;
            while rows_of_log.next(&mut found).unwrap() {
                for row in PackedRows::new(found.rows()) {
                    let mut cells = Cells::new(row);
                    cells.scalar(Kind::Time);
                    assert_eq!(cells.scalar(Kind::Count), Cell::Count(next));
                    next += 1;
                }
                found.clear();
            }
            assert_eq!(next as usize, rows.div_ceil(LOGS), "{path}");
        }
    }
    fs::remove_dir_all(dir).unwrap();
    (files, slots)
}

/// Files depend neither on the memory for rows nor on the pieces in which rows are written.
#[test]
fn files_do_not_depend_on_spilled_rows() {
    for rows in [10, 1_000, 100_000] {
        for (format, partition) in [
            (ColumnFormat::Parquet, Partition::None),
            (ColumnFormat::Arrow, Partition::None),
            (ColumnFormat::Parquet, Partition::Hour),
        ] {
            let columns = Columns { format, partition, ..Columns::default() };
            let (all, slots) = written(columns, rows, usize::MAX, 7);
            assert_eq!(slots, 0);
            assert!(all.len() >= LOGS, "{:?}", all.keys());
            let (others, slots) = written(columns, rows, 2 * PIECE, 100);
            assert_eq!(slots > 0, rows == 100_000, "{slots}");
            assert!(all == others, "{rows} rows as {format:?} by {partition:?}");
        }
    }
}

/// Slots of rows that were written are used again.
#[test]
fn the_temporary_file_is_not_larger_than_the_buffered_rows() {
    let columns = Columns { format: ColumnFormat::Arrow, ..Columns::default() };
    let (_, slots) = written(columns, 1_000_000, PIECE, 1_000);
    // A row has less than 140 bytes.
    let max_slots = (LOGS * MAX_BATCH_ROWS * 140 / PIECE) as u64;
    assert!((1..=max_slots).contains(&slots), "{slots} of {max_slots}");
}
