//! The classic pcap format (draft-ietf-opsawg-pcap).
//!
//! A header of 24 bytes, then for each packet 16 bytes (seconds, fraction, captured length, wire
//! length) and the data. The magic number determines byte order and unit of the fraction: µs or ns.
//! In Kuznetzov's variant ("modified") a record header has 8 more bytes: interface, protocol and
//! packet type.

use crate::LinkType;
use crate::bytes::u16_at;
use crate::bytes::u32_at;
use crate::format::Endian;
use crate::format::Interface;
use crate::format::Origin;
use crate::format::ParseResult;
use crate::format::Stop;
use crate::format::Window;
use crate::map::prefetch_after;
use crate::packet::BATCH_BYTES;
use crate::packet::MAX_PACKET;
use crate::packet::PacketRef;

/// Length of the file header.
pub(crate) const HEADER: usize = 24;
/// Length of a record header.
pub(crate) const RECORD: usize = 16;
/// Length of a record header in the modified variant.
const MODIFIED_RECORD: usize = 24;

/// Time stamps in µs.
pub(crate) const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
/// Time stamps in ns.
pub(crate) const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Kuznetzov's variant, in µs.
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// Whether `head` starts with a pcap magic number of either byte order.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.len() >= 4 && magic(head).is_some()
}

fn magic(head: &[u8]) -> Option<(u32, Endian)> {
    [Endian::Little, Endian::Big].into_iter().find_map(|endian| {
        let m = u32_at(head, 0, endian.is_big());
        matches!(m, MAGIC_MICROS | MAGIC_NANOS | MAGIC_MODIFIED).then_some((m, endian))
    })
}

/// The order of the two length fields of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    /// Captured length first: since version 2.4.
    CapturedFirst,
    /// Wire length first: before version 2.3.
    WireFirst,
    /// Version 2.3 was written in both orders: the captured length is the smaller one.
    SmallerIsCaptured,
}

/// Parses the records of a pcap file.
#[derive(Debug)]
pub(crate) struct Records {
    endian: Endian,
    /// Number of nanoseconds per unit of the fraction.
    unit: i64,
    record: usize,
    lengths: Lengths,
    /// Maximum number of bytes used of a packet.
    limit: u32,
    interface: [Interface; 1],
    origin: Origin,
}

impl Records {
    /// Parses the file header of [`HEADER`] bytes.
    pub(crate) fn open(head: &[u8]) -> Result<Self, String> {
        let (magic, endian) = magic(head).ok_or("no pcap magic number")?;
        let big = endian.is_big();
        let (major, minor) = (u16_at(head, 4, big), u16_at(head, 6, big));
        // One vendor's embedded writer uses version 543.0, which libpcap accepts as well.
        if major != 2 && (major, minor) != (543, 0) {
            return Err(format!("pcap version {major}.{minor} is not supported; gannet reads 2.x"));
        }
        let lengths = match (major, minor) {
            (2, 0..=2) => Lengths::WireFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            _ => Lengths::CapturedFirst,
        };
        let nanos = magic == MAGIC_NANOS;
        // As in libpcap, bytes of a record beyond the snap length of the file are ignored; 0, or a
        // value above 31 bits, means no limit.
        let snaplen = u32_at(head, 16, big);
        let limit = if (1..1 << 31).contains(&snaplen) { snaplen } else { u32::MAX };
        let interface = Interface {
            // The upper half contains the length of frame check sequences and reserved bits.
            link_type: LinkType((u32_at(head, 20, big) & 0xffff) as u16),
            snaplen,
            digits: if nanos { 9 } else { 6 },
            ..Interface::default()
        };
        Ok(Self {
            endian,
            unit: if nanos { 1 } else { 1_000 },
            record: if magic == MAGIC_MODIFIED { MODIFIED_RECORD } else { RECORD },
            lengths,
            limit,
            interface: [interface],
            origin: Origin { sections: 1, ..Origin::default() },
        })
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interface
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// See [`crate::format::Records::parse_records`].
    pub(crate) fn parse_records(
        &self,
        data: Window<'_>,
        max_packets: usize,
        out: &mut Vec<PacketRef>,
    ) -> ParseResult {
        // Monomorphized copies of the loop, so that packets need no further checks.
        let usual = self.lengths == Lengths::CapturedFirst && self.record == RECORD;
        match (self.endian, usual) {
            (Endian::Little, true) => self.parse_records_in::<false, true>(data, max_packets, out),
            (Endian::Little, false) => {
                self.parse_records_in::<false, false>(data, max_packets, out)
            }
            (Endian::Big, true) => self.parse_records_in::<true, true>(data, max_packets, out),
            (Endian::Big, false) => self.parse_records_in::<true, false>(data, max_packets, out),
        }
    }

    /// `USUAL` records have [`RECORD`] bytes before the data, with the captured length first.
    fn parse_records_in<const BIG: bool, const USUAL: bool>(
        &self,
        Window { data, is_far }: Window<'_>,
        max_packets: usize,
        out: &mut Vec<PacketRef>,
    ) -> ParseResult {
        let link_type = self.interface[0].link_type.0;
        let (header, lengths) =
            if USUAL { (RECORD, Lengths::CapturedFirst) } else { (self.record, self.lengths) };
        let (unit, limit) = (self.unit, self.limit);
        let mut room = max_packets.saturating_sub(out.len());
        let mut at = 0;
        let stop = loop {
            if room == 0 || at >= BATCH_BYTES {
                break Stop::Full;
            }
            let Some(head) = data.get(at..at + RECORD).and_then(<[u8]>::first_chunk::<RECORD>)
            else {
                break Stop::More(header);
            };
            let (first, second) = (u32_at(head, 8, BIG), u32_at(head, 12, BIG));
            let (cap_len, wire_len) = match lengths {
                Lengths::CapturedFirst => (first, second),
                Lengths::WireFirst => (second, first),
                Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
            };
            let len = cap_len as usize;
            if len > MAX_PACKET {
                break Stop::Damage(
                    format!("a record has an invalid length of {cap_len} bytes").into(),
                );
            }
            let start = at + header;
            let end = start + len;
            if end > data.len() {
                break Stop::More(header + len);
            }
            // As in libpcap, which accepts a fraction beyond its unit and treats it as signed.
            let fraction = i64::from(u32_at(head, 4, BIG).cast_signed()) * unit;
            out.push(PacketRef {
                time: i64::from(u32_at(head, 0, BIG)) * 1_000_000_000 + fraction,
                offset: start as u32,
                cap_len: cap_len.min(limit),
                wire_len,
                link_type,
                origin: 0,
            });
            if is_far {
                prefetch_after(data, at, end);
            }
            room -= 1;
            at = end;
        };
        ParseResult { used: at, stop }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::BATCH_PACKETS;

    fn w(v: u32, big: bool) -> [u8; 4] {
        if big { v.to_be_bytes() } else { v.to_le_bytes() }
    }

    pub(crate) fn header(magic: u32, minor: u16, big: bool) -> Vec<u8> {
        let mut b = w(magic, big).to_vec();
        b.extend(if big { 2u16.to_be_bytes() } else { 2u16.to_le_bytes() });
        b.extend(if big { minor.to_be_bytes() } else { minor.to_le_bytes() });
        for v in [0, 0, 65535, 0x1400_0001] {
            b.extend(w(v, big));
        }
        b
    }

    fn parse_records(file: &[u8]) -> (Vec<PacketRef>, ParseResult) {
        let records = Records::open(file).unwrap();
        let mut out = Vec::new();
        let window = Window { data: &file[HEADER..], is_far: true };
        let parsed = records.parse_records(window, BATCH_PACKETS, &mut out);
        (out, parsed)
    }

    #[test]
    fn both_orders_and_both_fractions() {
        for big in [false, true] {
            for (magic, unit) in [(MAGIC_MICROS, 1_000), (MAGIC_NANOS, 1)] {
                let mut file = header(magic, 4, big);
                for v in [7, 999_999, 3, 60] {
                    file.extend(w(v, big));
                }
                file.extend(b"abc");
                let (out, parsed) = parse_records(&file);
                assert_eq!(out.len(), 1);
                assert_eq!(out[0].time, 7_000_000_000 + 999_999 * unit);
                assert_eq!((out[0].cap_len, out[0].wire_len, out[0].offset), (3, 60, 16));
                assert_eq!(out[0].link_type, 1, "checksum bits are no part of the link type");
                assert_eq!(parsed.used, 19);
                assert!(matches!(parsed.stop, Stop::More(16)));
            }
        }
    }

    #[test]
    fn fractions_have_a_sign() {
        let mut file = header(MAGIC_MICROS, 4, false);
        for v in [7, 0x8000_0000, 0, 0] {
            file.extend(w(v, false));
        }
        assert_eq!(parse_records(&file).0[0].time, 7_000_000_000 - 2_147_483_648_000);
    }

    #[test]
    fn bytes_beyond_the_snap_length_are_ignored() {
        for (snaplen, counts) in [(2, 2), (0, 4), (u32::MAX, 4)] {
            let mut file = header(MAGIC_MICROS, 4, false);
            file[16..20].copy_from_slice(&w(snaplen, false));
            for v in [1, 2, 4, 60] {
                file.extend(w(v, false));
            }
            file.extend(b"wxyz");
            let (out, parsed) = parse_records(&file);
            assert_eq!((out[0].cap_len, parsed.used), (counts, 20));
        }
    }

    #[test]
    fn modified_records_are_longer() {
        let mut file = header(MAGIC_MODIFIED, 4, false);
        for v in [1, 2, 4, 4, 3, 0x0008] {
            file.extend(w(v, false));
        }
        file.extend(b"wxyz");
        let (out, parsed) = parse_records(&file);
        assert_eq!((out[0].offset, parsed.used), (24, 28));
    }

    #[test]
    fn old_versions_swap_the_lengths() {
        for (minor, first, second) in [(2, 60, 3), (3, 60, 3), (3, 3, 60), (4, 3, 60)] {
            let mut file = header(MAGIC_MICROS, minor, true);
            for v in [1, 2, first, second] {
                file.extend(w(v, true));
            }
            file.extend(b"abc");
            let (out, _) = parse_records(&file);
            assert_eq!((out[0].cap_len, out[0].wire_len), (3, 60), "2.{minor}");
        }
    }

    #[test]
    fn absurd_lengths_are_damage_and_long_ones_need_more_bytes() {
        let mut file = header(MAGIC_MICROS, 4, false);
        for v in [1, 2, 1000, 1000] {
            file.extend(w(v, false));
        }
        assert!(matches!(parse_records(&file).1.stop, Stop::More(1016)));
        file[HEADER + 8..HEADER + 12].fill(0xff);
        assert!(matches!(parse_records(&file).1.stop, Stop::Damage(_)));
    }

    #[test]
    fn other_versions_are_refused() {
        let mut file = header(MAGIC_MICROS, 4, false);
        file[4] = 3;
        assert!(Records::open(&file).unwrap_err().contains("3.4"));
    }
}
