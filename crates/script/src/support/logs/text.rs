//! Rows as text with separators.

use std::io::Write;

use crate::support::field::Field;
use crate::support::format;

/// Text format of rows, which the input reader can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFormat {
    /// Separator of columns.
    pub separator: Vec<u8>,
    /// Separator of elements of sets and vectors.
    pub set_separator: Vec<u8>,
    /// Text of an empty value.
    pub empty_field: Vec<u8>,
    /// Text of an unset value.
    pub unset_field: Vec<u8>,
    /// Whether valid UTF-8 is written unescaped.
    pub utf8: bool,
}

impl Default for TextFormat {
    fn default() -> Self {
        TextFormat {
            separator: b"\t".to_vec(),
            set_separator: b",".to_vec(),
            empty_field: b"(empty)".to_vec(),
            unset_field: b"-".to_vec(),
            utf8: true,
        }
    }
}

impl TextFormat {
    /// Appends a row without line end.
    pub fn row(&self, out: &mut Vec<u8>, fields: &[Field<'_>]) {
        let mut scratch = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            self.add(out, &mut scratch, field, index == 0);
        }
    }

    /// Appends the next field of a row; `begins` for the first one.
    pub fn add(&self, out: &mut Vec<u8>, scratch: &mut Vec<u8>, field: &Field<'_>, begins: bool) {
        if !begins {
            out.extend_from_slice(&self.separator);
        }
        // Most fields are unset.
        if matches!(field, Field::Unset) && self.unset_field == b"-" && self.is_plain(true) {
            return out.push(b'-');
        }
        self.field(out, scratch, field, true, false);
    }

    /// Appends one value, with escaped elements of sets but without escaping column separators, as for SQLite.
    pub fn value(&self, out: &mut Vec<u8>, field: &Field<'_>) {
        self.field(out, &mut Vec::new(), field, false, false);
    }

    fn field(
        &self,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
        field: &Field<'_>,
        in_row: bool,
        in_set: bool,
    ) {
        scratch.clear();
        if self.is_plain(in_row) {
            if Self::number(out, field) {
                return;
            }
        } else if Self::number(scratch, field) {
            return self.escaped(out, scratch, in_row, in_set);
        }
        match field {
            Field::Unset => scratch.extend_from_slice(&self.unset_field),
            Field::Double(value) => format::double_of_log(scratch, *value),
            Field::String(text) | Field::Enum(text) | Field::File(text) | Field::Func(text) => {
                return self.string(out, text, in_row, in_set);
            }
            Field::Pattern(text, ..) => scratch.extend_from_slice(text),
            Field::Set(elements) | Field::Vector(elements) => {
                if elements.is_empty() {
                    return self.escaped(out, &self.empty_field, in_row, in_set);
                }
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(&self.set_separator);
                    }
                    self.field(out, scratch, element, in_row, true);
                }
                return;
            }
            // Numbers and addresses are handled above.
            _ => return,
        }
        self.escaped(out, scratch, in_row, in_set);
    }

    /// Whether no separator can occur in a number or an address.
    fn is_plain(&self, in_row: bool) -> bool {
        in_row && self.separator == b"\t" && self.set_separator == b","
    }

    /// Appends a value whose text is a number, an address or a letter, which never needs escaping. Returns
    /// whether it was one.
    fn number(out: &mut Vec<u8>, field: &Field<'_>) -> bool {
        match field {
            Field::Bool(value) => out.push(if *value { b'T' } else { b'F' }),
            Field::Int(value) => {
                if *value < 0 {
                    out.push(b'-');
                }
                gannet_log::write_count(out, value.unsigned_abs());
            }
            Field::Count(value) => gannet_log::write_count(out, *value),
            Field::Port(value, _) => gannet_log::write_count(out, u64::from(*value)),
            Field::Subnet(address, width) => format::subnet(out, *address, u32::from(*width)),
            Field::Addr(address) => format::addr(out, *address),
            Field::Interval(value) | Field::Time(value) => format::seconds_of_log(out, *value),
            _ => return false,
        }
        true
    }

    fn string(&self, out: &mut Vec<u8>, text: &[u8], in_row: bool, in_set: bool) {
        if text.is_empty() {
            return self.escaped(out, &self.empty_field, in_row, in_set);
        }
        // Escape text that would be read as an empty or unset value.
        if (text == self.unset_field || text == self.empty_field)
            && let Some((first, rest)) = text.split_first()
        {
            let _ = write!(out, "\\x{first:02x}");
            return self.escaped(out, rest, in_row, in_set);
        }
        self.escaped(out, text, in_row, in_set);
    }

    fn escaped(&self, out: &mut Vec<u8>, text: &[u8], in_row: bool, in_set: bool) {
        if self.utf8 && in_row && self.separator == b"\t" && (!in_set || self.set_separator == b",")
        {
            return format::escape::log_text(out, text, in_set);
        }
        let separator = if in_row { self.separator.as_slice() } else { b"" };
        let set_separator = if in_set { self.set_separator.as_slice() } else { b"" };
        escape(out, text, [separator, set_separator], self.utf8);
    }
}

/// Appends `text` with backslashes, separators and unprintable characters escaped.
pub(super) fn escape(out: &mut Vec<u8>, text: &[u8], separators: [&[u8]; 2], utf8: bool) {
    let special = |rest: &[u8]| -> usize {
        match rest {
            [first, ..] if !utf8 && !(0x20..0x7f).contains(first) => 1,
            [b'\\', ..] => 1,
            _ => {
                let found = separators.iter().find(|s| !s.is_empty() && rest.starts_with(s));
                found.map_or(0, |separator| separator.len())
            }
        }
    };
    let mut rest = text;
    while !rest.is_empty() {
        let at = (0..rest.len()).find(|at| special(&rest[*at..]) > 0).unwrap_or(rest.len());
        let (plain, escaped) = rest.split_at(at);
        if utf8 {
            segment(out, plain);
        } else {
            out.extend_from_slice(plain);
        }
        let (escaped, after) = escaped.split_at(special(escaped));
        for byte in escaped {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte => drop(write!(out, "\\x{byte:02x}")),
            }
        }
        rest = after;
    }
}

/// Appends text without separators and backslashes, escaped as in gannet's native logs.
fn segment(out: &mut Vec<u8>, text: &[u8]) {
    // A tab is a control character like others.
    format::escape::log_text(out, text, false);
}
