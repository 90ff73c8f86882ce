//! A socket that is connecting or connected, with or without TLS over it.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::Shutdown;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use rustix::net::sockopt;
use rustls::Connection;
use rustls::HandshakeKind;

/// Maximum number of bytes encrypted at once: those of a record (RFC 8446 §5.1).
const RECORD: usize = 16 << 10;

/// A non-blocking socket, with or without TLS.
pub(crate) struct ByteStream {
    socket: TcpStream,
    connected: bool,
    tls: Option<Box<Connection>>,
}

impl ByteStream {
    /// A stream over a socket that may still be connecting.
    pub(crate) fn new(socket: TcpStream, tls: Option<Connection>) -> Self {
        Self { socket, connected: false, tls: tls.map(Box::new) }
    }

    /// Continues the handshake; returns whether bytes can be sent.
    pub(crate) fn prepare(&mut self) -> io::Result<bool> {
        if !self.connected {
            sockopt::socket_error(&self.socket)??;
            match self.socket.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            if !flush(tls, &mut self.socket)? {
                return Ok(false);
            }
            if !tls.is_handshaking() {
                break;
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(_) => process(tls, &mut self.socket)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        flush(tls, &mut self.socket)?;
        Ok(true)
    }

    /// Whether it waits for the socket to become writable.
    pub(crate) fn wants_write(&self) -> bool {
        !self.connected || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether it resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        let kind = self.tls.as_ref().and_then(|tls| tls.handshake_kind());
        kind == Some(HandshakeKind::Resumed)
    }

    /// Whether both sides agreed on HTTP/2 (RFC 7301).
    pub(crate) fn is_h2(&self) -> bool {
        self.tls.as_ref().and_then(|tls| tls.alpn_protocol()) == Some(b"h2")
    }

    /// Writes as many bytes as the socket accepts; returns their number.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        if !flush(tls, &mut self.socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = tls.writer().write(&bytes[..bytes.len().min(RECORD)])?;
        flush(tls, &mut self.socket)?;
        Ok(taken)
    }

    /// Flushes encrypted data; returns whether the kernel has accepted all written bytes.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        self.tls.as_mut().map_or(Ok(true), |tls| flush(tls, &mut self.socket))
    }

    /// Reads available bytes; 0 means the end of the stream.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(into) };
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Many servers close without a close_notify alert (RFC 8446 §6.1); truncation is
                // detected by the lengths of messages.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            match tls.read_tls(&mut self.socket)? {
                0 => return Ok(0),
                _ => process(tls, &mut self.socket)?,
            }
        }
    }

    /// Closes the sending side.
    pub(crate) fn end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // If the connection is closed or its buffer full, no close notification is sent.
            flush(tls, &mut self.socket).unwrap_or_default();
        }
        self.socket.shutdown(Shutdown::Write).unwrap_or_default();
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends encrypted bytes; returns whether all were sent.
fn flush(tls: &mut Connection, socket: &mut TcpStream) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Decrypts received records.
fn process(tls: &mut Connection, socket: &mut TcpStream) -> io::Result<()> {
    let processed = tls.process_new_packets();
    // If the session fails, an alert for the peer is pending.
    let flushed = flush(tls, socket);
    processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    flushed.map(|_| ())
}
