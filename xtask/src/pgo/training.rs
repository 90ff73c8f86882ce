//! The traffic with which a build is trained.
//!
//! Generated traffic is always used. Of the captures next to the repository only those are used
//! that `mix.pcap` does not contain, so that training and measurement differ. (`make_traces.py`
//! builds it from classic pcap files of two suites; so it contains neither pcapng files nor the
//! third suite.) Zeek's default scripts run over the same traffic, if they are next to the
//! repository.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;

use anyhow::Context;
use anyhow::ensure;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Trace;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;

use crate::scripts;
use crate::workspace;
use crate::workspace::say;

/// The suite of captures that is not part of any trace.
const UNUSED_SUITE: &str = "tcpdump";

/// Scripts run over every n-th capture, since each run loads them again.
const SCRIPTED_EVERY: usize = 4;

/// The first bytes of a section header block of pcapng.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Trains `command` with all available traffic; `scratch` is a temporary folder.
pub(super) fn run(command: &Path, scratch: &Path, more: &[PathBuf]) -> anyhow::Result<()> {
    fs::create_dir_all(scratch).with_context(|| scratch.display().to_string())?;
    let logs = scratch.join("logs");
    let begin = || {
        let mut command = Command::new(command);
        command.args(["analyze", "-C", "-q", "-o"]).arg(&logs);
        command
    };
    let mixed = written(&scratch.join("mixed.pcap"), &traffic::mixed(20_000, 0x7472_6169))?;
    say("training: generated traffic");
    analyze(begin().arg(&mixed))?;
    analyze(begin().arg("--json").arg(&mixed))?;
    for kind in Kind::ALL {
        let count = if matches!(kind, Kind::Dns | Kind::Scan) { 20_000 } else { 300 };
        let trace = traffic::of(kind, count, 0x6b69_6e64);
        analyze(begin().arg(written(&scratch.join("kind.pcap"), &trace)?))?;
    }
    // Reads a compressed stream, and applies a filter.
    let packed = written(&scratch.join("mixed.pcap.gz"), &traffic::mixed(2_000, 0x677a))?;
    analyze(begin().args(["-f", "tcp or udp port 53"]).arg(packed))?;
    let captures = captures()?;
    if captures.is_empty() {
        say("training: there is no folder 'shared' beside the repository: generated traffic only");
    } else {
        say(&format!("training: {} captures", captures.len()));
        analyze(begin().arg("--each").args(&captures))?;
    }
    for capture in more {
        analyze(begin().arg(capture))?;
    }
    default_scripts(command, scratch, &captures)?;
    fs::remove_dir_all(scratch).with_context(|| scratch.display().to_string())
}

/// Runs Zeek's default scripts over generated traffic and these captures.
fn default_scripts(command: &Path, scratch: &Path, captures: &[PathBuf]) -> anyhow::Result<()> {
    let Some(shared) = workspace::shared() else { return Ok(()) };
    // The scripts run in a separate folder.
    let tree = std::path::absolute(scripts::unpacked(&shared.join("zeek"), &workspace::target())?)?;
    let path = scripts::search_path(&tree);
    let folder = scratch.join("scripts");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let begin = || {
        let mut zeek = Command::new(command);
        zeek.args(["zeek", "-C", "-r"]).current_dir(&folder).env("ZEEKPATH", &path);
        zeek.stdout(Stdio::null()).stderr(Stdio::null());
        zeek
    };
    say("training: Zeek's default scripts");
    let mixed = written(&folder.join("mixed.pcap"), &traffic::mixed(5_000, 0x7363_7269))?;
    // If the scripts did not load, nothing would be trained.
    workspace::check(begin().arg(&mixed))?;
    for kind in Kind::ALL {
        let count = if matches!(kind, Kind::Dns | Kind::Scan) { 5_000 } else { 100 };
        let trace = traffic::of(kind, count, 0x6b69_6e64);
        analyze(begin().arg(written(&folder.join("kind.pcap"), &trace)?))?;
    }
    for capture in captures.iter().step_by(SCRIPTED_EVERY) {
        analyze(begin().arg(capture))?;
    }
    Ok(())
}

/// Whether the logs of a capture equal the golden ones of the sample.
pub(super) fn agree(command: &Path, capture: &Path) -> anyhow::Result<bool> {
    let logs = super::folder().join("check");
    analyze(Command::new(command).args(["analyze", "-q", "-o"]).arg(&logs).arg(capture))?;
    let golden = workspace::root().join("apps/gannet/tests/golden/tsv");
    let mut same = 0;
    for entry in fs::read_dir(&golden).with_context(|| golden.display().to_string())? {
        let path = entry?.path();
        let ours = logs.join(path.file_name().unwrap_or_default());
        if path.extension().is_some_and(|e| e == "log") && ours.is_file() {
            if fs::read(&path)? != fs::read(ours)? {
                return Ok(false);
            }
            same += 1;
        }
    }
    Ok(same > 0)
}

/// Runs a command to its end. Truncated and damaged captures are part of the training; a crash is
/// an error.
fn analyze(command: &mut Command) -> anyhow::Result<()> {
    let status: ExitStatus = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.code().is_some(), "{command:?}: {status}");
    Ok(())
}

fn written(path: &Path, trace: &Trace) -> anyhow::Result<PathBuf> {
    let mut writer = Writer::create(path, WriteOptions::default())?;
    trace.write(&mut writer)?;
    writer.finish()?;
    Ok(path.to_owned())
}

fn captures() -> anyhow::Result<Vec<PathBuf>> {
    let Some(shared) = workspace::shared() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let suites = shared.join("conformance/captures");
    for suite in fs::read_dir(&suites).with_context(|| suites.display().to_string())? {
        let suite = suite?.path();
        let free = suite.ends_with(UNUSED_SUITE);
        for entry in fs::read_dir(&suite).with_context(|| suite.display().to_string())? {
            let path = entry?.path();
            if path.is_file() && (free || is_pcapng(&path)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_pcapng(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && magic == PCAPNG
}
