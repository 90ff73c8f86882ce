//! State transitions of the endpoint that sends a segment.

use gannet_base::Dir;
use gannet_base::Time;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::Consumer;
use super::State;
use super::Step;
use super::Tcp;
use super::delta;
use super::life::INACTIVITY;
use super::life::Phase;
use crate::Conn;

impl Tcp {
    pub(super) fn init_endpoint(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        past: u32,
        c: &mut impl Consumer,
    ) {
        let size = self.size(from);
        let e = self.end(from);
        let syn = s.flags.any(TcpFlags::SYN);
        match e.state {
            State::Inactive if syn => e.init(s.seq, past),
            State::Inactive => {
                // Initializes as if a SYN had been seen. If the first packet was a retransmission,
                // its number still counts as the start.
                e.init(s.seq.wrapping_sub(1), s.seq);
            }
            State::SynSent | State::SynAckSent if syn && s.seq != e.start_seq => {
                e.init(s.seq, past);
                c.weird(conn, "SYN_seq_jump", "", "");
            }
            State::Established | State::Partial if syn => {
                // This SYN may open the connection.
                let jump = s.seq != e.start_seq;
                e.init(s.seq, past);
                if size > 0 {
                    c.weird(conn, "SYN_inside_connection", "", "");
                }
                if jump {
                    c.weird(conn, "SYN_seq_jump", "", "");
                }
            }
            // The numbers come from a RST, which may be forged.
            State::Reset if syn && e.prev == State::Inactive => e.init(s.seq, past),
            _ => {}
        }
    }

    fn set_state(&mut self, conn: &mut Conn, side: Dir, new: State, c: &mut impl Consumer) {
        let peer = self.endpoint(side.other()).state;
        let e = self.end(side);
        if new == e.state {
            return;
        }
        if !new.is_handshake() && e.state.is_handshake() && peer.is_handshake() {
            conn.set_timeout(INACTIVITY);
        }
        e.prev = e.state;
        e.state = new;
        self.report_view(c);
    }

    /// Updates the state; returns the direction after a possible flip, and whether the sender
    /// closed. If the segment begins an attempt, the attempt fails at `attempt_end`.
    pub(super) fn update_state(
        &mut self,
        conn: &mut Conn,
        attempt_end: Time,
        from: Dir,
        s: &wire::Tcp<'_>,
        advance: i32,
        c: &mut impl Consumer,
    ) -> (Dir, bool) {
        match self.endpoint(from).state {
            State::Inactive => self.when_inactive(conn, attempt_end, from, s, c),
            State::SynSent | State::SynAckSent => (from, self.when_syn_sent(conn, from, s, c)),
            State::Established | State::Partial => (from, self.when_established(conn, from, s, c)),
            State::Closed => (from, self.when_closed(conn, from, s, advance, c)),
            State::Reset => {
                if s.flags.any(TcpFlags::SYN) {
                    c.weird(conn, "SYN_after_reset", "", "TCP");
                }
                if s.flags.any(TcpFlags::FIN) {
                    c.weird(conn, "FIN_after_reset", "", "TCP");
                }
                if s.payload_len > 0 && !s.flags.any(TcpFlags::RST) {
                    c.weird(conn, "data_after_reset", "", "TCP");
                }
                (from, false)
            }
        }
    }

    fn when_inactive(
        &mut self,
        conn: &mut Conn,
        attempt_end: Time,
        mut from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> (Dir, bool) {
        let mut do_close = false;
        if s.flags.any(TcpFlags::SYN) {
            if from.is_orig() {
                if s.flags.any(TcpFlags::ACK) {
                    c.weird(conn, "connection_originator_SYN_ack", "", "TCP");
                    self.set_state(conn, from, State::SynAckSent, c);
                } else {
                    self.set_state(conn, from, State::SynSent, c);
                }
                self.due[1] = attempt_end;
                self.phase = Phase::Attempt;
            } else {
                from = self.syn_reply(conn, from, s, c);
            }
        }
        if s.flags.any(TcpFlags::FIN) {
            self.set_state(conn, from, State::Closed, c);
            do_close = true;
            if self.endpoint(from.other()).state != State::Partial && !s.flags.any(TcpFlags::SYN) {
                c.weird(conn, "spontaneous_FIN", "", "TCP");
            }
        }
        if s.flags.any(TcpFlags::RST) {
            self.set_state(conn, from, State::Reset, c);
            do_close = true;
            let peer = self.endpoint(from.other()).state;
            if self.is_rejection(from) {
                self.report_step(conn, &Step::Rejected, c);
            } else if peer == State::Inactive {
                c.weird(conn, "spontaneous_RST", "", "TCP");
            }
        }
        if self.endpoint(from).state == State::Inactive {
            let peer = self.endpoint(from.other()).state;
            if !from.is_orig() && s.payload_len == 0 && self.side[0].state == State::SynSent {
                // Some stacks acknowledge a SYN before they send a SYN-ACK.
            } else if s.flags.any(TcpFlags::ACK) && peer == State::Established {
                // The SYN was missed; the rest of the handshake was seen.
                if !self.first_seen[from.index()] {
                    conn.set_side_unmatched(from);
                }
                self.set_state(conn, from, State::Established, c);
                conn.set_partial(false);
                self.first_seen[from.index()] = true;
            } else {
                self.set_state(conn, from, State::Partial, c);
                if peer == State::Partial {
                    self.report_step(conn, &Step::Partial, c);
                }
            }
        }
        (from, do_close)
    }

    /// A SYN or SYN-ACK from the responder.
    fn syn_reply(
        &mut self,
        conn: &mut Conn,
        mut from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> Dir {
        let (e, peer) = (self.endpoint(from), self.endpoint(from.other()));
        let peer_state = peer.state;
        if s.flags.any(TcpFlags::ACK) {
            let known = !matches!(peer_state, State::Inactive | State::Partial);
            let between = delta(s.ack, peer.start_seq) >= 0 && delta(peer.last_seq, s.ack) >= 0;
            if known && !between {
                c.weird(conn, "bad_SYN_ack", "", "TCP");
            }
        } else if peer_state == State::SynAckSent && s.seq == e.start_seq {
            // SYN and SYN-ACK were captured in the wrong order.
            conn.set_partial(false);
            conn.set_side_unmatched(Dir::Resp);
            self.flip(conn, c);
            from = from.other();
            self.set_state(conn, from.other(), State::Established, c);
            self.first_seen[0] = true;
        } else {
            c.weird(conn, "simultaneous_open", "", "TCP");
        }
        match self.endpoint(from.other()).state {
            State::SynSent => self.set_state(conn, from.other(), State::Established, c),
            State::Inactive => c.weird(conn, "unsolicited_SYN_response", "", "TCP"),
            _ => {}
        }
        self.set_state(conn, from, State::Established, c);
        if self.endpoint(from.other()).state != State::Partial {
            c.established(conn, [self.side[0].state, self.side[1].state]);
        }
        from
    }

    fn when_syn_sent(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> bool {
        let state = self.endpoint(from).state;
        let mut do_close = false;
        if s.flags.any(TcpFlags::SYN) {
            let plain = s.flags.any(TcpFlags::ACK) && !s.flags.any(TcpFlags::FIN | TcpFlags::RST);
            if from.is_orig() && plain && state != State::SynAckSent {
                c.weird(conn, "repeated_SYN_with_ack", "", "TCP");
            }
            if !from.is_orig() && !s.flags.any(TcpFlags::ACK) && state != State::SynSent {
                c.weird(conn, "repeated_SYN_reply_wo_ack", "", "TCP");
            }
        }
        if s.flags.any(TcpFlags::FIN) {
            if matches!(self.endpoint(from.other()).state, State::Inactive | State::SynSent) {
                c.weird(conn, "inappropriate_FIN", "", "TCP");
            }
            self.set_state(conn, from, State::Closed, c);
            do_close = true;
        }
        if s.flags.any(TcpFlags::RST) {
            self.set_state(conn, from, State::Reset, c);
            self.report_step(conn, &Step::Reset, c);
            self.is_active = false;
            do_close = true;
        } else if s.payload_len > 0 {
            c.weird(conn, "data_before_established", "", "TCP");
        }
        do_close
    }

    fn when_established(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> bool {
        let mut do_close = false;
        let peer = self.endpoint(from.other());
        let (peer_state, peer_prev) = (peer.state, peer.prev);
        if s.flags.any(TcpFlags::SYN)
            && !s.flags.any(TcpFlags::ACK)
            && self.endpoint(from).state == State::Partial
            && peer_state == State::Inactive
        {
            c.weird(conn, "SYN_after_partial", "", "TCP");
            self.set_state(conn, from, State::SynSent, c);
        }
        if s.flags.any(TcpFlags::FIN) && !s.flags.any(TcpFlags::RST) {
            self.set_state(conn, from, State::Closed, c);
            if peer_state == State::Reset && peer_prev == State::Closed {
                // A FIN, then a RST: a normal end.
                self.set_state(conn, from.other(), State::Closed, c);
            }
            do_close = true;
        }
        if s.flags.any(TcpFlags::RST) {
            self.set_state(conn, from, State::Reset, c);
            do_close = true;
            if peer_state != State::Reset || peer_prev != State::Established {
                self.report_step(conn, &Step::Reset, c);
                self.is_active = false;
            }
        }
        do_close
    }

    fn when_closed(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        advance: i32,
        c: &mut impl Consumer,
    ) -> bool {
        if s.flags.any(TcpFlags::SYN) {
            c.weird(conn, "SYN_after_close", "", "TCP");
        }
        if s.flags.any(TcpFlags::FIN) && advance > 0 {
            c.weird(conn, "FIN_advanced_last_seq", "", "TCP");
        }
        if s.flags.any(TcpFlags::RST) && self.endpoint(from.other()).state != State::Closed {
            self.set_state(conn, from, State::Reset, c);
            return !self.endpoint(from).did_close;
        }
        false
    }
}
