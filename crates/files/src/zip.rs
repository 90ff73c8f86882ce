//! ZIP archives (PKWARE APPNOTE 6.3.10), parsed from the first byte on.
//!
//! [`Parser`] parses an archive incrementally and returns [`Item`]s: the local header of each entry
//! with its contents, then the entries of the central directory and its end. Contents are
//! decompressed, a buffer at a time. Of an entry that is encrypted, or compressed by a method other
//! than deflate, only the header is returned.
//!
//! An entry may have its size only after its contents, in a data descriptor. As in Zeek, the
//! contents then end at the first descriptor signature whose checksum matches the contents before
//! it. ZIP64 is an [error](ZipError), and data that is no record ends the archive.

use flate2::Crc;
use flate2::Decompress;
use flate2::FlushDecompress;
use flate2::Status;
use memchr::memmem;

/// Length in octets of a local header, of an entry of the central directory, and of the end of the
/// central directory, without names and comments.
const ENTRY: usize = 30;
const DIRECTORY: usize = 46;
const END: usize = 22;

/// Length of a data descriptor with its signature, in octets.
const DESCRIPTOR: usize = 16;

/// The signature of a data descriptor.
const DESCRIPTOR_SIGNATURE: &[u8; 4] = b"PK\x07\x08";

/// Number of octets that are decompressed at a time.
const OUT: usize = 16 << 10;

/// Compression method of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not compressed.
    Stored,
    /// Deflate (RFC 1951).
    Deflate,
    /// Another method.
    Other(u16),
}

/// The header of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether this is the header in the central directory, not the local header before the
    /// contents.
    pub is_in_directory: bool,
    /// Name of the file.
    pub filename: Vec<u8>,
    /// Modification time in seconds since 1970. The archive states no time zone: UTC is assumed.
    pub changed: i64,
    /// Comment; only in the central directory.
    pub comment: Vec<u8>,
    /// Compression method.
    pub method: Method,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// Size of the file in octets, if stated in the header.
    pub size: Option<u32>,
}

impl Entry {
    /// Whether the contents can be decompressed.
    pub fn is_readable(&self) -> bool {
        !self.is_encrypted && !matches!(self.method, Method::Other(_))
    }
}

/// A part of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A header. If it precedes contents that are [readable](Entry::is_readable), [`Item::Data`]
    /// follows.
    Entry(Entry),
    /// The next contents.
    Data(&'a [u8]),
    /// The end of the contents.
    EntryEnd,
    /// The end of the central directory, with the comment of the archive.
    End(Vec<u8>),
}

/// Why the rest of an archive cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZipError {
    /// The archive is in the ZIP64 format.
    Zip64,
    /// Compressed contents are damaged.
    Inflate,
    /// The checksum does not match the contents.
    Crc,
    /// The contents cannot be decompressed, and their size is unknown.
    UnknownEnd,
}

impl std::fmt::Display for ZipError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Zip64 => "ZIP64 not supported",
            Self::Inflate => "inflate failed",
            Self::Crc => "CRC mismatch",
            Self::UnknownEnd => "attempt to access null reference",
        })
    }
}

impl std::error::Error for ZipError {}

/// Parses an archive.
#[derive(Debug, Default)]
pub struct Parser {
    /// Octets that are not yet parsed, from `at` on.
    input: Vec<u8>,
    at: usize,
    step: Step,
    contents: Contents,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Record,
    /// Contents of which `left` octets remain.
    Contents {
        left: u32,
    },
    /// Contents up to a data descriptor; the next `known` octets belong to the contents.
    Scan {
        known: usize,
    },
    Done,
}

/// The contents of the current entry.
#[derive(Debug, Default)]
struct Contents {
    is_readable: bool,
    /// The checksum in the header.
    crc: u32,
    computed: Crc,
    inflate: Option<Box<Decompress>>,
    /// Whether the last step filled the buffer: more output may follow without input.
    is_full: bool,
    out: Vec<u8>,
}

impl Parser {
    /// A parser at the start of an archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds octets, which [`next_item`](Self::next_item) parses.
    pub fn push(&mut self, data: &[u8]) {
        if self.step != Step::Done {
            self.input.drain(..self.at);
            self.at = 0;
            self.input.extend_from_slice(data);
        }
    }

    /// Stops parsing, because octets are missing.
    pub fn stop(&mut self) {
        *self = Self { step: Step::Done, ..Self::default() };
    }

    /// Whether unparsed input is available.
    pub fn has_input(&self) -> bool {
        self.at < self.input.len()
    }

    /// Returns the next item; `None` if it is incomplete, or if the archive has ended.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, ZipError> {
        loop {
            match self.step {
                Step::Record => match self.record()? {
                    Read::Item(item) => return Ok(Some(item)),
                    Read::Again => {}
                    Read::Incomplete => return Ok(None),
                },
                Step::Contents { left } => {
                    let most = self.rest().len().min(left as usize);
                    let (used, made) = self.contents.read(&self.input[self.at..][..most])?;
                    self.at += used;
                    self.step = Step::Contents { left: left - used as u32 };
                    if made > 0 {
                        return Ok(Some(Item::Data(&self.contents.out[..made])));
                    }
                    if used as u32 == left && !self.contents.is_full {
                        self.step = Step::Record;
                        if !self.contents.is_readable {
                            continue;
                        }
                        if self.contents.computed.sum() != self.contents.crc {
                            return Err(ZipError::Crc);
                        }
                        return Ok(Some(Item::EntryEnd));
                    }
                    if used == 0 {
                        return Ok(None);
                    }
                }
                Step::Scan { known } if known > 0 || self.contents.is_full => {
                    let (used, made) = self.contents.read(&self.input[self.at..][..known])?;
                    self.at += used;
                    self.step = Step::Scan { known: known - used };
                    if made > 0 {
                        return Ok(Some(Item::Data(&self.contents.out[..made])));
                    }
                }
                Step::Scan { .. } => match self.scan()? {
                    Read::Item(item) => return Ok(Some(item)),
                    Read::Again => {}
                    Read::Incomplete => return Ok(None),
                },
                Step::Done => return Ok(None),
            }
        }
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Parses the next record.
    fn record(&mut self) -> Result<Read, ZipError> {
        let rest = self.rest();
        let Some((signature, _)) = rest.split_first_chunk::<4>() else {
            return Ok(Read::Incomplete);
        };
        let fields = Fields(rest);
        let (fixed, lengths): (usize, &[usize]) = match signature {
            b"PK\x03\x04" => (ENTRY, &[26, 28]),
            b"PK\x01\x02" => (DIRECTORY, &[28, 30, 32]),
            b"PK\x05\x06" => (END, &[20]),
            b"PK\x06\x06" => return Err(ZipError::Zip64),
            DESCRIPTOR_SIGNATURE => (DESCRIPTOR, &[]),
            _ => {
                self.stop();
                return Ok(Read::Again);
            }
        };
        if rest.len() < fixed {
            return Ok(Read::Incomplete);
        }
        let len = fixed + lengths.iter().map(|at| usize::from(fields.u16(*at))).sum::<usize>();
        let Some(record) = rest.get(..len) else { return Ok(Read::Incomplete) };
        let read = match signature {
            b"PK\x03\x04" => {
                let name = usize::from(fields.u16(26));
                let entry = fields.entry(6, record[ENTRY..][..name].to_vec());
                let (crc, compressed) = (fields.u32(14), fields.u32(18));
                if compressed == u32::MAX {
                    return Err(ZipError::Zip64);
                }
                self.contents.begin(&entry, crc);
                self.step = match entry.size {
                    Some(_) => Step::Contents { left: compressed },
                    None => Step::Scan { known: 0 },
                };
                Read::Item(Item::Entry(entry))
            }
            b"PK\x01\x02" => {
                let name = usize::from(fields.u16(28));
                let comment = len - usize::from(fields.u16(32));
                let mut entry = fields.entry(8, record[DIRECTORY..][..name].to_vec());
                entry.is_in_directory = true;
                entry.comment = record[comment..].to_vec();
                Read::Item(Item::Entry(entry))
            }
            b"PK\x05\x06" => Read::Item(Item::End(record[END..].to_vec())),
            _ => Read::Again,
        };
        self.at += len;
        Ok(read)
    }

    /// Searches for the data descriptor that ends the contents.
    fn scan(&mut self) -> Result<Read, ZipError> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let known = match memmem::find(rest, DESCRIPTOR_SIGNATURE) {
            Some(0) if rest.len() < DESCRIPTOR => return Ok(Read::Incomplete),
            Some(0) if !self.contents.is_readable => return Err(ZipError::UnknownEnd),
            Some(0) if Fields(rest).u32(4) == self.contents.computed.sum() => {
                self.at += DESCRIPTOR;
                self.step = Step::Record;
                return Ok(Read::Item(Item::EntryEnd));
            }
            // The signature is part of the contents.
            Some(0) => DESCRIPTOR_SIGNATURE.len(),
            Some(at) => at,
            None => {
                let begins = |n: &usize| rest.ends_with(&DESCRIPTOR_SIGNATURE[..*n]);
                rest.len() - [3, 2, 1].into_iter().find(begins).unwrap_or(0)
            }
        };
        self.step = Step::Scan { known };
        Ok(if known > 0 { Read::Again } else { Read::Incomplete })
    }
}

/// The result of a step.
enum Read {
    Item(Item<'static>),
    Again,
    Incomplete,
}

impl Contents {
    fn begin(&mut self, entry: &Entry, crc: u32) {
        self.is_readable = entry.is_readable();
        self.crc = crc;
        self.computed = Crc::new();
        let deflates = self.is_readable && entry.method == Method::Deflate;
        self.inflate = deflates.then(|| Box::new(Decompress::new(false)));
        self.is_full = false;
        self.out.resize(OUT, 0);
    }

    /// Decompresses contents. Returns the number of octets consumed, and the number in the buffer.
    fn read(&mut self, data: &[u8]) -> Result<(usize, usize), ZipError> {
        if !self.is_readable {
            return Ok((data.len(), 0));
        }
        let Some(inflate) = &mut self.inflate else {
            let len = data.len().min(OUT);
            self.out[..len].copy_from_slice(&data[..len]);
            self.computed.update(&data[..len]);
            return Ok((len, len));
        };
        let before = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(data, &mut self.out, FlushDecompress::None);
        let status = status.map_err(|_| ZipError::Inflate)?;
        let used = (inflate.total_in() - before.0) as usize;
        let made = (inflate.total_out() - before.1) as usize;
        self.is_full = made == OUT;
        self.computed.update(&self.out[..made]);
        let is_over = status == Status::StreamEnd || (used == 0 && made == 0 && !data.is_empty());
        // Octets after the end of the compressed data are ignored.
        Ok((if is_over { data.len() } else { used }, made))
    }
}

/// Little-endian numbers by offset; zero past the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u16::from_le_bytes(*n))
    }

    fn u32(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u32::from_le_bytes(*n))
    }

    /// The fields that both headers of an entry have, from the flags on.
    fn entry(&self, at: usize, filename: Vec<u8>) -> Entry {
        let flags = self.u16(at);
        Entry {
            is_in_directory: false,
            filename,
            changed: seconds(self.u32(at + 4)),
            comment: Vec::new(),
            method: match self.u16(at + 2) {
                0 => Method::Stored,
                8 => Method::Deflate,
                other => Method::Other(other),
            },
            is_encrypted: flags & 1 != 0,
            size: (flags & 8 == 0).then(|| self.u32(at + 16)),
        }
    }
}

/// Converts a DOS date and time to seconds since 1970. As in Zeek, months and days out of range
/// carry over.
fn seconds(dos: u32) -> i64 {
    let bits = |from: u32, count: u32| i64::from(dos >> from & ((1 << count) - 1));
    let (year, month, day) = (1980 + bits(25, 7), bits(21, 4) - 1, bits(16, 5));
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12) + 1);
    // Days in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + bits(11, 5)) * 60 + bits(5, 6)) * 60 + 2 * bits(0, 5)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use proptest::prelude::*;

    use super::*;

    /// 2024-02-29 12:30:10.
    const CHANGED: u32 = (44 << 25) | (2 << 21) | (29 << 16) | (12 << 11) | (30 << 5) | 5;

    fn crc(data: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(data);
        crc.sum()
    }

    fn deflate(data: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// An entry of an archive, with these flags and method.
    fn entry(name: &str, flags: u16, method: u16, data: &[u8]) -> Vec<u8> {
        let packed = if method == 8 { deflate(data) } else { data.to_vec() };
        let sizes = [crc(data), packed.len() as u32, data.len() as u32];
        let sizes: Vec<u8> = sizes.iter().flat_map(|n| n.to_le_bytes()).collect();
        let has_descriptor = flags & 8 != 0;
        let mut all = b"PK\x03\x04\x14\0".to_vec();
        all.extend(flags.to_le_bytes());
        all.extend(method.to_le_bytes());
        all.extend(CHANGED.to_le_bytes());
        all.extend(if has_descriptor { &[0; 12][..] } else { &sizes });
        all.extend((name.len() as u16).to_le_bytes());
        all.extend(b"\x03\0");
        all.extend(name.as_bytes());
        all.extend(b"xtr");
        all.extend(packed);
        if has_descriptor {
            all.extend(DESCRIPTOR_SIGNATURE);
            all.extend(sizes);
        }
        all
    }

    /// An archive with one uncompressed entry.
    pub(crate) fn stored(name: &str, data: &[u8]) -> Vec<u8> {
        entry(name, 0, 0, data)
    }

    /// An archive with one entry that is compressed.
    pub(crate) fn deflated(name: &str, data: &[u8]) -> Vec<u8> {
        entry(name, 0, 8, data)
    }

    /// The central directory with one entry, and its end.
    pub(crate) fn directory(name: &str, comment: &str) -> Vec<u8> {
        let mut all = b"PK\x01\x02\x1e\x03\x14\0\0\0\0\0".to_vec();
        all.extend(CHANGED.to_le_bytes());
        all.extend([0; 12]);
        all.extend((name.len() as u16).to_le_bytes());
        all.extend(b"\x02\0");
        all.extend((comment.len() as u16).to_le_bytes());
        all.extend([0; 12]);
        all.extend(name.as_bytes());
        all.extend(b"ex");
        all.extend(comment.as_bytes());
        all.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x30\0\0\0\x40\0\0\0\x03\0all");
        all
    }

    /// The items of an archive that arrives in pieces, with joined contents, and the error that
    /// ended it.
    fn read(data: &[u8], size: usize) -> (Vec<String>, Option<ZipError>) {
        let mut parser = Parser::new();
        let (mut items, mut contents) = (Vec::new(), None);
        for part in data.chunks(size) {
            parser.push(part);
            loop {
                match parser.next_item() {
                    Ok(Some(Item::Data(data))) => {
                        assert!(!data.is_empty() && data.len() <= OUT);
                        contents.get_or_insert_with(Vec::new).extend_from_slice(data);
                    }
                    Ok(Some(Item::EntryEnd)) => {
                        let contents = contents.take().unwrap_or_default();
                        items.push(format!("{} {:08x}", contents.len(), crc(&contents)));
                    }
                    Ok(Some(Item::Entry(e))) => items.push(format!(
                        "{} {} {} {:?} {:?} {}",
                        e.is_in_directory,
                        String::from_utf8_lossy(&e.filename),
                        String::from_utf8_lossy(&e.comment),
                        e.method,
                        e.size,
                        e.is_encrypted
                    )),
                    Ok(Some(Item::End(comment))) => {
                        items.push(String::from_utf8_lossy(&comment).into_owned());
                    }
                    Ok(None) => break,
                    Err(error) => return (items, Some(error)),
                }
            }
            assert!(parser.input.len() <= 4 * (1 << 16) + size);
        }
        (items, None)
    }

    fn end(data: &[u8]) -> String {
        format!("{} {:08x}", data.len(), crc(data))
    }

    #[test]
    fn entries_come_with_contents() {
        let long = b"0123456789".repeat(10_000);
        let archive = [
            stored("dir/", b""),
            stored("a", b"some text"),
            deflated("b", &long),
            deflated("c", b""),
            directory("a", "note"),
        ]
        .concat();
        let expected = [
            "false dir/  Stored Some(0) false".to_owned(),
            end(b""),
            "false a  Stored Some(9) false".to_owned(),
            end(b"some text"),
            "false b  Deflate Some(100000) false".to_owned(),
            end(&long),
            "false c  Deflate Some(0) false".to_owned(),
            end(b""),
            "true a note Stored Some(0) false".to_owned(),
            "all".to_owned(),
        ];
        for size in [1, 2, 7, 100, archive.len()] {
            assert_eq!(read(&archive, size), (expected.to_vec(), None), "{size}");
        }
    }

    #[test]
    fn a_descriptor_ends_contents() {
        let text = b"PPKPK\x07PK\x07\x08 within PK\x07\x08PK\x07\x08PK".to_vec();
        let long = text.repeat(5_000);
        for (method, name, data) in [
            (0, "Stored", &text),
            (0, "Stored", &long),
            (8, "Deflate", &long),
            (0, "Stored", &vec![]),
        ] {
            let archive = [entry("a", 8, method, data), stored("b", b"x")].concat();
            let expected = [
                format!("false a  {name} None false"),
                end(data),
                "false b  Stored Some(1) false".to_owned(),
                end(b"x"),
            ];
            for size in [1, 5, archive.len()] {
                assert_eq!(read(&archive, size), (expected.to_vec(), None), "{name} {size}");
            }
        }
    }

    #[test]
    fn unreadable_contents_are_skipped() {
        for (flags, method, name) in [(1, 0, "Stored"), (1, 8, "Deflate"), (0, 9, "Other(9)")] {
            let archive = [entry("a", flags, method, b"secret"), stored("b", b"x")].concat();
            let (items, error) = read(&archive, 3);
            let header = format!("false a  {name} Some(6) {}", flags == 1);
            assert_eq!((items.len(), &items[0], &items[2], error), (3, &header, &end(b"x"), None));
            let (items, error) = read(&entry("a", flags | 8, method, b"secret"), 3);
            assert_eq!((items.len(), error), (1, Some(ZipError::UnknownEnd)));
        }
    }

    #[test]
    fn faults_end_an_archive() {
        let mut bad_crc = stored("a", b"text");
        bad_crc[14] ^= 1;
        let mut large = stored("a", b"text");
        large[18..22].fill(0xff);
        let mut damaged = entry("a", 0, 0, b"\xff\xff\xff\xff");
        damaged[8] = 8;
        for (archive, error) in [
            (bad_crc, ZipError::Crc),
            (large, ZipError::Zip64),
            (damaged, ZipError::Inflate),
            (b"PK\x06\x06".to_vec(), ZipError::Zip64),
        ] {
            assert_eq!(read(&archive, 1).1, Some(error));
            assert_eq!(read(&archive, 100).1, Some(error));
        }
        assert_eq!(ZipError::Crc.to_string(), "CRC mismatch");
    }

    #[test]
    fn other_data_ends_an_archive() {
        let archive = [stored("a", b""), b"none".to_vec(), stored("b", b"")].concat();
        assert_eq!(read(&archive, 10).0.len(), 2);
        let descriptor = [&DESCRIPTOR_SIGNATURE[..], &[0; 12], &stored("b", b"")].concat();
        assert_eq!(read(&descriptor, 10).0.len(), 2);
        let mut parser = Parser::new();
        parser.stop();
        parser.push(&archive);
        assert!(!parser.has_input() && parser.next_item() == Ok(None));
    }

    #[test]
    fn times_of_dos() {
        assert_eq!(seconds(CHANGED), 1_709_209_810);
        assert_eq!(seconds((1 << 21) | (1 << 16)), 315_532_800);
        // Month 0 and day 0: 1979-11-30.
        assert_eq!(seconds(0), 312_768_000);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(data: Vec<u8>, flags: u16, method in 0u16..10, size in 1usize..40) {
            let archive = [entry("a", flags, method, &data), stored("b", b"x"), data].concat();
            read(&archive, size);
            let mut damaged = archive.clone();
            for at in 0..archive.len().min(40) {
                damaged[at] ^= size as u8;
                read(&damaged, size);
            }
        }
    }
}
