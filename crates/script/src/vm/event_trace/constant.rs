//! Expressions of the script language for atomic values and empty containers.

use std::fmt::Write as _;

use crate::program::Program;
use crate::value::Value;
use crate::value::describe::{Form, describe, enum_text};

/// Types whose constants are listed at the end of the script, in the order of these lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Time,
    String,
    Pattern,
    Port,
    Addr,
    Subnet,
}

impl Kind {
    /// The kind of a value; `None` for values that are not listed.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Short(_) | Value::Long(_) if !value.str_bytes().is_empty() => Self::String,
            Value::Pattern(_) => Self::Pattern,
            Value::Port(_) => Self::Port,
            Value::Addr4(_) | Value::Addr6(_) => Self::Addr,
            Value::Net4(..) | Value::Net6(_) => Self::Subnet,
            _ => return None,
        })
    }

    /// The name of the type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::String => "string",
            Self::Pattern => "pattern",
            Self::Port => "port",
            Self::Addr => "addr",
            Self::Subnet => "subnet",
        }
    }
}

/// An expression for a number of seconds.
pub(super) fn seconds(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { not_finite(value) }
}

/// An expression for a NaN or an infinity, for which the language has no literal.
fn not_finite(value: f64) -> String {
    let text = if value.is_nan() { "nan" } else { "inf" };
    let sign = if value.is_sign_negative() && !value.is_nan() { "-" } else { "" };
    format!("to_double(\"{sign}{text}\")")
}

/// An expression for an atomic value other than a time, or for an empty container.
pub(super) fn expression(program: &Program, value: &Value) -> String {
    match value {
        Value::Short(_) | Value::Long(_) => string(value.str_bytes()),
        Value::Interval(value) => format!("double_to_interval({})", seconds(*value)),
        Value::Double(value) => double(*value),
        Value::Enum(ty, value) => enum_text(program, *ty, *value).to_owned(),
        Value::Func(func) => match program.functions.find(func.func) {
            Some(function) => program.name(function.name).to_owned(),
            None => String::new(),
        },
        Value::Addr6(_) => format!("[{}]", text(program, value)),
        Value::Net6(_) => {
            let text = text(program, value);
            match text.split_once('/') {
                Some((prefix, width)) => format!("[{prefix}]/{width}"),
                None => text,
            }
        }
        Value::Table(table) if program.types.is_set(table.ty()) => "set()".to_owned(),
        Value::Table(_) => "table()".to_owned(),
        Value::Vector(_) => "vector()".to_owned(),
        _ => text(program, value),
    }
}

fn text(program: &Program, value: &Value) -> String {
    String::from_utf8_lossy(&describe(program, value, Form::Print)).into_owned()
}

/// The text that `print` shows if it parses to the same number, else the number with all digits.
fn double(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let mut shown = Vec::new();
    crate::support::format::double(&mut shown, value);
    match String::from_utf8(shown) {
        Ok(shown) if shown.parse() == Ok(value) => shown,
        _ => format!("{value:?}"),
    }
}

/// A quoted string literal; bytes other than printable ASCII are escaped.
fn string(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for byte in bytes {
        match byte {
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            0x0c => text.push_str("\\f"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x0b => text.push_str("\\v"),
            b'\\' => text.push_str("\\\\"),
            b'"' => text.push_str("\\\""),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(
            string(b"a\"b\\\r\n\x07\x08\x0b\x0c\t\0\xff~"),
            r#""a\"b\\\r\n\a\b\v\f\t\000\377~""#
        );
    }

    #[test]
    fn doubles_keep_their_digits() {
        assert_eq!(double(1.0), "1.0");
        assert_eq!(double(0.25), "0.25");
        assert_eq!(double(1_234_567.8), "1234567.8");
        assert_eq!(double(f64::NEG_INFINITY), "to_double(\"-inf\")");
        assert_eq!(double(f64::NAN), "to_double(\"nan\")");
    }

    #[test]
    fn networks_and_addresses_of_version_6_are_in_brackets() {
        let program = Program::default();
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&[0x20, 0x01]);
        assert_eq!(expression(&program, &Value::addr(bytes)), "[2001::]");
        assert_eq!(expression(&program, &Value::subnet(bytes, 16)), "[2001::]/16");
        assert_eq!(expression(&program, &Value::Addr4([1, 2, 3, 4])), "1.2.3.4");
    }
}
