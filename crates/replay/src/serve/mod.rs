//! An echo server for tests and measurements.
//!
//! It answers each query with a copy of it, QR set, over UDP and TCP on one port; optionally with
//! TLS or HTTPS over TCP, and with QUIC over UDP. On request it drops, delays, duplicates and
//! corrupts answers, by a pseudorandom sequence that is the same in every run. One thread serves
//! datagrams, another one connections; each has an [`Answerer`] that decides the answers.

mod answer;
mod datagrams;
#[cfg(feature = "quic")]
mod quic;
mod streams;

use std::io;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::Error;
use crate::Identity;
use crate::socket;

use answer::Answerer;

/// Maximum number of delayed answers; further ones are dropped, and counted.
const MAX_DELAYED: usize = 1 << 20;
/// Backlog of connections to accept; the system's limit (net.core.somaxconn) may be lower.
const ACCEPT_BACKLOG: i32 = 4096;
/// Interval at which an idle server checks whether to stop.
const STOP_POLL: Duration = Duration::from_millis(20);
/// Number of ports tried for port 0: a port that is free for UDP may be in use for TCP.
const PORTS: usize = 16;

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerBehaviour {
    /// Share of queries that are not answered, 0 to 1.
    pub drop: f64,
    /// Share of queries that get bytes that are not a DNS message.
    pub garbage: f64,
    /// Share of queries that get an answer to another question.
    pub mismatch: f64,
    /// Share of queries that get their answer twice.
    pub double: f64,
    /// Delay of answers.
    pub delay: Duration,
    /// Response code of answers.
    pub rcode: u8,
    /// Whether no query is answered.
    pub sink: bool,
    /// Stop after this many queries.
    pub queries: Option<u64>,
}

impl ServerBehaviour {
    /// Whether each answer is a copy of its query, sent at once.
    fn is_plain(&self) -> bool {
        self.drop + self.garbage + self.mismatch + self.double == 0.0 && self.delay.is_zero()
    }
}

/// Counts of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of queries received.
    pub queries: u64,
    /// Number of messages received that are not queries.
    pub other: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// Number of correct answers sent, including duplicates.
    pub answers: u64,
    /// Number of queries that were deliberately not answered.
    pub dropped: u64,
    /// Number of queries that got garbage or an answer to another question.
    pub spoiled: u64,
    /// Number of answers that could not be sent.
    pub errors: u64,
    /// Number of connections opened by clients.
    pub connections: u64,
    /// Times of the first and the last query, in nanoseconds since the start of the server.
    pub span: Option<(u64, u64)>,
}

impl Served {
    /// Adds the counts of another thread.
    fn add(&mut self, other: &Self) {
        self.queries += other.queries;
        self.other += other.other;
        self.bytes += other.bytes;
        self.answers += other.answers;
        self.dropped += other.dropped;
        self.spoiled += other.spoiled;
        self.errors += other.errors;
        self.connections += other.connections;
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// Extends the span to queries received at `now`.
    fn extend_span(&mut self, now: u64) {
        self.span = Some((self.span.map_or(now, |(first, _)| first), now));
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    socket: UdpSocket,
    listener: TcpListener,
    behaviour: ServerBehaviour,
    identity: Option<Identity>,
    /// Whether connections use HTTPS.
    https: bool,
    #[cfg(feature = "quic")]
    quic: Option<Identity>,
}

/// State shared by the threads of a server.
struct Shared<'a> {
    stop: &'a AtomicBool,
    enough: AtomicBool,
    queries: AtomicU64,
    /// Number of queries accepted by the threads, if it is limited.
    accepted: AtomicU64,
    start: Instant,
    behaviour: ServerBehaviour,
}

impl Shared<'_> {
    /// Whether another query may be answered: queries beyond the limit that arrive with the last
    /// one are not.
    fn takes_query(&self) -> bool {
        self.behaviour
            .queries
            .is_none_or(|most| self.accepted.fetch_add(1, Ordering::Relaxed) < most)
    }

    /// Counts queries, and sets `enough` when the limit is reached.
    fn count(&self, queries: u64) {
        let all = self.queries.fetch_add(queries, Ordering::Relaxed) + queries;
        if self.behaviour.queries.is_some_and(|most| all >= most) {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.enough.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the start of the server.
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// Listens on `at` and serves until `stop`.
///
/// # Errors
/// If it cannot listen on this address.
pub fn serve(
    at: SocketAddr,
    behaviour: ServerBehaviour,
    stop: &AtomicBool,
) -> Result<Served, Error> {
    Server::bind(at, behaviour)?.run(stop)
}

impl Server {
    /// Listens on `at`; port 0 selects a free port.
    ///
    /// # Errors
    /// If it cannot listen on this address.
    pub fn bind(at: SocketAddr, behaviour: ServerBehaviour) -> Result<Self, Error> {
        let listen = || {
            let socket = UdpSocket::bind(at)?;
            let listener = TcpListener::bind(socket.local_addr()?)?;
            // On Linux a second listen(2) changes the length of the queue.
            rustix::net::listen(&listener, ACCEPT_BACKLOG)?;
            socket.set_nonblocking(true)?;
            listener.set_nonblocking(true)?;
            socket::enlarge(&socket, usize::MAX);
            Ok((socket, listener))
        };
        let tries = if at.port() == 0 { PORTS } else { 1 };
        let mut listened = listen();
        for _ in 1..tries {
            if listened.is_ok() {
                break;
            }
            listened = listen();
        }
        let (socket, listener) = listened.map_err(|error| Error::Listen { at, error })?;
        Ok(Self {
            socket,
            listener,
            behaviour,
            identity: None,
            https: false,
            #[cfg(feature = "quic")]
            quic: None,
        })
    }

    /// Enables TLS on connections.
    pub fn with_tls(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Enables HTTPS on connections (RFC 8484): HTTP/2, and POST to any path.
    pub fn with_https(self, identity: &Identity) -> Self {
        Self { identity: Some(identity.with_h2()), https: true, ..self }
    }

    /// Makes the server accept only QUIC in datagrams (RFC 9250).
    #[cfg(feature = "quic")]
    pub fn with_quic(self, identity: Identity) -> Self {
        Self { quic: Some(identity), ..self }
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop`, or until the limit of queries is reached and all connections are
    /// closed.
    ///
    /// # Errors
    /// If epoll(7) is not available, and if the identity cannot be used for QUIC.
    pub fn run(self, stop: &AtomicBool) -> Result<Served, Error> {
        let shared = Shared {
            stop,
            enough: AtomicBool::new(false),
            queries: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            start: Instant::now(),
            behaviour: self.behaviour,
        };
        let streams = streams::Streams::new(self.listener, (self.identity, self.https), &shared)?;
        #[cfg(feature = "quic")]
        let quic = self.quic.map(|identity| quic::Quic::new(&self.socket, &identity, &shared));
        #[cfg(feature = "quic")]
        let quic = quic.transpose()?;
        Ok(std::thread::scope(|scope| {
            let streams = scope.spawn(|| streams.run());
            #[cfg(feature = "quic")]
            let mut served = match quic {
                Some(quic) => quic.run(),
                None => datagrams::run(&self.socket, &shared),
            };
            #[cfg(not(feature = "quic"))]
            let mut served = datagrams::run(&self.socket, &shared);
            match streams.join() {
                Ok(other) => served.add(&other),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            served
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_answered_queries_is_limited() {
        let behaviour = ServerBehaviour { queries: Some(2), ..ServerBehaviour::default() };
        let server = Server::bind(([127, 0, 0, 1], 0).into(), behaviour).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.address().unwrap()).unwrap();
        // All queries are in the socket before the server reads the first.
        for id in 0..5 {
            let query = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
            client.send(&[&[0, id], &query[2..]].concat()).unwrap();
        }
        let served = server.run(&AtomicBool::new(false)).unwrap();
        assert_eq!((served.queries, served.answers), (2, 2));
    }

    #[test]
    fn a_burst_of_clients_is_connected_at_once() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        let most = most.ok().and_then(|text| text.trim().parse::<usize>().ok()).unwrap_or(128);
        let server = Server::bind(([127, 0, 0, 1], 0).into(), ServerBehaviour::default()).unwrap();
        let at = server.address().unwrap();
        let wait = Duration::from_millis(500);
        // The server does not run, so that the connections stay in the backlog; more than the 128
        // of the standard library.
        let clients: Vec<_> = (0..300.min(most))
            .map(|_| std::net::TcpStream::connect_timeout(&at, wait).unwrap())
            .collect();
        assert_eq!(clients.len(), 300.min(most));
    }
}
