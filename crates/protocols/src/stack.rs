//! The analyzers of one connection, and how their requests are applied.

mod consumer;
mod contents;
pub(crate) mod events;
pub(crate) mod ids;
mod matching;
mod steps;
pub(crate) mod streams;
use gannet_base::Dir;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_event::AnalyzerId;
use gannet_event::Connection;
use gannet_event::Event;
use gannet_event::TransportState;
use gannet_flow::Conn;
use gannet_flow::tcp;
use thin_vec::ThinVec;

use crate::Analyze;
use crate::Analyzer;
use crate::AnyAnalyzer;
use crate::Context;
use crate::Env;
use crate::Piece;
use crate::Replay;
use crate::Request;
use crate::ScriptRequest;
use crate::Tag;
use crate::gnutella::events::GnutellaNotEstablish;
use crate::http::events::HttpStats;
use crate::http::events::Stats;
use crate::packet::events::UdpSessionDone;
use crate::ports::by_port;
use crate::stack::events::AnalyzerFailed;
use crate::stack::events::AnalyzerPlanned;
use crate::stack::events::AnalyzersNumbered;
use crate::stack::events::ScheduledAnalyzerApplied;
use crate::stack::events::ViolationInfo;
use crate::violations::is_incomplete;
use crate::violations::max_violations;
use crate::violations::violation_counts;

/// Idle timeout of interactive sessions, in seconds.
const INTERACTIVE_TIMEOUT: u16 = 3600;
/// Ports of interactive sessions.
const INTERACTIVE_PORTS: [u16; 4] = [21, 22, 23, 513];
/// Maximum number of analyzers that one connection starts, including nested ones; an excess is
/// reported once.
const MAX_STARTS: u8 = 32;

/// Requests of the current call, and reusable memory.
#[derive(Default)]
pub struct Scratch {
    requests: Vec<Request>,
    /// Requests that are being applied.
    applying: Vec<Request>,
    starts: Vec<(Tag, Replay)>,
    /// Emptied lists of analyzers, kept for reuse.
    spare: Vec<ThinVec<Entry>>,
}

/// Maximum number of emptied lists kept.
const MAX_SPARE: usize = 64;

impl Scratch {
    /// Returns a list of analyzers to the spare ones.
    fn recycle(&mut self, mut entries: ThinVec<Entry>) {
        entries.clear();
        if self.spare.len() < MAX_SPARE && entries.capacity() == ENTRIES {
            self.spare.push(entries);
        }
    }

    /// An empty list for the analyzers of a connection.
    fn entries(&mut self) -> ThinVec<Entry> {
        self.spare.pop().unwrap_or_else(|| ThinVec::with_capacity(ENTRIES))
    }

    /// The context of one call of an analyzer; `confirmed` is its protocol, if it is confirmed.
    #[inline(always)]
    fn context<'a>(
        &'a mut self,
        now: Time,
        conn: &'a mut Conn,
        env: &'a mut Env,
        confirmed: Option<Tag>,
    ) -> Context<'a> {
        let Self { requests, starts, .. } = self;
        Context { now, conn, env, requests, starts, confirmed }
    }
}

/// The analyzers of one connection.
///
/// They are chosen when the connection begins and created when the first bytes need them, since
/// most connections of a scan or a flood never carry any.
#[derive(Default)]
pub struct Stack {
    /// One pointer wide, because most connections have no analyzers.
    entries: ThinVec<Entry>,
    started: u8,
    /// The responder's port when the connection began.
    port: u16,
    waiting: Waiting,
    /// The analyzer that was removed because it needs no more data: it does not start again.
    finished: Option<Tag>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Waiting {
    /// Everything was started.
    #[default]
    Nothing,
    /// Analyzers by port are still to be created.
    ByPort,
    /// The analyzer for which another connection announced this one is still to be created.
    Expected(Tag),
    /// An analyzer was released while idle, and is created again for the next datagram.
    Idle(Released),
}

/// State kept of an analyzer that was released while idle.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Released {
    tag: Tag,
    violations: u16,
    is_detected: bool,
}

struct Entry {
    analyzer: Analyzer,
    /// The protocol of the analyzer, stored because each packet needs it.
    tag: Tag,
    confirmed: bool,
    /// Whether it is nested in another one and not notified of gaps.
    is_inner: bool,
    /// Disabled; its state is kept until it is enabled again or the connection ends.
    is_suspended: bool,
    /// Disabled; the events of its end are raised with more data or the end of the connection.
    is_ending: bool,
    /// On a datagram connection: it is the detector, or the detector started it.
    is_detected: bool,
    /// Violations so far, up to [`max_violations`] and one more.
    violations: u16,
}

// Connections that carry data have a list of entries, so an entry stays within half a cache line.
const _: () = assert!(size_of::<Entry>() <= 32);

/// Initial capacity of a list of analyzers: one by port, and the detector.
const ENTRIES: usize = 2;

impl Stack {
    /// Chooses the analyzers of a new connection.
    #[inline]
    pub fn prepare(&mut self, env: &mut Env, conn: &mut Conn, now: Time) {
        if !matches!(conn.proto, Proto::Tcp | Proto::Udp) {
            return self.number(env, conn);
        }
        self.port = conn.id.resp_p;
        self.waiting = announced(env, conn, now).map_or(Waiting::ByPort, Waiting::Expected);
        self.number(env, conn);
    }

    /// Assigns Zeek's numbers to the first analyzers of a connection, if events need them.
    fn number(&self, env: &mut Env, conn: &mut Conn) {
        if env.logs.events.any() {
            self.number_planned(env, conn);
        }
    }

    #[cold]
    fn number_planned(&self, env: &mut Env, conn: &mut Conn) {
        let planned: Vec<_> = match self.waiting {
            Waiting::Expected(tag) => {
                let further = env.activation.further(conn.uid).iter().copied();
                std::iter::once(tag).chain(further).collect()
            }
            _ => env.activation.by_port(conn.proto, self.port),
        };
        let counts =
            |tag: &Tag| (env.inner_protocols || !tag.needs_spicy()) && tag.is_wanted(&env.logs);
        let planned: Vec<_> = planned.into_iter().filter(counts).collect();
        let events = &mut env.logs.events;
        let (first, last) = env.analyzer_ids.begin(events, conn, &planned);
        if events.wants::<AnalyzersNumbered>() {
            let (transport, sizes) = (AnalyzerId(first), AnalyzerId(last));
            let numbered = |c| AnalyzersNumbered { c, transport, sizes };
            crate::conn_state::raise(&mut env.logs, conn, numbered);
        }
        if env.logs.events.wants::<AnalyzerPlanned>() {
            for atype in planned {
                let (ids, events) = (&mut env.analyzer_ids, &mut env.logs.events);
                let aid = AnalyzerId(ids.number(events, conn, atype));
                crate::conn_state::raise(&mut env.logs, conn, |c| AnalyzerPlanned {
                    c,
                    atype,
                    aid,
                });
            }
        }
    }

    /// Whether there is no analyzer, and none is to be created.
    #[inline]
    fn is_done(&self) -> bool {
        self.entries.is_empty() && self.waiting == Waiting::Nothing
    }

    /// Raises the events of analyzers that another connection or a script announced.
    pub fn raise_announced(&self, env: &mut Env, conn: &Conn) {
        if let Waiting::Expected(first) = self.waiting {
            raise_announced(env, conn, first);
        }
    }
}

/// Raises the events of announced analyzers: `first`, and those after it.
fn raise_announced(env: &mut Env, conn: &Conn, first: Tag) {
    if !env.logs.events.wants::<ScheduledAnalyzerApplied>() {
        return;
    }
    let further = env.activation.further(conn.uid).to_vec();
    for a in std::iter::once(first).chain(further) {
        let c = crate::conn_state::mention(&mut env.logs, conn);
        let events = &mut env.logs.events;
        events.raise(&ScheduledAnalyzerApplied { c, a });
        if conn.services.contains(a as u8) {
            // A handler of this event adds the service.
            events.then_service(c, a.script_service(), true);
        }
    }
}

/// The protocol for which another connection announced this one. The announcement alone determines
/// it, whether or not anything is sent.
#[inline]
fn announced(env: &mut Env, conn: &mut Conn, now: Time) -> Option<Tag> {
    let Some(expected) = env.expected_for(&conn.id, conn.proto, conn.is_global(), now) else {
        let to = (conn.id.resp_h, conn.id.resp_p);
        return env.activation.scheduled((conn.uid, conn.id.orig_h), to, conn.proto, now);
    };
    let tag = expected.tag;
    if env.is_awaited(tag, conn, now) {
        conn.services.insert(tag as u8);
    }
    Some(tag)
}

/// The analyzers of a connection during one packet.
pub struct Session<'a> {
    /// Time of the packet.
    pub now: Time,
    /// State that all connections share.
    pub env: &'a mut Env,
    /// The analyzers.
    pub stack: &'a mut Stack,
    /// Requests of the current call.
    pub scratch: &'a mut Scratch,
}

impl Session<'_> {
    /// Raises an event of a connection if it has a listener.
    #[inline]
    pub fn raise<E: Event>(&mut self, conn: &Conn, make: impl FnOnce(Connection) -> E) {
        if self.env.logs.events.wants::<E>() {
            crate::conn_state::raise(&mut self.env.logs, conn, make);
        }
    }

    /// Raises an event whose listener decides immediately, and returns the decision.
    pub fn decide<E: Event>(&mut self, conn: &Conn, make: impl FnOnce(Connection) -> E) -> bool {
        let c = crate::conn_state::mention(&mut self.env.logs, conn);
        self.env.logs.events.decide(&make(c))
    }

    /// Whether an event has a listener: to skip the computation of costly arguments.
    #[inline]
    pub fn wants<E: Event>(&self) -> bool {
        self.env.logs.events.wants::<E>()
    }

    /// Updates the TCP states and sizes that later events of the connection carry.
    #[inline]
    pub fn mention(&mut self, tcp: Option<&tcp::Tcp>) {
        if let Some(tcp) = tcp.filter(|_| self.env.logs.events.any()) {
            self.env.logs.events.set_transport(transport(&tcp.view()));
        }
    }

    /// Adds an analyzer, unless there is one of its protocol.
    pub fn add(&mut self, conn: &mut Conn, tag: Tag) {
        self.start(conn, tag, None);
    }

    /// Starts announced analyzers: `first`, and those after it.
    fn add_announced(&mut self, conn: &mut Conn, first: Tag) {
        self.add(conn, first);
        for tag in self.env.activation.take_further(conn.uid) {
            self.add(conn, tag);
        }
    }

    /// Removes the analyzer with this number for a script; with `prevent` it never starts again.
    pub fn disable(&mut self, conn: &mut Conn, aid: u64, prevent: bool) {
        let Some(tag) = self.env.analyzer_ids.tag(conn, aid) else { return };
        if self.stack.entries.iter().any(|e| e.tag == tag && !e.is_suspended) {
            self.remove(conn, tag, true);
        } else if self.handle_request(conn, ScriptRequest::Remove { tag, prevent }) {
            self.env.analyzer_ids.stop(conn, tag);
            return;
        }
        if prevent {
            self.stack.finished = Some(tag);
        }
    }

    /// Sets the analyzer of WebSocket payload for a script.
    pub fn configure(&mut self, conn: &mut Conn, payload: Option<Tag>) {
        self.handle_request(conn, ScriptRequest::Configure { payload });
    }

    /// Applies a script's request to an analyzer or to one nested in it. Returns whether it was
    /// found.
    pub fn handle_request(&mut self, conn: &mut Conn, request: ScriptRequest<'_>) -> bool {
        let mut found = false;
        self.for_each(conn, |a, cx| found = found || a.handle_request(cx, request));
        found
    }

    /// Starts an analyzer for a script and delivers parts of the stream to it, each with whether
    /// the originator sent it.
    pub fn attach(&mut self, conn: &mut Conn, tag: Tag, parts: Vec<(bool, Vec<u8>)>) {
        let side = |is_orig| if is_orig { Dir::Orig } else { Dir::Resp };
        let pieces = parts.into_iter().map(|(is_orig, data)| (side(is_orig), Piece::Bytes(data)));
        let replay = Replay { pieces: pieces.collect(), is_inner: false };
        self.start(conn, tag, Some(&replay));
        if !self.scratch.starts.is_empty() {
            self.run_starts(conn);
        }
    }

    /// Whether an analyzer has made requests.
    pub fn has_requests(&self) -> bool {
        !self.scratch.requests.is_empty()
    }

    /// Creates the analyzers that waited for the first bytes; returns whether the detector is to
    /// be one of them.
    #[inline]
    fn start_waiting(&mut self, conn: &mut Conn) -> bool {
        self.stack.waiting != Waiting::Nothing && self.create_waiting(conn)
    }

    #[inline(never)]
    fn create_waiting(&mut self, conn: &mut Conn) -> bool {
        let waiting = std::mem::take(&mut self.stack.waiting);
        match waiting {
            Waiting::Nothing => return false,
            Waiting::Expected(tag) => self.add_announced(conn, tag),
            Waiting::Idle(released) => {
                self.restore(conn, released);
                return false;
            }
            Waiting::ByPort if self.env.activation.is_plain() => {
                for tag in by_port(conn.proto, self.stack.port) {
                    self.add(conn, *tag);
                }
            }
            Waiting::ByPort => {
                for tag in self.env.activation.by_port(conn.proto, self.stack.port) {
                    self.add(conn, tag);
                }
            }
        }
        true
    }

    /// Creates the analyzers of a stream.
    fn start_stream(&mut self, conn: &mut Conn) {
        if self.start_waiting(conn) {
            self.add(conn, Tag::Detector);
        }
    }

    /// Delivers a datagram to all analyzers and counts its packet of `ip_bytes`: after the
    /// analyzers of its port and before the detected ones, whose events show it, as in Zeek.
    pub fn datagram(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        (data, len): (&[u8], u32),
        ip_bytes: u32,
    ) {
        self.before_data(conn);
        let detect = self.start_waiting(conn);
        // Idle checks that an analyzer requested remain until the next datagram, as in Zeek, even
        // if it is removed.
        let asks = |e: &Entry| checks_idleness(e.tag);
        if conn.check_every > 0 && !self.stack.entries.iter().any(asks) {
            conn.check_when_idle();
        }
        if self.stack.entries.iter().any(|e| e.is_detected) {
            self.for_each_of(
                conn,
                |e| !e.is_suspended && !e.is_detected,
                |a, cx| a.datagram(cx, from, data, len),
            );
            conn.count_packet(from, ip_bytes);
            self.for_each_of(
                conn,
                |e| !e.is_suspended && e.is_detected,
                |a, cx| a.datagram(cx, from, data, len),
            );
            return;
        }
        self.for_each(conn, |a, cx| a.datagram(cx, from, data, len));
        conn.count_packet(from, ip_bytes);
        let ends =
            |r: &Request| matches!(r, Request::Confirm(tag) if !self.continues_detection(*tag));
        if detect && !self.scratch.requests.iter().any(ends) {
            if self.env.activation.detects_none() {
                // The detector has a number in Zeek and would find nothing.
                let events = &mut self.env.logs.events;
                return self.env.analyzer_ids.start(events, conn, Tag::Detector);
            }
            self.add(conn, Tag::Detector);
            let is_detector = |e: &Entry| !e.is_suspended && e.tag == Tag::Detector;
            self.for_each_of(conn, is_detector, |a, cx| a.datagram(cx, from, data, len));
        }
    }

    /// Releases idle analyzers of a datagram connection: most such connections are finished after
    /// one exchange and stay open until their timeout.
    #[inline]
    pub fn release_idle(&mut self, conn: &Conn) {
        if conn.proto == Proto::Udp {
            self.release_idle_datagrams();
        }
    }

    fn release_idle_datagrams(&mut self) {
        if let [entry] = &self.stack.entries[..]
            && entry.confirmed
            && entry.analyzer.is_idle()
        {
            let (tag, violations, is_detected) = (entry.tag, entry.violations, entry.is_detected);
            self.stack.waiting = Waiting::Idle(Released { tag, violations, is_detected });
            self.scratch.recycle(std::mem::take(&mut self.stack.entries));
        }
    }

    /// Finishes all analyzers.
    pub fn finish(&mut self, conn: &mut Conn) {
        if matches!(self.stack.waiting, Waiting::Expected(_)) {
            // Nothing was sent, but the announcing connection must be notified of the end.
            self.start_waiting(conn);
        }
        if self.env.logs.events.any() {
            match &self.stack.waiting {
                Waiting::ByPort => self.finish_waiting(conn),
                // Its analyzer was released while idle.
                Waiting::Idle(released) if released.tag.entry().is_session => {
                    self.raise(conn, |u| UdpSessionDone { u });
                }
                _ => {}
            }
        }
        self.before_data(conn);
        self.for_each_of(conn, |_| true, |a, cx| a.finish(cx));
        if self.stack.entries.capacity() > 0 {
            self.scratch.recycle(std::mem::take(&mut self.stack.entries));
        }
        self.apply_requests(conn);
        if self.env.logs.events.any() {
            self.env.analyzer_ids.end(&mut self.env.logs.events, conn);
            self.env.streams.end(conn.uid);
        }
    }

    /// Applies the requests; returns whether to exchange the roles.
    pub fn apply_requests(&mut self, conn: &mut Conn) -> bool {
        if self.scratch.requests.is_empty() {
            return false;
        }
        // The most frequent case: a single confirmation.
        if let [Request::Confirm(tag)] = self.scratch.requests[..] {
            self.scratch.requests.clear();
            self.confirm(conn, tag);
            return false;
        }
        let mut flip = false;
        // Finishing a failed analyzer may add requests; the loop ends, because every round removes
        // an analyzer.
        while !self.scratch.requests.is_empty() {
            // Failures are handled after all other requests of the packet: a protocol may be
            // confirmed after its first violation.
            let mut failures = Vec::new();
            let mut applying = std::mem::take(&mut self.scratch.applying);
            std::mem::swap(&mut applying, &mut self.scratch.requests);
            for request in applying.drain(..) {
                match request {
                    Request::Confirm(tag) => self.confirm(conn, tag),
                    Request::Violation { tag, reason, data } => {
                        self.count_violation(conn, tag);
                        if violation_counts(conn) {
                            // Scripts decide which analyzers they disable for a violation.
                            if !self.env.is_scripted() {
                                self.remove(conn, tag, true);
                            }
                            failures.push((tag, reason, data));
                        }
                    }
                    Request::Failure { tag, reason, data } => {
                        if violation_counts(conn) {
                            failures.push((tag, reason, data));
                        }
                    }
                    Request::Flip => flip = true,
                    // Scripts disable an analyzer for violations; its protocol may be detected
                    // again later.
                    Request::Done(tag)
                        if self.env.is_scripted() && failures.iter().any(|f| f.0 == tag) => {}
                    Request::Done(tag) => self.remove(conn, tag, false),
                    Request::Handled => self.env.handlers_ran = false,
                }
            }
            self.scratch.applying = applying;
            for (tag, reason, data) in failures {
                self.fail(conn, tag, &reason, &data);
            }
        }
        flip
    }

    fn for_each(&mut self, conn: &mut Conn, call: impl FnMut(&mut Analyzer, &mut Context<'_>)) {
        self.for_each_of(conn, |e| !e.is_suspended, call);
    }

    #[inline]
    fn for_each_of(
        &mut self,
        conn: &mut Conn,
        which: impl Fn(&Entry) -> bool,
        mut call: impl FnMut(&mut Analyzer, &mut Context<'_>),
    ) {
        let mut is_over = false;
        for entry in self.stack.entries.iter_mut().filter(|e| which(e)) {
            let mut cx = self.scratch.context(
                self.now,
                conn,
                self.env,
                entry.confirmed.then_some(entry.tag),
            );
            call(&mut entry.analyzer, &mut cx);
            is_over |= has_finished_detection(&entry.analyzer);
        }
        self.env.report_files(self.now);
        if !self.scratch.starts.is_empty() {
            self.run_starts(conn);
        }
        if is_over {
            self.stack.entries.retain(|e| !has_finished_detection(&e.analyzer));
        }
    }

    /// Starts requested analyzers in order, each followed by those that it starts itself.
    /// [`MAX_STARTS`] bounds the depth.
    fn run_starts(&mut self, conn: &mut Conn) {
        let mut starts = std::mem::take(&mut self.scratch.starts);
        for (tag, replay) in starts.drain(..) {
            self.start(conn, tag, Some(&replay));
            if !self.scratch.starts.is_empty() {
                self.run_starts(conn);
            }
        }
        // Keeps the memory for the next connection.
        self.scratch.starts = starts;
    }

    /// Creates an analyzer and delivers earlier data to it.
    fn start(&mut self, conn: &mut Conn, tag: Tag, replay: Option<&Replay>) {
        let present = self.stack.finished == Some(tag)
            || self.stack.entries.iter().any(|e| e.tag == tag && !e.is_suspended);
        // A detector within a tunnel coexists with the one of the connection.
        if present && tag != Tag::Detector {
            return;
        }
        if self.stack.started >= MAX_STARTS {
            return self.report_excess_start(conn, tag);
        }
        if !self.env.activation.may_start(tag) || !tag.is_wanted(&self.env.logs) {
            return;
        }
        if self.env.logs.events.any() {
            let events = &mut self.env.logs.events;
            self.env.analyzer_ids.start(events, conn, tag);
        }
        let off = |e: &Entry| e.tag == tag && e.is_suspended;
        let ending = self.stack.entries.iter().position(|e| off(e) && e.is_ending);
        if let Some(at) = ending {
            self.finish_analyzer(conn, at, true);
        }
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        let off = self.stack.entries.iter().position(off);
        let analyzer = match off {
            Some(at) => Some(self.stack.entries.remove(at).analyzer),
            None => Analyzer::new(tag, &mut cx),
        };
        let Some(mut analyzer) = analyzer else { return };
        let is_udp = cx.conn.proto == Proto::Udp;
        cx.env.is_replaying = is_udp;
        for (from, piece) in replay.into_iter().flat_map(|r| &r.pieces) {
            match piece {
                Piece::Bytes(d) if is_udp => analyzer.datagram(&mut cx, *from, d, d.len() as u32),
                Piece::Bytes(d) => analyzer.stream(&mut cx, *from, d),
                Piece::Gap(n) => analyzer.gap(&mut cx, *from, *n),
            }
        }
        self.env.is_replaying = false;
        self.env.report_files(self.now);
        self.stack.started += 1;
        if self.stack.entries.capacity() == 0 {
            self.stack.entries = self.scratch.entries();
        }
        let is_inner = replay.is_some_and(|r| r.is_inner);
        let is_detected = is_udp && (replay.is_some() || tag == Tag::Detector);
        let fresh = Entry {
            analyzer,
            tag,
            confirmed: false,
            is_inner,
            is_suspended: false,
            is_ending: false,
            is_detected,
            violations: 0,
        };
        self.stack.entries.push(fresh);
    }

    /// Reports the first analyzer that is not started because of [`MAX_STARTS`].
    #[cold]
    fn report_excess_start(&mut self, conn: &mut Conn, tag: Tag) {
        if self.stack.started == MAX_STARTS {
            self.stack.started += 1;
            conn.set_weird();
            let (env, name) = (&mut *self.env, "too_many_analyzers_started");
            env.weirds.conn(&mut env.logs, self.now, conn, name, "", Some(tag.name()));
        }
    }

    /// Creates an analyzer again that was released while idle. It does not count as a start: the
    /// number of exchanges of a connection is unlimited.
    fn restore(&mut self, conn: &mut Conn, released: Released) {
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        let Some(analyzer) = Analyzer::new(released.tag, &mut cx) else { return };
        self.stack.entries = self.scratch.entries();
        let Released { violations, is_detected, .. } = released;
        let entry = Entry {
            analyzer,
            tag: released.tag,
            confirmed: true,
            is_inner: false,
            is_suspended: false,
            is_ending: false,
            is_detected,
            violations,
        };
        self.stack.entries.push(entry);
    }

    /// Counts violations of an analyzer, and reports the limit.
    fn count_violation(&mut self, conn: &mut Conn, tag: Tag) {
        let its = |e: &&mut Entry| e.tag == tag && !e.is_suspended;
        let Some(entry) = self.stack.entries.iter_mut().find(its) else { return };
        let limit = max_violations(&self.env.activation);
        if is_incomplete(conn) || entry.violations > limit {
            return;
        }
        entry.violations += 1;
        if entry.violations > limit {
            conn.set_weird();
            let (env, name) = (&mut *self.env, "too_many_analyzer_violations");
            env.weirds.conn(&mut env.logs, self.now, conn, name, "", Some(tag.name()));
        }
    }

    fn confirm(&mut self, conn: &mut Conn, tag: Tag) {
        if let Some(entry) = self.stack.entries.iter_mut().find(|e| e.tag == tag) {
            if entry.confirmed {
                return;
            }
            entry.confirmed = true;
        }
        conn.services.insert(tag as u8);
        if conn.proto == Proto::Udp
            && self.stack.entries.len() > 1
            && !self.continues_detection(tag)
        {
            // Ending detection frees memory: most of these connections stay idle until their
            // timeout.
            self.stack.entries.retain(|e| e.tag != Tag::Detector);
        }
        if let Some(idle) = tag.entry().idle {
            conn.set_timeout(idle);
        }
    }

    /// Whether detection continues on a datagram connection after a protocol is confirmed: as in
    /// Zeek if events have a listener, since they number detected analyzers; otherwise only for
    /// SIP, whose messages may violate it one by one.
    #[inline]
    fn continues_detection(&self, confirmed: Tag) -> bool {
        confirmed == Tag::Sip || self.env.logs.events.any()
    }

    /// Removes an analyzer, if present.
    fn remove(&mut self, conn: &mut Conn, tag: Tag, may_return: bool) {
        let its = |e: &Entry| e.tag == tag && !e.is_suspended;
        if let Some(at) = self.stack.entries.iter().position(its) {
            self.env.unfinished.insert(conn.uid, tag);
            if self.env.logs.events.any() {
                self.env.analyzer_ids.stop(conn, tag);
            }
            if may_return {
                // As in Zeek, the events of its end follow with more data, or with the end of the
                // connection.
                let entry = &mut self.stack.entries[at];
                (entry.is_suspended, entry.is_ending) = (true, true);
            } else {
                self.finish_analyzer(conn, at, may_return);
            }
        }
    }

    /// Finishes an analyzer; with `may_return` it is suspended if it supports that.
    fn finish_analyzer(&mut self, conn: &mut Conn, at: usize, may_return: bool) {
        let Some(entry) = self.stack.entries.get_mut(at) else { return };
        let tag = entry.tag;
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        cx.env.is_removing = true;
        if may_return && entry.analyzer.suspend(&mut cx) {
            (entry.is_suspended, entry.is_ending) = (true, false);
        } else {
            entry.analyzer.finish(&mut cx);
            self.stack.entries.remove(at);
            if !may_return {
                self.stack.finished = Some(tag);
            }
        }
        self.env.is_removing = false;
        self.scratch.starts.clear();
        self.env.report_files(self.now);
    }

    /// Handles the failure of a confirmed protocol: removes its service and logs it.
    fn fail(&mut self, conn: &mut Conn, tag: Tag, reason: &[u8], data: &[u8]) {
        let service = tag as u8;
        if self.env.logs.events.wants::<AnalyzerFailed<'_>>() {
            self.raise_failed(conn, tag, reason, data);
        }
        if !conn.services.contains(service) {
            return;
        }
        if conn.note_failed(service) {
            self.env.log_failure(self.now, conn, "protocol", tag, reason, data);
        }
        conn.services.remove(service);
    }
}

impl Session<'_> {
    /// Finishes analyzers that were removed earlier, before more data is delivered, as late as
    /// Zeek does.
    #[inline]
    pub fn before_data(&mut self, conn: &mut Conn) {
        if self.env.has_unfinished() {
            self.finish_removed(conn);
        }
    }

    #[cold]
    #[inline(never)]
    fn finish_removed(&mut self, conn: &mut Conn) {
        if let Some(tag) = self.env.take_unfinished(conn.uid) {
            while let Some(at) = self.stack.entries.iter().position(|e| e.is_ending) {
                self.finish_analyzer(conn, at, true);
            }
            self.raise_session_done(conn, tag);
        }
    }

    #[cold]
    fn raise_session_done(&mut self, conn: &Conn, tag: Tag) {
        if conn.proto == Proto::Udp && tag.entry().is_session {
            self.raise(conn, |u| UdpSessionDone { u });
        }
    }

    /// Raises what the analyzers of the port raise at the end of a connection on which nothing was
    /// sent.
    #[cold]
    fn finish_waiting(&mut self, conn: &mut Conn) {
        let planned = self.env.activation.by_port(conn.proto, self.stack.port);
        if planned.contains(&Tag::Gnutella) {
            self.raise(conn, |c| GnutellaNotEstablish { c });
        }
        if !planned.contains(&Tag::Http) && !planned.contains(&Tag::Ident) {
            return;
        }
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        if planned.contains(&Tag::Http) {
            cx.raise(|c| HttpStats { c, stats: Stats::default() });
            cx.raise_file_handle(Tag::Http, Dir::Orig);
        }
        if planned.contains(&Tag::Ident) {
            crate::ident::report_partial_request(&mut cx);
        }
    }

    #[cold]
    fn raise_failed(&mut self, conn: &Conn, tag: Tag, reason: &[u8], data: &[u8]) {
        let events = &mut self.env.logs.events;
        let aid = AnalyzerId(self.env.analyzer_ids.number(events, conn, tag));
        let (ts, data) = (self.now, (!data.is_empty()).then_some(data));
        let sinks = &mut self.env.logs;
        // The state that the violation's event carried: the packet must not be counted twice.
        let c = crate::conn_state::mention_unless_known(sinks, conn);
        let info = ViolationInfo { reason, c: Some(c), f: None, aid: Some(aid), data };
        sinks.events.raise(&AnalyzerFailed { ts, atype: tag, info });
        if conn.services.contains(tag as u8) {
            sinks.events.then_service(c, tag.script_service(), false);
        }
    }
}

/// The states of both sides of a TCP connection as events carry them.
#[inline]
pub(crate) fn transport(view: &tcp::View) -> TransportState {
    // The variants are numbered as in Zeek.
    TransportState { states: view.states.map(|state| state as u8), sizes: view.sizes }
}

/// Whether the analyzer of a protocol checks periodically if its datagram connection is idle.
#[inline]
fn checks_idleness(tag: Tag) -> bool {
    // Nearly all are of DNS: a test of their own.
    tag == Tag::Dns || checks_idleness_if_started(tag)
}

/// Like [`checks_idleness`], for protocols that only scripts start.
#[cold]
fn checks_idleness_if_started(tag: Tag) -> bool {
    matches!(tag, Tag::Mount | Tag::Netbios | Tag::Nfs | Tag::Portmapper)
}

/// Whether an analyzer is a detector that has seen all the data that it examines.
#[inline]
fn has_finished_detection(analyzer: &Analyzer) -> bool {
    matches!(analyzer, Analyzer::Detector(d) if d.is_done())
}

#[cfg(test)]
mod tests;
