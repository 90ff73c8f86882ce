//! Headers within a compressed block (RFC 8878 section 3.1.1.3), and the tables that later blocks
//! inherit.

use std::ops::Range;

use super::BLOCK;
use super::Damage;
use super::fse::Counts;
use super::huffman;
use super::job::Codes;
use super::job::FRONT;
use super::job::Kind;
use super::job::Literals;
use super::job::Packed;
use super::job::TableDescription;
use super::tables;

/// Length of the shortest match.
const MIN_MATCH: usize = 3;

/// The tables of earlier blocks, which later ones may repeat.
#[derive(Debug)]
pub(super) struct Last {
    codes: Option<Codes>,
    tables: [Option<TableDescription>; 3],
    /// The last id given to a description.
    id: u64,
}

/// The predefined descriptions have these ids.
const PREDEFINED: u64 = 1;

impl Default for Last {
    fn default() -> Self {
        Self { codes: None, tables: [const { None }; 3], id: PREDEFINED }
    }
}

impl Last {
    /// Drops the tables, at the start of a frame.
    pub(super) fn reset(&mut self) {
        self.codes = None;
        self.tables = [const { None }; 3];
    }

    /// Reads the headers of the block in `input`, which begins after [`FRONT`] bytes and may
    /// decompress to at most `max_size` bytes.
    pub(super) fn headers(&mut self, input: &[u8], max_size: usize) -> Result<Packed, Damage> {
        let mut rest = RemainingInput { input, range: FRONT..input.len() };
        let (literals, literal_count, codes) = self.literals(&mut rest, max_size)?;
        let first = usize::from(rest.byte()?);
        let sequences = match first {
            ..128 => first,
            128..255 => ((first - 128) << 8) + usize::from(rest.byte()?),
            _ => usize::from(rest.byte()?) + (usize::from(rest.byte()?) << 8) + 0x7f00,
        };
        if sequences * MIN_MATCH + literal_count > max_size {
            return Err(Damage::Long);
        }
        if sequences == 0 {
            if !rest.range.is_empty() {
                return Err(Damage::TrailingBytes);
            }
            let tables = [const { TableDescription { id: 0, kind: Kind::Symbol(0) } }; 3];
            let stream = rest.range;
            return Ok(Packed { literals, literal_count, codes, tables, sequences, stream });
        }
        let modes = rest.byte()?;
        if modes & 3 != 0 {
            return Err(Damage::Modes);
        }
        let mut described = |kind: usize| self.table(&mut rest, kind, modes >> (6 - 2 * kind) & 3);
        let tables = [described(0)?, described(1)?, described(2)?];
        Ok(Packed { literals, literal_count, codes, tables, sequences, stream: rest.range })
    }

    /// Reads the header of the literals section (section 3.1.1.3.1).
    fn literals(
        &mut self,
        rest: &mut RemainingInput<'_>,
        max_size: usize,
    ) -> Result<(Literals, usize, Codes), Damage> {
        const NONE: Codes = Codes { id: 0, bytes: [0; 1 + huffman::MAX_BYTES], length: 0 };
        let head = *rest.bytes().first().ok_or(Damage::Truncated)?;
        let (kind, format) = (head & 3, head >> 2 & 3);
        if kind < 2 {
            let (bytes, shift) = match format {
                0 | 2 => (1, 3),
                1 => (2, 4),
                _ => (3, 4),
            };
            let count = (rest.number(bytes)? >> shift) as usize;
            if count > max_size {
                return Err(Damage::Long);
            }
            let literals = match kind {
                0 => Literals::Raw(rest.take(count)?),
                _ => Literals::Repeated(rest.byte()?),
            };
            return Ok((literals, count, NONE));
        }
        let (bytes, wide) = match format {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        let head = rest.number(bytes)? >> 4;
        let count = (head & ((1 << wide) - 1)) as usize;
        let packed = (head >> wide) as usize;
        if count > max_size {
            return Err(Damage::Long);
        }
        let mut inner = RemainingInput { input: rest.input, range: rest.take(packed)? };
        if kind == 2 {
            let length = huffman::described(inner.bytes())?;
            self.id += 1;
            let mut codes = Codes { id: self.id, length, ..NONE };
            let description = inner.take(length)?;
            codes
                .bytes
                .get_mut(..length)
                .ok_or(Damage::Codes)?
                .copy_from_slice(&rest.input[description]);
            self.codes = Some(codes);
        }
        let codes = self.codes.clone().ok_or(Damage::NoTable)?;
        if format == 0 {
            if inner.range.is_empty() {
                return Err(Damage::Truncated);
            }
            return Ok((Literals::One(inner.range), count, codes));
        }
        // Three lengths, and four streams of at least a byte; all but the last decode to the same
        // number of literals.
        let lengths = [inner.number(2)?, inner.number(2)?, inner.number(2)?];
        let [first, second, third] = lengths.map(|length| inner.take(length as usize));
        let streams = [first?, second?, third?, inner.range];
        if streams.iter().any(Range::is_empty) {
            return Err(Damage::Truncated);
        }
        if count < 6 || count.div_ceil(4) * 3 > count {
            return Err(Damage::Streams);
        }
        Ok((Literals::Four(streams), count, codes))
    }

    /// Reads the description of a table: of literal lengths, offsets or match lengths.
    fn table(
        &mut self,
        rest: &mut RemainingInput<'_>,
        table_index: usize,
        mode: u8,
    ) -> Result<TableDescription, Damage> {
        let kind = match mode {
            0 => {
                let counts = tables::PREDEFINED[table_index];
                TableDescription { id: PREDEFINED, kind: Kind::Counts(counts) }
            }
            1 => {
                let symbol = rest.byte()?;
                if usize::from(symbol) >= tables::SYMBOLS[table_index] {
                    return Err(Damage::Counts);
                }
                self.id += 1;
                TableDescription { id: self.id, kind: Kind::Symbol(symbol) }
            }
            2 => {
                let (log, symbols) = (tables::LOGS[table_index], tables::SYMBOLS[table_index]);
                let (counts, used) = Counts::read(rest.bytes(), log, symbols)?;
                rest.take(used)?;
                self.id += 1;
                TableDescription { id: self.id, kind: Kind::Counts(counts) }
            }
            _ => return self.tables[table_index].clone().ok_or(Damage::NoTable),
        };
        self.tables[table_index] = Some(kind.clone());
        Ok(kind)
    }
}

/// The unread part of a block.
#[derive(Debug)]
struct RemainingInput<'a> {
    input: &'a [u8],
    range: Range<usize>,
}

impl RemainingInput<'_> {
    fn bytes(&self) -> &[u8] {
        self.input.get(self.range.clone()).unwrap_or_default()
    }

    /// The range of the next `n` bytes.
    fn take(&mut self, n: usize) -> Result<Range<usize>, Damage> {
        if n > self.range.len() {
            return Err(Damage::Truncated);
        }
        let from = self.range.start;
        self.range.start += n;
        Ok(from..from + n)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        self.number(1).map(|byte| byte as u8)
    }

    /// A number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, Damage> {
        let range = self.take(bytes)?;
        Ok(self.input[range].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

const _: () = assert!(BLOCK < 1 << 18, "lengths of literals take at most 18 bits");
