//! Analyzers nested in an analyzer, for streams that carry other protocols' streams.

use gannet_base::Dir;
use gannet_event::AnalyzerId;

use crate::Analyze;
use crate::AnyAnalyzer;
use crate::Context;
use crate::Dispatched;
use crate::Piece;
use crate::Replay;
use crate::Request;
use crate::ScriptRequest;
use crate::Tag;
use crate::violations::is_incomplete;
use crate::violations::max_violations;
use crate::violations::violation_counts;

/// Maximum depth of nested streams; a deeper one is reported.
const MAX_DEPTH: u8 = 8;

/// Maximum number of analyzers that one [`Nested`] starts; an excess is reported once.
const MAX_STARTS: u16 = 32;

/// The analyzers of a stream within another protocol: after a proxy's `CONNECT`, in WebSocket
/// frames. They receive the payload that their owner passes on. As in Zeek they are not notified
/// of gaps and continue with the following data, nor of the end of a side until the connection
/// ends.
pub struct Nested {
    /// Protocol of the analyzer whose payload the stream is.
    owner: Tag,
    analyzers: Vec<Inner>,
    started: u16,
    /// Whether the excessive nesting was reported.
    too_deep: bool,
    /// Analyzers that scripts removed for good.
    prevented: Vec<Tag>,
}

/// An analyzer of any protocol.
type Any = <Tag as Dispatched>::Analyzer;

struct Inner {
    analyzer: Any,
    /// Whether the analyzer was confirmed, which counts once.
    confirmed: bool,
    violations: Violations,
}

/// Number of violations of one nested analyzer: up to [`max_violations`], and one more.
#[derive(Debug, Default)]
pub(crate) struct Violations(u16);

impl Violations {
    /// Counts one more violation. Returns whether it is within the limit; the first one beyond it
    /// is reported.
    pub(crate) fn count(&mut self, cx: &mut Context<'_>, tag: Tag) -> bool {
        let limit = max_violations(&cx.env.activation);
        if self.0 > limit || is_incomplete(cx.conn) {
            return false;
        }
        self.0 += 1;
        if self.0 > limit {
            cx.weird("too_many_analyzer_violations", "", Some(tag.name()));
        }
        self.0 <= limit
    }
}

/// An analyzer that another one creates for messages within its own and calls itself: it has its
/// own number and is confirmed once.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    number: Option<AnalyzerId>,
    is_started: bool,
    is_confirmed: bool,
    violations: Violations,
}

impl Instance {
    /// Starts the analyzer, unless it is started.
    pub(crate) fn start(&mut self, cx: &mut Context<'_>, tag: Tag) {
        if !std::mem::replace(&mut self.is_started, true) && cx.env.logs.events.any() {
            let events = &mut cx.env.logs.events;
            let number = cx.env.analyzer_ids.instance(events, cx.conn.uid, tag);
            self.number = Some(AnalyzerId(number));
        }
    }

    /// Confirms the protocol. Counts once.
    pub(crate) fn confirm(&mut self, cx: &mut Context<'_>, tag: Tag) {
        if !std::mem::replace(&mut self.is_confirmed, true) {
            cx.confirm_instance(tag, self.number);
        }
    }

    /// Raises the event of a violation, without any other effect. Returns whether the violation is
    /// within the limit.
    pub(crate) fn report_violation(
        &mut self,
        cx: &mut Context<'_>,
        tag: Tag,
        reason: &str,
    ) -> bool {
        let counts = self.violations.count(cx, tag);
        if counts {
            cx.report_instance_violation(tag, self.number, reason);
        }
        counts
    }
}

impl Nested {
    /// Creates a nest without analyzers, within `owner`.
    pub fn new(owner: Tag) -> Self {
        Self { owner, analyzers: Vec::new(), started: 0, too_deep: false, prevented: Vec::new() }
    }

    /// Starts an analyzer, which receives all later data.
    pub fn start(&mut self, cx: &mut Context<'_>, tag: Tag) {
        self.run(cx, vec![(tag, Replay::default())], |_, _| {});
    }

    /// Applies a script's request to an analyzer of the stream or to one nested in that. Returns
    /// whether it was found.
    pub fn handle_request(&mut self, cx: &mut Context<'_>, request: ScriptRequest<'_>) -> bool {
        if let ScriptRequest::Remove { tag, prevent } = request
            && self.find(tag).is_some()
        {
            self.remove(cx, tag);
            if prevent {
                self.prevented.push(tag);
            }
            return true;
        }
        let mut found = false;
        self.run(cx, Vec::new(), |a, cx| found = found || a.handle_request(cx, request));
        found
    }

    /// Delivers bytes of the stream, in order.
    pub fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.run(cx, Vec::new(), |a, cx| a.stream(cx, from, data));
    }

    /// Ends the analyzers with the connection.
    pub fn finish(&mut self, cx: &mut Context<'_>) {
        self.run(cx, Vec::new(), Analyze::finish);
        self.analyzers.clear();
    }

    /// Calls all analyzers, starts the requested ones and applies the other requests.
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        mut starts: Vec<(Tag, Replay)>,
        mut call: impl FnMut(&mut Any, &mut Context<'_>),
    ) {
        if cx.env.nesting >= MAX_DEPTH {
            if !std::mem::replace(&mut self.too_deep, true) {
                let depth = cx.env.nesting.to_string();
                cx.weird("too_many_nested_analyzers", &depth, Some(self.owner.name()));
            }
            return;
        }
        cx.env.nesting += 1;
        let mut requests = Vec::new();
        {
            let mut inner = inside(cx, &mut requests, &mut starts);
            for its in &mut self.analyzers {
                call(&mut its.analyzer, &mut inner);
            }
        }
        while !starts.is_empty() {
            // Started in the order of the requests; there are few.
            let (tag, replay) = starts.remove(0);
            let there = self.find(tag).is_some();
            let is_allowed = cx.env.activation.may_start(tag) && !self.prevented.contains(&tag);
            if there && tag != Tag::Detector || !is_allowed {
                continue;
            }
            if self.started >= MAX_STARTS {
                if self.started == MAX_STARTS {
                    self.started += 1;
                    cx.weird("too_many_analyzers_started", "", Some(tag.name()));
                }
                continue;
            }
            if cx.env.logs.events.any() {
                let events = &mut cx.env.logs.events;
                cx.env.analyzer_ids.start(events, cx.conn, tag);
            }
            let mut inner = inside(cx, &mut requests, &mut starts);
            let Some(mut analyzer) = Any::new(tag, &mut inner) else { continue };
            for (from, piece) in &replay.pieces {
                if let Piece::Bytes(data) = piece {
                    analyzer.stream(&mut inner, *from, data);
                }
            }
            self.started += 1;
            let violations = Violations::default();
            self.analyzers.push(Inner { analyzer, confirmed: false, violations });
        }
        self.apply_requests(cx, requests);
        cx.env.nesting -= 1;
    }

    fn apply_requests(&mut self, cx: &mut Context<'_>, requests: Vec<Request>) {
        for request in requests {
            match request {
                Request::Confirm(tag) => {
                    let own = self.find(tag).and_then(|at| self.analyzers.get_mut(at));
                    let before = own.is_some_and(|a| std::mem::replace(&mut a.confirmed, true));
                    if before {
                        continue;
                    }
                    if tag == self.owner {
                        // The owner has the same protocol, whose event it raised for itself.
                        let aid = cx.aid(tag);
                        cx.confirm_instance(tag, aid);
                    } else {
                        cx.requests.push(request);
                    }
                }
                Request::Violation { tag, reason, data } => {
                    self.count_violation(cx, tag);
                    if violation_counts(cx.conn) {
                        self.remove(cx, tag);
                    }
                    // The nested analyzer shares only its name with the owner.
                    cx.requests.push(if tag == self.owner {
                        Request::Failure { tag, reason, data }
                    } else {
                        Request::Violation { tag, reason, data }
                    });
                }
                Request::Failure { .. } => cx.requests.push(request),
                Request::Done(tag) => self.remove(cx, tag),
                // Nested analyzers have the roles of the connection.
                Request::Flip | Request::Handled => {}
            }
        }
    }

    fn find(&self, tag: Tag) -> Option<usize> {
        self.analyzers.iter().position(|a| a.analyzer.tag() == tag)
    }

    /// Counts violations of an analyzer, and reports the limit.
    fn count_violation(&mut self, cx: &mut Context<'_>, tag: Tag) {
        if let Some(its) = self.find(tag).and_then(|at| self.analyzers.get_mut(at)) {
            its.violations.count(cx, tag);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, tag: Tag) {
        if let Some(at) = self.find(tag) {
            let (mut requests, mut starts) = (Vec::new(), Vec::new());
            let mut analyzer = self.analyzers.remove(at).analyzer;
            analyzer.finish(&mut inside(cx, &mut requests, &mut starts));
        }
    }
}

fn inside<'a>(
    cx: &'a mut Context<'_>,
    requests: &'a mut Vec<Request>,
    starts: &'a mut Vec<(Tag, Replay)>,
) -> Context<'a> {
    Context { now: cx.now, conn: cx.conn, env: cx.env, requests, starts, confirmed: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    #[test]
    fn what_is_carried_is_detected_and_analysed() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::WebSocket);
        nested.start(&mut h.cx(), Tag::Detector);
        let get = b"GET /within HTTP/1.1\r\nHost: a\r\n\r\n";
        nested.stream(&mut h.cx(), Dir::Orig, get);
        assert!(h.confirmed(Tag::Http));
        assert!(h.starts.is_empty());
        nested.finish(&mut h.cx());
        assert_eq!(h.rows("http")[0]["uri"], "/within");
    }

    #[test]
    fn protocols_found_at_once_start_in_the_order_of_their_rules() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::Socks);
        nested.start(&mut h.cx(), Tag::Detector);
        nested.stream(&mut h.cx(), Dir::Orig, b"USER a\r\nHELO b\r\n");
        nested.stream(&mut h.cx(), Dir::Resp, b"220 c\r\n230 d\r\n");
        let tags: Vec<_> = nested.analyzers.iter().map(|a| a.analyzer.tag()).collect();
        assert_eq!(tags, [Tag::Detector, Tag::Ftp, Tag::Smtp]);
    }

    #[test]
    fn a_protocol_within_itself_is_confirmed_as_well() {
        let mut h = Harness::new(Proto::Tcp, 80);
        h.listen("analyzer_confirmation_info");
        h.cx().conn.services.insert(Tag::Http as u8);
        let mut nested = Nested::new(Tag::Http);
        nested.start(&mut h.cx(), Tag::Http);
        for _ in 0..2 {
            nested.stream(&mut h.cx(), Dir::Orig, b"GET /within HTTP/1.1\r\n\r\n");
            nested.stream(&mut h.cx(), Dir::Resp, b"HTTP/1.1 204 No Content\r\n\r\n");
        }
        assert_eq!(h.events().len(), 1);
    }

    #[test]
    fn an_analyzer_that_fails_is_taken_off() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::WebSocket);
        nested.start(&mut h.cx(), Tag::Http);
        nested.stream(&mut h.cx(), Dir::Orig, b"\x00\r\n");
        assert!(h.violated(Tag::Http));
        assert!(nested.analyzers.is_empty());
    }

    #[test]
    fn violations_are_counted() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::WebSocket);
        nested.start(&mut h.cx(), Tag::Pop3);
        // After this much data no violation removes the analyzer.
        h.conn.set_payload(Dir::Orig, 11 * 1024);
        for reported in [0, 1, 1] {
            let lines = if reported == 0 { 1000 } else { 1 };
            nested.stream(&mut h.cx(), Dir::Resp, &b"x\r\n".repeat(lines));
            let rows = h.rows("weird");
            let weirds = rows.iter().filter(|r| r["name"] == "too_many_analyzer_violations");
            assert_eq!(weirds.filter(|r| r["source"] == "POP3").count(), reported);
        }
        assert_eq!(nested.analyzers.len(), 1);
    }

    #[test]
    fn scripts_remove_an_analyzer() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::WebSocket);
        nested.start(&mut h.cx(), Tag::Http);
        let remove = |tag| ScriptRequest::Remove { tag, prevent: true };
        assert!(!nested.handle_request(&mut h.cx(), remove(Tag::Ssh)));
        assert!(nested.handle_request(&mut h.cx(), remove(Tag::Http)));
        nested.start(&mut h.cx(), Tag::Http);
        assert!(nested.analyzers.is_empty());
    }

    #[test]
    fn scripts_limit_violations() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let (name, value) = ("max_analyzer_violations", 2);
        h.env.apply_command(h.now, gannet_event::Command::Setting { name, value });
        let mut nested = Nested::new(Tag::WebSocket);
        nested.start(&mut h.cx(), Tag::Pop3);
        h.conn.set_payload(Dir::Orig, 11 * 1024);
        nested.stream(&mut h.cx(), Dir::Resp, &b"x\r\n".repeat(2));
        assert!(h.rows("weird").iter().all(|r| r["name"] != "too_many_analyzer_violations"));
        nested.stream(&mut h.cx(), Dir::Resp, b"x\r\n");
        assert!(h.rows("weird").iter().any(|r| r["name"] == "too_many_analyzer_violations"));
    }

    #[test]
    fn the_owner_stays_when_one_of_its_kind_fails() {
        let mut h = Harness::new(Proto::Tcp, 9999);
        let mut nested = Nested::new(Tag::Http);
        nested.start(&mut h.cx(), Tag::Http);
        nested.stream(&mut h.cx(), Dir::Orig, b"\x00\r\n");
        assert!(nested.analyzers.is_empty() && !h.violated(Tag::Http));
        assert!(matches!(h.requests[..], [Request::Failure { tag: Tag::Http, .. }]));
    }
}
