//! Rows as JSON lines for other programs: over TCP, a Unix socket, or syslog.
//!
//! Each sink has a queue with a limit and a thread that empties it. A sink that is slow or away fills its queue; rows
//! that find it full are dropped and counted. It never holds the analysis up.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::io::Write;
use std::net::TcpStream;
use std::net::ToSocketAddrs as _;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use gannet_base::Time;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_log::Options;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::PackedWriter;
use gannet_log::Tap;
use gannet_log::Tapped;
use gannet_log::TextOutput;

use super::Journal;

/// Where rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `tcp://host:port`
    Tcp(String),
    /// `unix:/path`
    Unix(PathBuf),
    /// `syslog:`, the system's socket, or another one: `syslog:/path`
    Syslog(PathBuf),
    /// `syslog://host:port`, RFC 5424 over UDP
    SyslogUdp(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is no target, like tcp://127.0.0.1:5170, unix:/run/rows.sock, syslog: or syslog://10.0.0.1:514"
            )
        };
        let host =
            |host: &str| host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if let Some(address) = text.strip_prefix("tcp://") {
            return if host(address) { Ok(Self::Tcp(address.into())) } else { Err(bad()) };
        }
        if let Some(address) = text.strip_prefix("syslog://") {
            return if host(address) { Ok(Self::SyslogUdp(address.into())) } else { Err(bad()) };
        }
        if let Some(path) = text.strip_prefix("syslog:") {
            return Ok(Self::Syslog(if path.is_empty() { "/dev/log".into() } else { path.into() }));
        }
        match text.strip_prefix("unix:") {
            Some(path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Syslog(path) => write!(f, "syslog:{}", path.display()),
            Self::SyslogUdp(address) => write!(f, "syslog://{address}"),
        }
    }
}

/// Bytes of rows that wait for a sink, at the most.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that are sent at a time.
const PIECE: usize = 256 << 10;
/// Between two attempts to connect.
const RETRY: Duration = Duration::from_secs(1);
/// How long a target may take nothing before the connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long rows may still be sent at the end.
const LAST: Duration = Duration::from_secs(5);

/// A sink, and what became of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) target: Target,
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    change: Condvar,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    rows: VecDeque<Box<[u8]>>,
    bytes: usize,
    dropped: u64,
    sent: u64,
    ending: Option<Instant>,
}

/// What became of the rows of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinkCounts {
    pub(crate) name: String,
    pub(crate) sent: u64,
    pub(crate) queued: u64,
    pub(crate) dropped: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, row: Box<[u8]>) {
        let mut state = self.lock();
        if state.bytes + row.len() > self.most {
            state.dropped += 1;
            return;
        }
        state.bytes += row.len();
        state.rows.push_back(row);
        drop(state);
        self.change.notify_one();
    }

    /// Takes rows of up to a [`PIECE`]; `None` when there are none and none will come.
    fn take(&self) -> Option<Vec<Box<[u8]>>> {
        let mut state = self.lock();
        while state.rows.is_empty() {
            if state.ending.is_some() {
                return None;
            }
            state = self.change.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < PIECE
            && let Some(row) = state.rows.pop_front()
        {
            bytes += row.len();
            taken.push(row);
        }
        state.bytes -= bytes;
        Some(taken)
    }

    fn is_late(&self) -> bool {
        self.lock().ending.is_some_and(|since| since.elapsed() > LAST)
    }
}

impl Sink {
    /// Starts the thread of a sink.
    pub(crate) fn start(
        target: Target,
        journal: &Journal,
    ) -> io::Result<(Self, thread::JoinHandle<()>)> {
        let queue = Arc::new(Queue { most: MOST_BYTES, ..Queue::default() });
        let sink = Self { target, queue };
        let (own, journal) = (sink.clone(), journal.clone());
        let work = move || own.work(&journal);
        let thread = thread::Builder::new().name("sink".into()).spawn(work)?;
        Ok((sink, thread))
    }

    pub(crate) fn counts(&self) -> SinkCounts {
        let state = self.queue.lock();
        SinkCounts {
            name: self.target.to_string(),
            sent: state.sent,
            queued: state.rows.len() as u64,
            dropped: state.dropped,
        }
    }

    /// No more rows come: those that wait are sent if that is possible within seconds.
    pub(crate) fn end(&self) {
        self.queue.lock().ending = Some(Instant::now());
        self.queue.change.notify_all();
    }

    fn work(&self, journal: &Journal) {
        let mut connection = None;
        let mut is_away = false;
        while let Some(rows) = self.queue.take() {
            loop {
                let sent = match &mut connection {
                    Some(connection) => send(connection, &rows),
                    None => connect(&self.target).and_then(|c| send(connection.insert(c), &rows)),
                };
                match sent {
                    Ok(()) => {
                        self.queue.lock().sent += rows.len() as u64;
                        if std::mem::take(&mut is_away) {
                            journal
                                .note(&format_args!("--to {}: rows are sent again", self.target));
                        }
                        break;
                    }
                    Err(error) => {
                        // Rows that were under way are sent again: none is lost, some may come twice.
                        connection = None;
                        if !std::mem::replace(&mut is_away, true) {
                            journal
                                .warning(&format_args!("--to {}: {error}; rows wait", self.target));
                        }
                    }
                }
                if self.queue.is_late() {
                    let mut state = self.queue.lock();
                    state.dropped += (rows.len() + state.rows.len()) as u64;
                    state.rows.clear();
                    return;
                }
                thread::sleep(RETRY);
            }
        }
    }
}

enum Connection {
    Stream(Box<dyn Write>),
    Local(UnixDatagram),
    Udp(UdpSocket),
}

fn connect(target: &Target) -> io::Result<Connection> {
    Ok(match target {
        Target::Tcp(address) => {
            let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Connection::Stream(Box::new(stream))
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Connection::Stream(Box::new(stream))
        }
        Target::Syslog(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Connection::Local(socket)
        }
        Target::SyslogUdp(address) => {
            let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            Connection::Udp(socket)
        }
    })
}

/// Facility local0, severity informational: RFC 5424, section 6.2.1.
const PRIORITY: &str = "<134>";

fn send(connection: &mut Connection, rows: &[Box<[u8]>]) -> io::Result<()> {
    match connection {
        Connection::Stream(stream) => {
            let all: Vec<u8> = rows.iter().flat_map(|row| row.iter().copied()).collect();
            stream.write_all(&all)
        }
        Connection::Local(socket) => rows.iter().try_for_each(|row| {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            socket.send(&[format!("{PRIORITY}gannet: ").as_bytes(), row].concat()).map(drop)
        }),
        Connection::Udp(socket) => rows.iter().try_for_each(|row| {
            let row = row.strip_suffix(b"\n").unwrap_or(row);
            let head = format!("{PRIORITY}1 - - gannet {} - - ", std::process::id());
            match socket.send(&[head.as_bytes(), row].concat()) {
                // A port without a listener: the next datagram may find one.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
                sent => sent.map(drop),
            }
        }),
    }
}

/// Adds sinks to the outputs of the logs.
pub(crate) fn add(logs: &mut Options, sinks: &[Sink]) {
    let is_alone = !matches!(logs.format, Format::Packed);
    if is_alone {
        logs.outputs = vec![Arc::new(TextOutput { format: logs.format, extension: None })];
        logs.format = Format::Packed;
    }
    for sink in sinks {
        logs.outputs.push(Arc::new(SinkOutput(sink.clone())));
    }
}

#[derive(Debug)]
struct SinkOutput(Sink);

impl Output for SinkOutput {
    fn open(&self, options: &Options) -> Box<dyn PackedWriter> {
        let tap = Tap::default();
        let text = TextOutput { format: Format::Json(JsonTimes::Iso8601), extension: None };
        let options = Options { tap: Some(tap.clone()), live: None, dir: None, ..options.clone() };
        Box::new(SinkWriter {
            sink: self.0.clone(),
            tap,
            rows: Tapped::default(),
            text: text.open(&options),
        })
    }
}

struct SinkWriter {
    sink: Sink,
    tap: Tap,
    rows: Tapped,
    /// Formats rows, which then come through the tap.
    text: Box<dyn PackedWriter>,
}

impl PackedWriter for SinkWriter {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        self.text.write(stream, rows)?;
        self.tap.take(&mut self.rows);
        for row in &self.rows.rows {
            let start = row.start as usize;
            let line = self.rows.bytes.get(start..start + row.len as usize).unwrap_or_default();
            let path = self.rows.path(row.stream).unwrap_or_default();
            let head = format!("{{\"_path\":\"{path}\",");
            let line = [head.as_bytes(), line.strip_prefix(b"{").unwrap_or(line), b"\n"].concat();
            self.sink.queue.push(line.into());
        }
        Ok(())
    }

    fn close(&mut self, now: Time) -> io::Result<()> {
        self.text.close(now)
    }
}

/// Folders that programs at the other end may have made: the process connects to sockets in them.
pub(crate) fn paths(targets: &[Target]) -> Vec<PathBuf> {
    let path = |target: &Target| match target {
        Target::Unix(path) | Target::Syslog(path) => path.parent().map(Path::to_owned),
        // Names of hosts are looked up in these.
        Target::Tcp(_) | Target::SyslogUdp(_) => Some(PathBuf::from("/etc")),
    };
    targets.iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;
    use std::net::TcpListener;

    use super::*;
    use crate::live::args::LogFormat;

    #[test]
    fn targets() {
        for text in ["tcp://127.0.0.1:5170", "unix:/run/x", "syslog:/dev/log", "syslog://[::1]:514"]
        {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!("syslog:".parse(), Ok(Target::Syslog("/dev/log".into())));
        for bad in ["", "tcp://host", "unix:", "http://x:1", "tcp://x:99999"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_full_queue_drops_the_newest_rows() {
        let queue = Queue { most: 10, ..Queue::default() };
        (0..4).for_each(|n| queue.push(vec![n; 4].into()));
        let taken = queue.take().unwrap();
        assert_eq!(taken.iter().map(|row| row[0]).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(queue.lock().dropped, 2);
    }

    #[test]
    fn rows_wait_for_a_target_that_is_away() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let journal = Journal::new(LogFormat::Text, true);
        let target = format!("tcp://{address}").parse().unwrap();
        let (sink, thread) = Sink::start(target, &journal).unwrap();
        sink.queue.push((*b"one\n").into());
        thread::sleep(Duration::from_millis(100));
        assert_eq!(sink.counts().sent, 0);
        let listener = TcpListener::bind(address).unwrap();
        let (client, _) = listener.accept().unwrap();
        sink.queue.push((*b"two\n").into());
        let mut lines = BufReader::new(client).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "one");
        assert_eq!(lines.next().unwrap().unwrap(), "two");
        sink.end();
        thread.join().unwrap();
        let counts = sink.counts();
        assert_eq!((counts.sent, counts.queued, counts.dropped), (2, 0, 0));
    }
}
