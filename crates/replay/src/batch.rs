//! Batches of queries for the kernel: grouped by client and, without a schedule, sorted by length,
//! so that the kernel segments many of them from one message (UDP GSO).

use std::ops::Range;

use crate::sys;
use crate::sys::Chunk;

/// Maximum length of queries that are sent as segments, in bytes: frames of longer ones would
/// exceed the MTU.
const MAX_SEGMENT: usize = 1400;
/// Maximum size of a batch in bytes; one more message may exceed it.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of queries of a batch, limited by the width of the index in a sort key.
pub(crate) const MAX_QUERIES: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 24;
/// Maximum number of clients, limited by the width of the client in a sort key.
pub(crate) const MAX_CLIENTS: usize = 1 << (64 - INDEX_BITS - u16::BITS);

/// A query of the batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchQuery {
    pub(crate) client: u32,
    start: u32,
    len: u16,
    pub(crate) id: u16,
    /// Due time, in nanoseconds of the run.
    pub(crate) due: u64,
    /// Time at which the query was first sent, if this is a retry.
    pub(crate) first_sent: Option<u64>,
}

impl BatchQuery {
    /// Length of the message in bytes.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }
}

/// Queries that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    queries: Vec<BatchQuery>,
    /// The messages, in the order of `queries`.
    data: Vec<u8>,
    /// Sort keys and buffers of [`sort`](Self::sort).
    keys: Vec<u64>,
    sorted_queries: Vec<BatchQuery>,
    sorted_data: Vec<u8>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.queries.clear();
        self.data.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.queries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Whether it has `max` queries, or reached its limit of bytes.
    pub(crate) fn is_full(&self, max: usize) -> bool {
        self.queries.len() >= max.min(MAX_QUERIES) || self.data.len() >= MAX_BYTES
    }

    /// Adds a DNS message, which has at most 65,535 bytes.
    pub(crate) fn push(
        &mut self,
        client: u32,
        due: u64,
        first_sent: Option<u64>,
        id: u16,
        message: &[u8],
    ) {
        let Ok(len) = u16::try_from(message.len()) else { return };
        // Within MAX_BYTES and one message more.
        let start = self.data.len() as u32;
        self.data.extend_from_slice(message);
        self.queries.push(BatchQuery { client, start, len, id, due, first_sent });
    }

    /// Sets the id of the last message; returns its bytes.
    pub(crate) fn set_last_id(&mut self, id: u16) -> &[u8] {
        let Some(out) = self.queries.last_mut() else { return &[] };
        out.id = id;
        let message = &mut self.data[out.start as usize..];
        if let Some(index) = message.get_mut(..2) {
            index.copy_from_slice(&id.to_be_bytes());
        }
        message
    }

    /// Groups the queries by client; within a client, sorts the longest first if `by_length` is
    /// set, and keeps their order otherwise.
    pub(crate) fn sort(&mut self, by_length: bool) {
        let Self { queries, data, keys, sorted_queries, sorted_data } = self;
        keys.clear();
        keys.extend(queries.iter().enumerate().map(|(index, out)| {
            let length = if by_length { u64::from(u16::MAX - out.len) } else { 0 };
            u64::from(out.client) << (INDEX_BITS + u16::BITS) | length << INDEX_BITS | index as u64
        }));
        if keys.is_sorted() {
            return;
        }
        keys.sort_unstable();
        sorted_queries.clear();
        sorted_data.clear();
        for key in keys {
            let out = &queries[(*key & (MAX_QUERIES as u64 - 1)) as usize];
            let start = out.start as usize;
            sorted_queries.push(BatchQuery { start: sorted_data.len() as u32, ..out.clone() });
            sorted_data.extend_from_slice(&data[start..start + out.len()]);
        }
        std::mem::swap(queries, sorted_queries);
        std::mem::swap(data, sorted_data);
    }

    /// The client of the query at `at`, and the number of consecutive queries of that client from
    /// there on.
    pub(crate) fn run_of_client(&self, at: usize) -> Option<(u32, usize)> {
        let client = self.queries.get(at)?.client;
        Some((client, self.queries[at..].iter().take_while(|o| o.client == client).count()))
    }

    /// The queries of a range.
    pub(crate) fn get(&self, part: Range<usize>) -> &[BatchQuery] {
        self.queries.get(part).unwrap_or_default()
    }

    /// The messages; [`Chunk::bytes`] are ranges of it.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Splits a part that belongs to one client into the chunks of a system call: queries of equal
    /// length form one chunk if `join` is set, and the first shorter one ends it.
    pub(crate) fn split_into_chunks(
        &self,
        part: Range<usize>,
        join: bool,
        chunks: &mut Vec<Chunk>,
    ) {
        chunks.clear();
        // Number of messages in the last chunk, and whether another may be added.
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
        batch.queries.iter().map(|o| (o.client, std::str::from_utf8(text(o)).unwrap())).collect()
    }

    #[test]
    fn queries_are_grouped_by_client_and_length_in_order() {
        let mut b =
            batch(&[(2, b"ab"), (1, b"cd"), (2, b"efg"), (1, b"h"), (2, b"ij"), (1, b"kl")]);
        b.sort(false);
        let expected = [(1, "cd"), (1, "h"), (1, "kl"), (2, "ab"), (2, "efg"), (2, "ij")];
        assert_eq!(texts(&b), expected);
        b.sort(true);
        let expected = [(1, "cd"), (1, "kl"), (1, "h"), (2, "efg"), (2, "ab"), (2, "ij")];
        assert_eq!(texts(&b), expected);
        assert_eq!(b.data(), b"cdklhefgabij");
        assert_eq!(
            (b.run_of_client(0), b.run_of_client(3), b.run_of_client(6)),
            (Some((1, 3)), Some((2, 3)), None)
        );
        assert_eq!(b.get(0..2).iter().map(|o| o.due).collect::<Vec<_>>(), [1, 5]);
        b.sort(true);
        assert_eq!(texts(&b), expected);
    }

    #[test]
    fn a_chunk_ends_with_the_first_that_is_shorter() {
        let b = batch(&[(1, b"abc"), (1, b"def"), (1, b"gh"), (1, b"ij"), (1, b"k"), (1, b"l")]);
        let mut chunks = Vec::new();
        b.split_into_chunks(0..6, true, &mut chunks);
        let seen: Vec<_> =
            chunks.iter().map(|c| (c.bytes.clone(), c.segment, c.messages())).collect();
        assert_eq!(seen, [(0..8, 3, 3), (8..11, 2, 2), (11..12, 1, 1)]);
        b.split_into_chunks(1..6, false, &mut chunks);
        assert_eq!(chunks.iter().map(|c| c.bytes.len()).collect::<Vec<_>>(), [3, 2, 2, 1, 1]);
    }

    #[test]
    fn chunks_and_calls_have_their_limits() {
        let one: (u32, &[u8]) = (0, b"x");
        let b = batch(&vec![one; sys::MAX_SEGMENTS * sys::MESSAGES + 1]);
        let mut chunks = Vec::new();
        b.split_into_chunks(0..b.len(), true, &mut chunks);
        assert_eq!(chunks.len(), sys::MESSAGES);
        assert!(chunks.iter().all(|c| c.messages() == sys::MAX_SEGMENTS));
        let long = vec![0; MAX_SEGMENT + 1];
        let b = batch(&[(0, &long), (0, &long)]);
        b.split_into_chunks(0..2, true, &mut chunks);
        assert_eq!(chunks.iter().map(Chunk::messages).collect::<Vec<_>>(), [1, 1]);
        let full = vec![0; 1400];
        let b = batch(&vec![(0, &full[..]); 50]);
        b.split_into_chunks(0..50, true, &mut chunks);
        assert_eq!(chunks.iter().map(Chunk::messages).collect::<Vec<_>>(), [46, 4]);
        assert!(b.is_full(50) && !b.is_full(51));
    }

    #[test]
    fn ids_are_written_into_the_message() {
        let mut b = batch(&[(0, b"abcd"), (0, b"efgh")]);
        assert_eq!(b.set_last_id(0x4142), b"ABgh");
        assert_eq!(b.data(), b"abcdABgh");
        assert_eq!(b.get(1..2)[0].id, 0x4142);
    }
}
