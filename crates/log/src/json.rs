use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_base::Uid;

use crate::escape::escape_json;
use crate::number::write_shortest6;
use crate::piece;
use crate::row::Cut;
use crate::row::Limits;
use crate::text::LineBuffer;
use crate::text::Sink;
use crate::text::append_plain;
use crate::value::Encoder;
use crate::value::Type;
use crate::value::Value;

/// Format of times in JSON logs.
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

/// Writes a row as a line with one JSON object. Unset columns are omitted.
///
/// The write position stays in a register from one column to the next.
pub struct JsonEncoder<'a> {
    out: LineBuffer<'a>,
    times: JsonTimes,
    limits: Limits,
    cut: Cut,
}

/// Number of bytes around a column's name: the separator before it, three quotes and a colon.
const NAME_OVERHEAD: usize = 5;

impl<'a> JsonEncoder<'a> {
    /// Writes a row to `buffer`; call [`finish`](Self::finish) after the last column.
    #[inline(always)]
    pub fn new(buffer: &'a mut [u8], limits: Limits, times: JsonTimes) -> Self {
        Self { out: LineBuffer::new(buffer), times, limits, cut: Cut::default() }
    }

    /// Closes the object and ends the line; returns its length and which parts were truncated to their limits. Returns
    /// `None` if `buffer` was too small; even one with up to 64 spare bytes may be: write the row again to a larger
    /// one.
    #[inline(always)]
    pub fn finish(mut self) -> Option<(usize, Cut)> {
        if self.out.is_empty() {
            self.out.put([b'{'], 1);
        }
        self.out.put(*b"}\n", 2);
        self.out.written().map(|n| (n, self.cut))
    }

    /// Writes the name of a column, with the opening quote of a text, in one step.
    #[inline(always)]
    fn name(&mut self, name: &'static str, text: bool) {
        let before = if self.out.is_empty() { b'{' } else { b',' };
        let len = name.len() + NAME_OVERHEAD - usize::from(!text);
        self.out.put_with(name.len() + NAME_OVERHEAD, len, |target| {
            target[0] = before;
            target[1] = b'"';
            target[2..2 + name.len()].copy_from_slice(name.as_bytes());
            target[2 + name.len()..].copy_from_slice(b"\":\"");
        });
    }

    #[inline(always)]
    fn seconds(&mut self, ns: i64) {
        self.out.with(|buffer, at| seconds(buffer, at, ns));
    }
}

/// Whether a column's values are quoted.
const fn is_text(ty: Type) -> bool {
    let Type::Scalar(name) = ty else { return false };
    matches!(name.as_bytes(), b"string" | b"addr" | b"enum")
}

/// Writes a string from the wire, without its quotes.
#[inline(never)]
fn string(buffer: &mut [u8], at: u32, v: &[u8]) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    if !append_plain(&mut out, v, b'"', b'\\') {
        out.put_all(&escaped(v));
    }
    out.into_position()
}

#[cold]
#[inline(never)]
fn escaped(v: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    escape_json(&mut out, v);
    out
}

/// Writes nanoseconds as seconds. Whole microseconds are formatted from the integer: for times of this century that is
/// the shortest decimal that parses to the same double.
#[inline(never)]
fn seconds(buffer: &mut [u8], at: u32, ns: i64) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let us = ns as u64 / 1_000;
    match ns {
        _ if ns % 1_000 != 0 => out.put_all(&number(Interval::from_nanos(ns).as_secs_f64())),
        // Zeek writes numbers below 0.0001 with an exponent.
        1_000..100_000 => {
            let digit = |n: u64| b'0' + n as u8;
            match (us / 10, us % 10) {
                (0, a) => out.put([digit(a), b'e', b'-', b'6'], 4),
                (a, 0) => out.put([digit(a), b'e', b'-', b'5'], 4),
                (a, b) => out.put([digit(a), b'.', digit(b), b'e', b'-', b'5'], 6),
            }
        }
        100_000..4_000_000_000_000_000_000 => write_shortest6(&mut out, us),
        _ => out.put_all(&number(Interval::from_nanos(ns).as_secs_f64())),
    }
    out.into_position()
}

/// The shortest decimal that parses to the same double; whole numbers as `1.0`.
#[cold]
#[inline(never)]
fn number(v: f64) -> Vec<u8> {
    let small = v != 0.0 && v.abs() < 1e-5;
    match () {
        () if !v.is_finite() => b"null".to_vec(),
        () if small => format!("{v:e}").into_bytes(),
        () => format!("{v:?}").into_bytes(),
    }
}

/// Writes a time in ISO 8601.
#[inline(never)]
fn date(buffer: &mut [u8], at: u32, v: Time) -> u32 {
    let mut out = LineBuffer::at(buffer, at);
    let us = v.as_nanos().div_euclid(1_000);
    out.put(iso8601(us.div_euclid(1_000_000), us.rem_euclid(1_000_000)), ISO8601);
    out.into_position()
}

impl Encoder for JsonEncoder<'_> {
    #[inline(always)]
    fn field<V: Value>(&mut self, name: &'static str, value: &V) {
        if value.is_unset() {
            return;
        }
        let text = const { is_text(V::TYPE) };
        self.name(name, text);
        value.put(self);
        if text {
            self.out.put([b'"'], 1);
        }
    }

    #[inline(always)]
    fn bool(&mut self, v: bool) {
        self.out.put(if v { *b"true\0" } else { *b"false" }, 5 - usize::from(v));
    }

    #[inline(always)]
    fn count(&mut self, v: u64) {
        self.out.with(|buffer, at| piece::count(buffer, at, v));
    }

    #[inline(always)]
    fn int(&mut self, v: i64) {
        if v < 0 {
            self.out.put([b'-'], 1);
        }
        self.count(v.unsigned_abs());
    }

    fn double(&mut self, v: f64) {
        self.out.put_all(&number(v));
    }

    #[inline(always)]
    fn time(&mut self, v: Time) {
        match self.times {
            JsonTimes::Epoch => self.seconds(v.as_nanos()),
            JsonTimes::Iso8601 => self.out.with(|buffer, at| date(buffer, at, v)),
            JsonTimes::Millis => self.int(v.as_nanos() / 1_000_000),
        }
    }

    #[cold]
    fn far_time(&mut self, seconds: f64) {
        match self.times {
            JsonTimes::Epoch => self.double(seconds),
            JsonTimes::Iso8601 => {
                let us = (seconds - seconds.floor()) * 1e6;
                self.out.put_all(far_iso8601(seconds.floor() as i64, us as i64).as_bytes());
            }
            JsonTimes::Millis => self.int((seconds * 1e3) as i64),
        }
    }

    #[inline(always)]
    fn interval(&mut self, v: Interval) {
        self.seconds(v.as_nanos());
    }

    #[inline(always)]
    fn addr(&mut self, v: Addr) {
        self.out.with(|buffer, at| piece::addr(buffer, at, v));
    }

    #[inline(always)]
    fn uid(&mut self, v: &Uid) {
        self.out.with(|buffer, at| piece::uid(buffer, at, v));
    }

    #[inline(always)]
    fn string(&mut self, v: &[u8]) {
        let n = v.len().min(self.limits.string);
        self.cut.strings |= n < v.len();
        self.out.with(|buffer, at| string(buffer, at, &v[..n]));
    }

    #[inline(always)]
    fn plain(&mut self, v: &[u8]) {
        self.out.with(|buffer, at| piece::plain(buffer, at, v));
    }

    #[inline(always)]
    fn list<V: Value>(&mut self, v: impl ExactSizeIterator<Item = V>) {
        let n = v.len().min(self.limits.elements);
        self.cut.lists |= n < v.len();
        let text = const { is_text(V::TYPE) };
        self.out.put([b'['], 1);
        for (i, element) in v.take(n).enumerate() {
            if i > 0 {
                self.out.put([b','], 1);
            }
            if element.is_unset() {
                self.out.put(*b"null", 4);
                continue;
            }
            if text {
                self.out.put([b'"'], 1);
            }
            element.put(self);
            if text {
                self.out.put([b'"'], 1);
            }
        }
        self.out.put([b']'], 1);
    }
}

/// Number of days from 1970-01-01 to a calendar date; the inverse of [`civil`].
pub(crate) fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    // Count years from March, so that the leap day is the last day.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day number (0 = 1970-01-01), proleptic Gregorian.
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Count from 0000-03-01, so that leap days end a year; the calendar repeats every 400 years.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day = z.rem_euclid(146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let m = (5 * day_of_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * m + 2) / 5 + 1)
}

/// Length of a date, including its quotes.
const ISO8601: usize = 29;

/// Like [`iso8601`] for any year: more than four digits where needed, and a sign before the year 0.
#[cold]
fn far_iso8601(s: i64, us: i64) -> String {
    let (year, month, day) = civil(s.div_euclid(86_400));
    let s = s.rem_euclid(86_400);
    let (hour, minute) = (s / 3_600, s / 60 % 60);
    format!("\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{us:06}Z\"", s % 60)
}

/// Formats seconds since 1970 and microseconds as `"2026-11-21T08:47:00.000000Z"`, in the years 0 to 9999.
fn iso8601(s: i64, us: i64) -> [u8; ISO8601] {
    let (year, month, day) = civil(s.div_euclid(86_400));
    let s = s.rem_euclid(86_400);
    let mut out = *b"\"0000-00-00T00:00:00.000000Z\"";
    let parts = [
        (4, year, 4),
        (7, month, 2),
        (10, day, 2),
        (13, s / 3_600, 2),
        (16, s / 60 % 60, 2),
        (19, s % 60, 2),
        (26, us, 6),
    ];
    for (last, mut value, digits) in parts {
        for at in 0..digits {
            out[last - at] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Date;
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
        let mut buffer = [0; 1 << 10];
        let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, times);
        row.encode(&mut e);
        let (n, cut) = e.finish().unwrap();
        assert_eq!((cut, buffer[n - 1]), (Cut::default(), b'\n'));
        let line = String::from_utf8(buffer[..n - 1].to_vec()).unwrap();
        for buffer in 0..n {
            let mut buffer = vec![0; buffer];
            let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, times);
            row.encode(&mut e);
            assert_eq!(e.finish(), None, "{line}");
        }
        line
    }

    #[test]
    fn dates_of_any_year() {
        let text = |seconds, times| {
            let mut buffer = [0; 128];
            let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, times);
            Date(seconds).put(&mut e);
            let n = e.out.written().unwrap();
            String::from_utf8(buffer[..n].to_vec()).unwrap()
        };
        let last = |times| text(253_402_300_799, times);
        assert_eq!(last(JsonTimes::Epoch), "253402300799.0");
        assert_eq!(last(JsonTimes::Iso8601), "\"9999-12-31T23:59:59.000000Z\"");
        assert_eq!(last(JsonTimes::Millis), "253402300799000");
        // One day later, and one before the year 0.
        let date = |seconds| text(seconds, JsonTimes::Iso8601);
        assert_eq!(date(253_402_387_199), "\"10000-01-01T23:59:59.000000Z\"");
        assert_eq!(date(-62_167_305_600), "\"-001-12-31T00:00:00.000000Z\"");
        assert!(date(i64::MAX).starts_with("\"292277026596-12-04T"));
        assert!(date(i64::MIN).starts_with("\"-2922770"));
    }

    #[test]
    fn each_row_is_one_object() {
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
        /// Seconds are formatted as the shortest decimals of the same doubles.
        #[test]
        fn seconds_equal_formatted_doubles(us in 0_i64..9_000_000_000_000, shift in 0..60, odd in 0_i64..2) {
            let us: i64 = us >> shift;
            for ns in [us * 1_000 + odd, us / 1_000_000 * 1_000_000_000] {
                let text = |write: &dyn Fn(&mut JsonEncoder<'_>)| {
                    let mut buffer = [0; 128];
                    let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, JsonTimes::Epoch);
                    write(&mut e);
                    let n = e.out.written().unwrap();
                    String::from_utf8(buffer[..n].to_vec()).unwrap()
                };
                let v = Interval::from_nanos(ns);
                let any = text(&|e| e.double(v.as_secs_f64()));
                proptest::prop_assert_eq!(text(&|e| e.interval(v)), any.clone());
                if ns % 1_000 == 0 {
                    proptest::prop_assert_eq!(text(&|e| e.time(Time::from_nanos(ns))), any);
                }
            }
        }
    }

    #[test]
    fn times_of_files_have_the_microseconds_of_tsv() {
        let mut buffer = [0; 128];
        let mut e = JsonEncoder::new(&mut buffer, Sample::LIMITS, JsonTimes::Epoch);
        Value::put(&crate::Seconds(1_682_501_599.463_033_7), &mut e);
        let n = e.out.written().unwrap();
        assert_eq!(&buffer[..n], b"1682501599.463034");
    }

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(-1), (1969, 12, 31));
        for days in [-719_468, -1, 0, 59, 60, 11_016, 20_780, 1_000_000] {
            let (year, month, day) = civil(days);
            assert_eq!(days_from_civil(year, month as u32, day as u32), days);
        }
    }
}
