//! `gannet info` as text and as JSON.

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

#[test]
fn text_is_the_default() {
    let s = Scratch::new("info-text");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().arg("info").arg(&capture).arg(&capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let file = format!("file            {}\n", capture.display());
    assert!(run.stdout.starts_with(&file), "{}", run.stdout);
    assert!(run.stdout.contains("\npackets         68\n"), "{}", run.stdout);
    assert!(run.stdout.contains("\nearliest        2023-11-14T22:13:20."), "{}", run.stdout);
    assert_eq!(run.stdout.matches(&file).count(), 2);
    assert!(run.stdout.contains("\n\nfile "), "an empty line between files");
}

#[test]
fn json_is_printed_on_request() {
    let s = Scratch::new("info-json");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["info", "--json"]).arg(&capture).arg(&capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let lines: Vec<_> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(line.starts_with("{\"file\":\"") && line.ends_with('}'), "{line}");
        assert!(line.contains("\"packets\":68,"), "{line}");
        assert!(line.contains("\"encapsulation\":\"ETHERNET\""), "{line}");
    }
}

#[test]
fn damage_is_reported_with_exit_code_3() {
    let s = Scratch::new("info-cut");
    let capture = s.file("cut.pcap", &sample()[..3_000]);
    let run = Run::of(gannet().args(["info", "--json"]).arg(&capture));
    assert_eq!(run.code, 3);
    assert!(run.stdout.contains("\"damage\":\""), "{}", run.stdout);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
}

#[test]
fn a_bad_file_does_not_stop_the_rest() {
    let s = Scratch::new("info-some");
    let letter = s.file("letter", b"Dear reader, this is no capture at all.");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["info", "--json"]).arg(&letter).arg(&capture));
    assert_eq!(run.code, 2);
    assert_eq!(run.stdout.lines().count(), 1);
}

#[test]
fn standard_input() {
    let run = Run::with_input(gannet().args(["info", "-"]), &sample());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("file            standard input\n"), "{}", run.stdout);
}
