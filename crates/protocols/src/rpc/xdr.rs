//! Reading XDR (RFC 4506), big-endian and in units of four bytes.

/// The rest of a message.
///
/// Values beyond its end are zero or empty, and from then on all others are, too: a caller reads a whole structure and asks
/// [`is_whole`](Self::is_whole) at the end. Of the last string of a message the padding may be missing; the rest is then
/// [less than nothing](Self::left).
#[derive(Clone, Copy, Debug)]
pub struct Xdr<'a> {
    rest: &'a [u8],
    left: i64,
    is_whole: bool,
}

impl<'a> Xdr<'a> {
    /// Most bytes of a string, where nothing else is said.
    pub const MAX_STRING: u32 = 8192;

    /// Reads a message, or a part of one.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, left: data.len() as i64, is_whole: true }
    }

    /// What a message without contents has: nothing can be read.
    pub fn nothing() -> Self {
        Self { rest: &[], left: 0, is_whole: false }
    }

    /// Whether all values so far were in the message.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Bytes that are left; below 0 where padding is missing.
    pub fn left(&self) -> i64 {
        self.left
    }

    /// The bytes that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the remaining bytes, which are not read.
    pub fn skip_rest(&mut self) {
        (self.rest, self.left) = (&[], 0);
    }

    /// Takes this many bytes, which are followed by padding; `n` is checked.
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(n).filter(|_| self.is_whole) else {
            self.is_whole = false;
            return None;
        };
        let padded = n.next_multiple_of(4);
        self.rest = rest.get(padded - n..).unwrap_or_default();
        self.left -= padded as i64;
        Some(taken)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> u32 {
        let four = self.take(4).and_then(|four| four.first_chunk());
        four.map_or(0, |four| u32::from_be_bytes(*four))
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> u64 {
        let eight = self.take(8).and_then(|eight| eight.first_chunk());
        eight.map_or(0, |eight| u64::from_be_bytes(*eight))
    }

    /// Whether a number is other than 0.
    pub fn bool(&mut self) -> bool {
        self.u32() != 0
    }

    /// Seconds and nanoseconds, in nanoseconds.
    pub fn nanos(&mut self) -> i64 {
        let both = self.u64();
        let (seconds, nanos) = ((both >> 32) as i64, i64::from(both as u32));
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }

    /// Seconds and nanoseconds, in seconds.
    pub fn seconds(&mut self) -> f64 {
        let both = self.u64();
        f64::from((both >> 32) as u32) + f64::from(both as u32) / 1e9
    }

    /// A string of at most [this many](Self::MAX_STRING) bytes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.opaque(Self::MAX_STRING)
    }

    /// A string of at most `max` bytes.
    pub fn opaque(&mut self, max: u32) -> Option<&'a [u8]> {
        let n = self.u32();
        if n > max {
            self.is_whole = false;
        }
        self.take(n as usize)
    }

    /// A string that may be cut: what there is of it.
    pub fn cut_opaque(&mut self) -> Option<&'a [u8]> {
        // As in Zeek, numbers from 2^31 on are negative.
        let n = i32::try_from(self.u32()).ok();
        let n = n.map(|n| (n as usize).min(self.rest.len()));
        match n {
            Some(n) => self.take(n),
            None => {
                self.is_whole = false;
                None
            }
        }
    }

    /// A verifier or credential that is not read further (RFC 5531 section 8.2).
    pub fn skip_auth(&mut self) {
        self.u32();
        self.opaque(400);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_and_strings() {
        let mut x = Xdr::new(b"\0\0\0\x07\0\0\0\x01\0\0\0\x02\0\0\0\x03abc\0\0\0\0\x01\0\0\0\x05");
        assert_eq!((x.u32(), x.u64()), (7, 0x1_0000_0002));
        assert_eq!(x.string(), Some(&b"abc"[..]));
        assert_eq!(x.nanos(), 1_000_000_005);
        assert!(x.is_whole() && x.left() == 0);
        assert_eq!((x.u32(), x.is_whole()), (0, false));
    }

    #[test]
    fn nothing_is_read_behind_a_fault() {
        let mut x = Xdr::new(b"\0\0\0\x09abcd\0\0\0\x01");
        assert_eq!(x.string(), None);
        assert_eq!((x.u32(), x.string(), x.is_whole()), (0, None, false));
        let mut x = Xdr::new(b"\0\0\0\x05abcde\0\0\0");
        assert_eq!((x.opaque(4), x.is_whole()), (None, false));
    }

    #[test]
    fn padding_may_be_missing() {
        let mut x = Xdr::new(b"\0\0\0\x05abcde");
        assert_eq!(x.string(), Some(&b"abcde"[..]));
        assert_eq!((x.is_whole(), x.left()), (true, -3));
        assert_eq!((x.u32(), x.is_whole()), (0, false));
    }

    #[test]
    fn data_may_be_cut() {
        let mut x = Xdr::new(b"\0\0\x10\0abcd");
        assert_eq!((x.cut_opaque(), x.left()), (Some(&b"abcd"[..]), 0));
        let mut x = Xdr::new(b"\x80\0\0\0abcd");
        assert_eq!((x.cut_opaque(), x.is_whole()), (None, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data: Vec<u8>) {
            let mut x = Xdr::new(&data);
            while x.is_whole() && x.left() > 0 {
                x.string();
                x.u64();
                x.cut_opaque();
            }
        }
    }
}
