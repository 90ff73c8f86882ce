//! DNS over HTTPS (RFC 8484) over a socket that waits, for programs that ask one thing after the other.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;

use crate::Blocking;
use crate::Error;
use crate::Tls;
use crate::h2;
use crate::h2::NoRoom;

/// Bytes that are read at once.
const READ: usize = 16 << 10;

/// A connection to a server of DNS over HTTPS.
pub struct Https {
    line: Blocking,
    session: h2::Session,
    /// Answers that came, each with its length (two bytes) before it.
    input: Vec<u8>,
    next: u16,
}

impl Https {
    /// Begins one over a connected socket that blocks; requests go to `path`.
    ///
    /// # Errors
    /// Where the session cannot begin.
    pub fn connect(tls: &Tls, socket: TcpStream, path: &str) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::System { what: "https", error };
        let port = socket.peer_addr().map_err(fail)?.port();
        let session = h2::Session::new(&tls.authority(port), path);
        let mut line = tls.connect_h2(socket)?;
        line.shake_hands().map_err(fail)?;
        if !line.is_h2() {
            return Err(fail(io::Error::other("the server does not speak HTTP/2")));
        }
        Ok(Self { line, session, input: Vec::new(), next: 0 })
    }

    /// The underlying socket.
    pub fn socket(&self) -> &TcpStream {
        self.line.socket()
    }

    /// Sends a query; where the server takes no more of them at once, answers are waited for first.
    ///
    /// # Errors
    /// Errors of the socket, violations of HTTP/2, and a server that accepts no more requests.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        loop {
            match self.session.has_room(message.len()) {
                Ok(()) => break,
                Err(NoRoom::Now) => self.take()?,
                Err(NoRoom::Ever) => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        let mut out = Vec::new();
        self.session.request(message, self.next, &mut out);
        self.next = self.next.wrapping_add(1);
        self.line.write_all(&out)?;
        self.line.flush()
    }

    /// Reads answers as over TCP, each with its length before it; blocks or not as the socket does.
    /// An empty one means an answer that is not a DNS message.
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
        let len = self.line.read(&mut buffer)?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (session, input) = (&mut self.session, &mut self.input);
        let taken = session.take(&buffer[..len], |_, body| {
            // A body is never longer than a message may be.
            input.extend_from_slice(&(body.len() as u16).to_be_bytes());
            input.extend_from_slice(body);
        });
        taken.map_err(io::Error::other)?;
        let mut out = Vec::new();
        session.control(&mut out);
        if !out.is_empty() {
            self.line.write_all(&out)?;
            self.line.flush()?;
        }
        Ok(())
    }
}
