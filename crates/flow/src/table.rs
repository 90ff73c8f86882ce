use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Time;
use hashbrown::HashTable;

use crate::Conn;
use crate::tcp::Tcp;

/// What makes packets belong together: two address-and-port pairs in a fixed order, and the
/// protocol. One-way traffic (ICMP errors) keeps its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    low: (Addr, u16),
    high: (Addr, u16),
    ip_proto: u8,
    one_way: bool,
}

impl Key {
    /// The key of a packet from `src` to `dst`.
    #[inline]
    pub fn new(id: &ConnId, ip_proto: u8, one_way: bool) -> Self {
        let (src, dst) = ((id.orig_h, id.orig_p), (id.resp_h, id.resp_p));
        let (low, high) = if one_way || src <= dst { (src, dst) } else { (dst, src) };
        Self { low, high, ip_proto, one_way }
    }

    /// Thirty-two bits of keyed hash.
    #[inline]
    fn hash(&self, state: &RandomState) -> u32 {
        let ports = u64::from(self.low.1) << 32
            | u64::from(self.high.1) << 16
            | u64::from(self.ip_proto) << 1
            | u64::from(self.one_way);
        let low = u128::from_ne_bytes(self.low.0.octets());
        let high = u128::from_ne_bytes(self.high.0.octets());
        state.hash_one((low, high, ports)) as u32
    }
}

/// Thirty-two bits of hash over the sixty-four that the table takes its places from.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

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
    hash: u32,
    one_way: bool,
}

impl<X> Slot<X> {
    /// A slot without a timer.
    pub fn new(conn: Conn, tcp: Option<Box<Tcp>>, ext: X, number: u64, one_way: bool) -> Self {
        Self { conn, tcp, ext, number, due: Time::MAX, hash: 0, one_way }
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
    /// Index and hash: growing looks at no slot.
    index: HashTable<(u32, u32)>,
    chunks: Vec<Vec<Option<Slot<X>>>>,
    free: Vec<u32>,
}

impl<X> Default for Table<X> {
    fn default() -> Self {
        Self {
            hash: RandomState::default(),
            index: HashTable::new(),
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
        self.index.is_empty()
    }

    /// The connection a packet belongs to.
    #[inline]
    pub fn find(&self, key: &Key) -> Option<u32> {
        let hash = key.hash(&self.hash);
        let same = |e: &(u32, u32)| e.1 == hash && self.get(e.0).is_some_and(|s| s.key() == *key);
        self.index.find(spread(hash), same).map(|e| e.0)
    }

    /// A new connection, which must not be in the table.
    pub fn insert(&mut self, mut slot: Slot<X>) -> u32 {
        let hash = slot.key().hash(&self.hash);
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
        self.index.insert_unique(spread(hash), (i, hash), |e| spread(e.1));
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
        if let Ok(entry) = self.index.find_entry(spread(hash), |e| e.0 == i) {
            entry.remove();
        }
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

    #[test]
    fn both_directions_find_it_and_flips_do_not_matter() {
        let mut t = Table::default();
        for n in 0..40_000 {
            t.insert(slot(n));
        }
        for n in 0..40_000 {
            let id = slot(n).conn.id;
            let i = t.find(&Key::new(&id.flipped(), 17, false)).unwrap();
            t.get_mut(i).unwrap().conn.flip();
            assert_eq!(t.find(&Key::new(&id, 17, false)), Some(i));
            assert_eq!(t.find(&Key::new(&id, 6, false)), None);
        }
        assert_eq!(t.in_order().len(), 40_000);
        for n in 0..40_000 {
            let i = t.find(&Key::new(&slot(n).conn.id, 17, false)).unwrap();
            assert_eq!(t.get(i).unwrap().number, u64::from(n));
            assert!(t.remove(i));
            assert!(!t.remove(i));
        }
        assert!(t.is_empty());
        assert!((t.insert(slot(1)) as usize) < 40_000, "freed places are used again");
        assert_eq!(t.chunks.len(), 3);
    }
}
