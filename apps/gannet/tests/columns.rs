//! Logs as Parquet and Arrow files.
#![cfg(feature = "columns")]
// Tests may unwrap and print; the lints allow it in test functions, but not in their helpers.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::list;
use crate::support::sample;
use gannet_columns::ParquetRows;
use gannet_log::Fields;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_log::Logs;
use gannet_log::PackedRows;
use gannet_log::RowPacker;
use gannet_log::Shape;

fn rows(file: &Path) -> usize {
    let mut rows = ParquetRows::open(file).unwrap();
    let mut packed = RowPacker::default();
    while rows.next(&mut packed).unwrap() {}
    PackedRows::new(packed.rows()).count()
}

#[test]
fn one_run_writes_several_formats() {
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
fn partitions_have_folders() {
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
    // A folder has the name of the file.
    fs::create_dir_all(s.path("out/conn.parquet")).unwrap();
    let out = s.path("out");
    let args = ["analyze", "--format", "parquet", "-o", out.to_str().unwrap()];
    let run = Run::of(gannet().args(args).arg(&source));
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("conn.parquet"), "{}", run.stderr);
}

/// The rows of a Parquet file as a text log, which is written to the folder `out`.
fn text_of(parquet: &Path, format: Format, out: &Path) -> Vec<u8> {
    fs::create_dir_all(out).unwrap();
    let mut rows = ParquetRows::open(parquet).unwrap();
    let fields = Fields::Listed(Vec::leak(rows.fields.clone()));
    let shape = Shape { path: rows.path, opt_in: false, fields };
    let options = gannet_log::Options { dir: Some(out.to_owned()), format, ..Default::default() };
    let mut logs = Logs::new(options);
    let mut packed = RowPacker::default();
    while rows.next(&mut packed).unwrap() {
        logs.write_packed(shape, rows.opened, PackedRows::new(packed.rows()));
        packed.clear();
    }
    logs.set_time(rows.closed);
    logs.close().unwrap();
    let text = fs::read(out.join(format!("{}.log", rows.path))).unwrap();
    fs::remove_dir_all(out).unwrap();
    text
}

/// The folders below `folder` that have logs.
fn folders(folder: &Path, all: &mut Vec<PathBuf>) {
    let names = list(folder);
    if names.iter().any(|name| name.ends_with(".log")) {
        all.push(folder.to_owned());
    }
    for path in names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir()) {
        folders(&path, all);
    }
}

/// Number of compared logs, and the differences between text logs and those made from the Parquet files of the same run.
fn round_trip(captures: &[PathBuf], own: &Path) -> (usize, Vec<String>) {
    let analyze = |out: &Path, formats: &[&str]| {
        let args = ["analyze", "--each", "--quiet", "-C", "-t", "1", "--logs", "all", "--format"];
        let columns = ["--columns", "community_id,ja3,ja4", "-o"];
        Run::of(gannet().args(args).args(formats).args(columns).arg(out).args(captures)).code
    };
    let (logs, nanoseconds) = (own.join("logs"), own.join("nanoseconds"));
    let code = analyze(&logs, &["tsv,json,parquet"]);
    // Some captures are damaged: packets before the damage have rows.
    assert!(code == 0 || code == 2 || code == 3, "{captures:?}: {code}");
    // JSON shows nanoseconds.
    assert_eq!(analyze(&nanoseconds, &["parquet", "--time-unit", "ns"]), code);
    let mut of_captures = Vec::new();
    folders(&logs, &mut of_captures);
    let (mut compared, mut different) = (0, Vec::new());
    for folder in of_captures {
        let capture = folder.strip_prefix(&logs).unwrap();
        for name in list(&folder).iter().filter(|name| name.ends_with(".log")) {
            let stem = name.strip_suffix(".log").unwrap();
            let parquet = format!("{stem}.parquet");
            let exact = nanoseconds.join(capture).join(&parquet);
            for (text, parquet, format) in [
                (name.clone(), folder.join(&parquet), Format::Tsv),
                (format!("{stem}.json"), exact, Format::Json(JsonTimes::Epoch)),
            ] {
                let again = text_of(&parquet, format, &own.join("text"));
                if again != fs::read(folder.join(&text)).unwrap() {
                    different.push(format!("{} {text}", capture.display()));
                }
            }
            compared += 1;
        }
    }
    fs::remove_dir_all(&logs).unwrap();
    fs::remove_dir_all(&nanoseconds).unwrap();
    (compared, different)
}

/// For the sample and every capture of the conformance corpus, which is next to the project or in `GANNET_SHARED`: TSV and
/// JSON logs made from the Parquet files of a run equal those of the run, to the byte.
#[test]
fn text_logs_can_be_made_from_parquet_files() {
    let all = gannet_synth::corpus::captures(&["conformance/captures"]);
    // In memory if possible, since every Parquet file is synced to disk.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let own = folder.join(format!("gannet-round-trip-{}", std::process::id()));
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let own = own.join(worker.to_string());
        fs::create_dir_all(&own).unwrap();
        let (mut logs, mut different) = (0, Vec::new());
        while let Some(captures) = all.chunks(64).nth(next.fetch_add(1, Ordering::Relaxed)) {
            let (compared, some) = round_trip(captures, &own);
            logs += compared;
            different.extend(some);
        }
        (logs, different)
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (mut logs, mut different) = (0, Vec::new());
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..workers).map(|n| scope.spawn(move || work(n))).collect();
        for worker in running {
            let (compared, some) = worker.join().unwrap();
            logs += compared;
            different.extend(some);
        }
    });
    fs::remove_dir_all(&own).unwrap();
    eprintln!("{logs} logs of {} captures", all.len());
    assert!(logs > 5 && (all.len() == 1 || logs > 5_000), "{logs} logs");
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

#[test]
fn a_plan_that_cannot_be_read_is_named() {
    let s = Scratch::new("plans");
    let capture = s.file("sample.pcap", &sample());
    let mut command = gannet();
    let planned = Run::of(command.args(["plan", "--json", "--logs", "conn"]).arg(&capture));
    s.file("plan.json", planned.stdout.as_bytes());
    s.file("cut.json", &planned.stdout.as_bytes()[..40]);
    for (plan, number, words) in [
        ("missing.json", "0", "error: missing.json: No such file or directory"),
        ("cut.json", "0", "error: not a valid plan: cut.json: EOF while parsing"),
        ("sample.pcap", "0", "error: not a valid plan: sample.pcap: not a text file"),
        (
            "plan.json",
            "1",
            "error: not a valid number of a task: 1 is given, but the plan has one task, 0",
        ),
    ] {
        let mut command = gannet();
        let run = Run::of(command.current_dir(s.path("")).args(["run-task", plan, number]));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""));
        assert!(run.stderr.starts_with(words), "{}", run.stderr);
    }
    let run = Run::of(gannet().args(["plan", "--tasks", "0"]).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("expected a number from 1 to"), "{}", run.stderr);
}
