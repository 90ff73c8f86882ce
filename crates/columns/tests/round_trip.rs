//! Rows that go into Parquet files and out again make the same text logs, to the byte; several formats of one run are
//! those of a run each; and files are the same bytes for any number of threads. Of generated traffic, of the
//! repository's sample, and of every capture of the conformance corpus, which is next to the project (or where
//! `GANNET_SHARED` says). Without the corpus this says so.
// Tests may unwrap and print; the lints know that only of functions that are tests themselves.
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

fn captures(own: &Path) -> Vec<PathBuf> {
    let traffic = own.join("traffic.pcap");
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

/// All files below a folder by their paths, and the folder is removed.
fn taken(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = Vec::new();
    files(folder, &mut all);
    let name = |path: &Path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
    let files = all.iter().map(|path| (name(path), fs::read(path).unwrap())).collect();
    fs::remove_dir_all(folder).unwrap();
    files
}

/// Analyses a capture into a folder. `false` if it is no capture.
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
            // Everything before the damage counts.
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

/// The text log of a Parquet file's rows.
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
    let mut files = taken(out);
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

fn compare(capture: &Path, own: &Path) -> Option<(usize, Vec<String>)> {
    let out = own.join("out");
    if !analyse(capture, &out, 1, text(Format::Tsv)) {
        fs::remove_dir_all(&out).unwrap();
        return None;
    }
    let tsv = taken(&out);
    analyse(capture, &out, 1, text(JSON));
    let json = taken(&out);
    let all = || {
        columns(vec![
            Arc::new(TextOutput { format: Format::Tsv, extension: None }),
            Arc::new(TextOutput { format: JSON, extension: Some("json") }),
            Arc::new(Columns::default()),
            Arc::new(Columns { format: ColumnFormat::Arrow, ..Columns::default() }),
        ])
    };
    analyse(capture, &out, 1, all());
    let mut different = Vec::new();
    for (name, text) in &tsv {
        let stem = name.strip_suffix(".log").unwrap();
        let parquet = out.join(format!("{stem}.parquet"));
        let again = text_of(&parquet, Format::Tsv, &own.join("text"));
        different.extend(difference(&format!("TSV of {stem}.parquet"), text, &again));
    }
    let alone = taken(&out);
    assert_eq!(alone.len(), 4 * tsv.len(), "{}", capture.display());
    for (name, text) in &tsv {
        different.extend(difference(name, text, &alone[name]));
    }
    for (name, text) in &json {
        let other = name.replace(".log", ".json");
        different.extend(difference(&other, text, &alone[&other]));
    }
    analyse(capture, &out, 3, all());
    let threads = taken(&out);
    for (name, bytes) in &alone {
        if threads.get(name) != Some(bytes) {
            different.push(format!("{name} differs with threads"));
        }
    }
    // JSON shows nanoseconds.
    let times = TimeUnit::Nanoseconds;
    analyse(capture, &out, 2, columns(vec![Arc::new(Columns { times, ..Columns::default() })]));
    for (name, text) in &json {
        let stem = name.strip_suffix(".log").unwrap();
        let again = text_of(&out.join(format!("{stem}.parquet")), JSON, &own.join("text"));
        different.extend(difference(&format!("JSON of {stem}.parquet"), text, &again));
    }
    taken(&out);
    Some((tsv.len(), different))
}

#[test]
fn parquet_and_back_is_the_same_text() {
    // In memory if possible: writing thousands of small files to a disk is slow.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let own = folder.join(format!("gannet-columns-{}", std::process::id()));
    fs::create_dir_all(&own).unwrap();
    let captures = captures(&own);
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let own = own.join(worker.to_string());
        let (mut compared, mut different) = (0, Vec::new());
        while let Some(capture) = captures.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some((logs, differences)) = compare(capture, &own) else { continue };
            compared += logs;
            different.extend(differences.iter().map(|d| format!("{}: {d}", capture.display())));
        }
        (compared, different)
    };
    let (mut compared, mut different) = (0, Vec::new());
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..2).map(|n| scope.spawn(move || work(n))).collect();
        for worker in workers {
            let (some, others) = worker.join().unwrap();
            compared += some;
            different.extend(others);
        }
    });
    fs::remove_dir_all(&own).unwrap();
    eprintln!("{compared} logs compared");
    assert!(compared > 5);
    assert!(different.is_empty(), "{} differences:\n{}", different.len(), different.join("\n"));
}

/// Row groups that are larger together than what is read at a time, each in another order than the log.
#[test]
fn rows_of_many_row_groups_have_the_order_of_the_log() {
    const ROWS: i64 = 140_000;
    let own = std::env::temp_dir().join(format!("gannet-groups-{}", std::process::id()));
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
    let options = gannet_log::Options { dir: Some(own.clone()), ..Default::default() };
    let mut writer = Columns::default().open(&options);
    let stream = PackedStream::new("test", fields, Time::from_nanos(0));
    writer.write(&stream, PackedRows::new(packed.rows())).unwrap();
    writer.close(Time::from_nanos(0)).unwrap();
    let mut rows = ParquetRows::open(&own.join("test.parquet")).unwrap();
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
    fs::remove_dir_all(own).unwrap();
}

#[test]
fn parts_of_time_have_files_of_their_own() {
    let own = std::env::temp_dir().join(format!("gannet-parts-{}", std::process::id()));
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sample.pcap");
    let partition = Partition::Hour;
    let hour = Columns { partition, ..Columns::default() };
    assert!(analyse(&capture, &own, 1, columns(vec![Arc::new(hour)])));
    let names: Vec<_> = taken(&own).into_keys().collect();
    assert!(names.iter().any(|n| n.starts_with("conn/day=2023-11-14/hour=22/")), "{names:?}");
    assert!(names.iter().all(|n| n.contains("/hour=") && n.ends_with("/part-0000.parquet")));
}
