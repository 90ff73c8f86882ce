use gannet_base::Dir;
use gannet_event::SetOf;
use gannet_event::TableOf;

use super::bencode;
use super::bencode::Dictionary;
use super::bencode::Parsed;
use super::events::*;
use super::line;
use super::line::Get;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Source of weirds.
const SOURCE: Option<&str> = Some("BITTORRENTTRACKER");

/// Maximum length of a request and of a response, in bytes.
const MAX_MESSAGE_LEN: usize = 2_047;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Tracker {
    /// The connection is persistent: another request may follow.
    keep_alive: bool,
    request: Request,
    response: Response,
}

#[derive(Default)]
struct Request {
    buffer: Vec<u8>,
    /// Offset of the next line in the buffer.
    offset: usize,
    uri: Vec<u8>,
    phase: Phase,
    /// It was malformed or too long: the rest of the stream is ignored.
    has_failed: bool,
}

#[derive(Default)]
struct Response {
    buffer: Vec<u8>,
    /// Offset of the next line, or of the body, in the buffer.
    offset: usize,
    status: u64,
    /// An empty line may come first, after the body of the previous response.
    may_start_blank: bool,
    phase: Phase,
    /// It was malformed or too long: the rest of the stream is ignored.
    has_failed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The request line or the status line.
    #[default]
    StartLine,
    /// Header fields.
    Headers,
    /// The body; only of a response.
    Body,
    Done,
}

impl Tracker {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }

    /// Parses a header line and notes whether the connection is persistent; `None` if it is malformed.
    fn header(&mut self, line: &[u8]) -> Option<()> {
        let (name, value) = line::field(line)?;
        if name.eq_ignore_ascii_case(b"connection") {
            self.keep_alive = !value.eq_ignore_ascii_case(b"close");
        }
        Some(())
    }

    /// Parses the lines of a request. Returns whether another request may follow in the buffer.
    fn request(&mut self, cx: &mut Context<'_>) -> bool {
        let buffer = std::mem::take(&mut self.request.buffer);
        let mut at = self.request.offset;
        while let Some((line, len)) = line::next(&buffer[at..]) {
            if self.request_line(cx, line).is_none() {
                self.request.has_failed = true;
                return false;
            }
            at += len;
            if self.request.phase == Phase::Done && self.keep_alive {
                let rest = buffer[at..].to_vec();
                self.request = Request { buffer: rest, ..Request::default() };
                return true;
            }
        }
        (self.request.buffer, self.request.offset) = (buffer, at);
        false
    }

    /// Parses a line of a request; `None` if it is malformed.
    fn request_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<()> {
        match self.request.phase {
            Phase::StartLine => {
                let Some(get) = Get::parse(line) else {
                    return violation(cx, "BitTorrentTracker: invalid HTTP GET");
                };
                self.keep_alive = get.keep_alive.unwrap_or(self.keep_alive);
                self.request.uri = get.uri.to_vec();
                self.request.phase = Phase::Headers;
            }
            Phase::Headers if line.is_empty() => {
                cx.confirm(Tag::BittorrentTracker);
                let uri = std::mem::take(&mut self.request.uri);
                cx.raise(|c| BtTrackerRequest { c, uri: &uri, headers: TableOf(Vec::new()) });
                self.request.phase = Phase::Done;
            }
            Phase::Headers => {
                if self.header(line).is_none() {
                    return violation(cx, "BitTorrentTracker: invalid HTTP request header");
                }
            }
            Phase::Body | Phase::Done => {
                if !line.is_empty() {
                    let msg = [b"Got post request data: ", line, b"\n"].concat();
                    cx.weird_bytes("bittorrent_tracker_data_post_request", &msg, SOURCE);
                    cx.raise(|c| BtTrackerWeird { c, is_orig: true, msg: &msg });
                }
            }
        }
        Some(())
    }

    /// Parses the lines and the body of a response. Returns whether another response may follow in the buffer.
    fn response(&mut self, cx: &mut Context<'_>) -> bool {
        let buffer = std::mem::take(&mut self.response.buffer);
        let mut at = self.response.offset;
        while self.response.phase != Phase::Body
            && let Some((line, len)) = line::next(&buffer[at..])
        {
            if self.response_line(cx, line).is_none() {
                self.response.has_failed = true;
                return false;
            }
            at += len;
        }
        if self.response.phase == Phase::Body {
            match bencode::parse(&buffer[at..]) {
                Parsed::Incomplete => {}
                Parsed::Malformed(why) => {
                    self.response.has_failed = true;
                    violation(cx, why);
                    return false;
                }
                Parsed::Whole(found) => {
                    at += found.len;
                    let status = self.response.status;
                    report_response(cx, status, found);
                    self.response.phase = Phase::Done;
                    if self.keep_alive {
                        let rest = buffer[at..].to_vec();
                        self.response =
                            Response { buffer: rest, may_start_blank: true, ..Response::default() };
                        return true;
                    }
                }
            }
        }
        (self.response.buffer, self.response.offset) = (buffer, at);
        false
    }

    /// Parses a line of a response; `None` if it is malformed.
    fn response_line(&mut self, cx: &mut Context<'_>, line: &[u8]) -> Option<()> {
        let response = &mut self.response;
        match response.phase {
            Phase::StartLine if line.is_empty() && response.may_start_blank => {
                response.may_start_blank = false;
            }
            Phase::StartLine => {
                let Some(status) = line::status(line) else {
                    return violation(cx, "BitTorrentTracker: invalid HTTP status");
                };
                response.status = status;
                response.phase = Phase::Headers;
            }
            Phase::Headers if line.is_empty() && response.status == 200 => {
                response.phase = Phase::Body;
            }
            Phase::Headers if line.is_empty() => {
                response.phase = Phase::Done;
                let (status, headers) = (response.status, TableOf(Vec::new()));
                cx.raise(|c| BtTrackerResponseNotOk { c, status, headers });
            }
            Phase::Headers => {
                if self.header(line).is_none() {
                    return violation(cx, "BitTorrentTracker: invalid HTTP response header");
                }
            }
            Phase::Body | Phase::Done => {}
        }
        Some(())
    }
}

/// Reports a complete response.
fn report_response(cx: &mut Context<'_>, status: u64, found: Dictionary<'_>) {
    cx.confirm(Tag::BittorrentTracker);
    cx.raise(|c| BtTrackerResponse {
        c,
        status,
        headers: TableOf(Vec::new()),
        peers: SetOf(found.peers),
        benc: TableOf(found.entries),
    });
}

fn violation(cx: &mut Context<'_>, why: &str) -> Option<()> {
    cx.violation(Tag::BittorrentTracker, why, &[]);
    None
}

impl Analyze for Tracker {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if cx.conn.is_partial() {
            return;
        }
        let (buffer, has_failed, why) = match from {
            Dir::Orig => {
                let request = &mut self.request;
                let why = "BitTorrentTracker: request message too long";
                (&mut request.buffer, &mut request.has_failed, why)
            }
            // As in Zeek, nothing is read after a response with a status other than 200.
            Dir::Resp if self.response.phase == Phase::Done => return,
            Dir::Resp => {
                let response = &mut self.response;
                let why = "BitTorrentTracker: response message too long";
                (&mut response.buffer, &mut response.has_failed, why)
            }
        };
        if *has_failed {
            return;
        }
        if buffer.len() + data.len() > MAX_MESSAGE_LEN {
            *has_failed = true;
            violation(cx, why);
            return;
        }
        buffer.extend_from_slice(data);
        match from {
            Dir::Orig => while self.request(cx) {},
            Dir::Resp => while self.response(cx) {},
        }
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, _len: u64) {
        violation(cx, "BitTorrentTracker: cannot recover from content gap");
        match from {
            Dir::Orig => self.request.has_failed = true,
            Dir::Resp => self.response.has_failed = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    const GET: &[u8] = b"GET /announce?info_hash=x HTTP/1.1\r\nHost: t\r\n\r\n";
    const OK: &[u8] =
        b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nd8:intervali9e5:peers6:\x0a\0\0\x01\x1a\xe1e";

    fn connection() -> (Harness, Tracker) {
        let mut h = Harness::new(Proto::Tcp, 6969);
        h.listen("bt_");
        let a = Tracker::new(&mut h.cx());
        (h, a)
    }

    fn reasons(h: &Harness) -> Vec<String> {
        h.violations().into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn a_tracker_names_peers() {
        for size in [1, 10, 1000] {
            let (mut h, mut a) = connection();
            for part in GET.chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            for part in OK.chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            assert_eq!(
                h.events(),
                [
                    r#"bt_tracker_request "uri":"/announce?info_hash=x","headers":{}"#,
                    r#"bt_tracker_response "status":200,"headers":{},"peers":[{"h":"10.0.0.1","p":{"port":6881,"proto":"tcp"}}],"benc":{"interval":{"i":9}}"#,
                ]
            );
            assert!(h.confirmed(Tag::BittorrentTracker) && reasons(&h).is_empty());
        }
    }

    #[test]
    fn a_connection_may_be_persistent() {
        let (mut h, mut a) = connection();
        let mut count = 0;
        for _ in 0..1_000 {
            a.stream(&mut h.cx(), Dir::Orig, GET);
            a.stream(&mut h.cx(), Dir::Resp, &[OK, b"\r\n"].concat());
            count += h.events().len();
        }
        assert_eq!((count, reasons(&h).len()), (2_000, 0));
        // Two requests in one segment.
        a.stream(&mut h.cx(), Dir::Orig, &[GET, GET].concat());
        a.stream(&mut h.cx(), Dir::Resp, &[OK, b"\r\n", OK].concat());
        assert_eq!(h.events().len(), 4);
    }

    #[test]
    fn it_ends_with_another_status_or_on_request() {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\nmore\r\n");
        a.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 404 No\r\n\r\n");
        a.stream(&mut h.cx(), Dir::Resp, OK);
        assert_eq!(
            h.events(),
            [
                r#"bt_tracker_request "uri":"/","headers":{}"#,
                r#"bt_tracker_weird "is_orig":true,"msg":"Got post request data: more\n""#,
                r#"bt_tracker_response_not_ok "status":404,"headers":{}"#,
            ]
        );
        assert_eq!(h.rows("weird")[0]["name"], "bittorrent_tracker_data_post_request");
    }

    #[test]
    fn malformed_messages_are_violations() {
        let long = [&GET[..5], &[b'x'; MAX_MESSAGE_LEN]].concat();
        let cases = [
            (Dir::Orig, &b"POST / HTTP/1.1\r\n"[..], "invalid HTTP GET"),
            (Dir::Orig, b"GET / HTTP/1.1\r\nno field\r\n", "invalid HTTP request header"),
            (Dir::Orig, &long, "request message too long"),
            (Dir::Resp, b"HTP\r\n", "invalid HTTP status"),
            (Dir::Resp, b"HTTP/1.1 200\r\nno field\r\n", "invalid HTTP response header"),
            (Dir::Resp, b"HTTP/1.1 200 OK\r\n\r\nle", "(first char: l)"),
            (Dir::Resp, &long, "response message too long"),
        ];
        for (from, data, end) in cases {
            let (mut h, mut a) = connection();
            a.stream(&mut h.cx(), from, data);
            a.stream(&mut h.cx(), from, data);
            let [reason] = &reasons(&h)[..] else { panic!("{end}") };
            assert!(reason.ends_with(end), "{reason}");
        }
        let (mut h, mut a) = connection();
        a.gap(&mut h.cx(), Dir::Orig, 1);
        assert_eq!(reasons(&h), ["BitTorrentTracker: cannot recover from content gap"]);
        let (mut h, mut a) = connection();
        h.conn.set_partial(true);
        a.stream(&mut h.cx(), Dir::Orig, GET);
        assert!(h.events().is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(data: Vec<u8>, size in 1usize..40) {
            let (mut h, mut a) = connection();
            for part in [GET, &data, b"\r\n"].concat().chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            for part in [OK, &data, b"\r\n", OK].concat().chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            a.finish(&mut h.cx());
            h.events();
        }
    }
}
