//! Merges packets of several rings in the order of their timestamps.
//!
//! A ring delivers packets in blocks, which the kernel retires when they are full or after a time. A packet is returned
//! when no ring can still deliver an earlier one. That is known for a ring with pending packets, and assumed for an
//! empty one after a *window*.

use gannet_base::Interval;
use gannet_base::Time;
use gannet_capture::Bytes;
use gannet_capture::Record;

use crate::ring::Block;

/// Maximum delay of a packet in a ring: the kernel retires blocks after 10 ms, or later if it is busy.
pub(crate) const WINDOW: Interval = Interval::from_millis(30);

/// The pending packets of a ring, and the index of the next one.
#[derive(Debug, Default)]
pub(crate) struct PendingBlock {
    pub(crate) block: Block,
    pub(crate) at: usize,
}

impl PendingBlock {
    fn head(&self) -> Option<&Record> {
        self.block.records.get(self.at)
    }

    /// Whether all of its packets have been merged.
    pub(crate) fn is_empty(&self) -> bool {
        self.head().is_none()
    }
}

/// Maximum size of a merged batch, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Merges pending packets of all rings into a batch. `now` is the time of the kernel's clock. Returns their bytes;
/// `records` receives their positions.
pub(crate) fn merge(
    pending: &mut [PendingBlock],
    now: Time,
    max_packets: usize,
    records: &mut Vec<Record>,
) -> Bytes {
    records.clear();
    let mut bytes: Vec<u8> = Vec::new();
    let is_incomplete = pending.iter().any(PendingBlock::is_empty);
    let limit = if is_incomplete { now - WINDOW } else { Time::MAX };
    while records.len() < max_packets && bytes.len() < MAX_BYTES {
        let next = pending
            .iter_mut()
            .filter_map(|pending_block| Some((pending_block.head()?.time, pending_block)));
        let Some((time, pending_block)) = next.min_by_key(|(time, _)| *time) else { break };
        if time > limit {
            break;
        }
        let Some(record) = pending_block.head().copied() else { break };
        let (start, len) = (record.offset as usize, record.cap_len as usize);
        records.push(Record { offset: bytes.len() as u32, ..record });
        bytes.extend_from_slice(
            pending_block.block.bytes.get(start..start + len).unwrap_or_default(),
        );
        pending_block.at += 1;
        if pending_block.is_empty() {
            // Return the block to the kernel. The next block of the ring may be available.
            pending_block.block.bytes = Bytes::default();
            if !is_incomplete {
                break;
            }
        }
    }
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use gannet_capture::LinkType;

    use super::*;

    fn pending_block(times: &[i64]) -> PendingBlock {
        let record = |(n, time): (usize, &i64)| Record {
            time: Time::from_nanos(time * 1_000_000),
            offset: n as u32,
            cap_len: 1,
            wire_len: 1,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        let bytes = Bytes::from(times.iter().map(|t| *t as u8).collect::<Vec<_>>());
        let records = times.iter().enumerate().map(record).collect();
        PendingBlock { block: Block { bytes, records }, at: 0 }
    }

    fn merged(pending: &mut [PendingBlock], now: i64) -> Vec<u8> {
        let mut records = Vec::new();
        let bytes = merge(pending, Time::from_nanos(now * 1_000_000), 100, &mut records);
        records.iter().map(|r| bytes[r.offset as usize]).collect()
    }

    #[test]
    fn packets_are_returned_when_no_earlier_one_can_arrive() {
        let mut pending = [pending_block(&[1, 4, 5]), pending_block(&[2, 3, 9])];
        // The first ring is empty after 5: a packet of its next block may precede 9.
        assert_eq!(merged(&mut pending, 10), [1, 2, 3, 4, 5]);
        assert_eq!(merged(&mut pending, 10), []);
        assert_eq!(merged(&mut pending, 38), []);
        assert_eq!(merged(&mut pending, 39), [9]);
        assert_eq!(merged(&mut pending, 1_000), []);
    }
}
