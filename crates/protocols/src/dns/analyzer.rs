use gannet_base::Addr;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_flow::Conn;

use super::events::End;
use super::framing::Framing;
use super::message::Header;
use super::message::Note;
use super::message::Notes;
use super::names;
use super::names::opcode;
use super::raise;
use super::rows;
use super::rows::Answers;
use super::session::Exchange;
use super::session::Pending;
use super::session::Place;
use super::session::Spare;
use super::session::flag;
use super::walk;
use super::walk::Walk;
use crate::Analyze;
use crate::Context;
use crate::Tag;

/// Port of the NetBIOS name service.
const NETBIOS_PORT: u16 = 137;

/// Seconds between looks at a UDP connection, from its first message on.
const LOOK_EVERY: u16 = 10;

/// The analyzer is released after this many idle seconds: slightly less than the interval of
/// checks, so that a query and its reply need only one check.
const IDLE: u16 = 9;

/// The analyzer of one connection.
pub struct Analyzer {
    /// The oldest query without a reply: mostly the only one.
    slot: Option<Box<Exchange>>,
    rest: Option<Box<Rest>>,
    /// Where the exchange of the latest message waits.
    last: Place,
    last_id: u16,
    seen_message: bool,
    confirmed: bool,
    flip_asked: bool,
}

/// What most connections do without.
#[derive(Default)]
struct Rest {
    queries: Pending,
    replies: Pending,
    framing: [Framing; 2],
}

/// Buffers for one message.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) question: Vec<u8>,
    pub(super) owner: Vec<u8>,
    pub(super) names: Vec<u8>,
    pub(super) answers: Answers,
    pub(super) notes: Notes,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        if cx.conn.proto == Proto::Udp {
            cx.conn.set_timeout(IDLE);
            cx.conn.look_every = LOOK_EVERY;
        }
        Self {
            slot: None,
            rest: None,
            last: Place::None,
            last_id: 0,
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
        let tracked = matches!(code, opcode::QUERY | opcode::NOTIFY | opcode::UPDATE);
        if !tracked && !netbios {
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
        let place = super::records::Place {
            netbios_server: netbios && self.responder_port(cx.conn) == NETBIOS_PORT,
            udp: cx.conn.proto == Proto::Udp,
        };
        let is_wanted = raise::is_wanted(cx);
        let mut more_notes = Vec::new();
        if is_wanted {
            let from = if self.flip_asked && first { from.map(Dir::other) } else { from };
            more_notes = raise::message(cx, &header, msg, from, netbios, place);
        }
        // The scratch is moved out, so that it and the context can be used together.
        let mut scratch = cx.env.dns.scratch.take().unwrap_or_default();
        scratch.answers.clear();
        let spare = &mut cx.env.dns.spare;
        let multicast = self.responder(cx.conn).is_multicast();
        let mut joined = tracked.then(|| self.join(cx.now, multicast, &header, netbios, spare));
        let exchange = match &mut joined {
            Some((exchange, _)) => {
                if let Some(kept) = exchange.answers.take() {
                    scratch.answers = *kept;
                }
                Some(&mut **exchange)
            }
            None => None,
        };
        let walk = Walk {
            header: &header,
            now: cx.now,
            netbios,
            place,
            exchange,
            rejected: false,
            scratch: &mut scratch,
        };
        let result = walk.run(msg);
        scratch.notes.append(&mut more_notes);
        self.report(cx, &mut scratch.notes, result.sound);
        if is_wanted && result.ended {
            cx.raise(|c| End { c, msg: raise::header_of(&header, netbios) });
        }
        match joined {
            Some((mut exchange, place)) => {
                exchange.set(flag::REJECTED, exchange.has(flag::REJECTED) || result.rejected);
                self.settle(cx, &header, exchange, place, result.ended, &mut scratch.answers);
            }
            None => self.touch_last(cx, &header, &result),
        }
        cx.env.dns.scratch = Some(scratch);
    }

    /// Reports the weirds, and confirms the protocol.
    fn report(&mut self, cx: &mut Context<'_>, notes: &mut Notes, sound: bool) {
        for note in notes.drain(..) {
            match note {
                Note::Weird(name, addl) => cx.weird(name, &addl, SOURCE),
                Note::Limit(name, addl) => {
                    cx.weird(name, &addl, SOURCE);
                    cx.conn.note_limit();
                }
                Note::Violation(reason) => cx.violation(Tag::Dns, reason, b""),
            }
        }
        if sound && !self.confirmed {
            self.confirmed = true;
            cx.confirm(Tag::Dns);
        }
    }

    /// The exchange that a message belongs to, and where it goes if it stays incomplete.
    fn join(
        &mut self,
        now: Time,
        multicast: bool,
        header: &Header,
        netbios: bool,
        spare: &mut Spare,
    ) -> (Box<Exchange>, Place) {
        let mut fresh = || spare.take(now, header.id);
        let (mut exchange, place) = if multicast {
            let mut exchange = fresh();
            exchange.flags = flag::SAW_BOTH;
            (exchange, Place::None)
        } else if header.is_reply() {
            match self.take_query(header.id) {
                Some(exchange) => (exchange, Place::None),
                None => (fresh(), Place::Replies),
            }
        } else {
            match self.rest.as_mut().and_then(|r| r.replies.pop(header.id)) {
                Some(exchange) => (exchange, Place::None),
                None if self.slot.is_none() => (fresh(), Place::Slot),
                None => (fresh(), Place::Queries),
            }
        };
        if header.is_reply() {
            exchange.rcode = header.rcode();
            exchange.flags |= flag::RCODE;
            if header.rcode() != 0 && header.questions == 0 {
                exchange.flags |= flag::REJECTED;
            }
        }
        exchange.opcode = header.opcode();
        exchange.set(flag::NETBIOS, netbios);
        (exchange, place)
    }

    /// The oldest query of an id.
    fn take_query(&mut self, id: u16) -> Option<Box<Exchange>> {
        if self.slot.as_ref().is_none_or(|e| e.trans_id != id) {
            return self.rest.as_mut()?.queries.pop(id);
        }
        let exchange = self.slot.take();
        if let Some(rest) = &mut self.rest {
            // Refilled, so that a later query of a waiting id does not get in front of it.
            self.slot = rest.queries.pop(id).or_else(|| rest.queries.pop_any());
        }
        exchange
    }

    /// A message was read: its exchange is complete, or waits.
    fn settle(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        mut exchange: Box<Exchange>,
        place: Place,
        ended: bool,
        answers: &mut Answers,
    ) {
        let flipped = self.flip_asked;
        if ended {
            exchange.flags |= saw(header);
        }
        if ended && exchange.has(flag::SAW_BOTH) {
            rows::log(cx, flipped, &exchange, answers);
            cx.env.dns.spare.give(exchange);
            self.last = Place::None;
            return;
        }
        if !answers.is_empty() {
            exchange.answers = Some(Box::new(std::mem::take(answers)));
        }
        (self.last, self.last_id) = (place, header.id);
        let limit = cx.env.pending.of(Tag::Dns);
        match place {
            Place::None => {}
            Place::Slot => self.slot = Some(exchange),
            Place::Queries => {
                self.rest().queries.push(exchange, limit, |e| log_kept(cx, flipped, &e));
                cx.conn.note_table(self.rest().queries.ids());
            }
            Place::Replies => {
                self.rest().replies.push(exchange, limit, |e| log_kept(cx, flipped, &e));
                cx.conn.note_table(self.rest().replies.ids());
            }
        }
    }

    /// A NetBIOS message that is not joined (a release, a wait for acknowledgement): like Zeek,
    /// this adds its facts to the previous exchange.
    fn touch_last(&mut self, cx: &mut Context<'_>, header: &Header, result: &walk::Result) {
        let last_id = self.last_id;
        let exchange = match self.last {
            Place::None => None,
            Place::Slot => self.slot.as_deref_mut(),
            Place::Queries => self.rest.as_mut().and_then(|r| r.queries.last_mut(last_id)),
            Place::Replies => self.rest.as_mut().and_then(|r| r.replies.last_mut(last_id)),
        };
        let Some(exchange) = exchange else { return };
        if result.rejected {
            exchange.flags |= flag::REJECTED;
        }
        if result.ended {
            exchange.flags |= saw(header);
            if exchange.has(flag::SAW_BOTH) {
                log_kept(cx, self.flip_asked, exchange);
                self.last = Place::None;
            }
        }
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

    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }
}

const SOURCE: Option<&str> = Some("DNS");

/// Whether a reply to this address is no sign of a wrong originator. Of IPv4's multicast addresses
/// only the block that mDNS and LLMNR use counts.
fn keeps_roles(to: &Addr) -> bool {
    match to.as_v4() {
        Some(b) => b[0] == 224,
        None => to.is_multicast(),
    }
}

fn saw(header: &Header) -> u16 {
    if header.is_reply() { flag::SAW_REPLY } else { flag::SAW_QUERY }
}

fn log_kept(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange) {
    match &exchange.answers {
        Some(answers) => rows::log(cx, flipped, exchange, answers),
        None => rows::log(cx, flipped, exchange, &Answers::default()),
    }
}

/// Fills in the fields of a question.
pub(super) fn ask(
    exchange: &mut Exchange,
    header: &Header,
    name: &[u8],
    kind: u16,
    class: u16,
    netbios: bool,
) {
    exchange.set(flag::RD, header.recursion_desired());
    exchange.set(flag::TC, header.truncated());
    exchange.set(flag::NETBIOS_TYPE, netbios);
    exchange.flags |= flag::QUESTION | flag::NAME;
    exchange.z = header.z();
    exchange.qtype = kind;
    exchange.qclass = class;
    match netbios.then(|| names::netbios_name(name)).flatten() {
        Some((plain, len)) => exchange.query.set(&plain[..len]),
        None => exchange.query.set(name),
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
        if let Some(exchange) = self.slot.take() {
            log_kept(cx, false, &exchange);
        }
        if let Some(mut rest) = self.rest.take() {
            rest.queries.drain(|e| log_kept(cx, false, &e));
            rest.replies.drain(|e| log_kept(cx, false, &e));
        }
    }
}

#[cfg(test)]
mod tests;
