//! Integers and addresses at offsets of headers.

use gannet_base::Addr;

/// The 16-bit big-endian integer at offset `at`; 0 beyond the end.
pub(super) fn be16(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 2).map_or(0, |b| u64::from(u16::from_be_bytes([b[0], b[1]])))
}

/// The 32-bit big-endian integer at offset `at`; 0 beyond the end.
pub(super) fn be32(bytes: &[u8], at: usize) -> u64 {
    be16(bytes, at) << 16 | be16(bytes, at + 2)
}

pub(super) fn byte(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at).map_or(0, |b| u64::from(*b))
}

pub(super) fn addr6(bytes: &[u8], at: usize) -> Addr {
    let found = bytes.get(at..at + 16).and_then(|b| b.try_into().ok());
    Addr::v6(found.unwrap_or_default())
}

pub(super) fn addr4(bytes: &[u8], at: usize) -> Addr {
    let found = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    Addr::v4(found.unwrap_or_default())
}
