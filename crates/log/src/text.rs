//! Short texts, written without a call and without a loop: rows are made of little else.

/// Appends the first `len` of `N` bytes: one store of a fixed size, of which the rest is taken back.
#[inline(always)]
pub(crate) fn put<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N], len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// Two overlapping ends of a text make the whole: up to sixteen bytes in a register, and zeros.
#[inline(always)]
fn gather(s: &[u8]) -> Option<u128> {
    let n = s.len();
    if let (9..=16, Some(a), Some(b)) = (n, s.first_chunk(), s.last_chunk()) {
        let shift = 8 * (n - 8);
        return Some(
            u128::from(u64::from_le_bytes(*a)) | u128::from(u64::from_le_bytes(*b)) << shift,
        );
    }
    if let (4..=8, Some(a), Some(b)) = (n, s.first_chunk(), s.last_chunk()) {
        let shift = 8 * (n - 4);
        let ends = u64::from(u32::from_le_bytes(*a)) | u64::from(u32::from_le_bytes(*b)) << shift;
        return Some(u128::from(ends));
    }
    let byte = |i: usize| u128::from(s[i]) << (8 * i);
    match n {
        0 => Some(0),
        1..=3 => Some(byte(0) | byte(n / 2) | byte(n - 1)),
        _ => None,
    }
}

/// Appends a text that is mostly short.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, s: &[u8]) {
    match gather(s) {
        Some(text) => put(out, text.to_le_bytes(), s.len()),
        None => append_long(out, s),
    }
}

/// Seventeen bytes or more: up to 32 as two overlapping ends.
#[inline(always)]
fn append_long(out: &mut Vec<u8>, s: &[u8]) {
    match (s.first_chunk::<16>(), s.last_chunk::<16>()) {
        (Some(a), Some(b)) if s.len() <= 32 => {
            put(out, *a, s.len() - 16);
            out.extend_from_slice(b);
        }
        _ => out.extend_from_slice(s),
    }
}

/// Low bits of the bytes of a word.
const LOW: u64 = 0x0101_0101_0101_0101;
/// High bits of the bytes of a word.
const HIGH: u64 = LOW << 7;
/// A word of spaces.
const SPACES: u64 = LOW * 0x20;

/// Bits of which one is set if a byte of the word is not printable ASCII, or one of two given ones.
///
/// Bytes above one that is found may be taken for found, too: borrows go upwards.
#[inline(always)]
fn special(word: u64, a: u8, b: u8) -> u64 {
    let is = |c: u8| {
        let rest = word ^ (LOW * u64::from(c));
        rest.wrapping_sub(LOW) & !rest
    };
    (word | word.wrapping_sub(SPACES) | is(0x7f) | is(a) | is(b)) & HIGH
}

#[inline(always)]
fn special_in(word: u128, a: u8, b: u8) -> u64 {
    special(word as u64, a, b) | special((word >> 64) as u64, a, b)
}

/// Appends a text if every byte of it is printable ASCII and none is among the two given; returns
/// whether it did.
#[inline]
pub(crate) fn append_plain(out: &mut Vec<u8>, s: &[u8], a: u8, b: u8) -> bool {
    if let Some(text) = gather(s) {
        let spaces = u128::from(SPACES) << 64 | u128::from(SPACES);
        let padding = spaces.checked_shl(8 * s.len() as u32).unwrap_or_default();
        if special_in(text | padding, a, b) != 0 {
            return false;
        }
        put(out, text.to_le_bytes(), s.len());
        return true;
    }
    let (chunks, _) = s.as_chunks::<16>();
    let found = |c: &[u8; 16]| special_in(u128::from_le_bytes(*c), a, b);
    let end = s.last_chunk().map_or(0, found);
    if chunks.iter().fold(end, |all, c| all | found(c)) != 0 {
        return false;
    }
    append_long(out, s);
    true
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
