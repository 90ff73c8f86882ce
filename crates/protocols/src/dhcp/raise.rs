//! Raises the event of a message: a walk of its own, made only where it has a listener.
//!
//! The message was [parsed](super::message::Message::parse) before, so missing parts are no error
//! here.

use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_event::Id4;

use super::events::AggregateMsgs;
use super::events::ClientFqdn;
use super::events::ClientId;
use super::events::DhcpMessage;
use super::events::Msg;
use super::events::Options;
use super::events::SubOpt;
use super::rows::mac;
use crate::Context;
use crate::support::Bytes;

/// Raises the event. `kind` is the type of the message, `relayed` what [parsing](super::message::Message::parse)
/// began with.
#[cold]
pub(super) fn message(cx: &mut Context<'_>, from: Dir, data: &[u8], kind: u8, relayed: u8) {
    let Some((msg, options)) = read(data, kind, relayed) else { return };
    let is_orig = from.is_orig();
    cx.raise(|c| DhcpMessage { c, is_orig, msg, options });
    if cx.wants::<AggregateMsgs<'_>>()
        && let Some((msg, options)) = read(data, kind, relayed)
    {
        let (ts, uid) = (cx.now, cx.conn.uid);
        let id = Id4(cx.conn.id, cx.conn.proto, cx.conn.ip_proto);
        cx.raise(|_| AggregateMsgs { ts, id, uid, is_orig, msg, options });
    }
}

fn read(data: &[u8], kind: u8, mut relayed: u8) -> Option<(Msg<'_>, Options<'_>)> {
    let mut b = Bytes(data);
    let op = b.u8()?;
    b.take(3)?;
    let (xid, secs, flags) = (b.u32()?, b.u16()?, b.u16()?);
    let msg = Msg {
        op: op.into(),
        m_type: kind.into(),
        xid,
        secs: Interval::from_secs(secs.into()),
        flags,
        ciaddr: addr(&mut b)?,
        yiaddr: addr(&mut b)?,
        siaddr: addr(&mut b)?,
        giaddr: addr(&mut b)?,
        chaddr: mac(b.take(16)?).into(),
        sname: unpadded(b.take(64)?),
        file_n: unpadded(b.take(128)?),
    };
    b.take(4)?;
    let mut options = Options::default();
    let mut codes = Vec::new();
    while let Some(code) = b.u8().filter(|code| *code != 255) {
        codes.push(code.into());
        if code != 0 {
            let len = b.u8()?;
            option(&mut options, &mut b, code, len.into(), &mut relayed)?;
        }
    }
    options.options = Some(codes);
    Some((msg, options))
}

/// Reads an option's value. As in parsing, a fixed size wins over the length.
fn option<'a>(
    o: &mut Options<'a>,
    b: &mut Bytes<'a>,
    code: u8,
    len: usize,
    relayed: &mut u8,
) -> Option<()> {
    match code {
        1 => o.subnet_mask = Some(addr(b)?),
        2 => o.time_offset = Some(b.u32()? as i32),
        3 => o.routers = Some(addrs(b, len)?),
        4 => o.time_servers = Some(addrs(b, len)?),
        5 => o.name_servers = Some(addrs(b, len)?),
        6 => o.dns_servers = Some(addrs(b, len)?),
        12 => o.host_name = Some(b.take(len)?),
        15 => o.domain_name = Some(unpadded(b.take(len)?)),
        19 => o.forwarding = Some(b.u8()? != 0),
        28 => o.broadcast = Some(addr(b)?),
        42 => o.ntp_servers = Some(addrs(b, len)?),
        43 => o.vendor = Some(b.take(len)?),
        44 => o.nbns = Some(addrs(b, len)?),
        50 => o.addr_request = Some(addr(b)?),
        51 => o.lease = Some(seconds(b)?),
        53 => drop(b.u8()?),
        54 => o.serv_addr = Some(addr(b)?),
        55 => o.param_list = Some(b.take(len)?.iter().map(|n| u64::from(*n)).collect()),
        56 => o.message = Some(b.take(len)?),
        57 => o.max_msg_size = Some(b.u16()?),
        58 => o.renewal_time = Some(seconds(b)?),
        59 => o.rebinding_time = Some(seconds(b)?),
        60 => o.vendor_class = Some(b.take(len)?),
        61 => {
            let hwtype = b.u8()?;
            let address = b.take(len.checked_sub(1)?)?;
            let hwaddr = if hwtype == 0 { address.into() } else { mac(address).into() };
            o.client_id = Some(ClientId { hwtype: hwtype.into(), hwaddr });
        }
        77 => o.user_class = Some(b.take(len)?),
        81 => {
            let [flags, rcode1, rcode2] = [b.u8()?, b.u8()?, b.u8()?].map(u64::from);
            let domain_name = b.take(len.checked_sub(3)?)?;
            o.client_fqdn = Some(ClientFqdn { flags, rcode1, rcode2, domain_name });
        }
        82 => {
            let mut parts = Vec::new();
            while !b.is_empty() {
                let (code, size) = (b.u8()?, b.u8()?);
                parts.push(SubOpt { code: code.into(), value: b.take(size.into())? });
                *relayed = relayed.wrapping_add(size).wrapping_add(2);
                if usize::from(*relayed) == len {
                    break;
                }
            }
            o.sub_opt = Some(parts);
        }
        116 => o.auto_config = Some(b.u8()? != 0),
        252 => o.auto_proxy_config = Some(without_line_end(b.take(len)?)),
        _ => drop(b.take(len)?),
    }
    Some(())
}

fn addr(b: &mut Bytes<'_>) -> Option<Addr> {
    b.take(4)?.first_chunk().map(|bytes| Addr::v4(*bytes))
}

fn addrs(b: &mut Bytes<'_>, len: usize) -> Option<Vec<Addr>> {
    (0..len / 4).map(|_| addr(b)).collect()
}

fn seconds(b: &mut Bytes<'_>) -> Option<Interval> {
    b.u32().map(|n| Interval::from_secs(n.into()))
}

/// A text without trailing zeros. One byte alone counts as padding too, as in Zeek.
fn unpadded(text: &[u8]) -> &[u8] {
    match text.iter().rposition(|b| *b != 0) {
        None | Some(0) => b"",
        Some(last) => &text[..=last],
    }
}

fn without_line_end(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}
