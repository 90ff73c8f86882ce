//! The end of a connection: it closes, fails, never starts, or is replaced by another one with the
//! same addresses and ports.

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::Consumer;
use super::State;
use super::Tcp;
use crate::Conn;

/// Times of checks, and delays before a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Time from the first packet to the first check.
    pub first_check: Interval,
    /// Time from one check to the next.
    pub check: Interval,
    /// Time after which an attempt without a reply has failed; zero: attempts never fail.
    pub attempt: Interval,
    /// Idle time after which a connection that one side closed ends.
    pub linger: Interval,
    /// Time for which a closed connection is kept for late packets.
    pub close: Interval,
    /// Time from a RST that follows a FIN of the same side to the end of the connection; `None` if
    /// the event is not raised.
    pub reset: Option<Interval>,
    /// Time from the close of a side, by its first segment, to the end of the connection while the
    /// other side is active; `None` if the event is not raised.
    pub partial_close: Option<Interval>,
}

impl Delays {
    /// Defaults, unless scripts change them.
    pub const DEFAULT: Self = Self {
        first_check: Interval::from_secs(5),
        check: Interval::from_secs(6),
        attempt: Interval::from_secs(5),
        linger: Interval::from_secs(5),
        close: Interval::from_secs(5),
        reset: None,
        partial_close: None,
    };
    /// Default of [`reset`](Self::reset), unless scripts change it.
    pub const RESET: Interval = Interval::from_secs(5);
    /// Default of [`partial_close`](Self::partial_close), unless scripts change it.
    pub const PARTIAL_CLOSE: Interval = Interval::from_secs(3);

    /// The time at which an attempt that begins at `now` fails.
    pub(super) fn attempt_from(&self, now: Time) -> Time {
        if self.attempt == Interval::ZERO { Time::MAX } else { now + self.attempt }
    }
}

/// Idle timeout of a connection with or without a seen handshake, in seconds.
pub(super) const INACTIVITY: u16 = 300;

/// The purpose of a connection's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Periodic checks for inactivity.
    Open,
    /// Periodic checks, and a check whether the attempt had a reply.
    Attempt,
    /// Periodic checks, and a delayed end of the connection.
    Awaiting(Delayed),
    /// The connection is closed and will be removed soon.
    Closing,
}

/// A cause that ends a connection after a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delayed {
    /// A side sent a RST after its FIN.
    Reset,
    /// A side closed whose earlier segments were not seen.
    PartialClose,
}

impl Tcp {
    /// Whether a segment starts another connection with the same addresses and ports; reports
    /// weirds of such a segment.
    pub fn is_reuse(
        &mut self,
        conn: &mut Conn,
        now: Time,
        s: &wire::Tcp<'_>,
        delays: &Delays,
        c: &mut impl Consumer,
    ) -> bool {
        if !s.flags.any(TcpFlags::SYN) {
            return false;
        }
        let (orig, resp) = (&self.side[0], &self.side[1]);
        let mut starter = orig;
        if s.flags.any(TcpFlags::ACK) {
            if orig.state != State::Inactive {
                return false;
            }
            starter = resp;
        }
        let reset = orig.state == State::Reset || resp.state == State::Reset;
        if !orig.did_close && !resp.did_close {
            if s.seq == starter.start_seq {
                return false;
            }
            let reversed = !s.flags.any(TcpFlags::ACK)
                && starter.state == State::SynAckSent
                && resp.state == State::Inactive
                && s.seq == resp.start_seq;
            if reversed {
                return false; // the SYN of a handshake whose SYN-ACK was seen first
            }
            let syn_again = starter.state == State::SynSent;
            let name = if syn_again { "SYN_seq_jump" } else { "active_connection_reuse" };
            c.weird(conn, name, "", "TCP");
        } else if (orig.is_active() || resp.is_active()) && !reset {
            c.weird(conn, "active_connection_reuse", "", "TCP");
        } else if (now - conn.last).as_nanos() < delays.linger.as_nanos() && !reset {
            c.weird(conn, "premature_connection_reuse", "", "TCP");
        }
        true
    }

    pub(super) fn connection_closed(&mut self, conn: &Conn, side: Dir, delays: &Delays) {
        self.close_deferred = self.endpoint(side).data_pending(self.endpoint(side.other()));
        let (e, peer) = (self.endpoint(side), self.endpoint(side.other()));
        if self.close_deferred || e.did_close {
            return;
        }
        let complete = e.state == State::Reset || peer.did_close || peer.state == State::Inactive;
        let first = e.prev == State::Inactive;
        self.end(side).did_close = true;
        if complete {
            // If the other side closed first, its due time does not apply.
            self.due = [conn.last + delays.close, Time::MAX];
            self.phase = Phase::Closing;
        } else if !first && self.phase != Phase::Closing {
            // The peer is active, so the attempt succeeded.
            let check = conn.last + delays.check;
            match self.phase {
                Phase::Open => self.due[1] = check.min(self.due[1]),
                Phase::Attempt => (self.phase, self.due[1]) = (Phase::Open, check),
                Phase::Awaiting(_) | Phase::Closing => {}
            }
        } else if let Some(delay) = delays.partial_close {
            self.end_after(Delayed::PartialClose, conn.last + delay);
        }
    }

    /// Sets a cause that ends the connection at a given time, unless it closes before. The time
    /// replaces the second sequence of checks: that of an attempt, which the peer answered, or that
    /// of an idle period after a FIN.
    pub(super) fn end_after(&mut self, what: Delayed, at: Time) {
        if self.phase != Phase::Closing {
            self.phase = Phase::Awaiting(what);
            self.due[1] = at;
        }
    }

    /// The delayed cause of the end of a connection that [is over](Self::is_over), if any.
    pub fn ended_after(&self) -> Option<Delayed> {
        if let Phase::Awaiting(what) = self.phase { Some(what) } else { None }
    }

    /// The next time to call [`is_over`](Self::is_over), besides the idle timeout.
    #[inline]
    pub fn due(&self) -> Time {
        self.due[0].min(self.due[1])
    }

    /// Whether checks due after `now` find nothing until the next segment: they may be skipped and
    /// [accounted for](Self::pass_checks) afterwards.
    #[inline]
    pub fn is_quiet(&self, conn: &Conn, now: Time) -> bool {
        self.due() > now && self.finds_nothing(conn)
    }

    #[inline]
    fn finds_nothing(&self, conn: &Conn) -> bool {
        self.phase == Phase::Open
            && self.is_active
            && conn.check_every == 0
            && !self.ends_in_silence()
    }

    /// Whether the connection only waits for an idle period.
    #[inline]
    fn ends_in_silence(&self) -> bool {
        let [orig, resp] = &self.side;
        let states = [orig.state, resp.state];
        let both = orig.did_close && resp.did_close;
        let any = orig.did_close || resp.did_close;
        let half = states.contains(&State::Reset) || states.contains(&State::Inactive);
        any && (both || half) || states == [State::Inactive; 2]
    }

    /// Accounts for the checks of a [quiet](Self::is_quiet) connection up to `now`, as if a packet
    /// had triggered each at its due time. Must be called before the state changes.
    #[inline]
    pub fn pass_checks(&mut self, conn: &Conn, now: Time, delays: &Delays) {
        if self.due() <= now {
            self.pass_due_checks(conn, now, delays);
        }
    }

    #[cold]
    fn pass_due_checks(&mut self, conn: &Conn, now: Time, delays: &Delays) {
        if self.finds_nothing(conn) {
            let every = delays.check.as_nanos().max(1);
            for due in self.due.iter_mut().filter(|due| **due <= now) {
                let checks = (now - *due).as_nanos() / every + 1;
                *due += Interval::from_nanos(checks.saturating_mul(every));
            }
        }
    }

    /// Whether the connection is over, because it closed, failed or never started. A check due at
    /// `now` is triggered by the first `packet` that is not older, and uses the time of that
    /// packet.
    pub fn is_over(&mut self, conn: &Conn, now: Time, packet: Time, delays: &Delays) -> bool {
        let (orig, resp) = (&self.side[0], &self.side[1]);
        if self.phase == Phase::Closing {
            return self.due[0] <= now;
        }
        if self.phase == Phase::Attempt && self.due[1] <= now {
            self.phase = Phase::Open;
            self.due[1] = Time::MAX;
            let tried = matches!(orig.state, State::SynSent | State::SynAckSent);
            if self.is_active && tried && resp.state == State::Inactive {
                return true;
            }
        }
        if let Phase::Awaiting(what) = self.phase
            && self.due[1] <= now
        {
            if self.is_active && self.ends_now(what) {
                return true;
            }
            (self.phase, self.due[1]) = (Phase::Open, Time::MAX);
        }
        let chains = if let Phase::Attempt | Phase::Awaiting(_) = self.phase { 1 } else { 2 };
        for chain in 0..chains {
            if self.due[chain] > now {
                continue;
            }
            if self.is_active && conn.last + delays.linger < packet && self.ends_in_silence() {
                // The state changed since the cause was recorded, so the cause does not end it.
                self.phase = Phase::Open;
                return true;
            }
            // A finished connection is not checked again: its close timer or idle timeout ends it.
            let again = if self.is_active { packet + delays.check } else { Time::MAX };
            self.due[chain] = again;
        }
        false
    }

    /// Whether a delayed cause ends the connection in its current state.
    #[cold]
    fn ends_now(&self, what: Delayed) -> bool {
        let both_closed = self.side.iter().all(|side| side.did_close);
        let any = |state: State| self.side.iter().any(|side| side.state == state);
        match what {
            Delayed::Reset => !both_closed,
            // The close was caused by a RST.
            Delayed::PartialClose => !both_closed && !any(State::Inactive) && !any(State::Reset),
        }
    }
}
