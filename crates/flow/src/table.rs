use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::prefetch;

use crate::Conn;
use crate::index::Index;
use crate::tcp::Tcp;

/// What makes packets belong together: two address-and-port pairs in a fixed order, and the
/// protocol. One-way traffic (ICMP errors) keeps its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    low: u128,
    high: u128,
    /// Both ports, the protocol and whether the traffic is one-way.
    rest: u64,
}

impl Key {
    /// The key of a packet from `src` to `dst`.
    #[inline]
    pub fn new(id: &ConnId, ip_proto: u8, one_way: bool) -> Self {
        let number = |a: Addr| u128::from_be_bytes(a.octets());
        let (src, dst) = ((number(id.orig_h), id.orig_p), (number(id.resp_h), id.resp_p));
        let (low, high) = if one_way || src <= dst { (src, dst) } else { (dst, src) };
        let ports = u64::from(low.1) << 16 | u64::from(high.1);
        let rest = ports << 16 | u64::from(ip_proto) << 8 | u64::from(one_way);
        Self { low: low.0, high: high.0, rest }
    }
}

/// The hash of a [`Key`] in one [`Table`], keyed so that nobody can choose it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(u32);

/// A connection in the table, with what its owner keeps beside it.
#[derive(Debug)]
pub struct Slot<X> {
    /// The facts.
    pub conn: Conn,
    /// Transport state of a TCP connection.
    pub tcp: Option<Box<Tcp>>,
    /// The owner's part.
    pub ext: X,
    /// Order of creation.
    pub number: u64,
    /// When its timer is due.
    pub due: Time,
    /// Of its key, as long as it is in the table.
    hash: Hash,
    one_way: bool,
}

impl<X> Slot<X> {
    /// A slot without a timer.
    pub fn new(conn: Conn, tcp: Option<Box<Tcp>>, ext: X, number: u64, one_way: bool) -> Self {
        Self { conn, tcp, ext, number, due: Time::MAX, hash: Hash(0), one_way }
    }

    fn key(&self) -> Key {
        Key::new(&self.conn.id, self.conn.ip_proto, self.one_way)
    }
}

/// Slots of a chunk: some four megabytes, of which only what is used takes memory. The smaller an
/// allocation, the more of it an allocator rounds up.
const CHUNK: usize = 1 << 14;

/// All live connections: a hash table of indices into a slab.
///
/// The slab grows by chunks that never move, and reuses what was freed, so an index stays good
/// until [`remove`](Self::remove).
#[derive(Debug)]
pub struct Table<X> {
    hash: RandomState,
    index: Index,
    chunks: Vec<Vec<Option<Slot<X>>>>,
    free: Vec<u32>,
}

impl<X> Default for Table<X> {
    fn default() -> Self {
        Self {
            hash: RandomState::default(),
            index: Index::default(),
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<X> Table<X> {
    /// Number of live connections.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Where to look for a key.
    #[inline]
    pub fn hash(&self, key: &Key) -> Hash {
        Hash(self.hash.hash_one((key.low, key.high, key.rest)) as u32)
    }

    /// The connection a packet belongs to.
    #[inline]
    pub fn find(&self, hash: Hash, key: &Key) -> Option<u32> {
        self.index.find(hash.0, |i| self.get(i).is_some_and(|s| s.key() == *key))
    }

    /// Asks the cache for what [`find`](Self::find) reads first.
    #[inline]
    pub fn prefetch(&self, hash: Hash) {
        self.index.prefetch(hash.0);
    }

    /// Asks the cache for a connection.
    #[inline]
    pub fn prefetch_slot(&self, i: u32) {
        if let Some(chunk) = self.chunks.get(i as usize / CHUNK) {
            prefetch(chunk.as_ptr().wrapping_add(i as usize % CHUNK));
        }
    }

    /// Asks the cache for what removing a connection reads beside it.
    #[inline]
    pub fn prefetch_removal(&self, i: u32) {
        if let Some(slot) = self.get(i) {
            self.prefetch(slot.hash);
        }
    }

    /// A new connection, which must not be in the table. `hash` is its key's.
    pub fn insert(&mut self, hash: Hash, mut slot: Slot<X>) -> u32 {
        slot.hash = hash;
        let i = match self.free.pop() {
            Some(i) => i,
            None => {
                if self.chunks.last().is_none_or(|c| c.len() == CHUNK) {
                    self.chunks.push(Vec::with_capacity(CHUNK));
                }
                let last = self.chunks.len() - 1;
                let within = self.chunks[last].len();
                self.chunks[last].push(None);
                (last * CHUNK + within) as u32
            }
        };
        self.chunks[i as usize / CHUNK][i as usize % CHUNK] = Some(slot);
        self.index.insert(hash.0, i);
        // The place of the next one is known already, and has often not been touched for long.
        self.prefetch_slot(self.free.last().map_or(i + 1, |next| *next));
        i
    }

    /// A live connection.
    #[inline]
    pub fn get(&self, i: u32) -> Option<&Slot<X>> {
        self.chunks.get(i as usize / CHUNK)?.get(i as usize % CHUNK)?.as_ref()
    }

    /// A live connection, to change. Its addresses may be flipped, nothing else of its key.
    #[inline]
    pub fn get_mut(&mut self, i: u32) -> Option<&mut Slot<X>> {
        self.chunks.get_mut(i as usize / CHUNK)?.get_mut(i as usize % CHUNK)?.as_mut()
    }

    /// Takes a connection out and drops it; returns whether it was there.
    pub fn remove(&mut self, i: u32) -> bool {
        let Some(hash) = self.get(i).map(|s| s.hash) else { return false };
        self.index.remove(hash.0, i);
        self.chunks[i as usize / CHUNK][i as usize % CHUNK] = None;
        self.free.push(i);
        true
    }

    /// Indices of all live connections in order of creation.
    pub fn in_order(&self) -> Vec<u32> {
        let slots = self.chunks.iter().flatten().enumerate();
        let mut live: Vec<_> =
            slots.filter_map(|(i, s)| s.as_ref().map(|s| (s.number, i as u32))).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, i)| i).collect()
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
        t.find(t.hash(key), key)
    }

    fn insert(t: &mut Table<()>, slot: Slot<()>) -> u32 {
        t.insert(t.hash(&slot.key()), slot)
    }

    #[test]
    fn both_directions_find_it_and_flips_do_not_matter() {
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
            assert!(t.remove(i));
            assert!(!t.remove(i));
        }
        assert!(t.is_empty());
        assert!((insert(&mut t, slot(1)) as usize) < 40_000, "freed places are used again");
        assert_eq!(t.chunks.len(), 3);
    }
}
