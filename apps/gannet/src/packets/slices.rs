//! The packets of a connection, by the index of a capture.

use std::collections::HashMap;
use std::collections::HashSet;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::Writer;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;
use gannet_wire::Transport;

use super::line::Printer;
use crate::filter::like;
use crate::index::warn_of_forgotten;
use crate::outcome::Outcome;
use crate::paths;
use crate::paths::Found;
use crate::paths::InputFile;
use crate::terminal::Terminal;

/// Packets that are wanted: those of a uid, or of one of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) uid: String,
    /// From this time on and before that one, in microseconds since 1970.
    pub(crate) within: Option<(i64, i64)>,
    /// Of DNS messages over UDP only those with this number.
    pub(crate) message: Option<u16>,
}

impl Wanted {
    /// All packets of a uid.
    pub(crate) fn all(uid: String) -> Self {
        Self { uid, within: None, message: None }
    }

    fn has(&self, packet: &Packet<'_>) -> bool {
        // As logs have times: without what is below a microsecond.
        let micros = packet.time.as_nanos() / 1_000;
        let in_time = self.within.is_none_or(|(from, to)| (from..to).contains(&micros));
        in_time && self.message.is_none_or(|id| message(packet).is_none_or(|found| found == id))
    }
}

/// The number of the DNS message in a packet, where it is UDP outside of tunnels.
fn message(packet: &Packet<'_>) -> Option<u16> {
    let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len).ok()?;
    let datagram = decoded.datagram()?;
    // A fragment has the number of its message only where that begins: all of them are taken.
    let Transport::Udp(udp) = datagram.transport else { return None };
    if datagram.ip.fragment.is_some() {
        return None;
    }
    udp.payload.first_chunk().map(|id| u16::from_be_bytes(*id))
}

/// Where packets go.
enum To {
    Lines(Box<Printer>, BufWriter<io::StdoutLock<'static>>),
    Capture(Box<Writer>),
}

/// Uids that a message names at the most.
const MANY: usize = 5;

/// What ends the reading of packets.
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

/// The packets that are wanted in each of the captures, up to a number of them.
pub(super) fn run(
    files: &[PathBuf],
    wanted: &[Wanted],
    printer: Printer,
    write: Option<&Path>,
    count: Option<u64>,
) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    if files.iter().any(|file| file == Path::new("-")) {
        terminal.error(&"-: standard input has no index: name the file of the capture");
        return Ok(Outcome::NoCapture);
    }
    let files = &captures(files)?[..];
    let mut to = match write {
        Some(path) => {
            if let Err(error) = InputFile::refuse(&InputFile::all(files), path) {
                terminal.error(&error);
                return Ok(Outcome::NoCapture);
            }
            To::Capture(Box::new(Writer::create(path, like(files))?))
        }
        None => {
            To::Lines(Box::new(printer), BufWriter::with_capacity(1 << 16, io::stdout().lock()))
        }
    };
    let (mut left, mut outcome, mut found) = (count.unwrap_or(u64::MAX), Outcome::Done, false);
    for file in files {
        match slice(file, wanted, &mut to, &mut left, &terminal) {
            Ok(is_there) => found |= is_there,
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
        To::Capture(writer) => {
            writer.finish()?;
        }
    }
    if !found && outcome == Outcome::Done {
        let mut uids: Vec<_> = wanted.iter().map(|wanted| &*wanted.uid).collect();
        uids.dedup();
        let more = if uids.len() > MANY { ", ..." } else { "" };
        uids.truncate(MANY);
        terminal.error(&format_args!("no capture has packets of {}{more}", uids.join(", ")));
        outcome = Outcome::NoCapture;
    }
    Ok(outcome)
}

/// The captures that paths name: of folders those with an index, and those that lack one.
fn captures(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let is_capture = |found: &Found| {
        let file = std::slice::from_ref(&found.path);
        let opens = || Stream::open(file, gannet_capture::Options::default()).is_ok();
        found.named || gannet_index::path_of(&found.path).exists() || opens()
    };
    let found = paths::files(paths)?.into_iter().filter(is_capture);
    Ok(found.map(|found| found.path).collect())
}

/// The packets of a capture; whether it has any.
fn slice(
    file: &Path,
    wanted: &[Wanted],
    to: &mut To,
    left: &mut u64,
    terminal: &Terminal,
) -> Result<bool, Stopped> {
    let mut index = Index::open(file)?;
    warn_of_forgotten(index.forgotten(), file, |text| terminal.warning(text));
    let mut numbers = Vec::new();
    // Of packets of requests, whose they may be.
    let mut requests: HashMap<u64, Vec<&Wanted>> = HashMap::new();
    let mut whole = HashSet::new();
    for wanted in wanted {
        let found = index.packets(wanted.uid.as_bytes())?.unwrap_or_default();
        if wanted.within.is_none() && wanted.message.is_none() {
            whole.extend(found.iter().copied());
        } else {
            for number in &found {
                requests.entry(*number).or_default().push(wanted);
            }
        }
        numbers.extend(found);
    }
    numbers.sort_unstable();
    numbers.dedup();
    let mut any = false;
    Slices::new(file, &mut index).read(&numbers, |packet| {
        let is_of = |requests: &Vec<&Wanted>| requests.iter().any(|wanted| wanted.has(packet));
        if !whole.contains(&packet.number) && !requests.get(&packet.number).is_some_and(is_of) {
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
    Ok(any)
}
