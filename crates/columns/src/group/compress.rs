//! Compression of Parquet pages.

use std::io;

use parquet::basic::CompressionCodec;
use parquet::basic::Encoding;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;
use zstd::zstd_safe::ParamSwitch;
use zstd::zstd_safe::compress_bound;

use super::base62;

/// zstd compression level.
const LEVEL: i32 = 1;
/// zstd's `minMatch`: minimum length of a match, in bytes. Values of columns are short: shorter matches and a larger
/// hash table cost more time than the bytes that they save are worth.
const MIN_MATCH: u32 = 7;
/// zstd's `hashLog`: the hash table of match positions has two to the power of this entries.
const HASH_LOG: u32 = 12;
/// zstd level at which the compressor finds hardly any match, so that only literals are compressed.
const HUFFMAN_LEVEL: i32 = -10_000;
/// Minimum size of a page, in bytes, from which a compression is chosen.
const MIN_SAMPLE: usize = 2 << 10;
/// Number of row groups after which a page of a column is sampled again.
const SAMPLE_INTERVAL: u32 = 8;

/// Compression of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PageCompression {
    /// zstd with matches and Huffman-coded literals.
    #[default]
    Zstd,
    /// zstd frames of Huffman-coded literals, nearly without matches.
    Huffman,
    /// zstd frames in which each digit and letter has a code of six bits.
    Base62,
    /// Not compressed.
    Uncompressed,
}

/// Compression of a column in the next row groups of a file, chosen from a page of an earlier row group.
#[derive(Default)]
pub(crate) struct CompressionChoice {
    compression: PageCompression,
    /// Encoding of the sampled page; `None` before the first sample.
    encoding: Option<Encoding>,
    /// Number of row groups since the sample.
    groups_since: u32,
}

/// Compressors for all columns.
pub(super) struct Compressors {
    zstd: Compressor<'static>,
    huffman: Compressor<'static>,
}

impl CompressionChoice {
    /// Returns the compression of the next row group's pages, and whether one of them is to be
    /// [sampled](Compressors::sample). The last row group of a file is not sampled.
    pub(super) fn next(&mut self, encoding: Encoding, is_last: bool) -> (PageCompression, bool) {
        if self.encoding != Some(encoding) {
            return (PageCompression::Zstd, !is_last);
        }
        self.groups_since += 1;
        (self.compression, self.groups_since >= SAMPLE_INTERVAL && !is_last)
    }
}

impl PageCompression {
    pub(super) fn codec(self) -> CompressionCodec {
        match self {
            Self::Zstd | Self::Huffman | Self::Base62 => CompressionCodec::ZSTD,
            Self::Uncompressed => CompressionCodec::UNCOMPRESSED,
        }
    }
}

impl Compressors {
    pub(super) fn new() -> io::Result<Self> {
        let mut zstd = Compressor::new(LEVEL)?;
        zstd.set_parameter(CParameter::MinMatch(MIN_MATCH))?;
        zstd.set_parameter(CParameter::HashLog(HASH_LOG))?;
        let mut huffman = Compressor::new(HUFFMAN_LEVEL)?;
        huffman.set_parameter(CParameter::LiteralCompressionMode(ParamSwitch::Enable))?;
        Ok(Self { zstd, huffman })
    }

    /// Compresses a page into `to`, whose content is replaced.
    pub(super) fn compress(
        &mut self,
        compression: PageCompression,
        page: &[u8],
        to: &mut Vec<u8>,
    ) -> io::Result<()> {
        to.clear();
        let start = if compression == PageCompression::Base62 {
            base62::alphanumeric_start(page)
        } else {
            None
        };
        if let Some(start) = start {
            base62::write_frame(page, start, to);
            return Ok(());
        }
        let compressor = match compression {
            PageCompression::Zstd => &mut self.zstd,
            PageCompression::Huffman | PageCompression::Base62 => &mut self.huffman,
            PageCompression::Uncompressed => {
                to.extend_from_slice(page);
                return Ok(());
            }
        };
        to.reserve(compress_bound(page.len()));
        compressor.compress_to_buffer(page, to).map(drop)
    }

    /// Chooses the compression of later row groups from a page of this one. A page that becomes less than 1/16 smaller
    /// is not compressed. Finding matches takes at least twice as long as coding literals only, and must save a
    /// quarter.
    pub(super) fn sample(
        &mut self,
        page: &[u8],
        encoding: Encoding,
        scratch: &mut Vec<u8>,
        choice: &mut CompressionChoice,
    ) -> io::Result<()> {
        if page.len() < MIN_SAMPLE {
            return Ok(());
        }
        let mut len =
            |compression| self.compress(compression, page, scratch).map(|()| scratch.len());
        let (zstd, huffman) = (len(PageCompression::Zstd)?, len(PageCompression::Huffman)?);
        let compression = if zstd.min(huffman) * 16 > page.len() * 15 {
            PageCompression::Uncompressed
        } else if huffman * 3 <= zstd * 4 {
            let base62 =
                base62::alphanumeric_start(page).map(|start| base62::estimated_len(page, start));
            match base62.is_some_and(|len| len * 32 <= huffman * 33) {
                true => PageCompression::Base62,
                false => PageCompression::Huffman,
            }
        } else {
            PageCompression::Zstd
        };
        *choice = CompressionChoice { compression, encoding: Some(encoding), groups_since: 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers.
    fn random() -> impl Iterator<Item = u64> {
        (1_u64..).map(|n| {
            let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
        })
    }

    fn compression_of(page: &[u8]) -> PageCompression {
        let mut compressors = Compressors::new().unwrap();
        let mut choice = CompressionChoice::default();
        let encoding = Encoding::PLAIN;
        assert_eq!(choice.next(encoding, false), (PageCompression::Zstd, true));
        let mut scratch = Vec::new();
        compressors.sample(page, encoding, &mut scratch, &mut choice).unwrap();
        let (compression, again) = choice.next(encoding, false);
        assert!(!again || page.len() < MIN_SAMPLE);
        // A page of one encoding does not decide for pages of another.
        assert_eq!(choice.next(Encoding::RLE, false), (PageCompression::Zstd, true));
        for compression in [
            PageCompression::Zstd,
            PageCompression::Huffman,
            PageCompression::Base62,
            PageCompression::Uncompressed,
        ] {
            compressors.compress(compression, page, &mut scratch).unwrap();
            match compression.codec() {
                CompressionCodec::UNCOMPRESSED => assert_eq!(scratch, page),
                _ => assert_eq!(zstd::bulk::decompress(&scratch, page.len()).unwrap(), page),
            }
        }
        compression
    }

    #[test]
    fn compression_is_chosen_from_the_size_of_a_page() {
        let bytes: Vec<u8> = random().map(|n| n as u8).take(10_000).collect();
        assert_eq!(compression_of(&bytes), PageCompression::Uncompressed);
        assert_eq!(compression_of(&bytes[..100]), PageCompression::Zstd);
        let huffman: Vec<u8> = random().map(|n| b'a' + (n % 26) as u8).take(10_000).collect();
        assert_eq!(compression_of(&huffman), PageCompression::Huffman);
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let ids: Vec<u8> = random().map(|n| digits[n as usize % 62]).take(10_000).collect();
        assert_eq!(compression_of(&ids), PageCompression::Base62);
        let words: Vec<u8> = random()
            .flat_map(|n| format!("word{}.example.com", n % 50).into_bytes())
            .take(10_000)
            .collect();
        assert_eq!(compression_of(&words), PageCompression::Zstd);
    }

    #[test]
    fn pages_are_sampled_again() {
        let mut choice = CompressionChoice {
            compression: PageCompression::Uncompressed,
            encoding: Some(Encoding::PLAIN),
            groups_since: 0,
        };
        for _ in 1..SAMPLE_INTERVAL {
            assert_eq!(choice.next(Encoding::PLAIN, false), (PageCompression::Uncompressed, false));
        }
        assert_eq!(choice.next(Encoding::PLAIN, true), (PageCompression::Uncompressed, false));
        assert_eq!(choice.next(Encoding::PLAIN, false), (PageCompression::Uncompressed, true));
    }
}
