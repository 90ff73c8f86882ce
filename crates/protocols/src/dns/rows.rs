//! The row of dns.log, and what records look like in it.

use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_flow::Conn;
use gannet_log::row;
use gannet_log::write_addr;
use gannet_log::write_count;

use super::answers::AnswerTexts;
use super::answers::AnswerTtls;
use super::answers::Answers;
use super::events::Message;
use super::events::MessageRead;
use super::events::QuestionRead;
use super::events::RecordRead;
use super::message::Header;
use super::name::Name;
use super::names;
use super::names::Coded;
use super::names::class;
use super::names::rr;
use super::parts::Owner;
use super::parts::Section;
use super::records::Data;
use super::records::Strings;
use super::session::Exchange;
use super::session::ExchangePosition;
use super::session::Last;
use super::session::RareState;
use super::session::Waiting;
use super::session::flag;
use super::shared::RowBuffers;
use crate::Context;
use crate::OnEvent;
use crate::Tag;
use crate::context;

row! {
    /// One row for each DNS query with its reply, or either alone.
    pub struct Dns<'a> = "dns" {
        /// Time of the query, or of the reply if no query was seen.
        ts: Time = "ts",
        /// The connection.
        uid: &'a Uid = "uid",
        /// Its endpoints.
        id: &'a ConnId = "id",
        /// Transport.
        proto: Proto = "proto",
        /// Transaction id, chosen by the client.
        trans_id: u16 = "trans_id",
        /// From the query to its first answer.
        rtt: Option<Interval> = "rtt",
        /// The name asked for, in lower case.
        query: Option<&'a [u8]> = "query",
        /// Class asked for, as a number.
        qclass: Option<u16> = "qclass",
        /// Class asked for.
        qclass_name: Option<Coded> = "qclass_name",
        /// Type asked for, as a number.
        qtype: Option<u16> = "qtype",
        /// Type asked for.
        qtype_name: Option<Coded> = "qtype_name",
        /// Response code, as a number.
        rcode: Option<u8> = "rcode",
        /// Response code.
        rcode_name: Option<Coded> = "rcode_name",
        /// The server is an authority for the name.
        aa: bool = "AA",
        /// The query was truncated.
        tc: bool = "TC",
        /// The client asked for recursion.
        rd: bool = "RD",
        /// The server offers recursion.
        ra: bool = "RA",
        /// Reserved bits of the query's header (AD and CD among them).
        z: u8 = "Z",
        /// The answers, as text.
        answers: AnswerTexts<'a> = "answers",
        /// How long each answer may be cached.
        ttls: AnswerTtls<'a> = "TTLs",
        /// The server rejected the query.
        rejected: bool = "rejected",
        /// Operation, as a number.
        opcode: u8 = "opcode",
        /// Operation.
        opcode_name: Coded = "opcode_name",
    }
}

/// What the rows of one message are made from: the messages of its connection that wait for their partners.
pub(super) struct Rows<'a> {
    slot: &'a mut Option<Box<Exchange>>,
    rest: &'a mut Option<Box<RareState>>,
    last: &'a mut Last,
    /// The connection's flip is under way.
    flipped: bool,
    scratch: &'a mut RowBuffers,
    /// The exchange of the message, unless it is not joined with others, and where it goes if it stays incomplete.
    current: Option<(Box<Exchange>, ExchangePosition)>,
}

impl<'a> Rows<'a> {
    /// For one message.
    #[inline]
    pub(super) fn new(
        slot: &'a mut Option<Box<Exchange>>,
        rest: &'a mut Option<Box<RareState>>,
        last: &'a mut Last,
        flipped: bool,
        scratch: &'a mut RowBuffers,
    ) -> Self {
        Self { slot, rest, last, flipped, scratch, current: None }
    }

    /// The exchange that a message belongs to, and where it goes if it stays incomplete.
    #[inline]
    fn join(&mut self, cx: &mut Context<'_>, header: &Header) -> (Box<Exchange>, ExchangePosition) {
        let responder = if self.flipped { &cx.conn.id.orig_h } else { &cx.conn.id.resp_h };
        let (is_multicast, is_reply) = (responder.is_multicast(), header.is_reply());
        let waiting = match (is_multicast, is_reply) {
            (true, _) => None,
            (false, true) => self.take_query(header.id),
            (false, false) => self.rest.as_mut().and_then(|r| r.waiting.replies.pop(header.id)),
        };
        if let Some(exchange) = waiting {
            return (exchange, ExchangePosition::None);
        }
        let mut exchange = cx.env.dns.spare.take(cx.now, header.id);
        if is_multicast {
            exchange.flags = flag::SAW_BOTH;
        }
        let place = match (is_multicast, is_reply) {
            (true, _) => ExchangePosition::None,
            (false, true) => ExchangePosition::Replies,
            (false, false) if self.slot.is_none() => ExchangePosition::Slot,
            (false, false) => ExchangePosition::Queries,
        };
        (exchange, place)
    }

    /// The oldest query of an id.
    #[inline]
    fn take_query(&mut self, id: u16) -> Option<Box<Exchange>> {
        if self.slot.as_ref().is_none_or(|e| e.trans_id != id) {
            return self.rest.as_mut()?.waiting.queries.pop(id);
        }
        let exchange = self.slot.take();
        if let Some(rest) = &mut self.rest {
            // Refilled, so that a later query of a waiting id does not get in front of it.
            let queries = &mut rest.waiting.queries;
            *self.slot = queries.pop(id).or_else(|| queries.pop_any());
        }
        exchange
    }

    fn waiting(&mut self) -> &mut Waiting {
        &mut self.rest.get_or_insert_default().waiting
    }

    /// A message was read: its exchange is complete, or waits.
    #[inline]
    fn settle(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        (ended, rejected): (bool, bool),
        mut exchange: Box<Exchange>,
        place: ExchangePosition,
    ) {
        let flipped = self.flipped;
        if rejected {
            exchange.flags |= flag::REJECTED;
        }
        if ended {
            exchange.flags |= saw(header);
        }
        if ended && exchange.has(flag::SAW_BOTH) {
            log(cx, flipped, &exchange, &self.scratch.answers);
            cx.env.dns.spare.give(exchange);
            self.last.place = ExchangePosition::None;
            return;
        }
        if !self.scratch.answers.is_empty() {
            exchange.answers = Some(Box::new(std::mem::take(&mut self.scratch.answers)));
        }
        *self.last = Last { place, id: header.id };
        let limit = cx.env.pending.of(Tag::Dns);
        match place {
            ExchangePosition::None => {}
            ExchangePosition::Slot => *self.slot = Some(exchange),
            ExchangePosition::Queries => {
                let queries = &mut self.waiting().queries;
                queries.push(exchange, limit, |e| log_kept(cx, flipped, &e));
                cx.conn.note_table(queries.ids());
            }
            ExchangePosition::Replies => {
                let replies = &mut self.waiting().replies;
                replies.push(exchange, limit, |e| log_kept(cx, flipped, &e));
                cx.conn.note_table(replies.ids());
            }
        }
    }

    /// A NetBIOS message that is not joined (a release, a wait for acknowledgement): like Zeek,
    /// this adds its facts to the previous exchange.
    #[cold]
    fn touch_last(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        (ended, rejected): (bool, bool),
    ) {
        let Last { place, id } = *self.last;
        let waiting = self.rest.as_mut().map(|r| &mut r.waiting);
        let exchange = match place {
            ExchangePosition::None => None,
            ExchangePosition::Slot => self.slot.as_deref_mut(),
            ExchangePosition::Queries => waiting.and_then(|w| w.queries.last_mut(id)),
            ExchangePosition::Replies => waiting.and_then(|w| w.replies.last_mut(id)),
        };
        let Some(exchange) = exchange else { return };
        if rejected {
            exchange.flags |= flag::REJECTED;
        }
        if ended {
            exchange.flags |= saw(header);
            if exchange.has(flag::SAW_BOTH) {
                log_kept(cx, self.flipped, exchange);
                self.last.place = ExchangePosition::None;
            }
        }
    }
}

#[inline]
fn saw(header: &Header) -> u16 {
    if header.is_reply() { flag::SAW_REPLY } else { flag::SAW_QUERY }
}

impl OnEvent<Message<'_>> for Rows<'_> {
    #[inline(always)]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Message<'_>) {
        let header = event.msg.header;
        self.scratch.answers.clear();
        if !event.msg.is_tracked {
            return;
        }
        let (mut exchange, place) = self.join(cx, header);
        if header.is_reply() {
            exchange.rcode = header.rcode();
            exchange.flags |= flag::RCODE;
            if header.rcode() != 0 && header.questions == 0 {
                exchange.flags |= flag::REJECTED;
            }
        }
        exchange.opcode = header.opcode();
        exchange.set(flag::NETBIOS, event.msg.netbios);
        if let Some(kept) = exchange.answers.take() {
            self.scratch.answers = *kept;
        }
        self.current = Some((exchange, place));
    }
}

impl OnEvent<QuestionRead<'_>> for Rows<'_> {
    #[inline(always)]
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &QuestionRead<'_>) {
        let Some((exchange, _)) = &mut self.current else { return };
        let header = event.msg.header;
        exchange.take_over(flag::RD | flag::TC, header);
        exchange.set(flag::NETBIOS_TYPE, event.is_netbios_type);
        exchange.flags |= flag::QUESTION | flag::NAME;
        exchange.z = header.z();
        exchange.qtype = event.qtype;
        exchange.qclass = event.qclass;
        match event.is_netbios_type.then(|| names::netbios_name(event.query)).flatten() {
            Some((plain, len)) => exchange.query.set(&plain[..len]),
            None => exchange.query.set(event.query),
        }
    }
}

impl OnEvent<RecordRead<'_>> for Rows<'_> {
    #[inline(always)]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &RecordRead<'_>) {
        let Some((exchange, _)) = &mut self.current else { return };
        let header = event.msg.header;
        if !header.is_reply() {
            return; // the client's side does not send replies
        }
        let RowBuffers { answers, owner } = &mut *self.scratch;
        if !exchange.has(flag::NAME) {
            exchange.query = Name::new(event.owner.read(owner));
            exchange.flags |= flag::NAME;
        }
        exchange.take_over(flag::AA | flag::RA, header);
        if exchange.rtt == Interval::ZERO {
            exchange.rtt = cx.now.micros_since(exchange.ts);
        }
        answers.push(event.ttl, |out| match (event.section, event.data.read) {
            (Section::Answers, Some(Data::A(a))) => write_addr(out, *a),
            (Section::Answers, Some(data)) => write_answer(out, data, event.owner, owner),
            _ => write_update(out, event, owner),
        });
    }
}

impl OnEvent<MessageRead<'_>> for Rows<'_> {
    #[inline(always)]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &MessageRead<'_>) {
        let (header, outcome) = (event.msg.header, (event.ended, event.rejected));
        match self.current.take() {
            Some((exchange, place)) => self.settle(cx, header, outcome, exchange, place),
            None => self.touch_last(cx, header, outcome),
        }
    }
}

/// The connection ends: what waits has rows of its own.
pub(super) fn finish(cx: &mut Context<'_>, slot: Option<Box<Exchange>>, rest: Option<Waiting>) {
    if let Some(exchange) = slot {
        log_kept(cx, false, &exchange);
    }
    if let Some(mut waiting) = rest {
        waiting.queries.drain(|e| log_kept(cx, false, &e));
        waiting.replies.drain(|e| log_kept(cx, false, &e));
    }
}

fn log_kept(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange) {
    match &exchange.answers {
        Some(answers) => log(cx, flipped, exchange, answers),
        None => log(cx, flipped, exchange, &Answers::default()),
    }
}

/// Writes the row of an exchange; `flipped` if the connection's flip is under way.
fn log(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange, answers: &Answers) {
    let flip;
    let id = match flipped {
        false => &cx.conn.id,
        true => {
            flip = cx.conn.id.flipped();
            &flip
        }
    };
    let row = row(cx.conn, id, exchange, answers);
    if !context::log_in_place(cx.env, cx.now, &row) {
        log_whole(cx, flipped, exchange, answers);
    }
}

#[cold]
#[inline(never)]
fn log_whole(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange, answers: &Answers) {
    let id = if flipped { cx.conn.id.flipped() } else { cx.conn.id };
    context::log(cx.env, cx.now, &row(cx.conn, &id, exchange, answers));
}

#[inline(always)]
fn row<'a>(
    conn: &'a Conn,
    id: &'a ConnId,
    exchange: &'a Exchange,
    answers: &'a Answers,
) -> Dns<'a> {
    let has = |mask| exchange.has(mask);
    let when = |mask| has(mask).then_some(());
    let qtype_name = |number| match has(flag::NETBIOS_TYPE) {
        true => names::netbios_query_type(number),
        false => names::query_type(number),
    };
    Dns {
        ts: exchange.ts,
        uid: &conn.uid,
        id,
        proto: conn.proto,
        trans_id: exchange.trans_id,
        rtt: (exchange.rtt != Interval::ZERO).then_some(exchange.rtt),
        query: when(flag::NAME).map(|()| exchange.query.as_bytes()),
        qclass: when(flag::QUESTION).map(|()| exchange.qclass),
        qclass_name: when(flag::QUESTION).map(|()| names::query_class(exchange.qclass)),
        qtype: when(flag::QUESTION).map(|()| exchange.qtype),
        qtype_name: when(flag::QUESTION).map(|()| qtype_name(exchange.qtype)),
        rcode: when(flag::RCODE).map(|()| exchange.rcode),
        rcode_name: when(flag::RCODE).map(|()| names::response_code(exchange.rcode)),
        aa: has(flag::AA),
        tc: has(flag::TC),
        rd: has(flag::RD),
        ra: has(flag::RA),
        z: exchange.z,
        answers: AnswerTexts(answers),
        ttls: AnswerTtls(answers),
        rejected: has(flag::REJECTED),
        opcode: exchange.opcode,
        opcode_name: names::operation(exchange.opcode, has(flag::NETBIOS)),
    }
}

/// Appends the text of an answer.
fn write_answer(out: &mut Vec<u8>, data: &Data<'_>, owner: Owner<'_>, room: &mut Vec<u8>) {
    let owner = if let Data::Nsec(_) = data { owner.read(room) } else { b"" };
    write_data(out, data, owner, false);
}

/// Appends the text of a part of an update.
#[cold]
fn write_update(out: &mut Vec<u8>, event: &RecordRead<'_>, room: &mut Vec<u8>) {
    let (owner, start) = (event.owner.read(room), out.len());
    if let Some(data) = event.data.read {
        write_data(out, data, owner, true);
        let text = &out[start..];
        if !text.is_empty() && !text.starts_with(b"del:") {
            out.splice(start..start, *b"add: ");
        }
        return;
    }
    let any = event.qtype == rr::ANY;
    if event.section == Section::Updates {
        out.extend_from_slice(b"del: RRSet ");
        if any {
            out.extend_from_slice(b"* ");
            out.extend_from_slice(owner);
        } else {
            names::query_type(event.qtype).write(out);
        }
        return;
    }
    let (what, typed) = match event.qclass {
        class::NONE if any => ("NameNotInUse ", false),
        class::ANY if any => ("NameInUse ", false),
        class::NONE => ("NoRRSet ", true),
        _ => ("RRSetExists ", true),
    };
    out.extend_from_slice(b"pre: ");
    out.extend_from_slice(what.as_bytes());
    if typed {
        names::query_type(event.qtype).write(out);
        out.push(b' ');
    }
    out.extend_from_slice(owner);
}

/// Appends a record's text. `owner` is the record's name; an address that an update adds says whose
/// it is (`update`).
fn write_data(out: &mut Vec<u8>, data: &Data<'_>, owner: &[u8], update: bool) {
    match *data {
        Data::Nothing | Data::Wks => {}
        Data::A(a) => write_address(out, b"A ", a, owner, update),
        Data::Aaaa(a) => write_address(out, b"AAAA ", a, owner, update),
        Data::A6(a) => write_address(out, b"A6 ", a, owner, update),
        Data::Name(name) => out.extend_from_slice(name),
        Data::Txt(strings) => write_strings(out, b"TXT ", strings),
        Data::Spf(strings) => write_strings(out, b"SPF ", strings),
        Data::Naptr { order, preference, flags, service, regexp, replacement } => {
            out.extend_from_slice(b"NAPTR ");
            write_count(out, u64::from(order));
            out.push(b' ');
            write_count(out, u64::from(preference));
            for text in [flags, service, regexp] {
                out.push(b' ');
                out.extend_from_slice(text);
            }
            if !regexp.is_empty() && !replacement.is_empty() {
                out.push(b' ');
            }
            out.extend_from_slice(replacement);
        }
        Data::Rrsig { covered, signer } => {
            out.extend_from_slice(b"RRSIG ");
            write_count(out, u64::from(covered));
            out.push(b' ');
            out.extend_from_slice(if signer.is_empty() { b"<Root>" } else { signer });
        }
        Data::Dnskey { algorithm } => {
            out.extend_from_slice(b"DNSKEY ");
            write_count(out, u64::from(algorithm));
        }
        Data::Nsec(next) => {
            for part in [b"NSEC ", owner, b" ", next] {
                out.extend_from_slice(part);
            }
        }
        Data::Nsec3 => out.extend_from_slice(b"NSEC3"),
        Data::Nsec3Param => out.extend_from_slice(b"NSEC3PARAM"),
        Data::Ds { algorithm, digest } => {
            out.extend_from_slice(b"DS ");
            write_count(out, u64::from(algorithm));
            out.push(b' ');
            write_count(out, u64::from(digest));
        }
        Data::BindSigning => out.extend_from_slice(b"BIND9 signing signal"),
        Data::Sshfp(fingerprint) => {
            out.extend_from_slice(b"SSHFP: ");
            for b in fingerprint {
                out.push(b"0123456789abcdef"[usize::from(b >> 4)]);
                out.push(b"0123456789abcdef"[usize::from(b & 15)]);
            }
        }
        Data::Loc(size, horizontal, vertical) => {
            out.extend_from_slice(b"LOC: ");
            for number in [size, horizontal, vertical] {
                out.push(b' ');
                write_count(out, u64::from(number));
            }
        }
        Data::Unknown(kind) => {
            out.extend_from_slice(b"<unknown type=");
            write_count(out, u64::from(kind));
            out.push(b'>');
        }
    }
}

fn write_address(
    out: &mut Vec<u8>,
    kind: &[u8],
    address: gannet_base::Addr,
    owner: &[u8],
    update: bool,
) {
    if update {
        for part in [kind, owner, b" "] {
            out.extend_from_slice(part);
        }
    }
    write_addr(out, address);
}

fn write_strings(out: &mut Vec<u8>, kind: &[u8], strings: Strings<'_>) {
    for (i, text) in strings.enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(kind);
        write_count(out, text.len() as u64);
        out.push(b' ');
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Addr;
    use gannet_log::Value as _;

    fn text(data: Data<'_>, update: bool) -> String {
        let mut out = Vec::new();
        write_data(&mut out, &data, b"own.er", update);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_of_records() {
        let a = Addr::v4([192, 0, 2, 1]);
        assert_eq!(text(Data::A(a), false), "192.0.2.1");
        assert_eq!(text(Data::A(a), true), "A own.er 192.0.2.1");
        assert_eq!(text(Data::Aaaa("::1".parse().unwrap()), true), "AAAA own.er ::1");
        assert_eq!(text(Data::Wks, false), "");
        assert_eq!(text(Data::Nsec(b"next"), false), "NSEC own.er next");
        assert_eq!(text(Data::Rrsig { covered: 48, signer: b"" }, false), "RRSIG 48 <Root>");
        assert_eq!(text(Data::Sshfp(&[0xab, 1]), false), "SSHFP: ab01");
        assert_eq!(text(Data::Loc(18, 22, 19), false), "LOC:  18 22 19");
        assert_eq!(text(Data::Unknown(256), false), "<unknown type=256>");
        let mut naptr = Data::Naptr {
            order: 1,
            preference: 2,
            flags: b"u",
            service: b"s",
            regexp: b"!x!",
            replacement: b"r",
        };
        assert_eq!(text(naptr, false), "NAPTR 1 2 u s !x! r");
        if let Data::Naptr { regexp, .. } = &mut naptr {
            *regexp = b"";
        }
        assert_eq!(text(naptr, false), "NAPTR 1 2 u s r");
    }

    #[test]
    fn empty_texts_are_no_answers() {
        let mut answers = Answers::default();
        answers.push(Interval::from_secs(60), |_| {});
        assert!(AnswerTexts(&answers).is_unset() && AnswerTtls(&answers).is_unset());
        answers.push(Interval::from_secs(60), |out| out.extend_from_slice(b"x"));
        assert!(!AnswerTexts(&answers).is_unset());
    }
}
