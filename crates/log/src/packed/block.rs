//! A reader of the columns of many rows.

use std::hint::black_box;

use super::Cell;
use super::Kind;
use super::List;
use super::OTHER;
use super::SECONDS;
use super::UNSET;
use super::reader::cell;
use super::reader::list;
use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;

/// Bytes of a line of a cache, and those of a near cache that rows may fill.
const LINE: usize = 64;
const NEAR: usize = 256 << 10;

/// Rows that are read a column at a time: the first values of all of them, then the second ones.
///
/// The rows must be whole: of one that lacks columns, those are read from what is behind it.
#[derive(Clone, Debug)]
pub struct RowBlock<'a> {
    bytes: &'a [u8],
    /// Where the next value of each row is.
    places: Vec<u32>,
}

impl<'a> RowBlock<'a> {
    /// No rows yet, of a buffer.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, places: Vec::new() }
    }

    /// Begins with the rows that begin at these places, each behind its length.
    pub fn begin(&mut self, places: impl Iterator<Item = u32>) {
        self.places.clear();
        self.places.extend(places);
        let (Some(first), Some(last)) = (self.places.first(), self.places.last()) else { return };
        // Rows that lie one after another come into a near cache at once, as a stream.
        let stream = self.bytes.get(*first as usize..*last as usize).unwrap_or_default();
        if stream.len() < NEAR {
            black_box(stream.iter().step_by(LINE).fold(0, |all, byte| all ^ byte));
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The next value of each row, a single one.
    #[inline(always)]
    pub fn scalars(&mut self, kind: Kind, mut each: impl FnMut(Cell<'a>)) {
        for place in &mut self.places {
            each(scalar(self.bytes, place, kind));
        }
    }

    /// The next value of each row, a list.
    #[inline]
    pub fn lists(&mut self, kind: Kind, mut each: impl FnMut(Option<List<'a>>)) {
        for place in &mut self.places {
            each(read(self.bytes, place, |rest| list(rest, kind)));
        }
    }
}

/// Reads something at a place, which moves behind it.
#[inline]
fn read<'a, T>(bytes: &'a [u8], place: &mut u32, read: impl FnOnce(&mut &'a [u8]) -> T) -> T {
    let mut rest = bytes.get(*place as usize..).unwrap_or_default();
    let result = read(&mut rest);
    *place = (bytes.len() - rest.len()) as u32;
    result
}

/// As [`cell`] has it, with one comparison of bounds.
#[inline(always)]
fn scalar<'a>(bytes: &'a [u8], place: &mut u32, kind: Kind) -> Cell<'a> {
    let found = match kind {
        Kind::Bool => value(bytes, place, |_, [v]: [u8; 1]| Cell::Bool(v != 0)),
        Kind::Addr => value(bytes, place, |_, octets| Cell::Addr(Addr::v6(octets))),
        Kind::Text => text(bytes, place),
        _ => value(bytes, place, |mark, bytes| {
            let word = u64::from_le_bytes(bytes);
            match kind {
                Kind::Int => Cell::Int(word as i64),
                Kind::Double => Cell::Double(f64::from_bits(word)),
                Kind::Time | Kind::Interval if mark == SECONDS => {
                    Cell::Seconds(f64::from_bits(word))
                }
                Kind::Time if mark == OTHER => Cell::FarTime(f64::from_bits(word)),
                Kind::Time => Cell::Time(Time::from_nanos(word as i64)),
                Kind::Interval => Cell::Interval(Interval::from_nanos(word as i64)),
                _ => Cell::Count(word),
            }
        }),
    };
    found.unwrap_or_else(|| near_the_end(bytes, place, kind))
}

/// A value of a fixed size, if that many bytes are left.
#[inline(always)]
fn value<'a, const N: usize>(
    bytes: &'a [u8],
    place: &mut u32,
    of: impl FnOnce(u8, [u8; N]) -> Cell<'a>,
) -> Option<Cell<'a>> {
    let (mark, rest) = bytes.get(*place as usize..)?.split_first()?;
    let value = rest.first_chunk::<N>()?;
    *place += 1;
    if *mark == UNSET {
        return Some(Cell::Unset);
    }
    *place += N as u32;
    Some(of(*mark, *value))
}

#[inline(always)]
fn text<'a>(bytes: &'a [u8], place: &mut u32) -> Option<Cell<'a>> {
    let (mark, rest) = bytes.get(*place as usize..)?.split_first()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    if *mark == UNSET {
        *place += 1;
        return Some(Cell::Unset);
    }
    let len = u32::from_le_bytes(*len);
    let text = rest.get(..len as usize)?;
    *place += 5 + len;
    Some(if *mark == OTHER { Cell::Plain(text) } else { Cell::String(text) })
}

#[cold]
#[inline(never)]
fn near_the_end<'a>(bytes: &'a [u8], place: &mut u32, kind: Kind) -> Cell<'a> {
    read(bytes, place, |rest| cell(rest, kind)).unwrap_or(Cell::Unset)
}
