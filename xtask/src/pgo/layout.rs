//! The last step: arranges machine code in the order in which it runs.
//!
//! The compiler places code function by function, and guesses the frequency of calls. BOLT
//! instruments the linked command, which runs a training, and rewrites its machine code: blocks
//! that follow each other are adjacent, branches fall through, and untrained code is separate. So
//! the instruction cache and the TLB hold only code in use.

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

/// Makes the linker keep relocations, so that code can be moved.
pub(super) const KEEP_RELOCATIONS: &str = "-Clink-arg=-Wl,--emit-relocs";

/// Code layout: hot blocks ordered by ext-TSP, cold ones separate, functions next to their callers.
const ORDER: [&str; 5] = [
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=cdsort",
    "-split-functions",
    "-split-all-cold",
    "-split-eh",
];

/// Hand-written assembly is not moved: LuaJIT's interpreter uses distances between its
/// instructions, and the frame information of ring's assembly contradicts its symbols.
const UNTOUCHED: &str = "-skip-funcs=lj_.*,ring_core_.*";

/// Rewrites `linked`, a command linked with relocations (`-Wl,--emit-relocs`), to `out`.
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
    // Writes a separate file for each run of the training.
    instrument.arg("-instrumentation-file-append-pid");
    instrument.arg(flag("-instrumentation-file", &counts.join("run")));
    quietly(instrument.arg(UNTOUCHED))?;
    training::run(&counting, &folder().join("training"), more)?;
    let all = counts.join("all");
    quietly(bolt.merge().args(runs(&counts)?).arg("-o").arg(&all))?;
    let mut order = bolt.command();
    order.arg(linked).arg("-o").arg(out).arg(flag("-data", &all)).args(ORDER);
    // Keeps line numbers in backtraces.
    quietly(order.arg(UNTOUCHED).arg("-update-debug-sections"))
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(path);
    flag
}

/// The files of counts, one for each run.
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

/// Runs a program with much output, which is shown only if it fails.
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
