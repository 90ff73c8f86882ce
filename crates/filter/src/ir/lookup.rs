//! Set lookups of native code: by a bitmap, a hash table, a prefix table or bisection.

use std::collections::HashSet;

use super::set::{Set, Set6};

/// Sets with fewer ranges are compared one by one.
const FEW: usize = 8;
/// Size of bitmaps in bits, one for each 16-bit number.
const BITMAP_BITS: u32 = 1 << 16;

/// A set of 32-bit numbers in a layout for lookups.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// A few ranges, both ends included.
    Few(Vec<(u32, u32)>),
    /// A bit for each number below 65,536: word `n / 64`, bit `n % 64`. No larger number is in the
    /// set.
    Bitmap(Box<[u64]>),
    /// Single numbers only.
    Hash(HashSet<u32, foldhash::fast::FixedState>),
    /// Ranges by the upper 16 bits `n` of the number: `starts[n]` to `starts[n + 1]` of `ranges`
    /// apply.
    Prefix {
        /// 65,537 indices into `ranges`.
        starts: Box<[u32]>,
        /// Ranges with both ends included, sorted, split where the upper 16 bits change.
        ranges: Box<[(u32, u32)]>,
    },
}

impl Lookup {
    /// Chooses the layout for a set.
    pub fn new(set: &Set) -> Self {
        let ranges = set.ranges();
        if ranges.len() <= FEW {
            return Self::Few(ranges.to_vec());
        }
        if set.hull().is_some_and(|(_, high)| high < BITMAP_BITS) {
            let mut words = vec![0_u64; BITMAP_BITS as usize / 64].into_boxed_slice();
            for (low, high) in ranges {
                for n in *low..=*high {
                    words[n as usize / 64] |= 1 << (n % 64);
                }
            }
            return Self::Bitmap(words);
        }
        if ranges.iter().all(|(low, high)| low == high) {
            return Self::Hash(ranges.iter().map(|(n, _)| *n).collect());
        }
        let mut cut = Vec::with_capacity(ranges.len());
        for &(low, high) in ranges {
            let mut at = low;
            loop {
                let end = high.min(at | 0xffff);
                cut.push((at, end));
                match end.checked_add(1) {
                    Some(next) if end < high => at = next,
                    _ => break,
                }
            }
        }
        let mut starts = Vec::with_capacity(BITMAP_BITS as usize + 1);
        let mut i = 0;
        for upper in 0..BITMAP_BITS {
            starts.push(i as u32);
            while cut.get(i).is_some_and(|(low, _)| low >> 16 == upper) {
                i += 1;
            }
        }
        starts.push(i as u32);
        Self::Prefix { starts: starts.into(), ranges: cut.into() }
    }

    /// Whether a number is in the set.
    pub fn contains(&self, n: u32) -> bool {
        match self {
            Self::Few(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&n)),
            Self::Bitmap(words) => {
                words.get(n as usize / 64).is_some_and(|w| w >> (n % 64) & 1 != 0)
            }
            Self::Hash(all) => all.contains(&n),
            Self::Prefix { starts, ranges } => {
                let upper = (n >> 16) as usize;
                let here = &ranges[starts[upper] as usize..starts[upper + 1] as usize];
                let behind = here.partition_point(|(low, _)| *low <= n);
                behind.checked_sub(1).is_some_and(|i| here[i].1 >= n)
            }
        }
    }
}

/// A set of IPv6 addresses in a layout for lookups.
#[derive(Clone, Debug)]
pub enum Lookup6 {
    /// Single addresses only.
    Hash(HashSet<u128, foldhash::fast::FixedState>),
    /// Ranges, both ends included and sorted, for bisection.
    Sorted(Box<[(u128, u128)]>),
}

impl Lookup6 {
    /// Chooses the layout for a set.
    pub fn new(set: &Set6) -> Self {
        let ranges = set.ranges();
        if ranges.len() > FEW && ranges.iter().all(|(low, high)| low == high) {
            return Self::Hash(ranges.iter().map(|(n, _)| *n).collect());
        }
        Self::Sorted(ranges.into())
    }

    /// Whether an address is in the set.
    pub fn contains(&self, n: u128) -> bool {
        match self {
            Self::Hash(all) => all.contains(&n),
            Self::Sorted(ranges) => {
                let behind = ranges.partition_point(|(low, _)| *low <= n);
                behind.checked_sub(1).is_some_and(|i| ranges[i].1 >= n)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layouts_suit_their_sets() {
        assert!(matches!(Lookup::new(&Set::one(1)), Lookup::Few(_)));
        let ports = Set::new((0..100).map(|n| (n * 7, n * 7)).collect());
        assert!(matches!(Lookup::new(&ports), Lookup::Bitmap(_)));
        let hosts = Set::new((0..100).map(|n| (n << 20, n << 20)).collect());
        assert!(matches!(Lookup::new(&hosts), Lookup::Hash(_)));
        let nets = Set::new((0..100).map(|n| (n << 20, n << 20 | 0xff)).collect());
        assert!(matches!(Lookup::new(&nets), Lookup::Prefix { .. }));
        assert!(Lookup::new(&nets).contains(5 << 20 | 9));
    }

    proptest! {
        #[test]
        fn layouts_agree_with_the_set(
            ranges in prop::collection::vec((any::<u32>(), 0u32..0x3_0000), 0..40),
            probes in prop::collection::vec(any::<u32>(), 0..40),
            shift in 0u32..17,
        ) {
            let ranges: Vec<_> =
                ranges.iter().map(|(l, n)| (l >> shift, (l >> shift).saturating_add(*n))).collect();
            let set = Set::new(ranges.clone());
            let lookup = Lookup::new(&set);
            let edges = ranges.iter().flat_map(|(l, h)| [l.wrapping_sub(1), *l, *h, h.wrapping_add(1)]);
            for n in probes.into_iter().chain(edges) {
                prop_assert_eq!(lookup.contains(n), set.contains(n));
            }
        }
    }
}
