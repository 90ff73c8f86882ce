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
use super::message::Passed;
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
use crate::Hear;

/// One message on its way. `RAISES`: events of messages may have a listener; without one nothing is kept for it.
pub(super) struct Walk<'w, 'c, 'r, const RAISES: bool> {
    pub(super) cx: &'w mut Context<'c>,
    pub(super) rows: &'w mut Rows<'r>,
    pub(super) head: Head<'w>,
    pub(super) place: message::MessageContext,
    pub(super) rejected: bool,
    pub(super) buffers: &'w mut Buffers,
}

/// How a message came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Result {
    /// It counts as read to its end (which a fault may be).
    pub(super) ended: bool,
    /// Questions and answers were sound: this is DNS.
    pub(super) sound: bool,
    /// The server answered with nothing at all.
    pub(super) rejected: bool,
}

/// How many questions a message with `count` of them may have. Nearly all have one, which is always allowed.
pub(super) fn most_questions(env: &Env, count: u16) -> usize {
    if count <= 1 { 1 } else { env.limit_setting("dns_max_queries", MAX_QUESTIONS.into()) }
}

/// The header's end, for reading names with as many pointers as scripts allow.
pub(super) fn behind_header<'m>(env: &Env, msg: &'m [u8]) -> Cursor<'m> {
    let most = env.setting("dns_max_compression_chain_depth", MAX_POINTERS.into());
    Cursor::new(msg, HEADER_LEN).with_pointers(most)
}

impl<const RAISES: bool> Walk<'_, '_, '_, RAISES> {
    /// Reads the whole message.
    pub(super) fn run(mut self, msg: &[u8]) -> Result {
        let header = self.head.header;
        let mut ended = true;
        let most = most_questions(self.cx.env, header.questions);
        let sound = if usize::from(header.questions) > most {
            // Other traffic on port 53 usually fails this check.
            let name = "DNS_Conn_count_too_large";
            self.buffers.notes.push(MessageNote::Violation(name));
            let detail = format!("{} > {most}", header.questions);
            self.buffers.notes.push(MessageNote::Limit(name, detail));
            false
        } else if self.is_update() {
            self.update(msg, &mut ended)
        } else {
            let mut cursor = behind_header(self.cx.env, msg);
            (0..header.questions).all(|_| self.question(&mut cursor))
                && (header.answers == 0
                    || self.records(&mut cursor, header.answers, Section::Answers, 0))
        };
        Result { ended, sound, rejected: self.rejected }
    }

    /// RFC 2136; on the NetBIOS port the same number registers a name.
    fn is_update(&self) -> bool {
        self.head.header.opcode() == opcode::UPDATE && !self.head.netbios
    }

    /// A dynamic update: a zone, prerequisites, and changes (RFC 2136 §2).
    fn update(&mut self, msg: &[u8], ended: &mut bool) -> bool {
        let header = self.head.header;
        if header.questions != 1 {
            weird_number(&mut self.buffers.notes, "DNS_DU_invalid_zone_count", header.questions);
            return false;
        }
        let mut cursor = behind_header(self.cx.env, msg);
        let Buffers { owner: room, notes, .. } = &mut *self.buffers;
        let long_labels = self.place.netbios_server;
        let Some((_, kind, zone_class)) = owner(&mut cursor, long_labels, room, notes) else {
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
        let asks = self.head.is_tracked && !self.head.header.is_reply();
        let read = if asks {
            question.clear();
            cursor.name(question, self.place.netbios_server, notes)
        } else {
            cursor.pass_name(question, self.place.netbios_server, notes).is_some()
        };
        if !read {
            return false;
        }
        if cursor.remaining() < 4 {
            weird(notes, "DNS_truncated_quest_too_short");
            return false;
        }
        let (qtype, qclass, header) = (cursor.u16(), cursor.u16(), self.head.header);
        if header.is_reply() {
            // A reply without any record: the server has turned the query down.
            let records = header.answers | header.authorities | header.additionals;
            self.rejected |= records == 0;
        } else if asks {
            let msg = self.head;
            let is_netbios_type = self.place.netbios_server && self.place.udp;
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
        let Buffers { owner: room, notes, names, .. } = &mut *self.buffers;
        let (name_at, long_labels) = (cursor.pos(), self.place.netbios_server);
        let Some((name, kind, class)) = owner(cursor, long_labels, room, notes) else {
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
        let about = RecordHead { msg: self.head, section, parts, record: &record };
        let (cx, rows) = (&mut *self.cx, &mut *self.rows);
        // What most answers are.
        if section == Section::Answers
            && (record.kind, record.len) == (rr::A, 4)
            && let Some(address) = cursor.rest().first_chunk()
        {
            cursor.skip(4);
            let data = Data::A(Addr::v4(*address));
            RecordHead { section: Section::Answers, ..about }.report::<RAISES>(
                cx,
                rows,
                Some(&data),
            );
            return true;
        }
        match section {
            Section::Prerequisites => {
                if is_prerequisite(notes, &record, zone_class) {
                    about.report_change::<RAISES>(cx, rows);
                }
                return true;
            }
            Section::Updates => match change(&record, zone_class) {
                Change::Deletion => {
                    about.report_change::<RAISES>(cx, rows);
                    return true;
                }
                Change::Odd => {
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
        let (data, more) = records::parse(cursor, &record, self.place, names, notes);
        if data != Data::Nothing {
            about.report::<RAISES>(cx, rows, Some(&data));
        }
        more
    }
}

/// Rows hear an event, and so does its listener, if there may be one.
#[inline(always)]
fn report<const RAISES: bool, E: Event>(
    cx: &mut Context<'_>,
    rows: &mut impl Hear<E>,
    make: impl Fn(Connection) -> E,
) {
    if RAISES {
        cx.report(rows, make);
    } else {
        rows.hear(cx, &make(Connection::CURRENT));
    }
}

/// What is known of a record before its data is read.
struct RecordHead<'a> {
    msg: Head<'a>,
    section: Section,
    parts: &'a Parts<'a>,
    record: &'a Record,
}

impl RecordHead<'_> {
    /// A part of an update whose data does not matter.
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
            data: RecordData { read: data, parts: self.parts },
        });
    }
}

/// A record's name, if it had to be read, and its type and class. `room` is for the name.
#[inline]
fn owner<'a>(
    cursor: &mut Cursor<'_>,
    long_labels: bool,
    room: &'a mut Vec<u8>,
    notes: &mut Notes,
) -> Option<(Option<&'a [u8]>, u16, u16)> {
    let passed = cursor.pass_name(room, long_labels, notes)?;
    if cursor.remaining() < 4 {
        weird(notes, "DNS_truncated_ans_too_short");
        return None;
    }
    let name = (passed == Passed::Read).then_some(&room[..]);
    Some((name, cursor.u16(), cursor.u16()))
}

/// Whether a prerequisite of an update is one (RFC 2136 §2.4). Its data is not parsed.
fn is_prerequisite(notes: &mut Notes, record: &Record, zone_class: u16) -> bool {
    let any_or_none = matches!(record.class, class::ANY | class::NONE);
    if record.ttl != 0 {
        let ttl = record.ttl as i32;
        weird_number(notes, "DNS_dynamic_update_prereq_nonzero_ttl", ttl);
        return false;
    }
    let is_sound = (any_or_none && record.len == 0) || record.class == zone_class;
    if !is_sound {
        weird(notes, "DNS_dynamic_update_invalid_prereq");
    }
    is_sound
}

/// A change by an update (RFC 2136 §2.5).
enum Change {
    /// A deletion without data.
    Deletion,
    /// A record like others.
    Record,
    /// None of them.
    Odd,
}

fn change(record: &Record, zone_class: u16) -> Change {
    if record.class == class::ANY && record.ttl == 0 && record.len == 0 {
        return Change::Deletion;
    }
    let is_odd = !(record.class == class::NONE && record.ttl == 0) && record.class != zone_class;
    if is_odd { Change::Odd } else { Change::Record }
}
