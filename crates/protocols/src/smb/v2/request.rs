//! Requests ([MS-SMB2] §2.2.3 to §2.2.39).
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

use super::Header;
use super::PIPE_TRANSCEIVE;
use super::buffers;
use super::contexts;
use super::discarded;
use super::file;
use super::fixed;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::info::Action;
use crate::support::utf16;

/// Reads a request behind its header. Returns its length.
pub(super) fn read(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let all = |record, n| fixed(record, data, n);
    match h.command {
        0 => negotiate(data),
        1 => session_setup(cx, core, h, data),
        2 => all("SMB2_logoff_request", 4),
        3 => tree_connect(cx, core, h, data),
        4 => {
            let read = all("SMB2_tree_disconnect_request", 4)?;
            core.unset_pipe(h.tree);
            core.shares.disconnect(h.tree);
            Ok(read)
        }
        5 => create(cx, core, h, data),
        6 => close(cx, core, data),
        7 => all("SMB2_flush_request", 24),
        8 => read_file(cx, core, h, data),
        9 => write(cx, core, h, data),
        10 => lock(data),
        11 => control(cx, core, h, data),
        12 => all("SMB2_cancel_request", 4),
        13 => all("SMB2_echo_request", 4),
        14 => query_directory(h, data),
        15 => all("SMB2_change_notify_request", 32),
        16 => query_info(h, data),
        17 => set_info(cx, core, h, data),
        18 => all("SMB2_oplock_break", 24),
        _ => Ok(0),
    }
}

fn negotiate(data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_negotiate_request", data);
    let mut f = c.upto("client_start_time", 36)?;
    f.skip(2);
    c.list("dialects", f.u16().into(), 2)?;
    Ok(c.pos())
}

fn session_setup(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_session_setup_request", data);
    let mut f = c.upto("security_length", 16)?;
    f.skip(12);
    c.pad_to("pad1", h.place(f.u16()))?;
    core.login(cx, c.bytes("security_blob", f.u16().into())?);
    Ok(c.pos())
}

fn tree_connect(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_tree_connect_request", data);
    let mut f = c.upto("path_length", 8)?;
    f.skip(4);
    c.pad_to("pad", h.place(f.u16()))?;
    let path = utf16::text(cx, c.wide(f.u16().into())?);
    core.shares.connect(path);
    Ok(c.pos())
}

fn create(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_create_request", data);
    c.upto("impersonation_level", 8)?;
    c.upto("flags", 8)?;
    c.upto("reserved", 8)?;
    let mut f = c.upto("context_len", 32)?;
    f.skip(16);
    let options = f.u32();
    let (name_offset, name_length) = (f.u16(), f.u16());
    c.pad_to("filename_pad", h.place(name_offset))?;
    let name = c.wide(name_length.into())?;
    contexts(h, &mut c, f.u32(), f.u32())?;
    let name = utf16::text(cx, name);
    if !h.is_pipe {
        core.guess_pipe(cx, h.tree, &name);
    }
    core.shares.create(cx.now, name, options);
    Ok(c.pos())
}

fn close(cx: &mut Context<'_>, core: &mut Core, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_close_request", data);
    let mut f = c.all(24)?;
    f.skip(8);
    let file = file(&mut f);
    core.shares.close(cx, file, None);
    core.close_pipe(file);
    Ok(c.pos())
}

fn read_file(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_read_request", data);
    let mut f = c.upto("channel_info_len", 48)?;
    f.skip(8);
    let offset = f.u64();
    let file = file(&mut f);
    f.skip(12);
    c.pad_to("pad", h.place(f.u16()))?;
    c.bytes("buffer", f.u16().into())?;
    core.shares.act(cx, file, Action::Read);
    if core.v2.reads.len() >= cx.env.pending.smb {
        core.v2.reads.clear();
        discarded(cx, core, "read");
    }
    core.v2.reads.insert(h.message, (offset, file));
    cx.conn.note_table(core.v2.reads.len());
    Ok(c.pos())
}

fn write(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_write_request", data);
    let mut f = c.upto("flags", 48)?;
    f.skip(2);
    let (place, length, offset) = (f.u16(), f.u32(), f.u64());
    let file = file(&mut f);
    c.pad_to("pad", h.place(place))?;
    let data = c.bytes("data", length)?;
    if h.is_pipe {
        core.pipe(cx, file, h.from, data);
    }
    core.shares.act(cx, file, Action::Write);
    if !h.is_pipe && !data.is_empty() {
        core.shares.data(cx, h.from, offset, data);
    }
    Ok(c.pos())
}

fn lock(data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_lock_request", data);
    let mut f = c.upto("file_id", 24)?;
    f.skip(2);
    c.list("locks", f.u16().into(), 20)?;
    Ok(c.pos())
}

fn control(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_ioctl_request", data);
    let mut f = c.upto("reserved2", 56)?;
    f.skip(4);
    let code = f.u32();
    let file = file(&mut f);
    let input = [f.u32(), f.u32()];
    f.skip(4);
    let output = [f.u32(), f.u32()];
    let [data, _] = buffers(h, &mut c, [input, output])?;
    if code == PIPE_TRANSCEIVE {
        core.pipe(cx, file, h.from, data);
    }
    if core.v2.controls.len() >= cx.env.pending.smb {
        core.v2.controls.clear();
        discarded(cx, core, "ioctl");
    }
    core.v2.controls.insert(h.message, file);
    cx.conn.note_table(core.v2.controls.len());
    Ok(c.pos())
}

fn query_directory(h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_query_directory_request", data);
    let mut f = c.upto("output_buffer_len", 32)?;
    f.skip(24);
    c.pad_to("pad", h.place(f.u16()))?;
    c.bytes("file_name", f.u16().into())?;
    Ok(c.pos())
}

fn query_info(h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_query_info_request", data);
    let mut f = c.upto("file_id", 40)?;
    f.skip(8);
    c.pad_to("pad", h.place(f.u16()))?;
    f.skip(2);
    c.bytes("buffer", f.u32())?;
    Ok(c.pos())
}

/// Attributes of a file or file system are set (§2.2.39, [MS-FSCC] §2.4 and §2.5).
///
/// [MS-FSCC]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-fscc
fn set_info(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_set_info_request", data);
    let mut f = c.upto("file_id", 32)?;
    f.skip(2);
    let (class, level) = (f.u8(), f.u8());
    f.skip(4);
    let offset = f.u16();
    f.skip(6);
    let file = file(&mut f);
    c.pad_to("pad", h.place(offset))?;
    let (record, n) = match (class, level) {
        (1, 0x04) => ("SMB2_file_basic_info", 36),
        (1, 0x0a) => ("SMB2_file_rename_info", 20),
        (1, 0x0b) => ("SMB2_file_link_info", 20),
        (1, 0x0d) => ("SMB2_file_disposition_info", 1),
        (1, 0x0e) => ("SMB2_file_position_info", 8),
        (1, 0x0f) => {
            extended_attributes(&mut c)?;
            return Ok(c.pos());
        }
        (1, 0x10) => ("SMB2_file_mode_info", 4),
        (1, 0x13) => ("SMB2_file_allocation_info", 8),
        (1, 0x14) => ("SMB2_file_endoffile_info", 8),
        (1, 0x18) => ("SMB2_file_pipe_info", 8),
        (1, 0x27) => ("SMB2_file_validdatalength_info", 8),
        (1, 0x28) => ("SMB2_file_shortname_info", 4),
        (2, 0x06) => ("SMB2_file_fscontrol_info", 48),
        (2, 0x08) => ("SMB2_file_fsobjectid_info", 16),
        _ => return Ok(c.pos()),
    };
    let last = match (class, level) {
        (1, 0x0a) => "filename_len",
        (1, 0x0b) => "file_name_length",
        (1, 0x28) => "filename_length",
        (2, 0x08) => "object_id",
        _ => "",
    };
    let mut inner = c.inner(record);
    let mut f = inner.upto(last, n)?;
    match (class, level) {
        (1, 0x04) => core.shares.act(cx, file, Action::SetAttribute),
        (1, 0x0a) => {
            f.skip(16);
            let name = utf16::text(cx, inner.wide(f.u32())?);
            core.shares.rename(cx, file, name);
        }
        (1, 0x0b) => {
            f.skip(16);
            inner.wide(f.u32())?;
        }
        (1, 0x0d) => core.shares.delete(cx, file, f.u8() > 0),
        (1, 0x28) => drop(inner.wide(f.u32())?),
        (2, 0x08) => drop(inner.wide(48)?),
        _ => {}
    }
    c.pass(&inner);
    Ok(c.pos())
}

/// Each says where the next one begins; the last one does not.
fn extended_attributes(c: &mut Cursor<'_>) -> Read<()> {
    while c.left() > 0 {
        let mut inner = c.inner("SMB2_file_fullea_info_element");
        let mut f = inner.upto("ea_value_length", 8)?;
        let next = f.u32();
        f.skip(1);
        let (name, value) = (f.u8(), f.u16());
        inner.wide(name.into())?;
        inner.wide(value.into())?;
        inner.pad_to("pad_to_next", next.into())?;
        c.pass(&inner);
        if next == 0 {
            break;
        }
    }
    Ok(())
}
