//! At every limit the logs are identical for any number of threads, and report that the limit was
//! reached.
// Clippy allows unwrap in test functions, but not in their helper functions.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_engine::Limits;
use gannet_engine::Options;
use gannet_synth::Trace;
use gannet_synth::dns;
use gannet_synth::frame;
use gannet_synth::traffic;
use gannet_synth::traffic::long::Dialogue;
use support::analyze;
use support::column;
use support::difference;

/// Numbers of threads, each with the number of packets in a batch.
const CONFIGS: [(usize, usize); 4] = [(1, 3), (2, usize::MAX), (2, 1), (7, 50)];

/// A value of each limit that the traffic of this test exceeds.
fn tight(name: &str) -> u64 {
    match name {
        "state" => 50_000_000,
        "connections" => 20,
        "reassembly" => 3_500,
        "reassembly-stream" => 2_000,
        "reassembly-hole" => 1_500,
        "fragments" => 500,
        "tunnel-depth" | "pending-sip" => 1,
        _ => 2,
    }
}

/// Number of host pairs with the same traffic, each a little later than the previous one.
const PAIRS: u8 = 5;

fn ends(pair: u8, ports: (u16, u16)) -> (SocketAddr, SocketAddr) {
    let host = |net| std::net::IpAddr::from([10, 0, net, 1 + pair]);
    (SocketAddr::new(host(1), ports.0), SocketAddr::new(host(2), ports.1))
}

/// Traffic that fills every table and never completes.
fn crowded() -> Trace {
    let start = Time::from_secs(1_700_000_000);
    let mut traces = vec![traffic::mixed(300, 3)];
    for pair in 0..PAIRS {
        let mut trace = Trace::new(start, u64::from(pair));
        trace.wait(Interval::from_micros(137 * i64::from(pair)));
        lines(&mut trace, pair);
        datagrams(&mut trace, pair);
        pieces(&mut trace, pair);
        binary(&mut trace, pair);
        files_and_holes(&mut trace, pair);
        traces.push(trace);
        for (at, dialogue) in Dialogue::ALL.into_iter().enumerate() {
            let mut trace = Trace::new(start, at as u64);
            trace.wait(Interval::from_micros(1_000 * i64::from(pair) + 31 * at as i64));
            let ends = ends(pair, (50_000 + at as u16, dialogue.port()));
            dialogue.play(&mut trace, ends, 20, Interval::from_millis(3));
            traces.push(trace);
        }
    }
    Trace::merge(start, traces)
}

/// Requests of line-based protocols, sent without waiting for replies.
fn lines(trace: &mut Trace, pair: u8) {
    let mut sent = |port: u16, greeting: &str, line: &str| {
        let ends = ends(pair, (30_000 + port, port));
        let mut tcp = trace.connect(ends.0, ends.1);
        if !greeting.is_empty() {
            tcp.reply(greeting.as_bytes());
        }
        for _ in 0..12 {
            tcp.send(line.as_bytes());
        }
    };
    sent(80, "", "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    sent(21, "220 ready\r\n", "RETR a\r\n");
    sent(25, "220 ready ESMTP\r\n", "NOOP\r\n");
    let (client, server) = ends(pair, (30_110, 110));
    let mut tcp = trace.connect(client, server);
    tcp.reply(b"+OK ready\r\n");
    tcp.send(b"USER a\r\n");
    tcp.reply(b"+OK\r\n");
    for _ in 0..12 {
        tcp.send(b"STAT\r\n");
    }
}

/// Requests in datagrams, without replies.
fn datagrams(trace: &mut Trace, pair: u8) {
    let (client, server) = ends(pair, (30_053, 53));
    for id in 0..8 {
        trace.udp(client, server, &dns::query(id, "a.example.com", dns::A));
    }
    let (client, server) = ends(pair, (5_060, 5_060));
    // The reply comes in the middle of the request, whose remaining part then counts as another
    // request.
    trace.udp(client, server, b"OPTIONS sip:u SIP/2.0\r\nCall-ID: 1\r\n");
    trace.udp_reply(client, server, b"SIP/2.0 200 OK\r\nCSeq: 1 OPTIONS\r\n\r\n");
    trace.udp(client, server, b"CSeq: 1 OPTIONS\r\n");
    trace.udp_reply(client, server, b"SIP/2.0 200 OK\r\nCSeq: 1 OPTIONS\r\n\r\n");
    let (client, server) = ends(pair, (68, 67));
    for id in 0..8 {
        let mut b = vec![1, 1, 6, 0, 9, 9, pair, id];
        b.resize(236, 0);
        b.extend_from_slice(&[99, 130, 83, 99, 53, 1, 1, 255]);
        trace.udp(client, server, &b);
    }
}

/// Datagrams of which only the first fragment arrives, and nested tunnels.
fn pieces(trace: &mut Trace, pair: u8) {
    let (src, dst) = ([10, 0, 1, 1 + pair].into(), [10, 0, 2, 1 + pair].into());
    for id in 0..10 {
        trace.push(Interval::from_micros(1), frame::first_fragment(src, dst, id, &[0; 64]));
    }
    let (client, server) = ends(pair, (1_000, 7));
    let inner = frame::udp(client, server, 1, b"inside")[14..].to_vec();
    let encapsulation = |inner: &[u8]| frame::ipv4(src, dst, 4, 7, inner);
    let packet = encapsulation(&encapsulation(&encapsulation(&inner)));
    let mac = frame::mac(src.into());
    trace.push(Interval::from_micros(1), frame::ethernet(mac, mac, 0x0800, &packet));
}

/// Requests of binary protocols, sent without waiting for replies.
fn binary(trace: &mut Trace, pair: u8) {
    let (client, server) = ends(pair, (31_883, 1_883));
    let mut tcp = trace.connect(client, server);
    tcp.send(b"\x10\x0e\0\x04MQTT\x04\x02\0\x3c\0\x02me");
    tcp.reply(b"\x20\x02\0\0");
    for id in 1..8 {
        tcp.send(&[0x32, 6, 0, 1, b't', 0, id, b'x']);
    }
    let (client, server) = ends(pair, (30_389, 389));
    let mut tcp = trace.connect(client, server);
    for id in 1..8 {
        tcp.send(&[0x30, 12, 2, 1, id, 0x60, 7, 2, 1, 3, 4, 0, 0x80, 0]);
    }
    let (client, server) = ends(pair, (30_445, 445));
    let mut tcp = trace.connect(client, server);
    for id in 1..8 {
        let mut read = b"\0\0\0\x71\xfeSMB\x40\0\0\0\0\0\0\0\x08\0\x01\0\0\0\0\0\0\0\0\0".to_vec();
        read.push(id);
        read.resize(4 + 64, 0);
        read.extend_from_slice(&[49, 0, 80, 0, 5, 0, 0, 0]);
        read.resize(4 + 64 + 49, 0);
        tcp.send(&read);
    }
    let (client, server) = ends(pair, (30_135, 135));
    let mut tcp = trace.connect(client, server);
    for call in 0..8 {
        // First fragments.
        tcp.send(&[
            5, 0, 0, 1, 16, 0, 0, 0, 28, 0, 0, 0, call, 0, 0, 0, 4, 0, 0, 0, 0, 0, 9, 0, 1, 2, 3, 4,
        ]);
    }
}

/// Incomplete files, and data above holes.
fn files_and_holes(trace: &mut Trace, pair: u8) {
    for n in 0..6 {
        let (client, server) = ends(pair, (20_000 + n, 80));
        let mut tcp = trace.connect(client, server);
        tcp.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        tcp.reply(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning");
        let (client, server) = ends(pair, (21_000 + n, 80));
        let mut tcp = trace.connect(client, server);
        tcp.lose(100);
        tcp.send_unacknowledged(&[b'x'; 1_000]);
        tcp.send_unacknowledged(&[b'y'; 1_000]);
    }
}

/// The memory usage that an allocator would report: it grows with each check.
fn memory() -> u64 {
    thread_local!(static IN_USE: AtomicU64 = const { AtomicU64::new(0) });
    IN_USE.with(|n| n.fetch_add(1_000_000, Relaxed) % 60_000_000)
}

#[test]
fn at_every_limit_logs_are_equal_for_all_thread_counts_and_report_it() {
    let own = std::env::temp_dir().join(format!("gannet-limits-{}", std::process::id()));
    let out = own.join("logs");
    fs::create_dir_all(&out).unwrap();
    let capture = own.join("crowded.pcap");
    support::write(&crowded(), &capture);
    let mut wrong = Vec::new();
    for limit in Limits::all() {
        let mut options = Options::default();
        assert!(options.limits.set(limit.name, tight(limit.name)));
        if limit.name == "state" {
            // Each analysis starts from the same value.
            options.memory = Some(memory);
        }
        // Each run has its own thread, so that its memory usage starts from zero.
        let run = |config| {
            std::thread::scope(|s| {
                s.spawn(|| analyze(&capture, &out, &options, config).unwrap()).join().unwrap()
            })
        };
        let single = run((1, usize::MAX));
        for config in CONFIGS {
            let difference = difference(&single, &run(config));
            wrong.extend(difference.map(|d| format!("{} {config:?}: {d}", limit.name)));
        }
        let weirds = column(&single, "weird", "name");
        let is_reported = match limit.reported_by {
            "fragments given up" => true,
            "rows without a reply" => {
                column(&single, "dns", "rcode").iter().any(|code| code == "-")
            }
            // Some names get a suffix for tunnels.
            name => weirds.iter().any(|w| w.starts_with(name)),
        };
        if !is_reported {
            wrong.push(format!("{}: no {}", limit.name, limit.reported_by));
        }
    }
    fs::remove_dir_all(&own).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
