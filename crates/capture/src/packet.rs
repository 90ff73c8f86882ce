//! Packets and the batches that carry them.

use std::ops::Range;

use gannet_base::Time;
use gannet_base::prefetch;
use gannet_base::prefetch_for_later;

use crate::Bytes;
use crate::Format;
use crate::LinkType;
use crate::held::Refs;

/// The most packets one batch holds, where it goes to other threads: what each batch costs there is
/// shared by many.
pub const BATCH_PACKETS: usize = 1024;

/// Packets of a batch that is looked at where it is read: with their first lines they stay in a core's
/// first-level cache meanwhile.
pub const NEAR_PACKETS: usize = 256;

/// The bytes of capture one batch spans at most, save that one bigger packet makes a batch alone.
///
/// About what stays in a core's second-level cache while the packets are looked at.
pub const BATCH_BYTES: usize = 1 << 20;

/// The longest packet that is believed: a record that claims more is damage.
///
/// Far above what links carry (libpcap's own limit is 256 KiB), so that odd captures still read,
/// and low enough that a flipped length byte cannot make a stream buffer eat the machine.
pub const MAX_PACKET: usize = 256 << 20;

/// A line of memory.
const LINE: usize = 64;
/// Bytes that are fetched for each packet: what a query takes with the record around it.
const FETCHED: usize = 2 * LINE;

/// One packet of a batch, borrowed from the mapped file or from the reader's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured. 0 where the capture does not say (Simple Packet Blocks).
    pub time: Time,
    /// Bytes it had on the wire; `data` is shorter where the capture kept less.
    pub wire_len: u32,
    /// What `data` starts with.
    pub link_type: LinkType,
    /// Index of the interface among those of its file, see [`Reader::interfaces`](crate::Reader::interfaces).
    pub interface: u32,
    /// What kind of file it is from.
    pub format: Format,
    /// 1 for the first packet of the whole stream.
    pub number: u64,
    /// The bytes that were kept.
    pub data: &'a [u8],
}

/// Where a packet lies in its batch's bytes: what record readers produce.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRef {
    /// Nanoseconds since the epoch.
    pub(crate) time: i64,
    /// From the start of the batch's bytes. A batch spans less than 4 GiB by [`BATCH_BYTES`] and
    /// [`MAX_PACKET`].
    pub(crate) offset: u32,
    pub(crate) cap_len: u32,
    pub(crate) wire_len: u32,
    pub(crate) link_type: u16,
    /// Index into the file's interfaces, with [`PCAPNG`] if it is a file of that format.
    pub(crate) origin: u16,
}

/// Bit of an [origin](PacketRef::origin) in a pcapng file.
pub(crate) const PCAPNG: u16 = 1 << 15;

impl PacketRef {
    /// Index into the file's interfaces.
    #[inline]
    pub(crate) fn interface(&self) -> u16 {
        self.origin & !PCAPNG
    }

    /// What kind of file it is from.
    #[inline]
    pub(crate) fn format(&self) -> Format {
        if self.origin & PCAPNG == 0 { Format::Pcap } else { Format::PcapNg }
    }
}

/// Bytes of a packet that are looked at first.
const HEAD: usize = 128;

/// Bytes of a packet that are asked for where they are far away: the whole of most messages; of long data few
/// are looked at.
const AFAR: usize = 512;

/// Up to [`BATCH_PACKETS`] packets in the order of the capture, borrowed from the reader that
/// made it; never empty when a reader hands it out.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    refs: &'a [PacketRef],
    /// What `refs` is a part of.
    all: &'a Refs,
    data: &'a [u8],
    /// What `data` is a part of.
    bytes: &'a Bytes,
    /// Number of the first packet.
    first: u64,
    /// Where `data` begins in the file.
    position: Option<u64>,
}

impl<'a> Batch<'a> {
    /// Packets `refs`, whose bytes lie in `data`, a part of `bytes`.
    pub(crate) fn new(refs: &'a Refs, data: &'a [u8], bytes: &'a Bytes, first: u64) -> Self {
        Self { refs, all: refs, data, bytes, first, position: None }
    }

    /// The same, its bytes lying at this place of a file.
    pub(crate) fn lying_at(self, position: Option<u64>) -> Self {
        Self { position, ..self }
    }

    /// Where its bytes begin in the file of its packets: the record of the first packet begins there, or blocks without
    /// packets before it. `None` where the file is compressed, or packets of several files were merged.
    pub fn position(&self) -> Option<u64> {
        self.position
    }

    /// Those of its packets that are at `places`, with the same first number.
    pub(crate) fn at(self, places: Range<usize>) -> Self {
        Self { refs: self.refs.get(places).unwrap_or_default(), ..self }
    }

    /// What holds the bytes of all its packets: a clone of it keeps them beyond the batch.
    pub fn bytes(&self) -> &'a Bytes {
        self.bytes
    }

    /// Where the data of a packet begins, counted from where the bytes of the batch begin.
    pub fn data_offset(&self, at: usize) -> Option<usize> {
        self.refs.get(at).map(|r| r.offset as usize)
    }

    /// How many packets it holds.
    pub fn len(&self) -> usize {
        self.refs.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }

    /// Bytes of its packets on the wire, together.
    pub fn wire_bytes(&self) -> u64 {
        self.refs.iter().map(|r| u64::from(r.wire_len)).sum()
    }

    /// The packet at `index`, counted from 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Packet<'a>> {
        self.refs.get(index).map(|r| view(r, self.data, self.first + index as u64))
    }

    /// The time of the packet at `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Option<Time> {
        self.refs.get(index).map(|r| Time::from_nanos(r.time))
    }

    /// The packet at `index`, if there is one, is looked at soon: its headers are to be near by then.
    #[inline]
    pub fn expect_soon(&self, index: usize) {
        if let Some(r) = self.refs.get(index) {
            prefetch(self.data.as_ptr().wrapping_add(r.offset as usize).cast::<[u8; HEAD]>());
        }
    }

    /// The same of a packet that another core has near, which is to come from there: its headers and some of what
    /// they are about.
    #[inline]
    pub fn expect_from_afar(&self, index: usize) {
        if let Some(r) = self.refs.get(index) {
            let start = self.data.as_ptr().wrapping_add(r.offset as usize);
            prefetch(start.cast::<[u8; HEAD]>());
            let mut at = HEAD;
            while at < (r.cap_len as usize).min(AFAR) {
                prefetch_for_later(start.wrapping_add(at).cast::<[u8; LINE]>());
                at += LINE;
            }
        }
    }

    /// The first `n` packets, all of them if there are no more, and the others.
    pub fn split_at(self, n: usize) -> (Self, Self) {
        let n = n.min(self.refs.len());
        let (head, tail) = self.refs.split_at(n);
        (Self { refs: head, ..self }, Self { refs: tail, first: self.first + n as u64, ..self })
    }

    /// What lies so many batches behind, if those are as long as this one. `None` where that is beyond the
    /// end, and where packets are long, so that few of their lines are read.
    pub fn beyond(&self, batches: usize) -> Option<Beyond<'a>> {
        let first = self.refs.first()?.offset;
        let span = self.refs.last()?.offset.checked_sub(first)? as usize;
        if batches == 0 || span / self.refs.len() > FETCHED + LINE {
            return None;
        }
        let before = self.data.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr())?;
        let bytes = self.bytes.get(before + span * batches..)?;
        Some(Beyond { refs: self.refs, bytes })
    }

    /// The packets in order.
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

/// What lies behind a batch, to be read later.
#[derive(Clone, Copy, Debug)]
pub struct Beyond<'a> {
    refs: &'a [PacketRef],
    /// As far behind the batch's bytes as what is meant.
    bytes: &'a [u8],
}

impl Beyond<'_> {
    /// Has memory begin to bring what lies there behind the packet at `index`: while that one is looked at,
    /// so that whoever reads it later does not wait.
    #[inline]
    pub fn fetch(&self, index: usize) {
        if let Some(packet) = self.refs.get(index)
            && let Some(lines) = self.bytes.get(packet.offset as usize..)
            && let Some(lines) = lines.first_chunk::<FETCHED>()
        {
            prefetch_for_later(lines);
        }
    }
}

/// The packets of a batch, kept beyond it: for other threads. The bytes are shared, not copied.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    refs: Refs,
    /// Which of these are the batch's.
    places: Range<usize>,
    bytes: Bytes,
    /// Where the batch's bytes begin in them.
    start: usize,
    len: usize,
    first: u64,
}

impl Kept {
    /// Keeps a batch in place of what was kept before.
    pub fn keep(&mut self, batch: &Batch<'_>) {
        self.refs = batch.all.clone();
        let before = batch.refs.as_ptr().addr().saturating_sub(batch.all.as_ptr().addr());
        let from = before / size_of::<PacketRef>();
        self.places = from..from + batch.refs.len();
        self.bytes = batch.bytes.clone();
        self.start = batch.data.as_ptr().addr().saturating_sub(batch.bytes.as_ptr().addr());
        (self.len, self.first) = (batch.data.len(), batch.first);
    }

    /// Keeps nothing any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// What holds the bytes of its packets.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The batch.
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
        };
        all.at(self.places.clone())
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
        // Record readers only note ranges they have seen inside `data`.
        data: data.get(start..start + r.cap_len as usize).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets of so many bytes, every so many bytes.
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
    fn what_lies_beyond_is_as_far_as_batches_are_long() {
        let bytes = Bytes::from(vec![7; 4_000]);
        let refs = refs(100, 80);
        let batch = Batch::new(&refs, &bytes[500..1_500], &bytes, 1);
        let beyond = batch.beyond(2).unwrap();
        assert_eq!(beyond.bytes.len(), 4_000 - 500 - 2 * 900);
        // Within the bytes, behind their end, and of no packet.
        (0..20).for_each(|index| beyond.fetch(index));
        (0..20).for_each(|index| batch.expect_from_afar(index));
        assert!(batch.beyond(0).is_none() && batch.beyond(4).is_none());
        assert!(Batch::new(&Refs::default(), &bytes, &bytes, 1).beyond(1).is_none());
        let long = vec![refs[0], PacketRef { offset: 1_400, ..refs[1] }].into();
        assert!(Batch::new(&long, &bytes, &bytes, 1).beyond(1).is_none());
    }

    #[test]
    fn what_is_kept_are_the_packets_of_its_batch() {
        let bytes = Bytes::from((0..100).collect::<Vec<u8>>());
        let refs = refs(5, 5);
        let batch = Batch::new(&refs, &bytes[20..80], &bytes, 7);
        let mut kept = Kept::default();
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
