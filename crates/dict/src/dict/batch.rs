//! Many keys looked up at once.

use core::hash::Hash;

use super::{Dict, State};
use crate::{Lookup, TableHash};

/// Keys on their way at once: more than a core can wait for lines of memory, as some are in the cache.
const AHEAD: usize = 32;

/// Keys between the line of tags and the entry. Tags are a sixteenth of the entries, and so the nearer ones.
const NEAR: usize = 8;

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// Looks up many keys and appends what each is mapped to.
    ///
    /// The memory of 32 keys is on its way at once: for a key that comes, its line of tags is asked for; for the one 8
    /// keys before it, the entry that its tags point to; and the one 32 before it is compared. So misses of the
    /// cache are waited for together: faster than single lookups where the table outgrows the cache.
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
        let Some(first) = keys.next() else { return };
        let seek = |key: &'k Q| (key, table.seek(self.hasher.hash_in_table(key, table.drawn())));
        // The key that came as number n stands at n % AHEAD until its value is appended.
        let mut ring = [seek(first); AHEAD];
        let mut count = 1;
        for key in keys {
            let place = &mut ring[count % AHEAD];
            if count >= AHEAD {
                let (key, seek) = *place;
                found.push(table.pick(seek, |(k, _)| key.is(k)).map(|(_, v)| v));
            }
            *place = seek(key);
            if count >= NEAR {
                ring[(count - NEAR) % AHEAD].1.sift();
            }
            count += 1;
        }
        for at in count.saturating_sub(NEAR)..count {
            ring[at % AHEAD].1.sift();
        }
        found.extend((count.saturating_sub(AHEAD)..count).map(|at| {
            let (key, seek) = ring[at % AHEAD];
            table.pick(seek, |(k, _)| key.is(k)).map(|(_, v)| v)
        }));
    }
}
