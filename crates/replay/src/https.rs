//! DNS over HTTPS (RFC 8484) over a blocking socket, for programs that send one query after
//! another.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;

use crate::Blocking;
use crate::Error;
use crate::Tls;
use crate::h2;
use crate::h2::SendLimit;

/// Size of the read buffer in bytes.
const READ: usize = 16 << 10;

/// A connection to a DNS over HTTPS server.
pub struct Https {
    stream: Blocking,
    session: h2::Session,
    /// Received answers, each preceded by its length (two bytes).
    input: Vec<u8>,
    next: u16,
}

impl Https {
    /// Starts a session over a connected blocking socket; requests go to `path`.
    ///
    /// # Errors
    /// If the session cannot be established.
    pub fn connect(tls: &Tls, socket: TcpStream, path: &str) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::System { what: "https", error };
        let port = socket.peer_addr().map_err(fail)?.port();
        let session = h2::Session::new(&tls.authority(port), path);
        let mut stream = tls.connect_h2(socket)?;
        stream.complete_handshake().map_err(fail)?;
        if !stream.is_h2() {
            return Err(fail(io::Error::other("the server does not speak HTTP/2")));
        }
        Ok(Self { stream, session, input: Vec::new(), next: 0 })
    }

    /// The underlying socket.
    pub fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// Sends a query; if the server accepts no more concurrent queries, waits for answers first.
    ///
    /// # Errors
    /// Errors of the socket, violations of HTTP/2, and a server that accepts no more requests.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        loop {
            match self.session.can_send(message.len()) {
                Ok(()) => break,
                Err(SendLimit::Temporary) => self.take()?,
                Err(SendLimit::Permanent) => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        let mut out = Vec::new();
        self.session.request(message, self.next, &mut out);
        self.next = self.next.wrapping_add(1);
        self.stream.write_all(&out)?;
        self.stream.flush()
    }

    /// Reads answers framed as over TCP, each preceded by its length; blocks if the socket does.
    /// Length 0 means an answer that is not a DNS message.
    ///
    /// # Errors
    /// Errors of the socket, and violations of HTTP/2.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.input.is_empty() {
            self.take()?;
        }
        let len = self.input.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.input[..len]);
        self.input.drain(..len);
        Ok(len)
    }

    /// Reads once, and sends the frames required in response.
    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ];
        let len = self.stream.read(&mut buffer)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (session, input) = (&mut self.session, &mut self.input);
        let taken = session.take(&buffer[..len], |_, body| {
            // A body is at most as long as a DNS message.
            input.extend_from_slice(&(body.len() as u16).to_be_bytes());
            input.extend_from_slice(body);
        });
        taken.map_err(io::Error::other)?;
        let mut out = Vec::new();
        session.control(&mut out);
        if !out.is_empty() {
            self.stream.write_all(&out)?;
            self.stream.flush()?;
        }
        Ok(())
    }
}
