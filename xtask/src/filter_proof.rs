//! `cargo xtask filter-proof`: compares the filter compiler's passes with their input, over many
//! random filters.

use crate::workspace::cargo;
use crate::workspace::check;

/// Prove the filter optimizer on random filters and packets.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many filters
    #[arg(default_value_t = 100_000)]
    count: u64,
    /// Seed of the random filters
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    check(
        cargo(&["test", "--profile", "quick", "--package", "gannet-filter", "--test", "proof"])
            .args(["--", "--nocapture"])
            .env("GANNET_PROOFS", args.count.to_string())
            .env("GANNET_PROOF_SEED", args.seed.to_string()),
    )
}
