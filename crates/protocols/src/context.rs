use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::AnalyzerId;
use gannet_event::Command;
use gannet_event::ConnCommand;
use gannet_event::Connection;
use gannet_event::Event;
use gannet_files::FileId;
use gannet_files::FileStart;
use gannet_flow::Conn;
use gannet_log::Cut;
use gannet_log::Row;

use crate::Env;
use crate::Tag;
use crate::conn_state::events::ConnectionFlipped;
use crate::conn_state::mention;
use crate::descriptor::Kind;
use crate::packet::events::UdpSessionDone;
use crate::schemas::report_cut;
use crate::stack::events::AnalyzerConfirmationInfo;
use crate::stack::events::AnalyzerViolationInfo;
use crate::stack::events::ConfirmationInfo;
use crate::stack::events::GetFileHandle;
use crate::stack::events::ViolationInfo;
use crate::tunnel::Tunnel;
use crate::violations::is_incomplete;
use crate::violations::is_long;
use crate::violations::max_violations;
use crate::violations::violation_counts;

/// Data that a new analyzer receives before anything else, in order.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Pieces of the stream, each from one side.
    pub pieces: Vec<(Dir, Piece)>,
    /// Whether the analyzer is nested in another one, which passes on its payload without gaps.
    pub is_inner: bool,
}

impl Replay {
    /// A replay of the rest of the current chunk.
    pub fn rest(from: Dir, rest: &[u8]) -> Self {
        let piece = (!rest.is_empty()).then(|| (from, Piece::Bytes(rest.to_vec())));
        Self { pieces: piece.into_iter().collect(), is_inner: false }
    }
}

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, in order.
    Bytes(Vec<u8>),
    /// This many bytes are missing.
    Gap(u64),
}

/// A request of an analyzer, which [`Session`](crate::Session) applies after the packet.
#[derive(Clone, Debug)]
pub enum Request {
    /// The protocol is confirmed: its name goes into `service`.
    Confirm(Tag),
    /// The data violates the protocol.
    Violation {
        /// The analyzer that found the violation.
        tag: Tag,
        /// Reason, as analyzer.log shows it.
        reason: Vec<u8>,
        /// The first bytes of the violating data.
        data: Vec<u8>,
    },
    /// A nested analyzer failed and was removed, while another one of the same kind remains.
    Failure {
        /// The kind of the removed analyzer.
        tag: Tag,
        /// Reason, as analyzer.log shows it.
        reason: Vec<u8>,
        /// The first bytes of the violating data.
        data: Vec<u8>,
    },
    /// Originator and responder are to be exchanged.
    Flip,
    /// The analyzer needs no more data: it is removed without a report.
    Done(Tag),
    /// Event handlers have run since the last violation, so the analyzer receives no more of the
    /// packet.
    Handled,
}

/// A script's request to an analyzer or to one nested in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRequest<'a> {
    /// Remove the analyzer.
    Remove {
        /// The analyzer.
        tag: Tag,
        /// Whether it must not start again on this connection.
        prevent: bool,
    },
    /// A WebSocket analyzer begins to pass payload on.
    Configure {
        /// Protocol of the analyzer that receives the payload; `None`: no analyzer.
        payload: Option<Tag>,
    },
    /// Decrypt the application data of a TLS session with this secret.
    Decrypt(TlsSecret<'a>),
    /// Both sides of a TLS session have switched to encryption.
    Establish,
    /// Do not deliver the rest of the current HTTP entity.
    SkipEntity {
        /// The side that sends the entity.
        from: Dir,
    },
    /// Do not report the rest of the current SMTP mail line by line.
    SkipMail,
    /// Set the state of a login session.
    Login {
        /// The state, by Zeek's number.
        state: u64,
    },
}

/// A secret of a TLS session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSecret<'a> {
    /// The master secret, from which the keys are derived.
    Master(&'a [u8]),
    /// The key block (RFC 5246 section 6.3).
    KeyBlock(&'a [u8]),
}

/// What an analyzer can read and change during one call.
pub struct Context<'a> {
    /// Time of the current packet (network time).
    pub now: Time,
    /// The connection.
    pub conn: &'a mut Conn,
    /// State that all connections share.
    pub env: &'a mut Env,
    /// Requests so far, in order.
    pub requests: &'a mut Vec<Request>,
    /// Analyzers to start as soon as the current call returns.
    pub starts: &'a mut Vec<(Tag, Replay)>,
    /// The analyzer's protocol, if it is confirmed.
    pub(crate) confirmed: Option<Tag>,
}

/// Writes a row.
pub(crate) fn log<R: Row>(env: &mut Env, now: Time, row: &R) {
    let cut = env.logs.write(row);
    report_row_cut::<R>(env, now, cut);
}

/// Writes a row of a log that has one for every message, if it can be [encoded in
/// place](gannet_log::Logs::write_in_place). Returns whether it was written.
#[inline(always)]
#[must_use]
pub(crate) fn log_in_place<R: Row>(env: &mut Env, now: Time, row: &R) -> bool {
    let written = env.logs.write_in_place(row);
    if let Some(cut) = written {
        report_row_cut::<R>(env, now, cut);
    }
    written.is_some()
}

/// Writes a row of such a log, [in place](log_in_place) if possible. `row` is called again if not,
/// so that the first row need not stay in memory.
#[inline(always)]
pub(crate) fn log_every<R: Row>(env: &mut Env, now: Time, row: impl Fn() -> R) {
    if !log_in_place(env, now, &row()) {
        log_buffered(env, now, row);
    }
}

#[cold]
#[inline(never)]
fn log_buffered<R: Row>(env: &mut Env, now: Time, row: impl Fn() -> R) {
    log(env, now, &row());
}

#[inline]
fn report_row_cut<R: Row>(env: &mut Env, now: Time, cut: Cut) {
    if cut.strings || cut.lists {
        let Env { weirds, logs, .. } = env;
        report_cut(weirds, logs, now, R::PATH, cut);
    }
}

/// Receives events directly where an analyzer raises them: the writer of a protocol's rows.
pub trait OnEvent<E> {
    /// Handles an event of the connection of `cx`. The event's connection argument is that
    /// connection.
    fn on_event(&mut self, cx: &mut Context<'_>, event: &E);
}

/// Writes no rows.
impl<E> OnEvent<E> for () {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &E) {}
}

impl Context<'_> {
    /// Raises an event of this connection: for its listener, if it has one, then for `rows`.
    /// `make` builds the event from the connection, once for each of them.
    #[inline]
    pub fn report<E: Event>(&mut self, rows: &mut impl OnEvent<E>, make: impl Fn(Connection) -> E) {
        self.raise(&make);
        rows.on_event(self, &make(Connection::CURRENT));
    }

    /// Raises an event of this connection if it has a listener: `make` builds it from the
    /// connection.
    ///
    /// Handlers see the state that the connection has when an event of the current packet last
    /// mentions it.
    #[inline]
    pub fn raise<E: Event>(&mut self, make: impl FnOnce(Connection) -> E) {
        if self.env.logs.events.wants::<E>() {
            crate::conn_state::raise(&mut self.env.logs, self.conn, make);
        }
    }

    /// Whether an event has a listener: to skip the computation of costly arguments.
    #[inline]
    pub fn wants<E: Event>(&self) -> bool {
        self.env.logs.events.wants::<E>()
    }

    /// The connection's originator and responder.
    pub fn id(&self) -> ConnId {
        self.conn.id
    }

    /// Writes a row.
    pub fn log<R: Row>(&mut self, row: &R) {
        log(self.env, self.now, row);
    }

    /// Confirms the protocol. May be called often; each analyzer counts once.
    pub fn confirm(&mut self, tag: Tag) {
        // Bytes are counted only as long as violations count. Where services are logged, any
        // message may complete one.
        let is_known =
            self.confirmed == Some(tag) && is_long(self.conn) && self.env.policy.is_none();
        if !is_known {
            if self.wants::<AnalyzerConfirmationInfo>() {
                self.raise_confirmation(tag);
            }
            self.requests.push(Request::Confirm(tag));
        }
    }

    #[cold]
    fn raise_confirmation(&mut self, tag: Tag) {
        let is_asked = |r: &Request| matches!(r, Request::Confirm(other) if *other == tag);
        let is_known = self.conn.services.contains(tag as u8);
        let is_analyzer = tag.entry().kind != Kind::Service;
        if !is_analyzer
            || is_known
            || self.confirmed == Some(tag)
            || self.requests.iter().any(is_asked)
        {
            return;
        }
        let aid = self.aid(tag);
        self.raise_confirmation_of(tag, aid);
    }

    fn raise_confirmation_of(&mut self, tag: Tag, aid: Option<AnalyzerId>) {
        let sinks = &mut self.env.logs;
        let c = mention(sinks, self.conn);
        let info = ConfirmationInfo { c: Some(c), f: None, aid };
        sinks.events.raise(&AnalyzerConfirmationInfo { atype: tag, info });
        sinks.events.then_service(c, tag.script_service(), true);
    }

    /// Confirms one of several analyzers of a protocol: each has its own event.
    pub(crate) fn confirm_instance(&mut self, tag: Tag, aid: Option<AnalyzerId>) {
        if self.wants::<AnalyzerConfirmationInfo>() {
            self.raise_confirmation_of(tag, aid);
        }
        self.requests.push(Request::Confirm(tag));
    }

    /// Zeek's number of an analyzer of this connection; `None` for packet analyzers.
    pub(crate) fn aid(&mut self, tag: Tag) -> Option<AnalyzerId> {
        if !self.env.logs.events.any() {
            return None;
        }
        if tag.reads_packets() {
            return None;
        }
        let events = &mut self.env.logs.events;
        Some(AnalyzerId(self.env.analyzer_ids.number(events, self.conn, tag)))
    }

    /// Skips the numbers of analyzers that Zeek starts and gannet does not have.
    #[inline]
    pub(crate) fn skip_aids(&mut self, count: u64) {
        if self.env.logs.events.any() {
            self.env.logs.events.skip_numbers(count);
        }
    }

    /// Reports that the bytes violate the protocol. Early in a connection the analyzer is removed
    /// (its [`finish`](crate::Analyze::finish) is called at the end of the packet), later it
    /// stays.
    pub fn violation(&mut self, tag: Tag, reason: &str, data: &[u8]) {
        self.violation_bytes(tag, reason.into(), data);
    }

    /// Like [`violation`](Self::violation), with a reason that quotes the data.
    pub fn violation_bytes(&mut self, tag: Tag, reason: Vec<u8>, data: &[u8]) {
        // The violation may be caused by missing data.
        if self.wants::<AnalyzerViolationInfo<'_>>() && !is_incomplete(self.conn) {
            self.raise_violation(tag, &reason, data);
        }
        let data = data[..data.len().min(40)].to_vec();
        self.requests.push(Request::Violation { tag, reason, data });
    }

    /// Raises the event of a violation that is not attributed to the analyzer of this connection:
    /// it has no other effect.
    pub(crate) fn report_violation(&mut self, tag: Tag, reason: &str) {
        if self.wants::<AnalyzerViolationInfo<'_>>() && !is_incomplete(self.conn) {
            self.raise_violation(tag, reason.as_bytes(), &[]);
        }
    }

    /// Raises the event of a violation, unless the limit of violations is exceeded.
    #[cold]
    fn raise_violation(&mut self, tag: Tag, reason: &[u8], data: &[u8]) {
        let aid = self.aid(tag);
        let count = self.env.analyzer_ids.count_violation(self.conn, tag);
        if count <= u64::from(max_violations(&self.env.activation)) {
            self.raise_violation_of(tag, aid, reason, data);
        }
    }

    fn raise_violation_of(
        &mut self,
        tag: Tag,
        aid: Option<AnalyzerId>,
        reason: &[u8],
        data: &[u8],
    ) {
        let data = (!data.is_empty()).then_some(data);
        self.raise(|c| AnalyzerViolationInfo {
            atype: tag,
            info: ViolationInfo { reason, c: Some(c), f: None, aid, data },
        });
    }

    /// Raises the event of a violation of one of several analyzers of a protocol. It has no other
    /// effect.
    #[cold]
    pub(crate) fn report_instance_violation(
        &mut self,
        tag: Tag,
        aid: Option<AnalyzerId>,
        reason: &str,
    ) {
        if self.wants::<AnalyzerViolationInfo<'_>>() && !is_incomplete(self.conn) {
            self.raise_violation_of(tag, aid, reason.as_bytes(), &[]);
        }
    }

    /// Notes that event handlers run immediately, as in Zeek when it raises `get_file_handle`:
    /// those of an earlier violation remove its analyzer.
    pub(crate) fn note_handlers_ran(&mut self) {
        let is_handled = matches!(self.requests.last(), None | Some(Request::Handled));
        if !is_handled && self.requests.iter().any(|r| matches!(r, Request::Violation { .. })) {
            self.requests.push(Request::Handled);
            self.env.handlers_ran = true;
        }
    }

    /// Whether the analyzer of a protocol was removed while it reads its data: it receives no more
    /// data, and its [`finish`](crate::Analyze::finish) is called at the end of the packet.
    #[inline]
    pub(crate) fn is_removed(&mut self, tag: Tag) -> bool {
        self.env.handlers_ran && self.was_removed(tag)
    }

    #[cold]
    fn was_removed(&mut self, tag: Tag) -> bool {
        let end = self.requests.iter().rposition(|r| matches!(r, Request::Handled));
        let end = end.unwrap_or_default();
        let fails = |r: &Request| matches!(r, Request::Violation { tag: of, .. } if *of == tag);
        if !self.requests.iter().take(end).any(fails) {
            return false;
        }
        if !self.env.is_scripted() {
            return violation_counts(self.conn);
        }
        let (aid, uid) = (self.aid(tag), self.conn.uid);
        let disables = |command: &Command| match command {
            Command::Connection {
                uid: of, what: ConnCommand::Disable { aid: number, .. }, ..
            } => *of == uid && aid.is_some_and(|aid| aid.0 == *number),
            _ => false,
        };
        self.env.logs.events.commands().iter().any(disables)
    }

    /// The analyzer needs no more data: it is removed at the end of the packet, and its
    /// [`finish`](crate::Analyze::finish) is called then.
    pub fn done(&mut self, tag: Tag) {
        self.requests.push(Request::Done(tag));
    }

    /// Exchanges originator and responder: of UDP connections immediately, of TCP connections
    /// after the packet. Analyzers are notified afterwards.
    pub fn flip(&mut self) {
        if self.conn.proto == gannet_base::Proto::Udp {
            self.conn.flip();
            self.raise(|c| ConnectionFlipped { c });
        }
        self.requests.push(Request::Flip);
    }

    /// Starts another analyzer on this connection: it receives `replay` first and then all later
    /// stream data (not the current chunk, unless it is in `replay`).
    pub fn start(&mut self, tag: Tag, replay: Replay) {
        self.starts.push((tag, replay));
    }

    /// Starts an analyzer for the payload of the current protocol, which first receives the rest
    /// of the current chunk. As in Zeek it is not notified of gaps.
    pub fn start_inner(&mut self, tag: Tag, from: Dir, rest: &[u8]) {
        self.start(tag, Replay { is_inner: true, ..Replay::rest(from, rest) });
    }

    /// Reports a weird of this connection, by Zeek's name. `source` is the upper-case name of the
    /// analyzer, where Zeek sets weird.log's `source` column.
    pub fn weird(&mut self, name: &'static str, addl: &str, source: Option<&'static str>) {
        self.weird_bytes(name, addl.as_bytes(), source);
    }

    /// Like [`weird`](Self::weird), with details as they are on the wire.
    pub fn weird_bytes(&mut self, name: &'static str, addl: &[u8], source: Option<&'static str>) {
        self.conn.set_weird();
        self.env.weirds.conn_bytes(&mut self.env.logs, self.now, self.conn, name, addl, source);
    }

    /// Reports an ASN.1 integer of more than eight bytes, which counts as 0. Zeek's weird names no
    /// connection.
    pub(crate) fn report_long_integer(&mut self, bytes: usize) {
        let (env, name) = (&mut *self.env, "asn_binary_to_int64_shift_too_large");
        env.weirds.net(&mut env.logs, self.now, name, &bytes.to_string());
    }

    /// The connection's responder relays a stream for its originator. All connections between the
    /// two hosts count as one tunnel of this `kind` (`Tunnel::SOCKS`), regardless of the
    /// originator's port.
    pub fn register_tunnel(&mut self, kind: &'static str) {
        let id = ConnId { orig_p: 0, ..self.conn.id };
        let tunnel = Tunnel { uid: None, id, ip_proto: 6, kind };
        self.env.tunnels.register(&mut self.env.logs, self.now, tunnel);
    }

    /// Raises `get_file_handle` for an analyzer's data. Handlers run immediately, as in Zeek.
    pub(crate) fn raise_file_handle(&mut self, tag: Tag, from: Dir) {
        self.note_handlers_ran();
        if self.wants::<GetFileHandle>() {
            let is_orig = from.is_orig();
            self.raise(|c| GetFileHandle { tag, c, is_orig });
            self.env.logs.events.mark();
        }
        self.env.logs.events.drain();
    }

    /// Like [`raise_file_handle`](Self::raise_file_handle), for data that belongs to no known
    /// file.
    pub(crate) fn raise_handle_without_file(&mut self, tag: Tag, from: Dir) {
        if self.env.logs.events.any() {
            self.raise_file_handle(tag, from);
        } else {
            self.note_handlers_ran();
        }
    }

    /// Like [`raise_handle_without_file`](Self::raise_handle_without_file), for both sides.
    pub(crate) fn raise_file_handles(&mut self, tag: Tag) {
        self.raise_handle_without_file(tag, Dir::Orig);
        self.raise_handle_without_file(tag, Dir::Resp);
    }

    /// Lets the analyzer of a datagram connection check every `seconds` seconds whether the
    /// connection is idle, unless scripts set a shorter timeout.
    pub(crate) fn check_idle_every(&mut self, seconds: u64) {
        let every = u16::try_from(seconds).unwrap_or(u16::MAX).max(1);
        // A connection with a shorter timeout ends before the first check.
        if self.conn.timeout() >= Interval::from_secs(every.into()) {
            // An idle time one second shorter suffices, so that a query with one reply ends at the
            // first check.
            self.conn.set_timeout(every - 1);
            self.conn.check_every = every;
        }
    }

    /// Raises `udp_session_done`: an analyzer of datagrams leaves its connection.
    #[inline]
    pub(crate) fn raise_session_done(&mut self) {
        if self.conn.proto == gannet_base::Proto::Udp && !self.env.is_removing {
            self.raise(|u| UdpSessionDone { u });
        }
    }

    /// Registers a file that begins on this connection.
    pub fn file_start(&mut self, start: FileStart) -> FileId {
        if self.env.logs.events.any()
            && let Some(tag) = Tag::ALL.iter().find(|tag| tag.name() == start.source)
            && !tag.entry().names_files
        {
            self.raise_file_handle(*tag, start.from);
        }
        self.file_start_without_handle(start)
    }

    /// Like [`file_start`](Self::file_start), for a file whose handle is known: `get_file_handle` is not raised.
    pub(crate) fn file_start_without_handle(&mut self, start: FileStart) -> FileId {
        let ordinal = u64::from(self.conn.files);
        self.conn.files += 1;
        let id = self.add_file(start, ordinal);
        let (env, conn) = (&mut *self.env, &*self.conn);
        if env.files.discard_excess(&mut env.logs, self.now, id, conn.is_global()) {
            env.weirds.net(&mut env.logs, self.now, "files_limit_reached", "");
        }
        self.raise_file(id);
        id
    }

    /// Like [`file_start`](Self::file_start), for a file that is delivered completely in one call
    /// and is named by `ordinal`. The limit of open files does not apply to it.
    pub(crate) fn complete_file_start(&mut self, start: FileStart, ordinal: u64) -> FileId {
        let id = self.add_file(start, ordinal);
        self.raise_file(id);
        id
    }

    fn add_file(&mut self, start: FileStart, ordinal: u64) -> FileId {
        let conn = &*self.conn;
        let local_orig = self.env.is_local(match start.from {
            Dir::Orig => conn.id.orig_h,
            Dir::Resp => conn.id.resp_h,
        });
        let on = (conn.id, conn.proto);
        self.env.files.start(self.now, conn.uid, on, local_orig, ordinal, start)
    }

    /// Raises the events of a new file.
    #[cold]
    fn raise_file(&mut self, id: FileId) {
        let env = &mut *self.env;
        if env.logs.events.any() {
            let c = mention(&mut env.logs, self.conn);
            env.files.raise_new(&mut env.logs, id, Some(c));
        }
        self.note_handlers_ran();
    }

    /// Restarts a file that timed out: called before more of it is delivered.
    #[inline]
    pub(crate) fn resume_file(&mut self, file: FileId) {
        if self.env.files.is_timed_out(file) {
            self.resume_timed_out(file);
        }
    }

    #[cold]
    fn resume_timed_out(&mut self, file: FileId) {
        self.env.files.resume(self.now, file);
        // Queued events of its end show the file as it was.
        self.env.logs.events.drain();
        self.raise_file(file);
    }

    /// Delivers more bytes of a file, in order.
    pub fn file_data(&mut self, file: FileId, data: &[u8]) {
        self.resume_file(file);
        self.env.files.data(&mut self.env.logs, self.now, file, data);
    }

    /// Reports `len` missing bytes of a file.
    pub fn file_gap(&mut self, file: FileId, len: u64) {
        self.resume_file(file);
        self.env.files.gap(&mut self.env.logs, self.now, file, None, len);
    }

    /// Ends a file, which is complete or gets no more data: its row is written. Its
    /// [`fuid`](gannet_files::Files::fuid) and type are unavailable afterwards.
    pub fn file_end(&mut self, file: FileId) {
        self.env.files.end(&mut self.env.logs, self.now, file);
    }
}
