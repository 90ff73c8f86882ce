//! `gannet sql` and `gannet packets --where`.

// Tests may unwrap; the lint allows it in test functions, but not in their helpers.
#![cfg(feature = "sql")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_synth::Trace;
use gannet_synth::dns;

use crate::support;
use crate::support::Run;
use crate::support::Scratch;
use crate::support::gannet;
use crate::support::sample;

fn run(args: &[&str]) -> Run {
    Run::of(gannet().args(args))
}

#[test]
fn a_capture_is_queried_directly() {
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
    // An answer in a file can be queried like a log.
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
fn a_capture_on_standard_input_is_one_table() {
    let ask = |sql: &str| Run::with_input(gannet().args(["sql", sql, "-"]), &sample());
    let all = ask("SELECT count(*) AS n FROM conn");
    assert_eq!((all.code, all.stdout.as_str(), all.stderr.as_str()), (0, "n\n10\n", ""));
    // An upper bound of times does not end the analysis of standard input, which cannot be read again.
    let early = ask("SELECT count(*) AS n FROM conn WHERE ts < '2100-01-01'");
    assert_eq!((early.code, early.stdout.as_str()), (0, "n\n10\n"));
    let twice = ask("SELECT c.uid FROM conn c JOIN dns d ON c.uid = d.uid");
    assert_eq!((twice.code, twice.stdout.as_str()), (2, ""));
    assert!(
        twice.stderr.contains("standard input can be read only once, for one table"),
        "{}",
        twice.stderr
    );
    assert!(twice.stderr.contains("hint: "), "{}", twice.stderr);
    let text = Run::with_input(gannet().args(["sql", "SELECT 1 FROM conn", "-"]), b"no capture");
    assert!(text.code == 2 && text.stderr.contains("standard input"), "{}", text.stderr);
    let both = Run::with_input(gannet().args(["sql", "-", "-"]), &sample());
    assert!(both.code == 2 && both.stderr.contains("not both"), "{}", both.stderr);
    let s = Scratch::new("sql-stdin");
    let file = s.file("sample.pcap", &sample());
    let sql = ["sql", "SELECT count(*) FROM conn", "-", file.to_str().unwrap()];
    let two = Run::with_input(gannet().args(sql), &sample());
    assert!(two.code == 2 && two.stderr.contains("cannot form one table"), "{}", two.stderr);
}

#[test]
fn errors_point_at_their_position_and_damage_has_an_exit_code() {
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
fn what_is_no_capture_and_no_log_is_named() {
    let s = Scratch::new("sql-no-log");
    fs::create_dir(s.path("empty")).unwrap();
    s.file("notes.txt", b"a,b\n1,2\n");
    for (path, words) in [
        ("empty", "error: empty: the folder contains no captures or logs\n"),
        ("notes.txt", "error: notes.txt: not a log; logs are TSV with Zeek's header"),
        ("*.pcap", "error: *.pcap: no file matches this pattern\n"),
    ] {
        let mut command = gannet();
        command.current_dir(s.path("")).args(["sql", "SELECT count(*) FROM conn", path]);
        let run = Run::of(&mut command);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{path}");
        assert!(run.stderr.starts_with(words), "{}", run.stderr);
    }
    let cut = run(&["sql", "SELECT 1 FROM conn WHERE"]);
    assert_eq!(cut.stderr, "error: the query ends where an expression is expected\n");
}

#[test]
fn commands_of_the_prompt_need_no_quotes() {
    let s = Scratch::new("sql-commands");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let quoted = run(&["sql", ".schema conn", name]);
    let plain = run(&["sql", ".schema", "conn", name]);
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""));
    assert!(plain.stdout == quoted.stdout && plain.stdout.starts_with("ts "), "{}", plain.stdout);
    let wrong = run(&["sql", ".scheme", name]);
    assert!(wrong.stderr.starts_with("error: no command is named '.scheme'"), "{}", wrong.stderr);
    assert_eq!(wrong.code, 2);
    let wrong = run(&["sql", ".schema con", name]);
    assert!(wrong.stderr.contains("did you mean conn?"), "{}", wrong.stderr);
    assert_eq!(wrong.code, 2);
}

#[test]
fn a_query_without_enough_memory_has_an_exit_code() {
    let s = Scratch::new("sql-memory");
    let out = s.path("answer.csv");
    let sort = "SELECT value FROM generate_series(1, 400000) ORDER BY value % 1009, value";
    let failed = run(&["sql", sort, "--memory", "10K", "-o", out.to_str().unwrap()]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{}", failed.stderr);
    assert!(failed.stderr.starts_with("error: the query needs more than the limit of --memory"));
    assert!(
        failed.stderr.contains("hint: a larger --memory") && !out.exists(),
        "{}",
        failed.stderr
    );
}

#[test]
fn an_answer_replaces_no_file_that_is_read() {
    let s = Scratch::new("sql-over");
    let bytes = sample();
    let source = s.file("sample.pcap", &bytes);
    let name = source.to_str().unwrap();
    s.analyze("logs", &["--format", "parquet"], &source);
    let log = s.path("logs/conn.parquet");
    let before = fs::read(&log).unwrap();
    let (log, folder) = (log.to_str().unwrap(), s.path("logs"));
    let of_query = format!("SELECT uid FROM '{name}'");
    for arguments in [
        &["sql", &of_query, "-o", name][..],
        &["sql", "SELECT uid FROM conn", name, "-o", name],
        &["sql", &format!("SELECT uid FROM '{log}'"), "--parquet", "-o", log],
        &["sql", "SELECT uid FROM conn", folder.to_str().unwrap(), "--parquet", "-o", log],
    ] {
        let refused = run(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("is the same file as the input"), "{}", refused.stderr);
    }
    assert!(fs::read(name).unwrap() == bytes && fs::read(log).unwrap() == before);
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_replaces_no_device() {
    let full = run(&["sql", "SELECT 1", "-o", "/dev/full"]);
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.starts_with("error: /dev/full: No space left"), "{}", full.stderr);
    let output = run(&["sql", "SELECT 1 AS a", "-o", "/dev/stdout"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "a\n1\n"), "{}", output.stderr);
    let s = Scratch::new("sql-link");
    let (file, link) = (s.path("file.csv"), s.path("link.csv"));
    std::os::unix::fs::symlink("file.csv", &link).unwrap();
    assert_eq!(run(&["sql", "SELECT 1 AS a", "-o", link.to_str().unwrap()]).code, 0);
    assert_eq!(fs::read_to_string(file).unwrap(), "a\n1\n");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn rows_of_several_captures_lead_to_packets_of_their_own_capture() {
    let s = Scratch::new("sql-several-captures");
    let whole = s.file("day/a.pcap", &sample());
    let name = whole.to_str().unwrap();
    // The first connections of both captures have the same uid.
    let part = s.path("day/b.pcap");
    let part = part.to_str().unwrap();
    assert_eq!(run(&["filter", "tcp port 80", name, "-w", part]).code, 0);
    let folder = s.path("day");
    let folder = folder.to_str().unwrap();
    assert_eq!(run(&["index", "-q", folder]).code, 0);
    let of = |path: &str| {
        let run = run(&["packets", "--where", "service = 'dns'", path]);
        (run.code, run.stdout)
    };
    let all = of(name);
    assert_eq!(of(folder), all);
    assert_eq!(of(part), (2, String::new()));
    // A uid in both captures is ambiguous.
    let uid = run(&["sql", "SELECT uid FROM conn ORDER BY ts LIMIT 1", part]).stdout;
    let uid = uid.lines().nth(1).unwrap();
    let both = run(&["packets", "--uid", uid, folder]);
    assert_eq!(both.code, 0);
    assert!(both.stderr.contains(&format!("both have a connection {uid}")), "{}", both.stderr);
    // An index with another seed has other uids.
    assert_eq!(run(&["index", "-q", "--seed", "7", name]).code, 0);
    let other = run(&["packets", "--where", "service = 'dns'", name]);
    assert!(
        other.code == 2
            && other.stderr.contains("was made with --seed 7, and this analysis uses no options"),
        "{}",
        other.stderr
    );
    let seeded = run(&["packets", "--where", "service = 'dns'", "--seed", "7", name]);
    assert_eq!((seeded.code, seeded.stdout), all);
    let numbers = run(&["sql", "SELECT packets(uid) AS p FROM conn LIMIT 1", name]);
    assert!(numbers.stderr.contains("was made with --seed 7"), "{}", numbers.stderr);
    let verified = run(&["packets", "--where", "service = 'dns'", "--seed", "7", "-C", name]);
    assert_eq!(verified.code, 2);
    assert!(
        verified.stderr.contains("this analysis uses -C --seed 7: use the options"),
        "{}",
        verified.stderr
    );
}

#[test]
fn errors_of_conditions_show_the_condition() {
    let s = Scratch::new("sql-condition");
    let source = s.file("sample.pcap", &sample());
    let name = source.to_str().unwrap();
    let of = |condition: &str, log: &str| {
        let run = run(&["packets", "--where", condition, "--log", log, name]);
        assert_eq!(run.code, 2);
        run.stderr
    };
    let expected = "error: no column is named 'servise'\n 1 | servise = 'dns'\n   | ^^^^^^^\n";
    assert!(of("servise = 'dns'", "conn").starts_with(expected));
    assert_eq!(
        of("true", "software"),
        "error: rows of software have no uid, which identifies their packets\n"
    );
    assert!(of("", "conn").starts_with("error: ") && !of("", "conn").contains("SELECT"));
}

#[test]
fn a_file_holds_the_answer_of_one_query_only() {
    let s = Scratch::new("sql-several");
    let out = s.path("answer.csv");
    let out = out.to_str().unwrap();
    for option in [&["--out", out][..], &["--parquet"]] {
        let two = Run::with_input(gannet().args(["sql", "-"]).args(option), b"SELECT 1; SELECT 2;");
        assert_eq!((two.code, two.stdout.as_str()), (2, ""), "{}", two.stderr);
        assert!(two.stderr.contains("is for one query, not for 2"), "{}", two.stderr);
    }
    assert_eq!(s.list(""), Vec::<String>::new());
    let one =
        Run::with_input(gannet().args(["sql", "-", "--out", out]), b"SELECT 1 AS a; -- one\n");
    assert_eq!((one.code, one.stderr.as_str()), (0, ""));
    assert_eq!(fs::read_to_string(out).unwrap(), "a\n1\n");
}

#[test]
fn the_packets_of_a_row_of_dns_are_the_query_and_its_answer() {
    let address = |n, port| SocketAddr::from(([10, 0, 0, n], port));
    let (client, server) = (address(1, 4_000), address(2, 53));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    // An answer without records that Zeek parses has no rtt in dns.log. All queries have the same endpoints.
    const HTTPS: u16 = 65;
    for name in ["a.test", "b.test", "c.test"] {
        trace.lookup(client, server, (name, HTTPS), 0, &[]);
    }
    // The id of the first query is used again.
    let [query, answer] = [0, 1].map(|n| trace.frames()[n].bytes.clone());
    trace.push(Interval::from_millis(5), query);
    trace.push(Interval::from_millis(5), answer);
    // Queries over TCP, in three segments each; only one has an answer.
    let framed = |message: Vec<u8>| [&(message.len() as u16).to_be_bytes()[..], &message].concat();
    let queries = [(7, "d.test"), (8, "e.test"), (9, "f.test")];
    let queries = queries.map(|(id, name)| framed(dns::query(id, name, dns::A)));
    let address = ([192, 0, 2, 1]).into();
    let answers = [(dns::Data::Address(address), 60)];
    let answer = framed(dns::response(8, "e.test", dns::A, dns::NOERROR, &answers));
    let mut tcp = trace.connect(client, server);
    queries.iter().flat_map(|query| query.chunks(20)).for_each(|part| tcp.send(part));
    answer.chunks(20).for_each(|part| tcp.reply(part));
    tcp.close();
    let s = Scratch::new("sql-dns");
    let capture = s.file("dns.pcap", &support::pcap(trace.frames()));
    let name = capture.to_str().unwrap();
    assert_eq!(run(&["index", "-q", "-C", name]).code, 0);
    let lines = |condition: &str| {
        let run = run(&["packets", "-C", "--log", "dns", "--where", condition, name]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout.lines().count()
    };
    assert_eq!(lines("query = 'b.test' AND rtt IS NULL"), 2);
    assert_eq!(lines("query = 'a.test'"), 4);
    let segments = |message: &[u8]| message.chunks(20).count();
    assert_eq!(lines("query = 'd.test'"), segments(&queries[0]));
    assert_eq!(lines("query = 'e.test'"), segments(&queries[1]) + segments(&answer));
    assert_eq!(lines("query = 'f.test'"), segments(&queries[2]));
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
    // A DNS request has two packets, its query and its answer, though other requests have the same endpoints.
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
    // The packets of an HTTP request begin with the request, after the handshake.
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
    // The function `packets` returns the numbers of packets.
    let numbers =
        run(&["sql", "SELECT packets(uid) AS p FROM conn WHERE service = 'http' LIMIT 1", name])
            .stdout;
    assert!(numbers.contains('['), "{numbers}");
    assert!(Path::new(&s.path("sample.pcap.gannet")).is_dir());
}

#[test]
fn the_name_of_a_file_chooses_the_format() {
    let s = Scratch::new("sql-format");
    let write = |name: &str, options: &[&str]| {
        let out = s.path(name);
        let found =
            run(&[&["sql", "SELECT 1 AS a", "-o", out.to_str().unwrap()], options].concat());
        assert_eq!((found.code, found.stderr.as_str()), (0, ""));
        fs::read(out).unwrap()
    };
    assert_eq!(write("a.json", &[]), b"{\"a\":1}\n");
    assert_eq!(write("a.csv", &[]), b"a\n1\n");
    assert!(write("a.parquet", &[]).starts_with(b"PAR1"));
    assert_eq!(write("b.json", &["--csv"]), b"a\n1\n");
}

#[test]
fn a_path_that_is_missing_is_no_query() {
    let missing = run(&["sql", "nologs/"]);
    assert_eq!(
        (missing.code, missing.stderr.as_str()),
        (2, "error: nologs/: no such file or folder\n")
    );
    let s = Scratch::new("sql-swapped");
    let source = s.file("sample.pcap", &sample());
    let tables = run(&["sql", ".tables", source.to_str().unwrap()]);
    assert!(tables.code == 0 && tables.stdout.contains("conn\n"), "{}", tables.stderr);
    assert!(tables.stderr.contains("captures: "), "{}", tables.stderr);
    // For a folder of logs, only its logs are listed, with their files.
    s.analyze("logs", &["--format", "parquet"], &source);
    let logs = s.path("logs");
    let listed = run(&["sql", ".tables", logs.to_str().unwrap()]).stdout;
    let dns = listed.lines().find(|line| line.starts_with("dns ")).unwrap();
    assert!(dns.ends_with("logs/dns.parquet") && !listed.contains("modbus"), "{listed}");
    let both = run(&["sql", ".tables", logs.to_str().unwrap(), source.to_str().unwrap()]).stdout;
    assert!(both.lines().any(|line| line.starts_with("modbus") && line.ends_with("  captures")));
    let swapped = run(&["sql", source.to_str().unwrap(), "SELECT uid FROM conn"]);
    assert_eq!(swapped.code, 2);
    assert!(swapped.stderr.contains("hint: the query is the first argument"), "{}", swapped.stderr);
}
