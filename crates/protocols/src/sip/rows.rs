use std::collections::BTreeMap;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

use super::events::SipEndEntity;
use super::events::SipHeader;
use super::events::SipReply;
use super::events::SipRequest;
use super::message::count;
use super::values::Name;
use super::values::Path;
use super::values::Values;
use crate::Context;
use crate::OnEvent;
use crate::Tag;
use crate::support::limit_reached;
use crate::support::text::UpperCase;

const METHODS: [&[u8]; 8] =
    [b"REGISTER", b"INVITE", b"ACK", b"CANCEL", b"BYE", b"OPTIONS", b"NOTIFY", b"SUBSCRIBE"];

gannet_log::row! {
    /// One row for each reply to a request.
    pub struct SipRow<'a> = "sip" {
        /// Time of the request.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// Originator and responder of the connection.
        id: ConnId = "id",
        /// Number of the request in its connection.
        trans_depth: u64 = "trans_depth",
        /// Method.
        method: Option<&'a [u8]> = "method",
        /// The request URI.
        uri: Option<&'a [u8]> = "uri",
        /// `Date` header of the request.
        date: Option<&'a [u8]> = "date",
        /// `From` header of the request.
        request_from: Option<&'a [u8]> = "request_from",
        /// `To` header of the request.
        request_to: Option<&'a [u8]> = "request_to",
        /// `From` header of the reply.
        response_from: Option<&'a [u8]> = "response_from",
        /// `To` header of the reply.
        response_to: Option<&'a [u8]> = "response_to",
        /// `Reply-To` header: address for replies.
        reply_to: Option<&'a [u8]> = "reply_to",
        /// `Call-ID` header.
        call_id: Option<&'a [u8]> = "call_id",
        /// Sequence number of the request within its call.
        seq: Option<&'a [u8]> = "seq",
        /// Subject.
        subject: Option<&'a [u8]> = "subject",
        /// `Via` headers of the request.
        request_path: Vector<&'a [u8]> = "request_path",
        /// `Via` headers of the reply.
        response_path: Vector<&'a [u8]> = "response_path",
        /// The client's software.
        user_agent: Option<&'a [u8]> = "user_agent",
        /// Code of the reply.
        status_code: Option<u16> = "status_code",
        /// Reason phrase of the reply.
        status_msg: Option<&'a [u8]> = "status_msg",
        /// Warning of the reply.
        warning: Option<&'a [u8]> = "warning",
        /// Length of the request's body in bytes, as announced.
        request_body_len: Option<u64> = "request_body_len",
        /// Length of the reply's body in bytes, as announced.
        response_body_len: Option<u64> = "response_body_len",
        /// Type of the reply's body.
        content_type: Option<&'a [u8]> = "content_type",
    }
}

/// Values of a request and its replies.
#[derive(Debug, Default)]
struct Info {
    ts: Time,
    depth: u64,
    values: Values,
    status_code: Option<u16>,
    request_body_len: Option<u64>,
    response_body_len: Option<u64>,
}

/// Pending requests, each with its row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pending: BTreeMap<u64, Info>,
    request: u64,
    response: u64,
    /// Buffers of finished transactions, kept for reuse.
    spare: Vec<Values>,
}

/// Maximum number of buffers kept: for a request, and those of a call that ends.
const MAX_SPARE: usize = 4;

impl Rows {
    fn info(&mut self, cx: &mut Context<'_>, request: bool) -> &mut Info {
        let (now, limit) = (cx.now, cx.env.pending.of(Tag::Sip).max(1));
        let n = if request { self.request } else { self.response };
        let depth = self.request;
        if self.pending.len() >= limit && !self.pending.contains_key(&n) {
            self.evict(cx);
        }
        let spare = &mut self.spare;
        self.pending.entry(n).or_insert_with(|| {
            let values = spare.pop().unwrap_or_default();
            Info { ts: now, depth, values, ..Info::default() }
        })
    }

    /// Writes the oldest transaction as it is, because too many are pending.
    #[cold]
    fn evict(&mut self, cx: &mut Context<'_>) {
        let count = self.pending.len().to_string();
        limit_reached(cx, "sip_excessive_pending_requests", &count, Some("SIP"));
        if let Some((_, info)) = self.pending.pop_first() {
            info.write(cx);
        }
    }

    /// Removes a finished request.
    fn forget(&mut self, n: u64) {
        if let Some(mut info) = self.pending.remove(&n)
            && self.spare.len() < MAX_SPARE
        {
            info.values.clear();
            self.spare.push(info.values);
        }
    }

    /// Writes pending rows at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        for info in self.pending.values() {
            info.write(cx);
        }
        self.pending.clear();
    }
}

impl OnEvent<SipRequest<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SipRequest<'_>) {
        let info = self.info(cx, true);
        info.values.set(Name::Method, event.method);
        info.values.set(Name::Uri, event.original_uri);
        cx.conn.note_table(self.pending.len());
        if !METHODS.contains(&event.method) {
            cx.weird_bytes("unknown_SIP_method", event.method, None);
        }
    }
}

impl OnEvent<SipReply<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SipReply<'_>) {
        let info = self.info(cx, false);
        info.status_code = Some(event.code);
        info.values.set(Name::StatusMsg, event.reason);
    }
}

impl OnEvent<SipHeader<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SipHeader<'_>) {
        let &SipHeader { is_orig: request, name, value, .. } = event;
        let n = if request { &mut self.request } else { &mut self.response };
        if !self.pending.contains_key(n) {
            *n += 1;
        }
        let info = self.info(cx, request);
        let weird = if request {
            info.request_header(name, value)
        } else {
            info.response_header(name, value)
        };
        if let Some(name) = weird {
            let addl = if name.starts_with("invalid") { value } else { b"" };
            cx.weird_bytes(name, addl, None);
        }
    }
}

impl OnEvent<SipEndEntity> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &SipEndEntity) {
        let request = event.is_orig;
        let info = self.info(cx, request);
        if request {
            return;
        }
        info.write(cx);
        let code = info.status_code.unwrap_or_default();
        let bye = match info.values.get(Name::Method) {
            None => true,
            Some(m) => m == b"BYE" && (200..300).contains(&code),
        };
        if !(100..200).contains(&code) {
            self.forget(self.response);
        }
        if bye {
            for (_, info) in self.pending.iter().filter(|(n, _)| **n != 0) {
                info.write(cx);
            }
            while let Some((n, _)) = self.pending.first_key_value() {
                self.forget(*n);
            }
            (self.request, self.response) = (0, 0);
        }
    }
}

impl Info {
    /// Adds a header of the request; returns the name of a weird if there is one.
    fn request_header(&mut self, name: UpperCase<'_>, value: &[u8]) -> Option<&'static str> {
        let is = |other: &str| name.is(other);
        let field = match name.0.len() {
            7 if is("CALL-ID") => Name::CallId,
            4 if is("CSEQ") => Name::Seq,
            4 if is("DATE") => Name::Date,
            1 | 4 if is("FROM") || is("F") => {
                self.values.set(Name::RequestFrom, before_parameter(value, b"tag="));
                return None;
            }
            8 if is("REPLY-TO") => Name::ReplyTo,
            1 | 7 if is("SUBJECT") || is("S") => Name::Subject,
            1 | 2 if is("TO") || is("T") => Name::RequestTo,
            10 if is("USER-AGENT") => Name::UserAgent,
            1 | 14 if is("CONTENT-LENGTH") || is("L") => {
                let n = count(value);
                self.request_body_len = n.or(self.request_body_len);
                return n.is_none().then_some("invalid_SIP_request_body_len");
            }
            1 | 3 if is("VIA") || is("V") => {
                let step = before_parameter(value, b"branch");
                let fits = self.values.add(Path::Request, step);
                return (!fits).then_some("sip_max_request_path_length_exceeded");
            }
            _ => return None,
        };
        self.values.set(field, value);
        None
    }

    /// Adds a header of the reply; returns the name of a weird if there is one.
    fn response_header(&mut self, name: UpperCase<'_>, value: &[u8]) -> Option<&'static str> {
        let is = |other: &str| name.is(other);
        let field = match name.0.len() {
            1 | 12 if is("CONTENT-TYPE") || is("C") => Name::ContentType,
            7 if is("WARNING") => Name::Warning,
            1 | 4 if is("FROM") || is("F") => {
                self.values.set(Name::ResponseFrom, before_parameter(value, b"tag="));
                return None;
            }
            1 | 2 if is("TO") || is("T") => Name::ResponseTo,
            1 | 14 if is("CONTENT-LENGTH") || is("L") => {
                let n = count(value);
                self.response_body_len = n.or(self.response_body_len);
                return n.is_none().then_some("invalid_SIP_response_body_len");
            }
            1 | 3 if is("VIA") || is("V") => {
                let step = before_parameter(value, b"branch");
                let fits = self.values.add(Path::Response, step);
                return (!fits).then_some("sip_max_response_path_length_exceeded");
            }
            _ => return None,
        };
        self.values.set(field, value);
        None
    }

    fn write(&self, cx: &mut Context<'_>) {
        let value = |name| self.values.get(name);
        cx.log(&SipRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            trans_depth: self.depth,
            method: value(Name::Method),
            uri: value(Name::Uri),
            date: value(Name::Date),
            request_from: value(Name::RequestFrom),
            request_to: value(Name::RequestTo),
            response_from: value(Name::ResponseFrom),
            response_to: value(Name::ResponseTo),
            reply_to: value(Name::ReplyTo),
            call_id: value(Name::CallId),
            seq: value(Name::Seq),
            subject: value(Name::Subject),
            request_path: Vector(self.values.path(Path::Request).collect()),
            response_path: Vector(self.values.path(Path::Response).collect()),
            user_agent: value(Name::UserAgent),
            status_code: self.status_code,
            status_msg: value(Name::StatusMsg),
            warning: value(Name::Warning),
            request_body_len: self.request_body_len,
            response_body_len: self.response_body_len,
            content_type: value(Name::ContentType),
        });
    }
}

/// The text before a semicolon, an optional space, and the parameter's name.
fn before_parameter<'a>(value: &'a [u8], name: &[u8]) -> &'a [u8] {
    for n in memchr::memchr_iter(b';', value) {
        let rest = &value[n + 1..];
        if rest.starts_with(name) || rest.strip_prefix(b" ").is_some_and(|r| r.starts_with(name)) {
            return &value[..n];
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_cut() {
        assert_eq!(before_parameter(b"<sip:a>;x=1; tag=b", b"tag="), b"<sip:a>;x=1");
        assert_eq!(before_parameter(b"<sip:a>;  tag=b", b"tag="), b"<sip:a>;  tag=b");
    }
}
