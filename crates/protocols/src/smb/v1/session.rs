//! Negotiation, logins and trees ([MS-CIFS] §2.2.4.52, §2.2.4.53, §2.2.4.55).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use super::Header;
use super::Place;
use super::follow;
use super::next;
use super::text;
use super::words_and_next;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::support::Wrong;

pub(super) fn negotiate(data: &[u8]) -> Read<()> {
    let c = &mut Cursor::new("SMB1_negotiate_request", data);
    let mut f = c.upto("byte_count", 3)?;
    f.skip(1);
    let mut rest = c.bytes("dialects", f.u16().into())?;
    while !rest.is_empty() {
        let dialect = &mut Cursor::new("SMB_dialect", rest);
        dialect.upto("buffer_format", 1)?;
        dialect.string(false, false)?;
        rest = dialect.rest();
    }
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
    match outer.upto("dialect_index", 3)?.u8() {
        0x01 => drop(outer.inner("SMB1_negotiate_core_response").all(2)?),
        0x0d => {
            let c = &mut outer.inner("SMB1_negotiate_lanman_response");
            let mut f = c.upto("byte_count", 26)?;
            f.skip(20);
            c.bytes("encryption_key", f.u16().into())?;
            c.string(h.unicode, false)?;
        }
        0x11 => {
            let c = &mut outer.inner("SMB1_negotiate_ntlm_response");
            let mut f = c.upto("byte_count", 34)?;
            f.skip(17);
            let capabilities = f.u32();
            f.skip(10);
            let (key, bytes) = (f.u8(), u32::from(f.u16()));
            if capabilities & 0x8000_0000 == 0 {
                c.bytes("encryption_key", key.into())?;
                c.string(h.unicode, false)?;
            } else {
                c.upto("server_guid", 16)?;
                core.login(cx, c.bytes("security_blob", bytes.wrapping_sub(16))?);
            }
        }
        index => return Err(Wrong::Case { record, index: index.into() }),
    }
    Ok(())
}

pub(super) fn setup_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Read<()> {
    let record = "SMB1_session_setup_andx_request";
    let outer = &mut Cursor::new(record, data);
    let words = outer.upto("word_count", 1)?.u8();
    let (inner, n) = match words {
        0x0a => ("SMB1_session_setup_andx_request_lanman", 22),
        0x0c => ("SMB1_session_setup_andx_request_ntlm_extended_security", 26),
        0x0d => ("SMB1_session_setup_andx_request_ntlm_nonextended_security", 28),
        index => return Err(Wrong::Case { record, index: index.into() }),
    };
    let at = Place { offset: at.offset + 1, ..at };
    let c = &mut outer.inner(inner);
    let mut f = c.upto("byte_count", n)?;
    let next = next(&mut f);
    f.skip(10);
    let length = u32::from(f.u16());
    let mut token: &[u8] = &[];
    let strings = match words {
        0x0a => {
            c.bytes("account_password", length)?;
            4
        }
        0x0c => {
            token = c.bytes("security_blob", length)?;
            2
        }
        _ => {
            c.bytes("case_insensitive_password", length)?;
            c.bytes("case_sensitive_password", f.u16().into())?;
            4
        }
    };
    for _ in 0..strings {
        c.string(h.unicode, true)?;
    }
    follow(cx, core, h, at, c, next, true)?;
    core.login(cx, token);
    Ok(())
}

pub(super) fn setup_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Read<()> {
    let outer = &mut Cursor::new("SMB1_session_setup_andx_response", data);
    let words = outer.upto("word_count", 1)?.u8();
    let (inner, n) = match words {
        3 => ("SMB1_session_setup_andx_response_lanman", 8),
        4 => ("SMB1_session_setup_andx_response_ntlm", 10),
        _ => return outer.upto("error", 2).map(drop),
    };
    let at = Place { offset: at.offset + 1, ..at };
    let c = &mut outer.inner(inner);
    let mut f = c.upto("byte_count", n)?;
    let next = next(&mut f);
    f.skip(2);
    let length = f.u16();
    let mut token: &[u8] = &[];
    if words == 4 {
        token = c.bytes("security_blob", length.into())?;
        c.string(h.unicode, true)?;
        c.string(h.unicode, true)?;
    } else if length != 0 {
        for field in ["native_os", "native_lanman", "primary_domain"] {
            c.has(field, 1, 1)?;
            c.string(h.unicode, true)?;
        }
    }
    follow(cx, core, h, at, c, next, false)?;
    core.login(cx, token);
    Ok(())
}

pub(super) fn tree_request(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_tree_connect_andx_request", data);
    let mut f = c.upto("byte_count", 11)?;
    let (_, next) = words_and_next(&mut f);
    f.skip(2);
    c.list("password", f.u16().into(), 1)?;
    let path = c.string(h.unicode, false)?;
    let service = c.string(false, false)?;
    follow(cx, core, h, at, c, next, true)?;
    let path = text(cx, h.unicode, path);
    let service = text(cx, false, service);
    core.shares.connect_v1(cx.now, path, service);
    Ok(())
}

pub(super) fn tree_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: Place,
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
    follow(cx, core, h, at, c, next, false)?;
    let service = text(cx, false, service);
    if service.starts_with(b"IPC") {
        core.set_pipe(cx, h.tree.into());
    }
    let file_system = text(cx, h.unicode, file_system);
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
            c.ask(0x73, &request);
            if !reply {
                break;
            }
            let token = ntlm::challenge();
            let mut response = vec![4, 0xff, 0, 0, 0, 0, 0, token.len() as u8, 0, 0, 0];
            response.extend_from_slice(&token);
            response.extend_from_slice(b"\0\0");
            c.answer(0x73, &response);
        }
        let rows = c.finish().rows("ntlm");
        assert_eq!((&*rows[0]["username"], &*rows[0]["domainname"]), ("u", "D"));
        assert_eq!(rows[0]["server_nb_computer_name"], "SRV");
    }

    #[test]
    fn dialects_beyond_the_message_are_broken() {
        let mut c = Client::new();
        c.ask(0x72, b"\0\x0c\0\x02NT LM 0.12\0");
        assert!(!c.broken());
        c.ask(0x72, b"\0\x0d\0\x02NT LM 0.12\0");
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
