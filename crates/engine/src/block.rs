//! A block: the unit of packets that the dispatcher sends to the shards.

use std::num::NonZeroU32;

use gannet_base::LinkState;
use gannet_base::Time;
use gannet_capture::BATCH_PACKETS;
use gannet_capture::Batch;
use gannet_capture::OwnedBatch;

use crate::tunnels::Encapsulation;

/// Packets in capture order, sent to all shards. A shard analyzes the packets assigned to it and
/// advances its clock by the times of the others.
#[derive(Default)]
pub(crate) struct Block {
    packets: OwnedBatch,
    /// Positions of the packets of each shard, by shard index.
    assigned: Vec<Vec<PacketIndex>>,
    /// Positions of packets that no shard analyzes, in ascending order.
    unowned: Vec<u16>,
    /// Maximum time up to each packet, including earlier blocks. Empty if it always equals the
    /// packet's own time.
    latest: Vec<Time>,
    /// Packet number and time to advance to, for a block without packets.
    time_advance: Option<(u64, Time)>,
    pub(crate) extracted: ExtractedPackets,
}

/// Packets that the global shard extracted from the packets of a block.
#[derive(Default)]
pub(crate) struct ExtractedPackets {
    /// In the order of extraction.
    pub(crate) packets: Vec<ExtractedPacket>,
    /// Bytes that are not part of the block: reassembled datagrams.
    pub(crate) bytes: Vec<u8>,
    /// Encapsulations of extracted packets; see [`ExtractedPacket::encapsulation`].
    encapsulation: Vec<Encapsulation>,
    /// Data for events of each extracted packet, filled only if events have a listener.
    pub(crate) event_contexts: Vec<EventContext>,
}

/// Data for the events of an extracted packet that its own bytes do not contain.
#[derive(Clone, Copy)]
pub(crate) struct EventContext {
    /// The link layer of the frame.
    pub(crate) link: LinkState,
    /// Flags and fragment offset of the first fragment to arrive, if the packet was reassembled.
    pub(crate) flags: Option<u16>,
}

impl ExtractedPackets {
    fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
        self.encapsulation.clear();
        self.event_contexts.clear();
    }

    /// Stores the encapsulation of an extracted packet.
    pub(crate) fn store_encapsulation(
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

    /// Returns the encapsulation of an extracted packet.
    pub(crate) fn encapsulation(&self, packet: &ExtractedPacket) -> Encapsulation {
        let noted = |n: NonZeroU32| self.encapsulation.get(n.get() as usize - 1);
        packet.encapsulation.and_then(noted).copied().unwrap_or_default()
    }
}

/// Position of a packet in its block, and whether the global shard processed it and extracted
/// packets from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketIndex(u16);

/// Bit set for packets that the global shard processed.
const GLOBAL: u16 = 1 << 15;

const _: () = assert!(BATCH_PACKETS <= GLOBAL as usize);

impl PacketIndex {
    /// Index of the packet in its block.
    #[inline]
    pub(crate) fn at(self) -> usize {
        usize::from(self.0 & !GLOBAL)
    }

    /// Whether the global shard processed the packet.
    #[inline]
    pub(crate) fn is_global(self) -> bool {
        self.0 & GLOBAL != 0
    }
}

/// An IP packet that was extracted from another one, a reassembled datagram or an unusual frame.
#[derive(Clone, Copy)]
pub(crate) struct ExtractedPacket {
    pub(crate) index: u32,
    pub(crate) shard: u8,
    pub(crate) layers: u8,
    pub(crate) start: Start,
    pub(crate) len: usize,
    pub(crate) wire_len: u32,
    /// See [`Shard::ordinal`](crate::shard::Shard::ordinal).
    pub(crate) ordinal: u32,
    pub(crate) step: u32,
    /// Index plus one in [`ExtractedPackets::encapsulation`]; `None` outside of tunnels.
    pub(crate) encapsulation: Option<NonZeroU32>,
}

/// Where the bytes of an extracted packet start.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// Offset in the bytes of the block.
    InBlock(usize),
    /// Offset in [`ExtractedPackets::bytes`].
    InExtracted(usize),
}

impl Block {
    /// Replaces the contents by a batch for `shards` shards; keeps the allocations.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>, shards: usize) {
        self.packets.keep(batch);
        self.reset(shards, batch.len());
    }

    fn reset(&mut self, shards: usize, packets: usize) {
        self.assigned.resize_with(shards, Vec::new);
        for assigned in &mut self.assigned {
            assigned.clear();
            assigned.reserve(packets);
        }
        self.unowned.clear();
        self.latest.clear();
        self.time_advance = None;
        self.extracted.clear();
    }

    /// Replaces the contents by a packet number and a time to advance to.
    pub(crate) fn begin_without_packets(&mut self, to: (u64, Time), shards: usize) {
        self.release();
        self.reset(shards, 0);
        self.time_advance = Some(to);
    }

    /// Packet number and time to advance to, if the block has no packets.
    pub(crate) fn time_advance(&self) -> Option<(u64, Time)> {
        self.time_advance
    }

    /// Releases the packet data to its owner.
    pub(crate) fn release(&mut self) {
        self.packets.clear();
    }

    /// Assigns a packet to a shard. Must be called in packet order. A packet that is never assigned
    /// belongs to the global shard alone.
    #[inline]
    pub(crate) fn assign(&mut self, at: usize, shard: u8) {
        if let Some(assigned) = self.assigned.get_mut(usize::from(shard)) {
            assigned.push(PacketIndex(at as u16));
        }
    }

    /// Assigns a packet to a shard that received a packet extracted from it by the global shard.
    pub(crate) fn assign_extracted(&mut self, at: usize, shard: u8) {
        let packet = PacketIndex(at as u16 | GLOBAL);
        if let Some(assigned) = self.assigned.get_mut(usize::from(shard))
            && assigned.last() != Some(&packet)
        {
            assigned.push(packet);
        }
    }

    /// Marks a packet that no shard analyzes: an empty or filtered packet, which does not advance
    /// time.
    pub(crate) fn skip_packet(&mut self, at: usize) {
        self.unowned.push(at as u16);
    }

    /// Completes the assignment. If a packet is earlier than a previous one, stores the maximum
    /// time up to each packet; `before` is the maximum over all earlier blocks.
    #[cold]
    pub(crate) fn store_latest(&mut self, mut before: Time) {
        for (at, packet) in self.packets.batch().iter().enumerate() {
            if !self.is_unowned(at) {
                before = before.max(packet.time);
            }
            self.latest.push(before);
        }
    }

    /// The packets of the block.
    #[inline]
    pub(crate) fn batch(&self) -> Batch<'_> {
        self.packets.batch()
    }

    /// The positions of the packets assigned to a shard.
    pub(crate) fn assigned(&self, shard: usize) -> &[PacketIndex] {
        self.assigned.get(shard).map_or(&[], Vec::as_slice)
    }

    /// Whether no shard analyzes the packet.
    pub(crate) fn is_unowned(&self, at: usize) -> bool {
        !self.unowned.is_empty() && self.unowned.binary_search(&(at as u16)).is_ok()
    }

    /// Whether the times of the analyzed packets never decrease.
    pub(crate) fn is_in_order(&self) -> bool {
        self.latest.is_empty()
    }

    /// Number of the first packet.
    pub(crate) fn first(&self) -> u64 {
        self.batch().get(0).map_or(0, |p| p.number)
    }

    /// Number of the last packet.
    pub(crate) fn last(&self) -> u64 {
        if let Some((number, _)) = self.time_advance {
            return number;
        }
        self.first() + (self.batch().len() as u64).saturating_sub(1)
    }

    /// Maximum time up to an analyzed packet; for other packets the result may be later.
    #[inline]
    pub(crate) fn latest(&self, batch: &Batch<'_>, at: usize) -> Time {
        let latest = if self.is_in_order() { batch.time(at) } else { self.latest.get(at).copied() };
        latest.unwrap_or(Time::MAX)
    }

    /// The bytes of an extracted packet.
    pub(crate) fn extracted_bytes(&self, packet: &ExtractedPacket) -> &[u8] {
        let (bytes, start) = match packet.start {
            Start::InBlock(start) => (&self.packets.bytes()[..], start),
            Start::InExtracted(start) => (&self.extracted.bytes[..], start),
        };
        bytes.get(start..start + packet.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use gannet_capture::Reader;

    use super::*;

    #[test]
    fn each_shard_has_its_packets_and_those_extracted_for_it() {
        let mut block = Block { assigned: vec![Vec::new(); 3], ..Block::default() };
        block.assign(0, 0);
        block.assign(1, 1);
        // Two datagrams of the third packet, which the global shard processes, belong to one shard
        // and a third one to another shard.
        [0, 0, 2].into_iter().for_each(|shard| block.assign_extracted(2, shard));
        block.skip_packet(3);
        // The fourth packet belongs to the global shard alone.
        block.assign(5, 1);
        block.assign(6, 0);
        let assigned = |shard| {
            block.assigned(shard).iter().map(|p| (p.at(), p.is_global())).collect::<Vec<_>>()
        };
        assert_eq!(assigned(0), [(0, false), (2, true), (6, false)]);
        assert_eq!(assigned(1), [(1, false), (5, false)]);
        assert_eq!(assigned(2), [(2, true)]);
        assert_eq!(assigned(3), []);
        assert!(block.is_unowned(3) && !block.is_unowned(2) && !block.is_unowned(6));
    }

    #[test]
    fn the_latest_time_ignores_unowned_packets() {
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
                if unowned == Some(at) { block.skip_packet(at) } else { block.assign(at, 0) }
            }
            if let Some(before) = before {
                block.store_latest(Time::from_secs(before));
            }
            [0, 1, 2, 3].map(|at| block.latest(&batch, at).as_nanos() / 1_000_000_000)
        };
        assert_eq!(times(None, None), [5, 9, 7, 8], "taken for in order");
        assert_eq!(times(None, Some(6)), [6, 9, 9, 9]);
        assert_eq!(times(Some(1), Some(0)), [5, 5, 7, 8]);
    }
}
