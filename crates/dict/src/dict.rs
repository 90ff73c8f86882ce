//! The dictionary: a few entries inline, some in a small array, many in the clustered table.

use core::fmt;
use core::hash::Hash;
use core::hint::black_box;
use core::slice;

use crate::digest::digest;
use crate::lookup::{AsKey, Search};
use crate::raw::few::{FEW_MAX, Few};
use crate::raw::secret::Drawn;
use crate::single::{SINGLE_SHRINK_AT, Single};
use crate::stats::Stats;
use crate::table::{FirstSearch, Table};
use crate::{KeyedHash, Lookup, TableHash};

mod batch;
mod walk;

pub use walk::{Cursor, Handle};

/// Entries at which a segment becomes a small array again: half of the threshold for growing, so
/// that single insertions and removals do not alternate between both.
const FEW_SHRINK_AT: usize = FEW_MAX / 2;

enum State<T> {
    Empty,
    One(T),
    Two([T; 2]),
    Few(Few<T>),
    Single(Single<T>),
    Table(Table<T>),
}

/// A map from `K` to `V` that takes little memory when small and grows in bounded steps when large.
///
/// | operation | cost |
/// |---|---|
/// | `get`, `get_mut`, `contains_key` | up to 2 entries: a comparison each; up to 15: one comparison of 8-bit tags; then O(1) expected |
/// | `insert`, `remove` | O(1) expected and amortised; at worst one segment, of up to 255 entries, is split, and 512 slots of the directory (8 bytes each) are copied |
/// | `get_many` | as `get`, with the memory of 128 keys prefetched at once |
/// | `next` with a [`Cursor`] | O(1) amortised; the first step in a segment lists its hashes |
/// | `iter`, `stats`, `memory_bytes`, `clear`, dropping | O(n) |
///
/// The worst case assumes well distributed hashes, as the default hasher computes for keys chosen
/// without knowledge of its secret ([`KeyedHash`]). If very many keys share one 64-bit hash, their
/// segment cannot be split, and searching them becomes linear, as in any hash table.
pub struct Dict<K, V, S = KeyedHash> {
    state: State<(K, V)>,
    hasher: S,
}

/// A search in a table or a single segment. One type serves both, because byte strings are searched
/// in three forms and separate code for each combination slows searches even in dictionaries of one
/// entry.
struct SearchSegments<'d, T, S> {
    state: &'d State<T>,
    drawn: Drawn,
    hasher: &'d S,
}

impl<'d, K, V, S: TableHash> Search<K> for SearchSegments<'d, (K, V), S> {
    type Found = FirstSearch<'d, (K, V)>;

    #[inline(always)]
    fn with<Q: Hash + Lookup<K> + ?Sized>(self, query: &Q) -> Self::Found {
        let SearchSegments { state, drawn, hasher } = self;
        let hash = hasher.hash_in_table(&AsKey::<K, Q>::new(query), drawn);
        match state {
            State::Table(table) => table.find_first(hash, |(k, _)| query.is(k)),
            State::Single(single) => single.find_first(hash, |(k, _)| query.is(k)),
            _ => FirstSearch::None,
        }
    }
}

/// A search in a small array.
struct SearchFew<'d, T>(&'d Few<T>);

impl<'d, K, V> Search<K> for SearchFew<'d, (K, V)> {
    type Found = Option<(usize, &'d (K, V))>;

    #[inline(always)]
    fn with<Q: Hash + Lookup<K> + ?Sized>(self, query: &Q) -> Self::Found {
        self.0.find(digest(&AsKey::<K, Q>::new(query)), |(k, _)| query.is(k))
    }
}

impl<K, V> Dict<K, V> {
    /// An empty dictionary; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_hasher(KeyedHash)
    }
}

impl<K, V, S: Default> Default for Dict<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> Dict<K, V, S> {
    /// An empty dictionary with a hash of the caller's choice.
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Dict { state: State::Empty, hasher }
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.state {
            State::Empty => 0,
            State::One(_) => 1,
            State::Two(_) => 2,
            State::Few(few) => few.len(),
            State::Single(single) => single.len(),
            State::Table(table) => table.len(),
        }
    }

    /// Whether there is no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Every other state has entries.
        matches!(self.state, State::Empty)
    }

    /// Drops all entries and frees the memory.
    pub fn clear(&mut self) {
        self.state = State::Empty;
    }

    /// All entries, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, single, table) = match &self.state {
            State::Empty => ([].iter(), None, None),
            State::One(entry) => (slice::from_ref(entry).iter(), None, None),
            State::Two(entries) => (entries.iter(), None, None),
            State::Few(few) => (few.iter(), None, None),
            State::Single(single) => ([].iter(), Some(single), None),
            State::Table(table) => ([].iter(), None, Some(table)),
        };
        let single = single.into_iter().flat_map(Single::iter);
        few.chain(single).chain(table.into_iter().flat_map(Table::iter)).map(|(k, v)| (k, v))
    }

    /// All entries, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let (few, single, table) = match &mut self.state {
            State::Empty => ([].iter_mut(), None, None),
            State::One(entry) => (slice::from_mut(entry).iter_mut(), None, None),
            State::Two(entries) => (entries.iter_mut(), None, None),
            State::Few(few) => (few.iter_mut(), None, None),
            State::Single(single) => ([].iter_mut(), Some(single), None),
            State::Table(table) => ([].iter_mut(), None, Some(table)),
        };
        let single = single.into_iter().flat_map(Single::iter_mut);
        few.chain(single).chain(table.into_iter().flat_map(Table::iter_mut)).map(|(k, v)| (&*k, v))
    }

    /// Bytes of the dictionary: itself and its arrays, as requested from the allocator; not what
    /// keys and values own elsewhere.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.state {
                State::Empty | State::One(_) | State::Two(_) => 0,
                State::Few(few) => few.heap_bytes(),
                State::Single(single) => single.heap_bytes(),
                State::Table(table) => table.heap_bytes(),
            }
    }
}

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// Statistics about sizes, distances and growth.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let flat = |capacity| Stats { len: self.len(), capacity, ..Stats::default() };
        match &self.state {
            State::Empty | State::One(_) | State::Two(_) => flat(2),
            State::Few(few) => flat(few.capacity()),
            State::Single(single) => Stats::of_single(single, |(k, _)| self.hasher.hash_one(k)),
            State::Table(table) => Stats::of(table, |(k, _)| self.hasher.hash_one(k)),
        }
    }

    // Always inlined: in a loop of searches the three states are then distinguished once, before
    // the loop. Compilers would duplicate the loops over one or two entries, which are mere
    // comparisons; an opaque value prevents that without an instruction.
    #[inline(always)]
    fn find<Q>(&self, key: &Q) -> Option<&(K, V)>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        match &self.state {
            State::Table(Table { drawn, .. }) | State::Single(Single { drawn, .. }) => {
                let search =
                    SearchSegments { state: &self.state, drawn: *drawn, hasher: &self.hasher };
                match key.search(search) {
                    FirstSearch::Is(entry) => Some(entry),
                    // One call for all forms of the query.
                    FirstSearch::IsNot(hash) => self.find_any(hash, &mut |(k, _)| key.is(k)),
                    FirstSearch::None => None,
                }
            }
            State::Few(few) => Some(key.search(SearchFew(few))?.1),
            State::One(entry) => {
                black_box(());
                key.is(&entry.0).then_some(entry)
            }
            State::Two([one, other]) => {
                black_box(());
                if key.is(&one.0) { Some(one) } else { key.is(&other.0).then_some(other) }
            }
            State::Empty => None,
        }
    }

    /// Searches segments for all entries with the tag of a hash.
    #[cold]
    #[inline(never)]
    fn find_any(&self, hash: u64, eq: &mut impl FnMut(&(K, V)) -> bool) -> Option<&(K, V)> {
        match &self.state {
            State::Table(table) => table.find_any(hash, eq).map(|(entry, _)| entry),
            State::Single(single) => single.find_any(hash, eq).map(|(entry, _)| entry),
            _ => None,
        }
    }

    /// The value of a key.
    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.find(key).map(|(_, v)| v)
    }

    /// The entry of a key.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.find(key).map(|(k, v)| (k, v))
    }

    /// The mutable value of a key.
    #[inline]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let entry = match &mut self.state {
            State::Table(table) => {
                let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), table.drawn);
                let position = table.position(hash, |(k, _)| key.is(k))?;
                table.get_mut(position)?
            }
            State::Single(single) => {
                let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), single.drawn);
                let lane = single.lane(hash, |(k, _)| key.is(k))?;
                single.get_mut(lane)?
            }
            State::Few(few) => {
                let (at, _) = key.search(SearchFew(few))?;
                few.get_mut(at)?
            }
            State::Two([entry, _]) if key.is(&entry.0) => entry,
            State::Two([_, entry]) | State::One(entry) if key.is(&entry.0) => entry,
            State::Empty | State::One(_) | State::Two(_) => return None,
        };
        Some(&mut entry.1)
    }

    /// Whether the map contains the key.
    #[inline(always)]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.find(key).is_some()
    }

    /// Maps `key` to `value`; returns the previous value. An existing key is kept.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match &mut self.state {
            State::Empty => {
                self.state = State::One((key, value));
                return None;
            }
            State::Two([entry, _]) if entry.0 == key => {
                return Some(core::mem::replace(&mut entry.1, value));
            }
            State::Two([_, entry]) | State::One(entry) if entry.0 == key => {
                return Some(core::mem::replace(&mut entry.1, value));
            }
            State::One(_) | State::Two(_) => self.add_second_or_third(key, value),
            State::Few(few) => {
                let digest = digest(&key);
                if let Some(entry) = few
                    .find(digest, |(k, _)| *k == key)
                    .map(|(at, _)| at)
                    .and_then(|at| few.get_mut(at))
                {
                    return Some(core::mem::replace(&mut entry.1, value));
                }
                if let Err(entry) = few.push(digest, (key, value)) {
                    self.grow(entry);
                }
            }
            State::Single(single) => {
                let drawn = single.drawn;
                let hash = self.hasher.hash_in_table(&key, drawn);
                if let Some(lane) = single.lane(hash, |(k, _)| *k == key) {
                    return single.get_mut(lane).map(|(_, old)| core::mem::replace(old, value));
                }
                let hasher = |(k, _): &(K, V)| self.hasher.hash_in_table(k, drawn);
                if let Err(entry) = single.insert(hash, (key, value), hasher) {
                    self.grow(entry);
                }
            }
            State::Table(table) => {
                let drawn = table.drawn;
                let hash = self.hasher.hash_in_table(&key, drawn);
                if let Some(position) = table.position(hash, |(k, _)| *k == key) {
                    return table.get_mut(position).map(|(_, old)| core::mem::replace(old, value));
                }
                table.insert(hash, (key, value), |(k, _)| self.hasher.hash_in_table(k, drawn));
            }
        }
        None
    }

    /// Adds the second or third entry.
    #[inline]
    fn add_second_or_third(&mut self, key: K, value: V) {
        let third = digest(&key);
        self.state = match core::mem::replace(&mut self.state, State::Empty) {
            State::One(first) => State::Two([first, (key, value)]),
            State::Two([first, second]) => {
                let digests = [digest(&first.0), digest(&second.0), third];
                let mut few = Few::new();
                for (digest, entry) in digests.into_iter().zip([first, second, (key, value)]) {
                    // The capacity is six.
                    let _ = few.push(digest, entry);
                }
                State::Few(few)
            }
            other => other,
        };
    }

    /// Converts the small array into a segment, or the segment into a table, and adds an entry.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, entry: (K, V)) {
        let hash_of = |(k, _): &(K, V)| self.hasher.hash_one(k);
        self.state = match core::mem::replace(&mut self.state, State::Empty) {
            State::Few(mut few) => {
                let mut entries = Vec::with_capacity(few.len() + 1);
                entries.push(entry);
                while let Some(entry) = few.swap_remove(few.len().wrapping_sub(1)) {
                    entries.push(entry);
                }
                match Single::new(entries.into_iter(), hash_of) {
                    Ok(single) => State::Single(single),
                    Err(entries) => State::Table(Table::new(entries.into_iter(), hash_of)),
                }
            }
            State::Single(single) => {
                let entries = core::iter::once(entry).chain(single.into_entries());
                State::Table(Table::new(entries, hash_of))
            }
            other => other,
        };
    }

    /// The value of a key, inserted first if it is missing.
    pub fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V
    where
        K: Clone,
    {
        if !self.contains_key(key) {
            self.insert(key.clone(), make());
        }
        match self.get_mut(key) {
            Some(value) => value,
            None => unreachable!("entered above"),
        }
    }

    /// Removes a key; returns its value.
    #[inline(always)]
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.remove_entry(key).map(|(_, v)| v)
    }

    /// Removes a key; returns its entry.
    #[inline(always)]
    pub fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        if let State::Table(table) = &mut self.state {
            let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), table.drawn);
            let drawn = table.drawn;
            let hash_of = |(k, _): &(K, V)| self.hasher.hash_in_table(k, drawn);
            let entry = table.remove(hash, |(k, _)| key.is(k), hash_of)?;
            // A table whose hashes do not fit into a segment remains one.
            if table.len() == SINGLE_SHRINK_AT || table.len() <= FEW_SHRINK_AT {
                self.shrink();
            }
            return Some(entry);
        }
        self.remove_from_few(key)
    }

    /// [`remove_entry`](Self::remove_entry) without a table: a function of its own, so that the
    /// path with a table needs few registers.
    #[inline(never)]
    fn remove_from_few<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        match &mut self.state {
            State::Single(single) => {
                let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), single.drawn);
                let lane = single.lane(hash, |(k, _)| key.is(k))?;
                let entry = single.remove(lane);
                if single.len() <= FEW_SHRINK_AT {
                    self.shrink();
                }
                entry
            }
            State::Few(few) => {
                let (at, _) = key.search(SearchFew(few))?;
                let entry = few.swap_remove(at);
                if few.len() == 1
                    && let Some(last) = few.swap_remove(0)
                {
                    self.state = State::One(last);
                }
                entry
            }
            State::One((k, _)) if key.is(k) => self.remove_inline(0),
            State::Two([(k, _), _]) if key.is(k) => self.remove_inline(0),
            State::Two([_, (k, _)]) if key.is(k) => self.remove_inline(1),
            State::Empty | State::One(_) | State::Two(_) | State::Table(_) => None,
        }
    }

    #[inline]
    fn remove_inline(&mut self, at: usize) -> Option<(K, V)> {
        match core::mem::replace(&mut self.state, State::Empty) {
            State::One(entry) => Some(entry),
            State::Two([first, second]) => {
                let (gone, left) = if at == 0 { (first, second) } else { (second, first) };
                self.state = State::One(left);
                Some(gone)
            }
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Shrinks a table to a single segment, or a table or segment to the small array.
    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        let hash_of = |(k, _): &(K, V)| self.hasher.hash_one(k);
        self.state = match core::mem::replace(&mut self.state, State::Empty) {
            State::Table(table) if table.len() > FEW_SHRINK_AT => {
                match Single::from_table(table, hash_of) {
                    Ok(single) => State::Single(single),
                    Err(entries) => State::Table(Table::new(entries.into_iter(), hash_of)),
                }
            }
            State::Table(table) => Self::few(table.into_entries()),
            State::Single(single) => Self::few(single.into_entries()),
            other => other,
        };
    }

    /// A small array of these entries, which must fit.
    fn few(entries: Vec<(K, V)>) -> State<(K, V)> {
        let mut few = Few::new();
        for entry in entries {
            let _ = few.push(digest(&entry.0), entry);
        }
        State::Few(few)
    }

    /// Keeps the entries that `keep` accepts. Shrinks as removing them one by one does.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool)
    where
        K: Clone,
    {
        let gone: Vec<K> =
            self.iter_mut().filter_map(|(k, v)| (!keep(k, v)).then(|| k.clone())).collect();
        for key in &gone {
            self.remove(key);
        }
    }
}

impl<K: Hash + Eq, V, S: TableHash + Default> FromIterator<(K, V)> for Dict<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut dict = Self::default();
        dict.extend(entries);
        dict
    }
}

impl<K: Hash + Eq, V, S: TableHash> Extend<(K, V)> for Dict<K, V, S> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for Dict<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
