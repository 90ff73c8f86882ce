//! Tests of bits of the packet, and words that combine several of them.
//!
//! Header fields are close together: fragment offset and protocol are one load of four bytes, one
//! mask and one comparison.

use crate::bpf::{AND, JEQ, JSET};
use crate::engine::graph::{Graph, Node, Value};

/// The bytes of a load, the mask of relevant bits, and their required value, in memory byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) load: Value,
    base: Option<Value>,
    offset: u32,
    size: u8,
    mask: u32,
    right: u32,
}

impl Piece {
    /// From a test with a constant that holds if bits are equal (`JEQ`) or fails if they are clear
    /// (`JSET`).
    pub(super) fn of(graph: &Graph, op: u16, left: Value, right: Value) -> Option<Self> {
        let k = graph.constant(right).filter(|_| matches!(op, JEQ | JSET))?;
        let (load, and) = match graph.node(left) {
            Node::Binary(AND, load, mask) => (load, graph.constant(mask)?),
            _ => (left, u32::MAX),
        };
        let Node::Load { size, base, offset } = graph.node(load) else { return None };
        if op == JEQ && k > graph.max_value(load) {
            return None;
        }
        let placed = |k: u32| match size {
            1 => k & 0xff,
            2 => u32::from((k as u16).swap_bytes()),
            _ => k.swap_bytes(),
        };
        let (mask, right) = if op == JEQ { (and, placed(k)) } else { (and & k, 0) };
        Some(Self { load, base, offset, size, mask: placed(mask), right })
    }

    fn end(&self) -> u64 {
        u64::from(self.offset) + u64::from(self.size)
    }
}

/// One load and comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The load of one of its pieces, and the number of bytes by which the word begins earlier.
    pub(super) load: Value,
    pub(super) before: u8,
    pub(super) size: u8,
    pub(super) mask: u32,
    pub(super) right: u32,
    one: bool,
}

impl Word {
    /// A word of one piece.
    pub(super) fn of(piece: &Piece) -> Self {
        let Piece { load, size, mask, right, .. } = *piece;
        Self { load, before: 0, size, mask, right, one: true }
    }

    /// Whether it consists of a single whole load.
    pub(super) fn is_one(&self) -> bool {
        self.one
    }

    /// The mask of a word whose bits are all relevant.
    pub(super) fn full(&self) -> u32 {
        u32::MAX >> (32 - 8 * u32::from(self.size))
    }
}

/// Combines pieces to words. A word ends where the last of its pieces ends, so that its bytes are
/// present if they are.
pub(super) fn gather(mut pieces: Vec<Piece>) -> Vec<Word> {
    pieces.sort_by_key(|p| (p.base, p.offset));
    let mut words = Vec::new();
    let mut rest = &pieces[..];
    while let [first, ..] = rest {
        let mut count = 1;
        while let Some(next) = rest.get(count)
            && next.base == first.base
            // After the previous one, without overlap.
            && u64::from(next.offset) >= rest[count - 1].end()
            && next.end() - u64::from(first.offset) <= 4
        {
            count += 1;
        }
        let (together, others) = rest.split_at(count);
        words.extend(
            word(together).map_or_else(|| together.iter().map(Word::of).collect(), |w| vec![w]),
        );
        rest = others;
    }
    words
}

/// Some pieces as one word; `None` if it would begin before their base.
fn word(pieces: &[Piece]) -> Option<Word> {
    let [first, .., last] = pieces else { return None };
    let size = if last.end() - u64::from(first.offset) <= 2 { 2 } else { 4_u8 };
    let begin = last.end().checked_sub(u64::from(size))?;
    let before = u8::try_from(u64::from(first.offset) - begin).ok()?;
    let (mut mask, mut right) = (0, 0);
    for piece in pieces {
        let shift = 8 * (u64::from(piece.offset) - begin) as u32;
        mask |= piece.mask << shift;
        right |= piece.right << shift;
    }
    Some(Word { load: first.load, before, size, mask, right, one: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{B, H};

    fn piece(at: u32, offset: u32, size: u16, mask: u32, right: u32) -> Piece {
        let size = if size == B { 1 } else { 2 };
        Piece { load: Value(at), base: None, offset, size, mask, right }
    }

    #[test]
    fn adjacent_fields_are_one_word() {
        // Offset of a fragment zero, protocol TCP.
        let pieces = vec![piece(1, 23, B, 0xff, 6), piece(0, 20, H, 0xff1f, 0)];
        let word = Word {
            load: Value(0),
            before: 0,
            size: 4,
            mask: 0xff00_ff1f,
            right: 0x0600_0000,
            one: false,
        };
        assert_eq!(gather(pieces), [word]);
    }

    #[test]
    fn a_word_begins_before_its_pieces_rather_than_ending_after_them() {
        let pieces = vec![piece(0, 21, B, 0xff, 1), piece(1, 23, B, 0x0f, 2)];
        let words = gather(pieces.clone());
        assert_eq!((words[0].before, words[0].size), (1, 4));
        assert_eq!((words[0].mask, words[0].right), (0x0f00_ff00, 0x0200_0100));
        // No bytes precede the packet.
        let early: Vec<Piece> =
            pieces.into_iter().map(|p| Piece { offset: p.offset - 21, ..p }).collect();
        assert!(gather(early.clone()).iter().zip(&early).all(|(w, p)| *w == Word::of(p)));
    }

    #[test]
    fn overlapping_or_distant_pieces_are_not_combined() {
        let pieces =
            vec![piece(0, 12, H, 0xffff, 8), piece(1, 13, B, 1, 0), piece(2, 23, B, 0xff, 6)];
        let words = gather(pieces.clone());
        assert_eq!(words, pieces.iter().map(Word::of).collect::<Vec<_>>());
    }
}
