//! Logs as Parquet and Arrow files.
#![cfg(feature = "columns")]
// Tests may unwrap; the lint knows that only of functions that are tests themselves.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use gannet_columns::ParquetRows;
use gannet_log::RowPacker;
use support::Run;
use support::Scratch;
use support::gannet;
use support::list;
use support::sample;

fn rows(file: &Path) -> usize {
    let mut rows = ParquetRows::open(file).unwrap();
    let mut packed = RowPacker::default();
    while rows.next(&mut packed).unwrap() {}
    gannet_log::PackedRows::new(packed.rows()).count()
}

#[test]
fn several_formats_come_of_one_run() {
    let s = Scratch::new("columns");
    let source = s.file("sample.pcap", &sample());
    s.analyze("text", &[], &source);
    s.analyze("all", &["--format", "tsv,json,parquet,arrow,tsv", "-t", "2"], &source);
    let logs = s.list("text");
    let mut all = s.list("all");
    all.sort();
    let mut expected: Vec<_> = logs
        .iter()
        .flat_map(|log| {
            ["log", "json", "parquet", "arrow"].map(|e| log.replace(".log", &format!(".{e}")))
        })
        .collect();
    expected.sort();
    assert_eq!(all, expected);
    for log in &logs {
        let text = s.read(&format!("text/{log}"));
        assert_eq!(s.read(&format!("all/{log}")), text);
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        let parquet = s.path(&format!("all/{}", log.replace(".log", ".parquet")));
        assert_eq!(rows(&parquet), lines, "{log}");
    }
}

#[test]
fn json_alone_is_json_log() {
    let s = Scratch::new("columns-json");
    let source = s.file("sample.pcap", &sample());
    s.analyze("a", &["--json"], &source);
    s.analyze("b", &["--format", "json"], &source);
    assert_eq!(s.read("a/conn.log"), s.read("b/conn.log"));
}

#[test]
fn parts_have_folders() {
    let s = Scratch::new("columns-parts");
    let source = s.file("sample.pcap", &sample());
    s.analyze("out", &["--format", "parquet", "--partition", "day", "--logs", "conn"], &source);
    assert_eq!(list(&s.path("out/conn")), ["day=2023-11-14"]);
    assert_eq!(list(&s.path("out/conn/day=2023-11-14")), ["part-0000.parquet"]);
}

#[test]
fn a_folder_that_cannot_be_written_fails() {
    let s = Scratch::new("columns-full");
    let source = s.file("sample.pcap", &sample());
    // A folder stands where the file is to be.
    std::fs::create_dir_all(s.path("out/conn.parquet.tmp")).unwrap();
    let out = s.path("out");
    let args = ["analyze", "--format", "parquet", "-o", out.to_str().unwrap()];
    let run = Run::of(gannet().args(args).arg(&source));
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("conn.parquet"), "{}", run.stderr);
}
