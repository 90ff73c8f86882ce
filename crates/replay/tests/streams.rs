//! Whole runs over connections on loopback, against correct and faulty servers: the report must be
//! correct. All runs are bounded in count and time.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::time::Duration;

use gannet_replay::Options;
use gannet_replay::Policy;
use gannet_replay::ServerBehaviour;
use gannet_replay::Timing;
use gannet_replay::Transport;

use support::Capture;
use support::Running;
use support::run;

/// Options for TCP, with a timeout for slow machines.
fn options(capture: &Capture, target: SocketAddr) -> Options {
    let timeout = Duration::from_secs(5);
    Options { transport: Transport::Tcp, timeout, ..capture.options(target) }
}

#[test]
fn every_query_goes_over_the_connection_of_its_client_and_is_answered() {
    let capture = Capture::new("tcp-all", 3000, 20_000, 7);
    for (threads, clients) in [(1, None), (2, None), (2, Some(1)), (3, Some(5))] {
        let server = Running::new(ServerBehaviour::default());
        let report = run(&Options { threads, clients, ..options(&capture, server.address) });
        let served = server.end();
        let counts = report.counts();
        assert_eq!((counts.sent, counts.answered, counts.rcodes[0]), (3000, 3000, 3000));
        assert_eq!((served.queries, served.answers), (3000, 3000));
        assert_eq!(served.bytes, counts.sent_bytes);
        let expected = u64::from(clients.unwrap_or(7));
        assert_eq!((counts.connections, served.connections), (expected, expected));
        assert_eq!((counts.connections_failed, counts.connections_broken), (0, 0));
        assert!(report.handshake().is_some());
        assert!(report.table().contains("over tcp"), "{}", report.table());
    }
}

#[test]
fn as_fast_as_answers_come_with_many_in_flight() {
    let capture = Capture::new("tcp-max", 5000, 0, 3);
    let server = Running::new(ServerBehaviour::default());
    let report = run(&Options { timing: Timing::Max, ..options(&capture, server.address) });
    server.end();
    assert_eq!((report.counts().answered, report.counts().connections), (5000, 3));
}

#[test]
fn the_number_of_queries_of_a_connection_is_limited() {
    let capture = Capture::new("tcp-few", 1000, 20_000, 2);
    let server = Running::new(ServerBehaviour::default());
    let policy = Policy { queries: Some(10), ..Policy::default() };
    let report = run(&Options { policy, ..options(&capture, server.address) });
    let served = server.end();
    assert_eq!(report.counts().answered, 1000);
    assert_eq!((report.counts().connections, served.connections), (100, 100));
}

#[test]
fn an_idle_connection_is_closed_and_another_opened() {
    // A query every 150 ms from one client.
    let capture = Capture::new("tcp-idle", 5, 150_000_000, 1);
    let server = Running::new(ServerBehaviour::default());
    let policy = Policy { idle: Duration::from_millis(20), ..Policy::default() };
    let report = run(&Options { policy, ..options(&capture, server.address) });
    let served = server.end();
    assert_eq!((report.counts().answered, served.connections), (5, 5));
    assert_eq!(report.counts().connections_broken, 0);
}

#[test]
fn a_connection_that_may_not_be_idle_stays_for_its_answers() {
    let capture = Capture::new("tcp-not-idle", 5, 20_000_000, 1);
    let server = Running::new(ServerBehaviour {
        delay: Duration::from_millis(5),
        ..ServerBehaviour::default()
    });
    let policy = Policy { idle: Duration::ZERO, ..Policy::default() };
    let report = run(&Options { policy, ..options(&capture, server.address) });
    let served = server.end();
    assert_eq!((report.counts().answered, served.connections), (5, 5));
}

#[test]
fn corrupted_answers_complete_no_query() {
    let capture = Capture::new("tcp-spoil", 2000, 0, 4);
    let behaviour = ServerBehaviour {
        drop: 0.1,
        garbage: 0.1,
        mismatch: 0.1,
        double: 0.1,
        ..ServerBehaviour::default()
    };
    let server = Running::new(behaviour);
    let timing = Timing::Rate(20_000.0);
    let timeout = Duration::from_secs(1);
    let report = run(&Options { timing, timeout, ..options(&capture, server.address) });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(served.queries, 2000);
    assert_eq!(counts.garbage + counts.mismatched, served.spoiled);
    assert!(counts.garbage > 100 && counts.mismatched > 100, "{counts:?}");
    assert_eq!(counts.lost, served.spoiled + served.dropped);
    assert_eq!(counts.answered + counts.duplicates, served.answers);
}

#[test]
fn late_answers_are_late_and_not_answers() {
    let capture = Capture::new("tcp-late", 100, 4_000_000, 2);
    let delay = Duration::from_millis(100);
    let server = Running::new(ServerBehaviour { delay, ..ServerBehaviour::default() });
    let timeout = Duration::from_millis(30);
    let report = run(&Options { timeout, ..options(&capture, server.address) });
    server.end();
    let counts = report.counts();
    assert_eq!((counts.lost, counts.answered), (100, 0));
    assert!((1..100).contains(&counts.late), "{counts:?}");
}

#[test]
fn a_query_without_an_answer_is_sent_again() {
    let capture = Capture::new("tcp-again", 1000, 0, 4);
    let server = Running::new(ServerBehaviour { drop: 0.2, ..ServerBehaviour::default() });
    let (timing, timeout) = (Timing::Rate(20_000.0), Duration::from_millis(500));
    let base = options(&capture, server.address);
    let report = run(&Options { timing, timeout, retries: 4, ..base });
    let served = server.end();
    let counts = report.counts();
    assert_eq!(counts.sent, 1000);
    assert!(counts.answered >= 900 && counts.retries > 100, "{counts:?}");
    assert_eq!(served.queries, counts.sent + counts.retries);
}

#[test]
fn a_server_that_stops_breaks_connections_and_is_reported() {
    let capture = Capture::new("tcp-dies", 2000, 200_000, 4);
    let server = Running::new(ServerBehaviour { queries: Some(500), ..ServerBehaviour::default() });
    let report = run(&options(&capture, server.address));
    let served = server.end();
    let counts = report.counts();
    assert!(counts.answered <= served.answers && counts.answered > 0, "{counts:?}");
    assert!(counts.connections_broken >= 4 && counts.connections_failed > 0, "{counts:?}");
    assert!(counts.refused > 0, "{counts:?}");
    assert_eq!(counts.sent + counts.unsent, 2000, "{counts:?}");
}

#[test]
fn a_closed_port() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let capture = Capture::new("tcp-nobody", 50, 1_000_000, 1);
    let report = run(&options(&capture, gone));
    let counts = report.counts();
    assert_eq!((counts.sent, counts.unsent), (0, 50));
    assert!(counts.refused > 0 && counts.connections == 0, "{counts:?}");
}

/// Runs against a server that calls `serve` with each connection.
fn against(name: &str, serve: fn(TcpStream)) -> gannet_replay::Counts {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    // The thread ends with the test process.
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten().take(100) {
            std::thread::spawn(move || serve(socket));
        }
    });
    let capture = Capture::new(name, 20, 1_000_000, 2);
    let timeout = Duration::from_millis(300);
    let report = run(&Options { timeout, retries: 1, ..options(&capture, target) });
    assert_eq!(report.counts().sent + report.counts().unsent, 20, "{:?}", report.counts());
    *report.counts()
}

#[test]
fn queries_to_servers_that_close_at_once_are_lost() {
    let counts = against("tcp-shut", drop);
    assert_eq!(counts.answered, 0);
    assert!(counts.connections_broken > 0, "{counts:?}");
}

#[test]
fn queries_to_silent_servers_are_lost() {
    let counts = against("tcp-mute", |_socket| std::thread::sleep(Duration::from_secs(2)));
    assert_eq!((counts.lost, counts.retries, counts.answered), (20, 20, 0));
}

#[test]
fn half_a_message_for_ever_breaks_the_connection() {
    let counts = against("tcp-half", |mut socket| {
        socket.write_all(b"\xff\xffgarbage").unwrap_or_default();
        socket.read_to_end(&mut Vec::new()).unwrap_or_default();
    });
    assert_eq!((counts.lost, counts.answered), (20, 0));
    assert!(counts.connections_broken > 0, "{counts:?}");
}

#[test]
fn without_answers_all_that_was_sent_arrives() {
    let capture = Capture::new("tcp-sink", 1500, 0, 3);
    let server = Running::new(ServerBehaviour::default());
    let timing = Timing::Rate(50_000.0);
    let report = run(&Options { timing, answers: false, ..options(&capture, server.address) });
    std::thread::sleep(Duration::from_millis(100));
    let served = server.end();
    assert_eq!((report.counts().sent, report.counts().unwatched), (1500, 1500));
    assert_eq!(served.queries, 1500);
}
