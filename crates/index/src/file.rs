//! Reading of index files.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Compression;
use gannet_capture::RestartPoint;

use crate::analysis::Analysis;
use crate::error::Error;
use crate::header::HEADER;
use crate::header::Header;
use crate::header::take_array;
use crate::identity::Identity;
use crate::identity::checksum;
use crate::identity::uid_hash;
use crate::path_of;
use crate::restarts;
use crate::restarts::Point;
use crate::restarts::Restarts;
use crate::varint;

/// Number of packets from one recorded offset to the next, in formats where the offset of any packet is known.
pub(crate) const OFFSET_INTERVAL: usize = 64;
/// Approximate size of a block, in bytes.
pub(crate) const BLOCK: usize = 4 << 10;

/// An entry in the table of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    /// The first key in the block.
    pub(crate) first: u64,
    /// Offset of the block, relative to the first block.
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) checksum: u32,
}

/// Size of a [`BlockEntry`], in bytes.
pub(crate) const BLOCK_ENTRY: usize = 24;
/// Size of an offset entry, in bytes: a packet's number and its offset.
pub(crate) const OFFSET_ENTRY: u64 = 16;
/// Number of offset entries that are read at a time.
const OFFSETS_PER_READ: u64 = 256;

impl BlockEntry {
    pub(crate) fn bytes(&self) -> [u8; BLOCK_ENTRY] {
        let mut out = [0; BLOCK_ENTRY];
        out[..8].copy_from_slice(&self.first.to_le_bytes());
        out[8..16].copy_from_slice(&self.offset.to_le_bytes());
        out[16..20].copy_from_slice(&self.len.to_le_bytes());
        out[20..].copy_from_slice(&self.checksum.to_le_bytes());
        out
    }

    fn read(bytes: &[u8; BLOCK_ENTRY]) -> Option<Self> {
        let mut rest = &bytes[..];
        Some(Self {
            first: u64::from_le_bytes(take_array(&mut rest)?),
            offset: u64::from_le_bytes(take_array(&mut rest)?),
            len: u32::from_le_bytes(take_array(&mut rest)?),
            checksum: u32::from_le_bytes(take_array(&mut rest)?),
        })
    }
}

/// An open index.
#[derive(Debug)]
pub struct Index<R = File> {
    path: PathBuf,
    header: Header,
    file: R,
    /// Size of the file, in bytes.
    size: u64,
    /// The offset entries that were read last: packet numbers and offsets.
    offsets: Vec<(u64, u64)>,
}

impl Index {
    /// Opens the index of a capture.
    ///
    /// # Errors
    /// If it does not exist, is damaged, or belongs to another capture.
    pub fn open(capture: &Path) -> Result<Self, Error> {
        let path = path_of(capture);
        let file = File::open(&path).map_err(|e| match (e.kind(), capture.metadata()) {
            (io::ErrorKind::NotFound, Ok(_)) => Error::Missing(capture.to_owned()),
            // The capture itself is missing or cannot be accessed.
            (io::ErrorKind::NotFound, Err(e)) => Error::Io(capture.to_owned(), e),
            _ => Error::Io(path.clone(), e),
        })?;
        let size = file.metadata().map_err(|e| Error::Io(path.clone(), e))?.len();
        let index = Index::from_read(file, size, path)?;
        let current = Identity::of(capture).map_err(|e| Error::Io(capture.to_owned(), e))?;
        let indexed = index.header.identity;
        let mismatch = |what| Err(Error::Unfit(index.path.clone(), what));
        match () {
            () if current.size > indexed.size => mismatch("the capture has grown"),
            () if current.size < indexed.size => mismatch("the capture has shrunk"),
            () if current.hash != indexed.hash => mismatch("the capture has changed"),
            () => Ok(index),
        }
    }
}

impl<R: Read + Seek> Index<R> {
    /// Reads an index of `size` bytes. Errors contain `path`.
    pub fn from_read(mut file: R, size: u64, path: PathBuf) -> Result<Self, Error> {
        let mut head = Vec::new();
        let read = file.by_ref().take(HEADER as u64).read_to_end(&mut head);
        read.map_err(|e| Error::Io(path.clone(), e))?;
        let header = Header::read(&head, &path)?;
        let index = Self { path, header, file, size, offsets: Vec::new() };
        match index.blocks_start() {
            Some(begin) if begin <= size => Ok(index),
            _ => Err(index.damaged("it is truncated")),
        }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged(self.path.clone(), what)
    }

    fn offsets_start(&self) -> Option<u64> {
        (HEADER as u64).checked_add(self.header.head)
    }

    fn points_start(&self) -> Option<u64> {
        self.offsets_start()?.checked_add(self.header.offsets.checked_mul(OFFSET_ENTRY)?)
    }

    fn windows_start(&self) -> Option<u64> {
        self.points_start()?
            .checked_add(self.header.points.checked_mul(restarts::POINT_ENTRY as u64)?)
    }

    fn table_start(&self) -> Option<u64> {
        self.windows_start()?.checked_add(self.header.windows)
    }

    fn blocks_start(&self) -> Option<u64> {
        self.table_start()?.checked_add(self.header.blocks.checked_mul(BLOCK_ENTRY as u64)?)
    }

    /// Reads `len` bytes at an offset of the file.
    fn read_at(&mut self, offset: Option<u64>, len: u64) -> Result<Vec<u8>, Error> {
        let end = offset.and_then(|offset| offset.checked_add(len));
        let Some((offset, _)) = offset.zip(end.filter(|end| *end <= self.size)) else {
            return Err(self.damaged("it is truncated"));
        };
        let mut bytes = Vec::new();
        let sought = self.file.seek(SeekFrom::Start(offset));
        let read = sought.and_then(|_| self.file.by_ref().take(len).read_to_end(&mut bytes));
        match read {
            Err(e) => Err(Error::Io(self.path.clone(), e)),
            Ok(n) if (n as u64) < len => Err(self.damaged("it is truncated")),
            Ok(_) => Ok(bytes),
        }
    }

    /// Checks that an analysis with these options made the index.
    ///
    /// # Errors
    /// If the options differ: then uids or their packets may differ, too.
    pub fn check(&self, analysis: Analysis) -> Result<(), Error> {
        let built_with = self.header.analysis;
        if built_with == analysis {
            return Ok(());
        }
        Err(Error::Analysis { index: self.path.clone(), made: built_with, requested: analysis })
    }

    /// Number of packets in the capture.
    pub fn total(&self) -> u64 {
        self.header.packets
    }

    /// Number of fragments that may be missing from their connections, because the limit of pending fragments was
    /// reached.
    pub fn forgotten(&self) -> u64 {
        self.header.forgotten
    }

    /// The packet numbers of a connection or tunnel, in order; `None` if the capture has no such uid.
    pub fn packets(&mut self, uid: &[u8]) -> Result<Option<Vec<u64>>, Error> {
        let target = uid_hash(uid);
        let Some(entry) = self.find_block(target)? else { return Ok(None) };
        let offset = self.blocks_start().and_then(|begin| begin.checked_add(entry.offset));
        let block = self.read_at(offset, entry.len.into())?;
        if checksum(&block) as u32 != entry.checksum {
            return Err(self.damaged("the checksum of a list is wrong"));
        }
        let total = self.header.packets;
        find_list(&block, entry.first, target, total)
            .map_err(|()| self.damaged("a list is not terminated"))
    }

    /// Finds the only block that may contain a key.
    fn find_block(&mut self, target: u64) -> Result<Option<BlockEntry>, Error> {
        let begin = self.table_start();
        // Invariant: blocks before `from` begin at or before the key, blocks from `to` on begin after it.
        let (mut from, mut to) = (0, self.header.blocks);
        let mut found = None;
        while from < to {
            let at = from + (to - from) / 2;
            let offset = begin.and_then(|begin| begin.checked_add(at * BLOCK_ENTRY as u64));
            let bytes = self.read_at(offset, BLOCK_ENTRY as u64)?;
            let entry = bytes.first_chunk().and_then(BlockEntry::read);
            let Some(entry) = entry else { return Err(self.damaged("it is truncated")) };
            if entry.first <= target {
                (found, from) = (Some(entry), at + 1);
            } else {
                to = at;
            }
        }
        Ok(found)
    }

    /// Whether packet offsets are recorded. Otherwise the capture has to be read from its beginning.
    pub(crate) fn is_seekable(&self) -> bool {
        self.header.seekable
    }

    /// The group of packets between two recorded offsets that contains a packet.
    pub(crate) fn group(&mut self, number: u64) -> Result<Group, Error> {
        let contains = |offsets: &[(u64, u64)]| {
            let ends = offsets.first().zip(offsets.last());
            ends.is_some_and(|(first, last)| first.0 <= number && number < last.0)
        };
        if !contains(&self.offsets) {
            self.read_offsets(number)?;
        }
        let at = self.offsets.partition_point(|offset| offset.0 <= number);
        let before = at.checked_sub(1).and_then(|at| self.offsets.get(at));
        match (before, self.offsets.get(at)) {
            (Some(&(first, from)), Some(&(next, to))) => Ok(Group { first, next, from, to }),
            _ => Err(self.damaged("its offsets are out of order")),
        }
    }

    /// Reads the offset entries around a packet; a lookup does not read all of them.
    fn read_offsets(&mut self, number: u64) -> Result<(), Error> {
        let (begin, count) = (self.offsets_start(), self.header.offsets);
        let offset =
            |at: u64| begin.and_then(|begin| begin.checked_add(at.checked_mul(OFFSET_ENTRY)?));
        let parse = |bytes: &[u8; OFFSET_ENTRY as usize]| {
            let mut rest = &bytes[..];
            let mut number = || take_array(&mut rest).map_or(0, u64::from_le_bytes);
            (number(), number())
        };
        // Binary search for the last chunk of entries that begins at or before the packet.
        let (mut from, mut to) = (0, count.div_ceil(OFFSETS_PER_READ));
        while to - from > 1 {
            let at = from + (to - from) / 2;
            let bytes = self.read_at(offset(at * OFFSETS_PER_READ), OFFSET_ENTRY)?;
            let first = bytes.first_chunk().map_or(0, |bytes| parse(bytes).0);
            if first <= number { from = at } else { to = at }
        }
        // Include the first entry of the next chunk, where the last group ends.
        let (from, to) = (from * OFFSETS_PER_READ, count.min((from + 1) * OFFSETS_PER_READ + 1));
        let bytes = self.read_at(offset(from), (to - from) * OFFSET_ENTRY)?;
        self.offsets = bytes.as_chunks().0.iter().map(parse).collect();
        if to == count {
            // The size of the decompressed capture is not known.
            let end = self.header.compression.map_or(self.header.identity.size, |_| u64::MAX);
            self.offsets.push((self.header.packets.saturating_add(1), end));
        }
        let begins = from > 0 || self.offsets.first().is_some_and(|first| first.0 == 1);
        if !begins || !self.offsets.is_sorted() {
            self.offsets.clear();
            return Err(self.damaged("its offsets are out of order"));
        }
        Ok(())
    }

    /// The compression of the capture, if packet offsets refer to the decompressed data.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.header.compression
    }

    /// The restart points of a compressed capture, in order.
    pub(crate) fn points(&mut self) -> Result<Vec<Point>, Error> {
        let len = self.header.points.checked_mul(restarts::POINT_ENTRY as u64);
        let table = self.read_at(self.points_start(), len.unwrap_or(u64::MAX))?;
        Restarts::read(&table).ok_or_else(|| self.damaged("its restart points are out of order"))
    }

    /// Reads a restart point with its window.
    pub(crate) fn restart(&mut self, point: &Point) -> Result<RestartPoint, Error> {
        let end = point.start.checked_add(point.len.into());
        if end.is_none_or(|end| end > self.header.windows) {
            return Err(self.damaged("a restart point is truncated"));
        }
        let offset = self.windows_start().and_then(|begin| begin.checked_add(point.start));
        let window = self.read_at(offset, point.len.into())?;
        point
            .with_window(window)
            .ok_or_else(|| self.damaged("the checksum of a restart point is wrong"))
    }

    /// The bytes of the capture before its first packet.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>, Error> {
        self.read_at(Some(HEADER as u64), self.header.head)
    }
}

/// Reads bytes as an index, both as they are and as the body after a valid header. Returns whether there was no error.
/// For fuzzing.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| {
        let size = bytes.len() as u64;
        let Ok(mut index) = Index::from_read(io::Cursor::new(bytes), size, PathBuf::new()) else {
            return false;
        };
        let head = index.head().is_ok();
        let last = index.total();
        let groups = [1, last / 2, last].iter().all(|number| index.group((*number).max(1)).is_ok());
        let points = index
            .points()
            .is_ok_and(|points| points.iter().all(|point| index.restart(point).is_ok()));
        [b"CaaaB", &b"Cother"[..]].iter().all(|uid| index.packets(uid).is_ok())
            && head
            && groups
            && points
    };
    let mut rest = bytes;
    let mut number = || take_array(&mut rest).map(|[v]: [u8; 1]| u64::from(v));
    let identity = Identity { size: u64::MAX, hash: 0 };
    let built = (|| {
        let (packets, head, offsets) = (number()?, number()?, number()?);
        let (points, windows, blocks) = (number()?, number()?, number()?);
        let compression = [None, Some(Compression::Gzip), Some(Compression::Zstd)];
        let compression = *compression.get(number()? as usize % 3)?;
        let (seekable, forgotten) = (true, 0);
        let counts = (packets, forgotten, head, offsets, points, windows, blocks);
        Some(header(compression, seekable, identity, counts))
    })();
    let is_valid = built.is_some_and(|header| read(&[&header.bytes(), rest].concat()));
    read(bytes) || is_valid
}

/// Builds a header.
fn header(
    compression: Option<Compression>,
    seekable: bool,
    identity: Identity,
    (packets, forgotten, head, offsets, points, windows, blocks): (
        u64,
        u64,
        u64,
        u64,
        u64,
        u64,
        u64,
    ),
) -> Header {
    Header {
        seekable,
        compression,
        analysis: Analysis::default(),
        identity,
        packets,
        forgotten,
        head,
        offsets,
        points,
        windows,
        blocks,
    }
}

/// Packets between two recorded offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Number of the first packet.
    pub(crate) first: u64,
    /// Number of the first packet after the group.
    pub(crate) next: u64,
    /// Byte range of the group in the capture.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Finds the packet list of a key in a block.
fn find_list(block: &[u8], first: u64, target: u64, total: u64) -> Result<Option<Vec<u64>>, ()> {
    let (mut rest, mut key) = (block, first);
    while !rest.is_empty() {
        let mut number = || varint::take(&mut rest).ok_or(());
        key = key.checked_add(number()?).ok_or(())?;
        let (packets, len) = (number()?, number()?);
        let len = usize::try_from(len).map_err(|_| ())?;
        let (list, others) = rest.split_at_checked(len).ok_or(())?;
        if key == target {
            return numbers(list, packets, total).ok_or(()).map(Some);
        }
        if key > target {
            break;
        }
        rest = others;
    }
    Ok(None)
}

/// Decodes packet numbers from deltas; `None` if their count is not `packets`, or they do not increase up to `total`.
fn numbers(mut list: &[u8], packets: u64, total: u64) -> Option<Vec<u64>> {
    let (mut last, mut out) = (0_u64, Vec::new());
    while !list.is_empty() {
        let by = varint::take(&mut list).filter(|by| *by > 0)?;
        last = last.checked_add(by).filter(|last| *last <= total)?;
        out.push(last);
    }
    (out.len() as u64 == packets).then_some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::build::encode_lists;

    #[test]
    fn a_missing_capture_is_not_a_missing_index() {
        let own = std::env::temp_dir().join(format!("gannet-no-index-{}", std::process::id()));
        let error = |path: &Path| Index::open(path).map(|_| ()).unwrap_err().to_string();
        let words = error(&own);
        assert!(words.ends_with(": No such file or directory (os error 2)"), "{words}");
        std::fs::write(&own, b"").unwrap();
        assert!(
            error(&own).contains("has no index; create it with: gannet index"),
            "{}",
            error(&own)
        );
        std::fs::remove_file(&own).unwrap();
    }

    fn file(lists: &[(&[u8], &[u64])], packets: u64) -> Vec<u8> {
        packed_file(None, lists, packets)
    }

    fn packed_file(
        compression: Option<Compression>,
        lists: &[(&[u8], &[u64])],
        packets: u64,
    ) -> Vec<u8> {
        let (table, blocks) = encode_lists(lists);
        let identity = Identity { size: 1_000, hash: 7 };
        let point = |offset, window: &[u8]| RestartPoint {
            offset,
            at: offset / 2,
            skip: 3,
            window: window.to_vec(),
        };
        let (points, windows) = Restarts::bytes([&point(20, b"xyz"), &point(50, b"")]);
        let numbers = (packets, 0, 3, 1, 2, 3, table.len() as u64);
        let mut all = header(compression, true, identity, numbers).bytes();
        all.extend_from_slice(b"abc");
        all.extend_from_slice(&[1_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
        all.extend_from_slice(points.as_flattened());
        all.extend_from_slice(&windows);
        table.iter().for_each(|entry| all.extend_from_slice(&entry.bytes()));
        all.extend_from_slice(&blocks);
        all
    }

    fn open(bytes: &[u8]) -> Result<Index<Cursor<Vec<u8>>>, Error> {
        Index::from_read(Cursor::new(bytes.to_vec()), bytes.len() as u64, "index".into())
    }

    #[test]
    fn lists_are_found_by_uid() {
        let names: Vec<_> = (0..2_000_u64).map(|n| format!("C{n}")).collect();
        let numbers: Vec<_> = (0..2_000).map(|n| [n + 1, n + 2, 3 * n + 300]).collect();
        let lists: Vec<_> =
            names.iter().zip(&numbers).map(|(n, l)| (n.as_bytes(), &l[..])).collect();
        let bytes = file(&lists, 10_000);
        let mut index = open(&bytes).unwrap();
        for (name, numbers) in &lists {
            assert_eq!(index.packets(name).unwrap().as_deref(), Some(*numbers));
        }
        assert_eq!(index.packets(b"C2000").unwrap(), None);
        assert_eq!(index.head().unwrap(), b"abc");
        let group = Group { first: 1, next: 10_001, from: 3, to: 1_000 };
        assert_eq!(index.group(1).unwrap(), group);
        assert_eq!(index.group(10_000).unwrap(), group);
        assert!(index.group(10_001).is_err());
    }

    /// The group of a packet is found also if offset entries are read in several chunks.
    #[test]
    fn any_number_of_offsets_is_searched() {
        for count in [1, 2, 255, 256, 257, 512, 513, 1_000] {
            let packets = count * 64;
            let identity = Identity { size: 1 << 20, hash: 7 };
            let mut bytes = header(None, true, identity, (packets, 0, 0, count, 0, 0, 0)).bytes();
            for at in 0..count {
                // In groups of various lengths.
                let first = at * 64 + if at == 0 { 1 } else { 1 + at % 7 };
                bytes.extend_from_slice(&first.to_le_bytes());
                bytes.extend_from_slice(&(24 + at * 1_000).to_le_bytes());
            }
            let mut index = open(&bytes).unwrap();
            for number in (1..=packets).chain([1, packets / 2, 3.min(packets), packets]) {
                let group = index.group(number).unwrap();
                assert!(group.first <= number && number < group.next, "{number}: {group:?}");
                assert_eq!(group.from, 24 + (group.first - 1) / 64 * 1_000, "{group:?}");
                let is_last = group.next == packets + 1;
                assert_eq!(group.to, if is_last { 1 << 20 } else { group.from + 1_000 });
            }
        }
    }

    #[test]
    fn restart_points_round_trip_or_are_refused() {
        let bytes = packed_file(Some(Compression::Gzip), &[(b"CaaaB", &[1])], 10);
        let mut index = open(&bytes).unwrap();
        assert_eq!(index.compression(), Some(Compression::Gzip));
        let points = index.points().unwrap();
        let found: Vec<_> = points.iter().map(|point| index.restart(point).unwrap()).collect();
        let (window, none) = (b"xyz".to_vec(), Vec::new());
        let first = RestartPoint { offset: 20, at: 10, skip: 3, window };
        assert_eq!(found, [first, RestartPoint { offset: 50, at: 25, skip: 3, window: none }]);
        let group = Group { first: 1, next: 11, from: 3, to: u64::MAX };
        assert_eq!(index.group(1).unwrap(), group);
        // The table begins after the header, the head and one offset entry.
        let table = HEADER + 3 + 16;
        for (at, what) in [
            (table, "is wrong"),
            (table + 17, "truncated"),
            (table + 20, "is wrong"),
            (table + 64, "is wrong"),
            (table + 7, "out of order"),
        ] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let mut index = open(&bytes).unwrap();
            let read = index.points().and_then(|points| index.restart(&points[0]));
            let error = read.unwrap_err().to_string();
            assert!(error.contains(what), "byte {at}: {error}");
        }
    }

    #[test]
    fn a_truncated_index_is_refused() {
        let bytes = file(&[(b"CaaaB", &[1, 5, 9]), (b"Cother", &[2])], 10);
        assert!(exercise(&bytes));
        for len in 0..bytes.len() {
            assert!(!exercise(&bytes[..len]), "{len} of {}", bytes.len());
        }
    }

    proptest! {
        /// Reading a damaged index returns an error, another list or `None`; it never panics.
        #[test]
        fn a_damaged_index_is_read_without_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = file(&[(b"CaaaB", &[1, 5, 9]), (b"Cother", &[2])], 10);
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            exercise(&bytes);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            exercise(&bytes);
        }

        /// Any bytes after a valid header.
        #[test]
        fn any_tables_and_blocks_are_read_without_panic(
            packets: u64, head in 0_u64..9, offsets in 0_u64..4, points in 0_u64..3,
            windows in 0_u64..9, blocks in 0_u64..4, rest: Vec<u8>,
        ) {
            let identity = Identity { size: u64::MAX, hash: 7 };
            let numbers = (packets, 0, head, offsets, points, windows, blocks);
            let mut bytes = header(Some(Compression::Zstd), true, identity, numbers).bytes();
            bytes.extend_from_slice(&rest);
            exercise(&bytes);
        }
    }
}
