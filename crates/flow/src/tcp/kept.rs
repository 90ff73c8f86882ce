use std::collections::BTreeMap;

/// Overhead of a block, in addition to its bytes.
const BLOCK: usize = 48;

/// Bytes of a side that its peer did not acknowledge, delivered ones included, in the segments that brought
/// them: what is sent again is compared with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeptBytes {
    bytes: usize,
    /// By relative sequence number; no two overlap.
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl KeptBytes {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Memory, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.blocks.len() * BLOCK
    }

    /// Forgets the blocks that end at or before `seq`.
    pub(super) fn forget_below(&mut self, seq: u64) {
        while let Some(first) = self.blocks.first_entry()
            && first.key().saturating_add(first.get().len() as u64) <= seq
        {
            self.bytes -= first.remove().len();
        }
    }

    /// Compares bytes with what was sent in their place; `differ` gets both where they are not the same.
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

    /// Keeps what is new of the bytes.
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

    fn differences(kept: &KeptBytes, seq: u64, data: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        kept.compare(seq, data, &mut |known, again| {
            let [known, again] = [known, again].map(String::from_utf8_lossy);
            all.push(format!("{known} {again}"));
        });
        all
    }

    #[test]
    fn each_block_is_compared_with_its_part() {
        let mut kept = KeptBytes::default();
        kept.insert(1, b"abc");
        kept.insert(6, b"fgh");
        assert_eq!(differences(&kept, 1, b"abcdefgh"), [""; 0]);
        assert_eq!(differences(&kept, 2, b"BCDEFG"), ["bc BC", "fg FG"]);
        assert_eq!(differences(&kept, 0, b"?abc"), [""; 0]);
        assert_eq!(differences(&kept, 4, b"de"), [""; 0]);
    }

    #[test]
    fn the_first_bytes_stay() {
        let mut kept = KeptBytes::default();
        kept.insert(3, b"cd");
        kept.insert(1, b"ABCDEF");
        assert_eq!(differences(&kept, 1, b"......"), ["AB ..", "cd ..", "EF .."]);
        assert_eq!(kept.cost(), 6 + 3 * BLOCK);
    }

    #[test]
    fn blocks_go_as_a_whole() {
        let mut kept = KeptBytes::default();
        kept.insert(1, b"abc");
        kept.insert(4, b"de");
        kept.forget_below(3);
        assert_eq!(kept.cost(), 5 + 2 * BLOCK);
        kept.forget_below(4);
        assert_eq!(differences(&kept, 1, b"....."), ["de .."]);
        kept.forget_below(u64::MAX);
        assert!(kept.is_empty() && kept.cost() == 0);
    }
}
