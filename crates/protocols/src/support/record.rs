//! Records as parsed by Zeek's generated parsers, with their errors for missing bytes.

use std::fmt;

use super::Bytes;

/// The prefix of Zeek's error messages.
pub const BINPAC: &str = "Binpac exception: binpac exception: ";

/// A field or record that reaches beyond the message, by the name Zeek has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBound {
    record: &'static str,
    /// The last field of those that were to be read, or empty for the whole record.
    field: &'static str,
    /// Bytes that the record needs at least, or objects that are announced.
    need: i64,
    /// Bytes there are; less than nothing where Zeek says how many are missing.
    have: i64,
}

impl OutOfBound {
    /// With the bytes that are needed from the begin of the record on, or the number of elements, and what
    /// there is.
    pub fn new(record: &'static str, field: &'static str, need: i64, have: usize) -> Self {
        Self::short_of(record, field, need, have as i64)
    }

    /// The same where what there is may be less than nothing.
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
pub(crate) fn said(wrong: impl fmt::Display) -> String {
    let text = wrong.to_string();
    text.strip_prefix(BINPAC).unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// The fault of a record; its text goes to analyzer.log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// It reaches beyond what holds it.
    Short(OutOfBound),
    /// The field named has a value that it must not have.
    Value(&'static str),
    /// A text has an invalid form.
    Words,
    /// No part of the record named has this number.
    Case {
        /// The record, by the name that Zeek has for it.
        record: &'static str,
        /// The number.
        index: u32,
    },
    /// The bytes are no part of any record.
    NoCase,
    /// A value of ASN.1 has another tag than it must have.
    Tag {
        /// The tag it has.
        got: u8,
        /// The tag it must have.
        expect: u8,
    },
    /// An integer of ASN.1 has this many bytes: more than nine.
    Wide(usize),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(e) => e.fmt(f),
            Self::Value(field) => write!(f, "{BINPAC}&enforce violation : {field}"),
            Self::Words => write!(f, "{BINPAC}string mismatch at -"),
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

/// The enclosing record: the bounds of its parts.
#[derive(Clone, Copy, Debug)]
pub struct RecordBounds {
    record: &'static str,
    /// Bytes from the record's begin to the end of what holds it.
    have: usize,
}

impl RecordBounds {
    /// The record of this name that begins here.
    pub fn new(record: &'static str, b: &Bytes<'_>) -> Self {
        Self { record, have: b.0.len() }
    }

    /// The next part of it, whose length was announced. Zeek takes lengths for signed numbers of 32
    /// bits.
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

/// A reader that starts at the begin of a record. A field that does not fit is reported with the
/// end that the record would need and the number of bytes available.
pub struct Record<'a> {
    /// Name of the record.
    pub record: &'static str,
    /// Its bytes, and those behind it.
    pub data: &'a [u8],
    /// How far it is read.
    pub at: usize,
}

impl<'a> Record<'a> {
    /// Nothing is read yet.
    pub fn new(record: &'static str, data: &'a [u8]) -> Self {
        Self { record, data, at: 0 }
    }

    fn error(&self, field: &'static str, need: i64, have: usize) -> OutOfBound {
        OutOfBound::new(self.record, field, need, have)
    }

    /// The next `n` bytes, which end with this field.
    pub fn upto(&mut self, field: &'static str, n: usize) -> Result<&'a [u8], OutOfBound> {
        let end = self.at + n;
        let got = self.data.get(self.at..end);
        let got = got.ok_or_else(|| self.error(field, end as i64, self.data.len()))?;
        self.at = end;
        Ok(got)
    }

    /// The next `n` bytes, if they are all of the record or a record of their own.
    pub fn all(&mut self, n: usize) -> Result<&'a [u8], OutOfBound> {
        self.upto("", n)
    }

    /// A string whose length was computed from what came before, and may be less than nothing.
    pub fn string(&mut self, field: &'static str, n: i64) -> Result<(), OutOfBound> {
        match usize::try_from(n) {
            Ok(n) => self.upto(field, n).map(drop),
            Err(_) => Err(self.error(field, self.at as i64 + n, self.data.len())),
        }
    }

    /// A list of `n` records of `size` bytes each.
    pub fn list(&mut self, field: &'static str, n: u16, size: usize) -> Result<(), OutOfBound> {
        let left = self.data.len() - self.at;
        if usize::from(n) > left / size {
            return Err(self.error(field, i64::from(n), left));
        }
        self.at += usize::from(n) * size;
        Ok(())
    }

    /// The little-endian number of two bytes at this place, which has been read.
    pub fn u16_at(&self, at: usize) -> u16 {
        self.data.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
    }

    /// The same as a length.
    pub fn length_at(&self, at: usize) -> i64 {
        i64::from(self.u16_at(at))
    }

    /// The rest.
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
