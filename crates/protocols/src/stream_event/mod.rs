//! Raises events with the bytes of connections, for scripts that parse them.
//!
//! The analyzer has no port and detects nothing: a script registers it for a port, or for a
//! protocol of HTTP upgrades. It has no log and no service name.

pub mod events;

use events::StreamDeliver;
use events::StreamUndelivered;
use gannet_base::Dir;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;

/// Analyzers and events.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry::new(Tag::StreamEvent, "STREAM_EVENT", "stream_event")],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};

/// The analyzer of one connection.
pub struct Analyzer {
    /// Number of bytes of each direction, delivered or missing.
    seen: [u64; 2],
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { seen: [0; 2] }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.seen[from.index()] += data.len() as u64;
        cx.raise(|c| StreamDeliver { c, is_orig: from.is_orig(), data });
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        let seq = self.seen[from.index()] + 1;
        self.seen[from.index()] += len;
        cx.raise(|c| StreamUndelivered { c, is_orig: from.is_orig(), seq, len });
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.seen.swap(0, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn bytes_and_gaps_have_places_in_each_direction() {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"abc");
        a.gap(&mut h.cx(), Dir::Orig, 7);
        a.gap(&mut h.cx(), Dir::Resp, 1);
        assert_eq!(a.seen, [10, 1]);
        a.flip(&mut h.cx());
        assert_eq!(a.seen, [1, 10]);
    }
}
