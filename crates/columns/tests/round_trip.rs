//! Parquet files convert back to the same text logs, byte for byte; several formats written in one run equal those of
//! separate runs; and files have the same bytes for any number of threads. Inputs are generated traffic, the
//! repository's sample, and every capture of the conformance corpus, which is next to the project or at
//! `GANNET_SHARED`. A message is printed if the corpus is missing.
// Tests may unwrap and print; Clippy allows that only in functions marked as tests.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use gannet_base::Time;
use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_columns::ColumnFormat;
use gannet_columns::Columns;
use gannet_columns::ParquetRows;
use gannet_columns::Partition;
use gannet_columns::TimeUnit;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_log::Cell;
use gannet_log::Cells;
use gannet_log::Field;
use gannet_log::Fields;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_log::Kind;
use gannet_log::Logs;
use gannet_log::Output;
use gannet_log::PackedRows;
use gannet_log::PackedStream;
use gannet_log::RowPacker;
use gannet_log::Selection;
use gannet_log::Shape;
use gannet_log::TextOutput;
use gannet_log::Type;

const JSON: Format = Format::Json(JsonTimes::Epoch);

fn captures(work_dir: &Path) -> Vec<PathBuf> {
    let traffic = work_dir.join("traffic.pcap");
    let mut writer = Writer::create(&traffic, WriteOptions::default()).unwrap();
    gannet_synth::traffic::mixed(600, 1).write(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut all = vec![traffic];
    all.extend(gannet_synth::corpus::captures(&["conformance/captures", "conformance/hostile"]));
    all
}

fn files(dir: &Path, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

/// Reads all files below a folder, by their relative paths, and removes the folder.
fn read_and_remove(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = Vec::new();
    files(folder, &mut all);
    let name = |path: &Path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
    let files = all.iter().map(|path| (name(path), fs::read(path).unwrap())).collect();
    fs::remove_dir_all(folder).unwrap();
    files
}

/// Analyses a capture and writes its logs to a folder; returns `false` if the file is not a capture.
fn analyse(capture: &Path, out: &Path, threads: usize, logs: gannet_log::Options) -> bool {
    fs::create_dir_all(out).unwrap();
    let logs = gannet_log::Options {
        dir: Some(out.to_owned()),
        selection: Selection::of(["all"]),
        columns: ["community_id", "ja3", "ja4"].map(str::to_owned).to_vec(),
        ..logs
    };
    let options = Options { threads, ignore_checksums: true, logs, ..Options::default() };
    let stream = Stream::open(&[capture.to_owned()], gannet_capture::Options::default());
    let Ok(mut stream) = stream else { return false };
    let mut engine = Engine::new(options);
    loop {
        match stream.next_batch() {
            Ok(Some(batch)) => engine.batch(&batch).unwrap(),
            Ok(None) => break,
            // Packets before the damage are analysed.
            Err(_) => {}
        }
    }
    engine.finish().unwrap();
    true
}

fn text(format: Format) -> gannet_log::Options {
    gannet_log::Options { format, ..Default::default() }
}

fn columns(outputs: Vec<Arc<dyn Output>>) -> gannet_log::Options {
    gannet_log::Options { format: Format::Packed, outputs, ..Default::default() }
}

/// Converts a Parquet file to a text log.
fn text_of(parquet: &Path, format: Format, out: &Path) -> Vec<u8> {
    fs::create_dir_all(out).unwrap();
    let mut rows = ParquetRows::open(parquet).unwrap();
    let fields = Fields::Listed(Vec::leak(rows.fields.clone()));
    let shape = Shape { path: rows.path, opt_in: false, fields };
    let dir = Some(out.to_owned());
    let mut logs = Logs::new(gannet_log::Options { dir, ..text(format) });
    let mut packed = RowPacker::default();
    while rows.next(&mut packed).unwrap() {
        logs.write_packed(shape, rows.opened, PackedRows::new(packed.rows()));
        packed.clear();
    }
    logs.set_time(rows.closed);
    logs.close().unwrap();
    let mut files = read_and_remove(out);
    assert_eq!(files.len(), 1);
    files.pop_first().unwrap().1
}

/// The first difference of two texts.
fn difference(name: &str, a: &[u8], b: &[u8]) -> Option<String> {
    if a == b {
        return None;
    }
    let lines =
        |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (lines(a), lines(b));
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    Some(format!("{name}, line {}:\n  {:?}\n  {:?}", same + 1, a.get(same), b.get(same)))
}

fn compare(capture: &Path, work_dir: &Path) -> Option<(usize, Vec<String>)> {
    let out = work_dir.join("out");
    if !analyse(capture, &out, 1, text(Format::Tsv)) {
        fs::remove_dir_all(&out).unwrap();
        return None;
    }
    let tsv = read_and_remove(&out);
    analyse(capture, &out, 1, text(JSON));
    let json = read_and_remove(&out);
    let all = || {
        columns(vec![
            Arc::new(TextOutput { format: Format::Tsv, extension: None }),
            Arc::new(TextOutput { format: JSON, extension: Some("json") }),
            Arc::new(Columns::default()),
            Arc::new(Columns { format: ColumnFormat::Arrow, ..Columns::default() }),
        ])
    };
    analyse(capture, &out, 1, all());
    let mut differences = Vec::new();
    for (name, text) in &tsv {
        let stem = name.strip_suffix(".log").unwrap();
        let parquet = out.join(format!("{stem}.parquet"));
        let again = text_of(&parquet, Format::Tsv, &work_dir.join("text"));
        differences.extend(difference(&format!("TSV of {stem}.parquet"), text, &again));
    }
    let single_thread = read_and_remove(&out);
    assert_eq!(single_thread.len(), 4 * tsv.len(), "{}", capture.display());
    for (name, text) in &tsv {
        differences.extend(difference(name, text, &single_thread[name]));
    }
    for (name, text) in &json {
        let other = name.replace(".log", ".json");
        differences.extend(difference(&other, text, &single_thread[&other]));
    }
    analyse(capture, &out, 3, all());
    let threads = read_and_remove(&out);
    for (name, bytes) in &single_thread {
        if threads.get(name) != Some(bytes) {
            differences.push(format!("{name} differs with threads"));
        }
    }
    // JSON shows nanoseconds.
    let times = TimeUnit::Nanoseconds;
    analyse(capture, &out, 2, columns(vec![Arc::new(Columns { times, ..Columns::default() })]));
    for (name, text) in &json {
        let stem = name.strip_suffix(".log").unwrap();
        let again = text_of(&out.join(format!("{stem}.parquet")), JSON, &work_dir.join("text"));
        differences.extend(difference(&format!("JSON of {stem}.parquet"), text, &again));
    }
    read_and_remove(&out);
    Some((tsv.len(), differences))
}

#[test]
fn parquet_and_back_is_the_same_text() {
    // Use a memory file system if possible: writing thousands of small files to a disk is slow.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let work_dir = folder.join(format!("gannet-columns-{}", std::process::id()));
    fs::create_dir_all(&work_dir).unwrap();
    let captures = captures(&work_dir);
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let work_dir = work_dir.join(worker.to_string());
        let (mut compared, mut differences) = (0, Vec::new());
        while let Some(capture) = captures.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some((logs, found)) = compare(capture, &work_dir) else { continue };
            compared += logs;
            differences.extend(found.iter().map(|d| format!("{}: {d}", capture.display())));
        }
        (compared, differences)
    };
    let (mut compared, mut differences) = (0, Vec::new());
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..2).map(|n| scope.spawn(move || work(n))).collect();
        for worker in workers {
            let (some, others) = worker.join().unwrap();
            compared += some;
            differences.extend(others);
        }
    });
    fs::remove_dir_all(&work_dir).unwrap();
    eprintln!("{compared} logs compared");
    assert!(compared > 5);
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// A file of several row groups, each of which is sorted by time, is read in the order of the log.
#[test]
fn rows_of_many_row_groups_have_the_order_of_the_log() {
    const ROWS: i64 = 140_000;
    let work_dir = std::env::temp_dir().join(format!("gannet-groups-{}", std::process::id()));
    let field = |name, ty| Field { name, ty: Type::Scalar(ty), doc: "", optional: false };
    let fields: &'static [Field] =
        Vec::leak(vec![field("ts", "time"), field("n", "count"), field("text", "string")]);
    let mut packed = RowPacker::default();
    for n in 0..ROWS {
        packed.begin();
        packed.push(&Cell::Time(Time::from_nanos((ROWS - n) * 1_000)));
        packed.push(&Cell::Count(n as u64));
        packed.push(&Cell::Plain(&[b'a'; 80]));
        packed.end();
    }
    let options = gannet_log::Options { dir: Some(work_dir.clone()), ..Default::default() };
    let mut writer = Columns::default().open(&options);
    let stream = PackedStream::new("test", fields, Time::from_nanos(0));
    writer.write(&stream, PackedRows::new(packed.rows())).unwrap();
    writer.close(Time::from_nanos(0)).unwrap();
    let mut rows = ParquetRows::open(&work_dir.join("test.parquet")).unwrap();
    let (mut found, mut next) = (RowPacker::default(), 0);
    while rows.next(&mut found).unwrap() {
        for row in PackedRows::new(found.rows()) {
            let mut cells = Cells::new(row);
            cells.scalar(Kind::Time);
            assert_eq!(cells.scalar(Kind::Count), Cell::Count(next));
            next += 1;
        }
        found.clear();
    }
    assert_eq!(next, ROWS as u64);
    fs::remove_dir_all(work_dir).unwrap();
}

#[test]
fn each_part_of_time_has_its_own_files() {
    let work_dir = std::env::temp_dir().join(format!("gannet-parts-{}", std::process::id()));
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let partition = Partition::Hour;
    let hour = Columns { partition, ..Columns::default() };
    assert!(analyse(&capture, &work_dir, 1, columns(vec![Arc::new(hour)])));
    let names: Vec<_> = read_and_remove(&work_dir).into_keys().collect();
    assert!(names.iter().any(|n| n.starts_with("conn/day=2023-11-14/hour=22/")), "{names:?}");
    assert!(names.iter().all(|n| n.contains("/hour=") && n.ends_with("/part-0000.parquet")));
}
