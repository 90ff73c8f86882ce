//! `gannet analyze`: captures in, logs out.

use std::io;
use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::Context;
use clap::ValueEnum;
use gannet_base::Subnet;
use gannet_capture::Access;
use gannet_capture::Error;
use gannet_capture::Stream;
use gannet_engine::Assets;
use gannet_engine::Engine;
use gannet_engine::Limits;
use gannet_engine::Options;
use gannet_engine::Statistics;
use gannet_filter::Filter;
use gannet_log::Format;
use gannet_log::Selection;
use gannet_log::StreamCount;
use gannet_log::Tap;
use gannet_log::Tapped;

use crate::extract;
use crate::extract::ToFolder;
use crate::formats::Formats;
use crate::formats::LeftOut;
use crate::index::Indexing;
use crate::index::warn_of_missing_fragments;
use crate::left_out;
use crate::limits;
use crate::memory;
use crate::names::System;
use crate::outcome::Outcome;
use crate::paths;
use crate::paths::Folders;
use crate::paths::FoundFile;
use crate::paths::InputFile;
use crate::spread;
use crate::stdin;
use crate::stdin::FlushSchedule;
use crate::stop::Stop;
use crate::tally::Tally;
use crate::terminal::Collected;
use crate::terminal::Messages;
use crate::terminal::Terminal;
use crate::unanswered;

const EXAMPLES: &str = "\
Examples:
  gannet analyze trace.pcap                        logs to this folder
  gannet analyze -C -o logs a.pcap b.pcapng.zst    two captures as one stream, to logs/
  gannet analyze --each -o logs captures/          logs/NAME/ for every capture of a folder
  gannet analyze --json --logs conn,dns trace.pcap conn.log and dns.log only, as JSON
  gannet analyze --format tsv,parquet trace.pcap   conn.log and conn.parquet, and so on
  gannet analyze -f 'udp port 53' trace.pcap       only some of the packets
  gannet analyze trace.pcap detect.zeek            the same as gannet zeek -r trace.pcap detect.zeek
  gannet analyze -i eth0 -o live                   traffic of an interface, until Ctrl-C
  tcpdump -w - | gannet analyze -o live -          whatever comes, until Ctrl-C";

/// Write the logs of captures: connections, protocols, files, weirds.
///
/// Several files and folders are read as one stream in the order of time, also compressed with gzip, zstd,
/// xz and lz4. Logs are Zeek's, a file for each kind that has rows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Captures and folders of captures; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["read", "interfaces"])]
    files: Vec<PathBuf>,
    /// A capture, as in Zeek; the same as FILE
    #[arg(short, long, value_name = "FILE")]
    read: Vec<PathBuf>,
    /// Do not verify checksums: for captures made where the network card fills them in
    #[arg(short = 'C', long)]
    no_checksums: bool,
    /// Folder of the logs; it is created if missing. - is standard output: the rows of the one log that
    /// --logs names, otherwise of all logs as JSON with the log's name as _path
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// One folder for each file below DIR, named after the file; continues after a bad file
    #[arg(long)]
    each: bool,
    #[command(flatten)]
    formats: Formats,
    /// Store which packets belong to which connection in FILE.gannet, for gannet packets --uid
    #[arg(long)]
    index: bool,
    /// Analyse only packets that match, like 'tcp port 80 and not net 10.0.0.0/8'
    #[arg(short, long, value_name = "FILTER")]
    filter: Option<String>,
    /// Write only these logs, like conn,dns. Some are written only on request, like
    /// software: `default,software` adds one to the default logs, `all` writes all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    logs: Option<Vec<String>>,
    /// Additional columns: community_id in conn.log; ja3, ja3s and ja4 in ssl.log
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Seed of community_id
    #[arg(long, value_name = "N", default_value_t = 0)]
    community_seed: u16,
    /// Networks that count as local, like 10.0.0.0/8,2001:db8::/32; by default the private ones
    #[arg(long, value_name = "NETS", value_delimiter = ',')]
    local_nets: Option<Vec<Subnet>>,
    /// Hosts that asset logs include: known_hosts, known_services, known_certs, software
    #[arg(long, value_name = "WHICH", default_value = "local")]
    assets: AssetHosts,
    /// Hash the contents of all files: MD5, SHA1 and SHA256 in files.log
    #[arg(long)]
    hash_files: bool,
    /// Write the contents of files to this folder; files.log has their names there
    #[arg(long, value_name = "DIR")]
    extract_files: Option<PathBuf>,
    /// Only files of these types, like 'image/*,application/pdf'
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = extract::pattern,
          requires = "extract_files")]
    extract_types: Vec<String>,
    /// Maximum number of bytes written per file
    #[arg(long, value_name = "SIZE", default_value = "100M", value_parser = limits::size,
          requires = "extract_files")]
    extract_limit: u64,
    /// Analyse the protocols inside of LDAP and PostgreSQL: Kerberos and NTLM logins, TLS
    #[arg(long)]
    inner_protocols: bool,
    /// Seed of uids: the same seed and capture give the same uids
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of threads, which does not change the logs; by default one for each core, and a single
    /// one for small captures. As many threads decompress zstd
    #[arg(short, long, value_name = "N", value_parser = threads)]
    threads: Option<NonZero<u8>>,
    /// Memory limit of the analysis, like 200M or 2G; above it, the least valuable connections end
    /// early, with their rows: half-open ones first, then idle ones
    #[arg(long, value_name = "SIZE", value_parser = limits::state)]
    max_state: Option<u64>,
    /// Any other limit by its name, like connections=1M or pending-http=500; an unknown name lists all
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = limits::limit)]
    limit: Vec<(String, u64)>,
    /// Print the largest amounts of memory by component, and the sizes of tables
    #[arg(long)]
    stats_state: bool,
    /// Print the final table even if standard error is not a terminal
    #[arg(long)]
    stats: bool,
    /// Print errors only: no progress, no table, no warnings
    #[arg(short, long, conflicts_with = "stats")]
    quiet: bool,
    /// Report why one thread analyzes although several could
    #[arg(short, long)]
    verbose: bool,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    live: crate::live::Args,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AssetHosts {
    /// Hosts of local networks
    Local,
    /// All others
    Remote,
    /// All hosts
    All,
}

impl From<AssetHosts> for Assets {
    fn from(which: AssetHosts) -> Self {
        match which {
            AssetHosts::Local => Self::Local,
            AssetHosts::Remote => Self::Remote,
            AssetHosts::All => Self::All,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(args.quiet);
    let mut options = match options(args) {
        Ok(options) => options,
        Err(error) => {
            terminal.error(&format_args!("--filter: {error}"));
            return Ok(Outcome::NoCapture);
        }
    };
    if let Err(LeftOut(what)) = args.formats.apply(&mut options.logs) {
        return Ok(left_out::report(&what, "columns"));
    }
    if let Some(wrong) = wrong_log(args).or_else(|| wrong_column(args)) {
        return Ok(wrong.report(&terminal));
    }
    if args.counts_memory() {
        memory::start_counting();
    }
    let started = Instant::now();
    let threads = args.threads.map(|n| usize::from(n.get()));
    #[cfg(target_os = "linux")]
    if args.live.is_requested() {
        options.extract =
            extraction(args)?.map(|extract| extract as Arc<dyn gannet_engine::Extract>);
        options.threads = threads.unwrap_or(1);
        if args.logs.is_none() && options.threads == 1 {
            options.logs.selection = Selection::of(["default", "capture_loss"]);
        }
        let filter = args.filter.as_deref();
        let folders = (&*args.out, args.extract_files.as_deref());
        return crate::live::run(&args.live, options, filter, folders, args.quiet);
    }
    let stop = Stop::on_signals().context("signals")?;
    let to_stdout = ToStdout::from_args(args);
    let files = [&args.read[..], &args.files].concat();
    if let Some(wrong) = wrong_options(args, to_stdout, &options, &files) {
        return Ok(wrong.report(&terminal));
    }
    let extract = extraction(args)?;
    options.extract = extract.clone().map(|extract| extract as Arc<dyn gannet_engine::Extract>);
    let mut run = Run {
        options,
        threads,
        to_stdout,
        index: args.index,
        stop,
        terminal,
        verbose: args.verbose,
        tally: Tally::default(),
    };
    run.choose_output(args);
    if let Err(error) = refuse_to_overwrite_inputs(&files, &args.out, args.each) {
        run.terminal.error(&error);
        return Ok(Outcome::NoCapture);
    }
    if let Some(filter) = &run.options.filter
        && let Some(why) = unanswered::in_advance(filter, &files)
    {
        run.terminal.error(&why);
        return Ok(Outcome::NoCapture);
    }
    let outcome =
        if args.each { run.each(&files, &args.out)? } else { run.together(&files, &args.out)? };
    let answered = match &run.options.filter {
        Some(filter) => unanswered::report(filter, run.tally.packets(), &run.terminal),
        None => Outcome::Done,
    };
    run.tally.set_elapsed(started.elapsed());
    if let Some(error) = extract.and_then(|extract| extract.error()) {
        return Err(error.into());
    }
    if args.stats_state {
        run.terminal.print_lines(&run.tally.state().to_string().trim_end());
    }
    if args.stats || run.terminal.is_terminal() {
        run.terminal.print_lines(&run.tally.to_string().trim_end());
    }
    Ok(outcome.max(answered))
}

/// The reason why options are refused, with a hint at what may be meant.
struct RefusedOptions {
    error: String,
    hint: Option<String>,
}

impl RefusedOptions {
    fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    fn report(self, terminal: &Terminal) -> Outcome {
        terminal.error(&self.error);
        if let Some(hint) = self.hint {
            terminal.hint(&hint);
        }
        Outcome::NoCapture
    }
}

/// Refuses a name of `--logs` that is neither a log nor a group of logs.
fn wrong_log(args: &Args) -> Option<RefusedOptions> {
    let mut all: Vec<_> = gannet_engine::schemas().iter().map(|s| s.path).collect();
    let is_group = |name: &str| Selection::GROUPS.iter().any(|(group, _)| *group == name);
    let wrong =
        args.logs.iter().flatten().find(|name| !is_group(name) && !all.contains(&&***name))?;
    all.sort_unstable();
    let hint = match crate::terminal::nearest(wrong, &all) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("logs are {}; default, policy and all name groups", all.join(", ")),
    };
    Some(RefusedOptions::new(format!("--logs: no log is named '{wrong}'")).hint(hint))
}

/// Refuses a name of `--columns` that is not an optional column.
fn wrong_column(args: &Args) -> Option<RefusedOptions> {
    let is_known = |name: &&String| {
        let is = |f: &gannet_log::Field| f.optional && f.name == **name;
        gannet_engine::schemas().iter().any(|s| s.fields.iter().any(is))
    };
    let wrong = args.columns.iter().find(|name| !is_known(name))?;
    let error = format!("--columns: no optional column is named '{wrong}'");
    Some(RefusedOptions::new(error).hint(format!("optional columns are {}", optional_columns())))
}

/// Refuses options for captures in files that exclude each other.
fn wrong_options(
    args: &Args,
    to_stdout: Option<ToStdout>,
    options: &Options,
    files: &[PathBuf],
) -> Option<RefusedOptions> {
    #[cfg(target_os = "linux")]
    if let Some(option) = args.live.only_live() {
        let error = format!("{option} is only for live captures");
        let hint =
            "use -i INTERFACE for a live capture, or --json -o - to print the rows of all logs";
        return Some(RefusedOptions::new(error).hint(hint));
    }
    if to_stdout.is_some() && args.each {
        return Some(RefusedOptions::new("--out -: --each needs a folder for the logs"));
    }
    if to_stdout.is_some() && options.logs.format == Format::Packed {
        let error = "--out -: only one text format can be written to standard output (--format tsv or json)";
        return Some(RefusedOptions::new(error));
    }
    if let Some(words) = args.formats.without_effect(to_stdout == Some(ToStdout::All)) {
        return Some(RefusedOptions::new(words));
    }
    if to_stdout == Some(ToStdout::All) && args.formats.names_tsv() {
        let error = "--out -: only one log can be written to standard output as TSV";
        let hint = "use --logs conn, for example, or --format json for the rows of all logs";
        return Some(RefusedOptions::new(error).hint(hint));
    }
    let is_indexed = || one_capture(files).is_some();
    (args.index && !args.each && !is_indexed()).then(|| {
        RefusedOptions::new("--index needs exactly one capture file; use --each to index several")
    })
}

/// The folder of extracted files, if any are extracted.
fn extraction(args: &Args) -> anyhow::Result<Option<Arc<ToFolder>>> {
    let Some(folder) = args.extract_files.as_deref() else { return Ok(None) };
    paths::make_folder(folder, "--extract-files")?;
    let extract = ToFolder::new(folder, &args.extract_types, args.extract_limit);
    Ok(Some(Arc::new(extract.with_context(|| folder.display().to_string())?)))
}

/// Refuses logs that would overwrite a capture that is read.
fn refuse_to_overwrite_inputs(files: &[PathBuf], out: &Path, each: bool) -> anyhow::Result<()> {
    let inputs = InputFile::all(files);
    let mut folders = Folders::new(out);
    let folders = match each {
        true => paths::files(files)?.iter().map(|found| folders.of(found)).collect(),
        false => vec![out.to_owned()],
    };
    for folder in folders {
        for schema in gannet_engine::schemas() {
            InputFile::refuse(&inputs, &folder.join(format!("{}.log", schema.path)))?;
        }
    }
    Ok(())
}

/// The capture to index: the only file, if there is one.
fn one_capture(files: &[PathBuf]) -> Option<&Path> {
    match files {
        [file] if file.is_file() => Some(file),
        _ => None,
    }
}

/// Parses the number of analysis threads.
pub(crate) fn threads(text: &str) -> Result<NonZero<u8>, String> {
    let wrong = || {
        "expected a number from 1 to 255; without -t, gannet uses one thread per core".to_owned()
    };
    text.parse::<u8>().ok().and_then(NonZero::new).ok_or_else(wrong)
}

/// The names of all optional columns.
fn optional_columns() -> String {
    let schemas = gannet_engine::schemas();
    let optional = schemas.iter().flat_map(|s| s.fields.iter().filter(|f| f.optional));
    let mut names: Vec<_> = optional.map(|f| f.name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The logs that go to standard output instead of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToStdout {
    /// One log, with the contents of its file.
    One,
    /// The rows of all logs as JSON, each with the name of its log.
    All,
}

impl ToStdout {
    fn from_args(args: &Args) -> Option<Self> {
        let logs = args.logs.as_deref().unwrap_or_default();
        let one =
            matches!(logs, [name] if Selection::GROUPS.iter().all(|(group, _)| group != name));
        let to = if one { Self::One } else { Self::All };
        (args.out == Path::new("-")).then_some(to)
    }
}

/// Compiles a filter; names of hosts and services are resolved by this machine.
pub(crate) fn filter(text: &str) -> Result<Filter, gannet_filter::Error> {
    Filter::with(text, gannet_filter::Options::default(), Arc::new(System::new()))
}

impl Args {
    /// Whether packets come from interfaces.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_requested()
    }

    /// The options of the live capture, without those for files.
    #[cfg(target_os = "linux")]
    pub(crate) fn into_live(self) -> crate::live::Args {
        self.live
    }

    /// Sets the function that reads the options again on SIGHUP.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_reload(&mut self, reload: crate::live::reload::Reload) {
        self.live.reload = Some(reload);
    }

    fn counts_memory(&self) -> bool {
        let limited = self.limit.iter().any(|(name, _)| name == "state");
        self.max_state.is_some() || limited || self.stats_state
    }
}

fn limits_of(args: &Args) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in &args.limit {
        limits.set(name, *value);
    }
    if let Some(bytes) = args.max_state {
        limits.state = bytes;
    }
    limits
}

/// Below this memory limit, in bytes, only the bytes in use count.
const SMALL_STATE: u64 = 64 << 20;

fn options(args: &Args) -> Result<Options, gannet_filter::Error> {
    let limits = limits_of(args);
    Ok(Options {
        ignore_checksums: args.no_checksums,
        filter: args.filter.as_deref().map(filter).transpose()?,
        logs: gannet_log::Options {
            dir: None,
            columns: args.columns.clone(),
            selection: args.logs.as_ref().map_or_else(Selection::default, Selection::of),
            ..gannet_log::Options::default()
        },
        local_nets: args.local_nets.clone(),
        assets: args.assets.into(),
        community_seed: args.community_seed,
        seed: args.seed,
        hash_files: args.hash_files,
        inner_protocols: args.inner_protocols,
        memory: match limits.state {
            _ if !args.counts_memory() => None,
            // The allocator's overhead comes in megabytes, which is too coarse for a small limit.
            u64::MAX | ..SMALL_STATE => Some(memory::in_use),
            _ => Some(memory::in_use_with_overhead),
        },
        limits,
        ..Options::default()
    })
}

/// Captures of fewer bytes are analysed in one thread: starting others takes longer than they save.
const SMALL: u64 = 4 << 20;

pub(crate) fn is_small(stream: &Stream) -> bool {
    stream.bytes_total().is_some_and(|bytes| bytes < SMALL)
}

pub(crate) fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// State that all streams of a run share.
struct Run {
    options: Options,
    /// The number of threads, if given.
    threads: Option<usize>,
    to_stdout: Option<ToStdout>,
    /// Whether each capture gets an index.
    index: bool,
    stop: Stop,
    terminal: Terminal,
    verbose: bool,
    tally: Tally,
}

impl Run {
    /// Chooses whether rows go to a folder or to standard output.
    fn choose_output(&mut self, args: &Args) {
        match self.to_stdout {
            None => {
                let below = if args.each { "*/" } else { "" };
                self.tally.set_folder(format!("{}", args.out.join(below).display()));
            }
            Some(ToStdout::One) => self.options.logs.stdout = true,
            Some(ToStdout::All) => {
                if matches!(self.options.logs.format, Format::Tsv) {
                    self.options.logs.format = Format::Json(args.formats.json_times());
                }
                // With several threads the order of rows of different logs would vary.
                self.threads = Some(1);
            }
        }
    }

    /// Analyses all files as one stream.
    fn together(&mut self, files: &[PathBuf], out: &Path) -> anyhow::Result<Outcome> {
        match self.open(files) {
            Ok(stream) => self.stream(stream, out, FlushSchedule::for_inputs(files), files),
            Err(error) => Ok(self.refuse(&error)),
        }
    }

    /// Analyses every file separately, into a folder of its own.
    fn each(&mut self, named: &[PathBuf], out: &Path) -> anyhow::Result<Outcome> {
        let (files, mut captures) = (paths::files(named)?, Vec::new());
        let threads = self.threads.unwrap_or_else(cores);
        let mut outcome = if threads.min(files.len()) > 1 {
            self.each_in_parallel(&files, out, threads, &mut captures)?
        } else {
            self.each_sequentially(&files, out, &mut captures)?
        };
        if self.stop.requested().is_none() {
            for error in paths::without_captures(named, &captures) {
                outcome = outcome.max(self.refuse(&error));
            }
        }
        Ok(outcome)
    }

    /// Analyses every file separately, one after another, and adds those that are captures to `captures`.
    fn each_sequentially(
        &mut self,
        files: &[FoundFile],
        out: &Path,
        captures: &mut Vec<PathBuf>,
    ) -> anyhow::Result<Outcome> {
        let mut folders = Folders::new(out);
        let mut outcome = Outcome::Done;
        for file in files {
            if let Some(stopped) = self.stop.requested() {
                return Ok(stopped);
            }
            match self.open(std::slice::from_ref(&file.path)) {
                Ok(stream) => {
                    captures.push(file.path.clone());
                    let folder = folders.of(file);
                    let live = FlushSchedule::for_inputs(std::slice::from_ref(&file.path));
                    let files = std::slice::from_ref(&file.path);
                    outcome = outcome.max(self.stream(stream, &folder, live, files)?);
                }
                Err(error) if file.named => outcome = outcome.max(self.refuse(&error)),
                Err(error) => self.terminal.warning(&format_args!("skipped {error}")),
            }
        }
        folders.report(&self.terminal);
        Ok(outcome)
    }

    /// Analyses every file separately, several in parallel, and prints the messages in the order of
    /// the files. Adds the files that are captures to `captures`.
    fn each_in_parallel(
        &mut self,
        files: &[FoundFile],
        out: &Path,
        threads: usize,
        captures: &mut Vec<PathBuf>,
    ) -> anyhow::Result<Outcome> {
        let workers = threads.min(files.len());
        let mut folders = Folders::new(out);
        let mut outcome = Outcome::Done;
        let options = &self.options;
        let (stop, index) = (self.stop.clone(), self.index);
        let work = |(stream, folder, capture): (Stream, PathBuf, PathBuf)| {
            // With fewer files than threads, each file gets several threads.
            let threads = if is_small(&stream) { 1 } else { threads / workers };
            let options = Options { threads, ..options.clone() };
            let mut words = Collected::default();
            let index = index.then_some(&*capture);
            let to = (Logs::Folder(&folder), index);
            (analyse(options, &stop, stream, to, None, &mut words), words)
        };
        let (stop, terminal, tally) = (&self.stop, &self.terminal, &mut self.tally);
        spread::run(
            workers,
            files.iter().take_while(|_| stop.requested().is_none()),
            |file| {
                // Folders are named here, in the order of their files.
                let stream = open(std::slice::from_ref(&file.path), stop);
                let with_folder = |stream| {
                    captures.push(file.path.clone());
                    (stream, folders.of(file), file.path.clone())
                };
                stream.map(with_folder).map_err(|e| (e, file.named))
            },
            work,
            |done| {
                match done {
                    Ok((done, words)) => {
                        words.print(terminal);
                        outcome = outcome.max(done?.add_to(tally)?);
                    }
                    Err((error, true)) => outcome = outcome.max(refuse(&error, stop, terminal)),
                    Err((error, false)) => terminal.warning(&format_args!("skipped {error}")),
                }
                anyhow::Ok(())
            },
        )?;
        folders.report(terminal);
        Ok(stop.requested().unwrap_or(outcome))
    }

    fn open(&self, files: &[PathBuf]) -> Result<Stream, Error> {
        open(files, &self.stop)
    }

    /// Reports a capture that cannot be read at all.
    fn refuse(&self, error: &Error) -> Outcome {
        refuse(error, &self.stop, &self.terminal)
    }

    /// Runs one stream through an engine of its own, into one folder.
    fn stream(
        &mut self,
        stream: Stream,
        out: &Path,
        live: Option<FlushSchedule>,
        files: &[PathBuf],
    ) -> anyhow::Result<Outcome> {
        let threads = self.threads.unwrap_or_else(|| if is_small(&stream) { 1 } else { cores() });
        let options = Options { threads, ..self.options.clone() };
        if self.verbose
            && let Some(why) = gannet_engine::why_one_thread(&options)
        {
            self.terminal.note(&format_args!("analyzing with one thread: {why}"));
        }
        self.terminal.begin(&stream);
        let logs = self.to_stdout.map_or(Logs::Folder(out), Logs::Stdout);
        let index = if self.index { one_capture(files) } else { None };
        let to = (logs, index);
        let done = analyse(options, &self.stop, stream, to, live, &mut self.terminal);
        self.terminal.end();
        done?.add_to(&mut self.tally)
    }
}

fn open(files: &[PathBuf], stop: &Stop) -> Result<Stream, Error> {
    let options = gannet_capture::Options { access: Access::Read, ..Default::default() };
    stdin::stream(files, options, stop)
}

fn refuse(error: &Error, stop: &Stop, terminal: &Terminal) -> Outcome {
    stop.requested().unwrap_or_else(|| {
        terminal.error(error);
        Outcome::of(error, false)
    })
}

/// The result of a stream: how it ended, and what its engine counted.
struct StreamResult {
    outcome: Outcome,
    finished: io::Result<(Statistics, Vec<StreamCount>)>,
}

impl StreamResult {
    /// Adds the counts to those of the run.
    fn add_to(self, tally: &mut Tally) -> anyhow::Result<Outcome> {
        let (statistics, counts) = self.finished?;
        tally.add(statistics, &counts);
        Ok(self.outcome)
    }
}

/// The destination of a stream's logs.
#[derive(Clone, Copy)]
enum Logs<'a> {
    Folder(&'a Path),
    Stdout(ToStdout),
}

/// Runs one stream through an engine of its own, into one folder.
fn analyse(
    mut options: Options,
    stop: &Stop,
    mut stream: Stream,
    (logs, index): (Logs<'_>, Option<&Path>),
    mut live: Option<FlushSchedule>,
    words: &mut dyn Messages,
) -> anyhow::Result<StreamResult> {
    let mut rows = None;
    match logs {
        Logs::Folder(out) => {
            paths::make_folder(out, "--out")?;
            options.logs.dir = Some(out.to_owned());
        }
        Logs::Stdout(ToStdout::One) => {}
        Logs::Stdout(ToStdout::All) => {
            let tap = Tap::default();
            options.logs.tap = Some(tap.clone());
            rows = Some(Lines { tap, rows: Tapped::default(), text: Vec::new() });
        }
    }
    for warning in paths::warnings(&stream) {
        words.warning(&warning);
    }
    stream.set_unpack_threads(options.threads);
    if options.threads > 1 {
        stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
    }
    let mut indexing = index.map(|capture| Indexing::begin(capture, &mut stream, &mut options));
    let mut engine = Engine::new(options);
    let mut outcome = Outcome::Done;
    let mut failed = Ok(());
    while stop.requested().is_none() {
        match stream.next_batch() {
            Ok(Some(batch)) => {
                failed = engine.batch(&batch);
                if let Some(indexing) = &mut indexing {
                    indexing.batch(&batch);
                }
                let empty = batch.len() < gannet_capture::NEAR_PACKETS;
                if let Some(live) = &mut live
                    && live.is_due(empty, stop)
                {
                    failed = failed.and_then(|()| engine.flush());
                }
                if let Some(rows) = &mut rows {
                    failed = failed.and_then(|()| rows.print());
                }
                if failed.is_err() {
                    break;
                }
            }
            Ok(None) => break,
            // Standard input that ends because of a signal looks truncated.
            Err(_) if stop.requested().is_some() => {}
            Err(error) => {
                words.error(&error);
                outcome = outcome.max(Outcome::of(&error, true));
            }
        }
        words.progress(&stream);
    }
    // Logs that could be written are complete even if another could not.
    let finished = engine.finish();
    let last = rows.map_or(Ok(()), |mut rows| rows.print());
    let finished = failed.and(last).and(finished);
    if let Some(indexing) = indexing
        && finished.is_ok()
        && stop.requested().is_none()
    {
        match indexing.write() {
            Ok(built) => {
                let capture = index.unwrap_or(Path::new(""));
                warn_of_missing_fragments(built.forgotten, capture, |text| words.warning(text));
            }
            Err(error) => {
                words.error(&error);
                outcome = outcome.max(Outcome::Failed);
            }
        }
    }
    if let Ok((statistics, counts)) = &finished {
        if let Some(text) = statistics.checksum_warning() {
            words.warning(&text);
        }
        if let Logs::Folder(out) = logs {
            warn_of_old_logs(out, counts, words);
        }
    }
    Ok(StreamResult { outcome: stop.requested().unwrap_or(outcome), finished })
}

/// Rows of all logs, to be printed to standard output.
struct Lines {
    tap: Tap,
    rows: Tapped,
    text: Vec<u8>,
}

impl Lines {
    /// Prints the rows since the last call, each a JSON object that begins with the name of its log.
    fn print(&mut self) -> io::Result<()> {
        self.tap.take(&mut self.rows);
        self.text.clear();
        for row in &self.rows.rows {
            let start = row.start as usize;
            let line = self.rows.bytes.get(start..start + row.len as usize).unwrap_or_default();
            let path = self.rows.path(row.stream).unwrap_or_default();
            self.text.extend_from_slice(format!("{{\"_path\":\"{path}\",").as_bytes());
            self.text.extend_from_slice(line.strip_prefix(b"{").unwrap_or(line));
            self.text.push(b'\n');
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(&self.text).and_then(|()| out.flush());
        written.map_err(|e| io::Error::new(e.kind(), format!("standard output: {e}")))
    }
}

/// Warns about logs in the folder that this run did not write.
fn warn_of_old_logs(out: &Path, counts: &[StreamCount], words: &mut dyn Messages) {
    let mut old = Vec::new();
    for schema in gannet_engine::schemas() {
        let name = format!("{}.log", schema.path);
        let is_new = counts.iter().any(|c| c.path == schema.path && c.rows > 0);
        if !is_new && !old.contains(&name) && out.join(&name).is_file() {
            old.push(name);
        }
    }
    if !old.is_empty() {
        let (out, old) = (out.display(), old.join(", "));
        words.warning(&format_args!("{out} also contains logs of an earlier run: {old}"));
    }
}
