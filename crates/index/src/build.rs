//! Making an index.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use gannet_base::NewFile;
use gannet_base::prefetch;
use gannet_capture::Batch;
use gannet_capture::Compression;
use gannet_capture::Format;
use gannet_capture::Reader;
use gannet_capture::RestartPoints;
use gannet_capture::Stream;
use gannet_capture::unpacked_from;
use gannet_engine::PacketIndex;
use gannet_engine::ShardIndex;

use crate::analysis::Analysis;
use crate::collector::Shared;
use crate::error::Error;
use crate::file::BLOCK;
use crate::file::ENTRY;
use crate::file::EVERY;
use crate::file::Entry;
use crate::file::PLACE;
use crate::header::Header;
use crate::identity::Identity;
use crate::identity::check;
use crate::lists::Lists;
use crate::lists::add_errors;
use crate::lists::add_pieces;
use crate::path_of;
use crate::records::RecordPosition;
use crate::records::first;
use crate::restarts::Restarts;
use crate::varint;

/// Lists that are prefetched.
const AHEAD: usize = 16;

/// The most memory that lists may take: of some hundred gigabytes of traffic.
pub(crate) const MOST: usize = 1 << 30;

/// Decompressed bytes from one restart point to the next, at least: they are decompressed in some ten milliseconds.
pub const RESTARTS_EVERY: u64 = 8 << 20;

/// The most bytes before the first packet that an index has.
const MOST_HEAD: u64 = 16 << 20;

/// Collects which packets belong to which connections.
#[derive(Debug)]
pub struct Builder {
    analysis: Analysis,
    capture: Mutex<Capture>,
    shared: Arc<Shared>,
}

/// The capture.
#[derive(Debug, Default)]
struct Capture {
    /// Packets by number, with known offsets.
    places: Vec<(u64, u64)>,
    /// Packets that the batches had.
    packets: u64,
    /// Offset of the first packet.
    first: Option<u64>,
    /// Whether some offset is unknown.
    lost: bool,
    /// The last interface that a packet has.
    interface: u32,
    /// Restart points of a compressed capture, where its format has any.
    restarts: Option<(Compression, RestartPoints)>,
}

/// The size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSize {
    /// Connections and tunnels in it.
    pub lists: u64,
    /// Packets of the capture.
    pub packets: u64,
    /// Bytes of the index.
    pub bytes: u64,
    /// Fragments that were forgotten before their datagram was complete: those of datagrams that were completed later
    /// are missing from their connections.
    pub forgotten: u64,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(Analysis::default())
    }
}

impl PacketIndex for Builder {
    fn shard(&self) -> Box<dyn ShardIndex> {
        Box::new(self.shared.collector())
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Builder {
    /// An index that an analysis with these options fills.
    pub fn new(analysis: Analysis) -> Self {
        Self::with_limit(analysis, MOST)
    }

    /// An index of which the lists take at most this much memory.
    fn with_limit(analysis: Analysis, most: usize) -> Self {
        Self { analysis, capture: Mutex::default(), shared: Arc::new(Shared::new(most)) }
    }

    /// Keeps restart points of a compressed capture, if its format has any: for a stream of one file that has not
    /// begun.
    pub fn keep_restarts(&self, stream: &mut Stream) {
        self.keep_restarts_every(stream, RESTARTS_EVERY);
    }

    /// The same, with at least this many decompressed bytes from one point to the next.
    pub fn keep_restarts_every(&self, stream: &mut Stream, every: u64) {
        lock(&self.capture).restarts = stream.keep_restarts(every);
    }

    /// The next batch of the capture.
    pub fn batch(&self, batch: &Batch<'_>) {
        let mut known = lock(&self.capture);
        let position = match known.restarts {
            Some(_) => batch.unpacked_position(),
            None => batch.position(),
        };
        let before = known.packets;
        known.packets += batch.len() as u64;
        let Some(position) = position.filter(|_| !known.lost) else {
            known.lost = true;
            return;
        };
        let Some(first) = batch.get(0) else { return };
        let place = |at| match first.format {
            Format::PcapNg => None,
            _ => batch.data_offset(at).map(|offset| position + offset as u64 - RECORD),
        };
        // Of pcapng, blocks of other kinds may stand before that of the packet.
        let begin = place(0).unwrap_or(position);
        known.first.get_or_insert(begin);
        if first.format == Format::PcapNg {
            known.places.push((before + 1, begin));
        }
        // At fixed packet numbers, so that the index does not depend on the size of batches.
        let next = (EVERY - before as usize % EVERY) % EVERY;
        for at in (next..batch.len()).step_by(EVERY) {
            known.places.extend(place(at).map(|place| (before + 1 + at as u64, place)));
        }
        if first.format == Format::PcapNg {
            let last = batch.iter().map(|packet| packet.interface).max();
            known.interface = known.interface.max(last.unwrap_or_default());
        }
    }

    /// Writes the index of a capture, whole or not at all.
    pub fn write(&self, capture: &Path) -> Result<IndexSize, Error> {
        let mut known = std::mem::take(&mut *lock(&self.capture));
        let mut shards = self.shared.take()?;
        let path = path_of(capture);
        let failed = |e| Error::Io(path.clone(), e);
        let identity = Identity::of(capture).map_err(|e| Error::Io(capture.to_owned(), e))?;
        let compression = known.restarts.as_ref().map(|(compression, _)| *compression);
        let mut head = Vec::new();
        known.lost |= known.first.is_some_and(|first| first > MOST_HEAD);
        if let Some(first) = known.first.filter(|_| !known.lost) {
            head = begin(capture, compression, first).map_err(failed)?;
            known.lost = !declares(&head, known.interface);
        }
        let seekable = !known.lost && known.first.is_some();
        let places = if seekable { std::mem::take(&mut known.places) } else { Vec::new() };
        if !seekable {
            head.clear();
        }
        let (points, windows) = match known.restarts.take().filter(|_| seekable) {
            Some((_, points)) => {
                let last = places.last().map_or(0, |(_, place)| *place);
                Restarts::bytes(points.take().iter().filter(|point| point.offset <= last))
            }
            None => Default::default(),
        };
        add_pieces(&mut shards);
        add_errors(&mut shards);
        let packets = known.packets;
        let forgotten = shards.iter().map(|shard| shard.forgotten).sum();
        let chunks: Vec<_> = shards.iter().flat_map(Lists::chunks).collect();
        let entries = by_key(&shards, &chunks);
        let (count, (table, blocks)) = (entries.len() as u64, blocks(&entries, &chunks));
        let header = Header {
            seekable,
            compression: compression.filter(|_| seekable),
            analysis: self.analysis,
            identity,
            packets,
            forgotten,
            head: head.len() as u64,
            places: places.len() as u64,
            points: points.len() as u64,
            windows: windows.len() as u64,
            blocks: table.len() as u64,
        };
        let mut all = header.bytes();
        let (places_len, table_len) = (PLACE as usize * places.len(), ENTRY * table.len());
        let points_len = points.as_flattened().len();
        all.reserve(head.len() + places_len + points_len + windows.len() + table_len);
        all.extend_from_slice(&head);
        for (number, place) in &places {
            all.extend_from_slice(&number.to_le_bytes());
            all.extend_from_slice(&place.to_le_bytes());
        }
        all.extend_from_slice(points.as_flattened());
        all.extend_from_slice(&windows);
        table.iter().for_each(|entry| all.extend_from_slice(&entry.bytes()));
        let bytes = (all.len() + blocks.len()) as u64;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        whole(&path, &[&all, &blocks]).map_err(failed)?;
        Ok(IndexSize { lists: count, packets, bytes, forgotten })
    }
}

/// Bytes before a packet's data in a pcap file.
const RECORD: u64 = 16;

/// The bytes that a reader needs before any packet.
fn begin(capture: &Path, compression: Option<Compression>, first: u64) -> io::Result<Vec<u8>> {
    let (mut head, file) = (Vec::new(), File::open(capture)?);
    match compression {
        None => file.take(first).read_to_end(&mut head),
        Some(compression) => {
            unpacked_from(file, compression, None)?.take(first).read_to_end(&mut head)
        }
    }?;
    Ok(head)
}

/// Whether the bytes before the first packet declare this interface.
fn declares(head: &[u8], interface: u32) -> bool {
    let Ok(mut reader) = Reader::from_read(Box::new(io::Cursor::new(head.to_vec())), "") else {
        return false;
    };
    let is_sound = matches!(reader.next_batch(), Ok(None));
    is_sound && reader.interfaces().len() > interface as usize
}

/// Lists by the keys of their uids.
fn by_key(shards: &[Lists], chunks: &[&[u8]]) -> Vec<(u64, RecordPosition)> {
    let all = shards.iter().scan(0, |before, shard| {
        let chunks = *before;
        *before += shard.chunks().count();
        Some(shard.iter().map(move |(key, place)| (key, place.after(chunks))))
    });
    let (mut entries, has_equal) = sorted(all.flatten(), shards.iter().map(Lists::len).sum());
    if has_equal {
        let order = |(key, place): &(u64, RecordPosition)| {
            let record = record(chunks, *place);
            (*key, first(record), record)
        };
        entries.sort_by(|a, b| order(a).cmp(&order(b)));
    }
    entries
}

/// The record at a place.
#[inline]
fn record<'a>(chunks: &[&'a [u8]], place: RecordPosition) -> &'a [u8] {
    place.of(chunks.get(place.chunk()).copied().unwrap_or_default())
}

/// Sorts by keys that are hashes, at most `most` of them: by their first bits, so that only a few entries are left to
/// compare. Returns whether some keys are equal, too.
fn sorted<T: Copy + Default>(
    entries: impl Iterator<Item = (u64, T)> + Clone,
    most: usize,
) -> (Vec<(u64, T)>, bool) {
    /// The most entries with the same first bits that are compared one by one.
    const FEW: u32 = 32;
    // One or two entries have the same first bits, on average.
    let bits = most.max(2).ilog2();
    let bucket = |key: u64| (key >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0_u32; 1 << bits];
    entries.clone().for_each(|(key, _)| ends[bucket(key)] += 1);
    let (mut all, mut largest) = (0, 0);
    for end in &mut ends {
        largest = largest.max(*end);
        // For now where it begins.
        (*end, all) = (all, all + *end);
    }
    let mut sorted = vec![(0, T::default()); all as usize];
    entries.for_each(|entry| {
        let end = &mut ends[bucket(entry.0)];
        sorted[*end as usize] = entry;
        *end += 1;
    });
    if largest > FEW {
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let has_equal = sorted.windows(2).any(|two| two[0].0 == two[1].0);
        return (sorted, has_equal);
    }
    let (mut last, mut has_equal) = (None, false);
    for at in 0..sorted.len() {
        let entry = sorted[at];
        if last.is_none_or(|last| entry.0 > last) {
            last = Some(entry.0);
            continue;
        }
        let mut to = at;
        while to > 0 && sorted[to - 1].0 > entry.0 {
            sorted[to] = sorted[to - 1];
            to -= 1;
        }
        has_equal |= to > 0 && sorted[to - 1].0 == entry.0;
        sorted[to] = entry;
    }
    (sorted, has_equal)
}

/// The table of blocks and the blocks. Those of one key are in one block.
fn blocks(entries: &[(u64, RecordPosition)], chunks: &[&[u8]]) -> (Vec<Entry>, Vec<u8>) {
    /// Bytes of a key, at most.
    const KEY: usize = 10;
    /// Bytes after those of the last list, at most.
    const AFTER: usize = 32;
    let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let mut all = Vec::<u8>::with_capacity(bytes + entries.len() * KEY + AFTER);
    let mut table = Vec::new();
    let (mut begin, mut first, mut last) = (0, 0, 0);
    let mut close = |all: &[u8], begin: usize, first: u64| {
        let block = all.get(begin..).unwrap_or_default();
        if !block.is_empty() {
            let (offset, len) = (begin as u64, block.len() as u32);
            table.push(Entry { first, offset, len, check: check(block) as u32 });
        }
        all.len()
    };
    for (n, (key, place)) in entries.iter().enumerate() {
        if let Some((_, place)) = entries.get(n + AHEAD)
            && let Some(chunk) = chunks.get(place.chunk())
        {
            prefetch(chunk.as_ptr().wrapping_add(place.offset()));
        }
        if all.len() - begin >= BLOCK && *key != last {
            begin = close(&all, begin, first);
        }
        if all.len() == begin {
            (first, last) = (*key, *key);
        }
        varint::put(&mut all, key - last);
        last = *key;
        place.append_to(&mut all, chunks.get(place.chunk()).copied().unwrap_or_default());
    }
    close(&all, begin, first);
    (table, all)
}

/// Writes a file that has its name only when it is complete.
fn whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = BufWriter::new(NewFile::create(path)?);
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// The table and the blocks of lists by their uids.
#[cfg(test)]
pub(crate) fn blocks_of(lists: &[(&[u8], &[u64])]) -> (Vec<Entry>, Vec<u8>) {
    use crate::identity::key;
    use crate::list::List;
    use crate::lists::Ends;

    let mut shard = Lists::default();
    for (uid, numbers) in lists {
        let mut list = List::new(shard.begin(key(uid), Ends::None));
        numbers.iter().for_each(|number| list.add(*number));
        shard.end(&list);
    }
    let chunks: Vec<_> = shard.chunks().collect();
    blocks(&by_key(std::slice::from_ref(&shard), &chunks), &chunks)
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Proto;
    use gannet_base::UidSource;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_sorted(
            keys in prop::collection::vec((0..64_u32, any::<u64>()), 0..300),
            more in 0..100_usize,
        ) {
            let keys: Vec<_> = keys.iter().map(|(shift, key)| key >> shift).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            let pairs = (0..).zip(&keys).map(|(n, key)| (*key, n));
            let (entries, has_equal) = sorted(pairs, keys.len() + more);
            prop_assert_eq!(has_equal, expected.windows(2).any(|two| two[0] == two[1]));
            prop_assert_eq!(entries.iter().map(|(key, _)| *key).collect::<Vec<_>>(), expected);
            prop_assert!(entries.iter().all(|(key, n)| keys[*n] == *key));
            let mut all: Vec<_> = entries.iter().map(|(_, n)| *n).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..keys.len()).collect::<Vec<_>>());
        }
    }

    /// The index of connections of one packet each, in two shards.
    fn built(connections: u64, most: usize, finish: bool) -> Result<IndexSize, Error> {
        let name = format!("gannet-{}-index-{connections}-{most}-{finish}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let capture = folder.join("a.pcap");
        fs::write(&capture, b"capture").unwrap();
        let builder = Builder::with_limit(Analysis::default(), most);
        let host = Addr::from_slice(&[10, 0, 0, 1]).unwrap();
        let id = ConnId { orig_h: host, orig_p: 1, resp_h: host, resp_p: 2 };
        let mut shards = [builder.shard(), builder.shard()];
        for n in 1..=connections {
            let (shard, uid) = (&mut shards[n as usize % 2], UidSource::new(0).connection(n, 0));
            shard.begin(n as u32, uid, id, Proto::Udp);
            shard.packet(n, n as u32);
        }
        shards.iter_mut().take(1 + usize::from(finish)).for_each(|shard| shard.finish());
        let built = builder.write(&capture);
        let _ = fs::remove_dir_all(&folder);
        built
    }

    #[test]
    fn an_index_has_all_lists_up_to_its_limit() {
        for connections in [10, 1_000, 100_000] {
            let written = built(connections, 128 * connections as usize, true);
            assert_eq!(written.unwrap().lists, connections);
            let written = built(connections, 64 * connections as usize, true);
            assert!(matches!(written, Err(Error::TooLarge(_))));
        }
    }

    #[test]
    fn an_index_without_the_lists_of_some_shard_is_not_written() {
        assert!(matches!(built(10, MOST, false), Err(Error::Unfinished(1))));
    }

    #[test]
    fn two_writers_of_an_index_do_not_disturb_each_other() {
        let folder = std::env::temp_dir().join(format!("gannet-index-two-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("packets");
        let parts = [0_u8, 1].map(|byte| vec![byte; 3 << 20]);
        std::thread::scope(|scope| {
            for part in &parts {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..10 {
                        whole(path, &[part, part]).unwrap();
                    }
                });
            }
        });
        let found = fs::read(&path).unwrap();
        assert!(parts.iter().any(|part| found == part.repeat(2)), "{} bytes", found.len());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
