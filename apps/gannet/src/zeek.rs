//! `gannet zeek`: Zeek scripts with Zeek's own command line. A link named `zeek` to the command is the same.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Read as _;
use std::io::Seek as _;
use std::io::SeekFrom;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use std::time::SystemTime;

use gannet_base::Time;
use gannet_capture::Stream;
use gannet_engine::Contents;
use gannet_engine::Engine;
use gannet_engine::Extract;
use gannet_engine::Extractable;
use gannet_engine::Extracted;
use gannet_engine::Options;
use gannet_event::Decl;
use gannet_event::Listener;
use gannet_event::ThreadAffinity;
use gannet_filter::Filter;
use gannet_log::Selection;
use gannet_script::bridge;
use gannet_script::bridge::RunOptions;
use gannet_script::bridge::Source;

use crate::memory;
use crate::stdin;
use crate::stop::Stop;

#[cfg(target_os = "linux")]
mod interface;

/// Run Zeek scripts, with the options of the command zeek
///
/// With -r FILE event handlers run over a capture, with -i INTERFACE over the traffic of an interface.
/// Takes the options of zeek (-h lists them). Zeek's own scripts are found through ZEEKPATH or
/// --zeek-scripts; without them -b runs scripts that need only the language. A link named zeek to
/// this command is the same.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Options and files of the command zeek
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// The arguments of the command zeek, where the process was started as `gannet zeek …` or as `zeek …`.
pub(crate) fn arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let program = args.first().and_then(|path| Path::new(path).file_name());
    if program.is_some_and(|name| name == "zeek") {
        return Some(args[1..].to_vec());
    }
    args.get(1).filter(|command| *command == "zeek").map(|_| args[2..].to_vec())
}

/// Runs the command.
pub(crate) fn run(arguments: Vec<OsString>) -> ExitCode {
    let is_profile =
        |argument: &OsString| argument.to_string_lossy().starts_with("--profile-scripts");
    if arguments.iter().any(is_profile) {
        memory::start_counting();
        gannet_script::vm::profile::count_allocations(memory::allocations);
    }
    gannet_script::command::main_with(arguments, Some(Box::new(Captures::default())))
}

impl Args {
    /// Returns the arguments unchanged.
    pub(crate) fn into_arguments(self) -> Vec<OsString> {
        self.arguments
    }
}

/// A capture or an interface, and the analysis of its packets.
#[derive(Default)]
struct Captures {
    ignore_checksums: bool,
    /// Whether protocols inside of LDAP and PostgreSQL are analyzed, and failures of these two are reported.
    inner_protocols: bool,
    threads: usize,
    filter: Option<Filter>,
    open: Option<(Packets, Stop)>,
}

/// The open source of packets.
enum Packets {
    Capture(Box<Stream>),
    #[cfg(target_os = "linux")]
    Interface(Box<interface::Link>),
    /// No packets: scripts only read files.
    None,
}

impl Source for Captures {
    fn catalogue(&self) -> Vec<&'static Decl> {
        gannet_engine::events().collect()
    }

    fn open(&mut self, options: &gannet_script::command::Options) -> Result<(), String> {
        self.ignore_checksums = options.ignore_checksums;
        self.inner_protocols = options.spicy;
        self.threads = options.threads;
        // Zeek's own scripts install the filter.
        let search_path = gannet_script::command::search_path(options);
        if let Some(text) = &options.filter
            && !gannet_script::command::has_scripts(&search_path)
        {
            let filter = Filter::parse(text).map_err(|error| format!("filter: {error}"))?;
            self.filter = Some(filter);
        }
        let stop = Stop::on_signals().map_err(|error| error.to_string())?;
        stop.explain();
        let packets = if let Some(interface) = &options.interface {
            open_interface(interface, options.filter.as_deref())?
        } else if options.capture.is_none() {
            Packets::None
        } else {
            let files: Vec<PathBuf> = options.capture.iter().map(PathBuf::from).collect();
            let stream = stdin::stream(&files, gannet_capture::Options::default(), &stop)
                .map_err(|error| reason(&error))?;
            Packets::Capture(Box::new(stream))
        };
        self.open = Some((packets, stop));
        Ok(())
    }

    fn link_type(&self, options: &gannet_script::command::Options) -> Option<u64> {
        // In other formats each packet has a link type of its own.
        let mut header = [0; 24];
        let mut file = File::open(options.capture.as_ref()?).ok()?;
        file.read_exact(&mut header).ok()?;
        let [.., a, b, c, d] = header;
        let link_type = match header.get(..4)? {
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => u32::from_le_bytes([a, b, c, d]),
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => u32::from_be_bytes([a, b, c, d]),
            _ => return None,
        };
        Some(u64::from(link_type & 0xffff))
    }

    fn filter_check(&self) -> bridge::FilterCheck {
        |text| match Filter::parse(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{text}: {}", one_line(&error))),
        }
    }

    fn run(&mut self, run_options: RunOptions, listener: Box<dyn Listener>) -> Result<(), String> {
        let Some((mut packets, stop)) = self.open.take() else { return Ok(()) };
        let threads = match listener.affinity() {
            ThreadAffinity::Analysis => 1,
            _ => self.threads,
        };
        if let Packets::Capture(stream) = &mut packets
            && threads > 1
        {
            stream.set_unpack_threads(threads);
            stream.set_batch_packets(gannet_capture::BATCH_PACKETS);
        }
        let failure = Failure::default();
        let options = Options {
            threads,
            ignore_checksums: self.ignore_checksums || run_options.ignore_checksums,
            inner_protocols: self.inner_protocols,
            scripted: run_options.scripted,
            in_key_order: run_options.in_key_order,
            filter: self.filter.take(),
            extract: Some(Arc::new(Extractor(failure.clone()))),
            logs: gannet_log::Options {
                selection: Selection::of::<&str>([]),
                ..Default::default()
            },
            ..Options::default()
        };
        let mut engine = Engine::with_listener(options, run_options.interest, listener);
        let read = match packets {
            Packets::Capture(mut stream) => read(&mut stream, &stop, &mut engine),
            #[cfg(target_os = "linux")]
            Packets::Interface(link) => link.read(&stop, &mut engine),
            Packets::None => advance(&stop, run_options.follows_clock, &mut engine),
        };
        if !bridge::failed() {
            engine.finish().map_err(|error| error.to_string())?;
        }
        match (read, failure.text()) {
            (Err(read), Some(extraction)) => Err(format!("{read}; {extraction}")),
            (read, None) => read,
            (Ok(()), Some(extraction)) => Err(extraction),
        }
    }
}

/// Advances time for scripts that run without packets.
fn advance(stop: &Stop, follows_clock: bool, engine: &mut Engine) -> Result<(), String> {
    while stop.requested().is_none() && !bridge::stops() && bridge::keeps_running() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let time = if follows_clock { Time::from_nanos(now) } else { Time::ZERO };
        engine.advance(0, time).map_err(|error| error.to_string())?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Pause between two updates of the time where scripts run without packets.
const PAUSE: Duration = Duration::from_millis(1);

/// Analyses the packets of a capture. A damaged file ends at the damage; the files after it are read.
fn read(stream: &mut Stream, stop: &Stop, engine: &mut Engine) -> Result<(), String> {
    let mut last_error = None;
    while stop.requested().is_none() && !bridge::stops() {
        match stream.next_batch() {
            Ok(Some(batch)) => engine.batch(&batch).map_err(|error| error.to_string())?,
            Ok(None) => break,
            Err(_) if stop.requested().is_some() => {}
            Err(error) => last_error = Some(error.to_string()),
        }
    }
    last_error.map_or(Ok(()), Err)
}

#[cfg(target_os = "linux")]
fn open_interface(name: &str, filter: Option<&str>) -> Result<Packets, String> {
    interface::Link::open(name, filter).map(|link| Packets::Interface(Box::new(link)))
}

#[cfg(not(target_os = "linux"))]
fn open_interface(_: &str, _: Option<&str>) -> Result<Packets, String> {
    Err("live capture requires Linux".to_owned())
}

/// An error of a capture filter in one line: the reason and the position.
fn one_line(error: &gannet_filter::Error) -> String {
    const LIBPCAP: &str = "can't parse filter expression: syntax error";
    let message = error.message();
    let begin = if message.starts_with(LIBPCAP) { "" } else { LIBPCAP };
    let colon = if begin.is_empty() { "" } else { ": " };
    let mut text = format!("{begin}{colon}{message} at character {}", error.column());
    if let Some(expected) = error.expected() {
        text += &format!(", expected {expected}");
    }
    if let Some(hint) = error.hint() {
        text += &format!(", did you mean '{hint}'?");
    }
    text
}

/// The reason why a capture cannot be read, with Zeek's message where it has one.
fn reason(error: &gannet_capture::Error) -> String {
    use gannet_capture::Error;
    match error {
        Error::NotACapture { .. } => "unknown file format".to_owned(),
        Error::Io { file, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("unable to open {}: No such file or directory", file.display())
        }
        other => other.to_string(),
    }
}

/// The first extracted file that could not be written, with the error.
#[derive(Clone, Debug, Default)]
struct Failure(Arc<OnceLock<String>>);

impl Failure {
    fn record(&self, path: &str, result: io::Result<()>) -> bool {
        result.map_err(|error| self.0.get_or_init(|| format!("{path}: {error}"))).is_ok()
    }

    fn text(&self) -> Option<String> {
        self.0.get().cloned()
    }
}

/// Writes the files that scripts extract.
#[derive(Debug)]
struct Extractor(Failure);

impl Extract for Extractor {
    fn open(&self, _: &Extractable) -> Option<Box<dyn Contents>> {
        None
    }

    fn create(&self, path: &str, limit: u64, counts_gaps: bool) -> Option<Box<dyn Contents>> {
        let file = match File::create(path) {
            Ok(file) => BufWriter::new(file),
            Err(error) => {
                self.0.record(path, Err(error));
                return None;
            }
        };
        let mut copy = OutputFile {
            failure: self.0.clone(),
            name: path.to_owned(),
            file,
            limit: 0,
            counts_gaps,
            counted: 0,
            offset: 0,
            size: 0,
            cutoff: false,
        };
        copy.set_limit(limit);
        Some(Box::new(copy))
    }
}

/// An extracted file that is being written.
#[derive(Debug)]
struct OutputFile {
    failure: Failure,
    name: String,
    file: BufWriter<File>,
    limit: u64,
    /// Whether missing bytes count towards the limit.
    counts_gaps: bool,
    /// Number of bytes written that count towards the limit.
    counted: u64,
    /// Offset of the next byte.
    offset: u64,
    /// Size of the file: the end of the last byte written.
    size: u64,
    /// Whether the limit or an error ended the extraction.
    cutoff: bool,
}

impl OutputFile {
    /// Number of bytes that the limit allows.
    fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.counted)
    }
}

impl Contents for OutputFile {
    fn data(&mut self, data: &[u8]) {
        if self.cutoff {
            return;
        }
        let remaining = usize::try_from(self.remaining()).unwrap_or(usize::MAX);
        self.cutoff = data.len() > remaining;
        let data = data.get(..remaining).unwrap_or(data);
        let written = self.file.write_all(data);
        if self.failure.record(&self.name, written) {
            self.counted += data.len() as u64;
            self.offset += data.len() as u64;
            self.size = self.offset;
        }
    }

    // A gap becomes a hole in the file, as in Zeek, but not at its end.
    fn gap(&mut self, len: u64) {
        if self.cutoff {
            return;
        }
        if self.counts_gaps {
            self.cutoff = len > self.remaining();
            self.counted = self.counted.saturating_add(len).min(self.limit);
        }
        self.offset = self.offset.saturating_add(len);
        self.cutoff |= self.file.seek(SeekFrom::Start(self.offset)).is_err();
    }

    fn exceeded(&self, len: u64, is_gap: bool) -> Option<u64> {
        let counts = !self.cutoff && (self.counts_gaps || !is_gap);
        (counts && len > self.remaining()).then_some(self.limit)
    }

    fn set_limit(&mut self, limit: u64) {
        self.limit = if limit == 0 { u64::MAX } else { limit };
    }

    fn finish(&mut self) -> Extracted {
        let written = self.file.flush();
        self.failure.record(&self.name, written);
        Extracted { name: self.name.clone(), size: self.size, cutoff: self.cutoff }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_filter_error_is_one_line_with_reason_and_position() {
        let reason = |text: &str| one_line(&Filter::parse(text).unwrap_err());
        assert_eq!(
            reason("tcp port"),
            "can't parse filter expression: syntax error at character 9, expected a port or the \
             name of a service"
        );
        for text in ["tcp prot 80", "host 1.2.3.400", "port 70000", "kaputt, too"] {
            let reason = reason(text);
            let begin = "can't parse filter expression: syntax error";
            assert_eq!(reason.matches(begin).count(), 1, "{reason}");
            assert!(reason.starts_with(begin) && !reason.contains('\n'), "{reason}");
        }
    }

    #[test]
    fn an_extracted_file_that_cannot_be_written_is_reported() {
        let of = |path: &str, len: usize| {
            let extractor = Extractor(Failure::default());
            if let Some(mut contents) = extractor.create(path, 0, false) {
                contents.data(&vec![b'x'; len]);
                contents.finish();
            }
            extractor.0.text().unwrap_or_default()
        };
        // A file smaller than the buffer fails when it is flushed.
        assert!(of("/dev/full", 10).starts_with("/dev/full: No space left on device"));
        assert!(of("/dev/full", 100_000).starts_with("/dev/full: No space left on device"));
        assert!(of("/nonexistent/x", 10).starts_with("/nonexistent/x: No such file or directory"));
        assert_eq!(of("/dev/null", 10), "");
    }
}
