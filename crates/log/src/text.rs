//! Writes short texts without a call or a loop: most columns of rows are short.

/// A destination of pieces of text.
pub trait Sink {
    /// Appends the first `len` of `N` bytes. All `N` bytes are stored; the next piece overwrites the excess.
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize);
    /// Appends a text of `len` bytes, between `N` and `2 * N`, given as its first and its last `N` bytes.
    fn put_ends<const N: usize>(&mut self, first: [u8; N], last: [u8; N], len: usize);
    /// Appends a text.
    fn put_all(&mut self, s: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let end = self.len() + len;
        self.extend_from_slice(&bytes);
        self.truncate(end);
    }

    #[inline(always)]
    fn put_ends<const N: usize>(&mut self, first: [u8; N], last: [u8; N], len: usize) {
        self.put(first, len - N);
        self.extend_from_slice(&last);
    }

    #[inline]
    fn put_all(&mut self, s: &[u8]) {
        self.extend_from_slice(s);
    }
}

/// The buffer of one line.
///
/// It never grows: text that does not fit is dropped, [`written`](Self::written) returns `None`, and the caller writes
/// the line again to a larger buffer. So each piece of text costs only one comparison.
#[derive(Debug)]
pub struct LineBuffer<'a> {
    bytes: &'a mut [u8],
    at: u32,
}

/// Position after text did not fit; it fails every bounds check.
const OVERFLOWED: u32 = u32::MAX;

impl<'a> LineBuffer<'a> {
    /// Writes with a function that takes and returns the position in registers.
    #[inline(always)]
    pub(crate) fn with(&mut self, write: impl FnOnce(&mut [u8], u32) -> u32) {
        self.at = write(self.bytes, self.at);
    }

    /// Continues at a position that [`with`](Self::with) passed to a function.
    #[inline(always)]
    pub(crate) fn at(bytes: &'a mut [u8], at: u32) -> Self {
        Self { bytes, at }
    }

    /// Returns the position, for the function to return to [`with`](Self::with).
    #[inline(always)]
    pub(crate) fn into_position(self) -> u32 {
        self.at
    }

    /// An empty line in a buffer of fewer than 2³² - 2¹⁶ bytes.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Number of bytes written; `None` if they did not fit.
    #[inline]
    pub fn written(&self) -> Option<usize> {
        (self.at != OVERFLOWED).then_some(self.at as usize)
    }

    /// The position of the next piece of text; out of bounds if the line did not fit.
    #[inline(always)]
    pub(crate) fn position(&self) -> u32 {
        self.at
    }

    /// Whether nothing is written yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Appends the first `len` of `capacity` bytes that `fill` writes.
    #[inline(always)]
    pub(crate) fn put_with(&mut self, capacity: usize, len: usize, fill: impl FnOnce(&mut [u8])) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + capacity) {
            Some(target) => {
                fill(target);
                self.at += len as u32;
            }
            None => self.at = OVERFLOWED,
        }
    }

    /// Appends the bytes that `fill` writes to the start of an array of `N` bytes; `fill` returns their number. Returns
    /// `false` and does nothing if fewer than `N` bytes are left.
    #[inline(always)]
    pub(crate) fn fill<const N: usize>(
        &mut self,
        fill: impl FnOnce(&mut [u8; N]) -> usize,
    ) -> bool {
        let rest = self.bytes.get_mut(self.at as usize..);
        let target = rest.and_then(<[u8]>::first_chunk_mut);
        target.map(|target| self.at += fill(target) as u32).is_some()
    }

    /// Reserves bytes that are overwritten later.
    #[inline(always)]
    pub(crate) fn skip(&mut self, len: usize) {
        let at = self.at as usize + len;
        self.at = if at <= self.bytes.len() { at as u32 } else { OVERFLOWED };
    }

    /// Overwrites the first bytes.
    #[inline(always)]
    pub(crate) fn replace_first<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(first) = self.bytes.first_chunk_mut() {
            *first = bytes;
        }
    }

    /// Overwrites bytes at a position. If that is out of bounds, the line does not fit.
    #[inline(always)]
    pub(crate) fn replace<const N: usize>(&mut self, at: u32, bytes: [u8; N]) {
        let rest = self.bytes.get_mut(at as usize..);
        match rest.and_then(<[u8]>::first_chunk_mut) {
            Some(target) => *target = bytes,
            None => self.at = OVERFLOWED,
        }
    }

    /// Overwrites the last byte.
    #[inline(always)]
    pub(crate) fn replace_last(&mut self, byte: u8) {
        if let Some(last) = self.bytes.get_mut((self.at as usize).wrapping_sub(1)) {
            *last = byte;
        }
    }
}

impl Sink for LineBuffer<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + N) {
            Some(target) => {
                target.copy_from_slice(&bytes);
                self.at += len as u32;
            }
            None => self.at = OVERFLOWED,
        }
    }

    #[inline(always)]
    fn put_ends<const N: usize>(&mut self, first: [u8; N], last: [u8; N], len: usize) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + len) {
            Some(target) => {
                if let Some(target) = target.first_chunk_mut() {
                    *target = first;
                }
                if let Some(target) = target.last_chunk_mut() {
                    *target = last;
                }
                self.at += len as u32;
            }
            None => self.at = OVERFLOWED,
        }
    }

    #[inline(always)]
    fn put_all(&mut self, s: &[u8]) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + s.len()) {
            Some(target) => {
                target.copy_from_slice(s);
                self.at += s.len() as u32;
            }
            None => self.at = OVERFLOWED,
        }
    }
}

/// The first and the last `N` bytes of a text of `N` to `2 * N` bytes; they overlap.
#[inline(always)]
pub(crate) fn ends<const N: usize>(s: &[u8]) -> Option<([u8; N], [u8; N])> {
    let fits = s.len() <= 2 * N;
    fits.then(|| Some((*s.first_chunk()?, *s.last_chunk()?))).flatten()
}

/// Appends a text that is usually short.
#[inline(always)]
pub fn append<S: Sink>(out: &mut S, s: &[u8]) {
    if let Some((a, b)) = ends::<4>(s) {
        out.put_ends(a, b, s.len());
    } else if let Some((a, b)) = ends::<8>(s) {
        out.put_ends(a, b, s.len());
    } else {
        append_long(out, s);
    }
}

/// Appends a text of up to three bytes, or of more than sixteen.
#[inline(always)]
fn append_long<S: Sink>(out: &mut S, s: &[u8]) {
    match (ends::<16>(s), s) {
        (Some((a, b)), _) => out.put_ends(a, b, s.len()),
        (_, []) => {}
        (_, &[a]) => out.put([a], 1),
        (_, &[a, b]) => out.put([a, b], 2),
        (_, &[a, b, c]) => out.put([a, b, c], 3),
        _ => out.put_all(s),
    }
}

/// A word with the lowest bit of each byte set.
const LOW: u64 = 0x0101_0101_0101_0101;
/// A word with the highest bit of each byte set.
const HIGH: u64 = LOW << 7;

/// A nonzero result if a byte of the word is not printable ASCII or is one of two given bytes.
///
/// Bytes above a match may be reported as well: borrows and carries go upwards.
#[inline(always)]
fn special(word: u64, a: u8, b: u8) -> u64 {
    let below = word.wrapping_sub(LOW * 0x20);
    let above = word.wrapping_add(LOW);
    // A byte equal to `c` becomes 0 and borrows. Bytes beyond ASCII are reported in any case.
    let is = |c: u8| (word ^ (LOW * u64::from(c))).wrapping_sub(LOW);
    (word | below | above | is(a) | is(b)) & HIGH
}

/// Appends a text if every byte is printable ASCII other than `a` and `b`; returns whether it was appended.
#[inline(always)]
pub(crate) fn append_plain<S: Sink>(out: &mut S, s: &[u8], a: u8, b: u8) -> bool {
    let word = |c: &[u8; 8]| special(u64::from_le_bytes(*c), a, b);
    let found = match (s.last_chunk(), ends::<4>(s)) {
        (Some(end), _) => s.as_chunks().0.iter().fold(word(end), |all, c| all | word(c)),
        (_, Some((x, y))) => {
            let (x, y) = (u32::from_le_bytes(x), u32::from_le_bytes(y));
            special(u64::from(x) | u64::from(y) << 32, a, b)
        }
        _ => u64::from(s.iter().any(|c| c.wrapping_sub(0x20) >= 0x5f || *c == a || *c == b)),
    };
    if found == 0 {
        append(out, s);
    }
    found == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn appends_as_a_vector_does(before in 0_usize..40, s in proptest::collection::vec(0_u8.., 0..80)) {
            let mut out = vec![7; before];
            append(&mut out, &s);
            prop_assert_eq!(&out[..before], vec![7; before]);
            prop_assert_eq!(&out[before..], &s[..]);
        }

        /// A `LineBuffer` has the same bytes if it is large enough, and otherwise reports that they did not fit.
        #[test]
        fn a_line_buffer_has_all_text_or_reports_overflow(capacity in 0_usize..120, texts in proptest::collection::vec(proptest::collection::vec(0_u8.., 0..40), 0..5)) {
            let mut bytes = vec![7; capacity];
            let mut out = LineBuffer::new(&mut bytes);
            for text in &texts {
                append(&mut out, text);
            }
            let all = texts.concat();
            match out.written() {
                Some(n) => prop_assert_eq!(&bytes[..n], &all[..]),
                None => prop_assert!(all.len() + 16 > capacity),
            }
        }

        #[test]
        fn plain_text_is_recognized(mut s in proptest::collection::vec(0x1f_u8..0x81, 0..80), at: prop::sample::Index, c: u8) {
            for b in &mut s {
                *b = if matches!(*b, b',' | b'\\') || !(0x20..0x7f).contains(b) { b'~' } else { *b };
            }
            for has_special in [false, true] {
                if has_special && !s.is_empty() {
                    let at = at.index(s.len());
                    s[at] = c;
                }
                let plain = s.iter().all(|c| (0x20..0x7f).contains(c) && !b",\\".contains(c));
                let mut out = vec![];
                prop_assert_eq!(append_plain(&mut out, &s, b',', b'\\'), plain);
                prop_assert_eq!(&out[..], if plain { &s[..] } else { &[] });
            }
        }
    }
}
