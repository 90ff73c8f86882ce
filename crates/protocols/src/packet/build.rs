//! Builds the packet headers of events from the bytes of packets.

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_event::Id4;
use gannet_event::Port;
use gannet_wire::Datagram;
use gannet_wire::Icmp;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::protocol;

use super::events::IcmpContext;
use super::events::MldGroupType;
use super::events::MldRecord;
use super::events::NdOption;
use super::events::PrefixInfo;
use super::events::SynPacket;
use super::events::TcpOptionRecord;
use super::fields::addr4;
use super::fields::addr6;
use super::fields::be16;
use super::fields::be32;
use super::fields::byte;
use super::headers::IcmpHdr;
use super::headers::Ip4Hdr;
use super::headers::Ip6Hdr;
use super::headers::L2Hdr;
use super::headers::Layer3;
use super::headers::LinkEncap;
use super::headers::PktHdr;
use super::headers::RawPktHdr;
use super::headers::TcpHdr;
use super::headers::UdpHdr;
use super::ip6::extensions;

/// The headers of an IP packet.
pub fn packet(ip: &Ip<'_>) -> PktHdr {
    let mut all = PktHdr::default();
    let h = ip.header;
    if ip.version == 4 {
        let flags = be16(h, 6);
        all.ip = Some(Ip4Hdr {
            hl: (byte(h, 0) & 15) * 4,
            tos: byte(h, 1),
            len: be16(h, 2),
            id: be16(h, 4),
            df: flags & 0x4000 != 0,
            mf: flags & 0x2000 != 0,
            offset: (flags & 0x1fff) * 8,
            ttl: byte(h, 8),
            p: byte(h, 9),
            sum: be16(h, 10),
            src: addr4(h, 12),
            dst: addr4(h, 16),
        });
    } else {
        let first = be32(h, 0);
        all.ip6 = Some(Ip6Hdr {
            class: first >> 20 & 0xff,
            flow: first & 0xf_ffff,
            len: be16(h, 4),
            nxt: byte(h, 6),
            hlim: byte(h, 7),
            src: addr6(h, 8),
            dst: addr6(h, 24),
            exts: extensions(h, byte(h, 6)),
        });
    }
    if ip.fragment.is_some_and(|f| f.offset != 0) {
        return all;
    }
    let t = ip.payload;
    let payload_len = stated_payload_len(ip);
    // As in Zeek, a transport header is read only if the whole payload was captured.
    let holds = |min: usize| payload_len >= min && t.len() >= payload_len;
    let ports = |proto| {
        let number = |at| u16::try_from(be16(t, at)).unwrap_or_default();
        (Port(number(0), proto), Port(number(2), proto))
    };
    match ip.protocol {
        protocol::TCP if holds(20) => {
            let (sport, dport) = ports(Proto::Tcp);
            let hl = (byte(t, 12) >> 4) * 4;
            all.tcp = Some(TcpHdr {
                sport,
                dport,
                seq: be32(t, 4),
                ack: be32(t, 8),
                hl,
                dl: (payload_len as u64).saturating_sub(hl),
                reserved: byte(t, 12) & 15,
                flags: byte(t, 13),
                win: be16(t, 14),
            });
        }
        protocol::UDP if holds(8) => {
            let (sport, dport) = ports(Proto::Udp);
            all.udp = Some(UdpHdr { sport, dport, ulen: be16(t, 4) });
        }
        protocol::ICMP if holds(ICMP_LEN) => {
            all.icmp = Some(IcmpHdr { icmp_type: byte(t, 0) });
        }
        protocol::ICMP6 if holds(8) => {
            all.icmp = Some(IcmpHdr { icmp_type: byte(t, 0) });
        }
        _ => {}
    }
    all
}

/// Minimum length of an ICMP message that Zeek reads: that of its longest header.
const ICMP_LEN: usize = 28;

/// Length of the payload according to the IP header, in bytes; zero if segmentation offload left
/// the field empty.
fn stated_payload_len(ip: &Ip<'_>) -> usize {
    if ip.version == 4 && ip.total_len == 0 {
        return 0;
    }
    (ip.total_len as usize).saturating_sub(ip.header.len())
}

/// Formats an Ethernet address.
pub fn mac(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    digits.join(":")
}

/// A datagram whose last fragment is in the current frame.
#[derive(Debug)]
pub struct Reassembled {
    /// Its headers.
    pub headers: PktHdr,
    /// Length of its headers and payload, in bytes.
    pub total_len: u32,
}

/// Sets flags and fragment offset of an IPv4 header.
pub fn with_flags(mut headers: PktHdr, flags: u16) -> PktHdr {
    if let Some(ip) = &mut headers.ip {
        (ip.df, ip.mf) = (flags & 0x4000 != 0, flags & 0x2000 != 0);
        ip.offset = u64::from(flags & 0x1fff) * 8;
    }
    headers
}

/// The headers of a frame; those of the datagram instead, if the frame completed one.
pub fn frame(
    link_type: u16,
    data: &[u8],
    wire_len: u32,
    reassembled: Option<Reassembled>,
) -> RawPktHdr {
    let is_ethernet = link_type == gannet_wire::link_type::ETHERNET;
    let mut l2 = L2Hdr {
        encap: if is_ethernet { LinkEncap::Ethernet } else { LinkEncap::Unknown },
        len: u64::from(wire_len),
        cap_len: data.len() as u64,
        src: None,
        dst: None,
        vlan: None,
        vlan_pcp: None,
        vlan_dei: None,
        inner_vlan: None,
        inner_vlan_pcp: None,
        inner_vlan_dei: None,
        eth_type: None,
        proto: Layer3::Unknown,
    };
    if is_ethernet {
        // Zeek reports zeros for addresses that the capture truncated.
        let address = |at: usize| mac(data.get(at..at + 6).unwrap_or(&[0; 6]));
        (l2.dst, l2.src) = (Some(address(0)), Some(address(6)));
        let (ethertype, tags) = ethernet(data);
        let parts = |tag: u64| (tag & 0xfff, tag >> 13, tag >> 12 & 1 != 0);
        if let Some((id, pcp, dei)) = tags[0].map(parts) {
            (l2.vlan, l2.vlan_pcp, l2.vlan_dei) = (Some(id), Some(pcp), Some(dei));
        }
        if let Some((id, pcp, dei)) = tags[1].map(parts) {
            l2.inner_vlan = Some(id);
            (l2.inner_vlan_pcp, l2.inner_vlan_dei) = (Some(pcp), Some(dei));
        }
        l2.eth_type = Some(ethertype);
    }
    let mut headers = PktHdr::default();
    if let Ok(decoded) = gannet_wire::decode(link_type, data, wire_len) {
        l2.proto = match decoded.frame.network {
            Network::Ip(bytes) => match bytes.first().map(|b| b >> 4) {
                Some(4) if bytes.len() >= 20 => Layer3::Ipv4,
                Some(6) if bytes.len() >= 40 => Layer3::Ipv6,
                _ => Layer3::Unknown,
            },
            Network::Arp(_) => Layer3::Arp,
            _ => Layer3::Unknown,
        };
        if let Some(Reassembled { headers: all, total_len }) = reassembled {
            headers = all;
            if let Network::Ip(bytes) = decoded.frame.network {
                let at = bytes.as_ptr().addr().saturating_sub(data.as_ptr().addr());
                l2.len = at as u64 + u64::from(total_len);
            }
        } else if let Some(Datagram { ip, .. }) = decoded.datagram()
            && data.len() >= ip.total_len as usize
        {
            // A transport header is read in every fragment.
            headers = packet(&Ip { fragment: None, ..*ip });
        }
    }
    if l2.eth_type.is_some_and(|t| t == 0x0806 || t == 0x8035) {
        l2.proto = Layer3::Arp;
    }
    let PktHdr { ip, ip6, tcp, udp, icmp } = headers;
    RawPktHdr { l2, ip, ip6, tcp, udp, icmp }
}

/// The innermost EtherType, or zero if the frame is too short for one, and the first and last VLAN
/// tags.
fn ethernet(data: &[u8]) -> (u64, [Option<u64>; 2]) {
    let (mut ethertype, mut tags) = (0, [None; 2]);
    let mut add = |tag| match tags[0] {
        None => tags[0] = Some(tag),
        Some(_) => tags[1] = Some(tag),
    };
    let mut frame = data;
    while frame.len() > 16 {
        if be16(frame, 12) == 0x8903 {
            if frame.len() <= 30 {
                break;
            }
            frame = &frame[16..];
        }
        ethertype = be16(frame, 12);
        let (mut next, mut rest) = (ethertype, &frame[14..]);
        let is_tag = |next: u64| matches!(next, 0x8100 | 0x88a8 | 0x9100);
        let mut is_within = false;
        loop {
            if next == 0x8100 || !is_within && is_tag(next) {
                is_within = true;
                if rest.len() <= 4 {
                    break;
                }
                add(be16(rest, 0));
                next = be16(rest, 2);
                rest = &rest[4..];
                if next >= 1536 {
                    ethertype = next;
                }
            } else if next == 0x8926 && rest.len() > 6 {
                // The type after a VN-Tag is ignored, but that of a VLAN tag after it is used.
                next = be16(rest, 4);
                rest = &rest[6..];
                is_within = false;
                if !is_tag(next) {
                    break;
                }
            } else {
                break;
            }
        }
        match next {
            // The customer's frame after the tag of a provider backbone bridge (PBB).
            0x88e7 if rest.len() > 18 => frame = &rest[4..],
            _ => break,
        }
    }
    (ethertype, tags)
}

/// The contents of a SYN.
pub fn syn(ip: &Ip<'_>, is_orig: bool, window: u16, options: &[u8]) -> SynPacket {
    let mut syn = SynPacket {
        is_orig,
        df: ip.version == 4 && be16(ip.header, 6) & 0x4000 != 0,
        ttl: u64::from(ip.ttl),
        size: u64::from(ip.total_len),
        win_size: u64::from(window),
        win_scale: -1,
        mss: 0,
        sack_ok: false,
        ts_val: None,
        ts_ecr: None,
    };
    for option in gannet_wire::tcp_options(options) {
        match (option.kind, option.value.len()) {
            (2, 2) => syn.mss = be16(option.value, 0),
            (3, 1) => syn.win_scale = byte(option.value, 0) as i64,
            (4, 0) => syn.sack_ok = true,
            (8, 8) => {
                syn.ts_val = Some(be32(option.value, 0));
                syn.ts_ecr = Some(be32(option.value, 4));
            }
            _ => {}
        }
    }
    syn
}

/// All options of a segment including padding, up to the first malformed one: kind, length and
/// data.
pub fn raw_options(mut rest: &[u8]) -> Vec<(u8, usize, &[u8])> {
    let mut all = Vec::new();
    while let Some(kind) = rest.first().copied() {
        if kind < 2 {
            all.push((kind, 1, &rest[..0]));
            if kind == 0 {
                break;
            }
            rest = &rest[1..];
            continue;
        }
        let Some(len) = rest.get(1).map(|l| usize::from(*l)) else { break };
        let Some(data) = rest.get(2..len) else { break };
        all.push((kind, len, data));
        rest = &rest[len..];
    }
    all
}

/// Name of the weird for a TCP option whose length is invalid for its kind.
pub fn wrong_length(kind: u8, len: usize) -> Option<&'static str> {
    Some(match (kind, len) {
        (2, 4) | (3, 3) | (4, 2) | (5, 10 | 18 | 26 | 34) | (8, 10) | (27, 8) | (28, 4) => {
            return None;
        }
        (29, 4..) | (34, 2 | 6..=18) => return None,
        (2, _) => "tcp_option_mss_invalid_len",
        (3, _) => "tcp_option_window_scale_invalid_len",
        (4, _) => "tcp_option_sack_invalid_len",
        (5, _) => "tcp_option_sack_blocks_invalid_len",
        (8, _) => "tcp_option_timestamps_invalid_len",
        (27, _) => "tcp_option_qsresponse_invalid_len",
        (28, _) => "tcp_option_uto_invalid_len",
        (29, _) => "tcp_option_ao_invalid_len",
        (34, _) => "tcp_option_tfo_invalid_len",
        _ => return None,
    })
}

/// The record of an option.
pub fn option(kind: u8, len: usize, data: &[u8]) -> TcpOptionRecord<'_> {
    let mut option = TcpOptionRecord {
        kind: u64::from(kind),
        length: len as u64,
        data: None,
        mss: None,
        window_scale: None,
        sack: None,
        send_timestamp: None,
        echo_timestamp: None,
        rate: None,
        ttl_diff: None,
        qs_nonce: None,
    };
    match (kind, data.len()) {
        _ if data.is_empty() => {}
        (28 | 29 | 34, _) if wrong_length(kind, len).is_none() => {}
        (2, 2) => option.mss = Some(be16(data, 0)),
        (3, 1) => option.window_scale = Some(byte(data, 0)),
        (5, 8 | 16 | 24 | 32) => {
            option.sack = Some((0..data.len() / 4).map(|i| be32(data, i * 4)).collect());
        }
        (8, 8) => {
            option.send_timestamp = Some(be32(data, 0));
            option.echo_timestamp = Some(be32(data, 4));
        }
        (27, 6) => {
            option.rate = Some(byte(data, 0));
            option.ttl_diff = Some(byte(data, 1));
            option.qs_nonce = Some(be32(data, 2));
        }
        _ => option.data = Some(data),
    }
    option
}

/// The letters of a segment's flags.
pub fn flag_letters(flags: u8) -> String {
    let letters = [(2, 'S'), (1, 'F'), (4, 'R'), (16, 'A'), (8, 'P'), (32, 'U')];
    letters.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| *letter).collect()
}

/// The packet that an ICMP message quotes, from the bytes that the message contains of it.
pub fn context(data: &[u8], v6: bool) -> IcmpContext {
    let header = if v6 { header6(data) } else { header4(data) };
    let number = if v6 { protocol::ICMP6 } else { protocol::ICMP };
    let none = Addr::v6([0; 16]);
    let Some(h) = header else {
        let id = ConnId { orig_h: none, orig_p: 0, resp_h: none, resp_p: 0 };
        return IcmpContext {
            id: Id4(id, Proto::Unknown, number),
            len: 0,
            proto: 0,
            frag_offset: 0,
            bad_hdr_len: true,
            bad_checksum: false,
            mf: false,
            df: false,
        };
    };
    let payload = data.get(h.len..).unwrap_or_default();
    // Four bytes, the length of both ports.
    let short = payload.len() < 4;
    let (proto, kind) = match h.protocol {
        _ if short => (Proto::Unknown, 0),
        protocol::TCP => (Proto::Tcp, 1),
        protocol::UDP => (Proto::Udp, 2),
        protocol::ICMP | protocol::ICMP6 => (Proto::Icmp, 3),
        _ => (Proto::Unknown, 0),
    };
    let (orig_p, resp_p) = match proto {
        Proto::Tcp | Proto::Udp => {
            let port = |at| u16::try_from(be16(payload, at)).unwrap_or_default();
            (port(0), port(2))
        }
        Proto::Icmp => {
            let (kind, code) = (payload[0], payload[1]);
            let (rest, payload) = (0, &payload[..0]);
            let icmp = Icmp { kind, code, checksum: 0, rest, v6, payload, payload_len: 0 };
            // Zeek converts them as if they were in network byte order.
            let port = |value: u16| value.swap_bytes();
            (port(u16::from(kind)), port(u16::from(icmp.counterpart().value)))
        }
        _ => (0, 0),
    };
    let id = ConnId { orig_h: h.src, orig_p, resp_h: h.dst, resp_p };
    IcmpContext {
        id: Id4(id, proto, number),
        len: h.total_len,
        proto: kind,
        frag_offset: h.fragment_offset,
        bad_hdr_len: short,
        bad_checksum: h.bad_checksum,
        mf: h.mf,
        df: h.df,
    }
}

/// The header of a packet that an ICMP message quotes.
struct Quoted {
    src: Addr,
    dst: Addr,
    protocol: u8,
    /// Total length of the IP headers, in bytes.
    len: usize,
    total_len: u64,
    fragment_offset: u64,
    bad_checksum: bool,
    mf: bool,
    df: bool,
}

fn header4(data: &[u8]) -> Option<Quoted> {
    let first = data.get(..20)?;
    let len = usize::from(first[0] & 15) * 4;
    let flags = be16(data, 6);
    let sum = |header: &[u8]| {
        let mut sum: u64 = (0..header.len()).step_by(2).map(|at| be16(header, at)).sum();
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum
    };
    Some(Quoted {
        src: addr4(data, 12),
        dst: addr4(data, 16),
        protocol: first[9],
        len,
        total_len: be16(data, 2),
        fragment_offset: (flags & 0x1fff) * 8,
        bad_checksum: data.get(..len).is_some_and(|header| sum(header) != 0xffff),
        mf: flags & 0x2000 != 0,
        df: flags & 0x4000 != 0,
    })
}

fn header6(data: &[u8]) -> Option<Quoted> {
    let first = data.get(..40)?;
    let mut found = Quoted {
        src: addr6(data, 8),
        dst: addr6(data, 24),
        protocol: first[6],
        len: 40,
        total_len: be16(data, 4) + 40,
        fragment_offset: 0,
        bad_checksum: false,
        mf: false,
        df: false,
    };
    // Extension headers, as far as they were captured. The data after a fragment header is not a
    // header.
    while let Some(&[next, len, ..]) = data.get(found.len..found.len + 8) {
        let is_fragment = found.protocol == 44;
        let size = match found.protocol {
            0 | 43 | 60 => (usize::from(len) + 1) * 8,
            51 => (usize::from(len) + 2) * 4,
            44 => 8,
            _ => break,
        };
        if data.len() < found.len + size {
            break;
        }
        if is_fragment {
            let offset = be16(data, found.len + 2);
            (found.fragment_offset, found.mf) = (offset & 0xfff8, offset & 1 != 0);
        }
        found.protocol = next;
        found.len += size;
        if is_fragment {
            break;
        }
    }
    Some(found)
}

/// The complete records of a multicast listener report (MLDv2); `None` if `count` records without
/// sources would exceed the data.
pub fn mld_records(count: u16, mut data: &[u8]) -> Option<Vec<MldRecord<'_>>> {
    if data.len() < usize::from(count) * 20 {
        return None;
    }
    let mut all = Vec::new();
    for _ in 0..count {
        let &[kind, aux, n0, n1, ..] = data else { break };
        let (aux, sources) = (usize::from(aux) * 4, usize::from(u16::from_be_bytes([n0, n1])));
        let end = 20 + sources * 16;
        let Some(record) = data.get(..end + aux) else { break };
        all.push(MldRecord {
            group_type: MldGroupType(kind),
            aux_data_len: aux as u64,
            num_sources: sources as u64,
            multicast_addr: addr6(record, 4),
            sources: (0..sources).map(|n| addr6(record, 20 + n * 16)).collect(),
            aux_data: (aux > 0).then(|| &record[end..]),
        });
        data = &data[end + aux..];
    }
    Some(all)
}

/// The options of neighbor discovery, and the name of the weird if the last one is truncated.
pub fn nd_options(mut rest: &[u8]) -> (Vec<NdOption<'_>>, Option<&'static str>) {
    let mut all = Vec::new();
    while let Some((&otype, tail)) = rest.split_first() {
        let Some((&len, data)) = tail.split_first() else {
            return (all, Some("truncated_ICMPv6_ND_options"));
        };
        if len == 0 {
            return (all, Some("zero_length_ICMPv6_ND_option"));
        }
        // Length without type and length fields.
        let size = usize::from(len) * 8 - 2;
        let complete = data.get(..size);
        let mut option = NdOption {
            otype: u64::from(otype),
            len: u64::from(len),
            link_address: None,
            prefix: None,
            redirect: None,
            mtu: None,
            payload: None,
        };
        match (otype, complete) {
            (1 | 2, Some(address)) => option.link_address = Some(address),
            // Zeek reads this many bytes, regardless of the length field.
            (3, _) if data.len() >= 30 => {
                let seconds = |at| Interval::from_secs(be32(data, at) as i64);
                option.prefix = Some(PrefixInfo {
                    prefix_len: byte(data, 0),
                    l_flag: data[1] & 0x80 != 0,
                    a_flag: data[1] & 0x40 != 0,
                    valid_lifetime: seconds(2),
                    preferred_lifetime: seconds(6),
                    prefix: addr6(data, 14),
                });
            }
            (4, Some(header)) => {
                option.redirect = Some(context(header.get(6..).unwrap_or_default(), true));
            }
            (5, _) if data.len() >= 6 => option.mtu = Some(be32(data, 2)),
            _ => option.payload = Some(complete.unwrap_or(data)),
        }
        all.push(option);
        rest = data.get(size..).unwrap_or_default();
    }
    (all, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_neighbor_discovery_end_where_they_are_cut() {
        let (all, weird) = nd_options(b"\x01\x01abcdef\x05\x01\0\0\0\0\x05\xdc");
        assert_eq!((all.len(), weird), (2, None));
        assert_eq!((all[0].link_address, all[1].mtu), (Some(&b"abcdef"[..]), Some(1500)));
        let (all, weird) = nd_options(b"\x01\x02abc");
        assert_eq!((all[0].payload, weird), (Some(&b"abc"[..]), None));
        assert_eq!(nd_options(b"\x01\0").1, Some("zero_length_ICMPv6_ND_option"));
        assert_eq!(nd_options(b"\x01").1, Some("truncated_ICMPv6_ND_options"));
    }

    #[test]
    fn options_of_a_wrong_length_have_their_data() {
        let weird_and_data = |bytes: &[u8]| {
            let [(kind, len, data)] = raw_options(bytes)[..] else { panic!("{bytes:?}") };
            (wrong_length(kind, len), option(kind, len, data).data.map(<[u8]>::to_vec))
        };
        assert_eq!(weird_and_data(b"\x05\x02"), (Some("tcp_option_sack_blocks_invalid_len"), None));
        let cut = (Some("tcp_option_mss_invalid_len"), Some(b"a".to_vec()));
        assert_eq!(weird_and_data(b"\x02\x03a"), cut);
        let short = (Some("tcp_option_ao_invalid_len"), Some(b"k".to_vec()));
        assert_eq!(weird_and_data(b"\x1d\x03k"), short);
        // The data of these options is not in the record if their length is valid.
        assert_eq!(weird_and_data(b"\x1d\x04km"), (None, None));
        assert_eq!(weird_and_data(b"\x1c\x04ab"), (None, None));
        assert_eq!(weird_and_data(b"\x22\x06cook"), (None, None));
        assert_eq!(weird_and_data(b"\xfd\x04ex"), (None, Some(b"ex".to_vec())));
        assert_eq!(option(2, 4, b"\x05\xb4").mss, Some(1460));
    }

    #[test]
    fn records_of_multicast_groups() {
        let mut data = b"\x04\x01\0\x01".to_vec();
        data.extend([0xff; 16]);
        data.extend([1; 16]);
        data.extend(b"aux.");
        let all = mld_records(1, &data).unwrap();
        assert_eq!((all[0].group_type.0, all[0].sources.len()), (4, 1));
        assert_eq!((all[0].aux_data_len, all[0].aux_data), (4, Some(&b"aux."[..])));
        // A truncated record is not returned; the announced number of records must fit.
        assert_eq!(mld_records(1, &data[..39]).map(|all| all.len()), Some(0));
        assert!(mld_records(3, &data).is_none());
    }

    /// An IPv4 packet in an Ethernet frame with this payload, whose last `missing` bytes were not
    /// captured.
    fn ethernet4(protocol: u8, payload: &[u8], missing: usize) -> RawPktHdr {
        let mut f = vec![1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0];
        f.extend([0x45, 0, 0, 20 + payload.len() as u8, 0, 1, 0, 0, 64, protocol, 0, 0]);
        f.extend([10, 0, 0, 2, 10, 0, 0, 1]);
        f.extend_from_slice(payload);
        let wire_len = f.len() as u32;
        frame(1, &f[..f.len() - missing], wire_len, None)
    }

    #[test]
    fn a_transport_is_shown_only_if_the_datagram_was_captured() {
        let udp = [0, 53, 0, 80, 0, 20, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let complete = ethernet4(17, &udp, 0);
        assert_eq!(
            (complete.udp.map(|u| u.ulen), complete.ip.map(|ip| ip.len)),
            (Some(20), Some(40))
        );
        // One byte is missing, although the frame is as long as the datagram.
        let cut = ethernet4(17, &udp, 1);
        assert!(cut.udp.is_none() && cut.ip.is_some());
        assert_eq!((cut.l2.len, cut.l2.cap_len), (54, 53));
        let short = ethernet4(17, &udp, 15);
        assert!(short.udp.is_none() && short.ip.is_none());
        assert_eq!(short.l2.proto, Layer3::Ipv4);
    }

    #[test]
    fn an_icmp_message_is_shown_if_it_is_as_long_as_the_longest_header() {
        assert!(ethernet4(1, &[8; 27], 0).icmp.is_none());
        assert_eq!(ethernet4(1, &[8; 28], 0).icmp.map(|i| i.icmp_type), Some(8));
        assert_eq!(ethernet4(58, &[128; 8], 0).icmp.map(|i| i.icmp_type), Some(128));
    }

    #[test]
    fn the_innermost_ethertype_and_the_outermost_addresses_are_shown() {
        let zeros = frame(1, &[1; 10], 10, None).l2;
        assert_eq!(zeros.src.as_deref(), Some("00:00:00:00:00:00"));
        assert_eq!((zeros.dst.as_deref(), zeros.eth_type), (Some("01:01:01:01:01:01"), Some(0)));
        // FabricPath, then a frame with a VLAN tag and an unknown type.
        let mut f = vec![3; 12];
        f.extend([0x89, 3, 0, 0]);
        f.extend([4; 12]);
        f.extend([0x81, 0, 0x70, 5, 0x12, 0x34, 0, 0, 0, 0]);
        let l2 = frame(1, &f, f.len() as u32, None).l2;
        assert_eq!(l2.src.as_deref(), Some("03:03:03:03:03:03"));
        assert_eq!((l2.eth_type, l2.vlan), (Some(0x1234), Some(5)));
        assert_eq!((l2.vlan_pcp, l2.vlan_dei, l2.inner_vlan), (Some(3), Some(true), None));
        // The type after a VN-Tag is not reported.
        let mut f = vec![3; 12];
        f.extend([0x89, 0x26, 0, 0, 0, 0, 8, 0, 1, 2, 3]);
        assert_eq!(frame(1, &f, f.len() as u32, None).l2.eth_type, Some(0x8926));
    }

    #[test]
    fn a_frame_that_completes_a_datagram_shows_its_headers() {
        let mut f = vec![1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0];
        f.extend([0x45, 0, 0, 22, 0, 1, 0, 9, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 1, 2]);
        let headers = PktHdr {
            udp: Some(UdpHdr { sport: Port(1, Proto::Udp), dport: Port(2, Proto::Udp), ulen: 74 }),
            ..PktHdr::default()
        };
        let reassembled = Some(Reassembled { headers, total_len: 94 });
        let shown = frame(1, &f, f.len() as u32, reassembled);
        assert_eq!((shown.l2.len, shown.l2.cap_len), (108, 36));
        assert_eq!(shown.udp.map(|u| u.ulen), Some(74));
    }

    fn quoted4(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 99, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        p.extend([10, 0, 0, 2, 10, 0, 0, 1]);
        let sum: u32 = (0..20).step_by(2).map(|at| be16(&p, at) as u32).sum();
        let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend_from_slice(rest);
        p
    }

    #[test]
    fn what_an_icmp_message_is_about() {
        let c = context(&quoted4(17, &[0, 53, 0, 80]), false);
        assert_eq!((c.id.0.orig_p, c.id.0.resp_p, c.id.1, c.id.2), (53, 80, Proto::Udp, 1));
        assert_eq!(
            (c.proto, c.len, c.df, c.bad_hdr_len, c.bad_checksum),
            (2, 99, true, false, false)
        );
        let mut wrong = quoted4(17, &[0, 53, 0]);
        wrong[8] = 1;
        let c = context(&wrong, false);
        assert_eq!((c.proto, c.bad_hdr_len, c.bad_checksum), (0, true, true));
        let c = context(&wrong[..19], false);
        assert_eq!((c.id.0.orig_h, c.len, c.bad_hdr_len), (Addr::v6([0; 16]), 0, true));
    }

    #[test]
    fn what_an_icmpv6_message_is_about() {
        let mut p = vec![0x60, 0, 0, 0, 0, 12, 60, 64];
        p.extend([1; 32]);
        p.extend([17, 0, 1, 4, 0, 0, 0, 0, 0x75, 0x30, 0x32, 0xc8]);
        let c = context(&p, true);
        assert_eq!((c.id.0.orig_p, c.id.0.resp_p, c.proto, c.len), (30_000, 13_000, 2, 52));
        // Truncated within the extension header, which then counts as payload, and after it.
        for (len, is_short) in [(44, false), (48, true)] {
            let c = context(&p[..len], true);
            assert_eq!((c.proto, c.bad_hdr_len, c.len), (0, is_short, 52));
        }
    }
}
