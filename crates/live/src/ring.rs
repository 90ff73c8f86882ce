//! A capture ring on an interface.

use std::io;
use std::sync::Arc;

use gannet_base::Time;
use gannet_capture::Bytes;
use gannet_capture::Owner;
use gannet_capture::Record;
use gannet_filter::Insn;

use crate::Error;
use crate::Interface;
use crate::offload;
use crate::prefilter;
use crate::sys::Lease;
use crate::sys::Mapping;
use crate::sys::RingSize;
use crate::sys::Socket;

/// Options of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Size of a block in bytes: a power of two of at least 64 KiB.
    pub block_size: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Milliseconds after which the kernel retires a block that is not full.
    pub retire_ms: u32,
    /// Promiscuous mode: capture packets that are addressed to other hosts.
    pub promiscuous: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { block_size: 1 << 20, blocks: 128, retire_ms: 10, promiscuous: true }
    }
}

impl RingOptions {
    /// A ring of about `bytes` bytes.
    ///
    /// # Errors
    /// If the size is below the minimum or above the maximum of a ring.
    pub fn with_size(bytes: u64) -> Result<Self, Error> {
        let default = Self::default();
        let block_size = if bytes < u64::from(default.block_size) * 4 {
            MIN_BLOCK_SIZE
        } else {
            default.block_size
        };
        let blocks = u32::try_from(bytes / u64::from(block_size)).unwrap_or(u32::MAX);
        if blocks < 2 {
            return Err(Error::Ring("a capture ring has at least 128 KiB".into()));
        }
        if blocks > MAX_BLOCKS {
            return Err(Error::Ring("a capture ring has at most 64 GiB".into()));
        }
        Ok(Self { block_size, blocks, ..default })
    }
}

/// Minimum size of a block, which fits any packet of an Ethernet link, including joined segments of up to 64 KiB.
const MIN_BLOCK_SIZE: u32 = 128 << 10;
const MAX_BLOCKS: u32 = 1 << 16;

/// Counters of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Packets returned by the source.
    pub read: u64,
    /// Packets dropped because the ring was full.
    pub dropped: u64,
    /// Number of times that the ring became full.
    pub freezes: u64,
    /// Packets that were truncated because they are longer than a block.
    pub truncated: u64,
    /// Duplicates of the loopback interface, which delivers packets twice; they are not returned.
    pub duplicates: u64,
    /// Offloaded checksums that were computed.
    pub checksums_filled: u64,
    /// Number of times that the interface went down.
    pub downs: u64,
}

impl RingCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.dropped += other.dropped;
        self.freezes += other.freezes;
        self.truncated += other.truncated;
        self.duplicates += other.duplicates;
        self.checksums_filled += other.checksums_filled;
        self.downs += other.downs;
    }
}

/// A socket with a ring on an interface.
#[derive(Debug)]
pub struct Ring {
    interface: Interface,
    /// Index of the interface among those of the source.
    number: u16,
    socket: Socket,
    map: Arc<Mapping>,
    /// Index of the next block that the kernel retires.
    next: usize,
    counters: RingCounters,
    /// Whether outgoing packets are skipped here, because the kernel cannot exclude them.
    skips_outgoing: bool,
    is_down: bool,
}

/// A block of a ring, and the positions of its packets.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    pub(crate) records: Vec<Record>,
}

/// Flags of packets that differ from their form on the wire: a tag was stripped, or the checksum is incomplete.
const CHECKSUM_NOT_READY: u32 = 1 << 3;
const TAG_VALID: u32 = 1 << 4;
const TAG_PROTOCOL_VALID: u32 = 1 << 6;
/// The protocol of a tag if the kernel does not report it.
const DEFAULT_TAG_PROTOCOL: u16 = 0x8100;
/// Offset of a packet's `sockaddr_ll`, which follows its header.
const ADDRESS_OFFSET: usize = 48;
/// Type of a packet that this host sent (`PACKET_OUTGOING`).
const OUTGOING: u8 = 4;

impl Ring {
    /// Opens a ring that receives no packets until it is [started](Self::start).
    ///
    /// # Errors
    /// If the process may not capture, or the ring cannot be created.
    pub fn open(interface: &Interface, number: u16, options: RingOptions) -> Result<Self, Error> {
        let name = &interface.name;
        let system_error = |what| move |source| Error::system(name, what, source);
        let socket = Socket::new().map_err(system_error("packet socket"))?;
        // Packets that arrive before the filter is attached must not reach the ring.
        socket.attach(&prefilter::REJECT_ALL).map_err(system_error("filter"))?;
        let skips_outgoing = interface.is_loopback && socket.ignore_outgoing().is_err();
        let size = RingSize {
            block_size: options.block_size,
            blocks: options.blocks,
            retire_ms: options.retire_ms,
        };
        let map = socket.ring(size, offload::TAG as u32).map_err(system_error("capture ring"))?;
        socket.bind(interface.index).map_err(system_error("bind"))?;
        if options.promiscuous && !interface.is_loopback {
            socket.promiscuous(interface.index).map_err(system_error("promiscuous mode"))?;
        }
        Ok(Self {
            interface: interface.clone(),
            number,
            socket,
            map: Arc::new(map),
            next: 0,
            counters: RingCounters::default(),
            skips_outgoing,
            is_down: false,
        })
    }

    /// Joins a fan-out group of rings that share the packets of an interface by flow; `None` creates a group. Returns
    /// the number of the group.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn fan_out(&self, group: Option<u16>) -> Result<u16, Error> {
        let system_error = |source| Error::system(&self.interface.name, "fan-out", source);
        self.socket.fan_out(group).map_err(system_error)
    }

    /// Starts receiving packets that match the filter. Returns `false` if the kernel rejected the filter, so that all
    /// packets are received.
    ///
    /// # Errors
    /// If receiving cannot be started.
    pub fn start(&self, filter: Option<&[Insn]>) -> Result<bool, Error> {
        if let Some(program) = filter.and_then(prefilter::program)
            && self.socket.attach(&program).is_ok()
        {
            return Ok(true);
        }
        let system_error = |source| Error::system(&self.interface.name, "filter", source);
        self.socket.detach().map_err(system_error)?;
        Ok(filter.is_none())
    }

    /// Stops receiving packets; those in the ring can still be read.
    pub(crate) fn stop(&self) {
        // If the filter cannot be attached, packets are read until the caller stops.
        let _ = self.socket.attach(&prefilter::REJECT_ALL);
    }

    /// Counts packets that were taken from the ring and discarded as dropped.
    pub(crate) fn count_discarded(&mut self, packets: u64) {
        self.counters.read = self.counters.read.saturating_sub(packets);
        self.counters.dropped += packets;
    }

    /// The interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the counters, updated from the kernel.
    pub fn counters(&mut self) -> RingCounters {
        if let Ok(now) = self.socket.statistics() {
            self.counters.dropped += u64::from(now.drops);
            self.counters.freezes += u64::from(now.freezes);
        }
        self.counters
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.map.blocks()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Handles an error of the socket: the interface went down or was removed, which is counted.
    pub(crate) fn handle_error(&mut self) {
        // Reading the error clears it.
        let _ = self.socket.take_error();
        if !self.is_down {
            self.counters.downs += 1;
            self.is_down = true;
        }
    }

    /// Whether the interface went down or was removed. The ring does not capture on a new interface of the same name.
    pub(crate) fn is_down(&mut self) -> bool {
        if self.is_down && Interface::is_up(&self.interface.name) {
            let now = Interface::named(&self.interface.name);
            self.is_down = !now.is_ok_and(|now| now.index == self.interface.index);
        }
        self.is_down
    }

    /// Index of the interface among those of the source.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Takes the next block that the kernel has retired; returns whether one was available.
    pub(crate) fn take(&mut self, block: &mut Block) -> bool {
        block.records.clear();
        let Some(mut lease) = self.map.take(self.next) else { return false };
        self.next = (self.next + 1) % self.map.blocks();
        self.read(&mut lease, &mut block.records);
        self.counters.read += block.records.len() as u64;
        let owner: Box<dyn Owner> = Box::new(lease);
        block.bytes = Bytes::from(owner);
        true
    }

    /// Restores the packets of a block to their form on the wire, and records their positions.
    fn read(&mut self, lease: &mut Lease, records: &mut Vec<Record>) {
        let is_ethernet = self.interface.link_type == gannet_capture::LinkType::ETHERNET;
        let bytes = lease.bytes_mut();
        let packets = u32_at(bytes, 12);
        let mut at = u32_at(bytes, 16) as usize;
        for _ in 0..packets {
            // The kernel wrote the block, but a header out of bounds still ends it.
            let Some(head) = bytes.get(at..).and_then(|b| b.first_chunk::<60>()) else { break };
            let head = *head;
            let next = u32_at(&head, 0) as usize;
            let (seconds, nanos) = (u32_at(&head, 4), u32_at(&head, 8));
            let (mut cap_len, mut len, status) =
                (u32_at(&head, 12), u32_at(&head, 16), u32_at(&head, 20));
            let mut start = at + usize::from(u16_at(&head, 24));
            let is_double = self.skips_outgoing && head.get(ADDRESS_OFFSET + 10) == Some(&OUTGOING);
            if is_double {
                self.counters.duplicates += 1;
            } else {
                self.counters.truncated += u64::from(cap_len < len);
                if status & TAG_VALID != 0 && is_ethernet && cap_len as usize >= 12 {
                    let protocol = match status & TAG_PROTOCOL_VALID {
                        0 => DEFAULT_TAG_PROTOCOL,
                        _ => u16_at(&head, 36),
                    };
                    let end = start + cap_len as usize;
                    let frame = bytes.get_mut(start - offload::TAG..end).unwrap_or_default();
                    if offload::restore_tag(frame, protocol, u32_at(&head, 32) as u16) {
                        start -= offload::TAG;
                        (cap_len, len) = (cap_len + offload::TAG as u32, len + offload::TAG as u32);
                    }
                }
                if status & CHECKSUM_NOT_READY != 0 && cap_len == len {
                    let frame = bytes.get_mut(start..start + cap_len as usize).unwrap_or_default();
                    let filled = offload::fill_checksum(frame, is_ethernet);
                    self.counters.checksums_filled += u64::from(filled);
                }
                records.push(Record {
                    time: Time::from_nanos(i64::from(seconds) * 1_000_000_000 + i64::from(nanos)),
                    offset: start as u32,
                    cap_len,
                    wire_len: len,
                    link_type: self.interface.link_type,
                    interface: self.number,
                });
            }
            if next == 0 {
                break;
            }
            at += next;
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_ne_bytes(*b))
}

/// Whether an error means that a signal interrupted a wait.
pub(crate) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_the_requested_size() {
        let of = |bytes| RingOptions::with_size(bytes).map(|o| (o.block_size, o.blocks));
        assert_eq!(of(128 << 20).unwrap(), (1 << 20, 128));
        assert_eq!(of(512 << 10).unwrap(), (128 << 10, 4));
        assert!(of(128 << 10).is_err() && of(0).is_err() && of(u64::MAX).is_err());
    }
}
