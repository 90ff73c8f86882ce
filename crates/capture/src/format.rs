//! Capture formats: telling them apart, and the one way records are walked.

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
    /// The block format (draft-ietf-opsawg-pcapng).
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

/// Order of the bytes of a number.
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
    /// What its packets start with.
    pub link_type: crate::LinkType,
    /// The most bytes of a packet that were kept; 0 where there was no limit.
    pub snaplen: u32,
    /// Decimal digits of a second that its time stamps resolve: 6 for µs, 9 for ns. For powers of
    /// two the digits they amount to, rounded up.
    pub digits: u8,
    /// `if_name`.
    pub name: Option<String>,
    /// `if_description`.
    pub description: Option<String>,
    /// `if_filter`, where it is text.
    pub filter: Option<String>,
    /// `if_os`.
    pub os: Option<String>,
    /// `if_hardware`.
    pub hardware: Option<String>,
    /// `if_speed` in bits a second.
    pub speed: Option<u64>,
    /// The first comment.
    pub comment: Option<String>,
}

/// What the headers of a capture say about its making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Sections seen so far; 1 for pcap.
    pub sections: u32,
    /// Comments on the sections.
    pub comments: Vec<String>,
    /// `shb_hardware` of the first section that has it.
    pub hardware: Option<String>,
    /// `shb_os`.
    pub os: Option<String>,
    /// `shb_userappl`.
    pub application: Option<String>,
}

/// Why a walk over records stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The batch is full.
    Full,
    /// The next record needs this many bytes, more than there are.
    More(usize),
    /// The next record cannot be true.
    Damage(Cow<'static, str>),
}

/// What a walk goes over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub(crate) data: &'a [u8],
    /// Whether it lies in no near cache, so that what comes next is to be fetched.
    pub(crate) is_far: bool,
}

/// How far a walk came.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Bytes of whole records.
    pub(crate) used: usize,
    pub(crate) stop: Stop,
}

/// State of the one record reader: what the headers said.
#[derive(Debug)]
pub(crate) enum Records {
    Pcap(pcap::Records),
    PcapNg(pcapng::Records),
}

/// The bytes that must be at hand to tell what a file is.
pub(crate) const SNIFF: usize = 16;

/// What the first bytes of a file are.
pub(crate) enum Sniffed {
    Capture(Format),
    /// A capture, or a compressed file, of a kind that is not read: what to do about it.
    Foreign(&'static str),
    /// No capture: what it looks like.
    Nothing(&'static str),
}

/// Tells what `head`, the first bytes of a file, is.
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
        (b"BZh", "compressed with bzip2: unpack it with `bunzip2` first"),
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
    /// Bytes the file header takes; [`Records::open`] needs them in its window.
    pub(crate) fn header_len(format: Format) -> usize {
        match format {
            Format::Pcap => pcap::HEADER,
            // Its section header is a block like others; its version is seen in advance.
            Format::PcapNg => SNIFF,
        }
    }

    /// Reads the file header; also gives the bytes it used.
    ///
    /// # Errors
    /// What is wrong, as an end of a sentence, where the version is not read.
    pub(crate) fn open(format: Format, head: &[u8]) -> Result<(Self, usize), String> {
        match format {
            Format::Pcap => pcap::Records::open(head).map(|r| (Self::Pcap(r), pcap::HEADER)),
            Format::PcapNg => pcapng::Records::open(head).map(|r| (Self::PcapNg(r), 0)),
        }
    }

    /// Walks over whole records in `data` and notes their packets in `out`, until these are `most`,
    /// `data` ends or a record is damaged.
    pub(crate) fn walk(&mut self, data: Window<'_>, most: usize, out: &mut Vec<PacketRef>) -> Walk {
        match self {
            Self::Pcap(r) => r.walk(data, most, out),
            Self::PcapNg(r) => r.walk(data, most, out),
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
