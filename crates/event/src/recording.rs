//! Recordings of the events of a shard. The merge replays the events of all shards in the order in which a single shard
//! would have raised them.
//!
//! A shard records the calls of its [`Events`], each with the current [`Key`] of its rows. Consecutive calls with the
//! same key are a *run*. [`Events::replay`] repeats the calls of a run on the queue of the listener, so that
//! connections, services and the points at which handlers run are the same as with one thread. In the packed arguments
//! of a recording, indices of connections and files and numbers of analyzers are local to it; they are translated on
//! replay.

use std::cell::Cell;
use std::collections::HashMap;

use gannet_base::Time;
use gannet_log::Key;

use crate::Event;
use crate::Events;
use crate::decl::Decl;
use crate::pack::Connection;
use crate::pack::FileRef;
use crate::pack::Handle;
use crate::pack::HandleKind;
use crate::pack::Packer;
use crate::state::ConnState;
use crate::state::FileState;

/// Recorded events, in order.
#[derive(Debug, Default)]
pub struct Recording {
    runs: Vec<Run>,
    calls: Vec<Call>,
    /// Packed arguments.
    bytes: Vec<u8>,
    handles: Vec<Handle>,
    conns: Vec<Option<ConnState>>,
    files: Vec<Option<FileState>>,
    /// States of connections at the ends of packets.
    ends: Vec<Option<ConnState>>,
    replayed: Progress,
}

/// Progress of a replay, and the indices of its connections and files in the queue of the listener.
#[derive(Debug, Default)]
struct Progress {
    runs: usize,
    bytes: usize,
    handles: usize,
    conns: Vec<Connection>,
    files: Vec<FileRef>,
    ends: usize,
}

/// Consecutive calls with the same key.
#[derive(Clone, Copy, Debug)]
struct Run {
    key: Key,
    /// Order among runs and other items with the same key.
    ticket: u64,
    time: Time,
    /// Index of the first call.
    first: u32,
}

/// A call of [`Events`].
#[derive(Clone, Copy, Debug)]
enum Call {
    /// See [`Events::connection`] and [`Events::connection_unless_known`].
    Connection {
        unless_known: bool,
    },
    /// See [`Events::file`].
    File,
    /// An event is raised. `end` and `handles` are the ends of its arguments and handles.
    Raise {
        decl: &'static Decl,
        end: u32,
        handles: u32,
        unless_taken: bool,
    },
    /// See [`Events::raise_at_once`]. `end` is the end of the arguments.
    RaiseAtOnce {
        decl: &'static Decl,
        end: u32,
    },
    /// See [`Events::then_service`].
    Service {
        conn: u32,
        name: &'static str,
        added: bool,
    },
    /// See [`Events::set_end`].
    End,
    Drain,
    DeliverEarly,
    /// Numbers are allocated to analyzers; `first` is the shard's local number of the first one.
    Numbers {
        first: u64,
        count: u64,
    },
    /// See [`Events::forget_numbers`].
    Forget {
        first: u64,
    },
    /// See [`Events::record_taken`].
    Taken,
}

/// Low bits of a shard's local analyzer number: the offset in a block of numbers that were allocated together.
const OFFSET_BITS: u32 = 16;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// Estimated heap memory of the state of a connection or file (history and services), in bytes.
const STATE_HEAP: usize = 64;

impl Recording {
    /// Approximate memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
            + size_of_val(&self.runs[..])
            + size_of_val(&self.calls[..])
            + size_of_val(&self.handles[..])
            + (self.conns.len() + self.ends.len()) * (size_of::<ConnState>() + STATE_HEAP)
            + self.files.len() * (size_of::<FileState>() + STATE_HEAP)
    }

    /// Index, key and ticket of each run that was not replayed.
    pub fn runs(&self) -> impl Iterator<Item = (usize, Key, u64)> {
        let runs = self.runs.iter().enumerate().skip(self.replayed.runs);
        runs.map(|(index, run)| (index, run.key, run.ticket))
    }

    /// Whether all runs were replayed.
    pub fn is_over(&self) -> bool {
        self.replayed.runs >= self.runs.len()
    }
}

/// Records the calls of the [`Events`] of a shard.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    recording: Recording,
    key: Key,
    time: Time,
    tickets: Cell<u64>,
    /// Whether the next call begins a run, because another item with the same key precedes it.
    interrupted: Cell<bool>,
    /// Number of allocated blocks of analyzer numbers.
    blocks: u64,
    wants_packets: bool,
}

impl Recorder {
    pub(crate) fn new(wants_packets: bool) -> Self {
        Self { wants_packets, ..Self::default() }
    }

    pub(crate) fn wants_packets(&self) -> bool {
        self.wants_packets
    }

    pub(crate) fn set_key(&mut self, key: Key, time: Time) {
        (self.key, self.time) = (key, time);
    }

    /// Begins a packet. If the listener wants packets, an empty run records that.
    pub(crate) fn set_time(&mut self, time: Time, packet: u64) {
        self.time = time;
        if self.wants_packets {
            self.key = Key { packet, ..Key::EARLIEST };
            self.begin_run();
        }
    }

    fn next_ticket(&self) -> u64 {
        let ticket = self.tickets.get() + 1;
        self.tickets.set(ticket);
        ticket
    }

    /// Returns a ticket for an item that is not an event.
    pub(crate) fn ticket(&self) -> u64 {
        self.interrupted.set(true);
        self.next_ticket()
    }

    /// Whether no event was recorded since the last [ticket](Self::ticket).
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.get()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.recording.bytes()
    }

    pub(crate) fn take(&mut self) -> Option<Recording> {
        let is_empty = self.recording.runs.is_empty();
        (!is_empty).then(|| std::mem::take(&mut self.recording))
    }

    /// Begins an empty run.
    pub(crate) fn begin_run(&mut self) {
        let (key, time) = (self.key, self.time);
        let first = self.recording.calls.len() as u32;
        let ticket = self.next_ticket();
        self.recording.runs.push(Run { key, ticket, time, first });
        self.interrupted.set(false);
    }

    fn call(&mut self, call: Call) {
        // A timer may be due earlier than one that fired before it in the same packet.
        if let Some(last) = self.recording.runs.last()
            && last.key.packet == self.key.packet
        {
            self.key = self.key.max(last.key);
        }
        let is_same = |run: &Run| run.key == self.key;
        if self.interrupted.get() || !self.recording.runs.last().is_some_and(is_same) {
            self.begin_run();
        }
        self.recording.calls.push(call);
    }

    pub(crate) fn connection(&mut self, state: ConnState, unless_known: bool) -> Connection {
        let all = &mut self.recording;
        let again = matches!(all.calls.last(), Some(Call::Connection { unless_known: false }))
            && all.runs.last().is_some_and(|run| run.key == self.key)
            && all.conns.last().is_some_and(|last| last.as_ref() == Some(&state));
        if !again {
            all.conns.push(Some(state));
            self.call(Call::Connection { unless_known });
        }
        Connection((self.recording.conns.len() as u32).saturating_sub(1))
    }

    pub(crate) fn file(&mut self, state: FileState) -> FileRef {
        self.recording.files.push(Some(state));
        self.call(Call::File);
        FileRef(self.recording.files.len() as u32 - 1)
    }

    pub(crate) fn raise<E: Event>(&mut self, event: &E, unless_taken: bool) {
        let Recording { bytes, handles, .. } = &mut self.recording;
        event.pack(&mut Packer::with_handles(bytes, handles));
        self.raised(E::DECL, unless_taken);
    }

    /// Records an event that mentions no connection and no file.
    pub(crate) fn raise_at_once<E: Event>(&mut self, event: &E) {
        event.pack(&mut Packer::new(&mut self.recording.bytes));
        let end = self.recording.bytes.len() as u32;
        self.call(Call::RaiseAtOnce { decl: E::DECL, end });
    }

    /// Records an event whose arguments are packed already.
    pub(crate) fn raised(&mut self, decl: &'static Decl, unless_taken: bool) {
        let (end, handles) = (self.recording.bytes.len(), self.recording.handles.len());
        let (end, handles) = (end as u32, handles as u32);
        self.call(Call::Raise { decl, end, handles, unless_taken });
    }

    pub(crate) fn service(&mut self, conn: Connection, name: &'static str, added: bool) {
        self.call(Call::Service { conn: conn.0, name, added });
    }

    pub(crate) fn end(&mut self, state: ConnState) {
        self.recording.ends.push(Some(state));
        self.call(Call::End);
    }

    pub(crate) fn drain(&mut self) {
        self.call(Call::Drain);
    }

    pub(crate) fn deliver_early(&mut self) {
        self.call(Call::DeliverEarly);
    }

    pub(crate) fn taken(&mut self) {
        self.call(Call::Taken);
    }

    pub(crate) fn number_analyzers(&mut self, count: u64) -> u64 {
        self.blocks += 1;
        let first = self.blocks << OFFSET_BITS;
        self.call(Call::Numbers { first, count });
        first
    }

    pub(crate) fn forget_number(&mut self, number: u64) {
        if number & OFFSET_MASK == 0 {
            self.forget_numbers(number);
        }
    }

    pub(crate) fn forget_numbers(&mut self, number: u64) {
        self.call(Call::Forget { first: number & !OFFSET_MASK });
    }
}

/// Keys from this packet number on belong to the end of input, which is not a packet.
const END_OF_INPUT: u64 = u64::MAX - 1;

/// State of the listener's queue while it replays the calls of several shards.
#[derive(Debug, Default)]
pub(crate) struct Player {
    /// The key of the last run.
    key: Key,
    /// For each shard, analyzer numbers by the shard's local numbers.
    numbers: Vec<HashMap<u64, u64>>,
    /// Whether a connection has taken the current packet.
    is_taken: bool,
}

impl Events {
    /// Begins a key; all calls before it are complete.
    pub fn begin_key(&mut self, key: Key, time: Time) {
        let before = std::mem::replace(&mut self.player.key, key);
        if before.packet != key.packet {
            self.drain();
            self.player.is_taken = false;
            if (1..END_OF_INPUT).contains(&key.packet) {
                self.set_time(time, key.packet);
            }
        } else if before != key && (before.due != Time::MAX || key.due != Time::MAX) {
            self.drain_if_full();
        }
    }

    /// Completes all calls with keys before `until`, or all calls if it is `None`.
    pub fn end_before(&mut self, until: Option<Key>) {
        if until.is_none_or(|until| until.packet > self.player.key.packet) {
            self.drain();
        }
    }

    /// Replays a run that a shard recorded. The runs of a recording must be replayed in order.
    pub fn replay(&mut self, shard: usize, from: &mut Recording, run: usize) {
        let Some(&Run { key, time, first, .. }) = from.runs.get(run) else { return };
        let end = from.runs.get(run + 1).map_or(from.calls.len(), |next| next.first as usize);
        from.replayed.runs = run + 1;
        self.begin_key(key, time);
        for at in first as usize..end {
            if let Some(call) = from.calls.get(at).copied() {
                self.replay_call(shard, from, call);
            }
        }
    }

    fn replay_call(&mut self, shard: usize, from: &mut Recording, call: Call) {
        match call {
            Call::Connection { unless_known } => {
                let next = from.conns.get_mut(from.replayed.conns.len());
                let Some(state) = next.and_then(Option::take) else { return };
                let index = match unless_known {
                    true => self.connection_unless_known(state),
                    false => self.connection(state),
                };
                from.replayed.conns.push(index);
            }
            Call::File => {
                let next = from.files.get_mut(from.replayed.files.len());
                let Some(state) = next.and_then(Option::take) else { return };
                from.replayed.files.push(self.file(state));
            }
            Call::Raise { decl, end, handles, unless_taken } => {
                self.resolve(shard, from, handles as usize);
                let start = std::mem::replace(&mut from.replayed.bytes, end as usize);
                let args = from.bytes.get(start..end as usize).unwrap_or_default();
                if !unless_taken || !self.player.is_taken {
                    self.raise_packed(decl, args);
                }
            }
            Call::RaiseAtOnce { decl, end } => {
                let start = std::mem::replace(&mut from.replayed.bytes, end as usize);
                let args = from.bytes.get(start..end as usize).unwrap_or_default();
                self.raise_packed_at_once(decl, args);
            }
            Call::Service { conn, name, added } => {
                if let Some(conn) = from.replayed.conns.get(conn as usize) {
                    self.then_service(*conn, name, added);
                }
            }
            Call::End => {
                let end = from.ends.get_mut(from.replayed.ends).and_then(Option::take);
                from.replayed.ends += 1;
                if let Some(end) = end {
                    self.set_end(end);
                }
            }
            Call::Drain => self.drain(),
            Call::DeliverEarly => self.deliver_early(),
            Call::Numbers { first, count } => {
                let number = self.number_analyzers(count);
                let numbers = &mut self.player.numbers;
                if numbers.len() <= shard {
                    numbers.resize_with(shard + 1, HashMap::new);
                }
                numbers[shard].insert(first, number);
            }
            Call::Forget { first } => {
                if let Some(numbers) = self.player.numbers.get_mut(shard) {
                    numbers.remove(&first);
                }
            }
            Call::Taken => self.player.is_taken = true,
        }
    }

    /// Translates local indices and numbers in the arguments of the next event.
    fn resolve(&self, shard: usize, from: &mut Recording, end: usize) {
        let start = std::mem::replace(&mut from.replayed.handles, end);
        for handle in from.handles.get(start..end).unwrap_or_default() {
            let at = handle.at as usize;
            match handle.kind {
                HandleKind::Connection | HandleKind::File => {
                    let Some(slot) = from.bytes.get_mut(at..at + 4) else { continue };
                    let index = <[u8; 4]>::try_from(&*slot).map_or(0, u32::from_le_bytes) as usize;
                    let replayed = &from.replayed;
                    let resolved = match handle.kind {
                        HandleKind::Connection => replayed.conns.get(index).map(|conn| conn.0),
                        _ => replayed.files.get(index).map(|file| file.0),
                    };
                    slot.copy_from_slice(&resolved.unwrap_or(u32::MAX).to_le_bytes());
                }
                HandleKind::Analyzer => {
                    let Some(slot) = from.bytes.get_mut(at..at + 8) else { continue };
                    let local = <[u8; 8]>::try_from(&*slot).map_or(0, u64::from_le_bytes);
                    let first = self.player.numbers.get(shard);
                    let first = first.and_then(|numbers| numbers.get(&(local & !OFFSET_MASK)));
                    let number = first.map_or(0, |first| first + (local & OFFSET_MASK));
                    slot.copy_from_slice(&number.to_le_bytes());
                }
            }
        }
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
    use crate::AnalyzerId;
    use crate::Interest;
    use crate::Listener;
    use crate::Raised;
    use crate::write_json;

    crate::events! {
        62;

        /// A connection, with an analyzer.
        pub struct Of<'a> = "of" {
            /// The connection.
            c: Connection = "c",
            /// A text.
            text: &'a str = "text",
            /// An analyzer.
            aid: Option<AnalyzerId> = "aid",
        }

        /// No connection.
        pub struct Free = "free" {
            /// A number.
            n: u64 = "n",
        }
    }

    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Listener for Lines {
        fn event(&mut self, event: &Raised<'_>) {
            let mut line = Vec::new();
            write_json(&mut line, event);
            self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
        }

        fn packet(&mut self, time: Time, packet: u64) {
            self.0.lock().unwrap().push(format!("packet {packet} {time:?}"));
        }

        fn drained(&mut self) {
            self.0.lock().unwrap().push("drained".to_owned());
        }
    }

    fn conn(number: u64, size: u64) -> ConnState {
        let mut ends: [crate::EndpointState; 2] = Default::default();
        ends[0].size = size;
        let [orig_h, resp_h] = [1, 2].map(|n| Addr::v4([10, 0, 0, n]));
        ConnState {
            uid: UidSource::new(1).connection(number, 0),
            id: ConnId { orig_h, orig_p: number as u16, resp_h, resp_p: 80 },
            proto: Proto::Tcp,
            ip_proto: 6,
            start: Time::from_secs(1),
            duration: Interval::ZERO,
            history: Vec::new(),
            services: Vec::new(),
            ends,
            vlan: None,
            inner_vlan: None,
            tunnels: Vec::new(),
        }
    }

    fn key(packet: u64, tie: u64) -> Key {
        Key { packet, due: Time::MAX, tie }
    }

    /// Calls of a shard at one key.
    type Step = fn(&mut Events);

    /// Shard, key and calls of each step, in the order of one thread.
    const STEPS: [(usize, (u64, u64), Step); 6] = [
        (0, (1, 0), |events| {
            let number = events.number_analyzers(3);
            let c = events.connection(conn(1, 5));
            events.raise(&Of { c, text: "first", aid: Some(AnalyzerId(number + 2)) });
            events.then_service(c, "HTTP", true);
        }),
        (1, (1, 1), |events| {
            let number = events.number_analyzers(2);
            let c = events.connection(conn(2, 6));
            events.raise(&Of { c, text: "second", aid: Some(AnalyzerId(number + 1)) });
            events.raise(&Free { n: 1 });
            events.drain();
        }),
        (0, (1, 2), |events| {
            let c = events.connection_unless_known(conn(1, 7));
            events.raise(&Of { c, text: "third", aid: None });
            let c = events.connection(conn(1, 8));
            events.raise(&Of { c, text: "", aid: None });
        }),
        (1, (2, 0), |events| {
            events.raise(&Free { n: 2 });
            events.raise_at_once(&Free { n: 3 });
        }),
        (0, (3, 0), |events| {
            let number = events.number_analyzers(1);
            let c = events.connection(conn(3, 9));
            events.raise(&Of { c, text: "last", aid: Some(AnalyzerId(number)) });
            events.forget_number(number);
        }),
        (1, (3, 1), |events| {
            let c = events.connection(conn(2, 10));
            events.raise(&Of {
                c,
                text: "of a known analyzer",
                aid: Some(AnalyzerId(1 << OFFSET_BITS)),
            });
        }),
    ];

    #[test]
    fn recordings_of_shards_are_replayed_in_the_order_of_one_thread() {
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let listener = || {
            let lines = Arc::new(Mutex::new(Vec::new()));
            (Events::new(interest.clone(), Box::new(Lines(Arc::clone(&lines)))), lines)
        };
        let (mut single, expected) = listener();
        let mut packet = 0;
        for (shard, (number, _), step) in STEPS {
            if packet != number {
                single.drain();
                single.set_time(Time::from_secs(number as i64), number);
                packet = number;
            }
            // The last step uses the shard's local number of an analyzer, which is 4 with one thread.
            if (shard, number) == (1, 3) {
                let c = single.connection(conn(2, 10));
                single.raise(&Of { c, text: "of a known analyzer", aid: Some(AnalyzerId(4)) });
            } else {
                step(&mut single);
            }
        }
        single.drain();

        let mut shards = [0, 1].map(|_| Events::recording(interest.clone(), false));
        for (shard, (packet, tie), step) in STEPS {
            shards[shard].set_key(key(packet, tie), Time::from_secs(packet as i64));
            step(&mut shards[shard]);
        }
        let (mut merged, lines) = listener();
        let mut recordings = shards.map(|mut shard| shard.take_recording().unwrap());
        let mut order = Vec::new();
        for (shard, recording) in recordings.iter().enumerate() {
            order.extend(recording.runs().map(|(run, key, ticket)| (key, ticket, shard, run)));
        }
        order.sort_unstable();
        for (_, _, shard, run) in order {
            merged.replay(shard, &mut recordings[shard], run);
        }
        merged.end_before(None);
        assert!(recordings.iter().all(Recording::is_over));
        assert_eq!(*lines.lock().unwrap(), *expected.lock().unwrap());
        assert_eq!(merged.delivered(), single.delivered());
        let lines = lines.lock().unwrap();
        assert!(lines[1].contains(r#""aid":3"#) && lines[2].contains(r#""aid":5"#), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(r#""service":["HTTP"]"#)), "{lines:?}");
    }

    #[test]
    fn many_events_of_one_packet_keep_their_connections() {
        let interest = Interest::of(EVENTS.iter().copied(), |_| true);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut events = Events::new(interest, Box::new(Lines(Arc::clone(&lines))));
        for n in 0..40_000 {
            events.drain_if_full();
            let c = events.connection(conn(n, n));
            events.raise(&Of { c, text: "", aid: None });
        }
        events.drain();
        let lines = lines.lock().unwrap();
        let named = lines.iter().filter(|line| line.contains(r#""orig_h":"10.0.0.1""#)).count();
        assert_eq!(named, 40_000);
    }
}
