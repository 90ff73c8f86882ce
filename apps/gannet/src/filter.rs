//! `gannet filter`: the packets that match, into another capture; its commands show what filters
//! are.

mod compile;

use std::path::PathBuf;

use anyhow::Context as _;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_filter::Filter;

use crate::out;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Write or count the packets that match a filter.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:\n  gannet filter 'tcp port 80' trace.pcap -w web.pcap\n  \
                        gannet filter 'udp' day/ -w dns.pcapng.zst\n  \
                        gannet filter -c -v 'ip6' trace.pcap")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Which packets, like 'tcp port 80 and not net 10.0.0.0/8'; '' is all
    #[arg(value_name = "FILTER", required = true)]
    filter: Option<String>,
    /// Captures and folders of captures, as one stream; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write them here: pcapng by the suffix .pcapng, else pcap, compressed by .gz, .zst, .xz, .lz4
    #[arg(short, long, value_name = "FILE", required_unless_present = "count")]
    write: Option<PathBuf>,
    /// Print how many there are
    #[arg(short, long)]
    count: bool,
    /// Take those that do not match
    #[arg(short = 'v', long)]
    invert: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Compile(compile::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.command {
        Some(Command::Compile(args)) => compile::run(args),
        None => write(args),
    }
}

/// Writes and counts what matches.
fn write(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let filter = match Filter::parse(args.filter.as_deref().unwrap_or_default()) {
        Ok(filter) => filter,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::NoCapture);
        }
    };
    let stop = Stop::on_signals().context("signals")?;
    let mut stream = match Stream::open(&args.files, gannet_capture::Options::default()) {
        Ok(stream) => stream,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::of(&error, false));
        }
    };
    let create = |path: &PathBuf| Writer::create(path, WriteOptions::default());
    let mut writer = args.write.as_ref().map(create).transpose()?;
    let mut outcome = Outcome::Done;
    let mut count = 0u64;
    while stop.asked().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                for packet in batch.iter() {
                    let matches = filter.matches(packet.link_type.0, packet.data, packet.wire_len);
                    if matches == args.invert {
                        continue;
                    }
                    count += 1;
                    if let Some(writer) = &mut writer {
                        writer.write(&packet)?;
                    }
                }
            }
            Ok(None) => break,
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    if args.count {
        outcome = outcome.max(out::write(format!("{count}\n").as_bytes())?);
    }
    Ok(stop.asked().unwrap_or(outcome))
}
