//! Frames with times, and the exchanges that they belong to.

use std::net::IpAddr;
use std::net::SocketAddr;

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Error;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Writer;

use crate::Rng;
use crate::dns;
use crate::frame;
use crate::frame::ACK;
use crate::frame::FIN;
use crate::frame::PSH;
use crate::frame::RST;
use crate::frame::SYN;
use crate::frame::TcpHeader;

/// An Ethernet frame and its capture time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Capture time.
    pub time: Time,
    /// The frame without its checksum.
    pub bytes: Vec<u8>,
}

/// Maximum payload of an Ethernet frame, in bytes.
const MTU: u16 = 1_500;

/// A clock and the frames so far.
///
/// The capture point is near the client: requests are seen a little after the event before them,
/// replies half a round trip later.
#[derive(Clone, Debug)]
pub struct Trace {
    frames: Vec<Frame>,
    now: Time,
    near: Interval,
    far: Interval,
    rng: Rng,
}

impl Trace {
    /// Starts at `start`; `seed` decides sequence numbers and IP identifications.
    pub fn new(start: Time, seed: u64) -> Self {
        Self {
            frames: Vec::new(),
            now: start,
            near: Interval::from_micros(150),
            far: Interval::from_millis(12),
            rng: Rng::new(seed),
        }
    }

    /// Sets the delays before a client's and before a server's frame; initially 150 µs and 12 ms.
    pub fn delays(&mut self, near: Interval, far: Interval) {
        (self.near, self.far) = (near, far);
    }

    /// Advances the clock.
    pub fn wait(&mut self, span: Interval) {
        self.now += span;
    }

    /// The current time, not before the last frame.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The random generator, for building payloads.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The frames so far.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Adds a complete frame, `span` after the previous one.
    pub fn push(&mut self, span: Interval, bytes: Vec<u8>) {
        self.now += span;
        self.frames.push(Frame { time: self.now, bytes });
    }

    /// Writes all frames.
    ///
    /// # Errors
    /// Those of [`Writer::write`].
    pub fn write(&self, writer: &mut Writer) -> Result<(), Error> {
        for (number, frame) in (1..).zip(&self.frames) {
            writer.write(&Packet {
                time: frame.time,
                wire_len: frame.bytes.len() as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
                format: Format::Pcap,
                number,
                data: &frame.bytes,
            })?;
        }
        Ok(())
    }

    fn id(&mut self) -> u16 {
        self.rng.next_u32() as u16
    }

    /// A client's datagram.
    pub fn udp(&mut self, client: SocketAddr, server: SocketAddr, payload: &[u8]) {
        let id = self.id();
        self.push(self.near, frame::udp(client, server, id, payload));
    }

    /// A server's datagram.
    pub fn udp_reply(&mut self, client: SocketAddr, server: SocketAddr, payload: &[u8]) {
        let id = self.id();
        self.push(self.far, frame::udp(server, client, id, payload));
    }

    /// An echo request and its reply.
    pub fn ping(&mut self, client: IpAddr, server: IpAddr, ident: u16, seq: u16) {
        let payload: Vec<u8> = (0..56).collect();
        self.push(self.near, frame::echo(client, server, false, (ident, seq), &payload));
        self.push(self.far, frame::echo(server, client, true, (ident, seq), &payload));
    }

    /// A DNS lookup over UDP and its answer; see [`dns::response`].
    pub fn lookup(
        &mut self,
        client: SocketAddr,
        server: SocketAddr,
        (name, kind): (&str, u16),
        code: u8,
        answers: &[(dns::Data<'_>, u32)],
    ) {
        let id = self.id();
        self.udp(client, server, &dns::query(id, name, kind));
        self.udp_reply(client, server, &dns::response(id, name, kind, code, answers));
    }

    /// A request and its response on a TCP connection of their own, as with HTTP.
    pub fn exchange(
        &mut self,
        client: SocketAddr,
        server: SocketAddr,
        request: &[u8],
        response: &[u8],
    ) {
        let mut tcp = self.connect(client, server);
        tcp.send(request);
        tcp.reply(response);
        tcp.close();
    }

    /// A TCP connection that is established at once.
    pub fn connect(&mut self, client: SocketAddr, server: SocketAddr) -> Tcp<'_> {
        let mut tcp = self.ends(client, server);
        tcp.segment(Side::Client, SYN, &[]);
        tcp.segment(Side::Server, SYN | ACK, &[]);
        tcp.segment(Side::Client, ACK, &[]);
        tcp
    }

    /// A TCP connection attempt without an answer.
    pub fn knock(&mut self, client: SocketAddr, server: SocketAddr) {
        self.ends(client, server).segment(Side::Client, SYN, &[]);
    }

    /// Continues a paused connection.
    pub fn resume(&mut self, rest: Paused) -> Tcp<'_> {
        Tcp { trace: self, ends: rest.ends, seq: rest.seq, mss: rest.mss }
    }

    /// Simulates network disturbance of the frames from `since` on: about one in `one_in` is
    /// reordered, and as many are duplicated.
    pub fn disturb(&mut self, since: usize, one_in: u64) {
        let Some(frames) = self.frames.get_mut(since..) else { return };
        let mut again = Vec::new();
        for at in 1..frames.len() {
            match self.rng.below(one_in * 2) {
                0 => {
                    let (before, after) = frames.split_at_mut(at);
                    if let (Some(a), Some(b)) = (before.last_mut(), after.first_mut()) {
                        std::mem::swap(&mut a.bytes, &mut b.bytes);
                    }
                }
                1 => again.push(frames[at].clone()),
                _ => {}
            }
        }
        self.frames.append(&mut again);
        // A stable sort: a duplicate follows the original.
        self.frames.sort_by_key(|f| f.time);
    }

    /// The frames of all traces, in order of time.
    pub fn merge(start: Time, traces: Vec<Self>) -> Self {
        let mut all = Self::new(start, 0);
        all.frames = traces.into_iter().flat_map(|t| t.frames).collect();
        all.frames.sort_by_key(|f| f.time);
        all.now = all.frames.last().map_or(start, |f| f.time);
        all
    }

    /// A TCP connection that the server refuses.
    pub fn refuse(&mut self, client: SocketAddr, server: SocketAddr) {
        let mut tcp = self.ends(client, server);
        // A closed port answers with sequence number 0.
        tcp.seq[1] = 0;
        tcp.segment(Side::Client, SYN, &[]);
        tcp.segment(Side::Server, RST | ACK, &[]);
    }

    fn ends(&mut self, client: SocketAddr, server: SocketAddr) -> Tcp<'_> {
        let seq = [self.rng.next_u32(), self.rng.next_u32()];
        let headers = if client.is_ipv4() && server.is_ipv4() { 20 + 20 } else { 40 + 20 };
        Tcp { trace: self, ends: [client, server], seq, mss: MTU - headers }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client = 0,
    Server = 1,
}

/// An established TCP connection. Dropping it without [`Tcp::close`] leaves it open.
#[derive(Debug)]
pub struct Tcp<'a> {
    trace: &'a mut Trace,
    ends: [SocketAddr; 2],
    /// The next sequence number of each side.
    seq: [u32; 2],
    /// Maximum number of data bytes per segment.
    mss: u16,
}

/// A paused connection, which releases the trace for others; see [`Tcp::pause`].
#[derive(Clone, Copy, Debug)]
pub struct Paused {
    ends: [SocketAddr; 2],
    seq: [u32; 2],
    mss: u16,
}

impl Tcp<'_> {
    /// Releases the trace; [`Trace::resume`] continues the connection.
    pub fn pause(self) -> Paused {
        Paused { ends: self.ends, seq: self.seq, mss: self.mss }
    }

    /// The client sends data, in as many segments as necessary; each is acknowledged.
    pub fn send(&mut self, data: &[u8]) {
        self.data(Side::Client, data);
    }

    /// The server sends data.
    pub fn reply(&mut self, data: &[u8]) {
        self.data(Side::Server, data);
    }

    /// Skips bytes of the client: the capture does not contain them.
    pub fn lose(&mut self, bytes: u32) {
        self.seq[0] = self.seq[0].wrapping_add(bytes);
    }

    /// The client sends data that the server does not acknowledge.
    pub fn send_unacknowledged(&mut self, data: &[u8]) {
        for part in data.chunks(usize::from(self.mss)) {
            self.segment(Side::Client, PSH | ACK, part);
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, span: Interval) {
        self.trace.wait(span);
    }

    /// The client closes, the server closes, the client acknowledges.
    pub fn close(mut self) {
        self.segment(Side::Client, FIN | ACK, &[]);
        self.segment(Side::Server, FIN | ACK, &[]);
        self.segment(Side::Client, ACK, &[]);
    }

    /// The client resets the connection.
    pub fn reset(mut self) {
        self.segment(Side::Client, RST | ACK, &[]);
    }

    fn data(&mut self, side: Side, data: &[u8]) {
        let other = if side == Side::Client { Side::Server } else { Side::Client };
        for part in data.chunks(usize::from(self.mss)) {
            self.segment(side, PSH | ACK, part);
            self.segment(other, ACK, &[]);
        }
    }

    fn segment(&mut self, side: Side, flags: u8, data: &[u8]) {
        let (own, peer) = (side as usize, 1 - side as usize);
        let [high, low] = self.mss.to_be_bytes();
        let mss = [2, 4, high, low];
        let header = TcpHeader {
            seq: self.seq[own],
            ack: if flags & ACK == 0 { 0 } else { self.seq[peer] },
            flags,
            window: 64_240,
            // SYNs contain the maximum segment size.
            options: if flags & SYN != 0 { &mss } else { &[] },
        };
        let taken = data.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.seq[own] = self.seq[own].wrapping_add(taken);
        let id = self.trace.id();
        let span = if side == Side::Client { self.trace.near } else { self.trace.far };
        let bytes = frame::tcp(self.ends[own], self.ends[peer], id, header, data);
        self.trace.push(span, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(b: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(b[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn sequence_numbers_follow_the_data() {
        let mut trace = Trace::new(Time::from_secs(1), 3);
        let ends = ("192.0.2.1:1024".parse().unwrap(), "192.0.2.2:80".parse().unwrap());
        let mut tcp = trace.connect(ends.0, ends.1);
        tcp.send(&[7; 2_000]);
        tcp.reply(b"ok");
        tcp.close();
        let first = word(&trace.frames()[0].bytes, 38);
        let server = word(&trace.frames()[1].bytes, 38);
        let seen: Vec<_> = trace
            .frames()
            .iter()
            .map(|f| {
                let b = &f.bytes;
                let base = if b[34..36] == 80_u16.to_be_bytes() { server } else { first };
                (b[47], word(b, 38).wrapping_sub(base))
            })
            .collect();
        let (data, end) = (PSH | ACK, FIN | ACK);
        let expected = [
            (SYN, 0),
            (SYN | ACK, 0),
            (ACK, 1),
            (data, 1),
            (ACK, 1),
            (data, 1_461),
            (ACK, 1),
            (data, 1),
            (ACK, 2_001),
            (end, 2_001),
            (end, 3),
            (ACK, 2_002),
        ];
        assert_eq!(seen, expected);
        assert!(trace.frames().is_sorted_by_key(|f| f.time));
    }

    #[test]
    fn same_seed_same_bytes() {
        let make = |seed| {
            let mut trace = Trace::new(Time::ZERO, seed);
            trace.refuse("192.0.2.1:1".parse().unwrap(), "192.0.2.2:2".parse().unwrap());
            trace.frames().to_vec()
        };
        assert_eq!(make(5), make(5));
        assert_ne!(make(5), make(6));
        assert_eq!(make(5).len(), 2);
    }
}
