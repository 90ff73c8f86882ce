//! Whole runs over HTTPS on loopback.

#![cfg(feature = "self-signed")]
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use gannet_replay::Options;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Transport;

use support::Capture;
use support::Running;
use support::any_certificate;
use support::identity;
use support::run;
use support::run_whole;
use support::secured;

#[test]
fn every_query_is_answered_on_its_stream() {
    let capture = Capture::new("https-all", 3000, 20_000, 5);
    let server = Running::https(ServerBehaviour::default(), &identity());
    let options = secured(&capture, server.address, Transport::Https, any_certificate());
    run_whole(3000, options);
    let served = server.end();
    assert_eq!((served.queries, served.answers, served.connections), (3000, 3000, 5));
}

#[test]
fn corrupted_answers_complete_no_query() {
    let capture = Capture::new("https-spoil", 1000, 0, 3);
    let delay = Duration::from_millis(20);
    let behaviour = ServerBehaviour {
        drop: 0.1,
        garbage: 0.1,
        mismatch: 0.1,
        delay,
        ..ServerBehaviour::default()
    };
    let server = Running::https(behaviour, &identity());
    let (timing, timeout) = (Timing::Rate(10_000.0), Duration::from_secs(1));
    let options = secured(&capture, server.address, Transport::Https, any_certificate());
    let report = run(&Options { timing, timeout, ..options });
    let served = server.end();
    let counts = report.counts();
    assert!(served.dropped > 50 && served.spoiled > 100, "{served:?}");
    assert_eq!(counts.garbage + counts.mismatched, served.spoiled);
    assert_eq!(counts.lost, served.spoiled + served.dropped);
    assert_eq!(counts.answered, served.answers);
    assert!(report.latency(0.5).unwrap() >= delay);
}

#[test]
fn a_client_without_http_gets_no_answer() {
    let capture = Capture::new("https-tls", 10, 1_000_000, 1);
    let server = Running::https(ServerBehaviour::default(), &identity());
    let timeout = Duration::from_millis(300);
    let options = secured(&capture, server.address, Transport::Tls, any_certificate());
    let report = run(&Options { timeout, ..options });
    assert_eq!((report.counts().answered, server.end().queries), (0, 0));
}
