use gannet_base::Dir;

use super::core::Core;
use super::v1;
use super::v2;
use crate::Analyze;
use crate::Context;
use crate::Tag;
use crate::support::Frames;

/// Chunks without anything wrong in them that make a stream one of this protocol.
const CHUNKS: u32 = 3;
/// Longest session message: its length has 24 bits, but 8 MiB are the most that is transferred.
const MAX_MESSAGE: usize = 10 << 20;
/// Length of a session message's header (RFC 1002 §4.3.1).
const HEADER_LENGTH: usize = 4;

/// The analyzer of a connection.
pub struct Analyzer {
    core: Box<Core>,
    frames: [Frames; 2],
    chunks: u32,
    /// Bytes are passed over up to the next chunk that begins with a message.
    lost: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            core: Box::new(Core::new()),
            frames: [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)],
            chunks: 0,
            lost: true,
        }
    }

    fn lose(&mut self) {
        self.frames.iter_mut().for_each(Frames::reset);
        self.lost = true;
    }
}

/// Bytes of the session message that begins so.
fn need(data: &[u8]) -> usize {
    match *data {
        [_, a, b, c, ..] => HEADER_LENGTH + u32::from_be_bytes([0, a, b, c]) as usize,
        _ => HEADER_LENGTH,
    }
}

/// Reads a session message. `None`: it is broken.
fn session_message(cx: &mut Context<'_>, core: &mut Core, from: Dir, frame: &[u8]) -> Option<()> {
    let (header, mut rest) = frame.split_at_checked(HEADER_LENGTH)?;
    let length = rest.len();
    if header[0] != 0 {
        return Some(());
    }
    while !rest.is_empty() {
        let (protocol, message) = rest.split_first_chunk::<4>()?;
        match protocol {
            b"\xffSMB" => return v1::message(cx, core, from, message, length),
            b"\xfeSMB" => match v2::message(cx, core, from, message)? {
                0 => return Some(()),
                next => rest = message.get(next..)?,
            },
            // Encrypted.
            b"\xfdSMB" => return (message.len() >= v2::TRANSFORM_LENGTH).then_some(()),
            _ => return Some(()),
        }
    }
    Some(())
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        if self.lost && !matches!(data, [_, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..]) {
            return;
        }
        self.lost = false;
        while let Some(frame) = self.frames[from.index()].next(&mut data, need) {
            if session_message(cx, &mut self.core, from, frame).is_none() {
                cx.violation(Tag::Smb, "Binpac exception: binpac exception", &[]);
                self.lose();
                return;
            }
        }
        self.chunks = self.chunks.saturating_add(1);
        if self.chunks == CHUNKS {
            cx.confirm(Tag::Smb);
        }
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.lose();
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.core.finish(cx);
    }
}
