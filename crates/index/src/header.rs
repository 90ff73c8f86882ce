//! The header of an index file.

use std::path::Path;

use gannet_capture::Compression;

use crate::analysis::Analysis;
use crate::error::Error;
use crate::identity::Identity;
use crate::identity::checksum;

const MAGIC: &[u8; 8] = b"gannetPI";
const VERSION: u32 = 5;
const SEEKABLE: u32 = 1;
const GZIP: u32 = 2;
const ZSTD: u32 = 4;
const IGNORES_CHECKSUMS: u32 = 8;
const FILTERED: u32 = 16;
/// Size of the header in bytes, including its checksum.
pub(crate) const HEADER: usize = 8 + 4 + 4 + 8 + 8 + 16 + 7 * 8 + 8;

/// The header of an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Whether packet offsets are recorded.
    pub(crate) seekable: bool,
    /// Compression of a capture with restart points: packet offsets refer to its decompressed data.
    pub(crate) compression: Option<Compression>,
    pub(crate) analysis: Analysis,
    pub(crate) identity: Identity,
    /// Number of packets in the capture.
    pub(crate) packets: u64,
    /// Number of fragments that may be missing from their connections.
    pub(crate) forgotten: u64,
    /// Number of bytes before the first packet of the capture.
    pub(crate) head: u64,
    /// Number of offset entries.
    pub(crate) offsets: u64,
    /// Number of restart points.
    pub(crate) points: u64,
    /// Size of the windows of all restart points, in bytes.
    pub(crate) windows: u64,
    /// Number of blocks.
    pub(crate) blocks: u64,
}

impl Header {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&VERSION.to_le_bytes());
        let compression = match self.compression {
            Some(Compression::Gzip) => GZIP,
            Some(Compression::Zstd) => ZSTD,
            _ => 0,
        };
        let Analysis { ignores_checksums, is_filtered, seed } = self.analysis;
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = compression
            | flag(self.seekable, SEEKABLE)
            | flag(ignores_checksums, IGNORES_CHECKSUMS)
            | flag(is_filtered, FILTERED);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&seed.to_le_bytes());
        out.extend_from_slice(&self.identity.size.to_le_bytes());
        out.extend_from_slice(&self.identity.hash.to_le_bytes());
        let Self { packets, forgotten, head, offsets, points, windows, blocks, .. } = *self;
        for n in [packets, forgotten, head, offsets, points, windows, blocks] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let sum = checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    pub(crate) fn read(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let damaged = |what| Error::Damaged(path.to_owned(), what);
        let mut rest = bytes;
        let truncated = || damaged("its header is truncated");
        if take_array::<8>(&mut rest).ok_or_else(truncated)? != *MAGIC {
            return Err(damaged("it is not an index"));
        }
        let version = u32::from_le_bytes(take_array(&mut rest).ok_or_else(truncated)?);
        if version != VERSION {
            return Err(Error::Version(path.to_owned(), version, VERSION));
        }
        let (body, sum) = bytes.split_at_checked(HEADER - 8).ok_or_else(truncated)?;
        if sum.get(..8) != Some(&checksum(body).to_le_bytes()) {
            return Err(damaged("the checksum of its header is wrong"));
        }
        let flags = u32::from_le_bytes(take_array(&mut rest).ok_or_else(truncated)?);
        let seed = u64::from_le_bytes(take_array(&mut rest).ok_or_else(truncated)?);
        let size = u64::from_le_bytes(take_array(&mut rest).ok_or_else(truncated)?);
        let hash = u128::from_le_bytes(take_array(&mut rest).ok_or_else(truncated)?);
        let mut next_u64 = || take_array(&mut rest).map(u64::from_le_bytes).ok_or_else(truncated);
        Ok(Self {
            seekable: flags & SEEKABLE != 0,
            compression: match flags & (GZIP | ZSTD) {
                0 => None,
                GZIP => Some(Compression::Gzip),
                ZSTD => Some(Compression::Zstd),
                _ => return Err(damaged("its header has the flags of two compression formats")),
            },
            analysis: Analysis {
                ignores_checksums: flags & IGNORES_CHECKSUMS != 0,
                is_filtered: flags & FILTERED != 0,
                seed,
            },
            identity: Identity { size, hash },
            packets: next_u64()?,
            forgotten: next_u64()?,
            head: next_u64()?,
            offsets: next_u64()?,
            points: next_u64()?,
            windows: next_u64()?,
            blocks: next_u64()?,
        })
    }
}

/// Takes an array from the start of a slice.
pub(crate) fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}
