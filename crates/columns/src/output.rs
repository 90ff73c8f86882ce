//! Columns as an output of the logs.

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
use crate::group::GroupMaker;
use crate::group::GroupOptions;
use crate::parquet_file::FileDescription;
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
                direct: 0,
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
/// Most logs whose rows become columns as they arrive, while they are in a near cache. Those of others wait as they are:
/// columns of a log take as much memory as its rows, and those do not wait in a file.
const DIRECT: usize = 2;
/// Bytes of waiting rows with which a log becomes one of these.
const BUSY: usize = 256 << 10;
/// Bytes that become columns at a time.
const AT_A_TIME: usize = 32 << 10;
/// Most open files of a log. Rows come nearly in the order of time: hardly more than two are
/// needed.
const OPEN_PARTS: usize = 4;

/// What all logs have together.
struct Shared {
    /// What row groups of Parquet files are made with, once there are some.
    maker: Option<GroupMaker>,
    waiting: Waiting,
    /// Rows that waited.
    bytes: Vec<u8>,
    /// How many parts are direct.
    direct: usize,
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
    /// Rows of the row group before.
    before: usize,
    /// By last use, the latest one last.
    open: Vec<Part>,
    /// How many files each part has, in the order of their first rows.
    parts: Vec<(i64, u32)>,
}

/// Rows of one file that are not written yet, and the file.
struct Part {
    part: i64,
    number: u32,
    /// Rows that wait.
    rows: Rows,
    /// Columns of the rows before these.
    group: Option<Group>,
    /// Whether rows become columns as they arrive.
    is_direct: bool,
    /// How many rows there are of both, and their bytes.
    len: usize,
    bytes: usize,
    /// The time of the last row.
    end: i64,
    file: Option<OpenFile>,
}

/// Where rows go.
struct To<'a> {
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
                before: 0,
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
                let has_rows = part.file.is_some() || part.len > 0;
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
        let (mut start, mut run) = (0, 0);
        let mut end = 0;
        while let Some(row) = rest.next() {
            let is_divided = !matches!(columns.partition, Partition::None);
            let mut time = if self.by_time && is_divided { time_of(row) } else { None };
            let part = columns.partition.part(time);
            if self.open.last().is_none_or(|last| last.part != part) {
                self.collect(&all[start..end], run, to)?;
                (start, run) = (end, 0);
                self.select(part, to)?;
            }
            end = all.len() - rest.bytes().len();
            run += 1;
            let Some(part) = self.open.last_mut() else { continue };
            part.len += 1;
            part.bytes += row.len();
            let is_full = part.len >= most_rows || part.bytes >= most_bytes;
            if self.by_time && (is_full || rest.bytes().is_empty()) {
                time = time_of(row);
            }
            part.end = time.unwrap_or(part.end);
            if is_full {
                self.collect(&all[start..end], run, to)?;
                (start, run) = (end, 0);
                self.write_group(to, false)?;
            }
        }
        self.collect(&all[start..end], run, to)
    }

    /// Collects rows for the last part that is open.
    fn collect(&mut self, bytes: &[u8], rows: usize, to: &mut To<'_>) -> Result<(), Error> {
        let Some(part) = self.open.last_mut().filter(|_| rows > 0) else { return Ok(()) };
        let first = self.rows;
        self.rows += rows as i64;
        let shared = &mut *to.shared;
        if part.is_direct && part.rows.len == 0 && bytes.len() >= AT_A_TIME {
            let maker = made(&mut shared.maker)?;
            let group = part.group.get_or_insert_with(|| {
                Group::new(&self.fields, to.columns.times, self.before, maker)
            });
            group.take(bytes, first.., maker);
            return Ok(());
        }
        shared.waiting.append(&mut part.rows, bytes, rows as u32, first);
        if part.is_direct && part.rows.bytes >= AT_A_TIME {
            return self.take_waiting(to);
        }
        if part.rows.bytes >= BUSY
            && shared.direct < DIRECT
            && to.columns.format == ColumnFormat::Parquet
        {
            part.is_direct = true;
            shared.direct += 1;
            return self.take_waiting(to);
        }
        Ok(())
    }

    /// Makes columns of the rows that wait of the last part that is open.
    fn take_waiting(&mut self, to: &mut To<'_>) -> Result<(), Error> {
        let Some(part) = self.open.last_mut() else { return Ok(()) };
        let Shared { maker, waiting, bytes, .. } = &mut *to.shared;
        let rows = mem::take(&mut part.rows);
        waiting.copy(&rows, bytes)?;
        let maker = made(maker)?;
        // The columns of a direct part have room for all rows of the group from the beginning.
        let room = if part.is_direct {
            ROWS.min(COLLECTED * rows.len / rows.bytes.max(1)).max(self.before)
        } else {
            rows.len
        };
        let times = to.columns.times;
        let group = part.group.get_or_insert_with(|| Group::new(&self.fields, times, room, maker));
        group.take(bytes, rows.numbers(), maker);
        waiting.free(rows);
        Ok(())
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
        self.open.push(Part {
            part,
            number,
            rows: Rows::default(),
            group: None,
            is_direct: false,
            len: 0,
            bytes: 0,
            end: self.opened,
            file: None,
        });
        Ok(())
    }

    /// Writes the rows that are collected of the last part that is open; `is_last` where its file is complete then.
    fn write_group(&mut self, to: &mut To<'_>, is_last: bool) -> Result<(), Error> {
        let Columns { format, times, .. } = to.columns;
        let is_parquet = format == ColumnFormat::Parquet;
        if is_parquet && self.open.last().is_some_and(|part| part.rows.len > 0) {
            self.take_waiting(to)?;
        }
        let Self { path, fields, opened, open, by_time, before, .. } = self;
        let Some(part) = open.last_mut().filter(|part| part.len > 0) else {
            return Ok(());
        };
        *before = part.len;
        (part.len, part.bytes) = (0, 0);
        if let Some(dir) = to.dir
            && part.file.is_none()
        {
            let path = file_path(dir, path, to.columns, (part.part, part.number));
            part.file = Some(if is_parquet {
                let about =
                    FileDescription { name: self.path, fields, unit: times, opened: *opened };
                OpenFile::Parquet(Box::new(ParquetFile::create(&path, about)?))
            } else {
                let file = WholeFile::create(&path)?;
                OpenFile::Arrow(Box::new(FileWriter::try_new(file, &schema(fields, times))?))
            });
        }
        let Shared { maker, waiting, bytes, .. } = &mut *to.shared;
        if let Some(group) = part.group.take() {
            let maker = made(maker)?;
            match &mut part.file {
                Some(OpenFile::Parquet(file)) => {
                    let place = GroupOptions { by_time: *by_time, is_last };
                    file.write(group, place, maker)?;
                }
                _ => group.keep(maker),
            }
            return Ok(());
        }
        let rows = mem::take(&mut part.rows);
        waiting.copy(&rows, bytes)?;
        let mut batch = Batch::new(fields, times, rows.len);
        PackedRows::new(bytes).for_each(|row| batch.push(row));
        waiting.free(rows);
        let batch = batch.finish()?;
        if let Some(OpenFile::Arrow(file)) = &mut part.file {
            file.write(&batch)?;
        }
        Ok(())
    }

    /// Completes the file of a part, at this time or that of its last row.
    fn close(&mut self, part: Part, to: &mut To<'_>, now: Option<Time>) -> Result<(), Error> {
        self.open.push(part);
        let written = self.write_group(to, true);
        let part = self.open.pop();
        let Some(part) = part else { return written };
        to.shared.direct -= usize::from(part.is_direct);
        written?;
        match part.file {
            None => Ok(()),
            Some(OpenFile::Parquet(file)) => file.finish(now.map_or(part.end, Time::as_nanos)),
            Some(OpenFile::Arrow(file)) => Ok(file.into_inner()?.finish()?),
        }
    }
}

/// What row groups are made with, once there are some.
fn made(maker: &mut Option<GroupMaker>) -> io::Result<&mut GroupMaker> {
    Ok(match maker {
        Some(maker) => maker,
        none => none.insert(GroupMaker::new()?),
    })
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
