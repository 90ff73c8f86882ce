//! Reports bytes of streams to listeners.

use gannet_base::Dir;
use gannet_flow::Conn;

use super::Session;
use crate::packet::events::StreamContents;
use crate::packet::events::TcpContents;

impl Session<'_> {
    /// Whether listeners request the bytes of streams; if not, nothing is reported.
    #[inline]
    pub(super) fn reports_data(&self) -> bool {
        self.matches_data() || self.wants::<TcpContents<'_>>() || self.wants::<StreamContents<'_>>()
    }

    /// Starts or stops writing streams of a connection to files, for a script.
    pub fn record(&mut self, conn: &Conn, sides: [bool; 2]) {
        self.env.logs.events.add_interest::<StreamContents<'_>>();
        self.env.streams.conns.entry(conn.uid).or_default().recorded = sides;
    }

    /// Reports bytes of a stream, in order.
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

    /// Reports `len` missing bytes at offset `at`. As in Zeek, a recording contains the gap if
    /// bytes after it are buffered, which follow immediately.
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
