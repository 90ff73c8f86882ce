//! Helpers for tests of queries.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use gannet_base::Time;
use gannet_capture::Packet;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_columns::Columns;
use gannet_engine::Engine;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_query::Csv;
use gannet_query::Error;
use gannet_query::Session;
use gannet_query::Writer as _;
use gannet_synth::traffic::Kind;

/// A temporary folder that is removed when dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("gannet-query-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a capture of generated traffic, followed by the packets of `examples/sample.pcap`.
    pub(crate) fn traffic(&self, name: &str, count: usize) -> PathBuf {
        let path = self.path(name);
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        gannet_synth::traffic::mixed(count, 1).write(&mut writer).unwrap();
        let mut sample = Stream::open(&[sample()], gannet_capture::Options::default()).unwrap();
        while let Some(batch) = sample.next_batch().unwrap() {
            for packet in &batch {
                writer.write(&packet).unwrap();
            }
        }
        writer.finish().unwrap();
        path
    }

    /// Writes a capture of DNS with one packet per second. The packets with the numbers `late` come last, with
    /// unchanged times.
    pub(crate) fn spread(&self, name: &str, count: usize, late: Range<u64>) -> PathBuf {
        let (dense, path) = (self.path("dense.pcap"), self.path(name));
        let mut writer = Writer::create(&dense, WriteOptions::default()).unwrap();
        gannet_synth::traffic::of(Kind::Dns, count, 1).write(&mut writer).unwrap();
        writer.finish().unwrap();
        let mut writer = Writer::create(&path, WriteOptions::default()).unwrap();
        for is_late in [false, true] {
            let mut stream =
                Stream::open(std::slice::from_ref(&dense), Default::default()).unwrap();
            while let Some(batch) = stream.next_batch().unwrap() {
                for packet in batch.iter().filter(|p| late.contains(&p.number) == is_late) {
                    let time = Time::from_secs(1_700_000_000 + packet.number as i64);
                    writer.write(&Packet { time, ..packet }).unwrap();
                }
            }
        }
        writer.finish().unwrap();
        path
    }

    /// Writes the logs of a capture to a folder named after the format.
    pub(crate) fn analyze(&self, capture: &Path, format: &str) {
        let dir = self.path(format);
        fs::create_dir_all(&dir).unwrap();
        let mut logs = gannet_log::Options { dir: Some(dir), ..Default::default() };
        match format {
            "parquet" => {
                logs.format = Format::Packed;
                logs.outputs = vec![Arc::new(Columns::default())];
            }
            "json" => logs.format = Format::Json(JsonTimes::Epoch),
            _ => {}
        }
        let options = gannet_engine::Options { logs, ..Default::default() };
        let mut engine = Engine::new(options);
        let mut stream = Stream::open(&[capture.to_owned()], Default::default()).unwrap();
        while let Ok(Some(batch)) = stream.next_batch() {
            engine.batch(&batch).unwrap();
        }
        engine.finish().unwrap();
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap")
}

/// Returns the result of a query as CSV.
pub(crate) fn csv(session: &Session, sql: &str) -> Result<String, Error> {
    let mut answer = session.query(sql)?;
    let mut out = Vec::new();
    let mut writer = Csv::new(&mut out, answer.schema());
    while let Some(batch) = answer.next()? {
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    Ok(String::from_utf8(out).unwrap())
}

/// Returns the cells of a result; both a null and an empty string are empty.
pub(crate) fn rows(session: &Session, sql: &str) -> Result<Vec<Vec<String>>, Error> {
    let text = csv(session, sql)?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut row, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows.remove(0);
    Ok(rows)
}

/// Returns a Python that has DuckDB, if possible.
pub(crate) fn duckdb(scratch: &TempDir) -> Option<PathBuf> {
    let has = |python: &Path| {
        let run = Command::new(python).args(["-c", "import duckdb, pytz"]).output();
        run.is_ok_and(|run| run.status.success())
    };
    if let Some(named) = std::env::var_os("GANNET_DUCKDB") {
        let python = PathBuf::from(named);
        assert!(has(&python), "{}: no DuckDB", python.display());
        return Some(python);
    }
    if has(Path::new("python3")) {
        return Some("python3".into());
    }
    let folder = scratch.path("venv");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).output().ok()?;
    let pip =
        ["-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "10", "duckdb", "pytz"];
    let python = folder.join("bin/python");
    let installed =
        made.status.success() && Command::new(&python).args(pip).output().ok()?.status.success();
    (installed && has(&python)).then_some(python)
}
