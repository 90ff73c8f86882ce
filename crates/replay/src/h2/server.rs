//! The server side of the subset of HTTP/2 (RFC 9113) that an echo server for DNS over HTTPS needs
//! (RFC 8484).
//!
//! A request is a stream with a body, the query; its fields are not read, so that any path is
//! served. A request without a body, such as GET, gets status 400. Responses wait for the flow
//! control windows of the client.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::ACK;
use super::CONTINUATION;
use super::DATA;
use super::END_HEADERS;
use super::END_STREAM;
use super::Frame;
use super::HEAD;
use super::HEADERS;
use super::MAX_BLOCK;
use super::MAX_BODY;
use super::MAX_FRAME;
use super::PING;
use super::PREFACE;
use super::ProtocolError;
use super::RST_STREAM;
use super::SETTINGS;
use super::WINDOW;
use super::WINDOW_UPDATE;
use super::fields;
use super::frame;
use super::head;
use super::unpad;

/// Maximum number of open streams of a client; further ones are refused.
const MAX_STREAMS: u32 = 1024;
/// Our settings: no dynamic table (1), maximum number of streams (3).
const OUR_SETTINGS: [u8; 12] = [0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 4, 0];
/// Error codes (RFC 9113 §7).
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

/// The state of a server's connection.
#[derive(Debug)]
pub(crate) struct Server {
    /// Whether the client has sent its preface.
    has_preface: bool,
    streams: HashMap<u32, Stream, foldhash::fast::RandomState>,
    /// The highest stream identifier opened.
    last: u32,
    /// Send window of the connection, and initial send window of each new stream.
    window: i64,
    stream_window: i64,
    /// Bytes of bodies since the window of the client was last renewed.
    received: u32,
    /// A header block that continues in a CONTINUATION frame: its stream, whether it ends the
    /// stream, and its length so far.
    block: Option<(u32, bool, usize)>,
    /// Streams whose response is not completely sent, in order.
    waiting: VecDeque<u32>,
    /// Number of streams refused since the last [`take_refused`](Self::take_refused).
    refused: u64,
    /// Frames to send.
    out: Vec<u8>,
    /// The received part of an incomplete frame.
    input: Vec<u8>,
}

/// A request and its response.
#[derive(Debug)]
struct Stream {
    /// The body of the request; later the unsent rest of the response.
    body: Vec<u8>,
    window: i64,
}

/// A request whose body is complete.
pub(crate) struct Request {
    /// The identifier of its stream.
    pub(crate) stream: u32,
    /// The query.
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let mut out = Vec::new();
        head(OUR_SETTINGS.len(), SETTINGS, 0, 0, &mut out);
        out.extend_from_slice(&OUR_SETTINGS);
        Self {
            has_preface: false,
            streams: HashMap::default(),
            last: 0,
            window: i64::from(WINDOW),
            stream_window: i64::from(WINDOW),
            received: 0,
            block: None,
            waiting: VecDeque::new(),
            refused: 0,
            out,
            input: Vec::new(),
        }
    }

    /// Resets and returns the number of streams that were refused because too many were open.
    pub(crate) fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Moves frames that must be sent to `out`.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    /// Processes received bytes; complete requests are added to `out`.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<Request>,
    ) -> Result<(), ProtocolError> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        if !self.has_preface {
            let len = rest.len().min(PREFACE.len());
            if rest[..len] != PREFACE[..len] {
                return Err(ProtocolError("no preface"));
            }
            self.has_preface = len == PREFACE.len();
            if !self.has_preface {
                self.input = input;
                return Ok(());
            }
            rest = &rest[len..];
        }
        while let Some(frame) = frame(rest)? {
            rest = rest.get(HEAD + frame.payload.len()..).unwrap_or_default();
            self.frame(&frame, out)?;
        }
        self.input = rest.to_vec();
        Ok(())
    }

    /// Sends a response.
    pub(crate) fn respond(&mut self, stream: u32, body: &[u8]) {
        // The client may have reset the stream.
        let Some(it) = self.streams.get_mut(&stream) else { return };
        let fields = fields::response(body.len());
        head(fields.len(), HEADERS, END_HEADERS, stream, &mut self.out);
        self.out.extend_from_slice(&fields);
        it.body = body.to_vec();
        self.waiting.push_back(stream);
        self.write();
    }

    /// Ends a request without a response.
    pub(crate) fn reset(&mut self, stream: u32) {
        if self.streams.remove(&stream).is_some() {
            self.abort(stream, INTERNAL_ERROR);
        }
    }

    fn abort(&mut self, stream: u32, code: u32) {
        head(4, RST_STREAM, 0, stream, &mut self.out);
        self.out.extend_from_slice(&code.to_be_bytes());
    }

    /// Sends bodies as far as flow control allows.
    fn write(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(number) = self.waiting.pop_front() else { return };
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            loop {
                let room = self.window.min(stream.window).max(0);
                let room = usize::try_from(room).unwrap_or(0).min(MAX_FRAME);
                let len = stream.body.len().min(room);
                let is_last = len == stream.body.len();
                if len == 0 && !is_last {
                    self.waiting.push_back(number);
                    break;
                }
                head(len, DATA, if is_last { END_STREAM } else { 0 }, number, &mut self.out);
                self.out.extend(stream.body.drain(..len));
                self.window -= len as i64;
                stream.window -= len as i64;
                if is_last {
                    self.streams.remove(&number);
                    break;
                }
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<Request>) -> Result<(), ProtocolError> {
        if let Some((stream, ..)) = self.block
            && (frame.kind, frame.stream) != (CONTINUATION, stream)
        {
            return Err(ProtocolError("a header block is not continued"));
        }
        match frame.kind {
            DATA => self.data(frame, out)?,
            HEADERS => {
                self.begin(frame.stream)?;
                self.block = Some((frame.stream, frame.flags & END_STREAM != 0, 0));
                self.block(frame, out)?;
            }
            CONTINUATION if self.block.is_some() => self.block(frame, out)?,
            CONTINUATION => return Err(ProtocolError("unexpected CONTINUATION frame")),
            RST_STREAM => {
                self.streams.remove(&frame.stream);
            }
            SETTINGS => self.settings(frame)?,
            PING if frame.flags & ACK == 0 => {
                let data = frame.payload.get(..8).ok_or(ProtocolError("a frame is too short"))?;
                head(8, PING, ACK, 0, &mut self.out);
                self.out.extend_from_slice(data);
            }
            WINDOW_UPDATE => {
                let more = i64::from(frame.number(0).ok_or(ProtocolError("a frame is too short"))?);
                let window = match frame.stream {
                    0 => &mut self.window,
                    // For a stream that has ended.
                    number => match self.streams.get_mut(&number) {
                        Some(stream) => &mut stream.window,
                        None => return Ok(()),
                    },
                };
                *window += more;
                if *window > i64::from(u32::MAX >> 1) {
                    return Err(ProtocolError("a flow-control window overflows"));
                }
                self.write();
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens a stream; for a known stream, these are its trailers.
    fn begin(&mut self, number: u32) -> Result<(), ProtocolError> {
        if self.streams.contains_key(&number) {
            return Ok(());
        }
        if number.is_multiple_of(2) || number <= self.last {
            return Err(ProtocolError("invalid stream identifier"));
        }
        self.last = number;
        if self.streams.len() >= MAX_STREAMS as usize {
            self.refused += 1;
            self.abort(number, REFUSED_STREAM);
            return Ok(());
        }
        self.streams.insert(number, Stream { body: Vec::new(), window: self.stream_window });
        Ok(())
    }

    /// Processes a fragment of a header block, whose fields are not read.
    fn block(&mut self, frame: &Frame<'_>, out: &mut Vec<Request>) -> Result<(), ProtocolError> {
        let Some((stream, ends, len)) = &mut self.block else { return Ok(()) };
        *len += frame.payload.len();
        if *len > MAX_BLOCK {
            return Err(ProtocolError("a header block is too long"));
        }
        if frame.flags & END_HEADERS == 0 {
            return Ok(());
        }
        let (stream, ends) = (*stream, *ends);
        self.block = None;
        if ends {
            self.end(stream, out);
        }
        Ok(())
    }

    fn data(&mut self, frame: &Frame<'_>, out: &mut Vec<Request>) -> Result<(), ProtocolError> {
        self.received += frame.payload.len() as u32;
        if self.received > WINDOW {
            return Err(ProtocolError("data exceed the flow-control window"));
        }
        if self.received > WINDOW / 2 {
            head(4, WINDOW_UPDATE, 0, 0, &mut self.out);
            self.out.extend_from_slice(&self.received.to_be_bytes());
            self.received = 0;
        }
        let data = unpad(frame)?;
        let Some(stream) = self.streams.get_mut(&frame.stream) else { return Ok(()) };
        // The stream's window is not larger either.
        if stream.body.len() + data.len() > MAX_BODY {
            return Err(ProtocolError("a body is not a DNS message"));
        }
        stream.body.extend_from_slice(data);
        if frame.flags & END_STREAM != 0 {
            self.end(frame.stream, out);
        }
        Ok(())
    }

    /// Completes a request.
    fn end(&mut self, number: u32, out: &mut Vec<Request>) {
        let Entry::Occupied(mut stream) = self.streams.entry(number) else { return };
        if stream.get().body.is_empty() {
            stream.remove();
            head(
                fields::BAD_REQUEST.len(),
                HEADERS,
                END_HEADERS | END_STREAM,
                number,
                &mut self.out,
            );
            self.out.extend_from_slice(fields::BAD_REQUEST);
            return;
        }
        out.push(Request { stream: number, body: std::mem::take(&mut stream.get_mut().body) });
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Result<(), ProtocolError> {
        if frame.flags & ACK != 0 {
            return Ok(());
        }
        for setting in frame.payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            if setting[..2] == [0, 4] {
                if value > u32::MAX >> 1 {
                    return Err(ProtocolError("a flow-control window overflows"));
                }
                let more = i64::from(value) - self.stream_window;
                self.stream_window = i64::from(value);
                self.streams.values_mut().for_each(|stream| stream.window += more);
            }
        }
        head(0, SETTINGS, ACK, 0, &mut self.out);
        self.write();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Session;
    use super::*;

    fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(payload.len(), kind, flags, stream, &mut out);
        out.extend_from_slice(payload);
        out
    }

    fn started() -> Server {
        let mut server = Server::new();
        server.take(PREFACE, &mut Vec::new()).unwrap();
        server.send(&mut Vec::new());
        server
    }

    fn receive(server: &mut Server, bytes: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, ProtocolError> {
        let mut requests = Vec::new();
        server.take(bytes, &mut requests)?;
        Ok(requests.into_iter().map(|r| (r.stream, r.body)).collect())
    }

    fn sent(server: &mut Server) -> Vec<u8> {
        let mut out = Vec::new();
        server.send(&mut out);
        out
    }

    #[test]
    fn the_client_understands_the_server() {
        let (mut client, mut server) = (Session::new("dns.test", "/q"), Server::new());
        let mut bytes = Vec::new();
        client.request(b"first", 7, &mut bytes);
        client.request(b"second", 8, &mut bytes);
        let mut requests = Vec::new();
        // Split at every byte.
        for byte in bytes {
            server.take(&[byte], &mut requests).unwrap();
        }
        let got: Vec<_> = requests.iter().map(|r| (r.stream, &r.body[..])).collect();
        assert_eq!(got, [(1, &b"first"[..]), (3, b"second")]);
        server.respond(3, b"SECOND");
        server.respond(1, b"");
        let mut answers = Vec::new();
        client.take(&sent(&mut server), |id, body| answers.push((id, body.to_vec()))).unwrap();
        assert_eq!(answers, [(8, b"SECOND".to_vec()), (7, vec![])]);
        assert!(server.streams.is_empty());
    }

    #[test]
    fn bodies_wait_for_windows() {
        let mut server = started();
        // Stream windows of 10 bytes.
        receive(&mut server, &framed(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 10])).unwrap();
        receive(&mut server, &framed(HEADERS, END_HEADERS, 1, b"")).unwrap();
        receive(&mut server, &framed(DATA, END_STREAM, 1, b"query")).unwrap();
        sent(&mut server);
        server.respond(1, b"a long answer");
        assert!(sent(&mut server).ends_with(&framed(DATA, 0, 1, b"a long ans")));
        receive(&mut server, &framed(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 100])).unwrap();
        assert_eq!(sent(&mut server), framed(DATA, END_STREAM, 1, b"wer"));
    }

    #[test]
    fn requests_without_a_query_get_an_error() {
        let mut server = started();
        let ends = END_HEADERS | END_STREAM;
        assert_eq!(receive(&mut server, &framed(HEADERS, ends, 1, b"")).unwrap(), []);
        assert_eq!(sent(&mut server), framed(HEADERS, ends, 1, fields::BAD_REQUEST));
    }

    #[test]
    fn streams_are_limited_and_reset() {
        let mut server = started();
        for stream in 0..MAX_STREAMS {
            receive(&mut server, &framed(HEADERS, END_HEADERS, stream * 2 + 1, b"")).unwrap();
        }
        assert_eq!(server.take_refused(), 0);
        for stream in (MAX_STREAMS..).take(10) {
            let next = stream * 2 + 1;
            receive(&mut server, &framed(HEADERS, END_HEADERS, next, b"")).unwrap();
            let reset = framed(RST_STREAM, 0, next, &REFUSED_STREAM.to_be_bytes());
            assert_eq!(sent(&mut server), reset);
        }
        assert_eq!((server.take_refused(), server.take_refused()), (10, 0));
        receive(&mut server, &framed(RST_STREAM, 0, 1, &[0; 4])).unwrap();
        server.respond(1, b"late");
        server.reset(3);
        assert_eq!(sent(&mut server), framed(RST_STREAM, 0, 3, &INTERNAL_ERROR.to_be_bytes()));
    }

    #[test]
    fn violations_end_the_connection() {
        let cases: [Vec<u8>; 6] = [
            framed(HEADERS, END_HEADERS, 2, b""),
            [framed(HEADERS, END_HEADERS, 3, b""), framed(HEADERS, END_HEADERS, 1, b"")].concat(),
            framed(CONTINUATION, END_HEADERS, 1, b""),
            [framed(HEADERS, 0, 1, b""), framed(PING, 0, 0, &[0; 8])].concat(),
            framed(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            framed(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]),
        ];
        for bytes in cases {
            assert!(receive(&mut started(), &bytes).is_err(), "{bytes:02x?}");
        }
        assert!(Server::new().take(b"GET / HTTP/1.1\r\n", &mut Vec::new()).is_err());
    }
}
