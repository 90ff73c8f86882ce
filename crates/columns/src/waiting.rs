//! Rows that wait for their row group.

use std::collections::VecDeque;
use std::fs;
use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

use crate::whole_file::named;

/// Most bytes of waiting rows in memory, those of all logs together. Beyond, the oldest wait in a file.
///
/// No row group ends because of it: which log has how many rows at a time depends on the number of
/// threads, and files must not.
pub(crate) const MEMORY: usize = 8 << 20;
/// Bytes of a piece, which is in memory or in the file as a whole.
pub(crate) const PIECE: usize = 64 << 10;
/// Bytes of the length before a row.
const PREFIX: usize = size_of::<u32>();

/// Where the rows of all logs wait.
pub(crate) struct Waiting {
    /// Most bytes in memory.
    most: usize,
    /// Folder of the file; without one all rows are in memory.
    folder: Option<PathBuf>,
    /// Bytes in memory.
    used: usize,
    /// Pieces made so far.
    made: u64,
    spare: Vec<Vec<u8>>,
    overflow: Option<Overflow>,
}

/// The waiting rows of one file, with their lengths, one after another.
#[derive(Default)]
pub(crate) struct Rows {
    /// The first pieces, in the file.
    away: Vec<u64>,
    /// The others: all but the last one are full.
    pieces: VecDeque<Piece>,
    /// Numbers of the rows in their log, as first ones and how many follow each other.
    numbers: Vec<(i64, u32)>,
    /// How many there are.
    pub(crate) len: usize,
    /// Their bytes without the lengths.
    pub(crate) bytes: usize,
}

struct Piece {
    /// How many pieces of any log were made before.
    age: u64,
    bytes: Vec<u8>,
}

/// A file without a name, of places for a piece each.
struct Overflow {
    file: File,
    path: PathBuf,
    has_name: bool,
    places: u64,
    free: Vec<u64>,
}

impl Rows {
    /// The numbers of the rows in their log.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.numbers.iter().flat_map(|(first, len)| (0..i64::from(*len)).map(move |n| first + n))
    }

    /// When its oldest full piece in memory was made.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.pieces.front().filter(|piece| piece.bytes.len() == PIECE).map(|piece| piece.age)
    }

    fn number(&mut self, first: i64, rows: u32) {
        self.len += rows as usize;
        if let Some((known, len)) = self.numbers.last_mut()
            && *known + i64::from(*len) == first
            && let Some(sum) = len.checked_add(rows)
        {
            *len = sum;
        } else {
            self.numbers.push((first, rows));
        }
    }
}

impl Waiting {
    /// At most that many bytes are in memory, if there is a folder for others.
    pub(crate) fn new(most: usize, folder: Option<&Path>) -> Self {
        let (folder, spare) = (folder.map(Path::to_owned), Vec::new());
        Self { most, folder, used: 0, made: 0, spare, overflow: None }
    }

    /// Bytes in memory, and places for pieces in the file.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> u64 {
        self.overflow.as_ref().map_or(0, |overflow| overflow.places)
    }

    /// Whether there are more rows in memory than there may be.
    pub(crate) fn is_over(&self) -> bool {
        self.used > self.most && self.folder.is_some()
    }

    /// Appends rows with their lengths before them, which have successive numbers.
    pub(crate) fn append(&mut self, to: &mut Rows, mut bytes: &[u8], rows: u32, first: i64) {
        to.number(first, rows);
        to.bytes += bytes.len() - rows as usize * PREFIX;
        self.used += bytes.len();
        while !bytes.is_empty() {
            let last = to.pieces.back_mut().filter(|piece| piece.bytes.len() < PIECE);
            let Some(piece) = last else {
                self.made += 1;
                let memory = self.spare.pop();
                let memory = memory.unwrap_or_else(|| Vec::with_capacity(PIECE));
                to.pieces.push_back(Piece { age: self.made, bytes: memory });
                continue;
            };
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE - piece.bytes.len()));
            piece.bytes.extend_from_slice(now);
            bytes = rest;
        }
    }

    /// Moves the oldest full piece to the file.
    pub(crate) fn move_oldest(&mut self, rows: &mut Rows) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if rows.oldest().is_none() {
            return Ok(());
        }
        let Some(Piece { mut bytes, .. }) = rows.pieces.pop_front() else { return Ok(()) };
        let overflow = match &mut self.overflow {
            Some(overflow) => overflow,
            none => none.insert(Overflow::create(folder)?),
        };
        rows.away.push(overflow.put(&bytes)?);
        self.used -= bytes.len();
        bytes.clear();
        self.spare.push(bytes);
        Ok(())
    }

    /// Copies all rows with their lengths before them; returns how many bytes they have.
    pub(crate) fn copy(&mut self, rows: &Rows, to: &mut Vec<u8>) -> io::Result<usize> {
        to.clear();
        to.reserve(rows.bytes + rows.len * PREFIX);
        if let Some(overflow) = &mut self.overflow {
            rows.away.iter().try_for_each(|place| overflow.read(*place, to))?;
        }
        rows.pieces.iter().for_each(|piece| to.extend_from_slice(&piece.bytes));
        Ok(to.len())
    }

    /// Gives the memory of rows, and their places in the file, back for other rows.
    pub(crate) fn free(&mut self, rows: Rows) {
        if let Some(overflow) = &mut self.overflow {
            overflow.free.extend(rows.away);
        }
        for Piece { mut bytes, .. } in rows.pieces {
            self.used -= bytes.len();
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

impl Overflow {
    fn create(folder: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".rows-{}-{next}.tmp", std::process::id()));
        let create = || {
            fs::create_dir_all(folder)?;
            File::options().read(true).write(true).create(true).truncate(true).open(&path)
        };
        let file = create().map_err(|e| named(&path, &e))?;
        // Where an open file keeps its name, it is removed at the end.
        let has_name = fs::remove_file(&path).is_err();
        Ok(Self { file, path, has_name, places: 0, free: Vec::new() })
    }

    /// Writes a piece and returns its place.
    fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        });
        let written = self.seek(place).and_then(|()| self.file.write_all(bytes));
        written.map_err(|e| named(&self.path, &e))?;
        Ok(place)
    }

    /// Appends the piece of a place.
    fn read(&mut self, place: u64, to: &mut Vec<u8>) -> io::Result<()> {
        let read = self.seek(place);
        let read = read.and_then(|()| (&self.file).take(PIECE as u64).read_to_end(to));
        let is_whole =
            |len| if len == PIECE { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
        read.and_then(is_whole).map_err(|e| named(&self.path, &e))
    }

    fn seek(&mut self, place: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(place * PIECE as u64)).map(drop)
    }
}

impl Drop for Overflow {
    fn drop(&mut self) {
        if self.has_name {
            let _ = fs::remove_file(&self.path);
        }
    }
}
