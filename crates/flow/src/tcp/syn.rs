//! The state of a connection of which only a SYN was seen, in a few bytes.
//!
//! A flood of half-open connections consists of these. All other fields of [`Tcp`] follow from the
//! SYN and from [`Conn`]. A connection is packed only if unpacking restores an equal state, which
//! is checked each time.

use std::mem::ManuallyDrop;

use super::Endpoint;
use super::Phase;
use super::State;
use super::Tcp;
use super::life::ATTEMPT_DELAY;
use super::milliseconds;
use crate::Conn;

/// The facts of a SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Syn {
    /// Its sequence number.
    seq: u32,
    /// Shift count of its window, if it has the option.
    scale: Option<u8>,
    /// Number of times that its window was zero.
    closed: u8,
}

impl Syn {
    /// The SYN of a connection that consists of one SYN.
    #[inline]
    pub(crate) fn of(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        if orig.state != State::SynSent || resp.state != State::Inactive {
            return None;
        }
        Self::tried(tcp, conn)
    }

    /// The same for a connection whose originator sent a SYN, before the check.
    #[inline(never)]
    fn tried(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        // The window scale option sets both sides' window marks.
        let told = (orig.window_seq, resp.window_ack_seq) != (0, 0);
        let scale = told.then_some(orig.window_scale);
        let syn = Self { seq: orig.start_seq, scale, closed: orig.zero_windows as u8 };
        // It has no memory of its own that is to be dropped, which the compiler does not know.
        let unpacked = ManuallyDrop::new(syn.unpacked(conn));
        let is_all = unpacked.is_equal(tcp);
        debug_assert_eq!(is_all, syn.unpacked(conn) == *tcp);
        is_all.then_some(syn)
    }

    /// The state after this SYN.
    #[inline]
    pub(crate) fn unpacked(self, conn: &Conn) -> Tcp {
        let mut orig = Endpoint {
            state: State::SynSent,
            start_seq: self.seq,
            ack_seq: self.seq,
            last_seq: self.seq.wrapping_add(1),
            last_time: milliseconds(conn.last),
            zero_windows: u32::from(self.closed),
            ..Endpoint::default()
        };
        let mut resp = Endpoint::default();
        if let Some(scale) = self.scale {
            orig.window_scale = scale;
            orig.window_seq = self.seq;
            resp.window_ack_seq = self.seq;
        }
        let mut tcp = Tcp::new(conn.start);
        tcp.due[1] = conn.start + ATTEMPT_DELAY;
        tcp.phase = Phase::Attempt;
        tcp.first_seen[0] = true;
        tcp.side = [orig, resp];
        tcp
    }
}
