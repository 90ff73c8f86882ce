//! An echo server that tests and measurements send to.
//!
//! It answers each query with itself, QR set. On request it loses, delays, doubles and spoils
//! answers, by a random sequence that is the same in every run.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;

use crate::Error;
use crate::message;
use crate::socket;
use crate::sys;
use crate::sys::Chunk;

/// Answers that wait for their time; more are dropped, and counted.
const MAX_DELAYED: usize = 1 << 20;
/// How often a quiet server looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);
/// Messages that one call takes.
const RECEIVE: usize = 64;

/// What the server does with queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Behaviour {
    /// Share of queries that are not answered, 0 to 1.
    pub drop: f64,
    /// Share of queries that get bytes that are no DNS.
    pub garbage: f64,
    /// Share of queries that get an answer to another question.
    pub mismatch: f64,
    /// Share of queries that get their answer twice.
    pub double: f64,
    /// How late answers are.
    pub delay: Duration,
    /// Response code of answers.
    pub rcode: u8,
    /// Answers nothing at all.
    pub sink: bool,
    /// Stops after so many queries.
    pub queries: Option<u64>,
}

impl Behaviour {
    /// Whether each message can be answered as it came.
    fn is_plain(&self) -> bool {
        self.drop + self.garbage + self.mismatch + self.double == 0.0 && self.delay.is_zero()
    }
}

/// What a server saw and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Queries that arrived.
    pub queries: u64,
    /// Messages that arrived and are no query.
    pub other: u64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Right answers that were sent, second ones included.
    pub answers: u64,
    /// Queries that were not answered on purpose.
    pub dropped: u64,
    /// Queries that got garbage or an answer to another question.
    pub spoiled: u64,
    /// Answers that could not be sent.
    pub errors: u64,
    /// Times of the first and the last query, in nanoseconds of the server's life.
    pub span: Option<(u64, u64)>,
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    socket: UdpSocket,
    behaviour: Behaviour,
}

/// Listens on `at` and serves until `stop`.
///
/// # Errors
/// Where it cannot listen there.
pub fn serve(at: SocketAddr, behaviour: Behaviour, stop: &AtomicBool) -> Result<Served, Error> {
    Ok(Server::bind(at, behaviour)?.run(stop))
}

impl Server {
    /// Listens on `at`; port 0 takes any that is free.
    ///
    /// # Errors
    /// Where it cannot listen there.
    pub fn bind(at: SocketAddr, behaviour: Behaviour) -> Result<Self, Error> {
        let listen = || {
            let socket = UdpSocket::bind(at)?;
            socket.set_nonblocking(true)?;
            socket::enlarge(&socket, usize::MAX);
            Ok(socket)
        };
        let socket = listen().map_err(|error| Error::Listen { at, error })?;
        sys::join_datagrams(socket.as_fd());
        Ok(Self { socket, behaviour })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop`, or until it has seen as many queries as it should.
    pub fn run(self, stop: &AtomicBool) -> Served {
        let mut echo = Echo {
            socket: &self.socket,
            behaviour: self.behaviour,
            served: Served::default(),
            random: 0x853c_49e6_748f_ea9b,
            delayed: VecDeque::new(),
            out: Vec::new(),
            pieces: Vec::new(),
            chunks: Vec::new(),
            sender: sys::Sender::new(),
        };
        let start = Instant::now();
        let mut receiver = sys::Receiver::new(RECEIVE);
        while !stop.load(Ordering::Relaxed) {
            echo.send_delayed();
            match receiver.receive(self.socket.as_fd()) {
                Ok(messages) => {
                    let now = start.elapsed().as_nanos() as u64;
                    for message in (0..messages).filter_map(|m| receiver.message(m)) {
                        echo.take(&message);
                    }
                    echo.flush();
                    let first = echo.served.span.map_or(now, |(first, _)| first);
                    echo.served.span = Some((first, now));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => echo.wait(),
                // An ICMP error about an answer, or a signal.
                Err(_) => {}
            }
            if self.behaviour.queries.is_some_and(|most| echo.served.queries >= most) {
                break;
            }
        }
        echo.served
    }
}

struct Echo<'a> {
    socket: &'a UdpSocket,
    behaviour: Behaviour,
    served: Served,
    random: u64,
    delayed: VecDeque<(Instant, SocketAddr, Box<[u8]>)>,
    out: Vec<u8>,
    pieces: Vec<Range<usize>>,
    chunks: Vec<Chunk>,
    sender: sys::Sender,
}

impl Echo<'_> {
    fn take(&mut self, message: &sys::Received<'_>) {
        let Some(from) = message.from else { return };
        let first = self.pieces.len();
        for datagram in message.datagrams() {
            self.served.bytes += datagram.len() as u64;
            if !message::is_query(datagram) {
                self.served.other += 1;
                continue;
            }
            self.served.queries += 1;
            if self.behaviour.sink {
                self.served.dropped += 1;
            } else if self.behaviour.is_plain() {
                self.echo(datagram);
            } else {
                self.mistreat(datagram, from);
            }
        }
        // Answers to one message have its lengths, so they go out as it came in.
        let mut at = first;
        while at < self.pieces.len() {
            let segment = self.pieces[at].len();
            let alike = self.pieces[at..].iter().take_while(|p| p.len() == segment).count();
            let end = at + alike.min(sys::MAX_SEGMENTS);
            let to = Some(from);
            self.chunks.push(Chunk { pieces: at..end, segment: segment as u16, to });
            at = end;
        }
    }

    /// Puts the answer to `query` into the pieces that go out.
    fn echo(&mut self, query: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(query);
        if let Some([_, _, flags, code, ..]) = self.out.get_mut(start..) {
            *flags |= 0x80;
            *code = *code & 0xf0 | self.behaviour.rcode & 15;
        }
        self.pieces.push(start..self.out.len());
        self.served.answers += 1;
    }

    /// Loses, spoils, doubles or delays.
    fn mistreat(&mut self, query: &[u8], from: SocketAddr) {
        let Behaviour { drop, garbage, mismatch, double, delay, .. } = self.behaviour;
        let chance = self.chance();
        if chance < drop {
            self.served.dropped += 1;
            return;
        }
        let start = self.pieces.len();
        self.echo(query);
        let range = self.pieces[start].clone();
        if chance < drop + garbage {
            self.served.answers -= 1;
            self.served.spoiled += 1;
            // Too short for a header, so never an answer by accident.
            self.out.truncate(range.start + 7);
            self.pieces[start] = range.start..self.out.len();
        } else if chance < drop + garbage + mismatch {
            self.served.answers -= 1;
            self.served.spoiled += 1;
            // The class of the question.
            let last = message::HEADER.max(range.len() / 2).min(range.len() - 1);
            self.out[range.start + last] ^= 1;
            self.out[range.start + 2] ^= 0x40;
        } else if chance < drop + garbage + mismatch + double {
            self.echo(query);
        }
        if !delay.is_zero() {
            let due = Instant::now() + delay;
            for piece in self.pieces.drain(start..) {
                if self.delayed.len() < MAX_DELAYED {
                    let bytes = self.out.get(piece).unwrap_or_default();
                    self.delayed.push_back((due, from, bytes.into()));
                } else {
                    self.served.errors += 1;
                }
            }
        }
    }

    /// A number from 0 to 1 (PCG's multiplier and output, in short).
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mixed = (self.random >> 33) ^ (self.random >> 51);
        (mixed & 0xffff_ffff) as f64 / 2_147_483_648.0 % 1.0
    }

    fn send_delayed(&mut self) {
        let now = Instant::now();
        while let Some((_, to, bytes)) = self.delayed.pop_front_if(|(due, ..)| *due <= now) {
            let (start, piece) = (self.out.len(), self.pieces.len());
            self.out.extend_from_slice(&bytes);
            self.pieces.push(start..self.out.len());
            self.chunks.push(Chunk { pieces: piece..piece + 1, segment: 0, to: Some(to) });
        }
        self.flush();
    }

    fn flush(&mut self) {
        let mut at = 0;
        let mut patience = 1000;
        while at < self.chunks.len() {
            let chunks = &self.chunks[at..];
            match self.sender.send(self.socket.as_fd(), &self.out, &self.pieces, chunks) {
                Ok(sent) if sent > 0 => at += sent,
                Err(error) if socket::is_busy(&error) && patience > 0 => patience -= 1,
                _ => {
                    self.served.errors += chunks[0].pieces.len() as u64;
                    at += 1;
                }
            }
        }
        self.out.clear();
        self.pieces.clear();
        self.chunks.clear();
    }

    /// Until something arrives or is due.
    fn wait(&self) {
        let due =
            self.delayed.front().map(|(due, ..)| due.saturating_duration_since(Instant::now()));
        let time = due.unwrap_or(LOOK).min(LOOK);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut polled = [PollFd::new(self.socket, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&timeout)).unwrap_or_default();
    }
}
