//! No row is lost on long connections: for every protocol with a row per exchange, the logs have
//! exactly the rows that were sent, for any number of exchanges per connection, any interval
//! between them and any number of threads.
// Clippy allows unwrap in test functions, but not in their helper functions.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_engine::Options;
use gannet_synth::Trace;
use gannet_synth::traffic::long::Dialogue;
use support::analyze;
use support::column;

/// Numbers of threads.
const THREADS: [usize; 3] = [1, 2, 7];

/// Number of captures that are analyzed in parallel.
const WORKERS: usize = 2;

/// Intervals between exchanges. The third one is longer than any idle release, and shorter than the
/// timeout of UDP; the last one is longer than that timeout.
const DISTANCES: [Interval; 4] = [
    Interval::from_millis(1),
    Interval::from_secs(3),
    Interval::from_secs(45),
    Interval::from_secs(70),
];

fn start() -> Time {
    Time::from_secs(1_700_000_000)
}

/// One dialogue on one connection.
fn single(dialogue: Dialogue, count: usize, every: Interval) -> (Trace, Expected) {
    let ends = ("10.0.0.9:40000".parse().unwrap(), SocketAddr::new(server(), dialogue.port()));
    let mut trace = Trace::new(start(), 1);
    dialogue.play(&mut trace, ends, count, every);
    let mut expected = Expected::new();
    for rows in dialogue.rows(ends.1, count) {
        expected.insert((rows.log, rows.column), rows.values);
    }
    (trace, expected)
}

fn server() -> std::net::IpAddr {
    "10.0.0.1".parse().unwrap()
}

/// Expected values by log and column.
type Expected = BTreeMap<(&'static str, &'static str), Vec<String>>;

/// Analyzes a trace and returns missing and surplus rows.
fn differences(trace: &Trace, expected: &Expected, own: &Path, ordered: bool) -> Vec<String> {
    fs::create_dir_all(own.join("logs")).unwrap();
    let capture = own.join("capture.pcap");
    support::write(trace, &capture);
    let mut differ = Vec::new();
    for threads in THREADS {
        let logs = analyze(&capture, &own.join("logs"), &Options::default(), (threads, usize::MAX))
            .unwrap();
        for ((log, name), values) in expected {
            let (mut got, mut values) = (column(&logs, log, name), values.clone());
            if !ordered {
                got.sort();
                values.sort();
            }
            if got == values {
                continue;
            }
            let same = got.iter().zip(&values).take_while(|(a, b)| a == b).count();
            let (a, b) = (got.get(same), values.get(same));
            let (rows, sent) = (got.len(), values.len());
            differ.push(format!(
                "-t {threads}: {log}.{name}: {rows} rows of {sent}; row {same} is {a:?} for {b:?}"
            ));
        }
        let mut weirds = column(&logs, "weird", "name");
        weirds.sort();
        weirds.dedup();
        if !weirds.is_empty() {
            differ.push(format!("-t {threads}: weirds {weirds:?}"));
        }
    }
    differ
}

/// Analyzes all cases, a few in parallel.
fn check(name: &str, cases: &[(Dialogue, usize, Interval)]) {
    let own = folder(name);
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let own = own.join(worker.to_string());
        let mut differ = Vec::new();
        while let Some((dialogue, count, every)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (trace, expected) = single(*dialogue, *count, *every);
            let found = differences(&trace, &expected, &own, true);
            differ.extend(found.iter().map(|d| format!("{dialogue}, {count}, {every:?}: {d}")));
        }
        differ
    };
    let differ: Vec<String> = thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || work(n))).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    });
    fs::remove_dir_all(&own).unwrap();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()))
}

#[test]
fn every_exchange_of_a_long_connection_has_its_rows() {
    let cases: Vec<_> = Dialogue::ALL
        .into_iter()
        .flat_map(|dialogue| DISTANCES.map(|every| (dialogue, 1_000, every)))
        .collect();
    check("long", &cases);
}

#[test]
fn very_long_connections_have_all_rows() {
    use Dialogue::*;
    let many = [Dns, Http, Smtp, Ftp, Modbus].map(|d| (d, 10_000, DISTANCES[0]));
    let dns = [10, 100_000].map(|count| (Dns, count, DISTANCES[0]));
    check("very-long", &[&many[..], &dns].concat());
}

#[test]
fn protocols_at_once_between_few_hosts_have_all_rows() {
    let (mut traces, mut expected) = (Vec::new(), Expected::new());
    for pair in 0..3 {
        for (at, dialogue) in Dialogue::ALL.into_iter().enumerate() {
            // Leases of different hosts differ only by their transaction ids.
            if dialogue == Dialogue::Dhcp && pair > 0 {
                continue;
            }
            let ends = (
                SocketAddr::new([10, 0, 1, pair].into(), 40_000 + at as u16),
                SocketAddr::new([10, 0, 2, pair].into(), dialogue.port()),
            );
            let count = 200 + 10 * at;
            let mut trace = Trace::new(start(), at as u64);
            trace.wait(Interval::from_micros(1_000 * i64::from(pair) + 37 * at as i64));
            dialogue.play(&mut trace, ends, count, Interval::from_millis(70 + at as i64));
            traces.push(trace);
            for rows in dialogue.rows(ends.1, count) {
                // Mails are logged as files as well.
                if rows.log != "files" {
                    expected.entry((rows.log, rows.column)).or_default().extend(rows.values);
                }
            }
        }
    }
    let own = folder("at-once");
    let differ = differences(&Trace::merge(start(), traces), &expected, &own, false);
    fs::remove_dir_all(&own).unwrap();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
