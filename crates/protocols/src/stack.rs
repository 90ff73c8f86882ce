//! The analyzers of one connection, and their requests.

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
use crate::InnerRequest;
use crate::Piece;
use crate::Replay;
use crate::Request;
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
use crate::violations::blames;
use crate::violations::is_incomplete;
use crate::violations::max_violations;

pub(crate) use matching::FirstPacket;

/// Sessions of people idle for long: seconds.
const INTERACTIVE_TIMEOUT: u16 = 3600;
/// Their ports.
const INTERACTIVE_PORTS: [u16; 4] = [21, 22, 23, 513];
/// Analyzers that one connection may start in all, one inside the other; one more is reported, once.
const MAX_STARTS: u8 = 32;

/// Requests of the current call; the memory is reused.
#[derive(Default)]
pub struct Scratch {
    requests: Vec<Request>,
    /// Those that are being carried out.
    round: Vec<Request>,
    starts: Vec<(Tag, Replay)>,
    /// Emptied lists of analyzers, kept for their memory.
    spare: Vec<ThinVec<Entry>>,
}

/// Emptied lists kept at the most.
const MAX_SPARE: usize = 64;

impl Scratch {
    /// Takes an emptied list back.
    fn give(&mut self, mut entries: ThinVec<Entry>) {
        entries.clear();
        if self.spare.len() < MAX_SPARE && entries.capacity() == ENTRIES {
            self.spare.push(entries);
        }
    }

    /// Room for the analyzers of a connection.
    fn entries(&mut self) -> ThinVec<Entry> {
        self.spare.pop().unwrap_or_else(|| ThinVec::with_capacity(ENTRIES))
    }

    /// What an analyzer sees in one call; `confirmed` is its protocol, if it is recognised.
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
/// Which they are to be is settled when the connection begins; they are made when the first bytes
/// need them, since most connections of a scan or a flood never carry any.
#[derive(Default)]
pub struct Stack {
    /// A pointer alone: most connections have none.
    entries: ThinVec<Entry>,
    started: u8,
    /// The responder's port when the connection began.
    port: u16,
    waiting: Waiting,
    /// The analyzer that was dropped because it needs no more data: it does not start again.
    read: Option<Tag>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Waiting {
    /// Everything is started.
    #[default]
    No,
    /// Analyzers by port are still to be made.
    ByPort,
    /// The one that another connection announced.
    Expected(Tag),
    /// The one that was released because it was idle.
    Idle(Released),
}

/// The state that a connection keeps of an analyzer that was released while idle.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Released {
    tag: Tag,
    violations: u16,
    is_late: bool,
}

struct Entry {
    analyzer: Analyzer,
    /// The protocol of the analyzer, which each packet asks for.
    tag: Tag,
    confirmed: bool,
    /// Whether it is inside of another one, and not notified of gaps.
    is_inner: bool,
    /// Disabled, but its state is kept until it is enabled again, or for the end.
    is_off: bool,
    /// Disabled, and more data or the end of the connection ends what it has begun.
    is_leaving: bool,
    /// Of a datagram connection: detects its protocol, or was started for what was detected.
    is_late: bool,
    /// Violations so far, up to [`max_violations`] and one more.
    violations: u16,
}

// A connection that carries anything has a list of them: it stays within a cache line.
const _: () = assert!(size_of::<Entry>() <= 32);

/// Analyzers for which room is made at first: one by port, and the detector.
const ENTRIES: usize = 2;

impl Stack {
    /// Decides how a new connection is analysed.
    #[inline]
    pub fn prepare(&mut self, env: &mut Env, conn: &mut Conn, now: Time) {
        if !matches!(conn.proto, Proto::Tcp | Proto::Udp) {
            return self.number(env, conn);
        }
        self.port = conn.id.resp_p;
        self.waiting = announced(env, conn, now).map_or(Waiting::ByPort, Waiting::Expected);
        self.number(env, conn);
    }

    /// Numbers the analyzers that a connection begins with, where events name them.
    fn number(&self, env: &mut Env, conn: &mut Conn) {
        if env.logs.events.any() {
            self.number_planned(env, conn);
        }
    }

    #[cold]
    fn number_planned(&self, env: &mut Env, conn: &mut Conn) {
        let planned: Vec<_> = match self.waiting {
            Waiting::Expected(tag) => {
                let further = env.steering.further(conn.uid).iter().copied();
                std::iter::once(tag).chain(further).collect()
            }
            _ => env.steering.by_port(conn.proto, self.port),
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
                let aid = AnalyzerId(ids.of(events, conn, atype));
                crate::conn_state::raise(&mut env.logs, conn, |c| AnalyzerPlanned {
                    c,
                    atype,
                    aid,
                });
            }
        }
    }

    /// Whether there is no analyzer, and none is to be made.
    #[inline]
    fn is_done(&self) -> bool {
        self.entries.is_empty() && self.waiting == Waiting::No
    }

    /// Raises the events of analyzers that another connection or a script announced.
    pub fn raise_announced(&self, env: &mut Env, conn: &Conn) {
        if let Waiting::Expected(first) = self.waiting {
            raise_announced(env, conn, first);
        }
    }
}

/// Raises the events of announced analyzers: the first one, and those after it.
fn raise_announced(env: &mut Env, conn: &Conn, first: Tag) {
    if !env.logs.events.wants::<ScheduledAnalyzerApplied>() {
        return;
    }
    let further = env.steering.further(conn.uid).to_vec();
    for a in std::iter::once(first).chain(further) {
        let c = crate::conn_state::mention(&mut env.logs, conn);
        let events = &mut env.logs.events;
        events.raise(&ScheduledAnalyzerApplied { c, a });
        if conn.services.contains(a as u8) {
            // A handler of this event adds it.
            events.then_service(c, a.script_service(), true);
        }
    }
}

/// The protocol that another connection announced for this one. The announcement alone determines
/// it, whether or not anything is sent.
#[inline]
fn announced(env: &mut Env, conn: &mut Conn, now: Time) -> Option<Tag> {
    let Some(expected) = env.expected_for(&conn.id, conn.proto, conn.is_global(), now) else {
        let to = (conn.id.resp_h, conn.id.resp_p);
        return env.steering.scheduled((conn.uid, conn.id.orig_h), to, conn.proto, now);
    };
    let tag = expected.tag;
    if env.is_awaited(tag, conn, now) {
        conn.services.insert(tag as u8);
    }
    Some(tag)
}

/// A connection's analyzers at work on one packet.
pub struct Session<'a> {
    /// Time of the packet.
    pub now: Time,
    /// What all connections share.
    pub env: &'a mut Env,
    /// The analyzers.
    pub stack: &'a mut Stack,
    /// Requests.
    pub scratch: &'a mut Scratch,
}

impl Session<'_> {
    /// Raises an event of a connection, if it has a listener.
    #[inline]
    pub fn raise<E: Event>(&mut self, conn: &Conn, make: impl FnOnce(Connection) -> E) {
        if self.env.logs.events.wants::<E>() {
            crate::conn_state::raise(&mut self.env.logs, conn, make);
        }
    }

    /// Asks the listener at once whether to do what an event of a connection says.
    pub fn decide<E: Event>(&mut self, conn: &Conn, make: impl FnOnce(Connection) -> E) -> bool {
        let c = crate::conn_state::mention(&mut self.env.logs, conn);
        self.env.logs.events.decide(&make(c))
    }

    /// Whether an event has a listener: for arguments that are costly to work out.
    #[inline]
    pub fn wants<E: Event>(&self) -> bool {
        self.env.logs.events.wants::<E>()
    }

    /// Events to come show a TCP connection with the states and sizes of its sides as they are now.
    #[inline]
    pub fn mention(&mut self, tcp: Option<&tcp::Tcp>) {
        if let Some(tcp) = tcp.filter(|_| self.env.logs.events.any()) {
            self.env.logs.events.set_transport(transport(&tcp.view()));
        }
    }

    /// Adds an analyzer, unless there is one of its kind.
    pub fn add(&mut self, conn: &mut Conn, tag: Tag) {
        self.start(conn, tag, None);
    }

    /// Starts announced analyzers: the first one, and those after it.
    fn add_announced(&mut self, conn: &mut Conn, first: Tag) {
        self.add(conn, first);
        for tag in self.env.steering.take_further(conn.uid) {
            self.add(conn, tag);
        }
    }

    /// A script removes the analyzer of a number; where `prevent` says so, it never starts again.
    pub fn disable(&mut self, conn: &mut Conn, aid: u64, prevent: bool) {
        let Some(tag) = self.env.analyzer_ids.tag(conn, aid) else { return };
        if self.stack.entries.iter().any(|e| e.tag == tag && !e.is_off) {
            self.remove(conn, tag, true);
        } else if self.steer_inner(conn, InnerRequest::Remove { tag, prevent }) {
            self.env.analyzer_ids.stop(conn, tag);
            return;
        }
        if prevent {
            self.stack.read = Some(tag);
        }
    }

    /// A script says what the payload of WebSocket is.
    pub fn configure(&mut self, conn: &mut Conn, payload: Option<Tag>) {
        self.steer_inner(conn, InnerRequest::Configure { payload });
    }

    /// A script asks something of an analyzer, or of one within another. Returns whether it was found.
    pub fn steer_inner(&mut self, conn: &mut Conn, request: InnerRequest<'_>) -> bool {
        let mut found = false;
        self.each(conn, |a, cx| found = found || a.steer(cx, request));
        found
    }

    /// A script starts an analyzer, and gives it parts of the stream, each with whether the originator
    /// sent it.
    pub fn attach(&mut self, conn: &mut Conn, tag: Tag, parts: Vec<(bool, Vec<u8>)>) {
        let side = |is_orig| if is_orig { Dir::Orig } else { Dir::Resp };
        let pieces = parts.into_iter().map(|(is_orig, data)| (side(is_orig), Piece::Bytes(data)));
        let replay = Replay { pieces: pieces.collect(), is_inner: false };
        self.start(conn, tag, Some(&replay));
        if !self.scratch.starts.is_empty() {
            self.run_starts(conn);
        }
    }

    /// Whether an analyzer asked for something.
    pub fn has_requests(&self) -> bool {
        !self.scratch.requests.is_empty()
    }

    /// Makes the analyzers that were waiting for bytes; returns whether the detector is to be one
    /// of them.
    #[inline]
    fn start_waiting(&mut self, conn: &mut Conn) -> bool {
        self.stack.waiting != Waiting::No && self.start_those_waiting(conn)
    }

    #[inline(never)]
    fn start_those_waiting(&mut self, conn: &mut Conn) -> bool {
        let waiting = std::mem::take(&mut self.stack.waiting);
        match waiting {
            Waiting::No => return false,
            Waiting::Expected(tag) => self.add_announced(conn, tag),
            Waiting::Idle(released) => {
                self.restore(conn, released);
                return false;
            }
            Waiting::ByPort if self.env.steering.is_plain() => {
                for tag in by_port(conn.proto, self.stack.port) {
                    self.add(conn, *tag);
                }
            }
            Waiting::ByPort => {
                for tag in self.env.steering.by_port(conn.proto, self.stack.port) {
                    self.add(conn, tag);
                }
            }
        }
        true
    }

    /// Makes the analyzers of a stream.
    fn start_stream(&mut self, conn: &mut Conn) {
        if self.start_waiting(conn) {
            self.add(conn, Tag::Detector);
        }
    }

    /// Gives a datagram to all analyzers, and counts its packet of `ip_bytes`: after those of its port, and before
    /// those that are detected, whose events show it, as in Zeek.
    pub fn datagram(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        (data, len): (&[u8], u32),
        ip_bytes: u32,
    ) {
        self.before_data(conn);
        let detect = self.start_waiting(conn);
        // The looks that an analyzer asked for outlive it until the next datagram, as in Zeek.
        let asks = |e: &Entry| asks_for_looks(e.tag);
        if conn.look_every > 0 && !self.stack.entries.iter().any(asks) {
            conn.look_when_idle();
        }
        if self.stack.entries.iter().any(|e| e.is_late) {
            self.each_of(
                conn,
                |e| !e.is_off && !e.is_late,
                |a, cx| a.datagram(cx, from, data, len),
            );
            conn.count_packet(from, ip_bytes);
            self.each_of(conn, |e| !e.is_off && e.is_late, |a, cx| a.datagram(cx, from, data, len));
            return;
        }
        self.each(conn, |a, cx| a.datagram(cx, from, data, len));
        conn.count_packet(from, ip_bytes);
        let ends = |r: &Request| matches!(r, Request::Confirm(tag) if !self.detects_on(*tag));
        if detect && !self.scratch.requests.iter().any(ends) {
            if self.env.steering.detects_none() {
                // It has its number in Zeek, and would find nothing.
                let events = &mut self.env.logs.events;
                return self.env.analyzer_ids.start(events, conn, Tag::Detector);
            }
            self.add(conn, Tag::Detector);
            let is_detector = |e: &Entry| !e.is_off && e.tag == Tag::Detector;
            self.each_of(conn, is_detector, |a, cx| a.datagram(cx, from, data, len));
        }
    }

    /// Drops the analyzer of a datagram connection that holds nothing: most such connections are
    /// done with after one exchange, and live on idly for as long as their timeout is.
    #[inline]
    pub fn rest(&mut self, conn: &Conn) {
        if conn.proto == Proto::Udp {
            self.rest_datagrams();
        }
    }

    fn rest_datagrams(&mut self) {
        if let [entry] = &self.stack.entries[..]
            && entry.confirmed
            && entry.analyzer.is_idle()
        {
            let (tag, violations, is_late) = (entry.tag, entry.violations, entry.is_late);
            self.stack.waiting = Waiting::Idle(Released { tag, violations, is_late });
            self.scratch.give(std::mem::take(&mut self.stack.entries));
        }
    }

    /// Takes leave of all analyzers.
    pub fn finish(&mut self, conn: &mut Conn) {
        if matches!(self.stack.waiting, Waiting::Expected(_)) {
            // Nothing was sent, but the announcing connection is notified of the end.
            self.start_waiting(conn);
        }
        if self.env.logs.events.any() {
            match &self.stack.waiting {
                Waiting::ByPort => self.finish_waiting(conn),
                // Its analyzer was dropped because it held nothing.
                Waiting::Idle(released) if released.tag.entry().is_session => {
                    self.raise(conn, |u| UdpSessionDone { u });
                }
                _ => {}
            }
        }
        self.before_data(conn);
        self.each_of(conn, |_| true, |a, cx| a.finish(cx));
        if self.stack.entries.capacity() > 0 {
            self.scratch.give(std::mem::take(&mut self.stack.entries));
        }
        self.settle(conn);
        if self.env.logs.events.any() {
            self.env.analyzer_ids.end(&mut self.env.logs.events, conn);
            self.env.streams.end(conn.uid);
        }
    }

    /// Applies the requests; returns whether to exchange the roles.
    pub fn settle(&mut self, conn: &mut Conn) -> bool {
        if self.scratch.requests.is_empty() {
            return false;
        }
        // What nearly all ask for, and but once.
        if let [Request::Confirm(tag)] = self.scratch.requests[..] {
            self.scratch.requests.clear();
            self.confirm(conn, tag);
            return false;
        }
        let mut flip = false;
        // Finishing a failed analyzer may ask for more: bounded, as every round takes one off.
        while !self.scratch.requests.is_empty() {
            // Whether a failure counts is judged once everything else of the packet is done: a
            // protocol may be confirmed after its first violation.
            let mut failures = Vec::new();
            let mut round = std::mem::take(&mut self.scratch.round);
            std::mem::swap(&mut round, &mut self.scratch.requests);
            for request in round.drain(..) {
                match request {
                    Request::Confirm(tag) => self.confirm(conn, tag),
                    Request::Violation { tag, reason, data } => {
                        self.count_violation(conn, tag);
                        if blames(conn) {
                            // Scripts decide themselves which analyzers they disable for that.
                            if !self.env.is_scripted() {
                                self.remove(conn, tag, true);
                            }
                            failures.push((tag, reason, data));
                        }
                    }
                    Request::Failure { tag, reason, data } => {
                        if blames(conn) {
                            failures.push((tag, reason, data));
                        }
                    }
                    Request::Flip => flip = true,
                    // Scripts disable what violates its protocol, which may be found again then.
                    Request::Done(tag)
                        if self.env.is_scripted() && failures.iter().any(|f| f.0 == tag) => {}
                    Request::Done(tag) => self.remove(conn, tag, false),
                    Request::Handled => self.env.has_handled = false,
                }
            }
            self.scratch.round = round;
            for (tag, reason, data) in failures {
                self.fail(conn, tag, &reason, &data);
            }
        }
        flip
    }

    fn each(&mut self, conn: &mut Conn, call: impl FnMut(&mut Analyzer, &mut Context<'_>)) {
        self.each_of(conn, |e| !e.is_off, call);
    }

    #[inline]
    fn each_of(
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
            is_over |= has_looked(&entry.analyzer);
        }
        self.env.report_files(self.now);
        if !self.scratch.starts.is_empty() {
            self.run_starts(conn);
        }
        if is_over {
            self.stack.entries.retain(|e| !has_looked(&e.analyzer));
        }
    }

    /// Starts requested analyzers in order, each followed by those it starts itself. [`MAX_STARTS`]
    /// bounds the depth.
    fn run_starts(&mut self, conn: &mut Conn) {
        let mut starts = std::mem::take(&mut self.scratch.starts);
        for (tag, replay) in starts.drain(..) {
            self.start(conn, tag, Some(&replay));
            if !self.scratch.starts.is_empty() {
                self.run_starts(conn);
            }
        }
        // Its memory serves the next connection.
        self.scratch.starts = starts;
    }

    /// Creates an analyzer, and passes it the earlier data.
    fn start(&mut self, conn: &mut Conn, tag: Tag, replay: Option<&Replay>) {
        let there = self.stack.read == Some(tag)
            || self.stack.entries.iter().any(|e| e.tag == tag && !e.is_off);
        // A detector inside a tunnel is next to the one of the connection.
        if there && tag != Tag::Detector {
            return;
        }
        if self.stack.started >= MAX_STARTS {
            return self.refuse_start(conn, tag);
        }
        if !self.env.steering.may_start(tag) || !tag.is_wanted(&self.env.logs) {
            return;
        }
        if self.env.logs.events.any() {
            let events = &mut self.env.logs.events;
            self.env.analyzer_ids.start(events, conn, tag);
        }
        let off = |e: &Entry| e.tag == tag && e.is_off;
        let leaving = self.stack.entries.iter().position(|e| off(e) && e.is_leaving);
        if let Some(at) = leaving {
            self.leave(conn, at, true);
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
        let is_late = is_udp && (replay.is_some() || tag == Tag::Detector);
        let fresh = Entry {
            analyzer,
            tag,
            confirmed: false,
            is_inner,
            is_off: false,
            is_leaving: false,
            is_late,
            violations: 0,
        };
        self.stack.entries.push(fresh);
    }

    /// Reports the first analyzer that is not started because there were too many.
    #[cold]
    fn refuse_start(&mut self, conn: &mut Conn, tag: Tag) {
        if self.stack.started == MAX_STARTS {
            self.stack.started += 1;
            conn.set_weird();
            let (env, name) = (&mut *self.env, "too_many_analyzers_started");
            env.weirds.conn(&mut env.logs, self.now, conn, name, "", Some(tag.name()));
        }
    }

    /// Makes an analyzer again that was released while idle. That is not a start: a connection has as
    /// many exchanges as it likes.
    fn restore(&mut self, conn: &mut Conn, released: Released) {
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        let Some(analyzer) = Analyzer::new(released.tag, &mut cx) else { return };
        self.stack.entries = self.scratch.entries();
        let Released { violations, is_late, .. } = released;
        let entry = Entry {
            analyzer,
            tag: released.tag,
            confirmed: true,
            is_inner: false,
            is_off: false,
            is_leaving: false,
            is_late,
            violations,
        };
        self.stack.entries.push(entry);
    }

    /// Counts violations of an analyzer, and reports the limit.
    fn count_violation(&mut self, conn: &mut Conn, tag: Tag) {
        let its = |e: &&mut Entry| e.tag == tag && !e.is_off;
        let Some(entry) = self.stack.entries.iter_mut().find(its) else { return };
        let most = max_violations(&self.env.steering);
        if is_incomplete(conn) || entry.violations > most {
            return;
        }
        entry.violations += 1;
        if entry.violations > most {
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
        if conn.proto == Proto::Udp && self.stack.entries.len() > 1 && !self.detects_on(tag) {
            // The end of detection frees memory: most of these connections stay idle until their timeout.
            self.stack.entries.retain(|e| e.tag != Tag::Detector);
        }
        if let Some(idle) = tag.entry().idle {
            conn.set_timeout(idle);
        }
    }

    /// Whether the protocol of a datagram connection is still looked for once one is confirmed: as in Zeek, for events, which
    /// number what is found; without them only for SIP, whose messages may violate it one by one.
    #[inline]
    fn detects_on(&self, confirmed: Tag) -> bool {
        confirmed == Tag::Sip || self.env.logs.events.any()
    }

    /// Takes an analyzer off, if it is still there.
    fn remove(&mut self, conn: &mut Conn, tag: Tag, may_return: bool) {
        let its = |e: &Entry| e.tag == tag && !e.is_off;
        if let Some(at) = self.stack.entries.iter().position(its) {
            self.env.owed.insert(conn.uid, tag);
            if self.env.logs.events.any() {
                self.env.analyzer_ids.stop(conn, tag);
            }
            if may_return {
                // As in Zeek, its end follows with more data, or with the end of the connection.
                let entry = &mut self.stack.entries[at];
                (entry.is_off, entry.is_leaving) = (true, true);
            } else {
                self.leave(conn, at, may_return);
            }
        }
    }

    /// Ends what an analyzer has begun. Where it may return, it keeps what it needs for that.
    fn leave(&mut self, conn: &mut Conn, at: usize, may_return: bool) {
        let Some(entry) = self.stack.entries.get_mut(at) else { return };
        let tag = entry.tag;
        let mut cx = self.scratch.context(self.now, conn, self.env, None);
        cx.env.is_leaving = true;
        if may_return && entry.analyzer.suspend(&mut cx) {
            (entry.is_off, entry.is_leaving) = (true, false);
        } else {
            entry.analyzer.finish(&mut cx);
            self.stack.entries.remove(at);
            if !may_return {
                self.stack.read = Some(tag);
            }
        }
        self.env.is_leaving = false;
        self.scratch.starts.clear();
        self.env.report_files(self.now);
    }

    /// A protocol that was confirmed is none after all.
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
    /// Data follows: ends what analyzers that were removed before have begun, as late as Zeek removes them.
    #[inline]
    pub fn before_data(&mut self, conn: &mut Conn) {
        if self.env.owes() {
            self.leave_if_owed(conn);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_if_owed(&mut self, conn: &mut Conn) {
        if let Some(tag) = self.env.take_owed(conn.uid) {
            while let Some(at) = self.stack.entries.iter().position(|e| e.is_leaving) {
                self.leave(conn, at, true);
            }
            self.raise_owed(conn, tag);
        }
    }

    #[cold]
    fn raise_owed(&mut self, conn: &Conn, tag: Tag) {
        if conn.proto == Proto::Udp && tag.entry().is_session {
            self.raise(conn, |u| UdpSessionDone { u });
        }
    }

    /// A connection ends on which nothing was sent: raises what analyzers of its port would.
    #[cold]
    fn finish_waiting(&mut self, conn: &mut Conn) {
        let planned = self.env.steering.by_port(conn.proto, self.stack.port);
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
        let aid = AnalyzerId(self.env.analyzer_ids.of(events, conn, tag));
        let (ts, data) = (self.now, (!data.is_empty()).then_some(data));
        let sinks = &mut self.env.logs;
        // The connection as the violation showed it: its packet is not counted twice.
        let c = crate::conn_state::mention_unless_known(sinks, conn);
        let info = ViolationInfo { reason, c: Some(c), f: None, aid: Some(aid), data };
        sinks.events.raise(&AnalyzerFailed { ts, atype: tag, info });
        if conn.services.contains(tag as u8) {
            sinks.events.then_service(c, tag.script_service(), false);
        }
    }
}

/// What events show of both sides of a TCP connection: its states have Zeek's numbers.
#[inline]
pub(crate) fn transport(view: &tcp::View) -> TransportState {
    // They are numbered as in Zeek.
    TransportState { states: view.states.map(|state| state as u8), sizes: view.sizes }
}

/// Whether analyzers of a protocol look at connections of datagrams from time to time.
#[inline]
fn asks_for_looks(tag: Tag) -> bool {
    // Nearly all are of DNS: a test of their own.
    tag == Tag::Dns || asks_where_started(tag)
}

/// The same of protocols that only scripts start.
#[cold]
fn asks_where_started(tag: Tag) -> bool {
    matches!(tag, Tag::Mount | Tag::Netbios | Tag::Nfs | Tag::Portmapper)
}

/// Whether it is a detector that has seen all that it looks at, and so has nothing to do any more.
#[inline]
fn has_looked(analyzer: &Analyzer) -> bool {
    matches!(analyzer, Analyzer::Detector(d) if d.is_done())
}

#[cfg(test)]
mod tests;
