//! The logs of a run: writes rows, flushes them to files, or collects them in memory.

pub(crate) mod live;
mod stream;

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gannet_base::Time;

use crate::buffer::Buffer;
use crate::buffer::PIECE;
use crate::buffer::format;
use crate::buffer::replay;
use crate::collect::CHUNK_BYTES;
use crate::collect::FULL_CHUNK_REST;
use crate::collect::Key;
use crate::collect::MAX_COPIED;
use crate::collect::MergedRows;
use crate::collect::Rows;
use crate::collect::Shape;
use crate::json::JsonTimes;
use crate::packed::Output;
use crate::packed::PackedRows;
use crate::packed::PackedStream;
use crate::packed::PackedWriter;
use crate::row::Cut;
use crate::row::Row;
use crate::row::slot;
use crate::selection::Selection;
use crate::tap::Tap;
use live::LiveFiles;
use live::LiveState;
use stream::Stream;
use stream::header;
use stream::stamp;

/// Format of the rows of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Zeek's tab-separated values, with its header lines.
    #[default]
    Tsv,
    /// One JSON object per line.
    Json(JsonTimes),
    /// [Packed](crate::PackedRows) values, for the [outputs](Options::outputs).
    Packed,
}

/// Options of logs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder of the log files; it must exist. `None` formats the rows and discards them.
    pub dir: Option<PathBuf>,
    /// Format of the rows: a text format, or packed for the outputs.
    pub format: Format,
    /// Outputs that receive the packed rows.
    pub outputs: Vec<Arc<dyn Output>>,
    /// Extension of text files; `log` by default.
    pub extension: Option<&'static str>,
    /// Streams to write.
    pub selection: Selection,
    /// Optional columns to write, by name.
    pub columns: Vec<String>,
    /// Receives the rows; no file is written.
    pub tap: Option<Tap>,
    /// Pass each packed row to the outputs immediately: with one thread, rows of all streams arrive in the order of
    /// packets.
    pub at_once: bool,
    /// Write the rows to standard output instead of files: for a selection of one stream.
    pub stdout: bool,
    /// Options of a live analysis: files are never overwritten, may be rotated, and a file that cannot be written does
    /// not end the analysis. [`Logs::check`] then reports no errors of text files.
    pub live: Option<LiveFiles>,
}

impl Options {
    /// Whether an optional column is written.
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c == name)
    }
}

/// Number of rows and bytes written to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCount {
    /// Name of the stream.
    pub path: &'static str,
    /// Rows written.
    pub rows: u64,
    /// Bytes written, header lines included.
    pub bytes: u64,
}

const SLOTS: usize = 256;

/// Maximum number of chunks that are kept for reuse.
const MAX_SPARE_CHUNKS: usize = 16;

/// All log streams of a run: one buffered file each, opened at its first row.
///
/// Writing a row never fails; [`check`](Self::check) and [`close`](Self::close) report the first error of a file.
pub struct Logs {
    options: Options,
    streams: Vec<Stream>,
    /// Hash table with open addressing by [`slot`]: index into `streams` plus one, or 0 for an empty slot.
    slots: [u8; SLOTS],
    now: Time,
    error: Option<io::Error>,
    /// Writers of packed rows.
    writers: Vec<Box<dyn PackedWriter>>,
    /// Length at which a buffer is flushed or collected.
    full_at: usize,
    /// If set, rows are collected with this key instead of being written.
    key: Option<Key>,
    /// Size of the collected rows and their keys, in bytes.
    collected_bytes: usize,
    /// Full chunks of collected rows.
    chunks: Vec<Rows>,
    /// Chunks for reuse.
    spare: Vec<Rows>,
    tickets: Cell<u64>,
}

impl Logs {
    /// Creates logs. The file of a stream is opened at its first row.
    pub fn new(options: Options) -> Self {
        Self {
            writers: options.outputs.iter().map(|output| output.open(&options)).collect(),
            full_at: if options.tap.is_some() || options.at_once { 0 } else { PIECE },
            options,
            streams: Vec::new(),
            slots: [0; SLOTS],
            now: Time::ZERO,
            error: None,
            key: None,
            collected_bytes: 0,
            chunks: Vec::new(),
            spare: Vec::new(),
            tickets: Cell::new(0),
        }
    }

    /// Creates logs that collect formatted rows with their [keys](Self::set_key) and open no file: for a shard of an
    /// analysis, whose rows are [taken](Self::take) and [added](Self::add_at) to the merged logs.
    pub fn collecting(options: Options) -> Self {
        let options = Options { outputs: Vec::new(), ..options };
        Self { key: Some(Key::default()), full_at: 0, ..Self::new(options) }
    }

    /// Sets the key of the following rows if rows are collected; returns whether they are.
    #[inline]
    pub fn set_key(&mut self, key: Key) -> bool {
        let Some(stream_index) = &mut self.key else { return false };
        *stream_index = key;
        true
    }

    /// The key of the next row; `None` unless rows are collected.
    pub fn key(&self) -> Option<Key> {
        self.key
    }

    /// Returns a number greater than all earlier ones.
    pub fn ticket(&self) -> u64 {
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        ticket
    }

    /// Size of the collected rows and their keys, in bytes.
    pub fn collected_bytes(&self) -> usize {
        self.collected_bytes
    }

    /// Takes the rows collected so far; the rows of each stream are in order.
    pub fn take(&mut self) -> Vec<Rows> {
        self.collected_bytes = 0;
        for i in 0..self.streams.len() {
            let stream = &mut self.streams[i];
            let is_small = stream.buffer.len() <= MAX_COPIED;
            match stream.marks.is_empty() {
                true => {}
                false if is_small => {
                    self.chunks.push(Rows {
                        shape: stream.shape,
                        opened: stream.opened,
                        bytes: stream.buffer.bytes().to_vec(),
                        marks: stream.marks.clone(),
                    });
                    stream.buffer.clear();
                    stream.marks.clear();
                }
                false => self.chunk(i),
            }
        }
        std::mem::take(&mut self.chunks)
    }

    /// Keeps the memory of written rows for further rows.
    pub fn reuse(&mut self, rows: Vec<Rows>) {
        let capacity = MAX_SPARE_CHUNKS.saturating_sub(self.spare.len());
        self.spare.extend(rows.into_iter().filter(Rows::is_chunk).take(capacity));
    }

    /// Moves the collected rows of a stream to the full chunks.
    #[cold]
    fn chunk(&mut self, i: usize) {
        let stream = &mut self.streams[i];
        let (bytes, mut marks) = match self.spare.pop() {
            Some(rows) => (rows.bytes, rows.marks),
            None => (vec![0; CHUNK_BYTES], Vec::with_capacity(stream.marks.len())),
        };
        marks.clear();
        self.chunks.push(Rows {
            shape: stream.shape,
            opened: stream.opened,
            bytes: stream.buffer.exchange(bytes),
            marks: std::mem::replace(&mut stream.marks, marks),
        });
    }

    /// Index of the stream of these rows, for [`add_at`](Self::add_at).
    pub fn stream_index(&mut self, rows: &Rows) -> usize {
        self.stream(slot(rows.shape.path), rows.shape, rows.opened)
    }

    /// Adds a range of rows that another `Logs` collected to the stream at this [index](Self::stream_index).
    #[inline]
    pub fn add_at(&mut self, stream_index: usize, rows: &Rows, range: std::ops::Range<usize>) {
        let n = range.len() as u64;
        self.add_lines(stream_index, rows.lines(range), n);
    }

    /// Adds rows of a stream that two shards collected, in the order of their keys, from these positions on, while both
    /// have a row with a key before `limit`. `stream_index` is that of the [stream](Self::stream_index). Returns the
    /// positions of the remaining rows.
    pub fn add_merged(
        &mut self,
        stream_index: usize,
        rows: [(&Rows, usize); 2],
        limit: Key,
    ) -> [usize; 2] {
        let mut merged = MergedRows::new(rows, limit);
        let full_at = self.full_at;
        while let Some(stream) = self.streams.get_mut(stream_index) {
            let mut is_full = false;
            while !is_full && let Some(line) = merged.next() {
                if stream.enabled {
                    stream.rows += 1;
                    stream.buffer.extend(line);
                    is_full = stream.buffer.len() >= full_at;
                }
            }
            if !is_full {
                break;
            }
            self.on_full(stream_index);
        }
        merged.positions()
    }

    #[inline]
    fn add_lines(&mut self, i: usize, lines: &[u8], rows: u64) {
        let Some(stream) = self.streams.get_mut(i) else { return };
        if stream.enabled {
            stream.rows += rows;
            stream.buffer.extend(lines);
            if stream.buffer.len() >= self.full_at {
                self.on_full(i);
            }
        }
    }

    /// Whether an optional column is written.
    pub fn has_column(&self, name: &str) -> bool {
        self.options.has_column(name)
    }

    /// The streams that are written.
    pub fn selection(&self) -> &Selection {
        &self.options.selection
    }

    /// Sets the packet time for header and footer lines.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// The packet time set last.
    pub fn time(&self) -> Time {
        self.now
    }

    /// Writes a row; returns which parts were truncated to the stream's limits.
    #[inline]
    pub fn write<R: Row>(&mut self, row: &R) -> Cut {
        let i = self.stream(const { slot(R::PATH) }, Shape::of::<R>(), self.now);
        let stream = &mut self.streams[i];
        if !stream.enabled {
            return Cut::default();
        }
        stream.rows += 1;
        let cut = format(self.options.format, row, &mut stream.buffer);
        if stream.buffer.len() >= self.full_at {
            self.on_full(i);
        }
        cut
    }

    /// Like [`write`](Self::write), but inlined: if the row is constructed right before the call, the compiler writes
    /// its columns without storing the row in memory. For logs with a row or more per connection. Returns `None` if the
    /// buffer is too small or the format is not supported: then write the row with `write`.
    #[inline(always)]
    pub fn write_in_place<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let i = self.stream(const { slot(R::PATH) }, Shape::of::<R>(), self.now);
        let stream = &mut self.streams[i];
        if !stream.enabled {
            return None;
        }
        let cut = match self.options.format {
            Format::Tsv => stream.buffer.tsv(row)?,
            Format::Packed => stream.buffer.packed(row)?,
            Format::Json(_) => return None,
        };
        stream.rows += 1;
        if stream.buffer.len() >= self.full_at {
            self.on_full(i);
        }
        Some(cut)
    }

    /// Writes packed rows of a stream in the format of these logs: rows of another run, or of a stream that is declared
    /// at run time. They have the stream's columns, except optional ones that are not written.
    pub fn write_packed(&mut self, shape: Shape, opened: Time, rows: PackedRows<'_>) {
        let i = self.stream(slot(shape.path), shape, opened);
        for row in rows {
            let Some(stream) = self.streams.get_mut(i).filter(|s| s.enabled) else { return };
            stream.rows += 1;
            replay(self.options.format, &stream.fields, row, &mut stream.buffer);
            if stream.buffer.len() >= self.full_at {
                self.on_full(i);
            }
        }
    }

    /// Flushes a full buffer to its file, or moves it to the collected rows.
    #[inline(never)]
    fn on_full(&mut self, i: usize) {
        let Some(key) = self.key else { return self.flush(i) };
        let stream = &mut self.streams[i];
        let end = stream.buffer.len();
        let before = stream.marks.last().map_or(0, |m| m.1 as usize);
        if before == 0 {
            stream.opened = self.now;
        }
        self.collected_bytes += end - before + size_of::<(Key, u32)>();
        stream.marks.push((key, end as u32));
        if end >= CHUNK_BYTES - FULL_CHUNK_REST {
            self.chunk(i);
        }
    }

    /// Flushes a buffer to its file.
    #[cold]
    fn flush(&mut self, i: usize) {
        let stream = &mut self.streams[i];
        if let Some(tap) = &self.options.tap {
            tap.add(stream.shape, stream.buffer.bytes());
            stream.bytes += stream.buffer.len() as u64;
            stream.buffer.clear();
        } else if self.options.format == Format::Packed {
            let Stream { path, ref fields, opened, shape, .. } = *stream;
            let packed = PackedStream { path, fields, opened, shape };
            for writer in &mut self.writers {
                let rows = PackedRows::new(stream.buffer.bytes());
                if let Err(e) = writer.write(&packed, rows) {
                    self.error.get_or_insert(e);
                }
            }
            stream.bytes += stream.buffer.len() as u64;
            stream.buffer.clear();
        } else if let Some(live) = &self.options.live {
            stream.flush_live(&self.options, live);
        } else {
            stream.flush(&self.options, &mut self.error, PIECE);
        }
    }

    /// Writes all buffered rows to their files.
    pub fn write_out(&mut self) {
        for i in 0..self.streams.len() {
            let Some(stream) = self.streams.get_mut(i) else { return };
            if !stream.enabled || stream.buffer.len() == 0 {
                continue;
            }
            if self.options.tap.is_some()
                || self.options.format == Format::Packed
                || self.options.live.is_some()
            {
                self.flush(i);
            } else {
                stream.flush(&self.options, &mut self.error, 1);
            }
        }
        for writer in &mut self.writers {
            if let Err(e) = writer.flush() {
                self.error.get_or_insert(e);
            }
        }
    }

    /// Returns the first error of any file since the last call.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Rows and bytes by stream, in order of their first rows.
    pub fn counts(&self) -> Vec<StreamCount> {
        let count = |s: &Stream| StreamCount {
            path: s.path,
            rows: s.rows - s.live.discarded,
            bytes: s.bytes + s.buffer.len() as u64,
        };
        self.streams.iter().filter(|s| s.enabled).map(count).collect()
    }

    /// Rows of a stream that are not yet written to its file, for tests.
    pub fn pending(&self, path: &str) -> &[u8] {
        self.streams.iter().find(|s| s.path == path).map_or(&[], |s| s.buffer.bytes())
    }

    /// Writes all buffered rows and the footers.
    pub fn close(&mut self) -> io::Result<()> {
        if self.options.format == Format::Packed {
            for i in 0..self.streams.len() {
                if self.streams[i].enabled {
                    self.flush(i);
                }
            }
            if self.options.live.as_ref().is_some_and(|live| live.rotates) {
                self.complete_all(true);
            }
            for writer in &mut self.writers {
                if let Err(e) = writer.close(self.now) {
                    self.error.get_or_insert(e);
                }
            }
        }
        if self.options.live.is_some() && self.options.format != Format::Packed {
            self.complete_all(true);
            self.streams.clear();
            self.slots = [0; SLOTS];
            return self.check();
        }
        let now = stamp(self.now);
        for stream in self.streams.iter_mut().filter(|s| s.enabled) {
            if self.options.format == Format::Tsv && self.options.tap.is_none() {
                stream.buffer.extend(format!("#close\t{now}\n").as_bytes());
            }
            stream.flush(&self.options, &mut self.error, 1);
            stream.file = None;
        }
        self.streams.clear();
        self.slots = [0; SLOTS];
        self.check()
    }

    #[inline]
    fn stream(&mut self, slot: usize, shape: Shape, opened: Time) -> usize {
        let path = shape.path;
        let mut at = slot;
        loop {
            match self.slots[at] {
                0 => return self.open(at, shape, opened),
                i => {
                    let i = usize::from(i) - 1;
                    let known = self.streams[i].path;
                    if std::ptr::eq(known, path) || known == path {
                        return i;
                    }
                }
            }
            at = (at + 1) % SLOTS;
        }
    }

    #[cold]
    fn open(&mut self, at: usize, shape: Shape, opened: Time) -> usize {
        let Shape { path, opt_in, fields } = shape;
        let enabled = self.options.selection.has(path, opt_in);
        let mut buffer = Buffer::default();
        let is_live = self.options.live.is_some();
        let writes_file = self.key.is_none() && self.options.tap.is_none() && !is_live;
        let mut fields = fields.all();
        fields.retain(|f| !f.optional || self.options.has_column(f.name));
        if enabled && writes_file && self.options.format == Format::Tsv {
            buffer.extend(&header(path, &fields, opened));
        }
        let i = self.streams.len();
        let mut stream = Stream {
            path,
            shape,
            fields,
            enabled,
            file: None,
            buffer,
            marks: Vec::new(),
            opened,
            rows: 0,
            bytes: 0,
            live: LiveState::default(),
        };
        if enabled && writes_file && self.options.format != Format::Packed {
            stream.create(&self.options, &mut self.error);
        }
        self.streams.push(stream);
        self.slots[at] = (i + 1) as u8;
        i
    }
}

#[cfg(test)]
mod tests;
