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
use super::session::Last;
use super::session::RareState;
use super::shared::Buffers;
use super::shared::Scratch;
use super::walk;
use super::walk::Walk;
use crate::Analyze;
use crate::Context;
use crate::Hear;
use crate::Tag;

/// Port of the NetBIOS name service.
const NETBIOS_PORT: u16 = 137;

/// Seconds between checks of a UDP connection, from its first message on.
const CHECK_EVERY: u16 = 10;

/// The analyzer of one connection.
pub struct Analyzer {
    /// The oldest query without a reply: mostly the only one.
    slot: Option<Box<Exchange>>,
    rest: Option<Box<RareState>>,
    last: Last,
    seen_message: bool,
    confirmed: bool,
    flip_asked: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            cx.check_idle_every(cx.env.setting("dns_session_timeout", CHECK_EVERY.into()));
        }
        Self {
            slot: None,
            rest: None,
            last: Last::default(),
            // Dropped while idle, and needed again.
            seen_message: cx.conn.services.contains(Tag::Dns as u8),
            confirmed: false,
            flip_asked: false,
        }
    }

    /// One message; `from` is unknown for the remains of a stream.
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
            self.flip_asked = true;
        }
        let place = super::message::MessageContext {
            netbios_server: netbios && self.responder_port(cx.conn) == NETBIOS_PORT,
            udp: cx.conn.proto == Proto::Udp,
            hinfo: cx.wants::<HinfoReply<'_>>(),
            caa: cx.wants::<CaaReply<'_>>(),
        };
        // The scratch is moved out, so that it and the context can be used together.
        let mut scratch = cx.env.dns.scratch.take().unwrap_or_default();
        let Scratch { walk: buffers, rows } = &mut *scratch;
        let Self { slot, rest, last, flip_asked, .. } = self;
        let mut rows = Rows::new(slot, rest, last, *flip_asked, rows);
        let head = Head { header: &header, netbios, is_tracked };
        // Zeek says of the remains of a stream that the originator sent them.
        let is_orig = match *flip_asked && first {
            true => from == Some(Dir::Resp),
            false => from != Some(Dir::Resp),
        };
        let is_wanted = raise::is_wanted(cx);
        let len = msg.len() as u64;
        let mut more_notes = Vec::new();
        if is_wanted {
            // An announcement by multicast begins a connection, and counts as an answer all the same.
            let is_orig = is_orig && !(first && from.is_some() && header.is_reply());
            cx.raise(|c| Message { c, is_orig, msg: head, len });
            more_notes = raise::message(cx, head, msg, is_orig, place);
        }
        rows.hear(cx, &Message { c: Connection::CURRENT, is_orig, msg: head, len });
        let result = if is_wanted {
            read_with_listener(cx, &mut rows, head, place, buffers, msg)
        } else {
            let rows = &mut rows;
            Walk::<false> { cx, rows, head, place, rejected: false, buffers }.run(msg)
        };
        if is_wanted {
            buffers.notes.append(&mut more_notes);
        }
        if !buffers.notes.is_empty() {
            report_notes(cx, &mut buffers.notes);
        }
        if result.sound && !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::Dns);
        }
        let walk::Result { ended, rejected, .. } = result;
        if is_wanted {
            if ended {
                cx.raise(|c| End { c, msg: head.as_record() });
            }
            cx.raise(|c| MessageRead { c, msg: head, ended, rejected });
        }
        rows.hear(cx, &MessageRead { c: Connection::CURRENT, msg: head, ended, rejected });
        cx.env.dns.scratch = Some(scratch);
    }

    /// The responder, should a flip be under way.
    #[inline]
    fn responder<'c>(&self, conn: &'c Conn) -> &'c Addr {
        if self.flip_asked { &conn.id.orig_h } else { &conn.id.resp_h }
    }

    /// Its port.
    #[inline]
    fn responder_port(&self, conn: &Conn) -> u16 {
        if self.flip_asked { conn.id.orig_p } else { conn.id.resp_p }
    }

    #[inline]
    fn rest(&mut self) -> &mut RareState {
        self.rest.get_or_insert_default()
    }
}

const SOURCE: Option<&str> = Some("DNS");

/// Walks over a message of which listeners may hear.
#[cold]
#[inline(never)]
fn read_with_listener(
    cx: &mut Context<'_>,
    rows: &mut Rows<'_>,
    head: Head<'_>,
    place: super::message::MessageContext,
    buffers: &mut Buffers,
    msg: &[u8],
) -> walk::Result {
    Walk::<true> { cx, rows, head, place, rejected: false, buffers }.run(msg)
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

/// Whether a reply to this address is no sign of a wrong originator. Of IPv4's multicast addresses
/// only the block that mDNS and LLMNR use counts.
fn keeps_roles(to: &Addr) -> bool {
    match to.as_v4() {
        Some(b) => b[0] == 224,
        None => to.is_multicast(),
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.flip_asked = false;
        let mut framing = std::mem::take(&mut self.rest().framing[from.index()]);
        framing.push(data, |msg| self.message(cx, Some(from), msg));
        self.rest().framing[from.index()] = framing;
    }

    fn closed(&mut self, cx: &mut Context<'_>) {
        self.flip_asked = false;
        for side in 0..2 {
            let Some(rest) = &mut self.rest else { return };
            let mut framing = std::mem::take(&mut rest.framing[side]);
            if let Some(msg) = framing.flush() {
                self.message(cx, None, msg);
            }
            self.rest().framing[side] = framing;
        }
    }

    fn datagram(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8], _len: u32) {
        self.flip_asked = false;
        self.message(cx, Some(from), data);
    }

    fn is_idle(&self) -> bool {
        self.slot.is_none() && self.rest.is_none()
    }

    fn flip(&mut self, _cx: &mut Context<'_>) {
        self.flip_asked = false;
        if let Some(rest) = &mut self.rest {
            rest.framing.swap(0, 1);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        cx.raise_session_done();
        rows::finish(cx, self.slot.take(), self.rest.take().map(|rest| rest.waiting));
    }
}

#[cfg(test)]
mod tests;
