//! Random packets: TCP and UDP over IPv4 and IPv6 with random fields, generated as fast as a disk
//! can write them.

use std::net::Ipv4Addr;

use gannet_base::Time;
use gannet_capture::Error;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Writer;

use crate::Rng;
use crate::frame::TCP;
use crate::frame::UDP;

const ETHERNET: usize = 14;
/// Maximum length of a payload that fits into a datagram, in bytes.
const MAX_PAYLOAD: usize = 65_000;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// The first packet's time in nanoseconds: an arbitrary one, the same for every run.
const BEGIN: i64 = 1_700_000_000_000_000_000;

/// Options of random packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RandomOptions {
    /// The seed; another seed gives other packets.
    pub seed: u64,
    /// Percentage of IPv6 packets.
    pub ipv6: u8,
    /// Percentage of UDP packets.
    pub udp: u8,
    /// Percentage of unusual packets: options, a fragment offset, a tag, a wrong length or
    /// checksum, or a truncated end.
    pub odd: u8,
    /// Maximum length of a payload in bytes, at most 65,000.
    pub payload: usize,
}

impl Default for RandomOptions {
    fn default() -> Self {
        Self { seed: 1, ipv6: 50, udp: 50, odd: 10, payload: 512 }
    }
}

/// Generates Ethernet frames from a seed: TCP and UDP over IPv4 and IPv6, with random addresses,
/// ports, flags and payload. Lengths and checksums are correct except in unusual packets.
///
/// ```
/// use gannet_synth::{RandomOptions, RandomPackets};
///
/// let mut packets = RandomPackets::new(RandomOptions::default());
/// let (frame, wire_len) = packets.next_frame();
/// assert!(frame.len() <= wire_len as usize && wire_len >= 42);
/// ```
#[derive(Clone, Debug)]
pub struct RandomPackets {
    options: RandomOptions,
    rng: Rng,
    frame: Vec<u8>,
    /// Microseconds since the first packet.
    clock: u64,
    number: u64,
}

impl RandomPackets {
    /// A generator; the same options produce the same packets.
    pub fn new(mut options: RandomOptions) -> Self {
        options.payload = options.payload.min(MAX_PAYLOAD);
        let rng = Rng::new(options.seed);
        Self { options, rng, frame: Vec::new(), clock: 0, number: 0 }
    }

    /// The captured bytes of the next frame, and its length on the wire.
    pub fn next_frame(&mut self) -> (&[u8], u32) {
        let payload = self.rng.below(self.options.payload as u64 + 1) as usize;
        let v6 = self.percent(self.options.ipv6);
        let udp = self.percent(self.options.udp);
        let odd = self.percent(self.options.odd).then(|| self.rng.below(6));
        self.frame.clear();
        self.random(12);
        if odd == Some(0) {
            let tag = self.rng.next_u32().to_be_bytes();
            self.frame.extend_from_slice(&[0x81, 0, tag[0], tag[1]]);
        }
        self.frame.extend_from_slice(if v6 { &IPV6 } else { &IPV4 });
        let transport = if udp { 8 } else { 20 + if odd == Some(1) { 12 } else { 0 } };
        let network = self.frame.len();
        let protocol = if udp { UDP } else { TCP };
        let words = if v6 {
            self.ipv6(protocol, transport + payload)
        } else {
            let options = if odd == Some(2) { 8 } else { 0 };
            let fragment = if odd == Some(3) { self.rng.next_u32() as u16 } else { 0x4000 };
            self.ipv4(protocol, transport + payload, options, fragment)
        };
        let begin = self.frame.len();
        self.random(transport + payload);
        let segment = &mut self.frame[begin..];
        let sum_at = if udp {
            segment[4..6].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
            6
        } else {
            segment[12] = (transport as u8 / 4) << 4;
            16
        };
        segment[sum_at..sum_at + 2].fill(0);
        let checksum = match folded(words + sum(segment)) {
            // RFC 768: zero means "no checksum", so a checksum of zero is sent as all ones.
            0xffff if udp => 0xffff,
            n => !n,
        };
        segment[sum_at..sum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut kept = self.frame.len();
        match odd {
            // Flips a bit of the headers.
            Some(4) => {
                let at = network + self.rng.below((begin + transport - network) as u64) as usize;
                self.frame[at] ^= 1 << self.rng.below(8);
            }
            Some(5) => kept = ETHERNET + self.rng.below((kept - ETHERNET) as u64 + 1) as usize,
            _ => (),
        }
        let wire_len = self.frame.len() as u32;
        (&self.frame[..kept], wire_len)
    }

    /// Writes the next packet, some microseconds after the previous one. Returns the number of
    /// captured bytes.
    ///
    /// # Errors
    /// Those of [`Writer::write`].
    pub fn write_next(&mut self, writer: &mut Writer) -> Result<usize, Error> {
        self.clock += self.rng.below(20);
        self.number += 1;
        let number = self.number;
        let time = Time::from_nanos(BEGIN.saturating_add_unsigned(self.clock.saturating_mul(1000)));
        let (data, wire_len) = self.next_frame();
        let link_type = LinkType::ETHERNET;
        writer.write(&Packet {
            time,
            wire_len,
            link_type,
            interface: 0,
            format: Format::Pcap,
            number,
            data,
        })?;
        Ok(data.len())
    }

    fn percent(&mut self, of: u8) -> bool {
        self.rng.below(100) < u64::from(of)
    }

    /// Appends `n` random bytes to the frame.
    fn random(&mut self, mut n: usize) {
        self.frame.reserve(n + 8);
        while n > 0 {
            let word = self.rng.next_u64().to_le_bytes();
            let take = n.min(word.len());
            self.frame.extend_from_slice(&word[..take]);
            n -= take;
        }
    }

    /// Writes an IPv4 header (RFC 791); returns its part of the transport's checksum.
    fn ipv4(&mut self, protocol: u8, len: usize, options: usize, fragment: u16) -> u64 {
        let begin = self.frame.len();
        let head = 20 + options;
        let bits = self.rng.next_u64().to_be_bytes();
        self.frame.extend_from_slice(&[0x40 | (head / 4) as u8, bits[0]]);
        self.frame.extend_from_slice(&((head + len) as u16).to_be_bytes());
        self.frame.extend_from_slice(&[bits[1], bits[2]]);
        self.frame.extend_from_slice(&fragment.to_be_bytes());
        self.frame.extend_from_slice(&[bits[3].max(1), protocol, 0, 0]);
        for _ in 0..2 {
            let address = Ipv4Addr::from(self.rng.next_u32());
            self.frame.extend_from_slice(&address.octets());
        }
        // No-operation options.
        self.frame.resize(begin + head, 1);
        let header = &mut self.frame[begin..];
        let checksum = !folded(sum(header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        sum(&header[12..20]) + u64::from(protocol) + len as u64
    }

    /// Writes an IPv6 header (RFC 8200); returns its part of the transport's checksum.
    fn ipv6(&mut self, protocol: u8, len: usize) -> u64 {
        let begin = self.frame.len();
        let bits = self.rng.next_u32().to_be_bytes();
        self.frame.extend_from_slice(&[0x60 | bits[0] & 0x0f, bits[1], bits[2], bits[3]]);
        self.frame.extend_from_slice(&(len as u16).to_be_bytes());
        self.frame.extend_from_slice(&[protocol, (self.rng.next_u32() as u8).max(1)]);
        self.random(32);
        sum(&self.frame[begin + 8..]) + u64::from(protocol) + len as u64
    }
}

/// The sum of 16-bit words, the last padded with zero. Adds 32 bits at a time, which folds to the
/// same checksum (RFC 1071 §2).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|w| u64::from(u32::from_be_bytes(*w))).sum();
    for (i, byte) in rest.iter().enumerate() {
        sum += u64::from(*byte) << (24 - 8 * i);
    }
    sum
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::checksum;

    fn frames(options: &RandomOptions, n: usize) -> Vec<(Vec<u8>, u32)> {
        let mut packets = RandomPackets::new(options.clone());
        let mut next = || {
            let (data, wire) = packets.next_frame();
            (data.to_vec(), wire)
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn the_seed_decides() {
        let options = RandomOptions::default();
        assert_eq!(frames(&options, 50), frames(&options, 50));
        assert_ne!(frames(&RandomOptions { seed: 2, ..options.clone() }, 50), frames(&options, 50));
    }

    #[test]
    fn lengths_and_checksums_are_right() {
        let options = RandomOptions { odd: 0, ..RandomOptions::default() };
        let mut kinds = [0; 4];
        for (frame, wire) in frames(&options, 500) {
            assert_eq!(frame.len(), wire as usize);
            let ip = &frame[14..];
            let word = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
            let (v6, protocol, segment, addresses) = if frame[12] == 8 {
                assert_eq!(word(2), ip.len());
                assert_eq!(checksum(&[&ip[..20]]), 0);
                (false, ip[9], &ip[20..], &ip[12..20])
            } else {
                assert_eq!(word(4), ip.len() - 40);
                (true, ip[6], &ip[40..], &ip[8..40])
            };
            let tail = [0, protocol, (segment.len() >> 8) as u8, segment.len() as u8];
            assert_eq!(checksum(&[addresses, &tail, segment]), 0);
            kinds[usize::from(v6) * 2 + usize::from(protocol == UDP)] += 1;
        }
        assert!(kinds.iter().all(|n| *n > 60), "{kinds:?}");
    }

    #[test]
    fn unusual_packets_are_of_every_kind() {
        let options = RandomOptions { odd: 100, payload: 40, ..RandomOptions::default() };
        let all = frames(&options, 400);
        let count = |is: fn(&[u8], u32) -> bool| all.iter().filter(|(f, n)| is(f, *n)).count();
        assert!(count(|f, _| f.get(12) == Some(&0x81)) > 30);
        assert!(count(|f, wire| f.len() < wire as usize) > 30);
        assert!(count(|f, _| f.get(12..15) == Some(&[8, 0, 0x47])) > 10);
        let none = RandomOptions { payload: 0, ..options };
        assert!(frames(&none, 400).iter().all(|(f, wire)| f.len() >= 14 && *wire <= 100));
    }

    #[test]
    fn sums_are_those_of_words() {
        for n in 0..20_u8 {
            let bytes: Vec<u8> = (0..n).map(|i| i.wrapping_mul(77)).collect();
            assert_eq!(!folded(sum(&bytes)), checksum(&[&bytes]), "{n}");
        }
    }
}
