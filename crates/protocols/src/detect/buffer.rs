//! Storage of the data that both sides sent so far: contiguous for each side, for the rules, and in the order of
//! arrival, for the analyzer of a detected protocol.

use gannet_base::Dir;

use crate::Piece;

/// Chunks of both sides.
#[derive(Debug, Default)]
pub(super) struct ChunkBuffer {
    sides: [Vec<u8>; 2],
    /// For each chunk or gap its side, and the length of a chunk. `others` has those that exceed `first`.
    first: [u16; INLINE_CHUNKS],
    others: Vec<u16>,
    /// Number of chunks and gaps.
    count: usize,
    /// Lengths of the gaps, in bytes.
    gaps: Vec<u64>,
}

/// Flags in an entry of [`ChunkBuffer::first`]; the other bits are the length.
const RESP: u16 = 1 << 15;
const GAP: u16 = 1 << 14;

/// Maximum length of a chunk, in bytes.
pub(super) const MAX_CHUNK: usize = GAP as usize - 1;

/// Number of chunks that are stored without an allocation: most connections have no more.
const INLINE_CHUNKS: usize = 4;

/// A chunk, or the length of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk<'a> {
    Bytes(&'a [u8]),
    Gap(u64),
}

impl ChunkBuffer {
    /// All bytes of a side.
    #[inline]
    pub(super) fn side(&self, dir: Dir) -> &[u8] {
        &self.sides[dir.index()]
    }

    /// Number of bytes of both sides.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.sides[0].len() + self.sides[1].len()
    }

    /// Adds bytes to the end of a side. They count as a chunk once [`close`](Self::close) is called.
    #[inline]
    pub(super) fn append(&mut self, dir: Dir, data: &[u8]) {
        let side = &mut self.sides[dir.index()];
        if side.capacity() == 0 {
            side.reserve_exact(data.len());
        }
        side.extend_from_slice(data);
    }

    /// Makes the last `len` bytes of a side a chunk, of at most [`MAX_CHUNK`] bytes.
    #[inline]
    pub(super) fn close(&mut self, dir: Dir, len: usize) {
        self.push(dir, len.min(MAX_CHUNK) as u16);
    }

    /// Adds a gap of `len` bytes to a side.
    pub(super) fn gap(&mut self, dir: Dir, len: u64) {
        self.gaps.push(len);
        self.push(dir, GAP);
    }

    fn push(&mut self, dir: Dir, entry: u16) {
        let entry = entry | if dir.is_orig() { 0 } else { RESP };
        match self.first.get_mut(self.count) {
            Some(slot) => *slot = entry,
            None => self.others.push(entry),
        }
        self.count += 1;
    }

    /// Iterates over chunks and gaps in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = (Dir, Chunk<'_>)> {
        let mut rest = [&self.sides[0][..], &self.sides[1]];
        let mut gaps = self.gaps.iter();
        let order = self.first.iter().take(self.count).chain(&self.others);
        order.map_while(move |entry| {
            let dir = if entry & RESP == 0 { Dir::Orig } else { Dir::Resp };
            if entry & GAP != 0 {
                return Some((dir, Chunk::Gap(*gaps.next()?)));
            }
            let side = &mut rest[dir.index()];
            let (chunk, after) = side.split_at_checked(usize::from(entry & MAX_CHUNK as u16))?;
            *side = after;
            Some((dir, Chunk::Bytes(chunk)))
        })
    }

    /// Returns the stored chunks and gaps, followed by `last`, for the replay to a detected analyzer.
    pub(super) fn pieces(&self, last: (Dir, Piece)) -> Vec<(Dir, Piece)> {
        let piece = |chunk| match chunk {
            Chunk::Bytes(bytes) => Piece::Bytes(bytes.to_vec()),
            Chunk::Gap(len) => Piece::Gap(len),
        };
        let mut pieces = Vec::with_capacity(self.count + 1);
        pieces.extend(self.chunks().map(|(dir, chunk)| (dir, piece(chunk))));
        pieces.push(last);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_come_out_as_they_went_in(
            chunks in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..9), any::<bool>()), 0..20),
        ) {
            let dir = |orig| if orig { Dir::Orig } else { Dir::Resp };
            let mut buffer = ChunkBuffer::default();
            for (orig, bytes, gap) in &chunks {
                if *gap {
                    buffer.gap(dir(*orig), bytes.len() as u64);
                } else {
                    buffer.append(dir(*orig), bytes);
                    buffer.close(dir(*orig), bytes.len());
                }
            }
            let all: Vec<_> = buffer.chunks().collect();
            let expected: Vec<_> = chunks.iter().map(|(orig, bytes, gap)| {
                (dir(*orig), if *gap { Chunk::Gap(bytes.len() as u64) } else { Chunk::Bytes(bytes) })
            }).collect();
            prop_assert_eq!(all, expected);
            let whole: Vec<u8> =
                chunks.iter().filter(|c| c.0 && !c.2).flat_map(|c| c.1.iter().copied()).collect();
            prop_assert_eq!(buffer.side(Dir::Orig), &whole[..]);
        }
    }
}
