//! `gannet sql` and `gannet packets --where`.

// Tests may unwrap; the lint knows that only of functions that are tests themselves.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

fn run(args: &[&str]) -> Run {
    Run::of(gannet().args(args))
}

#[test]
fn a_capture_is_asked_directly() {
    let s = Scratch::new("sql");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let found = run(&["sql", &format!("SELECT host, uri FROM '{name}'.http ORDER BY ts"), "--csv"]);
    let expected = "host,uri\nwww.example.com,/birds/gannet.html\nwww.example.com,/sightings\n";
    assert_eq!((found.code, found.stdout.as_str(), found.stderr.as_str()), (0, expected, ""));
    let json = run(&[
        "sql",
        "SELECT uid, id.resp_p FROM conn WHERE service = 'http' LIMIT 1",
        name,
        "--json",
    ]);
    assert!(
        json.stdout.starts_with("{\"uid\":\"C") && json.stdout.ends_with(",\"id.resp_p\":80}\n"),
        "{}",
        json.stdout
    );
    let table = run(&["sql", "SELECT count(*) AS n, NULL AS none FROM conn", name, "--table"]);
    assert_eq!(table.stdout, "n   none\n────────\n10  -\n");
    // An answer in a file is a log that can be asked.
    let file = s.path("answer.parquet");
    let file = file.to_str().unwrap();
    assert_eq!(run(&["sql", "SELECT * FROM conn", name, "--parquet", "-o", file]).code, 0);
    let again = run(&["sql", &format!("SELECT count(*) AS n FROM '{file}'")]);
    assert_eq!(again.stdout, "n\n10\n");
    assert_eq!(s.list(""), ["answer.parquet", "sample.pcap"]);
    // Queries from standard input.
    let two = Run::with_input(gannet().args(["sql", "-", name]), b"SELECT 1 AS a;\nSELECT 2 AS b;");
    assert_eq!(two.stdout, "a\n1\nb\n2\n");
}

#[test]
fn errors_point_at_the_place_and_damage_has_a_code() {
    let s = Scratch::new("sql-errors");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let wrong = run(&["sql", "SELECT uidd FROM conn", name]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""));
    let expected = "error: no column is named 'uidd'\n 1 | SELECT uidd FROM conn\n   |        ^^^^\nhint: did you mean uid?\n";
    assert_eq!(wrong.stderr, expected);
    let missing = run(&["sql", "SELECT 1", "/no/such/file"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("/no/such/file"), "{}", missing.stderr);
    let bytes = sample();
    let cut = s.file("cut.pcap", &bytes[..bytes.len() - 5]);
    let damaged = run(&["sql", "SELECT count(*) AS n FROM conn", cut.to_str().unwrap()]);
    assert_eq!(damaged.code, 3, "{}", damaged.stderr);
    assert!(
        damaged.stdout.starts_with("n\n") && damaged.stderr.contains("cut.pcap"),
        "{}",
        damaged.stderr
    );
    // An answer that fails leaves no file.
    let file = s.path("answer.csv");
    let failed = run(&["sql", "SELECT uidd FROM conn", name, "-o", file.to_str().unwrap()]);
    assert!(failed.code == 2 && !file.exists());
}

#[test]
fn the_packets_of_rows_are_found_by_sql() {
    let s = Scratch::new("sql-where");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    s.analyze("logs", &["--index", "--format", "parquet"], &source);
    let logs = s.path("logs");
    let logs = logs.to_str().unwrap();
    let lines = |args: &[&str]| {
        let run = run(&[&["packets"][..], args, &[name]].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        run.stdout
    };
    let uids =
        run(&["sql", "SELECT uid FROM conn WHERE service = 'http' ORDER BY uid", name]).stdout;
    let uids: Vec<_> = uids.lines().skip(1).collect();
    let by_uid = lines(&["--uid", &uids.join(",")]);
    assert!(uids.len() == 2 && by_uid.lines().count() > 10, "{by_uid}");
    assert_eq!(lines(&["--where", "service = 'http'"]), by_uid);
    assert_eq!(lines(&["--where", "service = 'http'", "--rows", logs]), by_uid);
    // One request of DNS: its query and its answer, though others have the same ends.
    let query = run(&[
        "sql",
        "SELECT uid, query, rtt FROM dns WHERE rtt IS NOT NULL ORDER BY ts LIMIT 1",
        name,
    ])
    .stdout;
    let row = query.lines().nth(1).unwrap();
    let name_asked = row.split(',').nth(1).unwrap();
    let one =
        lines(&["--where", &format!("query = '{name_asked}' AND rtt IS NOT NULL"), "--log", "dns"]);
    let rows = run(&[
        "sql",
        &format!("SELECT count(*) AS n FROM dns WHERE query = '{name_asked}' AND rtt IS NOT NULL"),
        name,
    ])
    .stdout;
    let rows: usize = rows.lines().nth(1).unwrap().parse().unwrap();
    assert_eq!(one.lines().count(), 2 * rows, "{one}");
    // The packets of a request of HTTP begin with it, behind the handshake.
    let request = lines(&["--where", "uri = '/sightings'", "--log", "http"]);
    assert!(
        request.lines().count() > 1 && by_uid.contains(request.split(' ').next().unwrap()),
        "{request}"
    );
    assert!(request.lines().count() < by_uid.lines().count());
    let none = run(&["packets", "--where", "service = 'nothing'", name]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("no row of conn has service = 'nothing'"), "{}", none.stderr);
    let wrong = run(&["packets", "--where", "servce = 'http'", name]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean service?"), "{}", wrong.stderr);
    let out = s.path("slice.pcap");
    assert_eq!(
        run(&["packets", "--where", "service = 'http'", name, "-w", out.to_str().unwrap()]).code,
        0
    );
    assert!(fs::metadata(&out).unwrap().len() > 100);
    // From SQL to the numbers of packets.
    let numbers =
        run(&["sql", "SELECT packets(uid) AS p FROM conn WHERE service = 'http' LIMIT 1", name])
            .stdout;
    assert!(numbers.contains('['), "{numbers}");
    assert!(Path::new(&s.path("sample.pcap.gannet")).is_dir());
}
