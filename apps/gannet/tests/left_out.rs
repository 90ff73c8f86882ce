//! Commands and options that a build does not include report the feature that they need. `cargo test --package gannet
//! --test main left_out` builds with the default features. With more features, the tests run the command that
//! `GANNET_FIRST_BUILD` names, a build with the default features, or report that they are skipped.
// Tests may print; the lints allow it in test functions, but not in their helpers.
#![allow(clippy::print_stderr)]

use std::process::Command;
use std::process::Stdio;

use crate::support::Run;
use crate::support::gannet;

/// The command built with the default features, if `GANNET_FIRST_BUILD` names one.
fn first_build() -> Option<Command> {
    let mut command = Command::new(std::env::var_os("GANNET_FIRST_BUILD")?);
    command.stdin(Stdio::null());
    Some(command)
}

/// A command without a feature: this build, unless it has the feature. `None`, which is reported, if no such command is
/// known.
fn without(feature: &str, is_included: bool) -> Option<Command> {
    let command = if is_included { first_build() } else { Some(gannet()) };
    if command.is_none() {
        eprintln!(
            "skipped: this build has the feature {feature}; GANNET_FIRST_BUILD names another"
        );
    }
    command
}

/// A command without a feature; skips the test if no such command is known.
macro_rules! without {
    ($feature:literal) => {
        match without($feature, cfg!(feature = $feature)) {
            Some(command) => command,
            None => return,
        }
    };
}

#[test]
fn every_command_is_listed_in_every_build() {
    for mut command in [Some(gannet()), first_build()].into_iter().flatten() {
        let help = Run::of(command.arg("--help")).stdout;
        for command in ["analyze", "filter", "info", "replay", "run", "sql", "synth"] {
            assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        }
    }
}

#[test]
fn run_names_its_feature() {
    for arguments in [&["run", "x.lua", "--y"][..], &["run", "--help"], &["run"]] {
        let run = Run::of(without!("lua").args(arguments));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains("error: gannet run is not in this build"), "{}", run.stderr);
        assert!(run.stderr.contains("--features lua"), "{}", run.stderr);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn kafka_names_its_feature() {
    let run = Run::of(without!("kafka").args(["analyze", "-i", "lo", "--kafka", "127.0.0.1:9092"]));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("error: --kafka is not in this build"), "{}", run.stderr);
    assert!(run.stderr.contains("--features kafka"), "{}", run.stderr);
}

#[test]
fn parquet_names_its_feature() {
    let run = Run::of(without!("columns").args(["analyze", "--format", "tsv,parquet", "x.pcap"]));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("error: --format parquet is not in this build"), "{}", run.stderr);
    assert!(run.stderr.contains("--features columns"), "{}", run.stderr);
}

#[test]
fn sql_names_its_feature() {
    let where_ = &["packets", "--where", "duration > 1", "x.pcap"][..];
    for (arguments, what) in [(&["sql", "SELECT 1"][..], "gannet sql"), (where_, "--where")] {
        let run = Run::of(without!("sql").args(arguments));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(
            run.stderr.contains(&format!("error: {what} is not in this build")),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("--features sql"), "{}", run.stderr);
    }
}

#[test]
fn tasks_name_their_feature() {
    for arguments in [&["plan", "--json", "x.pcap"][..], &["run-task", "plan.json", "0"]] {
        let run = Run::of(without!("columns").args(arguments));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains("--features columns"), "{}", run.stderr);
    }
}

#[test]
fn an_echo_server_without_a_certificate_names_its_feature() {
    let run = Run::of(without!("self-signed").args(["replay", "--serve", "127.0.0.1:0", "--tls"]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("feature self-signed"), "{}", run.stderr);
}

#[test]
fn an_engine_names_its_feature() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");
    let run = Run::of(without!("llvm").args(["filter", "verify", "tcp", sample]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!((run.stdout + &run.stderr).contains("feature llvm"));
}
