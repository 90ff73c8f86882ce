//! Developers' commands, as `cargo xtask COMMAND`.
//!
//! `ready` runs everything a change must pass. `conformance` compares the logs with Zeek's,
//! `scripts` runs Zeek's script tests, `mutate` searches for captures that break the engine, `fuzz`
//! for inputs that break one of its components, `filter-proof` for filters that the optimizer
//! miscompiles. `bench` compares the speed with that of other programs, `pipes` does so for scripts
//! and replay, `snapshot` counts instructions and allocations, `pgo` builds with a profile. `prose`
//! finds words to avoid in comments and docs, `imports` cycles of imports, `update` writes the
//! generated files. Captures for comparison are in a folder `shared` next to the repository (see
//! [`workspace`]); commands that need them report if they are missing.

mod bench;
mod conformance;
mod dist;
mod filter_proof;
mod fuzz;
mod imports;
mod measure;
mod mutate;
mod pgo;
mod pipes;
mod prose;
mod ready;
mod scripts;
mod snapshot;
mod update;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

/// Tools for the development of gannet.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Format, lints, documentation, tests, conformance
    Ready,
    Conformance(conformance::Args),
    Scripts(scripts::Args),
    Dist(dist::Args),
    Mutate(mutate::Args),
    Fuzz(fuzz::Args),
    FilterProof(filter_proof::Args),
    Imports(imports::Args),
    Bench(bench::Args),
    Pgo(pgo::Args),
    Pipes(pipes::Args),
    Prose(prose::Args),
    Snapshot(snapshot::Args),
    /// Regenerate docs/logs.md, docs/events.md and the golden logs of the sample capture
    Update,
    #[command(hide = true)]
    Measure(measure::Args),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Ready => ready::run(),
        Command::Conformance(args) => conformance::run(&args),
        Command::Scripts(args) => scripts::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Mutate(args) => mutate::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::FilterProof(args) => filter_proof::run(&args),
        Command::Imports(args) => imports::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Pgo(args) => pgo::run(&args),
        Command::Pipes(args) => pipes::run(&args),
        Command::Prose(args) => prose::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Update => update::run(),
        Command::Measure(args) => measure::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            workspace::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
