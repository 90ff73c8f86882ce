//! `gannet bench`: what the parts cost, beside what others would.

use clap::Subcommand;

use crate::outcome::Outcome;

pub(crate) mod counting;
mod dict;

/// Measure parts of gannet beside others, on this machine
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Dict(dict::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.what {
        What::Dict(args) => dict::run(args)?,
    }
    Ok(Outcome::Done)
}
