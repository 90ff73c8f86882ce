//! The event queue of an analysis: events of the current packet, and the connections and files that they mention.

use gannet_base::Time;
use gannet_base::Uid;
use gannet_base::UidMap;
use gannet_log::Key;

use crate::command::Command;
use crate::decl::Decl;
use crate::decl::Id;
use crate::decl::Interest;
use crate::pack::Connection;
use crate::pack::FileRef;
use crate::pack::Packer;
use crate::read::Args;
use crate::read::Reader;
use crate::recording::Player;
use crate::recording::Recorder;
use crate::recording::Recording;
use crate::state::ConnState;
use crate::state::FileState;
use crate::state::TransportState;
use crate::state::TunnelState;

/// A typed event. Declare it with [`events!`](crate::events!).
pub trait Event {
    /// Declaration of the event.
    const DECL: &'static Decl;
    /// Appends the arguments in order.
    fn pack(&self, to: &mut Packer<'_>);
}

/// The thread in which a listener receives events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadAffinity {
    /// The only thread of the analysis: the listener may send requests to the analysis at any time.
    #[default]
    Analysis,
    /// The thread that passes packets to an analysis with several threads. The listener may send requests before the
    /// first packet; after that only [`Command::Stop`].
    Caller,
    /// Any thread; requests as for `Caller`.
    Anywhere,
}

/// Receives events in the order in which they were raised.
pub trait Listener: Send {
    /// The thread in which it receives events.
    fn affinity(&self) -> ThreadAffinity {
        ThreadAffinity::Analysis
    }

    /// Whether [`packet`](Self::packet) is called, also for packets without events. The analysis is faster without it.
    fn wants_packets(&self) -> bool {
        true
    }

    /// Receives an event.
    fn event(&mut self, event: &Raised<'_>);

    /// Receives the network time and number of a packet that begins. See [`wants_packets`](Self::wants_packets).
    fn packet(&mut self, time: Time, packet: u64) {
        let _ = (time, packet);
    }

    /// The network time from which [`packet`](Self::packet) is called for each packet. For an earlier packet it is
    /// called only if the packet has an event, before that event, with the latest packet time so far. This method is
    /// called after `packet` and [`drained`](Self::drained). By default, `packet` is called for each packet.
    fn packets_from(&self) -> Time {
        Time::MIN
    }

    /// Called when all queued events are delivered, as at the end of a packet with events.
    fn drained(&mut self) {}

    /// Answers an event that is a question, for which the analysis waits. It is delivered before queued events.
    fn decide(&mut self, question: &Raised<'_>) -> bool {
        let _ = question;
        false
    }

    /// Moves the requests of the listener to `to`. Called after [`packet`](Self::packet) and
    /// [`drained`](Self::drained).
    fn commands(&mut self, to: &mut Vec<Command>) {
        let _ = to;
    }
}

/// An event as a listener receives it.
#[derive(Clone, Copy, Debug)]
pub struct Raised<'a> {
    /// Network time.
    pub time: Time,
    /// Number of the packet.
    pub packet: u64,
    /// Declaration of the event.
    pub decl: &'static Decl,
    args: &'a [u8],
    conns: &'a [ConnState],
    files: &'a [FileState],
    version: u64,
}

impl<'a> Raised<'a> {
    /// The arguments, in the order of the declaration.
    pub fn args(&self) -> Args<'a> {
        Reader::new(self.args)
    }

    /// The packed arguments.
    pub fn packed(&self) -> &'a [u8] {
        self.args
    }

    /// The connection with the index of an argument.
    pub fn connection(&self, index: usize) -> Option<&'a ConnState> {
        self.conns.get(index)
    }

    /// A number that changes whenever the [connections](Self::connection) or their state may change: for events with
    /// the same number, they are the same.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The file with the index of an argument.
    pub fn file(&self, index: usize) -> Option<&'a FileState> {
        self.files.get(index)
    }
}

/// A queued event.
struct Queued {
    decl: &'static Decl,
    /// End offset of its arguments, which begin at the end of those of the previous event.
    end: u32,
    then: Option<AfterEvent>,
}

/// Effect of an event on the state of a connection.
#[derive(Clone, Copy)]
enum AfterEvent {
    /// Adds a protocol to its services (`true`) or removes it, after this event.
    Service(u32, &'static str, bool),
    /// This event and later ones have the state at the end of the packet.
    ShowEnd(u32),
    /// Only later events have the state at the end of the packet.
    ShowEndAfter(u32),
}

/// Event queue: events of the current packet are delivered at its end.
#[derive(Default)]
pub struct Events {
    interest: Interest,
    listener: Option<Box<dyn Listener>>,
    /// See [`Listener::wants_packets`].
    wants_packets: bool,
    /// See [`Listener::packets_from`].
    packets_from: Time,
    /// Latest time of the packets of which the listener was not notified; `None` if it was notified of the current one.
    skipped: Option<Time>,
    queue: Vec<Queued>,
    /// Packed arguments.
    bytes: Vec<u8>,
    conns: Vec<ConnState>,
    /// Indices of connections by uid if there are more than [`MAX_SEARCHED`]; otherwise empty.
    conn_index: UidMap<u32>,
    /// Empty vectors for histories and services, for reuse.
    spare: Vec<(Vec<u8>, Vec<&'static str>)>,
    files: Vec<FileState>,
    file_index: UidMap<u32>,
    now: Time,
    packet: u64,
    transport: TransportState,
    /// Changes of services by delivered events of the current packet. Connections themselves are updated at the end of
    /// the packet.
    changed_services: Vec<(Uid, &'static str, bool)>,
    /// Whether a queued event needs the state of its connection at the end of the packet.
    awaits_end: bool,
    /// States of connections at the end of the packet, with their indices.
    ends: Vec<(u32, ConnState)>,
    /// Number of delivered events.
    delivered: u64,
    /// See [`Raised::version`].
    version: u64,
    /// Requests of the listener, in order.
    commands: Vec<Command>,
    /// Whether events were delivered and [`Listener::drained`] was not called yet.
    has_pending_handlers: bool,
    /// Tunnels of connections.
    tunnels: UidMap<Vec<TunnelState>>,
    /// The event without arguments that marks where Zeek runs handlers, if it has a listener.
    mark: Option<&'static Decl>,
    /// The last number allocated to an analyzer.
    last_number: u64,
    /// Records all calls, in a shard of an analysis.
    recorder: Option<Box<Recorder>>,
    /// Replays recordings of shards.
    pub(crate) player: Player,
}

/// Maximum number of vectors kept for reuse.
const MAX_SPARE: usize = 64;

/// Number of connections up to which one is found by a linear search: nearly all packets have events of one or two.
const MAX_SEARCHED: usize = 8;

/// Number of queued events above which they are delivered before the next timer, as when many timers are due at one
/// packet.
const MAX_QUEUED: usize = 16_384;

impl Events {
    /// A queue that delivers events of `interest` to `listener`.
    pub fn new(interest: Interest, listener: Box<dyn Listener>) -> Self {
        let wants_packets = listener.wants_packets();
        let packets_from = Time::MIN;
        Self { interest, listener: Some(listener), wants_packets, packets_from, ..Self::default() }
    }

    /// A queue that records events of `interest`, and the beginnings of packets if the listener wants them. The queue
    /// of the listener [replays](Self::replay) the recording.
    pub fn recording(interest: Interest, wants_packets: bool) -> Self {
        // `drain` calls `deliver`, which records the call, even if the queue is empty.
        let recorder = Some(Box::new(Recorder::new(wants_packets)));
        Self { interest, recorder, has_pending_handlers: true, ..Self::default() }
    }

    /// Whether events are recorded.
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// Approximate memory of the recorded events, in bytes.
    pub fn recorded(&self) -> usize {
        self.recorder.as_ref().map_or(0, |recorder| recorder.bytes())
    }

    /// Takes the events recorded so far; `None` if there are none.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.recorder.as_mut()?.take()
    }

    /// Sets the key and the time of the following events if they are recorded.
    #[inline]
    pub(crate) fn set_key(&mut self, key: Key, time: Time) {
        if let Some(recorder) = &mut self.recorder {
            recorder.set_key(key, time);
        }
    }

    /// Returns a number greater than those of all events recorded so far; `None` if events are not recorded.
    pub(crate) fn ticket(&self) -> Option<u64> {
        self.recorder.as_ref().map(|recorder| recorder.ticket())
    }

    /// Whether no event was recorded since the last [ticket](crate::Sinks::ticket).
    pub fn is_none_since_ticket(&self) -> bool {
        self.recorder.as_ref().is_none_or(|recorder| recorder.is_interrupted())
    }

    /// Records the current key without a call.
    pub fn record_nothing(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_run();
        }
    }

    /// Whether the beginning of each packet is recorded.
    pub fn records_packets(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.wants_packets())
    }

    /// Records that a connection takes the current packet, which another shard processed first.
    pub fn record_taken(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.taken();
        }
    }

    /// Allocates consecutive numbers for `count` analyzers; returns the first one.
    pub fn number_analyzers(&mut self, count: u64) -> u64 {
        if let Some(recorder) = &mut self.recorder {
            return recorder.number_analyzers(count);
        }
        let first = self.last_number + 1;
        self.last_number += count;
        first
    }

    /// Allocates numbers for `count` analyzers that raise no events.
    pub fn skip_numbers(&mut self, count: u64) {
        let first = self.number_analyzers(count);
        self.forget_numbers(first);
    }

    /// Forgets an analyzer that no later event mentions, if its number was allocated individually.
    pub fn forget_number(&mut self, number: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.forget_number(number);
        }
    }

    /// Forgets all analyzers whose numbers were allocated together with this one; no later event mentions them.
    pub fn forget_numbers(&mut self, number: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.forget_numbers(number);
        }
    }

    /// Sets the event without arguments that is raised where Zeek runs handlers, if it has a listener.
    pub fn set_mark(&mut self, decl: &'static Decl) {
        self.mark = Some(decl).filter(|decl| decl.params.is_empty() && self.interest.has(decl.id));
    }

    /// Marks a point at which Zeek runs the handlers of queued events.
    #[inline]
    pub fn mark(&mut self) {
        if let Some(decl) = self.mark {
            match &mut self.recorder {
                Some(recorder) => recorder.raised(decl, false),
                None => self.raise_packed(decl, &[]),
            }
        }
    }

    /// Whether an event has a listener.
    #[inline]
    pub fn wants<E: Event>(&self) -> bool {
        self.interest.has(const { E::DECL.id })
    }

    /// Adds an event to those that have a listener.
    pub fn add_interest<E: Event>(&mut self) {
        self.interest.add(E::DECL.id);
    }

    /// Whether an event of this number has a listener.
    #[inline]
    pub fn wants_id(&self, id: Id) -> bool {
        self.interest.has(id)
    }

    /// Whether any event has a listener.
    #[inline]
    pub fn any(&self) -> bool {
        self.interest.any()
    }

    /// Sets packet and network time of the following events.
    #[inline]
    pub fn set_time(&mut self, now: Time, packet: u64) {
        self.changed_services.clear();
        (self.now, self.packet) = (now, packet);
        if let Some(recorder) = &mut self.recorder {
            self.awaits_end = false;
            recorder.set_time(now, packet);
        }
        // Other listeners have no requests between their events.
        if !self.wants_packets {
            return;
        }
        if now < self.packets_from {
            self.skipped = self.skipped.max(Some(now));
        } else {
            let latest = self.skipped.take().map_or(now, |skipped| skipped.max(now));
            self.begin_packet(latest);
            let next = self.listener.as_ref().map(|listener| listener.packets_from());
            self.packets_from = next.unwrap_or(Time::MAX);
        }
    }

    /// Notifies the listener of the current packet before an event, if it was skipped.
    /// [`packets_from`](Listener::packets_from) is called after the event.
    #[inline]
    fn notify_skipped_packet(&mut self) {
        if let Some(latest) = self.skipped.take() {
            self.packets_from = Time::MIN;
            self.begin_packet(latest);
        }
    }

    #[inline(never)]
    fn begin_packet(&mut self, latest: Time) {
        if let Some(listener) = &mut self.listener {
            listener.packet(latest, self.packet);
            listener.commands(&mut self.commands);
        }
    }

    /// Whether the listener has requests.
    #[inline]
    pub fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Requests of the listener that were not taken yet.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Takes the requests of the listener.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Takes the requests of the listener for which `which` returns `true`.
    pub fn take_commands_if(&mut self, which: impl Fn(&Command) -> bool) -> Vec<Command> {
        let (taken, left) = std::mem::take(&mut self.commands).into_iter().partition(which);
        self.commands = left;
        taken
    }

    /// Collects the requests of the listener before the first packet.
    pub fn collect_commands(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.commands(&mut self.commands);
        }
    }

    /// Adds requests before the first packet.
    pub fn push_commands(&mut self, commands: &[Command]) {
        self.commands.extend_from_slice(commands);
    }

    /// Sets the transport state of the current connection.
    #[inline]
    pub fn set_transport(&mut self, transport: TransportState) {
        self.transport = transport;
    }

    /// The transport state of the current connection, for a [`ConnState`].
    pub fn transport(&self) -> TransportState {
        self.transport
    }

    /// Raises an event that [has a listener](Self::wants).
    pub fn raise<E: Event>(&mut self, event: &E) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.raise(event, false);
        }
        self.drain_if_independent();
        event.pack(&mut Packer::new(&mut self.bytes));
        self.queue.push(Queued { decl: E::DECL, end: self.bytes.len() as u32, then: None });
    }

    /// Like [`raise`](Self::raise), unless a connection takes the packet, which may happen in another shard.
    pub fn raise_unless_taken<E: Event>(&mut self, event: &E) {
        match &mut self.recorder {
            Some(recorder) => recorder.raise(event, true),
            None => self.raise(event),
        }
    }

    /// Delivers an event that mentions no connection and no file, before queued events. [`Listener::drained`] is called
    /// later, after the other events of the packet.
    pub fn raise_at_once<E: Event>(&mut self, event: &E) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.raise_at_once(event);
        }
        let start = self.bytes.len();
        event.pack(&mut Packer::new(&mut self.bytes));
        self.deliver_now(E::DECL, start);
    }

    /// Delivers an event immediately; its arguments are packed from `start` on, after those of queued events.
    fn deliver_now(&mut self, decl: &'static Decl, start: usize) {
        self.notify_skipped_packet();
        if let Some(listener) = &mut self.listener {
            listener.event(&Raised {
                time: self.now,
                packet: self.packet,
                decl,
                args: self.bytes.get(start..).unwrap_or_default(),
                conns: &[],
                files: &[],
                version: self.version,
            });
        }
        self.bytes.truncate(start);
        self.delivered += 1;
        self.has_pending_handlers = true;
    }

    /// Like [`raise_at_once`](Self::raise_at_once), with packed arguments.
    pub(crate) fn raise_packed_at_once(&mut self, decl: &'static Decl, args: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(args);
        self.deliver_now(decl, start);
    }

    /// Like [`raise`](Self::raise), with packed arguments.
    pub(crate) fn raise_packed(&mut self, decl: &'static Decl, args: &[u8]) {
        self.drain_if_independent();
        self.bytes.extend_from_slice(args);
        self.queue.push(Queued { decl, end: self.bytes.len() as u32, then: None });
    }

    /// Delivers queued events if there are too many, and no index of a connection or file is valid that the next one
    /// may use.
    fn drain_if_independent(&mut self) {
        if self.queue.len() >= MAX_QUEUED && self.conns.is_empty() && self.files.is_empty() {
            self.drain();
        }
    }

    /// Delivers queued events if there are too many. Called between timers and between connections that are closed.
    pub fn drain_if_full(&mut self) {
        if self.queue.len() >= MAX_QUEUED {
            self.drain();
        }
    }

    /// Asks the listener a question and returns its answer; `false` without a listener. The event is delivered only to
    /// [`Listener::decide`].
    #[cold]
    pub fn decide<E: Event>(&mut self, question: &E) -> bool {
        self.notify_skipped_packet();
        let start = self.bytes.len();
        question.pack(&mut Packer::new(&mut self.bytes));
        let mut answer = false;
        self.version += 1;
        // The listener may need the next packet because of its answer.
        self.packets_from = Time::MIN;
        if let Some(listener) = &mut self.listener {
            answer = listener.decide(&Raised {
                time: self.now,
                packet: self.packet,
                decl: E::DECL,
                args: self.bytes.get(start..).unwrap_or_default(),
                conns: &self.conns,
                files: &self.files,
                version: self.version,
            });
        }
        self.version += 1;
        self.bytes.truncate(start);
        answer
    }

    /// Adds a protocol to a connection's services or removes it, after the event raised last: only later events have
    /// the change.
    pub fn then_service(&mut self, conn: Connection, name: &'static str, added: bool) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.service(conn, name, added);
        }
        if let Some(last) = self.queue.last_mut() {
            last.then = Some(AfterEvent::Service(conn.0, name, added));
        }
    }

    /// The event raised last and later ones get the state of the connection at the end of the packet, because Zeek
    /// raises it in a handler, which runs then.
    pub fn show_end(&mut self, conn: Connection) {
        if let Some(last) = self.queue.last_mut() {
            last.then = Some(AfterEvent::ShowEnd(conn.0));
            self.awaits_end = true;
        }
    }

    /// Events after the one raised last get the state of the connection at the end of the packet, because a handler of
    /// it looks up the connection in Zeek.
    pub fn show_end_after(&mut self, conn: Connection) {
        if let Some(last) = self.queue.last_mut()
            && last.then.is_none()
        {
            last.then = Some(AfterEvent::ShowEndAfter(conn.0));
            self.awaits_end = true;
        }
    }

    /// Requests the state of the connection at the end of the packet in a shard, because [`show_end`](Self::show_end)
    /// may follow.
    pub fn record_end(&mut self) {
        self.awaits_end |= self.recorder.is_some();
    }

    /// Whether a queued event needs the state of its connection at the end of the packet.
    #[inline]
    pub fn awaits_end(&self) -> bool {
        self.awaits_end
    }

    /// Sets the state of a connection at the end of the packet.
    #[cold]
    pub fn set_end(&mut self, state: ConnState) {
        let state = self.with_packet_state(state);
        if let Some(recorder) = &mut self.recorder {
            recorder.end(state);
        } else if let Some(index) = self.conn_index(state.uid) {
            // A frame may contain several packets of the connection.
            self.ends.retain(|(known, _)| *known != index);
            self.ends.push((index, state));
        }
    }

    /// Adds a connection for an event, or updates its state, also for queued events.
    pub fn connection(&mut self, state: ConnState) -> Connection {
        self.add_connection(state, false)
    }

    /// Like [`connection`](Self::connection), but does not update a connection that a queued event mentions.
    pub fn connection_unless_known(&mut self, state: ConnState) -> Connection {
        match self.known_connection(state.uid) {
            Some(known) => known,
            None => self.add_connection(state, true),
        }
    }

    fn add_connection(&mut self, state: ConnState, unless_known: bool) -> Connection {
        let state = self.with_packet_state(state);
        if let Some(recorder) = &mut self.recorder {
            return recorder.connection(state, unless_known);
        }
        let index = self.conn_index(state.uid).unwrap_or(self.conns.len() as u32);
        match self.conns.get_mut(index as usize) {
            Some(known) => {
                recycle(&mut self.spare, known);
                *known = state;
            }
            None => self.push_connection(state),
        }
        Connection(index)
    }

    fn push_connection(&mut self, state: ConnState) {
        let (uid, index) = (state.uid, self.conns.len());
        self.conns.push(state);
        if index > MAX_SEARCHED {
            self.conn_index.insert(uid, index as u32);
        } else if index == MAX_SEARCHED {
            let all = self.conns.iter().zip(0..);
            self.conn_index.extend(all.map(|(state, index)| (state.uid, index)));
        }
    }

    /// The index of a connection in `conns`.
    #[inline]
    fn conn_index(&self, uid: Uid) -> Option<u32> {
        if self.conns.len() <= MAX_SEARCHED {
            let found = self.conns.iter().position(|state| state.uid == uid);
            return found.map(|index| index as u32);
        }
        self.conn_index.get(&uid).copied()
    }

    /// Empty vectors for a history and services, which may have capacity.
    pub fn spare(&mut self) -> (Vec<u8>, Vec<&'static str>) {
        self.spare.pop().unwrap_or_default()
    }

    /// Adds to a state the services that events of the packet changed, and tunnels.
    fn with_packet_state(&self, mut state: ConnState) -> ConnState {
        for (_, name, added) in self.changed_services.iter().filter(|(uid, ..)| *uid == state.uid) {
            state.services.retain(|s| s != name);
            if *added {
                state.services.push(name);
            }
        }
        if !self.tunnels.is_empty()
            && let Some(tunnels) = self.tunnels.get(&state.uid)
        {
            state.tunnels.clone_from(tunnels);
        }
        state
    }

    /// Sets the tunnels of a connection, outermost first; an empty vector removes them.
    pub fn set_tunnels(&mut self, uid: Uid, tunnels: Vec<TunnelState>) {
        if tunnels.is_empty() {
            self.tunnels.remove(&uid);
        } else {
            self.tunnels.insert(uid, tunnels);
        }
    }

    /// The connection, if a queued event mentions it.
    pub fn known_connection(&self, uid: Uid) -> Option<Connection> {
        self.conn_index(uid).map(Connection)
    }

    /// Adds a file for an event, or updates its state, also for queued events.
    pub fn file(&mut self, state: FileState) -> FileRef {
        if let Some(recorder) = &mut self.recorder {
            return recorder.file(state);
        }
        let next = self.files.len() as u32;
        let index = *self.file_index.entry(state.fuid).or_insert(next);
        match self.files.get_mut(index as usize) {
            Some(known) => *known = state,
            None => self.files.push(state),
        }
        FileRef(index)
    }

    /// Delivers all queued events.
    #[inline]
    pub fn drain(&mut self) {
        if !self.queue.is_empty() || self.has_pending_handlers {
            self.deliver();
        }
    }

    /// Number of delivered events.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Delivers queued events without a call of [`Listener::drained`], and collects the requests of the listener.
    #[cold]
    pub fn deliver_early(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.deliver_early();
        }
        self.deliver_queued();
        if let Some(listener) = &mut self.listener {
            listener.commands(&mut self.commands);
        }
    }

    #[cold]
    #[inline(never)]
    fn deliver(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.drain();
        }
        self.deliver_queued();
        self.has_pending_handlers = false;
        if let Some(listener) = &mut self.listener {
            listener.drained();
            listener.commands(&mut self.commands);
            self.packets_from = listener.packets_from();
        }
    }

    fn deliver_queued(&mut self) {
        self.notify_skipped_packet();
        self.has_pending_handlers = true;
        if self.queue.is_empty() && self.conns.is_empty() && self.files.is_empty() {
            self.awaits_end = false;
            self.ends.clear();
            return;
        }
        // Services change after the event that changes them: first undo the changes of all queued events.
        for queued in self.queue.iter().rev() {
            let Some(AfterEvent::Service(conn, name, added)) = queued.then else { continue };
            set_service(&mut self.conns, conn, name, !added);
        }
        let mut start = 0;
        self.version += 1;
        for queued in &self.queue {
            let end = queued.end as usize;
            if let Some(AfterEvent::ShowEnd(conn)) = queued.then {
                self.version += 1;
                apply_end(&mut self.conns, &mut self.ends, conn);
            }
            if let Some(listener) = &mut self.listener {
                listener.event(&Raised {
                    time: self.now,
                    packet: self.packet,
                    decl: queued.decl,
                    args: self.bytes.get(start..end).unwrap_or_default(),
                    conns: &self.conns,
                    files: &self.files,
                    version: self.version,
                });
            }
            start = end;
            if let Some(AfterEvent::ShowEndAfter(conn)) = queued.then {
                self.version += 1;
                apply_end(&mut self.conns, &mut self.ends, conn);
            }
            if let Some(AfterEvent::Service(conn, name, added)) = queued.then {
                self.version += 1;
                set_service(&mut self.conns, conn, name, added);
                if let Some(conn) = self.conns.get(conn as usize) {
                    self.changed_services.push((conn.uid, name, added));
                }
            }
        }
        self.delivered += self.queue.len() as u64;
        self.queue.clear();
        self.bytes.clear();
        for state in &mut self.conns {
            recycle(&mut self.spare, state);
        }
        if self.conns.len() > MAX_SEARCHED {
            self.conn_index.clear();
        }
        self.conns.clear();
        self.files.clear();
        self.file_index.clear();
        self.awaits_end = false;
        self.ends.clear();
    }
}

/// Keeps the vectors of a state for reuse.
fn recycle(spare: &mut Vec<(Vec<u8>, Vec<&'static str>)>, state: &mut ConnState) {
    if spare.len() < MAX_SPARE {
        let mut history = std::mem::take(&mut state.history);
        let mut services = std::mem::take(&mut state.services);
        history.clear();
        services.clear();
        spare.push((history, services));
    }
}

/// Sets a connection to its state at the end of the packet, with its current services.
fn apply_end(conns: &mut [ConnState], ends: &mut Vec<(u32, ConnState)>, conn: u32) {
    let found = ends.iter().position(|(index, _)| *index == conn);
    if let Some((_, end)) = found.map(|at| ends.swap_remove(at))
        && let Some(shown) = conns.get_mut(conn as usize)
    {
        let services = std::mem::take(&mut shown.services);
        *shown = ConnState { services, ..end };
    }
}

fn set_service(conns: &mut [ConnState], conn: u32, name: &'static str, added: bool) {
    let Some(conn) = conns.get_mut(conn as usize) else { return };
    conn.services.retain(|s| *s != name);
    if added {
        conn.services.push(name);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("waiting", &self.queue.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macros declare public items")]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use gannet_base::Addr;
    use gannet_base::ConnId;
    use gannet_base::Interval;
    use gannet_base::Proto;
    use gannet_base::UidSource;

    use super::*;
    use crate::TableOf;
    use crate::write_json;

    crate::record! {
        /// A record.
        pub struct Pair<'a> = "Test::Pair" {
            /// A name.
            name: &'a [u8] = "name",
            /// A number.
            number: Option<u64> = "number",
        }
    }

    crate::events! {
        63;

        /// One event.
        pub struct One<'a> = "one" {
            /// The connection.
            c: Connection = "c",
            /// A text.
            text: &'a [u8] = "text",
            /// Pairs.
            pairs: Vec<Pair<'a>> = "pairs",
        }

        /// Another event.
        pub struct Two = "two" {
            /// Numbers by number.
            table: TableOf<u64, bool> = "table",
        }
    }

    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Listener for Lines {
        fn event(&mut self, event: &Raised<'_>) {
            let mut line = Vec::new();
            write_json(&mut line, event);
            self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
        }
    }

    /// Records its calls; wants each packet from a time on.
    struct FromTime(Arc<Mutex<Vec<String>>>, Time);

    impl Listener for FromTime {
        fn event(&mut self, event: &Raised<'_>) {
            self.0.lock().unwrap().push(event.decl.name.to_owned());
        }

        fn packet(&mut self, time: Time, packet: u64) {
            self.0.lock().unwrap().push(format!("{packet} at {}", time.as_nanos()));
        }

        fn packets_from(&self) -> Time {
            self.1
        }

        fn drained(&mut self) {
            self.0.lock().unwrap().push("drained".to_owned());
        }
    }

    #[test]
    fn a_listener_is_notified_of_packets_from_its_time_on_and_before_events() {
        let received = Arc::new(Mutex::new(Vec::new()));
        let until = Time::from_nanos(50);
        let mut events = Events::new(
            Interest::of(EVENTS.iter().copied(), |_| true),
            Box::new(FromTime(Arc::clone(&received), until)),
        );
        let mut received_at = |number: u64, nanos, raises: bool| {
            events.set_time(Time::from_nanos(nanos), number);
            if raises {
                events.raise(&Two { table: TableOf(vec![]) });
            }
            events.drain();
            std::mem::take(&mut *received.lock().unwrap())
        };
        assert_eq!(received_at(1, 10, false), ["1 at 10"]);
        assert!(received_at(2, 30, false).is_empty());
        assert!(received_at(3, 20, false).is_empty());
        // The time is the latest so far, though the packet has an earlier one.
        assert_eq!(received_at(4, 25, true), ["4 at 30", "two", "drained"]);
        assert!(received_at(5, 49, false).is_empty());
        assert_eq!(received_at(6, 50, false), ["6 at 50"]);
        assert!(received_at(7, 40, false).is_empty());
        assert_eq!(received_at(8, 60, true), ["8 at 60", "two", "drained"]);
    }

    fn state(size: u64) -> ConnState {
        let mut ends: [crate::EndpointState; 2] = Default::default();
        ends[0].size = size;
        ConnState {
            uid: UidSource::new(1).connection(1, 0),
            id: ConnId {
                orig_h: Addr::v4([10, 0, 0, 1]),
                orig_p: 1024,
                resp_h: Addr::v4([10, 0, 0, 2]),
                resp_p: 80,
            },
            proto: Proto::Tcp,
            ip_proto: 6,
            start: Time::from_secs(1),
            duration: Interval::ZERO,
            history: b"S".to_vec(),
            services: vec!["HTTP"],
            ends,
            vlan: None,
            inner_vlan: None,
            tunnels: Vec::new(),
        }
    }

    #[test]
    fn events_have_the_last_state_of_connections_and_services_by_event() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        assert!(events.wants::<One<'_>>() && events.wants::<Two>());
        events.set_time(Time::from_secs(2), 1);
        let c = events.connection(state(1));
        let pairs = vec![Pair { name: b"x", number: None }, Pair { name: b"y", number: Some(2) }];
        events.raise(&One { c, text: b"a\"b", pairs });
        events.then_service(c, "HTTP", true);
        let c = events.connection(state(5));
        events.raise(&One { c, text: b"", pairs: Vec::new() });
        events.raise(&Two { table: TableOf(vec![(1, true)]) });
        events.drain();
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[0].starts_with(
                r#"{"ts":2.000000,"event":"one","args":{"c":{"id":{"orig_h":"10.0.0.1""#
            )
        );
        assert!(lines[0].contains(r#""size":5"#) && lines[0].contains(r#""service":[]"#));
        assert!(
            lines[0].ends_with(r#""text":"a\"b","pairs":[{"name":"x"},{"name":"y","number":2}]}}"#),
            "{}",
            lines[0]
        );
        assert!(lines[1].contains(r#""service":["HTTP"]"#));
        assert_eq!(lines[2], r#"{"ts":2.000000,"event":"two","args":{"table":{"1":true}}}"#);
        assert_eq!(
            One::DECL.to_string(),
            "one(c: connection, text: string, pairs: vector of Test::Pair)"
        );
    }

    /// Also beyond the number of connections that are searched linearly, and again in the next packet.
    #[test]
    fn each_connection_of_a_packet_is_found_again() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        for (packet, count) in [(1, 1), (2, 8), (3, 9), (4, 10), (5, 1_000), (6, 3), (7, 9)] {
            let uid = |number| UidSource::new(1).connection(packet, number);
            let of = |number, size| ConnState { uid: uid(number), ..state(u64::from(size)) };
            for number in 0..count {
                assert_eq!(events.known_connection(uid(number)), None);
                events.connection(of(number, 1));
                // An update of this connection and of the first one.
                for number in [number, 0] {
                    let c = events.connection(of(number, 2 + number));
                    assert_eq!(c.0, number);
                }
            }
            for number in 0..count {
                let c = events.known_connection(uid(number)).unwrap();
                events.raise(&One { c, text: b"", pairs: Vec::new() });
            }
            events.drain();
            let lines = std::mem::take(&mut *lines.lock().unwrap());
            assert_eq!(lines.len(), count as usize);
            for (line, size) in lines.iter().zip(2..) {
                assert!(line.contains(&format!(r#""size":{size},"#)), "{line}");
            }
        }
    }

    #[test]
    fn events_of_handlers_have_the_state_at_the_end_of_the_packet() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        let c = events.connection(state(1));
        for shows_end in [false, true, false] {
            events.raise(&One { c, text: b"", pairs: Vec::new() });
            if shows_end {
                events.show_end(c);
            }
        }
        assert!(events.awaits_end());
        events.set_end(ConnState { services: Vec::new(), ..state(5) });
        events.drain();
        assert!(!events.awaits_end());
        let shows = |size: &str, line: &String| {
            line.contains(&format!(r#""size":{size}"#)) && line.contains(r#""service":["HTTP"]"#)
        };
        let lines = lines.lock().unwrap();
        assert!(shows("1", &lines[0]) && shows("5", &lines[1]) && shows("5", &lines[2]));
    }

    #[test]
    fn events_after_a_lookup_have_the_state_at_the_end_of_the_packet() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        let c = events.connection(state(1));
        for _ in 0..2 {
            events.raise(&One { c, text: b"", pairs: Vec::new() });
            events.show_end_after(c);
        }
        assert!(events.awaits_end());
        events.set_end(state(5));
        events.drain();
        let lines = lines.lock().unwrap();
        assert!(lines[0].contains(r#""size":1"#) && lines[1].contains(r#""size":5"#));
    }

    #[test]
    fn events_that_are_raised_at_once_precede_queued_ones() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        let c = events.connection(state(1));
        events.raise(&One { c, text: b"x", pairs: Vec::new() });
        events.raise_at_once(&Two { table: TableOf(vec![(1, true)]) });
        assert_eq!(lines.lock().unwrap().len(), 1);
        events.drain();
        let lines = lines.lock().unwrap();
        assert!(lines[0].contains(r#""event":"two","args":{"table":{"1":true}}"#), "{}", lines[0]);
        assert!(lines[1].contains(r#""text":"x""#), "{}", lines[1]);
    }

    #[test]
    fn the_queue_is_limited_and_nothing_is_lost() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |d| d.name == "two");
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        assert!(!events.wants::<One<'_>>());
        for n in 0..100_000 {
            events.raise(&Two { table: TableOf(vec![(n, true)]) });
            assert!(events.queue.len() <= MAX_QUEUED);
        }
        events.drain();
        assert_eq!((lines.lock().unwrap().len(), events.delivered()), (100_000, 100_000));
    }
}
