use std::borrow::Cow;

use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::Port;

use super::events::*;
use super::message::Answer;
use super::message::Parsed;
use super::message::PortPair;
use super::message::Reply;
use super::message::Request;
use crate::Analyze;
use crate::Context;
use crate::support::Lines;

/// Source of weirds.
const SOURCE: Option<&str> = Some("IDENT");

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 1_000;

/// The analyzer of one connection.
pub struct Analyzer {
    sides: [Side; 2],
    /// A request was reported.
    has_request: bool,
    /// The weird of a malformed reply was reported.
    bad_reply: bool,
    /// The weirds of a NUL and of a lone CR were reported: once a connection each.
    nul_in_line: bool,
    lone_cr: bool,
}

struct Side {
    lines: Lines,
    /// Number of bytes so far.
    seen: u64,
    /// A NUL was removed: further NULs remain in their lines.
    had_nul: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        let side = || {
            let mut lines = Lines::new(MAX_LINE);
            lines.set_loss(1);
            Side { lines, seen: 0, had_nul: false }
        };
        Self {
            sides: [side(), side()],
            has_request: false,
            bad_reply: false,
            nul_in_line: false,
            lone_cr: false,
        }
    }

    /// Removes the first NUL of a side. It is a weird unless it may be a TCP keep-alive probe.
    fn without_nul<'a>(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        data: &'a [u8],
    ) -> Cow<'a, [u8]> {
        let side = &mut self.sides[from.index()];
        side.seen += data.len() as u64;
        let nul = memchr::memchr(0, data).filter(|_| !side.had_nul);
        let Some(nul) = nul else { return Cow::Borrowed(data) };
        if side.seen > 1 || !cx.conn.is_partial() {
            side.had_nul = true;
            if !std::mem::replace(&mut self.nul_in_line, true) {
                cx.weird("NUL_in_line", "", Some("CONTENTLINE"));
            }
        }
        Cow::Owned([&data[..nul], &data[nul + 1..]].concat())
    }

    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8]) {
        match from {
            _ if line.is_empty() => {}
            Dir::Orig => self.request(cx, line),
            Dir::Resp => self.reply(cx, line),
        }
    }

    fn request(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        if !cx.wants::<IdentRequest>() {
            return;
        }
        match read(cx, Request::parse(line)) {
            Some(Request { ports, rest }) => {
                if !rest.is_empty() {
                    cx.weird_bytes("ident_request_addendum", detail(line), SOURCE);
                }
                let (lport, rport) = tcp(ports);
                cx.raise(|c| IdentRequest { c, lport, rport });
                self.has_request = true;
            }
            None if begins_late(cx, Dir::Orig) => {}
            None => cx.weird_bytes("bad_ident_request", detail(line), SOURCE),
        }
    }

    fn reply(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        // As in Zeek, replies are parsed only if `ident_reply` has a handler.
        if !cx.wants::<IdentReply<'_>>() {
            return;
        }
        match read(cx, Reply::parse(line)) {
            Some(Reply { ports, answer }) => {
                let (lport, rport) = tcp(ports);
                match answer {
                    Answer::Error(line) => cx.raise(|c| IdentError { c, lport, rport, line }),
                    Answer::User { system, user: user_id } => {
                        cx.raise(|c| IdentReply { c, lport, rport, user_id, system });
                    }
                }
            }
            None if self.bad_reply || begins_late(cx, Dir::Resp) => {}
            None => {
                self.bad_reply = true;
                cx.weird_bytes("bad_ident_reply", detail(line), SOURCE);
            }
        }
    }
}

/// Reports weirds for the ports of a line that are too large. Returns the parsed line.
fn read<T>(cx: &mut Context<'_>, parsed: Parsed<'_, T>) -> Option<T> {
    for rest in parsed.large_ports.into_iter().flatten() {
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        cx.weird_bytes("bad_ident_port", &rest[..end], SOURCE);
    }
    parsed.line
}

fn tcp(ports: PortPair) -> (Port, Port) {
    (Port(ports.client, Proto::Tcp), Port(ports.server, Proto::Tcp))
}

/// Returns a line as the detail of Zeek's weirds shows it.
fn detail(line: &[u8]) -> &[u8] {
    match memchr::memchr(0, line) {
        Some(_) => b"<string-with-NUL>",
        None => line,
    }
}

/// Whether the start of the connection was not captured and a side closed it: the last line may be incomplete.
fn begins_late(cx: &Context<'_>, from: Dir) -> bool {
    cx.conn.is_partial() && has_closed(cx, from)
}

fn has_closed(cx: &Context<'_>, from: Dir) -> bool {
    let fin = if from.is_orig() { b'F' } else { b'f' };
    cx.conn.history.as_bytes().contains(&fin)
}

/// Reports a weird at the end of an established connection whose originator closed its side without a request.
pub(crate) fn report_partial_request(cx: &mut Context<'_>) {
    let is_established = !cx.conn.is_partial() && cx.conn.history.as_bytes().contains(&b'h');
    if is_established && has_closed(cx, Dir::Orig) {
        cx.weird("partial_ident_request", "", SOURCE);
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let data = self.without_nul(cx, from, data);
        let mut data = &data[..];
        let side = &mut self.sides[from.index()];
        let mut lines = std::mem::replace(&mut side.lines, Lines::new(MAX_LINE));
        while let Some(line) = lines.next(&mut data) {
            line.report(cx, &mut self.lone_cr);
            // Zeek's limit counts the NUL that terminates the line.
            let text = &line.text[..line.text.len().min(MAX_LINE - 1)];
            self.line(cx, from, text);
        }
        lines.report(cx, &mut self.lone_cr);
        self.sides[from.index()].lines = lines;
    }

    // As in Zeek, an incomplete line continues after a gap.

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        let line = self.sides[from.index()].lines.take_partial();
        self.line(cx, from, &line);
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.has_request || self.sides[Dir::Orig.index()].lines.has_partial() {
            report_partial_request(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use proptest::prelude::*;

    fn connection() -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Tcp, 113);
        h.listen("ident_");
        let a = Analyzer::new(&mut h.cx());
        (h, a)
    }

    fn weirds(h: &Harness) -> Vec<(String, String)> {
        h.rows("weird").iter().map(|row| (row["name"].clone(), row["addl"].clone())).collect()
    }

    fn weird(name: &str, addl: &str) -> (String, String) {
        (name.to_owned(), addl.to_owned())
    }

    const PORTS: &str = r#""lport":{"port":23,"proto":"tcp"},"rport":{"port":6191,"proto":"tcp"}"#;

    #[test]
    fn requests_and_replies_are_reported() {
        for size in [1, 5, 100] {
            let (mut h, mut a) = connection();
            for part in b"6191, 23\r\n\r\n".chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            let reply = b"6191, 23 : USERID : UNIX : joe\n6191, 23 : ERROR : NO-USER\r\n";
            for part in reply.chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            a.finish(&mut h.cx());
            assert_eq!(
                h.events(),
                [
                    format!("ident_request {PORTS}"),
                    format!(r#"ident_reply {PORTS},"user_id":"joe","system":"UNIX :""#),
                    format!(r#"ident_error {PORTS},"line":"NO-USER""#),
                ]
            );
            assert!(weirds(&h).is_empty() && h.requests.is_empty());
        }
    }

    #[test]
    fn the_end_of_a_side_ends_a_line() {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, b"6191,23");
        assert!(h.events().is_empty());
        a.end(&mut h.cx(), Dir::Orig);
        assert_eq!(h.events(), [format!("ident_request {PORTS}")]);
    }

    #[test]
    fn malformed_lines_are_weirds() {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, b"6191\r\n6191,23 x\r\n65536,1\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"6191,23\r\n6191,23 : x\r\n");
        let events = h.events();
        assert_eq!(events.len(), 2);
        assert!(events[1].ends_with(r#""rport":{"port":0,"proto":"tcp"}"#), "{}", events[1]);
        assert_eq!(
            weirds(&h),
            [
                weird("bad_ident_request", "6191"),
                weird("ident_request_addendum", "6191,23 x"),
                weird("bad_ident_port", "65536,1"),
                weird("bad_ident_reply", "6191,23"),
            ]
        );
        assert_eq!(h.rows("weird")[0]["source"], "IDENT");
    }

    #[test]
    fn without_a_listener_lines_are_not_parsed() {
        let mut h = Harness::new(Proto::Tcp, 113);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"x\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"x\r\n");
        assert!(weirds(&h).is_empty());
    }

    #[test]
    fn a_connection_that_begins_late_may_end_within_a_line() {
        for (is_partial, letter, count) in [(true, b'F', 0), (true, b'D', 1), (false, b'F', 1)] {
            let (mut h, mut a) = connection();
            h.conn.set_partial(is_partial);
            h.conn.note(Dir::Orig, letter);
            h.conn.note(Dir::Resp, letter);
            a.stream(&mut h.cx(), Dir::Orig, b"91,\r\n");
            a.stream(&mut h.cx(), Dir::Resp, b"ERROR : x\r\n");
            assert_eq!(weirds(&h).len(), 2 * count);
        }
    }

    #[test]
    fn a_closed_connection_has_a_request() {
        let partial = [weird("partial_ident_request", "-")];
        for (request, count) in [(&b""[..], 1), (b"1,2\r\n", 0), (b"1,2\r\n3", 1)] {
            let (mut h, mut a) = connection();
            a.stream(&mut h.cx(), Dir::Orig, request);
            h.conn.note(Dir::Orig, b'F');
            // The responder did not accept the connection.
            a.finish(&mut h.cx());
            assert!(weirds(&h).is_empty());
            h.conn.note(Dir::Resp, b'H');
            h.conn.set_partial(true);
            a.finish(&mut h.cx());
            assert!(weirds(&h).is_empty());
            h.conn.set_partial(false);
            a.finish(&mut h.cx());
            assert_eq!(weirds(&h), partial[..count]);
        }
    }

    #[test]
    fn lines_have_a_limit() {
        let (mut h, mut a) = connection();
        let mut line = b"1,2 ".to_vec();
        line.resize(MAX_LINE, b'x');
        a.stream(&mut h.cx(), Dir::Orig, &line);
        a.stream(&mut h.cx(), Dir::Orig, b"\r\n");
        assert_eq!(weirds(&h).len(), 1);
        a.stream(&mut h.cx(), Dir::Orig, &line);
        a.stream(&mut h.cx(), Dir::Orig, b"yzz\r\n");
        let [addendum, long, bad] = &weirds(&h)[..] else { panic!("{:?}", weirds(&h)) };
        assert_eq!((addendum.1.len(), &long.0[..]), (MAX_LINE - 1, "contentline_size_exceeded"));
        assert_eq!(*bad, weird("bad_ident_request", "zz"));
    }

    #[test]
    fn the_first_nul_is_removed() {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, b"61\x0091,23\r\n1,2 \0\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"\x006191,23:ERROR:\r\n");
        assert_eq!(h.events()[0], format!("ident_request {PORTS}"));
        assert_eq!(
            weirds(&h),
            [weird("NUL_in_line", "-"), weird("ident_request_addendum", "<string-with-NUL>")]
        );
        let (mut h, mut a) = connection();
        h.conn.set_partial(true);
        a.stream(&mut h.cx(), Dir::Orig, b"\0");
        assert!(weirds(&h).is_empty());
        a.stream(&mut h.cx(), Dir::Orig, b"\x001,2\r5,6\r\n");
        assert_eq!(h.events().len(), 2);
        let names = [weird("NUL_in_line", "-"), weird("line_terminated_with_single_CR", "-")];
        assert_eq!(weirds(&h), names);
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(data: Vec<u8>, size in 1usize..40) {
            let (mut h, mut a) = connection();
            for part in [&b"1,2:USERID"[..], &data, b":\n1,2", &data, b"\n"].concat().chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            a.end(&mut h.cx(), Dir::Orig);
            a.finish(&mut h.cx());
            h.events();
        }
    }
}
