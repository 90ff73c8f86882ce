//! Reading an index.

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
use crate::header::take;
use crate::identity::Identity;
use crate::identity::check;
use crate::identity::key;
use crate::path_of;
use crate::restarts;
use crate::restarts::Point;
use crate::restarts::Restarts;
use crate::varint;

/// Packets from one known offset to the next, if all can be known.
pub(crate) const EVERY: usize = 64;
/// Bytes of a block, about.
pub(crate) const BLOCK: usize = 4 << 10;

/// A block of lists, as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The first key.
    pub(crate) first: u64,
    /// Its start, relative to the first block.
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) check: u32,
}

/// Bytes of a block in the table.
pub(crate) const ENTRY: usize = 24;
/// Bytes of an offset entry: a packet's number and its offset.
pub(crate) const PLACE: u64 = 16;
/// Offset entries that are read at a time.
const PLACES: u64 = 256;

impl Entry {
    pub(crate) fn bytes(&self) -> [u8; ENTRY] {
        let mut out = [0; ENTRY];
        out[..8].copy_from_slice(&self.first.to_le_bytes());
        out[8..16].copy_from_slice(&self.offset.to_le_bytes());
        out[16..20].copy_from_slice(&self.len.to_le_bytes());
        out[20..].copy_from_slice(&self.check.to_le_bytes());
        out
    }

    fn read(bytes: &[u8; ENTRY]) -> Option<Self> {
        let mut rest = &bytes[..];
        Some(Self {
            first: u64::from_le_bytes(take(&mut rest)?),
            offset: u64::from_le_bytes(take(&mut rest)?),
            len: u32::from_le_bytes(take(&mut rest)?),
            check: u32::from_le_bytes(take(&mut rest)?),
        })
    }
}

/// An index that fits its capture.
#[derive(Debug)]
pub struct Index<R = File> {
    path: PathBuf,
    header: Header,
    file: R,
    /// Bytes of the file.
    size: u64,
    /// Some packets with known offsets, by their numbers, as they were read last.
    places: Vec<(u64, u64)>,
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
            // The capture itself is missing, or nothing in its folder may be read.
            (io::ErrorKind::NotFound, Err(e)) => Error::Io(capture.to_owned(), e),
            _ => Error::Io(path.clone(), e),
        })?;
        let size = file.metadata().map_err(|e| Error::Io(path.clone(), e))?.len();
        let index = Index::from_read(file, size, path)?;
        let now = Identity::of(capture).map_err(|e| Error::Io(capture.to_owned(), e))?;
        let was = index.header.identity;
        let unfit = |what| Err(Error::Unfit(index.path.clone(), what));
        match () {
            () if now.size > was.size => unfit("the capture has grown"),
            () if now.size < was.size => unfit("the capture has shrunk"),
            () if now.hash != was.hash => unfit("the capture has changed"),
            () => Ok(index),
        }
    }
}

impl<R: Read + Seek> Index<R> {
    /// An index of `size` bytes, whose errors name this path.
    pub fn from_read(mut file: R, size: u64, path: PathBuf) -> Result<Self, Error> {
        let mut head = Vec::new();
        let read = file.by_ref().take(HEADER as u64).read_to_end(&mut head);
        read.map_err(|e| Error::Io(path.clone(), e))?;
        let header = Header::read(&head, &path)?;
        let index = Self { path, header, file, size, places: Vec::new() };
        match index.blocks_begin() {
            Some(begin) if begin <= size => Ok(index),
            _ => Err(index.damaged("it is cut")),
        }
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::Damaged(self.path.clone(), what)
    }

    fn places_begin(&self) -> Option<u64> {
        (HEADER as u64).checked_add(self.header.head)
    }

    fn points_begin(&self) -> Option<u64> {
        self.places_begin()?.checked_add(self.header.places.checked_mul(PLACE)?)
    }

    fn windows_begin(&self) -> Option<u64> {
        self.points_begin()?.checked_add(self.header.points.checked_mul(restarts::POINT as u64)?)
    }

    fn table_begins(&self) -> Option<u64> {
        self.windows_begin()?.checked_add(self.header.windows)
    }

    fn blocks_begin(&self) -> Option<u64> {
        self.table_begins()?.checked_add(self.header.blocks.checked_mul(ENTRY as u64)?)
    }

    /// Bytes at an offset of the file.
    fn at(&mut self, place: Option<u64>, len: u64) -> Result<Vec<u8>, Error> {
        let end = place.and_then(|place| place.checked_add(len));
        let Some((place, _)) = place.zip(end.filter(|end| *end <= self.size)) else {
            return Err(self.damaged("it is cut"));
        };
        let mut bytes = Vec::new();
        let sought = self.file.seek(SeekFrom::Start(place));
        let read = sought.and_then(|_| self.file.by_ref().take(len).read_to_end(&mut bytes));
        match read {
            Err(e) => Err(Error::Io(self.path.clone(), e)),
            Ok(n) if (n as u64) < len => Err(self.damaged("it is cut")),
            Ok(_) => Ok(bytes),
        }
    }

    /// Checks that the index was made by an analysis with these options.
    ///
    /// # Errors
    /// If it was not: its uids, or their packets, may be others.
    pub fn check(&self, analysis: Analysis) -> Result<(), Error> {
        let made = self.header.analysis;
        if made == analysis {
            return Ok(());
        }
        Err(Error::Analysis { index: self.path.clone(), made, asked: analysis })
    }

    /// Packets of the capture.
    pub fn total(&self) -> u64 {
        self.header.packets
    }

    /// Fragments that may be missing from their connections: there were too many at a time.
    pub fn forgotten(&self) -> u64 {
        self.header.forgotten
    }

    /// The numbers of the packets of a connection or tunnel, in order; `None` if the capture has no such one.
    pub fn packets(&mut self, uid: &[u8]) -> Result<Option<Vec<u64>>, Error> {
        let wanted = key(uid);
        let Some(entry) = self.block_of(wanted)? else { return Ok(None) };
        let place = self.blocks_begin().and_then(|begin| begin.checked_add(entry.offset));
        let block = self.at(place, entry.len.into())?;
        if check(&block) as u32 != entry.check {
            return Err(self.damaged("a list is not what was written"));
        }
        let total = self.header.packets;
        find(&block, entry.first, wanted, total).map_err(|()| self.damaged("a list does not end"))
    }

    /// The block that a key is in, if it is in any.
    fn block_of(&mut self, wanted: u64) -> Result<Option<Entry>, Error> {
        let begin = self.table_begins();
        // The first `from` blocks begin at or before the key, those from `to` on behind it.
        let (mut from, mut to) = (0, self.header.blocks);
        let mut found = None;
        while from < to {
            let at = from + (to - from) / 2;
            let place = begin.and_then(|begin| begin.checked_add(at * ENTRY as u64));
            let bytes = self.at(place, ENTRY as u64)?;
            let entry = bytes.first_chunk().and_then(Entry::read);
            let Some(entry) = entry else { return Err(self.damaged("it is cut")) };
            if entry.first <= wanted {
                (found, from) = (Some(entry), at + 1);
            } else {
                to = at;
            }
        }
        Ok(found)
    }

    /// Whether packets have known offsets. Otherwise the capture has to be read from its beginning.
    pub(crate) fn is_seekable(&self) -> bool {
        self.header.seekable
    }

    /// The packets between two known offsets among which this one is.
    pub(crate) fn group(&mut self, number: u64) -> Result<Group, Error> {
        let is_among = |places: &[(u64, u64)]| {
            let ends = places.first().zip(places.last());
            ends.is_some_and(|(first, last)| first.0 <= number && number < last.0)
        };
        if !is_among(&self.places) {
            self.read_places(number)?;
        }
        let at = self.places.partition_point(|place| place.0 <= number);
        let before = at.checked_sub(1).and_then(|at| self.places.get(at));
        match (before, self.places.get(at)) {
            (Some(&(first, from)), Some(&(next, to))) => Ok(Group { first, next, from, to }),
            _ => Err(self.damaged("its places are out of order")),
        }
    }

    /// Reads the places around a packet: a lookup does not read those of all packets.
    fn read_places(&mut self, number: u64) -> Result<(), Error> {
        let (begin, count) = (self.places_begin(), self.header.places);
        let place = |at: u64| begin.and_then(|begin| begin.checked_add(at.checked_mul(PLACE)?));
        let parse = |bytes: &[u8; PLACE as usize]| {
            let mut rest = &bytes[..];
            let mut number = || take(&mut rest).map_or(0, u64::from_le_bytes);
            (number(), number())
        };
        // The last chunk that begins at or before the packet.
        let (mut from, mut to) = (0, count.div_ceil(PLACES));
        while to - from > 1 {
            let at = from + (to - from) / 2;
            let bytes = self.at(place(at * PLACES), PLACE)?;
            let first = bytes.first_chunk().map_or(0, |bytes| parse(bytes).0);
            if first <= number { from = at } else { to = at }
        }
        // With the first one of the next chunk, where the last group ends.
        let (from, to) = (from * PLACES, count.min((from + 1) * PLACES + 1));
        let bytes = self.at(place(from), (to - from) * PLACE)?;
        self.places = bytes.as_chunks().0.iter().map(parse).collect();
        if to == count {
            // Where decompressed bytes end is not known.
            let end = self.header.compression.map_or(self.header.identity.size, |_| u64::MAX);
            self.places.push((self.header.packets.saturating_add(1), end));
        }
        let begins = from > 0 || self.places.first().is_some_and(|first| first.0 == 1);
        if !begins || !self.places.is_sorted() {
            self.places.clear();
            return Err(self.damaged("its places are out of order"));
        }
        Ok(())
    }

    /// The compression of the capture, if its packets have places in the decompressed data.
    pub(crate) fn compression(&self) -> Option<Compression> {
        self.header.compression
    }

    /// The restart points of a compressed capture, in order.
    pub(crate) fn points(&mut self) -> Result<Vec<Point>, Error> {
        let len = self.header.points.checked_mul(restarts::POINT as u64);
        let table = self.at(self.points_begin(), len.unwrap_or(u64::MAX))?;
        Restarts::read(&table).ok_or_else(|| self.damaged("its restart points are out of order"))
    }

    /// A restart point with its window.
    pub(crate) fn restart(&mut self, point: &Point) -> Result<RestartPoint, Error> {
        let end = point.start.checked_add(point.len.into());
        if end.is_none_or(|end| end > self.header.windows) {
            return Err(self.damaged("a restart point is cut"));
        }
        let place = self.windows_begin().and_then(|begin| begin.checked_add(point.start));
        let window = self.at(place, point.len.into())?;
        point.with(window).ok_or_else(|| self.damaged("a restart point is not what was written"))
    }

    /// The bytes of the capture before its first packet.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>, Error> {
        self.at(Some(HEADER as u64), self.header.head)
    }
}

/// Reads bytes as an index, unchanged and behind a valid header; returns whether there was no
/// error. For fuzzing.
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
    let mut number = || take(&mut rest).map(|[v]: [u8; 1]| u64::from(v));
    let identity = Identity { size: u64::MAX, hash: 0 };
    let built = (|| {
        let (packets, head, places) = (number()?, number()?, number()?);
        let (points, windows, blocks) = (number()?, number()?, number()?);
        let compression = [None, Some(Compression::Gzip), Some(Compression::Zstd)];
        let compression = *compression.get(number()? as usize % 3)?;
        let (seekable, forgotten) = (true, 0);
        let of = (packets, forgotten, head, places, points, windows, blocks);
        Some(header(compression, seekable, identity, of))
    })();
    let sound = built.is_some_and(|header| read(&[&header.bytes(), rest].concat()));
    read(bytes) || sound
}

/// A header of these numbers: packets, forgotten fragments, bytes of the head, places, points, bytes of windows, blocks.
fn header(
    compression: Option<Compression>,
    seekable: bool,
    identity: Identity,
    (packets, forgotten, head, places, points, windows, blocks): (
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
        places,
        points,
        windows,
        blocks,
    }
}

/// Packets that lie between two known places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Number of the first one.
    pub(crate) first: u64,
    /// Number of the first one behind them.
    pub(crate) next: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// The list of a key in a block.
fn find(block: &[u8], first: u64, wanted: u64, total: u64) -> Result<Option<Vec<u64>>, ()> {
    let (mut rest, mut key) = (block, first);
    while !rest.is_empty() {
        let mut number = || varint::take(&mut rest).ok_or(());
        key = key.checked_add(number()?).ok_or(())?;
        let (packets, len) = (number()?, number()?);
        let len = usize::try_from(len).map_err(|_| ())?;
        let (list, others) = rest.split_at_checked(len).ok_or(())?;
        if key == wanted {
            return numbers(list, packets, total).ok_or(()).map(Some);
        }
        if key > wanted {
            break;
        }
        rest = others;
    }
    Ok(None)
}

/// Numbers from their distances: as many as are said, each above the one before, none beyond the last packet.
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
    use crate::build::blocks_of;

    #[test]
    fn a_missing_capture_is_not_a_missing_index() {
        let own = std::env::temp_dir().join(format!("gannet-no-index-{}", std::process::id()));
        let error = |path: &Path| Index::open(path).map(|_| ()).unwrap_err().to_string();
        let words = error(&own);
        assert!(words.ends_with(": No such file or directory (os error 2)"), "{words}");
        std::fs::write(&own, b"").unwrap();
        assert!(error(&own).contains("has no index: gannet index"), "{}", error(&own));
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
        let (table, blocks) = blocks_of(lists);
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

    /// Of places that are read in several chunks, each packet is in the group that a search of all of them finds.
    #[test]
    fn places_are_found_whatever_their_number() {
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
    fn restart_points_come_back_or_are_refused() {
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
        // The table begins behind the header, the head and the place.
        let table = HEADER + 3 + 16;
        for (at, what) in [
            (table, "not what was written"),
            (table + 17, "cut"),
            (table + 20, "not what was written"),
            (table + 64, "not what was written"),
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
    fn a_cut_index_is_refused() {
        let bytes = file(&[(b"CaaaB", &[1, 5, 9]), (b"Cother", &[2])], 10);
        assert!(exercise(&bytes));
        for len in 0..bytes.len() {
            assert!(!exercise(&bytes[..len]), "{len} of {}", bytes.len());
        }
    }

    proptest! {
        /// Any change gives an error, another valid list, or nothing; never a panic.
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

        /// Any bytes behind a valid header.
        #[test]
        fn any_tables_and_blocks_are_read_without_panic(
            packets: u64, head in 0_u64..9, places in 0_u64..4, points in 0_u64..3,
            windows in 0_u64..9, blocks in 0_u64..4, rest: Vec<u8>,
        ) {
            let identity = Identity { size: u64::MAX, hash: 7 };
            let numbers = (packets, 0, head, places, points, windows, blocks);
            let mut bytes = header(Some(Compression::Zstd), true, identity, numbers).bytes();
            bytes.extend_from_slice(&rest);
            exercise(&bytes);
        }
    }
}
