//! Negotiation, logins and trees ([MS-CIFS] §2.2.4.52, §2.2.4.53, §2.2.4.55).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use gannet_base::Time;

use super::header::CommandPosition;
use super::header::Commands;
use super::header::Header;
use super::header::follow;
use super::header::next;
use super::header::text;
use super::header::words_and_next;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Fields;
use crate::smb::cursor::Read;
use crate::smb::events::Capabilities1;
use crate::smb::events::Negotiated1;
use crate::smb::events::NegotiatedCore;
use crate::smb::events::NegotiatedLanman;
use crate::smb::events::NegotiatedNtlm;
use crate::smb::events::RawMode;
use crate::smb::events::Security1;
use crate::smb::events::SetupCapabilities;
use crate::smb::events::SetupRequest1;
use crate::smb::events::SetupResponse1;
use crate::smb::events::Smb1NegotiateRequest;
use crate::smb::events::Smb1NegotiateResponse;
use crate::smb::events::Smb1SessionSetupAndxRequest;
use crate::smb::events::Smb1SessionSetupAndxResponse;
use crate::smb::events::Smb1TreeConnectAndxRequest;
use crate::smb::events::Smb1TreeConnectAndxResponse;
use crate::support::RecordFault;
use crate::support::filetime::time;

pub(super) fn negotiate(cx: &mut Context<'_>, h: Header, data: &[u8]) -> Read<()> {
    let c = &mut Cursor::new("SMB1_negotiate_request", data);
    let mut f = c.upto("byte_count", 3)?;
    f.skip(1);
    let mut rest = c.bytes("dialects", f.u16().into())?;
    let mut dialects = Vec::new();
    while !rest.is_empty() {
        let dialect = &mut Cursor::new("SMB_dialect", rest);
        dialect.upto("buffer_format", 1)?;
        let name = dialect.string(false, false)?;
        if cx.wants::<Smb1NegotiateRequest<'_>>() {
            dialects.push(name.strip_suffix(b"\0").unwrap_or(name));
        }
        rest = dialect.rest();
    }
    cx.raise(|c| Smb1NegotiateRequest { c, hdr: h.record, dialects });
    Ok(())
}

pub(super) fn negotiated(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    data: &[u8],
) -> Read<()> {
    let record = "SMB1_negotiate_response";
    let outer = &mut Cursor::new(record, data);
    let mut f = outer.upto("dialect_index", 3)?;
    let (words, dialect_index) = (f.u8(), f.u16());
    let word_count = u64::from(words);
    let wants = cx.wants::<Smb1NegotiateResponse<'_>>();
    let mut response = Negotiated1 { core: None, lanman: None, ntlm: None };
    let name: Vec<u8>;
    match words {
        0x01 => {
            outer.inner("SMB1_negotiate_core_response").all(2)?;
            response.core = Some(NegotiatedCore { dialect_index });
        }
        0x0d => {
            let c = &mut outer.inner("SMB1_negotiate_lanman_response");
            let mut f = c.upto("byte_count", 26)?;
            let security_mode = Security1 {
                signatures_enabled: None,
                signatures_required: None,
                ..security(f.u16())
            };
            let (max_buffer_size, max_mpx_count, max_number_vcs) = (f.u16(), f.u16(), f.u16());
            let (raw, session_key) = (f.u16(), f.u32());
            let server_time = lanman_time(&mut f);
            let encryption_key = c.bytes("encryption_key", f.u16().into())?;
            let domain = c.string(h.unicode, false)?;
            name = if wants { text(cx, h.unicode, domain) } else { Vec::new() };
            response.lanman = Some(NegotiatedLanman {
                word_count,
                dialect_index,
                security_mode,
                max_buffer_size,
                max_mpx_count,
                max_number_vcs,
                raw_mode: RawMode { read_raw: raw & 1 != 0, write_raw: raw & 2 != 0 },
                session_key,
                server_time,
                encryption_key,
                primary_domain: &name,
            });
        }
        0x11 => {
            let c = &mut outer.inner("SMB1_negotiate_ntlm_response");
            let mut f = c.upto("byte_count", 34)?;
            let security_mode = security(f.u8().into());
            let (max_mpx_count, max_number_vcs) = (f.u16(), f.u16());
            let (max_buffer_size, max_raw_size, session_key) = (f.u32(), f.u32(), f.u32());
            let flags = f.u32();
            let server_time = time(f.u64());
            f.skip(2);
            let (key, bytes) = (f.u8(), u32::from(f.u16()));
            let (mut encryption_key, mut domain_name, mut guid) = (None, None, None);
            if flags & 0x8000_0000 == 0 {
                encryption_key = Some(c.bytes("encryption_key", key.into())?);
                let domain = c.string(h.unicode, false)?;
                name = if wants { text(cx, h.unicode, domain) } else { Vec::new() };
                domain_name = Some(&name[..]);
            } else {
                guid = Some(c.bytes("server_guid", 16)?);
                core.login(cx, h.from, c.bytes("security_blob", bytes.wrapping_sub(16))?);
            }
            response.ntlm = Some(NegotiatedNtlm {
                word_count,
                dialect_index,
                security_mode,
                max_buffer_size,
                max_mpx_count,
                max_number_vcs,
                max_raw_size,
                session_key,
                capabilities: capabilities(flags),
                server_time,
                encryption_key,
                domain_name,
                guid,
                security_blob: None,
            });
        }
        index => return Err(RecordFault::Case { record, index: index.into() }),
    }
    cx.raise(|c| Smb1NegotiateResponse { c, hdr: h.record, response });
    Ok(())
}

/// Decodes the security mode ([MS-CIFS] §2.2.4.52.2).
///
/// [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs
fn security(flags: u16) -> Security1 {
    let has = |bit: u16| flags & bit != 0;
    Security1 {
        user_level: has(1),
        challenge_response: has(2),
        signatures_enabled: Some(has(4)),
        signatures_required: Some(has(8)),
    }
}

/// Decodes a LAN Manager's clock: time in two seconds, minutes and hours; date in days, months and
/// years since 1980; and time zone, which is not applied, as in Zeek.
fn lanman_time(f: &mut Fields<'_>) -> Time {
    let (time, date) = (i64::from(f.u16()), i64::from(f.u16()));
    f.skip(2);
    let (year, month, day) = (1980 + (date >> 9), (date >> 5 & 0xf) - 1, date & 0x1f);
    // Days from the civil calendar, with years that begin in March.
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12) + 1);
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let clock = (time >> 11) * 3600 + (time >> 5 & 0x3f) * 60 + (time & 0x1f) * 2;
    Time::from_secs(days * 86_400 + clock)
}

fn capabilities(flags: u32) -> Capabilities1 {
    let has = |bit: u32| flags & bit != 0;
    Capabilities1 {
        raw_mode: has(0x1),
        mpx_mode: has(0x2),
        unicode: has(0x4),
        large_files: has(0x8),
        nt_smbs: has(0x10),
        rpc_remote_apis: has(0x20),
        status32: has(0x40),
        level_2_oplocks: has(0x80),
        lock_and_read: has(0x100),
        nt_find: has(0x200),
        dfs: has(0x1000),
        infolevel_passthru: has(0x2000),
        large_readx: has(0x4000),
        large_writex: has(0x8000),
        unix: has(0x0080_0000),
        bulk_transfer: has(0x2000_0000),
        compressed_data: has(0x4000_0000),
        extended_security: has(0x8000_0000),
    }
}

pub(super) fn setup_request<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let record = "SMB1_session_setup_andx_request";
    let outer = &mut Cursor::new(record, data);
    let words = outer.upto("word_count", 1)?.u8();
    let (inner, n) = match words {
        0x0a => ("SMB1_session_setup_andx_request_lanman", 22),
        0x0c => ("SMB1_session_setup_andx_request_ntlm_extended_security", 26),
        0x0d => ("SMB1_session_setup_andx_request_ntlm_nonextended_security", 28),
        index => return Err(RecordFault::Case { record, index: index.into() }),
    };
    let at = CommandPosition { offset: at.offset + 1, ..at };
    let c = &mut outer.inner(inner);
    let mut f = c.upto("byte_count", n)?;
    let next = next(&mut f);
    let (max_buffer_size, max_mpx_count, vc_number) = (f.u16(), f.u16(), f.u16());
    let session_key = f.u32();
    let length = u32::from(f.u16());
    let mut token = None;
    let (mut account_password, mut passwords, mut flags) = (None, (None, None), None);
    let strings = match words {
        0x0a => {
            account_password = Some(c.bytes("account_password", length)?);
            4
        }
        0x0c => {
            token = Some(c.bytes("security_blob", length)?);
            f.skip(4);
            flags = Some(f.u32());
            2
        }
        _ => {
            let insensitive = c.bytes("case_insensitive_password", length)?;
            let sensitive = c.bytes("case_sensitive_password", f.u16().into())?;
            passwords = (Some(insensitive), Some(sensitive));
            f.skip(4);
            flags = Some(f.u32());
            4
        }
    };
    let wants = cx.wants::<Smb1SessionSetupAndxRequest<'_>>();
    let mut names = Vec::new();
    for _ in 0..strings {
        let name = c.string(h.unicode, true)?;
        names.push(if wants { text(cx, h.unicode, name) } else { Vec::new() });
    }
    follow::<C>(cx, core, h, at, c, next, true)?;
    if let Some(token) = token {
        core.login(cx, h.from, token);
    }
    if wants && let [account @ .., native_os, native_lanman] = &names[..] {
        let request = SetupRequest1 {
            word_count: words.into(),
            max_buffer_size,
            max_mpx_count,
            vc_number,
            session_key,
            native_os,
            native_lanman,
            account_name: account.first().map(|n| &n[..]),
            account_password,
            primary_domain: account.get(1).map(|n| &n[..]),
            case_insensitive_password: passwords.0,
            case_sensitive_password: passwords.1,
            security_blob: None,
            capabilities: flags.map(setup_capabilities),
        };
        cx.raise(|c| Smb1SessionSetupAndxRequest { c, hdr: h.record, request });
    }
    Ok(())
}

fn setup_capabilities(flags: u32) -> SetupCapabilities {
    let has = |bit: u32| flags & bit != 0;
    SetupCapabilities {
        unicode: has(0x4),
        large_files: has(0x8),
        nt_smbs: has(0x10),
        status32: has(0x40),
        level_2_oplocks: has(0x80),
        nt_find: has(0x200),
    }
}

pub(super) fn setup_response<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let outer = &mut Cursor::new("SMB1_session_setup_andx_response", data);
    let words = outer.upto("word_count", 1)?.u8();
    let (inner, n) = match words {
        3 => ("SMB1_session_setup_andx_response_lanman", 8),
        4 => ("SMB1_session_setup_andx_response_ntlm", 10),
        _ => {
            outer.upto("error", 2)?;
            let response = SetupResponse1 {
                word_count: words.into(),
                is_guest: None,
                native_os: None,
                native_lanman: None,
                primary_domain: None,
                security_blob: None,
            };
            cx.raise(|c| Smb1SessionSetupAndxResponse { c, hdr: h.record, response });
            return Ok(());
        }
    };
    let at = CommandPosition { offset: at.offset + 1, ..at };
    let c = &mut outer.inner(inner);
    let mut f = c.upto("byte_count", n)?;
    let next = next(&mut f);
    let is_guest = f.u16() & 1 != 0;
    let length = f.u16();
    let mut token = None;
    let wants = cx.wants::<Smb1SessionSetupAndxResponse<'_>>();
    let mut names = [const { Vec::new() }; 3];
    if words == 4 {
        token = Some(c.bytes("security_blob", length.into())?);
        for name in &mut names[..2] {
            let string = c.string(h.unicode, true)?;
            if wants {
                *name = text(cx, h.unicode, string);
            }
        }
    } else if length != 0 {
        let fields = ["native_os", "native_lanman", "primary_domain"];
        for (field, name) in fields.into_iter().zip(&mut names) {
            c.has(field, 1, 1)?;
            let string = c.string(h.unicode, true)?;
            if wants {
                *name = text(cx, h.unicode, string);
            }
        }
    }
    follow::<C>(cx, core, h, at, c, next, false)?;
    if let Some(token) = token {
        core.login(cx, h.from, token);
    }
    let response = SetupResponse1 {
        word_count: words.into(),
        is_guest: Some(is_guest),
        native_os: Some(&names[0]),
        native_lanman: Some(&names[1]),
        primary_domain: (words == 3).then_some(&names[2]),
        security_blob: None,
    };
    cx.raise(|c| Smb1SessionSetupAndxResponse { c, hdr: h.record, response });
    Ok(())
}

pub(super) fn tree_request<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_tree_connect_andx_request", data);
    let mut f = c.upto("byte_count", 11)?;
    let (_, next) = words_and_next(&mut f);
    f.skip(2);
    c.list("password", f.u16().into(), 1)?;
    let path = c.string(h.unicode, false)?;
    let service = c.string(false, false)?;
    follow::<C>(cx, core, h, at, c, next, true)?;
    let path = text(cx, h.unicode, path);
    let service = text(cx, false, service);
    let (hdr, names) = (h.record, (&path[..], &service[..]));
    cx.raise(|c| Smb1TreeConnectAndxRequest { c, hdr, path: names.0, service: names.1 });
    core.shares.connect_v1(cx.now, path, service);
    Ok(())
}

pub(super) fn tree_response<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_tree_connect_andx_response", data);
    let mut f = c.upto("andx", 5)?;
    let (words, next) = words_and_next(&mut f);
    if words >= 3 {
        c.list("optional_support", 1, 2)?;
        c.pad("pad", 2 * usize::from(words - 3))?;
    }
    let bytes = usize::from(c.upto("byte_count", 2)?.u16());
    let service = c.string(false, false)?;
    let mut file_system: &[u8] = &[];
    if bytes > service.len() {
        c.has("native_file_system", 1, 1)?;
        file_system = c.string(h.unicode, false)?;
    }
    follow::<C>(cx, core, h, at, c, next, false)?;
    let service = text(cx, false, service);
    if service.starts_with(b"IPC") {
        core.set_pipe(cx, h.tree.into());
    }
    let file_system = text(cx, h.unicode, file_system);
    cx.raise(|c| Smb1TreeConnectAndxResponse {
        c,
        hdr: h.record,
        service: &service,
        native_file_system: &file_system,
    });
    core.shares.connected_v1(cx, h.tree.into(), service, file_system);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::Client;
    use crate::ntlm::message::tests as ntlm;

    #[test]
    fn a_login_by_ntlm() {
        let mut c = Client::new();
        for (token, reply) in [(ntlm::negotiate(), true), (ntlm::authenticate(), false)] {
            let mut request = vec![12, 0xff, 0, 0, 0];
            request.resize(15, 0);
            request.extend_from_slice(&[token.len() as u8, 0]);
            request.resize(27, 0);
            request.extend_from_slice(&token);
            request.extend_from_slice(b"\0\0");
            c.request(0x73, &request);
            if !reply {
                break;
            }
            let token = ntlm::challenge();
            let mut response = vec![4, 0xff, 0, 0, 0, 0, 0, token.len() as u8, 0, 0, 0];
            response.extend_from_slice(&token);
            response.extend_from_slice(b"\0\0");
            c.response(0x73, &response);
        }
        let rows = c.finish().rows("ntlm");
        assert_eq!((&*rows[0]["username"], &*rows[0]["domainname"]), ("u", "D"));
        assert_eq!(rows[0]["server_nb_computer_name"], "SRV");
    }

    #[test]
    fn clocks_of_lan_managers_begin_in_1980() {
        // 2001-02-03 04:05:06.
        let (time, date) = (4u16 << 11 | 5 << 5 | 3, 21u16 << 9 | 2 << 5 | 3);
        let bytes = [time.to_le_bytes(), date.to_le_bytes(), [0, 0]].concat();
        let mut f = super::Cursor::new("R", &bytes).all(6).unwrap();
        assert_eq!(super::lanman_time(&mut f), super::Time::from_secs(981_173_106));
    }

    #[test]
    fn dialects_beyond_the_message_are_broken() {
        let mut c = Client::new();
        c.request(0x72, b"\0\x0c\0\x02NT LM 0.12\0");
        assert!(!c.broken());
        c.request(0x72, b"\0\x0d\0\x02NT LM 0.12\0");
        assert!(c.broken());
    }

    #[test]
    fn trees_of_disks_and_of_pipes() {
        for (service, kind) in [(&b"A:"[..], "DISK"), (b"IPC", "PIPE")] {
            let mut c = Client::new();
            c.connect(service);
            let rows = c.finish().rows("smb_mapping");
            assert_eq!((&*rows[0]["path"], &*rows[0]["share_type"]), ("\\\\\\\\srv\\\\s", kind));
        }
    }
}
