//! Reading a message whose parts are found by offsets.

/// A place in a message. Everything returns `None` beyond its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, pos: 0 }
    }

    /// Bytes read and skipped so far.
    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn left(&self) -> usize {
        self.data.len() - self.pos
    }

    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.pos.checked_add(n)?;
        let part = self.data.get(self.pos..end)?;
        self.pos = end;
        Some(part)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes whose number a message announces in 32 bits.
    pub(super) fn bytes(&mut self, n: u32) -> Option<&'a [u8]> {
        self.take(usize::try_from(n).ok()?)
    }

    /// Skips to a place, unless it lies behind.
    pub(super) fn skip_to(&mut self, at: i64) -> Option<()> {
        let at = usize::try_from(at.max(0)).ok()?;
        self.take(at.saturating_sub(self.pos)).map(|_| ())
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.data[self.pos..];
        self.pos = self.data.len();
        rest
    }

    /// A string up to its NUL, or the end: in UTF-16, aligned to two bytes, or in bytes. `odd` tells
    /// whether the message that the alignment counts from began one byte before.
    pub(super) fn string(&mut self, unicode: bool, odd: bool) -> Option<&'a [u8]> {
        if !unicode {
            let rest = &self.data[self.pos..];
            let n = memchr::memchr(0, rest).map_or(rest.len(), |n| n + 1);
            return self.take(n);
        }
        self.take((self.pos + usize::from(odd)) & 1)?;
        let rest = &self.data[self.pos..];
        let end = rest.chunks_exact(2).position(|u| u == [0, 0]);
        self.take(end.map_or(rest.len(), |n| 2 * n + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let mut c = Cursor::new(b"ab\0cd");
        assert_eq!(c.string(false, false), Some(&b"ab\0"[..]));
        assert_eq!(c.string(false, false), Some(&b"cd"[..]));
        assert_eq!(c.string(false, false), Some(&b""[..]));
        let mut c = Cursor::new(b"_\0a\0\0\0b\0\0\0");
        c.u8();
        assert_eq!(c.string(true, false), Some(&b"a\0\0\0"[..]));
        assert_eq!((c.string(true, true), c.pos()), (Some(&b"\0\0"[..]), 9));
    }

    #[test]
    fn places() {
        let mut c = Cursor::new(&[1, 2, 3, 4, 5]);
        assert_eq!((c.skip_to(-60), c.skip_to(2), c.u8()), (Some(()), Some(()), Some(3)));
        assert_eq!((c.skip_to(1), c.left(), c.skip_to(6), c.left()), (Some(()), 2, None, 2));
        assert_eq!((c.bytes(u32::MAX), c.rest()), (None, &[4, 5][..]));
    }
}
