//! The row of dns.log, and the text of records in it.

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
use super::names::NumberName;
use super::names::class;
use super::names::rr;
use super::parts::Owner;
use super::parts::Section;
use super::records::Data;
use super::records::Strings;
use super::session::Exchange;
use super::session::ExchangePosition;
use super::session::LastMessage;
use super::session::RareState;
use super::session::Waiting;
use super::session::flag;
use super::shared::RowBuffers;
use crate::Context;
use crate::OnEvent;
use crate::Tag;
use crate::context;

row! {
    /// One row for each DNS query and its reply, or for an unpaired message.
    pub struct Dns<'a> = "dns" {
        /// Time of the query, or of the reply if no query was seen.
        ts: Time = "ts",
        /// The connection.
        uid: &'a Uid = "uid",
        /// Endpoints of the connection.
        id: &'a ConnId = "id",
        /// Transport.
        proto: Proto = "proto",
        /// Transaction ID, chosen by the client.
        trans_id: u16 = "trans_id",
        /// Time from the query to its first answer.
        rtt: Option<Interval> = "rtt",
        /// The queried name, in lower case.
        query: Option<&'a [u8]> = "query",
        /// Requested class, as a number.
        qclass: Option<u16> = "qclass",
        /// Requested class.
        qclass_name: Option<NumberName> = "qclass_name",
        /// Requested type, as a number.
        qtype: Option<u16> = "qtype",
        /// Requested type.
        qtype_name: Option<NumberName> = "qtype_name",
        /// Response code, as a number.
        rcode: Option<u8> = "rcode",
        /// Response code.
        rcode_name: Option<NumberName> = "rcode_name",
        /// The server is authoritative for the name.
        aa: bool = "AA",
        /// The query was truncated.
        tc: bool = "TC",
        /// The client requested recursion.
        rd: bool = "RD",
        /// The server offers recursion.
        ra: bool = "RA",
        /// Reserved bits of the query's header (AD and CD among them).
        z: u8 = "Z",
        /// The answers, as text.
        answers: AnswerTexts<'a> = "answers",
        /// Time that each answer may be cached.
        ttls: AnswerTtls<'a> = "TTLs",
        /// The server rejected the query.
        rejected: bool = "rejected",
        /// Operation code, as a number.
        opcode: u8 = "opcode",
        /// Name of the operation.
        opcode_name: NumberName = "opcode_name",
    }
}

/// Receiver of the events of one message, with the unpaired messages of its connection.
pub(super) struct Rows<'a> {
    slot: &'a mut Option<Box<Exchange>>,
    rare: &'a mut Option<Box<RareState>>,
    last: &'a mut LastMessage,
    /// A flip of the connection was requested, but is not applied yet.
    flipped: bool,
    scratch: &'a mut RowBuffers,
    /// The exchange of the message, and the queue for it if it stays incomplete; `None` if the message is not joined with others.
    current: Option<(Box<Exchange>, ExchangePosition)>,
}

impl<'a> Rows<'a> {
    /// For one message.
    #[inline]
    pub(super) fn new(
        slot: &'a mut Option<Box<Exchange>>,
        rare: &'a mut Option<Box<RareState>>,
        last: &'a mut LastMessage,
        flipped: bool,
        scratch: &'a mut RowBuffers,
    ) -> Self {
        Self { slot, rare, last, flipped, scratch, current: None }
    }

    /// Finds or creates the exchange of a message. Returns it with the queue for it if it stays incomplete.
    #[inline]
    fn join(&mut self, cx: &mut Context<'_>, header: &Header) -> (Box<Exchange>, ExchangePosition) {
        let responder = if self.flipped { &cx.conn.id.orig_h } else { &cx.conn.id.resp_h };
        let (is_multicast, is_reply) = (responder.is_multicast(), header.is_reply());
        let waiting = match (is_multicast, is_reply) {
            (true, _) => None,
            (false, true) => self.take_query(header.id),
            (false, false) => self.rare.as_mut().and_then(|r| r.waiting.replies.pop(header.id)),
        };
        if let Some(exchange) = waiting {
            return (exchange, ExchangePosition::None);
        }
        let mut exchange = cx.env.dns.exchanges.get(cx.now, header.id);
        if is_multicast {
            exchange.flags = flag::SAW_BOTH;
        }
        let position = match (is_multicast, is_reply) {
            (true, _) => ExchangePosition::None,
            (false, true) => ExchangePosition::Replies,
            (false, false) if self.slot.is_none() => ExchangePosition::Slot,
            (false, false) => ExchangePosition::Queries,
        };
        (exchange, position)
    }

    /// Removes the oldest query of an ID.
    #[inline]
    fn take_query(&mut self, id: u16) -> Option<Box<Exchange>> {
        if self.slot.as_ref().is_none_or(|e| e.trans_id != id) {
            return self.rare.as_mut()?.waiting.queries.pop(id);
        }
        let exchange = self.slot.take();
        if let Some(rare) = &mut self.rare {
            // Refill the slot, so that a later query of a waiting ID does not overtake it.
            let queries = &mut rare.waiting.queries;
            *self.slot = queries.pop(id).or_else(|| queries.pop_any());
        }
        exchange
    }

    fn waiting(&mut self) -> &mut Waiting {
        &mut self.rare.get_or_insert_default().waiting
    }

    /// Logs the exchange of a parsed message if it is complete, and otherwise queues it.
    #[inline]
    fn log_or_queue(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        (ended, rejected): (bool, bool),
        mut exchange: Box<Exchange>,
        position: ExchangePosition,
    ) {
        let flipped = self.flipped;
        if rejected {
            exchange.flags |= flag::REJECTED;
        }
        if ended {
            exchange.flags |= seen_flag(header);
        }
        if ended && exchange.has(flag::SAW_BOTH) {
            log(cx, flipped, &exchange, &self.scratch.answers);
            cx.env.dns.exchanges.recycle(exchange);
            self.last.position = ExchangePosition::None;
            return;
        }
        if !self.scratch.answers.is_empty() {
            exchange.answers = Some(Box::new(std::mem::take(&mut self.scratch.answers)));
        }
        *self.last = LastMessage { position, id: header.id };
        let limit = cx.env.pending.of(Tag::Dns);
        match position {
            ExchangePosition::None => {}
            ExchangePosition::Slot => *self.slot = Some(exchange),
            ExchangePosition::Queries => {
                let queries = &mut self.waiting().queries;
                queries.push(exchange, limit, |e| log_unpaired(cx, flipped, &e));
                cx.conn.note_table(queries.ids());
            }
            ExchangePosition::Replies => {
                let replies = &mut self.waiting().replies;
                replies.push(exchange, limit, |e| log_unpaired(cx, flipped, &e));
                cx.conn.note_table(replies.ids());
            }
        }
    }

    /// Adds a NetBIOS message that is not joined with others (a release, a wait for acknowledgement) to the previous
    /// exchange, as in Zeek.
    #[cold]
    fn update_last(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        (ended, rejected): (bool, bool),
    ) {
        let LastMessage { position, id } = *self.last;
        let waiting = self.rare.as_mut().map(|r| &mut r.waiting);
        let exchange = match position {
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
            exchange.flags |= seen_flag(header);
            if exchange.has(flag::SAW_BOTH) {
                log_unpaired(cx, self.flipped, exchange);
                self.last.position = ExchangePosition::None;
            }
        }
    }
}

#[inline]
fn seen_flag(header: &Header) -> u16 {
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
        let (mut exchange, position) = self.join(cx, header);
        if header.is_reply() {
            exchange.rcode = header.rcode();
            exchange.flags |= flag::RCODE;
            if header.rcode() != 0 && header.questions == 0 {
                exchange.flags |= flag::REJECTED;
            }
        }
        exchange.opcode = header.opcode();
        exchange.set(flag::NETBIOS, event.msg.netbios);
        if let Some(answers) = exchange.answers.take() {
            self.scratch.answers = *answers;
        }
        self.current = Some((exchange, position));
    }
}

impl OnEvent<QuestionRead<'_>> for Rows<'_> {
    #[inline(always)]
    fn on_event(&mut self, _cx: &mut Context<'_>, event: &QuestionRead<'_>) {
        let Some((exchange, _)) = &mut self.current else { return };
        let header = event.msg.header;
        exchange.copy_flags(flag::RD | flag::TC, header);
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
            return; // only replies have answers
        }
        let RowBuffers { answers, owner } = &mut *self.scratch;
        if !exchange.has(flag::NAME) {
            exchange.query = Name::new(event.owner.decode(owner));
            exchange.flags |= flag::NAME;
        }
        exchange.copy_flags(flag::AA | flag::RA, header);
        if exchange.rtt == Interval::ZERO {
            exchange.rtt = cx.now.micros_since(exchange.ts);
        }
        answers.push(event.ttl, |out| match (event.section, event.data.parsed) {
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
            Some((exchange, position)) => {
                self.log_or_queue(cx, header, outcome, exchange, position);
            }
            None => self.update_last(cx, header, outcome),
        }
    }
}

/// Writes the rows of all unpaired messages at the end of the connection.
pub(super) fn finish(cx: &mut Context<'_>, slot: Option<Box<Exchange>>, waiting: Option<Waiting>) {
    if let Some(exchange) = slot {
        log_unpaired(cx, false, &exchange);
    }
    if let Some(mut waiting) = waiting {
        waiting.queries.drain(|e| log_unpaired(cx, false, &e));
        waiting.replies.drain(|e| log_unpaired(cx, false, &e));
    }
}

fn log_unpaired(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange) {
    match &exchange.answers {
        Some(answers) => log(cx, flipped, exchange, answers),
        None => log(cx, flipped, exchange, &Answers::default()),
    }
}

/// Writes the row of an exchange; `flipped` if a flip of the connection was requested, but is not applied yet.
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
        log_out_of_place(cx, flipped, exchange, answers);
    }
}

#[cold]
#[inline(never)]
fn log_out_of_place(cx: &mut Context<'_>, flipped: bool, exchange: &Exchange, answers: &Answers) {
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
fn write_answer(out: &mut Vec<u8>, data: &Data<'_>, owner: Owner<'_>, buffer: &mut Vec<u8>) {
    let owner = if let Data::Nsec(_) = data { owner.decode(buffer) } else { b"" };
    write_data(out, data, owner, false);
}

/// Appends the text of a prerequisite or a change of an update.
#[cold]
fn write_update(out: &mut Vec<u8>, event: &RecordRead<'_>, buffer: &mut Vec<u8>) {
    let (owner, start) = (event.owner.decode(buffer), out.len());
    if let Some(data) = event.data.parsed {
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
    let (label, has_type) = match event.qclass {
        class::NONE if any => ("NameNotInUse ", false),
        class::ANY if any => ("NameInUse ", false),
        class::NONE => ("NoRRSet ", true),
        _ => ("RRSetExists ", true),
    };
    out.extend_from_slice(b"pre: ");
    out.extend_from_slice(label.as_bytes());
    if has_type {
        names::query_type(event.qtype).write(out);
        out.push(b' ');
    }
    out.extend_from_slice(owner);
}

/// Appends the text of a record's data. `owner` is the name of the record, which precedes an address if `update` is true.
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
    fn empty_texts_are_not_answers() {
        let mut answers = Answers::default();
        answers.push(Interval::from_secs(60), |_| {});
        assert!(AnswerTexts(&answers).is_unset() && AnswerTtls(&answers).is_unset());
        answers.push(Interval::from_secs(60), |out| out.extend_from_slice(b"x"));
        assert!(!AnswerTexts(&answers).is_unset());
    }
}
