use gannet_base::Interval;
use gannet_synth::Trace;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::Options;
use crate::tests::analyze;
use crate::tests::capture_of;

fn limited(name: &str, value: u64) -> Options {
    let mut limits = Limits::default();
    assert!(limits.set(name, value));
    Options { limits, ..Options::default() }
}

/// Two web pages over connections that stay open, then SYNs, then further data of both connections.
fn pages_and_syns(syns: u16) -> Vec<u8> {
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.delays(Interval::from_micros(1), Interval::from_micros(1));
    let server = "198.51.100.1:80".parse().unwrap();
    let page = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let mut trace = {
        let mut tcp = trace.connect("192.0.2.1:4000".parse().unwrap(), server);
        tcp.send(page);
        tcp.reply(reply);
        trace
    };
    for n in 0..syns {
        let client = std::net::SocketAddr::from(([192, 0, 2, 9], 1_000 + n));
        trace.knock(client, server);
    }
    trace.exchange("192.0.2.2:4000".parse().unwrap(), server, page, reply);
    capture_of(&trace)
}

#[test]
fn half_open_connections_are_evicted_first_and_all_have_rows() {
    let capture = pages_and_syns(500);
    let free = analyze(&capture, Options::default(), usize::MAX);
    let tight = analyze(&capture, limited("connections", 20), usize::MAX);
    let state = tight.statistics.state;
    assert!(state.ended_early[0] > 450 && state.ended_early[1] == 0, "{state:?}");
    assert_eq!(state.connections, 21);
    let sorted = |ran: &crate::tests::Ran| {
        let mut rows = ran.rows("conn", "uid conn_state history orig_bytes service");
        rows.sort();
        rows
    };
    assert_eq!(sorted(&free).len(), 502);
    assert_eq!(sorted(&free), sorted(&tight));
    assert_eq!(tight.weirds(), ["connections_limit_reached"]);
    assert!(free.weirds().is_empty());
}

#[test]
fn idle_connections_are_evicted_before_busy_and_new_ones() {
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let server = "198.51.100.1:7".parse().unwrap();
    let client = |n: u16| std::net::SocketAddr::from(([192, 0, 2, 1], n));
    for n in 1..=3 {
        trace.udp(client(n), server, b"?");
        trace.udp_reply(client(n), server, b"!");
    }
    // The oldest connection is the most active one.
    trace.udp(client(1), server, b"?");
    // All connections are established, and new ones become established as well.
    for n in 4..=5 {
        trace.udp(client(n), server, b"?");
        trace.udp_reply(client(n), server, b"!");
    }
    trace.udp(client(1), server, b"?");
    let ran = analyze(&capture_of(&trace), limited("connections", 3), usize::MAX);
    assert_eq!(ran.rows("conn", "id.orig_p orig_pkts"), ["2 1", "3 1", "1 3", "4 1", "5 1"]);
    assert_eq!(ran.statistics.state.ended_early, [0, 2]);
}

#[test]
fn memory_usage_is_that_of_the_callback() {
    static IN_USE: AtomicU64 = AtomicU64::new(0);
    let options = Options {
        // Each check reports more bytes: some exceed the limit.
        memory: Some(|| IN_USE.fetch_add(1_000_000, Relaxed) % 100_000_000),
        ..limited("state", 90_000_000)
    };
    let ran = analyze(&pages_and_syns(500), options, usize::MAX);
    assert!(ran.statistics.state.ended_early[0] > 10, "{:?}", ran.statistics.state);
    assert_eq!(ran.rows("conn", "uid").len(), 502);
    assert_eq!(ran.weirds(), ["state_limit_reached"]);
    assert!(ran.statistics.state.to_string().contains("half-open connections"));
}

#[test]
fn the_oldest_hole_is_skipped() {
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let server = "198.51.100.1:80".parse().unwrap();
    for n in 1..=4 {
        let mut tcp = trace.connect(std::net::SocketAddr::from(([192, 0, 2, 1], n)), server);
        tcp.lose(100);
        tcp.send_unacknowledged(&[b'x'; 1_000]);
        // The same amount of data of other hosts does not count for this pair.
        let other = std::net::SocketAddr::from(([192, 0, 2, 1 + n as u8], 4_000));
        let mut tcp = trace.connect(other, server);
        tcp.lose(100);
        tcp.send_unacknowledged(&[b'x'; 1_000]);
    }
    trace.udp("192.0.2.9:5000".parse().unwrap(), server, b"?");
    let capture = capture_of(&trace);
    let tight = analyze(&capture, limited("reassembly", 3_500), usize::MAX);
    assert_eq!(tight.statistics.state.holes_given_up, 1);
    assert_eq!(tight.weirds(), ["reassembly_limit_reached"]);
    let mut missed = tight.rows("conn", "id.orig_p missed_bytes");
    missed.sort();
    assert_eq!(
        missed,
        ["1 100", "2 0", "3 0", "4 0", "4000 0", "4000 0", "4000 0", "4000 0", "5000 0"]
    );
    let free = analyze(&capture, Options::default(), usize::MAX);
    assert_eq!(free.rows("conn", "missed_bytes"), ["0"; 9]);
    assert_eq!(free.statistics.state.reassembly, 8 * (1_000 + 48));
    // A fraction of the state limit is shared by all pairs.
    let limits = Limits { state: 4 * 8_000, ..Limits::default() };
    let state = Options { memory: Some(|| 0), limits, ..Options::default() };
    let tight = analyze(&capture, state, usize::MAX);
    assert_eq!(tight.statistics.state.holes_given_up, 1);
}

#[test]
fn fragments_tunnels_and_requests_have_their_limits() {
    let (src, dst) = ("192.0.2.1".parse().unwrap(), "198.51.100.1".parse().unwrap());
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for n in 0..10 {
        trace.push(
            Interval::from_micros(1),
            gannet_synth::frame::first_fragment(src, dst, n, &[0; 64]),
        );
    }
    let ran = analyze(&capture_of(&trace), limited("datagrams", 4), usize::MAX);
    assert_eq!(ran.statistics.state.fragments_given_up, 6);

    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    let mut tcp =
        trace.connect("192.0.2.1:4000".parse().unwrap(), "198.51.100.1:80".parse().unwrap());
    for _ in 0..8 {
        tcp.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let ran = analyze(&capture_of(&trace), limited("pending-http", 4), usize::MAX);
    assert_eq!(ran.weirds(), ["HTTP_excessive_pipelining"]);
    let ran = analyze(&capture_of(&trace), Options::default(), usize::MAX);
    assert!(ran.weirds().is_empty());
}
