//! Literals: one stream of codes, or four that are decoded in parallel.
#![allow(unsafe_code)]

use std::ops::Range;

use super::Damage;
use super::bits::below_mark;
use super::huffman;
use super::huffman::ENTRIES;
use super::huffman::LOG;
use super::huffman::Table;
use super::job::DecodedEntropy;
use super::job::FRONT;
use super::job::Literals;
use super::job::Packed;

/// Number of bytes after the literals of a block that copies may read and this module may write.
pub(super) const SLACK: usize = 64;

/// The table of literals, and its id.
#[derive(Debug)]
pub(super) struct Codes {
    id: u64,
    table: Box<Table>,
}

impl Default for Codes {
    fn default() -> Self {
        Self { id: 0, table: Box::new([0; ENTRIES]) }
    }
}

impl Codes {
    /// Decodes the literals of a block, whose content in `input` begins after [`FRONT`] bytes.
    pub(super) fn unpack(
        &mut self,
        packed: &Packed,
        input: &[u8],
        decoded: &mut DecodedEntropy,
    ) -> Result<(), Damage> {
        let count = packed.literal_count;
        decoded.literal_count = count;
        if decoded.literals.len() < count + SLACK {
            decoded.literals.resize(count + SLACK, 0);
        }
        match &packed.literals {
            Literals::Raw(range) => {
                let from = input.get(range.clone()).ok_or(Damage::Truncated)?;
                decoded.literals[..count].copy_from_slice(from);
                return Ok(());
            }
            Literals::Repeated(byte) => {
                decoded.literals[..count].fill(*byte);
                return Ok(());
            }
            Literals::One(_) | Literals::Four(_) => {}
        }
        if self.id != packed.codes.id {
            self.id = 0;
            let description = packed.codes.bytes.get(..packed.codes.length);
            huffman::build(&mut self.table, description.ok_or(Damage::Codes)?)?;
            self.id = packed.codes.id;
        }
        match &packed.literals {
            Literals::One(range) => {
                let mut stream = Stream::new(input, range)?;
                stream.rest(&self.table, &mut decoded.literals[..count])?;
                stream.end()
            }
            Literals::Four(ranges) => self.four(input, ranges, &mut decoded.literals[..count]),
            _ => Ok(()),
        }
    }

    fn four(
        &self,
        input: &[u8],
        ranges: &[Range<usize>; 4],
        output: &mut [u8],
    ) -> Result<(), Damage> {
        let each = output.len().div_ceil(4);
        let [mut a, mut b, mut c, mut d] = [
            Stream::new(input, &ranges[0])?,
            Stream::new(input, &ranges[1])?,
            Stream::new(input, &ranges[2])?,
            Stream::new(input, &ranges[3])?,
        ];
        let mut streams = [a, b, c, d];
        let done = fast(&self.table, &mut streams, output, each);
        [a, b, c, d] = streams;
        let (one, rest) = output.split_at_mut(each);
        let (two, rest) = rest.split_at_mut(each);
        let (three, four) = rest.split_at_mut(each);
        for (stream, output) in [(&mut a, one), (&mut b, two), (&mut c, three), (&mut d, four)] {
            stream.rest(&self.table, output.get_mut(done..).unwrap_or_default())?;
            stream.end()?;
        }
        Ok(())
    }
}

/// A stream of codes, read from its end.
#[derive(Clone, Copy, Debug)]
struct Stream<'a> {
    input: &'a [u8],
    /// Offset of the first byte, at least [`FRONT`].
    start: usize,
    /// Remaining bits; negative once more were consumed than available.
    left: i64,
}

impl<'a> Stream<'a> {
    fn new(input: &'a [u8], range: &Range<usize>) -> Result<Self, Damage> {
        let bytes = input.get(range.clone()).ok_or(Damage::Truncated)?;
        if range.start < FRONT {
            return Err(Damage::Truncated);
        }
        Ok(Self { input, start: range.start, left: below_mark(bytes)? })
    }

    /// Fills `output`, literal by literal.
    fn rest(&mut self, table: &Table, output: &mut [u8]) -> Result<(), Damage> {
        for literals in output.chunks_mut(5) {
            // At least 56 bits, the next one highest: enough for five codes. Beyond the beginning
            // are other bytes; a stream that reads them is invalid.
            if self.left < 0 {
                return Err(Damage::Truncated);
            }
            let last = self.start + (self.left >> 3) as usize;
            let word = self.input.get(last - 7..).and_then(|bytes| bytes.first_chunk());
            let mut bits = u64::from_le_bytes(*word.ok_or(Damage::Truncated)?);
            bits <<= 8 - (self.left & 7);
            for literal in literals {
                let entry = table[(bits >> (64 - LOG)) as usize];
                *literal = (entry >> 8) as u8;
                bits <<= entry & 15;
                self.left -= i64::from(entry & 0xff);
            }
        }
        Ok(())
    }

    /// All bits must be consumed at the end.
    fn end(&self) -> Result<(), Damage> {
        if self.left == 0 { Ok(()) } else { Err(Damage::Bits) }
    }
}

/// Codes decoded of each stream between two refills: at most 55 bits.
const ROUND: usize = 5;

/// Decodes the first literals of four streams. Each stream decodes to `each` literals, except the
/// last, which fills the rest of `output`. Returns the number decoded of each.
fn fast(table: &Table, streams: &mut [Stream<'_>; 4], output: &mut [u8], each: usize) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { modern(table, streams, output, each) };
    }
    rounds(table, streams, output, each)
}

/// [`rounds`] compiled for processors with BMI2 shifts.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2")]
fn modern(table: &Table, streams: &mut [Stream<'_>; 4], output: &mut [u8], each: usize) -> usize {
    rounds(table, streams, output, each)
}

#[inline(always)]
fn rounds(table: &Table, streams: &mut [Stream<'_>; 4], output: &mut [u8], each: usize) -> usize {
    let all = output.len();
    // The last stream has the fewest literals.
    let Some(few) = each.checked_mul(3).and_then(|three| all.checked_sub(three)) else { return 0 };
    let most = few.min(each);
    // The next bits of each stream are in a word, the next one highest, with a one below the last:
    // its position gives the number of bits consumed. The lowest bit of the loaded word is lost,
    // but at most 63 bits are ever consumed: 8 initially, and 55 in a round.
    let mut from = [std::ptr::null::<u8>(); 4];
    let mut bits = [0_u64; 4];
    let mut starts = [0_usize; 4];
    for s in 0..4 {
        let stream = &streams[s];
        // Less than a word: the fast loop would not be faster.
        if stream.left < 64 {
            return 0;
        }
        // The word whose last byte has the next bit; it is within the stream, which has at least 64
        // bits.
        let first = stream.start + (stream.left >> 3) as usize - 7;
        let Some(word) = stream.input.get(first..).and_then(|b| b.first_chunk::<8>()) else {
            return 0;
        };
        bits[s] = (u64::from_le_bytes(*word) | 1) << (8 - (stream.left & 7));
        from[s] = stream.input.as_ptr().wrapping_add(first);
        starts[s] = stream.input.as_ptr() as usize + stream.start;
    }
    let to = output.as_mut_ptr();
    let mut done = 0;
    loop {
        // Rounds for which every stream has input, 7 bytes each, and output space.
        let mut rounds = (most - done) / ROUND;
        for s in 0..4 {
            rounds = rounds.min((from[s] as usize).saturating_sub(starts[s]) / 7);
        }
        if rounds == 0 {
            break;
        }
        for _ in 0..rounds {
            macro_rules! literal {
                ($s:expr, $n:expr) => {
                    let entry = table[(bits[$s] >> (64 - LOG)) as usize];
                    bits[$s] <<= entry & 63;
                    // SAFETY: `done + ROUND` is at most `few` and `each`, so every stream's
                    // position is within the output, whose length is three times `each` plus `few`.
                    unsafe { to.add($s * each + done + $n).write((entry >> 8) as u8) };
                };
            }
            macro_rules! round {
                ($($n:expr),*) => {
                    $( literal!(0, $n); literal!(1, $n); literal!(2, $n); literal!(3, $n); )*
                };
            }
            round!(0, 1, 2, 3, 4);
            macro_rules! reload {
                ($s:expr) => {
                    let taken = bits[$s].trailing_zeros();
                    // SAFETY: the pointer moves back by up to 7 bytes per round, and the number of
                    // rounds ensures 7 bytes before it in the stream, so the word begins within it;
                    // the bytes after it were read before.
                    unsafe {
                        from[$s] = from[$s].sub((taken >> 3) as usize);
                        bits[$s] = u64::from_le_bytes(from[$s].cast::<[u8; 8]>().read()) | 1;
                    }
                    bits[$s] <<= taken & 7;
                };
            }
            reload!(0);
            reload!(1);
            reload!(2);
            reload!(3);
            done += ROUND;
        }
    }
    for s in 0..4 {
        let begins = from[s] as usize - starts[s];
        streams[s].left = begins as i64 * 8 + 64 - i64::from(bits[s].trailing_zeros());
    }
    done
}
