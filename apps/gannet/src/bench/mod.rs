//! `gannet bench`: the cost of the stages, compared with other programs.
//!
//! By default it measures the stages of a packet and whole analyses ([`speed`]); `dict` measures
//! the dictionary and other maps, `ring` a ring between two threads.

use clap::Subcommand;

use crate::outcome::Outcome;

mod dict;
mod ring;
#[cfg(target_os = "linux")]
mod send;
mod speed;

/// Measure gannet on this machine: reading, dissecting, filtering, protocols, writing, and whole analyses
///
/// Generated traffic is always measured, and traces in addition. Times are CPU time
/// of the whole process, so that other load on the machine hardly shows.
#[derive(Debug, clap::Args)]
#[group(id = "bench")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<Benchmark>,
    #[command(flatten)]
    speed: speed::Args,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    Dict(dict::Args),
    /// Count allocations in the second half of generated traffic: `KIND PACKETS ALLOCATIONS` a line
    Allocations,
    Ring(ring::Args),
    #[cfg(target_os = "linux")]
    Send(send::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.what {
        Some(Benchmark::Dict(args)) => dict::run(args)?,
        Some(Benchmark::Allocations) => speed::allocations()?,
        Some(Benchmark::Ring(args)) => ring::run(args)?,
        #[cfg(target_os = "linux")]
        Some(Benchmark::Send(args)) => send::run(args)?,
        None => return speed::run(&args.speed),
    }
    Ok(Outcome::Done)
}
