//! Many keys looked up at once.

use core::hash::{BuildHasher, Hash};

use super::{Dict, State};
use crate::Lookup;

/// Keys on their way at once: about as many cache lines as a core can wait for.
const AHEAD: usize = 32;

impl<K: Hash + Eq, V, S: BuildHasher> Dict<K, V, S> {
    /// Looks up many keys and appends what each is mapped to.
    ///
    /// The memory of 32 keys is asked for before the first of them is looked at, so that misses of the cache are
    /// waited for together: faster than single lookups where the table outgrows the cache.
    pub fn get_many<'d, 'k, Q>(
        &'d self,
        keys: impl IntoIterator<Item = &'k Q>,
        found: &mut Vec<Option<&'d V>>,
    ) where
        Q: Hash + Lookup<K> + ?Sized + 'k,
    {
        let mut keys = keys.into_iter();
        let State::Table(table) = &self.state else {
            found.extend(keys.map(|key| self.get(key)));
            return;
        };
        found.reserve(keys.size_hint().0);
        let mut batch = [None; AHEAD];
        loop {
            let mut count = 0;
            for (place, key) in batch.iter_mut().zip(keys.by_ref()) {
                *place = Some((key, table.seek(self.hasher.hash_one(key))));
                count += 1;
            }
            let batch = &batch[..count];
            for (_, seek) in batch.iter().flatten() {
                table.seek_entry(*seek);
            }
            found.extend(
                batch
                    .iter()
                    .flatten()
                    .map(|(key, seek)| table.find_at(*seek, |(k, _)| key.is(k)).map(|(_, v)| v)),
            );
            if count < AHEAD {
                return;
            }
        }
    }
}
