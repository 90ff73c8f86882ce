//! The dictionary: a few entries in place, some in a list, many in the clustered table.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use crate::KeyedHash;
use crate::stats::Stats;
use crate::table::Table;

/// Entries held in the dictionary itself.
const INLINE: usize = 2;

/// Entries at most searched one by one; from the next on they are hashed.
pub(crate) const LIST_MAX: usize = 12;

/// Keys of [`Dict::get_many`] in flight at once.
const BATCH: usize = 16;

enum State<K, V> {
    /// Filled from the front.
    Inline([Option<(K, V)>; INLINE]),
    List(Vec<(K, V)>),
    Table(Box<Table<(K, V)>>),
}

/// A map from `K` to `V`, small when it holds little and even in its pace when it holds much.
///
/// | operation | cost |
/// |---|---|
/// | `get`, `get_mut`, `contains_key` | up to 12 entries: a comparison each, no hash; then O(1) expected |
/// | `insert`, `remove` | O(1) expected and amortised; at worst one segment of up to some 600 entries is rebuilt, and the directory (4 bytes for some 400 entries) copied |
/// | `next` with a [`Cursor`] | O(1) expected; the whole of the list up to 12 entries |
/// | `iter`, `stats`, `memory_bytes` | O(n) |
///
/// The worst case holds for hashes that spread; where very many keys share one 64-bit hash their segment
/// cannot be split and searching becomes linear in them, as in any hash table.
pub struct Dict<K, V, S = KeyedHash> {
    state: State<K, V>,
    hasher: S,
}

/// Where a walk with [`Dict::next`] stands. Holds no borrow of the dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Everything of a lesser hash was visited.
    from: u64,
    /// So many entries of exactly that hash, too.
    skip: u32,
}

impl<K, V> Dict<K, V> {
    /// An empty dictionary; allocates nothing.
    #[must_use]
    pub fn new() -> Self {
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
        Dict { state: State::Inline([const { None }; INLINE]), hasher }
    }

    /// Entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.state {
            State::Inline(cells) => cells.iter().flatten().count(),
            State::List(list) => list.len(),
            State::Table(table) => table.len(),
        }
    }

    /// Whether there is no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all entries and gives the memory back.
    pub fn clear(&mut self) {
        self.state = State::Inline([const { None }; INLINE]);
    }

    /// All entries, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (cells, list, table): (&[_], &[_], _) = match &self.state {
            State::Inline(cells) => (cells, &[], None),
            State::List(list) => (&[], list, None),
            State::Table(table) => (&[], &[], Some(table)),
        };
        let few = cells.iter().flatten().chain(list);
        few.chain(table.into_iter().flat_map(|t| t.iter())).map(|(k, v)| (k, v))
    }

    /// All entries, with the values to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let (cells, list, table): (&mut [_], &mut [_], _) = match &mut self.state {
            State::Inline(cells) => (cells, &mut [], None),
            State::List(list) => (&mut [], list, None),
            State::Table(table) => (&mut [], &mut [], Some(table)),
        };
        let few = cells.iter_mut().flatten().chain(list);
        few.chain(table.into_iter().flat_map(|t| t.iter_mut())).map(|(k, v)| (&*k, v))
    }

    /// Bytes of the dictionary: itself and its arrays, as asked of the allocator; not what keys and values
    /// own elsewhere.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.state {
                State::Inline(_) => 0,
                State::List(list) => list.capacity() * size_of::<(K, V)>(),
                State::Table(table) => size_of::<Table<(K, V)>>() + table.heap_bytes(),
            }
    }

    /// Lengths, distances and growth.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let flat = |capacity| Stats { len: self.len(), capacity, ..Stats::default() };
        match &self.state {
            State::Inline(_) => flat(INLINE),
            State::List(list) => flat(list.capacity()),
            State::Table(table) => Stats::of(table),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Dict<K, V, S> {
    /// The value of a key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get_key_value(key).map(|(_, v)| v)
    }

    /// The entry of a key.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (k, v) = match &self.state {
            State::Inline(cells) => cells.iter().flatten().find(|(k, _)| k.borrow() == key)?,
            State::List(list) => list.iter().find(|(k, _)| k.borrow() == key)?,
            State::Table(table) => {
                let place = table.find(self.hasher.hash_one(key), |(k, _)| k.borrow() == key)?;
                table.get(place)?
            }
        };
        Some((k, v))
    }

    /// The value of a key, to change.
    #[inline]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_, v) = match &mut self.state {
            State::Inline(cells) => {
                cells.iter_mut().flatten().find(|(k, _)| (*k).borrow() == key)?
            }
            State::List(list) => list.iter_mut().find(|(k, _)| (*k).borrow() == key)?,
            State::Table(table) => {
                let place = table.find(self.hasher.hash_one(key), |(k, _)| k.borrow() == key)?;
                table.get_mut(place)?
            }
        };
        Some(v)
    }

    /// Whether the key is there.
    #[inline]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(key).is_some()
    }

    /// Looks up many keys at once and appends what each is mapped to.
    ///
    /// A batch goes through each step together (hash, directory, tags, entry), so that the misses of one
    /// step are waited for together: much faster than single lookups where the table outgrows the cache.
    pub fn get_many<'d, 'k, Q>(
        &'d self,
        keys: impl IntoIterator<Item = &'k Q>,
        found: &mut Vec<Option<&'d V>>,
    ) where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized + 'k,
    {
        let mut keys = keys.into_iter();
        let State::Table(table) = &self.state else {
            found.extend(keys.map(|key| self.get(key)));
            return;
        };
        let mut hashes = [0_u64; BATCH];
        loop {
            let mut batch = [None; BATCH];
            for (place, key) in batch.iter_mut().zip(keys.by_ref()) {
                *place = Some(key);
            }
            for (hash, key) in hashes.iter_mut().zip(batch.iter().flatten()) {
                *hash = self.hasher.hash_one(*key);
            }
            let mut places = hashes.map(|hash| table.seek(hash));
            // Each entry is touched before the first is compared.
            for (place, hash) in places.iter_mut().zip(hashes) {
                *place = table.find_from(*place, hash, |_| true).unwrap_or(*place);
            }
            for ((key, place), hash) in batch.iter().flatten().zip(places).zip(hashes) {
                let place = table.find_from(place, hash, |(k, _)| k.borrow() == *key);
                found.push(place.and_then(|p| table.get(p)).map(|(_, v)| v));
            }
            if batch[BATCH - 1].is_none() {
                return;
            }
        }
    }

    /// Maps `key` to `value`; gives back what it was mapped to. The key that was there stays.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let State::Table(table) = &mut self.state {
            let hash = self.hasher.hash_one(&key);
            let place = table.seek(hash);
            if let Some(place) = table.find_from(place, hash, |(k, _)| *k == key) {
                return table.get_mut(place).map(|(_, old)| core::mem::replace(old, value));
            }
            table.insert_at(place, hash, (key, value), |(k, _)| self.hasher.hash_one(k));
            return None;
        }
        if let Some(old) = self.get_mut(&key) {
            return Some(core::mem::replace(old, value));
        }
        self.insert_new(key, value);
        None
    }

    /// The value of a key, made and entered first where there is none.
    pub fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V
    where
        K: Clone,
    {
        if !self.contains_key(key) {
            self.insert_new(key.clone(), make());
        }
        match self.get_mut(key) {
            Some(value) => value,
            None => unreachable!("entered above"),
        }
    }

    /// Enters a key known to be absent.
    fn insert_new(&mut self, key: K, value: V) {
        let entry = (key, value);
        match &mut self.state {
            State::Inline(cells) => {
                if let Some(cell) = cells.iter_mut().find(|c| c.is_none()) {
                    *cell = Some(entry);
                    return;
                }
                let mut list = Vec::with_capacity(2 * INLINE);
                list.extend(cells.iter_mut().filter_map(Option::take));
                list.push(entry);
                self.state = State::List(list);
            }
            State::List(list) if list.len() < LIST_MAX => {
                if list.len() == list.capacity() {
                    list.reserve_exact(4);
                }
                list.push(entry);
            }
            State::List(list) => {
                let mut entries = core::mem::take(list);
                entries.push(entry);
                self.state =
                    State::Table(Box::new(Table::new(entries, |(k, _)| self.hasher.hash_one(k))));
            }
            State::Table(table) => {
                let hash = self.hasher.hash_one(&entry.0);
                table.insert(hash, entry, |(k, _)| self.hasher.hash_one(k));
            }
        }
    }

    /// Takes a key out; its value.
    #[inline]
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.remove_entry(key).map(|(_, v)| v)
    }

    /// Takes a key out; its entry.
    pub fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        match &mut self.state {
            State::Inline(cells) => {
                let at = cells
                    .iter()
                    .position(|c| c.as_ref().is_some_and(|(k, _)| k.borrow() == key))?;
                let entry = cells[at].take();
                // Filled from the front: the last one takes the place.
                let last = cells.iter().rposition(Option::is_some).unwrap_or(at).max(at);
                cells.swap(at, last);
                entry
            }
            State::List(list) => {
                let at = list.iter().position(|(k, _)| k.borrow() == key)?;
                let entry = list.swap_remove(at);
                if list.len() < INLINE {
                    let mut left = core::mem::take(list).into_iter();
                    self.state = State::Inline([left.next(), left.next()]);
                }
                Some(entry)
            }
            State::Table(table) => {
                let place = table.find(self.hasher.hash_one(key), |(k, _)| k.borrow() == key)?;
                let entry = table.remove(place);
                // Half as many as make a table, lest it come and go with single entries.
                if table.len() <= LIST_MAX / 2 {
                    let none = State::Inline([const { None }; INLINE]);
                    if let State::Table(table) = core::mem::replace(&mut self.state, none) {
                        let mut list = Vec::with_capacity(LIST_MAX / 2 + 2);
                        list.extend(table.into_entries());
                        self.state = State::List(list);
                    }
                }
                entry
            }
        }
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

    /// A walk over the entries that survives changes between its steps.
    ///
    /// The walk goes in the order of hashes, which no growth, split or shrinking changes. So, whatever is
    /// inserted and removed between steps of [`next`](Self::next):
    ///
    /// * an entry present from the first step to the last is visited exactly once;
    /// * an entry removed before the walk came to it is not visited;
    /// * an entry inserted during the walk is visited at most once (a key removed and inserted again counts
    ///   as a new entry only if the walk had not come to it);
    /// * a step costs the same however large the dictionary has grown since, and walks hold nothing up.
    ///
    /// Of keys that agree in all 64 bits of their hash (one pair in 10^19), one may be missed or
    /// visited twice if another of them is removed while the walk stands between them. Several walks may go on at once.
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
        let hash_of = |(k, _): &(K, V)| self.hasher.hash_one(k);
        let (hash, (key, value)) = match &self.state {
            State::Inline(cells) => least(cells.iter().flatten(), cursor, hash_of)?,
            State::List(list) => least(list.iter(), cursor, hash_of)?,
            State::Table(table) => {
                let (hash, place) = table.next_from(cursor.from, cursor.skip, hash_of)?;
                (hash, table.get(place)?)
            }
        };
        let again = hash == cursor.from;
        *cursor = Cursor { from: hash, skip: if again { cursor.skip + 1 } else { 1 } };
        Some((key, value))
    }
}

/// The entry a walk comes to next among a few without order, with its hash.
fn least<'e, T>(
    entries: impl Iterator<Item = &'e T>,
    cursor: &Cursor,
    hash_of: impl Fn(&T) -> u64,
) -> Option<(u64, &'e T)> {
    let mut passed = 0;
    let ahead = entries.map(|e| (hash_of(e), e)).filter(|(hash, _)| {
        let fresh = *hash > cursor.from || (*hash == cursor.from && passed >= cursor.skip);
        passed += u32::from(*hash == cursor.from);
        fresh
    });
    ahead.min_by_key(|(hash, _)| *hash)
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> FromIterator<(K, V)> for Dict<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut dict = Self::default();
        dict.extend(entries);
        dict
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for Dict<K, V, S> {
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
