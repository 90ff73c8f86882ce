//! Names that are unique with high probability.

use std::collections::BTreeMap;

use super::Hashes;

/// Makes the unique ids of connections, files and `unique_id`.
///
/// Ids come from pools: [`CONNECTIONS`](Self::CONNECTIONS), [`SCRIPT`](Self::SCRIPT) (`unique_id`) and those of `unique_id_from`
/// ([`custom`](Self::custom)). Under seeds each pool yields the same ids on every run.
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
    /// The instance where no seeds were given.
    instance: Option<u64>,
    counters: BTreeMap<u64, u64>,
}

impl UidPools {
    /// Connections, files, tunnels.
    pub const CONNECTIONS: u64 = 1;
    /// `unique_id`.
    pub const SCRIPT: u64 = 2;

    /// Pools whose ids follow from the seeds alone.
    #[must_use]
    pub fn deterministic(hashes: Hashes) -> Self {
        UidPools { hashes, instance: None, counters: BTreeMap::new() }
    }

    /// Pools of one run; `instance` is random.
    #[must_use]
    pub fn of_instance(hashes: Hashes, instance: u64) -> Self {
        UidPools { hashes, instance: Some(instance), counters: BTreeMap::new() }
    }

    /// Whether the ids follow from seeds alone.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.instance.is_none()
    }

    /// The pool of `unique_id_from(number, …)`. Numbers that are no pool's yield the ids of connections.
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

    /// The next id of a pool: `prefix` and `bits` (`bits_per_uid`, at most 128) in base 62.
    pub fn uid(&mut self, pool: u64, prefix: &[u8], bits: u64) -> Vec<u8> {
        let words = [bits > 0, bits > 64].map(|drawn| if drawn { self.next(pool) } else { 0 });
        uid_text(prefix, words, bits)
    }
}

/// The text of an id of `bits` whose words were taken from elsewhere, as those of files are from a hash.
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

/// Appends a number in base 62, the least significant digit first.
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
