//! Reading and writing numbers in the byte order of the capture.

/// Two bytes at `at`; 0 past the end, so that callers check lengths only once.
#[inline(always)]
pub(crate) fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let word = bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
    if big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
}

/// Four bytes at `at`; 0 past the end.
#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word = bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// Eight bytes at `at`; 0 past the end.
#[inline(always)]
pub(crate) fn u64_at(bytes: &[u8], at: usize, big: bool) -> u64 {
    let word = bytes.get(at..).and_then(|b| b.first_chunk()).copied().unwrap_or_default();
    if big { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_and_the_end() {
        let b = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(u16_at(&b, 1, true), 0x0203);
        assert_eq!(u32_at(&b, 4, false), 0x0807_0605);
        assert_eq!(u64_at(&b, 0, true), 0x0102_0304_0506_0708);
        assert_eq!(u32_at(&b, 5, true), 0);
        assert_eq!(u64_at(&b, usize::MAX, true), 0);
    }
}
