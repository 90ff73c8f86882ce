use std::ops::Add;
use std::ops::AddAssign;
use std::ops::Sub;

/// A point in time in nanoseconds since 1970-01-01T00:00:00Z: packet time, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(i64);

/// A signed span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval(i64);

impl Time {
    /// 1970-01-01T00:00:00Z.
    pub const ZERO: Self = Self(0);
    /// Later than any packet: the due time of a timer that never fires.
    pub const MAX: Self = Self(i64::MAX);
    /// The earliest time.
    pub const MIN: Self = Self(i64::MIN);

    /// From nanoseconds since the epoch.
    #[inline]
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// From whole seconds since the epoch; saturates.
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// From seconds since the epoch as a double; saturates, NaN is 0.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as i64)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The time since `earlier`, with both truncated to whole microseconds, the usual precision of captures; zero if
    /// both are within the same microsecond.
    #[inline]
    pub const fn micros_since(self, earlier: Self) -> Interval {
        let micros = self.0.div_euclid(1_000) - earlier.0.div_euclid(1_000);
        Interval(micros.saturating_mul(1_000))
    }

    /// Seconds since the epoch, as the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        // Adding whole seconds and the fraction yields the nearest double.
        self.0.div_euclid(1_000_000_000) as f64 + self.0.rem_euclid(1_000_000_000) as f64 / 1e9
    }
}

impl Interval {
    /// The empty interval.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// From microseconds; saturates.
    pub const fn from_micros(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// From milliseconds; saturates.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// From whole seconds; saturates.
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// From seconds as a double; saturates, NaN is 0.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as i64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Seconds, as the nearest double.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Interval> for Time {
    type Output = Self;
    fn add(self, d: Interval) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Interval> for Time {
    fn add_assign(&mut self, d: Interval) {
        *self = *self + d;
    }
}

impl Sub<Interval> for Time {
    type Output = Self;
    fn sub(self, d: Interval) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

impl Sub for Time {
    type Output = Interval;
    fn sub(self, earlier: Self) -> Interval {
        Interval(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_keep_microseconds() {
        let t = Time::from_nanos(1_300_475_167_096_535_000);
        assert_eq!(t.as_secs_f64(), 1_300_475_167.096_535);
        assert!((Time::from_nanos(-1).as_secs_f64() + 1e-9).abs() < 1e-15);
    }

    #[test]
    fn whole_microseconds_of_both() {
        let since = |a, b| Time::from_nanos(a).micros_since(Time::from_nanos(b)).as_nanos();
        assert_eq!([since(1_999, 1_000), since(2_000, 1_999), since(-1, 0)], [0, 1_000, -1_000]);
        assert_eq!(Time::MAX.micros_since(Time::from_nanos(i64::MIN)).as_nanos(), i64::MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::MAX + Interval::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO - Time::MAX, Interval::from_nanos(-i64::MAX));
    }
}
