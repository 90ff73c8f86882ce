//! Floods with a memory limit (`--max-state`): memory stays below it, and no row is lost.

use std::collections::BTreeSet;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;

/// The value of `--max-state`, in bytes. Without it, floods need more than twice as much.
const LIMIT: u64 = 6 << 20;

/// The result of analysing a flood.
struct FloodRun {
    /// Rows of conn.log, divided into columns.
    conn: BTreeSet<Vec<String>>,
    rows: usize,
    /// Peak of the bytes in use.
    peak: u64,
    /// Number of connections that ended early.
    ended: u64,
}

fn number_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn run(s: &Scratch, name: &str, args: &[&str]) -> FloodRun {
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
    FloodRun {
        rows: rows.len(),
        conn: rows.into_iter().collect(),
        peak: number_of(&run.stderr, "total "),
        ended: number_of(&run.stderr, "discarded early: half-open connections ")
            + number_of(&run.stderr, "discarded early: established connections "),
    }
}

fn flood(kind: &str, count: &str) -> (FloodRun, FloodRun) {
    // The state that each thread has of its own would be a large part of this small limit.
    flood_on("1", kind, count, LIMIT)
}

fn flood_on(threads: &str, kind: &str, count: &str, limit: u64) -> (FloodRun, FloodRun) {
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
    assert!(tight.peak < limit + limit / 5, "{kind}: {} of {limit}", tight.peak);
    assert!(tight.rows >= free.rows, "{kind}: {} rows of {}", tight.rows, free.rows);
    (free, tight)
}

/// Rows of the clients whose connections are complete.
fn ordinary(run: &FloodRun) -> Vec<&Vec<String>> {
    run.conn.iter().filter(|row| row[2].starts_with("198.51.100.")).collect()
}

#[test]
fn half_open_connections_are_evicted_first() {
    for kind in ["syn-flood", "udp-flood"] {
        let (free, tight) = flood(kind, "70000");
        assert!(
            free.peak > 2 * LIMIT && tight.ended > 10_000,
            "{kind}: {} {}",
            free.peak,
            tight.ended
        );
        assert_eq!(ordinary(&free).len(), 20);
        assert_eq!(ordinary(&free), ordinary(&tight), "{kind}");
        // Connections that ended early have rows as well.
        assert_eq!(tight.rows, free.rows, "{kind}");
    }
}

#[test]
fn threads_share_the_limit() {
    let (free, tight) = flood_on("2", "syn-flood", "150000", 4 * LIMIT);
    assert!(free.peak > 5 * LIMIT && tight.ended > 10_000, "{} {}", free.peak, tight.ended);
    assert_eq!(ordinary(&free), ordinary(&tight));
}

#[test]
fn buffers_are_bounded() {
    for (kind, count) in [("segment-flood", "2000"), ("http-flood", "2000"), ("dns-flood", "3000")]
    {
        let (free, tight) = flood(kind, count);
        assert!(free.peak > tight.peak, "{kind}: {} {}", free.peak, tight.peak);
        assert_eq!(ordinary(&free).len(), 20, "{kind}");
    }
}

#[test]
fn fragments_are_bounded() {
    let (free, tight) = flood("fragment-flood", "30000");
    assert!(free.peak > 2 * tight.peak);
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
    assert!(run.stderr.contains("must be 1M or more, not 1"), "{}", run.stderr);
}
