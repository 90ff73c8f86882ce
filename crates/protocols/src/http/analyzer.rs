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
use super::scope::Facts;
use super::scope::Scope;
use super::state::Exchanges;
use crate::Analyze;
use crate::Context;
use crate::Nested;
use crate::ScriptRequest;
use crate::Tag;

/// Requests whose responses are still to come, that are remembered at the most.
pub(super) const MAX_UNANSWERED: usize = 1 << 16;

/// The next element expected from a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A request or status line.
    Line,
    /// More of the current message.
    Message,
    /// Nothing that could be understood.
    Nothing,
    /// The bare body of an HTTP/0.9 response.
    Body0_9,
}

pub(super) struct Side {
    pub(super) feed: Feed,
    pub(super) expect: Expect,
    /// A message is under way.
    pub(super) ongoing: bool,
    /// The last message, under way or finished.
    pub(super) message: Option<Box<Message>>,
    /// Request or status lines so far.
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
    pub(super) facts: Facts,
    pub(super) exchanges: Exchanges,
    /// Of each unanswered request, whether its response has no body (HEAD).
    pub(super) unanswered: VecDeque<bool>,
    /// The last request was CONNECT.
    pub(super) connect: bool,
    /// The connection carries something else from now on.
    upgraded: bool,
    /// The analyzers of the payload after an upgrade.
    nested: Option<Box<Nested>>,
    /// The exchanges belong to an outer analyzer of the same kind, which carries this one's stream.
    inner: bool,
    /// The roles changed too late to make sense of the rest.
    lost: bool,
    /// Lines that end with CR alone are reported once a connection.
    lone_cr_told: bool,
    /// The analyzer was suspended.
    is_gone: bool,
}

impl Analyzer {
    /// For a new connection.
    pub fn new(cx: &mut Context<'_>) -> Self {
        Self {
            sides: [Side::new(), Side::new()],
            facts: Facts::default(),
            exchanges: Exchanges::default(),
            unanswered: VecDeque::new(),
            connect: false,
            upgraded: false,
            nested: None,
            inner: cx.env.http.lent.is_some(),
            lost: false,
            lone_cr_told: false,
            is_gone: false,
        }
    }

    /// Runs a function on the connection's current exchanges.
    fn with_exchanges(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.inner {
            act(self, cx);
            return;
        }
        self.exchanges = cx.env.http.lent.take().unwrap_or_default();
        act(self, cx);
        cx.env.http.lent = Some(std::mem::take(&mut self.exchanges));
    }

    /// Passes data to inner analyzers, which share this connection's exchanges.
    fn pass_on(&mut self, cx: &mut Context<'_>, act: impl FnOnce(&mut Nested, &mut Context<'_>)) {
        if let Some(nested) = &mut self.nested {
            cx.env.http.lent = Some(std::mem::take(&mut self.exchanges));
            act(nested, cx);
            self.exchanges = cx.env.http.lent.take().unwrap_or_default();
        }
    }

    /// Runs `act` on the message of a side, and sees to its end.
    pub(super) fn with_message(
        &mut self,
        cx: &mut Context<'_>,
        from: Dir,
        rest: &[u8],
        act: impl FnOnce(&mut Message, &mut Scope<'_, '_>),
    ) {
        let side = &mut self.sides[from.index()];
        if let Some(message) = &mut side.message {
            let (exchanges, facts, feed) = (&mut self.exchanges, &mut self.facts, &mut side.feed);
            act(message, &mut Scope { cx, exchanges, facts, feed, from });
            if side.ongoing && message.finished {
                self.made(cx, from, Ending::Normal, rest);
            }
        }
    }

    /// A message is over. If it is interrupted, the following data makes no sense.
    fn made(&mut self, cx: &mut Context<'_>, from: Dir, ending: Ending, rest: &[u8]) {
        let side = &mut self.sides[from.index()];
        if !std::mem::take(&mut side.ongoing) {
            return;
        }
        if from.is_orig() {
            self.facts.request_ongoing = false;
        }
        self.with_message(cx, from, &[], |message, s| message.done(s, ending));
        let mut nothing = ending.interrupts();
        if !from.is_orig() {
            let code = self.facts.reply_code;
            let informational = (100..200).contains(&code);
            if !informational {
                self.unanswered.pop_front();
            }
            if code == 101
                && self.unanswered.len() == 1
                && self.facts.upgrade
                && !self.facts.upgrade_to.is_empty()
            {
                self.upgrade(cx, rest);
            }
            self.facts.reply_code = 0;
            self.facts.upgrade = false;
            self.facts.upgrade_to.clear();
            nothing |= self.upgraded;
        }
        let side = &mut self.sides[from.index()];
        side.expect = if nothing { Expect::Nothing } else { Expect::Line };
    }

    /// The connection switches to another protocol (RFC 9110 section 7.8).
    #[cold]
    fn upgrade(&mut self, cx: &mut Context<'_>, rest: &[u8]) {
        if !rest.is_empty() {
            let addl = rest.len().to_string();
            cx.weird("protocol_data_with_HTTP_upgrade_reply", &addl, Some("HTTP"));
        }
        let protocol = &self.facts.upgrade_to[..];
        cx.report(&mut self.exchanges, |c| HttpConnectionUpgrade { c, protocol });
        let tag = cx.env.upgrade(protocol).unwrap_or(Tag::Detector);
        self.hand_over(cx, tag, rest);
    }

    /// From now on the connection carries something else; `rest` is the beginning of it.
    fn hand_over(&mut self, cx: &mut Context<'_>, tag: Tag, rest: &[u8]) {
        self.upgraded = true;
        self.nested = Some(Box::new(Nested::new(Tag::Http)));
        self.pass_on(cx, |nested, cx| {
            nested.start(cx, tag);
            if !rest.is_empty() {
                nested.stream(cx, Dir::Resp, rest);
            }
        });
    }

    /// A line without its end; `rest` is the text behind it in the chunk.
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
                    self.hand_over(cx, Tag::Detector, rest);
                }
            }
            (Expect::Nothing | Expect::Body0_9, _) => {}
        }
    }

    fn report_weirds(&mut self, cx: &mut Context<'_>, from: Dir) {
        let odd = std::mem::take(&mut self.sides[from.index()].feed.odd);
        if odd.lone_cr && !std::mem::replace(&mut self.lone_cr_told, true) {
            cx.weird("line_terminated_with_single_CR", "", Some("CONTENTLINE"));
        }
        if odd.too_long {
            cx.weird("contentline_size_exceeded", "", Some("CONTENTLINE"));
        }
    }

    /// Splits a chunk into lines only to report weirds of their ends.
    fn skim(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            let feed = &mut self.sides[from.index()].feed;
            feed.skip_lf(&mut data);
            let plain = usize::try_from(feed.plain).unwrap_or_default().min(data.len());
            (feed.plain, data) = (feed.plain - plain as i64, &data[plain..]);
            match feed.next(&mut data) {
                Some(Text::Joined(line)) => feed.recycle(line),
                Some(Text::Borrowed(_)) => {}
                None => feed.forget(),
            }
        }
        self.report_weirds(cx, from);
    }

    /// Splits a chunk as the feed requires and passes on the pieces.
    fn cut(&mut self, cx: &mut Context<'_>, from: Dir, mut data: &[u8]) {
        while !data.is_empty() {
            if self.upgraded {
                return;
            }
            if cx.is_removed(Tag::Http) {
                return self.skim(cx, from, data);
            }
            let feed = &mut self.sides[from.index()].feed;
            if feed.skip {
                return;
            }
            feed.skip_lf(&mut data);
            if feed.plain > 0 {
                let n = usize::try_from(feed.plain).unwrap_or(usize::MAX).min(data.len());
                let (now, rest) = data.split_at(n);
                feed.plain -= n as i64;
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
            if feed.odd != Default::default() {
                self.report_weirds(cx, from);
            }
            match line {
                Some(Text::Borrowed(line)) => self.line(cx, from, line, data),
                Some(Text::Joined(line)) => {
                    self.line(cx, from, &line, data);
                    self.sides[from.index()].feed.recycle(line);
                }
                None if self.sides[from.index()].expect == Expect::Nothing => {
                    self.sides[from.index()].feed.forget();
                }
                None => {}
            }
        }
    }
}

impl Analyzer {
    fn on_data(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if self.lost {
            return;
        }
        if cx.conn.is_partial() {
            if from.is_orig() && !self.sides[0].feed.skip {
                self.skim(cx, from, data);
            }
            return;
        }
        if self.upgraded {
            self.pass_on(cx, |nested, cx| nested.stream(cx, from, data));
            return;
        }
        let side = &mut self.sides[from.index()];
        if side.expect == Expect::Body0_9 {
            self.body_0_9(cx, data);
            return;
        }
        if side.feed.raw {
            self.line(cx, from, data, &[]);
            return;
        }
        if side.feed.skip {
            return;
        }
        if side.feed.delivery > 0 {
            side.feed.delivery -= data.len() as i64;
        }
        self.cut(cx, from, data);
        let feed = &mut self.sides[from.index()].feed;
        if feed.delivery == 0 {
            // The stated length is reached: an incomplete line is the last one.
            if feed.has_partial() && !self.upgraded {
                cx.weird("line_terminated_without_CRLF", "", Some("CONTENTLINE"));
                self.cut(cx, from, b"\r\n");
            }
            self.sides[from.index()].feed.delivery = -1;
        }
    }

    fn on_gap(&mut self, cx: &mut Context<'_>, from: Dir, len: u64) {
        // As in Zeek, inner analyzers are not notified and continue with the following data.
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
            self.made(cx, Dir::Orig, Ending::Gap, &[]);
        }
        self.made(cx, Dir::Resp, Ending::Gap, &[]);
        self.sides[from.index()].feed.skip = true;
    }

    fn on_end(&mut self, cx: &mut Context<'_>, from: Dir) {
        // As in Zeek, inner analyzers are not notified of this, nor of a reset.
        let side = &mut self.sides[from.index()];
        if side.expect == Expect::Body0_9 {
            // What was taken for the beginning of a line before the request is part of the body.
            let rest = side.feed.take_partial();
            if !rest.is_empty() {
                self.body_0_9(cx, &rest);
            }
        } else if side.feed.has_partial() && !side.feed.raw && !self.upgraded {
            self.on_data(cx, from, b"\n");
        }
        self.made(cx, from, Ending::Closed, &[]);
    }

    fn interrupt(&mut self, cx: &mut Context<'_>, ending: Ending) {
        self.made(cx, Dir::Orig, ending, &[]);
        self.made(cx, Dir::Resp, ending, &[]);
    }

    /// What the connection carried so far.
    fn stats(&self) -> Stats {
        Stats {
            num_requests: self.sides[0].lines,
            num_replies: self.sides[1].lines,
            request_version: self.facts.request_version.number(),
            reply_version: self.facts.reply_version.number(),
        }
    }

    /// Nothing more will be read: ends the current messages.
    fn leave(&mut self, cx: &mut Context<'_>) {
        self.interrupt(cx, Ending::Done);
        self.pass_on(cx, Nested::finish);
    }
}

impl Analyze for Analyzer {
    fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        let mut found = false;
        self.pass_on(cx, |nested, cx| found = nested.handle_request(cx, request));
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
        self.with_exchanges(cx, |a, cx| a.made(cx, from, Ending::Closed, &[]));
    }

    fn flip(&mut self, cx: &mut Context<'_>) {
        if self.upgraded {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
        } else if self.sides.iter().any(|side| side.lines > 0) {
            cx.weird("HTTP_late_flip_roles", "", Some("HTTP"));
            self.lost = true;
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
        let lone_cr_told = self.lone_cr_told;
        *self = Self { exchanges, lone_cr_told, is_gone: true, ..Self::new(cx) };
        cx.raise(|c| HttpStats { c, stats });
        cx.raise_handle_without_file(Tag::Http, Dir::Orig);
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.with_exchanges(cx, |a, cx| {
            a.leave(cx);
            if !a.inner {
                a.exchanges.finish(cx);
            }
        });
        let stats = self.stats();
        if !self.is_gone || stats.num_requests + stats.num_replies > 0 {
            cx.raise(|c| HttpStats { c, stats });
            cx.raise_file_handle(Tag::Http, Dir::Orig);
        }
        // A gap behind a complete request.
        self.with_exchanges(cx, |a, cx| {
            a.with_message(cx, Dir::Orig, &[], |message, s| message.entities[0].end_late_file(s));
        });
    }
}
