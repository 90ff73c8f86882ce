//! Conversion of messages to events.

use gannet_base::Dir;
use gannet_base::Time;

use super::events::ApOptions;
use super::events::EncryptedData;
use super::events::ErrorMsg;
use super::events::HostAddresses;
use super::events::KdcOptions;
use super::events::KdcRequest;
use super::events::KdcResponse;
use super::events::KrbApRequest;
use super::events::KrbApResponse;
use super::events::KrbAsRequest;
use super::events::KrbAsResponse;
use super::events::KrbCred;
use super::events::KrbError;
use super::events::KrbPriv;
use super::events::KrbSafe;
use super::events::KrbTgsRequest;
use super::events::KrbTgsResponse;
use super::events::Padata;
use super::events::SafeMsg;
use super::events::TicketRecord;
use super::events::Tickets;
use super::events::address;
use super::events::ticket;
use super::message::Encrypted;
use super::message::Error;
use super::message::Message;
use super::message::Reply;
use super::message::Request;
use super::message::Safe;
use super::message::Ticket;
use super::message::UnixSeconds;
use super::rows::Session;
use crate::Context;
use crate::Tag;

/// Message types of requests and replies.
const AS_REQ: u64 = 10;
const AS_REP: u64 = 11;
const TGS_REQ: u64 = 12;
const TGS_REP: u64 = 13;

/// Raises the event of a presented ticket.
pub(super) fn ap_request(
    cx: &mut Context<'_>,
    rows: &mut Session,
    tag: Tag,
    (presented, options): (&Ticket<'_>, u32),
    in_padata: bool,
) {
    let opts = ApOptions {
        use_session_key: options & 0x4000_0000 != 0,
        mutual_required: options & 0x2000_0000 != 0,
    };
    // As in Zeek, the field is empty over TCP, and unset over UDP.
    let authenticationinfo = (tag == Tag::KrbTcp).then_some(&b""[..]);
    let ticket = || TicketRecord { authenticationinfo, ..ticket(presented) };
    cx.report(rows, |c| KrbApRequest { c, ticket: ticket(), opts, in_kdc_padata: in_padata });
}

/// Raises the event of a message. For a request or reply, its `msg-type` field decides.
pub(super) fn message(
    cx: &mut Context<'_>,
    rows: &mut Session,
    (tag, from): (Tag, Dir),
    message: &Message<'_>,
) {
    let is_orig = from.is_orig();
    match message {
        Message::Request(r) if r.kind == AS_REQ => {
            cx.report(rows, |c| KrbAsRequest { c, msg: request(r) });
        }
        Message::Request(r) if r.kind == TGS_REQ => {
            cx.report(rows, |c| KrbTgsRequest { c, msg: request(r) });
        }
        Message::Reply(r) if r.kind == AS_REP => {
            cx.report(rows, |c| KrbAsResponse { c, msg: reply(r) });
        }
        Message::Reply(r) if r.kind == TGS_REP => {
            cx.report(rows, |c| KrbTgsResponse { c, msg: reply(r) });
        }
        Message::Request(_) | Message::Reply(_) => {}
        Message::ApRequest(ticket, options) => ap_request(cx, rows, tag, (ticket, *options), false),
        Message::ApReply => cx.report(rows, |c| KrbApResponse { c }),
        Message::Error(e) => cx.report(rows, |c| KrbError { c, msg: error(e) }),
        Message::Private => cx.raise(|c| KrbPriv { c, is_orig }),
        Message::Safe(s) => cx.raise(|c| KrbSafe { c, is_orig, msg: safe(s) }),
        Message::Credentials(all) => {
            cx.raise(|c| KrbCred { c, is_orig, tickets: Tickets(all) });
        }
    }
}

fn request<'a>(r: &'a Request<'a>) -> KdcRequest<'a> {
    KdcRequest {
        pvno: r.version,
        msg_type: r.kind,
        pa_data: r.padata.as_deref().map(Padata),
        kdc_options: r.options.map(options),
        client_name: r.client.as_ref(),
        service_realm: r.realm,
        service_name: r.service.as_ref(),
        from: r.from.map(UnixSeconds),
        till: r.till.map(UnixSeconds),
        rtime: r.renew_till.map(UnixSeconds),
        nonce: r.nonce,
        encryption_types: Some(&r.ciphers).filter(|list| !list.is_empty()),
        host_addrs: (!r.addresses.is_empty()).then_some(HostAddresses(&r.addresses)),
        additional_tickets: (!r.tickets.is_empty()).then_some(Tickets(&r.tickets)),
    }
}

fn options(flags: u32) -> KdcOptions {
    let has = |bit: u32| flags & bit != 0;
    KdcOptions {
        forwardable: has(0x4000_0000),
        forwarded: has(0x2000_0000),
        proxiable: has(0x1000_0000),
        proxy: has(0x0800_0000),
        allow_postdate: has(0x0400_0000),
        postdated: has(0x0200_0000),
        renewable: has(0x0080_0000),
        opt_hardware_auth: has(0x0010_0000),
        disable_transited_check: has(0x10),
        renewable_ok: has(0x8),
        enc_tkt_in_skey: has(0x4),
        renew: has(0x2),
        validate: has(0x1),
    }
}

fn reply<'a>(r: &'a Reply<'a>) -> KdcResponse<'a> {
    let Encrypted { cipher, key_version, data } = r.encrypted;
    KdcResponse {
        pvno: r.version,
        msg_type: r.kind,
        pa_data: r.padata.as_deref().map(Padata),
        client_realm: Some(r.realm),
        client_name: &r.client,
        ticket: ticket(&r.ticket),
        enc_part: EncryptedData { kvno: key_version, cipher, ciphertext: data },
    }
}

/// Converts seconds and microseconds to a time. As in Zeek, microseconds are taken for units of 10 microseconds.
fn precise((seconds, micros): (Option<i64>, u64)) -> Option<Time> {
    let nanos = i64::try_from(micros.min(1_000_000_000)).unwrap_or(0) * 10_000;
    seconds.map(|s| Time::from_nanos(s.saturating_mul(1_000_000_000).saturating_add(nanos)))
}

fn error<'a>(e: &'a Error<'a>) -> ErrorMsg<'a> {
    ErrorMsg {
        pvno: e.version,
        msg_type: e.kind,
        client_time: precise(e.client_time),
        server_time: precise(e.server_time),
        error_code: e.code,
        client_realm: e.client_realm,
        client_name: e.client.as_ref(),
        service_realm: e.service_realm,
        service_name: e.service.as_ref(),
        error_text: e.text,
        pa_data: e.padata.as_deref().map(Padata),
    }
}

fn safe<'a>(s: &Safe<'a>) -> SafeMsg<'a> {
    let [sender, recipient] = s.addresses.map(|a| a.as_ref().map(address));
    SafeMsg {
        pvno: s.version,
        msg_type: s.kind,
        data: s.data,
        timestamp: precise(s.time),
        seq: s.number,
        sender,
        recipient,
    }
}
