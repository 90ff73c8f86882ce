//! Sets of numbers as ranges: ports, addresses, prefixes.

use std::fmt;

/// An element type of sets: `u32`, or `u128` for IPv6.
pub trait Word: Copy + Ord + fmt::Debug + fmt::LowerHex + std::hash::Hash {
    /// The smallest value.
    const MIN: Self;
    /// The largest value.
    const MAX: Self;
    /// The successor, if there is one.
    fn after(self) -> Option<Self>;
    /// The predecessor, if there is one.
    fn before(self) -> Option<Self>;
}

impl Word for u32 {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    fn after(self) -> Option<Self> {
        self.checked_add(1)
    }
    fn before(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

impl Word for u128 {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    fn after(self) -> Option<Self> {
        self.checked_add(1)
    }
    fn before(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

/// A set as ranges, both ends included: sorted, and with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ranges<T> {
    ranges: Vec<(T, T)>,
}

/// A set of 32-bit values of the packet.
pub type Set = Ranges<u32>;
/// A set of IPv6 addresses.
pub type Set6 = Ranges<u128>;

impl<T: Word> Ranges<T> {
    /// The union of ranges in any order; a range that ends before it begins is empty.
    pub fn new(mut ranges: Vec<(T, T)>) -> Self {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut used = 0_usize;
        for i in 0..ranges.len() {
            let (low, high) = ranges[i];
            let last = used.checked_sub(1).map(|l| ranges[l]);
            match last {
                Some((start, end)) if end >= low || end.after() == Some(low) => {
                    ranges[used - 1] = (start, end.max(high));
                }
                _ => {
                    ranges[used] = (low, high);
                    used += 1;
                }
            }
        }
        ranges.truncate(used);
        Self { ranges }
    }

    /// One number.
    pub fn one(value: T) -> Self {
        Self { ranges: vec![(value, value)] }
    }

    /// Everything between two numbers.
    pub fn between(low: T, high: T) -> Self {
        Self::new(vec![(low, high)])
    }

    /// The ranges in order.
    pub fn ranges(&self) -> &[(T, T)] {
        &self.ranges
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a number is in the set.
    pub fn contains(&self, value: T) -> bool {
        let behind = self.ranges.partition_point(|(low, _)| *low <= value);
        behind.checked_sub(1).is_some_and(|i| self.ranges[i].1 >= value)
    }

    /// The union.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges.iter().chain(&other.ranges).copied().collect())
    }

    /// The intersection.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut i, mut j, mut out) = (0, 0, Vec::new());
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low <= high {
                out.push((low, high));
            }
            if a.1 < b.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        Self { ranges: out }
    }

    /// The complement.
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = Some(T::MIN);
        for (low, high) in &self.ranges {
            if let (Some(start), Some(end)) = (next, low.before())
                && start <= end
            {
                out.push((start, end));
            }
            next = high.after();
        }
        if let Some(start) = next {
            out.push((start, T::MAX));
        }
        Self { ranges: out }
    }

    /// The only element, if there is exactly one.
    pub fn single(&self) -> Option<T> {
        match self.ranges[..] {
            [(low, high)] if low == high => Some(low),
            _ => None,
        }
    }

    /// The smallest and the largest element.
    pub fn hull(&self) -> Option<(T, T)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }
}

impl<T: Word> fmt::Display for Ranges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer sets are abbreviated in listings.
        const SHOWN: usize = 8;
        f.write_str("{")?;
        for (i, (low, high)) in self.ranges.iter().take(SHOWN).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            if low == high {
                write!(f, "{comma}{low:#x}")?;
            } else {
                write!(f, "{comma}{low:#x}-{high:#x}")?;
            }
        }
        match self.ranges.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, ", and {more} more}}"),
            _ => f.write_str("}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_become_one_range() {
        let set = Set::new(vec![(5, 6), (1, 2), (3, 3), (9, 8), (10, u32::MAX)]);
        assert_eq!(set.ranges(), [(1, 3), (5, 6), (10, u32::MAX)]);
        assert_eq!(set.complement().ranges(), [(0, 0), (4, 4), (7, 9)]);
        assert_eq!(Set::default().complement().ranges(), [(0, u32::MAX)]);
        assert_eq!(Set::one(3).single(), Some(3));
        assert_eq!(set.to_string(), "{0x1-0x3, 0x5-0x6, 0xa-0xffffffff}");
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(
            a in prop::collection::vec((0u32..64, 0u32..64), 0..8),
            b in prop::collection::vec((0u32..64, 0u32..64), 0..8),
        ) {
            let (a, b) = (Set::new(a), Set::new(b));
            for v in (0..70).chain([u32::MAX]) {
                let (in_a, in_b) = (a.contains(v), b.contains(v));
                prop_assert_eq!(a.union(&b).contains(v), in_a || in_b);
                prop_assert_eq!(a.intersection(&b).contains(v), in_a && in_b);
                prop_assert_eq!(a.complement().contains(v), !in_a);
            }
        }
    }
}
