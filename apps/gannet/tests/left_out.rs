//! What a build leaves out says which feature brings it: `cargo test --package gannet --test left_out`
//! builds with the default features, as a first build does.

mod support;

use support::Run;
use support::gannet;

#[test]
fn every_command_is_listed_in_every_build() {
    let help = Run::of(gannet().arg("--help")).stdout;
    for command in ["analyze", "filter", "info", "replay", "run", "sql", "synth"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
    }
}

#[test]
#[cfg(not(feature = "lua"))]
fn run_names_its_feature() {
    for arguments in [&["run", "x.lua", "--y"][..], &["run", "--help"], &["run"]] {
        let run = Run::of(gannet().args(arguments));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains("error: gannet run is not in this build"), "{}", run.stderr);
        assert!(run.stderr.contains("--features lua"), "{}", run.stderr);
    }
}

#[test]
#[cfg(all(target_os = "linux", not(feature = "kafka")))]
fn kafka_names_its_feature() {
    let run = Run::of(gannet().args(["analyze", "-i", "lo", "--kafka", "127.0.0.1:9092"]));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("error: --kafka is not in this build"), "{}", run.stderr);
    assert!(run.stderr.contains("--features kafka"), "{}", run.stderr);
}

#[test]
#[cfg(not(feature = "columns"))]
fn parquet_names_its_feature() {
    let run = Run::of(gannet().args(["analyze", "--format", "tsv,parquet", "x.pcap"]));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("error: --format parquet is not in this build"), "{}", run.stderr);
    assert!(run.stderr.contains("--features columns"), "{}", run.stderr);
}

#[test]
#[cfg(not(feature = "sql"))]
fn sql_names_its_feature() {
    let where_ = &["packets", "--where", "duration > 1", "x.pcap"][..];
    for (arguments, what) in [(&["sql", "SELECT 1"][..], "gannet sql"), (where_, "--where")] {
        let run = Run::of(gannet().args(arguments));
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
#[cfg(not(feature = "columns"))]
fn tasks_name_their_feature() {
    for arguments in [&["plan", "--json", "x.pcap"][..], &["run-task", "plan.json", "0"]] {
        let run = Run::of(gannet().args(arguments));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(run.stderr.contains("--features columns"), "{}", run.stderr);
    }
}

#[test]
#[cfg(not(feature = "self-signed"))]
fn an_echo_server_without_a_certificate_names_its_feature() {
    let run = Run::of(gannet().args(["replay", "--serve", "127.0.0.1:0", "--tls"]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("feature self-signed"), "{}", run.stderr);
}

#[test]
#[cfg(not(feature = "llvm"))]
fn an_engine_names_its_feature() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");
    let run = Run::of(gannet().args(["filter", "verify", "tcp", sample]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!((run.stdout + &run.stderr).contains("feature llvm"));
}
