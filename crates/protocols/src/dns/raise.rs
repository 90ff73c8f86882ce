//! Raises the events of a message in a separate walk, which runs only if an event has a listener.
//!
//! It parses the same parts as the [walk](super::walk) for rows, and stops at the same point.

mod data;

use gannet_base::Interval;
use gannet_event::Connection;
use gannet_event::Event;

use super::events::*;
use super::head::Head;
use super::head::Msg;
use super::message::Cursor;
use super::message::Header;
use super::message::MessageContext;
use super::message::Notes;
use super::message::weird;
use super::names::class;
use super::names::opcode;
use super::names::rr;
use super::records;
use super::records::Record;
use super::walk::after_header;
use super::walk::max_questions;
use crate::Context;

/// Sections, by Zeek's numbers.
mod section {
    pub(super) const ANSWERS: u64 = 1;
    pub(super) const AUTHORITY: u64 = 2;
    pub(super) const ADDITIONAL: u64 = 3;
    pub(super) const PREREQUISITES: u64 = 4;
    pub(super) const UPDATES: u64 = 5;
}

/// Whether any event of a message has a listener.
#[inline]
pub(super) fn has_listener(cx: &Context<'_>) -> bool {
    cx.env.logs.events.any() && EVENTS.iter().any(|decl| cx.env.logs.events.wants_id(decl.id))
}

/// Raises the events of a message, except for those of its start and its end. Returns the weirds of sections that the walk for rows
/// does not parse.
#[cold]
pub(super) fn message(
    cx: &mut Context<'_>,
    head: Head<'_>,
    msg: &[u8],
    is_orig: bool,
    context: MessageContext,
) -> Notes {
    let (header, netbios, head) = (head.header, head.netbios, head.as_record());
    let mut notes = Notes::new();
    if usize::from(header.questions) > max_questions(cx.env, header.questions) {
        return notes;
    }
    let is_update = header.opcode() == opcode::UPDATE && !netbios;
    let skips = |name| cx.env.setting(name, 1) != 0;
    let (mut no_authority, mut no_additional) =
        (skips("dns_skip_all_auth"), skips("dns_skip_all_addl"));
    if header.answers > 0 {
        no_authority |= header.authorities == 0;
        no_additional |= header.additionals == 0;
    }
    let mut cursor = after_header(cx.env, msg);
    let mut raiser = Raiser { cx, header, head, is_orig, context, zone: None, silent: false };
    let mut discarded = Notes::new();
    let result = if is_update {
        raiser.update(&mut cursor)
    } else {
        let has_questions = (0..header.questions).all(|_| raiser.question(&mut cursor).is_some());
        let answers = |_| raiser.answer(&mut cursor, section::ANSWERS, &mut discarded);
        if has_questions { (0..header.answers).try_for_each(answers) } else { None }
    };
    if result.is_none() || (no_authority && no_additional) {
        return notes;
    }
    raiser.silent = no_authority;
    if !is_update
        && (0..header.authorities)
            .try_for_each(|_| raiser.answer(&mut cursor, section::AUTHORITY, &mut notes))
            .is_none()
    {
        return notes;
    }
    raiser.silent = false;
    if !no_additional {
        let _ = (0..header.additionals)
            .try_for_each(|_| raiser.answer(&mut cursor, section::ADDITIONAL, &mut notes));
    }
    notes
}

struct Raiser<'r, 'c> {
    cx: &'r mut Context<'c>,
    header: &'r Header,
    head: Msg,
    is_orig: bool,
    context: MessageContext,
    /// Class of the zone that a dynamic update changes.
    zone: Option<u16>,
    /// Records are parsed without raising events.
    silent: bool,
}

impl Raiser<'_, '_> {
    fn question(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (mut name, mut original, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        let mut as_is = *cursor;
        if !cursor.name(&mut name, self.context.netbios_server, &mut notes) {
            return None;
        }
        as_is.name_as_is(&mut original, self.context.netbios_server, &mut notes);
        if cursor.remaining() < 4 {
            return None;
        }
        let (qtype, qclass, msg) = (cursor.u16(), cursor.u16(), self.head);
        let (query, original_query) = (&name[..], &original[..]);
        let header = self.header;
        if !header.is_reply() {
            self.cx.raise(|c| Request { c, msg, query, qtype, qclass, original_query });
        } else if header.answers | header.authorities | header.additionals == 0 {
            self.cx.raise(|c| Rejected { c, msg, query, qtype, qclass, original_query });
        } else {
            self.cx.raise(|c| QueryReply { c, msg, query, qtype, qclass, original_query });
        }
        Some(())
    }

    /// Parses the owner name, type and class of a record.
    fn owner(&self, cursor: &mut Cursor<'_>, notes: &mut Notes) -> Option<(Vec<u8>, u16, u16)> {
        let mut owner = Vec::new();
        if !cursor.name(&mut owner, self.context.netbios_server, notes) {
            return None;
        }
        if cursor.remaining() < 4 {
            weird(notes, "DNS_truncated_ans_too_short");
            return None;
        }
        Some((owner, cursor.u16(), cursor.u16()))
    }

    /// Parses a dynamic update (RFC 2136 §2).
    fn update(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (zname, kind, zclass) = self.owner(cursor, &mut Notes::new())?;
        if self.header.questions != 1 || kind != rr::SOA {
            return None;
        }
        self.zone = Some(zclass);
        let mut notes = Notes::new();
        let (prerequisites, updates) = (self.header.answers, self.header.authorities);
        (0..prerequisites)
            .try_for_each(|_| self.answer(cursor, section::PREREQUISITES, &mut notes))?;
        (0..updates).try_for_each(|_| self.answer(cursor, section::UPDATES, &mut notes))?;
        self.raise(|c, msg| DynamicUpdate { c, msg, zname: &zname, zclass });
        Some(())
    }

    fn answer(
        &mut self,
        cursor: &mut Cursor<'_>,
        answer_type: u64,
        notes: &mut Notes,
    ) -> Option<()> {
        let (owner, kind, class) = self.owner(cursor, notes)?;
        let mut names = Vec::new();
        let record = Record { kind, class, ttl: cursor.u32(), len: cursor.u16() };
        if usize::from(record.len) > cursor.remaining() {
            weird(notes, "DNS_truncated_RR_rdlength_lt_len");
            return None;
        }
        let ans = Answer {
            answer_type,
            query: &owner,
            qtype: kind,
            qclass: class,
            ttl: Interval::from_secs(i64::from(record.ttl)),
        };
        match (answer_type, self.zone) {
            (section::PREREQUISITES, Some(zone)) => {
                let any_or_none = matches!(class, class::ANY | class::NONE);
                if record.ttl == 0 && ((any_or_none && record.len == 0) || class == zone) {
                    self.raise(|c, msg| DynamicUpdatePre { c, msg, ans });
                }
                return Some(());
            }
            (section::UPDATES, Some(zone)) => {
                if class == class::ANY && record.ttl == 0 && record.len == 0 {
                    self.raise(|c, msg| DynamicUpdateDel { c, msg, ans });
                    return Some(());
                }
                if !(class == class::NONE && record.ttl == 0) && class != zone {
                    return Some(());
                }
            }
            _ => {}
        }
        if record.len == 0 && cursor.remaining() > 0 {
            if self.zone.is_none() {
                weird(notes, "DNS_zero_rdlength");
            }
            return self.zone.map(|_| ());
        }
        let raw = *cursor;
        let mut context = self.context;
        context.hinfo &= !self.silent;
        context.caa &= !self.silent;
        let (data, more) = records::parse(cursor, &record, context, &mut names, notes);
        if !self.silent {
            self.data(ans, &record, &data, raw);
        }
        more.then_some(())
    }

    fn raise<E: Event>(&mut self, make: impl FnOnce(Connection, Msg) -> E) {
        let msg = self.head;
        self.cx.raise(|c| make(c, msg));
    }
}
