use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::support::field::{Column, Field, Kind, Protocol};

/// A separate folder for a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("gannet-script-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn v4(a: u8, b: u8, c: u8, d: u8) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

fn columns() -> Vec<Column> {
    let kinds = [
        Kind::Bool,
        Kind::Int,
        Kind::Enum,
        Kind::Count,
        Kind::Port,
        Kind::Subnet,
        Kind::Addr,
        Kind::Double,
        Kind::Time,
        Kind::Interval,
        Kind::String,
        Kind::Set(Box::new(Kind::Count)),
        Kind::Vector(Box::new(Kind::String)),
        Kind::Func,
    ];
    kinds
        .into_iter()
        .map(|kind| Column::new(format!("{}", kind).replace(['[', ']'], "_"), kind))
        .collect()
}

fn row() -> Vec<Field<'static>> {
    vec![
        Field::Bool(true),
        Field::Int(-42),
        Field::Enum(Cow::Borrowed(b"SSH::LOG")),
        Field::Count(21),
        Field::Port(123, Protocol::Tcp),
        Field::Subnet(v4(10, 0, 0, 0), 24),
        Field::Addr(v4(1, 2, 3, 4)),
        Field::Double(3.15),
        Field::Time(1_315_801_931.273_616),
        Field::Interval(100.0),
        Field::string(b"hurz\t\xff"),
        Field::Set(vec![Field::Count(2), Field::Count(4)]),
        Field::Vector(vec![Field::string(b"a,b"), Field::Unset, Field::string(b"")]),
        Field::Func(Cow::Borrowed(b"foo\n{ \nreturn; \n}")),
    ]
}

fn text(config: &TextFormat, fields: &[Field<'_>]) -> String {
    let mut out = Vec::new();
    config.row(&mut out, fields);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_log_that_was_closed_temporarily_is_continued() {
    let folder = folder("parked");
    let columns =
        || vec![Column { name: "n".into(), kind: Kind::Count, optional: false, secondary: None }];
    let path = folder.join("x").to_str().unwrap().to_owned();
    let open = |gzip_level| {
        let file =
            LogFile { path: path.clone(), rotation_interval: 0.0, postprocessor: String::new() };
        let config = AsciiConfig { gzip_level, ..AsciiConfig::default() };
        AsciiWriter::open(file, config, columns()).unwrap()
    };
    let rows = |text: &str| -> Vec<String> {
        let open = |line: &&str| !line.starts_with("#open") && !line.starts_with("#close");
        let kind = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        text.lines().filter(open).map(kind).collect()
    };
    let header = ["#separator \\x09", "#set_separator", "#empty_field", "#unset_field", "#path"];
    let header = || header.iter().chain(&["#fields", "#types"]).map(|line| (*line).to_owned());
    let mut log = open(0);
    for n in 1..=3 {
        log.write(&[Field::Count(n)]).unwrap();
        log.park().unwrap();
        log.park().unwrap();
    }
    // Its closing line is that of the whole run.
    assert!(!fs::read_to_string(folder.join("x.log")).unwrap().contains("#close"));
    log.finish().unwrap();
    let text = fs::read_to_string(folder.join("x.log")).unwrap();
    let expected: Vec<_> = header().chain(["1", "2", "3"].map(str::to_owned)).collect();
    assert_eq!((rows(&text), text.matches("#close").count()), (expected, 1), "{text}");
    // A log that is rotated meanwhile has a closing line, and the next row begins a file.
    let mut log = open(0);
    log.write(&[Field::Count(1)]).unwrap();
    log.park().unwrap();
    let rotated = log.rotate(&format!("{path}-old")).unwrap();
    assert!(rotated.is_some());
    let old = fs::read_to_string(folder.join("x-old.log")).unwrap();
    assert!(old.lines().last().unwrap().starts_with("#close"), "{old}");
    log.write(&[Field::Count(2)]).unwrap();
    log.park().unwrap();
    // A log that is removed meanwhile begins again.
    fs::remove_file(folder.join("x.log")).unwrap();
    log.write(&[Field::Count(3)]).unwrap();
    log.finish().unwrap();
    let text = fs::read_to_string(folder.join("x.log")).unwrap();
    assert_eq!(rows(&text), header().chain(["3".to_owned()]).collect::<Vec<_>>(), "{text}");
    let mut log = open(3);
    for n in 1..=3 {
        log.write(&[Field::Count(n)]).unwrap();
        log.park().unwrap();
    }
    log.finish().unwrap();
    let file = fs::File::open(folder.join("x.log.gz")).unwrap();
    let mut text = String::new();
    Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(file), &mut text).unwrap();
    assert_eq!((rows(&text).len(), text.matches("#close").count()), (10, 1), "{text}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn rows_of_text() {
    let format = TextFormat::default();
    assert_eq!(
        text(&format, &row()),
        "T\t-42\tSSH::LOG\t21\t123\t10.0.0.0/24\t1.2.3.4\t3.15\t1315801931.273616\t100.000000\thurz\\x09\\xff\t2,4\t\
         a\\x2cb,-,(empty)\tfoo\\x0a{ \\x0areturn; \\x0a}"
    );
    let special = [
        Field::string(b"-"),
        Field::string(b"(empty)"),
        Field::string(b""),
        Field::Set(vec![]),
        Field::Unset,
        Field::string("é".as_bytes()),
        Field::string(b"a\\b"),
    ];
    assert_eq!(text(&format, &special), "\\x2d\t\\x28empty)\t(empty)\t(empty)\t-\té\ta\\\\b");
    let bars = TextFormat { separator: b"||".to_vec(), utf8: false, ..format.clone() };
    assert_eq!(
        text(&bars, &[Field::string(b"a||b|c\t"), Field::string("é".as_bytes())]),
        "a\\x7c\\x7cb|c\\x09||\\xc3\\xa9"
    );
    let sets = TextFormat { set_separator: b";".to_vec(), ..format };
    assert_eq!(
        text(&sets, &[Field::Set(vec![Field::string(b"a;b,c\td"), Field::Bool(false)])]),
        "a\\x3bb,c\\x09d;F"
    );
}

#[test]
fn rows_of_json() {
    let json = |format: JsonFormat, fields: &[Field<'_>]| {
        let mut out = Vec::new();
        format.row(&mut out, &columns(), fields);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        json(JsonFormat::default(), &row()),
        "{\"bool\":true,\"int\":-42,\"enum\":\"SSH::LOG\",\"count\":21,\"port\":123,\"subnet\":\"10.0.0.0/24\",\
         \"addr\":\"1.2.3.4\",\"double\":3.15,\"time\":1315801931.273616,\"interval\":100.0,\
         \"string\":\"hurz\\t\\\\xff\",\"set_count_\":[2,4],\"vector_string_\":[\"a,b\",null,\"\"],\
         \"func\":\"foo\\n{ \\nreturn; \\n}\"}"
    );
    let column = [Column::new("t", Kind::Time)];
    let time = |times, value| {
        let mut out = Vec::new();
        let bad = JsonFormat { times, ..JsonFormat::default() }.row(
            &mut out,
            &column,
            &[Field::Time(value)],
        );
        (String::from_utf8(out).unwrap(), bad.len())
    };
    assert_eq!(
        time(TimeFormat::Iso8601, 1_215_620_010.543_21).0,
        "{\"t\":\"2008-07-09T16:13:30.543210Z\"}"
    );
    assert_eq!(time(TimeFormat::Iso8601, -0.5).0, "{\"t\":\"1969-12-31T23:59:59.500000Z\"}");
    assert_eq!(
        time(TimeFormat::Iso8601, 1e300),
        ("{\"t\":\"2000-01-01T00:00:00.000000\"}".to_owned(), 1)
    );
    assert_eq!(time(TimeFormat::Millis, -1.5).0, "{\"t\":-1500}");
    assert_eq!(time(TimeFormat::MillisUnsigned, -1.5).0, "{\"t\":18446744073709550116}");
    assert_eq!(time(TimeFormat::Epoch, f64::NAN).0, "{\"t\":null}");
    let unset = JsonFormat { include_unset: true, ..JsonFormat::default() };
    let mut out = Vec::new();
    unset.row(&mut out, &column, &[Field::Unset]);
    assert_eq!(out, b"{\"t\":null}");
    out.clear();
    JsonFormat::default().row(&mut out, &column, &[Field::Unset]);
    assert_eq!(out, b"{}");
    let string = |strings, text: &[u8]| {
        let mut out = Vec::new();
        JsonFormat { strings, ..JsonFormat::default() }.row(
            &mut out,
            &column,
            &[Field::string(text)],
        );
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        string(StringPolicy::Pua, b"\"\xc3\xa9\xff\n"),
        "{\"t\":\"\\\"é\\udb80\\udcff\\n\"}"
    );
    assert_eq!(string(StringPolicy::Tsv, b"a\\\xff\n"), "{\"t\":\"a\\\\\\\\\\\\xff\\\\x0a\"}");
}

fn written(name: &str, options: &[(&str, &str)]) -> String {
    let dir = folder(name);
    let mut config = AsciiConfig { log_dir: dir.display().to_string(), ..AsciiConfig::default() };
    config.apply(options.iter().copied()).unwrap();
    let columns =
        vec![Column::new("a", Kind::String), Column::new("b.c", Kind::Set(Box::new(Kind::Addr)))];
    let mut writer =
        AsciiWriter::open(LogFile { path: "x".into(), ..LogFile::default() }, config, columns)
            .unwrap();
    writer.write(&[Field::string(b"#1"), Field::Unset]).unwrap();
    let path = writer.file_name().to_owned();
    writer.finish().unwrap();
    let bytes = fs::read(path).unwrap();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn files_have_headers() {
    let lines = written("headers", &[]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "#separator \\x09",
            "#set_separator\t,",
            "#empty_field\t(empty)",
            "#unset_field\t-",
            "#path\tx"
        ]
    );
    assert!(lines[5].starts_with("#open\t20"));
    assert_eq!(lines[6..9], ["#fields\ta\tb.c", "#types\tstring\tset[addr]", "\\x231\t-"]);
    assert!(lines[9].starts_with("#close\t20"));
    assert_eq!(written("tsv", &[("tsv", "T")]), "a\tb.c\n\\x231\t-\n");
    assert_eq!(written("json", &[("use_json", "T")]), "{\"a\":\"#1\"}\n");
    assert_eq!(
        written("nothing", &[("use_json", "T"), ("json_include_unset_fields", "T")]),
        "{\"a\":\"#1\",\"b.c\":null}\n"
    );
    assert!(written("gzip", &[("gzip_level", "6")]).contains("#fields\ta\tb.c\n"));
    let prefixed = written(
        "prefix",
        &[("meta_prefix", "PREFIX<>"), ("separator", "|"), ("unset_field", "UNSET")],
    );
    assert!(prefixed.starts_with("PREFIX<>separator |\nPREFIX<>set_separator|,\n"));
    assert!(prefixed.contains("\n#1|UNSET\n"));
}

#[test]
fn invalid_options_are_rejected() {
    let error = |name, value| AsciiConfig::default().apply([(name, value)]).unwrap_err();
    assert_eq!(
        error("tsv", "x"),
        "invalid value for 'tsv', must be a string and either \"T\" or \"F\""
    );
    assert_eq!(
        error("gzip_level", "11"),
        "invalid value for 'gzip_level', must be a number between 0 and 9."
    );
    assert_eq!(
        error("gzip_level", "-1"),
        "invalid value for 'gzip_level', must be a number between 0 and 9."
    );
    assert_eq!(error("json_timestamps", "x"), "Invalid JSON timestamp format: x");
    assert!(AsciiConfig::default().apply([("other", "x")]).is_ok());
    let config = AsciiConfig { log_dir: "/nonexistent".into(), ..AsciiConfig::default() };
    let opened =
        AsciiWriter::open(LogFile { path: "x".into(), ..LogFile::default() }, config, vec![]);
    assert_eq!(opened.err().unwrap(), "cannot open /nonexistent/x.log: No such file or directory");
}

#[test]
fn logs_are_rotated() {
    let dir = folder("rotation");
    let config = AsciiConfig {
        log_dir: dir.display().to_string(),
        leftover_rotation: true,
        ..AsciiConfig::default()
    };
    let file = LogFile { path: "x".into(), rotation_interval: 60.0, postprocessor: "f".into() };
    let mut writer =
        AsciiWriter::open(file, config.clone(), vec![Column::new("a", Kind::Count)]).unwrap();
    writer.write(&[Field::Count(1)]).unwrap();
    assert_eq!(fs::read_to_string(dir.join(".shadow.x.log")).unwrap(), ".log\nf\n");
    writer.flush().unwrap();
    let (left, problems) = leftover_logs(&dir, &config).unwrap();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        (left[0].path.as_str(), left[0].extension.as_str(), left[0].postprocessor.as_str()),
        ("x", ".log", "f")
    );
    let rotated = writer.rotate(&dir.join("x-1").display().to_string()).unwrap().unwrap();
    assert!(rotated.new_name.ends_with("/x-1.log") && rotated.old_name.ends_with("/x.log"));
    assert!(!dir.join(".shadow.x.log").exists());
    assert!(writer.rotate("y").unwrap().is_none(), "nothing was written since");
    writer.write(&[Field::Count(2)]).unwrap();
    writer.finish().unwrap();
    assert!(fs::read_to_string(dir.join("x-1.log")).unwrap().contains("\n1\n#close"));
    assert!(fs::read_to_string(dir.join("x.log")).unwrap().contains("\n2\n#close"));
}

#[cfg(feature = "sqlite")]
#[test]
fn databases_hold_rows() {
    let dir = folder("sqlite");
    let config = SqliteConfig {
        log_dir: dir.display().to_string(),
        table: Some("ssh".into()),
        journal_mode: Some("WAL"),
        synchronous: Some("OFF"),
        ..SqliteConfig::default()
    };
    let file = LogFile { path: "x".into(), ..LogFile::default() };
    let mut writer = SqliteWriter::open(&file, config.clone(), &columns()).unwrap();
    writer.write(&row()).unwrap();
    drop(writer);
    let db = rusqlite::Connection::open(dir.join("x.sqlite")).unwrap();
    let row: (i64, i64, String, String, f64, String, String) = db
        .query_row(
            "select bool, count, addr, subnet, time, set_count_, vector_string_ from ssh",
            [],
            |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                ))
            },
        )
        .unwrap();
    let expected =
        (1, 21, "1.2.3.4", "10.0.0.0/24", 1_315_801_931.273_616, "2,4", "a\\x2cb,-,(empty)");
    assert_eq!(
        (row.0, row.1, row.2.as_str(), row.3.as_str(), row.4, row.5.as_str(), row.6.as_str()),
        expected
    );
    let bad = SqliteConfig { table: Some("a b c".into()), ..config };
    let error = SqliteWriter::open(&file, bad, &columns()).unwrap_err();
    assert!(error.starts_with("Error executing table creation statement: near"), "{error}");
}

proptest! {
    #[test]
    fn a_row_is_one_line(text_of: Vec<u8>, separator in "[a-z|\t]{1,2}", utf8: bool) {
        let format = TextFormat { separator: separator.clone().into_bytes(), utf8, ..TextFormat::default() };
        let mut out = Vec::new();
        format.row(&mut out, &[Field::string(&text_of), Field::Set(vec![Field::string(&text_of)])]);
        prop_assert!(!out.contains(&b'\n'));
        let mut json = Vec::new();
        for strings in [StringPolicy::Hex, StringPolicy::Pua, StringPolicy::Tsv] {
            json.clear();
            let columns = [Column::new("a", Kind::String)];
            JsonFormat { strings, ..JsonFormat::default() }.row(&mut json, &columns, &[Field::string(&text_of)]);
            prop_assert!(std::str::from_utf8(&json).is_ok());
        }
    }
}
