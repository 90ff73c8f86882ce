//! Batches of queries for the kernel: grouped by client, and, if there is no schedule, by length,
//! so that the kernel takes many of them in one segment.

use std::ops::Range;

use crate::sys;
use crate::sys::Chunk;

/// Longer queries are not put together: their frames would not fit a link.
const MAX_SEGMENT: usize = 1400;
/// Bytes of queries that a batch takes in; one more message may follow.
const MAX_BYTES: usize = 16 << 20;
/// Queries that a batch may hold, by the width of the place in its order.
pub(crate) const MAX_QUERIES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 24;
/// Clients whose queries can be distinguished.
pub(crate) const MAX_CLIENTS: usize = 1 << (64 - PLACE_BITS - u16::BITS);

/// A query of the batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchQuery {
    pub(crate) client: u32,
    start: u32,
    len: u16,
    pub(crate) id: u16,
    /// When it was due.
    pub(crate) due: u64,
    /// When it was first sent, for one that is sent again.
    pub(crate) again: Option<u64>,
}

impl BatchQuery {
    /// Bytes of the message.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }
}

/// Queries that go out together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    outs: Vec<BatchQuery>,
    /// The messages, in the order of `outs`.
    data: Vec<u8>,
    /// What [`order`](Self::order) works with.
    keys: Vec<u64>,
    other_outs: Vec<BatchQuery>,
    other_data: Vec<u8>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.outs.clear();
        self.data.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.outs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outs.is_empty()
    }

    /// Whether it has `most` queries, or reached its limit of bytes.
    pub(crate) fn is_full(&self, most: usize) -> bool {
        self.outs.len() >= most.min(MAX_QUERIES) || self.data.len() >= MAX_BYTES
    }

    /// Takes a message in, which is one of DNS and thus has 65,535 bytes at the most.
    pub(crate) fn push(
        &mut self,
        client: u32,
        due: u64,
        again: Option<u64>,
        id: u16,
        message: &[u8],
    ) {
        let Ok(len) = u16::try_from(message.len()) else { return };
        // Within MAX_BYTES and one message more.
        let start = self.data.len() as u32;
        self.data.extend_from_slice(message);
        self.outs.push(BatchQuery { client, start, len, id, due, again });
    }

    /// Gives the last message its id; its bytes.
    pub(crate) fn name_last(&mut self, id: u16) -> &[u8] {
        let Some(out) = self.outs.last_mut() else { return &[] };
        out.id = id;
        let message = &mut self.data[out.start as usize..];
        if let Some(place) = message.get_mut(..2) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        message
    }

    /// Puts the queries of a client together, with `by_length` the longest first, and otherwise leaves their order.
    pub(crate) fn order(&mut self, by_length: bool) {
        let Self { outs, data, keys, other_outs, other_data } = self;
        keys.clear();
        keys.extend(outs.iter().enumerate().map(|(place, out)| {
            let length = if by_length { u64::from(u16::MAX - out.len) } else { 0 };
            u64::from(out.client) << (PLACE_BITS + u16::BITS) | length << PLACE_BITS | place as u64
        }));
        if keys.is_sorted() {
            return;
        }
        keys.sort_unstable();
        other_outs.clear();
        other_data.clear();
        for key in keys {
            let out = &outs[(*key & (MAX_QUERIES as u64 - 1)) as usize];
            let start = out.start as usize;
            other_outs.push(BatchQuery { start: other_data.len() as u32, ..out.clone() });
            other_data.extend_from_slice(&data[start..start + out.len()]);
        }
        std::mem::swap(outs, other_outs);
        std::mem::swap(data, other_data);
    }

    /// How many queries from `at` on are of one client, and which.
    pub(crate) fn of_one(&self, at: usize) -> Option<(u32, usize)> {
        let client = self.outs.get(at)?.client;
        Some((client, self.outs[at..].iter().take_while(|o| o.client == client).count()))
    }

    /// Some of the queries.
    pub(crate) fn get(&self, part: Range<usize>) -> &[BatchQuery] {
        self.outs.get(part).unwrap_or_default()
    }

    /// The bytes that chunks are ranges of.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Splits a part that belongs to one client into the chunks of a system call: queries of equal
    /// length form one chunk if `join` is set, and the first shorter one ends it.
    pub(crate) fn cut(&self, part: Range<usize>, join: bool, chunks: &mut Vec<Chunk>) {
        chunks.clear();
        // Messages of the last chunk, and whether another may follow.
        let (mut count, mut open) = (0, false);
        for out in self.get(part) {
            let len = out.len();
            let start = out.start as usize;
            if let Some(last) = chunks.last_mut().filter(|_| join && open) {
                let segment = usize::from(last.segment);
                if (1..=segment).contains(&len)
                    && count < sys::MAX_SEGMENTS
                    && last.bytes.len() + len <= sys::MAX_SEGMENTED
                {
                    last.bytes.end = start + len;
                    count += 1;
                    open = len == segment;
                    continue;
                }
            }
            if chunks.len() == sys::MESSAGES {
                break;
            }
            chunks.push(Chunk { bytes: start..start + len, segment: out.len, to: None });
            (count, open) = (1, (1..=MAX_SEGMENT).contains(&len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(queries: &[(u32, &[u8])]) -> Batch {
        let mut batch = Batch::default();
        for (number, (client, message)) in queries.iter().enumerate() {
            batch.push(*client, number as u64, None, 7, message);
        }
        batch
    }

    fn texts(batch: &Batch) -> Vec<(u32, &str)> {
        let text = |o: &BatchQuery| &batch.data[o.start as usize..o.start as usize + o.len()];
        batch.outs.iter().map(|o| (o.client, std::str::from_utf8(text(o)).unwrap())).collect()
    }

    #[test]
    fn queries_of_a_client_and_a_length_come_together_in_their_order() {
        let mut b =
            batch(&[(2, b"ab"), (1, b"cd"), (2, b"efg"), (1, b"h"), (2, b"ij"), (1, b"kl")]);
        b.order(false);
        let expected = [(1, "cd"), (1, "h"), (1, "kl"), (2, "ab"), (2, "efg"), (2, "ij")];
        assert_eq!(texts(&b), expected);
        b.order(true);
        let expected = [(1, "cd"), (1, "kl"), (1, "h"), (2, "efg"), (2, "ab"), (2, "ij")];
        assert_eq!(texts(&b), expected);
        assert_eq!(b.data(), b"cdklhefgabij");
        assert_eq!((b.of_one(0), b.of_one(3), b.of_one(6)), (Some((1, 3)), Some((2, 3)), None));
        assert_eq!(b.get(0..2).iter().map(|o| o.due).collect::<Vec<_>>(), [1, 5]);
        b.order(true);
        assert_eq!(texts(&b), expected);
    }

    #[test]
    fn a_chunk_ends_with_the_first_that_is_shorter() {
        let b = batch(&[(1, b"abc"), (1, b"def"), (1, b"gh"), (1, b"ij"), (1, b"k"), (1, b"l")]);
        let mut chunks = Vec::new();
        b.cut(0..6, true, &mut chunks);
        let seen: Vec<_> =
            chunks.iter().map(|c| (c.bytes.clone(), c.segment, c.messages())).collect();
        assert_eq!(seen, [(0..8, 3, 3), (8..11, 2, 2), (11..12, 1, 1)]);
        b.cut(1..6, false, &mut chunks);
        assert_eq!(chunks.iter().map(|c| c.bytes.len()).collect::<Vec<_>>(), [3, 2, 2, 1, 1]);
    }

    #[test]
    fn chunks_and_calls_have_their_limits() {
        let one: (u32, &[u8]) = (0, b"x");
        let b = batch(&vec![one; sys::MAX_SEGMENTS * sys::MESSAGES + 1]);
        let mut chunks = Vec::new();
        b.cut(0..b.len(), true, &mut chunks);
        assert_eq!(chunks.len(), sys::MESSAGES);
        assert!(chunks.iter().all(|c| c.messages() == sys::MAX_SEGMENTS));
        let long = vec![0; MAX_SEGMENT + 1];
        let b = batch(&[(0, &long), (0, &long)]);
        b.cut(0..2, true, &mut chunks);
        assert_eq!(chunks.iter().map(Chunk::messages).collect::<Vec<_>>(), [1, 1]);
        let full = vec![0; 1400];
        let b = batch(&vec![(0, &full[..]); 50]);
        b.cut(0..50, true, &mut chunks);
        assert_eq!(chunks.iter().map(Chunk::messages).collect::<Vec<_>>(), [46, 4]);
        assert!(b.is_full(50) && !b.is_full(51));
    }

    #[test]
    fn ids_are_written_into_the_message() {
        let mut b = batch(&[(0, b"abcd"), (0, b"efgh")]);
        assert_eq!(b.name_last(0x4142), b"ABgh");
        assert_eq!(b.data(), b"abcdABgh");
        assert_eq!(b.get(1..2)[0].id, 0x4142);
    }
}
