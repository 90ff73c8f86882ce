//! Finite state entropy tables (RFC 8878 section 4.1): their descriptions and construction.

use super::Damage;
use super::bits::Forward;

/// Maximum number of symbols of any alphabet, that of match length codes.
pub(super) const SYMBOLS: usize = 53;

/// Table size with which symbol indexes need no bounds check.
pub(super) const TABLE_SIZE: usize = SYMBOLS.next_power_of_two();

/// Number of states of the largest table.
pub(super) const STATES: usize = 1 << 9;

/// Number of states of each symbol; -1 means one state that reads all state bits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The table has 2 to the power of `log` states.
    pub(super) log: u32,
    counts: [i16; SYMBOLS],
    symbols: usize,
}

impl Counts {
    /// Predefined counts of an alphabet, whose sum is known to be correct.
    pub(super) const fn known<const N: usize>(log: u32, of: [i16; N]) -> Self {
        let mut counts = [0; SYMBOLS];
        let mut at = 0;
        while at < N {
            counts[at] = of[at];
            at += 1;
        }
        Self { log, counts, symbols: N }
    }

    /// Reads a description (section 4.1.1); also returns its length.
    pub(super) fn read(
        bytes: &[u8],
        max_log: u32,
        max_symbols: usize,
    ) -> Result<(Self, usize), Damage> {
        let mut bits = Forward::new(bytes);
        let log = (bits.peek() & 15) + 5;
        bits.take(4);
        if log > max_log {
            return Err(Damage::Counts);
        }
        let mut counts = [0_i16; SYMBOLS];
        let mut symbols = 0;
        let mut left = 1_i32 << log;
        while left > 0 {
            let Some(count) = counts.get_mut(symbols).filter(|_| symbols < max_symbols) else {
                return Err(Damage::Counts);
            };
            // For values up to `left + 1`, the lower ones take one bit less.
            let wide = 32 - (left as u32 + 1).leading_zeros();
            let half = 1 << (wide - 1);
            let short = (half << 1) - 1 - (left + 1);
            let seen = bits.peek() as i32;
            let low = seen & (half - 1);
            let value = if low < short {
                bits.take(wide - 1);
                low
            } else {
                bits.take(wide);
                let all = seen & ((half << 1) - 1);
                if all < half { all } else { all - short }
            };
            *count = value as i16 - 1;
            left -= (value - 1).abs();
            symbols += 1;
            if value == 1 {
                loop {
                    let more = bits.peek() & 3;
                    bits.take(2);
                    symbols += more as usize;
                    if symbols >= max_symbols {
                        return Err(Damage::Counts);
                    }
                    if more < 3 {
                        break;
                    }
                }
            }
        }
        if left < 0 {
            return Err(Damage::Counts);
        }
        Ok((Self { log, counts, symbols }, bits.used()?))
    }

    /// Calls `state` with each state of the table: its index, its symbol, the number of bits to
    /// read after it, and the base of the next state.
    #[inline(always)]
    pub(super) fn build(&self, mut state: impl FnMut(usize, u8, u32, u32)) {
        let size = 1_usize << self.log;
        let mut symbols = [0_u8; STATES];
        let mut next = [0_u16; TABLE_SIZE];
        let mut high = size;
        let counts = self.counts.iter().zip(&mut next).take(self.symbols);
        for (symbol, (&count, next)) in counts.enumerate() {
            *next = count.unsigned_abs();
            if count == -1 {
                high -= 1;
                symbols[high % STATES] = symbol as u8;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in self.counts.iter().enumerate().take(self.symbols) {
            for _ in 0..count {
                symbols[at % STATES] = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for (number, &symbol) in symbols.iter().enumerate().take(size) {
            let next = &mut next[usize::from(symbol) % TABLE_SIZE];
            let of = u32::from(*next);
            *next += 1;
            // A symbol with a state has a count, so this is not 0.
            let bits = self.log - (of | 1).ilog2();
            state(number, symbol, bits, (of << bits) - size as u32);
        }
    }
}
