use std::collections::BTreeMap;

/// Overhead of a block in bytes, in addition to its data.
const BLOCK_OVERHEAD: usize = 48;

/// Bytes that the peer has not acknowledged, including delivered ones, in blocks as in their
/// segments. Retransmissions are compared with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SentBytes {
    bytes: usize,
    /// Blocks by relative sequence number; no two overlap.
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl SentBytes {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Memory used, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.blocks.len() * BLOCK_OVERHEAD
    }

    /// Drops the blocks that end at or before `seq`.
    pub(super) fn drop_below(&mut self, seq: u64) {
        while let Some(first) = self.blocks.first_entry()
            && first.key().saturating_add(first.get().len() as u64) <= seq
        {
            self.bytes -= first.remove().len();
        }
    }

    /// Compares bytes with those first sent for the same sequence numbers; calls `differ` with both
    /// where they differ.
    pub(super) fn compare(&self, seq: u64, data: &[u8], differ: &mut impl FnMut(&[u8], &[u8])) {
        let upper = seq + data.len() as u64;
        let first = self.blocks.range(..=seq).next_back().map_or(seq, |(start, _)| *start);
        for (&start, block) in self.blocks.range(first..upper) {
            let (from, until) = (start.max(seq), upper.min(start + block.len() as u64));
            if from < until {
                let known = &block[(from - start) as usize..(until - start) as usize];
                let again = &data[(from - seq) as usize..(until - seq) as usize];
                if known != again {
                    differ(known, again);
                }
            }
        }
    }

    /// Stores those bytes whose sequence numbers are not stored yet.
    pub(super) fn insert(&mut self, mut seq: u64, mut data: &[u8]) {
        while !data.is_empty() {
            let before = self.blocks.range(..=seq).next_back();
            let known = before.map_or(seq, |(start, block)| start + block.len() as u64);
            if known > seq {
                let skip = (known - seq).min(data.len() as u64);
                seq += skip;
                data = &data[skip as usize..];
                continue;
            }
            let next = self.blocks.range(seq..).next().map_or(u64::MAX, |(start, _)| *start);
            let n = (next - seq).min(data.len() as u64);
            self.blocks.insert(seq, data[..n as usize].into());
            self.bytes += n as usize;
            seq += n;
            data = &data[n as usize..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(sent: &SentBytes, seq: u64, data: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        sent.compare(seq, data, &mut |known, again| {
            let [known, again] = [known, again].map(String::from_utf8_lossy);
            all.push(format!("{known} {again}"));
        });
        all
    }

    #[test]
    fn retransmissions_are_compared_block_by_block() {
        let mut sent = SentBytes::default();
        sent.insert(1, b"abc");
        sent.insert(6, b"fgh");
        assert_eq!(differences(&sent, 1, b"abcdefgh"), [""; 0]);
        assert_eq!(differences(&sent, 2, b"BCDEFG"), ["bc BC", "fg FG"]);
        assert_eq!(differences(&sent, 0, b"?abc"), [""; 0]);
        assert_eq!(differences(&sent, 4, b"de"), [""; 0]);
    }

    #[test]
    fn the_first_bytes_are_stored() {
        let mut sent = SentBytes::default();
        sent.insert(3, b"cd");
        sent.insert(1, b"ABCDEF");
        assert_eq!(differences(&sent, 1, b"......"), ["AB ..", "cd ..", "EF .."]);
        assert_eq!(sent.cost(), 6 + 3 * BLOCK_OVERHEAD);
    }

    #[test]
    fn blocks_are_dropped_as_a_whole() {
        let mut sent = SentBytes::default();
        sent.insert(1, b"abc");
        sent.insert(4, b"de");
        sent.drop_below(3);
        assert_eq!(sent.cost(), 5 + 2 * BLOCK_OVERHEAD);
        sent.drop_below(4);
        assert_eq!(differences(&sent, 1, b"....."), ["de .."]);
        sent.drop_below(u64::MAX);
        assert!(sent.is_empty() && sent.cost() == 0);
    }
}
