//! Members of a gzip file: header, stream, checksum and length.

use std::fmt;
use std::io;
use std::io::BufRead;

use flate2::Crc;

use super::Inflate;
use super::Stop;
use super::checks;
use super::checks::Checker;
use super::checks::Trailer;
use crate::restart::RestartPoint;
use crate::restart::RestartPoints;
use crate::restart::invalid;

/// Flag bits of a member's header; higher bits are reserved and must not be set.
const HEADER_CRC: u8 = 1 << 1;
const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0xe0;

/// Bytes of the fixed header.
const HEADER: u8 = 10;

/// The part of a member that is read next; the numbers count bytes read or, for `Extra`, bytes
/// remaining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header(u8),
    ExtraLength(u8),
    Extra(u16),
    Name,
    Comment,
    HeaderCrc(u8),
    Stream,
    Trailer(u8),
}

/// Decompresses gzip data of one or several members into a buffer of the caller.
///
/// ```
/// use gannet_inflate::gzip::Gunzip;
///
/// let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x04\0\x43\xbe\xb7\xe8\x01\0\0\0";
/// let mut text = [0; 16];
/// let mut gunzip = Gunzip::new(&packed[..]);
/// assert_eq!(gunzip.read_at(&mut text, 0)?, 1);
/// assert_eq!(text[0], b'a');
/// assert_eq!(gunzip.read_at(&mut text, 1)?, 0, "and its checksum was right");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Gunzip<R> {
    input: R,
    inflate: Box<Inflate>,
    part: Part,
    /// Whether the input is within a member.
    member_begun: bool,
    flags: u8,
    /// Bytes read so far of a multi-byte number.
    number: [u8; 8],
    /// The checksum of the header while that is read, then of the decompressed data.
    crc: Crc,
    /// Bytes of input consumed.
    used: u64,
    /// Bytes decompressed, of all members.
    total_out: u64,
    /// Collects restart points, if requested.
    restarts: Option<RestartPoints>,
    /// Whether decompression began within the member, so that its checksum cannot be verified.
    is_partial: bool,
    /// Error to return after the data decompressed before it.
    failed: Option<io::Error>,
    /// Trailers for the receiver of the data, if the receiver verifies checksums.
    left: Option<Left>,
}

#[derive(Debug, Default)]
struct Left {
    /// Bytes decompressed.
    total_out: u64,
    /// The value of `total_out` at the start of the member, if it started since the last call.
    member_begun: Option<u64>,
    trailers: Vec<Trailer>,
}

impl<R> fmt::Debug for Gunzip<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gunzip").field("part", &self.part).field("used", &self.used).finish()
    }
}

impl<R: BufRead> Gunzip<R> {
    /// For input that begins with a member.
    pub fn new(input: R) -> Self {
        Self {
            input,
            inflate: Box::default(),
            part: Part::Header(0),
            member_begun: false,
            flags: 0,
            number: [0; 8],
            crc: Crc::new(),
            used: 0,
            total_out: 0,
            restarts: None,
            is_partial: false,
            failed: None,
            left: None,
        }
    }

    /// For input that begins at a restart point; `reach` bytes of the point's window precede the
    /// write position.
    ///
    /// # Errors
    /// The input's own errors, and an error if the point is not valid.
    pub fn resume(input: R, point: &RestartPoint, reach: usize) -> io::Result<Self> {
        if point.skip > 7 {
            return Err(invalid("a restart point with more bits than a byte has"));
        }
        let mut gunzip = Self::new(input);
        let mut byte = 0;
        if point.skip > 0 {
            let Some(first) = gunzip.input.fill_buf()?.first().copied() else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            byte = first;
            gunzip.input.consume(1);
        }
        gunzip.inflate.resume(byte, point.skip, reach);
        (gunzip.member_begun, gunzip.part, gunzip.is_partial) = (true, Part::Stream, reach > 0);
        gunzip.used = point.at + u64::from(point.skip > 0);
        gunzip.total_out = point.offset;
        Ok(gunzip)
    }

    /// Collects restart points from now on.
    pub fn keep_restarts(&mut self, points: &RestartPoints) {
        self.inflate.stop_at_block(distance(points.next(), self.total_out));
        self.restarts = Some(points.clone());
    }

    /// Adds a restart point at the next block; `before` is the output that precedes it.
    fn add_restart(&mut self, before: &[u8]) {
        let Some(points) = &self.restarts else { return };
        let window = before.get(before.len().saturating_sub(self.inflate.reach())..);
        let bits = self.used * 8 - u64::from(self.inflate.unused_bits());
        let next =
            points.add(self.total_out, bits / 8, (bits % 8) as u8, window.unwrap_or_default());
        self.inflate.stop_at_block(distance(next, self.total_out));
    }

    /// Decompresses into `buffer[at..]`; returns the number of bytes, 0 at the end of the input or
    /// of the buffer.
    ///
    /// The last [`HISTORY`](super::HISTORY) decompressed bytes, or all of them, must precede `at`.
    /// The buffer after the returned bytes may be overwritten with arbitrary data.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] where the input ends within a member,
    /// [`io::ErrorKind::InvalidData`] where it is damaged or does not match its checksum or length,
    /// and the input's own errors. Data before the error is returned first.
    pub fn read_at(&mut self, buffer: &mut [u8], at: usize) -> io::Result<usize> {
        if at >= buffer.len() {
            return Ok(0);
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let input = self.input.fill_buf()?;
            if input.is_empty() {
                return match self.part {
                    Part::Header(0) if self.member_begun => Ok(0),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
            if self.part != Part::Stream {
                let byte = input[0];
                self.input.consume(1);
                self.used += 1;
                self.header_or_trailer_byte(byte)?;
                continue;
            }
            let (step, damage) = self.inflate.step_until(input, buffer, at);
            self.input.consume(step.used);
            self.used += step.used as u64;
            self.total_out += step.written as u64;
            if step.stop == Stop::Block && damage.is_none() {
                self.add_restart(buffer.get(..at + step.written).unwrap_or_default());
            }
            let written = buffer.get(at..at + step.written).unwrap_or_default();
            match &mut self.left {
                Some(left) => left.total_out += written.len() as u64,
                None => self.crc.update(written),
            }
            if let Some(damage) = damage {
                let error = self.damaged_error(&damage);
                if written.is_empty() {
                    return Err(error);
                }
                self.failed = Some(error);
            } else if step.stop == Stop::End {
                self.part = Part::Trailer(0);
            }
            if !written.is_empty() {
                return Ok(written.len());
            }
        }
    }

    /// Consumes a byte of a member's header or trailer.
    fn header_or_trailer_byte(&mut self, byte: u8) -> io::Result<()> {
        match self.part {
            Part::Trailer(_) | Part::Stream | Part::HeaderCrc(_) => {}
            _ => self.crc.update(&[byte]),
        }
        self.part = match self.part {
            Part::Header(known) => {
                self.member_begun = true;
                match (known, byte) {
                    (0, 0x1f) | (1, 0x8b) | (2, 8) | (4.., _) => {}
                    (3, flags) if flags & RESERVED == 0 => self.flags = flags,
                    (0 | 1, _) => {
                        return Err(
                            self.damaged_error(&"no gzip magic number at the start of a member")
                        );
                    }
                    (2, _) => {
                        return Err(self.damaged_error(&"a compression method other than deflate"));
                    }
                    _ => return Err(self.damaged_error(&"reserved flags are set in a gzip header")),
                }
                if known + 1 < HEADER {
                    Part::Header(known + 1)
                } else {
                    self.next_header_part(EXTRA)
                }
            }
            Part::ExtraLength(known) => match self.number::<2>(known, byte) {
                None => Part::ExtraLength(known + 1),
                Some(length) => match u16::from_le_bytes(length) {
                    0 => self.next_header_part(NAME),
                    length => Part::Extra(length),
                },
            },
            Part::Extra(1) => self.next_header_part(NAME),
            Part::Extra(left) => Part::Extra(left - 1),
            Part::Name if byte == 0 => self.next_header_part(COMMENT),
            Part::Comment if byte == 0 => self.next_header_part(HEADER_CRC),
            Part::Name | Part::Comment => self.part,
            Part::HeaderCrc(known) => match self.number::<2>(known, byte) {
                None => Part::HeaderCrc(known + 1),
                Some(stored)
                    if u32::from(u16::from_le_bytes(stored)) == self.crc.sum() & 0xffff =>
                {
                    self.begin()
                }
                Some(_) => {
                    return Err(self.damaged_error(&"wrong checksum of a gzip header"));
                }
            },
            Part::Stream => Part::Stream,
            Part::Trailer(known) => match self.number::<8>(known, byte) {
                None => Part::Trailer(known + 1),
                Some(stored) => {
                    let (stored, used) = (u64::from_le_bytes(stored), self.used);
                    match &mut self.left {
                        // The trailer of an empty member is verified here. So there are never more
                        // pending trailers than bytes.
                        Some(left) if left.member_begun != Some(left.total_out) => {
                            left.trailers.push(Trailer { at: left.total_out, stored, used });
                            left.member_begun = Some(left.total_out);
                        }
                        _ if self.is_partial => {}
                        _ => checks::check(&self.crc, stored, used)?,
                    }
                    self.is_partial = false;
                    self.crc.reset();
                    Part::Header(0)
                }
            },
        };
        Ok(())
    }

    /// The first part of the header that is present, from that of `flag` on, or the stream.
    fn next_header_part(&mut self, flag: u8) -> Part {
        let there = self.flags & (EXTRA | NAME | COMMENT | HEADER_CRC);
        // The checksum is the last field although its bit is the lowest.
        match flag {
            EXTRA if there & EXTRA != 0 => Part::ExtraLength(0),
            EXTRA | NAME if there & NAME != 0 => Part::Name,
            EXTRA | NAME | COMMENT if there & COMMENT != 0 => Part::Comment,
            _ if there & HEADER_CRC != 0 => Part::HeaderCrc(0),
            _ => self.begin(),
        }
    }

    fn begin(&mut self) -> Part {
        self.crc.reset();
        self.inflate.reset();
        Part::Stream
    }

    /// Stores byte `known` of an `N`-byte number; returns the number once complete.
    fn number<const N: usize>(&mut self, known: u8, byte: u8) -> Option<[u8; N]> {
        let known = usize::from(known);
        *self.number.get_mut(known)? = byte;
        if known + 1 == N { self.number.first_chunk().copied() } else { None }
    }

    fn damaged_error(&self, what: &dyn fmt::Display) -> io::Error {
        checks::damaged_error(what, self.used)
    }

    /// Leaves the verification of checksums to the caller from now on, with the returned checker.
    pub fn defer_checks(&mut self) -> Checker {
        self.left = Some(Left::default());
        Checker::new(std::mem::take(&mut self.crc))
    }

    /// Removes and returns the trailers since the last call.
    pub fn take_trailers(&mut self) -> Vec<Trailer> {
        self.left.as_mut().map(|left| std::mem::take(&mut left.trailers)).unwrap_or_default()
    }
}

/// Bytes from `total_out` to `next`; never 0, so that each step makes progress.
fn distance(next: u64, total_out: u64) -> usize {
    usize::try_from(next.saturating_sub(total_out)).unwrap_or(usize::MAX - 1).max(1)
}
