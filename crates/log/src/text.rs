//! Writing short texts without a call or a loop: most columns of rows are short.

/// A destination for text, piece by piece.
pub trait Sink {
    /// Appends the first `len` of `N` bytes: one store of a fixed size, whose remaining bytes are
    /// overwritten later.
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize);
    /// Appends a text of `len` bytes, `N` to `2 * N`, given as its two ends.
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

/// The memory of one line.
///
/// It never grows: text that does not fit is dropped, [`written`](Self::written) returns `None`,
/// and the caller writes the line again with more room. So each piece of text costs only one
/// comparison.
#[derive(Debug)]
pub struct Room<'a> {
    bytes: &'a mut [u8],
    at: u32,
}

/// The position of a line that did not fit; it fails every bounds check.
const OVER: u32 = u32::MAX;

impl<'a> Room<'a> {
    /// Writes with a separate function, which takes and returns the position in registers.
    #[inline(always)]
    pub(crate) fn with(&mut self, write: impl FnOnce(&mut [u8], u32) -> u32) {
        self.at = write(self.bytes, self.at);
    }

    /// Continues at a position that [`with`](Self::with) passed.
    #[inline(always)]
    pub(crate) fn at(bytes: &'a mut [u8], at: u32) -> Self {
        Self { bytes, at }
    }

    /// The position to return.
    #[inline(always)]
    pub(crate) fn place(self) -> u32 {
        self.at
    }

    /// An empty line in fewer than 2³² - 2¹⁶ bytes.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes written; `None` if they did not fit.
    #[inline]
    pub fn written(&self) -> Option<usize> {
        (self.at != OVER).then_some(self.at as usize)
    }

    /// The position of the next piece of text; out of bounds if the line did not fit.
    #[inline(always)]
    pub(crate) fn position(&self) -> u32 {
        self.at
    }

    /// Whether nothing was written yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Appends the first `len` of `room` bytes that `fill` writes.
    #[inline(always)]
    pub(crate) fn put_with(&mut self, room: usize, len: usize, fill: impl FnOnce(&mut [u8])) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + room) {
            Some(place) => {
                fill(place);
                self.at += len as u32;
            }
            None => self.at = OVER,
        }
    }

    /// Appends the bytes that `fill` writes to the front of `N` bytes; `fill` returns their number.
    /// Returns `false` and does nothing if there is less room than `N`.
    #[inline(always)]
    pub(crate) fn fill<const N: usize>(
        &mut self,
        fill: impl FnOnce(&mut [u8; N]) -> usize,
    ) -> bool {
        let rest = self.bytes.get_mut(self.at as usize..);
        let place = rest.and_then(<[u8]>::first_chunk_mut);
        place.map(|place| self.at += fill(place) as u32).is_some()
    }

    /// Leaves room for bytes that are overwritten later.
    #[inline(always)]
    pub(crate) fn skip(&mut self, len: usize) {
        let at = self.at as usize + len;
        self.at = if at <= self.bytes.len() { at as u32 } else { OVER };
    }

    /// Overwrites the first bytes.
    #[inline(always)]
    pub(crate) fn replace_first<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(first) = self.bytes.first_chunk_mut() {
            *first = bytes;
        }
    }

    /// Overwrites bytes at a position. The line does not fit if that is out of bounds.
    #[inline(always)]
    pub(crate) fn replace<const N: usize>(&mut self, at: u32, bytes: [u8; N]) {
        let rest = self.bytes.get_mut(at as usize..);
        match rest.and_then(<[u8]>::first_chunk_mut) {
            Some(place) => *place = bytes,
            None => self.at = OVER,
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

impl Sink for Room<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + N) {
            Some(place) => {
                place.copy_from_slice(&bytes);
                self.at += len as u32;
            }
            None => self.at = OVER,
        }
    }

    #[inline(always)]
    fn put_ends<const N: usize>(&mut self, first: [u8; N], last: [u8; N], len: usize) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + len) {
            Some(place) => {
                if let Some(place) = place.first_chunk_mut() {
                    *place = first;
                }
                if let Some(place) = place.last_chunk_mut() {
                    *place = last;
                }
                self.at += len as u32;
            }
            None => self.at = OVER,
        }
    }

    #[inline(always)]
    fn put_all(&mut self, s: &[u8]) {
        let at = self.at as usize;
        match self.bytes.get_mut(at..at + s.len()) {
            Some(place) => {
                place.copy_from_slice(s);
                self.at += s.len() as u32;
            }
            None => self.at = OVER,
        }
    }
}

/// A text of `N` to `2 * N` bytes as its two ends, which overlap.
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

/// Up to three bytes, or more than sixteen.
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

/// Low bits of the bytes of a word.
const LOW: u64 = 0x0101_0101_0101_0101;
/// High bits of the bytes of a word.
const HIGH: u64 = LOW << 7;

/// A nonzero result if a byte of the word is not printable ASCII or is one of two given bytes.
///
/// Bytes above a match may be reported as well: borrows and carries go upwards.
#[inline(always)]
fn special(word: u64, a: u8, b: u8) -> u64 {
    let below = word.wrapping_sub(LOW * 0x20);
    let above = word.wrapping_add(LOW);
    // Zero where the byte is the one looked for. Bytes beyond ASCII are reported in any case.
    let is = |c: u8| (word ^ (LOW * u64::from(c))).wrapping_sub(LOW);
    (word | below | above | is(a) | is(b)) & HIGH
}

/// Appends a text if every byte of it is printable ASCII and none is one of the two given; returns
/// whether it did.
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

        /// The same with a `Room`, if it is large enough; if not, it reports nothing as written.
        #[test]
        fn a_room_takes_what_fits(room in 0_usize..120, texts in proptest::collection::vec(proptest::collection::vec(0_u8.., 0..40), 0..5)) {
            let mut bytes = vec![7; room];
            let mut out = Room::new(&mut bytes);
            for text in &texts {
                append(&mut out, text);
            }
            let all = texts.concat();
            match out.written() {
                Some(n) => prop_assert_eq!(&bytes[..n], &all[..]),
                None => prop_assert!(all.len() + 16 > room),
            }
        }

        #[test]
        fn tells_plain_text(mut s in proptest::collection::vec(0x1f_u8..0x81, 0..80), at: prop::sample::Index, c: u8) {
            for b in &mut s {
                *b = if matches!(*b, b',' | b'\\') || !(0x20..0x7f).contains(b) { b'~' } else { *b };
            }
            for odd in [false, true] {
                if odd && !s.is_empty() {
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
