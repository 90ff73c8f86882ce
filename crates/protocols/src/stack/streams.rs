//! Streams whose bytes listeners want.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidMap;

/// The streams of which bytes are reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedStreams {
    pub(super) conns: UidMap<Streams>,
}

/// Both streams of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// The position of the next byte of each; the SYN is the first one.
    pub(super) next: [u64; 2],
    /// Whether scripts write them to files.
    pub(super) recorded: [bool; 2],
    /// Bytes that each side's stream misses behind what was recorded, and when that was found.
    pub(super) missing: [Option<(Time, u64)>; 2],
}

impl Default for Streams {
    fn default() -> Self {
        Self { next: [1; 2], recorded: [false; 2], missing: [None; 2] }
    }
}

impl ReportedStreams {
    /// A connection is over.
    #[inline]
    pub(super) fn end(&mut self, conn: Uid) {
        if !self.conns.is_empty() {
            self.conns.remove(&conn);
        }
    }
}
