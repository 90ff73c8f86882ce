//! The packet filter of an analysis.

use gannet_capture::Packet;
use gannet_filter::Filter;

/// Drops packets that do not match a filter, and counts them.
pub(crate) struct PacketFilter<'a> {
    filter: Option<&'a Filter>,
    /// Number of dropped packets.
    pub(crate) rejected: u64,
}

impl<'a> PacketFilter<'a> {
    /// Creates a packet filter; `None` passes all packets.
    pub(crate) fn new(filter: Option<&'a Filter>) -> Self {
        Self { filter, rejected: 0 }
    }

    /// Whether all packets pass.
    pub(crate) fn is_open(&self) -> bool {
        self.filter.is_none()
    }

    /// Whether a packet passes.
    #[inline]
    pub(crate) fn passes(&mut self, packet: &Packet<'_>) -> bool {
        let Some(filter) = self.filter else { return true };
        let passes = filter.matches(packet.link_type.0, packet.data, packet.wire_len);
        self.rejected += u64::from(!passes);
        passes
    }
}
