//! Collecting the packets of connections, as shards report them.

use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use gannet_base::ConnId;
use gannet_base::Proto;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_engine::ShardIndex;

use crate::error::Error;
use crate::lists::Lists;

/// The lists of shards that have finished, and the memory of all.
#[derive(Debug)]
pub(crate) struct Shared {
    finished: Mutex<Vec<Lists>>,
    /// Shards that have not finished.
    open: AtomicUsize,
    /// Bytes of all lists, about.
    bytes: AtomicUsize,
    /// The most bytes.
    most: usize,
}

impl Shared {
    /// Of an index of at most this many bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (open, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { finished: Mutex::default(), open, bytes, most }
    }

    /// The collector of one more shard.
    pub(crate) fn collector(self: &Arc<Self>) -> Collector {
        self.open.fetch_add(1, Ordering::Relaxed);
        Collector::new(Arc::clone(self))
    }

    /// Counts bytes. Returns whether all of them fit.
    pub(crate) fn count(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.most
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds the lists of a shard that has finished.
    pub(crate) fn add(&self, lists: Lists) {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(lists);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// The lists of all shards.
    pub(crate) fn take(&self) -> Result<Vec<Lists>, Error> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        match self.open.load(Ordering::Relaxed) {
            _ if self.bytes() > self.most => Err(Error::TooLarge(self.most)),
            0 => Ok(mem::take(&mut *finished)),
            open => Err(Error::Unfinished(open)),
        }
    }
}

/// What one shard reports.
#[derive(Debug)]
pub(crate) struct Collector {
    shared: Arc<Shared>,
    lists: Lists,
    /// The place of the list of the connection in each slot of the table.
    places: Vec<u32>,
    /// The places of the lists of tunnels.
    tunnels: UidMap<u32>,
    /// The last packet, and the place of its last list.
    last: (u64, u32),
    /// Bytes of memory that the shared count does not have yet.
    bytes: usize,
    /// It takes no more: all lists together have too many bytes, or the analysis has ended.
    is_full: bool,
    has_finished: bool,
}

/// No place of a list.
const NONE: u32 = u32::MAX;

/// Bytes that are counted together.
const COUNTED: usize = 16 << 10;

impl Collector {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            lists: Lists::default(),
            places: Vec::new(),
            tunnels: UidMap::default(),
            last: (u64::MAX, NONE),
            bytes: 0,
            is_full: false,
            has_finished: false,
        }
    }

    /// Begins a list whose place takes some bytes, if there is memory for it.
    fn list(&mut self, uid: Uid, ends: Option<(ConnId, Proto)>, bytes: usize) -> Option<u32> {
        if self.is_full {
            return None;
        }
        let place = self.lists.begin(uid, ends);
        self.count(Lists::BYTES + bytes);
        (!self.is_full).then_some(place)
    }

    /// Counts memory, and frees it if there is too much.
    fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= COUNTED && !self.shared.count(mem::take(&mut self.bytes)) {
            self.is_full = true;
            self.lists = Lists::default();
            self.places = Vec::new();
            self.tunnels = UidMap::default();
        }
    }

    // Nothing is saved for a call: the ones that it has are the last of their paths.
    #[inline(always)]
    fn note(&mut self, number: u64, place: u32) {
        if number == self.last.0 {
            return self.note_again(number, place);
        }
        self.last = (number, place);
        self.push(number, place);
    }

    /// A packet of several lists, or one that is marked.
    #[cold]
    #[inline(never)]
    fn note_again(&mut self, number: u64, place: u32) {
        self.mark_lists(place);
        self.last = (number, place);
        self.push(number, place);
    }

    #[inline(always)]
    fn push(&mut self, number: u64, place: u32) {
        if let Some(list) = self.lists.at(place)
            && let Some(distance) = list.push(number)
        {
            self.put(place, distance);
        }
    }

    #[cold]
    #[inline(never)]
    fn put(&mut self, place: u32, distance: u64) {
        if let Some(list) = self.lists.at(place) {
            let more = list.put(distance);
            if more > 0 {
                self.count(more);
            }
        }
    }

    /// Marks the lists of a packet that has several or is marked.
    fn mark_lists(&mut self, place: u32) {
        if place != self.last.1 {
            for place in [place, self.last.1] {
                if let Some(list) = self.lists.at(place) {
                    list.mark();
                }
            }
        }
    }
}

impl ShardIndex for Collector {
    fn begin(&mut self, slot: u32, uid: Uid, id: ConnId, proto: Proto) {
        let ends = Some((id, proto));
        let Some(place) = self.list(uid, ends, size_of::<u32>()) else { return };
        let slot = slot as usize;
        if slot >= self.places.len() {
            self.places.resize(slot + 1, NONE);
        }
        self.places[slot] = place;
    }

    fn packet(&mut self, number: u64, slot: u32) {
        if let Some(place) = self.places.get(slot as usize).copied() {
            self.note(number, place);
        }
    }

    fn tunnel(&mut self, number: u64, uid: Uid) {
        let known = self.tunnels.get(&uid).copied();
        let place = known.or_else(|| {
            let new = self.list(uid, None, size_of::<(Uid, u32)>())?;
            self.tunnels.insert(uid, new);
            Some(new)
        });
        if let Some(place) = place {
            self.note(number, place);
        }
    }

    fn mark(&mut self, number: u64) {
        if self.last.0 == number {
            self.mark_lists(NONE);
        }
        self.last = (number, NONE);
    }

    fn piece(&mut self, number: u64, piece: u64) {
        if !self.is_full {
            self.lists.pieces.push((number, piece));
            self.count(size_of::<(u64, u64)>());
        }
    }

    fn forget(&mut self, fragments: u64) {
        self.lists.forgotten += fragments;
    }

    fn error(&mut self, number: u64, id: ConnId, proto: Proto) {
        if !self.is_full {
            self.lists.errors.push((number, id, proto));
            self.count(size_of::<(u64, ConnId, Proto)>());
        }
    }

    fn finish(&mut self) {
        if mem::replace(&mut self.has_finished, true) {
            return;
        }
        self.shared.count(mem::take(&mut self.bytes));
        self.shared.add(mem::take(&mut self.lists));
        self.places = Vec::new();
        self.tunnels = UidMap::default();
        self.is_full = true;
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;
    use crate::lists::add_pieces;

    /// Collectors of an index of at most `most` bytes.
    fn collectors<const N: usize>(most: usize) -> (Arc<Shared>, [Collector; N]) {
        let shared = Arc::new(Shared::new(most));
        let collector = |_| shared.collector();
        (Arc::clone(&shared), [(); N].map(collector))
    }

    fn id(n: u64) -> ConnId {
        let host = |last| gannet_base::Addr::from_slice(&[10, 0, 0, last]).unwrap();
        ConnId { orig_h: host(1), orig_p: n as u16, resp_h: host(2), resp_p: 53 }
    }

    fn begin(collector: &mut Collector, slot: u32, n: u64) {
        collector.begin(slot, UidSource::new(0).connection(n, 0), id(n), Proto::Udp);
    }

    /// The packets of each list.
    fn packets(lists: &Lists) -> Vec<Vec<u64>> {
        lists.iter().map(|list| list.numbers().collect()).collect()
    }

    #[test]
    fn packets_are_of_the_last_connection_in_a_slot() {
        for all in [10, 1_000, 100_000] {
            let (shared, [mut collector]) = collectors(1 << 30);
            let tunnel = UidSource::new(0).connection(1, 1);
            for number in 1..=all {
                if number == 1 || number == 5 {
                    begin(&mut collector, 7, number);
                }
                collector.packet(number, 7);
                collector.tunnel(number, tunnel);
            }
            collector.finish();
            collector.finish();
            let lists = shared.take().unwrap();
            assert_eq!(lists.len(), 1);
            let expected = [(1..5).collect(), (1..=all).collect(), (5..=all).collect::<Vec<_>>()];
            assert_eq!(packets(&lists[0]), expected);
        }
    }

    #[test]
    fn nothing_is_collected_for_a_full_index() {
        let (shared, [mut collector]) = collectors(COUNTED);
        for number in 1..=100_000 {
            begin(&mut collector, number as u32, number);
            collector.packet(number, number as u32);
            collector.tunnel(number, UidSource::new(0).connection(number, 1));
            collector.mark(number);
            collector.piece(number, 1);
            collector.error(number, id(number), Proto::Udp);
        }
        assert!(collector.is_full && collector.places.is_empty() && collector.tunnels.is_empty());
        assert_eq!(collector.lists.iter().count(), 0);
        assert!(collector.lists.errors.is_empty() && collector.lists.pieces.is_empty());
        collector.finish();
        assert!(matches!(shared.take(), Err(Error::TooLarge(COUNTED))));
    }

    #[test]
    fn a_fragment_is_added_to_all_lists_of_the_packet_that_completes_its_datagram() {
        let (shared, [mut a, mut b]) = collectors(1 << 30);
        (0..3).for_each(|slot| begin(&mut a, slot, slot.into()));
        (3..6).for_each(|slot| begin(&mut b, slot, slot.into()));
        // Of packet 4, which completes a datagram: two before it is marked, and one after it.
        a.packet(1, 2);
        a.packet(4, 0);
        a.packet(4, 1);
        a.mark(4);
        a.piece(4, 2);
        a.piece(4, 3);
        a.packet(4, 2);
        a.packet(9, 0);
        // The other shard has a part of it, which the first one handed over.
        b.packet(3, 4);
        b.mark(4);
        b.packet(4, 4);
        b.packet(5, 5);
        [a, b].iter_mut().for_each(ShardIndex::finish);
        let mut shards = shared.take().unwrap();
        add_pieces(&mut shards);
        assert_eq!(packets(&shards[0]), [vec![2, 3, 4, 9], vec![2, 3, 4], vec![1, 2, 3, 4]]);
        // A list without packets is none.
        assert_eq!(packets(&shards[1]), [vec![2, 3, 4], vec![5]]);
    }

    #[test]
    fn memory_is_counted_alike_for_any_number_of_shards() {
        let (whole, [mut all]) = collectors(1 << 30);
        let (parts, mut each) = collectors::<2>(1 << 30);
        for number in 1..=5_000_u64 {
            let of = u32::from(number % 10 < 4);
            for collector in [&mut all, &mut each[of as usize]] {
                if number == 1 || number == 4 {
                    begin(collector, of, number);
                }
                collector.packet(number * 40, of);
            }
        }
        all.finish();
        each.iter_mut().for_each(ShardIndex::finish);
        assert_eq!(whole.bytes(), parts.bytes());
        assert!(whole.bytes() > 5_000, "{}", whole.bytes());
    }
}
