//! Entries in the order of their insertion.

use core::fmt;
use core::hash::Hash;

use crate::lookup::AsKey;
use crate::raw::few::FEW_MAX as LIST_MAX;
use crate::table::Table;
use crate::{KeyedHash, Lookup, TableHash};

/// The index that stands for no node.
const NONE: u32 = u32::MAX;

struct Node<K, V> {
    /// `None` while the node is free.
    entry: Option<(K, V)>,
    before: u32,
    /// The next node in order, or the next free one.
    after: u32,
}

/// A map that keeps the order in which keys were inserted; removal and moving to the end take
/// constant time.
///
/// Entries are in one array, as a doubly linked list; beyond 12 entries a clustered table of
/// positions finds them (6 bytes or so an entry). Finding, inserting and removing cost as much as in
/// a [`Dict`](crate::Dict), except that growing the array of entries copies it, once for each
/// doubling.
pub struct OrderedDict<K, V, S = KeyedHash> {
    nodes: Vec<Node<K, V>>,
    /// Positions of the entries, kept once there are more than a few.
    table: Option<Box<Table<u32>>>,
    first: u32,
    last: u32,
    free: u32,
    len: u32,
    hasher: S,
}

impl<K, V> OrderedDict<K, V> {
    /// An empty dictionary; allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(KeyedHash)
    }
}

impl<K, V, S: Default> Default for OrderedDict<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

fn key_of<K, V>(nodes: &[Node<K, V>], at: u32) -> Option<&K> {
    nodes.get(at as usize)?.entry.as_ref().map(|(k, _)| k)
}

impl<K, V, S> OrderedDict<K, V, S> {
    /// An empty dictionary with a hash of the caller's choice.
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        OrderedDict {
            nodes: Vec::new(),
            table: None,
            first: NONE,
            last: NONE,
            free: NONE,
            len: 0,
            hasher,
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry inserted first.
    #[must_use]
    pub fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The entries, oldest insertion first.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let node = |at: u32| self.nodes.get(at as usize);
        core::iter::successors(node(self.first), move |n| node(n.after))
            .filter_map(|n| n.entry.as_ref().map(|(k, v)| (k, v)))
    }

    /// Bytes of the dictionary: itself and its arrays; not what keys and values own elsewhere.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, |t| size_of::<Table<u32>>() + t.heap_bytes());
        size_of::<Self>() + self.nodes.capacity() * size_of::<Node<K, V>>() + table
    }

    fn unlink(&mut self, at: u32) {
        let Some(node) = self.nodes.get(at as usize) else { return };
        let (before, after) = (node.before, node.after);
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.first = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) => node.before = before,
            None => self.last = before,
        }
    }

    fn link_last(&mut self, at: u32) {
        let before = self.last;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            (node.before, node.after) = (before, NONE);
        }
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = at,
            None => self.first = at,
        }
        self.last = at;
    }
}

impl<K: Hash + Eq, V, S: TableHash> OrderedDict<K, V, S> {
    fn find<Q>(&self, key: &Q) -> Option<u32>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let is = |at: u32| key_of(&self.nodes, at).is_some_and(|k| key.is(k));
        match &self.table {
            None => (0..self.nodes.len() as u32).find(|at| is(*at)),
            Some(table) => {
                let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), table.drawn);
                table.find(hash, |at| is(*at)).copied()
            }
        }
    }

    /// The value of a key.
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let at = self.find(key)?;
        self.nodes.get(at as usize)?.entry.as_ref().map(|(_, v)| v)
    }

    /// The value of a key, mutable; its position in the order stays.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let at = self.find(key)?;
        self.nodes.get_mut(at as usize)?.entry.as_mut().map(|(_, v)| v)
    }

    /// Moves a key to the end of the order; returns whether it exists.
    pub fn move_last<Q>(&mut self, key: &Q) -> bool
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let Some(at) = self.find(key) else { return false };
        if at != self.last {
            self.unlink(at);
            self.link_last(at);
        }
        true
    }

    /// Maps `key` to `value`, at the end of the order; an existing key keeps its position and its
    /// previous value is returned.
    ///
    /// # Panics
    /// Beyond 2^32 - 1 entries.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(old) = self.get_mut(&key) {
            return Some(core::mem::replace(old, value));
        }
        let hash = self.hasher.hash_one(&key);
        let entry = Some((key, value));
        let at = self.free;
        let at = if let Some(node) = self.nodes.get_mut(at as usize) {
            self.free = node.after;
            node.entry = entry;
            at
        } else {
            assert!(self.nodes.len() < NONE as usize, "too many entries");
            self.nodes.push(Node { entry, before: NONE, after: NONE });
            (self.nodes.len() - 1) as u32
        };
        self.link_last(at);
        self.len += 1;
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash_at = |at: &u32| key_of(nodes, *at).map_or(0, |k| hasher.hash_one(k));
        if let Some(table) = &mut self.table {
            table.insert(hash, at, hash_at);
        } else if nodes.len() > LIST_MAX {
            let filled = (0..nodes.len() as u32).filter(|at| key_of(nodes, *at).is_some());
            self.table = Some(Box::new(Table::new(filled, hash_at)));
        }
        None
    }

    /// Removes a key; returns its value. The order of the others stays.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let at = self.find(key)?;
        self.remove_at(at).map(|(_, v)| v)
    }

    /// Removes and returns the oldest entry.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        self.remove_at(self.first)
    }

    fn remove_at(&mut self, at: u32) -> Option<(K, V)> {
        let key = key_of(&self.nodes, at)?;
        if let Some(table) = &mut self.table {
            let (nodes, hasher) = (&self.nodes, &self.hasher);
            let hash_of = |at: &u32| key_of(nodes, *at).map_or(0, |k| hasher.hash_one(k));
            table.remove(hasher.hash_one(key), |other| *other == at, hash_of);
        }
        let entry = self.nodes.get_mut(at as usize)?.entry.take()?;
        self.unlink(at);
        self.len -= 1;
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.after = self.free;
        }
        self.free = at;
        if self.len == 0 {
            (self.nodes, self.table, self.free) = (Vec::new(), None, NONE);
        } else if self.nodes.len() > 2 * LIST_MAX && self.len() * 4 < self.nodes.len() {
            self.compact();
        }
        Some(entry)
    }

    /// Removes the free nodes of the array; amortised constant time per removal.
    fn compact(&mut self) {
        let mut left = Vec::with_capacity(self.len() + self.len() / 2);
        let mut at = self.first;
        while let Some(node) = self.nodes.get_mut(at as usize) {
            let here = left.len() as u32;
            left.push(Node {
                entry: node.entry.take(),
                before: here.wrapping_sub(1),
                after: here + 1,
            });
            at = node.after;
        }
        if let Some(node) = left.last_mut() {
            node.after = NONE;
        }
        (self.first, self.last, self.free) = (0, left.len() as u32 - 1, NONE);
        self.nodes = left;
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.table = (nodes.len() > LIST_MAX).then(|| {
            let hash_at = |at: &u32| key_of(nodes, *at).map_or(0, |k| hasher.hash_one(k));
            Box::new(Table::new(0..nodes.len() as u32, hash_at))
        });
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for OrderedDict<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn agrees_with_a_list(steps in proptest::collection::vec((0_u8..6, 0_u8..60, any::<u8>()), 1..300)) {
            let mut dict: OrderedDict<u8, u8> = OrderedDict::new();
            let mut model: Vec<(u8, u8)> = Vec::new();
            for (what, key, value) in steps {
                let at = model.iter().position(|(k, _)| *k == key);
                match (what, at) {
                    (0..3, Some(at)) => {
                        prop_assert_eq!(dict.insert(key, value), Some(model[at].1));
                        model[at].1 = value;
                    }
                    (0..3, None) => {
                        prop_assert_eq!(dict.insert(key, value), None);
                        model.push((key, value));
                    }
                    (3, _) => prop_assert_eq!(dict.remove(&key), at.map(|at| model.remove(at).1)),
                    (4, _) => {
                        prop_assert_eq!(dict.move_last(&key), at.is_some());
                        if let Some(at) = at {
                            let entry = model.remove(at);
                            model.push(entry);
                        }
                    }
                    _ => {
                        let first = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(dict.pop_first(), first);
                    }
                }
                prop_assert_eq!(dict.get(&key), model.iter().find(|(k, _)| *k == key).map(|(_, v)| v));
                prop_assert_eq!(dict.len(), model.len());
                prop_assert!(dict.iter().map(|(k, v)| (*k, *v)).eq(model.iter().copied()));
            }
        }
    }

    #[test]
    fn shrinks_when_it_empties() {
        let count = if cfg!(miri) { 200 } else { 10_000 };
        let mut dict: OrderedDict<u32, u32> = OrderedDict::new();
        for i in 0..count {
            dict.insert(i, i);
        }
        let full = dict.memory_bytes();
        for i in (0..count - 20).rev() {
            dict.remove(&i);
        }
        assert!(dict.memory_bytes() * 2 < full);
        assert!(dict.iter().map(|(k, _)| *k).eq(count - 20..count));
        while dict.pop_first().is_some() {}
        assert_eq!(dict.memory_bytes(), size_of_val(&dict));
    }
}
