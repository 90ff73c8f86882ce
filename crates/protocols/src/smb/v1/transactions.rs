//! Transactions: on named pipes, and on the file system ([MS-CIFS] §2.2.4.33, §2.2.4.46).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use gannet_base::Dir;

use super::header::Header;
use super::header::offset_after_header;
use super::header::text;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::events::FindFirst2;
use crate::smb::events::Smb1Trans2FindFirst2Request;
use crate::smb::events::Smb1Trans2GetDfsReferralRequest;
use crate::smb::events::Smb1Trans2QueryPathInfoRequest;
use crate::smb::events::Smb1Transaction2Request;
use crate::smb::events::Smb1Transaction2SecondaryRequest;
use crate::smb::events::Smb1TransactionRequest;
use crate::smb::events::Smb1TransactionResponse;
use crate::smb::events::Smb1TransactionSecondaryRequest;
use crate::smb::events::Trans2Args;
use crate::smb::events::Trans2SecArgs;
use crate::smb::events::TransSecArgs;

/// The kind of a transaction, by its name.
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
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_transaction_request", data);
    let mut f = c.upto("reserved3", 29)?;
    let words = f.u8();
    f.skip(18);
    let (parameters, place_of) = (f.u16(), f.u16());
    let (count, offset) = (f.u16(), f.u16());
    let setup = f.u8();
    let setup = c.list("setup", setup.into(), 2)?;
    c.upto("byte_count", 2)?;
    let name = c.string(h.unicode, false)?;
    let kind = kind(h.unicode, name);
    c.pad_to("pad1", offset_after_header(place_of))?;
    let parameters = c.bytes("parameters", parameters.into())?;
    c.pad_to("pad2", offset_after_header(offset))?;
    let rest = c.rest();
    if kind == Kind::Pipe {
        core.pipe(cx, 0, Dir::Orig, rest);
    }
    if cx.wants::<Smb1TransactionRequest<'_>>() {
        let name = &text(cx, h.unicode, name);
        let sub_cmd = match setup {
            [a, b, ..] if words != 16 => u16::from_le_bytes([*a, *b]),
            _ => 0,
        };
        let (hdr, data) = (h.record, if count > 0 { rest } else { &[] });
        cx.raise(|c| Smb1TransactionRequest { c, hdr, name, sub_cmd, parameters, data });
    }
    let is_pipe = kind == Kind::Pipe || kind == Kind::Unknown && core.is_pipe(h.tree.into());
    core.v1.pipes.insert(h.message, is_pipe);
    Ok(())
}

pub(super) fn transaction_response(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_transaction_response", data);
    let mut f = c.upto("reserved2", 21)?;
    f.skip(7);
    let (parameters, place_of) = (f.u16(), f.u16());
    f.skip(2);
    let (count, offset) = (f.u16(), f.u16());
    f.skip(2);
    let setup = f.u8();
    c.list("setup", setup.into(), 2)?;
    c.upto("byte_count", 2)?;
    c.pad_to("pad0", offset_after_header(place_of))?;
    let parameters = c.bytes("parameters", parameters.into())?;
    c.pad_to("pad1", offset_after_header(offset))?;
    if count > 0 {
        c.has("data", 1, 1)?;
    }
    let is_pipe = core.v1.pipes.remove(&h.message).unwrap_or(false);
    let data = if count > 0 { c.rest() } else { &[] };
    if is_pipe && count > 0 {
        core.pipe(cx, 0, Dir::Resp, data);
    }
    cx.raise(|c| Smb1TransactionResponse { c, hdr: h.record, parameters, data });
    Ok(())
}

/// Parses the rest of a request that is too long for one message.
pub(super) fn secondary_request(cx: &mut Context<'_>, h: Header, data: &[u8]) -> Read<()> {
    let c = &mut Cursor::new("SMB1_transaction_secondary_request", data);
    let mut f = c.upto("byte_count", 19)?;
    f.skip(1);
    let args = TransSecArgs {
        total_param_count: f.u16(),
        total_data_count: f.u16(),
        param_count: f.u16(),
        param_offset: f.u16(),
        param_displacement: f.u16(),
        data_count: f.u16(),
        data_offset: f.u16(),
        data_displacement: f.u16(),
    };
    c.pad_to("pad1", offset_after_header(args.param_offset))?;
    let parameters = c.bytes("parameters", args.param_count.into())?;
    c.pad_to("pad2", offset_after_header(args.data_offset))?;
    let data = if args.data_count > 0 { c.rest() } else { &[] };
    cx.raise(|c| Smb1TransactionSecondaryRequest { c, hdr: h.record, args, parameters, data });
    Ok(())
}

/// Parses subcommands on the file system, which are not logged ([MS-CIFS] §2.2.6).
pub(super) fn transaction2(cx: &mut Context<'_>, h: Header, data: &[u8]) -> Read<()> {
    let c = &mut Cursor::new("SMB1_transaction2_request", data);
    let mut f = c.upto("byte_count", 33)?;
    f.skip(1);
    let (total_param_count, total_data_count) = (f.u16(), f.u16());
    let (max_param_count, max_data_count, max_setup_count) = (f.u16(), f.u16(), f.u8());
    f.skip(1);
    let (flags, trans_timeout) = (f.u16(), f.u32());
    f.skip(2);
    let (param_count, offset, data_count, data_offset) = (f.u16(), f.u16(), f.u16(), f.u16());
    let setup_count = f.u8();
    f.skip(1);
    let subcommand = f.u16();
    let args = Trans2Args {
        total_param_count,
        total_data_count,
        max_param_count,
        max_data_count,
        max_setup_count: max_setup_count.into(),
        flags,
        trans_timeout,
        param_count,
        param_offset: offset,
        data_count,
        data_offset,
        setup_count: setup_count.into(),
    };
    c.pad_to("pad1", offset_after_header(offset))?;
    raise_subcommand(cx, h, c, subcommand)?;
    cx.raise(|c| Smb1Transaction2Request { c, hdr: h.record, args, sub_cmd: subcommand });
    Ok(())
}

fn raise_subcommand(cx: &mut Context<'_>, h: Header, c: &Cursor<'_>, subcommand: u16) -> Read<()> {
    let (record, field, n) = match subcommand {
        0x01 => ("trans2_find_first2_request", "search_storage_type", 12),
        0x05 => ("trans2_query_path_info_request", "reserved", 6),
        0x10 => ("trans2_get_dfs_referral_request", "max_referral_level", 2),
        0x07 => return c.inner("trans2_query_file_info_request").all(4).map(drop),
        _ => return Ok(()),
    };
    let c = &mut c.inner(record);
    let mut f = c.upto(field, n)?;
    let name = c.string(h.unicode, false)?;
    let hdr = h.record;
    match subcommand {
        0x01 if cx.wants::<Smb1Trans2FindFirst2Request<'_>>() => {
            let args = FindFirst2 {
                search_attrs: f.u16(),
                search_count: f.u16(),
                flags: f.u16(),
                info_level: f.u16(),
                search_storage_type: f.u32(),
                file_name: &text(cx, h.unicode, name),
            };
            cx.raise(|c| Smb1Trans2FindFirst2Request { c, hdr, args });
        }
        0x05 if cx.wants::<Smb1Trans2QueryPathInfoRequest<'_>>() => {
            let file_name = &text(cx, h.unicode, name);
            cx.raise(|c| Smb1Trans2QueryPathInfoRequest { c, hdr, file_name });
        }
        0x10 if cx.wants::<Smb1Trans2GetDfsReferralRequest<'_>>() => {
            let file_name = &text(cx, h.unicode, name);
            cx.raise(|c| Smb1Trans2GetDfsReferralRequest { c, hdr, file_name });
        }
        _ => {}
    }
    Ok(())
}

/// Parses the rest of such a request.
pub(super) fn secondary_request2(cx: &mut Context<'_>, h: Header, data: &[u8]) -> Read<()> {
    let c = &mut Cursor::new("SMB1_transaction2_secondary_request", data);
    let mut f = c.upto("byte_count", 21)?;
    f.skip(1);
    let args = Trans2SecArgs {
        total_param_count: f.u16(),
        total_data_count: f.u16(),
        param_count: f.u16(),
        param_offset: f.u16(),
        param_displacement: f.u16(),
        data_count: f.u16(),
        data_offset: f.u16(),
        data_displacement: f.u16(),
        fid: f.u16(),
    };
    c.pad_to("pad1", offset_after_header(args.param_offset))?;
    let parameters = c.bytes("parameters", args.param_count.into())?;
    c.pad_to("pad2", offset_after_header(args.data_offset))?;
    let data = c.bytes("data", args.data_count.into())?;
    cx.raise(|c| Smb1Transaction2SecondaryRequest { c, hdr: h.record, args, parameters, data });
    Ok(())
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
            // The name ends before byte 74 of the message, and the data follows.
            let mut body = vec![16];
            body.resize(19, 0);
            body.extend_from_slice(&[0, 0, 0, 0, request.len() as u8, 0, 74, 0, 2, 0]);
            body.extend_from_slice(&[0x26, 0, 9, 0, 0, 0]);
            body.extend_from_slice(b"\\PIPE\\\0");
            body.extend_from_slice(&request);
            c.request(0x25, &body);
            let mut answer = vec![10];
            answer.resize(7, 0);
            answer.extend_from_slice(&[0, 0, 0, 0, 0, 0, response.len() as u8, 0, 56, 0, 0, 0]);
            answer.extend_from_slice(&[0, 0, 0, 0]);
            answer.resize(24, 0);
            answer.extend_from_slice(&response);
            c.response(0x25, &answer);
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
        let mut request = vec![15];
        request.resize(21, 0);
        request.extend_from_slice(&[66, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        request.resize(34 + 12, 0);
        request.extend_from_slice(b"\\*\0");
        c.request(0x32, &request);
        assert!(!c.broken());
        request.truncate(40);
        c.request(0x32, &request);
        let short = "out_of_bound: trans2_find_first2_request:search_storage_type: 12 > 6";
        assert_eq!(c.failures(), [short]);
    }

    #[test]
    fn transactions_cut_short_are_broken() {
        // Three words of setup; parameters at byte 200 of the message; data at its end.
        let cases = [
            (31, 27, 3, "out_of_bound: SMB1_transaction_request:setup: 3 > 2"),
            (31, 21, 200, "out_of_bound: SMB1_transaction_request:pad1: 168 > -137"),
            (31, 19, 9, "out_of_bound: SMB1_transaction_request:parameters: 40 > 31"),
            (28, 0, 0, "out_of_bound: SMB1_transaction_request:reserved3: 29 > 28"),
        ];
        for (len, at, value, why) in cases {
            let mut request = vec![0; len];
            request[at] = value;
            let mut c = Client::new();
            c.request(0x25, &request);
            assert_eq!(c.failures(), [why]);
        }
        let mut answer = [0; 23];
        answer[13] = 1;
        let mut c = Client::new();
        c.response(0x25, &answer);
        assert_eq!(c.failures(), ["out_of_bound: SMB1_transaction_response:data: 1 > 0"]);
    }
}
