//! Delivers data to signatures of scripts.

use gannet_base::Dir;
use gannet_event::Command;
use gannet_event::ConnCommand;
use gannet_flow::Conn;
use gannet_wire::Ip;

use crate::Session;
use crate::Tag;
use crate::first_packet::FirstPacket;
use crate::packet::events::SignatureData;
use crate::packet::events::SignatureEnd;
use crate::packet::events::SignaturePacket;
use crate::packet::events::SignatureResume;

/// Maximum number of bytes after the IP headers that header tests of signatures can use.
const MAX_HEADER_BYTES: usize = 1024;
/// Maximum number of analyzers that signatures start for one part of the data.
const MAX_STARTS_PER_DATA: usize = 64;

impl Session<'_> {
    /// Whether there are signatures that match packets.
    #[inline]
    pub fn matches_packets(&self) -> bool {
        self.wants::<SignaturePacket<'_>>()
    }

    /// Delivers the first packet of a side, before its data.
    #[inline]
    pub fn match_packet(&mut self, conn: &mut Conn, from: Dir, ip: &Ip<'_>) {
        let is_new = !conn.is_matched(from) && !conn.is_side_unmatched(from);
        if self.matches_packets() && is_new {
            self.begin_matching(conn, from, ip);
        }
    }

    #[cold]
    fn begin_matching(&mut self, conn: &mut Conn, from: Dir, ip: &Ip<'_>) {
        conn.set_matched(from);
        let payload = &ip.payload[..ip.payload.len().min(MAX_HEADER_BYTES)];
        self.raise(conn, |c| SignaturePacket {
            c,
            is_orig: from.is_orig(),
            version: u64::from(ip.version),
            header: ip.header,
            payload,
            protocol: u64::from(ip.protocol),
        });
    }

    /// Like [`match_packet`](Self::match_packet) for a TCP segment: signatures match its headers when the states of both
    /// sides are known, before its data.
    #[inline]
    pub fn note_packet(&mut self, conn: &Conn, from: Dir, ip: &Ip<'_>) {
        if !conn.is_matched(from) && !conn.is_side_unmatched(from) {
            self.note_first_packet(conn, from, ip);
        }
    }

    #[cold]
    fn note_first_packet(&mut self, conn: &Conn, from: Dir, ip: &Ip<'_>) {
        self.env.first_packet = Some(Box::new(FirstPacket {
            orig: (conn.id.orig_h, conn.id.orig_p),
            from,
            version: ip.version,
            header: ip.header.to_vec(),
            payload: ip.payload[..ip.payload.len().min(MAX_HEADER_BYTES)].to_vec(),
            protocol: ip.protocol,
        }));
    }

    /// Matches the headers of a noted segment.
    #[inline]
    pub fn match_noted(&mut self, conn: &mut Conn) {
        if let Some(first) = self.env.first_packet.take() {
            self.begin_matching_noted(conn, &first);
        }
    }

    #[cold]
    fn begin_matching_noted(&mut self, conn: &mut Conn, first: &FirstPacket) {
        let from = first.from;
        conn.set_matched(from);
        // A segment that exchanges originator and responder is not matched, as in Zeek.
        if first.orig != (conn.id.orig_h, conn.id.orig_p) {
            return;
        }
        self.raise(conn, |c| SignaturePacket {
            c,
            is_orig: from.is_orig(),
            version: u64::from(first.version),
            header: &first.header,
            payload: &first.payload,
            protocol: u64::from(first.protocol),
        });
    }

    /// Whether there are signatures that match data.
    #[inline]
    pub(super) fn matches_data(&self) -> bool {
        self.wants::<SignatureData<'_>>()
    }

    /// Delivers data of a side, after its analyzers received it.
    #[inline]
    pub fn match_data(&mut self, conn: &mut Conn, from: Dir, contents: &[u8]) {
        if self.matches_data() && !conn.is_unmatched() {
            self.match_contents(conn, from, contents);
        }
    }

    #[cold]
    fn match_contents(&mut self, conn: &mut Conn, from: Dir, contents: &[u8]) {
        let is_orig = from.is_orig();
        self.raise(conn, |c| SignatureData { c, is_orig, contents });
        for _ in 0..MAX_STARTS_PER_DATA {
            self.env.logs.events.deliver_early();
            let uid = conn.uid;
            let is_start = |command: &Command| matches!(command, Command::Connection { uid: of, what: ConnCommand::Start { .. }, .. } if *of == uid);
            let starts = self.env.logs.events.take_commands_if(is_start);
            if starts.is_empty() {
                break;
            }
            for start in starts {
                if let Command::Connection { what: ConnCommand::Start { analyzer, replay }, .. } =
                    start
                    && let Some(tag) = Tag::from_zeek_name(&analyzer)
                {
                    self.attach(conn, tag, replay);
                }
            }
            self.raise(conn, |c| SignatureResume { c });
        }
    }

    /// Ends matching with the connection.
    #[inline]
    pub fn match_end(&mut self, conn: &Conn) {
        if self.wants::<SignatureEnd>()
            && [Dir::Orig, Dir::Resp].iter().any(|side| conn.is_matched(*side))
        {
            self.raise(conn, |c| SignatureEnd { c });
        }
    }
}
