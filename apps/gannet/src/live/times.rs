//! Parses and formats durations, times in file names and rules of removal.

use std::time::Duration;

use gannet_base::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::limits;

/// A rule for the removal of rotated files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Remove files that are older.
    Age(Duration),
    /// Remove the oldest files while all together have more bytes.
    Size(u64),
}

/// Parses a duration like `90s`, `10min`, `1h`, `30d` or `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is not a duration, like 90s, 10min, 1h or 30d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" | "hr" => 3600.0,
        "d" | "day" => 86_400.0,
        _ => return Err(bad()),
    };
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = digits.parse().map_err(|_| bad())?;
    let seconds = value * unit;
    if !is_plain || !(0.001..1e10).contains(&seconds) {
        return Err(bad());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses a rule like `30d` or `200G`.
pub(crate) fn keep(text: &str) -> Result<Keep, String> {
    if let Some(days) = text.strip_suffix('d').filter(|t| !t.is_empty()) {
        return duration(&format!("{days}d")).map(Keep::Age);
    }
    limits::size(text)
        .and_then(|size| if size > 0 { Ok(Keep::Size(size)) } else { Err(String::new()) })
        .map_err(|_| format!("'{text}' is neither an age, like 30d, nor a size, like 200G"))
}

/// Checks a template of a folder whose name contains parts of a time.
pub(crate) fn template(text: &str) -> Result<String, String> {
    let mut letters = text.chars();
    while letters.by_ref().any(|letter| letter == '%') {
        if !letters.next().is_some_and(|letter| "YmdHMS%".contains(letter)) {
            return Err(
                "% must be followed by Y, m, d, H, M or S, or by % for a percent sign".to_owned()
            );
        }
    }
    Ok(text.to_owned())
}

/// Offset of local time from UTC in seconds.
pub(crate) fn offset(seconds: i64) -> i64 {
    let Ok(at) = Timestamp::from_second(seconds) else { return 0 };
    i64::from(TimeZone::system().to_offset(at).seconds())
}

/// The next multiple of a duration in local time.
pub(crate) fn next_multiple(now: Time, every: Duration) -> Time {
    let every = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX).max(1);
    let ahead = offset(now.as_nanos().div_euclid(1_000_000_000)) * 1_000_000_000;
    let local = now.as_nanos().saturating_add(ahead);
    let next = local.div_euclid(every).saturating_add(1).saturating_mul(every);
    Time::from_nanos(next - ahead)
}

/// Year, month, day, hour, minute and second of local time.
pub(crate) fn local(time: Time) -> [i64; 6] {
    let seconds = time.as_nanos().div_euclid(1_000_000_000);
    let Ok(at) = Timestamp::from_second(seconds) else { return [0; 6] };
    let at = TimeZone::system().to_datetime(at);
    let small = [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(i64::from);
    let [month, day, hour, minute, second] = small;
    [i64::from(at.year()), month, day, hour, minute, second]
}

/// A time in the form that Zeek passes to postprocessors: `26-11-23_17.00.00`.
pub(crate) fn for_programs(time: Time) -> String {
    let [year, month, day, hour, minute, second] = local(time);
    let year = year.rem_euclid(100);
    format!("{year:02}-{month:02}-{day:02}_{hour:02}.{minute:02}.{second:02}")
}

/// Replaces the placeholders of a template by a time.
pub(crate) fn expand(template: &str, time: Time) -> String {
    let [year, month, day, hour, minute, second] = local(time);
    let mut out = String::with_capacity(template.len() + 8);
    let mut letters = template.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('Y') => out.push_str(&format!("{year:04}")),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('H') => out.push_str(&format!("{hour:02}")),
            Some('M') => out.push_str(&format!("{minute:02}")),
            Some('S') => out.push_str(&format!("{second:02}")),
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(duration("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(keep("30d"), Ok(Keep::Age(Duration::from_secs(30 * 86_400))));
        assert_eq!(keep("200G"), Ok(Keep::Size(200 << 30)));
        for bad in ["", "1", "h", "-1h", "1y", "0s", "infd"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        // No file is kept for no time, nor in no bytes.
        for bad in ["d", "x", "0", "0d", "0.1K1", ""] {
            assert!(keep(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_are_rotated_at_multiples() {
        let hour = Duration::from_secs(3600);
        let at = |s| Time::from_secs(s);
        let next = next_multiple(at(1_800_000_123), hour);
        let local = |t: Time| t.as_nanos() / 1_000_000_000 + offset(t.as_nanos() / 1_000_000_000);
        assert_eq!(local(next) % 3600, 0);
        assert!(next > at(1_800_000_123) && next <= at(1_800_000_123 + 3600));
        assert!(next_multiple(next, hour) > next);
    }

    #[test]
    fn templates() {
        let time = Time::from_secs(1_800_000_123);
        let text = expand("logs/%Y-%m-%d/%H%%%x%", time);
        assert!(text.starts_with("logs/2027-01-1") && text.ends_with("%%x%"), "{text}");
        assert_eq!(for_programs(time).len(), 17);
        for good in ["archive/%Y-%m-%d", "%H%M%S", "100%%", "plain"] {
            assert_eq!(template(good).as_deref(), Ok(good));
        }
        for bad in ["archive/%Q", "%", "a%", "%%%", "%y"] {
            assert!(template(bad).is_err(), "{bad}");
        }
    }
}
