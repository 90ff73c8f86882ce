//! `cargo xtask fuzz`: runs the fuzz targets, and prints the results.
//!
//! [`seeds`] gives every target real traffic of its protocol to start from, [`run()`] drives one
//! libFuzzer process for each target, and a table shows the results. The input of a finding is
//! stored below `fuzz/artifacts/`, and the command fails.

mod run;
mod seeds;

use std::collections::VecDeque;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;

use self::run::Outcome;
use crate::workspace;
use crate::workspace::print;
use crate::workspace::say;

/// Run fuzz targets for a while; needs cargo-fuzz and a nightly compiler.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds for each
    #[arg(long, default_value_t = NonZero::new(60).unwrap_or(NonZero::<u32>::MIN))]
    seconds: NonZero<u32>,
    /// How many at a time
    #[arg(long, default_value_t = NonZero::new(2).unwrap_or(NonZero::<usize>::MIN))]
    jobs: NonZero<usize>,
    /// Targets; all of them if none is named
    targets: Vec<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let targets = chosen(&args.targets)?;
    build(&args.targets)?;
    let seeds = seeds::write(&targets)?;
    let (queue, done) = (Mutex::new(VecDeque::from(targets)), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.get() {
            scope.spawn(|| {
                while let Some(target) = queue.lock().ok().and_then(|mut q| q.pop_front()) {
                    let outcome = run::target(&target, &seeds, args.seconds.get());
                    say(&format!("{target}: {}", outcome.as_ref().map_or("failed", Outcome::word)));
                    if let Ok(mut done) = done.lock() {
                        done.push((target, outcome));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by(|a, b| a.0.cmp(&b.0));
    sum_up(done)
}

/// The names of the targets, which are those of their files.
fn chosen(named: &[String]) -> anyhow::Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        all.extend(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
    }
    all.sort();
    if let Some(unknown) = named.iter().find(|n| !all.contains(n)) {
        bail!("there is no target '{unknown}'; there are {}", all.join(", "));
    }
    Ok(if named.is_empty() { all } else { named.to_vec() })
}

/// Builds the named targets, or all of them at once if none is named.
fn build(named: &[String]) -> anyhow::Result<()> {
    if named.is_empty() {
        return cargo_fuzz_build(None);
    }
    named.iter().try_for_each(|target| cargo_fuzz_build(Some(target)))
}

/// Builds one target, or all of them: cargo-fuzz takes at most one name.
fn cargo_fuzz_build(target: Option<&str>) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root().join("fuzz")).args(["fuzz", "build"]);
    command.args(target);
    command.arg("--target-dir").arg(folder());
    // This runs under the toolchain of the project, which has no sanitizers.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    workspace::check(command.env("RUSTUP_TOOLCHAIN", "nightly"))
        .context("is cargo-fuzz installed? cargo install cargo-fuzz; rustup install nightly")
}

/// Folder of builds, seeds and libFuzzer's output.
fn folder() -> PathBuf {
    workspace::target().join("fuzz")
}

fn sum_up(done: Vec<(String, anyhow::Result<Outcome>)>) -> anyhow::Result<()> {
    print("| target | seconds | executions | edges | finding |\n|---|---|---|---|---|");
    let (mut findings, mut failures) = (0, Vec::new());
    for (target, outcome) in done {
        match outcome {
            Ok(o) => {
                findings += usize::from(o.finding.is_some());
                let finding = o.finding.as_deref().unwrap_or("none");
                let (seconds, edges) = (o.took.as_secs(), o.edges);
                print(&format!(
                    "| {target} | {seconds} | {} | {edges} | {finding} |",
                    o.executions
                ));
            }
            Err(error) => failures.push(format!("{target}: {error:#}")),
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    ensure!(findings == 0, "{findings} targets have findings");
    Ok(())
}
