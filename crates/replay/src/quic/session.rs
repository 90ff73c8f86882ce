//! A QUIC connection of a client.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use bytes::BytesMut;
use foldhash::fast::RandomState;
use quinn_proto::ClientConfig;
use quinn_proto::Connection;
use quinn_proto::ConnectionHandle;
use quinn_proto::DatagramEvent;
use quinn_proto::Dir;
use quinn_proto::Endpoint;
use quinn_proto::EndpointConfig;
use quinn_proto::Event;
use quinn_proto::ReadError;
use quinn_proto::StreamEvent;
use quinn_proto::StreamId;
use quinn_proto::VarInt;
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::DigitallySignedStruct;
use rustls::SignatureScheme;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::danger::ServerCertVerified;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::UnixTime;

use crate::connection::frames;
use crate::socket;

use super::DATAGRAM;
use super::LENGTH;
use super::MAX_STREAM_BYTES;
use super::NO_ERROR;
use super::REQUEST_CANCELLED;

/// Maximum number of consecutive datagrams received, so that other connections are served as well.
const RECEIVE: usize = 64;
/// Receive buffer of a client's socket, in bytes.
const BUFFER: usize = 256 << 10;

/// State shared by the connections of one client: TLS sessions to resume.
#[derive(Clone)]
pub(crate) struct Client {
    config: ClientConfig,
    endpoint: Arc<EndpointConfig>,
    name: Arc<str>,
    verified: Arc<AtomicU64>,
}

impl Client {
    /// A client with the TLS configuration `config`, for a server with this name that `inner`
    /// verifies.
    pub(crate) fn new(
        mut config: rustls::ClientConfig,
        inner: Arc<dyn ServerCertVerifier>,
        name: &str,
    ) -> Result<Self, String> {
        config.alpn_protocols = vec![super::ALPN.to_vec()];
        let verified = Arc::new(AtomicU64::new(0));
        let counting = Counting { inner, verified: Arc::clone(&verified) };
        config.dangerous().set_certificate_verifier(Arc::new(counting));
        let tls = QuicClientConfig::try_from(config).map_err(|error| error.to_string())?;
        let mut config = ClientConfig::new(Arc::new(tls));
        let mut transport = super::transport();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
        config.transport_config(Arc::new(transport));
        Ok(Self { config, endpoint: super::endpoint(), name: name.into(), verified })
    }
}

/// A connection of a client, with the socket that it alone uses.
pub(crate) struct Session {
    socket: UdpSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    remote: SocketAddr,
    is_ready: bool,
    /// The reason why the connection ended, if it did.
    lost: Option<String>,
    /// Queries that wait for the rest of their answer, by stream: the id, and the bytes received.
    streams: HashMap<StreamId, Stream, RandomState>,
    readable: Vec<StreamId>,
    /// Whether no more streams may be opened now.
    is_full: bool,
    /// Number of STREAM frames sent when last checked, and number of queries for which none was
    /// sent yet.
    frames: u64,
    pending: usize,
    /// The unsent rest of a query that exceeded the send window, and its stream.
    rest: Option<(StreamId, Vec<u8>)>,
    datagram: Vec<u8>,
    /// Whether that datagram is still to be sent.
    is_blocked: bool,
    verified: Arc<AtomicU64>,
    /// Number of servers verified before it was started.
    before: u64,
}

#[derive(Debug, Default)]
struct Stream {
    id: u16,
    bytes: Vec<u8>,
}

impl Session {
    /// Starts a connection, from `local` or from any address.
    pub(crate) fn begin(
        client: &Client,
        local: Option<IpAddr>,
        to: SocketAddr,
    ) -> io::Result<Self> {
        let socket = socket::datagrams(local, to, BUFFER)?;
        let mut endpoint = Endpoint::new(Arc::clone(&client.endpoint), None, false, None);
        let (config, now) = (client.config.clone(), Instant::now());
        let (handle, connection) =
            endpoint.connect(now, config, to, &client.name).map_err(io::Error::other)?;
        let mut session = Self {
            socket,
            endpoint,
            handle,
            connection,
            remote: to,
            is_ready: false,
            lost: None,
            streams: HashMap::default(),
            readable: Vec::new(),
            is_full: false,
            frames: 0,
            pending: 0,
            rest: None,
            datagram: Vec::with_capacity(DATAGRAM),
            is_blocked: false,
            verified: Arc::clone(&client.verified),
            before: client.verified.load(Ordering::Relaxed),
        };
        session.transmit()?;
        Ok(session)
    }

    /// Continues the handshake; returns whether queries can be sent.
    pub(crate) fn prepare(&mut self) -> io::Result<bool> {
        self.receive()?;
        Ok(self.is_ready)
    }

    /// Processes received datagrams and due timers, and sends the response.
    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM];
        let mut out = Vec::new();
        for _ in 0..RECEIVE {
            let len = match self.socket.recv(&mut buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let data = BytesMut::from(buffer.get(..len).unwrap_or_default());
            let now = Instant::now();
            match self.endpoint.handle(now, self.remote, None, None, data, &mut out) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection.handle_event(event);
                }
                // A client accepts no connections, and other datagrams get no response.
                Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
                Some(DatagramEvent::Response(_)) | None => {}
            }
            out.clear();
        }
        let now = Instant::now();
        if self.timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        self.take_events();
        self.transmit()?;
        match &self.lost {
            None => Ok(()),
            Some(why) => Err(io::Error::other(why.clone())),
        }
    }

    fn take_events(&mut self) {
        loop {
            while let Some(event) = self.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    self.connection.handle_event(event);
                }
            }
            let Some(event) = self.connection.poll() else { break };
            match event {
                Event::Connected => self.is_ready = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason.to_string()),
                Event::Stream(StreamEvent::Readable { id }) => self.readable.push(id),
                Event::Stream(StreamEvent::Available { .. }) => self.is_full = false,
                _ => {}
            }
        }
    }

    /// Sends pending datagrams; returns whether the socket accepted all of them.
    fn transmit(&mut self) -> io::Result<bool> {
        loop {
            if !self.is_blocked {
                self.datagram.clear();
                let next = self.connection.poll_transmit(Instant::now(), 1, &mut self.datagram);
                let Some(transmit) = next else { return Ok(true) };
                self.datagram.truncate(transmit.size);
            }
            match self.socket.send(&self.datagram) {
                Ok(_) => self.is_blocked = false,
                Err(error) if socket::is_busy(&error) => {
                    self.is_blocked = true;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether it waits for its socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        self.is_blocked
    }

    /// Time of its next timer.
    pub(crate) fn timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Whether it resumed an earlier TLS session: then the certificate was not verified again.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_ready && self.verified.load(Ordering::Relaxed) == self.before
    }

    /// Whether another query can be accepted now.
    pub(crate) fn can_send(&self) -> bool {
        !self.is_full && self.rest.is_none()
    }

    /// Accepts a query, with the length before it; its answer is returned with `id`. Returns false
    /// if it cannot be accepted now.
    pub(crate) fn request(&mut self, framed: &[u8], id: u16) -> bool {
        if !self.can_send() {
            return false;
        }
        let Some(stream) = self.connection.streams().open(Dir::Bi) else {
            self.is_full = true;
            return false;
        };
        let mut bytes = framed.to_vec();
        if let Some(own) = bytes.get_mut(LENGTH..LENGTH + 2) {
            own.fill(0);
        }
        self.streams.insert(stream, Stream { id, bytes: Vec::new() });
        self.pending += 1;
        self.rest = Some((stream, bytes));
        self.push_rest();
        true
    }

    /// Continues with partially accepted queries.
    fn push_rest(&mut self) {
        let Some((stream, mut bytes)) = self.rest.take() else { return };
        let mut out = self.connection.send_stream(stream);
        while !bytes.is_empty() {
            match out.write(&bytes) {
                Ok(0) | Err(quinn_proto::WriteError::Blocked) => {
                    self.rest = Some((stream, bytes));
                    return;
                }
                Ok(written) => drop(bytes.drain(..written)),
                // The server has stopped the stream: it will not answer, or it has answered.
                Err(_) => return,
            }
        }
        out.finish().unwrap_or_default();
    }

    /// Sends accepted queries as far as congestion control allows; returns the number that were
    /// sent for the first time. (A long one counts with its first datagram.)
    pub(crate) fn flush(&mut self) -> io::Result<usize> {
        self.push_rest();
        self.transmit()?;
        let frames = self.connection.stats().frame_tx.stream;
        let sent = (frames.saturating_sub(self.frames) as usize).min(self.pending);
        self.frames = frames;
        self.pending -= sent;
        Ok(sent)
    }

    /// Processes received datagrams, and returns complete answers: id and message, which is empty
    /// if it is invalid.
    pub(crate) fn read(&mut self, out: &mut impl FnMut(u16, &[u8])) -> io::Result<()> {
        let received = self.receive();
        while let Some(stream) = self.readable.pop() {
            self.read_stream(stream, out);
        }
        // Reading extends the receive window, which must be announced.
        self.transmit()?;
        received
    }

    fn read_stream(&mut self, id: StreamId, out: &mut impl FnMut(u16, &[u8])) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mut recv = self.connection.recv_stream(id);
        let Ok(mut chunks) = recv.read(true) else { return };
        let is_answered = loop {
            match chunks.next(MAX_STREAM_BYTES) {
                Ok(Some(chunk)) if stream.bytes.len() + chunk.bytes.len() <= MAX_STREAM_BYTES => {
                    stream.bytes.extend_from_slice(&chunk.bytes);
                }
                Ok(Some(_)) => {
                    stream.bytes.clear();
                    break true;
                }
                Ok(None) => break true,
                Err(ReadError::Blocked) => {
                    // Resulting frames are sent with the next datagrams.
                    let _ = chunks.finalize();
                    return;
                }
                // The server will not answer; the query is lost when its timeout expires.
                Err(ReadError::Reset(_)) => break false,
            }
        };
        let _ = chunks.finalize();
        if let Some(Stream { id, mut bytes }) = self.streams.remove(&id)
            && is_answered
        {
            deliver_answers(id, &mut bytes, out);
        }
    }

    /// Stops waiting for the answer to the query with this id.
    pub(crate) fn cancel(&mut self, id: u16) {
        let found = self.streams.iter().find(|(_, s)| s.id == id).map(|(stream, _)| *stream);
        if let Some(stream) = found {
            self.streams.remove(&stream);
            // Fails if the stream has ended already.
            self.connection.recv_stream(stream).stop(REQUEST_CANCELLED).unwrap_or_default();
        }
    }

    /// Whether the server has acknowledged all accepted queries.
    pub(crate) fn is_delivered(&mut self) -> bool {
        self.rest.is_none() && self.connection.streams().send_streams() == 0
    }

    /// Closes the connection.
    pub(crate) fn end(&mut self) {
        self.connection.close(Instant::now(), NO_ERROR, Bytes::new());
        // If the connection is broken, no close frame is sent.
        self.transmit().unwrap_or_default();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Passes on the messages of a stream that has ended, with the id of their query in place of the
/// required 0.
fn deliver_answers(id: u16, bytes: &mut [u8], out: &mut impl FnMut(u16, &[u8])) {
    let mut at = 0;
    while let Some(message) = message(bytes, at) {
        match bytes.get_mut(message.clone()) {
            Some([0, 0, ..]) => {
                bytes[message.start..message.start + 2].copy_from_slice(&id.to_be_bytes());
                out(id, &bytes[message.clone()]);
            }
            // Too short for an answer, or its id is not 0.
            _ => out(id, &[]),
        }
        at = message.end;
    }
    if at < bytes.len() || at == 0 {
        out(id, &[]);
    }
}

/// The range of the message whose length is at `at`, if it is complete.
fn message(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let mut found = None;
    frames(bytes.get(at..)?, |message| {
        found.get_or_insert(message.len());
    });
    let start = at + LENGTH;
    found.map(|len| start..start + len)
}

/// A verifier that counts the verifications of another one: a resumed session needs none.
struct Counting {
    inner: Arc<dyn ServerCertVerifier>,
    verified: Arc<AtomicU64>,
}

impl fmt::Debug for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ServerCertVerifier for Counting {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verified.fetch_add(1, Ordering::Relaxed);
        self.inner.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        deliver_answers(0x4142, &mut bytes.to_vec(), &mut |id, message| {
            assert_eq!(id, 0x4142);
            got.push(message.to_vec());
        });
        got
    }

    #[test]
    fn answers_get_the_id_of_their_query() {
        assert_eq!(delivered(b"\0\x04\0\0xy"), [b"ABxy".to_vec()]);
        assert_eq!(delivered(b"\0\x03\0\0x\0\x02\0\0"), [b"ABx".to_vec(), b"AB".to_vec()]);
    }

    #[test]
    fn invalid_answers_are_passed_on_as_empty() {
        let none = [Vec::<u8>::new()];
        assert_eq!(delivered(b""), none, "a stream that brought nothing, or too much");
        assert_eq!(delivered(b"\0\x05\0\0xy"), none, "cut");
        assert_eq!(delivered(b"\0\x04\0\x01xy"), none, "with an id of its own");
        assert_eq!(delivered(b"\0\x01\0"), none);
        assert_eq!(
            delivered(b"\0\x03\0\0x."),
            [b"ABx".to_vec(), Vec::new()],
            "more than a message"
        );
    }
}
