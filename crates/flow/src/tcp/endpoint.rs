use super::stream::Stream;

/// State of an endpoint, numbered as in Zeek's scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Has sent nothing.
    #[default]
    Inactive,
    /// Sent a SYN.
    SynSent,
    /// Sent a SYN-ACK as its first segment.
    SynAckSent,
    /// Sent segments, but no SYN was seen.
    Partial,
    /// The handshake was seen.
    Established,
    /// Sent a FIN.
    Closed,
    /// Sent a RST.
    Reset,
}

impl State {
    pub(super) fn is_handshake(self) -> bool {
        matches!(self, Self::Inactive | Self::SynSent | Self::SynAckSent)
    }
}

/// One endpoint of a TCP connection.
///
/// Sequence numbers are stored as in segments, with a count of wraps; relative ones are 1 for the
/// first byte after the SYN.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Current state.
    pub state: State,
    /// State before the last change.
    pub prev: State,
    pub(super) did_close: bool,
    /// Whether the end of the endpoint's stream was reported.
    pub(super) did_end: bool,
    pub(super) window_scale: u8,
    pub(super) start_seq: u32,
    pub(super) last_seq: u32,
    pub(super) seq_wraps: u16,
    pub(super) ack_seq: u32,
    pub(super) ack_wraps: u16,
    pub(super) window: u32,
    pub(super) window_seq: u32,
    pub(super) window_ack_seq: u32,
    pub(super) fins: u16,
    pub(super) rsts: u16,
    pub(super) fin_seq: u64,
    pub(super) last_syn: u32,
    pub(super) last_fin: u32,
    pub(super) last_rst: u32,
    pub(super) gaps: u32,
    pub(super) bad_checksums: u32,
    pub(super) retransmissions: u32,
    pub(super) zero_windows: u32,
    /// Time of the endpoint's last segment, in milliseconds modulo 2³².
    pub(super) last_time: u32,
    pub(super) stream: Stream,
}

/// `a - b` in sequence space.
#[inline]
pub(super) fn delta(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

#[inline]
fn full(seq: u32, wraps: u16) -> u64 {
    u64::from(wraps) << 32 | u64::from(seq)
}

impl Endpoint {
    /// The first sequence number: that of the SYN, or the one before the first byte that was seen.
    pub fn start(&self) -> u32 {
        self.start_seq
    }

    /// Relative sequence number of `seq` after `wraps` wraps of the sequence space.
    #[inline]
    pub(super) fn relative_in(&self, seq: u32, wraps: u16) -> u64 {
        full(seq, wraps).wrapping_sub(u64::from(self.start_seq))
    }

    /// Relative sequence number of the `seq` nearest to `last` (after `wraps` wraps), and whether
    /// it is before the start.
    pub(super) fn relative(&self, seq: u32, last: u32, mut wraps: u16) -> (u64, bool) {
        let d = delta(seq, last);
        if d < 0 {
            if wraps > 0 && seq > last {
                wraps -= 1;
            }
        } else if d > 0 && seq < last {
            wraps = wraps.saturating_add(1);
        }
        if wraps == 0 {
            let d = delta(seq, self.start_seq);
            return (i64::from(d) as u64, d < 0);
        }
        (self.relative_in(seq, wraps), false)
    }

    pub(super) fn init(&mut self, start: u32, last: u32) {
        self.start_seq = start;
        self.ack_seq = start;
        self.last_seq = last;
    }

    pub(super) fn advance_last(&mut self, seq: u32) {
        if seq < self.last_seq {
            self.seq_wraps = self.seq_wraps.saturating_add(1);
        }
        self.last_seq = seq;
    }

    pub(super) fn advance_ack(&mut self, seq: u32) {
        if seq < self.ack_seq {
            self.ack_wraps = self.ack_wraps.saturating_add(1);
        }
        self.ack_seq = seq;
    }

    pub(super) fn acked(&self) -> u64 {
        self.relative_in(self.ack_seq, self.ack_wraps)
    }

    pub(super) fn no_data_acked(&self) -> bool {
        matches!(self.acked(), 0 | 1)
    }

    pub(super) fn is_active(&self) -> bool {
        self.state != State::Inactive && !self.did_close
    }

    /// Number of payload bytes by sequence numbers, without SYN and FIN.
    #[inline]
    pub(super) fn size(&self, peer: &Self) -> u64 {
        let aborted = self.prev == State::SynSent && self.state == State::Reset;
        if aborted && peer.state == State::Inactive && !self.no_data_acked() {
            return 0; // the other side dropped its half-open connection
        }
        let last = full(self.last_seq, self.seq_wraps);
        let ack = full(self.ack_seq, self.ack_wraps);
        let size = last.max(ack).wrapping_sub(u64::from(self.start_seq));
        size.saturating_sub(1 + u64::from(self.fins > 0))
    }

    /// Whether some of the bytes sent are not yet delivered.
    pub(super) fn data_pending(&self, peer: &Self) -> bool {
        if self.stream.is_abandoned() {
            return false;
        }
        let delivered = u64::from(self.start_seq).wrapping_add(self.stream.next());
        let last = full(self.last_seq, self.seq_wraps);
        if last < delivered {
            return false;
        }
        // A FIN occupies a sequence number and a RST does not: both ends are accepted.
        if delivered != last.wrapping_sub(1) && delivered != last {
            return true;
        }
        self.state != State::Reset && peer.stream.has_pending()
    }

    /// Whether all fields are equal, computed without branches. Two states with data above a hole
    /// are never equal.
    #[inline(always)]
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        let of = |e: &Self| {
            let Self {
                state,
                prev,
                did_close,
                did_end,
                window_scale,
                start_seq,
                last_seq,
                seq_wraps,
                ack_seq,
                ack_wraps,
                window,
                window_seq,
                window_ack_seq,
                fins,
                rsts,
                fin_seq,
                last_syn,
                last_fin,
                last_rst,
                gaps,
                bad_checksums,
                retransmissions,
                zero_windows,
                last_time,
                stream: _,
            } = *e;
            let bytes = [state as u8, prev as u8, did_close.into(), did_end.into(), window_scale];
            let words = [
                start_seq,
                last_seq,
                ack_seq,
                window,
                window_seq,
                window_ack_seq,
                last_syn,
                last_fin,
                last_rst,
                gaps,
                bad_checksums,
                retransmissions,
                zero_windows,
                last_time,
            ];
            (bytes, [seq_wraps, ack_wraps, fins, rsts], words, fin_seq)
        };
        let (a, b) = (of(self), of(other));
        let bytes = a.0.iter().zip(b.0).fold(0, |all, (a, b)| all | a ^ b);
        let counts = a.1.iter().zip(b.1).fold(0, |all, (a, b)| all | a ^ b);
        let words = a.2.iter().zip(b.2).fold(0, |all, (a, b)| all | a ^ b);
        let small = u32::from(bytes) | u32::from(counts) | words;
        u64::from(small) | a.3 ^ b.3 | self.stream.difference(&other.stream) == 0
    }

    pub(super) fn is_clean(&self) -> bool {
        self.state == State::Established
            || self.state == State::Closed && self.prev == State::Established
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_wrap() {
        let mut e = Endpoint::default();
        e.init(u32::MAX - 10, u32::MAX - 9);
        e.advance_last(5);
        assert_eq!(e.seq_wraps, 1);
        assert_eq!(e.relative(3, e.last_seq, e.seq_wraps), (14, false));
        assert_eq!(e.relative(u32::MAX - 9, e.last_seq, e.seq_wraps), (1, false));
        assert!(e.relative(u32::MAX - 20, e.last_seq, 0).1);
    }

    #[test]
    fn size_counts_neither_syn_nor_fin() {
        let mut e = Endpoint::default();
        let peer = Endpoint { state: State::Established, ..Endpoint::default() };
        e.init(100, 101);
        e.advance_last(100 + 1 + 50 + 1);
        e.fins = 1;
        assert_eq!(e.size(&peer), 50);
    }
}
