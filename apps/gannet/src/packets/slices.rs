//! Reads the packets of a connection with the index of a capture.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::io;
use std::io::BufWriter;
use std::io::IsTerminal;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::Writer;
use gannet_index::Analysis;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;
use gannet_wire::Transport;

use super::line::Printer;
use super::messages::Segments;
use crate::filter::like;
use crate::index::warn_of_missing_fragments;
use crate::outcome::Outcome;
use crate::paths;
use crate::paths::FoundFile;
use crate::paths::InputFile;
use crate::terminal::Terminal;

/// A selection of packets: those of a uid, or of one of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PacketSelection {
    pub(crate) uid: String,
    /// Only packets from the first time up to, but excluding, the second, in microseconds since 1970.
    pub(crate) within: Option<(i64, i64)>,
    /// Only DNS messages with this id.
    pub(crate) message: Option<u16>,
    /// Whether the messages are in the streams of a TCP connection.
    pub(crate) is_stream: bool,
}

impl PacketSelection {
    /// Selects all packets of a uid.
    pub(crate) fn all(uid: String) -> Self {
        Self { uid, within: None, message: None, is_stream: false }
    }

    /// The id and the times of messages, if they are in the streams of a TCP connection.
    fn of_stream(&self) -> Option<(u16, (i64, i64))> {
        Some((self.message.filter(|_| self.is_stream)?, self.within?))
    }

    fn has(&self, packet: &Packet<'_>) -> bool {
        // Logs have times in whole microseconds.
        let micros = packet.time.as_nanos() / 1_000;
        let in_time = self.within.is_none_or(|(from, to)| (from..to).contains(&micros));
        in_time && self.message.is_none_or(|id| message(packet).is_none_or(|found| found == id))
    }
}

/// The id of the DNS message in a packet, if it is UDP outside of tunnels.
fn message(packet: &Packet<'_>) -> Option<u16> {
    let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len).ok()?;
    let datagram = decoded.datagram()?;
    // Only the first fragment of a message has its id, so all fragments are selected.
    let Transport::Udp(udp) = datagram.transport else { return None };
    if datagram.ip.fragment.is_some() {
        return None;
    }
    udp.payload.first_chunk().map(|id| u16::from_be_bytes(*id))
}

/// The selections for several captures.
pub(super) enum Selections<'a> {
    /// The same uids in each capture. A uid that several captures have is reported.
    Same(&'a [PacketSelection]),
    /// For each capture the uids of its rows.
    #[cfg(feature = "sql")]
    OfEach {
        /// Returns the selections of a capture; errors are already reported.
        rows: &'a dyn Fn(&Path) -> Result<Vec<PacketSelection>, Outcome>,
        /// The error if no capture has such rows.
        nothing: &'a str,
    },
}

impl Selections<'_> {
    fn for_capture(&self, file: &Path) -> Result<Cow<'_, [PacketSelection]>, Outcome> {
        let _ = file;
        match self {
            Self::Same(selected) => Ok(Cow::Borrowed(selected)),
            #[cfg(feature = "sql")]
            Self::OfEach { rows, .. } => rows(file).map(Cow::Owned),
        }
    }

    /// The error if no packet is found, with or without rows.
    fn nothing(&self, has_rows: bool) -> String {
        let _ = has_rows;
        match self {
            Self::Same(selected) => {
                let mut uids: Vec<_> = selected.iter().map(|selected| &*selected.uid).collect();
                uids.dedup();
                let more = if uids.len() > MAX_LISTED { ", ..." } else { "" };
                uids.truncate(MAX_LISTED);
                format!("no capture has packets of {}{more}", uids.join(", "))
            }
            #[cfg(feature = "sql")]
            Self::OfEach { .. } if has_rows => {
                "the index has none of these connections; create it with the same options as the logs"
                    .into()
            }
            #[cfg(feature = "sql")]
            Self::OfEach { nothing, .. } => (*nothing).to_owned(),
        }
    }

    /// Whether the same uids are selected in all captures.
    fn is_same(&self) -> bool {
        matches!(self, Self::Same(_))
    }
}

/// The destination of packets.
enum To {
    Lines(Box<Printer>, BufWriter<io::StdoutLock<'static>>),
    Capture(Box<Writer>),
}

/// Maximum number of uids in a message.
const MAX_LISTED: usize = 5;

/// The reason why reading packets ends early.
#[derive(Debug)]
enum Stopped {
    Index(Error),
    Other(anyhow::Error),
    Enough,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

/// Writes the selected packets of each capture, up to a limit. Missing indexes are built with the options of `analysis`,
/// if it is given.
pub(super) fn run(
    files: &[PathBuf],
    selections: &Selections<'_>,
    printer: Printer,
    analysis: Option<Analysis>,
    write: Option<&Path>,
    count: Option<u64>,
) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    if files.iter().any(|file| file == Path::new("-")) {
        terminal.error(&"-: standard input has no index; give the capture file");
        return Ok(Outcome::NoCapture);
    }
    let files = &captures(files)?[..];
    let mut to = match write {
        Some(path) => {
            if path == Path::new("-") && io::stdout().is_terminal() {
                terminal.error(
                    &"-w -: standard output is a terminal; give a file, or pipe the packets",
                );
                return Ok(Outcome::NoCapture);
            }
            let refused = InputFile::refuse(&InputFile::all(files), path);
            if let Err(error) = refused.and_then(|()| paths::refuse_suffix(path)) {
                terminal.error(&error);
                return Ok(Outcome::NoCapture);
            }
            if let Some(format) = paths::unknown_format(path) {
                let path = path.display();
                terminal.note(&format_args!(
                    "{path} is written as {format}; the extension .pcap or .pcapng selects the format"
                ));
            }
            To::Capture(Box::new(Writer::create(path, like(files))?))
        }
        None => {
            To::Lines(Box::new(printer), BufWriter::with_capacity(1 << 16, io::stdout().lock()))
        }
    };
    let (mut left, mut outcome, mut found) = (count.unwrap_or(u64::MAX), Outcome::Done, false);
    let mut has_rows = false;
    let mut known: HashMap<String, &Path> = HashMap::new();
    for file in files {
        let selected = match selections.for_capture(file) {
            Ok(selected) if selected.is_empty() => continue,
            Ok(selected) => {
                has_rows = true;
                selected
            }
            Err(failed) => {
                outcome = outcome.max(failed);
                continue;
            }
        };
        match slice(file, analysis, &selected, &mut to, &mut left, &terminal) {
            Ok(uids) => {
                found |= !uids.is_empty();
                for uid in uids.into_iter().filter(|_| selections.is_same()) {
                    if let Some(first) = known.insert(uid.to_owned(), file) {
                        let (first, file) = (first.display(), file.display());
                        terminal.warning(&format_args!(
                            "{first} and {file} both have a connection {uid}; uids are unique only within a capture"
                        ));
                    }
                }
            }
            Err(Stopped::Enough) => {
                found = true;
                break;
            }
            Err(Stopped::Index(error)) => {
                terminal.error(&error);
                outcome = outcome.max(match &error {
                    Error::Capture(error) => Outcome::of(error, false),
                    _ => Outcome::NoCapture,
                });
            }
            Err(Stopped::Other(error)) => return Err(error),
        }
    }
    match to {
        To::Lines(_, mut out) => out.flush().context("standard output")?,
        To::Capture(writer) if found => writer.finish()?,
        // An existing file of this name stays.
        To::Capture(writer) => writer.discard(),
    }
    if !found && outcome == Outcome::Done {
        terminal.error(&selections.nothing(has_rows));
        if selections.is_same() {
            terminal.hint(
                &"uids depend on -C, -f and --seed: use the same options for the logs and the index",
            );
        }
        outcome = Outcome::NoCapture;
    }
    Ok(outcome)
}

/// The captures of the given paths: in folders, those with an index and those without.
fn captures(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let is_capture = |found: &FoundFile| {
        let file = std::slice::from_ref(&found.path);
        let opens = || Stream::open(file, gannet_capture::Options::default()).is_ok();
        found.named || gannet_index::path_of(&found.path).exists() || opens()
    };
    let found = paths::files(paths)?.into_iter().filter(is_capture);
    Ok(found.map(|found| found.path).collect())
}

/// The TCP streams of the selected messages.
fn streams<'w>(
    file: &Path,
    index: &mut Index,
    selected: &'w [PacketSelection],
) -> Result<HashMap<&'w str, Segments>, Error> {
    let of_streams = selected.iter().filter(|selected| selected.of_stream().is_some());
    let uids: BTreeSet<&str> = of_streams.map(|selected| &*selected.uid).collect();
    let mut all: HashMap<&str, Segments> = HashMap::new();
    let mut numbers: Vec<(u64, &str)> = Vec::new();
    for uid in uids {
        let found = index.packets(uid.as_bytes())?.unwrap_or_default();
        numbers.extend(found.into_iter().map(|number| (number, uid)));
    }
    // A packet in a tunnel belongs to several connections.
    numbers.sort_unstable();
    let mut each: Vec<_> = numbers.iter().map(|(number, _)| *number).collect();
    each.dedup();
    Slices::new(file, index).read(&each, |packet| {
        let first = numbers.partition_point(|(number, _)| *number < packet.number);
        let of_packet = numbers.iter().skip(first).take_while(|(n, _)| *n == packet.number);
        of_packet.for_each(|(_, uid)| all.entry(uid).or_default().push(packet));
        Ok::<_, Error>(())
    })?;
    Ok(all)
}

/// Writes the packets of a capture; returns the uids that have packets.
fn slice<'w>(
    file: &Path,
    analysis: Option<Analysis>,
    selected: &'w [PacketSelection],
    to: &mut To,
    left: &mut u64,
    terminal: &Terminal,
) -> Result<BTreeSet<&'w str>, Stopped> {
    let mut index = Index::open(file)?;
    analysis.map_or(Ok(()), |analysis| index.check(analysis))?;
    warn_of_missing_fragments(index.forgotten(), file, |text| terminal.warning(text));
    let mut numbers = Vec::new();
    // For each packet that may belong to a request, the selections it may belong to.
    let mut requests: HashMap<u64, Vec<&PacketSelection>> = HashMap::new();
    let mut always_selected = HashSet::new();
    let mut uids = BTreeSet::new();
    let streams = streams(file, &mut index, selected)?;
    for selected in selected {
        let mut found = index.packets(selected.uid.as_bytes())?.unwrap_or_default();
        if let Some((id, within)) = selected.of_stream() {
            let segments = streams.get(&*selected.uid);
            found = segments.and_then(|all| all.packets_of(id, within)).unwrap_or(found);
            always_selected.extend(found.iter().copied());
        } else if selected.within.is_none() && selected.message.is_none() {
            always_selected.extend(found.iter().copied());
        } else {
            for number in &found {
                requests.entry(*number).or_default().push(selected);
            }
        }
        if !found.is_empty() {
            uids.insert(&*selected.uid);
        }
        numbers.extend(found);
    }
    numbers.sort_unstable();
    numbers.dedup();
    let mut any = false;
    Slices::new(file, &mut index).read(&numbers, |packet| {
        let has_packet =
            |requests: &Vec<&PacketSelection>| requests.iter().any(|selected| selected.has(packet));
        if !always_selected.contains(&packet.number)
            && !requests.get(&packet.number).is_some_and(has_packet)
        {
            return Ok(());
        }
        if *left == 0 {
            return Err(Stopped::Enough);
        }
        any = true;
        *left -= 1;
        let written = match to {
            To::Lines(printer, out) => {
                out.write_all(printer.packet(packet)).context("standard output")
            }
            To::Capture(writer) => writer.write(packet).map_err(anyhow::Error::from),
        };
        written.map_err(Stopped::Other)
    })?;
    if !any {
        uids.clear();
    }
    Ok(uids)
}
