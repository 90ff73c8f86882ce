//! A capture ring on one interface.

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
use crate::sys::Shape;
use crate::sys::Socket;

/// Size of a ring, and how it captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Bytes of a block, a power of two from 64 KiB on.
    pub block_size: u32,
    /// Blocks of the ring.
    pub blocks: u32,
    /// Milliseconds after which the kernel gives a block away that is not full.
    pub retire_ms: u32,
    /// Capture packets that are addressed to other hosts.
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
    /// When that is less than a ring needs, or more than the kernel can count.
    pub fn of_bytes(bytes: u64) -> Result<Self, Error> {
        let default = Self::default();
        let block_size = if bytes < u64::from(default.block_size) * 4 {
            SMALLEST_BLOCK
        } else {
            default.block_size
        };
        let blocks = u32::try_from(bytes / u64::from(block_size)).unwrap_or(u32::MAX);
        if blocks < 2 {
            return Err(Error::Ring("a capture ring has 128 KiB at least".into()));
        }
        if blocks > MOST_BLOCKS {
            return Err(Error::Ring("a capture ring has 64 GiB at most".into()));
        }
        Ok(Self { block_size, blocks, ..default })
    }
}

/// Room for any packet of an Ethernet link, joined segments (up to 64 KiB) included.
const SMALLEST_BLOCK: u32 = 128 << 10;
const MOST_BLOCKS: u32 = 1 << 16;

/// What became of the packets of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Packets handed out.
    pub read: u64,
    /// Packets that found the ring full.
    pub dropped: u64,
    /// How often the ring became full.
    pub freezes: u64,
    /// Packets of which the ring kept only a part, for they are longer than a block.
    pub cut: u64,
    /// Packets not handed out because the loopback interface delivers them twice.
    pub doubles: u64,
    /// Checksums filled in that were left to the network card.
    pub checksums_filled: u64,
    /// How often the interface went down.
    pub downs: u64,
}

impl RingCounters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.dropped += other.dropped;
        self.freezes += other.freezes;
        self.cut += other.cut;
        self.doubles += other.doubles;
        self.checksums_filled += other.checksums_filled;
        self.downs += other.downs;
    }
}

/// A socket with a ring on an interface.
#[derive(Debug)]
pub struct Ring {
    interface: Interface,
    /// Number of the interface among those of the source.
    number: u16,
    socket: Socket,
    map: Arc<Mapping>,
    /// The block that the kernel gives away next.
    next: usize,
    counters: RingCounters,
    /// Set once the kernel could not be asked to leave outgoing packets out.
    skips_outgoing: bool,
    is_down: bool,
}

/// A block of a ring, and where its packets lie.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    pub(crate) records: Vec<Record>,
}

/// Packets that are not on the wire as they are captured: a tag was taken out, or a checksum is missing.
const CHECKSUM_NOT_READY: u32 = 1 << 3;
const TAG_VALID: u32 = 1 << 4;
const TAG_PROTOCOL_VALID: u32 = 1 << 6;
/// The protocol of a tag where the kernel does not say.
const TAG_PROTOCOL: u16 = 0x8100;
/// Where the address stands that belongs to a packet: behind its header of 48 bytes.
const ADDRESS: usize = 48;
/// Kind of a packet that this host sent.
const OUTGOING: u8 = 4;

impl Ring {
    /// Opens a ring that lets nothing in before it is [started](Self::start).
    ///
    /// # Errors
    /// When the process may not capture, or the ring cannot be made.
    pub fn open(interface: &Interface, number: u16, options: RingOptions) -> Result<Self, Error> {
        let name = &interface.name;
        let failed = |what| move |source| Error::system(name, what, source);
        let socket = Socket::new().map_err(failed("packet socket"))?;
        // Packets that arrive before the filter is attached must not reach the ring.
        socket.attach(&prefilter::NOTHING).map_err(failed("filter"))?;
        let skips_outgoing = interface.is_loopback && socket.ignore_outgoing().is_err();
        let shape = Shape {
            block_size: options.block_size,
            blocks: options.blocks,
            retire_ms: options.retire_ms,
        };
        let map = socket.ring(shape, offload::TAG as u32).map_err(failed("capture ring"))?;
        socket.bind(interface.index).map_err(failed("bind"))?;
        if options.promiscuous && !interface.is_loopback {
            socket.promiscuous(interface.index).map_err(failed("promiscuous mode"))?;
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

    /// Shares the packets of its interface with other rings by flow; `None` makes a group. Returns the number of the
    /// group.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn fan_out(&self, group: Option<u16>) -> Result<u16, Error> {
        let failed = |source| Error::system(&self.interface.name, "fan-out", source);
        self.socket.fan_out(group).map_err(failed)
    }

    /// Lets packets in: those that the filter passes, if there is one. Returns whether the kernel took the filter.
    ///
    /// # Errors
    /// When the kernel refuses to let packets in.
    pub fn start(&self, filter: Option<&[Insn]>) -> Result<bool, Error> {
        if let Some(program) = filter.and_then(prefilter::program)
            && self.socket.attach(&program).is_ok()
        {
            return Ok(true);
        }
        let failed = |source| Error::system(&self.interface.name, "filter", source);
        self.socket.detach().map_err(failed)?;
        Ok(filter.is_none())
    }

    /// Lets no more packets in; those in the ring can still be read.
    pub(crate) fn stop(&self) {
        // A socket that takes no filter goes on: its packets are read until the caller has enough.
        let _ = self.socket.attach(&prefilter::NOTHING);
    }

    /// Counts packets as dropped that were taken and not handed out.
    pub(crate) fn drop_taken(&mut self, packets: u64) {
        self.counters.read = self.counters.read.saturating_sub(packets);
        self.counters.dropped += packets;
    }

    /// Its interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// What became of its packets. Asks the kernel.
    pub fn counters(&mut self) -> RingCounters {
        if let Ok(now) = self.socket.statistics() {
            self.counters.dropped += u64::from(now.drops);
            self.counters.freezes += u64::from(now.freezes);
        }
        self.counters
    }

    /// Blocks that the ring has.
    pub fn blocks(&self) -> usize {
        self.map.blocks()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The socket has an error: the interface went down or was removed, which is counted.
    pub(crate) fn has_failed(&mut self) {
        // Reading the error clears it.
        let _ = self.socket.take_error();
        if !self.is_down {
            self.counters.downs += 1;
            self.is_down = true;
        }
    }

    /// Whether the interface is down, as far as its packets show, or was removed. One that was made again under its name is
    /// another one, on which this ring captures nothing.
    pub(crate) fn is_down(&mut self) -> bool {
        if self.is_down && Interface::is_up(&self.interface.name) {
            let now = Interface::named(&self.interface.name);
            self.is_down = !now.is_ok_and(|now| now.index == self.interface.index);
        }
        self.is_down
    }

    /// The number of its interface.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Takes the next block that the kernel has given away; returns whether there was one.
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

    /// Makes the packets of a block what was on the wire, and notes where they lie.
    fn read(&mut self, lease: &mut Lease, records: &mut Vec<Record>) {
        let is_ethernet = self.interface.link_type == gannet_capture::LinkType::ETHERNET;
        let bytes = lease.bytes_mut();
        let packets = word(bytes, 12);
        let mut at = word(bytes, 16) as usize;
        for _ in 0..packets {
            // The kernel made the block: a header that is not there ends it all the same.
            let Some(head) = bytes.get(at..).and_then(|b| b.first_chunk::<60>()) else { break };
            let head = *head;
            let next = word(&head, 0) as usize;
            let (seconds, nanos) = (word(&head, 4), word(&head, 8));
            let (mut kept, mut len, status) = (word(&head, 12), word(&head, 16), word(&head, 20));
            let mut start = at + usize::from(half(&head, 24));
            let is_double = self.skips_outgoing && head.get(ADDRESS + 10) == Some(&OUTGOING);
            if is_double {
                self.counters.doubles += 1;
            } else {
                self.counters.cut += u64::from(kept < len);
                if status & TAG_VALID != 0 && is_ethernet && kept as usize >= 12 {
                    let protocol = match status & TAG_PROTOCOL_VALID {
                        0 => TAG_PROTOCOL,
                        _ => half(&head, 36),
                    };
                    let end = start + kept as usize;
                    let room = bytes.get_mut(start - offload::TAG..end).unwrap_or_default();
                    if offload::restore_tag(room, protocol, word(&head, 32) as u16) {
                        start -= offload::TAG;
                        (kept, len) = (kept + offload::TAG as u32, len + offload::TAG as u32);
                    }
                }
                if status & CHECKSUM_NOT_READY != 0 && kept == len {
                    let frame = bytes.get_mut(start..start + kept as usize).unwrap_or_default();
                    let filled = offload::fill_checksum(frame, is_ethernet);
                    self.counters.checksums_filled += u64::from(filled);
                }
                records.push(Record {
                    time: Time::from_nanos(i64::from(seconds) * 1_000_000_000 + i64::from(nanos)),
                    offset: start as u32,
                    cap_len: kept,
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

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_ne_bytes(*b))
}

/// Whether an error of waiting is only a signal.
pub(crate) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_have_the_size_asked_for() {
        let of = |bytes| RingOptions::of_bytes(bytes).map(|o| (o.block_size, o.blocks));
        assert_eq!(of(128 << 20).unwrap(), (1 << 20, 128));
        assert_eq!(of(512 << 10).unwrap(), (128 << 10, 4));
        assert!(of(128 << 10).is_err() && of(0).is_err() && of(u64::MAX).is_err());
    }
}
