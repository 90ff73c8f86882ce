//! Rows buffered until their row group is written, in memory and in a temporary file.

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

/// Maximum bytes of buffered rows in memory, of all logs together. Above it, the oldest rows are spilled to a file.
///
/// The limit does not end row groups: how many rows of each log are buffered at a time depends on the number of
/// threads, and the written files must not.
pub(crate) const MAX_MEMORY: usize = 8 << 20;
/// Size of a piece, in bytes. A piece is either in memory or in the file.
pub(crate) const PIECE: usize = 64 << 10;
/// Size of the length prefix of a row, in bytes.
const PREFIX: usize = size_of::<u32>();

/// Buffer of the rows of all logs.
pub(crate) struct RowBuffer {
    /// Maximum bytes in memory.
    max_memory: usize,
    /// Folder of the temporary file; `None` keeps all rows in memory.
    folder: Option<PathBuf>,
    /// Bytes in memory.
    used: usize,
    /// Number of pieces created so far.
    pieces_made: u64,
    /// Empty buffers for new pieces.
    free_buffers: Vec<Vec<u8>>,
    spill_file: Option<SpillFile>,
}

/// The buffered rows of one output file, length-prefixed and concatenated.
#[derive(Default)]
pub(crate) struct BufferedRows {
    /// Slots of the oldest pieces, which are in the temporary file.
    spilled: Vec<u64>,
    /// The pieces in memory; all but the last one are full.
    pieces: VecDeque<Piece>,
    /// Numbers of the rows in their log, as runs of a first number and a length.
    numbers: Vec<(i64, u32)>,
    /// Number of rows.
    pub(crate) len: usize,
    /// Size of the rows in bytes, without the length prefixes.
    pub(crate) bytes: usize,
}

struct Piece {
    /// Number of pieces that were created before this one, in all logs.
    sequence: u64,
    bytes: Vec<u8>,
}

/// An unlinked temporary file of slots, each of which holds a piece.
struct SpillFile {
    file: File,
    path: PathBuf,
    /// Whether the file could not be unlinked while it is open.
    has_name: bool,
    /// Number of slots.
    slots: u64,
    /// Slots without a piece.
    free: Vec<u64>,
}

impl BufferedRows {
    /// The numbers of the rows in their log.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.numbers.iter().flat_map(|(first, len)| (0..i64::from(*len)).map(move |n| first + n))
    }

    /// Sequence number of the oldest full piece in memory.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.pieces.front().filter(|piece| piece.bytes.len() == PIECE).map(|piece| piece.sequence)
    }

    /// Records the numbers of `rows` rows that start at `first`.
    fn append_numbers(&mut self, first: i64, rows: u32) {
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

impl RowBuffer {
    /// An empty buffer that holds at most `max_memory` bytes in memory if it has a folder for the temporary file.
    pub(crate) fn new(max_memory: usize, folder: Option<&Path>) -> Self {
        let (folder, free_buffers) = (folder.map(Path::to_owned), Vec::new());
        Self { max_memory, folder, used: 0, pieces_made: 0, free_buffers, spill_file: None }
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Number of slots of the temporary file.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> u64 {
        self.spill_file.as_ref().map_or(0, |spill_file| spill_file.slots)
    }

    /// Whether rows are to be spilled.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.used > self.max_memory && self.folder.is_some()
    }

    /// Appends `rows` length-prefixed rows with consecutive numbers from `first`.
    pub(crate) fn append(
        &mut self,
        to: &mut BufferedRows,
        mut bytes: &[u8],
        rows: u32,
        first: i64,
    ) {
        to.append_numbers(first, rows);
        to.bytes += bytes.len() - rows as usize * PREFIX;
        self.used += bytes.len();
        while !bytes.is_empty() {
            let last = to.pieces.back_mut().filter(|piece| piece.bytes.len() < PIECE);
            let Some(piece) = last else {
                self.pieces_made += 1;
                let buffer = self.free_buffers.pop();
                let buffer = buffer.unwrap_or_else(|| Vec::with_capacity(PIECE));
                to.pieces.push_back(Piece { sequence: self.pieces_made, bytes: buffer });
                continue;
            };
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE - piece.bytes.len()));
            piece.bytes.extend_from_slice(now);
            bytes = rest;
        }
    }

    /// Moves the oldest full piece of `rows` to the temporary file.
    pub(crate) fn spill_oldest(&mut self, rows: &mut BufferedRows) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if rows.oldest().is_none() {
            return Ok(());
        }
        let Some(Piece { mut bytes, .. }) = rows.pieces.pop_front() else { return Ok(()) };
        let spill_file = match &mut self.spill_file {
            Some(spill_file) => spill_file,
            none => none.insert(SpillFile::create(folder)?),
        };
        rows.spilled.push(spill_file.write(&bytes)?);
        self.used -= bytes.len();
        bytes.clear();
        self.free_buffers.push(bytes);
        Ok(())
    }

    /// Copies all rows, length-prefixed, into `to`, whose content is replaced; returns their size in bytes.
    pub(crate) fn copy(&mut self, rows: &BufferedRows, to: &mut Vec<u8>) -> io::Result<usize> {
        to.clear();
        to.reserve(rows.bytes + rows.len * PREFIX);
        if let Some(spill_file) = &mut self.spill_file {
            rows.spilled.iter().try_for_each(|slot| spill_file.read(*slot, to))?;
        }
        rows.pieces.iter().for_each(|piece| to.extend_from_slice(&piece.bytes));
        Ok(to.len())
    }

    /// Releases the buffers of rows and their slots in the file for other rows.
    pub(crate) fn free(&mut self, rows: BufferedRows) {
        if let Some(spill_file) = &mut self.spill_file {
            spill_file.free.extend(rows.spilled);
        }
        for Piece { mut bytes, .. } in rows.pieces {
            self.used -= bytes.len();
            bytes.clear();
            self.free_buffers.push(bytes);
        }
    }
}

impl SpillFile {
    fn create(folder: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".rows-{}-{next}.tmp", std::process::id()));
        let create = || {
            fs::create_dir_all(folder)?;
            File::options().read(true).write(true).create(true).truncate(true).open(&path)
        };
        let file = create().map_err(|e| named(&path, &e))?;
        // Some systems cannot unlink an open file: it is removed on drop.
        let has_name = fs::remove_file(&path).is_err();
        Ok(Self { file, path, has_name, slots: 0, free: Vec::new() })
    }

    /// Writes a piece to a free slot and returns the slot.
    fn write(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        let written = self.seek(slot).and_then(|()| self.file.write_all(bytes));
        written.map_err(|e| named(&self.path, &e))?;
        Ok(slot)
    }

    /// Appends the piece in a slot to `to`.
    fn read(&mut self, slot: u64, to: &mut Vec<u8>) -> io::Result<()> {
        let read = self.seek(slot);
        let read = read.and_then(|()| (&self.file).take(PIECE as u64).read_to_end(to));
        let is_whole =
            |len| if len == PIECE { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
        read.and_then(is_whole).map_err(|e| named(&self.path, &e))
    }

    fn seek(&mut self, slot: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(slot * PIECE as u64)).map(drop)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if self.has_name {
            let _ = fs::remove_file(&self.path);
        }
    }
}
