//! The command: arguments, terminal, exit codes.
//!
//! A thin layer over the libraries: it parses arguments (`cli`), opens captures, drives a
//! [`gannet_engine::Engine`] with their batches (`analyze`) and tells people what happened
//! (`terminal`, `tally`). Only this crate knows of the terminal, of signals (`stop`) and of exit
//! codes (`outcome`). Data goes to standard output, words go to standard error as `error: ...`,
//! `warning: ...`, `note: ...` and `hint: ...`.

mod analyze;
mod cli;
mod completions;
mod filter;
mod info;
mod man;
mod out;
mod outcome;
mod paths;
mod stdin;
mod stop;
mod synth;
mod tally;
mod terminal;

use std::process::ExitCode;

use crate::cli::Command;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Rows, streams and tables make many small allocations that live long: a quarter of the CPU time
/// of a run would go to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match cli::parse(std::env::args_os().collect()) {
        Command::Analyze(args) => analyze::run(&args),
        Command::Filter(args) => filter::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            Terminal::new(false).error(&format_args!("{error:#}"));
            Outcome::Failed.into()
        }
    }
}
