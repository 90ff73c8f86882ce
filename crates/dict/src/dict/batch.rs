//! Many keys looked up at once.

use core::hash::Hash;

use super::{Dict, State};
use crate::{Lookup, TableHash};

/// Keys that go through a step together. Two such groups wait for memory at once: together as many keys as a core can wait
/// for lines of memory, and more, as some are in the cache.
const GROUP: usize = 16;

impl<K: Hash + Eq, V, S: TableHash> Dict<K, V, S> {
    /// Looks up many keys and appends what each is mapped to.
    ///
    /// Keys go through three steps in groups of 16: their lines of tags are asked for; the entries that the tags point to
    /// are asked for; and those are compared. While a group is at one step, the others are at the next two, so misses of the
    /// cache are waited for together: faster than single lookups where the table outgrows the cache, and slower by half
    /// where it does not.
    pub fn get_many<'d, 'k, Q>(
        &'d self,
        keys: impl IntoIterator<Item = &'k Q>,
        found: &mut Vec<Option<&'d V>>,
    ) where
        Q: Hash + Lookup<K> + ?Sized + 'k,
    {
        let mut keys = keys.into_iter().fuse();
        let State::Table(table) = &self.state else {
            found.extend(keys.map(|key| self.get(key)));
            return;
        };
        found.reserve(keys.size_hint().0);
        let Some(first) = keys.next() else { return };
        let seek = |key: &'k Q| (key, table.seek(self.hasher.hash_in_table(key, table.drawn())));
        let mut groups = [[seek(first); GROUP]; 3];
        let [fresh, sifted, done] = &mut groups;
        let (mut fresh, mut sifted, mut done) = (fresh, sifted, done);
        let mut counts = [1, 0];
        while counts != [0; 2] {
            let [of_fresh, of_sifted] = counts;
            let mut count = 0;
            for (place, key) in done.iter_mut().zip(keys.by_ref()) {
                *place = seek(key);
                count += 1;
            }
            for (_, seek) in &mut fresh[..of_fresh] {
                seek.sift();
            }
            found.extend(
                sifted[..of_sifted]
                    .iter()
                    .map(|(key, seek)| table.pick(*seek, |(k, _)| key.is(k)).map(|(_, v)| v)),
            );
            (fresh, sifted, done) = (done, fresh, sifted);
            counts = [count, of_fresh];
        }
    }
}
