//! A map whose entries expire.

use core::hash::Hash;

use crate::{KeyedHash, Lookup, OrderedDict, TableHash};

/// The event from which an entry's lifetime counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireOn {
    /// Insertion of the entry.
    Create,
    /// The last time it was inserted, read or written.
    Read,
    /// The last time it was inserted or written.
    Write,
}

/// A map whose entries expire, by packet time.
///
/// All entries have the same lifetime, so the order of touches is the order of expiry: a touch
/// moves the entry to the end of an [`OrderedDict`], and expiry removes from the front. Both take
/// constant time, without scans. Times are in any unit that counts up (nanoseconds of packet time);
/// a time earlier than a previous one counts as that one, so packets out of order neither revive
/// nor delay anything.
///
/// Expiry happens in [`expire`](Self::expire) alone, as many entries at a time as the caller
/// allows: until then an overdue entry is still found, as in Zeek.
pub struct ExpiringDict<K, V, S = KeyedHash> {
    entries: OrderedDict<K, (u64, V), S>,
    on: ExpireOn,
    lifetime: u64,
    now: u64,
}

impl<K, V> ExpiringDict<K, V> {
    /// An empty dictionary whose entries expire `lifetime` after the event `on`.
    #[must_use]
    pub fn new(on: ExpireOn, lifetime: u64) -> Self {
        Self::with_hasher(on, lifetime, KeyedHash)
    }
}

impl<K, V, S> ExpiringDict<K, V, S> {
    /// Like [`new`](ExpiringDict::new), with a hash of the caller's choice.
    #[must_use]
    pub const fn with_hasher(on: ExpireOn, lifetime: u64, hasher: S) -> Self {
        ExpiringDict { entries: OrderedDict::with_hasher(hasher), on, lifetime, now: 0 }
    }

    /// Number of entries, including overdue ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, the next to expire first. Does not count as a read.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(k, (_, v))| (k, v))
    }

    /// Bytes of the dictionary, as [`OrderedDict::memory_bytes`] counts them.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of_val(&self.entries) + self.entries.memory_bytes()
    }

    /// The time at which the next entry becomes overdue.
    #[must_use]
    pub fn next_expiry(&self) -> Option<u64> {
        let (_, (touched, _)) = self.entries.first()?;
        Some(touched.saturating_add(self.lifetime))
    }

    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }
}

impl<K: Hash + Eq, V, S: TableHash> ExpiringDict<K, V, S> {
    fn touch<Q>(&mut self, key: &Q)
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        let now = self.now;
        if let Some((touched, _)) = self.entries.get_mut(key)
            // The order within one instant does not matter.
            && *touched != now
        {
            *touched = now;
            self.entries.move_last(key);
        }
    }

    /// Reads a value at the time `now`.
    pub fn get<Q>(&mut self, now: u64, key: &Q) -> Option<&V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.advance(now);
        if self.on == ExpireOn::Read {
            self.touch(key);
        }
        self.peek(key)
    }

    /// A value; does not count as a read.
    pub fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.entries.get(key).map(|(_, v)| v)
    }

    /// A mutable value at the time `now`; counts as a write.
    pub fn get_mut<Q>(&mut self, now: u64, key: &Q) -> Option<&mut V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.advance(now);
        if self.on != ExpireOn::Create {
            self.touch(key);
        }
        self.entries.get_mut(key).map(|(_, v)| v)
    }

    /// Maps `key` to `value` at the time `now`; returns the previous value.
    pub fn insert(&mut self, now: u64, key: K, value: V) -> Option<V> {
        if let Some(old) = self.get_mut(now, &key) {
            return Some(core::mem::replace(old, value));
        }
        self.entries.insert(key, (self.now, value));
        None
    }

    /// Removes a key; returns its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        Q: Hash + Lookup<K> + ?Sized,
    {
        self.entries.remove(key).map(|(_, v)| v)
    }

    /// Removes entries that have expired at the time `now`, at most `budget`, and passes each to
    /// `on_expired`; returns their number. If that equals `budget`, call again soon.
    pub fn expire(&mut self, now: u64, budget: usize, mut on_expired: impl FnMut(K, V)) -> usize {
        self.advance(now);
        let mut count = 0;
        while count < budget && self.next_expiry().is_some_and(|due| due <= self.now) {
            let Some((key, (_, value))) = self.entries.pop_first() else { break };
            on_expired(key, value);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_at_12(on: ExpireOn) -> Vec<&'static str> {
        let mut dict = ExpiringDict::new(on, 10);
        for key in ["made", "read", "written"] {
            dict.insert(1, key, 0);
        }
        assert_eq!(dict.get(5, "read"), Some(&0));
        assert_eq!(dict.insert(5, "written", 1), Some(0));
        // Time does not run backwards.
        assert_eq!(dict.get(2, "read"), Some(&0));
        assert_eq!(dict.expire(10, usize::MAX, |_, _| ()), 0);
        dict.expire(12, usize::MAX, |_, _| ());
        dict.iter().map(|(k, _)| *k).collect()
    }

    #[test]
    fn each_mode_counts_from_its_own_touch() {
        assert!(left_at_12(ExpireOn::Create).is_empty());
        assert_eq!(left_at_12(ExpireOn::Read), ["read", "written"]);
        assert_eq!(left_at_12(ExpireOn::Write), ["written"]);
    }

    #[test]
    fn expires_in_bounded_steps_and_in_order() {
        let mut dict = ExpiringDict::new(ExpireOn::Create, 5);
        for i in 0..100_u64 {
            dict.insert(i, i, ());
        }
        assert_eq!(dict.next_expiry(), Some(5));
        let mut expired = Vec::new();
        assert_eq!(dict.expire(50, 10, |k, ()| expired.push(k)), 10);
        assert_eq!(dict.expire(99, usize::MAX, |k, ()| expired.push(k)), 85);
        assert!(expired.into_iter().eq(0..95));
        assert_eq!(dict.len(), 5);
    }
}
