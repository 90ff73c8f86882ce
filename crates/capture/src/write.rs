//! Writing captures.

use std::collections::HashMap;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use gannet_base::NewFile;
use gannet_base::Rename;
use gannet_base::Time;

use crate::Compression;
use crate::Error;
use crate::Format;
use crate::LinkType;
use crate::Packet;
use crate::compress::Encoder;
use crate::encoder_thread::Output;
use crate::output_file::Pieces;
use crate::pcap;
use crate::pcapng;
use crate::reader::STDIN;

/// The time resolution of a pcap file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Microseconds, which all tools support. Finer times are truncated.
    Micros,
    /// Nanoseconds.
    Nanos,
}

/// Options of a [`Writer`].
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The default is pcapng for paths that end in `.pcapng` or `.ntar` before a compression
    /// suffix, otherwise pcap.
    pub format: Option<Format>,
    /// The default is nanoseconds, without loss.
    pub precision: Option<Precision>,
    /// Number of bytes stored of each packet; the default is all, with 262,144 in the header as in
    /// libpcap.
    pub snaplen: Option<u32>,
    /// Link type of a pcap file without packets; the default is Ethernet.
    pub link_type: Option<LinkType>,
    /// Name of the writing program in pcapng (`shb_userappl`).
    pub application: Option<String>,
    /// For pcapng: whether the caller adds sections and interfaces as [blocks](Writer::add_block),
    /// so that the writer writes none of its own.
    pub as_blocks: bool,
    /// Whether to compress and write in an encoder thread, concurrently with the caller. A write
    /// error is then returned with a later packet, or by [`Writer::finish`].
    pub encoder_thread: bool,
    /// Whether to rename the file when it is created rather than when it is complete: for captures
    /// that are read while they grow. In both cases an old file with that name is replaced, never
    /// overwritten.
    pub at_once: bool,
}

/// Writes packets to a capture.
///
/// Call [`Writer::finish`] at the end: dropping a writer also writes the buffered bytes, but
/// ignores errors. After an error the new file is removed.
pub struct Writer {
    file: PathBuf,
    output: Output,
    /// Renames the file when it is complete; dropped after an error, which removes the file.
    rename: Option<Rename>,
    format: Format,
    options: WriteOptions,
    /// Bytes that are not yet passed to `output`.
    buffer: Vec<u8>,
    /// The link type of a pcap file, once its header is written.
    link_type: Option<LinkType>,
    /// Interfaces that were described in a pcapng file.
    interfaces: HashMap<(u32, LinkType), u32>,
    packets: u64,
    bytes: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("file", &self.file).field("packets", &self.packets).finish()
    }
}

/// Size of the write buffer in bytes.
const BUFFER: usize = 256 << 10;

/// The snap length that libpcap writes for "all".
const SNAPLEN: u32 = 262_144;

impl Writer {
    /// Creates a file; the suffix `.gz`, `.zst`, `.xz` or `.lz4` selects the compression. `-` is
    /// standard output. An old file with that name is replaced when the new one is complete: see
    /// [`NewFile`].
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be created.
    pub fn create(path: impl AsRef<Path>, options: WriteOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let compression = Compression::from_suffix(path);
        if path == Path::new(STDIN) {
            return Self::start(
                Box::new(io::stdout()),
                "standard output".into(),
                compression,
                options,
            );
        }
        let failed = |source| Error::Io { file: path.to_owned(), source };
        let (file, rename) = NewFile::create(path).map_err(failed)?.into_parts();
        let rename = if options.at_once {
            rename.at_once().map_err(failed)?;
            None
        } else {
            Some(rename)
        };
        let output = Box::new(Pieces::new(file));
        let mut writer = Self::start(output, path.to_owned(), compression, options)?;
        writer.rename = rename;
        Ok(writer)
    }

    /// Writes to any sink, uncompressed; `name` is its name in errors and selects the format like a
    /// path.
    pub fn to_write(
        output: Box<dyn Write + Send>,
        name: impl Into<PathBuf>,
        options: WriteOptions,
    ) -> Self {
        Self::new(Encoder::Plain(output), name.into(), options)
    }

    fn start(
        output: Box<dyn Write + Send>,
        file: PathBuf,
        compression: Option<Compression>,
        options: WriteOptions,
    ) -> Result<Self, Error> {
        let encoder = match compression {
            None => Encoder::Plain(output),
            Some(compression) => match compression.encoder(output) {
                Ok(encoder) => encoder,
                Err(source) => return Err(Error::Io { file, source }),
            },
        };
        Ok(Self::new(encoder, file, options))
    }

    fn new(output: Encoder, file: PathBuf, options: WriteOptions) -> Self {
        let format = options.format.unwrap_or_else(|| by_suffix(&file));
        let mut writer = Self {
            file,
            output: Output::new(output, options.encoder_thread),
            rename: None,
            format,
            options,
            buffer: Vec::with_capacity(BUFFER),
            link_type: None,
            interfaces: HashMap::new(),
            packets: 0,
            bytes: 0,
        };
        if format == Format::PcapNg && !writer.options.as_blocks {
            writer.section();
        }
        writer
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails; [`Error::Unsupported`] if the format cannot represent it: in
    /// pcap a second link type, or a time before 1970 or after 2106; in pcapng a time before 1970.
    pub fn write(&mut self, packet: &Packet<'_>) -> Result<(), Error> {
        let limit = self.options.snaplen.map_or(usize::MAX, |s| s as usize);
        let data = packet.data.get(..limit).unwrap_or(packet.data);
        let Ok(cap_len) = u32::try_from(data.len()) else {
            return Err(self.unsupported("a packet of 4 GiB or more".into()));
        };
        let begun = match self.format {
            Format::Pcap => self.record(packet, cap_len),
            Format::PcapNg => self.block(packet, cap_len),
        };
        if begun.is_err() {
            self.rename = None;
            return begun;
        }
        self.buffer.extend_from_slice(data);
        if self.format == Format::PcapNg {
            let padding = data.len().next_multiple_of(4) - data.len();
            self.buffer.extend_from_slice(&[0; 3][..padding]);
            let len = ENHANCED + cap_len + padding as u32;
            self.buffer.extend_from_slice(&len.to_le_bytes());
        }
        self.packets += 1;
        if self.buffer.len() >= BUFFER { self.drain() } else { Ok(()) }
    }

    /// Writes the header of a pcap record.
    #[inline]
    fn record(&mut self, packet: &Packet<'_>, cap_len: u32) -> Result<(), Error> {
        if self.link_type != Some(packet.link_type) {
            if let Some(first) = self.link_type {
                let second = packet.link_type;
                return Err(self.unsupported(format!(
                    "pcap holds one link type, and after {first} came {second}: write pcapng \
                     (name the file .pcapng)"
                )));
            }
            self.header(packet.link_type);
        }
        let nanos = packet.time.as_nanos();
        let Ok(secs) = u32::try_from(nanos.div_euclid(1_000_000_000)) else {
            return Err(self.unsupported("pcap holds times from 1970 to 2106 only".into()));
        };
        let rest = nanos.rem_euclid(1_000_000_000) as u32;
        let fraction = match self.options.precision {
            Some(Precision::Micros) => rest / 1_000,
            _ => rest,
        };
        put_words(&mut self.buffer, &[secs, fraction, cap_len, packet.wire_len]);
        Ok(())
    }

    /// Writes the part of an Enhanced Packet Block before its data.
    #[inline]
    fn block(&mut self, packet: &Packet<'_>, cap_len: u32) -> Result<(), Error> {
        let Ok(ticks) = u64::try_from(self.cut(packet.time).as_nanos()) else {
            return Err(self.unsupported("pcapng holds times from 1970 on only".into()));
        };
        let key = (packet.interface, packet.link_type);
        let id = match self.interfaces.get(&key) {
            Some(id) => *id,
            None => self.interface(key),
        };
        let len = ENHANCED + cap_len.next_multiple_of(4);
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        let words = [pcapng::ENHANCED_PACKET, len, id, high, low, cap_len, packet.wire_len];
        put_words(&mut self.buffer, &words);
        Ok(())
    }

    /// Writes a block of another pcapng file unchanged; requires [`WriteOptions::as_blocks`].
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn add_block(&mut self, block: &[u8], is_packet: bool) -> Result<(), Error> {
        self.buffer.extend_from_slice(block);
        self.packets += u64::from(is_packet);
        if self.buffer.len() >= BUFFER { self.drain() } else { Ok(()) }
    }

    fn cut(&self, time: Time) -> Time {
        match self.options.precision {
            Some(Precision::Micros) => {
                Time::from_nanos(time.as_nanos() - time.as_nanos().rem_euclid(1_000))
            }
            _ => time,
        }
    }

    fn snaplen(&self) -> u32 {
        self.options.snaplen.unwrap_or(SNAPLEN)
    }

    /// Writes the header of a pcap file.
    fn header(&mut self, link_type: LinkType) {
        self.link_type = Some(link_type);
        let magic = match self.options.precision {
            Some(Precision::Micros) => pcap::MAGIC_MICROS,
            _ => pcap::MAGIC_NANOS,
        };
        // Version 2.4 as two halves of a word.
        let version = 2 | 4 << 16;
        let words = [magic, version, 0, 0, self.snaplen(), u32::from(link_type.0)];
        put_words(&mut self.buffer, &words);
    }

    /// Writes the section header of a pcapng file: version 1.0, length unknown.
    fn section(&mut self) {
        let mut options = Vec::new();
        if let Some(application) = &self.options.application {
            option(&mut options, 4, application.as_bytes());
            option(&mut options, 0, &[]);
        }
        let len = 28 + options.len() as u32;
        let words = [pcapng::SECTION, len, pcapng::ORDER_MAGIC, 1, u32::MAX, u32::MAX];
        put_words(&mut self.buffer, &words);
        self.buffer.extend_from_slice(&options);
        put_words(&mut self.buffer, &[len]);
    }

    /// Writes the description of an interface to a pcapng file.
    #[cold]
    fn interface(&mut self, key: (u32, LinkType)) -> u32 {
        let id = self.interfaces.len() as u32;
        self.interfaces.insert(key, id);
        // Times in ns: option 9 of one byte. 20 bytes of block, 8 of this option, 4 of
        // `opt_endofopt`.
        let len = 32;
        let words = [pcapng::INTERFACE, len, u32::from(key.1.0), self.snaplen()];
        put_words(&mut self.buffer, &words);
        option(&mut self.buffer, 9, &[9]);
        option(&mut self.buffer, 0, &[]);
        put_words(&mut self.buffer, &[len]);
        id
    }

    fn unsupported(&self, what: String) -> Error {
        Error::Unsupported { file: self.file.clone(), what }
    }

    fn drain(&mut self) -> Result<(), Error> {
        self.bytes += self.buffer.len() as u64;
        let written = self.output.drain(&mut self.buffer);
        self.checked(written)
    }

    /// Writes the buffered bytes, so that a reader of a pipe receives them.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.drain()?;
        let flushed = self.output.flush();
        self.checked(flushed)
    }

    /// Finishes the file, even if it has no packets.
    ///
    /// # Errors
    /// [`Error::Io`] if writing fails.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end()
    }

    /// Removes the file and keeps an old one with its name, unless it was renamed at its creation.
    pub fn discard(mut self) {
        self.rename = None;
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.output.is_gone() {
            return Ok(());
        }
        let link_type = self.options.link_type.unwrap_or(LinkType::ETHERNET);
        if self.format == Format::Pcap && self.link_type.is_none() {
            self.header(link_type);
        }
        let is_own = self.format == Format::PcapNg && !self.options.as_blocks;
        if is_own && self.interfaces.is_empty() {
            self.interface((0, link_type));
        }
        self.bytes += self.buffer.len() as u64;
        let ended = self.output.finish(&mut self.buffer);
        self.buffer.clear();
        self.checked(ended)?;
        let renamed = self.rename.take().map_or(Ok(()), Rename::at_once);
        self.checked(renamed)
    }

    /// Removes the file after an error.
    fn checked(&mut self, done: io::Result<()>) -> Result<(), Error> {
        done.map_err(|source| {
            self.rename = None;
            Error::Io { file: self.file.clone(), source }
        })
    }

    /// Number of packets written so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Number of bytes written so far, before compression.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    /// The format that is written.
    pub fn format(&self) -> Format {
        self.format
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Errors cannot be returned here; call `finish` to see them.
        let _ = self.end();
    }
}

/// Length of an Enhanced Packet Block without its data and padding.
const ENHANCED: u32 = 32;

fn put_words(buffer: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        buffer.extend_from_slice(&word.to_le_bytes());
    }
}

/// Appends an option, padded to four bytes; values of more than 65,535 bytes are truncated.
fn option(buffer: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    buffer.extend_from_slice(&code.to_le_bytes());
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(value.get(..usize::from(len)).unwrap_or(value));
    buffer.resize(buffer.len().next_multiple_of(4), 0);
}

impl Format {
    /// The default format for a capture with this name.
    pub fn of_name(path: &Path) -> Self {
        by_suffix(path)
    }
}

fn by_suffix(path: &Path) -> Format {
    let inner = match Compression::from_suffix(path) {
        Some(_) => path.file_stem().map(Path::new).unwrap_or(path),
        None => path,
    };
    match inner.extension().and_then(|e| e.to_str()) {
        Some("pcapng" | "ntar") => Format::PcapNg,
        _ => Format::Pcap,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Reader;
    use crate::test::Dir;
    use crate::test::Owned;
    use crate::test::Shared;
    use crate::test::drained;
    use crate::test::written;
    use crate::test::written_with;

    fn read(bytes: Vec<u8>) -> Vec<Owned> {
        let (all, error) =
            drained(Reader::from_read(Box::new(io::Cursor::new(bytes)), "w").unwrap());
        assert!(error.is_none(), "{error:?}");
        all
    }

    #[test]
    fn bytes_of_a_pcap_file() {
        let bytes = written("x.pcap", &[Owned::new(7_000_000_009, b"ab").packet()]);
        let expected =
            [
                &[
                    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0,
                    0, 0,
                ][..],
                &[7, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'a', b'b'],
            ]
            .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn bytes_of_a_pcapng_file() {
        let options = WriteOptions { application: Some("me".into()), ..WriteOptions::default() };
        let bytes = written_with("x.pcapng", &[Owned::new(9, b"ab").packet()], options);
        let expected = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8],
            &[4, 0, 2, 0, b'm', b'e', 0, 0, 0, 0, 0, 0, 40, 0, 0, 0],
            &[1, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0],
            &[6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0],
            &[b'a', b'b', 0, 0, 36, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn microseconds_and_snaplen_on_request() {
        let packet = Owned::new(1_999_999_999, b"abcdef");
        for name in ["x.pcap", "x.pcapng"] {
            let options = WriteOptions {
                precision: Some(Precision::Micros),
                snaplen: Some(4),
                ..WriteOptions::default()
            };
            let read = read(written_with(name, &[packet.packet()], options));
            assert_eq!((read[0].nanos, read[0].wire_len), (1_999_999_000, 6));
            assert_eq!(read[0].data, b"abcd");
        }
    }

    #[test]
    fn pcap_rejects_what_it_cannot_represent() {
        let sink = Shared::default();
        let mut writer = Writer::to_write(Box::new(sink), "x.pcap", WriteOptions::default());
        writer.write(&Owned::new(1, b"a").packet()).unwrap();
        let other = Owned { link_type: 101, ..Owned::new(2, b"a") };
        let error = writer.write(&other.packet()).unwrap_err();
        assert!(error.to_string().contains(".pcapng"), "{error}");
        assert!(writer.write(&Owned::new(-1, b"a").packet()).is_err());
        assert!(writer.write(&Owned::new(i64::MAX, b"a").packet()).is_err());
        assert_eq!(writer.packets(), 1);
        writer.finish().unwrap();
    }

    #[test]
    fn suffixes_choose_format_and_compression() {
        let dir = Dir::new("suffixes");
        for (name, format, compression) in [
            ("a.pcap", Format::Pcap, None),
            ("a.cap.gz", Format::Pcap, Some(Compression::Gzip)),
            ("a.pcapng.zst", Format::PcapNg, Some(Compression::Zstd)),
            ("a.ntar.xz", Format::PcapNg, Some(Compression::Xz)),
            ("a.pcapng.lz4", Format::PcapNg, Some(Compression::Lz4)),
        ] {
            let path = dir.0.join(name);
            let packet = Owned::new(77, b"payload");
            for encoder_thread in [false, true] {
                let options = WriteOptions { encoder_thread, ..WriteOptions::default() };
                let mut writer = Writer::create(&path, options).unwrap();
                writer.write(&packet.packet()).unwrap();
                // More than the buffer, so that the thread starts.
                let long = Owned::new(78, &[9; BUFFER / 2]);
                for _ in 0..3 {
                    writer.write(&long.packet()).unwrap();
                }
                // Dropped, not finished: the file is complete nevertheless.
                drop(writer);
                let reader = Reader::open(&path).unwrap();
                assert_eq!((reader.format(), reader.compression()), (format, compression));
                let (all, error) = drained(reader);
                assert!(error.is_none(), "{name}");
                assert!(all[..1] == [packet.clone()] && all[1..] == vec![long; 3], "{name}");
            }
        }
        let nowhere = Writer::create(dir.0.join("no/such/dir.pcap"), WriteOptions::default());
        assert!(matches!(nowhere, Err(Error::Io { .. })));
    }

    #[test]
    fn flush_shows_what_was_written() {
        let sink = Shared::default();
        let mut writer =
            Writer::to_write(Box::new(sink.clone()), "x.pcap", WriteOptions::default());
        writer.write(&Owned::new(1, b"a").packet()).unwrap();
        writer.flush().unwrap();
        assert_eq!(sink.take().len() as u64, writer.bytes());
        writer.finish().unwrap();
    }

    prop_compose! {
        fn any_packet()(
            nanos in 0..(i64::from(u32::MAX) * 1_000_000_000),
            wire_len in any::<u32>(),
            interface in 0..3_u32,
            data in prop::collection::vec(any::<u8>(), 0..100),
        ) -> Owned {
            Owned { nanos, wire_len, link_type: 1, interface, data }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ng in any::<bool>(),
            mut packets in prop::collection::vec(any_packet(), 0..80),
        ) {
            let name = if ng { "x.pcapng" } else { "x.pcap" };
            let views: Vec<_> = packets.iter().map(Owned::packet).collect();
            let mut all = read(written(name, &views));
            // Interfaces are renumbered in the order of their first packets.
            for p in packets.iter_mut().chain(&mut all) {
                p.interface = 0;
            }
            prop_assert_eq!(all, packets);
        }
    }
}
