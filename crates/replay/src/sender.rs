//! A thread that sends queries over UDP when they are due and matches the answers.
//!
//! One iteration: collect due queries, send them, receive answers, expire old queries; then, if
//! nothing happened, sleep until shortly before the next due time. The last part of a wait polls
//! the clock, since a sleep may end later than a query is due.
//!
//! Without a schedule (`max`), many queries are collected and sorted: for the kernel, one segmented
//! message with sixty queries of one client and one length is hardly more work than one query.

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

/// Maximum number of queries collected before the first of them is sent.
const MAX_BATCH: usize = 256;
/// Maximum number of queries collected per client if all queries are due at once and answers are
/// ignored, and the limits of the total.
const MAX_BATCH_PER_CLIENT: usize = 1024;
const MIN_WINDOW: usize = 8 << 10;
const MAX_WINDOW: usize = 256 << 10;
/// Maximum time that a started batch waits for the next block before it is sent.
const FEED_WAIT: Duration = Duration::from_millis(2);
/// Time to wait for more answers, in nanoseconds, while at least half of the allowed queries are in
/// flight.
const GATHER: u64 = 200_000;
/// Maximum number of sockets that are read without epoll.
const MAX_UNPOLLED: usize = 2;
/// Maximum number of attempts of a send that makes no progress, and the number of those without a
/// pause.
const MAX_ATTEMPTS: u32 = 20_000;
const ATTEMPTS_WITHOUT_PAUSE: u32 = 100;
/// Pause between attempts.
const ATTEMPT_PAUSE: Duration = Duration::from_micros(50);
/// Maximum number of messages that one call receives: from one of a few sockets, and from one of
/// many, which seldom have more than one.
const RECEIVE: usize = 32;
const RECEIVE_FROM_MANY: usize = 4;

/// The results of a sender.
pub(crate) struct SenderResult {
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
    /// Maximum number of sockets; further clients share them.
    max_sockets: usize,
    batch: Batch,
    chunks: Vec<Chunk>,
    deadlines: VecDeque<Deadline>,
    in_flight: usize,
    /// Time at which queries were last collected.
    collected: u64,
    /// Whether the limit of queries in flight kept queries from being collected.
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

    /// Sends all queries of the feed, and waits for the last answers.
    pub(crate) fn run(mut self, stopped: &dyn Fn() -> bool) -> Result<SenderResult, Error> {
        // Prepares clients before the clock starts, since opening sockets takes long.
        self.due.prepare();
        self.open_clients(self.needed_sockets())?;
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
        Ok(SenderResult { stats: self.stats, clients: self.clients.len() })
    }

    /// Number of sockets needed for all clients so far.
    fn needed_sockets(&self) -> usize {
        self.due.last_client().map_or(0, |last| last as usize / self.options.threads + 1)
    }

    /// Opens sockets up to this number, or up to the maximum.
    fn open_clients(&mut self, needed_sockets: usize) -> Result<(), Error> {
        while self.clients.len() < needed_sockets.min(self.max_sockets) {
            let index = (self.clients.len() * self.options.threads + self.number) as u32;
            let local = self.options.bind.map(|range| range.address(index));
            // With many sockets, small buffers suffice.
            let buffer = if self.clients.len() < 64 { usize::MAX } else { 64 << 10 };
            let socket = match socket::client(local, self.options.target, buffer) {
                Ok(socket) => socket,
                Err(_) if !self.clients.is_empty() => {
                    // Out of ports or file descriptors: the other clients share sockets.
                    self.max_sockets = self.clients.len();
                    break;
                }
                Err(error) => return Err(error),
            };
            self.poller.add(&socket, self.clients.len(), Interest::READ)?;
            // The first id differs between clients.
            let seed = index.wrapping_mul(0x9e37).wrapping_add(1) as u16;
            self.clients.push(Client { socket, waiting: Waiting::new(seed) });
        }
        Ok(())
    }

    /// Whether queries are sent as fast as possible, without waiting for answers.
    fn floods(&self) -> bool {
        self.options.timing.is_max() && !self.options.answers
    }

    /// Adds due queries to the batch.
    fn collect(&mut self, now: u64) -> Result<(), Error> {
        self.batch.clear();
        self.held = false;
        let is_max = self.options.timing.is_max();
        let most = (self.options.in_flight / self.options.threads).max(1);
        if is_max && self.options.answers {
            // Sending many queries together costs less than sending each as soon as the limit
            // permits.
            let gathers = now.saturating_sub(self.collected) < GATHER;
            if self.in_flight > most / 2 && gathers {
                return Ok(());
            }
            self.collected = now;
        }
        loop {
            let window = if self.floods() {
                self.needed_sockets()
                    .saturating_mul(MAX_BATCH_PER_CLIENT)
                    .clamp(MIN_WINDOW, MAX_WINDOW)
            } else {
                MAX_BATCH
            };
            if self.batch.is_full(window) {
                break;
            }
            if !self.due.has_query() {
                // A started batch waits for more queries.
                let patient = self.floods() && !self.batch.is_empty();
                if patient && self.due.wait_for_block(FEED_WAIT) {
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
                // A client with all ids in use waits for one, which shows as lag.
                let waiting = &mut self.clients[client].waiting;
                let Some(id) = waiting.take_id(now) else {
                    self.held = true;
                    break;
                };
                self.batch.push(client as u32, item.due, None, id, message);
                let message = self.batch.set_last_id(id);
                waiting.sent(id, now, message, self.options.retries, item.origin);
                self.in_flight += 1;
            } else {
                self.batch.push(client as u32, item.due, None, 0, message);
            }
            self.due.advance();
        }
        Ok(())
    }

    /// Index of the socket that sends for a client of the run; opens it if necessary.
    fn client(&mut self, client: u32) -> Result<usize, Error> {
        let client = client as usize / self.options.threads;
        if client >= self.clients.len() {
            self.open_clients(client + 1)?;
        }
        // There may be fewer sockets than clients, but at least one.
        Ok(client % self.clients.len().max(1))
    }

    /// Sends the batch, client by client; consecutive queries of equal length in one segment.
    /// Queries of a client keep their order unless they are sent as fast as possible.
    fn flush(&mut self, now: u64, stopped: &dyn Fn() -> bool) {
        self.batch.sort(self.options.timing.is_max());
        let mut at = 0;
        while let Some((client, len)) = self.batch.run_of_client(at) {
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
        let mut patience = MAX_ATTEMPTS;
        while at < part.end {
            self.batch.split_into_chunks(at..part.end, self.segmentation, &mut self.chunks);
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
                    // The socket's buffer is full: receives meanwhile.
                    self.receive_all();
                    if !stopped() {
                        patience = patience.saturating_sub(1);
                        if patience < MAX_ATTEMPTS - ATTEMPTS_WITHOUT_PAUSE {
                            std::thread::sleep(ATTEMPT_PAUSE);
                        }
                        if patience > 0 {
                            continue;
                        }
                    }
                }
                Err(error) if socket::is_refusal(&error) || socket::is_unreachable(&error) => {
                    // The error belongs to an earlier query: this one was not sent yet.
                    self.stats.failed(&error, now);
                    patience = patience.saturating_sub(MAX_ATTEMPTS / 8);
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
                self.stats.first_error.get_or_insert_with(|| why.to_string());
            }
            self.unsent(at..at + first, now);
            at += first;
        }
    }

    /// Records that a part of the batch was sent.
    fn sent(&mut self, part: Range<usize>, now: u64) {
        let out_at = self.due.now();
        let answers = self.options.answers;
        let timeout = nanoseconds(self.options.timeout);
        let part = self.batch.get(part);
        if !self.options.timing.is_max() && now >= self.stats.warm_up {
            for out in part.iter().filter(|o| o.first_sent.is_none()) {
                self.stats.lag.record(out_at.saturating_sub(out.due));
            }
        }
        // A large batch takes long to send; the time of sending is needed only to wait for answers.
        let now = if answers { now } else { out_at };
        let (mut fresh, mut bytes) = (0, 0);
        for out in part {
            let len = out.len() as u64;
            match out.first_sent {
                None => {
                    fresh += 1;
                    bytes += len;
                }
                Some(first_sent) => self.stats.record_result(now, first_sent, |interval| {
                    interval.counts.messages_sent += 1;
                    interval.counts.sent_bytes += len;
                    interval.counts.retries += 1;
                }),
            }
        }
        self.stats.record_result(now, now, |interval| {
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
                first_sent: out.first_sent.unwrap_or(now),
            }));
        }
        if fresh > 0 {
            self.stats.last_sent = out_at;
        }
        self.live.sent.fetch_add(fresh, Ordering::Relaxed);
    }

    /// Records that a part of the batch could not be sent.
    fn unsent(&mut self, part: Range<usize>, now: u64) {
        let counts = &mut self.stats.at(now).counts;
        counts.errors += 1;
        let timeout = nanoseconds(self.options.timeout);
        for out in self.batch.get(part) {
            let (client, id) = (out.client, out.id);
            if let Some(first_sent) = out.first_sent {
                // It was sent once, so it is answered or lost like any other query.
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
        if self.clients.len() <= MAX_UNPOLLED {
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
        let most = if self.clients.len() > MAX_UNPOLLED { RECEIVE_FROM_MANY } else { RECEIVE };
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

    /// Expires queries whose timeout has passed: they are sent again or lost.
    fn expire(&mut self, stopped: &dyn Fn() -> bool) {
        let now = self.due.now();
        if self.deadlines.front().is_none_or(|d| d.at > now) {
            return;
        }
        self.batch.clear();
        while let Some(deadline) = self.deadlines.pop_front_if(|d| d.at <= now) {
            let Deadline { client, id, first_sent, .. } = deadline;
            match self.clients[client as usize].waiting.expire(id, first_sent) {
                Expired::Answered => {}
                Expired::Lost => {
                    self.stats.record_result(now, first_sent, |i| i.counts.lost += 1);
                    self.live.lost.fetch_add(1, Ordering::Relaxed);
                    self.in_flight -= 1;
                }
                Expired::Retry(bytes) => {
                    self.batch.push(client, now, Some(first_sent), id, &bytes);
                    if self.batch.is_full(MAX_BATCH) {
                        break;
                    }
                }
            }
        }
        if !self.batch.is_empty() {
            self.flush(now, stopped);
        }
    }

    /// Sleeps until shortly before a query is due, or until an answer arrives.
    fn wait(&mut self) -> Result<(), Error> {
        // First prepares for later queries: fetches a block or opens a socket.
        if self.due.fetch() {
            return Ok(());
        }
        let sockets = self.clients.len();
        if sockets < self.needed_sockets().min(self.max_sockets) {
            return self.open_clients(sockets + 1);
        }
        let next = self.deadlines.front().map(|d| d.at);
        let now = self.due.now();
        if let Some(nanoseconds) = self.due.pause(now, next, self.held) {
            self.poller.poll(nanoseconds);
            self.stats.record_sleep(nanoseconds, self.due.now() - now);
        }
        Ok(())
    }
}
