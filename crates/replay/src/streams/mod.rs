//! A thread that sends queries over connections when they are due, and matches the answers.
//!
//! A client has one connection that takes its queries, and opens it when the first of them is due
//! (RFC 7766 §6.2.1). A connection that has taken as many as it may stays for its last answers
//! while the next one takes over. Each has its own ids, so an answer settles only a query that went
//! out over the same connection.
//!
//! A query counts as sent when the kernel has its last byte. What a connection leaves behind when
//! it ends is settled at once: queries that are not out go over the client's next connection, or
//! count as unsent if this one never was ready; those that were out are sent again if they may, and
//! lost otherwise.

mod settle;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustls::ClientConfig;

use crate::Error;
use crate::Live;
use crate::Options;
use crate::Transport;
use crate::compare::Observer;
use crate::connection::Connection;
use crate::connection::Ticket;
use crate::due::Due;
use crate::due::nanoseconds;
use crate::h2;
use crate::h2::NoRoom;
use crate::judge::judge;
use crate::line::Line;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::poller::Ready;
use crate::sender::Part;
use crate::socket;
use crate::stats::Stats;
use crate::stats::note;

/// Queries that are collected before the first of them is sent.
const BATCH: usize = 256;
/// Bytes that may wait for room in a connection; a client with more holds the queries up, which
/// shows as lag.
const BACKLOG: usize = 1 << 20;
/// Bytes that one call reads, and calls in a row for one connection.
const READ: usize = 64 << 10;
const READS: usize = 4;
/// How long the other side may take, when all is sent and no answer is wanted, to take it: in
/// nanoseconds.
const LINGER: u64 = 1_000_000_000;

pub(crate) struct Worker<'a> {
    options: &'a Options,
    number: usize,
    due: Due<'a>,
    live: &'a Live,
    observer: Option<&'a Observer>,
    stats: Stats,
    /// The connection that takes a client's queries.
    clients: Vec<Option<usize>>,
    /// What each client remembers of TLS sessions.
    sessions: Vec<Option<Arc<ClientConfig>>>,
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
enum Why {
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
        due: Due<'a>,
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

    /// Hands what is due to connections; how many queries that is.
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
                number: item.number,
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
            NoRoom::Ever => Refusal::Failed,
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
            note(&mut self.stats.lag, now.saturating_sub(due));
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

    /// The connection that takes the client's next query.
    fn connection(&mut self, client: usize, now: u64) -> Result<usize, Refusal> {
        let client = client % (self.max_connections / 2).max(1);
        if self.clients.len() <= client {
            self.clients.resize(client + 1, None);
        }
        if let Some(place) = self.clients[client]
            && let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut)
        {
            let most = self.options.policy.queries;
            if most.is_none_or(|most| c.taken < most.max(1)) && !c.is_going_away() {
                return Ok(place);
            }
            c.closing = true;
            self.clients[client] = None;
            if c.is_quiet() {
                self.close(place, Why::Enough, now);
            }
        }
        if self.connections.len() - self.free.len() >= self.max_connections {
            return Err(Refusal::Full);
        }
        self.open(client, now)
    }

    /// Begins a connection.
    fn open(&mut self, client: usize, now: u64) -> Result<usize, Refusal> {
        let index = (client * self.options.threads + self.number) as u32;
        let local = self.options.bind.map(|range| range.address(index));
        let socket = match socket::stream(local, self.options.target) {
            Ok(socket) => socket,
            Err(error) => {
                // Files ran out: connections that end give some back.
                let full = error.raw_os_error() == Some(libc::EMFILE);
                if full && self.connections.len() > self.free.len() {
                    return Err(Refusal::Full);
                }
                self.failed(&error, now);
                return Err(Refusal::Failed);
            }
        };
        let tls = match self.options.tls.as_ref().filter(|_| self.options.transport.is_secure()) {
            Some(tls) => {
                if self.sessions.len() <= client {
                    self.sessions.resize(client + 1, None);
                }
                let resume = self.options.policy.resumption;
                let h2 = self.options.transport == Transport::Https;
                let session = self.sessions[client].get_or_insert_with(|| tls.client(resume, h2));
                match tls.begin(session) {
                    Ok(tls) => Some(tls),
                    Err(error) => {
                        self.failed(&io::Error::other(error), now);
                        return Err(Refusal::Failed);
                    }
                }
            }
            None => None,
        };
        let place = self.free.pop().unwrap_or(self.connections.len());
        if self.poller.add(&socket, place, Interest::BOTH).is_err() {
            self.free.push(place);
            return Err(Refusal::Failed);
        }
        if place >= self.connections.len() {
            self.connections.resize_with(place + 1, || None);
        }
        self.serial += 1;
        let serial = self.serial;
        let h2 = self.h2();
        let line = Line::new(socket, tls);
        self.connections[place] = Some(Connection::new(line, h2, (client, serial), now));
        self.clients[client] = Some(place);
        self.looks.push(Reverse((self.idle_after(now), place, serial)));
        Ok(place)
    }

    /// What is between messages and the line.
    fn h2(&self) -> Option<h2::Session> {
        let options = self.options;
        let tls = options.tls.as_ref().filter(|_| options.transport == Transport::Https)?;
        Some(h2::Session::new(&tls.authority(options.target.port()), &options.path))
    }

    /// A connection did not come about.
    fn failed(&mut self, error: &io::Error, now: u64) {
        let counts = &mut self.stats.at(now).counts;
        counts.connections_failed += 1;
        self.stats.trouble.get_or_insert_with(|| error.to_string());
        let counts = &mut self.stats.at(now).counts;
        if socket::is_refusal(error) {
            counts.refused += 1;
        } else {
            counts.errors += 1;
        }
    }

    fn idle_after(&self, time: u64) -> u64 {
        time.saturating_add(nanoseconds(self.options.policy.idle))
    }

    fn write_touched(&mut self, now: u64) {
        while let Some(place) = self.touched.pop() {
            self.write(place, now);
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
                note(&mut stats.lag, out_at.saturating_sub(due));
            }
            stats.settle(now, ticket.first_sent, |interval| {
                let counts = &mut interval.counts;
                counts.messages_sent += 1;
                counts.sent_bytes += u64::from(queued.len);
                counts.retries += again;
                counts.sent += 1 - again;
                counts.unwatched += u64::from(!options.answers);
            });
            stats.last_sent = out_at;
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
                    poller.change(&c.line, place, interest);
                }
            }
            // What came before the end is read first.
            Err(_) => {
                self.read(place);
                self.close(place, Why::Broken, now);
            }
        }
    }

    /// Sees which connections are ready, nanoseconds at the most; how many messages came.
    fn look(&mut self, nanoseconds: u64) -> usize {
        self.poller.poll(nanoseconds);
        self.go_on_all()
    }

    /// Goes on with all connections that the poller found ready; how many messages came.
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

    /// Goes on with a connection that is ready.
    fn go_on(&mut self, ready: Ready) -> usize {
        let now = self.due.now();
        let place = ready.key;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return 0 };
        let opened = !c.open;
        if opened {
            let prepared = match c.line.prepare() {
                Ok(true) if c.is_h2() && !c.line.is_h2() => {
                    Err(io::Error::other("the server does not speak HTTP/2"))
                }
                prepared => prepared,
            };
            match prepared {
                Ok(false) => {
                    let write = c.line.wants_room();
                    if c.wants_room != write {
                        c.wants_room = write;
                        self.poller.change(&c.line, place, Interest { read: true, write });
                    }
                    return 0;
                }
                Ok(true) => {
                    let resumed = u64::from(c.line.is_resumed());
                    c.open = true;
                    c.used = now;
                    note(&mut self.stats.handshake, now.saturating_sub(c.begun));
                    let counts = &mut self.stats.at(now).counts;
                    counts.connections += 1;
                    counts.resumed += resumed;
                }
                Err(error) => {
                    self.failed(&error, now);
                    self.close(place, Why::Broken, now);
                    return 0;
                }
            }
        }
        if ready.write || opened {
            self.write(place, now);
        }
        if ready.read { self.read(place) } else { 0 }
    }

    /// Reads what a connection has; how many messages that is.
    fn read(&mut self, place: usize) -> usize {
        let now = self.due.now();
        let mut received = 0;
        let mut answered = 0;
        let Some(c) = self.connections.get_mut(place).and_then(Option::as_mut) else { return 0 };
        let mut over = false;
        for _ in 0..READS {
            match c.line.read(&mut self.buffer) {
                Ok(0) => over = true,
                Ok(bytes) => {
                    c.used = now;
                    let answers = self.options.answers;
                    let (stats, observer) = (&mut self.stats, self.observer);
                    let taken = c.take(&self.buffer[..bytes], |waiting, message| {
                        received += 1;
                        if answers {
                            answered += usize::from(judge(stats, waiting, message, now, observer));
                        }
                    });
                    if let Err(error) = taken {
                        self.stats.trouble.get_or_insert_with(|| error.to_string());
                        over = true;
                        break;
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => over = true,
            }
            break;
        }
        if c.is_h2() && c.backlog() > 0 {
            // Windows and pings want an answer.
            self.touched.push(place);
        }
        self.pending -= answered;
        self.live.answered.fetch_add(answered as u64, Ordering::Relaxed);
        if over {
            self.close(place, Why::Broken, now);
        } else if c.closing && c.is_quiet() {
            self.close(place, Why::Enough, now);
        }
        received
    }

    /// Sleeps until shortly before something is due, or an answer comes.
    fn wait(&mut self) {
        let deadline = self.deadlines.front().map(|d| d.at);
        let look = self.looks.peek().map(|Reverse((at, ..))| *at);
        let next = deadline.into_iter().chain(look).min();
        let now = self.due.now();
        if let Some(nanoseconds) = self.due.pause(now, next, self.held) {
            self.poller.poll(nanoseconds);
            self.stats.slept(nanoseconds, self.due.now() - now);
            self.go_on_all();
        }
    }

    /// Waits until the other side has taken all: what it sent must not make the kernel throw away
    /// what we did.
    fn linger(&mut self, stopped: &dyn Fn() -> bool) {
        for c in self.connections.iter_mut().flatten() {
            c.line.end();
        }
        let end = self.due.now() + LINGER;
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
