//! State of the streams whose bytes are reported to listeners.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidMap;

/// The streams whose bytes are reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedStreams {
    pub(super) conns: UidMap<Streams>,
}

/// Reporting state of both streams of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    /// Sequence number of the next byte of each stream, relative to the SYN, which is 0.
    pub(super) next: [u64; 2],
    /// Whether scripts write the streams to files.
    pub(super) recorded: [bool; 2],
    /// Number of missing bytes after the recorded part of each stream, and the time at which they
    /// were noticed.
    pub(super) missing: [Option<(Time, u64)>; 2],
}

impl Default for Streams {
    fn default() -> Self {
        Self { next: [1; 2], recorded: [false; 2], missing: [None; 2] }
    }
}

impl ReportedStreams {
    /// Removes the state of a connection that ended.
    #[inline]
    pub(super) fn end(&mut self, conn: Uid) {
        if !self.conns.is_empty() {
            self.conns.remove(&conn);
        }
    }
}
