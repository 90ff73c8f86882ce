//! Finger (RFC 1288).
//!
//! There is no log and no service name; the analyzer raises an event for each line, and Zeek's weirds. Lines have a length
//! limit. A connection whose originator closes its side without a request is a weird. As in Zeek, a request counts only if
//! `finger_request` has a handler: without one, every connection that the originator closes has this weird.

pub mod events;
use events::FingerReply;
use events::FingerRequest;
use gannet_base::Dir;
use gannet_event::Connection;

use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::descriptor::Descriptor;
use crate::descriptor::Entry;
use crate::descriptor::Ports;
use crate::support::Lines;

/// Analyzers and events of the protocol.
pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    entries: &[Entry { ports: Ports::tcp(&[79]), ..Entry::new(Tag::Finger, "FINGER", "finger") }],
    events: &[events::EVENTS],
    ..Descriptor::NONE
};

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 1000;

/// The analyzer of one connection.
pub struct Analyzer {
    lines: [Lines; 2],
    /// The originator has sent data.
    has_begun: bool,
    /// A request was reported.
    has_request: bool,
    /// The weirds of a NUL and of a lone CR were reported: once a connection each.
    nul_reported: bool,
    lone_cr: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        let lines = || {
            let mut lines = Lines::new(MAX_LINE);
            lines.set_loss(1);
            lines
        };
        Self {
            lines: [lines(), lines()],
            has_begun: false,
            has_request: false,
            nul_reported: false,
            lone_cr: false,
        }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if from.is_orig() {
            // The first byte of a connection whose start was not captured may be a TCP keep-alive probe.
            let is_keep_alive = !self.has_begun && data.len() == 1 && cx.conn.is_partial();
            self.has_begun = true;
            if data.contains(&0)
                && !is_keep_alive
                && !std::mem::replace(&mut self.nul_reported, true)
            {
                cx.weird("NUL_in_line", "", Some("CONTENTLINE"));
            }
        }
        let lines = &mut self.lines[from.index()];
        let mut data = data;
        while let Some(line) = lines.next(&mut data) {
            line.report(cx, &mut self.lone_cr);
            // Zeek's limit counts the NUL that terminates the line.
            let text = &line.text[..line.text.len().min(MAX_LINE - 1)];
            match from {
                _ if text.is_empty() => {}
                Dir::Orig if cx.wants::<FingerRequest<'_>>() => {
                    self.has_request = true;
                    cx.raise(|c| request(c, text));
                }
                Dir::Orig => {}
                Dir::Resp => cx.raise(|c| FingerReply { c, reply_line: text }),
            }
        }
        lines.report(cx, &mut self.lone_cr);
    }

    // As in Zeek, an incomplete line continues after a gap.

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        if self.lines[from.index()].has_partial() {
            self.stream(cx, from, b"\n");
        }
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.lines.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let is_complete = self.has_request && !self.lines[Dir::Orig.index()].has_partial();
        if !is_complete && cx.conn.history.as_bytes().contains(&b'F') {
            cx.weird("partial_finger_request", "", Some("FINGER"));
        }
    }
}

/// Parses a request line (RFC 1288 section 2.3) into its event.
fn request(c: Connection, line: &[u8]) -> FingerRequest<'_> {
    let line = line.trim_ascii_start();
    let (full, line) = match line.get(..2).is_some_and(|w| w.eq_ignore_ascii_case(b"/W")) {
        true => (true, line[2..].trim_ascii_start()),
        false => (false, line),
    };
    let at = line.iter().position(|b| *b == b'@').unwrap_or(line.len());
    let hostname = line.get(at + 1..).unwrap_or_default();
    FingerRequest { c, full, username: &line[..at], hostname }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn reported_when_the_originator_closed() {
        let mut h = Harness::new(Proto::Tcp, 79);
        h.conn.note(Dir::Resp, b'F');
        Analyzer::new(&mut h.cx()).finish(&mut h.cx());
        assert!(h.rows("weird").is_empty());
        h.conn.note(Dir::Orig, b'F');
        Analyzer::new(&mut h.cx()).finish(&mut h.cx());
        assert_eq!(h.rows("weird")[0]["source"], "FINGER");
    }

    #[test]
    fn requests_name_users_and_hosts() {
        let connection = || {
            let mut h = Harness::new(Proto::Tcp, 79);
            crate::conn_state::mention(&mut h.env.logs, &h.conn)
        };
        let parts = |line| {
            let r = request(connection(), line);
            (r.full, r.username, r.hostname)
        };
        assert_eq!(parts(b"/W  julien@host@other"), (true, &b"julien"[..], &b"host@other"[..]));
        assert_eq!(parts(b" julien"), (false, &b"julien"[..], &b""[..]));
        assert_eq!(parts(b""), (false, &b""[..], &b""[..]));
    }

    #[test]
    fn events_of_lines_that_are_not_empty() {
        let mut h = Harness::new(Proto::Tcp, 79);
        h.listen("finger_");
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, b"\r\nbob\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"Login: bob\r\n\r\nno plan");
        a.end(&mut h.cx(), Dir::Resp);
        h.conn.note(Dir::Orig, b'F');
        a.finish(&mut h.cx());
        let reply = |line| format!(r#"finger_reply "reply_line":"{line}""#);
        let request = r#"finger_request "full":false,"username":"bob","hostname":"""#.to_owned();
        assert_eq!(h.events(), [request, reply("Login: bob"), reply("no plan")]);
        assert!(h.rows("weird").is_empty());
        // The rest of a request whose start was not captured.
        a.stream(&mut h.cx(), Dir::Orig, b"alice");
        a.finish(&mut h.cx());
        assert_eq!(h.rows("weird")[0]["name"], "partial_finger_request");
    }

    #[test]
    fn lines_are_short() {
        let mut h = Harness::new(Proto::Tcp, 79);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Orig, &[b'a'; MAX_LINE]);
        a.stream(&mut h.cx(), Dir::Resp, &[b'b'; MAX_LINE]);
        assert!(h.rows("weird").is_empty());
        a.stream(&mut h.cx(), Dir::Orig, b"a\r\nx\ry");
        let names: Vec<_> = h.rows("weird").iter().map(|r| r["name"].clone()).collect();
        assert_eq!(names, ["contentline_size_exceeded", "line_terminated_with_single_CR"]);
    }

    #[test]
    fn lines_continue_after_gaps_without_nul() {
        let mut h = Harness::new(Proto::Tcp, 79);
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Resp, b"\0");
        a.stream(&mut h.cx(), Dir::Orig, &[b'a'; MAX_LINE]);
        a.gap(&mut h.cx(), Dir::Orig, 10);
        assert!(h.rows("weird").is_empty());
        a.stream(&mut h.cx(), Dir::Orig, b"b\0\r\n\0");
        let names: Vec<_> = h.rows("weird").iter().map(|r| r["name"].clone()).collect();
        assert_eq!(names, ["NUL_in_line", "contentline_size_exceeded"]);
    }

    #[test]
    fn a_nul_may_keep_a_connection_alive() {
        for (is_partial, told) in [(true, 0), (false, 1)] {
            let mut h = Harness::new(Proto::Tcp, 79);
            h.conn.set_partial(is_partial);
            let mut a = Analyzer::new(&mut h.cx());
            a.stream(&mut h.cx(), Dir::Orig, b"\0");
            assert_eq!(h.rows("weird").len(), told);
            a.stream(&mut h.cx(), Dir::Orig, b"\0");
            assert_eq!(h.rows("weird").len(), 1);
        }
    }
}
