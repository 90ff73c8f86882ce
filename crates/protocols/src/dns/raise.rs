//! Raises the events of a message: a walk of its own, made only where an event has a listener.
//!
//! It reads the same parts as the [walk](super::walk) for rows, and stops at the same point.

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::Connection;
use gannet_event::Event;

use super::events::*;
use super::message::Cursor;
use super::message::HEADER_LEN;
use super::message::Header;
use super::names::opcode;
use super::names::rr;
use super::records;
use super::records::Data;
use super::records::Place;
use super::records::Record;
use super::walk::MAX_QUESTIONS;
use crate::Context;

/// Section of answers, by Zeek's number.
const ANSWERS: u64 = 1;

/// The header as events carry it.
pub(super) fn header_of(header: &Header, netbios: bool) -> Msg {
    Msg {
        id: header.id,
        opcode: header.opcode().into(),
        rcode: header.rcode().into(),
        qr: header.is_reply(),
        aa: header.authoritative(),
        tc: header.truncated(),
        rd: header.recursion_desired(),
        ra: header.recursion_available(),
        z: header.z().into(),
        ad: header.flags & 0x20 != 0,
        cd: header.flags & 0x10 != 0,
        num_queries: header.questions,
        num_answers: header.answers,
        num_auth: header.authorities,
        num_addl: header.additionals,
        is_netbios: netbios,
    }
}

/// Whether the message is to be walked for its events.
#[inline]
pub(super) fn is_wanted(cx: &Context<'_>) -> bool {
    cx.env.logs.events.any() && EVENTS.iter().any(|decl| cx.env.logs.events.wants_id(decl.id))
}

/// Raises the events of a message, but for the one of its end.
#[cold]
pub(super) fn message(
    cx: &mut Context<'_>,
    header: &Header,
    msg: &[u8],
    from: Option<Dir>,
    netbios: bool,
    place: Place,
) {
    let is_orig = from == Some(Dir::Orig);
    let head = header_of(header, netbios);
    cx.raise(|c| Message { c, is_orig, msg: head, len: msg.len() as u64 });
    let is_update = header.opcode() == opcode::UPDATE && !netbios;
    if header.questions > MAX_QUESTIONS || is_update {
        return;
    }
    let mut raiser = Raiser { cx, header, head, is_orig, place };
    let mut cursor = Cursor::new(msg, HEADER_LEN);
    let asked = (0..header.questions).all(|_| raiser.question(&mut cursor).is_some());
    if asked {
        let _ = (0..header.answers).try_for_each(|_| raiser.answer(&mut cursor));
    }
}

struct Raiser<'r, 'c> {
    cx: &'r mut Context<'c>,
    header: &'r Header,
    head: Msg,
    is_orig: bool,
    place: Place,
}

impl Raiser<'_, '_> {
    fn question(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (mut name, mut original, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        let mut as_is = *cursor;
        if !cursor.name(&mut name, self.place.netbios_server, &mut notes) {
            return None;
        }
        as_is.name_as_is(&mut original, self.place.netbios_server, &mut notes);
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

    fn answer(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (mut owner, mut names, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        if !cursor.name(&mut owner, self.place.netbios_server, &mut notes) {
            return None;
        }
        if cursor.remaining() < 4 {
            return None;
        }
        let (kind, class) = (cursor.u16(), cursor.u16());
        let record = Record { kind, class, ttl: cursor.u32(), len: cursor.u16() };
        if usize::from(record.len) > cursor.remaining() {
            return None;
        }
        if record.len == 0 && cursor.remaining() > 0 {
            return None;
        }
        let raw = *cursor;
        let (data, more) = records::parse(cursor, &record, self.place, &mut names, &mut notes);
        let ans = Answer {
            answer_type: ANSWERS,
            query: &owner,
            qtype: kind,
            qclass: class,
            ttl: Interval::from_secs(i64::from(record.ttl)),
        };
        self.data(ans, &record, &data, raw);
        more.then_some(())
    }

    fn raise<E: Event>(&mut self, make: impl FnOnce(Connection, Msg) -> E) {
        let msg = self.head;
        self.cx.raise(|c| make(c, msg));
    }

    /// The event of one record, whose data was read from `raw` and is sound.
    fn data(&mut self, ans: Answer<'_>, record: &Record, data: &Data<'_>, mut raw: Cursor<'_>) {
        let (query, answer_type, is_query) = (ans.query, ans.answer_type, u64::from(self.is_orig));
        let len = usize::from(record.len);
        match (record.kind, data) {
            (rr::A, Data::A(a)) => self.raise(|c, msg| AReply { c, msg, ans, a: *a }),
            (rr::AAAA, Data::Aaaa(a)) => self.raise(|c, msg| AaaaReply { c, msg, ans, a: *a }),
            (rr::A6, Data::A6(a)) => self.raise(|c, msg| A6Reply { c, msg, ans, a: *a }),
            (rr::NS, Data::Name(name)) => self.raise(|c, msg| NsReply { c, msg, ans, name }),
            (rr::CNAME, Data::Name(name)) => self.raise(|c, msg| CnameReply { c, msg, ans, name }),
            (rr::PTR, Data::Name(name)) => self.raise(|c, msg| PtrReply { c, msg, ans, name }),
            (rr::MX, Data::Name(name)) => {
                let preference = raw.u16();
                self.raise(|c, msg| MxReply { c, msg, ans, name, preference });
            }
            (rr::SRV, Data::Name(target)) => {
                let (priority, weight, p) = (raw.u16(), raw.u16(), raw.u16());
                self.raise(|c, msg| SrvReply { c, msg, ans, target, priority, weight, p });
            }
            (rr::SOA, Data::Name(mname)) => {
                let rname = self.second_name(&mut raw);
                let seconds = |n: u32| Interval::from_secs(i64::from(n));
                let soa = Soa {
                    mname,
                    rname: &rname,
                    serial: raw.u32(),
                    refresh: seconds(raw.u32()),
                    retry: seconds(raw.u32()),
                    expire: seconds(raw.u32()),
                    minimum: seconds(raw.u32()),
                };
                self.raise(|c, msg| SoaReply { c, msg, ans, soa });
            }
            (_, Data::Wks) => self.raise(|c, msg| WksReply { c, msg, ans }),
            (rr::HINFO, _) => {
                let texts = (text(&mut raw), text(&mut raw));
                self.raise(|c, msg| HinfoReply { c, msg, ans, cpu: texts.0, os: texts.1 });
            }
            (_, Data::Txt(strings)) => {
                self.raise(|c, msg| TxtReply { c, msg, ans, strs: strings.collect() });
            }
            (_, Data::Spf(strings)) => {
                self.raise(|c, msg| SpfReply { c, msg, ans, strs: strings.collect() });
            }
            (rr::CAA, _) => {
                let (flags, tag) = (u64::from(raw.u8()), text(&mut raw));
                let value = raw.take(len.saturating_sub(2 + tag.len()));
                self.raise(|c, msg| CaaReply { c, msg, ans, flags, tag, value });
            }
            (_, Data::Naptr { order, preference, flags, service, regexp, replacement }) => {
                let (order, preference) = (*order, *preference);
                let naptr = Naptr { order, preference, flags, service, regexp, replacement };
                self.raise(|c, msg| NaptrReply { c, msg, ans, naptr });
            }
            (_, Data::Rrsig { covered, signer }) => {
                let start = raw.pos();
                raw.skip(2);
                let (algorithm, labels) = (u64::from(raw.u8()), u64::from(raw.u8()));
                let orig_ttl = Interval::from_secs(i64::from(raw.u32()));
                let (expires, began) = (i64::from(raw.u32()), i64::from(raw.u32()));
                let key_tag = raw.u16();
                raw.name(&mut Vec::new(), self.place.netbios_server, &mut Vec::new());
                let signature = raw.take(len.saturating_sub(raw.pos() - start));
                let rrsig = Rrsig {
                    query,
                    answer_type,
                    type_covered: *covered,
                    algorithm,
                    labels,
                    orig_ttl,
                    sig_exp: Time::from_secs(expires),
                    sig_incep: Time::from_secs(began),
                    key_tag,
                    signer_name: signer,
                    signature,
                    is_query,
                };
                self.raise(|c, msg| RrsigReply { c, msg, ans, rrsig });
            }
            (_, Data::Dnskey { .. }) => {
                let dnskey = Dnskey {
                    query,
                    answer_type,
                    flags: raw.u16(),
                    protocol: raw.u8().into(),
                    algorithm: raw.u8().into(),
                    public_key: raw.take(len.saturating_sub(4)),
                    is_query,
                };
                self.raise(|c, msg| DnskeyReply { c, msg, ans, dnskey });
            }
            (_, Data::Nsec(next_name)) => {
                let start = raw.pos();
                raw.name(&mut Vec::new(), self.place.netbios_server, &mut Vec::new());
                let bitmaps = bitmaps(&mut raw, start, len);
                self.raise(|c, msg| NsecReply { c, msg, ans, next_name, bitmaps });
            }
            (_, Data::Nsec3) => {
                let start = raw.pos();
                let (nsec_hash_algo, nsec_flags) = (u64::from(raw.u8()), u64::from(raw.u8()));
                let nsec_iter = raw.u16();
                let (salt, hash) = (text(&mut raw), text(&mut raw));
                let nsec3 = Nsec3 {
                    query,
                    answer_type,
                    nsec_flags,
                    nsec_hash_algo,
                    nsec_iter,
                    nsec_salt_len: salt.len() as u64,
                    nsec_salt: salt,
                    nsec_hlen: hash.len() as u64,
                    nsec_hash: hash,
                    bitmaps: bitmaps(&mut raw, start, len),
                    is_query,
                };
                self.raise(|c, msg| Nsec3Reply { c, msg, ans, nsec3 });
            }
            (_, Data::Nsec3Param) => {
                let (nsec_hash_algo, nsec_flags) = (u64::from(raw.u8()), u64::from(raw.u8()));
                let nsec_iter = raw.u16();
                let salt = text(&mut raw);
                let nsec3param = Nsec3Param {
                    query,
                    answer_type,
                    nsec_flags,
                    nsec_hash_algo,
                    nsec_iter,
                    nsec_salt_len: salt.len() as u64,
                    nsec_salt: salt,
                    is_query,
                };
                self.raise(|c, msg| Nsec3ParamReply { c, msg, ans, nsec3param });
            }
            (_, Data::Ds { algorithm, digest }) => {
                let key_tag = raw.u16();
                raw.skip(2);
                let ds = Ds {
                    query,
                    answer_type,
                    key_tag,
                    algorithm: u64::from(*algorithm),
                    digest_type: u64::from(*digest),
                    digest_val: raw.take(len.saturating_sub(4)),
                    is_query,
                };
                self.raise(|c, msg| DsReply { c, msg, ans, ds });
            }
            (_, Data::BindSigning) => {
                let binds = Binds {
                    query,
                    answer_type,
                    algorithm: raw.u8().into(),
                    key_id: raw.u16(),
                    removal_flag: raw.u8().into(),
                    complete_flag: raw.u8().into(),
                    is_query,
                };
                self.raise(|c, msg| BindsReply { c, msg, ans, binds });
            }
            (_, Data::Sshfp(fingerprint)) => {
                let (algo, fptype) = (u64::from(raw.u8()), u64::from(raw.u8()));
                self.raise(|c, msg| SshfpReply { c, msg, ans, algo, fptype, fingerprint });
            }
            (_, Data::Loc(..)) => {
                let loc = Loc {
                    query,
                    answer_type,
                    version: raw.u8().into(),
                    size: raw.u8().into(),
                    horiz_pre: raw.u8().into(),
                    vert_pre: raw.u8().into(),
                    latitude: raw.u32(),
                    longitude: raw.u32(),
                    altitude: raw.u32(),
                    is_query,
                };
                self.raise(|c, msg| LocReply { c, msg, ans, loc });
            }
            (_, Data::Unknown(_)) => self.raise(|c, msg| UnknownReply { c, msg, ans }),
            _ => {}
        }
    }

    /// The second of two names that follow each other.
    fn second_name(&self, raw: &mut Cursor<'_>) -> Vec<u8> {
        let (mut name, mut notes) = (Vec::new(), Vec::new());
        raw.name(&mut Vec::new(), self.place.netbios_server, &mut notes);
        raw.name(&mut name, self.place.netbios_server, &mut notes);
        name
    }
}

/// A string behind its length, cut to what there is.
fn text<'a>(raw: &mut Cursor<'a>) -> &'a [u8] {
    let len = usize::from(raw.u8());
    raw.take(len)
}

/// The windows of a type bitmap (RFC 4034 §4.1.2).
fn bitmaps<'a>(raw: &mut Cursor<'a>, start: usize, len: usize) -> Vec<&'a [u8]> {
    let mut all = Vec::new();
    let mut left = len as i64 - (raw.pos() - start) as i64;
    while left > 0 && raw.remaining() > 0 {
        let size = usize::from(raw.u16() as u8);
        if size == 0 {
            break;
        }
        all.push(raw.take(size));
        left -= 2 + size as i64;
    }
    all
}
