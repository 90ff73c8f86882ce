//! Compressed captures: detected by magic numbers when reading, selected by the suffix when
//! writing.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use gannet_inflate::gzip::Gunzip;
use gannet_inflate::zstd::Unzstd;

use crate::decoder_thread::Unpacked;
use crate::source::Gzip;
use crate::source::Input;
use crate::source::Source;
use crate::source::Streamed;
use crate::source::Zstd;

/// The compression format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// gzip (RFC 1952), with one or more members.
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// xz.
    Xz,
    /// LZ4 frames.
    Lz4,
}

/// Memory limit for decompressing xz, in bytes: several times what its strongest preset needs.
const XZ_MEMORY: u64 = 512 << 20;

/// Number of bytes of a compressed stream that are read at a time.
pub(crate) const INPUT: usize = 128 << 10;

impl Compression {
    /// The format's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }

    /// Detects the format by the first bytes of a file.
    pub fn sniff(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            // pzstd starts its files with skippable frames, which LZ4 has as well.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Returns the format for the suffix of an output path.
    pub fn from_suffix(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" => Some(Self::Zstd),
            "xz" => Some(Self::Xz),
            "lz4" => Some(Self::Lz4),
            _ => None,
        }
    }

    /// A source with the decompressed `input`. `never_blocks` means that reading the input never blocks.
    pub(crate) fn source(
        self,
        input: Box<dyn BufRead + Send>,
        never_blocks: bool,
    ) -> io::Result<Box<dyn Source>> {
        let decoder: Box<dyn Read + Send> = match self {
            Self::Gzip => return Ok(unpacked(Gzip(Gunzip::new(input)), never_blocks)),
            Self::Zstd => {
                let unzstd =
                    if never_blocks { Unzstd::in_memory(input) } else { Unzstd::new(input) };
                return Ok(Box::new(Streamed::new(Zstd(unzstd))));
            }
            Self::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(
                    XZ_MEMORY,
                    liblzma::stream::CONCATENATED,
                )?;
                let decoder = liblzma::bufread::XzDecoder::new_stream(input, stream);
                Box::new(Xz { decoder, failed: None })
            }
            Self::Lz4 => Box::new(Lz4::new(input)),
        };
        Ok(unpacked(decoder, never_blocks))
    }

    /// Compresses into `output`.
    pub(crate) fn encoder(self, output: Box<dyn Write + Send>) -> io::Result<Encoder> {
        Ok(match self {
            Self::Gzip => {
                Encoder::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Self::Zstd => Encoder::Zstd(ZstdFrames::new(output)?),
            Self::Xz => Encoder::Xz(liblzma::write::XzEncoder::new(output, 6)),
            Self::Lz4 => Encoder::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(output))),
        })
    }
}

/// A source with decompressed data, which uses a decoder thread if reading the input never blocks.
fn unpacked<R: Input + 'static>(decoder: R, never_blocks: bool) -> Box<dyn Source> {
    if never_blocks { Box::new(Unpacked::new(decoder)) } else { Box::new(Streamed::new(decoder)) }
}

/// Output with optional compression and an explicit end.
pub(crate) enum Encoder {
    Plain(Box<dyn Write + Send>),
    Gzip(flate2::write::GzEncoder<Box<dyn Write + Send>>),
    Zstd(ZstdFrames<Box<dyn Write + Send>>),
    Xz(liblzma::write::XzEncoder<Box<dyn Write + Send>>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<Box<dyn Write + Send>>>),
}

impl Encoder {
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(w) => w.write_all(bytes),
            Self::Gzip(w) => w.write_all(bytes),
            Self::Zstd(w) => w.write_all(bytes),
            Self::Xz(w) => w.write_all(bytes),
            Self::Lz4(w) => w.write_all(bytes),
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(w) => w.flush(),
            Self::Gzip(w) => w.flush(),
            Self::Zstd(w) => w.flush(),
            Self::Xz(w) => w.flush(),
            Self::Lz4(w) => w.flush(),
        }
    }

    /// Writes the trailer of the compressed format, and flushes.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(w) => Ok(w),
            Self::Gzip(w) => w.finish(),
            Self::Zstd(w) => w.finish(),
            Self::Xz(w) => w.finish(),
            Self::Lz4(w) => w.finish().map_err(io::Error::other),
        }?
        .flush()
    }
}

/// Uncompressed bytes per zstd frame: readers can start at each frame ([`crate::RestartPoints`]),
/// at a loss in size of less than one percent.
const FRAME: usize = 8 << 20;

/// Writes zstd frames of [`FRAME`] uncompressed bytes.
pub(crate) struct ZstdFrames<W: Write> {
    /// `None` only after an error.
    encoder: Option<zstd::stream::write::Encoder<'static, W>>,
    /// Number of uncompressed bytes that the frame can still take.
    left: usize,
}

impl<W: Write> ZstdFrames<W> {
    fn new(output: W) -> io::Result<Self> {
        Ok(Self { encoder: Some(zstd::stream::write::Encoder::new(output, 3)?), left: FRAME })
    }

    fn encoder(&mut self) -> io::Result<&mut zstd::stream::write::Encoder<'static, W>> {
        self.encoder.as_mut().ok_or_else(|| io::Error::other("an earlier write failed"))
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left == 0 {
                let output = self.encoder.take().map(zstd::stream::write::Encoder::finish);
                if let Some(output) = output {
                    *self = Self::new(output?)?;
                }
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.left));
            self.encoder()?.write_all(now)?;
            self.left -= now.len();
            bytes = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder()?.flush()
    }

    fn finish(mut self) -> io::Result<W> {
        self.encoder()?;
        self.encoder.take().map_or_else(|| Err(io::ErrorKind::Other.into()), |e| e.finish())
    }
}

/// Decompresses xz, including all data that precedes an error. The library's decoder loses some of
/// that data, depending on the size of the read.
struct Xz<R> {
    decoder: liblzma::bufread::XzDecoder<R>,
    failed: Option<io::Error>,
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = self.decoder.total_out();
        self.decoder.read(buf).or_else(|error| match self.decoder.total_out() - before {
            0 => Err(error),
            n => {
                self.failed = Some(error);
                Ok(buf.len().min(n as usize))
            }
        })
    }
}

/// Decompresses consecutive LZ4 frames, and returns an error if the input ends within a frame,
/// which the library's decoder takes for the end. Each frame has its own decoder, because a decoder
/// does not expect smaller blocks in a later frame.
struct Lz4<R: Read> {
    /// Always `Some`.
    decoder: Option<lz4_flex::frame::FrameDecoder<Tail<R>>>,
    /// Whether the input is within a frame.
    inside: bool,
}

/// Records whether bytes were read and whether the input has ended.
struct Tail<R> {
    input: R,
    has_read: bool,
    ended: bool,
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buf)?;
        self.has_read |= n > 0;
        self.ended |= n == 0 && !buf.is_empty();
        Ok(n)
    }
}

impl<R: Read> Lz4<R> {
    fn new(input: R) -> Self {
        let tail = Tail { input, has_read: false, ended: false };
        Self { decoder: Some(lz4_flex::frame::FrameDecoder::new(tail)), inside: false }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        while let Some(decoder) = &mut self.decoder {
            decoder.get_mut().has_read = false;
            let n = decoder.read(buf)?;
            if n > 0 {
                self.inside = true;
                return Ok(n);
            }
            let tail = decoder.get_mut();
            if !tail.ended {
                // The frame ended; another one may follow.
                self.inside = false;
                if !tail.has_read {
                    return Ok(0);
                }
                let tail = self.decoder.take().map(lz4_flex::frame::FrameDecoder::into_inner);
                self.decoder = tail.map(lz4_flex::frame::FrameDecoder::new);
            } else if self.inside || tail.has_read {
                return Err(io::ErrorKind::UnexpectedEof.into());
            } else {
                return Ok(0);
            }
        }
        Ok(0)
    }
}

/// Progress and state of the compressed input.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Number of bytes read so far.
    bytes: AtomicU64,
    /// Whether reading the input failed, so that an error comes from the system and not from the
    /// decoder.
    failed: AtomicBool,
}

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// An input that updates a [`Meter`].
pub(crate) struct Metered<R> {
    input: R,
    meter: Arc<Meter>,
}

impl<R: Read> Metered<R> {
    pub(crate) fn new(input: R) -> (Self, Arc<Meter>) {
        let meter = Arc::new(Meter::default());
        (Self { input, meter: Arc::clone(&meter) }, meter)
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buf) {
            Ok(n) => {
                self.meter.bytes.fetch_add(n as u64, Ordering::Relaxed);
                Ok(n)
            }
            Err(e) => {
                if e.kind() != io::ErrorKind::Interrupted {
                    self.meter.failed.store(true, Ordering::Relaxed);
                }
                Err(e)
            }
        }
    }
}

impl<R: BufRead> BufRead for Metered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.meter.bytes.fetch_add(n as u64, Ordering::Relaxed);
        self.input.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use lz4_flex::frame::BlockSize;
    use lz4_flex::frame::FrameEncoder;
    use lz4_flex::frame::FrameInfo;

    use super::*;

    #[test]
    fn zstd_is_written_in_frames() {
        let text: Vec<u8> = (0..FRAME as u32 * 2 + 5).map(|n| (n / 7) as u8).collect();
        let mut by_size = Vec::new();
        for size in [text.len(), 1_000_003] {
            let mut frames = ZstdFrames::new(Vec::new()).unwrap();
            text.chunks(size).for_each(|chunk| frames.write_all(chunk).unwrap());
            by_size.push(frames.finish().unwrap());
        }
        assert!(by_size[0] == by_size[1], "whatever the size of writes");
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        assert_eq!(by_size[0].windows(4).filter(|bytes| *bytes == magic).count(), 3);
        let mut unpacked = Vec::new();
        let mut reader = Unzstd::new(&by_size[0][..]);
        let mut piece = vec![0; 1 << 20];
        loop {
            match reader.read(&mut piece).unwrap() {
                0 => break,
                n => unpacked.extend_from_slice(&piece[..n]),
            }
        }
        assert!(unpacked == text);
        let empty = ZstdFrames::new(Vec::new()).unwrap().finish().unwrap();
        assert!(empty.starts_with(&magic), "an empty file is a frame");
    }

    #[test]
    fn lz4_frames_have_blocks_of_any_size() {
        let text: Vec<u8> = (0..300_000_u32).map(|n| (n / 7) as u8).collect();
        let mut packed = Vec::new();
        for size in [BlockSize::Max256KB, BlockSize::Max64KB, BlockSize::Max1MB] {
            let mut frame = FrameEncoder::with_frame_info(
                FrameInfo::new().block_size(size),
                std::mem::take(&mut packed),
            );
            frame.write_all(&text).unwrap();
            packed = frame.finish().unwrap();
        }
        let mut unpacked = Vec::new();
        Lz4::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == [&text[..], &text, &text].concat());
        let cut = Lz4::new(&packed[..packed.len() - 5]).read_to_end(&mut unpacked);
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
