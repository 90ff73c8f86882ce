//! Times as text: `strftime`, `strptime`, and `%D` and `%T` of `fmt`, in the local time zone and the names of the C locale.

use std::io::Write;
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Maximum length of the result of `strftime`.
const MAX_TEXT: usize = 127;

/// A point in time in a calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59; 60 for a leap second in parsed text.
    pub second: i64,
    /// Offset from UTC in seconds, positive east of Greenwich.
    pub offset: i64,
    /// Abbreviation of the time zone at that time.
    pub zone: String,
}

fn zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    // Tests use UTC.
    ZONE.get_or_init(|| if cfg!(test) { TimeZone::UTC } else { TimeZone::system() })
}

/// The days from 1970-01-01 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that is `days` days after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

impl Civil {
    /// A point in time in UTC.
    #[must_use]
    pub fn utc(seconds: i64) -> Self {
        Self::at_offset(seconds, 0, "UTC")
    }

    /// A point in time in the local zone.
    #[must_use]
    pub fn local(seconds: i64) -> Self {
        let Ok(timestamp) = Timestamp::from_second(seconds) else { return Self::utc(seconds) };
        let info = zone().to_offset_info(timestamp);
        let name = if zone().is_unknown() { "UTC" } else { info.abbreviation() };
        Self::at_offset(seconds, i64::from(info.offset().seconds()), name)
    }

    fn at_offset(seconds: i64, offset: i64, zone: &str) -> Self {
        let local = seconds.saturating_add(offset);
        let (days, of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        Civil { year, month, day, hour, minute, second, offset, zone: zone.to_owned() }
    }

    fn days(&self) -> i64 {
        days_of(self.year, self.month, self.day)
    }

    /// Day of the week; 0 is Sunday.
    fn weekday(&self) -> i64 {
        (self.days() + 4).rem_euclid(7)
    }

    /// Day of the year, counted from 0.
    fn day_of_year(&self) -> i64 {
        self.days() - days_of(self.year, 1, 1)
    }

    fn seconds(&self) -> i64 {
        self.days() * 86_400 + self.hour * 3_600 + self.minute * 60 + self.second
    }

    /// Seconds since 1970 of a local time. Fields beyond their range carry over. Daylight saving time is not
    /// applied, because the text does not specify it.
    fn to_seconds(&self) -> i64 {
        let local = self.seconds();
        let mut offset = 0;
        let mut saving = 0;
        // Twice, because the offset depends on the resulting time.
        for _ in 0..2 {
            let Ok(timestamp) = Timestamp::from_second(local - offset) else { return local };
            let info = zone().to_offset_info(timestamp);
            offset = i64::from(info.offset().seconds());
            saving = if info.dst().is_dst() { 3_600 } else { 0 };
        }
        local - offset + saving
    }

    /// The year and week of ISO 8601.
    fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days() - (self.weekday() + 6) % 7 + 3;
        let (year, _, _) = date_of(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// `strftime(format, time)`.
#[must_use]
pub fn strftime(format: &[u8], seconds: f64) -> Vec<u8> {
    let mut out = Vec::new();
    let civil = Civil::local(seconds as i64);
    // The C library counts years from 1900 in 32 bits.
    if i32::try_from(civil.year - 1900).is_err() {
        return b"<strftime error>".to_vec();
    }
    civil_text(&mut out, until_nul(format), &civil, seconds as i64, 0);
    if out.is_empty() || out.len() > MAX_TEXT { b"<strftime error>".to_vec() } else { out }
}

/// Appends a time in the format of C's `strftime`; for names of rotated logs and `#open`.
pub fn civil_format(out: &mut Vec<u8>, format: &[u8], seconds: i64) {
    civil_text(out, format, &Civil::local(seconds), seconds, 0);
}

/// `%D` of `fmt`; `%T` with `precise`.
pub fn date(out: &mut Vec<u8>, seconds: f64, precise: bool) {
    let time = Civil::local(seconds as i64);
    let format: &[u8] = if precise { b"%Y-%m-%d-%H:%M" } else { b"%Y-%m-%d-%H:%M:%S" };
    civil_text(out, format, &time, seconds as i64, 0);
    if precise {
        let whole = seconds as u64;
        let second = (whole % 60) as f64 + seconds - whole as f64;
        let _ = write!(out, ":{second:012.9}");
    }
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|b| *b == 0).next().unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Padding {
    fill: u8,
    width: usize,
}

fn padded(out: &mut Vec<u8>, value: i64, padding: Padding, flag: u8, width: usize) {
    let fill = match flag {
        b'_' => b' ',
        b'0' | b'+' => b'0',
        _ => padding.fill,
    };
    let width = match flag {
        b'-' => 0,
        _ if width > 0 => width,
        _ => padding.width,
    };
    let digits = value.unsigned_abs().to_string();
    let sign = usize::from(value < 0);
    let missing = width.saturating_sub(digits.len() + sign);
    if fill == b' ' {
        out.extend(std::iter::repeat_n(b' ', missing));
    }
    if value < 0 {
        out.push(b'-');
    }
    if fill == b'0' {
        out.extend(std::iter::repeat_n(b'0', missing));
    }
    out.extend_from_slice(digits.as_bytes());
}

fn civil_text(out: &mut Vec<u8>, format: &[u8], t: &Civil, seconds: i64, depth: u32) {
    let mut rest = format;
    while let Some(percent) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(&rest[..percent]);
        let directive = &rest[percent..];
        let mut at = 1;
        let mut flag = 0;
        while let Some(f @ (b'_' | b'-' | b'0' | b'^' | b'#' | b'+')) = directive.get(at) {
            flag = *f;
            at += 1;
        }
        let mut width = 0_usize;
        while let Some(digit @ b'0'..=b'9') = directive.get(at) {
            width = (width * 10 + usize::from(digit - b'0')).min(1_000);
            at += 1;
        }
        if let Some(b'E' | b'O') = directive.get(at) {
            at += 1;
        }
        let Some(letter) = directive.get(at) else {
            out.extend_from_slice(directive);
            return;
        };
        rest = &directive[at + 1..];
        if !directive_text(out, *letter, flag, width, t, seconds, depth) {
            out.extend_from_slice(&directive[..=at]);
        }
    }
    out.extend_from_slice(rest);
}

/// Writes the value of a directive; returns whether the directive exists.
fn directive_text(
    out: &mut Vec<u8>,
    letter: u8,
    flag: u8,
    width: usize,
    t: &Civil,
    seconds: i64,
    depth: u32,
) -> bool {
    let zeros = |width| Padding { fill: b'0', width };
    let blanks = |width| Padding { fill: b' ', width };
    let hour12 = if t.hour % 12 == 0 { 12 } else { t.hour % 12 };
    let day = usize::try_from(t.weekday()).ok().and_then(|i| DAYS.get(i)).unwrap_or(&"?");
    let month = usize::try_from(t.month - 1).ok().and_then(|i| MONTHS.get(i)).unwrap_or(&"?");
    let half = if t.hour < 12 { "AM" } else { "PM" };
    let mut number = |value, padding| padded(out, value, padding, flag, width);
    match letter {
        b'd' => number(t.day, zeros(2)),
        b'e' => number(t.day, blanks(2)),
        b'H' => number(t.hour, zeros(2)),
        b'k' => number(t.hour, blanks(2)),
        b'I' => number(hour12, zeros(2)),
        b'l' => number(hour12, blanks(2)),
        b'j' => number(t.day_of_year() + 1, zeros(3)),
        b'm' => number(t.month, zeros(2)),
        b'M' => number(t.minute, zeros(2)),
        b'S' => number(t.second, zeros(2)),
        b's' => number(seconds, zeros(1)),
        b'u' => number((t.weekday() + 6) % 7 + 1, zeros(1)),
        b'w' => number(t.weekday(), zeros(1)),
        b'U' => number((t.day_of_year() + 7 - t.weekday()) / 7, zeros(2)),
        b'W' => number((t.day_of_year() + 7 - (t.weekday() + 6) % 7) / 7, zeros(2)),
        b'V' => number(t.iso_week().1, zeros(2)),
        b'G' => number(t.iso_week().0, zeros(1)),
        b'g' => number(t.iso_week().0.rem_euclid(100), zeros(2)),
        b'y' => number(t.year.rem_euclid(100), zeros(2)),
        b'Y' => number(t.year, zeros(1)),
        b'C' => number(t.year.div_euclid(100), zeros(2)),
        b'z' => {
            let minutes = t.offset.abs() / 60;
            let _ = write!(
                out,
                "{}{:02}{:02}",
                if t.offset < 0 { '-' } else { '+' },
                minutes / 60,
                minutes % 60
            );
        }
        _ => {
            let composed: Option<&[u8]> = match letter {
                b'c' => Some(b"%a %b %e %H:%M:%S %Y"),
                b'D' | b'x' => Some(b"%m/%d/%y"),
                b'F' => Some(b"%Y-%m-%d"),
                b'r' => Some(b"%I:%M:%S %p"),
                b'R' => Some(b"%H:%M"),
                b'T' | b'X' => Some(b"%H:%M:%S"),
                _ => None,
            };
            let mut text = Vec::new();
            match (letter, composed) {
                (_, Some(composed)) if depth == 0 => civil_text(&mut text, composed, t, seconds, 1),
                (b'a', _) => text.extend_from_slice(&day.as_bytes()[..3.min(day.len())]),
                (b'A', _) => text.extend_from_slice(day.as_bytes()),
                (b'b' | b'h', _) => text.extend_from_slice(&month.as_bytes()[..3.min(month.len())]),
                (b'B', _) => text.extend_from_slice(month.as_bytes()),
                (b'p', _) => text.extend_from_slice(half.as_bytes()),
                (b'P', _) => text.extend_from_slice(half.to_lowercase().as_bytes()),
                (b'Z', _) => text.extend_from_slice(t.zone.as_bytes()),
                (b'n', _) => text.push(b'\n'),
                (b't', _) => text.push(b'\t'),
                (b'%', _) => text.push(b'%'),
                _ => return false,
            }
            match flag {
                b'^' => text.make_ascii_uppercase(),
                b'#' if matches!(letter, b'p' | b'Z') => text.make_ascii_lowercase(),
                b'#' => text.make_ascii_uppercase(),
                _ => {}
            }
            let fill = if flag == b'0' { b'0' } else { b' ' };
            out.extend(std::iter::repeat_n(fill, width.saturating_sub(text.len())));
            out.append(&mut text);
        }
    }
    true
}

/// `strptime(format, text)`: seconds since 1970, `None` if `text` does not match `format`. Fields
/// that the format omits are those of the first second of 1970; the rest of `text` is ignored.
#[must_use]
pub fn strptime(format: &[u8], text: &[u8]) -> Option<f64> {
    let mut reader = Reader { text: until_nul(text), time: Civil::local(0), ..Reader::default() };
    reader.read(until_nul(format), 0)?;
    Some(reader.finish() as f64)
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a [u8],
    time: Civil,
    /// Whether the hour is on a 12-hour clock, and whether it is PM.
    hour12: bool,
    afternoon: bool,
    century: Option<i64>,
    short_year: bool,
    day_of_year: Option<i64>,
    has_date: bool,
    /// Seconds since 1970 (`%s`).
    seconds: Option<i64>,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    fn number(&mut self, low: i64, high: i64, digits: usize) -> Option<i64> {
        let blanks = self.text.iter().take_while(|b| **b == b' ').count();
        self.text = &self.text[blanks..];
        let count = self.text.iter().take(digits).take_while(|b| b.is_ascii_digit()).count();
        let (number, rest) = self.text.split_at(count);
        let value = std::str::from_utf8(number).ok()?.parse().ok()?;
        self.text = rest;
        (low <= value && value <= high).then_some(value)
    }

    fn name(&mut self, names: &[&str]) -> Option<i64> {
        for (index, name) in names.iter().enumerate() {
            for name in [name.as_bytes(), &name.as_bytes()[..3]] {
                if self.text.len() >= name.len()
                    && self.text[..name.len()].eq_ignore_ascii_case(name)
                {
                    self.text = &self.text[name.len()..];
                    return Some(index as i64);
                }
            }
        }
        None
    }

    fn read(&mut self, format: &[u8], depth: u32) -> Option<()> {
        let mut format = format.iter().copied().peekable();
        while let Some(byte) = format.next() {
            if byte.is_ascii_whitespace() || byte == 0x0b {
                self.blanks();
                continue;
            }
            if byte != b'%' {
                self.text = self.text.strip_prefix(&[byte])?;
                continue;
            }
            while format.next_if(|b| matches!(b, b'_' | b'-' | b'0' | b'^' | b'#')).is_some() {}
            let _ = format.next_if(|b| matches!(b, b'E' | b'O'));
            self.directive(format.next()?, depth)?;
        }
        Some(())
    }

    fn directive(&mut self, letter: u8, depth: u32) -> Option<()> {
        match letter {
            b'a' | b'A' => drop(self.name(&DAYS)?),
            b'b' | b'B' | b'h' => {
                self.time.month = self.name(&MONTHS)? + 1;
                self.has_date = true;
            }
            b'C' => self.century = Some(self.number(0, 99, 2)?),
            b'd' | b'e' => {
                self.time.day = self.number(1, 31, 2)?;
                self.has_date = true;
            }
            b'H' | b'k' => {
                self.time.hour = self.number(0, 23, 2)?;
                self.hour12 = false;
            }
            b'I' | b'l' => {
                self.time.hour = self.number(1, 12, 2)? % 12;
                self.hour12 = true;
            }
            b'j' => self.day_of_year = Some(self.number(1, 366, 3)? - 1),
            b'm' => {
                self.time.month = self.number(1, 12, 2)?;
                self.has_date = true;
            }
            b'M' => self.time.minute = self.number(0, 59, 2)?,
            b'n' | b't' => self.blanks(),
            b'p' | b'P' => self.afternoon = self.half_day()?,
            b's' => {
                let digits = self.text.iter().take_while(|b| b.is_ascii_digit()).count();
                self.seconds = Some(self.number(0, i64::MAX, digits)?);
                self.time = Civil::local(self.seconds?);
            }
            b'S' => self.time.second = self.number(0, 61, 2)?,
            b'u' => drop(self.number(1, 7, 1)?),
            b'w' => drop(self.number(0, 6, 1)?),
            b'g' => drop(self.number(0, 99, 2)?),
            b'U' | b'V' | b'W' => drop(self.number(0, 53, 2)?),
            b'G' => {
                let digits = self.text.iter().take(4).take_while(|b| b.is_ascii_digit()).count();
                self.text = self.text.get(digits..).filter(|_| digits > 0)?;
            }
            b'y' => {
                let year = self.number(0, 99, 2)?;
                self.time.year = if year >= 69 { 1900 + year } else { 2000 + year };
                self.short_year = true;
            }
            b'Y' => {
                self.time.year = self.number(0, 9999, 4)?;
                self.century = None;
                self.short_year = false;
            }
            b'z' => self.offset()?,
            b'Z' => {
                self.blanks();
                let name = self.text.iter().take_while(|b| !b.is_ascii_whitespace()).count();
                self.text = &self.text[name..];
            }
            b'%' => self.text = self.text.strip_prefix(b"%")?,
            _ => {
                let composed: &[u8] = match letter {
                    b'c' => b"%a %b %e %H:%M:%S %Y",
                    b'D' | b'x' => b"%m/%d/%y",
                    b'F' => b"%Y-%m-%d",
                    b'r' => b"%I:%M:%S %p",
                    b'R' => b"%H:%M",
                    b'T' | b'X' => b"%H:%M:%S",
                    _ => return None,
                };
                if depth > 0 {
                    return None;
                }
                self.read(composed, 1)?;
            }
        }
        Some(())
    }

    fn half_day(&mut self) -> Option<bool> {
        let half = self.text.get(..2)?.to_ascii_lowercase();
        self.text = &self.text[2..];
        match half.as_slice() {
            b"am" => Some(false),
            b"pm" => Some(true),
            _ => None,
        }
    }

    /// An offset from UTC, which is parsed and ignored.
    fn offset(&mut self) -> Option<()> {
        self.blanks();
        if let Some(rest) = self.text.strip_prefix(b"Z") {
            self.text = rest;
            return Some(());
        }
        self.text = self.text.strip_prefix(b"+").or_else(|| self.text.strip_prefix(b"-"))?;
        let mut digits = 0;
        while let [b, rest @ ..] = self.text
            && digits < 4
        {
            match b {
                b'0'..=b'9' => digits += 1,
                b':' if digits == 2 => {}
                _ => break,
            }
            self.text = rest;
        }
        matches!(digits, 2 | 4).then_some(())
    }

    fn finish(mut self) -> i64 {
        if self.hour12 && self.afternoon {
            self.time.hour += 12;
        }
        if let Some(century) = self.century {
            let short = if self.short_year { self.time.year.rem_euclid(100) } else { 0 };
            self.time.year = century * 100 + short;
        }
        if let Some(day) = self.day_of_year.filter(|_| !self.has_date) {
            (self.time.month, self.time.day) = (1, day + 1);
        }
        self.time.to_seconds()
    }
}
