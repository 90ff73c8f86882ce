//! Messages of version 1 ([MS-CIFS] §2.2.4, [MS-SMB] §2.2.4).
//!
//! Commands whose name ends in AndX are followed by another command, at a given offset: [`message`]
//! parses the header and follows the chain. The commands are parsed in [`files`], [`session`] and
//! [`transactions`].
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs
//! [MS-SMB]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb

mod files;
mod header;
mod session;
mod transactions;
mod waiting;

pub(super) use self::waiting::PendingRequests;

use gannet_base::Dir;

use self::header::CommandPosition;
use self::header::Commands;
use self::header::HEADER_LENGTH;
use self::header::Header;
use self::header::follow;
use self::header::text;
use self::header::words_and_next;
use super::core::Core;
use super::cursor::Cursor;
use super::cursor::Read;
use super::events::Header1;
use super::events::Smb1CheckDirectoryRequest;
use super::events::Smb1CheckDirectoryResponse;
use super::events::Smb1CloseRequest;
use super::events::Smb1EchoRequest;
use super::events::Smb1EchoResponse;
use super::events::Smb1EmptyResponse;
use super::events::Smb1Error;
use super::events::Smb1LogoffAndx;
use super::events::Smb1Message;
use super::events::Smb1NtCancelRequest;
use super::events::Smb1QueryInformationRequest;
use super::events::Smb1TreeDisconnect;
use super::info::Share;
use crate::Context;
use crate::Tag;
use crate::support::RecordFault;

/// Length of the header after the protocol identifier, in bytes.
const HEADER_REST: u32 = 28;
/// Length of a message that contains only a status, in bytes.
const EMPTY: usize = 35;

/// Parses a message after its protocol identifier; `length` is that of the session message.
pub(super) fn message(
    cx: &mut Context<'_>,
    core: &mut Core,
    from: Dir,
    data: &[u8],
    length: usize,
) -> Read<()> {
    let mut c = Cursor::new("SMB_PDU", data);
    let mut f = c.upto("header", HEADER_REST)?;
    let command = f.u8();
    let (status, flags, flags2, pid_high) = (f.u32(), f.u8(), f.u16(), f.u16());
    let unicode = flags2 & 0x8000 != 0;
    f.skip(10);
    let (tree, pid_low, uid, message) = (f.u16(), f.u16(), f.u16(), f.u16());
    let record = Header1 {
        command: command.into(),
        status,
        flags: flags.into(),
        flags2,
        tid: tree,
        pid: u32::from(pid_high) << 16 | u32::from(pid_low),
        uid,
        mid: message,
    };
    cx.raise(|c| Smb1Message { c, hdr: record, is_orig: from.is_orig() });
    let is_pipe = core.is_pipe(tree.into());
    core.shares.v1(cx.now, tree.into(), message.into(), from);
    if length == EMPTY {
        c.inner("SMB_No_Message").upto("x", 3)?;
        if status == 0 {
            cx.raise(|c| Smb1EmptyResponse { c, hdr: record });
        } else {
            cx.raise(|c| Smb1Error { c, hdr: record, is_orig: from.is_orig() });
        }
        return Ok(());
    }
    let h = Header { from, unicode, tree, message, is_pipe, record };
    let is_request = from.is_orig();
    let position = CommandPosition { command, is_request, offset: HEADER_LENGTH, depth: 0 };
    All::read(cx, core, h, position, c.rest())
}

/// Parser of all commands.
struct All;

impl Commands for All {
    fn read(
        cx: &mut Context<'_>,
        core: &mut Core,
        h: Header,
        at: CommandPosition,
        data: &[u8],
    ) -> Read<()> {
        let read = |record| Cursor::new(record, data);
        match (at.command, at.is_request) {
            (0x2e, true) => files::read_request::<Self>(cx, core, h, at, data),
            (0x2e, false) => files::read_response::<Self>(cx, core, h, at, data),
            (0x2f, true) => files::write_request::<Self>(cx, core, h, at, data),
            (0x2f, false) => files::write_response::<Self>(cx, core, h, at, data),
            (0x32, true) => transactions::transaction2(cx, h, data),
            (0x32, false) => {
                let c = &mut read("SMB1_transaction2_response");
                let mut f = c.upto("byte_count", 23)?;
                f.skip(21);
                c.bytes("stuff", f.u16().into()).map(drop)
            }
            (0x72, true) => session::negotiate(cx, h, data),
            (0x72, false) => session::negotiated(cx, core, h, data),
            (0x73, true) => session::setup_request::<Self>(cx, core, h, at, data),
            (0x73, false) => session::setup_response::<Self>(cx, core, h, at, data),
            (0x75, true) => session::tree_request::<Self>(cx, core, h, at, data),
            (0x75, false) => session::tree_response::<Self>(cx, core, h, at, data),
            (0xa0, true) => read("SMB1_nt_transact_request").all(1).map(drop),
            (0xa0, false) => read("SMB1_nt_transact_response").all(1).map(drop),
            (0xa2, true) => files::create_request::<Self>(cx, core, h, at, data),
            (0xa2, false) => files::create_response::<Self>(cx, core, h, at, data),
            (0x04, true) => {
                let mut f = read("SMB1_close_request").all(9)?;
                f.skip(1);
                let file_id = f.u16();
                cx.raise(|c| Smb1CloseRequest { c, hdr: h.record, file_id });
                cx.raise_file_handle(Tag::Smb, h.from);
                core.shares.close(cx, file_id.into(), Some(Share::Disk));
                Ok(())
            }
            (0x04, false) => {
                read("SMB_empty_response").all(3)?;
                cx.raise(|c| Smb1EmptyResponse { c, hdr: h.record });
                Ok(())
            }
            (0x08, true) => {
                let name = named(h, "SMB1_query_information_request", data)?;
                if cx.wants::<Smb1QueryInformationRequest>() {
                    let filename = text(cx, h.unicode, name).into();
                    cx.raise(|c| Smb1QueryInformationRequest { c, hdr: h.record, filename });
                }
                Ok(())
            }
            (0x08, false) => read("SMB1_query_information_response").all(23).map(drop),
            (0x10, true) => {
                let name = named(h, "SMB1_check_directory_request", data)?;
                if cx.wants::<Smb1CheckDirectoryRequest>() {
                    let directory_name = text(cx, h.unicode, name).into();
                    cx.raise(|c| Smb1CheckDirectoryRequest { c, hdr: h.record, directory_name });
                }
                Ok(())
            }
            (0x10, false) => {
                read("SMB1_check_directory_response").all(3)?;
                cx.raise(|c| Smb1CheckDirectoryResponse { c, hdr: h.record });
                Ok(())
            }
            // Zeek's parser cannot determine the size of an offset: lock requests count as
            // malformed.
            (0x24, true) => {
                let record = "SMB1_locking_andx_request";
                read(record).upto("bytecount", 19)?;
                Err(RecordFault::Case { record, index: 0 })
            }
            (0x25, true) => transactions::transaction_request(cx, core, h, data),
            (0x25, false) => transactions::transaction_response(cx, core, h, data),
            (0x26, true) => transactions::secondary_request(cx, h, data),
            (0x33, true) => transactions::secondary_request2(cx, h, data),
            (0x2b, true) => {
                let (echo_count, data) = echo("SMB1_echo_request", data)?;
                cx.raise(|c| Smb1EchoRequest { c, echo_count, data });
                Ok(())
            }
            (0x2b, false) => {
                let (seq_num, data) = echo("SMB1_echo_response", data)?;
                cx.raise(|c| Smb1EchoResponse { c, seq_num, data });
                Ok(())
            }
            (0x71, _) => {
                read("SMB1_tree_disconnect").all(3)?;
                cx.raise(|c| Smb1TreeDisconnect { c, hdr: h.record, is_orig: at.is_request });
                Ok(())
            }
            (0x74, _) => {
                let c = &mut read("SMB1_logoff_andx");
                let mut f = c.upto("byte_count", 7)?;
                let (_, next) = words_and_next(&mut f);
                follow::<Self>(cx, core, h, at, c, next, true)?;
                cx.raise(|c| Smb1LogoffAndx { c, is_orig: at.is_request });
                Ok(())
            }
            (0xa4, true) => {
                read("SMB1_nt_cancel_request").all(3)?;
                cx.raise(|c| Smb1NtCancelRequest { c, hdr: h.record });
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The name in a command that has one; it is not logged.
fn named<'a>(h: Header, record: &'static str, data: &'a [u8]) -> Read<&'a [u8]> {
    let c = &mut Cursor::new(record, data);
    c.upto("buffer_format", 4)?;
    c.string(h.unicode, false)
}

/// Parses a number and data.
fn echo<'a>(record: &'static str, data: &'a [u8]) -> Read<(u16, &'a [u8])> {
    let c = &mut Cursor::new(record, data);
    let mut f = c.upto("byte_count", 5)?;
    f.skip(1);
    let number = f.u16();
    Ok((number, c.bytes("data", f.u16().into())?))
}

#[cfg(test)]
mod tests {
    use super::super::Analyzer;
    use super::*;
    use crate::Analyze;
    use crate::support::BINPAC;
    use crate::testing::Harness;
    use gannet_base::Proto;

    /// A connection that is fed with messages: tree 7, without Unicode.
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

        fn send(&mut self, from: Dir, command: u8, body: &[u8]) {
            let mut m = b"\xffSMB".to_vec();
            m.push(command);
            m.resize(32, 0);
            m[24] = 7;
            m.extend_from_slice(body);
            let session = [&(m.len() as u32).to_be_bytes()[..], &m].concat();
            self.analyzer.stream(&mut self.harness.cx(), from, &session);
        }

        /// Sends a request with `body` after the header.
        pub(super) fn request(&mut self, command: u8, body: &[u8]) {
            self.send(Dir::Orig, command, body);
        }

        /// Sends a response.
        pub(super) fn response(&mut self, command: u8, body: &[u8]) {
            self.send(Dir::Resp, command, body);
        }

        /// Connects a tree `\\srv\s` of a service.
        pub(super) fn connect(&mut self, service: &[u8]) {
            self.request(0x75, b"\x04\xff\0\0\0\0\0\0\0\x0e\0\\\\srv\\s\0?????\0");
            let length = [service.len() as u8 + 1, 0];
            let response = [b"\x03\xff\0\0\0\0\0", &length[..], service, b"\0"];
            self.response(0x75, &response.concat());
        }

        /// Whether a message was reported as malformed.
        pub(super) fn broken(&self) -> bool {
            self.harness.violated(Tag::Smb)
        }

        /// The failure reasons, without their common prefix.
        pub(super) fn failures(&self) -> Vec<String> {
            let all = self.harness.violations().into_iter();
            all.map(|(_, why)| why[BINPAC.len()..].to_owned()).collect()
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
        c.request(0xa2, &request);
        let mut response = b"\x22\xff\0\0\0\0\x09\0".to_vec();
        response.resize(71, 0);
        c.response(0xa2, &response);
        assert!(!c.broken());
        let h = c.finish();
        assert!(h.confirmed(Tag::Smb));
        let rows = h.rows("smb_files");
        assert_eq!((&*rows[0]["name"], &*rows[0]["times.modified"]), ("\\\\samr", "-"));
    }

    #[test]
    fn commands_behind_commands() {
        // A tree connect after a logoff, at byte 39.
        let mut c = Client::new();
        let tree = b"\x04\xff\0\0\0\0\0\0\0\x0e\0\\\\srv\\s\0?????\0";
        c.request(0x74, &[&b"\x02\x75\0\x27\0\0\0"[..], tree].concat());
        c.response(0x75, b"\x03\xff\0\0\0\0\0\x03\0A:\0");
        assert_eq!(c.finish().rows("smb_mapping")[0]["share_type"], "DISK");
        // Forty logoffs, and one whose next command is located before it.
        let mut c = Client::new();
        let mut all = Vec::new();
        for n in 1..40u16 {
            let [low, high] = (32 + 7 * n).to_le_bytes();
            all.extend_from_slice(&[2, 0x74, 0, low, high, 0, 0]);
        }
        c.request(0x74, &all);
        c.request(0x74, b"\x02\x74\0\0\0\0\0");
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
        assert_eq!(c.failures(), ["out_of_bound: SMB_PDU:header: 28 > 27"]);
        let mut c = Client::new();
        let message = b"\0\0\0\x24\xffSMB\x01";
        let message = [&message[..], &[0; 31], b"\0\0\0\x02ab"].concat();
        c.analyzer.stream(&mut c.harness.cx(), Dir::Orig, &message);
        assert_eq!(c.failures(), ["out_of_bound: SMB_Protocol_Identifier:protocol: 4 > 2"]);
    }

    /// Bytes, padded with zeros to a length.
    pub(super) fn padded(bytes: &[u8], len: usize) -> Vec<u8> {
        let mut all = bytes.to_vec();
        all.resize(len, 0);
        all
    }

    /// The error for a request with `body` after its header.
    fn request_error(command: u8, body: &[u8]) -> String {
        let mut c = Client::new();
        c.request(command, body);
        c.failures().concat()
    }

    /// The error for a response with `body` after its header.
    fn response_error(command: u8, body: &[u8]) -> String {
        let mut c = Client::new();
        c.response(command, body);
        c.failures().concat()
    }

    #[test]
    fn requests_that_are_broken() {
        let is = |command, body: &[u8], end: &str| {
            assert_eq!(request_error(command, body), format!("out_of_bound: {end}"));
        };
        is(0x72, b"\0\x0d\0\x02NT LM 0.12\0", "SMB1_negotiate_request:dialects: 16 > 15");
        let login = "SMB1_session_setup_andx_request_ntlm_extended_security";
        is(0x73, &padded(&[12], 26), &format!("{login}:byte_count: 26 > 25"));
        let mut body = padded(&[12, 0xff], 27);
        body[15] = 5;
        is(0x73, &body, &format!("{login}:security_blob: 31 > 26"));
        let tree = [4, 0xff, 0, 0, 0, 0, 0, 9, 0, 0, 0];
        is(0x75, &tree, "SMB1_tree_connect_andx_request:password: 9 > 0");
        is(0x2f, &padded(&[14, 0xff], 25), "SMB1_write_andx_request:offset_high_tmp: 29 > 25");
        is(0x2e, &padded(&[10, 0xff], 22), "SMB1_read_andx_request:byte_count: 23 > 22");
        is(0xa2, &padded(&[24, 0xff], 50), "SMB1_nt_create_andx_request:byte_count: 51 > 50");
        is(0x04, &[3, 9, 0, 0], "SMB1_close_request: 9 > 4");
        is(0x24, &[0; 18], "SMB1_locking_andx_request:bytecount: 19 > 18");
        is(0x71, &[0, 0], "SMB1_tree_disconnect: 3 > 2");
        is(0x2b, &[1, 1, 0, 4, 0], "SMB1_echo_request:data: 9 > 5");
        // The next command begins before the end of this one.
        let logoff = [2, 0xff, 0, 33, 0, 0, 0];
        is(0x74, &logoff, "SMB1_logoff_andx:extra_byte_parameters: 1 > 7");
        assert_eq!(
            request_error(0x73, &[11, 0, 0, 0]),
            "invalid index for case: SMB1_session_setup_andx_request: 11"
        );
        assert_eq!(
            request_error(0x24, &[0; 19]),
            "invalid index for case: SMB1_locking_andx_request: 0"
        );
    }

    #[test]
    fn responses_that_are_broken() {
        let is = |command, body: &[u8], end: &str| {
            assert_eq!(response_error(command, body), format!("out_of_bound: {end}"));
        };
        assert_eq!(
            response_error(0x72, &[2, 0, 0, 0]),
            "invalid index for case: SMB1_negotiate_response: 2"
        );
        let mut body = padded(&[17], 53);
        body[23] = 0x80;
        body[35] = 4;
        is(0x72, &body, "SMB1_negotiate_ntlm_response:security_blob: 38 > 50");
        // Texts whose lengths are announced.
        let login = [3, 0xff, 0, 0, 0, 0, 0, 5, 0];
        is(0x73, &login, "SMB1_session_setup_andx_response_lanman:native_os: 1 > 0");
        let tree = b"\x03\xff\0\0\0\0\0\x09\0A:\0";
        is(0x75, tree, "SMB1_tree_connect_andx_response:native_file_system: 1 > 0");
        is(0x75, b"\x05\xff\0\0\0\0\0", "SMB1_tree_connect_andx_response:pad: 4 > -4");
        is(0x04, &[0, 0], "SMB_empty_response: 3 > 2");
        is(0x32, &padded(&[10], 22), "SMB1_transaction2_response:byte_count: 23 > 22");
    }
}
