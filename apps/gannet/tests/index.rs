//! From a uid back to its packets: `gannet index` and `gannet packets --uid`.

// Tests may unwrap; the lint knows that only of functions that are tests themselves.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use support::Run;
use support::Scratch;
use support::gannet;
use support::sample;

/// Rows of a log as uid and one other column.
fn uids(s: &Scratch, log: &str) -> Vec<String> {
    let text = s.read(log);
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
    let at = fields.split('\t').position(|name| name == "uid").unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split('\t').nth(at).unwrap().to_owned()).collect()
}

fn run(args: &[&str]) -> Run {
    Run::of(gannet().args(args))
}

#[test]
fn the_packets_of_a_row_come_back() {
    let s = Scratch::new("index");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    s.analyze("logs", &["--index"], &source);
    let whole = run(&["packets", name]).stdout.lines().count();
    let (mut found, mut all) = (0, 0);
    for uid in uids(&s, "logs/conn.log") {
        let lines = run(&["packets", "--uid", &uid, name]);
        assert_eq!(lines.code, 0, "{}", lines.stderr);
        let count = lines.stdout.lines().count();
        assert!(count > 0);
        found += count;
        let out = s.path("slice.pcap");
        let written = run(&["packets", "--uid", &uid, name, "-w", out.to_str().unwrap()]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        // What is written is what was printed.
        let again = run(&["packets", "-t", out.to_str().unwrap()]).stdout;
        assert_eq!(again.lines().count(), count);
        all += 1;
    }
    assert!(all > 3 && found <= whole, "{found} of {whole} packets of {all} connections");
    // The command of its own makes the same index.
    let index = s.path("sample.pcap.gannet/packets");
    let before = fs::read(&index).unwrap();
    fs::remove_file(&index).unwrap();
    let made = run(&["index", "-t", "2", name]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(fs::read(&index).unwrap() == before);
}

#[test]
fn what_is_not_there_is_said() {
    let s = Scratch::new("index-missing");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let none = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("has no index: gannet index "), "{}", none.stderr);
    assert_eq!(run(&["index", "-q", name]).code, 0);
    let none = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no capture has packets of Cx"), "{}", none.stderr);
    fs::write(&source, &sample()[..1_000]).unwrap();
    let unfit = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(unfit.code, 2);
    assert!(unfit.stderr.contains("the capture has shrunk"), "{}", unfit.stderr);
    let two = run(&["analyze", "--index", "-o", s.path("out").to_str().unwrap(), name, name]);
    assert_eq!(two.code, 2);
    assert!(two.stderr.contains("--index is for one capture"), "{}", two.stderr);
    assert!(!Path::new(&s.path("out")).exists());
}
