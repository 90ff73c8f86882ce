//! Writes and counts matching packets.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::io;
use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context as _;
use gannet_capture::Batch;
use gannet_capture::Blocks;
use gannet_capture::FileId;
use gannet_capture::Format;
use gannet_capture::WriteOptions;
use gannet_filter::engine::View;
use indicatif::HumanCount;

use super::compile::DialectName;
use super::sink;
use super::sink::Limit;
use super::sink::Sink;
use super::source::PacketPicker;
use super::source::Source;
use super::source::no_capture;
use crate::out;
use crate::outcome::Outcome;
use crate::paths;
use crate::paths::InputFile;
use crate::stdin;
use crate::stop::Stop;
use crate::terminal::Terminal;
use crate::unanswered;

#[derive(Debug, clap::Args)]
#[group(id = "writing")]
pub(super) struct Args {
    /// Packets to write, like 'tcp port 80 and not net 10.0.0.0/8'; '' is all
    #[arg(value_name = "FILTER", required_unless_present_any = ["expression", "load", "read"])]
    filter: Option<OsString>,
    /// Captures and folders of captures, as one stream; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A capture, as in tcpdump; the remaining arguments are then the filter, which may be empty
    #[arg(short, long, value_name = "FILE")]
    read: Vec<PathBuf>,
    /// One of several filters that run in one pass; each with a -w of its own, in this order
    #[arg(short, long, value_name = "FILTER")]
    expression: Vec<String>,
    /// Output file: pcapng for the suffix .pcapng, otherwise pcap, compressed by .gz, .zst, .xz, .lz4;
    /// by default standard output, unless that is a terminal
    #[arg(short, long, value_name = "FILE")]
    write: Vec<PathBuf>,
    /// Print the number of matching packets, for each filter
    #[arg(short, long)]
    count: bool,
    /// Write the packets that do not match
    #[arg(short = 'v', long)]
    invert: bool,
    /// Start another file whenever one reaches this many packets, bytes (kB, MB, GB) or this much
    /// time (s, min, h, d). They are named web-0001.pcap, web-0002.pcap, ...
    #[arg(long, num_args = 2, value_names = ["N", "UNIT"], requires = "write")]
    split: Vec<String>,
    /// Run a program of classic BPF instead, as tcpdump -d, -dd or -ddd prints it
    #[arg(long, value_name = "FILE", conflicts_with = "expression")]
    load: Option<PathBuf>,
    /// Scope of vlan, mpls and other encapsulating headers in the expression
    #[arg(long, value_enum, default_value_t)]
    dialect: DialectName,
    /// Print the numbers of packets read and written even if standard error is not a terminal
    #[arg(long)]
    stats: bool,
    /// Print errors only: no progress, no warnings
    #[arg(short, long, conflicts_with = "stats")]
    quiet: bool,
}

/// A filter and the output of its packets.
struct Output {
    picker: PacketPicker,
    sink: Option<Sink>,
    count: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut terminal = Terminal::new(args.quiet);
    let (sources, files, write) = match sources(args) {
        Ok(found) => found,
        Err(error) => {
            terminal.error(&format_args!("{error:#}"));
            return Ok(Outcome::NoCapture);
        }
    };
    let (limit, pickers) = match (limit(args), pickers(&sources, &files)) {
        (Ok(limit), Ok(pickers)) => (limit, pickers),
        (Err(error), _) | (_, Err(error)) => {
            terminal.error(&error);
            return Ok(Outcome::NoCapture);
        }
    };
    let stop = Stop::on_signals().context("signals")?;
    let options = gannet_capture::Options { ahead: true, ..gannet_capture::Options::default() };
    let mut stream = match stdin::stream(&files, options, &stop) {
        Ok(stream) => stream,
        Err(error) => {
            terminal.error(&error);
            return Ok(Outcome::of(&error, false));
        }
    };
    let blocks = stream.keep_blocks();
    let mut outputs = open(pickers, &write, &files, (limit, blocks.is_some()))?;
    let mut outcome = Outcome::Done;
    let mut hits = Vec::new();
    let mut packets = 0;
    for warning in paths::warnings(&stream) {
        terminal.warning(&warning);
    }
    terminal.begin(&stream);
    let mut extra = 0;
    let mut keep = |outputs: &mut [Output]| {
        for block in blocks.iter().flat_map(Blocks::take).map(Rc::new) {
            extra += u64::from(block.is_extra());
            outputs.iter_mut().flat_map(|o| &mut o.sink).for_each(|sink| sink.keep(&block));
        }
    };
    while stop.requested().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                if packets == 0
                    && let Some(why) = refusal(&outputs, &files, &batch)
                {
                    terminal.end();
                    terminal.error(&why);
                    outputs.into_iter().filter_map(|output| output.sink).for_each(Sink::discard);
                    return Ok(Outcome::NoCapture);
                }
                packets += batch.len() as u64;
                keep(&mut outputs);
                for (link_type, from, views) in runs(&batch) {
                    for output in &mut outputs {
                        output.picker.select(link_type, &views, &mut hits);
                        if args.invert {
                            hits = others(&hits, views.len() as u32);
                        }
                        output.take(&batch, from, &hits)?;
                    }
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
        terminal.progress(&stream);
    }
    terminal.end();
    if args.stats || terminal.is_terminal() {
        terminal.print_lines(&summary(stream.packets(), &outputs, &write));
    }
    keep(&mut outputs);
    if extra > 0 && args.write.iter().any(|p| Format::of_name(p) == Format::Pcap) {
        terminal.note(&format_args!(
            "pcap cannot store the names, secrets and comments of {}; give the output the extension .pcapng to keep them",
            files[0].display()
        ));
    }
    if let Some(dropped) = blocks.as_ref().map(Blocks::dropped).filter(|n| *n > 0) {
        terminal.warning(&format_args!(
            "{dropped} blocks other than packets were dropped, because there were too many"
        ));
    }
    outcome = outcome.max(finish(outputs, packets, args.count, &terminal)?);
    Ok(stop.requested().unwrap_or(outcome))
}

/// The limit of `--split`.
fn limit(args: &Args) -> Result<Option<Limit>, String> {
    match args.split.as_slice() {
        [number, unit] => Limit::parse(number, unit).map(Some).map_err(|error| error.to_string()),
        _ => Ok(None),
    }
}

/// The filters, or the reason why one of them does not apply to the files.
fn pickers(sources: &[Source], files: &[PathBuf]) -> Result<Vec<PacketPicker>, String> {
    let picker = |source| PacketPicker::new(source).map_err(|error| explained(&error, source));
    let pickers = sources.iter().map(picker).collect::<Result<Vec<_>, _>>()?;
    for filter in pickers.iter().filter_map(PacketPicker::filter) {
        if let Some(why) = unanswered::in_advance(filter, files) {
            return Err(why);
        }
    }
    Ok(pickers)
}

/// The reason why a filter is refused, with a hint if it is the name of a file.
fn explained(error: &gannet_filter::Error, source: &Source) -> String {
    match source {
        Source::Expression(text, _) if Path::new(text).exists() => {
            format!(
                "{error}\n'{text}' is a file; the filter is the first argument, and captures follow it"
            )
        }
        _ => error.to_string(),
    }
}

/// Opens the output file of each filter, if there is one. `has_blocks` is true if blocks other than packets are copied.
fn open(
    pickers: Vec<PacketPicker>,
    write: &[PathBuf],
    files: &[PathBuf],
    (limit, has_blocks): (Option<Limit>, bool),
) -> anyhow::Result<Vec<Output>> {
    let options = sink::like(files);
    let inputs: Rc<[InputFile]> = InputFile::all(files).into();
    let mut paths = write.iter();
    let outputs = pickers.into_iter().map(|picker| {
        let sink = paths.next().map(|path| {
            let as_blocks = has_blocks && Format::of_name(path) == Format::PcapNg;
            let options = WriteOptions { as_blocks, ..options.clone() };
            Sink::new(path, limit, options, Rc::clone(&inputs))
        });
        Ok(Output { picker, sink: sink.transpose()?, count: 0 })
    });
    outputs.collect()
}

/// Completes the files; those of filters that did not apply are discarded. `prints_counts` is true to print the number
/// of packets that each filter matched.
fn finish(
    outputs: Vec<Output>,
    packets: u64,
    prints_counts: bool,
    terminal: &Terminal,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Done;
    let mut counts = String::new();
    let mut refused = false;
    for output in outputs {
        let answered = match output.picker.filter() {
            Some(filter) => unanswered::report(filter, packets, terminal),
            None => Outcome::Done,
        };
        outcome = outcome.max(answered);
        refused |= answered != Outcome::Done;
        match output.sink {
            Some(sink) if answered == Outcome::Done => sink.finish()?,
            Some(sink) => sink.discard(),
            None => {}
        }
        counts.push_str(&format!("{}\n", output.count));
    }
    if prints_counts && !refused {
        outcome = outcome.max(out::write(counts.as_bytes())?);
    }
    Ok(outcome)
}

/// The reason why a filter does not apply to a pcap file from a pipe, whose first packet determines the link
/// type.
fn refusal(outputs: &[Output], files: &[PathBuf], batch: &Batch<'_>) -> Option<String> {
    let first = batch.get(0).filter(|first| files.len() == 1 && first.format == Format::Pcap)?;
    if files.iter().any(|file| file.is_dir()) {
        return None;
    }
    let mut filters = outputs.iter().filter_map(|output| output.picker.filter());
    filters.find_map(|filter| unanswered::refusal(filter, first.link_type))
}

/// The filters, the input files and the output files.
fn sources(args: &Args) -> anyhow::Result<(Vec<Source>, Vec<PathBuf>, Vec<PathBuf>)> {
    let (filter, more) = words(args)?;
    let (sources, files) = if args.expression.is_empty() {
        let (first, load) = (filter.as_deref().map(Path::new), args.load.as_deref());
        let (source, files) = Source::of(first, &more, load, args.dialect.into())?;
        (vec![source], files)
    } else {
        let sources = args
            .expression
            .iter()
            .map(|e| Source::Expression(e.clone(), args.dialect.into()))
            .collect();
        // The argument in the place of a filter is a file.
        (sources, filter.iter().map(PathBuf::from).chain(more).collect())
    };
    anyhow::ensure!(!files.is_empty(), no_capture(filter.as_deref().map(Path::new)));
    let write = outputs(args, sources.len(), io::stdout().is_terminal())?;
    anyhow::ensure!(
        write.len() == sources.len() || (write.is_empty() && args.count),
        "{} filters and {} output files; each -e needs its own -w",
        sources.len(),
        args.write.len()
    );
    let is_same = |a: &PathBuf, b: &PathBuf| {
        a == b || FileId::of(a).is_some_and(|id| FileId::of(b) == Some(id))
    };
    let twice =
        |(i, path): (usize, &PathBuf)| args.write[..i].iter().any(|other| is_same(other, path));
    anyhow::ensure!(!args.write.iter().enumerate().any(twice), "two filters write the same file");
    let inputs = InputFile::all(&files);
    args.write.iter().try_for_each(|path| InputFile::refuse(&inputs, path))?;
    Ok((sources, files, write))
}

/// The filter and the captures, as positional arguments or with -r.
fn words(args: &Args) -> anyhow::Result<(Option<OsString>, Vec<PathBuf>)> {
    if args.read.is_empty() {
        return Ok((args.filter.clone(), args.files.clone()));
    }
    let mut words: Vec<_> = args.filter.iter().cloned().collect();
    words.extend(args.files.iter().map(|file| file.clone().into_os_string()));
    let Some((first, files)) = args.read.split_first() else { return Ok((None, Vec::new())) };
    let alone = args.expression.is_empty() && args.load.is_none();
    anyhow::ensure!(alone || words.is_empty(), "-r with -e or --load allows no further arguments");
    // With -e, the argument in the place of a filter is a capture.
    let filter = if alone { words.join(OsStr::new(" ")) } else { first.into() };
    Ok((Some(filter), if alone { args.read.clone() } else { files.to_vec() }))
}

/// The outputs of packets: standard output if no file is given, unless it is a terminal.
fn outputs(args: &Args, filters: usize, is_terminal: bool) -> anyhow::Result<Vec<PathBuf>> {
    let stdout = Path::new("-");
    let implied = args.write.is_empty() && !args.count && filters == 1;
    let write = if implied { vec![stdout.to_owned()] } else { args.write.clone() };
    anyhow::ensure!(
        !is_terminal || write.iter().all(|path| path != stdout),
        "packets are binary data, and standard output is a terminal; use -w FILE to write them, -c to count them, \
         or gannet packets to print them as text"
    );
    Ok(write)
}

/// The message with the numbers of packets read and written.
fn summary(read: u64, outputs: &[Output], write: &[PathBuf]) -> String {
    let mut text = format!("{} packets read", HumanCount(read));
    for (at, output) in outputs.iter().enumerate() {
        text.push_str(&format!(", {}", HumanCount(output.count)));
        match write.get(at) {
            Some(path) if path == Path::new("-") => text.push_str(" written"),
            Some(path) => text.push_str(&format!(" written to {}", path.display())),
            None => text.push_str(" counted"),
        }
    }
    text
}

impl Output {
    /// Writes packets of a batch: those with these indices after `from`.
    fn take(&mut self, batch: &Batch<'_>, from: usize, hits: &[u32]) -> anyhow::Result<()> {
        self.count += hits.len() as u64;
        if let Some(sink) = &mut self.sink {
            for hit in hits {
                let at = from + *hit as usize;
                if let Some(packet) = batch.get(at) {
                    sink.write(&packet, batch.block(at))?;
                }
            }
        }
        Ok(())
    }
}

/// Divides the packets of a batch into runs of one link type: the type, the index of the first packet, and views.
pub(super) fn runs<'a>(batch: &Batch<'a>) -> Vec<(u16, usize, Vec<View<'a>>)> {
    let mut runs: Vec<(u16, usize, Vec<View<'a>>)> = Vec::new();
    for (at, packet) in batch.iter().enumerate() {
        let view = View::new(packet.data, packet.wire_len);
        match runs.last_mut() {
            Some((link_type, _, views)) if *link_type == packet.link_type.0 => views.push(view),
            _ => {
                let mut views = Vec::with_capacity(if at == 0 { batch.len() } else { 0 });
                views.push(view);
                runs.push((packet.link_type.0, at, views));
            }
        }
    }
    runs
}

/// The numbers below `count` that are not in the sorted list `hits`.
fn others(hits: &[u32], count: u32) -> Vec<u32> {
    let mut hits = hits.iter().peekable();
    (0..count).filter(|n| hits.next_if_eq(&n).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_do_not_go_to_a_terminal() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            args: Args,
        }
        let of = |words: &[&str], is_terminal| {
            let cli = <Cli as clap::Parser>::try_parse_from([&["filter"], words].concat()).unwrap();
            outputs(&cli.args, 1, is_terminal)
        };
        assert_eq!(of(&["tcp", "x.pcap"], false).unwrap(), [PathBuf::from("-")]);
        assert!(of(&["tcp", "x.pcap", "-c"], true).unwrap().is_empty());
        assert_eq!(of(&["tcp", "x.pcap", "-w", "y"], true).unwrap(), [PathBuf::from("y")]);
        for words in [&["tcp", "x.pcap"][..], &["tcp", "x.pcap", "-w", "-"]] {
            let error = of(words, true).unwrap_err().to_string();
            assert!(error.contains("-w FILE") && error.contains("gannet packets"), "{error}");
        }
    }

    #[test]
    fn others_are_the_packets_that_do_not_match() {
        assert_eq!(others(&[1, 2, 4], 6), [0, 3, 5]);
        assert_eq!(others(&[], 2), [0, 1]);
    }
}
