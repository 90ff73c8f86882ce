//! `cargo xtask scripts`: Zeek's own script tests and the script cases, against the list of those that pass.
//!
//! `conformance/scripts.json` has the names of the tests that passed when it was written. One of them that does not pass any more fails here;
//! others may.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::Context;
use anyhow::bail;
use serde_json::Value;

use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::print;
use crate::workspace::say;

/// Run Zeek's script tests (those without captures) and the script cases.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Write the names of today's passing tests to conformance/scripts.json
    #[arg(long)]
    update: bool,
    /// The build to test
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    /// A built command to test instead
    #[arg(long, value_name = "FILE")]
    command: Option<PathBuf>,
}

impl Args {
    /// The scores of this build, against those that are kept.
    pub(crate) fn of(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }
}

/// The passing tests of each suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passing {
    tests: BTreeSet<String>,
    cases: BTreeSet<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(shared) = workspace::shared().map(|shared| shared.join("zeek")) else {
        say("skipped: scripts: there is no folder 'shared' beside the repository");
        return Ok(());
    };
    if !shared.join("btest/run.py").is_file() || !shared.join("cases/run.py").is_file() {
        say("skipped: scripts: the folder 'shared' has no script tests");
        return Ok(());
    }
    let command = match &args.command {
        Some(command) => {
            fs::canonicalize(command).with_context(|| command.display().to_string())?
        }
        None => args.profile.build()?,
    };
    let zeek = format!("{} zeek", command.display());
    let (mut is, tests_of, cases_of) = measure(&shared, &zeek)?;
    let shown = |name: &str, passed: usize, of: usize| {
        print(&format!("{name:<6} {passed:>4} of {of:>4} pass"));
    };
    shown("tests", is.tests.len(), tests_of);
    shown("cases", is.cases.len(), cases_of);
    let path = path();
    if args.update {
        fs::write(&path, render(&is)).with_context(|| path.display().to_string())?;
        return Ok(());
    }
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let was = parse(&serde_json::from_str(&text)?).context("conformance/scripts.json")?;
    // Tests with limits of time fail on a busy machine: those that are lost run again, alone.
    let lost: Vec<_> = was.tests.difference(&is.tests).map(String::as_str).collect();
    if (1..=AGAIN).contains(&lost.len()) {
        let mut command = Command::new("python3");
        command.arg(shared.join("btest/run.py")).args(["--min", "0", "--only", &lost.join(",")]);
        let value = suite(&mut command, &zeek, &workspace::target().join("script-again.json"))?;
        let (passing, _) = passing_tests(&value).context("the figures of btest/run.py")?;
        is.tests.extend(passing);
    }
    let lost = compare(&was, &is);
    if lost > 0 {
        bail!("{lost} tests of conformance/scripts.json do not pass any more");
    }
    if was != is {
        say("hint: cargo xtask scripts --update keeps the new ones");
    }
    Ok(())
}

fn path() -> PathBuf {
    workspace::root().join("conformance/scripts.json")
}

/// This many lost tests run a second time.
const AGAIN: usize = 20;

/// Runs both suites, the cases at the same time as the tests; returns what passes and how many there are of each.
fn measure(shared: &Path, zeek: &str) -> anyhow::Result<(Passing, usize, usize)> {
    let target = workspace::target();
    fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
    let (tests_json, cases_json) =
        (target.join("script-tests.json"), target.join("script-cases.json"));
    let (tests, cases) = thread::scope(|scope| {
        let cases = scope.spawn(|| {
            let scripts = unpacked(shared, &target)?;
            let mut command = Command::new("python3");
            command.arg(shared.join("cases/run.py")).arg("--scripts").arg(scripts);
            suite(command.arg("--min").arg("0"), zeek, &cases_json)
        });
        let mut command = Command::new("python3");
        command.arg(shared.join("btest/run.py")).args(["--kind", "a", "--min", "0"]);
        let tests = suite(&mut command, zeek, &tests_json);
        (tests, cases.join())
    });
    let Ok(cases) = cases else { bail!("the run of the cases panicked") };
    let (tests, tests_of) = passing_tests(&tests?).context("the figures of btest/run.py")?;
    let (cases, cases_of) = passing_cases(&cases?).context("the figures of cases/run.py")?;
    Ok((Passing { tests, cases }, tests_of, cases_of))
}

/// Zeek's scripts, which the cases load.
fn unpacked(shared: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("zeek-scripts");
    if !folder.join("scripts").is_dir() {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let archive = shared.join("scripts.tar.xz");
        workspace::check(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(&folder))?;
    }
    Ok(folder)
}

/// Runs a suite on one of two processors; returns its figures.
fn suite(command: &mut Command, zeek: &str, figures: &Path) -> anyhow::Result<Value> {
    let _ = fs::remove_file(figures);
    let jobs = thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2)).to_string();
    command.args(["--zeek", zeek, "--jobs", &jobs, "--json"]).arg(figures);
    let output = command.output().context("python3")?;
    let text = fs::read_to_string(figures).with_context(|| {
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{}: {}", workspace::shown(command), shown.trim())
    })?;
    Ok(serde_json::from_str(&text)?)
}

/// What btest/run.py writes: `tests`, each with `name` and `status`.
fn passing_tests(value: &Value) -> Option<(BTreeSet<String>, usize)> {
    let tests = value.get("tests")?.as_array()?;
    let passed = tests.iter().filter(|test| test.get("status").is_some_and(|s| s == "passed"));
    let names = passed.map(|test| Some(test.get("name")?.as_str()?.to_owned()));
    Some((names.collect::<Option<_>>()?, tests.len()))
}

/// What cases/run.py writes: `each`, by name with `pass`.
fn passing_cases(value: &Value) -> Option<(BTreeSet<String>, usize)> {
    let cases = value.get("each")?.as_object()?;
    let passed = cases.iter().filter(|(_, case)| case.get("pass").is_some_and(|pass| pass == true));
    Some((passed.map(|(name, _)| name.clone()).collect(), cases.len()))
}

/// Prints what is lost and what is new; returns how many are lost.
fn compare(was: &Passing, is: &Passing) -> usize {
    let mut lost = 0;
    for (kind, was, is) in [("test", &was.tests, &is.tests), ("case", &was.cases, &is.cases)] {
        for name in was.difference(is) {
            print(&format!("LOST  {kind} {name}"));
            lost += 1;
        }
        let new = is.difference(was).count();
        if new > 0 {
            print(&format!("new   {new} of kind {kind}"));
        }
    }
    lost
}

fn parse(value: &Value) -> Option<Passing> {
    let names = |key: &str| {
        let names = value.get(key)?.as_array()?.iter();
        names.map(|name| Some(name.as_str()?.to_owned())).collect::<Option<BTreeSet<_>>>()
    };
    Some(Passing { tests: names("tests")?, cases: names("cases")? })
}

/// One line a test, so that a change of the file reads as a change of the score.
fn render(passing: &Passing) -> String {
    let list = |names: &BTreeSet<String>| {
        let lines: Vec<String> = names.iter().map(|name| format!("    {name:?}")).collect();
        lines.join(",\n")
    };
    format!(
        "{{\n  \"tests\": [\n{}\n  ],\n  \"cases\": [\n{}\n  ]\n}}\n",
        list(&passing.tests),
        list(&passing.cases)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(tests: &[&str], cases: &[&str]) -> Passing {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Passing { tests: set(tests), cases: set(cases) }
    }

    #[test]
    fn written_names_read_the_same() {
        let was = passing(&["bifs.fmt", "language.set"], &["logs/names"]);
        let text = render(&was);
        assert!(text.contains("\n    \"language.set\"\n"));
        assert_eq!(parse(&serde_json::from_str(&text).unwrap()), Some(was));
    }

    #[test]
    fn a_test_that_passes_no_more_is_lost_even_if_another_one_does() {
        let was = passing(&["a", "b"], &["c"]);
        assert_eq!(compare(&was, &passing(&["a", "b", "d"], &["c", "e"])), 0);
        assert_eq!(compare(&was, &passing(&["a", "d"], &["c"])), 1);
        assert_eq!(compare(&was, &passing(&["a", "b"], &[])), 1);
    }

    #[test]
    fn figures_are_taken_from_their_places() {
        let text =
            r#"{"tests": [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed"}]}"#;
        let found = passing_tests(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(found, (passing(&["a"], &[]).tests, 2));
        let text = r#"{"each": {"f/a": {"pass": true, "wrong": []}, "f/b": {"pass": false}}}"#;
        let found = passing_cases(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(found, (passing(&[], &["f/a"]).cases, 2));
    }
}
