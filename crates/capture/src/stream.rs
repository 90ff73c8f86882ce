//! Many captures as one stream, ordered by time.
//!
//! Files are sorted by the time of their first packet. A file is opened when the stream reaches
//! that time, so rotated captures are read one after the other without a copy. While files overlap
//! in time their packets are merged, by time and then by the order in which the files were given.
//! Packets of one file stay in file order, even if its times decrease.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::Access;
use crate::Batch;
use crate::Blocks;
use crate::Bytes;
use crate::Compression;
use crate::Error;
use crate::FileId;
use crate::Reader;
use crate::map::PageReadahead;
use crate::packet::BATCH_BYTES;
use crate::packet::BATCH_PACKETS;
use crate::packet::NEAR_PACKETS;
use crate::packet::PacketRef;
use crate::shared::Pool;
use crate::shared::Refs;
use gannet_inflate::RestartPoints;

/// Options for reading the files of a [`Stream`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether subdirectories are read as well. Links to directories are never followed.
    pub recurse: bool,
    /// Whether to call [`Reader::read_ahead`], which starts a thread, for each file.
    pub ahead: bool,
    /// The access method for files.
    pub access: Access,
}

impl Default for Options {
    fn default() -> Self {
        Self { recurse: true, ahead: false, access: Access::Map }
    }
}

/// Several captures as one stream.
///
/// Damage ends its file and not the stream: after the error, [`Stream::next_batch`] continues with
/// the other files.
#[derive(Debug)]
pub struct Stream {
    /// Files that are not yet started; the next one is last.
    waiting: Vec<Waiting>,
    /// Files that are being read, by slot.
    active: Vec<Option<Active>>,
    /// The next packet of each active file.
    heads: BinaryHeap<Reverse<Head>>,
    /// A batch merged from several files.
    merged: Merged,
    current: Current,
    /// Number of packets before the current batch.
    before: u64,
    /// Errors to return before the next packet.
    failed: VecDeque<Error>,
    skipped: Vec<Error>,
    repeated: Vec<PathBuf>,
    /// Number of bytes of files that have ended.
    finished: u64,
    total: Option<u64>,
    /// [`Options::ahead`].
    ahead: bool,
    /// [`Options::access`].
    access: Access,
    /// See [`Self::set_batch_packets`].
    batch_packets: usize,
    /// See [`Self::set_unpack_threads`].
    unpack_threads: Option<usize>,
    /// See [`Self::share_pages`].
    readahead: Option<PageReadahead>,
}

/// Position of a packet in the stream: time and order of its file; then the slot of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    time: i64,
    order: usize,
    slot: usize,
}

/// A file whose first packet is known.
#[derive(Debug)]
struct Waiting {
    first: i64,
    order: usize,
    path: PathBuf,
    /// Kept open for the first files, and for files that cannot be reopened.
    reader: Option<Reader>,
}

#[derive(Debug)]
struct Active {
    reader: Reader,
    order: usize,
    /// Index of the next packet in the reader's batch.
    at: usize,
}

#[derive(Debug, Default)]
struct Merged {
    refs: Refs,
    data: Bytes,
    /// Packet lists that still have other owners.
    refs_pool: Pool<Refs>,
    /// Buffers whose packets still have other owners.
    data_pool: Pool<Bytes>,
}

/// The kind of the current batch.
#[derive(Clone, Copy, Debug)]
enum Current {
    Nothing,
    /// Packets `from..to` of the batch of the file in a slot.
    Run {
        slot: usize,
        from: usize,
        to: usize,
    },
    Merged,
}

/// Minimum number of consecutive packets of one file that are returned without a copy; shorter runs
/// are merged by copying, because tiny batches would cost more than the copy.
const RUN: usize = 64;

/// Maximum number of files that stay open between reading their first packet and reading the
/// others.
const KEEP_OPEN: usize = 16;

impl Stream {
    /// Opens files and directories as one stream; `-` is standard input. All captures in
    /// directories are read, in the order of their names; other files are skipped and listed in
    /// [`Stream::skipped`].
    ///
    /// The first packet of a single capture is not read in advance.
    ///
    /// # Errors
    /// Those of [`Reader::open`] for files named in `paths`, and [`Error::NotACapture`] if no
    /// capture was found.
    pub fn open(paths: &[PathBuf], options: Options) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                list(path, options, &mut files)
                    .map_err(|source| Error::Io { file: path.clone(), source })?;
            } else {
                files.push((path.clone(), true));
            }
        }
        let alone = files.len() == 1;
        let Options { ahead, access, .. } = options;
        let repeated = repeated(files.iter().map(|(path, _)| path));
        let mut stream = Self { ahead, access, repeated, ..Self::empty() };
        let mut captures = 0;
        for (order, (path, named)) in files.into_iter().enumerate() {
            match Reader::open_by(&path, access) {
                Ok(reader) => {
                    captures += 1;
                    if alone {
                        stream.add_waiting(i64::MIN, order, path, Some(reader));
                    } else {
                        stream.add_by_first_packet(order, path, reader);
                    }
                }
                Err(e) if e.is_partial() => {
                    captures += 1;
                    stream.failed.push_back(e);
                }
                Err(e) if named => return Err(e),
                Err(e) => stream.skipped.push(e),
            }
        }
        if captures == 0 {
            let file = paths.first().cloned().unwrap_or_default();
            return Err(Error::NotACapture { file, found: "a directory without captures" });
        }
        stream.waiting.sort_by_key(|w| Reverse((w.first, w.order)));
        Ok(stream)
    }

    /// A stream of one open capture.
    pub fn from_reader(reader: Reader) -> Self {
        let mut stream = Self::empty();
        stream.add_waiting(i64::MIN, 0, reader.file().to_owned(), Some(reader));
        stream
    }

    /// A stream of open captures. Errors in their first packets are returned as by [`Self::open`].
    pub fn from_readers(readers: Vec<Reader>) -> Self {
        let mut stream = Self::empty();
        let alone = readers.len() == 1;
        for (order, reader) in readers.into_iter().enumerate() {
            let path = reader.file().to_owned();
            match alone {
                true => stream.add_waiting(i64::MIN, order, path, Some(reader)),
                false => stream.add_by_first_packet(order, path, reader),
            }
        }
        stream.waiting.sort_by_key(|w| Reverse((w.first, w.order)));
        stream
    }

    /// Numbers packets as if this many had come before; [`Self::packets`] includes them. For the
    /// remainder of a longer stream. Must be called before the first batch.
    pub fn set_packets_before(&mut self, packets: u64) {
        self.before = packets;
    }

    fn empty() -> Self {
        Self {
            waiting: Vec::new(),
            active: Vec::new(),
            heads: BinaryHeap::new(),
            merged: Merged::default(),
            current: Current::Nothing,
            before: 0,
            failed: VecDeque::new(),
            skipped: Vec::new(),
            repeated: Vec::new(),
            finished: 0,
            total: Some(0),
            ahead: false,
            access: Access::Map,
            batch_packets: NEAR_PACKETS,
            unpack_threads: None,
            readahead: None,
        }
    }

    /// Lets the receivers of batches prepare the pages of files that are not yet started, through
    /// the returned handle.
    pub fn share_pages(&mut self) -> PageReadahead {
        self.readahead.get_or_insert_default().clone()
    }

    /// Stores the blocks of a single pcapng file that are not packets, so that its packets can be
    /// rewritten with all metadata; [`Batch::block`] then returns the block of a packet. `None` for
    /// several files, whose sections would change, for a stream that has started, and for pcap.
    pub fn keep_blocks(&mut self) -> Option<Blocks> {
        match &mut self.waiting[..] {
            [Waiting { reader: Some(reader), .. }] if self.active.is_empty() => {
                reader.keep_blocks()
            }
            _ => None,
        }
    }

    /// Collects restart points of a single compressed file, and returns its compression: see
    /// [`Reader::keep_restarts`]. `None` for several files, for a stream that has started, and if
    /// the format has none.
    pub fn keep_restarts(&mut self, every: u64) -> Option<(Compression, RestartPoints)> {
        match &mut self.waiting[..] {
            [Waiting { reader: Some(reader), .. }] if self.active.is_empty() => {
                reader.compression().zip(reader.keep_restarts(every))
            }
            _ => None,
        }
    }

    /// Sets the maximum number of packets of a batch for files that are not yet started: see
    /// [`Reader::set_batch_packets`].
    pub fn set_batch_packets(&mut self, max_packets: usize) {
        self.batch_packets = max_packets;
    }

    /// Sets the number of decompression threads for files that are not yet started: see
    /// [`Reader::set_unpack_threads`].
    pub fn set_unpack_threads(&mut self, threads: usize) {
        self.unpack_threads = Some(threads);
    }

    /// Reads the first packet of one of several files.
    fn add_by_first_packet(&mut self, order: usize, path: PathBuf, mut reader: Reader) {
        match reader.read_batch() {
            Ok(true) => {
                let first = reader.refs().first().map_or(i64::MIN, |r| r.time);
                let keep = self.waiting.len() < KEEP_OPEN || reader.bytes_total().is_none();
                if !keep {
                    self.total = add(self.total, reader.bytes_total());
                }
                self.add_waiting(first, order, path, keep.then_some(reader));
            }
            Ok(false) => {}
            Err(e) => self.failed.push_back(e),
        }
    }

    fn add_waiting(&mut self, first: i64, order: usize, path: PathBuf, reader: Option<Reader>) {
        if let Some(reader) = &reader {
            self.total = add(self.total, reader.bytes_total());
        }
        self.waiting.push(Waiting { first, order, path, reader });
    }

    /// Returns the next packets, or `None` after the last one.
    ///
    /// # Errors
    /// Those of [`Reader::next_batch`]; each error is returned once, after all packets of its file
    /// and of the others up to that time. The next call continues with the other files.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        Ok(if self.step()? { Some(self.batch()) } else { None })
    }

    fn batch(&self) -> Batch<'_> {
        let (Merged { refs, data, .. }, first) = (&self.merged, self.before + 1);
        let merged = Batch::new(refs, data, data, first);
        match self.current {
            Current::Nothing => merged.at(0..0),
            Current::Merged => merged,
            Current::Run { slot, from, to } => match self.active.get(slot) {
                Some(Some(Active { reader, .. })) => reader.batch_from(first).at(from..to),
                _ => merged.at(0..0),
            },
        }
    }

    /// Advances to the next batch; returns false after the last one.
    fn step(&mut self) -> Result<bool, Error> {
        self.release_current();
        loop {
            while let Some(next) = self.waiting.last()
                && self.heads.peek().is_none_or(|Reverse(h)| next.first <= h.time)
            {
                self.start_next_file();
            }
            let full = self.merged.refs.len() >= BATCH_PACKETS;
            if full || !self.failed.is_empty() || self.heads.is_empty() {
                if !self.merged.refs.is_empty() {
                    self.current = Current::Merged;
                    return Ok(true);
                }
                return self.failed.pop_front().map_or(Ok(false), Err);
            }
            let Some(Reverse(head)) = self.heads.pop() else { return Ok(false) };
            let (from, to) = self.run(head);
            let long = to - from >= RUN || self.heads.is_empty();
            if long && self.merged.refs.is_empty() {
                self.current = Current::Run { slot: head.slot, from, to };
                return Ok(true);
            }
            if long || !self.copy(head.slot, to) {
                self.heads.push(Reverse(head));
                self.current = Current::Merged;
                return Ok(true);
            }
            self.next_head(head.slot);
        }
    }

    /// Releases the current batch and queues the next packets of its files.
    fn release_current(&mut self) {
        self.before += self.batch().len() as u64;
        match std::mem::replace(&mut self.current, Current::Nothing) {
            Current::Nothing => {}
            Current::Merged => {
                let Merged { refs, data, refs_pool, data_pool } = &mut self.merged;
                refs_pool.exchange(refs);
                data_pool.exchange(data);
                if let (Some(refs), Some(buffer)) = (refs.own(), data.buffer()) {
                    refs.clear();
                    buffer.clear();
                }
            }
            Current::Run { slot, to, .. } => {
                if let Some(Some(active)) = self.active.get_mut(slot) {
                    active.at = to;
                }
                self.next_head(slot);
            }
        }
    }

    /// Starts reading the next waiting file.
    fn start_next_file(&mut self) {
        let Some(Waiting { order, path, reader, .. }) = self.waiting.pop() else { return };
        let mut reader = match reader.map_or_else(|| Reader::open_by(&path, self.access), Ok) {
            Ok(reader) => reader,
            Err(e) => return self.failed.push_back(e),
        };
        if self.ahead {
            reader.read_ahead();
        }
        if let Some(readahead) = &self.readahead {
            reader.share_pages(readahead);
        }
        if let Some(threads) = self.unpack_threads {
            reader.set_unpack_threads(threads);
        }
        reader.set_batch_packets(self.batch_packets);
        let slot = self.active.iter().position(Option::is_none).unwrap_or(self.active.len());
        if slot == self.active.len() {
            self.active.push(None);
        }
        if let Some(free) = self.active.get_mut(slot) {
            *free = Some(Active { reader, order, at: 0 });
        }
        self.next_head(slot);
    }

    /// Queues the next packet of the file in `slot`, and reads its next batch if necessary.
    fn next_head(&mut self, slot: usize) {
        let Some(Some(active)) = self.active.get_mut(slot) else { return };
        if active.at >= active.reader.refs().len() {
            active.at = 0;
            let more = active.reader.read_batch().unwrap_or_else(|e| {
                self.failed.push_back(e);
                false
            });
            if !more {
                let reader = &active.reader;
                self.finished += reader.bytes_total().unwrap_or(reader.bytes_done());
                self.active[slot] = None;
                return;
            }
        }
        if let Some(next) = active.reader.refs().get(active.at) {
            self.heads.push(Reverse(Head { time: next.time, order: active.order, slot }));
        }
    }

    /// The range of packets of the file in `head`'s slot that precede those of all other files.
    fn run(&self, head: Head) -> (usize, usize) {
        let Some(Some(active)) = self.active.get(head.slot) else { return (0, 0) };
        let refs = active.reader.refs().get(active.at..).unwrap_or_default();
        let heads = self.heads.peek().map(|Reverse(h)| (h.time, h.order));
        let waiting = self.waiting.last().map(|w| (w.first, w.order));
        let len = match (heads, waiting) {
            (None, None) => refs.len(),
            (a, b) => {
                let last = (i64::MAX, usize::MAX);
                let limit = a.unwrap_or(last).min(b.unwrap_or(last));
                // The first packet is the minimum of all heads, so the result is at least one.
                refs.iter().skip(1).take_while(|r| (r.time, head.order) < limit).count() + 1
            }
        };
        (active.at, active.at + len)
    }

    /// Copies packets of the file in `slot`, up to index `to`, while the merged batch has space;
    /// returns false if the first did not fit.
    fn copy(&mut self, slot: usize, to: usize) -> bool {
        let Some(Some(active)) = self.active.get_mut(slot) else { return true };
        let (refs, data) = (active.reader.refs(), active.reader.window());
        let from = active.at;
        // No other owner exists before it is returned.
        let Merged { refs: to_refs, data: merged, .. } = &mut self.merged;
        let (Some(to_refs), Some(merged)) = (to_refs.own(), merged.buffer()) else { return false };
        for r in refs.get(from..to).unwrap_or_default() {
            let start = r.offset as usize;
            let bytes = data.get(start..start + r.cap_len as usize).unwrap_or_default();
            let offset = merged.len();
            let fits = to_refs.len() < BATCH_PACKETS
                && (offset == 0 || offset + bytes.len() <= BATCH_BYTES);
            if !fits {
                break;
            }
            merged.extend_from_slice(bytes);
            to_refs.push(PacketRef { offset: offset as u32, ..*r });
            active.at += 1;
        }
        active.at > from
    }

    /// Errors of files in directories that are not captures.
    pub fn skipped(&self) -> &[Error] {
        &self.skipped
    }

    /// Paths of files that an earlier path also names: the stream returns their packets once for each path.
    pub fn repeated(&self) -> &[PathBuf] {
        &self.repeated
    }

    /// Number of packets returned so far.
    pub fn packets(&self) -> u64 {
        self.before + self.batch().len() as u64
    }

    /// Number of bytes read so far from all files on disk.
    pub fn bytes_done(&self) -> u64 {
        self.finished + self.active.iter().flatten().map(|a| a.reader.bytes_done()).sum::<u64>()
    }

    /// Size of all files on disk in bytes; `None` if one is a pipe or similar input.
    pub fn bytes_total(&self) -> Option<u64> {
        self.total
    }
}

/// The files that are also under a path before.
fn repeated<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    files.filter(|path| FileId::of(path).is_some_and(|id| !seen.insert(id))).cloned().collect()
}

fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

/// Adds the files of a directory, each with whether the caller named it.
fn list(dir: &Path, options: Options, files: &mut Vec<(PathBuf, bool)>) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if options.recurse && !is_index(&path) {
                list(&path, options, files)?;
            }
        } else if fs::metadata(&path).is_ok_and(|m| m.is_file()) {
            // Opening a pipe or a device in a directory may block.
            files.push((path, false));
        }
    }
    Ok(())
}

/// Whether a folder is an index of `gannet index`, which is stored next to its capture:
/// `day.pcap.gannet` for `day.pcap`.
#[must_use]
pub fn is_index(folder: &Path) -> bool {
    folder.extension().is_some_and(|extension| extension == "gannet")
        && folder.with_extension("").is_file()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test::Dir;
    use crate::test::Owned;
    use crate::test::drained_stream;
    use crate::test::written;

    /// A capture of one-byte packets at `times`; the byte identifies the file.
    fn capture(mark: u8, times: impl IntoIterator<Item = i64>) -> Vec<u8> {
        let packets: Vec<_> = times.into_iter().map(|t| Owned::new(t, &[mark])).collect();
        let packets: Vec<_> = packets.iter().map(Owned::packet).collect();
        written("x.pcap", &packets)
    }

    fn open(paths: &[PathBuf]) -> Stream {
        Stream::open(paths, Options::default()).unwrap()
    }

    fn marks(all: &[Owned]) -> Vec<(i64, u8)> {
        all.iter().map(|p| (p.nanos, p.data[0])).collect()
    }

    #[test]
    fn rotated_files_follow_each_other_uncopied() {
        let dir = Dir::new("rotated");
        let b = dir.file("a", &capture(b'b', 2_000..4_000));
        let a = dir.file("b", &capture(b'a', 0..2_000));
        let mut stream = open(&[b, a]);
        let mut times = Vec::new();
        while let Some(batch) = stream.next_batch().unwrap() {
            times.extend(batch.iter().map(|p| p.time.as_nanos()));
            assert!(stream.merged.refs.is_empty());
        }
        assert!(times.into_iter().eq(0..4_000));
        assert_eq!(stream.packets(), 4_000);
        assert_eq!(Some(stream.bytes_done()), stream.bytes_total());
    }

    #[test]
    fn overlapping_files_are_merged_and_ties_keep_the_order_given() {
        let dir = Dir::new("merged");
        let a = dir.file("a", &capture(b'a', [1, 3, 3, 9]));
        let b = dir.file("b", &capture(b'b', [2, 3, 10, 4]));
        let (all, errors) = drained_stream(open(&[b, a]));
        assert!(errors.is_empty());
        let expected = [
            (1, b'a'),
            (2, b'b'),
            (3, b'b'),
            (3, b'a'),
            (3, b'a'),
            (9, b'a'),
            (10, b'b'),
            (4, b'b'),
        ];
        assert_eq!(marks(&all), expected, "a file keeps its own order");
    }

    #[test]
    fn damage_ends_one_file_only() {
        let dir = Dir::new("damaged");
        let mut cut = capture(b'a', [1, 5, 6]);
        cut.pop();
        let a = dir.file("a", &cut);
        let b = dir.file("b", &capture(b'b', [2, 7]));
        let empty = dir.file("c", &capture(b'c', []));
        let head = dir.file("d", &capture(b'd', [])[..20]);
        let mut stream = open(&[a.clone(), b, empty, head]);
        let mut seen = Vec::new();
        for _ in 0..7 {
            match stream.next_batch() {
                Ok(Some(batch)) => seen.extend(batch.iter().map(|p| p.data[0])),
                Ok(None) => seen.push(b'.'),
                Err(Error::Cut { file, .. }) => seen.push(if file == a { b'!' } else { b'?' }),
                Err(e) => panic!("{e}"),
            }
        }
        assert_eq!(seen, b"?aba!b..");
    }

    #[test]
    fn directories_are_read_as_their_captures() {
        let dir = Dir::new("directory");
        dir.file("2.pcap", &capture(b'2', [5]));
        dir.file("1.pcap", &capture(b'1', [5]));
        dir.file("notes.txt", b"no capture");
        dir.file("empty", b"");
        fs::create_dir_all(dir.0.join("sub")).unwrap();
        dir.file("sub/3.pcap", &capture(b'3', [5]));
        let stream = open(std::slice::from_ref(&dir.0));
        let skipped: Vec<_> = stream.skipped().iter().map(ToString::to_string).collect();
        assert_eq!(skipped.len(), 2, "{skipped:?}");
        assert!(skipped[0].contains("empty file") && skipped[1].contains("text"), "{skipped:?}");
        assert_eq!(marks(&drained_stream(stream).0), [(5, b'1'), (5, b'2'), (5, b'3')]);
        let flat = Stream::open(
            std::slice::from_ref(&dir.0),
            Options { recurse: false, ..Options::default() },
        )
        .unwrap();
        assert_eq!(drained_stream(flat).0.len(), 2);
    }

    #[test]
    fn files_under_several_paths_are_known() {
        let dir = Dir::new("repeated");
        let a = dir.file("a.pcap", &capture(b'a', [5]));
        let b = dir.file("b.pcap", &capture(b'b', [5]));
        let again = dir.0.join("../").join(dir.0.file_name().unwrap()).join("a.pcap");
        let stream = open(&[a, again.clone(), b, dir.0.clone()]);
        assert_eq!(stream.repeated(), [again, dir.0.join("a.pcap"), dir.0.join("b.pcap")]);
        assert_eq!(drained_stream(stream).0.len(), 5);
    }

    #[test]
    fn no_capture_is_an_error_at_once() {
        let dir = Dir::new("none");
        let text = dir.file("notes.txt", b"no capture");
        for paths in [vec![dir.0.clone()], vec![text], vec![]] {
            let error = Stream::open(&paths, Options::default()).unwrap_err();
            assert!(matches!(error, Error::NotACapture { .. }), "{error}");
        }
    }

    #[test]
    fn more_files_than_are_kept_open() {
        let dir = Dir::new("many");
        let paths: Vec<_> = (0..3 * KEEP_OPEN as i64)
            .map(|i| dir.file(&i.to_string(), &capture(b'm', [i, 1_000 - i])))
            .collect();
        let (all, errors) = drained_stream(open(&paths));
        assert!(errors.is_empty());
        assert_eq!(all.len(), 6 * KEEP_OPEN);
        assert!(all.is_sorted_by_key(|p| p.nanos));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn merging_is_a_stable_sort(
            files in prop::collection::vec(prop::collection::vec(0..5_000_i64, 0..1_500), 1..5),
        ) {
            let dir = Dir::new("stable");
            let mut expected = Vec::new();
            let mut paths = Vec::new();
            for (index, mut times) in files.into_iter().enumerate() {
                times.sort_unstable();
                paths.push(dir.file(&index.to_string(), &capture(index as u8, times.clone())));
                expected.extend(times.into_iter().map(|t| (t, index as u8)));
            }
            expected.sort();
            let (all, errors) = drained_stream(open(&paths));
            prop_assert!(errors.is_empty());
            prop_assert_eq!(marks(&all), expected);
        }
    }
}
