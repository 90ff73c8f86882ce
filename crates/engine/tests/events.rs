//! Listeners receive the same events in the same order for any number of threads and any batch
//! sizes: of generated traffic, of the repository's sample, and of small captures of the
//! conformance corpus.
// Clippy allows unwrap in test functions, but not in their helper functions.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;

use gannet_base::Time;
use gannet_capture::Stream;
use gannet_engine::Engine;
use gannet_engine::Options;
use gannet_event::Command;
use gannet_event::Decl;
use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_event::ThreadAffinity;
use gannet_event::write_json;
use gannet_log::Selection;
use gannet_synth::traffic;
use gannet_synth::traffic::Kind;
use support::captures;
use support::feed;
use support::line_that_differs;
use support::write;

/// Conversations of the generated traffic, of all kinds.
const CONVERSATIONS: usize = 300;

/// Larger captures of the corpus are skipped.
const SMALL: u64 = 50_000;

/// Numbers of threads, each with the number of packets in a batch.
const CONFIGS: [(usize, usize); 3] = [(2, usize::MAX), (3, 1), (7, 50)];

/// Writes a line for each event that it receives.
struct Lines {
    received: Arc<Mutex<Vec<u8>>>,
    affinity: ThreadAffinity,
    /// Whether to write packets and the points at which handlers run as well.
    wants_all: bool,
    commands: Vec<Command>,
}

impl Lines {
    fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut received = self.received.lock().unwrap();
        write(&mut received);
        received.push(b'\n');
    }
}

impl Listener for Lines {
    fn affinity(&self) -> ThreadAffinity {
        self.affinity
    }

    fn wants_packets(&self) -> bool {
        self.wants_all
    }

    fn event(&mut self, event: &Raised<'_>) {
        self.line(|line| write_json(line, event));
    }

    fn packet(&mut self, time: Time, packet: u64) {
        if self.wants_all {
            self.line(|line| line.extend(format!("packet {packet} {time:?}").bytes()));
        }
    }

    fn drained(&mut self) {
        if self.wants_all {
            self.line(|line| line.extend(b"handlers run"));
        }
    }

    fn commands(&mut self, to: &mut Vec<Command>) {
        to.append(&mut self.commands);
    }
}

/// The lines of a listener for a capture; `None` if the file is not a capture.
fn received(
    capture: &Path,
    (wants_all, affinity): (bool, ThreadAffinity),
    commands: &[Command],
    (threads, at_a_time): (usize, usize),
) -> Option<Vec<u8>> {
    let mut options = Options { threads, ignore_checksums: true, ..Options::default() };
    options.logs.selection = Selection::of::<&str>([]);
    let received = Arc::new(Mutex::new(Vec::new()));
    let commands = commands.to_vec();
    let listener = Lines { received: Arc::clone(&received), affinity, wants_all, commands };
    let wants = |decl: &Decl| !decl.one_thread && (wants_all || !decl.opt_in);
    let interest = Interest::of(gannet_engine::events(), wants);
    let mut stream =
        Stream::open(&[capture.to_owned()], gannet_capture::Options::default()).ok()?;
    let mut engine = Engine::with_listener(options, interest, Box::new(listener));
    feed(&mut engine, &mut stream, at_a_time);
    engine.end_capture("x.pcap");
    engine.finish().unwrap();
    let received = received.lock().unwrap().clone();
    Some(received)
}

fn own_folder(name: &str) -> PathBuf {
    let own = std::env::temp_dir().join(format!("gannet-events-{}-{name}", std::process::id()));
    fs::create_dir_all(&own).unwrap();
    own
}

/// Compares what a listener receives from several threads with what it receives from one, for each
/// capture.
fn compare(
    captures: &[PathBuf],
    listener_options: (bool, ThreadAffinity),
    commands: &[Command],
    configs: &[(usize, usize)],
) {
    let (mut compared, mut differ) = (0, Vec::new());
    for capture in captures {
        let Some(single) = received(capture, listener_options, commands, (1, usize::MAX)) else {
            continue;
        };
        for config in configs {
            let parallel = received(capture, listener_options, commands, *config).unwrap();
            compared += 1;
            if single != parallel {
                let line = line_that_differs(&single, &parallel);
                differ.push(format!("{} {config:?}: {line}", capture.display()));
            }
        }
    }
    assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(compared >= configs.len(), "{compared} comparisons");
}

#[test]
fn any_number_of_threads_raises_the_same_events() {
    let own = own_folder("same");
    let traffic_capture = own.join("traffic.pcap");
    write(&traffic::mixed(CONVERSATIONS, 1), &traffic_capture);
    let mut all = captures();
    all.insert(0, traffic_capture);
    // The generated traffic and the sample, with each number of threads.
    compare(&all[..2], (false, ThreadAffinity::Anywhere), &[], &CONFIGS);
    compare(&all[..2], (true, ThreadAffinity::Caller), &[], &CONFIGS);
    let mut all = all.split_off(2);
    all.retain(|capture| fs::metadata(capture).unwrap().len() <= SMALL);
    if !all.is_empty() {
        let half = all.len() / 2;
        thread::scope(|scope| {
            scope.spawn(|| {
                compare(&all[..half], (true, ThreadAffinity::Caller), &[], &CONFIGS[2..]);
            });
            compare(&all[half..], (true, ThreadAffinity::Caller), &[], &CONFIGS[2..]);
        });
    }
    fs::remove_dir_all(&own).unwrap();
}

#[test]
fn early_commands_of_a_listener_apply_to_all_threads() {
    let own = own_folder("asked");
    let capture = own.join("traffic.pcap");
    write(&traffic::mixed(CONVERSATIONS, 2), &capture);
    let analyzer = Some("Analyzer::ANALYZER_HTTP".to_owned());
    let filter = Command::Filter(Some("tcp or port 53".to_owned()));
    let commands = [Command::Enable { analyzer, on: false }, filter];
    let with_commands =
        received(&capture, (false, ThreadAffinity::Anywhere), &commands, (3, 50)).unwrap();
    let all = received(&capture, (false, ThreadAffinity::Anywhere), &[], (3, 50)).unwrap();
    let has = |text: &[u8], name: &str| String::from_utf8_lossy(text).contains(name);
    assert!(
        has(&all, "http_request")
            && !has(&with_commands, "http_request")
            && has(&with_commands, "dns_request")
    );
    compare(&[capture], (true, ThreadAffinity::Caller), &commands, &CONFIGS);
    fs::remove_dir_all(&own).unwrap();
}

#[test]
fn many_events_are_all_delivered() {
    let own = own_folder("many");
    for exchanges in [10, 1_000, 20_000] {
        let capture = own.join("dns.pcap");
        write(&traffic::of(Kind::Dns, exchanges, 1), &capture);
        let count = |config| {
            let received =
                received(&capture, (false, ThreadAffinity::Anywhere), &[], config).unwrap();
            let text = String::from_utf8_lossy(&received).into_owned();
            let of = |name: &str| text.matches(&format!("\"event\":\"{name}\"")).count();
            (of("dns_request"), of("new_connection"), of("connection_state_remove"), text.len())
        };
        let single = count((1, usize::MAX));
        assert_eq!(single, count((2, usize::MAX)));
        assert!(single.0 >= exchanges && single.1 == single.2, "{single:?} of {exchanges}");
    }
    fs::remove_dir_all(&own).unwrap();
}
