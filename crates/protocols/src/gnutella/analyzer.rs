use gannet_base::Dir;

use super::events::*;
use super::message;
use super::message::HEADER_LEN;
use super::message::Header;
use crate::Analyze;
use crate::Context;
use crate::Piece;
use crate::Replay;
use crate::Tag;
use crate::support::limit_reached;

/// Source of weirds.
const SOURCE: Option<&str> = Some("GNUTELLA");

/// Default limits of the length of a line and of all lines of a handshake, in bytes; the script options
/// `Gnutella::max_line_length` and `Gnutella::max_header_length` set them.
const MAX_LINE: u64 = 8_192;
const MAX_HEADERS: u64 = 32_768;

/// Maximum length of the payload in events, in bytes.
const MAX_PAYLOAD: usize = 1_024;

/// Default limit of the bytes that are buffered for the HTTP analyzer; the script option `dpd_buffer_size` sets it.
const MAX_BUFFERED: u64 = 1_024;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    sides: [Side; 2],
    phase: Phase,
    /// The stream so far, for the HTTP analyzer; `None` if it exceeds the limit.
    buffered: Option<Vec<(Dir, Piece)>>,
    buffered_bytes: usize,
}

/// What the connection carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Lines of handshakes.
    #[default]
    Lines,
    /// Messages.
    Messages,
    /// HTTP: the HTTP analyzer has taken over.
    Http,
}

#[derive(Default)]
struct Side {
    line: Vec<u8>,
    saw_cr: bool,
    /// Lines of the handshake, each after CR and LF.
    headers: Vec<u8>,
    /// The first line accepts the connection; this counts once the handshake is complete.
    will_accept: bool,
    /// This side accepted the connection.
    accepted: bool,
    /// A limit was exceeded: the rest of the stream is ignored.
    has_failed: bool,
    message: Message,
}

/// The current message.
#[derive(Default)]
struct Message {
    /// The bytes of an incomplete header.
    partial_header: Vec<u8>,
    /// The parsed header, and the number of payload bytes still to come.
    header: Option<(Header, u32)>,
    payload: Vec<u8>,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self { buffered: Some(Vec::new()), ..Self::default() }
    }

    /// Buffers a part of the stream while the connection may turn out to be HTTP.
    fn buffer(&mut self, cx: &Context<'_>, from: Dir, data: &[u8]) {
        let max = cx.env.setting("dpd_buffer_size", MAX_BUFFERED);
        self.buffered_bytes += data.len();
        if self.buffered_bytes as u64 > max {
            self.buffered = None;
        }
        if let Some(buffered) = &mut self.buffered {
            buffered.push((from, Piece::Bytes(data.to_vec())));
        }
    }

    /// Parses the lines of handshakes. Returns the data after the last handshake.
    fn lines<'a>(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &'a [u8]) -> &'a [u8] {
        while self.phase == Phase::Lines && self.line(cx, from, &mut data) {
            let side = &mut self.sides[from.index()];
            let line = std::mem::take(&mut side.line);
            if line.is_empty() {
                let headers = std::mem::take(&mut side.headers);
                // As in Zeek, the end of a handshake also completes that of the other side.
                self.sides.iter_mut().for_each(|side| side.accepted |= side.will_accept);
                let orig = from.is_orig();
                cx.raise(|c| GnutellaTextMsg { c, orig, headers: &headers });
                if self.sides.iter().all(|side| side.accepted) {
                    self.phase = Phase::Messages;
                    self.buffered = None;
                    cx.raise(|c| GnutellaEstablish { c });
                }
                continue;
            }
            if side.headers.is_empty() {
                if message::is_http(&line) {
                    self.start_http(cx, from, data);
                    return &[];
                }
                side.will_accept |= message::accepts(&line);
            }
            let len = side.headers.len() + 2 + line.len();
            let max = cx.env.setting("Gnutella::max_header_length", MAX_HEADERS);
            if max > 0 && len as u64 >= max {
                side.stop();
                let name = "exceeded_gnutella_max_headers_length";
                limit_reached(cx, name, &len.to_string(), SOURCE);
                return &[];
            }
            side.headers.extend_from_slice(b"\r\n");
            side.headers.extend_from_slice(&line);
        }
        data
    }

    /// Moves the bytes of a line from the data to the buffer. Returns whether the line is complete.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, data: &mut &[u8]) -> bool {
        let max = cx.env.setting("Gnutella::max_line_length", MAX_LINE);
        let side = &mut self.sides[from.index()];
        while let Some((byte, rest)) = data.split_first() {
            *data = rest;
            match byte {
                b'\r' => side.saw_cr = true,
                b'\n' if side.saw_cr => {
                    side.saw_cr = false;
                    return true;
                }
                _ => side.line.push(*byte),
            }
            let len = side.line.len();
            if max > 0 && len as u64 >= max {
                side.stop();
                let name = "exceeded_gnutella_max_line_length";
                limit_reached(cx, name, &len.to_string(), SOURCE);
                *data = &[];
            }
        }
        false
    }

    /// Starts the HTTP analyzer, which receives the whole stream so far.
    fn start_http(&mut self, cx: &mut Context<'_>, from: Dir, rest: &[u8]) {
        self.phase = Phase::Http;
        cx.raise(|c| GnutellaHttpNotify { c });
        let replay = match self.buffered.take() {
            Some(pieces) => Replay { pieces, is_inner: false },
            None => {
                let bytes = self.buffered_bytes - rest.len();
                let name = "gnutella_http_begin_discarded";
                limit_reached(cx, name, &bytes.to_string(), SOURCE);
                Replay::rest(from, rest)
            }
        };
        cx.start(Tag::Http, replay);
        cx.done(Tag::Gnutella);
    }
}

impl Side {
    fn stop(&mut self) {
        *self = Self { has_failed: true, accepted: self.accepted, ..Self::default() };
    }
}

impl Message {
    /// Parses messages of a side.
    fn read(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            if let Some((_, remaining)) = &mut self.header {
                let (taken, rest) = data.split_at((*remaining as usize).min(data.len()));
                let capacity = MAX_PAYLOAD - self.payload.len();
                self.payload.extend_from_slice(&taken[..taken.len().min(capacity)]);
                *remaining -= taken.len() as u32;
                data = rest;
            } else {
                let (taken, rest) =
                    data.split_at((HEADER_LEN - self.partial_header.len()).min(data.len()));
                self.partial_header.extend_from_slice(taken);
                data = rest;
                let Some(header) = Header::parse(&self.partial_header) else { return };
                self.partial_header.clear();
                self.payload.clear();
                self.header = Some((header, header.length));
            }
            if self.header.is_some_and(|(_, remaining)| remaining == 0) {
                self.report(cx, from);
            }
        }
    }

    /// Reports the message with the payload that has arrived.
    fn report(&mut self, cx: &mut Context<'_>, from: Dir) {
        let Some((header, remaining)) = self.header.take() else { return };
        let (orig, payload) = (from.is_orig(), &self.payload[..]);
        let Header { kind, ttl, hops, length: msg_len } = header;
        let max = (msg_len as usize).min(MAX_PAYLOAD);
        cx.raise(|c| GnutellaBinaryMsg {
            c,
            orig,
            msg_type: kind.into(),
            ttl: ttl.into(),
            hops: hops.into(),
            msg_len,
            payload,
            payload_len: payload.len() as u64,
            trunc: payload.len() < max,
            complete: remaining == 0,
        });
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let mut data = data;
        if self.phase == Phase::Lines {
            self.buffer(cx, from, data);
            if self.sides[from.index()].has_failed {
                return;
            }
            data = self.lines(cx, from, data);
        }
        if self.phase == Phase::Messages && cx.wants::<GnutellaBinaryMsg<'_>>() {
            self.sides[from.index()].message.read(cx, from, data);
        }
    }

    // As in Zeek, lines and messages continue after a gap.

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if self.phase != Phase::Messages {
            cx.raise(|c| GnutellaNotEstablish { c });
        }
        for from in [Dir::Orig, Dir::Resp] {
            let message = &mut self.sides[from.index()].message;
            let (orig, msg, len) =
                (from.is_orig(), &message.partial_header[..], message.partial_header.len() as u64);
            if len > 0 {
                cx.raise(|c| GnutellaPartialBinaryMsg { c, orig, msg, len });
            }
            message.report(cx, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    const OK: &[u8] = b"GNUTELLA/0.6 200 OK\r\nA: b\r\n\r\n";

    fn connection() -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Tcp, 6346);
        h.listen("gnutella_");
        let a = Analyzer::new(&mut h.cx());
        (h, a)
    }

    /// Both sides accept the connection.
    fn established() -> (Harness, Analyzer) {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Resp, OK);
        a.stream(&mut h.cx(), Dir::Orig, OK);
        h.events();
        (h, a)
    }

    /// A message of kind 0x80 with a payload of `length` bytes.
    fn header(length: u8) -> Vec<u8> {
        [&[0; 16][..], &[0x80, 3, 4, length, 0, 0, 0]].concat()
    }

    fn weirds(h: &Harness) -> Vec<(String, String)> {
        h.rows("weird").iter().map(|row| (row["name"].clone(), row["addl"].clone())).collect()
    }

    #[test]
    fn both_sides_accept() {
        for size in [1, 4, 100] {
            let (mut h, mut a) = connection();
            let connect = b"GNUTELLA CONNECT/0.6\r\n\r\n";
            for (from, text) in [(Dir::Orig, &connect[..]), (Dir::Resp, OK), (Dir::Orig, OK)] {
                for part in text.chunks(size) {
                    a.stream(&mut h.cx(), from, part);
                }
            }
            assert_eq!(
                h.events(),
                [
                    r#"gnutella_text_msg "orig":true,"headers":"\r\nGNUTELLA CONNECT/0.6""#,
                    r#"gnutella_text_msg "orig":false,"headers":"\r\nGNUTELLA/0.6 200 OK\r\nA: b""#,
                    r#"gnutella_text_msg "orig":true,"headers":"\r\nGNUTELLA/0.6 200 OK\r\nA: b""#,
                    "gnutella_establish ",
                ]
            );
            a.finish(&mut h.cx());
            assert!(h.events().is_empty() && weirds(&h).is_empty() && h.requests.is_empty());
        }
    }

    #[test]
    fn messages_have_a_payload() {
        for size in [1, 10, 100] {
            let (mut h, mut a) = established();
            let all = [&header(2)[..], b"ab", &header(0), &header(1), b"c"].concat();
            for part in all.chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            let event = |len: u64, payload: &str| {
                format!(
                    r#"gnutella_binary_msg "orig":false,"msg_type":128,"ttl":3,"hops":4,"msg_len":{len},"payload":"{payload}","payload_len":{len},"trunc":false,"complete":true"#
                )
            };
            assert_eq!(h.events(), [event(2, "ab"), event(0, ""), event(1, "c")]);
        }
    }

    #[test]
    fn the_end_truncates_messages() {
        let (mut h, mut a) = established();
        a.stream(&mut h.cx(), Dir::Orig, &[&header(5)[..], b"ab"].concat());
        a.stream(&mut h.cx(), Dir::Resp, b"abc");
        a.finish(&mut h.cx());
        assert_eq!(
            h.events(),
            [
                r#"gnutella_binary_msg "orig":true,"msg_type":128,"ttl":3,"hops":4,"msg_len":5,"payload":"ab","payload_len":2,"trunc":true,"complete":false"#,
                r#"gnutella_partial_binary_msg "orig":false,"msg":"abc","len":3"#,
            ]
        );
    }

    #[test]
    fn a_long_payload_is_truncated() {
        let (mut h, mut a) = established();
        let mut long = header(0);
        long[20] = 8;
        long.resize(HEADER_LEN + 2_048, b'x');
        a.stream(&mut h.cx(), Dir::Orig, &long);
        let event = h.events().concat();
        assert!(event.contains(r#""msg_len":2048"#) && event.contains(r#""payload_len":1024"#));
        assert!(event.ends_with(r#""trunc":false,"complete":true"#), "{event}");
    }

    #[test]
    fn a_download_starts_http() {
        let (mut h, mut a) = connection();
        let get = b"GET /get/1/a HTTP/1.1\r\nHost: a\r\n\r\n";
        a.stream(&mut h.cx(), Dir::Orig, &get[..10]);
        a.stream(&mut h.cx(), Dir::Orig, &get[10..]);
        let [(Tag::Http, replay)] = &h.starts[..] else { panic!("{:?}", h.starts) };
        let piece = |part: &[u8]| (Dir::Orig, Piece::Bytes(part.to_vec()));
        assert_eq!(replay.pieces, [piece(&get[..10]), piece(&get[10..])]);
        assert!(matches!(h.requests[..], [crate::Request::Done(Tag::Gnutella)]));
        a.finish(&mut h.cx());
        assert_eq!(h.events(), ["gnutella_http_notify ", "gnutella_not_establish "]);
    }

    #[test]
    fn the_begin_of_a_late_download_is_discarded() {
        for (before, discarded) in [(10, false), (1_000, true), (100_000, true)] {
            let (mut h, mut a) = connection();
            let lines = b"a: b\r\n".repeat(before);
            for part in lines.chunks(1_024) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            a.stream(&mut h.cx(), Dir::Resp, b"GET /get/1 HTTP/1.1\r\nrest");
            let [(Tag::Http, replay)] = &h.starts[..] else { panic!("{before}: {:?}", h.starts) };
            let bytes = |piece: &Piece| match piece {
                Piece::Bytes(data) => data.len(),
                _ => 0,
            };
            let replayed: usize = replay.pieces.iter().map(|(_, piece)| bytes(piece)).sum();
            let all = lines.len() + 25;
            assert_eq!(replayed, if discarded { 4 } else { all }, "{before}");
            let weird = h
                .rows("weird")
                .into_iter()
                .find(|row| row["name"] == "gnutella_http_begin_discarded");
            assert_eq!(
                weird.map(|row| row["addl"].clone()),
                discarded.then(|| (all - 4).to_string())
            );
        }
    }

    #[test]
    fn lines_and_handshakes_have_limits() {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, &vec![b'x'; 9_000]);
        a.stream(&mut h.cx(), Dir::Orig, b"x\r\n\r\n");
        let long = ("exceeded_gnutella_max_line_length".to_owned(), "8192".to_owned());
        assert_eq!(weirds(&h), std::slice::from_ref(&long));
        assert!(h.conn.history.as_bytes().contains(&b'X'));
        let line = [&vec![b'x'; 8_190][..], b"\r\n"].concat();
        for _ in 0..5 {
            a.stream(&mut h.cx(), Dir::Resp, &line);
        }
        let many = ("exceeded_gnutella_max_headers_length".to_owned(), "32768".to_owned());
        assert_eq!(weirds(&h), [long, many]);
        assert!(h.events().is_empty());
    }

    #[test]
    fn a_thousand_messages_are_a_thousand_events() {
        let (mut h, mut a) = established();
        let mut count = 0;
        for n in 0..1_000u32 {
            let from = if n % 3 == 0 { Dir::Orig } else { Dir::Resp };
            a.stream(&mut h.cx(), from, &[&header(3)[..], b"abc"].concat());
            count += h.events().len();
        }
        a.finish(&mut h.cx());
        assert_eq!((count, h.events().len()), (1_000, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(data: Vec<u8>, length: u8, size in 1usize..40) {
            for (mut h, mut a) in [connection(), established()] {
                for part in [&data[..], &header(length), &data, OK].concat().chunks(size) {
                    a.stream(&mut h.cx(), Dir::Orig, part);
                    a.stream(&mut h.cx(), Dir::Resp, part);
                }
                a.finish(&mut h.cx());
                h.events();
            }
        }
    }
}
