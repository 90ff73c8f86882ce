//! Mutated captures, each a function of its number.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use anyhow::Context;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::Reader;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use gannet_synth::Rng;

use crate::workspace;

/// Maximum number of bytes used of a seed, as mutations of large captures take long.
const SEED_BYTES: usize = 400_000;

/// Captures to start from.
pub(crate) struct Seeds {
    files: Vec<PathBuf>,
}

/// An owned packet, which can be changed.
#[derive(Clone)]
struct Owned {
    time: Time,
    wire_len: u32,
    link_type: LinkType,
    data: Vec<u8>,
}

impl Seeds {
    /// All captures of the shared folder; the sample if there are none.
    pub(crate) fn gather() -> anyhow::Result<Self> {
        let mut files = Vec::new();
        if let Some(shared) = workspace::shared() {
            for folder in ["captures", "hostile"] {
                workspace::gather(&shared.join("conformance").join(folder), &mut files)?;
            }
        }
        if files.is_empty() {
            files.push(workspace::root().join("examples/sample.pcap"));
        }
        files.sort();
        Ok(Self { files })
    }

    /// The paths of the captures, in order.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The number of captures.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    fn bytes(&self, rng: &mut Rng) -> anyhow::Result<Vec<u8>> {
        let file = &self.files[rng.below(self.files.len() as u64) as usize];
        let mut bytes = fs::read(file).with_context(|| file.display().to_string())?;
        bytes.truncate(SEED_BYTES);
        Ok(bytes)
    }

    /// The mutated capture with a number.
    pub(crate) fn mutated(&self, number: u64) -> anyhow::Result<Vec<u8>> {
        let mut rng = Rng::new(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6761_6e6e_6574);
        let mut bytes = self.bytes(&mut rng)?;
        // Most damage is inside packets, as damage to the file structure soon ends reading.
        if rng.below(5) == 0 {
            for _ in 0..=rng.below(4) {
                self.file(&mut bytes, &mut rng)?;
            }
            return Ok(bytes);
        }
        let mut packets = packets(bytes);
        for _ in 0..=rng.below(6) {
            self.records(&mut packets, &mut rng)?;
        }
        written(&packets)
    }

    /// Damages a file independent of its format.
    fn file(&self, bytes: &mut Vec<u8>, rng: &mut Rng) -> anyhow::Result<()> {
        match rng.below(4) {
            0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
            1 => flip(bytes, rng),
            2 => overwrite(bytes, rng),
            _ => {
                let other = self.bytes(rng)?;
                let part = range(other.len(), rng);
                let at = rng.below(bytes.len() as u64 + 1) as usize;
                bytes.splice(at..at, other[part].iter().copied());
            }
        }
        Ok(())
    }

    /// Damages packets and their order, in a file that remains valid.
    fn records(&self, packets: &mut Vec<Owned>, rng: &mut Rng) -> anyhow::Result<()> {
        let at = rng.below(packets.len() as u64) as usize;
        match rng.below(9) {
            // Flips bits in each packet with some probability: state machines need more than one
            // changed packet.
            0..=2 => {
                let one_in = 1 + rng.below(20);
                for packet in packets.iter_mut() {
                    if rng.below(one_in) == 0 {
                        flip(&mut packet.data, rng);
                    }
                }
            }
            3 => {
                for packet in packets.iter_mut().filter(|p| p.data.len() > 54) {
                    // After the usual headers, in the application protocol.
                    if rng.below(4) == 0 {
                        let (_, payload) = packet.data.split_at_mut(54);
                        overwrite(payload, rng);
                    }
                }
            }
            4 => {
                // Truncated as by a snaplen: the wire length stays.
                let len = rng.below(200) as usize;
                for packet in packets.iter_mut() {
                    packet.data.truncate(len);
                }
            }
            5 => {
                let other = self::packets(self.bytes(rng)?);
                let part = range(other.len(), rng);
                packets.splice(at.min(packets.len())..at.min(packets.len()), other[part].to_vec());
            }
            6 => {
                let part = range(packets.len(), rng);
                let copy = packets[part].to_vec();
                packets.splice(at.min(packets.len())..at.min(packets.len()), copy);
            }
            7 => {
                let part = range(packets.len(), rng);
                packets.drain(part);
            }
            _ => {
                // Times jump forwards and backwards.
                let bits = 20 + rng.below(40);
                let span = rng.below(1 << bits) as i64;
                let back = rng.below(2) == 0;
                for packet in packets.iter_mut().skip(at) {
                    let span = Interval::from_nanos(if back { -span } else { span });
                    packet.time =
                        Time::from_nanos(packet.time.as_nanos().saturating_add(span.as_nanos()));
                }
            }
        }
        Ok(())
    }
}

/// A range of at most 64 elements within `len`.
fn range(len: usize, rng: &mut Rng) -> std::ops::Range<usize> {
    let from = rng.below(len as u64 + 1) as usize;
    let to = (from + rng.below(64) as usize).min(len);
    from..to
}

fn flip(bytes: &mut [u8], rng: &mut Rng) {
    for _ in 0..=rng.below(8) {
        let at = rng.below(bytes.len() as u64) as usize;
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
}

/// Boundary values, at offsets of lengths and counts.
fn overwrite(bytes: &mut [u8], rng: &mut Rng) {
    const EDGES: [u8; 6] = [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff];
    let from = rng.below(bytes.len() as u64) as usize;
    let edge = EDGES[rng.below(EDGES.len() as u64) as usize];
    for byte in bytes.iter_mut().skip(from).take(1 + rng.below(4) as usize) {
        *byte = edge;
    }
}

/// The packets of a capture, as far as it can be read.
fn packets(bytes: Vec<u8>) -> Vec<Owned> {
    let mut packets = Vec::new();
    let Ok(mut reader) = Reader::from_read(Box::new(Cursor::new(bytes)), "seed") else {
        return packets;
    };
    while let Ok(Some(batch)) = reader.next_batch() {
        packets.extend(batch.iter().map(|p| Owned {
            time: p.time,
            wire_len: p.wire_len,
            link_type: p.link_type,
            data: p.data.to_vec(),
        }));
    }
    packets
}

/// Packets of any link types as pcapng.
fn written(packets: &[Owned]) -> anyhow::Result<Vec<u8>> {
    let file = Shared::default();
    let mut writer =
        Writer::to_write(Box::new(file.clone()), "mutated.pcapng", WriteOptions::default());
    for (number, packet) in (1..).zip(packets) {
        writer.write(&Packet {
            // pcapng counts from 1970.
            time: packet.time.max(Time::ZERO),
            wire_len: packet.wire_len.max(packet.data.len() as u32),
            link_type: packet.link_type,
            interface: 0,
            format: Format::Pcap,
            number,
            data: &packet.data,
        })?;
    }
    writer.finish()?;
    Ok(file.take())
}

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        self.0.lock().map(|mut b| std::mem::take(&mut *b)).unwrap_or_default()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if let Ok(mut bytes) = self.0.lock() {
            bytes.extend_from_slice(data);
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_determines_a_capture() {
        let seeds = Seeds { files: vec![workspace::root().join("examples/sample.pcap")] };
        let make = |number| seeds.mutated(number).unwrap();
        assert_eq!(make(7), make(7));
        let original = fs::read(&seeds.files[0]).unwrap();
        assert!((0..20).filter(|n| make(*n) != original).count() >= 19);
    }
}
