//! The report as JSON in the schema of DNS-OARC's dns-metrics, an object per line.
//!
//! A `header` names the program, `stats_periodic` objects follow in order of time, `stats_sum` has
//! the totals. Fields outside the schema are in the object `gannet`.

use std::fmt::Write;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::Interval;
use crate::Report;
use crate::Transport;
use crate::message::rcode_name;
use crate::stats::Times;

/// Version of the schema: the date of its last change.
const SCHEMA: u32 = 20_240_223;

pub(crate) fn render(report: &Report, params: &[String]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    write_all(report, params, &mut out).unwrap_or_default();
    out
}

fn write_all(r: &Report, params: &[String], out: &mut String) -> std::fmt::Result {
    let began = nanoseconds(r.began);
    let run = format!("{began:x}-{:x}", std::process::id());
    let every = r.stats.interval_length;
    write!(out, "{{\"type\":\"header\",\"runid\":\"{run}\",\"schema_version\":{SCHEMA}")?;
    write!(
        out,
        ",\"generator\":\"gannet replay\",\"generator_version\":\"{}\"",
        env!("CARGO_PKG_VERSION")
    )?;
    out.push_str(",\"generator_params\":[");
    for (index, param) in params.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        text(param, out)?;
    }
    write!(out, "],\"time_units_per_sec\":1000000000,\"stats_interval\":{}", every as f64 / 1e9)?;
    writeln!(out, ",\"timeout\":{}}}", r.timeout.as_secs_f64())?;
    let end = began + r.elapsed.as_nanos() as u64;
    for (index, interval) in r.stats.intervals.iter().enumerate() {
        let since = began + every * index as u64;
        // The last interval ends with the run.
        let until = (since + every).min(end).max(since);
        write_stats(("stats_periodic", &run, r.transport), since, until, interval, out)?;
        out.push_str("}\n");
    }
    write_stats(("stats_sum", &run, r.transport), began + r.stats.warm_up, end, &r.total, out)?;
    let c = r.counts();
    write!(out, ",\"gannet\":{{\"target\":\"{}\",\"transport\":\"{}\"", r.target, r.transport)?;
    write!(out, ",\"timing\":\"{}\"", r.timing)?;
    write!(out, ",\"threads\":{},\"clients\":{},\"sources\":{}", r.threads, r.clients, r.sources)?;
    if let Some(requested_rate) = r.requested_rate {
        write!(out, ",\"target_rate\":{requested_rate:.3}")?;
    }
    write!(
        out,
        ",\"rate_sent\":{:.3},\"sending_ns\":{}",
        r.achieved_rate(),
        r.sending().as_nanos()
    )?;
    write!(out, ",\"scheduled_ns\":{}", r.scheduled.as_nanos())?;
    if let Some([median, p99, most]) = r.handshake().map(|times| times.map(|t| t.as_nanos())) {
        write!(out, ",\"handshake\":{{\"p50\":{median},\"p99\":{p99},\"max\":{most}}}")?;
    }
    if let Some([median, p99, most]) = r.lag().map(|lag| lag.map(|l| l.as_nanos())) {
        write!(out, ",\"send_lag\":{{\"p50\":{median},\"p99\":{p99},\"max\":{most}}}")?;
        write!(out, ",\"cpu_wait_ns\":{}", r.cpu_wait().as_nanos())?;
    }
    let counts = [
        ("sent_bytes", c.sent_bytes),
        ("late", c.late),
        ("duplicates", c.duplicates),
        ("mismatched", c.mismatched),
        ("unexpected", c.unexpected),
        ("garbage", c.garbage),
        ("refused", c.refused),
        ("unreachable", c.unreachable),
        ("unsent", c.unsent),
        ("unwatched", c.unwatched),
        ("unchanged", r.unchanged.as_ref().map_or(0, |u| u.0)),
        ("forgotten", r.forgotten),
        ("retries", c.retries),
        ("connections_broken", c.connections_broken),
        ("input_packets", r.seen.packets),
        ("input_responses", r.seen.responses),
        ("input_truncated", r.seen.skipped.truncated),
        ("input_not_dns", r.seen.skipped.not_dns),
        ("input_streams_skipped", r.seen.skipped.streams),
        ("input_bad_lines", r.seen.bad_lines),
    ];
    for (name, count) in counts {
        write!(out, ",\"{name}\":{count}")?;
    }
    if let Some(why) = r.first_error() {
        out.push_str(",\"first_error\":");
        text(why, out)?;
    }
    writeln!(out, ",\"stopped\":{}}}}}", r.stopped)
}

/// A stats object, without its closing brace.
fn write_stats(
    (kind, run, transport): (&str, &str, Transport),
    since: u64,
    until: u64,
    interval: &Interval,
    out: &mut String,
) -> std::fmt::Result {
    let c = &interval.counts;
    write!(out, "{{\"type\":\"{kind}\",\"runid\":\"{run}\",\"since\":{since},\"until\":{until}")?;
    write!(out, ",\"queries\":{},\"responses\":{},\"timeouts\":{}", c.sent, c.answered, c.lost)?;
    write!(out, ",\"interrupted\":{}", c.open)?;
    write!(out, ",\"unexpected\":{}", c.unexpected + c.late + c.duplicates)?;
    write!(out, ",\"discarded\":{},\"response_rcodes\":{{", c.mismatched + c.garbage)?;
    let mut comma = "";
    for (code, count) in c.rcodes.iter().enumerate().filter(|(_, n)| **n > 0) {
        write!(out, "{comma}\"{}\":{count}", rcode_name(code))?;
        comma = ",";
    }
    out.push('}');
    write_latency(&interval.latency, out)?;
    let name = match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
        Transport::Tls | Transport::Https => "tls_conn",
        #[cfg(feature = "quic")]
        Transport::Quic => "quic_conn",
    };
    write!(out, ",\"conn_info\":{{\"type\":\"{name}\",\"packets_sent\":{}", c.messages_sent)?;
    write!(out, ",\"packets_received\":{}", c.messages_received)?;
    if transport.is_stream() {
        let tried = c.connections + c.connections_failed;
        write!(out, ",\"handshakes\":{tried},\"handshakes_failed\":{}", c.connections_failed)?;
    }
    if transport.is_secure() {
        write!(out, ",\"resumption\":{{\"established\":{}}}", c.resumed)?;
    }
    write!(out, ",\"socket_errors\":{}}}", c.refused + c.unreachable + c.errors)
}

fn write_latency(histogram: &Times, out: &mut String) -> std::fmt::Result {
    if histogram.is_empty() {
        return Ok(());
    }
    write!(out, ",\"response_latency\":{{\"avg\":{}", histogram.mean() as u64)?;
    write!(out, ",\"min\":{},\"max\":{}", histogram.min(), histogram.max())?;
    write!(out, ",\"stddev\":{},\"buckets\":[", histogram.stdev() as u64)?;
    let mut comma = "";
    for step in histogram.iter_recorded() {
        let (value, count) = (step.value_iterated_to(), step.count_since_last_iteration());
        write!(out, "{comma}[{value},{count}]")?;
        comma = ",";
    }
    out.push_str("]}");
    Ok(())
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

/// A string literal (RFC 8259 §7).
pub(crate) fn text(text: &str, out: &mut String) -> std::fmt::Result {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(out, "\\{c}")?,
            c if c < ' ' => write!(out, "\\u{:04x}", c as u32)?,
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}
