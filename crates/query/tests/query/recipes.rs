//! Every SQL query in docs/questions.md runs: those for gannet on a capture, those for DuckDB on Parquet files if
//! DuckDB is available.

use crate::support::TempDir;
use crate::support::csv;
use gannet_query::Options;
use gannet_query::Session;

const PAGE: &str = include_str!("../../../../docs/questions.md");

/// Returns the code blocks of the page that begin with this line.
fn blocks(fence: &str) -> Vec<String> {
    let (mut all, mut block) = (Vec::new(), None::<String>);
    for line in PAGE.lines() {
        match &mut block {
            Some(text) if line == "```" => {
                all.push(std::mem::take(text));
                block = None;
            }
            Some(text) => {
                text.push_str(line);
                text.push('\n');
            }
            None if line == fence => block = Some(String::new()),
            None => {}
        }
    }
    all
}

#[test]
fn every_question_of_the_manual_has_an_answer() {
    let scratch = TempDir::new("recipes");
    let capture = scratch.traffic("traffic.pcap", 300);
    let session = Session::new(&[capture], Options::default()).unwrap();
    let all = blocks("```sql");
    assert!(all.len() >= 9, "{} questions", all.len());
    for sql in all {
        let answer = csv(&session, &sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
        assert!(answer.contains('\n'), "{sql}");
    }
}

#[test]
fn queries_for_duckdb_run_in_duckdb() {
    let scratch = TempDir::new("recipes-duckdb");
    let capture = scratch.traffic("traffic.pcap", 300);
    scratch.analyze(&capture, "parquet");
    std::fs::rename(scratch.path("parquet"), scratch.path("logs")).unwrap();
    let Some(python) = crate::support::duckdb(&scratch) else {
        eprintln!("skipped: DuckDB; GANNET_DUCKDB names a Python that has it");
        return;
    };
    let all = blocks("```sql duckdb");
    assert!(all.len() >= 5, "{} questions", all.len());
    for sql in all {
        let script = format!("import duckdb\nduckdb.connect().execute({sql:?}).fetchall()\n");
        let run = std::process::Command::new(&python)
            .args(["-c", &script])
            .current_dir(scratch.path(""))
            .output()
            .unwrap();
        assert!(run.status.success(), "{sql}\n{}", String::from_utf8_lossy(&run.stderr));
    }
}
