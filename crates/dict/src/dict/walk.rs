//! Walks that survive changes, and handles.

use core::hash::{BuildHasher, Hash};

use super::{Dict, State};

/// Where a walk with [`Dict::next`] stands. Holds no borrow of the dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Everything of a lesser hash was visited.
    from: u64,
    /// So many entries of exactly that hash, too.
    skip: u32,
}

/// Names an entry of a [`Dict`] in eight bytes, whatever its key.
///
/// It stays good through every insertion and removal of others, through growth and shrinking; an entry removed
/// is not found by it any more, unless its key was inserted again. It is the hash of the key: of two keys that
/// agree in all 64 bits of it (one pair in 10^19) it may find either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(u64);

impl<K: Hash + Eq, V, S: BuildHasher> Dict<K, V, S> {
    /// The handle of a key, there or not.
    #[inline]
    pub fn handle<Q: Hash + crate::Lookup<K> + ?Sized>(&self, key: &Q) -> Handle {
        Handle(self.hasher.hash_one(key))
    }

    /// The entry of a handle.
    pub fn by_handle(&self, handle: Handle) -> Option<(&K, &V)> {
        let is = |(k, _): &(K, V)| self.hasher.hash_one(k) == handle.0;
        let (k, v) = match &self.state {
            State::Empty => None,
            State::One(entry) => Some(entry).filter(|e| is(e)),
            State::Two(entries) => entries.iter().find(|e| is(e)),
            State::Few(few) => few.iter().find(|e| is(e)),
            State::Table(table) => table.find(handle.0, is),
        }?;
        Some((k, v))
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
            State::Table(table) => {
                let place = table.place(handle.0, is)?;
                table.get_mut(place)
            }
        }?;
        Some(v)
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
            State::Empty => return None,
            State::One(entry) => least(core::iter::once(entry), cursor, hash_of)?,
            State::Two(entries) => least(entries.iter(), cursor, hash_of)?,
            State::Few(few) => least(few.iter(), cursor, hash_of)?,
            State::Table(table) => table.next_from(cursor.from, cursor.skip, hash_of)?,
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
