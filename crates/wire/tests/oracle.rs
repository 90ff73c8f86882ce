//! Parses headers written by etherparse and compares all fields, and compares how both libraries
//! parse random and truncated packets.

#![allow(clippy::unwrap_used, reason = "a panic here is the report")]

use etherparse::PacketBuilder;
use etherparse::SlicedPacket;
use etherparse::TransportSlice;
use gannet_base::Addr;
use gannet_wire::Checksum;
use gannet_wire::Network;
use gannet_wire::checksum;
use gannet_wire::link;
use gannet_wire::protocol;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Made {
    src_mac: [u8; 6],
    dst_mac: [u8; 6],
    vlans: Vec<u16>,
    v6: bool,
    src: [u8; 16],
    dst: [u8; 16],
    ttl: u8,
    tcp: bool,
    ports: (u16, u16),
    seq: u32,
    ack: Option<u32>,
    window: u16,
    payload: Vec<u8>,
    /// Number of bytes that the capture lacks.
    cut: usize,
}

fn made() -> impl Strategy<Value = Made> {
    let link = (any::<[u8; 6]>(), any::<[u8; 6]>(), vec(0u16..4096, 0..=2));
    let ip = (any::<bool>(), any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u8>());
    let transport =
        (any::<bool>(), any::<(u16, u16)>(), any::<u32>(), any::<Option<u32>>(), any::<u16>());
    (link, ip, transport, vec(any::<u8>(), 0..300), 0usize..40).prop_map(
        |(
            (src_mac, dst_mac, vlans),
            (v6, src, dst, ttl),
            (tcp, ports, seq, ack, window),
            p,
            cut,
        )| {
            let payload = p;
            Made {
                src_mac,
                dst_mac,
                vlans,
                v6,
                src,
                dst,
                ttl,
                tcp,
                ports,
                seq,
                ack,
                window,
                payload,
                cut,
            }
        },
    )
}

fn v4(a: [u8; 16]) -> [u8; 4] {
    [a[0], a[1], a[2], a[3]]
}

fn write(m: &Made) -> Vec<u8> {
    use etherparse::VlanId;
    let id = |n: u16| VlanId::try_new(n).unwrap();
    let eth = PacketBuilder::ethernet2(m.src_mac, m.dst_mac);
    let ip = match (m.vlans.as_slice(), m.v6) {
        ([], false) => eth.ipv4(v4(m.src), v4(m.dst), m.ttl),
        ([], true) => eth.ipv6(m.src, m.dst, m.ttl),
        (&[a], false) => eth.single_vlan(id(a)).ipv4(v4(m.src), v4(m.dst), m.ttl),
        (&[a], true) => eth.single_vlan(id(a)).ipv6(m.src, m.dst, m.ttl),
        (&[a, b, ..], false) => eth.double_vlan(id(a), id(b)).ipv4(v4(m.src), v4(m.dst), m.ttl),
        (&[a, b, ..], true) => eth.double_vlan(id(a), id(b)).ipv6(m.src, m.dst, m.ttl),
    };
    let mut out = Vec::new();
    if m.tcp {
        let mut tcp = ip.tcp(m.ports.0, m.ports.1, m.seq, m.window);
        if let Some(ack) = m.ack {
            tcp = tcp.ack(ack);
        }
        tcp.write(&mut out, &m.payload).unwrap();
    } else {
        ip.udp(m.ports.0, m.ports.1).write(&mut out, &m.payload).unwrap();
    }
    out
}

proptest! {
    #[test]
    fn what_is_written_is_read(m in made()) {
        let bytes = write(&m);
        let wire_len = bytes.len() as u32;
        let cut = m.cut.min(m.payload.len());
        let captured = &bytes[..bytes.len() - cut];
        let frame = link(1, captured, wire_len).unwrap();
        prop_assert_eq!((frame.src_mac, frame.dst_mac), (Some(m.src_mac), Some(m.dst_mac)));
        prop_assert_eq!(frame.vlan, m.vlans.first().copied());
        prop_assert_eq!(frame.inner_vlan, m.vlans.get(1).copied());
        let Network::Ip(data) = frame.network else { panic!("no IP: {frame:?}") };
        let ip = gannet_wire::ip(data, frame.wire_len, true).unwrap();
        let (src, dst) = if m.v6 {
            (Addr::v6(m.src), Addr::v6(m.dst))
        } else {
            (Addr::v4(v4(m.src)), Addr::v4(v4(m.dst)))
        };
        prop_assert_eq!((ip.src, ip.dst, ip.ttl), (src, dst, m.ttl));
        prop_assert_eq!((ip.total_len, ip.version), (frame.wire_len, if m.v6 { 6 } else { 4 }));
        prop_assert_eq!(ip.is_complete(), cut == 0);
        let seen = &m.payload[..m.payload.len() - cut];
        let sum = if m.tcp {
            let tcp = gannet_wire::tcp(&ip).unwrap();
            prop_assert_eq!((tcp.src_port, tcp.dst_port), m.ports);
            prop_assert_eq!((tcp.seq, tcp.window), (m.seq, m.window));
            prop_assert_eq!(tcp.flags.ack().then_some(tcp.ack), m.ack);
            prop_assert_eq!(tcp.payload, seen);
            prop_assert_eq!(tcp.payload_len as usize, m.payload.len());
            checksum::tcp(&ip)
        } else {
            let udp = gannet_wire::udp(&ip).unwrap();
            prop_assert_eq!((udp.src_port, udp.dst_port), m.ports);
            prop_assert_eq!((udp.payload, udp.len_fault()), (seen, None));
            prop_assert_eq!(udp.payload_len as usize, m.payload.len());
            checksum::udp(&ip)
        };
        prop_assert_eq!(sum, if cut == 0 { Checksum::Valid } else { Checksum::Unverifiable });
    }

    #[test]
    fn a_changed_byte_spoils_the_checksum(m in made(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = write(&m);
        let head = 14 + 4 * m.vlans.len() + if m.v6 { 40 } else { 20 };
        let at = head + at.index(bytes.len() - head);
        bytes[at] ^= 1 << bit;
        let frame = link(1, &bytes, bytes.len() as u32).unwrap();
        let Network::Ip(data) = frame.network else { panic!("no IP: {frame:?}") };
        let ip = gannet_wire::ip(data, frame.wire_len, true).unwrap();
        if m.tcp {
            prop_assert_eq!(checksum::tcp(&ip), Checksum::Invalid);
        } else if ip.version == 6 || gannet_wire::udp(&ip).unwrap().checksum != 0 {
            prop_assert_eq!(checksum::udp(&ip), Checksum::Invalid);
        }
    }

    #[test]
    fn both_libraries_agree_on_damaged_packets(m in made(), spoil in vec((0usize..80, any::<u8>()), 0..4)) {
        let mut bytes = write(&m);
        for (at, b) in spoil {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = b;
            }
        }
        let Ok(frame) = link(1, &bytes, bytes.len() as u32) else { return Ok(()) };
        let Network::Ip(data) = frame.network else { return Ok(()) };
        let Ok(ip) = gannet_wire::ip(data, frame.wire_len, false) else { return Ok(()) };
        if ip.fragment.is_some() || ip.total_len == 0 || ip.payload_len == 0 {
            return Ok(());
        }
        // etherparse parses headers after IPv4 authentication headers; gannet treats those as
        // payload.
        if !matches!(ip.protocol, protocol::TCP | protocol::UDP) {
            return Ok(());
        }
        let Ok(theirs) = SlicedPacket::from_ip(data) else { return Ok(()) };
        match theirs.transport {
            Some(TransportSlice::Tcp(t)) => {
                let Ok(ours) = gannet_wire::tcp(&ip) else { panic!("theirs: {t:?}") };
                prop_assert_eq!((ours.src_port, ours.dst_port), (t.source_port(), t.destination_port()));
                prop_assert_eq!((ours.seq, ours.ack), (t.sequence_number(), t.acknowledgment_number()));
                prop_assert_eq!((ours.flags.syn(), ours.flags.fin()), (t.syn(), t.fin()));
                prop_assert_eq!((ours.options, ours.payload), (t.options(), t.payload()));
            }
            Some(TransportSlice::Udp(u)) => {
                let ours = gannet_wire::udp(&ip).unwrap();
                prop_assert_eq!((ours.src_port, ours.dst_port), (u.source_port(), u.destination_port()));
                prop_assert_eq!(ours.length, u.length());
            }
            _ => {}
        }
    }

    #[test]
    fn nothing_panics(link_type in prop_oneof![0u16..300, Just(1u16)], data in vec(any::<u8>(), 0..200), wire_len in any::<u32>()) {
        let Ok(frame) = link(link_type, &data, wire_len) else { return Ok(()) };
        prop_assert!(frame.subframes().count() <= data.len());
        if let Network::Ip(data) = frame.network
            && let Ok(ip) = gannet_wire::ip(data, frame.wire_len, false)
        {
            for part in [
                gannet_wire::tcp(&ip).map_or(0, |t| t.payload.len()),
                gannet_wire::udp(&ip).map_or(0, |u| u.payload.len()),
                gannet_wire::icmp(&ip).map_or(0, |m| m.payload.len()),
            ] {
                prop_assert!(part <= ip.payload.len());
            }
        }
    }

    #[test]
    fn extension_headers_stay_within_the_data(first in any::<u8>(), rest in vec(prop_oneof![Just(0u8), Just(43), Just(44), Just(60), Just(51), any::<u8>()], 0..120)) {
        let mut p = vec![0x60, 0, 0, 0, 0, rest.len() as u8, first, 9];
        p.extend_from_slice(&[7; 32]);
        p.extend_from_slice(&rest);
        if let Ok(ip) = gannet_wire::ip(&p, p.len() as u32, false) {
            prop_assert_eq!(ip.header.len() + ip.payload.len(), p.len());
            prop_assert_eq!(ip.header.len() % 4, 0);
        }
    }
}
