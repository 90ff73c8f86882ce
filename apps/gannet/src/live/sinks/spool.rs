//! The spool of a sink: rows on disk while its target is unavailable.
//!
//! A spool is a folder of segments: files of rows with increasing numbers. Rows are appended to the newest segment; the
//! oldest segment is sent as a whole and then removed. Segments that remain when the process ends or is killed are sent by
//! the next process: no row is lost, some may arrive twice.

use std::collections::VecDeque;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;

use super::queue::Row;

/// Size in bytes at which a segment is closed.
const SEGMENT_BYTES: u64 = 8 << 20;
/// The number of the first segment. Lower numbers are for rows in transit that are returned to the front.
const FIRST_NUMBER: u64 = 1 << 40;
/// Size of a row's header: the lengths of the line (u32), the key (u16, `NO_KEY` for none) and the log (u16), little-endian.
const HEADER_BYTES: usize = 8;
const NO_KEY: u16 = u16::MAX;

/// A file of rows.
#[derive(Debug)]
struct Segment {
    number: u64,
    bytes: u64,
    rows: u64,
}

/// The spool of one sink.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    /// Maximum number of bytes on disk: beyond it the oldest segments are dropped.
    limit: u64,
    segments: VecDeque<Segment>,
    /// The newest segment, open to append.
    open: Option<File>,
    /// Whether the oldest segment is being sent, and must not be dropped.
    is_sending: bool,
    /// Lock held until the process ends: two processes must not share a spool.
    _lock: File,
}

impl Spool {
    /// Opens the spool in `folder`, including rows of an earlier process.
    ///
    /// # Errors
    /// If the folder cannot be created or read, or another process uses it.
    pub(crate) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process uses this spool")
            }
            fs::TryLockError::Error(error) => error,
        })?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_segment = path.extension().is_some_and(|e| e == "rows");
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            numbers.extend(number.filter(|_| is_segment));
        }
        numbers.sort_unstable();
        let mut spool = Self {
            folder: folder.to_owned(),
            limit,
            segments: VecDeque::new(),
            open: None,
            is_sending: false,
            _lock: lock,
        };
        for number in numbers {
            let bytes = fs::read(spool.path(number))?;
            let (rows, bytes) = (parse(&bytes).len() as u64, bytes.len() as u64);
            spool.segments.push_back(Segment { number, bytes, rows });
        }
        Ok(spool)
    }

    /// Number of rows on disk.
    pub(crate) fn rows(&self) -> u64 {
        self.segments.iter().map(|segment| segment.rows).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Appends rows. Returns the number of rows, the oldest ones, that were dropped because the spool is full.
    ///
    /// # Errors
    /// If the disk is full or broken: then none of the rows is in the spool.
    pub(crate) fn append(&mut self, rows: &[Row]) -> io::Result<u64> {
        let bytes = encode(rows);
        let is_open = self.open.is_some()
            && self.segments.back().is_some_and(|segment| segment.bytes < SEGMENT_BYTES)
            && !(self.is_sending && self.segments.len() == 1);
        if !is_open {
            let number = self.segments.back().map_or(FIRST_NUMBER, |segment| segment.number + 1);
            self.open = Some(File::create_new(self.path(number))?);
            self.segments.push_back(Segment { number, bytes: 0, rows: 0 });
        }
        if let (Some(file), Some(segment)) = (&mut self.open, self.segments.back_mut()) {
            if let Err(error) = file.write_all(&bytes) {
                // An incomplete row must not precede the next ones.
                file.set_len(segment.bytes)?;
                self.open = None;
                return Err(error);
            }
            segment.bytes += bytes.len() as u64;
            segment.rows += rows.len() as u64;
        }
        self.shrink()
    }

    /// Inserts rows before all others: they were in transit when the process ended.
    ///
    /// # Errors
    /// If the disk is full or broken.
    pub(crate) fn prepend(&mut self, rows: &[Row]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let number = self.segments.front().map_or(FIRST_NUMBER, |segment| segment.number) - 1;
        let bytes = encode(rows);
        let path = self.path(number);
        if let Err(error) = fs::write(&path, &bytes) {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        let (rows, bytes) = (rows.len() as u64, bytes.len() as u64);
        self.segments.push_front(Segment { number, bytes, rows });
        Ok(())
    }

    /// The rows of the oldest segment, which stays until [`sent`](Self::sent) or [`unsent`](Self::unsent) is called.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn oldest(&mut self) -> io::Result<Vec<Row>> {
        let Some(segment) = self.segments.front() else { return Ok(Vec::new()) };
        let rows = parse(&fs::read(self.path(segment.number))?);
        self.is_sending = true;
        Ok(rows)
    }

    /// Removes the oldest segment, which was sent or is dropped.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(crate) fn sent(&mut self) -> io::Result<()> {
        self.is_sending = false;
        match self.segments.pop_front() {
            Some(segment) => {
                if self.segments.is_empty() {
                    self.open = None;
                }
                fs::remove_file(self.path(segment.number))
            }
            None => Ok(()),
        }
    }

    /// Keeps the oldest segment, which was not sent.
    pub(crate) fn unsent(&mut self) {
        self.is_sending = false;
    }

    /// Removes the oldest segments beyond the limit, and returns the number of their rows.
    fn shrink(&mut self) -> io::Result<u64> {
        let mut dropped = 0;
        let mut total: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        while total > self.limit && self.segments.len() > usize::from(self.is_sending) + 1 {
            let oldest = usize::from(self.is_sending);
            let Some(segment) = self.segments.remove(oldest) else { break };
            total -= segment.bytes;
            dropped += segment.rows;
            fs::remove_file(self.path(segment.number))?;
        }
        Ok(dropped)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:020}.rows"))
    }
}

fn encode(rows: &[Row]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.iter().map(|row| row.len() + HEADER_BYTES + 16).sum());
    for row in rows {
        // A key that is too long is left out: the row then only goes to another partition.
        let key = row.key.as_deref().filter(|key| key.len() < usize::from(NO_KEY));
        let log = row.log.get(..row.log.len().min(usize::from(NO_KEY))).unwrap_or_default();
        bytes.extend_from_slice(&(row.line.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&key.map_or(NO_KEY, |key| key.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(log.len() as u16).to_le_bytes());
        bytes.extend_from_slice(log.as_bytes());
        bytes.extend_from_slice(key.unwrap_or_default());
        bytes.extend_from_slice(&row.line);
    }
    bytes
}

/// The rows of a segment, up to the first incomplete one, which a killed process left.
fn parse(mut bytes: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    while let Some((row, rest)) = parse_row(bytes) {
        rows.push(row);
        bytes = rest;
    }
    rows
}

fn parse_row(bytes: &[u8]) -> Option<(Row, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [l0, l1, l2, l3, k0, k1, n0, n1] = *head;
    let line = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let key = Some(u16::from_le_bytes([k0, k1])).filter(|key| *key != NO_KEY);
    let (log, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([n0, n1])))?;
    let (key_bytes, rest) = rest.split_at_checked(usize::from(key.unwrap_or(0)))?;
    let (line, rest) = rest.split_at_checked(line)?;
    let log = std::str::from_utf8(log).ok()?;
    let key = key.map(|_| key_bytes.into());
    Some((Row { log: log.into(), key, line: line.into() }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("gannet-spool-{}-{name}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn rows(numbers: std::ops::Range<u32>) -> Vec<Row> {
        let row = |n: u32| Row {
            log: if n.is_multiple_of(2) { "conn" } else { "dns" }.into(),
            key: (!n.is_multiple_of(3)).then(|| format!("C{n}").into_bytes().into()),
            line: format!("{{\"n\":{n}}}\n").into_bytes().into(),
        };
        numbers.map(row).collect()
    }

    /// All rows in the order in which they would be sent.
    fn drain(spool: &mut Spool) -> Vec<Row> {
        let mut all = Vec::new();
        while !spool.is_empty() {
            all.extend(spool.oldest().unwrap());
            spool.sent().unwrap();
        }
        all
    }

    #[test]
    fn rows_are_kept_after_the_process() {
        let folder = Folder::new("left");
        let mut spool = Spool::open(&folder.0, 1 << 30).unwrap();
        assert_eq!(spool.append(&rows(2..5)).unwrap(), 0);
        spool.append(&rows(5..7)).unwrap();
        spool.prepend(&rows(0..2)).unwrap();
        assert_eq!(spool.rows(), 7);
        assert!(Spool::open(&folder.0, 1).is_err(), "a second process");
        drop(spool);
        let mut spool = Spool::open(&folder.0, 1 << 30).unwrap();
        assert_eq!(spool.rows(), 7);
        spool.append(&rows(7..9)).unwrap();
        assert_eq!(drain(&mut spool), rows(0..9));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "the lock alone");
    }

    #[test]
    fn rows_appended_during_sending_are_kept() {
        let folder = Folder::new("more");
        let mut spool = Spool::open(&folder.0, 1 << 30).unwrap();
        spool.append(&rows(0..2)).unwrap();
        assert_eq!(spool.oldest().unwrap(), rows(0..2));
        spool.append(&rows(2..4)).unwrap();
        spool.sent().unwrap();
        spool.append(&rows(4..5)).unwrap();
        assert_eq!(drain(&mut spool), rows(2..5));
        spool.append(&rows(5..6)).unwrap();
        assert_eq!(drain(&mut spool), rows(5..6));
    }

    #[test]
    fn a_truncated_segment_has_its_complete_rows() {
        let all = rows(0..3);
        let bytes = encode(&all);
        let ends: Vec<usize> = (1..=3).map(|n| encode(&all[..n]).len()).collect();
        for cut in 0..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(parse(&bytes[..cut]), all[..whole], "{cut} bytes");
        }
    }

    #[test]
    fn a_full_spool_drops_and_counts_the_oldest_rows() {
        let folder = Folder::new("full");
        let mut spool = Spool::open(&folder.0, 3 * SEGMENT_BYTES).unwrap();
        let row = |n: u8| Row { log: "x".into(), key: None, line: vec![n; 1 << 20].into() };
        let mut dropped = 0;
        for n in 0..100 {
            dropped += spool.append(&[row(n)]).unwrap();
        }
        assert!(spool.rows() < 30 && dropped > 70);
        assert_eq!(spool.rows() + dropped, 100);
        let left = drain(&mut spool);
        assert_eq!(u64::from(left[0].line[0]), dropped);
        assert_eq!(left.last().unwrap().line[0], 99);
    }
}
