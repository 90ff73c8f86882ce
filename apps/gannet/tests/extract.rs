//! `gannet analyze --extract-files`: contents of files, in a folder.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::process::Command;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

/// The rows of files.log: type, name of the extracted file, bytes seen, cut off, bytes extracted, SHA-256.
fn rows(s: &Scratch, logs: &str) -> Vec<Vec<String>> {
    let log = s.read(&format!("{logs}/files.log"));
    let fields: Vec<_> =
        log.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap().split('\t').collect();
    let wanted =
        ["mime_type", "extracted", "seen_bytes", "extracted_cutoff", "extracted_size", "sha256"];
    let rows = log.lines().filter(|l| !l.starts_with('#'));
    rows.map(|row| {
        let row: Vec<_> = row.split('\t').collect();
        let at = |name: &str| fields.iter().position(|f| *f == name).unwrap();
        wanted.iter().map(|name| row[at(name)].to_owned()).collect()
    })
    .collect()
}

#[test]
fn contents_are_those_that_were_hashed() {
    let s = Scratch::new("extract");
    let capture = s.file("sample.pcap", &sample());
    for threads in ["1", "2", "7"] {
        let out = s.path(&format!("files-{threads}"));
        let args = ["--hash-files", "-t", threads, "--extract-files", out.to_str().unwrap()];
        s.analyze(threads, &args, &capture);
        let rows = rows(&s, threads);
        assert_eq!(rows.len(), s.list(&format!("files-{threads}")).len());
        for row in rows {
            let [_, name, seen, cutoff, size, hash] = &row[..] else { panic!("{row:?}") };
            let contents = fs::read(out.join(name)).unwrap();
            assert_eq!((cutoff.as_str(), size), ("F", seen), "{row:?}");
            assert_eq!(contents.len().to_string(), *size);
            let sum = Command::new("sha256sum").arg(out.join(name)).output().unwrap().stdout;
            assert!(String::from_utf8(sum).unwrap().starts_with(hash.as_str()), "{row:?}");
        }
    }
}

#[test]
fn types_and_sizes_are_limited() {
    let s = Scratch::new("extract-some");
    let capture = s.file("sample.pcap", &sample());
    let out = s.path("files");
    let folder = ["--extract-files", out.to_str().unwrap()];
    s.analyze("logs", &[&folder[..], &["--extract-types", "text/h*,image/*"]].concat(), &capture);
    let rows_of_types = rows(&s, "logs");
    for row in &rows_of_types {
        let wanted = row[0] == "text/html" || row[0].starts_with("image/");
        assert_eq!(row[1] != "-", wanted, "{row:?}");
    }
    assert!(rows_of_types.iter().any(|row| row[1].ends_with(".html")), "{rows_of_types:?}");
    s.analyze("cut", &[&folder[..], &["--extract-limit", "10"]].concat(), &capture);
    for row in rows(&s, "cut") {
        assert_eq!((row[3].as_str(), row[4].as_str()), ("T", "10"), "{row:?}");
        assert_eq!(fs::read(out.join(&row[1])).unwrap().len(), 10);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let s = Scratch::new("extract-error");
    let capture = s.file("sample.pcap", &sample());
    let file = s.file("file", b"in the way");
    let mut command = gannet();
    command.arg("analyze").arg("-o").arg(s.path("logs")).arg("--extract-files").arg(&file);
    let run = Run::of(command.arg(&capture));
    assert!(run.code == 1 && run.stderr.contains("/file: "), "{}", run.stderr);
}

#[test]
fn a_type_without_a_slash_is_refused() {
    let s = Scratch::new("extract-type");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(
        gannet()
            .args(["analyze", "--extract-files", "x", "--extract-types", "image"])
            .arg(&capture),
    );
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("'image' is not a MIME type, like image/png or image/*"),
        "{}",
        run.stderr
    );
}
