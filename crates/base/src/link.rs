//! The link layer of packets.

/// What the link layer of a connection's first packet says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Outer VLAN tag.
    pub vlan: Option<u16>,
    /// Inner VLAN tag.
    pub inner_vlan: Option<u16>,
    /// Link-layer addresses of sender and receiver.
    pub l2: [Option<[u8; 6]>; 2],
}

impl LinkState {
    /// Both tags as one number; 0 without any.
    pub fn tags(&self) -> u32 {
        let tag = |tag: Option<u16>| tag.map_or(0, |tag| u32::from(tag) | 0x8000);
        tag(self.vlan) << 16 | tag(self.inner_vlan)
    }
}
