//! Blocks of queries, passed from the feed to a sender: many queries in one allocation.

/// The position of a query in the run and in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Number of the query among those of the run, from 0.
    pub(crate) number: u64,
    /// Number of its packet in the capture, or of its line in the list, from 1.
    pub(crate) packet: u64,
    /// Capture time in nanoseconds since the epoch; 0 from a list.
    pub(crate) time: i64,
}

#[cfg(test)]
impl From<u64> for Origin {
    fn from(number: u64) -> Self {
        Self { number, ..Self::default() }
    }
}

/// One query of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Time at which to send it, in nanoseconds from the start of the run.
    pub(crate) due: u64,
    /// Index of the client that sends it, over all threads.
    pub(crate) client: u32,
    /// Its position in the run and in the input.
    pub(crate) origin: Origin,
    start: u32,
    len: u16,
}

/// Queries in the order of their due times, from one batch of packets or lines, for one sender.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) items: Vec<Item>,
    bytes: Vec<u8>,
    /// The highest client among the items.
    pub(crate) last_client: u32,
}

impl Block {
    /// Adds a query; messages have at most 65,535 bytes, so a block's bytes stay below 64 MiB.
    pub(crate) fn push(&mut self, due: u64, client: u32, origin: Origin, message: &[u8]) {
        let Ok(len) = u16::try_from(message.len()) else { return };
        self.items.push(Item { due, client, origin, start: self.bytes.len() as u32, len });
        self.bytes.extend_from_slice(message);
        self.last_client = self.last_client.max(client);
    }

    /// The message of one of this block's items.
    pub(crate) fn message(&self, item: &Item) -> &[u8] {
        let start = item.start as usize;
        self.bytes.get(start..start + usize::from(item.len)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let mut block = Block::default();
        block.push(5, 1, 0.into(), b"first");
        block.push(6, 2, 1.into(), b"");
        block.push(7, 3, 2.into(), b"third");
        let seen: Vec<_> = block.items.iter().map(|i| (i.due, block.message(i))).collect();
        assert_eq!(seen, [(5, &b"first"[..]), (6, b""), (7, b"third")]);
        assert_eq!(block.last_client, 3);
        block.push(8, 4, 3.into(), &vec![0; 70_000]);
        assert_eq!(block.items.len(), 3, "no DNS message is that long");
    }
}
