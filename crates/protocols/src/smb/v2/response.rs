//! Responses ([MS-SMB2] §2.2.4 to §2.2.40).
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

use super::header::Header;
use super::header::PIPE_TRANSCEIVE;
use super::header::buffers;
use super::header::contexts;
use super::header::fixed;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::events::CloseResponse;
use crate::smb::events::Compression;
use crate::smb::events::CreateResponse;
use crate::smb::events::Encryption;
use crate::smb::events::NegotiateContext;
use crate::smb::events::Negotiated2;
use crate::smb::events::PreAuth;
use crate::smb::events::SetupFlags;
use crate::smb::events::SetupResponse2;
use crate::smb::events::Smb2CloseResponse;
use crate::smb::events::Smb2CreateResponse;
use crate::smb::events::Smb2NegotiateResponse;
use crate::smb::events::Smb2SessionSetupResponse;
use crate::smb::events::Smb2TreeConnectResponse;
use crate::smb::events::Smb2TreeDisconnectResponse;
use crate::smb::events::Smb2WriteResponse;
use crate::smb::events::TreeResponse;
use crate::smb::info::Share;
use crate::smb::info::Times;
use crate::smb::raise::attributes;
use crate::smb::raise::guid;
use crate::support::filetime::time;

/// Parses a response after its header. Returns its length in bytes.
pub(super) fn read(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let all = |record, n| fixed(record, data, n);
    match h.command {
        0 => negotiate(cx, core, h, data),
        1 => session_setup(cx, core, h, data),
        2 => all("SMB2_logoff_response", 4),
        3 => tree_connect(cx, core, h, data),
        4 => {
            let read = all("SMB2_tree_disconnect_response", 4)?;
            cx.raise(|c| Smb2TreeDisconnectResponse { c, hdr: h.record });
            Ok(read)
        }
        5 => create(cx, core, h, data),
        6 => close(cx, h, data),
        7 => all("SMB2_flush_response", 4),
        8 => read_file(cx, core, h, data),
        9 => write(cx, h, data),
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

/// Parses the negotiated dialect (§2.2.4), with contexts from version 3.1.1 on.
fn negotiate(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_negotiate_response", data);
    let mut f = c.upto("negotiate_context_offset", 64)?;
    f.skip(2);
    let security_mode = f.u16();
    let (dialect, contexts) = (f.u16(), f.u16());
    let server_guid = guid(&mut f);
    f.skip(16);
    let (now, started) = (f.u64(), f.u64());
    f.skip(2);
    let length = f.u16();
    let token = c.bytes("security_blob", length.into())?;
    let mut response = Negotiated2 {
        dialect_revision: dialect,
        security_mode,
        server_guid,
        system_time: time(now),
        server_start_time: time(started),
        negotiate_context_count: contexts,
        negotiate_context_values: Vec::new(),
    };
    let contexts = usize::from(contexts);
    if dialect == 0x0311 {
        c.pad_to("pad1", h.offset_after_header32(f.u32()))?;
        if contexts > 0 {
            c.inner("NegotiateContextList").has("vals", contexts - 1, 1)?;
        }
        for n in 1..=contexts {
            let mut padded = c.inner("Padded_SMB3_negotiate_context_value");
            let (context, value) = negotiate_context(&padded)?;
            response.negotiate_context_values.push(value);
            padded.advance_past(&context);
            if n < contexts {
                let end = padded.pos().next_multiple_of(8);
                padded = c.inner("Padded_SMB3_negotiate_context_value");
                padded.all(end as u32)?;
            }
            c.advance_past(&padded);
        }
    }
    cx.raise(|c| Smb2NegotiateResponse { c, hdr: h.record, response });
    core.login(cx, h.from, token);
    Ok(c.pos())
}

/// Parses one negotiate context (§2.2.4.1). Returns the cursor at its end, and the context.
fn negotiate_context<'a>(at: &Cursor<'a>) -> Read<(Cursor<'a>, NegotiateContext<'a>)> {
    let mut c = at.inner("SMB3_negotiate_context_value");
    let mut f = c.upto("reserved", 8)?;
    let (kind, length) = (f.u16(), f.u16());
    let mut value = NegotiateContext {
        context_type: kind,
        data_length: length,
        preauth_info: None,
        encryption_info: None,
        compression_info: None,
        netname: None,
    };
    let numbers = |list: &[u8]| list.as_chunks().0.iter().map(|n| u16::from_le_bytes(*n)).collect();
    let mut inner;
    match kind {
        1 => {
            inner = c.inner("SMB3_preauth_integrity_capabilities");
            let mut f = inner.upto("salt_length", 4)?;
            let (hash_alg_count, salt_length) = (f.u16(), f.u16());
            let hash_alg = numbers(inner.list("hash_alg", hash_alg_count.into(), 2)?);
            let salt = inner.bytes("salt", salt_length.into())?;
            let preauth = PreAuth { hash_alg_count, salt_length, hash_alg, salt };
            value.preauth_info = Some(preauth);
        }
        2 => {
            inner = c.inner("SMB3_encryption_capabilities");
            let mut f = inner.upto("cipher_count", 2)?;
            let cipher_count = f.u16();
            let ciphers = numbers(inner.list("ciphers", cipher_count.into(), 2)?);
            value.encryption_info = Some(Encryption { cipher_count, ciphers });
        }
        3 => {
            inner = c.inner("SMB3_compression_capabilities");
            let mut f = inner.upto("reserved", 8)?;
            let alg_count = f.u16();
            let algs = numbers(inner.list("algs", alg_count.into(), 2)?);
            value.compression_info = Some(Compression { alg_count, algs });
        }
        5 => {
            inner = c.inner("SMB3_netname_negotiate_context_id");
            value.netname = Some(inner.bytes("net_name", length.into())?);
        }
        _ => {
            c.bytes("unknown_context_data", length.into())?;
            return Ok((c, value));
        }
    }
    c.advance_past(&inner);
    Ok((c, value))
}

fn session_setup(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_session_setup_response", data);
    let mut f = c.upto("security_length", 8)?;
    f.skip(2);
    let flags = f.u16();
    c.pad_to("pad1", h.offset_after_header(f.u16()))?;
    let token = c.bytes("security_blob", f.u16().into())?;
    let [guest, anonymous, encrypt] = [1, 2, 4].map(|bit| flags & bit != 0);
    let response = SetupResponse2 { flags: SetupFlags { guest, anonymous, encrypt } };
    cx.raise(|c| Smb2SessionSetupResponse { c, hdr: h.record, response });
    core.login(cx, h.from, token);
    Ok(c.pos())
}

fn tree_connect(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_tree_connect_response", data);
    let mut f = c.all(16)?;
    f.skip(2);
    let share_type = f.u8();
    let share = Share::new(share_type);
    if share == Share::Pipe {
        core.set_pipe(cx, h.tree);
    }
    let response = TreeResponse { share_type: share_type.into() };
    cx.raise(|c| Smb2TreeConnectResponse { c, hdr: h.record, response });
    core.shares.connected(cx, share);
    Ok(c.pos())
}

fn create(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_create_response", data);
    let mut f = c.upto("context_len", 88)?;
    f.skip(4);
    let create_action = f.u32();
    let times = Times::read(&mut f);
    f.skip(8);
    let size = f.u64();
    let attrs = attributes(f.u32());
    f.skip(4);
    let file_id = guid(&mut f);
    contexts(h, &mut c, f.u32(), f.u32())?;
    let response = CreateResponse { file_id, size, times: times.into(), attrs, create_action };
    cx.raise(|c| Smb2CreateResponse { c, hdr: h.record, response });
    core.shares.created(cx, file_id.file(), size, times, h.status == 0);
    Ok(c.pos())
}

fn close(cx: &mut Context<'_>, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_close_response", data);
    let mut f = c.all(60)?;
    f.skip(8);
    let times = Times::read(&mut f).into();
    let (alloc_size, eof) = (f.u64(), f.u64());
    let response = CloseResponse { alloc_size, eof, times, attrs: attributes(f.u32()) };
    cx.raise(|c| Smb2CloseResponse { c, hdr: h.record, response });
    Ok(c.pos())
}

fn write(cx: &mut Context<'_>, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_write_response", data);
    let mut f = c.all(16)?;
    f.skip(4);
    let length = f.u32();
    cx.raise(|c| Smb2WriteResponse { c, hdr: h.record, length });
    Ok(c.pos())
}

fn read_file(cx: &mut Context<'_>, core: &mut Core, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_read_response", data);
    let mut f = c.upto("reserved2", 16)?;
    f.skip(2);
    let offset_after_header = f.u8();
    f.skip(1);
    c.pad_to("pad", h.offset_after_header(offset_after_header.into()))?;
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
    let buffers_at = [[f.u32(), f.u32()], [f.u32(), f.u32()]];
    let [_, data] = buffers(h, &mut c, buffers_at)?;
    let file = core.v2.controls.remove(&h.message).unwrap_or(0);
    if code == PIPE_TRANSCEIVE {
        core.pipe(cx, file, h.from, data);
    }
    Ok(c.pos())
}

/// Skips the queried information of a directory or file.
fn queried(record: &'static str, h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new(record, data);
    let mut f = c.upto("buffer_len", 8)?;
    f.skip(2);
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
    c.bytes("buffer", f.u32())?;
    Ok(c.pos())
}

/// Skips the notification of changed files.
fn changes(h: &Header, data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_change_notify_response", data);
    let mut f = c.upto("output_buffer_len", 8)?;
    f.skip(2);
    c.pad_to("pad", h.offset_after_header(f.u16()))?;
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
