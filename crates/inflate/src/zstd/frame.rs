//! Frames and their blocks (RFC 8878 section 3.1.1), taken from the input one by one.

use std::io;
use std::io::BufRead;

use super::BLOCK;
use super::Damage;
use super::MAX_WINDOW;
use super::block::Last;
use super::execute::max_block;
use super::job::Content;
use super::job::FRONT;
use super::job::Failure;
use super::job::Frame;
use super::job::Job;

/// Magic numbers of data frames, and of skippable frames without their lowest bits.
const MAGIC: u32 = 0xfd2f_b528;
const SKIPPED: u32 = 0x184d_2a50;

/// Reads blocks from the input and parses their headers.
#[derive(Debug)]
pub(super) struct Scanner<R> {
    input: R,
    /// Bytes of input consumed.
    used: u64,
    last: Last,
    /// Number of blocks read.
    number: u64,
    /// Properties of the current frame that its blocks depend on; `None` between frames.
    frame: Option<FrameLimits>,
    /// Offset of the last data frame.
    frame_offset: u64,
    /// Whether a frame has been read.
    has_frame: bool,
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct FrameLimits {
    max_block: usize,
    checksum: bool,
}

/// Why a block cannot be read.
enum BlockFailure {
    /// The input ended within a frame.
    Truncated,
    Damage(Damage),
    Input(io::Error),
}

impl From<Damage> for BlockFailure {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

impl<R: BufRead> Scanner<R> {
    /// For input that begins at this offset of its file.
    pub(super) fn new(input: R, used: u64) -> Self {
        let last = Last::default();
        Self {
            input,
            used,
            last,
            number: 0,
            frame: None,
            frame_offset: used,
            has_frame: false,
            ended: false,
        }
    }

    /// Reads the next block, or stores its error; false at the end of the input, and after an
    /// error.
    pub(super) fn next(&mut self, job: &mut Job) -> bool {
        if self.ended {
            return false;
        }
        job.reset(self.number);
        self.number += 1;
        let taken = self.block(job);
        job.used = self.used;
        let failure = match taken {
            Ok(true) => return true,
            Ok(false) => {
                self.ended = true;
                return false;
            }
            Err(BlockFailure::Truncated) => Failure::Input(io::ErrorKind::UnexpectedEof.into()),
            Err(BlockFailure::Damage(damage)) => Failure::Damage(damage),
            Err(BlockFailure::Input(error)) => Failure::Input(error),
        };
        job.failure = Some(failure);
        self.ended = true;
        true
    }

    fn block(&mut self, job: &mut Job) -> Result<bool, BlockFailure> {
        let inside = match self.frame {
            Some(inside) => inside,
            None => {
                let Some(frame) = self.header()? else { return Ok(false) };
                (job.frame, job.frame_offset) = (Some(frame.0), self.frame_offset);
                self.last.reset();
                self.has_frame = true;
                *self.frame.insert(frame.1)
            }
        };
        job.max_size = inside.max_block;
        let [a, b, c] = self.bytes()?;
        let head = u32::from_le_bytes([a, b, c, 0]);
        let size = (head >> 3) as usize;
        match head >> 1 & 3 {
            0 => {
                if size > inside.max_block {
                    return Err(Damage::Block.into());
                }
                job.content = Content::Raw;
                self.content(job, size)?;
            }
            1 => {
                if size > inside.max_block {
                    return Err(Damage::Block.into());
                }
                let [byte] = self.bytes()?;
                job.content = Content::Repeated(byte, size);
            }
            2 => {
                if size > inside.max_block || size < 2 {
                    return Err(Damage::Block.into());
                }
                self.content(job, size)?;
                let packed = self.last.headers(&job.input, inside.max_block)?;
                job.content = Content::Packed(Box::new(packed));
            }
            _ => return Err(Damage::Block.into()),
        }
        if head & 1 != 0 {
            self.frame = None;
            // The frame ends here even if the input does so before its checksum.
            job.end = Some(None);
            if inside.checksum {
                job.end = Some(Some(u32::from_le_bytes(self.bytes()?)));
            }
        }
        Ok(true)
    }

    /// Reads the header of the next data frame; `None` at the end of the input.
    fn header(&mut self) -> Result<Option<(Frame, FrameLimits)>, BlockFailure> {
        loop {
            if self.input.fill_buf().map_err(BlockFailure::Input)?.is_empty() && self.has_frame {
                return Ok(None);
            }
            self.frame_offset = self.used;
            let magic = u32::from_le_bytes(self.bytes()?);
            if magic & !15 == SKIPPED {
                let size = u32::from_le_bytes(self.bytes()?);
                self.take(u64::from(size), |_| {})?;
                self.has_frame = true;
                continue;
            }
            if magic != MAGIC {
                return Err(Damage::Magic.into());
            }
            break;
        }
        let [descriptor] = self.bytes()?;
        if descriptor & 8 != 0 {
            return Err(Damage::Descriptor.into());
        }
        let single = descriptor & 0x20 != 0;
        let mut window = 0;
        if !single {
            let [byte] = self.bytes()?;
            let base = 1_u64 << (10 + u32::from(byte >> 3));
            window = base + base / 8 * u64::from(byte & 7);
        }
        let dictionary = match descriptor & 3 {
            0 => 0,
            1 => u32::from(self.bytes::<1>()?[0]),
            2 => u32::from(u16::from_le_bytes(self.bytes()?)),
            _ => u32::from_le_bytes(self.bytes()?),
        };
        let size = match descriptor >> 6 {
            0 if single => Some(u64::from(self.bytes::<1>()?[0])),
            0 => None,
            1 => Some(u64::from(u16::from_le_bytes(self.bytes()?)) + 256),
            2 => Some(u64::from(u32::from_le_bytes(self.bytes()?))),
            _ => Some(u64::from_le_bytes(self.bytes()?)),
        };
        if dictionary != 0 {
            return Err(Damage::Dictionary(dictionary).into());
        }
        if single {
            window = size.unwrap_or(0);
        }
        let window = match usize::try_from(window) {
            Ok(window) if window <= MAX_WINDOW => window,
            _ => return Err(Damage::Window(window).into()),
        };
        let inside = FrameLimits { max_block: max_block(window), checksum: descriptor & 4 != 0 };
        Ok(Some((Frame { window, size, checksum: inside.checksum }, inside)))
    }

    /// Reads `size` bytes into a block, or all available bytes if the input ends before.
    fn content(&mut self, job: &mut Job, size: usize) -> Result<(), BlockFailure> {
        // At most the maximum size of a block, even if its header states more.
        let size = size.min(BLOCK);
        job.input.reserve(size);
        let taken = self.take(size as u64, |bytes| job.input.extend_from_slice(bytes));
        debug_assert!(taken.is_err() || job.input.len() == FRONT + size);
        taken
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], BlockFailure> {
        let mut all = [0; N];
        let mut at = 0;
        self.take(N as u64, |bytes| {
            all[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        })?;
        Ok(all)
    }

    /// Reads the next `n` bytes in pieces as they arrive.
    fn take(&mut self, mut n: u64, mut each: impl FnMut(&[u8])) -> Result<(), BlockFailure> {
        while n > 0 {
            let bytes = match self.input.fill_buf() {
                Ok([]) => return Err(BlockFailure::Truncated),
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(BlockFailure::Input(e)),
            };
            let taken = usize::try_from(n).unwrap_or(usize::MAX).min(bytes.len());
            each(&bytes[..taken]);
            self.input.consume(taken);
            self.used += taken as u64;
            n -= taken as u64;
        }
        Ok(())
    }
}
