use std::collections::BTreeMap;

use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Vector;

use super::message::Request;
use super::message::Status;
use crate::Context;

/// Steps of a path that are kept.
const MAX_PATH: usize = 100;
const METHODS: [&[u8]; 8] =
    [b"REGISTER", b"INVITE", b"ACK", b"CANCEL", b"BYE", b"OPTIONS", b"NOTIFY", b"SUBSCRIBE"];

gannet_log::row! {
    /// One row a reply to a request.
    pub struct SipRow<'a> = "sip" {
        /// When the request was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: Uid = "uid",
        /// The connection's ends.
        id: ConnId = "id",
        /// Number of the request in its connection.
        trans_depth: u64 = "trans_depth",
        /// Method.
        method: Option<&'a [u8]> = "method",
        /// What it is about.
        uri: Option<&'a [u8]> = "uri",
        /// The request's date.
        date: Option<&'a [u8]> = "date",
        /// Who asks, as the request says.
        request_from: Option<&'a [u8]> = "request_from",
        /// Who is asked, as the request says.
        request_to: Option<&'a [u8]> = "request_to",
        /// Who asks, as the reply says.
        response_from: Option<&'a [u8]> = "response_from",
        /// Who is asked, as the reply says.
        response_to: Option<&'a [u8]> = "response_to",
        /// Where replies should go.
        reply_to: Option<&'a [u8]> = "reply_to",
        /// Name of the call.
        call_id: Option<&'a [u8]> = "call_id",
        /// Number of the request in its call.
        seq: Option<&'a [u8]> = "seq",
        /// Subject.
        subject: Option<&'a [u8]> = "subject",
        /// The request's way.
        request_path: Vector<&'a [u8]> = "request_path",
        /// The reply's way.
        response_path: Vector<&'a [u8]> = "response_path",
        /// The client's software.
        user_agent: Option<&'a [u8]> = "user_agent",
        /// Code of the reply.
        status_code: Option<u16> = "status_code",
        /// Its reason.
        status_msg: Option<&'a [u8]> = "status_msg",
        /// The reply's warning.
        warning: Option<&'a [u8]> = "warning",
        /// Bytes of the request's body, as announced.
        request_body_len: Option<u64> = "request_body_len",
        /// Bytes of the reply's body, as announced.
        response_body_len: Option<u64> = "response_body_len",
        /// Type of the reply's body.
        content_type: Option<&'a [u8]> = "content_type",
    }
}

/// What is known of a request and its replies.
#[derive(Debug, Default)]
struct Info {
    ts: Time,
    depth: u64,
    method: Option<Vec<u8>>,
    uri: Option<Vec<u8>>,
    date: Option<Vec<u8>>,
    request_from: Option<Vec<u8>>,
    request_to: Option<Vec<u8>>,
    response_from: Option<Vec<u8>>,
    response_to: Option<Vec<u8>>,
    reply_to: Option<Vec<u8>>,
    call_id: Option<Vec<u8>>,
    seq: Option<Vec<u8>>,
    subject: Option<Vec<u8>>,
    request_path: Vec<Vec<u8>>,
    response_path: Vec<Vec<u8>>,
    user_agent: Option<Vec<u8>>,
    status_code: Option<u16>,
    status_msg: Option<Vec<u8>>,
    warning: Option<Vec<u8>>,
    request_body_len: Option<u64>,
    response_body_len: Option<u64>,
    content_type: Option<Vec<u8>>,
}

/// Requests that await replies.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pending: BTreeMap<u64, Info>,
    request: u64,
    response: u64,
}

impl Requests {
    fn info(&mut self, cx: &Context<'_>, request: bool) -> &mut Info {
        let (now, limit) = (cx.now, cx.env.pending.sip.max(1));
        let n = if request { self.request } else { self.response };
        let depth = self.request;
        if self.pending.len() >= limit && !self.pending.contains_key(&n) {
            self.pending.pop_first();
        }
        self.pending.entry(n).or_insert_with(|| Info { ts: now, depth, ..Info::default() })
    }

    pub(super) fn request(&mut self, cx: &mut Context<'_>, line: &Request<'_>) {
        let info = self.info(cx, true);
        info.method = Some(line.method.to_vec());
        info.uri = Some(line.uri.to_vec());
        cx.conn.note_table(self.pending.len());
        if !METHODS.contains(&line.method) {
            cx.weird_bytes("unknown_SIP_method", line.method, None);
        }
    }

    pub(super) fn reply(&mut self, cx: &Context<'_>, line: &Status<'_>) {
        let info = self.info(cx, false);
        info.status_code = Some(line.code);
        info.status_msg = Some(line.reason.to_vec());
    }

    pub(super) fn header(
        &mut self,
        cx: &mut Context<'_>,
        request: bool,
        name: &[u8],
        value: &[u8],
    ) {
        let n = if request { &mut self.request } else { &mut self.response };
        if !self.pending.contains_key(n) {
            *n += 1;
        }
        let info = self.info(cx, request);
        let odd = if request {
            info.request_header(name, value)
        } else {
            info.response_header(name, value)
        };
        if let Some(name) = odd {
            let addl = if name.starts_with("invalid") { value } else { b"" };
            cx.weird_bytes(name, addl, None);
        }
    }

    pub(super) fn end(&mut self, cx: &mut Context<'_>, request: bool) {
        let info = self.info(cx, request);
        if request {
            return;
        }
        info.write(cx);
        let code = info.status_code.unwrap_or_default();
        let bye = match &info.method {
            None => true,
            Some(m) => m == b"BYE" && (200..300).contains(&code),
        };
        if !(100..200).contains(&code) {
            self.pending.remove(&self.response);
        }
        if bye {
            for (_, info) in self.pending.iter().filter(|(n, _)| **n != 0) {
                info.write(cx);
            }
            *self = Self::default();
        }
    }

    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        for info in self.pending.values() {
            info.write(cx);
        }
        self.pending.clear();
    }
}

impl Info {
    /// Takes a header of the request; the name of what is odd with it.
    fn request_header(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        let place = match &name.to_ascii_uppercase()[..] {
            b"CALL-ID" => &mut self.call_id,
            b"CSEQ" => &mut self.seq,
            b"DATE" => &mut self.date,
            b"FROM" | b"F" => {
                self.request_from = Some(before_parameter(value, b"tag=").to_vec());
                return None;
            }
            b"REPLY-TO" => &mut self.reply_to,
            b"SUBJECT" | b"S" => &mut self.subject,
            b"TO" | b"T" => &mut self.request_to,
            b"USER-AGENT" => &mut self.user_agent,
            b"CONTENT-LENGTH" | b"L" => {
                let n = count(value);
                self.request_body_len = n.or(self.request_body_len);
                return n.is_none().then_some("invalid_SIP_request_body_len");
            }
            b"VIA" | b"V" => {
                if self.request_path.len() >= MAX_PATH {
                    return Some("sip_max_request_path_length_exceeded");
                }
                self.request_path.push(before_parameter(value, b"branch").to_vec());
                return None;
            }
            _ => return None,
        };
        *place = Some(value.to_vec());
        None
    }

    /// Takes a header of the reply; the name of what is odd with it.
    fn response_header(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        let place = match &name.to_ascii_uppercase()[..] {
            b"CONTENT-TYPE" | b"C" => &mut self.content_type,
            b"WARNING" => &mut self.warning,
            b"FROM" | b"F" => {
                self.response_from = Some(before_parameter(value, b"tag=").to_vec());
                return None;
            }
            b"TO" | b"T" => &mut self.response_to,
            b"CONTENT-LENGTH" | b"L" => {
                let n = count(value);
                self.response_body_len = n.or(self.response_body_len);
                return n.is_none().then_some("invalid_SIP_response_body_len");
            }
            b"VIA" | b"V" => {
                if self.response_path.len() >= MAX_PATH {
                    return Some("sip_max_response_path_length_exceeded");
                }
                self.response_path.push(before_parameter(value, b"branch").to_vec());
                return None;
            }
            _ => return None,
        };
        *place = Some(value.to_vec());
        None
    }

    fn write(&self, cx: &mut Context<'_>) {
        cx.log(&SipRow {
            ts: self.ts,
            uid: cx.conn.uid,
            id: cx.conn.id,
            trans_depth: self.depth,
            method: self.method.as_deref(),
            uri: self.uri.as_deref(),
            date: self.date.as_deref(),
            request_from: self.request_from.as_deref(),
            request_to: self.request_to.as_deref(),
            response_from: self.response_from.as_deref(),
            response_to: self.response_to.as_deref(),
            reply_to: self.reply_to.as_deref(),
            call_id: self.call_id.as_deref(),
            seq: self.seq.as_deref(),
            subject: self.subject.as_deref(),
            request_path: Vector(self.request_path.iter().map(|p| &p[..]).collect()),
            response_path: Vector(self.response_path.iter().map(|p| &p[..]).collect()),
            user_agent: self.user_agent.as_deref(),
            status_code: self.status_code,
            status_msg: self.status_msg.as_deref(),
            warning: self.warning.as_deref(),
            request_body_len: self.request_body_len,
            response_body_len: self.response_body_len,
            content_type: self.content_type.as_deref(),
        });
    }
}

/// A number without anything else.
fn count(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What stands before a semicolon, perhaps a blank, and the parameter's name.
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
        assert_eq!((count(b"12"), count(b""), count(b"1 ")), (Some(12), None, None));
    }
}
