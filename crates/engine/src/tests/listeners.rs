//! Events that a listener receives.

use gannet_event::Interest;
use gannet_event::Listener;
use gannet_event::Raised;
use gannet_event::ThreadAffinity;

use super::*;

/// Records events as JSON.
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Listener for Recorder {
    fn affinity(&self) -> ThreadAffinity {
        ThreadAffinity::Anywhere
    }

    fn event(&mut self, event: &Raised<'_>) {
        let mut line = Vec::new();
        gannet_event::write_json(&mut line, event);
        self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
    }
}

/// Runs the default analysis of a capture and returns the JSON of the named events from the text
/// `from` on.
fn events_of(
    capture: &[u8],
    options: Options,
    names: &[&str],
    from: &str,
) -> (Vec<String>, Statistics) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let statistics = analyze_with(capture, options, names, Box::new(Recorder(lines.clone())));
    let lines = lines.lock().unwrap();
    let cut = |line: &String| line[line.find(from).unwrap_or(0)..].to_owned();
    (lines.iter().map(cut).collect(), statistics)
}

/// Analyzes a capture and passes the named events to a listener.
fn analyze_with(
    capture: &[u8],
    options: Options,
    names: &[&str],
    listener: Box<dyn Listener>,
) -> Statistics {
    let interest = Interest::of(gannet_protocols::events::all(), |d| names.contains(&d.name));
    let mut engine = Engine::with_listener(options, interest, listener);
    let source = io::Cursor::new(capture.to_vec());
    let mut reader = Reader::from_read(Box::new(source), "made.pcap").unwrap();
    while let Some(batch) = reader.next_batch().unwrap() {
        engine.batch(&batch).unwrap();
    }
    engine.finish().unwrap().0
}

#[test]
fn flow_labels_that_change() {
    let labelled = |label: u32, is_orig: bool| {
        let hosts: [SocketAddr; 2] =
            ["[2001:db8::1]:4000", "[2001:db8::2]:4001"].map(|host| host.parse().unwrap());
        let (from, to) = if is_orig { (hosts[0], hosts[1]) } else { (hosts[1], hosts[0]) };
        let mut frame = frame::udp(from, to, 1, b"x");
        frame[14..18].copy_from_slice(&(0x6000_0000 | label).to_be_bytes());
        frame
    };
    let frames = [
        (0.0, labelled(0x12345, true)),
        (0.1, labelled(7, false)),
        (0.2, labelled(0x12345, true)),
        (0.3, labelled(0xfffff, true)),
        (0.4, labelled(0, false)),
    ];
    let capture = capture(LinkType::ETHERNET, &frames);
    let (removed, _) =
        events_of(&capture, Options::default(), &["connection_state_remove"], "\"flow_label\"");
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert!(removed[0].contains(r#""flow_label":1048575"#), "{removed:?}");
    let names = &["connection_flow_label_changed"];
    let (got, _) = events_of(&capture, Options::default(), names, "\"is_orig\"");
    assert_eq!(
        got,
        [
            r#""is_orig":true,"old_label":74565,"new_label":1048575}}"#,
            r#""is_orig":false,"old_label":7,"new_label":0}}"#
        ]
    );
}

#[test]
fn the_headers_of_a_reassembled_datagram_have_the_flags_of_the_first_fragment() {
    let whole = datagram(4_000, 9_000, &[7; 100]);
    let piece = |from: usize, to: usize, more: bool| {
        let mut p = whole[..20].to_vec();
        p[2..4].copy_from_slice(&((20 + to - from) as u16).to_be_bytes());
        p[6..8].copy_from_slice(&((from / 8) as u16 | u16::from(more) << 13).to_be_bytes());
        p[10..12].fill(0);
        let sum = frame::checksum(&[&p[..20]]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend_from_slice(&whole[20 + from..20 + to]);
        ethernet(0x0800, &p)
    };
    let frames =
        [(0.0, piece(0, 64, true)), (0.1, piece(64, 108, false)), (0.2, ethernet(0x0800, &whole))];
    let capture = capture(LinkType::ETHERNET, &frames);
    let (packets, _) = events_of(&capture, Options::default(), &["new_packet"], "\"ip\"");
    assert_eq!(packets.len(), 2, "{packets:?}");
    assert!(packets[0].contains(r#""len":128"#) && packets[0].contains(r#""MF":true"#));
    assert!(packets[0].contains(r#""ulen":108"#) && packets[1].contains(r#""MF":false"#));
    let (frames, _) = events_of(&capture, Options::default(), &["raw_packet"], "\"len\"");
    assert_eq!(frames.len(), 3, "{frames:?}");
    // The event of the first frame shows its own header, that of the second frame the reassembled
    // datagram.
    assert!(frames[0].starts_with(r#""len":98,"cap_len":98"#), "{frames:?}");
    assert!(frames[1].starts_with(r#""len":142,"cap_len":78"#), "{frames:?}");
    assert!(frames[1].contains(r#""MF":true,"offset":0"#), "{frames:?}");
    assert!(frames[2].starts_with(r#""len":142,"cap_len":142"#), "{frames:?}");
}

/// A datagram in two fragments.
fn fragments(whole: &[u8], at: usize) -> [Vec<u8>; 2] {
    [(0, at, 0x2000), (at, whole.len() - 20, 0)].map(|(from, to, more)| {
        let mut p = whole[..20].to_vec();
        p[2..4].copy_from_slice(&((20 + to - from) as u16).to_be_bytes());
        p[6..8].copy_from_slice(&((from / 8) as u16 | more).to_be_bytes());
        p[10..12].fill(0);
        let sum = frame::checksum(&[&p[..20]]);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend_from_slice(&whole[20 + from..20 + to]);
        ethernet(0x0800, &p)
    })
}

#[test]
fn fragments_and_tunnels_have_equal_events_with_any_number_of_threads() {
    let vxlan = |port| {
        let inner = ethernet(0x0800, &datagram(port, 9_000, b"in"));
        frame::udp(
            client(5_000),
            server(4_789),
            1,
            &[&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat(),
        )
    };
    let [one, two] = fragments(&datagram(4_001, 9_000, &[7; 100]), 64);
    // The flags are those of the outer datagram; the inner one was not fragmented.
    let inner = [&[0, 0, 8, 0], &datagram(4_002, 9_000, b"in")[..]].concat();
    let [three, four] = fragments(&datagram(5_000, 4_754, &inner), 16);
    let frames = [vxlan(4_000), vxlan(4_000), vxlan(4_003), two, one, three, four];
    let frames: Vec<_> = (0..).map(f64::from).zip(frames).collect();
    let capture = capture(LinkType::ETHERNET, &frames);
    let names = &["new_connection", "vxlan_packet", "new_packet", "raw_packet"];
    let of = |threads| {
        events_of(&capture, Options { threads, ..Options::default() }, names, "\"event\"").0
    };
    let alone = of(1);
    assert_eq!(alone, of(2));
    assert_eq!(alone, of(3));
    let tunnels: Vec<_> = alone.iter().filter(|line| line.contains("\"vxlan_packet\"")).collect();
    assert_eq!(tunnels.len(), 3);
    // The lookup of the new tunnel shows the state after the packet.
    assert!(tunnels[0].contains("\"num_pkts\":1,\"num_bytes_ip\":96"), "{tunnels:?}");
    let packets: Vec<_> = alone.iter().filter(|line| line.contains("\"new_packet\"")).collect();
    let flags =
        packets.iter().map(|line| (line.contains("\"MF\":true"), line.contains("\"offset\":64")));
    assert_eq!(flags.clone().filter(|flags| *flags == (false, true)).count(), 1, "{packets:?}");
    // The flags belong to the outer datagram of GRE over UDP, not to the inner one.
    assert_eq!(flags.filter(|flags| flags.0).count(), 1, "{packets:?}");
}

#[test]
fn time_begins_with_each_packet_as_long_as_it_is_zero() {
    let frame = || ethernet(0x0800, &datagram(1, 9_000, b"x"));
    let zero = -(START as f64);
    let frames = [(zero, frame()), (zero, frame()), (zero + 7.0, frame()), (zero + 8.0, frame())];
    let capture = capture(LinkType::ETHERNET, &frames);
    let (first_times, _) = events_of(&capture, Options::default(), &["network_time_init"], "{");
    assert_eq!(first_times.len(), 3, "{first_times:?}");
}

#[test]
fn a_capture_without_packets_ends_at_time_zero() {
    let empty = capture(LinkType::ETHERNET, &[]);
    let (got, _) = events_of(&empty, Options::default(), &["net_done"], "\"t\"");
    assert_eq!(got, ["\"t\":1.000000}}"]);
}

#[test]
fn a_connection_of_an_old_last_packet_times_out() {
    let frame = |from: u16| ethernet(0x0800, &datagram(from, 9_000, b"x"));
    for name in ["connection_timeout", "gannet::connection_inactive"] {
        let count = |second: f64| {
            let capture = capture(LinkType::ETHERNET, &[(1_000.0, frame(1)), (second, frame(2))]);
            events_of(&capture, Options::default(), &[name], "\"id\"").0.len()
        };
        assert_eq!([count(1_001.0), count(990.0), count(10.0)], [0, 0, 1]);
    }
}

/// A connection whose originator sends 1,000 bytes, and retransmits the last two with other
/// contents.
fn sent_again(trace: &mut Trace, port: u16) {
    let mut tcp = trace.connect(client(port), server(80));
    tcp.send_unacknowledged(&[b'x'; 1_000]);
    tcp.lose(2u32.wrapping_neg());
    tcp.send_unacknowledged(b"yz");
}

#[test]
fn retransmissions_with_other_contents_have_an_event() {
    let mut trace = trace();
    for port in 1..=4 {
        sent_again(&mut trace, port);
    }
    let capture = capture_of(&trace);
    let names = &["rexmit_inconsistency"];
    let (got, statistics) = events_of(&capture, Options::default(), names, "\"t1\"");
    assert_eq!(got, [r#""t1":"xx","t2":"yz","tcp_flags":"AP"}}"#; 4]);
    assert_eq!(statistics.state.reassembly, 4 * (1_000 + 48));
    // No bytes are stored without a listener.
    let (_, statistics) = events_of(&capture, Options::default(), &["content_gap"], "");
    assert_eq!(statistics.state.reassembly, 0);
}

#[test]
fn bytes_stored_for_comparison_count_as_reassembly() {
    let mut trace = trace();
    for port in 1..=4 {
        let mut tcp = trace.connect(client(port), server(80));
        tcp.send_unacknowledged(&[b'x'; 1_000]);
    }
    for port in 1..=4 {
        sent_again(&mut trace, 10 + port);
    }
    let capture = capture_of(&trace);
    let mut options = Options::default();
    assert!(options.limits.set("reassembly", 2_500));
    let names = &["rexmit_inconsistency", "conn_weird", "content_gap"];
    let (got, statistics) = events_of(&capture, options, names, "\"event\"");
    // The oldest bytes are discarded, which leaves no gap in their streams.
    assert_eq!(statistics.state.holes_given_up, 6);
    let count = |what: &str| got.iter().filter(|line| line.contains(what)).count();
    assert_eq!(
        ["reassembly_limit_reached", "rexmit_inconsistency", "content_gap"].map(count),
        [6, 4, 0]
    );
}

#[test]
fn stream_bytes_have_offsets() {
    let mut trace = trace();
    let mut tcp = trace.connect(client(1), server(9_999));
    tcp.send(b"abc");
    tcp.reply(b"xy");
    tcp.send(b"d");
    let capture = capture_of(&trace);
    let (got, _) = events_of(&capture, Options::default(), &["tcp_contents"], "\"is_orig\"");
    assert_eq!(
        got,
        [
            r#""is_orig":true,"seq":1,"contents":"abc"}}"#,
            r#""is_orig":false,"seq":1,"contents":"xy"}}"#,
            r#""is_orig":true,"seq":4,"contents":"d"}}"#,
        ]
    );
}

#[test]
fn igmp_messages_have_events() {
    let sealed = |mut message: Vec<u8>| {
        let mut sum = gannet_wire::checksum::Sum::default();
        sum.add(&message);
        message[2..4].copy_from_slice(&sum.checksum());
        message
    };
    let packet = |n, message: &[u8]| {
        (f64::from(n), ethernet(0x0800, &frame::ipv4(CLIENT, SERVER, 2, 1, message)))
    };
    let report = sealed(vec![0x16, 0, 0, 0, 239, 1, 2, 3]);
    let records = [&[0x22, 0, 0, 0, 0, 0, 0, 1][..], &[4, 0, 0, 1, 239, 0, 0, 1, 10, 0, 0, 1]];
    let wrong = [&report[..7], b"x"].concat();
    let frames = [packet(0, &report), packet(1, &sealed(records.concat())), packet(2, &wrong)];
    let capture = capture(LinkType::ETHERNET, &frames);
    let names = &["IGMP::membership_report_v2", "IGMP::membership_report_v3"];
    let (got, _) = events_of(&capture, Options::default(), names, "\"group");
    assert_eq!(got.len(), 2, "{got:?}");
    assert!(got[0].starts_with(r#""group_addr":"239.1.2.3""#), "{got:?}");
    assert!(got[1].contains(r#""group_type":"IGMP::CHANGE_TO_EXCLUDE_MODE""#), "{got:?}");
    assert!(got[1].contains(r#""sources":["10.0.0.1"]"#), "{got:?}");
    let (got, _) = events_of(&capture, Options::default(), &["IGMP::message"], "\"msg_type\"");
    assert_eq!(got.len(), 3);
    // Zeek with Spicy parses IGMP, so that its packets belong to no connection.
    let ran = |scripted| {
        let options = Options { scripted, inner_protocols: scripted, ..Options::default() };
        events_of(&capture, options, &["new_connection", "flow_weird"], "\"name\"").0
    };
    assert_eq!(ran(false).len(), 1);
    let weird = ran(true);
    assert!(weird.len() == 1 && weird[0].contains("igmp_invalid_checksum"), "{weird:?}");
}

/// Gives commands before the first packet.
struct InitialCommands(Vec<gannet_event::Command>, Arc<Mutex<Vec<String>>>);

impl Listener for InitialCommands {
    fn event(&mut self, event: &Raised<'_>) {
        self.1.lock().unwrap().push(event.decl.name.to_owned());
    }

    fn commands(&mut self, to: &mut Vec<gannet_event::Command>) {
        to.append(&mut self.0);
    }
}

/// The names of the events of a capture, after the listener gave commands before the first packet.
fn events_after(
    capture: &[u8],
    names: &[&str],
    commands: Vec<gannet_event::Command>,
) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let listener = Box::new(InitialCommands(commands, lines.clone()));
    analyze_with(capture, Options::default(), names, listener);
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn connections_that_reach_a_packet_threshold_are_reported() {
    let mut trace = trace();
    for port in 1..=2 {
        for _ in 0..3 {
            trace.udp(client(port), server(9), b"x");
            trace.udp_reply(client(port), server(9), b"y");
        }
    }
    trace.udp(client(3), server(9), b"x");
    let capture = capture_of(&trace);
    let names = &["conn_generic_packet_threshold_crossed"];
    let count = |all: &[u64]| {
        let commands = vec![gannet_event::Command::PacketThresholds(all.to_vec())];
        events_after(&capture, names, commands).len()
    };
    // Six packets, six packets and one.
    assert_eq!([&[1][..], &[2, 5], &[6, 7], &[7], &[]].map(count), [3, 4, 2, 0, 0]);
}

#[test]
fn scripts_skip_the_first_bytes_of_packets() {
    // 38 bytes that are no header, and an IP packet.
    let frame = |len: usize| [&vec![0xee; len][..], &datagram(4_000, 9_000, b"in")].concat();
    let names = &["new_connection"];
    let count = |link_type: u32, len| {
        let capture = capture(LinkType::ETHERNET, &[(0.0, frame(len)), (0.1, vec![0xee; 3])]);
        let skip = gannet_event::Command::SkipBytes { link_type, bytes: 38 };
        events_after(&capture, names, vec![skip]).len()
    };
    assert_eq!([count(1, 38), count(1, 37), count(113, 38)], [1, 0, 0]);
    let usual = capture(LinkType::ETHERNET, &[(0.0, ethernet(0x0800, &datagram(1, 2, b"x")))]);
    assert_eq!(events_after(&usual, names, Vec::new()).len(), 1);
}

#[test]
fn teredo_is_no_tunnel_if_scripts_disable_it() {
    let mut inner = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    inner.extend([0x20; 32]);
    let packet = frame::udp(client(5_000), server(3_544), 1, &inner);
    let capture = capture(LinkType::ETHERNET, &[(0.0, packet)]);
    let analyzer = Some("PacketAnalyzer::ANALYZER_TEREDO".to_owned());
    let off = gannet_event::Command::Enable { analyzer, on: false };
    let names = &["teredo_packet"];
    assert_eq!(events_after(&capture, names, Vec::new()).len(), 1);
    assert!(events_after(&capture, names, vec![off]).is_empty());
}

/// Records events as JSON, and gives a command for the connection of each event.
struct CommandPerEvent {
    what: Option<gannet_event::ConnCommand>,
    commands: Vec<gannet_event::Command>,
    recorded: Arc<Mutex<Vec<String>>>,
}

impl Listener for CommandPerEvent {
    fn event(&mut self, event: &Raised<'_>) {
        let mut line = Vec::new();
        gannet_event::write_json(&mut line, event);
        self.recorded.lock().unwrap().push(String::from_utf8(line).unwrap());
        if let (Some(conn), Some(what)) = (event.connection(0), self.what.clone()) {
            let (uid, id, ip_proto) = (conn.uid, conn.id, conn.ip_proto);
            self.commands.push(gannet_event::Command::Connection { uid, id, ip_proto, what });
        }
    }

    fn commands(&mut self, to: &mut Vec<gannet_event::Command>) {
        to.append(&mut self.commands);
    }
}

/// The named events, if `what` is requested for the connection of each.
fn events_with_command(
    capture: &[u8],
    names: &[&str],
    what: Option<gannet_event::ConnCommand>,
) -> Vec<String> {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let listener = CommandPerEvent { what, commands: Vec::new(), recorded: Arc::clone(&recorded) };
    analyze_with(capture, Options::default(), names, Box::new(listener));
    let recorded = recorded.lock().unwrap();
    recorded.clone()
}

#[test]
fn a_tunnel_that_scripts_forget_begins_again() {
    let mut inner = vec![0x60, 0, 0, 0, 0, 0, 59, 64];
    inner.extend([0x20; 32]);
    let teredo = frame::udp(client(5_000), server(3_544), 1, &inner);
    let gtp = frame::udp(client(5_000), server(2_152), 1, &[0x30, 1, 0, 0, 0, 0, 0, 0]);
    for (packet, name) in [(teredo, "new_teredo_state"), (gtp, "new_gtpv1_state")] {
        let frames: Vec<_> = (0..3).map(|n| (f64::from(n), packet.clone())).collect();
        let capture = capture(LinkType::ETHERNET, &frames);
        let count = |what| events_with_command(&capture, &[name], what).len();
        let forget = Some(gannet_event::ConnCommand::ForgetTunnel);
        assert_eq!([None, forget].map(count), [1, 3], "{name}");
    }
}

#[test]
fn a_looked_up_connection_keeps_its_state_in_events() {
    let mut trace = trace();
    (0..3).for_each(|_| trace.udp(client(1), server(9), b"x"));
    let capture = capture_of(&trace);
    let watch = Some(gannet_event::ConnCommand::Watch);
    let names = &["udp_request", "gannet::watched_connection"];
    let got = events_with_command(&capture, names, watch);
    let shown = |line: &String| {
        let name = line.split('"').nth(5).unwrap_or_default().to_owned();
        let packets = line.split("\"num_pkts\":").nth(1).and_then(|rest| rest.split(',').next());
        format!("{name} {}", packets.unwrap_or_default())
    };
    let got: Vec<_> = got.iter().map(shown).collect();
    let watched = "gannet::watched_connection";
    let expected = [
        "udp_request 0".to_owned(),
        "udp_request 1".to_owned(),
        format!("{watched} 2"),
        "udp_request 2".to_owned(),
        format!("{watched} 3"),
    ];
    assert_eq!(got, expected);
}

#[test]
fn expected_analyzers_match_exchanged_roles_before_the_flip() {
    let mut trace = trace();
    trace.connect(client(1), server(9)).send(b"x");
    // The first packet is the server's: the expected connection matches once the roles are
    // exchanged.
    let frames = trace.frames().iter().skip(1);
    let frames: Vec<_> = (0..).map(f64::from).zip(frames.map(|f| f.bytes.clone())).collect();
    let capture = capture(LinkType::ETHERNET, &frames);
    let expect = |analyzer: &str| gannet_event::Command::Schedule {
        orig: None,
        resp: gannet_base::Addr::v4(SERVER.octets()),
        port: 9,
        proto: gannet_base::Proto::Tcp,
        analyzer: format!("Analyzer::ANALYZER_{analyzer}"),
        // Before the first packet, network time is 1970.
        timeout: Interval::from_secs(2_000_000_000),
    };
    let names = &["new_connection", "scheduled_analyzer_applied", "connection_flipped"];
    let got = events_after(&capture, names, vec![expect("FTP_DATA"), expect("IRC")]);
    let applied = "scheduled_analyzer_applied";
    assert_eq!(got, ["new_connection", applied, applied, "connection_flipped"]);
}

#[test]
fn a_connection_that_begins_with_the_server_flips_before_its_first_event() {
    let mut trace = trace();
    trace.udp(server(53), client(60_000), b"x");
    let names = &["new_connection", "connection_flipped"];
    let got = events_after(&capture_of(&trace), names, Vec::new());
    assert_eq!(got, ["connection_flipped", "new_connection"]);
}

#[test]
fn server_data_is_not_detected_if_the_syn_ack_came_first() {
    let mut trace = trace();
    let mut tcp = trace.connect(client(1), server(9));
    tcp.reply(b"HTTP/1.0 200 OK\r\n\r\n");
    tcp.send(b"GET / HTTP/1.0\r\n\r\n");
    let frames = |trace: &Trace| -> Vec<_> {
        trace.frames().iter().map(|frame| frame.bytes.clone()).collect()
    };
    let all = frames(&trace);
    let mut trace = self::trace();
    let mut tcp = trace.connect(client(1), server(21));
    tcp.reply(b"HTTP/1.0 200 OK\r\n\r\n");
    tcp.send(b"GET / HTTP/1.0\r\n\r\n");
    let likely = frames(&trace);
    let of_server = |frame: &&Vec<u8>| frame[26..30] == SERVER.octets();
    let detected = |frames: Vec<&Vec<u8>>| {
        let frames: Vec<_> = (0..).map(f64::from).zip(frames.into_iter().cloned()).collect();
        let capture = capture(LinkType::ETHERNET, &frames);
        let got = events_after(&capture, &["http_reply", "http_request"], Vec::new());
        got.join(" ")
    };
    assert_eq!(detected(all.iter().collect()), "http_reply http_request");
    assert_eq!(detected(all.iter().take(5).collect()), "http_reply");
    assert_eq!(detected(all.iter().filter(of_server).collect()), "", "the server alone");
    assert_eq!(detected(all.iter().skip(1).take(4).collect()), "", "the client's ACK and no data");
    // The client's data is detected, and the analyzer receives everything.
    assert_eq!(detected(all.iter().skip(1).collect()), "http_reply http_request");
    let late_syn = [1, 0, 2, 3, 4].map(|at| &all[at]);
    assert_eq!(detected(late_syn.to_vec()), "", "a SYN behind its answer");
    // A SYN-ACK from a known server port comes from the responder: the client's SYN was missed.
    assert_eq!(detected(likely.iter().collect()), "http_reply http_request");
    assert_eq!(detected(likely.iter().skip(1).take(4).collect()), "http_reply");
    let client_alone = likely.iter().skip(1).enumerate().filter(|(at, _)| *at != 2);
    assert_eq!(detected(client_alone.map(|(_, frame)| frame).collect()), "");
}

#[test]
fn an_ftp_transfer_is_reported_before_a_file_whose_first_part_has_a_type() {
    let trace = gannet_synth::traffic::of(gannet_synth::traffic::Kind::Ftp, 4, 1);
    let got = events_after(&capture_of(&trace), &["file_transferred", "file_new"], Vec::new());
    assert!(got.len() >= 2, "{got:?}");
    assert_eq!(got[..2], ["file_transferred", "file_new"], "{got:?}");
}

#[test]
fn contents_are_reported_before_the_connection() {
    let mut trace = trace();
    trace.connect(client(1), server(80));
    let names = &["new_connection", "new_connection_contents"];
    let got = events_after(&capture_of(&trace), names, Vec::new());
    assert_eq!(got, ["new_connection_contents", "new_connection"]);
}

#[test]
fn sequence_numbers_follow_each_segment() {
    let mut trace = trace();
    let mut tcp = trace.connect(client(1), server(80));
    tcp.send_unacknowledged(&[b'x'; 1_000]);
    let capture = capture_of(&trace);
    let names = &["gannet::tcp_sequences"];
    let (got, _) = events_of(&capture, Options::default(), names, "\"orig\"");
    let numbers = |line: &String| {
        let digits = line.split(|c: char| !c.is_ascii_digit());
        let all: Vec<u32> = digits.filter_map(|digits| digits.parse().ok()).collect();
        [all[all.len() - 2], all[all.len() - 1]]
    };
    let got: Vec<_> = got.iter().map(numbers).collect();
    // SYN, SYN and ACK, ACK, data.
    let [[orig, 0], [same, resp], acknowledged, [last, _]] = got[..] else { panic!("{got:?}") };
    assert_eq!((same, acknowledged), (orig, [orig, resp]));
    assert_eq!(last, orig.wrapping_add(1_000), "{got:?}");
}

/// A connection whose only segments have these flags, one per second, from the client if `false`;
/// then packets of other hosts.
fn segments(all: &[(bool, u8)]) -> Vec<u8> {
    let (a, b) = (client(4_000), server(80));
    let mut next = [100, 300];
    let mut frames = Vec::new();
    for (number, &(back, flags)) in all.iter().enumerate() {
        let (from, to) = if back { (b, a) } else { (a, b) };
        let [seq, ack] = if back { [next[1], next[0]] } else { next };
        next[usize::from(back)] += u32::from(flags & 3 != 0);
        let header = frame::TcpHeader { seq, ack, flags, window: 1_000, options: &[] };
        frames.push((number as f64, frame::tcp(from, to, 1, header, &[])));
    }
    for n in 0..40 {
        let time = all.len() as f64 + 0.25 * f64::from(n);
        frames.push((time, frame::udp(client(1), server(9), 1, b"x")));
    }
    capture(LinkType::ETHERNET, &frames)
}

#[test]
fn delayed_ends_remove_the_connection() {
    use gannet_event::Command;
    let (syn, fin, rst, ack) = (2, 1, 4, 16);
    let up = [(false, syn), (true, syn | ack), (false, ack)];
    let events = |capture: &[u8], name, setting: Option<(&'static str, u64)>| {
        let second = |(name, seconds): (&'static str, u64)| Command::Setting {
            name,
            value: seconds * 1_000_000_000,
        };
        let commands = setting.map(second).into_iter().collect();
        let names = [name, "connection_state_remove", "net_done"];
        let lines = events_after(capture, &names, commands);
        lines.join(" ")
    };
    // A FIN and a RST of the same side.
    let reset = segments(&[&up[..], &[(false, fin | ack), (false, rst)]].concat());
    let reported = "connection_reset connection_state_remove net_done";
    let early = events(&reset, "connection_reset", None);
    assert!(early.starts_with(reported), "{early}");
    let late = events(&reset, "connection_reset", Some(("tcp_reset_delay", 100)));
    assert!(late.starts_with("connection_state_remove") || late.starts_with("net_done"), "{late}");
    // The first segment of a side is a FIN.
    let partial = segments(&[(false, ack), (true, fin | ack), (false, ack)]);
    let reported = "connection_partial_close connection_state_remove net_done";
    let early = events(&partial, "connection_partial_close", None);
    assert!(early.starts_with(reported), "{early}");
    let late = events(&partial, "connection_partial_close", Some(("tcp_partial_close_delay", 100)));
    assert!(late.starts_with("net_done"), "{late}");
    // Both sides close: the connection does not end by inactivity.
    let closed = [(false, fin | ack), (true, fin | ack), (false, ack)];
    let closed = segments(&[&up[..], &closed].concat());
    let reported = "connection_timeout connection_state_remove net_done";
    assert!(events(&closed, "connection_timeout", None).starts_with(reported));
    let inactive = events(&closed, "gannet::connection_inactive", None);
    assert!(inactive.starts_with("connection_state_remove net_done"), "{inactive}");
    // Without its event, nothing waits for the delay.
    assert!(events(&partial, "connection_timeout", None).starts_with("net_done"));
}

#[test]
fn checksums_of_vxlan_are_verified_unless_scripts_say_otherwise() {
    use gannet_event::Command;
    let inner = ethernet(0x0800, &datagram(4_000, 9_000, b"in"));
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
    let connections = |port, wrong: u8, verify| {
        let mut frame = frame::udp(client(5_000), server(port), 1, &payload);
        frame[14 + 20 + 6] ^= wrong;
        let capture = capture(LinkType::ETHERNET, &[(0.0, frame)]);
        let name = "Tunnel::validate_vxlan_checksums";
        let commands = vec![Command::Setting { name, value: u64::from(verify) }];
        events_after(&capture, &["new_connection"], commands).len()
    };
    assert_eq!([0, 1].map(|wrong| connections(4_789, wrong, true)), [2, 1]);
    assert_eq!([0, 1].map(|wrong| connections(4_789, wrong, false)), [2, 2]);
    assert_eq!([0, 1].map(|wrong| connections(4_790, wrong, false)), [1, 1]);
}

#[test]
fn scripts_limit_tunnels_choose_their_ports_and_ignore_unknown_transports() {
    use gannet_event::Command;
    let depth = |value| Command::Setting { name: "Tunnel::max_depth", value };
    let unknown = |on| Command::Enable {
        analyzer: Some("PacketAnalyzer::ANALYZER_UNKNOWN_IP_TRANSPORT".to_owned()),
        on,
    };
    let events_of = |frame: Vec<u8>, commands: Vec<Command>| {
        let capture = capture(LinkType::ETHERNET, &[(0.0, frame)]);
        events_after(&capture, &["flow_weird", "new_connection"], commands)
    };
    let inner = datagram(4_000, 9_000, b"in");
    let once = frame::ipv4(CLIENT, SERVER, 4, 1, &inner);
    let nested = ethernet(0x0800, &frame::ipv4(CLIENT, SERVER, 4, 1, &once));
    assert_eq!(events_of(nested.clone(), vec![depth(2)]), ["new_connection"]);
    assert_eq!(events_of(nested.clone(), vec![depth(1)]), ["flow_weird"]);
    // As in Zeek, the first tunnel is always parsed.
    assert_eq!(events_of(nested, vec![depth(0)]), ["flow_weird"]);
    assert_eq!(events_of(ethernet(0x0800, &once), vec![depth(0)]), ["new_connection"]);
    let other = ethernet(0x0800, &frame::ipv4(CLIENT, SERVER, 200, 1, b"x"));
    assert_eq!(events_of(other.clone(), vec![unknown(false), unknown(true)]), ["new_connection"]);
    assert!(events_of(other, vec![unknown(false)]).is_empty());
    // The second change exceeds the maximum; 0 means no limit.
    let changes = |commands| {
        let within = |ip: &[u8]| frame::ipv4(CLIENT, SERVER, 4, 1, ip);
        let plain = datagram(4_000, 9_000, b"in");
        let once = within(&plain);
        let frames = [within(&once), once, plain].map(|ip| ethernet(0x0800, &ip));
        let frames = [2, 1, 0].map(|n: usize| frames[n].clone());
        let frames = frames.map(|frame| (0.0, frame));
        events_after(&capture(LinkType::ETHERNET, &frames), &["conn_weird"], commands).len()
    };
    let max_changes =
        |value| Command::Setting { name: "Tunnel::max_changes_per_connection", value };
    assert_eq!(
        [changes(vec![]), changes(vec![max_changes(0)]), changes(vec![max_changes(1)])],
        [0, 0, 1]
    );
    // A port set by a script marks tunnels; a default port that the script removed does not.
    let inner = ethernet(0x0800, &datagram(4_000, 9_000, b"in"));
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0], &inner[..]].concat();
    let vxlan = |port| frame::udp(client(5_000), server(port), 1, &payload);
    let own = || {
        let name = |kind: &str| format!("PacketAnalyzer::ANALYZER_{kind}");
        vec![Command::TunnelPorts(vec![(4_790, name("VXLAN")), (4_791, name("OTHER"))])]
    };
    let connections = |port, commands| events_of(vxlan(port), commands).len();
    assert_eq!([4_789, 4_790, 4_791].map(|port| connections(port, vec![])), [2, 1, 1]);
    assert_eq!([4_789, 4_790, 4_791].map(|port| connections(port, own())), [1, 2, 1]);
}
