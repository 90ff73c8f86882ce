//! Many keys looked up at once.

use core::hash::Hash;

use super::{Dict, State};
use crate::lookup::AsKey;
use crate::{Lookup, TableHash};

/// Keys that go through a step together: many more than a core waits for lines of memory at once, so that it always has some to
/// wait for, and few enough that their lines stay in the first cache.
const GROUP: usize = 128;

/// Fewer keys than this are looked up one by one: the setup of a batch takes longer.
const FEW: usize = 8;

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// Looks up many keys and appends their values.
    ///
    /// Keys go through three steps in groups of 128: their lines of tags are asked for; the entries that the tags point to
    /// are asked for; and those are compared. Memory is waited for by many keys together: faster than single lookups where
    /// the table outgrows the cache, and slower by half where it does not. Among up to 106 entries, in one segment or less,
    /// keys are looked up one by one.
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
        let has_apart = table.has_apart();
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
                None if !has_apart => None,
                _ => table.find_again(*hash, &mut |(k, _)| key.is(k)).map(|((_, v), _)| v),
            }));
            count = 0;
        }
    }
}
