//! Transports, fragments, clocks, timers, options, and identical logs for all thread counts.

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_filter::Filter;
use gannet_synth::dns;
use gannet_synth::frame;
use gannet_synth::sample;

use super::CLIENT;
use super::Ran;
use super::SERVER;
use super::analyze;
use super::capture;
use super::capture_of;
use super::client;
use super::datagram;
use super::ethernet;
use super::server;
use super::trace;
use crate::Options;
use crate::role::Role;
use crate::shard::Shard;

const WHAT: &str = "id.orig_p id.resp_p proto conn_state orig_bytes resp_bytes history orig_pkts \
                    orig_ip_bytes resp_pkts resp_ip_bytes local_orig local_resp ip_proto";

#[test]
fn a_row_for_every_transport() {
    let mut t = trace();
    t.udp(client(4_000), server(9_000), b"12345");
    t.udp_reply(client(4_000), server(9_000), b"123");
    t.udp(client(4_001), server(9_000), b"1");
    t.ping(CLIENT.into(), SERVER.into(), 1, 2);
    t.push(Interval::from_millis(1), frame::ip(CLIENT.into(), SERVER.into(), 89, 1, &[0; 30]));
    t.exchange(client(4_002), server(9_001), b"hello", b"there!");
    t.refuse(client(4_003), server(9_001));
    let ran = Ran::of(&capture_of(&t));
    let mut rows = ran.rows("conn", WHAT);
    rows.sort();
    assert_eq!(
        rows,
        [
            "0 0 unknown_transport OTH - - - 1 50 0 0 T T 89",
            "4000 9000 udp SF 5 3 Dd 1 33 1 31 T T 17",
            "4001 9000 udp S0 - - D 1 29 0 0 T T 17",
            "4002 9001 tcp SF 5 6 ShADadFf 6 249 4 170 T T 6",
            "4003 9001 tcp REJ 0 0 Sr 1 44 1 40 T T 6",
            "8 0 icmp OTH 56 56 - 1 84 1 84 T T 1",
        ]
    );
    assert_eq!(ran.statistics.connections, 6);
}

#[test]
fn fragments_count_as_their_datagram() {
    let mut whole = datagram(4_000, 9_000, &[7; 100]);
    whole[6] = 0; // fragments are allowed
    let piece = |from: usize, to: usize, more: bool| {
        let mut p = whole[..20].to_vec();
        let len = (20 + to - from) as u16;
        p[2..4].copy_from_slice(&len.to_be_bytes());
        p[6..8].copy_from_slice(&((from / 8) as u16 | u16::from(more) << 13).to_be_bytes());
        p[10..12].fill(0);
        let sum = frame::checksum(&[&p[..20]]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend_from_slice(&whole[20 + from..20 + to]);
        ethernet(0x0800, &p)
    };
    let (first, last) = (piece(0, 64, true), piece(64, 108, false));
    let row = "4000 9000 udp S0 - - D 1 128 0 0 T T 17";
    for frames in [[(0.0, first.clone()), (0.1, last.clone())], [(0.0, last), (0.1, first.clone())]]
    {
        assert_eq!(Ran::of(&capture(LinkType::ETHERNET, &frames)).rows("conn", WHAT), [row]);
    }
    let ran = Ran::of(&capture(LinkType::ETHERNET, &[(0.0, first.clone()), (0.1, first)]));
    assert_eq!(ran.rows("conn", WHAT), [] as [&str; 0]);
    assert_eq!(ran.rows("weird", "id.orig_h name"), ["192.168.0.1 fragment_overlap"]);
}

#[test]
fn datagrams_longer_than_the_length_field_allows() {
    let whole = datagram(4_000, 9_000, &[7; 1_000]);
    let piece = |from: u16, len: u16, more: bool| {
        let mut p = whole[..20].to_vec();
        p[2..4].copy_from_slice(&(20 + len).to_be_bytes());
        p[6..8].copy_from_slice(&((from / 8) | (u16::from(more) << 13)).to_be_bytes());
        p[10..12].fill(0);
        let sum = frame::checksum(&[&p[..20]]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend_from_slice(&whole[20..20 + usize::from(len)]);
        ethernet(0x0800, &p)
    };
    // 65,536 bytes with the header, and a few more, so that the length wraps to 100.
    for (last, conns, odd) in [
        (508, 0, &["excessively_large_fragment", "invalid_IP_header_size"][..]),
        (608, 1, &["excessively_large_fragment"]),
    ] {
        let mut frames: Vec<_> = (0..127).map(|n| (0.0, piece(n * 512, 512, true))).collect();
        frames.push((0.1, piece(127 * 512, last - 16, false)));
        let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
        assert_eq!(ran.rows("conn", WHAT).len(), conns);
        let odd: Vec<_> = odd.iter().map(|n| format!("192.168.0.1 {n}")).collect();
        assert_eq!(ran.rows("weird", "id.orig_h name")[..odd.len()], odd);
    }
}

#[test]
fn bad_checksums_only_count_if_they_are_ignored() {
    let mut bad = frame::udp(client(4_000), server(9_000), 1, b"payload!");
    bad[45] ^= 1;
    let made = capture(LinkType::ETHERNET, &[(0.0, bad)]);
    let ran = Ran::of(&made);
    assert_eq!(ran.rows("conn", "conn_state history orig_pkts"), ["OTH C 0"]);
    assert_eq!(ran.weirds(), ["bad_UDP_checksum"]);
    // One byte after the datagram was not captured: the wire length is one more.
    let mut cut = made.clone();
    cut[24 + 12] += 1;
    assert_eq!(Ran::of(&cut).rows("conn", "conn_state history orig_pkts"), ["S0 D 1"]);
    let ran = analyze(&made, Options { ignore_checksums: true, ..Options::default() }, 1 << 20);
    assert_eq!(ran.rows("conn", "conn_state history orig_pkts"), ["S0 D 1"]);
    assert_eq!(ran.weirds(), [] as [&str; 0]);
}

#[test]
fn truncated_link_layer_padding_is_not_missing() {
    let mut inner = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &datagram(4_000, 9_000, b"x")].concat();
    inner[8 + 28] ^= 1;
    let mut padded = ethernet(inner.len() as u16, &inner);
    padded.resize(60, 0);
    let ran = Ran::of(&capture(LinkType::ETHERNET, &[(0.0, padded)]));
    assert_eq!(ran.weirds(), ["bad_UDP_checksum"]);
}

#[test]
fn local_networks_and_the_filter_are_options() {
    let mut t = trace();
    t.udp(client(4_000), server(9_000), b"1");
    t.udp(client(4_000), server(9_001), b"1");
    let made = capture_of(&t);
    let local = |nets: &[&str]| {
        let nets = nets.iter().map(|n| n.parse().unwrap()).collect();
        let options = Options { local_nets: Some(nets), ..Options::default() };
        analyze(&made, options, 1 << 20).rows("conn", "local_orig local_resp").remove(0)
    };
    assert_eq!(local(&["198.51.100.0/24"]), "F T");
    assert_eq!(local(&["198.51.100.0/24", "192.168.0.0/16"]), "T T");
    assert_eq!(local(&[]), "- -");
    let filter = Some(Filter::parse("port 9001").unwrap());
    let ran = analyze(&made, Options { filter, ..Options::default() }, 1 << 20);
    assert_eq!(ran.rows("conn", "id.resp_p"), ["9001"]);
    assert_eq!((ran.statistics.packets, ran.statistics.filtered), (2, 1));
}

#[test]
fn rows_are_written_when_connections_end() {
    let mut t = trace();
    t.udp(client(1), server(9_000), b"1"); // ends after a minute
    t.exchange(client(2), server(9_001), b"hello", b"there!"); // 5 s after its close
    t.refuse(client(3), server(9_001)); // 5 s after the refusal
    let _ = t.connect(client(4), server(9_001)); // stays to the end
    t.wait(Interval::from_secs(50));
    t.udp(client(5), server(9_000), b"1");
    t.wait(Interval::from_secs(20));
    t.udp(client(6), server(9_000), b"1");
    let ports = Ran::of(&capture_of(&t)).rows("conn", "id.orig_p");
    assert_eq!(ports, ["2", "3", "1", "4", "5", "6"]);
}

#[test]
fn decreasing_times_neither_stop_nor_split_connections() {
    let up = frame::udp(client(4_000), server(9_000), 1, b"1");
    let down = frame::udp(server(9_000), client(4_000), 1, b"12");
    let frames = [(100.0, up.clone()), (40.0, down), (101.0, up.clone())];
    let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
    assert_eq!(ran.rows("conn", "ts duration conn_state"), ["1700000100.000000 1.000000 SF"]);
    // A connection that begins in the past is idle, and ends with the next packet.
    let other = frame::udp(client(4_001), server(9_000), 1, b"1");
    let frames = [(100.0, up.clone()), (10.0, other.clone()), (101.0, up), (102.0, other)];
    let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
    assert_eq!(
        ran.rows("conn", "id.orig_p ts"),
        ["4001 1700000010.000000", "4000 1700000100.000000", "4001 1700000102.000000"]
    );
}

#[test]
fn a_handshake_that_ends_in_the_past_is_idle_since_then() {
    let mut t = trace();
    let _ = t.connect(client(4_000), server(9_001));
    let frames: Vec<_> = t.frames().iter().map(|f| f.bytes.clone()).collect();
    let [syn, syn_ack, ack] = &frames[..] else { panic!("{}", frames.len()) };
    for (past, expected) in [(-100.0, &["ShA 2 1"][..]), (-65_536.0, &["Sh 1 1", "A 1 0"])] {
        let frames = [(100.0, syn.clone()), (past, syn_ack.clone()), (100.1, ack.clone())];
        let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
        assert_eq!(ran.rows("conn", "history orig_pkts resp_pkts"), expected);
    }
}

#[test]
fn same_input_same_bytes() {
    let mut t = sample();
    for port in 1_000..3_000 {
        t.exchange(client(port), server(80), b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 204 No\r\n\r\n");
    }
    let made = capture_of(&t);
    let whole = Ran::of(&made);
    assert!(whole.logs.len() > 3, "{:?}", whole.logs.keys());
    assert_eq!(whole.logs, Ran::of(&made).logs);
    let mut batches = vec![whole.batches];
    for at_a_time in [1_000, 4_099, 30_000] {
        let pieces = analyze(&made, Options::default(), at_a_time);
        assert_eq!(whole.logs, pieces.logs);
        batches.push(pieces.batches);
    }
    batches.dedup();
    assert!(batches.len() > 1, "batches of different sizes: {batches:?}");
    let seeded = analyze(&made, Options { seed: 1, ..Options::default() }, usize::MAX);
    assert_ne!(whole.logs, seeded.logs);
}

/// Passes the frames of a trace to a shard.
fn play(shard: &mut Shard, trace: &gannet_synth::Trace) {
    for (number, f) in (1..).zip(trace.frames()) {
        shard.packet::<true>(&gannet_capture::Packet {
            time: f.time,
            wire_len: f.bytes.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
            format: Format::Pcap,
            number,
            data: &f.bytes,
        });
    }
}

#[test]
fn ended_connections_leave_no_state() {
    let mut t = trace();
    for port in 1_000..2_000 {
        t.exchange(client(port), server(9_001), b"hello", b"there!");
        t.refuse(client(port), server(9_002));
        t.udp(client(port), server(9_000), b"1");
        let question = ("www.example.com", 1);
        t.lookup(client(port), server(53), question, 0, &[(dns::Data::Address(SERVER.into()), 60)]);
    }
    let mut shard = Shard::new(Options::default(), Role::Whole);
    play(&mut shard, &t);
    assert_eq!(shard.connections(), 4_000);
    let before = shard.table.len();
    assert!(before > 1_000);
    let mut late = gannet_synth::Trace::new(t.now() + Interval::from_secs(90), 1);
    late.udp(client(1), server(2), b"1");
    play(&mut shard, &late);
    assert_eq!(shard.table.len(), 1, "all but the one that came last");
    shard.finish().unwrap();
    assert!(shard.table.is_empty());
}

/// The weird of one packet from a file of this format, as in weird.log, and the shard after the
/// packet.
fn weird_of(format: Format, link_type: LinkType, data: &[u8]) -> (Shard, String) {
    let mut shard = Shard::new(Options::default(), Role::Whole);
    shard.packet::<true>(&gannet_capture::Packet {
        time: Time::from_secs(5),
        wire_len: data.len() as u32,
        link_type,
        interface: 0,
        format,
        number: 1,
        data,
    });
    let reported = String::from_utf8(shard.env.logs.pending("weird").to_vec()).unwrap();
    (shard, reported)
}

#[test]
fn an_empty_record_is_no_packet() {
    for (format, name) in
        [(Format::Pcap, "\tempty_pcap_header\t"), (Format::PcapNg, "\tempty_pcapng_header\t")]
    {
        let (shard, reported) = weird_of(format, LinkType::ETHERNET, &[]);
        assert_eq!((shard.now, shard.connections()), (Time::ZERO, 0));
        assert!(reported.contains(name), "{reported}");
    }
}

#[test]
fn within_a_microsecond_no_time_passes() {
    let duration = |nanos| {
        let mut shard = Shard::new(Options::default(), Role::Whole);
        for (number, at) in (1..).zip([5_000_000_100, nanos]) {
            let data = &frame::udp(client(4_000), server(9_000), 1, b"12345");
            shard.packet::<true>(&gannet_capture::Packet {
                time: Time::from_nanos(at),
                wire_len: data.len() as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
                format: Format::Pcap,
                number,
                data,
            });
        }
        let mut closing = shard.begin_close();
        while shard.close_next(&mut closing) {}
        let rows = String::from_utf8(shard.env.logs.pending("conn").to_vec()).unwrap();
        rows.lines().last().unwrap().split('\t').skip(8).take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(duration(5_000_000_900), "- - -");
    assert_eq!(duration(5_000_001_000), "0.000001 10 0");
}

#[test]
fn unknown_protocols_are_reported_with_the_layer_before_them() {
    let tree = ethernet(7, &[0x42, 0x42, 3, 0, 0, 0, 0]);
    let discovery = ethernet(9, &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0, 2]);
    let tunnel = frame::udp(client(4_000), server(6_081), 1, b"\0\0\x88\xcc\0\0\0\0in");
    let framed =
        [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(7, &[0x43, 0x43, 3, 0, 0, 0, 0])].concat();
    let framed = frame::udp(client(4_000), server(4_789), 1, &framed);
    let frames: Vec<_> = [tree, discovery, tunnel, framed]
        .map(|mut f| {
            f.resize(f.len().max(60), 0);
            (0.0, f)
        })
        .to_vec();
    let selection = gannet_log::Selection::of(["unknown_protocols"]);
    let logs = gannet_log::Options { selection, ..gannet_log::Options::default() };
    let options = Options { logs, ..Options::default() };
    let ran = analyze(&capture(LinkType::ETHERNET, &frames), options, usize::MAX);
    assert_eq!(
        ran.rows("unknown_protocols", "analyzer protocol_id first_bytes analyzer_history"),
        [
            "LLC 0x42 42420300000000 ETHERNET,LLC",
            "SNAP 0xc2000 02 ETHERNET,SNAP",
            "GENEVE 0x88cc 696e ETHERNET,IP,UDP,GENEVE",
            "LLC 0x43 43430300000000 ETHERNET,IP,UDP,VXLAN,ETHERNET,LLC"
        ]
    );
}

#[test]
fn only_pcap_is_read_through_a_filter() {
    // An 802.11 data frame that ends after its header.
    let frame = [&[8, 0][..], &[0; 22]].concat();
    let reported = |format| weird_of(format, LinkType(105), &frame).1;
    assert_eq!(reported(Format::Pcap), "");
    assert!(reported(Format::PcapNg).contains("\ttruncated_802_11_header\t"));
}

#[test]
fn fragmented_options_are_checked() {
    // Destination options whose second option exceeds their end, and an unknown protocol.
    let whole = [&[253, 0, 1, 0, 5, 9, 0, 0][..], b"anything"].concat();
    let piece = |at: usize, more: u8| {
        let head = [0x60, 0, 0, 0, 0, 16, 44, 64];
        let fragment = [60, 0, 0, at as u8 | more, 0, 0, 0, 7];
        let ip = [&head[..], &[1; 16], &[2; 16], &fragment, &whole[at..at + 8]].concat();
        ethernet(0x86dd, &ip)
    };
    let frames = [(0.0, piece(0, 1)), (0.1, piece(8, 0))];
    let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
    assert_eq!(
        ran.rows("weird", "name source"),
        ["excessively_small_fragment -", "bad_ipv6_dest_opt_len -"]
    );
    assert_eq!(ran.rows("conn", "proto ip_proto"), ["unknown_transport 253"]);
}

#[test]
fn a_fragmented_fragment_header_is_skipped() {
    // A second fragment header, for the middle of a datagram, and its payload.
    let whole = [&[253, 0, 1, 1, 0, 0, 0, 9][..], b"anything"].concat();
    let piece = |at: usize, more: u8| {
        let head = [0x60, 0, 0, 0, 0, 16, 44, 64];
        let fragment = [44, 0, 0, at as u8 | more, 0, 0, 0, 7];
        let ip = [&head[..], &[1; 16], &[2; 16], &fragment, &whole[at..at + 8]].concat();
        ethernet(0x86dd, &ip)
    };
    let frames = [(0.0, piece(0, 1)), (0.1, piece(8, 0))];
    let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
    assert_eq!(ran.rows("conn", "proto ip_proto orig_ip_bytes"), ["unknown_transport 253 56"]);
}

#[test]
fn violations_are_counted() {
    let reported = |violations: usize| {
        // An unknown version, long enough that no later failure disables the analyzer.
        let mut known = b"\x30\x03\x02\x01\x09".to_vec();
        known.resize(1300, 0);
        let unknown = std::iter::repeat_n(&b"x"[..], violations);
        let frames: Vec<_> = std::iter::repeat_n(&known[..], 8)
            .chain(unknown)
            .zip(0..)
            .map(|(data, i)| (f64::from(i) / 1e3, frame::udp(client(9999), server(161), 1, data)))
            .collect();
        Ran::of(&capture(LinkType::ETHERNET, &frames)).rows("weird", "name source")
    };
    assert!(reported(1000).is_empty());
    assert_eq!(reported(1002), ["too_many_analyzer_violations SNMP"]);
}

/// OCSP responses above the limit of 1 MiB: every file has a row, and weird.log has one row with
/// the name.
#[test]
fn messages_that_are_too_long_are_reported_in_any_number_of_threads() {
    // The object identifier that marks content as an OCSP response.
    let mut begin = [b'0'; 1024];
    begin[11..22].copy_from_slice(b"\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x01");
    let of = |body: usize| {
        let mut trace = trace();
        for port in 1..=10 {
            let mut tcp = trace.connect(client(port), server(80));
            tcp.send(b"GET / HTTP/1.0\r\n\r\n");
            tcp.reply(format!("HTTP/1.0 200 OK\r\nContent-Length: {body}\r\n\r\n").as_bytes());
            tcp.reply(&begin);
            (1..body / 1024).for_each(|_| tcp.reply(&[b'0'; 1024]));
            tcp.close();
        }
        capture_of(&trace)
    };
    for (body, weird) in [
        (1 << 20, "openssl_ocsp_response_parse_error"),
        ((1 << 20) + 1024, "file_message_too_long"),
    ] {
        let capture = of(body);
        for threads in [1, 2, 7] {
            let options = Options { threads, ..Options::default() };
            let ran = analyze(&capture, options, usize::MAX);
            let rows = ran.rows("files", "seen_bytes analyzers");
            assert_eq!(rows, vec![format!("{body} OCSP_REPLY"); 10], "-t {threads}");
            assert_eq!(ran.weirds(), [weird], "-t {threads}");
        }
    }
}
