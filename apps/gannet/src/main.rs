//! The command: arguments, terminal, exit codes.
//!
//! A thin layer over the libraries: it parses arguments (`cli`), opens captures, drives a
//! [`gannet_engine::Engine`] with their batches (`analyze`) and reports the results (`terminal`,
//! `tally`). Only this crate knows the terminal, signals (`stop`) and exit codes (`outcome`). Data
//! goes to standard output, messages go to standard error as `error: ...`, `warning: ...`, `note:
//! ...` and `hint: ...`.

mod analyze;
mod bench;
#[cfg(target_os = "linux")]
mod capture;
mod cli;
mod completions;
mod events;
mod extract;
mod filter;
mod formats;
mod index;
mod info;
mod left_out;
mod limits;
#[cfg(target_os = "linux")]
mod live;
mod man;
mod memory;
mod names;
mod open_files;
mod out;
mod outcome;
mod packets;
mod paths;
mod replay;
#[cfg(feature = "lua")]
mod run;
mod script;
mod scripted;
#[cfg(target_os = "linux")]
mod sensor;
mod spread;
#[cfg(feature = "sql")]
mod sql;
mod stdin;
mod stop;
mod sums;
mod synth;
mod tally;
#[cfg(feature = "columns")]
mod tasks;
mod terminal;
#[cfg(target_os = "linux")]
mod top;
mod unanswered;
mod version;
mod zeek;

// `build.rs` sets `no_unwind_tables` where the linker can drop the tables for stack unwinding; builds that unwind keep them.
#[allow(unsafe_code)]
#[cfg(all(no_unwind_tables, panic = "abort"))]
#[link(name = "gannet_no_unwind", kind = "dylib")]
unsafe extern "C" {}

use std::process::ExitCode;

use crate::cli::Command;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() -> ExitCode {
    open_files::raise_limit();
    memory::refuse_huge_pages();
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(arguments) = zeek::arguments(&args) {
        return zeek::run(arguments);
    }
    if version::is_requested(&args) {
        return version::print().unwrap_or(Outcome::Failed).into();
    }
    match scripted::arguments(&args) {
        Some(Ok(arguments)) => return zeek::run(arguments),
        Some(Err(outcome)) => return outcome.into(),
        None => {}
    }
    let outcome = match cli::parse(args) {
        Command::Analyze(args) => analyze::run(&args),
        #[cfg(target_os = "linux")]
        Command::Capture(args) => capture::run(&args),
        #[cfg(target_os = "linux")]
        Command::Config(args) => sensor::config(&args),
        Command::Events(args) => events::run(&args),
        Command::Filter(args) => filter::run(&args),
        Command::Index(args) => index::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Packets(args) => packets::run(&args),
        #[cfg(feature = "columns")]
        Command::Plan(args) => tasks::run_plan(&args),
        #[cfg(not(feature = "columns"))]
        Command::Plan(_) => Ok(left_out::report(&"gannet plan", "columns")),
        Command::Replay(args) => replay::run(&args),
        #[cfg(feature = "lua")]
        Command::Run(args) => run::run(&args),
        #[cfg(not(feature = "lua"))]
        Command::Run(_) => Ok(left_out::report(&"gannet run", "lua")),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(&args),
        #[cfg(not(feature = "sql"))]
        Command::Sql(_) => Ok(left_out::report(&"gannet sql", "sql")),
        #[cfg(feature = "columns")]
        Command::RunTask(args) => tasks::run_task(&args),
        #[cfg(not(feature = "columns"))]
        Command::RunTask(_) => Ok(left_out::report(&"gannet run-task", "columns")),
        #[cfg(target_os = "linux")]
        Command::Sensor(args) => sensor::run(&args),
        Command::Script(args) => script::run(&args),
        Command::Synth(args) => synth::run(&args),
        #[cfg(target_os = "linux")]
        Command::Top(args) => top::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Zeek(args) => return zeek::run(args.into_arguments()),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        // The reader of standard output closed it.
        Err(error) if out::is_closed(&error) => Outcome::Done.into(),
        Err(error) => {
            Terminal::new(false).error(&terminal::causes(&error));
            Outcome::Failed.into()
        }
    }
}
