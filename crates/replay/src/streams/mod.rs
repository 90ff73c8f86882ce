//! A thread that sends queries over connections when they are due, and matches the answers.
//!
//! A client has one current connection for its queries, and opens it when the first of them is due
//! (RFC 7766 §6.2.1). A connection that has reached its limit of queries stays open for its last
//! answers while the next one becomes current. Each has its own ids, so an answer matches only
//! queries sent over the same connection.
//!
//! A query counts as sent when the kernel has its last byte. When a connection is closed, its
//! queries are resolved at once: unsent ones are moved to the client's next connection, or count as
//! unsent if this one never was ready; sent ones are retried if allowed, and lost otherwise.

mod close;
mod open;

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
use crate::h2::SendLimit;
use crate::matching::match_response;
use crate::paced_queue::PacedQueue;
use crate::paced_queue::nanoseconds;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::poller::Ready;
use crate::sender::SenderResult;
use crate::socket;
use crate::stats::Stats;
#[cfg(feature = "quic")]
use crate::transport_link::TransportLink;

use open::ResumableSession;

/// Maximum number of queries collected before the first of them is sent.
const MAX_BATCH: usize = 256;
/// Maximum number of unsent bytes of a connection; a client that exceeds it delays further queries,
/// which shows as lag.
const BACKLOG: usize = 1 << 20;
/// Size of the read buffer in bytes.
const READ: usize = 64 << 10;
/// Maximum time that the server may take to receive all data at the end of a run without answers,
/// in nanoseconds.
const LINGER: u64 = 1_000_000_000;

pub(crate) struct Worker<'a> {
    options: &'a Options,
    number: usize,
    due: PacedQueue<'a>,
    live: &'a Live,
    observer: Option<&'a Observer>,
    stats: Stats,
    /// Slot of the current connection of each client.
    clients: Vec<Option<usize>>,
    /// TLS sessions that each client can resume.
    sessions: Vec<Option<ResumableSession>>,
    /// Maximum number of connections.
    max_connections: usize,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that have something to write.
    touched: Vec<usize>,
    serial: u64,
    deadlines: VecDeque<Deadline>,
    /// Times at which to check whether a connection is idle: time, slot and serial, one entry per
    /// connection.
    idle_checks: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Timers of connections whose transport has timers (QUIC): time, slot and serial; a connection
    /// may have several entries.
    timers: BinaryHeap<Reverse<(u64, usize, u64)>>,
    /// Number of unresolved queries of all connections.
    pending: usize,
    /// Whether due queries wait for answers, or for a connection with too many unsent bytes.
    held: bool,
    poller: Poller,
    message: Vec<u8>,
    buffer: Box<[u8]>,
}

/// The timeout of a query.
struct Deadline {
    at: u64,
    slot: usize,
    serial: u64,
    id: u16,
    first_sent: u64,
}

/// The reason for closing a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CloseReason {
    /// It is idle, or has reached its limit of queries.
    Enough,
    /// The server closed it, or it made no progress.
    Broken,
}

/// The reason why a query cannot be queued.
enum Refusal {
    /// It may be tried later.
    Full,
    /// No connection can be established.
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
            idle_checks: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            pending: 0,
            held: false,
            poller: Poller::new()?,
            message: Vec::new(),
            buffer: vec![0; READ].into(),
        })
    }

    /// Sends all queries of the feed, and waits for the last answers.
    pub(crate) fn run(mut self, stopped: &dyn Fn() -> bool) -> Result<SenderResult, Error> {
        self.due.prepare();
        self.due.wait_for_start(stopped);
        while !stopped() {
            let now = self.due.now();
            self.due.cut_off(now);
            let taken = self.collect(now);
            let received = self.poll_connections(0);
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
        while taken < MAX_BATCH && self.due.has_query() {
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
                is_retry: false,
                retries_left: tries,
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
            self.due.advance();
            taken += 1;
        }
        self.write_touched(now);
        taken
    }

    /// Passes a query to the client's connection.
    fn queue(
        &mut self,
        client: usize,
        message: &[u8],
        mut ticket: Ticket,
        now: u64,
    ) -> Result<(), Refusal> {
        let slot = self.connection(client, now)?;
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else {
            return Err(Refusal::Failed);
        };
        if c.backlog() > BACKLOG {
            return Err(Refusal::Full);
        }
        c.can_send(message.len()).map_err(|why| match why {
            SendLimit::Temporary => Refusal::Full,
            SendLimit::Permanent => {
                let why = || format!("a query of {} bytes is too long", message.len());
                self.stats.first_error.get_or_insert_with(why);
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
            // From here on it waits for the server, so the lag ends here.
            self.stats.lag.record(now.saturating_sub(due));
        }
        if c.queue.is_empty() {
            self.touched.push(slot);
        }
        c.push(message, id, ticket, now);
        self.pending += 1;
        let at = now.saturating_add(nanoseconds(self.options.timeout));
        let (serial, first_sent) = (c.serial, ticket.first_sent);
        let id = id.unwrap_or(0);
        self.deadlines.push_back(Deadline { at, slot, serial, id, first_sent });
        Ok(())
    }

    fn idle_after(&self, time: u64) -> u64 {
        time.saturating_add(nanoseconds(self.options.policy.idle))
    }

    fn write_touched(&mut self, now: u64) {
        while let Some(slot) = self.touched.pop() {
            self.write(slot, now);
            self.schedule_timer(slot, now);
        }
    }

    /// Writes pending data of a connection.
    fn write(&mut self, slot: usize, now: u64) {
        let Self { options, stats, live, pending, due, poller, .. } = self;
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        if !c.open {
            return;
        }
        let mut fresh = 0;
        let done = c.write(&mut |queued| {
            let ticket = &queued.ticket;
            let again = u64::from(ticket.is_retry);
            let out_at = due.now();
            if let Some(due) = ticket.due.filter(|_| now >= stats.warm_up) {
                stats.lag.record(out_at.saturating_sub(due));
            }
            stats.record_result(now, ticket.first_sent, |interval| {
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
                if c.wants_write == done {
                    c.wants_write = !done;
                    let interest = if done { Interest::READ } else { Interest::BOTH };
                    poller.change(&c.link, slot, interest);
                }
            }
            // Data received before the error are read first.
            Err(_) => {
                self.read(slot);
                self.close(slot, CloseReason::Broken, now);
            }
        }
    }

    /// Polls the connections, waiting at most this long; returns the number of messages received.
    fn poll_connections(&mut self, nanoseconds: u64) -> usize {
        self.poller.poll(nanoseconds);
        self.handle_all_events()
    }

    /// Processes the events of all ready connections; returns the number of messages received.
    fn handle_all_events(&mut self) -> usize {
        let mut received = 0;
        for index in 0..self.poller.len() {
            let Some(ready) = self.poller.ready(index) else { break };
            received += self.handle_events(ready);
        }
        // Queries of closed connections were moved to others.
        self.write_touched(self.due.now());
        received
    }

    /// Processes the events of a connection; returns the number of messages received.
    fn handle_events(&mut self, ready: Ready) -> usize {
        let now = self.due.now();
        let received = self.proceed(ready, now);
        self.schedule_timer(ready.key, now);
        received
    }

    fn proceed(&mut self, ready: Ready, now: u64) -> usize {
        let slot = ready.key;
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return 0 };
        let opened = !c.open;
        if opened {
            let prepared = match c.link.prepare() {
                Ok(true) if c.is_h2() && !c.link.is_h2() => {
                    Err(io::Error::other("the server does not speak HTTP/2"))
                }
                prepared => prepared,
            };
            match prepared {
                Ok(false) => {
                    let write = c.link.wants_write();
                    if c.wants_write != write {
                        c.wants_write = write;
                        self.poller.change(&c.link, slot, Interest { read: true, write });
                    }
                    return 0;
                }
                Ok(true) => {
                    let resumed = u64::from(c.link.is_resumed());
                    c.open = true;
                    c.used = now;
                    self.stats.handshake.record(now.saturating_sub(c.started_at));
                    let counts = &mut self.stats.at(now).counts;
                    counts.connections += 1;
                    counts.resumed += resumed;
                }
                Err(error) => {
                    self.failed(&error, now);
                    self.close(slot, CloseReason::Broken, now);
                    return 0;
                }
            }
        }
        if ready.write || opened {
            self.write(slot, now);
        }
        if ready.read { self.read(slot) } else { 0 }
    }

    /// Reads from a connection; returns the number of messages.
    fn read(&mut self, slot: usize) -> usize {
        let now = self.due.now();
        let mut received = 0;
        let mut answered = 0;
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return 0 };
        let answers = self.options.answers;
        let (stats, observer) = (&mut self.stats, self.observer);
        let read = c.read(&mut self.buffer, now, &mut |waiting, message| {
            received += 1;
            if answers {
                answered += usize::from(match_response(stats, waiting, message, now, observer));
            }
        });
        let over = read.unwrap_or_else(|error| {
            self.stats.first_error.get_or_insert_with(|| error.to_string());
            true
        });
        if c.wants_to_answer() {
            self.touched.push(slot);
        }
        self.pending -= answered;
        self.live.answered.fetch_add(answered as u64, Ordering::Relaxed);
        if over {
            self.close(slot, CloseReason::Broken, now);
        } else if c.closing && c.is_quiet() {
            self.close(slot, CloseReason::Enough, now);
        }
        received
    }

    /// Schedules a connection's next timer.
    #[cfg(feature = "quic")]
    fn schedule_timer(&mut self, slot: usize, now: u64) {
        let Some(c) = self.connections.get_mut(slot).and_then(Option::as_mut) else { return };
        let TransportLink::Quic(session) = &mut c.link else { return };
        let Some(at) = session.timeout() else { return };
        let left = at.saturating_duration_since(std::time::Instant::now());
        let at = now.saturating_add(nanoseconds(left));
        if c.timer.is_none_or(|timer| at < timer) {
            c.timer = Some(at);
            self.timers.push(Reverse((at, slot, c.serial)));
        }
    }

    /// Without QUIC, no transport has timers.
    #[cfg(not(feature = "quic"))]
    fn schedule_timer(&mut self, _place: usize, _now: u64) {}

    /// Continues connections whose timers are due.
    fn run_timers(&mut self) {
        let now = self.due.now();
        while let Some(Reverse((at, slot, serial))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let c = self.connections.get_mut(slot).and_then(Option::as_mut);
            let Some(c) = c.filter(|c| c.serial == serial && c.timer == Some(at)) else { continue };
            c.timer = None;
            self.handle_events(Ready { key: slot, read: true, write: true });
        }
        self.write_touched(now);
    }

    /// Sleeps until shortly before a query or timer is due, or until an answer arrives.
    fn wait(&mut self) {
        let deadline = self.deadlines.front().map(|d| d.at);
        let poll_connections = self.idle_checks.peek().map(|Reverse((at, ..))| *at);
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        let next = deadline.into_iter().chain(poll_connections).chain(timer).min();
        let now = self.due.now();
        if let Some(nanoseconds) = self.due.pause(now, next, self.held) {
            self.poller.poll(nanoseconds);
            self.stats.record_sleep(nanoseconds, self.due.now() - now);
            self.handle_all_events();
        }
    }

    /// Waits until the server has received everything: if a socket with unread data is closed, the
    /// kernel drops unsent data.
    fn linger(&mut self, stopped: &dyn Fn() -> bool) {
        let end = self.due.now() + LINGER;
        while self.connections.iter_mut().flatten().any(|c| !c.link.is_delivered())
            && self.due.now() < end
            && !stopped()
        {
            self.poll_connections(1_000_000);
            self.run_timers();
        }
        for slot in 0..self.connections.len() {
            let connection = &mut self.connections[slot];
            if let Some(c) = connection
                && !c.link.end()
            {
                *connection = None;
                self.free.push(slot);
            }
        }
        while self.connections.len() > self.free.len() && self.due.now() < end && !stopped() {
            self.poll_connections(1_000_000);
        }
    }

    fn finish(mut self) -> SenderResult {
        let now = self.due.now();
        let (mut open, mut unsent) = (0, 0);
        for c in self.connections.iter().flatten() {
            let fresh = c.queue.iter().filter(|q| !q.ticket.is_retry).count();
            unsent += fresh;
            open += c.waiting.len().saturating_sub(fresh);
        }
        let counts = &mut self.stats.at(now).counts;
        counts.open += open as u64;
        counts.unsent += unsent as u64;
        let early = &mut self.stats.excluded.counts;
        early.open = early.sent - early.answered - early.lost - early.unwatched;
        SenderResult { stats: self.stats, clients: self.clients.len() }
    }
}
