//! Metrics for Prometheus: the text format over HTTP.
//!
//! `/top` returns the same counters and more as JSON, for `gannet top`. Metrics that Zeek has as well have Zeek's names, so
//! that dashboards work.

use std::fmt::Write as _;
use std::io;
use std::io::Read as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::sinks::SinkCounts;
use super::snapshot::Latest;
use super::snapshot::Snapshot;

/// Timeout for reading a request, and for writing the answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a request in bytes: longer ones are refused.
const MAX_REQUEST: usize = 8 << 10;

/// Serves metrics until the process ends.
pub(crate) fn serve(listener: TcpListener, latest: Latest) -> io::Result<()> {
    let serve = move || {
        for client in listener.incoming() {
            match client {
                // Errors are ignored: the client has closed the connection.
                Ok(client) => answer(client, &latest).unwrap_or_default(),
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    };
    thread::Builder::new().name("metrics".into()).spawn(serve)?;
    Ok(())
}

fn answer(mut client: TcpStream, latest: &Latest) -> io::Result<()> {
    client.set_read_timeout(Some(TIMEOUT))?;
    client.set_write_timeout(Some(TIMEOUT))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let read = client.read(&mut piece)?;
        request.extend_from_slice(piece.get(..read).unwrap_or_default());
        if read == 0 || request.len() > MAX_REQUEST {
            return respond(&mut client, "400 Bad Request", "text/plain", "bad request\n");
        }
    }
    let line = request.split(|b| *b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|b| *b == b' ');
    match (words.next(), words.next()) {
        (Some(b"GET" | b"HEAD"), Some(b"/metrics")) => {
            let text = expose(&latest.get());
            respond(&mut client, "200 OK", "text/plain; version=0.0.4; charset=utf-8", &text)
        }
        (Some(b"GET" | b"HEAD"), Some(b"/top")) => {
            latest.watch();
            let text = format!("{}\n", latest.get().json());
            respond(&mut client, "200 OK", "application/json", &text)
        }
        (Some(b"GET"), Some(b"/health")) => respond(&mut client, "200 OK", "text/plain", "ok\n"),
        (Some(b"GET" | b"HEAD"), _) => respond(
            &mut client,
            "404 Not Found",
            "text/plain",
            "metrics are at /metrics, a snapshot in JSON is at /top\n",
        ),
        _ => respond(&mut client, "405 Method Not Allowed", "text/plain", "GET only\n"),
    }
}

fn respond(client: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// Builder of the text.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            self.0.push('{');
            for (n, (label, value)) in labels.iter().enumerate() {
                let comma = if n > 0 { "," } else { "" };
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = write!(self.0, "{comma}{label}=\"{value}\"");
            }
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[("endpoint", "gannet")], value);
    }
}

/// All metrics as text.
fn expose(now: &Snapshot) -> String {
    let mut text = Text(String::with_capacity(8 << 10));
    let ledger = &now.ledger;
    let received: u64 = ledger.links.values().map(|link| link.received).sum();
    let counters = [
        ("zeek_net_received_bytes_total", "Bytes of packets analysed.", now.bytes),
        ("zeek_net_received_packets_total", "Packets analysed.", now.packets),
        (
            "zeek_net_dropped_packets_total",
            "Packets lost before they were analysed.",
            ledger.lost(),
        ),
        ("zeek_net_link_packets_total", "Packets that the interfaces received.", received),
        ("zeek_net_filtered_packets_total", "Packets that the filter rejected.", now.filtered),
        (
            "gannet_backlog_drops_total",
            "Packets that the kernel lost in its backlog, of all interfaces.",
            ledger.backlog_drops,
        ),
        ("gannet_connections_total", "Connections.", now.gauge.connections),
        (
            "gannet_evicted_connections_total",
            "Connections that ended early because of a limit.",
            now.gauge.state.ended(),
        ),
        (
            "gannet_wrong_checksums_total",
            "Packets discarded for a wrong checksum.",
            now.gauge.state.wrong_checksums,
        ),
    ];
    for (name, help, value) in counters {
        text.one(name, "counter", help, value as f64);
    }
    let gauges = [
        (
            "zeek_net_packet_lag_seconds",
            "Time from the capture of the last packet to its analysis.",
            now.lag,
        ),
        ("zeek_net_timestamp_seconds", "Time of this snapshot.", now.time.as_secs_f64()),
        ("zeek_timers_pending", "Timers.", now.gauge.timers as f64),
        ("gannet_resident_bytes", "Resident memory.", now.memory as f64),
        (
            "gannet_reassembly_bytes",
            "Bytes of TCP streams that wait above holes.",
            now.gauge.reassembly as f64,
        ),
        ("gannet_fragment_bytes", "Bytes of IP fragments.", now.gauge.fragments as f64),
    ];
    for (name, help, value) in gauges {
        text.one(name, "gauge", help, value);
    }
    text.family("zeek_active_sessions", "gauge", "Connections at the moment.");
    for (protocol, count) in ["tcp", "udp", "icmp"].iter().zip(now.gauge.active) {
        let labels = [("endpoint", "gannet"), ("protocol", *protocol)];
        text.sample("zeek_active_sessions", &labels, count as f64);
    }
    let ring = |text: &mut Text,
                name: &str,
                help: &str,
                of: fn(&gannet_live::RingCounters) -> u64| {
        text.family(name, "counter", help);
        for (socket, (interface, counters)) in ledger.by_ring.iter().enumerate() {
            let socket = socket.to_string();
            text.sample(name, &[("iface", interface), ("socket", &socket)], of(counters) as f64);
        }
    };
    ring(&mut text, "gannet_ring_packets_total", "Packets read from a capture ring.", |c| c.read);
    ring(&mut text, "gannet_ring_drops_total", "Packets that found the ring full.", |c| c.dropped);
    ring(&mut text, "gannet_ring_freezes_total", "Times that the ring became full.", |c| c.freezes);
    let link =
        |text: &mut Text, name: &str, help: &str, of: fn(&gannet_live::LinkCounters) -> u64| {
            text.family(name, "counter", help);
            for (interface, counters) in &ledger.links {
                text.sample(name, &[("iface", interface)], of(counters) as f64);
            }
        };
    link(&mut text, "gannet_link_missed_total", "Packets that the network card lost.", |c| {
        c.missed
    });
    link(&mut text, "gannet_link_dropped_total", "Packets that the driver lost.", |c| c.dropped);
    text.family("zeek_log_stream_writes_total", "counter", "Rows written.");
    for (log, rows) in &now.rows {
        let labels = [("endpoint", "gannet"), ("stream", *log)];
        text.sample("zeek_log_stream_writes_total", &labels, *rows as f64);
    }
    text.family(
        "zeek_log_writer_discarded_writes_total",
        "counter",
        "Rows that could not be written.",
    );
    for (log, rows) in &now.discarded {
        let labels = [("endpoint", "gannet"), ("stream", *log)];
        text.sample("zeek_log_writer_discarded_writes_total", &labels, *rows as f64);
    }
    let sink = |text: &mut Text, name: &str, kind: &str, help: &str, of: fn(&SinkCounts) -> u64| {
        text.family(name, kind, help);
        for counts in &now.sinks {
            text.sample(name, &[("sink", &counts.name)], of(counts) as f64);
        }
    };
    sink(&mut text, "gannet_queue_rows", "gauge", "Rows queued for a sink.", |c| c.queued);
    sink(&mut text, "gannet_spool_rows", "gauge", "Rows spooled on disk for a sink.", |c| {
        c.spooled
    });
    sink(&mut text, "gannet_rows_sent_total", "counter", "Rows sent to a sink.", |c| c.sent);
    sink(
        &mut text,
        "gannet_rows_dropped_total",
        "counter",
        "Rows of a sink that were dropped: its queue or spool was full, or they were too long.",
        |c| c.dropped,
    );
    text.family("gannet_build_info", "gauge", "Version of this program.");
    text.sample("gannet_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_a_family_and_labels_are_escaped() {
        let mut now = Snapshot { packets: 7, ..Snapshot::default() };
        now.rows.push(("conn", 3));
        now.ledger.by_ring.push(("e\"th\\0".into(), gannet_live::RingCounters::default()));
        let text = expose(&now);
        assert!(text.contains("\nzeek_net_received_packets_total{endpoint=\"gannet\"} 7\n"));
        assert!(text.contains("gannet_ring_drops_total{iface=\"e\\\"th\\\\0\",socket=\"0\"} 0\n"));
        let mut family = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap_or_default();
            } else if !line.starts_with('#') {
                assert!(line.starts_with(family), "{line}");
            }
        }
    }

    #[test]
    fn clients_get_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        serve(listener, Latest::default()).unwrap();
        let ask = |request: &str| {
            let mut client = TcpStream::connect(at).unwrap();
            client.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            text
        };
        assert!(ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 200"));
        let top = ask("GET /top HTTP/1.1\r\n\r\n");
        let (head, body) = top.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("application/json"), "{head}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["packets"], 0);
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(&"x".repeat(9_000)).starts_with("HTTP/1.1 400"));
    }
}
