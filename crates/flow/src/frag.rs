use std::collections::BTreeMap;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_wire::Ip;

/// A fragment shorter than this, headers included, is weird unless it is the last one. In bytes.
const SMALL: u32 = 64;
/// A datagram longer than this is weird. In bytes.
const LARGE: u64 = 64_000;
/// Default time after which an incomplete datagram expires.
const TIMEOUT: Interval = Interval::from_secs(300);
/// Overhead of a stored piece in bytes, in addition to its data.
const PIECE_OVERHEAD: usize = 48;

/// A weird that [`Fragments::add`] reports.
pub type FragmentEvent = &'static str;

/// Limits of incomplete datagrams; beyond them the oldest ones are discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Maximum number of datagrams.
    pub datagrams: usize,
    /// Maximum number of bytes of their pieces, including overhead.
    pub bytes: usize,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        Self { datagrams: 65_536, bytes: 64 << 20 }
    }
}

/// Time after which an incomplete datagram expires.
#[derive(Debug)]
struct Timeout(Interval);

impl Default for Timeout {
    fn default() -> Self {
        Self(TIMEOUT)
    }
}

/// Reassembly of fragmented IP datagrams (RFC 791 §3.2, RFC 8200 §4.5).
///
/// Pieces may arrive in any order; where they overlap, the first one wins.
#[derive(Debug, Default)]
pub struct Fragments {
    datagrams: HashMap<(Addr, Addr, u32), Datagram, RandomState>,
    /// Keys of the incomplete datagrams by the time and number of each, in the order in which they expire.
    order: BTreeMap<(Time, u64), (Addr, Addr, u32)>,
    /// Number of datagrams so far.
    started: u64,
    bytes: usize,
    limits: FragmentLimits,
    dropped: u64,
    peak: usize,
    completed_flags: u16,
    timeout: Timeout,
}

/// Flags and fragment offset of an IPv4 header.
fn flags(header: &[u8]) -> u16 {
    header.get(6..8).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

#[derive(Debug)]
struct Datagram {
    /// Time of the fragment that arrived first, and the number of datagrams up to this one.
    started: (Time, u64),
    /// All headers of the fragment that arrived first; replaced by those of the piece at offset 0
    /// when it arrives.
    header: Vec<u8>,
    protocol: u8,
    header_len: u16,
    /// Payload bytes of the datagram; 0 if unknown.
    size: u64,
    /// End of the contiguous pieces that begin at offset 0.
    contiguous_end: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Fragments {
    /// An empty table with these limits.
    pub fn with_limits(limits: FragmentLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Number of incomplete datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether no datagram is incomplete.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Maximum number of simultaneously incomplete datagrams.
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// Number of datagrams discarded at the limits.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds a fragment of a packet with the timestamp `time`. If the fragment completes its datagram,
    /// appends the IP packet to `out` and returns true.
    ///
    /// A datagram expires if `now`, the network time, exceeds the timestamp of its first fragment by the
    /// timeout. Timestamps of packets may decrease, network time does not.
    pub fn add(
        &mut self,
        time: Time,
        now: Time,
        ip: &Ip<'_>,
        out: &mut Vec<u8>,
        mut weird: impl FnMut(FragmentEvent),
    ) -> bool {
        self.expire(now);
        let Some(fragment) = ip.fragment else { return false };
        let key = (ip.src, ip.dst, fragment.id);
        let known = self.datagrams.contains_key(&key);
        if !known {
            self.started += 1;
            self.order.insert((time, self.started), key);
            self.bytes += ip.header.len();
        }
        let started = (time, self.started);
        self.peak = self.peak.max(self.datagrams.len() + usize::from(!known));
        let d = self.datagrams.entry(key).or_insert_with(|| Datagram {
            started,
            header: ip.header.to_vec(),
            protocol: ip.protocol,
            header_len: ip.header_len,
            size: 0,
            contiguous_end: 0,
            pieces: BTreeMap::new(),
        });
        if known && (ip.protocol != d.protocol || ip.header_len != d.header_len) {
            weird("fragment_protocol_inconsistency");
        }
        if fragment.dont_fragment {
            weird("fragment_with_DF");
        }
        if ip.total_len < u32::from(ip.header_len) {
            // A total length of zero, as segmentation offload leaves it.
            weird("fragment_protocol_inconsistency");
            self.shrink();
            return false;
        }
        if fragment.offset == 0 && ip.version == 6 {
            // RFC 8200 §4.5: only the Next Header field of the first fragment counts.
            d.protocol = ip.protocol;
        }
        let offset = u64::from(fragment.offset);
        let upper = offset + u64::from(ip.payload_len);
        if !fragment.more {
            if d.size == 0 {
                d.size = upper;
            } else if upper != d.size {
                weird("fragment_size_inconsistency");
                d.size = d.size.max(upper);
            }
        } else if ip.total_len < SMALL {
            weird("excessively_small_fragment");
        }
        if upper > LARGE {
            weird("excessively_large_fragment");
        }
        if d.size != 0 && upper > d.size {
            weird("fragment_size_inconsistency");
            d.size = upper;
        }
        if ip.payload_len == 0 {
            self.shrink();
            return false; // the bytes after it belong to the link layer
        }
        let kept = d.insert(offset, ip.payload, &mut weird);
        let Some(end) = d.complete(&mut weird) else {
            self.bytes += kept;
            self.shrink();
            return false;
        };
        let Some(d) = self.datagrams.remove(&key) else { return false };
        self.bytes = self.bytes.saturating_sub(d.stored_bytes() - kept);
        self.order.remove(&d.started);
        self.completed_flags = if ip.version == 4 { flags(&d.header) } else { 0 };
        let first = Ip { header: &d.header, protocol: d.protocol, ..*ip };
        first.write_reassembled_header(end as usize, out);
        for (at, piece) in &d.pieces {
            if *at >= end {
                break;
            }
            out.extend_from_slice(piece);
        }
        true
    }

    /// Flags and fragment offset of the datagram that was completed last, as in the fragment that
    /// arrived first; zero for IPv6.
    pub fn completed_flags(&self) -> u16 {
        self.completed_flags
    }

    /// Sets the time after which an incomplete datagram expires, initially 5 minutes.
    pub fn set_timeout(&mut self, timeout: Interval) {
        self.timeout = Timeout(timeout);
    }

    /// Bytes stored for incomplete datagrams, including overhead.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn expire(&mut self, now: Time) {
        while let Some(first) = self.order.first_entry()
            && now - first.key().0 >= self.timeout.0
        {
            let key = first.remove();
            self.remove(key);
        }
    }

    fn shrink(&mut self) {
        while self.datagrams.len() > self.limits.datagrams || self.bytes > self.limits.bytes {
            let Some((_, key)) = self.order.pop_first() else { return };
            self.remove(key);
            self.dropped += 1;
        }
    }

    /// Removes a datagram that is no longer in `order`.
    fn remove(&mut self, key: (Addr, Addr, u32)) {
        if let Some(d) = self.datagrams.remove(&key) {
            self.bytes = self.bytes.saturating_sub(d.stored_bytes());
        }
    }
}

impl Datagram {
    fn stored_bytes(&self) -> usize {
        self.header.len() + self.pieces.values().map(|p| PIECE_OVERHEAD + p.len()).sum::<usize>()
    }

    /// Stores the bytes of a piece that are new; returns the number of bytes that this uses.
    fn insert(&mut self, at: u64, data: &[u8], weird: &mut impl FnMut(FragmentEvent)) -> usize {
        let end = at + data.len() as u64;
        let from = self.pieces.range(..=at).next_back().map_or(at, |(s, _)| *s);
        for (s, piece) in self.pieces.range(from..end) {
            let (lo, hi) = (at.max(*s), end.min(s + piece.len() as u64));
            if lo < hi {
                let old = &piece[(lo - s) as usize..(hi - s) as usize];
                let new = &data[(lo - at) as usize..(hi - at) as usize];
                weird(if old == new { "fragment_overlap" } else { "fragment_inconsistency" });
            }
        }
        let (mut seq, mut rest, mut kept) = (at, data, 0);
        while !rest.is_empty() {
            if let Some((s, piece)) = self.pieces.range(..=seq).next_back() {
                let upper = s + piece.len() as u64;
                if upper > seq {
                    let skip = (upper - seq).min(rest.len() as u64);
                    seq += skip;
                    rest = &rest[skip as usize..];
                    continue;
                }
            }
            let until = self.pieces.range(seq..).next().map_or(u64::MAX, |(s, _)| *s);
            let n = (until - seq).min(rest.len() as u64) as usize;
            self.pieces.insert(seq, rest[..n].into());
            kept += PIECE_OVERHEAD + n;
            seq += n as u64;
            rest = &rest[n..];
        }
        kept
    }

    /// The size of the datagram if all pieces have arrived.
    fn complete(&mut self, weird: &mut impl FnMut(FragmentEvent)) -> Option<u64> {
        if self.size == 0 {
            return None;
        }
        // Each piece is visited once in total.
        while let Some(piece) = self.pieces.get(&self.contiguous_end) {
            self.contiguous_end += piece.len() as u64;
        }
        let upper = self.contiguous_end;
        let hole = self.pieces.range(upper..).next().is_some();
        if hole {
            if upper == 0 || upper < self.size {
                return None;
            }
            // Contiguous up to the expected end, with more data after it: pieces of two datagrams
            // are mixed.
            weird("fragment_size_inconsistency");
            self.size = upper;
        } else if upper > self.size {
            weird("fragment_size_inconsistency");
            self.size = upper;
        } else if upper < self.size {
            return None;
        }
        Some(upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An IPv4 packet with the payload bytes at `offset` of a datagram.
    fn packet(id: u8, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
        let len = (20 + payload.len()) as u16;
        let word = (offset / 8) as u16 | u16::from(more) << 13;
        let mut p = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, id];
        p.extend([(word >> 8) as u8, word as u8, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        p.extend_from_slice(payload);
        p
    }

    fn add(f: &mut Fragments, p: &[u8], weird: &mut Vec<&'static str>) -> Option<Vec<u8>> {
        let ip = gannet_wire::ip(p, p.len() as u32, false).unwrap();
        let mut out = Vec::new();
        f.add(Time::from_secs(1), Time::from_secs(1), &ip, &mut out, |w| weird.push(w))
            .then_some(out)
    }

    #[test]
    fn the_fragment_that_arrives_first_gives_the_flags() {
        let mut f = Fragments::default();
        let mut weird = Vec::new();
        assert_eq!(add(&mut f, &packet(1, 0, true, &[7; 600]), &mut weird), None);
        assert!(add(&mut f, &packet(1, 600, false, &[7; 8]), &mut weird).is_some());
        assert_eq!(f.completed_flags(), 0x2000);
        assert_eq!(add(&mut f, &packet(2, 600, false, &[7; 8]), &mut weird), None);
        assert!(add(&mut f, &packet(2, 0, true, &[7; 600]), &mut weird).is_some());
        assert_eq!(f.completed_flags(), 600 / 8);
    }

    #[test]
    fn out_of_order_with_overlap() {
        let mut f = Fragments::default();
        let mut weird = Vec::new();
        let text: Vec<u8> = (0..100).collect();
        assert_eq!(add(&mut f, &packet(1, 64, false, &text[64..]), &mut weird), None);
        assert_eq!(add(&mut f, &packet(1, 0, true, &text[..48]), &mut weird), None);
        let mut other = text[40..72].to_vec();
        other[0] = 0xff;
        let whole = add(&mut f, &packet(1, 40, true, &other), &mut weird).unwrap();
        assert_eq!(&whole[20..], text);
        assert_eq!(
            weird,
            ["excessively_small_fragment", "fragment_inconsistency", "fragment_overlap"]
        );
        assert_eq!(f.bytes(), 0);
        let ip = gannet_wire::ip(&whole, whole.len() as u32, false).unwrap();
        assert_eq!((ip.fragment, ip.total_len), (None, 120));
    }

    #[test]
    fn memory_is_bounded() {
        const MAX: usize = 1_000;
        let limits = FragmentLimits { datagrams: MAX, ..FragmentLimits::default() };
        let mut f = Fragments::with_limits(limits);
        for n in 0..(MAX + 10) as u32 {
            let mut p = packet(1, 0, true, &[0; 64]);
            p[12..16].copy_from_slice(&n.to_be_bytes());
            assert_eq!(add(&mut f, &p, &mut Vec::new()), None);
        }
        assert_eq!(f.datagrams.len(), MAX);
        assert_eq!(f.dropped(), 10);
        assert_eq!(f.bytes(), MAX * (20 + 64 + PIECE_OVERHEAD));
    }

    #[test]
    fn datagrams_without_a_piece_are_bounded_too() {
        const MAX: usize = 100;
        let limits = FragmentLimits { datagrams: MAX, ..FragmentLimits::default() };
        for (len, name) in [(20, None), (0, Some("fragment_protocol_inconsistency"))] {
            let mut f = Fragments::with_limits(limits);
            for n in 0..(MAX + 10) as u32 {
                let mut p = packet(1, 8, true, &[]);
                p[3] = len;
                p[12..16].copy_from_slice(&n.to_be_bytes());
                let mut weird = Vec::new();
                assert_eq!(add(&mut f, &p, &mut weird), None);
                assert_eq!(
                    weird.iter().find(|o| **o != "excessively_small_fragment"),
                    name.as_ref()
                );
            }
            assert_eq!((f.datagrams.len(), f.dropped()), (MAX, 10));
            // Headers count as well, because IPv6 extension headers may be long.
            assert_eq!(f.bytes(), MAX * 20);
        }
    }

    #[test]
    fn finished_datagrams_leave_no_state() {
        let mut f = Fragments::default();
        let mut weird = Vec::new();
        assert_eq!(add(&mut f, &packet(9, 8, true, &[1; 64]), &mut weird), None);
        for _ in 0..10_000 {
            assert_eq!(add(&mut f, &packet(1, 0, true, &[0; 64]), &mut weird), None);
            assert!(add(&mut f, &packet(1, 64, false, b"end"), &mut weird).is_some());
        }
        assert_eq!(f.order.len(), 1);
        assert_eq!((f.datagrams.len(), f.bytes()), (1, 20 + 64 + PIECE_OVERHEAD));
        let far = Time::from_secs(1) + TIMEOUT;
        let p = packet(2, 0, true, &[0; 64]);
        let ip = gannet_wire::ip(&p, p.len() as u32, false).unwrap();
        assert!(!f.add(far, far, &ip, &mut Vec::new(), |_| {}));
        assert_eq!((f.datagrams.len(), f.order.len()), (1, 1), "the old one is forgotten");
        assert_eq!(weird, [] as [&str; 0]);
    }

    #[test]
    fn the_timeout_of_pieces_can_be_set() {
        let p = packet(9, 8, true, &[1; 64]);
        let ip = gannet_wire::ip(&p, p.len() as u32, false).unwrap();
        let other = packet(2, 0, true, &[0; 64]);
        let other = gannet_wire::ip(&other, other.len() as u32, false).unwrap();
        for (timeout, kept) in [(Interval::from_secs(1), 1), (Interval::from_nanos(i64::MAX), 2)] {
            let mut f = Fragments::default();
            f.set_timeout(timeout);
            for (at, ip) in [(1, &ip), (2, &other)] {
                let now = Time::from_secs(at);
                assert!(!f.add(now, now, ip, &mut Vec::new(), |_| {}));
            }
            assert_eq!(f.datagrams.len(), kept);
        }
    }

    #[test]
    fn datagrams_of_old_packets_expire_by_their_timestamps() {
        let old = packet(9, 8, true, &[1; 64]);
        let old = gannet_wire::ip(&old, old.len() as u32, false).unwrap();
        let new = packet(2, 0, true, &[0; 64]);
        let new = gannet_wire::ip(&new, new.len() as u32, false).unwrap();
        let mut f = Fragments::default();
        let now = Time::from_secs(1_000_000);
        for (time, ip, kept) in [(now, &new, 1), (Time::from_secs(1), &old, 2), (now, &new, 1)] {
            assert!(!f.add(time, now, ip, &mut Vec::new(), |_| {}));
            assert_eq!((f.datagrams.len(), f.order.len()), (kept, kept));
        }
    }

    #[test]
    fn weirds_of_fragments() {
        let weirds = |packets: &[Vec<u8>]| {
            let (mut f, mut weird) = (Fragments::default(), Vec::new());
            for p in packets {
                add(&mut f, p, &mut weird);
            }
            weird
        };
        let big = [0; 64];
        let mut other = packet(1, 64, false, &big);
        other[9] = 6;
        let mut kept_whole = packet(1, 0, true, &big);
        kept_whole[6] |= 0x40;
        let first = packet(1, 0, true, &big);
        assert_eq!(weirds(&[first.clone(), other]), ["fragment_protocol_inconsistency"]);
        assert_eq!(weirds(&[kept_whole]), ["fragment_with_DF"]);
        assert_eq!(weirds(&[packet(1, 0, true, b"tiny-one")]), ["excessively_small_fragment"]);
        assert_eq!(weirds(&[packet(1, 64_000, true, &big)]), ["excessively_large_fragment"]);
        assert_eq!(weirds(&[first.clone(), first]), ["fragment_overlap"]);
        assert_eq!(
            weirds(&[packet(1, 128, false, &big), packet(1, 64, false, &big)]),
            ["fragment_size_inconsistency"]
        );
    }

    /// An IPv6 fragment with this Next Header field.
    fn packet_v6(next: u8, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0, 0, 8 + payload.len() as u8, 44, 64];
        p.extend([[1; 16], [2; 16]].concat());
        let [high, low] = (offset | u16::from(more)).to_be_bytes();
        p.extend([next, 0, high, low, 0, 0, 0, 7]);
        p.extend_from_slice(payload);
        p
    }

    #[test]
    fn the_first_fragment_determines_the_protocol() {
        let (mut f, mut weird) = (Fragments::default(), Vec::new());
        assert_eq!(add(&mut f, &packet_v6(60, 64, false, b"the last"), &mut weird), None);
        let whole = add(&mut f, &packet_v6(17, 0, true, &[0; 64]), &mut weird).unwrap();
        let ip = gannet_wire::ip(&whole, whole.len() as u32, false).unwrap();
        assert_eq!((ip.protocol, ip.payload_len), (17, 72));
        assert_eq!(weird, ["fragment_protocol_inconsistency"]);
    }

    #[test]
    fn an_empty_fragment_ends_no_datagram() {
        let (mut f, mut weird) = (Fragments::default(), Vec::new());
        assert_eq!(add(&mut f, &packet(1, 0, true, &[7; 64]), &mut weird), None);
        // The empty fragment ends with link-layer padding; the datagram waits for a fragment with
        // data.
        let mut empty = packet(1, 64, false, &[]);
        empty.extend([0; 26]);
        assert_eq!(add(&mut f, &empty, &mut weird), None);
        let whole = add(&mut f, &packet(1, 0, true, &[7; 64]), &mut weird).unwrap();
        assert_eq!(whole[20..], [7; 64]);
        assert_eq!(weird, ["fragment_overlap"]);
    }

    #[test]
    fn a_fragment_without_length_is_weird() {
        let (mut f, mut weird) = (Fragments::default(), Vec::new());
        let mut p = packet(1, 0, true, &[7; 64]);
        p[2..4].fill(0);
        assert_eq!(add(&mut f, &p, &mut weird), None);
        assert_eq!((weird, f.bytes()), (vec!["fragment_protocol_inconsistency"], 20));
    }

    proptest! {
        #[test]
        fn any_order_gives_the_datagram(
            order in Just((0usize..6).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let text: Vec<u8> = (0..=255).cycle().take(6 * 64).collect();
            let mut f = Fragments::default();
            let mut got = None;
            for i in order {
                prop_assert_eq!(&got, &None);
                let p = packet(2, i * 64, i < 5, &text[i * 64..(i + 1) * 64]);
                got = add(&mut f, &p, &mut Vec::new());
            }
            prop_assert_eq!(&got.unwrap()[20..], &text[..]);
        }
    }
}
