//! `cargo xtask bench`: gannet against tshark and tcpdump on the same traces in the same hour.
//!
//! Absolute times depend on the machine; the ratio to a named peer in the same run can be
//! reproduced elsewhere. Results are stored in `benchsuite/runs/`.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use anyhow::Context;
use anyhow::ensure;

use crate::measure::Cost;
use crate::measure::measure;
use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::print;
use crate::workspace::say;

/// Measure against tshark and tcpdump, if they are installed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Traces, as BENCHMARKING.md makes them
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Runs of gannet for each trace, of which the median counts; slow peers run once
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Keep the result in benchsuite/runs/
    #[arg(long)]
    keep: bool,
}

/// Time in seconds beyond which runs are not repeated.
const LONG: f64 = 5.0;

/// A program that reads traces.
pub(crate) struct Peer {
    name: &'static str,
    /// Its arguments; `{}` is replaced by the trace, `{out}` by an output folder.
    command: Vec<String>,
    version: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    for trace in &args.traces {
        ensure!(trace.is_file(), "{}: no such trace", trace.display());
    }
    let gannet = Profile::Dist.build()?;
    let peers = peers(&gannet)?;
    let mut report = head("Benchmark run", "cargo xtask bench TRACE...", &peers);
    print(&report);
    let out = workspace::target().join("bench-logs");
    for trace in &args.traces {
        let table = table(trace, &peers, &out, args.runs)?;
        print(&table);
        report.push_str(&table);
    }
    if args.keep {
        let path = workspace::root().join(format!("benchsuite/runs/{}.md", today()?));
        fs::write(&path, report).with_context(|| path.display().to_string())?;
        say(&format!("kept in {}", path.display()));
    }
    Ok(())
}

fn peers(gannet: &Path) -> anyhow::Result<Vec<Peer>> {
    let gannet = gannet.to_str().context("the path of the target folder is no UTF-8")?;
    let commands = [
        ("gannet", vec![gannet, "analyze", "-C", "-q", "-t", "1", "-o", "{out}", "{}"]),
        ("tshark -n", vec!["tshark", "-n", "-r", "{}"]),
        ("tshark", vec!["tshark", "-r", "{}"]),
        ("tcpdump", vec!["tcpdump", "-n", "-r", "{}", "-w", "/dev/null"]),
    ];
    let mut peers = Vec::new();
    for (name, command) in commands {
        match version(command[0]) {
            Some(version) => {
                let command = command.into_iter().map(str::to_owned).collect();
                peers.push(Peer { name, command, version });
            }
            None => say(&format!("skipped: {name} is not installed")),
        }
    }
    Ok(peers)
}

/// The first line of a program's version output.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn table(trace: &Path, peers: &[Peer], out: &Path, runs: usize) -> anyhow::Result<String> {
    let bytes = fs::metadata(trace)?.len();
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "\n## {name}, {:.0} MB\n\n| program | CPU s | wall s | peak MB | gannet's CPU is |\n\
         |---|---|---|---|---|\n",
        bytes as f64 / 1e6
    );
    let mut own = None;
    for peer in peers {
        let cost = median(peer, trace, out, runs)?;
        let cpu = cost.cpu.as_secs_f64();
        let first = *own.get_or_insert(cpu);
        let ratio = if peer.name == "gannet" {
            String::new()
        } else {
            format!("{:.3} of {}'s", first / cpu.max(1e-6), peer.name)
        };
        writeln!(
            text,
            "| {} | {cpu:.3} | {:.3} | {:.1} | {ratio} |",
            peer.name,
            cost.wall.as_secs_f64(),
            cost.memory as f64 / 1e6
        )?;
    }
    Ok(text)
}

/// The run with the median CPU time.
fn median(peer: &Peer, trace: &Path, out: &Path, runs: usize) -> anyhow::Result<Cost> {
    let trace = trace.to_string_lossy();
    let place = |word: &String| match word.as_str() {
        "{}" => trace.clone().into_owned(),
        "{out}" => out.display().to_string(),
        _ => word.clone(),
    };
    let command: Vec<_> = peer.command.iter().map(place).collect();
    let mut costs = Vec::new();
    for _ in 0..runs.max(1) {
        // Truncating the files of the previous run would be measured, too.
        if out.exists() {
            fs::remove_dir_all(out).with_context(|| out.display().to_string())?;
        }
        let cost = measure(&command)?;
        costs.push(cost);
        if cost.wall.as_secs_f64() > LONG {
            break;
        }
    }
    costs.sort_by_key(|c| c.cpu);
    Ok(costs[costs.len() / 2])
}

/// Date, machine and command.
pub(crate) fn head(title: &str, command: &str, peers: &[Peer]) -> String {
    let mut text = format!("# {title}\n\n");
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        writeln!(text, "- {name}: {value}").unwrap_or_default();
    };
    line("date", today().unwrap_or_default());
    line("commit", commit());
    line("processor", processor());
    line("command", command.into());
    for peer in peers {
        let command = peer.command.join(" ");
        let command = command.rsplit_once("dist/").map_or(command.as_str(), |(_, c)| c);
        line(peer.name, format!("{}; `{command}`", peer.version));
    }
    text
}

/// The commit of the working tree; empty if git does not report it.
pub(crate) fn commit() -> String {
    output_line("git", &["describe", "--always", "--dirty"])
}

fn today() -> anyhow::Result<String> {
    let date = output_line("date", &["-u", "+%Y-%m-%d-%H%M"]);
    ensure!(!date.is_empty(), "date(1) does not tell the date");
    Ok(date)
}

fn output_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(workspace::root()).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |l: &str| {
        Some(l.strip_prefix("model name")?.trim_start_matches([' ', '\t', ':']).to_owned())
    };
    let name = text.lines().find_map(named).unwrap_or_else(|| "unknown".into());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{name}, {cores} cores")
}
