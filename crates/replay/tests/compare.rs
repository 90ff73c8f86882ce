//! Answers compared with those of a capture and of a second server, over loopback.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gannet_replay::Against;
use gannet_replay::Behaviour;
use gannet_replay::Compared;
use gannet_replay::FIELDS;
use gannet_replay::Fields;
use gannet_replay::Live;
use gannet_replay::Options;
use gannet_replay::Timing;
use gannet_replay::Transport;

use support::Capture;
use support::Running;

fn compare(options: &Options, against: &Against) -> (Compared, Vec<serde_json::Value>) {
    let mut lines = Vec::new();
    let watch = (&AtomicBool::new(false), &Live::default());
    let (report, compared) =
        gannet_replay::compare(options, against, Fields::default(), watch, &mut lines).unwrap();
    assert!(report.counts().adds_up());
    assert_eq!(compared.pairs + compared.only_target, report.counts().answered);
    let lines = String::from_utf8(lines).unwrap();
    (compared, lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect())
}

fn in_field(compared: &Compared, name: &str) -> u64 {
    compared.fields[FIELDS.iter().position(|f| *f == name).unwrap()]
}

#[test]
fn answers_of_the_capture_are_found_whatever_the_order_they_come_in() {
    let capture = Capture::answered("compare", 600, 4);
    let timeout = Duration::from_secs(5);
    for (transport, threads, delay) in
        [(Transport::Udp, 1, 0), (Transport::Udp, 2, 30), (Transport::Tcp, 2, 0)]
    {
        let delay = Duration::from_millis(delay);
        let server = Running::new(Behaviour { delay, ..Behaviour::default() });
        let base = capture.options(server.address);
        let (compared, lines) =
            compare(&Options { transport, threads, timeout, ..base }, &Against::Capture);
        server.end();
        assert_eq!((compared.pairs, compared.same), (600, 450));
        assert_eq!((compared.only_target, compared.only_other), (0, 0));
        assert_eq!((in_field(&compared, "rcode"), lines.len()), (150, 150));
        for line in lines {
            assert_eq!(line["query"].as_u64().unwrap() % 4, 0);
            assert_eq!(line["question"], format!("q{}.test. A", line["query"]));
            assert_eq!(line["rcode"], serde_json::json!(["NOERROR", "NXDOMAIN"]));
        }
    }
}

#[test]
fn the_last_answers_are_found_where_a_limit_ends_the_queries() {
    let capture = Capture::answered("compare-limit", 50, 1000);
    let server = Running::new(Behaviour::default());
    let options = Options { limit: Some(20), ..capture.options(server.address) };
    let (compared, _) = compare(&options, &Against::Capture);
    server.end();
    assert_eq!((compared.pairs, compared.same, compared.only_target), (20, 19, 0));
}

#[test]
fn a_second_server_gets_the_same_queries() {
    let capture = Capture::new("compare-two", 500, 0, 3);
    let first = Running::new(Behaviour { drop: 0.1, ..Behaviour::default() });
    let second = Running::new(Behaviour { rcode: 5, ..Behaviour::default() });
    let timing = Timing::Rate(5_000.0);
    let against = Against::parse(&second.address.to_string(), 53, false).unwrap();
    let options = Options { timing, ..capture.options(first.address) };
    let (compared, lines) = compare(&options, &against);
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.queries, second.queries), (500, 500));
    assert_eq!((compared.pairs, compared.only_other), (first.answers, first.dropped));
    assert_eq!(in_field(&compared, "rcode"), compared.pairs);
    assert_eq!(compared.same, 0);
    assert_eq!(lines.len() as u64, compared.pairs);
    assert_eq!(compared.other.unwrap().counts().answered, 500);
}
