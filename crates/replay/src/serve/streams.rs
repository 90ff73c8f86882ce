//! The echo server over TCP, TLS and HTTPS.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::net::TcpStream;
use std::ops::Range;
use std::time::Instant;

use crate::Error;
use crate::Identity;
use crate::byte_stream::ByteStream;
use crate::connection::frames;
use crate::h2::Request;
use crate::h2::Server;
use crate::poller::Interest;
use crate::poller::Poller;
use crate::poller::Ready;

use super::Answerer;
use super::MAX_DELAYED;
use super::STOP_POLL;
use super::Served;
use super::Shared;

/// Maximum number of unsent bytes of answers to a client; while they exceed it, nothing is read
/// from the client.
const BACKLOG: usize = 1 << 20;
/// Size of the read buffer in bytes.
const READ: usize = 64 << 10;
/// The poller key of the listener; keys of clients are their slots, from 0.
const LISTENER: usize = usize::MAX >> 1;

/// Serves connections.
pub(super) struct Streams<'a> {
    listener: TcpListener,
    identity: Option<Identity>,
    /// Whether connections use HTTP/2.
    https: bool,
    shared: &'a Shared<'a>,
    answerer: Answerer<'a>,
    poller: Poller,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    serial: u64,
    /// Delayed answers.
    delayed: VecDeque<Delayed>,
    requests: Vec<Request>,
    buffer: Box<[u8]>,
    out: Vec<u8>,
    pieces: Vec<Range<usize>>,
}

/// A delayed answer.
struct Delayed {
    due: Instant,
    /// Slot of the client.
    slot: usize,
    serial: u64,
    /// The stream of its request; 0 without HTTP/2.
    stream: u32,
    answer: Box<[u8]>,
}

/// A client.
struct Peer {
    connection: ByteStream,
    /// Whether the handshake is complete.
    ready: bool,
    serial: u64,
    interest: Interest,
    /// The HTTP/2 session, with HTTPS.
    h2: Option<Box<Server>>,
    /// The received part of an incomplete message.
    input: Vec<u8>,
    /// Framed answers; the first `written` bytes are sent.
    out: Vec<u8>,
    written: usize,
    /// Number of delayed answers.
    delayed_answers: usize,
    /// Whether the client has closed its sending side.
    ended: bool,
}

impl<'a> Streams<'a> {
    pub(super) fn new(
        listener: TcpListener,
        (identity, https): (Option<Identity>, bool),
        shared: &'a Shared<'a>,
    ) -> Result<Self, Error> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::READ)?;
        Ok(Self {
            listener,
            identity,
            https,
            shared,
            answerer: Answerer::new(shared),
            poller,
            peers: Vec::new(),
            free: Vec::new(),
            serial: 0,
            delayed: VecDeque::new(),
            requests: Vec::new(),
            buffer: vec![0; READ].into(),
            out: Vec::new(),
            pieces: Vec::new(),
        })
    }

    /// Serves until the server stops.
    pub(super) fn run(mut self) -> Served {
        while !self.shared.is_over() {
            self.send_delayed();
            let due = self.delayed.front().map(|d| d.due.saturating_duration_since(Instant::now()));
            let time = due.unwrap_or(STOP_POLL).min(STOP_POLL);
            self.poller.poll(time.as_nanos() as u64);
            for index in 0..self.poller.len() {
                let Some(ready) = self.poller.ready(index) else { break };
                if ready.key == LISTENER {
                    self.accept();
                } else {
                    self.handle_events(ready);
                }
            }
        }
        self.answerer.served
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    self.answerer.served.connections += 1;
                    if self.add_peer(socket).is_err() {
                        self.answerer.served.errors += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        // Out of file descriptors: clients that disconnect free some.
                        self.answerer.served.errors += 1;
                        std::thread::sleep(STOP_POLL);
                    }
                    return;
                }
            }
        }
    }

    fn add_peer(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let tls = self.identity.as_ref().map(Identity::accept).transpose();
        let tls = tls.map_err(io::Error::other)?;
        let slot = self.free.pop().unwrap_or(self.peers.len());
        if slot >= self.peers.len() {
            self.peers.resize_with(slot + 1, || None);
        }
        let interest = Interest::READ;
        if let Err(error) = self.poller.add(&socket, slot, interest) {
            self.free.push(slot);
            return Err(io::Error::other(error));
        }
        self.serial += 1;
        self.peers[slot] = Some(Peer {
            connection: ByteStream::new(socket, tls),
            ready: false,
            serial: self.serial,
            interest,
            h2: self.https.then(|| Box::new(Server::new())),
            input: Vec::new(),
            out: Vec::new(),
            written: 0,
            delayed_answers: 0,
            ended: false,
        });
        Ok(())
    }

    /// Processes the events of a client.
    fn handle_events(&mut self, ready: Ready) {
        let Some(peer) = self.peers.get_mut(ready.key).and_then(Option::as_mut) else { return };
        let mut gone = false;
        if !peer.ready {
            match peer.connection.prepare() {
                Ok(true) if peer.h2.is_some() && !peer.connection.is_h2() => gone = true,
                Ok(ready) => peer.ready = ready,
                Err(_) => gone = true,
            }
        }
        if !peer.ready {
            // Continues the handshake, which may have failed.
        } else if ready.read && !peer.ended && peer.backlog() <= BACKLOG {
            match peer.connection.read(&mut self.buffer) {
                Ok(0) => peer.ended = true,
                Ok(bytes) => self.take(ready.key, bytes),
                Err(error) if is_not_now(&error) => {}
                Err(_) => gone = true,
            }
        } else if ready.read && ready.write && peer.ended {
            // Both sides have closed, or an error occurred.
            gone = true;
        }
        self.write(ready.key, gone);
    }

    /// Processes received bytes of a client, which are in the buffer.
    fn take(&mut self, slot: usize, bytes: usize) {
        let Self { peers, answerer, shared, delayed, buffer, out, pieces, requests, .. } = self;
        let Some(peer) = peers.get_mut(slot).and_then(Option::as_mut) else { return };
        let before = answerer.served.queries;
        let delay = shared.behaviour.delay;
        let due = (!delay.is_zero()).then(|| Instant::now() + delay);
        let bytes = buffer.get(..bytes).unwrap_or_default();
        out.clear();
        pieces.clear();
        let mut answer =
            |peer: &mut Peer, answerer: &mut Answerer<'_>, stream, answer: &[u8]| match due {
                None => peer.push(stream, answer),
                Some(due) if delayed.len() < MAX_DELAYED => {
                    peer.delayed_answers += 1;
                    let (serial, answer) = (peer.serial, answer.into());
                    delayed.push_back(Delayed { due, slot, serial, stream, answer });
                }
                Some(_) => answerer.served.errors += 1,
            };
        if let Some(h2) = &mut peer.h2 {
            requests.clear();
            if h2.take(bytes, requests).is_err() {
                answerer.served.errors += 1;
                peer.ended = true;
            }
            answerer.served.errors += h2.take_refused();
            for Request { stream, body } in requests.drain(..) {
                out.clear();
                answerer.take(&body, out, pieces);
                match pieces.first().and_then(|piece| out.get(piece.clone())) {
                    Some(piece) => answer(peer, answerer, stream, piece),
                    // Frees the stream for another query.
                    None => peer.reset(stream),
                }
                // An HTTP request has only one response.
                answerer.served.answers -= pieces.len().saturating_sub(1) as u64;
                pieces.clear();
            }
            peer.send();
        } else {
            peer.input.extend_from_slice(bytes);
            let used = frames(&peer.input, |message| answerer.take(message, out, pieces));
            peer.input.drain(..used);
            for piece in pieces.drain(..) {
                answer(peer, answerer, 0, out.get(piece).unwrap_or_default());
            }
        }
        answerer.served.extend_span(shared.now());
        shared.count(answerer.served.queries - before);
    }

    /// Writes pending data to a client; closes the connection if the client has closed it and
    /// everything is sent.
    fn write(&mut self, slot: usize, mut gone: bool) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_mut) else { return };
        gone |= peer.write().is_err();
        let left = peer.backlog() > 0 || peer.connection.wants_write();
        if gone || peer.ended && !left && peer.delayed_answers == 0 {
            self.peers[slot] = None;
            self.free.push(slot);
            return;
        }
        let read = !peer.ended && peer.backlog() <= BACKLOG;
        let interest = Interest { read, write: left };
        if interest != peer.interest {
            peer.interest = interest;
            self.poller.change(&peer.connection, slot, interest);
        }
    }

    fn send_delayed(&mut self) {
        let now = Instant::now();
        while let Some(Delayed { slot, serial, stream, answer, .. }) =
            self.delayed.pop_front_if(|delayed| delayed.due <= now)
        {
            let peer = self.peers.get_mut(slot).and_then(Option::as_mut);
            if let Some(peer) = peer.filter(|p| p.serial == serial) {
                peer.delayed_answers -= 1;
                peer.push(stream, &answer);
                peer.send();
                self.write(slot, false);
            } else {
                self.answerer.served.errors += 1;
            }
        }
    }
}

impl Peer {
    /// Number of unsent bytes of answers.
    fn backlog(&self) -> usize {
        self.out.len() - self.written
    }

    /// Adds an answer; with HTTP/2, to the request of `stream`.
    fn push(&mut self, stream: u32, answer: &[u8]) {
        if let Some(h2) = &mut self.h2 {
            return h2.respond(stream, answer);
        }
        // At most as long as the received message, so the length fits 16 bits.
        self.out.extend_from_slice(&(answer.len() as u16).to_be_bytes());
        self.out.extend_from_slice(answer);
    }

    /// Ends the request of a stream without an answer.
    fn reset(&mut self, stream: u32) {
        if let Some(h2) = &mut self.h2 {
            h2.reset(stream);
        }
    }

    /// Moves pending HTTP/2 frames to the output buffer.
    fn send(&mut self) {
        if let Some(h2) = &mut self.h2 {
            h2.send(&mut self.out);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while self.backlog() > 0 {
            match self.connection.write(&self.out[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.out.drain(..self.written);
        self.written = 0;
        if self.ready {
            self.connection.flush()?;
        }
        Ok(())
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
