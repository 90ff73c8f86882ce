//! UDP (RFC 768).

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ip::Ip;

/// Length of the header.
const LEN: usize = 8;

mod field {
    pub(super) const SRC_PORT: usize = 0;
    pub(super) const DST_PORT: usize = 2;
    pub(super) const LENGTH: usize = 4;
    pub(super) const CHECKSUM: usize = 6;
}

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// The length field: length of header and data. 0 in jumbograms, and with segmentation offload.
    pub length: u16,
    /// The checksum field; [`crate::checksum::udp`] checks it.
    pub checksum: u16,
    /// The captured data.
    pub payload: &'a [u8],
    /// Length of the data on the wire, by the length of the IP header.
    pub payload_len: u32,
}

impl Udp<'_> {
    /// The fault of a length field that contradicts the IP header. The datagram is processed
    /// nevertheless.
    #[inline]
    pub fn len_fault(&self) -> Option<Error> {
        let by_ip = i64::from(self.payload_len) + LEN as i64;
        (i64::from(self.length) != by_ip)
            .then(|| Error::UdpLen { stated: i64::from(self.length), by_ip })
    }

    /// Length of the data by the length field, which conn.log counts; negative if the field is less
    /// than the length of the header.
    #[inline]
    pub fn stated_len(&self) -> i32 {
        i32::from(self.length) - LEN as i32
    }
}

/// Parses the UDP header of a datagram.
///
/// # Errors
/// [`Error::DatagramTooShort`] if the IP payload is shorter than the header, and
/// [`Error::TruncatedTransport`] if the capture is.
#[inline]
pub fn udp<'a>(ip: &Ip<'a>) -> Result<Udp<'a>, Error> {
    ip.check_transport(LEN, Layer::Udp)?;
    let data = ip.payload;
    Ok(Udp {
        src_port: bytes::u16_at(data, field::SRC_PORT),
        dst_port: bytes::u16_at(data, field::DST_PORT),
        length: bytes::u16_at(data, field::LENGTH),
        checksum: bytes::u16_at(data, field::CHECKSUM),
        payload: bytes::from(data, LEN),
        payload_len: ip.transport_len() - LEN as u32,
    })
}

#[cfg(test)]
mod tests {
    use crate::checksum;
    use crate::checksum::Checksum;
    use crate::ip;

    use super::*;

    /// 192.0.2.1:53 → 192.0.2.2:1234, "hi!".
    fn datagram() -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        p.extend_from_slice(&[0, 53, 0x04, 0xd2, 0, 11, 0, 0, b'h', b'i', b'!']);
        p
    }

    #[test]
    fn reads_every_field() {
        let p = datagram();
        let u = udp(&ip(&p, 31, false).unwrap()).unwrap();
        assert_eq!((u.src_port, u.dst_port, u.length, u.payload_len), (53, 1234, 11, 3));
        assert_eq!((u.payload, u.stated_len(), u.len_fault()), (&b"hi!"[..], 3, None));
    }

    #[test]
    fn lengths_that_disagree() {
        let mut p = datagram();
        p[25] = 4;
        let u = udp(&ip(&p, 31, false).unwrap()).unwrap();
        assert_eq!(u.len_fault(), Some(Error::UdpLen { stated: 4, by_ip: 11 }));
        assert_eq!((u.stated_len(), u.payload), (-4, &b"hi!"[..]));
        p[3] = 27;
        assert_eq!(
            udp(&ip(&p, 31, false).unwrap()).unwrap_err(),
            Error::DatagramTooShort(Layer::Udp)
        );
    }

    #[test]
    fn checksums() {
        let mut p = datagram();
        assert_eq!(checksum::udp(&ip(&p, 31, false).unwrap()), Checksum::Valid);
        let mut sum = checksum::Sum::default();
        let i = ip(&p, 31, false).unwrap();
        sum.add_pseudo(i.src, i.dst, 17, 11);
        sum.add(&p[20..]);
        let c = sum.checksum();
        p[26..28].copy_from_slice(&c);
        assert_eq!(checksum::udp(&ip(&p, 31, false).unwrap()), Checksum::Valid);
        p[30] ^= 1;
        assert_eq!(checksum::udp(&ip(&p, 31, false).unwrap()), Checksum::Invalid);
        assert_eq!(checksum::udp(&ip(&p[..30], 31, false).unwrap()), Checksum::Unverifiable);
    }
}
