use std::collections::VecDeque;

use gannet_base::Dir;

use super::body::Ending;
use super::body::Message;
use super::events::HttpConnectionUpgrade;
use super::events::HttpEvent;
use super::events::HttpStats;
use super::events::Stats;
use super::feed::Feed;
use super::feed::Text;
use super::scope::Scope;
use super::scope::SessionState;
use super::state::Exchanges;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::ScriptRequest;
use crate::Tag;

/// Maximum number of unanswered requests that are stored.
pub(super) const MAX_UNANSWERED: usize = 1 << 16;

/// The next element expected from a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A request or status line.
    Line,
    /// More data of the current message.
    Message,
    /// Data that is ignored.
    Ignored,
    /// The body of an HTTP/0.9 response.
    Body0_9,
}

pub(super) struct Side {
    pub(super) feed: Feed,
    pub(super) expect: Expect,
    /// The last message has not ended yet.
    pub(super) ongoing: bool,
    /// The last message, complete or not.
    pub(super) message: Option<Box<Message>>,
    /// Number of request or status lines so far.
    pub(super) lines: u64,
}

impl Side {
    fn new() -> Self {
        Self {
            feed: Feed::default(),
            expect: Expect::Line,
            ongoing: false,
            message: None,
            lines: 0,
        }
    }
}

/// The analyzer of one connection.
pub struct Analyzer {
    pub(super) sides: [Side; 2],
    pub(super) session: SessionState,
    pub(super) exchanges: Exchanges,
    /// For each unanswered request, whether its response has no body (HEAD).
    pub(super) unanswered: VecDeque<bool>,
    /// The last request was CONNECT.
    pub(super) connect: bool,
    /// The connection has switched to another protocol.
    upgraded: bool,
    /// The analyzers of the payload after an upgrade.
    nested: Option<Box<Nested>>,
    /// This analyzer is nested in another HTTP analyzer, which owns the exchanges.
    is_inner: bool,
    /// Originator and responder were swapped too late: the rest of the connection is ignored.
    roles_lost: bool,
    /// The weird of a line that ends with CR alone was reported: once a connection.
    lone_cr_reported: bool,
    /// The analyzer was suspended.
    is_suspended: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            sides: [Side::new(), Side::new()],
            session: SessionState::default(),
            exchanges: Exchanges::default(),
            unanswered: VecDeque::new(),
            connect: false,
            upgraded: false,
            nested: None,
            is_inner: cx.env.http.shared_exchanges.is_some(),
            roles_lost: false,
            lone_cr_reported: false,
            is_suspended: false,
        }
    }

    /// Calls `act` with the exchanges of the connection in `self.exchanges`.
    fn with_exchanges(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.is_inner {
            act(self, cx);
            return;
        }
        self.exchanges = cx.env.http.shared_exchanges.take().unwrap_or_default();
        act(self, cx);
        cx.env.http.shared_exchanges = Some(std::mem::take(&mut self.exchanges));
    }

    /// Calls `act` with the nested analyzers, which share the exchanges of this connection.
    fn with_nested(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Nested, &mut Context<'_>),
    ) {
        if let Some(nested) = &mut self.nested {
            cx.env.http.shared_exchanges = Some(std::mem::take(&mut self.exchanges));
            act(nested, cx);
            self.exchanges = cx.env.http.shared_exchanges.take().unwrap_or_default();
        }
    }

    /// Calls `act` with the message of a side, and finishes the message if it has ended.
    pub(super) fn with_message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        rest: &[u8],
        act: impl FnOnce(&mut Message, &mut Scope<'_, '_>),
    ) {
        let side = &mut self.sides[from.index()];
        if let Some(message) = &mut side.message {
            let (exchanges, session, feed) =
                (&mut self.exchanges, &mut self.session, &mut side.feed);
            act(message, &mut Scope { cx, exchanges, session, feed, from });
            if side.ongoing && message.finished {
                self.finish_message(cx, from, Ending::Normal, rest);
            }
        }
    }

    /// Finishes the message of a side. After an interrupted message, the following data is ignored.
    fn finish_message(&mut self, cx: &mut Context<'_>, from: Dir, ending: Ending, rest: &[u8]) {
        let side = &mut self.sides[from.index()];
        if !std::mem::take(&mut side.ongoing) {
            return;
        }
        if from.is_orig() {
            self.session.request_ongoing = false;
        }
        self.with_message(cx, from, &[], |message, s| message.finish(s, ending));
        let mut ignores_rest = ending.is_interrupted();
        if !from.is_orig() {
            let code = self.session.reply_code;
            let informational = (100..200).contains(&code);
            if !informational {
                self.unanswered.pop_front();
            }
            if code == 101
                && self.unanswered.len() == 1
                && self.session.upgrade
                && !self.session.upgrade_to.is_empty()
            {
                self.upgrade(cx, rest);
            }
            self.session.reply_code = 0;
            self.session.upgrade = false;
            self.session.upgrade_to.clear();
            ignores_rest |= self.upgraded;
        }
        let side = &mut self.sides[from.index()];
        side.expect = if ignores_rest { Expect::Ignored } else { Expect::Line };
    }

    /// Switches to the protocol of an upgrade (RFC 9110 section 7.8).
    #[cold]
    fn upgrade(&mut self, cx: &mut Context<'_>, rest: &[u8]) {
        if !rest.is_empty() {
            let addl = rest.len().to_string();
            cx.weird("protocol_data_with_HTTP_upgrade_reply", &addl, Some("HTTP"));
        }
        let protocol = &self.session.upgrade_to[..];
        cx.report(&mut self.exchanges, |c| HttpConnectionUpgrade { c, protocol });
        let tag = cx.env.upgrade(protocol).unwrap_or(Tag::Detector);
        self.switch_protocol(cx, tag, rest);
    }

    /// Starts nested analyzers for the rest of the connection, which begins with `rest`.
    fn switch_protocol(&mut self, cx: &mut Context<'_>, tag: Tag, rest: &[u8]) {
        self.upgraded = true;
        self.nested = Some(Box::new(Nested::new(Tag::Http)));
        self.with_nested(cx, |nested, cx| {
            nested.start(cx, tag);
            if !rest.is_empty() {
                nested.stream(cx, Dir::Resp, rest);
            }
        });
    }

    /// Processes a line without its line end; `rest` is the rest of the chunk.
    fn line(&mut self, cx: &mut Context<'_>, from: Dir, line: &[u8], rest: &[u8]) {
        match (self.sides[from.index()].expect, from) {
            (Expect::Line, Dir::Orig) => self.request_line(cx, line),
            (Expect::Line, Dir::Resp) => self.status_line(cx, line),
            (Expect::Message, _) => {
                self.with_message(cx, from, rest, |m, s| m.deliver(s, line, true));
                if self.connect && !from.is_orig() && line.is_empty() && !self.upgraded {
                    if !rest.is_empty() {
                        let addl = rest.len().to_string();
                        cx.weird("protocol_data_with_HTTP_CONNECT_reply", &addl, Some("HTTP"));
                    }
                    self.switch_protocol(cx, Tag::Detector, rest);
                }
            }
            (Expect::Ignored | Expect::Body0_9, _) => {}
        }
    }

    fn report_weirds(&mut self, cx: &mut Context<'_>, from: Dir) {
        let weirds = std::mem::take(&mut self.sides[from.index()].feed.weirds);
        if weirds.lone_cr && !std::mem::replace(&mut self.lone_cr_reported, true) {
            cx.weird("line_terminated_with_single_CR", "", Some("CONTENTLINE"));
        }
        if weirds.too_long {
            cx.weird("contentline_size_exceeded", "", Some("CONTENTLINE"));
        }
    }

    /// Splits a chunk into lines only to report weirds of line ends.
    fn split_for_weirds(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            let feed = &mut self.sides[from.index()].feed;
            feed.skip_lf(&mut data);
            let plain = usize::try_from(feed.pass_through).unwrap_or_default().min(data.len());
            (feed.pass_through, data) = (feed.pass_through - plain as i64, &data[plain..]);
            match feed.next(&mut data) {
                Some(Text::Joined(line)) => feed.recycle(line),
                Some(Text::Borrowed(_)) => {}
                None => feed.discard_partial(),
            }
        }
        self.report_weirds(cx, from);
    }

    /// Splits a chunk into lines and raw data, and processes them.
    fn split(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            if self.upgraded {
                return;
            }
            if cx.is_removed(Tag::Http) {
                return self.split_for_weirds(cx, from, data);
            }
            let feed = &mut self.sides[from.index()].feed;
            if feed.skip {
                return;
            }
            feed.skip_lf(&mut data);
            if feed.pass_through > 0 {
                let n = usize::try_from(feed.pass_through).unwrap_or(usize::MAX).min(data.len());
                let (now, rest) = data.split_at(n);
                feed.pass_through -= n as i64;
                data = rest;
                if self.sides[from.index()].message.is_some() {
                    self.with_message(cx, from, rest, |m, s| m.deliver(s, now, false));
                } else {
                    let name = match from {
                        Dir::Orig => "unexpected_client_HTTP_data",
                        Dir::Resp => "unexpected_server_HTTP_data",
                    };
                    cx.weird(name, "", Some("HTTP"));
                }
                continue;
            }
            let line = feed.next(&mut data);
            if feed.weirds != Default::default() {
                self.report_weirds(cx, from);
            }
            match line {
                Some(Text::Borrowed(line)) => self.line(cx, from, line, data),
                Some(Text::Joined(line)) => {
                    self.line(cx, from, &line, data);
                    self.sides[from.index()].feed.recycle(line);
                }
                None if self.sides[from.index()].expect == Expect::Ignored => {
                    self.sides[from.index()].feed.discard_partial();
                }
                None => {}
            }
        }
    }
}

impl Analyzer {
    fn on_data(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.roles_lost {
            return;
        }
        if cx.conn.is_partial() {
            if from.is_orig() && !self.sides[0].feed.skip {
                self.split_for_weirds(cx, from, data);
            }
            return;
        }
        if self.upgraded {
            self.with_nested(cx, |nested, cx| nested.stream(cx, from, data));
            return;
        }
        let side = &mut self.sides[from.index()];
        if side.expect == Expect::Body0_9 {
            self.body_0_9(cx, data);
            return;
        }
        if side.feed.unsplit {
            self.line(cx, from, data, &[]);
            return;
        }
        if side.feed.skip {
            return;
        }
        if side.feed.body_remaining > 0 {
            side.feed.body_remaining -= data.len() as i64;
        }
        self.split(cx, from, data);
        let feed = &mut self.sides[from.index()].feed;
        if feed.body_remaining == 0 {
            // The declared length is reached: an incomplete line is the last one.
            if feed.has_partial() && !self.upgraded {
                cx.weird("line_terminated_without_CRLF", "", Some("CONTENTLINE"));
                self.split(cx, from, b"\r\n");
            }
            self.sides[from.index()].feed.body_remaining = -1;
        }
    }

    fn on_gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        // As in Zeek, nested analyzers are not notified of gaps and continue with the following data.
        let mut within = false;
        if cx.wants::<HttpEvent<'_>>() && self.sides[from.index()].message.is_some() {
            let detail = format!("seq={}, len={len}", cx.env.gap_at);
            let detail = detail.as_bytes();
            cx.raise(|c| HttpEvent { c, event_type: "content gap", detail });
        }
        self.with_message(cx, from, &[], |message, s| within = message.gap(s, len));
        if within {
            return;
        }
        if from.is_orig() {
            // Whether a response has a body may depend on the request.
            self.finish_message(cx, Dir::Orig, Ending::Gap, &[]);
        }
        self.finish_message(cx, Dir::Resp, Ending::Gap, &[]);
        self.sides[from.index()].feed.skip = true;
    }

    fn on_end(&mut self, cx: &mut Context<'_>, from: Dir) {
        // As in Zeek, nested analyzers are not notified of the end of a side, nor of a reset.
        let side = &mut self.sides[from.index()];
        if side.expect == Expect::Body0_9 {
            // Data that was buffered as an incomplete line before the request is part of the body.
            let rest = side.feed.take_partial();
            if !rest.is_empty() {
                self.body_0_9(cx, &rest);
            }
        } else if side.feed.has_partial() && !side.feed.unsplit && !self.upgraded {
            self.on_data(cx, from, b"\n");
        }
        self.finish_message(cx, from, Ending::Closed, &[]);
    }

    fn interrupt(&mut self, cx: &mut Context<'_>, ending: Ending) {
        self.finish_message(cx, Dir::Orig, ending, &[]);
        self.finish_message(cx, Dir::Resp, ending, &[]);
    }

    /// Statistics of the connection so far.
    fn stats(&self) -> Stats {
        Stats {
            num_requests: self.sides[0].lines,
            num_replies: self.sides[1].lines,
            request_version: self.session.request_version.number(),
            reply_version: self.session.reply_version.number(),
        }
    }

    /// Ends the current messages and the nested analyzers.
    fn leave(&mut self, cx: &mut Context<'_>) {
        self.interrupt(cx, Ending::Done);
        self.with_nested(cx, Nested::finish);
    }
}

impl Analyze for Analyzer {
    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        let mut found = false;
        self.with_nested(cx, |nested, cx| found = nested.handle_request(cx, request));
        if let (ScriptRequest::SkipEntity { from }, false) = (request, found) {
            if let Some(message) = &mut self.sides[from.index()].message {
                message.skip();
            }
            found = true;
        }
        found
    }

    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.with_exchanges(cx, |a, cx| a.on_data(cx, from, data));
    }

    fn gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        self.with_exchanges(cx, |a, cx| a.on_gap(cx, from, len));
    }

    fn end(&mut self, cx: &mut Context<'_>, from: Dir) {
        self.with_exchanges(cx, |a, cx| a.on_end(cx, from));
    }

    fn end_removed(&mut self, cx: &mut Context<'_>, from: Dir) {
        self.with_exchanges(cx, |a, cx| a.finish_message(cx, from, Ending::Closed, &[]));
    }

    fn flip(&mut self, cx: &mut Context<'_>) {
        if self.upgraded {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
        } else if self.sides.iter().any(|side| side.lines > 0) {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
            self.roles_lost = true;
        } else {
            let [orig, resp] = &mut self.sides;
            std::mem::swap(&mut orig.feed, &mut resp.feed);
        }
    }

    fn reset(&mut self, cx: &mut Context<'_>) {
        self.with_exchanges(cx, |a, cx| a.interrupt(cx, Ending::Reset));
    }

    fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
        self.with_exchanges(cx, Self::leave);
        let (exchanges, stats) = (std::mem::take(&mut self.exchanges), self.stats());
        let lone_cr_reported = self.lone_cr_reported;
        *self = Self { exchanges, lone_cr_reported, is_suspended: true, ..Self::new(cx) };
        cx.raise(|c| HttpStats { c, stats });
        cx.raise_handle_without_file(Tag::Http, Dir::Orig);
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.with_exchanges(cx, |a, cx| {
            a.leave(cx);
            if !a.is_inner {
                a.exchanges.finish(cx);
            }
        });
        let stats = self.stats();
        if !self.is_suspended || stats.num_requests + stats.num_replies > 0 {
            cx.raise(|c| HttpStats { c, stats });
            cx.raise_file_handle(Tag::Http, Dir::Orig);
        }
        // A gap after a complete request may have begun a file.
        self.with_exchanges(cx, |a, cx| {
            a.with_message(cx, Dir::Orig, &[], |message, s| message.entities[0].end_late_file(s));
        });
    }
}
