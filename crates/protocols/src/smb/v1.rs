//! Messages of version 1 ([MS-CIFS] §2.2.4, [MS-SMB] §2.2.4).
//!
//! Commands whose name ends in AndX carry another command behind them, which is found by its
//! offset.
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs
//! [MS-SMB]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb

use std::collections::HashMap;

use foldhash::fast::FixedState;
use gannet_base::Dir;

use super::core::Core;
use super::cursor::Cursor;
use super::info::Action;
use super::info::Share;
use super::info::Times;
use crate::Context;
use crate::support::limit_reached;
use crate::support::utf16;

/// Length of the header behind the protocol identifier.
const HEADER_REST: usize = 28;
/// Length of the whole header, from which offsets count.
const HEADER_LENGTH: u16 = 32;
/// A message of this length says nothing but its status.
const EMPTY: usize = 35;
/// Commands behind commands that are followed.
const MAX_DEPTH: u8 = 10;
/// No further command.
const NONE: u8 = 0xff;

/// What requests say that their answers do not, by message.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Offsets of reads.
    reads: HashMap<u16, u64, FixedState>,
    /// Whether a transaction is one of a pipe.
    pipes: HashMap<u16, bool, FixedState>,
}

/// The header ([MS-CIFS] §2.2.3.1).
#[derive(Clone, Copy)]
struct Header {
    from: Dir,
    unicode: bool,
    tree: u16,
    message: u16,
    is_pipe: bool,
}

/// Where a command stands among those of its message.
#[derive(Clone, Copy)]
struct Place {
    command: u8,
    /// Read as a request.
    is_request: bool,
    /// From the start of the header.
    offset: u16,
    depth: u8,
}

/// The command behind a command.
#[derive(Clone, Copy)]
struct Next {
    command: u8,
    offset: u16,
}

/// Reads a message behind its protocol identifier; `length` is that of the session message.
/// `None`: it is broken.
pub(super) fn message(
    cx: &mut Context<'_>,
    core: &mut Core,
    from: Dir,
    data: &[u8],
    length: usize,
) -> Option<()> {
    let mut c = Cursor::new(data);
    let command = c.u8()?;
    c.take(5)?;
    let unicode = c.u16()? & 0x8000 != 0;
    c.take(12)?;
    let tree = c.u16()?;
    c.take(4)?;
    let message = c.u16()?;
    let is_pipe = core.is_pipe(tree.into());
    core.shares.v1(cx.now, tree.into(), message.into(), from);
    let rest = data.get(HEADER_REST..)?;
    if length == EMPTY {
        return (rest.len() >= 3).then_some(());
    }
    let h = Header { from, unicode, tree, message, is_pipe };
    let is_request = from.is_orig();
    let place = Place { command, is_request, offset: HEADER_LENGTH, depth: 0 };
    command_at(cx, core, h, place, rest)
}

fn command_at(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Option<()> {
    let c = &mut Cursor::new(data);
    match (at.command, at.is_request) {
        (0x2e, true) => read_request(cx, core, h, at, c),
        (0x2e, false) => read_response(cx, core, h, at, c),
        (0x2f, true) => write_request(cx, core, h, at, c),
        (0x2f, false) => {
            c.u8()?;
            let next = next(c)?;
            c.take(10)?;
            follow(cx, core, h, at, c, next, false)
        }
        (0x32, true) => transaction2(h, c),
        (0x32, false) => {
            c.take(21)?;
            let n = usize::from(c.u16()?);
            c.take(n).map(|_| ())
        }
        (0x72, true) => {
            c.u8()?;
            let n = usize::from(c.u16()?);
            let mut dialects = Cursor::new(c.take(n)?);
            while dialects.left() > 0 {
                dialects.u8()?;
                dialects.string(false, false)?;
            }
            Some(())
        }
        (0x72, false) => negotiated(cx, core, h, c),
        (0x73, true) => setup_request(cx, core, h, at, data),
        (0x73, false) => setup_response(cx, core, h, at, data),
        (0x75, true) => tree_request(cx, core, h, at, c),
        (0x75, false) => tree_response(cx, core, h, at, c),
        (0xa0, _) => c.u8().map(|_| ()),
        (0xa2, true) => create_request(cx, core, h, at, c),
        (0xa2, false) => create_response(cx, core, h, at, c),
        (0x04, true) => {
            c.u8()?;
            let file = u64::from(c.u16()?);
            c.take(6)?;
            core.shares.close(cx, file, Some(Share::Disk));
            Some(())
        }
        // Query information and check directory.
        (0x08 | 0x10, true) => {
            c.take(4)?;
            c.string(h.unicode, false).map(|_| ())
        }
        (0x08, false) => c.take(23).map(|_| ()),
        // An offset's size is never settled: requests to lock are taken for broken.
        (0x24, true) => None,
        (0x25, true) => transaction_request(cx, core, h, c),
        (0x25, false) => transaction_response(cx, core, h, c),
        (0x26, true) => {
            c.take(5)?;
            let parameters = (usize::from(c.u16()?), c.u16()?);
            c.take(4)?;
            let offset = c.u16()?;
            c.take(4)?;
            c.skip_to(place(parameters.1))?;
            c.take(parameters.0)?;
            c.skip_to(place(offset))
        }
        (0x33, true) => {
            c.take(5)?;
            let parameters = (usize::from(c.u16()?), c.u16()?);
            c.u16()?;
            let data = (usize::from(c.u16()?), c.u16()?);
            c.take(6)?;
            c.skip_to(place(parameters.1))?;
            c.take(parameters.0)?;
            c.skip_to(place(data.1))?;
            c.take(data.0).map(|_| ())
        }
        (0x2b, _) => {
            c.take(3)?;
            let n = usize::from(c.u16()?);
            c.take(n).map(|_| ())
        }
        // Tree disconnect; answers to close and check directory; cancel.
        (0x71, _) | (0x04 | 0x10, false) | (0xa4, true) => c.take(3).map(|_| ()),
        // Logoff.
        (0x74, _) => {
            c.u8()?;
            let next = next(c)?;
            c.u16()?;
            follow(cx, core, h, at, c, next, true)
        }
        _ => Some(()),
    }
}

/// Where an offset lies behind the header.
fn place(offset: u16) -> i64 {
    i64::from(offset) - i64::from(HEADER_LENGTH)
}

fn next(c: &mut Cursor<'_>) -> Option<Next> {
    let command = c.u8()?;
    c.u8()?;
    Some(Next { command, offset: c.u16()? })
}

/// Reads the command behind a command that is read up to here.
fn follow(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
    next: Next,
    is_request: bool,
) -> Option<()> {
    let here = usize::from(at.offset) + c.pos();
    let offset = usize::from(next.offset);
    if offset != 0 && offset < here + 2 {
        c.take(offset.checked_sub(here)?)?;
    }
    let advances = next.offset > at.offset;
    if next.command != NONE && at.depth <= MAX_DEPTH && advances {
        let place = Place {
            command: next.command,
            is_request,
            offset: at.offset.wrapping_add(c.pos() as u16),
            depth: at.depth + 1,
        };
        command_at(cx, core, h, place, c.rest())?;
    }
    if next.command != NONE {
        if !advances {
            limit_reached(cx, "smb_andx_offset_not_advancing", "", Some("SMB"));
        }
        if at.depth >= MAX_DEPTH {
            limit_reached(cx, "smb_andx_depth_exceeded", "", Some("SMB"));
        }
    }
    Some(())
}

/// A string as it is shown.
fn text(cx: &mut Context<'_>, unicode: bool, string: &[u8]) -> Vec<u8> {
    if unicode {
        utf16::text(cx, string)
    } else {
        string.strip_suffix(b"\0").unwrap_or(string).to_vec()
    }
}

fn read_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    let words = c.u8()?;
    let next = next(c)?;
    let file = u64::from(c.u16()?);
    let low = u64::from(c.u32()?);
    c.take(10)?;
    let high = if words == 12 { c.u32()? } else { 0 };
    c.u16()?;
    follow(cx, core, h, at, c, next, true)?;
    core.shares.act_v1(cx, file, Action::Read);
    let high = if high == u32::MAX { 0 } else { u64::from(high) };
    core.v1.reads.insert(h.message, (high << 16) + low);
    Some(())
}

fn read_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.u8()?;
    let next = next(c)?;
    c.take(6)?;
    let (low, offset, high) = (c.u16()?, c.u16()?, c.u16()?);
    c.take(10)?;
    c.skip_to(place(offset))?;
    let data = c.bytes(u32::from(high) << 16 | u32::from(low))?;
    follow(cx, core, h, at, c, next, false)?;
    if h.is_pipe {
        core.pipe(cx, 0, Dir::Resp, data);
    } else if !data.is_empty() {
        let offset = core.v1.reads.remove(&h.message).unwrap_or(0);
        core.shares.data(cx, h.from, offset, data);
    }
    Some(())
}

fn write_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    let words = c.u8()?;
    let next = next(c)?;
    let file = u64::from(c.u16()?);
    let low = c.u32()?;
    c.take(8)?;
    let length = u32::from(c.u16()?) << 16 | u32::from(c.u16()?);
    let offset = c.u16()?;
    let high = if words == 14 { c.u32()? } else { 0 };
    c.u16()?;
    c.skip_to(place(offset))?;
    let data = c.bytes(length)?;
    follow(cx, core, h, at, c, next, true)?;
    if h.is_pipe {
        core.pipe(cx, 0, Dir::Orig, data);
    }
    core.shares.act_v1(cx, file, Action::Write);
    if !h.is_pipe && !data.is_empty() {
        let offset = (high << 16).wrapping_add(low);
        core.shares.data(cx, h.from, offset.into(), data);
    }
    Some(())
}

/// Subcommands on the file system, which are not logged ([MS-CIFS] §2.2.6).
fn transaction2(h: Header, c: &mut Cursor<'_>) -> Option<()> {
    c.take(21)?;
    let offset = c.u16()?;
    c.take(6)?;
    let subcommand = c.u16()?;
    c.u16()?;
    c.skip_to(place(offset))?;
    let mut c = Cursor::new(c.rest());
    match subcommand {
        0x01 => c.take(12)?,
        0x05 => c.take(6)?,
        0x10 => c.take(2)?,
        0x07 => return c.take(4).map(|_| ()),
        _ => return Some(()),
    };
    c.string(h.unicode, false).map(|_| ())
}

fn negotiated(cx: &mut Context<'_>, core: &mut Core, h: Header, c: &mut Cursor<'_>) -> Option<()> {
    let words = c.u8()?;
    c.u16()?;
    match words {
        0x01 => drop(c.u16()?),
        0x0d => {
            c.take(20)?;
            let key = usize::from(c.u16()?);
            c.take(4 + key)?;
            c.string(h.unicode, true)?;
        }
        0x11 => {
            c.take(17)?;
            let capabilities = c.u32()?;
            c.take(10)?;
            let key = usize::from(c.u8()?);
            let bytes = usize::from(c.u16()?);
            if capabilities & 0x8000_0000 == 0 {
                c.take(key)?;
                c.string(h.unicode, true)?;
            } else {
                c.take(16)?;
                core.login(cx, c.take(bytes.checked_sub(16)?)?);
            }
        }
        _ => return None,
    }
    Some(())
}

fn setup_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Option<()> {
    let (words, rest) = data.split_first()?;
    let at = Place { offset: at.offset + 1, ..at };
    let c = &mut Cursor::new(rest);
    let next = next(c)?;
    c.take(10)?;
    let mut token: &[u8] = &[];
    let strings = match words {
        0x0a => {
            let password = usize::from(c.u16()?);
            c.take(6 + password)?;
            4
        }
        0x0c => {
            let length = usize::from(c.u16()?);
            c.take(10)?;
            token = c.take(length)?;
            2
        }
        0x0d => {
            let passwords = usize::from(c.u16()?) + usize::from(c.u16()?);
            c.take(10 + passwords)?;
            4
        }
        _ => return None,
    };
    for _ in 0..strings {
        c.string(h.unicode, true)?;
    }
    follow(cx, core, h, at, c, next, true)?;
    core.login(cx, token);
    Some(())
}

fn setup_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Option<()> {
    let (words, rest) = data.split_first()?;
    let at = Place { offset: at.offset + 1, ..at };
    let c = &mut Cursor::new(rest);
    if !matches!(words, 3 | 4) {
        return c.u16().map(|_| ());
    }
    let next = next(c)?;
    c.u16()?;
    let mut token: &[u8] = &[];
    let strings = if *words == 4 {
        let length = usize::from(c.u16()?);
        c.u16()?;
        token = c.take(length)?;
        2
    } else if c.u16()? == 0 {
        0
    } else {
        3
    };
    for _ in 0..strings {
        c.string(h.unicode, true)?;
    }
    follow(cx, core, h, at, c, next, false)?;
    core.login(cx, token);
    Some(())
}

fn tree_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.u8()?;
    let next = next(c)?;
    c.u16()?;
    let password = usize::from(c.u16()?);
    c.take(2 + password)?;
    let path = c.string(h.unicode, false)?;
    let service = c.string(false, false)?;
    follow(cx, core, h, at, c, next, true)?;
    let path = text(cx, h.unicode, path);
    let service = text(cx, false, service);
    core.shares.connect_v1(cx.now, path, service);
    Some(())
}

fn tree_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    let words = usize::from(c.u8()?);
    let next = next(c)?;
    if words >= 3 {
        c.take(2 * (words - 2))?;
    }
    let bytes = usize::from(c.u16()?);
    let service = c.string(false, false)?;
    let mut file_system: &[u8] = &[];
    if bytes > service.len() {
        file_system = c.string(h.unicode, false)?;
    }
    follow(cx, core, h, at, c, next, false)?;
    let service = text(cx, false, service);
    if service.starts_with(b"IPC") {
        core.set_pipe(h.tree.into());
    }
    let file_system = text(cx, h.unicode, file_system);
    core.shares.connected_v1(cx, h.tree.into(), service, file_system);
    Some(())
}

fn create_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.u8()?;
    let next = next(c)?;
    c.take(46)?;
    let name = c.string(h.unicode, false)?;
    follow(cx, core, h, at, c, next, true)?;
    let name = text(cx, h.unicode, name);
    core.guess_pipe(h.tree.into(), &name);
    core.shares.create_v1(cx.now, name);
    Some(())
}

fn create_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.u8()?;
    let next = next(c)?;
    c.u8()?;
    let file = u64::from(c.u16()?);
    c.u32()?;
    let times =
        Times { created: c.u64()?, accessed: c.u64()?, modified: c.u64()?, changed: c.u64()? };
    c.take(12)?;
    let size = c.u64()?;
    c.take(7)?;
    follow(cx, core, h, at, c, next, false)?;
    core.shares.created_v1(cx, file, size, times);
    Some(())
}

/// What a transaction's name says it is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    LanMan,
    Unknown,
}

fn kind(unicode: bool, name: &[u8]) -> Kind {
    let step = if unicode { 2 } else { 1 };
    let mut letters = name.iter().step_by(step).copied();
    let mut starts = |with: &[u8]| with.iter().all(|b| letters.next() == Some(*b));
    if !starts(b"\\PIPE\\") {
        Kind::Unknown
    } else if starts(b"LANMAN") {
        Kind::LanMan
    } else {
        Kind::Pipe
    }
}

fn transaction_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.take(19)?;
    let parameters = (usize::from(c.u16()?), c.u16()?);
    c.u16()?;
    let offset = c.u16()?;
    let setup = usize::from(c.u8()?);
    c.take(1 + 2 * setup + 2)?;
    let kind = kind(h.unicode, c.string(h.unicode, false)?);
    c.skip_to(place(parameters.1))?;
    c.take(parameters.0)?;
    c.skip_to(place(offset))?;
    if kind == Kind::Pipe {
        core.pipe(cx, 0, Dir::Orig, c.rest());
    }
    let is_pipe = kind == Kind::Pipe || kind == Kind::Unknown && core.is_pipe(h.tree.into());
    core.v1.pipes.insert(h.message, is_pipe);
    Some(())
}

fn transaction_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    c: &mut Cursor<'_>,
) -> Option<()> {
    c.take(7)?;
    let parameters = (usize::from(c.u16()?), c.u16()?);
    c.u16()?;
    let (count, offset) = (c.u16()?, c.u16()?);
    c.u16()?;
    let setup = usize::from(c.u8()?);
    c.take(1 + 2 * setup + 2)?;
    c.skip_to(place(parameters.1))?;
    c.take(parameters.0)?;
    c.skip_to(place(offset))?;
    let is_pipe = core.v1.pipes.remove(&h.message).unwrap_or(false);
    if is_pipe && count > 0 {
        core.pipe(cx, 0, Dir::Resp, c.rest());
    }
    Some(())
}
