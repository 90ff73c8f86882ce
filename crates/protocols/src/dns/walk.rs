//! Walks over one message and fills in its exchange.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_log::write_addr;

use super::analyzer;
use super::analyzer::Scratch;
use super::message::Cursor;
use super::message::HEADER_LEN;
use super::message::Header;
use super::message::Note;
use super::message::Passed;
use super::message::weird;
use super::message::weird_number;
use super::name::Name;
use super::names;
use super::names::class;
use super::names::opcode;
use super::names::rr;
use super::records;
use super::records::Data;
use super::records::Record;
use super::rows;
use super::session::Exchange;
use super::session::flag;

/// Questions in one message, beyond which it is taken for something else than DNS.
pub const MAX_QUESTIONS: u16 = 25;

/// One message on its way.
pub(super) struct Walk<'w> {
    pub(super) header: &'w Header,
    pub(super) now: Time,
    /// Either port is the NetBIOS name service's.
    pub(super) netbios: bool,
    pub(super) place: records::Place,
    /// The exchange of the message, unless it is not joined with others.
    pub(super) exchange: Option<&'w mut Exchange>,
    pub(super) rejected: bool,
    pub(super) scratch: &'w mut Scratch,
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

/// A section of records, as far as they are read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Answers,
    Prerequisites,
    Updates,
}

impl Walk<'_> {
    /// Reads the whole message.
    pub(super) fn run(mut self, msg: &[u8]) -> Result {
        let header = self.header;
        let mut ended = true;
        let sound = if header.questions > MAX_QUESTIONS {
            // Other traffic on port 53 usually fails this check.
            let name = "DNS_Conn_count_too_large";
            self.scratch.notes.push(Note::Violation(name));
            let detail = format!("{} > {MAX_QUESTIONS}", header.questions);
            self.scratch.notes.push(Note::Limit(name, detail));
            false
        } else if self.is_update() {
            self.update(msg, &mut ended)
        } else {
            let mut cursor = Cursor::new(msg, HEADER_LEN);
            (0..header.questions).all(|_| self.question(&mut cursor))
                && self.records(&mut cursor, header.answers, Section::Answers, 0)
        };
        Result { ended, sound, rejected: self.rejected }
    }

    /// RFC 2136; on the NetBIOS port the same number registers a name.
    fn is_update(&self) -> bool {
        self.header.opcode() == opcode::UPDATE && !self.netbios
    }

    /// A dynamic update: a zone, prerequisites, and changes (RFC 2136 §2).
    fn update(&mut self, msg: &[u8], ended: &mut bool) -> bool {
        let header = self.header;
        if header.questions != 1 {
            weird_number(&mut self.scratch.notes, "DNS_DU_invalid_zone_count", header.questions);
            return false;
        }
        let mut cursor = Cursor::new(msg, HEADER_LEN);
        let Some((kind, zone_class)) = self.owner(&mut cursor) else { return false };
        if kind != rr::SOA {
            weird(&mut self.scratch.notes, "DNS_DU_incorrect_zone_type");
            *ended = false;
            return false;
        }
        self.records(&mut cursor, header.answers, Section::Prerequisites, zone_class)
            && self.records(&mut cursor, header.authorities, Section::Updates, zone_class)
    }

    fn question(&mut self, cursor: &mut Cursor<'_>) -> bool {
        let Scratch { question, notes, .. } = &mut *self.scratch;
        let asks = !self.header.is_reply() && self.exchange.is_some();
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
        let (kind, class) = (cursor.u16(), cursor.u16());
        let header = &self.header;
        if header.is_reply() {
            // A reply without any record: the server has turned the query down.
            let records = header.answers | header.authorities | header.additionals;
            self.rejected |= records == 0;
        } else if let Some(exchange) = &mut self.exchange {
            let netbios = self.place.netbios_server && self.place.udp;
            analyzer::ask(exchange, header, question, kind, class, netbios);
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

    /// A record's name, into the scratch if it is needed there, and its type and class.
    #[inline]
    fn owner(&mut self, cursor: &mut Cursor<'_>) -> Option<(u16, u16)> {
        let Scratch { owner, notes, .. } = &mut *self.scratch;
        let long_labels = self.place.netbios_server;
        let mut at_name = *cursor;
        let passed = cursor.pass_name(owner, long_labels, notes)?;
        if cursor.remaining() < 4 {
            weird(notes, "DNS_truncated_ans_too_short");
            return None;
        }
        let (kind, class) = (cursor.u16(), cursor.u16());
        // Most answers are about the name that was asked for, which is known.
        let is_update = self.header.opcode() == opcode::UPDATE;
        let known = self.exchange.as_ref().is_none_or(|e| e.has(flag::NAME));
        if passed != Passed::Read && (is_update || kind == rr::NSEC || !known) {
            owner.clear();
            at_name.name(owner, long_labels, notes);
        }
        Some((kind, class))
    }

    fn record(&mut self, cursor: &mut Cursor<'_>, section: Section, zone_class: u16) -> bool {
        let Some((kind, class)) = self.owner(cursor) else { return false };
        let record = Record { kind, class, ttl: cursor.u32(), len: cursor.u16() };
        if usize::from(record.len) > cursor.remaining() {
            weird(&mut self.scratch.notes, "DNS_truncated_RR_rdlength_lt_len");
            return false;
        }
        // What most answers are.
        if section == Section::Answers
            && (record.kind, record.len) == (rr::A, 4)
            && let Some(address) = cursor.rest().first_chunk()
        {
            cursor.skip(4);
            self.answer(&record, |out, _| write_addr(out, Addr::v4(*address)));
            return true;
        }
        match section {
            Section::Prerequisites => {
                self.prerequisite(&record, zone_class);
                return true;
            }
            Section::Updates if self.deletes_or_is_odd(&record, zone_class) => return true,
            Section::Answers | Section::Updates => {}
        }
        if record.len == 0 && cursor.remaining() > 0 {
            if section == Section::Updates {
                return true;
            }
            weird(&mut self.scratch.notes, "DNS_zero_rdlength");
            return false;
        }
        let update = self.is_update();
        // The names are moved out, as what borrows them is used along with the rest.
        let mut names = std::mem::take(&mut self.scratch.names);
        let notes = &mut self.scratch.notes;
        let (data, more) = records::parse(cursor, &record, self.place, &mut names, notes);
        if data != Data::Nothing {
            self.answer(&record, |out, owner| {
                let start = out.len();
                rows::write_data(out, &data, owner, update);
                let text = &out[start..];
                if section == Section::Updates && !text.is_empty() && !text.starts_with(b"del:") {
                    out.splice(start..start, *b"add: ");
                }
            });
        }
        self.scratch.names = names;
        more
    }

    /// A prerequisite of an update (RFC 2136 §2.4). Its data is not parsed.
    fn prerequisite(&mut self, record: &Record, zone_class: u16) {
        let notes = &mut self.scratch.notes;
        let any_or_none = matches!(record.class, class::ANY | class::NONE);
        if record.ttl != 0 {
            let ttl = record.ttl as i32;
            weird_number(notes, "DNS_dynamic_update_prereq_nonzero_ttl", ttl);
        } else if (any_or_none && record.len == 0) || record.class == zone_class {
            let any = record.kind == rr::ANY;
            let (what, typed) = match record.class {
                class::NONE if any => ("NameNotInUse ", false),
                class::ANY if any => ("NameInUse ", false),
                class::NONE => ("NoRRSet ", true),
                _ => ("RRSetExists ", true),
            };
            self.answer(record, |out, owner| {
                out.extend_from_slice(b"pre: ");
                out.extend_from_slice(what.as_bytes());
                if typed {
                    names::query_type(record.kind).write(out);
                    out.push(b' ');
                }
                out.extend_from_slice(owner);
            });
        } else {
            weird(notes, "DNS_dynamic_update_invalid_prereq");
        }
    }

    /// Whether a change is a deletion without data, which is put down here, or none that RFC 2136
    /// §2.5 knows. Anything else is a record like others.
    fn deletes_or_is_odd(&mut self, record: &Record, zone_class: u16) -> bool {
        if record.class == class::ANY && record.ttl == 0 && record.len == 0 {
            self.answer(record, |out, owner| {
                out.extend_from_slice(b"del: RRSet ");
                if record.kind == rr::ANY {
                    out.extend_from_slice(b"* ");
                    out.extend_from_slice(owner);
                } else {
                    names::query_type(record.kind).write(out);
                }
            });
            return true;
        }
        let odd = !(record.class == class::NONE && record.ttl == 0) && record.class != zone_class;
        if odd {
            weird(&mut self.scratch.notes, "DNS_dynamic_update_invalid_update");
        }
        odd
    }

    /// An answer: `write` appends its text, given the record's name.
    fn answer(&mut self, record: &Record, write: impl FnOnce(&mut Vec<u8>, &[u8])) {
        let Some(exchange) = &mut self.exchange else { return };
        if !self.header.is_reply() {
            return; // the client's side does not send replies
        }
        let Scratch { owner, answers, .. } = &mut *self.scratch;
        if !exchange.has(flag::NAME) {
            exchange.query = Name::new(owner);
            exchange.flags |= flag::NAME;
        }
        exchange.set(flag::AA, self.header.authoritative());
        exchange.set(flag::RA, self.header.recursion_available());
        if exchange.rtt == Interval::ZERO {
            exchange.rtt = self.now.micros_since(exchange.ts);
        }
        answers.push(record.ttl, |out| write(out, owner));
    }
}
