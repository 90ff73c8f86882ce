//! The state of a connection of which only a SYN was seen, in a few bytes.
//!
//! A flood of half-open connections consists of these. All other fields of [`Tcp`] follow from the
//! SYN and from [`Conn`]. A connection is packed only if unpacking restores an equal state, which
//! is checked for each.

use std::mem::ManuallyDrop;

use super::Endpoint;
use super::Phase;
use super::State;
use super::Tcp;
use super::life::Delays;
use super::milliseconds;
use crate::Conn;

/// The facts of a SYN that [`Tcp`] depends on.
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
    /// The SYN of a connection that consists of one SYN; `None` for other connections.
    #[inline]
    pub(crate) fn from_connection(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        if orig.state != State::SynSent || resp.state != State::Inactive {
            return None;
        }
        Self::from_originator(tcp, conn)
    }

    /// Like [`Self::from_connection`], without the check that the restored state is equal.
    #[inline(never)]
    fn from_originator(tcp: &Tcp, conn: &Conn) -> Option<Self> {
        let (orig, resp) = (&tcp.side[0], &tcp.side[1]);
        // The window scale option sets `window_seq` and `window_ack_seq`.
        let has_option = (orig.window_seq, resp.window_ack_seq) != (0, 0);
        let scale = has_option.then_some(orig.window_scale);
        let syn = Self { seq: orig.start_seq, scale, closed: orig.zero_windows as u8 };
        // The value owns no allocation that must be dropped, which the compiler cannot prove.
        let unpacked = ManuallyDrop::new(syn.unpacked(conn));
        let is_all = unpacked.is_equal(tcp);
        debug_assert_eq!(is_all, syn.unpacked(conn) == *tcp);
        is_all.then_some(syn)
    }

    /// The state of a connection after this SYN.
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
        let mut tcp = Tcp::new(conn.start, &Delays::DEFAULT);
        tcp.due[1] = Delays::DEFAULT.attempt_from(conn.start);
        tcp.phase = Phase::Attempt;
        tcp.first_seen[0] = true;
        tcp.side = [orig, resp];
        tcp
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Interval;
    use gannet_base::Proto;
    use gannet_base::Time;
    use gannet_base::UidSource;

    use super::*;

    #[test]
    fn a_state_that_differs_in_any_field_is_not_packed() {
        let id = ConnId {
            orig_h: Addr::v4([10, 0, 0, 1]),
            orig_p: 1025,
            resp_h: Addr::v4([10, 0, 0, 2]),
            resp_p: 80,
        };
        let start = Time::from_secs(1_600_000_000);
        let mut conn = Conn::new(UidSource::new(0).connection(1, 0), id, Proto::Tcp, 6, start);
        conn.last = start;
        let changes: &[fn(&mut Tcp)] = &[
            |t| t.first_seen[0] = false,
            |t| t.first_seen[1] = true,
            |t| t.close_deferred = true,
            |t| t.is_active = false,
            |t| t.missed_bytes = 1 << 40,
            |t| t.phase = Phase::Open,
            |t| t.first_acked = true,
            |t| t.deferred_report = true,
            |t| t.is_finished = true,
            |t| t.due[0] = Time::MAX,
            |t| t.due[1] += Interval::from_nanos(1 << 40),
            |t| t.side[0].zero_windows = 256,
        ];
        let of_a_side: &[fn(&mut Endpoint)] = &[
            |e| e.state = State::Established,
            |e| e.prev = State::SynSent,
            |e| e.did_close = true,
            |e| e.did_end = true,
            |e| e.start_seq ^= 1 << 31,
            |e| e.last_seq ^= 1,
            |e| e.seq_wraps = 1,
            |e| e.ack_seq ^= 1 << 8,
            |e| e.ack_wraps = 1 << 15,
            |e| e.window = 1,
            |e| e.window_ack_seq ^= 1,
            |e| e.fins = 1,
            |e| e.rsts = 1,
            |e| e.fin_seq = 1 << 63,
            |e| e.last_syn = 1,
            |e| e.last_fin = 1,
            |e| e.last_rst = 1,
            |e| e.gaps = 1,
            |e| e.bad_checksums = 1,
            |e| e.retransmissions = 1,
            |e| e.last_time ^= 1,
            |e| e.stream.abandon(),
        ];
        for scale in [None, Some(0), Some(7)] {
            let syn = Syn { seq: 0xffff_fff0, scale, closed: 1 };
            assert_eq!(Syn::from_connection(&syn.unpacked(&conn), &conn), Some(syn));
            for (n, change) in changes.iter().enumerate() {
                let mut tcp = syn.unpacked(&conn);
                change(&mut tcp);
                assert_eq!(Syn::from_connection(&tcp, &conn), None, "{n}");
            }
            for (n, change) in of_a_side.iter().enumerate() {
                for side in 0..2 {
                    let mut tcp = syn.unpacked(&conn);
                    change(&mut tcp.side[side]);
                    assert_eq!(Syn::from_connection(&tcp, &conn), None, "{n} of side {side}");
                }
            }
        }
    }
}
