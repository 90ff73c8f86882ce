//! `cargo xtask conformance`: our logs compared with Zeek's, and the scores against those in the
//! repository.
//!
//! `conformance/scores.json` holds the number of equal rows and of all rows of each log. A score
//! may rise and never fall: a change that loses rows fails here. `conformance/by-scripts.json`
//! holds the same for the logs that Zeek's own default scripts write when `gannet zeek` runs them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;
use serde_json::Value;

use crate::scripts;
use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::print;
use crate::workspace::say;

/// Compare our logs of real captures with Zeek's.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Write today's scores to the file of scores
    #[arg(long)]
    update: bool,
    /// Compare the logs of Zeek's default scripts, which gannet zeek runs: scores in conformance/by-scripts.json
    #[arg(long)]
    scripts: bool,
    /// The build to compare; its logs are the same
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    /// More arguments for compare.py, like --show 3 --logs conn; then scores are only shown
    #[arg(last = true)]
    more: Vec<String>,
}

impl Args {
    /// Compares the scores of this build with the committed ones.
    pub(crate) fn of(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }
}

/// Number of equal items, and of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Score {
    equal: u64,
    of: u64,
}

impl Score {
    fn add(&mut self, more: Self) {
        self.equal += more.equal;
        self.of += more.of;
    }

    fn percent(self) -> f64 {
        100.0 * self.equal as f64 / self.of.max(1) as f64
    }

    /// Compared exactly, as rounding could hide the loss of a row.
    fn is_below(self, other: Self) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.equal, other.of.max(1)) < product(other.equal, self.of.max(1))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Scores {
    /// Captures whose rows are all equal.
    captures: Score,
    /// Rows of each log.
    logs: BTreeMap<String, Score>,
}

impl Scores {
    /// Adds the scores of other captures.
    fn add(&mut self, more: &Self) {
        self.captures.add(more.captures);
        for (log, score) in &more.logs {
            self.logs.entry(log.clone()).or_default().add(*score);
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(shared) = workspace::shared() else {
        say("skipped: conformance: there is no folder 'shared' beside the repository");
        return Ok(());
    };
    let command = args.profile.build()?;
    let figures = workspace::target().join("conformance.json");
    let arguments = if args.scripts {
        let folder = scripts::unpacked(&shared.join("zeek"), &workspace::target())?;
        let folder = folder.display();
        format!("zeek -C --zeek-scripts {folder} -r {{pcap}} Log::default_logdir={{out}}")
    } else {
        "analyze -C -o {out} {pcap}".to_owned()
    };
    let shared = shared.join("conformance");
    let mut is = Scores::default();
    for root in [shared.clone(), shared.join("found")].iter().filter(|root| root.is_dir()) {
        let status = Command::new("python3")
            .arg(shared.join("compare.py"))
            .arg("--root")
            .arg(root)
            .arg("--run")
            .arg(format!("{} {arguments}", command.display()))
            .arg("--json")
            .arg(&figures)
            .args(&args.more)
            .status()
            .context("python3")?;
        if !args.more.is_empty() {
            ensure!(status.success(), "compare.py: {status}");
            continue;
        }
        let text = fs::read_to_string(&figures).with_context(|| figures.display().to_string())?;
        let figures = figures_of(&serde_json::from_str(&text)?);
        let (scores, failed) = figures.context("compare.py's figures")?;
        ensure!(failed == 0, "{failed} runs failed");
        is.add(&scores);
    }
    if !args.more.is_empty() {
        return Ok(());
    }
    let path = path(args.scripts);
    if args.update {
        fs::write(&path, render(&is)).with_context(|| path.display().to_string())?;
        return Ok(());
    }
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let was = parse(&serde_json::from_str(&text)?).with_context(|| path.display().to_string())?;
    let fallen = compare(&was, &is);
    if fallen > 0 {
        bail!("{fallen} scores fell below {}", path.display());
    }
    if was != is {
        let scripts = if args.scripts { " --scripts" } else { "" };
        say(&format!("hint: cargo xtask conformance{scripts} --update keeps the new scores"));
    }
    Ok(())
}

fn path(scripts: bool) -> PathBuf {
    let name = if scripts { "by-scripts.json" } else { "scores.json" };
    workspace::root().join("conformance").join(name)
}

/// Prints changes; returns the number of scores that fell.
fn compare(was: &Scores, is: &Scores) -> usize {
    let none = Score { equal: 0, of: 0 };
    let mut pairs = vec![("captures", was.captures, is.captures)];
    for (log, was) in &was.logs {
        pairs.push((log, *was, is.logs.get(log).copied().unwrap_or(none)));
    }
    let mut fallen = 0;
    for (name, was, is) in pairs.into_iter().filter(|(_, was, is)| was != is) {
        let word = match (is.is_below(was), was.is_below(is)) {
            (true, _) => "FELL",
            (_, true) => "rose",
            _ => "same",
        };
        fallen += usize::from(word == "FELL");
        let (a, b) = (was.percent(), is.percent());
        let of = format!("{}/{} to {}/{}", was.equal, was.of, is.equal, is.of);
        print(&format!("{word}  {name:<20} {a:6.2} % to {b:6.2} %  ({of})"));
    }
    fallen
}

/// The output of compare.py: `rows`, `captures`, `failed`, and by log an array that begins with
/// equal rows and all rows.
fn figures_of(value: &Value) -> Option<(Scores, usize)> {
    let pair = |v: &Value| Some(Score { equal: v.get(0)?.as_u64()?, of: v.get(1)?.as_u64()? });
    let logs = value.get("logs")?.as_object()?.iter();
    let logs = logs.map(|(log, v)| Some((log.clone(), pair(v)?))).collect::<Option<_>>()?;
    let failed = value.get("failed")?.as_array()?.len();
    Some((Scores { captures: pair(value.get("captures")?)?, logs }, failed))
}

fn parse(value: &Value) -> Option<Scores> {
    let score =
        |v: &Value| Some(Score { equal: v.get("equal")?.as_u64()?, of: v.get("of")?.as_u64()? });
    let logs = value.get("logs")?.as_object()?.iter();
    let logs = logs.map(|(log, v)| Some((log.clone(), score(v)?))).collect::<Option<_>>()?;
    Some(Scores { captures: score(value.get("captures")?)?, logs })
}

/// One line for each log, so that diffs of the file show changed scores.
fn render(scores: &Scores) -> String {
    let line = |name: &str, s: Score| {
        let (equal, of, percent) = (s.equal, s.of, s.percent());
        format!(r#""{name}": {{"equal": {equal}, "of": {of}, "percent": {percent:.2}}}"#)
    };
    let mut out = format!("{{\n  {},\n  \"logs\": {{\n", line("captures", scores.captures));
    for (i, (log, score)) in scores.logs.iter().enumerate() {
        let comma = if i + 1 < scores.logs.len() { "," } else { "" };
        // Writing to a string does not fail.
        writeln!(out, "    {}{comma}", line(log, *score)).unwrap_or_default();
    }
    out.push_str("  }\n}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(conn: (u64, u64)) -> Scores {
        let score = |(equal, of)| Score { equal, of };
        let logs = [("conn", conn), ("dns", (1, 3))].map(|(l, s)| (l.to_owned(), score(s)));
        Scores { captures: score((5, 9)), logs: logs.into() }
    }

    #[test]
    fn scores_round_trip() {
        let was = scores((99, 100));
        let text = render(&was);
        assert!(text.contains("\n    \"dns\": {\"equal\": 1, \"of\": 3, \"percent\": 33.33}\n"));
        assert_eq!(parse(&serde_json::from_str(&text).unwrap()), Some(was));
    }

    #[test]
    fn scores_of_all_captures_are_one() {
        let mut sum = Scores::default();
        sum.add(&scores((99, 100)));
        sum.add(&scores((1, 2)));
        assert_eq!(sum.captures, Score { equal: 10, of: 18 });
        assert_eq!(sum.logs["conn"], Score { equal: 100, of: 102 });
    }

    #[test]
    fn one_row_less_is_a_fall() {
        assert_eq!(compare(&scores((99, 100)), &scores((99, 100))), 0);
        assert_eq!(compare(&scores((99, 100)), &scores((100, 101))), 0, "a row more, equal");
        assert_eq!(compare(&scores((99, 100)), &scores((98, 100))), 1);
        assert_eq!(compare(&scores((99, 100)), &scores((99, 101))), 1, "a row too many");
        let mut gone = scores((0, 0));
        gone.logs.remove("conn");
        assert_eq!(compare(&scores((99, 100)), &gone), 1);
    }

    #[test]
    fn figures_are_parsed() {
        let text = r#"{"rows": [1, 2], "captures": [5, 9], "failed": [["a", "b", 1, ""]],
            "logs": {"conn": [99, 100, 7, 7, 7, 7], "dns": [1, 3, 0, 0, 0, 0]}}"#;
        let figures = figures_of(&serde_json::from_str(text).unwrap());
        assert_eq!(figures, Some((scores((99, 100)), 1)));
    }
}
