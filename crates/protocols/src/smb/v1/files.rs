//! Commands on files: open, read and write ([MS-CIFS] §2.2.4.42, §2.2.4.43, §2.2.4.64).
//!
//! [MS-CIFS]: https://learn.microsoft.com/en-us/openspecs/windows_protocols/ms-cifs

use gannet_base::Dir;

use super::header::CommandPosition;
use super::header::Commands;
use super::header::Header;
use super::header::follow;
use super::header::offset_after_header;
use super::header::text;
use super::header::words_and_next;
use crate::Context;
use crate::smb::core::Core;
use crate::smb::cursor::Cursor;
use crate::smb::cursor::Read;
use crate::smb::events::Smb1NtCreateAndxRequest;
use crate::smb::events::Smb1NtCreateAndxResponse;
use crate::smb::events::Smb1ReadAndxRequest;
use crate::smb::events::Smb1ReadAndxResponse;
use crate::smb::events::Smb1WriteAndxRequest;
use crate::smb::events::Smb1WriteAndxResponse;
use crate::smb::info::Action;
use crate::smb::info::Times;

pub(super) fn read_request<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_read_andx_request", data);
    let mut f = c.upto("remaining", 21)?;
    let (words, next) = words_and_next(&mut f);
    let file_id = f.u16();
    let file = u64::from(file_id);
    let low = u64::from(f.u32());
    let count_low = u64::from(f.u16());
    f.skip(2);
    let count_high = f.u32();
    let high = if words == 12 { c.upto("offset_high_tmp", 4)?.u32() } else { 0 };
    c.upto("byte_count", 2)?;
    follow::<C>(cx, core, h, at, c, next, true)?;
    let high = if high == u32::MAX { 0 } else { u64::from(high) };
    let offset = (high << 16) + low;
    let count_high = if count_high == u32::MAX { 0 } else { u64::from(count_high) };
    let length = (count_high << 16) + count_low;
    cx.raise(|c| Smb1ReadAndxRequest { c, hdr: h.record, file_id, offset, length });
    core.shares.act_v1(cx, file, Action::Read);
    core.v1.reads.insert(h.message, offset);
    Ok(())
}

pub(super) fn read_response<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_read_andx_response", data);
    let mut f = c.upto("byte_count", 27)?;
    let (_, next) = words_and_next(&mut f);
    f.skip(6);
    let (low, offset, high) = (f.u16(), f.u16(), f.u16());
    c.pad_to("pad", offset_after_header(offset))?;
    let data = c.bytes("data", u32::from(high) << 16 | u32::from(low))?;
    follow::<C>(cx, core, h, at, c, next, false)?;
    if h.is_pipe {
        core.pipe(cx, 0, Dir::Resp, data);
    }
    cx.raise(|c| Smb1ReadAndxResponse { c, hdr: h.record, data_len: data.len() as u32 });
    if !h.is_pipe && !data.is_empty() {
        let offset = core.v1.reads.remove(&h.message).unwrap_or(0);
        core.shares.data(cx, h.from, offset, data);
    }
    Ok(())
}

pub(super) fn write_request<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_write_andx_request", data);
    let mut f = c.upto("data_offset", 25)?;
    let (words, next) = words_and_next(&mut f);
    let file_id = f.u16();
    let file = u64::from(file_id);
    let low = f.u32();
    f.skip(8);
    let length = u32::from(f.u16()) << 16 | u32::from(f.u16());
    let offset = f.u16();
    let high = if words == 14 { c.upto("offset_high_tmp", 4)?.u32() } else { 0 };
    c.upto("byte_count", 2)?;
    c.pad_to("pad", offset_after_header(offset))?;
    let data = c.bytes("data", length)?;
    follow::<C>(cx, core, h, at, c, next, true)?;
    if h.is_pipe {
        core.pipe(cx, 0, Dir::Orig, data);
    }
    let offset = (high << 16).wrapping_add(low);
    let (hdr, data_len) = (h.record, length);
    cx.raise(|c| Smb1WriteAndxRequest { c, hdr, file_id, offset: offset.into(), data_len });
    core.shares.act_v1(cx, file, Action::Write);
    if !h.is_pipe && !data.is_empty() {
        core.shares.data(cx, h.from, offset.into(), data);
    }
    Ok(())
}

pub(super) fn write_response<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_write_andx_response", data);
    let mut f = c.upto("byte_count", 15)?;
    let (_, next) = words_and_next(&mut f);
    follow::<C>(cx, core, h, at, c, next, false)?;
    let low = u32::from(f.u16());
    f.skip(2);
    let written_bytes = u32::from(f.u16()) << 16 | low;
    cx.raise(|c| Smb1WriteAndxResponse { c, hdr: h.record, written_bytes });
    Ok(())
}

pub(super) fn create_request<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_nt_create_andx_request", data);
    let mut f = c.upto("byte_count", 51)?;
    let (_, next) = words_and_next(&mut f);
    let name = c.string(h.unicode, false)?;
    follow::<C>(cx, core, h, at, c, next, true)?;
    let name = text(cx, h.unicode, name);
    core.detect_pipe(cx, h.tree.into(), &name);
    cx.raise(|c| Smb1NtCreateAndxRequest { c, hdr: h.record, file_name: &name });
    core.shares.create_v1(cx.now, name);
    Ok(())
}

pub(super) fn create_response<C: Commands>(
    cx: &mut Context<'_>,
    core: &mut Core,
    h: Header,
    at: CommandPosition,
    data: &[u8],
) -> Read<()> {
    let c = &mut Cursor::new("SMB1_nt_create_andx_response", data);
    let mut f = c.upto("byte_count", 71)?;
    let (_, next) = words_and_next(&mut f);
    f.skip(1);
    let file_id = f.u16();
    let file = u64::from(file_id);
    f.skip(4);
    let times = Times::read(&mut f);
    f.skip(12);
    let size = f.u64();
    follow::<C>(cx, core, h, at, c, next, false)?;
    let (hdr, at) = (h.record, times.into());
    cx.raise(|c| Smb1NtCreateAndxResponse { c, hdr, file_id, file_size: size, times: at });
    core.shares.created_v1(cx, file, size, times);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::Client;

    /// A file `a.txt` in a share of disks, number 9.
    fn opened() -> Client {
        let mut c = Client::new();
        c.connect(b"A:");
        open(&mut c);
        c
    }

    fn open(c: &mut Client) {
        let mut request = b"\x18\xff\0\0\0".to_vec();
        request.resize(51, 0);
        request.extend_from_slice(b"a.txt\0");
        c.request(0xa2, &request);
        let mut response = b"\x22\xff\0\0\0\0\x09\0".to_vec();
        response.resize(71, 0);
        c.response(0xa2, &response);
    }

    #[test]
    fn a_file_has_one_name_however_often_it_is_read() {
        let mut c = opened();
        let request = [&[10, 0xff, 0, 0, 0, 9, 0][..], &[0; 16]].concat();
        let mut response = vec![12, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 59, 0];
        response.resize(27, 0);
        response.extend_from_slice(b"hello");
        for _ in 0..2 {
            c.request(0x2e, &request);
            c.response(0x2e, &response);
            c.request(0x04, &[3, 9, 0, 0, 0, 0, 0, 0, 0]);
            c.response(0x04, &[0, 0, 0]);
            open(&mut c);
        }
        let rows = c.finish().rows("files");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["fuid"], rows[1]["fuid"]);
    }

    #[test]
    fn a_file_is_read() {
        let mut c = opened();
        // Offset 0; then `hello`, at byte 59 of the message.
        let request = [&[10, 0xff, 0, 0, 0, 9, 0][..], &[0; 16]].concat();
        let mut response = vec![12, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 59, 0];
        response.resize(27, 0);
        response.extend_from_slice(b"hello");
        c.request(0x2e, &request);
        c.response(0x2e, &response);
        c.request(0x04, &[3, 9, 0, 0, 0, 0, 0, 0, 0]);
        let h = c.finish();
        let rows = h.rows("smb_files");
        assert_eq!((&*rows[0]["action"], &*rows[0]["name"]), ("SMB::FILE_OPEN", "a.txt"));
        let rows = h.rows("files");
        assert_eq!((&*rows[0]["filename"], &*rows[0]["seen_bytes"]), ("a.txt", "5"));
        assert_eq!(rows[0]["is_orig"], "F");
    }

    #[test]
    fn a_file_is_written_and_closed() {
        let mut c = opened();
        // Two bytes at offset 0; the data is at byte 63 of the message.
        let mut request = vec![14, 0xff, 0, 0, 0, 9, 0];
        request.resize(21, 0);
        request.extend_from_slice(&[2, 0, 63, 0, 0, 0, 0, 0, 2, 0]);
        request.extend_from_slice(b"hi");
        c.request(0x2f, &request);
        c.response(0x2f, &[&[6, 0xff][..], &[0; 13]].concat());
        c.request(0x04, &[3, 9, 0, 0, 0, 0, 0, 0, 0]);
        c.response(0x04, &[0, 0, 0]);
        let rows = c.finish().rows("files");
        assert_eq!((&*rows[0]["seen_bytes"], &*rows[0]["is_orig"]), ("2", "T"));
    }

    #[test]
    fn data_beyond_the_message_is_none() {
        let mut c = opened();
        let mut response = vec![12, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 59, 0, 0xff, 0xff];
        response.resize(27, 0);
        c.request(0x2e, &[&[10, 0xff, 0, 0, 0, 9, 0][..], &[0; 16]].concat());
        assert!(!c.broken());
        c.response(0x2e, &response);
        assert_eq!(c.failures(), ["out_of_bound: SMB1_read_andx_response:data: 26 > 27"]);
        assert!(c.finish().rows("files").is_empty());
    }
}
