//! Split-block Bloom filters of Parquet: a filter consists of blocks of 256 bits, and each value sets eight bits in one
//! block.

use parquet::bloom_filter::Sbbf;

/// Probability that a filter reports a value that was not inserted.
const FALSE_POSITIVE_RATE: f64 = 0.01;
/// Minimum and maximum size of a filter, in bytes.
const MIN_MAX_BYTES: [usize; 2] = [32, 128 << 20];
/// Number of 32-bit words in a block; two of them are stored as one `u64`.
const WORDS: usize = 8;
type Block = [u64; WORDS / 2];

/// A filter under construction.
pub(super) struct Filter {
    blocks: Vec<Block>,
}

impl Filter {
    /// An empty filter for `values` distinct values.
    pub(super) fn new(values: usize) -> Self {
        let bits = -8.0 * values as f64 / (1.0 - FALSE_POSITIVE_RATE.powf(1.0 / 8.0)).ln();
        let [min, max] = MIN_MAX_BYTES;
        let bytes = (bits as usize / 8).clamp(min, max).next_power_of_two();
        Self { blocks: vec![[0; WORDS / 2]; bytes / size_of::<Block>()] }
    }

    /// Inserts a value.
    #[inline]
    pub(super) fn insert(&mut self, value: &[u8]) {
        /// Multipliers from Parquet's specification: each selects the bit of one word.
        const SALT: [u32; WORDS] = [
            0x47b6_137b,
            0x4497_4d91,
            0x8824_ad5b,
            0xa2b7_289d,
            0x7054_95c7,
            0x2df1_424b,
            0x9efc_4947,
            0x5c6b_fb31,
        ];
        let hash = hash(value);
        let block = ((hash >> 32) * self.blocks.len() as u64) >> 32;
        let Some(block) = self.blocks.get_mut(block as usize) else { return };
        let bit = |salt: u32| (hash as u32).wrapping_mul(salt) >> 27;
        for (words, [low, high]) in block.iter_mut().zip(SALT.as_chunks().0) {
            *words |= 1 << bit(*low) | 1 << 32 << bit(*high);
        }
    }

    /// Returns the filter in the representation of the `parquet` crate.
    pub(super) fn finish(self) -> Sbbf {
        let bytes: Vec<u8> = self.blocks.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
        Sbbf::new(&bytes)
    }
}

const P1: u64 = 0x9e37_79b1_85eb_ca87;
const P2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P3: u64 = 0x1656_67b1_9e37_79f9;
const P4: u64 = 0x85eb_ca77_c2b2_ae63;
const P5: u64 = 0x27d4_eb2f_1656_67c5;

/// XXH64 with seed 0.
#[inline]
fn hash(value: &[u8]) -> u64 {
    let (stripes, rest) = value.as_chunks::<32>();
    let mut h = if stripes.is_empty() { P5 } else { stripes_hash(stripes) };
    h = h.wrapping_add(value.len() as u64);
    let (words, rest) = rest.as_chunks::<8>();
    for word in words {
        h = (h ^ round(0, u64::from_le_bytes(*word))).rotate_left(27);
        h = h.wrapping_mul(P1).wrapping_add(P4);
    }
    let (halves, rest) = rest.as_chunks::<4>();
    for half in halves {
        let half = u64::from(u32::from_le_bytes(*half));
        h = (h ^ half.wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
    }
    for byte in rest {
        h = (h ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    h = (h ^ h >> 33).wrapping_mul(P2);
    h = (h ^ h >> 29).wrapping_mul(P3);
    h ^ h >> 32
}

#[inline]
fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

/// The hash state after the 32-byte stripes of a value.
#[cold]
#[inline(never)]
fn stripes_hash(stripes: &[[u8; 32]]) -> u64 {
    let mut lanes = [P1.wrapping_add(P2), P2, 0, 0_u64.wrapping_sub(P1)];
    for stripe in stripes {
        for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let [a, b, c, d] = lanes;
    let start = a.rotate_left(1).wrapping_add(b.rotate_left(7));
    let start = start.wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18));
    lanes.iter().fold(start, |h, lane| (h ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_equal_those_of_the_parquet_crate() {
        let values: Vec<Vec<u8>> =
            (0..300_u32).map(|n| (0..n).map(|at| (at * 7 + n) as u8).collect()).collect();
        let mut filter = Filter::new(values.len());
        let mut other = Sbbf::new_with_ndv_fpp(values.len() as u64, FALSE_POSITIVE_RATE).unwrap();
        for value in &values {
            filter.insert(value);
            other.insert(value.as_slice());
        }
        let bytes = |filter: &Sbbf| {
            let mut bytes = Vec::new();
            filter.write(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(bytes(&filter.finish()), bytes(&other));
    }
}
