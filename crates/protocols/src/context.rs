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
use crate::violations::blames;
use crate::violations::is_incomplete;
use crate::violations::is_long;
use crate::violations::max_violations;

/// Data that a new analyzer receives before anything else, in order.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Parts of the stream, each from one side.
    pub pieces: Vec<(Dir, Piece)>,
    /// Whether the analyzer runs inside of another one, which passes on its payload without gaps.
    pub is_inner: bool,
}

impl Replay {
    /// The rest of the current chunk.
    pub fn rest(from: Dir, rest: &[u8]) -> Self {
        let piece = (!rest.is_empty()).then(|| (from, Piece::Bytes(rest.to_vec())));
        Self { pieces: piece.into_iter().collect(), is_inner: false }
    }
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes, in order.
    Bytes(Vec<u8>),
    /// This many bytes are missing.
    Gap(u64),
}

/// A request of an analyzer, which the driver applies after the packet.
#[derive(Clone, Debug)]
pub enum Request {
    /// The protocol is confirmed: its name goes into `service`.
    Confirm(Tag),
    /// The data violates the protocol.
    Violation {
        /// The analyzer that found it.
        tag: Tag,
        /// In words, for analyzer.log.
        reason: Vec<u8>,
        /// The first bytes that show it.
        data: Vec<u8>,
    },
    /// An inner analyzer of the same kind as a remaining one failed and was removed.
    Failure {
        /// Its kind.
        tag: Tag,
        /// In words, for analyzer.log.
        reason: Vec<u8>,
        /// The first bytes that show it.
        data: Vec<u8>,
    },
    /// Originator and responder are the wrong way round.
    Flip,
    /// The protocol has nothing more to say: its analyzer is taken off quietly.
    Done(Tag),
    /// Handlers of events have run since the last violation, so that the analyzer gets nothing more of the packet.
    Handled,
}

/// What scripts ask of an analyzer, or of one within another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerRequest<'a> {
    /// It is removed.
    Remove {
        /// The analyzer.
        tag: Tag,
        /// Whether it never starts again.
        prevent: bool,
    },
    /// An analyzer of WebSocket begins, and passes payload on.
    Configure {
        /// To an analyzer of this protocol; `None`: to none.
        payload: Option<Tag>,
    },
    /// The application data of a TLS session is decrypted.
    Decrypt(TlsSecret<'a>),
    /// Both sides of a TLS session have changed to encryption.
    Establish,
    /// The rest of the current entity of HTTP is not delivered.
    SkipEntity {
        /// The side that sends it.
        from: Dir,
    },
    /// The rest of the current mail of SMTP is not reported line by line.
    SkipMail,
    /// A login has this state, by Zeek's number.
    Login {
        /// The state.
        state: u64,
    },
}

/// A secret of a TLS session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSecret<'a> {
    /// The master secret, of which the keys are derived.
    Master(&'a [u8]),
    /// The key block (RFC 5246 section 6.3).
    KeyBlock(&'a [u8]),
}

/// One call's view of the world for an analyzer.
pub struct Context<'a> {
    /// Time of the current packet (network time).
    pub now: Time,
    /// The connection.
    pub conn: &'a mut Conn,
    /// What all connections share.
    pub env: &'a mut Env,
    /// Requests so far, in order.
    pub requests: &'a mut Vec<Request>,
    /// Analyzers to start as soon as the current call returns.
    pub starts: &'a mut Vec<(Tag, Replay)>,
    /// The analyzer's protocol, if it is recognised.
    pub(crate) confirmed: Option<Tag>,
}

/// Writes a row.
pub(crate) fn log<R: Row>(env: &mut Env, now: Time, row: &R) {
    let cut = env.logs.write(row);
    tell::<R>(env, now, cut);
}

/// Writes a row of a log that has one for every message, if [that](gannet_log::Logs::write_in_place)
/// can be done: returns whether it was.
#[inline(always)]
#[must_use]
pub(crate) fn log_in_place<R: Row>(env: &mut Env, now: Time, row: &R) -> bool {
    let written = env.logs.write_in_place(row);
    if let Some(cut) = written {
        tell::<R>(env, now, cut);
    }
    written.is_some()
}

/// Writes a row of such a log, [in place](log_in_place) if that can be done. It is made again if not,
/// so that it need not lie in memory where it is.
#[inline(always)]
pub(crate) fn log_every<R: Row>(env: &mut Env, now: Time, row: impl Fn() -> R) {
    if !log_in_place(env, now, &row()) {
        log_elsewhere(env, now, row);
    }
}

#[cold]
#[inline(never)]
fn log_elsewhere<R: Row>(env: &mut Env, now: Time, row: impl Fn() -> R) {
    log(env, now, &row());
}

#[inline]
fn tell<R: Row>(env: &mut Env, now: Time, cut: Cut) {
    if cut.strings || cut.lists {
        let Env { weirds, logs, .. } = env;
        report_cut(weirds, logs, now, R::PATH, cut);
    }
}

/// A direct receiver of the events that an analyzer [reports](Context::report): the rows of a protocol.
pub trait OnEvent<E> {
    /// Handles an event of the connection of `cx`, for which the event holds [`Connection::CURRENT`].
    fn on_event(&mut self, cx: &mut Context<'_>, event: &E);
}

/// For analyzers without rows.
impl<E> OnEvent<E> for () {
    #[inline]
    fn on_event(&mut self, _cx: &mut Context<'_>, _event: &E) {}
}

impl Context<'_> {
    /// Raises an event of this connection for its listener, if it has one, then passes it to `rows`. `make` builds
    /// the event from the connection, once for each of the two.
    #[inline]
    pub fn report<E: Event>(&mut self, rows: &mut impl OnEvent<E>, make: impl Fn(Connection) -> E) {
        self.raise(&make);
        rows.on_event(self, &make(Connection::CURRENT));
    }

    /// Raises an event of this connection, if it has a listener: `make` builds it around the connection.
    ///
    /// Handlers see the connection as it is when an event last mentions it in the current packet.
    #[inline]
    pub fn raise<E: Event>(&mut self, make: impl FnOnce(Connection) -> E) {
        if self.env.logs.events.wants::<E>() {
            crate::conn_state::raise(&mut self.env.logs, self.conn, make);
        }
    }

    /// Whether an event has a listener: for arguments that are costly to work out.
    #[inline]
    pub fn wants<E: Event>(&self) -> bool {
        self.env.logs.events.wants::<E>()
    }

    /// Originator and responder.
    pub fn id(&self) -> ConnId {
        self.conn.id
    }

    /// Writes a row.
    pub fn log<R: Row>(&mut self, row: &R) {
        log(self.env, self.now, row);
    }

    /// The protocol is recognised. May be called often; counts once an analyzer.
    pub fn confirm(&mut self, tag: Tag) {
        // Counting bytes matters only as long as violations count; where services are logged, any
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

    /// Confirms one of several analyzers of a protocol: each has an event.
    pub(crate) fn confirm_instance(&mut self, tag: Tag, aid: Option<AnalyzerId>) {
        if self.wants::<AnalyzerConfirmationInfo>() {
            self.raise_confirmation_of(tag, aid);
        }
        self.requests.push(Request::Confirm(tag));
    }

    /// The number of an analyzer of this connection; what reads packets has none.
    pub(crate) fn aid(&mut self, tag: Tag) -> Option<AnalyzerId> {
        if !self.env.logs.events.any() {
            return None;
        }
        if tag.reads_packets() {
            return None;
        }
        let events = &mut self.env.logs.events;
        Some(AnalyzerId(self.env.analyzer_ids.of(events, self.conn, tag)))
    }

    /// Analyzers start that have numbers in Zeek and are none here.
    #[inline]
    pub(crate) fn skip_aids(&mut self, count: u64) {
        if self.env.logs.events.any() {
            self.env.logs.events.skip_numbers(count);
        }
    }

    /// The bytes are not this protocol: early in a connection the analyzer is taken off (its
    /// [`finish`](crate::Analyze::finish) is called when the packet is done), later it stays.
    pub fn violation(&mut self, tag: Tag, reason: &str, data: &[u8]) {
        self.violation_bytes(tag, reason.into(), data);
    }

    /// The same, with a reason that quotes the data.
    pub fn violation_bytes(&mut self, tag: Tag, reason: Vec<u8>, data: &[u8]) {
        // The violation may be caused by missing data.
        if self.wants::<AnalyzerViolationInfo<'_>>() && !is_incomplete(self.conn) {
            self.raise_violation(tag, &reason, data);
        }
        let data = data[..data.len().min(40)].to_vec();
        self.requests.push(Request::Violation { tag, reason, data });
    }

    /// Raises the event of a violation that is none of the analyzer's own connection: nothing else follows from it.
    pub(crate) fn report_violation(&mut self, tag: Tag, reason: &str) {
        if self.wants::<AnalyzerViolationInfo<'_>>() && !is_incomplete(self.conn) {
            self.raise_violation(tag, reason.as_bytes(), &[]);
        }
    }

    /// Raises the event of a violation, unless there were too many.
    #[cold]
    fn raise_violation(&mut self, tag: Tag, reason: &[u8], data: &[u8]) {
        let aid = self.aid(tag);
        let count = self.env.analyzer_ids.count_violation(self.conn, tag);
        if count <= u64::from(max_violations(&self.env.steering)) {
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

    /// Raises the event of a violation of one of several analyzers of a protocol: nothing else follows from it.
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

    /// Handlers run at once, as in Zeek where a file is asked for: those of a violation take its analyzer off.
    pub(crate) fn note_handled(&mut self) {
        let is_handled = matches!(self.requests.last(), None | Some(Request::Handled));
        if !is_handled && self.requests.iter().any(|r| matches!(r, Request::Violation { .. })) {
            self.requests.push(Request::Handled);
            self.env.has_handled = true;
        }
    }

    /// Whether the analyzer of a protocol was taken off while it reads its data: it gets no more of it, and its
    /// [`finish`](crate::Analyze::finish) follows when the packet is done.
    #[inline]
    pub(crate) fn is_taken_off(&mut self, tag: Tag) -> bool {
        self.env.has_handled && self.was_taken_off(tag)
    }

    #[cold]
    fn was_taken_off(&mut self, tag: Tag) -> bool {
        let end = self.requests.iter().rposition(|r| matches!(r, Request::Handled));
        let end = end.unwrap_or_default();
        let fails = |r: &Request| matches!(r, Request::Violation { tag: of, .. } if *of == tag);
        if !self.requests.iter().take(end).any(fails) {
            return false;
        }
        if !self.env.is_scripted() {
            return blames(self.conn);
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

    /// Nothing more will be learned: the analyzer is taken off when the packet is done, and its
    /// [`finish`](crate::Analyze::finish) called then.
    pub fn done(&mut self, tag: Tag) {
        self.requests.push(Request::Done(tag));
    }

    /// Exchanges originator and responder. UDP connections flip at once, TCP ones after the packet;
    /// analyzers are notified afterwards.
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

    /// Starts an analyzer for the payload of the current protocol, which first receives the rest of
    /// the current chunk. As in Zeek it is not notified of gaps.
    pub fn start_inner(&mut self, tag: Tag, from: Dir, rest: &[u8]) {
        self.start(tag, Replay { is_inner: true, ..Replay::rest(from, rest) });
    }

    /// Reports a weird of this connection, by Zeek's name. `source` is the upper-case name of the
    /// analyzer, where Zeek sets weird.log's `source` column.
    pub fn weird(&mut self, name: &'static str, addl: &str, source: Option<&'static str>) {
        self.weird_bytes(name, addl.as_bytes(), source);
    }

    /// The same, with details as they came from the wire.
    pub fn weird_bytes(&mut self, name: &'static str, addl: &[u8], source: Option<&'static str>) {
        self.conn.set_weird();
        self.env.weirds.conn_bytes(&mut self.env.logs, self.now, self.conn, name, addl, source);
    }

    /// A number of ASN.1 has more than eight bytes: it counts as 0. Zeek says that of no
    /// connection.
    pub(crate) fn long_number(&mut self, bytes: usize) {
        let (env, name) = (&mut *self.env, "asn_binary_to_int64_shift_too_large");
        env.weirds.net(&mut env.logs, self.now, name, &bytes.to_string());
    }

    /// This connection's responder relays a stream for its originator. All connections between the two
    /// count as one tunnel of this `kind` (`Tunnel::SOCKS`), whatever the originator's port.
    pub fn register_tunnel(&mut self, kind: &'static str) {
        let id = ConnId { orig_p: 0, ..self.conn.id };
        let tunnel = Tunnel { uid: None, id, ip_proto: 6, kind };
        self.env.tunnels.register(&mut self.env.logs, self.now, tunnel);
    }

    /// Raises the event that asks for the file of an analyzer's data. Handlers run at once, as in Zeek.
    pub(crate) fn raise_file_handle(&mut self, tag: Tag, from: Dir) {
        self.note_handled();
        if self.wants::<GetFileHandle>() {
            let is_orig = from.is_orig();
            self.raise(|c| GetFileHandle { tag, c, is_orig });
            self.env.logs.events.mark();
        }
        self.env.logs.events.drain();
    }

    /// The same for data of which no file is known.
    pub(crate) fn raise_file_handle_of_none(&mut self, tag: Tag, from: Dir) {
        if self.env.logs.events.any() {
            self.raise_file_handle(tag, from);
        } else {
            self.note_handled();
        }
    }

    /// The same for both sides.
    pub(crate) fn raise_file_handles(&mut self, tag: Tag) {
        self.raise_file_handle_of_none(tag, Dir::Orig);
        self.raise_file_handle_of_none(tag, Dir::Resp);
    }

    /// The analyzer of datagrams checks at intervals of these seconds whether its connection is idle, unless scripts let
    /// less silence end it.
    pub(crate) fn look_every(&mut self, seconds: u64) {
        let every = u16::try_from(seconds).unwrap_or(u16::MAX).max(1);
        // A connection that is silent for longer ends before.
        if self.conn.timeout() >= Interval::from_secs(every.into()) {
            // Silence of a second less is enough, so that a query with one reply ends at the first look.
            self.conn.set_timeout(every - 1);
            self.conn.look_every = every;
        }
    }

    /// An analyzer of datagrams leaves its connection.
    #[inline]
    pub(crate) fn raise_session_done(&mut self) {
        if self.conn.proto == gannet_base::Proto::Udp && !self.env.is_leaving {
            self.raise(|u| UdpSessionDone { u });
        }
    }

    /// A file begins on this connection.
    pub fn file_start(&mut self, start: FileStart) -> FileId {
        if self.env.logs.events.any()
            && let Some(tag) = Tag::ALL.iter().find(|tag| tag.name() == start.source)
            && !tag.entry().names_files
        {
            self.raise_file_handle(*tag, start.from);
        }
        let ordinal = u64::from(self.conn.files);
        self.conn.files += 1;
        let id = self.add_file(start, ordinal);
        let (env, conn) = (&mut *self.env, &*self.conn);
        if env.files.make_room(&mut env.logs, self.now, id, conn.is_global()) {
            env.weirds.net(&mut env.logs, self.now, "files_limit_reached", "");
        }
        self.raise_file(id);
        id
    }

    /// The same for a file that is here at once as a whole, and has its name by another number. There is always room for it.
    pub(crate) fn whole_file_start(&mut self, start: FileStart, ordinal: u64) -> FileId {
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

    /// Raises the events of a file that began.
    fn raise_file(&mut self, id: FileId) {
        let env = &mut *self.env;
        if env.logs.events.any() {
            let c = mention(&mut env.logs, self.conn);
            env.files.raise_new(&mut env.logs, id, Some(c));
        }
        self.note_handled();
    }

    /// More of a file, in order.
    pub fn file_data(&mut self, file: FileId, data: &[u8]) {
        self.env.files.data(&mut self.env.logs, self.now, file, data);
    }

    /// A part of a file that is missing.
    pub fn file_gap(&mut self, file: FileId, len: u64) {
        self.env.files.gap(&mut self.env.logs, self.now, file, None, len);
    }

    /// The file is complete, or nothing more will come: its row is written. After this, its
    /// [`fuid`](gannet_files::Files::fuid) and type are gone: ask before.
    pub fn file_end(&mut self, file: FileId) {
        self.env.files.end(&mut self.env.logs, self.now, file);
    }
}
