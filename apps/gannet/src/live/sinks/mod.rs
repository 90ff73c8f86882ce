//! Rows as JSON lines for other programs: over TCP, a Unix socket, syslog, or Kafka.
//!
//! Each sink has a bounded queue and a thread that empties it. A slow or unavailable target lets its queue fill. With a
//! spool, a second thread then moves rows from the queue to disk, and the first thread sends them from there, oldest
//! first. Without a spool, rows that do not fit into the queue are dropped and counted. A sink never blocks the analysis.

mod connection;
#[cfg(feature = "kafka")]
mod kafka;
mod queue;
mod spool;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use gannet_base::Time;
use gannet_log::Cell;
use gannet_log::Cells;
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

use self::connection::Connection;
use self::queue::Queue;
use self::queue::Row;
use self::spool::Spool;

/// The destination of a sink's rows.
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
    /// `--kafka host:port`
    Kafka(KafkaOptions),
}

/// Options of Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KafkaOptions {
    /// Bootstrap brokers, `host:port`, separated by commas.
    pub(crate) brokers: String,
    /// Name of the topic of a log: `{log}` stands for the log.
    pub(crate) topic: String,
    /// Whether connections use TLS.
    pub(crate) tls: bool,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is not a target, like tcp://127.0.0.1:5170, unix:/run/rows.sock, syslog: or syslog://10.0.0.1:514"
            )
        };
        if let Some(address) = text.strip_prefix("tcp://") {
            return if is_host(address) { Ok(Self::Tcp(address.into())) } else { Err(bad()) };
        }
        if let Some(address) = text.strip_prefix("syslog://") {
            return if is_host(address) { Ok(Self::SyslogUdp(address.into())) } else { Err(bad()) };
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
            Self::Kafka(options) => write!(f, "kafka://{}", options.brokers),
        }
    }
}

/// Checks the brokers of `--kafka`.
pub(crate) fn brokers(text: &str) -> Result<String, String> {
    match text.split(',').all(is_host) {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("'{text}' is not a list of brokers, like 10.0.0.7:9092,10.0.0.8:9092"))
        }
    }
}

fn is_host(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Maximum number of bytes in a sink's queue.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Number of bytes that are sent in one call.
const BATCH_BYTES: usize = 256 << 10;
/// Interval between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of a write, after which the connection counts as broken.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long rows are still sent at the end of the process.
const SHUTDOWN_TIME: Duration = Duration::from_secs(5);

/// A sink, and the counters of its rows.
#[derive(Clone, Debug)]
pub(crate) struct Sink {
    pub(crate) target: Target,
    queue: Arc<Queue>,
    spool: Option<Arc<Mutex<Spool>>>,
}

/// Counters of the rows of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinkCounts {
    pub(crate) name: String,
    /// Number of rows that were sent to the target.
    pub(crate) sent: u64,
    /// Number of rows in the queue.
    pub(crate) queued: u64,
    /// Number of rows in the spool.
    pub(crate) spooled: u64,
    /// Number of rows that were dropped.
    pub(crate) dropped: u64,
}

/// Options of the spool, which stores rows while a target is unavailable.
#[derive(Clone, Debug)]
pub(crate) struct SpoolOptions {
    /// The folder, in which each sink has a folder of its own.
    pub(crate) folder: PathBuf,
    /// Maximum number of bytes of each sink.
    pub(crate) limit: u64,
}

/// The rows to send next.
enum Work {
    /// From the queue.
    Queued(Vec<Row>),
    /// The oldest segment of the spool.
    Spooled(Vec<Row>),
}

/// The state of the sending thread.
#[derive(Default)]
struct Delivery {
    connection: Option<Connection>,
    is_away: bool,
}

impl Sink {
    /// Starts the threads of a sink.
    ///
    /// # Errors
    /// If the spool cannot be opened or a thread cannot be started.
    pub(crate) fn start(
        target: Target,
        spool: Option<&SpoolOptions>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let spool = spool.map(|options| {
            let folder = options.folder.join(folder_name(&target));
            Spool::open(&folder, options.limit).map_err(|error| {
                io::Error::new(error.kind(), format!("--spool {}: {error}", folder.display()))
            })
        });
        let spool = spool.transpose()?;
        let left = spool.as_ref().map_or(0, Spool::rows);
        if left > 0 {
            tracing::info!(sink = %target, rows = left, "{target}: sending {left} rows of an earlier run first");
        }
        let sink = Self {
            target,
            queue: Arc::new(Queue::new(MAX_QUEUED_BYTES)),
            spool: spool.map(|spool| Arc::new(Mutex::new(spool))),
        };
        sink.queue.lock().spooled = left;
        if sink.spool.is_some() {
            let shared = sink.clone();
            let work = move || shared.fill_spool();
            thread::Builder::new().name("spool".into()).spawn(work)?;
        }
        let shared = sink.clone();
        let work = move || shared.work();
        let thread = thread::Builder::new().name("sink".into()).spawn(work)?;
        Ok((sink, thread))
    }

    pub(crate) fn counts(&self) -> SinkCounts {
        let state = self.queue.lock();
        SinkCounts {
            name: self.target.to_string(),
            sent: state.sent,
            queued: state.rows.len() as u64,
            spooled: state.spooled,
            dropped: state.dropped,
        }
    }

    /// Ends the sink: queued rows are sent for up to [`SHUTDOWN_TIME`]. Remaining rows stay in the spool.
    pub(crate) fn end(&self) {
        self.queue.lock().ending = Some(Instant::now());
        self.queue.notify();
    }

    fn spool(&self) -> Option<MutexGuard<'_, Spool>> {
        Some(self.spool.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves rows from the queue to the spool while the queue is half full.
    fn fill_spool(&self) {
        let mut is_broken = false;
        loop {
            let state = self.queue.wait(|state| self.queue.is_high(state) || state.ended);
            if state.ended {
                return;
            }
            drop(state);
            match self.move_to_spool() {
                Ok(()) => is_broken = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_broken, true) {
                        tracing::error!(%error, "--spool: {error}; rows are queued in memory");
                    }
                    thread::sleep(RETRY_INTERVAL);
                }
            }
        }
    }

    /// Moves all rows of the queue to the spool. Without a spool, they stay.
    fn move_to_spool(&self) -> io::Result<()> {
        // Locked while rows are in neither, so that the other thread does not send newer rows meanwhile.
        let Some(mut spool) = self.spool() else { return Ok(()) };
        let rows = self.queue.lock().take(usize::MAX);
        if rows.is_empty() {
            return Ok(());
        }
        let appended = spool.append(&rows);
        let mut state = self.queue.lock();
        state.spooled = spool.rows();
        match appended {
            Ok(dropped) => state.dropped += dropped,
            Err(error) => {
                state.put_back(rows);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The oldest rows; `None` if there are none and the sink ends.
    fn next(&self) -> Option<Work> {
        loop {
            if let Some(mut spool) = self.spool()
                && !spool.is_empty()
            {
                match spool.oldest() {
                    Ok(rows) => return Some(Work::Spooled(rows)),
                    Err(error) => {
                        tracing::error!(%error, "--spool: {error}; its oldest rows are lost");
                        self.remove_segment(&mut spool, false);
                        continue;
                    }
                }
            }
            let state = self.queue.wait(|state| {
                !state.rows.is_empty() || state.spooled > 0 || state.ending.is_some()
            });
            let is_over = state.ending.is_some() && state.rows.is_empty() && state.spooled == 0;
            drop(state);
            if is_over {
                return None;
            }
            // With the spool locked, so that newer rows do not overtake those in the spool.
            let spool = self.spool();
            if spool.as_ref().is_none_or(|spool| spool.is_empty()) {
                let rows = self.queue.lock().take(BATCH_BYTES);
                if !rows.is_empty() {
                    return Some(Work::Queued(rows));
                }
            }
        }
    }

    fn work(&self) {
        let mut delivery = Delivery::default();
        while let Some(work) = self.next() {
            let is_spooled = matches!(work, Work::Spooled(_));
            let (Work::Queued(rows) | Work::Spooled(rows)) = work;
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let (batch_len, others) = rest.split_at(batch_len(rest));
                if !self.deliver(&mut delivery, batch_len) {
                    self.keep(if is_spooled { &[] } else { rest });
                    return;
                }
                rest = others;
            }
            if let Some(mut spool) = self.spool().filter(|_| is_spooled) {
                self.remove_segment(&mut spool, true);
            }
        }
        self.queue.lock().ended = true;
        self.queue.notify();
    }

    /// Removes the oldest segment of the spool.
    fn remove_segment(&self, spool: &mut Spool, was_sent: bool) {
        let before = spool.rows();
        if let Err(error) = spool.sent() {
            tracing::error!(%error, "--spool: {error}");
        }
        let mut state = self.queue.lock();
        state.spooled = spool.rows();
        if !was_sent {
            state.dropped += before - spool.rows();
        }
    }

    /// Sends rows, with retries. Returns `false` if the process ends before they are sent.
    fn deliver(&self, delivery: &mut Delivery, rows: &[Row]) -> bool {
        let target = &self.target;
        loop {
            let sent = match &mut delivery.connection {
                Some(connection) => connection::send(connection, rows),
                None => connection::connect(target)
                    .and_then(|new| connection::send(delivery.connection.insert(new), rows)),
            };
            match sent {
                Ok(refused) => {
                    let mut state = self.queue.lock();
                    state.sent += rows.len() as u64 - refused;
                    state.dropped += refused;
                    drop(state);
                    if refused > 0 {
                        tracing::warn!(sink = %target, rows = refused, "{target}: dropped {refused} rows that are longer than the target accepts");
                    }
                    if std::mem::take(&mut delivery.is_away) {
                        tracing::info!(sink = %target, "{target}: sending rows again");
                    }
                    return true;
                }
                Err(error) => {
                    // Rows in transit are sent again: none is lost, some may arrive twice.
                    delivery.connection = None;
                    if !std::mem::replace(&mut delivery.is_away, true) {
                        tracing::warn!(sink = %target, %error, "{target}: {error}; rows are queued");
                    }
                }
            }
            // With a spool the rows are safe without waiting.
            let limit = if self.spool.is_some() { Duration::ZERO } else { SHUTDOWN_TIME };
            if self.queue.lock().ending.is_some_and(|since| since.elapsed() >= limit) {
                return false;
            }
            thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Stores the remaining rows at the end of the process in the spool, or drops and counts them. `rows` were in transit.
    fn keep(&self, rows: &[Row]) {
        let stored = match self.spool() {
            Some(mut spool) => {
                spool.unsent();
                spool.prepend(rows)
            }
            None => Err(io::ErrorKind::TimedOut.into()),
        };
        let stored = match stored {
            Ok(()) => self.move_to_spool(),
            Err(error) => {
                self.queue.lock().dropped += rows.len() as u64;
                if self.spool.is_some() { Err(error) } else { Ok(()) }
            }
        };
        if let Err(error) = stored {
            tracing::error!(%error, "--spool: {error}; queued rows are dropped");
        }
        let on_disk = self.spool().map_or(0, |spool| spool.rows());
        let mut state = self.queue.lock();
        state.spooled = on_disk;
        state.dropped += state.rows.len() as u64;
        state.rows.clear();
        state.ended = true;
        drop(state);
        self.queue.notify();
    }
}

/// The number of rows, at least one, that have about [`BATCH_BYTES`].
fn batch_len(rows: &[Row]) -> usize {
    let mut bytes = 0;
    let within = rows.iter().take_while(|row| {
        bytes += row.len();
        bytes <= BATCH_BYTES
    });
    within.count().max(1)
}

/// The name of a sink's spool folder: that of its target without characters that folder names cannot contain.
fn folder_name(target: &Target) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    target.to_string().chars().map(plain).collect()
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
            keys: BTreeMap::new(),
            logs: BTreeMap::new(),
            text: text.open(&options),
        })
    }
}

struct SinkWriter {
    sink: Sink,
    tap: Tap,
    rows: Tapped,
    /// The uids of rows that did not pass the tap yet, by log, for a sink that uses them.
    keys: BTreeMap<&'static str, VecDeque<Option<Box<[u8]>>>>,
    /// The names of logs.
    logs: BTreeMap<&'static str, Arc<str>>,
    /// Formats rows, which then pass the tap.
    text: Box<dyn PackedWriter>,
}

impl PackedWriter for SinkWriter {
    fn write(&mut self, stream: &PackedStream<'_>, rows: PackedRows<'_>) -> io::Result<()> {
        if matches!(self.sink.target, Target::Kafka(_)) {
            let column = stream.fields.iter().position(|field| field.name == "uid");
            self.keys
                .entry(stream.path)
                .or_default()
                .extend(rows.map(|row| uid(stream, row, column?)));
        }
        self.text.write(stream, rows)?;
        self.tap.take(&mut self.rows);
        for row in &self.rows.rows {
            let start = row.start as usize;
            let line = self.rows.bytes.get(start..start + row.len as usize).unwrap_or_default();
            let path = self.rows.path(row.stream).unwrap_or_default();
            let head = format!("{{\"_path\":\"{path}\",");
            let line = [head.as_bytes(), line.strip_prefix(b"{").unwrap_or(line), b"\n"].concat();
            let log = self.logs.entry(path).or_insert_with(|| path.into()).clone();
            let key = self.keys.get_mut(path).and_then(VecDeque::pop_front).flatten();
            self.sink.queue.push(Row { log, key, line: line.into() });
        }
        Ok(())
    }

    fn close(&mut self, now: Time) -> io::Result<()> {
        self.text.close(now)
    }
}

/// The uid of a row.
fn uid(stream: &PackedStream<'_>, row: &[u8], column: usize) -> Option<Box<[u8]>> {
    let mut cells = Cells::new(row);
    for field in stream.fields.get(..column)? {
        cells.of(field.ty);
    }
    match cells.of(stream.fields.get(column)?.ty) {
        Cell::Plain(uid) | Cell::String(uid) => Some(uid.into()),
        _ => None,
    }
}

/// Paths that the process needs to connect to the targets: folders of sockets, and files for host names.
pub(crate) fn paths(targets: &[Target]) -> Vec<PathBuf> {
    let path = |target: &Target| match target {
        Target::Unix(path) | Target::Syslog(path) => path.parent().map(Path::to_owned),
        // Host names are resolved with files there.
        Target::Tcp(_) | Target::SyslogUdp(_) | Target::Kafka(_) => Some(PathBuf::from("/etc")),
    };
    targets.iter().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;
    use std::net::TcpListener;

    use super::*;

    fn row(line: &str) -> Row {
        Row { log: "conn".into(), key: None, line: line.as_bytes().into() }
    }

    /// An address where nothing listens.
    fn free_address() -> std::net::SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

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
    fn rows_wait_for_an_unavailable_target() {
        let address = free_address();
        let target = format!("tcp://{address}").parse().unwrap();
        let (sink, thread) = Sink::start(target, None).unwrap();
        sink.queue.push(row("one\n"));
        thread::sleep(Duration::from_millis(100));
        assert_eq!(sink.counts().sent, 0);
        let listener = TcpListener::bind(address).unwrap();
        let (client, _) = listener.accept().unwrap();
        sink.queue.push(row("two\n"));
        let mut lines = BufReader::new(client).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "one");
        assert_eq!(lines.next().unwrap().unwrap(), "two");
        sink.end();
        thread.join().unwrap();
        let counts = sink.counts();
        assert_eq!((counts.sent, counts.queued, counts.dropped), (2, 0, 0));
    }

    #[test]
    fn a_spool_stores_rows_beyond_the_queue_and_after_the_process() {
        let folder = std::env::temp_dir().join(format!("gannet-sinks-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let options = SpoolOptions { folder: folder.clone(), limit: 1 << 30 };
        let address = free_address();
        let target: Target = format!("tcp://{address}").parse().unwrap();
        let (sink, thread) = Sink::start(target.clone(), Some(&options)).unwrap();
        let line = |n: usize| format!("{n} {}\n", "x".repeat(1 << 20));
        for n in 0..100 {
            // Slower than the disk: otherwise the queue itself may be full.
            while sink.queue.lock().bytes > 48 << 20 {
                thread::sleep(Duration::from_millis(1));
            }
            sink.queue.push(row(&line(n)));
        }
        sink.end();
        thread.join().unwrap();
        let counts = sink.counts();
        assert_eq!((counts.sent, counts.queued, counts.spooled, counts.dropped), (0, 0, 100, 0));
        drop(sink);

        let listener = TcpListener::bind(address).unwrap();
        // The thread that fills the spool may hold it for a moment.
        let start = || Sink::start(target.clone(), Some(&options));
        let (sink, thread) = (0..100)
            .find_map(|_| {
                start().ok().or_else(|| {
                    thread::sleep(Duration::from_millis(10));
                    None
                })
            })
            .unwrap();
        sink.queue.push(row("last\n"));
        let (client, _) = listener.accept().unwrap();
        let lines = BufReader::new(client).lines().map(Result::unwrap);
        for (n, got) in lines.take(101).enumerate() {
            let expected = if n == 100 { "last\n".into() } else { line(n) };
            assert!(got == expected.trim_end(), "row {n}");
        }
        sink.end();
        thread.join().unwrap();
        let counts = sink.counts();
        assert_eq!((counts.sent, counts.spooled, counts.dropped), (101, 0, 0));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
