use gannet_base::Dir;

use super::events::Answer;
use super::events::Ask;
use super::events::BackendSeen;
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

/// Most stored bytes of a message; the rest of a longer one is skipped, and its beginning is
/// parsed.
const MAX_MESSAGE: usize = 64 << 10;

/// Chunks that one side may send before the other side's answer to TLS is known.
const MAX_EARLY: usize = 4;

/// Bytes of such chunks.
const MAX_EARLY_BYTES: usize = 64 << 10;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has not said anything.
    Start,
    /// It asked for TLS, and the server has not answered.
    Asked,
    /// The server does without TLS; the client begins again.
    Refused,
    /// Messages.
    Plain,
    /// Nothing more is to be read: TLS, bytes that are missing, or something else than PostgreSQL.
    Blind,
}

/// Data that cannot be parsed.
enum ParseFault {
    /// All that both sides say.
    Both(Malformed),
    /// Stops parsing this side; the other continues.
    Side(Malformed),
}

/// The analyzer of one connection.
pub struct Analyzer {
    phase: Phase,
    frames: [Frames; 2],
    /// Data of a side that could not be parsed yet: it is parsed when more arrives.
    early: [Vec<Vec<u8>>; 2],
    /// Sides that are not read any longer.
    lost: [bool; 2],
    rows: Rows,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            phase: Phase::Start,
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            early: [Vec::new(), Vec::new()],
            lost: [false; 2],
            rows: Rows::default(),
        }
    }

    fn chunk(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) -> Result<(), ParseFault> {
        if matches!((self.phase, from), (Phase::Start, Dir::Resp) | (Phase::Asked, Dir::Orig)) {
            return self.wait(from, data);
        }
        let early = std::mem::take(&mut self.early[from.index()]);
        for chunk in early.iter().map(Vec::as_slice).chain([data]) {
            match (self.phase, from) {
                (Phase::Asked, Dir::Resp) => self.verdict(cx, chunk)?,
                _ => self.messages(cx, from, chunk)?,
            }
        }
        Ok(())
    }

    fn wait(&mut self, from: Dir, data: &[u8]) -> Result<(), ParseFault> {
        let early = &mut self.early[from.index()];
        early.push(data.to_vec());
        if early.len() > MAX_EARLY || early.iter().map(Vec::len).sum::<usize>() > MAX_EARLY_BYTES {
            return Err(ParseFault::Both("one side says too much before the other"));
        }
        Ok(())
    }

    /// The server's word on TLS.
    fn verdict(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Result<(), ParseFault> {
        let Some((word @ (b'S' | b'N'), rest)) = data.split_first() else {
            // Zeek reports nothing, and keeps waiting.
            self.lost[Dir::Resp.index()] = true;
            return Ok(());
        };
        cx.confirm(Tag::Postgresql);
        cx.report(&mut self.rows, |c| SslReply { c, data: [*word] });
        if *word == b'N' {
            self.phase = Phase::Refused;
            return self.messages(cx, Dir::Resp, rest);
        }
        let mut pieces = Vec::new();
        if !rest.is_empty() {
            pieces.push((Dir::Resp, Piece::Bytes(rest.to_vec())));
        }
        let early = std::mem::take(&mut self.early[Dir::Orig.index()]);
        pieces.extend(early.into_iter().map(|c| (Dir::Orig, Piece::Bytes(c))));
        self.give_up();
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
        while result.is_ok() && self.phase != Phase::Blind {
            let is_first = from == Dir::Orig && matches!(self.phase, Phase::Start | Phase::Refused);
            let need = if is_first { message::first_length } else { message::length };
            let Some(frame) = frames.next(&mut rest, need) else { break };
            let cut = frame.len() < need(frame);
            result = match from {
                Dir::Orig if is_first => self.first(cx, frame),
                Dir::Orig => Frontend::parse(frame, cut).map(|(m, wrong)| {
                    if wrong.is_none() && cx.env.logs.events.any() {
                        raise::frontend(cx, frame, &m);
                    }
                    let message = Ask(&m);
                    cx.report(&mut self.rows, |c| FrontendSeen { c, message });
                    wrong
                }),
                Dir::Resp => Backend::parse(frame, cut).map(|(m, wrong)| {
                    if cx.env.logs.events.any() {
                        raise::backend(cx, frame, &m, wrong.is_some());
                    }
                    let message = Answer(&m);
                    cx.report(&mut self.rows, |c| BackendSeen { c, message });
                    wrong
                }),
            }
            .and_then(|wrong| wrong.map_or(Ok(()), Err))
            .map_err(|wrong| match frame.len() {
                // Traffic that is no session is reported before the roles are known.
                message::FIRST_HEADER if is_first && self.phase == Phase::Start => {
                    ParseFault::Both(wrong)
                }
                _ => ParseFault::Side(wrong),
            });
            // Data behind the TLS request has to wait.
            if is_first && self.phase == Phase::Asked {
                if !rest.is_empty() {
                    result = self.wait(from, rest);
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
            FirstMessage::Tls if self.phase == Phase::Refused => return Err("asks for TLS again"),
            FirstMessage::Tls => {
                cx.report(&mut self.rows, |c| SslRequest { c });
                self.phase = Phase::Asked;
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

    fn give_up(&mut self) {
        self.phase = Phase::Blind;
        self.frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
        self.early = [Vec::new(), Vec::new()];
    }

    /// Reads a side no longer.
    fn lose(&mut self, cx: &mut Context<'_>, from: Dir, reason: Malformed) {
        self.lost[from.index()] = true;
        self.frames[from.index()].reset();
        cx.violation(Tag::Postgresql, reason, &[]);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.phase == Phase::Blind || self.lost[from.index()] || data.is_empty() {
            return;
        }
        match self.chunk(cx, from, data) {
            Ok(()) => {}
            Err(ParseFault::Side(reason)) => self.lose(cx, from, reason),
            Err(ParseFault::Both(reason)) => {
                self.give_up();
                cx.violation(Tag::Postgresql, reason, data);
            }
        }
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.frames[from.index()].has_partial() {
            self.lose(cx, from, "stream ends within a message");
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        // This is no violation.
        self.give_up();
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

    const ASK: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
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

    fn told(h: &Harness) -> Vec<String> {
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
            (o, ASK),
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
            told(&h),
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
        assert_eq!(told(&run(&pieces)), told(&whole));
        assert_eq!(told(&whole), ["bob | startup | - | auth_ok | - | T | -"]);
    }

    #[test]
    fn tls_is_handed_on_where_it_is_wanted() {
        let chunks: &[(Dir, &[u8])] =
            &[(Dir::Orig, ASK), (Dir::Resp, b"S"), (Dir::Orig, b"\x16\x03")];
        let h = run_with(chunks, true);
        assert_eq!(told(&h), ["- | ssl_request | - | ssl_reply | S | T | -"]);
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        assert!(!h.violated(Tag::Postgresql));
        assert!(run(chunks).starts.is_empty());
        // A client that did not wait.
        let h = run_with(&[(Dir::Orig, ASK), (Dir::Orig, b"\x16\x03"), (Dir::Resp, b"S")], true);
        assert_eq!(h.starts[0].1.pieces, [(Dir::Orig, Piece::Bytes(b"\x16\x03".to_vec()))]);
    }

    #[test]
    fn sides_out_of_order() {
        let ok = [&b"R\0\0\0\x08\0\0\0\0"[..], READY].concat();
        let early = [&b"N"[..], &ok].concat();
        let both = [ASK, STARTUP].concat();
        // What waited is read when more of that side comes.
        let chunks: &[(Dir, &[u8])] = &[
            (Dir::Resp, &early[..1]),
            (Dir::Orig, &both),
            (Dir::Resp, &ok),
            (Dir::Orig, b"X\0\0\0\x04"),
        ];
        let refused = "- | ssl_request | - | ssl_reply | N | F | -";
        let ready = "- | - | - | auth_ok | - | T | -";
        assert_eq!(told(&run(&chunks[..2])), ["- | ssl_request | - | - | - | - | -"]);
        assert_eq!(told(&run(&chunks[..3])), [refused, ready]);
        let (startup, end) =
            ("bob | startup | - | - | - | - | -", "bob | terminate | - | - | - | - | -");
        assert_eq!(told(&run(chunks)), [refused, ready, startup, end]);
        let h = run(&[(Dir::Resp, &b"x"[..]); MAX_EARLY + 1]);
        assert!(h.violated(Tag::Postgresql));
    }

    #[test]
    fn one_side_only() {
        let h = run(&[(Dir::Orig, STARTUP), (Dir::Orig, b"Q\0\0\0\x07ab\0")]);
        assert_eq!(
            told(&h),
            ["bob | startup | - | - | - | - | -", "bob | simple_query | ab | - | - | - | -"]
        );
        let h = run(&[(Dir::Resp, READY)]);
        assert!(told(&h).is_empty());
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
        assert_eq!(told(&h), ["bob | startup | - | - | - | - | -"]);
        for wrong in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\x08\0\x02\0\0"] {
            let h = run(&[(Dir::Orig, wrong)]);
            assert!(h.violated(Tag::Postgresql) && !h.confirmed(Tag::Postgresql), "{wrong:?}");
        }
        // An invalid answer is no violation, but limits what the client may send.
        let mut chunks = vec![(Dir::Orig, ASK), (Dir::Resp, &b"E"[..])];
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
        assert_eq!(told(&h), ["bob | - | - | - | - | - | -"]);
        // A query with more behind it; the server is read on.
        let h = run(&[(o, STARTUP), (o, b"Q\0\0\0\x08ab\0c"), (o, b"X\0\0\0\x04"), (r, READY)]);
        assert!(h.violated(Tag::Postgresql));
        assert_eq!(
            told(&h),
            ["bob | startup | - | - | - | - | -", "bob | simple_query | ab | - | - | T | 0"]
        );
        // Fields of an error without its end make a row, though it is empty.
        let h = run(&[(o, STARTUP), (r, READY), (r, b"E\0\0\0\x0bSERROR\0")]);
        assert_eq!(told(&h)[1], "bob | - | - | - | - | - | -");
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
