//! The queries of `questions.sql` return the same rows from Parquet files, TSV logs, JSON logs and the capture itself,
//! and the same as DuckDB from the Parquet files. The comparison with DuckDB runs if `GANNET_DUCKDB` names a Python
//! that has it, or if it can be installed in a virtual environment; otherwise it is skipped with a message.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::support::TempDir;
use crate::support::rows;
use gannet_query::Options;
use gannet_query::Session;

const QUESTIONS_SQL: &str = include_str!("questions.sql");

struct Question {
    sql: String,
    duckdb: Option<String>,
}

fn parse_questions() -> Vec<Question> {
    let (mut all, mut duckdb) = (Vec::new(), None);
    for line in QUESTIONS_SQL.lines() {
        if let Some(sql) = line.strip_prefix("-- duckdb: ") {
            duckdb = Some(sql.to_owned());
        } else if !line.starts_with("--") && !line.is_empty() {
            let sql = line.trim_end_matches(';').to_owned();
            all.push(Question { sql, duckdb: duckdb.take() });
        }
    }
    all
}

fn session(paths: &[PathBuf]) -> Session {
    Session::new(paths, Options { threads: 2, ..Options::default() }).unwrap()
}

/// Whether cells are the same text, or numbers that are equal up to rounding of sums.
fn is_same_cell(a: &str, b: &str) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3);
    a == b || a.parse().ok().zip(b.parse().ok()).is_some_and(|(a, b)| close(a, b))
}

fn compare(sql: &str, source: &str, expected: &[Vec<String>], found: &[Vec<String>]) {
    assert_eq!(found.len(), expected.len(), "{source}: {sql}\n{expected:?}\n{found:?}");
    for (a, b) in expected.iter().zip(found) {
        let equal = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_cell(a, b));
        assert!(equal, "{source}: {sql}\nexpected {a:?}\nfound    {b:?}");
    }
}

#[test]
fn sixty_questions_have_the_same_answers() {
    let scratch = TempDir::new("questions");
    let capture = scratch.traffic("traffic.pcap", 300);
    for format in ["parquet", "tsv", "json"] {
        scratch.analyze(&capture, format);
    }
    let questions = parse_questions();
    assert!(questions.len() >= 60, "{} questions", questions.len());
    let parquet = session(&[scratch.path("parquet")]);
    let others = [
        ("TSV", session(&[scratch.path("tsv")])),
        ("JSON", session(&[scratch.path("json")])),
        ("the capture", session(std::slice::from_ref(&capture))),
    ];
    let mut answers = Vec::new();
    let mut empty = 0;
    for Question { sql, .. } in &questions {
        let expected = rows(&parquet, sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
        for (source, session) in &others {
            let found = rows(session, sql).unwrap_or_else(|e| panic!("{source}: {sql}\n{e}"));
            compare(sql, source, &expected, &found);
        }
        empty += usize::from(expected.is_empty());
        answers.push(expected);
    }
    assert!(empty <= 3, "{empty} questions have no rows");
    for (source, session) in &others {
        assert_eq!(session.problems().1, Vec::<String>::new(), "{source}");
    }
    let Some(python) = crate::support::duckdb(&scratch) else {
        eprintln!("skipped: DuckDB; GANNET_DUCKDB names a Python that has it");
        return;
    };
    let duckdb_answers = run_duckdb(&python, &scratch, &questions);
    assert_eq!(duckdb_answers.len(), questions.len());
    for ((question, expected), found) in questions.iter().zip(&answers).zip(&duckdb_answers) {
        compare(question.duckdb.as_deref().unwrap_or(&question.sql), "DuckDB", found, expected);
    }
    eprintln!("DuckDB: {} answers are equal", duckdb_answers.len());
}

const DUCKDB_SCRIPT: &str = r#"
import datetime, json, pathlib, re, sys, duckdb
folder = pathlib.Path(sys.argv[1])
con = duckdb.connect()
con.execute("SET TimeZone = 'UTC'")
dotted = set()
for path in sorted(folder.glob("*.parquet")):
    con.execute(f"CREATE VIEW \"{path.stem}\" AS SELECT * EXCLUDE (_row) FROM read_parquet('{path}')")
    dotted |= {row[0] for row in con.execute(f'DESCRIBE "{path.stem}"').fetchall() if "." in row[0]}
names = re.compile(r"(?<![\w\"'.])((?:\w+\.)?)(" + "|".join(map(re.escape, sorted(dotted, key=len, reverse=True))) + r")\b")
def text(v):
    if v is None: return ""
    if isinstance(v, bool): return "true" if v else "false"
    if isinstance(v, datetime.datetime):
        return v.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(v)
for line in sys.stdin:
    sql, plain = json.loads(line)
    if plain: sql = names.sub(r'\1"\2"', sql)
    rows = con.execute(sql).fetchall()
    print(json.dumps([[text(v) for v in row] for row in rows]))
"#;

fn run_duckdb(python: &Path, scratch: &TempDir, questions: &[Question]) -> Vec<Vec<Vec<String>>> {
    let script = scratch.path("ask.py");
    fs::write(&script, DUCKDB_SCRIPT).unwrap();
    let lines: String = questions
        .iter()
        .map(|q| match &q.duckdb {
            Some(sql) => format!("{}\n", serde_json::json!([sql, false])),
            None => format!("{}\n", serde_json::json!([q.sql, true])),
        })
        .collect();
    let input = scratch.path("questions.jsonl");
    fs::write(&input, lines).unwrap();
    let run = Command::new(python)
        .arg(&script)
        .arg(scratch.path("parquet"))
        .stdin(fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
