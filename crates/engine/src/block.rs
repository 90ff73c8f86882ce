//! What travels to the parts: packets.

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
    pub(crate) entries: Vec<Entry>,
    /// By part, the places in `entries` of what is its own or came out of the hub's.
    pub(crate) dealt: Vec<Vec<u32>>,
    /// The latest time of all packets so far, those of earlier blocks included.
    pub(crate) latest: Time,
    /// What the hub found inside of packets, in order.
    pub(crate) handed: Vec<Handed>,
    pub(crate) own: Vec<u8>,
}

/// A packet: where its IP header is, and whose it is.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) time: Time,
    /// The latest time of all packets before it.
    pub(crate) before: Time,
    /// Number, less that of the first.
    pub(crate) index: u32,
    /// From the block's base.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) wire_len: u32,
    /// Whose it is; [`HUB`] for none of the parts.
    pub(crate) part: u8,
    /// Layers so far.
    pub(crate) layers: u8,
}

/// In place of a part: the hub took the packet, and may have handed over what is inside.
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
    /// Number of its last packet; those that nobody takes are not counted.
    pub(crate) fn last(&self) -> u64 {
        self.entries.last().map_or(self.first, |e| self.number(e))
    }

    /// Number of an entry's packet.
    pub(crate) fn number(&self, entry: &Entry) -> u64 {
        self.first + u64::from(entry.index)
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
