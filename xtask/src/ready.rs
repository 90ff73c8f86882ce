//! `cargo xtask ready`: all checks that a change must pass, the quickest first.

use crate::conformance;
use crate::prose;
use crate::scripts;
use crate::snapshot;
use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::cargo;
use crate::workspace::check;
use crate::workspace::say;
use crate::workspace::tests_of_command;

/// All features of the command.
const FULL: &str = "gannet/full";

pub(crate) fn run() -> anyhow::Result<()> {
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    prose::run(&prose::Args::check())?;
    let deny = ["--", "--deny", "warnings"];
    check(cargo(&["clippy", "--workspace", "--all-targets", "--features", FULL]).args(deny))?;
    check(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
    check(&mut cargo(&["test", "--workspace", "--features", FULL]))?;
    // The messages of a build without these features about them.
    check(&mut tests_of_command("left_out"))?;
    // A separate workspace, which no other check builds.
    let fuzz = workspace::target().join("fuzz");
    check(cargo(&["check", "--target-dir"]).arg(fuzz).current_dir(workspace::root().join("fuzz")))?;
    // Uses the same build as the snapshot below.
    conformance::run(&conformance::Args::of(Profile::Dist))?;
    scripts::run(&scripts::Args::of(Profile::Dist))?;
    snapshot::run(&snapshot::Args::default())?;
    say("ready");
    Ok(())
}
