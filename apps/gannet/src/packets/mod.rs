//! `gannet packets`: one line per packet, like `tcpdump -n`, or a summary of all packets.

mod line;
mod messages;
mod slices;
mod summary;

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::io::BufWriter;
use std::io::Write;
#[cfg(feature = "sql")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use gannet_capture::Packet;
use gannet_filter::Filter;

use crate::names::System;
use crate::out;
use crate::outcome::Outcome;
use crate::paths;
use crate::stdin;
use crate::stdin::FlushSchedule;
use crate::stop::Stop;
use crate::terminal::Terminal;
use line::Printer;
pub(crate) use slices::PacketSelection;
use slices::Selections;
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  gannet packets trace.pcap                      one line per packet, like tcpdump -n -r trace.pcap
  gannet packets -c 20 -x -f 'udp port 53' trace.pcap.zst
  gannet packets -r trace.pcap tcp port 80       the filter as tcpdump takes it
  gannet packets --summary trace.pcap            protocols and top talkers
  gannet packets --uid CHhAvVGS1DHFjwGM9 trace.pcap -w one.pcap
                                                 the packets of one connection
  gannet packets --where \"query = 'example.com'\" --log dns trace.pcap
                                                 those of some requests (feature sql)";

/// Print one line per packet, as `tcpdump -n` does, or a summary of protocols and hosts.
///
/// Times are UTC. Sequence numbers are relative to the first one of their direction.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Captures and folders of captures, read as one stream; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "read")]
    files: Vec<OsString>,
    /// A capture, as in tcpdump; the remaining arguments are then the filter, which may be empty
    #[arg(short, long, value_name = "FILE", conflicts_with = "filter")]
    read: Vec<PathBuf>,
    /// Print only packets that match, like 'tcp port 80 and not net 10.0.0.0/8'
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Stop after this many packets
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Print the bytes of each packet in hexadecimal from the network layer on; given twice, from the link layer on
    #[arg(short = 'x', action = clap::ArgAction::Count)]
    hex: u8,
    /// Print bytes and their characters; given twice, from the link layer on
    #[arg(short = 'X', action = clap::ArgAction::Count, conflicts_with = "hex")]
    text: u8,
    /// Print absolute sequence numbers
    #[arg(short = 'S', long)]
    absolute: bool,
    /// Format of times, as for tcpdump: -t prints none, -tt seconds since 1970, -tttt dates
    #[arg(short = 't', action = clap::ArgAction::Count)]
    time: u8,
    /// Addresses and ports as numbers; always on
    #[arg(short, action = clap::ArgAction::Count, hide = true)]
    numbers: u8,
    /// Print the protocol hierarchy and the hosts and host pairs with the most bytes instead
    #[arg(long, conflicts_with_all = ["hex", "text", "absolute", "time"])]
    summary: bool,
    /// Only packets of these connections, tunnels among them; the capture needs an index (gannet index)
    #[arg(
        long,
        value_name = "UID",
        value_delimiter = ',',
        group = "slice",
        conflicts_with_all = ["read", "filter", "summary"]
    )]
    uid: Vec<String>,
    /// Only packets of rows of conn.log for which this SQL is true, like 'id.resp_p = 443 AND duration > 60'; the
    /// capture needs an index
    #[arg(
        long = "where",
        value_name = "SQL",
        group = "slice",
        conflicts_with_all = ["read", "filter", "summary", "uid"]
    )]
    condition: Option<String>,
    /// The log that --where refers to. For dns, http and smtp only packets of the request are selected
    #[arg(long, value_name = "LOG", default_value = "conn", requires = "condition")]
    log: String,
    /// Logs of the capture for --where, so that it is not analysed again
    #[arg(long, value_name = "PATH", requires = "condition")]
    rows: Option<PathBuf>,
    /// Do not verify checksums in the analysis for --where: use this if the index was made with it
    #[arg(short = 'C', long, requires = "condition", conflicts_with_all = ["rows", "uid"])]
    no_checksums: bool,
    /// Seed of uids in the analysis for --where: use the seed of the index
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "condition",
        conflicts_with_all = ["rows", "uid"]
    )]
    seed: u64,
    /// Write the packets of --uid or --where into a capture instead: .pcap or .pcapng, optionally followed by .gz, .zst, .xz or .lz4
    #[arg(short, long, value_name = "OUT", requires = "slice")]
    write: Option<PathBuf>,
    /// Number of hosts and host pairs that --summary prints
    #[arg(long, value_name = "N", default_value_t = 10, requires = "summary")]
    top: usize,
}

impl Args {
    fn input(&self) -> (Vec<PathBuf>, Option<String>) {
        if self.read.is_empty() {
            return (self.files.iter().map(PathBuf::from).collect(), self.filter.clone());
        }
        let words = self.files.join(OsStr::new(" "));
        (self.read.clone(), Some(words.to_string_lossy().into_owned()).filter(|w| !w.is_empty()))
    }

    fn printer(&self) -> Printer {
        Printer::new(line::Options {
            absolute: self.absolute,
            times: match self.time {
                0 => line::Times::Clock,
                1 => line::Times::None,
                2 => line::Times::Epoch,
                _ => line::Times::Date,
            },
            bytes: match (self.hex, self.text) {
                (0, 0) => None,
                (hex, text) => {
                    Some(line::Bytes { characters: text > 0, from_link: hex.max(text) > 1 })
                }
            },
        })
    }
}

/// The packets of rows for which a condition is true.
#[cfg(feature = "sql")]
fn rows_where(
    args: &Args,
    files: &[PathBuf],
    condition: &str,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let analysis = gannet_engine::Options {
        ignore_checksums: args.no_checksums,
        seed: args.seed,
        ..gannet_engine::Options::default()
    };
    let rows = |paths: &[PathBuf]| {
        crate::sql::select_packets(paths, analysis.clone(), &args.log, condition, terminal)
    };
    let (write, count) = (args.write.as_deref(), args.count);
    let nothing = format!("no row of {} has {condition}", args.log);
    match &args.rows {
        Some(path) => match rows(std::slice::from_ref(path)) {
            Ok(wanted) if wanted.is_empty() => {
                terminal.error(&nothing);
                Ok(Outcome::NoCapture)
            }
            Ok(wanted) => {
                slices::run(files, &Selections::Same(&wanted), args.printer(), None, write, count)
            }
            Err(outcome) => Ok(outcome),
        },
        // Uids belong to one capture: each is analysed separately, as for its index.
        None => {
            let of_each = |path: &Path| rows(&[path.to_owned()]);
            let selections = Selections::OfEach { rows: &of_each, nothing: &nothing };
            let analysis = Some(gannet_index::Analysis::of(&analysis));
            slices::run(files, &selections, args.printer(), analysis, write, count)
        }
    }
}

#[cfg(not(feature = "sql"))]
fn rows_where(args: &Args, _: &[PathBuf], _: &str, _: &Terminal) -> anyhow::Result<Outcome> {
    let _ = (&args.log, &args.rows, args.no_checksums, args.seed);
    Ok(crate::left_out::report(&"--where", "sql"))
}

/// The use of packets: printed or summed up.
enum Work {
    Lines(Box<Printer>, BufWriter<io::StdoutLock<'static>>),
    Summary(Box<Summary>),
}

impl Work {
    fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        match self {
            Self::Lines(printer, out) => out.write_all(printer.packet(packet)),
            Self::Summary(summary) => {
                summary.packet(packet);
                Ok(())
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let (files, filter) = args.input();
    if !args.uid.is_empty() {
        let wanted: Vec<_> = args.uid.iter().map(|uid| PacketSelection::all(uid.clone())).collect();
        let write = args.write.as_deref();
        return slices::run(
            &files,
            &Selections::Same(&wanted),
            args.printer(),
            None,
            write,
            args.count,
        );
    }
    if let Some(condition) = &args.condition {
        return rows_where(args, &files, condition, &terminal);
    }
    let parse = |text: &str| Filter::with(text, Default::default(), Arc::new(System::new()));
    let filter = match filter.as_deref().map(parse).transpose() {
        Ok(filter) => filter,
        Err(error) => {
            terminal.error(&format_args!("filter: {error}"));
            return Ok(Outcome::NoCapture);
        }
    };
    let stop = Stop::on_signals().context("signals")?;
    let mut stream = match stdin::stream(&files, gannet_capture::Options::default(), &stop) {
        Ok(stream) => stream,
        Err(error) => {
            terminal.error(&error);
            // As for tcpdump, where the arguments after the options are a filter.
            let is_missing = matches!(&error, gannet_capture::Error::Io { source, .. }
                if source.kind() == io::ErrorKind::NotFound);
            if args.read.is_empty() && files.len() > 1 && is_missing {
                terminal.hint(&"a filter follows -f, or the capture after -r: -r FILE tcp port 80");
            }
            return Ok(Outcome::of(&error, false));
        }
    };
    for warning in paths::warnings(&stream) {
        terminal.warning(&warning);
    }
    let live = FlushSchedule::for_inputs(&files).is_some();
    let mut work = match args.summary {
        true => Work::Summary(Box::default()),
        false => {
            let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            Work::Lines(Box::new(args.printer()), out)
        }
    };
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut outcome = Outcome::Done;
    while left > 0 && stop.requested().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in batch.iter() {
                    let matches = |f: &Filter| {
                        f.is_empty() || f.matches(packet.link_type.0, packet.data, packet.wire_len)
                    };
                    if left > 0 && filter.as_ref().is_none_or(matches) {
                        work.packet(&packet).context("standard output")?;
                        left -= 1;
                    }
                }
                if live && let Work::Lines(_, out) = &mut work {
                    out.flush().context("standard output")?;
                }
            }
            Ok(None) => break,
            // Standard input that ends because of a signal looks truncated.
            Err(_) if stop.requested().is_some() => {}
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    match work {
        Work::Lines(_, mut out) => out.flush().context("standard output")?,
        Work::Summary(summary) => {
            outcome = outcome.max(out::write(summary.render(args.top).as_bytes())?);
        }
    }
    Ok(stop.requested().unwrap_or(outcome))
}
