//! The report as a text table.

use std::fmt::Write;
use std::time::Duration;

use crate::Report;
use crate::message::rcode_name;

/// Maximum width of a bar of the latency histogram, in characters.
const BAR: u64 = 32;

pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    write_all(report, &mut out).unwrap_or_default();
    out
}

fn write_all(r: &Report, out: &mut String) -> std::fmt::Result {
    let c = r.counts();
    let share = |n: u64| if c.sent == 0 { 0.0 } else { 100.0 * n as f64 / c.sent as f64 };
    writeln!(out, "{} -> {} over {}, {}", r.input, r.target, r.transport, r.timing)?;
    let sources = match r.sources {
        0 => String::new(),
        1 => " for 1 source".to_owned(),
        many => format!(" for {many} sources"),
    };
    writeln!(out, "  threads     {:>12}   clients {}{sources}", r.threads, r.clients)?;
    if let Some(requested_rate) = r.requested_rate {
        writeln!(out, "  target rate {requested_rate:>12.1} /s")?;
    }
    let scheduled =
        if r.scheduled.is_zero() { String::new() } else { format!(" of {}", time(r.scheduled)) };
    let sending = time(r.sending());
    writeln!(out, "  rate sent   {:>12.1} /s   in {sending}{scheduled}", r.achieved_rate())?;
    if let Some([median, p99, most]) = r.lag() {
        let (median, p99, most) = (time(median), time(p99), time(most));
        writeln!(out, "  send lag    {median:>12}      p99 {p99}, max {most}")?;
    }
    if r.lag().is_some() && !r.cpu_wait().is_zero() {
        let cpu_wait = time(r.cpu_wait());
        writeln!(
            out,
            "  CPU wait    {cpu_wait:>12}      time that senders with due queries waited for a processor"
        )?;
    }
    if let Some([median, p99, most]) = r.handshake() {
        let (median, p99, most) = (time(median), time(p99), time(most));
        writeln!(
            out,
            "  connections {:>12}      ready in {median}, p99 {p99}, max {most}",
            c.connections
        )?;
    }
    // Shares are of the queries sent; if some were not sent, also of the input.
    let of_input = |n: u64| match c.unsent {
        0 => String::new(),
        unsent => format!(", {:.2} % of the input", 100.0 * n as f64 / (c.sent + unsent) as f64),
    };
    writeln!(out, "  sent        {:>12}      {} bytes{}", c.sent, c.sent_bytes, of_input(c.sent))?;
    if c.unwatched == 0 {
        let (part, of_input) = (share(c.answered), of_input(c.answered));
        writeln!(out, "  answered    {:>12}      {part:.2} %{of_input}", c.answered)?;
        writeln!(out, "  lost        {:>12}      {:.2} %", c.lost, share(c.lost))?;
    }
    let rare = [
        ("open", c.open, "queries that waited for an answer when the run was stopped"),
        ("retries", c.retries, "queries sent again, not counted in the rate"),
        ("late", c.late, "answers after the timeout"),
        ("duplicates", c.duplicates, "further answers to a query"),
        ("mismatched", c.mismatched, "answers with another question than the query"),
        ("unexpected", c.unexpected, "answers that match no query"),
        ("garbage", c.garbage, "messages that are not DNS responses"),
        ("resumed", c.resumed, "connections that resumed a TLS session"),
        ("failed", c.connections_failed, "connections that could not be established"),
        ("broken", c.connections_broken, "connections closed or reset by the server"),
        ("refused", c.refused, "errors from the network: the port is closed"),
        ("unreachable", c.unreachable, "errors from the network: no route to the server"),
        ("unsent", c.unsent, "queries that could not be sent"),
        (
            "unchanged",
            r.unchanged.as_ref().map_or(0, |u| u.0),
            "queries sent as captured, because they could not be rewritten",
        ),
        (
            "forgotten",
            r.forgotten,
            "queries whose answer is not among the next messages of the capture",
        ),
        ("responses", r.seen.responses, "responses in the input, not sent"),
        ("cut", r.seen.skipped.truncated, "messages truncated in the capture, not sent"),
        ("no dns", r.seen.skipped.not_dns, "payloads too short for a DNS message, not sent"),
        ("streams", r.seen.skipped.streams, "TCP streams that could not be reassembled"),
        ("bad lines", r.seen.bad_lines, "invalid lines of the list, not sent"),
    ];
    for (name, count, what) in rare.into_iter().filter(|(_, n, _)| *n > 0) {
        writeln!(out, "  {name:<11} {count:>12}      {what}")?;
    }
    if let Some(why) = r.first_error() {
        writeln!(out, "  {:<11} {:>12}      {why}", "first error", "")?;
    }
    for (code, count) in c.rcodes.iter().enumerate().filter(|(_, n)| **n > 0) {
        let part = 100.0 * *count as f64 / c.answered as f64;
        writeln!(out, "  {:<11} {count:>12}      {part:.2} % of answers", rcode_name(code))?;
    }
    write_latency(r, out)
}

fn write_latency(r: &Report, out: &mut String) -> std::fmt::Result {
    let histogram = &r.total.latency;
    if histogram.is_empty() {
        return Ok(());
    }
    let at = |q| time(Duration::from_nanos(histogram.value_at_quantile(q)));
    writeln!(
        out,
        "  latency     {:>12}      p90 {}, p99 {}, p99.9 {}, max {}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        time(Duration::from_nanos(histogram.max()))
    )?;
    let mut low = 0;
    let rows: Vec<_> = histogram
        .iter_log(1000, 2.0)
        .map(|step| {
            let row = (low, step.value_iterated_to(), step.count_since_last_iteration());
            low = row.1;
            row
        })
        .collect();
    let most = rows.iter().map(|r| r.2).max().unwrap_or(0).max(1);
    let first = rows.iter().position(|r| r.2 > 0).unwrap_or(0);
    for (low, high, count) in &rows[first..] {
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        let (low, high) = (Duration::from_nanos(*low), Duration::from_nanos(*high + 1));
        let line = format!("    {:>8} .. {:>8} {count:>12}  {bar}", time(low), time(high));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A time with its unit and about three digits.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_unit() {
        let show = |ns| time(Duration::from_nanos(ns));
        assert_eq!(show(0), "0.0 us");
        assert_eq!(show(1_540), "1.5 us");
        assert_eq!(show(2_500_000), "2.50 ms");
        assert_eq!(show(61_000_000_000), "61.000 s");
    }
}
