//! `gannet index`, and `gannet analyze --index`: which packets belong to which connection.

use std::fmt::Display;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use gannet_capture::Batch;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_index::Analysis;
use gannet_index::Builder;
use gannet_index::Error;
use gannet_index::IndexSize;
use gannet_log::Selection;
use indicatif::HumanBytes;
use indicatif::HumanCount;

use crate::outcome::Outcome;
use crate::paths;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Store which packets belong to which connection, for gannet packets --uid.
///
/// Writes FILE.gannet. Uids are those of logs that were made with the same options.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet index trace.pcap\n  \
                        gannet packets --uid CHhAvVGS1DHFjwGM9 trace.pcap -w one.pcapng")]
pub(crate) struct Args {
    /// Captures and folders of captures
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Do not verify checksums: use this if the logs were made with it
    #[arg(short = 'C', long)]
    no_checksums: bool,
    /// Seed of uids: use the seed of the logs
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of threads; the index is the same for any number
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    threads: u8,
    /// Print errors only
    #[arg(short, long)]
    quiet: bool,
}

/// The index of a capture, built while the capture is analysed.
pub(crate) struct Indexing {
    builder: Arc<Builder>,
    capture: PathBuf,
}

impl Indexing {
    /// Sets the options that make the analysis record the packets of each connection.
    pub(crate) fn begin(capture: &Path, stream: &mut Stream, options: &mut Options) -> Self {
        let builder = Arc::new(Builder::new(Analysis::of(options)));
        builder.keep_restarts(stream);
        options.index = Some(builder.clone());
        Self { builder, capture: capture.to_owned() }
    }

    /// Adds the next batch of the capture.
    pub(crate) fn batch(&mut self, batch: &Batch<'_>) {
        self.builder.batch(batch);
    }

    /// Writes the index after the end of the analysis.
    pub(crate) fn write(self) -> Result<IndexSize, Error> {
        self.builder.write(&self.capture)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(args.quiet);
    let stop = Stop::on_signals().context("signals")?;
    let mut outcome = Outcome::Done;
    if args.files.iter().any(|file| file == Path::new("-")) {
        terminal.error(&"-: standard input cannot be indexed; write the capture to a file first");
        return Ok(Outcome::NoCapture);
    }
    let mut captures = Vec::new();
    for file in paths::files(&args.files)? {
        let stream = Stream::open(std::slice::from_ref(&file.path), Default::default());
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) if file.named => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, false));
                continue;
            }
            Err(error) => {
                terminal.warning(&format_args!("skipped {error}"));
                continue;
            }
        };
        outcome = outcome.max(index(args, stream, &file.path, &stop, &terminal)?);
        captures.push(file.path);
        if let Some(stopped) = stop.requested() {
            return Ok(stopped);
        }
    }
    for error in paths::without_captures(&args.files, &captures) {
        terminal.error(&error);
        outcome = outcome.max(Outcome::of(&error, false));
    }
    Ok(outcome)
}

fn index(
    args: &Args,
    mut stream: Stream,
    capture: &Path,
    stop: &Stop,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let logs = gannet_log::Options {
        selection: Selection::of(Vec::<String>::new()),
        ..gannet_log::Options::default()
    };
    let mut options = Options {
        ignore_checksums: args.no_checksums,
        seed: args.seed,
        threads: args.threads.into(),
        logs,
        ..Options::default()
    };
    stream.set_unpack_threads(options.threads);
    if options.threads > 1 {
        stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
    }
    let mut indexing = Indexing::begin(capture, &mut stream, &mut options);
    let (mut engine, mut outcome) = (Engine::new(options), Outcome::Done);
    while stop.requested().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                engine.batch(&batch)?;
                indexing.batch(&batch);
            }
            Ok(None) => break,
            Err(error) => {
                terminal.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
    }
    let (statistics, _) = engine.finish()?;
    if let Some(text) = statistics.checksum_warning() {
        terminal.warning(&text);
    }
    if stop.requested().is_some() {
        return Ok(outcome);
    }
    match indexing.write() {
        Ok(built) => {
            let IndexSize { lists, packets, bytes, forgotten } = built;
            let (packets, lists) = (HumanCount(packets), HumanCount(lists));
            let file = capture.display();
            if !args.quiet {
                let bytes = HumanBytes(bytes);
                terminal.print_lines(&format_args!(
                    "{file}: {packets} packets of {lists} uids, {bytes}"
                ));
            }
            warn_of_missing_fragments(forgotten, capture, |text| terminal.warning(text));
        }
        Err(error) => {
            terminal.error(&error);
            outcome = outcome.max(Outcome::Failed);
        }
    }
    Ok(outcome)
}

/// Warns that fragments may be missing from their connections.
pub(crate) fn warn_of_missing_fragments(
    forgotten: u64,
    capture: &Path,
    warn: impl FnOnce(&dyn Display),
) {
    if forgotten > 0 {
        let (count, file) = (HumanCount(forgotten), capture.display());
        warn(&format_args!(
            "{file}: {count} fragments of incomplete datagrams were more than are remembered; they may be missing \
             from their connections in the index"
        ));
    }
}
