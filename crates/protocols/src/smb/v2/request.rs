//! Requests ([MS-SMB2] §2.2.3 to §2.2.39).
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

use super::header::Header;
use super::header::PIPE_TRANSCEIVE;
use super::header::buffers;
use super::header::contexts;
use super::header::discarded;
use super::header::fixed;
use crate::Context;
use crate::Tag;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::events::CreateRequest;
use crate::smb::events::FileEa;
use crate::smb::events::FsControl;
use crate::smb::events::Guid;
use crate::smb::events::MacTimes;
use crate::smb::events::SetupRequest2;
use crate::smb::events::Smb2CloseRequest;
use crate::smb::events::Smb2CreateRequest;
use crate::smb::events::Smb2FileAllocation;
use crate::smb::events::Smb2FileDelete;
use crate::smb::events::Smb2FileEndoffile;
use crate::smb::events::Smb2FileFscontrol;
use crate::smb::events::Smb2FileFsobjectid;
use crate::smb::events::Smb2FileFullea;
use crate::smb::events::Smb2FileLink;
use crate::smb::events::Smb2FileMode;
use crate::smb::events::Smb2FilePipe;
use crate::smb::events::Smb2FilePosition;
use crate::smb::events::Smb2FileRename;
use crate::smb::events::Smb2FileSattr;
use crate::smb::events::Smb2FileShortname;
use crate::smb::events::Smb2FileValiddatalength;
use crate::smb::events::Smb2NegotiateRequest;
use crate::smb::events::Smb2ReadRequest;
use crate::smb::events::Smb2SessionSetupRequest;
use crate::smb::events::Smb2TreeConnectRequest;
use crate::smb::events::Smb2TreeDisconnectRequest;
use crate::smb::events::Smb2WriteRequest;
use crate::smb::info::Action;
use crate::smb::info::Times;
use crate::smb::raise::attributes;
use crate::smb::raise::guid;
use crate::support::utf16;

/// Parses a request after its header. Returns its length in bytes.
pub(super) fn read(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let all = |record, n| fixed(record, data, n);
    match h.command {
        0 => negotiate(cx, h, data),
        1 => session_setup(cx, core, h, data),
        2 => all("SMB2_logoff_request", 4),
        3 => tree_connect(cx, core, h, data),
        4 => {
            let read = all("SMB2_tree_disconnect_request", 4)?;
            cx.raise(|c| Smb2TreeDisconnectRequest { c, hdr: h.record });
            core.unset_pipe(h.tree);
            core.shares.disconnect(h.tree);
            Ok(read)
        }
        5 => create(cx, core, h, data),
        6 => close(cx, core, h, data),
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

fn negotiate(cx: &mut Context<'_>, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_negotiate_request", data);
    let mut f = c.upto("client_start_time", 36)?;
    f.skip(2);
    let dialects = c.list("dialects", f.u16().into(), 2)?;
    cx.raise(|c| {
        let number = |d: &[u8; 2]| u16::from_le_bytes(*d);
        let dialects = dialects.as_chunks().0.iter().map(number).collect();
        Smb2NegotiateRequest { c, hdr: h.record, dialects }
    });
    Ok(c.pos())
}

fn session_setup(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_session_setup_request", data);
    let mut f = c.upto("security_length", 16)?;
    f.skip(3);
    let security_mode = u64::from(f.u8());
    f.skip(8);
    c.pad_to("pad1", h.offset_after_header(f.u16()))?;
    let token = c.bytes("security_blob", f.u16().into())?;
    let request = SetupRequest2 { security_mode };
    cx.raise(|c| Smb2SessionSetupRequest { c, hdr: h.record, request });
    core.login(cx, h.from, token);
    Ok(c.pos())
}

fn tree_connect(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_tree_connect_request", data);
    let mut f = c.upto("path_length", 8)?;
    f.skip(4);
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
    let path = utf16::text(cx, c.wide(f.u16().into())?);
    cx.raise(|c| Smb2TreeConnectRequest { c, hdr: h.record, path: &path });
    core.shares.connect(path);
    Ok(c.pos())
}

fn create(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_create_request", data);
    c.upto("impersonation_level", 8)?;
    c.upto("flags", 8)?;
    c.upto("reserved", 8)?;
    let mut f = c.upto("context_len", 32)?;
    f.skip(12);
    let (disposition, options) = (f.u32(), f.u32());
    let (name_offset, name_length) = (f.u16(), f.u16());
    c.pad_to("filename_pad", h.offset_after_header(name_offset))?;
    let name = c.wide(name_length.into())?;
    contexts(h, &mut c, f.u32(), f.u32())?;
    let name = utf16::text(cx, name);
    if !h.is_pipe {
        core.detect_pipe(cx, h.tree, &name);
    }
    let request = CreateRequest { filename: &name, disposition, create_options: options };
    cx.raise(|c| Smb2CreateRequest { c, hdr: h.record, request });
    core.shares.create(cx.now, name, options);
    Ok(c.pos())
}

fn close(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_close_request", data);
    let mut f = c.all(24)?;
    f.skip(8);
    let file_id = guid(&mut f);
    let file = file_id.file();
    cx.raise(|c| Smb2CloseRequest { c, hdr: h.record, file_id });
    cx.raise_file_handle(Tag::Smb, h.from);
    core.shares.close(cx, file, None);
    core.close_pipe(file);
    Ok(c.pos())
}

fn read_file(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_read_request", data);
    let mut f = c.upto("channel_info_len", 48)?;
    f.skip(4);
    let (length, offset) = (f.u32(), f.u64());
    let file_id = guid(&mut f);
    let file = file_id.file();
    f.skip(12);
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
    c.bytes("buffer", f.u16().into())?;
    cx.raise(|c| Smb2ReadRequest { c, hdr: h.record, file_id, offset, length });
    core.shares.act(cx, file, Action::Read);
    if core.v2.reads.len() >= cx.env.pending.of(Tag::Smb) {
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
    let (offset_after_header, length, offset) = (f.u16(), f.u32(), f.u64());
    let file_id = guid(&mut f);
    let file = file_id.file();
    c.pad_to("pad", h.offset_after_header(offset_after_header))?;
    let data = c.bytes("data", length)?;
    if h.is_pipe {
        core.pipe(cx, file, h.from, data);
    }
    cx.raise(|c| Smb2WriteRequest { c, hdr: h.record, file_id, offset, length });
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
    let file = guid(&mut f).file();
    let input = [f.u32(), f.u32()];
    f.skip(4);
    let output = [f.u32(), f.u32()];
    let [data, _] = buffers(h, &mut c, [input, output])?;
    if code == PIPE_TRANSCEIVE {
        core.pipe(cx, file, h.from, data);
    }
    if core.v2.controls.len() >= cx.env.pending.of(Tag::Smb) {
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
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
    c.bytes("file_name", f.u16().into())?;
    Ok(c.pos())
}

fn query_info(h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_query_info_request", data);
    let mut f = c.upto("file_id", 40)?;
    f.skip(8);
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
    f.skip(2);
    c.bytes("buffer", f.u32())?;
    Ok(c.pos())
}

/// Parses a request to set information of a file or file system (§2.2.39, [MS-FSCC] §2.4 and §2.5).
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
    let file_id = guid(&mut f);
    let (file, hdr) = (file_id.file(), h.record);
    c.pad_to("pad", h.offset_after_header(offset))?;
    let (record, n) = match (class, level) {
        (1, 0x04) => ("SMB2_file_basic_info", 36),
        (1, 0x0a) => ("SMB2_file_rename_info", 20),
        (1, 0x0b) => ("SMB2_file_link_info", 20),
        (1, 0x0d) => ("SMB2_file_disposition_info", 1),
        (1, 0x0e) => ("SMB2_file_position_info", 8),
        (1, 0x0f) => {
            extended_attributes(cx, h, file_id, &mut c)?;
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
        (1, 0x04) => {
            let times = MacTimes::from(Times::read(&mut f));
            let attrs = attributes(f.u32());
            cx.raise(|c| Smb2FileSattr { c, hdr, file_id, times, attrs });
            core.shares.act(cx, file, Action::SetAttribute);
        }
        (1, 0x0a) => {
            f.skip(16);
            let name = utf16::text(cx, inner.wide(f.u32())?);
            cx.raise(|c| Smb2FileRename { c, hdr, file_id, dst_filename: &name });
            core.shares.rename(cx, file, name);
        }
        (1, 0x0b) => {
            f.skip(8);
            let root_directory = f.u64();
            let name = inner.wide(f.u32())?;
            if cx.wants::<Smb2FileLink<'_>>() {
                let file_name = &utf16::text(cx, name);
                cx.raise(|c| Smb2FileLink { c, hdr, file_id, root_directory, file_name });
            }
        }
        (1, 0x0d) => {
            let delete_pending = f.u8() > 0;
            cx.raise(|c| Smb2FileDelete { c, hdr, file_id, delete_pending });
            core.shares.delete(cx, file, delete_pending);
        }
        (1, 0x0e) => {
            let current_byte_offset = f.u64() as i64;
            cx.raise(|c| Smb2FilePosition { c, hdr, file_id, current_byte_offset });
        }
        (1, 0x10) => {
            let mode = f.u32();
            cx.raise(|c| Smb2FileMode { c, hdr, file_id, mode });
        }
        (1, 0x13) => {
            let alloc_size = f.u64() as i64;
            cx.raise(|c| Smb2FileAllocation { c, hdr, file_id, alloc_size });
        }
        (1, 0x14) => {
            let end_of_file = f.u64() as i64;
            cx.raise(|c| Smb2FileEndoffile { c, hdr, file_id, end_of_file });
        }
        (1, 0x18) => {
            let (read_mode, completion_mode) = (f.u32(), f.u32());
            cx.raise(|c| Smb2FilePipe { c, hdr, file_id, read_mode, completion_mode });
        }
        (1, 0x27) => {
            let valid_data_length = f.u64() as i64;
            cx.raise(|c| Smb2FileValiddatalength { c, hdr, file_id, valid_data_length });
        }
        (1, 0x28) => {
            let name = inner.wide(f.u32())?;
            if cx.wants::<Smb2FileShortname<'_>>() {
                let file_name = &utf16::text(cx, name);
                cx.raise(|c| Smb2FileShortname { c, hdr, file_id, file_name });
            }
        }
        (2, 0x06) => {
            let fs_control = FsControl {
                free_space_start_filtering: f.u64() as i64,
                free_space_threshold: f.u64() as i64,
                free_space_stop_filtering: f.u64() as i64,
                delete_quota_threshold: f.u64(),
                default_quota_limit: f.u64(),
                fs_control_flags: f.u32(),
            };
            cx.raise(|c| Smb2FileFscontrol { c, hdr, file_id, fs_control });
        }
        (2, 0x08) => {
            let object_id = guid(&mut f);
            let extended = inner.wide(48)?;
            if cx.wants::<Smb2FileFsobjectid<'_>>() {
                let extended_info = &utf16::text(cx, extended);
                cx.raise(|c| Smb2FileFsobjectid { c, hdr, file_id, object_id, extended_info });
            }
        }
        _ => {}
    }
    c.advance_past(&inner);
    Ok(c.pos())
}

/// Each extended attribute contains the offset of the next one; the last one does not.
fn extended_attributes(
    cx: &mut Context<'_>,
    h: &Header,
    file_id: Guid,
    c: &mut Cursor<'_>,
) -> Read<()> {
    let mut file_eas = Vec::new();
    while c.remaining() > 0 {
        let mut inner = c.inner("SMB2_file_fullea_info_element");
        let mut f = inner.upto("ea_value_length", 8)?;
        let next = f.u32();
        f.skip(1);
        let (name, value) = (f.u8(), f.u16());
        let (name, value) = (inner.wide(name.into())?, inner.wide(value.into())?);
        if cx.wants::<Smb2FileFullea>() {
            let (ea_name, ea_value) = (utf16::text(cx, name).into(), utf16::text(cx, value).into());
            file_eas.push(FileEa { ea_name, ea_value });
        }
        inner.pad_to("pad_to_next", next.into())?;
        c.advance_past(&inner);
        if next == 0 {
            break;
        }
    }
    cx.raise(|c| Smb2FileFullea { c, hdr: h.record, file_id, file_eas });
    Ok(())
}
