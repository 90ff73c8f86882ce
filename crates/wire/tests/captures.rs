//! Dissects every packet of the conformance captures through every layer and tunnel: no panic, no
//! view exceeds the captured bytes, and the faults of the lower layers are those in the weird.log
//! that Zeek writes for the capture.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use gannet_wire::Error;
use gannet_wire::Frame;
use gannet_wire::Ip;
use gannet_wire::Ipv6Fault;
use gannet_wire::Layer;
use gannet_wire::MAX_TUNNEL_DEPTH;
use gannet_wire::Network;
use gannet_wire::UpperLayer;
use gannet_wire::checksum;
use gannet_wire::protocol;
use gannet_wire::tunnel;
use gannet_wire::tunnel::Inner;
use gannet_wire::tunnel::Refusal;

/// Faults that depend on single packets only, by Zeek's names: no state, no reassembly, no
/// sampling.
const COMPARED: &[&str] = &[
    "IPv4_min_header_size",
    "bad_TCP_header_len",
    "bad_home_addr_len",
    "bad_ipv6_dest_opt_len",
    "gre_routing",
    "invalid_IP_header_size",
    "invalid_inner_IP_version",
    "ip_hdr_len_zero",
    "multiple_home_addr_opts",
    "non_ip_packet_in_encap",
    "pppoe_extra_data_after_payload",
    "routing0_hdr",
    "triple_tagged_vlan_unsupported",
    "truncated_802_11_header",
    "truncated_ARP",
    "truncated_GRE",
    "truncated_IP",
    "truncated_IP_len",
    "truncated_ethernet_frame",
    "truncated_inner_IP",
    "truncated_llc_header",
    "truncated_ppp_hdlc_header",
    "truncated_ppp_serial_header",
    "unknown_ip_version",
    "unknown_routing_type",
];

/// The name of such a fault, and whether Zeek marks the name in tunnels.
fn name_of(error: &Error) -> Option<(&'static str, bool)> {
    let name = match error {
        Error::TcpHeaderTooShort => return Some(("bad_TCP_header_len", false)),
        Error::Ipv6(fault, _) => {
            let name = match fault {
                Ipv6Fault::Routing0 => "routing0_hdr",
                Ipv6Fault::UnknownRouting(_) => "unknown_routing_type",
                Ipv6Fault::DestOptionLen => "bad_ipv6_dest_opt_len",
                Ipv6Fault::HomeAddressLen => "bad_home_addr_len",
                Ipv6Fault::SecondHomeAddress => "multiple_home_addr_opts",
                _ => return None,
            };
            return Some((name, false));
        }
        Error::Truncated(Layer::Arp) => "truncated_ARP",
        Error::Truncated(Layer::Ethernet) => "truncated_ethernet_frame",
        Error::Truncated(Layer::Gre) => "truncated_GRE",
        Error::Truncated(Layer::Ieee80211) => "truncated_802_11_header",
        Error::Truncated(Layer::Ip) => "truncated_IP",
        Error::Truncated(Layer::Llc) => "truncated_llc_header",
        Error::Truncated(Layer::PppSerial) => "truncated_ppp_serial_header",
        Error::TruncatedHdlc => "truncated_ppp_hdlc_header",
        Error::UnknownVersion(Layer::Ip, _) => "unknown_ip_version",
        Error::ThirdVlan => "triple_tagged_vlan_unsupported",
        Error::PppoeTooLong => "pppoe_extra_data_after_payload",
        Error::ZeroIpLen => "ip_hdr_len_zero",
        Error::IpTooLong => "truncated_IP_len",
        Error::IpHeadersTooLong => "invalid_IP_header_size",
        Error::IpHeaderTooShort => "IPv4_min_header_size",
        Error::GreRouting => "gre_routing",
        Error::GreWithoutIp => "non_ip_packet_in_encap",
        Error::InnerVersion => "invalid_inner_IP_version",
        Error::InnerTooShort => "truncated_inner_IP",
        _ => return None,
    };
    Some((name, true))
}

#[derive(Default)]
struct Walk {
    weirds: BTreeSet<String>,
    fragments: bool,
    packets: u64,
    transports: u64,
    inner: u64,
}

impl Walk {
    fn fault(&mut self, error: Error, tunnels: u8) {
        assert!(!error.to_string().is_empty());
        if let Some((name, is_marked)) = name_of(&error) {
            let suffix = if is_marked && tunnels > 0 { "_in_tunnel" } else { "" };
            self.weirds.insert(format!("{name}{suffix}"));
        }
    }

    fn link(&mut self, link_type: u16, data: &[u8], wire_len: u32, tunnels: u8) {
        let mut faults = Vec::new();
        let frame = gannet_wire::link_with(link_type, data, wire_len, 0, &mut |w| faults.push(w));
        faults.into_iter().for_each(|w| self.fault(w, tunnels));
        match frame {
            Err(w) => self.fault(w, tunnels),
            Ok(frame) => self.network(&frame, tunnels),
        }
    }

    fn network(&mut self, frame: &Frame<'_>, tunnels: u8) {
        match frame.network {
            Network::Ip(data) => self.ip(data, frame.wire_len, tunnels),
            Network::Arp(data) => {
                if let Err(w) = gannet_wire::arp(data) {
                    self.fault(w, tunnels);
                }
            }
            Network::Aggregate(_) => {
                for frame in frame.subframes() {
                    match frame {
                        Ok(frame) => self.network(&frame, tunnels),
                        Err(w) => self.fault(w, tunnels),
                    }
                }
            }
            Network::Other { .. } | Network::Nothing => {}
        }
    }

    fn ip(&mut self, data: &[u8], wire_len: u32, tunnels: u8) {
        // The result may only depend on the bytes, and strict parsing may fail.
        let _ = gannet_wire::ip(data, wire_len, true);
        let mut faults = Vec::new();
        let ip = gannet_wire::ip_with(data, wire_len, false, &mut |w| faults.push(w));
        faults.into_iter().for_each(|w| self.fault(w, tunnels));
        let ip = match ip {
            Ok(ip) => ip,
            Err(w) => return self.fault(w, tunnels),
        };
        assert_eq!(ip.header.len(), usize::from(ip.header_len));
        assert!(ip.header.len() + ip.payload.len() <= data.len());
        if let Some(f) = ip.fragment {
            self.fragments = true;
            let mut whole = Vec::new();
            ip.write_reassembled_header(ip.payload.len(), &mut whole);
            whole.extend_from_slice(ip.payload);
            let again = gannet_wire::ip(&whole, whole.len() as u32, false);
            assert!(again.is_err() || again.is_ok_and(|i| i.fragment.is_none()));
            if f.offset != 0 || ip.is_complete() {
                return;
            }
        }
        if ip.upper == UpperLayer::Payload {
            let lacking = wire_len - (data.len() as u32).min(wire_len);
            self.transport(&ip, lacking, tunnels);
        }
    }

    fn transport(&mut self, ip: &Ip<'_>, lacking: u32, tunnels: u8) {
        self.transports += 1;
        let failed = match ip.protocol {
            protocol::TCP => {
                checksum::tcp(ip);
                gannet_wire::tcp(ip).map(|t| {
                    assert!(gannet_wire::tcp_options(t.options).count() <= 40);
                })
            }
            protocol::UDP => {
                checksum::udp(ip);
                gannet_wire::udp(ip).map(|u| {
                    self.udp(u.src_port, u.dst_port, u.payload, lacking, tunnels);
                })
            }
            protocol::ICMP | protocol::ICMP6 => {
                checksum::icmp(ip);
                gannet_wire::icmp(ip).map(|m| {
                    m.counterpart();
                })
            }
            protocol::GRE if tunnels < MAX_TUNNEL_DEPTH => tunnel::gre(ip.payload)
                .map(|g| self.inner(g.inner, g.inner.data().len() as u32, tunnels)),
            protocol::IPV4 | protocol::IPV6 if tunnels < MAX_TUNNEL_DEPTH => {
                tunnel::ip_in_ip(ip.payload, ip.protocol)
                    .map(|p| self.inner(Inner::Ip(p), p.len() as u32, tunnels))
            }
            _ => Ok(()),
        };
        if let Err(w) = failed {
            self.fault(w, tunnels);
        }
    }

    fn udp(&mut self, src: u16, dst: u16, data: &[u8], lacking: u32, tunnels: u8) {
        if tunnels >= MAX_TUNNEL_DEPTH {
            return;
        }
        let port = |p| src == p || dst == p;
        // Every tunnel parser is called for every payload; only the one expected on the port
        // continues.
        let teredo = tunnel::teredo(data).map(|t| t.inner);
        let ayiya = tunnel::ayiya(data);
        let vxlan = tunnel::vxlan(data).map(|v| v.inner);
        let geneve = tunnel::geneve(data).map(|g| {
            assert!(g.options().count() <= 63);
            g.inner
        });
        let gtp = tunnel::gtpv1(data).and_then(|g| match g.body {
            tunnel::Body::Packet(inner) => Ok(inner),
            tunnel::Body::Control(body) => {
                assert!(tunnel::elements(body).count() <= body.len());
                Err(Refusal::Ignored)
            }
            tunnel::Body::Other(_) => Err(Refusal::Ignored),
        });
        let chosen = if port(tunnel::port::TEREDO) || tunnel::looks_like_teredo(data) {
            teredo
        } else if port(tunnel::port::AYIYA) || tunnel::looks_like_ayiya(data) {
            ayiya
        } else if port(tunnel::port::VXLAN) {
            vxlan
        } else if port(tunnel::port::GENEVE) {
            geneve
        } else if port(tunnel::port::GTPV1_C) || port(tunnel::port::GTPV1_U) {
            gtp
        } else {
            return;
        };
        match chosen {
            Ok(inner) => self.inner(inner, inner.data().len() as u32 + lacking, tunnels),
            Err(Refusal::Faulty { error, .. }) => self.fault(error, tunnels),
            Err(Refusal::Violation { .. } | Refusal::Ignored) => {}
        }
    }

    fn inner(&mut self, inner: Inner<'_>, wire_len: u32, tunnels: u8) {
        self.inner += 1;
        if let Some(link_type) = inner.link_type() {
            self.link(link_type, inner.data(), wire_len, tunnels + 1);
        }
    }
}

/// The captured bytes of a packet, and its length on the wire.
type Packet<'a> = (&'a [u8], u32);

/// Link type and packets of a classic pcap file; `None` for other formats. Like libpcap, this
/// truncates packets to the snap length of the file; empty packets are skipped.
fn pcap(file: &[u8]) -> Option<(u16, Vec<Packet<'_>>)> {
    let word: fn(&[u8], usize) -> Option<u32> = match file.first_chunk::<4>()? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => {
            |d, at| Some(u32::from_le_bytes(d.get(at..at + 4)?.try_into().ok()?))
        }
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => {
            |d, at| Some(u32::from_be_bytes(d.get(at..at + 4)?.try_into().ok()?))
        }
        _ => return None,
    };
    let snap_len = match word(file, 16)? {
        0 => usize::MAX,
        len => len as usize,
    };
    // The upper bits describe frame check sequences and are ignored here.
    let link_type = u16::try_from(word(file, 20)?).ok()?;
    let mut packets = Vec::new();
    let mut rest = file.get(24..)?;
    while let (Some(captured), Some(wire_len)) = (word(rest, 8), word(rest, 12)) {
        let Some(data) = rest.get(16..16 + captured as usize) else { break };
        if captured != 0 && wire_len != 0 {
            packets.push((data.get(..snap_len).unwrap_or(data), wire_len));
        }
        rest = &rest[16 + captured as usize..];
    }
    Some((link_type, packets))
}

fn conformance() -> PathBuf {
    std::env::var_os("GANNET_CONFORMANCE").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
        PathBuf::from,
    )
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let suites = fs::read_dir(folder).into_iter().flatten().flatten();
    let inside = suites.flat_map(|s| fs::read_dir(s.path()).into_iter().flatten().flatten());
    inside.map(|f| f.path()).collect()
}

/// The compared names in the weird.log of a capture.
fn expected(folder: &Path, capture: &Path) -> Option<BTreeSet<String>> {
    let suite = capture.parent()?.file_name()?;
    let logs = folder.join("expected").join(suite).join(capture.file_name()?);
    let text = fs::read_to_string(logs.join("weird.log")).unwrap_or_default();
    let names = text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split('\t').nth(6));
    logs.is_dir().then(|| names.map(String::from).collect())
}

fn compared(name: &str) -> bool {
    COMPARED.contains(&name.trim_end_matches("_in_tunnel"))
}

#[test]
fn the_conformance_captures() {
    let folder = conformance();
    let captures = files(&folder.join("captures"));
    if captures.is_empty() {
        println!("skipped: no captures in {}", folder.display());
        return;
    }
    let mut differ = BTreeMap::new();
    let mut total = Walk::default();
    for capture in &captures {
        let bytes = fs::read(capture).unwrap();
        let Some((link_type, packets)) = pcap(&bytes) else { continue };
        let mut walk = Walk::default();
        for (data, wire_len) in packets {
            walk.packets += 1;
            if gannet_wire::passes_filter(link_type, data) {
                walk.link(link_type, data, wire_len, 0);
            }
        }
        total.packets += walk.packets;
        total.transports += walk.transports;
        total.inner += walk.inner;
        let Some(expected) = expected(&folder, capture) else { continue };
        if walk.fragments {
            continue;
        }
        for name in walk.weirds.symmetric_difference(&expected).filter(|n| compared(n)) {
            let side = if expected.contains(name) { "missing" } else { "surplus" };
            differ.insert((capture.file_name().unwrap().to_owned(), name.clone()), side);
        }
    }
    println!(
        "{} packets, {} transport headers, {} packets from tunnels",
        total.packets, total.transports, total.inner
    );
    assert!(total.transports > total.packets / 2);
    assert!(differ.is_empty(), "{differ:#?}");
}
