use gannet_base::Dir;
use gannet_event::TableOf;

use super::events::*;
use super::message;
use super::message::Request;
use super::message::Status;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Lines;
use crate::support::text::UpperCase;
use crate::support::text::upper_case;

/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Maximum size of the header fields of one message in `sip_all_headers`, in bytes.
const MAX_FIELDS: usize = 1 << 20;

/// The analyzer of one connection.
pub struct Analyzer {
    /// Parser state of requests and of replies.
    parsers: [Parser; 2],
    rows: Rows,
}

/// Parser state of one kind of message.
struct Parser {
    lines: Lines,
    state: State,
    /// Body length from the last `Content-Length` header; a message without one has the length of
    /// the previous message.
    body: i32,
    /// Header fields of the message, for `sip_all_headers`.
    fields: Vec<SipField>,
    /// Size of all header fields in bytes, including those beyond the limit.
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Headers,
    /// This number of bytes of the body is missing.
    Body(usize),
}

/// The data is not SIP.
struct Malformed;

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { parsers: parsers(), rows: Rows::default() }
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        request: bool,
        mut data: &[u8],
    ) -> Result<(), Malformed> {
        let parser = &mut self.parsers[usize::from(!request)];
        loop {
            if let State::Body(left) = parser.state {
                parser.lines.skip_lf(&mut data);
                let take = left.min(data.len());
                data = &data[take..];
                parser.state = State::Body(left - take);
                if take < left {
                    return Ok(());
                }
                parser.state = State::Start;
                cx.report(&mut self.rows, |c| SipEndEntity { c, is_orig: request });
                continue;
            }
            let Some(line) = parser.lines.next(&mut data) else { return Ok(()) };
            if parser.state == State::Start {
                start(cx, &mut self.rows, request, line.text)?;
                parser.state = State::Headers;
            } else if line.text.is_empty() {
                let fields = std::mem::take(&mut parser.fields);
                parser.size = 0;
                cx.raise(|c| {
                    let hlist = TableOf((1..).zip(fields).collect());
                    SipAllHeaders { c, is_orig: request, hlist }
                });
                // A negative length is an error only when the body is due.
                parser.state = State::Body(usize::try_from(parser.body).map_err(|_| Malformed)?);
            } else {
                let (name, value) = message::header(line.text).ok_or(Malformed)?;
                if matches!(name, b"Content-Length" | b"L") {
                    parser.body = message::body_length(value);
                }
                let (rows, is_orig) = (&mut self.rows, request);
                cx.report(rows, |c| SipHeader { c, is_orig, name: UpperCase(name), value });
                if cx.wants::<SipAllHeaders>() {
                    let before = parser.size;
                    parser.size = before.saturating_add(name.len() + value.len());
                    if parser.size <= MAX_FIELDS {
                        let original_name = upper_case(name).into_owned().into();
                        let name = value.to_vec().into();
                        parser.fields.push(SipField { original_name, name });
                    } else if before <= MAX_FIELDS {
                        cx.weird("sip_header_too_long", "", Some("SIP"));
                    }
                }
            }
        }
    }
}

/// Initial parser states.
fn parsers() -> [Parser; 2] {
    let parser = || Parser {
        lines: Lines::new(MAX_LINE),
        state: State::Start,
        body: 0,
        fields: Vec::new(),
        size: 0,
    };
    [parser(), parser()]
}

fn start(
    cx: &mut Context<'_>,
    rows: &mut Rows,
    request: bool,
    line: &[u8],
) -> Result<(), Malformed> {
    if request {
        let line = Request::parse(line).ok_or(Malformed)?;
        if !line.junk.is_empty() {
            let junk: String = line.junk.iter().map(|b| rendered(*b)).collect();
            cx.weird("sip_junk_before_request", &junk, Some("SIP"));
        }
        let Request { method, uri, version, .. } = line;
        cx.report(rows, |c| SipRequest { c, method, original_uri: uri, version });
    } else {
        let line = Status::parse(line).ok_or(Malformed)?;
        cx.confirm(Tag::Sip);
        let Status { version, code, reason } = line;
        cx.report(rows, |c| SipReply { c, version, code, reason });
    }
    cx.raise(|c| SipBeginEntity { c, is_orig: request });
    Ok(())
}

/// Formats a byte: as it is, or in hexadecimal if it is not printable.
fn rendered(b: u8) -> String {
    if matches!(b, b' '..=b'~') { char::from(b).to_string() } else { format!("\\x{b:02x}") }
}

impl Analyze for Analyzer {
    fn datagram(&mut self, cx: &mut Context<'_>, _from: Dir, data: &[u8], _len: u32) {
        // Keep-alives.
        if data.len() == 2 && data[0] == b'\r' {
            return;
        }
        let request = !(data.len() > 6 && data.starts_with(b"SIP/"));
        if self.read(cx, request, data).is_err() {
            let reason = "Binpac exception: binpac exception: string mismatch at -";
            cx.violation(Tag::Sip, reason, &[]);
            let parser = &mut self.parsers[usize::from(!request)];
            parser.lines.reset();
            parser.state = State::Start;
        }
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.parsers = parsers();
        true
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

    fn run(datagrams: &[&[u8]]) -> Harness {
        let mut h = Harness::new(Proto::Udp, 5060);
        let mut a = Analyzer::new(&mut h.cx());
        for d in datagrams {
            a.datagram(&mut h.cx(), Dir::Orig, d, d.len() as u32);
        }
        a.finish(&mut h.cx());
        h
    }

    #[test]
    fn a_row_a_reply() {
        let h = run(&[
            b"INVITE sip:bob@x SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z\r\nFrom: A <sip:a>;tag=1\r\n\
              To: sip:b\r\nContent-Length: 4\r\n\r\nbody",
            b"SIP/2.0 100 Trying\r\nTo: sip:b\r\n\r\n",
            b"SIP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
            b"BYE sip:bob@x SIP/2.0\r\nContent-Length: 0\r\n\r\n",
        ]);
        assert!(h.confirmed(Tag::Sip));
        assert!(!h.violated(Tag::Sip));
        let rows = h.rows("sip");
        let codes: Vec<_> = rows.iter().map(|r| (&*r["method"], &*r["status_code"])).collect();
        assert_eq!(codes, [("INVITE", "100"), ("INVITE", "200"), ("BYE", "-")]);
        assert_eq!(rows[1]["request_path"], "SIP/2.0/UDP a");
        assert_eq!(rows[1]["request_from"], "A <sip:a>");
        assert_eq!(rows[1]["response_path"], "(empty)");
        assert_eq!((&*rows[1]["request_body_len"], &*rows[1]["response_body_len"]), ("4", "0"));
    }

    #[test]
    fn a_body_of_less_than_nothing_ends_it_behind_the_headers() {
        let h = run(&[b"BYE sip:b SIP/2.0\r\nContent-Length: -1\r\nTo: b\r\n\r\n"]);
        assert!(h.violated(Tag::Sip));
        let row = &h.rows("sip")[0];
        assert_eq!((&*row["request_to"], &*row["request_body_len"]), ("b", "18446744073709551615"));
    }

    #[test]
    fn lengths_may_be_followed_by_blanks() {
        let h = run(&[b"BYE sip:b SIP/2.0\r\nContent-Length: 0 \r\n\r\n"]);
        assert_eq!(h.rows("sip")[0]["request_body_len"], "0");
        assert!(h.rows("weird").is_empty());
    }

    #[test]
    fn fields_beyond_the_limit_are_a_weird_and_the_event_has_the_others() {
        for (lines, weirds, fields) in [(10, 0, 10), (1_024, 0, 1_024), (1_025, 1, 1_024)] {
            let mut h = Harness::new(Proto::Udp, 5060);
            h.listen("sip_all_headers");
            let mut a = Analyzer::new(&mut h.cx());
            let line = format!("X: {}\r\n", "x".repeat(1_023));
            let message = format!("BYE sip:b SIP/2.0\r\n{}\r\n", line.repeat(lines));
            a.datagram(&mut h.cx(), Dir::Orig, message.as_bytes(), message.len() as u32);
            assert_eq!(h.rows("weird").len(), weirds, "{lines}");
            let events = h.events();
            assert_eq!(events[0].matches("original_name").count(), fields, "{lines}");
        }
    }

    #[test]
    fn junk_and_unknown_methods() {
        let h = run(&[b"\0\0FLY sip:b SIP/2.0\r\nVia: x\r\n", b"what?\r\n"]);
        let weirds = h.rows("weird");
        assert_eq!(weirds[0]["name"], "sip_junk_before_request");
        assert_eq!(weirds[0]["addl"], "\\\\x00\\\\x00");
        assert_eq!((&*weirds[1]["name"], &*weirds[1]["addl"]), ("unknown_SIP_method", "FLY"));
        assert!(h.violated(Tag::Sip), "a header without colon");
        assert!(!h.confirmed(Tag::Sip));
    }
}
