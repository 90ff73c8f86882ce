//! TCP (RFC 9293).

use std::fmt;
use std::ops::BitAnd;
use std::ops::BitOr;

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ip::Ip;

/// Length of a header without options.
const MIN_LEN: usize = 20;

mod field {
    pub(super) const SRC_PORT: usize = 0;
    pub(super) const DST_PORT: usize = 2;
    pub(super) const SEQ: usize = 4;
    pub(super) const ACK: usize = 8;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const WINDOW: usize = 14;
    pub(super) const URGENT: usize = 18;
}

/// The control bits (RFC 9293 §3.1, RFC 3168).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all of the given bits are set.
    #[inline]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of the given bits is set.
    #[inline]
    pub fn any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// Whether FIN is set.
    #[inline]
    pub fn fin(self) -> bool {
        self.has(Self::FIN)
    }

    /// Whether SYN is set.
    #[inline]
    pub fn syn(self) -> bool {
        self.has(Self::SYN)
    }

    /// Whether RST is set.
    #[inline]
    pub fn rst(self) -> bool {
        self.has(Self::RST)
    }

    /// Whether ACK is set.
    #[inline]
    pub fn ack(self) -> bool {
        self.has(Self::ACK)
    }

    /// Whether URG is set.
    #[inline]
    pub fn urg(self) -> bool {
        self.has(Self::URG)
    }
}

impl BitOr for TcpFlags {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for TcpFlags {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut first = true;
        for (bit, name) in names.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                f.write_str(if first { "" } else { "|" })?;
                f.write_str(name)?;
                first = false;
            }
        }
        if first { f.write_str("-") } else { Ok(()) }
    }
}

/// A segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte (of the SYN, if set).
    pub seq: u32,
    /// Next sequence number that the sender expects, if ACK is set.
    pub ack: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Receive window, unscaled.
    pub window: u16,
    /// The options, parsed by [`options`].
    pub options: &'a [u8],
    /// The captured data.
    pub payload: &'a [u8],
    /// Length of the data on the wire.
    pub payload_len: u32,
}

impl Tcp<'_> {
    /// The fixed header of an IP payload, without options and data. Fields that were not captured
    /// are zero.
    #[inline]
    pub fn fixed(data: &[u8]) -> Self {
        Self {
            src_port: bytes::u16_at(data, field::SRC_PORT),
            dst_port: bytes::u16_at(data, field::DST_PORT),
            seq: bytes::u32_at(data, field::SEQ),
            ack: bytes::u32_at(data, field::ACK),
            flags: TcpFlags(bytes::u8_at(data, field::FLAGS)),
            window: bytes::u16_at(data, field::WINDOW),
            ..Self::default()
        }
    }
}

/// The urgent pointer of an IP payload with a TCP header; valid if URG is set.
pub fn urgent(data: &[u8]) -> u16 {
    bytes::u16_at(data, field::URGENT)
}

/// Parses the TCP header of a datagram.
///
/// # Errors
/// [`Error::DatagramTooShort`] if the datagram is shorter than the fixed header, and
/// [`Error::TruncatedTransport`] if the captured bytes are. [`Error::TcpHeaderTooShort`] for a data
/// offset within the fixed header, and [`Error::TruncatedTcpOptions`] for options that exceed the
/// segment or the captured bytes: [`Tcp::fixed`] is complete in these cases.
#[inline]
pub fn tcp<'a>(ip: &Ip<'a>) -> Result<Tcp<'a>, Error> {
    ip.check_transport(MIN_LEN, Layer::Tcp)?;
    let data = ip.payload;
    let header_len = usize::from(bytes::u8_at(data, field::DATA_OFFSET) >> 4) * 4;
    if header_len < MIN_LEN {
        return Err(Error::TcpHeaderTooShort);
    }
    if header_len > ip.payload_len as usize || header_len > data.len() {
        return Err(Error::TruncatedTcpOptions);
    }
    let (header, payload) = data.split_at(header_len);
    let options = bytes::from(header, MIN_LEN);
    let payload_len = ip.payload_len - header_len as u32;
    Ok(Tcp { options, payload, payload_len, ..Tcp::fixed(data) })
}

/// A TCP option (kinds of the IANA registry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// Option kind: 2 for the maximum segment size, 3 for the window scale, …
    pub kind: u8,
    /// Option value, without kind and length.
    pub value: &'a [u8],
}

impl TcpOption<'_> {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub fn mss(&self) -> Option<u16> {
        (self.kind == 2 && self.value.len() == 2).then(|| bytes::u16_at(self.value, 0))
    }

    /// Window scale (RFC 7323 §2), not limited to the maximum of 14.
    pub fn window_scale(&self) -> Option<u8> {
        (self.kind == 3 && self.value.len() == 1).then(|| bytes::u8_at(self.value, 0))
    }
}

/// The options up to End of Option List or the first one that does not fit, without No-Operations.
pub fn options(options: &[u8]) -> impl Iterator<Item = TcpOption<'_>> {
    let mut rest = options;
    std::iter::from_fn(move || {
        loop {
            match *rest {
                [] | [0, ..] => return None,
                [1, ref next @ ..] => rest = next,
                [kind, len, ..] => {
                    let value = rest.get(2..usize::from(len))?;
                    rest = bytes::from(rest, usize::from(len));
                    return Some(TcpOption { kind, value });
                }
                [_] => return None,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::ip;

    use super::*;

    fn segment(tcp: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 20 + tcp.len() as u8, 0, 1, 0, 0, 64, 6, 0, 0];
        p.extend_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        p.extend_from_slice(tcp);
        p
    }

    /// A SYN from port 4000 to port 80 with MSS 1460, a no-operation and window scale 7.
    const SYN: [u8; 28] = [
        0x0f, 0xa0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x70, 0x02, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5,
        0xb4, 1, 3, 3, 7,
    ];

    #[test]
    fn reads_every_field() {
        let mut bytes = SYN.to_vec();
        bytes.extend_from_slice(b"data");
        let p = segment(&bytes);
        let t = tcp(&ip(&p, p.len() as u32, false).unwrap()).unwrap();
        assert_eq!((t.src_port, t.dst_port, t.seq, t.ack), (4000, 80, 1, 0));
        assert_eq!((t.flags, t.window, t.options.len()), (TcpFlags::SYN, 65535, 8));
        assert_eq!(urgent(&bytes), 0);
        assert_eq!((t.payload, t.payload_len), (&b"data"[..], 4));
        let o: Vec<_> = options(t.options).collect();
        assert_eq!(o[0].mss(), Some(1460));
        assert_eq!(o[1].window_scale(), Some(7));
        assert_eq!(o.len(), 2);
        assert_eq!(format!("{:?}", TcpFlags(0x12)), "SYN|ACK");
    }

    #[test]
    fn options_that_do_not_fit_end_the_list() {
        assert_eq!(options(&[2, 4, 5]).count(), 0);
        assert_eq!(options(&[2, 1, 5, 5]).count(), 0);
        assert_eq!(options(&[3, 2, 0, 9, 9]).count(), 1);
        assert_eq!(options(&[8]).count(), 0);
    }

    #[test]
    fn invalid_headers() {
        let p = segment(&SYN[..19]);
        let short = tcp(&ip(&p, p.len() as u32, false).unwrap()).unwrap_err();
        assert_eq!(short, Error::DatagramTooShort(Layer::Tcp));
        let p = segment(&SYN);
        let cut = tcp(&ip(&p[..30], p.len() as u32, false).unwrap()).unwrap_err();
        assert_eq!(cut, Error::TruncatedTransport(Layer::Tcp));
        let bad = |offset: u8| {
            let mut s = SYN;
            s[12] = offset;
            let p = segment(&s);
            tcp(&ip(&p, p.len() as u32, false).unwrap()).unwrap_err()
        };
        assert_eq!(bad(0x40), Error::TcpHeaderTooShort);
        assert_eq!(bad(0xf0), Error::TruncatedTcpOptions);
    }
}
