//! Processing of request and status lines.

use std::borrow::Cow;

use gannet_base::Dir;

use super::analyzer::Analyzer;
use super::analyzer::Expect;
use super::analyzer::MAX_UNANSWERED;
use super::body::Ending;
use super::body::Message;
use super::entity::Body;
use super::events::HttpEvent;
use super::events::HttpReply;
use super::events::HttpRequest;
use super::message::BAD_VERSION;
use super::message::KEYWORD;
use super::message::StatusLine;
use super::message::Version;
use super::message::plausible_0_9;
use super::message::request_line;
use super::message::status_line;
use super::scope::Scope;
use super::state::Exchanges;
use crate::Context;
use crate::Tag;

/// Whether `method` is `full` or, as some clients send it, a prefix of it.
fn is_method(method: &[u8], full: &[u8]) -> bool {
    full.get(..method.len()).is_some_and(|f| f.eq_ignore_ascii_case(method))
}

#[inline]
fn reply(cx: &mut Context<'_>, exchanges: &mut Exchanges, status: &StatusLine<'_>) {
    cx.report(exchanges, |c| HttpReply {
        c,
        version: status.version.text(),
        code: status.code,
        reason: status.reason.unwrap_or(b"<empty>"),
    });
}

/// Truncates a URI to `max` bytes.
fn truncated(uri: &[u8], max: u64) -> Cow<'_, [u8]> {
    match usize::try_from(max).ok().and_then(|max| uri.split_at_checked(max)) {
        Some((begin, rest)) if !rest.is_empty() => Cow::Owned([begin, b"..."].concat()),
        _ => Cow::Borrowed(uri),
    }
}

/// Raises events of the errors of a line, which consist of a type and a detail.
fn raise(cx: &mut Context<'_>, faults: &[(&'static str, &[u8])]) {
    for (event_type, detail) in faults {
        cx.raise(|c| HttpEvent { c, event_type, detail });
    }
}

impl Analyzer {
    fn set_version(&mut self, cx: &mut Context<'_>, from: Dir, new: Version) {
        let version = if from.is_orig() {
            &mut self.session.request_version
        } else {
            &mut self.session.reply_version
        };
        if *version != Version::NONE && *version != new {
            cx.weird("HTTP_version_mismatch", "", Some("HTTP"));
        }
        *version = new;
        self.session.keep_alive |= new.persistent();
    }

    /// Starts a message after a first line of `line` bytes.
    fn new_message(&mut self, cx: &mut Context<'_>, from: Dir, body: Body, line: usize) {
        let side = &mut self.sides[from.index()];
        if side.message.as_ref().is_some_and(|m| !m.finished) {
            cx.weird("HTTP_overlapping_messages", "", Some("HTTP"));
        }
        let mut scope = Scope {
            cx,
            exchanges: &mut self.exchanges,
            session: &mut self.session,
            feed: &mut side.feed,
            from,
        };
        match &mut side.message {
            Some(message) => message.restart(&mut scope, body, line),
            None => side.message = Some(Box::new(Message::new(&mut scope, body, line))),
        }
    }

    pub(super) fn request_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        let mut weirds = Vec::new();
        let parsed = request_line(line, &mut weirds);
        for name in weirds {
            cx.weird(name, "", Some("HTTP"));
        }
        let (bad, trailing): (Vec<_>, Vec<_>) =
            parsed.faults.iter().partition(|(event_type, _)| *event_type == BAD_VERSION);
        raise(cx, &bad);
        if let Some(version) = parsed.version {
            self.set_version(cx, Dir::Orig, version);
        }
        raise(cx, &trailing);
        let version = self.session.request_version;
        let mut request = parsed.request;
        for name in request.iter().flat_map(|request| &request.weirds) {
            cx.weird(name, "", Some("HTTP"));
        }
        if version == Version::V0_9 && request.as_ref().is_some_and(|r| !plausible_0_9(r)) {
            cx.weird("bad_HTTP_request", "", Some("HTTP"));
            request = None;
        }
        let Some(request) = request else {
            let expected = self.sides[0].lines == 0 || self.session.keep_alive;
            if expected && line.is_empty() {
                // Some clients send a line end after a body, which its length does not include.
                cx.weird("empty_http_request", "", Some("HTTP"));
            } else if expected {
                cx.violation(Tag::Http, "not a http request line", b"");
                self.sides[0].expect = Expect::Ignored;
            } else {
                raise(cx, &[("crud_trailing_HTTP_request", line)]);
            }
            return;
        };

        let side = &mut self.sides[0];
        side.lines += 1;
        if !self.session.keep_alive && side.lines > 1 {
            cx.weird("unexpected_multiple_HTTP_requests", "", Some("HTTP"));
        }
        side.expect = Expect::Message;
        side.ongoing = true;
        self.session.request_ongoing = true;
        if self.unanswered.len() < MAX_UNANSWERED {
            self.unanswered.push_back(is_method(request.method, b"HEAD"));
        }
        cx.confirm(Tag::Http);
        self.connect |= is_method(request.method, b"CONNECT");
        let max = cx.env.setting("truncate_http_URI", u64::MAX);
        let (target, uri) = (truncated(request.target, max), truncated(&request.uri, max));
        cx.report(&mut self.exchanges, |c| HttpRequest {
            c,
            method: request.method,
            original_uri: &target,
            unescaped_uri: &uri,
            version: version.text(),
        });
        self.new_message(cx, Dir::Orig, Body::IfDeclared, line.len());

        if version == Version::V0_9 {
            if request.method != b"GET" {
                cx.weird_bytes("invalid_http_09_request_method", request.method, Some("HTTP"));
            }
            if self.sides[1].message.is_some() {
                cx.weird("http_09_reply_before_request", "", Some("HTTP"));
                self.with_message(cx, Dir::Resp, &[], |message, s| {
                    message.finish(s, Ending::Normal);
                });
                self.sides[1].message = None;
            }
            self.sides[1].expect = Expect::Body0_9;
            self.sides[1].feed.unsplit = true;
        }
    }

    pub(super) fn status_line(&mut self, cx: &mut Context<'_>, line: &[u8]) {
        let mut weirds = Vec::new();
        let parsed = status_line(line, &mut weirds);
        for name in weirds {
            cx.weird(name, "", Some("HTTP"));
        }
        let version = parsed.map_or_else(|v| v, |status| Some(status.version));
        if let Some(version) = version {
            if version == Version::NONE {
                raise(cx, &[(BAD_VERSION, &line[KEYWORD.len()..])]);
            }
            self.set_version(cx, Dir::Resp, version);
        }
        let Ok(status) = parsed else {
            let is_short = version.is_some();
            let event_type = if is_short { "HTTP_reply_code_missing" } else { "bad_HTTP_reply" };
            raise(cx, &[(event_type, line)]);
            if !line.is_empty() {
                cx.violation(Tag::Http, "not a http reply line", b"");
                self.sides[1].expect = Expect::Ignored;
            }
            return;
        };
        if status.reason.is_none() {
            raise(cx, &[("HTTP_reply_reason_phrase_missing", line)]);
        }
        let side = &mut self.sides[1];
        side.lines += 1;
        if !self.unanswered.is_empty() {
            cx.confirm(Tag::Http);
        }
        side.expect = Expect::Message;
        side.ongoing = true;
        self.session.reply_code = status.code;
        reply(cx, &mut self.exchanges, &status);
        if status.code != 200 {
            self.connect = false;
        }
        let body = self.reply_body();
        self.new_message(cx, Dir::Resp, body, line.len());
    }

    /// Whether the current response has a body (RFC 9112 section 6.3).
    fn reply_body(&self) -> Body {
        let head = self.unanswered.front().is_some_and(|head| *head);
        match self.session.reply_code {
            _ if head => Body::Never,
            100..200 | 204 | 304 => Body::Never,
            _ => Body::Always,
        }
    }

    /// Processes data of an HTTP/0.9 response, which has neither a status line nor a header.
    pub(super) fn body_0_9(&mut self, cx: &mut Context<'_>, data: &[u8]) {
        if self.sides[1].message.is_none() {
            self.set_version(cx, Dir::Resp, Version::V0_9);
            if self.unanswered.pop_front().is_some() {
                cx.confirm(Tag::Http);
            }
            self.session.connection_close = true;
            self.sides[1].ongoing = true;
            let (version, code) = (self.session.reply_version, self.session.reply_code);
            reply(cx, &mut self.exchanges, &StatusLine { version, code, reason: None });
            let body = self.reply_body();
            self.new_message(cx, Dir::Resp, body, 0);
            self.with_message(cx, Dir::Resp, &[], |m, s| m.deliver(s, b"", true));
        }
        self.with_message(cx, Dir::Resp, &[], |m, s| m.deliver(s, data, false));
    }
}
