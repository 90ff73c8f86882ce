use gannet_base::Dir;
use gannet_event::Command;
use gannet_event::ConnCommand;

use super::events::WebsocketClose;
use super::events::WebsocketEstablished;
use super::events::WebsocketFrame;
use super::events::WebsocketFrameData;
use super::events::WebsocketMessage;
use super::frame::Event;
use super::frame::Frames;
use super::frame::opcode;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::ScriptRequest;
use crate::Tag;

/// Maximum payload length of a control frame, in bytes (RFC 6455 section 5.5).
const MAX_CONTROL: usize = 125;

/// Size in bytes of the pieces in which payload is passed on; the rest follows at the end of its
/// frame.
const PIECE: u64 = 8192;

/// Reason for a continuation frame without a message, or a message that begins within another one.
const OUT_OF_PLACE: &str = "binpac exception: &enforce violation : WebSocket_FrameHeader:first2";
/// Reason for a close frame with one byte of payload instead of none or a status of two bytes.
const NO_STATUS: &str = "binpac exception: out_of_bound: WebSocket_FramePayloadClose:status: 2 > 1";

/// State of one direction.
#[derive(Default)]
struct Flow {
    frames: Frames,
    /// Opcode of the current message; `None` between messages.
    message: Option<u8>,
    /// Whether the current frame is the last one of its message.
    fin: bool,
    /// Whether the current frame is a close frame.
    closes: bool,
    mask: Option<[u8; 4]>,
    /// Payload length of the current frame, in bytes.
    len: u64,
    /// The current piece, unmasked, until it is complete.
    piece: Vec<u8>,
}

impl Flow {
    /// Whether a frame with this opcode continues no message, or begins one within another.
    fn is_out_of_place(&self, kind: u8) -> bool {
        self.message.is_none() == (kind == opcode::CONTINUATION)
    }

    /// Removes payload from `data`, at most up to the end of a piece; `at` is its offset in the
    /// frame, `max` the size of pieces. Returns the piece if it is complete.
    fn piece<'s, 'd: 's>(
        &'s mut self,
        at: &mut u64,
        data: &mut &'d [u8],
        max: u64,
    ) -> Option<&'s [u8]> {
        if at.is_multiple_of(max) {
            self.piece.clear();
        }
        let remaining = (max - *at % max).min(self.len.saturating_sub(*at));
        let (now, rest) = data.split_at(data.len().min(remaining as usize));
        let start = *at;
        *data = rest;
        *at += now.len() as u64;
        let is_complete = now.len() as u64 == remaining;
        match self.mask {
            None if is_complete && self.piece.is_empty() => return Some(now),
            None => self.piece.extend_from_slice(now),
            Some(mask) => {
                let mask = mask.iter().cycle().skip((start % 4) as usize);
                self.piece.extend(now.iter().zip(mask).map(|(d, m)| d ^ m));
            }
        }
        is_complete.then_some(&self.piece[..])
    }
}

/// The analyzer of one upgraded connection.
pub struct Analyzer {
    flows: [Flow; 2],
    nested: Nested,
    /// Whether scripts must configure the analyzer and have not done so yet: frames are not parsed.
    awaits_configuration: bool,
}

impl Analyzer {
    /// Creates the analyzer of a connection that was just upgraded.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if let Some(aid) = cx.aid(Tag::WebSocket) {
            cx.raise(|c| WebsocketEstablished { c, aid });
        }
        let mut nested = Nested::new(Tag::WebSocket);
        let awaits_configuration = cx.env.activation.is_scripted();
        if !awaits_configuration {
            nested.start(cx, Tag::Detector);
        }
        let mut analyzer = Self { flows: Default::default(), nested, awaits_configuration };
        if awaits_configuration {
            analyzer.request_configuration(cx);
        }
        analyzer
    }

    /// Raises the event in which scripts configure the payload. Their handlers run immediately, as
    /// in Zeek: frames may follow in the same packet.
    #[cold]
    fn request_configuration(&mut self, cx: &mut Context<'_>) {
        if !cx.wants::<WebsocketEstablished>() {
            return;
        }
        cx.note_handlers_ran();
        cx.env.logs.events.mark();
        cx.env.logs.events.drain();
        let uid = cx.conn.uid;
        let is_answer = |command: &Command| matches!(command, Command::Connection { uid: of, what: ConnCommand::Configure { .. }, .. } if *of == uid);
        for command in cx.env.logs.events.take_commands_if(is_answer) {
            if let Command::Connection {
                what: ConnCommand::Configure { payload, detects }, ..
            } = command
            {
                self.configure(cx, payload_of(payload.as_deref(), detects));
            }
        }
    }

    /// Starts parsing frames, whose payload goes to this analyzer.
    fn configure(&mut self, cx: &mut Context<'_>, payload: Option<Tag>) {
        self.awaits_configuration = false;
        if let Some(tag) = payload {
            self.nested.start(cx, tag);
        }
    }

    /// Handles one element of the stream; `Err` is its fault.
    fn event(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        event: Event<'_>,
    ) -> Result<(), &'static str> {
        let flow = &mut self.flows[from.index()];
        match event {
            Event::Frame(header) => {
                if flow.is_out_of_place(header.opcode) {
                    return Err(OUT_OF_PLACE);
                }
                let kind = *flow.message.get_or_insert(header.opcode);
                flow.fin = header.fin;
                flow.mask = header.mask;
                flow.len = header.len;
                flow.closes = header.opcode == opcode::CLOSE;
                let (is_orig, fin) = (from.is_orig(), header.fin);
                cx.raise(|c| WebsocketFrame {
                    c,
                    is_orig,
                    fin,
                    rsv: header.rsv.into(),
                    opcode: header.opcode.into(),
                    payload_len: header.len,
                });
                if flow.closes && header.len == 0 {
                    cx.raise(|c| WebsocketClose { c, is_orig, status: 0, reason: &[] });
                }
                let control = matches!(kind, opcode::CLOSE | opcode::PING | opcode::PONG);
                let max = max_control_len(cx);
                if control && header.len > max as u64 {
                    let addl = format!("{} > {max}", header.len);
                    let name = "websocket_control_frame_size_exceeded";
                    cx.weird(name, &addl, Some("WEBSOCKET"));
                }
            }
            Event::Payload { mut at, mut data } => {
                if flow.closes && flow.len == 1 {
                    return Err(NO_STATUS);
                }
                let carries = matches!(flow.message, Some(opcode::TEXT | opcode::BINARY));
                let shows =
                    cx.wants::<WebsocketFrameData<'_>>() || cx.wants::<WebsocketClose<'_>>();
                if !carries && !shows {
                    return Ok(());
                }
                let closes = flow.closes;
                let max = cx.env.setting("WebSocket::payload_chunk_size", PIECE).max(1);
                while !data.is_empty() {
                    let Some(piece) = flow.piece(&mut at, &mut data, max) else { continue };
                    if shows {
                        raise_payload(cx, from, piece, carries, closes);
                    }
                    if carries {
                        self.nested.stream(cx, from, piece);
                    }
                }
            }
            Event::End => {
                if flow.fin {
                    let (is_orig, opcode) = (from.is_orig(), flow.message.unwrap_or(0).into());
                    flow.message = None;
                    cx.confirm(Tag::WebSocket);
                    cx.raise(|c| WebsocketMessage { c, is_orig, opcode });
                }
            }
        }
        Ok(())
    }
}

/// The payload analyzer that scripts name, or the detector if they want its protocol detected.
pub fn payload_of(name: Option<&str>, detects: bool) -> Option<Tag> {
    name.and_then(Tag::from_zeek_name).or_else(|| detects.then_some(Tag::Detector))
}

/// Maximum number of payload bytes of a control frame that are used.
fn max_control_len(cx: &Context<'_>) -> usize {
    cx.env.limit_setting("WebSocket::max_control_frame_size", MAX_CONTROL)
}

/// Raises the events of a piece of payload; of control frames up to the maximum.
#[cold]
fn raise_payload(cx: &mut Context<'_>, from: Dir, piece: &[u8], carries: bool, closes: bool) {
    let is_orig = from.is_orig();
    let max = if carries { piece.len() } else { max_control_len(cx) };
    let data = &piece[..piece.len().min(max)];
    cx.raise(|c| WebsocketFrameData { c, is_orig, data });
    if let ([a, b, reason @ ..], true) = (data, closes) {
        let status = u16::from_be_bytes([*a, *b]).into();
        cx.raise(|c| WebsocketClose { c, is_orig, status, reason });
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.awaits_configuration {
            return;
        }
        let mut rest = data;
        while let Some(event) = self.flows[from.index()].frames.next(&mut rest) {
            if let Err(reason) = self.event(cx, from, event) {
                cx.violation(Tag::WebSocket, reason, data);
                self.flows[from.index()] = Flow::default();
                return;
            }
        }
        // The first two bytes of a header suffice to check whether the frame is allowed.
        let flow = &mut self.flows[from.index()];
        if flow.frames.partial_opcode().is_some_and(|kind| flow.is_out_of_place(kind)) {
            *flow = Flow::default();
            cx.violation(Tag::WebSocket, OUT_OF_PLACE, data);
        }
    }

    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        match request {
            ScriptRequest::Configure { payload } if self.awaits_configuration => {
                self.configure(cx, payload);
                true
            }
            _ => self.nested.handle_request(cx, request),
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.nested.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::Activation;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use proptest::prelude::*;

    fn run(chunks: &[(Dir, &[u8])]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 80);
        let mut a = Analyzer::new(&mut h.cx());
        for (from, data) in chunks {
            a.stream(&mut h.cx(), *from, data);
        }
        a.finish(&mut h.cx());
        h
    }

    #[test]
    fn a_message_confirms() {
        assert!(!run(&[(Dir::Orig, b"\x81\x03ab")]).confirmed(Tag::WebSocket));
        assert!(run(&[(Dir::Orig, b"\x81\x03ab"), (Dir::Orig, b"c")]).confirmed(Tag::WebSocket));
    }

    #[test]
    fn what_is_carried_is_unmasked_and_analysed() {
        let mut frame = b"\x82\xfe\x00\x12\x01\x02\x03\x04".to_vec();
        let get = b"GET / HTTP/1.1\r\n\r\n";
        frame.extend(get.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(d, m)| d ^ m));
        let h = run(&[(Dir::Orig, &frame[..11]), (Dir::Orig, &frame[11..])]);
        assert_eq!(h.rows("http")[0]["method"], "GET");
    }

    #[test]
    fn scripts_say_what_is_carried() {
        let frame = [&b"\x82\x12"[..], b"GET / HTTP/1.1\r\n\r\n"].concat();
        for (payload, rows) in [(None, 0), (Some(Tag::Http), 1), (Some(Tag::Detector), 1)] {
            let mut h = Harness::new(Proto::Tcp, 80);
            h.env.activation = Activation::scripted();
            let analyzer = Tag::Http.zeek_name().to_owned();
            h.env.apply_command(h.now, Command::Detect { analyzer, on: true });
            let mut a = Analyzer::new(&mut h.cx());
            a.stream(&mut h.cx(), Dir::Orig, &frame);
            assert!(!h.confirmed(Tag::WebSocket));
            assert!(a.handle_request(&mut h.cx(), ScriptRequest::Configure { payload }));
            a.stream(&mut h.cx(), Dir::Orig, &frame);
            assert!(h.confirmed(Tag::WebSocket));
            assert!(!a.handle_request(&mut h.cx(), ScriptRequest::Configure { payload }));
            let remove = ScriptRequest::Remove { tag: Tag::Http, prevent: false };
            assert_eq!(a.handle_request(&mut h.cx(), remove), rows > 0);
            assert_eq!(h.rows("http").len(), rows, "{payload:?}");
        }
    }

    /// A listener that, on the upgrade of a connection, configures the analyzer to parse frames and
    /// pass their payload to no analyzer.
    struct Configures(gannet_base::Uid, Vec<Command>);

    impl gannet_event::Listener for Configures {
        fn event(&mut self, event: &gannet_event::Raised<'_>) {
            assert_eq!(event.decl.name, "websocket_established");
            let conn = event.connection(0).unwrap();
            let what = ConnCommand::Configure { payload: None, detects: false };
            self.1.push(Command::Connection { uid: self.0, id: conn.id, ip_proto: 6, what });
        }

        fn commands(&mut self, to: &mut Vec<Command>) {
            to.append(&mut self.1);
        }
    }

    #[test]
    fn scripts_are_asked_before_the_first_frame() {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.env.activation = Activation::scripted();
        let mut interest = gannet_event::Interest::default();
        interest.add(<WebsocketEstablished as gannet_event::Event>::DECL.id);
        let listener = Box::new(Configures(h.cx().conn.uid, Vec::new()));
        h.env.logs.events = gannet_event::Events::new(interest, listener);
        let mut a = Analyzer::new(&mut h.cx());
        // The frame arrived with the reply that upgrades the connection.
        a.stream(&mut h.cx(), Dir::Resp, b"\x81\x02hi");
        assert!(h.confirmed(Tag::WebSocket));
        assert!(!h.env.logs.events.has_commands());
    }

    #[test]
    fn pieces_wait_until_they_are_whole() {
        let get = b"GET / HTTP/1.1\r\n\r\n";
        let mut frame = b"\x82\x7e\x20\x12".to_vec();
        frame.extend_from_slice(get);
        frame.resize(4 + 8192 + 18, b'x');
        let h = run(&[(Dir::Orig, &frame[..8195])]);
        assert!(h.rows("http").is_empty());
        let h = run(&[(Dir::Orig, &frame[..8195]), (Dir::Orig, &frame[8195..8196])]);
        assert_eq!(h.rows("http").len(), 1);
    }

    #[test]
    fn frames_out_of_place_are_violations() {
        assert!(run(&[(Dir::Orig, b"\x80\x00")]).violated(Tag::WebSocket));
        assert!(run(&[(Dir::Orig, b"\x01\x00\x81\x00")]).violated(Tag::WebSocket));
        assert!(!run(&[(Dir::Orig, b"\x01\x00\x80\x00")]).violated(Tag::WebSocket));
        // A header whose length is incomplete.
        assert!(run(&[(Dir::Orig, b"\x80\x7e")]).violated(Tag::WebSocket));
        assert!(!run(&[(Dir::Orig, b"\x80")]).violated(Tag::WebSocket));
        assert!(!run(&[(Dir::Orig, b"\x81\x7e")]).violated(Tag::WebSocket));
        assert!(!run(&[(Dir::Orig, b"\x88\x01")]).violated(Tag::WebSocket));
        assert!(run(&[(Dir::Orig, b"\x88\x01\x00")]).violated(Tag::WebSocket));
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
    }
}
