//! Unique ids.

use std::collections::BTreeMap;

use super::Hashes;

/// Generates the unique ids of connections and files, and of `unique_id`.
///
/// Ids come from pools: [`CONNECTIONS`](Self::CONNECTIONS), [`SCRIPT`](Self::SCRIPT) (`unique_id`) and those of
/// `unique_id_from` ([`custom`](Self::custom)). With seeds, each pool yields the same ids on every run.
///
/// ```
/// use gannet_script::support::order::{Seeds, UidPools};
///
/// let seeds = Seeds::parse(include_bytes!("../../../tests/seed.txt")).unwrap();
/// let mut pools = UidPools::deterministic(seeds.hashes());
/// assert_ne!(pools.uid(UidPools::SCRIPT, b"C", 96), pools.uid(UidPools::SCRIPT, b"C", 96));
/// ```
#[derive(Clone, Debug)]
pub struct UidPools {
    hashes: Hashes,
    /// Random number of the run; `None` with seeds.
    instance: Option<u64>,
    counters: BTreeMap<u64, u64>,
}

impl UidPools {
    /// Connections, files, tunnels.
    pub const CONNECTIONS: u64 = 1;
    /// `unique_id`.
    pub const SCRIPT: u64 = 2;

    /// Pools whose ids depend only on the seeds.
    #[must_use]
    pub fn deterministic(hashes: Hashes) -> Self {
        UidPools { hashes, instance: None, counters: BTreeMap::new() }
    }

    /// Pools of one run; `instance` is a random number.
    #[must_use]
    pub fn of_instance(hashes: Hashes, instance: u64) -> Self {
        UidPools { hashes, instance: Some(instance), counters: BTreeMap::new() }
    }

    /// Whether the ids depend only on seeds.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.instance.is_none()
    }

    /// The pool of `unique_id_from(number, …)`. Invalid numbers yield the ids of connections.
    #[must_use]
    pub fn custom(number: i64) -> u64 {
        match u64::try_from(number.wrapping_add(10)) {
            Ok(pool @ 0..10_000) => pool,
            _ => Self::CONNECTIONS,
        }
    }

    /// The next 64 bits of a pool.
    pub fn next(&mut self, pool: u64) -> u64 {
        let counter = self.counters.entry(pool).or_default();
        *counter += 1;
        let instance = self.instance.map_or(pool, |instance| instance.wrapping_add(pool).max(1));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&instance.to_le_bytes());
        bytes[8..].copy_from_slice(&counter.to_le_bytes());
        self.hashes.key(bytes)
    }

    /// The next id of a pool: `prefix` followed by a number of `bits` bits (`bits_per_uid`, at most 128) in
    /// base 62.
    pub fn uid(&mut self, pool: u64, prefix: &[u8], bits: u64) -> Vec<u8> {
        let words = [bits > 0, bits > 64].map(|drawn| if drawn { self.next(pool) } else { 0 });
        uid_text(prefix, words, bits)
    }
}

/// The text of an id of `bits` bits with given words, for example those of a hash for file ids.
#[must_use]
pub fn uid_text(prefix: &[u8], mut words: [u64; 2], bits: u64) -> Vec<u8> {
    let odd = bits.min(128) % 64;
    if odd != 0 {
        words[0] >>= 64 - odd;
    }
    let mut text = prefix.to_vec();
    for word in words {
        base62(word, &mut text);
    }
    text
}

/// Appends a number in base 62, least significant digit first.
pub fn base62(mut number: u64, text: &mut Vec<u8>) {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    loop {
        text.push(DIGITS[(number % 62) as usize]);
        number /= 62;
        if number == 0 {
            return;
        }
    }
}
