//! The segment of a TCP connection whose headers signatures match.

use gannet_base::Addr;
use gannet_base::Dir;

/// The first TCP segment of a side, stored until its headers are matched.
pub(crate) struct FirstPacket {
    /// Originator of the connection when the segment was captured.
    pub(crate) orig: (Addr, u16),
    /// Side that sent it.
    pub(crate) from: Dir,
    /// IP version.
    pub(crate) version: u8,
    /// The IP header.
    pub(crate) header: Vec<u8>,
    /// Bytes after the IP headers, at most as many as header tests of signatures can use.
    pub(crate) payload: Vec<u8>,
    /// Protocol number of the IP header.
    pub(crate) protocol: u8,
}
