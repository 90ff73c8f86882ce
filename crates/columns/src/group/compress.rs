//! How pages are compressed.

use std::io;

use parquet::basic::CompressionCodec;
use parquet::basic::Encoding;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;
use zstd::zstd_safe::ParamSwitch;
use zstd::zstd_safe::compress_bound;

use super::base62;

/// Compression level.
const LEVEL: i32 = 1;
/// Fewest bytes of a repetition, and bits of the table of places where one may be. Values of columns are short: what
/// is found with more entries, or of fewer bytes, takes longer to write than it is worth.
const REPETITION: u32 = 7;
const TABLE: u32 = 12;
/// A level at which repetitions are hardly looked for.
const LETTERS: i32 = -10_000;
/// Smaller pages do not show what is worth it.
const SHOWING: usize = 2 << 10;
/// Row groups after which a column is looked at again.
const GROUPS: u32 = 8;

/// What makes pages smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PageCompression {
    /// Repetitions and frequent bytes, with zstd.
    #[default]
    Repetitions,
    /// Frequent bytes alone, with zstd.
    Letters,
    /// Six bits for each digit and letter, which zstd reads.
    Base62,
    /// Nothing.
    Nothing,
}

/// How the pages of a column are compressed in the next row groups of a file, from what its pages were before.
#[derive(Default)]
pub(crate) struct Choice {
    way: PageCompression,
    /// The encoding of the pages that were looked at.
    of: Option<Encoding>,
    /// How many row groups followed.
    groups: u32,
}

/// Compressors for all columns.
pub(super) struct Compressors {
    repetitions: Compressor<'static>,
    letters: Compressor<'static>,
}

impl Choice {
    /// How pages of the next row group are compressed, and whether one of them is to be
    /// [looked at](Compressors::look).
    ///
    /// Where no row groups follow, none is.
    pub(super) fn next(&mut self, encoding: Encoding, is_last: bool) -> (PageCompression, bool) {
        if self.of != Some(encoding) {
            return (PageCompression::Repetitions, !is_last);
        }
        self.groups += 1;
        (self.way, self.groups >= GROUPS && !is_last)
    }
}

impl PageCompression {
    pub(super) fn codec(self) -> CompressionCodec {
        match self {
            Self::Repetitions | Self::Letters | Self::Base62 => CompressionCodec::ZSTD,
            Self::Nothing => CompressionCodec::UNCOMPRESSED,
        }
    }
}

impl Compressors {
    pub(super) fn new() -> io::Result<Self> {
        let mut repetitions = Compressor::new(LEVEL)?;
        repetitions.set_parameter(CParameter::MinMatch(REPETITION))?;
        repetitions.set_parameter(CParameter::HashLog(TABLE))?;
        let mut letters = Compressor::new(LETTERS)?;
        letters.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Enable))?;
        Ok(Self { repetitions, letters })
    }

    /// Compresses a page into `to`.
    pub(super) fn compress(
        &mut self,
        way: PageCompression,
        page: &[u8],
        to: &mut Vec<u8>,
    ) -> io::Result<()> {
        to.clear();
        let begin = if way == PageCompression::Base62 { base62::begin(page) } else { None };
        if let Some(begin) = begin {
            base62::frame(page, begin, to);
            return Ok(());
        }
        let compressor = match way {
            PageCompression::Repetitions => &mut self.repetitions,
            PageCompression::Letters | PageCompression::Base62 => &mut self.letters,
            PageCompression::Nothing => {
                to.extend_from_slice(page);
                return Ok(());
            }
        };
        to.reserve(compress_bound(page.len()));
        compressor.compress_to_buffer(page, to).map(drop)
    }

    /// Chooses for later row groups from a page of this one. Those that hardly become smaller are not compressed.
    /// Looking for repetitions takes twice as long or longer than for frequent bytes alone, and must save a quarter.
    pub(super) fn look(
        &mut self,
        page: &[u8],
        encoding: Encoding,
        room: &mut Vec<u8>,
        choice: &mut Choice,
    ) -> io::Result<()> {
        if page.len() < SHOWING {
            return Ok(());
        }
        let mut len = |way| self.compress(way, page, room).map(|()| room.len());
        let (repetitions, letters) =
            (len(PageCompression::Repetitions)?, len(PageCompression::Letters)?);
        let way = if repetitions.min(letters) * 16 > page.len() * 15 {
            PageCompression::Nothing
        } else if letters * 3 <= repetitions * 4 {
            let base62 = base62::begin(page).map(|begin| base62::len(page, begin));
            match base62.is_some_and(|len| len * 32 <= letters * 33) {
                true => PageCompression::Base62,
                false => PageCompression::Letters,
            }
        } else {
            PageCompression::Repetitions
        };
        *choice = Choice { way, of: Some(encoding), groups: 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that nothing predicts.
    fn random() -> impl Iterator<Item = u64> {
        (1_u64..).map(|n| {
            let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
        })
    }

    fn way_of(page: &[u8]) -> PageCompression {
        let mut compressors = Compressors::new().unwrap();
        let mut choice = Choice::default();
        let encoding = Encoding::PLAIN;
        assert_eq!(choice.next(encoding, false), (PageCompression::Repetitions, true));
        let mut room = Vec::new();
        compressors.look(page, encoding, &mut room, &mut choice).unwrap();
        let (way, again) = choice.next(encoding, false);
        assert!(!again || page.len() < SHOWING);
        // Pages of another encoding are not known.
        assert_eq!(choice.next(Encoding::RLE, false), (PageCompression::Repetitions, true));
        for way in [
            PageCompression::Repetitions,
            PageCompression::Letters,
            PageCompression::Base62,
            PageCompression::Nothing,
        ] {
            compressors.compress(way, page, &mut room).unwrap();
            match way.codec() {
                CompressionCodec::UNCOMPRESSED => assert_eq!(room, page),
                _ => assert_eq!(zstd::bulk::decompress(&room, page.len()).unwrap(), page),
            }
        }
        way
    }

    #[test]
    fn pages_are_compressed_as_is_worth_it() {
        let bytes: Vec<u8> = random().map(|n| n as u8).take(10_000).collect();
        assert_eq!(way_of(&bytes), PageCompression::Nothing);
        assert_eq!(way_of(&bytes[..100]), PageCompression::Repetitions);
        let letters: Vec<u8> = random().map(|n| b'a' + (n % 26) as u8).take(10_000).collect();
        assert_eq!(way_of(&letters), PageCompression::Letters);
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let ids: Vec<u8> = random().map(|n| digits[n as usize % 62]).take(10_000).collect();
        assert_eq!(way_of(&ids), PageCompression::Base62);
        let words: Vec<u8> = random()
            .flat_map(|n| format!("word{}.example.com", n % 50).into_bytes())
            .take(10_000)
            .collect();
        assert_eq!(way_of(&words), PageCompression::Repetitions);
    }

    #[test]
    fn pages_are_looked_at_again() {
        let mut choice =
            Choice { way: PageCompression::Nothing, of: Some(Encoding::PLAIN), groups: 0 };
        for _ in 1..GROUPS {
            assert_eq!(choice.next(Encoding::PLAIN, false), (PageCompression::Nothing, false));
        }
        assert_eq!(choice.next(Encoding::PLAIN, true), (PageCompression::Nothing, false));
        assert_eq!(choice.next(Encoding::PLAIN, false), (PageCompression::Nothing, true));
    }
}
