//! One libFuzzer process.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;

use super::folder;
use crate::workspace;

/// Time limit of one input, in seconds.
const TIME_LIMIT: u32 = 10;

/// Memory limit of a target in megabytes, including sanitizer and corpus.
const MEMORY: u32 = 2048;

/// The result of a target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Time that it ran.
    pub(super) took: Duration,
    /// Number of inputs tried.
    pub(super) executions: u64,
    /// Number of code edges covered.
    pub(super) edges: u64,
    /// The input that made it fail, if any.
    pub(super) finding: Option<String>,
}

impl Outcome {
    /// The outcome in one word.
    pub(super) fn word(&self) -> &'static str {
        if self.finding.is_some() { "a finding" } else { "no finding" }
    }
}

/// Runs a target; its output goes to `logs/TARGET.log`.
pub(super) fn target(target: &str, seeds: &Path, seconds: u32) -> anyhow::Result<Outcome> {
    let fuzz = workspace::root().join("fuzz");
    let (corpus, artifacts) =
        (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
    let log = folder().join("logs").join(format!("{target}.log"));
    for made in [&corpus, &artifacts, &folder().join("logs")] {
        fs::create_dir_all(made).with_context(|| made.display().to_string())?;
    }
    let binary = binary(target)?;
    let begun = Instant::now();
    let status = Command::new(&binary)
        .arg(&corpus)
        .arg(seeds.join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={TIME_LIMIT}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).with_context(|| log.display().to_string())?)
        .status()
        .with_context(|| binary.display().to_string())?;
    let text = fs::read(&log).with_context(|| log.display().to_string())?;
    let mut outcome = read(&String::from_utf8_lossy(&text));
    outcome.took = begun.elapsed();
    if !status.success() {
        let seen = || format!("{status}, see {}", log.display());
        outcome.finding.get_or_insert_with(seen);
    }
    Ok(outcome)
}

/// The program of a target, in the folder of the platform it was built for.
fn binary(target: &str) -> anyhow::Result<PathBuf> {
    for entry in fs::read_dir(folder())? {
        let path = entry?.path().join("release").join(target);
        if path.is_file() {
            return Ok(path);
        }
    }
    anyhow::bail!("{target} was not built in {}", folder().display())
}

/// Parses libFuzzer's output of a run.
fn read(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in text.lines() {
        let after =
            |mark: &str| Some(line.split_once(mark)?.1.split_whitespace().next()?.to_owned());
        let number = |mark: &str| after(mark)?.parse::<u64>().ok();
        if let Some(n) = number("stat::number_of_executed_units:") {
            outcome.executions = n;
        } else if let Some(n) = number(" cov:") {
            outcome.edges = n;
        } else if let Some(path) = after("Test unit written to ") {
            outcome.finding = Some(path);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_libfuzzer_is_parsed() {
        let text = "#12\tINITED cov: 811 ft: 1011 corp: 9/1b exec/s: 0 rss: 42Mb\n\
                    #99\tDONE   cov: 900 ft: 1211 corp: 19/1b exec/s: 9 rss: 42Mb\n\
                    stat::number_of_executed_units: 99\n";
        let calm = Outcome { executions: 99, edges: 900, ..Outcome::default() };
        assert_eq!(read(text), calm);
        let found = format!("{text}artifact_prefix='a/'; Test unit written to a/crash-0c\n");
        assert_eq!(read(&found), Outcome { finding: Some("a/crash-0c".into()), ..calm });
    }
}
