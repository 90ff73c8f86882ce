use std::io::Write as _;

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

use crate::escape::escape_json;
use crate::number::write_addr;
use crate::number::write_count;
use crate::number::write_fixed6;
use crate::row::Cut;
use crate::row::Limits;
use crate::value::Encoder;
use crate::value::Type;
use crate::value::Value;

/// How JSON logs show points in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JsonTimes {
    /// Seconds since the epoch, as a number.
    #[default]
    Epoch,
    /// `2026-11-21T08:47:00.000000Z`.
    Iso8601,
    /// Whole milliseconds since the epoch.
    Millis,
}

/// Writes a row as a line with one JSON object. Unset columns are left out.
pub struct JsonEncoder<'a> {
    out: &'a mut Vec<u8>,
    times: JsonTimes,
    limits: Limits,
    empty: bool,
    cut: Cut,
}

impl<'a> JsonEncoder<'a> {
    /// A row is appended to `out`; call [`finish`](Self::finish) after the last column.
    pub fn new(out: &'a mut Vec<u8>, limits: Limits, times: JsonTimes) -> Self {
        out.push(b'{');
        Self { out, times, limits, empty: true, cut: Cut::default() }
    }

    /// Closes the object and ends the line, returning what had to be cut to its limit.
    pub fn finish(self) -> Cut {
        self.out.extend_from_slice(b"}\n");
        self.cut
    }

    /// Nanoseconds as seconds: whole microseconds print from the integer, for the shortest decimal that
    /// reads back as the same double has no more digits than that in this century.
    fn seconds(&mut self, ns: i64, v: f64) {
        if ns % 1_000 != 0 || !matches!(ns, 100_000..4_000_000_000_000_000_000) {
            return self.number(v);
        }
        write_fixed6(self.out, ns);
        let zeros = self.out.iter().rev().take_while(|c| **c == b'0').count();
        // A whole number keeps one of them.
        let keeps = usize::from(zeros >= 6);
        self.out.truncate(self.out.len() - (zeros.min(6) - keeps));
    }

    /// The shortest decimal that reads back as the same double, whole numbers as `1.0`.
    fn number(&mut self, v: f64) {
        if !v.is_finite() {
            self.out.extend_from_slice(b"null");
            return;
        }
        let small = v != 0.0 && v.abs() < 1e-5;
        // Writing to memory cannot fail.
        let _ = if small { write!(self.out, "{v:e}") } else { write!(self.out, "{v:?}") };
    }
}

impl Encoder for JsonEncoder<'_> {
    #[inline]
    fn field<V: Value>(&mut self, name: &'static str, value: &V) {
        if value.is_unset() {
            return;
        }
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        let text = matches!(V::TYPE, Type::Scalar("string" | "addr" | "enum"));
        if text {
            self.out.push(b'"');
        }
        value.put(self);
        if text {
            self.out.push(b'"');
        }
    }

    fn bool(&mut self, v: bool) {
        self.out.extend_from_slice(if v { b"true" } else { b"false" });
    }

    #[inline]
    fn count(&mut self, v: u64) {
        write_count(self.out, v);
    }

    fn int(&mut self, v: i64) {
        if v < 0 {
            self.out.push(b'-');
        }
        write_count(self.out, v.unsigned_abs());
    }

    fn double(&mut self, v: f64) {
        self.number(v);
    }

    fn time(&mut self, v: Time) {
        match self.times {
            JsonTimes::Epoch => self.seconds(v.as_nanos(), v.as_secs_f64()),
            JsonTimes::Iso8601 => {
                self.out.push(b'"');
                iso8601(self.out, v);
                self.out.push(b'"');
            }
            JsonTimes::Millis => self.int(v.as_nanos() / 1_000_000),
        }
    }

    fn interval(&mut self, v: Interval) {
        self.seconds(v.as_nanos(), v.as_secs_f64());
    }

    #[inline]
    fn addr(&mut self, v: Addr) {
        write_addr(self.out, v);
    }

    #[inline]
    fn string(&mut self, v: &[u8]) {
        let n = v.len().min(self.limits.string);
        self.cut.strings |= n < v.len();
        escape_json(self.out, &v[..n]);
    }

    #[inline]
    fn plain(&mut self, v: &[u8]) {
        self.out.extend_from_slice(v);
    }

    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>) {
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        let text = matches!(V::TYPE, Type::Scalar("string" | "addr" | "enum"));
        self.out.push(b'[');
        for (i, element) in v.take(n).enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            if element.is_unset() {
                self.out.extend_from_slice(b"null");
                continue;
            }
            if text {
                self.out.push(b'"');
            }
            element.put(self);
            if text {
                self.out.push(b'"');
            }
        }
        self.out.push(b']');
    }
}

/// Year, month and day of a day number (0 = 1970-01-01), proleptic Gregorian.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Count from 0000-03-01, so that leap days end a year; eras of 400 years are alike.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day = z.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let m = (5 * in_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    (year + era * 400 + i64::from(month <= 2), month, in_year - (153 * m + 2) / 5 + 1)
}

fn iso8601(out: &mut Vec<u8>, t: Time) {
    let us = t.as_nanos().div_euclid(1_000);
    let (s, us) = (us.div_euclid(1_000_000), us.rem_euclid(1_000_000));
    let (y, m, d) = civil(s.div_euclid(86_400));
    let s = s.rem_euclid(86_400);
    let (h, min, sec) = (s / 3600, s / 60 % 60, s % 60);
    let _ = write!(out, "{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{sec:02}.{us:06}Z");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Enum;
    use crate::Row;
    use crate::Vector;

    crate::row! {
        /// For the tests.
        struct Sample = "sample" {
            ts: Time = "ts",
            gone: Option<u64> = "gone",
            kind: Enum = "kind",
            share: f64 = "share",
            rtt: Interval = "rtt",
            names: Vector<Option<&'static str>> = "names",
        }
    }

    fn line(times: JsonTimes, share: f64) -> String {
        let row = Sample {
            ts: Time::from_nanos(1_300_475_167_096_535_000),
            gone: None,
            kind: Enum("A::B"),
            share,
            rtt: Interval::from_nanos(49_129_963),
            names: Vector(vec![Some("a\"b"), None]),
        };
        let mut out = Vec::new();
        let mut e = JsonEncoder::new(&mut out, Sample::LIMITS, times);
        row.encode(&mut e);
        assert_eq!(e.finish(), Cut::default());
        assert_eq!(out.pop(), Some(b'\n'));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_object_a_row() {
        assert_eq!(
            line(JsonTimes::Epoch, 1.0),
            "{\"ts\":1300475167.096535,\"kind\":\"A::B\",\"share\":1.0,\"rtt\":0.049129963,\
             \"names\":[\"a\\\"b\",null]}"
        );
        assert!(line(JsonTimes::Iso8601, 0.0).contains("\"ts\":\"2011-03-18T19:06:07.096535Z\""));
        assert!(line(JsonTimes::Millis, 1e-7).contains("\"ts\":1300475167096,"));
        assert!(line(JsonTimes::Millis, 1e-7).contains("\"share\":1e-7"));
        assert!(line(JsonTimes::Millis, f64::NAN).contains("\"share\":null"));
    }

    proptest::proptest! {
        /// Seconds print as the shortest decimals of the same doubles.
        #[test]
        fn seconds_as_any_number(us in 0_i64..9_000_000_000_000, shift in 0..60, odd in 0_i64..2) {
            let us: i64 = us >> shift;
            for ns in [us * 1_000 + odd, us / 1_000_000 * 1_000_000_000] {
                let text = |write: &dyn Fn(&mut JsonEncoder<'_>)| {
                    let mut out = Vec::new();
                    let mut e = JsonEncoder::new(&mut out, Sample::LIMITS, JsonTimes::Epoch);
                    write(&mut e);
                    String::from_utf8(out).unwrap()
                };
                let v = Interval::from_nanos(ns);
                let any = text(&|e| e.number(v.as_secs_f64()));
                proptest::prop_assert_eq!(text(&|e| e.interval(v)), any.clone());
                if ns % 1_000 == 0 {
                    proptest::prop_assert_eq!(text(&|e| e.time(Time::from_nanos(ns))), any);
                }
            }
        }
    }

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
