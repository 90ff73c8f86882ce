//! A capture from any source, with any compression.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::io::Seek;
use std::num::NonZero;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use crate::Batch;
use crate::Blocks;
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
use crate::format::Window;
use crate::format::sniff;
use crate::map::Map;
use crate::map::PageReadahead;
use crate::packet::BATCH_PACKETS;
use crate::packet::NEAR_PACKETS;
use crate::packet::PacketRef;
use crate::shared::Pool;
use crate::shared::Refs;
use crate::source::Mapped;
use crate::source::READ;
use crate::source::Source;
use crate::source::Streamed;
use gannet_inflate::RestartPoints;

/// Default maximum number of threads that decompress a file: with more threads, the sequential part
/// takes longer than the parallel one.
pub const UNPACK_THREADS: usize = 4;

fn unpack_threads() -> usize {
    available_parallelism().map_or(1, NonZero::get).min(UNPACK_THREADS)
}

/// The path that denotes standard input.
pub(crate) const STDIN: &str = "-";

/// The access method for an uncompressed file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Map the file: no bytes are copied, and packets that are not processed are not read.
    #[default]
    Map,
    /// Read the file, some hundred kilobytes at a time, into reused buffers: the data is in a near
    /// cache when it is processed, there is no page-table work, which can cost more than the copy
    /// (see benchsuite/lab-book.md, "Mapped or read"), and a file that another process truncates
    /// ends early instead of ending this process.
    Read,
}

/// Reads the packets of one capture in file order.
///
/// [`Reader::open`] maps files into memory and streams compressed files and those that cannot be
/// mapped; [`Reader::from_read`] reads any other source. Both use the same record reader.
pub struct Reader {
    file: PathBuf,
    source: Box<dyn Source>,
    records: Records,
    compression: Option<Compression>,
    /// `None` for mapped files.
    meter: Option<Arc<Meter>>,
    total: Option<u64>,
    /// The packets of the current batch.
    refs: Refs,
    /// Packet lists that still have other owners.
    pool: Pool<Refs>,
    /// Maximum number of packets of a batch.
    max_packets: usize,
    /// Number of bytes that the current batch spans, at the start of the window.
    used: usize,
    /// Offset of the window in the decompressed capture.
    base: u64,
    /// Number of packets before the current batch.
    before: u64,
    /// The error to return after the current batch.
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
    /// [`Error::Io`] if the file cannot be opened or read, [`Error::NotACapture`] if it is not a
    /// capture, [`Error::Unsupported`] if it is a capture of an unsupported kind, and
    /// [`Error::Cut`] if it ends within the file header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_by(path.as_ref(), Access::Map)
    }

    /// Opens a capture by its path and reads it with `access`.
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn open_by(path: &Path, access: Access) -> Result<Self, Error> {
        if path == Path::new(STDIN) {
            return Self::from_read(Box::new(io::stdin()), "standard input");
        }
        let io = |source| Error::Io { file: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if meta.is_dir() {
            return Err(io(io::ErrorKind::IsADirectory.into()));
        }
        // Files of the kernel (/proc) report a length of 0 although they have contents: they are
        // streamed.
        let len = if meta.is_file() { meta.len() } else { 0 };
        // Compressed files are always mapped, so that several threads can decompress them in place.
        let maps = len > 0 && (access == Access::Map || is_compressed(&mut file).map_err(io)?);
        if maps && let Ok(map) = Map::new(&file) {
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

    /// Reads a capture, compressed or not, from any source; `name` is its name in errors.
    ///
    /// # Errors
    /// Those of [`Reader::open`].
    pub fn from_read(input: Box<dyn Read + Send>, name: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::stream(input, name.into(), None)
    }

    fn stream(
        input: Box<dyn Read + Send>,
        file: PathBuf,
        total: Option<u64>,
    ) -> Result<Self, Error> {
        let (input, meter) = Metered::new(input);
        // One byte more than the file's length, so that the end is detected without a larger
        // buffer.
        let size = total.map_or(READ, |len| READ.min(len as usize + 1));
        let mut source = Streamed::with_buffer(Box::new(input) as Box<dyn Read + Send>, size);
        if let Err(source) = source.fill(SNIFF) {
            return Err(Error::Io { file, source });
        }
        let Some(compression) = Compression::sniff(source.window()) else {
            return Self::start(file, Box::new(source), None, Some(meter), total);
        };
        let head = source.window().to_vec();
        let (_, _, input) = source.into_parts();
        let input = BufReader::with_capacity(INPUT, Cursor::new(head).chain(input));
        let source = compression.source(Box::new(input), false);
        Self::unpack(compression, source, meter, file, total)
    }

    /// Opens a compressed capture.
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

    /// Parses the file header.
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
                let at = ErrorPosition { file, packet: 1, offset: 0 };
                return Err(at.unreadable(failed, compression, meter.as_deref(), 0, SNIFF));
            }
            Sniffed::Nothing(_) if Compression::sniff(head).is_some() => {
                let what = "compressed twice; decompress it once first".into();
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
            let at = ErrorPosition { file, packet: 1, offset: 0 };
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
            refs: Vec::with_capacity(NEAR_PACKETS).into(),
            pool: Pool::default(),
            max_packets: NEAR_PACKETS,
            used,
            base: 0,
            before: 0,
            pending: None,
            ended: false,
        })
    }

    /// Returns the next packets, or `None` after the last one.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::Cut`] and [`Error::Io`] are returned once, after the batches
    /// with all packets before the damage; then the capture has ended.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        Ok(if self.read_batch()? { Some(self.batch()) } else { None })
    }

    /// Advances to the next batch; returns false after the last one.
    pub(crate) fn read_batch(&mut self) -> Result<bool, Error> {
        self.before += self.refs.len() as u64;
        self.pool.exchange(&mut self.refs);
        if let Some(refs) = self.refs.own() {
            refs.clear();
            refs.reserve(self.max_packets);
        }
        self.step(self.used);
        self.used = 0;
        if let Some(error) = self.pending.take() {
            self.ended = true;
            return Err(error);
        }
        while !self.ended {
            let window = Window { data: self.source.window(), is_far: !self.source.is_near() };
            // The list has no other owner: see above.
            let Some(refs) = self.refs.own() else { break };
            let parsed = self.records.parse_records(window, self.max_packets, refs);
            if !refs.is_empty() {
                self.used = parsed.used;
                if let Stop::Damage(what) = parsed.stop {
                    self.pending = Some(self.damaged(parsed.used, what));
                }
                return Ok(true);
            }
            // Headers and blocks without packets are no longer needed.
            self.step(parsed.used);
            match parsed.stop {
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
                        return Err(self.error_position(0).unreadable(
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

    /// Starts a thread that prepares the pages of a long mapped file, so that packets are available
    /// earlier if a processor is idle.
    pub fn read_ahead(&mut self) {
        self.source.read_ahead();
    }

    /// Sets the number of threads that decompress a file, including the caller's: 1 starts no
    /// thread. The default is one per core, up to [`UNPACK_THREADS`]. Threads are used for long
    /// files that can be mapped: several for zstd, and for other formats one in addition to the
    /// caller's, which parses records and verifies checksums.
    pub fn set_unpack_threads(&mut self, threads: usize) {
        self.source.set_threads(threads);
    }

    /// Lets the receivers of batches prepare the pages of a mapped file.
    pub(crate) fn share_pages(&mut self, readahead: &PageReadahead) {
        if let Some(shared_pages) = self.source.share_pages() {
            readahead.add(shared_pages);
        }
    }

    /// Stores blocks of a pcapng file that are not packets: see [`crate::Stream::keep_blocks`].
    pub fn keep_blocks(&mut self) -> Option<Blocks> {
        match &mut self.records {
            Records::PcapNg(records) => Some(records.keep_blocks()),
            Records::Pcap(_) => None,
        }
    }

    /// Collects restart points of a compressed file, at least `every` decompressed bytes apart;
    /// `None` if the format has none. Must be called before the first batch.
    pub fn keep_restarts(&mut self, every: u64) -> Option<RestartPoints> {
        let points = RestartPoints::new(every);
        self.source.keep_restarts(&points).then_some(points)
    }

    /// Sets the maximum number of packets of further batches, up to [`BATCH_PACKETS`]; the default
    /// is [`NEAR_PACKETS`].
    pub fn set_batch_packets(&mut self, max_packets: usize) {
        self.max_packets = max_packets.clamp(1, BATCH_PACKETS);
    }

    /// The batch to which [`Reader::read_batch`] advanced.
    pub(crate) fn batch(&self) -> Batch<'_> {
        self.batch_from(self.before + 1)
    }

    /// Like [`Self::batch`], numbered from `first`.
    pub(crate) fn batch_from(&self, first: u64) -> Batch<'_> {
        Batch::new(&self.refs, self.source.window(), self.source.bytes(), first)
            .at_position(Some(self.base), self.compression.is_some())
    }

    /// The positions of the packets of the current batch.
    pub(crate) fn refs(&self) -> &[PacketRef] {
        &self.refs
    }

    /// The bytes into which [`Reader::refs`] point.
    pub(crate) fn window(&self) -> &[u8] {
        self.source.window()
    }

    fn step(&mut self, bytes: usize) {
        self.source.advance(bytes);
        self.base += bytes as u64;
    }

    fn error_position(&self, ahead: usize) -> ErrorPosition {
        ErrorPosition {
            file: self.file.clone(),
            packet: self.packets() + 1,
            offset: self.base + ahead as u64,
        }
    }

    fn damaged(&self, ahead: usize, what: Cow<'static, str>) -> Error {
        let ErrorPosition { file, packet, offset } = self.error_position(ahead);
        Error::Damaged { file, packet, offset, what: what.into_owned() }
    }

    /// The path as given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The capture's format.
    pub fn format(&self) -> Format {
        self.records.format()
    }

    /// The capture's compression.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Byte order of the capture, or of the current section.
    pub fn endian(&self) -> Endian {
        self.records.endian()
    }

    /// The interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        self.records.interfaces()
    }

    /// Facts about the origin of the capture, from the headers read so far.
    pub fn origin(&self) -> &Origin {
        self.records.origin()
    }

    /// Number of packets returned so far.
    pub fn packets(&self) -> u64 {
        self.before + self.refs.len() as u64
    }

    /// Number of bytes read so far from the file on disk, compressed or not.
    pub fn bytes_done(&self) -> u64 {
        match &self.meter {
            Some(meter) => meter.bytes(),
            None => self.base + self.used as u64,
        }
    }

    /// Size of the file on disk in bytes; `None` for pipes and similar inputs.
    pub fn bytes_total(&self) -> Option<u64> {
        self.total
    }
}

/// Whether a file that was just opened is compressed.
fn is_compressed(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::with_capacity(SNIFF);
    Read::by_ref(file).take(SNIFF as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(Compression::sniff(&head).is_some())
}

/// Position of a read error.
struct ErrorPosition {
    file: PathBuf,
    packet: u64,
    offset: u64,
}

impl ErrorPosition {
    /// The error for a record of `want` bytes of which only `have` bytes could be read.
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
                let what = format!("a record of {want} bytes, of which only {have} are present");
                Error::Cut { file, packet, offset, what }
            }
            (Some(source), Some(compression)) if !meter.is_some_and(Meter::failed) => {
                if source.kind() == io::ErrorKind::UnexpectedEof {
                    let what = format!("the {} data are truncated", compression.name());
                    Error::Cut { file, packet, offset, what }
                } else {
                    let what =
                        format!("the {} data cannot be decompressed: {source}", compression.name());
                    Error::Damaged { file, packet, offset, what }
                }
            }
            (Some(source), _) => Error::Io { file, source },
        }
    }
}

#[cfg(test)]
mod tests;
