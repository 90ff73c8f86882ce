//! Variable-length integers: unsigned LEB128, seven bits per byte, lowest bits first.

/// Appends an encoded integer.
#[inline(always)]
pub(crate) fn append(out: &mut Vec<u8>, v: u64) {
    if v < 0x80 {
        return out.push(v as u8);
    }
    let (begin, (word, len)) = (out.len(), encode_word(v));
    if len > size_of_val(&word) {
        return append_long(out, v, len);
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(begin + len);
}

#[cold]
fn append_long(out: &mut Vec<u8>, v: u64, len: usize) {
    let begin = out.len();
    out.resize(begin + len, 0);
    encode_into(out.get_mut(begin..).unwrap_or_default(), v);
}

/// Encodes an integer as a little-endian word and the number of its bytes. If that exceeds 8, the word is incomplete.
#[inline(always)]
pub(crate) fn encode_word(v: u64) -> (u64, usize) {
    let len = (u64::BITS - (v | 1).leading_zeros()).div_ceil(7) as usize;
    // Spread the bits until each byte has seven of them.
    let halves = v & 0x0fff_ffff | (v & 0x00ff_ffff_f000_0000) << 4;
    let quarters = halves & 0x0000_3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    let bytes = quarters & 0x007f_007f_007f_007f | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    // Set the continuation bit of all but the last byte.
    let others = (1_u64 << (8 * (len as u32 - 1) % u64::BITS)) - 1;
    (bytes | 0x8080_8080_8080_8080 & others, len)
}

/// Encodes an integer so that it fills all of `out`.
pub(crate) fn encode_into(out: &mut [u8], mut v: u64) {
    let Some((last, others)) = out.split_last_mut() else { return };
    for byte in others {
        *byte = v as u8 | 0x80;
        v >>= 7;
    }
    *last = v as u8;
}

/// Decodes an integer from the start of `from` and removes its bytes; `None` if it is truncated or exceeds 64 bits.
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut v = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(first & 0x7f);
        // More than 64 bits.
        if shift == 63 && bits > 1 {
            return None;
        }
        v |= bits << shift;
        if first & 0x80 == 0 {
            return Some(v);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_round_trip(v: u64, shift in 0..64) {
            let v: u64 = v >> shift;
            let mut out = Vec::new();
            super::append(&mut out, v);
            let (word, len) = super::encode_word(v);
            let mut same = vec![0; len];
            super::encode_into(&mut same, v);
            prop_assert_eq!(&same, &out);
            prop_assert!(len > 8 || word.to_le_bytes().get(..len) == Some(&out[..]));
            let mut rest = &out[..];
            prop_assert_eq!(super::take(&mut rest), Some(v));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while super::take(&mut rest).is_some() {}
        }
    }
}
