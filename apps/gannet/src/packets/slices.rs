//! The packets of a connection, by the index of a capture.

use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_index::Error;
use gannet_index::Index;
use gannet_index::Slices;

use super::line::Printer;
use crate::outcome::Outcome;
use crate::paths::InputFile;
use crate::terminal::Terminal;

/// Where packets go.
enum To {
    Lines(Box<Printer>, BufWriter<io::StdoutLock<'static>>),
    Capture(Box<Writer>),
}

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

/// The packets of these uids in each of the captures, up to a number of them.
pub(super) fn run(
    files: &[PathBuf],
    uids: &[String],
    printer: Printer,
    write: Option<&Path>,
    count: Option<u64>,
) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let mut to = match write {
        Some(path) => {
            InputFile::refuse(&InputFile::all(files), path)?;
            To::Capture(Box::new(Writer::create(path, WriteOptions::default())?))
        }
        None => {
            To::Lines(Box::new(printer), BufWriter::with_capacity(1 << 16, io::stdout().lock()))
        }
    };
    let (mut left, mut outcome, mut found) = (count.unwrap_or(u64::MAX), Outcome::Done, false);
    for file in files {
        match slice(file, uids, &mut to, &mut left) {
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
        terminal.error(&format_args!("no capture has packets of {}", uids.join(", ")));
        outcome = Outcome::NoCapture;
    }
    Ok(outcome)
}

/// The packets of a capture; whether it has any.
fn slice(file: &Path, uids: &[String], to: &mut To, left: &mut u64) -> Result<bool, Stopped> {
    let mut index = Index::open(file)?;
    let mut numbers = Vec::new();
    for uid in uids {
        numbers.extend(index.packets(uid.as_bytes())?.unwrap_or_default());
    }
    numbers.sort_unstable();
    numbers.dedup();
    Slices::new(file, &mut index).read(&numbers, |packet| {
        if *left == 0 {
            return Err(Stopped::Enough);
        }
        *left -= 1;
        let written = match to {
            To::Lines(printer, out) => {
                out.write_all(printer.packet(packet)).context("standard output")
            }
            To::Capture(writer) => writer.write(packet).map_err(anyhow::Error::from),
        };
        written.map_err(Stopped::Other)
    })?;
    Ok(!numbers.is_empty())
}
