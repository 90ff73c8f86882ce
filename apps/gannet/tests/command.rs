//! The command as people run it: arguments in; logs, messages and exit codes out.

use std::fs;

use crate::support;
use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

/// Connections of the sample: four of DNS, two of HTTP, one of NTP, one of SMTP, a refused one, a ping.
const CONNECTIONS: usize = 10;

fn rows(log: &str) -> usize {
    log.lines().filter(|l| !l.starts_with('#')).count()
}

#[test]
fn a_capture_has_logs_and_exit_code_0() {
    let s = Scratch::new("good");
    let capture = s.file("sample.pcap", &sample());
    let out = s.path("deep/logs");
    let run = Run::of(gannet().arg("analyze").arg("-o").arg(&out).arg(&capture));
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    let conn = s.read("deep/logs/conn.log");
    assert!(conn.starts_with("#separator \\x09\n"), "{conn}");
    assert!(conn.contains("#path\tconn\n"), "{conn}");
    assert_eq!(rows(&conn), CONNECTIONS);
    assert!(conn.lines().last().is_some_and(|l| l.starts_with("#close\t")), "{conn}");
}

#[test]
fn options_without_a_command_are_those_of_zeek() {
    let s = Scratch::new("zeek");
    let capture = s.file("sample.pcap", &sample());
    let of = |name: &str, args: &[&str]| {
        let out = s.path(name);
        fs::create_dir_all(&out).unwrap();
        let run = Run::of(gannet().current_dir(&out).args(args).arg(&capture));
        assert_eq!(run.code, 0, "{}", run.stderr);
        s.read(&format!("{name}/conn.log"))
    };
    let usual = of("usual", &["analyze", "-C"]);
    assert_eq!(of("r", &["-C", "-r"]), usual);
    assert_eq!(of("joined", &["-Cr"]), usual);
    assert_eq!(of("analyze", &["analyze", "-C", "--read"]), usual);
}

#[test]
fn runs_are_the_same_to_the_byte_and_seeds_change_uids() {
    let s = Scratch::new("seed");
    let capture = s.file("sample.pcap", &sample());
    let of = |name: &str, seed: &str| {
        s.analyze(name, &["--seed", seed], &capture);
        s.read(&format!("{name}/conn.log"))
    };
    assert_eq!(of("a", "1"), of("b", "1"));
    assert_ne!(of("c", "1"), of("d", "2"));
}

#[test]
fn json_has_the_requested_times() {
    let s = Scratch::new("json");
    let capture = s.file("sample.pcap", &sample());
    let first = |name: &str, args: &[&str]| {
        s.analyze(name, args, &capture);
        let log = s.read(&format!("{name}/conn.log"));
        assert!(log.lines().all(|l| l.starts_with('{') && l.ends_with('}')), "{log}");
        log.lines().min().unwrap_or_default().to_owned()
    };
    let epoch = first("epoch", &["--json"]);
    assert!(epoch.starts_with("{\"ts\":1700000000."), "{epoch}");
    let iso = first("iso", &["--json", "--json-times", "iso8601"]);
    assert!(iso.starts_with("{\"ts\":\"2023-11-14T22:13:20."), "{iso}");
    let millis = first("millis", &["--json", "--json-times", "millis"]);
    assert!(millis.starts_with("{\"ts\":1700000000"), "{millis}");
    assert!(!millis[..22].contains('.'), "{millis}");
}

#[test]
fn only_requested_logs_are_written() {
    let s = Scratch::new("logs");
    let capture = s.file("sample.pcap", &sample());
    s.analyze("some", &["--logs", "conn"], &capture);
    assert_eq!(s.list("some"), ["conn.log"]);
}

#[test]
fn unknown_names_of_logs_and_columns_are_wrong_usage() {
    let s = Scratch::new("unknown");
    let capture = s.file("sample.pcap", &sample());
    for (args, error) in [
        (["--logs", "conn,cnn"], "error: --logs: no log is named 'cnn'\n"),
        (["--columns", "ja3,ja5"], "error: --columns: no optional column is named 'ja5'\n"),
    ] {
        let out = s.path("none");
        let run = Run::of(gannet().arg("analyze").args(args).arg("-o").arg(&out).arg(&capture));
        assert_eq!((run.code, out.exists()), (2, false), "{args:?}");
        assert!(run.stderr.starts_with(error) && run.stderr.contains("hint: "), "{}", run.stderr);
    }
}

#[test]
fn filters_choose_packets_and_bad_ones_are_marked() {
    let s = Scratch::new("filter");
    let capture = s.file("sample.pcap", &sample());
    s.analyze("udp", &["-f", "udp port 53"], &capture);
    let conn = s.read("udp/conn.log");
    assert_eq!(conn.lines().filter(|l| l.contains("\tudp\t")).count(), 4);
    assert_eq!(rows(&conn), 4);

    let run = Run::of(gannet().args(["analyze", "-f", "tcp prot 80"]).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("error: --filter: "), "{}", run.stderr);
    assert!(run.stderr.contains("\n  tcp prot 80\n      ^^^^\n"), "{}", run.stderr);
}

#[test]
fn local_nets_decide_what_is_local() {
    let s = Scratch::new("local");
    let capture = s.file("sample.pcap", &sample());
    let json = ["--json", "--local-nets"];
    s.analyze("some", &[&json[..], &["192.0.2.0/24,2001:db8:0:1::/64"]].concat(), &capture);
    let conn = s.read("some/conn.log");
    assert_eq!(conn.matches("\"local_orig\":true").count(), CONNECTIONS);
    assert!(conn.contains("\"local_resp\":false"), "{conn}");
    let run = Run::of(gannet().args(["analyze", "--local-nets", "10.0.0.0"]).arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("'10.0.0.0' is not a subnet"), "{}", run.stderr);
}

#[test]
fn hashes_are_logged_on_request() {
    let s = Scratch::new("hash");
    let capture = s.file("sample.pcap", &sample());
    let hashes = |name, args| {
        s.analyze(name, args, &capture);
        s.read(&format!("{name}/files.log")).contains("\"sha256\":\"")
    };
    assert!(!hashes("plain", &["--json"]));
    assert!(hashes("hashed", &["--json", "--hash-files"]));
}

#[test]
fn standard_input() {
    let s = Scratch::new("stdin");
    let out = s.path("logs");
    let run = Run::with_input(gannet().args(["analyze", "-", "-o"]).arg(&out), &sample());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let capture = s.file("sample.pcap", &sample());
    s.analyze("file", &[], &capture);
    assert_eq!(s.read("logs/conn.log"), s.read("file/conn.log"));
}

#[test]
fn several_files_are_one_stream() {
    let s = Scratch::new("several");
    let whole = s.file("sample.pcap", &sample());
    s.analyze("whole", &[], &whole);
    // The files divide connections, and are given in the wrong order, one of them in a folder.
    let (first, second) = support::rotated(30);
    let b = s.file("in/b.pcap", &first);
    let a = s.file("a.pcap", &second);
    let folder = b.parent().unwrap();
    let out = s.path("parts");
    let run = Run::of(gannet().arg("analyze").arg("-o").arg(&out).args([a.as_path(), folder]));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(s.list("parts"), s.list("whole"));
    assert_eq!(s.read("parts/conn.log"), s.read("whole/conn.log"));
}

#[test]
fn a_file_under_two_paths_is_reported() {
    let s = Scratch::new("repeated");
    let day = s.file("day/a.pcap", &sample());
    let folder = s.path("day");
    let expected = format!(
        "warning: {} is given more than once; its packets are read each time\n",
        day.display()
    );
    let out = s.path("out");
    let args: [&[&str]; 4] = [
        &["analyze", "-o", out.to_str().unwrap()],
        &["events"],
        &["packets"],
        &["filter", "-c", ""],
    ];
    for args in args {
        let run = Run::of(gannet().args(args).args([day.as_path(), folder.as_path()]));
        assert_eq!((run.code, run.stderr.as_str()), (0, expected.as_str()), "{args:?}");
    }
}

#[test]
fn each_file_has_a_folder_and_bad_ones_do_not_stop_the_rest() {
    let s = Scratch::new("each");
    let good = s.file("a/day.pcap", &sample());
    let bad = s.file("b/letter.pcap", b"Dear reader, this is no capture at all.");
    let cut = s.file("c/day.pcap", &sample()[..3_000]);
    let last = s.file("d/night.pcap", &sample());
    let files = [good.as_path(), &bad, &cut, &last];
    let out = s.path("out");
    let run = Run::of(gannet().args(["analyze", "--each", "-o"]).arg(&out).args(files));
    assert_eq!(run.code, 2, "the worst outcome counts: {}", run.stderr);
    assert_eq!(s.list("out"), ["day", "day-2", "night"]);
    assert_eq!(s.read("out/day/conn.log"), s.read("out/night/conn.log"));
    assert!(s.read("out/day-2/conn.log").len() < s.read("out/day/conn.log").len());
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("letter.pcap: not a capture"), "{lines:?}");
    assert!(lines[1].contains("c/day.pcap: cut short in packet"), "{lines:?}");
    let folder = |name: &str| out.join(name).display().to_string();
    assert_eq!(
        lines[2],
        format!(
            "note: {}: its logs are in {}, because {} is already used",
            cut.display(),
            folder("day-2"),
            folder("day")
        )
    );
}

#[test]
fn captures_in_parallel_have_the_same_messages_and_logs() {
    let s = Scratch::new("spread");
    for n in 0..40 {
        let all = sample();
        let name = format!("in/{n:02}.pcap");
        match n % 5 {
            0 => s.file(&name, &all[..1_000 + 97 * n]),
            1 => s.file(&name, b"Dear reader, this is no capture at all."),
            _ => s.file(&name, &all),
        };
    }
    let missing = s.path("missing.pcap");
    let run = |threads: &str, name: &str| {
        let mut command = gannet();
        command.args(["analyze", "--each", "--stats", "-t", threads, "-o"]).arg(s.path(name));
        let run = Run::of(command.arg(s.path("in")).arg(&missing));
        let told = run
            .stderr
            .lines()
            .filter(|l| !["time", "peak", "logs in"].iter().any(|of| l.starts_with(of)));
        (run.code, told.map(str::to_owned).collect::<Vec<_>>())
    };
    let alone = run("1", "alone");
    assert_eq!((alone.0, s.list("alone").len()), (2, 32));
    assert_eq!(alone.1.iter().filter(|l| l.contains("cut short")).count(), 8, "{:?}", alone.1);
    for threads in ["2", "7"] {
        assert_eq!(run(threads, threads), alone);
        assert_eq!(s.list(threads), s.list("alone"));
        for folder in s.list("alone") {
            let log = |of: &str| s.read(&format!("{of}/{folder}/conn.log"));
            assert_eq!(log(threads), log("alone"), "{folder}");
        }
    }
}

#[test]
fn other_files_in_folders_are_skipped() {
    let s = Scratch::new("folder");
    s.file("in/day.pcap", &sample());
    s.file("in/notes.txt", b"Twelve of them, diving.");
    for (name, args) in [("one", &[][..]), ("each", &["--each"])] {
        let run = s.analyze(name, args, &s.path("in"));
        assert!(run.stderr.starts_with("warning: skipped "), "{}", run.stderr);
        assert!(run.stderr.contains("notes.txt"), "{}", run.stderr);
        let quiet = s.analyze(name, &[args, &["-q"]].concat(), &s.path("in"));
        assert_eq!(quiet.stderr, "");
    }
    assert_eq!(s.list("each"), ["day"]);
}

#[test]
fn a_truncated_capture_has_its_rows_and_exit_code_3() {
    let s = Scratch::new("cut");
    let capture = s.file("cut.pcap", &sample()[..3_000]);
    let out = s.path("logs");
    let run = Run::of(gannet().arg("analyze").arg("-o").arg(&out).arg(&capture));
    assert_eq!(run.code, 3);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert!(run.stderr.contains("cut.pcap: cut short in packet "), "{}", run.stderr);
    let conn = s.read("logs/conn.log");
    assert!(conn.lines().any(|l| l.contains("\tudp\t")), "{conn}");
    assert!(conn.lines().last().is_some_and(|l| l.starts_with("#close")), "{conn}");
}

#[test]
fn no_capture_is_one_line_and_exit_code_2() {
    let s = Scratch::new("none");
    let letter = s.file("letter.txt", b"Dear reader, this is no capture at all.");
    let missing = s.path("missing.pcap");
    let empty = s.file("empty", b"");
    for file in [letter, missing, empty] {
        for command in ["analyze", "info"] {
            let run = Run::of(gannet().current_dir(s.path("")).arg(command).arg(&file));
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", file.display());
            assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
            assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
        }
    }
    assert_eq!(s.list(""), ["empty", "letter.txt"], "no logs");
}

#[test]
fn logs_that_cannot_be_written_are_named_with_exit_code_1() {
    let s = Scratch::new("unwritable");
    let capture = s.file("sample.pcap", &sample());
    // A folder has the name of the log, so that not even root can write it.
    fs::create_dir_all(s.path("logs/conn.log")).unwrap();
    let out = s.path("logs");
    let run = Run::of(gannet().arg("analyze").arg("-o").arg(&out).arg(&capture));
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    assert!(run.stderr.contains("logs/conn.log: "), "{}", run.stderr);
    assert!(s.path("logs/dns.log").is_file(), "the others are written");
}

#[test]
fn wrong_usage_has_exit_code_2() {
    for args in [&["analyze"][..], &["analyze", "--jsn", "x"], &["frobnicate"], &["-C"]] {
        let run = Run::of(gannet().args(args));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
    let s = Scratch::new("usage");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().arg(&capture));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("\nhint: gannet analyze "), "{}", run.stderr);
}

#[test]
fn a_table_is_printed_at_the_end() {
    let s = Scratch::new("stats");
    let capture = s.file("sample.pcap", &sample());
    let run = s.analyze("a", &["--stats", "-t", "4"], &capture);
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines[0], "packets      68");
    assert_eq!(lines[1], format!("connections  {CONNECTIONS}"));
    assert!(lines[2].starts_with("rows         "), "{lines:?}");
    assert!(lines[2].contains(&format!("conn {CONNECTIONS}")), "{lines:?}");
    assert!(lines[3].starts_with("time         0."), "{lines:?}");
    assert!(lines[3].ends_with(" Gbit/s"), "{lines:?}");
    assert_eq!(lines[4], format!("logs in      {}", s.path("a").join("").display()));
}

#[test]
fn help_and_version_go_to_standard_output() {
    let run = Run::of(gannet().arg("--version"));
    assert_eq!((run.code, run.stdout), (0, format!("gannet {}\n", env!("CARGO_PKG_VERSION"))));
    for args in [&["--help"][..], &["analyze", "--help"], &["info", "-h"]] {
        let run = Run::of(gannet().args(args));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert!(run.stdout.contains("Examples:\n  gannet "), "{}", run.stdout);
    }
}

#[test]
fn man_pages_and_completions_are_printed() {
    let run = Run::of(gannet().arg("man"));
    assert!(run.code == 0 && run.stdout.contains(".TH gannet 1"), "{}", run.stdout);
    let run = Run::of(gannet().args(["man", "analyze"]));
    assert!(run.code == 0 && run.stdout.contains("\\-\\-json\\-times"), "{}", run.stdout);
    let run = Run::of(gannet().args(["man", "dance"]));
    assert_eq!((run.code, run.stderr.as_str()), (2, "error: no command is named 'dance'\n"));
    let run = Run::of(gannet().args(["man", "filter", "compile"]));
    assert!(run.code == 0 && run.stdout.contains(".TH gannet-filter-compile 1"), "{}", run.stdout);
    for shell in ["bash", "zsh", "fish"] {
        let run = Run::of(gannet().args(["completions", shell]));
        assert!(run.code == 0 && run.stdout.contains("local-nets"), "{shell}: {}", run.stderr);
    }
}

#[test]
fn a_file_in_the_place_of_the_log_folder_is_refused() {
    let s = Scratch::new("out-file");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().arg("analyze").arg(&capture).arg("-o").arg(&capture));
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.ends_with("sample.pcap: is a file, but --out expects a folder\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_unknown_log_is_refused_with_a_similar_name_or_all_names() {
    let s = Scratch::new("unknown-log");
    let capture = s.file("sample.pcap", &sample());
    let run = Run::of(gannet().args(["analyze", "--logs", "con"]).arg(&capture));
    assert_eq!(run.code, 2);
    let expected = "error: --logs: no log is named 'con'\nhint: did you mean conn?\n";
    assert_eq!(run.stderr, expected);
    let run = Run::of(gannet().args(["analyze", "--logs", "connections"]).arg(&capture));
    assert!(run.stderr.contains("hint: logs are analyzer, ") && run.stderr.contains(", conn, "));
}

#[test]
fn an_index_in_a_folder_of_captures_is_no_capture() {
    let s = Scratch::new("indexed-folder");
    s.file("day/sample.pcap", &sample());
    let day = s.path("day");
    for _ in 0..2 {
        let run = Run::of(gannet().args(["index", "--quiet"]).arg(&day));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    }
    for each in [&[][..], &["--each"]] {
        let out = s.path("logs");
        let run = Run::of(gannet().arg("analyze").args(each).arg("-o").arg(&out).arg(&day));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn options_of_live_captures_are_refused_for_files() {
    let s = Scratch::new("live-options");
    let capture = s.file("sample.pcap", &sample());
    for option in [
        "--to=tcp://127.0.0.1:1",
        "--rotate=1h",
        "--duration=1s",
        "--metrics=127.0.0.1:9911",
        "--keep=30d",
        "--user=nobody",
        "--spool=spool",
        "--sandbox=required",
        "--no-promiscuous",
    ] {
        let out = s.path("logs");
        let run = Run::of(gannet().args(["analyze", option, "-o"]).arg(&out).arg(&capture));
        assert_eq!(run.code, 2, "{option}: {}", run.stderr);
        assert!(run.stderr.contains(" is only for live captures"), "{option}: {}", run.stderr);
        assert!(!out.exists());
    }
}
