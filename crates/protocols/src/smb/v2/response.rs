//! Responses ([MS-SMB2] §2.2.4 to §2.2.40).
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

use super::Header;
use super::PIPE_TRANSCEIVE;
use super::buffers;
use super::contexts;
use super::file;
use super::fixed;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::info::Share;
use crate::smb::info::Times;

/// Reads a response behind its header. Returns its length.
pub(super) fn read(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let all = |record, n| fixed(record, data, n);
    match h.command {
        0 => negotiate(cx, core, h, data),
        1 => session_setup(cx, core, h, data),
        2 => all("SMB2_logoff_response", 4),
        3 => tree_connect(cx, core, h, data),
        4 => all("SMB2_tree_disconnect_response", 4),
        5 => create(cx, core, h, data),
        6 => all("SMB2_close_response", 60),
        7 => all("SMB2_flush_response", 4),
        8 => read_file(cx, core, h, data),
        9 => all("SMB2_write_response", 16),
        10 => all("SMB2_lock_response", 4),
        11 => control(cx, core, h, data),
        13 => all("SMB2_echo_response", 4),
        14 => queried("SMB2_query_directory_response", h, data),
        15 => changes(h, data),
        16 => queried("SMB2_query_info_response", h, data),
        17 => all("SMB2_set_info_response", 2),
        18 => all("SMB2_oplock_break", 24),
        _ => Ok(0),
    }
}

/// Negotiated dialect (§2.2.4), with contexts from version 3.1.1 on.
fn negotiate(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_negotiate_response", data);
    let mut f = c.upto("negotiate_context_offset", 64)?;
    f.skip(4);
    let (dialect, contexts) = (f.u16(), usize::from(f.u16()));
    f.skip(50);
    let length = f.u16();
    let token = c.bytes("security_blob", length.into())?;
    if dialect == 0x0311 {
        c.pad_to("pad1", h.far_place(f.u32()))?;
        if contexts > 0 {
            c.inner("NegotiateContextList").has("vals", contexts - 1, 1)?;
        }
        for n in 1..=contexts {
            let mut padded = c.inner("Padded_SMB3_negotiate_context_value");
            padded.pass(&negotiate_context(&padded)?);
            if n < contexts {
                let end = padded.pos().next_multiple_of(8);
                padded = c.inner("Padded_SMB3_negotiate_context_value");
                padded.all(end as u32)?;
            }
            c.pass(&padded);
        }
    }
    core.login(cx, token);
    Ok(c.pos())
}

/// Parses one capability (§2.2.4.1). Returns the record, read to its end.
fn negotiate_context<'a>(at: &Cursor<'a>) -> Read<Cursor<'a>> {
    let mut c = at.inner("SMB3_negotiate_context_value");
    let mut f = c.upto("reserved", 8)?;
    let (kind, length) = (f.u16(), f.u16());
    let mut inner;
    match kind {
        1 => {
            inner = c.inner("SMB3_preauth_integrity_capabilities");
            let mut f = inner.upto("salt_length", 4)?;
            inner.list("hash_alg", f.u16().into(), 2)?;
            inner.bytes("salt", f.u16().into())?;
        }
        2 => {
            inner = c.inner("SMB3_encryption_capabilities");
            let mut f = inner.upto("cipher_count", 2)?;
            inner.list("ciphers", f.u16().into(), 2)?;
        }
        3 => {
            inner = c.inner("SMB3_compression_capabilities");
            let mut f = inner.upto("reserved", 8)?;
            inner.list("algs", f.u16().into(), 2)?;
        }
        5 => {
            inner = c.inner("SMB3_netname_negotiate_context_id");
            inner.bytes("net_name", length.into())?;
        }
        _ => {
            c.bytes("unknown_context_data", length.into())?;
            return Ok(c);
        }
    }
    c.pass(&inner);
    Ok(c)
}

fn session_setup(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_session_setup_response", data);
    let mut f = c.upto("security_length", 8)?;
    f.skip(4);
    c.pad_to("pad1", h.place(f.u16()))?;
    core.login(cx, c.bytes("security_blob", f.u16().into())?);
    Ok(c.pos())
}

fn tree_connect(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_tree_connect_response", data);
    let mut f = c.all(16)?;
    f.skip(2);
    let share = Share::new(f.u8());
    if share == Share::Pipe {
        core.set_pipe(cx, h.tree);
    }
    core.shares.connected(cx, share);
    Ok(c.pos())
}

fn create(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_create_response", data);
    let mut f = c.upto("context_len", 88)?;
    f.skip(8);
    let times = Times::read(&mut f);
    f.skip(8);
    let size = f.u64();
    f.skip(8);
    let file = file(&mut f);
    contexts(h, &mut c, f.u32(), f.u32())?;
    core.shares.created(cx, file, size, times, h.status == 0);
    Ok(c.pos())
}

fn read_file(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_read_response", data);
    let mut f = c.upto("reserved2", 16)?;
    f.skip(2);
    let place = f.u8();
    f.skip(1);
    c.pad_to("pad", h.place(place.into()))?;
    let data = c.bytes("data", f.u32())?;
    let (offset, file) = core.v2.reads.remove(&h.message).unwrap_or_default();
    if h.is_pipe {
        core.pipe(cx, file, h.from, data);
    } else if !data.is_empty() {
        core.shares.data(cx, h.from, offset, data);
    }
    Ok(c.pos())
}

fn control(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_ioctl_response", data);
    let mut f = c.upto("reserved2", 48)?;
    f.skip(4);
    let code = f.u32();
    f.skip(16);
    let places = [[f.u32(), f.u32()], [f.u32(), f.u32()]];
    let [_, data] = buffers(h, &mut c, places)?;
    let file = core.v2.controls.remove(&h.message).unwrap_or(0);
    if code == PIPE_TRANSCEIVE {
        core.pipe(cx, file, h.from, data);
    }
    Ok(c.pos())
}

/// The queried information of a directory or file, which is not parsed.
fn queried(record: &'static str, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new(record, data);
    let mut f = c.upto("buffer_len", 8)?;
    f.skip(2);
    c.pad_to("pad", h.place(f.u16()))?;
    c.bytes("buffer", f.u32())?;
    Ok(c.pos())
}

/// Files of a directory that changed.
fn changes(h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_change_notify_response", data);
    let mut f = c.upto("output_buffer_len", 8)?;
    f.skip(2);
    c.pad_to("pad", h.place(f.u16()))?;
    let mut rest = c.bytes("buffer", f.u32())?;
    while !rest.is_empty() {
        let mut change = Cursor::new("SMB2_File_Notify_Information", rest);
        let mut f = change.upto("filename_len", 12)?;
        f.skip(8);
        change.wide(f.u32())?;
        rest = change.rest();
    }
    Ok(c.pos())
}
