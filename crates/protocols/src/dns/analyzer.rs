use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_event::Connection;
use gannet_flow::Conn;

use super::events::CaaReply;
use super::events::End;
use super::events::HinfoReply;
use super::events::Message;
use super::events::MessageRead;
use super::head::Head;
use super::message::Header;
use super::message::MessageNote;
use super::message::Notes;
use super::names::opcode;
use super::raise;
use super::rows;
use super::rows::Rows;
use super::session::Exchange;
use super::session::LastMessage;
use super::session::RareState;
use super::shared::Buffers;
use super::shared::Scratch;
use super::walk;
use super::walk::Walk;
use crate::Analyze;
use crate::Context;
use crate::OnEvent;
use crate::Tag;

/// Port of the NetBIOS name service.
const NETBIOS_PORT: u16 = 137;

/// Default interval between checks for the timeout of a UDP connection in seconds; the script option `dns_session_timeout`
/// sets it.
const CHECK_INTERVAL: u16 = 10;

/// The analyzer of one connection.
pub struct Analyzer {
    /// The oldest query without a reply, usually the only one.
    slot: Option<Box<Exchange>>,
    rare: Option<Box<RareState>>,
    last: LastMessage,
    seen_message: bool,
    confirmed: bool,
    /// The current message requested a flip of the connection, which is applied after the packet.
    flip_requested: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            cx.check_idle_every(cx.env.setting("dns_session_timeout", CHECK_INTERVAL.into()));
        }
        Self {
            slot: None,
            rare: None,
            last: LastMessage::default(),
            // The analyzer may have been dropped while idle.
            seen_message: cx.conn.services.contains(Tag::Dns as u8),
            confirmed: false,
            flip_requested: false,
        }
    }

    /// Analyzes one message; `from` is unknown for an incomplete message at the end of a stream.
    fn message(&mut self, cx: &mut Context<'_>, from: Option<Dir>, msg: &[u8]) {
        let Some(header) = Header::parse(msg) else {
            cx.weird("DNS_truncated_len_lt_hdr_len", "", SOURCE);
            return;
        };
        let netbios = cx.conn.id.orig_p == NETBIOS_PORT || cx.conn.id.resp_p == NETBIOS_PORT;
        let code = header.opcode();
        let is_tracked = opcode::is_tracked(code);
        if !is_tracked && !netbios {
            cx.weird("DNS_unknown_opcode", &code.to_string(), SOURCE);
            cx.conn.note_limit();
            return;
        }
        let first = !std::mem::replace(&mut self.seen_message, true);
        if first
            && header.is_reply()
            && from == Some(Dir::Orig)
            && !keeps_roles(self.responder(cx.conn))
        {
            cx.flip();
            self.flip_requested = true;
        }
        let context = super::message::MessageContext {
            netbios_server: netbios && self.responder_port(cx.conn) == NETBIOS_PORT,
            udp: cx.conn.proto == Proto::Udp,
            hinfo: cx.wants::<HinfoReply<'_>>(),
            caa: cx.wants::<CaaReply<'_>>(),
        };
        // The scratch buffers are moved out, so that they can be used together with `cx`.
        let mut scratch = cx.env.dns.scratch.take().unwrap_or_default();
        let Scratch { walk: buffers, rows } = &mut *scratch;
        let Self { slot, rare, last, flip_requested, .. } = self;
        let mut rows = Rows::new(slot, rare, last, *flip_requested, rows);
        let head = Head { header: &header, netbios, is_tracked };
        // As in Zeek, an incomplete message at the end of a stream counts as sent by the originator.
        let is_orig = match *flip_requested && first {
            true => from == Some(Dir::Resp),
            false => from != Some(Dir::Resp),
        };
        let has_listener = raise::has_listener(cx);
        let len = msg.len() as u64;
        let mut more_notes = Vec::new();
        if has_listener {
            // A multicast announcement starts a connection, but counts as sent by the responder.
            let is_orig = is_orig && !(first && from.is_some() && header.is_reply());
            cx.raise(|c| Message { c, is_orig, msg: head, len });
            more_notes = raise::message(cx, head, msg, is_orig, context);
        }
        rows.on_event(cx, &Message { c: Connection::CURRENT, is_orig, msg: head, len });
        let result = if has_listener {
            walk_with_listener(cx, &mut rows, head, context, buffers, msg)
        } else {
            let rows = &mut rows;
            Walk::<false> { cx, rows, head, context, rejected: false, buffers }.run(msg)
        };
        if has_listener {
            buffers.notes.append(&mut more_notes);
        }
        if !buffers.notes.is_empty() {
            report_notes(cx, &mut buffers.notes);
        }
        if result.valid && !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::Dns);
        }
        let walk::Result { ended, rejected, .. } = result;
        if has_listener {
            if ended {
                cx.raise(|c| End { c, msg: head.as_record() });
            }
            cx.raise(|c| MessageRead { c, msg: head, ended, rejected });
        }
        rows.on_event(cx, &MessageRead { c: Connection::CURRENT, msg: head, ended, rejected });
        cx.env.dns.scratch = Some(scratch);
    }

    /// Address of the responder, after a requested flip.
    #[inline]
    fn responder<'c>(&self, conn: &'c Conn) -> &'c Addr {
        if self.flip_requested { &conn.id.orig_h } else { &conn.id.resp_h }
    }

    /// Port of the responder, after a requested flip.
    #[inline]
    fn responder_port(&self, conn: &Conn) -> u16 {
        if self.flip_requested { conn.id.orig_p } else { conn.id.resp_p }
    }

    #[inline]
    fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }
}

const SOURCE: Option<&str> = Some("DNS");

/// Walks over a message whose events may have listeners.
#[cold]
#[inline(never)]
fn walk_with_listener(
    cx: &mut Context<'_>,
    rows: &mut Rows<'_>,
    head: Head<'_>,
    context: super::message::MessageContext,
    buffers: &mut Buffers,
    msg: &[u8],
) -> walk::Result {
    Walk::<true> { cx, rows, head, context, rejected: false, buffers }.run(msg)
}

/// Reports the weirds of a message.
#[cold]
fn report_notes(cx: &mut Context<'_>, notes: &mut Notes) {
    for note in notes.drain(..) {
        match note {
            MessageNote::Weird(name, addl) => cx.weird(name, &addl, SOURCE),
            MessageNote::Limit(name, addl) => {
                cx.weird(name, &addl, SOURCE);
                cx.conn.note_limit();
            }
            MessageNote::Violation(reason) => cx.violation(Tag::Dns, reason, b""),
        }
    }
}

/// Whether a first message that is a reply to this address leaves originator and responder as they are. Of the IPv4
/// multicast addresses, this includes only the block that mDNS and LLMNR use.
fn keeps_roles(to: &Addr) -> bool {
    match to.as_v4() {
        Some(b) => b[0] == 224,
        None => to.is_multicast(),
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.flip_requested = false;
        let mut framing = std::mem::take(&mut self.rare().framing[from.index()]);
        framing.push(data, |msg| self.message(cx, Some(from), msg));
        self.rare().framing[from.index()] = framing;
    }

    fn closed(&mut self, cx: &mut Context<'_>) {
        self.flip_requested = false;
        for side in 0..2 {
            let Some(rare) = &mut self.rare else { return };
            let mut framing = std::mem::take(&mut rare.framing[side]);
            if let Some(msg) = framing.flush() {
                self.message(cx, None, msg);
            }
            self.rare().framing[side] = framing;
        }
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        self.flip_requested = false;
        self.message(cx, Some(from), data);
    }

    fn is_idle(&self) -> bool {
        self.slot.is_none() && self.rare.is_none()
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.flip_requested = false;
        if let Some(rare) = &mut self.rare {
            rare.framing.swap(0, 1);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
        rows::finish(cx, self.slot.take(), self.rare.take().map(|rare| rare.waiting));
    }
}

#[cfg(test)]
mod tests;
