//! Runs of Zeek's default scripts on mutated captures.

use std::ffi::OsString;
use std::fs;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;

use crate::mutate::PATIENCE;
use crate::mutate::mutation::Seeds;
use crate::scripts::search_path;
use crate::scripts::unpacked;
use crate::workspace;
use crate::workspace::say;

/// Number of captures analysed in parallel.
const PARALLEL: u64 = 2;

/// Analyses the captures with these numbers.
pub(super) fn run(
    gannet: &Path,
    seeds: &Seeds,
    numbers: Range<u64>,
    kept: &Path,
) -> anyhow::Result<()> {
    let Some(shared) = workspace::shared().map(|shared| shared.join("zeek")) else {
        say(
            "skipped: scripts over mutated captures: there is no folder 'shared' beside the repository",
        );
        return Ok(());
    };
    if !shared.join("scripts.tar.xz").is_file() {
        say("skipped: scripts over mutated captures: the folder 'shared' has no scripts");
        return Ok(());
    }
    let path = search_path(&unpacked(&shared, &workspace::target())?);
    let count = numbers.end - numbers.start;
    let next = AtomicU64::new(numbers.start);
    let worker = || -> anyhow::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            // A failing capture remains in its folder with its logs.
            let folder = kept.join(format!("scripts-{number}"));
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("capture"), seeds.mutated(number)?)?;
            one(gannet, &folder, &path, number % 2 == 1)
                .with_context(|| folder.display().to_string())?;
            fs::remove_dir_all(&folder)?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..PARALLEL).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => bail!("a thread panicked"),
        })
    })?;
    say(&format!("{count} captures with Zeek's default scripts"));
    Ok(())
}

/// Runs the scripts on one capture, in a folder that contains the file `capture`.
fn one(gannet: &Path, folder: &Path, path: &OsString, prints_events: bool) -> anyhow::Result<()> {
    let reports = folder.join("reports");
    let mut command = Command::new(gannet);
    command.args(["zeek", "-C", "-r", "capture"]).current_dir(folder).env("ZEEKPATH", path);
    if prints_events {
        command.args(["misc/dump-events", "DumpEvents::dump_all_events=T"]);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&reports)?)
        .spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("takes too long");
        }
        thread::sleep(std::time::Duration::from_millis(5));
    };
    let reports = String::from_utf8_lossy(&fs::read(&reports)?).into_owned();
    // Exit status 1: the capture cannot be read.
    ensure!(matches!(status.code(), Some(0 | 1)), "ends with {status}: {reports}");
    let internal = reports.lines().find(|line| line.contains("internal error"));
    ensure!(internal.is_none(), "{}", internal.unwrap_or_default());
    Ok(())
}
