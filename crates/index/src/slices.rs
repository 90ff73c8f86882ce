//! Reading of selected packets from a capture.

use std::fs::File;
use std::io;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use gannet_capture::Compression;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_capture::unpacked_from;

use crate::error::Error;
use crate::file::Index;
use crate::restarts::Point;

/// Reads selected packets of a capture without reading those between.
#[derive(Debug)]
pub struct Slices<'a> {
    capture: &'a Path,
    index: &'a mut Index,
}

impl<'a> Slices<'a> {
    /// A reader of a capture with its index.
    pub fn new(capture: &'a Path, index: &'a mut Index) -> Self {
        Self { capture, index }
    }

    /// Calls `each` with the packets of these numbers, which must be in order. Packets have their numbers in the
    /// capture.
    pub fn read<E: From<Error>>(
        &mut self,
        numbers: &[u64],
        mut each: impl FnMut(&Packet<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.index.is_seekable() {
            let reader = Reader::open(self.capture).map_err(Error::from)?;
            return read_selected(reader, 0, numbers, &mut each);
        }
        let mut rest = numbers;
        let head = self.index.head()?;
        let mut decompression = match self.index.compression() {
            Some(compression) => Some((compression, self.index.points()?, None)),
            None => None,
        };
        while let Some(next) = rest.first() {
            let group = self.index.group(*next)?;
            let (group_numbers, after) =
                rest.split_at(rest.partition_point(|n| *n < group.next).max(1));
            let records: Box<dyn Read + Send> = match &mut decompression {
                None => {
                    let io_error = |e| Error::Io(self.capture.to_owned(), e);
                    let mut file = File::open(self.capture).map_err(io_error)?;
                    file.seek(SeekFrom::Start(group.from)).map_err(io_error)?;
                    Box::new(file)
                }
                Some((compression, points, last)) => {
                    let decompressed =
                        self.decompressed(*compression, points, last.take(), group.from)?;
                    Box::new(last.insert(decompressed).clone())
                }
            };
            let records = records.take(group.to.saturating_sub(group.from));
            let input = Box::new(Cursor::new(head.clone()).chain(records));
            let reader = Reader::from_read(input, self.capture).map_err(Error::from)?;
            read_selected(reader, group.first.saturating_sub(1), group_numbers, &mut each)?;
            rest = after;
        }
        Ok(())
    }
}

impl Slices<'_> {
    /// Returns the decompressed bytes from an offset on: continues `last`, or begins at the last restart point before
    /// it.
    fn decompressed(
        &mut self,
        compression: Compression,
        points: &[Point],
        last: Option<Decompressed>,
        from: u64,
    ) -> Result<Decompressed, Error> {
        let io_error = |e| Error::Io(self.capture.to_owned(), e);
        let before = points.partition_point(|point| point.offset <= from);
        let point = before.checked_sub(1).and_then(|at| points.get(at));
        let begin = point.map_or(0, |point| point.offset);
        let mut decompressed = match last.filter(|last| (begin..=from).contains(&last.at())) {
            Some(last) => last,
            None => {
                let point = point.map(|point| self.index.restart(point)).transpose()?;
                let file = File::open(self.capture).map_err(io_error)?;
                let bytes = unpacked_from(file, compression, point.as_ref()).map_err(io_error)?;
                Decompressed(Arc::new(Mutex::new((bytes, begin))))
            }
        };
        let skipped = from - decompressed.at();
        let read = io::copy(&mut decompressed.by_ref().take(skipped), &mut io::sink());
        if read.map_err(io_error)? < skipped {
            return Err(io_error(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(decompressed)
    }
}

/// Decompressed bytes and the offset of the next one; shared with the reader of a group of packets.
#[derive(Clone)]
struct Decompressed(Arc<Mutex<(Box<dyn Read + Send>, u64)>>);

impl Decompressed {
    fn at(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Read for Decompressed {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = shared.0.read(to)?;
        shared.1 += n as u64;
        Ok(n)
    }
}

/// Calls `each` with selected packets of a reader whose first packet has the number `before + 1`.
fn read_selected<E: From<Error>>(
    mut reader: Reader,
    before: u64,
    numbers: &[u64],
    each: &mut impl FnMut(&Packet<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut remaining = numbers.iter().peekable();
    while remaining.peek().is_some() {
        let Some(batch) = reader.next_batch().map_err(Error::from)? else { break };
        for packet in &batch {
            let number = before + packet.number;
            if remaining.next_if(|n| **n == number).is_some() {
                each(&Packet { number, ..packet })?;
            }
        }
    }
    Ok(())
}
