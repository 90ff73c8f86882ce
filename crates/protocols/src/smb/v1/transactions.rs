//! Transactions: on named pipes, and on the file system ([MS-CIFS] §2.2.4.33, §2.2.4.46).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use gannet_base::Dir;

use super::Header;
use super::place;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;

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

pub(super) fn transaction_request(
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

pub(super) fn transaction_response(
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

/// Subcommands on the file system, which are not logged ([MS-CIFS] §2.2.6).
pub(super) fn transaction2(h: Header, c: &mut Cursor<'_>) -> Option<()> {
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

#[cfg(test)]
mod tests {
    use super::super::tests::Client;
    use super::*;
    use crate::dce_rpc::message::tests as rpc;

    #[test]
    fn a_pipe_is_called_by_transactions() {
        let mut c = Client::new();
        c.connect(b"IPC");
        let calls = [(rpc::bind(), rpc::bind_ack(b"samr")), (rpc::request(5), rpc::response())];
        for (request, response) in calls {
            // The name ends before byte 74 of the message, and the data follow.
            let mut ask = vec![16];
            ask.resize(19, 0);
            ask.extend_from_slice(&[0, 0, 0, 0, request.len() as u8, 0, 74, 0, 2, 0]);
            ask.extend_from_slice(&[0x26, 0, 9, 0, 0, 0]);
            ask.extend_from_slice(b"\\PIPE\\\0");
            ask.extend_from_slice(&request);
            c.ask(0x25, &ask);
            let mut answer = vec![10];
            answer.resize(7, 0);
            answer.extend_from_slice(&[0, 0, 0, 0, 0, 0, response.len() as u8, 0, 56, 0, 0, 0]);
            answer.extend_from_slice(&[0, 0, 0, 0]);
            answer.resize(24, 0);
            answer.extend_from_slice(&response);
            c.answer(0x25, &answer);
        }
        assert!(!c.broken());
        let rows = c.finish().rows("dce_rpc");
        assert_eq!((&*rows[0]["named_pipe"], &*rows[0]["endpoint"]), ("samr", "samr"));
    }

    #[test]
    fn names_of_transactions() {
        assert!(kind(false, b"\\PIPE\\srvsvc") == Kind::Pipe);
        assert!(kind(false, b"\\PIPE\\LANMAN") == Kind::LanMan);
        assert!(kind(true, b"\\\0P\0I\0P\0E\0\\\0") == Kind::Pipe);
        assert!(kind(false, b"\\MAILSLOT") == Kind::Unknown);
        assert!(kind(false, b"") == Kind::Unknown);
    }

    #[test]
    fn searches_cut_short_are_broken() {
        let mut c = Client::new();
        // FIND_FIRST2: its parameters begin at byte 66 of the message.
        let mut ask = vec![15];
        ask.resize(21, 0);
        ask.extend_from_slice(&[66, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        ask.resize(34 + 12, 0);
        ask.extend_from_slice(b"\\*\0");
        c.ask(0x32, &ask);
        assert!(!c.broken());
        ask.truncate(40);
        c.ask(0x32, &ask);
        assert!(c.broken());
    }
}
