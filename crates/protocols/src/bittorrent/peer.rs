use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::Port;

use super::events::*;
use super::message;
use super::message::Block;
use super::message::HANDSHAKE_LEN;
use super::message::Handshake;
use super::message::LENGTH_PREFIX;
use super::message::MAX_MESSAGE_LEN;
use super::message::Message;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// The analyzer of one connection.
#[derive(Default)]
pub struct Peer {
    sides: [Side; 2],
    /// A side began with something other than a handshake: nothing is analyzed.
    is_other_protocol: bool,
}

#[derive(Default)]
struct Side {
    /// The bytes that the current step needs.
    buffer: Vec<u8>,
    step: Step,
}

/// The next part of the stream of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Handshake,
    /// The length of a message.
    Length,
    /// The leading bytes of a message, which its event needs.
    Header { length: u32 },
    /// The rest of the message, which is skipped: `remaining` bytes.
    Rest { length: u32, remaining: u32 },
    /// A message was malformed: the rest of the stream is ignored.
    Failed,
}

/// Why the analysis of a side ends.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It does not begin with a handshake.
    OtherProtocol,
    /// A message is malformed, for this reason.
    Malformed(String),
}

impl Peer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self::default()
    }
}

impl Side {
    fn read(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) -> Result<(), Fault> {
        loop {
            let needed = match &mut self.step {
                Step::Handshake => HANDSHAKE_LEN,
                Step::Length => LENGTH_PREFIX,
                Step::Header { length } => match self.buffer.first() {
                    Some(id) => message::header_len(*id, *length) as usize,
                    None => (*length).min(1) as usize,
                },
                Step::Rest { remaining, .. } => {
                    let skipped = (*remaining as usize).min(data.len());
                    *remaining -= skipped as u32;
                    data = &data[skipped..];
                    if *remaining > 0 {
                        return Ok(());
                    }
                    0
                }
                Step::Failed => return Ok(()),
            };
            let missing = needed.saturating_sub(self.buffer.len());
            if missing > 0 && data.is_empty() {
                return Ok(());
            }
            if missing > 0 {
                // `needed` may depend on the first byte of the buffer.
                let (taken, rest) = data.split_at(missing.min(data.len()));
                self.buffer.extend_from_slice(taken);
                data = rest;
                continue;
            }
            self.step = self.complete(cx, from)?;
            if matches!(self.step, Step::Length | Step::Header { .. }) {
                self.buffer.clear();
            }
        }
    }

    /// Completes a step, all of whose bytes are in the buffer. Returns the next step.
    fn complete(&self, cx: &mut Context<'_>, from: Dir) -> Result<Step, Fault> {
        match self.step {
            Step::Handshake => {
                let handshake = Handshake::parse(&self.buffer).ok_or(Fault::OtherProtocol)?;
                let Handshake { reserved, info_hash, peer_id } = handshake;
                let is_orig = from.is_orig();
                cx.raise(|c| BittorrentPeerHandshake { c, is_orig, reserved, info_hash, peer_id });
                cx.confirm(Tag::Bittorrent);
                Ok(Step::Length)
            }
            Step::Length => {
                let length = message::length(&self.buffer).unwrap_or(0);
                if length > MAX_MESSAGE_LEN {
                    return Err(Fault::Malformed(format!(
                        "message length prefix exceeds limit: {length} > {MAX_MESSAGE_LEN}"
                    )));
                }
                Ok(Step::Header { length })
            }
            Step::Header { length } => {
                let remaining = length.saturating_sub(self.buffer.len() as u32);
                Ok(Step::Rest { length, remaining })
            }
            Step::Rest { length, .. } => {
                let message = Message::parse(&self.buffer, length);
                let message = message.map_err(|short| Fault::Malformed(short.to_string()))?;
                raise(cx, from, message);
                Ok(Step::Length)
            }
            Step::Failed => Ok(Step::Failed),
        }
    }
}

/// Raises the event of a message.
fn raise(cx: &mut Context<'_>, from: Dir, message: Message<'_>) {
    let is_orig = from.is_orig();
    match message {
        Message::KeepAlive => cx.raise(|c| BittorrentPeerKeepAlive { c, is_orig }),
        Message::Choke => cx.raise(|c| BittorrentPeerChoke { c, is_orig }),
        Message::Unchoke => cx.raise(|c| BittorrentPeerUnchoke { c, is_orig }),
        Message::Interested => cx.raise(|c| BittorrentPeerInterested { c, is_orig }),
        Message::NotInterested => cx.raise(|c| BittorrentPeerNotInterested { c, is_orig }),
        Message::Have(piece_index) => {
            cx.raise(|c| BittorrentPeerHave { c, is_orig, piece_index });
        }
        Message::Bitfield(bitfield) => {
            cx.raise(|c| BittorrentPeerBitfield { c, is_orig, bitfield });
        }
        Message::Request(Block { index, begin, length }) => {
            cx.raise(|c| BittorrentPeerRequest { c, is_orig, index, begin, length });
        }
        Message::Piece(Block { index, begin, length: piece_length }) => {
            cx.raise(|c| BittorrentPeerPiece { c, is_orig, index, begin, piece_length });
        }
        Message::Cancel(Block { index, begin, length }) => {
            cx.raise(|c| BittorrentPeerCancel { c, is_orig, index, begin, length });
        }
        Message::Port(port) => {
            let listen_port = Port(port, Proto::Tcp);
            cx.raise(|c| BittorrentPeerPort { c, is_orig, listen_port });
        }
        Message::Unknown { id, data } => {
            cx.raise(|c| BittorrentPeerUnknown { c, is_orig, message_id: id.into(), data });
        }
    }
}

impl Analyze for Peer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if cx.conn.is_partial() || self.is_other_protocol {
            return;
        }
        let side = &mut self.sides[from.index()];
        match side.read(cx, from, data) {
            Ok(()) => {}
            Err(Fault::OtherProtocol) => {
                *self = Self { is_other_protocol: true, ..Self::default() };
                cx.done(Tag::Bittorrent);
            }
            Err(Fault::Malformed(why)) => {
                *side = Side { step: Step::Failed, ..Side::default() };
                let msg = format!(
                    "Stopping BitTorrent analysis: protocol violation (binpac exception: {why})"
                );
                let is_orig = from.is_orig();
                cx.raise(|c| BittorrentPeerWeird { c, is_orig, msg: msg.as_bytes() });
                if self.sides.iter().all(|side| side.step == Step::Failed) {
                    let why = "BitTorrent: content gap and/or protocol violation";
                    cx.violation(Tag::Bittorrent, why, &[]);
                }
            }
        }
    }

    // As in Zeek, messages continue after a gap.

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.sides.swap(0, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use proptest::prelude::*;

    const HANDSHAKE: &[u8] = b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05\
        hash-hash-hash-hash--TR2820-peer-peer-pe";

    fn connection() -> (Harness, Peer) {
        let mut h = Harness::new(Proto::Tcp, 6881);
        h.listen("bittorrent_");
        let a = Peer::new(&mut h.cx());
        (h, a)
    }

    /// A connection with a handshake of the originator.
    fn after_handshake() -> (Harness, Peer) {
        let (mut h, mut a) = connection();
        a.stream(&mut h.cx(), Dir::Orig, HANDSHAKE);
        h.events();
        (h, a)
    }

    fn reasons(h: &Harness) -> Vec<String> {
        h.violations().into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn each_side_begins_with_a_handshake() {
        for size in [1, 20, 100] {
            let (mut h, mut a) = connection();
            for from in [Dir::Orig, Dir::Resp] {
                for part in HANDSHAKE.chunks(size) {
                    assert_eq!(h.confirmed(Tag::Bittorrent), !from.is_orig());
                    a.stream(&mut h.cx(), from, part);
                }
            }
            let event = |is_orig: bool| {
                format!(
                    r#"bittorrent_peer_handshake "is_orig":{is_orig},"reserved":"\\x00\\x00\\x00\\x00\\x00\\x10\\x00\\x05","info_hash":"hash-hash-hash-hash-","peer_id":"-TR2820-peer-peer-pe""#
                )
            };
            assert_eq!(h.events(), [event(true), event(false)]);
            assert!(reasons(&h).is_empty());
        }
    }

    #[test]
    fn each_message_is_reported() {
        let all: &[(&[u8], &str)] = &[
            (b"\0\0\0\0", "keep_alive"),
            (b"\0\0\0\x01\0", "choke"),
            (b"\0\0\0\x01\x01", "unchoke"),
            (b"\0\0\0\x01\x02", "interested"),
            (b"\0\0\0\x03\x03xx", "not_interested"),
            (b"\0\0\0\x05\x04\0\0\x01\0", r#"have,"piece_index":256"#),
            (b"\0\0\0\x03\x05ab", r#"bitfield,"bitfield":"ab""#),
            (
                b"\0\0\0\x0d\x06\0\0\0\x01\0\0\x40\0\0\0\0\x05",
                r#"request,"index":1,"begin":16384,"length":5"#,
            ),
            (
                b"\0\0\0\x0e\x07\0\0\0\x01\0\0\x40\0block",
                r#"piece,"index":1,"begin":16384,"piece_length":5"#,
            ),
            (
                b"\0\0\0\x0d\x08\0\0\0\x01\0\0\x40\0\0\0\0\x05",
                r#"cancel,"index":1,"begin":16384,"length":5"#,
            ),
            (b"\0\0\0\x03\x09\x1a\xe1", r#"port,"listen_port":{"port":6881,"proto":"tcp"}"#),
            (b"\0\0\0\x03\x14\x01d", r#"unknown,"message_id":20,"data":"\\x01d""#),
            (b"\0\0\0\x01\x15", r#"unknown,"message_id":21,"data":"""#),
        ];
        let stream: Vec<u8> = all.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        let expected = all.iter().map(|(_, text)| {
            let (name, rest) = text.split_once(',').unwrap_or((text, ""));
            let comma = if rest.is_empty() { "" } else { "," };
            format!(r#"bittorrent_peer_{name} "is_orig":true{comma}{rest}"#)
        });
        let expected: Vec<_> = expected.collect();
        for size in [1, 7, 1_000] {
            let (mut h, mut a) = after_handshake();
            for part in stream.chunks(size) {
                a.stream(&mut h.cx(), Dir::Orig, part);
            }
            assert_eq!(h.events(), expected);
        }
    }

    #[test]
    fn bytes_of_blocks_are_not_buffered() {
        let (mut h, mut a) = after_handshake();
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x04\0\0\x07\0\0\0\x01\0\0\0\0");
        for _ in 0..255 {
            a.stream(&mut h.cx(), Dir::Orig, &[0; 1_024]);
        }
        assert_eq!((h.events().len(), a.sides[0].buffer.len()), (0, 9));
        a.stream(&mut h.cx(), Dir::Orig, &[0; 1_024 - 9]);
        let event =
            r#"bittorrent_peer_piece "is_orig":true,"index":1,"begin":0,"piece_length":262135"#;
        assert_eq!(h.events(), [event]);
        for n in 0..10_000 {
            a.stream(&mut h.cx(), Dir::Orig, b"\0\0\0\x09\x07\0\0\0\0\0\0\0\0");
            assert_eq!(h.events().len(), 1, "{n}");
        }
    }

    #[test]
    fn analysis_of_both_sides_ends_with_a_malformed_message() {
        let weird = |is_orig: bool, why: &str| {
            format!(
                r#"bittorrent_peer_weird "is_orig":{is_orig},"msg":"Stopping BitTorrent analysis: protocol violation (binpac exception: {why})""#
            )
        };
        let (mut h, mut a) = after_handshake();
        a.stream(&mut h.cx(), Dir::Orig, b"\0\x04\0\x01");
        let long = "message length prefix exceeds limit: 262145 > 262144";
        assert_eq!(h.events(), [weird(true, long)]);
        a.stream(&mut h.cx(), Dir::Orig, HANDSHAKE);
        assert!(h.events().is_empty() && reasons(&h).is_empty());
        a.stream(&mut h.cx(), Dir::Resp, HANDSHAKE);
        a.stream(&mut h.cx(), Dir::Resp, b"\0\0\0\0\0\0\0\x02\x04\0\0\0\0\0");
        let events = h.events();
        assert_eq!(events[2..], [weird(false, "out_of_bound: BitTorrent_Have: 4 > 1")]);
        assert_eq!(reasons(&h), ["BitTorrent: content gap and/or protocol violation"]);
    }

    #[test]
    fn another_protocol_ends_the_analysis() {
        let (mut h, mut a) = after_handshake();
        a.stream(&mut h.cx(), Dir::Resp, &[b'x'; HANDSHAKE_LEN - 1]);
        assert!(!h.requests.iter().any(|r| matches!(r, crate::Request::Done(_))));
        a.stream(&mut h.cx(), Dir::Resp, b"x");
        assert!(matches!(h.requests.last(), Some(crate::Request::Done(Tag::Bittorrent))));
        a.stream(&mut h.cx(), Dir::Orig, b"\0\0\0\0");
        assert!(h.events().is_empty() && reasons(&h).is_empty());
    }

    #[test]
    fn a_connection_that_begins_late_is_not_analyzed() {
        let (mut h, mut a) = connection();
        h.conn.set_partial(true);
        a.stream(&mut h.cx(), Dir::Orig, HANDSHAKE);
        assert!(h.events().is_empty() && !h.confirmed(Tag::Bittorrent));
    }

    proptest! {
        #[test]
        fn any_bytes_are_analyzed(data: Vec<u8>, id: u8, size in 1usize..40) {
            for (mut h, mut a) in [connection(), after_handshake()] {
                for part in [&[0, 0, 0, 5, id][..], &data, &[0; 8], &data].concat().chunks(size) {
                    a.stream(&mut h.cx(), Dir::Orig, part);
                    a.stream(&mut h.cx(), Dir::Resp, part);
                }
                a.finish(&mut h.cx());
                h.events();
            }
        }
    }
}
