use std::hash::BuildHasher;
use std::hash::RandomState;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Time;
use gannet_base::prefetch;

use crate::Conn;
use crate::index::Index;
use crate::slab::Slab;
use crate::tcp::Delays;
use crate::tcp::Syn;
use crate::tcp::Tcp;

/// The key of a connection: both endpoints regardless of direction, and the protocol. The key of
/// one-way traffic (ICMP errors) includes the direction.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    id: ConnId,
    ip_proto: u8,
    one_way: bool,
    global: bool,
    vlans: u32,
}

impl Key {
    /// The key of a packet from its originator `id.orig_h` to its responder.
    #[inline]
    pub fn new(id: &ConnId, ip_proto: u8, one_way: bool) -> Self {
        Self { id: *id, ip_proto, one_way, global: false, vlans: 0 }
    }

    /// Adds VLAN tags to the key where they distinguish connections: both tags packed into a
    /// number, 0 without tags.
    #[inline]
    #[must_use]
    pub fn of_vlans(self, vlans: u32) -> Self {
        Self { vlans, ..self }
    }

    /// Sets whether the global shard owns the connection: keys that differ in this never match.
    #[inline]
    #[must_use]
    pub fn of_global(self, global: bool) -> Self {
        Self { global, ..self }
    }

    /// The side of a connection that sends packets in the direction of this key; `None` if the key
    /// does not match.
    #[inline]
    fn sender_of(&self, conn: &Conn) -> Option<Dir> {
        let (a, b) = (&self.id, &conn.id);
        let forth = a.orig_p == b.orig_p
            && a.resp_p == b.resp_p
            && a.orig_h == b.orig_h
            && a.resp_h == b.resp_h;
        let back = || {
            !self.one_way
                && a.orig_p == b.resp_p
                && a.resp_p == b.orig_p
                && a.orig_h == b.resp_h
                && a.resp_h == b.orig_h
        };
        let from = if forth {
            Dir::Orig
        } else if back() {
            Dir::Resp
        } else {
            return None;
        };
        let kind = (conn.ip_proto, conn.is_one_way(), conn.is_global());
        ((self.ip_proto, self.one_way, self.global) == kind && self.vlans == conn.vlans())
            .then_some(from)
    }
}

/// The hash function of one [`Table`].
///
/// Each endpoint is hashed separately and the two hashes are added, so that both directions have
/// the same hash. The multiplications use random secrets, so that a sender who chooses addresses
/// and ports cannot cause collisions.
#[derive(Clone, Copy, Debug)]
struct Hasher {
    secrets: [u64; 5],
}

impl Default for Hasher {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd multipliers: multiplication by an odd number is invertible.
        Self { secrets: [0_u64, 1, 2, 3, 4].map(|i| random.hash_one(i) | 1) }
    }
}

impl Hasher {
    #[inline]
    fn hash(&self, key: &Key) -> Hash {
        let [a, b, c, d, e] = self.secrets;
        let fold = |x: u64, y: u64| {
            let product = u128::from(x) * u128::from(y);
            product as u64 ^ (product >> 64) as u64
        };
        let end = |host: Addr, port: u16| {
            let host = u128::from_ne_bytes(host.octets());
            // The port has its own secret: otherwise a change of the address could cancel a change
            // of the port.
            let port = u64::from(port).wrapping_mul(e);
            fold(host as u64 ^ a, (host >> 64) as u64 ^ b ^ port)
        };
        let ends =
            end(key.id.orig_h, key.id.orig_p).wrapping_add(end(key.id.resp_h, key.id.resp_p));
        let kind =
            u64::from(key.ip_proto) << 2 | u64::from(key.one_way) << 1 | u64::from(key.global);
        let kind = kind | u64::from(key.vlans) << 16;
        Hash((fold(ends ^ c, kind ^ d) >> 32) as u32)
    }
}

/// The hash of a [`Key`] in one [`Table`], keyed so that senders cannot choose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(u32);

/// A connection in the table, with data of the table's user.
#[derive(Debug)]
pub struct Slot<X> {
    /// Facts about the connection.
    pub conn: Conn,
    /// Transport state of a TCP connection; present once the slot is [opened](Self::open).
    pub tcp: Option<Box<Tcp>>,
    /// Data of the table's user.
    pub ext: X,
    /// Position of the connection in the order of creation.
    pub number: u64,
    /// Due time of the connection's timer.
    pub due: Time,
    /// Replaces `tcp` while a single SYN is all that was seen.
    syn: Option<Syn>,
}

/// TCP states of packed or removed connections, for reuse.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "boxes are what is kept")]
pub struct Spare(Vec<Box<Tcp>>);

/// Maximum number of states kept for reuse.
const MAX_SPARE: usize = 64;

impl Spare {
    /// The state of a new TCP connection.
    #[inline]
    pub fn begin(&mut self, start: Time, delays: &Delays) -> Box<Tcp> {
        self.boxed(Tcp::new(start, delays))
    }

    fn boxed(&mut self, tcp: Tcp) -> Box<Tcp> {
        match self.0.pop() {
            Some(mut spare) => {
                spare.fill(tcp);
                spare
            }
            None => Box::new(tcp),
        }
    }

    #[inline]
    fn recycle(&mut self, mut tcp: Box<Tcp>) {
        if self.0.len() < MAX_SPARE {
            tcp.empty();
            self.0.push(tcp);
        }
    }
}

/// A connection found for a packet.
#[derive(Debug)]
pub struct FoundConnection<'a, X> {
    /// Index of the connection, valid until it is [removed](Table::remove).
    pub index: u32,
    /// The side that sent the packet.
    pub from: Dir,
    /// The table's entry.
    pub slot: &'a Slot<X>,
}

impl<X> Slot<X> {
    /// A slot without a timer.
    #[inline]
    pub fn new(mut conn: Conn, tcp: Option<Box<Tcp>>, ext: X, number: u64, one_way: bool) -> Self {
        conn.set_one_way(one_way);
        Self { conn, tcp, ext, number, due: Time::MAX, syn: None }
    }

    /// Restores `tcp` if the slot is [packed](Self::pack).
    #[inline]
    pub fn open(&mut self, spare: &mut Spare) {
        if self.syn.is_some() {
            self.unpack(spare);
        }
    }

    #[inline(never)]
    fn unpack(&mut self, spare: &mut Spare) {
        if let Some(syn) = self.syn.take() {
            self.tcp = Some(spare.boxed(syn.unpacked(&self.conn)));
        }
    }

    /// Reduces a connection that consists of one SYN to a few bytes until it is opened again.
    #[inline]
    pub fn pack(&mut self, spare: &mut Spare) {
        if let Some(tcp) = &self.tcp
            && let Some(syn) = Syn::from_connection(tcp, &self.conn)
        {
            self.syn = Some(syn);
            self.tcp.take().into_iter().for_each(|tcp| spare.recycle(tcp));
        }
    }

    fn key(&self) -> Key {
        Key::new(&self.conn.id, self.conn.ip_proto, self.conn.is_one_way())
            .of_global(self.conn.is_global())
            .of_vlans(self.conn.vlans())
    }
}

/// All live connections: a hash index and a slab.
///
/// Slots never move, so an index stays valid until [`remove`](Self::remove).
#[derive(Debug)]
pub struct Table<X> {
    hasher: Hasher,
    index: Index,
    slots: Slab<Slot<X>>,
}

impl<X> Default for Table<X> {
    fn default() -> Self {
        Self { hasher: Hasher::default(), index: Index::default(), slots: Slab::default() }
    }
}

impl<X> Table<X> {
    /// Number of live connections.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of a slot in bytes, without its allocations.
    pub const SLOT_BYTES: usize = size_of::<Option<Slot<X>>>();

    /// Allocated slots that no connection uses.
    pub fn free_slots(&self) -> usize {
        self.slots.free()
    }

    /// Bytes of the hash table.
    pub fn index_bytes(&self) -> usize {
        self.index.heap_bytes()
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &Key) -> Hash {
        self.hasher.hash(key)
    }

    /// Finds the connection of a packet.
    #[inline(always)]
    pub fn find(&self, hash: Hash, key: &Key) -> Option<FoundConnection<'_, X>> {
        self.index.find_map(hash.0, |index| {
            let slot = self.get(index)?;
            Some(FoundConnection { index, from: key.sender_of(&slot.conn)?, slot })
        })
    }

    /// Computes the hash of a key, and finds the connection with that key.
    // Called for every packet; inlining keeps the results in registers.
    #[inline(always)]
    pub fn look_up(&self, key: &Key) -> (Hash, Option<FoundConnection<'_, X>>) {
        let hash = self.hash(key);
        (hash, self.find(hash, key))
    }

    /// Prefetches the memory that [`find`](Self::find) reads first.
    #[inline]
    pub fn prefetch(&self, hash: Hash) {
        self.index.prefetch(hash.0);
    }

    /// Prefetches a connection.
    #[inline]
    pub fn prefetch_slot(&self, i: u32) {
        self.slots.prefetch(i);
    }

    /// Prefetches the memory that removing a connection reads, except its slot.
    #[inline]
    pub fn prefetch_removal(&self, i: u32) {
        if let Some(slot) = self.get(i) {
            self.prefetch(self.hash(&slot.key()));
            if let Some(tcp) = slot.tcp.as_deref() {
                prefetch(tcp);
            }
        }
    }

    /// Adds a connection that the table does not contain. `hash` is the hash of its key.
    #[inline]
    pub fn insert(&mut self, hash: Hash, slot: Slot<X>) -> u32 {
        let i = self.slots.insert(slot);
        self.index.insert(hash.0, i);
        i
    }

    /// A live connection by index.
    #[inline]
    pub fn get(&self, i: u32) -> Option<&Slot<X>> {
        self.slots.get(i)
    }

    /// Like [`Self::get`], but mutable. The endpoints may be flipped; all else of the key must not
    /// change.
    #[inline]
    pub fn get_mut(&mut self, i: u32) -> Option<&mut Slot<X>> {
        self.slots.get_mut(i)
    }

    /// Frees the hash index when no more connections will be looked up or inserted. The slots can
    /// still be read and removed.
    pub fn finish_finding(&mut self) {
        self.index = Index::default();
    }

    /// Removes and drops a connection; returns whether it existed.
    pub fn remove(&mut self, i: u32, spare: &mut Spare) -> bool {
        let Some(slot) = self.slots.get_mut(i) else { return false };
        slot.tcp.take().into_iter().for_each(|tcp| spare.recycle(tcp));
        if self.index.heap_bytes() > 0 {
            let key = slot.key();
            let hash = self.hash(&key);
            self.index.remove(hash.0, i);
        }
        self.slots.remove(i)
    }

    /// Live connections with their indices, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Slot<X>)> {
        self.slots.iter()
    }

    /// Indices of all live connections in the order of creation.
    pub fn in_order(&self) -> Vec<u32> {
        let mut live: Vec<u32> = Vec::with_capacity(self.len());
        // A single pass over all memory, most of which is not cached.
        let (mut sorted, mut last) = (true, 0);
        live.extend(self.slots.iter().map(|(i, slot)| {
            sorted &= last <= slot.number;
            last = slot.number;
            i
        }));
        if !sorted {
            let number = |i: &u32| self.get(*i).map_or(0, |s| s.number);
            // Sorting by cached keys avoids repeated random reads of slots, at the cost of two
            // temporary arrays.
            live.sort_by_cached_key(number);
        }
        live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Proto;
    use gannet_base::UidSource;

    fn slot(n: u16) -> Slot<()> {
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            orig_p: n,
            resp_h: Addr::v4([10, 0, 0, 2]),
            resp_p: 80,
        };
        let uid = UidSource::new(0).connection(u64::from(n), 0);
        let conn = Conn::new(uid, id, Proto::Udp, 17, Time::ZERO);
        Slot::new(conn, None, (), u64::from(n), false)
    }

    fn find(t: &Table<()>, key: &Key) -> Option<u32> {
        t.find(t.hash(key), key).map(|found| found.index)
    }

    fn insert(t: &mut Table<()>, slot: Slot<()>) -> u32 {
        t.insert(t.hash(&slot.key()), slot)
    }

    #[test]
    fn removal_needs_no_index() {
        let mut t = Table::default();
        let indices: Vec<u32> = (0..100).map(|n| insert(&mut t, slot(n))).collect();
        t.finish_finding();
        assert_eq!((t.index_bytes(), find(&t, &slot(7).key())), (0, None));
        assert!(indices.iter().all(|i| t.remove(*i, &mut Spare::default())));
        assert!(t.is_empty());
    }

    #[test]
    fn hashes_are_symmetric_and_spread() {
        let hasher = Hasher::default();
        let mut seen = std::collections::BTreeSet::new();
        let end = |n: u32| (Addr::v4([10, 0, (n >> 8) as u8, n as u8]), (n * 7) as u16);
        for (n, m) in (0..200).flat_map(|n| (0..n).map(move |m| (n, m))) {
            let ((orig_h, orig_p), (resp_h, resp_p)) = (end(n), end(m));
            let id = ConnId { orig_h, orig_p, resp_h, resp_p };
            let hash = hasher.hash(&Key::new(&id, 17, false));
            assert_eq!(hash, hasher.hash(&Key::new(&id.flipped(), 17, false)));
            for other in [Key::new(&id, 6, false), Key::new(&id, 17, true)] {
                assert_ne!(hash, hasher.hash(&other));
            }
            assert_ne!(hash, hasher.hash(&Key::new(&id, 17, false).of_global(true)));
            seen.insert(hash.0);
        }
        // Of 19,900 values among 2³², hardly any collide.
        assert!(seen.len() > 19_890, "{}", seen.len());
    }

    #[test]
    fn one_way_traffic_and_the_global_shard_have_separate_connections() {
        let mut t = Table::default();
        let mut put = |one_way, global| {
            let mut slot = slot(7);
            slot.conn.set_one_way(one_way);
            slot.conn.set_global(global);
            insert(&mut t, slot)
        };
        let indices = [put(false, false), put(true, false), put(false, true)];
        let id = slot(7).conn.id;
        let key = |id: ConnId, one_way, global| Key::new(&id, 17, one_way).of_global(global);
        assert_eq!(find(&t, &key(id, false, false)), Some(indices[0]));
        assert_eq!(find(&t, &key(id, true, false)), Some(indices[1]));
        assert_eq!(find(&t, &key(id.flipped(), true, false)), None);
        assert_eq!(find(&t, &key(id.flipped(), false, true)), Some(indices[2]));
    }

    #[test]
    fn both_directions_find_a_connection_in_spite_of_flips() {
        let mut t = Table::default();
        for n in 0..40_000 {
            insert(&mut t, slot(n));
        }
        for n in 0..40_000 {
            let id = slot(n).conn.id;
            let i = find(&t, &Key::new(&id.flipped(), 17, false)).unwrap();
            t.get_mut(i).unwrap().conn.flip();
            assert_eq!(find(&t, &Key::new(&id, 17, false)), Some(i));
            assert_eq!(find(&t, &Key::new(&id, 6, false)), None);
        }
        assert_eq!(t.in_order().len(), 40_000);
        for n in 0..40_000 {
            let i = find(&t, &Key::new(&slot(n).conn.id, 17, false)).unwrap();
            assert_eq!(t.get(i).unwrap().number, u64::from(n));
            assert!(t.remove(i, &mut Spare::default()));
            assert!(!t.remove(i, &mut Spare::default()));
        }
        assert!(t.is_empty());
        assert!((insert(&mut t, slot(1)) as usize) < 40_000, "freed places are used again");
    }
}
