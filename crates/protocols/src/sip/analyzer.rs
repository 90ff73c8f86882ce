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

/// Longest line.
const MAX_LINE: usize = 64 << 10;
/// Bytes of the header fields of one message that `sip_all_headers` has at the most.
const MAX_FIELDS: usize = 1 << 20;

/// The analyzer of one connection.
pub struct Analyzer {
    /// State of requests and of replies.
    kinds: [Kind; 2],
    rows: Rows,
}

/// One kind of message.
struct Kind {
    lines: Lines,
    state: State,
    /// As the last header said; a message without one has the length of its predecessor.
    body: i32,
    /// Header fields of the message, for the event that has all.
    fields: Vec<SipField>,
    /// Their bytes, with those of fields that were too many.
    size: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Headers,
    /// This many bytes of the body are missing.
    Body(usize),
}

/// Something is not SIP.
struct Malformed;

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { kinds: kinds(), rows: Rows::default() }
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        request: bool,
        mut data: &[u8],
    ) -> Result<(), Malformed> {
        let kind = &mut self.kinds[usize::from(!request)];
        loop {
            if let State::Body(left) = kind.state {
                kind.lines.skip_lf(&mut data);
                let take = left.min(data.len());
                data = &data[take..];
                kind.state = State::Body(left - take);
                if take < left {
                    return Ok(());
                }
                kind.state = State::Start;
                cx.report(&mut self.rows, |c| SipEndEntity { c, is_orig: request });
                continue;
            }
            let Some(line) = kind.lines.next(&mut data) else { return Ok(()) };
            if kind.state == State::Start {
                start(cx, &mut self.rows, request, line.text)?;
                kind.state = State::Headers;
            } else if line.text.is_empty() {
                let fields = std::mem::take(&mut kind.fields);
                kind.size = 0;
                cx.raise(|c| {
                    let hlist = TableOf((1..).zip(fields).collect());
                    SipAllHeaders { c, is_orig: request, hlist }
                });
                // A negative length cannot be read, but only when the body is due.
                kind.state = State::Body(usize::try_from(kind.body).map_err(|_| Malformed)?);
            } else {
                let (name, value) = message::header(line.text).ok_or(Malformed)?;
                if matches!(name, b"Content-Length" | b"L") {
                    kind.body = message::body_length(value);
                }
                let (rows, is_orig) = (&mut self.rows, request);
                cx.report(rows, |c| SipHeader { c, is_orig, name: UpperCase(name), value });
                if cx.wants::<SipAllHeaders>() {
                    let before = kind.size;
                    kind.size = before.saturating_add(name.len() + value.len());
                    if kind.size <= MAX_FIELDS {
                        let original_name = upper_case(name).into_owned().into();
                        let name = value.to_vec().into();
                        kind.fields.push(SipField { original_name, name });
                    } else if before <= MAX_FIELDS {
                        cx.weird("sip_header_too_long", "", Some("SIP"));
                    }
                }
            }
        }
    }
}

/// Nothing read so far.
fn kinds() -> [Kind; 2] {
    let kind = || Kind {
        lines: Lines::new(MAX_LINE),
        state: State::Start,
        body: 0,
        fields: Vec::new(),
        size: 0,
    };
    [kind(), kind()]
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

/// A byte as it is, or in hexadecimal if it cannot be printed.
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
            let kind = &mut self.kinds[usize::from(!request)];
            kind.lines.reset();
            kind.state = State::Start;
        }
    }

    fn suspend(&mut self, _cx: &mut Context<'_>) -> bool {
        self.kinds = kinds();
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
