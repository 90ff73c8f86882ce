//! The cost of a command, measured from outside: CPU time, wall time, peak memory.
//!
//! The system reports the cost of child processes only as a sum, and memory as a maximum. So each
//! measurement runs in a process of its own: this program starts itself as `measure`, which runs
//! one command and prints one line.

use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::ensure;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapMut;
use nix::sys::resource::UsageWho;
use nix::sys::resource::getrusage;
use nix::sys::time::TimeVal;
use nix::sys::time::TimeValLike;

use crate::workspace::print;

/// Run one command and print its cost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command; its output is discarded
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// The cost of one run of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// User and system time of all its threads.
    pub(crate) cpu: Duration,
    /// Elapsed time from start to end.
    pub(crate) wall: Duration,
    /// Peak resident memory in bytes.
    pub(crate) memory: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let [program, rest @ ..] = &args.command[..] else { return Ok(()) };
    let begun = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| program.clone())?;
    let wall = begun.elapsed();
    ensure!(status.success(), "{program}: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |t: TimeVal| t.num_microseconds();
    let cpu = micros(usage.user_time()) + micros(usage.system_time());
    print(&format!("{cpu} {} {}", wall.as_micros(), usage.max_rss() * 1024));
    Ok(())
}

/// Number of bytes touched before a run: somewhat more than an analysis uses.
const WARM: usize = 160 << 20;
const PAGE: usize = 4 << 10;

/// Touches memory and frees it. A host may reclaim memory that a virtual machine has not used for
/// some seconds; the first access to such a huge page takes a hundred times as long as other
/// accesses.
fn warm() {
    let Ok(mut memory) = MmapMut::map_anon(WARM) else { return };
    #[cfg(target_os = "linux")]
    // A hint: without huge pages there is nothing to warm.
    let _ = memory.advise(Advice::HugePage);
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
}

/// Runs a command once, with warm memory, and returns its cost.
pub(crate) fn measure(command: &[String]) -> anyhow::Result<Cost> {
    warm();
    let own = std::env::current_exe()?;
    let output = Command::new(own).args(["measure", "--"]).args(command).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    parse(&String::from_utf8_lossy(&output.stdout)).context("figures of measure")
}

fn parse(line: &str) -> Option<Cost> {
    let mut numbers = line.split_whitespace().map(|n| n.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    Some(Cost {
        cpu: Duration::from_micros(next()?),
        wall: Duration::from_micros(next()?),
        memory: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_figures() {
        let cost =
            Cost { cpu: Duration::from_millis(1_500), wall: Duration::from_secs(2), memory: 4_096 };
        assert_eq!(parse("1500000 2000000 4096\n"), Some(cost));
        assert_eq!(parse("1500000 2000000"), None);
    }
}
