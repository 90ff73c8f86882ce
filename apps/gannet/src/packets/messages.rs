//! DNS messages over TCP, and the segments of a connection that carry them.

use std::collections::BTreeMap;

use gannet_base::Addr;
use gannet_capture::Packet;
use gannet_wire::Tcp;
use gannet_wire::Transport;

/// Maximum number of bytes stored above a hole of a side; beyond it the stream is not followed.
const MAX_ABOVE_HOLE: usize = 1 << 20;
/// Maximum number of sides that are followed: the uid may be that of a tunnel, whose packets have further addresses.
const MAX_SIDES: usize = 4;
/// Number of bytes read of each message: its length (2) and its id (2).
const HEADER_BYTES: usize = 4;

/// The segments of a connection, in the order of the capture, and the messages in its streams.
#[derive(Debug, Default)]
pub(super) struct Segments {
    sides: Vec<Side>,
    segments: Vec<Segment>,
}

/// A segment with data: bytes of the stream of a side.
#[derive(Debug)]
struct Segment {
    number: u64,
    side: usize,
    from: i64,
    to: i64,
}

/// Source and destination of a side's segments.
type Ends = [(Addr, u16); 2];

/// The stream of one side.
#[derive(Debug)]
struct Side {
    ends: Ends,
    /// Sequence number of the first byte.
    base: u32,
    /// Offset of the next byte in order.
    next: i64,
    /// Data above a hole, by its offset.
    above: BTreeMap<i64, Vec<u8>>,
    stored: usize,
    is_given_up: bool,
    /// The latest message: its offset, its first bytes, and the number of these that are known.
    begin: i64,
    head: [u8; HEADER_BYTES],
    known: usize,
    messages: Vec<Message>,
}

/// A complete message: its bytes in the stream, and the time of its last byte in microseconds.
#[derive(Debug)]
struct Message {
    from: i64,
    to: i64,
    id: u16,
    time: i64,
}

impl Segments {
    /// Adds the next packet of the connection.
    pub(super) fn push(&mut self, packet: &Packet<'_>) {
        let decoded = gannet_wire::decode(packet.link_type.0, packet.data, packet.wire_len);
        let Ok(decoded) = decoded else { return };
        let Some(datagram) = decoded.datagram().filter(|d| d.ip.fragment.is_none()) else { return };
        let Transport::Tcp(tcp) = &datagram.transport else { return };
        let ip = &datagram.ip;
        let ends = [(ip.src, tcp.src_port), (ip.dst, tcp.dst_port)];
        let found = self.sides.iter().position(|side| side.ends == ends);
        let at = match found {
            Some(at) => at,
            None if self.sides.len() == MAX_SIDES => return,
            None => {
                self.sides.push(Side::new(ends, tcp));
                self.sides.len() - 1
            }
        };
        let Some(side) = self.sides.get_mut(at).filter(|_| tcp.payload_len > 0) else { return };
        let from = side.offset(tcp);
        let to = from + i64::from(tcp.payload_len);
        self.segments.push(Segment { number: packet.number, side: at, from, to });
        side.data(from, tcp.payload, packet.time.as_nanos() / 1_000);
    }

    /// Numbers of the packets with bytes of messages that have this id and are completed in the time from `from` up to,
    /// but excluding, `to`; `None` if a hole in a stream may hide some of them.
    pub(super) fn packets_of(&self, id: u16, (from, to): (i64, i64)) -> Option<Vec<u64>> {
        let is_selected = |m: &&Message| m.id == id && (from..to).contains(&m.time);
        let of = |side: &Side| -> Vec<(i64, i64)> {
            side.messages.iter().filter(is_selected).map(|m| (m.from, m.to)).collect()
        };
        let all: Vec<_> = self.sides.iter().map(of).collect();
        let is_hidden = |(side, found): (&Side, &Vec<_>)| found.is_empty() && side.has_hole();
        let is_nothing = all.iter().all(Vec::is_empty);
        if is_nothing || self.sides.iter().zip(&all).any(is_hidden) {
            return None;
        }
        let carries = |segment: &&Segment| {
            let ranges = all.get(segment.side).map(Vec::as_slice).unwrap_or_default();
            ranges.iter().any(|(from, to)| segment.from < *to && *from < segment.to)
        };
        Some(self.segments.iter().filter(carries).map(|segment| segment.number).collect())
    }
}

impl Side {
    fn new(ends: Ends, first: &Tcp<'_>) -> Self {
        Self {
            ends,
            base: first.seq.wrapping_add(u32::from(first.flags.syn())),
            next: 0,
            above: BTreeMap::new(),
            stored: 0,
            is_given_up: false,
            begin: 0,
            head: [0; HEADER_BYTES],
            known: 0,
            messages: Vec::new(),
        }
    }

    /// The offset of a segment's first byte, which is near the next one.
    fn offset(&self, tcp: &Tcp<'_>) -> i64 {
        let seq = tcp.seq.wrapping_add(u32::from(tcp.flags.syn()));
        let expected = self.base.wrapping_add(self.next as u32);
        self.next + i64::from(seq.wrapping_sub(expected).cast_signed())
    }

    fn has_hole(&self) -> bool {
        self.is_given_up || !self.above.is_empty()
    }

    fn data(&mut self, from: i64, bytes: &[u8], time: i64) {
        if self.is_given_up {
            return;
        }
        if from > self.next {
            self.stored += bytes.len();
            let old = self.above.insert(from, bytes.to_vec());
            // Of two segments with the same offset the longer one counts.
            if let Some(old) = old {
                self.stored -= old.len().min(bytes.len());
                if old.len() > bytes.len() {
                    self.above.insert(from, old);
                }
            }
            self.is_given_up = self.stored > MAX_ABOVE_HOLE;
            if self.is_given_up {
                self.above.clear();
            }
            return;
        }
        self.in_order(from, bytes, time);
        while let Some(entry) = self.above.first_entry().filter(|entry| *entry.key() <= self.next) {
            let (from, bytes) = entry.remove_entry();
            self.stored -= bytes.len();
            self.in_order(from, &bytes, time);
        }
    }

    /// Processes bytes that start at or before the next expected offset.
    fn in_order(&mut self, from: i64, bytes: &[u8], time: i64) {
        let known = usize::try_from(self.next - from).unwrap_or_default();
        let mut bytes = bytes.get(known..).unwrap_or_default();
        while !bytes.is_empty() {
            let size = self.known.min(HEADER_BYTES);
            // An empty message, or one of a single byte, has no id.
            let missing = match self.len() {
                None => 2 - size,
                Some(len) => (self.begin + 2 + len - self.next) as usize,
            };
            let (part, rest) = bytes.split_at(missing.min(bytes.len()));
            for (to, byte) in self.head.iter_mut().skip(size).zip(part) {
                *to = *byte;
            }
            self.known += part.len();
            self.next += part.len() as i64;
            bytes = rest;
            if let Some(len) = self.len().filter(|len| self.next == self.begin + 2 + len) {
                let [_, _, high, low] = self.head;
                if len >= 2 {
                    let id = u16::from_be_bytes([high, low]);
                    self.messages.push(Message { from: self.begin, to: self.next, id, time });
                }
                (self.begin, self.known) = (self.next, 0);
            }
        }
    }

    /// Length of the message after the length field, if it is known.
    fn len(&self) -> Option<i64> {
        let [high, low, ..] = self.head;
        (self.known >= 2).then(|| u16::from_be_bytes([high, low]).into())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use gannet_base::Time;
    use gannet_capture::Format;
    use gannet_capture::LinkType;
    use gannet_synth::Frame;
    use gannet_synth::Trace;
    use gannet_synth::dns;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&(message.len() as u16).to_be_bytes()[..], message].concat()
    }

    fn segments<'a>(frames: impl IntoIterator<Item = (u64, &'a Frame)>) -> Segments {
        let mut segments = Segments::default();
        for (number, frame) in frames {
            segments.push(&Packet {
                time: frame.time,
                wire_len: frame.bytes.len() as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
                format: Format::Pcap,
                number,
                data: &frame.bytes,
            });
        }
        segments
    }

    const ALL: (i64, i64) = (0, i64::MAX);

    #[test]
    fn segments_of_one_message_among_others() {
        let ends = [1, 2].map(|n| SocketAddr::from(([10, 0, 0, n], 40 + u16::from(n))));
        let mut trace = Trace::new(Time::from_secs(1_000), 1);
        let [first, second] = [7, 8].map(|id| framed(&dns::query(id, "a.test", dns::A)));
        let answer = framed(&dns::response(8, "a.test", dns::A, 0, &[]));
        let mut tcp = trace.connect(ends[0], ends[1]);
        // Segments 4 and 6: the second message begins in the segment that ends the first one.
        let both = [&first[..], &second].concat();
        tcp.send(&both[..first.len() + 3]);
        tcp.send(&both[first.len() + 3..]);
        tcp.reply(&answer[..10]);
        tcp.reply(&answer[10..]);
        tcp.send(&first);
        tcp.close();
        let frames: Vec<_> = (1..).zip(trace.frames()).collect();
        let whole = segments(frames.iter().copied());
        assert_eq!(whole.packets_of(8, ALL), Some(vec![4, 6, 8, 10]));
        assert_eq!(whole.packets_of(7, ALL), Some(vec![4, 12]));
        assert_eq!(whole.packets_of(9, ALL), None);
        // The first use of the number only.
        let time = frames[11].1.time.as_nanos() / 1_000;
        assert_eq!(whole.packets_of(7, (0, time)), Some(vec![4]));
        assert_eq!(whole.packets_of(7, (time, i64::MAX)), Some(vec![12]));
        // In another order, and one of them twice.
        let mut mixed = frames.clone();
        mixed.swap(3, 5);
        mixed.push((99, frames[5].1));
        assert_eq!(segments(mixed).packets_of(8, ALL), Some(vec![6, 4, 8, 10, 99]));
        // Of a stream with a hole nothing is certain.
        let hole = frames.iter().copied().filter(|(number, _)| *number != 8);
        assert_eq!(segments(hole).packets_of(8, ALL), None);
    }
}
