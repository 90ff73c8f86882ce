//! What travels to the parts: packets.

use std::num::NonZeroU32;

use gannet_base::Time;
use gannet_capture::BATCH_PACKETS;
use gannet_capture::Batch;
use gannet_capture::Kept;

use crate::tunnels::Encapsulation;

/// Packets in their order, for all parts: each takes its own, and of the others their time.
#[derive(Default)]
pub(crate) struct Block {
    packets: Kept,
    /// By part, where the packets are that it has something to do with.
    dealt: Vec<Vec<Place>>,
    /// Where packets are that nobody has, in order.
    nobodys: Vec<u16>,
    /// The latest time up to each packet, that of earlier blocks included: only if that is not its own
    /// everywhere.
    latest: Vec<Time>,
    /// Number and time of what is no packet, where time goes on without any.
    pass: Option<(u64, Time)>,
    pub(crate) found: Found,
}

/// What the hub found inside of packets.
#[derive(Default)]
pub(crate) struct Found {
    /// In order.
    pub(crate) handed: Vec<Handed>,
    /// Bytes that lie nowhere in the block: datagrams put together from fragments.
    pub(crate) own: Vec<u8>,
    /// The tunnels around some of it.
    around: Vec<Encapsulation>,
}

impl Found {
    fn clear(&mut self) {
        self.handed.clear();
        self.own.clear();
        self.around.clear();
    }

    /// Notes the tunnels around something that is handed over.
    pub(crate) fn note_around(&mut self, around: &Encapsulation) -> Option<NonZeroU32> {
        if around.depth() == 0 {
            return None;
        }
        if self.around.last() != Some(around) {
            self.around.push(*around);
        }
        NonZeroU32::new(self.around.len() as u32)
    }

    /// The tunnels around something that was handed over.
    pub(crate) fn around(&self, handed: &Handed) -> Encapsulation {
        let noted = |n: NonZeroU32| self.around.get(n.get() as usize - 1);
        handed.around.and_then(noted).copied().unwrap_or_default()
    }
}

/// Where a packet is in its block, and whether it is the hub's, which has handed over some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u16);

/// The bit of packets that the hub took.
const HUBS: u16 = 1 << 15;

const _: () = assert!(BATCH_PACKETS <= HUBS as usize);

impl Place {
    /// Place of a packet in its block.
    #[inline]
    pub(crate) fn at(self) -> usize {
        usize::from(self.0 & !HUBS)
    }

    /// Whether it is the hub's.
    #[inline]
    pub(crate) fn is_hubs(self) -> bool {
        self.0 & HUBS != 0
    }
}

/// An IP packet that came out of another one, a fragment or an unusual frame.
#[derive(Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) index: u32,
    pub(crate) part: u8,
    pub(crate) layers: u8,
    pub(crate) start: Start,
    pub(crate) len: usize,
    pub(crate) wire_len: u32,
    /// See [`Shard::ordinal`](crate::shard::Shard::ordinal).
    pub(crate) ordinal: u32,
    pub(crate) step: u32,
    /// Ordinal of what is [around](Found::around) it, if there is anything.
    pub(crate) around: Option<NonZeroU32>,
}

/// Where bytes begin.
#[derive(Clone, Copy)]
pub(crate) enum Start {
    /// In those of the block.
    InBlock(usize),
    /// In [those](Found::own) that lie nowhere in it.
    InOwn(usize),
}

impl Block {
    /// Takes a batch for so many parts in place of what it had, and forgets everything else; keeps the
    /// memory.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>, parts: usize) {
        self.packets.keep(batch);
        self.forget(parts, batch.len());
    }

    fn forget(&mut self, parts: usize, packets: usize) {
        self.dealt.resize_with(parts, Vec::new);
        for dealt in &mut self.dealt {
            dealt.clear();
            dealt.reserve(packets);
        }
        self.nobodys.clear();
        self.latest.clear();
        self.pass = None;
        self.found.clear();
    }

    /// Takes no packet, but the time of one of this number.
    pub(crate) fn begin_without_packets(&mut self, pass: (u64, Time), parts: usize) {
        self.release();
        self.forget(parts, 0);
        self.pass = Some(pass);
    }

    /// Number and time of what is no packet.
    pub(crate) fn pass(&self) -> Option<(u64, Time)> {
        self.pass
    }

    /// The memory of its packets goes back to its owner.
    pub(crate) fn release(&mut self) {
        self.packets.clear();
    }

    /// A packet is a part's. Of all packets in turn it is said whose they are; those of which nothing is
    /// said are the hub's alone.
    #[inline]
    pub(crate) fn deal(&mut self, at: usize, part: u8) {
        if let Some(dealt) = self.dealt.get_mut(usize::from(part)) {
            dealt.push(Place(at as u16));
        }
    }

    /// A packet is the hub's, which has handed some of it over to a part.
    pub(crate) fn deal_handed(&mut self, at: usize, part: u8) {
        let place = Place(at as u16 | HUBS);
        if let Some(dealt) = self.dealt.get_mut(usize::from(part))
            && dealt.last() != Some(&place)
        {
            dealt.push(place);
        }
    }

    /// A packet is nobody's: there is none, or it is not to be analysed, and time does not come to it.
    pub(crate) fn leave(&mut self, at: usize) {
        self.nobodys.push(at as u16);
    }

    /// All packets are dealt, and `before` them was the latest time so far. If the time of some is before
    /// that of others that came earlier, the latest is noted for each.
    #[cold]
    pub(crate) fn note_latest(&mut self, mut before: Time) {
        for (at, packet) in self.packets.batch().iter().enumerate() {
            if !self.is_nobodys(at) {
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

    /// Where the packets are that a part has something to do with.
    pub(crate) fn dealt(&self, part: usize) -> &[Place] {
        self.dealt.get(part).map_or(&[], Vec::as_slice)
    }

    /// Whether nobody has a packet.
    pub(crate) fn is_nobodys(&self, at: usize) -> bool {
        !self.nobodys.is_empty() && self.nobodys.binary_search(&(at as u16)).is_ok()
    }

    /// Whether none of its packets, except those that nobody has, is before one that came earlier.
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

    /// The latest time up to a packet that somebody has; for one that nobody has, perhaps a later one.
    #[inline]
    pub(crate) fn latest(&self, batch: &Batch<'_>, at: usize) -> Time {
        let latest = if self.is_in_order() { batch.time(at) } else { self.latest.get(at).copied() };
        latest.unwrap_or(Time::MAX)
    }

    /// An IP packet that was handed over.
    pub(crate) fn handed(&self, handed: &Handed) -> &[u8] {
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
    fn each_part_has_its_own_and_what_is_the_hubs() {
        let mut block = Block { dealt: vec![Vec::new(); 3], ..Block::default() };
        block.deal(0, 0);
        block.deal(1, 1);
        // Of the third, which is the hub's, one part gets two datagrams and another one.
        [0, 0, 2].into_iter().for_each(|part| block.deal_handed(2, part));
        block.leave(3);
        // The fourth is the hub's alone.
        block.deal(5, 1);
        block.deal(6, 0);
        let dealt =
            |part| block.dealt(part).iter().map(|p| (p.at(), p.is_hubs())).collect::<Vec<_>>();
        assert_eq!(dealt(0), [(0, false), (2, true), (6, false)]);
        assert_eq!(dealt(1), [(1, false), (5, false)]);
        assert_eq!(dealt(2), [(2, true)]);
        assert_eq!(dealt(3), []);
        assert!(block.is_nobodys(3) && !block.is_nobodys(2) && !block.is_nobodys(6));
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
        let times = |nobodys: Option<usize>, before| {
            let mut block = Block::default();
            block.begin(&batch, 1);
            for at in 0..4 {
                if nobodys == Some(at) { block.leave(at) } else { block.deal(at, 0) }
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
