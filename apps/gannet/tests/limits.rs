//! Floods against the limit of all state: memory stays, and so do rows.

use std::collections::BTreeSet;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;

/// What `--max-state` is set to here. Floods take more than twice as much without it.
const LIMIT: u64 = 6 << 20;

/// One run of a flood.
struct Flooded {
    /// Rows of conn.log, without the last columns' times: address, port, state, packets, history.
    conn: BTreeSet<Vec<String>>,
    rows: usize,
    /// Bytes in use at the most.
    most: u64,
    ended: u64,
}

fn number_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn run(s: &Scratch, name: &str, args: &[&str]) -> Flooded {
    let out = s.path(name);
    let run = Run::of(
        gannet()
            .args(["analyze", "-C", "--stats-state", "-o"])
            .arg(&out)
            .args(args)
            .arg(s.path("flood.pcap")),
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let log = s.read(&format!("{name}/conn.log"));
    let rows: Vec<Vec<String>> = log
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split('\t').map(str::to_owned).collect())
        .collect();
    Flooded {
        rows: rows.len(),
        conn: rows.into_iter().collect(),
        most: number_of(&run.stderr, "all "),
        ended: number_of(&run.stderr, "given up early: half-open connections ")
            + number_of(&run.stderr, "given up early: established connections "),
    }
}

fn flood(kind: &str, count: &str) -> (Flooded, Flooded) {
    // What several threads need for themselves is a good part of so small a limit.
    flood_on("1", kind, count, LIMIT)
}

fn flood_on(threads: &str, kind: &str, count: &str, limit: u64) -> (Flooded, Flooded) {
    let s = Scratch::new(&format!("{kind}-{threads}"));
    let made = Run::of(
        gannet()
            .args(["synth", kind, "-n", count, "--ordinary", "20", "--rate", "200000"])
            .arg(s.path("flood.pcap")),
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    let free = run(&s, "free", &["-t", threads]);
    let size = limit.to_string();
    let tight = run(&s, "tight", &["-t", threads, "--max-state", &size]);
    assert_eq!(free.ended, 0);
    assert!(tight.most < limit + limit / 5, "{kind}: {} of {limit}", tight.most);
    assert!(tight.rows >= free.rows, "{kind}: {} rows of {}", tight.rows, free.rows);
    (free, tight)
}

/// Rows of ordinary clients.
fn ordinary(run: &Flooded) -> Vec<&Vec<String>> {
    run.conn.iter().filter(|row| row[2].starts_with("198.51.100.")).collect()
}

#[test]
fn half_open_connections_make_room_for_others() {
    for kind in ["syn-flood", "udp-flood"] {
        let (free, tight) = flood(kind, "70000");
        assert!(
            free.most > 2 * LIMIT && tight.ended > 10_000,
            "{kind}: {} {}",
            free.most,
            tight.ended
        );
        assert_eq!(ordinary(&free).len(), 20);
        assert_eq!(ordinary(&free), ordinary(&tight), "{kind}");
        // What was ended early has the row that it would have had, but for what came later.
        assert_eq!(tight.rows, free.rows, "{kind}");
    }
}

#[test]
fn threads_share_the_limit() {
    let (free, tight) = flood_on("2", "syn-flood", "150000", 4 * LIMIT);
    assert!(free.most > 5 * LIMIT && tight.ended > 10_000, "{} {}", free.most, tight.ended);
    assert_eq!(ordinary(&free), ordinary(&tight));
}

#[test]
fn buffers_are_bounded() {
    for (kind, count) in [("segment-flood", "2000"), ("http-flood", "2000"), ("dns-flood", "3000")]
    {
        let (free, tight) = flood(kind, count);
        assert!(free.most > tight.most, "{kind}: {} {}", free.most, tight.most);
        assert_eq!(ordinary(&free).len(), 20, "{kind}");
    }
}

#[test]
fn fragments_are_bounded() {
    let (free, tight) = flood("fragment-flood", "30000");
    assert!(free.most > 2 * tight.most);
    assert_eq!((tight.ended, free.conn), (0, tight.conn));
}

#[test]
fn wrong_limits_are_explained() {
    let run = Run::of(gannet().args(["analyze", "--limit", "patience=1", "x.pcap"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("pending-dns"), "{}", run.stderr);
    let run = Run::of(gannet().args(["analyze", "--max-state", "much", "x.pcap"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("200M"), "{}", run.stderr);
    let run = Run::of(gannet().args(["analyze", "--max-state", "1", "x.pcap"]));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("is 1M or more, not 1"), "{}", run.stderr);
}
