//! IPv4 and IPv6 directly inside of IP (RFC 2003, RFC 2473, RFC 4213), and the check of the inner
//! packet for all tunnels that announce IP.

use crate::bytes;
use crate::error::Error;
use crate::ipv6;
use crate::protocol;

/// Why bytes are not an IP packet of a given version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotIp {
    /// Another version, or too few bytes for IPv4.
    Version,
    /// Fewer bytes than the length in the header.
    Short,
    /// More bytes than the header says.
    Long,
}

/// Whether `data` is a packet of IP protocol `protocol` (4 or 41) with the length in its header.
/// Faults of IPv6 headers are reported in either case.
pub(super) fn fit(
    data: &[u8],
    protocol: u8,
    on_fault: &mut impl FnMut(Error),
) -> Result<(), NotIp> {
    let version = bytes::u8_at(data, 0) >> 4;
    let total = match protocol {
        protocol::IPV6 => {
            if data.len() < 40 {
                return Err(NotIp::Short);
            }
            ipv6::report_faults(data, on_fault);
            if version != 6 {
                return Err(NotIp::Version);
            }
            usize::from(bytes::u16_at(data, 4)) + 40
        }
        protocol::IPV4 if data.len() >= 20 && version == 4 => usize::from(bytes::u16_at(data, 2)),
        _ => return Err(NotIp::Version),
    };
    match data.len() {
        len if len < total => Err(NotIp::Short),
        len if len > total => Err(NotIp::Long),
        _ => Ok(()),
    }
}

/// Checks the inner packet of an IP payload of protocol 4 or 41. Addresses in an error are those of
/// the enclosing header.
///
/// # Errors
/// [`Error::InnerVersion`], [`Error::InnerTooShort`] or [`Error::InnerTooLong`].
pub fn ip_in_ip(data: &[u8], protocol: u8) -> Result<&[u8], Error> {
    ip_in_ip_with(data, protocol, &mut |_| {})
}

/// Like [`ip_in_ip`], and reports the faults of the inner packet's IPv6 extension headers to `on_fault`.
///
/// # Errors
/// As [`ip_in_ip`].
pub fn ip_in_ip_with<'a>(
    data: &'a [u8],
    protocol: u8,
    on_fault: &mut impl FnMut(Error),
) -> Result<&'a [u8], Error> {
    Err(match fit(data, protocol, on_fault) {
        Ok(()) => return Ok(data),
        Err(NotIp::Version) => Error::InnerVersion,
        Err(NotIp::Short) => Error::InnerTooShort,
        Err(NotIp::Long) => Error::InnerTooLong,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_versions() {
        let mut v4 = vec![0x45, 0, 0, 24];
        v4.resize(24, 0);
        let name = |d: &[u8], p| ip_in_ip(d, p).err();
        assert_eq!(name(&v4, 4), None);
        assert_eq!(name(&v4[..23], 4), Some(Error::InnerTooShort));
        assert_eq!(name(&v4[..19], 4), Some(Error::InnerVersion));
        let mut v6 = vec![0x60, 0, 0, 0, 0, 4];
        v6.resize(44, 0);
        assert_eq!(name(&v6, 41), None);
        assert_eq!(name(&v6, 4), Some(Error::InnerVersion));
        assert_eq!(name(&v6[..39], 41), Some(Error::InnerTooShort));
        v6.push(0);
        assert_eq!(name(&v6, 41), Some(Error::InnerTooLong));
        assert_eq!(name(&v4, 47), Some(Error::InnerVersion));
    }
}
