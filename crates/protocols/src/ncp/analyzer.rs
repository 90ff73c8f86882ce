use gannet_base::Dir;
use gannet_flow::tcp::State;

use super::events::*;
use super::message;
use super::message::Body;
use super::message::Frame;
use super::message::HEADER;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Maximum length of a frame in bytes, unless scripts set `NCP::max_frame_size`.
const MAX_FRAME: u64 = 65_536;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Analyzer {
    sides: [Side; 2],
    /// Type and function of the last request.
    request: (u16, u16),
}

#[derive(Default)]
struct Side {
    frame: Vec<u8>,
    /// Whether frames begin only with a later segment, because the beginning of the connection was
    /// missed; `None` until there is data.
    is_lost: Option<bool>,
    /// A part of the stream is missing: as in Zeek, nothing more is read.
    had_gap: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }

    /// Reports a complete frame.
    fn frame(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        let Frame { kind: frame_type, length, body } = match Frame::parse(from.is_orig(), data) {
            Ok(frame) => frame,
            Err(e) => {
                cx.violation(Tag::Ncp, &e.to_string(), &[]);
                return;
            }
        };
        let length = length as u64;
        match body {
            Body::Request(func) => {
                self.request = (frame_type, func);
                cx.raise(|c| NcpRequest { c, frame_type, length, func });
            }
            Body::Reply(code) => {
                let (req_frame, req_func) = self.request;
                let completion_code = u64::from(code);
                cx.raise(|c| NcpReply {
                    c,
                    frame_type,
                    length,
                    req_frame,
                    req_func,
                    completion_code,
                });
            }
        }
    }
}

/// Result of consuming bytes of a segment.
enum Progress {
    /// A complete frame.
    Frame(Vec<u8>),
    /// The beginning of a frame.
    Begin,
    /// The frame's length is invalid or exceeds the limit.
    Wrong,
}

impl Side {
    /// Appends bytes of a segment to the current frame and removes them from `data`.
    fn fill(&mut self, data: &mut &[u8], max_len: u64) -> Progress {
        self.take(HEADER, data);
        let Some(header) = self.frame.first_chunk() else { return Progress::Begin };
        let length = message::length(*header);
        let Some(length) = usize::try_from(length).ok().filter(|n| *n >= HEADER) else {
            return Progress::Wrong;
        };
        if length as u64 > max_len.max(HEADER as u64) {
            return Progress::Wrong;
        }
        self.take(length, data);
        if self.frame.len() < length {
            return Progress::Begin;
        }
        Progress::Frame(std::mem::take(&mut self.frame))
    }

    fn take(&mut self, upto: usize, data: &mut &[u8]) {
        let (taken, rest) = data.split_at(upto.saturating_sub(self.frame.len()).min(data.len()));
        self.frame.extend_from_slice(taken);
        *data = rest;
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        let max_len = cx.env.setting("NCP::max_frame_size", MAX_FRAME);
        let states = cx.env.logs.events.transport().states;
        let side = &mut self.sides[from.index()];
        let is_established = || states[from.index()] == State::Established as u8;
        let is_lost = *side.is_lost.get_or_insert_with(|| !is_established());
        if side.had_gap {
            return;
        }
        if is_lost && side.frame.is_empty() {
            if !message::begins(from.is_orig(), data) {
                return;
            }
            side.is_lost = Some(false);
        }
        while !data.is_empty() {
            let side = &mut self.sides[from.index()];
            match side.fill(&mut data, max_len) {
                Progress::Frame(frame) => self.frame(cx, from, &frame),
                Progress::Begin => {}
                Progress::Wrong => {
                    side.frame.clear();
                    side.is_lost = Some(true);
                    // As in Zeek, the weird's connection already has this letter in its history.
                    cx.conn.note_limit();
                    cx.weird("ncp_large_frame", "", Some("CONTENTS_NCP"));
                    return;
                }
            }
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, from: Dir, _len: u64) {
        let side = &mut self.sides[from.index()];
        side.frame = Vec::new();
        side.had_gap = true;
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;
    use gannet_event::TransportState;
    use proptest::prelude::*;

    /// A request with a function and one more byte.
    fn request(function: u8) -> Vec<u8> {
        let head = b"DmdT\0\0\0\x18\0\0\0\x01\0\0\0\x02\x22\x22\x01\x02\x03\x04";
        [&head[..], &[function, 0]].concat()
    }

    const REPLY: &[u8] = b"tNcP\0\0\0\x11\x33\x33\x01\x02\x03\x04\x89\0x";

    fn established() -> (Harness, Analyzer) {
        let mut h = Harness::new(Proto::Tcp, 524);
        h.listen("ncp_");
        let states = [State::Established as u8; 2];
        h.env.logs.events.set_transport(TransportState { states, sizes: [0; 2] });
        let a = Analyzer::new(&mut h.cx());
        (h, a)
    }

    fn weirds(h: &Harness) -> Vec<String> {
        h.rows("weird").iter().map(|row| row["name"].clone()).collect()
    }

    #[test]
    fn replies_name_the_request() {
        for size in [1, 7, 100] {
            let (mut h, mut a) = established();
            for part in [request(0x48), request(0x57)].concat().chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            for part in REPLY.chunks(size) {
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            assert_eq!(
                h.events(),
                [
                    r#"ncp_request "frame_type":8738,"length":2,"func":72"#,
                    r#"ncp_request "frame_type":8738,"length":2,"func":22272"#,
                    r#"ncp_reply "frame_type":13107,"length":3,"req_frame":8738,"req_func":22272,"completion_code":137"#,
                ]
            );
            assert!(weirds(&h).is_empty() && h.requests.is_empty());
        }
    }

    #[test]
    fn a_connection_without_a_begin_is_joined_with_a_frame() {
        let mut h = Harness::new(Proto::Tcp, 524);
        h.listen("ncp_");
        let mut a = Analyzer::new(&mut h.cx());
        a.stream(&mut h.cx(), Dir::Resp, &REPLY[1..]);
        a.stream(&mut h.cx(), Dir::Resp, REPLY);
        assert_eq!(h.events().len(), 1);
        // Data after a gap is not read.
        a.gap(&mut h.cx(), Dir::Resp, 5);
        a.stream(&mut h.cx(), Dir::Resp, REPLY);
        a.stream(&mut h.cx(), Dir::Orig, &request(1));
        assert_eq!(h.events().len(), 1);
    }

    #[test]
    fn frames_have_a_limit() {
        for length in [7, 65_537, u32::MAX] {
            let (mut h, mut a) = established();
            let wrong = [b"DmdT", &length.to_be_bytes()[..], &[0; 30]].concat();
            a.stream(&mut h.cx(), Dir::Orig, &wrong);
            assert_eq!(weirds(&h), ["ncp_large_frame"]);
            assert!(h.conn.history.as_bytes().contains(&b'X'));
            // The next segment may begin a frame.
            a.stream(&mut h.cx(), Dir::Orig, &request(1)[1..]);
            a.stream(&mut h.cx(), Dir::Orig, &request(1));
            assert_eq!(h.events().len(), 1);
        }
    }

    #[test]
    fn a_frame_that_is_too_short_is_a_violation() {
        let (mut h, mut a) = established();
        a.stream(&mut h.cx(), Dir::Orig, b"DmdT\0\0\0\x08");
        assert_eq!(
            h.violations(),
            [(
                Tag::Ncp,
                "Binpac exception: binpac exception: out_of_bound: ncp_over_tcpip_req_hdr: 8 > 0"
                    .to_owned()
            )]
        );
    }

    #[test]
    fn a_thousand_exchanges_are_a_thousand_events_each() {
        let (mut h, mut a) = established();
        let mut counts = [0; 2];
        for n in 0..1_000u32 {
            a.stream(&mut h.cx(), Dir::Orig, &request(n as u8 | 1));
            a.stream(&mut h.cx(), Dir::Resp, REPLY);
            for event in h.events() {
                counts[usize::from(event.starts_with("ncp_reply"))] += 1;
            }
        }
        assert_eq!(counts, [1_000; 2]);
        assert!(weirds(&h).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(length in 0u32..60, data: Vec<u8>, size in 1usize..40) {
            let (mut h, mut a) = established();
            let data = [b"DmdT", &length.to_be_bytes()[..], &data, REPLY, &data].concat();
            for part in data.chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
                a.stream(&mut h.cx(), Dir::Resp, part);
            }
            a.finish(&mut h.cx());
            h.events();
        }
    }
}
