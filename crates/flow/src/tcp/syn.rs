//! The state of a connection of which nothing but a SYN was seen, in a few bytes.
//!
//! A flood of half-open connections is a flood of these: all else that [`Tcp`] knows of such a
//! connection follows from the SYN and from [`Conn`]. Whether that is so is not argued but tried: a
//! connection is packed only if unpacking gives the same state again, field by field.

use super::Endpoint;
use super::Phase;
use super::State;
use super::Tcp;
use super::life::ATTEMPT_DELAY;
use super::milliseconds;
use crate::Conn;

/// What a SYN told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Syn {
    /// Its sequence number.
    seq: u32,
    /// Shift count of its window, if it had one.
    scale: Option<u8>,
    /// How often its window was nothing.
    closed: u8,
}

impl Syn {
    /// The SYN of a connection that is nothing but one.
    #[inline]
    pub(crate) fn of(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        if orig.state != State::SynSent || resp.state != State::Inactive {
            return None;
        }
        Self::tried(tcp, conn)
    }

    /// The same of a connection whose originator has sent one.
    #[inline(never)]
    fn tried(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        // The window scale option leaves its trace in both sides' window marks.
        let told = (orig.window_seq, resp.window_ack_seq) != (0, 0);
        let scale = told.then_some(orig.window_scale);
        let syn = Self { seq: orig.start_seq, scale, closed: orig.zero_windows as u8 };
        (syn.unpacked(conn) == *tcp).then_some(syn)
    }

    /// The state that it stands for.
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
