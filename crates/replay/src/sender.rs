//! A thread that sends queries when they are due and matches the answers.
//!
//! One turn of the loop: collect what is due, send it, take what has arrived, give up what is too
//! old; then, if nothing happened, sleep until shortly before the next thing is due. The last part
//! of a wait is spent looking at the clock: a sleep ends late by more than a query may.

use std::collections::VecDeque;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use crate::Error;
use crate::Live;
use crate::Options;
use crate::compare::Observer;
use crate::due::AtHand;
use crate::due::Due;
use crate::due::nanoseconds;
use crate::inflight::Expired;
use crate::inflight::Waiting;
use crate::judge::judge;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::socket;
use crate::stats::Stats;
use crate::stats::note;
use crate::sys;
use crate::sys::Chunk;

/// Queries that are collected before the first of them is sent.
const BATCH: usize = 256;
/// Sockets that are asked one by one; more are asked for by epoll.
const FEW: usize = 2;
/// Longer queries are not put together: their frames would not fit a link.
const MAX_SEGMENT: usize = 1400;
/// Times a send that makes no progress is tried.
const PATIENCE: u32 = 10_000;
/// Messages that one call takes from a socket.
const RECEIVE: usize = 32;

/// What a sender did.
pub(crate) struct Part {
    pub(crate) stats: Stats,
    pub(crate) clients: usize,
}

pub(crate) struct Worker<'a> {
    options: &'a Options,
    number: usize,
    due: Due,
    live: &'a Live,
    observer: Option<&'a Observer>,
    stats: Stats,
    clients: Vec<Client>,
    /// How many sockets there may be; more clients share them.
    max_sockets: usize,
    batch: Vec<Out>,
    /// Bytes of the batch, with their ids.
    data: Vec<u8>,
    pieces: Vec<Range<usize>>,
    chunks: Vec<Chunk>,
    deadlines: VecDeque<Deadline>,
    in_flight: usize,
    segmentation: bool,
    send: sys::Sender,
    receive: sys::Receiver,
    poller: Poller,
}

struct Client {
    socket: UdpSocket,
    waiting: Waiting,
}

/// A query of the batch.
#[derive(Clone)]
struct Out {
    client: usize,
    bytes: Range<usize>,
    id: u16,
    due: u64,
    /// When it was first sent, for one that is sent again.
    again: Option<u64>,
}

struct Deadline {
    at: u64,
    client: usize,
    id: u16,
    first_sent: u64,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        options: &'a Options,
        number: usize,
        due: Due,
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
            max_sockets: (socket::limit() / options.threads.max(1)).max(1),
            batch: Vec::with_capacity(BATCH),
            data: Vec::new(),
            pieces: Vec::new(),
            chunks: Vec::new(),
            deadlines: VecDeque::new(),
            in_flight: 0,
            segmentation: options.segmentation,
            send: sys::Sender::new(),
            receive: sys::Receiver::new(RECEIVE),
            poller: Poller::new()?,
        })
    }

    /// Sends all that comes, and waits for the last answers.
    pub(crate) fn run(mut self, stopped: &dyn Fn() -> bool) -> Result<Part, Error> {
        // The sockets of the first block are made before the clock runs.
        self.has_next()?;
        self.due.wait_for_start();
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
                self.wait();
            }
        }
        let now = self.due.now();
        self.stats.at(now).counts.open += self.in_flight as u64;
        let early = &mut self.stats.excluded.counts;
        early.open = early.sent - early.answered - early.lost - early.unwatched;
        Ok(Part { stats: self.stats, clients: self.clients.len() })
    }

    /// Whether there is a query at hand.
    fn has_next(&mut self) -> Result<bool, Error> {
        loop {
            match self.due.look() {
                AtHand::Query => return Ok(true),
                AtHand::Nothing => return Ok(false),
                AtHand::NewBlock => self.open_clients()?,
            }
        }
    }

    /// Makes the sockets that the block needs, before its queries are due.
    fn open_clients(&mut self) -> Result<(), Error> {
        let most = self.due.items().iter().map(|i| i.client as usize / self.options.threads).max();
        let wanted = most.map_or(0, |m| m + 1).min(self.max_sockets);
        while self.clients.len() < wanted {
            let index = (self.clients.len() * self.options.threads + self.number) as u32;
            let local = self.options.bind.map(|range| range.address(index));
            // Many sockets do with little room each.
            let buffer = if self.clients.len() < 64 { usize::MAX } else { 64 << 10 };
            let socket = match socket::client(local, self.options.target, buffer) {
                Ok(socket) => socket,
                Err(_) if !self.clients.is_empty() => {
                    // Ports or files ran out: the others share what there is.
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

    /// Puts what is due into the batch.
    fn collect(&mut self, now: u64) -> Result<(), Error> {
        self.batch.clear();
        self.data.clear();
        let most = (self.options.in_flight / self.options.threads).max(1);
        while self.batch.len() < BATCH && self.has_next()? {
            let Some((item, message)) = self.due.peek() else { break };
            if item.due > now {
                break;
            }
            if self.options.timing.is_max() && self.options.answers && self.in_flight >= most {
                break;
            }
            let client = item.client as usize / self.options.threads % self.clients.len();
            let start = self.data.len();
            self.data.extend_from_slice(message);
            let mut id = 0;
            if self.options.answers {
                // A client with all ids in use waits for one: that shows as lag.
                let waiting = &mut self.clients[client].waiting;
                let Some(free) = waiting.take_id() else {
                    self.data.truncate(start);
                    break;
                };
                id = free;
                self.data[start..start + 2].copy_from_slice(&id.to_be_bytes());
                let retries = self.options.retries;
                waiting.sent(id, now, &self.data[start..], retries, item.number);
                self.in_flight += 1;
            }
            let bytes = start..self.data.len();
            self.batch.push(Out { client, bytes, id, due: item.due, again: None });
            self.due.pass();
        }
        Ok(())
    }

    /// Sends the batch: client by client, what has one length in one piece.
    fn flush(&mut self, now: u64, stopped: &dyn Fn() -> bool) {
        let key = |o: &Out| (o.client, usize::MAX - o.bytes.len());
        if !self.batch.is_sorted_by_key(key) {
            self.batch.sort_by_key(key);
        }
        let mut at = 0;
        while at < self.batch.len() {
            let client = self.batch[at].client;
            let len = self.batch[at..].iter().take_while(|o| o.client == client).count();
            self.send_to_one(at..at + len, now, stopped);
            at += len;
        }
    }

    /// Sends a part of the batch that belongs to one client.
    fn send_to_one(&mut self, part: Range<usize>, now: u64, stopped: &dyn Fn() -> bool) {
        let mut at = part.start;
        let mut patience = PATIENCE;
        while at < part.end {
            self.cut(at..part.end);
            let client = self.batch[at].client;
            let socket = &self.clients[client].socket;
            let sent = self.send.send(socket.as_fd(), &self.data, &self.pieces, &self.chunks);
            let first = self.chunks.first().map_or(1, |c| c.pieces.len()).max(1);
            match sent {
                Ok(chunks) => {
                    let messages: usize = self.chunks[..chunks.min(self.chunks.len())]
                        .iter()
                        .map(|c| c.pieces.len())
                        .sum();
                    self.sent(at..at + messages, now);
                    at += messages;
                    if messages > 0 {
                        continue;
                    }
                }
                Err(error) if socket::is_busy(&error) => {
                    // The way is full: what has arrived is taken meanwhile.
                    self.receive_all();
                    if !stopped() {
                        patience = patience.saturating_sub(1);
                        if patience > 0 {
                            continue;
                        }
                    }
                }
                Err(error) if socket::is_refusal(&error) => {
                    // About an earlier query: this one was not sent yet.
                    self.stats.at(now).counts.refused += 1;
                    patience = patience.saturating_sub(PATIENCE / 8);
                    if patience > 0 {
                        continue;
                    }
                }
                Err(_) if self.segmentation && first > 1 => {
                    self.segmentation = false;
                    continue;
                }
                Err(_) => {}
            }
            self.unsent(at..at + first, now);
            at += first;
        }
    }

    /// Cuts a part of the batch into chunks.
    fn cut(&mut self, part: Range<usize>) {
        self.pieces.clear();
        self.chunks.clear();
        for out in &self.batch[part] {
            let len = out.bytes.len();
            let joins = self.segmentation
                && self.chunks.last().is_some_and(|c| {
                    let segment = usize::from(c.segment);
                    let before = self.pieces.last().map_or(0, Range::len);
                    before == segment
                        && len <= segment
                        && segment <= MAX_SEGMENT
                        && c.pieces.len() < sys::MAX_SEGMENTS
                        && (c.pieces.len() + 1) * segment <= sys::MAX_SEGMENTED
                });
            let at = self.pieces.len();
            let full = self.chunks.len() == sys::MESSAGES;
            match self.chunks.last_mut() {
                Some(last) if joins => last.pieces.end = at + 1,
                _ if full => break,
                _ => self.chunks.push(Chunk { pieces: at..at + 1, segment: len as u16, to: None }),
            }
            self.pieces.push(out.bytes.clone());
        }
    }

    /// A part of the batch is out.
    fn sent(&mut self, part: Range<usize>, now: u64) {
        let out_at = self.due.now();
        let (scheduled, answers) = (!self.options.timing.is_max(), self.options.answers);
        let timeout = nanoseconds(self.options.timeout);
        let counted = scheduled && now >= self.stats.warm_up;
        let mut fresh = 0;
        if counted {
            for out in self.batch[part.clone()].iter().filter(|o| o.again.is_none()) {
                note(&mut self.stats.lag, out_at.saturating_sub(out.due));
            }
        }
        for out in &self.batch[part] {
            let (bytes, again) = (out.bytes.len() as u64, u64::from(out.again.is_some()));
            let first_sent = out.again.unwrap_or(now);
            self.stats.settle(now, first_sent, |interval| {
                let counts = &mut interval.counts;
                counts.messages_sent += 1;
                counts.sent_bytes += bytes;
                counts.retries += again;
                counts.sent += 1 - again;
                counts.unwatched += u64::from(!answers);
            });
            fresh += 1 - again;
            if answers {
                let (client, id) = (out.client, out.id);
                self.deadlines.push_back(Deadline { at: now + timeout, client, id, first_sent });
            }
        }
        self.stats.last_sent = out_at;
        self.live.sent.fetch_add(fresh, Ordering::Relaxed);
    }

    /// A part of the batch could not be sent.
    fn unsent(&mut self, part: Range<usize>, now: u64) {
        let counts = &mut self.stats.at(now).counts;
        counts.errors += 1;
        let timeout = nanoseconds(self.options.timeout);
        for out in &self.batch[part] {
            if let Some(first_sent) = out.again {
                // It went out once, so it is answered or lost like any other.
                let (client, id) = (out.client, out.id);
                self.deadlines.push_back(Deadline { at: now + timeout, client, id, first_sent });
                continue;
            }
            counts.unsent += 1;
            if self.options.answers {
                self.clients[out.client].waiting.unsent(out.id);
                self.in_flight -= 1;
            }
        }
    }

    /// Takes what has arrived; how many messages that is.
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
        let Some(client) = self.clients.get_mut(index) else { return 0 };
        let messages = match self.receive.receive(client.socket.as_fd()) {
            Ok(messages) => messages,
            Err(error) if socket::is_busy(&error) => return 0,
            Err(error) => {
                let now = self.due.now();
                let counts = &mut self.stats.at(now).counts;
                if socket::is_refusal(&error) {
                    counts.refused += 1;
                } else {
                    counts.errors += 1;
                }
                return 0;
            }
        };
        let now = self.due.now();
        let mut received = 0;
        let mut answered = 0;
        for message in (0..messages).filter_map(|m| self.receive.message(m)) {
            for datagram in message.datagrams() {
                received += 1;
                answered += u64::from(judge(
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

    /// Gives up what is too old, or sends it again.
    fn expire(&mut self, stopped: &dyn Fn() -> bool) {
        let now = self.due.now();
        if self.deadlines.front().is_none_or(|d| d.at > now) {
            return;
        }
        self.batch.clear();
        self.data.clear();
        while let Some(deadline) = self.deadlines.pop_front_if(|d| d.at <= now) {
            let Deadline { client, id, first_sent, .. } = deadline;
            match self.clients[client].waiting.expire(id, first_sent) {
                Expired::Settled => {}
                Expired::Lost => {
                    self.stats.settle(now, first_sent, |i| i.counts.lost += 1);
                    self.live.lost.fetch_add(1, Ordering::Relaxed);
                    self.in_flight -= 1;
                }
                Expired::Again(bytes) => {
                    let start = self.data.len();
                    self.data.extend_from_slice(&bytes);
                    let bytes = start..self.data.len();
                    self.batch.push(Out { client, bytes, id, due: now, again: Some(first_sent) });
                    if self.batch.len() >= BATCH {
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
    fn wait(&mut self) {
        let next = self.deadlines.front().map(|d| d.at);
        match self.due.pause(self.due.now(), next) {
            Some(nanoseconds) => self.poller.poll(nanoseconds),
            None => std::hint::spin_loop(),
        }
    }
}
