//! Answers compared with those of a capture and of a second server, over loopback.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use gannet_replay::Compared;
use gannet_replay::FIELDS;
use gannet_replay::Fields;
use gannet_replay::Input;
use gannet_replay::Live;
use gannet_replay::Options;
use gannet_replay::ReferenceAnswers;
use gannet_replay::Report;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Transport;

use support::Capture;
use support::Running;

fn compare(options: &Options, against: &ReferenceAnswers) -> (Compared, Vec<serde_json::Value>) {
    let (_, compared, lines) = reported(options, against);
    (compared, lines)
}

fn reported(
    options: &Options,
    against: &ReferenceAnswers,
) -> (Report, Compared, Vec<serde_json::Value>) {
    let mut lines = Vec::new();
    let watch = (&AtomicBool::new(false), &Live::default());
    let (report, compared) =
        gannet_replay::compare(options, against, Fields::default(), watch, &mut lines).unwrap();
    assert!(report.counts().adds_up());
    assert_eq!(compared.pairs + compared.only_target, report.counts().answered);
    let lines = String::from_utf8(lines).unwrap();
    (report, compared, lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect())
}

fn in_field(compared: &Compared, name: &str) -> u64 {
    compared.fields[FIELDS.iter().position(|f| *f == name).unwrap()]
}

#[test]
fn answers_of_the_capture_are_found_in_any_order() {
    let capture = Capture::answered("compare", 600, 4);
    let timeout = Duration::from_secs(5);
    for (transport, threads, delay) in
        [(Transport::Udp, 1, 0), (Transport::Udp, 2, 30), (Transport::Tcp, 2, 0)]
    {
        let delay = Duration::from_millis(delay);
        let server = Running::new(ServerBehaviour { delay, ..ServerBehaviour::default() });
        let base = capture.options(server.address);
        let (compared, lines) =
            compare(&Options { transport, threads, timeout, ..base }, &ReferenceAnswers::Capture);
        server.end();
        assert_eq!((compared.pairs, compared.same), (600, 450));
        assert_eq!((compared.only_target, compared.only_other), (0, 0));
        assert_eq!((in_field(&compared, "rcode"), lines.len()), (150, 150));
        for line in lines {
            let query = line["query"].as_u64().unwrap();
            assert_eq!(query % 4, 0);
            // Each query is followed by its answer in the capture, and a millisecond later by the next.
            assert_eq!(line["packet"], query * 2 + 1);
            let time = 1_700_000_000.0 + query as f64 / 1e3;
            assert!((line["time"].as_f64().unwrap() - time).abs() < 1e-6, "{line}");
            assert_eq!(line["question"], format!("q{}.test. A", line["query"]));
            assert_eq!(line["rcode"], serde_json::json!(["NOERROR", "NXDOMAIN"]));
        }
    }
}

#[test]
fn the_last_answers_are_found_where_a_limit_ends_the_queries() {
    let capture = Capture::answered("compare-limit", 50, 1000);
    let server = Running::new(ServerBehaviour::default());
    let options = Options { limit: Some(20), ..capture.options(server.address) };
    let (compared, _) = compare(&options, &ReferenceAnswers::Capture);
    server.end();
    assert_eq!((compared.pairs, compared.same, compared.only_target), (20, 19, 0));
}

#[test]
fn a_second_server_gets_the_same_queries() {
    let capture = Capture::new("compare-two", 500, 0, 3);
    let first = Running::new(ServerBehaviour { drop: 0.1, ..ServerBehaviour::default() });
    let second = Running::new(ServerBehaviour { rcode: 5, ..ServerBehaviour::default() });
    let timing = Timing::Rate(5_000.0);
    let against = ReferenceAnswers::parse(&second.address.to_string(), 53, false).unwrap();
    let options = Options { timing, ..capture.options(first.address) };
    let (report, compared, lines) = reported(&options, &against);
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.queries, second.queries), (500, 500));
    assert_eq!((compared.pairs, compared.only_other), (first.answers, first.dropped));
    assert_eq!(in_field(&compared, "rcode"), compared.pairs);
    assert_eq!(compared.same, 0);
    assert_eq!(lines.len() as u64, compared.pairs);
    assert_eq!(compared.other.as_ref().unwrap().counts().answered, 500);
    // Text and JSON contain the results of both servers.
    let table = compared.table(&report);
    let row = |name: &str| {
        let line = table.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {table}")).split_whitespace().collect::<Vec<_>>()
    };
    let targets = [report.target, compared.other.as_ref().unwrap().target].map(|t| t.to_string());
    assert_eq!(row("server")[1..], targets);
    assert_eq!(row("answered")[1..], [first.answers.to_string(), "500".to_owned()]);
    assert_eq!(row("lost")[1..], [first.dropped.to_string(), "0".to_owned()]);
    assert_eq!(row("NOERROR")[1..], [first.answers.to_string(), "0".to_owned()]);
    assert_eq!(row("REFUSED")[1..], ["0", "500"]);
    assert_eq!(row("latency p50").len(), 6);
    let json: serde_json::Value = serde_json::from_str(&compared.json(&report)).unwrap();
    let servers = json["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[0]["answered"], first.answers);
    assert_eq!(servers[1]["response_rcodes"], serde_json::json!({ "REFUSED": 500 }));
    for server in servers {
        let latency = &server["response_latency"];
        let [p50, p99, max] = ["p50", "p99", "max"].map(|name| latency[name].as_u64().unwrap());
        assert!(0 < p50 && p50 <= p99 && p99 <= max, "{latency}");
    }
}

#[test]
fn a_difference_of_a_list_names_the_line_of_its_query() {
    let path = std::env::temp_dir().join(format!("gannet-lines-{}.txt", std::process::id()));
    std::fs::write(&path, "# names\na.test\n\nb.test AAAA\n").unwrap();
    let first = Running::new(ServerBehaviour::default());
    let second = Running::new(ServerBehaviour { rcode: 3, ..ServerBehaviour::default() });
    let against = ReferenceAnswers::parse(&second.address.to_string(), 53, false).unwrap();
    let options = Options::new(Input::List(path.clone()), first.address);
    let (_, mut lines) = compare(&options, &against);
    for server in [first, second] {
        server.end();
    }
    std::fs::remove_file(path).unwrap();
    lines.sort_by_key(|line| line["query"].as_u64());
    let places: Vec<_> = lines.iter().map(|l| (l["line"].as_u64(), l.get("packet"))).collect();
    assert_eq!(places, [(Some(2), None), (Some(4), None)]);
}
