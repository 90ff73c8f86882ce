//! Floods: traffic that fills the tables of an analyser, mixed with ordinary traffic.
//!
//! A flood is generated frame by frame while it is written, so that its length costs no memory.

use std::net::Ipv4Addr;
use std::net::SocketAddr;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Error;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Writer;

use crate::Frame;
use crate::Rng;
use crate::Trace;
use crate::dns;
use crate::frame;
use crate::frame::ACK;
use crate::frame::PSH;
use crate::frame::SYN;
use crate::frame::TcpHeader;

/// The kind of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SYNs without an answer, each in a new connection.
    Syn,
    /// Established connections without data.
    Connections,
    /// Datagrams to closed ports, each in a new connection.
    Udp,
    /// First fragments of datagrams that remain incomplete.
    Fragments,
    /// Established connections, each with ten segments above a hole that is never filled.
    Segments,
    /// Queries without an answer, sixty ids from each port.
    Dns,
    /// Established connections, each with ninety requests that are never answered.
    Http,
    /// GRE tunnels between new hosts for each frame, with SYNs of new connections inside.
    Tunnels,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Syn,
        Self::Connections,
        Self::Udp,
        Self::Fragments,
        Self::Segments,
        Self::Dns,
        Self::Http,
        Self::Tunnels,
    ];

    /// Number of frames per connection, datagram or port.
    fn frames(self) -> u64 {
        match self {
            Self::Syn | Self::Udp | Self::Fragments | Self::Tunnels => 1,
            Self::Connections => HANDSHAKE,
            Self::Segments => HANDSHAKE + SEGMENTS,
            Self::Dns => QUERIES,
            Self::Http => HANDSHAKE + 2 * REQUEST_SEGMENTS,
        }
    }
}

const HANDSHAKE: u64 = 3;
const SEGMENTS: u64 = 10;
const QUERIES: u64 = 60;
const REQUEST_SEGMENTS: u64 = 3;
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n";

/// The parameters of a flood.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Its kind.
    pub kind: Kind,
    /// Number of different connections, datagrams or ports.
    pub count: u64,
    /// Frames per second.
    pub rate: u64,
    /// Number of ordinary exchanges, evenly distributed over the flood: half of them HTTP, half of
    /// them DNS lookups.
    pub ordinary: u64,
    /// Seed of addresses and payloads.
    pub seed: u64,
}

const START: Time = Time::from_secs(1_700_000_000);
const TARGET: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 80);

impl Flood {
    /// Writes the flood.
    ///
    /// # Errors
    /// Those of [`Writer::write`].
    pub fn write(&self, writer: &mut Writer) -> Result<(), Error> {
        let mut ordinary = self.ordinary().into_iter().peekable();
        let frames = self.count * self.kind.frames();
        let mut rng = Rng::new(self.seed);
        let mut number = 0;
        let mut put = |time: Time, bytes: &[u8]| {
            number += 1;
            let wire_len = bytes.len() as u32;
            let link_type = LinkType::ETHERNET;
            writer.write(&Packet {
                time,
                wire_len,
                link_type,
                interface: 0,
                format: Format::Pcap,
                number,
                data: bytes,
            })
        };
        for at in 0..frames {
            let time = self.time(at);
            while let Some(frame) = ordinary.next_if(|f| f.time <= time) {
                put(frame.time, &frame.bytes)?;
            }
            put(time, &self.frame(at, &mut rng))?;
        }
        ordinary.try_for_each(|frame| put(frame.time, &frame.bytes))
    }

    fn time(&self, at: u64) -> Time {
        let nanos = u128::from(at) * 1_000_000_000 / u128::from(self.rate.max(1));
        START + Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 2))
    }

    /// The frames of the ordinary exchanges, in order of time.
    fn ordinary(&self) -> Vec<Frame> {
        let frames = self.count * self.kind.frames();
        let mut all = Vec::new();
        for n in 0..self.ordinary {
            let start = self.time(frames / self.ordinary.max(1) * n);
            let mut trace = Trace::new(start, self.seed ^ (n + 1));
            let client = |port| {
                let host = Ipv4Addr::new(198, 51, 100, 1 + (n % 200) as u8);
                SocketAddr::from((host, port + (n / 200) as u16))
            };
            if n % 2 == 0 {
                let server = SocketAddr::from(([192, 0, 2, 80], 80));
                trace.exchange(client(20_000), server, REQUEST, b"HTTP/1.1 204 No Content\r\n\r\n");
            } else {
                let server = SocketAddr::from(([192, 0, 2, 53], 53));
                let answer = [(dns::Data::Address(TARGET.into()), 60)];
                trace.lookup(client(30_000), server, ("example.org", 1), 0, &answer);
            }
            all.extend_from_slice(trace.frames());
        }
        all.sort_by_key(|f| f.time);
        all
    }

    fn frame(&self, at: u64, rng: &mut Rng) -> Vec<u8> {
        let frames = self.kind.frames();
        let (which, step) = (at / frames, at % frames);
        let client = Self::client(which);
        let to = |port| SocketAddr::from((TARGET, port));
        let id = which as u16;
        match self.kind {
            Kind::Syn => {
                let header = TcpHeader {
                    seq: rng.next_u32(),
                    ack: 0,
                    flags: SYN,
                    window: 1_024,
                    options: &[2, 4, 5, 0xb4],
                };
                frame::tcp(client, to(80), id, header, &[])
            }
            Kind::Connections => Self::stream(client, to(9_999), id, step, 1, None),
            Kind::Udp => {
                let port = 10_000 + rng.below(20_000) as u16;
                frame::udp(client, to(port), id, &rng.bytes(32))
            }
            Kind::Fragments => {
                let SocketAddr::V4(from) = client else { return Vec::new() };
                frame::first_fragment(*from.ip(), TARGET, id, &rng.bytes(512))
            }
            Kind::Segments => {
                // Each segment follows a hole.
                let data = 2 + (step.saturating_sub(HANDSHAKE) * 1_400) as u32;
                let payload = vec![b'x'; 1_399];
                Self::stream(client, to(9_999), id, step, data, Some(&payload))
            }
            Kind::Dns => {
                let query = dns::query(step as u16, "example.org", 1);
                frame::udp(client, to(53), id, &query)
            }
            Kind::Http => {
                let sent = step.saturating_sub(HANDSHAKE);
                let requests = REQUEST.repeat(30);
                let data = 1 + (sent / 2) as u32 * requests.len() as u32;
                let payload = (sent % 2 == 0).then_some(&requests[..]);
                let data = if payload.is_some() { data } else { data + requests.len() as u32 };
                Self::stream(client, to(80), id, step, data, payload)
            }
            Kind::Tunnels => {
                let SocketAddr::V4(from) = client else { return Vec::new() };
                let inner =
                    SocketAddr::from((Ipv4Addr::from(0x0b00_0000 | which as u32 & 0xff_ffff), 7));
                let header = TcpHeader { seq: 1, ack: 0, flags: SYN, window: 1_024, options: &[] };
                let inner = frame::tcp(inner, to(80), id, header, &[]);
                let gre = [&[0, 0, 0x08, 0][..], &inner[14..14 + 40]].concat();
                frame::ip((*from.ip()).into(), TARGET.into(), 47, id, &gre)
            }
        }
    }

    /// A frame of a connection that is set up at once: its handshake, then data, or an
    /// acknowledgement of everything before `data` if there is none.
    fn stream(
        client: SocketAddr,
        server: SocketAddr,
        id: u16,
        step: u64,
        data: u32,
        payload: Option<&[u8]>,
    ) -> Vec<u8> {
        let (first, second) = (1_000_u32, 9_000_u32);
        let header = |seq, ack, flags| TcpHeader { seq, ack, flags, window: 64_240, options: &[] };
        match (step, payload) {
            (0, _) => frame::tcp(client, server, id, header(first, 0, SYN), &[]),
            (1, _) => frame::tcp(server, client, id, header(second, first + 1, SYN | ACK), &[]),
            (2, _) => frame::tcp(client, server, id, header(first + 1, second + 1, ACK), &[]),
            (_, Some(payload)) => {
                let header = header(first.wrapping_add(data), second + 1, PSH | ACK);
                frame::tcp(client, server, id, header, payload)
            }
            (_, None) => {
                let header = header(second + 1, first.wrapping_add(data), ACK);
                frame::tcp(server, client, id, header, &[])
            }
        }
    }

    /// A client address, unique for each number, in pseudorandom order.
    fn client(which: u64) -> SocketAddr {
        let host = (which as u32).wrapping_mul(0x009e_3779) & 0xff_ffff;
        let port = 1_024 + (which >> 24) as u16;
        SocketAddr::from((Ipv4Addr::from(0x0a00_0000 | host), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn clients_are_all_different() {
        let all: HashSet<_> =
            (0..200_000).chain((1 << 24)..(1 << 24) + 1_000).map(Flood::client).collect();
        assert_eq!(all.len(), 201_000);
    }

    #[test]
    fn ordinary_traffic_is_spread_over_the_flood() {
        for kind in Kind::ALL {
            let flood = Flood { kind, count: 100, rate: 1_000, ordinary: 10, seed: 1 };
            let frames = flood.ordinary();
            assert_eq!(frames.len(), 5 * 10 + 5 * 2);
            assert!(frames.is_sorted_by_key(|f| f.time));
            let length = flood.time(100 * kind.frames()) - START;
            assert!(frames[59].time > START + Interval::from_nanos(length.as_nanos() / 2));
        }
    }

    #[test]
    fn segments_leave_a_hole_below_each() {
        let flood = Flood { kind: Kind::Segments, count: 1, rate: 1, ordinary: 0, seed: 1 };
        let mut rng = Rng::new(1);
        let seq = |at| {
            let f = flood.frame(at, &mut rng.clone());
            u32::from_be_bytes([f[38], f[39], f[40], f[41]])
        };
        assert_eq!((seq(0), seq(2), seq(3), seq(4)), (1_000, 1_001, 1_002, 2_402));
        assert!(flood.frame(5, &mut rng).len() == 14 + 40 + 1_399);
    }
}
