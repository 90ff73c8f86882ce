//! What travels to the parts: packets.

use gannet_base::Time;
use gannet_capture::BATCH_PACKETS;
use gannet_capture::Batch;
use gannet_capture::Kept;

use crate::tunnels::Encapsulation;

/// Packets in their order, for all parts: each takes its own, and of the others their time.
#[derive(Default)]
pub(crate) struct Block {
    packets: Kept,
    /// Whose each packet is: a part's number, [`HUB`] or [`NOBODY`].
    owners: Vec<u8>,
    /// The latest time up to each packet, that of earlier blocks included: only if that is not its own
    /// everywhere.
    latest: Vec<Time>,
    /// What the hub found inside of packets, in order.
    pub(crate) handed: Vec<Handed>,
    pub(crate) own: Vec<u8>,
}

/// The hub took the packet, and handed over what is inside.
pub(crate) const HUB: u8 = u8::MAX;

/// There is no packet, or it is not to be analysed: time does not come to it.
pub(crate) const NOBODY: u8 = u8::MAX - 1;

/// The most parts there can be.
pub(crate) const MAX_PARTS: usize = NOBODY as usize;

/// Places of packets in a block.
pub(crate) type Places = [u16; BATCH_PACKETS];

const _: () = assert!(BATCH_PACKETS <= u16::MAX as usize);

/// An IP packet that came out of another one, a fragment or an unusual frame.
#[derive(Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) index: u32,
    pub(crate) part: u8,
    pub(crate) layers: u8,
    pub(crate) place: Place,
    pub(crate) len: usize,
    pub(crate) wire_len: u32,
    /// See [`Shard::ordinal`](crate::shard::Shard::ordinal).
    pub(crate) ordinal: u32,
    pub(crate) step: u32,
    pub(crate) around: Encapsulation,
}

/// Where bytes begin.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// In those of the block.
    Block(usize),
    /// In those that lie nowhere in it.
    Own(usize),
}

impl Block {
    /// Takes a batch in place of what it had, and forgets everything else; keeps the memory.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>) {
        self.packets.keep(batch);
        self.owners.clear();
        self.owners.reserve(batch.len());
        self.latest.clear();
        self.handed.clear();
        self.own.clear();
    }

    /// Says whose the next packet is.
    #[inline]
    pub(crate) fn deal(&mut self, owner: u8) {
        self.owners.push(owner);
    }

    /// All packets are dealt, and `before` them was the latest time so far. If the time of some is before
    /// that of others that came earlier, the latest is noted for each.
    #[cold]
    pub(crate) fn note_latest(&mut self, mut before: Time) {
        for (packet, owner) in self.packets.batch().iter().zip(&self.owners) {
            if *owner != NOBODY {
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

    /// Whether a packet is the hub's, which may have handed over some of it.
    #[inline]
    pub(crate) fn is_hubs(&self, at: usize) -> bool {
        self.owners.get(at) == Some(&HUB)
    }

    /// Where the packets are that a part has something to do with. Which ones these are cannot be
    /// guessed, so that nothing depends on it here.
    pub(crate) fn of<'a>(&self, part: usize, places: &'a mut Places) -> &'a [u16] {
        let mut n = 0;
        for (at, owner) in self.owners.iter().enumerate() {
            if let Some(place) = places.get_mut(n) {
                *place = at as u16;
            }
            n += usize::from((usize::from(*owner) == part) | (*owner == HUB));
        }
        places.get(..n).unwrap_or_default()
    }

    /// Number of its first packet.
    pub(crate) fn first(&self) -> u64 {
        self.batch().get(0).map_or(0, |p| p.number)
    }

    /// Number of its last packet.
    pub(crate) fn last(&self) -> u64 {
        self.first() + (self.owners.len() as u64).saturating_sub(1)
    }

    /// The latest time up to a packet, if that is somebody's.
    #[inline]
    pub(crate) fn latest(&self, batch: &Batch<'_>, at: usize) -> Option<Time> {
        if *self.owners.get(at)? == NOBODY {
            return None;
        }
        self.latest.get(at).copied().or_else(|| Some(batch.get(at)?.time))
    }

    /// An IP packet that was handed over.
    pub(crate) fn handed(&self, handed: &Handed) -> &[u8] {
        let (bytes, start) = match handed.place {
            Place::Block(start) => (&self.packets.bytes()[..], start),
            Place::Own(start) => (&self.own[..], start),
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
    fn each_part_has_its_own_and_what_is_the_hubs() {
        let mut block = Block::default();
        for owner in [0, 1, HUB, NOBODY, 1, 0] {
            block.deal(owner);
        }
        let mut places = [0; BATCH_PACKETS];
        assert_eq!(block.of(0, &mut places), [0, 2, 5]);
        assert_eq!(block.of(1, &mut places), [1, 2, 4]);
        assert_eq!(block.of(7, &mut places), [2]);
        assert!(block.is_hubs(2) && !block.is_hubs(3) && !block.is_hubs(6));
    }

    #[test]
    fn the_latest_time_is_not_that_of_packets_that_are_nobodys() {
        let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        capture.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        for second in [5_u32, 9, 7, 8] {
            capture.extend(second.to_le_bytes());
            capture.extend([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'x']);
        }
        let mut reader = Reader::from_read(Box::new(io::Cursor::new(capture)), "x").unwrap();
        let batch = reader.next_batch().unwrap().unwrap();
        let times = |owners: [u8; 4], before| {
            let mut block = Block::default();
            block.begin(&batch);
            owners.into_iter().for_each(|owner| block.deal(owner));
            if let Some(before) = before {
                block.note_latest(Time::from_secs(before));
            }
            [0, 1, 2, 3].map(|at| Some(block.latest(&batch, at)?.as_nanos() / 1_000_000_000))
        };
        assert_eq!(times([0; 4], None), [Some(5), Some(9), Some(7), Some(8)]);
        assert_eq!(times([0; 4], Some(6)), [Some(6), Some(9), Some(9), Some(9)]);
        assert_eq!(times([0, NOBODY, 0, 0], Some(0)), [Some(5), None, Some(7), Some(8)]);
    }
}
