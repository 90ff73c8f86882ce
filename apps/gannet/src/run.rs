//! `gannet run`: packet processing in Lua.

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use gannet_lua::Error;
use gannet_lua::Options;
use gannet_lua::Progress;
use indicatif::HumanBytes;
use indicatif::HumanCount;

use crate::out;
use crate::outcome::Outcome;
use crate::stop::Stop;
use crate::terminal::Terminal;

/// Run a Lua script over captures.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  gannet run top-names.lua day.pcap\n  \
                        gannet run --sandbox script-of-somebody.lua day.pcap")]
pub(crate) struct Args {
    /// Run an untrusted script, without io, os, ffi and debug
    #[arg(long)]
    sandbox: bool,
    /// Show the progress of each pipeline on standard error
    #[arg(long)]
    progress: bool,
    /// Print the reference of the gannet module, as Markdown
    #[arg(long)]
    manual: bool,
    /// The script; - is standard input
    #[arg(value_name = "SCRIPT", required_unless_present = "manual")]
    script: Option<PathBuf>,
    /// Arguments of the script, from `arg[2]` on
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Prints the progress of a pipeline: one line that is overwritten on a terminal, separate lines elsewhere.
fn report(at: &Progress, seconds: f64, done: bool) {
    let rate = at.packets as f64 / seconds.max(1e-9);
    let mut line = format!("{} packets", HumanCount(at.packets));
    match at.total.filter(|total| *total > 0) {
        Some(total) => {
            let part = 100.0 * (at.bytes as f64 / total as f64).min(1.0);
            line += &format!(", {} of {}, {part:.0} %", HumanBytes(at.bytes), HumanBytes(total));
        }
        None => line += &format!(", {}", HumanBytes(at.bytes)),
    }
    line += &format!(", {}/s, {seconds:.1} s", HumanCount(rate as u64));
    let mut words = io::stderr();
    let written = match (words.is_terminal(), done) {
        (true, false) => write!(words, "\r\x1b[K{line}"),
        (true, true) => writeln!(words, "\r\x1b[K{line}"),
        (false, _) => writeln!(words, "{line}"),
    };
    // If standard error is closed, nothing can be reported.
    written.unwrap_or_default();
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Some(script) = args.script.as_ref().filter(|_| !args.manual) else {
        return out::write(gannet_lua::manual().as_bytes());
    };
    let options = Options { sandbox: args.sandbox, progress: args.progress, report: Some(report) };
    let stop =
        Stop::of_script(gannet_lua::stop_writing, gannet_lua::reads_pipe).context("signals")?;
    match gannet_lua::run(script, &args.arguments, options) {
        Ok(()) => Ok(stop.requested().unwrap_or(Outcome::Done)),
        // A pipeline that is ended by a signal raises an error.
        Err(_) if let Some(stopped) = stop.requested() => Ok(stopped),
        Err(error) => {
            let terminal = Terminal::new(false);
            terminal.error(&error);
            if script.is_file() && gannet_capture::Reader::open(script).is_ok() {
                let capture = script.display();
                terminal
                    .hint(&format_args!("{capture} is a capture; use gannet run SCRIPT {capture}"));
            }
            Ok(match error {
                Error::Run(_) | Error::Output(_) => Outcome::Failed,
                _ => Outcome::NoCapture,
            })
        }
    }
}
