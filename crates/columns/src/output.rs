//! The log output that writes Parquet and Arrow files.

#[cfg(test)]
mod tests;

use std::io;
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
use crate::group::GroupContext;
use crate::group::GroupOptions;
use crate::parquet_file::FileDescription;
use crate::parquet_file::MAX_GROUP_ROWS;
use crate::parquet_file::ParquetFile;
use crate::parquet_file::is_time;
use crate::partition::Partition;
use crate::row_buffer::BufferedRows;
use crate::row_buffer::MAX_MEMORY;
use crate::row_buffer::RowBuffer;
use crate::schema::TimeUnit;
use crate::schema::schema;
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

/// Writes every log as a Parquet or Arrow file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// Format of the files.
    pub format: ColumnFormat,
    /// How rows are partitioned into files.
    pub partition: Partition,
    /// Unit of timestamps.
    pub times: TimeUnit,
}

impl Output for Columns {
    fn open(&self, options: &Options) -> Box<dyn PackedWriter> {
        Box::new(self.writer(options, MAX_MEMORY))
    }
}

impl Columns {
    /// A writer that buffers at most `memory` bytes of rows in memory.
    fn writer(self, options: &Options, memory: usize) -> Writer {
        Writer {
            columns: self,
            dir: options.dir.clone(),
            logs: Vec::new(),
            shared: Shared {
                context: None,
                row_buffer: RowBuffer::new(memory, options.dir.as_deref()),
                bytes: Vec::new(),
                direct: 0,
            },
            live: options.live.clone(),
            rotated: None,
        }
    }
}

/// Maximum size of a row group, in bytes of packed rows. Row groups depend only on the rows of their file;
/// [`RowBuffer`] limits the memory for the buffered rows of all logs.
const MAX_GROUP_BYTES: usize = 6 << 20;
/// Maximum number of rows in a batch of an Arrow file.
const MAX_BATCH_ROWS: usize = 16 << 10;
/// Maximum number of output files whose rows are converted to columns as they arrive, while they are in the CPU cache.
/// Rows of other files are buffered as they are: columns take as much memory as rows, and cannot be spilled.
const MAX_DIRECT: usize = 2;
/// Number of buffered bytes from which the rows of a file are converted as they arrive.
const MIN_DIRECT_BYTES: usize = 256 << 10;
/// Minimum number of bytes that are converted to columns at a time.
const APPEND_BYTES: usize = 32 << 10;
/// Maximum number of open files of a log. Rows arrive nearly in the order of time: hardly more than two are needed.
const MAX_OPEN_PARTS: usize = 4;

/// State shared by all logs.
struct Shared {
    /// Created with the first row group of a Parquet file.
    context: Option<GroupContext>,
    row_buffer: RowBuffer,
    /// Scratch buffer for rows copied out of `row_buffer`.
    bytes: Vec<u8>,
    /// Number of parts with [`Part::is_direct`].
    direct: usize,
}

struct Writer {
    columns: Columns,
    /// Folder of the files; `None` builds the columns and discards them.
    dir: Option<PathBuf>,
    logs: Vec<Log>,
    shared: Shared,
    /// Names of rotated files.
    live: Option<LiveFiles>,
    /// Time of the last rotation.
    rotated: Option<Time>,
}

/// The files of one log.
struct Log {
    path: &'static str,
    fields: Vec<Field>,
    opened: i64,
    /// Whether the first column is a time, by which row groups are sorted.
    by_time: bool,
    /// Number of rows.
    rows: i64,
    /// Number of rows in the previous row group.
    previous_rows: usize,
    /// Parts with an open file, in the order of their last use.
    open: Vec<Part>,
    /// Each part and the number of its files, in the order of the first rows.
    parts: Vec<(i64, u32)>,
}

/// A part of a log by time, with an open file and its rows that are not written yet.
struct Part {
    /// From [`Partition::part`].
    part: i64,
    /// Number of the file within the part.
    number: u32,
    /// Buffered rows; they follow those of `group`.
    rows: BufferedRows,
    /// Rows that are converted to columns.
    group: Option<Group>,
    /// Whether rows are converted to columns as they arrive.
    is_direct: bool,
    /// Number of rows in `rows` and `group`.
    len: usize,
    /// Size of the rows in `rows` and `group`, in bytes.
    bytes: usize,
    /// Time of the last row, in nanoseconds.
    end: i64,
    /// Created with the first row group.
    file: Option<OpenFile>,
}

/// Destination of the rows of a log.
struct Target<'a> {
    columns: Columns,
    dir: Option<&'a Path>,
    shared: &'a mut Shared,
}

enum OpenFile {
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
                previous_rows: 0,
                open: Vec::new(),
                parts: Vec::new(),
            });
            self.logs.len() - 1
        });
        let Self { columns, dir, logs, shared, .. } = self;
        logs[at].write(rows, &mut Target { columns: *columns, dir: dir.as_deref(), shared })?;
        while shared.row_buffer.is_over_limit() {
            let parts = logs.iter_mut().flat_map(|log| &mut log.open);
            let ages = parts.filter_map(|part| Some((part.rows.oldest()?, part)));
            let Some((_, oldest)) = ages.min_by_key(|(age, _)| *age) else { break };
            shared.row_buffer.spill_oldest(&mut oldest.rows)?;
        }
        Ok(())
    }

    fn close(&mut self, now: Time) -> io::Result<()> {
        let mut result = Ok(());
        let Self { columns, dir, logs, shared, .. } = self;
        let mut target = Target { columns: *columns, dir: dir.as_deref(), shared };
        for mut log in logs.drain(..) {
            // All logs are completed, also after an error.
            while let Some(part) = log.open.pop() {
                let closed = log.close(part, &mut target, Some(now));
                result = result.and(closed);
            }
        }
        Ok(result?)
    }

    fn rotate(&mut self, terminating: bool) -> io::Result<()> {
        let (Some(live), Some(dir)) = (self.live.clone(), self.dir.clone()) else { return Ok(()) };
        let mut result = Ok(());
        let columns = self.columns;
        let mut target = Target { columns, dir: Some(&dir), shared: &mut self.shared };
        for log in &mut self.logs {
            let opened = Time::from_nanos(log.opened);
            // File names of a partitioned log are unique over rotations.
            let renames = matches!(columns.partition, Partition::None);
            while let Some(part) = log.open.pop() {
                let has_rows = part.file.is_some() || part.len > 0;
                let file = file_path(&dir, log.path, columns, (part.part, part.number));
                let mut closed = log.close(part, &mut target, None).map_err(io::Error::from);
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
    fn write(&mut self, rows: PackedRows<'_>, target: &mut Target<'_>) -> Result<(), Error> {
        let columns = target.columns;
        let (max_rows, max_bytes) = match columns.format {
            ColumnFormat::Parquet => (MAX_GROUP_ROWS, MAX_GROUP_BYTES),
            ColumnFormat::Arrow => (MAX_BATCH_ROWS, MAX_GROUP_BYTES),
        };
        // Consecutive rows of one part are collected together.
        let (all, mut rest) = (rows.bytes(), rows);
        let (mut start, mut run) = (0, 0);
        let mut end = 0;
        while let Some(row) = rest.next() {
            let is_partitioned = !matches!(columns.partition, Partition::None);
            let mut time = if self.by_time && is_partitioned { row_time(row) } else { None };
            let part = columns.partition.part(time);
            if self.open.last().is_none_or(|last| last.part != part) {
                self.collect(&all[start..end], run, target)?;
                (start, run) = (end, 0);
                self.select(part, target)?;
            }
            end = all.len() - rest.bytes().len();
            run += 1;
            let Some(part) = self.open.last_mut() else { continue };
            part.len += 1;
            part.bytes += row.len();
            let is_full = part.len >= max_rows || part.bytes >= max_bytes;
            if self.by_time && (is_full || rest.bytes().is_empty()) {
                time = row_time(row);
            }
            part.end = time.unwrap_or(part.end);
            if is_full {
                self.collect(&all[start..end], run, target)?;
                (start, run) = (end, 0);
                self.write_group(target, false)?;
            }
        }
        self.collect(&all[start..end], run, target)
    }

    /// Adds rows to the last open part, to its columns or to its buffered rows.
    fn collect(&mut self, bytes: &[u8], rows: usize, target: &mut Target<'_>) -> Result<(), Error> {
        let Some(part) = self.open.last_mut().filter(|_| rows > 0) else { return Ok(()) };
        let first = self.rows;
        self.rows += rows as i64;
        let shared = &mut *target.shared;
        if part.is_direct && part.rows.len == 0 && bytes.len() >= APPEND_BYTES {
            let context = group_context(&mut shared.context)?;
            let group = part.group.get_or_insert_with(|| {
                Group::new(&self.fields, target.columns.times, self.previous_rows, context)
            });
            group.append(bytes, first.., context);
            return Ok(());
        }
        shared.row_buffer.append(&mut part.rows, bytes, rows as u32, first);
        if part.is_direct && part.rows.bytes >= APPEND_BYTES {
            return self.append_buffered(target);
        }
        if part.rows.bytes >= MIN_DIRECT_BYTES
            && shared.direct < MAX_DIRECT
            && target.columns.format == ColumnFormat::Parquet
        {
            part.is_direct = true;
            shared.direct += 1;
            return self.append_buffered(target);
        }
        Ok(())
    }

    /// Converts the buffered rows of the last open part to columns.
    fn append_buffered(&mut self, target: &mut Target<'_>) -> Result<(), Error> {
        let Some(part) = self.open.last_mut() else { return Ok(()) };
        let Shared { context, row_buffer, bytes, .. } = &mut *target.shared;
        let rows = mem::take(&mut part.rows);
        row_buffer.copy(&rows, bytes)?;
        let context = group_context(context)?;
        // The columns of a direct part have capacity for all rows of the group from the beginning.
        let capacity = if part.is_direct {
            MAX_GROUP_ROWS
                .min(MAX_GROUP_BYTES * rows.len / rows.bytes.max(1))
                .max(self.previous_rows)
        } else {
            rows.len
        };
        let times = target.columns.times;
        let group =
            part.group.get_or_insert_with(|| Group::new(&self.fields, times, capacity, context));
        group.append(bytes, rows.numbers(), context);
        row_buffer.free(rows);
        Ok(())
    }

    /// Opens a part if it is not open, and makes it the last open one.
    fn select(&mut self, part: i64, target: &mut Target<'_>) -> Result<(), Error> {
        if let Some(at) = self.open.iter().position(|open| open.part == part) {
            let found = self.open.remove(at);
            self.open.push(found);
            return Ok(());
        }
        if self.open.len() == MAX_OPEN_PARTS {
            let oldest = self.open.remove(0);
            self.close(oldest, target, Some(Time::from_nanos(self.opened)))?;
        }
        let known = self.parts.iter().position(|(known, _)| *known == part);
        let at = known.unwrap_or_else(|| {
            self.parts.push((part, 0));
            self.parts.len() - 1
        });
        let number = self.parts[at].1;
        self.parts[at].1 += 1;
        self.open.push(Part {
            part,
            number,
            rows: BufferedRows::default(),
            group: None,
            is_direct: false,
            len: 0,
            bytes: 0,
            end: self.opened,
            file: None,
        });
        Ok(())
    }

    /// Writes the collected rows of the last open part; `is_last` if they complete its file.
    fn write_group(&mut self, target: &mut Target<'_>, is_last: bool) -> Result<(), Error> {
        let Columns { format, times, .. } = target.columns;
        let is_parquet = format == ColumnFormat::Parquet;
        if is_parquet && self.open.last().is_some_and(|part| part.rows.len > 0) {
            self.append_buffered(target)?;
        }
        let Self { path, fields, opened, open, by_time, previous_rows, .. } = self;
        let Some(part) = open.last_mut().filter(|part| part.len > 0) else {
            return Ok(());
        };
        *previous_rows = part.len;
        (part.len, part.bytes) = (0, 0);
        if let Some(dir) = target.dir
            && part.file.is_none()
        {
            let path = file_path(dir, path, target.columns, (part.part, part.number));
            part.file = Some(if is_parquet {
                let description =
                    FileDescription { name: self.path, fields, unit: times, opened: *opened };
                OpenFile::Parquet(Box::new(ParquetFile::create(&path, description)?))
            } else {
                let file = WholeFile::create(&path)?;
                OpenFile::Arrow(Box::new(FileWriter::try_new(file, &schema(fields, times))?))
            });
        }
        let Shared { context, row_buffer, bytes, .. } = &mut *target.shared;
        if let Some(group) = part.group.take() {
            let context = group_context(context)?;
            match &mut part.file {
                Some(OpenFile::Parquet(file)) => {
                    let options = GroupOptions { by_time: *by_time, is_last };
                    file.write(group, options, context)?;
                }
                _ => group.recycle(context),
            }
            return Ok(());
        }
        let rows = mem::take(&mut part.rows);
        row_buffer.copy(&rows, bytes)?;
        let mut batch = Batch::new(fields, times, rows.len);
        PackedRows::new(bytes).for_each(|row| batch.push(row));
        row_buffer.free(rows);
        let batch = batch.finish()?;
        if let Some(OpenFile::Arrow(file)) = &mut part.file {
            file.write(&batch)?;
        }
        Ok(())
    }

    /// Completes the file of a part. `now` is recorded as the time at the end, or that of its last row if `None`.
    fn close(
        &mut self,
        part: Part,
        target: &mut Target<'_>,
        now: Option<Time>,
    ) -> Result<(), Error> {
        self.open.push(part);
        let written = self.write_group(target, true);
        let part = self.open.pop();
        let Some(part) = part else { return written };
        target.shared.direct -= usize::from(part.is_direct);
        written?;
        match part.file {
            None => Ok(()),
            Some(OpenFile::Parquet(file)) => file.finish(now.map_or(part.end, Time::as_nanos)),
            Some(OpenFile::Arrow(file)) => Ok(file.into_inner()?.finish()?),
        }
    }
}

/// Returns the context of row groups; creates it at the first call.
fn group_context(context: &mut Option<GroupContext>) -> io::Result<&mut GroupContext> {
    Ok(match context {
        Some(context) => context,
        none => none.insert(GroupContext::new()?),
    })
}

/// The time in the first column, in nanoseconds.
#[inline]
fn row_time(row: &[u8]) -> Option<i64> {
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
