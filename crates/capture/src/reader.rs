//! One capture, whatever its source and compression.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use crate::Batch;
use crate::Bytes;
use crate::Compression;
use crate::Endian;
use crate::Error;
use crate::Format;
use crate::Interface;
use crate::Origin;
use crate::compress::INPUT;
use crate::compress::Meter;
use crate::compress::Metered;
use crate::format::Records;
use crate::format::SNIFF;
use crate::format::Sniffed;
use crate::format::Stop;
use crate::format::sniff;
use crate::map::Map;
use crate::map::Tending;
use crate::packet::BATCH_PACKETS;
use crate::packet::NEAR_PACKETS;
use crate::packet::PacketRef;
use crate::source::Mapped;
use crate::source::Source;
use crate::source::Streamed;

/// Threads that unpack a file at the most, if nothing is said: with more, what is done in order by one of
/// them takes longer than all that the others do.
pub const UNPACK_THREADS: usize = 4;

fn unpack_threads() -> usize {
    available_parallelism().map_or(1, NonZero::get).min(UNPACK_THREADS)
}

/// The path that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Reads the packets of one capture in the order they stand there.
///
/// [`Reader::open`] maps files into memory and streams what cannot be mapped or is compressed;
/// [`Reader::from_read`] takes any other source. Both are the same record reader over different
/// bytes.
pub struct Reader {
    file: PathBuf,
    source: Box<dyn Source>,
    records: Records,
    compression: Option<Compression>,
    /// Absent for mapped files.
    meter: Option<Arc<Meter>>,
    total: Option<u64>,
    /// The packets of the current batch.
    refs: Vec<PacketRef>,
    /// How many it may have.
    most: usize,
    /// Bytes the current batch spans, at the start of the window.
    used: usize,
    /// Where the window starts in the capture.
    base: u64,
    /// Packets before the current batch.
    before: u64,
    /// Comes after the current batch.
    pending: Option<Error>,
    ended: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("file", &self.file).field("base", &self.base).finish()
    }
}

impl Reader {
    /// Opens a capture by its path; `-` is standard input.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be opened or read, [`Error::NotACapture`] when it is something
    /// else, [`Error::Unsupported`] when it is a capture of a kind that is not read, and
    /// [`Error::Cut`] when it ends within the file header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if path == Path::new(STDIN) {
            return Self::from_read(Box::new(io::stdin()), "standard input");
        }
        let io = |source| Error::Io { file: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if meta.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        // Files of the kernel (/proc) say they are empty and are not: they are streamed.
        let len = if meta.is_file() { meta.len() } else { 0 };
        if len > 0
            && let Ok(map) = Map::new(&file)
        {
            let file = path.to_owned();
            let Some(compression) = Compression::sniff(map.bytes()) else {
                return Self::start(file, Box::new(Mapped::new(map)), None, None, Some(len));
            };
            let (input, meter) = Metered::new(map.into_reader());
            let source = compression.source(Box::new(input), true);
            return Self::unpack(compression, source, meter, file, Some(len));
        }
        Self::stream(Box::new(file), path.to_owned(), (len > 0).then_some(len))
    }

    /// Reads a capture, compressed or not, from any source; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn from_read(input: Box<dyn Read + Send>, name: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::stream(input, name.into(), None)
    }

    fn stream(
        input: Box<dyn Read + Send>,
        file: PathBuf,
        total: Option<u64>,
    ) -> Result<Self, Error> {
        let (input, meter) = Metered::new(input);
        let mut source = Streamed::new(Box::new(input) as Box<dyn Read + Send>);
        if let Err(source) = source.fill(SNIFF) {
            return Err(Error::Io { file, source });
        }
        let Some(compression) = Compression::sniff(source.window()) else {
            return Self::start(file, Box::new(source), None, Some(meter), total);
        };
        let (head, input) = source.into_parts();
        let input = BufReader::with_capacity(INPUT, Cursor::new(head).chain(input));
        let source = compression.source(Box::new(input), false);
        Self::unpack(compression, source, meter, file, total)
    }

    /// A compressed capture.
    fn unpack(
        compression: Compression,
        source: io::Result<Box<dyn Source>>,
        meter: Arc<Meter>,
        file: PathBuf,
        total: Option<u64>,
    ) -> Result<Self, Error> {
        match source {
            Ok(mut source) => {
                source.set_threads(unpack_threads());
                Self::start(file, source, Some(compression), Some(meter), total)
            }
            Err(source) => Err(Error::Io { file, source }),
        }
    }

    /// Reads the file header.
    fn start(
        file: PathBuf,
        mut source: Box<dyn Source>,
        compression: Option<Compression>,
        meter: Option<Arc<Meter>>,
        total: Option<u64>,
    ) -> Result<Self, Error> {
        let mut failed = source.fill(SNIFF).err();
        let head = source.window();
        let format = match sniff(head) {
            Sniffed::Capture(format) => format,
            Sniffed::Foreign(what) => return Err(Error::Unsupported { file, what: what.into() }),
            Sniffed::Nothing(_) if failed.is_some() => {
                let at = Place { file, packet: 1, offset: 0 };
                return Err(at.unreadable(failed, compression, meter.as_deref(), 0, SNIFF));
            }
            Sniffed::Nothing(_) if Compression::sniff(head).is_some() => {
                let what = "compressed twice: unpack it once first".into();
                return Err(Error::Unsupported { file, what });
            }
            Sniffed::Nothing(found) => return Err(Error::NotACapture { file, found }),
        };
        let want = Records::header_len(format);
        if failed.is_none() {
            failed = source.fill(want).err();
        }
        let head = source.window();
        if head.len() < want {
            let have = head.len();
            let at = Place { file, packet: 1, offset: 0 };
            return Err(at.unreadable(failed, compression, meter.as_deref(), have, want));
        }
        let (records, used) = match Records::open(format, head) {
            Ok(opened) => opened,
            Err(what) => return Err(Error::Unsupported { file, what }),
        };
        Ok(Self {
            file,
            source,
            records,
            compression,
            meter,
            total,
            refs: Vec::with_capacity(NEAR_PACKETS),
            most: NEAR_PACKETS,
            used,
            base: 0,
            before: 0,
            pending: None,
            ended: false,
        })
    }

    /// The next packets, or `None` after the last.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Cut`] and [`Error::Io`] come once, after the batches with all
    /// packets before the damage; then the capture has ended.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        Ok(if self.read_batch()? { Some(self.batch()) } else { None })
    }

    /// Moves on to the next batch; false after the last.
    pub(crate) fn read_batch(&mut self) -> Result<bool, Error> {
        self.before += self.refs.len() as u64;
        self.refs.clear();
        self.step(self.used);
        self.used = 0;
        if let Some(error) = self.pending.take() {
            self.ended = true;
            return Err(error);
        }
        while !self.ended {
            let walk = self.records.walk(self.source.window(), self.most, &mut self.refs);
            if !self.refs.is_empty() {
                self.used = walk.used;
                if let Stop::Damage(what) = walk.stop {
                    self.pending = Some(self.damaged(walk.used, what));
                }
                return Ok(true);
            }
            // Headers and blocks without packets: nobody looks at these bytes.
            self.step(walk.used);
            match walk.stop {
                Stop::Full => {}
                Stop::Damage(what) => {
                    self.ended = true;
                    return Err(self.damaged(0, what));
                }
                Stop::More(want) => {
                    let failed = self.source.fill(want).err();
                    let have = self.source.window().len();
                    if have >= want {
                        continue;
                    }
                    self.ended = true;
                    if have > 0 || failed.is_some() {
                        let (compression, meter) = (self.compression, self.meter.as_deref());
                        return Err(self.place(0).unreadable(
                            failed,
                            compression,
                            meter,
                            have,
                            want,
                        ));
                    }
                }
            }
        }
        Ok(false)
    }

    /// Has a thread of its own see to the pages of a long mapped file, so that packets come sooner where
    /// a processor is free for it.
    pub fn read_ahead(&mut self) {
        self.source.read_ahead();
    }

    /// Has so many threads unpack a compressed file, the caller's being one of them: with 1 there is no
    /// other. If nothing is said there is one for each core, up to [`UNPACK_THREADS`]. zstd is unpacked by several, where
    /// the file is long and can be mapped; all else is by one.
    pub fn set_unpack_threads(&mut self, threads: usize) {
        self.source.set_threads(threads);
    }

    /// Has those who take batches see to the pages of a mapped file.
    pub(crate) fn tend(&mut self, tending: &Tending) {
        if let Some(tended) = self.source.tend() {
            tending.add(tended);
        }
    }

    /// From now on batches have up to so many packets, [`BATCH_PACKETS`] at most; [`NEAR_PACKETS`] if
    /// nothing is said.
    pub fn set_batch_packets(&mut self, most: usize) {
        self.most = most.clamp(1, BATCH_PACKETS);
    }

    /// The batch that [`Reader::read_batch`] moved to.
    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch::new(&self.refs, self.source.window(), self.source.bytes(), self.before + 1)
    }

    /// Its packets, where only their places matter.
    pub(crate) fn refs(&self) -> &[PacketRef] {
        &self.refs
    }

    /// The bytes that [`Reader::refs`] point into.
    pub(crate) fn window(&self) -> &[u8] {
        self.source.window()
    }

    /// What [`Reader::window`] is a part of.
    pub(crate) fn bytes(&self) -> &Bytes {
        self.source.bytes()
    }

    fn step(&mut self, bytes: usize) {
        self.source.advance(bytes);
        self.base += bytes as u64;
    }

    fn place(&self, ahead: usize) -> Place {
        Place {
            file: self.file.clone(),
            packet: self.packets() + 1,
            offset: self.base + ahead as u64,
        }
    }

    fn damaged(&self, ahead: usize, what: Cow<'static, str>) -> Error {
        let Place { file, packet, offset } = self.place(ahead);
        Error::Damaged { file, packet, offset, what: what.into_owned() }
    }

    /// The file as it was named.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The capture's format.
    pub fn format(&self) -> Format {
        self.records.format()
    }

    /// What the capture is wrapped in.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Byte order of the capture, or of the section that is being read.
    pub fn endian(&self) -> Endian {
        self.records.endian()
    }

    /// The interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        self.records.interfaces()
    }

    /// What the headers read so far say about the capture's making.
    pub fn origin(&self) -> &Origin {
        self.records.origin()
    }

    /// Packets handed out so far.
    pub fn packets(&self) -> u64 {
        self.before + self.refs.len() as u64
    }

    /// Bytes read so far of the file as it lies on disk, compressed or not.
    pub fn bytes_done(&self) -> u64 {
        match &self.meter {
            Some(meter) => meter.bytes(),
            None => self.base + self.used as u64,
        }
    }

    /// Bytes of the file as it lies on disk; `None` for pipes and the like.
    pub fn bytes_total(&self) -> Option<u64> {
        self.total
    }
}

/// Where reading failed.
struct Place {
    file: PathBuf,
    packet: u64,
    offset: u64,
}

impl Place {
    /// The error for a record of `want` bytes of which only `have` could be read.
    fn unreadable(
        self,
        failed: Option<io::Error>,
        compression: Option<Compression>,
        meter: Option<&Meter>,
        have: usize,
        want: usize,
    ) -> Error {
        let Self { file, packet, offset } = self;
        match (failed, compression) {
            (None, _) => {
                let what = format!("a record needs {want} bytes and {have} are left");
                Error::Cut { file, packet, offset, what }
            }
            (Some(source), Some(compression)) if !meter.is_some_and(Meter::failed) => {
                if source.kind() == io::ErrorKind::UnexpectedEof {
                    let what = format!("the {} data end too early", compression.name());
                    Error::Cut { file, packet, offset, what }
                } else {
                    let what = format!("the {} data do not unpack: {source}", compression.name());
                    Error::Damaged { file, packet, offset, what }
                }
            }
            (Some(source), _) => Error::Io { file, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Compression::{Gzip, Lz4, Xz, Zstd};
    use crate::test::Dir;
    use crate::test::Owned;
    use crate::test::Shared;
    use crate::test::drained;
    use crate::test::written;

    fn sample(n: usize) -> Vec<Owned> {
        (0..n).map(|i| Owned::new(i as i64 * 1_000_000_007, &vec![i as u8; i % 90])).collect()
    }

    fn file_of(name: &str, packets: &[Owned]) -> Vec<u8> {
        let packets: Vec<_> = packets.iter().map(Owned::packet).collect();
        written(name, &packets)
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Owned>, Option<Error>), Error> {
        Reader::from_read(Box::new(Cursor::new(bytes.to_vec())), "test").map(drained)
    }

    fn packed(bytes: &[u8], compression: Compression) -> Vec<u8> {
        let sink = Shared::default();
        let mut encoder = compression.encoder(Box::new(sink.clone())).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap();
        sink.take()
    }

    /// Unequal bytes, so that compressed files do not shrink to nothing.
    fn noise(n: usize) -> Vec<u8> {
        let mut state = 1_u32;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(n)
        .collect()
    }

    #[test]
    fn mapped_and_streamed_are_the_same() {
        let dir = Dir::new("mapped");
        for name in ["a.pcap", "a.pcapng"] {
            let packets = sample(5_000);
            let bytes = file_of(name, &packets);
            let path = dir.file(name, &bytes);
            let reader = Reader::open(&path).unwrap();
            assert_eq!(reader.bytes_total(), Some(bytes.len() as u64));
            assert!(reader.meter.is_none(), "mapped");
            let (mapped, error) = drained(reader);
            assert!(error.is_none());
            assert_eq!(mapped, packets);
            assert_eq!(read(&bytes).unwrap().0, packets);
        }
    }

    #[test]
    fn compressed_files_are_told_by_content() {
        let dir = Dir::new("packed");
        let packets = sample(3_000);
        let bytes = file_of("x.pcap", &packets);
        for compression in [Gzip, Zstd, Xz, Lz4] {
            let mut packed = packed(&bytes, compression);
            let path = dir.file("misnamed.pcap", &packed);
            let mut reader = Reader::open(&path).unwrap();
            assert_eq!(reader.compression(), Some(compression));
            assert_eq!(reader.bytes_total(), Some(packed.len() as u64));
            let first = reader.next_batch().unwrap().unwrap().get(1).map(Owned::from);
            assert_eq!(first.as_ref(), Some(&packets[1]));
            let (all, error) = read(&packed).unwrap();
            assert!(error.is_none(), "{compression:?}");
            assert_eq!(all, packets, "{compression:?}");

            // Files joined by cat, of which the second holds bare records.
            let more: Vec<u8> = bytes[crate::pcap::HEADER..].to_vec();
            packed.extend(self::packed(&more, compression));
            let (all, error) = read(&packed).unwrap();
            assert!(error.is_none(), "{compression:?}: {error:?}");
            assert_eq!(all.len(), 6_000, "{compression:?}");
        }
    }

    #[test]
    fn compressed_twice_is_refused() {
        let bytes = packed(&packed(&file_of("x.pcap", &sample(2)), Gzip), Zstd);
        assert!(matches!(read(&bytes), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn a_cut_at_every_byte_keeps_what_is_whole() {
        for name in ["c.pcap", "c.pcapng"] {
            let packets = sample(12);
            let bytes = file_of(name, &packets);
            let mut ends = Vec::new();
            for cut in 0..bytes.len() {
                match read(&bytes[..cut]) {
                    Ok((all, error)) => {
                        assert_eq!(all, packets[..all.len()], "{name} cut at {cut}");
                        match error {
                            None => ends.push(cut),
                            Some(Error::Cut { packet, offset, .. }) => {
                                assert_eq!(packet, all.len() as u64 + 1);
                                assert!(offset < cut as u64);
                            }
                            Some(e) => panic!("{name} cut at {cut}: {e}"),
                        }
                    }
                    Err(Error::NotACapture { .. }) => assert!(cut < 12),
                    Err(e) => assert!(e.is_partial() && cut < 24, "{name} cut at {cut}: {e}"),
                }
            }
            // Between records a file may end. The pcapng headers of these packets are two blocks.
            let blocks = if name == "c.pcap" { 12 } else { 13 };
            assert_eq!(ends.len(), blocks, "{name}: {ends:?}");
        }
    }

    #[test]
    fn a_cut_of_compressed_data_is_always_noticed() {
        let packets: Vec<_> = (0..40).map(|i| Owned::new(i, &noise(50))).collect();
        let bytes = file_of("x.pcap", &packets);
        for compression in [Gzip, Zstd, Xz, Lz4] {
            let packed = packed(&bytes, compression);
            for cut in 8..packed.len() {
                match read(&packed[..cut]) {
                    Ok((all, error)) => {
                        assert_eq!(all, packets[..all.len()]);
                        let error = error.map(|e| e.is_partial());
                        assert_eq!(error, Some(true), "{compression:?} cut at {cut}");
                    }
                    Err(e) => assert!(e.is_partial(), "{compression:?} cut at {cut}: {e}"),
                }
            }
        }
    }

    #[test]
    fn damage_is_told_with_its_place_after_the_packets_before_it() {
        let packets = sample(3);
        let mut bytes = file_of("d.pcap", &packets);
        // The third record starts behind the header, 16 + 0 and 16 + 1 bytes.
        let third = 24 + 16 + 17;
        bytes[third + 8..third + 12].fill(0xff);
        let (all, error) = read(&bytes).unwrap();
        assert_eq!(all, packets[..2]);
        assert_eq!(
            error.unwrap().to_string(),
            "test: damaged at packet 3, byte 57: a record claims 4294967295 bytes; \
             the packets before it were read"
        );
    }

    #[test]
    fn a_length_beyond_the_input_takes_no_memory() {
        let mut bytes = file_of("m.pcap", &sample(2));
        bytes[24 + 8..24 + 12].copy_from_slice(&(200_u32 << 20).to_le_bytes());
        let mut reader = Reader::from_read(Box::new(Cursor::new(bytes)), "m").unwrap();
        assert!(matches!(reader.next_batch(), Err(Error::Cut { packet: 1, offset: 24, .. })));
    }

    #[test]
    fn packets_longer_than_any_buffer() {
        let packets = [Owned::new(1, &noise(10)), Owned::new(2, &noise(5 << 20))];
        let (all, error) = read(&file_of("big.pcapng", &packets)).unwrap();
        assert!(all == packets && error.is_none());
    }

    #[test]
    fn what_is_no_capture_says_what_it_is() {
        for (bytes, what) in [
            (&b""[..], "an empty file"),
            (b"hello, world\n", "text"),
            (b"\x7fELF\x02\x01\x01", "a program"),
            (&[0xd4, 0xc3, 0xb2], "other data"),
        ] {
            let found = match read(bytes) {
                Err(Error::NotACapture { found, .. }) => found,
                other => panic!("{other:?}"),
            };
            assert_eq!(found, what);
        }
        let snoop = read(b"snoop\0\0\0\0\0\0\x02\0\0\0\x04").unwrap_err();
        assert!(snoop.to_string().contains("editcap"), "{snoop}");
        let missing = Reader::open("/nonexistent/x.pcap").unwrap_err();
        assert!(matches!(missing, Error::Io { .. }));
        assert!(matches!(Reader::open("/"), Err(Error::Io { .. })));
    }

    #[test]
    fn an_input_that_fails_is_no_damage() {
        struct Broken(Cursor<Vec<u8>>);
        impl Read for Broken {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                match self.0.read(buf)? {
                    0 => Err(io::Error::other("unplugged")),
                    n => Ok(n),
                }
            }
        }
        let packets = sample(3);
        let bytes = file_of("x.pcap", &packets);
        for bytes in [bytes.clone(), packed(&bytes, Gzip)[..50].to_vec()] {
            let broken = Broken(Cursor::new(bytes));
            let (all, error) = drained(Reader::from_read(Box::new(broken), "b").unwrap());
            assert_eq!(all, packets[..all.len()]);
            assert!(matches!(error, Some(Error::Io { .. })), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn flipped_bytes_never_panic(
            ng in any::<bool>(),
            packed_as in 0..5_usize,
            flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..6),
        ) {
            let name = if ng { "f.pcapng" } else { "f.pcap" };
            let mut bytes = file_of(name, &sample(30));
            if let Some(c) = [Gzip, Zstd, Xz, Lz4].get(packed_as) {
                bytes = packed(&bytes, *c);
            }
            for (at, flip) in flips {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            if let Ok((all, _)) = read(&bytes) {
                prop_assert!(all.len() < 10_000);
            }
        }
    }
}
