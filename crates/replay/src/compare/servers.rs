//! The results of both servers of a comparison in two columns.

use std::fmt::Write;
use std::time::Duration;

use crate::Counts;
use crate::Report;
use crate::json;
use crate::message::rcode_name;
use crate::table::time;

/// Minimum width of a column.
const WIDTH: usize = 14;
/// Quantiles of the latency that are shown, with their names in text and in JSON.
const LATENCIES: [(f64, &str, &str); 5] = [
    (0.5, "latency p50", "p50"),
    (0.9, "  p90", "p90"),
    (0.99, "  p99", "p99"),
    (0.999, "  p99.9", "p99_9"),
    (1.0, "  max", "max"),
];

/// A table with a column for each server, headed by its address.
pub(super) fn table(servers: [&Report; 2]) -> String {
    let mut out = String::new();
    let addresses = servers.map(|r| r.target.to_string());
    let width = addresses.iter().map(String::len).max().unwrap_or(0).max(WIDTH);
    let mut row = |name: &str, values: [String; 2]| {
        let [a, b] = values;
        // Writing to a string cannot fail.
        writeln!(out, "  {name:<11}  {a:>width$}  {b:>width$}").unwrap_or_default();
    };
    row("server", addresses);
    for (index, (name, _)) in counts(servers[0].counts()).into_iter().enumerate() {
        let values = servers.map(|r| counts(r.counts())[index].1);
        if name == "sent" || name == "answered" || name == "lost" || values != [0, 0] {
            row(&name.replace('_', " "), values.map(|n| n.to_string()));
        }
        if name == "answered" {
            row("", servers.map(|r| share(r.counts().answered, r.counts().sent)));
        }
    }
    for code in 0..servers[0].counts().rcodes.len() {
        let values = servers.map(|r| r.counts().rcodes[code]);
        if values != [0, 0] {
            row(rcode_name(code), values.map(|n| n.to_string()));
        }
    }
    if servers.iter().any(|r| r.latency(0.5).is_some()) {
        for (quantile, name, _) in LATENCIES {
            row(name, servers.map(|r| r.latency(quantile).map_or("-".to_owned(), time)));
        }
    }
    out.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// A JSON array with an object for each server.
pub(super) fn json(servers: [&Report; 2], out: &mut String) -> std::fmt::Result {
    let mut comma = "";
    out.push('[');
    for report in servers {
        write!(out, "{comma}{{\"server\":\"{}\"", report.target)?;
        comma = ",";
        let c = report.counts();
        for (name, count) in counts(c) {
            write!(out, ",\"{name}\":{count}")?;
        }
        out.push_str(",\"response_rcodes\":{");
        let codes = c.rcodes.iter().enumerate().filter(|(_, n)| **n > 0);
        for (index, (code, count)) in codes.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}\"{}\":{count}", rcode_name(code))?;
        }
        out.push('}');
        if let Some(mean) = report.mean_latency() {
            write!(out, ",\"response_latency\":{{\"avg\":{}", mean.as_nanos())?;
            for (quantile, _, name) in LATENCIES {
                let time = report.latency(quantile).as_ref().map_or(0, Duration::as_nanos);
                write!(out, ",\"{name}\":{time}")?;
            }
            out.push('}');
        }
        if let Some(why) = report.first_error() {
            out.push_str(",\"first_error\":");
            json::text(why, out)?;
        }
        out.push('}');
    }
    out.push(']');
    Ok(())
}

fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.2} %", 100.0 * part as f64 / all as f64) }
}

/// Counts of one server, in the order of a report.
fn counts(c: &Counts) -> [(&'static str, u64); 16] {
    [
        ("sent", c.sent),
        ("answered", c.answered),
        ("lost", c.lost),
        ("open", c.open),
        ("retries", c.retries),
        ("late", c.late),
        ("duplicates", c.duplicates),
        ("mismatched", c.mismatched),
        ("unexpected", c.unexpected),
        ("garbage", c.garbage),
        ("connections", c.connections),
        ("failed", c.connections_failed),
        ("broken", c.connections_broken),
        ("refused", c.refused),
        ("unreachable", c.unreachable),
        ("unsent", c.unsent),
    ]
}
