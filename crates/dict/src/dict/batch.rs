//! Lookup of many keys at once.

use core::hash::Hash;

use super::{Dict, State};
use crate::lookup::AsKey;
use crate::{Lookup, TableHash};

/// Keys that go through a step together: many more than the outstanding cache misses of a core, so
/// that loads are always in flight, and few enough that their lines stay in the L1 cache.
const GROUP: usize = 128;

/// Fewer keys than this are looked up one by one: the setup of a batch takes longer.
const FEW: usize = 8;

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// Looks up many keys and appends their values.
    ///
    /// Keys go through three steps in groups of 128: their lines of tags are prefetched; the
    /// entries that the tags select are prefetched; the entries are compared. The cache misses of
    /// many keys overlap: faster than single lookups where the table exceeds the cache, and slower
    /// by half where it does not. Dictionaries of up to 106 entries, one segment or less, look keys
    /// up one by one.
    pub fn get_many<'d, 'k, Q>(
        &'d self,
        keys: impl IntoIterator<Item = &'k Q>,
        found: &mut Vec<Option<&'d V>>,
    ) where
        Q: Hash + Lookup<K> + ?Sized + 'k,
    {
        let mut keys = keys.into_iter().fuse();
        let is_few = keys.size_hint().1.is_some_and(|most| most <= FEW);
        let (State::Table(table), false) = (&self.state, is_few) else {
            found.extend(keys.map(|key| self.get(key)));
            return;
        };
        found.reserve(keys.size_hint().0);
        let Some(first) = keys.next() else { return };
        let has_overflow = table.has_overflow();
        let ask = |key: &'k Q| {
            let hash = self.hasher.hash_in_table(&AsKey::<K, Q>::new(key), table.drawn);
            (hash, table.begin(hash))
        };
        let (mut group, mut begun, mut firsts) =
            ([first; GROUP], [ask(first); GROUP], [None; GROUP]);
        let mut count = 1;
        loop {
            let places = group[count..].iter_mut().zip(&mut begun[count..]);
            for ((place, begun), key) in places.zip(keys.by_ref()) {
                (*place, *begun) = (key, ask(key));
                count += 1;
            }
            if count == 0 {
                return;
            }
            for ((hash, begun), first) in begun[..count].iter().zip(&mut firsts) {
                *first = begun.first(*hash);
            }
            let asked = group[..count].iter().zip(&begun).zip(&firsts);
            found.extend(asked.map(|((key, (hash, _)), first)| match first {
                Some((k, v)) if key.is(k) => Some(v),
                None if !has_overflow => None,
                _ => table.find_any(*hash, &mut |(k, _)| key.is(k)).map(|((_, v), _)| v),
            }));
            count = 0;
        }
    }
}
