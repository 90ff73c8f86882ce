//! `gannet top`: the activity of a sensor, updated every second on a terminal.

use std::fmt::Write as _;
use std::io;
use std::io::IsTerminal as _;
use std::io::Read as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use indicatif::HumanBytes;
use indicatif::HumanCount;
use rustix::event::PollFd;
use rustix::event::PollFlags;
use rustix::termios;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Timeout of a request to the sensor.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Size of the screen printed without a terminal.
const DEFAULT_SIZE: Size = Size { columns: 100, lines: 60 };
/// Width of the figures after a name, in columns.
const FIGURES_WIDTH: usize = 26;

/// Show the activity of a sensor: rates, losses, top talkers, logs
///
/// The sensor must serve its metrics: gannet analyze -i eth0 --metrics 127.0.0.1:9911. The screen is
/// redrawn every second; q or Ctrl-C ends the display. Without a terminal, or with --once, one screen is printed as text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the sensor serves its metrics
    #[arg(value_name = "ADDRESS", default_value = "127.0.0.1:9911")]
    address: SocketAddr,
    /// Print one screen and end
    #[arg(long)]
    once: bool,
    /// Print the sensor's snapshot as JSON and end
    #[arg(long, conflicts_with = "once")]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let first = match request(args.address) {
        Ok(first) => first,
        Err(error) => {
            terminal.error(&format_args!("no sensor responds at {}: {error}", args.address));
            let hint = "start the sensor with --metrics 127.0.0.1:9911 to serve its metrics";
            terminal.hint(&hint);
            return Ok(Outcome::NoCapture);
        }
    };
    if args.json {
        writeln!(io::stdout(), "{}", with_talkers(args.address)?)?;
        return Ok(Outcome::Done);
    }
    if args.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let started = Instant::now();
        let second = with_talkers(args.address)?;
        let frame = draw(args.address, &first, &second, started.elapsed(), DEFAULT_SIZE);
        io::stdout().write_all(frame.as_bytes())?;
        return Ok(Outcome::Done);
    }
    watch(args.address, first, &terminal)
}

/// A snapshot with talkers, which are counted from this request on: after two seconds, or a few more while no packet
/// arrives.
fn with_talkers(address: SocketAddr) -> anyhow::Result<Value> {
    let started = Instant::now();
    std::thread::sleep(Duration::from_millis(2_100));
    loop {
        let snapshot =
            request(address).with_context(|| format!("{address}: the sensor has ended"))?;
        let hosts = snapshot["talkers"]["hosts"].as_array();
        if hosts.is_some_and(|hosts| !hosts.is_empty()) || started.elapsed() >= MAX_PACKET_WAIT {
            return Ok(snapshot);
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Maximum time that a single screen waits for the first packet.
const MAX_PACKET_WAIT: Duration = Duration::from_secs(10);

/// Redraws the screen until a key or a signal ends it.
fn watch(address: SocketAddr, mut before: Value, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let stop = Stop::on_signals()?;
    let screen = Screen::open()?;
    let mut at = Instant::now();
    loop {
        if stop.requested().is_some() || screen.is_left(Duration::from_secs(1))? {
            return Ok(Outcome::Done);
        }
        let now = match request(address) {
            Ok(now) => now,
            Err(error) => {
                drop(screen);
                terminal.error(&format_args!("{address}: the sensor has ended: {error}"));
                return Ok(Outcome::Failed);
            }
        };
        screen.show(&draw(address, &before, &now, at.elapsed(), screen.size()))?;
        (before, at) = (now, Instant::now());
    }
}

/// The terminal's alternate screen, which is left when this is dropped.
struct Screen {
    before: termios::Termios,
}

#[derive(Clone, Copy)]
struct Size {
    columns: usize,
    lines: usize,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut keys = before.clone();
        keys.local_modes.remove(termios::LocalModes::ICANON | termios::LocalModes::ECHO);
        termios::tcsetattr(io::stdin(), termios::OptionalActions::Now, &keys)?;
        // The alternate screen, without a cursor: ECMA-48 and xterm's control sequences.
        io::stdout().write_all(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Self { before })
    }

    fn size(&self) -> Size {
        match termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), lines: size.ws_row.into() }
            }
            _ => DEFAULT_SIZE,
        }
    }

    fn show(&self, frame: &str) -> io::Result<()> {
        let mut out = String::from("\x1b[H");
        for line in frame.lines().take(self.size().lines) {
            // Clears the rest of the line from an earlier frame.
            out.push_str(line);
            out.push_str("\x1b[K\r\n");
        }
        out.truncate(out.trim_end().len());
        out.push_str("\x1b[J");
        io::stdout().write_all(out.as_bytes())?;
        io::stdout().flush()
    }

    /// Waits for a key, at most `time`. Returns whether the key was q.
    fn is_left(&self, time: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let time = time.try_into().ok();
        match rustix::event::poll(&mut fds, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut keys = [0; 64];
        let read = rustix::io::read(stdin.as_fd(), &mut keys)?;
        let keys = keys.get(..read).unwrap_or_default();
        Ok(read == 0 || keys.iter().any(|key| matches!(key, b'q' | b'Q')))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error is ignored: the terminal may be closed.
        let _ = io::stdout().write_all(b"\x1b[?25h\x1b[?1049l");
        let _ = io::stdout().flush();
        let _ = termios::tcsetattr(io::stdin(), termios::OptionalActions::Now, &self.before);
    }
}

/// Requests the snapshot of a sensor.
fn request(address: SocketAddr) -> io::Result<Value> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /top HTTP/1.1\r\nHost: gannet\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(16 << 20).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(io::Error::other("the server is not a sensor of this version"));
    }
    serde_json::from_str(body).map_err(io::Error::other)
}

/// Renders one screen: the differences between two snapshots.
fn draw(address: SocketAddr, before: &Value, now: &Value, took: Duration, size: Size) -> String {
    let count = |of: &Value, name: &str| of.get(name).and_then(Value::as_u64).unwrap_or(0);
    let float = |name: &str| now.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    // Rates use the sensor's clock: its snapshots are a second apart, independent of the time of the request.
    let clock = |of: &Value| of.get("time").and_then(Value::as_f64).unwrap_or(0.0);
    let between = clock(now) - clock(before);
    let seconds = if between > 0.0 { between } else { took.as_secs_f64().max(0.001) };
    let rate = |name: &str| count(now, name).saturating_sub(count(before, name)) as f64 / seconds;
    let links = now.get("interfaces").and_then(Value::as_array);
    let links: Vec<&str> = links.into_iter().flatten().filter_map(Value::as_str).collect();
    let active = |name: &str| count(now.get("active").unwrap_or(&Value::Null), name);
    let mut lines = vec![
        format!("gannet at {address}, capturing on {}", links.join(", ")),
        format!(
            "packets      {}   dropped {} ({} in all)   lag {:.0} ms   memory {}",
            rates(rate("packets"), rate("bytes")),
            per_second(rate("dropped")),
            HumanCount(count(now, "dropped")),
            1000.0 * float("lag"),
            HumanBytes(count(now, "memory")),
        ),
        format!(
            "connections  TCP {}   UDP {}   ICMP {}   new {}",
            HumanCount(active("tcp")),
            HumanCount(active("udp")),
            HumanCount(active("icmp")),
            per_second(rate("connections")),
        ),
    ];
    let sinks = now.get("sinks").and_then(Value::as_array);
    for sink in sinks.into_iter().flatten() {
        let name = sink.get("name").and_then(Value::as_str).unwrap_or_default();
        let of = |name| HumanCount(count(sink, name));
        lines.push(format!(
            "rows to      {name}: sent {}, queued {}, on disk {}, dropped {}",
            of("sent"),
            of("queued"),
            of("spooled"),
            of("dropped")
        ));
    }
    let talkers = now.get("talkers").unwrap_or(&Value::Null);
    let tables = [
        ("HOST", talker_rows(talkers, "hosts")),
        ("PAIR OF HOSTS", talker_rows(talkers, "pairs")),
        ("SERVICE", talker_rows(talkers, "services")),
        ("LOG", log_rows(before, now, seconds)),
    ];
    // The tables share the remaining lines: each has a heading, an empty line and rows.
    let left = size.lines.saturating_sub(lines.len() + 2 * tables.len());
    let each = (left / tables.len()).max(1);
    for (title, rows) in tables {
        lines.push(String::new());
        let (first, second) =
            if title == "LOG" { ("ROWS/S", "ROWS") } else { ("PACKETS/S", "BIT/S") };
        let width = size.columns.saturating_sub(FIGURES_WIDTH).clamp(16, 60);
        lines.push(format!("{title:<width$}{first:>12}{second:>14}"));
        if rows.is_empty() {
            lines.push("(none)".to_owned());
        }
        for (name, first, second) in rows.into_iter().take(each) {
            let name: String = name.chars().take(width).collect();
            lines.push(format!("{name:<width$}{first:>12}{second:>14}"));
        }
    }
    let mut out = String::new();
    for line in lines {
        let line: String = line.chars().take(size.columns).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Rows of names with packets and bits per second.
fn talker_rows(talkers: &Value, kind: &str) -> Vec<(String, String, String)> {
    let rows = talkers.get(kind).and_then(Value::as_array);
    let row = |row: &Value| {
        let of = |name: &str| row.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let name = row.get("name").and_then(Value::as_str).unwrap_or_default();
        let packets = match of("packets") {
            few if few < 10.0 && few.fract() > 0.0 => format!("{few:.1}"),
            packets => HumanCount(packets.round() as u64).to_string(),
        };
        (name.to_owned(), packets, bits(8.0 * of("bytes")))
    };
    rows.into_iter().flatten().map(row).collect()
}

/// Rows of logs with rows per second and total rows, sorted by rows per second.
fn log_rows(before: &Value, now: &Value, seconds: f64) -> Vec<(String, String, String)> {
    let rows = |of: &Value, log: &str| of.get("rows").and_then(|rows| rows.get(log)?.as_u64());
    let logs = now.get("rows").and_then(Value::as_object);
    let mut all: Vec<(u64, u64, &String)> = logs
        .into_iter()
        .flatten()
        .map(|(log, count)| {
            let count = count.as_u64().unwrap_or(0);
            (count.saturating_sub(rows(before, log).unwrap_or(0)), count, log)
        })
        .collect();
    all.sort_by(|a, b| b.cmp(a));
    let row = |(new, count, log): (u64, u64, &String)| {
        let new = HumanCount((new as f64 / seconds).round() as u64).to_string();
        (log.clone(), new, HumanCount(count).to_string())
    };
    all.into_iter().map(row).collect()
}

fn rates(packets: f64, bytes: f64) -> String {
    format!("{}   {}bit/s", per_second(packets), bits(8.0 * bytes))
}

fn per_second(count: f64) -> String {
    format!("{}/s", HumanCount(count.round() as u64))
}

/// Bits with a decimal prefix, as network speeds have.
fn bits(bits: f64) -> String {
    let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match prefixes.into_iter().find(|(size, _)| bits >= *size) {
        Some((size, prefix)) => format!("{:.1} {prefix}", bits / size),
        None => format!("{bits:.0} "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sensor_that_ends_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sensor = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A connection that is closed before its data is read is reset.
            let mut request = [0; 256];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{}").unwrap();
        });
        let error = run(&Args { address, once: false, json: true }).unwrap_err();
        sensor.join().unwrap();
        assert!(format!("{error:#}").starts_with(&format!("{address}: the sensor has ended: ")));
    }

    #[test]
    fn a_screen_has_rates_and_fits() {
        let snapshot = |time: f64, packets: u64| {
            json!({
                "time": time, "packets": packets, "bytes": packets * 100, "dropped": 3,
                "interfaces": ["eth0"], "lag": 0.002, "memory": 1 << 20,
                "active": { "tcp": 5, "udp": 6, "icmp": 7 }, "connections": packets / 10,
                "rows": { "conn": packets / 10, "dns": 1 },
                "sinks": [{ "name": "tcp://x:1", "sent": 4, "queued": 0, "spooled": 0, "dropped": 0 }],
                "talkers": {
                    "hosts": [{ "name": "10.0.0.1", "packets": 1000, "bytes": 125_000 }],
                    "pairs": [], "services": [{ "name": "TCP 443", "packets": 9, "bytes": 2e9 }, { "name": "UDP 53", "packets": 0.3, "bytes": 20 }],
                },
            })
        };
        let address = "127.0.0.1:9911".parse().unwrap();
        let size = Size { columns: 80, lines: 40 };
        let took = Duration::from_secs(9);
        let text = draw(address, &snapshot(10.0, 0), &snapshot(12.0, 2_000), took, size);
        assert!(
            text.contains("packets      1,000/s   800.0 kbit/s   dropped 0/s (3 in all)"),
            "{text}"
        );
        assert!(text.contains("TCP 5   UDP 6   ICMP 7   new 100/s"), "{text}");
        assert!(text.contains("rows to      tcp://x:1: sent 4"), "{text}");
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(line("10.0.0.1 ").ends_with("1,000         1.0 M"), "{text}");
        assert!(line("TCP 443 ").ends_with("9        16.0 G"), "{text}");
        assert!(line("UDP 53 ").ends_with("0.3          160 "), "{text}");
        assert!(
            line("PAIR OF HOSTS").contains("PACKETS/S") && text.contains("\n(none)\n"),
            "{text}"
        );
        assert!(line("conn ").ends_with("100           200"), "{text}");
        for lines in [1, 10, 24, 60] {
            let size = Size { columns: 40, lines };
            let text = draw(address, &snapshot(1.0, 1), &snapshot(2.0, 2), took, size);
            assert!(text.lines().all(|line| line.len() <= 40), "{text}");
        }
    }
}
