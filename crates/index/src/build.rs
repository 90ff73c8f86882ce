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
    by_uid: HashMap<Uid, List, FixedState>,
    /// Connections by their ends, the lower one first, in the order in which shards said so.
    by_ends: HashMap<(ConnId, Proto), Vec<Uid>, FixedState>,
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

/// The packets of one connection, in order.
#[derive(Debug, Default)]
struct List {
    bytes: Vec<u8>,
    first: u64,
    last: u64,
    packets: u64,
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
        for (number, uid) in &notes.packets {
            lists.packet(*number, *uid);
        }
        for (uid, id, proto) in &notes.begun {
            lists.bytes += size_of::<(ConnId, Proto, [Uid; 2])>();
            lists.by_ends.entry((ordered(*id), *proto)).or_default().push(*uid);
        }
        lists.errors.append(&mut notes.errors);
        lists.pieces.append(&mut notes.pieces);
        lists.forgotten += notes.forgotten;
    }
}

impl Lists {
    #[inline]
    fn packet(&mut self, number: u64, uid: Uid) {
        if self.bytes > MOST {
            return;
        }
        let list = self.by_uid.entry(uid).or_insert_with(|| {
            self.bytes += size_of::<(Uid, List)>() + 8;
            List::default()
        });
        let before = list.bytes.len();
        list.push(number);
        self.bytes += list.bytes.len() - before;
    }
}

impl List {
    /// A packet after all others, or the last one again.
    #[inline]
    fn push(&mut self, number: u64) {
        if self.packets > 0 && number <= self.last {
            return;
        }
        varint::put(&mut self.bytes, number - self.last);
        if self.packets == 0 {
            self.first = number;
        }
        self.last = number;
        self.packets += 1;
    }

    fn numbers(&self) -> Vec<u64> {
        let (mut rest, mut last) = (&self.bytes[..], 0);
        std::iter::from_fn(|| {
            last += varint::take(&mut rest)?;
            Some(last)
        })
        .collect()
    }

    /// More packets, in any order.
    fn extend(&mut self, more: impl IntoIterator<Item = u64>) {
        let mut numbers = self.numbers();
        numbers.extend(more);
        numbers.sort_unstable();
        *self = Self::default();
        numbers.into_iter().for_each(|number| self.push(number));
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
        let entries = lists.finish();
        let count = entries.len() as u64;
        let (table, blocks) = blocks(entries);
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
    fn finish(mut self) -> Vec<(u64, List)> {
        if !self.pieces.is_empty() {
            let mut pieces: HashMap<u64, Vec<u64>> = HashMap::new();
            for (number, piece) in &self.pieces {
                pieces.entry(*number).or_default().push(*piece);
            }
            for list in self.by_uid.values_mut() {
                let numbers = list.numbers();
                let more: Vec<_> =
                    numbers.iter().filter_map(|n| pieces.get(n)).flatten().copied().collect();
                if !more.is_empty() {
                    list.extend(more);
                }
            }
        }
        let mut more: HashMap<Uid, Vec<u64>> = HashMap::new();
        for (number, id, proto) in &self.errors {
            // Of the connections between these ends, the last that began before.
            let known = self.by_ends.get(&(ordered(*id), *proto)).into_iter().flatten();
            let began = known.filter_map(|uid| Some((self.by_uid.get(uid)?.first, *uid)));
            let about = began.filter(|(first, _)| first < number).max();
            if let Some((_, uid)) = about {
                more.entry(uid).or_default().push(*number);
            }
        }
        for (uid, numbers) in more {
            if let Some(list) = self.by_uid.get_mut(&uid) {
                list.extend(numbers);
            }
        }
        let mut entries: Vec<_> = self
            .by_uid
            .into_iter()
            .map(|(uid, list)| {
                let (text, len) = uid.text();
                (key(text.get(..len).unwrap_or_default()), list)
            })
            .collect();
        entries.sort_by(|a, b| (a.0, a.1.first, &a.1.bytes).cmp(&(b.0, b.1.first, &b.1.bytes)));
        entries
    }
}

/// The table of blocks and the blocks. Those of one key are in one block.
fn blocks(entries: Vec<(u64, List)>) -> (Vec<Entry>, Vec<u8>) {
    let (mut table, mut all) = (Vec::new(), Vec::new());
    let (mut block, mut first, mut last) = (Vec::new(), 0, 0);
    let mut close = |block: &mut Vec<u8>, first: u64| {
        if !block.is_empty() {
            let (offset, len) = (all.len() as u64, block.len() as u32);
            table.push(Entry { first, offset, len, check: check(block) as u32 });
            all.append(block);
        }
    };
    for (key, list) in entries {
        if block.len() >= BLOCK && key != last {
            close(&mut block, first);
        }
        if block.is_empty() {
            (first, last) = (key, key);
        }
        varint::put(&mut block, key - last);
        varint::put(&mut block, list.packets);
        varint::put(&mut block, list.bytes.len() as u64);
        block.extend_from_slice(&list.bytes);
        last = key;
    }
    close(&mut block, first);
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
    let list = |numbers: &[u64]| {
        let mut list = List::default();
        numbers.iter().for_each(|number| list.push(*number));
        list
    };
    let mut entries: Vec<_> =
        lists.iter().map(|(uid, numbers)| (key(uid), list(numbers))).collect();
    entries.sort_by_key(|entry| entry.0);
    blocks(entries)
}
