//! `gannet replay`: sends the DNS queries of captures and lists.

mod changes;
mod plan;
mod serve;

use std::io;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use gannet_replay::Error;
use gannet_replay::Live;
use gannet_replay::Options;
use gannet_replay::Range;
use gannet_replay::ReferenceAnswers;
use gannet_replay::Report;
use gannet_replay::Timing;
use gannet_replay::Transport;

use self::plan::Plan;
use self::plan::Refusal;
use crate::out;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::terminal::Terminal;
use crate::unanswered;

/// Interval at which the line of progress is rewritten.
const REDRAW_INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  gannet replay day.pcap.zst --to 127.0.0.1:5300
  gannet replay day.pcap --to 10.0.0.53 --timing speed=2x --threads 2
  gannet replay --list names.txt --to [::1]:5300 --timing rate=50k --loop 0 --duration 60
  gannet replay day.pcap --to 10.0.0.53 --timing ramp=1k..100k/60s --svg ramp.svg
  gannet replay day.pcap --to 10.0.0.53 --transport tcp --queries-per-connection 100
  gannet replay day.pcap --to 10.0.0.53 --transport quic --ca authority.pem
  gannet replay day.pcap --to 10.0.0.53 --compare capture --differences differences.jsonl
  gannet replay --serve 127.0.0.1:5300        an echo server to send to

Queries go where --to says and nowhere else. An address that is neither loopback nor private needs --yes-i-may.

Exit codes: 1 no connection was established, or no query was answered; 4 a part of the queries was not sent.";

/// Send the DNS queries of captures, on time, to a server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub(crate) struct Args {
    /// Captures and folders of captures, as one stream; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["list", "serve", "read"])]
    files: Vec<PathBuf>,
    /// A capture, as tcpdump and Zeek name it; the same as FILE
    #[arg(short, long, value_name = "FILE", conflicts_with = "list")]
    read: Vec<PathBuf>,
    /// A list of queries instead: a name and a type on each line
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    list: Option<PathBuf>,
    /// The server to send to
    #[arg(long, value_name = "HOST[:PORT]", required_unless_present = "serve")]
    to: Option<String>,
    /// Confirm sending to an address that is neither loopback nor private
    #[arg(long)]
    yes_i_may: bool,
    /// Timing: original, speed=2x, rate=50k, ramp=1k..100k/60s, or max (as answers come). A client's
    /// queries keep their order; with max over UDP those of different lengths may be reordered
    #[arg(short, long, value_name = "TIMING", default_value = "original")]
    timing: Timing,
    /// Transport of queries: udp, tcp, tls, https (HTTP/2) or quic
    #[arg(long, value_name = "TRANSPORT", default_value_t = Transport::Udp)]
    transport: Transport,
    #[command(flatten)]
    changes: changes::Args,
    /// Seconds after which a client closes an idle connection; by default 10
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    idle: Option<Duration>,
    /// Maximum number of queries per connection; by default unlimited
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    queries_per_connection: Option<u32>,
    /// https: path of requests; by default /dns-query
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// TLS: root certificates to trust (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "no_verify")]
    ca: Option<PathBuf>,
    /// TLS: accept any certificate
    #[arg(long)]
    no_verify: bool,
    /// TLS: the server's name in its certificate, if it is not that of --to
    #[arg(long, value_name = "NAME")]
    tls_name: Option<String>,
    /// TLS: do not resume sessions
    #[arg(long)]
    no_resumption: bool,
    /// Clients, with a socket or connection each; by default one for each source address of the capture
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    clients: Option<u32>,
    /// Threads that send
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Source addresses assigned to clients in turn, like 127.7.0.0/16
    #[arg(long, value_name = "NET", value_parser = range)]
    bind: Option<Range>,
    /// Seconds until a query without an answer is lost
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = positive_duration)]
    timeout: Duration,
    /// Number of times that a query without an answer is sent again
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u8,
    /// Maximum number of pending queries with --timing max
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// Number of times to send the input; 0 repeats it until --limit, --duration or Ctrl-C
    #[arg(long = "loop", value_name = "N", default_value_t = 1)]
    loops: u64,
    /// Maximum number of queries to send
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Maximum duration of sending, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive_duration)]
    duration: Option<Duration>,
    /// Seconds at the start that are excluded from the totals
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    warm_up: Duration,
    /// Ignore answers, and keep the original ids
    #[arg(long)]
    no_answers: bool,
    /// Ports of servers in the capture: queries are messages to them
    #[arg(long, value_name = "PORT", value_delimiter = ',', default_value = "53")]
    ports: Vec<u16>,
    /// Only packets of the capture that match, like 'net 192.0.2.0/24'
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Seconds of an interval in --json and --svg
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive_duration)]
    interval: Duration,
    /// Report as JSON (DNS-OARC's dns-metrics), one object per line
    #[arg(long)]
    json: bool,
    /// Draw rates and latencies over time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Disable segmentation by the kernel (UDP GSO)
    #[arg(long)]
    no_gso: bool,
    /// Do not request real-time scheduling, which senders otherwise use if permitted
    #[arg(long)]
    no_realtime: bool,
    /// Compare answers with those in the capture, or with those of a second server
    #[arg(long, value_name = "capture|HOST[:PORT]")]
    compare: Option<String>,
    /// Write differences, one JSON object per line; - is standard output
    #[arg(long, value_name = "FILE", requires = "compare")]
    differences: Option<PathBuf>,
    /// Compare times to live, too
    #[arg(long, requires = "compare")]
    compare_ttl: bool,
    /// Fields that may differ: opcode, flags, rcode, edns, question, answer, authority, additional,
    /// malformed
    #[arg(long, value_name = "FIELD", value_delimiter = ',', requires = "compare")]
    ignore: Vec<String>,
    /// Print only the report
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    serve: serve::Args,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(args.quiet);
    let stop = Stop::on_signals().context("signals")?;
    let flag = Arc::new(AtomicBool::new(false));
    stop.set_on_stop(&flag);
    if let Some(at) = args.serve.serve {
        return serve::run(at, args, &terminal, &flag);
    }
    let plan = match Plan::new(args, &terminal) {
        Ok(plan) => plan,
        Err(Refusal::Arguments { why, hint }) => {
            terminal.error(&why);
            hint.iter().for_each(|hint| terminal.hint(hint));
            return Ok(Outcome::NoCapture);
        }
        Err(Refusal::Run(error)) => return Ok(explain(&error, args, &terminal)),
        Err(Refusal::File(error)) => return Err(error),
    };
    let Plan { options, target, filter, comparison, mut differences, drawing } = plan;
    let other = comparison.as_ref().and_then(|(against, _)| match against {
        ReferenceAnswers::Server { address, .. } => Some(*address),
        ReferenceAnswers::Capture => None,
    });
    let live = Live::default();
    let done = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        if terminal.is_terminal() {
            scope.spawn(|| watch(&live, &done));
        }
        let result = match comparison {
            None => gannet_replay::run(&options, &flag, &live).map(|report| (report, None)),
            Some((against, fields)) => {
                gannet_replay::compare(&options, &against, fields, (&flag, &live), &mut differences)
                    .map(|(report, compared)| (report, Some(compared)))
            }
        };
        done.store(true, Ordering::Relaxed);
        result
    });
    let (report, compared) = match result {
        Ok(done) => done,
        Err(Error::NoQueries { packets, .. })
            if let Some(filter) = &filter
                && unanswered::report(filter, packets, &terminal) != Outcome::Done =>
        {
            return Ok(Outcome::NoCapture);
        }
        Err(error) => return Ok(explain(&error, args, &terminal)),
    };
    let answered = match &filter {
        Some(filter) => unanswered::report(filter, report.seen.packets, &terminal),
        None => Outcome::Done,
    };
    let other = compared.as_ref().and_then(|compared| compared.other.as_deref()).zip(other);
    let arrived = report_failures(&report, other, (target, &options), args, &terminal);
    let params = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    let params = changes::without_secrets(params);
    let mut text = if args.json { report.json(&params) } else { report.table() };
    if let Some(compared) = &compared {
        text.push_str(&if args.json { compared.json(&report) } else { compared.table(&report) });
    }
    let outcome = out::write(text.as_bytes())?;
    if let Some((path, mut file)) = drawing {
        let written = file.write_all(report.svg().as_bytes()).and_then(|()| file.finish());
        written.with_context(|| path.display().to_string())?;
    }
    let damaged = if report.seen.remarks.is_empty() { Outcome::Done } else { Outcome::Damaged };
    Ok(stop.requested().unwrap_or(outcome.max(damaged).max(answered).max(arrived)))
}

/// Reports damage of the input and queries that did not reach a server: `target`, and the `other` one, if there is one.
/// Returns the worst outcome of sending.
fn report_failures(
    report: &Report,
    other: Option<(&Report, SocketAddr)>,
    (target, options): (SocketAddr, &Options),
    args: &Args,
    terminal: &Terminal,
) -> Outcome {
    for remark in &report.seen.remarks {
        // Each of these sets the exit code to 3, so its reason is reported with --quiet, too.
        match &args.list {
            Some(_) if !args.quiet => terminal.warning(remark),
            _ => terminal.error(remark),
        }
    }
    let failures = failure(report, target, options).into_iter();
    let failures = failures.chain(other.and_then(|(report, at)| failure(report, at, options)));
    let partial = std::iter::once((report, target)).chain(other);
    let partial = partial.filter_map(|(report, at)| unsent(report, at));
    let failures = failures.map(|why| (why, Outcome::Failed));
    let failures: Vec<_> = failures.chain(partial.map(|why| (why, Outcome::Unsent))).collect();
    // Errors are reported with --quiet, too.
    let arrived = failures.iter().map(|(_, outcome)| *outcome).max().unwrap_or(Outcome::Done);
    for (why, _) in failures.iter().filter(|(_, outcome)| *outcome == arrived) {
        terminal.error(why);
    }
    if let Some((queries, why)) = &report.unchanged {
        let queries = if *queries == 1 {
            "1 query was sent without the changes to EDNS and TSIG".to_owned()
        } else {
            format!("{queries} queries were sent without the changes to EDNS and TSIG; the first")
        };
        terminal.warning(&format_args!("{queries}: {why}"));
    }
    arrived
}

/// The reason why a run got no answers from a server.
fn failure(report: &Report, server: SocketAddr, options: &Options) -> Option<String> {
    let counts = report.counts();
    if report.is_all_warm_up() {
        let (warm_up, sending) = (options.warm_up, report.sending());
        Some(format!(
            "nothing was sent after the warm-up of {warm_up:?}: the run took {sending:.3?}"
        ))
    } else if options.transport.is_stream()
        && counts.connections == 0
        && counts.refused == 0
        && let Some(why) = report.first_error()
    {
        Some(format!("no connection to {server} over {}: {why}", options.transport))
    } else if counts.answered == 0 && counts.unreachable > 0 {
        Some(format!("no route to {server}"))
    } else if counts.sent == 0
        && counts.refused == 0
        && let Some(why) = report.first_error()
    {
        Some(format!("nothing was sent to {server} over {}: {why}", options.transport))
    } else if counts.answered == 0 && counts.refused > 0 {
        Some(format!("nothing listens at {server} over {}", options.transport))
    } else if counts.answered == 0 && counts.unwatched == 0 && counts.lost + counts.unsent > 0 {
        Some(format!("{server} answered nothing within {:?}", options.timeout))
    } else {
        None
    }
}

/// A message about the queries that were not sent, with the reason.
fn unsent(report: &Report, server: SocketAddr) -> Option<String> {
    let (unsent, sent) = (report.counts().unsent, report.counts().sent);
    let why = report.first_error().map_or_else(String::new, |why| format!(": {why}"));
    (unsent > 0)
        .then(|| format!("{unsent} of {} queries were not sent to {server}{why}", sent + unsent))
}

/// Reports the error that stopped a run, with a hint.
fn explain(error: &Error, args: &Args, terminal: &Terminal) -> Outcome {
    match (error, &args.differences) {
        (Error::System { what: "differences", error }, Some(path)) => {
            terminal.error(&format_args!("{}: {error}", path.display()));
        }
        _ => terminal.error(error),
    }
    match error {
        Error::Capture(error) => Outcome::of(error, false),
        Error::NoQueries { .. } => {
            if args.list.is_none() && args.filter.is_some() {
                terminal.hint(&"only packets that match --filter are read");
            } else if args.list.is_none() && args.ports == [53] {
                terminal.hint(&"queries are messages to port 53; use --ports for other ports");
            }
            Outcome::NoCapture
        }
        Error::List { .. } => Outcome::NoCapture,
        Error::Tls(_) => {
            terminal.hint(&"use --ca FILE for root certificates to trust, or --no-verify to accept any certificate");
            Outcome::NoCapture
        }
        Error::Socket { local: Some(_), .. } => {
            terminal.hint(&"--bind needs addresses of this machine");
            Outcome::NoCapture
        }
        _ => Outcome::Failed,
    }
}

/// Writes a line of progress until the run is done.
fn watch(live: &Live, done: &AtomicBool) {
    let start = Instant::now();
    let mut before = (0.0, 0);
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(REDRAW_INTERVAL);
        let (now, sent) = (start.elapsed().as_secs_f64(), live.sent.load(Ordering::Relaxed));
        let rate = (sent - before.1) as f64 / (now - before.0).max(1e-9);
        before = (now, sent);
        let answered = live.answered.load(Ordering::Relaxed);
        let lost = live.lost.load(Ordering::Relaxed);
        let mut err = io::stderr().lock();
        // If standard error is closed, nothing can be reported.
        write!(err, "\r{now:6.1} s  {sent} sent, {rate:.0}/s, {answered} answered, {lost} lost ")
            .unwrap_or_default();
    }
    write!(io::stderr(), "\r{:70}\r", "").unwrap_or_default();
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|e| e.to_string())?;
    let allowed = (0.0..=31_536_000.0).contains(&seconds);
    allowed
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| "expected a number of seconds from 0 to 31,536,000".to_owned())
}

/// Parses a duration greater than zero.
fn positive_duration(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        Ok(Duration::ZERO) => Err("expected more than 0 seconds".to_owned()),
        other => other,
    }
}

fn range(text: &str) -> Result<Range, String> {
    gannet_replay::parse_range(text).ok_or_else(|| "expected an address or a network".to_owned())
}
