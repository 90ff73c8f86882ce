//! `cargo xtask ready`: everything a change must pass, the quickest first.

use crate::conformance;
use crate::snapshot;
use crate::workspace;
use crate::workspace::cargo;
use crate::workspace::check;
use crate::workspace::say;

pub(crate) fn run() -> anyhow::Result<()> {
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    let deny = ["--", "--deny", "warnings"];
    check(cargo(&["clippy", "--workspace", "--all-targets"]).args(deny))?;
    check(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings"))?;
    check(&mut cargo(&["test", "--workspace"]))?;
    // A workspace of its own that nothing else would build.
    let fuzz = workspace::target().join("fuzz");
    check(cargo(&["check", "--target-dir"]).arg(fuzz).current_dir(workspace::root().join("fuzz")))?;
    conformance::run(&conformance::Args::default())?;
    snapshot::run(&snapshot::Args::default())?;
    say("ready");
    Ok(())
}
