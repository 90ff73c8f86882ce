//! Rows as JSON objects.

use std::io::Write;

use super::text::escape;
use crate::support::field::{Column, Field};
use crate::support::format::{self, json, time};

/// Format of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1970: `JSON::TS_EPOCH`.
    #[default]
    Epoch,
    /// Milliseconds: `JSON::TS_MILLIS`.
    Millis,
    /// Milliseconds, unsigned: `JSON::TS_MILLIS_UNSIGNED`.
    MillisUnsigned,
    /// A date: `JSON::TS_ISO8601`.
    Iso8601,
}

/// Handling of string bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StringPolicy {
    /// `\xNN`: `JSON::STRING_ESCAPE_POLICY_HEX`.
    #[default]
    Hex,
    /// Characters of a private use area: `JSON::STRING_ESCAPE_POLICY_PUA`.
    Pua,
    /// Escaped as in text logs: `JSON::STRING_ESCAPE_POLICY_TSV`.
    Tsv,
}

/// Format of JSON rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonFormat {
    /// Format of times.
    pub times: TimeFormat,
    /// Handling of string bytes that are not UTF-8.
    pub strings: StringPolicy,
    /// Whether unset columns are written as `null`.
    pub include_unset: bool,
}

impl JsonFormat {
    /// Appends a row without line end. Returns the times that cannot be converted to a date.
    pub fn row(&self, out: &mut Vec<u8>, columns: &[Column], fields: &[Field<'_>]) -> Vec<f64> {
        let mut bad_times = Vec::new();
        out.push(b'{');
        let mut first = true;
        for (column, field) in columns.iter().zip(fields) {
            if *field == Field::Unset && !self.include_unset {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            if !column.name.is_empty() {
                json::quoted(out, column.name.as_bytes());
                out.push(b':');
            }
            self.field(out, field, &mut bad_times);
        }
        out.push(b'}');
        bad_times
    }

    fn field(&self, out: &mut Vec<u8>, field: &Field<'_>, bad_times: &mut Vec<f64>) {
        match field {
            Field::Unset => out.extend_from_slice(b"null"),
            Field::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Field::Int(value) => drop(write!(out, "{value}")),
            Field::Count(value) => gannet_log::write_count(out, *value),
            Field::Port(value, _) => gannet_log::write_count(out, u64::from(*value)),
            Field::Subnet(address, width) => {
                out.push(b'"');
                format::subnet(out, *address, u32::from(*width));
                out.push(b'"');
            }
            Field::Addr(address) => {
                out.push(b'"');
                format::addr(out, *address);
                out.push(b'"');
            }
            Field::Double(value) | Field::Interval(value) => json::number(out, *value),
            Field::Time(value) => self.time(out, *value, bad_times),
            Field::String(text) => self.string(out, text),
            Field::Enum(text) | Field::File(text) | Field::Func(text) => json::string(out, text),
            Field::Pattern(text, ..) => json::quoted(out, text),
            Field::Set(elements) | Field::Vector(elements) => {
                out.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.field(out, element, bad_times);
                }
                out.push(b']');
            }
        }
    }

    fn time(&self, out: &mut Vec<u8>, value: f64, bad_times: &mut Vec<f64>) {
        match self.times {
            TimeFormat::Epoch => json::number(out, value),
            TimeFormat::Millis => drop(write!(out, "{}", (value * 1_000.0) as i64)),
            TimeFormat::MillisUnsigned => drop(write!(out, "{}", (value * 1_000.0) as i64 as u64)),
            TimeFormat::Iso8601 => {
                // C stores years in 32 bits.
                if value.is_nan() || value.abs() > 6.7e16 {
                    bad_times.push(value);
                    return out.extend_from_slice(b"\"2000-01-01T00:00:00.000000\"");
                }
                let date = time::Civil::utc(value.floor() as i64);
                let fraction = value.fract();
                let fraction = if fraction < 0.0 { fraction + 1.0 } else { fraction };
                let _ = write!(
                    out,
                    "\"{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06.0}Z\"",
                    date.year,
                    date.month,
                    date.day,
                    date.hour,
                    date.minute,
                    date.second,
                    fraction.abs() * 1_000_000.0
                );
            }
        }
    }

    fn string(&self, out: &mut Vec<u8>, text: &[u8]) {
        match self.strings {
            StringPolicy::Hex => json::string(out, text),
            StringPolicy::Tsv => {
                let mut escaped = Vec::new();
                escape(&mut escaped, text, [b"", b""], true);
                json::quoted(out, &escaped);
            }
            StringPolicy::Pua => pua(out, text),
        }
    }
}

/// Bytes that are not clean UTF-8 become escaped characters from U+100000 + 0xdc00.
fn pua(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let named = match first {
            b'"' | b'\\' => Some(*first),
            0x08 => Some(b'b'),
            0x09 => Some(b't'),
            0x0a => Some(b'n'),
            0x0c => Some(b'f'),
            0x0d => Some(b'r'),
            _ => None,
        };
        let shown = format::escape::shown_len(rest);
        if let Some(named) = named {
            out.extend_from_slice(&[b'\\', named]);
            rest = after;
        } else if (0x20..0x7f).contains(first) || shown > 0 {
            let (char, after) = rest.split_at(shown.max(1));
            out.extend_from_slice(char);
            rest = after;
        } else {
            let _ = write!(out, "\\udb80\\udc{first:02x}");
            rest = after;
        }
    }
    out.push(b'"');
}
