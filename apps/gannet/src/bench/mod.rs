//! `gannet bench`: the cost of the stages, compared with other programs.
//!
//! By default it measures the stages of a packet and whole analyses ([`speed`]); `dict` measures
//! the dictionary and other maps, `ring` a ring between two threads.

use clap::Subcommand;

use crate::outcome::Outcome;

mod dict;
mod ring;
mod speed;

/// Measure gannet on this machine: reading, dissecting, filtering, protocols, writing, all of it
///
/// Without a trace everything is measured on generated traffic; traces are measured besides. Times are CPU time
/// of the whole process: what else the machine does hardly shows.
#[derive(Debug, clap::Args)]
#[group(id = "bench")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    speed: speed::Args,
}

#[derive(Debug, Subcommand)]
enum What {
    Dict(dict::Args),
    /// Count allocations of the second half of fixed traffic: `KIND PACKETS ALLOCATIONS` a line
    Allocations,
    Ring(ring::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.what {
        Some(What::Dict(args)) => dict::run(args)?,
        Some(What::Allocations) => speed::allocations()?,
        Some(What::Ring(args)) => ring::run(args)?,
        None => speed::run(&args.speed)?,
    }
    Ok(Outcome::Done)
}
