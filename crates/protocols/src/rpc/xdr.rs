//! Reading XDR (RFC 4506), big-endian and in units of four bytes.

/// A decoder of the rest of a message.
///
/// Values beyond the end are zero or empty, and so are all later ones: a caller decodes a whole
/// structure and checks [`is_whole`](Self::is_whole) at the end. The padding of the last string of
/// a message may be missing; the remaining length is then [negative](Self::left).
#[derive(Clone, Copy, Debug)]
pub struct Xdr<'a> {
    rest: &'a [u8],
    left: i64,
    is_whole: bool,
}

impl<'a> Xdr<'a> {
    /// Maximum length of a string in bytes, unless stated otherwise.
    pub const MAX_STRING: u32 = 8192;

    /// Decodes a message, or a part of one.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, left: data.len() as i64, is_whole: true }
    }

    /// A decoder without data, for a message without contents.
    pub fn empty() -> Self {
        Self { rest: &[], left: 0, is_whole: false }
    }

    /// Whether all decoded values were within the message.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Number of remaining bytes; negative if padding is missing.
    pub fn left(&self) -> i64 {
        self.left
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Skips the remaining bytes.
    pub fn skip_rest(&mut self) {
        (self.rest, self.left) = (&[], 0);
    }

    /// Decodes `n` bytes and skips the padding after them; the caller checks `n`.
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

    /// Decodes a 32-bit integer.
    pub fn u32(&mut self) -> u32 {
        let four = self.take(4).and_then(|four| four.first_chunk());
        four.map_or(0, |four| u32::from_be_bytes(*four))
    }

    /// Decodes a 64-bit integer.
    pub fn u64(&mut self) -> u64 {
        let eight = self.take(8).and_then(|eight| eight.first_chunk());
        eight.map_or(0, |eight| u64::from_be_bytes(*eight))
    }

    /// Decodes an integer and returns whether it is not 0.
    pub fn bool(&mut self) -> bool {
        self.u32() != 0
    }

    /// Decodes seconds and nanoseconds, and returns nanoseconds.
    pub fn nanos(&mut self) -> i64 {
        let both = self.u64();
        let (seconds, nanos) = ((both >> 32) as i64, i64::from(both as u32));
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }

    /// Decodes seconds and nanoseconds, and returns seconds.
    pub fn seconds(&mut self) -> f64 {
        let both = self.u64();
        f64::from((both >> 32) as u32) + f64::from(both as u32) / 1e9
    }

    /// Decodes a string of at most [`MAX_STRING`](Self::MAX_STRING) bytes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.opaque(Self::MAX_STRING)
    }

    /// Decodes a string of at most `max` bytes.
    pub fn opaque(&mut self, max: u32) -> Option<&'a [u8]> {
        let n = self.u32();
        if n > max {
            self.is_whole = false;
        }
        self.take(n as usize)
    }

    /// Decodes a string that may be truncated, and returns its available bytes.
    pub fn truncated_opaque(&mut self) -> Option<&'a [u8]> {
        // As in Zeek, values from 2^31 on are negative.
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

    /// Skips a verifier or credential (RFC 5531 section 8.2).
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
        assert_eq!((x.truncated_opaque(), x.left()), (Some(&b"abcd"[..]), 0));
        let mut x = Xdr::new(b"\x80\0\0\0abcd");
        assert_eq!((x.truncated_opaque(), x.is_whole()), (None, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data: Vec<u8>) {
            let mut x = Xdr::new(&data);
            while x.is_whole() && x.left() > 0 {
                x.string();
                x.u64();
                x.truncated_opaque();
            }
        }
    }
}
