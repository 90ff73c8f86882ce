//! Connections to the targets of sinks.

use std::io;
use std::io::Write;
use std::net::TcpStream;
use std::net::ToSocketAddrs as _;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::os::unix::net::UnixStream;

use super::Target;
use super::WRITE_TIMEOUT;
use super::queue::Row;

/// A connection to a target.
pub(super) enum Connection {
    Stream(Box<dyn Write>),
    Local(UnixDatagram),
    Udp(UdpSocket),
    #[cfg(feature = "kafka")]
    Kafka(Box<super::kafka::Kafka>),
}

/// Connects to a target.
pub(super) fn connect(target: &Target) -> io::Result<Connection> {
    Ok(match target {
        Target::Tcp(address) => {
            let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
            let stream = TcpStream::connect_timeout(&address, WRITE_TIMEOUT)?;
            stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
            Connection::Stream(Box::new(stream))
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
            Connection::Stream(Box::new(stream))
        }
        Target::Syslog(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
            Connection::Local(socket)
        }
        Target::SyslogUdp(address) => {
            let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            Connection::Udp(socket)
        }
        #[cfg(feature = "kafka")]
        Target::Kafka(options) => {
            Connection::Kafka(Box::new(super::kafka::Kafka::connect(options)?))
        }
        #[cfg(not(feature = "kafka"))]
        Target::Kafka(_) => return Err(io::ErrorKind::Unsupported.into()),
    })
}

/// Priority of syslog messages: facility local0, severity informational (RFC 5424, section 6.2.1).
const PRIORITY: &str = "<134>";

/// Sends rows. Returns the number of rows that the target rejected for good.
///
/// # Errors
/// If the connection broke: any of the rows may have arrived.
pub(super) fn send(connection: &mut Connection, rows: &[Row]) -> io::Result<u64> {
    match connection {
        Connection::Stream(stream) => {
            let all: Vec<u8> = rows.iter().flat_map(|row| row.line.iter().copied()).collect();
            stream.write_all(&all)?;
        }
        Connection::Local(socket) => rows.iter().try_for_each(|row| {
            let row = row.line.strip_suffix(b"\n").unwrap_or(&row.line);
            socket.send(&[format!("{PRIORITY}gannet: ").as_bytes(), row].concat()).map(drop)
        })?,
        Connection::Udp(socket) => rows.iter().try_for_each(|row| {
            let row = row.line.strip_suffix(b"\n").unwrap_or(&row.line);
            let head = format!("{PRIORITY}1 - - gannet {} - - ", std::process::id());
            match socket.send(&[head.as_bytes(), row].concat()) {
                // No process listens on the port yet: later datagrams may arrive.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
                sent => sent.map(drop),
            }
        })?,
        #[cfg(feature = "kafka")]
        Connection::Kafka(kafka) => return kafka.send(rows),
    }
    Ok(0)
}
