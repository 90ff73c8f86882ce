//! Bit readers: table descriptions are read forwards, entropy-coded data backwards.

use super::Damage;

/// Reader of the bits of a description, the lowest of each byte first.
#[derive(Debug)]
pub(super) struct Forward<'a> {
    bytes: &'a [u8],
    /// Bits consumed.
    at: usize,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next 16 bits without consuming them; zeros beyond the end.
    pub(super) fn peek(&self) -> u32 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<4>() {
            Some(four) => u32::from_le_bytes(*four),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)),
        };
        word >> (self.at % 8) & 0xffff
    }

    pub(super) fn take(&mut self, n: u32) {
        self.at += n as usize;
    }

    /// Number of bytes consumed, the last perhaps in part.
    pub(super) fn used(&self) -> Result<usize, Damage> {
        let used = self.at.div_ceil(8);
        if used > self.bytes.len() { Err(Damage::Truncated) } else { Ok(used) }
    }
}

/// Number of bits below the end mark in the last byte of a backward stream.
pub(super) fn below_mark(bytes: &[u8]) -> Result<i64, Damage> {
    match bytes.last() {
        None => Err(Damage::Truncated),
        Some(0) => Err(Damage::Mark),
        Some(last) => Ok(bytes.len() as i64 * 8 - 1 - i64::from(last.leading_zeros())),
    }
}

/// Reader of the bits of a stream, the last one first, for streams so short that speed does not
/// matter.
#[derive(Debug)]
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Remaining bits; negative once more were consumed than available.
    pub(super) left: i64,
}

impl<'a> Backward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Damage> {
        Ok(Self { bytes, left: below_mark(bytes)? })
    }

    /// The next `n` bits, up to 16; zeros before the beginning.
    pub(super) fn take(&mut self, n: u32) -> u32 {
        self.left -= i64::from(n);
        let at = self.left >> 3;
        let there = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)?.first_chunk());
        let bits = match there {
            Some(four) => u32::from_le_bytes(*four),
            // At the end, and before the beginning.
            None => (0..3).fold(0, |bits, i| {
                let byte = usize::try_from(at + i).ok().and_then(|at| self.bytes.get(at));
                bits | byte.map_or(0, |&byte| u32::from(byte)) << (8 * i)
            }),
        };
        bits >> (self.left & 7) & ((1 << n) - 1)
    }
}
