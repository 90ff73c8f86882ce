//! Time units of pcapng interfaces.

/// Converts an interface's ticks to nanoseconds since the epoch, by its `if_tsresol` and
/// `if_tsoffset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    unit: Unit,
    /// Offset to add, in nanoseconds.
    offset: i64,
    digits: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds per tick.
    Times(u64),
    /// Ticks per nanosecond.
    Part(u64),
    /// Binary exponent: this power of two ticks are a second.
    Shift(u32),
    /// Too fine: 64 bits of ticks are always less than a nanosecond.
    Zero,
}

impl Ticks {
    /// From the option's byte (a power of ten, or of two if the top bit is set) and the offset in
    /// seconds.
    pub(crate) fn new(resolution: u8, offset_secs: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let (unit, digits) = if resolution & 0x80 == 0 {
            let unit = if exponent <= 9 {
                Unit::Times(10_u64.pow(9 - exponent))
            } else {
                10_u64.checked_pow(exponent - 9).map_or(Unit::Zero, Unit::Part)
            };
            (unit, exponent)
        } else {
            // log10(2) = 0.30103.
            (Unit::Shift(exponent), (exponent * 30_103).div_ceil(100_000))
        };
        let offset = offset_secs.saturating_mul(1_000_000_000);
        Self { unit, offset, digits: digits.min(255) as u8 }
    }

    /// Converts ticks to nanoseconds since the epoch; saturates.
    #[inline]
    pub(crate) fn nanos(self, ticks: u64) -> i64 {
        let nanos = match self.unit {
            Unit::Times(n) => ticks.saturating_mul(n),
            Unit::Part(n) => ticks / n,
            // The product of 64 bits of ticks and 30 bits fits.
            Unit::Shift(n) => {
                let ns = (u128::from(ticks) * 1_000_000_000) >> n.min(127);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
            Unit::Zero => 0,
        };
        i64::try_from(nanos).unwrap_or(i64::MAX).saturating_add(self.offset)
    }

    /// Number of decimal digits of a second that a tick resolves.
    pub(crate) fn digits(self) -> u8 {
        self.digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten() {
        assert_eq!(Ticks::new(6, 0).nanos(1_500_000), 1_500_000_000);
        assert_eq!(Ticks::new(9, 2).nanos(7), 2_000_000_007);
        assert_eq!(Ticks::new(0, -1).nanos(3), 2_000_000_000);
        assert_eq!(Ticks::new(12, 0).nanos(1_999), 1);
        assert_eq!(Ticks::new(28, 0).nanos(u64::MAX), 1);
        assert_eq!(Ticks::new(127, 0).nanos(u64::MAX), 0);
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(Ticks::new(0x80 | 10, 0).nanos(1536), 1_500_000_000);
        assert_eq!(Ticks::new(0x80 | 32, 0).nanos(5 << 31), 2_500_000_000);
        assert_eq!(Ticks::new(0xff, 0).nanos(u64::MAX), 0);
        assert_eq!(Ticks::new(0x80 | 20, 0).digits(), 7);
    }

    #[test]
    fn nothing_overflows() {
        for r in 0..=255 {
            for offset in [i64::MIN, -1, 0, i64::MAX] {
                let t = Ticks::new(r, offset);
                assert!(t.nanos(u64::MAX) >= t.nanos(0));
            }
        }
    }
}
