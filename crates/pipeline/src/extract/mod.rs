//! Extracts DNS messages from packets, over UDP and from reassembled TCP streams.
//!
//! An [`Extractor`] receives packets of any link type in order, reassembles IP fragments and returns every complete
//! [`Message`] to or from one of the DNS ports. Other packets are counted in [`Skipped`].

mod streams;

use gannet_base::Addr;
use gannet_base::Time;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_flow::Fragments;
use gannet_wire as wire;
use gannet_wire::Contents;
use gannet_wire::Datagram;
use gannet_wire::Decoded;
use gannet_wire::Ip;
use gannet_wire::Network;
use gannet_wire::protocol;

use streams::Streams;

/// Size of a DNS header in bytes (RFC 1035 §4.1.1); shorter data is not a message.
const HEADER: usize = 12;

/// Transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A UDP datagram.
    Udp,
    /// A TCP stream, in which each message is prefixed with its length (RFC 1035 §4.2.2).
    Tcp,
}

/// A DNS message, borrowed from its packet or stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Capture time of its last byte.
    pub time: Time,
    /// Address and port of the sender.
    pub source: (Addr, u16),
    /// Address and port of the receiver.
    pub destination: (Addr, u16),
    /// Transport of the message.
    pub transport: Transport,
    /// The message, without the length prefix of a stream.
    pub bytes: &'a [u8],
}

impl Message<'_> {
    /// Whether the message is a query.
    #[inline]
    pub fn is_query(&self) -> bool {
        is_query(self.bytes)
    }
}

/// Whether a message is a query: its QR bit is clear.
#[inline]
pub fn is_query(message: &[u8]) -> bool {
    message.get(2).is_some_and(|flags| flags & 0x80 == 0)
}

/// Counts of packets and messages that were not extracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Packets that are not UDP or TCP over IP, of other ports, or malformed.
    pub packets: u64,
    /// Messages that are truncated in the capture.
    pub truncated: u64,
    /// Payloads on a DNS port that are too short for DNS, including empty datagrams.
    pub not_dns: u64,
    /// TCP streams that could not be parsed: their start or a part was not captured, they are not DNS, or a limit was
    /// reached.
    pub streams: u64,
}

/// Extracts DNS messages from packets.
#[derive(Debug)]
pub struct Extractor {
    ports: Vec<u16>,
    fragments: Fragments,
    streams: Streams,
    skipped: Skipped,
    /// Buffer for a reassembled datagram.
    reassembled: Vec<u8>,
}

impl Extractor {
    /// An extractor of messages to or from these ports.
    pub fn new(ports: &[u16]) -> Self {
        Self {
            ports: ports.to_vec(),
            fragments: Fragments::default(),
            streams: Streams::default(),
            skipped: Skipped::default(),
            reassembled: Vec::new(),
        }
    }

    /// The counts so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Processes a packet and calls `out` with the messages that it completes.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, out: &mut impl FnMut(&Message<'_>)) {
        match classify(&self.ports, packet, |_| true) {
            Classified::Message(message) => out(&message),
            Classified::Nothing => self.skipped.packets += 1,
            Classified::More => self.packet_with_layers(packet, out),
        }
    }

    /// Processes packets for which [`classify`] returns [`Classified::More`].
    #[inline(never)]
    fn packet_with_layers(&mut self, packet: &Packet<'_>, out: &mut impl FnMut(&Message<'_>)) {
        let decoded = wire::decode(packet.link_type.0, packet.data, packet.wire_len);
        match &decoded {
            Ok(Decoded { contents: Contents::Datagram(datagram), .. }) => {
                self.datagram(packet.time, datagram, out);
            }
            Ok(Decoded { frame, .. }) if matches!(frame.network, Network::Aggregate(_)) => {
                for sub in frame.subframes().flatten() {
                    let Network::Ip(data) = sub.network else { continue };
                    match wire::datagram(data, sub.wire_len, false) {
                        Ok(datagram) => self.datagram(packet.time, &datagram, out),
                        Err(_) => self.skipped.packets += 1,
                    }
                }
            }
            _ => self.skipped.packets += 1,
        }
    }

    fn datagram(
        &mut self,
        time: Time,
        datagram: &Datagram<'_>,
        out: &mut impl FnMut(&Message<'_>),
    ) {
        if datagram.ip.fragment.is_none() {
            return self.transport(time, datagram, out);
        }
        if !datagram.ip.is_complete() {
            self.skipped.packets += 1;
            return;
        }
        let mut reassembled = std::mem::take(&mut self.reassembled);
        reassembled.clear();
        if self.fragments.add(time, time, &datagram.ip, &mut reassembled, |_| {}) {
            match wire::datagram(&reassembled, reassembled.len() as u32, false) {
                // A reassembled datagram that claims to be a fragment is dropped.
                Ok(reassembled) if reassembled.ip.fragment.is_none() => {
                    self.transport(time, &reassembled, out);
                }
                _ => self.skipped.packets += 1,
            }
        }
        self.reassembled = reassembled;
    }

    fn transport(
        &mut self,
        time: Time,
        Datagram { ip, transport }: &Datagram<'_>,
        out: &mut impl FnMut(&Message<'_>),
    ) {
        let is_server_port = |port| self.ports.contains(&port);
        match transport {
            wire::Transport::Udp(udp)
                if is_server_port(udp.src_port) || is_server_port(udp.dst_port) =>
            {
                // If the length field is less than the payload, the rest is padding.
                let stated = usize::try_from(udp.stated_len()).ok().filter(|n| *n > 0);
                let wanted =
                    stated.unwrap_or(udp.payload_len as usize).min(udp.payload_len as usize);
                let Some(bytes) = udp.payload.get(..wanted) else {
                    self.skipped.truncated += 1;
                    return;
                };
                if bytes.len() < HEADER {
                    self.skipped.not_dns += 1;
                    return;
                }
                out(&Message {
                    time,
                    source: (ip.src, udp.src_port),
                    destination: (ip.dst, udp.dst_port),
                    transport: Transport::Udp,
                    bytes,
                });
            }
            wire::Transport::Tcp(tcp)
                if is_server_port(tcp.src_port) || is_server_port(tcp.dst_port) =>
            {
                self.streams.segment(time, ip, tcp, &mut self.skipped, out);
            }
            _ => self.skipped.packets += 1,
        }
    }
}

/// The result of [`classify`].
#[derive(Clone, Copy, Debug)]
pub enum Classified<'a> {
    /// A datagram with a selected message.
    Message(Message<'a>),
    /// A packet of other ports, or with a message that is not selected.
    Nothing,
    /// A packet that an [`Extractor`] must process: of a stream, a fragment, or an unusual packet.
    More,
}

/// Processes a packet without state, which suffices for complete datagrams, the majority. A message for which `selects`
/// returns `false` is [`Classified::Nothing`].
#[inline(always)]
pub fn classify<'a>(
    ports: &[u16],
    packet: &Packet<'a>,
    selects: impl FnOnce(&[u8]) -> bool,
) -> Classified<'a> {
    if packet.link_type == LinkType::ETHERNET
        && let Some((ip, _)) = wire::plain_ipv4(packet.data, packet.wire_len, false)
    {
        return classify_ip(ports, packet.time, &ip, selects);
    }
    classify_other(ports, packet, selects)
}

/// Like [`classify`], for packets other than plain IPv4 over Ethernet.
#[inline(never)]
fn classify_other<'a>(
    ports: &[u16],
    packet: &Packet<'a>,
    selects: impl FnOnce(&[u8]) -> bool,
) -> Classified<'a> {
    let decoded = wire::decode(packet.link_type.0, packet.data, packet.wire_len);
    match decoded.as_ref().ok().and_then(Decoded::datagram) {
        Some(datagram) if datagram.ip.fragment.is_none() => {
            classify_ip(ports, packet.time, &datagram.ip, selects)
        }
        _ => Classified::More,
    }
}

#[inline(always)]
fn classify_ip<'a>(
    ports: &[u16],
    time: Time,
    ip: &Ip<'a>,
    selects: impl FnOnce(&[u8]) -> bool,
) -> Classified<'a> {
    let Some((&[a, b, c, d, e, f, _, _], bytes)) = ip.payload.split_first_chunk() else {
        return Classified::More;
    };
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let wanted = ports.iter().any(|port| *port == from || *port == to);
    // Truncated datagrams and those with a wrong length field are left to the extractor, which counts them.
    let is_whole = ip.is_complete() && u32::from(u16::from_be_bytes([e, f])) == ip.payload_len;
    match ip.protocol {
        protocol::UDP if wanted && is_whole && bytes.len() >= HEADER => {
            if !selects(bytes) {
                return Classified::Nothing;
            }
            Classified::Message(Message {
                time,
                source: (ip.src, from),
                destination: (ip.dst, to),
                transport: Transport::Udp,
                bytes,
            })
        }
        protocol::UDP | protocol::TCP if !wanted => Classified::Nothing,
        _ => Classified::More,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: [u8; 17] = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];

    pub(super) fn ip4(protocol: u8, id: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u16;
        let mut b = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, id];
        b.extend_from_slice(&fragment.to_be_bytes());
        b.extend_from_slice(&[64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        b.extend_from_slice(payload);
        b
    }

    fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
        let mut b = Vec::new();
        for field in [src, dst, 8 + payload.len() as u16, 0] {
            b.extend_from_slice(&field.to_be_bytes());
        }
        b.extend_from_slice(payload);
        b
    }

    pub(super) fn take(extractor: &mut Extractor, data: &[u8], wire_len: usize) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        let packet = Packet {
            time: Time::from_secs(1),
            wire_len: wire_len as u32,
            link_type: LinkType::RAW,
            interface: 0,
            format: gannet_capture::Format::Pcap,
            number: 1,
            data,
        };
        extractor.packet(&packet, &mut |m| got.push(m.bytes.to_vec()));
        got
    }

    #[test]
    fn datagrams_of_dns_ports_are_messages() {
        let mut e = Extractor::new(&[53]);
        let p = ip4(17, 1, 0, &udp(1000, 53, &QUERY));
        assert_eq!(take(&mut e, &p, p.len()), [QUERY]);
        let p = ip4(17, 1, 0, &udp(53, 1000, &QUERY));
        assert_eq!(take(&mut e, &p, p.len()), [QUERY]);
        let p = ip4(17, 1, 0, &udp(5353, 5353, &QUERY));
        assert!(take(&mut e, &p, p.len()).is_empty());
        assert_eq!(e.skipped(), Skipped { packets: 1, ..Skipped::default() });
    }

    #[test]
    fn empty_and_truncated_datagrams_are_counted() {
        let mut e = Extractor::new(&[53]);
        let p = ip4(17, 1, 0, &udp(1000, 53, &[]));
        assert!(take(&mut e, &p, p.len()).is_empty());
        let p = ip4(17, 1, 0, &udp(1000, 53, &QUERY));
        assert!(take(&mut e, &p[..p.len() - 1], p.len()).is_empty());
        assert!(take(&mut e, &p[..10], p.len()).is_empty());
        assert_eq!(e.skipped(), Skipped { packets: 1, truncated: 1, not_dns: 1, streams: 0 });
    }

    #[test]
    fn padding_after_the_datagram_is_ignored() {
        let mut e = Extractor::new(&[53]);
        let mut datagram = udp(1000, 53, &QUERY);
        datagram.extend_from_slice(b"pad");
        let p = ip4(17, 1, 0, &datagram);
        assert_eq!(take(&mut e, &p, p.len()), [QUERY]);
    }

    #[test]
    fn fragments_are_reassembled() {
        let mut e = Extractor::new(&[53]);
        let datagram = udp(1000, 53, &QUERY);
        let (a, b) = datagram.split_at(16);
        let last = ip4(17, 7, 2, b);
        assert!(take(&mut e, &last, last.len()).is_empty());
        let first = ip4(17, 7, 0x2000, a);
        assert_eq!(take(&mut e, &first, first.len()), [QUERY]);
    }
}
