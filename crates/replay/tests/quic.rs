//! Whole runs over QUIC on loopback, between gannet's clients and servers, and those of aioquic, an
//! independent implementation. `GANNET_PYTHON` names a Python that has it, `python3` by default;
//! without it those tests are skipped with a note.

#![cfg(all(feature = "quic", feature = "self-signed"))]
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Tls;
use gannet_replay::Transport;
use gannet_replay::Trust;

use support::Capture;
use support::Running;
use support::ThirdPartyServer;
use support::any_certificate;
use support::free_port;
use support::identity;
use support::run;
use support::run_whole;
use support::secured;

fn options(capture: &Capture, target: SocketAddr, tls: Tls) -> Options {
    secured(capture, target, Transport::Quic, tls)
}

#[test]
fn every_query_is_answered_over_its_clients_connection() {
    let capture = Capture::new("quic-all", 2000, 20_000, 5);
    let identity = identity();
    for (threads, timing) in [(1, Timing::Original { speed: 1.0 }), (2, Timing::Max)] {
        let server = Running::quic(ServerBehaviour::default(), &identity);
        let report = run(&Options {
            threads,
            timing,
            ..options(&capture, server.address, any_certificate())
        });
        let served = server.end();
        let counts = report.counts();
        assert_eq!((counts.sent, counts.answered), (2000, 2000), "{counts:?}");
        assert_eq!((served.queries, served.bytes), (2000, counts.sent_bytes));
        assert_eq!((counts.connections, counts.resumed, served.connections), (5, 0, 5));
        assert_eq!((counts.connections_failed, counts.connections_broken), (0, 0));
        assert!(report.json(&[]).contains("\"transport\":\"quic\""));
    }
}

#[test]
fn queries_beyond_the_stream_limit_wait() {
    let capture = Capture::new("quic-many", 5000, 0, 1);
    let server = Running::quic(ServerBehaviour::default(), &identity());
    let (timing, in_flight) = (Timing::Max, 4000);
    let report =
        run(&Options { timing, in_flight, ..options(&capture, server.address, any_certificate()) });
    server.end();
    assert_eq!((report.counts().answered, report.counts().connections), (5000, 1));
}

#[test]
fn sessions_are_resumed_if_allowed() {
    let capture = Capture::new("quic-resume", 20, 30_000_000, 1);
    for resumption in [true, false] {
        let server = Running::quic(ServerBehaviour::default(), &identity());
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
    let capture = Capture::new("quic-trust", 10, 1_000_000, 1);
    let identity = identity();
    let file = std::env::temp_dir().join(format!("gannet-doq-{}.pem", std::process::id()));
    std::fs::write(&file, identity.pem()).unwrap();
    let trust = Trust::File(PathBuf::from(&file));
    let server = Running::quic(ServerBehaviour::default(), &identity);
    for (name, answered) in [("127.0.0.1", 10), ("dns.test", 10), ("other.test", 0)] {
        let tls = Tls::new(name, &trust).unwrap();
        let report = run(&options(&capture, server.address, tls));
        let counts = report.counts();
        assert_eq!((counts.answered, counts.sent), (answered, answered), "{name}: {counts:?}");
        assert_eq!(counts.unsent, 10 - answered);
        if answered == 0 {
            let trouble = report.first_error().unwrap();
            assert!(trouble.contains("certificate"), "{trouble}");
        }
    }
    assert_eq!(server.end().queries, 20);
    std::fs::remove_file(file).unwrap();
}

#[test]
fn corrupted_answers_complete_no_query() {
    let capture = Capture::new("quic-spoil", 1000, 0, 3);
    let behaviour = ServerBehaviour {
        drop: 0.1,
        garbage: 0.1,
        mismatch: 0.1,
        double: 0.1,
        ..ServerBehaviour::default()
    };
    let server = Running::quic(behaviour, &identity());
    let (timing, timeout) = (Timing::Rate(10_000.0), Duration::from_secs(1));
    let report =
        run(&Options { timing, timeout, ..options(&capture, server.address, any_certificate()) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(counts.garbage + counts.mismatched, served.spoiled, "{counts:?} {served:?}");
    assert_eq!(counts.lost, served.spoiled + served.dropped);
    assert_eq!(counts.answered + counts.duplicates, served.answers);
}

#[test]
fn late_answers_are_not_answers_and_lost_queries_are_retried() {
    let capture = Capture::new("quic-late", 100, 4_000_000, 2);
    let delay = Duration::from_millis(200);
    let server =
        Running::quic(ServerBehaviour { delay, ..ServerBehaviour::default() }, &identity());
    let timeout = Duration::from_millis(50);
    let base = options(&capture, server.address, any_certificate());
    let report = run(&Options { timeout, retries: 1, ..base });
    server.end();
    let counts = report.counts();
    // A client that gives up cancels the stream, so no late answer arrives.
    assert_eq!((counts.lost, counts.answered, counts.late), (100, 0, 0), "{counts:?}");
    assert_eq!(counts.retries, 100);
}

#[test]
fn a_closed_port_or_one_without_quic() {
    let capture = Capture::new("quic-nobody", 20, 1_000_000, 1);
    let gone = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let report = run(&options(&capture, gone, any_certificate()));
    let counts = report.counts();
    assert_eq!((counts.sent, counts.unsent), (0, 20), "{counts:?}");
    assert!(counts.refused > 0 && counts.connections == 0, "{counts:?}");
    let plain = Running::new(ServerBehaviour::default());
    let timeout = Duration::from_millis(300);
    let report = run(&Options { timeout, ..options(&capture, plain.address, any_certificate()) });
    plain.end();
    assert_eq!((report.counts().sent, report.counts().unsent), (0, 20), "{:?}", report.counts());
}

#[test]
fn a_server_that_stops_breaks_connections_and_is_reported() {
    let capture = Capture::new("quic-dies", 2000, 200_000, 4);
    let behaviour = ServerBehaviour { queries: Some(500), ..ServerBehaviour::default() };
    let server = Running::quic(behaviour, &identity());
    let timeout = Duration::from_secs(1);
    let report = run(&Options { timeout, ..options(&capture, server.address, any_certificate()) });
    let served = server.end();
    let counts = report.counts();
    assert!(counts.answered <= served.answers && counts.answered > 0, "{counts:?}");
    assert!(counts.connections_broken >= 1 && counts.connections_failed > 0, "{counts:?}");
    assert_eq!(counts.sent + counts.unsent, 2000, "{counts:?}");
}

#[test]
fn without_answers_all_that_was_sent_arrives() {
    let capture = Capture::new("quic-sink", 1500, 0, 3);
    let behaviour = ServerBehaviour { sink: true, ..ServerBehaviour::default() };
    let server = Running::quic(behaviour, &identity());
    let timing = Timing::Rate(20_000.0);
    let base = options(&capture, server.address, any_certificate());
    let report = run(&Options { timing, answers: false, ..base });
    std::thread::sleep(Duration::from_millis(100));
    let served = server.end();
    assert_eq!((report.counts().sent, report.counts().unwatched), (1500, 1500));
    assert_eq!(served.queries, 1500);
}

/// A Python with aioquic, and the script to run.
#[allow(clippy::print_stderr, reason = "who runs the tests is told of what is skipped")]
fn python() -> Option<(String, PathBuf)> {
    let python = std::env::var("GANNET_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import aioquic"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} has no aioquic (pip install aioquic; GANNET_PYTHON names it)");
        return None;
    }
    Some((python, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/doq.py")))
}

#[test]
fn a_server_of_others_answers_and_counts_agree() {
    let Some((python, script)) = python() else { return };
    let folder = std::env::temp_dir().join(format!("gannet-doq-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = Command::new(python);
    command.arg(script).arg("serve").arg(address.port().to_string()).args([&certificate, &key]);
    command.arg(folder.join("counts"));
    let ready = |folder: &Path| folder.join("counts").exists();
    let server = ThirdPartyServer::start(&mut command, folder, address, ready);
    let counts = || {
        let text = std::fs::read_to_string(server.folder.join("counts")).unwrap();
        text.split(' ').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u64>>()
    };
    let capture = Capture::answered("doq-other", 1000, u32::MAX);
    let tls = Tls::new("127.0.0.1", &Trust::File(certificate)).unwrap();
    let mut expected = 0;
    for queries in [None, Some(25)] {
        let policy = Policy { queries, ..Policy::default() };
        run_whole(1000, Options { policy, ..options(&capture, address, tls.clone()) });
        expected += 1000;
        // It writes its counts periodically.
        let begun = Instant::now();
        while counts().first() != Some(&expected) {
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", counts());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(counts()[1] >= 3 + 40, "{:?}", counts());
    assert!(counts()[2] > 0, "sessions went on: {:?}", counts());
}

#[test]
fn a_client_of_others_is_answered() {
    let Some((python, script)) = python() else { return };
    let identity = identity();
    let authority = std::env::temp_dir().join(format!("gannet-doq-ca-{}.pem", std::process::id()));
    std::fs::write(&authority, identity.pem()).unwrap();
    let server = Running::quic(ServerBehaviour::default(), &identity);
    let output = Command::new(python)
        .arg(script)
        .arg("ask")
        .arg(server.address.port().to_string())
        .arg(&authority)
        .arg("400")
        .output()
        .unwrap();
    let served = server.end();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "400", "{words}");
    assert_eq!((served.queries, served.answers, served.connections), (400, 400, 1));
    std::fs::remove_file(authority).unwrap();
}
