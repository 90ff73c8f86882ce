//! Walks that survive changes, and handles.

use core::hash::Hash;

use super::{Dict, State};
use crate::TableHash;
use crate::lookup::AsKey;
use crate::raw::directory::{at_order, order};

/// The position of a walk with [`Dict::next`]. Does not borrow the dictionary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Where (in the [`order`] of hashes) entries of the part begun stand that are still to be visited, the last one first.
    ahead: Vec<u64>,
    /// Where the next part begins, unless there is none.
    from: u64,
    is_last: bool,
    begun: bool,
    /// The hash visited last, and how often.
    last: (u64, u32),
}

/// Names an entry of a [`Dict`] in eight bytes, whatever its key.
///
/// It stays good through every insertion and removal of others, through growth and shrinking; an entry removed
/// is not found by it any more, unless its key was inserted again. It is the hash of the key: of two keys that
/// agree in all 64 bits of it (one pair in 10^19) it may find either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// The handle of a key, there or not.
    #[inline]
    pub fn handle<Q: Hash + crate::Lookup<K> + ?Sized>(&self, key: &Q) -> Handle {
        Handle(self.hasher.hash_one(AsKey::<K, Q>::new(key)))
    }

    /// The entry of a handle.
    pub fn by_handle(&self, handle: Handle) -> Option<(&K, &V)> {
        self.find_where(handle.0, |(k, _)| self.hasher.hash_one(k) == handle.0)
    }

    /// The value of a handle, to change.
    pub fn by_handle_mut(&mut self, handle: Handle) -> Option<&mut V> {
        let Dict { state, hasher } = self;
        let is = |(k, _): &(K, V)| hasher.hash_one(k) == handle.0;
        let (_, v) = match state {
            State::Empty => None,
            State::One(entry) => Some(entry).filter(|e| is(e)),
            State::Two(entries) => entries.iter_mut().find(|e| is(e)),
            State::Few(few) => few.iter_mut().find(|e| is(e)),
            State::Single(single) => {
                let spot = single.spot(handle.0, is)?;
                single.get_mut(spot)
            }
            State::Table(table) => {
                let place = table.place(handle.0, is)?;
                table.get_mut(place)
            }
        }?;
        Some(v)
    }

    /// A walk over the entries that survives changes between its steps.
    ///
    /// The walk takes the dictionary part by part in the order of hashes, which no growth, split or shrinking
    /// changes, and lists the hashes of a part (up to 255) when it comes to it. So, whatever is
    /// inserted and removed between steps of [`next`](Self::next):
    ///
    /// * an entry present from the first step to the last is visited exactly once;
    /// * an entry removed before the walk came to it is not visited;
    /// * an entry inserted during the walk is visited at most once (a key removed and inserted again counts
    ///   as a new entry only if the walk had not come to it);
    /// * a step costs the same however large the dictionary has grown since, and walks hold nothing up.
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
            let Some(hash) = cursor.ahead.pop().map(at_order) else {
                if cursor.is_last {
                    return None;
                }
                let next = self.list(cursor.from, &mut cursor.ahead);
                (cursor.from, cursor.is_last) = (next.unwrap_or_default(), next.is_none());
                cursor.ahead.sort_unstable_by(|a, b| b.cmp(a));
                continue;
            };
            let (last, times) = cursor.last;
            let nth = if cursor.begun && last == hash { times } else { 0 };
            (cursor.begun, cursor.last) = (true, (hash, nth + 1));
            if let Some((key, value)) = self.nth_of(hash, nth) {
                return Some((key, value));
            }
        }
    }

    /// Lists where the entries of the part that begins at `from` stand; where the next one begins.
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

    /// Among the entries of one hash, one to which `nth` others come before.
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
            State::Single(single) => single.find_again(hash, &mut is).map(|(entry, _)| entry),
            State::Table(table) => table.find(hash, is),
        }?;
        Some((k, v))
    }
}
