//! `cargo xtask snapshot`: counts the instructions and allocations for fixed traffic, and compares
//! them with the committed counts. The measured build is that of profile `dist`.
//!
//! Time needs a quiet machine; counts do not. The traffic is generated, so that it is the same
//! everywhere. The cost of a run before its first packet, measured with an empty capture, is
//! subtracted. `benchsuite/snapshot.json` holds the counts; one that rises by more than
//! [`TOLERANCE`] fails, and `--update` keeps today's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;
use gannet_base::Time;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Trace;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;
use serde_json::Value;

use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::print;
use crate::workspace::say;

/// Compare counts of instructions and allocations with the committed ones.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Keep today's counts in benchsuite/snapshot.json
    #[arg(long)]
    update: bool,
    /// The command to count, instead of a build of profile dist
    #[arg(long, value_name = "FILE")]
    gannet: Option<PathBuf>,
}

/// Relative increase of a count that is tolerated, since memory layout differs slightly between
/// systems.
const TOLERANCE: f64 = 0.02;

/// Absolute increase that is ignored: in allocations per thousand packets, and in instructions per
/// packet.
const MIN_CHANGE: f64 = 1.0;

/// Number of runs for each trace, of which the minimum is used. Each run draws random keys for its
/// hash tables, and if a few long connections collide, each of their packets costs more: up to 2 %
/// in total.
const RUNS: usize = 5;

/// The seed of all traffic.
const SEED: u64 = 0x736e_6170;

/// Counts by counter and trace.
type Counts = BTreeMap<String, BTreeMap<String, f64>>;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let gannet = match &args.gannet {
        Some(path) => path.clone(),
        None => Profile::Dist.build()?,
    };
    let mut counts = Counts::new();
    counts.insert("allocations a thousand packets".into(), allocations(&gannet)?);
    match Counter::find() {
        Some(counter) => {
            let name = format!("instructions a packet, {}", counter.name());
            counts.insert(name, instructions(&gannet, counter)?);
        }
        None => say(
            "skipped: instructions: valgrind is not installed (apt-get install valgrind), and this machine \
             lets nobody count them (perf)",
        ),
    }
    let path = workspace::root().join("benchsuite/snapshot.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
    let committed = parse(&text).with_context(|| path.display().to_string())?;
    let worse = compare(&counts, &committed);
    if args.update {
        let mut all = committed;
        all.extend(counts);
        fs::write(&path, render(&all)?).with_context(|| path.display().to_string())?;
        say(&format!("kept in {}", path.display()));
        return Ok(());
    }
    if worse > 0 {
        bail!(
            "{worse} counts rose; where that is the price of something, \
             `cargo xtask snapshot --update` keeps them"
        );
    }
    Ok(())
}

/// Prints every count with the committed one; returns the number of counts that rose.
fn compare(counts: &Counts, committed: &Counts) -> usize {
    let mut worse = 0;
    for (what, counts) in counts {
        print(&format!("{what}:"));
        for (on, now) in counts {
            let Some(then) = committed.get(what).and_then(|c| c.get(on)) else {
                print(&format!("  {on:<8} {now:>10.1}  is not committed"));
                continue;
            };
            let verdict = match now - then {
                change if change > (then * TOLERANCE).max(MIN_CHANGE) => {
                    worse += 1;
                    "  ROSE"
                }
                change if -change > (then * TOLERANCE).max(MIN_CHANGE) => {
                    "  fell: keep it with --update"
                }
                _ => "",
            };
            let percent = 100.0 * (now / then.max(1e-9) - 1.0);
            let percent = if *then > 0.0 { format!("{percent:+.1} %") } else { String::new() };
            print(&format!("  {on:<8} {now:>10.1}  of {then:>10.1}  {percent}{verdict}"));
        }
    }
    worse
}

/// Allocations, as counted by the command itself.
fn allocations(gannet: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    let output = Command::new(gannet).args(["bench", "allocations"]).output();
    let output = output.with_context(|| gannet.display().to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", gannet.display(), stderr.trim());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(allocations_line).collect()
}

/// A line like `dns 4096 12`: packets, and allocations made for them.
fn allocations_line(line: &str) -> anyhow::Result<(String, f64)> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut number = || words.next().and_then(|w| w.parse::<f64>().ok());
    let (packets, made) = number().zip(number()).with_context(|| format!("'{line}'"))?;
    Ok((name, tenths(made * 1000.0 / packets.max(1.0))))
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A counter of user-space instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counter {
    /// An emulated processor, whose counts are the same on every machine of one [kind](features).
    Valgrind,
    /// The processor, if the system permits it.
    Perf,
}

impl Counter {
    fn find() -> Option<Self> {
        // Valgrind's emulated processor is not affected by other activity of the machine.
        [Self::Valgrind, Self::Perf].into_iter().find(|c| c.count(&["true".into()]).is_some())
    }

    fn program(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Valgrind => "valgrind",
        }
    }

    /// The counter with its version and the kind of machine: counts are stored separately for each.
    fn name(self) -> String {
        let version = first_line(self.program(), &["--version"]).unwrap_or_default();
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let libc =
            first_line("getconf", &["GNU_LIBC_VERSION"]).unwrap_or_else(|| "another libc".into());
        let features = features(&cpu);
        format!("{version}, {}{features}, {libc}", std::env::consts::ARCH)
    }

    fn count(self, words: &[String]) -> Option<u64> {
        match self {
            Self::Perf => {
                let mut command = Command::new("perf");
                command.args(["stat", "-x,", "-e", "instructions:u", "--"]);
                let output = command.args(words).output().ok()?;
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                stderr.lines().find_map(|l| l.split(',').next()?.parse().ok())
            }
            Self::Valgrind => valgrind(words),
        }
    }
}

/// The first line of a program's output.
fn first_line(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    stdout.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// The features of a processor by which libraries select their code.
fn features(cpuinfo: &str) -> String {
    let flags = cpuinfo.lines().find_map(|l| l.strip_prefix("flags")).unwrap_or_default();
    let has = |name: &&&str| flags.split_whitespace().any(|flag| flag == **name);
    ["avx2", "bmi2", "erms", "fsrm"].iter().filter(has).map(|name| format!(" {name}")).collect()
}

/// The number of instructions of one run, if valgrind is installed and supports all of them.
pub(crate) fn valgrind(words: &[String]) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--"])
        .args(words)
        .output()
        .ok()?;
    output.status.success().then_some(())?;
    refs(&String::from_utf8_lossy(&output.stderr))
}

/// The number in a line like `==7== I   refs:      1,234,567`.
fn refs(output: &str) -> Option<u64> {
    let line = output.lines().find(|l| l.contains("refs:") && l.contains(" I "))?;
    let number: String =
        line.rsplit("refs:").next()?.chars().filter(char::is_ascii_digit).collect();
    number.parse().ok()
}

fn instructions(gannet: &Path, counter: Counter) -> anyhow::Result<BTreeMap<String, f64>> {
    let scratch = workspace::target().join("snapshot");
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let count = |trace: &Trace| -> anyhow::Result<u64> {
        let path = scratch.join("trace.pcap");
        let mut writer = Writer::create(&path, WriteOptions::default())?;
        trace.write(&mut writer)?;
        writer.finish()?;
        let words = |run: usize| {
            let mut all = vec![gannet.display().to_string()];
            all.extend(["analyze", "-C", "-q", "-t", "1", "-o"].map(str::to_owned));
            let logs = scratch.join(format!("logs-{run}"));
            all.extend([&logs, &path].map(|path| path.display().to_string()));
            all
        };
        let counted: Option<Vec<u64>> = thread::scope(|scope| {
            let runs: Vec<_> = (0..RUNS)
                .map(|run| {
                    let words = words(run);
                    scope.spawn(move || counter.count(&words))
                })
                .collect();
            runs.into_iter().map(|run| run.join().ok().flatten()).collect()
        });
        let failed = || format!("{} could not count {}", counter.program(), words(0).join(" "));
        counted.and_then(|all| all.into_iter().min()).with_context(failed)
    };
    let start = count(&Trace::new(Time::from_secs(1), 0))?;
    let mut all = BTreeMap::new();
    for (name, trace) in traces() {
        let more = count(&trace)?.saturating_sub(start);
        all.insert(name.to_owned(), tenths(more as f64 / trace.frames().len().max(1) as f64));
    }
    fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    Ok(all)
}

/// Small traces, each with a kind of traffic that exercises different parts of the engine.
fn traces() -> Vec<(&'static str, Trace)> {
    let of = |kind: Kind, count| (kind.name(), traffic::of(kind, count, SEED));
    vec![
        of(Kind::Dns, 5_000),
        of(Kind::Http, 200),
        of(Kind::Tls, 200),
        of(Kind::Smtp, 150),
        of(Kind::Scan, 5_000),
        of(Kind::Bulk, 60),
        ("mixed", traffic::mixed(800, SEED)),
    ]
}

fn parse(text: &str) -> anyhow::Result<Counts> {
    let value: Value = serde_json::from_str(text)?;
    let mut all = Counts::new();
    for (what, counts) in value.as_object().context("an object")? {
        let counts = counts.as_object().with_context(|| what.clone())?;
        let numbers = counts.iter().filter_map(|(on, n)| Some((on.clone(), n.as_f64()?)));
        all.insert(what.clone(), numbers.collect());
    }
    Ok(all)
}

fn render(counts: &Counts) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&serde_json::json!(counts))? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(value: f64) -> Counts {
        let inner = BTreeMap::from([("dns".to_owned(), value)]);
        BTreeMap::from([("instructions a packet, valgrind".to_owned(), inner)])
    }

    #[test]
    fn machines_are_distinguished() {
        let cpuinfo = "processor : 0\nflags\t\t: fpu sse2 avx2 erms\n";
        assert_eq!(features(cpuinfo), " avx2 erms");
        assert_eq!(features(""), "");
        assert_eq!(first_line("echo", &["one\ntwo"]).as_deref(), Some("one"));
        assert_eq!(first_line("nothing-of-that-name", &[]), None);
    }

    #[test]
    fn counts_may_fall_and_not_rise() {
        assert_eq!(compare(&counts(101.9), &counts(100.0)), 0);
        assert_eq!(compare(&counts(102.1), &counts(100.0)), 1);
        assert_eq!(compare(&counts(50.0), &counts(100.0)), 0);
        // If nothing was allocated, a single allocation in a thousand packets is reported.
        assert_eq!(compare(&counts(0.9), &counts(0.0)), 0);
        assert_eq!(compare(&counts(1.1), &counts(0.0)), 1);
        assert_eq!(compare(&counts(1.0), &Counts::new()), 0);
    }

    #[test]
    fn counts_round_trip() {
        assert_eq!(parse(&render(&counts(12.5)).unwrap()).unwrap(), counts(12.5));
        assert!(parse("[]").is_err());
    }

    #[test]
    fn lines_of_the_command() {
        assert_eq!(allocations_line("dns 4000 12").unwrap(), ("dns".to_owned(), 3.0));
        assert!(allocations_line("dns many").is_err());
    }

    #[test]
    fn output_of_valgrind_is_parsed() {
        let output = "==7== Command: gannet\n==7== \n==7== I   refs:      1,234,567\n";
        assert_eq!(refs(output), Some(1_234_567));
        assert_eq!(refs("valgrind: the program is not there"), None);
    }
}
