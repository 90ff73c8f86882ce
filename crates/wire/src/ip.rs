//! IP of either version, as one view for all layers above.

use gannet_base::Addr;

use crate::bytes;
use crate::error::Error;
use crate::error::Layer;
use crate::ipv4;
use crate::ipv6;

/// A datagram, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'a> {
    /// Source address; the home address where IPv6 destination options name one (RFC 6275 §6.3).
    pub src: Addr,
    /// Final destination; for IPv6 routing headers with segments left, their last address.
    pub dst: Addr,
    /// All IP headers as captured, extension headers and options included.
    pub header: &'a [u8],
    /// The captured payload, cut to the length in the header. If the header gives no payload
    /// length, all captured bytes.
    pub payload: &'a [u8],
    /// Bytes of payload on the wire. With a zeroed total length, the number of captured bytes.
    pub payload_len: u32,
    /// Headers and payload on the wire, as the header says: zero where segmentation offload
    /// left the field empty.
    pub total_len: u32,
    /// Bytes of all IP headers.
    pub header_len: u16,
    /// What the payload is, after the extension headers.
    pub protocol: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// 4 or 6.
    pub version: u8,
    /// What the IPv6 headers lead to.
    pub upper: UpperLayer,
    /// Set if this is a fragment.
    pub fragment: Option<Fragment>,
}

/// What the IPv6 extension headers lead to. IPv4 always leads to its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpperLayer {
    /// The payload, of type [`Ip::protocol`].
    Payload,
    /// Encryption (RFC 4303): the rest cannot be read.
    Esp,
    /// A mobility header (RFC 6275), counted among the headers; nothing should follow.
    Mobility,
}

/// The position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Identification: sixteen bits for IPv4, thirty-two for IPv6.
    pub id: u32,
    /// Bytes of the datagram before this fragment.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// Whether the Don't Fragment bit of IPv4 is set although this is a fragment.
    pub dont_fragment: bool,
}

impl Ip<'_> {
    /// Bytes of the transport header and its payload on the wire. If the IP header gives no length,
    /// the number of captured bytes.
    #[inline]
    pub fn transport_len(&self) -> u32 {
        if self.payload_len == 0 { self.payload.len() as u32 } else { self.payload_len }
    }

    /// Whether the capture holds the whole of it.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.payload.len() >= self.payload_len as usize
    }

    /// IPv6 flow label (RFC 6437); zero for IPv4.
    pub fn flow_label(&self) -> u32 {
        if self.version == 6 { bytes::u32_at(self.header, 0) & 0x000f_ffff } else { 0 }
    }

    /// A transport header of `min` bytes must fit: into the payload, and into what was captured.
    #[inline]
    pub(crate) fn check_transport(&self, min: usize, layer: Layer) -> Result<(), Error> {
        if self.payload.len() >= min && self.payload_len as usize >= min {
            return Ok(());
        }
        // By value, so that the view need not be in memory.
        short_transport((self.total_len, self.payload_len), self.payload.len(), min, layer)
    }

    /// Writes a header for the whole datagram from the header of its first fragment: the fragment
    /// fields are cleared and the length is that of `payload_len` bytes, truncated to sixteen bits.
    /// Appending the payload gives bytes that [`ip`] reads. The header checksum is not updated.
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

/// Reads the IP headers of `data`. `wire_len` is the number of bytes from here to the end of the
/// packet on the wire; more than `data` holds if the capture cut the packet.
///
/// Without `verify_checksum` the IPv4 and mobility header checksums are not checked, and a zeroed
/// total length (segmentation offload) means all captured bytes.
///
/// # Errors
/// The fault that stops the dissection. Faults that do not stop it are dropped: see [`ip_with`].
#[inline]
pub fn ip(data: &[u8], wire_len: u32, verify_checksum: bool) -> Result<Ip<'_>, Error> {
    ip_with(data, wire_len, verify_checksum, &mut |_| {})
}

/// Like [`ip`], and reports the faults that do not stop the dissection to `odd`, in order. Faults
/// of IPv6 extension headers are reported even if an error follows.
///
/// # Errors
/// The fault that stops the dissection.
#[inline]
pub fn ip_with<'a>(
    data: &'a [u8],
    wire_len: u32,
    verify_checksum: bool,
    odd: &mut impl FnMut(Error),
) -> Result<Ip<'a>, Error> {
    if data.len() < ipv4::MIN_LEN {
        return Err(Error::Truncated(Layer::Ip));
    }
    match bytes::u8_at(data, 0) >> 4 {
        4 => ipv4::parse(data, wire_len, verify_checksum, odd),
        6 => ipv6::parse(data, wire_len, verify_checksum, odd),
        version => Err(Error::UnknownVersion(Layer::Ip, version)),
    }
}
