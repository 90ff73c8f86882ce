//! Whole runs over loopback, against correct and faulty servers: the report must be correct. All
//! runs are bounded in count and time.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gannet_replay::Error;
use gannet_replay::Input;
use gannet_replay::Live;
use gannet_replay::Options;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;

use support::Capture;
use support::Running;
use support::run;

#[test]
fn every_query_is_sent_once_and_answered_at_any_number_of_threads_and_clients() {
    let capture = Capture::new("all", 3000, 20_000, 7);
    for (threads, clients, segmentation) in
        [(1, None, true), (2, None, true), (2, Some(1), true), (3, Some(5), false)]
    {
        let server = Running::new(ServerBehaviour::default());
        let base = capture.options(server.address);
        let timeout = Duration::from_secs(3);
        let report = run(&Options { threads, clients, segmentation, timeout, ..base });
        let served = server.end();
        let counts = report.counts();
        assert_eq!((counts.sent, counts.answered, counts.rcodes[0]), (3000, 3000, 3000));
        assert_eq!((served.queries, served.answers), (3000, 3000));
        assert_eq!(served.bytes, counts.sent_bytes);
        assert_eq!(report.sources, 7);
        assert_eq!(report.clients, clients.unwrap_or(7) as usize);
    }
}

#[test]
fn original_time_is_kept_and_never_early() {
    let capture = Capture::new("time", 300, 1_000_000, 3);
    let server = Running::new(ServerBehaviour::default());
    for (speed, milliseconds) in [(1.0, 299.0), (2.0, 149.5), (0.5, 598.0)] {
        let timing = Timing::Original { speed };
        let report = run(&Options { timing, ..capture.options(server.address) });
        let took = report.sending().as_secs_f64() * 1e3;
        // On a busy machine queries may be late; they must never be early.
        assert!(took >= milliseconds && took < milliseconds + 1_500.0, "{speed}: {took} ms");
        assert_eq!(report.scheduled.as_nanos(), (milliseconds * 1e6) as u128);
    }
    server.end();
}

/// The numbers at the start of the queries' names, in the order in which a sink received them.
fn arrivals(sink: &std::net::UdpSocket) -> Vec<usize> {
    let mut numbers = Vec::new();
    let mut message = [0; 512];
    while let Ok(len) = sink.recv(&mut message) {
        let digits = std::str::from_utf8(&message[13..17]).unwrap();
        assert!(len > 17);
        numbers.push(digits.parse().unwrap());
    }
    numbers
}

#[test]
fn queries_of_a_client_keep_their_order_whatever_their_lengths() {
    const COUNT: usize = 200;
    let path = std::env::temp_dir().join(format!("gannet-order-{}.txt", std::process::id()));
    let name = |n: usize| format!("{n:04}{}.test A\n", "x".repeat(n * 13 % 40));
    std::fs::write(&path, (0..COUNT).map(name).collect::<String>()).unwrap();
    let sink = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let base = Options::new(Input::List(path.clone()), sink.local_addr().unwrap());
    let base = Options { clients: Some(1), timeout: Duration::from_millis(20), ..base };
    // Without times in the input all queries are due at once, as at very high rates.
    let timings = [
        Timing::Original { speed: 1.0 },
        Timing::Rate(1e6),
        Timing::Ramp { from: 1e6, to: 1e7, seconds: 1.0 },
    ];
    for timing in timings {
        for (answers, segmentation) in [(true, true), (false, true), (false, false)] {
            run(&Options { timing, answers, segmentation, ..base.clone() });
            let expected: Vec<_> = (0..COUNT).collect();
            assert_eq!(arrivals(&sink), expected, "{timing}, {answers} {segmentation}");
        }
    }
    run(&Options { timing: Timing::Max, answers: false, ..base });
    let mut numbers = arrivals(&sink);
    numbers.sort_unstable();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_rate_sent_leaves_retries_out() {
    let capture = Capture::new("retried", 20, 1_000_000, 2);
    let sink = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let base = capture.options(sink.local_addr().unwrap());
    let timing = Timing::Rate(1000.0);
    let timeout = Duration::from_millis(300);
    let report = run(&Options { timing, timeout, retries: 2, ..base });
    assert_eq!((report.counts().sent, report.counts().retries), (20, 40));
    // Twenty queries took 19 ms; retries continued for 600 ms after that.
    assert!(report.sending() < Duration::from_millis(250), "{:?}", report.sending());
    assert!(report.achieved_rate() > 76.0, "{}", report.achieved_rate());
}

#[test]
fn rates_and_loops_go_by_the_clock() {
    let capture = Capture::new("rate", 100, 0, 3);
    let server = Running::new(ServerBehaviour::default());
    let base = capture.options(server.address);
    let report = run(&Options { timing: Timing::Rate(2000.0), loops: 5, ..base.clone() });
    assert_eq!(report.counts().sent, 500);
    assert_eq!(report.requested_rate, Some(2000.0));
    assert!(report.sending() >= Duration::from_micros(249_500), "{:?}", report.sending());
    let duration = Some(Duration::from_millis(100));
    let report = run(&Options { timing: Timing::Rate(2000.0), loops: 0, duration, ..base.clone() });
    assert_eq!(report.counts().sent, 200);
    let report = run(&Options { timing: Timing::Max, loops: 0, limit: Some(777), ..base });
    assert_eq!(report.counts().answered, 777);
    server.end();
}

#[test]
fn losses_agree_with_the_servers_counts() {
    let capture = Capture::new("lossy", 2000, 0, 4);
    let server = Running::new(ServerBehaviour { drop: 0.1, ..ServerBehaviour::default() });
    let report =
        run(&Options { timing: Timing::Rate(20_000.0), ..capture.options(server.address) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(served.queries, 2000);
    assert_eq!((counts.lost, counts.answered), (served.dropped, served.answers));
    assert!((100..300).contains(&counts.lost), "{}", counts.lost);
}

#[test]
fn retries_recover_most_losses() {
    let capture = Capture::new("retries", 1000, 0, 4);
    let server = Running::new(ServerBehaviour { drop: 0.2, ..ServerBehaviour::default() });
    let timing = Timing::Rate(20_000.0);
    let report = run(&Options { timing, retries: 4, ..capture.options(server.address) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(counts.sent, 1000);
    assert!(counts.answered >= 900 && counts.retries > 100, "{counts:?}");
    assert_eq!(served.queries, counts.sent + counts.retries);
}

#[test]
fn late_answers_are_late_and_not_answers() {
    let capture = Capture::new("late", 200, 1_000_000, 2);
    let server = Running::new(ServerBehaviour {
        delay: Duration::from_millis(60),
        ..ServerBehaviour::default()
    });
    let timeout = Duration::from_millis(20);
    let report = run(&Options { timeout, ..capture.options(server.address) });
    server.end();
    let counts = report.counts();
    assert_eq!((counts.lost, counts.answered), (200, 0));
    // The last ones arrive after the sender has stopped receiving.
    assert!((1..200).contains(&counts.late), "{counts:?}");
}

#[test]
fn garbage_and_answers_to_other_questions_complete_no_query() {
    let capture = Capture::new("garbage", 2000, 0, 4);
    let behaviour =
        ServerBehaviour { garbage: 0.1, mismatch: 0.1, double: 0.1, ..ServerBehaviour::default() };
    let server = Running::new(behaviour);
    let report =
        run(&Options { timing: Timing::Rate(20_000.0), ..capture.options(server.address) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(counts.garbage + counts.mismatched, served.spoiled);
    assert!(counts.garbage > 100 && counts.mismatched > 100, "{counts:?}");
    assert_eq!(counts.lost, served.spoiled);
    assert_eq!(counts.answered + counts.duplicates, served.answers);
    assert!(counts.duplicates > 100, "{counts:?}");
}

#[test]
fn a_server_that_stops_is_reported() {
    let capture = Capture::new("dies", 2000, 200_000, 4);
    let server = Running::new(ServerBehaviour { queries: Some(500), ..ServerBehaviour::default() });
    let report = run(&capture.options(server.address));
    let served = server.end();
    let counts = report.counts();
    assert!(counts.answered <= served.answers && counts.answered >= 500 - 64, "{counts:?}");
    assert!(counts.lost > 0 && counts.refused > 0, "{counts:?}");
}

#[test]
fn a_closed_port() {
    let gone = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    let capture = Capture::new("nobody", 50, 1_000_000, 1);
    let report = run(&capture.options(gone));
    let counts = report.counts();
    assert_eq!(counts.answered, 0);
    assert!(counts.refused > 0 && counts.lost + counts.unsent == 50, "{counts:?}");
}

#[test]
fn a_stopped_run_has_a_report() {
    let capture = Capture::new("stop", 1000, 5_000_000, 2);
    let server = Running::new(ServerBehaviour { sink: true, ..ServerBehaviour::default() });
    let stop = AtomicBool::new(false);
    let options = capture.options(server.address);
    let options = Options { timeout: Duration::from_secs(60), ..options };
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::Relaxed);
        });
        gannet_replay::run(&options, &stop, &Live::default()).unwrap()
    });
    server.end();
    let counts = report.counts();
    assert!(counts.adds_up() && report.stopped);
    assert!(counts.sent > 0 && counts.sent < 1000 && counts.open == counts.sent, "{counts:?}");
}

#[test]
fn without_answers_queries_are_sent_unchanged() {
    let capture = Capture::new("sink", 1500, 0, 1);
    let server = Running::new(ServerBehaviour { sink: true, ..ServerBehaviour::default() });
    let timing = Timing::Rate(50_000.0);
    let report = run(&Options { timing, answers: false, ..capture.options(server.address) });
    std::thread::sleep(Duration::from_millis(100));
    let served = server.end();
    assert_eq!((report.counts().sent, report.counts().unwatched), (1500, 1500));
    assert_eq!(served.queries, 1500);
}

#[test]
fn sources_are_taken_from_a_range() {
    let capture = Capture::new("range", 60, 0, 3);
    let server = Running::new(ServerBehaviour::default());
    let bind = gannet_replay::parse_range("127.77.0.0/24");
    let report = run(&Options { bind, ..capture.options(server.address) });
    server.end();
    assert_eq!((report.counts().answered, report.clients), (60, 3));
}

#[test]
fn reports_are_machine_readable() {
    let capture = Capture::new("json", 500, 1_000_000, 3);
    let server = Running::new(ServerBehaviour { rcode: 3, ..ServerBehaviour::default() });
    let interval = Duration::from_millis(100);
    let warm_up = Duration::from_millis(100);
    let report = run(&Options { interval, warm_up, ..capture.options(server.address) });
    server.end();
    let params = ["--to \"x\"".to_owned(), "a\\b".to_owned()];
    let objects: Vec<serde_json::Value> =
        report.json(&params).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects[0]["type"], "header");
    assert_eq!(objects[0]["generator_params"][1], "a\\b");
    let sum = objects.last().unwrap();
    assert_eq!(sum["type"], "stats_sum");
    assert_eq!(sum["queries"], sum["response_rcodes"]["NXDOMAIN"]);
    let periodic = &objects[1..objects.len() - 1];
    assert!(periodic.len() >= 5);
    let queries: u64 = periodic.iter().map(|o| o["queries"].as_u64().unwrap()).sum();
    assert_eq!(queries, 500);
    assert!(sum["queries"].as_u64().unwrap() < 500, "the warm-up is left out");
    let buckets = sum["response_latency"]["buckets"].as_array().unwrap();
    let counted: u64 = buckets.iter().map(|b| b[1].as_u64().unwrap()).sum();
    assert_eq!(Some(counted), sum["responses"].as_u64());
    let svg = report.svg();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(report.table().contains("NXDOMAIN"));
}

#[test]
fn input_without_queries_is_a_helpful_error() {
    let capture = Capture::new("other", 5, 0, 1);
    let mut options = capture.options(([127, 0, 0, 1], 9).into());
    options.input =
        Input::Captures { paths: vec![capture.0.clone()], ports: vec![5353], filter: None };
    let error =
        gannet_replay::run(&options, &AtomicBool::new(false), &Live::default()).unwrap_err();
    assert!(matches!(error, Error::NoQueries { packets: 5, .. }), "{error}");
    options.input =
        Input::Captures { paths: vec!["/nonexistent".into()], ports: vec![], filter: None };
    let error =
        gannet_replay::run(&options, &AtomicBool::new(false), &Live::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent"), "{error}");
    assert!(Path::new(&capture.0).exists());
}

#[test]
fn a_run_whose_input_cannot_be_read_again_has_a_report() {
    let path = std::env::temp_dir().join(format!("gannet-again-{}.txt", std::process::id()));
    std::fs::write(&path, "a.test A\nb.test A\n").unwrap();
    let server = Running::new(ServerBehaviour::default());
    let base = Options::new(Input::List(path.clone()), server.address);
    let options = Options { loops: 0, timing: Timing::Rate(1_000.0), ..base };
    let (stop, live) = (AtomicBool::new(false), Live::default());
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while live.sent.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::fs::remove_file(&path).unwrap();
        });
        gannet_replay::run(&options, &stop, &live).unwrap()
    });
    server.end();
    assert!(report.counts().sent > 0 && report.counts().adds_up());
    let name = path.display().to_string();
    assert!(report.seen.remarks[0].starts_with(&name), "{:?}", report.seen.remarks);
}
