//! One capture, from any source and compression.

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

/// Default of the most threads that decompress a file: with more, the sequential part takes longer
/// than the parallel one.
pub const UNPACK_THREADS: usize = 4;

fn unpack_threads() -> usize {
    available_parallelism().map_or(1, NonZero::get).min(UNPACK_THREADS)
}

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";

/// How the bytes of an uncompressed file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Map the file: nothing is copied, and packets that are not processed are not read.
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
    /// Lists of batches that other owners still read.
    pool: Pool<Refs>,
    /// The most packets of a batch.
    most: usize,
    /// Bytes the current batch spans, at the start of the window.
    used: usize,
    /// Offset of the window in the capture.
    base: u64,
    /// Packets before the current batch.
    before: u64,
    /// Returned after the current batch.
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
    /// [`Error::Io`] if it cannot be opened or read, [`Error::NotACapture`] if it is something
    /// else, [`Error::Unsupported`] if it is a capture of an unsupported kind, and [`Error::Cut`]
    /// if it ends within the file header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_by(path.as_ref(), Access::Map)
    }

    /// Opens a capture by its path and reads it with `access`.
    ///
    /// # Errors
    /// As [`Reader::open`].
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
        // Files of the kernel (/proc) report a length of 0 and have contents: they are streamed.
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
        // A little more than the file's length, so that its end is found without a larger buffer.
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
                let at = ErrorPosition { file, packet: 1, offset: 0 };
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
    /// [`Error::Damaged`], [`Error::Cut`] and [`Error::Io`] are returned once, after the batches
    /// with all packets before the damage; then the capture has ended.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        Ok(if self.read_batch()? { Some(self.batch()) } else { None })
    }

    /// Moves to the next batch; false after the last.
    pub(crate) fn read_batch(&mut self) -> Result<bool, Error> {
        self.before += self.refs.len() as u64;
        self.pool.exchange(&mut self.refs);
        if let Some(refs) = self.refs.own() {
            refs.clear();
            refs.reserve(self.most);
        }
        self.step(self.used);
        self.used = 0;
        if let Some(error) = self.pending.take() {
            self.ended = true;
            return Err(error);
        }
        while !self.ended {
            let window = Window { data: self.source.window(), is_far: !self.source.is_near() };
            // There is no other owner: see above.
            let Some(refs) = self.refs.own() else { break };
            let walk = self.records.walk(window, self.most, refs);
            if !refs.is_empty() {
                self.used = walk.used;
                if let Stop::Damage(what) = walk.stop {
                    self.pending = Some(self.damaged(walk.used, what));
                }
                return Ok(true);
            }
            // Headers and blocks without packets are not needed any more.
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

    /// Starts a thread that prepares the pages of a long mapped file, so that packets arrive sooner
    /// where a processor is idle.
    pub fn read_ahead(&mut self) {
        self.source.read_ahead();
    }

    /// Sets the number of threads that decompress a file, including the caller's: 1 starts no
    /// thread. The default is one for each core, up to [`UNPACK_THREADS`]. Threads are used for
    /// long files that can be mapped: several for zstd, and for other formats one in addition to
    /// the caller's, which reads records and verifies checksums.
    pub fn set_unpack_threads(&mut self, threads: usize) {
        self.source.set_threads(threads);
    }

    /// Lets the receivers of batches prepare the pages of a mapped file.
    pub(crate) fn share_pages(&mut self, readahead: &PageReadahead) {
        if let Some(shared_pages) = self.source.share_pages() {
            readahead.add(shared_pages);
        }
    }

    /// Keeps blocks of a pcapng file that are not packets: see [`crate::Stream::keep_blocks`].
    pub fn keep_blocks(&mut self) -> Option<Blocks> {
        match &mut self.records {
            Records::PcapNg(records) => Some(records.keep_blocks()),
            Records::Pcap(_) => None,
        }
    }

    /// Collects restart points of a compressed file, at least `every` decompressed bytes from each other; `None` where
    /// the format has none. For a reader that has not begun.
    pub fn keep_restarts(&mut self, every: u64) -> Option<RestartPoints> {
        let points = RestartPoints::new(every);
        self.source.keep_restarts(&points).then_some(points)
    }

    /// Sets the most packets of further batches, at most [`BATCH_PACKETS`]; [`NEAR_PACKETS`] by
    /// default.
    pub fn set_batch_packets(&mut self, most: usize) {
        self.most = most.clamp(1, BATCH_PACKETS);
    }

    /// The batch that [`Reader::read_batch`] moved to.
    pub(crate) fn batch(&self) -> Batch<'_> {
        self.batch_from(self.before + 1)
    }

    /// The same, numbered from `first`.
    pub(crate) fn batch_from(&self, first: u64) -> Batch<'_> {
        Batch::new(&self.refs, self.source.window(), self.source.bytes(), first)
            .at_position(Some(self.base), self.compression.is_some())
    }

    /// The positions of its packets.
    pub(crate) fn refs(&self) -> &[PacketRef] {
        &self.refs
    }

    /// The bytes that [`Reader::refs`] point into.
    pub(crate) fn window(&self) -> &[u8] {
        self.source.window()
    }

    fn step(&mut self, bytes: usize) {
        self.source.advance(bytes);
        self.base += bytes as u64;
    }

    fn place(&self, ahead: usize) -> ErrorPosition {
        ErrorPosition {
            file: self.file.clone(),
            packet: self.packets() + 1,
            offset: self.base + ahead as u64,
        }
    }

    fn damaged(&self, ahead: usize, what: Cow<'static, str>) -> Error {
        let ErrorPosition { file, packet, offset } = self.place(ahead);
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

    /// Byte order of the capture, or of the section that is being read.
    pub fn endian(&self) -> Endian {
        self.records.endian()
    }

    /// The interfaces described so far, over all sections.
    pub fn interfaces(&self) -> &[Interface] {
        self.records.interfaces()
    }

    /// Facts about the capture's origin, from the headers read so far.
    pub fn origin(&self) -> &Origin {
        self.records.origin()
    }

    /// Packets returned so far.
    pub fn packets(&self) -> u64 {
        self.before + self.refs.len() as u64
    }

    /// Bytes read so far of the file on disk, compressed or not.
    pub fn bytes_done(&self) -> u64 {
        match &self.meter {
            Some(meter) => meter.bytes(),
            None => self.base + self.used as u64,
        }
    }

    /// Size of the file on disk in bytes; `None` for pipes and the like.
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
mod tests;
