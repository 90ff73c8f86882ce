//! A thread that sends queries over connections when they are due, and matches the answers.
//!
//! A client has one connection that takes its queries, and opens it when the first of them is due
//! (RFC 7766 §6.2.1). A connection that has taken as many as it may stays for its last answers
//! while the next one takes over. Each has its own ids, so an answer settles only a query that went
//! out over the same connection.
//!
//! A query counts as sent when the kernel has its last byte. Queries of a closed connection are
//! resolved at once: unsent ones use the client's next connection, or count as unsent if this one
//! never was ready; sent ones are retried if allowed, and lost otherwise.

mod open;
mod settle;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

use crate::Error;
use crate::Live;
use crate::Options;
use crate::compare::Observer;
use crate::connection::Connection;
use crate::connection::Ticket;
use crate::h2::NoRoom;
use crate::matching::match_response;
use crate::paced_queue::PacedQueue;
use crate::paced_queue::nanoseconds;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::poller::Ready;
use crate::sender::Part;
use crate::socket;
use crate::stats::Stats;
#[cfg(feature = "quic")]
use crate::transport_link::TransportLink;

use open::Remembered;

/// Queries that are collected before the first of them is sent.
const BATCH: usize = 256;
/// Bytes that may wait for room in a connection; a client with more holds the queries up, which
/// shows as lag.
const BACKLOG: usize = 1 << 20;
/// Bytes that one call reads.
const READ: usize = 64 << 10;
/// How long the other side may take, when all is sent and no answer is wanted, to take it: in
/// nanoseconds.
const LINGER: u64 = 1_000_000_000;

pub(crate) struct Worker<'a> {
    options: &'a Options,
    number: usize,
    due: PacedQueue<'a>,
    live: &'a Live,
    observer: Option<&'a Observer>,
    stats: Stats,
    /// The connection that takes a client's queries.
    clients: Vec<Option<usize>>,
    /// TLS sessions that each client can resume.
    sessions: Vec<Option<Remembered>>,
    /// Connections there may be.
    max_connections: usize,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that have something to write.
    touched: Vec<usize>,
    serial: u64,
    deadlines: VecDeque<Deadline>,
    /// When to see whether a connection is idle: time, place and serial, one for each.
    looks: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Timers of connections that have their own: as above, but a connection may have several.
    timers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Queries that a connection has and that are not settled.
    pending: usize,
    /// Whether queries that are due wait for answers, or for room in a connection.
    held: bool,
    poller: Poller,
    message: Vec<u8>,
    buffer: Box<[u8]>,
}

/// When a query has waited for too long.
struct Deadline {
    at: u64,
    place: usize,
    serial: u64,
    id: u16,
    first_sent: u64,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseReason {
    /// It is idle, or had its queries.
    Enough,
    /// The server ended it, or nothing went on.
    Broken,
}

/// Why a query could not be queued now.
enum Refusal {
    /// It may be tried later.
    Full,
    /// There is no connection and will be none.
    Failed,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        options: &'a Options,
        number: usize,
        due: PacedQueue<'a>,
        (live, observer): (&'a Live, Option<&'a Observer>),
    ) -> Result<Self, Error> {
        Ok(Self {
            options,
            number,
            due,
            live,
            observer,
            stats: Stats::of(options),
            clients: Vec::new(),
            sessions: Vec::new(),
            max_connections: (socket::limit() / options.threads.max(1)).max(1),
            connections: Vec::new(),
            free: Vec::new(),
            touched: Vec::new(),
            serial: 0,
            deadlines: VecDeque::new(),
            looks: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            pending: 0,
            held: false,
            poller: Poller::new()?,
            message: Vec::new(),
            buffer: vec![0; READ].into(),
        })
    }

    /// Sends all that comes, and waits for the last answers.
    pub(crate) fn run(mut self, stopped: &dyn Fn() -> bool) -> Result<Part, Error> {
        self.due.prepare();
        self.due.wait_for_start(stopped);
        while !stopped() {
            let now = self.due.now();
            self.due.cut_off(now);
            let taken = self.collect(now);
            let received = self.look(0);
            self.expire();
            self.run_timers();
            self.close_idle();
            if self.due.is_over() && self.pending == 0 {
                break;
            }
            if taken == 0 && received == 0 {
                self.wait();
            }
        }
        if !self.options.answers {
            self.linger(stopped);
        }
        Ok(self.finish())
    }

    /// Passes due queries to connections; returns their number.
    fn collect(&mut self, now: u64) -> usize {
        let most = (self.options.in_flight / self.options.threads).max(1);
        let mut taken = 0;
        self.held = false;
        while taken < BATCH && self.due.has_query() {
            let Some((item, bytes)) = self.due.peek() else { break };
            if item.due > now {
                break;
            }
            if self.options.timing.is_max() && self.pending >= most {
                self.held = true;
                break;
            }
            let client = item.client as usize / self.options.threads;
            let mut message = std::mem::take(&mut self.message);
            message.clear();
            message.extend_from_slice(bytes);
            let due = (!self.options.timing.is_max()).then_some(item.due);
            let tries = self.options.retries;
            let ticket = Ticket {
                origin: item.origin,
                due,
                first_sent: now,
                again: false,
                tries,
                moved: false,
            };
            let queued = self.queue(client, &message, ticket, now);
            self.message = message;
            match queued {
                Ok(()) => {}
                Err(Refusal::Full) => {
                    self.held = true;
                    break;
                }
                Err(Refusal::Failed) => self.stats.at(now).counts.unsent += 1,
            }
            self.due.pass();
            taken += 1;
        }
        self.write_touched(now);
        taken
    }

    /// Hands a query to the client's connection.
    fn queue(
        &mut self,
        client: usize,
        message: &[u8],
        mut ticket: Ticket,
        now: u64,
    ) -> Result<(), Refusal> {
        let place = self.connection(client, now)?;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return Err(Refusal::Failed);
        };
        if c.backlog() > BACKLOG {
            return Err(Refusal::Full);
        }
        c.has_room(message.len()).map_err(|why| match why {
            NoRoom::Now => Refusal::Full,
            NoRoom::Ever => {
                let why = || format!("a query of {} bytes is too long", message.len());
                self.stats.trouble.get_or_insert_with(why);
                Refusal::Failed
            }
        })?;
        let id = if self.options.answers {
            Some(c.waiting.take_id(now).ok_or(Refusal::Full)?)
        } else {
            None
        };
        if !c.open
            && let Some(due) = ticket.due.take()
            && now >= self.stats.warm_up
        {
            // It waits for the server, not for us.
            self.stats.lag.note(now.saturating_sub(due));
        }
        if c.queue.is_empty() {
            self.touched.push(place);
        }
        c.push(message, id, ticket, now);
        self.pending += 1;
        let at = now.saturating_add(nanoseconds(self.options.timeout));
        let (serial, first_sent) = (c.serial, ticket.first_sent);
        let id = id.unwrap_or(0);
        self.deadlines.push_back(Deadline { at, place, serial, id, first_sent });
        Ok(())
    }

    fn idle_after(&self, time: u64) -> u64 {
        time.saturating_add(nanoseconds(self.options.policy.idle))
    }

    fn write_touched(&mut self, now: u64) {
        while let Some(place) = self.touched.pop() {
            self.write(place, now);
            self.watch(place, now);
        }
    }

    /// Writes what waits for a connection.
    fn write(&mut self, place: usize, now: u64) {
        let Self { options, stats, live, pending, due, poller, .. } = self;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
        if !c.open {
            return;
        }
        let mut fresh = 0;
        let done = c.write(&mut |queued| {
            let ticket = &queued.ticket;
            let again = u64::from(ticket.again);
            let out_at = due.now();
            if let Some(due) = ticket.due.filter(|_| now >= stats.warm_up) {
                stats.lag.note(out_at.saturating_sub(due));
            }
            stats.settle(now, ticket.first_sent, |interval| {
                let counts = &mut interval.counts;
                counts.messages_sent += 1;
                counts.sent_bytes += u64::from(queued.len);
                counts.retries += again;
                counts.sent += 1 - again;
                counts.unwatched += u64::from(!options.answers);
            });
            if again == 0 {
                stats.last_sent = out_at;
            }
            fresh += 1 - again;
            *pending -= usize::from(!options.answers);
        });
        live.sent.fetch_add(fresh, Ordering::Relaxed);
        if fresh > 0 {
            c.used = now;
        }
        match done {
            Ok(done) => {
                if c.wants_room == done {
                    c.wants_room = !done;
                    let interest = if done { Interest::READ } else { Interest::BOTH };
                    poller.change(&c.way, place, interest);
                }
            }
            // What came before the end is read first.
            Err(_) => {
                self.read(place);
                self.close(place, CloseReason::Broken, now);
            }
        }
    }

    /// Sees which connections are ready, nanoseconds at the most; how many messages came.
    fn look(&mut self, nanoseconds: u64) -> usize {
        self.poller.poll(nanoseconds);
        self.go_on_all()
    }

    /// Continues all connections that the poller found ready; returns the number of messages
    /// received.
    fn go_on_all(&mut self) -> usize {
        let mut received = 0;
        for index in 0..self.poller.len() {
            let Some(ready) = self.poller.ready(index) else { break };
            received += self.go_on(ready);
        }
        // Queries of connections that ended went over to others.
        self.write_touched(self.due.now());
        received
    }

    /// Continues a connection that is ready.
    fn go_on(&mut self, ready: Ready) -> usize {
        let now = self.due.now();
        let received = self.proceed(ready, now);
        self.watch(ready.key, now);
        received
    }

    fn proceed(&mut self, ready: Ready, now: u64) -> usize {
        let place = ready.key;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return 0 };
        let opened = !c.open;
        if opened {
            let prepared = match c.way.prepare() {
                Ok(true) if c.is_h2() && !c.way.is_h2() => {
                    Err(io::Error::other("the server does not speak HTTP/2"))
                }
                prepared => prepared,
            };
            match prepared {
                Ok(false) => {
                    let write = c.way.wants_room();
                    if c.wants_room != write {
                        c.wants_room = write;
                        self.poller.change(&c.way, place, Interest { read: true, write });
                    }
                    return 0;
                }
                Ok(true) => {
                    let resumed = u64::from(c.way.is_resumed());
                    c.open = true;
                    c.used = now;
                    self.stats.handshake.note(now.saturating_sub(c.begun));
                    let counts = &mut self.stats.at(now).counts;
                    counts.connections += 1;
                    counts.resumed += resumed;
                }
                Err(error) => {
                    self.failed(&error, now);
                    self.close(place, CloseReason::Broken, now);
                    return 0;
                }
            }
        }
        if ready.write || opened {
            self.write(place, now);
        }
        if ready.read { self.read(place) } else { 0 }
    }

    /// Reads from a connection; returns the number of messages.
    fn read(&mut self, place: usize) -> usize {
        let now = self.due.now();
        let mut received = 0;
        let mut answered = 0;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return 0 };
        let answers = self.options.answers;
        let (stats, observer) = (&mut self.stats, self.observer);
        let read = c.read(&mut self.buffer, now, &mut |waiting, message| {
            received += 1;
            if answers {
                answered += usize::from(match_response(stats, waiting, message, now, observer));
            }
        });
        let over = read.unwrap_or_else(|error| {
            self.stats.trouble.get_or_insert_with(|| error.to_string());
            true
        });
        if c.wants_to_answer() {
            self.touched.push(place);
        }
        self.pending -= answered;
        self.live.answered.fetch_add(answered as u64, Ordering::Relaxed);
        if over {
            self.close(place, CloseReason::Broken, now);
        } else if c.closing && c.is_quiet() {
            self.close(place, CloseReason::Enough, now);
        }
        received
    }

    /// Notes a connection's next timer.
    #[cfg(feature = "quic")]
    fn watch(&mut self, place: usize, now: u64) {
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return };
        let TransportLink::Quic(session) = &mut c.way else { return };
        let Some(at) = session.timeout() else { return };
        let left = at.saturating_duration_since(std::time::Instant::now());
        let at = now.saturating_add(nanoseconds(left));
        if c.timer.is_none_or(|timer| at < timer) {
            c.timer = Some(at);
            self.timers.push(Reverse((at, place, c.serial)));
        }
    }

    /// No other connections keep time themselves.
    #[cfg(not(feature = "quic"))]
    fn watch(&mut self, _place: usize, _now: u64) {}

    /// Continues connections whose timers are due.
    fn run_timers(&mut self) {
        let now = self.due.now();
        while let Some(Reverse((at, place, serial))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let c = self.connections.get_mut(place).and_then(Option::as_mut);
            let Some(c) = c.filter(|c| c.serial == serial && c.timer == Some(at)) else { continue };
            c.timer = None;
            self.go_on(Ready { key: place, read: true, write: true });
        }
        self.write_touched(now);
    }

    /// Sleeps until shortly before something is due, or an answer comes.
    fn wait(&mut self) {
        let deadline = self.deadlines.front().map(|d| d.at);
        let look = self.looks.peek().map(|Reverse((at, ..))| *at);
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        let next = deadline.into_iter().chain(look).chain(timer).min();
        let now = self.due.now();
        if let Some(nanoseconds) = self.due.pause(now, next, self.held) {
            self.poller.poll(nanoseconds);
            self.stats.slept(nanoseconds, self.due.now() - now);
            self.go_on_all();
        }
    }

    /// Waits until the other side has received everything: unread data from it would make the
    /// kernel drop unsent data.
    fn linger(&mut self, stopped: &dyn Fn() -> bool) {
        let end = self.due.now() + LINGER;
        while self.connections.iter_mut().flatten().any(|c| !c.way.is_delivered())
            && self.due.now() < end
            && !stopped()
        {
            self.look(1_000_000);
            self.run_timers();
        }
        for place in 0..self.connections.len() {
            let connection = &mut self.connections[place];
            if let Some(c) = connection
                && !c.way.end()
            {
                *connection = None;
                self.free.push(place);
            }
        }
        while self.connections.len() > self.free.len() && self.due.now() < end && !stopped() {
            self.look(1_000_000);
        }
    }

    fn finish(mut self) -> Part {
        let now = self.due.now();
        let (mut open, mut unsent) = (0, 0);
        for c in self.connections.iter().flatten() {
            let fresh = c.queue.iter().filter(|q| !q.ticket.again).count();
            unsent += fresh;
            open += c.waiting.len().saturating_sub(fresh);
        }
        let counts = &mut self.stats.at(now).counts;
        counts.open += open as u64;
        counts.unsent += unsent as u64;
        let early = &mut self.stats.excluded.counts;
        early.open = early.sent - early.answered - early.lost - early.unwatched;
        Part { stats: self.stats, clients: self.clients.len() }
    }
}
