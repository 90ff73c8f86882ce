//! `gannet packets`: lines and summaries, compared with tcpdump's where that is installed.

// Helpers of tests panic where a test fails.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

fn packets(args: &[&str], capture: &Path) -> String {
    let run = Run::of(gannet().arg("packets").args(args).arg(capture));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{args:?}");
    run.stdout
}

#[test]
fn packets_are_printed_one_per_line() {
    let s = Scratch::new("packets");
    let capture = s.file("sample.pcap", &sample());
    let all = packets(&[], &capture);
    assert_eq!(all.lines().count(), 68);
    let first = all.lines().next().unwrap();
    assert!(first.starts_with("22:13:20.") && first.contains(".53: "), "{first}");
    assert!(first.contains("+ A? "), "{first}");
    assert!(all.contains(": Flags [S], seq ") && all.contains(" ICMP echo request, id "), "{all}");
    assert_eq!(packets(&["-c", "3"], &capture).lines().count(), 3);
    assert_eq!(packets(&["-f", "udp port 53"], &capture).lines().count(), 8);
    let run =
        Run::of(gannet().args(["packets", "-n", "-r"]).arg(&capture).args(["udp", "port", "53"]));
    assert_eq!((run.code, run.stdout.lines().count()), (0, 8), "{}", run.stderr);
    let dated = packets(&["-tttt", "-c", "1"], &capture);
    assert!(dated.starts_with("2023-11-14 22:13:20."), "{dated}");
    assert!(packets(&["-tt", "-c", "1"], &capture).starts_with("1700000000."));
    assert!(packets(&["-t", "-c", "1"], &capture).starts_with("IP"));
    let bytes = packets(&["-c", "1", "-x"], &capture);
    assert!(bytes.contains("\n\t0x0000:  45") || bytes.contains("\n\t0x0000:  60"), "{bytes}");
    let all_bytes = packets(&["-c", "1", "-xx"], &capture);
    assert!(all_bytes.len() > bytes.len(), "{all_bytes}");
    assert!(packets(&["-c", "1", "-X"], &capture).contains("example"));
    let wrong = Run::of(gannet().args(["packets", "-f", "tcp prot 1"]).arg(&capture));
    assert!(wrong.code == 2 && wrong.stderr.contains('^'), "{}", wrong.stderr);
}

#[test]
fn a_summary_has_protocols_and_hosts() {
    let s = Scratch::new("packets-summary");
    let capture = s.file("sample.pcap", &sample());
    let all = packets(&["--summary", "--top", "2"], &capture);
    let rows = |name: &str| {
        let line = all.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {all}")).split_whitespace().rev().nth(3).unwrap()
    };
    assert_eq!(rows("all"), "68");
    assert_eq!(rows("port 53"), "8");
    let tables: Vec<_> = all.split("\n\n").collect();
    assert_eq!(tables.len(), 3, "{all}");
    assert_eq!((tables[1].lines().count(), tables[2].lines().count()), (3, 3), "{all}");
    let filtered = packets(&["--summary", "-f", "udp port 53"], &capture);
    assert!(filtered.contains("\n  Ethernet") && !filtered.contains("TCP"), "{filtered}");
}

#[test]
fn damage_ends_the_lines_with_exit_code_3() {
    let s = Scratch::new("packets-cut");
    let capture = s.file("cut.pcap", &sample()[..3_000]);
    let run = Run::of(gannet().arg("packets").arg(&capture));
    assert_eq!(run.code, 3);
    assert!(run.stdout.lines().count() > 5 && run.stderr.contains("cut short"), "{}", run.stderr);
}

/// A line of tcpdump without its details of protocols above TCP and of DNS answers.
fn plain(line: &str) -> String {
    let line = line.split_once(", length ").map_or_else(
        || line.to_owned(),
        |(head, rest)| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            format!("{head}, length {}", &rest[..digits])
        },
    );
    line.replace("NTPv4, Client", "UDP").replace("NTPv4, Server", "UDP")
}

#[test]
fn lines_are_those_of_tcpdump() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        writeln_skipped();
        return;
    }
    let s = Scratch::new("packets-tcpdump");
    let capture = s.file("sample.pcap", &sample());
    let mut command = Command::new("tcpdump");
    command.env("TZ", "UTC").args(["-n", "-r"]).arg(&capture).arg("tcp or arp or icmp or icmp6");
    let theirs = Run::of(&mut command).stdout;
    let ours = packets(&["-f", "tcp or arp or icmp or icmp6"], &capture);
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(plain(ours), plain(theirs));
    }
}

fn writeln_skipped() {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "skipped: tcpdump is not installed").unwrap_or_default();
}
