//! Walks over one message and reports its questions and answers.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_event::Connection;
use gannet_event::Event;

use super::events::QuestionRead;
use super::events::RecordRead;
use super::head::Head;
use super::message;
use super::message::Cursor;
use super::message::HEADER_LEN;
use super::message::MAX_POINTERS;
use super::message::MAX_QUESTIONS;
use super::message::MessageNote;
use super::message::Notes;
use super::message::SkippedName;
use super::message::weird;
use super::message::weird_number;
use super::names::class;
use super::names::opcode;
use super::names::rr;
use super::parts::Owner;
use super::parts::Parts;
use super::parts::RecordData;
use super::parts::Section;
use super::records;
use super::records::Data;
use super::records::Record;
use super::rows::Rows;
use super::shared::Buffers;
use crate::Context;
use crate::Env;
use crate::OnEvent;

/// The walk over one message. `RAISES` is false if no event of messages has a listener.
pub(super) struct Walk<'w, 'c, 'r, const RAISES: bool> {
    pub(super) cx: &'w mut Context<'c>,
    pub(super) rows: &'w mut Rows<'r>,
    pub(super) head: Head<'w>,
    pub(super) context: message::MessageContext,
    pub(super) rejected: bool,
    pub(super) buffers: &'w mut Buffers,
}

/// Result of parsing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Result {
    /// The message counts as completely parsed; some errors count as its end.
    pub(super) ended: bool,
    /// Questions and answers are valid, which confirms the protocol.
    pub(super) valid: bool,
    /// The reply has no records at all.
    pub(super) rejected: bool,
}

/// Maximum number of questions, for a message with `count` questions. One question, the usual number, is always allowed.
pub(super) fn max_questions(env: &Env, count: u16) -> usize {
    if count <= 1 { 1 } else { env.limit_setting("dns_max_queries", MAX_QUESTIONS.into()) }
}

/// Returns a cursor after the header, with the limit of compression pointers that the script option sets.
pub(super) fn after_header<'m>(env: &Env, msg: &'m [u8]) -> Cursor<'m> {
    let max = env.setting("dns_max_compression_chain_depth", MAX_POINTERS.into());
    Cursor::new(msg, HEADER_LEN).with_max_pointers(max)
}

impl<const RAISES: bool> Walk<'_, '_, '_, RAISES> {
    /// Parses the whole message.
    pub(super) fn run(mut self, msg: &[u8]) -> Result {
        let header = self.head.header;
        let mut ended = true;
        let max = max_questions(self.cx.env, header.questions);
        let valid = if usize::from(header.questions) > max {
            // Other traffic on port 53 usually fails this check.
            let name = "DNS_Conn_count_too_large";
            self.buffers.notes.push(MessageNote::Violation(name));
            let detail = format!("{} > {max}", header.questions);
            self.buffers.notes.push(MessageNote::Limit(name, detail));
            false
        } else if self.is_update() {
            self.update(msg, &mut ended)
        } else {
            let mut cursor = after_header(self.cx.env, msg);
            (0..header.questions).all(|_| self.question(&mut cursor))
                && (header.answers == 0
                    || self.records(&mut cursor, header.answers, Section::Answers, 0))
        };
        Result { ended, valid, rejected: self.rejected }
    }

    /// Whether the message is a dynamic update (RFC 2136). In the NetBIOS name service, the same operation code registers a
    /// name.
    fn is_update(&self) -> bool {
        self.head.header.opcode() == opcode::UPDATE && !self.head.netbios
    }

    /// Parses a dynamic update: a zone, prerequisites, and changes (RFC 2136 §2).
    fn update(&mut self, msg: &[u8], ended: &mut bool) -> bool {
        let header = self.head.header;
        if header.questions != 1 {
            weird_number(&mut self.buffers.notes, "DNS_DU_invalid_zone_count", header.questions);
            return false;
        }
        let mut cursor = after_header(self.cx.env, msg);
        let Buffers { owner: buffer, notes, .. } = &mut *self.buffers;
        let long_labels = self.context.netbios_server;
        let Some((_, kind, zone_class)) = owner(&mut cursor, long_labels, buffer, notes) else {
            return false;
        };
        if kind != rr::SOA {
            weird(&mut self.buffers.notes, "DNS_DU_incorrect_zone_type");
            *ended = false;
            return false;
        }
        self.records(&mut cursor, header.answers, Section::Prerequisites, zone_class)
            && self.records(&mut cursor, header.authorities, Section::Updates, zone_class)
    }

    fn question(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Buffers { question, notes, .. } = &mut *self.buffers;
        let is_query = self.head.is_tracked && !self.head.header.is_reply();
        let is_valid = if is_query {
            question.clear();
            cursor.name(question, self.context.netbios_server, notes)
        } else {
            cursor.skip_name(question, self.context.netbios_server, notes).is_some()
        };
        if !is_valid {
            return false;
        }
        if cursor.remaining() < 4 {
            weird(notes, "DNS_truncated_quest_too_short");
            return false;
        }
        let (qtype, qclass, header) = (cursor.u16(), cursor.u16(), self.head.header);
        if header.is_reply() {
            // A reply without any record rejects the query.
            let records = header.answers | header.authorities | header.additionals;
            self.rejected |= records == 0;
        } else if is_query {
            let msg = self.head;
            let is_netbios_type = self.context.netbios_server && self.context.udp;
            report::<RAISES, _>(self.cx, self.rows, |c| QuestionRead {
                c,
                msg,
                query: question,
                qtype,
                qclass,
                is_netbios_type,
            });
        }
        true
    }

    fn records(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: u16,
        section: Section,
        zone_class: u16,
    ) -> bool {
        (0..count).all(|_| self.record(cursor, section, zone_class))
    }

    fn record(&mut self, cursor: &mut Cursor<'_>, section: Section, zone_class: u16) -> bool {
        let Buffers { owner: buffer, notes, names, .. } = &mut *self.buffers;
        let (name_at, long_labels) = (cursor.pos(), self.context.netbios_server);
        let Some((name, kind, class)) = owner(cursor, long_labels, buffer, notes) else {
            return false;
        };
        let record = Record { kind, class, ttl: cursor.u32(), len: cursor.u16() };
        if usize::from(record.len) > cursor.remaining() {
            weird(notes, "DNS_truncated_RR_rdlength_lt_len");
            return false;
        }
        let parts = &Parts {
            msg: cursor.message(),
            name,
            name_at,
            long_labels,
            data_at: cursor.pos(),
            data_len: record.len,
        };
        let head = RecordHead { msg: self.head, section, parts, record: &record };
        let (cx, rows) = (&mut *self.cx, &mut *self.rows);
        // Fast path for the most frequent type of answer.
        if section == Section::Answers
            && (record.kind, record.len) == (rr::A, 4)
            && let Some(address) = cursor.rest().first_chunk()
        {
            cursor.skip(4);
            let data = Data::A(Addr::v4(*address));
            RecordHead { section: Section::Answers, ..head }.report::<RAISES>(
                cx,
                rows,
                Some(&data),
            );
            return true;
        }
        match section {
            Section::Prerequisites => {
                if is_prerequisite(notes, &record, zone_class) {
                    head.report_change::<RAISES>(cx, rows);
                }
                return true;
            }
            Section::Updates => match change(&record, zone_class) {
                Change::Deletion => {
                    head.report_change::<RAISES>(cx, rows);
                    return true;
                }
                Change::Invalid => {
                    weird(notes, "DNS_dynamic_update_invalid_update");
                    return true;
                }
                Change::Record => {}
            },
            Section::Answers => {}
        }
        if record.len == 0 && cursor.remaining() > 0 {
            if section == Section::Updates {
                return true;
            }
            weird(notes, "DNS_zero_rdlength");
            return false;
        }
        let (data, more) = records::parse(cursor, &record, self.context, names, notes);
        if data != Data::Nothing {
            head.report::<RAISES>(cx, rows, Some(&data));
        }
        more
    }
}

/// Passes an event to the rows, and to its listener if `RAISES`.
#[inline(always)]
fn report<const RAISES: bool, E: Event>(
    cx: &mut Context<'_>,
    rows: &mut impl OnEvent<E>,
    make: impl Fn(Connection) -> E,
) {
    if RAISES {
        cx.report(rows, make);
    } else {
        rows.on_event(cx, &make(Connection::CURRENT));
    }
}

/// The parts of a record before its data.
struct RecordHead<'a> {
    msg: Head<'a>,
    section: Section,
    parts: &'a Parts<'a>,
    record: &'a Record,
}

impl RecordHead<'_> {
    /// Reports a part of an update whose data is not used.
    #[cold]
    fn report_change<const RAISES: bool>(&self, cx: &mut Context<'_>, rows: &mut Rows<'_>) {
        self.report::<RAISES>(cx, rows, None);
    }

    #[inline(always)]
    fn report<const RAISES: bool>(
        &self,
        cx: &mut Context<'_>,
        rows: &mut Rows<'_>,
        data: Option<&Data<'_>>,
    ) {
        let record = self.record;
        report::<RAISES, _>(cx, rows, |c| RecordRead {
            c,
            msg: self.msg,
            section: self.section,
            owner: Owner(self.parts),
            qtype: record.kind,
            qclass: record.class,
            ttl: Interval::from_secs(i64::from(record.ttl)),
            data: RecordData { parsed: data, parts: self.parts },
        });
    }
}

/// Parses the owner name, type and class of a record. The name is `None` if it is not decoded; `buffer` is used to decode it.
#[inline]
fn owner<'a>(
    cursor: &mut Cursor<'_>,
    long_labels: bool,
    buffer: &'a mut Vec<u8>,
    notes: &mut Notes,
) -> Option<(Option<&'a [u8]>, u16, u16)> {
    let skipped = cursor.skip_name(buffer, long_labels, notes)?;
    if cursor.remaining() < 4 {
        weird(notes, "DNS_truncated_ans_too_short");
        return None;
    }
    let name = (skipped == SkippedName::Decoded).then_some(&buffer[..]);
    Some((name, cursor.u16(), cursor.u16()))
}

/// Whether a prerequisite of an update is valid (RFC 2136 §2.4). Its data is not parsed.
fn is_prerequisite(notes: &mut Notes, record: &Record, zone_class: u16) -> bool {
    let any_or_none = matches!(record.class, class::ANY | class::NONE);
    if record.ttl != 0 {
        let ttl = record.ttl as i32;
        weird_number(notes, "DNS_dynamic_update_prereq_nonzero_ttl", ttl);
        return false;
    }
    let is_valid = (any_or_none && record.len == 0) || record.class == zone_class;
    if !is_valid {
        weird(notes, "DNS_dynamic_update_invalid_prereq");
    }
    is_valid
}

/// Kind of a change in an update (RFC 2136 §2.5).
enum Change {
    /// A deletion without data.
    Deletion,
    /// An addition or deletion of a record, with data.
    Record,
    /// Neither of them.
    Invalid,
}

fn change(record: &Record, zone_class: u16) -> Change {
    if record.class == class::ANY && record.ttl == 0 && record.len == 0 {
        return Change::Deletion;
    }
    let is_invalid =
        !(record.class == class::NONE && record.ttl == 0) && record.class != zone_class;
    if is_invalid { Change::Invalid } else { Change::Record }
}
