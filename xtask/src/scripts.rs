//! `cargo xtask scripts`: runs Zeek's own script tests and the script cases, and compares the
//! results with the list of those that pass.
//!
//! `conformance/scripts.json` has the names of the tests that passed when it was written. If one of
//! them no longer passes, this command fails. Only these tests run, since failing tests often run
//! into their time limit. `--update` runs all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::num::NonZero;
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

/// Run Zeek's script tests and the script cases that passed before.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run all tests, and write the names of those that pass to conformance/scripts.json
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
    /// Compares the results of this build with the committed ones.
    pub(crate) fn of(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }
}

/// The passing tests of each suite.
#[derive(Debug, Default, PartialEq, Eq)]
struct Passing {
    /// Tests of Zeek without captures.
    tests: BTreeSet<String>,
    /// Tests of Zeek with captures.
    captures: BTreeSet<String>,
    cases: BTreeSet<String>,
}

/// Number of tests of each suite that ran.
#[derive(Debug, Default)]
struct Counts {
    tests: usize,
    captures: usize,
    cases: usize,
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
    let path = path();
    let was = if args.update {
        None
    } else {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Some(parse(&serde_json::from_str(&text)?).context("conformance/scripts.json")?)
    };
    let (mut is, of) = measure(&shared, &zeek, was.as_ref())?;
    let shown = |name: &str, passed: usize, of: usize| {
        print(&format!("{name:<8} {passed:>4} of {of:>4} pass"));
    };
    shown("tests", is.tests.len(), of.tests);
    shown("captures", is.captures.len(), of.captures);
    shown("cases", is.cases.len(), of.cases);
    let Some(was) = was else {
        fs::write(&path, render(&is)).with_context(|| path.display().to_string())?;
        return Ok(());
    };
    // Tests with time limits may fail on a busy machine: lost tests run again, alone.
    let lost: BTreeSet<_> =
        was.tests.difference(&is.tests).chain(was.captures.difference(&is.captures)).collect();
    if (1..=MAX_RETRIED).contains(&lost.len()) {
        let value = tests(&shared, &zeek, lost.into_iter(), "script-again")?;
        take_tests(&value, &mut is, &mut Counts::default())
            .context("the figures of btest/run.py")?;
    }
    let lost = compare(&was, &is);
    if lost > 0 {
        bail!("{lost} tests of conformance/scripts.json do not pass any more");
    }
    Ok(())
}

fn path() -> PathBuf {
    workspace::root().join("conformance/scripts.json")
}

/// Maximum number of lost tests that run a second time.
const MAX_RETRIED: usize = 20;

/// Time limit of one test, in seconds.
const TIMEOUT: &str = "60";

/// Runs the suites, one after the other on all processors: all tests, or those that passed before.
fn measure(shared: &Path, zeek: &str, was: Option<&Passing>) -> anyhow::Result<(Passing, Counts)> {
    let target = workspace::target();
    fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
    let value = match was {
        Some(was) => tests(shared, zeek, was.tests.iter().chain(&was.captures), "script-tests")?,
        None => {
            let mut command = Command::new("python3");
            command.arg(shared.join("btest/run.py")).args(["--min", "0"]);
            suite(&mut command, zeek, &target.join("script-tests.json"))?
        }
    };
    let (mut is, mut of) = (Passing::default(), Counts::default());
    take_tests(&value, &mut is, &mut of).context("the figures of btest/run.py")?;
    let mut command = Command::new("python3");
    command.arg(shared.join("cases/run.py")).arg("--scripts").arg(unpacked(shared, &target)?);
    let value = suite(command.arg("--min").arg("0"), zeek, &target.join("script-cases.json"))?;
    (is.cases, of.cases) = passing_cases(&value).context("the figures of cases/run.py")?;
    Ok((is, of))
}

/// Runs the tests of Zeek with these names.
fn tests<'a>(
    shared: &Path,
    zeek: &str,
    names: impl Iterator<Item = &'a String>,
    file: &str,
) -> anyhow::Result<Value> {
    let target = workspace::target();
    let list = target.join(file).with_extension("txt");
    let lines: String = names.flat_map(|name| [name.as_str(), "\n"]).collect();
    fs::write(&list, lines).with_context(|| list.display().to_string())?;
    let mut command = Command::new("python3");
    command.arg(shared.join("btest/run.py")).args(["--min", "0", "--list"]).arg(&list);
    suite(&mut command, zeek, &target.join(file).with_extension("json"))
}

/// Zeek's scripts, which the cases load.
pub(crate) fn unpacked(shared: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    let folder = target.join("zeek-scripts");
    if !folder.join("scripts").is_dir() {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let archive = shared.join("scripts.tar.xz");
        workspace::check(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(&folder))?;
    }
    Ok(folder)
}

/// ZEEKPATH for the source tree of Zeek's scripts.
pub(crate) fn search_path(tree: &Path) -> OsString {
    let folders = [
        "scripts",
        "scripts/policy",
        "scripts/site",
        "build/scripts",
        "build/scripts/builtin-plugins",
    ];
    let mut path = OsString::from(".");
    for folder in folders {
        path.push(":");
        path.push(tree.join(folder));
    }
    path
}

/// Runs a suite; returns its figures. A third of its time, tests wait for timers: two run for each processor.
fn suite(command: &mut Command, zeek: &str, figures: &Path) -> anyhow::Result<Value> {
    let _ = fs::remove_file(figures);
    let jobs = 2 * thread::available_parallelism().map_or(2, NonZero::get);
    command.args(["--zeek", zeek, "--timeout", TIMEOUT, "--jobs", &jobs.to_string()]);
    command.arg("--json").arg(figures);
    let output = command.output().context("python3")?;
    let text = fs::read_to_string(figures).with_context(|| {
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{}: {}", workspace::shown(command), shown.trim())
    })?;
    Ok(serde_json::from_str(&text)?)
}

/// Parses the output of btest/run.py: `tests`, each with `name`, `kind` and `status`.
fn take_tests(value: &Value, passing: &mut Passing, counts: &mut Counts) -> Option<()> {
    for test in value.get("tests")?.as_array()? {
        let (passing, count) = match test.get("kind")?.as_str()? {
            "a" => (&mut passing.tests, &mut counts.tests),
            _ => (&mut passing.captures, &mut counts.captures),
        };
        *count += 1;
        if test.get("status").is_some_and(|status| status == "passed") {
            passing.insert(test.get("name")?.as_str()?.to_owned());
        }
    }
    Some(())
}

/// Parses the output of cases/run.py: `each`, by name with `pass`.
fn passing_cases(value: &Value) -> Option<(BTreeSet<String>, usize)> {
    let cases = value.get("each")?.as_object()?;
    let passed = cases.iter().filter(|(_, case)| case.get("pass").is_some_and(|pass| pass == true));
    Some((passed.map(|(name, _)| name.clone()).collect(), cases.len()))
}

/// Prints lost and new tests; returns the number of lost ones.
fn compare(was: &Passing, is: &Passing) -> usize {
    let mut lost = 0;
    let kinds = [
        ("test", &was.tests, &is.tests),
        ("test", &was.captures, &is.captures),
        ("case", &was.cases, &is.cases),
    ];
    for (kind, was, is) in kinds {
        for name in was.difference(is) {
            print(&format!("LOST  {kind} {name}"));
            lost += 1;
        }
    }
    lost
}

fn parse(value: &Value) -> Option<Passing> {
    let names = |key: &str| {
        let names = value.get(key)?.as_array()?.iter();
        names.map(|name| Some(name.as_str()?.to_owned())).collect::<Option<BTreeSet<_>>>()
    };
    Some(Passing { tests: names("tests")?, captures: names("captures")?, cases: names("cases")? })
}

/// The text of the file: a line for each test, so that a difference between two versions lists the tests.
fn render(passing: &Passing) -> String {
    let list = |names: &BTreeSet<String>| {
        let lines: Vec<String> = names.iter().map(|name| format!("    {name:?}")).collect();
        lines.join(",\n")
    };
    format!(
        "{{\n  \"tests\": [\n{}\n  ],\n  \"captures\": [\n{}\n  ],\n  \"cases\": [\n{}\n  ]\n}}\n",
        list(&passing.tests),
        list(&passing.captures),
        list(&passing.cases)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(tests: &[&str], captures: &[&str], cases: &[&str]) -> Passing {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Passing { tests: set(tests), captures: set(captures), cases: set(cases) }
    }

    #[test]
    fn names_round_trip() {
        let was = passing(&["bifs.fmt", "language.set"], &["core.ip"], &["logs/names"]);
        let text = render(&was);
        assert!(text.contains("\n    \"language.set\"\n"));
        assert_eq!(parse(&serde_json::from_str(&text).unwrap()), Some(was));
    }

    #[test]
    fn a_lost_test_is_reported_even_if_another_one_passes() {
        let was = passing(&["a", "b"], &["d"], &["c"]);
        assert_eq!(compare(&was, &passing(&["a", "b", "d"], &["d"], &["c", "e"])), 0);
        assert_eq!(compare(&was, &passing(&["a", "d"], &["d"], &["c"])), 1);
        assert_eq!(compare(&was, &passing(&["a", "b"], &["e"], &[])), 2);
    }

    #[test]
    fn figures_are_parsed() {
        let text = r#"{"tests": [{"name": "a", "kind": "a", "status": "passed"},
            {"name": "b", "kind": "a", "status": "failed"},
            {"name": "c", "kind": "b", "status": "passed"}]}"#;
        let (mut found, mut of) = (Passing::default(), Counts::default());
        take_tests(&serde_json::from_str(text).unwrap(), &mut found, &mut of).unwrap();
        assert_eq!(found, passing(&["a"], &["c"], &[]));
        assert_eq!((of.tests, of.captures), (2, 1));
        let text = r#"{"each": {"f/a": {"pass": true, "wrong": []}, "f/b": {"pass": false}}}"#;
        let found = passing_cases(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(found, (passing(&[], &[], &["f/a"]).cases, 2));
    }
}
