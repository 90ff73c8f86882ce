//! What the primitives of an expression read of a packet.

use gannet_wire::Network;
use gannet_wire::link_type;

/// The network layer right after the link header, as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    V4,
    V6,
    Arp,
    /// Anything else, also whatever is inside of tags and labels.
    Other,
}

/// A packet.
pub(crate) struct Packet<'a> {
    pub(crate) layer: Layer,
    data: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(crate) fn new(link_type: u16, data: &'a [u8]) -> Self {
        // A radiotap header counts as a layer of its own; other link headers are one.
        let direct = if link_type == link_type::IEEE802_11_RADIO { 3 } else { 2 };
        let none = Self { layer: Layer::Other, data: &[] };
        let Ok(frame) = gannet_wire::link(link_type, data, data.len() as u32) else { return none };
        match frame.network {
            _ if frame.depth > direct => none,
            Network::Ip(data) => match data.first().map(|b| b >> 4) {
                Some(4) => Self { layer: Layer::V4, data },
                Some(6) => Self { layer: Layer::V6, data },
                _ => none,
            },
            Network::Arp(data) => Self { layer: Layer::Arp, data },
            _ => none,
        }
    }

    /// Bytes of the network layer; `None` if they were not captured.
    pub(crate) fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.data.get(at..)?.first_chunk().copied()
    }

    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.data.get(at).copied()
    }

    pub(crate) fn half(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layer_is_what_follows_the_link_header() {
        let layer = |link_type, data: &[u8]| Packet::new(link_type, data).layer;
        assert_eq!(layer(101, &[0x45, 0]), Layer::V4);
        assert_eq!(layer(101, &[0x60, 0]), Layer::V6);
        assert_eq!(layer(101, &[0x30, 0]), Layer::Other);
        assert_eq!(layer(9, &[0, 0x21, 0x45]), Layer::V4);
        assert_eq!(layer(9, &[2, 0x81, 0, 0, 1, 0, 0x45]), Layer::Other);
        assert_eq!(layer(1, &[0; 4]), Layer::Other);
    }
}
