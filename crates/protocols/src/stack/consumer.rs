//! Delivers the stream of a TCP connection to analyzers and to the events of segments.

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_flow::Conn;
use gannet_flow::tcp;

use super::INTERACTIVE_PORTS;
use super::INTERACTIVE_TIMEOUT;
use super::Session;
use super::Waiting;
use super::announced;
use super::raise_announced;
use super::steps;
use super::transport;
use crate::Analyze;
use crate::conn_state::events::ConnectionEstablished;
use crate::conn_state::events::ConnectionFlipped;
use crate::conn_state::events::ContentGap;
use crate::conn_state::events::RexmitInconsistency;
use crate::packet::build::flag_letters;

impl Session<'_> {
    /// Passes bytes in order to listeners that request them, and to the analyzers.
    fn pass_data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]) {
        let is_followed = self.reports_data();
        if is_followed {
            self.report_contents(conn, from, data);
        }
        self.start_stream(conn);
        self.for_each(conn, |a, cx| a.stream(cx, from, data));
        if is_followed {
            self.match_data(conn, from, data);
        }
    }
}

impl tcp::Consumer for Session<'_> {
    #[inline]
    fn data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]) {
        self.before_data(conn);
        // Otherwise no analyzer needs the bytes: for example because the protocol of the connection
        // is unknown.
        if !self.stack.is_done() || self.reports_data() {
            self.pass_data(conn, from, data);
        }
    }

    fn content_gap(&mut self, conn: &mut Conn, from: Dir, at: u64, len: u64) {
        let is_orig = from.is_orig();
        self.raise(conn, |c| ContentGap { c, is_orig, seq: at, length: len });
    }

    fn gap(&mut self, conn: &mut Conn, from: Dir, at: u64, len: u64) {
        self.start_stream(conn);
        self.env.gap_at = at;
        self.report_gap(conn, from, at, len);
        self.for_each_of(conn, |e| !e.is_suspended && !e.is_inner, |a, cx| a.gap(cx, from, len));
    }

    fn end(&mut self, conn: &mut Conn, from: Dir) {
        self.start_stream(conn);
        self.for_each(conn, |a, cx| a.end(cx, from));
        self.for_each_of(conn, |e| e.is_ending, |a, cx| a.end_removed(cx, from));
    }

    fn closed(&mut self, conn: &mut Conn) {
        self.for_each(conn, |a, cx| a.closed(cx));
    }

    fn reset(&mut self, conn: &mut Conn) {
        self.for_each_of(conn, |e| !e.is_suspended || e.is_ending, |a, cx| a.reset(cx));
    }

    fn flipped(&mut self, conn: &mut Conn) {
        // An announcement may match the exchanged roles.
        let expected = announced(self.env, conn, self.now);
        if let Some(tag) = expected {
            raise_announced(self.env, conn, tag);
        }
        // UDP connections flip when an analyzer requests it, which also raises the event.
        if conn.proto == Proto::Tcp {
            self.raise(conn, |c| ConnectionFlipped { c });
        }
        self.for_each(conn, |a, cx| a.flip(cx));
        if let Some(tag) = expected {
            self.start_stream(conn);
            self.add_announced(conn, tag);
        }
    }

    fn weird(&mut self, conn: &mut Conn, name: &'static str, addl: &str, source: &'static str) {
        conn.set_weird();
        let source = (!source.is_empty()).then_some(source);
        self.env.weirds.conn(&mut self.env.logs, self.now, conn, name, addl, source);
    }

    #[inline]
    fn observes(&self) -> bool {
        self.env.logs.events.any()
    }

    #[inline]
    fn observe(&mut self, view: &tcp::View) {
        self.env.logs.events.set_transport(transport(view));
    }

    #[inline]
    fn step(&mut self, conn: &mut Conn, step: &tcp::Step<'_>) {
        let tcp::Step::Segment { segment, .. } = step else {
            return steps::raise(self, conn, step);
        };
        if steps::wants_segments(self) {
            steps::raise(self, conn, step);
        }
        self.match_noted(conn);
        if !segment.payload.is_empty() {
            self.before_data(conn);
        }
    }

    #[inline]
    fn wants_segment(&self, segment: &gannet_wire::Tcp<'_>) -> bool {
        steps::wants_segments(self)
            || self.env.first_packet.is_some()
            || self.env.has_unfinished() && !segment.payload.is_empty()
    }

    fn compares(&self) -> bool {
        self.env.logs.events.wants::<RexmitInconsistency<'_>>()
    }

    #[cold]
    fn differ(&mut self, conn: &mut Conn, first: &[u8], again: &[u8], flags: u8) {
        let tcp_flags = &flag_letters(flags);
        self.raise(conn, |c| RexmitInconsistency { c, t1: first, t2: again, tcp_flags });
    }

    fn established(&mut self, conn: &mut Conn, states: [tcp::State; 2]) {
        let orig = states[0];
        if states[1] == tcp::State::Established {
            self.raise(conn, |c| ConnectionEstablished { c });
        }
        // For a half-established connection, only the originator's port is checked if only that one
        // is known.
        let likely = |p| self.env.is_likely_server_port(Proto::Tcp, p);
        let mut port = conn.id.resp_p;
        if orig == tcp::State::Inactive && !likely(port) && likely(conn.id.orig_p) {
            port = conn.id.orig_p;
        }
        if INTERACTIVE_PORTS.contains(&port) {
            conn.set_timeout(INTERACTIVE_TIMEOUT);
        }
        if states == [tcp::State::Established; 2]
            && let Some(mut policy) = self.env.policy()
        {
            policy.established(self.now, &conn.id);
        }
    }

    fn acked(&mut self, _: u64, missing: u64) {
        if let Some(policy) = &mut self.env.policy {
            policy.acked(missing > 0);
        }
    }

    fn acked_observed(&mut self, bytes: u64, missing: u64) {
        self.env.acked.add(bytes, missing);
    }

    fn wants_data(&self) -> bool {
        self.stack.waiting != Waiting::Nothing
            || self.stack.entries.iter().any(|e| !e.is_suspended)
            || self.reports_data()
    }
}
