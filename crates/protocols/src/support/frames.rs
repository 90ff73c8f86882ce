//! Extracts length-prefixed messages from a byte stream that is split at arbitrary positions.

/// Splits one direction of a stream into messages.
///
/// A message within one chunk is borrowed; only one that spans several chunks is copied.
///
/// ```
/// use gannet_protocols::support::Frames;
/// // One byte of length, then as many bytes.
/// let need = |d: &[u8]| d.first().map_or(1, |n| 1 + usize::from(*n));
/// let mut frames = Frames::new(100);
/// let mut data: &[u8] = b"\x01a\x03bc";
/// assert_eq!(frames.next(&mut data, need), Some(&b"\x01a"[..]));
/// assert_eq!(frames.next(&mut data, need), None);
/// let mut data: &[u8] = b"d";
/// assert_eq!(frames.next(&mut data, need), Some(&b"\x03bcd"[..]));
/// ```
#[derive(Debug)]
pub struct Frames {
    stored: Vec<u8>,
    /// Whether the stored message was returned: it is cleared before the next one.
    is_returned: bool,
    /// Number of bytes to skip, which exceed the limit of the last message.
    skip: usize,
    limit: usize,
}

impl Frames {
    /// Creates a buffer for messages of at most `limit` bytes: of a longer one, the first `limit`
    /// bytes are returned and the rest is skipped.
    pub fn new(limit: usize) -> Self {
        Self { stored: Vec::new(), is_returned: false, skip: 0, limit: limit.max(1) }
    }

    /// Drops the beginning of a message, after a gap.
    pub fn reset(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Whether an incomplete message is stored.
    pub fn has_partial(&self) -> bool {
        !self.is_returned && !self.stored.is_empty()
    }

    /// The stored beginning of an incomplete message.
    pub fn partial(&self) -> &[u8] {
        if self.is_returned { &[] } else { &self.stored }
    }

    /// Returns the next message and removes its bytes from `data`. `None` if `data` contains no
    /// further complete message: the rest is stored, and `data` is empty.
    ///
    /// `need` receives the beginning of a message (possibly nothing, possibly more than the
    /// message) and returns its length, or the number of bytes needed to determine it.
    pub fn next<'s, 'd: 's>(
        &'s mut self,
        data: &mut &'d [u8],
        need: impl Fn(&[u8]) -> usize,
    ) -> Option<&'s [u8]> {
        if self.is_returned {
            self.stored.clear();
            self.is_returned = false;
        }
        let skip = self.skip.min(data.len());
        *data = &data[skip..];
        self.skip -= skip;
        if data.is_empty() {
            return None;
        }
        if self.stored.is_empty() {
            let whole: &'d [u8] = data;
            let n = need(whole).max(1);
            if n <= whole.len() && n <= self.limit {
                *data = &whole[n..];
                return Some(&whole[..n]);
            }
        }
        loop {
            let n = need(&self.stored).max(1);
            let stored_len = n.min(self.limit);
            if self.stored.len() >= stored_len {
                self.skip = n - stored_len;
                self.is_returned = true;
                return Some(&self.stored);
            }
            let take = (stored_len - self.stored.len()).min(data.len());
            if take == 0 {
                return None;
            }
            self.reserve(take, stored_len);
            self.stored.extend_from_slice(&data[..take]);
            *data = &data[take..];
        }
    }

    /// Reserves capacity for `more` bytes of a message of `whole` bytes: doubles the capacity as
    /// bytes arrive, up to the message's length.
    #[inline]
    fn reserve(&mut self, more: usize, whole: usize) {
        let (len, capacity) = (self.stored.len(), self.stored.capacity());
        if len + more > capacity {
            self.stored.reserve_exact((2 * capacity).min(whole).max(len + more) - len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn need(d: &[u8]) -> usize {
        match d {
            [a, b, ..] => 2 + usize::from(u16::from_be_bytes([*a, *b])),
            _ => 2,
        }
    }

    fn all(frames: &mut Frames, chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for chunk in chunks {
            let mut data = *chunk;
            while let Some(f) = frames.next(&mut data, need) {
                out.push(f.to_vec());
            }
        }
        out
    }

    #[test]
    fn long_ones_are_cut_and_skipped() {
        let mut frames = Frames::new(4);
        let got = all(&mut frames, &[b"\0\x08abc", b"defgh\0\x01", b"x\0\0"]);
        assert_eq!(got, [&b"\0\x08ab"[..], b"\0\x01x", b"\0\0"]);
    }

    #[test]
    fn a_message_takes_no_more_than_it_needs() {
        let mut frames = Frames::new(100_000);
        let piece = [0xff; 1_460];
        let mut came = 0;
        while came < 0xffff {
            let mut data = &piece[..];
            let whole = frames.next(&mut data, need).is_some();
            came += piece.len();
            assert_eq!(whole, came >= 0xffff + 2);
            let capacity = frames.stored.capacity();
            assert!(
                capacity <= 0xffff + 2 && capacity <= 2 * came.max(piece.len()),
                "{capacity} of {came}"
            );
        }
    }

    #[test]
    fn reset_forgets() {
        let mut frames = Frames::new(100);
        assert!(all(&mut frames, &[b"\0\x05ab"]).is_empty());
        assert!(frames.has_partial());
        assert_eq!(frames.partial(), b"\0\x05ab");
        frames.reset();
        assert_eq!(all(&mut frames, &[b"\0\x01z"]), [b"\0\x01z"]);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(sizes in prop::collection::vec(0u8..9, 0..8), at in 0usize..60) {
            let mut bytes = Vec::new();
            for n in &sizes {
                bytes.extend_from_slice(&[0, *n]);
                bytes.extend(std::iter::repeat_n(*n, usize::from(*n)));
            }
            let at = at.min(bytes.len());
            let whole = all(&mut Frames::new(6), &[&bytes]);
            prop_assert_eq!(whole.len(), sizes.len());
            let cut = all(&mut Frames::new(6), &[&bytes[..at], &bytes[at..]]);
            prop_assert_eq!(whole, cut);
        }
    }
}
