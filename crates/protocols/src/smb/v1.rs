//! Messages of version 1 ([MS-CIFS] §2.2.4, [MS-SMB] §2.2.4).
//!
//! Commands whose name ends in AndX carry another command behind them, which is found by its
//! offset: [`message`] reads the header and follows them. What commands say of [`files`], of the
//! [`session`] and in [`transactions`] is read there.
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs
//! [MS-SMB]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb

mod files;
mod session;
mod transactions;

use std::collections::HashMap;

use gannet_base::Dir;
use gannet_dict::KeyedHash;

use super::core::Core;
use super::cursor::Cursor;
use super::info::Share;
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
    reads: HashMap<u16, u64, KeyedHash>,
    /// Whether a transaction is one of a pipe.
    pipes: HashMap<u16, bool, KeyedHash>,
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
        (0x2e, true) => files::read_request(cx, core, h, at, c),
        (0x2e, false) => files::read_response(cx, core, h, at, c),
        (0x2f, true) => files::write_request(cx, core, h, at, c),
        (0x2f, false) => {
            c.u8()?;
            let next = next(c)?;
            c.take(10)?;
            follow(cx, core, h, at, c, next, false)
        }
        (0x32, true) => transactions::transaction2(h, c),
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
        (0x72, false) => session::negotiated(cx, core, h, c),
        (0x73, true) => session::setup_request(cx, core, h, at, data),
        (0x73, false) => session::setup_response(cx, core, h, at, data),
        (0x75, true) => session::tree_request(cx, core, h, at, c),
        (0x75, false) => session::tree_response(cx, core, h, at, c),
        (0xa0, _) => c.u8().map(|_| ()),
        (0xa2, true) => files::create_request(cx, core, h, at, c),
        (0xa2, false) => files::create_response(cx, core, h, at, c),
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
        (0x25, true) => transactions::transaction_request(cx, core, h, c),
        (0x25, false) => transactions::transaction_response(cx, core, h, c),
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

#[cfg(test)]
mod tests {
    use super::super::Analyzer;
    use super::*;
    use crate::Analyze;
    use crate::Tag;
    use crate::testing::Harness;
    use gannet_base::Proto;

    /// A connection, and what is said on it by message: tree 7, without Unicode.
    pub(super) struct Client {
        harness: Harness,
        analyzer: Analyzer,
    }

    impl Client {
        pub(super) fn new() -> Self {
            let mut harness = Harness::new(Proto::Tcp, 445);
            let analyzer = Analyzer::new(&mut harness.cx());
            Self { harness, analyzer }
        }

        fn say(&mut self, from: Dir, command: u8, body: &[u8]) {
            let mut m = b"\xffSMB".to_vec();
            m.push(command);
            m.resize(32, 0);
            m[24] = 7;
            m.extend_from_slice(body);
            let session = [&(m.len() as u32).to_be_bytes()[..], &m].concat();
            self.analyzer.stream(&mut self.harness.cx(), from, &session);
        }

        /// A request: what follows the header.
        pub(super) fn ask(&mut self, command: u8, body: &[u8]) {
            self.say(Dir::Orig, command, body);
        }

        /// A response.
        pub(super) fn answer(&mut self, command: u8, body: &[u8]) {
            self.say(Dir::Resp, command, body);
        }

        /// Connects a tree `\\srv\s` of a service.
        pub(super) fn connect(&mut self, service: &[u8]) {
            self.ask(0x75, b"\x04\xff\0\0\0\0\0\0\0\x0e\0\\\\srv\\s\0?????\0");
            let length = [service.len() as u8 + 1, 0];
            let response = [b"\x03\xff\0\0\0\0\0", &length[..], service, b"\0"];
            self.answer(0x75, &response.concat());
        }

        /// Whether a message was taken for broken.
        pub(super) fn broken(&self) -> bool {
            self.harness.violated(Tag::Smb)
        }

        pub(super) fn finish(mut self) -> Harness {
            self.analyzer.finish(&mut self.harness.cx());
            self.harness
        }
    }

    #[test]
    fn a_pipe_is_a_file() {
        let mut c = Client::new();
        c.connect(b"IPC");
        let mut request = b"\x18\xff\0\0\0".to_vec();
        request.resize(51, 0);
        request.extend_from_slice(b"\\samr\0");
        c.ask(0xa2, &request);
        let mut response = b"\x22\xff\0\0\0\0\x09\0".to_vec();
        response.resize(71, 0);
        c.answer(0xa2, &response);
        assert!(!c.broken());
        let h = c.finish();
        assert!(h.confirmed(Tag::Smb));
        let rows = h.rows("smb_files");
        assert_eq!((&*rows[0]["name"], &*rows[0]["times.modified"]), ("\\\\samr", "-"));
    }

    #[test]
    fn commands_behind_commands() {
        // A tree connect behind a logoff, at byte 39.
        let mut c = Client::new();
        let tree = b"\x04\xff\0\0\0\0\0\0\0\x0e\0\\\\srv\\s\0?????\0";
        c.ask(0x74, &[&b"\x02\x75\0\x27\0\0\0"[..], tree].concat());
        c.answer(0x75, b"\x03\xff\0\0\0\0\0\x03\0A:\0");
        assert_eq!(c.finish().rows("smb_mapping")[0]["share_type"], "DISK");
        // Forty logoffs, and one whose successor lies before it.
        let mut c = Client::new();
        let mut all = Vec::new();
        for n in 1..40u16 {
            let [low, high] = (32 + 7 * n).to_le_bytes();
            all.extend_from_slice(&[2, 0x74, 0, low, high, 0, 0]);
        }
        c.ask(0x74, &all);
        c.ask(0x74, b"\x02\x74\0\0\0\0\0");
        let rows = c.finish().rows("weird");
        let names: Vec<_> = rows.iter().map(|r| &*r["name"]).collect();
        assert_eq!(names, ["smb_andx_depth_exceeded", "smb_andx_offset_not_advancing"]);
    }

    #[test]
    fn headers_cut_short_are_broken() {
        let mut c = Client::new();
        let message = b"\0\0\0\x1f\xffSMB\x2b";
        let message = [&message[..], &[0; 26]].concat();
        c.analyzer.stream(&mut c.harness.cx(), Dir::Orig, &message);
        assert!(c.broken());
    }
}
