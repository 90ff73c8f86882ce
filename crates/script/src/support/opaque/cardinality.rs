//! Estimation of the number of distinct values: `HyperLogLog` with 64-bit hashes.

/// A HyperLogLog counter. Values are added by the hash of their key
/// ([`Hashes::key`](crate::support::order::Hashes::key)).
#[derive(Clone, Debug, PartialEq)]
pub struct Cardinality {
    bits: u32,
    alpha: f64,
    buckets: Vec<u8>,
}

/// Base-2 logarithm of the number of buckets: from 16 to 16 million buckets.
const BITS: std::ops::RangeInclusive<u32> = 4..=24;

impl Cardinality {
    /// A counter with relative error at most `error` at this confidence. `None` if that requires fewer than 16
    /// or more than 16 million buckets.
    #[must_use]
    pub fn new(error: f64, confidence: f64) -> Option<Self> {
        let estimate = 2.0 * (1.04_f64.ln() - error.ln()) / std::f64::consts::LN_2;
        if !estimate.is_finite() || estimate < 0.0 || confidence.is_nan() {
            return None;
        }
        let mut bits = estimate.floor() as u32;
        loop {
            bits += 1;
            // Number of standard deviations for the confidence.
            let deviations = 2_f64.powf((f64::from(bits) - estimate) / 2.0);
            if bits > *BITS.end() || erf(deviations / std::f64::consts::SQRT_2) >= confidence {
                break;
            }
        }
        if !BITS.contains(&bits) {
            return None;
        }
        let count = 1_usize << bits;
        let alpha = match count {
            16 => 0.673,
            32 => 0.697,
            64 => 0.709,
            _ => 0.7213 / (1.0 + 1.079 / count as f64),
        };
        Some(Cardinality { bits, alpha, buckets: vec![0; count] })
    }

    /// Adds a value.
    pub fn add(&mut self, hash: u64) {
        let index = (hash as usize) & (self.buckets.len() - 1);
        let rank = (hash >> self.bits).leading_zeros() - self.bits + 1;
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket = (*bucket).max(rank as u8);
        }
    }

    /// The estimated number of distinct values.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        let count = self.buckets.len() as f64;
        let sum: f64 = self.buckets.iter().map(|rank| 2_f64.powi(-i32::from(*rank))).sum();
        let estimate = self.alpha * count * count * (1.0 / sum);
        let range = 2_f64.powi(64);
        if estimate <= 5.0 * (count / 2.0) {
            let empty = self.buckets.iter().filter(|rank| **rank == 0).count();
            count * (count / empty as f64).ln()
        } else if estimate <= range / 30.0 {
            estimate
        } else {
            -range * (1.0 - estimate / range).ln()
        }
    }

    /// Adds the values of another counter; returns false if its parameters differ ("Cardinality counters with
    /// different parameters cannot be merged").
    pub fn merge(&mut self, other: &Self) -> bool {
        if self.buckets.len() != other.buckets.len() {
            return false;
        }
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(a, b)| *a = (*a).max(*b));
        true
    }
}

/// The error function of nonnegative numbers.
fn erf(x: f64) -> f64 {
    if x > 6.0 {
        return 1.0;
    }
    // All terms are positive, so there is no cancellation.
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term > sum * 1e-17 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    (2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum).min(1.0)
}
