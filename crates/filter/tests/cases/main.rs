//! The published cases of libpcap: which expressions it accepts and refuses, and with which
//! messages, the lengths of its programs, and their verdicts on packets. The percentages are
//! stored; they may rise, never fall.
//!
//! The cases are in `filters` below `GANNET_SHARED` or `../shared`, captures in `conformance`.
//! `GANNET_SHOW` lists the cases that fail.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod data;
mod features;
mod verdicts;

use data::{Names, cases, names, options, shared, string, strings};
use gannet_filter::{Options, Program, compile, dlt};

fn attempt(json: &str, names: &Names) -> Result<Program, String> {
    let link = dlt::by_name(&string(json, "dlt")).ok_or("link type")?;
    compile(&string(json, "expr"), link, &options(json), names)
        .map(|c| c.program().clone())
        .map_err(|e| e.message().to_owned())
}

/// The numbers of a list under a key, each as `true` if it is not zero.
fn numbers(json: &str, key: &str) -> Vec<bool> {
    let Some((_, rest)) = json.split_once(&format!("\"{key}\": [")) else { return Vec::new() };
    let list = rest.split(']').next().unwrap();
    list.split(',').filter(|n| !n.trim().is_empty()).map(|n| n.trim() != "0").collect()
}

/// The verdicts of gannet's program on every packet of a capture.
fn verdicts(json: &str, file: &std::path::Path, names: &Names) -> Vec<bool> {
    let options = Options { offline: true, ..options(json) };
    let mut out = Vec::new();
    let mut reader = gannet_capture::Reader::open(file).unwrap();
    let mut program = None;
    while let Ok(Some(batch)) = reader.next_batch() {
        for packet in batch.iter() {
            let program = program.get_or_insert_with(|| {
                let link = dlt::of_file(packet.link_type.0);
                compile(&string(json, "expr"), link, &options, names)
                    .ok()
                    .map(|c| c.program().clone())
            });
            let run = |p: &Program| p.run(packet.data, packet.wire_len) != 0;
            out.push(program.as_ref().is_some_and(run));
        }
    }
    out
}

#[test]
fn the_published_cases() {
    let Some(folder) = shared("filters") else {
        eprintln!("skipped: no cases: set GANNET_SHARED to where filters/accept.jsonl lies");
        return;
    };
    let read = |name: &str| cases(name).unwrap();
    let names = names(&read("names.json"));
    let show = std::env::var_os("GANNET_SHOW").is_some();
    let (mut accepted, mut all, mut short, mut optimized, mut alike) = (0, 0, 0, 0, 0);
    for json in read("accept.jsonl").lines() {
        all += 1;
        match attempt(json, &names) {
            Ok(program) => {
                accepted += 1;
                let theirs = strings(json, "program");
                alike += usize::from(program.to_string().lines().eq(theirs.iter()));
                if json.contains("\"optimize\": true") {
                    optimized += 1;
                    short += usize::from(program.insns().len() <= theirs.len());
                    if show && program.insns().len() > theirs.len() {
                        eprintln!(
                            "long {} {}: {}",
                            program.insns().len(),
                            theirs.len(),
                            string(json, "expr")
                        );
                    }
                }
            }
            Err(e) if show => {
                eprintln!("refused: {} {:?} {e}", string(json, "dlt"), string(json, "expr"));
            }
            Err(_) => (),
        }
    }
    let (mut refused, mut told, mut bad) = (0, 0, 0);
    for json in read("reject.jsonl").lines() {
        bad += 1;
        let expected = string(json, "message");
        match attempt(json, &names) {
            Err(message) => {
                refused += 1;
                told += usize::from(message.contains(&expected));
                if show && !message.contains(&expected) {
                    eprintln!("told {message:?}, not {expected:?}: {}", string(json, "expr"));
                }
            }
            Ok(_) if show => {
                eprintln!(
                    "accepted: {} {:?} {expected}",
                    string(json, "dlt"),
                    string(json, "expr")
                );
            }
            Ok(_) => (),
        }
    }
    let (mut same, mut applied) = (0, 0);
    for json in read("apply.jsonl").lines() {
        applied += 1;
        let file = folder.join("captures").join(string(json, "savefile"));
        if verdicts(json, &file, &names) == numbers(json, "verdicts") {
            same += 1;
        } else if show {
            eprintln!("verdicts: {} of {}", string(json, "expr"), string(json, "savefile"));
        }
    }
    let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
    check_percentages(&[
        ("accepted", percent(accepted, all)),
        ("refused", percent(refused, bad)),
        ("message", percent(told, bad)),
        ("no longer", percent(short, optimized)),
        ("the same text", percent(alike, all)),
        ("applied", percent(same, applied)),
    ]);
}

/// Fails if a percentage fell below the stored one.
fn check_percentages(now: &[(&str, f64)]) {
    for (name, value) in now {
        eprintln!("{name} {value:.2}");
    }
    for (name, value) in now {
        let kept = include_str!("snapshot").lines().find_map(|l| l.strip_prefix(name));
        let least: f64 = kept.unwrap_or("100").trim().parse().unwrap();
        assert!(value + 0.01 >= least, "{name} fell from {least} to {value:.2}");
    }
}
