//! The first bytes of an index.

use std::path::Path;

use gannet_capture::Compression;

use crate::analysis::Analysis;
use crate::error::Error;
use crate::identity::Identity;
use crate::identity::check;

const MAGIC: &[u8; 8] = b"gannetPI";
const VERSION: u32 = 5;
const SEEKABLE: u32 = 1;
const GZIP: u32 = 2;
const ZSTD: u32 = 4;
const IGNORES_CHECKSUMS: u32 = 8;
const FILTERED: u32 = 16;
/// Bytes of the header, the check among them.
pub(crate) const HEADER: usize = 8 + 4 + 4 + 8 + 8 + 16 + 7 * 8 + 8;

/// The first bytes of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) seekable: bool,
    /// Whether places are those in the decompressed data of a file with restart points.
    pub(crate) compression: Option<Compression>,
    pub(crate) analysis: Analysis,
    pub(crate) identity: Identity,
    pub(crate) packets: u64,
    pub(crate) forgotten: u64,
    pub(crate) head: u64,
    pub(crate) places: u64,
    pub(crate) points: u64,
    pub(crate) windows: u64,
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
        let Self { packets, forgotten, head, places, points, windows, blocks, .. } = *self;
        for n in [packets, forgotten, head, places, points, windows, blocks] {
            out.extend_from_slice(&n.to_le_bytes());
        }
        let sum = check(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    pub(crate) fn read(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let damaged = |what| Error::Damaged(path.to_owned(), what);
        let mut rest = bytes;
        let cut = || damaged("its header is cut");
        if take::<8>(&mut rest).ok_or_else(cut)? != *MAGIC {
            return Err(damaged("it is no index"));
        }
        let version = u32::from_le_bytes(take(&mut rest).ok_or_else(cut)?);
        if version != VERSION {
            return Err(Error::Version(path.to_owned(), version, VERSION));
        }
        let (body, sum) = bytes.split_at_checked(HEADER - 8).ok_or_else(cut)?;
        if sum.get(..8) != Some(&check(body).to_le_bytes()) {
            return Err(damaged("its header is not what was written"));
        }
        let flags = u32::from_le_bytes(take(&mut rest).ok_or_else(cut)?);
        let seed = u64::from_le_bytes(take(&mut rest).ok_or_else(cut)?);
        let size = u64::from_le_bytes(take(&mut rest).ok_or_else(cut)?);
        let hash = u128::from_le_bytes(take(&mut rest).ok_or_else(cut)?);
        let mut number = || take(&mut rest).map(u64::from_le_bytes).ok_or_else(cut);
        Ok(Self {
            seekable: flags & SEEKABLE != 0,
            compression: match flags & (GZIP | ZSTD) {
                0 => None,
                GZIP => Some(Compression::Gzip),
                ZSTD => Some(Compression::Zstd),
                _ => return Err(damaged("it is of two compressions")),
            },
            analysis: Analysis {
                ignores_checksums: flags & IGNORES_CHECKSUMS != 0,
                is_filtered: flags & FILTERED != 0,
                seed,
            },
            identity: Identity { size, hash },
            packets: number()?,
            forgotten: number()?,
            head: number()?,
            places: number()?,
            points: number()?,
            windows: number()?,
            blocks: number()?,
        })
    }
}

/// The next bytes.
pub(crate) fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}
