//! Data that signatures of scripts look at.

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_event::Command;
use gannet_event::ConnCommand;
use gannet_flow::Conn;
use gannet_wire::Ip;

use crate::Session;
use crate::Tag;
use crate::packet::events::SignatureData;
use crate::packet::events::SignatureEnd;
use crate::packet::events::SignaturePacket;
use crate::packet::events::SignatureResume;

/// Bytes behind the IP headers that tests of headers can look at.
const HEADERS: usize = 1024;
/// Analyzers that signatures start for one part of the data.
const STARTS: usize = 64;

/// The first packet of a side.
pub(crate) struct FirstPacket {
    /// The originator when it came.
    orig: (Addr, u16),
    from: Dir,
    version: u8,
    header: Vec<u8>,
    /// What is behind the headers of IP, up to a limit.
    payload: Vec<u8>,
    protocol: u8,
}

impl Session<'_> {
    /// Whether signatures look at packets.
    #[inline]
    pub fn matches_packets(&self) -> bool {
        self.wants::<SignaturePacket<'_>>()
    }

    /// A packet of a side, before its data.
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
        let payload = &ip.payload[..ip.payload.len().min(HEADERS)];
        self.raise(conn, |c| SignaturePacket {
            c,
            is_orig: from.is_orig(),
            version: u64::from(ip.version),
            header: ip.header,
            payload,
            protocol: u64::from(ip.protocol),
        });
    }

    /// The same of a segment of TCP: signatures look at its headers once the states of both sides are known, before
    /// its data.
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
            payload: ip.payload[..ip.payload.len().min(HEADERS)].to_vec(),
            protocol: ip.protocol,
        }));
    }

    /// Signatures look at a noted packet.
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
        // A segment that exchanges originator and responder is no first one of a side, as in Zeek.
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

    /// Whether signatures look at data.
    #[inline]
    pub(super) fn matches_data(&self) -> bool {
        self.wants::<SignatureData<'_>>()
    }

    /// Data of a side, behind its analyzers.
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
        for _ in 0..STARTS {
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
                    && let Some(tag) = Tag::of_zeek_name(&analyzer)
                {
                    self.attach(conn, tag, replay);
                }
            }
            self.raise(conn, |c| SignatureResume { c });
        }
    }

    /// The connection ends.
    #[inline]
    pub fn match_end(&mut self, conn: &Conn) {
        if self.wants::<SignatureEnd>()
            && [Dir::Orig, Dir::Resp].iter().any(|side| conn.is_matched(*side))
        {
            self.raise(conn, |c| SignatureEnd { c });
        }
    }
}
