use std::collections::BTreeMap;

use super::life::Delays;
use super::sent::SentBytes;

/// Reassembly of one direction: delivered and acknowledged positions, and data above a hole.
///
/// Data in order is passed on as a slice of the packet; only data above a hole is copied. If the
/// consumer does not use the bytes, only their extents are stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    /// Relative sequence number of the first byte that is not delivered.
    next: u64,
    /// All bytes below this number are acknowledged or skipped.
    trim: u64,
    /// End of the last delivered data, gaps excluded.
    data_end: u64,
    /// Data above the hole at `next`, and bytes stored for comparison: usually none.
    above: Option<Box<OutOfOrder>>,
}

/// Value of [`Stream::trim`] for an abandoned stream: every byte is below it.
const ABANDONED: u64 = u64::MAX;

/// Maximum number of blocks above a hole; beyond it, the stream is abandoned as for too many bytes.
/// Segments of usual size reach the other limits long before.
const MAX_BLOCKS: usize = 65_536;

/// Overhead of a block in bytes, in addition to its data.
const BLOCK_OVERHEAD: usize = 48;

/// Data above a hole, and bytes stored for comparison.
#[derive(Debug, Default, PartialEq, Eq)]
struct OutOfOrder {
    /// Number of bytes covered by `blocks`.
    covered: u64,
    /// Number of bytes stored in `blocks`.
    stored: usize,
    /// Blocks by relative sequence number; no two overlap.
    blocks: BTreeMap<u64, Block>,
    sent: SentBytes,
}

#[derive(Debug, PartialEq, Eq)]
struct Block {
    len: u64,
    /// Empty if the consumer does not use the bytes.
    bytes: Box<[u8]>,
}

/// A result of reassembly, in stream order.
pub(crate) enum Piece<'a> {
    /// In-order bytes.
    Data(&'a [u8]),
    /// Missing bytes.
    Gap {
        /// Relative sequence number of the first missing byte.
        at: u64,
        /// Number of missing bytes.
        len: u64,
    },
}

/// Limits of connections and of the reassembly of their streams.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes above a hole while the peer acknowledges nothing.
    pub above_hole_without_acks: u64,
    /// Maximum number of bytes sent beyond the last acknowledgement, including delivered ones.
    pub without_further_acks: u64,
    /// Number of bytes delivered without any acknowledgement after which acknowledgements are no
    /// longer expected.
    pub initial_window: u64,
    /// Whether to report gaps also for connections whose handshake was not seen.
    pub partial_gaps: bool,
    /// Number of FINs, or RSTs, of one side that make a storm.
    pub storm: u32,
    /// Maximum interval between segments of a storm, in milliseconds; negative intervals (clocks
    /// that go back) count as short.
    pub storm_within: i32,
    /// Times of checks of connections.
    pub delays: Delays,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            above_hole_without_acks: 16_384,
            without_further_acks: 10 << 20,
            initial_window: 16_384,
            partial_gaps: false,
            storm: 1_000,
            storm_within: 1_000,
            delays: Delays::DEFAULT,
        }
    }
}

impl Default for Stream {
    fn default() -> Self {
        Self { next: 1, trim: 1, data_end: 1, above: None }
    }
}

impl Stream {
    /// Zero if all fields are equal and neither stream has data above a hole.
    #[inline(always)]
    pub(super) fn difference(&self, other: &Self) -> u64 {
        let Self { next, trim, data_end, above } = self;
        let is_kept = above.is_some() | other.above.is_some();
        next ^ other.next | trim ^ other.trim | data_end ^ other.data_end | u64::from(is_kept)
    }

    /// Drops data above a hole, and bytes stored for comparison.
    #[inline]
    pub(super) fn empty(&mut self) {
        if self.above.is_some() {
            self.above = None;
        }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether the stream was abandoned and delivers nothing.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.trim == ABANDONED
    }

    /// Abandons the stream: it delivers nothing more.
    pub(crate) fn abandon(&mut self) {
        self.above = None;
        self.trim = ABANDONED;
    }

    /// Whether bytes are pending: above a hole, or delivered and not acknowledged.
    pub(crate) fn has_pending(&self) -> bool {
        self.first_buffered().is_some() || self.data_end > self.trim
    }

    /// Number of bytes from the hole to the end of the stored data.
    pub(crate) fn above_hole(&self) -> u64 {
        let last = self.above.as_ref().and_then(|a| a.blocks.last_key_value());
        last.map_or(0, |(seq, b)| seq + b.len - self.next)
    }

    /// Bytes of memory for data above the hole, and for bytes stored for comparison.
    #[inline]
    pub(crate) fn cost(&self) -> usize {
        self.above
            .as_ref()
            .map_or(0, |a| a.stored + a.blocks.len() * BLOCK_OVERHEAD + a.sent.cost())
    }

    /// The end of the data above the hole.
    pub(crate) fn buffered_end(&self) -> Option<u64> {
        let (seq, block) = self.above.as_ref()?.blocks.last_key_value()?;
        Some(seq + block.len)
    }

    /// Number of bytes above the hole, plus delivered bytes that are not acknowledged.
    pub(crate) fn unacked(&self) -> u64 {
        self.delivered_unacked() + self.above.as_ref().map_or(0, |a| a.covered)
    }

    /// Number of delivered bytes that are not acknowledged.
    #[inline]
    pub(crate) fn delivered_unacked(&self) -> u64 {
        self.next.saturating_sub(self.trim)
    }

    /// Whether the number of blocks above holes exceeds the maximum.
    pub(crate) fn has_too_many_blocks(&self) -> bool {
        self.above.as_ref().is_some_and(|a| a.blocks.len() > MAX_BLOCKS)
    }

    /// Stops expecting acknowledgements of delivered bytes.
    pub(crate) fn stop_awaiting_acks(&mut self) {
        self.trim = self.trim.max(self.next);
    }

    /// Compares a segment's bytes, except those below `acked`, with those first sent for the same
    /// sequence numbers and not yet acknowledged, and stores the new ones. Must be called before
    /// the segment is inserted.
    #[cold]
    pub(crate) fn compare(
        &mut self,
        seq: u64,
        data: &[u8],
        acked: u64,
        mut differ: impl FnMut(&[u8], &[u8]),
    ) {
        let Some(upper) = seq.checked_add(data.len() as u64) else { return };
        let trim = self.trim;
        if upper <= acked.max(trim) {
            return;
        }
        let from = seq.max(acked);
        let data = &data[(from - seq) as usize..];
        let sent = &mut self.above.get_or_insert_default().sent;
        sent.drop_below(trim);
        sent.compare(from, data, &mut differ);
        let new = from.max(trim);
        sent.insert(new, &data[(new - from) as usize..]);
    }

    /// Drops the bytes stored for comparison.
    pub(crate) fn drop_sent(&mut self) {
        if let Some(above) = &mut self.above {
            above.sent = SentBytes::default();
        }
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        if self.above.as_ref().is_some_and(|a| a.blocks.is_empty() && a.sent.is_empty()) {
            self.above = None;
        }
    }

    /// Fast path of [`insert`](Self::insert) for exactly the next bytes, with no data above a hole.
    /// Returns whether it applied; the caller then delivers the bytes.
    #[inline]
    pub(crate) fn accept_next(&mut self, seq: u64, len: usize, acked: u64) -> bool {
        let is_next = seq == self.next
            && acked <= seq
            && self.trim <= seq
            && self.above.is_none()
            && seq <= u64::MAX - len as u64;
        if is_next {
            self.next += len as u64;
            self.data_end = self.next;
        }
        is_next
    }

    /// Inserts a segment's bytes at relative sequence number `seq`; bytes below `acked` are
    /// skipped. If segments overlap, the first data wins.
    pub(crate) fn insert(
        &mut self,
        seq: u64,
        data: &[u8],
        acked: u64,
        keep: bool,
        mut deliver: impl FnMut(Piece<'_>),
    ) {
        let Some(upper) = seq.checked_add(data.len() as u64) else { return };
        let from = seq.max(acked).max(self.trim).max(self.next);
        if upper <= from {
            return;
        }
        let mut data = &data[(from - seq) as usize..];
        if from > self.next {
            self.store(from, data, keep);
            return;
        }
        while !data.is_empty() {
            let until = self.first_buffered().map_or(upper, |b| b.min(upper));
            let n = (until - self.next) as usize;
            self.next = until;
            self.data_end = until;
            deliver(Piece::Data(&data[..n]));
            data = &data[n..];
            let before = self.next;
            self.deliver_buffered(&mut deliver);
            let skip = (self.next - before).min(data.len() as u64) as usize;
            data = &data[skip..];
        }
    }

    fn first_buffered(&self) -> Option<u64> {
        self.above.as_ref()?.blocks.keys().next().copied()
    }

    /// Stores data above the hole, where no block is stored yet.
    fn store(&mut self, mut seq: u64, mut data: &[u8], keep: bool) {
        let above = self.above.get_or_insert_default();
        while !data.is_empty() {
            // Inside a stored block: skip to its end.
            if let Some((s, b)) = above.blocks.range(..=seq).next_back() {
                let end = s + b.len;
                if end > seq {
                    let skip = (end - seq).min(data.len() as u64);
                    seq += skip;
                    data = &data[skip as usize..];
                    continue;
                }
            }
            let until = above.blocks.range(seq..).next().map_or(u64::MAX, |(s, _)| *s);
            let n = (until - seq).min(data.len() as u64) as usize;
            let bytes: Box<[u8]> = if keep { data[..n].into() } else { Box::default() };
            above.stored += bytes.len();
            above.blocks.insert(seq, Block { len: n as u64, bytes });
            above.covered += n as u64;
            seq += n as u64;
            data = &data[n..];
        }
    }

    fn deliver_buffered(&mut self, deliver: &mut impl FnMut(Piece<'_>)) {
        while let Some(above) = &mut self.above {
            let Some(entry) = above.blocks.first_entry().filter(|e| *e.key() == self.next) else {
                return;
            };
            let block = entry.remove();
            above.covered -= block.len;
            above.stored -= block.bytes.len();
            if above.blocks.is_empty() && above.sent.is_empty() {
                self.above = None;
            }
            self.next += block.len;
            self.data_end = self.next;
            if !block.bytes.is_empty() {
                deliver(Piece::Data(&block.bytes));
            }
        }
    }

    /// The relative sequence number below which all bytes were acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&self) -> u64 {
        self.trim
    }

    /// Whether an acknowledgement of all bytes below `seq` is new.
    #[inline]
    pub(crate) fn is_new(&self, seq: u64) -> bool {
        seq > self.trim
    }

    /// Fast path of [`ack`](Self::ack) for a new acknowledgement of delivered bytes only; returns
    /// whether it applied.
    #[inline]
    pub(crate) fn ack_delivered(&mut self, seq: u64) -> bool {
        let delivered = seq <= self.next;
        if delivered {
            self.trim = seq;
        }
        delivered
    }

    /// Processes an acknowledgement of all bytes below `seq`: holes below it become gaps. Returns
    /// whether the acknowledgement is new.
    pub(crate) fn ack(
        &mut self,
        seq: u64,
        partial: bool,
        mut deliver: impl FnMut(Piece<'_>),
    ) -> bool {
        if !self.is_new(seq) {
            return false;
        }
        // The numbers of a partial connection were initialized as if a SYN had been seen: an
        // acknowledgement of one byte beyond them is no gap.
        if seq > self.next && !(partial && seq <= 2) {
            self.undelivered(seq, &mut deliver);
        }
        self.trim = seq;
        true
    }

    #[cold]
    fn undelivered(&mut self, up_to: u64, deliver: &mut impl FnMut(Piece<'_>)) {
        while let Some(seq) = self.first_buffered()
            && seq < up_to
        {
            let (at, len) = (self.next, seq - self.next);
            self.next = seq;
            deliver(Piece::Gap { at, len });
            self.deliver_buffered(deliver);
        }
        if up_to > self.next {
            let (at, len) = (self.next, up_to - self.next);
            self.next = up_to;
            deliver(Piece::Gap { at, len });
            self.deliver_buffered(deliver);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(out: &mut Vec<u8>) -> impl FnMut(Piece<'_>) {
        |p| match p {
            Piece::Data(d) => out.extend_from_slice(d),
            Piece::Gap { len, .. } => out.extend(std::iter::repeat_n(b'?', len as usize)),
        }
    }

    #[test]
    fn the_fast_path_equals_insert() {
        for (seq, len, acked) in
            [(1, 3, 0), (1, 3, 1), (1, 3, 2), (2, 1, 0), (4, 1, 0), (1, 0, 0), (u64::MAX, 1, 0)]
        {
            let (mut any, mut quick) = (Stream::default(), Stream::default());
            let data = &b"abc"[..len];
            let mut given = Vec::new();
            any.insert(seq, data, acked, true, take(&mut given));
            if quick.accept_next(seq, len, acked) {
                assert_eq!(given, data);
            } else {
                quick.insert(seq, data, acked, true, |_| {});
            }
            assert_eq!(quick, any);
        }
    }

    #[test]
    fn first_data_wins_and_holes_become_gaps() {
        let mut s = Stream::default();
        let mut out = Vec::new();
        s.insert(1, b"abc", 0, true, take(&mut out));
        s.insert(6, b"fgh", 0, true, take(&mut out));
        s.insert(5, b"EFG", 0, true, take(&mut out));
        assert_eq!(out, b"abc");
        assert_eq!(s.above_hole(), 5);
        s.ack(9, false, take(&mut out));
        assert_eq!(out, b"abc?Efgh");
        assert!(!s.has_pending());
        s.insert(2, b"bcdefghi", 0, true, take(&mut out));
        assert_eq!(out, b"abc?Efghi");
    }

    #[test]
    fn too_many_pieces_are_reported() {
        let mut s = Stream::default();
        for i in 0..=MAX_BLOCKS as u64 {
            assert!(!s.has_too_many_blocks());
            s.insert(3 + 2 * i, b"x", 0, true, |_| {});
        }
        assert!(s.has_too_many_blocks());
        s.abandon();
        assert!(s.is_abandoned() && !s.has_pending() && !s.has_too_many_blocks());
    }

    #[test]
    fn unused_bytes_are_stored_as_extents() {
        let mut s = Stream::default();
        let mut out = Vec::new();
        s.insert(3, b"cd", 0, false, take(&mut out));
        assert_eq!(s.unacked(), 2);
        s.insert(1, b"ab", 0, false, take(&mut out));
        assert_eq!(s.next(), 5);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_stream(
            text in proptest::collection::vec(any::<u8>(), 1..60),
            cuts in proptest::collection::vec((0usize..60, 1usize..20), 0..30),
        ) {
            let mut s = Stream::default();
            let mut out = Vec::new();
            for (at, len) in cuts {
                let at = at.min(text.len() - 1);
                let end = (at + len).min(text.len());
                s.insert(1 + at as u64, &text[at..end], 0, true, take(&mut out));
                prop_assert_eq!(&out[..], &text[..out.len()]);
            }
            s.insert(1, &text, 0, true, take(&mut out));
            prop_assert_eq!(&out, &text);
            prop_assert!(s.above.is_none());
        }

        #[test]
        fn bytes_stored_for_comparison_do_not_affect_delivery(
            text in proptest::collection::vec(any::<u8>(), 1..60),
            steps in proptest::collection::vec((0usize..60, 1usize..20, 0u64..60), 0..30),
        ) {
            let (mut s, mut comparing) = (Stream::default(), Stream::default());
            let (mut out, mut same) = (Vec::new(), Vec::new());
            for (at, len, ack) in steps {
                let at = at.min(text.len() - 1);
                let end = (at + len).min(text.len());
                let (seq, data) = (1 + at as u64, &text[at..end]);
                s.insert(seq, data, 0, true, take(&mut out));
                comparing.compare(seq, data, 0, |_, _| panic!("the same bytes differ"));
                comparing.insert(seq, data, 0, true, take(&mut same));
                if ack % 3 == 0 {
                    s.ack(ack, false, take(&mut out));
                    comparing.ack(ack, false, take(&mut same));
                }
                prop_assert_eq!(&out, &same);
                prop_assert_eq!(s.has_pending(), comparing.has_pending());
                prop_assert_eq!(s.unacked(), comparing.unacked());
                prop_assert_eq!(s.buffered_end(), comparing.buffered_end());
            }
            comparing.drop_sent();
            prop_assert_eq!(s, comparing);
        }
    }
}
