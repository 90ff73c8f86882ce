//! The pcapng format (draft-ietf-opsawg-pcapng).
//!
//! A file is a sequence of blocks: type, length, body, length again. A section header sets the byte
//! order and resets the interfaces; interface descriptions set link type and time unit of the
//! packets that refer to them; packets are in Enhanced, Simple and (obsolete) Packet Blocks. Blocks
//! of other types are skipped.

use std::borrow::Cow;

use crate::LinkType;
use crate::blocks::Block;
use crate::blocks::Blocks;
use crate::bytes::u16_at;
use crate::bytes::u32_at;
use crate::bytes::u64_at;
use crate::format::Endian;
use crate::format::Interface;
use crate::format::Origin;
use crate::format::ParseResult;
use crate::format::Stop;
use crate::format::Window;
use crate::map::prefetch_after;
use crate::options::Options;
use crate::packet::BATCH_BYTES;
use crate::packet::MAX_PACKET;
use crate::packet::PCAPNG;
use crate::packet::PacketRef;
use crate::packet::SIMPLE;
use crate::ticks::Ticks;

/// Section Header Block; the number is the same in both byte orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub(crate) const INTERFACE: u32 = 1;
/// Packet Block, obsolete.
const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
const SIMPLE_PACKET: u32 = 3;
/// Enhanced Packet Block.
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Custom Block that must not be copied by a tool that modifies the file.
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
/// The byte-order magic of a section header, after its length.
pub(crate) const ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Maximum length of a valid block: a packet of maximum length with space for options.
const MAX_BLOCK: usize = MAX_PACKET + (1 << 20);

/// Maximum number of interfaces of a file, over all its sections; more are treated as damage.
/// Packets store their interface in 14 bits.
const MAX_INTERFACES: usize = 16_384;

const _: () = assert!(MAX_INTERFACES <= SIMPLE as usize && SIMPLE < PCAPNG);

/// Maximum number of comments stored for a file.
const MAX_COMMENTS: usize = 16;

/// Whether `head` starts with a section header of either byte order.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.len() >= 12 && u32_at(head, 0, false) == SECTION && order(head).is_some()
}

fn order(block: &[u8]) -> Option<Endian> {
    [Endian::Little, Endian::Big].into_iter().find(|e| u32_at(block, 8, e.is_big()) == ORDER_MAGIC)
}

/// The facts of an interface that its packets need, in compact form.
#[derive(Clone, Copy, Debug)]
struct PacketInterface {
    ticks: Ticks,
    snaplen: u32,
    link_type: u16,
    /// See [`PacketRef::origin`].
    origin: u16,
}

/// Parses the records of a pcapng file.
#[derive(Debug)]
pub(crate) struct Records {
    endian: Endian,
    /// Interfaces of this section.
    packet_interfaces: Vec<PacketInterface>,
    /// Interfaces of the file.
    interfaces: Vec<Interface>,
    origin: Origin,
    /// The receiver of blocks that are not packets, if requested, with the number of packets so
    /// far.
    blocks: Option<(Blocks, u64)>,
}

/// The reason why a block is invalid.
type Flaw = Cow<'static, str>;

impl Records {
    /// Creates a reader for a file that starts with `head`, and consumes no bytes.
    pub(crate) fn open(head: &[u8]) -> Result<Self, String> {
        let endian = order(head).ok_or("no pcapng byte-order magic")?;
        known_version(head.get(8..).unwrap_or_default(), endian)?;
        let origin = Origin::default();
        Ok(Self {
            endian,
            packet_interfaces: Vec::new(),
            interfaces: Vec::new(),
            origin,
            blocks: None,
        })
    }

    /// Stores blocks that are not packets from here on.
    pub(crate) fn keep_blocks(&mut self) -> Blocks {
        let (blocks, _) = self.blocks.get_or_insert_default();
        blocks.clone()
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// See [`crate::format::Records::parse_records`].
    pub(crate) fn parse_records(
        &mut self,
        data: Window<'_>,
        max_packets: usize,
        out: &mut Vec<PacketRef>,
    ) -> ParseResult {
        let Window { data, is_far } = data;
        let mut at = 0;
        let had = out.len();
        let stop = loop {
            if out.len() >= max_packets || at >= BATCH_BYTES {
                break Stop::Full;
            }
            let rest = data.get(at..).unwrap_or_default();
            let Some(head) = rest.first_chunk::<12>() else {
                break Stop::More(12);
            };
            if u32_at(head, 0, false) == SECTION {
                // Its length can be read only after its byte order is known.
                match order(head) {
                    Some(endian) => self.endian = endian,
                    None => break Stop::Damage("a section header without byte-order magic".into()),
                }
            }
            let big = self.endian.is_big();
            let len = u32_at(head, 4, big) as usize;
            if len < 12 || !len.is_multiple_of(4) || len > MAX_BLOCK {
                break Stop::Damage(format!("a block has an invalid length of {len} bytes").into());
            }
            let Some(block) = rest.get(..len) else {
                break Stop::More(len);
            };
            if u32_at(block, len - 4, big) as usize != len {
                break Stop::Damage("the two length fields of a block differ".into());
            }
            let body = block.get(8..len - 4).unwrap_or_default();
            let kind = u32_at(head, 0, big);
            if let Err(flaw) = self.block(kind, body, at + 8, out) {
                break Stop::Damage(flaw);
            }
            if let Some((blocks, before)) = &self.blocks
                && !matches!(kind, ENHANCED_PACKET | OLD_PACKET | SIMPLE_PACKET | CUSTOM_NOT_COPIED)
            {
                blocks.push(Block::new(*before + (out.len() - had) as u64, kind, block));
            }
            if is_far {
                prefetch_after(data, at, at + len);
            }
            at += len;
        };
        if let Some((_, before)) = &mut self.blocks {
            *before += (out.len() - had) as u64;
        }
        ParseResult { used: at, stop }
    }

    /// Parses a block, whose `body` is at offset `at` of the batch.
    #[inline]
    fn block(
        &mut self,
        kind: u32,
        body: &[u8],
        at: usize,
        out: &mut Vec<PacketRef>,
    ) -> Result<(), Flaw> {
        let big = self.endian.is_big();
        match kind {
            ENHANCED_PACKET | OLD_PACKET => {
                let Some(head) = body.first_chunk::<20>() else {
                    return Err("a packet block is too short".into());
                };
                // The obsolete block has a drop count in the upper half of this word.
                let id = if kind == ENHANCED_PACKET {
                    u32_at(head, 0, big)
                } else {
                    u32::from(u16_at(head, 0, big))
                };
                let Some(port) = self.packet_interfaces.get(id as usize) else {
                    return Err(format!(
                        "a packet refers to interface {id}, which is not described"
                    )
                    .into());
                };
                let cap_len = u32_at(head, 12, big);
                if cap_len as usize > body.len() - 20 {
                    return Err(format!("a packet of {cap_len} bytes exceeds its block").into());
                }
                let ticks = u64::from(u32_at(head, 4, big)) << 32 | u64::from(u32_at(head, 8, big));
                out.push(PacketRef {
                    time: port.ticks.nanos(ticks),
                    offset: (at + 20) as u32,
                    cap_len,
                    wire_len: u32_at(head, 16, big),
                    link_type: port.link_type,
                    origin: port.origin,
                });
                Ok(())
            }
            SIMPLE_PACKET => {
                let Some(head) = body.first_chunk::<4>() else {
                    return Err("a packet block is too short".into());
                };
                let Some(port) = self.packet_interfaces.first() else {
                    return Err(
                        "a simple packet block before the first interface description".into()
                    );
                };
                // The block has no captured length, which follows from the other lengths.
                let wire_len = u32_at(head, 0, big);
                let limit = if port.snaplen == 0 { u32::MAX } else { port.snaplen };
                let cap_len = wire_len.min(limit).min((body.len() - 4) as u32);
                out.push(PacketRef {
                    time: 0,
                    offset: (at + 4) as u32,
                    cap_len,
                    wire_len,
                    link_type: port.link_type,
                    origin: port.origin | SIMPLE,
                });
                Ok(())
            }
            SECTION => self.section(body),
            INTERFACE => self.interface(body),
            _ => Ok(()),
        }
    }

    #[cold]
    fn section(&mut self, body: &[u8]) -> Result<(), Flaw> {
        let big = self.endian.is_big();
        if body.len() < 16 {
            return Err("a section header is too short".into());
        }
        known_version(body, self.endian)?;
        self.packet_interfaces.clear();
        self.origin.sections = self.origin.sections.saturating_add(1);
        for (code, value) in Options::new(body.get(16..).unwrap_or_default(), big) {
            match code {
                1 if self.origin.comments.len() < MAX_COMMENTS => {
                    self.origin.comments.push(text(value));
                }
                2 => store_text(&mut self.origin.hardware, value),
                3 => store_text(&mut self.origin.os, value),
                4 => store_text(&mut self.origin.application, value),
                _ => {}
            }
        }
        Ok(())
    }

    #[cold]
    fn interface(&mut self, body: &[u8]) -> Result<(), Flaw> {
        let big = self.endian.is_big();
        if body.len() < 8 {
            return Err("an interface description is too short".into());
        }
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(format!("more than {MAX_INTERFACES} interfaces").into());
        }
        let mut interface = Interface {
            link_type: LinkType(u16_at(body, 0, big)),
            snaplen: u32_at(body, 4, big),
            ..Interface::default()
        };
        let (mut resolution, mut offset) = (6, 0);
        for (code, value) in Options::new(body.get(8..).unwrap_or_default(), big) {
            match (code, value) {
                (1, _) => store_text(&mut interface.comment, value),
                (2, _) => store_text(&mut interface.name, value),
                (3, _) => store_text(&mut interface.description, value),
                (8, [_, _, _, _, _, _, _, _]) => interface.speed = Some(u64_at(value, 0, big)),
                (9, [r]) => resolution = *r,
                // A first byte of 0 means that the filter is text.
                (11, [0, filter @ ..]) => store_text(&mut interface.filter, filter),
                (12, _) => store_text(&mut interface.os, value),
                (14, [_, _, _, _, _, _, _, _]) => offset = u64_at(value, 0, big) as i64,
                (15, _) => store_text(&mut interface.hardware, value),
                _ => {}
            }
        }
        let ticks = Ticks::new(resolution, offset);
        interface.digits = ticks.digits();
        self.packet_interfaces.push(PacketInterface {
            ticks,
            snaplen: interface.snaplen,
            link_type: interface.link_type.0,
            origin: self.interfaces.len() as u16 | PCAPNG,
        });
        self.interfaces.push(interface);
        Ok(())
    }
}

/// Checks the version in the body of a section header.
fn known_version(body: &[u8], endian: Endian) -> Result<(), String> {
    let (major, minor) = (u16_at(body, 4, endian.is_big()), u16_at(body, 6, endian.is_big()));
    // Readers need not distinguish 1.2 from 1.0.
    if major != 1 {
        return Err(format!("pcapng version {major}.{minor} is not supported; gannet reads 1.x"));
    }
    Ok(())
}

/// Maximum number of bytes stored of an option's text.
const MAX_TEXT: usize = 1024;

fn text(value: &[u8]) -> String {
    let value = value.get(..MAX_TEXT).unwrap_or(value);
    // Some writers terminate texts with NUL, which the format neither requires nor forbids.
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

fn store_text(slot: &mut Option<String>, value: &[u8]) {
    slot.get_or_insert_with(|| text(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BATCH_PACKETS;
    use crate::Format;

    fn w(v: u32, big: bool) -> [u8; 4] {
        if big { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    fn h(v: u16, big: bool) -> [u8; 2] {
        if big { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    /// A block of `kind` with a padded `body`.
    fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
        let len = 12 + body.len().next_multiple_of(4);
        let mut b = [w(kind, big), w(len as u32, big)].concat();
        b.extend(body);
        b.resize(len - 4, 0);
        b.extend(w(len as u32, big));
        b
    }

    fn section(big: bool, options: &[u8]) -> Vec<u8> {
        let mut body = [&w(ORDER_MAGIC, big)[..], &h(1, big), &h(0, big), &[0xff; 8]].concat();
        body.extend(options);
        block(SECTION, &body, big)
    }

    fn interface(link_type: u16, snaplen: u32, options: &[u8], big: bool) -> Vec<u8> {
        let mut body = [&h(link_type, big)[..], &h(0, big), &w(snaplen, big)].concat();
        body.extend(options);
        block(INTERFACE, &body, big)
    }

    fn enhanced(id: u32, ticks: u64, data: &[u8], wire_len: u32, big: bool) -> Vec<u8> {
        let words = [id, (ticks >> 32) as u32, ticks as u32, data.len() as u32, wire_len];
        let mut body = words.map(|v| w(v, big)).concat();
        body.extend(data);
        block(ENHANCED_PACKET, &body, big)
    }

    fn far(data: &[u8]) -> Window<'_> {
        Window { data, is_far: true }
    }

    fn parse_records(file: &[u8]) -> (Records, Vec<PacketRef>, ParseResult) {
        let mut records = Records::open(file).unwrap();
        let mut out = Vec::new();
        let parsed = records.parse_records(far(file), BATCH_PACKETS, &mut out);
        (records, out, parsed)
    }

    fn flaw(file: &[u8]) -> String {
        match parse_records(file).2.stop {
            Stop::Damage(what) => what.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sections_of_both_orders_with_their_own_interfaces() {
        let mut file = section(false, &[]);
        file.extend(interface(1, 96, &[9, 0, 1, 0, 9, 0, 0, 0], false));
        file.extend(interface(101, 0, &[14, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0], false));
        file.extend(enhanced(0, 5_000_000_007, b"abcde", 60, false));
        file.extend(enhanced(1, 1_000_001, b"xyz", 3, false));
        file.extend(block(0x0bad_cafe, &[1; 20], false));
        file.extend(section(true, &[]));
        file.extend(interface(113, 0, &[], true));
        file.extend(enhanced(0, 2_500_000, b"", 9, true));
        let (records, out, parsed) = parse_records(&file);
        assert_eq!(parsed.used, file.len());
        let times: Vec<_> = out.iter().map(|r| r.time).collect();
        assert_eq!(times, [5_000_000_007, 11_000_001_000, 2_500_000_000]);
        let kinds: Vec<_> = out.iter().map(|r| (r.link_type, r.interface())).collect();
        assert_eq!(kinds, [(1, 0), (101, 1), (113, 2)]);
        assert!(out.iter().all(|r| r.format() == Format::PcapNg));
        let at = out[0].offset as usize;
        assert_eq!(&file[at..at + 5], b"abcde");
        assert_eq!((out[2].cap_len, out[2].wire_len), (0, 9));
        assert_eq!(records.interfaces().len(), 3);
        assert_eq!((records.interfaces()[0].digits, records.interfaces()[1].digits), (9, 6));
        assert_eq!(records.origin().sections, 2);
        assert_eq!(records.endian(), Endian::Big);
    }

    #[test]
    fn simple_and_old_packet_blocks() {
        let mut file = section(true, &[]);
        file.extend(interface(1, 4, &[], true));
        let simple = [&w(6, true)[..], b"abcd"].concat();
        file.extend(block(SIMPLE_PACKET, &simple, true));
        let old =
            [&h(0, true)[..], &h(77, true), &[0, 3, 2, 1].map(|v| w(v, true)).concat(), b"zz"]
                .concat();
        let words = [0, 3, 2, 1];
        assert_eq!(old.len(), 4 + 4 * words.len() + 2);
        file.extend(block(OLD_PACKET, &old, true));
        let (_, out, _) = parse_records(&file);
        assert_eq!((out[0].time, out[0].cap_len, out[0].wire_len), (0, 4, 6), "cut at snaplen");
        assert_eq!((out[1].time, out[1].cap_len, out[1].wire_len), (3_000, 2, 1));
    }

    #[test]
    fn options_describe_the_origin() {
        let mut options = vec![];
        for (code, text) in [(1, "two\0"), (1, "notes"), (2, "cpu"), (3, "os"), (4, "app")] {
            options.extend(h(code, false));
            options.extend(h(text.len() as u16, false));
            options.extend(text.as_bytes());
            options.resize(options.len().next_multiple_of(4), 0);
        }
        let mut file = section(false, &options);
        let name = [2, 0, 4, 0, b'e', b't', b'h', b'0', 11, 0, 4, 0, 0, b't', b'c', b'p'];
        file.extend(interface(1, 0, &name, false));
        let (records, _, _) = parse_records(&file);
        let origin = records.origin();
        assert_eq!(origin.comments, ["two", "notes"]);
        assert_eq!(origin.hardware.as_deref(), Some("cpu"));
        assert_eq!(origin.application.as_deref(), Some("app"));
        assert_eq!(records.interfaces()[0].name.as_deref(), Some("eth0"));
        assert_eq!(records.interfaces()[0].filter.as_deref(), Some("tcp"));
    }

    #[test]
    fn other_blocks_are_stored_with_their_positions() {
        let mut file = section(true, &[]);
        file[16..24].fill(0);
        let names = block(4, b"\0\x01\0\x06\xc0\0\x02\x01a\0\0\0", true);
        let secret = [&w(0x544c_534b, true)[..], &w(4, true), b"KEY "].concat();
        file.extend([interface(1, 0, &[], true), names.clone()].concat());
        file.extend(enhanced(0, 1, b"abc", 3, true));
        file.extend([block(10, &secret, true), block(CUSTOM_NOT_COPIED, &[0; 8], true)].concat());
        file.extend(enhanced(0, 2, b"de", 2, true));
        file.extend(block(5, &[0; 12], true));
        let mut records = Records::open(&file).unwrap();
        let blocks = records.keep_blocks();
        // In two calls.
        let mut out = Vec::new();
        let first = records.parse_records(far(&file), 1, &mut out);
        assert_eq!((out.len(), blocks.take().len()), (1, 3));
        records.parse_records(far(&file[first.used..]), BATCH_PACKETS, &mut out);
        let kept = blocks.take();
        let places: Vec<_> = kept.iter().map(|b| (b.before, b.kind)).collect();
        assert_eq!(places, [(1, 10), (2, 5)]);
        assert_eq!(&*kept[0].bytes, block(10, &secret, true));
        let mut again = Records::open(&file).unwrap();
        let blocks = again.keep_blocks();
        again.parse_records(far(&file), BATCH_PACKETS, &mut Vec::new());
        let kept = blocks.take();
        let places: Vec<_> = kept.iter().map(|b| (b.before, b.kind)).collect();
        assert_eq!(places, [(0, SECTION), (0, INTERFACE), (0, 4), (1, 10), (2, 5)]);
        assert_eq!((&kept[0].bytes[16..24], &*kept[2].bytes), (&[0xff; 8][..], &*names));
        assert!(kept[2].is_extra() && kept[3].is_extra() && !kept[4].is_extra());
    }

    #[test]
    fn inconsistent_fields_are_damage() {
        let start = section(false, &[]);
        let with = |tail: Vec<u8>| [start.clone(), tail].concat();
        assert!(flaw(&with(enhanced(0, 0, b"", 0, false))).contains("interface 0"));
        assert!(
            flaw(&with(block(SIMPLE_PACKET, &[0; 8], false)))
                .contains("before the first interface")
        );
        let mut mismatched = block(99, &[0; 4], false);
        mismatched[12] = 20;
        assert!(flaw(&with(mismatched)).contains("differ"));
        let mut odd = block(99, &[0; 4], false);
        odd[4] = 17;
        assert!(flaw(&with(odd)).contains("17 bytes"));
        let packet_interfaces = with(interface(1, 0, &[], false));
        let mut long = enhanced(0, 0, b"abcd", 4, false);
        long[20] = 5;
        assert!(flaw(&[packet_interfaces.clone(), long].concat()).contains("5 bytes"));
        assert!(
            flaw(&[packet_interfaces, block(ENHANCED_PACKET, &[0; 16], false)].concat())
                .contains("short")
        );
        let mut next = section(false, &[]);
        next[12] = 9;
        assert!(flaw(&with(next.clone())).contains("version 9.0"));
        assert!(Records::open(&next).is_err());
    }

    #[test]
    fn interfaces_are_limited() {
        let mut records = Records::open(&section(false, &[])).unwrap();
        let one = interface(1, 0, &[], false);
        let mut out = Vec::new();
        let mut damage = 0;
        for _ in 0..MAX_INTERFACES + 1 {
            damage += usize::from(matches!(
                records.parse_records(far(&one), BATCH_PACKETS, &mut out).stop,
                Stop::Damage(_)
            ));
        }
        assert_eq!((damage, records.interfaces().len()), (1, MAX_INTERFACES));
    }
}
