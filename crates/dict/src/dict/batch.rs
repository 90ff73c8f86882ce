//! Many keys looked up at once.

use core::hash::{BuildHasher, Hash};

use super::{Dict, State};
use crate::Lookup;

/// Keys on their way at once: about as many cache lines as a core can wait for.
const AHEAD: usize = 16;

impl<K: Hash + Eq, V, S: BuildHasher> Dict<K, V, S> {
    /// Looks up many keys and appends what each is mapped to.
    ///
    /// The memory of a key is asked for while the 16 keys before it are still on their way, so that misses of
    /// the cache are waited for together: much faster than single lookups where the table outgrows the cache.
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
        // A ring: the key that leaves its place is the one that has waited longest.
        let mut ring = [None; AHEAD];
        let mut at = 0;
        let mut finish = |waiting: Option<(&Q, _)>| {
            if let Some((key, seek)) = waiting {
                found.push(table.find_at(seek, |(k, _)| key.is(k)).map(|(_, v)| v));
            }
        };
        for key in keys.by_ref() {
            let seek = table.seek(self.hasher.hash_one(key));
            finish(ring[at % AHEAD].replace((key, seek)));
            at += 1;
        }
        for _ in 0..AHEAD {
            finish(ring[at % AHEAD].take());
            at += 1;
        }
    }
}
