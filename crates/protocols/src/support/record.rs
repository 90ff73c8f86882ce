//! Records as parsed by the parsers that binpac generates for Zeek, with their errors for missing
//! bytes.

use std::fmt;

use super::Bytes;

/// The prefix of Zeek's error messages.
pub const BINPAC: &str = "Binpac exception: binpac exception: ";

/// A field or record that exceeds the message, with Zeek's name of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBound {
    record: &'static str,
    /// The last field that was to be read; empty for the whole record.
    field: &'static str,
    /// Minimum number of bytes of the record, or announced number of elements.
    need: i64,
    /// Number of available bytes; negative if Zeek reports the number of missing bytes.
    have: i64,
}

impl OutOfBound {
    /// Creates an error: `need` is the number of needed bytes from the start of the record, or the
    /// number of elements; `have` is the available number.
    pub fn new(record: &'static str, field: &'static str, need: i64, have: usize) -> Self {
        Self::short_of(record, field, need, have as i64)
    }

    /// Like [`new`](Self::new), for an available number that may be negative.
    pub fn short_of(record: &'static str, field: &'static str, need: i64, have: i64) -> Self {
        Self { record, field, need, have }
    }
}

impl fmt::Display for OutOfBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, field, need, have } = self;
        let colon = if field.is_empty() { "" } else { ":" };
        write!(f, "{BINPAC}out_of_bound: {record}{colon}{field}: {need} > {have}")
    }
}

/// The text of an error, without Zeek's common prefix.
#[cfg(test)]
pub(crate) fn error_text(wrong: impl fmt::Display) -> String {
    let text = wrong.to_string();
    text.strip_prefix(BINPAC).unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// The fault of a record; analyzer.log contains its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// The record exceeds its container.
    Short(OutOfBound),
    /// This field has an invalid value.
    Value(&'static str),
    /// A text has an invalid form.
    Syntax,
    /// No variant of this record has this number.
    Case {
        /// Zeek's name of the record.
        record: &'static str,
        /// The number.
        index: u32,
    },
    /// The bytes match no variant of any record.
    NoCase,
    /// An ASN.1 value has an unexpected tag.
    Tag {
        /// The tag of the value.
        got: u8,
        /// The expected tag.
        expect: u8,
    },
    /// An ASN.1 integer has this number of bytes, which exceeds nine.
    Wide(usize),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(e) => e.fmt(f),
            Self::Value(field) => write!(f, "{BINPAC}&enforce violation : {field}"),
            Self::Syntax => write!(f, "{BINPAC}string mismatch at -"),
            Self::Case { record, index } => {
                write!(f, "{BINPAC}invalid index for case: {record}: {index}")
            }
            Self::NoCase => write!(f, "{BINPAC}invalid case: -"),
            Self::Tag { got, expect } => write!(f, "{BINPAC}Got ASN.1 tag {got}, expect {expect}"),
            Self::Wide(n) => write!(f, "{BINPAC}ASN.1 integer width overflow: {n}"),
        }
    }
}

impl From<OutOfBound> for RecordFault {
    fn from(e: OutOfBound) -> Self {
        Self::Short(e)
    }
}

/// Bounds of an enclosing record, for its parts.
#[derive(Clone, Copy, Debug)]
pub struct RecordBounds {
    record: &'static str,
    /// Number of bytes from the start of the record to the end of its container.
    have: usize,
}

impl RecordBounds {
    /// The bounds of a record with this name, which begins at the current position.
    pub fn new(record: &'static str, b: &Bytes<'_>) -> Self {
        Self { record, have: b.0.len() }
    }

    /// Reads the next part of the record, whose length was announced. Zeek interprets lengths as
    /// signed 32-bit numbers.
    pub fn part<'a>(
        self,
        b: &mut Bytes<'a>,
        field: &'static str,
        length: u64,
    ) -> Result<&'a [u8], OutOfBound> {
        let length = length as i32;
        let part = usize::try_from(length).ok().and_then(|n| b.take(n));
        let at = self.have - b.0.len();
        let need = || at as i64 + i64::from(length);
        part.ok_or_else(|| OutOfBound::new(self.record, field, need(), self.have))
    }
}

/// A reader that starts at the beginning of a record. Errors contain the end that the record would
/// need and the number of available bytes.
pub struct Record<'a> {
    /// Name of the record.
    pub record: &'static str,
    /// Bytes from the start of the record; may extend beyond its end.
    pub data: &'a [u8],
    /// Current offset in the record.
    pub at: usize,
}

impl<'a> Record<'a> {
    /// Creates a reader at the start of the record.
    pub fn new(record: &'static str, data: &'a [u8]) -> Self {
        Self { record, data, at: 0 }
    }

    fn error(&self, field: &'static str, need: i64, have: usize) -> OutOfBound {
        OutOfBound::new(self.record, field, need, have)
    }

    /// Reads the next `n` bytes, the last of which belong to `field`.
    pub fn upto(&mut self, field: &'static str, n: usize) -> Result<&'a [u8], OutOfBound> {
        let end = self.at + n;
        let got = self.data.get(self.at..end);
        let got = got.ok_or_else(|| self.error(field, end as i64, self.data.len()))?;
        self.at = end;
        Ok(got)
    }

    /// Reads the next `n` bytes, which are the whole record or a nested one.
    pub fn all(&mut self, n: usize) -> Result<&'a [u8], OutOfBound> {
        self.upto("", n)
    }

    /// Skips a string whose computed length may be negative.
    pub fn string(&mut self, field: &'static str, n: i64) -> Result<(), OutOfBound> {
        match usize::try_from(n) {
            Ok(n) => self.upto(field, n).map(drop),
            Err(_) => Err(self.error(field, self.at as i64 + n, self.data.len())),
        }
    }

    /// Skips a list of `n` records of `size` bytes each.
    pub fn list(&mut self, field: &'static str, n: u16, size: usize) -> Result<(), OutOfBound> {
        let left = self.data.len() - self.at;
        if usize::from(n) > left / size {
            return Err(self.error(field, i64::from(n), left));
        }
        self.at += usize::from(n) * size;
        Ok(())
    }

    /// The little-endian two-byte number at offset `at`, which was read before.
    pub fn u16_at(&self, at: usize) -> u16 {
        self.data.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
    }

    /// Like [`u16_at`](Self::u16_at), as a length.
    pub fn length_at(&self, at: usize) -> i64 {
        i64::from(self.u16_at(at))
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        &self.data[self.at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing() {
        let mut r = Record::new("Record", &[3, 0, b'a', b'b']);
        assert_eq!(r.upto("len", 2), Ok(&[3, 0][..]));
        let e = r.string("text", r.length_at(0)).unwrap_err().to_string();
        assert_eq!(e, "Binpac exception: binpac exception: out_of_bound: Record:text: 5 > 4");
        assert_eq!(r.string("text", -3), Err(OutOfBound::new("Record", "text", -1, 4)));
        assert_eq!(r.list("list", 2, 2), Err(OutOfBound::new("Record", "list", 2, 2)));
        assert_eq!(r.list("list", 1, 2), Ok(()));
        let e = Record::new("Other", &[]).all(1).unwrap_err().to_string();
        assert!(e.ends_with("out_of_bound: Other: 1 > 0"));
    }
}
