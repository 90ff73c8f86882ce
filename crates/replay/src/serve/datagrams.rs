//! The echo server over UDP.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;

use crate::socket;
use crate::sys;
use crate::sys::Chunk;

use super::Answerer;
use super::MAX_DELAYED;
use super::STOP_POLL;
use super::Served;
use super::Shared;

/// Maximum number of messages that one call receives.
const RECEIVE: usize = 64;
/// Polling interval of a server that only counts, while queries arrive slowly: a wake-up for each
/// query would take processor time from the sender.
const NAP: Duration = Duration::from_micros(250);
/// Maximum number of queries per polling interval that counts as slow: at higher rates polling must
/// not pause, since the data would leave the cache and the buffer overflow.
const SLOW: u128 = 100;
/// Number of consecutive slow polls before pausing: a sender at full speed also pauses briefly.
const CALM: u32 = 50;
/// Number of polls without a query after which the server waits for the socket instead.
const NAPS: u32 = 80;

/// Serves a socket until the server stops.
pub(super) fn run(socket: &UdpSocket, shared: &Shared<'_>) -> Served {
    let mut echo = Echo {
        socket,
        shared,
        answerer: Answerer::new(shared),
        delayed: VecDeque::new(),
        out: Vec::new(),
        pieces: Vec::new(),
        chunks: Vec::new(),
        sender: sys::Sender::new(),
    };
    sys::join_datagrams(socket.as_fd());
    let mut receiver = sys::Receiver::new(RECEIVE);
    // Number of polls without a query since the last one with queries.
    let mut idle = NAPS;
    // Queries since the last pause, and its time.
    let (mut came, mut looked) = (0_u64, Instant::now());
    let mut calm = 0_u32;
    while !shared.is_over() {
        echo.send_delayed();
        match receiver.receive(socket.as_fd(), RECEIVE) {
            Ok(messages) => {
                idle = 0;
                let before = echo.answerer.served.queries;
                for message in (0..messages).filter_map(|m| receiver.message(m)) {
                    echo.take(&message);
                }
                echo.flush();
                echo.answerer.served.extend_span(shared.now());
                let queries = echo.answerer.served.queries - before;
                came += queries;
                shared.count(queries);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let now = Instant::now();
                let is_slow = u128::from(came) * NAP.as_nanos() <= SLOW * (now - looked).as_nanos();
                (came, looked) = (0, now);
                calm = if is_slow { calm.saturating_add(1) } else { 0 };
                if shared.behaviour.sink && idle < NAPS && calm >= CALM {
                    idle += 1;
                    std::thread::sleep(NAP);
                } else {
                    echo.wait();
                }
            }
            // An ICMP error caused by an answer, or a signal.
            Err(_) => {}
        }
    }
    echo.answerer.served
}

struct Echo<'a> {
    socket: &'a UdpSocket,
    shared: &'a Shared<'a>,
    answerer: Answerer<'a>,
    delayed: VecDeque<(Instant, SocketAddr, Box<[u8]>)>,
    out: Vec<u8>,
    pieces: Vec<Range<usize>>,
    chunks: Vec<Chunk>,
    sender: sys::Sender,
}

impl Echo<'_> {
    fn take(&mut self, message: &sys::Received<'_>) {
        let Some(from) = message.from else { return };
        for datagram in message.datagrams() {
            self.answerer.take(datagram, &mut self.out, &mut self.pieces);
        }
        let delay = self.shared.behaviour.delay;
        if !delay.is_zero() {
            let due = Instant::now() + delay;
            for piece in self.pieces.drain(..) {
                if self.delayed.len() < MAX_DELAYED {
                    let bytes = self.out.get(piece).unwrap_or_default();
                    self.delayed.push_back((due, from, bytes.into()));
                } else {
                    self.answerer.served.errors += 1;
                }
            }
        }
        // Answers to one message have the same lengths, so they are sent with the same
        // segmentation.
        let mut at = 0;
        while at < self.pieces.len() {
            let segment = self.pieces[at].len();
            let alike = self.pieces[at..].iter().take_while(|p| p.len() == segment).count();
            let mut end = at + alike.min(sys::MAX_SEGMENTS);
            let shorter = self.pieces.get(end).is_some_and(|p| (1..segment).contains(&p.len()));
            if shorter && end - at < sys::MAX_SEGMENTS {
                end += 1;
            }
            // Pieces are contiguous.
            let bytes = self.pieces[at].start..self.pieces[end - 1].end;
            self.chunks.push(Chunk { bytes, segment: segment as u16, to: Some(from) });
            at = end;
        }
        self.pieces.clear();
    }

    fn send_delayed(&mut self) {
        let now = Instant::now();
        while let Some((_, to, bytes)) = self.delayed.pop_front_if(|(due, ..)| *due <= now) {
            let start = self.out.len();
            self.out.extend_from_slice(&bytes);
            let bytes = start..self.out.len();
            self.chunks.push(Chunk { bytes, segment: 0, to: Some(to) });
        }
        self.flush();
    }

    fn flush(&mut self) {
        let mut at = 0;
        let mut patience = 1000;
        while at < self.chunks.len() {
            let chunks = &self.chunks[at..];
            match self.sender.send(self.socket.as_fd(), &self.out, chunks) {
                Ok(sent) if sent > 0 => at += sent,
                Err(error) if socket::is_busy(&error) && patience > 0 => patience -= 1,
                _ => {
                    self.answerer.served.errors += chunks[0].messages() as u64;
                    at += 1;
                }
            }
        }
        self.out.clear();
        self.chunks.clear();
    }

    /// Waits until a message arrives or an answer is due.
    fn wait(&self) {
        let due =
            self.delayed.front().map(|(due, ..)| due.saturating_duration_since(Instant::now()));
        let time = due.unwrap_or(STOP_POLL).min(STOP_POLL);
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut polled = [PollFd::new(self.socket, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&timeout)).unwrap_or_default();
    }
}
