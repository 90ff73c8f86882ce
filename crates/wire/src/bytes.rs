//! Big-endian reads at fixed offsets. Callers check the length of the header once, then read its
//! fields with these functions. An offset outside the data reads as zero, so a missing check causes
//! a wrong field and never a panic.

#[inline(always)]
pub(crate) fn u8_at(data: &[u8], at: usize) -> u8 {
    data.get(at).copied().unwrap_or(0)
}

#[inline(always)]
pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    array_at(data, at).map_or(0, u16::from_be_bytes)
}

#[inline(always)]
pub(crate) fn u24_at(data: &[u8], at: usize) -> u32 {
    u32::from(u8_at(data, at)) << 16 | u32::from(u16_at(data, at + 1))
}

#[inline(always)]
pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    array_at(data, at).map_or(0, u32::from_be_bytes)
}

#[inline(always)]
pub(crate) fn array_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..).and_then(|d| d.first_chunk::<N>()).copied()
}

/// The bytes from `at` on; empty if the data is shorter.
#[inline(always)]
pub(crate) fn from(data: &[u8], at: usize) -> &[u8] {
    data.get(at..).unwrap_or(&[])
}

/// At most the first `len` bytes.
#[inline(always)]
pub(crate) fn cut(data: &[u8], len: usize) -> &[u8] {
    data.get(..len).unwrap_or(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_big_endian_and_never_panic() {
        let d = [1, 2, 3, 4, 5];
        assert_eq!(u16_at(&d, 1), 0x0203);
        assert_eq!(u24_at(&d, 2), 0x0003_0405);
        assert_eq!(u32_at(&d, 1), 0x0203_0405);
        assert_eq!(u32_at(&d, 2), 0);
        assert_eq!(u8_at(&d, usize::MAX), 0);
        assert_eq!(from(&d, 9), &[] as &[u8]);
        assert_eq!(cut(&d, 9), &d);
        assert_eq!(cut(&d, 2), &[1, 2]);
    }
}
