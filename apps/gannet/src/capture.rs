//! `gannet capture`: packets of interfaces into captures.
//!
//! One thread reads the capture rings and writes the packets; compression has threads of its own, as for every capture
//! that is written. Where files are limited in size, time or number, a file is completed and the next one is started.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context as _;
use gannet_base::Time;
use gannet_capture::Batch;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_filter::Filter;
use gannet_live::Interface;
use gannet_live::Next;
use gannet_live::RingOptions;
use gannet_live::Source;
use gannet_live::SourceOptions;
use indicatif::HumanCount;

use crate::limits;
use crate::live::program;
use crate::live::times;
use crate::memory;
use crate::outcome::Outcome;
use crate::paths;
use crate::stop::Stop;
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  gannet capture -i eth0 -w trace.pcapng.zst           until Ctrl-C
  gannet capture -i eth0 -w trace.pcapng --file-size 1G --files 20
                                                       the last 20 GB, in files of 1 GB
  gannet capture -i eth0 -w trace.pcapng --file-time 1h one file per hour
  gannet capture -i eth0 -w dns.pcapng -f 'udp port 53' only some of the packets";

/// Write the packets of interfaces to captures, until Ctrl-C
///
/// The format and compression of the files come from the name: .pcap or .pcapng, then .zst, .gz, .xz or .lz4. Where
/// there are several files, each has the time of its first packet in its name: trace.2026-11-23-17-00-00.pcapng
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Capture on this interface; may be given several times
    #[arg(short, long = "interface", value_name = "IFACE", required = true)]
    interfaces: Vec<String>,
    /// The capture
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    /// Only packets that match, like 'tcp port 80'
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Write only the first bytes of each packet, this many
    #[arg(short, long, value_name = "BYTES")]
    snaplen: Option<u32>,
    /// Start the next file when one has this many bytes of packets
    #[arg(long, value_name = "SIZE", value_parser = limits::size_above_zero)]
    file_size: Option<u64>,
    /// Start the next file when one is this old
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    file_time: Option<Duration>,
    /// Keep the last N files and remove older ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    files: Option<u32>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = times::duration)]
    duration: Option<Duration>,
    /// End after N packets
    #[arg(short = 'c', long, value_name = "N")]
    packets: Option<u64>,
    /// Memory of the capture ring of each interface
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = limits::size)]
    ring_size: u64,
    /// Capture only packets addressed to this host
    #[arg(long)]
    no_promiscuous: bool,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
}

/// Maximum time until a signal is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum time until a captured packet is written to its file.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// How long packets that arrived before the signal to stop are still read.
const DRAIN_TIME: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    memory::allow_huge_pages();
    let terminal = Terminal::new(args.quiet);
    let refused = |error: &dyn std::fmt::Display| {
        terminal.error(error);
        Ok(Outcome::NoCapture)
    };
    if let Err(error) = paths::refuse_suffix(&args.write) {
        return refused(&error);
    }
    let filter = match args.filter.as_deref().map(crate::analyze::filter).transpose() {
        Ok(filter) => filter,
        Err(error) => return refused(&format_args!("--filter: {error}")),
    };
    let mut interfaces = Vec::new();
    for name in &args.interfaces {
        match Interface::named(name) {
            Ok(interface) => interfaces.push(interface),
            Err(error) => return refused(&error),
        }
    }
    let stop = Stop::on_signals().context("signals")?;
    let ring = match RingOptions::with_size(args.ring_size) {
        Ok(ring) => RingOptions { promiscuous: !args.no_promiscuous, ..ring },
        Err(error) => return refused(&error),
    };
    let options = SourceOptions { ring, ..SourceOptions::default() };
    let text = args.filter.as_deref();
    let mut source = match Source::open(&interfaces, options, |i| program(text, i)) {
        Ok(source) => source,
        Err(error) => return refused(&error),
    };
    let mut files = Files::new(args);
    terminal.note(&format_args!("capturing on {}", args.interfaces.join(", ")));
    let started = Instant::now();
    let mut flushed = Instant::now();
    let mut stopping: Option<Instant> = None;
    loop {
        let is_over = stop.requested().is_some()
            || args.duration.is_some_and(|max| started.elapsed() >= max)
            || args.packets.is_some_and(|max| files.packets >= max);
        if is_over && stopping.is_none() {
            source.stop();
            stopping = Some(Instant::now());
        }
        match source.packets() {
            Next::Packets(batch) => files.write(&batch, filter.as_ref())?,
            Next::Idle if stopping.is_some_and(|since| since.elapsed() > DRAIN_TIME) => break,
            Next::Idle => {
                let left =
                    args.duration.map_or(POLL_INTERVAL, |d| d.saturating_sub(started.elapsed()));
                let wait = if stopping.is_some() { DRAIN_TIME } else { POLL_INTERVAL.min(left) };
                source.wait(wait.max(Duration::from_millis(1))).context("waiting for packets")?;
            }
        }
        if args.packets.is_some_and(|max| files.packets >= max) {
            break;
        }
        if flushed.elapsed() >= FLUSH_INTERVAL {
            flushed = Instant::now();
            files.flush(Source::clock())?;
        }
    }
    let ledger = source.ledger();
    let packets = files.packets;
    files.finish()?;
    let mut words = format!(
        "packets      {}\ndropped      {} at the capture ring",
        HumanCount(packets),
        HumanCount(ledger.rings.dropped)
    );
    let elsewhere = ledger.lost() - ledger.rings.dropped;
    if elsewhere > 0 {
        words.push_str(&format!("\n             {} before it", HumanCount(elsewhere)));
    }
    if !args.quiet {
        terminal.print_lines(&words);
    }
    Ok(Outcome::Done)
}

/// The output captures.
struct Files<'a> {
    args: &'a Args,
    /// The open file, its path, and the time of its start.
    current: Option<(Writer, PathBuf, Time)>,
    /// Bytes of packets in it.
    bytes: u64,
    /// Number of packets in all files.
    packets: u64,
    /// Completed files, oldest first.
    complete: VecDeque<PathBuf>,
}

impl<'a> Files<'a> {
    fn new(args: &'a Args) -> Self {
        Self { args, current: None, bytes: 0, packets: 0, complete: VecDeque::new() }
    }

    /// Whether the options may lead to several files.
    fn are_many(&self) -> bool {
        self.args.file_size.is_some() || self.args.file_time.is_some()
    }

    fn write(&mut self, batch: &Batch<'_>, filter: Option<&Filter>) -> anyhow::Result<()> {
        for packet in batch {
            if filter.is_some_and(|f| !f.matches(packet.link_type.0, packet.data, packet.wire_len))
            {
                continue;
            }
            if self.args.packets.is_some_and(|max| self.packets >= max) {
                return Ok(());
            }
            if self.is_full(packet.time) {
                self.complete()?;
            }
            let writer = match &mut self.current {
                Some((writer, _, _)) => writer,
                None => self.begin(packet.time)?,
            };
            writer.write(&packet)?;
            self.bytes += packet.data.len() as u64;
            self.packets += 1;
        }
        Ok(())
    }

    fn is_full(&self, now: Time) -> bool {
        let Some((_, _, started)) = &self.current else { return false };
        let age = (now - *started).as_nanos();
        let is_old = |max: Duration| u128::try_from(age).is_ok_and(|age| age >= max.as_nanos());
        self.args.file_size.is_some_and(|max| self.bytes >= max)
            || self.args.file_time.is_some_and(is_old)
    }

    fn begin(&mut self, time: Time) -> anyhow::Result<&mut Writer> {
        let path =
            if self.are_many() { stamped(&self.args.write, time) } else { self.args.write.clone() };
        let options = WriteOptions {
            snaplen: self.args.snaplen,
            application: Some(format!("gannet {}", env!("CARGO_PKG_VERSION"))),
            encoder_thread: true,
            at_once: true,
            ..WriteOptions::default()
        };
        let writer = Writer::create(&path, options)?;
        self.bytes = 0;
        Ok(&mut self.current.insert((writer, path, time)).0)
    }

    /// Writes buffered packets to the file, and completes a file that is old enough even if no packets arrive.
    fn flush(&mut self, now: Time) -> anyhow::Result<()> {
        if self.args.file_time.is_some() && self.is_full(now) {
            return self.complete();
        }
        if let Some((writer, _, _)) = &mut self.current {
            writer.flush()?;
        }
        Ok(())
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        let Some((writer, path, _)) = self.current.take() else { return Ok(()) };
        writer.finish()?;
        self.complete.push_back(path);
        // The file that is started next counts as well.
        while let Some(max) = self.args.files
            && self.complete.len() >= max as usize
            && let Some(oldest) = self.complete.pop_front()
        {
            fs::remove_file(&oldest).with_context(|| oldest.display().to_string())?;
        }
        Ok(())
    }

    /// Completes the last file. Without packets an empty capture is written, which shows that none arrived.
    fn finish(mut self) -> anyhow::Result<()> {
        if self.current.is_none() && self.complete.is_empty() {
            self.begin(Source::clock())?;
        }
        if let Some((writer, _, _)) = self.current.take() {
            writer.finish()?;
        }
        Ok(())
    }
}

/// The name of a file with its time, as in `trace.2026-11-23-17-00-00.pcapng.zst`, in local time; with a number where that
/// name exists.
fn stamped(path: &Path, time: Time) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = match name.split_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem.to_owned(), format!(".{extension}")),
        _ => (name, String::new()),
    };
    let [year, month, day, hour, minute, second] = times::local(time);
    let stamp = format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}");
    let named = |n: u32| match n {
        0 => path.with_file_name(format!("{stem}.{stamp}{extension}")),
        n => path.with_file_name(format!("{stem}.{stamp}-{n}{extension}")),
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_first_packets() {
        let name = |path: &str| {
            stamped(Path::new(path), Time::from_secs(1_800_000_000)).display().to_string()
        };
        let named = name("/x/trace.pcapng.zst");
        assert!(
            named.starts_with("/x/trace.2027-01-1") && named.ends_with(".pcapng.zst"),
            "{named}"
        );
        assert!(name("trace").starts_with("trace.2027-01-1"));
    }
}
