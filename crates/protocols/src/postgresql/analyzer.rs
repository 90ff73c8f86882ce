use gannet_base::Dir;

use super::events::BackendKind;
use super::events::BackendSeen;
use super::events::FrontendKind;
use super::events::FrontendSeen;
use super::events::SslReply;
use super::events::SslRequest;
use super::events::StartupMessage;
use super::events::StartupParameter;
use super::message;
use super::message::Backend;
use super::message::FirstMessage;
use super::message::Frontend;
use super::message::Malformed;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Piece;
use crate::Replay;
use crate::Tag;
use crate::support::Frames;

/// Maximum number of stored bytes of a message; a longer one is parsed up to there, and the rest is
/// skipped.
const MAX_MESSAGE: usize = 64 << 10;

/// Maximum number of chunks of one side that are buffered until the server's reply to a TLS
/// request.
const MAX_EARLY: usize = 4;

/// Maximum total size of these chunks, in bytes.
const MAX_EARLY_BYTES: usize = 64 << 10;

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has sent nothing.
    Start,
    /// The client requested TLS; the server has not replied.
    TlsRequested,
    /// The server declined TLS; the client sends its startup message.
    TlsDeclined,
    /// Session of messages in clear text.
    Plain,
    /// Later data cannot be parsed: TLS, missing bytes, or another protocol.
    Opaque,
}

/// A fault that stops parsing.
enum ParseFault {
    /// Stops parsing both sides.
    Both(Malformed),
    /// Stops parsing this side; the other continues.
    Side(Malformed),
}

/// The analyzer of one connection.
pub struct Analyzer {
    phase: Phase,
    frames: [Frames; 2],
    /// Data of a side that cannot be parsed yet: it is parsed when more arrives.
    early: [Vec<Vec<u8>>; 2],
    /// Whether parsing of a side has stopped, by [`Dir::index`].
    stopped: [bool; 2],
    rows: Rows,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            phase: Phase::Start,
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            early: [Vec::new(), Vec::new()],
            stopped: [false; 2],
            rows: Rows::default(),
        }
    }

    fn chunk(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), ParseFault> {
        if matches!(
            (self.phase, from),
            (Phase::Start, Dir::Resp) | (Phase::TlsRequested, Dir::Orig)
        ) {
            return self.buffer_chunk(from, data);
        }
        let early = std::mem::take(&mut self.early[from.index()]);
        for chunk in early.iter().map(Vec::as_slice).chain([data]) {
            match (self.phase, from) {
                (Phase::TlsRequested, Dir::Resp) => self.tls_reply(cx, chunk)?,
                _ => self.messages(cx, from, chunk)?,
            }
        }
        Ok(())
    }

    fn buffer_chunk(&mut self, from: Dir, data: &[u8]) -> Result<(), ParseFault> {
        let early = &mut self.early[from.index()];
        early.push(data.to_vec());
        if early.len() > MAX_EARLY || early.iter().map(Vec::len).sum::<usize>() > MAX_EARLY_BYTES {
            return Err(ParseFault::Both("too many messages of one side without a reply"));
        }
        Ok(())
    }

    /// Handles the server's reply to a TLS request.
    fn tls_reply(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Result<(), ParseFault> {
        let Some((word @ (b'S' | b'N'), rest)) = data.split_first() else {
            // Zeek reports nothing and keeps waiting.
            self.stopped[Dir::Resp.index()] = true;
            return Ok(());
        };
        cx.confirm(Tag::Postgresql);
        cx.report(&mut self.rows, |c| SslReply { c, data: [*word] });
        if *word == b'N' {
            self.phase = Phase::TlsDeclined;
            return self.messages(cx, Dir::Resp, rest);
        }
        let mut pieces = Vec::new();
        if !rest.is_empty() {
            pieces.push((Dir::Resp, Piece::Bytes(rest.to_vec())));
        }
        let early = std::mem::take(&mut self.early[Dir::Orig.index()]);
        pieces.extend(early.into_iter().map(|c| (Dir::Orig, Piece::Bytes(c))));
        self.stop();
        if cx.env.inner_protocols {
            cx.start(Tag::Ssl, Replay { pieces, is_inner: true });
        }
        Ok(())
    }

    fn messages(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), ParseFault> {
        let mut rest = data;
        let mut frames =
            std::mem::replace(&mut self.frames[from.index()], Frames::new(MAX_MESSAGE));
        let mut result = Ok(());
        while result.is_ok() && self.phase != Phase::Opaque {
            let is_first =
                from == Dir::Orig && matches!(self.phase, Phase::Start | Phase::TlsDeclined);
            let need = if is_first { message::first_length } else { message::length };
            let Some(frame) = frames.next(&mut rest, need) else { break };
            let cut = frame.len() < need(frame);
            result = match from {
                Dir::Orig if is_first => self.first(cx, frame),
                Dir::Orig => Frontend::parse(frame, cut).map(|(m, wrong)| {
                    if wrong.is_none() && cx.env.logs.events.any() {
                        raise::frontend(cx, frame, &m);
                    }
                    let message = FrontendKind(&m);
                    cx.report(&mut self.rows, |c| FrontendSeen { c, message });
                    wrong
                }),
                Dir::Resp => Backend::parse(frame, cut).map(|(m, wrong)| {
                    if cx.env.logs.events.any() {
                        raise::backend(cx, frame, &m, wrong.is_some());
                    }
                    let message = BackendKind(&m);
                    cx.report(&mut self.rows, |c| BackendSeen { c, message });
                    wrong
                }),
            }
            .and_then(|wrong| wrong.map_or(Ok(()), Err))
            .map_err(|wrong| match frame.len() {
                // Traffic that does not begin a session is reported before the roles are known.
                message::FIRST_HEADER if is_first && self.phase == Phase::Start => {
                    ParseFault::Both(wrong)
                }
                _ => ParseFault::Side(wrong),
            });
            // Data after the TLS request is buffered.
            if is_first && self.phase == Phase::TlsRequested {
                if !rest.is_empty() {
                    result = self.buffer_chunk(from, rest);
                }
                break;
            }
        }
        self.frames[from.index()] = frames;
        result
    }

    fn first(
        &mut self,
        cx: &mut Context<'_>,
        frame: &[u8],
    ) -> Result<Option<Malformed>, Malformed> {
        let (message, wrong) = FirstMessage::parse(frame)?;
        match message {
            FirstMessage::Tls if self.phase == Phase::TlsDeclined => {
                return Err("asks for TLS again");
            }
            FirstMessage::Tls => {
                cx.report(&mut self.rows, |c| SslRequest { c });
                self.phase = Phase::TlsRequested;
            }
            FirstMessage::Startup(parameters) => {
                for (name, value) in parameters {
                    cx.report(&mut self.rows, |c| StartupParameter { c, name, value });
                }
                self.phase = Phase::Plain;
                if wrong.is_none() {
                    let version = |at: usize| {
                        let two = frame.get(at..).and_then(<[u8]>::first_chunk);
                        two.map_or(0, |b| u16::from_be_bytes(*b).into())
                    };
                    let (major, minor) = (version(4), version(6));
                    cx.confirm(Tag::Postgresql);
                    cx.report(&mut self.rows, |c| StartupMessage { c, major, minor });
                }
            }
        }
        Ok(wrong)
    }

    fn stop(&mut self) {
        self.phase = Phase::Opaque;
        self.frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
        self.early = [Vec::new(), Vec::new()];
    }

    /// Stops parsing a side.
    fn stop_side(&mut self, cx: &mut Context<'_>, from: Dir, reason: Malformed) {
        self.stopped[from.index()] = true;
        self.frames[from.index()].reset();
        cx.violation(Tag::Postgresql, reason, &[]);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.phase == Phase::Opaque || self.stopped[from.index()] || data.is_empty() {
            return;
        }
        match self.chunk(cx, from, data) {
            Ok(()) => {}
            Err(ParseFault::Side(reason)) => self.stop_side(cx, from, reason),
            Err(ParseFault::Both(reason)) => {
                self.stop();
                cx.violation(Tag::Postgresql, reason, data);
            }
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.frames[from.index()].has_partial() {
            self.stop_side(cx, from, "stream ends within a message");
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        // A gap is not a violation.
        self.stop();
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use std::collections::BTreeMap;

    const TLS_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
    const STARTUP: &[u8] = b"\0\0\0\x32\0\x03\0\0user\0bob\0database\0db\0application_name\0me\0\0";
    const READY: &[u8] = b"Z\0\0\0\x05I";

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        run_with(chunks, false)
    }

    fn run_with(chunks: &[(Dir, &[u8])], inner: bool) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 5432);
        h.env.inner_protocols = inner;
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        a.finish(&mut h.cx());
        h
    }

    fn event_lines(h: &Harness) -> Vec<String> {
        let columns =
            ["user", "frontend", "frontend_arg", "backend", "backend_arg", "success", "rows"];
        let line = |r: &BTreeMap<String, String>| columns.map(|c| &*r[c]).join(" | ");
        h.rows("postgresql").iter().map(line).collect()
    }

    #[test]
    fn login_queries_and_the_end() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        let error = b"E\0\0\0\x13SERROR\0C42\0x1\0\0";
        let login = [&b"R\0\0\0\x08\0\0\0\0"[..], b"S\0\0\0\x08a\0b\0", READY].concat();
        let rows =
            [&b"T\0\0\0\x06\0\x01"[..], b"D\0\0\0\x06\0\0", b"D\0\0\0\x06\0\0", READY].concat();
        let h = run(&[
            (o, TLS_REQUEST),
            (r, b"N"),
            (o, STARTUP),
            (r, b"R\0\0\0\x0c\0\0\0\x05salt"),
            (o, b"p\0\0\0\x05x"),
            (r, &login),
            (o, b"Q\0\0\0\x0dselect 1\0"),
            (r, &rows),
            (o, b"Q\0\0\0\x07ab\0"),
            (r, error),
            (r, READY),
            (o, b"Q\0\0\0\x07cd\0"),
            (r, b"N\0\0\0\x09Mhi\0\0"),
            (r, b"Z\0\0\0\x05E"),
            (o, b"X\0\0\0\x04"),
        ]);
        assert!(h.confirmed(Tag::Postgresql));
        assert!(!h.violated(Tag::Postgresql));
        assert_eq!(
            event_lines(&h),
            [
                "- | ssl_request | - | ssl_reply | N | F | -",
                "bob | startup | - | auth_ok | MD5Password | T | -",
                "bob | simple_query | select 1 | - | - | T | 2",
                "bob | simple_query | ab | error | SeverityLocalized=ERROR,Code=42,UnknownErrorIdx=1 | F | -",
                "bob | simple_query | cd | - | Message=hi | F | 0",
                "bob | terminate | - | - | - | - | -",
            ]
        );
        assert_eq!(h.rows("postgresql")[1]["database"], "db");
        assert_eq!(h.rows("postgresql")[1]["application_name"], "me");
    }

    #[test]
    fn cuts_do_not_matter() {
        let server = [&b"R\0\0\0\x08\0\0\0\0"[..], READY].concat();
        let whole = run(&[(Dir::Orig, STARTUP), (Dir::Resp, &server)]);
        let mut pieces: Vec<(Dir, &[u8])> = STARTUP.chunks(3).map(|c| (Dir::Orig, c)).collect();
        pieces.extend(server.chunks(1).map(|c| (Dir::Resp, c)));
        assert_eq!(event_lines(&run(&pieces)), event_lines(&whole));
        assert_eq!(event_lines(&whole), ["bob | startup | - | auth_ok | - | T | -"]);
    }

    #[test]
    fn tls_is_handed_on_where_it_is_wanted() {
        let chunks: &[(Dir, &[u8])] =
            &[(Dir::Orig, TLS_REQUEST), (Dir::Resp, b"S"), (Dir::Orig, b"\x16\x03")];
        let h = run_with(chunks, true);
        assert_eq!(event_lines(&h), ["- | ssl_request | - | ssl_reply | S | T | -"]);
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        assert!(!h.violated(Tag::Postgresql));
        assert!(run(chunks).starts.is_empty());
        // A client that did not wait for the reply.
        let h = run_with(
            &[(Dir::Orig, TLS_REQUEST), (Dir::Orig, b"\x16\x03"), (Dir::Resp, b"S")],
            true,
        );
        assert_eq!(h.starts[0].1.pieces, [(Dir::Orig, Piece::Bytes(b"\x16\x03".to_vec()))]);
    }

    #[test]
    fn sides_out_of_order() {
        let ok = [&b"R\0\0\0\x08\0\0\0\0"[..], READY].concat();
        let early = [&b"N"[..], &ok].concat();
        let both = [TLS_REQUEST, STARTUP].concat();
        // Buffered data is parsed when more data of that side arrives.
        let chunks: &[(Dir, &[u8])] = &[
            (Dir::Resp, &early[..1]),
            (Dir::Orig, &both),
            (Dir::Resp, &ok),
            (Dir::Orig, b"X\0\0\0\x04"),
        ];
        let refused = "- | ssl_request | - | ssl_reply | N | F | -";
        let ready = "- | - | - | auth_ok | - | T | -";
        assert_eq!(event_lines(&run(&chunks[..2])), ["- | ssl_request | - | - | - | - | -"]);
        assert_eq!(event_lines(&run(&chunks[..3])), [refused, ready]);
        let (startup, end) =
            ("bob | startup | - | - | - | - | -", "bob | terminate | - | - | - | - | -");
        assert_eq!(event_lines(&run(chunks)), [refused, ready, startup, end]);
        let h = run(&[(Dir::Resp, &b"x"[..]); MAX_EARLY + 1]);
        assert!(h.violated(Tag::Postgresql));
    }

    #[test]
    fn one_side_only() {
        let h = run(&[(Dir::Orig, STARTUP), (Dir::Orig, b"Q\0\0\0\x07ab\0")]);
        assert_eq!(
            event_lines(&h),
            ["bob | startup | - | - | - | - | -", "bob | simple_query | ab | - | - | - | -"]
        );
        let h = run(&[(Dir::Resp, READY)]);
        assert!(event_lines(&h).is_empty());
    }

    #[test]
    fn gaps_and_nonsense_end_it() {
        let mut h = Harness::new(Proto::Tcp, 5432);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, STARTUP);
        a.gap(&mut h.cx(), Dir::Resp, 7);
        assert!(!h.violated(Tag::Postgresql));
        a.stream(&mut h.cx(), Dir::Orig, b"Q\0\0\0\x07ab\0");
        a.finish(&mut h.cx());
        assert_eq!(event_lines(&h), ["bob | startup | - | - | - | - | -"]);
        for wrong in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\x08\0\x02\0\0"] {
            let h = run(&[(Dir::Orig, wrong)]);
            assert!(h.violated(Tag::Postgresql) && !h.confirmed(Tag::Postgresql), "{wrong:?}");
        }
        // An invalid reply is not a violation, but limits what the client may send.
        let mut chunks = vec![(Dir::Orig, TLS_REQUEST), (Dir::Resp, &b"E"[..])];
        assert!(!run(&chunks).violated(Tag::Postgresql));
        chunks.extend([(Dir::Orig, &b"x"[..]); MAX_EARLY + 1]);
        assert!(run(&chunks).violated(Tag::Postgresql));
    }

    #[test]
    fn what_comes_before_nonsense_counts() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        // A parameter without a value.
        let startup = b"\0\0\0\x1a\0\x03\0\0user\0bob\0options\0\0\0";
        let h = run(&[(o, startup)]);
        assert!(h.violated(Tag::Postgresql) && !h.confirmed(Tag::Postgresql));
        assert_eq!(event_lines(&h), ["bob | - | - | - | - | - | -"]);
        // A query with trailing data; the server's side is still parsed.
        let h = run(&[(o, STARTUP), (o, b"Q\0\0\0\x08ab\0c"), (o, b"X\0\0\0\x04"), (r, READY)]);
        assert!(h.violated(Tag::Postgresql));
        assert_eq!(
            event_lines(&h),
            ["bob | startup | - | - | - | - | -", "bob | simple_query | ab | - | - | T | 0"]
        );
        // Unterminated fields of an error make a row, although it is empty.
        let h = run(&[(o, STARTUP), (r, READY), (r, b"E\0\0\0\x0bSERROR\0")]);
        assert_eq!(event_lines(&h)[1], "bob | - | - | - | - | - | -");
    }

    #[test]
    fn the_end_within_a_message_is_a_violation() {
        let mut h = Harness::new(Proto::Tcp, 5432);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, STARTUP);
        a.end(&mut h.cx(), Dir::Orig);
        assert!(!h.violated(Tag::Postgresql));
        a.stream(&mut h.cx(), Dir::Resp, &READY[..5]);
        a.end(&mut h.cx(), Dir::Resp);
        assert!(h.violated(Tag::Postgresql));
    }

    #[test]
    fn long_queries_are_cut() {
        let mut query = vec![b'Q'];
        query.extend((200_004_u32 + 1).to_be_bytes());
        query.extend([b'a'; 200_000]);
        query.extend(b"\0X\0\0\0\x04");
        let h = run(&[(Dir::Orig, STARTUP), (Dir::Orig, &query)]);
        let rows = h.rows("postgresql");
        assert_eq!(rows[1]["frontend_arg"], "a".repeat(gannet_log::Limits::DEFAULT.string));
        assert_eq!(rows[2]["frontend"], "terminate");
    }
}
