//! Some packets of a capture, without those between.

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

/// Reads some packets of a capture.
#[derive(Debug)]
pub struct Slices<'a> {
    capture: &'a Path,
    index: &'a mut Index,
}

impl<'a> Slices<'a> {
    /// Of a capture with its index.
    pub fn new(capture: &'a Path, index: &'a mut Index) -> Self {
        Self { capture, index }
    }

    /// Gives packets by their numbers, which are in order, each with its number in the capture.
    pub fn read<E: From<Error>>(
        &mut self,
        numbers: &[u64],
        mut each: impl FnMut(&Packet<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.index.is_seekable() {
            let reader = Reader::open(self.capture).map_err(Error::from)?;
            return pick(reader, 0, numbers, &mut each);
        }
        let mut rest = numbers;
        let head = self.index.head()?;
        let mut unpacking = match self.index.compression() {
            Some(compression) => Some((compression, self.index.points()?, None)),
            None => None,
        };
        while let Some(next) = rest.first() {
            let group = self.index.group(*next)?;
            let (some, others) = rest.split_at(rest.partition_point(|n| *n < group.next).max(1));
            let records: Box<dyn Read + Send> = match &mut unpacking {
                None => {
                    let failed = |e| Error::Io(self.capture.to_owned(), e);
                    let mut file = File::open(self.capture).map_err(failed)?;
                    file.seek(SeekFrom::Start(group.from)).map_err(failed)?;
                    Box::new(file)
                }
                Some((compression, points, last)) => {
                    let unpacked = self.unpacked(*compression, points, last.take(), group.from)?;
                    Box::new(last.insert(unpacked).clone())
                }
            };
            let records = records.take(group.to.saturating_sub(group.from));
            let input = Box::new(Cursor::new(head.clone()).chain(records));
            let reader = Reader::from_read(input, self.capture).map_err(Error::from)?;
            pick(reader, group.first.saturating_sub(1), some, &mut each)?;
            rest = others;
        }
        Ok(())
    }
}

impl Slices<'_> {
    /// The decompressed bytes from an offset on: read on from before, or from the last restart point before them.
    fn unpacked(
        &mut self,
        compression: Compression,
        points: &[Point],
        last: Option<Unpacked>,
        from: u64,
    ) -> Result<Unpacked, Error> {
        let failed = |e| Error::Io(self.capture.to_owned(), e);
        let before = points.partition_point(|point| point.offset <= from);
        let point = before.checked_sub(1).and_then(|at| points.get(at));
        let begin = point.map_or(0, |point| point.offset);
        let mut unpacked = match last.filter(|last| (begin..=from).contains(&last.at())) {
            Some(last) => last,
            None => {
                let point = point.map(|point| self.index.restart(point)).transpose()?;
                let file = File::open(self.capture).map_err(failed)?;
                let bytes = unpacked_from(file, compression, point.as_ref()).map_err(failed)?;
                Unpacked(Arc::new(Mutex::new((bytes, begin))))
            }
        };
        let skipped = from - unpacked.at();
        let read = io::copy(&mut unpacked.by_ref().take(skipped), &mut io::sink());
        if read.map_err(failed)? < skipped {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(unpacked)
    }
}

/// Decompressed bytes, and the offset of the next one: shared with the reader of one group of packets.
#[derive(Clone)]
struct Unpacked(Arc<Mutex<(Box<dyn Read + Send>, u64)>>);

impl Unpacked {
    fn at(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Read for Unpacked {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = shared.0.read(to)?;
        shared.1 += n as u64;
        Ok(n)
    }
}

/// Gives those packets of a reader whose first has the number `before + 1`.
fn pick<E: From<Error>>(
    mut reader: Reader,
    before: u64,
    numbers: &[u64],
    each: &mut impl FnMut(&Packet<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut wanted = numbers.iter().peekable();
    while wanted.peek().is_some() {
        let Some(batch) = reader.next_batch().map_err(Error::from)? else { break };
        for packet in &batch {
            let number = before + packet.number;
            if wanted.next_if(|n| **n == number).is_some() {
                each(&Packet { number, ..packet })?;
            }
        }
    }
    Ok(())
}
