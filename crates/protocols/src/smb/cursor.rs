//! Parser of records whose parts are at offsets, with Zeek's descriptions of missing data.

use crate::support::OutOfBound;
use crate::support::RecordFault;

/// A parsed value, or the fault of the record.
pub(super) type Read<T> = Result<T, RecordFault>;

/// A cursor that starts at the beginning of a record. Lengths, offsets and errors about missing
/// bytes are relative to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    record: &'static str,
    data: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of a record with this name; `data` may extend beyond the record.
    pub(super) fn new(record: &'static str, data: &'a [u8]) -> Self {
        Self { record, data, pos: 0 }
    }

    /// A cursor for a nested record that begins at the current position.
    pub(super) fn inner(&self, record: &'static str) -> Self {
        Self::new(record, &self.data[self.pos..])
    }

    /// Advances past a nested record that began at the current position.
    pub(super) fn advance_past(&mut self, inner: &Self) {
        self.pos = self.data.len().min(self.pos + inner.pos);
    }

    /// Number of bytes read and skipped so far.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    fn short(&self, field: &'static str, need: i64, have: i64) -> RecordFault {
        // Zeek reports both as 32-bit numbers.
        let (need, have) = (i64::from(need as i32), i64::from(have as i32));
        OutOfBound::short_of(self.record, field, need, have).into()
    }

    /// Reads `n` bytes. Zeek interprets `n` as a signed 32-bit number.
    pub(super) fn bytes(&mut self, field: &'static str, n: u32) -> Read<&'a [u8]> {
        let n = n as i32;
        let end = usize::try_from(n).ok().map(|n| self.pos + n);
        let Some((end, part)) = end.and_then(|e| Some((e, self.data.get(self.pos..e)?))) else {
            let need = self.pos as i64 + i64::from(n);
            return Err(self.short(field, need, self.data.len() as i64));
        };
        self.pos = end;
        Ok(part)
    }

    /// Reads fields of `n` bytes in total; `field` is the last of them.
    pub(super) fn upto(&mut self, field: &'static str, n: u32) -> Read<Fields<'a>> {
        self.bytes(field, n).map(Fields)
    }

    /// Reads the fields of a record that contains nothing else.
    pub(super) fn all(&mut self, n: u32) -> Read<Fields<'a>> {
        self.upto("", n)
    }

    /// Checks that `n` elements of at least `size` bytes fit; the caller determines their real
    /// sizes.
    pub(super) fn has(&self, field: &'static str, n: usize, size: usize) -> Read<()> {
        let remaining = self.remaining();
        if n > remaining / size {
            return Err(self.short(field, n as i64, remaining as i64));
        }
        Ok(())
    }

    /// Skips `n` elements of `size` bytes, and returns their bytes.
    pub(super) fn list(&mut self, field: &'static str, n: usize, size: usize) -> Read<&'a [u8]> {
        self.has(field, n, size)?;
        self.bytes(field, (n * size) as u32)
    }

    /// Reads a string of `n` bytes, which is a nested record.
    pub(super) fn wide(&mut self, n: u32) -> Read<&'a [u8]> {
        let mut c = self.inner("SMB2_string");
        let remaining = c.remaining() as i64;
        let text = c.bytes("s", n).map_err(|_| c.short("s", i64::from(n), remaining))?;
        self.advance_past(&c);
        Ok(text)
    }

    /// Skips to offset `at`, unless that is before the current position.
    pub(super) fn pad_to(&mut self, field: &'static str, at: i64) -> Read<()> {
        let have = self.data.len() as i64;
        if at > have {
            return Err(self.short(field, at, have - at));
        }
        self.pos = self.pos.max(usize::try_from(at).unwrap_or(0));
        Ok(())
    }

    /// Skips `n` bytes.
    pub(super) fn pad(&mut self, field: &'static str, n: usize) -> Read<()> {
        let (end, have) = (self.pos + n, self.data.len());
        if end > have {
            return Err(self.short(field, n as i64, have as i64 - end as i64));
        }
        self.pos = end;
        Ok(())
    }

    /// Takes the remaining bytes.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.data[self.pos..];
        self.pos = self.data.len();
        rest
    }

    /// Reads a string up to its NUL or the end of data: in UTF-16, aligned to two bytes, or in
    /// bytes. `odd`: whether the message to which the alignment is relative began at an odd
    /// position.
    pub(super) fn string(&mut self, unicode: bool, odd: bool) -> Read<&'a [u8]> {
        let rest = self.inner("SMB_unicode_string");
        if !unicode {
            let n = memchr::memchr(0, rest.data).map_or(rest.remaining(), |n| n + 1);
            return self.bytes("", n as u32);
        }
        let pad = (self.pos + usize::from(odd)) & 1;
        rest.has("pad", pad, 1)?;
        self.pos += pad;
        let rest = &rest.data[pad..];
        let end = rest.chunks_exact(2).position(|u| u == [0, 0]);
        self.bytes("", end.map_or(rest.len(), |n| 2 * n + 2) as u32)
    }
}

/// Integers whose presence was checked; beyond the end all are zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (value, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *value
    }

    /// Takes `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        self.array()
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(super) fn skip(&mut self, n: usize) {
        self.0 = self.0.get(n..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text<T: std::fmt::Debug>(read: Read<T>) -> String {
        crate::support::error_text(read.unwrap_err())
    }

    #[test]
    fn strings() {
        let mut c = Cursor::new("R", b"ab\0cd");
        assert_eq!(c.string(false, false), Ok(&b"ab\0"[..]));
        assert_eq!(c.string(false, false), Ok(&b"cd"[..]));
        assert_eq!(c.string(false, false), Ok(&b""[..]));
        let mut c = Cursor::new("R", b"_\0a\0\0\0b\0\0\0");
        c.pos = 1;
        assert_eq!(c.string(true, false), Ok(&b"a\0\0\0"[..]));
        assert_eq!((c.string(true, true), c.pos()), (Ok(&b"\0\0"[..]), 9));
        let mut c = Cursor::new("R", b"_");
        c.pos = 1;
        assert_eq!(
            error_text(c.string(true, false)),
            "out_of_bound: SMB_unicode_string:pad: 1 > 0"
        );
        assert_eq!(c.string(true, true), Ok(&b""[..]));
        let mut c = Cursor::new("R", b"abc");
        assert_eq!(c.wide(2), Ok(&b"ab"[..]));
        assert_eq!(error_text(c.wide(2)), "out_of_bound: SMB2_string:s: 2 > 1");
        assert_eq!(error_text(c.wide(u32::MAX)), "out_of_bound: SMB2_string:s: -1 > 1");
        assert_eq!(c.wide(1), Ok(&b"c"[..]));
    }

    #[test]
    fn places() {
        let mut c = Cursor::new("R", &[1, 2, 3, 4, 5]);
        let reads = (c.pad_to("p", -60), c.pad_to("p", 2), c.upto("n", 1).unwrap().u8());
        assert_eq!(reads, (Ok(()), Ok(()), 3));
        assert_eq!((c.pad_to("p", 1), c.remaining()), (Ok(()), 2));
        assert_eq!(error_text(c.pad_to("p", 8)), "out_of_bound: R:p: 8 > -3");
        assert_eq!(error_text(c.pad_to("p", 0xffff_fffe)), "out_of_bound: R:p: -2 > 7");
        assert_eq!(error_text(c.pad("p", 3)), "out_of_bound: R:p: 3 > -1");
        assert_eq!((c.pad("p", 1), c.pad_to("p", 5), c.remaining()), (Ok(()), Ok(()), 0));
    }

    #[test]
    fn what_is_missing() {
        let mut c = Cursor::new("R", &[1, 2, 3, 4, 5]);
        let mut f = c.upto("b", 3).unwrap();
        assert_eq!((f.u8(), f.u16(), f.u32()), (1, 0x302, 0));
        assert_eq!(error_text(c.upto("d", 4)), "out_of_bound: R:d: 7 > 5");
        assert_eq!(error_text(c.bytes("s", 0xffff_ffff)), "out_of_bound: R:s: 2 > 5");
        assert_eq!(error_text(c.list("l", 2, 2)), "out_of_bound: R:l: 2 > 2");
        assert_eq!(c.list("l", 1, 2), Ok(&[4, 5][..]));
        assert_eq!(error_text(c.inner("I").all(4)), "out_of_bound: I: 4 > 0");
    }
}
