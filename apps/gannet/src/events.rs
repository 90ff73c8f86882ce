//! `gannet events`: the typed events of captures, one JSON object per line.

use std::cmp::Reverse;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;

use anyhow::Context;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_event::Command;
use gannet_event::Decl;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_event::ThreadAffinity;
use gannet_event::write_json;
use gannet_log::Selection;
use hashbrown::HashMap;

use crate::analyze;
use crate::out;
use crate::outcome::Outcome;
use crate::paths;
use crate::stdin;
use crate::stop::Stop;
use crate::terminal::Terminal;
use crate::terminal::nearest;

const EXAMPLES: &str = "\
Examples:
  gannet events trace.pcap                            every event, one JSON object per line
  gannet events --only 'http_*,dns_request' trace.pcap
  gannet events --only dns_request trace.pcap | jq -r .args.query
  gannet events --count trace.pcap                    how often each event occurs
  gannet events --list                                all events with their parameters
  gannet events --list --only 'ssh_*'                 some of them";

/// Print what happens in captures: typed events with all arguments, in the order of packets.
///
/// Events have Zeek's names and arguments. The connection of an event is shown as it is when the packet
/// has been processed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Captures and folders of captures, read as one stream; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["list", "read"])]
    files: Vec<PathBuf>,
    /// A capture, as tcpdump and Zeek name it; the same as FILE
    #[arg(short, long, value_name = "FILE")]
    read: Vec<PathBuf>,
    /// Only events with these names; * stands for any characters, ? for one
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// All events: also those of every packet, and others that Zeek's default scripts do not handle
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// Analyzers that are not used, by their names in analyzer.log; a Zeek without Spicy has no
    /// quic,ldap_tcp,ldap_udp,postgresql,redis
    #[arg(long, value_name = "ANALYZERS", value_delimiter = ',')]
    disable: Vec<String>,
    /// One JSON object per line; always on, but for --count, which prints a single one with it
    #[arg(long)]
    json: bool,
    /// How often each event occurs, the most frequent first, instead of the events
    #[arg(long, conflicts_with = "list")]
    count: bool,
    /// Print the declarations of events with their documentation, and read no capture
    #[arg(long)]
    list: bool,
    /// Number of threads that analyze, which does not change the output; by default one for each core, and a single
    /// one for small captures and for events about the whole traffic (unknown_protocol)
    #[arg(short, long, value_name = "N", value_parser = analyze::threads)]
    threads: Option<NonZero<u8>>,
    /// Verify checksums, and discard packets whose checksum is wrong
    #[arg(long)]
    checksums: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let wanted = |decl: &Decl| match args.only.is_empty() {
        true => args.list || !decl.opt_in || args.all && !needs_name(decl.name),
        false => args.only.iter().any(|glob| matches(glob, decl.name)),
    };
    for glob in &args.only {
        if !gannet_engine::events().any(|decl| matches(glob, decl.name)) {
            terminal.error(&format_args!("--only: no event is named '{glob}'"));
            let all: Vec<_> = gannet_engine::events().map(|decl| decl.name).collect();
            match nearest(glob, &all) {
                Some(near) => terminal.hint(&format_args!("did you mean {near}?")),
                None => terminal.hint(&"use gannet events --list to print all names"),
            }
            return Ok(Outcome::NoCapture);
        }
    }
    let mut commands = Vec::new();
    for name in &args.disable {
        let mut known = gannet_engine::analyzers();
        let Some((_, tag)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
            terminal.error(&format_args!("--disable: no analyzer is named '{name}'"));
            return Ok(Outcome::NoCapture);
        };
        commands.push(Command::Enable { analyzer: Some(tag.to_owned()), on: false });
    }
    if args.list {
        return list(wanted);
    }
    let files = [&args.read[..], &args.files].concat();
    let stop = Stop::on_signals().context("signals")?;
    let mut stream = match stdin::stream(&files, gannet_capture::Options::default(), &stop) {
        Ok(stream) => stream,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::of(&error, false));
        }
    };
    for warning in paths::warnings(&stream) {
        terminal.warning(&warning);
    }
    let few = || if analyze::is_small(&stream) { 1 } else { analyze::cores() };
    let threads = args.threads.map_or_else(few, |n| usize::from(n.get()));
    stream.set_unpack_threads(threads);
    if threads > 1 {
        stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
    }
    let options = Options {
        threads,
        ignore_checksums: !args.checksums,
        logs: gannet_log::Options { selection: Selection::of::<&str>([]), ..Default::default() },
        ..Options::default()
    };
    let failure = Arc::new(OnceLock::new());
    let counts = args.count.then(|| Arc::new(Mutex::new(Counts::default())));
    let to = match &counts {
        Some(counts) => To::Counts(Arc::clone(counts)),
        None => To::Lines(Lines {
            out: BufWriter::with_capacity(1 << 16, io::stdout()),
            line: Vec::new(),
            failure: Arc::clone(&failure),
        }),
    };
    let interest = Interest::of(gannet_engine::events(), wanted);
    let mut engine = Engine::with_listener(options, interest, Box::new(Events { to, commands }));
    let mut outcome = Outcome::Done;
    while stop.requested().is_none() && failure.get().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => engine.batch(&batch)?,
            Ok(None) => break,
            Err(_) if stop.requested().is_some() => {}
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    if let Some(path) = files.last() {
        engine.end_capture(&path.to_string_lossy());
    }
    let (statistics, _) = engine.finish()?;
    if let Some(text) = statistics.checksum_warning() {
        terminal.warning(&text);
    }
    if let Some(error) = failure.get()
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        terminal.error(&format_args!("standard output: {error}"));
        outcome = outcome.max(Outcome::Failed);
    }
    if let Some(counts) = counts {
        let text = counts.lock().map_or_else(|_| String::new(), |counts| counts.text(args.json));
        outcome = outcome.max(out::write(text.as_bytes())?);
    }
    Ok(stop.requested().unwrap_or(outcome))
}

/// Whether an event is printed only if it is named: events of the analysis itself, and of contents, which Zeek raises only
/// for ports that scripts name.
fn needs_name(name: &str) -> bool {
    name.starts_with("gannet::") || matches!(name, "udp_contents" | "tcp_contents")
}

/// Prints declarations.
fn list(wanted: impl Fn(&Decl) -> bool) -> anyhow::Result<Outcome> {
    let mut text = String::new();
    let mut all: Vec<_> = gannet_engine::events().filter(|d| wanted(d)).collect();
    all.sort_by_key(|d| d.name);
    for decl in all {
        text.push_str(&format!("{decl}\n"));
        for line in decl.doc.lines() {
            text.push_str(&format!("    {}\n", line.trim()));
        }
        for param in decl.params {
            let doc = param.doc.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            text.push_str(&format!("    {}: {}\n", param.name, doc.trim()));
        }
        text.push('\n');
    }
    out::write(text.as_bytes())
}

/// The listener of the command.
struct Events {
    to: To,
    /// Commands from the command line that the engine has not fetched yet.
    commands: Vec<Command>,
}

/// The use of events: printed or counted.
enum To {
    Lines(Lines),
    Counts(Arc<Mutex<Counts>>),
}

/// Prints events.
struct Lines {
    out: BufWriter<io::Stdout>,
    line: Vec<u8>,
    /// The error after which standard output cannot be written, for example because its reader closed it.
    failure: Arc<OnceLock<io::Error>>,
}

impl Listener for Events {
    fn affinity(&self) -> ThreadAffinity {
        ThreadAffinity::Anywhere
    }

    fn wants_packets(&self) -> bool {
        false
    }

    fn event(&mut self, event: &Raised<'_>) {
        match &mut self.to {
            To::Lines(lines) => lines.print(event),
            To::Counts(counts) => {
                if let Ok(mut counts) = counts.lock() {
                    *counts.0.entry(event.decl.name).or_default() += 1;
                }
            }
        }
    }

    fn commands(&mut self, to: &mut Vec<Command>) {
        if !self.commands.is_empty() {
            to.append(&mut self.commands);
        }
    }
}

impl Lines {
    fn print(&mut self, event: &Raised<'_>) {
        if self.failure.get().is_some() {
            return;
        }
        self.line.clear();
        write_json(&mut self.line, event);
        self.line.push(b'\n');
        if let Err(error) = self.out.write_all(&self.line) {
            self.failure.get_or_init(|| error);
        }
    }
}

// The engine owns the listener and drops it at the end of the analysis.
impl Drop for Lines {
    fn drop(&mut self) {
        if self.failure.get().is_none()
            && let Err(error) = self.out.flush()
        {
            self.failure.get_or_init(|| error);
        }
    }
}

/// Number of occurrences of each event.
#[derive(Default)]
struct Counts(HashMap<&'static str, u64>);

impl Counts {
    /// One line per event, or one JSON object.
    fn text(&self, is_json: bool) -> String {
        let mut all: Vec<(&str, u64)> = self.0.iter().map(|(name, n)| (*name, *n)).collect();
        all.sort_by_key(|(name, n)| (Reverse(*n), *name));
        if is_json {
            // Names of events need no escaping.
            let all: Vec<String> = all.iter().map(|(name, n)| format!("\"{name}\":{n}")).collect();
            return format!("{{{}}}\n", all.join(","));
        }
        let width = all.first().map_or(0, |(_, n)| n.to_string().len());
        all.iter().map(|(name, n)| format!("{n:>width$} {name}\n")).collect()
    }
}

/// Whether a name matches a pattern of `*` and `?`.
fn matches(glob: &str, name: &str) -> bool {
    fn rest(glob: &[u8], name: &[u8]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', more)), _) => {
                rest(more, name) || name.split_first().is_some_and(|(_, tail)| rest(glob, tail))
            }
            (Some((b'?', more)), Some((_, tail))) => rest(more, tail),
            (Some((a, more)), Some((b, tail))) => a == b && rest(more, tail),
            _ => false,
        }
    }
    rest(glob.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        assert!(
            matches("http_*", "http_request")
                && matches("*", "x")
                && matches("dns_?_reply", "dns_A_reply")
        );
        assert!(!matches("http", "http_request") && !matches("http_*", "shttp_request"));
    }
}
