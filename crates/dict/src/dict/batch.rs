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
        // A ring: a key asks for its tags when it enters, for its entry halfway round, and is compared when its
        // place is wanted again.
        let mut ring = [None; AHEAD];
        let mut turn = |at: usize, entering: Option<(&'k Q, _)>| {
            if let Some((_, seek)) = ring[(at + AHEAD / 2) % AHEAD] {
                table.seek_entry(seek);
            }
            let leaving = core::mem::replace(&mut ring[at % AHEAD], entering);
            if let Some((key, seek)) = leaving {
                found.push(table.find_at(seek, |(k, _)| key.is(k)).map(|(_, v)| v));
            }
        };
        let mut at = 0;
        for key in keys.by_ref() {
            turn(at, Some((key, table.seek(self.hasher.hash_one(key)))));
            at += 1;
        }
        for _ in 0..AHEAD {
            turn(at, None);
            at += 1;
        }
    }
}
