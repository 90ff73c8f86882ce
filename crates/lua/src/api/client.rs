//! Clients over UDP, TCP, TLS and HTTPS, for scripts that send messages.
#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ffi::c_int;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::ToSocketAddrs;
use std::net::UdpSocket;
use std::time::Duration;
use std::time::Instant;

use gannet_replay::Blocking;
use gannet_replay::Https;
use gannet_replay::Target;
use gannet_replay::TargetError;
use gannet_replay::Tls;
use gannet_replay::Trust;

use super::fail;
use super::text;

/// The C declarations of [`Clients`].
pub(crate) const DECLARATIONS: &str = "
typedef struct gannet_client gannet_client;
typedef struct {
    gannet_client *(*open)(int kind, const char *host, const char *port, double timeout);
    gannet_client *(*begin)(int kind, const char *server, uint16_t port, const char *path,
        const char *trust, int may_be_public, double timeout);
    void (*free)(gannet_client *client);
    void (*set)(gannet_client *client, double timeout, int no_wait);
    int (*send)(gannet_client *client, const uint8_t *bytes, uint32_t len, int frame);
    int (*receive)(gannet_client *client, const uint8_t **bytes, uint32_t *len);
} gannet_clients;
";

/// The functions, in the order of [`DECLARATIONS`].
#[repr(C)]
pub(crate) struct Clients {
    open: unsafe extern "C" fn(c_int, *const c_char, *const c_char, f64) -> *mut Client,
    begin: unsafe extern "C" fn(
        c_int,
        *const c_char,
        u16,
        *const c_char,
        *const c_char,
        c_int,
        f64,
    ) -> *mut Client,
    free: unsafe extern "C" fn(*mut Client),
    set: unsafe extern "C" fn(*mut Client, f64, c_int),
    send: unsafe extern "C" fn(*mut Client, *const u8, u32, c_int) -> c_int,
    receive: unsafe extern "C" fn(*mut Client, *mut *const u8, *mut u32) -> c_int,
}

pub(crate) const TABLE: Clients = Clients { open, begin, free, set, send, receive };

/// Size of the receive buffer: the longest message, with the length before it.
const BUFFER_SIZE: usize = 2 + 65535;
/// Longer timeouts, in seconds, mean no timeout.
const MAX_TIMEOUT: f64 = 1e9;

enum Link {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<Blocking>),
    Https(Box<Https>),
}

/// A connected client.
pub(crate) struct Client {
    link: Link,
    server: SocketAddr,
    timeout: Duration,
    no_wait: bool,
    /// Received bytes; the first `used` bytes were returned to the script.
    input: Vec<u8>,
    used: usize,
}

impl Client {
    fn open(kind: c_int, host: &str, port: &str, timeout: Duration) -> Result<Self, String> {
        let error_text =
            |error: &dyn ToString| format!("{host} port {port}: {}", error.to_string());
        let number: u16 = port.parse().map_err(|_| error_text(&"no port number"))?;
        let found: Vec<SocketAddr> =
            (host, number).to_socket_addrs().map_err(|e| error_text(&e))?.collect();
        let mut why = error_text(&"no address");
        for address in found {
            let tls = || Tls::new(host, &Trust::Any);
            match Self::connect(kind, address, "", timeout, tls) {
                Ok(link) => {
                    let input = Vec::new();
                    let server = address;
                    return Ok(Self { link, server, timeout, no_wait: false, input, used: 0 });
                }
                Err(error) => why = error_text(&error),
            }
        }
        Err(why)
    }

    /// Like [`open`](Self::open), for a server that [`Target`] permits.
    fn begin(
        (kind, may_be_public): (c_int, bool),
        (server, port): (&str, u16),
        path: &str,
        trust: &Trust,
        timeout: Duration,
    ) -> Result<Self, String> {
        let target = Target::with_port(server, port, may_be_public);
        let address = target
            .map_err(|error| match error {
                TargetError::Public(address) => {
                    format!(
                        "{address} is neither a loopback nor a private address; set yes_i_may = true to send to it"
                    )
                }
                error => error.to_string(),
            })?
            .address();
        let tls = || Tls::new(gannet_replay::host(server), trust);
        let link = Self::connect(kind, address, path, timeout, tls);
        let link = link.map_err(|error| format!("{address}: {error}"))?;
        Ok(Self { link, server: address, timeout, no_wait: false, input: Vec::new(), used: 0 })
    }

    fn connect(
        kind: c_int,
        to: SocketAddr,
        path: &str,
        wait: Duration,
        tls: impl FnOnce() -> Result<Tls, gannet_replay::Error>,
    ) -> io::Result<Link> {
        if kind == 0 {
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(to)?;
            return Ok(Link::Udp(socket));
        }
        let wait = wait.max(Duration::from_millis(1));
        let socket = TcpStream::connect_timeout(&to, wait)?;
        socket.set_nodelay(true)?;
        if kind == 1 {
            return Ok(Link::Tcp(socket));
        }
        socket.set_read_timeout(Some(wait))?;
        let tls = tls().map_err(io::Error::other)?;
        if kind == 2 {
            let mut session = tls.connect(socket).map_err(io::Error::other)?;
            session.complete_handshake()?;
            return Ok(Link::Tls(Box::new(session)));
        }
        Ok(Link::Https(Box::new(Https::connect(&tls, socket, path).map_err(io::Error::other)?)))
    }

    /// Sends a message; over a stream its length precedes it if `frame` is set.
    fn send(&mut self, message: &[u8], frame: bool) -> io::Result<()> {
        let mut framed = Vec::new();
        let mut bytes = message;
        if frame && !matches!(self.link, Link::Udp(_) | Link::Https(_)) {
            let len = u16::try_from(message.len()).map_err(io::Error::other)?;
            framed.extend_from_slice(&len.to_be_bytes());
            framed.extend_from_slice(message);
            bytes = &framed;
        }
        match &mut self.link {
            // An error of an earlier datagram is returned by the next send; the message is then
            // sent again.
            Link::Udp(socket) => {
                socket.set_nonblocking(false)?;
                socket.send(bytes).or_else(|_| socket.send(bytes)).map(|_| ())
            }
            Link::Tcp(socket) => {
                socket.set_nonblocking(false)?;
                socket.write_all(bytes)
            }
            Link::Tls(session) => {
                session.socket().set_nonblocking(false)?;
                session.write_all(bytes)?;
                session.flush()
            }
            Link::Https(https) => {
                https.socket().set_nonblocking(false)?;
                https
                    .socket()
                    .set_read_timeout(Some(self.timeout.max(Duration::from_micros(1))))?;
                https.send(bytes)
            }
        }
    }

    /// The next message, over a stream with its length before it; `None` if none arrives in time.
    fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        self.input.drain(..self.used);
        self.used = 0;
        let end = Instant::now() + self.timeout;
        let is_stream = !matches!(self.link, Link::Udp(_));
        loop {
            if is_stream && let Some(len) = self.input.get(..2) {
                let whole = 2 + usize::from(u16::from_be_bytes([len[0], len[1]]));
                if self.input.len() >= whole {
                    self.used = whole;
                    return Ok(self.input.get(..whole));
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            let wait = (!self.no_wait).then(|| left.max(Duration::from_micros(1)));
            let start = self.input.len();
            self.input.resize(start + BUFFER_SIZE, 0);
            let got = read(&mut self.link, wait, self.input.get_mut(start..).unwrap_or_default());
            self.input.truncate(start + got.as_ref().copied().unwrap_or(0));
            match got {
                Ok(0) if is_stream => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) if !is_stream => {
                    self.used = len;
                    return Ok(self.input.get(..len));
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
                {
                    if self.no_wait || Instant::now() >= end {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads available data, or waits up to `wait`.
fn read(link: &mut Link, wait: Option<Duration>, buffer: &mut [u8]) -> io::Result<usize> {
    match link {
        Link::Udp(socket) => {
            socket.set_nonblocking(wait.is_none())?;
            socket.set_read_timeout(wait)?;
            socket.recv(buffer)
        }
        Link::Tcp(socket) => {
            socket.set_nonblocking(wait.is_none())?;
            socket.set_read_timeout(wait)?;
            socket.read(buffer)
        }
        Link::Tls(session) => {
            session.socket().set_nonblocking(wait.is_none())?;
            session.socket().set_read_timeout(wait)?;
            session.read(buffer)
        }
        Link::Https(https) => {
            https.socket().set_nonblocking(wait.is_none())?;
            https.socket().set_read_timeout(wait)?;
            https.read(buffer)
        }
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_TIMEOUT)).unwrap_or_default()
}

/// # Safety
/// `host` and `port` are C strings.
unsafe extern "C" fn open(
    kind: c_int,
    host: *const c_char,
    port: *const c_char,
    timeout: f64,
) -> *mut Client {
    // SAFETY: by this function's contract.
    let (host, port) = unsafe { (text(host), text(port)) };
    match Client::open(kind, host.unwrap_or(""), port.unwrap_or(""), duration(timeout)) {
        Ok(client) => Box::into_raw(Box::new(client)),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
///
/// `server` and `path` are C strings; `trust` is one, or null to accept any certificate.
unsafe extern "C" fn begin(
    kind: c_int,
    server: *const c_char,
    port: u16,
    path: *const c_char,
    trust: *const c_char,
    may_be_public: c_int,
    timeout: f64,
) -> *mut Client {
    // SAFETY: by this function's contract.
    let (server, path, trust) = unsafe { (text(server), text(path), text(trust)) };
    let trust = match trust {
        None => Trust::Any,
        Some("") => Trust::System,
        Some(file) => Trust::File(file.into()),
    };
    let (server, path) = (server.unwrap_or(""), path.unwrap_or(""));
    let how = (kind, may_be_public != 0);
    match Client::begin(how, (server, port), path, &trust, duration(timeout)) {
        Ok(client) => Box::into_raw(Box::new(client)),
        Err(error) => {
            fail(&error);
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `it` came from `open` or `begin`, and this is its last use.
unsafe extern "C" fn free(it: *mut Client) {
    if !it.is_null() {
        // SAFETY: by this function's contract; both made it by `Box::into_raw`.
        drop(unsafe { Box::from_raw(it) });
    }
}

/// # Safety
/// `it` came from `open` or `begin`, was not freed, and no other call uses it meanwhile.
unsafe fn client<'a>(it: *mut Client) -> &'a mut Client {
    assert!(!it.is_null(), "a client's handle is not null");
    // SAFETY: by this function's contract.
    unsafe { &mut *it }
}

/// # Safety
/// As for [`client`].
unsafe extern "C" fn set(it: *mut Client, timeout: f64, no_wait: c_int) {
    // SAFETY: by this function's contract.
    let it = unsafe { client(it) };
    (it.timeout, it.no_wait) = (duration(timeout), no_wait != 0);
}

/// # Safety
/// As for [`client`]; `bytes` points to `len` bytes.
unsafe extern "C" fn send(it: *mut Client, bytes: *const u8, len: u32, frame: c_int) -> c_int {
    // SAFETY: by this function's contract.
    let (it, bytes) = unsafe { (client(it), std::slice::from_raw_parts(bytes, len as usize)) };
    match it.send(bytes, frame != 0) {
        Ok(()) => 0,
        Err(error) => {
            fail(&format!("{}: {error}", it.server));
            -1
        }
    }
}

/// # Safety
/// As for [`client`]; `bytes` and `len` are valid for writes. The bytes are valid until the next
/// call with the same client.
unsafe extern "C" fn receive(it: *mut Client, bytes: *mut *const u8, len: *mut u32) -> c_int {
    // SAFETY: by this function's contract.
    let it = unsafe { client(it) };
    let server = it.server;
    match it.receive() {
        Ok(Some(message)) => {
            // SAFETY: by this function's contract.
            unsafe {
                bytes.write(message.as_ptr());
                len.write(message.len() as u32);
            }
            1
        }
        Ok(None) => 0,
        Err(error) => {
            fail(&format!("{server}: {error}"));
            -1
        }
    }
}
