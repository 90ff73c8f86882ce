//! Command lines of users of tcpdump, tshark and Zeek, and the effects of pipes and terminals on a run.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::process::Command;
use std::process::Stdio;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::pcap;
use crate::support::sample;
use gannet_base::Time;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;

#[test]
fn minus_r_names_a_capture_everywhere() {
    let s = Scratch::new("minus-r");
    let capture = s.file("sample.pcap", &sample());
    let of = |args: &[&str]| {
        let run = Run::of(gannet().current_dir(s.path("")).args(args));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
        run.stdout
    };
    assert_eq!(of(&["info", "-r", "sample.pcap"]), of(&["info", "sample.pcap"]));
    assert_eq!(of(&["events", "-r", "sample.pcap"]), of(&["events", "sample.pcap"]));
    let dns = of(&["filter", "-c", "udp port 53", "sample.pcap"]);
    assert_eq!(of(&["filter", "-c", "-r", "sample.pcap", "udp port 53"]), dns);
    assert_eq!(of(&["filter", "-r", "sample.pcap", "-c", "udp", "port", "53"]), dns);
    assert_eq!(of(&["filter", "-c", "-r", "sample.pcap", "-e", "udp port 53"]), dns);
    assert_eq!(
        of(&["filter", "-c", "-r", "sample.pcap"]),
        of(&["filter", "-c", "", "sample.pcap"])
    );
    of(&["filter", "-r", "sample.pcap", "-w", "copy.pcap"]);
    assert_eq!(of(&["filter", "-c", "", "copy.pcap"]), "68\n");
    let run = Run::of(gannet().args(["replay", "-r", "x.pcap", "--to", "127.0.0.1:1"]));
    assert!(run.code == 2 && run.stderr.contains("x.pcap: "), "{}", run.stderr);
    drop(capture);
}

#[test]
fn options_of_other_programs_have_hints() {
    for (args, hint) in [
        (
            &["info", "-i", "eth0"][..],
            "hint: this command reads captures; use gannet capture -i INTERFACE -w - | gannet info -",
        ),
        (&["filter", "-i", "eth0", "tcp"], "gannet filter 'tcp' -"),
        (&["analyze", "-s", "a.sig", "x.pcap"], "hint: use gannet zeek -s SIGNATURES -r FILE"),
        (&["analyze", "-n", "x.pcap"], "hint: gannet never resolves addresses and ports"),
        (&["analyze", "x.pcap", "-w", "y.pcap"], "hint: use --out DIR"),
        (&["info", "x.pcap", "-w", "y.pcap"], "hint: use gannet filter FILTER FILE -w OUT"),
    ] {
        let run = Run::of(gannet().args(args));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}");
        assert!(run.stderr.starts_with("error: gannet "), "{}", run.stderr);
        assert!(run.stderr.contains(hint), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_filter_among_the_captures_has_a_hint() {
    let s = Scratch::new("filter-place");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().arg("packets").arg(&capture).arg("tcp port 80"));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("hint: a filter follows -f, or the capture after -r"));
}

#[test]
fn zero_threads_are_refused_with_a_message() {
    for count in ["0", "256", "many"] {
        let run = Run::of(gannet().args(["analyze", "-t", count, "x.pcap"]));
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("expected a number from 1 to 255"), "{}", run.stderr);
    }
}

#[test]
fn one_log_goes_to_standard_output() {
    let s = Scratch::new("stdout-one");
    let capture = s.file("sample.pcap", &sample());
    s.analyze("logs", &[], &capture);
    s.analyze("json", &["--json"], &capture);
    for threads in ["1", "2", "7"] {
        let out = |args: &[&str]| {
            let mut command = gannet();
            command.current_dir(s.path("")).args(["analyze", "-o", "-", "-t", threads]).args(args);
            let run = Run::of(command.arg(&capture));
            assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
            run.stdout
        };
        assert_eq!(out(&["--logs", "conn"]), s.read("logs/conn.log"));
        assert_eq!(out(&["--logs", "dns", "--json"]), s.read("json/dns.log"));
        let all = out(&[]);
        for name in s.list("json") {
            let path = name.strip_suffix(".log").unwrap();
            let head = format!("{{\"_path\":\"{path}\",");
            let rows = all.lines().filter_map(|line| line.strip_prefix(&head));
            let rows: String = rows.map(|row| format!("{{{row}\n")).collect();
            assert_eq!(rows, s.read(&format!("json/{name}")), "{name}");
        }
        assert_eq!(out(&["--json"]), all);
    }
    assert!(!s.path("-").exists(), "no folder of that name");
    let run = Run::of(gannet().args(["analyze", "--each", "-o", "-"]).arg(&capture));
    assert_eq!(run.code, 2, "{}", run.stderr);
    // TSV has no header for several logs: it is refused, not replaced by JSON.
    let tsv = ["analyze", "-o", "-", "--format", "tsv"];
    let run = Run::of(gannet().args(tsv).arg(&capture));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("hint: use --logs conn"), "{}", run.stderr);
    let run = Run::of(gannet().args(tsv).args(["--logs", "conn"]).arg(&capture));
    assert_eq!((run.code, run.stdout), (0, s.read("logs/conn.log")));
}

#[test]
fn options_of_a_format_that_is_not_written_are_refused() {
    let s = Scratch::new("formats");
    let capture = s.file("sample.pcap", &sample());
    let run = |args: &[&str]| {
        Run::of(gannet().current_dir(s.path("")).arg("analyze").args(args).arg(&capture))
    };
    for (option, value, words) in [
        ("--partition", "day", "error: --partition has no effect without Parquet or Arrow files"),
        ("--time-unit", "ns", "error: --time-unit has no effect without Parquet or Arrow files"),
        ("--json-times", "iso8601", "error: --json-times has no effect without JSON"),
    ] {
        let refused = run(&["-o", "logs", option, value]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
        assert!(refused.stderr.starts_with(words), "{}", refused.stderr);
        assert!(!s.path("logs").exists());
    }
    // All logs on standard output are JSON.
    let all = run(&["-o", "-", "--json-times", "iso8601"]);
    assert!(all.code == 0 && all.stdout.contains("\"ts\":\"2023-11-14T"), "{}", all.stderr);
}

#[test]
fn a_file_instead_of_a_folder_is_refused_with_a_message() {
    let s = Scratch::new("no-folder");
    let capture = s.file("sample.pcap", &sample());
    let file = s.file("file", b"x");
    for option in ["--out", "--extract-files"] {
        let mut command = gannet();
        command.current_dir(s.path("")).arg("analyze").arg(&capture).arg(option).arg(&file);
        let run = Run::of(&mut command);
        assert_eq!(run.code, 1);
        let words =
            format!("error: {}: is a file, but {option} expects a folder\n", file.display());
        assert_eq!(run.stderr, words);
    }
}

#[test]
fn a_suffix_that_is_not_written_is_refused() {
    let s = Scratch::new("suffix");
    let capture = s.file("sample.pcap", &sample());
    let out = s.path("x.pcap.bz2");
    let run = Run::of(gannet().args(["filter", "tcp"]).arg(&capture).arg("-w").arg(&out));
    assert_eq!((run.code, out.exists()), (1, false), "{}", run.stderr);
    assert!(run.stderr.contains(".bz2 cannot be written; use .gz"), "{}", run.stderr);
}

#[test]
fn packets_go_to_standard_output_without_a_file() {
    let s = Scratch::new("filter-stdout");
    let capture = s.file("sample.pcap", &sample());
    let mut first = gannet();
    first.args(["filter", "udp port 53"]).arg(&capture).stdout(Stdio::piped());
    let mut first = first.spawn().unwrap();
    let mut second = gannet();
    second.args(["filter", "-c", "", "-"]).stdin(first.stdout.take().unwrap());
    let run = Run::of(&mut second);
    assert!(first.wait().unwrap().success());
    assert_eq!((run.code, run.stdout.as_str()), (0, "8\n"), "{}", run.stderr);
}

#[test]
fn filter_counts_what_it_wrote() {
    let s = Scratch::new("filter-stats");
    let capture = s.file("sample.pcap", &sample());
    let out = s.path("dns.pcap");
    let mut command = gannet();
    command.args(["filter", "--stats", "udp port 53"]).arg(&capture).arg("-w").arg(&out);
    let run = Run::of(&mut command);
    assert_eq!(run.stderr, format!("68 packets read, 8 written to {}\n", out.display()));
}

#[test]
fn head_ends_every_command_quietly() {
    let s = Scratch::new("head");
    let capture = s.file("dns.pcap", &pcap(traffic::of(Kind::Dns, 20_000, 1).frames()));
    for args in [
        &["events"][..],
        &["analyze", "-o", "-"],
        &["analyze", "-o", "-", "--logs", "dns"],
        &["filter", "-r"],
        &["info", "--json"],
        &["packets"],
    ] {
        let mut command = gannet();
        command.args(args).arg(&capture).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_at_standard_output_is_an_error_of_every_command() {
    let s = Scratch::new("full");
    let capture = s.file("sample.pcap", &sample());
    let capture = capture.to_str().unwrap();
    for args in [
        &["--help"][..],
        &["analyze", "--help"],
        &["analyze", "-o", "-", capture],
        &["analyze", "-o", "-", "--logs", "dns", capture],
        &["completions", "bash"],
        &["events", capture],
        &["events", "--list"],
        &["filter", "tcp", capture],
        &["filter", "-c", "tcp", capture],
        &["info", capture],
        &["man"],
        &["packets", capture],
        &["zeek", "--help"],
        &["zeek", "--build-info"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = gannet().args(args).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        let words = "error: standard output: No space left on device (os error 28)\n";
        assert_eq!(stderr, words, "{args:?}");
    }
}

#[test]
fn wrong_checksums_are_counted_with_a_hint() {
    let s = Scratch::new("checksums");
    let trace = gannet_synth::sample();
    let mut wrong = trace.frames().to_vec();
    for frame in &mut wrong {
        // A byte of the checksum of TCP over IPv4 without options.
        if frame.bytes[12..14] == [8, 0] && frame.bytes[23] == 6 {
            frame.bytes[50] ^= 0x55;
        }
    }
    let capture = s.file("wrong.pcap", &pcap(&wrong));
    let run = s.analyze("logs", &[], &capture);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains(" of 68 packets have a wrong checksum"), "{}", run.stderr);
    assert!(run.stderr.contains("-C analyses them"), "{}", run.stderr);
    assert_eq!(s.analyze("two", &["-t", "2"], &capture).stderr, run.stderr);
    // A single wrong checksum among many packets.
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let mut trace = gannet_synth::Trace::new(Time::from_secs(1_000), 1);
    for port in 1_000..1_010 {
        let mut tcp = trace.connect(address(1, port), address(2, 80));
        tcp.send(&[0; 100_000]);
        tcp.close();
    }
    let mut few = trace.frames().to_vec();
    few.last_mut().unwrap().bytes[50] ^= 0x55;
    let name = s.file("few.pcap", &pcap(&few));
    let run = s.analyze("few", &[], &name);
    let words = format!("1 of {} packets have a wrong checksum", few.len());
    assert!(few.len() > 1_000 && run.stderr.contains(&words), "{}", run.stderr);
    let index = Run::of(gannet().arg("index").arg(&name));
    assert!(index.stderr.contains("have a wrong checksum"), "{}", index.stderr);
    assert_eq!(s.analyze("all", &["-C"], &capture).stderr, "");
    assert_eq!(s.analyze("good", &[], &s.file("good.pcap", &sample())).stderr, "");
}

#[test]
fn logs_of_an_earlier_run_are_named() {
    let s = Scratch::new("old-logs");
    let capture = s.file("sample.pcap", &sample());
    s.analyze("logs", &[], &capture);
    assert_eq!(s.analyze("logs", &[], &capture).stderr, "", "all are written again");
    let run = s.analyze("logs", &["-f", "udp port 53"], &capture);
    assert!(
        run.stderr.starts_with("warning: ") && run.stderr.contains("http.log"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("conn.log") && run.stderr.lines().count() == 1, "{}", run.stderr);
}

#[test]
fn each_keeps_relative_paths() {
    let s = Scratch::new("each-below");
    s.file("in/a/b.pcap", &sample());
    s.file("in/b.pcap.gz", &sample());
    s.file("c/b.pcap", &sample());
    let mut command = gannet();
    command.current_dir(s.path("")).args(["analyze", "--each", "-o", "out", "in", "c/b.pcap"]);
    let run = Run::of(command.arg("./in/a/b.pcap"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    for folder in ["out/a/b", "out/b", "out/c/b", "out/in/a/b"] {
        assert!(s.path(folder).join("conn.log").is_file(), "{folder}");
    }
}

#[test]
fn more_captures_than_files_may_be_open() {
    let s = Scratch::new("open-files");
    for n in 0..200 {
        s.file(&format!("in/{n:03}.pcap"), &sample());
    }
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_gannet")]);
    command.args(["analyze", "-o"]).arg(s.path("logs")).arg(s.path("in"));
    let run = Run::of(&mut command);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(s.path("logs/conn.log").is_file());
}

#[test]
fn man_pages_that_others_refer_to_exist() {
    let s = Scratch::new("man");
    let run = Run::of(gannet().args(["man", "--out"]).arg(s.path("man1")));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let pages = s.list("man1");
    assert!(pages.iter().any(|p| p == "gannet-filter-compile.1"), "{pages:?}");
    for page in &pages {
        let text = fs::read_to_string(s.path("man1").join(page)).unwrap().replace('\\', "");
        let cited = text.split_whitespace().filter_map(|word| word.split_once("(1)"));
        for (name, _) in cited.filter(|(name, _)| name.starts_with("gannet")) {
            assert!(pages.contains(&format!("{name}.1")), "{page} cites {name}");
        }
    }
}

#[test]
fn invalid_lines_of_query_lists_are_reported_with_numbers() {
    let s = Scratch::new("query-list");
    let list =
        s.file("list.txt", b"# names\nwww.example.com A\nwww..example.com A\nexample.com WHAT\n");
    let replay = |list: &std::path::Path| {
        let mut command = gannet();
        command.args(["replay", "--to", "127.0.0.1:9", "--no-answers", "--list"]);
        Run::of(command.arg(list))
    };
    let run = replay(&list);
    assert!(
        run.stderr.contains("list.txt:3: 'www..example.com' is not a domain name"),
        "{}",
        run.stderr
    );
    let run = replay(&s.file("none.txt", b"\nexample.com WHAT\n"));
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("none.txt:2: 'WHAT' is not a record type"), "{}", run.stderr);
}
