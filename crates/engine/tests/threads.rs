//! The logs are the same bytes however many threads make them and however packets come in batches:
//! of generated traffic, of the repository's sample, and of every capture of the conformance corpus,
//! which lies beside the project (or where `GANNET_SHARED` says). Without the corpus this says so.
// Tests may unwrap and print; the lints know that only of functions that are tests themselves.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use gannet_capture::Stream;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_log::Selection;

/// Conversations of the traffic that is generated, all kinds together.
const CONVERSATIONS: usize = 600;

/// Workers of the test, each with a capture of its own.
const WORKERS: usize = 2;

/// Threads, and packets of a batch.
const WAYS: [(usize, usize); 4] = [(1, 3), (2, usize::MAX), (2, 1), (7, 50)];

fn captures(own: &Path) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("GANNET_SHARED").map_or(root.join("../shared"), PathBuf::from);
    let traffic = own.join("traffic.pcap");
    let mut writer = Writer::create(&traffic, WriteOptions::default()).unwrap();
    gannet_synth::traffic::mixed(CONVERSATIONS, 1).write(&mut writer).unwrap();
    writer.finish().unwrap();
    let mut all = vec![traffic, root.join("examples/sample.pcap")];
    for folder in ["conformance/captures", "conformance/hostile"] {
        let folder = shared.join(folder);
        if folder.is_dir() {
            files(&folder, &mut all);
        } else {
            eprintln!("skipped: no captures in {}: GANNET_SHARED names another", folder.display());
        }
    }
    all
}

fn files(dir: &Path, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

/// All logs by name, and what was counted.
type Made = (BTreeMap<String, Vec<u8>>, String);

/// Analyses a capture into an empty folder, and empties it again. `None` if it is no capture.
fn made(capture: &Path, out: &Path, options: &Options, way: (usize, usize)) -> Option<Made> {
    let (threads, at_a_time) = way;
    let mut options = Options { threads, ignore_checksums: true, ..options.clone() };
    options.logs.dir = Some(out.to_owned());
    let mut stream =
        Stream::open(&[capture.to_owned()], gannet_capture::Options::default()).ok()?;
    let mut engine = Engine::new(options);
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
            // Everything before the damage counts.
            Err(_) => {}
        }
    }
    let (mut statistics, mut counts) = engine.finish().unwrap();
    // What was kept at a time is each thread's own.
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

/// Where two runs differ first.
fn difference(a: &Made, b: &Made) -> Option<String> {
    if a == b {
        return None;
    }
    let names: Vec<_> = a.0.keys().chain(b.0.keys()).collect();
    let name = names.into_iter().find(|n| a.0.get(*n) != b.0.get(*n));
    let Some(name) = name else { return Some(format!("{} and {}", a.1, b.1)) };
    let lines = |made: &Made| {
        let text = made.0.get(name).map(|t| String::from_utf8_lossy(t).into_owned());
        text.unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (a, b) = (lines(a), lines(b));
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    Some(format!("{name}, line {}: {:?} and {:?}", same + 1, a.get(same), b.get(same)))
}

#[test]
fn any_number_of_threads_and_any_batches_make_the_same_bytes() {
    let own = std::env::temp_dir().join(format!("gannet-threads-{}", std::process::id()));
    fs::create_dir_all(&own).unwrap();
    let captures = captures(&own);
    let default = Options::default();
    let mut json = Options::default();
    json.logs.format = Format::Json(JsonTimes::Epoch);
    json.logs.selection = Selection::of(["all"]);
    let next = AtomicUsize::new(0);
    let work = |worker: usize| {
        let out = own.join(worker.to_string());
        fs::create_dir(&out).unwrap();
        let (mut compared, mut differ) = (0, Vec::new());
        while let Some(capture) = captures.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ways = [(&default, &WAYS[..]), (&json, &WAYS[2..3])];
            for (options, ways) in ways {
                let Some(alone) = made(capture, &out, options, (1, usize::MAX)) else { continue };
                for way in ways {
                    let so = made(capture, &out, options, *way).unwrap();
                    compared += 1;
                    let difference = difference(&alone, &so);
                    differ
                        .extend(difference.map(|d| format!("{} {way:?}: {d}", capture.display())));
                }
            }
        }
        (compared, differ)
    };
    let (mut compared, mut differ) = (0, Vec::new());
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || work(n))).collect();
        for worker in workers {
            let (some, others) = worker.join().unwrap();
            compared += some;
            differ.extend(others);
        }
    });
    fs::remove_dir_all(&own).unwrap();
    assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(compared >= captures.len(), "{compared} comparisons");
}
