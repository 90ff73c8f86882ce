//! Runs of the released command on mutated captures.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;

use crate::mutate::MEMORY;
use crate::mutate::PATIENCE;
use crate::mutate::mutation::Seeds;
use crate::workspace;
use crate::workspace::say;

/// Runs the command on the stored hostile files, and then on the captures with these numbers.
pub(crate) fn run(
    gannet: &Path,
    seeds: &Seeds,
    numbers: Range<u64>,
    kept: &Path,
) -> anyhow::Result<()> {
    let mut peak = 0;
    let mut runs = 0;
    let hostile = workspace::shared().map(|s| s.join("conformance/hostile"));
    if let Some(folder) = hostile.filter(|f| f.is_dir()) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            peak = peak.max(one(gannet, &path, kept).with_context(|| path.display().to_string())?);
            runs += 1;
        }
    }
    for number in numbers {
        let path = kept.join(format!("{number}.pcapng"));
        fs::write(&path, seeds.mutated(number)?)?;
        // If it fails, the capture remains in the folder.
        peak = peak.max(one(gannet, &path, kept).with_context(|| path.display().to_string())?);
        fs::remove_file(&path)?;
        runs += 1;
    }
    say(&format!("{runs} runs of the command, {:.0} MB at the most", peak as f64 / 1e6));
    Ok(())
}

/// Runs the command on one capture; returns its peak memory in bytes.
fn one(gannet: &Path, capture: &Path, kept: &Path) -> anyhow::Result<u64> {
    let mut child = Command::new(gannet)
        .args(["analyze", "-C", "--stats", "-o"])
        .arg(kept.join("logs"))
        .arg(capture)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            bail!("takes too long");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let words = words(&mut child)?;
    let code = child.wait()?.code();
    ensure!(matches!(code, Some(0 | 2 | 3)), "ends with {code:?}: {words}");
    let peak = peak(&words).unwrap_or_default();
    ensure!(peak <= MEMORY, "needs {peak} bytes");
    Ok(peak)
}

fn words(child: &mut Child) -> anyhow::Result<String> {
    let mut words = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut words)?;
    }
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// `peak memory  12.3 MB`
fn peak(words: &str) -> Option<u64> {
    let line = words.lines().find_map(|l| l.strip_prefix("peak memory"))?;
    let megabytes: f64 = line.trim().strip_suffix(" MB")?.parse().ok()?;
    Some((megabytes * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_line_is_read() {
        assert_eq!(peak("rows         none\npeak memory  12.3 MB\n"), Some(12_300_000));
        assert_eq!(peak("error: x\n"), None);
    }
}
