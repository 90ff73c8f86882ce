//! Windows times (FILETIME) in SMB and NTLM ([MS-DTYP] section 2.3.3).

use gannet_base::Time;

/// Converts a time in units of 100 ns since 1601, rounded to the precision of a double in seconds,
/// to nanoseconds. Times beyond the range become the latest or earliest time.
pub(crate) fn time(filetime: u64) -> Time {
    let seconds = filetime as f64 / 10_000_000.0 - 11_644_473_600.0;
    let whole = seconds.floor();
    let nanos = ((seconds - whole) * 1e9).round() as i64;
    Time::from_nanos((whole as i64).saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_doubles() {
        assert_eq!(time(116_444_736_000_000_000), Time::ZERO);
        // At this magnitude, a double cannot represent half a microsecond.
        assert_eq!(time(133_326_029_513_714_975).as_nanos() % 1_000_000_000, 371_498_108);
        assert_eq!(time(0).as_nanos(), i64::MIN);
    }

    #[test]
    fn times_begin_in_1601() {
        assert_eq!(time(131_940_000_000_000_000), Time::from_secs(1_549_526_400));
        // At this magnitude, a double represents 0.2826538 s.
        let nanos = 1_584_367_250_282_653_809;
        assert_eq!(time(132_288_408_502_826_547), Time::from_nanos(nanos));
        assert!(time(0) < Time::ZERO && time(u64::MAX) > Time::from_secs(9_000_000_000));
    }
}
