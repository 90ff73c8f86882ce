//! Messages of versions 2 and 3 ([MS-SMB2] §2.2): the header here, the bodies in [`request`] and
//! [`response`].
//!
//! [MS-SMB2]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-smb2

mod header;
mod request;
mod response;
mod waiting;

pub(super) use self::waiting::PendingRequests;

use gannet_base::Dir;

use self::header::Header;
use self::header::discarded;
use super::core::Core;
use super::cursor::Cursor;
use super::cursor::Read;
use super::events::Header2;
use super::events::Smb2Message;
use super::events::Smb2TransformHeader;
use super::events::TransformHeader;
use crate::Context;
use crate::Tag;

/// STATUS_PENDING: another response to the request will follow.
const STATUS_PENDING: u32 = 0x103;

/// Parses a message after its protocol identifier. Returns the offset of the next one, or 0 if it
/// is the last.
pub(super) fn message(
    cx: &mut Context<'_>,
    core: &mut Core,
    from: Dir,
    data: &[u8],
) -> Read<usize> {
    let mut c = Cursor::new("SMB2_Header", data);
    let mut f = c.upto("session_id", 44)?;
    let signature = c.upto("signature", 16)?.bytes();
    let length = f.u16();
    let credit_charge = f.u16();
    let (status, command) = (f.u32(), f.u16());
    let (credits, flags) = (f.u16(), f.u32());
    let (next, message) = (f.u32(), f.u64());
    let process_id = f.u32();
    let tree = f.u32();
    let record = Header2 {
        credit_charge,
        status,
        command,
        credits,
        flags,
        message_id: message,
        process_id,
        tree_id: tree,
        session_id: f.u64(),
        signature,
    };
    let request_tree = core.v2.trees.get(&message).copied();
    let is_pipe = core.is_pipe(if from.is_orig() { tree } else { request_tree.unwrap_or(0) });
    if from.is_orig() {
        if core.v2.trees.len() >= cx.env.pending.of(Tag::Smb) {
            core.v2.trees.clear();
            discarded(cx, core, "tree");
        }
        core.v2.trees.insert(message, tree);
        cx.conn.note_table(core.v2.trees.len());
    } else if status != STATUS_PENDING {
        core.v2.trees.remove(&message);
    }
    cx.raise(|c| Smb2Message { c, hdr: record, is_orig: from.is_orig() });
    core.shares.v2(cx.now, tree, message, from, status == STATUS_PENDING);
    let h = Header { from, length, status, command, next, message, tree, is_pipe, record };
    let mut pdu = Cursor::new("SMB2_PDU", data);
    pdu.advance_past(&c);
    let body = c.rest();
    let read = if h.is_error() {
        error(body)?
    } else if from.is_orig() {
        request::read(cx, core, &h, body)?
    } else {
        response::read(cx, core, &h, body)?
    };
    pdu.pad("", read)?;
    if h.next == 0 {
        return Ok(0);
    }
    let behind = u32::from(h.length).wrapping_add(read as u32);
    pdu.bytes("chain_pad", h.next.wrapping_sub(behind))?;
    Ok(pdu.pos())
}

/// Parses an error response (§2.2.2). Returns its length in bytes.
fn error(data: &[u8]) -> Read<usize> {
    let mut c = Cursor::new("SMB2_error_response", data);
    let mut f = c.upto("byte_count", 8)?;
    f.skip(4);
    c.bytes("stuff", f.u32())?;
    Ok(c.pos())
}

/// Parses the header of an encrypted message, after its protocol identifier (§2.2.41).
pub(super) fn transform(cx: &mut Context<'_>, data: &[u8]) -> Read<()> {
    let mut c = Cursor::new("SMB2_transform_header", data);
    let signature = c.upto("signature", 16)?.bytes();
    let nonce = c.upto("nonce", 16)?.bytes();
    let mut f = c.upto("session_id", 16)?;
    let orig_msg_size = f.u32();
    f.skip(2);
    let (flags, session_id) = (f.u16(), f.u64());
    let hdr = TransformHeader { signature, nonce, orig_msg_size, flags, session_id };
    cx.raise(|c| Smb2TransformHeader { c, hdr });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Analyzer;
    use super::*;
    use crate::Analyze;
    use crate::support::BINPAC;
    use crate::testing::Harness;
    use gannet_base::Proto;

    /// Zero bytes, some of them replaced.
    fn zeros<const N: usize>(len: usize, set: [(usize, u8); N]) -> Vec<u8> {
        let mut all = vec![0; len];
        for (at, value) in set {
            all[at] = value;
        }
        all
    }

    /// The text of the error for a message with `body` after its header.
    fn error_text(from: Dir, command: u8, status: u8, next: u8, body: &[u8]) -> String {
        let mut m = b"\xfeSMB\x40\0\0\0".to_vec();
        m.resize(64, 0);
        (m[8], m[12], m[20]) = (status, command, next);
        m.extend_from_slice(body);
        message_error_text(from, &m)
    }

    fn message_error_text(from: Dir, message: &[u8]) -> String {
        let mut h = Harness::new(Proto::Tcp, 445);
        let mut a = Analyzer::new(&mut h.cx());
        let all = [&(message.len() as u32).to_be_bytes(), message].concat();
        a.stream(&mut h.cx(), from, &all);
        h.violations().iter().map(|(_, error_text)| &error_text[BINPAC.len()..]).collect()
    }

    #[test]
    fn requests_that_are_broken() {
        let is = |command, body: &[u8], end: &str| {
            assert_eq!(error_text(Dir::Orig, command, 0, 0, body), format!("out_of_bound: {end}"));
        };
        is(0, &zeros(36, [(2, 2)]), "SMB2_negotiate_request:dialects: 2 > 0");
        is(1, &[0; 15], "SMB2_session_setup_request:security_length: 16 > 15");
        is(1, &zeros(16, [(12, 88)]), "SMB2_session_setup_request:pad1: 24 > -8");
        is(1, &zeros(16, [(14, 5)]), "SMB2_session_setup_request:security_blob: 21 > 16");
        is(2, &[4, 0], "SMB2_logoff_request: 4 > 2");
        is(3, &zeros(8, [(4, 72), (6, 4)]), "SMB2_string:s: 4 > 0");
        is(5, &[0; 12], "SMB2_create_request:flags: 16 > 12");
        is(5, &[0; 55], "SMB2_create_request:context_len: 56 > 55");
        // The contexts are located in the header.
        is(5, &zeros(56, [(48, 1)]), "SMB2_create_request:context_pad: -63 > 119");
        is(5, &zeros(56, [(52, 1)]), "SMB2_create_request:contexts: 57 > 56");
        is(6, &[0; 20], "SMB2_close_request: 24 > 20");
        is(8, &zeros(48, [(46, 1)]), "SMB2_read_request:buffer: 49 > 48");
        is(9, &zeros(48, [(4, 5)]), "SMB2_write_request:data: 53 > 48");
        is(10, &zeros(24, [(2, 2)]), "SMB2_lock_request:locks: 2 > 0");
        is(11, &zeros(56, [(24, 200)]), "SMB2_ioctl_request:pad1: -24 > 56");
        is(11, &zeros(56, [(28, 1)]), "SMB2_ioctl_request:input_buffer: 57 > 56");
        is(14, &zeros(32, [(26, 2)]), "SMB2_query_directory_request:file_name: 34 > 32");
        is(16, &zeros(40, [(12, 2)]), "SMB2_query_info_request:buffer: 42 > 40");
        is(17, &zeros(32, [(2, 1), (3, 13)]), "SMB2_file_disposition_info: 1 > 0");
        is(17, &zeros(52, [(2, 1), (3, 10), (48, 4)]), "SMB2_string:s: 4 > 0");
        let attributes = zeros(40, [(2, 1), (3, 15), (32, 9)]);
        is(17, &attributes, "SMB2_file_fullea_info_element:pad_to_next: 9 > -1");
        assert_eq!(error_text(Dir::Orig, 17, 0, 0, &zeros(32, [(2, 3)])), "");
        assert_eq!(error_text(Dir::Orig, 99, 0, 0, &[]), "");
    }

    #[test]
    fn responses_that_are_broken() {
        let is = |command, body: &[u8], end: &str| {
            assert_eq!(error_text(Dir::Resp, command, 0, 0, body), format!("out_of_bound: {end}"));
        };
        let contexts = |n| zeros(64, [(4, 0x11), (5, 3), (6, n), (60, 128)]);
        is(0, &contexts(3), "NegotiateContextList:vals: 2 > 0");
        is(0, &contexts(1), "SMB3_negotiate_context_value:reserved: 8 > 0");
        let cipher = [&contexts(2)[..], &[2, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0]].concat();
        is(0, &cipher, "Padded_SMB3_negotiate_context_value: 16 > 12");
        is(0, &cipher[..74], "SMB3_encryption_capabilities:ciphers: 1 > 0");
        is(3, &[0; 15], "SMB2_tree_connect_response: 16 > 15");
        is(5, &[0; 87], "SMB2_create_response:context_len: 88 > 87");
        is(8, &zeros(16, [(4, 9)]), "SMB2_read_response:data: 25 > 16");
        is(11, &zeros(48, [(36, 1)]), "SMB2_ioctl_response:output_buffer: 49 > 48");
        is(15, &zeros(20, [(2, 72), (4, 12), (16, 7)]), "SMB2_string:s: 7 > 0");
        is(16, &zeros(8, [(4, 2)]), "SMB2_query_info_response:buffer: 10 > 8");
        let error = error_text(Dir::Resp, 1, 1, 0, &zeros(8, [(4, 9)]));
        assert_eq!(error, "out_of_bound: SMB2_error_response:stuff: 17 > 8");
    }

    #[test]
    fn offsets_wrap_around() {
        // Input of a control code at offset 0xffffff78: 256 bytes before it count as padding.
        let body = zeros(56 + 256, [(24, 0x78), (25, 0xff), (26, 0xff), (27, 0xff)]);
        assert_eq!(error_text(Dir::Orig, 11, 0, 0, &body), "");
        let cut = error_text(Dir::Orig, 11, 0, 0, &body[..311]);
        assert_eq!(cut, "out_of_bound: SMB2_ioctl_request:pad1: 312 > 311");
    }

    #[test]
    fn headers_and_chains_that_are_broken() {
        let mut header = b"\xfeSMB\x40".to_vec();
        header.resize(50, 0);
        assert_eq!(
            message_error_text(Dir::Orig, &header),
            "out_of_bound: SMB2_Header:signature: 60 > 46"
        );
        header.truncate(40);
        assert_eq!(
            message_error_text(Dir::Orig, &header),
            "out_of_bound: SMB2_Header:session_id: 44 > 36"
        );
        let chain = |next| error_text(Dir::Orig, 13, 0, next, &[4, 0, 0, 0]);
        assert_eq!(chain(70), "out_of_bound: SMB2_PDU:chain_pad: 66 > 64");
        assert_eq!(chain(65), "out_of_bound: SMB2_PDU:chain_pad: 61 > 64");
        assert_eq!(chain(68), "");
        let mut h = Harness::new(Proto::Tcp, 445);
        assert_eq!(transform(&mut h.cx(), &[0; 48]), Ok(()));
        let short = transform(&mut h.cx(), &[0; 20]).unwrap_err().to_string();
        assert!(short.ends_with("out_of_bound: SMB2_transform_header:nonce: 32 > 20"));
    }
}
