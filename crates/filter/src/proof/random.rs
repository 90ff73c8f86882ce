//! Pseudo-random numbers from a seed.

/// SplitMix64: the same numbers from the same seed everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below another; zero if that is zero.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// True once in `n` times on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several.
    ///
    /// # Panics
    /// If the slice is empty.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Any number, with more weight for boundary values.
    pub fn number(&mut self) -> u32 {
        match self.below(8) {
            0 => 0,
            1 => 1 << self.below(32),
            2 => (1_u32 << self.below(32)).wrapping_sub(1),
            3 => u32::MAX - self.below(4) as u32,
            4 => self.below(256) as u32,
            5 => self.below(65_536) as u32,
            6 => self.below(16) as u32,
            _ => self.bits() as u32,
        }
    }
}
