use std::collections::VecDeque;

use gannet_base::Dir;

use super::body::Facts;
use super::body::Message;
use super::body::Scope;
use super::feed::Feed;
use super::feed::Text;
use super::rows::Exchanges;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::Tag;

/// Requests whose responses are still to come, that are remembered at the most.
pub(super) const MAX_UNANSWERED: usize = 1 << 16;

/// What comes next from a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A request or status line.
    Line,
    /// More of the message at hand.
    Message,
    /// Nothing that could be understood.
    Nothing,
    /// The bare body of an HTTP/0.9 response.
    Body0_9,
}

pub(super) struct Side {
    pub(super) feed: Feed,
    pub(super) expect: Expect,
    /// A message is under way.
    pub(super) ongoing: bool,
    /// The last message, under way or finished.
    pub(super) message: Option<Box<Message>>,
    /// Request or status lines so far.
    pub(super) lines: u64,
}

impl Side {
    fn new() -> Self {
        Self {
            feed: Feed::default(),
            expect: Expect::Line,
            ongoing: false,
            message: None,
            lines: 0,
        }
    }
}

/// The analyzer of one connection.
pub struct Analyzer {
    pub(super) sides: [Side; 2],
    pub(super) facts: Facts,
    pub(super) exchanges: Exchanges,
    /// Of each unanswered request, whether its response has no body (HEAD).
    pub(super) unanswered: VecDeque<bool>,
    /// The last request was CONNECT.
    pub(super) connect: bool,
    /// The connection carries something else from now on.
    upgraded: bool,
    /// Who analyses what it carries then.
    nested: Option<Box<Nested>>,
    /// This connection's exchanges belong to an analyzer of the same kind, which carries this one's
    /// stream.
    inner: bool,
    /// The roles changed too late to make sense of the rest.
    lost: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            sides: [Side::new(), Side::new()],
            facts: Facts::default(),
            exchanges: Exchanges::default(),
            unanswered: VecDeque::new(),
            connect: false,
            upgraded: false,
            nested: None,
            inner: cx.env.http.lent.is_some(),
            lost: false,
        }
    }

    /// Does something with the connection's exchanges at hand.
    fn with_exchanges(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.inner {
            act(self, cx);
            return;
        }
        self.exchanges = cx.env.http.lent.take().unwrap_or_default();
        act(self, cx);
        cx.env.http.lent = Some(std::mem::take(&mut self.exchanges));
    }

    /// Passes something on to those inside, who go on with this connection's exchanges.
    fn pass_on(&mut self, cx: &mut Context<'_>, act: impl FnOnce(&mut Nested, &mut Context<'_>)) {
        if let Some(nested) = &mut self.nested {
            cx.env.http.lent = Some(std::mem::take(&mut self.exchanges));
            act(nested, cx);
            self.exchanges = cx.env.http.lent.take().unwrap_or_default();
        }
    }

    /// Runs `act` on the message of a side, and sees to its end.
    pub(super) fn with_message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        rest: &[u8],
        act: impl FnOnce(&mut Message, &mut Scope<'_, '_>),
    ) {
        let side = &mut self.sides[from.index()];
        if let Some(message) = &mut side.message {
            let (exchanges, facts, feed) = (&mut self.exchanges, &mut self.facts, &mut side.feed);
            act(message, &mut Scope { cx, exchanges, facts, feed, from });
            if side.ongoing && message.finished {
                self.made(cx, from, false, rest);
            }
        }
    }

    /// A message is over. `interrupted`: not by its own end, so what follows makes no sense.
    fn made(&mut self, cx: &mut Context<'_>, from: Dir, interrupted: bool, rest: &[u8]) {
        let side = &mut self.sides[from.index()];
        if !std::mem::take(&mut side.ongoing) {
            return;
        }
        if from.is_orig() {
            self.facts.request_ongoing = false;
        }
        self.with_message(cx, from, &[], |message, s| message.done(s));
        let mut nothing = interrupted;
        if !from.is_orig() {
            let code = self.facts.reply_code;
            let informational = (100..200).contains(&code);
            if !informational {
                self.unanswered.pop_front();
            }
            if code == 101
                && self.unanswered.len() == 1
                && self.facts.upgrade
                && !self.facts.upgrade_to.is_empty()
            {
                self.upgrade(cx, rest);
            }
            self.facts.reply_code = 0;
            self.facts.upgrade = false;
            self.facts.upgrade_to.clear();
            nothing |= self.upgraded;
        }
        let side = &mut self.sides[from.index()];
        side.expect = if nothing { Expect::Nothing } else { Expect::Line };
    }

    /// The connection switches to another protocol (RFC 9110 section 7.8).
    #[cold]
    fn upgrade(&mut self, cx: &mut Context<'_>, rest: &[u8]) {
        if !rest.is_empty() {
            let addl = rest.len().to_string();
            cx.weird("protocol_data_with_HTTP_upgrade_reply", &addl, Some("HTTP"));
        }
        if self.facts.upgrade_to.eq_ignore_ascii_case(b"websocket") {
            self.exchanges.websocket_established(cx);
            self.hand_over(cx, Tag::WebSocket, rest);
        } else {
            self.hand_over(cx, Tag::Detector, rest);
        }
    }

    /// From now on the connection carries something else; `rest` is the beginning of it.
    fn hand_over(&mut self, cx: &mut Context<'_>, tag: Tag, rest: &[u8]) {
        self.upgraded = true;
        self.nested = Some(Box::new(Nested::new(Tag::Http)));
        self.pass_on(cx, |nested, cx| {
            nested.start(cx, tag);
            if !rest.is_empty() {
                nested.stream(cx, Dir::Resp, rest);
            }
        });
    }

    /// A line without its end; `rest` is what follows it in the chunk.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8], rest: &[u8]) {
        match (self.sides[from.index()].expect, from) {
            (Expect::Line, Dir::Orig) => self.request_line(cx, line),
            (Expect::Line, Dir::Resp) => self.status_line(cx, line),
            (Expect::Message, _) => {
                self.with_message(cx, from, rest, |m, s| m.deliver(s, line, true));
                if self.connect && !from.is_orig() && line.is_empty() && !self.upgraded {
                    if !rest.is_empty() {
                        let addl = rest.len().to_string();
                        cx.weird("protocol_data_with_HTTP_CONNECT_reply", &addl, Some("HTTP"));
                    }
                    self.hand_over(cx, Tag::Detector, rest);
                }
            }
            (Expect::Nothing | Expect::Body0_9, _) => {}
        }
    }

    fn report_oddities(&mut self, cx: &mut Context<'_>, from: Dir) {
        let odd = std::mem::take(&mut self.sides[from.index()].feed.odd);
        if odd.lone_cr {
            cx.weird("line_terminated_with_single_CR", "", Some("CONTENTLINE"));
        }
        if odd.too_long {
            cx.weird("contentline_size_exceeded", "", Some("CONTENTLINE"));
        }
    }

    /// Cuts a chunk into lines that nobody reads, only to tell what is odd about their ends.
    fn skim(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            let feed = &mut self.sides[from.index()].feed;
            feed.skip_lf(&mut data);
            match feed.next(&mut data) {
                Some(Text::Joined(line)) => feed.recycle(line),
                Some(Text::Borrowed(_)) => {}
                None => feed.forget(),
            }
        }
        self.report_oddities(cx, from);
    }

    /// Cuts a chunk as the feed says and passes on what comes out.
    fn cut(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            if self.upgraded {
                return;
            }
            let feed = &mut self.sides[from.index()].feed;
            if feed.skip {
                return;
            }
            feed.skip_lf(&mut data);
            if feed.plain > 0 {
                let n = usize::try_from(feed.plain).unwrap_or(usize::MAX).min(data.len());
                let (now, rest) = data.split_at(n);
                feed.plain -= n as i64;
                data = rest;
                if self.sides[from.index()].message.is_some() {
                    self.with_message(cx, from, rest, |m, s| m.deliver(s, now, false));
                } else {
                    let name = match from {
                        Dir::Orig => "unexpected_client_HTTP_data",
                        Dir::Resp => "unexpected_server_HTTP_data",
                    };
                    cx.weird(name, "", Some("HTTP"));
                }
                continue;
            }
            let line = feed.next(&mut data);
            if feed.odd != Default::default() {
                self.report_oddities(cx, from);
            }
            match line {
                Some(Text::Borrowed(line)) => self.line(cx, from, line, data),
                Some(Text::Joined(line)) => {
                    self.line(cx, from, &line, data);
                    self.sides[from.index()].feed.recycle(line);
                }
                None if self.sides[from.index()].expect == Expect::Nothing => {
                    self.sides[from.index()].feed.forget();
                }
                None => {}
            }
        }
    }
}

impl Analyzer {
    fn on_data(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.lost {
            return;
        }
        if cx.conn.partial {
            if from.is_orig() {
                self.skim(cx, from, data);
            }
            return;
        }
        if self.upgraded {
            self.pass_on(cx, |nested, cx| nested.stream(cx, from, data));
            return;
        }
        let side = &mut self.sides[from.index()];
        if side.expect == Expect::Body0_9 {
            self.body_0_9(cx, data);
            return;
        }
        if side.feed.raw {
            self.line(cx, from, data, &[]);
            return;
        }
        if side.feed.skip {
            return;
        }
        if side.feed.delivery > 0 {
            side.feed.delivery -= data.len() as i64;
        }
        self.cut(cx, from, data);
        let feed = &mut self.sides[from.index()].feed;
        if feed.delivery == 0 {
            // The told length is reached: an unfinished line is the last one.
            if feed.has_partial() && !self.upgraded {
                cx.weird("line_terminated_without_CRLF", "", Some("CONTENTLINE"));
                self.cut(cx, from, b"\r\n");
            }
            self.sides[from.index()].feed.delivery = -1;
        }
    }

    fn on_gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        self.pass_on(cx, |nested, cx| nested.gap(cx, from, len));
        let mut within = false;
        self.with_message(cx, from, &[], |message, s| within = message.gap(s, len));
        if within {
            return;
        }
        if from.is_orig() {
            // Whether a response has a body may depend on the request.
            self.made(cx, Dir::Orig, true, &[]);
        }
        self.made(cx, Dir::Resp, true, &[]);
        self.sides[from.index()].feed.skip = true;
    }

    fn on_end(&mut self, cx: &mut Context<'_>, from: Dir) {
        self.pass_on(cx, |nested, cx| nested.end(cx, from));
        let feed = &self.sides[from.index()].feed;
        if feed.has_partial() && !feed.raw && !self.upgraded {
            self.on_data(cx, from, b"\n");
        }
        self.made(cx, from, false, &[]);
    }

    fn interrupt(&mut self, cx: &mut Context<'_>) {
        self.made(cx, Dir::Orig, true, &[]);
        self.made(cx, Dir::Resp, true, &[]);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.with_exchanges(cx, |a, cx| a.on_data(cx, from, data));
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        self.with_exchanges(cx, |a, cx| a.on_gap(cx, from, len));
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        self.with_exchanges(cx, |a, cx| a.on_end(cx, from));
    }

    fn flip(&mut self, cx: &mut Context<'_>) {
        if self.upgraded {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
        } else if self.sides.iter().any(|side| side.lines > 0) {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
            self.lost = true;
        } else {
            let [orig, resp] = &mut self.sides;
            std::mem::swap(&mut orig.feed, &mut resp.feed);
        }
    }

    fn reset(&mut self, cx: &mut Context<'_>) {
        self.with_exchanges(cx, |a, cx| {
            a.pass_on(cx, Nested::reset);
            a.interrupt(cx);
        });
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.with_exchanges(cx, |a, cx| {
            a.pass_on(cx, Nested::finish);
            a.interrupt(cx);
            if !a.inner {
                a.exchanges.finish(cx);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::io::Write;

    type Rows = Vec<BTreeMap<String, String>>;

    /// What both sides send, in order; then the connection ends.
    fn run(chunks: &[(Dir, &[u8])]) -> (Rows, Harness) {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        a.end(&mut h.cx(), Dir::Orig);
        a.end(&mut h.cx(), Dir::Resp);
        a.finish(&mut h.cx());
        (h.rows("http"), h)
    }

    fn exchange(request: &[u8], response: &[u8]) -> Rows {
        run(&[(Dir::Orig, request), (Dir::Resp, response)]).0
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

    #[test]
    fn a_request_and_its_response() {
        let (rows, h) = run(&[
            (
                Dir::Orig,
                b"POST /%41?b HTTP/1.1\r\nHost: a.example:81\r\nUser-Agent: x\r\nReferer: r\r\n\
                  Origin: o\r\nVia: v\r\nAuthorization: Basic dTpw\r\nContent-Length: 3\r\n\r\nabc",
            ),
            (Dir::Resp, b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nabcd"),
        ]);
        assert_eq!(rows.len(), 1);
        let wanted = [
            ("trans_depth", "1"),
            ("method", "POST"),
            ("host", "a.example:81"),
            ("uri", "/A?b"),
            ("referrer", "r"),
            ("version", "1.0"),
            ("user_agent", "x"),
            ("origin", "o"),
            ("request_body_len", "3"),
            ("response_body_len", "4"),
            ("status_code", "200"),
            ("status_msg", "OK"),
            ("info_code", "-"),
            ("tags", "(empty)"),
            ("username", "u"),
            ("password", "-"),
            ("proxied", "VIA -> v"),
        ];
        for (column, value) in wanted {
            assert_eq!(rows[0][column], value, "{column}");
        }
        assert!(h.confirmed(Tag::Http));
        assert!(!h.violated(Tag::Http));
    }

    #[test]
    fn chunks_are_put_together() {
        let rows = exchange(
            GET,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
              4;x=y\r\nabcd\r\n0a\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n",
        );
        assert_eq!(rows[0]["response_body_len"], "14");
    }

    #[test]
    fn compressed_bodies_count_uncompressed() {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        e.write_all(&[b'a'; 10_000]).unwrap();
        let z = e.finish().unwrap();
        let mut response = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            z.len()
        )
        .into_bytes();
        response.extend(z);
        assert_eq!(exchange(GET, &response)[0]["response_body_len"], "10000");
    }

    #[test]
    fn head_and_304_have_no_body() {
        let rows = exchange(
            b"HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        );
        let lens: Vec<_> = rows.iter().map(|r| &r["response_body_len"][..]).collect();
        assert_eq!(lens, ["0", "0", "1"]);
        assert_eq!(rows[2]["uri"], "/c");
    }

    #[test]
    fn informational_responses_come_before_the_final_one() {
        let rows = exchange(
            b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(rows.len(), 1);
        assert_eq!((&rows[0]["info_code"][..], &rows[0]["info_msg"][..]), ("100", "Continue"));
        assert_eq!(rows[0]["status_code"], "201");
    }

    #[test]
    fn a_body_without_length_is_lines_until_the_end() {
        let rows = exchange(GET, b"HTTP/1.1 200 OK\r\n\r\na\nbc\r\nlast");
        // Each line counts two bytes for its end, whatever that is.
        assert_eq!(rows[0]["response_body_len"], "13");
        let rows = exchange(GET, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na\nbc");
        assert_eq!(rows[0]["response_body_len"], "4");
    }

    #[test]
    fn unanswered_requests_are_written_at_the_end() {
        let (rows, _) = run(&[(Dir::Orig, GET), (Dir::Orig, GET)]);
        assert_eq!(rows.len(), 2);
        assert_eq!((&rows[1]["trans_depth"][..], &rows[1]["status_code"][..]), ("2", "-"));
    }

    #[test]
    fn too_much_pipelining_writes_what_waits() {
        let requests = GET.repeat(150);
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &requests);
        assert_eq!(h.rows("http").len(), 100);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("http").len(), 150);
    }

    #[test]
    fn http_0_9() {
        let (rows, h) =
            run(&[(Dir::Orig, b"GET /\r\n"), (Dir::Resp, b"<html>\r\n"), (Dir::Resp, b"x")]);
        assert_eq!(rows[0]["version"], "0.9");
        assert_eq!(rows[0]["response_body_len"], "9");
        assert_eq!(rows[0]["status_msg"], "<empty>");
        assert!(h.confirmed(Tag::Http));
    }

    #[test]
    fn behind_connect_anything_may_come() {
        let (rows, h) = run(&[
            (Dir::Orig, b"CONNECT a:80 HTTP/1.1\r\n\r\n"),
            (Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\n"),
            (Dir::Orig, b"GET /within HTTP/1.1\r\n\r\n"),
            (Dir::Resp, b"HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx"),
        ]);
        assert_eq!(h.rows("tunnel")[0]["tunnel_type"], "Tunnel::HTTP");
        // One connection, one count of exchanges. The response to CONNECT ends with the connection,
        // when those inside are past it.
        let depths: Vec<_> = rows.iter().map(|r| (&r["uri"][..], &r["trans_depth"][..])).collect();
        assert_eq!(depths, [("/within", "2"), ("-", "3"), ("a:80", "1")]);
        assert!(h.starts.is_empty());
        assert!(!h.violated(Tag::Http));
    }

    #[test]
    fn an_upgrade_to_websocket() {
        let get = b"GET /ws HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n\r\n";
        let upgrade = b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\
                        Sec-WebSocket-Protocol: p\r\n\r\n";
        let (rows, h) = run(&[(Dir::Orig, get), (Dir::Resp, upgrade), (Dir::Resp, b"\x81\x00")]);
        assert_eq!((rows.len(), &rows[0]["status_code"][..]), (1, "101"));
        let row = &h.rows("websocket")[0];
        assert_eq!((&row["host"][..], &row["uri"][..], &row["subprotocol"][..]), ("a", "/ws", "p"));
        assert!(h.confirmed(Tag::WebSocket));
        assert!(!h.violated(Tag::Http));
    }

    #[test]
    fn what_is_not_http_is_a_violation() {
        let (rows, h) = run(&[(Dir::Orig, b"EHLO x\r\n"), (Dir::Resp, b"220 y\r\n")]);
        // "EHLO x" could be HTTP/0.9, but what answers is anything then.
        assert_eq!(rows[0]["method"], "EHLO");
        assert!(!h.violated(Tag::Http));
        let (rows, h) = run(&[(Dir::Orig, b"\x16\x03\x01\r\n")]);
        assert!(rows.is_empty());
        assert!(h.violated(Tag::Http));
    }

    #[test]
    fn parts_of_a_multipart_body() {
        let body =
            b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"one.txt\"\r\n\r\n\
                     1\n\r\n--b\r\nContent-Type: text/plain; name=two\r\n\r\n2\r\n--b--\r\n";
        let request = [
            &b"POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"[..],
            format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
            body,
        ]
        .concat();
        let rows = exchange(&request, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["orig_filenames"], "one.txt,two");
        assert_eq!(rows[0]["request_body_len"], body.len().to_string());
    }

    #[test]
    fn a_gap_within_a_body_counts() {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, GET);
        a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab");
        a.gap(&mut h.cx(), Dir::Resp, 7);
        a.stream(&mut h.cx(), Dir::Resp, b"jHTTP/1.1 ");
        assert_eq!(h.rows("http")[0]["response_body_len"], "10");
        a.gap(&mut h.cx(), Dir::Resp, 7);
        a.finish(&mut h.cx());
        assert_eq!(h.rows("http").len(), 1);
    }

    fn weirds(chunks: &[(Dir, &[u8])]) -> Vec<String> {
        let (_, h) = run(chunks);
        h.rows("weird").into_iter().map(|mut r| r.remove("name").unwrap_or_default()).collect()
    }

    #[test]
    fn oddities_are_told() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"ODD / HTTP/1.1\r\n\r\n", &["unknown_HTTP_method"]),
            (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", &["HTTP_obsolete_line_folding"]),
            (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", &["HTTP_bad_content_length"]),
            (
                b"GET / HTTP/1.1\r\nContent-Length: 01\r\n\r\nx",
                &["HTTP_content_length_leading_zeros"],
            ),
            (
                b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
                  z\r\n\r\n",
                &["HTTP_content_length_and_chunked", "HTTP_bad_chunk_size"],
            ),
            (
                b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
                &["unexpected_multiple_HTTP_requests"],
            ),
            (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n", &["HTTP_version_mismatch"]),
            (b"GET / HTTP/1.1\r\n\r\n\r\n", &["bad_HTTP_request", "empty_http_request"]),
            (b"GET / HTTP/1.1\rA: b\r\n\r\n", &["line_terminated_with_single_CR"]),
            (b"POST /\r\n", &["invalid_http_09_request_method"]),
        ];
        for (request, names) in cases {
            assert_eq!(weirds(&[(Dir::Orig, request)]), *names, "{}", request.escape_ascii());
        }
    }

    #[test]
    fn damaged_compression_is_told() {
        let response = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\
                         \xff\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(weirds(&[(Dir::Orig, GET), (Dir::Resp, response)]), ["inflate_failed"]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(chunks: Vec<(bool, Vec<u8>)>) {
            let chunks: Vec<_> = chunks
                .iter()
                .map(|(orig, data)| (if *orig { Dir::Orig } else { Dir::Resp }, &data[..]))
                .collect();
            run(&chunks);
        }

        #[test]
        fn cuts_do_not_matter(at in 0usize..200) {
            let response: &[u8] =
                b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\nTransfer-Encoding: chunked\r\n\r\n\
                  4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc";
            let (a, b) = response.split_at(at.min(response.len()));
            let whole = run(&[(Dir::Orig, GET), (Dir::Orig, GET), (Dir::Resp, response)]).0;
            let cut = run(&[(Dir::Orig, GET), (Dir::Orig, GET), (Dir::Resp, a), (Dir::Resp, b)]).0;
            prop_assert_eq!(whole, cut);
        }
    }
}
