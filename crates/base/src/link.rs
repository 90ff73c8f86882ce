//! Link-layer properties of connections.

/// Link-layer properties of a connection, from its first packet.
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
    /// Both VLAN tags as one number; 0 without tags.
    pub fn tags(&self) -> u32 {
        let tag = |tag: Option<u16>| tag.map_or(0, |tag| u32::from(tag) | 0x8000);
        tag(self.vlan) << 16 | tag(self.inner_vlan)
    }
}
