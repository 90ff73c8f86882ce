//! DNS over TCP: reassembles streams and splits them into messages.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::UidSource;
use gannet_flow::Conn;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Delays;
use gannet_flow::tcp::Limits;
use gannet_flow::tcp::State;
use gannet_flow::tcp::Tcp;
use gannet_wire::Ip;

use super::HEADER;
use super::Message;
use super::Skipped;
use super::Transport;

/// Maximum number of tracked connections; above it, new ones are skipped.
const MAX_CONNECTIONS: usize = 65_536;
/// Maximum number of buffered bytes; above it, a stream that needs more is abandoned.
const MAX_BYTES: usize = 64 << 20;
/// Interval between removals of finished connections, in packet time.
const SWEEP_INTERVAL: Interval = Interval::from_secs(30);
/// Time without a packet after which a connection is finished.
const IDLE_TIMEOUT: Interval = Interval::from_secs(300);

/// Both endpoints, the lower one first, so that it is the same for both directions.
type Key = ((Addr, u16), (Addr, u16));

/// Tracked TCP connections.
#[derive(Debug)]
pub(super) struct Streams {
    connections: HashMap<Key, TrackedConnection, RandomState>,
    uids: UidSource,
    next_sweep: Time,
    /// Size of all incomplete messages, in bytes.
    buffered_bytes: usize,
}

#[derive(Debug)]
struct TrackedConnection {
    conn: Conn,
    tcp: Tcp,
    sides: Box<[Side; 2]>,
}

/// State of one direction.
#[derive(Debug, Default)]
struct Side {
    /// Bytes of an incomplete message.
    unfinished: Vec<u8>,
    /// Whether a message was found, so that message boundaries are known.
    is_synchronized: bool,
    /// Whether the stream is not parsed any more.
    is_abandoned: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            connections: HashMap::default(),
            uids: UidSource::new(0),
            next_sweep: Time::from_secs(0),
            buffered_bytes: 0,
        }
    }
}

impl Streams {
    pub(super) fn segment(
        &mut self,
        time: Time,
        ip: &Ip<'_>,
        segment: &gannet_wire::Tcp<'_>,
        skipped: &mut Skipped,
        out: &mut impl FnMut(&Message<'_>),
    ) {
        self.remove_finished(time);
        let (a, b) = ((ip.src, segment.src_port), (ip.dst, segment.dst_port));
        let key = if a <= b { (a, b) } else { (b, a) };
        let known = self.connections.contains_key(&key);
        if !known && self.connections.len() >= MAX_CONNECTIONS {
            skipped.streams += 1;
            return;
        }
        let id = ConnId { orig_h: a.0, orig_p: a.1, resp_h: b.0, resp_p: b.1 };
        let uid = self.uids.connection(0, 0);
        let fresh = || TrackedConnection {
            conn: Conn::new(uid, id, Proto::Tcp, ip.protocol, time),
            tcp: Tcp::new(time, &Delays::DEFAULT),
            sides: Box::default(),
        };
        let f = self.connections.entry(key).or_insert_with(fresh);
        let mut listener = Listener {
            time,
            sides: &mut f.sides,
            buffered_bytes: &mut self.buffered_bytes,
            skipped,
            out,
        };
        if known && f.tcp.is_reuse(&mut f.conn, time, segment, &Delays::DEFAULT, &mut listener) {
            listener.discard_both();
            (f.conn, f.tcp) = (fresh().conn, Tcp::new(time, &Delays::DEFAULT));
        }
        let from = if (f.conn.id.orig_h, f.conn.id.orig_p) == a { Dir::Orig } else { Dir::Resp };
        f.tcp.segment(&mut f.conn, time, from, segment, &Limits::default(), &mut listener);
        f.conn.last = time;
    }

    /// Removes finished connections.
    fn remove_finished(&mut self, now: Time) {
        if now < self.next_sweep && self.connections.len() < MAX_CONNECTIONS {
            return;
        }
        let full = self.connections.len() >= MAX_CONNECTIONS;
        if full && now + SWEEP_INTERVAL < self.next_sweep + Interval::from_secs(1) {
            // The last removal was within this second: do not search a full table for every packet.
            return;
        }
        self.next_sweep = now + SWEEP_INTERVAL;
        let buffered_bytes = &mut self.buffered_bytes;
        self.connections.retain(|_, f| {
            let over = f.conn.last + IDLE_TIMEOUT < now
                || f.tcp.is_over(&f.conn, now, now, &Delays::DEFAULT);
            if over {
                *buffered_bytes -= f.sides.iter().map(|s| s.unfinished.len()).sum::<usize>();
            }
            !over
        });
    }
}

/// Splits the data of a connection into messages.
struct Listener<'a, F> {
    time: Time,
    sides: &'a mut [Side; 2],
    buffered_bytes: &'a mut usize,
    skipped: &'a mut Skipped,
    out: &'a mut F,
}

impl<F: FnMut(&Message<'_>)> Listener<'_, F> {
    fn abandon(&mut self, from: Dir) {
        let side = &mut self.sides[from.index()];
        *self.buffered_bytes -= side.unfinished.len();
        if !side.is_abandoned {
            self.skipped.streams += 1;
        }
        *side = Side { is_abandoned: true, ..Side::default() };
    }

    fn discard_both(&mut self) {
        for side in self.sides.iter_mut() {
            *self.buffered_bytes -= side.unfinished.len();
            *side = Side::default();
        }
    }

    /// Calls `out` with the complete messages in `data`; returns their size in bytes, or `None` if the stream cannot be
    /// DNS.
    fn split_messages(&mut self, conn: &Conn, from: Dir, data: &[u8]) -> Option<usize> {
        let (orig, resp) = ((conn.id.orig_h, conn.id.orig_p), (conn.id.resp_h, conn.id.resp_p));
        let (source, destination) = if from.is_orig() { (orig, resp) } else { (resp, orig) };
        let mut at = 0;
        while let Some(&[a, b]) = data.get(at..at + 2) {
            let len = usize::from(u16::from_be_bytes([a, b]));
            let side = &mut self.sides[from.index()];
            let rest = &data[at + 2..];
            if len < HEADER || (!side.is_synchronized && conn.is_partial() && !is_plausible(rest)) {
                return None;
            }
            let Some(bytes) = rest.get(..len) else { break };
            side.is_synchronized = true;
            let transport = Transport::Tcp;
            (self.out)(&Message { time: self.time, source, destination, transport, bytes });
            at += 2 + len;
        }
        Some(at)
    }
}

/// Whether a message may begin here in a stream without its start: at most one question, and the Z bit is clear.
fn is_plausible(message: &[u8]) -> bool {
    match message.get(..6) {
        Some(m) => m[3] & 0x40 == 0 && m[4] == 0 && m[5] <= 1,
        None => true,
    }
}

impl<F: FnMut(&Message<'_>)> Consumer for Listener<'_, F> {
    fn data(&mut self, conn: &mut Conn, from: Dir, data: &[u8]) {
        let side = &mut self.sides[from.index()];
        if side.is_abandoned {
            return;
        }
        let mut unfinished = std::mem::take(&mut side.unfinished);
        let before = unfinished.len();
        let used = if unfinished.is_empty() {
            self.split_messages(conn, from, data)
                .map(|used| unfinished.extend_from_slice(&data[used..]))
        } else {
            unfinished.extend_from_slice(data);
            self.split_messages(conn, from, &unfinished).map(|used| drop(unfinished.drain(..used)))
        };
        let now = unfinished.len();
        *self.buffered_bytes = *self.buffered_bytes - before + now;
        self.sides[from.index()].unfinished = unfinished;
        if used.is_none() || *self.buffered_bytes > MAX_BYTES {
            self.abandon(from);
        }
    }

    fn gap(&mut self, _: &mut Conn, from: Dir, _: u64, _: u64) {
        // The start of the next message is not known.
        self.abandon(from);
    }

    fn end(&mut self, _: &mut Conn, from: Dir) {
        let side = &mut self.sides[from.index()];
        if !side.unfinished.is_empty() {
            self.skipped.truncated += 1;
            *self.buffered_bytes -= side.unfinished.len();
            side.unfinished = Vec::new();
        }
    }

    fn reset(&mut self, _: &mut Conn) {}

    fn flipped(&mut self, _: &mut Conn) {
        self.sides.swap(0, 1);
    }

    fn weird(&mut self, _: &mut Conn, _: &'static str, _: &str, _: &'static str) {}

    fn established(&mut self, _: &mut Conn, _: [State; 2]) {}

    fn wants_data(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Extractor;
    use super::super::Skipped;
    use super::super::tests::ip4;
    use super::super::tests::take;

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const FIN: u8 = 1;

    fn query(id: u8) -> Vec<u8> {
        vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]
    }

    fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut b = Vec::new();
        for m in messages {
            b.extend_from_slice(&(m.len() as u16).to_be_bytes());
            b.extend_from_slice(m);
        }
        b
    }

    fn segment(e: &mut Extractor, seq: u32, flags: u8, data: &[u8]) -> Vec<Vec<u8>> {
        let mut b = vec![3, 232, 0, 53];
        b.extend_from_slice(&seq.to_be_bytes());
        b.extend_from_slice(&[0, 0, 0, 1, 0x50, flags, 255, 255, 0, 0, 0, 0]);
        b.extend_from_slice(data);
        let p = ip4(6, 1, 0, &b);
        take(e, &p, p.len())
    }

    #[test]
    fn messages_are_split_at_their_lengths_for_any_segments() {
        let stream = framed(&[query(1), query(2), query(3)]);
        for cut in 1..stream.len() {
            let mut e = Extractor::new(&[53]);
            segment(&mut e, 99, SYN, &[]);
            let mut got = segment(&mut e, 100, ACK, &stream[..cut]);
            got.extend(segment(&mut e, 100 + cut as u32, ACK, &stream[cut..]));
            assert_eq!(got, [query(1), query(2), query(3)], "cut at {cut}");
            assert_eq!(e.streams.buffered_bytes, 0);
        }
    }

    #[test]
    fn segments_may_arrive_in_any_order() {
        let mut e = Extractor::new(&[53]);
        let stream = framed(&[query(1), query(2)]);
        segment(&mut e, 99, SYN, &[]);
        assert!(segment(&mut e, 120, ACK, &stream[20..]).is_empty());
        assert_eq!(segment(&mut e, 100, ACK, &stream[..20]), [query(1), query(2)]);
    }

    #[test]
    fn a_stream_without_its_start_is_used_if_it_is_plausible() {
        let mut e = Extractor::new(&[53]);
        assert_eq!(segment(&mut e, 100, ACK, &framed(&[query(1)])), [query(1)]);
        let mut e = Extractor::new(&[53]);
        assert!(segment(&mut e, 100, ACK, &[0, 17, 1, 1, 255, 255, 9, 9, 9]).is_empty());
        assert_eq!(e.skipped(), Skipped { streams: 1, ..Skipped::default() });
    }

    #[test]
    fn an_incomplete_message_is_counted() {
        let mut e = Extractor::new(&[53]);
        segment(&mut e, 99, SYN, &[]);
        assert!(segment(&mut e, 100, ACK | FIN, &framed(&[query(1)])[..9]).is_empty());
        assert_eq!(e.skipped(), Skipped { truncated: 1, ..Skipped::default() });
        assert_eq!(e.streams.buffered_bytes, 0);
    }

    #[test]
    fn reused_ports_are_another_stream() {
        let mut e = Extractor::new(&[53]);
        segment(&mut e, 99, SYN, &[]);
        assert!(segment(&mut e, 100, ACK, &framed(&[query(1)])[..9]).is_empty());
        segment(&mut e, 900_000, SYN, &[]);
        let got = segment(&mut e, 900_001, ACK, &framed(&[query(2)]));
        assert!(got.is_empty() || got == [query(2)]);
    }
}
