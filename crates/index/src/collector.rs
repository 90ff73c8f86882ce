//! Collects the packets of connections that shards report.

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
use crate::identity::hash_of_uid;
use crate::list::List;
use crate::lists::Endpoints;
use crate::lists::Lists;

/// The lists of finished shards, and the memory use of all shards.
#[derive(Debug)]
pub(crate) struct Shared {
    finished: Mutex<Vec<Lists>>,
    /// Number of shards that have not finished.
    open: AtomicUsize,
    /// Approximate memory of all lists, in bytes.
    bytes: AtomicUsize,
    /// Maximum of `bytes`.
    max_memory: usize,
}

impl Shared {
    /// State for lists of at most `max_memory` bytes.
    pub(crate) fn new(max_memory: usize) -> Self {
        let (open, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { finished: Mutex::default(), open, bytes, max_memory }
    }

    /// Adds a shard and returns its collector.
    pub(crate) fn collector(self: &Arc<Self>) -> Collector {
        self.open.fetch_add(1, Ordering::Relaxed);
        Collector::new(Arc::clone(self))
    }

    /// Adds to the memory use. Returns whether it is within the limit.
    pub(crate) fn count(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max_memory
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds the lists of a shard that has finished.
    pub(crate) fn add(&self, lists: Lists) {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push(lists);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the lists of all shards.
    pub(crate) fn take(&self) -> Result<Vec<Lists>, Error> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        match self.open.load(Ordering::Relaxed) {
            _ if self.bytes() > self.max_memory => Err(Error::TooLarge(self.max_memory)),
            0 => Ok(mem::take(&mut *finished)),
            open => Err(Error::Unfinished(open)),
        }
    }
}

/// Collects the packets of one shard.
#[derive(Debug)]
pub(crate) struct Collector {
    shared: Arc<Shared>,
    lists: Lists,
    /// The list of the connection in each slot of the connection table.
    slots: Vec<List>,
    /// Lists of tunnels without a connection.
    tunnels: Vec<List>,
    /// List numbers of tunnels, by uid.
    by_uid: UidMap<u32>,
    /// The last packet and the number of the last list that it was added to: see [`list`](Self::list).
    last: (u64, u32),
    /// The last packet that was added to several lists, and these lists without the last one.
    others: (u64, Vec<u32>),
    /// The last packet that was marked because it may complete a datagram.
    marked: u64,
    /// Memory that is not added to the shared memory use yet, in bytes.
    bytes: usize,
    /// Whether nothing more is collected: the memory limit is reached, or the analysis has ended.
    is_full: bool,
    has_finished: bool,
}

/// List number that stands for no list.
const NO_LIST: u32 = u32::MAX >> 1;

/// Initial capacity for slots: their lists take 1 MiB. Without it, lists would often be copied as the table grows.
const INITIAL_SLOTS: usize = 16 << 10;

/// Number of bytes after which the shared memory use is updated.
const COUNT_INTERVAL: usize = 16 << 10;

impl Collector {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            lists: Lists::default(),
            slots: Vec::new(),
            tunnels: Vec::new(),
            by_uid: UidMap::default(),
            last: (u64::MAX, NO_LIST),
            others: (u64::MAX, Vec::new()),
            marked: u64::MAX,
            bytes: 0,
            is_full: false,
            has_finished: false,
        }
    }

    /// Counts memory; frees all lists if the limit is exceeded. Returns whether memory is left.
    #[inline]
    fn count(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.bytes < COUNT_INTERVAL || self.flush_count()
    }

    #[cold]
    fn flush_count(&mut self) -> bool {
        if !self.shared.count(mem::take(&mut self.bytes)) {
            self.is_full = true;
            self.lists = Lists::default();
            self.free();
        }
        !self.is_full
    }

    /// Frees the memory of lists that have not ended.
    fn free(&mut self) {
        (self.slots, self.tunnels) = (Vec::new(), Vec::new());
        self.by_uid = UidMap::default();
    }

    /// A list by its number: the slot of a connection, or the complement of the index of a tunnel.
    fn list(&mut self, number: u32) -> Option<&mut List> {
        match self.slots.get_mut(number as usize) {
            Some(list) => Some(list),
            None => self.tunnels.get_mut(!number as usize),
        }
    }

    /// Begins the list of a new tunnel without a connection; returns its number.
    fn new_tunnel(&mut self, uid: Uid) -> Option<u32> {
        if self.is_full || !self.count(Lists::BYTES + size_of::<(Uid, u32)>()) {
            return None;
        }
        let position = self.lists.begin(hash_of_uid(uid), Endpoints::None);
        let number = !(self.tunnels.len() as u32);
        self.tunnels.push(List::new(position));
        self.by_uid.insert(uid, number);
        Some(number)
    }

    /// Adds a packet to a further list, or a packet that is marked.
    #[cold]
    #[inline(never)]
    fn add_again(&mut self, packet: u64, number: u32) {
        let is_marked = self.marked == packet;
        if !is_marked && self.last.1 != number && self.last.1 != NO_LIST {
            if self.others.0 != packet {
                self.others.0 = packet;
                self.others.1.clear();
            }
            self.others.1.push(self.last.1);
        }
        self.last.1 = number;
        let Some(list) = self.list(number) else { return };
        if is_marked {
            list.mark();
        }
        if packet > list.last()
            && let Some(distance) = list.push(packet)
        {
            self.push_distance(number, distance);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_distance(&mut self, number: u32, distance: u64) {
        if let Some(list) = self.list(number) {
            let more = list.push_distance(distance);
            if more > 0 {
                self.count(more);
            }
        }
    }

    /// Marks the list of a connection that has ended and removes it from the lists of the current packet, which may be
    /// marked later.
    #[cold]
    fn detach(&mut self, slot: u32) {
        if let Some(list) = self.list(slot) {
            list.mark();
        }
        let others = self.others.1.iter_mut();
        others
            .chain([&mut self.last.1])
            .filter(|list| **list == slot)
            .for_each(|list| *list = NO_LIST);
    }
}

impl ShardIndex for Collector {
    fn begin(&mut self, slot: u32, uid: Uid, id: ConnId, proto: Proto) {
        if self.is_full || !self.count(Lists::BYTES) {
            return;
        }
        let at = slot as usize;
        if at >= self.slots.len() {
            if self.slots.capacity() == 0 {
                self.slots.reserve(INITIAL_SLOTS);
            }
            // The list of a slot without a connection is not written to the index.
            self.slots.resize_with(at + 1, || List::new(NO_LIST));
        }
        if slot == self.last.1 || self.others.0 == self.last.0 && self.others.1.contains(&slot) {
            self.detach(slot);
        }
        let position = self.lists.begin(hash_of_uid(uid), Endpoints::new(id, proto));
        let Some(list) = self.slots.get_mut(at) else { return };
        self.lists.end(list);
        list.begin(position);
    }

    fn packet(&mut self, number: u64, slot: u32) {
        if number == self.last.0 {
            return self.add_again(number, slot);
        }
        let Some(list) = self.slots.get_mut(slot as usize) else { return };
        self.last = (number, slot);
        if let Some(distance) = list.push(number) {
            self.push_distance(slot, distance);
        }
    }

    fn tunnel(&mut self, number: u64, uid: Uid) {
        let known = self.by_uid.get(&uid).copied();
        let Some(list) = known.or_else(|| self.new_tunnel(uid)) else { return };
        if number != self.last.0 {
            self.last = (number, NO_LIST);
        }
        self.add_again(number, list);
    }

    fn mark(&mut self, number: u64) {
        if self.marked == number {
            return;
        }
        self.marked = number;
        if self.last.0 != number {
            self.last = (number, NO_LIST);
            return;
        }
        let (packet, others) = mem::take(&mut self.others);
        let others = others.into_iter().filter(|_| packet == number);
        for list in others.chain([self.last.1]) {
            if let Some(list) = self.list(list) {
                list.mark();
            }
        }
    }

    fn piece(&mut self, number: u64, piece: u64) {
        if !self.is_full {
            self.lists.fragments.push((number, piece));
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
        self.slots.iter().chain(&self.tunnels).for_each(|list| self.lists.end(list));
        self.shared.count(mem::take(&mut self.bytes));
        self.shared.add(mem::take(&mut self.lists));
        self.free();
        self.is_full = true;
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::UidSource;

    use super::*;
    use crate::lists::add_fragments;

    /// Collectors of lists of at most `max_memory` bytes.
    fn collectors<const N: usize>(max_memory: usize) -> (Arc<Shared>, [Collector; N]) {
        let shared = Arc::new(Shared::new(max_memory));
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
            assert_eq!(lists[0].packets(), expected);
        }
    }

    #[test]
    fn nothing_is_collected_for_a_full_index() {
        let (shared, [mut collector]) = collectors(COUNT_INTERVAL);
        for number in 1..=100_000 {
            begin(&mut collector, number as u32, number);
            collector.packet(number, number as u32);
            collector.tunnel(number, UidSource::new(0).connection(number, 1));
            collector.mark(number);
            collector.piece(number, 1);
            collector.error(number, id(number), Proto::Udp);
        }
        assert!(collector.is_full && collector.slots.is_empty() && collector.tunnels.is_empty());
        assert_eq!(collector.lists.len(), 0);
        assert!(collector.lists.errors.is_empty() && collector.lists.fragments.is_empty());
        collector.finish();
        assert!(matches!(shared.take(), Err(Error::TooLarge(COUNT_INTERVAL))));
    }

    #[test]
    fn a_fragment_is_added_to_all_lists_of_the_packet_that_completes_its_datagram() {
        let (shared, [mut a, mut b]) = collectors(1 << 30);
        (0..3).for_each(|slot| begin(&mut a, slot, slot.into()));
        (3..6).for_each(|slot| begin(&mut b, slot, slot.into()));
        // Packet 4 completes a datagram. Two lists get it before it is marked, one after that.
        a.packet(1, 2);
        a.packet(4, 0);
        a.packet(4, 1);
        a.mark(4);
        a.piece(4, 2);
        a.piece(4, 3);
        a.packet(4, 2);
        a.packet(9, 0);
        // The other shard has an inner packet of it, which the first one passed on.
        b.packet(3, 4);
        b.mark(4);
        b.packet(4, 4);
        b.packet(5, 5);
        [a, b].iter_mut().for_each(ShardIndex::finish);
        let mut shards = shared.take().unwrap();
        add_fragments(&mut shards);
        assert_eq!(shards[0].packets(), [vec![2, 3, 4, 9], vec![2, 3, 4], vec![1, 2, 3, 4]]);
        // A list without packets is omitted.
        assert_eq!(shards[1].packets(), [vec![2, 3, 4], vec![5]]);
    }

    #[test]
    fn a_fragment_is_added_to_both_connections_of_a_slot_that_changes_with_the_packet() {
        for has_another in [false, true] {
            let (shared, [mut collector]) = collectors(1 << 30);
            begin(&mut collector, 0, 1);
            begin(&mut collector, 1, 2);
            collector.packet(3, 0);
            if has_another {
                collector.packet(3, 1);
            }
            begin(&mut collector, 0, 3);
            collector.packet(3, 0);
            collector.mark(3);
            collector.piece(3, 2);
            collector.packet(4, 0);
            collector.finish();
            let mut shards = shared.take().unwrap();
            add_fragments(&mut shards);
            let another = has_another.then(|| vec![2, 3]);
            let expected: Vec<_> =
                [Some(vec![2, 3]), another, Some(vec![2, 3, 4])].into_iter().flatten().collect();
            assert_eq!(shards[0].packets(), expected);
        }
    }

    #[test]
    fn a_slot_without_a_connection_has_no_list() {
        let (shared, [mut collector]) = collectors(1 << 30);
        begin(&mut collector, 5, 1);
        collector.packet(1, 5);
        collector.packet(2, 4);
        collector.packet(3, 6);
        begin(&mut collector, 4, 4);
        collector.packet(4, 4);
        collector.finish();
        assert_eq!(shared.take().unwrap()[0].packets(), [[1], [4]]);
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
