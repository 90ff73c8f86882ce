//! Capture formats: their detection, and the common interface of their record readers.

use std::borrow::Cow;

use crate::packet::PacketRef;
use crate::pcap;
use crate::pcapng;

/// A capture file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The classic format of libpcap (draft-ietf-opsawg-pcap).
    Pcap,
    /// The block format pcapng (draft-ietf-opsawg-pcapng).
    PcapNg,
}

impl Format {
    /// The format's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
        }
    }
}

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// `little` or `big`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }

    pub(crate) fn is_big(self) -> bool {
        self == Self::Big
    }
}

/// An interface that packets were captured on. A pcap file has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Link type of its packets.
    pub link_type: crate::LinkType,
    /// Maximum number of bytes stored of a packet; 0 means no limit.
    pub snaplen: u32,
    /// Decimal digits of the fractional second in time stamps: 6 for µs, 9 for ns. For binary
    /// resolutions the equivalent number of digits, rounded up.
    pub digits: u8,
    /// `if_name`.
    pub name: Option<String>,
    /// `if_description`.
    pub description: Option<String>,
    /// `if_filter`, if it is text.
    pub filter: Option<String>,
    /// `if_os`.
    pub os: Option<String>,
    /// `if_hardware`.
    pub hardware: Option<String>,
    /// `if_speed` in bits per second.
    pub speed: Option<u64>,
    /// The first comment.
    pub comment: Option<String>,
}

/// Facts about the origin of a capture, from its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number of sections read so far; 1 for pcap.
    pub sections: u32,
    /// Comments on the sections.
    pub comments: Vec<String>,
    /// `shb_hardware` of the first section that has one.
    pub hardware: Option<String>,
    /// `shb_os` of the first section that has one.
    pub os: Option<String>,
    /// `shb_userappl` of the first section that has one.
    pub application: Option<String>,
}

/// Why parsing of records stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The batch is full.
    Full,
    /// The next record has this many bytes, more than the window.
    More(usize),
    /// The next record is invalid.
    Damage(Cow<'static, str>),
}

/// The bytes to parse records from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) data: &'a [u8],
    /// Whether the data is not in a near cache, so that prefetching helps.
    pub(crate) is_far: bool,
}

/// The result of parsing records.
#[derive(Debug)]
pub(crate) struct ParseResult {
    /// Number of bytes of complete records.
    pub(crate) used: usize,
    pub(crate) stop: Stop,
}

/// A record reader, with the facts from the headers.
#[derive(Debug)]
pub(crate) enum Records {
    Pcap(pcap::Records),
    PcapNg(pcapng::Records),
}

/// Number of bytes needed to detect a file format.
pub(crate) const SNIFF: usize = 16;

/// The detected format of a file.
pub(crate) enum Sniffed {
    Capture(Format),
    /// A capture or compressed file of an unsupported kind, with a description and advice.
    Foreign(&'static str),
    /// Not a capture, with a description of the content.
    Nothing(&'static str),
}

/// Detects the format by `head`, the first bytes of a file.
pub(crate) fn sniff(head: &[u8]) -> Sniffed {
    if pcap::is_magic(head) {
        return Sniffed::Capture(Format::Pcap);
    }
    if pcapng::is_magic(head) {
        return Sniffed::Capture(Format::PcapNg);
    }
    const FOREIGN: &[(&[u8], &str)] = &[
        (b"snoop\0\0\0", "a snoop capture: convert it with `editcap in out.pcapng` first"),
        (b"GMBU", "a Network Monitor capture: convert it with `editcap in out.pcapng` first"),
        (b"RTSS", "a Network Monitor capture: convert it with `editcap in out.pcapng` first"),
        (b"XCP\0", "a NetXRay capture: convert it with `editcap in out.pcapng` first"),
        (b"TRSNIFF data", "a Sniffer capture: convert it with `editcap in out.pcapng` first"),
        (b"btsnoop\0", "a Bluetooth snoop capture, which holds no IP packets"),
        (b"BZh", "compressed with bzip2; decompress it with `bunzip2` first"),
        (b"PK\x03\x04", "a zip archive: unpack it first"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    ];
    if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Sniffed::Foreign(what);
    }
    Sniffed::Nothing(match head {
        [] => "an empty file",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ if head.iter().all(|b| matches!(b, 9 | 10 | 13 | 32..=126)) => "text",
        _ => "other data",
    })
}

impl Records {
    /// Length of the file header; [`Records::open`] needs it in its window.
    pub(crate) fn header_len(format: Format) -> usize {
        match format {
            Format::Pcap => pcap::HEADER,
            // The section header is parsed as a block; its version is checked before.
            Format::PcapNg => SNIFF,
        }
    }

    /// Parses the file header; returns the reader and the number of bytes used.
    ///
    /// # Errors
    /// The reason, in the form of the end of a sentence, if the version is not supported.
    pub(crate) fn open(format: Format, head: &[u8]) -> Result<(Self, usize), String> {
        match format {
            Format::Pcap => pcap::Records::open(head).map(|r| (Self::Pcap(r), pcap::HEADER)),
            Format::PcapNg => pcapng::Records::open(head).map(|r| (Self::PcapNg(r), 0)),
        }
    }

    /// Parses complete records in `data` and appends their packets to `out`, until `out` has `max_packets`
    /// packets, `data` ends or a record is damaged.
    pub(crate) fn parse_records(
        &mut self,
        data: Window<'_>,
        max_packets: usize,
        out: &mut Vec<PacketRef>,
    ) -> ParseResult {
        match self {
            Self::Pcap(r) => r.parse_records(data, max_packets, out),
            Self::PcapNg(r) => r.parse_records(data, max_packets, out),
        }
    }

    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Pcap(_) => Format::Pcap,
            Self::PcapNg(_) => Format::PcapNg,
        }
    }

    pub(crate) fn endian(&self) -> Endian {
        match self {
            Self::Pcap(r) => r.endian(),
            Self::PcapNg(r) => r.endian(),
        }
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        match self {
            Self::Pcap(r) => r.interfaces(),
            Self::PcapNg(r) => r.interfaces(),
        }
    }

    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Pcap(r) => r.origin(),
            Self::PcapNg(r) => r.origin(),
        }
    }
}
