//! TCP: the state of both endpoints, sizes, history, and in-order streams.
//!
//! [`Tcp::segment`] processes one segment after the other and reports the results to a
//! [`Consumer`]: in-order bytes, gaps, ends, weirds. It follows the state machine of Zeek's
//! conn.log exactly, including connections that are incomplete or violate the protocol. (RFC 9293
//! names the states but does not define the view of an observer.)
//!
//! ```text
//! segment ──▶ history ──▶ window ──▶ numbers ──▶ state ──▶ stream ──▶ end
//!                                    └ Endpoint ┘          └ data, gap ┘
//! ```
//!
//! An [`Endpoint`] holds the sequence numbers and state of a side, and the stream that it sent. The
//! caller checks at the times from [`Tcp::due`] whether the connection is over (closed, rejected,
//! without a reply), and before each segment whether a SYN starts another connection with the same
//! ports ([`Tcp::is_reuse`]).

mod endpoint;
mod life;
mod observed;
mod plain;
mod sent;
mod state;
mod stream;
mod syn;
#[cfg(test)]
mod tests;
mod window;

use gannet_base::Dir;
use gannet_base::Time;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

pub use endpoint::Endpoint;
pub use endpoint::State;
pub use life::Delayed;
pub use life::Delays;
pub use stream::Limits;
pub(crate) use syn::Syn;

use crate::Conn;
use crate::conn::is_power_of_ten;
use endpoint::delta;
use life::Phase;
use observed::Observed;
use stream::Piece;

/// Receives the bytes and events of a connection.
pub trait Consumer {
    /// In-order bytes of a side.
    fn data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]);
    /// Missing bytes. `at` is their offset in the stream, in which the SYN is the first byte.
    fn gap(&mut self, conn: &mut Conn, from: Dir, at: u64, len: u64);
    /// Called before `gap` for a connection that is established or closes properly.
    fn content_gap(&mut self, _conn: &mut Conn, _from: Dir, _at: u64, _len: u64) {}
    /// A side finished sending, and all its bytes were delivered.
    fn end(&mut self, conn: &mut Conn, from: Dir);
    /// A side closed or reset. Called immediately, and again when all bytes are delivered.
    fn closed(&mut self, _conn: &mut Conn) {}
    /// A side sent a RST; called for each RST.
    fn reset(&mut self, conn: &mut Conn);
    /// Originator and responder were exchanged.
    fn flipped(&mut self, conn: &mut Conn);
    /// A weird, with Zeek's name, and the name of the layer that reports it (or an empty string).
    fn weird(&mut self, conn: &mut Conn, name: &'static str, addl: &str, source: &'static str);
    /// The handshake is complete (or was seen from one side).
    fn established(&mut self, conn: &mut Conn, states: [State; 2]);
    /// New data of an established connection was acknowledged: the number of bytes, and how many of
    /// them were not captured.
    fn acked(&mut self, _bytes: u64, _missing: u64) {}
    /// Called before [`acked`](Self::acked) for consumers that [observe](Self::OBSERVES).
    fn acked_observed(&mut self, _bytes: u64, _missing: u64) {}
    /// Whether [`observe`](Self::observe) is called for all segments.
    const OBSERVES: bool = false;
    /// Whether [`observe`](Self::observe) is also called before a weird of a segment that has not
    /// changed either side yet, unless it was called for the segment before.
    const OBSERVES_FIRST: bool = false;
    /// Whether [`observe`](Self::observe) is called for the current segment.
    fn observes(&self) -> bool {
        Self::OBSERVES
    }
    /// The state of both sides, before effects of a segment are reported.
    fn observe(&mut self, _view: &View) {}
    /// A step of a segment, for consumers that [observe](Self::observe), which is called before.
    fn step(&mut self, _conn: &mut Conn, _step: &Step<'_>) {}
    /// Whether the consumer needs the step [`Segment`](Step::Segment) for a segment in the middle
    /// of a connection.
    #[inline]
    fn wants_segment(&self, _segment: &wire::Tcp<'_>) -> bool {
        true
    }
    /// Whether [`differ`](Self::differ) is called, for consumers that [observe](Self::OBSERVES):
    /// bytes are stored until they are acknowledged.
    fn compares(&self) -> bool {
        false
    }
    /// A segment with these flags retransmits bytes with other contents than first sent.
    fn differ(&mut self, _conn: &mut Conn, _first: &[u8], _again: &[u8], _flags: u8) {}
    /// Whether the consumer uses the bytes of the streams.
    fn wants_data(&self) -> bool;
}

/// A step in processing a segment, in Zeek's order.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A SYN was noted in the history.
    Syn,
    /// The first acknowledgement of the originator.
    FirstAck,
    /// A RST rejects the connection.
    Rejected,
    /// A RST ends the connection.
    Reset,
    /// Both sides of a connection were seen, but not its handshake.
    Partial,
    /// The states were updated; the data follows.
    Segment {
        /// The sending side, before the segment exchanged roles.
        from: Dir,
        /// The segment.
        segment: &'a wire::Tcp<'a>,
        /// Its relative sequence number.
        seq: u64,
        /// Its relative acknowledgement number; 0 if it has none.
        ack: u64,
        /// The sequence number after the last byte of each side, the originator's first.
        last: [u32; 2],
    },
    /// A side finished, and all its bytes were delivered.
    End(Dir),
    /// Both sides closed, or the only side that was seen.
    Finished {
        /// Whether only one side was seen.
        half: bool,
    },
    /// An event whose count reached a power of ten, which the history notes.
    Repeated {
        /// The kind of event.
        what: Repeated,
        /// The side that it is about.
        from: Dir,
        /// The count: a power of ten.
        times: u32,
    },
}

/// Events that the history notes at powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// A segment was sent again.
    Retransmission,
    /// Bytes were missing.
    Gap,
    /// The receive window was zero.
    ZeroWindow,
    /// The checksum was wrong.
    BadChecksum,
}

/// States and sizes of both sides, the originator's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// States.
    pub states: [State; 2],
    /// Payload bytes by sequence numbers.
    pub sizes: [u64; 2],
}

/// A jump in sequence space that makes a SYN or RST implausible.
const TOO_LARGE_JUMP: i32 = 1 << 20;

/// The bit by which a FIN is [noted](Conn::has_noted).
pub const FIN_NOTED: u32 = bit::FIN;

/// The originator's bits of [`Conn::seen`]; those of the responder are sixteen higher.
mod bit {
    pub(super) const SYN: u32 = 0;
    pub(super) const FIN: u32 = 1;
    pub(super) const RST: u32 = 2;
    pub(super) const DATA: u32 = 3;
    pub(super) const ACK: u32 = 4;
    pub(super) const MULTI: u32 = 5;
    pub(super) const FIN_RST: u32 = 6;
}

/// The TCP state of a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Tcp {
    side: [Endpoint; 2],
    /// Whether a packet of each side was seen.
    first_seen: [bool; 2],
    close_deferred: bool,
    is_active: bool,
    /// Number of missing bytes: the gaps in both streams.
    missed_bytes: u64,
    /// The purpose of the pending timers.
    phase: Phase,
    /// For observers: whether the originator has acknowledged, and whether a deferred end is to be
    /// reported.
    first_acked: bool,
    deferred_report: bool,
    /// For observers: whether the connection was reported as finished.
    is_finished: bool,
    /// Due times of two sequences of checks. The second one begins as the check of an attempt, or
    /// is the time of a [delayed](Delayed) cause; the first one ends as the delay after the close.
    due: [Time; 2],
}

/// The size of this type determines the memory that a flood of half-open connections needs.
const _: () = assert!(size_of::<Tcp>() <= 256);

impl Tcp {
    /// A connection whose first packet is at `start`.
    #[inline]
    pub fn new(start: Time, delays: &Delays) -> Self {
        Self {
            side: Default::default(),
            first_seen: [false; 2],
            close_deferred: false,
            is_active: true,
            missed_bytes: 0,
            phase: Phase::Open,
            first_acked: false,
            deferred_report: false,
            is_finished: false,
            due: [start + delays.first_check, Time::MAX],
        }
    }

    /// Whether all fields are equal, computed without branches. Two states with data above a hole
    /// are never equal.
    #[inline(always)]
    fn is_equal(&self, other: &Self) -> bool {
        let of = |tcp: &Self| {
            let Self {
                side: _,
                first_seen: [orig_seen, resp_seen],
                close_deferred,
                is_active,
                missed_bytes,
                phase,
                first_acked,
                deferred_report,
                is_finished,
                due,
            } = *tcp;
            let flags = [
                orig_seen,
                resp_seen,
                close_deferred,
                is_active,
                first_acked,
                deferred_report,
                is_finished,
            ];
            (flags, phase, missed_bytes, due.map(Time::as_nanos))
        };
        let (a, b) = (of(self), of(other));
        let flags = a.0.iter().zip(b.0).fold(false, |all, (a, b)| all | (a ^ b));
        let times = a.3[0] ^ b.3[0] | a.3[1] ^ b.3[1];
        let numbers = a.2 ^ b.2 | times as u64 | u64::from(flags | (a.1 != b.1));
        let [orig, resp] = &self.side;
        numbers == 0 && orig.is_equal(&other.side[0]) && resp.is_equal(&other.side[1])
    }

    /// Frees all allocations; the rest of the state must then be overwritten.
    #[inline]
    pub(crate) fn empty(&mut self) {
        for side in &mut self.side {
            side.stream.empty();
        }
    }

    /// Overwrites a state that is [empty](Self::empty).
    #[inline]
    pub(crate) fn fill(&mut self, tcp: Self) {
        // The old state owns no allocation, so it need not be dropped; the compiler cannot prove
        // that.
        std::mem::forget(std::mem::replace(self, tcp));
    }

    /// The endpoint of a side.
    pub fn endpoint(&self, side: Dir) -> &Endpoint {
        &self.side[side.index()]
    }

    fn end(&mut self, side: Dir) -> &mut Endpoint {
        &mut self.side[side.index()]
    }

    /// Number of missing bytes in both streams.
    pub fn missed_bytes(&self) -> u64 {
        self.missed_bytes
    }

    /// Bytes of memory for data above holes, and for bytes stored for comparison.
    #[inline]
    pub fn buffered_bytes(&self) -> usize {
        self.side.iter().map(|e| e.stream.cost()).sum()
    }

    /// Skips the missing bytes below data that arrived early: that data is delivered as if its
    /// receiver had acknowledged it. Bytes stored for comparison are dropped.
    pub fn skip_holes(&mut self, conn: &mut Conn, limits: &Limits, c: &mut impl Consumer) {
        for side in [Dir::Orig, Dir::Resp] {
            self.end(side).stream.drop_sent();
            if let Some(end) = self.endpoint(side).stream.buffered_end() {
                self.ack_received(conn, side, end, limits, c);
            }
        }
    }

    /// Whether both sides are established and neither has finished; ranks connections for eviction.
    pub fn is_established(&self) -> bool {
        let open = |e: &Endpoint| e.state == State::Established || e.state == State::Partial;
        let any = |e: &Endpoint| open(e) || e.state == State::Closed;
        self.side.iter().any(open) && self.side.iter().all(any)
    }

    /// Whether the connection was neither closed nor reset: Zeek's condition for
    /// `connection_pending`.
    pub fn is_pending(&self) -> bool {
        let [orig, resp] = &self.side;
        let half = |e: &Endpoint, peer: &Endpoint| {
            e.did_close && e.prev != State::Inactive && peer.state == State::Inactive
        };
        let is_finished = orig.did_close && resp.did_close || half(orig, resp) || half(resp, orig);
        self.is_active && !self.is_finished && !is_finished
    }

    /// Whether the connection is [pending](Self::is_pending) although a side sent a RST after its
    /// FIN.
    pub fn is_half_reset(&self) -> bool {
        // A FIN of the peer makes a RST after a FIN a normal end.
        let reset = |e: &Endpoint| {
            matches!(
                (e.prev, e.state),
                (State::Closed, State::Reset) | (State::Reset, State::Closed)
            )
        };
        self.is_pending() && self.side.iter().any(reset)
    }

    /// Payload bytes that a side sent, by sequence numbers.
    #[inline]
    pub fn size(&self, side: Dir) -> u64 {
        self.endpoint(side).size(self.endpoint(side.other()))
    }

    /// The current states and sizes of both sides.
    #[inline]
    pub fn view(&self) -> View {
        let [orig, resp] = &self.side;
        View { states: [orig.state, resp.state], sizes: [orig.size(resp), resp.size(orig)] }
    }

    /// The sequence number after the last byte of each side.
    fn last_seqs(&self) -> [u32; 2] {
        self.side.each_ref().map(|end| end.last_seq)
    }

    /// Reports the state of both sides to a consumer that observes.
    #[inline]
    fn report_view<C: Consumer>(&self, c: &mut C) {
        if C::OBSERVES {
            c.observe(&self.view());
        }
    }

    /// Reports the state of both sides to a consumer that did not observe the segment yet. The
    /// segment has changed neither side.
    #[inline]
    fn report_first_view<C: Consumer>(&self, c: &mut C) {
        if C::OBSERVES_FIRST {
            c.observe(&self.view());
        }
    }

    /// Reports a step, and before it the state of both sides, to a consumer that observes.
    #[inline]
    fn report_step<C: Consumer>(&self, conn: &mut Conn, step: &Step<'_>, c: &mut C) {
        if C::OBSERVES {
            c.observe(&self.view());
            c.step(conn, step);
        }
    }

    /// Reports that a connection is finished, if the close of a side, which was `closed` before or
    /// not, finishes it.
    fn report_finished<C: Consumer>(
        &mut self,
        conn: &mut Conn,
        side: Dir,
        closed: bool,
        report: bool,
        c: &mut C,
    ) {
        let (e, peer) = (self.endpoint(side), self.endpoint(side.other()));
        if self.close_deferred {
            self.deferred_report |= report;
            return;
        }
        if closed || !e.did_close {
            return;
        }
        let half = peer.state == State::Inactive;
        let is_complete = e.state == State::Reset || peer.did_close || half;
        if is_complete && (e.prev != State::Inactive || !half) {
            let deferred = std::mem::take(&mut self.deferred_report);
            if report || deferred {
                self.is_finished = true;
                self.report_step(conn, &Step::Finished { half }, c);
            }
        }
    }

    /// Handles a segment with a wrong checksum: the history notes it, otherwise it is ignored.
    pub fn bad_checksum(&mut self, conn: &mut Conn, from: Dir, c: &mut impl Consumer) {
        let e = self.end(from);
        e.bad_checksums += 1;
        let times = e.bad_checksums;
        if is_power_of_ten(times) {
            conn.note(from, b'C');
            if c.observes() {
                c.step(conn, &Step::Repeated { what: Repeated::BadChecksum, from, times });
            }
        }
    }

    /// Processes the next segment; returns its direction after a possible flip.
    #[inline]
    pub fn segment(
        &mut self,
        conn: &mut Conn,
        now: Time,
        from: Dir,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut impl Consumer,
    ) -> Dir {
        if c.observes() {
            return self.observed_segment(conn, now, from, s, limits, c);
        }
        self.unobserved_segment(conn, now, from, s, limits, c)
    }

    /// Like [`Self::segment`], for a consumer that does not observe.
    #[inline]
    pub fn unobserved_segment(
        &mut self,
        conn: &mut Conn,
        now: Time,
        from: Dir,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut impl Consumer,
    ) -> Dir {
        if self.is_plain(conn, from, s) {
            self.plain_segment(conn, now, from, s, limits, c);
            return from;
        }
        self.any_segment(conn, now, from, s, limits, c)
    }

    /// Like [`Self::segment`], for a consumer that observes: reports the state of both sides before
    /// each other report, and once more at the end.
    #[inline(never)]
    fn observed_segment(
        &mut self,
        conn: &mut Conn,
        now: Time,
        from: Dir,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut impl Consumer,
    ) -> Dir {
        if self.is_plain(conn, from, s) {
            // Most plain segments report nothing before the sequence numbers are updated, so that
            // the state is reported once.
            self.plain_segment(conn, now, from, s, limits, &mut Observed::<_, true>(c));
            return from;
        }
        c.observe(&self.view());
        let from = self.any_segment(conn, now, from, s, limits, &mut Observed::<_, false>(c));
        c.observe(&self.view());
        from
    }

    /// Processes any segment, without the assumptions of the fast path.
    fn any_segment<C: Consumer>(
        &mut self,
        conn: &mut Conn,
        now: Time,
        mut from: Dir,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut C,
    ) -> Dir {
        let sender = from;
        self.set_partial(conn, from, s);
        let control = u32::from(s.flags.any(TcpFlags::SYN)) + u32::from(s.flags.any(TcpFlags::FIN));
        let seg_len = control + if s.flags.any(TcpFlags::RST) { 0 } else { s.payload_len };
        let past = s.seq.wrapping_add(seg_len);
        self.init_endpoint(conn, from, s, past, c);
        let e = self.endpoint(from);
        let (rel_seq, underflow) = e.relative(s.seq, e.last_seq, e.seq_wraps);
        if underflow && !s.flags.any(TcpFlags::RST) {
            c.weird(conn, "TCP_seq_underflow_or_misorder", "", "TCP");
        }
        from = self.update_history(conn, from, s, rel_seq, c);
        self.update_window(conn, from, s, c);
        if !self.side[0].did_close || !self.side[1].did_close {
            conn.last = now;
        }
        if s.flags.any(TcpFlags::SYN) {
            self.syn_weirds(conn, s, c);
            self.init_window(conn, from, s, c);
            self.report_step(conn, &Step::Syn, c);
        }
        let e = self.end(from);
        let storm = (milliseconds(now).wrapping_sub(e.last_time) as i32) < limits.storm_within;
        if s.flags.any(TcpFlags::FIN) {
            e.fins = e.fins.saturating_add(1);
            e.fin_seq = rel_seq.wrapping_add(u64::from(seg_len));
            if u32::from(e.fins) >= limits.storm && storm {
                c.weird(conn, "FIN_storm", "", "TCP");
            }
        }
        if s.flags.any(TcpFlags::RST) {
            e.rsts = e.rsts.saturating_add(1);
            if u32::from(e.rsts) >= limits.storm && storm {
                c.weird(conn, "RST_storm", "", "TCP");
            }
            c.reset(conn);
        }
        let mut rel_ack = 0;
        if s.flags.any(TcpFlags::ACK) {
            if C::OBSERVES && sender.is_orig() && !self.first_acked {
                self.note_first_ack(conn, from, c);
            }
            rel_ack = self.process_ack(conn, from, s, c);
        }
        let advance = self.update_last_seq(conn, from, past, s, c);
        self.end(from).last_time = milliseconds(now);
        self.report_view(c);
        let report = C::OBSERVES && self.is_close_reported(from, s);
        let attempt_end = limits.delays.attempt_from(now);
        let before = self.endpoint(from).state;
        let (from, do_close) = self.update_state(conn, attempt_end, from, s, advance, c);
        self.report_view(c);
        if let Some(delay) = limits.delays.reset
            && (before, self.endpoint(from).state) == (State::Closed, State::Reset)
        {
            self.end_after(Delayed::Reset, now + delay);
        }
        if s.flags.any(TcpFlags::ACK) {
            self.ack_received(conn, from.other(), rel_ack, limits, c);
        }
        let (seq, ack, last) = (rel_seq, rel_ack, self.last_seqs());
        let step = Step::Segment { from: sender, segment: s, seq, ack, last };
        self.report_step(conn, &step, c);
        self.first_seen[from.index()] = true;
        let data_seq = rel_seq.wrapping_add(u64::from(s.flags.any(TcpFlags::SYN)));
        if s.payload_len > 0 && !s.flags.any(TcpFlags::RST) && !underflow {
            self.data_sent(conn, from, data_seq, s, limits, c);
        }
        self.check_end(conn, from, limits, c);
        if do_close {
            c.closed(conn);
            let closed = self.endpoint(from).did_close;
            self.connection_closed(conn, from, &limits.delays);
            if C::OBSERVES {
                self.report_finished(conn, from, closed, report, c);
            }
        }
        from
    }

    /// Whether the close that a segment may cause is reported as a normal end.
    fn is_close_reported(&self, from: Dir, s: &wire::Tcp<'_>) -> bool {
        let (fin, rst) = (s.flags.any(TcpFlags::FIN), s.flags.any(TcpFlags::RST));
        match self.endpoint(from).state {
            State::Inactive if rst => !self.is_rejection(from),
            State::Inactive | State::SynSent | State::SynAckSent => fin,
            State::Established | State::Partial => fin && !rst,
            State::Closed | State::Reset => false,
        }
    }

    /// Whether a RST from a side that sent nothing before rejects the connection.
    fn is_rejection(&self, from: Dir) -> bool {
        let peer = self.endpoint(from.other()).state;
        match from {
            // A SYN-ACK was seen but no SYN: backscatter of a scan.
            Dir::Orig => peer == State::Established,
            Dir::Resp => matches!(peer, State::SynSent | State::SynAckSent),
        }
    }

    #[cold]
    fn note_first_ack(&mut self, conn: &mut Conn, from: Dir, c: &mut impl Consumer) {
        if matches!(self.endpoint(from).state, State::Established | State::SynSent) {
            self.first_acked = true;
            self.report_step(conn, &Step::FirstAck, c);
        }
    }

    fn set_partial(&self, conn: &mut Conn, from: Dir, s: &wire::Tcp<'_>) {
        match from {
            Dir::Orig if !self.first_seen[0] => {
                conn.set_partial(!s.flags.any(TcpFlags::SYN) || s.flags.any(TcpFlags::ACK));
            }
            Dir::Resp if !self.first_seen[1] && !conn.is_partial() => {
                conn.set_partial(!s.flags.any(TcpFlags::SYN));
            }
            _ => {}
        }
    }

    fn flip(&mut self, conn: &mut Conn, c: &mut impl Consumer) {
        conn.flip();
        self.side.swap(0, 1);
        self.first_seen.swap(0, 1);
        conn.set_partial(false);
        if c.observes() {
            c.observe(&self.view());
        }
        c.flipped(conn);
    }

    /// Whether a segment shows that the SYN of its side was missed: it is the first segment of the
    /// side, and replies to a SYN-ACK.
    pub fn misses_syn(&self, from: Dir, s: &wire::Tcp<'_>) -> bool {
        let [own, peer] = [from, from.other()].map(|side| self.endpoint(side).state);
        let is_ack = s.flags.any(TcpFlags::ACK)
            && !s.flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        is_ack
            && own == State::Inactive
            && peer == State::Established
            && !self.first_seen[from.index()]
    }

    /// Exchanges originator and responder at the request of an analyzer.
    pub fn flip_roles(&mut self, conn: &mut Conn, c: &mut impl Consumer) {
        self.flip(conn, c);
    }

    fn update_history(
        &mut self,
        conn: &mut Conn,
        mut from: Dir,
        s: &wire::Tcp<'_>,
        rel_seq: u64,
        c: &mut impl Consumer,
    ) -> Dir {
        let (syn, fin, rst) =
            (s.flags.any(TcpFlags::SYN), s.flags.any(TcpFlags::FIN), s.flags.any(TcpFlags::RST));
        let bits = u8::from(syn) + u8::from(fin) + u8::from(rst);
        let rel = rel_seq as u32;
        if bits > 1 {
            if fin && rst {
                conn.note_once(from, bit::FIN_RST, b'I');
            } else {
                conn.note_once(from, bit::MULTI, b'Q');
            }
        } else if syn {
            let letter = if s.flags.any(TcpFlags::ACK) { b'H' } else { b'S' };
            if conn.note_once(from, bit::SYN, letter) && rel != self.end(from).last_syn {
                conn.note(from, letter);
            }
            self.end(from).last_syn = rel;
        } else if fin {
            let at = rel.wrapping_add(s.payload_len);
            if conn.note_once(from, bit::FIN, b'F') && at != self.end(from).last_fin {
                conn.note(from, b'F');
            }
            self.end(from).last_fin = at;
        } else if rst {
            if conn.note_once(from, bit::RST, b'R') && rel != self.end(from).last_rst {
                conn.note(from, b'R');
            }
            self.end(from).last_rst = rel;
        } else if s.payload_len > 0 || s.flags.any(TcpFlags::ACK) {
            if conn.history.as_bytes() == b"H" {
                // The connection began with a SYN-ACK, which a stealth scan may send. Since traffic
                // follows, the sender of the SYN-ACK is the responder.
                conn.set_side_unmatched(Dir::Resp);
                self.flip(conn, c);
                conn.history.replace(b"^h");
                self.first_seen[0] = true;
                from = from.other();
            }
            if s.payload_len > 0 {
                conn.note_once(from, bit::DATA, b'D');
            } else {
                conn.note_once(from, bit::ACK, b'A');
            }
        }
        from
    }

    fn syn_weirds(&mut self, conn: &mut Conn, s: &wire::Tcp<'_>, c: &mut impl Consumer) {
        if s.flags.any(TcpFlags::RST) {
            c.weird(conn, "TCP_christmas", "", "TCP");
        }
        if s.flags.any(TcpFlags::URG) {
            c.weird(conn, "baroque_SYN", "", "TCP");
        }
        if s.payload_len > 0 {
            c.weird(conn, "SYN_with_data", "", "TCP");
        }
    }

    fn process_ack(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> u64 {
        let state = self.endpoint(from).state;
        let peer = self.end(from.other());
        if peer.state == State::Inactive {
            let plain = !s.flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
            let spoke = matches!(state, State::SynSent | State::SynAckSent | State::Established);
            // Initializes the state as if the SYN had been seen, so that later numbers are relative
            // to it.
            let start = s.ack.wrapping_sub(1);
            peer.init(start, start);
            if plain && spoke && !conn.did_weird() {
                c.weird(conn, "possible_split_routing", "", "");
            }
            return 1;
        }
        self.accept_ack(conn, from, s, c)
    }

    /// Processes an acknowledgement when the initial numbers of both sides are known.
    #[inline]
    fn accept_ack(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> u64 {
        let peer = self.end(from.other());
        let (rel_ack, underflow) = peer.relative(s.ack, peer.ack_seq, peer.ack_wraps);
        if underflow {
            self.report_first_view(c);
            c.weird(conn, "TCP_ack_underflow_or_misorder", "", "TCP");
            return 0;
        }
        if !s.flags.any(TcpFlags::RST) {
            let d = delta(s.ack, peer.ack_seq);
            let broken = s.ack == 0 && d > TOO_LARGE_JUMP;
            if d > 0 && !broken {
                peer.advance_ack(s.ack);
            }
        }
        rel_ack
    }

    /// Updates the last sequence number; returns by how much the segment exceeds it.
    fn update_last_seq(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        past: u32,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) -> i32 {
        let e = self.end(from);
        let d = delta(past, e.last_seq);
        let jump = !(-TOO_LARGE_JUMP..=TOO_LARGE_JUMP).contains(&d);
        if s.flags.any(TcpFlags::SYN | TcpFlags::RST) && jump {
            // Implausible: ignored.
        } else if s.flags.any(TcpFlags::FIN) && e.last_seq == e.start_seq.wrapping_add(1) {
            e.advance_last(past); // only the SYN and FIN of more than 2 GB were seen
        } else if e.state == State::Reset {
            // Segments after a RST are implausible.
        } else {
            self.accept_seq(conn, from, past, s, c);
        }
        d
    }

    /// Updates the last sequence number from a plausible segment.
    #[inline]
    fn accept_seq(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        past: u32,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) {
        let e = self.end(from);
        if delta(past, e.last_seq) > 0 {
            e.advance_last(past);
        } else if s.payload_len > 0 {
            e.retransmissions += 1;
            let times = e.retransmissions;
            if is_power_of_ten(times) {
                conn.note(from, b'T');
                let what = Repeated::Retransmission;
                self.report_step(conn, &Step::Repeated { what, from, times }, c);
            }
        }
    }

    fn ack_received(
        &mut self,
        conn: &mut Conn,
        side: Dir,
        mut seq: u64,
        limits: &Limits,
        c: &mut impl Consumer,
    ) {
        let clean = self.side[0].is_clean() && self.side[1].is_clean();
        let partial = conn.is_partial();
        let e = self.end(side);
        if e.fins > 0 && seq >= e.fin_seq {
            seq = e.fin_seq.wrapping_sub(1);
        }
        let mut gaps = e.gaps;
        let (mut missed, mut missing) = (0_u64, 0_u64);
        let bytes = seq.saturating_sub(e.stream.acknowledged());
        let new = e.stream.ack(seq, partial, |piece| match piece {
            Piece::Data(data) => c.data(conn, side, data),
            Piece::Gap { at, len } => {
                if clean {
                    gaps += 1;
                    if is_power_of_ten(gaps) {
                        conn.note(side, b'G');
                        if c.observes() {
                            let (what, from, times) = (Repeated::Gap, side, gaps);
                            c.step(conn, &Step::Repeated { what, from, times });
                        }
                    }
                    missed = missed.saturating_add(len);
                }
                if clean || limits.partial_gaps {
                    c.content_gap(conn, side, at, len);
                }
                conn.set_gap();
                missing = missing.saturating_add(len);
                c.gap(conn, side, at, len);
            }
        });
        self.end(side).gaps = gaps;
        self.missed_bytes = self.missed_bytes.saturating_add(missed);
        if new && (limits.partial_gaps || self.side.iter().all(|e| e.state == State::Established)) {
            c.acked(bytes, missing);
        }
        self.check_end(conn, side, limits, c);
    }

    fn data_sent<C: Consumer>(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        seq: u64,
        s: &wire::Tcp<'_>,
        limits: &Limits,
        c: &mut C,
    ) {
        if (s.payload.len() as u64) < u64::from(s.payload_len) {
            c.weird(conn, "truncated_tcp_payload", "", "TCP");
            return;
        }
        let e = self.end(from);
        if e.stream.is_abandoned() {
            return;
        }
        let acked = e.acked();
        let data = &s.payload[..s.payload_len as usize];
        if C::OBSERVES && c.compares() {
            // A keep-alive is no data if nothing else of the connection was seen.
            let min_len = if self.first_seen[from.other().index()] { 1 } else { 2 };
            self.end(from).stream.compare(seq, data, acked, |first, again| {
                if first.len() >= min_len {
                    c.differ(conn, first, again, s.flags.0);
                }
            });
        }
        // The consumer does not change these numbers.
        let quiet = matches!(acked, 0 | 1);
        let e = self.end(from);
        if e.stream.accept_next(seq, data.len(), acked) {
            c.data(conn, from, data);
            // No data is above a hole.
            let waiting = self.endpoint(from).stream.delivered_unacked();
            if !quiet && waiting <= limits.without_further_acks {
                return;
            }
        } else {
            e.stream.insert(seq, data, acked, c.wants_data(), |piece| {
                if let Piece::Data(data) = piece {
                    c.data(conn, from, data);
                }
            });
        }
        if quiet && self.size(from) > limits.initial_window {
            self.end(from).stream.stop_awaiting_acks();
        }
        let e = self.end(from);
        if quiet && e.stream.above_hole() > limits.above_hole_without_acks {
            e.stream.abandon();
            c.weird(conn, "above_hole_data_without_any_acks", "", "TCP");
        } else if e.stream.unacked() > limits.without_further_acks || e.stream.has_too_many_blocks()
        {
            e.stream.abandon();
            c.weird(conn, "excessive_data_without_further_acks", "", "TCP");
        }
    }

    #[inline]
    fn check_end(&mut self, conn: &mut Conn, side: Dir, limits: &Limits, c: &mut impl Consumer) {
        let e = self.endpoint(side);
        let over = e.fins > 0 || matches!(e.state, State::Closed | State::Reset);
        if over && !e.did_end {
            self.check_over(conn, side, limits, c);
        }
    }

    /// Checks whether the stream is complete after a side has finished sending.
    fn check_over<C: Consumer>(&mut self, conn: &mut Conn, side: Dir, limits: &Limits, c: &mut C) {
        if self.endpoint(side).data_pending(self.endpoint(side.other())) {
            return;
        }
        self.end(side).did_end = true;
        self.report_step(conn, &Step::End(side), c);
        c.end(conn, side);
        if self.close_deferred {
            let pending = self.endpoint(side).data_pending(self.endpoint(side.other()));
            if pending && self.side[0].did_close && self.side[1].did_close {
                c.weird(conn, "pending_data_when_closed", "", "TCP");
            }
            c.closed(conn);
            let closed = self.endpoint(side).did_close;
            self.connection_closed(conn, side, &limits.delays);
            if C::OBSERVES {
                self.report_finished(conn, side, closed, false, c);
            }
            self.close_deferred = false;
        }
    }
}

/// Converts a time to the resolution of the storm check.
fn milliseconds(t: Time) -> u32 {
    (t.as_nanos() / 1_000_000) as u32
}
