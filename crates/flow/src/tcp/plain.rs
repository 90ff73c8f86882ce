//! The common case: data or an acknowledgement in the middle of a connection.
//!
//! Such a segment changes no state and neither begins nor ends a connection, so most checks of [any
//! segment](Tcp::any_segment) are unnecessary. The remaining steps share their code, and a test
//! compares both paths.

use gannet_base::Dir;
use gannet_base::Time;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::Consumer;
use super::Limits;
use super::State;
use super::Step;
use super::Tcp;
use super::bit;
use super::milliseconds;
use crate::Conn;

impl Tcp {
    /// Whether both sides are in the middle of a connection, with or without a seen handshake, and
    /// the history already notes everything that the segment shows.
    #[inline]
    pub(super) fn is_plain(&self, conn: &Conn, from: Dir, s: &wire::Tcp<'_>) -> bool {
        let noted = if s.payload_len > 0 { bit::DATA } else { bit::ACK };
        s.flags & (TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK) == TcpFlags::ACK
            && self.side.iter().all(|e| matches!(e.state, State::Established | State::Partial))
            && self.first_seen == [true; 2]
            && conn.has_noted(from, noted)
    }

    /// Processes a [plain](Self::is_plain) segment.
    #[inline]
    pub(super) fn plain_segment<C: Consumer>(
        &mut self,
        conn: &mut Conn,
        now: Time,
        from: Dir,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut C,
    ) {
        let e = self.endpoint(from);
        let (rel_seq, underflow) = e.relative(s.seq, e.last_seq, e.seq_wraps);
        if underflow {
            self.report_first_view(c);
            c.weird(conn, "TCP_seq_underflow_or_misorder", "", "TCP");
        }
        self.update_window(conn, from, s, c);
        conn.last = now;
        if C::OBSERVES && from.is_orig() && !self.first_acked {
            self.note_first_ack(conn, from, c);
        }
        let rel_ack = self.accept_ack(conn, from, s, c);
        self.accept_seq(conn, from, s.seq.wrapping_add(s.payload_len), s, c);
        self.end(from).last_time = milliseconds(now);
        self.report_view(c);
        let peer = self.end(from.other());
        if peer.stream.is_new(rel_ack) {
            let bytes = rel_ack.saturating_sub(peer.stream.acknowledged());
            // The peer has not closed, so an acknowledgement of delivered bytes ends nothing
            // either.
            if peer.fins == 0 && peer.stream.ack_delivered(rel_ack) {
                if limits.partial_gaps || self.side.iter().all(|e| e.state == State::Established) {
                    c.acked(bytes, 0);
                }
            } else {
                self.ack_received(conn, from.other(), rel_ack, limits, c);
            }
        }
        if C::OBSERVES && c.wants_segment(s) {
            // Nothing changed since the state of both sides was reported.
            let (seq, ack, last) = (rel_seq, rel_ack, self.last_seqs());
            c.step(conn, &Step::Segment { from, segment: s, seq, ack, last });
        }
        if s.payload_len > 0 && !underflow {
            self.data_sent(conn, from, rel_seq, s, limits, c);
        }
    }
}
