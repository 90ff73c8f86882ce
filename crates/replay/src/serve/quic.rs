//! The echo server over QUIC (RFC 9250).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use bytes::BytesMut;
use foldhash::fast::RandomState;
use quinn_proto::Connection;
use quinn_proto::ConnectionHandle;
use quinn_proto::DatagramEvent;
use quinn_proto::Dir;
use quinn_proto::Endpoint;
use quinn_proto::Event;
use quinn_proto::Incoming;
use quinn_proto::ReadError;
use quinn_proto::ServerConfig;
use quinn_proto::StreamEvent;
use quinn_proto::StreamId;
use quinn_proto::VarInt;
use quinn_proto::WriteError;
use quinn_proto::crypto::rustls::QuicServerConfig;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::event::Timespec;

use crate::Error;
use crate::Identity;
use crate::message;
use crate::quic;
use crate::quic::DATAGRAM;
use crate::quic::LENGTH;
use crate::quic::MAX_STREAM_BYTES;
use crate::quic::NO_ERROR;
use crate::quic::PROTOCOL_ERROR;
use crate::quic::UNSPECIFIED_ERROR;
use crate::socket;

use super::Answerer;
use super::MAX_DELAYED;
use super::STOP_POLL;
use super::Served;
use super::Shared;

/// Maximum number of concurrent connections; further ones are refused.
const MAX_CONNECTIONS: usize = 1 << 16;
/// Maximum number of open streams, and so of queries, of a connection.
const STREAMS: u32 = 1000;
/// Maximum number of datagrams received before answers are sent.
const RECEIVE: usize = 256;
/// Maximum number of attempts to send a datagram while the socket's buffer is full.
const MAX_ATTEMPTS: u32 = 1000;

/// Serves QUIC.
pub(super) struct Quic<'a> {
    socket: &'a UdpSocket,
    shared: &'a Shared<'a>,
    answerer: Answerer<'a>,
    endpoint: Endpoint,
    peers: HashMap<ConnectionHandle, Peer, RandomState>,
    serial: u64,
    /// Timers of connections: time, connection, serial.
    timers: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    /// Connections with events to process.
    touched: Vec<ConnectionHandle>,
    /// Delayed answers.
    delayed: VecDeque<Delayed>,
    out: Vec<u8>,
    pieces: Vec<Range<usize>>,
    datagram: Vec<u8>,
}

/// A client's connection.
struct Peer {
    connection: Connection,
    serial: u64,
    timer: Option<Instant>,
    /// Received bytes of incomplete queries.
    queries: HashMap<StreamId, Vec<u8>, RandomState>,
    /// Unsent bytes of answers that exceeded the send window.
    answers: HashMap<StreamId, Vec<u8>, RandomState>,
}

struct Delayed {
    due: Instant,
    handle: ConnectionHandle,
    serial: u64,
    stream: StreamId,
    /// Framed messages.
    bytes: Vec<u8>,
}

impl<'a> Quic<'a> {
    pub(super) fn new(
        socket: &'a UdpSocket,
        identity: &Identity,
        shared: &'a Shared<'a>,
    ) -> Result<Self, Error> {
        let tls = QuicServerConfig::try_from(identity.quic());
        let tls = tls.map_err(|error| Error::Tls(error.to_string()))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        let mut transport = quic::transport();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS));
        config.transport_config(Arc::new(transport));
        Ok(Self {
            socket,
            shared,
            answerer: Answerer::new(shared),
            endpoint: Endpoint::new(quic::endpoint(), Some(Arc::new(config)), false, None),
            peers: HashMap::default(),
            serial: 0,
            timers: BinaryHeap::new(),
            touched: Vec::new(),
            delayed: VecDeque::new(),
            out: Vec::new(),
            pieces: Vec::new(),
            datagram: Vec::new(),
        })
    }

    /// Serves a socket until the server stops.
    pub(super) fn run(mut self) -> Served {
        while !self.shared.is_over() {
            let received = self.receive();
            self.run_timers();
            self.send_delayed();
            while let Some(handle) = self.touched.pop() {
                self.process_events(handle);
            }
            if received == 0 {
                self.wait();
            }
        }
        let handles: Vec<_> = self.peers.keys().copied().collect();
        for handle in handles {
            if let Some(peer) = self.peers.get_mut(&handle) {
                peer.connection.close(Instant::now(), NO_ERROR, Bytes::new());
            }
            self.transmit(handle);
        }
        self.answerer.served
    }

    /// Receives available datagrams; returns their number.
    fn receive(&mut self) -> usize {
        let mut buffer = [0; DATAGRAM];
        for count in 0..RECEIVE {
            let (len, from) = match self.socket.recv_from(&mut buffer) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return count,
                // An ICMP error caused by an answer, or a signal.
                Err(_) => continue,
            };
            let data = BytesMut::from(buffer.get(..len).unwrap_or_default());
            self.datagram.clear();
            let now = Instant::now();
            match self.endpoint.handle(now, from, None, None, data, &mut self.datagram) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(peer) = self.peers.get_mut(&handle) {
                        peer.connection.handle_event(event);
                        self.touch(handle);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming),
                Some(DatagramEvent::Response(transmit)) => {
                    self.datagram.truncate(transmit.size);
                    self.send(transmit.destination);
                }
                None => {}
            }
        }
        RECEIVE
    }

    fn touch(&mut self, handle: ConnectionHandle) {
        if self.touched.last() != Some(&handle) {
            self.touched.push(handle);
        }
    }

    fn accept(&mut self, incoming: Incoming) {
        let remote = incoming.remote_address();
        self.datagram.clear();
        if self.peers.len() >= MAX_CONNECTIONS {
            let transmit = self.endpoint.refuse(incoming, &mut self.datagram);
            self.datagram.truncate(transmit.size);
            self.answerer.served.errors += 1;
            return self.send(remote);
        }
        match self.endpoint.accept(incoming, Instant::now(), &mut self.datagram, None) {
            Ok((handle, connection)) => {
                self.serial += 1;
                let peer = Peer {
                    connection,
                    serial: self.serial,
                    timer: None,
                    queries: HashMap::default(),
                    answers: HashMap::default(),
                };
                self.peers.insert(handle, peer);
                self.touch(handle);
            }
            Err(error) => {
                self.answerer.served.errors += 1;
                if let Some(transmit) = error.response {
                    self.datagram.truncate(transmit.size);
                    self.send(remote);
                }
            }
        }
    }

    /// Continues a connection after an event.
    fn process_events(&mut self, handle: ConnectionHandle) {
        let Some(peer) = self.peers.get_mut(&handle) else { return };
        let mut queries = Vec::new();
        loop {
            while let Some(event) = peer.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(handle, event) {
                    peer.connection.handle_event(event);
                }
            }
            match peer.connection.poll() {
                Some(Event::Connected) => self.answerer.served.connections += 1,
                Some(Event::Stream(StreamEvent::Opened { dir: Dir::Bi })) => {
                    while let Some(stream) = peer.connection.streams().accept(Dir::Bi) {
                        peer.queries.insert(stream, Vec::new());
                        queries.extend(peer.read(stream).map(|query| (stream, query)));
                    }
                }
                Some(Event::Stream(StreamEvent::Readable { id })) => {
                    queries.extend(peer.read(id).map(|query| (id, query)));
                }
                Some(Event::Stream(StreamEvent::Writable { id })) => peer.write(id),
                Some(_) => {}
                None => break,
            }
        }
        let is_drained = peer.connection.is_drained();
        let before = self.answerer.served.queries;
        for (stream, query) in &queries {
            self.answer(handle, *stream, query);
        }
        if !queries.is_empty() {
            self.answerer.served.extend_span(self.shared.now());
            self.shared.count(self.answerer.served.queries - before);
        }
        if is_drained {
            self.peers.remove(&handle);
        } else {
            self.transmit(handle);
        }
    }

    /// Answers the query of a stream, now or later.
    fn answer(&mut self, handle: ConnectionHandle, stream: StreamId, query: &[u8]) {
        let Some(peer) = self.peers.get_mut(&handle) else { return };
        let (out, pieces) = (&mut self.out, &mut self.pieces);
        out.clear();
        pieces.clear();
        // One message with id 0 (§4.2.1).
        let len = query.get(..LENGTH).map(|len| usize::from(u16::from_be_bytes([len[0], len[1]])));
        let message = query.get(LENGTH..).filter(|message| Some(message.len()) == len);
        let Some(message) = message.filter(|message| message::id(message) == 0) else {
            self.answerer.served.other += 1;
            return peer.connection.close(Instant::now(), PROTOCOL_ERROR, Bytes::new());
        };
        self.answerer.take(message, out, pieces);
        if pieces.is_empty() {
            // Frees the stream for another query.
            peer.connection.send_stream(stream).reset(UNSPECIFIED_ERROR).unwrap_or_default();
            return;
        }
        let mut bytes = Vec::with_capacity(out.len() + LENGTH * pieces.len());
        for piece in pieces.drain(..) {
            // At most as long as the received message, so the length fits 16 bits.
            bytes.extend_from_slice(&(piece.len() as u16).to_be_bytes());
            bytes.extend_from_slice(out.get(piece).unwrap_or_default());
        }
        let delay = self.shared.behaviour.delay;
        if delay.is_zero() {
            peer.answers.insert(stream, bytes);
            peer.write(stream);
        } else if self.delayed.len() < MAX_DELAYED {
            let (due, serial) = (Instant::now() + delay, peer.serial);
            self.delayed.push_back(Delayed { due, handle, serial, stream, bytes });
        } else {
            self.answerer.served.errors += 1;
        }
    }

    /// Sends pending data of a connection, and schedules its next timer.
    fn transmit(&mut self, handle: ConnectionHandle) {
        loop {
            let Some(peer) = self.peers.get_mut(&handle) else { return };
            self.datagram.clear();
            let next = peer.connection.poll_transmit(Instant::now(), 1, &mut self.datagram);
            let Some(transmit) = next else { break };
            self.datagram.truncate(transmit.size);
            self.send(transmit.destination);
        }
        let Some(peer) = self.peers.get_mut(&handle) else { return };
        if let Some(at) = peer.connection.poll_timeout()
            && peer.timer.is_none_or(|timer| at < timer)
        {
            peer.timer = Some(at);
            self.timers.push(Reverse((at, handle.0, peer.serial)));
        }
    }

    /// Sends the datagram. A datagram that cannot be sent is lost, and QUIC retransmits its data.
    fn send(&mut self, to: SocketAddr) {
        for _ in 0..MAX_ATTEMPTS {
            match self.socket.send_to(&self.datagram, to) {
                Err(error) if socket::is_busy(&error) => {}
                Ok(_) => return,
                Err(_) => break,
            }
        }
        self.answerer.served.errors += 1;
    }

    /// Continues connections whose timers are due.
    fn run_timers(&mut self) {
        let now = Instant::now();
        while let Some(Reverse((at, handle, serial))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            let handle = ConnectionHandle(handle);
            let peer = self.peers.get_mut(&handle);
            if let Some(peer) = peer.filter(|p| p.serial == serial && p.timer == Some(at)) {
                peer.timer = None;
                peer.connection.handle_timeout(now);
                self.touch(handle);
            }
        }
    }

    fn send_delayed(&mut self) {
        let now = Instant::now();
        while let Some(delayed) = self.delayed.pop_front_if(|delayed| delayed.due <= now) {
            let peer = self.peers.get_mut(&delayed.handle);
            if let Some(peer) = peer.filter(|p| p.serial == delayed.serial) {
                peer.answers.insert(delayed.stream, delayed.bytes);
                peer.write(delayed.stream);
                self.touch(delayed.handle);
            } else {
                self.answerer.served.errors += 1;
            }
        }
    }

    /// Waits until a datagram arrives, or an answer or a timer is due.
    fn wait(&self) {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        let due = self.delayed.front().map(|delayed| delayed.due);
        let next = timer.into_iter().chain(due).min();
        let left = next
            .map_or(STOP_POLL, |at| at.saturating_duration_since(Instant::now()).min(STOP_POLL));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut polled = [PollFd::new(self.socket, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&timeout)).unwrap_or_default();
    }
}

impl Peer {
    /// Reads a stream; returns the query once it is complete, with the length before it, or nothing
    /// if it is invalid.
    fn read(&mut self, stream: StreamId) -> Option<Vec<u8>> {
        let query = self.queries.get_mut(&stream)?;
        let mut recv = self.connection.recv_stream(stream);
        let mut chunks = recv.read(true).ok()?;
        let over = loop {
            match chunks.next(MAX_STREAM_BYTES) {
                Ok(Some(chunk)) if query.len() + chunk.bytes.len() <= MAX_STREAM_BYTES => {
                    query.extend_from_slice(&chunk.bytes);
                }
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Ok(Some(_)) | Err(ReadError::Reset(_)) => {
                    query.clear();
                    break true;
                }
            }
        };
        // Resulting frames are sent with the next datagrams.
        let _ = chunks.finalize();
        if over { self.queries.remove(&stream) } else { None }
    }

    /// Writes as much of an answer as the send window permits.
    fn write(&mut self, stream: StreamId) {
        let Some(mut bytes) = self.answers.remove(&stream) else { return };
        let mut out = self.connection.send_stream(stream);
        while !bytes.is_empty() {
            match out.write(&bytes) {
                Ok(0) | Err(WriteError::Blocked) => {
                    self.answers.insert(stream, bytes);
                    return;
                }
                Ok(written) => drop(bytes.drain(..written)),
                // The client has stopped the stream.
                Err(_) => return,
            }
        }
        out.finish().unwrap_or_default();
    }
}
