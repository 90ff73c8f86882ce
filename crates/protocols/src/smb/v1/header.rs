//! The header of messages, and chained AndX commands.

use gannet_base::Dir;

use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Fields;
use crate::smb::cursor::Read;
use crate::smb::events::Header1;
use crate::support::limit_reached;
use crate::support::utf16;

/// Length of the whole header in bytes; offsets are relative to its start.
pub(super) const HEADER_LENGTH: u16 = 32;

/// Maximum number of chained commands that are parsed.
pub(super) const MAX_DEPTH: u8 = 10;

/// Command code for the end of the chain.
pub(super) const NONE: u8 = 0xff;

/// The header ([MS-CIFS] §2.2.3.1).
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) from: Dir,
    pub(super) unicode: bool,
    pub(super) tree: u16,
    pub(super) message: u16,
    pub(super) is_pipe: bool,
    /// The header as events carry it.
    pub(super) record: Header1,
}

/// Position of a command in its message.
#[derive(Clone, Copy)]
pub(super) struct CommandPosition {
    pub(super) command: u8,
    /// Whether it is parsed as a request.
    pub(super) is_request: bool,
    /// Offset from the start of the header, in bytes.
    pub(super) offset: u16,
    pub(super) depth: u8,
}

/// The next command of the chain.
#[derive(Clone, Copy)]
pub(super) struct Next {
    pub(super) command: u8,
    pub(super) offset: u16,
}

/// Converts an offset from the start of the header to one from its end.
pub(super) fn offset_after_header(offset: u16) -> i64 {
    i64::from(offset) - i64::from(HEADER_LENGTH)
}

/// Parses the link to the next command.
pub(super) fn next(f: &mut Fields<'_>) -> Next {
    let command = f.u8();
    f.skip(1);
    Next { command, offset: f.u16() }
}

/// Parses the word count of a command and the link to the next command.
pub(super) fn words_and_next(f: &mut Fields<'_>) -> (u8, Next) {
    (f.u8(), next(f))
}

/// Parser of commands of any kind.
pub(super) trait Commands {
    /// Parses the command at a position.
    fn read(
        cx: &mut Context<'_>,
        core: &mut Core,
        h: Header,
        at: CommandPosition,
        data: &[u8],
    ) -> Read<()>;
}

/// Parses the next command of the chain, after one that was parsed up to here.
pub(super) fn follow<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    c: &mut Cursor<'_>,
    next: Next,
    is_request: bool,
) -> Read<()> {
    let here = u32::from(at.offset) + c.pos() as u32;
    let offset = u32::from(next.offset);
    if offset != 0 && offset < here + 2 {
        c.bytes("extra_byte_parameters", offset.wrapping_sub(here))?;
    }
    let advances = next.offset > at.offset;
    let max = cx.env.limit_setting("SMB::max_andx_depth", MAX_DEPTH.into());
    let depth = usize::from(at.depth);
    if next.command != NONE && depth <= max && advances {
        let offset_after_header = CommandPosition {
            command: next.command,
            is_request,
            offset: at.offset.wrapping_add(c.pos() as u16),
            depth: at.depth.saturating_add(1),
        };
        C::read(cx, core, h, offset_after_header, c.rest())?;
    }
    if next.command != NONE {
        if !advances {
            limit_reached(cx, "smb_andx_offset_not_advancing", "", Some("SMB"));
        }
        if depth >= max {
            limit_reached(cx, "smb_andx_depth_exceeded", "", Some("SMB"));
        }
    }
    Ok(())
}

/// Decodes a string, for events and logs.
pub(super) fn text(cx: &mut Context<'_>, unicode: bool, string: &[u8]) -> Vec<u8> {
    if unicode {
        utf16::text(cx, string)
    } else {
        string.strip_suffix(b"\0").unwrap_or(string).to_vec()
    }
}
