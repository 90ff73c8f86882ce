//! Messages of versions 2 and 3 ([MS-SMB2] §2.2).
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

use std::collections::HashMap;

use gannet_base::Dir;
use gannet_dict::KeyedHash;

use super::core::Core;
use super::cursor::Cursor;
use super::info::Action;
use super::info::Share;
use super::info::Times;
use crate::Context;
use crate::support::utf16;

/// Header of an encrypted message, behind its protocol identifier.
pub(super) const TRANSFORM_LENGTH: usize = 48;
/// Length of the header behind the protocol identifier.
const HEADER_REST: usize = 60;

/// A message is being worked on: another answer will come.
const STATUS_PENDING: u32 = 0x103;
/// Control code: write to a pipe and read the answer from it.
const PIPE_TRANSCEIVE: u32 = 0x0011_c017;

type Map<V> = HashMap<u64, V, KeyedHash>;

/// What requests say that their answers do not, by message.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    trees: Map<u32>,
    /// Offset and file of reads.
    reads: Map<(u64, u64)>,
    controls: Map<u64>,
}

/// The header (§2.2.1).
struct Header {
    from: Dir,
    /// Its own length, from which offsets count.
    length: u16,
    status: u32,
    command: u16,
    next: u32,
    message: u64,
    tree: u32,
    is_pipe: bool,
}

impl Header {
    /// Where an offset of the message lies behind the header.
    fn place(&self, offset: u16) -> i64 {
        i64::from(offset) - i64::from(self.length)
    }

    /// The same for offsets that must not lie inside of the header.
    fn strict_place(&self, offset: u32) -> Option<i64> {
        offset.checked_sub(u32::from(self.length)).map(i64::from)
    }

    /// Whether an answer is nothing but an error (§3.3.4.4).
    fn is_error(&self) -> bool {
        match (self.status, self.command) {
            _ if self.from.is_orig() => false,
            (0, _) => false,
            (0x8000_0005, 8 | 11 | 16) | (0xc000_000d, 11) | (0xc000_0016, 1) => false,
            (0x10c, 15) => false,
            _ => true,
        }
    }
}

/// Reads a message behind its protocol identifier. Returns where the next one begins, 0 if it is
/// the last. `None`: it is broken.
pub(super) fn message(
    cx: &mut Context<'_>,
    core: &mut Core,
    from: Dir,
    data: &[u8],
) -> Option<usize> {
    let mut c = Cursor::new(data);
    let length = c.u16()?;
    c.u16()?;
    let (status, command) = (c.u32()?, c.u16()?);
    c.take(6)?;
    let (next, message) = (c.u32()?, c.u64()?);
    c.u32()?;
    let tree = c.u32()?;
    c.take(24)?;
    let asked = core.v2.trees.get(&message).copied();
    let is_pipe = core.is_pipe(if from.is_orig() { tree } else { asked.unwrap_or(0) });
    if from.is_orig() {
        if core.v2.trees.len() >= cx.env.pending.smb {
            core.v2.trees.clear();
            discarded(cx, core, "tree");
        }
        core.v2.trees.insert(message, tree);
        cx.conn.note_table(core.v2.trees.len());
    } else if status != STATUS_PENDING {
        core.v2.trees.remove(&message);
    }
    core.shares.v2(cx.now, tree, message, from, status == STATUS_PENDING);
    let h = Header { from, length, status, command, next, message, tree, is_pipe };
    let mut c = Cursor::new(&data[HEADER_REST..]);
    if h.is_error() {
        c.take(4)?;
        let n = c.u32()?;
        c.bytes(n)?;
    } else if from.is_orig() {
        request(cx, core, &h, &mut c)?;
    } else {
        response(cx, core, &h, &mut c)?;
    }
    if h.next == 0 {
        return Some(0);
    }
    let next = usize::try_from(h.next).ok()?;
    let rest = next.checked_sub(usize::from(h.length))?.checked_sub(c.pos())?;
    c.take(rest)?;
    Some(HEADER_REST + c.pos())
}

/// Too much waits for answers.
fn discarded(cx: &mut Context<'_>, core: &mut Core, what: &str) {
    let counts = core.shares.discard();
    let addl = format!("state={what} {counts}");
    cx.weird("SMB_discarded_messages_state", &addl, Some("SMB2"));
}

/// The number by which a file is known: the sum of both parts of its identifier.
fn file(c: &mut Cursor<'_>) -> Option<u64> {
    Some(c.u64()?.wrapping_add(c.u64()?))
}

fn request(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    match h.command {
        // Negotiate.
        0 => {
            c.u16()?;
            let dialects = usize::from(c.u16()?);
            c.take(32 + 2 * dialects)?;
        }
        // Session setup.
        1 => {
            c.take(12)?;
            let (offset, length) = (c.u16()?, c.u16()?);
            c.skip_to(h.place(offset))?;
            core.login(cx, c.bytes(length.into())?);
        }
        // Tree connect.
        3 => {
            c.take(4)?;
            let (offset, length) = (c.u16()?, c.u16()?);
            c.skip_to(h.place(offset))?;
            let path = utf16::text(cx, c.bytes(length.into())?);
            core.shares.connect(path);
        }
        // Tree disconnect.
        4 => {
            c.take(4)?;
            core.unset_pipe(h.tree);
            core.shares.disconnect(h.tree);
        }
        5 => create(cx, core, h, c)?,
        // Close.
        6 => {
            c.take(8)?;
            let file = file(c)?;
            core.shares.close(cx, file, None);
            core.close_pipe(file);
        }
        // Flush and oplock break.
        7 | 18 => drop(c.take(24)?),
        8 => read(cx, core, h, c)?,
        // Write.
        9 => {
            c.u16()?;
            let (place, length, offset) = (c.u16()?, c.u32()?, c.u64()?);
            let file = file(c)?;
            c.take(16)?;
            c.skip_to(h.place(place))?;
            let data = c.bytes(length)?;
            if h.is_pipe {
                core.pipe(cx, file, h.from, data);
            }
            core.shares.act(cx, file, Action::Write);
            if !h.is_pipe && !data.is_empty() {
                core.shares.data(cx, h.from, offset, data);
            }
        }
        // Lock.
        10 => {
            c.u16()?;
            let locks = usize::from(c.u16()?);
            c.take(20 + 20 * locks)?;
        }
        11 => control(cx, core, h, c)?,
        // Logoff, cancel and echo.
        2 | 12 | 13 => drop(c.take(4)?),
        // Query directory.
        14 => {
            c.take(24)?;
            let (offset, length) = (c.u16()?, c.u16()?);
            c.u32()?;
            c.skip_to(h.place(offset))?;
            c.bytes(length.into())?;
        }
        // Change notify.
        15 => drop(c.take(32)?),
        // Query info.
        16 => {
            c.take(8)?;
            let offset = c.u16()?;
            c.u16()?;
            let length = c.u32()?;
            c.take(24)?;
            c.skip_to(h.place(offset))?;
            c.bytes(length)?;
        }
        17 => set_info(cx, core, h, c)?,
        _ => {}
    }
    Some(())
}

fn response(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    match h.command {
        0 => negotiated(cx, core, h, c)?,
        // Session setup.
        1 => {
            c.take(4)?;
            let (offset, length) = (c.u16()?, c.u16()?);
            c.skip_to(h.place(offset))?;
            core.login(cx, c.bytes(length.into())?);
        }
        // Tree connect.
        3 => {
            c.u16()?;
            let share = Share::new(c.u8()?);
            c.take(13)?;
            if share == Share::Pipe {
                core.set_pipe(h.tree);
            }
            core.shares.connected(cx, share);
        }
        // Create.
        5 => {
            c.take(8)?;
            let times = times(c)?;
            c.u64()?;
            let size = c.u64()?;
            c.u64()?;
            let file = file(c)?;
            let (offset, length) = (c.u32()?, c.u32()?);
            contexts(h, c, offset, length)?;
            core.shares.created(cx, file, size, times, h.status == 0);
        }
        // Close.
        6 => drop(c.take(60)?),
        // Read.
        8 => {
            c.u16()?;
            let place = c.u8()?;
            c.u8()?;
            let length = c.u32()?;
            c.u64()?;
            c.skip_to(h.place(place.into()))?;
            let data = c.bytes(length)?;
            let (offset, file) = core.v2.reads.remove(&h.message).unwrap_or_default();
            if h.is_pipe {
                core.pipe(cx, file, h.from, data);
            } else if !data.is_empty() {
                core.shares.data(cx, h.from, offset, data);
            }
        }
        // Write.
        9 => drop(c.take(16)?),
        // Control.
        11 => {
            c.take(4)?;
            let code = c.u32()?;
            file(c)?;
            let (input, input_length) = (c.u32()?, c.u32()?);
            let (output, output_length) = (c.u32()?, c.u32()?);
            c.u64()?;
            buffer(h, c, input, input_length, None)?;
            let data = buffer(h, c, output, output_length, Some(input))?;
            let file = core.v2.controls.remove(&h.message).unwrap_or(0);
            if code == PIPE_TRANSCEIVE {
                core.pipe(cx, file, h.from, data);
            }
        }
        // Tree disconnect, flush, logoff, lock, echo.
        2 | 4 | 7 | 10 | 13 => drop(c.take(4)?),
        // Query directory and query info.
        14 | 16 => {
            c.u16()?;
            let (offset, length) = (c.u16()?, c.u32()?);
            c.skip_to(h.place(offset))?;
            c.bytes(length)?;
        }
        // Change notify.
        15 => {
            c.u16()?;
            let (offset, length) = (c.u16()?, c.u32()?);
            c.skip_to(h.place(offset))?;
            let mut list = Cursor::new(c.bytes(length)?);
            while list.left() > 0 {
                list.u64()?;
                let n = list.u32()?;
                list.bytes(n)?;
            }
        }
        // Set info.
        17 => drop(c.take(2)?),
        // Oplock break.
        18 => drop(c.take(24)?),
        _ => {}
    }
    Some(())
}

/// Negotiated dialect (§2.2.4), with contexts from version 3.1.1 on.
fn negotiated(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    c.u32()?;
    let (dialect, contexts) = (c.u16()?, c.u16()?);
    c.take(48)?;
    c.u16()?;
    let length = c.u16()?;
    let offset = c.u32()?;
    let token = c.bytes(length.into())?;
    if dialect == 0x0311 {
        c.skip_to(h.strict_place(offset)?)?;
        for n in 1..=contexts {
            let start = c.pos();
            let (kind, length) = (c.u16()?, c.u16()?);
            c.u32()?;
            match kind {
                1 => {
                    let (hashes, salt) = (usize::from(c.u16()?), usize::from(c.u16()?));
                    c.take(2 * hashes + salt)?;
                }
                2 => {
                    let ciphers = usize::from(c.u16()?);
                    c.take(2 * ciphers)?;
                }
                3 => {
                    let algorithms = usize::from(c.u16()?);
                    c.take(6 + 2 * algorithms)?;
                }
                _ => drop(c.bytes(length.into())?),
            }
            if n < contexts {
                let read = c.pos() - start;
                c.take(read.next_multiple_of(8) - read)?;
            }
        }
    }
    core.login(cx, token);
    Some(())
}

fn create(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    c.take(36)?;
    let options = {
        c.u32()?;
        c.u32()?
    };
    let (name_offset, name_length) = (c.u16()?, c.u16()?);
    let (offset, length) = (c.u32()?, c.u32()?);
    c.skip_to(h.place(name_offset))?;
    let name = c.bytes(name_length.into())?;
    contexts(h, c, offset, length)?;
    let name = utf16::text(cx, name);
    if !h.is_pipe {
        core.guess_pipe(h.tree, &name);
    }
    core.shares.create(cx.now, name, options);
    Some(())
}

/// Contexts of a file to be opened, which are not read.
fn contexts(h: &Header, c: &mut Cursor<'_>, offset: u32, length: u32) -> Option<()> {
    if offset != 0 {
        c.skip_to(h.strict_place(offset)?)?;
    }
    c.bytes(length).map(|_| ())
}

fn read(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    c.u32()?;
    c.u32()?;
    let offset = c.u64()?;
    let file = file(c)?;
    c.take(12)?;
    let (place, length) = (c.u16()?, c.u16()?);
    c.skip_to(h.place(place))?;
    c.bytes(length.into())?;
    core.shares.act(cx, file, Action::Read);
    if core.v2.reads.len() >= cx.env.pending.smb {
        core.v2.reads.clear();
        discarded(cx, core, "read");
    }
    core.v2.reads.insert(h.message, (offset, file));
    cx.conn.note_table(core.v2.reads.len());
    Some(())
}

fn control(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    c.take(4)?;
    let code = c.u32()?;
    let file = file(c)?;
    let (input, input_length) = (c.u32()?, c.u32()?);
    c.u32()?;
    let (output, output_length) = (c.u32()?, c.u32()?);
    c.take(12)?;
    let data = buffer(h, c, input, input_length, None)?;
    buffer(h, c, output, output_length, Some(input))?;
    if code == PIPE_TRANSCEIVE {
        core.pipe(cx, file, h.from, data);
    }
    if core.v2.controls.len() >= cx.env.pending.smb {
        core.v2.controls.clear();
        discarded(cx, core, "ioctl");
    }
    core.v2.controls.insert(h.message, file);
    cx.conn.note_table(core.v2.controls.len());
    Some(())
}

/// Input or output of a control code. An offset may lie before the place where it is read, not behind
/// it; that of the input may be given for the output as well.
fn buffer<'a>(
    h: &Header,
    c: &mut Cursor<'a>,
    offset: u32,
    length: u32,
    other: Option<u32>,
) -> Option<&'a [u8]> {
    if offset != 0 && other != Some(offset) {
        let here = c.pos() + usize::from(h.length);
        c.take(here.checked_sub(usize::try_from(offset).ok()?)?)?;
    }
    c.bytes(length)
}

fn times(c: &mut Cursor<'_>) -> Option<Times> {
    Some(Times { created: c.u64()?, accessed: c.u64()?, modified: c.u64()?, changed: c.u64()? })
}

/// Attributes of a file or file system are set (§2.2.39, [MS-FSCC] §2.4 and §2.5).
///
/// [MS-FSCC]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-fscc
fn set_info(cx: &mut Context<'_>, core: &mut Core, h: &Header, c: &mut Cursor<'_>) -> Option<()> {
    c.u16()?;
    let (class, level) = (c.u8()?, c.u8()?);
    c.u32()?;
    let offset = c.u16()?;
    c.take(6)?;
    let file = file(c)?;
    c.skip_to(h.place(offset))?;
    match (class, level) {
        (1, 0x04) => {
            c.take(36)?;
            core.shares.act(cx, file, Action::SetAttribute);
        }
        // Rename and link.
        (1, 0x0a | 0x0b) => {
            c.take(16)?;
            let length = c.u32()?;
            let name = c.bytes(length)?;
            if level == 0x0a {
                let name = utf16::text(cx, name);
                core.shares.rename(cx, file, name);
            }
        }
        (1, 0x0d) => {
            let is_wanted = c.u8()? > 0;
            core.shares.delete(cx, file, is_wanted);
        }
        // Extended attributes.
        (1, 0x0f) => loop {
            let start = c.pos();
            if c.left() == 0 {
                break;
            }
            let next = c.u32()?;
            c.u8()?;
            let (name, value) = (c.u8()?, c.u16()?);
            c.take(usize::from(name) + usize::from(value))?;
            c.skip_to(start as i64 + i64::from(next))?;
            if next == 0 {
                break;
            }
        },
        (1, 0x10) => drop(c.take(4)?),
        (1, 0x0e | 0x13 | 0x14 | 0x18 | 0x27) => drop(c.take(8)?),
        (1, 0x28) => {
            let length = c.u32()?;
            c.bytes(length)?;
        }
        (2, 0x06) => drop(c.take(48)?),
        (2, 0x08) => drop(c.take(64)?),
        _ => {}
    }
    Some(())
}
