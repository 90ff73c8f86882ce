//! `cargo xtask mutate`: thousands of mutated captures.
//!
//! Each mutated capture is determined by its number ([`mutation`]): seeds are real captures, or the
//! sample if there are none. The engine analyses each within this process ([`engine`]), where a
//! panic is caught and reported, and the capture stored; some also go through the released command
//! ([`command`]), and through Zeek's default scripts ([`scripts`]). None may panic, take longer
//! than [`PATIENCE`] or need more than [`MEMORY`].

mod command;
mod engine;
mod mutation;
mod scripts;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;

pub(crate) use crate::mutate::mutation::Seeds;
use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::cargo;
use crate::workspace::check;
use crate::workspace::say;

/// Time limit of a capture.
const PATIENCE: Duration = Duration::from_secs(20);

/// Memory limit of a process, in bytes.
const MEMORY: u64 = 512_000_000;

/// Look for captures that break the engine: bit flips, cut files, spliced records.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many captures
    #[arg(default_value_t = 10_000)]
    number: u64,
    /// The number of the first
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many of them also go through the command as it is released
    #[arg(long, default_value_t = 200)]
    command: u64,
    /// How many of them Zeek's default scripts analyse, every second one with each event and its arguments printed
    #[arg(long, default_value_t = 100)]
    scripts: u64,
    /// The build of that command
    #[arg(long, value_enum, default_value_t)]
    profile: Profile,
    /// Run the engine in the build that runs this, instead of building an optimised one with all checks: a debug build has
    /// these checks, too, and takes ten times as long
    #[arg(long)]
    here: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.here {
        in_engine(args)?;
    } else {
        let (number, from) = (args.number.to_string(), args.from.to_string());
        let build = ["run", "--profile", "hostile", "--package", "xtask", "--"];
        let only =
            ["mutate", "--here", "--command", "0", "--scripts", "0", "--from", &from, &number];
        check(cargo(&build).args(only))?;
    }
    if args.command == 0 && args.scripts == 0 {
        return Ok(());
    }
    let seeds = Seeds::gather()?;
    let gannet = args.profile.build()?;
    let numbers = |count: u64| args.from..args.from + count.min(args.number);
    if args.command > 0 {
        command::run(&gannet, &seeds, numbers(args.command), &kept()?)?;
    }
    if args.scripts > 0 {
        scripts::run(&gannet, &seeds, numbers(args.scripts), &kept()?)?;
    }
    Ok(())
}

/// The engine within this process, which can catch panics.
fn in_engine(args: &Args) -> anyhow::Result<()> {
    let seeds = Seeds::gather()?;
    say(&format!("{} seeds", seeds.len()));
    let kept = kept()?;
    let failures = engine::run(&seeds, args.from..args.from + args.number, &kept)?;
    ensure!(
        failures == 0,
        "{failures} captures broke the engine; they are kept in {}",
        kept.display()
    );
    Ok(())
}

/// Folder for captures that cause a failure.
fn kept() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("hostile-captures");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
