//! Client sockets.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::AddressFamily;
use rustix::net::SocketFlags;
use rustix::net::SocketType;
use rustix::net::sockopt;
use rustix::process::Resource;
use rustix::process::Rlimit;

use crate::Error;
use crate::sys;

/// Requested receive buffer of a socket in bytes; the kernel may grant less.
const BUFFER: usize = 4 << 20;
/// Number of file descriptors reserved for other uses.
const RESERVED: u64 = 64;

/// A socket connected to `to`, from `local` or from any address.
pub(crate) fn client(
    local: Option<IpAddr>,
    to: SocketAddr,
    buffer: usize,
) -> Result<UdpSocket, Error> {
    let socket = datagrams(local, to, buffer).map_err(|error| {
        let local = local.map(|local| SocketAddr::new(local, 0));
        Error::Socket { local, to, error }
    })?;
    sys::join_datagrams(socket.as_fd());
    Ok(socket)
}

/// A UDP socket connected to `to`, from `local` or from any address.
pub(crate) fn datagrams(
    local: Option<IpAddr>,
    to: SocketAddr,
    buffer: usize,
) -> io::Result<UdpSocket> {
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind(SocketAddr::new(local.unwrap_or(any), 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    enlarge(&socket, buffer);
    Ok(socket)
}

/// A TCP socket that connects to `to`, from `local` or from any address, without waiting for the
/// connection.
pub(crate) fn stream(local: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // A due query must not wait for further data.
    sockopt::set_tcp_nodelay(&socket, true).unwrap_or_default();
    if let Some(local) = local {
        rustix::net::bind(&socket, &SocketAddr::new(local, 0))?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Requests buffers of this size; smaller ones are not an error.
pub(crate) fn enlarge(socket: &impl AsFd, buffer: usize) {
    let buffer = buffer.min(BUFFER);
    // With CAP_NET_ADMIN the buffer may exceed the system's limit (SO_RCVBUFFORCE).
    sockopt::set_socket_recv_buffer_size_force(socket, buffer)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, buffer))
        .unwrap_or_default();
    sockopt::set_socket_send_buffer_size(socket, buffer).unwrap_or_default();
}

/// Raises the limit of open files to the maximum; returns the number of sockets allowed.
pub(crate) fn limit() -> usize {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if rustix::process::setrlimit(Resource::Nofile, raised).is_ok() {
            limit.current = limit.maximum;
        }
    }
    let files = limit.current.unwrap_or(1 << 20).min(1 << 20);
    files.saturating_sub(RESERVED).max(1) as usize
}

/// Whether an error means that the port is closed.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

/// Whether an error means that no route leads to the server.
pub(crate) fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)
}

/// Whether an error means that the operation may succeed later.
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.kind() == io::ErrorKind::Interrupted
        || error.raw_os_error() == Some(libc::ENOBUFS)
}
