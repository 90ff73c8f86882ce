//! Walks that survive changes, and handles.

use core::hash::Hash;

use super::{Dict, State};
use crate::TableHash;
use crate::lookup::AsKey;
use crate::raw::directory::{at_order, order};

/// The position of a walk with [`Dict::next`]. Does not borrow the dictionary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Positions (in the [`order`] of hashes) of the entries of the current part still to be
    /// visited, the last one first.
    pending: Vec<u64>,
    /// Position at which the next part begins, unless `is_last`.
    from: u64,
    is_last: bool,
    started: bool,
    /// The hash visited last, and the number of visits to it.
    last_visited: (u64, u32),
}

/// Identifies an entry of a [`Dict`] in eight bytes, independent of the key type.
///
/// It stays valid through every insertion and removal of other entries, through growth and
/// shrinking; a removed entry is not found by it, unless its key was inserted again. It is the hash
/// of the key: with two keys whose 64-bit hashes are equal (one pair in 10^19) it may find either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// The handle of a key, present or not.
    #[inline]
    pub fn handle<Q: Hash + crate::Lookup<K> + ?Sized>(&self, key: &Q) -> Handle {
        Handle(self.hasher.hash_one(AsKey::<K, Q>::new(key)))
    }

    /// The entry of a handle.
    pub fn by_handle(&self, handle: Handle) -> Option<(&K, &V)> {
        self.find_where(handle.0, |(k, _)| self.hasher.hash_one(k) == handle.0)
    }

    /// The mutable value of a handle.
    pub fn by_handle_mut(&mut self, handle: Handle) -> Option<&mut V> {
        let Dict { state, hasher } = self;
        let is = |(k, _): &(K, V)| hasher.hash_one(k) == handle.0;
        let (_, v) = match state {
            State::Empty => None,
            State::One(entry) => Some(entry).filter(|e| is(e)),
            State::Two(entries) => entries.iter_mut().find(|e| is(e)),
            State::Few(few) => few.iter_mut().find(|e| is(e)),
            State::Single(single) => {
                let lane = single.lane(handle.0, is)?;
                single.get_mut(lane)
            }
            State::Table(table) => {
                let position = table.position(handle.0, is)?;
                table.get_mut(position)
            }
        }?;
        Some(v)
    }

    /// A walk over the entries that survives changes between its steps.
    ///
    /// The walk visits the dictionary part by part in the order of hashes, which no growth, split
    /// or shrinking changes, and lists the hashes of a part (up to 255) when it reaches it. So,
    /// whatever is inserted and removed between steps of [`next`](Self::next):
    ///
    /// * an entry present from the first step to the last is visited exactly once;
    /// * an entry removed before the walk came to it is not visited;
    /// * an entry inserted during the walk is visited at most once (a key removed and inserted again counts
    ///   as a new entry only if the walk had not come to it);
    /// * a step costs the same however large the dictionary has grown since, and walks delay no
    ///   other operation.
    ///
    /// Of keys with equal 64-bit hashes (one pair in 10^19), one may be missed or visited twice if
    /// another is inserted or removed while the walk is between them. Several walks may be active
    /// at once.
    ///
    /// ```
    /// let mut dict: gannet_dict::Dict<u32, u32> = (0..1000).map(|i| (i, i)).collect();
    /// let mut cursor = dict.cursor();
    /// while let Some((key, _)) = dict.next(&mut cursor) {
    ///     let key = *key;
    ///     dict.remove(&key);
    /// }
    /// assert!(dict.is_empty());
    /// ```
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor::default()
    }

    /// The next entry of a walk; `None` at its end.
    pub fn next(&self, cursor: &mut Cursor) -> Option<(&K, &V)> {
        loop {
            let Some(hash) = cursor.pending.pop().map(at_order) else {
                if cursor.is_last {
                    return None;
                }
                let next = self.list(cursor.from, &mut cursor.pending);
                (cursor.from, cursor.is_last) = (next.unwrap_or_default(), next.is_none());
                cursor.pending.sort_unstable_by(|a, b| b.cmp(a));
                continue;
            };
            let (last_visited, times) = cursor.last_visited;
            let nth = if cursor.started && last_visited == hash { times } else { 0 };
            (cursor.started, cursor.last_visited) = (true, (hash, nth + 1));
            if let Some((key, value)) = self.nth_of(hash, nth) {
                return Some((key, value));
            }
        }
    }

    /// Lists the positions of the entries of the part that begins at `from`; returns where the next
    /// part begins.
    fn list(&self, from: u64, orders: &mut Vec<u64>) -> Option<u64> {
        let hash_of = |(k, _): &(K, V)| self.hasher.hash_one(k);
        match &self.state {
            State::Table(table) => table.orders_from(from, hash_of, orders),
            _ => {
                let all = self.iter().map(|(k, _)| order(self.hasher.hash_one(k)));
                orders.extend(all.filter(|at| *at >= from));
                None
            }
        }
    }

    /// The `nth` entry, from 0, among those of one hash.
    fn nth_of(&self, hash: u64, mut nth: u32) -> Option<(&K, &V)> {
        let is = move |(k, _): &(K, V)| {
            let is = self.hasher.hash_one(k) == hash;
            nth = nth.wrapping_sub(u32::from(is));
            is && nth == u32::MAX
        };
        self.find_where(hash, is)
    }

    fn find_where(
        &self,
        hash: u64,
        mut is: impl FnMut(&(K, V)) -> bool + Copy,
    ) -> Option<(&K, &V)> {
        let (k, v) = match &self.state {
            State::Empty => None,
            State::One(entry) => Some(entry).filter(|e| is(e)),
            State::Two(entries) => entries.iter().find(|e| is(e)),
            State::Few(few) => few.iter().find(|e| is(e)),
            State::Single(single) => single.find_any(hash, &mut is).map(|(entry, _)| entry),
            State::Table(table) => table.find(hash, is),
        }?;
        Some((k, v))
    }
}
