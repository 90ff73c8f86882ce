//! Numbers of variable length: seven bits a byte, the lowest first.

/// Appends a number.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Bytes of a number.
#[inline]
pub(crate) fn len(v: u64) -> usize {
    (u64::BITS - (v | 1).leading_zeros()).div_ceil(7) as usize
}

/// Writes a number into exactly [`len`] bytes.
#[inline]
pub(crate) fn write(out: &mut [u8], mut v: u64) {
    let Some((last, others)) = out.split_last_mut() else { return };
    for byte in others {
        *byte = v as u8 | 0x80;
        v >>= 7;
    }
    *last = v as u8;
}

/// Takes a number from the front.
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut v = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(first & 0x7f);
        // Bits beyond 64 are no number.
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
        fn numbers_come_back(v: u64, shift in 0..64) {
            let v: u64 = v >> shift;
            let mut out = Vec::new();
            super::put(&mut out, v);
            let mut same = vec![0; super::len(v)];
            super::write(&mut same, v);
            prop_assert_eq!(&same, &out);
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
