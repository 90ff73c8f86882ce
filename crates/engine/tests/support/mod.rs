//! Captures for tests, and their analysis with batches of any size.
// Each test is a separate program that uses a part of this module.
#![allow(dead_code, unreachable_pub, clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_synth::Trace;

/// All logs by name, and the counts.
pub type Output = (BTreeMap<String, Vec<u8>>, String);

/// The sample, and the captures of the conformance corpus.
pub fn captures() -> Vec<PathBuf> {
    gannet_synth::corpus::captures(&["conformance/captures", "conformance/hostile"])
}

/// Passes all packets of a capture to an analysis, `at_a_time` per batch. Packets before damage
/// count.
pub fn feed(engine: &mut Engine, stream: &mut Stream, at_a_time: usize) {
    loop {
        match stream.next_batch() {
            Ok(Some(mut rest)) => {
                while !rest.is_empty() {
                    let (some, others) = rest.split_at(at_a_time);
                    engine.batch(&some).unwrap();
                    rest = others;
                }
            }
            Ok(None) => break,
            Err(_) => {}
        }
    }
}

/// Analyzes a capture into an empty folder, and empties the folder again. `None` if the file is not
/// a capture.
pub fn analyze(
    capture: &Path,
    out: &Path,
    options: &Options,
    config: (usize, usize),
) -> Option<Output> {
    let (threads, at_a_time) = config;
    let mut options = Options { threads, ignore_checksums: true, ..options.clone() };
    options.logs.dir = Some(out.to_owned());
    let mut stream =
        Stream::open(&[capture.to_owned()], gannet_capture::Options::default()).ok()?;
    let mut engine = Engine::new(options);
    feed(&mut engine, &mut stream, at_a_time);
    let (mut statistics, mut counts) = engine.finish().unwrap();
    // State is measured by each thread.
    statistics.state = Default::default();
    counts.sort_by_key(|c| c.path);
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        logs.insert(name, fs::read(&path).unwrap());
        fs::remove_file(&path).unwrap();
    }
    Some((logs, format!("{statistics:?} {counts:?}")))
}

/// The first difference between two runs.
pub fn difference(a: &Output, b: &Output) -> Option<String> {
    if a == b {
        return None;
    }
    let names: Vec<_> = a.0.keys().chain(b.0.keys()).collect();
    let name = names.into_iter().find(|n| a.0.get(*n) != b.0.get(*n));
    let Some(name) = name else { return Some(format!("{} and {}", a.1, b.1)) };
    let text = |output: &Output| output.0.get(name).cloned().unwrap_or_default();
    Some(format!("{name}, {}", line_that_differs(&text(a), &text(b))))
}

/// The first lines that differ in two texts.
pub fn line_that_differs(a: &[u8], b: &[u8]) -> String {
    let lines = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
    };
    let (a, b) = (lines(a), lines(b));
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    format!("line {}: {:?} and {:?}", same + 1, a.get(same), b.get(same))
}

/// Writes a trace to a capture file.
pub fn write(trace: &Trace, path: &Path) {
    let mut writer = Writer::create(path, WriteOptions::default()).unwrap();
    trace.write(&mut writer).unwrap();
    writer.finish().unwrap();
}

/// The values of a column of a log in Zeek's format; empty if the log does not exist.
pub fn column(output: &Output, log: &str, column: &str) -> Vec<String> {
    let Some(text) = output.0.get(&format!("{log}.log")) else { return Vec::new() };
    let text = String::from_utf8_lossy(text);
    let fields = text.lines().find_map(|l| l.strip_prefix("#fields\t")).unwrap();
    let at = fields.split('\t').position(|f| f == column).unwrap();
    let rows = text.lines().filter(|l| !l.starts_with('#'));
    rows.map(|row| row.split('\t').nth(at).unwrap().to_owned()).collect()
}
