//! Items of an arena that are decoded on first access.
//!
//! Most functions of Zeek's scripts are never called in a run, so their expressions and statements need no
//! decoding. These are stored in independent blocks of [`BLOCK`] items, preceded by the length of each block.

use std::cell::OnceCell;
use std::rc::Rc;

use super::codec::{Codec, Damaged, DecodeResult, Reader, Writer};
use crate::ids::{Arena, Id};
use crate::source::Span;

/// Items per block, about those of one function.
const BLOCK: usize = 64;

/// The first items of an arena, as stored in a file.
#[derive(Clone)]
pub(crate) struct Stored<T> {
    /// The file.
    bytes: Rc<Vec<u8>>,
    blocks: Box<[Block<T>]>,
    len: usize,
    decode_block: fn(&[u8], usize) -> Box<[T]>,
}

#[derive(Clone)]
struct Block<T> {
    /// Range of its bytes in the file.
    start: usize,
    end: usize,
    items: OnceCell<Box<[T]>>,
}

impl<T> Stored<T> {
    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn block(&self, number: usize) -> Option<&[T]> {
        let block = self.blocks.get(number)?;
        Some(block.items.get_or_init(|| {
            let bytes = self.bytes.get(block.start..block.end).unwrap_or_default();
            (self.decode_block)(bytes, BLOCK.min(self.len - number * BLOCK))
        }))
    }

    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.block(index / BLOCK)?.get(index % BLOCK)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.block(index / BLOCK)?;
        self.blocks.get_mut(index / BLOCK)?.items.get_mut()?.get_mut(index % BLOCK)
    }
}

/// The `len` items of a block. A file is loaded only if its digest is valid, so its blocks are well-formed; a
/// malformed block yields default items.
fn decode_block<T: Codec + Default>(bytes: &[u8], len: usize) -> Box<[T]> {
    let mut from = Reader::new(bytes);
    (0..len).map(|_| T::decode(&mut from).unwrap_or_default()).collect()
}

/// Encodes an arena in blocks.
pub(super) fn encode<I: Id, T: Codec>(arena: &Arena<I, T>, to: &mut Writer) {
    to.number(arena.len() as u64);
    let mut blocks = Writer::default();
    let mut ends = Vec::new();
    for (id, item) in arena.iter() {
        if id.index().is_multiple_of(BLOCK) {
            blocks.previous_span = Span::NOWHERE;
        }
        item.encode(&mut blocks);
        if id.index() % BLOCK == BLOCK - 1 || id.index() + 1 == arena.len() {
            ends.push(blocks.bytes.len());
        }
    }
    let mut start = 0;
    for end in ends {
        to.number((end - std::mem::replace(&mut start, end)) as u64);
    }
    to.bytes.extend_from_slice(&blocks.bytes);
}

/// Decodes an arena in blocks. The items of a file are decoded later.
pub(super) fn decode<I: Id, T: Codec + Default>(
    from: &mut Reader<'_>,
) -> DecodeResult<Arena<I, T>> {
    let len = from.len()?;
    let lens: Vec<usize> =
        (0..len.div_ceil(BLOCK)).map(|_| usize::decode(from)).collect::<DecodeResult<_>>()?;
    let Some(file) = from.file else {
        let mut items = Vec::with_capacity(len);
        for bytes in &lens {
            let (block, left) = from.left.split_at_checked(*bytes).ok_or(Damaged)?;
            from.left = left;
            let mut block = Reader::new(block);
            for _ in 0..BLOCK.min(len - items.len()) {
                items.push(T::decode(&mut block)?);
            }
        }
        return Ok(Arena::from_items(items));
    };
    let mut blocks = Vec::with_capacity(lens.len());
    for bytes in lens {
        // The remaining bytes are at the end of the file.
        let start = file.len() - from.left.len();
        from.left = from.left.get(bytes..).ok_or(Damaged)?;
        blocks.push(Block { start, end: start + bytes, items: OnceCell::new() });
    }
    let (bytes, blocks) = (Rc::clone(file), blocks.into_boxed_slice());
    Ok(Arena::from_stored(Stored { bytes, blocks, len, decode_block: decode_block::<T> }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Name;

    fn written(items: &[u32]) -> Vec<u8> {
        let arena: Arena<Name, u32> = Arena::from_items(items.to_vec());
        let mut to = Writer::default();
        to.bytes.extend_from_slice(b"head");
        encode(&arena, &mut to);
        to.byte(7);
        to.bytes
    }

    #[test]
    fn items_are_decoded_lazily_and_eagerly() {
        for count in [0, 1, 63, 64, 65, 1_000, 100_000] {
            let items: Vec<u32> = (0..count).map(|number| number * 3).collect();
            let file = Rc::new(written(&items));
            let mut from = Reader::of_file(&file, 4);
            let mut lazy: Arena<Name, u32> = decode(&mut from).unwrap();
            assert_eq!(from.left, [7]);
            let mut from = Reader::new(&file[4..]);
            let eager: Arena<Name, u32> = decode(&mut from).unwrap();
            assert_eq!((from.left, lazy.len()), (&[7][..], items.len()));
            assert!(lazy.iter().map(|(_, item)| *item).eq(items.iter().copied()));
            assert!(eager.iter().map(|(_, item)| *item).eq(items.iter().copied()));
            // New items follow the stored ones, and both kinds can be changed.
            let new = lazy.push(5);
            assert_eq!((new.index(), lazy[new]), (items.len(), 5));
            for id in [Name(0), new] {
                lazy[id] = 9;
                assert_eq!(lazy[id], 9);
            }
            assert_eq!(lazy.find(Name(count + 1)), None);
        }
    }

    #[test]
    fn damaged_blocks_are_rejected() {
        let file = written(&[1; 100]);
        for len in 4..file.len() - 1 {
            assert!(decode::<Name, u32>(&mut Reader::new(&file[4..len])).is_err());
            let cut = Rc::new(file[..len].to_vec());
            assert!(decode::<Name, u32>(&mut Reader::of_file(&cut, 4)).is_err());
        }
        // The block declares more items than it has bytes.
        let file = Rc::new(vec![2, 1, 5, 0, 0]);
        assert!(decode::<Name, u32>(&mut Reader::new(&file)).is_err());
        let arena: Arena<Name, u32> = decode(&mut Reader::of_file(&file, 0)).unwrap();
        assert_eq!((arena[Name(0)], arena[Name(1)]), (5, 0));
    }
}
