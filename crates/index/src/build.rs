//! Making an index.

use std::fs;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use foldhash::fast::FixedState;
use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_base::prefetch;
use gannet_capture::Batch;
use gannet_capture::Compression;
use gannet_capture::Format;
use gannet_capture::Reader;
use gannet_capture::RestartPoints;
use gannet_capture::Stream;
use gannet_capture::unpacked_from;
use gannet_engine::PacketIndex;
use gannet_engine::PacketNotes;
use hashbrown::HashMap;

use crate::error::Error;
use crate::file::BLOCK;
use crate::file::EVERY;
use crate::file::Entry;
use crate::header::Header;
use crate::identity::Identity;
use crate::identity::check;
use crate::identity::key;
use crate::path_of;
use crate::restarts::Restarts;
use crate::varint;

/// The most memory that lists may take: of some hundred gigabytes of traffic.
pub(crate) const MOST: usize = 1 << 30;

/// Decompressed bytes from one restart point to the next, at least: they are decompressed in some ten milliseconds.
pub const RESTARTS_EVERY: u64 = 8 << 20;

/// The most bytes before the first packet that an index has.
const MOST_HEAD: u64 = 16 << 20;

/// Collects which packets belong to which connections.
#[derive(Debug, Default)]
pub struct Builder(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    lists: Blocks<List>,
    /// The place of a list among them.
    by_uid: UidMap<u32>,
    /// The lists of packets that are being taken.
    taken: Vec<u32>,
    /// Connections and their ends, the lower one first, in the order in which shards said so.
    begun: Blocks<(Uid, ConnId, Proto)>,
    errors: Vec<(u64, ConnId, Proto)>,
    pieces: Vec<(u64, u64)>,
    /// Fragments that may be missing from their connections.
    forgotten: u64,
    /// Bytes of all of them, about.
    bytes: usize,
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

/// The packets of one connection, in order: a line of a cache, in which those of most connections are.
#[derive(Debug)]
#[repr(align(64))]
struct List {
    uid: Uid,
    /// How many.
    packets: u32,
    last: u64,
    /// The distances from one to the next.
    distances: Distances,
}

#[derive(Debug)]
enum Distances {
    Few(u8, [u8; FEW]),
    Many(Vec<u8>),
}

/// Bytes in a list itself.
const FEW: usize = 30;

/// Values that do not move when others come.
#[derive(Debug)]
struct Blocks<T>(Vec<Vec<T>>);

/// Values of a block.
const VALUES: usize = 1 << 10;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Blocks<T> {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * VALUES + last.len())
    }

    fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / VALUES)?.get(at % VALUES)
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at / VALUES)?.get_mut(at % VALUES)
    }

    fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < VALUES => last.push(value),
            _ => {
                let mut block = Vec::with_capacity(VALUES);
                block.push(value);
                self.0.push(block);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

/// The size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
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

impl PacketIndex for Builder {
    fn take(&self, notes: &mut PacketNotes) {
        let mut lists = self.lock();
        lists.packets_of(&notes.packets);
        lists.bytes += notes.begun.len() * size_of::<(Uid, ConnId, Proto)>();
        for (uid, id, proto) in notes.begun.drain(..) {
            lists.begun.push((uid, ordered(id), proto));
        }
        lists.errors.append(&mut notes.errors);
        lists.pieces.append(&mut notes.pieces);
        lists.forgotten += notes.forgotten;
    }
}

/// Packets whose lists are prefetched.
const AHEAD: usize = 16;

impl Lists {
    /// Takes packets, which are in order for each uid.
    fn packets_of(&mut self, packets: &[(u64, Uid)]) {
        // All lists are looked up first, so that one cache miss does not wait for another.
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        for (_, uid) in packets {
            if self.bytes > MOST {
                return;
            }
            let known = self.by_uid.get(uid).copied();
            taken.push(known.unwrap_or_else(|| self.begin(*uid)));
        }
        for (n, (at, (number, _))) in taken.iter().zip(packets).enumerate() {
            if let Some(list) = taken.get(n + AHEAD).and_then(|at| self.lists.get(*at as usize)) {
                prefetch(list);
            }
            let near = taken.get(n + AHEAD / 2).and_then(|at| self.lists.get(*at as usize));
            if let Some(List { distances: Distances::Many(bytes), .. }) = near {
                prefetch(bytes.as_ptr().wrapping_add(bytes.len()));
            }
            if let Some(list) = self.lists.get_mut(*at as usize) {
                self.bytes += list.push(*number);
            }
        }
        self.taken = taken;
    }

    /// Begins the list of a uid.
    #[cold]
    fn begin(&mut self, uid: Uid) -> u32 {
        let new = self.lists.len() as u32;
        self.bytes += size_of::<(Uid, u32, List)>() + 8;
        self.lists.push(List::new(uid));
        self.by_uid.insert(uid, new);
        new
    }
}

impl List {
    fn new(uid: Uid) -> Self {
        Self { uid, packets: 0, last: 0, distances: Distances::Few(0, [0; FEW]) }
    }

    /// A packet after all others, or the last one again. Returns how many bytes it takes beyond those of the list.
    #[inline]
    fn push(&mut self, number: u64) -> usize {
        if self.packets > 0 && number <= self.last {
            return 0;
        }
        let distance = number - self.last;
        self.last = number;
        self.packets += 1;
        match &mut self.distances {
            Distances::Few(len, bytes) => {
                let (at, more) = (usize::from(*len), varint::len(distance));
                if let Some(place) = bytes.get_mut(at..at + more) {
                    varint::write(place, distance);
                    *len += more as u8;
                    return 0;
                }
                let mut many = Vec::with_capacity(2 * FEW);
                many.extend_from_slice(&bytes[..at]);
                varint::put(&mut many, distance);
                self.distances = Distances::Many(many);
                at + more
            }
            Distances::Many(bytes) => {
                let before = bytes.len();
                varint::put(bytes, distance);
                bytes.len() - before
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.distances {
            Distances::Few(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Distances::Many(bytes) => bytes,
        }
    }

    /// The first packet; 0 if there is none.
    fn first(&self) -> u64 {
        varint::take(&mut self.bytes()).unwrap_or_default()
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let (mut rest, mut last) = (self.bytes(), 0);
        std::iter::from_fn(move || {
            last += varint::take(&mut rest)?;
            Some(last)
        })
    }

    /// More packets, in any order.
    fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        let mut numbers: Vec<_> = self.numbers().chain(more).collect();
        numbers.sort_unstable();
        *self = Self::new(self.uid);
        numbers.into_iter().for_each(|number| {
            self.push(number);
        });
    }
}

/// The same for both directions.
fn ordered(id: ConnId) -> ConnId {
    let flipped = id.flipped();
    if (id.orig_h, id.orig_p) <= (flipped.orig_h, flipped.orig_p) { id } else { flipped }
}

impl Builder {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps restart points of a compressed capture, if its format has any: for a stream of one file that has not
    /// begun.
    pub fn keep_restarts(&self, stream: &mut Stream) {
        self.keep_restarts_every(stream, RESTARTS_EVERY);
    }

    /// The same, with at least this many decompressed bytes from one point to the next.
    pub fn keep_restarts_every(&self, stream: &mut Stream, every: u64) {
        self.lock().restarts = stream.keep_restarts(every);
    }

    /// The next batch of the capture.
    pub fn batch(&self, batch: &Batch<'_>) {
        let mut lists = self.lock();
        let position = match lists.restarts {
            Some(_) => batch.unpacked_position(),
            None => batch.position(),
        };
        let before = lists.packets;
        lists.packets += batch.len() as u64;
        let Some(position) = position.filter(|_| !lists.lost) else {
            lists.lost = true;
            return;
        };
        let Some(first) = batch.get(0) else { return };
        let place = |at| match first.format {
            Format::PcapNg => None,
            _ => batch.data_offset(at).map(|offset| position + offset as u64 - RECORD),
        };
        // Of pcapng, blocks of other kinds may stand before that of the packet.
        let begin = place(0).unwrap_or(position);
        lists.first.get_or_insert(begin);
        if first.format == Format::PcapNg {
            lists.places.push((before + 1, begin));
        }
        // At fixed packet numbers, so that the index does not depend on the size of batches.
        let next = (EVERY - before as usize % EVERY) % EVERY;
        for at in (next..batch.len()).step_by(EVERY) {
            lists.places.extend(place(at).map(|place| (before + 1 + at as u64, place)));
        }
        if first.format == Format::PcapNg {
            let last = batch.iter().map(|packet| packet.interface).max();
            lists.interface = lists.interface.max(last.unwrap_or_default());
        }
    }

    /// Writes the index of a capture, whole or not at all.
    pub fn write(&self, capture: &Path) -> Result<Built, Error> {
        let mut guard = self.lock();
        let mut lists = std::mem::take(&mut *guard);
        drop(guard);
        if lists.bytes > MOST {
            return Err(Error::TooLarge(MOST));
        }
        let path = path_of(capture);
        let failed = |e| Error::Io(path.clone(), e);
        let identity = Identity::of(capture).map_err(|e| Error::Io(capture.to_owned(), e))?;
        let compression = lists.restarts.as_ref().map(|(compression, _)| *compression);
        let mut head = Vec::new();
        lists.lost |= lists.first.is_some_and(|first| first > MOST_HEAD);
        if let Some(first) = lists.first.filter(|_| !lists.lost) {
            head = begin(capture, compression, first).map_err(failed)?;
            lists.lost = !declares(&head, lists.interface);
        }
        let seekable = !lists.lost && lists.first.is_some();
        let places = if seekable { std::mem::take(&mut lists.places) } else { Vec::new() };
        if !seekable {
            head.clear();
        }
        let (points, windows) = match lists.restarts.take().filter(|_| seekable) {
            Some((_, points)) => {
                let last = places.last().map_or(0, |(_, place)| *place);
                Restarts::bytes(points.take().iter().filter(|point| point.offset <= last))
            }
            None => Default::default(),
        };
        let (packets, forgotten) = (lists.packets, lists.forgotten);
        let lists = lists.finish();
        let count = lists.len() as u64;
        let (table, blocks) = blocks(lists.iter());
        let header = Header {
            seekable,
            compression: compression.filter(|_| seekable),
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
        Ok(Built { lists: count, packets, bytes, forgotten })
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

impl Lists {
    /// All lists by their keys.
    fn finish(mut self) -> Blocks<List> {
        if !self.pieces.is_empty() {
            let mut pieces = std::mem::take(&mut self.pieces);
            pieces.sort_unstable();
            for list in self.lists.iter_mut() {
                let first = list.first();
                let from = pieces.partition_point(|(of, _)| *of < first);
                // Few lists have a packet that completes a datagram.
                let of_list = pieces.get(from..).unwrap_or_default();
                if of_list.first().is_none_or(|(of, _)| *of > list.last) {
                    continue;
                }
                let (mut more, mut rest) = (Vec::new(), of_list.iter().peekable());
                for number in list.numbers() {
                    while let Some((of, piece)) = rest.next_if(|(of, _)| *of <= number) {
                        more.extend((*of == number).then_some(*piece));
                    }
                    if rest.peek().is_none() {
                        break;
                    }
                }
                if !more.is_empty() {
                    list.extend(more);
                }
            }
        }
        // Only the ends that errors name.
        let mut by_ends: HashMap<(ConnId, Proto), Vec<u32>, FixedState> = HashMap::default();
        for (_, id, proto) in &self.errors {
            by_ends.entry((ordered(*id), *proto)).or_default();
        }
        if !by_ends.is_empty() {
            for (uid, id, proto) in self.begun.iter() {
                if let Some(known) = by_ends.get_mut(&(*id, *proto)) {
                    known.extend(self.by_uid.get(uid));
                }
            }
        }
        let mut more: HashMap<u32, Vec<u64>> = HashMap::new();
        for (number, id, proto) in &self.errors {
            // Of the connections between these ends, the last that began before.
            let known = by_ends.get(&(ordered(*id), *proto)).into_iter().flatten();
            let began = known.filter_map(|at| {
                let list = self.lists.get(*at as usize)?;
                Some((list.first(), list.uid, *at))
            });
            let about = began.filter(|(first, ..)| first < number).max();
            if let Some((.., at)) = about {
                more.entry(at).or_default().push(*number);
            }
        }
        for (at, numbers) in more {
            if let Some(list) = self.lists.get_mut(at as usize) {
                list.extend(numbers);
            }
        }
        self.lists
    }
}

/// The table of blocks and the blocks. Those of one key are in one block.
fn blocks<'a>(lists: impl Iterator<Item = &'a List>) -> (Vec<Entry>, Vec<u8>) {
    let of = |list: &'a List| {
        let (text, len) = list.uid.text();
        (key(text.get(..len).unwrap_or_default()), list)
    };
    let mut entries: Vec<_> = lists.map(of).collect();
    entries.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| (a.1.first(), a.1.bytes()).cmp(&(b.1.first(), b.1.bytes())))
    });
    blocks_by_key(&entries)
}

fn blocks_by_key(entries: &[(u64, &List)]) -> (Vec<Entry>, Vec<u8>) {
    /// Bytes of the key and the lengths before a list, about.
    const AROUND: usize = 10;
    let bytes = entries.iter().map(|(_, list)| list.bytes().len() + AROUND).sum();
    let (mut table, mut all) = (Vec::new(), Vec::<u8>::with_capacity(bytes));
    let (mut begin, mut first, mut last) = (0, 0, 0);
    let mut close = |all: &[u8], begin: usize, first: u64| {
        let block = all.get(begin..).unwrap_or_default();
        if !block.is_empty() {
            let (offset, len) = (begin as u64, block.len() as u32);
            table.push(Entry { first, offset, len, check: check(block) as u32 });
        }
        all.len()
    };
    for (n, (key, list)) in entries.iter().enumerate() {
        if let Some((_, list)) = entries.get(n + AHEAD) {
            prefetch(*list);
        }
        if all.len() - begin >= BLOCK && *key != last {
            begin = close(&all, begin, first);
        }
        if all.len() == begin {
            (first, last) = (*key, *key);
        }
        varint::put(&mut all, key - last);
        varint::put(&mut all, u64::from(list.packets));
        varint::put(&mut all, list.bytes().len() as u64);
        all.extend_from_slice(list.bytes());
        last = *key;
    }
    close(&all, begin, first);
    (table, all)
}

/// Writes a file that has its name only when it is complete.
fn whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = BufWriter::new(File::create(&temporary)?);
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&temporary, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The table and the blocks of lists by their uids.
#[cfg(test)]
pub(crate) fn blocks_of(lists: &[(&[u8], &[u64])]) -> (Vec<Entry>, Vec<u8>) {
    let uid = gannet_base::UidSource::new(0).connection(0, 0);
    let list = |numbers: &[u64]| {
        let mut list = List::new(uid);
        numbers.iter().for_each(|number| {
            list.push(*number);
        });
        list
    };
    let lists: Vec<_> = lists.iter().map(|(uid, numbers)| (key(uid), list(numbers))).collect();
    let mut entries: Vec<_> = lists.iter().map(|(key, list)| (*key, list)).collect();
    entries.sort_by_key(|entry| entry.0);
    blocks_by_key(&entries)
}
