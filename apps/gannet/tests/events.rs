//! `gannet events`: which events are printed, and how.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::process::Output;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sample.pcap");

fn events(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gannet")).arg("events").args(args).output().unwrap()
}

/// The names of the events on standard output, in order.
fn names(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let name = |line: &str| {
        let (_, rest) = line.split_once("\"event\":\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    text.lines().map(name).collect()
}

#[test]
fn events_requested_by_name_are_printed() {
    let output = events(&["--only", "dns_request,http_re*", SAMPLE]);
    assert!(output.status.success());
    let names = names(&output);
    assert!(names.iter().any(|n| n == "dns_request") && names.iter().any(|n| n == "http_reply"));
    assert!(names.iter().all(|n| n == "dns_request" || n.starts_with("http_re")), "{names:?}");
}

#[test]
fn frequent_events_are_printed_on_request() {
    let usual = names(&events(&[SAMPLE]));
    assert_eq!(usual.first().map(String::as_str), Some("zeek_init"));
    assert_eq!(usual.last().map(String::as_str), Some("zeek_done"));
    assert!(!usual.iter().any(|n| n == "dns_query_reply"));
    let named = names(&events(&["--only", "dns_query_reply", SAMPLE]));
    assert!(!named.is_empty());
    let all = names(&events(&["--all", SAMPLE]));
    assert!(all.len() > usual.len() && all.iter().any(|n| n == "dns_query_reply"));
}

#[test]
fn the_end_of_a_capture_is_an_event_with_its_path() {
    let output = events(&["--only", "Pcap::file_done,net_done", SAMPLE]);
    assert_eq!(names(&output), ["Pcap::file_done", "net_done"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().next().unwrap().contains("sample.pcap"), "{text}");
}

#[test]
fn the_output_is_the_same_for_any_number_of_threads() {
    for kinds in [&["--only", "*"][..], &["--all"], &[], &["--disable", "HTTP"]] {
        let of = |threads| events(&[kinds, &["-t", threads, SAMPLE]].concat());
        let alone = of("1");
        assert!(alone.status.success() && !alone.stdout.is_empty());
        for threads in ["2", "7"] {
            let output = of(threads);
            assert_eq!(output.status.code(), Some(0));
            assert!(output.stdout == alone.stdout, "{kinds:?}, {threads} threads");
        }
    }
}

#[test]
fn an_unknown_name_is_refused() {
    let output = events(&["--only", "dns_reqest", SAMPLE]);
    assert_eq!(output.status.code(), Some(2));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.contains("no event is named 'dns_reqest'"), "{says}");
    assert!(says.contains("hint: did you mean dns_request?"), "{says}");
    let output = events(&["--only", "nothing_*", SAMPLE]);
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.contains("hint: use gannet events --list to print all names"), "{says}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    // Much output is written when the buffer is full, little output only at the end.
    for (only, threads) in [("*", "1"), ("*", "3"), ("dns_request", "1"), ("dns_request", "3")] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_gannet"))
            .args(["events", "--only", only, "-t", threads, SAMPLE])
            .stdout(full)
            .output()
            .unwrap();
        let says = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{only}, {threads} threads: {says}");
        assert!(says.starts_with("error: standard output: "), "{says}");
        assert_eq!(says.lines().count(), 1, "{says}");
    }
}

#[test]
fn counts_are_those_of_the_events_that_are_printed() {
    let mut printed = std::collections::HashMap::<String, u64>::new();
    for name in names(&events(&["--all", SAMPLE])) {
        *printed.entry(name).or_default() += 1;
    }
    for threads in ["1", "2", "7"] {
        let output = events(&["--all", "--count", "-t", threads, SAMPLE]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<(u64, &str)> = text
            .lines()
            .map(|line| line.trim_start().split_once(' ').unwrap())
            .map(|(count, name)| (count.parse().unwrap(), name))
            .collect();
        assert!(lines.is_sorted_by_key(|(count, _)| std::cmp::Reverse(*count)), "{text}");
        let counted = lines.iter().map(|(count, name)| ((*name).to_owned(), *count));
        assert_eq!(counted.collect::<std::collections::HashMap<_, _>>(), printed);
    }
    let json = events(&["--count", "--json", "--only", "zeek_*", SAMPLE]);
    assert_eq!(String::from_utf8(json.stdout).unwrap(), "{\"zeek_done\":1,\"zeek_init\":1}\n");
}
