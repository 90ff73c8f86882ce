//! Negotiation, logins and trees ([MS-CIFS] §2.2.4.52, §2.2.4.53, §2.2.4.55).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use super::Header;
use super::Place;
use super::follow;
use super::next;
use super::text;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;

pub(super) fn negotiated(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    c: &mut Cursor<'_>,
) -> Option<()> {
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

pub(super) fn setup_request(
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

pub(super) fn setup_response(
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

pub(super) fn tree_request(
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

pub(super) fn tree_response(
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
