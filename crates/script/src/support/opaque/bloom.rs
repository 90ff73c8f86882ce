//! Bloom filters.

use sha2::{Digest as _, Sha256};
use siphasher::sip::SipHasher24;

/// Maximum number of bits of a filter: 1 GiB.
const MAX_BITS: u64 = 1 << 33;

/// The seed of a filter's hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed([u64; 2]);

/// The seed of a filter: from its name, otherwise from `global_hash_seed`, otherwise from the first number of
/// the seeds.
#[must_use]
pub fn seed(name: &[u8], global_hash_seed: &[u8], first: u32) -> Seed {
    let first = first.to_le_bytes();
    let source = if !name.is_empty() {
        name
    } else if !global_hash_seed.is_empty() {
        global_hash_seed
    } else {
        &first
    };
    let digest = Sha256::digest(source);
    let (words, _) = digest.as_chunks::<8>();
    let word = |at: usize| words.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    Seed([word(0), word(1)])
}

/// The hash functions of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hasher {
    /// Double hashing: all functions are combinations of two.
    Double { k: u64, seed: Seed },
    /// A separate function for each index.
    Each { k: u64, seed: Seed },
}

impl Hasher {
    fn cells(&self, key: &[u8], cells: u64) -> Vec<usize> {
        let hash = |seed: Seed, add: u64| {
            SipHasher24::new_with_keys(seed.0[0].wrapping_add(add), seed.0[1]).hash(key)
        };
        let hashes: Vec<u64> = match *self {
            Hasher::Double { k, seed } => {
                let (first, second) = (hash(seed, lehmer(1)), hash(seed, lehmer(2)));
                (0..k).map(|i| first.wrapping_add(i.wrapping_mul(second))).collect()
            }
            Hasher::Each { k, seed } => (1..=k).map(|i| hash(seed, lehmer(i))).collect(),
        };
        hashes.iter().map(|hash| (hash % cells.max(1)) as usize).collect()
    }
}

/// The next number of the Lehmer random number generator.
fn lehmer(state: u64) -> u64 {
    state.wrapping_mul(16_807) % 0x7fff_ffff
}

/// A Bloom filter. Its answer may be a false positive, and its count may be too high.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloomFilter {
    hasher: Hasher,
    cells: u64,
    /// Bits of a counter; `None` for a filter without counters.
    width: Option<u32>,
    bits: Vec<u64>,
}

/// The reason why a filter cannot be created, in Zeek's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

impl BloomFilter {
    /// `bloomfilter_basic_init`: by false positive rate and capacity.
    ///
    /// # Errors
    ///
    /// If the rate is invalid, or for a filter of more than 1 GiB.
    pub fn basic(false_positives: f64, capacity: u64, seed: Seed) -> Result<Self, Refused> {
        if !(0.0..=1.0).contains(&false_positives) {
            return Err(Refused("false-positive rate must take value between 0 and 1"));
        }
        let ln2 = std::f64::consts::LN_2;
        let cells = (-(capacity as f64 * false_positives.ln() / ln2 / ln2)).ceil() as u64;
        let k = (cells as f64 / capacity as f64 * ln2).ceil() as u64;
        Self::new(Hasher::Double { k, seed }, cells, None)
    }

    /// `bloomfilter_basic_init2`: by the numbers of hash functions and cells.
    ///
    /// # Errors
    ///
    /// If one of them is zero, or for a filter of more than 1 GiB.
    pub fn basic_of_cells(k: u64, cells: u64, seed: Seed) -> Result<Self, Refused> {
        if k == 0 {
            return Err(Refused("number of hash functions must be non-negative"));
        }
        if cells == 0 {
            return Err(Refused("number of cells must be non-negative"));
        }
        Self::new(Hasher::Double { k, seed }, cells, None)
    }

    /// `bloomfilter_counting_init`: counts up to `max`.
    ///
    /// # Errors
    ///
    /// If `max` is zero, or for a filter of more than 1 GiB.
    pub fn counting(k: u64, cells: u64, max: u64, seed: Seed) -> Result<Self, Refused> {
        if max == 0 {
            return Err(Refused("max counter value must be greater than 0"));
        }
        Self::new(Hasher::Each { k, seed }, cells, Some(64 - max.leading_zeros()))
    }

    fn new(hasher: Hasher, cells: u64, width: Option<u32>) -> Result<Self, Refused> {
        let (Hasher::Double { k, .. } | Hasher::Each { k, .. }) = hasher;
        let bits = cells.saturating_mul(u64::from(width.unwrap_or(1)));
        if bits > MAX_BITS || k > 1 << 20 {
            return Err(Refused("Bloom filter too large"));
        }
        let bits = vec![0; bits.div_ceil(64) as usize];
        Ok(BloomFilter { hasher, cells, width, bits })
    }

    fn bit(&self, at: usize) -> bool {
        self.bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn set_bit(&mut self, at: usize, value: bool) {
        if let Some(word) = self.bits.get_mut(at / 64) {
            *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
        }
    }

    fn cell(&self, cell: usize, width: usize) -> u64 {
        (0..width).fold(0, |count, bit| count | u64::from(self.bit(cell * width + bit)) << bit)
    }

    fn set_cell(&mut self, cell: usize, width: usize, count: u64) {
        for bit in 0..width {
            self.set_bit(cell * width + bit, count >> bit & 1 == 1);
        }
    }

    fn max(width: usize) -> u64 {
        u64::MAX >> (64 - width.clamp(1, 64))
    }

    /// Adds a value by the bytes of its key.
    pub fn add(&mut self, key: &[u8]) {
        for cell in self.hasher.cells(key, self.cells) {
            match self.width {
                None => self.set_bit(cell, true),
                Some(width) => {
                    let width = width as usize;
                    let count = self.cell(cell, width);
                    self.set_cell(cell, width, count + u64::from(count < Self::max(width)));
                }
            }
        }
    }

    /// An upper bound of how often a value was added; 0 or 1 for a filter without counters.
    #[must_use]
    pub fn count(&self, key: &[u8]) -> u64 {
        let cells = self.hasher.cells(key, self.cells);
        match self.width {
            None => u64::from(self.cells > 0 && cells.iter().all(|cell| self.bit(*cell))),
            Some(width) => {
                cells.iter().map(|cell| self.cell(*cell, width as usize)).min().unwrap_or(u64::MAX)
            }
        }
    }

    /// Removes one occurrence of a value, if it may be present; returns whether it was.
    pub fn decrement(&mut self, key: &[u8]) -> bool {
        let Some(width) = self.width else { return false };
        if self.count(key) == 0 {
            return false;
        }
        let width = width as usize;
        for cell in self.hasher.cells(key, self.cells) {
            let count = self.cell(cell, width);
            self.set_cell(cell, width, count.wrapping_sub(1) & Self::max(width));
        }
        true
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.bits.fill(0);
    }

    /// Whether no value was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    fn kind(&self) -> &'static str {
        if self.width.is_some() { "CountingBloomFilter" } else { "BasicBloomFilter" }
    }

    fn compatible(&self, other: &Self, operation: &str) -> Result<(), String> {
        if self.hasher != other.hasher {
            return Err(format!("incompatible hashers in {} {operation}", self.kind()));
        }
        if self.cells != other.cells || self.width != other.width {
            return Err(format!("different bitvector size in {} {operation}", self.kind()));
        }
        Ok(())
    }

    /// The union of two filters.
    ///
    /// # Errors
    ///
    /// Zeek's message for filters with different parameters or of different kinds.
    pub fn merge(&self, other: &Self) -> Result<Self, String> {
        if self.width.is_some() != other.width.is_some() {
            return Err("cannot merge different Bloom filter types".to_owned());
        }
        self.compatible(other, "merge")?;
        let mut merged = self.clone();
        match self.width {
            None => merged.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a |= b),
            Some(width) => {
                let width = width as usize;
                for cell in 0..self.cells as usize {
                    let sum =
                        u128::from(self.cell(cell, width)) + u128::from(other.cell(cell, width));
                    merged.set_cell(cell, width, sum.min(u128::from(Self::max(width))) as u64);
                }
            }
        }
        Ok(merged)
    }

    /// A filter without counters for the intersection of two filters.
    ///
    /// # Errors
    ///
    /// Like [`merge`](Self::merge).
    pub fn intersect(&self, other: &Self) -> Result<Self, String> {
        if self.width.is_some() != other.width.is_some() {
            return Err("cannot intersect different Bloom filter types".to_owned());
        }
        let operation = if self.width.is_some() { "merge" } else { "intersect" };
        self.compatible(other, operation)?;
        let mut result = self.without_counts();
        let others = other.without_counts();
        result.bits.iter_mut().zip(&others.bits).for_each(|(a, b)| *a &= b);
        Ok(result)
    }

    /// The cells with a nonzero counter. Like Zeek, it examines only the second bit of a counter.
    fn without_counts(&self) -> Self {
        let Some(width) = self.width else { return self.clone() };
        let bits = vec![0; self.cells.div_ceil(64) as usize];
        let mut basic =
            BloomFilter { hasher: self.hasher.clone(), cells: self.cells, width: None, bits };
        for cell in 0..self.cells as usize {
            basic.set_bit(cell, self.bit(cell * width as usize + 1));
        }
        basic
    }

    /// `bloomfilter_internal_state`: a digest of the bits as a number.
    #[must_use]
    pub fn internal_state(&self) -> u64 {
        let mut sha = Sha256::new();
        for word in &self.bits {
            sha.update(word.to_le_bytes());
        }
        let digest = sha.finalize();
        digest.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
