//! VXLAN (RFC 7348): Ethernet in UDP.

use super::Inner;
use super::Refusal;
use crate::bytes;
use crate::error::Layer;

const LEN: usize = 8;
/// Flag: the network identifier is valid.
const VALID: u8 = 0x08;
const VNI: usize = 4;

/// A VXLAN packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vxlan<'a> {
    /// VXLAN network identifier, twenty-four bits.
    pub vni: u32,
    /// The Ethernet frame.
    pub inner: Inner<'a>,
}

/// Parses a UDP payload as VXLAN.
///
/// # Errors
/// A violation if the header is truncated or lacks the flag, and
/// [`Error::EmptyTunnel`](crate::Error::EmptyTunnel) if no payload follows.
pub fn vxlan(data: &[u8]) -> Result<Vxlan<'_>, Refusal<'_>> {
    let Some((head, inner)) = data.split_first_chunk::<LEN>() else {
        return Err(Refusal::violation("VXLAN header truncation", data));
    };
    if head[0] & VALID == 0 {
        return Err(Refusal::violation("VXLAN 'I' flag not set", data));
    }
    if inner.is_empty() {
        return Err(Refusal::empty(Layer::Vxlan));
    }
    Ok(Vxlan { vni: bytes::u24_at(head, VNI), inner: Inner::Ethernet(inner) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_rejected_payloads() {
        let p = [8, 0, 0, 0, 0, 1, 2, 0, 9];
        let v = vxlan(&p).unwrap();
        assert_eq!((v.vni, v.inner), (0x0102, Inner::Ethernet(&[9])));
        assert_eq!(vxlan(&p[..7]), Err(Refusal::violation("VXLAN header truncation", &p[..7])));
        assert!(matches!(vxlan(&p[..8]), Err(Refusal::Faulty { confirmed: true, .. })));
        assert_eq!(vxlan(&[0; 9]), Err(Refusal::violation("VXLAN 'I' flag not set", &[0; 9])));
    }
}
