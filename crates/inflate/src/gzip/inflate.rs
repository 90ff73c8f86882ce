//! DEFLATE (RFC 1951), resumable at any byte of input and output.

use super::Damage;
use super::HISTORY;
use super::fast;
use super::table;
use super::table::DISTANCE_BITS;
use super::table::DISTANCES;
use super::table::LITERAL_BITS;
use super::table::LITERALS;
use super::table::PRECODE_BITS;

/// The order of the code length codes in the input.
const PRECODE_ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Maximum numbers of literal/length codes and of distance codes that a block may describe.
const MAX_CODES: (usize, usize) = (286, 30);

/// The progress of [`Inflate::step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of input consumed.
    pub used: usize,
    /// Bytes of output written.
    pub written: usize,
    /// Why decompression stopped.
    pub stop: Stop,
}

/// Why [`Inflate::step`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All input is used up.
    Input,
    /// The output is full.
    Output,
    /// A block is next, where [`Inflate::stop_at_block`] requested to stop.
    Block,
    /// The last block has ended; the rest of the input is not part of the stream.
    End,
}

/// The item that is decoded next.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The three bits that begin a block.
    Block,
    /// The length of a stored block.
    StoredLength,
    /// This many bytes of a stored block.
    Stored(u32),
    /// The numbers of codes that a block describes.
    Counts,
    /// The lengths of the code length codes, this many of which are known.
    Precode(usize),
    /// The literal/length and distance code lengths, this many of which are known.
    Lengths(usize),
    Symbols,
    /// The distance of a match of this length.
    Distance(u32),
    /// A match that is being copied: remaining length, and distance.
    Match(u32, u32),
    End,
}

/// Decompresses one DEFLATE stream incrementally.
///
/// It keeps no copy of its output: the caller keeps the last [`HISTORY`] bytes before the write
/// position.
///
/// ```
/// use gannet_inflate::gzip::{Inflate, Stop};
///
/// // A block of fixed codes with "aaaaaaaaa": a literal, and a match of eight at distance one.
/// let packed = [0x4b, 0x84, 0x01, 0x00];
/// let mut text = [0; 16];
/// let step = Inflate::new().step(&packed, &mut text, 0)?;
/// assert_eq!((&text[..step.written], step.stop), (&b"aaaaaaaaa"[..], Stop::End));
/// # Ok::<(), gannet_inflate::gzip::Damage>(())
/// ```
#[derive(Debug)]
pub struct Inflate {
    /// Bit buffer: bits consumed from the input and not yet used, the next one lowest; zero above
    /// `count`.
    pub(super) bits: u64,
    pub(super) count: u32,
    state: State,
    /// Whether the block is the last one.
    last: bool,
    /// Number of output bytes that a match may refer to, at most [`HISTORY`].
    reach: usize,
    /// Output bytes left before decompression stops at a block, and the write position in the
    /// current step where that count reaches 0.
    until_block: usize,
    block_at: usize,
    /// Numbers of literal/length codes, distance codes and code length codes.
    described: (usize, usize, usize),
    /// Code lengths: first those of the code length codes, then those that they encode.
    lengths: [u8; 320],
    /// Whether the tables are those of fixed blocks.
    fixed: bool,
    pub(super) literals: [u32; LITERALS],
    pub(super) distances: [u32; DISTANCES],
}

impl Default for Inflate {
    fn default() -> Self {
        Self::new()
    }
}

impl Inflate {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self {
            bits: 0,
            count: 0,
            state: State::Block,
            last: false,
            reach: 0,
            until_block: usize::MAX,
            block_at: usize::MAX,
            described: (0, 0, 0),
            lengths: [0; 320],
            fixed: false,
            literals: [0; LITERALS],
            distances: [0; DISTANCES],
        }
    }

    /// Resets to the beginning, for another stream.
    pub fn reset(&mut self) {
        (self.bits, self.count, self.state, self.last, self.reach) = (0, 0, State::Block, false, 0);
    }

    /// Stops with [`Stop::Block`] at the first block that begins after this many further output
    /// bytes, and at no block after that.
    pub(crate) fn stop_at_block(&mut self, after: usize) {
        self.until_block = after;
    }

    /// Bytes before the write position that matches may refer to.
    pub(crate) fn reach(&self) -> usize {
        self.reach
    }

    /// Number of bits that were consumed from the input and not yet decoded.
    pub(crate) fn unused_bits(&self) -> u32 {
        self.count
    }

    /// Continues within a stream, at the beginning of a block. `byte` is the byte in which the
    /// block begins, of which `used_bits` bits are already used; `reach` bytes of history precede
    /// the write position.
    pub(crate) fn resume(&mut self, byte: u8, used_bits: u8, reach: usize) {
        self.reset();
        if (1..8).contains(&used_bits) {
            (self.bits, self.count) = (u64::from(byte >> used_bits), 8 - u32::from(used_bits));
        }
        self.reach = reach.min(HISTORY);
    }

    /// Decompresses `input` into `output[at..]` until one of them or the stream ends.
    ///
    /// The last [`HISTORY`] bytes written before, or all of them if fewer, must precede `at`. Bytes
    /// after the first [`Step::written`] may be overwritten with arbitrary data.
    ///
    /// # Errors
    /// The stream is invalid. Output of this step before the damage is lost; see
    /// [`Inflate::step_until`].
    pub fn step(&mut self, input: &[u8], output: &mut [u8], at: usize) -> Result<Step, Damage> {
        match self.step_until(input, output, at) {
            (_, Some(damage)) => Err(damage),
            (step, None) => Ok(step),
        }
    }

    /// Like [`Inflate::step`], but returns the progress before the damage along with it.
    pub fn step_until(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        at: usize,
    ) -> (Step, Option<Damage>) {
        let at = at.min(output.len());
        let mut run = Run { begin: at - self.reach.min(at), input, used: 0, output, at };
        self.block_at = at.saturating_add(self.until_block);
        let stopped = self.run(&mut run);
        let (mut used, written) = (run.used, run.at - at);
        self.until_block = match stopped {
            Ok(Stop::Block) => usize::MAX,
            _ if self.until_block == usize::MAX => usize::MAX,
            _ => self.until_block.saturating_sub(written),
        };
        self.reach = (self.reach + written).min(HISTORY);
        let stop = *stopped.as_ref().unwrap_or(&Stop::End);
        if stop != Stop::Input {
            // Whole bytes that were read ahead are returned; those of earlier steps belong to the
            // next item.
            let back = (self.count as usize / 8).min(used);
            used -= back;
            self.count -= 8 * back as u32;
            self.bits &= !(u64::MAX << self.count);
        }
        (Step { used, written, stop }, stopped.err())
    }

    fn run(&mut self, run: &mut Run<'_>) -> Result<Stop, Damage> {
        loop {
            self.refill(run);
            match self.state {
                State::Block => {
                    if run.at >= self.block_at {
                        return Ok(Stop::Block);
                    }
                    if self.count < 3 {
                        return Ok(Stop::Input);
                    }
                    let head = self.take(3);
                    self.last = head & 1 != 0;
                    self.state = match head >> 1 {
                        0 => {
                            self.take(self.count % 8);
                            State::StoredLength
                        }
                        1 => self.fix()?,
                        2 => State::Counts,
                        _ => return Err(Damage::Block),
                    };
                }
                State::StoredLength => {
                    if self.count < 32 {
                        return Ok(Stop::Input);
                    }
                    let (length, check) = (self.take(16), self.take(16));
                    if length != !check & 0xffff {
                        return Err(Damage::Stored);
                    }
                    self.state = State::Stored(length);
                }
                State::Stored(0) => self.state = self.next_block(),
                State::Stored(left) => {
                    let copied = self.stored(run, left as usize);
                    if copied == 0 {
                        let full = run.at == run.output.len();
                        return Ok(if full { Stop::Output } else { Stop::Input });
                    }
                    self.state = State::Stored(left - copied as u32);
                }
                State::Counts => {
                    if self.count < 14 {
                        return Ok(Stop::Input);
                    }
                    let literals = self.take(5) as usize + 257;
                    let distances = self.take(5) as usize + 1;
                    let precodes = self.take(4) as usize + 4;
                    if literals > MAX_CODES.0 || distances > MAX_CODES.1 {
                        return Err(Damage::Codes);
                    }
                    self.described = (literals, distances, precodes);
                    self.lengths.fill(0);
                    self.state = State::Precode(0);
                }
                State::Precode(known) if known == self.described.2 => {
                    let lengths = &self.lengths[..19];
                    // The tables of code lengths are no longer needed when those of literals are
                    // filled.
                    table::build(
                        &mut self.literals,
                        PRECODE_BITS,
                        lengths,
                        &table::PRECODE_MEANINGS,
                        false,
                    )?;
                    self.fixed = false;
                    self.state = State::Lengths(0);
                }
                State::Precode(known) => {
                    if self.count < 3 {
                        return Ok(Stop::Input);
                    }
                    self.lengths[usize::from(PRECODE_ORDER[known])] = self.take(3) as u8;
                    self.state = State::Precode(known + 1);
                }
                State::Lengths(known) if known == self.described.0 + self.described.1 => {
                    self.state = self.describe()?;
                }
                State::Lengths(known) => {
                    let more = self.code_lengths(known)?;
                    if more == known {
                        return Ok(Stop::Input);
                    }
                    self.state = State::Lengths(more);
                }
                State::Symbols => {
                    if let Some(ended) = fast::symbols(self, run)? {
                        if ended {
                            self.state = self.next_block();
                        }
                        continue;
                    }
                    if let Some(stop) = self.symbol(run)? {
                        return Ok(stop);
                    }
                }
                State::Distance(length) => {
                    let entry = self.lookup_distance();
                    let bits = table::consumed_bits(entry);
                    if bits > self.count {
                        return Ok(Stop::Input);
                    }
                    if entry & table::SPECIAL != 0 {
                        return Err(Damage::Code);
                    }
                    let distance = table::number(entry, self.bits);
                    self.take(bits);
                    if distance as usize > run.at - run.begin {
                        return Err(Damage::Distance);
                    }
                    self.state = State::Match(length, distance);
                }
                State::Match(0, _) => self.state = State::Symbols,
                State::Match(left, distance) => {
                    let n = run.copy(left as usize, distance as usize);
                    if n == 0 {
                        return Ok(Stop::Output);
                    }
                    self.state = State::Match(left - n as u32, distance);
                }
                State::End => return Ok(Stop::End),
            }
        }
    }

    /// Fills the bit buffer with as many whole bytes as fit.
    fn refill(&mut self, run: &mut Run<'_>) {
        if let Some(next) = run.input.get(run.used..).and_then(|rest| rest.first_chunk()) {
            self.bits |= u64::from_le_bytes(*next) << self.count;
            run.used += (63 - self.count as usize) / 8;
            self.count |= 56;
            self.bits &= !(u64::MAX << self.count);
            return;
        }
        while self.count < 56 {
            let Some(&byte) = run.input.get(run.used) else { break };
            self.bits |= u64::from(byte) << self.count;
            self.count += 8;
            run.used += 1;
        }
    }

    /// The next `n` bits, up to 31, which must be in the buffer.
    fn take(&mut self, n: u32) -> u32 {
        let taken = self.bits & !(u64::MAX << n);
        self.bits >>= n;
        self.count -= n;
        taken as u32
    }

    fn next_block(&self) -> State {
        if self.last { State::End } else { State::Block }
    }

    /// Copies up to `left` bytes of a stored block.
    fn stored(&mut self, run: &mut Run<'_>, left: usize) -> usize {
        let room = &mut run.output[run.at..];
        let room = room.len().min(left);
        let mut copied = 0;
        while self.count > 0 && copied < room {
            run.output[run.at + copied] = self.take(8) as u8;
            copied += 1;
        }
        if self.count == 0 {
            let n = (room - copied).min(run.input.len() - run.used);
            let to = run.at + copied;
            run.output[to..to + n].copy_from_slice(&run.input[run.used..run.used + n]);
            run.used += n;
            copied += n;
        }
        run.at += copied;
        copied
    }

    /// Fills the tables of blocks of fixed codes (RFC 1951 section 3.2.6).
    fn fix(&mut self) -> Result<State, Damage> {
        if !self.fixed {
            self.lengths[..144].fill(8);
            self.lengths[144..256].fill(9);
            self.lengths[256..280].fill(7);
            self.lengths[280..288].fill(8);
            self.lengths[288..].fill(5);
            let (literals, distances) = self.lengths.split_at(288);
            build_literals(&mut self.literals, literals, true)?;
            build_distances(&mut self.distances, distances)?;
            self.fixed = true;
        }
        Ok(State::Symbols)
    }

    /// Decodes as many code lengths as the buffered bits allow; returns the number known.
    fn code_lengths(&mut self, mut known: usize) -> Result<usize, Damage> {
        let all = self.described.0 + self.described.1;
        while known < all {
            let entry = self.literals[(self.bits & ((1 << PRECODE_BITS) - 1)) as usize];
            let code = table::consumed_bits(entry);
            let symbol = table::value(entry);
            if symbol < 16 {
                if code > self.count {
                    break;
                }
                self.take(code);
                self.lengths[known] = symbol as u8;
                known += 1;
                continue;
            }
            let (extra, least) = match symbol {
                16 => (2, 3),
                17 => (3, 3),
                _ => (7, 11),
            };
            if code + extra > self.count {
                break;
            }
            self.take(code);
            let until = known + least + self.take(extra) as usize;
            let length = match symbol {
                16 if known == 0 => return Err(Damage::Codes),
                16 => self.lengths[known - 1],
                _ => 0,
            };
            if until > all {
                return Err(Damage::Codes);
            }
            self.lengths[known..until].fill(length);
            known = until;
        }
        Ok(known)
    }

    /// Fills the tables of a block that describes its codes.
    fn describe(&mut self) -> Result<State, Damage> {
        let (literals, distances, _) = self.described;
        let (literals, rest) = self.lengths.split_at(literals);
        if literals[256] == 0 {
            return Err(Damage::Codes);
        }
        build_literals(&mut self.literals, literals, true)?;
        build_distances(&mut self.distances, &rest[..distances])?;
        Ok(State::Symbols)
    }

    /// The table entry of the next distance.
    fn lookup_distance(&self) -> u32 {
        let entry = self.distances[(self.bits & ((1 << DISTANCE_BITS) - 1)) as usize];
        if entry & table::SPECIAL != 0 && entry & table::SECOND != 0 {
            return self.distances[table::second(entry, self.bits, DISTANCE_BITS) % DISTANCES];
        }
        entry
    }

    /// One literal, one length or the end of the block, near the end of input or output.
    fn symbol(&mut self, run: &mut Run<'_>) -> Result<Option<Stop>, Damage> {
        let mut entry = self.literals[(self.bits & ((1 << LITERAL_BITS) - 1)) as usize];
        if entry & table::SPECIAL != 0 && entry & table::SECOND != 0 {
            entry = self.literals[table::second(entry, self.bits, LITERAL_BITS) % LITERALS];
        }
        let bits = table::consumed_bits(entry);
        if bits > self.count {
            return Ok(Some(Stop::Input));
        }
        if entry & table::LITERAL != 0 {
            let Some(place) = run.output.get_mut(run.at) else { return Ok(Some(Stop::Output)) };
            *place = table::value(entry) as u8;
            run.at += 1;
        } else if entry & table::SPECIAL == 0 {
            self.state = State::Distance(table::number(entry, self.bits));
        } else if entry & table::END != 0 {
            self.state = self.next_block();
        } else {
            return Err(Damage::Code);
        }
        self.take(bits);
        Ok(None)
    }
}

fn build_literals(table: &mut [u32], lengths: &[u8], lone: bool) -> Result<(), Damage> {
    table::build(table, LITERAL_BITS, lengths, &table::LITERAL_MEANINGS, lone)
}

fn build_distances(table: &mut [u32], lengths: &[u8]) -> Result<(), Damage> {
    table::build(table, DISTANCE_BITS, lengths, &table::DISTANCE_MEANINGS, true)
}

/// Input and output of one step.
pub(super) struct Run<'a> {
    pub(super) input: &'a [u8],
    /// Bytes consumed.
    pub(super) used: usize,
    pub(super) output: &'a mut [u8],
    /// Write position.
    pub(super) at: usize,
    /// Offset of the first byte of the stream, or of the oldest byte of the history.
    pub(super) begin: usize,
}

impl Run<'_> {
    /// Copies up to `length` bytes from `distance` before, which exist; returns the number copied.
    fn copy(&mut self, length: usize, distance: usize) -> usize {
        let n = length.min(self.output.len() - self.at);
        for to in self.at..self.at + n {
            self.output[to] = self.output[to - distance];
        }
        self.at += n;
        n
    }
}
