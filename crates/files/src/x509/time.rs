//! Times of certificates (RFC 5280 section 4.1.2.5), parsed as leniently as in Zeek.

use super::Weird;
use crate::der::{Element, tag};

/// A UTCTime or GeneralizedTime in seconds since 1970, or the weird of an invalid one.
///
/// Digits are not checked, and a month or hour beyond its range carries over to the next field, so
/// that even invalid times have the value that Zeek logs. As in Zeek, an offset from UTC is `10 ×
/// h₁ + 60 × h₂ + 10 × m₁ + m₂` seconds.
pub(crate) fn unix_seconds(time: &Element<'_>, octets: &[u8]) -> Result<i64, Weird> {
    let mut digits = [b'0'; 14];
    let (date, rest) = match time.tag {
        tag::UTC_TIME => {
            if !(11..=17).contains(&octets.len()) {
                return Err(Weird::UtcLength);
            }
            if octets.last() != Some(&b'Z') {
                return Err(Weird::UtcFormat);
            }
            let century = if octets[0] < b'5' { b"20" } else { b"19" };
            digits[..2].copy_from_slice(century);
            digits[2..12].copy_from_slice(&octets[..10]);
            (12, &octets[10..])
        }
        tag::GENERALIZED_TIME => {
            if !(12..=23).contains(&octets.len()) {
                return Err(Weird::GeneralizedLength);
            }
            digits[..12].copy_from_slice(&octets[..12]);
            (12, &octets[12..])
        }
        _ => return Err(Weird::TimeType),
    };
    let mut rest = rest;
    match rest {
        [] | [b'Z' | b'-' | b'+', ..] => {}
        [tens, ones, after @ ..] => {
            digits[date] = *tens;
            digits[date + 1] = *ones;
            rest = after;
            if let [b'.', fraction @ ..] = rest {
                let end = fraction
                    .iter()
                    .position(|byte| !byte.is_ascii_digit())
                    .unwrap_or(fraction.len());
                rest = &fraction[end..];
            }
        }
        [_] => return Err(Weird::TimeSeconds),
    }
    let offset = match rest {
        [] | [b'Z', ..] => 0,
        [sign, h1, h2, m1, m2, ..] => {
            let digit = |byte: u8| i64::from(byte) - i64::from(b'0');
            let offset = digit(*h1) * 10 + digit(*h2) * 60 + digit(*m1) * 10 + digit(*m2);
            match sign {
                b'+' => offset,
                b'-' => -offset,
                _ => return Err(Weird::TimeOffsetType),
            }
        }
        _ => return Err(Weird::TimeOffsetShort),
    };
    let seconds = calendar_seconds(&digits);
    Ok(if seconds == 0 { 0 } else { seconds + offset })
}

/// Converts `YYYYMMDDhhmmss` to seconds since 1970; each field carries over to the next one.
fn calendar_seconds(digits: &[u8; 14]) -> i64 {
    let digit = |n: usize| i64::from(digits[n]) - i64::from(b'0');
    let pair = |n: usize| digit(n) * 10 + digit(n + 1);
    let mut year = pair(0) * 100 + pair(2);
    if year <= 1900 {
        // The year is treated as a number of years since 1900.
        year += 1900;
    }
    let month = pair(4) - 1;
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12));
    let days = days_from_civil(year, month + 1) + pair(6) - 1;
    ((days * 24 + pair(8)) * 60 + pair(10)) * 60 + pair(12)
}

/// Number of days from 1970-01-01 to the first of a month (1 to 12) in the Gregorian calendar.
fn days_from_civil(year: i64, month: i64) -> i64 {
    // Years begin in March, so that the leap day is the last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::Reader;
    use proptest::prelude::*;

    fn time(tag: u8, octets: &[u8]) -> Result<i64, Weird> {
        let mut der = vec![tag, octets.len().to_le_bytes()[0]];
        der.extend_from_slice(octets);
        let element = Reader::new(&der).element().unwrap();
        unix_seconds(&element, octets)
    }

    #[test]
    fn usual_forms() {
        assert_eq!(time(23, b"120920171259Z"), Ok(1_348_161_179));
        assert_eq!(time(23, b"1209201712Z"), Ok(1_348_161_120));
        assert_eq!(time(23, b"500101000000Z"), Ok(-631_152_000));
        assert_eq!(time(23, b"700101000000Z"), Ok(0));
        assert_eq!(time(24, b"99991231235959Z"), Ok(253_402_300_799));
        assert_eq!(time(24, b"20120920171259.123Z"), Ok(1_348_161_179));
        assert_eq!(time(24, b"20120920171259+0100"), Ok(1_348_161_179 + 60));
    }

    #[test]
    fn fields_run_over() {
        assert_eq!(time(23, b"121301000000Z"), time(23, b"130101000000Z"));
        assert_eq!(time(23, b"120230000000Z"), time(23, b"120301000000Z"));
        assert_eq!(time(23, b"120100000000Z"), time(23, b"111231000000Z"));
        assert_eq!(time(24, b"18000101000000Z"), time(24, b"37000101000000Z"));
    }

    #[test]
    fn bytes_beyond_ascii_count_as_they_are() {
        assert_eq!(time(23, b"1209201712\xff0Z"), Ok(1_348_161_120 + 2070));
        assert_eq!(time(23, b"\xff00101000000Z"), time(24, b"39700101000000Z"));
    }

    #[test]
    fn weirds_are_named() {
        assert_eq!(time(23, b"12092017Z"), Err(Weird::UtcLength));
        assert_eq!(time(23, b"120920171259+0100"), Err(Weird::UtcFormat));
        assert_eq!(time(24, b"2012Z"), Err(Weird::GeneralizedLength));
        assert_eq!(time(24, b"2012092017121"), Err(Weird::TimeSeconds));
        assert_eq!(time(24, b"20120920171212+01"), Err(Weird::TimeOffsetShort));
        assert_eq!(time(24, b"20120920171212x0100"), Err(Weird::TimeOffsetType));
        assert_eq!(time(19, b"20120920171212Z"), Err(Weird::TimeType));
    }

    proptest! {
        #[test]
        fn never_panics(tag in 22u8..26, octets in proptest::collection::vec(any::<u8>(), 0..30)) {
            let _ = time(tag, &octets);
        }
    }
}
