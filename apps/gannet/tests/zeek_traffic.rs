//! `gannet zeek -r`: scripts that ask for the state of the analysis, and that steer it. What they print is what Zeek
//! prints with the same handlers.

// A panic in a helper is a test's report.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_synth::Trace;
use gannet_synth::frame;

use crate::support::Scratch;
use crate::zeek::over_connection;
use crate::zeek::over_trace;

/// An end of a connection.
fn end(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// Three echo requests and their replies, with a second between them.
fn pings() -> Trace {
    let host = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for seq in 1..=3 {
        trace.ping(host(1), host(2), 7, seq);
        trace.wait(Interval::from_secs(1));
    }
    trace
}

/// What a script prints over a trace without a message.
fn printed(trace: &Trace, code: &str) -> String {
    let (printed, errors, status) = over_trace(trace, code);
    assert_eq!((errors.as_str(), status), ("", Some(0)));
    printed
}

#[test]
fn analyzers_that_signatures_of_headers_start_read_the_first_datagram() {
    let s = Scratch::new("traffic-signatures");
    let file =
        s.file("own.sig", b"signature own { ip-proto == udp dst-port == 9999 enable \"dns\" }");
    let code = format!(
        "
        @load-sigs {}
        type dns_msg: record {{ id: count; }};
        global dns_message: event(c: connection, is_orig: bool, msg: dns_msg, len: count);
        event dns_message(c: connection, is_orig: bool, msg: dns_msg, len: count) {{ print msg$id, is_orig; }}
        ",
        file.display()
    );
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for id in [1, 2] {
        let query = gannet_synth::dns::query(id, "a.example", 1);
        trace.udp(end(1, 4_000), end(2, 9_999), &query);
    }
    assert_eq!(printed(&trace, &code), "1, T\n2, T\n");
}

#[test]
fn signatures_of_states_alone_match_with_the_segment_that_brings_the_state() {
    let s = Scratch::new("traffic-states");
    let file = s.file(
        "own.sig",
        b"signature both { tcp-state established event \"both\" }\n\
          signature server { tcp-state established,responder event \"server\" }",
    );
    let code = format!(
        "
        @load-sigs {}
        type signature_state: record {{ sig_id: string; conn: connection; is_orig: bool; payload_size: count; }};
        global signature_match: event(state: signature_state, msg: string, data: string);
        global packets = 0;
        global tcp_packet: event(c: connection, is_orig: bool, flags: string, seq: count, ack: count, len: count, payload: string);
        event tcp_packet(c: connection, is_orig: bool, flags: string, seq: count, ack: count, len: count, payload: string)
            {{ ++packets; }}
        event signature_match(state: signature_state, msg: string, data: string) {{ print packets, msg, state$is_orig; }}
        ",
        file.display()
    );
    // The second segment, SYN and ACK, establishes both sides. The first one did not match.
    let printed = over_connection(80, &[(true, b"one")], &code);
    assert_eq!(printed, "2, server, F\n2, both, F\n");
}

#[test]
fn events_do_not_wait_for_analyzers_that_have_nothing_to_read() {
    let s = Scratch::new("traffic-starts");
    let file = s.file("own.sig", b"signature own { ip-proto == tcp enable \"ftp\" event \"own\" }");
    let code = format!(
        "
        @load-sigs {}
        type signature_state: record {{ sig_id: string; conn: connection; is_orig: bool; payload_size: count; }};
        global signature_match: event(state: signature_state, msg: string, data: string);
        event signature_match(state: signature_state, msg: string, data: string) {{ print network_time(), state$is_orig; }}
        ",
        file.display()
    );
    let printed = over_connection(80, &[], &code);
    assert!(printed.starts_with("1000.00015, T\n"), "{printed}");
}

#[test]
fn a_connection_that_is_looked_up_is_up_to_date() {
    let code = "
        global lookup_connection: function(cid: conn_id): connection;
        event new_connection(c: connection)
            {
            print c$orig$num_pkts;
            lookup_connection(c$id);
            print c$orig$num_pkts;
            }
        ";
    assert_eq!(over_connection(80, &[], code), "0\n1\n");
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.udp(end(1, 4_000), end(2, 9_999), b"x");
    assert_eq!(printed(&trace, code), "0\n1\n");
    assert_eq!(printed(&pings(), code), "0\n1\n");
}

#[test]
fn thresholds_of_echo_requests_are_crossed() {
    let code = "
        global set_current_conn_packets_threshold: function(cid: conn_id, threshold: count, is_orig: bool): bool;
        global set_current_conn_bytes_threshold: function(cid: conn_id, threshold: count, is_orig: bool): bool;
        global set_current_conn_duration_threshold: function(cid: conn_id, threshold: interval): bool;
        global conn_packets_threshold_crossed: event(c: connection, threshold: count, is_orig: bool);
        global conn_bytes_threshold_crossed: event(c: connection, threshold: count, is_orig: bool);
        global conn_duration_threshold_crossed: event(c: connection, threshold: interval, is_orig: bool);
        event new_connection(c: connection)
            {
            print set_current_conn_packets_threshold(c$id, 2, T), set_current_conn_bytes_threshold(c$id, 1, F);
            print set_current_conn_duration_threshold(c$id, 2sec);
            }
        event conn_packets_threshold_crossed(c: connection, threshold: count, is_orig: bool) { print \"packets\", threshold; }
        event conn_bytes_threshold_crossed(c: connection, threshold: count, is_orig: bool) { print \"bytes\", is_orig; }
        event conn_duration_threshold_crossed(c: connection, threshold: interval, is_orig: bool) { print threshold, is_orig; }
        ";
    assert_eq!(printed(&pings(), code), "T, T\nT\nbytes, F\npackets, 2\n2.0 secs, T\n");
}

#[test]
fn only_streams_of_tcp_are_written_to_files() {
    let code = "
        global set_contents_file: function(cid: conn_id, direction: count, f: file): bool;
        global get_contents_file: function(cid: conn_id, direction: count): file;
        event new_connection(c: connection)
            {
            if ( c$id$resp_p != 80/tcp )
                print set_contents_file(c$id, 3, open(\"/dev/stdout\"));
            print get_contents_file(c$id, 1), \"to standard error\";
            }
        ";
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.udp(end(1, 4_000), end(2, 9_999), b"x");
    let (printed, errors, status) = over_trace(&trace, code);
    assert_eq!((printed.as_str(), status), ("T\n", Some(0)));
    let no_stream = "error: analyzer type does not support writing to a contents file\n";
    assert_eq!(errors.matches(no_stream).count(), 2, "{errors}");
    assert!(errors.contains("no contents file for given direction"), "{errors}");
    assert!(errors.ends_with("to standard error\n"), "{errors}");
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.connect(end(1, 4_000), end(2, 80)).close();
    let (_, errors, _) = over_trace(&trace, code);
    assert!(errors.contains("no contents file for given direction"), "{errors}");
    assert!(!errors.contains(no_stream), "{errors}");
}

#[test]
fn a_packet_that_is_not_processed_is_reported_before_its_headers() {
    let code = "
        type pcap_packet: record { len: count; };
        type raw_pkt_hdr: record { l2: count &optional; };
        global packet_not_processed: event(pkt: pcap_packet);
        global raw_packet: event(p: raw_pkt_hdr);
        event packet_not_processed(pkt: pcap_packet) { print \"not processed\", pkt$len; }
        event raw_packet(p: raw_pkt_hdr) { print \"raw\"; }
        ";
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    for _ in 0..2 {
        trace.push(Interval::from_secs(1), frame::ethernet([2; 6], [4; 6], 0x1234, b"payload"));
    }
    assert_eq!(printed(&trace, code), "not processed, 60\nraw\nnot processed, 60\nraw\n");
}

#[test]
fn connections_that_end_with_the_capture_are_known_without_their_analyzers() {
    let code = "
        global connection_exists: function(cid: conn_id): bool;
        global lookup_connection: function(cid: conn_id): connection;
        global get_orig_seq: function(cid: conn_id): count;
        global get_current_conn_bytes_threshold: function(cid: conn_id, is_orig: bool): count;
        event connection_state_remove(c: connection)
            {
            print connection_exists(c$id);
            if ( connection_exists(c$id) )
                print lookup_connection(c$id)$uid == c$uid, get_orig_seq(c$id), get_current_conn_bytes_threshold(c$id, T);
            }
        ";
    let mut trace = Trace::new(Time::from_secs(1_000), 1);
    trace.connect(end(1, 4_000), end(2, 80)).close();
    let (printed, errors, _) = over_trace(&trace, code);
    assert_eq!(printed, "T\nT, 0, 0\n", "{errors}");
    assert!(errors.contains("error: connection does not have TCP analyzer"), "{errors}");
    assert!(errors.contains("error: connection does not have ConnSize analyzer"), "{errors}");
    // One that ends before is not.
    trace.wait(Interval::from_secs(3_600));
    trace.udp(end(3, 4_000), end(4, 9_999), b"x");
    let (printed, ..) = over_trace(&trace, code);
    assert_eq!(printed, "F\nT\nT, 0, 0\n");
}
