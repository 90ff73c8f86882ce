use std::cell::Cell;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::PathBuf;

use gannet_base::Time;

use crate::buffer::Buffer;
use crate::buffer::format;
use crate::collect::CHUNK;
use crate::collect::CHUNK_REST;
use crate::collect::COPIED;
use crate::collect::Key;
use crate::collect::Rows;
use crate::collect::Shape;
use crate::json::JsonTimes;
use crate::json::civil;
use crate::row::Cut;
use crate::row::Field;
use crate::row::Row;
use crate::row::slot;
use crate::selection::Selection;
use crate::tap::Tap;

/// Text format of the logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Zeek's tab-separated values, with its header lines.
    #[default]
    Tsv,
    /// One JSON object a line.
    Json(JsonTimes),
}

/// How and where logs are written.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folder of the log files; it must exist. `None` formats the rows and throws them away.
    pub dir: Option<PathBuf>,
    /// Text format.
    pub format: Format,
    /// Streams to write.
    pub selection: Selection,
    /// Optional columns to write, by name.
    pub columns: Vec<String>,
    /// Takes the rows, and no file is written.
    pub tap: Option<Tap>,
}

impl Options {
    /// Whether an optional column is written.
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|c| c == name)
    }
}

/// How much of one stream was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamCount {
    /// Name of the stream.
    pub path: &'static str,
    /// Rows written.
    pub rows: u64,
    /// Bytes written, header lines included.
    pub bytes: u64,
}

/// A buffer goes to its file when it holds this much, and in pieces of just this size, so that they
/// lie in a file as they lie in memory. Kernels keep what was written in pieces like those it came
/// in: from 128 KiB on they have to look for memory that nobody used for long, which on virtual
/// machines costs more than all copying, and pieces that cross the borders of pages cost twice.
const PIECE: usize = 64 << 10;

const SLOTS: usize = 256;

/// Chunks whose memory is kept for others.
const SPARE: usize = 16;

/// All log streams of a run: one buffered file each, opened at its first row.
///
/// Writing never fails where rows are made; the first error of a file is kept for
/// [`check`](Self::check) and [`close`](Self::close) to report.
pub struct Logs {
    options: Options,
    streams: Vec<Stream>,
    /// Open-addressed by [`slot`]: index into `streams` plus one, 0 for none.
    slots: [u8; SLOTS],
    now: Time,
    error: Option<io::Error>,
    /// Length of a buffer at which something is to be done about it.
    full_at: usize,
    /// Rows are not written but collected, with this key.
    key: Option<Key>,
    /// Bytes collected.
    held: usize,
    /// Rows collected that make a chunk.
    chunks: Vec<Rows>,
    /// Memory of chunks to come.
    spare: Vec<Rows>,
    tickets: Cell<u64>,
}

struct Stream {
    path: &'static str,
    shape: Shape,
    enabled: bool,
    file: Option<File>,
    buffer: Buffer,
    /// Keys and line ends of the rows in `buffer`, where rows are collected.
    marks: Vec<(Key, u32)>,
    /// When the first row came, of those in `buffer` where rows are collected.
    opened: Time,
    rows: u64,
    bytes: u64,
}

impl Logs {
    /// Nothing is opened before the first row.
    pub fn new(options: Options) -> Self {
        Self {
            full_at: if options.tap.is_some() { 0 } else { PIECE },
            options,
            streams: Vec::new(),
            slots: [0; SLOTS],
            now: Time::ZERO,
            error: None,
            key: None,
            held: 0,
            chunks: Vec::new(),
            spare: Vec::new(),
            tickets: Cell::new(0),
        }
    }

    /// Rows are formatted and collected with their [keys](Self::set_key), and no file is opened:
    /// for one of several parts of an analysis, whose rows are [taken](Self::take) and
    /// [added](Self::add_at) to the logs of the whole.
    pub fn collecting(options: Options) -> Self {
        Self { key: Some(Key::default()), full_at: 0, ..Self::new(options) }
    }

    /// The place of the rows to come, where rows are collected.
    #[inline]
    pub fn set_key(&mut self, key: Key) {
        if let Some(place) = &mut self.key {
            *place = key;
        }
    }

    /// The place of the next row; `None` unless rows are collected.
    pub fn key(&self) -> Option<Key> {
        self.key
    }

    /// A number greater than all before.
    pub fn ticket(&self) -> u64 {
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        ticket
    }

    /// Bytes of the rows collected, and of their keys.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The rows collected so far, those of each stream in order.
    pub fn take(&mut self) -> Vec<Rows> {
        self.held = 0;
        for i in 0..self.streams.len() {
            let stream = &mut self.streams[i];
            let few = stream.buffer.len() <= COPIED;
            match stream.marks.is_empty() {
                true => {}
                false if few => {
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

    /// Rows to come use the memory of these, which were written.
    pub fn reuse(&mut self, rows: Vec<Rows>) {
        let room = SPARE.saturating_sub(self.spare.len());
        self.spare.extend(rows.into_iter().filter(Rows::is_chunk).take(room));
    }

    /// The rows collected of a stream are to be handed on.
    #[cold]
    fn chunk(&mut self, i: usize) {
        let stream = &mut self.streams[i];
        let (bytes, mut marks) = match self.spare.pop() {
            Some(rows) => (rows.bytes, rows.marks),
            None => (vec![0; CHUNK], Vec::with_capacity(stream.marks.len())),
        };
        marks.clear();
        self.chunks.push(Rows {
            shape: stream.shape,
            opened: stream.opened,
            bytes: stream.buffer.exchange(bytes),
            marks: std::mem::replace(&mut stream.marks, marks),
        });
    }

    /// Where these rows, and all others of their stream, are [added](Self::add_at).
    pub fn place(&mut self, rows: &Rows) -> usize {
        self.stream(slot(rows.shape.path), rows.shape, rows.opened)
    }

    /// Adds some of the rows that another one collected, whose [place](Self::place) is known.
    #[inline]
    pub fn add_at(&mut self, place: usize, rows: &Rows, which: std::ops::Range<usize>) {
        let n = which.len() as u64;
        self.add_lines(place, rows.lines(which), n);
    }

    /// Formats a row, line end included; `None` if its stream is not wanted.
    pub fn line<R: Row>(&self, row: &R) -> Option<(Vec<u8>, Cut)> {
        let mut line = Buffer::default();
        self.options.selection.wants::<R>().then(|| {
            let cut = format(self.options.format, row, &mut line);
            (line.into_bytes(), cut)
        })
    }

    /// Writes a row that was formatted before.
    pub fn write_line<R: Row>(&mut self, line: &[u8]) {
        let i = self.stream(const { slot(R::PATH) }, Shape::of::<R>(), self.now);
        self.add_lines(i, line, 1);
    }

    #[inline]
    fn add_lines(&mut self, i: usize, lines: &[u8], rows: u64) {
        let Some(stream) = self.streams.get_mut(i) else { return };
        if stream.enabled {
            stream.rows += rows;
            stream.buffer.extend(lines);
            if stream.buffer.len() >= self.full_at {
                self.filled(i);
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

    /// Sets the packet time that header and footer lines show.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// The packet time set last.
    pub fn time(&self) -> Time {
        self.now
    }

    /// Writes a row; returns what had to be cut to the stream's limits.
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
            self.filled(i);
        }
        cut
    }

    /// Writes a row as [`write`](Self::write) does, but never keeps it: its columns go from where they
    /// are to where they are written, if the row is made right before. For logs that have a row or
    /// more for every connection. `None` where there is not enough room, or another format: then it
    /// is to be written as others are.
    #[inline(always)]
    pub fn write_in_place<R: Row>(&mut self, row: &R) -> Option<Cut> {
        let i = self.stream(const { slot(R::PATH) }, Shape::of::<R>(), self.now);
        let stream = &mut self.streams[i];
        if self.options.format != Format::Tsv || !stream.enabled {
            return None;
        }
        let cut = stream.buffer.tsv(row)?;
        stream.rows += 1;
        if stream.buffer.len() >= self.full_at {
            self.filled(i);
        }
        Some(cut)
    }

    /// A buffer goes to its file, or a row to the others that are collected.
    #[inline(never)]
    fn filled(&mut self, i: usize) {
        let stream = &mut self.streams[i];
        let Some(key) = self.key else {
            if let Some(tap) = &self.options.tap {
                tap.add(stream.shape, stream.buffer.bytes());
                stream.bytes += stream.buffer.len() as u64;
                return stream.buffer.clear();
            }
            return stream.flush(&self.options, &mut self.error, PIECE);
        };
        let end = stream.buffer.len();
        let before = stream.marks.last().map_or(0, |m| m.1 as usize);
        if before == 0 {
            stream.opened = self.now;
        }
        self.held += end - before + size_of::<(Key, u32)>();
        stream.marks.push((key, end as u32));
        if end >= CHUNK - CHUNK_REST {
            self.chunk(i);
        }
    }

    /// The first error of any file since the last call.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Rows and bytes by stream, in order of their first rows.
    pub fn counts(&self) -> Vec<StreamCount> {
        let count = |s: &Stream| StreamCount {
            path: s.path,
            rows: s.rows,
            bytes: s.bytes + s.buffer.len() as u64,
        };
        self.streams.iter().filter(|s| s.enabled).map(count).collect()
    }

    /// What one stream holds that has not gone to its file yet: for tests of rows.
    pub fn pending(&self, path: &str) -> &[u8] {
        self.streams.iter().find(|s| s.path == path).map_or(&[], |s| s.buffer.bytes())
    }

    /// Writes footers and everything that is still buffered.
    pub fn close(&mut self) -> io::Result<()> {
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
        let has_header = self.key.is_none() && self.options.tap.is_none();
        if enabled && has_header && self.options.format == Format::Tsv {
            let mut fields = fields();
            fields.retain(|f| !f.optional || self.options.has_column(f.name));
            buffer.extend(&header(path, &fields, opened));
        }
        let i = self.streams.len();
        self.streams.push(Stream {
            path,
            shape,
            enabled,
            file: None,
            buffer,
            marks: Vec::new(),
            opened,
            rows: 0,
            bytes: 0,
        });
        self.slots[at] = (i + 1) as u8;
        i
    }
}

impl Stream {
    /// Writes what is in the buffer, in whole pieces of `unit` bytes.
    #[cold]
    fn flush(&mut self, options: &Options, error: &mut Option<io::Error>, unit: usize) {
        let whole = self.buffer.len() / unit * unit;
        self.bytes += whole as u64;
        if let Some(dir) = &options.dir {
            let path = || dir.join(format!("{}.log", self.path));
            let file = self.file.take().map_or_else(|| File::create(path()), Ok);
            let done = file.and_then(|mut file| {
                for piece in self.buffer.bytes()[..whole].chunks(PIECE) {
                    file.write_all(piece)?;
                }
                self.file = Some(file);
                Ok(())
            });
            if let Err(e) = done {
                let named = io::Error::new(e.kind(), format!("{}: {e}", path().display()));
                error.get_or_insert(named);
            }
        }
        self.buffer.drop_first(whole);
    }
}

fn header(path: &str, fields: &[Field], now: Time) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |name: &str, values: &mut dyn Iterator<Item = String>| {
        out.extend_from_slice(name.as_bytes());
        for v in values {
            out.push(b'\t');
            out.extend_from_slice(v.as_bytes());
        }
        out.push(b'\n');
    };
    let one = |v: &str| std::iter::once(v.to_owned());
    line("#separator \\x09", &mut std::iter::empty());
    line("#set_separator", &mut one(","));
    line("#empty_field", &mut one("(empty)"));
    line("#unset_field", &mut one("-"));
    line("#path", &mut one(path));
    line("#open", &mut one(&stamp(now)));
    line("#fields", &mut fields.iter().map(|f| f.name.to_owned()));
    line("#types", &mut fields.iter().map(|f| f.ty.to_string()));
    out
}

/// `2026-11-21-08-47-00`, UTC.
fn stamp(t: Time) -> String {
    let s = t.as_nanos().div_euclid(1_000_000_000);
    let (y, m, d) = civil(s.div_euclid(86_400));
    let s = s.rem_euclid(86_400);
    format!("{y:04}-{m:02}-{d:02}-{:02}-{:02}-{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Addr;
    use gannet_base::ConnId;

    crate::row! {
        /// For the tests.
        struct Sample = "sample" {
            /// When.
            ts: Time = "ts",
            /// Who.
            id: ConnId = "id",
            /// How many.
            n: Option<u64> = "n",
        }
    }

    fn row() -> Sample {
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            orig_p: 1024,
            resp_h: Addr::v4([10, 0, 0, 2]),
            resp_p: 80,
        };
        Sample { ts: Time::from_secs(1), id, n: None }
    }

    fn written(format: Format, name: &str) -> String {
        let dir = std::env::temp_dir().join(format!("gannet-log-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut logs = Logs::new(Options { dir: Some(dir.clone()), format, ..Options::default() });
        logs.set_time(Time::from_secs(86_400));
        assert_eq!(logs.write(&row()), Cut::default());
        logs.close().unwrap();
        let text = std::fs::read_to_string(dir.join("sample.log")).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        text
    }

    #[test]
    fn tsv_file_to_the_byte() {
        assert_eq!(
            written(Format::Tsv, "tsv"),
            "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
             #path\tsample\n#open\t1970-01-02-00-00-00\n\
             #fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tn\n\
             #types\ttime\taddr\tport\taddr\tport\tcount\n\
             1.000000\t10.0.0.1\t1024\t10.0.0.2\t80\t-\n#close\t1970-01-02-00-00-00\n"
        );
    }

    #[test]
    fn json_file_has_no_header() {
        assert_eq!(
            written(Format::Json(JsonTimes::Epoch), "json"),
            "{\"ts\":1.0,\"id.orig_h\":\"10.0.0.1\",\"id.orig_p\":1024,\
             \"id.resp_h\":\"10.0.0.2\",\"id.resp_p\":80}\n"
        );
    }

    crate::row! {
        /// For the tests.
        struct Longer = "longer" {
            n: u64 = "n",
            name: crate::Extra<Option<&'static str>> = "name",
        }
    }

    #[test]
    fn optional_columns_are_there_or_not() {
        for (columns, name, text) in [
            (vec![], crate::Extra(None), "#fields\tn\n#types\tcount\n7\n"),
            (
                vec!["name".to_owned()],
                crate::Extra(Some(None)),
                "#fields\tn\tname\n#types\tcount\tstring\n7\t-\n",
            ),
        ] {
            let mut logs = Logs::new(Options { columns, ..Options::default() });
            logs.write(&Longer { n: 7, name });
            let is = String::from_utf8_lossy(logs.pending("longer")).into_owned();
            assert!(is.ends_with(text), "{is}");
        }
    }

    #[test]
    fn collected_rows_are_added_by_their_keys() {
        let mut part = Logs::collecting(Options::default());
        part.set_time(Time::from_secs(86_400));
        for packet in [3, 4] {
            part.set_key(Key { packet, due: Time::MAX, tie: 0 });
            part.write(&row());
        }
        assert!(part.held() > 0);
        let rows = part.take();
        assert_eq!((part.held(), part.take().len()), (0, 0));
        let places: Vec<_> = rows[0].marks.iter().map(|m| m.0.packet).collect();
        assert_eq!((rows.len(), rows[0].shape.path, places), (1, "sample", vec![3, 4]));
        let mut whole = Logs::new(Options::default());
        let mut alone = Logs::new(Options::default());
        alone.set_time(Time::from_secs(86_400));
        alone.write(&row());
        let place = whole.place(&rows[0]);
        whole.add_at(place, &rows[0], 1..2);
        assert_eq!(whole.pending("sample"), alone.pending("sample"), "with the header");
        whole.add_at(place, &rows[0], 0..1);
        let (line, _) = whole.line(&row()).unwrap();
        whole.write_line::<Sample>(&line);
        alone.write(&row());
        alone.write(&row());
        assert_eq!(whole.pending("sample"), alone.pending("sample"));
        assert_eq!(whole.counts(), alone.counts());
    }

    #[test]
    fn pieces_make_the_same_file_as_rows() {
        let dir = std::env::temp_dir().join(format!("gannet-log-{}-pieces", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut logs = Logs::new(Options { dir: Some(dir.clone()), ..Options::default() });
        let mut expected = String::new();
        // Rows longer than a piece among short ones.
        for n in (0..9_000).chain([9_000; 3]) {
            let name = if n == 9_000 { "x".repeat(4_000) } else { "y".to_owned() };
            let row = Wide { n, names: crate::Vector(vec![name; if n == 9_000 { 90 } else { 1 }]) };
            expected += &format!("{n}\t{}\n", row.names.0.join(","));
            logs.write(&row);
        }
        logs.close().unwrap();
        let text = std::fs::read_to_string(dir.join("wide.log")).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let lines: String = text
            .lines()
            .filter(|l| !l.starts_with('#'))
            .fold(String::new(), |all, l| all + l + "\n");
        assert!(lines == expected && text.len() > 5 * PIECE);
    }

    crate::row! {
        /// For the tests.
        struct Wide = "wide" {
            n: u64 = "n",
            names: crate::Vector<String> = "names",
        }
    }

    #[test]
    fn many_rows_come_in_chunks_whose_memory_is_used_again() {
        let mut part = Logs::collecting(Options::default());
        let mut alone = Logs::new(Options::default());
        let mut whole = Logs::new(Options::default());
        let mut memory: Vec<usize> = Vec::new();
        for n in [1, 5_000, 40, 5_000, 600] {
            for _ in 0..n {
                assert_eq!(part.write(&row()), Cut::default());
                alone.write(&row());
            }
            let taken = part.take();
            let rows: usize = taken.iter().map(|r| r.marks.len()).sum();
            assert_eq!((rows, part.held()), (n, 0));
            assert!(taken.iter().all(|r| r.bytes.len() <= CHUNK), "they need not grow");
            for rows in &taken {
                let place = whole.place(rows);
                let (some, others) =
                    (0..rows.marks.len() / 2, rows.marks.len() / 2..rows.marks.len());
                whole.add_at(place, rows, some);
                whole.add_at(place, rows, others);
            }
            let chunks: Vec<_> = taken.iter().filter(|r| r.is_chunk()).collect();
            let at = |r: &&Rows| r.bytes.as_ptr().addr();
            let again = chunks.iter().filter(|r| memory.contains(&at(r))).count();
            assert!(memory.is_empty() || chunks.is_empty() || again > 0);
            memory.extend(chunks.iter().map(at));
            part.reuse(taken);
        }
        assert_eq!(whole.pending("sample"), alone.pending("sample"));
        assert_eq!(whole.counts(), alone.counts());
    }

    #[test]
    fn a_tap_gets_rows_of_all_streams_in_their_order() {
        let tap = Tap::default();
        let mut logs = Logs::new(Options { tap: Some(tap.clone()), ..Options::default() });
        logs.write(&row());
        logs.write(&Longer { n: 7, name: crate::Extra(None) });
        logs.write_line::<Sample>(b"x\n");
        let mut rows = crate::Tapped::default();
        tap.take(&mut rows);
        let texts = |rows: &crate::Tapped| -> Vec<(&str, String)> {
            let text = |r: &crate::TappedRow| &rows.bytes[r.start as usize..][..r.len as usize];
            let named = |r| String::from_utf8_lossy(text(r)).into_owned();
            rows.rows.iter().map(|r| (rows.path(r.stream).unwrap(), named(r))).collect()
        };
        assert_eq!(
            texts(&rows),
            [
                ("sample", "1.000000\t10.0.0.1\t1024\t10.0.0.2\t80\t-".to_owned()),
                ("longer", "7".to_owned()),
                ("sample", "x".to_owned())
            ]
        );
        assert_eq!(rows.fields(0).len(), 6);
        logs.close().unwrap();
        tap.take(&mut rows);
        assert!(rows.rows.is_empty());
    }

    #[test]
    fn unwanted_streams_cost_no_file() {
        let dir = Some("/nonexistent".into());
        let selection = Selection::of(["conn"]);
        let mut logs = Logs::new(Options { dir, selection, ..Options::default() });
        logs.write(&row());
        assert!(logs.counts().is_empty());
        logs.close().unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let dir = Some("/nonexistent".into());
        let mut logs = Logs::new(Options { dir, ..Options::default() });
        logs.write(&row());
        let error = logs.close().unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/sample.log: "), "{error}");
    }
}
