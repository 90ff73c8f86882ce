//! A common view of both IP versions for the layers above.

use gannet_base::Addr;

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ipv4;
use crate::ipv6;

/// A datagram, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// Source address; the home address if IPv6 destination options contain one (RFC 6275 §6.3).
    pub src: Addr,
    /// Final destination; with an IPv6 routing header that has segments left, its last address.
    pub dst: Addr,
    /// All IP headers as captured, extension headers and options included.
    pub header: &'a [u8],
    /// The captured payload, cut to the length in the header. All captured bytes if the header
    /// contains no payload length.
    pub payload: &'a [u8],
    /// Length of the payload on the wire. With a total length of zero, the number of captured
    /// bytes.
    pub payload_len: u32,
    /// Length of headers and payload on the wire, as stated in the header: zero if segmentation
    /// offload left the field empty.
    pub total_len: u32,
    /// Length of all IP headers.
    pub header_len: u16,
    /// The protocol of the payload, after the extension headers.
    pub protocol: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// 4 or 6.
    pub version: u8,
    /// The end of the chain of IPv6 headers.
    pub upper: UpperLayer,
    /// Set if this is a fragment.
    pub fragment: Option<Fragment>,
}

/// The end of a chain of IPv6 extension headers; always the payload for IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpperLayer {
    /// The payload, of type [`Ip::protocol`].
    Payload,
    /// An ESP header (RFC 4303): the rest is encrypted.
    Esp,
    /// A mobility header (RFC 6275), which counts as an IP header and should be the last one.
    Mobility,
}

/// The position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification: sixteen bits for IPv4, thirty-two for IPv6.
    pub id: u32,
    /// Offset of the fragment in the datagram, in bytes.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// Whether the Don't Fragment bit of IPv4 is set in spite of the fragmentation.
    pub dont_fragment: bool,
}

impl Ip<'_> {
    /// Length of the transport header and its payload on the wire. The number of captured bytes if
    /// the IP header contains no length.
    #[inline]
    pub fn transport_len(&self) -> u32 {
        if self.payload_len == 0 { self.payload.len() as u32 } else { self.payload_len }
    }

    /// Whether the whole payload was captured.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.payload.len() >= self.payload_len as usize
    }

    /// IPv6 flow label (RFC 6437); zero for IPv4.
    pub fn flow_label(&self) -> u32 {
        if self.version == 6 { bytes::u32_at(self.header, 0) & 0x000f_ffff } else { 0 }
    }

    /// Checks that a transport header of `min` bytes fits into the payload, and was captured.
    #[inline]
    pub(crate) fn check_transport(&self, min: usize, layer: Layer) -> Result<(), Error> {
        if self.payload.len() >= min && self.payload_len as usize >= min {
            return Ok(());
        }
        // Passed by value, so that the view need not be in memory.
        short_transport((self.total_len, self.payload_len), self.payload.len(), min, layer)
    }

    /// Writes the header of the whole datagram, made from the header of its first fragment: the
    /// fragment fields are cleared, and the length is that of `payload_len` bytes, truncated to
    /// sixteen bits. With the payload appended, [`ip`] parses the result. The header checksum is
    /// not updated.
    pub fn write_reassembled_header(&self, payload_len: usize, out: &mut Vec<u8>) {
        if self.version == 4 {
            ipv4::write_reassembled_header(self.header, payload_len, out);
        } else {
            ipv6::write_reassembled_header(self.header, self.protocol, payload_len, out);
        }
    }
}

#[cold]
fn short_transport(
    (total_len, payload_len): (u32, u32),
    captured: usize,
    min: usize,
    layer: Layer,
) -> Result<(), Error> {
    if total_len != 0 && payload_len != 0 && (payload_len as usize) < min {
        return Err(Error::DatagramTooShort(layer));
    }
    if captured < min {
        return Err(Error::TruncatedTransport(layer));
    }
    Ok(())
}

/// Parses the IP headers of `data`. `wire_len` is the number of bytes from the first header to the
/// end of the packet on the wire; it exceeds the length of `data` if the capture truncated the
/// packet.
///
/// Without `verify_checksum` the checksums of IPv4 and mobility headers are not verified, and a
/// total length of zero (segmentation offload) means all captured bytes.
///
/// # Errors
/// The fault that stops the dissection. Faults that do not stop it are dropped: see [`ip_with`].
#[inline]
pub fn ip(data: &[u8], wire_len: u32, verify_checksum: bool) -> Result<Ip<'_>, Error> {
    ip_with(data, wire_len, verify_checksum, &mut |_| {})
}

/// Like [`ip`], and reports the faults that do not stop the dissection to `on_fault`, in packet order.
/// Faults of IPv6 extension headers are reported even if an error follows.
///
/// # Errors
/// The fault that stops the dissection.
#[inline]
pub fn ip_with<'a>(
    data: &'a [u8],
    wire_len: u32,
    verify_checksum: bool,
    on_fault: &mut impl FnMut(Error),
) -> Result<Ip<'a>, Error> {
    if data.len() < ipv4::MIN_LEN {
        return Err(Error::Truncated(Layer::Ip));
    }
    match bytes::u8_at(data, 0) >> 4 {
        4 => ipv4::parse(data, wire_len, verify_checksum, on_fault),
        6 => ipv6::parse(data, wire_len, verify_checksum, on_fault),
        version => Err(Error::UnknownVersion(Layer::Ip, version)),
    }
}
