//! Whole runs over TLS on loopback: trusted certificates, resumed sessions, servers that break
//! connections.

#![cfg(feature = "self-signed")]
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Tls;
use gannet_replay::Transport;
use gannet_replay::Trust;

use support::Capture;
use support::Running;
use support::any_certificate;
use support::identity;
use support::run;
use support::secured;

fn options(capture: &Capture, target: SocketAddr, tls: Tls) -> Options {
    secured(capture, target, Transport::Tls, tls)
}

#[test]
fn every_query_is_answered_over_its_clients_session() {
    let capture = Capture::new("tls-all", 2000, 20_000, 5);
    let identity = identity();
    for (threads, timing) in [(1, Timing::Original { speed: 1.0 }), (2, Timing::Max)] {
        let server = Running::secure(ServerBehaviour::default(), &identity);
        let report = run(&Options {
            threads,
            timing,
            ..options(&capture, server.address, any_certificate())
        });
        let served = server.end();
        let counts = report.counts();
        assert_eq!((counts.sent, counts.answered), (2000, 2000));
        assert_eq!((served.queries, served.bytes), (2000, counts.sent_bytes));
        assert_eq!((counts.connections, counts.resumed, served.connections), (5, 0, 5));
        assert_eq!((counts.connections_failed, counts.connections_broken), (0, 0));
    }
}

#[test]
fn sessions_are_resumed_if_allowed() {
    let capture = Capture::new("tls-resume", 20, 30_000_000, 1);
    for resumption in [true, false] {
        let server = Running::secure(ServerBehaviour::default(), &identity());
        let policy = Policy { queries: Some(1), resumption, ..Policy::default() };
        let report =
            run(&Options { policy, ..options(&capture, server.address, any_certificate()) });
        server.end();
        let counts = report.counts();
        assert_eq!((counts.answered, counts.connections), (20, 20));
        if resumption {
            assert!(counts.resumed >= 15, "{counts:?}");
        } else {
            assert_eq!(counts.resumed, 0);
        }
    }
}

#[test]
fn only_servers_that_are_trusted_get_queries() {
    let capture = Capture::new("tls-trust", 10, 1_000_000, 1);
    let identity = identity();
    let file = std::env::temp_dir().join(format!("gannet-trust-{}.pem", std::process::id()));
    std::fs::write(&file, identity.pem()).unwrap();
    let trust = Trust::File(PathBuf::from(&file));
    let other = file.with_extension("other");
    std::fs::write(&other, self::identity().pem()).unwrap();
    let server = Running::secure(ServerBehaviour::default(), &identity);
    for (name, trust, answered) in [
        ("127.0.0.1", &trust, 10),
        ("dns.test", &trust, 10),
        ("other.test", &trust, 0),
        ("127.0.0.1", &Trust::File(other.clone()), 0),
    ] {
        let tls = Tls::new(name, trust).unwrap();
        let report = run(&options(&capture, server.address, tls));
        let counts = report.counts();
        assert_eq!((counts.answered, counts.sent), (answered, answered), "{name}, {trust:?}");
        assert_eq!(counts.unsent, 10 - answered);
        if answered == 0 {
            let trouble = report.first_error().unwrap();
            assert!(trouble.contains("certificate"), "{trouble}");
        }
    }
    assert_eq!(server.end().queries, 20);
    std::fs::remove_file(file).unwrap();
    std::fs::remove_file(other).unwrap();
}

#[test]
fn corrupted_answers_complete_no_query() {
    let capture = Capture::new("tls-spoil", 1000, 0, 3);
    let behaviour =
        ServerBehaviour { drop: 0.1, garbage: 0.1, mismatch: 0.1, ..ServerBehaviour::default() };
    let server = Running::secure(behaviour, &identity());
    let (timing, timeout) = (Timing::Rate(10_000.0), Duration::from_secs(1));
    let report =
        run(&Options { timing, timeout, ..options(&capture, server.address, any_certificate()) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(counts.garbage + counts.mismatched, served.spoiled);
    assert_eq!(counts.lost, served.spoiled + served.dropped);
    assert_eq!(counts.answered, served.answers);
}

#[test]
fn a_server_without_tls_gets_no_query() {
    let capture = Capture::new("tls-plain", 10, 1_000_000, 1);
    let server = Running::new(ServerBehaviour::default());
    let timeout = Duration::from_millis(300);
    let report = run(&Options { timeout, ..options(&capture, server.address, any_certificate()) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!((counts.sent, counts.unsent, served.queries), (0, 10, 0));
    assert!(counts.connections_failed > 0, "{counts:?}");
}
