//! From a uid back to its packets: `gannet index` and `gannet packets --uid`.

// Tests may unwrap and print; the lints allow it in test functions, but not in their helpers.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;
use gannet_capture::Precision;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::traffic::Kind;

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
fn the_packets_of_a_row_are_found() {
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
        // The written packets are the printed ones.
        let again = run(&["packets", "-t", out.to_str().unwrap()]).stdout;
        assert_eq!(again.lines().count(), count);
        all += 1;
    }
    assert!(all > 3 && found <= whole, "{found} of {whole} packets of {all} connections");
    // `gannet index` makes the same index as `gannet analyze --index`.
    let index = s.path("sample.pcap.gannet/packets");
    let before = fs::read(&index).unwrap();
    fs::remove_file(&index).unwrap();
    let made = run(&["index", "-t", "2", name]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert!(fs::read(&index).unwrap() == before);
}

#[test]
fn a_missing_index_uid_or_capture_is_reported() {
    let s = Scratch::new("index-missing");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let none = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("has no index; create it with: gannet index "), "{}", none.stderr);
    assert_eq!(run(&["index", "-q", name]).code, 0);
    let none = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no capture has packets of Cx"), "{}", none.stderr);
    assert!(none.stderr.contains("hint: uids depend on -C, -f and --seed"), "{}", none.stderr);
    fs::write(&source, &sample()[..1_000]).unwrap();
    let unfit = run(&["packets", "--uid", "Cx", name]);
    assert_eq!(unfit.code, 2);
    assert!(unfit.stderr.contains("the capture has shrunk"), "{}", unfit.stderr);
    let two = run(&["analyze", "--index", "-o", s.path("out").to_str().unwrap(), name, name]);
    assert_eq!(two.code, 2);
    assert!(two.stderr.contains("--index needs exactly one capture file"), "{}", two.stderr);
    assert!(!Path::new(&s.path("out")).exists());
}

/// Rows of conn.log by the names of their columns.
fn conns(s: &Scratch, log: &str) -> Vec<BTreeMap<String, String>> {
    let text = s.read(log);
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = |row: &str| {
        let pairs = fields.split('\t').zip(row.split('\t'));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    rows.map(row).collect()
}

fn traffic(s: &Scratch, kind: Kind, count: usize, precision: Precision) -> PathBuf {
    let path = s.path("traffic.pcap");
    let options = WriteOptions { precision: Some(precision), ..WriteOptions::default() };
    let mut writer = Writer::create(&path, options).unwrap();
    gannet_synth::traffic::of(kind, count, 1).write(&mut writer).unwrap();
    writer.finish().unwrap();
    path
}

/// Without tunnels, fragments and ICMP errors, the packets of a connection are those between its endpoints.
#[test]
fn slices_agree_with_filters() {
    let s = Scratch::new("index-filter");
    for (kind, precision) in [(Kind::Http, Precision::Nanos), (Kind::Dns, Precision::Micros)] {
        let source = traffic(&s, kind, 40, precision);
        let name = source.to_str().unwrap();
        s.analyze("logs", &["--index"], &source);
        let rows = conns(&s, "logs/conn.log");
        let ends = |row: &BTreeMap<String, String>| {
            ["proto", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"]
                .map(|name| row[name].clone())
        };
        let mut checked = 0;
        for row in &rows {
            let of = ends(row);
            if rows.iter().filter(|other| ends(other) == of).count() > 1 {
                continue;
            }
            let [proto, orig, orig_port, resp, resp_port] = of;
            let filter = format!(
                "{proto} and ((src host {orig} and src port {orig_port} and dst host {resp} and dst port {resp_port}) \
                 or (src host {resp} and src port {resp_port} and dst host {orig} and dst port {orig_port}))"
            );
            let (a, b) = (s.path("a.pcap"), s.path("b.pcap"));
            let slice = run(&["packets", "--uid", &row["uid"], name, "-w", a.to_str().unwrap()]);
            assert_eq!(slice.code, 0, "{}", slice.stderr);
            let filtered = run(&["filter", &filter, name, "-w", b.to_str().unwrap()]);
            assert_eq!(filtered.code, 0, "{}", filtered.stderr);
            assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap(), "{filter}");
            checked += 1;
        }
        assert!(checked >= 10, "{checked} of {} connections", rows.len());
    }
}

/// Whenever a run is killed, files with their final names are complete: they have the bytes of a run to the end. An index
/// that a killed run did not replace is stale, and is refused.
#[test]
fn a_killed_run_leaves_no_incomplete_files() {
    let s = Scratch::new("index-killed");
    let source = traffic(&s, Kind::Http, 150, Precision::Nanos);
    let name = source.to_str().unwrap();
    let format = if cfg!(feature = "columns") { "parquet,arrow" } else { "tsv" };
    let index = s.path("traffic.pcap.gannet/packets");
    // A stale index, of the first half of the capture.
    let bytes = fs::read(&source).unwrap();
    fs::write(&source, &bytes[..bytes.len() / 2]).unwrap();
    run(&["index", "-q", name]);
    let stale = fs::read(&index).unwrap();
    fs::write(&source, bytes).unwrap();
    let begun = Instant::now();
    s.analyze("logs", &["--index", "--format", format], &source);
    let took = begun.elapsed();
    let whole = fs::read(&index).unwrap();
    let is_columns = |name: &str| name.ends_with(".parquet") || name.ends_with(".arrow");
    let uid = if cfg!(feature = "columns") {
        s.analyze("text", &["--logs", "conn"], &source);
        uids(&s, "text/conn.log").remove(0)
    } else {
        uids(&s, "logs/conn.log").remove(0)
    };
    let out = s.path("killed");
    let (mut random, mut indexes, mut refused, mut files, mut runs_to_end) = (1_u64, 0, 0, 0, 0);
    for n in 0..100 {
        match n % 2 {
            0 => fs::write(&index, &stale).unwrap(),
            _ => fs::remove_file(&index).unwrap_or_default(),
        }
        let _ = fs::remove_dir_all(&out);
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = gannet()
            .args(["analyze", "--quiet", "--index", "--format", format, "-o"])
            .arg(&out)
            .arg(&source)
            .spawn()
            .unwrap();
        std::thread::sleep(took.mul_f64((random >> 40) as f64 / f64::from(1 << 24)));
        child.kill().unwrap();
        runs_to_end += usize::from(child.wait().unwrap().success());
        match fs::read(&index) {
            Ok(found) if n % 2 == 0 && found == stale => {
                let slice = run(&["packets", "--uid", &uid, name]);
                assert_eq!(slice.code, 2);
                assert!(slice.stderr.contains("the capture has grown"), "{}", slice.stderr);
                refused += 1;
            }
            Ok(found) => {
                assert!(
                    found == whole,
                    "an index of {} bytes, not of {}",
                    found.len(),
                    whole.len()
                );
                indexes += 1;
            }
            Err(_) => assert_eq!(n % 2, 1, "the index of before is gone"),
        }
        for file in fs::read_dir(&out).into_iter().flatten() {
            let file = file.unwrap().file_name().into_string().unwrap();
            if is_columns(&file) {
                let found = fs::read(out.join(&file)).unwrap();
                assert!(found == fs::read(s.path("logs").join(&file)).unwrap(), "{file}");
                files += 1;
            }
        }
    }
    eprintln!("{runs_to_end} ran to the end; {indexes} indexes, {refused} refused; {files} files");
    // The next run replaces files of a killed one.
    assert_eq!(run(&["index", "-q", name]).code, 0);
    assert!(fs::read(&index).unwrap() == whole);
    assert!(runs_to_end < 100 && indexes < 100, "{runs_to_end} runs were not killed");
    assert!(refused > 0);
}

#[test]
fn packets_are_found_in_the_captures_of_a_folder() {
    let s = Scratch::new("index-folder");
    let source = s.file("day/a.pcap", &sample());
    s.file("day/notes.txt", b"no capture");
    s.analyze("logs", &[], &source);
    let uid = &uids(&s, "logs/conn.log")[0];
    let folder = s.path("day");
    let folder = folder.to_str().unwrap();
    let name = source.to_str().unwrap();
    let missing = run(&["packets", "--uid", uid, folder]);
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("a.pcap has no index; create it with: gannet index "),
        "{}",
        missing.stderr
    );
    assert_eq!(run(&["index", "--quiet", folder]).code, 0);
    let of_folder = run(&["packets", "--uid", uid, folder]);
    assert_eq!((of_folder.code, of_folder.stderr.as_str()), (0, ""));
    assert_eq!(of_folder.stdout, run(&["packets", "--uid", uid, name]).stdout);
    assert!(!of_folder.stdout.is_empty());
    let over = run(&["packets", "--uid", uid, name, "-w", name]);
    assert_eq!(over.code, 2, "{}", over.stderr);
}

#[test]
fn a_uid_without_packets_leaves_an_old_capture() {
    let s = Scratch::new("index-old");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    assert_eq!(run(&["index", "--quiet", name]).code, 0);
    let old = s.file("old.pcap", b"an old file");
    for path in [&old, &s.path("new.pcap")] {
        let none = run(&["packets", "--uid", "Cx", name, "-w", path.to_str().unwrap()]);
        assert_eq!(none.code, 2);
        assert!(none.stderr.contains("no capture has packets of Cx"), "{}", none.stderr);
    }
    assert_eq!(fs::read(&old).unwrap(), b"an old file");
    assert!(!s.path("new.pcap").exists());
}

#[test]
fn a_suffix_of_a_compression_that_is_not_written_is_refused() {
    let s = Scratch::new("suffix");
    let source = s.file("sample.pcap", &sample());
    let (name, out) = (source.to_str().unwrap(), s.path("one.pcap.bz2"));
    let out = out.to_str().unwrap();
    for command in [
        &["packets", "--uid", "Cx", name, "-w", out][..],
        #[cfg(target_os = "linux")]
        &["capture", "-i", "lo", "--packets", "0", "-w", out],
    ] {
        let refused = run(command);
        assert_eq!(refused.code, 2, "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(".bz2 cannot be written"), "{}", refused.stderr);
    }
    assert!(!s.path("one.pcap.bz2").exists());
    // A suffix that selects no format is accepted, and the format is reported.
    s.analyze("logs", &["--index"], &source);
    let uid = &uids(&s, "logs/conn.log")[0];
    let out = s.path("one.data");
    let written = run(&["packets", "--uid", uid, name, "-w", out.to_str().unwrap()]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert!(written.stderr.contains("one.data is written as pcap; "), "{}", written.stderr);
    assert!(fs::read(out).unwrap().starts_with(&[0xd4, 0xc3, 0xb2, 0xa1]));
}

#[test]
fn a_folder_without_captures_is_an_error() {
    let s = Scratch::new("folder-without");
    s.file("day/notes.txt", b"no capture");
    s.file("other/sample.pcap", &sample());
    let (empty, other, out) = (s.path("day"), s.path("other"), s.path("out"));
    let (empty, other) = (empty.to_str().unwrap(), other.to_str().unwrap());
    let out = out.to_str().unwrap();
    let analyze = |threads| ["analyze", "-o", out, "--each", "-t", threads];
    for command in [&["index"][..], &["info"], &analyze("1"), &analyze("2")] {
        for paths in [&[empty][..], &[other, empty]] {
            let refused = run(&[command, paths].concat());
            assert_eq!(refused.code, 2, "{command:?} {paths:?}: {}", refused.stderr);
            let text = "day: not a capture: a directory without captures";
            assert!(refused.stderr.contains(text), "{command:?}: {}", refused.stderr);
        }
        let read = run(&[command, &[other]].concat());
        assert_eq!(read.code, 0, "{command:?}: {}", read.stderr);
    }
}

#[test]
fn standard_input_has_no_index() {
    for arguments in [&["index", "-"][..], &["packets", "--uid", "CHhAvVGS1DHFjwGM9", "-"]] {
        let refused = run(arguments);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.starts_with("error: -: standard input "), "{}", refused.stderr);
    }
}
