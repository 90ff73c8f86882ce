//! The header of messages, and parts that several bodies share.

use gannet_base::Dir;

use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::events::Header2;
use crate::smb::events::Smb2DiscardedMessagesState;

/// Control code FSCTL_PIPE_TRANSCEIVE: writes to a pipe and reads the reply.
pub(super) const PIPE_TRANSCEIVE: u32 = 0x0011_c017;

/// The header (§2.2.1).
pub(super) struct Header {
    pub(super) from: Dir,
    /// Length of the header in bytes; offsets are relative to its start.
    pub(super) length: u16,
    pub(super) status: u32,
    pub(super) command: u16,
    pub(super) next: u32,
    pub(super) message: u64,
    pub(super) tree: u32,
    pub(super) is_pipe: bool,
    /// The header as events carry it.
    pub(super) record: Header2,
}

impl Header {
    /// Converts an offset from the start of the header to one from its end.
    pub(super) fn offset_after_header(&self, offset: u16) -> i64 {
        i64::from(offset) - i64::from(self.length)
    }

    /// Like [`offset_after_header`](Self::offset_after_header), for 32-bit offsets. An offset within the header wraps around to
    /// a position beyond any message.
    pub(super) fn offset_after_header32(&self, offset: u32) -> i64 {
        i64::from(offset.wrapping_sub(self.length.into()))
    }

    /// Whether the message is an error response (§3.3.4.4).
    pub(super) fn is_error(&self) -> bool {
        match (self.status, self.command) {
            _ if self.from.is_orig() => false,
            (0, _) => false,
            (0x8000_0005, 8 | 11 | 16) | (0xc000_000d, 11) | (0xc000_0016, 1) => false,
            (0x10c, 15) => false,
            _ => true,
        }
    }
}

/// Checks the length of a body of only integers, and returns it.
pub(super) fn fixed(record: &'static str, data: &[u8], n: u32) -> Read<usize> {
    let mut c = Cursor::new(record, data);
    c.all(n)?;
    Ok(c.pos())
}

/// Skips the create contexts of a file.
pub(super) fn contexts(h: &Header, c: &mut Cursor<'_>, offset: u32, length: u32) -> Read<()> {
    if offset != 0 {
        c.pad_to("context_pad", h.offset_after_header32(offset))?;
    }
    c.bytes("contexts", length).map(drop)
}

/// Input and output buffer of a control code, as offset and length each. An offset may lie before
/// the current position, and both buffers may have the same one.
pub(super) fn buffers<'a>(
    h: &Header,
    c: &mut Cursor<'a>,
    buffers_at: [[u32; 2]; 2],
) -> Read<[&'a [u8]; 2]> {
    let [input, output] = buffers_at;
    let before =
        |c: &Cursor<'_>, at: u32| u32::from(h.length).wrapping_add(c.pos() as u32).wrapping_sub(at);
    if input[0] != 0 {
        c.bytes("pad1", before(c, input[0]))?;
    }
    let first = c.bytes("input_buffer", input[1])?;
    if output[0] != 0 && output[0] != input[0] {
        c.bytes("pad2", before(c, output[0]))?;
    }
    Ok([first, c.bytes("output_buffer", output[1])?])
}

/// Reports that too many requests wait for responses, and drops them.
pub(super) fn discarded(cx: &mut Context<'_>, core: &mut Core, state: &'static str) {
    cx.raise(|c| Smb2DiscardedMessagesState { c, state });
    let counts = core.shares.discard();
    let addl = format!("state={state} {counts}");
    cx.weird("SMB_discarded_messages_state", &addl, Some("SMB2"));
}
