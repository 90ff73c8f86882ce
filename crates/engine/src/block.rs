//! A block: the unit of packets that the dispatcher sends to the shards.

use std::num::NonZeroU32;

use gannet_base::LinkState;
use gannet_base::Time;
use gannet_capture::BATCH_PACKETS;
use gannet_capture::Batch;
use gannet_capture::OwnedBatch;

use crate::tunnels::Encapsulation;

/// Packets in order, for all shards: each shard analyses its own, and uses the times of the others.
#[derive(Default)]
pub(crate) struct Block {
    packets: OwnedBatch,
    /// By shard, the positions of its packets.
    assigned: Vec<Vec<PacketIndex>>,
    /// Positions of packets that no shard analyses, in order.
    unowned: Vec<u16>,
    /// The latest time up to each packet, including earlier blocks. Empty where that is always the
    /// packet's own time.
    latest: Vec<Time>,
    /// Number and time of a packet that does not exist, where time advances without packets.
    pass: Option<(u64, Time)>,
    pub(crate) found: ExtractedPackets,
}

/// What the global shard extracted from packets.
#[derive(Default)]
pub(crate) struct ExtractedPackets {
    /// In order.
    pub(crate) handed: Vec<ExtractedPacket>,
    /// Bytes that are not in the block: reassembled datagrams.
    pub(crate) own: Vec<u8>,
    /// The encapsulations of some of it.
    encapsulation: Vec<Encapsulation>,
    /// What events show of each, where events have a listener.
    pub(crate) shown: Vec<Shown>,
}

/// What events show of an extracted packet and its own bytes do not have.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    /// The link layer of the frame.
    pub(crate) link: LinkState,
    /// Flags and fragment offset of the first fragment to arrive, if the packet was reassembled.
    pub(crate) flags: Option<u16>,
}

impl ExtractedPackets {
    fn clear(&mut self) {
        self.handed.clear();
        self.own.clear();
        self.encapsulation.clear();
        self.shown.clear();
    }

    /// Stores the encapsulation of a handed-over packet.
    pub(crate) fn note_encapsulation(
        &mut self,
        encapsulation: &Encapsulation,
    ) -> Option<NonZeroU32> {
        if encapsulation.depth() == 0 {
            return None;
        }
        if self.encapsulation.last() != Some(encapsulation) {
            self.encapsulation.push(*encapsulation);
        }
        NonZeroU32::new(self.encapsulation.len() as u32)
    }

    /// The encapsulation of a handed-over packet.
    pub(crate) fn encapsulation(&self, handed: &ExtractedPacket) -> Encapsulation {
        let noted = |n: NonZeroU32| self.encapsulation.get(n.get() as usize - 1);
        handed.encapsulation.and_then(noted).copied().unwrap_or_default()
    }
}

/// Position of a packet in its block, and whether the global shard took it and handed over parts of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketIndex(u16);

/// The bit of packets that the global shard took.
const GLOBAL: u16 = 1 << 15;

const _: () = assert!(BATCH_PACKETS <= GLOBAL as usize);

impl PacketIndex {
    /// Index of the packet in its block.
    #[inline]
    pub(crate) fn at(self) -> usize {
        usize::from(self.0 & !GLOBAL)
    }

    /// Whether the global shard took it.
    #[inline]
    pub(crate) fn is_global(self) -> bool {
        self.0 & GLOBAL != 0
    }
}

/// An IP packet that was extracted from another one, a reassembled datagram or an unusual frame.
#[derive(Clone, Copy)]
pub(crate) struct ExtractedPacket {
    pub(crate) index: u32,
    pub(crate) part: u8,
    pub(crate) layers: u8,
    pub(crate) start: Start,
    pub(crate) len: usize,
    pub(crate) wire_len: u32,
    /// See [`Shard::ordinal`](crate::shard::Shard::ordinal).
    pub(crate) ordinal: u32,
    pub(crate) step: u32,
    /// Ordinal of its [encapsulation](Found::encapsulation), if it has one.
    pub(crate) encapsulation: Option<NonZeroU32>,
}

/// Where bytes begin.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// Offset in the bytes of the block.
    InBlock(usize),
    /// Offset in the [bytes](Found::own) outside of the block.
    InOwn(usize),
}

impl Block {
    /// Replaces the contents by a batch for `parts` shards; keeps the memory.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>, shards: usize) {
        self.packets.keep(batch);
        self.forget(shards, batch.len());
    }

    fn forget(&mut self, shards: usize, packets: usize) {
        self.assigned.resize_with(shards, Vec::new);
        for assigned in &mut self.assigned {
            assigned.clear();
            assigned.reserve(packets);
        }
        self.unowned.clear();
        self.latest.clear();
        self.pass = None;
        self.found.clear();
    }

    /// Replaces the contents by number and time of a packet that does not exist.
    pub(crate) fn begin_without_packets(&mut self, pass: (u64, Time), shards: usize) {
        self.release();
        self.forget(shards, 0);
        self.pass = Some(pass);
    }

    /// Number and time of a packet that does not exist.
    pub(crate) fn pass(&self) -> Option<(u64, Time)> {
        self.pass
    }

    /// Returns the memory of its packets to the owner of that memory.
    pub(crate) fn release(&mut self) {
        self.packets.clear();
    }

    /// Assigns a packet to a shard. Packets are assigned in order; a packet without a call is the
    /// global shard's alone.
    #[inline]
    pub(crate) fn assign(&mut self, at: usize, part: u8) {
        if let Some(assigned) = self.assigned.get_mut(usize::from(part)) {
            assigned.push(PacketIndex(at as u16));
        }
    }

    /// The global shard took a packet and handed part of it to a shard.
    pub(crate) fn assign_handed(&mut self, at: usize, part: u8) {
        let place = PacketIndex(at as u16 | GLOBAL);
        if let Some(assigned) = self.assigned.get_mut(usize::from(part))
            && assigned.last() != Some(&place)
        {
            assigned.push(place);
        }
    }

    /// No shard analyses a packet: it is empty or filtered out, and does not advance time.
    pub(crate) fn leave(&mut self, at: usize) {
        self.unowned.push(at as u16);
    }

    /// All packets are assigned; `before` is the latest time before them. If some packet is earlier
    /// than a previous one, stores the latest time for each.
    #[cold]
    pub(crate) fn note_latest(&mut self, mut before: Time) {
        for (at, packet) in self.packets.batch().iter().enumerate() {
            if !self.is_unowned(at) {
                before = before.max(packet.time);
            }
            self.latest.push(before);
        }
    }

    /// Its packets.
    #[inline]
    pub(crate) fn batch(&self) -> Batch<'_> {
        self.packets.batch()
    }

    /// The positions of the packets that concern a shard.
    pub(crate) fn assigned(&self, part: usize) -> &[PacketIndex] {
        self.assigned.get(part).map_or(&[], Vec::as_slice)
    }

    /// Whether no shard analyses a packet.
    pub(crate) fn is_unowned(&self, at: usize) -> bool {
        !self.unowned.is_empty() && self.unowned.binary_search(&(at as u16)).is_ok()
    }

    /// Whether no analysed packet is earlier than a previous one.
    pub(crate) fn is_in_order(&self) -> bool {
        self.latest.is_empty()
    }

    /// Number of its first packet.
    pub(crate) fn first(&self) -> u64 {
        self.batch().get(0).map_or(0, |p| p.number)
    }

    /// Number of its last packet.
    pub(crate) fn last(&self) -> u64 {
        if let Some((number, _)) = self.pass {
            return number;
        }
        self.first() + (self.batch().len() as u64).saturating_sub(1)
    }

    /// The latest time up to an analysed packet; for other packets it may be a later one.
    #[inline]
    pub(crate) fn latest(&self, batch: &Batch<'_>, at: usize) -> Time {
        let latest = if self.is_in_order() { batch.time(at) } else { self.latest.get(at).copied() };
        latest.unwrap_or(Time::MAX)
    }

    /// The bytes of a packet that was handed over.
    pub(crate) fn handed(&self, handed: &ExtractedPacket) -> &[u8] {
        let (bytes, start) = match handed.start {
            Start::InBlock(start) => (&self.packets.bytes()[..], start),
            Start::InOwn(start) => (&self.found.own[..], start),
        };
        bytes.get(start..start + handed.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use gannet_capture::Reader;

    use super::*;

    #[test]
    fn each_shard_has_its_own_and_the_global_shards() {
        let mut block = Block { assigned: vec![Vec::new(); 3], ..Block::default() };
        block.assign(0, 0);
        block.assign(1, 1);
        // The global shard takes the third packet: one shard gets two datagrams and another one
        // gets one.
        [0, 0, 2].into_iter().for_each(|part| block.assign_handed(2, part));
        block.leave(3);
        // The fourth packet is the global shard's alone.
        block.assign(5, 1);
        block.assign(6, 0);
        let assigned =
            |part| block.assigned(part).iter().map(|p| (p.at(), p.is_global())).collect::<Vec<_>>();
        assert_eq!(assigned(0), [(0, false), (2, true), (6, false)]);
        assert_eq!(assigned(1), [(1, false), (5, false)]);
        assert_eq!(assigned(2), [(2, true)]);
        assert_eq!(assigned(3), []);
        assert!(block.is_unowned(3) && !block.is_unowned(2) && !block.is_unowned(6));
    }

    #[test]
    fn the_latest_time_ignores_packets_that_no_shard_analyses() {
        let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        capture.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        for second in [5_u32, 9, 7, 8] {
            capture.extend(second.to_le_bytes());
            capture.extend([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'x']);
        }
        let mut reader = Reader::from_read(Box::new(io::Cursor::new(capture)), "x").unwrap();
        let batch = reader.next_batch().unwrap().unwrap();
        let times = |unowned: Option<usize>, before| {
            let mut block = Block::default();
            block.begin(&batch, 1);
            for at in 0..4 {
                if unowned == Some(at) { block.leave(at) } else { block.assign(at, 0) }
            }
            if let Some(before) = before {
                block.note_latest(Time::from_secs(before));
            }
            [0, 1, 2, 3].map(|at| block.latest(&batch, at).as_nanos() / 1_000_000_000)
        };
        assert_eq!(times(None, None), [5, 9, 7, 8], "taken for in order");
        assert_eq!(times(None, Some(6)), [6, 9, 9, 9]);
        assert_eq!(times(Some(1), Some(0)), [5, 5, 7, 8]);
    }
}
