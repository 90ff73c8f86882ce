//! What travels to the parts: packets.

use std::ops::Range;

use gannet_base::Time;
use gannet_capture::Bytes;

use crate::tunnels::Encapsulation;

/// Packets in their order, for all parts: each takes its own, and of the others their time.
#[derive(Default)]
pub(crate) struct Block {
    /// What the packets lie in.
    pub(crate) bytes: Bytes,
    /// From here on.
    pub(crate) base: usize,
    /// Number of the packet with index 0.
    pub(crate) first: u64,
    /// The latest time up to each packet, that of earlier blocks included.
    pub(crate) latest: Vec<Time>,
    /// Number of each packet, less that of the first.
    pub(crate) index: Vec<u32>,
    /// By part, what is its own or came out of the hub's.
    pub(crate) dealt: Vec<Vec<Entry>>,
    /// What the hub found inside of packets, in order.
    pub(crate) handed: Vec<Handed>,
    pub(crate) own: Vec<u8>,
}

/// A packet of a part: where its IP header is.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) time: Time,
    /// Its place among the packets of the block.
    pub(crate) at: u32,
    /// Number, less that of the first.
    pub(crate) index: u32,
    /// From the block's base.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) wire_len: u32,
    /// Layers so far; [`HUB`] if the hub took the packet, and handed over what is inside.
    pub(crate) layers: u8,
}

/// In place of layers: more than there can be.
pub(crate) const HUB: u8 = u8::MAX;

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
    /// Forgets everything, keeps the memory.
    pub(crate) fn clear(&mut self, parts: usize) {
        self.latest.clear();
        self.index.clear();
        self.dealt.resize_with(parts, Vec::new);
        self.dealt.iter_mut().for_each(Vec::clear);
        self.handed.clear();
        self.own.clear();
    }

    /// Number of its last packet; those that nobody takes are not counted.
    pub(crate) fn last(&self) -> u64 {
        self.first + self.index.last().map_or(0, |index| u64::from(*index))
    }

    /// Number of an entry's packet.
    #[inline]
    pub(crate) fn number(&self, entry: &Entry) -> u64 {
        self.first + u64::from(entry.index)
    }

    /// Number of each packet in these places, and the latest time up to it.
    pub(crate) fn times(&self, places: Range<usize>) -> impl Iterator<Item = (u64, Time)> {
        let index = self.index.get(places.clone()).unwrap_or_default();
        let latest = self.latest.get(places).unwrap_or_default();
        index.iter().zip(latest).map(|(index, time)| (self.first + u64::from(*index), *time))
    }

    /// The IP packet of an entry.
    #[inline]
    pub(crate) fn packet(&self, entry: &Entry) -> &[u8] {
        let start = self.base + entry.offset as usize;
        self.bytes.get(start..start + entry.len as usize).unwrap_or_default()
    }

    /// An IP packet that was handed over.
    pub(crate) fn handed(&self, handed: &Handed) -> &[u8] {
        let (bytes, start) = match handed.place {
            Place::Block(start) => (&self.bytes[..], start),
            Place::Own(start) => (&self.own[..], start),
        };
        bytes.get(start..start + handed.len).unwrap_or_default()
    }
}
