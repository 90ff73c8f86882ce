//! The logs are identical for any number of threads and any batch sizes: of generated traffic, of
//! the repository's sample, and of every capture of the conformance corpus, which is next to the
//! project (or where `GANNET_SHARED` points). The test prints a note if the corpus is missing.
// Clippy allows unwrap in test functions, but not in their helper functions.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

use gannet_engine::Options;
use gannet_log::Format;
use gannet_log::JsonTimes;
use gannet_log::Selection;
use support::analyze;
use support::difference;
use support::write;

/// Conversations of the generated traffic, of all kinds.
const CONVERSATIONS: usize = 600;

/// Number of worker threads of the test, each with its own capture.
const WORKERS: usize = 2;

/// Numbers of threads, each with the number of packets in a batch.
const CONFIGS: [(usize, usize); 4] = [(1, 3), (2, usize::MAX), (2, 1), (7, 50)];

#[test]
fn any_number_of_threads_and_any_batches_make_the_same_bytes() {
    let own = std::env::temp_dir().join(format!("gannet-threads-{}", std::process::id()));
    fs::create_dir_all(&own).unwrap();
    let traffic = own.join("traffic.pcap");
    write(&gannet_synth::traffic::mixed(CONVERSATIONS, 1), &traffic);
    let mut captures = support::captures();
    captures.push(traffic);
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
            let configs = [(&default, &CONFIGS[..]), (&json, &CONFIGS[2..3])];
            for (options, configs) in configs {
                let Some(single) = analyze(capture, &out, options, (1, usize::MAX)) else {
                    continue;
                };
                for config in configs {
                    let parallel = analyze(capture, &out, options, *config).unwrap();
                    compared += 1;
                    let difference = difference(&single, &parallel);
                    differ.extend(
                        difference.map(|d| format!("{} {config:?}: {d}", capture.display())),
                    );
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
