//! Some packets of a capture, without those between.

use std::fs::File;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;

use gannet_capture::Packet;
use gannet_capture::Reader;

use crate::error::Error;
use crate::file::Index;

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
        let Some(groups) = self.index.groups()? else {
            let reader = Reader::open(self.capture).map_err(Error::from)?;
            return pick(reader, 0, numbers, &mut each);
        };
        let (mut rest, mut groups) = (numbers, &groups[..]);
        let head = self.index.head()?;
        while let Some(next) = rest.first() {
            let before = groups.partition_point(|group| group.first <= *next).saturating_sub(1);
            groups = groups.get(before..).unwrap_or_default();
            let Some(group) = groups.first() else { break };
            let end = groups.get(1).map_or(u64::MAX, |group| group.first);
            let (some, others) = rest.split_at(rest.partition_point(|n| *n < end).max(1));
            let failed = |e| Error::Io(self.capture.to_owned(), e);
            let mut file = File::open(self.capture).map_err(failed)?;
            file.seek(SeekFrom::Start(group.from)).map_err(failed)?;
            let records = file.take(group.to.saturating_sub(group.from));
            let input = Box::new(Cursor::new(head.clone()).chain(records));
            let reader = Reader::from_read(input, self.capture).map_err(Error::from)?;
            pick(reader, group.first.saturating_sub(1), some, &mut each)?;
            rest = others;
        }
        Ok(())
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
