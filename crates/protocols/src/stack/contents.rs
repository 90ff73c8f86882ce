//! Bytes of streams that listeners want.

use gannet_base::Dir;
use gannet_flow::Conn;

use super::Session;
use crate::packet::events::StreamContents;
use crate::packet::events::TcpContents;

impl Session<'_> {
    /// Whether listeners want the bytes of streams: where none is asked for, nothing is reported.
    #[inline]
    pub(super) fn follows_data(&self) -> bool {
        self.matches_data() || self.wants::<TcpContents<'_>>() || self.wants::<StreamContents<'_>>()
    }

    /// A script writes streams of a connection to files, or no longer.
    pub fn record(&mut self, conn: &Conn, sides: [bool; 2]) {
        self.env.logs.events.add_interest::<StreamContents<'_>>();
        self.env.streams.conns.entry(conn.uid).or_default().recorded = sides;
    }

    /// Bytes of a stream, in order.
    #[cold]
    pub(super) fn report_contents(&mut self, conn: &Conn, from: Dir, contents: &[u8]) {
        let wants_all = self.wants::<TcpContents<'_>>();
        let known = self.env.streams.conns.get_mut(&conn.uid);
        let streams = match known {
            Some(streams) => streams,
            None if wants_all => self.env.streams.conns.entry(conn.uid).or_default(),
            None => return,
        };
        let seq = streams.next[from.index()];
        streams.next[from.index()] += contents.len() as u64;
        let (is_orig, is_recorded) = (from.is_orig(), streams.recorded[from.index()]);
        let missing = streams.missing[from.index()].take().filter(|(at, _)| *at == self.now);
        if wants_all {
            self.raise(conn, |c| TcpContents { c, is_orig, seq, contents });
        }
        if is_recorded {
            let missing = missing.map_or(0, |(_, len)| len);
            self.raise(conn, |c| StreamContents { c, is_orig, missing, contents });
        }
    }

    /// Bytes that are missing, from this position on. As in Zeek, a recording says so where bytes behind them wait already,
    /// which follow at once.
    pub(super) fn report_gap(&mut self, conn: &Conn, from: Dir, at: u64, len: u64) {
        let Some(streams) = self.env.streams.conns.get_mut(&conn.uid) else { return };
        streams.next[from.index()] = at.saturating_add(len);
        if streams.recorded[from.index()] {
            let missing = &mut streams.missing[from.index()];
            let known = missing.filter(|(at, _)| *at == self.now).map_or(0, |(_, len)| len);
            *missing = Some((self.now, known + len));
        }
    }
}
