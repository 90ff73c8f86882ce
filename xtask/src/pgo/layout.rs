//! The last step: machine code in the order in which it runs.
//!
//! The compiler places code function by function, and guesses how what it has not inlined is called. BOLT
//! reads the linked command, has it count once more, now at the machine's own branches, and writes it
//! again: what follows each other lies side by side, branches fall through, and what training never came
//! by lies apart. So the instruction cache and the translation of addresses hold what is used.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use anyhow::bail;

use super::folder;
use super::tools::Bolt;
use super::training;
use crate::workspace::say;
use crate::workspace::shown;

/// What the linker has to keep, so that code can be moved: every reference to it.
pub(super) const LINKED_WITH: &str = "-Clink-arg=-Wl,--emit-relocs";

/// How code is placed: hot blocks as a travelling salesman would visit them, cold ones apart, functions
/// beside those that call them.
const ORDER: [&str; 5] = [
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=cdsort",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
];

/// Assembly written by hand stays as it is: LuaJIT's interpreter finds its instructions by their distance,
/// and what ring's says of its frames is at odds with its symbols.
const UNTOUCHED: &str = "-skip-funcs=lj_.*,ring_core_.*";

/// Writes `linked`, a command that was linked [so](LINKED_WITH), again to `out`.
pub(super) fn arrange(
    bolt: &Bolt,
    linked: &Path,
    out: &Path,
    more: &[PathBuf],
) -> anyhow::Result<()> {
    let counts = folder().join("layout");
    // Counts of earlier builds would be merged, too.
    if counts.exists() {
        fs::remove_dir_all(&counts).with_context(|| counts.display().to_string())?;
    }
    fs::create_dir_all(&counts).with_context(|| counts.display().to_string())?;
    let counting = counts.join("gannet");
    let mut instrument = bolt.command();
    instrument.arg(linked).arg("-o").arg(&counting).arg("-instrument");
    // Every run of the training in a file of its own.
    instrument.arg("-instrumentation-file-append-pid");
    instrument.arg(flag("-instrumentation-file", &counts.join("run")));
    quietly(instrument.arg(UNTOUCHED))?;
    training::run(&counting, &folder().join("training"), more)?;
    let all = counts.join("all");
    quietly(bolt.merge().args(runs(&counts)?).arg("-o").arg(&all))?;
    let mut order = bolt.command();
    order.arg(linked).arg("-o").arg(out).arg(flag("-data", &all)).args(ORDER);
    // A backtrace shall name lines still.
    quietly(order.arg(UNTOUCHED).arg("-update-debug-sections"))
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(path);
    flag
}

/// The counts that runs wrote, one file each.
fn runs(counts: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(counts).with_context(|| counts.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "fdata") {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("{}: the training left no counts there", counts.display());
    }
    found.sort();
    Ok(found)
}

/// Runs a program that tells much; all of it is shown where it fails.
fn quietly(command: &mut Command) -> anyhow::Result<()> {
    let shown = shown(command);
    say(&format!("$ {shown}"));
    let output = command.output().with_context(|| shown.clone())?;
    if !output.status.success() {
        say(&String::from_utf8_lossy(&output.stdout));
        say(&String::from_utf8_lossy(&output.stderr));
        bail!("{shown}: {}", output.status);
    }
    Ok(())
}
