//! A thread that sends queries when they are due and matches the answers.
//!
//! One iteration: collect due queries, send them, receive answers, expire old queries; then, if
//! nothing happened, sleep until shortly before the next due time. The last part of a wait polls
//! the clock, since a sleep ends later than a query may be.
//!
//! Where only the machine sets the pace (`max`), many queries are collected before they are put in
//! order: the kernel's work for a piece of sixty queries of one client and one length is hardly more
//! than for one query.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Error;
use crate::Live;
use crate::Options;
use crate::batch;
use crate::batch::Batch;
use crate::compare::Observer;
use crate::inflight::Expired;
use crate::inflight::Waiting;
use crate::matching::match_response;
use crate::paced_queue::PacedQueue;
use crate::paced_queue::nanoseconds;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::socket;
use crate::stats::Stats;
use crate::sys;
use crate::sys::Chunk;

/// Queries that are collected before the first of them is sent.
const BATCH: usize = 256;
/// The same if all queries are due at once and answers are ignored: this many for each client,
/// within limits.
const BATCH_A_CLIENT: usize = 1024;
const MIN_WINDOW: usize = 8 << 10;
const MAX_WINDOW: usize = 256 << 10;
/// How long a window waits for the next block before it goes out as it is.
const FEED_PATIENCE: Duration = Duration::from_millis(2);
/// How long to wait, with half of the queries that may wait for answers doing so, for more of them to
/// be answered: in nanoseconds.
const GATHER: u64 = 200_000;
/// Sockets that are asked one by one; more are asked for by epoll.
const FEW: usize = 2;
/// Times a send that makes no progress is tried, and how many of them without a pause.
const PATIENCE: u32 = 20_000;
const EAGER: u32 = 100;
/// Pause between tries.
const BUSY: Duration = Duration::from_micros(50);
/// Messages that one call takes from a socket: of a few, and of many that seldom have more than one.
const RECEIVE: usize = 32;
const RECEIVE_OF_MANY: usize = 4;

/// The results of a sender.
pub(crate) struct Part {
    pub(crate) stats: Stats,
    pub(crate) clients: usize,
}

pub(crate) struct Worker<'a> {
    options: &'a Options,
    number: usize,
    due: PacedQueue<'a>,
    live: &'a Live,
    observer: Option<&'a Observer>,
    stats: Stats,
    clients: Vec<Client>,
    /// How many sockets there may be; more clients share them.
    max_sockets: usize,
    batch: Batch,
    chunks: Vec<Chunk>,
    deadlines: VecDeque<Deadline>,
    in_flight: usize,
    /// When queries were last collected.
    collected: u64,
    /// Whether more would have been, if more queries might wait for answers.
    held: bool,
    segmentation: bool,
    send: sys::Sender,
    receive: sys::Receiver,
    poller: Poller,
}

struct Client {
    socket: UdpSocket,
    waiting: Waiting,
}

struct Deadline {
    at: u64,
    client: u32,
    id: u16,
    first_sent: u64,
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
            max_sockets: (socket::limit() / options.threads.max(1)).clamp(1, batch::MAX_CLIENTS),
            batch: Batch::default(),
            chunks: Vec::new(),
            deadlines: VecDeque::new(),
            in_flight: 0,
            collected: 0,
            held: false,
            segmentation: options.segmentation,
            send: sys::Sender::new(),
            receive: sys::Receiver::new(RECEIVE),
            poller: Poller::new()?,
        })
    }

    /// Sends all that comes, and waits for the last answers.
    pub(crate) fn run(mut self, stopped: &dyn Fn() -> bool) -> Result<Part, Error> {
        // Prepares clients before the clock starts, since opening sockets takes long.
        self.due.prepare();
        self.open_clients(self.wanted())?;
        self.due.wait_for_start(stopped);
        while !stopped() {
            let now = self.due.now();
            self.due.cut_off(now);
            self.collect(now)?;
            let sent = self.batch.len();
            if sent > 0 {
                self.flush(now, stopped);
            }
            let received = self.receive_all();
            self.expire(stopped);
            if self.due.is_over() && self.in_flight == 0 {
                break;
            }
            if sent == 0 && received == 0 {
                self.wait()?;
            }
        }
        let now = self.due.now();
        self.stats.at(now).counts.open += self.in_flight as u64;
        let early = &mut self.stats.excluded.counts;
        early.open = early.sent - early.answered - early.lost - early.unwatched;
        Ok(Part { stats: self.stats, clients: self.clients.len() })
    }

    /// Number of sockets for all clients so far.
    fn wanted(&self) -> usize {
        self.due.last_client().map_or(0, |last| last as usize / self.options.threads + 1)
    }

    /// Makes sockets until there are as many, or as many as there may be.
    fn open_clients(&mut self, wanted: usize) -> Result<(), Error> {
        while self.clients.len() < wanted.min(self.max_sockets) {
            let index = (self.clients.len() * self.options.threads + self.number) as u32;
            let local = self.options.bind.map(|range| range.address(index));
            // Many sockets do with little room each.
            let buffer = if self.clients.len() < 64 { usize::MAX } else { 64 << 10 };
            let socket = match socket::client(local, self.options.target, buffer) {
                Ok(socket) => socket,
                Err(_) if !self.clients.is_empty() => {
                    // Ports or files ran out: the other clients share sockets.
                    self.max_sockets = self.clients.len();
                    break;
                }
                Err(error) => return Err(error),
            };
            self.poller.add(&socket, self.clients.len(), Interest::READ)?;
            // Ids begin anywhere, and not at the same place for every client.
            let seed = index.wrapping_mul(0x9e37).wrapping_add(1) as u16;
            self.clients.push(Client { socket, waiting: Waiting::new(seed) });
        }
        Ok(())
    }

    /// Whether queries go out as fast as the machine can, without regard to answers.
    fn floods(&self) -> bool {
        self.options.timing.is_max() && !self.options.answers
    }

    /// Puts due queries into the batch.
    fn collect(&mut self, now: u64) -> Result<(), Error> {
        self.batch.clear();
        self.held = false;
        let is_max = self.options.timing.is_max();
        let most = (self.options.in_flight / self.options.threads).max(1);
        if is_max && self.options.answers {
            // Many that go together cost less than each as soon as there is room for it.
            let gathers = now.saturating_sub(self.collected) < GATHER;
            if self.in_flight > most / 2 && gathers {
                return Ok(());
            }
            self.collected = now;
        }
        loop {
            let window = if self.floods() {
                self.wanted().saturating_mul(BATCH_A_CLIENT).clamp(MIN_WINDOW, MAX_WINDOW)
            } else {
                BATCH
            };
            if self.batch.is_full(window) {
                break;
            }
            if !self.due.has_query() {
                // A window is worth some patience, once it has begun.
                let patient = self.floods() && !self.batch.is_empty();
                if patient && self.due.wait_for_block(FEED_PATIENCE) {
                    continue;
                }
                break;
            }
            let Some((item, _)) = self.due.peek() else { break };
            if item.due > now {
                break;
            }
            if is_max && self.options.answers && self.in_flight >= most {
                self.held = true;
                break;
            }
            let client = self.client(item.client)?;
            let Some((_, message)) = self.due.peek() else { break };
            if self.options.answers {
                // A client with all ids in use waits for one: that shows as lag.
                let waiting = &mut self.clients[client].waiting;
                let Some(id) = waiting.take_id(now) else {
                    self.held = true;
                    break;
                };
                self.batch.push(client as u32, item.due, None, id, message);
                let message = self.batch.name_last(id);
                waiting.sent(id, now, message, self.options.retries, item.origin);
                self.in_flight += 1;
            } else {
                self.batch.push(client as u32, item.due, None, 0, message);
            }
            self.due.pass();
        }
        Ok(())
    }

    /// Which of the sockets sends for a client of the run; it is made now if it was not before.
    fn client(&mut self, client: u32) -> Result<usize, Error> {
        let client = client as usize / self.options.threads;
        if client >= self.clients.len() {
            self.open_clients(client + 1)?;
        }
        // There may be fewer sockets than clients, but there is one.
        Ok(client % self.clients.len().max(1))
    }

    /// Sends the batch, client by client; consecutive queries of equal length in one segment.
    /// Queries of a client keep their order unless they are sent as fast as possible.
    fn flush(&mut self, now: u64, stopped: &dyn Fn() -> bool) {
        self.batch.order(self.options.timing.is_max());
        let mut at = 0;
        while let Some((client, len)) = self.batch.of_one(at) {
            self.send_to_one(client as usize, at..at + len, now, stopped);
            at += len;
        }
    }

    /// Sends a part of the batch that belongs to one client.
    fn send_to_one(
        &mut self,
        client: usize,
        part: Range<usize>,
        now: u64,
        stopped: &dyn Fn() -> bool,
    ) {
        let mut at = part.start;
        let mut patience = PATIENCE;
        while at < part.end {
            self.batch.cut(at..part.end, self.segmentation, &mut self.chunks);
            let Some(first) = self.chunks.first().map(Chunk::messages) else { break };
            let socket = &self.clients[client].socket;
            let mut why = None;
            match self.send.send(socket.as_fd(), self.batch.data(), &self.chunks) {
                Ok(chunks) => {
                    let messages: usize =
                        self.chunks.iter().take(chunks).map(Chunk::messages).sum();
                    self.sent(at..at + messages, now);
                    at += messages;
                    if messages > 0 {
                        continue;
                    }
                }
                Err(error) if socket::is_busy(&error) => {
                    // The socket is full: receives meanwhile.
                    self.receive_all();
                    if !stopped() {
                        patience = patience.saturating_sub(1);
                        if patience < PATIENCE - EAGER {
                            std::thread::sleep(BUSY);
                        }
                        if patience > 0 {
                            continue;
                        }
                    }
                }
                Err(error) if socket::is_refusal(&error) || socket::is_unreachable(&error) => {
                    // About an earlier query: this one was not sent yet.
                    self.stats.failed(&error, now);
                    patience = patience.saturating_sub(PATIENCE / 8);
                    if patience > 0 {
                        continue;
                    }
                    why = Some(error);
                }
                Err(_) if self.segmentation && first > 1 => {
                    self.segmentation = false;
                    continue;
                }
                Err(error) => why = Some(error),
            }
            if let Some(why) = why {
                self.stats.trouble.get_or_insert_with(|| why.to_string());
            }
            self.unsent(at..at + first, now);
            at += first;
        }
    }

    /// A part of the batch is out.
    fn sent(&mut self, part: Range<usize>, now: u64) {
        let out_at = self.due.now();
        let answers = self.options.answers;
        let timeout = nanoseconds(self.options.timeout);
        let part = self.batch.get(part);
        if !self.options.timing.is_max() && now >= self.stats.warm_up {
            for out in part.iter().filter(|o| o.again.is_none()) {
                self.stats.lag.note(out_at.saturating_sub(out.due));
            }
        }
        // A window takes long to send, and without answers its start time is not needed.
        let now = if answers { now } else { out_at };
        let (mut fresh, mut bytes) = (0, 0);
        for out in part {
            let len = out.len() as u64;
            match out.again {
                None => {
                    fresh += 1;
                    bytes += len;
                }
                Some(first_sent) => self.stats.settle(now, first_sent, |interval| {
                    interval.counts.messages_sent += 1;
                    interval.counts.sent_bytes += len;
                    interval.counts.retries += 1;
                }),
            }
        }
        self.stats.settle(now, now, |interval| {
            let counts = &mut interval.counts;
            counts.messages_sent += fresh;
            counts.sent_bytes += bytes;
            counts.sent += fresh;
            counts.unwatched += if answers { 0 } else { fresh };
        });
        if answers {
            self.deadlines.extend(part.iter().map(|out| Deadline {
                at: now + timeout,
                client: out.client,
                id: out.id,
                first_sent: out.again.unwrap_or(now),
            }));
        }
        if fresh > 0 {
            self.stats.last_sent = out_at;
        }
        self.live.sent.fetch_add(fresh, Ordering::Relaxed);
    }

    /// A part of the batch could not be sent.
    fn unsent(&mut self, part: Range<usize>, now: u64) {
        let counts = &mut self.stats.at(now).counts;
        counts.errors += 1;
        let timeout = nanoseconds(self.options.timeout);
        for out in self.batch.get(part) {
            let (client, id) = (out.client, out.id);
            if let Some(first_sent) = out.again {
                // It went out once, so it is answered or lost like any other.
                self.deadlines.push_back(Deadline { at: now + timeout, client, id, first_sent });
                continue;
            }
            counts.unsent += 1;
            if self.options.answers {
                self.clients[client as usize].waiting.unsent(id);
                self.in_flight -= 1;
            }
        }
    }

    /// Receives available messages; returns their number.
    fn receive_all(&mut self) -> usize {
        if !self.options.answers {
            return 0;
        }
        if self.clients.len() <= FEW {
            return (0..self.clients.len()).map(|client| self.receive_from(client)).sum();
        }
        self.poller.poll(0);
        let mut received = 0;
        for index in 0..self.poller.len() {
            let Some(ready) = self.poller.ready(index) else { break };
            received += self.receive_from(ready.key);
        }
        received
    }

    fn receive_from(&mut self, index: usize) -> usize {
        let most = if self.clients.len() > FEW { RECEIVE_OF_MANY } else { RECEIVE };
        let Some(client) = self.clients.get_mut(index) else { return 0 };
        let messages = match self.receive.receive(client.socket.as_fd(), most) {
            Ok(messages) => messages,
            Err(error) if socket::is_busy(&error) => return 0,
            Err(error) => {
                let now = self.due.now();
                self.stats.failed(&error, now);
                return 0;
            }
        };
        let now = self.due.now();
        let mut received = 0;
        let mut answered = 0;
        for message in (0..messages).filter_map(|m| self.receive.message(m)) {
            for datagram in message.datagrams() {
                received += 1;
                answered += u64::from(match_response(
                    &mut self.stats,
                    &mut client.waiting,
                    datagram,
                    now,
                    self.observer,
                ));
            }
        }
        self.in_flight -= answered as usize;
        self.live.answered.fetch_add(answered, Ordering::Relaxed);
        received
    }

    /// Expires old queries, or sends them again.
    fn expire(&mut self, stopped: &dyn Fn() -> bool) {
        let now = self.due.now();
        if self.deadlines.front().is_none_or(|d| d.at > now) {
            return;
        }
        self.batch.clear();
        while let Some(deadline) = self.deadlines.pop_front_if(|d| d.at <= now) {
            let Deadline { client, id, first_sent, .. } = deadline;
            match self.clients[client as usize].waiting.expire(id, first_sent) {
                Expired::Settled => {}
                Expired::Lost => {
                    self.stats.settle(now, first_sent, |i| i.counts.lost += 1);
                    self.live.lost.fetch_add(1, Ordering::Relaxed);
                    self.in_flight -= 1;
                }
                Expired::Again(bytes) => {
                    self.batch.push(client, now, Some(first_sent), id, &bytes);
                    if self.batch.is_full(BATCH) {
                        break;
                    }
                }
            }
        }
        if !self.batch.is_empty() {
            self.flush(now, stopped);
        }
    }

    /// Sleeps until shortly before something is due, or an answer comes.
    fn wait(&mut self) -> Result<(), Error> {
        // First prepares for later queries: a block, a socket.
        if self.due.fetch() {
            return Ok(());
        }
        let sockets = self.clients.len();
        if sockets < self.wanted().min(self.max_sockets) {
            return self.open_clients(sockets + 1);
        }
        let next = self.deadlines.front().map(|d| d.at);
        let now = self.due.now();
        if let Some(nanoseconds) = self.due.pause(now, next, self.held) {
            self.poller.poll(nanoseconds);
            self.stats.slept(nanoseconds, self.due.now() - now);
        }
        Ok(())
    }
}
