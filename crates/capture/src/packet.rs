//! Packets and batches of packets.

use std::ops::Range;

use gannet_base::Time;
use gannet_base::prefetch;
use gannet_base::prefetch_for_later;

use crate::Bytes;
use crate::Format;
use crate::LinkType;
use crate::bytes::u32_at;
use crate::shared::Refs;

/// Maximum number of packets of a batch that is sent to other threads, large so that the fixed cost
/// of a batch is shared by many packets.
pub const BATCH_PACKETS: usize = 1024;

/// Maximum number of packets of a batch that is processed in the thread that reads it, small so
/// that their first cache lines stay in the first-level cache.
pub const NEAR_PACKETS: usize = 256;

/// Maximum number of capture bytes that a batch spans; a single larger packet forms its own batch.
///
/// About the size that stays in a second-level cache while the packets are processed.
pub const BATCH_BYTES: usize = 1 << 20;

/// Maximum length of a packet in bytes; a record that claims more is damaged.
///
/// Far more than the packet sizes of link layers (libpcap's own limit is 256 KiB), so that unusual
/// captures can be read, and few enough that a flipped length byte cannot exhaust the memory.
pub const MAX_PACKET: usize = 256 << 20;

/// Size of a cache line in bytes.
const LINE: usize = 64;
/// Number of bytes prefetched for each packet: enough for a DNS query with its record header.
const FETCHED: usize = 2 * LINE;

/// A packet of a batch, borrowed from the mapped file or from the reader's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Capture time; 0 if the capture has none (Simple Packet Blocks).
    pub time: Time,
    /// Length on the wire in bytes; `data` is shorter if the capture truncated the packet.
    pub wire_len: u32,
    /// Link type of `data`.
    pub link_type: LinkType,
    /// Index of the interface among those of its file, see [`Reader::interfaces`](crate::Reader::interfaces).
    pub interface: u32,
    /// Format of the packet's file.
    pub format: Format,
    /// Number of the packet in the whole stream, from 1.
    pub number: u64,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// The position of a packet in the bytes of its batch, as stored by record readers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRef {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// Offset from the start of the batch's bytes. A batch spans less than 4 GiB because of
    /// [`BATCH_BYTES`] and [`MAX_PACKET`].
    pub(crate) offset: u32,
    pub(crate) cap_len: u32,
    pub(crate) wire_len: u32,
    pub(crate) link_type: u16,
    /// Index into the file's interfaces, combined with [`PCAPNG`] and [`SIMPLE`].
    pub(crate) origin: u16,
}

/// Flag in an [origin](PacketRef::origin): the packet is from a pcapng file.
pub(crate) const PCAPNG: u16 = 1 << 15;

/// Flag in an [origin](PacketRef::origin): the packet is from a Simple Packet Block.
pub(crate) const SIMPLE: u16 = 1 << 14;

impl PacketRef {
    /// Index into the file's interfaces.
    #[inline]
    pub(crate) fn interface(&self) -> u16 {
        self.origin & !(PCAPNG | SIMPLE)
    }

    /// Number of bytes of its pcapng block before its data.
    fn head(&self) -> usize {
        if self.origin & SIMPLE == 0 { 28 } else { 12 }
    }

    /// Format of the packet's file.
    #[inline]
    pub(crate) fn format(&self) -> Format {
        if self.origin & PCAPNG == 0 { Format::Pcap } else { Format::PcapNg }
    }
}

/// Number of bytes at the start of a packet that are read first.
const HEAD: usize = 128;

/// Number of bytes of a packet that are prefetched from another core's cache: most messages
/// completely; of long payloads only a little is read.
const REMOTE_BYTES: usize = 512;

/// Up to [`BATCH_PACKETS`] packets in capture order, borrowed from the reader. Readers never return
/// an empty batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    refs: &'a [PacketRef],
    /// The list that `refs` is a part of.
    all: &'a Refs,
    data: &'a [u8],
    /// The buffer that `data` is a part of.
    bytes: &'a Bytes,
    /// Number of the first packet.
    first: u64,
    /// Offset of `data` in the decompressed capture.
    position: Option<u64>,
    /// Whether the file is compressed.
    is_packed: bool,
}

impl<'a> Batch<'a> {
    /// The packets `refs`, whose bytes are in `data`, a part of `bytes`.
    pub(crate) fn new(refs: &'a Refs, data: &'a [u8], bytes: &'a Bytes, first: u64) -> Self {
        Self { refs, all: refs, data, bytes, first, position: None, is_packed: false }
    }

    /// Sets the offset of its bytes in the decompressed capture, and whether the file is
    /// compressed.
    pub(crate) fn at_position(self, position: Option<u64>, is_packed: bool) -> Self {
        Self { position, is_packed, ..self }
    }

    /// The offset of its bytes in the file: that of the first packet's record, or of preceding
    /// blocks without packets. `None` if the file is compressed, or packets of several files were
    /// merged.
    pub fn position(&self) -> Option<u64> {
        self.position.filter(|_| !self.is_packed)
    }

    /// Like [`Self::position`], but for a compressed file the offset in the decompressed capture.
    pub fn unpacked_position(&self) -> Option<u64> {
        self.position
    }

    /// The packets at these indices; the number of the first packet does not change.
    pub(crate) fn at(self, range: Range<usize>) -> Self {
        Self { refs: self.refs.get(range).unwrap_or_default(), ..self }
    }

    /// The buffer that contains the bytes of all packets; a clone keeps them alive after the batch.
    pub fn bytes(&self) -> &'a Bytes {
        self.bytes
    }

    /// The offset of a packet's data from the start of the batch's bytes.
    pub fn data_offset(&self, at: usize) -> Option<usize> {
        self.refs.get(at).map(|r| r.offset as usize)
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.refs.len()
    }

    /// Whether the batch has no packets.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }

    /// Sum of the wire lengths of the packets.
    pub fn wire_bytes(&self) -> u64 {
        self.refs.iter().map(|r| u64::from(r.wire_len)).sum()
    }

    /// The packet at `index`, from 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Packet<'a>> {
        self.refs.get(index).map(|r| view(r, self.data, self.first + index as u64))
    }

    /// The pcapng block of the packet at `index`, from a reader that
    /// [keeps](crate::Stream::keep_blocks) blocks.
    pub fn block(&self, index: usize) -> Option<&'a [u8]> {
        let r = self.refs.get(index).filter(|r| r.format() == Format::PcapNg)?;
        let start = (r.offset as usize).checked_sub(r.head())?;
        let rest = self.data.get(start..)?;
        // The byte order of its section is the one in which its two length fields are equal.
        [false, true].into_iter().find_map(|big| {
            let len = u32_at(rest, 4, big) as usize;
            let block = rest.get(..len).filter(|b| b.len() >= r.head() + r.cap_len as usize + 4)?;
            (u32_at(block, len - 4, big) as usize == len).then_some(block)
        })
    }

    /// The time of the packet at `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Option<Time> {
        self.refs.get(index).map(|r| Time::from_nanos(r.time))
    }

    /// Prefetches the headers of the packet at `index`, which is processed soon.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if let Some(r) = self.refs.get(index) {
            prefetch(self.data.as_ptr().wrapping_add(r.offset as usize).cast::<[u8; HEAD]>());
        }
    }

    /// Like [`Self::prefetch`], for a packet in another core's cache: its headers and some of its
    /// payload.
    #[inline]
    pub fn prefetch_remote(&self, index: usize) {
        if let Some(r) = self.refs.get(index) {
            let start = self.data.as_ptr().wrapping_add(r.offset as usize);
            prefetch(start.cast::<[u8; HEAD]>());
            let mut at = HEAD;
            while at < (r.cap_len as usize).min(REMOTE_BYTES) {
                prefetch_for_later(start.wrapping_add(at).cast::<[u8; LINE]>());
                at += LINE;
            }
        }
    }

    /// The first `n` packets (or all if fewer), and the remaining packets.
    pub fn split_at(self, n: usize) -> (Self, Self) {
        let n = n.min(self.refs.len());
        let (head, tail) = self.refs.split_at(n);
        (Self { refs: head, ..self }, Self { refs: tail, first: self.first + n as u64, ..self })
    }

    /// The bytes `batches` batches after this one, assumed to be as long as this one. `None` past
    /// the end, and for long packets, of which few cache lines are read.
    pub fn bytes_after(&self, batches: usize) -> Option<BytesAfter<'a>> {
        let first = self.refs.first()?.offset;
        let span = self.refs.last()?.offset.checked_sub(first)? as usize;
        if batches == 0 || span / self.refs.len() > FETCHED + LINE {
            return None;
        }
        let before = self.data.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr())?;
        let bytes = self.bytes.get(before + span * batches..)?;
        Some(BytesAfter { refs: self.refs, bytes })
    }

    /// Iterates over the packets in capture order.
    pub fn iter(&self) -> Iter<'a> {
        Iter { refs: self.refs.iter(), data: self.data, number: self.first }
    }
}

impl<'a> IntoIterator for Batch<'a> {
    type Item = Packet<'a>;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Batch<'a> {
    type Item = Packet<'a>;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Bytes after a batch, which will be read later.
#[derive(Clone, Copy, Debug)]
pub struct BytesAfter<'a> {
    refs: &'a [PacketRef],
    /// The bytes, shifted by the distance.
    bytes: &'a [u8],
}

impl BytesAfter<'_> {
    /// Prefetches the memory at the offset of the packet at `index`, to be called while that packet
    /// is processed, so that later reads do not wait.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        if let Some(packet) = self.refs.get(index)
            && let Some(lines) = self.bytes.get(packet.offset as usize..)
            && let Some(lines) = lines.first_chunk::<FETCHED>()
        {
            prefetch_for_later(lines);
        }
    }
}

/// An owned batch, for other threads. The packet bytes are shared, not copied.
#[derive(Clone, Debug, Default)]
pub struct OwnedBatch {
    refs: Refs,
    /// The range of `refs` that belongs to the batch.
    range: Range<usize>,
    bytes: Bytes,
    /// Offset of the batch's bytes in the buffer.
    start: usize,
    len: usize,
    first: u64,
}

impl OwnedBatch {
    /// Replaces the contents by a batch.
    pub fn keep(&mut self, batch: &Batch<'_>) {
        self.refs = batch.all.clone();
        let before = batch.refs.as_ptr().addr().saturating_sub(batch.all.as_ptr().addr());
        let from = before / size_of::<PacketRef>();
        self.range = from..from + batch.refs.len();
        self.bytes = batch.bytes.clone();
        self.start = batch.data.as_ptr().addr().saturating_sub(batch.bytes.as_ptr().addr());
        (self.len, self.first) = (batch.data.len(), batch.first);
    }

    /// Drops the contents.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The buffer that contains the bytes of the packets.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Borrows the batch.
    #[inline]
    pub fn batch(&self) -> Batch<'_> {
        let data = self.bytes.get(self.start..self.start + self.len).unwrap_or_default();
        let all = Batch {
            refs: &self.refs,
            all: &self.refs,
            data,
            bytes: &self.bytes,
            first: self.first,
            position: None,
            is_packed: false,
        };
        all.at(self.range.clone())
    }
}

/// Iterates over the packets of a [`Batch`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    refs: std::slice::Iter<'a, PacketRef>,
    data: &'a [u8],
    number: u64,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let packet = view(self.refs.next()?, self.data, self.number);
        self.number += 1;
        Some(packet)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.refs.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[inline]
fn view<'a>(r: &PacketRef, data: &'a [u8], number: u64) -> Packet<'a> {
    let start = r.offset as usize;
    Packet {
        time: Time::from_nanos(r.time),
        wire_len: r.wire_len,
        link_type: LinkType(r.link_type),
        interface: u32::from(r.interface()),
        format: r.format(),
        number,
        // Record readers only store ranges that were checked to be within `data`.
        data: data.get(start..start + r.cap_len as usize).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets of `len` bytes, with `every` bytes from one start to the next.
    fn refs(every: u32, len: u32) -> Refs {
        let packet = |n| PacketRef {
            time: i64::from(n),
            offset: n * every,
            cap_len: len,
            wire_len: len,
            link_type: 1,
            origin: 0,
        };
        (0..10).map(packet).collect::<Vec<_>>().into()
    }

    #[test]
    fn following_bytes_are_at_multiples_of_the_batch_length() {
        let bytes = Bytes::from(vec![7; 4_000]);
        let refs = refs(100, 80);
        let batch = Batch::new(&refs, &bytes[500..1_500], &bytes, 1);
        let beyond = batch.bytes_after(2).unwrap();
        assert_eq!(beyond.bytes.len(), 4_000 - 500 - 2 * 900);
        // Within the bytes, past their end, and for no packet.
        (0..20).for_each(|index| beyond.prefetch(index));
        (0..20).for_each(|index| batch.prefetch_remote(index));
        assert!(batch.bytes_after(0).is_none() && batch.bytes_after(4).is_none());
        assert!(Batch::new(&Refs::default(), &bytes, &bytes, 1).bytes_after(1).is_none());
        let long = vec![refs[0], PacketRef { offset: 1_400, ..refs[1] }].into();
        assert!(Batch::new(&long, &bytes, &bytes, 1).bytes_after(1).is_none());
    }

    #[test]
    fn an_owned_batch_has_the_packets_of_its_batch() {
        let bytes = Bytes::from((0..100).collect::<Vec<u8>>());
        let refs = refs(5, 5);
        let batch = Batch::new(&refs, &bytes[20..80], &bytes, 7);
        let mut kept = OwnedBatch::default();
        assert!(kept.batch().is_empty());
        for part in
            [batch, batch.split_at(4).0, batch.split_at(4).1, batch.at(3..8), batch.at(3..11)]
        {
            kept.keep(&part);
            assert!(kept.batch().iter().eq(part.iter()));
            assert_eq!(kept.batch().bytes().as_ptr(), bytes.as_ptr());
        }
        kept.keep(&batch.split_at(9).1);
        assert_eq!(kept.batch().get(0).map(|p| (p.number, p.data)), Some((16, &bytes[65..70])));
        let mut own = refs.clone();
        drop(refs);
        assert!(own.own().is_none(), "still kept");
        kept.clear();
        assert!(own.own().is_some() && kept.batch().is_empty());
    }
}
