//! Tunneled packets.

use std::net::SocketAddr;

use gannet_capture::LinkType;
use gannet_synth::frame;

use super::CLIENT;
use super::Ran;
use super::SERVER;
use super::capture;
use super::client;
use super::datagram;
use super::ethernet;
use super::packet;
use super::server;

const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 1, 0];

fn one(frame: Vec<u8>) -> Ran {
    Ran::of(&capture(LinkType::ETHERNET, &[(0.0, frame)]))
}

fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
    frame::ip(CLIENT.into(), SERVER.into(), protocol, 1, payload)
}

/// Checks log, kind and inner port, and that the inner connection refers to the tunnel.
fn check(frame: Vec<u8>, kind: &str, inner_port: u16, outer: Option<&str>) {
    let ran = one(frame);
    let tunnels = ran.rows("tunnel", "tunnel_type action");
    assert_eq!(tunnels[0], format!("{kind} Tunnel::DISCOVER"));
    let uid = &ran.rows("tunnel", "uid")[0];
    let conns = ran.rows("conn", "id.resp_p tunnel_parents");
    assert!(conns.contains(&format!("{inner_port} {uid}")), "{conns:?}");
    if let Some(service) = outer {
        let outer = ran.rows("conn", "uid service tunnel_parents");
        assert!(outer.contains(&format!("{uid} {service} -")), "{outer:?}");
    }
    assert_eq!(ran.weirds(), [] as [&str; 0]);
}

#[test]
fn between_hosts() {
    let inner = datagram(4_000, 9_000, b"in");
    check(ip(4, &inner), "Tunnel::IP", 9_000, None);
    check(ip(47, &[&[0, 0, 8, 0], &inner[..]].concat()), "Tunnel::GRE", 9_000, None);
    let bridged = ethernet(0x0800, &inner);
    check(ip(47, &[&[0, 0, 0x65, 0x58], &bridged[..]].concat()), "Tunnel::GRE", 9_000, None);
}

#[test]
fn over_udp() {
    let inner = ethernet(0x0800, &datagram(4_000, 9_000, b"in"));
    let vxlan = [&VXLAN, &inner[..]].concat();
    check(
        frame::udp(client(5_000), server(4_789), 1, &vxlan),
        "Tunnel::VXLAN",
        9_000,
        Some("vxlan"),
    );
    let geneve = [&[0, 0, 0x65, 0x58, 0, 0, 1, 0], &inner[..]].concat();
    check(
        frame::udp(client(5_000), server(6_081), 1, &geneve),
        "Tunnel::GENEVE",
        9_000,
        Some("geneve"),
    );
    let gre = [&[0, 0, 8, 0], &datagram(4_000, 9_000, b"in")[..]].concat();
    check(frame::udp(client(5_000), server(4_754), 1, &gre), "Tunnel::GRE", 9_000, None);
}

#[test]
fn teredo_is_confirmed_after_packets_of_both_sides() {
    let near: SocketAddr = "[2001::1]:4000".parse().unwrap();
    let far: SocketAddr = "[2001:db8::2]:9000".parse().unwrap();
    let inner =
        |from, to| frame::udp(from, to, 1, b"in, and long enough not to be padded")[14..].to_vec();
    let up = frame::udp(client(5_000), server(3_544), 1, &inner(near, far));
    let down = frame::udp(server(3_544), client(5_000), 1, &inner(far, near));
    let ran = Ran::of(&capture(LinkType::ETHERNET, &[(0.0, up.clone()), (0.1, up.clone())]));
    assert_eq!(ran.rows("conn", "id.resp_p service conn_state"), ["3544 - S0", "9000 - S0"]);
    let ran = Ran::of(&capture(LinkType::ETHERNET, &[(0.0, up), (0.1, down)]));
    assert_eq!(ran.rows("conn", "id.resp_p service conn_state"), ["3544 teredo SF", "9000 - SF"]);
    assert_eq!(ran.rows("tunnel", "tunnel_type id.resp_p")[0], "Tunnel::TEREDO 3544");
    assert_eq!(ran.weirds(), [] as [&str; 0]);
}

#[test]
fn the_port_of_a_tunnel_precedes_its_content() {
    let near: SocketAddr = "[2001::1]:4000".parse().unwrap();
    let far: SocketAddr = "[2001:db8::2]:9000".parse().unwrap();
    // A Teredo packet on the port of AYIYA is an AYIYA packet without payload.
    let inner = frame::udp(near, far, 1, b"in, and long enough not to be padded")[14..].to_vec();
    let ran = one(frame::udp(client(5_000), server(5_072), 1, &inner));
    assert_eq!(ran.rows("conn", "id.resp_p"), ["5072"]);
    let ran = one(frame::udp(client(5_000), server(5_073), 1, &inner));
    assert_eq!(ran.rows("conn", "id.resp_p"), ["5073", "9000"]);
}

#[test]
fn tunnels_have_a_maximum_depth() {
    let nest = |n: u32| {
        let mut inner = datagram(4_000, 9_000, b"in");
        for _ in 0..n {
            inner = frame::ipv4(CLIENT, SERVER, 4, 1, &inner);
        }
        one(ethernet(0x0800, &inner))
    };
    let ran = nest(4);
    assert_eq!(ran.weirds(), [] as [&str; 0]);
    assert_eq!(ran.rows("conn", "id.resp_p"), ["9000"]);
    let ran = nest(5);
    assert_eq!(ran.rows("weird", "name source"), ["exceeded_tunnel_max_depth_in_tunnel IPTUNNEL"]);
    assert_eq!(ran.rows("conn", "id.resp_p"), [] as [&str; 0]);
}

#[test]
fn udp_tunnels_report_the_maximum_depth() {
    let nest = |port: u16, payload: &[u8]| {
        let mut inner = datagram(5_000, port, payload);
        for _ in 0..4 {
            inner = frame::ipv4(CLIENT, SERVER, 4, 1, &inner);
        }
        one(ethernet(0x0800, &inner))
    };
    let too_deep = |ran: &Ran| (ran.weirds(), ran.rows("conn", "id.resp_p history"));
    let six = [&[0x60, 0, 0, 0, 0, 0, 59, 64][..], &[1; 32]].concat();
    for (port, source, payload) in [
        (3_544, "TEREDO", &six[..]),
        (4_789, "VXLAN", &VXLAN[..]),
        (6_081, "GENEVE", &[0; 8]),
        (5_072, "AYIYA", &[0; 3]),
    ] {
        let ran = nest(port, payload);
        let name = ["exceeded_tunnel_max_depth_in_tunnel".to_owned()];
        assert_eq!(too_deep(&ran), (name.to_vec(), vec![format!("{port} DX")]));
        assert_eq!(ran.rows("weird", "source id.orig_p"), [format!("{source} 0")]);
    }
    // GTP has its own weird for the depth, and checks the message first.
    let gtp = [&[0x30, 255, 0, 20, 0, 0, 0, 1][..], &datagram(4_000, 9_000, b"")].concat();
    let ran = nest(2_152, &gtp);
    assert_eq!(too_deep(&ran), (vec!["tunnel_depth".to_owned()], vec!["2152 D".to_owned()]));
    assert_eq!(ran.rows("weird", "source id.orig_p"), ["GTPV1 -"]);
    let ran = nest(2_152, &gtp[..7]);
    assert_eq!(too_deep(&ran), (vec![], vec!["2152 D".to_owned()]));
    assert_eq!(ran.rows("analyzer", "analyzer_name"), ["GTPV1"]);
}

#[test]
fn gre_is_checked_before_the_depth() {
    let mut inner = frame::ipv4(CLIENT, SERVER, 47, 1, &[0, 2, 8, 0]);
    for _ in 0..4 {
        inner = frame::ipv4(CLIENT, SERVER, 4, 1, &inner);
    }
    let ran = one(ethernet(0x0800, &inner));
    assert_eq!(ran.rows("weird", "name source"), ["unknown_gre_version_in_tunnel GRE"]);
}

#[test]
fn layers_are_counted_across_tunnels() {
    // Each tunnel is six layers: UDP, VXLAN, Ethernet, two tags and IP; the outermost frame has
    // Ethernet and IP.
    let tagged = |packet: &[u8], tags: usize| {
        let mut b = Vec::new();
        for _ in 0..tags {
            b.extend_from_slice(&[0, 1, 0x81, 0]);
        }
        let kind = if tags == 0 { 0x0800 } else { 0x8100 };
        if let Some(at) = b.len().checked_sub(2) {
            b[at..].copy_from_slice(&[8, 0]);
        }
        b.extend_from_slice(packet);
        ethernet(kind, &b)
    };
    let nest = |tunnels: u16, tags| {
        let mut inner = datagram(4_000, 9_000, b"in");
        for i in 0..tunnels {
            let payload = [&VXLAN, &tagged(&inner, tags)[..]].concat();
            inner = datagram(6_000 + i, 4_789, &payload);
        }
        one(ethernet(0x0800, &inner))
    };
    // 2 + 3 * 6 = 20 layers, the innermost UDP the 21st.
    let ran = nest(3, 2);
    assert_eq!(ran.weirds(), [] as [&str; 0]);
    assert_eq!(ran.rows("conn", "id.resp_p history").last().unwrap(), "9000 D");
    // The fourth tunnel's two tags are the 24th and 25th: its IP is one too many.
    let ran = nest(4, 2);
    assert_eq!(
        ran.rows("weird", "name source"),
        ["max_packet_analyzer_depth_exceeded_in_tunnel VLAN"]
    );
    assert_eq!(ran.rows("conn", "id.resp_p").len(), 4);
}

#[test]
fn a_deep_stack_of_tags_exceeds_the_layers_before_transport() {
    let stack = |tags: usize| {
        let mut b = Vec::new();
        for _ in 1..tags {
            b.extend_from_slice(&[0, 1, 0x81, 0]);
        }
        b.extend_from_slice(&[0, 1, 8, 0]);
        b.extend_from_slice(&datagram(4_000, 9_000, b"in"));
        let ran = one(ethernet(0x8100, &b));
        let weirds = ran.rows("weird", "name source");
        let weirds: Vec<_> = weirds.into_iter().filter(|w| w.starts_with("max_")).collect();
        (weirds, ran.rows("conn", "history"))
    };
    let too_deep = |source: &str| vec![format!("max_packet_analyzer_depth_exceeded {source}")];
    assert_eq!(stack(21), (vec![], vec!["D".into()]));
    // UDP is the 25th layer: a tunnel in it exceeds the maximum.
    assert_eq!(stack(22), (too_deep("UDP"), vec!["DX".into()]));
    assert_eq!(stack(23), (too_deep("IP"), vec![]));
    assert_eq!(stack(24), (too_deep("VLAN"), vec![]));
}

#[test]
fn other_transports_exceed_the_layers_too() {
    let syn = frame::TcpHeader { seq: 1, ack: 0, flags: frame::SYN, window: 9, options: &[] };
    let syn = frame::tcp(client(4_000), server(9_000), 1, syn, b"");
    let ping = frame::echo(CLIENT.into(), SERVER.into(), false, (1, 1), b"in");
    for (carried, source, history) in
        [(packet(&syn), "TCP", ["S", "SX"]), (packet(&ping), "ICMP", ["-", "X"])]
    {
        for (tags, history) in [(21, history[0]), (22, history[1])] {
            let mut b = [0, 1, 0x81, 0].repeat(tags - 1);
            b.extend_from_slice(&[0, 1, 8, 0]);
            b.extend_from_slice(carried);
            let ran = one(ethernet(0x8100, &b));
            assert_eq!(ran.rows("conn", "history"), [history]);
            let mut weirds = ran.rows("weird", "name source");
            weirds.retain(|w| w.starts_with("max_"));
            let too_deep = format!("max_packet_analyzer_depth_exceeded {source}");
            assert_eq!(weirds, if tags == 22 { vec![too_deep] } else { vec![] });
        }
    }
}

#[test]
fn inner_headers_are_checked_before_lengths() {
    // A routing header of type 0 to fe80::9, then something unknown.
    let mut six = vec![0x60, 0, 0, 0, 0, 24, 43, 64];
    six.extend_from_slice(&[0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    six.extend_from_slice(&[0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    six.extend_from_slice(&[253, 2, 0, 1, 0, 0, 0, 0]);
    six.extend_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    let long = [&six[..], &[0; 3]].concat();
    let weirds = |frame: Vec<u8>| one(frame).rows("weird", "name id.orig_h id.resp_h");
    let routed = "routing0_hdr 2001::1 fe80::9";
    let inner = format!("inner_IP_payload_length_mismatch {CLIENT} {SERVER}");
    assert_eq!(weirds(ip(41, &long)), [routed, &inner]);
    let pptp = |packet: &[u8]| [&[0, 1, 0x88, 0x0b, 0, 0, 0, 0x57], packet].concat();
    assert_eq!(weirds(ip(47, &pptp(&long))), [routed, &inner]);
    let teredo = |packet: &[u8]| frame::udp(client(5_000), server(3_544), 1, packet);
    assert_eq!(weirds(teredo(&long)), [routed]);
    let gtp = |packet: &[u8]| [&[0x30, 255, 0, 0, 0, 0, 0, 1], packet].concat();
    assert_eq!(weirds(frame::udp(client(5_000), server(2_152), 1, &gtp(&long))), [routed]);
    // For a valid packet it is reported once.
    assert_eq!(weirds(teredo(&six)), [routed]);
}

#[test]
fn an_aggregate_ends_at_an_invalid_subframe() {
    let subframe = |packet: &[u8]| {
        let mut b = vec![2; 12];
        b.extend_from_slice(&(8 + packet.len() as u16).to_be_bytes());
        b.extend_from_slice(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
        b.extend_from_slice(packet);
        b.resize(b.len() + (8 + packet.len()) % 4, 0);
        b
    };
    let run = |packets: &[&[u8]]| {
        let mut b = vec![0x88, 0, 0, 0];
        b.extend_from_slice(&[2; 20]);
        b.extend_from_slice(&[0x80, 0]);
        for p in packets {
            b.extend(subframe(p));
        }
        let ran = Ran::of(&capture(LinkType(105), &[(0.0, b)]));
        let hosts = ran.rows("weird", "name id.resp_h");
        let invalid = hosts.iter().filter(|w| w.starts_with("invalid"));
        assert!(invalid.clone().all(|w| w.ends_with("198.51.100.7")), "{hosts:?}");
        (ran.rows("conn", "id.resp_p"), ran.weirds())
    };
    let (one, two) = (datagram(1, 9_000, b"1"), datagram(1, 9_001, b"2"));
    assert_eq!(run(&[&one, &two]), (vec!["9000".into(), "9001".into()], vec![]));
    let mut broken = one.clone();
    broken[0] = 0x95;
    let (rows, weirds) = run(&[&two, &broken, &one]);
    assert_eq!(rows, ["9001"]);
    assert_eq!(weirds, ["unknown_ip_version", "invalid_802_11_amsdu_inner_packet"]);
    // Half a UDP header is invalid as well; the weirds show its hosts.
    let half = frame::ipv4(CLIENT, SERVER, 17, 1, &one[20..24]);
    let (rows, weirds) = run(&[&half, &one]);
    assert_eq!(rows, [] as [&str; 0]);
    assert_eq!(weirds, ["truncated_header", "invalid_802_11_amsdu_inner_packet"]);
}

#[test]
fn encapsulation_changes_are_followed_up_to_a_maximum() {
    let inner = datagram(4_000, 9_000, b"in");
    let hosts = |n: u8| frame::ip([10, 0, 0, n].into(), [10, 0, 1, n].into(), 4, 1, &inner);
    let frames: Vec<_> = (1..=9).map(|n| (f64::from(n) / 10.0, hosts(n))).collect();
    let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
    let parents = ran.rows("conn", "tunnel_parents").remove(0);
    assert_eq!(parents.split(',').count(), 6);
    assert_eq!(ran.rows("conn", "history orig_pkts"), ["DX 9"]);
    assert!(ran.weirds().contains(&"tunnel_max_changes_per_connection_exceeded".to_owned()));
}

/// Sends more host pairs than are remembered: every inner connection has a row, and one weird
/// reports the limit.
#[test]
fn the_limit_of_host_pairs_is_reported() {
    let of = |pairs: u32| -> Vec<_> {
        let host = |n: u32| std::net::Ipv4Addr::from(0x0b00_0000 + n).into();
        let inner =
            |n: u32| datagram(20_000 + (n % 40_000) as u16, 9_000 + (n / 40_000) as u16, b"in");
        (0..pairs).map(|n| (0.0, frame::ip(host(n), SERVER.into(), 4, 1, &inner(n)))).collect()
    };
    for (pairs, weirds) in [(10, 0), (1_000, 0), (100_010, 1)] {
        for threads in [1, 2, 7] {
            let options = crate::Options { threads, ..Default::default() };
            let ran = super::analyze(&capture(LinkType::ETHERNET, &of(pairs)), options, usize::MAX);
            let all = ran.weirds();
            assert_eq!(all.len(), weirds, "{pairs} {all:?}");
            assert!(all.iter().all(|name| *name == "ip_tunnel_limit_reached"));
            let tunnels = ran.rows("tunnel", "action");
            let found = tunnels.iter().filter(|row| *row == "Tunnel::DISCOVER").count();
            assert_eq!(found, pairs as usize, "-t {threads}");
        }
    }
}
