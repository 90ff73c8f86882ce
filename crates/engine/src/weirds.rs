//! Weirds of packets: maps errors of `gannet_wire` to the names and columns of Zeek's weird.log.

use std::borrow::Cow;

use gannet_protocols::weird::PacketWeird;
use gannet_wire::Error;
use gannet_wire::Hosts;
use gannet_wire::Ipv6Fault;
use gannet_wire::Layer;

use crate::shard::Shard;
use crate::tunnels::Encapsulation;

/// An error in the form of weird.log.
pub(crate) struct Named {
    /// The name without the suffix `_in_tunnel`, which [`Scope::is_marked`] decides.
    pub(crate) name: &'static str,
    pub(crate) addl: Cow<'static, str>,
    /// The name of the analyzer that reports it; empty if none.
    pub(crate) source: &'static str,
    pub(crate) scope: Scope,
}

/// The subject of a weird. It decides which columns of weird.log are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A packet below IP, or with an invalid IP header: no addresses.
    Packet,
    /// A packet between two hosts: those of the error, or of the enclosing IP header.
    Flow,
    /// Like `Flow`, with the same name inside and outside of tunnels.
    Header,
    /// The connection that the packet belongs to.
    Connection,
    /// Nothing in particular: no addresses, and the same name inside and outside of tunnels.
    Global,
}

impl Scope {
    /// Whether the name gets the suffix `_in_tunnel` for a packet that was tunneled.
    fn is_marked(self) -> bool {
        matches!(self, Self::Packet | Self::Flow)
    }
}

/// The name of Zeek's analyzer for a layer.
pub(crate) fn analyzer(layer: Layer) -> &'static str {
    match layer {
        Layer::Ethernet => "ETHERNET",
        Layer::Fddi => "FDDI",
        Layer::Ieee80211 => "IEEE802_11",
        Layer::Llc => "LLC",
        Layer::Loop | Layer::Null => "NULL",
        Layer::Mpls => "MPLS",
        Layer::Nflog => "NFLOG",
        Layer::Novell => "NOVELL_802_3",
        Layer::Pbb => "PBB",
        Layer::Ppp => "PPP",
        Layer::PppSerial => "PPPSERIAL",
        Layer::Pppoe => "PPPOE",
        Layer::Radiotap => "IEEE802_11_RADIO",
        Layer::Sll => "LINUXSLL",
        Layer::Sll2 => "LINUXSLL2",
        Layer::Snap => "SNAP",
        Layer::Vlan => "VLAN",
        Layer::VnTag => "VNTAG",
        Layer::Arp => "ARP",
        Layer::Ip => "IP",
        Layer::Icmp => "ICMP",
        Layer::Tcp => "TCP",
        Layer::Udp => "UDP",
        Layer::Ayiya => "AYIYA",
        Layer::Geneve => "GENEVE",
        Layer::Gre => GRE,
        Layer::Teredo => "TEREDO",
        Layer::Vxlan => "VXLAN",
    }
}

pub(crate) const GRE: &str = "GRE";
/// The source of weirds of IP tunnels.
pub(crate) const IP_TUNNEL: &str = "IPTUNNEL";

/// The name and columns of an error in weird.log.
#[cold]
pub(crate) fn named(error: &Error) -> Named {
    let (scope, source, name) = match *error {
        Error::UdpLen { .. } => (Scope::Connection, "UDP", "UDP_datagram_length_mismatch"),
        Error::TcpHeaderTooShort => (Scope::Connection, "TCP", "bad_TCP_header_len"),
        Error::TruncatedTcpOptions => (Scope::Connection, "TCP", "truncated_header"),
        Error::TruncatedListener => (Scope::Connection, "ICMP", "truncated_ICMPv6_MLDv1"),
        Error::TruncatedListenerReport => (Scope::Connection, "ICMP", "truncated_ICMPv6_MLDv2"),
        Error::TruncatedListenerRecord => {
            (Scope::Connection, "ICMP", "truncated_ICMPv6_MLDv2_record")
        }
        Error::TeredoBubblePayload => (Scope::Connection, "TEREDO", "Teredo_bubble_with_payload"),
        Error::Truncated(Layer::Teredo) => (Scope::Connection, "TEREDO", "truncated_Teredo"),
        Error::TruncatedTeredoOrigin => {
            (Scope::Connection, "TEREDO", "truncated_Teredo_origin_indication")
        }
        Error::TruncatedTeredoAuthentication => {
            (Scope::Connection, "TEREDO", "truncated_Teredo_authentication")
        }
        Error::TruncatedTeredoIpv6 => (Scope::Connection, "TEREDO", "truncated_IPv6_in_Teredo"),
        Error::DatagramTooShort(layer) => (Scope::Flow, analyzer(layer), "truncated_header"),
        Error::TruncatedTransport(layer) => {
            (Scope::Flow, analyzer(layer), "internally_truncated_header")
        }
        Error::IpChecksum(_) => (Scope::Flow, "IP", "bad_IP_checksum"),
        Error::Ipv6(Ipv6Fault::MobilityChecksum, _) => (Scope::Flow, "IP", "bad_MH_checksum"),
        Error::Ipv6(Ipv6Fault::MobilityPayload, _) => (Scope::Flow, "IP", "mobility_piggyback"),
        Error::Ipv6(fault, _) => (Scope::Header, "", header(fault)),
        Error::Truncated(Layer::Gre) => (Scope::Flow, GRE, "truncated_GRE"),
        Error::UnknownVersion(Layer::Gre, _) => (Scope::Flow, GRE, "unknown_gre_version"),
        Error::EnhancedGreType(_) => (Scope::Flow, GRE, "egre_protocol_type"),
        Error::GreRouting => (Scope::Flow, GRE, "gre_routing"),
        Error::GreFlags => (Scope::Flow, GRE, "unknown_gre_flags"),
        Error::GreWithoutIp => (Scope::Flow, GRE, "non_ip_packet_in_encap"),
        Error::InnerVersion => (Scope::Flow, IP_TUNNEL, "invalid_inner_IP_version"),
        Error::InnerTooShort => (Scope::Flow, IP_TUNNEL, "truncated_inner_IP"),
        Error::InnerTooLong => (Scope::Flow, IP_TUNNEL, "inner_IP_payload_length_mismatch"),
        Error::UnknownVersion(Layer::Geneve, _) => {
            (Scope::Flow, "GENEVE", "geneve_invalid_version")
        }
        Error::EmptyTunnel(layer) => (Scope::Flow, analyzer(layer), empty(layer)),
        Error::PppoeTooShort => (Scope::Global, "PPPOE", "pppoe_truncated_payload"),
        Error::Truncated(Layer::Fddi) => (Scope::Global, "FDDI", "FDDI_analyzer_failed"),
        Error::TooDeep(last) => {
            (Scope::Packet, last.map_or("ROOT", analyzer), "max_packet_analyzer_depth_exceeded")
        }
        Error::Truncated(layer) => (Scope::Packet, analyzer(layer), truncated(layer)),
        Error::TruncatedSnapLlc => (Scope::Packet, "SNAP", "truncated_snap_llc_header"),
        Error::TruncatedFabricPath => (Scope::Packet, "ETHERNET", "truncated_link_header_cfp"),
        Error::TruncatedHdlc => (Scope::Packet, "PPP", "truncated_ppp_hdlc_header"),
        Error::TruncatedIeee80211Llc => {
            (Scope::Packet, "IEEE802_11", "truncated_802_11_llc_header")
        }
        Error::TruncatedSubframeHeader => {
            (Scope::Packet, "IEEE802_11", "truncated_802_11_amsdu_header")
        }
        Error::TruncatedSubframe => (Scope::Packet, "IEEE802_11", "truncated_802_11_amsdu_packet"),
        Error::InvalidSubframe => {
            (Scope::Packet, "IEEE802_11", "invalid_802_11_amsdu_inner_packet")
        }
        Error::UndefinedProtocol(Layer::Vlan) => (Scope::Packet, "VLAN", "undefined_vlan_protocol"),
        Error::UndefinedProtocol(layer) => (Scope::Packet, analyzer(layer), "undefined_ether_type"),
        Error::NotDissected(layer) => {
            (Scope::Packet, analyzer(layer), "no_suitable_analyzer_found")
        }
        Error::UnknownVersion(Layer::Nflog, _) => (Scope::Packet, "NFLOG", "unknown_nflog_version"),
        Error::UnknownVersion(layer, _) => (Scope::Packet, analyzer(layer), "unknown_ip_version"),
        Error::ThirdVlan => (Scope::Packet, "VLAN", "triple_tagged_vlan_unsupported"),
        Error::PppoeTooLong => (Scope::Packet, "PPPOE", "pppoe_extra_data_after_payload"),
        Error::NflogWithoutPacket => (Scope::Packet, "NFLOG", "nflog_no_pcap_payload"),
        Error::NflogValueTooShort | Error::NflogValueTooLong(..) => {
            (Scope::Packet, "NFLOG", "nflog_bad_tlv_len")
        }
        Error::ZeroIpLen => (Scope::Packet, "IP", "ip_hdr_len_zero"),
        Error::IpTooLong => (Scope::Packet, "IP", "truncated_IP_len"),
        Error::IpHeadersTooLong => (Scope::Packet, "IP", INVALID_IP_HEADER_SIZE),
        Error::TruncatedIpOptions => (Scope::Packet, "IP", "internally_truncated_header"),
        Error::IpHeaderTooShort => (Scope::Packet, "IP", "IPv4_min_header_size"),
    };
    Named { name, addl: addl(error), source, scope }
}

pub(crate) const INVALID_IP_HEADER_SIZE: &str = "invalid_IP_header_size";

fn header(fault: Ipv6Fault) -> &'static str {
    match fault {
        Ipv6Fault::SecondRouting => "multiple_routing_headers",
        Ipv6Fault::Routing0 => "routing0_hdr",
        Ipv6Fault::OddRouting0Len => "odd_routing0_len",
        Ipv6Fault::Routing2Len => "bad_routing2_len",
        Ipv6Fault::UnknownRouting(_) => "unknown_routing_type",
        Ipv6Fault::DestOptionLen => "bad_ipv6_dest_opt_len",
        Ipv6Fault::HomeAddressLen => "bad_home_addr_len",
        Ipv6Fault::SecondHomeAddress => "multiple_home_addr_opts",
        Ipv6Fault::MobilityChecksum => "bad_MH_checksum",
        Ipv6Fault::MobilityPayload => "mobility_piggyback",
    }
}

fn truncated(layer: Layer) -> &'static str {
    match layer {
        Layer::Ethernet => "truncated_ethernet_frame",
        Layer::Vlan => "truncated_VLAN_header",
        Layer::Llc => "truncated_llc_header",
        Layer::Snap => "truncated_snap_header",
        Layer::Mpls => "truncated_link_header",
        Layer::Nflog => "truncated_nflog_header",
        Layer::Null | Layer::Loop => "null_analyzer_failed",
        Layer::Pbb => "truncated_PBB_header",
        Layer::Ppp => "truncated_ppp_header",
        Layer::PppSerial => "truncated_ppp_serial_header",
        Layer::Pppoe => "truncated_pppoe_header",
        Layer::Sll => "truncated_Linux_SLL_header",
        Layer::Sll2 => "truncated_Linux_SLL2_header",
        Layer::VnTag => "truncated_vntag_header",
        Layer::Radiotap => "truncated_radiotap_header",
        Layer::Ieee80211 => "truncated_802_11_header",
        Layer::Ip => "truncated_IP",
        Layer::Arp => "truncated_ARP",
        _ => "truncated_header",
    }
}

fn empty(tunnel: Layer) -> &'static str {
    match tunnel {
        Layer::Ayiya => "ayiya_empty_packet",
        Layer::Geneve => "geneve_empty_packet",
        _ => "vxlan_empty_packet",
    }
}

/// The column `addl` of an error.
fn addl(error: &Error) -> Cow<'static, str> {
    match *error {
        Error::ThirdVlan => "inner VLAN tag overwritten".into(),
        Error::NflogValueTooLong(len, captured) => format!("({len} > {captured})").into(),
        Error::Ipv6(Ipv6Fault::UnknownRouting(kind), _) => kind.to_string().into(),
        Error::UdpLen { stated, by_ip } => format!("{stated} != {by_ip}").into(),
        Error::EnhancedGreType(kind) => format!("proto={kind}").into(),
        Error::UnknownVersion(Layer::Gre, version) => format!("version={version}").into(),
        Error::UnknownVersion(Layer::Geneve, version) => version.to_string().into(),
        _ => "".into(),
    }
}

impl Shard {
    /// Reports the error of a packet with the columns of its scope. `hosts` are those of the
    /// enclosing IP header, if the packet has one.
    #[cold]
    pub(crate) fn weird(
        &mut self,
        error: &Error,
        encapsulation: &Encapsulation,
        hosts: Option<Hosts>,
    ) {
        let named = named(error);
        let what = PacketWeird {
            name: named.name,
            addl: &named.addl,
            source: (!named.source.is_empty()).then_some(named.source),
            in_tunnel: encapsulation.depth() > 0 && named.scope.is_marked(),
        };
        let own = match *error {
            Error::IpChecksum(hosts) | Error::Ipv6(_, hosts) => Some(hosts),
            _ => None,
        };
        let hosts = match named.scope {
            Scope::Packet | Scope::Flow | Scope::Header => own.or(hosts),
            Scope::Connection | Scope::Global => None,
        };
        let env = &mut self.env;
        match hosts {
            Some((src, dst)) => env.weirds.flow(&mut env.logs, self.now, src, dst, &what),
            None => env.weirds.packet(&mut env.logs, self.now, &what),
        }
    }
}

#[cfg(test)]
mod tests {
    use gannet_base::Addr;

    use super::*;

    #[test]
    fn additional_facts() {
        let addl = |error| named(&error).addl;
        assert_eq!(addl(Error::UdpLen { stated: 8, by_ip: 43 }), "8 != 43");
        assert_eq!(addl(Error::UnknownVersion(Layer::Gre, 3)), "version=3");
        assert_eq!(addl(Error::NflogValueTooLong(12, 8)), "(12 > 8)");
        assert_eq!(addl(Error::IpTooLong), "");
    }

    #[test]
    fn only_packets_and_flows_are_marked_in_tunnels() {
        let is_marked = |error| named(&error).scope.is_marked();
        let hosts = (Addr::v4([192, 0, 2, 1]), Addr::v4([192, 0, 2, 2]));
        assert!(is_marked(Error::Truncated(Layer::Ip)));
        assert!(is_marked(Error::DatagramTooShort(Layer::Udp)));
        assert!(is_marked(Error::Ipv6(Ipv6Fault::MobilityPayload, hosts)));
        assert!(!is_marked(Error::Ipv6(Ipv6Fault::Routing0, hosts)));
        assert!(!is_marked(Error::TcpHeaderTooShort));
        assert!(!is_marked(Error::PppoeTooShort));
    }
}
