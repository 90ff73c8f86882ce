//! `gannet info`: contents of captures, from their record headers alone.

use std::path::PathBuf;

use gannet_capture::Info;

use crate::out;
use crate::outcome::Outcome;
use crate::paths;
use crate::terminal::Terminal;

/// Print what captures hold: format, packets, times, interfaces.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet info trace.pcap\n  \
                        gannet info --json captures/ | jq .packets")]
pub(crate) struct Args {
    /// Captures and folders of captures; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "read")]
    files: Vec<PathBuf>,
    /// A capture, as tcpdump and Zeek name it; the same as FILE
    #[arg(short, long, value_name = "FILE")]
    read: Vec<PathBuf>,
    /// One JSON object for each file, on a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let terminal = Terminal::new(false);
    let mut outcome = Outcome::Done;
    let mut first = true;
    let (named, mut captures) = ([&args.read[..], &args.files].concat(), Vec::new());
    for file in paths::files(&named)? {
        let info = match Info::open(&file.path) {
            Ok(info) => {
                captures.push(file.path);
                info
            }
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
        let text = match (args.json, first) {
            (true, _) => format!("{}\n", info.json()),
            (false, true) => info.to_string(),
            (false, false) => format!("\n{info}"),
        };
        first = false;
        outcome = outcome.max(out::write(text.as_bytes())?);
        if let Some(damage) = &info.damage {
            terminal.error(damage);
            outcome = outcome.max(Outcome::of(damage, true));
        }
    }
    for error in paths::without_captures(&named, &captures) {
        terminal.error(&error);
        outcome = outcome.max(Outcome::of(&error, false));
    }
    Ok(outcome)
}
