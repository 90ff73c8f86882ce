//! Columns as an output of the logs.

#[cfg(test)]
mod tests;

use std::io;
use std::iter;
use std::mem;
use std::path::Path;
use std::path::PathBuf;

use arrow_ipc::writer::FileWriter;
use gannet_base::Time;
use gannet_log::Cell;
use gannet_log::Cells;
use gannet_log::Field;
use gannet_log::Kind;
use gannet_log::LiveFiles;
use gannet_log::Options;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;

use crate::Error;
use crate::batch::Batch;
use crate::group::Group;
use crate::group::Maker;
use crate::parquet_file::About;
use crate::parquet_file::ParquetFile;
use crate::parquet_file::ROWS;
use crate::parquet_file::is_time;
use crate::partition::Partition;
use crate::schema::TimeUnit;
use crate::schema::schema;
use crate::waiting::MEMORY;
use crate::waiting::Rows;
use crate::waiting::Waiting;
use crate::whole_file::WholeFile;

/// Format of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnFormat {
    /// Parquet, with zstd: `conn.parquet`.
    #[default]
    Parquet,
    /// Arrow's file format (Feather), not compressed: `conn.arrow`.
    Arrow,
}

/// Writes every log as columns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// Format of the files.
    pub format: ColumnFormat,
    /// How rows are dealt to files.
    pub partition: Partition,
    /// Unit of points in time.
    pub times: TimeUnit,
}

impl Output for Columns {
    fn open(&self, options: &Options) -> Box<dyn PackedWriter> {
        Box::new(self.writer(options, MEMORY))
    }
}

impl Columns {
    /// A writer that holds at most `memory` bytes of rows in memory until they are written.
    fn writer(self, options: &Options, memory: usize) -> Writer {
        Writer {
            columns: self,
            dir: options.dir.clone(),
            logs: Vec::new(),
            shared: Shared {
                maker: None,
                waiting: Waiting::new(memory, options.dir.as_deref()),
                bytes: Vec::new(),
                order: Vec::new(),
            },
            live: options.live.clone(),
            rotated: None,
        }
    }
}

/// Most packed bytes of rows collected for one file: its row group ends there. Row groups depend only on
/// the rows of their file; how many rows of all logs wait in memory is limited by [`Waiting`].
const COLLECTED: usize = 6 << 20;
/// Rows of a batch in an Arrow file.
const ARROW_ROWS: usize = 16 << 10;
/// Most open files of a log. Rows come nearly in the order of time: hardly more than two are
/// needed.
const OPEN_PARTS: usize = 4;

/// What all logs have together.
struct Shared {
    /// What row groups of Parquet files are made with, once there are some.
    maker: Option<Maker>,
    waiting: Waiting,
    /// The rows of a group, and their order.
    bytes: Vec<u8>,
    order: Vec<Row>,
}

struct Writer {
    columns: Columns,
    /// `None` makes the columns and throws them away.
    dir: Option<PathBuf>,
    logs: Vec<Log>,
    shared: Shared,
    /// How files are named that are rotated.
    live: Option<LiveFiles>,
    /// When files were rotated last.
    rotated: Option<Time>,
}

/// The files of one log.
struct Log {
    path: &'static str,
    fields: Vec<Field>,
    opened: i64,
    by_time: bool,
    /// Number of rows.
    rows: i64,
    /// By last use, the latest one last.
    open: Vec<Part>,
    /// How many files each part has, in the order of their first rows.
    parts: Vec<(i64, u32)>,
}

/// Rows of one file that are not written yet, and the file.
struct Part {
    part: i64,
    number: u32,
    rows: Rows,
    /// The time of the last row written.
    end: i64,
    file: Option<Kept>,
}

/// Where rows go.
struct To<'a> {
    columns: Columns,
    dir: Option<&'a Path>,
    shared: &'a mut Shared,
}

/// A collected row.
#[derive(Clone, Copy)]
struct Row {
    /// Nanoseconds; rows without a time come first.
    time: i64,
    /// Number in its log.
    number: i64,
    /// Its place, behind its length.
    start: u32,
}

enum Kept {
    Parquet(Box<ParquetFile>),
    Arrow(Box<FileWriter<WholeFile>>),
}

impl PackedWriter for Writer {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        let known = self.logs.iter().position(|log| log.path == stream.path);
        let at = known.unwrap_or_else(|| {
            self.logs.push(Log {
                path: stream.path,
                fields: stream.fields.to_vec(),
                opened: self.rotated.unwrap_or(stream.opened).as_nanos(),
                by_time: stream.fields.first().is_some_and(is_time),
                rows: 0,
                open: Vec::new(),
                parts: Vec::new(),
            });
            self.logs.len() - 1
        });
        let Self { columns, dir, logs, shared, .. } = self;
        logs[at].write(rows, &mut To { columns: *columns, dir: dir.as_deref(), shared })?;
        while shared.waiting.is_over() {
            let parts = logs.iter_mut().flat_map(|log| &mut log.open);
            let ages = parts.filter_map(|part| Some((part.rows.oldest()?, part)));
            let Some((_, oldest)) = ages.min_by_key(|(age, _)| *age) else { break };
            shared.waiting.move_oldest(&mut oldest.rows)?;
        }
        Ok(())
    }

    fn close(&mut self, now: Time) -> io::Result<()> {
        let mut result = Ok(());
        let Self { columns, dir, logs, shared, .. } = self;
        let mut to = To { columns: *columns, dir: dir.as_deref(), shared };
        for mut log in logs.drain(..) {
            // A log that cannot be completed does not keep others from it.
            while let Some(part) = log.open.pop() {
                let closed = log.close(part, &mut to, Some(now));
                result = result.and(closed);
            }
        }
        Ok(result?)
    }

    fn rotate(&mut self, terminating: bool) -> io::Result<()> {
        let (Some(live), Some(dir)) = (self.live.clone(), self.dir.clone()) else { return Ok(()) };
        let mut result = Ok(());
        let columns = self.columns;
        let mut to = To { columns, dir: Some(&dir), shared: &mut self.shared };
        for log in &mut self.logs {
            let opened = Time::from_nanos(log.opened);
            // Files of parts have names of their own, which later files do not have.
            let renames = matches!(columns.partition, Partition::None);
            while let Some(part) = log.open.pop() {
                let has_rows = part.file.is_some() || part.rows.len > 0;
                let file = file_path(&dir, log.path, columns, (part.part, part.number));
                let mut closed = log.close(part, &mut to, None).map_err(io::Error::from);
                if has_rows && renames {
                    let complete = || live.complete(log.path, &file, opened, terminating);
                    closed = closed.and_then(|()| complete());
                }
                result = result.and(closed);
            }
        }
        if matches!(self.columns.partition, Partition::None) {
            self.logs.clear();
        }
        self.rotated = Some(LiveFiles::clock());
        result
    }
}

impl Log {
    fn write(&mut self, rows: PackedRows<'_>, to: &mut To<'_>) -> Result<(), Error> {
        let columns = to.columns;
        let (most_rows, most_bytes) = match columns.format {
            ColumnFormat::Parquet => (ROWS, COLLECTED),
            ColumnFormat::Arrow => (ARROW_ROWS, COLLECTED),
        };
        // Rows of one part that follow each other are collected together.
        let (all, mut rest) = (rows.bytes(), rows);
        let (mut start, mut run, mut bytes) = (0, 0, 0);
        let mut end = 0;
        while let Some(row) = rest.next() {
            let part = match columns.partition {
                Partition::None => 0,
                partition => partition.part(if self.by_time { time_of(row) } else { None }),
            };
            if self.open.last().is_none_or(|last| last.part != part) {
                self.collect(&all[start..end], run, to);
                (start, run, bytes) = (end, 0, 0);
                self.select(part, to)?;
            }
            end = all.len() - rest.bytes().len();
            run += 1;
            bytes += row.len();
            let waiting = self.open.last().map_or((0, 0), |part| (part.rows.len, part.rows.bytes));
            if waiting.0 + run >= most_rows || waiting.1 + bytes >= most_bytes {
                self.collect(&all[start..end], run, to);
                (start, run, bytes) = (end, 0, 0);
                self.write_group(to)?;
            }
        }
        self.collect(&all[start..end], run, to);
        Ok(())
    }

    /// Collects rows for the last part that is open.
    fn collect(&mut self, bytes: &[u8], rows: usize, to: &mut To<'_>) {
        let Some(part) = self.open.last_mut().filter(|_| rows > 0) else { return };
        to.shared.waiting.append(&mut part.rows, bytes, rows as u32, self.rows);
        self.rows += rows as i64;
    }

    /// Makes the part the last of those that are open.
    fn select(&mut self, part: i64, to: &mut To<'_>) -> Result<(), Error> {
        if let Some(at) = self.open.iter().position(|open| open.part == part) {
            let found = self.open.remove(at);
            self.open.push(found);
            return Ok(());
        }
        if self.open.len() == OPEN_PARTS {
            let oldest = self.open.remove(0);
            self.close(oldest, to, Some(Time::from_nanos(self.opened)))?;
        }
        let known = self.parts.iter().position(|(known, _)| *known == part);
        let at = known.unwrap_or_else(|| {
            self.parts.push((part, 0));
            self.parts.len() - 1
        });
        let number = self.parts[at].1;
        self.parts[at].1 += 1;
        let (rows, end) = (Rows::default(), self.opened);
        self.open.push(Part { part, number, rows, end, file: None });
        Ok(())
    }

    /// Writes the rows that are collected of the last part that is open.
    fn write_group(&mut self, to: &mut To<'_>) -> Result<(), Error> {
        let Self { path, fields, opened, open, by_time, .. } = self;
        let Some(part) = open.last_mut().filter(|part| part.rows.len > 0) else {
            return Ok(());
        };
        let Shared { maker, waiting, bytes, order } = &mut *to.shared;
        let rows = mem::take(&mut part.rows);
        order.clear();
        order.reserve(rows.len);
        let numbers = rows.numbers();
        let len = waiting.copy(&rows, bytes)?;
        let mut rest = PackedRows::new(bytes);
        let placed = iter::from_fn(|| {
            let row = rest.next()?;
            Some((row, len - rest.bytes().len() - row.len()))
        });
        order.extend(placed.zip(numbers).map(|((row, start), number)| {
            let time = if *by_time { time_of(row) } else { None };
            Row { time: time.unwrap_or(i64::MIN), number, start: start as u32 }
        }));
        waiting.free(rows);
        if let Some(last) = order.last().filter(|row| row.time != i64::MIN) {
            part.end = last.time;
        }
        let Columns { format, times, .. } = to.columns;
        let is_parquet = format == ColumnFormat::Parquet;
        if is_parquet && *by_time {
            // Rows are numbered in this order.
            if !order.is_sorted_by_key(|row| row.time) {
                order.sort_by_key(|row| row.time);
            }
        }
        if let Some(dir) = to.dir
            && part.file.is_none()
        {
            let path = file_path(dir, path, to.columns, (part.part, part.number));
            part.file = Some(if is_parquet {
                let about = About { name: self.path, fields, unit: times, opened: *opened };
                Kept::Parquet(Box::new(ParquetFile::create(&path, about)?))
            } else {
                let file = WholeFile::create(&path)?;
                Kept::Arrow(Box::new(FileWriter::try_new(file, &schema(fields, times))?))
            });
        }
        if is_parquet {
            let maker = match maker {
                Some(maker) => maker,
                none => none.insert(Maker::new()?),
            };
            let mut group = Group::new(fields, times, order.len(), maker);
            group.take(bytes, order.iter().map(|row| (row.start, row.number)));
            if let Some(Kept::Parquet(file)) = &mut part.file {
                file.write(group)?;
            }
        } else {
            let mut batch = Batch::new(fields, times, order.len());
            PackedRows::new(bytes).for_each(|row| batch.push(row));
            let batch = batch.finish()?;
            if let Some(Kept::Arrow(file)) = &mut part.file {
                file.write(&batch)?;
            }
        }
        Ok(())
    }

    /// Completes the file of a part, at this time or that of its last row.
    fn close(&mut self, part: Part, to: &mut To<'_>, now: Option<Time>) -> Result<(), Error> {
        self.open.push(part);
        let written = self.write_group(to);
        let part = self.open.pop();
        written?;
        let Some(part) = part else { return Ok(()) };
        match part.file {
            None => Ok(()),
            Some(Kept::Parquet(file)) => file.finish(now.map_or(part.end, Time::as_nanos)),
            Some(Kept::Arrow(file)) => Ok(file.into_inner()?.finish()?),
        }
    }
}

/// The time in the first column, in nanoseconds.
#[inline]
fn time_of(row: &[u8]) -> Option<i64> {
    match Cells::new(row).scalar(Kind::Time) {
        Cell::Time(t) => Some(t.as_nanos()),
        Cell::FarTime(s) | Cell::Seconds(s) => Some((s * 1e9) as i64),
        _ => None,
    }
}

fn file_path(dir: &Path, path: &str, columns: Columns, (part, number): (i64, u32)) -> PathBuf {
    let extension = match columns.format {
        ColumnFormat::Parquet => "parquet",
        ColumnFormat::Arrow => "arrow",
    };
    match columns.partition {
        Partition::None => dir.join(format!("{path}.{extension}")),
        partition => {
            let folder = dir.join(path).join(partition.folder(part));
            folder.join(format!("part-{number:04}.{extension}"))
        }
    }
}
