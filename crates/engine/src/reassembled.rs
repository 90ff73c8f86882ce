//! Facts about reassembled datagrams that packet events show.

use gannet_protocols::packet::build;

/// Facts about a reassembled datagram that packet events show.
#[derive(Debug, Default)]
pub(crate) struct Reassembled {
    /// Flags and fragment offset that the event of its IP header shows.
    pub(crate) flags: Option<u16>,
    /// Data for the event of the frame.
    pub(crate) frame: Option<build::Reassembled>,
}

impl Reassembled {
    /// Called when the events of the datagram itself were raised, or cannot occur.
    pub(crate) fn clear_flags(&mut self) {
        self.flags = None;
    }
}
