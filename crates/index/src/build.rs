//! Building of an index.

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
use crate::file::BLOCK_ENTRY;
use crate::file::BlockEntry;
use crate::file::OFFSET_ENTRY;
use crate::file::OFFSET_INTERVAL;
use crate::header::Header;
use crate::identity::Identity;
use crate::identity::checksum;
use crate::lists::Lists;
use crate::lists::add_errors;
use crate::lists::add_fragments;
use crate::path_of;
use crate::records::RecordPosition;
use crate::records::first;
use crate::restarts::Restarts;
use crate::varint;

/// Number of lists after the current one whose record is prefetched.
const PREFETCH_DISTANCE: usize = 16;

/// Maximum memory of lists, in bytes; enough for some hundred gigabytes of traffic.
pub(crate) const MAX_MEMORY: usize = 1 << 30;

/// Minimum number of decompressed bytes from one restart point to the next; they are decompressed in about 10 ms.
pub const RESTARTS_EVERY: u64 = 8 << 20;

/// Maximum number of bytes before the first packet that an index stores.
const MAX_HEAD: u64 = 16 << 20;

/// Collects the packets of each connection and writes the index.
#[derive(Debug)]
pub struct Builder {
    analysis: Analysis,
    capture: Mutex<Capture>,
    shared: Arc<Shared>,
}

/// What is recorded about the capture.
#[derive(Debug, Default)]
struct Capture {
    /// Numbers and offsets of some packets.
    offsets: Vec<(u64, u64)>,
    /// Number of packets in all batches.
    packets: u64,
    /// Offset of the first packet.
    first: Option<u64>,
    /// Whether the offset of some batch is unknown.
    has_unknown_offset: bool,
    /// Highest interface id of a pcapng packet.
    last_interface: u32,
    /// Restart points of a compressed capture, if its format supports them.
    restarts: Option<(Compression, RestartPoints)>,
}

/// The size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSize {
    /// Number of connections and tunnels.
    pub lists: u64,
    /// Number of packets in the capture.
    pub packets: u64,
    /// Size of the index, in bytes.
    pub bytes: u64,
    /// Number of fragments that were evicted before their datagram was complete. They are missing from their
    /// connections if the datagram was completed later.
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
    /// A builder for an analysis with these options.
    pub fn new(analysis: Analysis) -> Self {
        Self::with_limit(analysis, MAX_MEMORY)
    }

    /// A builder whose lists take at most `max_memory` bytes.
    fn with_limit(analysis: Analysis, max_memory: usize) -> Self {
        Self { analysis, capture: Mutex::default(), shared: Arc::new(Shared::new(max_memory)) }
    }

    /// Records restart points of a compressed capture, if its format supports them. Call this before the first batch of
    /// a stream of one file.
    pub fn keep_restarts(&self, stream: &mut Stream) {
        self.keep_restarts_every(stream, RESTARTS_EVERY);
    }

    /// Like [`keep_restarts`](Self::keep_restarts), with at least `every` decompressed bytes from one point to the
    /// next.
    pub fn keep_restarts_every(&self, stream: &mut Stream, every: u64) {
        lock(&self.capture).restarts = stream.keep_restarts(every);
    }

    /// Records the next batch of the capture.
    pub fn batch(&self, batch: &Batch<'_>) {
        let mut state = lock(&self.capture);
        let position = match state.restarts {
            Some(_) => batch.unpacked_position(),
            None => batch.position(),
        };
        let previous_packets = state.packets;
        state.packets += batch.len() as u64;
        let Some(position) = position.filter(|_| !state.has_unknown_offset) else {
            state.has_unknown_offset = true;
            return;
        };
        let Some(first) = batch.get(0) else { return };
        let offset_of = |at| match first.format {
            Format::PcapNg => None,
            _ => batch.data_offset(at).map(|data| position + data as u64 - RECORD_HEADER),
        };
        // In pcapng, blocks of other types may precede that of the packet.
        let start = offset_of(0).unwrap_or(position);
        state.first.get_or_insert(start);
        if first.format == Format::PcapNg {
            state.offsets.push((previous_packets + 1, start));
        }
        // Record offsets at fixed packet numbers, so that the index does not depend on the size of batches.
        let next =
            (OFFSET_INTERVAL - previous_packets as usize % OFFSET_INTERVAL) % OFFSET_INTERVAL;
        for at in (next..batch.len()).step_by(OFFSET_INTERVAL) {
            state
                .offsets
                .extend(offset_of(at).map(|offset| (previous_packets + 1 + at as u64, offset)));
        }
        if first.format == Format::PcapNg {
            let last = batch.iter().map(|packet| packet.interface).max();
            state.last_interface = state.last_interface.max(last.unwrap_or_default());
        }
    }

    /// Writes the index of a capture atomically.
    pub fn write(&self, capture: &Path) -> Result<IndexSize, Error> {
        let mut state = std::mem::take(&mut *lock(&self.capture));
        let mut shards = self.shared.take()?;
        let path = path_of(capture);
        let failed = |e| Error::Io(path.clone(), e);
        let identity = Identity::of(capture).map_err(|e| Error::Io(capture.to_owned(), e))?;
        let compression = state.restarts.as_ref().map(|(compression, _)| *compression);
        let mut head = Vec::new();
        state.has_unknown_offset |= state.first.is_some_and(|first| first > MAX_HEAD);
        if let Some(first) = state.first.filter(|_| !state.has_unknown_offset) {
            head = start(capture, compression, first).map_err(failed)?;
            state.has_unknown_offset = !has_interface(&head, state.last_interface);
        }
        let seekable = !state.has_unknown_offset && state.first.is_some();
        let offsets = if seekable { std::mem::take(&mut state.offsets) } else { Vec::new() };
        if !seekable {
            head.clear();
        }
        let (points, windows) = match state.restarts.take().filter(|_| seekable) {
            Some((_, points)) => {
                let last = offsets.last().map_or(0, |(_, offset)| *offset);
                Restarts::bytes(points.take().iter().filter(|point| point.offset <= last))
            }
            None => Default::default(),
        };
        add_fragments(&mut shards);
        add_errors(&mut shards);
        let packets = state.packets;
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
            offsets: offsets.len() as u64,
            points: points.len() as u64,
            windows: windows.len() as u64,
            blocks: table.len() as u64,
        };
        let mut all = header.bytes();
        let (places_len, table_len) =
            (OFFSET_ENTRY as usize * offsets.len(), BLOCK_ENTRY * table.len());
        let points_len = points.as_flattened().len();
        all.reserve(head.len() + places_len + points_len + windows.len() + table_len);
        all.extend_from_slice(&head);
        for (number, offset) in &offsets {
            all.extend_from_slice(&number.to_le_bytes());
            all.extend_from_slice(&offset.to_le_bytes());
        }
        all.extend_from_slice(points.as_flattened());
        all.extend_from_slice(&windows);
        table.iter().for_each(|entry| all.extend_from_slice(&entry.bytes()));
        let bytes = (all.len() + blocks.len()) as u64;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        write_atomically(&path, &[&all, &blocks]).map_err(failed)?;
        Ok(IndexSize { lists: count, packets, bytes, forgotten })
    }
}

/// Size of a record header in a pcap file, in bytes.
const RECORD_HEADER: u64 = 16;

/// Reads the bytes before the first packet, which a reader needs before any packet.
fn start(capture: &Path, compression: Option<Compression>, first: u64) -> io::Result<Vec<u8>> {
    let (mut head, file) = (Vec::new(), File::open(capture)?);
    match compression {
        None => file.take(first).read_to_end(&mut head),
        Some(compression) => {
            unpacked_from(file, compression, None)?.take(first).read_to_end(&mut head)
        }
    }?;
    Ok(head)
}

/// Whether the bytes before the first packet declare this interface and those before it.
fn has_interface(head: &[u8], last_interface: u32) -> bool {
    let Ok(mut reader) = Reader::from_read(Box::new(io::Cursor::new(head.to_vec())), "") else {
        return false;
    };
    let is_valid = matches!(reader.next_batch(), Ok(None));
    is_valid && reader.interfaces().len() > last_interface as usize
}

/// Lists of all shards, sorted by the keys of their uids.
fn by_key(shards: &[Lists], chunks: &[&[u8]]) -> Vec<(u64, RecordPosition)> {
    let all = shards.iter().scan(0, |previous_packets, shard| {
        let chunks = *previous_packets;
        *previous_packets += shard.chunks().count();
        Some(shard.iter().map(move |(key, position)| (key, position.after(chunks))))
    });
    let (mut entries, has_equal) = sorted(all.flatten(), shards.iter().map(Lists::len).sum());
    if has_equal {
        let order = |(key, position): &(u64, RecordPosition)| {
            let record = record(chunks, *position);
            (*key, first(record), record)
        };
        entries.sort_by(|a, b| order(a).cmp(&order(b)));
    }
    entries
}

/// The record at a position.
#[inline]
fn record<'a>(chunks: &[&'a [u8]], position: RecordPosition) -> &'a [u8] {
    position.of(chunks.get(position.chunk()).copied().unwrap_or_default())
}

/// Sorts at most `max_entries` entries by their keys, which are hashes: by their leading bits into buckets, then by
/// insertion, because a bucket has only a few entries. Also returns whether some keys are equal.
fn sorted<T: Copy + Default>(
    entries: impl Iterator<Item = (u64, T)> + Clone,
    max_entries: usize,
) -> (Vec<(u64, T)>, bool) {
    /// Maximum size of a bucket for insertion sort.
    const MAX_BUCKET: u32 = 32;
    // A bucket has one or two entries on average.
    let bits = max_entries.max(2).ilog2();
    let bucket = |key: u64| (key >> (u64::BITS - bits)) as usize;
    let mut ends = vec![0_u32; 1 << bits];
    entries.clone().for_each(|(key, _)| ends[bucket(key)] += 1);
    let (mut all, mut largest) = (0, 0);
    for end in &mut ends {
        largest = largest.max(*end);
        // At first `ends` holds the start of each bucket.
        (*end, all) = (all, all + *end);
    }
    let mut sorted = vec![(0, T::default()); all as usize];
    entries.for_each(|entry| {
        let end = &mut ends[bucket(entry.0)];
        sorted[*end as usize] = entry;
        *end += 1;
    });
    if largest > MAX_BUCKET {
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

/// Encodes the table of blocks and the blocks. All lists of a key are in the same block.
fn blocks(entries: &[(u64, RecordPosition)], chunks: &[&[u8]]) -> (Vec<BlockEntry>, Vec<u8>) {
    /// Maximum length of an encoded key, in bytes.
    const MAX_KEY: usize = 10;
    /// Maximum number of bytes that [`RecordPosition::append_to`] copies after the last list.
    const PADDING: usize = 32;
    let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    let mut all = Vec::<u8>::with_capacity(bytes + entries.len() * MAX_KEY + PADDING);
    let mut table = Vec::new();
    let (mut start, mut first, mut last) = (0, 0, 0);
    let mut close_block = |all: &[u8], start: usize, first: u64| {
        let block = all.get(start..).unwrap_or_default();
        if !block.is_empty() {
            let (offset, len) = (start as u64, block.len() as u32);
            table.push(BlockEntry { first, offset, len, checksum: checksum(block) as u32 });
        }
        all.len()
    };
    for (n, (key, position)) in entries.iter().enumerate() {
        if let Some((_, position)) = entries.get(n + PREFETCH_DISTANCE)
            && let Some(chunk) = chunks.get(position.chunk())
        {
            prefetch(chunk.as_ptr().wrapping_add(position.offset()));
        }
        if all.len() - start >= BLOCK && *key != last {
            start = close_block(&all, start, first);
        }
        if all.len() == start {
            (first, last) = (*key, *key);
        }
        varint::append(&mut all, key - last);
        last = *key;
        position.append_to(&mut all, chunks.get(position.chunk()).copied().unwrap_or_default());
    }
    close_block(&all, start, first);
    (table, all)
}

/// Writes a file that gets its name when it is complete.
fn write_atomically(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = BufWriter::new(NewFile::create(path)?);
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// Encodes lists, given with their uids, as a table and blocks.
#[cfg(test)]
pub(crate) fn encode_lists(lists: &[(&[u8], &[u64])]) -> (Vec<BlockEntry>, Vec<u8>) {
    use crate::identity::uid_hash;
    use crate::list::List;
    use crate::lists::Endpoints;

    let mut shard = Lists::default();
    for (uid, numbers) in lists {
        let mut list = List::new(shard.begin(uid_hash(uid), Endpoints::None));
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

    /// Builds the index of connections of one packet each, in two shards.
    fn built(connections: u64, max_memory: usize, finish: bool) -> Result<IndexSize, Error> {
        let name =
            format!("gannet-{}-index-{connections}-{max_memory}-{finish}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let capture = folder.join("a.pcap");
        fs::write(&capture, b"capture").unwrap();
        let builder = Builder::with_limit(Analysis::default(), max_memory);
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
        assert!(matches!(built(10, MAX_MEMORY, false), Err(Error::Unfinished(1))));
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
                        write_atomically(path, &[part, part]).unwrap();
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
