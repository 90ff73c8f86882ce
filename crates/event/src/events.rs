//! The queue of one analysis: events of the current packet, and the connections and files they mention.

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
    /// Its declaration.
    const DECL: &'static Decl;
    /// Appends its arguments in order.
    fn pack(&self, to: &mut Packer<'_>);
}

/// The thread in which a listener receives events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadAffinity {
    /// In the thread of the analysis, which is one: the listener may ask something of the analysis at any time.
    #[default]
    Analysis,
    /// Behind an analysis of several threads, in the thread that feeds it with packets. What the listener asks for
    /// before the first packet is carried out; later it asks for nothing, except that the analysis stops.
    Caller,
    /// The same in any thread.
    Anywhere,
}

/// Receives events in the order in which they were raised.
pub trait Listener: Send {
    /// The thread in which it receives them.
    fn affinity(&self) -> ThreadAffinity {
        ThreadAffinity::Analysis
    }

    /// Whether [`packet`](Self::packet) is called, for packets without events as well. Without it, the analysis is faster.
    fn wants_packets(&self) -> bool {
        true
    }

    /// One event.
    fn event(&mut self, event: &Raised<'_>);

    /// A packet begins: network time, and the packet's number. See [`wants_packets`](Self::wants_packets).
    fn packet(&mut self, time: Time, packet: u64) {
        let _ = (time, packet);
    }

    /// The network time from which [`packet`](Self::packet) is called for each packet. For a packet before that time it is
    /// called only before the first event, with the time of the latest packet so far. Called after `packet` and
    /// [`drained`](Self::drained). By default, `packet` is called for each packet.
    fn packets_from(&self) -> Time {
        Time::MIN
    }

    /// All events that waited were delivered, as at the end of a packet that raised any.
    fn drained(&mut self) {}

    /// A question that the analysis asks before it goes on: whether to do what the event says. Asked ahead of the
    /// events that wait.
    fn decide(&mut self, question: &Raised<'_>) -> bool {
        let _ = question;
        false
    }

    /// Moves what it asks of the analysis to `to`. Called after [`packet`](Self::packet) and
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
    /// Its declaration.
    pub decl: &'static Decl,
    args: &'a [u8],
    conns: &'a [ConnState],
    files: &'a [FileState],
    version: u64,
}

impl<'a> Raised<'a> {
    /// Its arguments, in the order of its declaration.
    pub fn args(&self) -> Args<'a> {
        Reader::new(self.args)
    }

    /// The same as packed bytes.
    pub fn packed(&self) -> &'a [u8] {
        self.args
    }

    /// The connection that an argument is.
    pub fn connection(&self, index: usize) -> Option<&'a ConnState> {
        self.conns.get(index)
    }

    /// A number that changes whenever [connections](Self::connection) may be others, or show something else: events of the
    /// same number show the same of each.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The file that an argument is.
    pub fn file(&self, index: usize) -> Option<&'a FileState> {
        self.files.get(index)
    }
}

/// An event that waits.
struct Queued {
    decl: &'static Decl,
    /// End of its arguments; they begin at the end of the previous event's.
    end: u32,
    then: Option<AfterEvent>,
}

/// What the handling of an event does to a connection.
#[derive(Clone, Copy)]
enum AfterEvent {
    /// A protocol is one of its services afterwards, or is removed from them.
    Service(u32, &'static str, bool),
    /// This event and later ones show it as it is at the end of the packet.
    AsAtEnd(u32),
    /// Only later events show it so.
    AtEndBehind(u32),
}

/// Events of the current packet that wait for its end.
#[derive(Default)]
pub struct Events {
    interest: Interest,
    listener: Option<Box<dyn Listener>>,
    /// Whether it is notified of packets.
    wants_packets: bool,
    /// The network time from which it is notified of each packet.
    packets_from: Time,
    /// The latest time of a packet of which it was not notified; none if it was notified of the current one.
    passed: Option<Time>,
    queue: Vec<Queued>,
    /// Packed arguments.
    bytes: Vec<u8>,
    conns: Vec<ConnState>,
    /// Histories and services of connections that were shown: empty, with room for others.
    spare: Vec<(Vec<u8>, Vec<&'static str>)>,
    conn_index: UidMap<u32>,
    files: Vec<FileState>,
    file_index: UidMap<u32>,
    now: Time,
    packet: u64,
    transport: TransportState,
    /// Services of connections that events of the current packet changed, and that were delivered: connections
    /// themselves learn of these when the packet is done.
    changed: Vec<(Uid, &'static str, bool)>,
    /// Whether an event waits that shows its connection as it is at the end of the packet.
    awaits_end: bool,
    /// Connections of such events at the end of the packet.
    ends: Vec<(u32, ConnState)>,
    /// Events that a listener received.
    delivered: u64,
    /// Changes whenever the connections that events show change.
    version: u64,
    /// What the listener asks for, in order.
    commands: Vec<Command>,
    /// Whether events were delivered whose handlers did not run.
    is_handed_over: bool,
    /// Tunnels around connections that have some.
    tunnels: UidMap<Vec<TunnelState>>,
    /// The event that marks where handlers run, if it has a listener: it has no arguments.
    mark: Option<&'static Decl>,
    /// The last number that an analyzer got.
    last_number: u64,
    /// Records all calls, in a shard of an analysis.
    recorder: Option<Box<Recorder>>,
    /// Repeats what shards recorded.
    pub(crate) player: Player,
}

/// Most spare vectors of each kind.
const SPARE: usize = 64;

/// Events that may wait: at more, as at the end of a packet at which many timers are due, they are
/// delivered before the next timer.
const WAITING: usize = 16_384;

impl Events {
    /// Events of `interest` go to `listener`.
    pub fn new(interest: Interest, listener: Box<dyn Listener>) -> Self {
        let wants_packets = listener.wants_packets();
        let packets_from = Time::MIN;
        Self { interest, listener: Some(listener), wants_packets, packets_from, ..Self::default() }
    }

    /// Events of `interest` are recorded, for the queue of the listener to [repeat](Self::replay), and the beginnings of
    /// packets if it wants these.
    pub fn recording(interest: Interest, wants_packets: bool) -> Self {
        // Each call to deliver is one to record.
        let recorder = Some(Box::new(Recorder::new(wants_packets)));
        Self { interest, recorder, is_handed_over: true, ..Self::default() }
    }

    /// Whether events are recorded.
    pub fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// Bytes of the events recorded, about.
    pub fn recorded(&self) -> usize {
        self.recorder.as_ref().map_or(0, |recorder| recorder.bytes())
    }

    /// The events recorded so far, if there are any.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.recorder.as_mut()?.take()
    }

    /// Sets the key and the time of events to come, where they are recorded.
    #[inline]
    pub(crate) fn set_key(&mut self, key: Key, time: Time) {
        if let Some(recorder) = &mut self.recorder {
            recorder.set_key(key, time);
        }
    }

    /// A number greater than those of all events recorded so far. `None` where they are not recorded.
    pub(crate) fn ticket(&self) -> Option<u64> {
        self.recorder.as_ref().map(|recorder| recorder.ticket())
    }

    /// Whether no event was recorded since an item of another kind got its [ticket](crate::Sinks::ticket).
    pub fn is_none_since_ticket(&self) -> bool {
        self.recorder.as_ref().is_none_or(|recorder| recorder.is_interrupted())
    }

    /// Records that there is nothing at the current key but the key itself.
    pub fn record_nothing(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_run();
        }
    }

    /// Whether the beginning of each packet is recorded.
    pub fn records_packets(&self) -> bool {
        self.recorder.as_ref().is_some_and(|recorder| recorder.wants_packets())
    }

    /// A connection takes the current packet, which another shard began with.
    pub fn record_taken(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.taken();
        }
    }

    /// Numbers for this many analyzers in a row: returns the first.
    pub fn number_analyzers(&mut self, count: u64) -> u64 {
        if let Some(recorder) = &mut self.recorder {
            return recorder.number_analyzers(count);
        }
        let first = self.last_number + 1;
        self.last_number += count;
        first
    }

    /// Numbers go to analyzers that have no events.
    pub fn skip_numbers(&mut self, count: u64) {
        let first = self.number_analyzers(count);
        self.forget_numbers(first);
    }

    /// No event to come names this analyzer, if it was not numbered together with those before it.
    pub fn forget_number(&mut self, number: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.forget_number(number);
        }
    }

    /// No event to come names analyzers that were numbered together with this one.
    pub fn forget_numbers(&mut self, number: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.forget_numbers(number);
        }
    }

    /// An event without arguments that marks each point at which Zeek runs handlers, if it has a listener.
    pub fn set_mark(&mut self, decl: &'static Decl) {
        self.mark = Some(decl).filter(|decl| decl.params.is_empty() && self.interest.has(decl.id));
    }

    /// Zeek runs the handlers of the events that wait here.
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

    /// An event has a listener from now on.
    pub fn want<E: Event>(&mut self) {
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
        self.changed.clear();
        (self.now, self.packet) = (now, packet);
        if let Some(recorder) = &mut self.recorder {
            self.awaits_end = false;
            recorder.set_time(now, packet);
        }
        // Others ask for nothing between their events.
        if !self.wants_packets {
            return;
        }
        if now < self.packets_from {
            self.passed = self.passed.max(Some(now));
        } else {
            let latest = self.passed.take().map_or(now, |passed| passed.max(now));
            self.begin_packet(latest);
            let next = self.listener.as_ref().map(|listener| listener.packets_from());
            self.packets_from = next.unwrap_or(Time::MAX);
        }
    }

    /// Notifies the listener of the current packet if it was not: an event follows, after which
    /// [`packets_from`](Listener::packets_from) is called.
    #[inline]
    fn begin_passed(&mut self) {
        if let Some(latest) = self.passed.take() {
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

    /// Whether the listener asked for something.
    #[inline]
    pub fn has_commands(&self) -> bool {
        !self.commands.is_empty()
    }

    /// What the listener asked for and was not taken yet.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Takes what the listener asked for.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Takes those of its requests that `which` holds for.
    pub fn take_commands_if(&mut self, which: impl Fn(&Command) -> bool) -> Vec<Command> {
        let (taken, left) = std::mem::take(&mut self.commands).into_iter().partition(which);
        self.commands = left;
        taken
    }

    /// Asks the listener what it wants before the first packet.
    pub fn ask(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.commands(&mut self.commands);
        }
    }

    /// The listener asks for this before the first packet.
    pub fn ask_for(&mut self, commands: &[Command]) {
        self.commands.extend_from_slice(commands);
    }

    /// The transport state of the current connection's sides.
    #[inline]
    pub fn set_transport(&mut self, transport: TransportState) {
        self.transport = transport;
    }

    /// The same, for building a [`ConnState`].
    pub fn transport(&self) -> TransportState {
        self.transport
    }

    /// Raises an event that was asked [about](Self::wants).
    pub fn raise<E: Event>(&mut self, event: &E) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.raise(event, false);
        }
        self.make_room();
        event.pack(&mut Packer::new(&mut self.bytes));
        self.queue.push(Queued { decl: E::DECL, end: self.bytes.len() as u32, then: None });
    }

    /// The same for a packet that no connection takes, which other shards know.
    pub fn raise_unless_taken<E: Event>(&mut self, event: &E) {
        match &mut self.recorder {
            Some(recorder) => recorder.raise(event, true),
            None => self.raise(event),
        }
    }

    /// Delivers an event ahead of those that wait: one that mentions no connection and no file. Handlers run later, with those of the
    /// events of the packet.
    pub fn raise_at_once<E: Event>(&mut self, event: &E) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.raise_at_once(event);
        }
        let start = self.bytes.len();
        event.pack(&mut Packer::new(&mut self.bytes));
        self.deliver_at_once(E::DECL, start);
    }

    /// The same with the arguments that are packed from `start` on, behind those of the events that wait.
    fn deliver_at_once(&mut self, decl: &'static Decl, start: usize) {
        self.begin_passed();
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
        self.is_handed_over = true;
    }

    /// The same with packed arguments.
    pub(crate) fn raise_packed_at_once(&mut self, decl: &'static Decl, args: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(args);
        self.deliver_at_once(decl, start);
    }

    /// Raises an event whose arguments are packed.
    pub(crate) fn raise_packed(&mut self, decl: &'static Decl, args: &[u8]) {
        self.make_room();
        self.bytes.extend_from_slice(args);
        self.queue.push(Queued { decl, end: self.bytes.len() as u32, then: None });
    }

    /// Delivers the events that wait if they are many and the next one mentions none of their connections and files.
    fn make_room(&mut self) {
        if self.queue.len() >= WAITING && self.conns.is_empty() && self.files.is_empty() {
            self.drain();
        }
    }

    /// Delivers the events that wait if they are many: between two timers, or two connections that are closed.
    pub fn relieve(&mut self) {
        if self.queue.len() >= WAITING {
            self.drain();
        }
    }

    /// Asks the listener at once whether to do what an event says; no if it has no answer. The event itself is not
    /// delivered.
    #[cold]
    pub fn decide<E: Event>(&mut self, question: &E) -> bool {
        self.begin_passed();
        let start = self.bytes.len();
        question.pack(&mut Packer::new(&mut self.bytes));
        let mut answer = false;
        self.version += 1;
        // An answer may have effects that are due with the next packet.
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

    /// When the event raised last is handled, a protocol becomes one of a connection's services, or is
    /// removed from them: until then its events do not show the change.
    pub fn then_service(&mut self, conn: Connection, name: &'static str, added: bool) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.service(conn, name, added);
        }
        if let Some(last) = self.queue.last_mut() {
            last.then = Some(AfterEvent::Service(conn.0, name, added));
        }
    }

    /// The event raised last comes from a handler, which runs when the packet is done: this event and later ones
    /// show the connection as it is then.
    pub fn as_at_end(&mut self, conn: Connection) {
        if let Some(last) = self.queue.last_mut() {
            last.then = Some(AfterEvent::AsAtEnd(conn.0));
            self.awaits_end = true;
        }
    }

    /// A handler of the event raised last looks up a connection: events behind it show that as it is when the packet
    /// is done.
    pub fn at_end_behind(&mut self, conn: Connection) {
        if let Some(last) = self.queue.last_mut()
            && last.then.is_none()
        {
            last.then = Some(AfterEvent::AtEndBehind(conn.0));
            self.awaits_end = true;
        }
    }

    /// An event to come may be [`as_at_end`](Self::as_at_end): a shard records how its connection is then.
    pub fn record_end(&mut self) {
        self.awaits_end |= self.recorder.is_some();
    }

    /// Whether an event waits that shows its connection as it is at the end of the packet.
    #[inline]
    pub fn awaits_end(&self) -> bool {
        self.awaits_end
    }

    /// A connection as it is at the end of the packet.
    #[cold]
    pub fn set_end(&mut self, state: ConnState) {
        let state = self.completed(state);
        if let Some(recorder) = &mut self.recorder {
            recorder.end(state);
        } else if let Some(index) = self.conn_index.get(&state.uid).copied() {
            // A frame may have several packets of it.
            self.ends.retain(|(known, _)| *known != index);
            self.ends.push((index, state));
        }
    }

    /// A connection as an event mentions it. Queued events show it like this as well.
    pub fn connection(&mut self, state: ConnState) -> Connection {
        self.mention(state, false)
    }

    /// A connection as events of the queue show it already, or, where none does, as it is now.
    pub fn connection_unless_known(&mut self, state: ConnState) -> Connection {
        match self.known_connection(state.uid) {
            Some(known) => known,
            None => self.mention(state, true),
        }
    }

    fn mention(&mut self, state: ConnState, unless_known: bool) -> Connection {
        let state = self.completed(state);
        if let Some(recorder) = &mut self.recorder {
            return recorder.connection(state, unless_known);
        }
        let next = self.conns.len() as u32;
        let index = *self.conn_index.entry(state.uid).or_insert(next);
        match self.conns.get_mut(index as usize) {
            Some(known) => {
                let old = std::mem::replace(known, state);
                keep(&mut self.spare, old);
            }
            None => self.conns.push(state),
        }
        Connection(index)
    }

    /// An empty history and no services, in vectors that may have room.
    pub fn spare(&mut self) -> (Vec<u8>, Vec<&'static str>) {
        self.spare.pop().unwrap_or_default()
    }

    /// A connection with the services and tunnels that events of the packet gave it.
    fn completed(&self, mut state: ConnState) -> ConnState {
        for (_, name, added) in self.changed.iter().filter(|(uid, ..)| *uid == state.uid) {
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

    /// The tunnels around a connection from now on, outermost first; none forgets it.
    pub fn set_tunnels(&mut self, uid: Uid, tunnels: Vec<TunnelState>) {
        if tunnels.is_empty() {
            self.tunnels.remove(&uid);
        } else {
            self.tunnels.insert(uid, tunnels);
        }
    }

    /// A connection that an event of the queue mentions already, as it was then.
    pub fn known_connection(&self, uid: Uid) -> Option<Connection> {
        self.conn_index.get(&uid).copied().map(Connection)
    }

    /// A file as an event mentions it. Queued events show it like this as well.
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

    /// Delivers the events that wait.
    #[inline]
    pub fn drain(&mut self) {
        if !self.queue.is_empty() || self.is_handed_over {
            self.deliver();
        }
    }

    /// Number of events that a listener received.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Delivers the events that wait without [`drained`](Listener::drained): handlers run later, with those of events
    /// to come. The listener's requests are taken at once.
    #[cold]
    pub fn deliver_early(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            return recorder.deliver_early();
        }
        self.hand_over();
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
        self.hand_over();
        self.is_handed_over = false;
        if let Some(listener) = &mut self.listener {
            listener.drained();
            listener.commands(&mut self.commands);
            self.packets_from = listener.packets_from();
        }
    }

    fn hand_over(&mut self) {
        self.begin_passed();
        self.is_handed_over = true;
        if self.queue.is_empty() && self.conns.is_empty() && self.files.is_empty() {
            self.awaits_end = false;
            self.ends.clear();
            return;
        }
        // Services change when the event that changes them is handled: changes of queued events are
        // undone first.
        for queued in self.queue.iter().rev() {
            let Some(AfterEvent::Service(conn, name, added)) = queued.then else { continue };
            change(&mut self.conns, conn, name, !added);
        }
        let mut start = 0;
        self.version += 1;
        for queued in &self.queue {
            let end = queued.end as usize;
            if let Some(AfterEvent::AsAtEnd(conn)) = queued.then {
                self.version += 1;
                show_end(&mut self.conns, &mut self.ends, conn);
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
            if let Some(AfterEvent::AtEndBehind(conn)) = queued.then {
                self.version += 1;
                show_end(&mut self.conns, &mut self.ends, conn);
            }
            if let Some(AfterEvent::Service(conn, name, added)) = queued.then {
                self.version += 1;
                change(&mut self.conns, conn, name, added);
                if let Some(conn) = self.conns.get(conn as usize) {
                    self.changed.push((conn.uid, name, added));
                }
            }
        }
        self.delivered += self.queue.len() as u64;
        self.queue.clear();
        self.bytes.clear();
        for state in self.conns.drain(..) {
            keep(&mut self.spare, state);
        }
        self.conn_index.clear();
        self.files.clear();
        self.file_index.clear();
        self.awaits_end = false;
        self.ends.clear();
    }
}

/// Keeps the vectors of a connection for others.
fn keep(spare: &mut Vec<(Vec<u8>, Vec<&'static str>)>, state: ConnState) {
    let ConnState { mut history, mut services, .. } = state;
    if spare.len() < SPARE {
        history.clear();
        services.clear();
        spare.push((history, services));
    }
}

/// A connection is shown as it is at the end of the packet, with the services that handlers gave it so far.
fn show_end(conns: &mut [ConnState], ends: &mut Vec<(u32, ConnState)>, conn: u32) {
    let found = ends.iter().position(|(index, _)| *index == conn);
    if let Some((_, end)) = found.map(|at| ends.swap_remove(at))
        && let Some(shown) = conns.get_mut(conn as usize)
    {
        let services = std::mem::take(&mut shown.services);
        *shown = ConnState { services, ..end };
    }
}

fn change(conns: &mut [ConnState], conn: u32, name: &'static str, added: bool) {
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

    /// Notes what it is notified of: of each packet from a time on.
    struct Late(Arc<Mutex<Vec<String>>>, Time);

    impl Listener for Late {
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
        let heard = Arc::new(Mutex::new(Vec::new()));
        let until = Time::from_nanos(50);
        let mut events = Events::new(
            Interest::of(EVENTS.iter().copied(), |_| true),
            Box::new(Late(Arc::clone(&heard), until)),
        );
        let mut heard_at = |number: u64, nanos, raises: bool| {
            events.set_time(Time::from_nanos(nanos), number);
            if raises {
                events.raise(&Two { table: TableOf(vec![]) });
            }
            events.drain();
            std::mem::take(&mut *heard.lock().unwrap())
        };
        assert_eq!(heard_at(1, 10, false), ["1 at 10"]);
        assert!(heard_at(2, 30, false).is_empty());
        assert!(heard_at(3, 20, false).is_empty());
        // The latest time so far, though the packet is of an earlier one.
        assert_eq!(heard_at(4, 25, true), ["4 at 30", "two", "drained"]);
        assert!(heard_at(5, 49, false).is_empty());
        assert_eq!(heard_at(6, 50, false), ["6 at 50"]);
        assert!(heard_at(7, 40, false).is_empty());
        assert_eq!(heard_at(8, 60, true), ["8 at 60", "two", "drained"]);
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
    fn handlers_see_connections_as_last_mentioned_and_services_as_handled() {
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

    #[test]
    fn events_of_handlers_show_the_end_of_the_packet() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        let c = events.connection(state(1));
        for is_of_handler in [false, true, false] {
            events.raise(&One { c, text: b"", pairs: Vec::new() });
            if is_of_handler {
                events.as_at_end(c);
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
    fn events_behind_a_handler_that_looks_up_a_connection_show_the_end_of_the_packet() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        let c = events.connection(state(1));
        for _ in 0..2 {
            events.raise(&One { c, text: b"", pairs: Vec::new() });
            events.at_end_behind(c);
        }
        assert!(events.awaits_end());
        events.set_end(state(5));
        events.drain();
        let lines = lines.lock().unwrap();
        assert!(lines[0].contains(r#""size":1"#) && lines[1].contains(r#""size":5"#));
    }

    #[test]
    fn events_that_are_raised_at_once_come_before_those_that_wait() {
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
    fn nothing_waits_beyond_the_limit_and_nothing_is_lost() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let interest = Interest::of(EVENTS.iter().copied(), |d| d.name == "two");
        let mut events = Events::new(interest, Box::new(Lines(lines.clone())));
        assert!(!events.wants::<One<'_>>());
        for n in 0..100_000 {
            events.raise(&Two { table: TableOf(vec![(n, true)]) });
            assert!(events.queue.len() <= WAITING);
        }
        events.drain();
        assert_eq!((lines.lock().unwrap().len(), events.delivered()), (100_000, 100_000));
    }
}
