//! Sources of rows: captures, logs of every format, folders, patterns, files named in queries; and errors of queries.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crate::support::TempDir;
use crate::support::csv;
use crate::support::rows;
use gannet_query::ErrorKind;
use gannet_query::Options;
use gannet_query::Session;

fn session(paths: &[PathBuf]) -> Session {
    Session::new(paths, Options { threads: 2, ..Options::default() }).unwrap()
}

fn error(session: &Session, sql: &str) -> (String, Option<String>) {
    let error = csv(session, sql).unwrap_err();
    (error.to_string(), error.hint().map(str::to_owned))
}

#[test]
fn a_capture_is_named_in_the_query() {
    let sample = crate::support::sample();
    let sample = sample.display();
    let none = session(&[]);
    let of = |sql: &str| rows(&none, sql).unwrap();
    let conns = of(&format!("SELECT uid, id.orig_h FROM '{sample}' ORDER BY ts, uid"));
    assert_eq!(conns.len(), 10, "{conns:?}");
    let http = of(&format!("SELECT h.uid, h.host FROM '{sample}'.http h"));
    assert!(http.iter().all(|row| row[1] == "www.example.com") && !http.is_empty(), "{http:?}");
    let joined =
        of(&format!("SELECT c.uid FROM '{sample}' c JOIN '{sample}'.http AS h ON c.uid = h.uid"));
    assert_eq!(joined.len(), http.len());
    let (text, hint) = error(&none, &format!("SELECT * FROM '{sample}'.htp"));
    assert!(text.contains("has no log 'htp'"), "{text}");
    assert_eq!(hint.as_deref().map(|hint| hint.contains("http")), Some(true), "{hint:?}");
    let (text, hint) = error(&none, "SELECT * FROM conn");
    assert!(text.starts_with("no table is named 'conn'"), "{text}");
    assert!(hint.unwrap().contains("FROM 'trace.pcap'"));
}

#[test]
fn the_same_log_of_several_files_is_one_table() {
    let scratch = TempDir::new("mixed");
    let capture = scratch.traffic("traffic.pcap", 60);
    for format in ["parquet", "tsv", "json"] {
        scratch.analyze(&capture, format);
    }
    let one = rows(&session(std::slice::from_ref(&capture)), "SELECT count(*) FROM conn").unwrap();
    let one: u64 = one[0][0].parse().unwrap();
    // Folders, a glob pattern, and a capture.
    let paths = vec![
        scratch.path("parquet"),
        scratch.path("ts?/conn*"),
        scratch.path("json").join("conn.log"),
        capture.clone(),
    ];
    let all = session(&paths);
    let counted = rows(&all, "SELECT count(*), count(DISTINCT uid) FROM conn").unwrap();
    assert_eq!(counted, [[(4 * one).to_string(), one.to_string()]]);
    // Each row is found four times, with the same values.
    let groups = "SELECT count(*) AS n FROM conn GROUP BY ts, uid, id.orig_h, id.orig_p, proto, service, duration, \
                  orig_bytes, history, local_orig";
    let groups = rows(&all, groups).unwrap();
    assert!(groups.iter().all(|row| row[0] == "4"), "{groups:?}");
    // A compressed TSV log, and a log in two parts.
    let text = fs::read(scratch.path("tsv").join("conn.log")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&text).unwrap();
    let folder = scratch.path("packed");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("conn.00:00:00-01:00:00.log.gz"), packed.finish().unwrap()).unwrap();
    fs::write(
        folder.join("conn.01:00:00-02:00:00.log.zst"),
        zstd::encode_all(&text[..], 1).unwrap(),
    )
    .unwrap();
    fs::write(folder.join("readme.txt"), "neither a capture nor a log").unwrap();
    let packed = session(std::slice::from_ref(&folder));
    let counted = rows(&packed, "SELECT count(*) FROM conn").unwrap();
    assert_eq!(counted, [[(2 * one).to_string()]]);
    let (warnings, damaged) = packed.problems();
    assert!(warnings.len() == 1 && warnings[0].contains("readme.txt"), "{warnings:?}");
    assert!(damaged.is_empty(), "{damaged:?}");
}

#[test]
fn every_table_has_a_capture_column_with_each() {
    let scratch = TempDir::new("each");
    let (a, b) = (scratch.path("a.pcap"), scratch.path("b.pcap"));
    for path in [&a, &b] {
        fs::copy(crate::support::sample(), path).unwrap();
    }
    let options = || Options { threads: 2, each: true, ..Options::default() };
    let names = [&a, &b].map(|path| path.display().to_string());
    let both = Session::new(&[a.clone(), b.clone()], options()).unwrap();
    let counts = "SELECT capture, count(*) FROM conn GROUP BY capture ORDER BY capture";
    let expected = names.clone().map(|name| vec![name, "10".to_owned()]);
    assert_eq!(rows(&both, counts).unwrap(), expected);
    // Both have the same uids.
    let dns = rows(&both, "SELECT count(*) FROM dns").unwrap().concat();
    let joined = "SELECT count(*) FROM conn JOIN dns USING (capture, uid)";
    assert_eq!(rows(&both, joined).unwrap().concat(), dns);
    let limited = "SELECT capture, uid FROM conn LIMIT 12";
    assert_eq!(rows(&both, limited).unwrap().len(), 12);
    // Logs of folders, in all formats.
    for format in ["parquet", "tsv", "json"] {
        scratch.analyze(&a, format);
    }
    let folders = ["parquet", "tsv", "json"].map(|format| scratch.path(format));
    let mut paths = folders.to_vec();
    paths.push(b.clone());
    let all = Session::new(&paths, options()).unwrap();
    let mut expected: Vec<_> = folders.iter().map(|path| path.display().to_string()).collect();
    expected.push(names[1].clone());
    expected.sort();
    let counts = rows(&all, counts).unwrap();
    assert_eq!(
        counts,
        expected.into_iter().map(|name| vec![name, "10".into()]).collect::<Vec<_>>()
    );
    let of_one = format!(
        "SELECT count(*), max(capture), count(DISTINCT uid) FROM conn WHERE capture LIKE '%{}' AND proto = 'udp'",
        "/parquet"
    );
    let of_one = rows(&all, &of_one).unwrap().concat();
    assert!(of_one[0] == of_one[2] && of_one[1].ends_with("/parquet"), "{of_one:?}");
    let whole = rows(&all, "SELECT * FROM conn WHERE capture LIKE '%/parquet' LIMIT 1").unwrap();
    assert!(whole[0].last().unwrap().ends_with("/parquet"), "{whole:?}");
    // Also without other sources.
    let named = Session::new(&[], options()).unwrap();
    let one = format!("SELECT DISTINCT capture FROM '{}'.dns", names[0]);
    assert_eq!(rows(&named, &one).unwrap(), [[names[0].clone()]]);
}

#[test]
fn rows_of_several_logs_in_a_file_are_several_tables() {
    let scratch = TempDir::new("mixed-json");
    let file = scratch.path("all.json");
    let conn = r#"{"_path":"conn","ts":1.5,"uid":"C1","id.orig_h":"10.0.0.1","duration":2.0}"#;
    let dns = r#"{"ts":2.5,"uid":"C1","_path":"dns","query":"a.test","_write_ts":3.5}"#;
    let own = r#"{"_path":"own","n":1}"#;
    fs::write(&file, format!("{conn}\n{dns}\n\n{conn}\n{own}\n{{\"n\":1}}\n")).unwrap();
    let all = session(std::slice::from_ref(&file));
    assert_eq!(all.tables(), ["conn", "dns", "own"]);
    assert_eq!(rows(&all, "SELECT count(*), max(duration) FROM conn").unwrap(), [["2", "2.0"]]);
    let (_, damaged) = all.problems();
    assert!(damaged.len() == 1 && damaged[0].contains("1 line that is not a row"), "{damaged:?}");
    let joined = "SELECT query, n FROM dns JOIN own ON true WHERE _write_ts > 3";
    assert_eq!(rows(&all, joined).unwrap(), [["a.test", "1"]]);
    let name = file.display();
    let one = format!("SELECT id.orig_h FROM '{name}'.conn");
    assert_eq!(rows(&session(&[]), &one).unwrap(), [["10.0.0.1"], ["10.0.0.1"]]);
    let (text, hint) = error(&session(&[]), &format!("SELECT * FROM '{name}'"));
    assert!(text.contains("has several logs: conn, dns, own"), "{text}");
    assert!(hint.unwrap().ends_with("'.conn"));
}

#[test]
fn errors_show_the_location_of_wrong_names() {
    let session = session(&[crate::support::sample()]);
    let (text, hint) = error(&session, "SELECT uid,\n  id.orig_x FROM conn");
    assert!(text.contains("\n 2 |   id.orig_x FROM conn\n   |   ^^^^^^^^^"), "{text}");
    assert!(hint.unwrap().contains("id.orig_h"));
    let (text, hint) = error(&session, "SELECT servce FROM conn");
    assert_eq!(
        text,
        "no column is named 'servce'\n 1 | SELECT servce FROM conn\n   |        ^^^^^^"
    );
    assert_eq!(hint.as_deref(), Some("did you mean service?"));
    let (text, hint) = error(&session, "SELECT * FROM cnn");
    assert_eq!(text, "no table is named 'cnn'\n 1 | SELECT * FROM cnn\n   |               ^^^");
    assert!(hint.unwrap().contains("conn"));
    let (text, _) = error(&session, "SELECT uid FORM conn x");
    assert!(text.contains("^"), "{text}");
    let (text, hint) = error(&session, "SELECT cdir(id.orig_h, '10.0.0.0/8') FROM conn");
    assert!(text.starts_with("no function is named 'cdir'") && text.contains("^^^^"), "{text}");
    assert_eq!(hint.as_deref(), Some("did you mean cidr?"));
    let (text, _) = error(&session, "SELECT cidr(id.orig_h, '10/8/3') FROM conn");
    assert!(text.contains("'10/8/3' is not a network"), "{text}");
    // Names are case-insensitive; quotes are kept.
    assert!(!rows(&session, "SELECT UID, ID.ORIG_H, \"id.resp_h\" FROM CONN").unwrap().is_empty());
    assert!(!rows(&session, "SELECT AA, rd FROM dns").unwrap().is_empty());
}

#[test]
fn columns_without_a_name_are_named_by_their_expression() {
    let session = session(&[crate::support::sample()]);
    let header = |sql: &str| {
        let text = csv(&session, sql).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    };
    for (sql, expected) in [
        ("SELECT 1, count(*), c.id.orig_h FROM conn c GROUP BY 3", "1,count(*),id.orig_h"),
        ("SELECT cidr(id.orig_h, '10.0.0.0/8') FROM conn", "\"cidr(id.orig_h, '10.0.0.0/8')\""),
        ("SELECT max(ts) AS last, uid FROM conn GROUP BY uid", "last,uid"),
        ("SELECT 1 + 1 UNION ALL SELECT 3", "1 + 1"),
        ("(SELECT lower(uid) FROM conn) ORDER BY 1 LIMIT 0", "lower(uid)"),
    ] {
        assert_eq!(header(sql), expected, "{sql}");
    }
    // DataFusion's names are kept if the labels from the query are not unique, or unknown.
    assert!(csv(&session, "SELECT 1, * FROM (SELECT 2 AS b)").is_ok());
    assert!(csv(&session, "VALUES (1, 'a')").is_ok());
}

#[test]
fn errors_of_function_arguments_show_their_location() {
    let session = session(&[crate::support::sample()]);
    for (sql, words) in [
        ("SELECT cidr(id.orig_h, 'x') FROM conn", "'x' is not a network"),
        ("SELECT hist(ts, '1y') FROM conn", "'1y' is not an interval"),
        ("SELECT uid FROM conn WHERE service = 5", "annot cast string"),
        ("SELECT uid FROM conn WHERE ts < 'yesterday'", "'yesterday' is not a time"),
        ("SELECT cidr(uid) FROM conn", "cidr takes 2 arguments, not 1"),
        ("SELECT 1; SELECT 2", "give one statement"),
        ("", "the query is empty"),
    ] {
        let error = rows(&session, sql).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Query, "{sql}: {error}");
        assert!(error.to_string().contains(words), "{sql}: {error}");
    }
}

#[test]
fn only_queries_are_run() {
    let session = session(&[crate::support::sample()]);
    let folder = std::env::temp_dir().join("gannet-never-written");
    for sql in [
        "CREATE TABLE x AS SELECT 1",
        "DROP TABLE conn",
        "INSERT INTO conn SELECT * FROM conn",
        "SET datafusion.execution.batch_size = 1",
        &format!("COPY conn TO '{}'", folder.display()),
        "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '/etc/passwd'",
        "SELECT 1; SELECT 2",
        "",
    ] {
        let error = csv(&session, sql).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Query, "{sql}: {error}");
    }
    assert!(!folder.exists());
    assert!(csv(&session, "EXPLAIN SELECT uid FROM conn").unwrap().contains("conn"));
    assert!(csv(&session, "DESCRIBE conn").unwrap().contains("id.orig_h"));
}

#[test]
fn optional_columns_exist_if_the_query_names_them() {
    let session = session(&[crate::support::sample()]);
    let all = csv(&session, "SELECT * FROM conn LIMIT 1").unwrap();
    assert!(!all.contains("community_id"));
    assert!(rows(&session, "SELECT Community_ID FROM conn").is_ok());
    let query = "SELECT community_id AS made, community_id(id.orig_h, id.orig_p, id.resp_h, id.resp_p, proto) AS asked \
                 FROM conn WHERE proto <> 'unknown_transport'";
    let ids = rows(&session, query).unwrap();
    assert!(!ids.is_empty());
    for id in ids {
        assert!(id[0].starts_with("1:") && id[0] == id[1], "{id:?}");
    }
}

#[test]
fn files_are_hashed_where_a_hash_is_named() {
    let session = session(&[crate::support::sample()]);
    let of = |columns: &str| rows(&session, &format!("SELECT {columns} FROM files")).unwrap();
    let hashes = of("md5, sha1, sha256");
    assert!(!hashes.is_empty());
    // Case does not matter.
    assert_eq!(of("MD5").concat(), hashes.iter().map(|row| row[0].clone()).collect::<Vec<_>>());
    for row in hashes {
        assert_eq!(row.iter().map(String::len).collect::<Vec<_>>(), [32, 40, 64], "{row:?}");
    }
    assert!(of("*").iter().flatten().all(|value| value.len() < 64));
}

#[test]
fn damage_is_reported_with_the_rows_before_it() {
    let scratch = TempDir::new("damage");
    let whole = fs::read(crate::support::sample()).unwrap();
    let cut = scratch.path("cut.pcap");
    fs::write(&cut, &whole[..whole.len() - 10]).unwrap();
    let damaged = session(&[cut]);
    assert!(!rows(&damaged, "SELECT uid FROM conn").unwrap().is_empty());
    let (_, problems) = damaged.problems();
    assert!(problems.len() == 1 && problems[0].contains("cut.pcap"), "{problems:?}");

    let log = scratch.path("conn.log");
    let head = "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tn\n#types\ttime\tstring\tcount\n";
    fs::write(&log, format!("{head}1.5\tC1\t7\n2.5\tC2\tx\nshort\tline\n3.5\t(empty)\t-\n"))
        .unwrap();
    let damaged = session(&[log]);
    let found = csv(&damaged, "SELECT * FROM conn").unwrap();
    let expected = "ts,uid,n\n1970-01-01T00:00:01.500000Z,C1,7\n1970-01-01T00:00:02.500000Z,C2,\n\
                    1970-01-01T00:00:03.500000Z,\"\",\n";
    assert_eq!(found, expected);
    let (_, problems) = damaged.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("1 line that is not a row"), "{problems:?}");
    assert!(problems[1].contains("1 value of 'n'"), "{problems:?}");

    let json = scratch.path("odd.json");
    fs::write(&json, "{\"ts\":1.5,\"id\":{\"orig_h\":\"192.0.2.1\"},\"tags\":[\"a\",\"b\"]}\n[1]\n{\"ts\":\"2026-11-21T08:47:00Z\"}\n")
        .unwrap();
    let odd = session(&[json]);
    let found = csv(&odd, "SELECT ts, id.orig_h, tags[2] AS second FROM odd").unwrap();
    let expected = "ts,id.orig_h,second\n1970-01-01T00:00:01.500000Z,192.0.2.1,b\n2026-11-21T08:47:00.000000Z,,\n";
    assert_eq!(found, expected);
    assert!(odd.problems().1[0].contains("1 line that is not a row"));
}

#[test]
fn files_of_unknown_formats_are_rejected() {
    let scratch = TempDir::new("refused");
    let text = scratch.path("notes.txt");
    fs::write(&text, "notes").unwrap();
    for path in [text, scratch.path("missing"), scratch.path("*.pcap")] {
        let error = Session::new(std::slice::from_ref(&path), Options::default()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_query_with_a_limit_does_not_read_all_of_a_capture() {
    let scratch = TempDir::new("limit");
    let whole = scratch.traffic("traffic.pcap", 3_000);
    // Damage at the end is reported only if the query reads that far.
    let mut bytes = fs::read(&whole).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&whole, bytes).unwrap();
    let session = session(&[whole]);
    let ten = rows(&session, "SELECT uid FROM conn LIMIT 10").unwrap();
    assert_eq!(ten.len(), 10);
    assert_eq!(session.problems().1, Vec::<String>::new());
    let all = rows(&session, "SELECT count(*) FROM conn").unwrap();
    assert!(all[0][0].parse::<u64>().unwrap() > 1_000);
    assert_eq!(session.problems().1.len(), 1);
}

#[test]
fn a_time_range_ends_the_analysis_of_a_capture() {
    let scratch = TempDir::new("until");
    // One packet per second for more than half an hour.
    let whole = scratch.spread("traffic.pcap", 1_000, 0..0);
    scratch.analyze(&whole, "tsv");
    let (capture, logs) = (session(&[whole]), session(&[scratch.path("tsv")]));
    assert!(!rows(&capture, "SELECT uid FROM conn").unwrap().is_empty());
    let all = capture.analysed();
    assert!(all > 1_800, "{all} packets");
    let times = rows(&logs, "SELECT ts FROM conn ORDER BY ts").unwrap();
    let mut ended_early = 0;
    for share in [10, 3, 1] {
        let time = &times[times.len() / share - 1][0];
        for condition in
            [format!("ts <= '{time}'"), format!("ts BETWEEN '{}' AND '{time}'", times[20][0])]
        {
            for log in ["conn", "dns"] {
                let sql = format!("SELECT * FROM {log} WHERE {condition} ORDER BY ts, uid");
                let found = rows(&capture, &sql).unwrap();
                assert!(!found.is_empty(), "{sql}");
                assert_eq!(found, rows(&logs, &sql).unwrap(), "{sql}");
                ended_early += usize::from(capture.analysed() < all);
            }
        }
    }
    assert_eq!(ended_early, 8, "only the last time is near the end");
}

/// Packets that are far out of order also have rows: the analysis that ended before them is repeated.
#[test]
fn a_time_range_includes_the_rows_of_late_packets() {
    let scratch = TempDir::new("late");
    // The packets of ten seconds are half an hour late.
    let whole = scratch.spread("traffic.pcap", 1_000, 100..110);
    scratch.analyze(&whole, "tsv");
    let logs = session(&[scratch.path("tsv")]);
    // The first packet is one second after this time of day.
    let time = |second: u64| {
        let of_day = 22 * 3_600 + 13 * 60 + 20 + second;
        format!("2023-11-14T{:02}:{:02}:{:02}Z", of_day / 3_600, of_day / 60 % 60, of_day % 60)
    };
    for threads in [1, 2] {
        let options = Options { threads, ..Options::default() };
        let capture = Session::new(std::slice::from_ref(&whole), options).unwrap();
        rows(&capture, "SELECT uid FROM conn").unwrap();
        let all = capture.analysed();
        for log in ["conn", "dns"] {
            for (until, is_repeated) in [(50, false), (300, true), (all - 10, false)] {
                let sql =
                    format!("SELECT * FROM {log} WHERE ts <= '{}' ORDER BY ts, uid", time(until));
                let found = rows(&capture, &sql).unwrap();
                assert!(!found.is_empty(), "{sql}");
                assert_eq!(found, rows(&logs, &sql).unwrap(), "{sql}");
                assert_eq!(capture.analysed() > all, is_repeated, "{sql}");
            }
        }
    }
    let late = format!("SELECT uid FROM conn WHERE ts >= '{}' AND ts < '{}'", time(100), time(110));
    assert!(!rows(&session(&[whole]), &late).unwrap().is_empty());
}

#[test]
fn a_query_ends_when_it_is_cancelled() {
    let session = session(&[]);
    let endless = "SELECT count(*) FROM generate_series(1, 500) a, generate_series(1, 10000000) b \
                   WHERE a.value * b.value % 7 = 3";
    let mut answer = session.query(endless).unwrap();
    let stop = session.stop();
    let begun = Instant::now();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
    });
    let error = answer.next().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(answer);
    // The next query runs.
    assert_eq!(rows(&session, "SELECT 1 AS one").unwrap(), [["1"]]);
}

#[test]
fn queries_beyond_the_memory_limit_spill_or_fail() {
    let options = |memory| Options { memory, threads: 2, ..Options::default() };
    let sort = "SELECT max(v + k) FROM (SELECT value AS v, row_number() OVER (ORDER BY value % 1009, value) AS k \
                FROM generate_series(1, 400000))";
    let large = Session::new(&[], options(1 << 30)).unwrap();
    let small = Session::new(&[], options(12 << 20)).unwrap();
    assert_eq!(rows(&large, sort).unwrap(), rows(&small, sort).unwrap());
    let tiny = Session::new(&[], options(10_000)).unwrap();
    let error = rows(&tiny, sort).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Run, "{error}");
    assert!(error.hint().unwrap().contains("memory"), "{error}");
}

#[test]
fn tables_and_columns_are_listed() {
    let scratch = TempDir::new("catalogue");
    scratch.analyze(&crate::support::sample(), "tsv");
    let session = session(&[scratch.path("tsv")]);
    let of = |sql: &str| rows(&session, sql).unwrap();
    let tables = of("SHOW TABLES").concat();
    assert!(tables.contains(&"conn".to_owned()) && tables.contains(&"dns".to_owned()));
    assert_eq!(of("SHOW TABLES LIKE 'con%'"), [["conn"]]);
    let names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    let mut listed = of(names).concat();
    listed.sort();
    assert_eq!(listed, tables);
    let columns = of("DESCRIBE conn");
    assert_eq!(of("SHOW COLUMNS FROM conn"), columns);
    assert!(columns.iter().any(|row| row[0] == "id.orig_h"), "{columns:?}");
    // Names are case-insensitive, and tables that an earlier query named are not listed.
    let file = scratch.path("tsv/conn.log");
    of(&format!("SELECT uid FROM '{}' LIMIT 1", file.display()));
    let found = "SELECT Column_Name FROM INFORMATION_SCHEMA.Columns c WHERE c.TABLE_NAME = 'conn' AND table_schema = 'public'";
    assert_eq!(of(found).concat(), columns.iter().map(|row| row[0].clone()).collect::<Vec<_>>());
    assert_eq!(of(names).len(), tables.len());
    let (text, hint) = error(&session, "SUMMARIZE dns");
    assert!(text.starts_with("SUMMARIZE is not supported\n 1 | SUMMARIZE dns\n"), "{text}");
    assert!(hint.unwrap().contains("DESCRIBE dns"));
    for (sql, word) in [
        ("SHOW COLUMNS FROM conn LIKE 'id%'", "information_schema.columns"),
        ("SHOW TABLES WHERE name = 'conn'", "information_schema.tables"),
        ("SHOW FUNCTIONS", "routine_name"),
        ("SHOW COLUMNS FROM con", "conn"),
        ("SELECT * FROM information_schema.tabels", "tables"),
    ] {
        let (text, hint) = error(&session, sql);
        assert!(text.contains("\n 1 | "), "{sql}: {text}");
        assert!(hint.as_deref().is_some_and(|hint| hint.contains(word)), "{sql}: {text} {hint:?}");
    }
}

#[test]
fn functions_of_other_engines_have_a_replacement() {
    let session = session(&[crate::support::sample()]);
    for (call, instead) in [
        ("len(uid)", "length(text)"),
        ("typeof(ts)", "arrow_typeof"),
        ("quantile(duration, 0.5)", "approx_percentile_cont"),
        ("strftime(ts, '%H')", "to_char"),
        ("arg_max(uid, duration)", "first_value"),
    ] {
        let (text, hint) = error(&session, &format!("SELECT {call} FROM conn"));
        let carets = "^".repeat(call.find('(').unwrap());
        assert!(text.contains("no function is named '"), "{call}: {text}");
        assert!(text.ends_with(&format!(" {carets}")), "{call}: {text}");
        assert!(hint.as_deref().is_some_and(|hint| hint.contains(instead)), "{call}: {hint:?}");
    }
}

#[test]
fn queries_for_other_engines_run_or_have_hints() {
    let scratch = TempDir::new("habits");
    scratch.analyze(&crate::support::sample(), "parquet");
    let session = session(&[scratch.path("parquet")]);
    let of = |sql: &str| rows(&session, sql).unwrap();
    assert_eq!(of("FROM conn LIMIT 1"), of("SELECT * FROM conn LIMIT 1"));
    assert_eq!(
        of("SELECT count(*) FROM conn WHERE uid REGEXP '^C' AND uid NOT RLIKE 'x y'"),
        [["10"]]
    );
    assert_eq!(
        of("SELECT count(*) FROM conn WHERE ts > '2000-01-02' - INTERVAL '1 day'"),
        [["10"]]
    );
    // A time in another zone has its offset.
    let zoned = of(
        "SELECT TIMESTAMP '2020-04-16 12:54:32' AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
    );
    assert_eq!(zoned, [["2020-04-16T14:54:32.000000+02:00"]]);
    for (sql, words, hinted) in [
        (
            "SELECT uid FROM conn WHERE id.orig_h = 10.0.0.1",
            "Expected: ",
            "single quotes: '10.0.0.1'",
        ),
        (
            "SELECT cidr(id.orig_h, 10.0.0.0/8) FROM conn",
            "Expected: ",
            "single quotes: '10.0.0.0/8'",
        ),
        ("SELECT * EXCEPT (id.orig_h) FROM conn", "Expected: ", "\"id.orig_h\""),
        ("SELECT src_ip FROM conn", "no column is named 'src_ip'", "Zeek calls it id.orig_h"),
        ("SELECT id FROM conn", "no column is named 'id'", "id.resp_p"),
        ("SELECT id.* FROM conn", "has no table 'id'", "id.orig_h"),
        ("SELECT community_id FROM conn", "named 'community_id'", "--columns community_id"),
        ("SELECT count(*) AS n FROM conn WHERE n > 1", "no column is named 'n'", "HAVING"),
        ("SELECT uid, count(*) FROM conn", "'uid' is neither in GROUP BY nor", "GROUP BY ALL"),
        ("SELECT id.orig_h, count(*) FROM conn", "'id.orig_h' is neither", "GROUP BY ALL"),
        (
            "SELECT uid FROM conn WHERE duration > '1 minute'",
            "'1 minute' is not a number",
            "INTERVAL '1 minute'",
        ),
        (
            "SELECT uid FROM conn WHERE id.orig_h = '10.0.0.0/8'",
            "is a network",
            "cidr(id.orig_h, '10.0.0.0/8')",
        ),
        (
            "SELECT uid FROM conn WHERE id.orig_h IN ('fe80::/10')",
            "is a network",
            "cidr(id.orig_h, 'fe80::/10')",
        ),
        ("SELECT uid FROM conn WHERE ts > '2016'", "'2016' is not a time", "'2023-11-14'"),
        (
            "SELECT to_char(ts AT TIME ZONE 'Asia/Tokyo', '%H'), to_char(ts, '%H') FROM conn",
            "two columns are the same to_char(…)",
            "another name",
        ),
        ("SELECT rank() FROM conn", "rank needs a window", "OVER ("),
        (
            "SELECT count(DISTINCT uid, ts) FROM conn",
            "takes one argument",
            "count(DISTINCT (id.orig_h",
        ),
        ("SELECT * FROM read_parquet('x')", "no function is named 'read_parquet'", "single quotes"),
        ("SELECT * FROM modbus", "no file has the log 'modbus'", "conn"),
    ] {
        let (text, hint) = error(&session, sql);
        assert!(text.contains(words) && text.contains("\n 1 | "), "{sql}: {text}");
        assert!(
            hint.as_deref().is_some_and(|hint| hint.contains(hinted)),
            "{sql}: {text} {hint:?}"
        );
    }
    for (sql, words, hinted) in [
        (
            "SELECT uid FROM dns WHERE answers = '192.0.2.1'",
            "a list cannot be compared",
            "list_contains",
        ),
        (
            "SELECT uid FROM dns WHERE answers LIKE '%1%'",
            "a list cannot be compared",
            "array_to_string",
        ),
        ("SELECT uid FROM conn WHERE ts LIKE '2016%'", "not times", "to_char"),
        (
            "SELECT uid FROM conn WHERE local_orig = 'T'",
            "compared only with booleans",
            "local_orig = true",
        ),
        ("SELECT CAST(uid AS BIGINT) FROM conn", "cannot cast string 'C", "TRY_CAST"),
        ("COPY conn TO 'x.csv'", "only queries are supported", "--out FILE"),
    ] {
        let (text, hint) = error(&session, sql);
        assert!(text.contains(words), "{sql}: {text}");
        assert!(
            hint.as_deref().is_some_and(|hint| hint.contains(hinted)),
            "{sql}: {text} {hint:?}"
        );
    }
}

#[test]
fn times_are_compared_as_times_everywhere() {
    let session = session(&[crate::support::sample()]);
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) FROM conn WHERE {condition}");
        rows(&session, &sql).unwrap().concat().swap_remove(0)
    };
    let times = rows(&session, "SELECT min(ts), epoch(min(ts)) FROM conn").unwrap().concat();
    let [first, epoch] = &times[..] else { panic!("{times:?}") };
    assert_eq!(count(&format!("ts = '{first}'")), "1");
    assert_eq!(count(&format!("ts IN ('{first}', '1999-01-01')")), "1");
    assert_eq!(count(&format!("ts NOT IN ('{first}')")), "9");
    assert_eq!(count(&format!("ts IN ({epoch}, 0)")), "1");
    assert_eq!(count(&format!("ts BETWEEN '{first}' AND {epoch}")), "1");
    assert_eq!(count(&format!("'{first}' BETWEEN ts AND ts + 1")), "1");
    assert_eq!(count(&format!("ts IS DISTINCT FROM '{first}'")), "9");
    assert_eq!(count("duration NOT BETWEEN INTERVAL '0 seconds' AND INTERVAL '1 day'"), "0");
    assert_eq!(count("id.orig_p BETWEEN -1 AND 70000"), "10");
    for (wrong, word) in [
        ("ts = 'yesterday'", "yesterday"),
        ("ts > '2024-13-01'", "2024-13-01"),
        ("ts IN ('1999-01-01', 'never')", "never"),
        ("ts BETWEEN '1999-01-01' AND 'soon'", "soon"),
        ("ts = ''", ""),
    ] {
        let (text, hint) = error(&session, &format!("SELECT uid FROM conn WHERE {wrong}"));
        assert!(text.starts_with(&format!("'{word}' is not a time\n 1 | ")), "{wrong}: {text}");
        let carets = "^".repeat(word.len() + 2);
        assert!(text.ends_with(&format!(" {carets}")), "{wrong}: {text}");
        assert!(hint.is_some_and(|hint| hint.contains("seconds since 1970")));
    }
    // A volatile expression is evaluated once.
    let half = "SELECT count(*) FROM generate_series(1, 20000) WHERE random() BETWEEN 0.4 AND 0.6";
    let half: u32 = rows(&session, half).unwrap().concat()[0].parse().unwrap();
    assert!((3_600..4_400).contains(&half), "{half}");
}

#[test]
fn numbers_do_not_wrap() {
    let session = session(&[crate::support::sample()]);
    let of = |sql: &str| rows(&session, sql).unwrap().swap_remove(0);
    let ports =
        "FROM (SELECT arrow_cast(80, 'UInt16') AS low, arrow_cast(50000, 'UInt16') AS high)";
    let numbers = of(&format!(
        "SELECT low - high, high + high, -low, high * high, sum(high) {ports} GROUP BY low, high"
    ));
    assert_eq!(numbers, ["-49920", "100000", "-80", "2500000000", "50000"]);
    let schema = session.query("SELECT id.resp_p, -id.resp_p FROM conn").unwrap().schema();
    let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types, ["UInt16", "Int64"]);
    let names = session.query("SELECT * FROM (SELECT orig_bytes + 1 FROM conn)").unwrap().schema();
    assert_eq!(names.field(0).name(), "conn.orig_bytes + Int64(1)");
    let many = "FROM (VALUES (9223372036854775807, 1), (1, 1)) t(x, k)";
    for wrong in [
        "SELECT 9223372036854775807 + 1".to_owned(),
        format!("SELECT x + 1 {many}"),
        format!("SELECT x * 2 {many}"),
        format!("SELECT -x - 2 {many}"),
        format!("SELECT sum(x) {many}"),
        format!("SELECT sum(DISTINCT x) {many}"),
        format!("SELECT k, sum(x) {many} GROUP BY k"),
        format!("SELECT sum(x) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) {many}"),
    ] {
        let (text, hint) = error(&session, &wrong);
        assert!(text.contains("does not fit in bigint"), "{wrong}: {text}");
        assert!(hint.unwrap().contains("cast"), "{wrong}");
    }
    // A sliding window.
    let window = "OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let (text, _) = error(&session, &format!("SELECT sum(DISTINCT x) {window} {many}"));
    assert!(
        text.starts_with("a sum does not fit in bigint\n 1 | ") && text.contains("^^^"),
        "{text}"
    );
    let some = "(VALUES (1, 9223372036854775807), (2, -1), (3, -1), (4, NULL), (5, NULL)) t(k, x)";
    assert_eq!(
        rows(&session, &format!("SELECT sum(DISTINCT x) {window} FROM {some} ORDER BY k"))
            .unwrap()
            .concat(),
        ["9223372036854775807", "9223372036854775806", "-1", "-1", ""]
    );
    let doubles = format!("SELECT sum(DISTINCT x / 2.0) {window} FROM {some}");
    let (text, hint) = error(&session, &doubles);
    assert!(text.contains("supports only integers\n 1 | ") && hint.is_some(), "{text}");
    // Independent of the order of rows.
    let back = "SELECT sum(x) FROM (VALUES (9223372036854775807), (1), (-1)) t(x)";
    assert_eq!(of(back), ["9223372036854775807"]);
    assert_eq!(of("SELECT sum(x) FROM (VALUES (1.5), (2)) t(x)"), ["3.5"]);
    assert_eq!(of("SELECT sum(orig_bytes) IS NULL FROM conn WHERE false"), ["true"]);
}

#[test]
fn times_are_added_to_and_compared() {
    let scratch = TempDir::new("times");
    let capture = scratch.traffic("traffic.pcap", 60);
    let session = session(&[capture]);
    let of = |sql: &str| rows(&session, sql).unwrap().swap_remove(0);
    let time = "(SELECT to_timestamp_micros(1700000400250000) AS ts, 1.5 AS duration)";
    assert_eq!(
        of(&format!("SELECT ts + duration, 2 + ts, ts - duration FROM {time}")),
        [
            "2023-11-14T22:20:01.750000Z",
            "2023-11-14T22:20:02.250000Z",
            "2023-11-14T22:19:58.750000Z"
        ]
    );
    assert_eq!(
        of(&format!(
            "SELECT (ts + duration) - ts, extract(epoch FROM (ts + duration) - ts), epoch(ts), \
             extract(epoch FROM ts + 1), date_part('epoch', interval '90 seconds'), ts - '2023-11-14' FROM {time}"
        )),
        ["1.5", "1.5", "1700000400.25", "1700000401.25", "90.0", "80400.25"]
    );
    for (condition, is_true) in [
        ("ts > '2023-11-14 22:20'", true),
        ("ts < '2023-11-14 22:20'", false),
        ("'2023-11-14T22:20Z' <= ts", true),
        ("ts > 1700000400", true),
        ("ts > 1700000400.25", false),
        ("ts >= '1700000400.25'", true),
        ("ts > 1700000000 + 399", true),
        ("ts BETWEEN '2023-11-14 22:20' AND 1700000401", true),
        ("ts NOT BETWEEN '2023-11-14 22:20' AND 1700000401", false),
        ("duration > interval '1 second'", true),
        ("ts - to_timestamp_micros(0) > interval '1 minute'", true),
        ("ts + interval '1 minute' > ts", true),
    ] {
        let found = of(&format!("SELECT {condition} FROM {time}"));
        assert_eq!(found, [is_true.to_string()], "{condition}");
    }
    // A numeric bound also ends the analysis.
    let all = rows(&session, "SELECT uid FROM conn WHERE ts < 1").unwrap();
    assert!(all.is_empty());
    let spans = of("SELECT max(ts) - min(ts) > 0, max(ts + duration) >= max(ts) FROM conn");
    assert_eq!(spans, ["true", "true"]);
    let (text, _) = error(&session, "SELECT epoch(uid) FROM conn");
    assert!(text.starts_with("epoch takes a time or an interval\n 1 | "), "{text}");
}

#[test]
fn unsupported_clauses_are_rejected() {
    let session = session(&[crate::support::sample()]);
    for (sql, clause) in [
        ("SELECT uid FROM conn TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT uid FROM conn SAMPLE 0.1", "SAMPLE"),
        ("SELECT uid FROM (SELECT uid FROM conn) TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT uid FROM conn PREWHERE uid = ''", "PREWHERE"),
        ("SELECT uid FROM conn FINAL", "FINAL"),
        ("SELECT uid FROM conn CONNECT BY uid = uid", "CONNECT BY"),
        ("SELECT uid FROM conn WITH (NOLOCK)", "WITH ("),
        ("SELECT uid FROM conn PARTITION (p)", "PARTITION"),
        ("SELECT * ILIKE 'u%' FROM conn", "ILIKE"),
        ("SELECT uid FROM conn FORMAT json", "FORMAT"),
        ("SELECT uid FROM conn SETTINGS a = 1", "SETTINGS"),
        ("SELECT uid FROM conn FOR UPDATE", "FOR"),
        ("SELECT proto, count(*) FROM conn GROUP BY proto WITH TOTALS", "WITH TOTALS"),
        ("SELECT proto, count(*) FROM conn GROUP BY proto WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT TOP 1 uid FROM conn", "TOP"),
        ("SELECT uid FROM conn FETCH FIRST 1 ROW ONLY", "FETCH"),
        ("SELECT uid FROM conn LIMIT 1 BY proto", "BY"),
        ("SELECT uid FROM conn CLUSTER BY uid", "CLUSTER BY"),
        ("SELECT uid FROM conn SORT BY uid", "SORT BY"),
        ("SELECT uid FROM conn WHERE uid ILIKE ANY ('a')", "ILIKE ANY"),
        ("SELECT uid FROM conn WHERE true && true", "&&"),
        ("SELECT orig_bytes // 2 FROM conn", "//"),
        ("SELECT uid FROM conn WHERE uid IN (SELECT uid FROM dns FOR UPDATE)", "FOR"),
    ] {
        let (text, _) = error(&session, sql);
        let name = clause.strip_prefix("TABLE").unwrap_or(clause);
        let before = " ".repeat(sql.find(clause).unwrap());
        let carets = "^".repeat(clause.len());
        let expected = format!("{name} is not supported\n 1 | {sql}\n   | {before}{carets}");
        assert_eq!(text, expected);
    }
    for right in [
        "SELECT proto, count(*) FROM conn GROUP BY ROLLUP (proto)",
        "SELECT uid FROM conn AS final",
        "SELECT uid FROM conn LIMIT 1 OFFSET 2",
        "SELECT * EXCLUDE (uid) FROM conn",
        "SELECT uid FROM conn QUALIFY row_number() OVER (PARTITION BY proto) = 1",
    ] {
        assert!(rows(&session, right).is_ok(), "{right}");
    }
}

#[test]
fn a_query_that_does_not_yield_is_abandoned() {
    let options = Options { threads: 1, ..Options::default() };
    let session = Session::new(&[], options).unwrap();
    let sql = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, \
               generate_series(1, 3000) c WHERE a.value + b.value + c.value < 3";
    let mut answer = session.query(sql).unwrap();
    let stop = session.stop();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
    });
    let begun = Instant::now();
    assert_eq!(answer.next().unwrap_err().kind, ErrorKind::Cancelled);
    drop(answer);
    assert_eq!(rows(&session, "SELECT 1 AS one").unwrap(), [["1"]]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn truncated_compressed_logs_return_the_rows_before() {
    let scratch = TempDir::new("cut");
    let capture = scratch.traffic("traffic.pcap", 400);
    scratch.analyze(&capture, "tsv");
    scratch.analyze(&capture, "json");
    for format in ["tsv", "json"] {
        // Several zstd blocks.
        let mut text = fs::read(scratch.path(format).join("conn.log")).unwrap();
        let rows_of_log = text.clone();
        while text.len() < 1 << 20 {
            text.extend_from_slice(&rows_of_log);
        }
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&text).unwrap();
        for (ending, packed) in
            [("gz", gzip.finish().unwrap()), ("zst", zstd::encode_all(&text[..], 1).unwrap())]
        {
            let path = scratch.path(&format!("conn.log.{ending}"));
            for cut in [8, 50] {
                fs::write(&path, &packed[..packed.len() - cut]).unwrap();
                let session = session(std::slice::from_ref(&path));
                let found = rows(&session, "SELECT count(*) FROM conn").unwrap();
                let (_, damaged) = session.problems();
                assert!(
                    damaged.iter().any(|text| text.contains("truncated or damaged")),
                    "{damaged:?}"
                );
                let count: u64 = found[0][0].parse().unwrap();
                assert!(count > 20, "{format} {ending} {cut}: {count}");
            }
        }
    }
}

#[test]
fn a_log_in_several_formats_counts_once() {
    let scratch = TempDir::new("formats");
    let capture = scratch.traffic("traffic.pcap", 60);
    let folder = scratch.path("all");
    fs::create_dir_all(&folder).unwrap();
    for (format, from, to) in [
        ("parquet", "conn.parquet", "conn.parquet"),
        ("tsv", "conn.log", "conn.log"),
        ("json", "conn.log", "conn.json"),
    ] {
        scratch.analyze(&capture, format);
        fs::copy(scratch.path(format).join(from), folder.join(to)).unwrap();
    }
    let count = |paths: &[PathBuf]| {
        let session = session(paths);
        let found = rows(&session, "SELECT count(*) FROM conn").unwrap();
        (found, session.problems().0)
    };
    let (one, _) = count(std::slice::from_ref(&capture));
    let (found, warnings) = count(std::slice::from_ref(&folder));
    assert_eq!(found, one);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("conn.json: ")
            && warnings[0].ends_with("conn.parquet has the same log in another format"),
        "{warnings:?}"
    );
    // Captures that are named in different ways are also read once.
    let other = scratch.path("all").join("../traffic.pcap");
    assert_eq!(count(&[capture.clone(), other]), (one, Vec::new()));
}

#[test]
fn columns_of_the_same_name_are_numbered() {
    let session = session(&[crate::support::sample()]);
    let names = |sql: &str| -> Vec<String> {
        let schema = session.query(sql).unwrap().schema();
        schema.fields().iter().map(|field| field.name().clone()).collect()
    };
    let sql = "SELECT c.ts, d.ts, 1 AS ts_1 FROM conn c JOIN dns d ON c.uid = d.uid";
    assert_eq!(names(sql), ["ts", "ts_2", "ts_1"]);
    let mut all = names("SELECT * FROM conn c JOIN dns d ON c.uid = d.uid");
    assert!(all.iter().any(|name| name == "id.orig_h_1"), "{all:?}");
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn errors_name_what_is_missing() {
    let session = session(&[crate::support::sample()]);
    let hint = |sql: &str| error(&session, sql).1.unwrap_or_default();
    assert!(hint("SELECT user_agent FROM conn").starts_with("this column exists in http, "));
    assert_eq!(
        hint("SELECT uid FROM conn WHERE service = ssl"),
        "write strings in single quotes: 'ssl'"
    );
    assert_eq!(hint("SELECT uid FROM h.pcap"), "write a log of a capture as FROM 'trace.pcap'.dns");
    assert!(hint("SELECT uid FROM nothing_at_all").starts_with("the tables are "));
    assert_eq!(hint("SELECT a.uid FROM conn b"), "the tables of the query are b");
    assert_eq!(
        hint("SELECT uid FROM dns WHERE query = www.example.com"),
        "write strings in single quotes: 'www.example.com'"
    );
    let (text, _) = error(&session, "SELECT sum(uid) FROM conn");
    assert!(text.starts_with("sum does not take a string\n 1 | "), "{text}");
    let of = |sql: &str| error(&session, sql).0;
    let sql = "SELECT id.orig_h AS h FROM conn WHERE h = '1'";
    let place = " ".repeat(sql.rfind("h =").unwrap());
    assert_eq!(of(sql), format!("no column is named 'h'\n 1 | {sql}\n   | {place}^"));
    assert!(of("SELECT 1 AS a, 2 AS a").starts_with("two columns are named 'a'\n 1 | "));
    assert!(of("SELECT substr(uid) FROM conn").starts_with("substr needs the number of its first"));
    assert!(of("SELECT cidr(id.orig_h, '10.0.0.0/88') FROM conn").ends_with("^^^^^^^^^^^^^"));
    let tables = rows(&session, "SHOW TABLES").unwrap();
    assert!(tables.contains(&vec!["conn".to_owned()]), "{tables:?}");
    assert!(rows(&session, "DESCRIBE conn").unwrap().len() > 10);
}
