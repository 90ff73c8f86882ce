//! What events of packets show of fragments.

use gannet_protocols::packet::build;

/// What events show of a datagram that was reassembled.
#[derive(Debug, Default)]
pub(crate) struct Reassembled {
    /// Flags and offset for the event of its packet.
    pub(crate) flags: Option<u16>,
    /// What the event of the frame shows.
    pub(crate) frame: Option<build::Reassembled>,
}

impl Reassembled {
    /// The events of the datagram itself are raised, or never will be.
    pub(crate) fn forget_flags(&mut self) {
        self.flags = None;
    }
}
