//! The arguments, declared once for help, man pages and completions.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap::Parser;
use clap::Subcommand;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use crate::analyze;
use crate::bench;
#[cfg(target_os = "linux")]
use crate::capture;
use crate::completions;
use crate::events;
use crate::filter;
use crate::index;
use crate::info;
#[cfg(not(all(feature = "lua", feature = "sql")))]
use crate::left_out;
use crate::man;
use crate::packets;
use crate::replay;
#[cfg(feature = "lua")]
use crate::run;
use crate::script;
#[cfg(target_os = "linux")]
use crate::sensor;
#[cfg(feature = "sql")]
use crate::sql;
use crate::synth;
#[cfg(feature = "columns")]
use crate::tasks;
#[cfg(target_os = "linux")]
use crate::top;
use crate::zeek;

const EXAMPLES: &str = "\
Examples:
  gannet analyze trace.pcap              write conn.log, dns.log, ... to this folder
  gannet analyze -o logs --json day/     all captures of a folder as one stream, as JSON
  gannet -C -r trace.pcap                the same as analyze -C trace.pcap
  gannet filter 'tcp port 80' trace.pcap -w web.pcap.gz
                                         the packets that match, into another capture
  gannet info --json trace.pcapng.zst    what a capture holds, for programs
  gannet packets trace.pcap              one line per packet, as tcpdump -n
  gannet replay trace.pcap --to 127.0.0.1:5300
                                         its DNS queries, on time, to a server
  gannet zeek -C -r trace.pcap my.zeek   run the event handlers of a Zeek script
  gannet sql \"SELECT * FROM 'trace.pcap' LIMIT 10\"
                                         SQL over captures and logs
  gannet synth sample sample.pcap        a small capture to try things with

Exit codes:
  0  everything was done
  1  logs could not be written
  2  an input is not a capture or cannot be opened, or wrong usage
  3  an input is truncated or damaged; everything before that was analysed
  4  gannet replay: a part of the queries was not sent
  129, 130, 143  stopped by SIGHUP, SIGINT or SIGTERM; the logs so far are complete";

/// Turns packets into answers: captures in, Zeek-compatible logs out.
#[derive(Debug, Parser)]
#[command(name = "gannet", version, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Analyze(Box<analyze::Args>),
    #[cfg(target_os = "linux")]
    Capture(Box<capture::Args>),
    #[cfg(target_os = "linux")]
    Config(sensor::ConfigArgs),
    Events(events::Args),
    Filter(filter::Args),
    Index(index::Args),
    Info(info::Args),
    Packets(packets::Args),
    #[cfg(feature = "columns")]
    Plan(tasks::PlanArgs),
    /// Divide captures into tasks for many machines (not in this build: feature columns)
    #[cfg(not(feature = "columns"))]
    Plan(left_out::Args),
    Replay(Box<replay::Args>),
    #[cfg(feature = "lua")]
    Run(run::Args),
    /// Run a Lua script over captures (not in this build: feature lua)
    #[cfg(not(feature = "lua"))]
    Run(left_out::Args),
    #[cfg(feature = "columns")]
    RunTask(tasks::RunArgs),
    /// Run one task of a plan (not in this build: feature columns)
    #[cfg(not(feature = "columns"))]
    RunTask(left_out::Args),
    Script(script::Args),
    #[cfg(target_os = "linux")]
    Sensor(sensor::Args),
    #[cfg(feature = "sql")]
    Sql(sql::Args),
    /// Ask SQL about captures and logs (not in this build: feature sql)
    #[cfg(not(feature = "sql"))]
    Sql(left_out::Args),
    Synth(synth::Args),
    #[cfg(target_os = "linux")]
    Top(top::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
    Zeek(zeek::Args),
}

/// The command line with `run` alone: declaring all other commands may take longer than a short script runs.
#[cfg(feature = "lua")]
#[derive(Debug, Parser)]
#[command(name = "gannet", version, subcommand_required = true, max_term_width = 100)]
struct OnlyRun {
    #[command(subcommand)]
    command: RunAlone,
}

#[cfg(feature = "lua")]
#[derive(Debug, Subcommand)]
enum RunAlone {
    Run(run::Args),
}

/// Parses the arguments, the command's own name first. Ends the process for help and for wrong
/// usage.
pub(crate) fn parse(args: Vec<OsString>) -> Command {
    let args = with_analyze(with_run(args));
    #[cfg(feature = "lua")]
    if args.get(1).is_some_and(|command| command == "run") {
        return match OnlyRun::try_parse_from(&args) {
            Ok(OnlyRun { command: RunAlone::Run(args) }) => Command::Run(args),
            Err(error) => end(&error),
        };
    }
    match Cli::try_parse_from(&args) {
        Ok(cli) => cli.command,
        Err(error) => {
            let named = args.get(1).filter(|a| Path::new(a).exists());
            if error.kind() == ErrorKind::InvalidSubcommand
                && let Some(file) = named
            {
                let file = Path::new(file).display();
                crate::Terminal::new(false).error(&format_args!("no command is named '{file}'"));
                crate::Terminal::new(false).hint(&format_args!("gannet analyze {file}"));
                std::process::exit(2);
            }
            if error.kind() == ErrorKind::UnknownArgument
                && let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
                && let command = args.get(1).and_then(|a| a.to_str()).unwrap_or_default()
                && let Some(hint) = instead(command, given)
            {
                crate::Terminal::new(false).error(&format_args!("gannet {command} has no {given}"));
                crate::Terminal::new(false).hint(&hint);
                std::process::exit(2);
            }
            end(&error)
        }
    }
}

/// Prints help or the error of wrong usage, and ends the process.
fn end(error: &clap::Error) -> ! {
    match error.print() {
        // Help goes to standard output, whose reader may have closed it.
        Err(failed) if !error.use_stderr() && failed.kind() != io::ErrorKind::BrokenPipe => {
            crate::Terminal::new(false).error(&format_args!("standard output: {failed}"));
            std::process::exit(1)
        }
        _ => std::process::exit(error.exit_code()),
    }
}

/// The replacement for an option of tcpdump, tshark or Zeek that a command does not have.
fn instead(command: &str, option: &str) -> Option<String> {
    let option = option.split_once('=').map_or(option, |(name, _)| name);
    Some(match option {
        "-i" | "--interface" => {
            let reads = if command == "filter" { "filter 'tcp'" } else { command };
            format!(
                "this command reads captures; use gannet capture -i INTERFACE -w - | gannet {reads} -"
            )
        }
        "-n" | "-nn" if command != "synth" => {
            "gannet never resolves addresses and ports; omit the option".into()
        }
        "-w" if command == "analyze" => {
            "use --out DIR for logs; use gannet filter FILTER FILE -w OUT to write packets".into()
        }
        "-s" if command == "analyze" => {
            "use gannet zeek -s SIGNATURES -r FILE to match signatures".into()
        }
        "-w" => "use gannet filter FILTER FILE -w OUT to write packets".into(),
        "-o" if command == "filter" => "use -w FILE for the output".into(),
        _ => return None,
    })
}

/// The complete declaration, for man pages and completions.
pub(crate) fn declaration() -> clap::Command {
    Cli::command()
}

/// Inserts `run` where the command was started under the name `dnsjit`, which runs a script.
fn with_run(mut args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().and_then(|a| Path::new(a).file_name());
    if name.is_some_and(|n| n == "dnsjit") {
        args.insert(1, "run".into());
    }
    args
}

/// Inserts `analyze` where options come without a command, as for Zeek (`-C -r FILE`).
pub(crate) fn with_analyze(mut args: Vec<OsString>) -> Vec<OsString> {
    let own = ["-h", "--help", "-V", "--version"];
    if let Some(first) = args.get(1).and_then(|a| a.to_str())
        && first.starts_with('-')
        && !own.contains(&first)
    {
        args.insert(1, "analyze".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declaration_is_valid() {
        declaration().debug_assert();
    }

    #[test]
    fn options_alone_mean_analyze() {
        let given =
            |args: &[&str]| with_analyze(args.iter().map(OsString::from).collect()).get(1).cloned();
        assert_eq!(given(&["gannet", "-C", "-r", "x"]), Some("analyze".into()));
        assert_eq!(given(&["gannet", "--help"]), Some("--help".into()));
        assert_eq!(given(&["gannet", "info", "-q"]), Some("info".into()));
        assert_eq!(given(&["gannet"]), None);
    }

    #[test]
    fn the_name_dnsjit_runs_scripts() {
        let given = |args: &[&str]| with_run(args.iter().map(OsString::from).collect());
        assert_eq!(given(&["/x/dnsjit", "a.lua", "-r"])[1..], ["run", "a.lua", "-r"]);
        assert_eq!(given(&["gannet", "info"]).len(), 2);
    }
}
